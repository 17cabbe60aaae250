/* pieces_tokens.c: the names of pieces, and the special tokens that the files beside them name. */
#include "pieces.h"

#include <string.h>

const char *beside(const Pieces *p, const char *name) { return arena_printf(p->arena, "%s/%s", p->folder, name); }

void add_name(Pieces *p, const char *text, size_t size, float score, int64_t id) {
    PieceNames *names = &p->names;
    if (names->count == names->room) {
        names->room = names->room ? 2 * names->room : 1024;
        PieceName *longer = arena_array(p->arena, (size_t)names->room, sizeof *longer);
        if (names->count) memcpy(longer, names->list, (size_t)names->count * sizeof *longer);
        names->list = longer;
    }
    names->list[names->count++] = (PieceName){text, size, score, id};
}

int64_t token_id(const Pieces *p, const char *text) {
    const size_t size = strlen(text);
    for (int64_t i = 0; i < p->n_added; i++)
        if (strcmp(p->added[i].text, text) == 0) return p->added[i].id;
    for (int64_t i = 0; i < p->names.count; i++)
        if (p->names.list[i].size == size && memcmp(p->names.list[i].text, text, size) == 0) return p->names.list[i].id;
    return -1;
}

void add_token(Pieces *p, Added token) {
    if (!token.text || !*token.text) return;
    for (int64_t i = 0; i < p->n_added; i++)
        if (strcmp(p->added[i].text, token.text) == 0) return;
    if (p->n_added == p->added_room) {
        p->added_room = p->added_room ? 2 * p->added_room : 64;
        Added *longer = arena_array(p->arena, (size_t)p->added_room, sizeof *longer);
        if (p->n_added) memcpy(longer, p->added, (size_t)p->n_added * sizeof *longer);
        p->added = longer;
    }
    token.id = token_id(p, token.text);
    if (token.id < 0) token.id = p->names.count + p->unnamed++;
    p->added[p->n_added++] = token;
}

void refuse_setting(const Pieces *p, const char *key, const char *why) {
    fail("%s: `%s` %s", beside(p, "tokenizer_config.json"), key, why);
}

static bool flag(const cJSON *object, const char *name) { return cJSON_IsTrue(json_member(object, name)); }

/* A token as a text, or as an object with `content`. */
static Added token_of(const Pieces *p, const char *key, const cJSON *value) {
    const char *text = cJSON_GetStringValue(cJSON_IsObject(value) ? json_member(value, "content") : value);
    if (!text || !*text) refuse_setting(p, key, "is no token");
    return (Added){.text = text, .special = true, .left = flag(value, "lstrip"), .right = flag(value, "rstrip"),
                   .single = flag(value, "single_word"), .normalized = flag(value, "normalized")};
}

Added named_token(const Pieces *p, const char *key, const char *otherwise) {
    const cJSON *value = json_member(p->map, key), *one;
    if (!value) value = json_member(p->config, key);
    if (!value || cJSON_IsFalse(value)) return (Added){.text = otherwise, .special = true};
    const Added token = token_of(p, key, value);
    cJSON_ArrayForEach(one, json_member(p->config, "added_tokens_decoder")) {
        const char *text = cJSON_GetStringValue(json_member(one, "content"));
        if (text && strcmp(text, token.text) == 0) return token_of(p, "added_tokens_decoder", one);
    }
    return token;
}

bool setting(const Pieces *p, const char *key, bool otherwise) {
    const cJSON *value = json_member(p->config, key);
    if (value && !cJSON_IsBool(value)) refuse_setting(p, key, "is neither true nor false");
    return value ? cJSON_IsTrue(value) : otherwise;
}

const char *text_setting(const Pieces *p, const char *key, const char *otherwise) {
    const cJSON *value = json_member(p->config, key);
    if (value && !cJSON_IsString(value)) refuse_setting(p, key, "is no text");
    return value ? value->valuestring : otherwise;
}
