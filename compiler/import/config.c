/* config.c: reads config.json, and checks its size and depth before it is parsed. */
#include "../formats/json.h"
#include "../formats/tensor_file.h"
#include "import.h"

#include <string.h>

enum { MOST_CONFIG_BYTES = 16 << 20, MOST_DEPTH = 32 };

static void release(void *with) { cJSON_Delete(with); }

/* Refuses brackets nested deeper than MOST_DEPTH outside strings, and a NUL character, however it is written. */
static void check_text(const char *path, const char *text, size_t size) {
    int depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        if (c == '\0' || (c == '\\' && size - i >= 6 && memcmp(text + i, "\\u0000", 6) == 0))
            fail("%s: its JSON holds a NUL character", path);
        if (c == '\\' && quoted) i++;
        else if (c == '"') quoted = !quoted;
        else if (!quoted
            && (c == '{' || c == '[') && ++depth > MOST_DEPTH) fail("%s: its JSON nests more than %d deep", path,
            MOST_DEPTH);
        else if (!quoted && (c == '}' || c == ']')) depth--;
    }
}

static void check_duplicates(Arena *arena, const char *path, const cJSON *object) {
    size_t count = 0;
    const char **names = arena_array(arena, json_count(object) + 1, sizeof *names);
    for (const cJSON *item = object->child; item; item = item->next) {
        if (cJSON_IsObject(item) || cJSON_IsArray(item)) check_duplicates(arena, path, item);
        names[count++] = item->string;
    }
    const char *twice = cJSON_IsObject(object) ? name_twice(names, count) : NULL;
    if (twice) fail("%s: the key `%.*s` stands twice", path, CUT(100, twice));
}

static cJSON *json_read(Arena *arena, const char *path) {
    size_t size = 0;
    const char *text = file_read(arena, path, MOST_CONFIG_BYTES, &size), *end;
    check_text(path, text, size);
    cJSON *root = json_parse(arena, text, size, &end)->root;
    if (!root) fail("%s: it is not JSON from byte %td on", path, end - text);
    if (strspn(end, " \t\r\n") != (size_t)(text + size - end)) fail("%s: something follows its JSON, at byte %td",
        path, end - text);
    check_duplicates(arena, path, root);
    return root;
}

cJSON *config_read(Arena *arena, const char *path) {
    cJSON *root = json_read(arena, path);
    if (!cJSON_IsObject(root)) fail("%s: its JSON is not an object", path);
    return root;
}

cJSON *config_optional(Arena *arena, const char *path) {
    return file_exists(path) ? config_read(arena, path) : NULL;
}

cJSON *config_new(Arena *arena) {
    json_begin();
    cJSON *root = cJSON_CreateObject();
    if (!root) out_of_memory();
    arena_on_free(arena, release, root);
    return root;
}

cJSON *config_list(Arena *arena, const char *path) {
    cJSON *root = json_read(arena, path);
    if (!cJSON_IsArray(root)) fail("%s: its JSON is not a list", path);
    return root;
}

const cJSON *config_find(const Import *import, const char *name, size_t size) {
    const cJSON *object = import->config;
    while (object) {
        const char *dot = memchr(name, '.', size);
        size_t length = dot ? (size_t)(dot - name) : size;
        const cJSON *found = NULL;
        if (!cJSON_IsObject(object)) return NULL;
        for (const cJSON *item = object->child; item && !found; item = item->next)
            if (strlen(item->string) == length && memcmp(item->string, name, length) == 0) found = item;
        if (!dot) return found;
        object = found;
        size -= length + 1;
        name = dot + 1;
    }
    return NULL;
}

char *config_value(Arena *arena, const cJSON *item) {
    if (cJSON_IsString(item)) return arena_printf(arena, "\"%.*s\"%s", CUT(60, item->valuestring),
        strlen(item->valuestring) > 60 ? " …" : "");
    if (cJSON_IsNumber(item)) return arena_printf(arena, "%s", number_text(arena, item->valuedouble));
    if (cJSON_IsBool(item)) return arena_printf(arena, "%s", cJSON_IsTrue(item) ? "true" : "false");
    if (cJSON_IsNull(item)) return arena_printf(arena, "null");
    if (!item->child) return arena_printf(arena, "%s", cJSON_IsArray(item) ? "[]" : "{}");
    bool more = item->child->next != NULL;
    const char *rest = more ? ", …" : "";
    if (cJSON_IsArray(item)) return arena_printf(arena, "[%s%s]", config_value(arena, item->child), rest);
    return arena_printf(arena, "{\"%.*s\": …%s}", CUT(60, item->child->string), rest);
}
