/* pieces_tokens.c: the names of pieces, and the special tokens that the other files of their folder name. */
#include "pieces.h"

#include <stdlib.h>
#include <string.h>

const char *in_folder(const Pieces *p, const char *name) { return arena_printf(p->arena, "%s/%s", p->folder, name); }

/* ---------------------------------------------------------------- names */

typedef struct TextSlot {
    const char *text; /* NULL: the slot is free */
    size_t size;
    int64_t number;
} TextSlot;

/* The slot of a text, or the free one where it belongs. The table has a free slot. */
static TextSlot *slot_of(const TextTable *table, const char *text, size_t size) {
    size_t at = (size_t)hash_bytes(0, text, size) & (table->room - 1);
    for (; table->slots[at].text; at = (at + 1) & (table->room - 1))
        if (table->slots[at].size == size && memcmp(table->slots[at].text, text, size) == 0) break;
    return &table->slots[at];
}

/* Adds a text, which must live as long as the table. The first number of a text stays. */
static void table_put(Arena *arena, TextTable *table, const char *text, size_t size, int64_t number) {
    if (2 * table->count >= table->room) {
        const TextTable old = *table;
        table->room = old.room ? 2 * old.room : 1024;
        table->slots = arena_array(arena, table->room, sizeof *table->slots);
        for (size_t i = 0; i < old.room; i++)
            if (old.slots[i].text) *slot_of(table, old.slots[i].text, old.slots[i].size) = old.slots[i];
    }
    TextSlot *slot = slot_of(table, text, size);
    if (slot->text) return;
    *slot = (TextSlot){text, size, number};
    table->count++;
}

/* The number of a text, or -1. */
static int64_t table_find(const TextTable *table, const char *text) {
    const TextSlot *slot = table->room ? slot_of(table, text, strlen(text)) : NULL;
    return slot && slot->text ? slot->number : -1;
}

void add_name(Pieces *p, const char *text, size_t size, float score, int64_t id) {
    PieceNames *names = &p->names;
    if (names->count == names->room) {
        names->room = names->room ? 2 * names->room : 1024;
        PieceName *longer = arena_array(p->arena, (size_t)names->room, sizeof *longer);
        if (names->count) memcpy(longer, names->list, (size_t)names->count * sizeof *longer);
        names->list = longer;
    }
    names->list[names->count++] = (PieceName){text, size, score, id};
    table_put(p->arena, &p->name_ids, text, size, id);
}

void add_new_name(Pieces *p, const char *file, const char *text, int64_t id) {
    if (id >= MOST_ID) fail("%s: the id of `%.*s` is not below %d", in_folder(p, file), CUT(60, text), MOST_ID);
    for (int64_t i = 0; p->taken[id] && i < p->names.count; i++) {
        if (p->names.list[i].id != id) continue;
        const char *other = arena_copy(p->arena, p->names.list[i].text, p->names.list[i].size);
        fail("%s: the id of `%.*s` would be %lld, which is the id of `%.*s`", in_folder(p, file), CUT(60, text),
             (long long)id, CUT(60, other));
    }
    p->taken[id] = 1;
    add_name(p, text, strlen(text), 0, id);
}

int64_t token_id(const Pieces *p, const char *text) {
    const int64_t index = table_find(&p->added_index, text);
    return index >= 0 ? p->added[index].id : table_find(&p->name_ids, text);
}

void add_token(Pieces *p, Added token) {
    if (!token.text || !*token.text) return;
    if (table_find(&p->added_index, token.text) >= 0) return;
    if (p->n_added == p->added_room) {
        p->added_room = p->added_room ? 2 * p->added_room : 64;
        Added *longer = arena_array(p->arena, (size_t)p->added_room, sizeof *longer);
        if (p->n_added) memcpy(longer, p->added, (size_t)p->n_added * sizeof *longer);
        p->added = longer;
    }
    token.id = table_find(&p->name_ids, token.text);
    if (token.id < 0) token.id = p->names.count + p->unnamed++;
    table_put(p->arena, &p->added_index, token.text, strlen(token.text), p->n_added);
    p->added[p->n_added++] = token;
}

void refuse_setting(const Pieces *p, const char *key, const char *why) {
    fail("%s: `%s` %s", in_folder(p, "tokenizer_config.json"), key, why);
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
    if (json_member(p->more, token.text)) return (Added){.text = token.text, .special = true};
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

/* ---------------------------------------------------------------- all tokens */

/* A token to which a file gives an id. */
typedef struct Numbered {
    int64_t id;
    const cJSON *item;
} Numbered;

static int by_id(const void *left, const void *right) {
    const Numbered *a = left, *b = right;
    return (a->id > b->id) - (a->id < b->id);
}

/* The whole number that a key is, or -1. */
static int64_t key_id(const char *key) {
    const size_t size = strlen(key);
    return size && size < 10 && strspn(key, "0123456789") == size ? strtol(key, NULL, 10) : -1;
}

static void add_numbered(Pieces *p, Added token, int64_t id, const char *name) {
    if (p->in_vocab && token_id(p, token.text) < 0) add_new_name(p, name, token.text, id);
    if (p->in_vocab) token.normalized = false; /* transformers finds it before all else */
    add_token(p, token);
    const int64_t own = token_id(p, token.text);
    if (own != id)
        fail("%s: the id of the token `%.*s` is %lld, and in the tokenizer %lld", in_folder(p, name),
             CUT(60, token.text), (long long)id, (long long)own);
}

/* Special tokens that are named by no key of their own: a list, or values of an object. The lists that transformers
 * reads follow in this order. */
typedef struct Lists {
    const cJSON *list[2];
} Lists;

static Lists extra_tokens(const Pieces *p) {
    const char *key = "extra_special_tokens", *old = "additional_special_tokens";
    Lists lists = {{json_member(p->config, key), json_member(p->map, key)}};
    if (!json_count(lists.list[0]) && json_member(p->config, old)) lists.list[0] = json_member(p->config, old);
    if (!lists.list[0] && !lists.list[1]) lists.list[1] = json_member(p->map, old);
    for (size_t i = 0; i < 2; i++)
        if (lists.list[i] && !cJSON_IsArray(lists.list[i]) && !cJSON_IsObject(lists.list[i]))
            fail("%s: `%s` is no list of tokens", in_folder(p, i ? "special_tokens_map.json" : "tokenizer_config.json"),
                 lists.list[i]->string);
    return lists;
}

static const char *const special_keys[] = {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token",
                                           "mask_token"};
enum { SPECIAL_KEYS = sizeof special_keys / sizeof *special_keys };

/* The texts that files name as special tokens. */
static TextTable special_texts(const Pieces *p) {
    const Lists lists = extra_tokens(p);
    TextTable table = {0};
    const cJSON *one;
    for (size_t i = 0; i < SPECIAL_KEYS; i++) {
        const char *named = named_token(p, special_keys[i], NULL).text;
        if (named) table_put(p->arena, &table, named, strlen(named), 1);
    }
    for (size_t i = 0; i < 2; i++)
        cJSON_ArrayForEach(one, lists.list[i]) {
            const char *named = token_of(p, lists.list[i]->string, one).text;
            table_put(p->arena, &table, named, strlen(named), 1);
        }
    return table;
}

/* The entries of added_tokens.json, by id, which is their value. */
static void add_more(Pieces *p) {
    const char *name = "added_tokens.json";
    Numbered *sorted = arena_array(p->arena, json_count(p->more) + 1, sizeof *sorted);
    const TextTable special = special_texts(p);
    size_t count = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, p->more) {
        int64_t id;
        if (!*item->string || !json_whole(item, &id))
            fail("%s: `%.*s` is no token with an id", in_folder(p, name), CUT(60, item->string));
        sorted[count++] = (Numbered){id, item};
    }
    qsort(sorted, count, sizeof *sorted, by_id);
    for (size_t i = 0; i < count; i++) {
        const char *text = sorted[i].item->string;
        const bool is_special = table_find(&special, text) >= 0;
        add_numbered(p, (Added){.text = text, .special = is_special, .normalized = !is_special}, sorted[i].id, name);
    }
}

/* The entries of `added_tokens_decoder`, by id, which is their key. */
static void add_decoder(Pieces *p) {
    const char *key = "added_tokens_decoder";
    const cJSON *all = json_member(p->config, key), *item;
    Numbered *sorted = arena_array(p->arena, json_count(all) + 1, sizeof *sorted);
    size_t count = 0;
    cJSON_ArrayForEach(item, all) {
        const int64_t id = item->string ? key_id(item->string) : -1;
        if (!cJSON_IsObject(item) || id < 0) refuse_setting(p, key, "has an entry that is no id with a token");
        sorted[count++] = (Numbered){id, item};
    }
    qsort(sorted, count, sizeof *sorted, by_id);
    for (size_t i = 0; i < count; i++) {
        Added token = token_of(p, key, sorted[i].item);
        token.special = flag(sorted[i].item, "special");
        add_numbered(p, token, sorted[i].id, "tokenizer_config.json");
    }
}

/* Adds a token that a file names without an id. */
static void add_known(Pieces *p, Added token, const char *key) {
    if (p->in_vocab && token.text && token_id(p, token.text) < 0)
        fail("%s: it lacks the token `%.*s` (`%s`)", in_folder(p, "vocab.json"), CUT(60, token.text), key);
    if (p->in_vocab) token.normalized = false;
    add_token(p, token);
}

bool has_extra_list(const Pieces *p) {
    const char *key = "extra_special_tokens";
    return json_member(p->config, key) || json_member(p->map, key) ||
           json_member(p->config, "additional_special_tokens");
}

void add_tokens(Pieces *p, const char *defaults) {
    const Lists lists = extra_tokens(p);
    const cJSON *one;
    add_decoder(p);
    add_more(p);
    for (size_t i = 0; i < SPECIAL_KEYS; i++) {
        const char *key = special_keys[i], *at = strstr(defaults, key);
        if (at) at += strlen(key) + 1;
        add_known(p, named_token(p, key, at ? arena_copy(p->arena, at, strcspn(at, " ")) : NULL), key);
    }
    for (size_t i = 0; i < 2; i++)
        cJSON_ArrayForEach(one, lists.list[i])
            add_known(p, token_of(p, lists.list[i]->string, one), lists.list[i]->string);
}
