/* vocabulary.c: tokens sorted by their bytes; bisection finds a token, or all tokens that are prefixes of a text. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* for qsort_r */
#endif
#include <stdlib.h>
#include <string.h>

#include "attn_tokenizer_internal.h"

bool attn_vocabulary_add(Vocabulary *v, const char *token, size_t size, int32_t id) {
    if (v->count == v->capacity) {
        size_t capacity = v->capacity ? 2 * v->capacity : 256;
        Token *sorted = realloc(v->sorted, capacity * sizeof *sorted);
        if (!sorted) return false;
        v->sorted = sorted;
        v->capacity = capacity;
    }
    v->sorted[v->count++] = (Token){(uint32_t)v->text.size, (uint32_t)size, id};
    attn_put_bytes(&v->text, token, size);
    if (id >= v->size) v->size = id + 1;
    return !v->text.failed;
}

static int compare_tokens(const void *left, const void *right, void *text) {
    const Token *a = left, *b = right;
    size_t common = a->size < b->size ? a->size : b->size;
    int order = common ? memcmp((char *)text + a->offset, (char *)text + b->offset, common) : 0;
    return order ? order : (a->size > b->size) - (a->size < b->size);
}

static int compare_with_ids(const void *left, const void *right, void *text) {
    int order = compare_tokens(left, right, text);
    const Token *a = left, *b = right;
    return order ? order : (a->id > b->id) - (a->id < b->id);
}

bool attn_vocabulary_sort(Vocabulary *v, bool last_holds, size_t *twice) {
    *twice = 0;
    if (v->count) qsort_r(v->sorted, v->count, sizeof *v->sorted, compare_with_ids, v->text.data);
    v->by_id = malloc(((size_t)v->size + 1) * sizeof *v->by_id);
    if (!v->by_id) return false;
    memset(v->by_id, -1, ((size_t)v->size + 1) * sizeof *v->by_id);
    size_t kept = 0;
    for (size_t i = 0; i < v->count; i++) {
        bool again = kept > 0 && compare_tokens(&v->sorted[kept - 1], &v->sorted[i], v->text.data) == 0;
        if (again && !last_holds) *twice = i;
        if (again && last_holds) kept--;
        v->by_id[v->sorted[i].id] = (int32_t)kept;
        v->sorted[kept++] = v->sorted[i];
    }
    v->count = kept;
    return *twice == 0;
}

void attn_vocabulary_free(Vocabulary *v) {
    attn_buffer_free(&v->text);
    free(v->sorted);
    free(v->by_id);
    *v = (Vocabulary){0};
}

static unsigned char token_byte(const Vocabulary *v, size_t index, uint32_t at) {
    return (unsigned char)v->text.data[v->sorted[index].offset + at];
}

/* The first token of the range whose byte at range.depth is at least `byte`; 256 gives the end. */
static size_t lower_bound(const Vocabulary *v, TokenRange range, unsigned byte) {
    size_t low = range.low, high = range.high;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (v->sorted[middle].size <= range.depth || token_byte(v, middle, range.depth) < byte) low = middle + 1;
        else high = middle;
    }
    return low;
}

TokenRange attn_whole_range(const Vocabulary *v) { return (TokenRange){0, v->count, 0}; }

TokenRange attn_narrowed(const Vocabulary *v, TokenRange range, char next) {
    unsigned byte = (unsigned char)next;
    TokenRange narrow = {lower_bound(v, range, byte), 0, range.depth + 1};
    range.low = narrow.low;
    narrow.high = lower_bound(v, range, byte + 1);
    return narrow;
}

int32_t attn_token_ending(const Vocabulary *v, TokenRange range) {
    if (range.low == range.high || v->sorted[range.low].size != range.depth) return -1;
    return v->sorted[range.low].id;
}

int32_t attn_longest_token(const Vocabulary *v, TokenRange range, const char *text, size_t size, size_t *used) {
    int32_t best = -1;
    for (size_t i = 0; i < size && range.low < range.high; i++) {
        range = attn_narrowed(v, range, text[i]);
        int32_t id = attn_token_ending(v, range);
        if (id < 0) continue;
        best = id;
        *used = i + 1;
    }
    return best;
}

int32_t attn_vocabulary_find(const Vocabulary *v, const char *token, size_t size) {
    size_t low = 0, high = v->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const Token *here = &v->sorted[middle];
        size_t common = here->size < size ? here->size : size;
        int order = common ? memcmp(v->text.data + here->offset, token, common) : 0;
        if (order == 0) order = (here->size > size) - (here->size < size);
        if (order == 0) return here->id;
        if (order < 0) low = middle + 1;
        else high = middle;
    }
    return -1;
}

const char *attn_vocabulary_text(const Vocabulary *v, int32_t id, size_t *size) {
    if (id < 0 || id >= v->size || v->by_id[id] < 0) return NULL;
    const Token *token = &v->sorted[v->by_id[id]];
    *size = token->size;
    return v->text.data + token->offset;
}
