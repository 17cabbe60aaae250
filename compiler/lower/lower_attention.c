/* lower_attention.c: lowers attention: the origin of keys and values, the visible keys of a query, and the number of
 * rows, keys and heads that are computed at once. */
#include "kernel_call.h"

#include <math.h>

/* Whether the keys belong to other rows than the queries of the same sequence. */
static bool has_own_keys(const Plan *plan, const Step *s) {
    const Cache *keys = cache_of(plan, s->attention.key_cache);
    return keys ? keys->slot.space == SPACE_SOURCE : s->rows != s->attention.key_rows;
}

/* Sets the origin of the keys and values of a head. */
static void sources(const Lowering *l, KernelCall *call, const Step *s) {
    const AttentionStep *a = &s->attention;
    const Cache *keys = cache_of(l->plan, a->key_cache), *values = cache_of(l->plan, a->value_cache);
    bool cross = a->key_rows == ROWS_SOURCE && s->rows != ROWS_SOURCE;
    constant_integer(l, call, "from_cache", keys != NULL);
    constant_integer(l, call, "of_source", keys ? keys->slot.space == SPACE_SOURCE : cross);
    constant_integer(l, call, "in_panels", keys && keys->slot.layout.panel);
    constant_integer(l, call, "slots", keys ? keys->slots : 0);
    constant_integer(l, call, "key_scales", keys ? keys->scales : 0);
    constant_integer(l, call, "value_scales", values ? values->scales : 0);
    constant_integer(l, call, "k_stride", keys ? a->head_dim : stride_of(l, a->key));
    constant_integer(l, call, "v_stride", values ? a->value_dim : stride_of(l, a->value));
    constant_integer(l, call, "own_keys", has_own_keys(l->plan, s));
    sequence_rows(l, call, s->rows);
    constant_word(l, call, "key_starts", a->key_rows == ROWS_SOURCE ? "source_starts" : "starts");
    constant_word(l, call, "pairs", pairs_of(l->plan, s));
}

/* Weights are powers of two: a plain scale moves into the exponent's factor. */
static void scales(const Lowering *l, KernelCall *call, const AttentionStep *a) {
    const double log2_e = 1.4426950408889634;
    bool later = !a->n_rescores && !a->weighing && a->scale > 0 && f32_holds(a->scale * log2_e) &&
                 f32_holds(1 / (a->scale * log2_e)) && !is_reproducible(l);
    double unit = later ? a->scale * log2_e : log2_e;
    constant_integer(l, call, "scale_later", later);
    constant_real(l, call, "unit", unit);
    constant_real(l, call, "inverse_unit", 1 / unit);
    constant_real(l, call, "log2_e", log2_e);
    constant_real(l, call, "scale", a->scale);
}

/* Whether rows see all keys of one call, with nothing but scaled products for scores. */
static bool sees_all(const Step *s) {
    const AttentionStep *a = &s->attention;
    return !a->visible && s->rows == a->key_rows && attention_is_plain(s) &&
           a->key_cache == NO_CACHE && a->value_cache == NO_CACHE;
}

/* Whether queries and keys may be multiplied two or four columns at a time, which gives other bits than floats one by
 * one. A decoder's rows must have the same bits with a state, which vectors of floats read; its weights are never
 * rounded. */
static bool joins_columns(const Lowering *l, const Step *s) {
    enum { MOST_COLUMNS = 256 }; /* of some rows, which are on the stack */
    const AttentionStep *a = &s->attention;
    return a->rounds && !is_reproducible(l) && !l->unrolled && a->head_dim % 4 == 0 && a->head_dim <= MOST_COLUMNS &&
           !scores_in_registers(l->plan, l->isa, s);
}

/* Whether queries and keys are multiplied as bytes, whose sums are exact. */
static bool multiplies_bytes(const Lowering *l, const Step *s) {
    const AttentionStep *a = &s->attention;
    return joins_columns(l, s) && a->bytes && isa_has(l->isa, "dot_of_bytes") && a->key_cache == NO_CACHE &&
           a->by_query == NO_PACKED && a->by_key == NO_PACKED;
}

/* Whether weights and values are multiplied as pairs of numbers of bf16, as are queries and keys that are no bytes. */
static bool multiplies_pairs(const Lowering *l, const Step *s) {
    const AttentionStep *a = &s->attention;
    const bool of_call = a->key_cache == NO_CACHE && a->value_cache == NO_CACHE &&
                         pair_scans(a->visible, pair_inputs(a->visible)) == 0;
    const bool sums = a->by_query == NO_PACKED && a->by_key == NO_PACKED && a->vector == NO_PACKED && !a->weighing &&
                      a->first_export < 0 && !a->exports_lse;
    return joins_columns(l, s) && (a->bf16 || multiplies_bytes(l, s)) && isa_has(l->isa, "dot_of_bf16") &&
           isa_for(l->isa, a->value_dim) == l->isa && of_call && sums;
}

/* Whether some rows may not see all keys whose values are multiplied as pairs. A hidden weight is 0, and 0 times an
 * infinite value or NaN would be NaN. Values that are not all finite are added one by one instead. */
static bool hides_values(const Lowering *l, const Step *s) { return multiplies_pairs(l, s) && s->attention.visible; }

/* Numbers from the vectors of distances of a head to those of the next, which may have the same. */
static int64_t distances_step(const Lowering *l, int packed) {
    if (packed == NO_PACKED) return 0;
    const Shape *shape = &l->plan->program->packed[packed].shape;
    return shape->dims[0] > 1 ? shape->dims[1] * shape->dims[2] : 0;
}

/* Sets how a row of queries is combined with its keys, and whether the values are multiplied in pairs. */
static void shape(const Lowering *l, KernelCall *call, const Step *s, RowsTile tile, bool in_pairs) {
    const AttentionStep *a = &s->attention;
    constant_integer(l, call, "GROUP", a->heads / a->kv_heads);
    constant_integer(l, call, "D", a->head_dim);
    constant_integer(l, call, "VD", a->value_dim);
    constant_word(l, call, "kept_as", dtype_name(cache_dtype(l->plan, a->key_cache)));
    constant_word(l, call, "kept_type", dtype_c_type(cache_dtype(l->plan, a->key_cache)));
    constant_integer(l, call, "kept_bytes", (int64_t)dtype_bytes(cache_dtype(l->plan, a->key_cache)));
    constant_integer(l, call, "q_stride", stride_of(l, a->query));
    constant_integer(l, call, "out_stride", stride_of(l, s->out));
    constant_integer(l, call, "additive", a->vector != NO_PACKED);
    constant_integer(l, call, "has_by_query", a->by_query != NO_PACKED);
    constant_integer(l, call, "has_by_key", a->by_key != NO_PACKED);
    constant_integer(l, call, "by_query_step", distances_step(l, a->by_query));
    constant_integer(l, call, "by_key_step", distances_step(l, a->by_key));
    constant_integer(l, call, "DISTANCES", 2 * a->origin + 1);
    static const char *const weights[] = {"softmax", "sigmoid", "none"};
    constant_word(l, call, "WEIGHTS", weights[a->weighing]);
    constant_integer(l, call, "has_sink", a->sink != NO_PACKED);
    constant_rules(l, call, a);
    constant_integer(l, call, "origin", a->origin);
    constant_integer(l, call, "exported", a->first_export >= 0);
    constant_integer(l, call, "has_lse", a->exports_lse);
    constant_integer(l, call, "exact_products", a->bf16);
    constant_integer(l, call, "ROUNDS", a->rounds);
    const bool tiles = call->kernel == KERNEL_attention_tiles, pairs = !tiles && multiplies_pairs(l, s);
    constant_word(l, call, "KEYS", multiplies_bytes(l, s) ? "bytes" : pairs ? "pairs" : "floats");
    constant_integer(l, call, "IN_PAIRS", in_pairs);
    constant_integer(l, call, "HIDES_VALUES", hides_values(l, s));
    scales(l, call, a);
    constant_integer(l, call, "R_MOST", tile.rows);
    constant_integer(l, call, "P_MOST", tile.panels);
    constant_integer(l, call, "C_MOST", tile.columns);
    constant_integer(l, call, "C_LOOPED", l->unrolled ? 0 : columns_looped(call->u, s, tile));
    constant_integer(l, call, "IN_REGISTERS", scores_in_registers(l->plan, l->isa, s));
}

/* Whether there may be a query that sees no key: one of which neither the first key nor its own is always visible. */
static bool may_see_nothing(const Lowering *l, const Step *s) {
    const PairRule *visible = s->attention.visible;
    const PairRange any = {0, INFINITY}, first = {0, 0};
    if (!visible || pair_range(visible, any, first).low == 1) return false;
    return has_own_keys(l->plan, s) || !pair_shows_own(pair_without_abs(l->arena, visible));
}

/* A row without a visible key is `empty`. Sums may begin at another number than 0 if a row may be empty, if it has a
 * sink, and behind the first of several blocks of keys. */
static void sum_constants(const Lowering *l, KernelCall *call, const AttentionStep *a, bool multi, bool empty) {
    const bool carry = multi || empty || a->sink != NO_PACKED || a->exports_lse;
    constant_integer(l, call, "MULTI", multi);
    constant_integer(l, call, "EMPTY", empty);
    constant_integer(l, call, "CARRY", carry);
    if (a->weighing) return;
    if (carry) call_helper(call, "fma1");
    if (a->rounds) call_helper(call, "exp2_bf16");
    if (carry || !a->rounds) call_helper(call, call->kernel == KERNEL_attention_full && !a->rounds ? "exp" : "exp2");
}

/* Whether a mask or a score reads bits of integers. */
static bool reads_bits(const AttentionStep *a) {
    bool found = pair_reads_bits(a->visible);
    for (int i = 0; i < a->n_rescores; i++) found |= pair_reads_bits(a->rescores[i].rule);
    return found;
}

/* Whether a mask or a score has this operation on real numbers that decide. */
static bool applies_to_singles(const AttentionStep *a, PairOp op) {
    bool found = pair_applies_to_singles(a->visible, op);
    for (int i = 0; i < a->n_rescores; i++) found |= pair_applies_to_singles(a->rescores[i].rule, op);
    return found;
}

/* Whether a score computes, lane by lane, a condition, a whole number or an index of a table that has an operation for
 * which the C calls a function. */
static bool lanes_repeat(const PairRule *rule) {
    if (!rule) return false;
    if (rule->op == PAIR_real || rule->op == PAIR_list || rule->op == PAIR_table) return pair_has_repeats(rule->a);
    const bool first = rule->op == PAIR_choose ? pair_has_repeats(rule->a) : lanes_repeat(rule->a);
    return first || lanes_repeat(rule->b) || lanes_repeat(rule->c);
}

/* Whether the C of a mask or a score calls the functions of whole numbers, and of real numbers that decide. */
static bool calls_wholes(const Lowering *l, const AttentionStep *a) {
    bool found = a->visible && pair_has_repeats(pair_without_abs(l->arena, a->visible));
    for (int i = 0; i < a->n_rescores; i++) found |= lanes_repeat(a->rescores[i].rule);
    return found;
}

/* The functions that the scores and the mask need. */
static void score_helpers(const Lowering *l, KernelCall *call, const AttentionStep *a) {
    if (a->vector != NO_PACKED) call_helper(call, "tanh");
    if (a->exports_lse) call_helper(call, "log1");
    if (reads_bits(a)) call_helper(call, "bit");
    if (applies_to_singles(a, PAIR_mul)) call_helper(call, "product");
    if (applies_to_singles(a, PAIR_floor)) call_helper(call, "floor");
    if (calls_wholes(l, a)) call_helper(call, "wholes");
    if (a->weighing == WEIGHING_SIGMOID) call_helper(call, "sigmoid");
    for (int i = 0; i < a->n_rescores; i++)
        for (int op = 0; op < PAIR_COUNT; op++)
            if (pair_function((PairOp)op) && pair_reads(a->rescores[i].rule, (PairOp)op))
                call_helper(call, pair_function((PairOp)op));
}

/* The most keys whose scores a row has at once. Weights in pairs are two panels. */
static int64_t scored_keys(const Lowering *l, const Step *s) {
    return round_up(key_block(s), multiplies_pairs(l, s) ? 2 * PANEL : PANEL);
}

/* Numbers from the scores of a row to the scores of the next. Long rows are a line of the cache longer, so that they do
 * not contend for the same lines. */
static int64_t scores_step(const Lowering *l, const Step *s) {
    const int64_t keys = scored_keys(l, s);
    return keys < 256 ? keys : keys + PANEL;
}

/* The list of the panels of a block that rows see (attention_ranges.c.tmpl), which is long where a map's row is one
 * block. A long list is in scratch, since a function has at most 16 KB of the stack. */
static void list_area(const Lowering *l, KernelCall *call, const Step *s, int64_t rows) {
    enum { MOST_BYTES = 8192 };
    const int64_t panels = scored_keys(l, s) / PANEL, numbers = panels * (rows + 2);
    const bool apart = mask_has_ranges(&s->attention) && numbers * (int64_t)sizeof(uint32_t) > MOST_BYTES;
    constant_integer(l, call, "LIST_APART", apart);
    if (apart) call_area(l, call, "list", numbers);
}

/* The areas for `rows` rows of queries: scores of a block of keys and, if there are several blocks, weighted sums. */
static void rows_areas(const Lowering *l, KernelCall *call, const Step *s, int64_t rows) {
    const int64_t columns = round_up(s->attention.value_dim, call->u->width);
    constant_integer(l, call, "SCORES_STEP", scores_step(l, s));
    call_area(l, call, "scores", rows * scores_step(l, s));
    constant_integer(l, call, "SUM_STRIDE", columns);
    if (s->attention.key_bound > key_block(s)) call_area(l, call, "weighted", rows * columns);
    list_area(l, call, s, rows);
}

/* The heads whose rows are computed at once, and the state that they read. `across`: heads of one row, or 0;
 * `together`: heads of all rows, or 1. */
static void heads_of_rows(const Lowering *l, KernelCall *call, const Step *s, int64_t across, int64_t together) {
    const Cache *keys = cache_of(l->plan, s->attention.key_cache);
    constant_integer(l, call, "D_UNROLL", l->unrolled ? WHOLE : 1);
    constant_integer(l, call, "ring", keys && keys->ring ? keys->slots : 0);
    constant_integer(l, call, "ACROSS", across);
    constant_integer(l, call, "TOGETHER", together);
    constant_integer(l, call, "stream", across && weights_stream(l));
}

/* Makes the functions for tile.rows rows of queries and fewer. Forward and decode share these functions, and so do
 * attentions that are alike. heads_of_rows explains `across` and `together`, and shape explains `in_pairs`. */
static KernelCall *rows_of_queries(const Lowering *l, const Step *s, RowsTile tile, int64_t across, int64_t together,
                                   bool in_pairs) {
    const AttentionStep *a = &s->attention;
    const Isa *of_keys = l->unrolled ? isa_for(l->isa, a->key_bound) : l->isa;
    const Cache *keys = cache_of(l->plan, a->key_cache);
    KernelCall *call = call_new(l, KERNEL_attention_rows, of_keys, isa_for(l->isa, a->value_dim));
    shape(l, call, s, tile, in_pairs);
    heads_of_rows(l, call, s, across, together);
    constant_integer(l, call, "slots", across && keys ? keys->slots : 0);
    constant_integer(l, call, "N", l->unrolled ? a->key_bound : 0);
    constant_integer(l, call, "KEY_BLOCK", key_block(s));
    constant_integer(l, call, "clamped", has_own_keys(l->plan, s) && (a->bounds.limit || a->bounds.window));
    sum_constants(l, call, a, a->key_bound > key_block(s), may_see_nothing(l, s));
    rows_areas(l, call, s, across ? across : together > 1 ? together * a->key_bound : tile.rows);
    const bool by_one = multiplies_pairs(l, s) && !in_pairs;
    call->stem = across ? "attention_across" : by_one ? "attention_by_one" : "attention_of";
    score_helpers(l, call, a);
    return call;
}

static void arguments(const Lowering *l, KernelCall *call, const Step *s) {
    const AttentionStep *a = &s->attention;
    give_operand(call, "q", a->query);
    give_keys(call, "k", a->key_cache, a->key);
    give_keys(call, "v", a->value_cache, a->value);
    give_operand(call, "out", s->out);
    if (call->kernel == KERNEL_attention_register_resident || call->kernel == KERNEL_attention_tiles) return;
    give_packed(call, "by_query", a->by_query);
    give_packed(call, "by_key", a->by_key);
    for (int i = 0; i < a->n_inputs; i++) {
        const ScoreInput *input = &a->inputs[i];
        const char *array = input->of_head ? arena_printf(l->arena, "%ss", input->name) : input->name;
        give_named(call, arena_printf(l->arena, "score%d", i), input->packed, array);
    }
    give_packed(call, "sinks", a->sink);
    give_packed(call, "vector", a->vector);
    if (a->first_export >= 0) give(call, "maps");
}

/* Sets the constants that all three kernels share. */
static KernelCall *attention_call(const Lowering *l, const Step *s, KernelKind kernel, const Isa *isa) {
    const AttentionStep *a = &s->attention;
    const Plan *plan = l->plan;
    const bool single = s->rows == ROWS_SEQUENCES; /* one query for each sequence */
    const Length length = single ? (Length){1, true} : s->rows == ROWS_SOURCE ? plan->source_seq : plan->seq;
    const GraphOutput *map = a->first_export >= 0 ? &plan->graph->outputs[a->first_export] : NULL;
    KernelCall *call = call_new(l, kernel, isa, isa);
    constant_integer(l, call, "exact", length.exact && !plan->cached ? length.n : 0);
    constant_integer(l, call, "single", single);
    constant_integer(l, call, "HEADS", a->heads);
    constant_integer(l, call, "KV_HEADS", a->kv_heads);
    shape(l, call, s, rows_tile(l->isa, s), kernel != KERNEL_attention_tiles && multiplies_pairs(l, s));
    sources(l, call, s);
    constant_word(l, call, "map_name", map ? map->name : "");
    constant_integer(l, call, "LSE_HEADS", graph_output_heads(plan->graph, OUT_lse));
    constant_integer(l, call, "LSE_PLACE", a->lse_place);
    constant_integer(l, call, "map_count", map ? graph_output_heads(plan->graph, map->role) : 0);
    call->comment = arena_printf(l->arena, "attention of %s of %lld over the keys of the same sequence",
                                 counted(l->arena, a->heads, "head"), (long long)a->head_dim);
    call->stem = "attention";
    arguments(l, call, s);
    return call;
}

/* Rows of the caller's keys are packed into panels, those of `heads` heads at a time. */
static void keys_area(const Lowering *l, KernelCall *call, const Step *s, int64_t heads) {
    const int64_t room = round_up(s->attention.key_bound, PANEL) * s->attention.head_dim;
    constant_integer(l, call, "KEYS_ROOM", room);
    call_area(l, call, "keys", heads * room);
}

/* The area that is passed to the functions for rows of queries. */
static void block_area(const Lowering *l, KernelCall *call, const KernelCall *rows) {
    call_area(l, call, "block", layout_elements(&LAYOUT_ROWS, rows->scratch_bytes));
}

/* Values that are read for many rows of queries are gathered from the caller's rows, which pays from `least` rows on.
 * Pairs of values are packed in any case. */
static void values_area(const Lowering *l, KernelCall *call, const Step *s) {
    const AttentionStep *a = &s->attention;
    const bool pairs = multiplies_pairs(l, s);
    const int64_t row = round_up(a->value_dim, PANEL), least = 256;
    const bool gathers = !pairs && a->value_cache == NO_CACHE && sequence_bound(l, s->rows) >= least &&
                         !isa_has(l->isa, "small");
    constant_integer(l, call, "GATHERED", gathers ? least : 0);
    constant_integer(l, call, "V_ROW", row);
    if (gathers) call_area(l, call, "values", round_up(a->key_bound, PANEL) * row);
    if (pairs) call_area(l, call, "values", round_up(a->key_bound, 2 * PANEL) / 2 * row);
}

/* The ranges of the numbers of pairs, one for each part of rows and each panel or block of panels. The last block of
 * rows may be three parts. The scan of 1,024 x 1,024 pairs takes 0.25 ms of the 8 to 10 that one head of 64 takes where
 * all panels are mixed, which is the worst case, and heads share the scan (Zen 4, one thread). */
static void pair_ranges_area(const Lowering *l, KernelCall *call, const Step *s, int64_t blocks) {
    const AttentionStep *a = &s->attention;
    const int64_t inputs = pair_scans(a->visible, pair_inputs(a->visible));
    const int64_t parts = ceil_div(sequence_bound(l, s->rows), rows_tile(l->isa, s).rows) + 2;
    const int64_t numbers = parts * (panel_range_numbers(a) + 2 * blocks);
    constant_integer(l, call, "SCAN", numbers);
    if (inputs && mask_has_ranges(a)) call_area(l, call, "pair_ranges", inputs * numbers);
}

/* The ranges of the integers of rows for each input of the mask, panel by panel, of which a state keeps its own, and of
 * blocks of panels where the keys are several blocks. */
static void ranges_area(const Lowering *l, KernelCall *call, const Step *s) {
    const AttentionStep *a = &s->attention;
    const int64_t blocks = a->key_bound > key_block(s) ? (a->key_bound + key_block(s) - 1) / key_block(s) : 0;
    const bool reads = pair_reads(a->visible, PAIR_of_query) || pair_reads(a->visible, PAIR_of_key);
    constant_integer(l, call, "KEY_BLOCK", key_block(s));
    constant_integer(l, call, "BLOCKS", reads || pair_reads(a->visible, PAIR_of_pair) ? blocks : 0);
    pair_ranges_area(l, call, s, blocks);
    if (reads && !l->plan->cached) call_area(l, call, "ranges", pair_inputs(a->visible) * panel_range_numbers(a));
    if (reads && blocks) call_area(l, call, "block_ranges", pair_inputs(a->visible) * blocks * 2);
}

static void fix_lengths(const Lowering *l, KernelCall *call, const Step *s) {
    constant_integer(l, call, "N", sequence_bound(l, s->rows));
    constant_integer(l, call, "M", s->attention.key_bound);
}

KernelCall *lower_attention(const Lowering *l, const Step *s) {
    KernelCall *call = attention_call(l, s, KERNEL_attention, l->isa);
    const Cache *keys = cache_of(l->plan, s->attention.key_cache);
    const int64_t across = heads_across(l->plan, l->isa, s);
    const RowsTile tile = rows_tile(l->isa, s), one = {.rows = 1, .panels = tile.panels, .columns = tile.columns};
    KernelCall *rows = rows_of_queries(l, s, tile, 0, 1, multiplies_pairs(l, s));
    KernelCall *heads = across ? rows_of_queries(l, s, tile, across, 1, false) : rows;
    constant_integer(l, call, "ACROSS", across);
    constant_integer(l, call, "TOGETHER", 1);
    constant_callee(l, call, "rows_name", rows);
    if (across) constant_callee(l, call, "heads_name", heads);
    if (hides_values(l, s)) constant_callee(l, call, "one_name", rows_of_queries(l, s, one, 0, 1, false));
    if (!keys || !keys->slot.layout.panel) keys_area(l, call, s, 1);
    values_area(l, call, s);
    ranges_area(l, call, s);
    block_area(l, call, rows->scratch_bytes > heads->scratch_bytes ? rows : heads);
    return call;
}

/* As multiplies_pairs, in tiles. The scores of some rows and all keys are in the second level of the cache, which a
 * processor with tiles has room for. */
bool attends_in_tiles(const Lowering *l, const Step *s) {
    enum { MOST_TILE_KEYS = 2048 };
    const AttentionStep *a = &s->attention;
    return isa_has(l->isa, "tiles") && !is_reproducible(l) && a->rounds && (a->bf16 || multiplies_bytes(l, s)) &&
           sees_all(s) && !a->n_rescores && a->scale > 0 && a->key_bound <= MOST_TILE_KEYS && !l->unrolled &&
           !scores_in_registers(l->plan, l->isa, s); /* few keys */
}

KernelCall *lower_attention_tiles(const Lowering *l, const Step *s) {
    enum { ROWS = 32 }; /* of two tiles */
    const AttentionStep *a = &s->attention;
    KernelCall *call = attention_call(l, s, KERNEL_attention_tiles, l->isa);
    const bool bytes = multiplies_bytes(l, s);
    const int64_t keys = round_up(a->key_bound, 2 * PANEL), values = round_up(a->value_dim, PANEL),
                  words = bytes ? round_up(a->head_dim, 64) / 4 : round_up(a->head_dim, 2 * PANEL) / 2;
    call->stem = "attention_tiles";
    sum_constants(l, call, a, false, false);
    /* a line more, so that rows do not contend for the same lines of the cache */
    constant_integer(l, call, "KEY_BLOCK", keys + PANEL);
    if (!bytes) call_area(l, call, "panel", PANEL * words);
    call_area(l, call, "keys", keys * (bytes ? words + 2 : words));
    call_area(l, call, "values", keys * values / 2);
    call_area(l, call, "queries", ROWS * words);
    call_area(l, call, "block", ROWS * (keys + PANEL));
    call_area(l, call, "sums", ROWS * values);
    return call;
}

KernelCall *lower_attention_full(const Lowering *l, const Step *s) {
    KernelCall *call = attention_call(l, s, KERNEL_attention_full, l->isa);
    fix_lengths(l, call, s);
    heads_of_rows(l, call, s, 0, 1);
    keys_area(l, call, s, 1);
    constant_integer(l, call, "KEY_BLOCK", round_up(s->attention.key_bound, PANEL));
    constant_integer(l, call, "SCORES_STEP", round_up(s->attention.key_bound, PANEL));
    call_area(l, call, "block", rows_tile(l->isa, s).rows * round_up(s->attention.key_bound, PANEL));
    /* The template finds the empty rows that bounds without inputs make. */
    const AttentionStep *a = &s->attention;
    sum_constants(l, call, a, false, may_see_nothing(l, s) && (a->bounds.rest || pair_inputs(a->visible)));
    score_helpers(l, call, &s->attention);
    return call;
}

KernelCall *lower_attention_register_resident(const Lowering *l, const Step *s) {
    const Isa *isa = isa_for(l->isa, s->attention.key_bound);
    KernelCall *call = attention_call(l, s, KERNEL_attention_register_resident, isa);
    int64_t together = heads_together(l->plan, l->isa, s), group = s->attention.heads / s->attention.kv_heads;
    KernelCall *rows = rows_of_queries(l, s, rows_tile(l->isa, s), 0, together, false);
    fix_lengths(l, call, s);
    constant_integer(l, call, "TOGETHER", together);
    constant_callee(l, call, "rows_name", rows);
    keys_area(l, call, s, together > group ? together / group : 1);
    block_area(l, call, rows);
    return call;
}
