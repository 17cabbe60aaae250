/* unknown.c: keys of the config that nothing reads. Keys that are null or that libraries write for themselves are
 * skipped, keys of --ignore-key are skipped with a note, and all others are reported in one failure. */
#include "import.h"

#include <string.h>

/* Keys that transformers and other libraries that load its models write for themselves. */
static const char of_libraries[] =
    "_commit_hash _attn_implementation_internal _experts_implementation _experts_implementation_internal "
    "_auto_class _configuration_file _from_auto _from_pipeline _from_model_config _is_quantized _output_attentions "
    "_flash_attn_2_enabled _name_or_path _diffusers_version use_return_dict transformers.js_config";

enum { MOST_TOLD = 40 };

typedef struct Unknown {
    Import *import;
    Text told;
    int count;
} Unknown;

static void look(Unknown *unknown, const cJSON *object, const char *stem) {
    Import *import = unknown->import;
    for (const cJSON *item = object->child; item; item = item->next) {
        const char *path = arena_printf(import->arena, "%s%s", stem, item->string);
        KeyUse use = key_use(import, item, path);
        if (use == KEY_LEADS) look(unknown, item, arena_printf(import->arena, "%s.", path));
        if (use == KEY_LEADS || use == KEY_OBEYED) continue;
        bool ignored = key_ignored(import, path);
        if (use == KEY_IRRELEVANT || cJSON_IsNull(item) || word_find(import->arena, of_libraries, item->string))
            continue;
        if (ignored)
            import_note(import, "The key `%.*s` (%s) is left out, as --ignore-key says.", CUT(100, path),
                config_value(import->arena, item));
        else if (unknown->count++ < MOST_TOLD)
            text_printf(&unknown->told, "%s`%.*s` (%s)", unknown->told.size ? ", " : "", CUT(100, path),
                config_value(import->arena, item));
    }
}

void unknown_keys(Import *import) {
    Unknown unknown = {import, text_new(import->arena), 0};
    look(&unknown, import->config, "");
    if (!unknown.count) return;
    bool one = unknown.count == 1;
    int more = unknown.count - MOST_TOLD;
    fail("%s: the key%s %s%s %s unknown for %s `%s`; --ignore-key KEY leaves one out that changes no output",
        import->config_path, one ? "" : "s", unknown.told.data,
        more > 0 ? arena_printf(import->arena, " and %d more", more) : "", one ? "is" : "are", import->kind,
        import->type);
}
