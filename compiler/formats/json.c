/* json.c: parses the JSON of files. */
#include "json.h"

#include <stdlib.h>
#include <string.h>

static bool starved;

static void *malloc_for_json(size_t bytes) {
    void *memory = checked_malloc(bytes);
    if (!memory) starved = true;
    return memory;
}

void json_begin(void) {
    cJSON_InitHooks(&(cJSON_Hooks){malloc_for_json, free});
    starved = false;
}

void json_release(void *with) {
    JsonTree *tree = with;
    cJSON_Delete(tree->root);
    tree->root = NULL;
}

/* Strings of cJSON end at a NUL, so that "a\u0000b" would be read as "a". */
static bool holds_nul(const char *text, size_t size) {
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\0') return true;
        if (text[i] != '\\') continue;
        if (size - i >= 6 && memcmp(text + i, "\\u0000", 6) == 0) return true;
        i++; /* the second of two backslashes begins no escape */
    }
    return false;
}

JsonTree *json_parse(Arena *arena, const char *text, size_t size, const char **end) {
    JsonTree *tree = arena_alloc(arena, sizeof *tree);
    arena_on_free(arena, json_release, tree);
    json_begin();
    *end = text;
    tree->root = cJSON_ParseWithLengthOpts(text, size, end, false);
    if (!tree->root && starved) out_of_memory();
    return tree;
}

JsonTree *json_object(Arena *arena, const char *path, const char *text, size_t size, const char *padding) {
    if (holds_nul(text, size)) fail("%s: its JSON holds a NUL character", path);
    const char *end;
    JsonTree *tree = json_parse(arena, text, size, &end);
    if (!tree->root) fail("%s: its JSON cannot be parsed at byte %td", path, end - text);
    if (!cJSON_IsObject(tree->root)) fail("%s: its JSON is not an object", path);
    for (; end < text + size; end++)
        if (!strchr(padding, *end)) fail("%s: byte %td after the end of its JSON is not a space", path, end - text);
    return tree;
}

JsonTree *json_file(Arena *arena, const char *path, size_t most) {
    size_t size;
    const char *text = file_read(arena, path, most, &size), *end;
    JsonTree *tree = json_parse(arena, text, size, &end);
    if (!tree->root) fail("%s: it is no JSON", path);
    return tree;
}

const cJSON *json_member(const cJSON *object, const char *name) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsNull(item) ? NULL : item;
}

size_t json_count(const cJSON *object) {
    size_t count = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, object) count++;
    return count;
}

bool json_whole(const cJSON *item, int64_t *out) {
    if (!cJSON_IsNumber(item)) return false;
    double value = item->valuedouble;
    if (!(value >= 0 && value <= 0x1p53) || value != (double)(int64_t)value) return false;
    *out = (int64_t)value;
    return true;
}
