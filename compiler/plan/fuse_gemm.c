/* fuse_gemm.c: matrix products. The ops that follow a product (scale, cap, activation, product with another, sum)
 * become its epilogue; linears over the same rows that feed one attention become one product with neighbouring
 * outputs. */
#include "fuse.h"

#include <string.h>

enum { MOST_PARTS = 8 }; /* of a joined product */

static Step gemm_step(Fuse *f, const Op *linear) {
    int x = linear->inputs[0];
    const int64_t heads = op_is_by_head(linear) ? linear->a.experts->count : 0;
    Step step = step_new(f, STEP_GEMM, linear->location, linear->result);
    step.gemm = (GemmStep){.x = f->at[x],
                           .experts = linear->a.experts,
                           .factor = NOWHERE,
                           .residual = NOWHERE,
                           .heads = heads,
                           .k = columns_of(f, x) / (heads ? heads : 1),
                           .weight = NO_PACKED,
                           .scales = NO_PACKED,
                           .offsets = NO_PACKED,
                           .sums = NO_PACKED,
                           .outliers = NO_PACKED,
                           .bias = NO_PACKED,
                           .bf16 = is_rounded(f, x, DTYPE_BF16) &&
                                   weight_type(f, linear->inputs[1]).dtype == DTYPE_BF16,
                           .scale = 1,
                           .residual_scale = 1};
    return step;
}

/* An op that reads the result of a product, and perhaps another tensor. */
typedef struct Follower {
    const Op *op;
    bool first; /* the result is its first input */
    int other;  /* or NO_TENSOR */
    int64_t columns; /* of the result */
} Follower;

static bool absorb_scale(Fuse *f, GemmStep *gemm, const Follower *by) {
    (void)f;
    if (!f32_holds(gemm->scale * by->op->a.scale)) return false;
    gemm->scale *= by->op->a.scale;
    return true;
}

static bool absorb_cap(Fuse *f, GemmStep *gemm, const Follower *by) {
    (void)f;
    gemm->cap = by->op->a.cap;
    return true;
}

static bool absorb_activation(Fuse *f, GemmStep *gemm, const Follower *by) {
    (void)f;
    gemm->has_activation = true;
    gemm->activation = by->op->a.activation;
    return true;
}

static bool absorb_factor(Fuse *f, GemmStep *gemm, const Follower *by) {
    if (!available(f, by->other) || columns_of(f, by->other) != by->columns) return false;
    gemm->factor = f->at[by->other];
    return true;
}

static bool absorb_residual(Fuse *f, GemmStep *gemm, const Follower *by) {
    if (by->op->n_inputs != 2 || tensor_in(f, by->other)->rank != 2 || !available(f, by->other)) return false;
    if (by->first && by->op->a.scale != 1) return false;
    gemm->residual_scale = by->first ? 1 : by->op->a.scale;
    gemm->residual = f->at[by->other];
    return true;
}

/* The epilogue of a product, in the order in which its kernels compute. Scales multiply each other. */
static const struct {
    OpKind kind;
    bool repeats;
    bool (*absorb)(Fuse *f, GemmStep *gemm, const Follower *by); /* false where the kernels cannot */
} epilogue[] = {
    {OP_scale, true, absorb_scale}, {OP_softcap, false, absorb_cap},    {OP_activation, false, absorb_activation},
    {OP_mul, false, absorb_factor}, {OP_add, false, absorb_residual},
};

/* Makes the ops after the product part of the step; returns the tensor of its result. */
static int absorb_epilogue(Fuse *f, Step *step, int result) {
    enum { STAGES = sizeof epilogue / sizeof *epilogue };
    for (int stage = 0; stage < STAGES;) {
        const Op *reader = only_reader(f, result);
        if (!reader || sole_output(f, result) >= 0) break;
        Follower by = {.op = reader, .first = reader->inputs[0] == result, .other = NO_TENSOR};
        if (reader->n_inputs > 1) by.other = reader->inputs[by.first ? 1 : 0];
        by.columns = columns_of(f, result);
        while (stage < STAGES && epilogue[stage].kind != reader->kind) stage++;
        if (stage == STAGES || !epilogue[stage].absorb(f, &step->gemm, &by)) break;
        if (!epilogue[stage].repeats) stage++;
        cover(f, reader);
        share_rows(f, result, reader->result);
        result = reader->result;
    }
    return result;
}

/* The only op that reads the tensor, if it rounds it to bf16; or NULL. */
static const Op *rounding_of(const Fuse *f, int t) {
    const Op *reader = sole_output(f, t) < 0 ? only_reader(f, t) : NULL;
    if (!reader || reader->kind != OP_round || sole_output(f, reader->result) >= 0) return NULL;
    return reader->a.dtype == DTYPE_BF16 ? reader : NULL;
}

/* Whether attention reads the result: such linears over the same rows become one product. */
static bool feeds_attention(const Fuse *f, const Op *op) {
    if (f->state[op->result] >= 0) return true;
    const int last = f->reader[op->result]; /* after another reader of the same rows */
    if (last >= 0 && f->graph->ops[last].kind == OP_distance_scores) return true;
    if (last >= 0 && f->graph->ops[last].kind == OP_weighted_sum) return true;
    const Op *reader = only_reader(f, op->result);
    if (!reader) return false;
    switch (reader->kind) {
    case OP_scores: case OP_weighted_sum: case OP_rope: case OP_append: case OP_clip: return true;
    case OP_layernorm: case OP_rmsnorm: case OP_round: return tensor_in(f, reader->result)->site.role != ROLE_NONE;
    default: return false;
    }
}

/* The first packed tensor of the parts of a step; `packed` belongs to part i and must follow those before it. */
static int first_of_parts(const Step *step, int first, int i, int packed) {
    if (i == 0) return packed;
    if (first != NO_PACKED && packed != first + i)
        refuse_to_emit(step->location, "weights that join others here and stand alone elsewhere");
    return first;
}

static int pack_bias(Fuse *f, const Op *product) {
    const int bias = op_bias(product);
    if (bias == NO_TENSOR) return pack_zeros(f, product->inputs[1], columns_of(f, product->result));
    return product->kind == OP_expert_linear ? pack_expert_bias(f, bias) : pack_tensor(f, bias, false, false);
}

/* Weights of the parts follow each other as panels, scales and biases as rows of whole panels. */
static void pack_parts(Fuse *f, Step *step, const Op *const *parts, int n) {
    GemmStep *g = &step->gemm;
    const int x = parts[0]->inputs[0], outliers = outliers_of(f, x);
    bool any_bias = false;
    for (int i = 0; i < n; i++) any_bias |= op_bias(parts[i]) != NO_TENSOR;
    for (int i = 0; i < n; i++)
        g->weight = first_of_parts(step, g->weight, i, pack_tensor(f, parts[i]->inputs[1], true, false));
    for (int i = 0; i < n; i++)
        g->scales = first_of_parts(step, g->scales, i, pack_scales(f, parts[i]->inputs[1]));
    for (int i = 0; i < n; i++)
        g->offsets = first_of_parts(step, g->offsets, i, pack_offsets(f, parts[i]->inputs[1]));
    for (int i = 0; i < n && is_quantized(f, x); i++)
        g->sums = first_of_parts(step, g->sums, i, pack_sums(f, parts[i]->inputs[1]));
    for (int i = 0; i < n; i++)
        g->outliers = first_of_parts(step, g->outliers, i, pack_outliers(f, parts[i]->inputs[1], outliers));
    for (int i = 0; i < n && any_bias; i++)
        g->bias = first_of_parts(step, g->bias, i, pack_bias(f, parts[i]));
    g->parts = n;
    step->shape = arena_printf(f->arena, "[rows][%lld] x [%lld][%lld]", (long long)g->k, (long long)step->n,
                               (long long)g->k);
}

/* The last word of a part's name: "value" of "attention_value". */
static const char *last_word(const char *part) {
    const char *underscore = strrchr(part, '_');
    return underscore ? underscore + 1 : part;
}

/* Makes the rounding of each of n results a part of the step, or that of none. */
static void absorb_roundings(Fuse *f, Step *step, const int *results, int n) {
    const Op *roundings[MOST_PARTS];
    for (int i = 0; i < n; i++) {
        roundings[i] = rounding_of(f, results[i]);
        if (!roundings[i]) return;
    }
    for (int i = 0; i < n; i++) {
        cover(f, roundings[i]);
        f->at[roundings[i]->result] = f->at[results[i]];
        share_rows(f, results[i], roundings[i]->result);
    }
    step->gemm.rounds = true;
    step->shape = arena_printf(f->arena, "%s to %s", step->shape, dtype_name(DTYPE_BF16));
}

static void fuse_linear_parts(Fuse *f, const Op *const *parts, int n) {
    int x = parts[0]->inputs[0];
    int64_t total = 0;
    Site joined = tensor_in(f, parts[0]->result)->site;
    Text part = text_new(f->arena);
    for (int i = 0; i < n; i++) {
        share_rows(f, x, parts[i]->result);
        cover(f, parts[i]);
        total += round_up(columns_of(f, parts[i]->result), PANEL);
        const char *own = tensor_in(f, parts[i]->result)->site.part;
        text_printf(&part, "%s%s", i ? "_" : "", i ? last_word(own) : own);
    }
    joined.part = part.data;
    Step step = gemm_step(f, parts[0]);
    step.site = joined;
    step.name = site_name(f, &joined);
    step.n = total;
    int buffer = workspace_buffer(f, parts[0]->result, total);
    f->plan->buffers[buffer].slot.name = step.name;
    f->plan->buffers[buffer].site = joined;
    int64_t column = 0;
    int results[MOST_PARTS];
    for (int i = 0; i < n; i++) {
        results[i] = parts[i]->result;
        f->at[parts[i]->result] = (Operand){buffer, column};
        column += round_up(columns_of(f, parts[i]->result), PANEL);
    }
    step.out = (Operand){buffer, 0};
    pack_parts(f, &step, parts, n);
    absorb_roundings(f, &step, results, n);
    step_add(f, step);
}

/* The panels of the parts are those of one matrix: no part ends in padding. */
static bool are_neighbours(const Fuse *f, const Op *const *parts, int n) {
    bool dense = true;
    for (int i = 0; i < n; i++) {
        const int weight = parts[i]->inputs[1];
        Layout layout = matrix_layout(f, weight, is_quantized(f, parts[i]->inputs[0]));
        Shape shape = {2, {columns_of(f, parts[i]->result), columns_of(f, parts[i]->inputs[0])}};
        dense &= layout_is_dense(&layout, shape);
        if (!weight_type(f, weight).group) continue;
        layout = scaling_layout(f, weight, &shape);
        dense &= layout_is_dense(&layout, shape);
    }
    return dense;
}

void fuse_linear(Fuse *f, const Op *op) {
    const Op *parts[MOST_PARTS];
    int n = 0;
    if (feeds_attention(f, op))
        for (int i = op_index(f, op); i < f->graph->n_ops && n < MOST_PARTS; i++) {
            const Op *o = &f->graph->ops[i];
            if (o->kind == OP_weighted_sum) break; /* all inputs of this attention are found */
            if (o->kind == OP_linear && !f->done[i] && o->inputs[0] == op->inputs[0] &&
                strcmp(o->where, op->where) == 0 && feeds_attention(f, o))
                parts[n++] = o;
        }
    if (n > 1 && are_neighbours(f, parts, n)) {
        fuse_linear_parts(f, parts, n);
        return;
    }
    share_rows(f, op->inputs[0], op->result);
    fuse_product(f, op, f->at[op->inputs[0]]);
}

void fuse_product(Fuse *f, const Op *op, Operand x) {
    Step step = gemm_step(f, op);
    step.gemm.x = x;
    step.n = columns_of(f, op->result) / (step.gemm.heads ? step.gemm.heads : 1);
    pack_parts(f, &step, &op, 1);
    step.tensor = step.gemm.heads ? op->result : absorb_epilogue(f, &step, op->result);
    step.out = place_result(f, step.tensor);
    absorb_roundings(f, &step, &step.tensor, 1);
    step_add(f, step);
}
