/* tabled.c: the parts of a rule that are numbers of a table, those that f32 holds, and those that are C functions. */
#include "../attnc.h"

#include <math.h>

/* Whether a sum, a difference or a comparison of two is of the distance alone. */
static bool is_distance(const PairRule *pair) {
    PairLinear sum = {0};
    switch (pair->op) {
    case PAIR_add: case PAIR_sub:
        if (!pair_linear(pair, 1, &sum)) return false;
        break;
    case PAIR_below: case PAIR_at_most: case PAIR_equals: case PAIR_differs:
        if (!pair_linear(pair->a, 1, &sum) || !pair_linear(pair->b, -1, &sum)) return false;
        break;
    default: return false;
    }
    return sum.number == 0 && sum.query != 0 && sum.query == -sum.key;
}

/* What a rule with arguments of these two kinds is a table of. */
static PairTabled joined(PairTabled a, PairTabled b) {
    return a == TABLED_CONSTANT ? b : b == TABLED_CONSTANT || a == b ? a : TABLED_NOT;
}

PairTabled pair_tabled(const PairRule *pair) {
    if (is_distance(pair)) return TABLED_DISTANCE;
    switch (pair->op) {
    case PAIR_constant: return TABLED_CONSTANT;
    case PAIR_query: return TABLED_QUERY;
    case PAIR_key: return TABLED_KEY;
    case PAIR_head: return TABLED_HEAD;
    case PAIR_bit_of_query: case PAIR_bit_of_key: return TABLED_NOT; /* whose only argument is the number of the bit */
    case PAIR_let: return pair_is_learned(pair) ? TABLED_NOT : pair_tabled(pair->a);
    default: break;
    }
    if (!pair->a) return TABLED_NOT;
    PairTabled of = pair_tabled(pair->a);
    if (pair->b) of = joined(of, pair_tabled(pair->b));
    if (pair->c) of = joined(of, pair_tabled(pair->c));
    return of;
}

double pair_tabled_value(const PairRule *pair, PairTabled of, int64_t index, int64_t origin) {
    PairAt at = {0};
    const double distance = (double)(index - origin);
    switch (of) {
    case TABLED_HEAD: at.head = (double)index; break;
    case TABLED_QUERY: at.query = (double)index; break;
    case TABLED_KEY: at.key = (double)index; break;
    case TABLED_DISTANCE:
        at.key = fmax(distance, 0);
        at.query = fmax(-distance, 0);
        break;
    case TABLED_NOT: case TABLED_CONSTANT: break;
    }
    return pair_value(pair, &at);
}

bool pair_is_of_tables(PairOp op) {
    return op == PAIR_floor || op == PAIR_log || op == PAIR_sin || op == PAIR_cos || op == PAIR_erf || op == PAIR_power;
}

bool pair_needs_table(const PairRule *pair) {
    if (!pair || pair->op == PAIR_let || pair->op == PAIR_entry) return false;
    return pair_is_of_tables(pair->op) || pair_needs_table(pair->a) || pair_needs_table(pair->b) ||
           pair_needs_table(pair->c);
}

bool pair_is_exact(const PairRule *pair, PairRange query, PairRange key) {
    const double most = 0x1p24; /* f32 holds each whole number up to here */
    const PairRange range = pair_range(pair, query, key);
    if (!(range.low >= -most && range.high <= most)) return false;
    switch (pair->op) {
    case PAIR_constant: case PAIR_query: case PAIR_key: case PAIR_head: case PAIR_number: return true;
    case PAIR_add: case PAIR_sub: case PAIR_mul: case PAIR_min: case PAIR_max: case PAIR_abs:
        return pair_is_exact(pair->a, query, key) && (!pair->b || pair_is_exact(pair->b, query, key));
    default: return false;
    }
}

static bool is_operation(const PairRule *pair) {
    return pair && pair->a && !(pair->op == PAIR_single && !is_operation(pair->a));
}

bool pair_repeats(const PairRule *pair) {
    const PairOp op = pair->op;
    return (op == PAIR_min || op == PAIR_max || op == PAIR_abs || op == PAIR_mod || op == PAIR_quotient) &&
           (is_operation(pair->a) || is_operation(pair->b));
}

bool pair_has_repeats(const PairRule *pair) {
    return pair && (pair_repeats(pair) || pair_has_repeats(pair->a) || pair_has_repeats(pair->b) ||
                    pair_has_repeats(pair->c));
}
