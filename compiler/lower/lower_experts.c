/* lower_experts.c: lowers the steps of a mixture of experts. */
#include "kernel_call.h"

/* From the numbers of one expert to those of the next, in the C type of the tensor. */
static int64_t each_expert(const Lowering *l, int packed) {
    if (packed == NO_PACKED) return 0;
    const Packed *p = &l->plan->program->packed[packed];
    const Layout *layout = &p->slot.layout;
    const int64_t numbers = round_up(packed_rows(p), layout->panel) * round_up(packed_columns(p), layout->k_group);
    return layout->dtype == DTYPE_I4 ? numbers / 2 : numbers;
}

/* The product with one of the matrices, as it would be with the only one. */
static KernelCall *lower_product(const Lowering *l, const Step *s) {
    if (multiplies_in_tiles(l, s)) return lower_gemm_tiles(l, s);
    if (multiplies_groups_in_tiles(l, s)) return lower_gemm_tiles_grouped(l, s);
    return lower_gemm(l, s);
}

/* A call of a kernel that calls the product with each of several matrices. */
static KernelCall *call_with_matrices(const Lowering *l, const Step *s, KernelKind kernel, KernelCall *product) {
    const GemmStep *g = &s->gemm;
    KernelCall *call = call_new(l, kernel, l->isa, l->isa);
    constant_callee(l, call, "product", product);
    constant_integer(l, call, "MATRICES", g->experts->count);
    constant_integer(l, call, "stream", weights_stream(l));
    constants_of_dtype(l, call, g->weight);
    constant_integer(l, call, "each_w", each_expert(l, g->weight));
    constant_integer(l, call, "each_scales", each_expert(l, g->scales));
    constant_integer(l, call, "each_offsets", each_expert(l, g->offsets));
    constant_integer(l, call, "each_bias", each_expert(l, g->bias));
    constant_integer(l, call, "has_area", product->scratch_bytes > 0);
    if (product->scratch_bytes) {
        call_area(l, call, "block", layout_elements(&LAYOUT_ROWS, product->scratch_bytes));
        give(call, "area");
    }
    call->comment = product->comment;
    give_operand(call, "x", g->x);
    give_operand(call, "out", s->out);
    return call;
}

KernelCall *lower_experts(const Lowering *l, const Step *s) {
    const GemmStep *g = &s->gemm;
    const bool codes = buffer_of(l, g->x)->slot.layout.dtype == DTYPE_U8;
    KernelCall *call = call_with_matrices(l, s, KERNEL_experts, lower_product(l, s));
    constant_integer(l, call, "each_sums", codes ? each_expert(l, g->sums) : 0);
    constant_integer(l, call, "each_outliers", each_expert(l, g->outliers));
    constant_integer(l, call, "x_stride", stride_of(l, g->x));
    constant_integer(l, call, "factor_stride", stride_of(l, g->factor));
    constant_integer(l, call, "out_stride", stride_of(l, s->out));
    call->stem = arena_printf(l->arena, "experts_%lldx%lld", (long long)g->k, (long long)s->n);
    give_operand(call, "order", s->order);
    give_weights(l, call, s, codes);
    give_operand(call, "factor", g->factor);
    return call;
}

/* A tile reads whole groups of columns, which stay within a head if they divide its columns. */
static KernelCall *product_of_head(const Lowering *l, const Step *s) {
    const bool tiles = multiplies_in_tiles(l, s) && s->gemm.k % (2 * PANEL) == 0;
    return tiles ? lower_gemm_tiles(l, s) : lower_gemm(l, s);
}

KernelCall *lower_heads(const Lowering *l, const Step *s) {
    const GemmStep *g = &s->gemm;
    KernelCall *call = call_with_matrices(l, s, KERNEL_heads, product_of_head(l, s));
    constant_integer(l, call, "K", g->k);
    constant_integer(l, call, "N", s->n);
    call->stem = arena_printf(l->arena, "heads_%lldx%lld", (long long)g->k, (long long)s->n);
    give_weights(l, call, s, false);
    return call;
}

KernelCall *lower_join(const Lowering *l, const Step *s) {
    const JoinStep *j = &s->join;
    KernelCall *call = call_new(l, KERNEL_join, l->isa, l->isa);
    fix_rows(l, call, s->rows);
    constant_integer(l, call, "HEADS", j->heads);
    constant_integer(l, call, "FIRST", j->first);
    constant_integer(l, call, "SECOND", j->second);
    constant_integer(l, call, "x_stride", stride_of(l, j->x));
    constant_integer(l, call, "other_stride", stride_of(l, j->other));
    constant_integer(l, call, "out_stride", stride_of(l, s->out));
    call->comment = arena_printf(l->arena, "%s of %lld and %lld columns", counted(l->arena, j->heads, "head"),
                                 (long long)j->first, (long long)j->second);
    call->stem = arena_printf(l->arena, "join_%lld_%lld", (long long)j->first, (long long)j->second);
    give_operand(call, "x", j->x);
    give_operand(call, "other", j->other);
    give_operand(call, "out", s->out);
    return call;
}

KernelCall *lower_choose(const Lowering *l, const Step *s) {
    const Experts *e = s->choose.experts;
    KernelCall *call = call_new(l, KERNEL_choose, l->isa, l->isa);
    const bool sigmoid = e->router == ROUTER_SIGMOID, corrected = s->choose.correction != NO_PACKED;
    constant_integer(l, call, "EXPERTS", e->count);
    constant_integer(l, call, "TOP", e->top);
    constant_integer(l, call, "GROUPS", e->groups);
    constant_integer(l, call, "TOP_GROUPS", e->top_groups);
    constant_integer(l, call, "sigmoid", sigmoid);
    constant_integer(l, call, "corrected", corrected);
    constant_integer(l, call, "renormalized", e->renormalized);
    constant_integer(l, call, "has_scale", e->scale != 1);
    constant_real(l, call, "scale", e->scale);
    constant_integer(l, call, "x_stride", stride_of(l, s->choose.x));
    constant_integer(l, call, "out_stride", stride_of(l, s->out));
    call->comment = arena_printf(l->arena, "the %lld best of %s, and their gates", (long long)e->top,
                                 counted(l->arena, e->count, "expert"));
    call->stem = arena_printf(l->arena, "choose_%lld_of_%lld", (long long)e->top, (long long)e->count);
    give_operand(call, "x", s->choose.x);
    give_packed(call, "correction", s->choose.correction);
    give_operand(call, "out", s->out);
    call_helper(call, sigmoid ? activation_name(ACTIVATION_sigmoid) : "exp2");
    return call;
}

/* What the kernels that read or write an order have in common. */
static KernelCall *call_with_order(const Lowering *l, const Step *s, KernelKind kernel, const Experts *e) {
    KernelCall *call = call_new(l, kernel, l->isa, l->isa);
    constant_integer(l, call, "N", s->n);
    constant_integer(l, call, "EXPERTS", e->count);
    constant_integer(l, call, "TOP", e->top);
    constant_integer(l, call, "STARTS", SORT_STARTS(e->count));
    constant_integer(l, call, "out_stride", stride_of(l, s->out));
    give_operand(call, "out", s->out);
    return call;
}

KernelCall *lower_sort(const Lowering *l, const Step *s) {
    KernelCall *call = call_with_order(l, s, KERNEL_sort, s->sort.experts);
    constant_integer(l, call, "x_stride", stride_of(l, s->sort.x));
    call->comment = "the order of rows by their experts";
    give_operand(call, "x", s->sort.x);
    return call;
}

KernelCall *lower_gather(const Lowering *l, const Step *s) {
    const Dtype dtype = buffer_of(l, s->gather.x)->slot.layout.dtype;
    KernelCall *call = call_with_order(l, s, KERNEL_gather, s->gather.experts);
    constant_integer(l, call, "x_stride", stride_of(l, s->gather.x));
    constant_word(l, call, "c_type", dtype_c_type(dtype));
    call->comment =
        arena_printf(l->arena, "rows of %s in the order of their experts", counted(l->arena, s->n, "column"));
    call->stem = arena_printf(l->arena, "gather_%lld", (long long)s->n);
    give_operand(call, "x", s->gather.x);
    give_operand(call, "order", s->order);
    return call;
}

KernelCall *lower_combine(const Lowering *l, const Step *s) {
    const CombineStep *m = &s->combine;
    KernelCall *call = call_with_order(l, s, KERNEL_combine, m->experts);
    const bool residual = m->residual.buffer != NO_BUFFER;
    constant_integer(l, call, "x_stride", stride_of(l, m->x));
    constant_integer(l, call, "choice_stride", stride_of(l, m->choice));
    constant_integer(l, call, "other_stride", stride_of(l, m->residual));
    constant_integer(l, call, "has_residual", residual);
    constant_integer(l, call, "has_scale", m->residual_scale != 1);
    constant_real(l, call, "scale", m->residual_scale);
    call->comment = arena_printf(l->arena, "%sthe sum of %lld parts times their gates", residual ? "other + " : "",
                                 (long long)m->experts->top);
    call->stem = arena_printf(l->arena, "combine_%lld", (long long)s->n);
    give_operand(call, "x", m->x);
    give_operand(call, "choice", m->choice);
    give_operand(call, "order", m->order);
    give_operand(call, "other", m->residual);
    return call;
}
