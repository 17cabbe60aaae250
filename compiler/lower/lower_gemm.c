/* lower_gemm.c: lowers matrix products: the target's registers determine the tile, and the step determines the
 * epilogue. */
#include "kernel_call.h"

/* Behind the last product of a call comes the first product of the next call. */
int weights_after(const Plan *plan, const Step *s) {
    const Step *next = s;
    do {
        next = next + 1 < plan->steps + plan->n_steps ? next + 1 : plan->steps;
    } while (next->kind != STEP_GEMM);
    return next->gemm.weight;
}

/* The scale before the sum and the scale of the sum are one factor if nothing is between them. */
static bool folds_scale(const GemmStep *g) {
    return g->scale != 1 && gemm_has_residual(g) && !g->has_activation && !gemm_has_factor(g) && g->cap == 0 &&
           f32_holds(g->residual_scale * g->scale);
}

/* The residual is added to the sums themselves: no product precedes the addition, so a C compiler cannot contract both
 * into one operation. */
static bool sums_alone(const GemmStep *g) {
    return g->scale == 1 && g->residual_scale == 1 && !g->has_activation && !gemm_has_factor(g) && g->cap == 0;
}

static void epilogue(const Lowering *l, KernelCall *call, const Step *s) {
    const GemmStep *g = &s->gemm;
    const Buffer *out = buffer_of(l, s->out);
    bool residual = gemm_has_residual(g), folded = folds_scale(g) && !is_reproducible(l);
    bool exact = out->slot.space == SPACE_OUTPUT || g->heads || /* behind a head stands the next one */
                 (residual && buffer_of(l, g->residual)->slot.space != SPACE_WORKSPACE);
    constant_integer(l, call, "out_stride", out->stride);
    constant_integer(l, call, "exact_out", exact); /* no vector reaches beyond the last column */
    constant_integer(l, call, "factor_stride", stride_of(l, g->factor));
    constant_integer(l, call, "other_stride", stride_of(l, g->residual));
    constant_integer(l, call, "has_bias", g->bias != NO_PACKED);
    constant_integer(l, call, "OUTLIERS",
                     g->outliers == NO_PACKED ? 0 : packed_columns(&l->plan->program->packed[g->outliers]));
    constant_integer(l, call, "has_scale", g->scale != 1 && !folded);
    constant_integer(l, call, "has_cap", g->cap > 0);
    constant_integer(l, call, "has_activation", g->has_activation);
    constant_integer(l, call, "has_factor", gemm_has_factor(g));
    constant_integer(l, call, "has_residual", residual);
    constant_integer(l, call, "rounds", g->rounds);
    constant_integer(l, call, "plain_residual", sums_alone(g));
    constant_real(l, call, "scale", g->scale);
    constant_real(l, call, "cap", g->cap);
    constant_real(l, call, "inverse_cap", g->cap > 0 ? 1 / g->cap : 0);
    constant_real(l, call, "residual_scale", folded ? g->residual_scale * g->scale : g->residual_scale);
    constant_word(l, call, "activation", g->has_activation ? activation_name(g->activation) : "none");
}

/* Divides an unrolled tile with a large K among several functions, each of which adds the products of its range of k to
 * sums in scratch. Tiles whose sums are integers, or belong to groups, are not divided. */
static void k_steps(const Lowering *l, KernelCall *call, const Step *s, int64_t used) {
    int64_t step = s->gemm.k;
    const bool floats = buffer_of(l, s->gemm.x)->slot.layout.dtype == DTYPE_F32 && !scale_group(l->plan, s);
    if (l->unrolled && floats) {
        const GemmTile tile = gemm_largest_tile(l->plan, call->v, s, sequence_bound(l, s->rows));
        step = gemm_k_step(call->v, s, tile, used);
        if (step < s->gemm.k) {
            call_area(l, call, "sums", tile.height * tile.panels * round_up(used, call->v->width));
            give(call, "sums");
        }
    }
    if (weights_dtype(l, s->gemm.weight) == DTYPE_BF16) /* in pairs */
        step = step < s->gemm.k && step > 1 ? step / 2 : ceil_div(step, 2);
    constant_integer(l, call, "K_STEP", step);
}

void give_weights(const Lowering *l, KernelCall *call, const Step *s, bool sums) {
    const GemmStep *g = &s->gemm;
    give_packed(call, "w", g->weight);
    if (weights_stream(l)) give_packed(call, "next", weights_after(l->plan, s));
    give_packed(call, "scales", g->scales);
    give_packed(call, "offsets", g->offsets);
    if (sums) give_packed(call, "column_sums", g->sums);
    give_packed(call, "bias", g->bias);
    give_packed(call, "outliers", g->outliers);
}

/* The product as the kernel computes it, with tiles of the given size where it is not 0. */
static KernelCall *gemm_call(const Lowering *l, const Step *s, KernelKind kernel, GemmTile given) {
    const GemmStep *g = &s->gemm;
    const int64_t used = panel_columns(l->plan, s);
    const Isa *isa = isa_for(l->isa, used);
    const int64_t shared = scale_group(l->plan, s);
    KernelCall *call = call_new(l, kernel, isa, isa);
    const int group = l->plan->program->packed[g->weight].slot.layout.k_group;
    const bool dots = buffer_of(l, g->x)->slot.layout.dtype == DTYPE_U8;
    const GemmTile tile = given.height ? given
                          : shared     ? gemm_group_tile(isa, used, dots, g->offsets != NO_PACKED)
                          : dots       ? gemm_dots_tile(isa, used)
                                       : gemm_tile(isa, used);
    constant_integer(l, call, "K", ceil_div(g->k, group)); /* in groups */
    constant_integer(l, call, "GROUP", group);
    constant_integer(l, call, "K_REAL", g->k);
    constants_of_groups(l, call, g->weight, g->scales, g->offsets);
    constant_integer(l, call, "DOTS", dots);
    constant_integer(l, call, "bf16_rows", g->bf16);
    constant_integer(l, call, "N", s->n);
    constant_integer(l, call, "USED", used);
    constants_of_dtype(l, call, g->weight);
    constant_integer(l, call, "H_MOST", tile.height);
    constant_integer(l, call, "P_MOST", tile.panels);
    constant_integer(l, call, "K_UNROLL", l->unrolled ? WHOLE : 1);
    k_steps(l, call, s, used);
    constant_integer(l, call, "CHAINS", gemm_chains(l->plan, isa, s, tile, sequence_bound(l, s->rows)));
    fix_rows(l, call, s->rows);
    constant_integer(l, call, "x_stride", stride_of(l, g->x));
    constant_integer(l, call, "ROW_HEAD", ROW_HEAD);
    constant_integer(l, call, "stream", weights_stream(l));
    constant_integer(l, call, "SMALL", 0);
    epilogue(l, call, s);
    const char *activation =
        g->has_activation ? arena_printf(l->arena, ", %s", activation_name(g->activation)) : "";
    call->comment = arena_printf(l->arena, "out [rows][%lld] = x [rows][%lld] times weight%s%s%s%s%s%s",
                                 (long long)s->n, (long long)g->k, g->bias != NO_PACKED ? ", + bias" : "",
                                 g->outliers != NO_PACKED ? ", + outliers" : "", activation,
                                 gemm_has_factor(g) ? ", times factor" : "", gemm_has_residual(g) ? ", + other" : "",
                                 g->rounds ? ", to bf16" : "");
    call->stem = arena_printf(l->arena, "gemm_%lldx%lld", (long long)g->k, (long long)s->n);
    give_operand(call, "x", g->x);
    give_weights(l, call, s, dots);
    give_operand(call, "factor", g->factor);
    give_operand(call, "other", g->residual);
    give_operand(call, "out", s->out);
    if (g->cap > 0) call_helper(call, "tanh");
    if (g->has_activation) call_helper(call, activation_name(g->activation));
    return call;
}

KernelCall *lower_gemm(const Lowering *l, const Step *s) { return gemm_call(l, s, KERNEL_gemm, (GemmTile){0, 0}); }

bool multiplies_in_tiles(const Lowering *l, const Step *s) {
    const GemmStep *g = &s->gemm;
    const bool integers = buffer_of(l, g->x)->slot.layout.dtype == DTYPE_U8 && !scale_group(l->plan, s);
    const bool floats = g->bf16 && !is_reproducible(l); /* whose sums the tiles round in an order of their own */
    return isa_has(l->isa, "tiles") && (integers || floats) && !l->unrolled &&
           isa_for(l->isa, panel_columns_of_ranks(l->plan, s)) == l->isa;
}

/* The kernel makes pairs of so many rows at a time: those of 1536 columns take 384 KiB of the second-level cache. */
enum { PAIRED_ROWS = 128 };

/* Vectors compute the products of few rows of codes, since sums of integers have the same bits in both. Products in
 * bf16 are always computed in tiles. */
KernelCall *lower_gemm_tiles(const Lowering *l, const Step *s) {
    KernelCall *call = gemm_call(l, s, KERNEL_gemm_tiles, (GemmTile){0, 0});
    call->stem = arena_printf(l->arena, "tiles_%lldx%lld", (long long)s->gemm.k, (long long)s->n);
    if (s->gemm.bf16) {
        const int64_t steps = ceil_div(s->gemm.k, 2 * PANEL);
        constant_integer(l, call, "ROWS_MOST", PAIRED_ROWS);
        call_area(l, call, "codes", (PAIRED_ROWS + 1) * steps * PANEL); /* and a row of zeros */
        give(call, "area");
        return call;
    }
    constant_integer(l, call, "ROWS_LEAST", TILE_ROWS_LEAST);
    constant_callee(l, call, "few", gemm_call(l, s, KERNEL_gemm, (GemmTile){TILE_ROWS_LEAST - 1, 4}));
    return call;
}

/* Whether short loops take the place of tiles. They multiply one row of codes by the columns of a panel, one column or
 * four at a time. */
bool multiplies_small(const Lowering *l, const Step *s) {
    return isa_has(l->isa, "small") && buffer_of(l, s->gemm.x)->slot.layout.dtype == DTYPE_U8 &&
           !scale_group(l->plan, s) && !l->unrolled;
}

KernelCall *lower_gemm_small(const Lowering *l, const Step *s) {
    KernelCall *call = gemm_call(l, s, KERNEL_gemm_small, (GemmTile){1, 1});
    call->stem = arena_printf(l->arena, "small_%lldx%lld", (long long)s->gemm.k, (long long)s->n);
    constant_integer(l, call, "SMALL", 1);
    return call;
}

bool multiplies_groups_in_tiles(const Lowering *l, const Step *s) {
    return isa_has(l->isa, "tiles") && buffer_of(l, s->gemm.x)->slot.layout.dtype == DTYPE_U8 &&
           scale_group(l->plan, s) && !l->unrolled && isa_for(l->isa, panel_columns_of_ranks(l->plan, s)) == l->isa;
}

/* Vectors compute the products of few rows, with the same bits. */
KernelCall *lower_gemm_tiles_grouped(const Lowering *l, const Step *s) {
    enum { ROWS_MOST = 128, TILE_K = 64, AHEAD_BYTES = 49152, RING = 16 /* groups */ };
    const GemmStep *g = &s->gemm;
    const bool halves = weights_dtype(l, g->weight) == DTYPE_I4;
    const int rows_least = halves ? 7 : 5; /* below, vectors are faster */
    const bool offset = g->offsets != NO_PACKED;
    const int64_t group = scale_group(l->plan, s), groups = ceil_div(g->k, group);
    const int64_t unpacked = groups < RING ? RING : groups, room = unpacked * group * PANEL; /* in bytes */
    /* Bytes are read where they stand unless the last tile reaches beyond them. */
    const bool copied = halves || g->k % TILE_K != 0;
    KernelCall *call = gemm_call(l, s, KERNEL_gemm_tiles_grouped, (GemmTile){0, 0});
    call->stem = arena_printf(l->arena, "tiles_%lldx%lld", (long long)g->k, (long long)s->n);
    constant_integer(l, call, "ROWS_LEAST", rows_least);
    constant_integer(l, call, "ROWS_MOST", ROWS_MOST);
    constant_integer(l, call, "AHEAD_BYTES", AHEAD_BYTES);
    constant_integer(l, call, "COPIED", copied);
    /* a line more, so that rows do not contend for the same lines of the cache */
    constant_integer(l, call, "APART_STRIDE", round_up(g->k, TILE_K) + TILE_K);
    call_area(l, call, "columns", copied ? room / (int64_t)sizeof(float) : 0);
    call_area(l, call, "factors", unpacked * (1 + offset) * PANEL);
    call_area(l, call, "apart", 16 * (round_up(g->k, TILE_K) + TILE_K) / (int64_t)sizeof(float));
    if (offset) call_area(l, call, "codes", (ROWS_MOST + 7) * groups);
    give(call, "area");
    GemmTile few = gemm_group_tile(l->isa, panel_columns(l->plan, s), true, offset);
    if (few.height >= rows_least) few.height = rows_least - 1;
    constant_callee(l, call, "few", gemm_call(l, s, KERNEL_gemm, few));
    return call;
}
