/* fixed_products.c: products of rows with weights, whose sums run over k ascending. Sums of integers are exact. */
#include "experts.h"
#include "fixed.h"
#include "quantize.h"

#include <math.h>
#include <string.h>

typedef struct Product {
    Arithmetic way;
    int64_t n, k, d;
    int64_t first; /* the weight's row of column 0: that of an expert */
    const WeightSpec *spec;
    const Scaling *scaling;
    const float *x, *weight, *bias; /* bias may be NULL */
    int64_t outliers[MOST_OUTLIERS]; /* columns of x and weight that are not rounded */
    int n_outliers;
} Product;

/* The epilogue of sums that are multiplied by a unit. */
static float with_unit(const Product *p, float sum, float unit, int64_t c) {
    return p->bias ? fixed_add(p->way, p->bias[c], sum, unit) : sum * unit;
}

/* Sums of column c, the weight's row c, over rows of floats; they begin at the bias. */
static void floats_column(const Product *p, int64_t c, double *out) {
    const float *weight = p->weight + c * p->k;
    for (int64_t i = 0; i < p->n; i++) {
        float sum = p->bias ? p->bias[c] : 0.0f;
        for (int64_t j = 0; j < p->k; j++) sum = fixed_add(p->way, sum, p->x[i * p->k + j], weight[j]);
        out[i * p->d + c - p->first] = (double)sum;
    }
}

/* The same with integers that share a scale, by which the sum is multiplied. */
static void scaled_column(const Product *p, int64_t c, const int8_t *codes, double *out) {
    for (int64_t i = 0; i < p->n; i++) {
        float sum = 0;
        for (int64_t j = 0; j < p->k; j++) sum = fixed_add(p->way, sum, p->x[i * p->k + j], (float)codes[j]);
        out[i * p->d + c - p->first] = (double)with_unit(p, sum, p->scaling->scales[c], c);
    }
}

/* A row of codes of 0 to 255 times a column of integers with one scale. */
static float codes_dot(const Product *p, const RowHead *head, const uint8_t *row, int64_t c, const int8_t *codes) {
    int64_t sum = 0, columns = 0;
    for (int64_t j = 0; j < p->k; j++) sum += row[j] * codes[j], columns += codes[j];
    return with_unit(p, (float)(sum - (int64_t)head->zero * columns), p->scaling->scales[c] * head->scale, c);
}

/* The same with a scale, and perhaps an offset, for each group. */
static float groups_dot(const Product *p, const RowHead *head, const uint8_t *row, int64_t c, const int8_t *codes,
                        float column_sum) {
    const int64_t group = p->spec->type.group, groups = weight_groups(p->spec);
    float acc = 0;
    for (int64_t g = 0; g < groups; g++) {
        const int64_t begin = g * group, end = begin + group < p->k ? begin + group : p->k;
        int64_t sum = 0, own = 0;
        for (int64_t j = begin; j < end; j++) sum += row[j] * codes[j], own += row[j];
        acc = fixed_add(p->way, acc, (float)sum, p->scaling->scales[c * groups + g]);
        if (p->spec->type.offset) acc = fixed_add(p->way, acc, (float)own, p->scaling->offsets[c * groups + g]);
    }
    acc = fixed_add(p->way, acc, -head->zero, column_sum);
    return with_unit(p, acc, head->scale, c);
}

/* Rounds the rows of x as OP_quantize does. Where `smooth` [k] is not NULL, each row is multiplied by it first. */
static void quantize_rows(Arena *arena, const Product *p, const float *smooth, RowHead *heads, uint8_t *codes) {
    double *row = arena_array(arena, (size_t)p->k, sizeof *row);
    for (int64_t i = 0; i < p->n; i++) {
        for (int64_t j = 0; j < p->k; j++) {
            const float x = p->x[i * p->k + j];
            row[j] = (double)(smooth ? x * smooth[j] : x);
        }
        const RowScale scale = quantize_scale(row, p->k);
        heads[i] = scale.head;
        for (int64_t j = 0; j < p->k; j++)
            codes[i * p->k + j] = quantized_code(row[j], scale.inverse, scale.head.zero);
    }
}

/* Adds the products of the outliers of row i to the sum of column c. */
static float with_outliers(const Product *p, float sum, int64_t i, int64_t c) {
    for (int j = 0; j < p->n_outliers; j++) {
        const int64_t k = p->outliers[j];
        sum = fixed_add(p->way, sum, p->x[i * p->k + k], p->weight[c * p->k + k]);
    }
    return sum;
}

static const Op *quantize_of(const Interp *in, int tensor) {
    const Tensor *t = &in->graph->tensors[tensor];
    const Op *op = t->kind == TENSOR_VALUE ? &in->graph->ops[t->op] : NULL;
    return op && op->kind == OP_quantize ? op : NULL;
}

/* The product without its rows, columns and result. */
static Product product_of(const Interp *in, const Op *op) {
    const Tensor *weight = &in->graph->tensors[op->inputs[1]];
    const Op *quantize = quantize_of(in, op->inputs[0]);
    Product p = {.way = in->arithmetic,
                 .spec = &in->module->weights.specs[weight->weight],
                 .scaling = &in->weights->scaling[weight->weight],
                 .x = fixed_numbers(in, quantize ? quantize->inputs[0] : op->inputs[0]),
                 .weight = fixed_numbers(in, op->inputs[1]),
                 .bias = op_bias(op) != NO_TENSOR ? fixed_numbers(in, op_bias(op)) : NULL};
    p.k = weight_columns(p.spec);
    return p;
}

/* p.x [n][k] -> out [n][d], where `quantize` rounds the rows, or is NULL. */
static void run_product(Interp *in, Product *p, const Op *quantize, double *out) {
    const bool integers = dtype_has_scales(p->spec->type.dtype);
    int8_t *codes = arena_array(in->arena, (size_t)p->k, sizeof *codes);
    RowHead *heads = arena_array(in->arena, (size_t)p->n, sizeof *heads);
    uint8_t *rows = arena_array(in->arena, (size_t)(quantize ? p->n * p->k : 1), sizeof *rows);
    const float *smooth = quantize && quantize->n_inputs > 1 ? fixed_numbers(in, quantize->inputs[1]) : NULL;
    if (quantize) quantize_rows(in->arena, p, smooth, heads, rows);
    p->n_outliers = smooth ? outlier_columns(smooth, p->k, p->outliers) : 0;
    for (int64_t c = p->first; c < p->first + p->d; c++) {
        if (c % 64 == 0) progress_tick();
        if (integers) weight_codes(p->spec, p->scaling, p->weight, c, codes);
        if (!quantize) {
            if (integers && !p->spec->type.group) scaled_column(p, c, codes, out);
            else floats_column(p, c, out);
            continue;
        }
        const float column_sum = weight_sum(p->spec, p->scaling, c, codes);
        for (int64_t i = 0; i < p->n; i++) {
            const float sum = p->spec->type.group ? groups_dot(p, &heads[i], rows + i * p->k, c, codes, column_sum)
                                                  : codes_dot(p, &heads[i], rows + i * p->k, c, codes);
            out[i * p->d + c - p->first] = (double)with_outliers(p, sum, i, c);
        }
    }
}

void fixed_linear(Interp *in, const Op *op, double *out) {
    Product p = product_of(in, op);
    p.n = extent(in, op->result, 0);
    p.d = extent(in, op->result, 1);
    run_product(in, &p, quantize_of(in, op->inputs[0]), out);
}

void fixed_expert_linear(Interp *in, const Op *op, double *out) {
    Product p = product_of(in, op);
    const float *x = p.x;
    const int64_t n = extent(in, op->result, 0);
    const ExpertRows *rows = rows_by_matrix(in, op, n);
    p.d = extent(in, op->inputs[1], 1);
    float *from = arena_array(in->arena, (size_t)(n * p.k), sizeof *from);
    double *to = arena_array(in->arena, (size_t)(n * p.d), sizeof *to);
    for (int64_t e = 0; e < op->a.experts->count; e++) {
        for (int64_t r = 0; r < rows[e].n; r++)
            memcpy(from + r * p.k, x + expert_input(in, op, rows[e].parts[r]) * p.k, (size_t)p.k * sizeof *from);
        p.n = rows[e].n;
        p.first = e * p.d;
        p.x = from;
        run_product(in, &p, quantize_of(in, op->inputs[0]), to);
        for (int64_t r = 0; r < p.n; r++)
            memcpy(out + rows[e].parts[r] * p.d, to + r * p.d, (size_t)p.d * sizeof *out);
    }
}

void fixed_expert_sum(Interp *in, const Op *op, double *out) {
    const int64_t n = extent(in, op->result, 0), d = extent(in, op->result, 1), top = op->a.experts->top;
    const float *y = fixed_numbers(in, op->inputs[0]), *choice = fixed_numbers(in, op->inputs[1]);
    for (int64_t i = 0; i < n * d; i++) {
        const float *gates = choice + i / d * 2 * top + top;
        float sum = 0;
        for (int64_t s = 0; s < top; s++)
            sum = fixed_add(in->arithmetic, sum, y[(i / d * top + s) * d + i % d], gates[s]);
        out[i] = (double)sum;
    }
}
