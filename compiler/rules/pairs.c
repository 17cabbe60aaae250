/* pairs.c: makes, evaluates, bounds and prints rules of pairs. */
#include "../attnc.h"

#include <math.h>
#include <string.h>

static const struct {
    int arity, level;
    const char *name, *spelling, *function;
} ops[PAIR_COUNT] = {
    [PAIR_constant] = {.name = "constant"}, [PAIR_query] = {.name = "query"},     [PAIR_key] = {.name = "key"},
    [PAIR_score] = {.name = "score"},       [PAIR_head] = {.name = "head"},       [PAIR_index] = {.name = "index"},
    [PAIR_number] = {.name = "number"},     [PAIR_given] = {.name = "given"},     [PAIR_of_pair] = {.name = "of_pair"},
    [PAIR_of_query] = {.name = "of_query"}, [PAIR_of_key] = {.name = "of_key"},   [PAIR_of_head] = {.name = "of_head"},
    [PAIR_bit_of_query] = {.name = "bit_of_query"}, [PAIR_bit_of_key] = {.name = "bit_of_key"},
    [PAIR_entry] = {.name = "entry"},
    [PAIR_list] = {.name = "list"},         [PAIR_table] = {.name = "table"},     [PAIR_let] = {.name = "let"},
#define PAIR(name, arity, level, spelling, function, value, single, low, high) \
    [PAIR_##name] = {arity, level, #name, spelling, function},
#include "pairs.def"
};

/* ---------------------------------------------------------------- construction */

static const PairRule *copied(Arena *arena, PairRule pair) {
    PairRule *made = arena_alloc(arena, sizeof *made);
    *made = pair;
    made->size = 1 + (pair.a ? pair.a->size : 0) + (pair.b ? pair.b->size : 0) + (pair.c ? pair.c->size : 0);
    return made;
}

const PairRule *pair_leaf(Arena *arena, PairOp op) { return copied(arena, (PairRule){.op = op}); }

const PairRule *pair_constant(Arena *arena, double constant) {
    return copied(arena, (PairRule){.op = PAIR_constant, .constant = constant});
}

const PairRule *pair_input(Arena *arena, PairOp op, int input, const char *name) {
    const PairRange natural = {0, INFINITY};
    return copied(arena, (PairRule){.op = op, .input = input, .name = name,
                                    .range = op == PAIR_number ? natural : (PairRange){0, 0}});
}

const PairRule *pair_of_row(Arena *arena, PairOp op, int input, const char *name, PairRange range) {
    return copied(arena, (PairRule){.op = op, .input = input, .name = name, .range = range});
}

const PairRule *pair_of_real(Arena *arena, PairOp op, int input, const char *name, PairRange range) {
    return copied(arena, (PairRule){.op = op, .input = input, .name = name, .range = range, .is_real = true});
}

const PairRule *pair_with_input(Arena *arena, const PairRule *leaf, int input) {
    PairRule made = *leaf;
    made.input = input;
    return copied(arena, made);
}

const PairRule *pair_bit(Arena *arena, PairOp op, int input, const char *name, const PairRule *index) {
    return copied(arena, (PairRule){.op = op, .input = input, .name = name, .a = index});
}

const PairRule *pair_table(Arena *arena, int input, const char *name, const PairRule *index) {
    return copied(arena, (PairRule){.op = PAIR_table, .input = input, .name = name, .a = index});
}

const PairRule *pair_list(Arena *arena, int input, const char *name, const PairRule *index) {
    return copied(arena, (PairRule){.op = PAIR_list, .input = input, .name = name, .a = index});
}

const PairRule *pair_let(Arena *arena, const PairTable *table, const PairRule *index) {
    return copied(arena, (PairRule){.op = PAIR_let, .name = table->name, .table = table, .a = index});
}

const PairRule *pair_table_entry(Arena *arena, const PairTable *table, const PairRule *index) {
    return copied(arena, (PairRule){.op = PAIR_entry, .name = table->name, .table = table, .a = index});
}

const PairRule *pair_ranged(Arena *arena, PairOp leaf, PairRange range) {
    return copied(arena, (PairRule){.op = leaf, .range = range});
}

const PairRule *pair_apply(Arena *arena, PairOp op, const PairRule *a, const PairRule *b) {
    return copied(arena, (PairRule){.op = op, .a = a, .b = b});
}

const PairRule *pair_choose(Arena *arena, const PairRule *condition, const PairRule *a, const PairRule *b) {
    return copied(arena, (PairRule){.op = PAIR_choose, .a = condition, .b = a, .c = b});
}

const PairRule *pair_with(Arena *arena, const PairRule *pair, const PairRule *a, const PairRule *b, const PairRule *c) {
    PairRule made = *pair;
    made.a = a;
    made.b = b;
    made.c = c;
    return copied(arena, made);
}

const PairRule *pair_both(Arena *arena, const PairRule *a, const PairRule *b) {
    return !a ? b : !b ? a : pair_apply(arena, PAIR_and, a, b);
}

/* ---------------------------------------------------------------- evaluation */

double pair_entry(const PairInput *table, int64_t index) {
    if (!table->single && !table->real) bug("a rule of pairs reads a table that is not there");
    return table->single ? (double)table->single[index] : table->real[index];
}

static double of_row(const PairInput *input, int64_t row) {
    return input->rows ? (double)input->rows[row] : pair_entry(input, row);
}

static double bit_of_row(const PairInput *input, double row, double bit) {
    if (!input->rows) bug("a rule of pairs reads bits that are not there");
    return bit >= 0 && bit < 64 ? (double)((uint64_t)input->rows[(int64_t)row] >> (int)bit & 1) : 0;
}

double pair_value(const PairRule *pair, const PairAt *at) {
    const double a = pair->a ? pair_value(pair->a, at) : 0, b = pair->b ? pair_value(pair->b, at) : 0;
    const double c = pair->c ? pair_value(pair->c, at) : 0;
    switch (pair->op) {
    case PAIR_constant: return pair->constant;
    case PAIR_query: return at->query;
    case PAIR_key: return at->key;
    case PAIR_score: return at->score;
    case PAIR_head: return at->head;
    case PAIR_index: return at->index;
    case PAIR_number: case PAIR_given: case PAIR_of_pair: case PAIR_of_head: return at->inputs[pair->input].number;
    case PAIR_of_query: return of_row(&at->inputs[pair->input], (int64_t)at->query);
    case PAIR_of_key: return of_row(&at->inputs[pair->input], (int64_t)at->key);
    case PAIR_bit_of_query: return bit_of_row(&at->inputs[pair->input], at->query, a);
    case PAIR_bit_of_key: return bit_of_row(&at->inputs[pair->input], at->key, a);
    case PAIR_list: case PAIR_table: return pair_entry(&at->inputs[pair->input], (int64_t)a);
    case PAIR_entry: return pair->table->numbers[(int64_t)a];
    case PAIR_let: return pair_value(pair->table->rule, &(PairAt){.head = a, .index = a});
#define PAIR(name, arity, level, spelling, function, value, single, low, high) \
    case PAIR_##name: return (value);
#include "pairs.def"
    case PAIR_COUNT: break;
    }
    bug("a rule of pairs has no operation");
}

/* The least and the greatest number of a table at the indexes of a range. */
static PairRange entry_range(const PairTable *table, PairRange at) {
    const int64_t first = (int64_t)fmax(at.low, 0), last = (int64_t)fmin(at.high, (double)table->count - 1);
    PairRange range = {INFINITY, -INFINITY};
    for (int64_t i = first; i <= last; i++)
        range = (PairRange){fmin(range.low, table->numbers[i]), fmax(range.high, table->numbers[i])};
    return range;
}

/* 0 times anything is 0 here, since a bound is no number that occurs. */
static double product(double a, double b) { return a == 0 || b == 0 ? 0 : a * b; }

static double least_product(PairRange a, PairRange b) {
    return fmin(fmin(product(a.low, b.low), product(a.low, b.high)),
                fmin(product(a.high, b.low), product(a.high, b.high)));
}

bool pair_is_comparison(const PairRule *pair) {
    return pair->op == PAIR_below || pair->op == PAIR_at_most || pair->op == PAIR_equals || pair->op == PAIR_differs;
}

static bool compares_singles(const PairRule *pair) {
    return pair_is_comparison(pair) && (pair_is_single(pair->a) || pair_is_single(pair->b));
}

static PairRange ratio_range(PairRange a, PairRange b) {
    if (b.low <= 0 && b.high >= 0) return (PairRange){-INFINITY, INFINITY};
    const double ends[] = {a.low / b.low, a.low / b.high, a.high / b.low, a.high / b.high};
    return (PairRange){fmin(fmin(ends[0], ends[1]), fmin(ends[2], ends[3])),
                       fmax(fmax(ends[0], ends[1]), fmax(ends[2], ends[3]))};
}

static PairRange quotient_range(PairRange a, PairRange b) {
    if (b.low <= 0) return (PairRange){-INFINITY, INFINITY};
    return (PairRange){floor(fmin(a.low / b.low, a.low / b.high)), floor(fmax(a.high / b.low, a.high / b.high))};
}

static PairRange rest_range(PairRange a, PairRange b) {
    const PairRange quotient = quotient_range(a, b);
    if (b.low == b.high && quotient.low == quotient.high && isfinite(quotient.low))
        return (PairRange){a.low - b.low * quotient.low, a.high - b.low * quotient.low};
    return (PairRange){0, a.low >= 0 ? fmin(a.high, b.high - 1) : b.high - 1};
}

/* Whether the ranges of the leaves may decide a comparison, which they may where neither number can be NaN. */
static bool is_known(const PairRule *pair, PairRange query, PairRange key) {
    return !pair_is_unbounded(pair) && pair_is_ordered(pair->a, query, key) && pair_is_ordered(pair->b, query, key);
}

static PairRange range_of(const PairRule *pair, PairRange query, PairRange key, bool of_data) {
    if (compares_singles(pair) && !(of_data && is_known(pair, query, key))) return (PairRange){0, 1};
    const PairRange none = {0, 0}, a = pair->a ? range_of(pair->a, query, key, of_data) : none;
    const PairRange b = pair->b ? range_of(pair->b, query, key, of_data) : none;
    const PairRange c = pair->c ? range_of(pair->c, query, key, of_data) : none;
    if (of_data && pair->op == PAIR_choose && a.low == a.high) return a.low != 0 ? b : c;
    switch (pair->op) {
    case PAIR_constant: return (PairRange){pair->constant, pair->constant};
    case PAIR_query: return query;
    case PAIR_key: return key;
    case PAIR_given: return (PairRange){0, UINT8_MAX};
    case PAIR_number: case PAIR_of_query: case PAIR_of_key: case PAIR_of_pair: case PAIR_head: case PAIR_index:
        return pair->range;
    case PAIR_bit_of_query: case PAIR_bit_of_key: return (PairRange){0, a.low < 64 && a.high >= 0};
    case PAIR_entry: return entry_range(pair->table, a);
    case PAIR_score: case PAIR_of_head: case PAIR_list: case PAIR_table: case PAIR_let:
        return (PairRange){-INFINITY, INFINITY};
#define PAIR(name, arity, level, spelling, function, value, single, low, high) \
    case PAIR_##name: return (PairRange){(low), (high)};
#include "pairs.def"
    case PAIR_COUNT: break;
    }
    bug("a rule of pairs has no operation");
}

PairRange pair_range(const PairRule *pair, PairRange query, PairRange key) {
    return range_of(pair, query, key, false);
}

PairRange pair_data_range(const PairRule *pair, PairRange query, PairRange key) {
    return range_of(pair, query, key, true);
}

static bool is_bounded(PairRange range) { return isfinite(range.low) && isfinite(range.high); }

bool pair_is_ordered(const PairRule *pair, PairRange query, PairRange key) {
    if (pair_reads_input(pair->op)) return !pair->is_real || is_bounded(pair->range);
    const bool a = !pair->a || pair_is_ordered(pair->a, query, key);
    const bool b = !pair->b || pair_is_ordered(pair->b, query, key);
    const bool c = !pair->c || pair_is_ordered(pair->c, query, key);
    switch (pair->op) {
    case PAIR_add: case PAIR_sub: case PAIR_mul: case PAIR_div: /* of infinite numbers these may be NaN */
        return a && b && is_bounded(pair_range(pair->a, query, key)) && is_bounded(pair_range(pair->b, query, key)) &&
               is_bounded(pair_range(pair, query, key));
    case PAIR_min: case PAIR_max: { /* b, where a is NaN */
        const PairRange first = pair_range(pair->a, query, key);
        return b && (a || (isinf(first.low) && isinf(first.high)));
    }
    case PAIR_sqrt: return a && pair_range(pair->a, query, key).low >= 0;
    case PAIR_choose: return b && c;
    default: return a && b && c;
    }
}

/* ---------------------------------------------------------------- queries */

bool pair_reads(const PairRule *pair, PairOp leaf) {
    return pair && (pair->op == leaf || pair_reads(pair->a, leaf) || pair_reads(pair->b, leaf) ||
                    pair_reads(pair->c, leaf));
}

bool pair_reads_own(const PairRule *pair) {
    return pair_reads_rows(pair, true) || pair_reads_rows(pair, false) || pair_reads(pair, PAIR_of_pair) ||
           pair_reads(pair, PAIR_number);
}

bool pair_reads_rows(const PairRule *pair, bool of_query) {
    return pair_reads(pair, of_query ? PAIR_of_query : PAIR_of_key) ||
           pair_reads(pair, of_query ? PAIR_bit_of_query : PAIR_bit_of_key);
}

bool pair_is_bit(const PairRule *pair) { return pair->op == PAIR_bit_of_query || pair->op == PAIR_bit_of_key; }

bool pair_is_single(const PairRule *pair) {
    switch (pair->op) {
    case PAIR_single: return true;
    case PAIR_number: case PAIR_of_query: case PAIR_of_key: case PAIR_of_pair: return pair->is_real;
    case PAIR_entry: return !pair->table->whole;
    case PAIR_min: case PAIR_max: case PAIR_abs: case PAIR_add: case PAIR_sub: case PAIR_mul: case PAIR_div:
    case PAIR_sqrt:
        return pair_is_single(pair->a) || (pair->b && pair_is_single(pair->b));
    case PAIR_choose: return pair_is_single(pair->b) || pair_is_single(pair->c);
    default: return false;
    }
}

bool pair_applies_to_singles(const PairRule *pair, PairOp op) {
    return pair && ((pair->op == op && (pair_is_single(pair) || pair_is_single(pair->a))) ||
                    pair_applies_to_singles(pair->a, op) || pair_applies_to_singles(pair->b, op) ||
                    pair_applies_to_singles(pair->c, op));
}

bool pair_has_singles(const PairRule *pair) {
    return pair && (pair_is_single(pair) || pair_has_singles(pair->a) || pair_has_singles(pair->b) ||
                    pair_has_singles(pair->c));
}

bool pair_reads_bits(const PairRule *pair) {
    return pair_reads(pair, PAIR_bit_of_query) || pair_reads(pair, PAIR_bit_of_key);
}

bool pair_is_learned(const PairRule *pair) { return pair->op == PAIR_let && !pair->table->rule; }

bool pair_reads_input(PairOp op) { return op >= PAIR_number && op <= PAIR_table; }

int pair_inputs(const PairRule *pair) {
    if (!pair) return 0;
    const int own = pair_reads_input(pair->op) ? pair->input + 1 : 0;
    const int a = pair_inputs(pair->a), b = pair_inputs(pair->b), c = pair_inputs(pair->c);
    const int first = a > own ? a : own, second = b > c ? b : c;
    return first > second ? first : second;
}

bool pair_compares_bytes(const PairRule *pair) { return pair->op == PAIR_differs && pair->a->op == PAIR_given; }

/* Whether a number is computed from numbers in f32. The conditions of its choices do not count. */
static bool reads_singles(const PairRule *pair) {
    const PairRule *first = pair->op == PAIR_choose ? NULL : pair->a;
    return pair_is_single(pair) || (first && reads_singles(first)) || (pair->b && reads_singles(pair->b)) ||
           (pair->c && reads_singles(pair->c));
}

static bool reads_real_input(const PairRule *pair) {
    return pair && ((pair_reads_input(pair->op) && pair->is_real) || reads_real_input(pair->a) ||
                    reads_real_input(pair->b) || reads_real_input(pair->c));
}

bool pair_is_unbounded(const PairRule *pair) {
    return pair_compares_bytes(pair) ||
           (pair_is_comparison(pair) && (reads_singles(pair->a) || reads_singles(pair->b)) && !reads_real_input(pair));
}

const PairRule *pair_reader(const PairRule *pair, int input) {
    if (!pair || (pair_reads_input(pair->op) && pair->input == input)) return pair;
    const PairRule *const arguments[] = {pair->a, pair->b, pair->c}, *found = NULL;
    for (int i = 0; i < 3 && !found; i++) found = pair_reader(arguments[i], input);
    return found;
}

int pair_scans(const PairRule *pair, int end) {
    int count = 0;
    for (int i = 0; i < end; i++) {
        const PairRule *reader = pair_reader(pair, i);
        count += reader && reader->op == PAIR_of_pair;
    }
    return count;
}

static bool same_table(const PairTable *a, const PairTable *b) {
    return a == b || (a && b && a->rule && a->count == b->count && a->of_heads == b->of_heads &&
                      pair_same(a->rule, b->rule));
}

bool pair_same(const PairRule *a, const PairRule *b) {
    if (!a || !b) return a == b;
    return a->op == b->op && a->constant == b->constant && a->input == b->input &&
           (a->name == b->name || (a->name && b->name && strcmp(a->name, b->name) == 0)) && pair_same(a->a, b->a) &&
           pair_same(a->b, b->b) && pair_same(a->c, b->c) && same_table(a->table, b->table);
}

bool pair_linear(const PairRule *pair, double factor, PairLinear *sum) {
    switch (pair->op) {
    case PAIR_constant: sum->constant += factor * pair->constant; return true;
    case PAIR_query: sum->query += factor; return true;
    case PAIR_key: sum->key += factor; return true;
    case PAIR_number:
        if (pair->is_real || !(pair->range.low >= 0)) return false; /* the C has no signs there */
        if (sum->of && !pair_same(sum->of, pair)) return false;
        sum->of = pair;
        sum->number += factor;
        return true;
    case PAIR_add: return pair_linear(pair->a, factor, sum) && pair_linear(pair->b, factor, sum);
    case PAIR_sub: return pair_linear(pair->a, factor, sum) && pair_linear(pair->b, -factor, sum);
    case PAIR_mul:
        if (pair->a->op == PAIR_constant) return pair_linear(pair->b, factor * pair->a->constant, sum);
        return pair->b->op == PAIR_constant && pair_linear(pair->a, factor * pair->b->constant, sum);
    default: return false;
    }
}

bool pair_follows(const PairRule *index, PairLinear *sum) {
    *sum = (PairLinear){0};
    return pair_linear(index, 1, sum) && sum->number == 0 && (sum->key == 0 || sum->key == 1) &&
           fabs(sum->query) <= 1 && sum->constant == floor(sum->constant);
}

bool pair_comparison(const PairRule *pair, PairLinear *sum) {
    *sum = (PairLinear){0};
    const bool equality = pair->op == PAIR_equals || pair->op == PAIR_differs;
    if (pair->op != PAIR_below && pair->op != PAIR_at_most && !equality) return false;
    if (!pair_linear(pair->a, 1, sum) || !pair_linear(pair->b, -1, sum)) return false;
    /* Sums of positions are whole numbers: x + c < 0 holds from the first whole number below -c on. */
    if (sum->query != floor(sum->query) || sum->key != floor(sum->key) || sum->number != floor(sum->number))
        return false;
    if (equality) return sum->constant == floor(sum->constant);
    sum->constant = pair->op == PAIR_below ? floor(sum->constant) : ceil(sum->constant) - 1;
    return true;
}

bool pair_shows_own(const PairRule *pair) {
    PairLinear sum;
    if (pair->op == PAIR_and) return pair_shows_own(pair->a) && pair_shows_own(pair->b);
    if (pair->op == PAIR_or) return pair_shows_own(pair->a) || pair_shows_own(pair->b);
    if (!pair_comparison(pair, &sum) || sum.key + sum.query != 0 || sum.number != 0) return false;
    if (pair->op == PAIR_equals) return sum.constant == 0;
    return pair->op == PAIR_differs ? sum.constant != 0 : sum.constant < 0;
}

bool pair_looks_back(const PairRule *pair) {
    PairLinear sum;
    if (pair->op == PAIR_and) return pair_looks_back(pair->a) || pair_looks_back(pair->b);
    if (pair->op == PAIR_or) return pair_looks_back(pair->a) && pair_looks_back(pair->b);
    if (pair->op == PAIR_differs || !pair_comparison(pair, &sum) || sum.number != 0) return false;
    /* The sum is factor * (key - query) + constant, with a factor above 0. */
    if (sum.key < 0 && pair->op == PAIR_equals) sum = (PairLinear){-sum.query, -sum.key, 0, -sum.constant, NULL};
    if (sum.key <= 0 || sum.query != -sum.key) return false;
    return pair->op == PAIR_equals ? sum.constant >= 0 : sum.constant >= -sum.key;
}

static const PairRule *negated(Arena *arena, const PairRule *pair) {
    return pair->op == PAIR_sub ? pair_apply(arena, PAIR_sub, pair->b, pair->a)
                                : pair_apply(arena, PAIR_sub, pair_constant(arena, 0), pair);
}

const PairRule *pair_without_abs(Arena *arena, const PairRule *pair) {
    const PairRule *a = pair->a, *b = pair->b;
    if (pair->op == PAIR_and || pair->op == PAIR_or)
        return pair_apply(arena, pair->op, pair_without_abs(arena, a), pair_without_abs(arena, b));
    if (pair->op != PAIR_below && pair->op != PAIR_at_most) return pair;
    if (a->op == PAIR_abs)
        return pair_apply(arena, PAIR_and, pair_apply(arena, pair->op, a->a, b),
                          pair_apply(arena, pair->op, negated(arena, a->a), b));
    if (b->op == PAIR_abs)
        return pair_apply(arena, PAIR_or, pair_apply(arena, pair->op, a, b->a),
                          pair_apply(arena, pair->op, a, negated(arena, b->a)));
    return pair;
}

const char *pair_name(PairOp op) { return ops[op].name; }

const char *pair_spelling(PairOp op) { return ops[op].spelling; }

const char *pair_function(PairOp op) { return ops[op].function; }

int pair_arity(PairOp op) { return ops[op].arity; }

enum { FUNCTION_LEVEL = 6 };

PairOp pair_named(const char *spelling, int arity) {
    PairOp op = PAIR_COUNT;
    for (int i = 0; i < PAIR_COUNT; i++)
        if (ops[i].level == FUNCTION_LEVEL && ops[i].arity == arity && strcmp(ops[i].spelling, spelling) == 0)
            op = (PairOp)i;
    return op;
}

static void print(Text *out, const PairRule *pair, int level);

/* Prints a bit as the condition that it is. Returns false if the rule is not of a bit. */
static bool print_bit(Text *out, const PairRule *pair) {
    const bool differs = pair->op == PAIR_differs;
    if (!differs && pair->op != PAIR_equals) return false;
    if (!pair_is_bit(pair->a)) return false;
    text_printf(out, "%sbit(%s[%s], ", differs ? "" : "not ", pair->a->name,
                pair->a->op == PAIR_bit_of_query ? "q" : "k");
    print(out, pair->a->a, 0);
    text_printf(out, ")");
    return true;
}

/* An expression of a lower level than `level` stands in parentheses. */
static void print(Text *out, const PairRule *pair, int level) {
    if (print_bit(out, pair)) return;
    if (pair->op == PAIR_single) {
        print(out, pair->a, level);
        return;
    }
    switch (pair->op) {
    case PAIR_constant: text_printf(out, "%s", number_text(out->arena, pair->constant)); return;
    case PAIR_query: text_printf(out, "q"); return;
    case PAIR_key: text_printf(out, "k"); return;
    case PAIR_score: text_printf(out, "%s", pair->name ? pair->name : "s"); return;
    case PAIR_head: text_printf(out, "h"); return;
    case PAIR_index: text_printf(out, "i"); return;
    case PAIR_number: text_printf(out, "%s", pair->name); return;
    case PAIR_of_head: text_printf(out, "%s[h]", pair->name); return;
    case PAIR_of_query: text_printf(out, "%s[q]", pair->name); return;
    case PAIR_of_key: text_printf(out, "%s[k]", pair->name); return;
    case PAIR_table:
        text_printf(out, "%s[h, ", pair->name);
        print(out, pair->a, 0);
        text_printf(out, "]");
        return;
    case PAIR_list: case PAIR_let: case PAIR_entry:
        text_printf(out, "%s[%s", pair->name, pair_is_learned(pair) && pair->table->heads ? "h, " : "");
        print(out, pair->a, 0);
        text_printf(out, "]");
        return;
    case PAIR_given: case PAIR_of_pair: text_printf(out, "%s[q, k]", pair->name); return;
    case PAIR_choose:
        text_printf(out, "(if ");
        print(out, pair->a, 0);
        text_printf(out, " then ");
        print(out, pair->b, 0);
        text_printf(out, " else ");
        print(out, pair->c, 0);
        text_printf(out, ")");
        return;
    default: break;
    }
    const int own = ops[pair->op].level;
    if (pair->op == PAIR_quotient) {
        text_printf(out, "floor(");
        print(out, pair->a, own);
        text_printf(out, " / ");
        print(out, pair->b, own + 1);
        text_printf(out, ")");
        return;
    }
    if (own == FUNCTION_LEVEL) {
        text_printf(out, "%s(", ops[pair->op].spelling);
        print(out, pair->a, 0);
        if (pair->b) text_printf(out, ", ");
        if (pair->b) print(out, pair->b, 0);
        text_printf(out, ")");
        return;
    }
    if (own < level) text_printf(out, "(");
    print(out, pair->a, own);
    text_printf(out, " %s ", ops[pair->op].spelling);
    print(out, pair->b, own + 1);
    if (own < level) text_printf(out, ")");
}

void pair_print(Text *out, const PairRule *pair) { print(out, pair, 0); }

void pair_print_tables(Text *out, const PairRule *pair) {
    if (!pair) return;
    if (pair->op == PAIR_let || pair->op == PAIR_entry) {
        const PairTable *table = pair->table;
        if (table->rule) {
            text_printf(out, ", %s %s[%lld] ", table->name, table->of_heads ? "of heads " : "",
                        (long long)table->count);
            pair_print(out, table->rule);
            pair_print_tables(out, table->rule);
        } else {
            static const char *const blocks[] = {"attention", "stack", "model"};
            text_printf(out, ", learned %s[%lld][%lld] of %s", table->name, (long long)table->heads,
                        (long long)table->count, blocks[table->block]);
        }
    }
    pair_print_tables(out, pair->a);
    pair_print_tables(out, pair->b);
    pair_print_tables(out, pair->c);
}
