/* attn_tokenizer_json.h: the declarations that json_values.c, json.c, json_model.c and json_pieces.c
 * share. */
#ifndef ATTN_TOKENIZER_JSON_H
#define ATTN_TOKENIZER_JSON_H

#include <cjson/cJSON.h>

#include "attn_tokenizer_internal.h"

const cJSON *attn_member(const cJSON *node, const char *name);  /* NULL if it is missing or null */
const char *attn_text_of(const cJSON *node, const char *name);  /* NULL if it is not a string */
bool attn_flag_of(const cJSON *node, const char *name, bool otherwise);
bool attn_integer_of(const cJSON *node, int64_t least, int64_t most, int64_t *value);
/* Copies the member's text, or `otherwise` if it has none. */
bool attn_copy_text(String *to, const cJSON *node, const char *name, const char *otherwise, const Report *report);

bool attn_read_model(attn_tokenizer *t, const cJSON *node, const Report *report); /* json_model.c */
/* json_pieces.c: a model of SentencePiece, whose `vocab` and `unk_token` are read, and its normalizer. */
bool attn_read_pieces(Model *model, const cJSON *node, const Report *report);
bool attn_read_pieces_normalizer(attn_tokenizer *t, const cJSON *node, const Report *report);
/* The table in the member `precompiled_charsmap`, which is base64. */
bool attn_copy_charsmap(Normalizer *n, const cJSON *node, const Report *report);

#endif
