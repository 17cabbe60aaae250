/* hf.c: turns a folder saved by Hugging Face transformers into a spec, for attnc import. */
#include "import.h"

#include <stdlib.h>
#include <string.h>

/* The default name of the model: its type, turned into an identifier of C. */
static const char *model_name(Arena *arena, const char *type) {
    char *name = arena_copy(arena, type, strlen(type));
    for (char *c = name; *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", *c)) *c = '_';
    bool good = strcmp(name, "model") != 0 && !model_name_fault(arena, name);
    return good ? name : arena_printf(arena, "model_%s", name);
}

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
    fail("%s: `model_type` is \"%.60s\", which is unknown%s%s%s; attnc import --list names those that are",
        import->config_path, type,
         near ? "; the nearest is `" : "", near ? near : "", near ? "`" : "");
}

static void find_family(Import *import) {
    const cJSON *type = config_find(import, "model_type", 10);
    if (!type) fail("%s: the key `model_type` is missing", import->config_path);
    if (!cJSON_IsString(type)) fail("%s: `model_type` is %s; a string is understood", import->config_path,
        config_value(import->arena, type));
    import->type = type->valuestring;
    variable_set(import, "type", import->type);
    for (int f = 0; families[f] && !import->family; f++)
        if (word_find(import->arena, families[f]->types, import->type)) import->family = families[f];
    const char *refusal = import->family ? NULL : family_refusal(import->type);
    if (refusal) fail("%s: `model_type` is \"%s\", which cannot be imported: %s; attnc import --list names "
        "those that can", import->config_path, import->type, refusal);
    if (!import->family) unknown_type(import, import->type);
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
    fail("%s: `architectures` is \"%.100s\"; for `%s`, one of%s is understood", import->config_path,
        wanted ? wanted : "", import->type, known.data);
}

/* The tensors of the spec without its weights block. Empty for an invalid spec, which is reported later. */
static WeightTable tensors_of(Import *import, const char *text) {
    Compilation c = compilation_quiet(import->arena, source_from_text(import->arena, "spec", text, strlen(text)));
    return compile_until(&c, STAGE_GRAPH) ? c.module->weights : (WeightTable){0};
}

/* The family's tables filled in from the config: the model's settings, and the lines of its weights block. */
typedef struct Filled {
    const char *head, *body, *weights;
} Filled;

static Filled fill(Import *import) {
    Arena *arena = import->arena;
    Text body = text_new(arena), weights = text_new(arena);
    const char *task = variable_get(import, "task", 4);
    spec_body(import, &body);
    if (strcmp(task ? task : "", "rest") == 0)
        import_note(import, "The output `logits` is left out: the head of %s cannot be expressed in a spec, and the "
            "outputs end at `hidden`.", import->class_name);
    const char *name = import->options->name ? import->options->name : model_name(arena, import->type);
    const char *head = arena_printf(arena, "model %s {\n", name);
    WeightTable table = tensors_of(import, arena_printf(arena, "%s%s\n}\n", head, body.data));
    sentence_tensors(import, &weights);
    fill_tensors(import, &table, &weights);
    return (Filled){head, body.data, weights.data};
}

/* The formatted spec, with the notes so far as comments in front. */
static const char *spec_text(const Import *import, const Filled *filled) {
    Text out = text_new(import->arena);
    text_printf(&out, "# %s\n# Imported from %s, model_type %s.\n", import->family->title, import->class_name,
        import->type);
    for (const char *note = import->notes.data; *note; note += strcspn(note, "\n") + 1) text_printf(&out, "# %.*s\n",
        (int)strcspn(note, "\n"), note);
    text_printf(&out, "%s%s\nweights {\n%s}\n}\n", filled->head, filled->body, filled->weights);
    Source *source = source_from_text(import->arena, "spec", out.data, out.size);
    Compilation c = compilation_new(import->arena, source);
    if (!compile_until(&c, STAGE_AST)) bug("the spec of `%s` cannot be parsed", import->type);
    return ast_format(import->arena, c.ast);
}

/* Whether the tensor equals another tensor that the spec reads, as older files hold tied tensors twice. */
static bool is_duplicate(const TensorFile *file, const bool *claimed, const FileTensor *tensor) {
    for (size_t t = 0; t < file->count; t++) {
        const FileTensor *other = &file->tensors[t];
        if (claimed[t] && other->dtype == tensor->dtype && shape_equal(other->shape, tensor->shape)
            && memcmp(other->data, tensor->data, tensor->bytes) == 0) return true;
    }
    return false;
}

/* Notes how many tensors of the file the spec does not read, and which, apart from buffers and duplicates. */
static void note_unread(Import *import, const Model *model, const WeightTable *table) {
    const TensorFile *file = import->file;
    size_t absent = 0, count = 0;
    const bool *claimed = weights_claimed(import->arena, model, table, file, &absent);
    const char **names = arena_array(import->arena, file->count + 1, sizeof *names);
    for (size_t t = 0; t < file->count; t++)
        if (!claimed[t] && !is_buffer(import, file->tensors[t].name)
            && !is_duplicate(file, claimed, &file->tensors[t])) names[count++] = file->tensors[t].name;
    if (count) import_note(import, "The file holds %s that the spec does not use: %s.",
        counted(import->arena, (int64_t)count, "tensor"), tensor_names_summary(import->arena, names, count));
}

/* The path of the weights, followed by a comma and the file of a dense module where there is one. */
static const char *weights_of(Import *import, const char *directory, const char *folder) {
    const char *weights = folder_weights(import->arena, folder), *more = sentence_weights(import);
    if (strchr(folder, ',')) fail("%s: --weights takes a comma for the end of a file's name; give the folder a name "
        "without one", folder);
    if (more) weights = arena_printf(import->arena, "%s,%s", weights, more);
    if (more || strcmp(directory, folder) != 0) import_note(import, "The weights are --weights %s", weights);
    return weights;
}

const char *import_spec(Arena *arena, const char *directory, const char *spec_path, const ImportOptions *options,
                        const char **notes) {
    Import import = {.arena = arena, .options = options, .notes = text_new(arena), .buffers = text_new(arena)};
    directory = folder_of(arena, directory);
    const char *folder = sentence_read(&import, directory);
    import.config_path = folder_config(arena, folder);
    import.config = config_read(arena, import.config_path);
    ignored_check(&import);
    find_family(&import);
    find_class(&import);
    sentence_task(&import);
    import.weights_path = weights_of(&import, directory, folder);
    import.file = tensor_file_open(arena, import.weights_path);
    keys_read_all(&import);
    ignored_finish(&import);
    bound_find(&import);
    const Filled filled = fill(&import);
    const char *text = spec_text(&import, &filled);
    Compilation c = compilation_new(arena, source_from_text(arena, spec_path, text, strlen(text)));
    if (!compile_until(&c, STAGE_GRAPH))
        fail("%s: this config makes no valid spec, for the reasons above", import.config_path);
    weights_check(c.model, &c.module->weights, import.file);
    note_unread(&import, c.model, &c.module->weights);
    bound_note(&import);
    *notes = import.notes.data;
    return spec_text(&import, &filled);
}
