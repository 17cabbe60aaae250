/* key_ranges.c: the keys that a rule of pairs shows to a query, as a union of ranges. Positions are whole numbers, so
 * that k < x is k <= x - 1. */
#include "../attnc.h"

static const KeyRange everything = {.behind = INT64_MIN, .ahead = INT64_MAX, .end = INT64_MAX};

/* The keys for which l + constant <= 0. */
static bool range_of(PairLinear l, double constant, KeyRanges *out) {
    const double bound = -(l.constant + constant);
    KeyRange range = everything;
    if (l.key == 1 && l.query == -1 && l.number == 0) range.ahead = (int64_t)bound;
    else if (l.key == -1 && l.query == 1 && l.number == 0) range.behind = -(int64_t)bound;
    else if (l.key == 1 && l.query == 0 && l.number == 0) range.end = (int64_t)bound + 1;
    else if (l.key == 1 && l.query == 0 && l.number == -1 && bound == -1) range.below_number = true;
    else return false;
    *out = (KeyRanges){{range}, 1};
    return true;
}

bool key_ranges_both(const KeyRanges *a, const KeyRanges *b, KeyRanges *out) {
    out->count = 0;
    for (int i = 0; i < a->count; i++)
        for (int k = 0; k < b->count; k++) {
            const KeyRange x = a->all[i], y = b->all[k];
            if (out->count == MOST_KEY_RANGES) return false;
            out->all[out->count++] = (KeyRange){.behind = x.behind > y.behind ? x.behind : y.behind,
                                                .ahead = x.ahead < y.ahead ? x.ahead : y.ahead,
                                                .end = x.end < y.end ? x.end : y.end,
                                                .below_number = x.below_number || y.below_number,
                                                .given = x.given || y.given};
        }
    return true;
}

static bool either(const KeyRanges *a, const KeyRanges *b, KeyRanges *out) {
    *out = *a;
    for (int k = 0; k < b->count; k++) {
        if (out->count == MOST_KEY_RANGES) return false;
        out->all[out->count++] = b->all[k];
    }
    return true;
}

/* a <= b + slack, where `a` may be an absolute value. */
static bool compared(const PairRule *a, const PairRule *b, double slack, KeyRanges *out) {
    PairLinear more = {0}, less = {0};
    if (a->op != PAIR_abs) return pair_linear(a, 1, &more) && pair_linear(b, -1, &more) && range_of(more, slack, out);
    KeyRanges up, down;
    return pair_linear(a->a, 1, &more) && pair_linear(b, -1, &more) && pair_linear(a->a, -1, &less) &&
           pair_linear(b, -1, &less) && range_of(more, slack, &up) && range_of(less, slack, &down) &&
           key_ranges_both(&up, &down, out);
}

bool key_ranges(const PairRule *rule, KeyRanges *out) {
    *out = (KeyRanges){{everything}, 1};
    if (!rule) return true;
    KeyRanges a, b;
    switch (rule->op) {
    case PAIR_and: return key_ranges(rule->a, &a) && key_ranges(rule->b, &b) && key_ranges_both(&a, &b, out);
    case PAIR_or: return key_ranges(rule->a, &a) && key_ranges(rule->b, &b) && either(&a, &b, out);
    case PAIR_below: return compared(rule->a, rule->b, 1, out);
    case PAIR_at_most: return compared(rule->a, rule->b, 0, out);
    case PAIR_differs:
        out->all[0].given = true;
        return rule->a->op == PAIR_given && rule->b->op == PAIR_constant && rule->b->constant == 0;
    default: return false;
    }
}

bool key_ranges_show_all(const KeyRanges *ranges) {
    const KeyRange *first = &ranges->all[0];
    return ranges->count == 1 && first->behind == INT64_MIN && first->ahead == INT64_MAX && first->end == INT64_MAX &&
           !first->below_number && !first->given;
}

int64_t key_ranges_window(const KeyRanges *ranges) {
    int64_t least = INT64_MAX;
    for (int i = 0; i < ranges->count; i++)
        if (ranges->all[i].behind < least) least = ranges->all[i].behind;
    return least == INT64_MIN ? 0 : 1 - least;
}
