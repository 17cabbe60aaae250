/* key_bounds.c: finds the bounds that a kernel of attention tests for the ranges of a rule. */
#include "lower.h"

/* Intersects the ranges with `first`, or if `either` is set with the union of `first` and `second`. */
static void narrow(KeyRanges *ranges, KeyRange first, KeyRange second, bool either) {
    const KeyRanges before = *ranges, by = {{first, second}, either ? 2 : 1};
    if (!key_ranges_both(&before, &by, ranges)) bug("three bounds make more than %d ranges of keys", MOST_KEY_RANGES);
}

/* The ranges that the bounds stand for. */
static KeyRanges ranges_of(const KeyBounds *b) {
    const KeyRange all = {.behind = INT64_MIN, .ahead = INT64_MAX, .end = INT64_MAX};
    KeyRange own = all, prefix = all, near = all, first = all, given = all;
    own.ahead = 0;
    prefix.below_number = true;
    near.behind = 1 - b->window;
    near.ahead = b->window - 1;
    first.end = b->sink;
    given.given = true;
    KeyRanges ranges = {{all}, 1};
    if (b->causal || b->prefixed) narrow(&ranges, own, prefix, b->prefixed);
    if (b->window) narrow(&ranges, near, first, b->sink > 0);
    if (b->masked) narrow(&ranges, given, all, false);
    return ranges;
}

static bool same(const KeyRanges *a, const KeyRanges *b) {
    bool is_same = a->count == b->count;
    for (int i = 0; is_same && i < a->count; i++) {
        const KeyRange *x = &a->all[i], *y = &b->all[i];
        is_same = x->behind == y->behind && x->ahead == y->ahead && x->end == y->end &&
                  x->below_number == y->below_number && x->given == y->given;
    }
    return is_same;
}

KeyBounds key_bounds(const Step *s) {
    const KeyRanges *keys = &s->attention.keys;
    KeyBounds b = {.causal = true};
    for (int i = 0; i < keys->count; i++) {
        const KeyRange *r = &keys->all[i];
        b.causal &= r->ahead == 0;
        b.prefixed |= r->below_number;
        b.masked |= r->given;
        if (r->behind != INT64_MIN) b.window = 1 - r->behind;
        if (r->end != INT64_MAX) b.sink = r->end;
    }
    /* A window of one key without sinks is the same mask with and without causality; the kernel takes it without. */
    if (b.prefixed || (keys->count == 1 && keys->all[0].behind == 0)) b.causal = false;
    const KeyRanges made = ranges_of(&b);
    if (!same(&made, keys)) fail_status(EXIT_CANNOT, "the kernels of attention do not know the mask of `%s`", s->name);
    return b;
}
