/* key_bounds.c: solves a rule of pairs for the key. */
#include "../attnc.h"

#include <math.h>

/* The keys from `low` to before `high`. */
typedef struct Interval {
    const PairRule *low, *high;
} Interval;

/* Sets `out` to a - b; returns false if the difference is not the same for every query and number. */
static bool differ_by(const PairRule *a, const PairRule *b, double *out) {
    PairLinear sum = {0};
    const bool known = pair_linear(a, 1, &sum) && pair_linear(b, -1, &sum) && sum.query == 0 && sum.number == 0;
    *out = sum.constant;
    return known;
}

/* The lesser (PAIR_min) or the greater (PAIR_max) of two bounds, of which NULL is none. */
static const PairRule *narrower(Arena *arena, PairOp op, const PairRule *a, const PairRule *b) {
    double more;
    if (!a || !b) return a ? a : b;
    if (!differ_by(a, b, &more)) return pair_apply(arena, op, a, b);
    return (more <= 0) == (op == PAIR_min) ? a : b;
}

static const PairRule *plus(Arena *arena, const PairRule *sum, const PairRule *more) {
    return sum ? pair_apply(arena, PAIR_add, sum, more) : more;
}

static bool is_one_of(double x, double a, double b) { return x == a || x == b; }

/* The keys of a comparison k < bound or -k < bound, whose bound is a sum of the query, a number and a constant. */
static bool compared(Arena *arena, const PairRule *rule, Interval *out) {
    PairLinear sum;
    if (!pair_comparison(rule, &sum) || !is_one_of(sum.key, 1, -1)) return false;
    if (!is_one_of(sum.query, 0, -sum.key) || !is_one_of(sum.number, 0, -sum.key)) return false;
    const double constant = sum.key < 0 ? sum.constant + 1 : -sum.constant;
    const PairRule *bound = NULL;
    if (sum.query != 0) bound = pair_leaf(arena, PAIR_query);
    if (sum.number != 0) bound = plus(arena, bound, sum.of);
    if (constant != 0 || !bound) bound = plus(arena, bound, pair_constant(arena, constant));
    *out = sum.key < 0 ? (Interval){bound, NULL} : (Interval){NULL, bound};
    return true;
}

/* Sets `out` to the keys of a rule without absolute values; returns false if they are no interval. */
static bool solved(Arena *arena, const PairRule *rule, Interval *out) {
    Interval a, b;
    switch (rule->op) {
    case PAIR_below: case PAIR_at_most: return compared(arena, rule, out);
    case PAIR_and: case PAIR_or:
        if (!solved(arena, rule->a, &a) || !solved(arena, rule->b, &b)) return false;
        if (rule->op == PAIR_and) {
            *out = (Interval){narrower(arena, PAIR_max, a.low, b.low), narrower(arena, PAIR_min, a.high, b.high)};
            return true;
        }
        *out = (Interval){NULL, a.high && b.high ? narrower(arena, PAIR_max, a.high, b.high) : NULL};
        return !a.low && !b.low;
    default: return false;
    }
}

/* Takes the rule of a window, or of a window and of the leading keys that are visible besides. */
static bool take_window(Arena *arena, KeyBounds *bounds, const PairRule *rule) {
    Interval window, first = {NULL, NULL};
    if (bounds->window) return false;
    if (!solved(arena, rule, &window)) {
        if (rule->op != PAIR_or || !solved(arena, rule->a, &window) || !solved(arena, rule->b, &first)) return false;
        if (!window.low) {
            const Interval other = window;
            window = first;
            first = other;
        }
        if (!window.low || first.low || !first.high) return false;
    }
    *bounds = (KeyBounds){bounds->limit, rule, window.low, window.high, first.high, bounds->rest};
    return true;
}

static void take(Arena *arena, KeyBounds *bounds, const PairRule *rule) {
    Interval keys;
    if (rule->op == PAIR_and) {
        take(arena, bounds, rule->a);
        take(arena, bounds, rule->b);
        return;
    }
    const PairRule *plain = pair_without_abs(arena, rule);
    if (solved(arena, plain, &keys) && !keys.low)
        bounds->limit = narrower(arena, PAIR_min, bounds->limit, keys.high);
    else if (!take_window(arena, bounds, plain)) bounds->rest = pair_both(arena, bounds->rest, plain);
}

KeyBounds key_bounds(Arena *arena, const PairRule *rule) {
    KeyBounds bounds = {0};
    if (rule) take(arena, &bounds, rule);
    double beyond; /* the end of the window */
    if (!bounds.limit || !bounds.high || !differ_by(bounds.limit, bounds.high, &beyond)) return bounds;
    if (beyond < 0 || (beyond == 0 && bounds.leading)) bounds.high = NULL;
    else if (!bounds.leading) bounds.limit = NULL;
    return bounds;
}

int64_t key_bounds_window(const KeyBounds *bounds) {
    PairLinear low = {0};
    const bool moves = bounds->low && pair_linear(bounds->low, 1, &low) && low.query == 1 && low.number == 0;
    return moves && low.constant <= 0 ? 1 - (int64_t)low.constant : 0;
}
