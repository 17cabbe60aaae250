/* precision.c: the pass that makes a graph of f32 one of the precision that the spec states. Weights get their types;
 * products read rows that are rounded to bf16 or to integers, and perhaps smoothed first; attention reads queries, keys
 * and values that are rounded to the type of its products or of the cache. docs/precision.md has the formulas. */
#include "rewrite.h"

#include <string.h>

/* ---------------------------------------------------------------- rows of products */

static const double SMOOTH_DEVIATION = 0.3;

/* What is known of the module, and of the graph at hand. */
typedef struct Rounding {
    const bool *looked_up; /* of each weight: an OP_embed reads its rows */
    struct OperandsList *operands;
} Rounding;

static const bool *looked_up(Arena *arena, const Module *module) {
    bool *is = arena_array(arena, module->weights.count + 1, sizeof *is);
    const Graph *g = module->entries[ENTRY_FORWARD];
    for (int o = 0; o < g->n_ops; o++) {
        const Tensor *table = g->ops[o].kind == OP_embed ? &g->tensors[g->ops[o].inputs[1]] : NULL;
        if (table && table->kind == TENSOR_WEIGHT) is[table->weight] = true;
    }
    return is;
}

static bool is_looked_up(const Rewrite *r, int weight) { return ((const Rounding *)r->with)->looked_up[weight]; }

/* The number of the weight that smooths the rows of an op, or NO_WEIGHT. */
static int vector_of(const Rewrite *r, const Op *op) {
    return op->n_inputs > 1 ? r->to->tensors[op->inputs[1]].weight : NO_WEIGHT;
}

/* The op that gives the rows of x in few bits, or NULL. If `smooth`, a vector with the precision's number of outliers
 * smooths the rows. */
static const Op *narrowing(const Rewrite *r, const Precision *precision, int x, OpKind kind, bool smooth) {
    const Tensor *rows = &r->to->tensors[x];
    const int writer = rows->kind == TENSOR_VALUE ? rows->op : -1;
    for (int o = r->to->n_ops; o-- > writer + 1;) {
        const Op *op = &r->to->ops[o];
        if (op->kind != kind || op->inputs[0] != x) continue;
        const int vector = vector_of(r, op);
        if (vector == NO_WEIGHT ? !smooth
                                : smooth && r->module->weights.specs[vector].outliers == precision->outliers)
            return op;
    }
    return NULL;
}

/* Whether a vector smooths the rows of x. */
static bool is_smoothed(const Rewrite *r, int x) {
    const Tensor *rows = &r->to->tensors[x];
    for (int o = r->to->n_ops; o-- > (rows->kind == TENSOR_VALUE ? rows->op + 1 : 0);) {
        const Op *op = &r->to->ops[o];
        if (op->kind == OP_quantize && op->inputs[0] == x && vector_of(r, op) != NO_WEIGHT) return true;
    }
    return false;
}

/* The rows of x, which `product` reads, in int8 or bf16; all products of x with the same precision read the same.
 * `vector` is the tensor that smooths them, or NO_TENSOR. Each of the `groups` parts of a row is a row by itself. Where
 * two vectors smooth x, as under a shared norm, the rows of the second one are named after their product. */
static int narrowed(Rewrite *r, const Op *product, int x, int64_t groups, Dtype dtype, int vector) {
    const OpKind kind = dtype == DTYPE_I8 ? OP_quantize : OP_round;
    const Op *narrow = narrowing(r, product->precision, x, kind, vector != NO_TENSOR);
    if (narrow) return narrow->result;
    const bool again = vector != NO_TENSOR && is_smoothed(r, x);
    const char *word = again                 ? "rows_smoothed"
                       : vector != NO_TENSOR ? "smoothed"
                       : dtype == DTYPE_I8   ? "quantized"
                                             : "rounded";
    Tensor result = r->to->tensors[x];
    if (again) {
        const Tensor *made = &r->from->tensors[product->result];
        result.name = made->name;
        result.site = made->site;
    }
    result.name = arena_printf(r->arena, "%s.%s", result.name, word);
    result.site.part = arena_printf(r->arena, "%s_%s", result.site.part, word);
    result.site.role = ROLE_NONE;
    OpAttributes a = {.groups = groups};
    if (kind == OP_round) a.dtype = dtype, a.heads = 1;
    const int inputs[] = {x, vector}, n = vector == NO_TENSOR ? 1 : 2;
    return rewrite_add(r, product, kind, a, result, n, inputs);
}

/* Adds the vector [K] of a matrix to the weights. */
static int declare_smoothing(Rewrite *r, const Op *product, int matrix) {
    WeightTable *table = &r->module->weights;
    const WeightSpec *of = &table->specs[matrix];
    WeightSpec vector = {.name = of->name,
                         .site = of->site,
                         .shape = {1, {weight_columns(of)}},
                         .mean = 1,
                         .deviation = SMOOTH_DEVIATION,
                         .smooths = true,
                         .outliers = product->precision->outliers,
                         .location = product->location};
    rewrite_sibling(r->arena, &vector.name, &vector.site, "smooth");
    table->elements += vector.shape.dims[0];
    return weight_table_add(r->arena, table, vector);
}

/* The tensor of the vector that smooths x for a matrix, or NO_TENSOR for a matrix that is not smoothed. The products of
 * the same rows read the same integers, and so they share the vector of the first one. Rows of a token table are also
 * looked up, as they are, so that its matrix is not smoothed. */
static int smoothing_of(Rewrite *r, const Op *product, int x, int matrix) {
    if (!product->precision->smooth || is_looked_up(r, matrix)) return NO_TENSOR;
    const Op *narrow = narrowing(r, product->precision, x, OP_quantize, true);
    int vector = narrow ? vector_of(r, narrow) : r->module->weights.specs[matrix].smoothing - 1;
    if (vector < 0) vector = declare_smoothing(r, product, matrix);
    WeightSpec *spec = &r->module->weights.specs[matrix];
    if (spec->smoothing && spec->smoothing != vector + 1) bug("two vectors smooth the rows of `%s`", spec->name);
    spec->smoothing = vector + 1;
    return graph_weight(r->arena, r->to, &r->module->weights, vector);
}

/* Stores in the spec of a matrix which norm gives the rows x that it multiplies. If layers share the matrix, the norm
 * of the first one counts. A token table has none, because its rows are also looked up. */
static void note_norm(Rewrite *r, int x, int matrix) {
    WeightSpec *spec = &r->module->weights.specs[matrix];
    const Tensor *rows = &r->to->tensors[x];
    if (spec->gain || rows->kind != TENSOR_VALUE) return;
    const Op *op = &r->to->ops[rows->op];
    if ((op->kind != OP_rmsnorm && op->kind != OP_layernorm) || op->a.groups != 1) return;
    if (is_looked_up(r, matrix)) return;
    spec->gain = 1 + r->to->tensors[op->inputs[1]].weight;
    spec->shift = op->n_inputs > 2 ? 1 + r->to->tensors[op->inputs[2]].weight : 0;
    spec->gain_plus_one = op->a.plus_one;
}

/* The rows that a product reads in place of the first of its inputs, which are those in the new graph. Rows in int8
 * would need a scale for each part of a row that heads multiply: such rows stay as they are. */
static int rows_for(Rewrite *r, const Op *product, const int *inputs) {
    const int x = inputs[0];
    const Tensor *matrix = &r->to->tensors[inputs[1]];
    if (matrix->kind != TENSOR_WEIGHT || !product->precision) return x;
    const int weight = matrix->weight;
    const Dtype rows = rows_dtype(product->precision, matrix->dtype);
    if (op_is_by_head(product)) return rows == DTYPE_BF16 ? narrowed(r, product, x, 1, rows, NO_TENSOR) : x;
    note_norm(r, x, weight);
    if (rows == DTYPE_F32) return x;
    const int64_t groups = r->to->tensors[x].dims[1].n / weight_columns(&r->module->weights.specs[weight]);
    return narrowed(r, product, x, groups, rows, rows == DTYPE_I8 ? smoothing_of(r, product, x, weight) : NO_TENSOR);
}

/* ---------------------------------------------------------------- queries, keys and values */

enum { QUERY, KEY, VALUE, N_OPERANDS };

/* What an attention reads. Tensors are those of the graph that makes them, NO_TENSOR where it makes none. */
typedef struct Operands {
    const Op *scores;
    int64_t heads[N_OPERANDS];
    int made[N_OPERANDS];    /* the rows that this call makes; a cache may stand between them and the attention */
    int caches[N_OPERANDS];  /* the states that keep keys and values */
    int rounded[N_OPERANDS]; /* what stands for `made` in the new graph */
    bool elsewhere;        /* `scores` and `caches` are those of `decode`, for which `encode` makes keys and values */
    int last;              /* the op that makes the last of `made`; -1: all are inputs */
    int next;              /* 1 + another attention with the same `last`; or 0 */
} Operands;

typedef struct OperandsList {
    Operands *all;
    int count;
    int **reads; /* [n_ops][n_inputs]: 1 + N_OPERANDS * attention + operand, where the op's input is one; else 0 */
    int *leaves; /* [n_states]: the same of what a state leaves */
    bool *weighs; /* [n_ops]: whether it makes or reads weights that are rounded */
    int *after_op; /* [1 + n_ops]: at i, 1 + the first attention whose `last` is op i - 1, or 0 */
} OperandsList;

/* Stores that the given input of op `at` is an operand of attention i. */
static void note_read(const Graph *g, OperandsList *to, int i, int operand, int at, int input) {
    Operands *a = &to->all[i];
    const int t = g->ops[at].inputs[input], writer = g->tensors[t].kind == TENSOR_VALUE ? g->tensors[t].op : -1;
    if (g->tensors[t].kind == TENSOR_STATE) {
        a->caches[operand] = t;
        return;
    }
    if (writer >= 0 && g->ops[writer].kind == OP_append) {
        a->caches[operand] = g->ops[writer].inputs[0];
        at = writer, input = 1;
    }
    a->made[operand] = g->ops[at].inputs[input];
    /* Values that two attentions append once are rounded by the first one. */
    if (!to->reads[at][input]) to->reads[at][input] = 1 + N_OPERANDS * i + operand;
}

/* Whether an output of the graph, or the logarithms of the sums, tell the weights, which then keep 24 bits. */
static bool tells_weights(const Graph *g, const Op *softmax) {
    for (int i = 0; i < g->n_outputs; i++)
        if (g->outputs[i].tensor == softmax->result) return true;
    for (int o = 0; o < g->n_ops; o++)
        if (g->ops[o].kind == OP_log_sum && g->ops[o].inputs[0] == softmax->inputs[0]) return true;
    return false;
}

/* Whether the weights are rounded, which lets their products with values be sums of pairs of bf16. A decoder's rows may
 * come one by one, which gains nothing. */
static bool rounds_weights(const Graph *g, const Op *scores, const Op *softmax) {
    return scores->kind == OP_scores && !scores->a.cached && scores->precision->attention != DTYPE_F32 &&
           !softmax->a.weighing && !tells_weights(g, softmax);
}

/* Follows the scores of op `at` to the weighted sum. */
static void note_attention(const Graph *g, OperandsList *to, int at) {
    const int i = to->count++;
    const Op *scores = &g->ops[at];
    Operands *a = &to->all[i];
    *a = (Operands){.scores = scores, .last = -1};
    for (int n = 0; n < N_OPERANDS; n++) a->made[n] = a->caches[n] = a->rounded[n] = NO_TENSOR;
    note_read(g, to, i, QUERY, at, 0);
    note_read(g, to, i, KEY, at, 1);
    int chain = scores->result, sum = at + 1;
    for (; sum < g->n_ops && !(g->ops[sum].kind == OP_weighted_sum && g->ops[sum].inputs[0] == chain); sum++) {
        const Op *op = &g->ops[sum];
        if (op->inputs[0] != chain || g->tensors[op->result].rank != 3) continue;
        if (op->kind == OP_distance_scores) note_read(g, to, i, op->a.by_key ? KEY : QUERY, sum, 1);
        chain = op->result;
    }
    if (sum == g->n_ops) bug("attention at `%s` has no values", scores->where);
    note_read(g, to, i, VALUE, sum, 1);
    const int softmax = g->tensors[chain].op;
    to->weighs[sum] = to->weighs[softmax] = rounds_weights(g, scores, &g->ops[softmax]);
    const bool one = scores->kind == OP_additive_scores;
    a->heads[QUERY] = one ? 1 : scores->a.heads;
    a->heads[KEY] = one ? 1 : scores->a.kv_heads;
    a->heads[VALUE] = g->ops[sum].a.kv_heads;
}

/* Finds the op after which the operands of each attention from `first` on exist. */
static void note_last(const Graph *g, OperandsList *to, int first) {
    for (int i = to->count; i-- > first;) {
        Operands *a = &to->all[i];
        for (int n = 0; n < N_OPERANDS; n++) {
            const Tensor *made = a->made[n] == NO_TENSOR ? NULL : &g->tensors[a->made[n]];
            if (made && made->kind == TENSOR_VALUE && made->op > a->last) a->last = made->op;
        }
        a->next = to->after_op[a->last + 1];
        to->after_op[a->last + 1] = i + 1;
    }
}

static OperandsList *operands_new(Arena *arena, const Graph *g, int room) {
    OperandsList *a = arena_alloc(arena, sizeof *a);
    a->all = arena_array(arena, (size_t)room + 1, sizeof *a->all);
    a->reads = arena_array(arena, (size_t)g->n_ops + 1, sizeof *a->reads);
    for (int o = 0; o < g->n_ops; o++)
        a->reads[o] = arena_array(arena, (size_t)g->ops[o].n_inputs, sizeof *a->reads[o]);
    a->leaves = arena_array(arena, (size_t)g->n_states + 1, sizeof *a->leaves);
    a->weighs = arena_array(arena, (size_t)g->n_ops + 1, sizeof *a->weighs);
    a->after_op = arena_array(arena, (size_t)g->n_ops + 1, sizeof *a->after_op);
    return a;
}

static bool is_scores(const Op *op) { return op->kind == OP_scores || op->kind == OP_additive_scores; }

/* The attentions of a graph, in a list with room for `more` others. */
static OperandsList *operands_of(Arena *arena, const Graph *g, int more) {
    int count = 0;
    for (int o = 0; o < g->n_ops; o++) count += is_scores(&g->ops[o]);
    OperandsList *a = operands_new(arena, g, count + more);
    for (int o = 0; o < g->n_ops; o++)
        if (is_scores(&g->ops[o])) note_attention(g, a, o);
    note_last(g, a, 0);
    return a;
}

/* The attentions of `encode`, and the attentions of `decode` whose keys and values `encode` makes. */
static OperandsList *operands_with_left(Arena *arena, const Graph *encode, const Graph *decode) {
    const OperandsList *of = operands_of(arena, decode, 0);
    OperandsList *to = operands_of(arena, encode, of->count);
    const int own = to->count;
    int state = 0;
    for (int i = 0; i < of->count; i++) {
        Operands a = of->all[i];
        if (a.made[KEY] != NO_TENSOR) continue;
        a.made[QUERY] = NO_TENSOR;
        a.last = -1;
        a.elsewhere = true;
        for (int n = KEY; n <= VALUE; n++) {
            const char *name = decode->tensors[a.caches[n]].name;
            int tried = 0; /* the order is that of `decode`, so that the search begins where the last one ended */
            for (; tried < encode->n_states && strcmp(encode->states[state].name, name) != 0; tried++)
                state = (state + 1) % encode->n_states;
            if (tried == encode->n_states) continue;
            a.made[n] = encode->states[state].out;
            to->leaves[state] = 1 + N_OPERANDS * to->count + n;
        }
        to->all[to->count++] = a;
    }
    note_last(encode, to, own);
    return to;
}

/* The type of an operand; keys and values that a cache may keep have that of the cache, so that a text gives the same
 * numbers in one call and in many. Additive scores multiply nothing. */
static Dtype operand_dtype(const Operands *a, int operand) {
    const Precision *p = a->scores->precision;
    if (operand != QUERY && a->scores->a.cached && p->cache != DTYPE_F32) return p->cache;
    if (operand != VALUE && a->scores->kind == OP_additive_scores) return DTYPE_F32;
    return operand == VALUE && p->attention == DTYPE_I8 ? DTYPE_BF16 : p->attention;
}

/* Where an attention has two softmaxes over the same values: the values that the other one has rounded, or
 * NO_TENSOR. */
static int rounded_before(const OperandsList *all, const Operands *a, int operand) {
    for (int i = 0; i < all->count; i++) {
        const Operands *other = &all->all[i];
        if (other->made[operand] == a->made[operand] && other->scores->where == a->scores->where)
            return other->rounded[operand];
    }
    return NO_TENSOR;
}

static int round_operand(Rewrite *r, const Operands *a, int operand) {
    static const char *const words[] = {"query_rounded", "key_rounded", "value_rounded"};
    static const Role roles[] = {ROLE_QUERY, ROLE_KEY, ROLE_VALUE};
    const Dtype dtype = operand_dtype(a, operand);
    const int x = rewrite_tensor(r, a->made[operand]);
    if (dtype == DTYPE_F32) return x;
    const int before = rounded_before(((const Rounding *)r->with)->operands, a, operand);
    if (before != NO_TENSOR) return before;
    const Tensor *scores = &(a->elsewhere ? r->old->entries[ENTRY_DECODE] : r->from)->tensors[a->scores->result];
    Tensor result = r->to->tensors[x];
    result.name = scores->name;
    result.site = scores->site;
    rewrite_sibling(r->arena, &result.name, &result.site, words[operand]);
    result.site.role = roles[operand];
    const OpAttributes round = {.dtype = dtype, .heads = a->heads[operand]};
    return rewrite_add(r, a->scores, OP_round, round, result, 1, &x);
}

/* Rounds the operands of the attentions whose last operand op `at` has made. */
static void round_operands(Rewrite *r, int at) {
    OperandsList *all = ((Rounding *)r->with)->operands;
    for (int i = all->after_op[at + 1]; i; i = all->all[i - 1].next) {
        Operands *a = &all->all[i - 1];
        for (int n = 0; n < N_OPERANDS; n++)
            if (a->made[n] != NO_TENSOR) a->rounded[n] = round_operand(r, a, n);
    }
}

/* ---------------------------------------------------------------- the pass */

static void give_types(Rewrite *r) {
    WeightTable *table = &r->module->weights;
    for (size_t i = 0; i < table->count; i++)
        if (table->specs[i].precision) table->specs[i].type = table->specs[i].precision->weights;
    Rounding *rounding = arena_alloc(r->arena, sizeof *rounding);
    rounding->looked_up = looked_up(r->arena, r->old);
    r->with = rounding;
}

static void begin_graph(Rewrite *r) {
    Rounding *rounding = r->with;
    const Graph *encode = r->old->entries[ENTRY_ENCODE], *decode = r->old->entries[ENTRY_DECODE];
    rounding->operands = r->from == encode ? operands_with_left(r->arena, encode, decode)
                                           : operands_of(r->arena, r->from, 0);
    round_operands(r, -1);
}

static int round_op(Rewrite *r, const Op *op) {
    const OperandsList *operands = ((const Rounding *)r->with)->operands;
    const int at = (int)(op - r->from->ops);
    int *inputs = rewrite_inputs(r, op);
    for (int n = 0; n < op->n_inputs; n++) {
        const int read = operands->reads[at][n] - 1;
        if (read >= 0) inputs[n] = operands->all[read / N_OPERANDS].rounded[read % N_OPERANDS];
    }
    if (op_is_product(op->kind)) inputs[0] = rows_for(r, op, inputs);
    r->now[op->result] = rewrite_as(r, op, inputs);
    if (operands->weighs[at]) r->to->ops[r->to->n_ops - 1].a.dtype = DTYPE_BF16;
    round_operands(r, at);
    return r->now[op->result];
}

/* States have the type to which what they keep is rounded. */
static void end_graph(Rewrite *r) {
    const OperandsList *operands = ((const Rounding *)r->with)->operands;
    const Precision **kept = arena_array(r->arena, (size_t)r->from->n_tensors + 1, sizeof *kept); /* by each cache */
    for (int i = 0; i < operands->count; i++)
        for (int n = KEY; n <= VALUE && !operands->all[i].elsewhere; n++)
            if (operands->all[i].caches[n] != NO_TENSOR)
                kept[operands->all[i].caches[n]] = operands->all[i].scores->precision;
    for (int s = 0; s < r->to->n_states; s++) {
        GraphState *state = &r->to->states[s];
        const int in = r->from->states[s].in, left = operands->leaves[s] - 1; /* -1: it leaves none of them */
        const Precision *precision = in == NO_TENSOR ? NULL : kept[in];
        if (left >= 0) {
            state->out = operands->all[left / N_OPERANDS].rounded[left % N_OPERANDS];
            precision = operands->all[left / N_OPERANDS].scores->precision;
        }
        if (precision) state->dtype = precision->cache;
    }
}

const RewritePass precision_pass = {"precision", give_types, begin_graph, end_graph, round_op};
