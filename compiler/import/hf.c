/* hf.c: a folder saved by Hugging Face transformers as the source of an import. */
#include "import.h"

#include <string.h>

static _Noreturn void unknown_type(const Import *import, const char *type) {
    const char *names[256];
    int n = 0;
    for (int f = 0; families[f]; f++) {
        const char *types = families[f]->types;
        size_t size;
        for (const char *word; n < 255 && (word = next_word(&types, &size));) names[n++] = arena_copy(import->arena,
            word, strcspn(word, "="));
    }
    names[n] = NULL;
    /* Many model types differ from each other by two letters, so a suggestion may differ by one letter only. */
    const char *near = nearest_within(type, names, strlen(type) < 12 ? strlen(type) > 3 : 2);
    fail("%s: `model_type` is \"%.*s\", which is unknown%s%s%s; attnc import --list names those that are",
        import->config_path, CUT(60, type),
         near ? "; the nearest is `" : "", near ? near : "", near ? "`" : "");
}

static void find_family(Import *import) {
    const cJSON *type = config_find(import, "model_type", 10);
    if (!type) fail("%s: the key `model_type` is missing", import->config_path);
    if (!cJSON_IsString(type)) fail("%s: `model_type` is %s; a string is understood", import->config_path,
        config_value(import->arena, type));
    import->type = type->valuestring;
    variable_set(import, "type", import->type);
    import->family = family_find(import->arena, families, import->type);
    const char *refusal = import->family ? NULL : family_refusal(import->type);
    if (refusal) fail("%s: `model_type` is \"%s\", which cannot be imported: %s; attnc import --list names "
        "those that can", import->config_path, import->type, refusal);
    if (!import->family) unknown_type(import, import->type);
}

/* Of a model of several parts, the family of the part that --part names. */
static void find_part(Import *import) {
    const char *part = import->options->part, *known = "";
    if (!import->family->part && part)
        fail("%s: `--part %s` is for a model of several parts, and `%s` has one", import->config_path, part,
            import->type);
    if (!import->family->part) return;
    for (int f = 0; families[f]; f++) {
        const Family *family = families[f];
        if (!word_find(import->arena, family->types, import->type)) continue;
        known = arena_printf(import->arena, "%s%s`--part %s`", known, *known ? " or " : "", family->part);
        import->family = family;
        if (part && strcmp(part, family->part) == 0) return;
    }
    fail("%s: `model_type` is \"%s\", a model of several parts; %s selects one", import->config_path, import->type,
        known);
}

/* Finds the class that saved the model, which decides the head. */
static void find_class(Import *import) {
    Arena *arena = import->arena;
    const char *stem = word_find(arena, import->family->types, import->type), *classes = import->family->classes;
    const cJSON *list = config_find(import, "architectures", 13);
    const cJSON *given = list && cJSON_IsArray(list) && list->child ? list->child : NULL;
    if (list && !cJSON_IsNull(list) && (!cJSON_IsArray(list) || (given && (given->next || !cJSON_IsString(given)))))
        fail("%s: `architectures` is %s; a list of one class is understood", import->config_path,
            config_value(arena, list));
    const char *wanted = given ? given->valuestring : NULL;
    Text known = text_new(arena);
    size_t size;
    for (const char *word; (word = next_word(&classes, &size));) {
        size_t length = strcspn(word, "=");
        import->class_name = arena_printf(arena, "%s%.*s", stem, (int)length, word);
        text_printf(&known, " %s", import->class_name);
        if (wanted && strcmp(wanted, import->class_name) != 0) continue;
        variable_set(import, "task", arena_copy(arena, word + length + 1, size - length - 1));
        return;
    }
    fail("%s: `architectures` is \"%.*s\"; for `%s`, one of%s is understood", import->config_path,
        CUT(100, wanted ? wanted : ""), import->type, known.data);
}

/* The path of the weights, followed by the files of dense modules. */
static const char *weights_of(Import *import, const char *directory, const char *folder) {
    const char *weights = folder_of_weights(import->arena, folder), *more = sentence_weights(import);
    if (strchr(folder, ',')) fail("%s: --weights takes a comma for the end of a file's name; give the folder a name "
        "without one", folder);
    weights = arena_printf(import->arena, "%s%s", weights, more);
    if (*more || strcmp(directory, folder) != 0) import_note(import, "The weights are --weights %s", weights);
    return weights;
}

void hf_source(Import *import, const char *directory) {
    Arena *arena = import->arena;
    directory = folder_of(arena, directory);
    const char *folder = import->folder = sentence_read(import, directory);
    import->config_path = folder_config(arena, folder);
    import->config = config_read(arena, import->config_path);
    import->kind = "model_type";
    ignored_check(import);
    find_family(import);
    find_part(import);
    find_class(import);
    sentence_task(import);
    score_task(import);
    import->origin = arena_printf(arena, "%s, model_type %s", import->class_name, import->type);
    import->weights_path = weights_of(import, directory, folder);
    import->file = tensor_file_open(arena, import->weights_path);
}
