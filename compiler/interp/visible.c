/* visible.c: evaluates rules of pairs. */
#include "numbers.h"

const bool *visible_pairs(const Interp *in, const Op *op, int64_t n, int64_t m) {
    const PairRule *rule = op->a.visible;
    if (!rule) return NULL;
    const int first = op_rule_input(op), count = pair_inputs(rule);
    const int64_t past = past_of(in, &op->a);
    bool *visible = arena_array(in->arena, (size_t)(n * m), sizeof *visible);
    for (int64_t r = 0; r < n * m; r++) {
        double inputs[MOST_PAIR_INPUTS] = {0};
        for (int i = 0; i < count; i++) {
            const Numbers *input = &in->numbers[op->inputs[first + i]];
            inputs[i] = input->flags ? (double)input->flags[r] : (double)input->ids[0];
        }
        const int64_t query = past + r / m, key = r % m;
        visible[r] = pair_value(rule, (double)query, (double)key, inputs) != 0;
    }
    return visible;
}
