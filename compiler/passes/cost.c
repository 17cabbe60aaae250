/* cost.c: what a step costs, counted from the plan. */
#include "../attnc.h"

static int64_t rows_in(const Plan *plan, RowsKind rows, int64_t n) {
    switch (rows) {
    case ROWS_CHUNK: return n;
    case ROWS_SEQUENCES: return 1;
    case ROWS_PATCHES: return plan->patch_rows;
    }
    return 0;
}

/* Pairs of a query and a key that it sees. */
static double visible_pairs(const OpAttributes *a, int64_t n) {
    double pairs = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t low = a->window && i + 1 > a->window ? i + 1 - a->window : 0, high = a->causal ? i + 1 : n;
        if (a->window && !a->causal && i + a->window < n) high = i + a->window;
        pairs += (double)(high - low);
    }
    return pairs;
}

double step_flops(const Plan *plan, const Step *s, int64_t n) {
    if (s->kind == STEP_GEMM) {
        int64_t columns = 0; /* without the padding between parts */
        int64_t left = s->n;
        for (int p = s->weight; left > 0; p++) {
            columns += plan->program->packed[p].shape.dims[0];
            left -= round_up(plan->program->packed[p].shape.dims[0], 16);
        }
        return 2.0 * (double)rows_in(plan, s->rows, n) * (double)s->k * (double)columns;
    }
    if (s->kind == STEP_ATTENTION)
        return 2.0 * (double)s->a.heads * visible_pairs(&s->a, n) * (double)(s->a.head_dim + s->value_dim);
    return 0;
}

double step_bytes(const Plan *plan, const Step *s, int64_t n) {
    double rows = (double)rows_in(plan, s->rows, n), floats = rows * (double)s->n;
    if (s->kind == STEP_GEMM)
        floats += rows * (double)s->k + (double)s->k * (double)s->n +
                  (s->has_residual || s->has_factor ? rows * (double)s->n : 0);
    else if (s->kind == STEP_ATTENTION)
        floats += rows * (double)(s->a.heads * s->a.head_dim + s->a.kv_heads * (s->a.head_dim + s->value_dim));
    else floats += rows * (double)s->n;
    return 4 * floats;
}
