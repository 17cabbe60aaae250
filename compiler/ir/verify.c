/* verify.c: the rules of a graph. A broken rule is a bug of attnc, not a fault of the spec. */
#include "../attnc.h"

/* The dtypes as ops.def spells them. */
enum { F32 = DTYPE_F32, I64 = DTYPE_I64, U8 = DTYPE_U8, STORED = DTYPE_COUNT, MOST_LISTED = 7 };

#define LIST(...) {__VA_ARGS__}
static const struct {
    int least, most;
    int result, inputs[MOST_LISTED]; /* dtypes; further inputs have that of the last listed one */
} rules[] = {
#define OP(name, least, most, result, inputs, help) {least, most, result, LIST inputs},
#include "ops.def"
};
#undef LIST

static void verify_tensor(const Module *module, const Graph *g, int t, const char *after) {
    const Tensor *tensor = &g->tensors[t];
    if (!tensor->name || tensor->rank < 1 || tensor->rank > 3)
        bug("after %s: tensor %d has no name or a rank of %d", after, t, tensor->rank);
    for (int d = 0; d < tensor->rank; d++) {
        Dim dim = tensor->dims[d];
        if (dim.n < 1 || dim.symbol < 0 || dim.symbol > g->n_symbols)
            bug("after %s: tensor `%s` has a bad dimension %d", after, tensor->name, d);
        if (dim.symbol && g->symbols[dim.symbol - 1].bound != dim.n)
            bug("after %s: tensor `%s`: a symbol and its bound disagree", after, tensor->name);
    }
    if (tensor->kind == TENSOR_WEIGHT && (tensor->weight < 0 || (size_t)tensor->weight >= module->weights.count))
        bug("after %s: tensor `%s` is no weight of the table", after, tensor->name);
    if (tensor->kind == TENSOR_DERIVED && (tensor->weight < 0 || tensor->weight >= module->n_derived))
        bug("after %s: tensor `%s` is no derived tensor", after, tensor->name);
    if (tensor->kind == TENSOR_VALUE && (tensor->op < 0 || tensor->op >= g->n_ops || g->ops[tensor->op].result != t))
        bug("after %s: tensor `%s` and the op that writes it disagree", after, tensor->name);
}

#define WANT(condition) \
    if (!(condition)) \
    bug("after %s: op %d, %s of `%s` (%s): %s does not hold", after, index, op_name(op->kind), result->name, \
        op->where, #condition)

/* The dtypes that ops.def states; the inputs of a rule of pairs have other ones. */
static void verify_dtypes(const Graph *g, int index, const char *after) {
    const Op *op = &g->ops[index];
    const Tensor *result = &g->tensors[op->result];
    const bool integers = op->kind == OP_append && result->dtype == DTYPE_I64;
    WANT((int)result->dtype == rules[op->kind].result || integers);
    const int own = op->n_inputs - pair_inputs(op->a.rule);
    WANT(!op->a.rule || own == op_rule_input(op));
    for (int n = 0; n < own; n++) {
        const Tensor *read = &g->tensors[op->inputs[n]];
        int wanted = integers ? I64 : rules[op->kind].inputs[n];
        if (wanted == STORED && dtype_of_weights(read->dtype)) continue;
        if ((int)read->dtype != wanted)
            bug("after %s: op %d, %s of `%s` (%s): its input `%s` is %s, not %s", after, index, op_name(op->kind),
                result->name, op->where, read->name, dtype_name(read->dtype),
                wanted == STORED ? "a type of weights" : dtype_name((Dtype)wanted));
    }
}

/* The inputs of a rule of pairs over the scores or weights of an op. Positions lie within the bounds of the queries and
 * of the keys, among which queries of a state are, and an index within its table. */
static void verify_rule(const Graph *g, int index, const PairRule *rule, const char *after) {
    const Op *op = &g->ops[index];
    const Tensor *result = &g->tensors[op->result], *x = &g->tensors[op->inputs[0]];
    if (rule->a) verify_rule(g, index, rule->a, after);
    if (rule->b) verify_rule(g, index, rule->b, after);
    if (rule->c) verify_rule(g, index, rule->c, after);
    WANT(rule->op != PAIR_index && rule->op != PAIR_let);
    if (!pair_reads_input(rule->op)) return;
    const Tensor *read = &g->tensors[op->inputs[op_rule_input(op) + rule->input]];
    const bool is_bit = pair_is_bit(rule);
    const bool of_query = rule->op == PAIR_of_query || rule->op == PAIR_bit_of_query, kept = of_query && op->a.past;
    if (rule->op == PAIR_number)
        WANT(read->dtype == (rule->is_real ? DTYPE_F32 : DTYPE_I64) && read->rank == 1 && read->dims[0].n == 1);
    if (rule->op == PAIR_of_query || rule->op == PAIR_of_key || is_bit)
        WANT((read->dtype == DTYPE_I64 || (read->dtype == DTYPE_F32 && !is_bit)) && read->rank == 1 &&
             (kept ? graph_dim_is_total(g, read->dims[0]) : dim_equal(read->dims[0], x->dims[of_query ? 1 : 2])));
    if (rule->op == PAIR_given || rule->op == PAIR_of_pair)
        WANT((rule->op == PAIR_given ? read->dtype == DTYPE_U8
                                     : read->dtype == DTYPE_I64 || read->dtype == DTYPE_F32) && read->rank == 2 &&
             dim_equal(read->dims[0], x->dims[1]) && dim_equal(read->dims[1], x->dims[2]));
    if (rule->op == PAIR_of_head)
        WANT(read->dtype == DTYPE_F32 && read->rank == 1 && dim_equal(read->dims[0], x->dims[0]));
    if (rule->op != PAIR_table && rule->op != PAIR_list) return;
    const int64_t queries = op->a.past ? g->symbols[op->a.past - 1].bound : x->dims[1].n;
    const PairRange query = {0, (double)(queries - 1)}, key = {0, (double)(x->dims[2].n - 1)};
    const PairRange at = pair_range(rule->a, query, key);
    const int rank = rule->op == PAIR_table ? 2 : 1;
    WANT(read->dtype == DTYPE_F32 && read->rank == rank && (rank == 1 || dim_equal(read->dims[0], x->dims[0])));
    WANT(at.low >= 0 && at.high <= (double)(read->dims[rank - 1].n - 1));
}

/* Those of the ops of a mixture of experts. */
static void verify_experts(const Graph *g, int index, const char *after) {
    const Op *op = &g->ops[index];
    const Tensor *result = &g->tensors[op->result], *x = &g->tensors[op->inputs[0]];
    const Tensor *y = op->n_inputs > 1 ? &g->tensors[op->inputs[1]] : x,
                 *z = op->n_inputs > 2 ? &g->tensors[op->inputs[2]] : x;
    const Experts *e = op->a.experts;
    WANT(e && dim_equal(x->dims[0], result->dims[0]));
    if (op->kind == OP_choose) {
        WANT(x->dims[1].n == e->count && result->dims[1].n == 2 * e->top);
        WANT(op->n_inputs < 2 || y->dims[0].n == x->dims[1].n);
    } else if (op->kind == OP_expert_linear) {
        WANT(y->rank == 3 && y->dims[0].n == e->count && (op_is_by_head(op) || z->dims[1].n == 2 * e->top));
        WANT(x->dims[1].n == y->dims[2].n || x->dims[1].n == e->top * y->dims[2].n);
        WANT(result->dims[1].n == e->top * y->dims[1].n);
    } else {
        WANT(y->dims[1].n == 2 * e->top && x->dims[1].n == e->top * result->dims[1].n);
    }
}

static void verify_join(const Graph *g, int index, const char *after) {
    const Op *op = &g->ops[index];
    const Tensor *result = &g->tensors[op->result], *x = &g->tensors[op->inputs[0]], *y = &g->tensors[op->inputs[1]];
    const int64_t heads = op->a.heads;
    WANT(dim_equal(x->dims[0], y->dims[0]) && dim_equal(x->dims[0], result->dims[0]));
    WANT(heads > 0 && x->dims[1].n % heads == 0 && y->dims[1].n % heads == 0);
    WANT(result->dims[1].n == x->dims[1].n + y->dims[1].n);
}

static void verify_windows(const Graph *g, int index, const char *after) {
    const Op *op = &g->ops[index];
    const Tensor *result = &g->tensors[op->result], *x = &g->tensors[op->inputs[0]];
    const int rows = op->a.by_column ? 1 : 0; /* the dimension that counts them */
    WANT(x->rank == 2 && op->a.kernel > 0 && op->a.kernel % 2 && op->a.stride > 0);
    WANT(result->dims[1].n == x->dims[1 - rows].n * op->a.kernel);
    if (x->dims[rows].symbol) {
        WANT(op->a.stride == 1 && !rows && dim_equal(result->dims[0], x->dims[0]));
        return;
    }
    WANT(result->dims[0].n == convolution_rows(x->dims[rows].n, op->a.stride));
}

static void verify_add(const Graph *g, int index, const char *after) {
    const Op *op = &g->ops[index];
    const Tensor *result = &g->tensors[op->result], *x = &g->tensors[op->inputs[0]], *y = &g->tensors[op->inputs[1]];
    WANT(dim_equal(x->dims[0], result->dims[0]));
    WANT(y->rank == 1 || (dim_equal(y->dims[0], x->dims[0]) && dim_equal(y->dims[1], x->dims[1])));
    if (op->n_inputs < 3) return;
    const Tensor *factor = &g->tensors[op->inputs[2]];
    WANT(factor->rank == 1 && factor->dims[0].n == x->dims[1].n);
}

static void verify_distance_scores(const Graph *g, int index, const char *after) {
    const Op *op = &g->ops[index];
    const OpAttributes *a = &op->a;
    const Tensor *result = &g->tensors[op->result], *x = &g->tensors[op->inputs[0]],
                 *y = &g->tensors[op->inputs[1]], *z = &g->tensors[op->inputs[2]];
    WANT(dim_equal(x->dims[1], result->dims[1]) && dim_equal(x->dims[2], result->dims[2]));
    WANT(x->rank == 3 && z->rank == 3 && y->dims[1].n == (a->by_key ? a->kv_heads : a->heads) * a->head_dim);
    WANT(x->dims[0].n == a->heads && a->heads % a->kv_heads == 0 && dim_equal(y->dims[0], x->dims[1 + a->by_key]));
    WANT((z->dims[0].n == 1 || z->dims[0].n == a->heads) && z->dims[1].n == a->head_dim);
}

/* The two ops of positions that count ids. */
static void verify_tally(const Graph *g, int index, const char *after) {
    const Op *op = &g->ops[index];
    const Tensor *result = &g->tensors[op->result], *x = &g->tensors[op->inputs[0]];
    const Tensor *state = op->n_inputs > 1 ? &g->tensors[op->inputs[1]] : NULL;
    WANT(x->rank == 1 && dim_equal(result->dims[0], x->dims[0]) && result->dims[1].n == 1);
    WANT(!state || (state->kind == TENSOR_STATE && state->dims[1].n == 1));
}

static void verify_pick_rows(const Graph *g, int index, const char *after) {
    const Op *op = &g->ops[index];
    const Tensor *result = &g->tensors[op->result], *x = &g->tensors[op->inputs[0]];
    const Tensor *y = &g->tensors[op->inputs[1]], *z = &g->tensors[op->inputs[2]];
    WANT(dim_equal(result->dims[1], x->dims[1]) && result->dims[0].n + op->a.offset < x->dims[0].n);
    WANT(dim_equal(result->dims[0], y->dims[0]) && dim_equal(result->dims[0], z->dims[0]) && z->dims[1].n == 1);
}

/* Whether the inputs from number `first` on are integers of these rows below `rows_of_table`. */
static bool are_positions(const Graph *g, const Op *op, int first, Dim rows, int64_t rows_of_table) {
    for (int n = first; n < op->n_inputs; n++) {
        const Tensor *at = &g->tensors[op->inputs[n]];
        const GraphInput *input = graph_input_named(g, at->name);
        if (at->rank != 1 || !dim_equal(at->dims[0], rows) || !input || input->tensor != op->inputs[n]) return false;
        if (input->least < 0 || input->most >= rows_of_table) return false;
    }
    return true;
}

static void verify_take_rows(const Graph *g, int index, const char *after) {
    const Op *op = &g->ops[index];
    const Tensor *result = &g->tensors[op->result], *x = &g->tensors[op->inputs[0]];
    const int64_t rows = x->dims[0].n - op->a.offset;
    WANT(x->rank == 2 && dim_equal(result->dims[1], x->dims[1]));
    WANT(op->n_inputs > 1 ? are_positions(g, op, 1, result->dims[0], rows) : result->dims[0].n <= rows);
}

static void verify_rope(const Graph *g, int index, const char *after) {
    const Op *op = &g->ops[index];
    const Tensor *result = &g->tensors[op->result], *x = &g->tensors[op->inputs[0]];
    const Tensor *y = &g->tensors[op->inputs[1]], *z = &g->tensors[op->inputs[2]];
    const int n = op->n_inputs - 3;
    WANT(dim_equal(x->dims[0], result->dims[0]) && dim_equal(x->dims[1], result->dims[1]));
    WANT(dim_equal(y->dims[0], z->dims[0]) && (n > 0 || x->dims[0].n + op->a.offset <= y->dims[0].n));
    WANT(are_positions(g, op, 3, x->dims[0], y->dims[0].n));
    int64_t pairs = 0;
    for (int i = 0; i < n && op->a.sections; i++) pairs += op->a.sections[i];
    WANT(n > 1 ? pairs == op->a.width / 2 && op->a.sections : !op->a.sections);
}

static void verify_pool(const Graph *g, int index, const char *after) {
    const Op *op = &g->ops[index];
    const Tensor *result = &g->tensors[op->result], *x = &g->tensors[op->inputs[0]];
    WANT((op->n_inputs == 2) == pool_reads_ids(op->a.pool));
    WANT(op->n_inputs < 2 || g->tensors[op->inputs[1]].rank == 1);
    WANT(result->dims[0].n == 1 && dim_equal(result->dims[1], x->dims[1]));
}

/* The collectives of ranks. */
static void verify_gather(const Graph *g, int index, const char *after) {
    const Op *op = &g->ops[index];
    const Tensor *result = &g->tensors[op->result], *x = &g->tensors[op->inputs[0]];
    const Sharding *s = op->a.sharding;
    WANT(s && dim_equal(x->dims[0], result->dims[0]));
    if (op->kind == OP_owner_rows) {
        const Tensor *ids = &g->tensors[op->inputs[1]];
        WANT(ids->rank == 1 && dim_equal(x->dims[0], ids->dims[0]) && dim_equal(x->dims[1], result->dims[1]));
        return;
    }
    WANT(x->dims[1].n % s->part == 0 && result->dims[1].n == x->dims[1].n / s->part * s->columns);
}

/* Whether `result` has one row for each whole square of the image `x`. */
static bool patches_fit(const Tensor *x, const Tensor *result, const OpAttributes *a) {
    if (x->rank != 3 || a->patch < 1 || a->stride < 1) return false;
    const int64_t channels = x->dims[0].n, height = x->dims[1].n, width = x->dims[2].n;
    return height >= a->patch && width >= a->patch && result->dims[1].n == channels * a->patch * a->patch &&
           result->dims[0].n == squares_along(height, a->patch, a->stride) * squares_along(width, a->patch, a->stride);
}

/* The shapes that ops.def states. */
static void verify_shapes(const Graph *g, int index, const char *after) {
    const Op *op = &g->ops[index];
    const Tensor *result = &g->tensors[op->result], *x = &g->tensors[op->inputs[0]];
    /* y and z are x where the operation lacks them, and are then not checked */
    const Tensor *y = op->n_inputs > 1 ? &g->tensors[op->inputs[1]] : x,
                 *z = op->n_inputs > 2 ? &g->tensors[op->inputs[2]] : x;
    const OpAttributes *a = &op->a;
    switch (op->kind) {
    case OP_embed:
        WANT(x->rank == 1 && y->rank == 2 && dim_equal(result->dims[0], x->dims[0]) &&
             dim_equal(result->dims[1], y->dims[1]));
        break;
    case OP_take_rows: verify_take_rows(g, index, after); break;
    case OP_tally: case OP_keep: verify_tally(g, index, after); break;
    case OP_pick_rows: verify_pick_rows(g, index, after); break;
    case OP_append:
        WANT(x->kind == TENSOR_STATE && x->dims[1].n == y->dims[1].n && x->dims[1].n == result->dims[1].n);
        WANT(x->rank == y->rank && x->rank == result->rank);
        WANT(x->dims[0].symbol && result->dims[0].symbol && result->dims[0].symbol != x->dims[0].symbol);
        break;
    case OP_patches: WANT(patches_fit(x, result, a)); break;
    case OP_windows: verify_windows(g, index, after); break;
    case OP_prepend:
        WANT(result->dims[0].n == g->tensors[op->inputs[op->n_inputs - 1]].dims[0].n + 1 +
             (op->n_inputs < 3 ? 0 : y->rank == 2 ? y->dims[0].n : 1));
        break;
    case OP_add: verify_add(g, index, after); break;
    case OP_gate: WANT(dim_equal(x->dims[0], y->dims[0]) && dim_equal(x->dims[1], y->dims[1])); break;
    case OP_mul:
        WANT(dim_equal(x->dims[0], y->dims[0]) && (dim_equal(x->dims[1], y->dims[1]) || y->dims[1].n == 1));
        break;
    case OP_join: verify_join(g, index, after); break;
    case OP_choose: case OP_expert_linear: case OP_expert_sum: verify_experts(g, index, after); break;
#define OP(name, least, most, result, inputs, help)
#define MAP(name, value, fixed, formula, help) case OP_##name:
#include "ops.def"
    case OP_l2: case OP_rescore: case OP_softmax:
        WANT(x->rank == result->rank && dim_equal(x->dims[0], result->dims[0]) &&
             dim_equal(x->dims[1], result->dims[1]));
        break;
    case OP_rope: verify_rope(g, index, after); break;
    case OP_round:
        WANT(a->heads > 0 && x->rank == 2 && x->dims[1].n % a->heads == 0 && dim_equal(x->dims[0], result->dims[0]) &&
             x->dims[1].n == result->dims[1].n);
        WANT(a->dtype == DTYPE_BF16 || a->dtype == DTYPE_F16 || a->dtype == DTYPE_I8);
        break;
    case OP_quantize:
        WANT(dim_equal(x->dims[0], result->dims[0]) && x->dims[1].n == result->dims[1].n);
        WANT(a->groups > 0 && x->dims[1].n % a->groups == 0);
        WANT(op->n_inputs < 2 || (y->rank == 1 && y->dims[0].n * a->groups == x->dims[1].n));
        break;
    case OP_linear:
        WANT(x->dims[1].n == y->dims[1].n && result->dims[1].n == y->dims[0].n &&
             (op->n_inputs < 3 || z->dims[0].n == y->dims[0].n));
        break;
    case OP_layernorm: case OP_rmsnorm:
        WANT(a->groups > 0 && x->dims[1].n % a->groups == 0 &&
             (y->rank == 2 ? y->dims[1].n : y->dims[0].n) == x->dims[1].n / a->groups);
        break;
    case OP_scores:
        WANT(x->dims[1].n == a->heads * a->head_dim && y->dims[1].n == a->kv_heads * a->head_dim &&
             a->heads % a->kv_heads == 0);
        break;
    case OP_distance_scores: verify_distance_scores(g, index, after); break;
    case OP_additive_scores: WANT(x->dims[1].n == y->dims[1].n && z->dims[0].n == x->dims[1].n); break;
    case OP_log_sum:
        WANT(x->rank == 3 && dim_equal(x->dims[0], result->dims[0]) && dim_equal(x->dims[1], result->dims[1]));
        break;
    case OP_weighted_sum:
        WANT(x->kind != TENSOR_VALUE ||
             (g->ops[x->op].a.weighing == a->weighing && g->ops[x->op].a.dtype == a->dtype));
        WANT(x->rank == 3 && dim_equal(x->dims[2], y->dims[0]) && y->dims[1].n == a->kv_heads * a->head_dim &&
             result->dims[1].n == a->heads * a->head_dim);
        break;
    case OP_pool: verify_pool(g, index, after); break;
    case OP_all_gather: case OP_owner_rows: verify_gather(g, index, after); break;
    case OP_learned: WANT(result->dims[0].n == 1 && result->dims[1].n == x->dims[x->rank - 1].n); break;
    case OP_COUNT: WANT(false); break;
    }
}

/* Arrays are found by their roles, so that no two inputs have one role, and no two outputs that are not made head by
 * head. */
static void verify_roles(const Graph *g, const char *after) {
    bool given[MOST_INPUTS] = {false}, taken[OUT_COUNT] = {false};
    for (int i = 0; i < g->n_inputs; i++) {
        const GraphInput *input = &g->inputs[i];
        const InputKind *kind = input->kind;
        if (given[kind->role]) bug("after %s: input `%s` has the role of another", after, kind->name);
        if (g->tensors[input->tensor].kind != TENSOR_INPUT) bug("after %s: input `%s` is no input", after, kind->name);
        given[kind->role] = true;
    }
    for (int o = 0; o < g->n_outputs; o++) {
        const GraphOutput *output = &g->outputs[o];
        if (output->tensor < 0 || output->tensor >= g->n_tensors)
            bug("after %s: output `%s` has no tensor", after, output->name);
        if (taken[output->role] && output->n_heads == 0)
            bug("after %s: output `%s` has the role of another", after, output->name);
        taken[output->role] = true;
    }
}

/* A weight has one dtype in all graphs, which is that of the table. */
static void verify_weight_dtype(const Module *module, const Tensor *tensor, const char *after) {
    if (tensor->kind == TENSOR_WEIGHT && tensor->dtype != module->weights.specs[tensor->weight].type.dtype)
        bug("after %s: tensor `%s` and its weight have different dtypes", after, tensor->name);
}

void verify(const Module *module, const Graph *g, const char *after) {
    for (int t = 0; t < g->n_tensors; t++) verify_tensor(module, g, t, after);
    for (int index = 0; index < g->n_ops; index++) {
        const Op *op = &g->ops[index];
        const Tensor *result = &g->tensors[op->result];
        if (op->kind < 0 || op->kind >= OP_COUNT) bug("after %s: op %d has no kind", after, index);
        WANT(op->n_inputs >= rules[op->kind].least && op->n_inputs <= rules[op->kind].most);
        WANT(result->kind == TENSOR_VALUE && result->op == index);
        WANT(op->a.past >= 0 && op->a.past <= g->n_symbols);
        for (int n = 0; n < op->n_inputs; n++) {
            WANT(op->inputs[n] >= 0 && op->inputs[n] < g->n_tensors);
            const Tensor *read = &g->tensors[op->inputs[n]];
            WANT(read->kind != TENSOR_VALUE || read->op < index);
        }
        verify_dtypes(g, index, after);
        if (op->a.rule) verify_rule(g, index, op->a.rule, after);
        verify_shapes(g, index, after);
    }
    for (int t = 0; t < g->n_tensors; t++) verify_weight_dtype(module, &g->tensors[t], after);
    for (int s = 0; s < g->n_states; s++) {
        const GraphState *state = &g->states[s];
        if (state->in == NO_TENSOR && state->out == NO_TENSOR)
            bug("after %s: state `%s` is nothing", after, state->name);
        if (state->in < NO_TENSOR || state->in >= g->n_tensors || state->out < NO_TENSOR || state->out >= g->n_tensors)
            bug("after %s: state `%s` has no tensor", after, state->name);
        if (state->in != NO_TENSOR && g->tensors[state->in].kind != TENSOR_STATE)
            bug("after %s: state `%s` does not come in as one", after, state->name);
        if (state->in == NO_TENSOR || state->out == NO_TENSOR) continue;
        const Tensor *out = &g->tensors[state->out];
        if (out->kind != TENSOR_VALUE || g->ops[out->op].kind != OP_append || g->ops[out->op].inputs[0] != state->in)
            bug("after %s: state `%s` does not go on from what came in", after, state->name);
    }
    verify_roles(g, after);
}

void verify_module(const Module *module, const char *after) {
    for (int e = 0; e < ENTRY_COUNT; e++)
        if (module->entries[e]) verify(module, module->entries[e], after);
}
