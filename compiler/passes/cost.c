/* cost.c: what a step costs, counted from the plan. */
#include "../attnc.h"

static int64_t within(Length length, int64_t n) { return length.exact || n > length.n ? length.n : n; }

CallRows call_rows(const Plan *plan, int64_t n) {
    return (CallRows){.rows = within(plan->seq, n), .source = within(plan->source_seq, n)};
}

Length call_bound(const Plan *plan) {
    Length open = {0, false}, source = plan->source_seq;
    if (!plan->seq.exact) open.n = plan->seq.n;
    if (!source.exact && source.n > open.n) open.n = source.n;
    return open.n ? open : plan->seq;
}

static int64_t rows_in(const Plan *plan, RowsKind rows, const CallRows *call) {
    switch (rows) {
    case ROWS_CHUNK: return call->rows;
    case ROWS_SOURCE: return call->source;
    case ROWS_SEQUENCES: return 1;
    case ROWS_PATCHES: return plan->patch_rows;
    }
    return 0;
}

static int64_t keys_of(const Plan *plan, const Step *s, const CallRows *call) {
    if (s->keys != NO_CACHE) return plan->program->caches[s->keys].of_source ? call->source : call->past + call->rows;
    return rows_in(plan, s->key_rows, call);
}

/* Pairs of a query and a key that it sees; without a prefix or a given mask, which are known only at the call. */
static double visible_pairs(const OpAttributes *a, int64_t queries, int64_t keys, int64_t past) {
    if (!a->window) { /* row by row takes long for millions of rows in thousands of layers */
        if (!a->causal) return (double)queries * (double)keys;
        int64_t fewer = keys < past ? 0 : keys - past < queries ? keys - past : queries; /* see not all keys */
        double n = (double)fewer;
        return n * (double)(past + 1) + n * (n - 1) / 2 + (double)(queries - fewer) * (double)keys;
    }
    double pairs = 0;
    for (int64_t i = past; i < past + queries; i++) {
        int64_t low = i + 1 > a->window ? i + 1 - a->window : 0, high = a->causal ? i + 1 : keys;
        if (!a->causal && i + a->window < high) high = i + a->window;
        if (high > keys) high = keys;
        if (a->sink) pairs += (double)(low < a->sink ? low : a->sink);
        if (high > low) pairs += (double)(high - low);
    }
    return pairs;
}

int64_t step_rows(const Plan *plan, const Step *s, const CallRows *call) { return rows_in(plan, s->rows, call); }

double step_flops(const Plan *plan, const Step *s, const CallRows *call) {
    if (s->kind == STEP_GEMM) {
        int64_t columns = 0; /* without the padding between parts */
        int64_t left = s->n;
        for (int p = s->weight; left > 0; p++) {
            columns += plan->program->packed[p].shape.dims[0];
            left -= round_up(plan->program->packed[p].shape.dims[0], 16);
        }
        return 2.0 * (double)rows_in(plan, s->rows, call) * (double)s->k * (double)columns;
    }
    if (s->kind != STEP_ATTENTION) return 0;
    double pairs =
        visible_pairs(&s->a, rows_in(plan, s->rows, call), keys_of(plan, s, call), s->a.past ? call->past : 0);
    return 2.0 * (double)s->a.heads * pairs * (double)(s->a.head_dim + s->value_dim);
}

/* What an element of a norm, of an activation or of a softmax costs. */
enum { ELEMENT_WORK = 10 };

int64_t step_work(const Step *s) {
    if (s->kind == STEP_GEMM) return s->k * s->n;
    if (s->kind != STEP_ATTENTION) return s->n * ELEMENT_WORK;
    bool additive = s->vector != NO_PACKED; /* a tanh a product */
    return s->a.heads * (s->a.head_dim * (additive ? ELEMENT_WORK : 1) + s->value_dim + ELEMENT_WORK);
}

double step_bytes(const Plan *plan, const Step *s, const CallRows *call) {
    double rows = (double)rows_in(plan, s->rows, call), floats = rows * (double)s->n;
    if (s->kind == STEP_GEMM)
        floats += rows * (double)s->k + (double)s->k * (double)s->n +
                  (s->has_residual || s->has_factor ? rows * (double)s->n : 0);
    else if (s->kind == STEP_ATTENTION)
        floats += rows * (double)(s->a.heads * s->a.head_dim) +
                  (double)(keys_of(plan, s, call) * s->a.kv_heads * (s->a.head_dim + s->value_dim));
    else floats += rows * (double)s->n;
    return 4 * floats;
}
