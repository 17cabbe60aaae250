/* modules.c: the files with weights of a folder. The modules.json of sentence-transformers lists the folders of a model
 * and of the dense modules that follow it, [{"path": "2_Dense", "type": "sentence_transformers….Dense"}, …]. */
#include "json.h"
#include "tensor_file.h"

#include <string.h>

enum { MOST_BYTES = 1 << 20, MOST_MODULES = 64 };

const char *folder_weights(Arena *arena, const char *folder) {
    static const char *const names[] = {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
                                        "pytorch_model.bin.index.json"};
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/') length--;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *path = arena_printf(arena, "%.*s/%s", (int)length, folder, names[i]);
        if (file_exists(path)) return path;
    }
    return NULL;
}

static const cJSON *modules_read(Arena *arena, const char *path) {
    const cJSON *list = json_file(arena, path, MOST_BYTES)->root;
    if (!cJSON_IsArray(list)) fail("%s: its JSON is no list of modules", path);
    if (cJSON_GetArraySize(list) > MOST_MODULES) fail("%s: it lists more than %d modules", path, MOST_MODULES);
    return list;
}

/* Whether the type is a class of sentence-transformers with this name. */
static bool is_kind(const cJSON *module, const char *kind) {
    static const char own[] = "sentence_transformers.";
    const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(module, "type"));
    const char *dot = type ? strrchr(type, '.') : NULL;
    return dot && strncmp(type, own, sizeof own - 1) == 0 && strcmp(dot + 1, kind) == 0;
}

/* The folder of a module, which is FOLDER itself or inside of it. */
static const char *folder_in(Arena *arena, const char *list, const char *folder, const cJSON *module) {
    const char *path = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(module, "path"));
    if (!path || !*path) return folder;
    if (*path == '/' || strstr(path, "..") || text_has_control(path))
        fail("%s: `path` is \"%s\"; it must be a folder next to modules.json", list, tensor_shown(arena, path));
    return arena_printf(arena, "%s/%s", folder, path);
}

const ModuleFile *modules_list(Arena *arena, const char *folder, size_t *count) {
    const char *path = arena_printf(arena, "%s/modules.json", folder);
    *count = 0;
    if (!file_exists(path)) return NULL;
    const cJSON *list = modules_read(arena, path), *module;
    ModuleFile *files = arena_array(arena, (size_t)cJSON_GetArraySize(list) + 1, sizeof *files);
    size_t denses = 0;
    cJSON_ArrayForEach(module, list) {
        const bool dense = is_kind(module, "Dense");
        if (!dense && !is_kind(module, "Transformer")) continue;
        const char *inside = folder_in(arena, path, folder, module), *file = folder_weights(arena, inside);
        if (!file) fail("%s: it is a module of %s without model.safetensors, pytorch_model.bin or an index of one",
                        inside, path);
        const char *name = dense ? arena_printf(arena, "dense.%zu", denses++) : NULL;
        files[(*count)++] = (ModuleFile){name, file};
    }
    return files;
}
