/* fuse_attention.c: scores, position bias, cap, softmax and weighted sum become one step that works block by block, so
 * that the matrix of scores never exists; appended keys and values go to caches. */
#include "fuse.h"

#include <math.h>
#include <string.h>

/* Whether a state keeps the numbers of an input of rows, one for each row. */
static bool is_of_input(const Fuse *f, const GraphState *state) {
    return tensor_in(f, state->in == NO_TENSOR ? state->out : state->in)->rank == 1;
}

int cache_of_state(Fuse *f, const GraphState *state, bool of_source) {
    Slot slot = {.space = of_source ? SPACE_SOURCE : SPACE_STATE, .layout = LAYOUT_ROWS, .name = state->name};
    slot.layout.dtype = state->dtype;
    Cache cache = {.slot = slot, .site = state->site};
    if (is_of_input(f, state)) cache.heads = cache.width = 1;
    return program_cache(f->arena, f->program, cache);
}

static void plan_store(Fuse *f, const GraphState *state, int from, int cache, Location location) {
    const bool of_input = is_of_input(f, state);
    Step step = step_new(f, STEP_STORE, location, state->out);
    step.name = site_name(f, &state->site);
    step.site = state->site;
    step.store = (StoreStep){.x = f->at[from], .input = of_input ? input_index(f, from) : NO_INPUT, .cache = cache};
    step.rows = f->rows[from];
    step.n = of_input ? 1 : columns_of(f, from);
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
                       .by_query = NO_PACKED,
                       .by_key = NO_PACKED,
                       .sink = NO_PACKED,
                       .first_export = -1};
    for (int i = 0; i < MOST_PAIR_INPUTS; i++) a.visible_caches[i] = NO_CACHE;
    if (scores->kind != OP_additive_scores) return a;
    a.vector = pack_tensor(f, scores->inputs[2], false, false);
    a.heads = a.kv_heads = 1;
    a.head_dim = columns_of(f, scores->inputs[0]);
    return a;
}

static void absorb_distances(Fuse *f, AttentionStep *a, const Op *op) {
    int *packed = op->a.by_key ? &a->by_key : &a->by_query;
    if (f->program->unroll_full) refuse_to_emit(op->location, "`unroll full` of `position content`");
    if (a->scale != 1) refuse_to_emit(op->location, "products by distance after scores that are scaled");
    if (*packed != NO_PACKED || a->n_rescores) refuse_to_emit(op->location, "products by distance of new scores");
    *packed = pack_tensor(f, op->inputs[2], false, false);
    a->origin = op->a.offset;
    a->scale = op->a.scale;
}

static void check_condition(const Op *op, const PairRule *rule);
static void check_number(const Op *op, const PairRule *rule);

/* A rule with an operation that attention_pairs.c.tmpl cannot print is a located failure, EXIT_CANNOT. */
static void check_rule(const Op *op, const PairRule *rule) {
    switch (rule->op) {
    case PAIR_given: case PAIR_of_query: case PAIR_of_key: case PAIR_of_pair:
    case PAIR_bit_of_query: case PAIR_bit_of_key:
        refuse_to_emit(op->location, "a score that reads an input of the model");
    case PAIR_below: case PAIR_at_most: case PAIR_equals: case PAIR_differs: case PAIR_and: case PAIR_or:
        refuse_to_emit(op->location, "a score with a condition");
    case PAIR_mod: case PAIR_quotient: refuse_to_emit(op->location, "a score with a quotient of whole numbers");
    case PAIR_floor: case PAIR_log: case PAIR_sin: case PAIR_cos: case PAIR_erf: case PAIR_power:
    case PAIR_head: case PAIR_index: case PAIR_let: case PAIR_entry:
        refuse_to_emit(op->location, "a score with a number that belongs in a table");
    case PAIR_list: case PAIR_table: case PAIR_real: check_number(op, rule->a); return;
    case PAIR_choose: /* of the condition `a` */
        check_condition(op, rule->a);
        check_rule(op, rule->b);
        check_rule(op, rule->c);
        return;
    case PAIR_constant: case PAIR_query: case PAIR_key: case PAIR_score: case PAIR_of_head: case PAIR_number:
    case PAIR_COUNT: return;
    case PAIR_add: case PAIR_sub: case PAIR_mul: case PAIR_div: case PAIR_min: case PAIR_max: case PAIR_abs:
    case PAIR_tanh: case PAIR_sqrt: case PAIR_exp: case PAIR_sigmoid: break;
    case PAIR_single: refuse_to_emit(op->location, "a score with a number of a condition");
    }
    if (rule->a) check_rule(op, rule->a);
    if (rule->b) check_rule(op, rule->b);
}

/* The input of the graph that a rule reads as t, perhaps after the rows that a state keeps of it; or NO_INPUT. */
static int read_input(const Fuse *f, int t) {
    const Op *writer = writer_of(f, t);
    return input_index(f, writer && writer->kind == OP_append ? writer->inputs[1] : t);
}

/* The input of the model that a leaf reads as t; NULL where t is none. */
static const InputKind *kind_read(const Fuse *f, const PairRule *leaf, int t) {
    const int index = read_input(f, t);
    if (index != NO_INPUT) return f->graph->inputs[index].kind;
    const Model *m = f->module->model;
    for (int i = 0; f->cache[t] != NO_CACHE && i < m->n_row_inputs; i++) /* kept with the source */
        if (strcmp(m->row_inputs[i].kind.name, leaf->name) == 0) return &m->row_inputs[i].kind;
    return NULL;
}

/* Adds an input of the model to the inputs of rows that the scores read. */
static void add_score_rows(Fuse *f, AttentionStep *a, const Op *op, const PairRule *leaf, int t) {
    const InputKind *kind = kind_read(f, leaf, t);
    if (f->plan->cached && f->cache[t] == NO_CACHE && kind->rows != PER_SEQUENCE)
        refuse_to_emit(op->location, "a score that reads rows which no state keeps");
    for (int i = 0; i < a->n_score_rows; i++)
        if (a->score_rows[i] == kind) return;
    a->score_caches[a->n_score_rows] = f->cache[t];
    a->score_of_keys[a->n_score_rows] = leaf->op == PAIR_of_key || leaf->op == PAIR_bit_of_key;
    a->score_rows[a->n_score_rows++] = kind;
}

/* The positions of all rows that a step may compute or read. */
static PairRange positions(const Fuse *f) {
    const Model *m = f->module->model;
    int64_t rows = f->plan->seq.n > f->plan->source_seq.n ? f->plan->seq.n : f->plan->source_seq.n;
    if (m->encoder && m->encoder->seq.n > rows) rows = m->encoder->seq.n;
    return (PairRange){0, (double)(rows - 1)};
}

static void absorb_rule(Fuse *f, AttentionStep *a, const Op *op) {
    const int inputs = pair_inputs(op->a.rule), first = op_rule_input(op);
    const PairRule *rule = pair_decided(f->arena, op->a.rule, positions(f), positions(f));
    if (rule->op == PAIR_score) return; /* decided conditions may leave the score as it is */
    if (a->n_rescores == MOST_SCORE_RULES) refuse_to_emit(op->location, "so many rules of a score");
    check_rule(op, rule);
    ScoreRule *rescore = &a->rescores[a->n_rescores++];
    *rescore = (ScoreRule){.rule = rule};
    for (int i = 0; i < inputs; i++) {
        const PairRule *reads = pair_reader(rule, i);
        if (!reads) continue; /* a part that never counts */
        if (kind_read(f, reads, op->inputs[first + i])) {
            add_score_rows(f, a, op, reads, op->inputs[first + i]);
            continue;
        }
        if (a->n_inputs == MOST_SCORE_INPUTS) refuse_to_emit(op->location, "so many tables of a score");
        const char *name = reads->name;
        for (int k = 0; k < a->n_inputs; k++)
            if (strcmp(a->inputs[k].name, name) == 0) name = arena_printf(f->arena, "%s_%d", name, a->n_inputs);
        const int packed = pack_tensor(f, op->inputs[first + i], false, false);
        rescore->inputs[i] = a->n_inputs;
        a->inputs[a->n_inputs++] = (ScoreInput){.name = name,
                                                .packed = packed,
                                                .of_head = reads->op == PAIR_of_head,
                                                .shared = reads->op == PAIR_list,
                                                .width = packed_columns(&f->program->packed[packed])};
    }
}

/* Makes the logarithms of the sums of the scores part of the step, where there are any. */
static void absorb_log_sum(Fuse *f, AttentionStep *a, int scores) {
    const Op *log_sum = log_sum_of(f, scores);
    a->exports_lse = log_sum != NULL;
    if (!log_sum) return;
    cover(f, log_sum);
    for (const GraphOutput *o = f->graph->outputs; o->tensor != log_sum->result; o++)
        if (o->role == OUT_lse) a->lse_place += o->n_heads;
}

/* Makes the ops between the scores and their softmax part of the step; returns the softmax. */
static const Op *absorb_biases(Fuse *f, AttentionStep *a, const Op *scores) {
    const Op *op = score_reader(f, scores->result);
    for (; op && op->kind != OP_softmax; op = score_reader(f, op->result)) {
        if (op->kind == OP_distance_scores) absorb_distances(f, a, op);
        else if (op->kind == OP_rescore) absorb_rule(f, a, op);
        else refuse_to_emit(op->location, "this operation on scores");
        cover(f, op);
    }
    if (!op) refuse_to_emit(scores->location, "scores without a softmax of their own");
    absorb_log_sum(f, a, op->inputs[0]);
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

/* The same of a number that attention_mask.c.tmpl cannot print. */
static void check_number(const Op *op, const PairRule *rule) {
    switch (rule->op) {
    case PAIR_constant:
        if (rule->constant == floor(rule->constant)) return;
        refuse_to_emit(op->location, "a mask of numbers that are not whole");
    case PAIR_query: case PAIR_key: case PAIR_number: case PAIR_of_query: case PAIR_of_key: case PAIR_of_pair:
    case PAIR_bit_of_query: case PAIR_bit_of_key: case PAIR_head: case PAIR_entry:
    case PAIR_add: case PAIR_sub: case PAIR_mul: case PAIR_mod: case PAIR_quotient: case PAIR_min: case PAIR_max:
    case PAIR_abs: break;
    case PAIR_single:
        if (rule->a->op != PAIR_constant) check_number(op, rule->a);
        return;
    case PAIR_floor:
        if (pair_is_single(rule->a)) break;
        refuse_to_emit(op->location, "a floor of a number that no condition rounds");
    case PAIR_div: case PAIR_sqrt:
        if (pair_is_single(rule)) break;
        refuse_to_emit(op->location, "a mask with a condition other than comparisons of whole numbers");
    case PAIR_choose:
        check_condition(op, rule->a);
        check_number(op, rule->b);
        check_number(op, rule->c);
        return;
    default: refuse_to_emit(op->location, "a mask with a condition other than comparisons of whole numbers");
    }
    if (rule->a) check_number(op, rule->a);
    if (rule->b) check_number(op, rule->b);
}

/* The same of a condition. */
static void check_condition(const Op *op, const PairRule *rule) {
    if (rule->op == PAIR_and || rule->op == PAIR_or) {
        check_condition(op, rule->a);
        check_condition(op, rule->b);
    } else if (rule->op == PAIR_differs && rule->a->op == PAIR_given) {
        if (rule->b->op != PAIR_constant || rule->b->constant != floor(rule->b->constant))
            refuse_to_emit(op->location, "a mask that compares its bytes with other than a whole number");
    } else if (rule->op == PAIR_below || rule->op == PAIR_at_most || rule->op == PAIR_equals ||
               rule->op == PAIR_differs) {
        check_number(op, rule->a);
        check_number(op, rule->b);
    } else if (rule->op != PAIR_constant) {
        refuse_to_emit(op->location, "a mask that is no comparison");
    }
}

/* Whether a rule reads an input of real numbers of the rows of keys. */
static bool reads_real_keys(const PairRule *rule, int input) {
    return rule && ((rule->op == PAIR_of_key && rule->input == input && rule->is_real) ||
                    reads_real_keys(rule->a, input) || reads_real_keys(rule->b, input) ||
                    reads_real_keys(rule->c, input));
}

static void take_inputs(Fuse *f, AttentionStep *a, const Op *softmax) {
    for (int i = 0; i < pair_inputs(softmax->a.rule); i++) {
        const int t = softmax->inputs[op_rule_input(softmax) + i];
        const InputKind *kind = kind_read(f, pair_reader(softmax->a.rule, i), t);
        a->visible_caches[i] = f->cache[t];
        if (!kind) refuse_to_emit(softmax->location, "a mask that reads other than inputs of the model");
        const bool kept = a->visible_caches[i] != NO_CACHE || kind->rows == PER_SEQUENCE;
        if (f->plan->cached && kind->dtype == DTYPE_I64 && !kept)
            refuse_to_emit(softmax->location, "a mask that reads a number which no state keeps");
        a->visible_inputs[i] = kind;
        if (a->visible_caches[i] != NO_CACHE && reads_real_keys(softmax->a.rule, i))
            f->program->caches[a->visible_caches[i]].ranged = true;
    }
}

/* What the bounds decide of the rule is no test at the call: a window at least as wide as both hides nothing. */
static void set_visible(Fuse *f, Step *s, const Op *softmax) {
    const int64_t queries = s->rows == ROWS_SOURCE ? f->plan->source_seq.n : f->plan->seq.n;
    const PairRange query = {0, (double)(queries - 1)}, key = {0, (double)(s->attention.key_bound - 1)};
    AttentionStep *a = &s->attention;
    a->visible = pair_simplified(f->arena, softmax->a.rule, query, key);
    a->bounds = key_bounds(f->arena, a->visible);
    take_inputs(f, a, softmax);
    if (a->bounds.window) check_condition(softmax, a->bounds.window);
    if (a->bounds.rest) check_condition(softmax, a->bounds.rest);
    a->past = softmax->a.past != 0;
    a->looks_ahead = op_looks_ahead(f->graph, softmax);
}

void fuse_attention(Fuse *f, const Op *scores) {
    AttentionStep a = attention_of(f, scores);
    const Op *softmax = absorb_biases(f, &a, scores);
    a.weighing = softmax->a.weighing;
    a.rounds = softmax->a.dtype == DTYPE_BF16;
    if (softmax->a.has_sink) a.sink = pack_tensor(f, softmax->inputs[1], false, false);
    const Op *weighted = absorb_values(f, &a, softmax);
    const KeyBounds bounds = key_bounds(f->arena, softmax->a.rule);
    const int64_t window = bounds.leading ? 0 : key_bounds_window(&bounds);
    a.key_cache = read_cache(f, scores->inputs[1], &LAYOUT_PANELS, a.kv_heads, a.head_dim, window);
    a.value_cache = read_cache(f, weighted->inputs[1], &LAYOUT_ROWS, a.kv_heads, a.value_dim, window);
    a.value = whole_vectors(f, weighted->location, weighted->inputs[1]);
    f->rows[weighted->result] = f->rows[scores->inputs[0]];
    const int query = scores->inputs[0], key = scores->inputs[1];
    a.bf16 = is_rounded(f, query, DTYPE_BF16) && is_rounded(f, key, DTYPE_BF16) &&
             is_rounded(f, weighted->inputs[1], DTYPE_BF16);
    a.bytes = is_rounded(f, query, DTYPE_I8) && is_rounded(f, key, DTYPE_I8);
    Step step = step_new(f, STEP_ATTENTION, scores->location, weighted->result);
    step.attention = a;
    step.attention.key_bound = key_bound(f, &a);
    set_visible(f, &step, softmax);
    step.n = columns_of(f, weighted->result);
    step.out = place_result(f, weighted->result);
    step.shape = arena_printf(f->arena, "%s of %lld", counted(f->arena, a.heads, "head"), (long long)a.head_dim);
    step_add(f, step);
}
