/* gguf.c: reads the tokenizer in the keys of a GGUF file (ggml-org/ggml, docs/gguf.md; the keys and what they mean:
 * ggml-org/llama.cpp, gguf-py/gguf/constants.py and src/llama-vocab.cpp). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn_tokenizer_internal.h"

/* ------------------------------------------------------------------------------------- keys */

enum { TYPE_U8 = 0, TYPE_I8 = 1, TYPE_U32 = 4, TYPE_I32 = 5, TYPE_F32 = 6, TYPE_BOOL = 7, TYPE_STRING = 8 };
enum { TYPE_ARRAY = 9, TYPES = 13 };

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
    Value model, pre, tokens, scores, types, merges, bos, eos, unknown, add_bos, add_eos, add_space, charsmap;
    Value one_space, lower, strip_accents, name;
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
        KEY("precompiled_charsmap", charsmap), KEY("remove_extra_whitespaces", one_space),
        KEY("normalizer.lowercase", lower), KEY("normalizer.strip_accents", strip_accents),
#undef KEY
        {"general.name", offsetof(Keys, name)},
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

/* An id of the vocabulary, or the one that holds where the file has none, or -1. */
static int32_t id_of(const Value *value, int32_t otherwise, const Model *model) {
    const bool whole = value->data && value->count && (value->type == TYPE_U32 || value->type == TYPE_I32);
    const int32_t id = whole ? item_i32(value, 0) : otherwise;
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

/* Whether the file's name for its model holds one of these, which are in small letters. */
static bool is_named(const Keys *keys, const char *const *names, size_t count) {
    const char *at = keys->name.data;
    size_t size = 0;
    const char *text = at && keys->name.type == TYPE_STRING ? next_string(&at, &size) : "";
    for (size_t n = 0; n < count; n++) {
        const size_t length = strlen(names[n]);
        for (size_t i = 0; i + length <= size; i++) {
            size_t same = 0;
            while (same < length && (text[i + same] | ('A' <= text[i + same] && text[i + same] <= 'Z' ? 32 : 0)) ==
                                        names[n][same])
                same++;
            if (same == length) return true;
        }
    }
    return false;
}

/* Control tokens are special, and those of the user are found in a text as well. Spaces behind a token of Phi-3 belong
 * to it, but for these; the file says nothing of that. */
static bool add_special_tokens(attn_tokenizer *t, const Keys *keys, const Report *report) {
    static const char *const phi3[] = {"phi-3", "phi3"}, *const bare[] = {"<unk>", "<s>", "<|endoftext|>"};
    const bool strips = is_named(keys, phi3, 2);
    for (int32_t id = 0; id < t->model.vocabulary.size; id++) {
        const int32_t kind = kind_of(keys, (size_t)id);
        const bool special = kind == KIND_CONTROL || kind == KIND_UNKNOWN;
        size_t size = 0;
        const char *text = attn_vocabulary_text(&t->model.vocabulary, id, &size);
        AddedToken token = {.special = special, .right = strips};
        for (int i = 0; i < 3; i++) token.right &= size != strlen(bare[i]) || memcmp(text, bare[i], size) != 0;
        if ((special || kind == KIND_OWN) && size && !attn_add_token(t, text, size, token, report)) return false;
    }
    return attn_finish_added(t, report);
}

/* What holds of the tokens around a text unless the file says otherwise; an id of -1 is none. */
typedef struct {
    int32_t bos, eos;
    bool add_bos, add_eos;
} Around;

static bool put_around(attn_tokenizer *t, const Keys *keys, Around around, const Report *report) {
    const int32_t bos = id_of(&keys->bos, around.bos, &t->model), eos = id_of(&keys->eos, around.eos, &t->model);
    t->before = malloc(sizeof *t->before);
    t->after = malloc(sizeof *t->after);
    if (!t->before || !t->after) return attn_refuse_memory(report);
    if (bos >= 0 && flag_of(&keys->add_bos, around.add_bos)) t->before[t->n_before++] = bos;
    if (eos >= 0 && flag_of(&keys->add_eos, around.add_eos)) t->after[t->n_after++] = eos;
    return true;
}

/* ------------------------------------------------------------------------------------- sentencepiece */

static const char SPACE[] = "\xe2\x96\x81"; /* U+2581 stands for a space */

static bool check_scores(const Keys *keys, const Report *report) {
    const bool fine = keys->scores.data && keys->scores.type == TYPE_F32 && keys->scores.count == keys->tokens.count;
    return fine || attn_refuse(report, "'tokenizer.ggml.scores' is no list of a score for each token");
}

static float score_of(const Keys *keys, size_t id) {
    float score;
    memcpy(&score, keys->scores.data + id * sizeof score, sizeof score);
    return score;
}

static bool merges_of_pieces(Model *model, const Keys *keys, const Report *report) {
    const size_t count = (size_t)keys->tokens.count;
    if (!check_scores(keys, report)) return false;
    Scored *scored = malloc((count + 1) * sizeof *scored);
    if (!scored) return attn_refuse_memory(report);
    size_t used = 0;
    bool fine = true;
    for (size_t id = 0; fine && id < count; id++) {
        Scored *piece = &scored[used];
        *piece = (Scored){score_of(keys, id), (int32_t)id};
        if (isnan(piece->score)) fine = attn_refuse(report, "token %zu has a score that is not a number", id);
        used += kind_of(keys, id) == KIND_NORMAL;
    }
    fine = fine && attn_merges_of_scores(model, scored, used, report);
    free(scored);
    return fine;
}

static bool replace_steps(attn_tokenizer *t, const Keys *keys) {
    const bool add_space = flag_of(&keys->add_space, true);
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

/* The unknown token is the one that the file names, or the first of that kind, or the usual one. */
static void find_unknown(Model *model, const Keys *keys, int32_t usual) {
    model->unknown = id_of(&keys->unknown, -1, model);
    for (size_t id = 0; model->unknown < 0 && id < keys->tokens.count; id++)
        if (kind_of(keys, id) == KIND_UNKNOWN) model->unknown = (int32_t)id;
    if (model->unknown < 0 && usual < model->vocabulary.size) model->unknown = usual;
}

static bool read_sentencepiece(attn_tokenizer *t, const Keys *keys, const Report *report) {
    Model *model = &t->model;
    model->kind = MODEL_BPE;
    model->byte_fallback = model->fuse_unknown = true;
    if (!read_tokens(model, keys, report) || !merges_of_pieces(model, keys, report)) return false;
    find_unknown(model, keys, 0);
    attn_find_byte_tokens(model);
    if (!replace_steps(t, keys)) return attn_refuse_memory(report);
    return put_around(t, keys, (Around){1, 2, true, false}, report) && add_special_tokens(t, keys, report);
}

/* Scores of the pieces that stand in a text: one that the user added scores 0, and the others of the file are never
 * found. */
static bool read_scores(Model *model, const Keys *keys, const Report *report) {
    const size_t count = (size_t)keys->tokens.count;
    if (!check_scores(keys, report)) return false;
    model->scores = malloc((count + 1) * sizeof *model->scores);
    if (!model->scores) return attn_refuse_memory(report);
    model->least_score = INFINITY;
    for (size_t id = 0; id < count; id++) {
        const int32_t kind = kind_of(keys, id);
        const double score = (double)score_of(keys, id);
        if (!isfinite(score)) return attn_refuse(report, "token %zu has a score that is not a number", id);
        model->scores[id] = kind == KIND_OWN ? 0 : score;
        model->byte_fallback |= kind == KIND_BYTE;
        if (kind == KIND_NORMAL && score < model->least_score) model->least_score = score;
    }
    if (isinf(model->least_score)) return attn_refuse(report, "it has no token of a text");
    return true;
}

/* sentencepiece's Unigram: its table of replacements, one space in place of several, and the spaces' sign. */
static bool read_unigram(attn_tokenizer *t, const Keys *keys, const Report *report) {
    char why[128];
    Model *model = &t->model;
    model->kind = MODEL_UNIGRAM;
    if (!read_tokens(model, keys, report) || !read_scores(model, keys, report)) return false;
    find_unknown(model, keys, 2);
    if (model->byte_fallback) attn_find_byte_tokens(model);
    const Value *map = &keys->charsmap;
    if (map->data && map->type != TYPE_U8 && map->type != TYPE_I8)
        return attn_refuse(report, "'tokenizer.ggml.precompiled_charsmap' is no list of bytes");
    Normalizer *table = attn_new_normalizer(t, NORMALIZE_PRECOMPILED);
    if (!table) return attn_refuse_memory(report);
    table->longest = true;
    if (map->data && !attn_read_charsmap(table, map->data, (size_t)map->count, report)) return false;
    static const char *const spaces[] = {"\\A +| +\\z", " +"};
    for (int i = 0; i < 2 && flag_of(&keys->one_space, false); i++) {
        Normalizer *n = attn_new_normalizer(t, NORMALIZE_REPLACE);
        if (!n || !attn_string_copy(&n->content, " ", (size_t)i)) return attn_refuse_memory(report);
        if (attn_pattern_compile(&n->pattern, spaces[i], strlen(spaces[i]), why, sizeof why))
            return attn_refuse(report, "%s", why);
    }
    if (!replace_steps(t, keys)) return attn_refuse_memory(report);
    return put_around(t, keys, (Around){-1, 1, false, true}, report) && add_special_tokens(t, keys, report);
}

/* ------------------------------------------------------------------------------------- byte-level pairs */

static bool split_words(attn_tokenizer *t, const ByteWords *cut, const Report *report) {
    char why[128];
    for (int i = 0; i < MOST_WORDS && cut->words[i]; i++) {
        Splitter *own = attn_new_splitter(t, SPLIT_PATTERN);
        if (!own) return attn_refuse_memory(report);
        own->behavior = ISOLATED;
        if (attn_pattern_compile(&own->pattern, cut->words[i], strlen(cut->words[i]), why, sizeof why))
            return attn_refuse(report, "%s", why);
    }
    Splitter *bytes = attn_new_splitter(t, SPLIT_BYTES);
    if (!bytes || !attn_new_decoder(t, DECODE_BYTES)) return attn_refuse_memory(report);
    bytes->behavior = ISOLATED;
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
    const char *at = keys->pre.data, *name = "";
    size_t size = 0;
    if (at && keys->pre.type == TYPE_STRING) name = next_string(&at, &size);
    const ByteWords *cut = attn_find_byte_words(name, size);
    if (!cut)
        return attn_refuse(report, "'tokenizer.ggml.pre' '%.*s' is not known here", (int)(size < 40 ? size : 40), name);
    model->kind = MODEL_BPE;
    model->ignore_merges = cut->whole;
    if (!read_tokens(model, keys, report) || !read_pairs(model, &keys->merges, report)) return false;
    if (cut->nfc && !attn_new_normalizer(t, NORMALIZE_NFC)) return attn_refuse_memory(report);
    return split_words(t, cut, report) && put_around(t, keys, (Around){-1, -1, cut->bos, false}, report) &&
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
    const bool lower = flag_of(&keys->lower, true);
    return fine && attn_finish_vocabulary(&t->model.vocabulary, false, report) &&
           attn_finish_bert(t, lower, flag_of(&keys->strip_accents, lower), report);
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
    if (is_word(&keys.model, "t5")) return read_unigram(t, &keys, report);
    return attn_refuse(report, "'tokenizer.ggml.model' is none of llama, gpt2, bert and t5, which are known here");
}
