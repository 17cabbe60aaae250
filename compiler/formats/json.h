/* json.h: JSON in files with weights: the header of a safetensors file, an index of shards. */
#ifndef JSON_H
#define JSON_H

#include "../attnc.h"

#include <cjson/cJSON.h>

enum { JSON_LIMIT = 100 * 1000 * 1000 }; /* bytes of the longest JSON that is read */

typedef struct JsonTree {
    cJSON *root;
} JsonTree;

/* The object in text[size], followed by nothing but characters of `padding`; released with the arena. text[size] must
 * be NUL, since cJSON before 1.7.18 reads one byte past the length that it is given. */
JsonTree *json_object(Arena *arena, const char *path, const char *text, size_t size, const char *padding);
void json_release(void *tree); /* a JsonTree; its root becomes NULL */
size_t json_count(const cJSON *object); /* of its members */
/* Whole numbers from 0 to 2^53, which a double represents exactly; `valueint` of cJSON is only an int. */
bool json_whole(const cJSON *item, int64_t *out);

#endif
