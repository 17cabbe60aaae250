/* fuse.c: turns a verified Graph into the steps of a Plan, in an order in which every operand is written before it is
 * read. Groups of ops become one step: see fuse_rows.c, fuse_gemm.c and fuse_attention.c. Norms, rotations and maps
 * work in place if nothing else reads their input. */
#include "fuse.h"

static Step row_step(Fuse *f, StepKind kind, const Op *op) {
    int x = op->inputs[0];
    share_rows(f, x, op->result);
    Step step = step_new(f, kind, op->location, op->result);
    step.n = columns_of(f, x);
    step.out = place_over(f, x, op->result);
    step.shape = arena_printf(f->arena, "[rows][%lld]", (long long)step.n);
    return step;
}

static void fuse_norm(Fuse *f, const Op *op) {
    NormStep norm = {.x = f->at[op->inputs[0]],
                     .weight = pack_tensor(f, op->inputs[1], false, op->a.plus_one),
                     .bias = NO_PACKED,
                     .centered = op->kind == OP_layernorm,
                     .weight_per_group = tensor_in(f, op->inputs[1])->rank == 2,
                     .groups = op->a.groups,
                     .eps = op->a.eps};
    if (op->n_inputs > 2) norm.bias = pack_tensor(f, op->inputs[2], false, false);
    Step step = row_step(f, STEP_NORM, op);
    step.norm = norm;
    step_add(f, step);
}

static void fuse_rope(Fuse *f, const Op *op) {
    RopeStep rope = {.x = f->at[op->inputs[0]],
                     .heads = op->a.heads,
                     .head_dim = op->a.head_dim,
                     .width = op->a.width,
                     .second_table = op->a.offset,
                     .n_at = op->n_inputs - 3,
                     .sections = op->a.sections,
                     .interleaved = op->a.interleaved};
    for (int i = 0; i < rope.n_at; i++) rope.at[i] = input_index(f, op->inputs[3 + i]);
    rope.cos = pack_tensor(f, op->inputs[1], false, false);
    rope.sin = pack_tensor(f, op->inputs[2], false, false);
    Step step = row_step(f, STEP_ROPE, op);
    step.rope = rope;
    step_add(f, step);
}

/* An operation on each number that is not part of another step. */
static void fuse_map(Fuse *f, const Op *op) {
    MapStep map = {.x = f->at[op->inputs[0]],
                   .other = op->n_inputs > 1 ? f->at[op->inputs[1]] : NOWHERE,
                   .op = op->kind,
                   .factor = op->kind == OP_add && op->n_inputs > 2 ? pack_tensor(f, op->inputs[2], false, false)
                                                                    : NO_PACKED,
                   .same_column = op->kind == OP_mul && columns_of(f, op->inputs[1]) != columns_of(f, op->result),
                   .scale = op->a.scale,
                   .cap = op->a.cap,
                   .plus_one = op->a.plus_one,
                   .activation = op->a.activation};
    Step step = row_step(f, STEP_MAP, op);
    step.map = map;
    step.shape = arena_printf(f->arena, "%s %s", step.shape, op_name(op->kind));
    step_add(f, step);
}

static void fuse_quantize(Fuse *f, const Op *op) {
    /* 255 * 127 times as many are the most that an int32 holds */
    enum { MOST_COLUMNS = 66311 };
    if (columns_of(f, op->result) > MOST_COLUMNS)
        refuse_to_emit(op->location,
               arena_printf(f->arena, "`activations int8` of rows of more than %d columns", MOST_COLUMNS));
    share_rows(f, op->inputs[0], op->result);
    Step step = step_new(f, STEP_QUANTIZE, op->location, op->result);
    step.quantize = (QuantizeStep){.x = f->at[op->inputs[0]], .smooth = NO_PACKED, .columns = NO_PACKED};
    if (op->n_inputs > 1) {
        step.quantize.smooth = pack_tensor(f, op->inputs[1], false, false);
        step.quantize.columns = pack_columns(f, op->inputs[1]);
    }
    step.n = columns_of(f, op->result);
    step.out = f->at[op->result] = (Operand){quantized_buffer(f, op->result), 0};
    step.shape = arena_printf(f->arena, "[rows][%lld]", (long long)step.n);
    step_add(f, step);
}

static void fuse_round(Fuse *f, const Op *op) {
    const RoundStep round = {.x = f->at[op->inputs[0]], .dtype = op->a.dtype, .heads = op->a.heads};
    Step step = row_step(f, STEP_ROUND, op);
    step.round = round;
    step.shape = arena_printf(f->arena, "%s to %s", step.shape, dtype_name(op->a.dtype));
    step_add(f, step);
}

static void fuse_learned(Fuse *f, const Op *op) {
    f->rows[op->result] = ROWS_SEQUENCES;
    Step step = step_new(f, STEP_LEARNED, op->location, op->result);
    step.learned.row = pack_tensor(f, op->inputs[0], false, false);
    step.n = columns_of(f, op->result);
    step.out = place_result(f, op->result);
    step.shape = arena_printf(f->arena, "[sequences][%lld]", (long long)step.n);
    step_add(f, step);
}

static void fuse_pool(Fuse *f, const Op *op) {
    int result = op->result;
    f->rows[result] = ROWS_SEQUENCES;
    Step step = step_new(f, STEP_POOL, op->location, result);
    const Op *reader = only_reader(f, result);
    step.pool = (PoolStep){.x = f->at[op->inputs[0]], .pool = op->a.pool, .begin = op->a.offset, .ids = NO_INPUT,
                            .token = op->a.token, .shifted = op->a.shifted};
    if (op->n_inputs > 1) step.pool.ids = input_index(f, op->inputs[1]);
    if (reader && reader->kind == OP_l2) {
        step.pool.unit_length = true;
        cover(f, reader);
        result = reader->result;
        f->rows[result] = ROWS_SEQUENCES;
    }
    step.n = columns_of(f, result);
    step.tensor = result;
    step.out = place_result(f, result);
    step.shape = arena_printf(f->arena, "[sequences][%lld] %s%s", (long long)step.n, pool_name(op->a.pool),
                              step.pool.unit_length ? " l2" : "");
    step_add(f, step);
}

/* The length of a row that no pool gives, of which each sequence has one. */
static void fuse_length(Fuse *f, const Op *op) {
    Step step = row_step(f, STEP_POOL, op);
    step.pool = (PoolStep){
        .x = f->at[op->inputs[0]], .pool = POOL_CLS, .single = true, .unit_length = true, .ids = NO_INPUT};
    step.shape = arena_printf(f->arena, "[sequences][%lld] l2", (long long)step.n);
    step_add(f, step);
}

static void fuse_op(Fuse *f, const Op *op) {
    switch (op->kind) {
    case OP_embed: fuse_embed(f, op); break;
    case OP_take_rows: case OP_pick_rows: break; /* part of the add that reads it */
    case OP_keep: refuse_to_emit(op->location, "the factor of a lookup without its product");
    case OP_tally: fuse_tally(f, op); break;
    case OP_patches: fuse_patches(f, op); break;
    case OP_windows: fuse_windows(f, op); break;
    case OP_prepend: fuse_prepend(f, op); break;
    case OP_linear: fuse_linear(f, op); break;
    case OP_choose:
        if (f->program->unroll_full) refuse_to_emit(op->location, "`unroll full` of a mixture of experts");
        fuse_choose(f, op);
        break;
    case OP_expert_linear: fuse_expert_linear(f, op); break;
    case OP_expert_sum: fuse_expert_sum(f, op); break;
    case OP_join: fuse_join(f, op); break;
    case OP_quantize: fuse_quantize(f, op); break;
    case OP_round: fuse_round(f, op); break;
    case OP_layernorm: case OP_rmsnorm: fuse_norm(f, op); break;
    case OP_rope: fuse_rope(f, op); break;
    case OP_scores: case OP_additive_scores: fuse_attention(f, op); break;
    case OP_rescore:
    case OP_distance_scores:
    case OP_softmax:
    case OP_log_sum:
    case OP_weighted_sum: refuse_to_emit(op->location, "a part of attention alone");
    case OP_add: {
        const Op *other = writer_of(f, op->inputs[1]);
        if (other && (other->kind == OP_take_rows || other->kind == OP_pick_rows)) fuse_add_positions(f, op);
        else fuse_map(f, op);
        break;
    }
    case OP_mul: case OP_gate:
#define OP(name, least, most, result, inputs, help)
#define MAP(name, value, fixed, formula, help) case OP_##name:
#include "../ir/ops.def"
        fuse_map(f, op);
        break;
    case OP_append: fuse_append(f, op); break;
    case OP_pool: fuse_pool(f, op); break;
    case OP_learned: fuse_learned(f, op); break;
    case OP_l2: fuse_length(f, op); break;
    case OP_all_gather: case OP_owner_rows: fuse_all_gather(f, op); break;
    case OP_COUNT: break;
    }
}

/* Outputs whose rows another step also reads are copied at the end. */
static void copy_outputs(Fuse *f) {
    for (int o = 0; o < f->graph->n_outputs; o++) {
        const GraphOutput *output = &f->graph->outputs[o];
        int t = output->tensor;
        if (output->layer >= 0 || sole_output(f, t) >= 0) continue;
        Step step = step_new(f, STEP_COPY, tensor_in(f, t)->location, t);
        step.name = arena_printf(f->arena, "copy_%s", output->name);
        step.layer = NULL;
        step.site = (Site){.layer = -1, .part = step.name};
        step.n = columns_of(f, t);
        step.map = (MapStep){.x = f->at[t], .other = NOWHERE, .factor = NO_PACKED};
        step.out = (Operand){output_buffer(f, t, o), 0};
        step.shape = arena_printf(f->arena, "[rows][%lld]", (long long)step.n);
        step_add(f, step);
    }
}

/* Sets the lengths of the graph's rows, and of the rows of its source or keys. */
static void set_lengths(Plan *plan, const Model *m) {
    plan->cached = plan->graph == plan->program->module->entries[ENTRY_DECODE];
    if (m->alone) {
        plan->seq = m->queries;
        if (m->alone->attention.cross) plan->source_seq = m->keys;
    } else if (plan->graph == plan->program->module->entries[ENTRY_ENCODE] || !m->decoder) {
        plan->seq = m->encoder->seq;
    } else {
        plan->seq = m->decoder->seq;
        if (m->encoder && !plan->cached) plan->source_seq = m->encoder->seq;
    }
    if (!m->unroll_full) return;
    if (!plan->seq.exact)
        refuse_to_emit(m->location, "`unroll full` of a model whose length is not fixed by `seq = N`");
    if (plan->source_seq.n && !plan->source_seq.exact)
        refuse_to_emit(m->location,
                       "`unroll full` of a model whose source or keys are not fixed by `seq = N` or `keys = N`");
}

static void count_uses(Fuse *f) {
    const Graph *g = f->graph;
    for (int t = 0; t < g->n_tensors; t++) f->reader[t] = f->state[t] = -1;
    for (int i = 0; i < g->n_ops; i++)
        for (int k = 0; k < g->ops[i].n_inputs; k++) {
            f->uses[g->ops[i].inputs[k]]++;
            f->reader[g->ops[i].inputs[k]] = i;
        }
    for (int o = 0; o < g->n_outputs; o++) f->uses[g->outputs[o].tensor]++;
    for (int s = 0; s < g->n_states; s++) {
        if (g->states[s].in == NO_TENSOR) f->uses[g->states[s].out]++;
        if (g->states[s].out != NO_TENSOR) f->state[g->states[s].out] = s;
    }
}

/* Makes a buffer for each input. */
static void place_inputs(Fuse *f) {
    const Graph *g = f->graph;
    for (int t = 0; t < g->n_tensors; t++) {
        f->at[t] = f->order[t] = NOWHERE;
        f->times[t] = 1;
        f->gathered[t] = NO_BUFFER;
        f->cache[t] = NO_CACHE;
    }
    for (int i = 0; i < g->n_inputs; i++) {
        int t = g->inputs[i].tensor;
        const Tensor *tensor = &g->tensors[t];
        f->rows[t] = g->inputs[i].of_source ? ROWS_SOURCE : ROWS_CHUNK;
        if (tensor->dtype != DTYPE_F32 || tensor->rank != 2) continue;
        const Slot slot = {.space = SPACE_INPUT, .layout = LAYOUT_ROWS, .name = g->inputs[i].kind->array};
        int64_t columns = tensor->dims[1].n;
        f->at[t].buffer = plan_buffer(
            f->arena, f->plan,
            (Buffer){.slot = slot, .rows = f->rows[t], .stride = columns, .columns = columns, .io = i});
    }
    for (int s = 0; s < g->n_states; s++)
        if (g->states[s].out == NO_TENSOR) f->cache[g->states[s].in] = cache_of_state(f, &g->states[s], true);
}

Plan *fuse(Arena *arena, Program *program, const Graph *graph) {
    Plan *plan = arena_alloc(arena, sizeof *plan);
    plan->program = program;
    plan->graph = graph;
    set_lengths(plan, program->module->model);
    size_t n = (size_t)graph->n_tensors;
    Fuse f = {.arena = arena,
              .module = program->module,
              .graph = graph,
              .program = program,
              .plan = plan,
              .at = arena_array(arena, n, sizeof(Operand)),
              .rows = arena_array(arena, n, sizeof(RowsKind)),
              .times = arena_array(arena, n, sizeof(int64_t)),
              .order = arena_array(arena, n, sizeof(Operand)),
              .gathered = arena_array(arena, n, sizeof(int)),
              .uses = arena_array(arena, n, sizeof(int)),
              .reader = arena_array(arena, n, sizeof(int)),
              .cache = arena_array(arena, n, sizeof(int)),
              .state = arena_array(arena, n, sizeof(int)),
              .done = arena_array(arena, (size_t)graph->n_ops, sizeof(bool))};
    count_uses(&f);
    place_inputs(&f);
    for (int i = 0; i < graph->n_ops; i++)
        if (!f.done[i]) fuse_op(&f, &graph->ops[i]);
    store_source(&f);
    copy_outputs(&f);
    return plan;
}
