/* json.h: what json.c and json_model.c share. */
#ifndef EXAMPLES_TOKENIZER_JSON_H
#define EXAMPLES_TOKENIZER_JSON_H

#include <cjson/cJSON.h>

#include "internal.h"

const cJSON *member(const cJSON *node, const char *name);  /* NULL where there is none, or it is null */
const char *text_of(const cJSON *node, const char *name);  /* NULL where that is no text */
bool flag_of(const cJSON *node, const char *name, bool otherwise);
bool integer_of(const cJSON *node, int64_t least, int64_t most, int64_t *value);
/* The member's text, or the other where there is none. */
bool copy_text(String *to, const cJSON *node, const char *name, const char *otherwise, const Report *report);

bool read_model(tokenizer *t, const cJSON *node, const Report *report); /* json_model.c */

#endif
