/* rules.c: evaluates rules of pairs, in double or in the fixed arithmetic. */
#include "fixed.h"

#include <math.h>

/* Gives the rule of an op its inputs for a head, and for pair [query][key]. */
static void bind(const Interp *in, const Op *op, int64_t head, int64_t pair, PairAt *at) {
    const int first = op_rule_input(op);
    for (int i = 0; first + i < op->n_inputs; i++) {
        const int t = op->inputs[first + i];
        const Numbers *input = &in->numbers[t];
        const bool is_fixed = in->arithmetic != ARITHMETIC_FREE && !input->flags && !input->ids;
        const int64_t begin = in->graph->tensors[t].rank == 2 ? head * extent(in, t, 1) : head;
        PairInput *to = &at->inputs[i];
        if (input->flags) to->number = (double)input->flags[pair];
        else if (input->ids) to->number = (double)input->ids[0];
        else if (is_fixed) to->single = fixed_numbers(in, t) + begin;
        else if (input->single) to->single = input->single + begin;
        else to->real = input->real + begin;
        if (to->single || to->real) to->number = pair_entry(to, 0);
    }
}

/* In f32; the sum and the difference with a product are those of the arithmetic. */
static float fixed_value(Arithmetic way, const PairRule *rule, const PairAt *at) {
    if (!rule->b || rule->op == PAIR_table) {
        if (rule->op == PAIR_abs) return fabsf(fixed_value(way, rule->a, at));
        return (float)pair_value(rule, at);
    }
    const float a = fixed_value(way, rule->a, at);
    const PairRule *second = rule->b;
    if (second->op == PAIR_mul && (rule->op == PAIR_add || rule->op == PAIR_sub)) {
        const float x = fixed_value(way, second->a, at), y = fixed_value(way, second->b, at);
        return rule->op == PAIR_add ? fixed_add(way, a, x, y) : fixed_sub(way, a, x, y);
    }
    const float b = fixed_value(way, second, at);
    switch (rule->op) {
    case PAIR_add: return a + b;
    case PAIR_sub: return a - b;
    case PAIR_mul: return a * b;
    default: bug("a rule of scores has an operation that no score has");
    }
}

const bool *visible_pairs(const Interp *in, const Op *op, int64_t n, int64_t m) {
    if (!op->a.rule) return NULL;
    const int64_t past = past_of(in, &op->a);
    bool *visible = arena_array(in->arena, (size_t)(n * m), sizeof *visible);
    for (int64_t r = 0; r < n * m; r++) {
        const int64_t query = past + r / m, key = r % m;
        PairAt at = {.query = (double)query, .key = (double)key};
        bind(in, op, 0, r, &at);
        visible[r] = pair_value(op->a.rule, &at) != 0;
    }
    return visible;
}

void run_rescore(const Interp *in, const Op *op, double *out) {
    const Numbers scores = in->numbers[op->inputs[0]];
    const bool is_free = in->arithmetic == ARITHMETIC_FREE;
    const int64_t heads = extent(in, op->result, 0), n = extent(in, op->result, 1), m = extent(in, op->result, 2);
    const float *fixed = is_free ? NULL : fixed_numbers(in, op->inputs[0]);
    for (int64_t h = 0; h < heads; h++) {
        PairAt at = {0};
        bind(in, op, h, 0, &at);
        for (int64_t r = 0; r < n * m; r++) {
            const int64_t query = past_of(in, &op->a) + r / m, key = r % m, i = h * n * m + r;
            at.query = (double)query;
            at.key = (double)key;
            at.score = is_free ? pair_entry(&(PairInput){0, scores.single, scores.real}, i) : (double)fixed[i];
            out[i] = is_free ? pair_value(op->a.rule, &at) : (double)fixed_value(in->arithmetic, op->a.rule, &at);
        }
    }
}
