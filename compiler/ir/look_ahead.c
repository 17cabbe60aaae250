/* look_ahead.c: rows of a decoder whose masks show them later rows. Such a row and what it sees belong in one call. */
#include "../attnc.h"

#include <string.h>

bool graph_dim_is_total(const Graph *graph, Dim rows) {
    return rows.symbol && strcmp(graph->symbols[rows.symbol - 1].name, "total") == 0;
}

bool op_looks_ahead(const Graph *decode, const Op *op) {
    if (op->kind != OP_softmax || !op->a.past || !op->a.rule) return false;
    const bool of_self = graph_dim_is_total(decode, decode->tensors[op->result].dims[2]);
    /* the rows of a prefix, whose length is a number, are in the first call */
    return of_self && !rule_reads_prefix(op->a.rule) && !pair_looks_back(op->a.rule);
}

bool graph_looks_ahead(const Graph *decode) {
    for (int o = 0; decode && o < decode->n_ops; o++)
        if (op_looks_ahead(decode, &decode->ops[o])) return true;
    return false;
}

int graph_kept_state(const Graph *decode, const GraphInput *input) {
    for (int s = 0; s < decode->n_states && role_is_of_rows(input->kind->role); s++) {
        const int out = decode->states[s].out;
        if (out != NO_TENSOR && decode->ops[decode->tensors[out].op].inputs[1] == input->tensor) return s;
    }
    return -1;
}

/* Sets the numbers that a rule of the operation reads: those of rows, or the number of the sequence. */
static void set_rows(const Graph *decode, const Op *op, const PairInput *numbers, PairAt *at) {
    const int first = op_rule_input(op);
    for (int i = 0; first + i < op->n_inputs; i++) {
        const int read = op->inputs[first + i];
        const Tensor *t = &decode->tensors[read];
        const int input = t->kind == TENSOR_VALUE ? decode->ops[t->op].inputs[1] : read;
        for (int k = 0; k < decode->n_inputs; k++) {
            if (input != decode->inputs[k].tensor) continue;
            at->inputs[i] = numbers[decode->inputs[k].kind->role];
            PairInput *number = &at->inputs[i];
            if (t->kind != TENSOR_INPUT) continue;
            if (number->rows) number->number = (double)number->rows[0];
            if (number->single || number->real) number->number = pair_entry(number, 0);
        }
    }
}

/* Whether some head's query sees the key. */
static bool sees(const Graph *decode, const Op *op, PairAt *at) {
    const int64_t heads = pair_reads(op->a.rule, PAIR_head) ? decode->tensors[op->result].dims[0].n : 1;
    for (int64_t head = 0; head < heads; head++) {
        at->head = (double)head;
        if (pair_value(op->a.rule, at) != 0) return true;
    }
    return false;
}

int64_t graph_looks_across(const Graph *decode, const PairInput *numbers, int64_t split, int64_t total) {
    for (int o = 0; decode && o < decode->n_ops; o++) {
        const Op *op = &decode->ops[o];
        if (!op_looks_ahead(decode, op)) continue;
        PairAt at = {0};
        set_rows(decode, op, numbers, &at);
        for (int64_t q = 0; q < split; q++)
            for (int64_t k = split; k < total; k++) {
                at.query = (double)q;
                at.key = (double)k;
                if (sees(decode, op, &at)) return q;
            }
    }
    return -1;
}

void graph_cuts(const Graph *decode, const PairInput *numbers, int64_t total, bool *cuts) {
    for (int64_t row = 0; row <= total; row++) cuts[row] = true;
    for (int o = 0; decode && o < decode->n_ops; o++) {
        const Op *op = &decode->ops[o];
        if (!op_looks_ahead(decode, op)) continue;
        PairAt at = {0};
        set_rows(decode, op, numbers, &at);
        int64_t seen = 0; /* by the rows up to q */
        for (int64_t q = 0; q < total; q++) {
            if (q >= 1 && seen >= q) cuts[q] = false;
            at.query = (double)q;
            for (int64_t k = total - 1; k > q && k > seen; k--) {
                at.key = (double)k;
                if (sees(decode, op, &at)) seen = k;
            }
        }
    }
}
