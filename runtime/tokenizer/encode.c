/* encode.c: encodes a text, step by step. */
#include <stdlib.h>
#include <string.h>

#include "attn_tokenizer_internal.h"

enum { MOST_BYTES = 1 << 28 };

/* The buffers of one call. */
typedef struct {
    const attn_tokenizer *t;
    Buffer normal, scratch;
    Pieces pieces, other;
    Ids ids;
    Limits limits;
} Encoding;

static int split_text(Encoding *e, size_t size) {
    Limits limits = e->limits;
    limits.most = attn_limits_of(size).most;
    const int status = attn_split(e->t->splitters, e->t->n_splitters, &e->pieces, &e->other, &limits);
    limits.most = e->limits.most;
    e->limits = limits;
    return status;
}

/* Encodes normalized text, whose first `first` bytes come from the first character of the whole text. */
static void encode_words(Encoding *e, const char *text, size_t size, size_t first) {
    if (size == 0 || e->ids.result < 0) return;
    attn_pieces_clear(&e->pieces);
    attn_put_bytes(&e->pieces.text, text, size);
    attn_put_piece(&e->pieces, (Piece){0, size, first});
    int status = e->pieces.text.failed ? ATTN_TOKENIZER_NO_MEMORY
                                       : split_text(e, size);
    if (status) e->ids.result = status;
    for (size_t i = 0; i < e->pieces.count; i++)
        attn_model_encode(&e->t->model, e->pieces.text.data + e->pieces.list[i].begin, e->pieces.list[i].size, &e->ids);
}

/* Normalizes text into e->normal. Returns false on failure. */
static bool normalize_text(Encoding *e, const char *text, size_t size) {
    e->normal.size = 0;
    attn_put_bytes(&e->normal, text, size);
    int status = e->normal.failed ? ATTN_TOKENIZER_NO_MEMORY
                                  : attn_normalize(e->t->normalizers, e->t->n_normalizers, &e->normal, &e->scratch,
                                                   &e->limits);
    if (status) e->ids.result = status;
    return status == 0;
}

/* Writes the code that a text may begin with, as `>>fra<<`, and returns its bytes. */
static size_t encode_code(Encoding *e, const char *text, size_t size) {
    if (!e->t->codes || size < 2 || memcmp(text, ">>", 2) != 0) return 0;
    for (size_t end = 2; end <= size; end++) {
        if (end < 4 || memcmp(text + end - 2, "<<", 2) != 0) continue;
        const int32_t id = attn_vocabulary_find(&e->t->model.vocabulary, text, end);
        attn_put_id(&e->ids, id >= 0 ? id : e->t->model.unknown);
        return end;
    }
    return 0;
}

/* Encodes the text between two special tokens, before normalization. */
static void encode_segment(Encoding *e, const char *text, size_t size, bool is_first) {
    if (size == 0 || e->ids.result < 0 || attn_ids_full(&e->ids)) return;
    size_t first = 0, step;
    const size_t code = encode_code(e, text, size);
    text += code;
    size -= code;
    if (size == 0) return;
    if (is_first) {
        attn_char_at(text, size, &step);
        if (!normalize_text(e, text, step)) return;
        first = e->normal.size;
    }
    if (!normalize_text(e, text, size)) return;
    e->limits.most -= e->normal.size; /* for the rest of the text */
    const char *normal = e->normal.data;
    AddedSearch search = {.text = normal, .size = e->normal.size};
    size_t at = 0, begin;
    const AddedSet *set = &e->t->normalized;
    for (const AddedToken *token; (token = attn_added_next(e->t, set, &search, &begin)); at = search.done) {
        encode_words(e, normal + at, begin - at, first > at ? first - at : 0);
        attn_put_id(&e->ids, token->id);
    }
    encode_words(e, normal + at, e->normal.size - at, first > at ? first - at : 0);
}

static void encode_text(Encoding *e, const char *text, size_t size) {
    AddedSearch search = {.text = text, .size = size};
    size_t at = 0, begin;
    for (const AddedToken *token; (token = attn_added_next(e->t, &e->t->raw, &search, &begin)); at = search.done) {
        encode_segment(e, text + at, begin - at, at == 0);
        attn_put_id(&e->ids, token->id);
    }
    encode_segment(e, text + at, size - at, at == 0);
}

int attn_tokenizer_encode(const attn_tokenizer *t, const char *utf8, size_t bytes, bool special, int32_t *ids,
                          int capacity) {
    if (!t || (!utf8 && bytes > 0) || !ids || capacity < 1 || bytes > MOST_BYTES) return ATTN_TOKENIZER_BAD_CALL;
    size_t before = special ? t->n_before : 0, after = special ? t->n_after : 0;
    if (before + after > (size_t)capacity) return ATTN_TOKENIZER_BAD_CALL;
    if (bytes == 0) utf8 = "";
    Encoding e = {.t = t, .limits = attn_limits_of(bytes)};
    e.ids = (Ids){.ids = ids + before, .limit = capacity - (int)(before + after), .last = t->truncate_left};
    if (before) memcpy(ids, t->before, before * sizeof *ids);
    if (attn_is_utf8(utf8, bytes)) {
        encode_text(&e, utf8, bytes);
    } else {
        Buffer valid = {0};
        attn_put_valid(&valid, utf8, bytes);
        if (valid.failed) e.ids.result = ATTN_TOKENIZER_NO_MEMORY;
        else encode_text(&e, valid.data, valid.size);
        attn_buffer_free(&valid);
    }
    attn_buffer_free(&e.normal);
    attn_buffer_free(&e.scratch);
    attn_pieces_free(&e.pieces);
    attn_pieces_free(&e.other);
    if (e.ids.result < 0) return e.ids.result;
    attn_ids_straighten(&e.ids);
    if (after) memcpy(e.ids.ids + e.ids.count, t->after, after * sizeof *ids);
    return (int)before + e.ids.count + (int)after;
}

const char *attn_tokenizer_error_text(int result) {
    switch (result) {
    case ATTN_TOKENIZER_BAD_CALL: return "an argument is missing, or there is too little room for the ids";
    case ATTN_TOKENIZER_NO_MEMORY: return "out of memory";
    case ATTN_TOKENIZER_NO_TOKEN: return "the vocabulary has no token for this text, and none for unknown ones";
    case ATTN_TOKENIZER_PATTERN: return "the tokenizer's regular expression takes too long for this text";
    case ATTN_TOKENIZER_LONG: return "the steps of the tokenizer make this text more than 64 times as long";
    default: return result < 0 ? "unknown error" : "fine";
    }
}
