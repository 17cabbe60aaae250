/* lower_rows.c: lowers the steps whose kernels work row by row. */
#include "kernel_call.h"

KernelCall *lower_tally(const Lowering *l, const Step *s) {
    const TallyStep *m = &s->tally;
    KernelCall *call = call_new(l, KERNEL_tally, l->isa, l->isa);
    fix_rows(l, call, s->rows);
    sequence_rows(l, call, s->rows);
    constant_word(l, call, "ids", l->plan->graph->inputs[m->ids].kind->array);
    constant_integer(l, call, "TOKEN", m->token);
    constant_integer(l, call, "out_stride", stride_of(l, s->out));
    call->comment = arena_printf(l->arena, "how many tokens other than %lld there are up to each row of a sequence",
                                 (long long)m->token);
    if (m->cache != NO_CACHE) give_cache(call, "before", m->cache);
    give_operand(call, "out", s->out);
    return call;
}

/* Positions are counts of ids, of which one has position 0. */
static void counted_positions(const Lowering *l, KernelCall *call, const EmbedStep *m) {
    const bool counted = m->counts.buffer != NO_BUFFER;
    constant_integer(l, call, "has_counts", counted);
    constant_word(l, call, "at", m->at == NO_INPUT ? "" : l->plan->graph->inputs[m->at].kind->array);
    if (!counted) return;
    constant_word(l, call, "counted", l->plan->graph->inputs[m->counted].kind->array);
    constant_integer(l, call, "skipped", m->skipped);
    constant_integer(l, call, "counts_stride", stride_of(l, m->counts));
    give_operand(call, "counts", m->counts);
}

KernelCall *lower_embed(const Lowering *l, const Step *s) {
    const EmbedStep *m = &s->embed;
    bool lookup = m->ids != NO_INPUT, segments = m->segment_ids != NO_INPUT, positions = m->positions != NO_PACKED;
    KernelCall *call = call_new(l, KERNEL_rows, l->isa, l->isa);
    constant_integer(l, call, "N", s->n);
    fix_rows(l, call, s->rows);
    sequence_rows(l, call, s->rows);
    constant_word(l, call, "source", s->kind == STEP_PREPEND ? "prepend" : lookup ? "lookup" : "rows");
    constant_word(l, call, "ids", lookup ? l->plan->graph->inputs[m->ids].kind->array : "none");
    constant_integer(l, call, "may_lack_ids", lookup && l->plan->graph->inputs[m->ids].optional);
    constants_of_dtype(l, call, m->table);
    constants_of_groups(l, call, m->table, m->scales, m->offsets);
    const Packed *table = m->table == NO_PACKED ? NULL : &l->plan->program->packed[m->table];
    constant_integer(l, call, "GROUP", table ? table->slot.layout.k_group : 1);
    constant_word(l, call, "BOUNDS", m->sharding ? sharding_bounds(l->arena, m->sharding) : "");
    constant_integer(l, call, "in_panels", m->table_in_panels);
    constant_integer(l, call, "has_mask_token", m->mask >= 0);
    if (m->mask >= 0) constant_integer(l, call, "mask", m->mask);
    constant_integer(l, call, "has_scale", lookup && m->scale != 1 && m->mask < 0);
    constant_integer(l, call, "has_segments", segments);
    constant_integer(l, call, "has_positions", positions);
    const int second = m->front[1];
    const Shape *more = second == NO_PACKED ? NULL : &l->plan->program->packed[second].shape;
    constant_integer(l, call, "tokens_in_front",
                     (m->front[0] != NO_PACKED) + (!more ? 0 : more->rank == 2 ? more->dims[0] : 1));
    constant_integer(l, call, "has_second", more != NULL);
    constant_integer(l, call, "offset", m->first_position);
    counted_positions(l, call, m);
    constant_integer(l, call, "x_stride", stride_of(l, m->given));
    constant_integer(l, call, "out_stride", stride_of(l, s->out));
    constant_real(l, call, "scale", m->scale);
    call->comment = arena_printf(l->arena, "rows of %s%s%s%s%s", counted(l->arena, s->n, "column"),
                                 lookup ? ", looked up" : "", m->mask >= 0 ? ", without a mask token" : "",
                                 segments ? ", + segments" : "", positions ? ", + positions" : "");
    give_packed(call, "table", m->table);
    give_packed(call, "scales", m->scales);
    give_packed(call, "offsets", m->offsets);
    give_operand(call, "x", m->given);
    give_packed(call, "segments", m->segments);
    give_packed(call, "positions", m->positions);
    give_packed(call, "first", m->front[0]);
    give_packed(call, "second", m->front[1]);
    give_operand(call, "out", s->out);
    return call;
}

KernelCall *lower_patches(const Lowering *l, const Step *s) {
    const PatchesStep *m = &s->patches;
    KernelCall *call = call_new(l, KERNEL_patches, l->isa, l->isa);
    constant_integer(l, call, "cached", 0);
    const int64_t columns = squares_along(m->width, m->patch, m->step);
    constant_integer(l, call, "patch_rows", squares_along(m->height, m->patch, m->step) * columns);
    constant_integer(l, call, "patch_columns", columns);
    constant_integer(l, call, "step", m->step);
    constant_integer(l, call, "channels", m->channels);
    constant_integer(l, call, "height", m->height);
    constant_integer(l, call, "width", m->width);
    constant_integer(l, call, "patch", m->patch);
    constant_integer(l, call, "out_stride", stride_of(l, s->out));
    call->comment = arena_printf(l->arena, "squares of %lld x %lld pixels as rows", (long long)m->patch,
                                 (long long)m->patch);
    give_operand(call, "out", s->out);
    return call;
}

KernelCall *lower_windows(const Lowering *l, const Step *s) {
    const WindowsStep *m = &s->windows;
    KernelCall *call = call_new(l, KERNEL_windows, l->isa, l->isa);
    if (!m->results) sequence_rows(l, call, s->rows);
    else constant_integer(l, call, "cached", 0);
    constant_integer(l, call, "given", m->x.buffer == NO_BUFFER);
    constant_integer(l, call, "channels", m->channels);
    constant_integer(l, call, "frames", m->frames);
    constant_integer(l, call, "kernel", m->kernel);
    constant_integer(l, call, "stride", m->stride);
    constant_integer(l, call, "results", m->results);
    constant_integer(l, call, "x_stride", stride_of(l, m->x));
    constant_integer(l, call, "out_stride", stride_of(l, s->out));
    call->comment = arena_printf(l->arena, "windows of %s, every %lldth, of %s as rows",
                                 counted(l->arena, m->kernel, "row"), (long long)m->stride,
                                 counted(l->arena, m->channels, "channel"));
    give_operand(call, "x", m->x);
    give_operand(call, "out", s->out);
    return call;
}

KernelCall *lower_norm(const Lowering *l, const Step *s) {
    const NormStep *m = &s->norm;
    const char *kind = op_name(m->centered ? OP_layernorm : OP_rmsnorm);
    int64_t d = s->n / m->groups;
    const Isa *isa = isa_for(l->isa, d);
    KernelCall *call = call_new(l, KERNEL_norm, isa, isa);
    constant_integer(l, call, "D", d);
    constant_integer(l, call, "GROUPS", m->groups);
    constant_integer(l, call, "UNROLL", l->unrolled ? WHOLE : 2);
    constant_integer(l, call, "G_UNROLL", l->unrolled ? WHOLE : 1);
    fix_rows(l, call, s->rows);
    constant_integer(l, call, "centered", m->centered);
    constant_integer(l, call, "has_bias", m->bias != NO_PACKED);
    constant_integer(l, call, "weight_per_group", m->weight_per_group);
    constant_integer(l, call, "x_stride", stride_of(l, m->x));
    constant_integer(l, call, "out_stride", stride_of(l, s->out));
    constant_real(l, call, "eps", m->eps);
    constant_real(l, call, "inverse_d", 1 / (double)d);
    call->comment = arena_printf(l->arena, "%s over %s, eps %g", kind, counted(l->arena, d, "column"), m->eps);
    call->stem = arena_printf(l->arena, "%s_%lld", kind, (long long)d);
    give_operand(call, "x", m->x);
    give_packed(call, "weight", m->weight);
    give_packed(call, "bias", m->bias);
    give_operand(call, "out", s->out);
    call_helper(call, "fma1");
    return call;
}

/* The inputs whose integers are the positions of rows, and the pairs after the last pair that each of them rotates. */
static void rope_positions(const Lowering *l, KernelCall *call, const RopeStep *m) {
    int64_t end = 0;
    constant_integer(l, call, "AT", m->n_at);
    for (int i = 0; i < m->n_at; i++) {
        end += m->sections ? m->sections[i] : m->width / 2;
        constant_word(l, call, arena_printf(l->arena, "at%d", i), l->plan->graph->inputs[m->at[i]].kind->array);
        constant_integer(l, call, arena_printf(l->arena, "end%d", i), end);
    }
}

KernelCall *lower_rope(const Lowering *l, const Step *s) {
    const RopeStep *m = &s->rope;
    KernelCall *call = call_new(l, KERNEL_rope, l->isa, l->isa);
    fix_rows(l, call, s->rows);
    sequence_rows(l, call, s->rows);
    rope_positions(l, call, m);
    constant_integer(l, call, "second_table", m->second_table);
    constant_integer(l, call, "HEADS", m->heads);
    constant_integer(l, call, "D", m->head_dim);
    constant_integer(l, call, "WIDTH", m->width);
    constant_integer(l, call, "interleaved", m->interleaved);
    constant_integer(l, call, "x_stride", stride_of(l, m->x));
    constant_integer(l, call, "out_stride", stride_of(l, s->out));
    constant_integer(l, call, "copy", m->x.buffer != s->out.buffer);
    call->comment = arena_printf(l->arena, "%s of %s rotated by position", counted(l->arena, m->width, "column"),
                                 counted(l->arena, m->heads, "head"));
    give_operand(call, "x", m->x);
    give_packed(call, "cosine", m->cos);
    give_packed(call, "sine", m->sin);
    give_operand(call, "out", s->out);
    const bool in_vectors = l->isa->width > 1 && m->width / 2 % l->isa->width == 0;
    if (m->interleaved && !in_vectors) call_helper(call, "rotate");
    return call;
}

KernelCall *lower_map(const Lowering *l, const Step *s) {
    const MapStep *m = &s->map;
    const char *kind = s->kind == STEP_COPY ? "copy" : op_name(m->op);
    KernelCall *call = call_new(l, KERNEL_map, l->isa, l->isa);
    constant_integer(l, call, "N", s->n);
    fix_rows(l, call, s->rows);
    constant_word(l, call, "op", kind);
    constant_word(l, call, "formula", s->kind == STEP_COPY ? "" : op_formula(m->op));
    constant_integer(l, call, "has_other", m->other.buffer != NO_BUFFER);
    constant_integer(l, call, "has_factor", m->factor != NO_PACKED);
    constant_integer(l, call, "same_column", m->same_column);
    constant_integer(l, call, "x_stride", stride_of(l, m->x));
    constant_integer(l, call, "other_stride", stride_of(l, m->other));
    constant_integer(l, call, "out_stride", stride_of(l, s->out));
    constant_real(l, call, "scale", m->scale);
    constant_integer(l, call, "has_scale", m->scale != 1);
    constant_real(l, call, "cap", m->cap);
    constant_integer(l, call, "has_cap", m->cap > 0);
    constant_integer(l, call, "plus_one", m->plus_one);
    constant_real(l, call, "inverse_cap", m->cap > 0 ? 1 / m->cap : 0);
    constant_word(l, call, "activation", activation_name(m->activation));
    call->comment = arena_printf(l->arena, "%s over %s", kind, counted(l->arena, s->n, "column"));
    call->stem = arena_printf(l->arena, "%s_%lld", kind, (long long)s->n);
    give_operand(call, "x", m->x);
    give_operand(call, "other", m->other);
    give_packed(call, "factor", m->factor);
    give_operand(call, "out", s->out);
    if (s->kind == STEP_MAP && m->op == OP_softcap) call_helper(call, "tanh");
    if (s->kind == STEP_MAP && (m->op == OP_activation || m->op == OP_gate))
        call_helper(call, activation_name(m->activation));
    return call;
}

KernelCall *lower_quantize(const Lowering *l, const Step *s) {
    KernelCall *call = call_new(l, KERNEL_quantize, l->isa, l->isa);
    constant_integer(l, call, "N", s->n);
    const bool smooth = s->quantize.smooth != NO_PACKED;
    constant_integer(l, call, "ROW_HEAD", ROW_HEAD);
    fix_rows(l, call, s->rows);
    constant_integer(l, call, "has_smooth", smooth);
    const int columns = s->quantize.columns;
    constant_integer(l, call, "OUTLIERS", columns == NO_PACKED ? 0 : l->plan->program->packed[columns].shape.dims[0]);
    constant_integer(l, call, "x_stride", stride_of(l, s->quantize.x));
    constant_integer(l, call, "out_stride", stride_of(l, s->out));
    call->comment = arena_printf(l->arena, "%s%s as codes of 0 to 255", counted(l->arena, s->n, "column"),
                                 smooth ? ", smoothed," : "");
    call->stem = arena_printf(l->arena, "%s_%lld", smooth ? "smooth" : "quantize", (long long)s->n);
    give_operand(call, "x", s->quantize.x);
    give_packed(call, "smooth", s->quantize.smooth);
    give_packed(call, "columns", columns);
    give_operand(call, "out", s->out);
    return call;
}

KernelCall *lower_learned(const Lowering *l, const Step *s) {
    KernelCall *call = call_new(l, KERNEL_learned, l->isa, l->isa);
    constant_integer(l, call, "N", s->n);
    constant_integer(l, call, "out_stride", stride_of(l, s->out));
    call->comment = "a learned row for each sequence";
    call->stem = arena_printf(l->arena, "learned_%lld", (long long)s->n);
    give_packed(call, "row", s->learned.row);
    give_operand(call, "out", s->out);
    return call;
}

/* The ids that choose the row of a pool, which may be the ids of the source. */
static void pool_ids(const Lowering *l, KernelCall *call, const PoolStep *m) {
    const GraphInput *ids = m->ids == NO_INPUT ? NULL : &l->plan->graph->inputs[m->ids];
    constant_word(l, call, "by_id", !ids ? "none" : m->pool == POOL_LAST_SKIP ? "skip" : "token");
    if (!ids) return;
    constant_word(l, call, "ids", ids->kind->array);
    constant_word(l, call, "id_starts", ids->of_source ? "source_starts" : "starts");
    constant_integer(l, call, "ID_ROWS", (ids->of_source ? l->plan->source_seq : l->plan->seq).n);
    constant_integer(l, call, "TOKEN", m->token);
    constant_integer(l, call, "SHIFT", m->shifted);
}

KernelCall *lower_pool(const Lowering *l, const Step *s) {
    const PoolStep *m = &s->pool;
    KernelCall *call = call_new(l, KERNEL_pool, l->isa, l->isa);
    constant_integer(l, call, "N", s->n);
    fix_rows(l, call, ROWS_CHUNK);
    const bool by_ids = m->ids != NO_INPUT;
    constant_word(l, call, "kind", by_ids ? "row" : pool_name(m->pool));
    constant_integer(l, call, "BEGIN", m->begin);
    pool_ids(l, call, m);
    constant_integer(l, call, "single", m->single);
    constant_integer(l, call, "l2", m->unit_length);
    constant_integer(l, call, "x_stride", stride_of(l, m->x));
    constant_integer(l, call, "out_stride", stride_of(l, s->out));
    const char *kind = by_ids ? arena_printf(l->arena, "%s %lld", pool_name(m->pool), (long long)m->token)
                              : pool_name(m->pool);
    call->comment = m->single ? "a row of each sequence, scaled to length 1"
                              : arena_printf(l->arena, "%s of the rows of a sequence%s", kind,
                                             m->unit_length ? ", scaled to length 1" : "");
    give_operand(call, "x", m->x);
    give_operand(call, "out", s->out);
    return call;
}

KernelCall *lower_round(const Lowering *l, const Step *s) {
    const RoundStep *m = &s->round;
    KernelCall *call = call_new(l, KERNEL_round, l->isa, l->isa);
    const char *heads = counted(l->arena, m->heads, "head"), *dtype = dtype_name(m->dtype);
    fix_rows(l, call, s->rows);
    constant_word(l, call, "dtype", dtype);
    constant_integer(l, call, "HEADS", m->heads);
    constant_integer(l, call, "D", s->n / m->heads);
    constant_integer(l, call, "x_stride", stride_of(l, m->x));
    constant_integer(l, call, "out_stride", stride_of(l, s->out));
    constant_integer(l, call, "copy", m->x.buffer != s->out.buffer);
    call->comment = arena_printf(l->arena, "%s of %lld rounded to %s", heads, (long long)(s->n / m->heads), dtype);
    call->stem = arena_printf(l->arena, "round_%lld", (long long)s->n);
    give_operand(call, "x", m->x);
    give_operand(call, "out", s->out);
    return call;
}

bool stores_integers(const Lowering *l, const Step *s) {
    (void)l;
    return s->store.input != NO_INPUT;
}

KernelCall *lower_store_integers(const Lowering *l, const Step *s) {
    const Cache *cache = cache_of(l->plan, s->store.cache);
    KernelCall *call = call_new(l, KERNEL_store_integers, l->isa, l->isa);
    constant_word(l, call, "array", l->plan->graph->inputs[s->store.input].kind->array);
    const Dtype dtype = cache->slot.layout.dtype; /* bits have no ranges */
    constant_word(l, call, "c_type", dtype_c_type(dtype));
    constant_integer(l, call, "ranged", cache->ranges > 0);
    constant_integer(l, call, "ranges_at", cache->ranges / (int64_t)sizeof(int32_t));
    constant_integer(l, call, "of_source", cache->slot.space == SPACE_SOURCE);
    sequence_rows(l, call, s->rows);
    call->comment = arena_printf(l->arena, "%s of rows to a state%s", dtype == DTYPE_F32 ? "numbers" : "integers",
                                 cache->ranges ? ", with the least and the greatest of each panel" : "");
    give_cache(call, "offset", s->store.cache);
    return call;
}

KernelCall *lower_store(const Lowering *l, const Step *s) {
    const Cache *cache = cache_of(l->plan, s->store.cache);
    KernelCall *call = call_new(l, KERNEL_store, l->isa, l->isa);
    constant_integer(l, call, "HEADS", cache->heads);
    constant_integer(l, call, "D", cache->width);
    constant_integer(l, call, "slots", cache->slots);
    constant_integer(l, call, "ring", cache->ring);
    constant_integer(l, call, "in_panels", cache->slot.layout.panel > 0);
    constant_integer(l, call, "of_source", cache->slot.space == SPACE_SOURCE);
    constant_word(l, call, "dtype", dtype_name(cache->slot.layout.dtype));
    constant_word(l, call, "c_type", dtype_c_type(cache->slot.layout.dtype));
    constant_integer(l, call, "scales", cache->scales);
    constant_integer(l, call, "x_stride", stride_of(l, s->store.x));
    sequence_rows(l, call, s->rows);
    call->comment = arena_printf(l->arena, "rows of %s of %lld to their slots%s",
                                 counted(l->arena, cache->heads, "head"), (long long)cache->width,
                                 cache->slot.layout.panel ? " in panels" : "");
    give_operand(call, "x", s->store.x);
    give_cache(call, "offset", s->store.cache);
    return call;
}
