/* numbers.h: the numbers of the tensors of a graph while the interpreter runs it. Included by interp/ alone. */
#ifndef NUMBERS_H
#define NUMBERS_H

#include "rounding.h"

/* The keys that are visible to the queries of a softmax. `past` rows precede query 0; `mask` is [n][m] or NULL. */
typedef struct VisibleKeys {
    const OpAttributes *rules; /* causal, window, sink */
    const uint8_t *mask;
    int64_t prefix, past;
} VisibleKeys;

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
    const VisibleKeys *visibility; /* of the result of a softmax; NULL: every key is visible */
    const FixedWeights *fixed;     /* of the result of a softmax in the fixed order; else NULL */
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
static inline int64_t past_of(const Interp *in, const OpAttributes *a) {
    return a->past ? in->symbols[a->past - 1] : 0;
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

/* Whether key j of m is visible to query `row`. */
static inline bool visible(const VisibleKeys *v, int64_t m, int64_t row, int64_t j) {
    if (!v) return true;
    const OpAttributes *a = v->rules;
    int64_t i = v->past + row;
    if (a->has_prefix) {
        if (j > i && j >= v->prefix) return false;
    } else if (a->causal && j > i) {
        return false;
    }
    if (a->window && j >= a->sink && (i > j ? i - j : j - i) >= a->window) return false;
    return !v->mask || v->mask[row * m + j];
}

#endif
