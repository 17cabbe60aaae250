/* json_values.c: the values of members of a JSON object. */
#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#include "attn_tokenizer_json.h"

const cJSON *attn_member(const cJSON *node, const char *name) {
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(node, name);
    return cJSON_IsNull(found) ? NULL : found;
}

const char *attn_text_of(const cJSON *node, const char *name) {
    return cJSON_GetStringValue(attn_member(node, name));
}

bool attn_flag_of(const cJSON *node, const char *name, bool otherwise) {
    const cJSON *found = attn_member(node, name);
    return found ? cJSON_IsTrue(found) : otherwise;
}

bool attn_integer_of(const cJSON *node, int64_t least, int64_t most, int64_t *value) {
    double number = cJSON_IsNumber(node) ? node->valuedouble : NAN;
    if (!(number >= (double)least && number <= (double)most)) return false;
    *value = (int64_t)number;
    return (double)*value == number;
}

bool attn_copy_text(String *to, const cJSON *node, const char *name, const char *otherwise, const Report *report) {
    const char *text = attn_text_of(node, name);
    if (!text && attn_member(node, name)) return attn_refuse(report, "'%s' is no text", name);
    if (!text) text = otherwise;
    return attn_string_copy(to, text, strlen(text)) || attn_refuse_memory(report);
}
