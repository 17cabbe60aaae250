/* fuse_attention.c: scores, position bias, cap, softmax and weighted sum become one step that works block by block, so
 * that the matrix of scores never exists; appended keys and values go to caches. */
#include "fuse.h"

int cache_of_state(Fuse *f, const GraphState *state, bool of_source) {
    Slot slot = {.space = of_source ? SPACE_SOURCE : SPACE_STATE, .layout = LAYOUT_ROWS, .name = state->name};
    slot.layout.dtype = state->dtype;
    return program_cache(f->arena, f->program, (Cache){.slot = slot, .site = state->site});
}

static void plan_store(Fuse *f, const GraphState *state, int from, int cache, Location location) {
    Step step = step_new(f, STEP_STORE, location, state->out);
    step.name = site_name(f, &state->site);
    step.site = state->site;
    step.store = (StoreStep){.x = f->at[from], .cache = cache};
    step.rows = f->rows[from];
    step.n = columns_of(f, from);
    step.tensor = from;
    step.shape = arena_printf(f->arena, "[rows][%lld] -> state", (long long)step.n);
    step_add(f, step);
}

static const GraphState *state_of(const Fuse *f, const Op *append) {
    if (f->state[append->result] < 0) bug("what `%s` appends is no state", append->where);
    return &f->graph->states[f->state[append->result]];
}

void fuse_append(Fuse *f, const Op *op) {
    const GraphState *state = state_of(f, op);
    int cache = cache_of_state(f, state, false);
    f->cache[op->result] = cache;
    f->rows[op->result] = f->rows[op->inputs[1]];
    plan_store(f, state, op->inputs[1], cache, op->location);
}

void store_source(Fuse *f) {
    for (int s = 0; s < f->graph->n_states; s++) {
        const GraphState *state = &f->graph->states[s];
        if (state->in != NO_TENSOR) continue;
        int cache = cache_of_state(f, state, true);
        plan_store(f, state, state->out, cache, tensor_in(f, state->out)->location);
    }
}

/* The cache from which attention reads t; NO_CACHE if t is rows of a buffer. */
static int read_cache(Fuse *f, int t, const Layout *layout, int64_t heads, int64_t width, int64_t window) {
    if (f->cache[t] == NO_CACHE) return NO_CACHE;
    Cache *cache = &f->program->caches[f->cache[t]];
    *cache = (Cache){.slot = cache->slot, .site = cache->site, .heads = heads, .width = width, .window = window};
    cache->slot.layout.panel = layout->panel;
    return f->cache[t];
}

/* A kernel may not read a whole vector beyond the end of the caller's rows, so values that end within a vector are
 * copied first. */
static Operand whole_vectors(Fuse *f, Location location, int t) {
    Operand at = f->at[t];
    const Buffer *rows = at.buffer == NO_BUFFER ? NULL : &f->plan->buffers[at.buffer];
    if (!rows || rows->slot.space != SPACE_INPUT || columns_of(f, t) % PANEL == 0) return at;
    Step step = step_new(f, STEP_COPY, location, t);
    step.name = arena_printf(f->arena, "copy_%s", tensor_in(f, t)->name);
    step.site = (Site){.layer = -1, .part = step.name};
    step.n = columns_of(f, t);
    step.map = (MapStep){.x = at, .other = NOWHERE, .factor = NO_PACKED};
    step.out = (Operand){workspace_buffer(f, t, step.n), 0};
    step.shape = arena_printf(f->arena, "[rows][%lld]", (long long)step.n);
    step_add(f, step);
    return f->at[t] = step.out;
}

static AttentionStep attention_of(Fuse *f, const Op *scores) {
    AttentionStep a = {.query = f->at[scores->inputs[0]],
                       .key = f->at[scores->inputs[1]],
                       .value = NOWHERE,
                       .key_cache = NO_CACHE,
                       .value_cache = NO_CACHE,
                       .key_rows = f->rows[scores->inputs[1]],
                       .heads = scores->a.heads,
                       .kv_heads = scores->a.kv_heads,
                       .head_dim = scores->a.head_dim,
                       .scale = scores->a.scale,
                       .vector = NO_PACKED,
                       .relative = NO_PACKED,
                       .by_query = NO_PACKED,
                       .by_key = NO_PACKED,
                       .slopes = NO_PACKED,
                       .key_bias = NO_PACKED,
                       .sink = NO_PACKED,
                       .first_export = -1};
    if (scores->kind != OP_additive_scores) return a;
    a.vector = pack_tensor(f, scores->inputs[2], false, false);
    a.heads = a.kv_heads = 1;
    a.head_dim = columns_of(f, scores->inputs[0]);
    return a;
}

/* What the kernels of attention do to a score, in their order: an operation, perhaps the rule of a rescore, and the
 * member of the step for what it reads. */
static const PairRule *by_distance(Arena *arena) { return rule_by_distance(arena, 0); }
static const PairRule *by_position(Arena *arena) { return rule_by_position(arena, 1); }

static const struct {
    OpKind kind;
    bool by_key;
    const PairRule *(*rule)(Arena *arena);
    size_t member;
} score_stages[] = {
    {OP_distance_scores, false, NULL, offsetof(AttentionStep, by_query)},
    {OP_distance_scores, true, NULL, offsetof(AttentionStep, by_key)},
    {OP_rescore, false, by_distance, offsetof(AttentionStep, relative)},
    {OP_rescore, false, rule_slopes, offsetof(AttentionStep, slopes)},
    {OP_rescore, false, by_position, offsetof(AttentionStep, key_bias)},
    {OP_softcap, false, NULL, 0},
};

enum { SCORE_STAGES = sizeof score_stages / sizeof *score_stages };

/* The stage of an op from `stage` on, or SCORE_STAGES; the constants of its rule. */
static int stage_of(Fuse *f, const Op *op, int stage, double constants[MOST_PAIR_CONSTANTS]) {
    for (; stage < SCORE_STAGES; stage++) {
        if (score_stages[stage].kind != op->kind || score_stages[stage].by_key != op->a.by_key) continue;
        const PairRule *rule = score_stages[stage].rule ? score_stages[stage].rule(f->arena) : NULL;
        if (!rule || pair_like(op->a.rule, rule, constants)) break;
    }
    return stage;
}

static void absorb_stage(Fuse *f, AttentionStep *a, const Op *op, int stage, const double *constants) {
    int *packed = (int *)(void *)((char *)a + score_stages[stage].member);
    if (op->kind == OP_softcap) {
        a->softcap = op->a.cap;
    } else if (op->kind == OP_distance_scores) {
        if (f->program->unroll_full) refuse_to_emit(op->location, "`unroll full` of `position content`");
        if (a->scale != 1) refuse_to_emit(op->location, "products by distance after scores that are scaled");
        *packed = pack_distances(f, op->inputs[2]);
        a->origin = op->a.offset;
        a->scale = op->a.scale;
    } else {
        *packed = pack_tensor(f, op->inputs[1], false, false);
        if (score_stages[stage].rule == by_distance) a->origin = (int64_t)constants[0];
        if (score_stages[stage].rule == by_position) a->bias_scale = constants[0];
    }
}

/* Makes the ops between the scores and their softmax part of the step; returns the softmax. */
static const Op *absorb_biases(Fuse *f, AttentionStep *a, const Op *scores) {
    const Op *op = only_reader(f, scores->result);
    int stage = 0;
    for (; op && op->kind != OP_softmax; op = only_reader(f, op->result)) {
        double constants[MOST_PAIR_CONSTANTS] = {0};
        stage = stage_of(f, op, stage, constants);
        if (stage == SCORE_STAGES) refuse_to_emit(op->location, "these operations on scores, or their order");
        absorb_stage(f, a, op, stage++, constants);
        cover(f, op);
    }
    if (!op) refuse_to_emit(scores->location, "scores without a softmax of their own");
    cover(f, op);
    return op;
}

/* The weighted sum of the values; the softmax's result may be an output too. */
static const Op *absorb_values(Fuse *f, AttentionStep *a, const Op *softmax) {
    const Op *weighted = f->reader[softmax->result] < 0 ? NULL : &f->graph->ops[f->reader[softmax->result]];
    if (!weighted || weighted->kind != OP_weighted_sum || weighted->inputs[0] != softmax->result)
        refuse_to_emit(softmax->location, "a softmax without a weighted sum of its own");
    for (int o = 0; o < f->graph->n_outputs; o++)
        if (f->graph->outputs[o].tensor == softmax->result) a->first_export = o;
    cover(f, weighted);
    a->value_dim = weighted->a.head_dim;
    return weighted;
}

/* The largest number of keys of an attention. */
static int64_t key_bound(const Fuse *f, const AttentionStep *a) {
    const Program *program = f->plan->program;
    if (a->key_cache != NO_CACHE && program->caches[a->key_cache].slot.space == SPACE_SOURCE)
        return program->module->model->encoder->seq.n;
    return a->key_rows == ROWS_SOURCE ? f->plan->source_seq.n : f->plan->seq.n;
}

/* The keys of a rule as ranges. */
static KeyRanges ranges_of(const Op *softmax, const PairRule *rule) {
    KeyRanges ranges;
    if (!key_ranges(rule, &ranges)) refuse_to_emit(softmax->location, "a mask that is no union of ranges");
    return ranges;
}

/* What the bounds decide of the rule is no test at the call: a window at least as wide as both hides nothing. */
static void set_visible(Fuse *f, Step *s, const Op *softmax) {
    const int64_t queries = s->rows == ROWS_SOURCE ? f->plan->source_seq.n : f->plan->seq.n;
    const PairRange query = {0, (double)(queries - 1)}, key = {0, (double)(s->attention.key_bound - 1)};
    s->attention.visible = pair_simplified(f->arena, softmax->a.rule, query, key);
    s->attention.keys = ranges_of(softmax, s->attention.visible);
    s->attention.past = softmax->a.past != 0;
}

void fuse_attention(Fuse *f, const Op *scores) {
    AttentionStep a = attention_of(f, scores);
    const Op *softmax = absorb_biases(f, &a, scores);
    if (softmax->a.has_sink) a.sink = pack_tensor(f, softmax->inputs[1], false, false);
    const Op *weighted = absorb_values(f, &a, softmax);
    const KeyRanges keys = ranges_of(softmax, softmax->a.rule);
    const int64_t window = key_ranges_window(&keys);
    a.key_cache = read_cache(f, scores->inputs[1], &LAYOUT_PANELS, a.kv_heads, a.head_dim, window);
    a.value_cache = read_cache(f, weighted->inputs[1], &LAYOUT_ROWS, a.kv_heads, a.value_dim, window);
    a.value = whole_vectors(f, weighted->location, weighted->inputs[1]);
    f->rows[weighted->result] = f->rows[scores->inputs[0]];
    a.bf16 = is_rounded(f, scores->inputs[0]) && is_rounded(f, scores->inputs[1]) && is_rounded(f, weighted->inputs[1]);
    Step step = step_new(f, STEP_ATTENTION, scores->location, weighted->result);
    step.attention = a;
    step.attention.key_bound = key_bound(f, &a);
    set_visible(f, &step, softmax);
    step.n = columns_of(f, weighted->result);
    step.out = place_result(f, weighted->result);
    step.shape = arena_printf(f->arena, "%s of %lld", counted(f->arena, a.heads, "head"), (long long)a.head_dim);
    step_add(f, step);
}
