/* rules.c: evaluates rules of pairs, in double or in the fixed arithmetic. */
#include "fixed.h"

#include <math.h>
#include <string.h>

/* The inputs of a rule that have a number for each pair of a query and a key, a bit for each. */
static unsigned of_pairs(const Op *op) {
    unsigned bits = 0;
    for (int i = 0; op_rule_input(op) + i < op->n_inputs; i++) {
        const PairRule *reads = pair_reader(op->a.rule, i);
        if (reads && (reads->op == PAIR_given || reads->op == PAIR_of_pair)) bits |= 1u << i;
    }
    return bits;
}

/* Sets the numbers of pair r, counted row by row, for the inputs of a rule whose bits are set. */
static void set_pair(const Interp *in, const Op *op, unsigned bits, PairAt *pair, int64_t r) {
    const int first = op_rule_input(op);
    for (int i = 0; bits >> i; i++) {
        if (!(bits >> i & 1)) continue;
        const Numbers *input = &in->numbers[op->inputs[first + i]];
        pair->inputs[i].number = input->flags ? (double)input->flags[r]
                                 : input->ids ? (double)input->ids[r]
                                              : (double)input->single[r];
    }
}

/* Gives the rule of an operation its inputs for the first head. */
static void bind(const Interp *in, const Op *op, unsigned by_pair, PairAt *pair) {
    const int first = op_rule_input(op);
    for (int i = 0; first + i < op->n_inputs; i++) {
        const int t = op->inputs[first + i];
        const Numbers *input = &in->numbers[t];
        PairInput *to = &pair->inputs[i];
        if (by_pair >> i & 1) continue; /* set_pair sets the number of each pair */
        if (input->ids) to->number = (double)input->ids[0], to->rows = input->ids;
        else if (in->arithmetic != ARITHMETIC_FREE) to->single = fixed_numbers(in, t);
        else to->single = input->single, to->real = input->real;
        if (to->single) to->number = (double)to->single[0]; /* of a number of the sequence */
    }
}

/* The inputs for one head, given the inputs for the first head. */
static PairAt of_head(const Interp *in, const Op *op, const PairAt *first, int64_t head) {
    PairAt pair = *first;
    for (int i = 0, t = op_rule_input(op); t < op->n_inputs; i++, t++) {
        PairInput *to = &pair.inputs[i];
        if (!to->single && !to->real) continue;
        const PairRule *reads = pair_reader(op->a.rule, i);
        if (reads && (reads->op == PAIR_list || reads->op == PAIR_number || reads->op == PAIR_of_query ||
                      reads->op == PAIR_of_key))
            continue; /* which is the same for all heads */
        const int64_t begin = in->graph->tensors[op->inputs[t]].rank == 2 ? head * extent(in, op->inputs[t], 1) : head;
        if (to->single) to->single += begin;
        else to->real += begin;
        to->number = pair_entry(to, 0);
    }
    return pair;
}

/* Evaluates a rule in f32. A product that is added or subtracted is rounded with the sum where the arithmetic fuses. */
static float fixed_value(Arithmetic way, const PairRule *rule, const PairAt *pair) {
    if (!rule->a || rule->op == PAIR_table || rule->op == PAIR_list || rule->op == PAIR_real)
        return (float)pair_value(rule, pair); /* an index and an argument of `real` are whole numbers */
    if (rule->op == PAIR_choose)
        return fixed_value(way, pair_value(rule->a, pair) != 0 ? rule->b : rule->c, pair);
    const float a = fixed_value(way, rule->a, pair);
    const PairRule *second = rule->b;
    if (second && second->op == PAIR_mul && (rule->op == PAIR_add || rule->op == PAIR_sub)) {
        const float x = fixed_value(way, second->a, pair), y = fixed_value(way, second->b, pair);
        return rule->op == PAIR_add ? fixed_add(way, a, x, y) : fixed_sub(way, a, x, y);
    }
    const float b = second ? fixed_value(way, second, pair) : 0, c = 0; /* only `choose` has a third argument */
    switch (rule->op) {
#define PAIR(name, arity, level, spelling, function, value, single, low, high) \
    case PAIR_##name: return (float)(single);
#include "../rules/pairs.def"
    default: bug("a rule of scores has an operation that no score has");
    }
}

float fixed_formula(Arithmetic way, const PairRule *formula, float x) {
    return fixed_value(way, formula, &(PairAt){.score = (double)x});
}

const bool *visible_pairs(const Interp *in, const Op *op, int64_t heads, int64_t n, int64_t m) {
    if (!op->a.rule) return NULL;
    const int64_t past = past_of(in, &op->a), pairs = n * m;
    const int64_t own = pair_reads(op->a.rule, PAIR_head) ? heads : 1; /* the others see the same keys */
    bool *visible = arena_array(in->arena, (size_t)(heads * pairs), sizeof *visible);
    PairAt pair = {0};
    const unsigned by_pair = of_pairs(op);
    bind(in, op, by_pair, &pair);
    for (int64_t r = 0; r < own * pairs; r++) {
        const int64_t head = r / pairs, query = past + r % pairs / m;
        pair.head = (double)head;
        pair.query = (double)query;
        pair.key = (double)(r % m);
        set_pair(in, op, by_pair, &pair, r % pairs);
        visible[r] = pair_value(op->a.rule, &pair) != 0;
    }
    for (int64_t head = own; head < heads; head++)
        memcpy(visible + head * pairs, visible, (size_t)pairs * sizeof *visible);
    return visible;
}

void run_rescore(const Interp *in, const Op *op, double *out) {
    const Numbers scores = in->numbers[op->inputs[0]];
    const bool is_free = in->arithmetic == ARITHMETIC_FREE;
    const int64_t heads = extent(in, op->result, 0), n = extent(in, op->result, 1), m = extent(in, op->result, 2);
    const int64_t past = past_of(in, &op->a);
    PairAt first = {0};
    const unsigned by_pair = of_pairs(op);
    bind(in, op, by_pair, &first);
    for (int64_t h = 0; h < heads; h++) {
        PairAt pair = of_head(in, op, &first, h);
        for (int64_t r = 0; r < n * m; r++) {
            const int64_t query = past + r / m, key = r % m, i = h * n * m + r;
            pair.query = (double)query;
            pair.key = (double)key;
            pair.score = at(scores, i);
            pair.head = (double)h;
            set_pair(in, op, by_pair, &pair, r);
            out[i] = is_free ? pair_value(op->a.rule, &pair) : (double)fixed_value(in->arithmetic, op->a.rule, &pair);
        }
    }
}
