/* build_weights.c: the declarations of weights, and the linear and norm operations that read them. */
#include "builder.h"

#include <math.h>
#include <string.h>

/* Random weights are drawn so that matrices keep the scale of their input, gains vary around their neutral value, and
 * biases are small. */
static const double GAIN_DEVIATION = 0.2, BIAS_DEVIATION = 0.1, SMOOTH_DEVIATION = 0.3;

/* The most elements of all weights together, so that no size in bytes comes near 64 bits. */
#define MOST_ELEMENTS (INT64_C(1) << 49)

void build_count_elements(Build *b, const char *name, Shape shape) {
    int64_t elements, *total = &b->module->weights.elements;
    if (shape_elements(shape, &elements) && add_fits(*total, elements, total) && *total <= MOST_ELEMENTS) return;
    Diagnostics diagnostics = diagnostics_new(b->arena);
    diagnose(&diagnostics, b->location, "the tensor `%s` is too large, alone or with those before it", name);
    fail("%s: 1 error", b->model->source->path);
}

int build_declare(Build *b, const Stem *stem, const char *what, WeightSpec spec) {
    WeightTable *table = &b->module->weights;
    spec.name = build_name(b, stem, what);
    const WeightSpec *declared = weight_spec_find(table, spec.name);
    if (declared) {
        if (!shape_equal(declared->shape, spec.shape)) bug("the weight `%s` is declared with two shapes", spec.name);
        return (int)(declared - table->specs);
    }
    spec.site = build_site(b, stem, what, ROLE_NONE);
    spec.location = b->location;
    build_count_elements(b, spec.name, spec.shape);
    return weight_table_add(b->arena, table, spec);
}

int build_declare_bias(Build *b, const Stem *stem, const char *what, Shape shape) {
    return build_declare(b, stem, arena_printf(b->arena, "%s.bias", what),
                         (WeightSpec){.shape = shape, .deviation = BIAS_DEVIATION});
}

LinearWeights build_declare_linear(Build *b, const Stem *stem, const char *what, int64_t out, int64_t in, bool bias,
                                   double scale) {
    LinearWeights w = {.what = what, .bias = NO_WEIGHT};
    w.weight = build_declare(b, stem, arena_printf(b->arena, "%s.weight", what),
                             (WeightSpec){.shape = build_matrix(out, in),
                                          .type = b->precision->weights,
                                          .precision = b->precision,
                                          .deviation = scale / sqrt((double)in)});
    if (bias) w.bias = build_declare_bias(b, stem, what, build_vector(out));
    return w;
}

LinearWeights build_declare_experts(Build *b, const Stem *stem, const char *what, const Experts *experts, int64_t out,
                                    int64_t in, bool bias) {
    LinearWeights w = {.what = what, .bias = NO_WEIGHT, .experts = experts};
    w.weight = build_declare(b, stem, arena_printf(b->arena, "%s.weight", what),
                             (WeightSpec){.shape = {3, {experts->count, out, in}},
                                          .of_experts = true,
                                          .type = b->precision->weights,
                                          .precision = b->precision,
                                          .deviation = 1 / sqrt((double)in)});
    if (!bias) return w;
    w.bias = build_declare(b, stem, arena_printf(b->arena, "%s.bias", what),
                           (WeightSpec){.shape = build_matrix(experts->count, out),
                                        .of_experts = true,
                                        .deviation = BIAS_DEVIATION});
    return w;
}

double build_inverse(double factor) {
    const double size = fabs(factor);
    return size > 0 ? fmin(fmax(1 / size, 0x1p-100), 0x1p+100) : 1;
}

int build_declare_tokens(Build *b, const Stack *stack) {
    bool of_both = b->model->embedding_tied && b->model->encoder && b->model->decoder;
    Stem stem = build_stem(b, stack, "embedding.");
    if (of_both) stem.text = stem.part; /* without the name of the stack */
    /* Rows are drawn so that they have unit scale after the embedding's factor. */
    const double deviation = build_inverse(stack->embedding_scale);
    return build_declare(b, &stem, "tokens.weight",
                         (WeightSpec){.shape = build_matrix(stack->vocab, stack->embedding_width),
                                      .type = stack->precision.weights,
                                      .precision = &stack->precision,
                                      .deviation = deviation});
}

int build_declare_relative(Build *b, const Stack *stack) {
    const Stem stem = build_stem(b, stack, "");
    return build_declare(b, &stem, "relative.weight",
                         (WeightSpec){.shape = build_matrix(stack->relative.buckets, stack->relative_heads),
                                      .deviation = 1});
}

/* The number of the weight that smooths the rows of an op, or NO_WEIGHT. */
static int vector_of(const Build *b, const Op *op) {
    return op->n_inputs > 1 ? build_tensor(b, op->inputs[1])->weight : NO_WEIGHT;
}

/* The op that gives the rows of x in few bits, or NULL. If `smooth`, a vector with the precision's number of outliers
 * smooths the rows. */
static const Op *narrowing(const Build *b, int x, OpKind kind, bool smooth) {
    for (int i = b->graph->n_ops; i-- > 0;) {
        const Op *op = &b->graph->ops[i];
        if (op->kind != kind || op->inputs[0] != x) continue;
        const int vector = vector_of(b, op);
        if (vector == NO_WEIGHT ? !smooth
                                : smooth && b->module->weights.specs[vector].outliers == b->precision->outliers)
            return op;
    }
    return NULL;
}

/* The rows of x in int8 or bf16, which all products of x read; `vector` is the tensor that smooths them, or
 * NO_TENSOR. Each of the `groups` parts of a row is a row by itself. */
static int narrowed(Build *b, int x, int64_t groups, Dtype dtype, int vector) {
    const Op *op = narrowing(b, x, dtype == DTYPE_I8 ? OP_quantize : OP_round, vector != NO_TENSOR);
    if (op) return op->result;
    const char *word = vector != NO_TENSOR ? "smoothed" : dtype == DTYPE_I8 ? "quantized" : "rounded";
    Tensor result = *build_tensor(b, x);
    result.kind = TENSOR_VALUE;
    result.name = arena_printf(b->arena, "%s.%s", result.name, word);
    result.site.part = arena_printf(b->arena, "%s_%s", result.site.part, word);
    result.site.role = ROLE_NONE;
    if (vector != NO_TENSOR) return EMIT(quantize, result, ATTRIBUTES(.groups = groups), x, vector);
    if (dtype == DTYPE_I8) return EMIT(quantize, result, ATTRIBUTES(.groups = groups), x);
    return EMIT(round, result, ATTRIBUTES(.dtype = dtype, .heads = 1, .groups = groups), x);
}

/* Declares the vector [K] of a matrix: "layers.3.ffn.up.smooth" for "layers.3.ffn.up.weight". */
static int declare_smoothing(Build *b, const WeightSpec *matrix) {
    static const char LAST[] = "weight";
    const size_t text = strlen(matrix->name) - strlen(LAST), part = strlen(matrix->site.part) - strlen(LAST);
    const Stem stem = {arena_copy(b->arena, matrix->name, text), matrix->site.stack, matrix->site.layer,
                       arena_copy(b->arena, matrix->site.part, part)};
    return build_declare(b, &stem, "smooth",
                         (WeightSpec){.shape = build_vector(weight_columns(matrix)),
                                      .mean = 1,
                                      .deviation = SMOOTH_DEVIATION,
                                      .smooths = true,
                                      .outliers = b->precision->outliers});
}

/* The tensor of the vector that smooths x for a matrix, or NO_TENSOR for a matrix that is not smoothed. The products of
 * the same rows read the same integers, and so they share the vector of the first one. Rows of a token table are also
 * looked up, as they are, so that its matrix is not smoothed. */
static int smoothing_of(Build *b, const LinearWeights *weights, int x) {
    if (!b->precision->smooth || weights->of_tokens) return NO_TENSOR;
    const WeightTable *table = &b->module->weights;
    const Op *op = narrowing(b, x, OP_quantize, true);
    int vector = op ? vector_of(b, op) : table->specs[weights->weight].smoothing - 1;
    if (vector < 0) vector = declare_smoothing(b, &table->specs[weights->weight]);
    WeightSpec *matrix = &b->module->weights.specs[weights->weight];
    if (matrix->smoothing && matrix->smoothing != vector + 1) bug("two vectors smooth the rows of `%s`", matrix->name);
    matrix->smoothing = vector + 1;
    return build_weight(b, vector);
}

/* Stores in the spec of a matrix which norm gives the rows x that it multiplies. If layers share the matrix, the norm
 * of the first one counts. A token table has none, because its rows are also looked up. */
static void note_norm(Build *b, const LinearWeights *weights, int x) {
    WeightSpec *matrix = &b->module->weights.specs[weights->weight];
    const Tensor *rows = build_tensor(b, x);
    if (matrix->gain || weights->of_tokens || rows->kind != TENSOR_VALUE) return;
    const Op *op = &b->graph->ops[rows->op];
    if ((op->kind != OP_rmsnorm && op->kind != OP_layernorm) || op->a.groups != 1) return;
    matrix->gain = 1 + build_tensor(b, op->inputs[1])->weight;
    matrix->shift = op->n_inputs > 2 ? 1 + build_tensor(b, op->inputs[2])->weight : 0;
    matrix->gain_plus_one = op->a.plus_one;
}

/* The rows of x as a product with these weights reads them. */
static int rows_for(Build *b, const LinearWeights *weights, int x) {
    const WeightSpec *matrix = &b->module->weights.specs[weights->weight];
    const Dtype rows = rows_dtype(b->precision, matrix->type.dtype);
    const int64_t groups = build_columns(b, x) / weight_columns(matrix);
    note_norm(b, weights, x);
    if (rows == DTYPE_F32) return x;
    return narrowed(b, x, groups, rows, rows == DTYPE_I8 ? smoothing_of(b, weights, x) : NO_TENSOR);
}

int build_head_linear(Build *b, const LinearWeights *weights, Role role, int x) {
    const int w = build_weight(b, weights->weight);
    const WeightSpec *matrix = &b->module->weights.specs[weights->weight];
    if (rows_dtype(b->precision, matrix->type.dtype) == DTYPE_BF16) x = narrowed(b, x, 1, DTYPE_BF16, NO_TENSOR);
    const Experts *heads = weights->experts;
    Tensor result = build_value2(b, weights->what, build_rows(b, x), heads->count * build_tensor(b, w)->dims[1].n);
    result.site.role = role;
    const OpAttributes a = {.experts = heads, .by_head = true};
    const int inputs[] = {x, w, weights->bias == NO_WEIGHT ? NO_TENSOR : build_weight(b, weights->bias)};
    return build_op(b, OP_expert_linear, a, result, weights->bias == NO_WEIGHT ? 2 : 3, inputs);
}

int build_group_linear(Build *b, const Stem *stem, const char *what, const Experts *groups, int x, int64_t channels,
                       bool bias) {
    const int64_t in = build_columns(b, x) / groups->count;
    LinearWeights w = {.what = what, .bias = NO_WEIGHT, .experts = groups};
    w.weight = build_declare(b, stem, arena_printf(b->arena, "%s.weight", what),
                             (WeightSpec){.shape = {3, {groups->count, channels / groups->count, in}},
                                          .of_groups = true,
                                          .type = b->precision->weights,
                                          .precision = b->precision,
                                          .deviation = 1 / sqrt((double)in)});
    if (bias) w.bias = build_declare_bias(b, stem, what, build_matrix(groups->count, channels / groups->count));
    return build_head_linear(b, &w, ROLE_NONE, x);
}

int build_expert_linear(Build *b, const LinearWeights *weights, int choice, int x) {
    const Experts *e = weights->experts;
    const int w = build_weight(b, weights->weight);
    x = rows_for(b, weights, x);
    const Tensor result = build_value2(b, weights->what, build_rows(b, x), e->top * build_tensor(b, w)->dims[1].n);
    if (weights->bias == NO_WEIGHT) return EMIT(expert_linear, result, ATTRIBUTES(.experts = e), x, w, choice);
    return EMIT(expert_linear, result, ATTRIBUTES(.experts = e), x, w, choice, build_weight(b, weights->bias));
}

int build_linear(Build *b, const LinearWeights *weights, Role role, int x) {
    int w = build_weight(b, weights->weight);
    x = rows_for(b, weights, x);
    Tensor result = build_value2(b, weights->what, build_rows(b, x), build_tensor(b, w)->dims[0].n);
    result.site.role = role;
    if (weights->bias == NO_WEIGHT) return EMIT(linear, result, ATTRIBUTES(.scale = 1), x, w);
    return EMIT(linear, result, ATTRIBUTES(.scale = 1), x, w, build_weight(b, weights->bias));
}

int build_new_linear(Build *b, const Stem *stem, const char *what, Role role, int x, int64_t out, bool bias) {
    const LinearWeights weights = build_declare_linear(b, stem, what, out, build_columns(b, x), bias, 1);
    return build_linear(b, &weights, role, x);
}

int build_declare_gain(Build *b, const Stem *stem, const char *what, Norm n, Shape shape) {
    const WeightSpec gain = {.shape = shape, .mean = n.plus_one ? 0 : 1, .deviation = GAIN_DEVIATION};
    return build_declare(b, stem, arena_printf(b->arena, "%s.weight", what), gain);
}

int build_norm(Build *b, const Stem *stem, const char *what, Role role, int x, Norm n, Shape shape) {
    if (n.kind == NORM_NONE) return x;
    int w = build_weight(b, build_declare_gain(b, stem, what, n, shape));
    Tensor result = build_value_like(b, what, x);
    result.site.role = role;
    int64_t groups = build_columns(b, x) / shape.dims[shape.rank - 1];
    OpAttributes a = {.eps = n.eps, .plus_one = n.plus_one, .groups = groups};
    if (n.kind == NORM_rmsnorm) return build_op(b, OP_rmsnorm, a, result, 2, (int[]){x, w});
    if (!n.bias) return build_op(b, OP_layernorm, a, result, 2, (int[]){x, w});
    int bias = build_weight(b, build_declare_bias(b, stem, what, shape));
    return build_op(b, OP_layernorm, a, result, 3, (int[]){x, w, bias});
}

int build_row_norm(Build *b, const Stem *stem, const char *what, int x, Norm n) {
    return build_norm(b, stem, what, ROLE_NONE, x, n, build_vector(build_columns(b, x)));
}
