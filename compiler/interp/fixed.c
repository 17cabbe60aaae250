/* fixed.c: rows and columns in the fixed order of f32 operations. */
#include "fixed.h"

#include <math.h>

/* ---------------------------------------------------------------- norms */

/* Rows of at least 8 lanes have two or four sums in each lane where that divides them, which take turns. */
static int64_t chains_of(int64_t d) {
    const int64_t vectors = d / FIXED_LANES;
    return vectors < 8 ? 1 : vectors % 4 == 0 ? 4 : vectors % 2 == 0 ? 2 : 1;
}

/* The sum of x[0..d-1], or of their squares. */
static float row_sum(Arithmetic way, const float *x, int64_t d, bool squares) {
    float sums[4][FIXED_LANES] = {{0}};
    const int64_t chains = chains_of(d), whole = d / FIXED_LANES * FIXED_LANES;
    for (int64_t c = 0; c < whole; c++) {
        float *sum = &sums[c / FIXED_LANES % chains][c % FIXED_LANES];
        *sum = squares ? fixed_add(way, *sum, x[c], x[c]) : *sum + x[c];
    }
    for (int l = 0; l < FIXED_LANES; l++) {
        if (chains == 4) sums[0][l] = (sums[0][l] + sums[1][l]) + (sums[2][l] + sums[3][l]);
        if (chains == 2) sums[0][l] += sums[1][l];
    }
    for (int64_t c = whole; c < d; c++) {
        float *sum = &sums[0][c % FIXED_LANES];
        *sum = squares ? fixed_add(way, *sum, x[c], x[c]) : *sum + x[c];
    }
    return fixed_tree(sums[0]);
}

typedef struct NormRow {
    const OpAttributes *a;
    const float *weight, *bias; /* of the group's columns; bias may be NULL */
    bool centered;
    float *x; /* room for d numbers */
} NormRow;

static void norm_group(Arithmetic way, const NormRow *norm, const float *from, int64_t d, double *out) {
    const float inverse_d = (float)(1 / (double)d), first = norm->centered && d <= 3 ? from[0] : 0.0f;
    float *x = norm->x;
    for (int64_t c = 0; c < d; c++) x[c] = norm->centered && d <= 3 ? from[c] - first : from[c];
    if (norm->centered) {
        const float total = row_sum(way, x, d, false);
        for (int64_t c = 0; c < d; c++) x[c] = fixed_sub(way, x[c], total, inverse_d);
    }
    const float variance = fixed_add(way, (float)norm->a->eps, row_sum(way, x, d, true), inverse_d);
    const float inverse = 1.0f / sqrtf(variance);
    for (int64_t c = 0; c < d; c++) {
        const float gain = norm->a->plus_one ? norm->weight[c] + 1 : norm->weight[c], scaled = x[c] * inverse;
        out[c] = (double)(norm->bias ? fixed_add(way, norm->bias[c], scaled, gain) : scaled * gain);
    }
}

static void norm(Interp *in, const Op *op, double *out) {
    const int64_t n = extent(in, op->result, 0), columns = extent(in, op->result, 1), groups = op->a.groups;
    const int64_t d = columns / groups;
    const bool per_group = in->graph->tensors[op->inputs[1]].rank == 2;
    const float *x = fixed_numbers(in, op->inputs[0]), *weight = fixed_numbers(in, op->inputs[1]);
    const float *bias = op->n_inputs > 2 ? fixed_numbers(in, op->inputs[2]) : NULL;
    NormRow row = {.a = &op->a,
                   .centered = op->kind == OP_layernorm,
                   .x = arena_array(in->arena, (size_t)d, sizeof *row.x)};
    for (int64_t g = 0; g < n * groups; g++) {
        const int64_t first = per_group ? g % groups * d : 0;
        row.weight = weight + first;
        row.bias = bias ? bias + first : NULL;
        norm_group(in->arithmetic, &row, x + g * d, d, out + g * d);
    }
}

/* ---------------------------------------------------------------- rotation, heads */

static void rope(Interp *in, const Op *op, double *out) {
    const OpAttributes *a = &op->a;
    const float *x = fixed_numbers(in, op->inputs[0]), *cosine = fixed_numbers(in, op->inputs[1]),
                *sine = fixed_numbers(in, op->inputs[2]);
    const int64_t n = extent(in, op->result, 0), pairs = a->width / 2, columns = a->heads * a->head_dim;
    for (int64_t i = 0; i < n * columns; i++) out[i] = (double)x[i];
    for (int64_t i = 0; i < n * a->heads; i++)
        for (int64_t p = 0; p < pairs; p++) {
            const int64_t angle = rope_angle(in, op, n, i / a->heads, p);
            const int64_t first = i * a->head_dim + (a->interleaved ? 2 * p : p);
            const int64_t second = first + (a->interleaved ? 1 : pairs);
            const float u = x[first], w = x[second], c = cosine[angle], s = sine[angle];
            out[first] = (double)fixed_sub(in->arithmetic, u * c, w, s);
            out[second] = (double)fixed_add(in->arithmetic, w * c, u, s);
        }
}

static float pooled(Arithmetic way, const float *x, PoolKind kind, int64_t n, int64_t d) {
    float value = 0, nan = 0;
    switch (kind) {
    case POOL_LAST: return x[(n - 1) * d];
    case POOL_MAX:
        value = -INFINITY;
        for (int64_t i = 0; i < n; i++) {
            if (!(value > x[i * d])) value = x[i * d];
            if (isnan(x[i * d])) nan = NAN;
        }
        return value + nan;
    case POOL_MEAN: case POOL_MEAN_SQRT:
        for (int64_t i = 0; i < n; i++) value += x[i * d];
        return kind == POOL_MEAN ? value / (float)n : value / sqrtf((float)n);
    case POOL_WEIGHTED_MEAN:
        for (int64_t i = 0; i < n; i++) value = fixed_add(way, value, (float)(i + 1), x[i * d]);
        return value / (float)pool_divisor(kind, n);
    default: return x[0];
    }
}

/* x [1][d] -> x / max(|x|, 1e-12) */
static void unit_length(Arithmetic way, const float *x, int64_t d, double *out) {
    float lanes[FIXED_LANES] = {0};
    for (int64_t c = 0; c < d; c++) lanes[c % FIXED_LANES] = fixed_add(way, lanes[c % FIXED_LANES], x[c], x[c]);
    const float root = sqrtf(fixed_tree(lanes)), length = 1e-12f > root ? 1e-12f : root;
    for (int64_t c = 0; c < d; c++) out[c] = (double)(x[c] / length);
}

/* ---------------------------------------------------------------- the op */

static float fixed_activate(Arithmetic way, const OpAttributes *a, float x) {
    return a->formula ? fixed_formula(way, a->formula, x) : fixed_activation(way, a->activation, x);
}

static float fixed_gate(Arithmetic way, const OpAttributes *a, float gate, float up) {
    const float cap = (float)a->cap;
    if (cap > 0) {
        gate = gate > cap ? cap : gate;
        up = up > cap ? cap : up < -cap ? -cap : up;
    }
    return fixed_activate(way, a, gate) * (a->plus_one ? up + 1.0f : up);
}

static float map_value(Arithmetic way, OpKind kind, const OpAttributes *a, float x) {
    switch (kind) {
#define OP(name, least, most, result, inputs, help)
#define MAP(name, value, fixed, formula, help) case OP_##name: return fixed;
#include "../ir/ops.def"
    default: bug("%s is no map", op_name(kind));
    }
}

/* Ops whose result has a number for each of the first input's. */
static void each_number(Interp *in, const Op *op, int64_t count, int64_t d, double *out) {
    const OpAttributes *a = &op->a;
    const Arithmetic way = in->arithmetic;
    const float *x = fixed_numbers(in, op->inputs[0]), scale = (float)a->scale;
    const bool two = op->kind == OP_add || op->kind == OP_mul || op->kind == OP_gate;
    const float *y = two ? fixed_numbers(in, op->inputs[1]) : x;
    const bool same_row = two && in->graph->tensors[op->inputs[1]].rank == 1;
    const bool same_column = op->kind == OP_mul && extent(in, op->inputs[1], 1) != d;
    const float *factor = op->kind == OP_add && op->n_inputs > 2 ? fixed_numbers(in, op->inputs[2]) : NULL;
    for (int64_t i = 0; i < count; i++) switch (op->kind) {
        case OP_add:
            out[i] = (double)fixed_add(way, x[i], y[same_row ? i % d : i], factor ? scale * factor[i % d] : scale);
            break;
        case OP_mul: out[i] = (double)(x[i] * y[same_column ? i / d : i]); break;
        case OP_gate: out[i] = (double)fixed_gate(way, a, x[i], y[i]); break;
        default: out[i] = (double)map_value(way, op->kind, a, x[i]);
        }
}

bool fixed_op(Interp *in, const Op *op, double *out) {
    const int64_t n = extent(in, op->result, 0), d = extent(in, op->result, 1);
    const int64_t count = n * d * extent(in, op->result, 2);
    switch (op->kind) {
    case OP_linear: fixed_linear(in, op, out); return true;
    case OP_expert_linear: fixed_expert_linear(in, op, out); return true;
    case OP_expert_sum: fixed_expert_sum(in, op, out); return true;
    case OP_layernorm: case OP_rmsnorm: norm(in, op, out); return true;
    case OP_rope: rope(in, op, out); return true;
    case OP_scores: case OP_additive_scores: fixed_scores(in, op, out); return true;
    case OP_rescore: run_rescore(in, op, out); return true;
    case OP_distance_scores: fixed_distance_scores(in, op, out); return true;
    case OP_softmax: fixed_softmax(in, op, out); return true;
    case OP_weighted_sum: fixed_weighted_sum(in, op, out); return true;
    case OP_l2: unit_length(in->arithmetic, fixed_numbers(in, op->inputs[0]), d, out); return true;
    case OP_pool: {
        const RowRange rows = pool_range(in, op);
        const float *x = fixed_numbers(in, op->inputs[0]) + rows.begin * d;
        for (int64_t c = 0; c < d; c++)
            out[c] = (double)pooled(in->arithmetic, x + c, op->a.pool, rows.end - rows.begin, d);
        return true;
    }
    case OP_add: case OP_mul: case OP_gate:
#define OP(name, least, most, result, inputs, help)
#define MAP(name, value, fixed, formula, help) case OP_##name:
#include "../ir/ops.def"
        each_number(in, op, count, d, out);
        return true;
    case OP_tally: case OP_keep: case OP_pick_rows: case OP_log_sum:
    case OP_embed: case OP_take_rows: case OP_append: case OP_patches: case OP_windows: case OP_prepend: case OP_choose:
    case OP_quantize: case OP_join: case OP_round: case OP_learned: case OP_all_gather:
    case OP_owner_rows: case OP_COUNT:
        break;
    }
    return false;
}
