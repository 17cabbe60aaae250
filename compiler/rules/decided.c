/* decided.c: simplifies rules of pairs by the conditions that ranges of positions and of inputs decide. */
#include "../attnc.h"

#include <math.h>

/* A comparison of whole numbers, one of which is constant: the other one is from `low` to `high`, or is not. */
typedef struct Side {
    bool known, outside;
    double low, high;
    PairLinear sum;         /* that number without its constant; or */
    const PairRule *number; /* the number, where it is no such sum */
} Side;

static bool is_whole(const PairRule *pair) {
    return pair->op == PAIR_constant && pair->constant == floor(pair->constant);
}

/* The side on which `op` says that a number is, compared with a bound; `above` exchanges both. */
static Side side_by(PairOp op, double bound, bool above) {
    Side side = {.known = true, .outside = op == PAIR_differs, .low = -INFINITY, .high = INFINITY};
    const double next = op == PAIR_below;
    if (op == PAIR_equals || op == PAIR_differs) side.low = side.high = bound;
    else if (above) side.low = bound + next;
    else side.high = bound - next;
    return side;
}

/* Of sum + constant < 0, or = 0, or != 0. Of a sum and its negative, one is a side's number. */
static Side side_of_sum(PairOp op, PairLinear sum) {
    const double first = sum.key != 0 ? sum.key : sum.query != 0 ? sum.query : sum.number;
    const double sign = first < 0 ? -1 : 1;
    Side side = side_by(op == PAIR_at_most ? PAIR_below : op, -sign * sum.constant, first < 0);
    side.sum = (PairLinear){sign * sum.query, sign * sum.key, sign * sum.number, 0, sum.of};
    return side;
}

static Side side_of(const PairRule *pair) {
    PairLinear sum;
    if (!pair_is_comparison(pair) || pair_is_single(pair->a) || pair_is_single(pair->b)) return (Side){.known = false};
    if (pair_comparison(pair, &sum)) return side_of_sum(pair->op, sum);
    const bool above = !is_whole(pair->b);
    if (above && !is_whole(pair->a)) return (Side){.known = false};
    Side side = side_by(pair->op, above ? pair->a->constant : pair->b->constant, above);
    side.number = above ? pair->b : pair->a;
    return side;
}

static bool same_sum(const PairLinear *a, const PairLinear *b) {
    return a->query == b->query && a->key == b->key && a->number == b->number && pair_same(a->of, b->of);
}

/* Whether no whole number is on both sides. */
static bool excluded(const Side *a, const Side *b) {
    if (!a->outside && !b->outside) return a->low > b->high || b->low > a->high;
    if (a->outside != b->outside) {
        const Side *in = a->outside ? b : a, *out = a->outside ? a : b;
        return in->low >= out->low && in->high <= out->high;
    }
    const Side *first = a->low < b->low ? a : b, *last = first == a ? b : a;
    return first->low == -INFINITY && last->high == INFINITY && first->high + 1 >= last->low;
}

/* 1 where a number is always on one of both sides, 0 where it is never on both, by `op`; else -1. */
static double both_sides(PairOp op, const PairRule *a, const PairRule *b) {
    Side first = side_of(a), second = side_of(b);
    if (!first.known || !second.known) return -1;
    if (!pair_same(first.number, second.number) || !same_sum(&first.sum, &second.sum)) return -1;
    const bool either = op == PAIR_or; /* which holds unless the number is on neither side */
    if (either) first.outside = !first.outside, second.outside = !second.outside;
    return excluded(&first, &second) ? either : -1;
}

/* As pair_simplified, but a rule that never or always holds is a constant. */
static const PairRule *decided(Arena *arena, const PairRule *pair, PairRange query, PairRange key) {
    const PairRange range = pair_range(pair, query, key);
    if (range.low == range.high) return pair_constant(arena, range.low);
    PairLinear sum;
    if (pair_comparison(pair, &sum) && sum.query == 0 && sum.key == 0 && sum.number == 0)
        return pair_constant(arena, pair->op == PAIR_equals    ? sum.constant == 0
                                    : pair->op == PAIR_differs ? sum.constant != 0
                                                               : sum.constant < 0);
    if (pair->op != PAIR_and && pair->op != PAIR_or) return pair;
    const PairRule *a = decided(arena, pair->a, query, key), *b = decided(arena, pair->b, query, key);
    const bool decides = pair->op == PAIR_or; /* the truth that decides the whole */
    if (a->op == PAIR_constant) return (a->constant != 0) == decides ? a : b;
    if (b->op == PAIR_constant) return (b->constant != 0) == decides ? b : a;
    const double known = both_sides(pair->op, a, b);
    return known < 0 ? pair_apply(arena, pair->op, a, b) : pair_constant(arena, known);
}

const PairRule *pair_decided(Arena *arena, const PairRule *pair, PairRange query, PairRange key) {
    const PairRule *const from[] = {pair->a, pair->b, pair->c};
    const PairRule *to[] = {pair->a, pair->b, pair->c};
    for (int i = 0; i < 3; i++)
        if (from[i]) to[i] = pair_decided(arena, from[i], query, key);
    if (pair->op == PAIR_choose) {
        to[0] = decided(arena, to[0], query, key);
        if (to[0]->op == PAIR_constant) return to[0]->constant != 0 ? to[1] : to[2];
    }
    const bool same = from[0] == to[0] && from[1] == to[1] && from[2] == to[2];
    return same ? pair : pair_with(arena, pair, to[0], to[1], to[2]);
}

const PairRule *pair_simplified(Arena *arena, const PairRule *pair, PairRange query, PairRange key) {
    if (!pair) return NULL;
    const PairRule *rest = decided(arena, pair, query, key);
    return rest->op == PAIR_constant && rest->constant != 0 ? NULL : rest;
}
