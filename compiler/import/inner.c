/* inner.c: a config that holds the config of another family, such as that of the text part of a multimodal model. */
#include "import.h"

#include <string.h>

/* Copies the values of the keys of `outside` from the outer config into the inner config. */
static void take_in(const Family *outer, const cJSON *outer_config, cJSON *inner_config, Arena *arena) {
    const char *words = outer->outside ? outer->outside : "";
    size_t size;
    for (const char *word; (word = next_word(&words, &size));) {
        const char *key = arena_copy(arena, word, size);
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(outer_config, key);
        cJSON_DeleteItemFromObjectCaseSensitive(inner_config, key);
        if (item && !cJSON_AddItemToObject(inner_config, key, cJSON_Duplicate(item, true))) out_of_memory();
    }
}

static void read_all(Import *import) {
    unknown_keys(import);
    keys_read(import);
}

/* The object of the inner config, whose name it sets. One that is absent or null has the defaults of every key. */
static cJSON *inner_of(Import *import, const char **name) {
    const Family *outer = import->family;
    cJSON *found = cJSON_GetObjectItemCaseSensitive(import->config, outer->inside), *instead = NULL;
    *name = outer->inside;
    if (outer->instead) instead = cJSON_GetObjectItemCaseSensitive(import->config, outer->instead);
    if (instead && !cJSON_IsNull(instead)) {
        if (found && !cJSON_IsNull(found) && !cJSON_Compare(found, instead, true))
            import_note(import, "`%s` differs from `%s` and takes its place, as in transformers 5.", outer->instead,
                outer->inside);
        *name = outer->instead;
        found = instead;
    }
    if (!found || cJSON_IsNull(found)) return config_new(import->arena);
    if (!cJSON_IsObject(found)) fail("%s: `%s` is %s; an object is understood", import->config_path, *name,
        config_value(import->arena, found));
    return found;
}

void keys_read_all(Import *import) {
    if (!import->family->inner) {
        read_all(import);
        return;
    }
    Arena *arena = import->arena;
    const Family *outer = import->family;
    cJSON *outer_config = import->config;
    const char *outer_path = import->config_path;
    const char *name;
    cJSON *inner_config = inner_of(import, &name);
    take_in(outer, outer_config, inner_config, arena);
    Family *inner = arena_alloc(arena, sizeof *inner);
    *inner = *outer->inner;
    inner->title = outer->title;
    inner->prefixes = outer->prefixes;
    inner->tensors = arena_printf(arena, "%s%s", outer->inner->tensors, outer->tensors);
    import->family = inner;
    import->config = inner_config;
    import->within = name;
    import->config_path = arena_printf(arena, "%s, in `%s`", outer_path, name);
    const cJSON *type = config_find(import, "model_type", 10);
    if (type && (!cJSON_IsString(type) || !word_find(arena, inner->types, type->valuestring)))
        fail("%s: `model_type` is %s; in `%s`, only %.*s is understood", import->config_path,
            config_value(arena, type), import->type, (int)strcspn(inner->types, "="), inner->types);
    read_all(import);
    import->family = outer; /* the outer config takes precedence over the inner */
    import->config = outer_config;
    import->within = NULL;
    import->config_path = outer_path;
    read_all(import);
    import->family = inner;
}
