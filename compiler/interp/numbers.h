/* numbers.h: the numbers of the tensors of a graph while the interpreter runs it. Included by interp/ alone. */
#ifndef NUMBERS_H
#define NUMBERS_H

#include "rounding.h"

/* What a softmax in the fixed order leaves for the weighted sum: a power of 2 for each key [h][n][m], what sums fade by
 * before each block of keys [h][n][blocks], and what a row is multiplied by in the end [h][n]. */
typedef struct FixedWeights {
    const float *powers, *fades, *inverse;
    int64_t blocks;
} FixedWeights;

/* The numbers of a tensor. Weights and f32 inputs stay single, ids are int64, masks are bytes, the rest is double. */
typedef struct Numbers {
    const float *single;
    const double *real;
    const float *scales; /* of the rows of an int8 weight without groups, else NULL */
    const int64_t *ids;
    const uint8_t *flags;
    const FixedWeights *fixed; /* of the result of a softmax in the fixed order; else NULL */
    const double *doubts;      /* of the result of a softmax whose weights the C may round otherwise: by how much each
                                * weight may differ; else NULL */
} Numbers;

typedef struct Interp {
    Arena *arena;
    const Module *module;
    const Graph *graph;
    const Weights *weights;
    const int64_t *symbols;
    Numbers *numbers; /* of each tensor */
    Rounding rounding;
    Arithmetic arithmetic;      /* FREE: in double */
    const QuantizedRows *given; /* NULL: rows are rounded here */
    QuantizeReport *report;
    const double *spreads;      /* of each tensor, or NULL */
} Interp;

static inline int64_t size_of(const Interp *in, Dim dim) {
    return dim.symbol ? in->symbols[dim.symbol - 1] : dim.n;
}
static inline int64_t extent(const Interp *in, int tensor, int d) {
    const Tensor *t = &in->graph->tensors[tensor];
    return d < t->rank ? size_of(in, t->dims[d]) : 1;
}
static inline double at(Numbers n, int64_t i) { return n.single ? (double)n.single[i] : n.real[i]; }
static inline double clip(double x, double bound) { return x > bound ? bound : x < -bound ? -bound : x; }
static inline int64_t past_of(const Interp *in, const OpAttributes *a) {
    return a->past ? in->symbols[a->past - 1] : 0;
}

/* Where the tables of a rope [rows][width/2] have the angle of pair p of row i of n. Sequences of more than `offset`
 * rows have a second table, which begins at row `offset`. */
static inline int64_t rope_angle(const Interp *in, const Op *op, int64_t n, int64_t i, int64_t p) {
    const OpAttributes *a = &op->a;
    const int64_t past = past_of(in, a), pairs = a->width / 2;
    if (op->n_inputs == 3) return (past + i + (past + n > a->offset ? a->offset : 0)) * pairs + p;
    int section = 0;
    for (int64_t end = a->sections ? a->sections[0] : pairs; p >= end; end += a->sections[section]) section++;
    return in->numbers[op->inputs[3 + section]].ids[i] * pairs + p;
}

/* What the sum of n rows, or n weighted rows, is divided by in a mean. */
static inline double pool_divisor(PoolKind kind, int64_t n) {
    if (kind == POOL_WEIGHTED_MEAN) return (double)n * (double)(n + 1) / 2;
    return kind == POOL_MEAN_SQRT ? sqrt((double)n) : (double)n;
}

/* The rows of x that a pool reads: those from its offset on, or the one that the ids of the tokens choose. */
static inline RowRange pool_range(const Interp *in, const Op *op) {
    const int64_t rows = extent(in, op->inputs[0], 0);
    if (!pool_reads_ids(op->a.pool)) return (RowRange){op->a.offset, rows};
    const int64_t *ids = in->numbers[op->inputs[1]].ids, n = extent(in, op->inputs[1], 0);
    int64_t row = -1;
    if (op->a.pool == POOL_LAST_SKIP) {
        for (int64_t i = 0; i < n; i++)
            if (ids[i] != op->a.token) row = i;
        row = (row < 0 ? 0 : row) + op->a.shifted;
        if (row >= rows) row = rows - 1;
    } else {
        for (int64_t i = 0; i < n && i < rows; i++)
            if (ids[i] == op->a.token) row = i;
        if (row < 0) row = rows - 1;
    }
    return (RowRange){row, row + 1};
}

/* --- interp/inputs.c: refuses `count` numbers of an input that are outside of its range. */
void check_input(const Graph *graph, const GraphInput *input, const void *data, int64_t count);
/* --- interp/counts.c: operations that count the ids of a text. */
void run_tally(const int64_t *ids, const Numbers *counts, int64_t past, int64_t n, int64_t token, double *out);
void run_keep(Arithmetic way, const int64_t *ids, const OpAttributes *a, int64_t n, double *out);
void run_pick_rows(Numbers table, const int64_t *ids, Numbers counts, const OpAttributes *a, int64_t n, int64_t d,
                   double *out);

/* --- interp/products.c: products of rows with matrices, in double. */
/* The dot product of a[i..i+d-1] and b[j..j+d-1], whose exact value is `sum`, as f32 arithmetic might give it: rounded
 * at the magnitude of sum(|a*b|), or NaN if that overflows; the products of an int8 weight are summed before they are
 * multiplied by the scale of its row. Without rounding it is `sum`. */
double rounded_dot(Rounding *how, double sum, Numbers a, int64_t i, Numbers b, int64_t j, int64_t d);
/* x [n][k], weight [d][k], bias [d] or none -> out [n][d] */
void run_linear(Arena *arena, Rounding *how, Numbers x, Numbers weight, const Numbers *bias, int64_t n, int64_t k,
                int64_t d, double *out);

/* --- interp/attention.c */
/* query [n][heads*d], key [m][kv_heads*d], or query [n][d], key [m][d] and vector [d] -> out [heads][n][m] */
void run_scores(Interp *in, const Op *op, Numbers query, Numbers key, Numbers vector, double *out);
/* scores [heads][n][m], rows: queries [n][heads*d] or keys [m][kv_heads*d], table [heads or 1][d][width] ->
 * out [heads][n][m]. Column `offset` of the table is that of distance 0. */
void run_distance_scores(Interp *in, const Op *op, Numbers scores, Numbers rows, Numbers table, double *out);
/* scores [heads][n][m], sink [heads] or none -> out [heads][n][m]. A query without a visible key has weights of 0. A
 * learned sink is one more score, which takes part in the sum alone. */
void run_softmax(Interp *in, const Op *op, Numbers scores, const Numbers *sink, double *out);
/* scores [heads][n][m], sink [heads] or none -> out [heads][n] */
void run_log_sum(const Interp *in, const Op *op, Numbers scores, const Numbers *sink, double *out);
/* weights [heads][n][m], value [m][kv_heads*d] -> out [n][heads*d]. The value of a hidden key is not read, since
 * 0 * inf is NaN; the value of a visible key is read even if its weight is 0. Code that divides by the softmax's sum at
 * the end may have weights of up to 1 before the division, so the result is NaN if the values' sum overflows f32. */
void run_weighted_sum(const Interp *in, const Op *op, Numbers weights, Numbers value, double *out);
/* Where weights are rounded and the C's weighted sums are given, compares them with those of `out`, which they then
 * replace. */
void adopt_weighted_sum(Interp *in, const Op *op, Numbers weights, Numbers value, double *out);

/* --- interp/rules.c */
/* scores [heads][n][m] and the inputs of the rule -> out [heads][n][m] */
void run_rescore(const Interp *in, const Op *op, double *out);
/* Returns, for each head, query and key [heads][n][m], whether the query sees the key by the rule of the op; NULL
 * if it sees all. */
const bool *visible_pairs(const Interp *in, const Op *op, int64_t heads, int64_t n, int64_t m);
static inline bool is_visible(const bool *visible, int64_t pair) { return !visible || visible[pair]; }

#endif
