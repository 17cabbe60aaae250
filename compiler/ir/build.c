/* build.c: from a Model to a Module: every layer as ops over SSA tensors.
 *
 * A graph is built for each way into the model: `forward` takes whole sequences; `encode` takes a source and leaves
 * what cross attention reads of it; `decode` appends rows to a state. They share layers and weights, and differ in
 * where an attention's keys and values come from, and in how many rows stand before the first. */
#include "../attnc.h"

#include <string.h>

typedef enum Entry { ENTRY_FORWARD, ENTRY_ENCODE, ENTRY_DECODE } Entry;

typedef struct Build {
    Entry entry;
    Dim past, total, source; /* ENTRY_DECODE: rows of the state before and after; of the source */
    Arena *arena;
    const Model *model;
    Module *module;
    Graph *graph;
    Place place;
    const char *where; /* "encoder layer 3 attention" */
    const char *stem;  /* of the names of values: "encoder.layers.3.attention." */
    int *of_weight;    /* [weights of the table]: 1 + its tensor in the graph, or 0; NULL before the first */
    bool of_source; /* the stack at hand reads the source of another */
} Build;

/* ---------------------------------------------------------------- tensors */

static Dim constant(int64_t n) { return (Dim){0, n}; }

static Dim symbol_dim(Build *b, const char *name, int64_t least, int64_t bound) {
    Graph *g = b->graph;
    g->symbols[g->n_symbols++] = (Symbol){name, least, bound};
    return (Dim){g->n_symbols, bound};
}

/* A length of the spec: a constant when exact, otherwise a new symbol of the graph. */
static Dim length_dim(Build *b, const char *name, Length length) {
    return length.exact ? constant(length.n) : symbol_dim(b, name, 1, length.n);
}

static Tensor value2(Build *b, const char *what, Dim rows, int64_t columns) {
    return (Tensor){.name = arena_printf(b->arena, "%s%s", b->stem, what),
                    .dtype = DTYPE_F32,
                    .rank = 2,
                    .dims = {rows, constant(columns)}};
}

static Tensor value3(Build *b, const char *what, int64_t heads, Dim n, Dim m) {
    return (Tensor){.name = arena_printf(b->arena, "%s%s", b->stem, what),
                    .dtype = DTYPE_F32,
                    .rank = 3,
                    .dims = {constant(heads), n, m}};
}

static int weight_named(Build *b, const char *name) {
    const WeightSpec *spec = weight_spec_find(&b->module->weights, name);
    if (!spec) bug("the builder asks for the weight `%s`, which the table does not have", name);
    int index = (int)(spec - b->module->weights.specs);
    if (!b->of_weight) b->of_weight = arena_array(b->arena, b->module->weights.count, sizeof *b->of_weight);
    if (b->of_weight[index]) return b->of_weight[index] - 1;
    Tensor tensor = {.kind = TENSOR_WEIGHT,
                     .name = spec->name,
                     .dtype = DTYPE_F32,
                     .rank = spec->shape.rank,
                     .weight = index,
                     .place = spec->place};
    for (int d = 0; d < spec->shape.rank; d++) tensor.dims[d] = constant(spec->shape.dims[d]);
    int t = graph_tensor(b->arena, b->graph, tensor);
    b->of_weight[index] = t + 1;
    return t;
}

/* The weight STEM + WHAT + ".weight" of a linear or norm. `stem` ends in a dot or is empty. */
static int weight(Build *b, const char *stem, const char *what) {
    return weight_named(b, arena_printf(b->arena, "%s%s", stem, what));
}

static int derived(Build *b, Derived wanted) {
    Module *m = b->module;
    int index = 0;
    while (index < m->n_derived && strcmp(m->derived[index].name, wanted.name) != 0) index++;
    if (index == m->n_derived) {
        Derived *grown = arena_array(b->arena, (size_t)m->n_derived + 1, sizeof *grown);
        if (m->n_derived) memcpy(grown, m->derived, (size_t)m->n_derived * sizeof *grown);
        grown[m->n_derived++] = wanted;
        m->derived = grown;
    }
    for (int t = 0; t < b->graph->n_tensors; t++)
        if (b->graph->tensors[t].kind == TENSOR_DERIVED && b->graph->tensors[t].weight == index) return t;
    Tensor tensor = {.kind = TENSOR_DERIVED,
                     .name = wanted.name,
                     .dtype = DTYPE_F32,
                     .rank = wanted.shape.rank,
                     .weight = index,
                     .place = b->place};
    for (int d = 0; d < wanted.shape.rank; d++) tensor.dims[d] = constant(wanted.shape.dims[d]);
    return graph_tensor(b->arena, b->graph, tensor);
}

static const Tensor *tensor_at(const Build *b, int t) { return &b->graph->tensors[t]; }
static Dim rows_of(const Build *b, int t) { return tensor_at(b, t)->dims[0]; }
static int64_t columns_of(const Build *b, int t) { return tensor_at(b, t)->dims[1].n; }

static int input(Build *b, const char *name, Dtype dtype, int rank, const Dim *dims, bool optional) {
    Tensor tensor = {.kind = TENSOR_INPUT, .name = name, .dtype = dtype, .rank = rank, .place = b->place};
    for (int d = 0; d < rank; d++) tensor.dims[d] = dims[d];
    int t = graph_tensor(b->arena, b->graph, tensor);
    b->graph->inputs[b->graph->n_inputs++] = (GraphInput){.name = name, .tensor = t, .optional = optional};
    return t;
}

/* The input just made belongs to the source of an encoder with a decoder, or to the keys of attention alone. */
static void mark_source(Build *b) { b->graph->inputs[b->graph->n_inputs - 1].of_source = true; }

static int input_named(Build *b, const char *name) {
    for (int i = 0; i < b->graph->n_inputs; i++)
        if (strcmp(b->graph->inputs[i].name, name) == 0) return b->graph->inputs[i].tensor;
    return NO_TENSOR;
}

/* ---------------------------------------------------------------- ops */

static int emit_op(Build *b, OpKind kind, OpAttributes a, Tensor result, int n, const int *inputs) {
    Op op = {.kind = kind, .n_inputs = n, .a = a, .place = b->place, .where = b->where};
    for (int i = 0; i < n; i++) op.inputs[i] = inputs[i];
    return graph_op(b->arena, b->graph, op, result);
}

#define EMIT(kind, result, attributes, ...) \
    emit_op(b, OP_##kind, (OpAttributes)attributes, result, (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), \
            (int[]){__VA_ARGS__})
#define ATTRIBUTES(...) {__VA_ARGS__}

/* A value of the shape of x. */
static Tensor like(Build *b, const char *what, int x) { return value2(b, what, rows_of(b, x), columns_of(b, x)); }

static int linear(Build *b, const char *stem, const char *what, int x, bool bias) {
    int w = weight(b, stem, arena_printf(b->arena, "%s.weight", what));
    Tensor result = value2(b, what, rows_of(b, x), tensor_at(b, w)->dims[0].n);
    if (!bias) return EMIT(linear, result, ATTRIBUTES(.scale = 1), x, w);
    return EMIT(linear, result, ATTRIBUTES(.scale = 1), x, w, weight(b, stem, arena_printf(b->arena, "%s.bias", what)));
}

/* `groups`: columns are normalized in that many equal parts. */
static int norm(Build *b, const char *stem, const char *what, int x, Norm n, int64_t groups) {
    if (n.kind == NORM_NONE) return x;
    int w = weight(b, stem, arena_printf(b->arena, "%s.weight", what));
    Tensor result = like(b, what, x);
    OpAttributes a = {.eps = n.eps, .plus_one = n.plus_one, .groups = groups};
    if (n.kind == NORM_RMSNORM) return emit_op(b, OP_rmsnorm, a, result, 2, (int[]){x, w});
    if (!n.bias) return emit_op(b, OP_layernorm, a, result, 2, (int[]){x, w});
    return emit_op(b, OP_layernorm, a, result, 3,
                   (int[]){x, w, weight(b, stem, arena_printf(b->arena, "%s.bias", what))});
}

/* ---------------------------------------------------------------- attention */

/* A name for the rotation that differs wherever a number of it does: layers with the same one share a table. */
static const char *rotation_name(Build *b, const Position *p, int64_t bound) {
    Text numbers = text_new(b->arena);
    text_printf(&numbers, "%.17g %.17g %.17g %.17g %.17g %.17g %d %lld", p->factor, p->low, p->high, p->beta_fast,
                p->beta_slow, p->attention_factor, p->untruncated, (long long)p->original);
    for (int64_t i = 0; p->scaling == ROPE_LONGROPE && i < p->rope_width / 2; i++)
        text_printf(&numbers, " %.17g %.17g", p->short_factors[i], p->long_factors[i]);
    const char *name = arena_printf(b->arena, "%lld.%.17g.%lld", (long long)p->rope_width, p->theta, (long long)bound);
    if (p->scaling == ROPE_PLAIN) return name;
    return arena_printf(b->arena, "%s.%d.%016llx", name, (int)p->scaling,
                        (unsigned long long)hash_bytes(0, numbers.data, numbers.size));
}

/* Longrope has a table for sequences up to `original` rows and one for longer ones. Where the length is known
 * only at the call, both stand one behind the other; the second begins at this row. 0: there is one table. */
static int64_t second_table(const Build *b, const Position *p, Dim rows, int64_t bound) {
    bool exact = !rows.symbol || (b->entry == ENTRY_DECODE && b->model->decoder->seq.exact);
    return p->scaling == ROPE_LONGROPE && !exact && p->original < bound ? p->original : 0;
}

/* `past`: the symbol of the rows before those of x. */
static int rope(Build *b, const char *what, int x, const Attention *a, int64_t heads, int64_t bound, int past) {
    const Position *p = &a->position;
    int64_t first = second_table(b, p, rows_of(b, x), bound);
    Shape shape = {2, {first + bound, p->rope_width / 2}};
    const char *key = rotation_name(b, p, bound);
    if (first) key = arena_printf(b->arena, "%s.both", key);
    int c = derived(b, (Derived){.kind = DERIVED_ROPE_COS,
                                 .name = arena_printf(b->arena, "rope.cos.%s", key),
                                 .shape = shape,
                                 .position = p,
                                 .rows = bound});
    int s = derived(b, (Derived){.kind = DERIVED_ROPE_SIN,
                                 .name = arena_printf(b->arena, "rope.sin.%s", key),
                                 .shape = shape,
                                 .position = p,
                                 .rows = bound});
    return EMIT(rope, like(b, what, x),
                ATTRIBUTES(.heads = heads, .head_dim = a->head_dim, .width = p->rope_width,
                           .interleaved = p->rope_interleaved, .offset = first, .past = past),
                x, c, s);
}

static int position_scores(Build *b, const char *stem, const Stack *stack, const Attention *a, int scores,
                           int64_t bound) {
    const Position *p = &a->position;
    Tensor result = *tensor_at(b, scores);
    if (p->kind == POSITION_ALIBI) {
        result.name = arena_printf(b->arena, "%salibi", b->stem);
        double scale = p->alibi_scaled ? a->scale : 1;
        const char *name =
            arena_printf(b->arena, "alibi.slopes.%lld.%.17g.%.17g", (long long)a->heads, p->alibi_max, scale);
        int slopes = derived(b, (Derived){.kind = DERIVED_SLOPES,
                                          .name = name,
                                          .shape = {1, {a->heads}},
                                          .position = p,
                                          .heads = a->heads,
                                          .alibi_scale = scale});
        return EMIT(alibi, result, ATTRIBUTES(.heads = a->heads, .past = b->past.symbol), scores, slopes);
    }
    if (p->kind != POSITION_RELATIVE) return scores;
    const char *table = p->per_layer || !stack ? arena_printf(b->arena, "%srelative.weight", stem)
                                     : arena_printf(b->arena, "%s.relative.weight", stack->name);
    const WeightSpec *spec = weight_spec_find(&b->module->weights, table);
    if (!spec) bug("no table `%s`", table);
    result.name = arena_printf(b->arena, "%sbiased", b->stem);
    const char *name = arena_printf(b->arena, "%s.%s", table, p->bidirectional ? "by_distance" : "by_distance_back");
    int bias = derived(b, (Derived){.kind = DERIVED_RELATIVE,
                                    .name = name,
                                    .shape = {2, {a->heads, 2 * bound - 1}},
                                    .position = p,
                                    .rows = bound,
                                    .heads = a->heads,
                                    .source = (int)(spec - b->module->weights.specs)});
    return EMIT(relative_bias, result,
                ATTRIBUTES(.heads = a->heads, .offset = bound - 1, .past = b->past.symbol), scores, bias);
}

static int attention_scores(Build *b, const char *stem, const Attention *a, int query, int key) {
    Dim n = rows_of(b, query), m = rows_of(b, key);
    Tensor result = value3(b, "scores", a->heads, n, m);
    if (a->score == SCORE_ADDITIVE)
        return EMIT(additive_scores, result, ATTRIBUTES(.scale = a->scale), query, key,
                    weight(b, stem, "score.vector.weight"));
    return EMIT(scores, result,
                ATTRIBUTES(.scale = a->scale, .heads = a->heads, .kv_heads = a->kv_heads, .head_dim = a->head_dim),
                query, key);
}

/* One number a sequence, of rows of the decoder, where there is one, or of keys. */
static int prefix_length(Build *b) {
    const Model *m = b->module->model;
    Dim one = constant(1);
    int prefix = input(b, "prefix_length", DTYPE_I64, 1, &one, false);
    b->graph->inputs[b->graph->n_inputs - 1].most = m->alone ? m->keys.n : (m->decoder ? m->decoder : m->encoder)->seq.n;
    return prefix;
}

static int softmax(Build *b, const char *stem, const Attention *a, int scores) {
    Tensor result = *tensor_at(b, scores);
    result.name = arena_printf(b->arena, "%sweights", b->stem);
    int inputs[MAX_OP_INPUTS] = {scores}, n = 1;
    OpAttributes at = {.heads = a->heads, .causal = a->mask_causal, .window = a->window, .sink = a->sink};
    if (!a->cross) at.past = b->past.symbol;
    if (a->mask_given) {
        Dim dims[] = {result.dims[1], result.dims[2]};
        int mask = input_named(b, "mask");
        inputs[n++] = mask != NO_TENSOR ? mask : input(b, "mask", DTYPE_U8, 2, dims, false);
        if (mask == NO_TENSOR && b->of_source) mark_source(b);
        at.has_mask = true;
    }
    if (a->mask_prefix) {
        int prefix = input_named(b, "prefix_length");
        inputs[n++] = prefix != NO_TENSOR ? prefix : prefix_length(b);
        at.has_prefix = true;
    }
    if (a->sink_learned) {
        inputs[n++] = weight(b, stem, "sink.weight");
        at.has_sink = true;
    }
    return emit_op(b, OP_softmax, at, result, n, inputs);
}

/* What scores and mix read: projected, normalized, turned. NO_TENSOR: not made here. */
typedef struct Heads {
    int query, key, value;
} Heads;

static Heads project(Build *b, const char *stem, const Attention *a, Heads rows) {
    Heads h = rows;
    if (a->projected) {
        if (h.query != NO_TENSOR) h.query = linear(b, stem, "query", h.query, a->bias_q);
        if (h.key != NO_TENSOR) h.key = linear(b, stem, "key", h.key, a->bias_k);
        if (h.value != NO_TENSOR) h.value = linear(b, stem, "value", h.value, a->bias_v);
    }
    if (h.query != NO_TENSOR)
        h.query = norm(b, stem, "query_norm", h.query, a->qk_norm, a->qk_norm_all_heads ? 1 : a->heads);
    if (h.key != NO_TENSOR)
        h.key = norm(b, stem, "key_norm", h.key, a->qk_norm, a->qk_norm_all_heads ? 1 : a->kv_heads);
    if (a->score == SCORE_ADDITIVE && h.query != NO_TENSOR) h.query = linear(b, stem, "score.query", h.query, false);
    if (a->score == SCORE_ADDITIVE && h.key != NO_TENSOR) h.key = linear(b, stem, "score.key", h.key, false);
    if (a->score == SCORE_GENERAL && h.key != NO_TENSOR) h.key = linear(b, stem, "score", h.key, false);
    return h;
}

static int state_tensor(Build *b, const char *what, Dim rows, int64_t columns) {
    Tensor tensor = value2(b, what, rows, columns);
    tensor.kind = TENSOR_STATE;
    tensor.place = b->place;
    return graph_tensor(b->arena, b->graph, tensor);
}

/* The rows of the state, then x: what this call's queries may see. */
static int append(Build *b, const char *what, int x) {
    const char *name = arena_printf(b->arena, "%s%s", b->stem, what);
    int64_t columns = columns_of(b, x);
    int in = state_tensor(b, arena_printf(b->arena, "%s_before", what), b->past, columns);
    int out = EMIT(append, value2(b, what, b->total, columns), ATTRIBUTES(.past = b->past.symbol), in, x);
    graph_state(b->arena, b->graph, (GraphState){name, in, out, false});
    return out;
}

/* What encode left of the source. */
static int from_source(Build *b, const char *what, int64_t columns) {
    int in = state_tensor(b, what, b->source, columns);
    graph_state(b->arena, b->graph, (GraphState){tensor_at(b, in)->name, in, NO_TENSOR, true});
    return in;
}

static int64_t key_columns(const Attention *a) {
    if (a->score == SCORE_ADDITIVE) return a->d_score;
    return a->score == SCORE_GENERAL ? a->query_width : a->kv_heads * a->head_dim;
}

/* Positions by rotation, and the caches, in which keys stand as they were turned. */
static Heads place_heads(Build *b, const Attention *a, Heads h, int64_t bound) {
    bool cached = b->entry == ENTRY_DECODE && !a->cross, turned = a->position.kind == POSITION_ROPE;
    int past = b->past.symbol;
    if (turned) h.query = rope(b, "query_rope", h.query, a, a->heads, bound, past);
    if (turned) h.key = rope(b, "key_rope", h.key, a, a->kv_heads, bound, past);
    if (!cached) return h;
    h.key = append(b, "keys", h.key);
    h.value = append(b, "values", h.value);
    return h;
}

static void export_map(Build *b, const Stack *stack, const Attention *a, int weights, int layer) {
    bool of_encoder = b->model->encoder && b->model->decoder && stack && !stack->is_decoder;
    const char *name = a->cross && stack ? "cross_attention" : of_encoder ? "encoder_attention" : "attention";
    graph_output(b->arena, b->graph, (GraphOutput){name, weights, layer, a->exported_heads, a->n_exported_heads});
}

/* `stem` is of the weights' names; `stack` is NULL for attention alone. */
static int attention(Build *b, const char *stem, const Stack *stack, const Attention *a, Heads rows, int64_t bound,
                     int layer) {
    bool kept = b->entry == ENTRY_DECODE && a->cross;
    if (kept) rows.key = rows.value = NO_TENSOR;
    Heads h = project(b, stem, a, rows);
    if (kept) {
        h.key = from_source(b, "keys", key_columns(a));
        h.value = from_source(b, "values", a->projected ? a->kv_heads * a->value_dim : a->value_width);
    } else {
        h = place_heads(b, a, h, bound);
    }
    int query = h.query, key = h.key, value = h.value;
    int scores = attention_scores(b, stem, a, query, key);
    scores = position_scores(b, stem, stack, a, scores, bound);
    if (a->softcap > 0) {
        Tensor result = *tensor_at(b, scores);
        result.name = arena_printf(b->arena, "%scapped", b->stem);
        scores = EMIT(softcap, result, ATTRIBUTES(.cap = a->softcap), scores);
    }
    int weights = softmax(b, stem, a, scores);
    if (a->exported) export_map(b, stack, a, weights, layer);
    Tensor mixed = value2(b, "mixed", rows_of(b, query), a->heads * a->value_dim);
    int x = EMIT(mix, mixed, ATTRIBUTES(.heads = a->heads, .kv_heads = a->kv_heads, .head_dim = a->value_dim), weights,
                 value);
    return a->has_output ? linear(b, stem, "output", x, a->bias_o) : x;
}

/* ---------------------------------------------------------------- sublayers and stacks */

static int ffn(Build *b, const char *stem, const Ffn *f, int x) {
    int up = linear(b, stem, "up", x, f->bias_up);
    if (f->gated) {
        int gate = linear(b, stem, "gate", x, f->bias_gate);
        gate = EMIT(activation, like(b, "activated", gate), ATTRIBUTES(.activation = f->activation), gate);
        up = EMIT(mul, like(b, "gated", up), ATTRIBUTES(.scale = 1), gate, up);
    } else {
        up = EMIT(activation, like(b, "activated", up), ATTRIBUTES(.activation = f->activation), up);
    }
    return linear(b, stem, "down", up, f->bias_down);
}

typedef struct StackRows {
    const Stack *stack;
    int64_t bound;
    int encoder_rows; /* what cross attention reads, or NO_TENSOR */
} StackRows;

/* f(x) with the norm on its output, where that is not over the sum; `normed` is what f reads. */
static int sublayer_body(Build *b, const StackRows *rows, const char *stem, const Sublayer *s, int normed, int layer) {
    int y;
    if (s->kind == SUBLAYER_FFN) {
        y = ffn(b, stem, &s->ffn, normed);
    } else {
        int keys = s->attention.cross ? rows->encoder_rows : normed;
        y = attention(b, stem, rows->stack, &s->attention, (Heads){normed, keys, keys}, rows->bound, layer);
    }
    return s->norm_out_on_sum ? y : norm(b, stem, "norm_out", y, s->norm_out, 1);
}

static int sublayer_sum(Build *b, const char *what, const Sublayer *s, int x, int y) {
    if (!s->residual) return y;
    return EMIT(add, like(b, what, x), ATTRIBUTES(.scale = s->residual_scale), x, y);
}

static void enter_sublayer(Build *b, const StackRows *rows, int64_t layer, const Sublayer *s) {
    b->place = s->place;
    b->stem = arena_printf(b->arena, "%s.layers.%lld.%s.", rows->stack->name, (long long)layer, s->name);
    b->where = arena_printf(b->arena, "%s layer %lld %s", rows->stack->name, (long long)layer, s->name);
}

static int build_layer(Build *b, const StackRows *rows, int64_t index, int x) {
    const Stack *stack = rows->stack;
    const Layer *layer = &stack->layers[index];
    int normed = NO_TENSOR, sum = x;
    for (int i = 0; i < layer->count; i++) {
        const Sublayer *s = &layer->sublayers[i];
        const char *stem = layer_weight_name(b->arena, stack, layer, s, "");
        enter_sublayer(b, rows, index, s);
        if (!(layer->shared_norm && i > 0)) normed = norm(b, stem, "norm_in", x, s->norm_in, 1);
        int y = sublayer_body(b, rows, stem, s, normed, (int)index);
        if (layer->parallel) {
            sum = sublayer_sum(b, "sum", s, sum, y);
            continue;
        }
        x = sublayer_sum(b, "sum", s, x, y);
        if (s->norm_out_on_sum) x = norm(b, stem, "norm_out", x, s->norm_out, 1);
        sum = x;
    }
    return sum;
}

static int embed_tokens(Build *b, const Stack *stack, int ids, Dim rows) {
    int x = EMIT(embed, value2(b, "looked_up", rows, stack->embedding_width), ATTRIBUTES(.scale = 1), ids,
                 weight_named(b, token_table_name(b->arena, b->model, stack)));
    if (stack->embedding_scale != 1)
        x = EMIT(scale, like(b, "scaled", x), ATTRIBUTES(.scale = stack->embedding_scale), x);
    return x;
}

static int embed_patches(Build *b, const Stack *stack, const char *stem) {
    Dim image[] = {constant(3), constant(stack->image_height), constant(stack->image_width)};
    int pixels = input(b, "pixels", DTYPE_F32, 3, image, false);
    int64_t n = (stack->image_height / stack->patch) * (stack->image_width / stack->patch);
    int x = EMIT(patches, value2(b, "squares", constant(n), 3 * stack->patch * stack->patch),
                 ATTRIBUTES(.patch = stack->patch), pixels);
    x = linear(b, stem, "patches", x, true);
    if (!stack->class_token) return x;
    Tensor longer = value2(b, "rows", constant(stack->seq.n), columns_of(b, x));
    int class_token = weight(b, stem, "class_token");
    if (!stack->distillation_token) return EMIT(prepend, longer, ATTRIBUTES(.scale = 1), class_token, x);
    return EMIT(prepend, longer, ATTRIBUTES(.scale = 1), class_token, weight(b, stem, "distillation_token"), x);
}

static int add_positions(Build *b, const Stack *stack, const char *stem, int x) {
    const Position *p = &stack->position;
    int table;
    if (p->kind == POSITION_LEARNED) {
        table = weight(b, stem, "positions.weight");
    } else if (p->kind == POSITION_SINUSOIDAL) {
        table = derived(b, (Derived){.kind = DERIVED_SINUSOIDS,
                                     .name = arena_printf(b->arena, "%ssinusoids", stem),
                                     .shape = {2, {stack->seq.n, stack->embedding_width}},
                                     .position = p,
                                     .rows = stack->seq.n});
    } else {
        return x;
    }
    int rows = EMIT(take_rows, like(b, "positions", x),
                    ATTRIBUTES(.offset = p->kind == POSITION_LEARNED ? p->offset : 0, .past = b->past.symbol), table);
    return EMIT(add, like(b, "with_positions", x), ATTRIBUTES(.scale = 1), x, rows);
}

/* The embedding of a stack: what the first layer reads. */
static int build_embedding(Build *b, const Stack *stack, Dim rows, const char *ids_name) {
    const char *stem = arena_printf(b->arena, "%s.embedding.", stack->name);
    b->place = stack->place;
    b->stem = stem;
    b->where = arena_printf(b->arena, "%s embedding", stack->name);
    const bool of_source = b->of_source = !stack->is_decoder && b->model->decoder && b->entry == ENTRY_FORWARD;
    int x;
    if (stack->input == INPUT_TOKENS) {
        int ids = input(b, ids_name, DTYPE_I64, 1, &rows, false);
        if (of_source) mark_source(b);
        x = embed_tokens(b, stack, ids, rows);
    } else if (stack->input == INPUT_FEATURES) {
        Dim dims[] = {rows, constant(b->model->d_model)};
        x = input(b, "features", DTYPE_F32, 2, dims, false);
        if (of_source) mark_source(b);
        if (stack->embedding_scale != 1)
            x = EMIT(scale, like(b, "scaled", x), ATTRIBUTES(.scale = stack->embedding_scale), x);
    } else {
        x = embed_patches(b, stack, stem);
        if (of_source) mark_source(b);
    }
    if (stack->segments) {
        int ids = input(b, "segments", DTYPE_I64, 1, &rows, true);
        if (of_source) mark_source(b);
        int s = EMIT(embed, like(b, "segments", x), ATTRIBUTES(.scale = 1), ids, weight(b, stem, "segments.weight"));
        x = EMIT(add, like(b, "with_segments", x), ATTRIBUTES(.scale = 1), x, s);
    }
    x = add_positions(b, stack, stem, x);
    x = norm(b, stem, "norm", x, stack->embedding_norm, 1);
    return stack->embedding_projected ? linear(b, stem, "projection", x, stack->embedding_projection_bias) : x;
}

static int build_stack(Build *b, const Stack *stack, Dim rows, const char *ids_name, int encoder_rows) {
    int x = build_embedding(b, stack, rows, ids_name);
    StackRows stack_rows = {stack, stack->seq.n, encoder_rows};
    for (int64_t l = 0; l < stack->n_layers; l++) x = build_layer(b, &stack_rows, l, x);
    b->place = stack->place;
    b->stem = arena_printf(b->arena, "%s.", stack->name);
    b->where = arena_printf(b->arena, "%s end", stack->name);
    return norm(b, b->stem, "final_norm", x, stack->final_norm, 1);
}

static int head_logits(Build *b, const Stack *stack, int hidden) {
    const Head *head = &b->model->head;
    int w = weight_named(b, head->tied ? token_table_name(b->arena, b->model, stack) : "head.weight");
    Tensor result = value2(b, "logits", rows_of(b, hidden), stack->vocab);
    int x = head->bias ? EMIT(linear, result, ATTRIBUTES(.scale = 1), hidden, w, weight_named(b, "head.bias"))
                       : EMIT(linear, result, ATTRIBUTES(.scale = 1), hidden, w);
    if (head->scale != 1) x = EMIT(scale, like(b, "logits_scaled", x), ATTRIBUTES(.scale = head->scale), x);
    return head->softcap > 0 ? EMIT(softcap, like(b, "logits_capped", x), ATTRIBUTES(.cap = head->softcap), x) : x;
}

static int pooled_row(Build *b, const Stack *stack, PoolKind kind, int hidden) {
    return EMIT(pool, value2(b, "pool", constant(1), stack->hidden_width), ATTRIBUTES(.pool = kind), hidden);
}

static void enter_head(Build *b) {
    b->place = b->model->head.place;
    b->stem = "";
    b->where = "head";
}

static void build_head(Build *b, const Stack *stack, int hidden) {
    const Head *head = &b->model->head;
    if (!stack) bug("a head without a stack");
    enter_head(b);
    graph_output(b->arena, b->graph, (GraphOutput){"hidden", hidden, -1, NULL, 0});
    if (head->logits)
        graph_output(b->arena, b->graph, (GraphOutput){"logits", head_logits(b, stack, hidden), -1, NULL, 0});
    if (!head->pool && !head->pooler && !head->classifier) return;
    int x = pooled_row(b, stack, head->pool ? head->pool : POOL_CLS, hidden);
    if (head->l2) x = EMIT(l2, like(b, "pool_l2", x), ATTRIBUTES(.scale = 1), x);
    if (head->pooler) {
        x = linear(b, "", "pooler", x, true);
        x = EMIT(activation, like(b, "pooler_tanh", x), ATTRIBUTES(.activation = ACTIVATION_TANH), x);
    }
    graph_output(b->arena, b->graph, (GraphOutput){"pooled", x, -1, NULL, 0});
    if (head->classifier)
        graph_output(b->arena, b->graph,
            (GraphOutput){"logits", linear(b, "", "classifier", x, head->classifier_bias), -1, NULL, 0});
}

static void build_alone(Build *b) {
    const Model *model = b->model;
    const Attention *a = &model->alone->attention;
    b->place = model->alone->place;
    b->where = "attention";
    b->stem = "attention.";
    Dim n = length_dim(b, "queries", model->queries), m = a->cross ? length_dim(b, "keys", model->keys) : n;
    Dim query_dims[] = {n, constant(a->query_width)}, key_dims[] = {m, constant(a->key_width)},
        value_dims[] = {m, constant(a->value_width)};
    int query = input(b, "query", DTYPE_F32, 2, query_dims, false), key = query, value = query;
    if (a->cross) {
        key = input(b, "key", DTYPE_F32, 2, key_dims, false);
        mark_source(b);
        value = input(b, "value", DTYPE_F32, 2, value_dims, a->value_width == a->key_width); /* absent: the keys */
        mark_source(b);
    }
    int x = attention(b, "attention.", NULL, a, (Heads){query, key, value},
                      model->queries.n > model->keys.n ? model->queries.n : model->keys.n, 0);
    graph_output(b->arena, b->graph, (GraphOutput){"context", x, -1, NULL, 0});
}

/* ---------------------------------------------------------------- the ways into a model */

static Build begin(Arena *arena, Module *module, Entry entry, const char *name) {
    Graph *graph = arena_alloc(arena, sizeof *graph);
    graph->name = name;
    return (Build){.entry = entry,
                   .arena = arena,
                   .model = module->model,
                   .module = module,
                   .graph = graph,
                   .place = module->model->place,
                   .where = "",
                   .stem = ""};
}

static Graph *build_forward(Arena *arena, Module *module) {
    Build b = begin(arena, module, ENTRY_FORWARD, "forward");
    const Model *model = module->model;
    bool both = model->encoder && model->decoder;
    if (model->alone) {
        build_alone(&b);
        return b.graph;
    }
    int encoder = NO_TENSOR, hidden = NO_TENSOR;
    if (model->encoder) {
        Dim rows = length_dim(&b, both ? "src" : "rows", model->encoder->seq);
        encoder = hidden = build_stack(&b, model->encoder, rows, both ? "source" : "tokens", NO_TENSOR);
    }
    if (both) graph_output(arena, b.graph, (GraphOutput){"encoder_hidden", encoder, -1, NULL, 0});
    if (model->decoder) {
        Dim rows = length_dim(&b, both ? "tgt" : "rows", model->decoder->seq);
        hidden = build_stack(&b, model->decoder, rows, both ? "target" : "tokens", encoder);
    }
    build_head(&b, model->decoder ? model->decoder : model->encoder, hidden);
    return b.graph;
}

/* The source's rows, and of each cross attention the keys and values over them. */
static Graph *build_encode(Arena *arena, Module *module) {
    Build b = begin(arena, module, ENTRY_ENCODE, "encode");
    const Stack *encoder = module->model->encoder, *decoder = module->model->decoder;
    int rows = build_stack(&b, encoder, length_dim(&b, "src", encoder->seq), "source", NO_TENSOR);
    graph_output(arena, b.graph, (GraphOutput){"encoder_hidden", rows, -1, NULL, 0});
    StackRows stack_rows = {decoder, decoder->seq.n, rows};
    for (int64_t l = 0; l < decoder->n_layers; l++)
        for (int i = 0; i < decoder->layers[l].count; i++) {
            const Sublayer *s = &decoder->layers[l].sublayers[i];
            if (s->kind != SUBLAYER_ATTENTION || !s->attention.cross) continue;
            enter_sublayer(&b, &stack_rows, l, s);
            const char *stem = layer_weight_name(arena, decoder, &decoder->layers[l], s, "");
            Heads h = project(&b, stem, &s->attention, (Heads){NO_TENSOR, rows, rows});
            const char *keys = arena_printf(arena, "%skeys", b.stem), *values = arena_printf(arena, "%svalues", b.stem);
            graph_state(arena, b.graph, (GraphState){keys, NO_TENSOR, h.key, true});
            graph_state(arena, b.graph, (GraphState){values, NO_TENSOR, h.value, true});
        }
    return b.graph;
}

/* Rows behind those of a state. Logits are of the last one alone: it is what generation reads. */
static Graph *build_decode(Arena *arena, Module *module) {
    Build b = begin(arena, module, ENTRY_DECODE, "decode");
    const Model *model = module->model;
    const Stack *decoder = model->decoder;
    Dim rows = symbol_dim(&b, "rows", 1, decoder->seq.n);
    b.past = symbol_dim(&b, "past", 0, decoder->seq.n);
    b.total = symbol_dim(&b, "total", 1, decoder->seq.n);
    if (model->encoder) b.source = length_dim(&b, "src", model->encoder->seq);
    int hidden = build_stack(&b, decoder, rows, "tokens", NO_TENSOR);
    enter_head(&b);
    graph_output(arena, b.graph, (GraphOutput){"hidden", hidden, -1, NULL, 0});
    if (model->head.logits) {
        int logits = head_logits(&b, decoder, pooled_row(&b, decoder, POOL_LAST, hidden));
        graph_output(arena, b.graph, (GraphOutput){"logits", logits, -1, NULL, 0});
    }
    return b.graph;
}

/* Why a decoder cannot go on from a state; NULL: it can. */
static const char *no_decode(const Model *model) {
    if (model->unroll_full) return "`unroll full` leaves no room for a state";
    const Stack *decoder = model->decoder;
    for (int64_t l = 0; l < decoder->n_layers; l++)
        for (int i = 0; i < decoder->layers[l].count; i++) {
            const Sublayer *s = &decoder->layers[l].sublayers[i];
            if (s->kind == SUBLAYER_ATTENTION && s->attention.mask_given)
                return "`mask given` is over whole sequences";
        }
    return decoder->input == INPUT_PATCHES ? "an image is one whole sequence" : NULL;
}

Module *build(Arena *arena, const Model *model) {
    Module *module = arena_alloc(arena, sizeof *module);
    *module = (Module){.model = model, .weights = weights_table(arena, model)};
    module->forward = build_forward(arena, module);
    if (model->decoder) module->no_decode = no_decode(model);
    if (model->decoder && !module->no_decode) {
        module->decode = build_decode(arena, module);
        if (model->encoder) module->encode = build_encode(arena, module);
    }
    const Graph *const graphs[] = {module->forward, module->encode, module->decode};
    for (int i = 0; i < 3; i++)
        if (graphs[i]) verify(module, graphs[i], "build");
    return module;
}
