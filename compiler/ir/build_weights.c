/* build_weights.c: the declarations of weights, and the linear and norm operations that read them. */
#include "builder.h"

#include <math.h>
#include <string.h>

/* Random weights are drawn so that matrices keep the scale of their input, gains vary around their neutral value, and
 * biases are small. */
static const double GAIN_DEVIATION = 0.2, BIAS_DEVIATION = 0.1;

/* The most elements of all weights together, so that no size in bytes comes near 64 bits. */
#define MOST_ELEMENTS (INT64_C(1) << 49)

void build_count_elements(Build *b, const char *name, Shape shape) {
    int64_t elements, *total = &b->module->weights.elements;
    if (shape_elements(shape, &elements) && add_fits(*total, elements, total) && *total <= MOST_ELEMENTS) return;
    Diagnostics diagnostics = diagnostics_new(b->arena);
    diagnose(&diagnostics, b->location, "the tensor `%s` is too large, alone or with those before it", name);
    fail("%s: 1 error", b->model->source->path);
}

/* Refuses a learned table if another tensor has the name of its tensor. */
static void refuse_learned(Build *b, const WeightSpec *declared, const WeightSpec *spec) {
    const Location at = declared->learned.line ? declared->learned : spec->learned;
    if (declared->learned.line == spec->learned.line && declared->learned.column == spec->learned.column) return;
    Diagnostics diagnostics = diagnostics_new(b->arena);
    diagnose(&diagnostics, at, "another tensor has the name `%s`: this table needs a name of its own", spec->name);
    fail("%s: 1 error", b->model->source->path);
}

int build_declare(Build *b, const Stem *stem, const char *what, WeightSpec spec) {
    WeightTable *table = &b->module->weights;
    spec.name = build_name(b, stem, what);
    const WeightSpec *declared = weight_spec_find(table, spec.name);
    if (declared) {
        refuse_learned(b, declared, &spec);
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
                                          .precision = b->precision,
                                          .deviation = scale / sqrt((double)in)});
    if (bias) w.bias = build_declare_bias(b, stem, what, build_vector(out));
    return w;
}

LinearWeights build_declare_experts(Build *b, const Stem *stem, const char *what, const Experts *experts, int64_t out,
                                    int64_t in, bool bias, double deviation) {
    LinearWeights w = {.what = what, .bias = NO_WEIGHT, .experts = experts};
    w.weight = build_declare(b, stem, arena_printf(b->arena, "%s.weight", what),
                             (WeightSpec){.shape = {3, {experts->count, out, in}},
                                          .of_experts = true,
                                          .precision = b->precision,
                                          .deviation = deviation});
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
                                      .precision = &stack->precision,
                                      .deviation = deviation});
}

int build_declare_relative(Build *b, const Stack *stack) {
    const Stem stem = build_stem(b, stack, "");
    return build_declare(b, &stem, "relative.weight",
                         (WeightSpec){.shape = build_matrix(stack->relative.buckets, stack->relative_heads),
                                      .deviation = 1});
}

int build_head_linear(Build *b, const LinearWeights *weights, Role role, int x) {
    const int w = build_weight(b, weights->weight);
    const Experts *heads = weights->experts;
    Tensor result = build_value2(b, weights->what, build_rows(b, x), heads->count * build_tensor(b, w)->dims[1].n);
    result.site.role = role;
    return EMIT(expert_linear, result, ATTRIBUTES(.experts = heads, .by_head = true), x, w,
                build_weight(b, weights->bias));
}

int build_group_linear(Build *b, const Stem *stem, const char *what, const Experts *groups, int x, int64_t channels,
                       bool bias) {
    const int64_t in = build_columns(b, x) / groups->count;
    LinearWeights w = {.what = what, .bias = NO_WEIGHT, .experts = groups};
    w.weight = build_declare(b, stem, arena_printf(b->arena, "%s.weight", what),
                             (WeightSpec){.shape = {3, {groups->count, channels / groups->count, in}},
                                          .of_groups = true,
                                          .precision = b->precision,
                                          .deviation = 1 / sqrt((double)in)});
    if (bias) w.bias = build_declare_bias(b, stem, what, build_matrix(groups->count, channels / groups->count));
    return build_head_linear(b, &w, ROLE_NONE, x);
}

int build_expert_linear(Build *b, const LinearWeights *weights, int choice, int x) {
    const Experts *e = weights->experts;
    const int w = build_weight(b, weights->weight);
    const Tensor result = build_value2(b, weights->what, build_rows(b, x), e->top * build_tensor(b, w)->dims[1].n);
    return EMIT(expert_linear, result, ATTRIBUTES(.experts = e), x, w, choice, build_weight(b, weights->bias));
}

int build_linear(Build *b, const LinearWeights *weights, Role role, int x) {
    int w = build_weight(b, weights->weight);
    Tensor result = build_value2(b, weights->what, build_rows(b, x), build_tensor(b, w)->dims[0].n);
    result.site.role = role;
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
    const int bias = build_weight(b, n.bias ? build_declare_bias(b, stem, what, shape) : NO_WEIGHT);
    return build_op(b, n.kind == NORM_rmsnorm ? OP_rmsnorm : OP_layernorm, a, result, 3, (int[]){x, w, bias});
}

int build_row_norm(Build *b, const Stem *stem, const char *what, int x, Norm n) {
    return build_norm(b, stem, what, ROLE_NONE, x, n, build_vector(build_columns(b, x)));
}
