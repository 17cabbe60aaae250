/* gguf.c: reads the tokenizer in the keys of a GGUF file (ggml-org/ggml, docs/gguf.md; the keys and what they mean:
 * ggml-org/llama.cpp, gguf-py/gguf/constants.py and src/llama-vocab.cpp). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn_tokenizer_internal.h"

/* ------------------------------------------------------------------------------------- keys */

enum { TYPE_U32 = 4, TYPE_I32 = 5, TYPE_F32 = 6, TYPE_BOOL = 7, TYPE_STRING = 8, TYPE_ARRAY = 9, TYPES = 13 };

typedef struct {
    const char *at, *end;
} Walk;

/* A value alone is an array of one. */
typedef struct {
    uint32_t type;
    uint64_t count;
    const char *data; /* of the first item; NULL where the file lacks the key */
} Value;

typedef struct {
    Value model, pre, tokens, scores, types, merges, bos, eos, unknown, add_bos, add_eos, add_space;
} Keys;

bool attn_begins_gguf(const char *data, size_t size) { return size >= 4 && memcmp(data, "GGUF", 4) == 0; }

static bool take(Walk *walk, void *to, size_t size) {
    if ((size_t)(walk->end - walk->at) < size) return false;
    memcpy(to, walk->at, size);
    walk->at += size;
    return true;
}

static bool skip(Walk *walk, uint64_t size) {
    if (size > (uint64_t)(walk->end - walk->at)) return false;
    walk->at += size;
    return true;
}

static bool take_value(Walk *walk, Value *value) {
    static const uint8_t bytes[TYPES] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 0, 8, 8, 8}; /* of a string, its length */
    value->count = 1;
    if (!take(walk, &value->type, 4)) return false;
    if (value->type == TYPE_ARRAY && (!take(walk, &value->type, 4) || !take(walk, &value->count, 8))) return false;
    if (value->type >= TYPES || !bytes[value->type]) return false;
    value->data = walk->at;
    if (value->type != TYPE_STRING)
        return value->count <= SIZE_MAX / 8 && skip(walk, value->count * bytes[value->type]);
    for (uint64_t i = 0, size; i < value->count; i++)
        if (!take(walk, &size, 8) || !skip(walk, size)) return false;
    return true;
}

/* Reads the keys that matter here; false where the data end before, or make no sense. */
static bool read_keys(const char *data, size_t size, Keys *keys) {
    static const struct {
        const char *name;
        size_t at;
    } known[] = {
#define KEY(name, member) {"tokenizer.ggml." name, offsetof(Keys, member)}
        KEY("model", model), KEY("pre", pre), KEY("tokens", tokens), KEY("scores", scores), KEY("token_type", types),
        KEY("merges", merges), KEY("bos_token_id", bos), KEY("eos_token_id", eos), KEY("unknown_token_id", unknown),
        KEY("add_bos_token", add_bos), KEY("add_eos_token", add_eos), KEY("add_space_prefix", add_space),
#undef KEY
    };
    Walk walk = {data + 4, data + size};
    uint32_t version;
    uint64_t tensors, count, length;
    if (!take(&walk, &version, 4) || version < 2 || version > 3) return false;
    if (!take(&walk, &tensors, 8) || !take(&walk, &count, 8)) return false;
    for (uint64_t i = 0; i < count; i++) {
        Value value;
        if (!take(&walk, &length, 8)) return false;
        const char *name = walk.at;
        if (!skip(&walk, length) || !take_value(&walk, &value)) return false;
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            if (length == strlen(known[k].name) && memcmp(name, known[k].name, length) == 0)
                memcpy((char *)keys + known[k].at, &value, sizeof value);
    }
    return true;
}

bool attn_holds_gguf_keys(const char *data, size_t size) {
    Keys keys = {0};
    return attn_begins_gguf(data, size) && read_keys(data, size, &keys);
}

static const char *next_string(const char **at, size_t *size) {
    uint64_t length;
    memcpy(&length, *at, 8);
    const char *text = *at + 8;
    *size = (size_t)length;
    *at = text + length;
    return text;
}

static bool is_word(const Value *value, const char *word) {
    const char *at = value->data;
    size_t size = 0;
    const char *text = at && value->type == TYPE_STRING ? next_string(&at, &size) : "";
    return size == strlen(word) && memcmp(text, word, size) == 0;
}

static int32_t item_i32(const Value *value, size_t index) {
    int32_t item;
    memcpy(&item, value->data + index * sizeof item, sizeof item);
    return item;
}

/* An id of the vocabulary, or -1 where the file has none. */
static int32_t id_of(const Value *value, const Model *model) {
    const bool whole = value->data && value->count && (value->type == TYPE_U32 || value->type == TYPE_I32);
    const int32_t id = whole ? item_i32(value, 0) : -1;
    return id >= 0 && id < model->vocabulary.size ? id : -1;
}

static bool flag_of(const Value *value, bool otherwise) {
    return value->data && value->type == TYPE_BOOL && value->count ? *value->data != 0 : otherwise;
}

/* ------------------------------------------------------------------------------------- parts of all models */

typedef enum { KIND_NORMAL = 1, KIND_UNKNOWN, KIND_CONTROL, KIND_OWN, KIND_UNUSED, KIND_BYTE } TokenKind;

static int32_t kind_of(const Keys *keys, size_t id) {
    return keys->types.data ? item_i32(&keys->types, id) : KIND_NORMAL;
}

static bool check_lists(const Keys *keys, const Report *report) {
    if (!keys->tokens.data || keys->tokens.type != TYPE_STRING || keys->tokens.count >= MOST_ID)
        return attn_refuse(report, "it has no list 'tokenizer.ggml.tokens' of fewer than %d", MOST_ID);
    if (keys->types.data && (keys->types.type != TYPE_I32 || keys->types.count != keys->tokens.count))
        return attn_refuse(report, "'tokenizer.ggml.token_type' is no list of a number for each token");
    return true;
}

static bool read_tokens(Model *model, const Keys *keys, const Report *report) {
    const char *at = keys->tokens.data;
    for (size_t id = 0, size = 0; id < keys->tokens.count; id++) {
        const char *text = next_string(&at, &size);
        if (!attn_is_utf8(text, size)) return attn_refuse(report, "token %zu is not UTF-8", id);
        if (!attn_vocabulary_add(&model->vocabulary, text, size, (int32_t)id)) return attn_refuse_memory(report);
    }
    return attn_finish_vocabulary(&model->vocabulary, false, report);
}

/* Control tokens are special, and those of the user are found in a text as well. */
static bool add_special_tokens(attn_tokenizer *t, const Keys *keys, const Report *report) {
    for (int32_t id = 0; id < t->model.vocabulary.size; id++) {
        const int32_t kind = kind_of(keys, (size_t)id);
        const bool special = kind == KIND_CONTROL || kind == KIND_UNKNOWN;
        size_t size = 0;
        const char *text = attn_vocabulary_text(&t->model.vocabulary, id, &size);
        const AddedToken token = {.special = special, .id = id};
        if ((special || kind == KIND_OWN) && size && !attn_add_token(t, text, size, token, report)) return false;
    }
    return attn_finish_added(t, report);
}

static bool put_around(attn_tokenizer *t, const Keys *keys, bool add_bos, const Report *report) {
    const int32_t bos = id_of(&keys->bos, &t->model), eos = id_of(&keys->eos, &t->model);
    t->before = malloc(sizeof *t->before);
    t->after = malloc(sizeof *t->after);
    if (!t->before || !t->after) return attn_refuse_memory(report);
    if (bos >= 0 && flag_of(&keys->add_bos, add_bos)) t->before[t->n_before++] = bos;
    if (eos >= 0 && flag_of(&keys->add_eos, false)) t->after[t->n_after++] = eos;
    return true;
}

/* ------------------------------------------------------------------------------------- sentencepiece */

static const char SPACE[] = "\xe2\x96\x81"; /* U+2581 stands for a space */

static bool merges_of_pieces(Model *model, const Keys *keys, const Report *report) {
    const size_t count = (size_t)keys->tokens.count;
    if (!keys->scores.data || keys->scores.type != TYPE_F32 || keys->scores.count != count)
        return attn_refuse(report, "'tokenizer.ggml.scores' is no list of a score for each token");
    Scored *scored = malloc((count + 1) * sizeof *scored);
    if (!scored) return attn_refuse_memory(report);
    size_t used = 0;
    bool fine = true;
    for (size_t id = 0; fine && id < count; id++) {
        Scored *piece = &scored[used];
        memcpy(&piece->score, keys->scores.data + id * sizeof(float), sizeof(float));
        piece->id = (int32_t)id;
        if (isnan(piece->score)) fine = attn_refuse(report, "token %zu has a score that is not a number", id);
        used += kind_of(keys, id) == KIND_NORMAL;
    }
    fine = fine && attn_merges_of_scores(model, scored, used, report);
    free(scored);
    return fine;
}

static bool replace_steps(attn_tokenizer *t, bool add_space) {
    Normalizer *prepend = add_space ? attn_new_normalizer(t, NORMALIZE_PREPEND) : NULL;
    if (add_space && (!prepend || !attn_string_copy(&prepend->content, SPACE, 3))) return false;
    Normalizer *replace = attn_new_normalizer(t, NORMALIZE_REPLACE);
    if (!replace || !attn_string_copy(&replace->pattern.literal, " ", 1) ||
        !attn_string_copy(&replace->content, SPACE, 3))
        return false;
    Decoder *back = attn_new_decoder(t, DECODE_REPLACE);
    if (!back || !attn_string_copy(&back->pattern.literal, SPACE, 3) || !attn_string_copy(&back->text, " ", 1))
        return false;
    if (!attn_new_decoder(t, DECODE_BYTE_FALLBACK) || !attn_new_decoder(t, DECODE_FUSE)) return false;
    Decoder *strip = add_space ? attn_new_decoder(t, DECODE_STRIP) : NULL;
    if (strip) strip->character = ' ', strip->start = 1;
    return strip || !add_space;
}

static bool read_sentencepiece(attn_tokenizer *t, const Keys *keys, const Report *report) {
    Model *model = &t->model;
    model->kind = MODEL_BPE;
    model->byte_fallback = model->fuse_unknown = true;
    if (!read_tokens(model, keys, report) || !merges_of_pieces(model, keys, report)) return false;
    model->unknown = id_of(&keys->unknown, model);
    for (size_t id = 0; model->unknown < 0 && id < keys->tokens.count; id++)
        if (kind_of(keys, id) == KIND_UNKNOWN) model->unknown = (int32_t)id;
    attn_find_byte_tokens(model);
    if (!replace_steps(t, flag_of(&keys->add_space, true))) return attn_refuse_memory(report);
    return put_around(t, keys, true, report) && add_special_tokens(t, keys, report);
}

/* ------------------------------------------------------------------------------------- byte-level pairs */

#define ENDINGS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define LETTERS "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
#define REST " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

/* Names of 'tokenizer.ggml.pre'; `words` is NULL for GPT-2's pattern. */
static const struct {
    const char *name, *words;
    bool digits, nfc, whole, bos; /* each digit apart, NFC, a word that is a token stays whole, a token in front */
} pres[] = {
    {"gpt-2", NULL, false, false, false, false},
    {"default", NULL, false, false, false, false},
    {"llama-bpe", ENDINGS "|" LETTERS "|\\p{N}{1,3}|" REST, false, false, true, true},
    {"qwen2", ENDINGS "|" LETTERS "|\\p{N}|" REST, false, true, false, false},
    {"starcoder", NULL, true, false, false, false},
    {"refact", NULL, true, false, false, false},
    {"smollm", NULL, true, false, false, false},
};

static bool split_words(attn_tokenizer *t, const char *words, bool digits, const Report *report) {
    char why[128];
    Splitter *own = digits ? attn_new_splitter(t, SPLIT_DIGITS) : NULL;
    if (own) own->behavior = ISOLATED;
    Splitter *pattern = words ? attn_new_splitter(t, SPLIT_PATTERN) : NULL;
    if (pattern) pattern->behavior = ISOLATED;
    if ((digits && !own) || (words && !pattern)) return attn_refuse_memory(report);
    if (words && attn_pattern_compile(&pattern->pattern, words, strlen(words), why, sizeof why))
        return attn_refuse(report, "%s", why);
    Splitter *bytes = attn_new_splitter(t, SPLIT_BYTES);
    if (!bytes || !attn_new_decoder(t, DECODE_BYTES)) return attn_refuse_memory(report);
    bytes->behavior = ISOLATED;
    bytes->splits = !words;
    if (bytes->splits &&
        attn_pattern_compile(&bytes->pattern, attn_gpt2_words, strlen(attn_gpt2_words), why, sizeof why))
        return attn_refuse(report, "%s", why);
    return true;
}

static bool read_pairs(Model *model, const Value *merges, const Report *report) {
    const char *at = merges->data;
    if (!at || merges->type != TYPE_STRING || merges->count >= MOST_ID)
        return attn_refuse(report, "it has no list 'tokenizer.ggml.merges' of fewer than %d", MOST_ID);
    model->merges = malloc(((size_t)merges->count + 1) * sizeof *model->merges);
    if (!model->merges) return attn_refuse_memory(report);
    Buffer joint = {0};
    bool fine = true;
    for (size_t rank = 0, size = 0; fine && rank < merges->count; rank++) {
        const char *text = next_string(&at, &size), *space = size ? memchr(text + 1, ' ', size - 1) : NULL;
        if (!space || space + 1 == text + size) fine = attn_refuse(report, "merge %zu is not of two tokens", rank);
        else fine = attn_put_merge(model, text, (size_t)(space - text), space + 1, (size_t)(text + size - space) - 1,
                                   rank, &joint, report);
    }
    attn_buffer_free(&joint);
    attn_finish_merges(model);
    return fine;
}

static bool read_byte_pairs(attn_tokenizer *t, const Keys *keys, const Report *report) {
    Model *model = &t->model;
    size_t p = 0;
    while (p < sizeof pres / sizeof *pres && !is_word(&keys->pre, pres[p].name)) p++;
    if (p == sizeof pres / sizeof *pres) {
        const char *at = keys->pre.data;
        size_t size = 0;
        const char *name = at && keys->pre.type == TYPE_STRING ? next_string(&at, &size) : "";
        return attn_refuse(report, "'tokenizer.ggml.pre' '%.*s' is not known here", (int)(size < 40 ? size : 40), name);
    }
    model->kind = MODEL_BPE;
    model->ignore_merges = pres[p].whole;
    if (!read_tokens(model, keys, report) || !read_pairs(model, &keys->merges, report)) return false;
    if (pres[p].nfc && !attn_new_normalizer(t, NORMALIZE_NFC)) return attn_refuse_memory(report);
    return split_words(t, pres[p].words, pres[p].digits, report) && put_around(t, keys, pres[p].bos, report) &&
           add_special_tokens(t, keys, report);
}

/* ------------------------------------------------------------------------------------- wordpiece */

/* A GGUF file marks the tokens that begin a word with U+2581; BERT's own vocabulary marks the others with ##. */
static bool read_bert(attn_tokenizer *t, const Keys *keys, const Report *report) {
    const char *at = keys->tokens.data;
    Buffer name = {0};
    bool fine = true;
    for (size_t id = 0, size = 0; fine && id < keys->tokens.count; id++) {
        const char *text = next_string(&at, &size);
        const bool begins = size > 3 && memcmp(text, SPACE, 3) == 0;
        const bool marked = size > 1 && *text == '[' && text[size - 1] == ']';
        name.size = 0;
        if (!begins && !marked && kind_of(keys, id) == KIND_NORMAL) attn_put_bytes(&name, "##", 2);
        attn_put_bytes(&name, begins ? text + 3 : text, begins ? size - 3 : size);
        if (!attn_is_utf8(text, size)) fine = attn_refuse(report, "token %zu is not UTF-8", id);
        else if (name.failed || !attn_vocabulary_add(&t->model.vocabulary, name.data, name.size, (int32_t)id))
            fine = attn_refuse_memory(report);
    }
    attn_buffer_free(&name);
    return fine && attn_finish_vocabulary(&t->model.vocabulary, false, report) && attn_finish_bert(t, report);
}

/* ------------------------------------------------------------------------------------- any model */

bool attn_read_gguf(attn_tokenizer *t, const char *data, size_t size, const Report *report) {
    Keys keys = {0};
    if (!read_keys(data, size, &keys))
        return attn_refuse(report, "its header is cut, or not of version 2 or 3 of GGUF, little-endian");
    if (!check_lists(&keys, report)) return false;
    if (is_word(&keys.model, "llama")) return read_sentencepiece(t, &keys, report);
    if (is_word(&keys.model, "gpt2")) return read_byte_pairs(t, &keys, report);
    if (is_word(&keys.model, "bert")) return read_bert(t, &keys, report);
    return attn_refuse(report, "'tokenizer.ggml.model' is none of llama, gpt2 and bert, which are known here");
}
