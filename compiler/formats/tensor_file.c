/* tensor_file.c: opens weights by their path. The path names a file, an index of shards or a folder, or several of them
 * with commas between. NAME= in front of one puts `NAME.` in front of the names of its tensors, so that files whose
 * tensors have the same names can be read together. */
#include "tensor_file.h"

#include "coded.h"
#include "gguf.h"
#include "torch.h"

#include <stdlib.h>
#include <string.h>

static TensorFile read_file(Arena *arena, const char *path) {
    MappedFile mapped = file_map(arena, path);
    if (gguf_begins(mapped)) return gguf_open(arena, path).tensors;
    return torch_begins(mapped) ? torch_read(arena, mapped) : safetensors_read(arena, mapped);
}

/* Takes the tensors that the index lists; a shard may hold others, which are left out. */
static TensorFile read_shards(Arena *arena, const char *path) {
    size_t count;
    const ShardEntry *entries = shards_list(arena, path, &count);
    const char *slash = strrchr(path, '/');
    int folder = slash ? (int)(slash + 1 - path) : 0;
    TensorFile file = {.path = path}, shard = {0};
    file.tensors = arena_array(arena, count, sizeof *file.tensors);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || strcmp(entries[i - 1].shard, entries[i].shard) != 0) {
            shard = read_file(arena, arena_printf(arena, "%.*s%s", folder, path, entries[i].shard));
            file.size += shard.size;
        }
        const FileTensor *tensor = tensor_find(&shard, entries[i].tensor);
        if (!tensor) tensor_fail(path, entries[i].tensor, "it is not in its file `%s`", entries[i].shard);
        file.tensors[file.count++] = *tensor;
    }
    tensors_sort(&file);
    return file;
}

static const char *folder_of_file(Arena *arena, const char *path) {
    const char *slash = strrchr(path, '/');
    return !slash ? "." : slash == path ? "/" : arena_copy(arena, path, (size_t)(slash - path));
}

static void put_name(Arena *arena, TensorFile *file, const char *name) {
    for (size_t i = 0; i < file->count; i++)
        file->tensors[i].name = arena_printf(arena, "%s.%s", name, file->tensors[i].name);
}

static TensorFile open_file(Arena *arena, const char *path) {
    TensorFile file = text_ends(path, ".index.json") ? read_shards(arena, path) : read_file(arena, path);
    if (quantized_is(&file)) quantized_decode(arena, &file, folder_of_file(arena, path));
    return file;
}

static TensorFile open_path(Arena *arena, const char *path) {
    if (!folder_exists(path)) return open_file(arena, path);
    size_t count;
    const ModuleFile *modules = modules_list(arena, path, &count);
    const char *only = count ? NULL : folder_weights(arena, path);
    if (only) return open_file(arena, only);
    if (!count) fail("%s: it is a folder without model.safetensors, pytorch_model.bin or an index of one; give its "
                     "files, separated by commas", path);
    TensorFile *files = arena_array(arena, count, sizeof *files);
    for (size_t i = 0; i < count; i++) {
        files[i] = open_file(arena, modules[i].path);
        if (modules[i].name) put_name(arena, &files[i], modules[i].name);
    }
    return tensors_joined(arena, path, files, count);
}

/* A path that exists may have a `=` in it. */
static TensorFile open_part(Arena *arena, const char *part) {
    const char *sign = strchr(part, '=');
    if (!sign || file_exists(part) || folder_exists(part)) return open_path(arena, part);
    const char *name = arena_copy(arena, part, (size_t)(sign - part));
    if (!*name || strchr(name, '/') || text_has_control(name))
        fail("%s: no such file; in NAME=PATH, `%s` is no name for the tensors of a file", part,
             tensor_shown(arena, name));
    TensorFile file = open_path(arena, sign + 1);
    put_name(arena, &file, name);
    return file;
}

static TensorFile open_list(Arena *arena, const char *list) {
    size_t parts = 1;
    for (const char *c = list; *c; c++) parts += *c == ',';
    TensorFile *files = arena_array(arena, parts, sizeof *files);
    const char *at = list;
    for (size_t i = 0; i < parts; i++) {
        size_t size = strcspn(at, ",");
        if (size == 0) fail("%s: a path between the commas is empty", list);
        files[i] = open_part(arena, arena_copy(arena, at, size));
        at += size + 1;
    }
    return tensors_joined(arena, list, files, parts);
}

TensorFile *tensor_file_open(Arena *arena, const char *path) {
    const char *kept = arena_copy(arena, path, strlen(path));
    bool list = strchr(path, ',') && !file_exists(path); /* a comma may also be part of a path */
    TensorFile *file = arena_alloc(arena, sizeof *file);
    *file = list ? open_list(arena, kept) : open_part(arena, kept);
    file->path = kept;
    return file;
}
