/* json.h: JSON in files: the header of a safetensors file, an index of shards, a tokenizer. */
#ifndef JSON_H
#define JSON_H

#include "../attnc.h"

#include <cjson/cJSON.h>

enum { JSON_LIMIT = 100 * 1000 * 1000 }; /* bytes of the longest JSON that is read */

typedef struct JsonTree {
    cJSON *root;
} JsonTree;

/* Parses the JSON object in `text`, which has `size` bytes; only characters of `padding` may follow the object. The
 * tree is released with the arena. The byte behind the text must be NUL, because cJSON before 1.7.18 reads it. */
JsonTree *json_object(Arena *arena, const char *path, const char *text, size_t size, const char *padding);
/* Reads the JSON of a file of at most `most` bytes, of any type. The tree is released with the arena, or earlier by
 * json_release. What the JSON says is for the caller to check. */
JsonTree *json_file(Arena *arena, const char *path, size_t most);
/* Parses the JSON at the beginning of a text, and sets *end to the end of this JSON. The tree has no root if the text
 * does not begin with JSON. */
JsonTree *json_parse(Arena *arena, const char *text, size_t size, const char **end);
void json_begin(void); /* makes cJSON allocate through checked_malloc */
void json_release(void *tree); /* a JsonTree; its root becomes NULL */
const cJSON *json_member(const cJSON *object, const char *name); /* NULL where it is absent or null */
size_t json_count(const cJSON *object); /* of its members; 0 of NULL */
/* Whole numbers from 0 to 2^53, which a double represents exactly; `valueint` of cJSON is only an int. */
bool json_whole(const cJSON *item, int64_t *out);

#endif
