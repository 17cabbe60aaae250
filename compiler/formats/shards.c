/* shards.c: reads an index of shards, {"weight_map": {"a.tensor": "a file beside the index"}}. */
#include "json.h"
#include "tensor_file.h"

#include <stdlib.h>
#include <string.h>

static int by_shard(const void *a, const void *b) {
    const ShardEntry *x = a, *y = b;
    int order = strcmp(x->shard, y->shard);
    return order ? order : strcmp(x->tensor, y->tensor);
}

static void check_shard_name(Arena *arena, const char *path, const ShardEntry *entry) {
    const char *name = entry->shard;
    if (text_has_control(name) || !*name || strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        tensor_fail(path, entry->tensor, "its file `%s` is not a plain file name beside the index",
                    tensor_shown(arena, name));
}

ShardEntry *shards_list(Arena *arena, const char *path, size_t *count) {
    size_t size;
    const char *text = file_read(arena, path, JSON_LIMIT, &size);
    JsonTree *tree = json_object(arena, path, text, size, " \t\r\n");
    const cJSON *map = NULL;
    for (const cJSON *item = tree->root->child; item; item = item->next) {
        if (strcmp(item->string, "weight_map") != 0) continue;
        if (map) fail("%s: `weight_map` is there twice", path);
        map = item;
    }
    if (!map) fail("%s: `weight_map` is missing, so it is not an index of shards", path);
    if (!cJSON_IsObject(map)) fail("%s: `weight_map` is not an object", path);

    ShardEntry *entries = arena_array(arena, json_count(map), sizeof *entries);
    *count = 0;
    for (const cJSON *item = map->child; item; item = item->next) {
        tensor_name_check(path, item->string);
        if (!cJSON_IsString(item)) tensor_fail(path, item->string, "its file is not a string");
        ShardEntry *entry = &entries[(*count)++];
        entry->tensor = arena_copy(arena, item->string, strlen(item->string));
        entry->shard = arena_copy(arena, item->valuestring, strlen(item->valuestring));
        check_shard_name(arena, path, entry);
    }
    json_release(tree);
    if (*count) qsort(entries, *count, sizeof *entries, by_shard);
    return entries;
}
