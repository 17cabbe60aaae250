/* shard.c: divides a module among ranks, which compute the same graph on their own columns of the matrices.
 *
 * A rank has some rows of a matrix, and computes these columns of the product: each number is a sum in the order of one
 * process, so that its bits do not depend on the number of ranks. Operations on each number go on with the columns of
 * the rank, and so does an attention, whose heads are divided. Before any other operation, an all_gather puts the
 * columns of all ranks together; it then runs on all of them, on each rank. */
#include "shard.h"

typedef struct Shard {
    int ranks;
    const DividedHeads *heads;
    EntryKind entry;            /* of the graph at hand */
    const Sharding **of_weight; /* [weights] how its rows are divided; NULL: each rank has all of them */
    const Sharding **of_tensor; /* of each tensor of the graph `from`: how its columns are divided, or NULL */
    int *parts;              /* of these tensors: the one of `to` with the columns of a rank */
    bool *wanted;            /* of each tensor: an operation reads it, or an output or a state is it, that has all
                              * columns. They are put together at once, since steps are made of neighbours. */
} Shard;

/* ---------------------------------------------------------------- weights */

/* Columns of at most a panel are not divided: kernels for few columns add in another order. */
static const Sharding *sharding_of(const Shard *s, Arena *arena, int64_t columns) {
    return columns > PANEL ? sharding_even(arena, columns, s->ranks) : NULL;
}

static bool is_divided(const Op *op) { return op_is_product(op->kind) && !op_is_by_head(op); }

/* Whether a choice of experts reads the result: its logits are few. */
static bool is_router(const Graph *g, const Op *product) {
    for (int o = 0; o < g->n_ops; o++)
        if (g->ops[o].kind == OP_choose && g->ops[o].inputs[0] == product->result) return true;
    return false;
}

/* Whether nothing multiplies the rows of the table by the share of those that are no mask token, which belongs to the
 * lookup. */
static bool is_plain_lookup(const Graph *g, const Op *embed) {
    for (int o = 0; o < g->n_ops; o++) {
        const Op *op = &g->ops[o];
        if (op->kind != OP_mul || op->inputs[0] != embed->result) continue;
        const Tensor *by = &g->tensors[op->inputs[1]];
        if (by->kind == TENSOR_VALUE && g->ops[by->op].kind == OP_keep) return false;
    }
    return true;
}

/* Marks weights that a graph reads otherwise than as the matrix or the bias of a product, or as a table of ids. */
static void mark_others(const Graph *g, bool *others) {
    for (int o = 0; o < g->n_ops; o++) {
        const Op *op = &g->ops[o];
        const bool divided = is_divided(op) && !is_router(g, op);
        for (int i = 0; i < op->n_inputs; i++) {
            const Tensor *t = &g->tensors[op->inputs[i]];
            const bool own = (divided && (i == 1 || op->inputs[i] == op_bias(op))) ||
                             (op->kind == OP_embed && is_plain_lookup(g, op));
            if (t->kind == TENSOR_WEIGHT && !own) others[t->weight] = true;
        }
    }
}

static void divide(Rewrite *r, int weight, const Sharding *sharding) {
    const Shard *s = r->with;
    WeightSpec *spec = &r->module->weights.specs[weight];
    s->of_weight[weight] = spec->sharding = sharding;
    if (sharding) spec->shape.dims[spec->shape.rank > 2 || spec->of_experts ? 1 : 0] = sharding->part;
}

/* Divides the tables of ids, which may be matrices, too. */
static void divide_tables(Rewrite *r, const bool *others) {
    const Shard *s = r->with;
    for (int e = 0; e < ENTRY_COUNT; e++) {
        const Graph *g = r->old->entries[e];
        for (int o = 0; g && o < g->n_ops; o++) {
            const Tensor *table = g->ops[o].kind == OP_embed ? &g->tensors[g->ops[o].inputs[1]] : NULL;
            if (!table || table->kind != TENSOR_WEIGHT || others[table->weight] || s->of_weight[table->weight])
                continue;
            divide(r, table->weight, sharding_of(s, r->arena, table->dims[0].n));
        }
    }
}

static void divide_weights(Rewrite *r) {
    Shard *s = r->with;
    const WeightTable *table = &r->old->weights;
    bool *others = arena_array(r->arena, table->count, sizeof *others);
    s->of_weight = arena_array(r->arena, table->count, sizeof *s->of_weight);
    for (size_t i = 0; i < table->count; i++) { /* what a matrix is rounded by, and tables are made of */
        const WeightSpec *spec = &table->specs[i];
        if (spec->smoothing) others[spec->smoothing - 1] = true;
    }
    for (int d = 0; d < r->old->n_derived; d++) {
        const Derived *derived = &r->old->derived[d];
        if (derived_has_source(derived)) others[derived->source] = true;
        for (int i = 0; derived_has_sources(derived) && i < DERIVED_SOURCES; i++)
            if (derived->sources[i]) others[derived->sources[i] - 1] = true;
    }
    for (int e = 0; e < ENTRY_COUNT; e++)
        if (r->old->entries[e]) mark_others(r->old->entries[e], others);
    s->heads = heads_divide(r->arena, r->old, s->ranks, others);
    for (int e = 0; e < ENTRY_COUNT; e++) {
        const Graph *g = r->old->entries[e];
        for (int o = 0; g && o < g->n_ops; o++) {
            const Op *op = &g->ops[o];
            const Tensor *matrix = is_divided(op) ? &g->tensors[op->inputs[1]] : NULL;
            if (!matrix || matrix->kind != TENSOR_WEIGHT || others[matrix->weight]) continue;
            const int bias = op_bias(op);
            const int bias_weight = bias == NO_TENSOR ? -1 : g->tensors[bias].weight;
            if (bias != NO_TENSOR && (g->tensors[bias].kind != TENSOR_WEIGHT || others[bias_weight])) continue;
            if (s->of_weight[matrix->weight]) continue; /* by another entry */
            const Sharding *by_heads = s->heads->of_weight[matrix->weight];
            const Sharding *sharding =
                by_heads ? by_heads : sharding_of(s, r->arena, matrix->dims[matrix->rank - 2].n);
            divide(r, matrix->weight, sharding);
            if (bias != NO_TENSOR) divide(r, bias_weight, sharding);
        }
    }
    divide_tables(r, others);
}

/* ---------------------------------------------------------------- graphs */

/* The inputs, from the first one on, of which an operation reads the columns of a rank where all of them are divided in
 * one way; 0: it reads all columns. */
static int inputs_in_parts(const Graph *g, const Op *op) {
    switch (op->kind) {
    case OP_activation: case OP_gate: return op->n_inputs;
    case OP_expert_sum: return 1;
    case OP_mul: return g->tensors[op->inputs[1]].dims[1].n == 1 ? 1 : 2;
    default: return 0;
    }
}

static void begin(Rewrite *r) {
    Shard *s = r->with;
    const size_t n = (size_t)r->from->n_tensors + 1;
    for (s->entry = 0; r->old->entries[s->entry] != r->from; s->entry++) continue;
    s->of_tensor = arena_array(r->arena, n, sizeof *s->of_tensor);
    s->parts = arena_array(r->arena, n, sizeof *s->parts);
    s->wanted = arena_array(r->arena, n, sizeof *s->wanted);
    for (int i = 0; i < r->from->n_outputs; i++) s->wanted[r->from->outputs[i].tensor] = true;
    for (int i = 0; i < r->from->n_states; i++)
        if (r->from->states[i].out != NO_TENSOR && !s->heads->of_tensor[s->entry][r->from->states[i].out])
            s->wanted[r->from->states[i].out] = true;
    for (int o = 0; o < r->from->n_ops; o++) {
        const Op *op = &r->from->ops[o];
        const bool by_heads = s->heads->of_op[s->entry][o] != NULL && op->kind != OP_linear;
        for (int i = inputs_in_parts(r->from, op); i < op->n_inputs && !by_heads; i++)
            s->wanted[op->inputs[i]] = true;
    }
}

/* The tensor of `to` with the columns of all ranks. */
static int whole(Rewrite *r, const Op *by, int t) {
    const Shard *s = r->with;
    if (r->now[t] != NO_TENSOR || !s->of_tensor[t]) return rewrite_tensor(r, t);
    const OpAttributes a = {.sharding = s->of_tensor[t]};
    return r->now[t] = rewrite_add(r, by, OP_all_gather, a, r->from->tensors[t], 1, &s->parts[t]);
}

/* Puts the operation into `to` with these inputs, as one on the columns of a rank. */
static int on_part(Rewrite *r, const Op *op, const int *inputs, const Sharding *sharding) {
    const Shard *s = r->with;
    Op copy = *op;
    Tensor result = r->from->tensors[op->result];
    copy.inputs = inputs;
    Dim *columns = &result.dims[result.rank - 1];
    columns->n = columns->n / sharding->columns * sharding->part;
    s->of_tensor[op->result] = sharding;
    s->parts[op->result] = graph_op(r->arena, r->to, copy, result);
    if (s->wanted[op->result]) return whole(r, op, op->result);
    return s->heads->of_tensor[s->entry][op->result] ? s->parts[op->result] : NO_TENSOR; /* it may be a state */
}

static int on_whole(Rewrite *r, const Op *op) {
    int *inputs = arena_array(r->arena, (size_t)op->n_inputs, sizeof *inputs);
    for (int i = 0; i < op->n_inputs; i++) inputs[i] = whole(r, op, op->inputs[i]);
    return rewrite_as(r, op, inputs);
}

static int product(Rewrite *r, const Op *op) {
    const Shard *s = r->with;
    const Tensor *matrix = &r->from->tensors[op->inputs[1]];
    const Sharding *sharding = matrix->kind == TENSOR_WEIGHT ? s->of_weight[matrix->weight] : NULL;
    if (!sharding) return on_whole(r, op);
    int *inputs = arena_array(r->arena, (size_t)op->n_inputs, sizeof *inputs);
    for (int i = 0; i < op->n_inputs; i++) inputs[i] = whole(r, op, op->inputs[i]);
    return on_part(r, op, inputs, sharding);
}

/* Each rank looks up the rows that it has, of which the row's owner is taken. */
static int lookup(Rewrite *r, const Op *op) {
    const Shard *s = r->with;
    const Tensor *table = &r->from->tensors[op->inputs[1]];
    const Sharding *sharding = table->kind == TENSOR_WEIGHT ? s->of_weight[table->weight] : NULL;
    if (!sharding) return on_whole(r, op);
    Op own = *op;
    own.a.sharding = sharding;
    const int rows = rewrite_as(r, &own, rewrite_inputs(r, op)), inputs[] = {rows, rewrite_tensor(r, op->inputs[0])};
    return rewrite_add(r, op, OP_owner_rows, (OpAttributes){.sharding = sharding}, r->from->tensors[op->result], 2,
                       inputs);
}

/* How the columns are divided that an operation on each number has from all of its inputs but those from number `end`
 * on; NULL: not all of them in the same way. */
static const Sharding *sharding_of_inputs(const Rewrite *r, const Op *op, int end) {
    const Shard *s = r->with;
    const Sharding *sharding = s->of_tensor[op->inputs[0]];
    for (int i = 1; i < end; i++)
        if (!sharding_same(sharding, s->of_tensor[op->inputs[i]])) return NULL;
    return sharding;
}

static int each_number(Rewrite *r, const Op *op, int end) {
    const Shard *s = r->with;
    const Sharding *sharding = sharding_of_inputs(r, op, end);
    if (!sharding) return on_whole(r, op);
    int *inputs = arena_array(r->arena, (size_t)op->n_inputs, sizeof *inputs);
    for (int i = 0; i < op->n_inputs; i++) inputs[i] = i < end ? s->parts[op->inputs[i]] : whole(r, op, op->inputs[i]);
    return on_part(r, op, inputs, sharding);
}

/* The tensor of `to` with the heads of a rank, which may be a state. */
static int heads_of_rank(Rewrite *r, int t) {
    Shard *s = r->with;
    const Sharding *sharding = s->heads->of_tensor[s->entry][t];
    if (s->of_tensor[t] || !sharding || r->from->tensors[t].kind != TENSOR_STATE) return s->parts[t];
    Tensor state = r->from->tensors[t];
    state.dims[1].n = sharding->part;
    s->of_tensor[t] = sharding;
    return r->now[t] = s->parts[t] = graph_tensor(r->arena, r->to, state);
}

/* An op of an attention whose heads are divided. */
static int on_heads(Rewrite *r, const Op *op, const Heads *h) {
    Shard *s = r->with;
    const Sharding *columns = s->heads->of_tensor[s->entry][op->result];
    const int rows = op->kind == OP_scores || op->kind == OP_append || op->kind == OP_weighted_sum ? 2 : 1;
    int *inputs = arena_array(r->arena, (size_t)op->n_inputs, sizeof *inputs);
    for (int i = 0; i < op->n_inputs; i++)
        inputs[i] = i < rows ? heads_of_rank(r, op->inputs[i]) : whole(r, op, op->inputs[i]);
    Op own = *op;
    if (op->kind == OP_scores || op->kind == OP_weighted_sum) {
        own.a.heads = h->heads;
        own.a.kv_heads = h->kv_heads;
    } else if (columns && op->a.heads > 1) {
        own.a.heads = op->a.heads * columns->part / columns->columns;
    }
    if (columns && op->a.groups > 1) own.a.groups = op->a.groups * columns->part / columns->columns;
    if (op->kind == OP_weighted_sum) columns = h->context;
    if (columns) return on_part(r, &own, inputs, columns);
    Tensor scores = r->from->tensors[op->result];
    scores.dims[0].n = h->heads;
    own.inputs = inputs;
    s->parts[op->result] = graph_op(r->arena, r->to, own, scores);
    s->of_tensor[op->result] = h->query;
    return NO_TENSOR;
}

static int divided_op(Rewrite *r, const Op *op) {
    const Shard *s = r->with;
    const int parts = inputs_in_parts(r->from, op);
    const Heads *heads = s->heads->of_op[s->entry][op - r->from->ops];
    if (heads && op->kind != OP_linear) return on_heads(r, op, heads);
    if (op->kind == OP_embed) return lookup(r, op);
    if (parts) return each_number(r, op, parts);
    return is_divided(op) ? product(r, op) : on_whole(r, op);
}

Module *shard(Arena *arena, Module *module, int ranks) {
    static const RewritePass pass = {"shard", divide_weights, begin, NULL, divided_op};
    Shard s = {.ranks = ranks};
    Module *divided = graph_rewrite(arena, module, &pass, &s);
    divided->ranks = ranks;
    divided->whole = module;
    return divided;
}
