/* ignored.c: the keys that --ignore-key names. */
#include "import.h"

#include <string.h>

/* Whether the object has the key PATH, whose parts may hold dots themselves. */
static bool stands(const cJSON *object, const char *path) {
    for (const cJSON *item = cJSON_IsObject(object) ? object->child : NULL; item; item = item->next) {
        size_t size = strlen(item->string);
        if (strncmp(item->string, path, size) != 0) continue;
        if (!path[size] || (path[size] == '.' && stands(item, path + size + 1))) return true;
    }
    return false;
}

void ignored_check(Import *import) {
    const char *const *ignored = import->options->ignored;
    size_t count = 0;
    for (; ignored && ignored[count]; count++)
        if (!stands(import->config, ignored[count])) fail("%s: it has no key `%.*s`, which --ignore-key names",
            import->config_path, CUT(100, ignored[count]));
    import->ignored_met = arena_array(import->arena, count + 1, sizeof *import->ignored_met);
}

bool key_ignored(const Import *import, const char *path) {
    const char *const *ignored = import->options->ignored;
    bool found = false;
    if (import->within) path = arena_printf(import->arena, "%s.%s", import->within, path);
    size_t size = strlen(path);
    for (size_t i = 0; ignored && ignored[i]; i++) {
        bool inside = strncmp(ignored[i], path, size) == 0 && ignored[i][size] == '.';
        if (strcmp(ignored[i], path) != 0 && !inside) continue;
        import->ignored_met[i] = true;
        found |= !inside;
    }
    return found;
}

void ignored_finish(const Import *import) {
    const char *const *ignored = import->options->ignored;
    for (size_t i = 0; ignored && ignored[i]; i++)
        if (!import->ignored_met[i]) fail("%s: --ignore-key is for keys that attnc does not know, and it obeys "
            "`%.*s`", import->config_path, CUT(100, ignored[i]));
}
