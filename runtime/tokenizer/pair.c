/* pair.c: encodes a pair of texts by the template of the file. */
#include <stdlib.h>
#include <string.h>

#include "attn_tokenizer_internal.h"

/* The ids and segments that are written so far. */
typedef struct {
    int32_t *ids, *segments; /* segments may be NULL */
    int count;
} Written;

static void put(Written *to, const int32_t *ids, int count, int32_t segment) {
    if (count > 0) memcpy(to->ids + to->count, ids, (size_t)count * sizeof *ids);
    for (int i = 0; to->segments && i < count; i++) to->segments[to->count + i] = segment;
    to->count += count;
}

/* Lowers the larger count to the smaller one, then both alike, until their sum is at most `room`. */
static void shorten(int *a, int *b, int room) {
    int *less = *a > *b ? b : a, *more = *a > *b ? a : b;
    if (*a + *b <= room) return;
    if (*less > room / 2) *less = room / 2;
    *more = room - *less;
}

enum { ENOUGH = 1 << 20 };

/* The room for the ids of one text: enough for all of them where they are not very many, so that it is known which text
 * is longer. */
static int room_of(size_t bytes, int capacity) {
    const size_t wanted = bytes < ENOUGH / 4 - 16 ? 4 * bytes + 64 : ENOUGH;
    return wanted > (size_t)capacity ? (int)wanted : capacity;
}

static int write_pair(const attn_tokenizer *t, const int32_t *first, int n, const int32_t *second, int m, Written to) {
    for (size_t i = 0; i < t->n_pair; i++) {
        const PairPart part = t->pair[i];
        if (part.id == PAIR_FIRST) put(&to, first, n, part.segment);
        else if (part.id == PAIR_SECOND) put(&to, second, m, part.segment);
        else put(&to, &part.id, 1, part.segment);
    }
    if (t->n_pair) return to.count;
    put(&to, t->before, (int)t->n_before, 0);
    put(&to, first, n, 0);
    put(&to, second, m, 1);
    put(&to, t->after, (int)t->n_after, 1);
    return to.count;
}

int attn_tokenizer_encode_pair(const attn_tokenizer *t, const char *first, size_t first_bytes, const char *second,
                               size_t second_bytes, int32_t *ids, int32_t *segments, int capacity) {
    if (!t || !ids || capacity < 1) return ATTN_TOKENIZER_BAD_CALL;
    const size_t around = t->n_pair ? t->n_pair - 2 : t->n_before + t->n_after;
    if (around > (size_t)capacity) return ATTN_TOKENIZER_BAD_CALL;
    const int n_room = room_of(first_bytes, capacity), m_room = room_of(second_bytes, capacity);
    int32_t *both = malloc(((size_t)n_room + (size_t)m_room) * sizeof *both), *behind = both + n_room;
    if (!both) return ATTN_TOKENIZER_NO_MEMORY;
    int n = attn_tokenizer_encode(t, first, first_bytes, false, both, n_room);
    int m = n < 0 ? n : attn_tokenizer_encode(t, second, second_bytes, false, behind, m_room);
    if (m >= 0) {
        const int32_t *a = both, *b = behind;
        const int of_first = n, of_second = m;
        shorten(&n, &m, capacity - (int)around);
        if (t->truncate_left) a += of_first - n, b += of_second - m;
        m = write_pair(t, a, n, b, m, (Written){.ids = ids, .segments = segments});
    }
    free(both);
    return m;
}
