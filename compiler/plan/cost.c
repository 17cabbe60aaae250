/* cost.c: the cost of a step, counted from the plan. */
#include "../attnc.h"

#include <math.h>

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
    if (rows >= ROWS_FIXED) return rows_fixed(plan, rows);
    switch (rows) {
    case ROWS_CHUNK: return call->rows;
    case ROWS_SOURCE: return call->source;
    case ROWS_SEQUENCES: return 1;
    case ROWS_FIXED: break;
    }
    return 0;
}

int64_t step_keys(const Plan *plan, const Step *s, const CallRows *call) {
    const AttentionStep *a = &s->attention;
    if (a->key_cache == NO_CACHE) return rows_in(plan, a->key_rows, call);
    bool of_source = plan->program->caches[a->key_cache].slot.space == SPACE_SOURCE;
    return of_source ? call->source : call->past + call->rows;
}

/* Returns the bound of a query, limited to 0 to `most`, or `none` where there is no bound. Numbers that only the call
 * knows count as `most`. */
static double bound_at(const PairRule *bound, int64_t query, double most, double none) {
    const PairAt at = {.query = (double)query, .inputs = {{.number = most}, {.number = most}}};
    return bound ? fmin(fmax(pair_value(bound, &at), 0), most) : none;
}

/* Returns how many of `count` keys the bounds show to a query, as if no other condition hid any. */
static double keys_seen(const KeyBounds *b, int64_t query, double count) {
    const double end = bound_at(b->limit, query, count, count), low = bound_at(b->low, query, end, 0);
    const double high = bound_at(b->high, query, end, end), first = bound_at(b->leading, query, end, 0);
    return first + fmax(high - fmax(low, first), 0);
}

/* The number of pairs of a query and a visible key. */
static double visible_pairs(const KeyBounds *b, int64_t queries, int64_t keys, int64_t past) {
    PairLinear limit = {0};
    if (!b->limit && !b->low) return (double)queries * (double)keys;
    if (!b->low && pair_linear(b->limit, 1, &limit) && limit.query == 1 && limit.number == 0 && limit.constant == 1) {
        /* a loop over rows would take long for millions of rows in thousands of layers */
        int64_t fewer = keys < past ? 0 : keys - past < queries ? keys - past : queries; /* see not all keys */
        double n = (double)fewer;
        return n * (double)(past + 1) + n * (n - 1) / 2 + (double)(queries - fewer) * (double)keys;
    }
    double pairs = 0;
    for (int64_t i = past; i < past + queries; i++) pairs += keys_seen(b, i, (double)keys);
    return pairs;
}

int64_t step_rows(const Plan *plan, const Step *s, const CallRows *call) {
    return rows_in(plan, s->rows, call) * s->times;
}

/* The products of vectors of a head that a score adds up. */
static int64_t score_products(const AttentionStep *a) {
    return 1 + (a->by_query != NO_PACKED) + (a->by_key != NO_PACKED);
}

double step_flops(const Plan *plan, const Step *s, const CallRows *call) {
    if (s->kind == STEP_GEMM) {
        int64_t columns = 0; /* without the padding between parts */
        for (int p = 0; p < s->gemm.parts; p++) columns += packed_rows(&plan->program->packed[s->gemm.weight + p]);
        if (s->gemm.heads) columns *= s->gemm.heads;
        return 2.0 * (double)step_rows(plan, s, call) * (double)s->gemm.k * (double)columns;
    }
    if (s->kind != STEP_ATTENTION) return 0;
    const AttentionStep *a = &s->attention;
    double pairs = visible_pairs(&a->bounds, rows_in(plan, s->rows, call), step_keys(plan, s, call),
                                 a->past ? call->past : 0);
    return 2.0 * (double)a->heads * pairs * (double)(score_products(a) * a->head_dim + a->value_dim);
}

/* The work of an element of a norm, of an activation or of a softmax. */
enum { ELEMENT_WORK = 10 };

int64_t step_work(const Step *s) {
    if (s->kind == STEP_EXCHANGE) return 0; /* of the caller's thread alone */
    if (s->kind == STEP_GEMM) return s->gemm.k * gemm_columns(s);
    if (s->kind != STEP_ATTENTION) return s->n * ELEMENT_WORK;
    const AttentionStep *a = &s->attention;
    bool additive = a->vector != NO_PACKED; /* each product takes a tanh */
    const int64_t products = score_products(a) * a->head_dim;
    return a->heads * (products * (additive ? ELEMENT_WORK : 1) + a->value_dim + ELEMENT_WORK);
}

/* Of a column: what is packed in rows or in a matrix [columns][]. */
static double packed_bytes_of_column(const Plan *plan, int packed) {
    if (packed == NO_PACKED) return 0;
    const Packed *p = &plan->program->packed[packed];
    return (double)dtype_bytes(p->slot.layout.dtype) * (double)(p->shape.rank > 1 ? packed_columns(p) : 1);
}

static double scaling_bytes(const Plan *plan, const GemmStep *g) {
    return packed_bytes_of_column(plan, g->scales) + packed_bytes_of_column(plan, g->offsets) +
           packed_bytes_of_column(plan, g->outliers);
}

/* Of a key and its value as attention reads them. */
static double key_bytes(const Plan *plan, const AttentionStep *a) {
    const Dtype dtype = a->key_cache == NO_CACHE ? DTYPE_F32 : plan->program->caches[a->key_cache].slot.layout.dtype;
    const double scales = dtype == DTYPE_I8 ? 2 * sizeof(float) : 0;
    return (double)a->kv_heads * ((double)dtype_bytes(dtype) * (double)(a->head_dim + a->value_dim) + scales);
}

double step_bytes(const Plan *plan, const Step *s, const CallRows *call) {
    double rows = (double)step_rows(plan, s, call), floats = rows * (double)s->n, others = 0;
    const GemmStep *g = &s->gemm;
    const AttentionStep *a = &s->attention;
    if (s->kind == STEP_GEMM) {
        size_t bits = dtype_bits(plan->program->packed[g->weight].slot.layout.dtype);
        const double heads = g->heads ? (double)g->heads : 1;
        /* Of experts, a step reads as many as its rows can choose. */
        const double matrices = g->heads ? heads : g->experts ? fmin((double)g->experts->count, rows) : 1;
        others = ((double)bits / 8 * (double)g->k + scaling_bytes(plan, g)) * (double)s->n * matrices;
        floats = heads * (floats + rows * (double)g->k);
        if (gemm_has_residual(g) || gemm_has_factor(g)) floats += rows * (double)s->n;
    } else if (s->kind == STEP_ATTENTION) {
        floats += rows * (double)(a->heads * a->head_dim);
        others = (double)step_keys(plan, s, call) * key_bytes(plan, a);
    } else if (s->kind == STEP_STORE) {
        others = floats * (double)dtype_bytes(plan->program->caches[s->store.cache].slot.layout.dtype);
    } else floats += rows * (double)s->n;
    return (double)sizeof(float) * floats + others;
}

void add_cost(const Plan *plan, const CallRows *call, double calls, double *flops, double *bytes) {
    for (int i = 0; i < plan->n_steps; i++) {
        *flops += step_flops(plan, &plan->steps[i], call) / calls;
        *bytes += step_bytes(plan, &plan->steps[i], call) / calls;
    }
}
