/* sharding.c: how columns are divided among ranks. */
#include "../attnc.h"

#include <string.h>

const Sharding *sharding_even(Arena *arena, int64_t columns, int ranks) {
    const int64_t units = ceil_div(columns, PANEL);
    int64_t *begin = arena_array(arena, (size_t)ranks, sizeof *begin);
    int64_t *count = arena_array(arena, (size_t)ranks, sizeof *count);
    Sharding *sharding = arena_alloc(arena, sizeof *sharding);
    *sharding = (Sharding){.ranks = ranks, .columns = columns, .begin = begin, .count = count};
    for (int r = 0; r < ranks; r++) {
        const int64_t end = units * (r + 1) / ranks * PANEL;
        begin[r] = units * r / ranks * PANEL;
        count[r] = (end < columns ? end : columns) - begin[r];
        if (count[r] > sharding->part) sharding->part = count[r];
    }
    return sharding;
}

bool sharding_same(const Sharding *a, const Sharding *b) {
    if (a == b) return true;
    if (!a || !b || a->ranks != b->ranks || a->columns != b->columns || a->part != b->part) return false;
    const size_t bytes = (size_t)a->ranks * sizeof *a->begin;
    return memcmp(a->begin, b->begin, bytes) == 0 && memcmp(a->count, b->count, bytes) == 0;
}
