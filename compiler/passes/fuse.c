/* fuse.c: from a Graph to the steps of a Plan. Needs a verified graph; gives steps in an order in which
 * every operand is written before it is read. What is put together here:
 *   linears over the same rows that feed one attention -> one GEMM with neighbouring outputs
 *   linear, scale, softcap, activation, product, residual -> one GEMM with an epilogue
 *   scores, position bias, softcap, softmax, mix -> attention by blocks, the score matrix never exists
 *   lookups, scale, positions, segments -> one embedding step
 * Norms, rotations and maps work in place where nothing else reads their input. */
#include "../attnc.h"

#include <string.h>

typedef struct Fuse {
    Arena *arena;
    const Module *module;
    const Graph *graph;
    Program *program;
    Plan *plan;
    Operand *at;     /* where each tensor's rows are; buffer NO_BUFFER: nowhere yet */
    RowsKind *rows;  /* each tensor's */
    int *uses;       /* ops, outputs and states that read it */
    int *reader;     /* the last op that reads it, or -1 */
    int *cache;      /* where a tensor is in a cache, or NO_CACHE */
    int *state;      /* the state that a tensor is the end of, or -1 */
    bool *done;      /* ops that a step covers */
} Fuse;

static const Operand NOWHERE = {NO_BUFFER, 0};

static _Noreturn void refuse(const Place place, const char *what) {
    if (place.source)
        fail_status(EXIT_CANNOT, "%s:%d:%d: the generator cannot emit %s yet", place.source->path, place.line,
                    place.column, what);
    fail_status(EXIT_CANNOT, "the generator cannot emit %s yet", what);
}

static const Tensor *tensor_of(const Fuse *f, int t) { return &f->graph->tensors[t]; }
static int64_t columns_of(const Fuse *f, int t) { return tensor_of(f, t)->dims[tensor_of(f, t)->rank - 1].n; }

/* The only op that reads t, or NULL when there are several, or t is an output. */
static const Op *only_reader(const Fuse *f, int t) {
    return f->uses[t] == 1 && f->reader[t] >= 0 ? &f->graph->ops[f->reader[t]] : NULL;
}

static int index_of(const Fuse *f, const Op *op) { return (int)(op - f->graph->ops); }
static void cover(Fuse *f, const Op *op) { f->done[index_of(f, op)] = true; }
static bool available(const Fuse *f, int t) { return f->at[t].buffer != NO_BUFFER; }

static const Op *writer_of(const Fuse *f, int t) {
    const Tensor *tensor = tensor_of(f, t);
    return tensor->kind == TENSOR_VALUE ? &f->graph->ops[tensor->op] : NULL;
}

/* "encoder.layers.3.attention.query" -> "layer3", with the stack's name in front where there are two; *rest is what
 * follows. NULL, and *rest the whole name, outside of layers. */
static const char *layer_name(Fuse *f, const char *tensor, const char **rest) {
    const char *layers = strstr(tensor, ".layers.");
    *rest = tensor;
    if (!layers) return NULL;
    bool two = f->module->model->encoder && f->module->model->decoder;
    const char *number = layers + 8;
    *rest = number + strcspn(number, ".");
    return arena_printf(f->arena, "%.*s%slayer%.*s", two ? (int)(layers - tensor) : 0, tensor, two ? "_" : "",
                        (int)(*rest - number), number);
}

/* "encoder.layers.3.attention.query" -> "layer3_attention_query" */
static const char *step_name(Fuse *f, const char *tensor) {
    const char *rest, *layer = layer_name(f, tensor, &rest);
    char *name = arena_printf(f->arena, "%s%s", layer ? layer : "", rest);
    for (char *c = name; *c; c++)
        if (*c == '.') *c = '_';
    return name;
}

static Step new_step(Fuse *f, StepKind kind, const Op *op, int result) {
    const char *tensor = tensor_of(f, result)->name, *rest;
    return (Step){.kind = kind,
                  .place = op->place,
                  .name = step_name(f, tensor),
                  .layer = layer_name(f, tensor, &rest),
                  .shape = "",
                  .in = NOWHERE,
                  .other = NOWHERE,
                  .third = NOWHERE,
                  .factor = NOWHERE,
                  .out = NOWHERE,
                  .weight = NO_PACKED,
                  .bias = NO_PACKED,
                  .table3 = NO_PACKED,
                  .a = op->a,
                  .op = op->kind,
                  .scale = 1,
                  .residual_scale = 1,
                  .ids = -1,
                  .segment_ids = -1,
                  .relative = NO_PACKED,
                  .slopes = NO_PACKED,
                  .sink = NO_PACKED,
                  .cache = NO_CACHE,
                  .keys = NO_CACHE,
                  .values = NO_CACHE,
                  .vector = NO_PACKED,
                  .first_export = -1,
                  .tensor = result,
                  .rows = f->rows[result]};
}

/* ---------------------------------------------------------------- buffers and packed weights */

static int workspace(Fuse *f, int tensor, int64_t columns) {
    return plan_buffer(f->arena, f->plan,
                       (Buffer){.kind = BUFFER_WORKSPACE,
                                .name = tensor_of(f, tensor)->name,
                                .rows = f->rows[tensor],
                                .stride = round_up(columns, 16),
                                .columns = columns});
}

/* Whether the step that gives t also writes an attention map: it runs even where the caller does not want t. */
static bool gives_map(const Fuse *f, int t) {
    const Op *mix = writer_of(f, t);
    for (int o = 0; o < f->graph->n_outputs && mix && mix->kind == OP_mix; o++)
        if (f->graph->outputs[o].tensor == mix->inputs[0]) return true;
    return false;
}

/* The graph output that alone reads t, or -1: then the step writes into the caller's memory. */
static int sole_output(const Fuse *f, int t) {
    if (f->uses[t] != 1 || gives_map(f, t)) return -1;
    for (int o = 0; o < f->graph->n_outputs; o++)
        if (f->graph->outputs[o].tensor == t && f->graph->outputs[o].layer < 0) return o;
    return -1;
}

static Operand place_result(Fuse *f, int t) {
    int output = sole_output(f, t);
    int64_t columns = columns_of(f, t);
    int buffer = output < 0 ? workspace(f, t, columns)
                            : plan_buffer(f->arena, f->plan,
                                          (Buffer){.kind = BUFFER_OUTPUT,
                                                   .name = f->graph->outputs[output].name,
                                                   .rows = f->rows[t],
                                                   .stride = columns,
                                                   .columns = columns,
                                                   .io = output});
    return f->at[t] = (Operand){buffer, 0};
}

/* Where an in-place step leaves its result: in the input's place when nothing else reads it. */
static Operand in_place(Fuse *f, int from, int result) {
    bool shared = f->uses[from] != 1 || f->plan->buffers[f->at[from].buffer].kind != BUFFER_WORKSPACE ||
                  sole_output(f, result) >= 0;
    return shared ? place_result(f, result) : (f->at[result] = f->at[from]);
}

static int pack_tensor(Fuse *f, int t, bool panels, bool plus_one) {
    const Tensor *tensor = tensor_of(f, t);
    bool is_weight = tensor->kind == TENSOR_WEIGHT;
    int *index = &(is_weight ? f->program->of_weight : f->program->of_derived)[tensor->weight];
    if (*index != NO_PACKED) {
        const Packed *p = &f->program->packed[*index];
        if (panels && !p->panels) bug("`%s` is wanted as panels and as rows", tensor->name);
        if (p->plus_one != plus_one) bug("`%s` is wanted with and without one added", tensor->name);
        return *index;
    }
    Packed packed = {.name = tensor->name,
                     .weight = is_weight ? tensor->weight : -1,
                     .derived = is_weight ? -1 : tensor->weight,
                     .panels = panels,
                     .plus_one = plus_one};
    packed.shape =
        is_weight ? f->module->weights.specs[tensor->weight].shape : f->module->derived[tensor->weight].shape;
    return *index = program_packed(f->arena, f->program, packed);
}

/* Zeros in place of the bias of `weight`: layers that share it share them. */
static int pack_zeros(Fuse *f, int weight, int64_t n) {
    const Tensor *tensor = tensor_of(f, weight);
    int *index = &f->program->zeros_of[tensor->weight];
    if (*index != NO_PACKED) return *index;
    const char *name = arena_printf(f->arena, "%s.zeros", tensor->name);
    return *index = program_packed(f->arena, f->program,
                                   (Packed){.name = name, .weight = -1, .derived = -1, .shape = {1, {n}}});
}

/* ---------------------------------------------------------------- embedding */

static bool table_is_tied(const Fuse *f, int table) {
    for (int i = 0; i < f->graph->n_ops; i++)
        if (f->graph->ops[i].kind == OP_linear && f->graph->ops[i].inputs[1] == table) return true;
    return false;
}

static int input_index(const Fuse *f, int tensor) {
    for (int i = 0; i < f->graph->n_inputs; i++)
        if (f->graph->inputs[i].tensor == tensor) return i;
    return -1;
}

/* Takes scale, positions and segments that follow `result` into the step; returns what it holds then. */
static int absorb_embedding(Fuse *f, Step *step, int result, bool can_scale) {
    for (;;) {
        const Op *reader = only_reader(f, result);
        if (!reader) return result;
        if (reader->kind == OP_scale && can_scale && step->other.column == 0 && step->bias == NO_PACKED &&
            step->segment_ids < 0) {
            step->scale *= reader->a.scale;
        } else if (reader->kind == OP_add && reader->inputs[0] == result && reader->a.scale == 1) {
            const Op *other = writer_of(f, reader->inputs[1]);
            if (other && other->kind == OP_take_rows && step->bias == NO_PACKED) {
                step->bias = pack_tensor(f, other->inputs[0], false, false);
                step->a.offset = other->a.offset;
            } else if (other && other->kind == OP_embed && step->segment_ids < 0 && step->kind == STEP_EMBED &&
                       step->bias == NO_PACKED) {
                step->segment_ids = input_index(f, other->inputs[0]);
                step->table3 = pack_tensor(f, other->inputs[1], false, false);
            } else {
                return result;
            }
            cover(f, other);
        } else {
            return result;
        }
        cover(f, reader);
        result = reader->result;
        f->rows[result] = step->rows;
    }
}

static void finish_embedding(Fuse *f, Step step, int result, const char *name) {
    const char *tensor = tensor_of(f, result)->name; /* "encoder.embedding.positions" */
    step.tensor = result;
    step.name =
        f->plan->source_seq.n ? arena_printf(f->arena, "%.*s_%s", (int)strcspn(tensor, "."), tensor, name) : name;
    step.n = columns_of(f, result);
    step.out = place_result(f, result);
    step.shape = arena_printf(f->arena, "[rows][%lld]", (long long)step.n);
    plan_step(f->arena, f->plan, step);
}

static void fuse_embed(Fuse *f, const Op *op) {
    f->rows[op->result] = f->rows[op->inputs[0]];
    Step step = new_step(f, STEP_EMBED, op, op->result);
    step.ids = input_index(f, op->inputs[0]);
    step.weight = pack_tensor(f, op->inputs[1], table_is_tied(f, op->inputs[1]), false);
    step.table_in_panels = f->program->packed[step.weight].panels; /* another graph may have tied it */
    finish_embedding(f, step, absorb_embedding(f, &step, op->result, true), "embedding");
}

/* Positions over rows that no lookup made: features. */
static void fuse_add_positions(Fuse *f, const Op *op) {
    const Op *rows = writer_of(f, op->inputs[1]);
    f->rows[op->result] = f->rows[op->inputs[0]];
    Step step = new_step(f, STEP_EMBED, op, op->result);
    step.in = f->at[op->inputs[0]];
    step.bias = pack_tensor(f, rows->inputs[0], false, false);
    step.a.offset = rows->a.offset;
    finish_embedding(f, step, op->result, "embedding");
}

/* The rows that an image gives; a decoder reads none. */
static RowsKind image_rows(const Fuse *f) { return f->plan->source_seq.n ? ROWS_SOURCE : ROWS_CHUNK; }

static void fuse_patches(Fuse *f, const Op *op) {
    const Length seq = f->plan->source_seq.n ? f->plan->source_seq : f->plan->seq;
    f->plan->patch_rows = tensor_of(f, op->result)->dims[0].n;
    bool alone = f->plan->patch_rows == seq.n; /* no token comes in front */
    f->rows[op->result] = alone ? image_rows(f) : ROWS_PATCHES;
    Step step = new_step(f, STEP_PATCHES, op, op->result);
    step.ids = input_index(f, op->inputs[0]);
    step.k = tensor_of(f, op->inputs[0])->dims[1].n; /* height */
    step.n = columns_of(f, op->result);
    step.out = place_result(f, op->result);
    step.shape = arena_printf(f->arena, "[%lld a sequence][%lld]", (long long)f->plan->patch_rows, (long long)step.n);
    plan_step(f->arena, f->plan, step);
}

static void fuse_prepend(Fuse *f, const Op *op) {
    f->rows[op->result] = image_rows(f);
    Step step = new_step(f, STEP_PREPEND, op, op->result);
    step.in = f->at[op->inputs[op->n_inputs - 1]];
    step.weight = pack_tensor(f, op->inputs[0], false, false);
    if (op->n_inputs == 3) step.table3 = pack_tensor(f, op->inputs[1], false, false);
    finish_embedding(f, step, absorb_embedding(f, &step, op->result, false), "rows");
}

/* ---------------------------------------------------------------- GEMM */

/* Takes what follows the product, in the order in which the epilogue works; returns the tensor it gives. */
static int absorb_epilogue(Fuse *f, Step *step, int result) {
    enum { SCALE, CAP, ACTIVATION, FACTOR, RESIDUAL, FULL } stage = SCALE;
    while (stage != FULL) {
        const Op *reader = only_reader(f, result);
        if (!reader || sole_output(f, result) >= 0) break;
        bool first = reader->inputs[0] == result;
        int other = reader->n_inputs > 1 ? reader->inputs[first ? 1 : 0] : NO_TENSOR;
        if (reader->kind == OP_scale && stage <= SCALE) {
            step->scale *= reader->a.scale;
        } else if (reader->kind == OP_softcap && stage < CAP + 1) {
            step->cap = reader->a.cap;
            stage = ACTIVATION;
        } else if (reader->kind == OP_activation && stage <= ACTIVATION) {
            step->has_activation = true;
            step->a.activation = reader->a.activation;
            stage = FACTOR;
        } else if (reader->kind == OP_mul && stage <= FACTOR && available(f, other)) {
            step->has_factor = true;
            step->factor = f->at[other];
            stage = RESIDUAL;
        } else if (reader->kind == OP_add && tensor_of(f, other)->rank == 2 && available(f, other) &&
                   (!first || reader->a.scale == 1)) {
            step->has_residual = true;
            step->residual_scale = first ? 1 : reader->a.scale;
            step->other = f->at[other];
            stage = FULL;
        } else {
            break;
        }
        cover(f, reader);
        result = reader->result;
        f->rows[result] = step->rows;
    }
    return result;
}

/* Whether the result goes into an attention: such linears over the same rows are one product. */
static bool feeds_attention(const Fuse *f, const Op *op) {
    if (f->state[op->result] >= 0) return true;
    const Op *reader = only_reader(f, op->result);
    if (!reader) return false;
    switch (reader->kind) {
    case OP_scores: case OP_mix: case OP_rope: case OP_append: return true;
    case OP_layernorm: case OP_rmsnorm: return strstr(tensor_of(f, reader->result)->name, "_norm") != NULL;
    default: return false;
    }
}

/* Weights of the parts follow each other as panels, biases as rows of whole panels. */
static void pack_parts(Fuse *f, Step *step, const Op *const *parts, int n) {
    bool any_bias = false;
    for (int i = 0; i < n; i++) any_bias |= parts[i]->n_inputs > 2;
    for (int i = 0; i < n; i++) {
        int packed = pack_tensor(f, parts[i]->inputs[1], true, false);
        if (i == 0) step->weight = packed;
        else if (packed != step->weight + i) bug("the parts of `%s` do not follow each other", step->name);
    }
    for (int i = 0; i < n && any_bias; i++) {
        int packed = parts[i]->n_inputs > 2 ? pack_tensor(f, parts[i]->inputs[2], false, false)
                                            : pack_zeros(f, parts[i]->inputs[1], columns_of(f, parts[i]->result));
        if (i == 0) step->bias = packed;
        else if (packed != step->bias + i) bug("the biases of `%s` do not follow each other", step->name);
    }
}

static void fuse_linear_parts(Fuse *f, const Op *const *parts, int n) {
    int x = parts[0]->inputs[0];
    int64_t total = 0;
    Text name = text_new(f->arena);
    for (int i = 0; i < n; i++) {
        f->rows[parts[i]->result] = f->rows[x];
        cover(f, parts[i]);
        total += round_up(columns_of(f, parts[i]->result), 16);
        const char *own = step_name(f, tensor_of(f, parts[i]->result)->name);
        text_printf(&name, "%s%s", i ? "_" : "", i ? strrchr(own, '_') + 1 : own);
    }
    Step step = new_step(f, STEP_GEMM, parts[0], parts[0]->result);
    step.name = name.data;
    step.in = f->at[x];
    step.k = columns_of(f, x);
    step.n = total;
    int buffer = workspace(f, parts[0]->result, total);
    f->plan->buffers[buffer].name = name.data;
    int64_t column = 0;
    for (int i = 0; i < n; i++) {
        f->at[parts[i]->result] = (Operand){buffer, column};
        column += round_up(columns_of(f, parts[i]->result), 16);
    }
    step.out = (Operand){buffer, 0};
    pack_parts(f, &step, parts, n);
    step.shape =
        arena_printf(f->arena, "[rows][%lld] x [%lld][%lld]", (long long)step.k, (long long)step.n, (long long)step.k);
    plan_step(f->arena, f->plan, step);
}

static void fuse_linear(Fuse *f, const Op *op) {
    const Op *parts[8];
    int n = 0;
    if (feeds_attention(f, op))
        for (int i = index_of(f, op); i < f->graph->n_ops && n < 8; i++) {
            const Op *o = &f->graph->ops[i];
            if (o->kind == OP_mix) break; /* this attention has all it reads */
            if (o->kind == OP_linear && !f->done[i] && o->inputs[0] == op->inputs[0] &&
                strcmp(o->where, op->where) == 0 && feeds_attention(f, o))
                parts[n++] = o;
        }
    if (n > 1) {
        fuse_linear_parts(f, parts, n);
        return;
    }
    f->rows[op->result] = f->rows[op->inputs[0]];
    Step step = new_step(f, STEP_GEMM, op, op->result);
    step.in = f->at[op->inputs[0]];
    step.k = columns_of(f, op->inputs[0]);
    step.n = columns_of(f, op->result);
    pack_parts(f, &step, &op, 1);
    step.tensor = absorb_epilogue(f, &step, op->result);
    step.out = place_result(f, step.tensor);
    step.shape =
        arena_printf(f->arena, "[rows][%lld] x [%lld][%lld]", (long long)step.k, (long long)step.n, (long long)step.k);
    plan_step(f->arena, f->plan, step);
}

/* ---------------------------------------------------------------- the others */

static void fuse_norm(Fuse *f, const Op *op) {
    int x = op->inputs[0];
    f->rows[op->result] = f->rows[x];
    Step step = new_step(f, STEP_NORM, op, op->result);
    step.n = columns_of(f, x);
    step.in = f->at[x];
    step.weight = pack_tensor(f, op->inputs[1], false, op->a.plus_one);
    if (op->n_inputs > 2) step.bias = pack_tensor(f, op->inputs[2], false, false);
    step.k = tensor_of(f, op->inputs[1])->rank == 2; /* weights of its own for each group */
    step.out = in_place(f, x, op->result);
    step.shape = arena_printf(f->arena, "[rows][%lld]", (long long)step.n);
    plan_step(f->arena, f->plan, step);
}

static void fuse_rope(Fuse *f, const Op *op) {
    int x = op->inputs[0];
    f->rows[op->result] = f->rows[x];
    Step step = new_step(f, STEP_ROPE, op, op->result);
    step.n = columns_of(f, x);
    step.in = f->at[x];
    step.weight = pack_tensor(f, op->inputs[1], false, false);
    step.bias = pack_tensor(f, op->inputs[2], false, false);
    step.out = in_place(f, x, op->result);
    step.shape = arena_printf(f->arena, "[rows][%lld]", (long long)step.n);
    plan_step(f->arena, f->plan, step);
}

/* ---------------------------------------------------------------- states */

/* Heads and width are known when attention reads it. */
static int cache_named(Fuse *f, const char *name, bool of_source) {
    return program_cache(f->arena, f->program, (Cache){.name = name, .of_source = of_source});
}

static void plan_store(Fuse *f, const GraphState *state, int from, int cache, Place place) {
    Op op = {.kind = OP_append, .place = place};
    Step step = new_step(f, STEP_STORE, &op, state->out);
    step.name = step_name(f, state->name);
    step.in = f->at[from];
    step.cache = cache;
    step.rows = f->rows[from];
    step.n = columns_of(f, from);
    step.tensor = from;
    step.shape = arena_printf(f->arena, "[rows][%lld] -> state", (long long)step.n);
    plan_step(f->arena, f->plan, step);
}

static const GraphState *state_of(const Fuse *f, const Op *append) {
    if (f->state[append->result] < 0) bug("what `%s` appends is no state", append->where);
    return &f->graph->states[f->state[append->result]];
}

static void fuse_append(Fuse *f, const Op *op) {
    const GraphState *state = state_of(f, op);
    int cache = cache_named(f, state->name, false);
    f->cache[op->result] = cache;
    f->rows[op->result] = f->rows[op->inputs[1]];
    plan_store(f, state, op->inputs[1], cache, op->place);
}

/* What encode makes for the decoder goes to the caller's source at the end. */
static void store_source(Fuse *f) {
    for (int s = 0; s < f->graph->n_states; s++) {
        const GraphState *state = &f->graph->states[s];
        if (state->in != NO_TENSOR) continue;
        int cache = cache_named(f, state->name, true);
        plan_store(f, state, state->out, cache, tensor_of(f, state->out)->place);
    }
}

/* The cache that attention reads t from, or NO_CACHE: then t is rows of a buffer. */
static int read_cache(Fuse *f, int t, bool panels, int64_t heads, int64_t width, int64_t window) {
    if (f->cache[t] == NO_CACHE) return NO_CACHE;
    Cache *cache = &f->program->caches[f->cache[t]];
    *cache = (Cache){.name = cache->name,
                     .of_source = cache->of_source,
                     .panels = panels,
                     .heads = heads,
                     .width = width,
                     .window = window};
    return f->cache[t];
}

/* Rows of the caller's may end where no whole vector may be read: such values are copied first. */
static Operand whole_vectors(Fuse *f, const Op *op, int t) {
    Operand at = f->at[t];
    if (at.buffer == NO_BUFFER || f->plan->buffers[at.buffer].kind != BUFFER_INPUT || columns_of(f, t) % 16 == 0)
        return at;
    Step step = new_step(f, STEP_COPY, op, t);
    step.name = arena_printf(f->arena, "copy_%s", tensor_of(f, t)->name);
    step.rows = f->rows[t];
    step.n = columns_of(f, t);
    step.in = at;
    step.out = (Operand){workspace(f, t, step.n), 0};
    step.shape = arena_printf(f->arena, "[rows][%lld]", (long long)step.n);
    plan_step(f->arena, f->plan, step);
    return f->at[t] = step.out;
}

/* scores [-> bias] [-> cap] -> softmax -> mix, each read by the next alone (the weights by an output too). */
static void fuse_attention(Fuse *f, const Op *scores) {
    Step step = new_step(f, STEP_ATTENTION, scores, scores->result);
    int key = scores->inputs[1];
    if (scores->kind == OP_additive_scores) {
        step.vector = pack_tensor(f, scores->inputs[2], false, false);
        step.a.heads = step.a.kv_heads = 1;
        step.a.head_dim = columns_of(f, scores->inputs[0]);
    }
    step.in = f->at[scores->inputs[0]];
    step.other = f->at[key];
    const Op *op = only_reader(f, scores->result);
    for (; op && op->kind != OP_softmax; op = only_reader(f, op->result)) {
        if (op->kind == OP_relative_bias) step.relative = pack_tensor(f, op->inputs[1], false, false);
        else if (op->kind == OP_alibi) step.slopes = pack_tensor(f, op->inputs[1], false, false);
        else if (op->kind == OP_softcap) step.softcap = op->a.cap;
        else bug("attention at `%s` is not a chain", scores->where);
        if (op->kind == OP_relative_bias) step.a.offset = op->a.offset;
        cover(f, op);
    }
    if (!op) bug("attention at `%s` has no softmax", scores->where);
    cover(f, op);
    step.a.has_mask = op->a.has_mask;
    step.a.has_prefix = op->a.has_prefix;
    step.a.causal = op->a.causal;
    step.a.window = op->a.window;
    step.a.sink = op->a.sink;
    step.a.past = op->a.past;
    if (op->a.has_sink) step.sink = pack_tensor(f, op->inputs[op->n_inputs - 1], false, false);
    const Op *mix = f->reader[op->result] < 0 ? NULL : &f->graph->ops[f->reader[op->result]];
    if (!mix || mix->kind != OP_mix) bug("attention at `%s` has no values", scores->where);
    for (int o = 0; o < f->graph->n_outputs; o++)
        if (f->graph->outputs[o].tensor == op->result) step.first_export = o;
    cover(f, mix);
    step.value_dim = mix->a.head_dim;
    int64_t window = step.a.sink ? 0 : step.a.window; /* first keys that are always seen are always kept */
    step.keys = read_cache(f, key, true, step.a.kv_heads, step.a.head_dim, window);
    step.values = read_cache(f, mix->inputs[1], false, step.a.kv_heads, step.value_dim, window);
    step.third = whole_vectors(f, mix, mix->inputs[1]);
    step.key_rows = f->rows[key];
    f->rows[mix->result] = f->rows[scores->inputs[0]];
    step.rows = f->rows[mix->result];
    step.tensor = mix->result;
    step.name = step_name(f, tensor_of(f, mix->result)->name);
    step.n = columns_of(f, mix->result);
    step.out = place_result(f, mix->result);
    step.shape = arena_printf(f->arena, "%lld heads of %lld", (long long)step.a.heads, (long long)step.a.head_dim);
    plan_step(f->arena, f->plan, step);
}

/* A map that no step took in: scale, activation, softcap, mul, add. */
static void fuse_map(Fuse *f, const Op *op) {
    int x = op->inputs[0];
    f->rows[op->result] = f->rows[x];
    Step step = new_step(f, STEP_MAP, op, op->result);
    step.n = columns_of(f, x);
    step.in = f->at[x];
    if (op->n_inputs > 1) step.other = f->at[op->inputs[1]];
    step.out = in_place(f, x, op->result);
    step.shape = arena_printf(f->arena, "[rows][%lld] %s", (long long)step.n, op_name(op->kind));
    plan_step(f->arena, f->plan, step);
}

static void fuse_pool(Fuse *f, const Op *op) {
    int result = op->result;
    f->rows[result] = ROWS_SEQUENCES;
    Step step = new_step(f, STEP_POOL, op, result);
    const Op *reader = only_reader(f, result);
    if (reader && reader->kind == OP_l2) {
        step.has_activation = true; /* scaled to length 1 */
        cover(f, reader);
        result = reader->result;
        f->rows[result] = ROWS_SEQUENCES;
    }
    step.in = f->at[op->inputs[0]];
    step.n = columns_of(f, result);
    step.tensor = result;
    step.out = place_result(f, result);
    step.shape = arena_printf(f->arena, "[sequences][%lld] %s%s", (long long)step.n, pool_name(op->a.pool),
                              step.has_activation ? " l2" : "");
    plan_step(f->arena, f->plan, step);
}

static void fuse_op(Fuse *f, const Op *op) {
    switch (op->kind) {
    case OP_embed: fuse_embed(f, op); break;
    case OP_take_rows: break; /* taken in by the add that reads it */
    case OP_patches: fuse_patches(f, op); break;
    case OP_prepend: fuse_prepend(f, op); break;
    case OP_linear: fuse_linear(f, op); break;
    case OP_layernorm: case OP_rmsnorm: fuse_norm(f, op); break;
    case OP_rope: fuse_rope(f, op); break;
    case OP_scores: case OP_additive_scores: fuse_attention(f, op); break;
    case OP_relative_bias:
    case OP_alibi:
    case OP_softmax:
    case OP_mix: bug("a part of attention at `%s` is left over", op->where); break;
    case OP_add: {
        const Op *other = writer_of(f, op->inputs[1]);
        if (other && other->kind == OP_take_rows) fuse_add_positions(f, op);
        else fuse_map(f, op);
        break;
    }
    case OP_mul: case OP_scale: case OP_activation: case OP_softcap: fuse_map(f, op); break;
    case OP_append: fuse_append(f, op); break;
    case OP_pool: fuse_pool(f, op); break;
    case OP_l2: bug("l2 without a pool"); break;
    case OP_COUNT: break;
    }
}

/* Outputs whose rows another step reads as well are copied out at the end. */
static void copy_outputs(Fuse *f) {
    for (int o = 0; o < f->graph->n_outputs; o++) {
        const GraphOutput *output = &f->graph->outputs[o];
        int t = output->tensor;
        if (output->layer >= 0 || sole_output(f, t) >= 0) continue;
        int64_t columns = columns_of(f, t);
        Step step = {.kind = STEP_COPY,
                     .place = tensor_of(f, t)->place,
                     .name = arena_printf(f->arena, "copy_%s", output->name),
                     .in = f->at[t],
                     .other = NOWHERE,
                     .third = NOWHERE,
                     .factor = NOWHERE,
                     .weight = NO_PACKED,
                     .bias = NO_PACKED,
                     .table3 = NO_PACKED,
                     .n = columns,
                     .rows = f->rows[t],
                     .tensor = t,
                     .ids = -1,
                     .segment_ids = -1,
                     .cache = NO_CACHE,
                     .keys = NO_CACHE,
                     .values = NO_CACHE,
                     .vector = NO_PACKED,
                     .first_export = -1};
        step.out.buffer = plan_buffer(f->arena, f->plan,
                                      (Buffer){.kind = BUFFER_OUTPUT,
                                               .name = output->name,
                                               .rows = f->rows[t],
                                               .stride = columns,
                                               .columns = columns,
                                               .io = o});
        step.shape = arena_printf(f->arena, "[rows][%lld]", (long long)columns);
        plan_step(f->arena, f->plan, step);
    }
}

/* The lengths of the graph's rows, and of what they look at. */
static void set_lengths(Plan *plan, const Model *m) {
    plan->cached = plan->graph == plan->program->module->decode;
    if (m->alone) {
        plan->seq = m->queries;
        if (m->alone->attention.cross) plan->source_seq = m->keys;
    } else if (plan->graph == plan->program->module->encode || !m->decoder) {
        plan->seq = m->encoder->seq;
    } else {
        plan->seq = m->decoder->seq;
        if (m->encoder && !plan->cached) plan->source_seq = m->encoder->seq;
    }
    if (!m->unroll_full) return;
    if (!plan->seq.exact) refuse(m->place, "`unroll full` of a model whose length is not fixed by `seq = N`");
    if (plan->source_seq.n && !plan->source_seq.exact)
        refuse(m->place, "`unroll full` of a model whose source or keys are not fixed by `seq = N` or `keys = N`");
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

/* Where what comes in is found. */
static void place_inputs(Fuse *f) {
    const Graph *g = f->graph;
    for (int t = 0; t < g->n_tensors; t++) {
        f->at[t] = NOWHERE;
        f->cache[t] = NO_CACHE;
    }
    for (int i = 0; i < g->n_inputs; i++) {
        int t = g->inputs[i].tensor;
        const Tensor *tensor = &g->tensors[t];
        f->rows[t] = g->inputs[i].of_source ? ROWS_SOURCE : ROWS_CHUNK;
        if (tensor->dtype != DTYPE_F32 || tensor->rank != 2) continue;
        f->at[t].buffer = plan_buffer(f->arena, f->plan,
                                      (Buffer){.kind = BUFFER_INPUT,
                                               .name = tensor->name,
                                               .rows = f->rows[t],
                                               .stride = tensor->dims[1].n,
                                               .columns = tensor->dims[1].n,
                                               .io = i});
    }
    for (int s = 0; s < g->n_states; s++)
        if (g->states[s].out == NO_TENSOR) f->cache[g->states[s].in] = cache_named(f, g->states[s].name, true);
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
