/* build.c: from a Model to a Module, with every layer as operations over SSA tensors.
 *
 * A graph is built for each entry of the emitted C. `forward` takes whole sequences; `encode` takes a source and leaves
 * the keys and values of cross attention; `decode` appends rows to a state. The graphs share layers and weights. They
 * differ in where keys and values come from, and in the number of rows before the first row of the call. */
#include "builder.h"

/* ---------------------------------------------------------------- sublayers and stacks */

typedef struct StackRows {
    const Stack *stack;
    int64_t bound;
    int read; /* the rows that cross attention reads, or NO_TENSOR */
} StackRows;

/* The sublayer f of `normed`, followed by its output norm unless that norm is over the sum x + f(x). */
static int sublayer_body(Build *b, const StackRows *rows, const Stem *stem, const Sublayer *s, int normed, int layer) {
    int y;
    if (s->kind == SUBLAYER_FFN) {
        y = build_ffn(b, stem, s, normed);
    } else {
        int keys = s->attention.cross ? rows->read : normed;
        const Stack *stack = layer < 0 ? NULL : rows->stack; /* a probe is in no layer */
        y = build_attention(b, stem, stack, &s->attention, (Heads){normed, keys, keys}, rows->bound, layer);
    }
    return s->norm_out_on_sum ? y : build_row_norm(b, stem, "norm_out", y, s->norm_out);
}

static int sublayer_sum(Build *b, const Stem *stem, const Sublayer *s, int x, int y) {
    if (!s->residual) return y;
    const WeightSpec spec = {.shape = build_vector(build_columns(b, y)), .mean = 1, .deviation = 0.2};
    const int factor = s->residual_learned ? build_declare(b, stem, "residual.weight", spec) : NO_WEIGHT;
    return EMIT(add, build_value_like(b, "sum", x), ATTRIBUTES(.scale = s->residual_scale), x, y,
                build_weight(b, factor));
}

/* The rows behind a sublayer of the rows x, with its norms and its residual. */
static int sublayer_behind(Build *b, const StackRows *rows, const Stem *stem, const Sublayer *s, int x, int layer) {
    const int normed = build_row_norm(b, stem, "norm_in", x, s->norm_in);
    const int sum = sublayer_sum(b, stem, s, x, sublayer_body(b, rows, stem, s, normed, layer));
    return s->norm_out_on_sum ? build_row_norm(b, stem, "norm_out", sum, s->norm_out) : sum;
}

static void enter(Build *b, const Sublayer *s, Stem stem, const char *where) {
    b->location = s->location;
    b->precision = &s->precision;
    b->last = &s->last;
    b->stem = stem;
    b->where = where;
}

static void enter_sublayer(Build *b, const StackRows *rows, int64_t layer, const Sublayer *s) {
    const char *where = arena_printf(b->arena, "%s layer %lld %s", rows->stack->name, (long long)layer, s->name);
    enter(b, s, build_sublayer_stem(b, rows->stack, layer, s), where);
}

static void enter_head(Build *b) {
    b->location = b->model->head.location;
    b->precision = &b->model->precision;
    b->stem = BUILD_NO_STEM;
    b->where = "head";
}

/* The learned row behind the sublayers of `probe`, which read `hidden`. */
static int probed_row(Build *b, const Stack *stack, const Layer *probe, int hidden) {
    const StackRows rows = {stack, stack->seq.n, hidden};
    const WeightSpec learned = {.shape = build_vector(stack->d_model), .deviation = 1};
    const int row = build_weight(b, build_declare(b, &BUILD_NO_STEM, "probe.row", learned));
    int x = EMIT(learned, build_value2(b, "probe", build_constant(1), stack->d_model), ATTRIBUTES(.scale = 1), row);
    b->probes = true;
    for (int i = 0; i < probe->count; i++) {
        const Sublayer *s = &probe->sublayers[i];
        const char *text = arena_printf(b->arena, "probe.%s.", s->name);
        const Stem stem = {text, NULL, -1, text};
        enter(b, s, stem, arena_printf(b->arena, "probe %s", s->name));
        x = sublayer_behind(b, &rows, &stem, s, x, -1);
    }
    b->probes = false;
    enter_head(b);
    return x;
}

static int build_layer(Build *b, const StackRows *rows, int64_t index, int x) {
    const Stack *stack = rows->stack;
    const Layer *layer = &stack->layers[index];
    int normed = NO_TENSOR, sum = x;
    for (int i = 0; i < layer->count; i++) {
        const Sublayer *s = &layer->sublayers[i];
        const Stem stem = build_sublayer_stem(b, stack, layer->weights_of, s);
        enter_sublayer(b, rows, index, s);
        if (!layer->parallel) {
            sum = sublayer_behind(b, rows, &stem, s, sum, (int)index);
            continue;
        }
        if (!(layer->shared_norm && i > 0)) normed = build_row_norm(b, &stem, "norm_in", x, s->norm_in);
        sum = sublayer_sum(b, &stem, s, sum, sublayer_body(b, rows, &stem, s, normed, (int)index));
    }
    return sum;
}

static int embed_tokens(Build *b, const Stack *stack, int ids, Dim rows) {
    int x = EMIT(embed, build_value2(b, "looked_up", rows, stack->embedding_width), ATTRIBUTES(.scale = 1), ids,
                 build_weight(b, build_declare_tokens(b, stack)));
    if (stack->embedding_mask >= 0) {
        const int kept = EMIT(keep, build_value2(b, "kept", rows, 1),
                              ATTRIBUTES(.token = stack->embedding_mask, .scale = stack->embedding_scale), ids);
        return EMIT(mul, build_value_like(b, "scaled", x), ATTRIBUTES(.scale = 1), x, kept);
    }
    if (stack->embedding_scale != 1)
        x = EMIT(scale, build_value_like(b, "scaled", x), ATTRIBUTES(.scale = stack->embedding_scale), x);
    return x;
}

static int embed_patches(Build *b, const Stack *stack, const Stem *stem) {
    const int64_t channels = stack->image_channels, n = patch_lines(stack) * patch_columns(stack);
    Dim image[] = {build_constant(channels), build_constant(stack->image_height), build_constant(stack->image_width)};
    int pixels = build_input(b, IN_pixels, 3, image, false);
    int x = EMIT(patches, build_value2(b, "squares", build_constant(n), channels * stack->patch * stack->patch),
                 ATTRIBUTES(.patch = stack->patch, .stride = stack->patch_step), pixels);
    x = build_new_linear(b, stem, "patches", ROLE_NONE, x, stack->d_model, stack->patch_bias);
    if (!stack->class_token) return x;
    Tensor longer = build_value2(b, "rows", build_constant(stack->seq.n), build_columns(b, x));
    const WeightSpec row = {.shape = build_vector(stack->embedding_width), .deviation = 1};
    int class_token = build_weight(b, build_declare(b, stem, "class_token", row));
    if (stack->registers) {
        const WeightSpec rows = {.shape = build_matrix(stack->registers, stack->embedding_width), .deviation = 1};
        const int registers = build_weight(b, build_declare(b, stem, "registers", rows));
        return EMIT(prepend, longer, ATTRIBUTES(.scale = 1), class_token, registers, x);
    }
    if (!stack->distillation_token) return EMIT(prepend, longer, ATTRIBUTES(.scale = 1), class_token, x);
    int distillation_token = build_weight(b, build_declare(b, stem, "distillation_token", row));
    return EMIT(prepend, longer, ATTRIBUTES(.scale = 1), class_token, distillation_token, x);
}

static int activated(Build *b, const char *what, Activation f, int x) {
    const char *name = arena_printf(b->arena, "%s_%s", what, activation_name(f));
    const PairRule *formula = activation_formula(b->model, f);
    return EMIT(activation, build_value_like(b, name, x), ATTRIBUTES(.activation = f, .formula = formula), x);
}

typedef struct ConvolutionNames {
    const char *result, *windows;
} ConvolutionNames;

/* A convolution is the product of the rows of its windows. With `by_column`, x is [c][rows]. */
static int convolved(Build *b, const Stem *stem, const Convolution *c, ConvolutionNames names, Dim rows, bool by_column,
                     int x) {
    const int64_t width = by_column ? build_rows(b, x).n : build_columns(b, x);
    x = EMIT(windows, build_value2(b, names.windows, rows, width * c->kernel),
             ATTRIBUTES(.kernel = c->kernel, .stride = c->stride, .by_column = by_column), x);
    if (c->groups > 1) x = build_group_linear(b, stem, names.result, &c->by_group, x, c->channels, c->bias);
    else x = build_new_linear(b, stem, names.result, ROLE_NONE, x, c->channels, c->bias);
    return activated(b, names.result, c->activation, x);
}

static int embed_mel(Build *b, const Stack *stack, const Stem *stem) {
    Dim dims[] = {build_constant(stack->mel_bins), build_constant(stack->mel_frames)};
    int x = build_input(b, IN_mel, 2, dims, false);
    for (int i = 0; i < stack->n_convolutions; i++) {
        const Convolution *c = &stack->convolutions[i];
        const char *name = arena_printf(b->arena, "convolutions.%d", i);
        const char *windows = arena_printf(b->arena, "windows.%d", i);
        b->location = c->location;
        x = convolved(b, stem, c, (ConvolutionNames){name, windows}, build_constant(c->rows), i == 0, x);
    }
    b->location = stack->location;
    return x;
}

/* A table whose rows are added to those of the tokens; a file may have it `longer`. */
static int declare_added(Build *b, const Stem *stem, const char *what, const Stack *stack, int64_t rows, bool longer) {
    const Shape shape = build_matrix(rows, stack->embedding_width);
    return build_declare(b, stem, what, (WeightSpec){.shape = shape, .deviation = 0.5, .longer = longer});
}

/* How many tokens there are up to each row, without those that are skipped. A state keeps the counts of its rows. */
static int tallied(Build *b, const Stack *stack, int ids, Dim rows) {
    const OpAttributes a = {.token = stack->position.skipped, .past = b->past.symbol};
    const Tensor counts = build_value2(b, "counts", rows, 1);
    if (b->entry != ENTRY_DECODE) return build_op(b, OP_tally, a, counts, 1, &ids);
    const int in = build_state(b, "counts_before", ROLE_NONE, b->past, 1);
    const int inputs[] = {ids, in}, x = build_op(b, OP_tally, a, counts, 2, inputs);
    build_append(b, "all_counts", ROLE_NONE, in, x);
    return x;
}

/* `learned` is the number of the table of `position learned`; positions that skip a token have `ids` and `counts`. */
static int add_positions(Build *b, const Stack *stack, const Stem *stem, int x, int learned, int ids, int counts) {
    const Position *p = &stack->position;
    const int64_t bound = p->n_at ? p->at_rows : stack->seq.n;
    int table;
    if (p->kind == POSITION_LEARNED && stack->registers) {
        table = build_derived(b, (Derived){.kind = DERIVED_SPREAD,
                                     .name = build_name(b, stem, "positions.spread"),
                                     .shape = {2, {stack->seq.n + p->offset, stack->embedding_width}},
                                     .rows = p->offset + 1,
                                     .gap = stack->registers,
                                     .source = learned});
    } else if (p->kind == POSITION_LEARNED) {
        table = build_weight(b, learned);
    } else if (p->kind == POSITION_SINUSOIDAL) {
        table = build_derived(b, (Derived){.kind = DERIVED_SINUSOIDS,
                                     .name = build_name(b, stem, "sinusoids"),
                                     .shape = {2, {bound + p->skips, stack->embedding_width}},
                                     .position = p,
                                     .rows = bound});
    } else {
        return x;
    }
    const int64_t offset = p->kind == POSITION_LEARNED ? p->offset : 0;
    const Tensor positions = build_value_like(b, "positions", x);
    const int at = p->n_at ? build_row_input(b, p->at[0], positions.dims[0]) : NO_TENSOR;
    const int rows = p->skips ? EMIT(pick_rows, positions,
                                     ATTRIBUTES(.offset = offset ? offset - 1 : 0, .token = p->skipped), table, ids,
                                     counts)
                              : EMIT(take_rows, positions, ATTRIBUTES(.offset = offset, .past = b->past.symbol), table,
                                     at);
    return EMIT(add, build_value_like(b, "with_positions", x), ATTRIBUTES(.scale = 1), x, rows);
}

/* Two stacks that both take rows have an input each. */
static InputRole features_role(const Model *m, const Stack *stack) {
    const bool both = m->encoder && m->decoder && m->encoder->input == m->decoder->input;
    return !both ? IN_features : stack->is_decoder ? IN_target_features : IN_source_features;
}

/* The rows that the first layer of a stack reads. */
static int build_embedding(Build *b, const Stack *stack, Dim rows, InputRole ids_role) {
    const Stem *stem = &b->stem;
    b->stem = build_stem(b, stack, "embedding.");
    b->location = stack->location;
    b->precision = &stack->precision;
    b->where = arena_printf(b->arena, "%s embedding", stack->name);
    const bool of_source = b->of_source = !stack->is_decoder && b->model->decoder && b->entry == ENTRY_FORWARD;
    int x, ids = NO_TENSOR, counts = NO_TENSOR;
    if (stack->input == INPUT_TOKENS) {
        ids = build_input(b, ids_role, 1, &rows, false);
        if (of_source) build_mark_source(b);
        if (stack->position.skips) counts = tallied(b, stack, ids, rows);
        x = embed_tokens(b, stack, ids, rows);
    } else if (stack->input == INPUT_FEATURES) {
        Dim dims[] = {rows, build_constant(stack->d_model)};
        x = build_input(b, features_role(b->model, stack), 2, dims, false);
        if (of_source) build_mark_source(b);
        if (stack->embedding_scale != 1)
            x = EMIT(scale, build_value_like(b, "scaled", x), ATTRIBUTES(.scale = stack->embedding_scale), x);
    } else {
        x = stack->input == INPUT_MEL ? embed_mel(b, stack, stem) : embed_patches(b, stack, stem);
        if (of_source) build_mark_source(b);
    }
    int learned = NO_WEIGHT; /* stands in front of the segments, whose rows are added first */
    if (stack->position.kind == POSITION_LEARNED)
        learned = declare_added(b, stem, "positions.weight", stack,
                                (stack->position.n_at ? stack->position.at_rows : stack->seq.n - stack->registers) +
                                    stack->position.offset, true);
    if (stack->segments) {
        int segments = build_input(b, IN_segments, 1, &rows, true);
        if (of_source) build_mark_source(b);
        int table = build_weight(b, declare_added(b, stem, "segments.weight", stack, stack->segments, false));
        int s = EMIT(embed, build_value_like(b, "segments", x), ATTRIBUTES(.scale = 1), segments, table);
        x = EMIT(add, build_value_like(b, "with_segments", x), ATTRIBUTES(.scale = 1), x, s);
    }
    if (stack->embedding_norm_first) x = build_row_norm(b, stem, "norm", x, stack->embedding_norm);
    x = add_positions(b, stack, stem, x, learned, ids, counts);
    if (!stack->embedding_norm_first) x = build_row_norm(b, stem, "norm", x, stack->embedding_norm);
    if (stack->embedding_projected)
        x = build_new_linear(b, stem, "projection", ROLE_NONE, x, stack->d_model, stack->embedding_projection_bias);
    if (stack->relative.kind == POSITION_RELATIVE) build_declare_relative(b, stack); /* stands in front of the layers */
    if (stack->content.kind == POSITION_CONTENT) build_declare_content(b, stack); /* likewise */
    return x;
}

/* The rows behind the first layer, `x`, with the convolution of those that it reads. */
static int build_beside(Build *b, const Stack *stack, int embedded, int x) {
    const Convolution *c = stack->beside;
    b->location = c->location;
    b->precision = &stack->precision;
    b->stem = build_stem(b, stack, "");
    b->where = arena_printf(b->arena, "%s convolution", stack->name);
    const ConvolutionNames names = {"convolution", "windows"};
    const int y = convolved(b, &b->stem, c, names, build_rows(b, embedded), false, embedded);
    x = EMIT(add, build_value_like(b, "convolution_sum", x), ATTRIBUTES(.scale = 1), x, y);
    return build_row_norm(b, &b->stem, "convolution_norm", x, stack->beside_norm);
}

static int build_stack(Build *b, const Stack *stack, Dim rows, InputRole ids_role, int encoder_rows) {
    const int embedded = build_embedding(b, stack, rows, ids_role);
    int x = embedded;
    StackRows stack_rows = {stack, stack->seq.n, encoder_rows};
    for (int64_t l = 0; l < stack->n_layers; l++) {
        x = build_layer(b, &stack_rows, l, x);
        if (l == 0 && stack->beside) x = build_beside(b, stack, embedded, x);
    }
    b->location = stack->location;
    b->stem = build_stem(b, stack, "");
    b->where = arena_printf(b->arena, "%s end", stack->name);
    return build_row_norm(b, &b->stem, "final_norm", x, stack->final_norm);
}

static LinearWeights declare_head(Build *b, const Stack *stack, int64_t in) {
    const Head *head = &b->model->head;
    LinearWeights w = {.bias = NO_WEIGHT};
    if (!head->tied) {
        w = build_declare_linear(b, &BUILD_NO_STEM, "head", stack->vocab, in, head->bias, 1);
    } else {
        w.weight = build_declare_tokens(b, stack);
        if (head->bias) w.bias = build_declare_bias(b, &BUILD_NO_STEM, "head", build_vector(stack->vocab));
    }
    w.what = "logits";
    return w;
}

/* The rows that the last projection reads, of that width. */
static int transformed(Build *b, const Head *head, int x, int64_t width) {
    if (!head->transform) return x;
    x = build_new_linear(b, &BUILD_NO_STEM, "transform", ROLE_NONE, x, width, head->transform_bias);
    x = activated(b, "transform", head->activation, x);
    return build_row_norm(b, &BUILD_NO_STEM, "transform_norm", x, head->norm);
}

static int head_logits(Build *b, const Stack *stack, int hidden) {
    const Head *head = &b->model->head;
    const int rows = transformed(b, head, hidden, stack->embedding_width);
    const LinearWeights weights = declare_head(b, stack, build_columns(b, rows));
    int x = build_linear(b, &weights, ROLE_NONE, rows);
    if (head->scale != 1) x = EMIT(scale, build_value_like(b, "logits_scaled", x), ATTRIBUTES(.scale = head->scale), x);
    if (head->softcap == 0) return x;
    return EMIT(softcap, build_value_like(b, "logits_capped", x), ATTRIBUTES(.cap = head->softcap), x);
}

/* The mean of the first two rows. */
static int mean_of_tokens(Build *b, const Stack *stack, int hidden) {
    Tensor row = build_value2(b, "pool_cls", build_constant(1), stack->hidden_width);
    const int first = EMIT(pool, row, ATTRIBUTES(.pool = POOL_CLS), hidden);
    const int second = EMIT(pool, build_value_like(b, "pool_distillation", first),
                            ATTRIBUTES(.pool = POOL_CLS, .offset = 1), hidden);
    const int sum = EMIT(add, build_value_like(b, "pool_sum", first), ATTRIBUTES(.scale = 1), first, second);
    return EMIT(scale, build_value_like(b, "pool", sum), ATTRIBUTES(.scale = 0.5), sum);
}

/* The row that the ids of the tokens choose, with both stacks the ids of the source. */
static int row_of_token(Build *b, Tensor row, PoolKind kind, int hidden) {
    const bool both = b->model->encoder && b->model->decoder;
    const int64_t token = b->model->head.pool_token;
    return EMIT(pool, row, ATTRIBUTES(.pool = kind, .token = token, .shifted = both && kind == POOL_LAST_SKIP), hidden,
                graph_input(b->graph, both ? IN_source : IN_tokens)->tensor);
}

static int pooled_row(Build *b, const Stack *stack, PoolKind kind, int hidden) {
    const bool both = kind == POOL_CLS_MEAN;
    if (kind == POOL_CLS_DISTILLATION) return mean_of_tokens(b, stack, hidden);
    Tensor row = build_value2(b, both ? "pool_cls" : "pool", build_constant(1), stack->hidden_width);
    if (pool_reads_ids(kind)) return row_of_token(b, row, kind, hidden);
    if (!both) return EMIT(pool, row, ATTRIBUTES(.pool = kind), hidden);
    const int first = EMIT(pool, row, ATTRIBUTES(.pool = POOL_CLS), hidden);
    const int mean = EMIT(pool, build_value_like(b, "pool_mean", first),
                          ATTRIBUTES(.pool = POOL_MEAN, .offset = 1 + stack->registers), hidden);
    return EMIT(join, build_value2(b, "pool", build_constant(1), 2 * stack->hidden_width), ATTRIBUTES(.heads = 1),
                first, mean);
}

/* An output that is no map. */
static void add_output(Build *b, OutputRole role, int tensor, bool of_sequence) {
    graph_output(b->arena, b->graph,
                 (GraphOutput){.role = role, .tensor = tensor, .of_sequence = of_sequence, .layer = -1});
}

static int classified(Build *b, const Head *head, int rows) {
    rows = transformed(b, head, rows, build_columns(b, rows));
    return build_new_linear(b, &BUILD_NO_STEM, "classifier", ROLE_NONE, rows, head->classifier, head->classifier_bias);
}

static int projected(Build *b, const Dense *dense, int64_t index, int x) {
    const char *name = arena_printf(b->arena, "dense.%lld", (long long)index);
    b->location = dense->location;
    x = build_new_linear(b, &BUILD_NO_STEM, name, ROLE_NONE, x, dense->width, dense->bias);
    return dense->activation == ACTIVATION_identity ? x : activated(b, name, dense->activation, x);
}

static void build_head(Build *b, const Stack *stack, int hidden) {
    const Head *head = &b->model->head;
    if (!stack) bug("a head without a stack");
    enter_head(b);
    add_output(b, OUT_hidden, hidden, false);
    if (head->logits) add_output(b, OUT_logits, head_logits(b, stack, hidden), false);
    if (!head->pool && !head->pooler && !head->classifier) return;
    if (head->classifier_rows) {
        add_output(b, OUT_logits, classified(b, head, hidden), false);
        return;
    }
    int x = head->probe ? probed_row(b, stack, head->probe, hidden)
                        : pooled_row(b, stack, head->pool ? head->pool : POOL_CLS, hidden);
    if (head->pooler) {
        x = build_new_linear(b, &BUILD_NO_STEM, "pooler", ROLE_NONE, x, build_columns(b, x), true);
        x = activated(b, "pooler", head->activation, x);
    }
    for (int64_t i = 0; i < head->n_dense; i++) x = projected(b, &head->dense[i], i, x);
    if (head->l2)
        x = EMIT(l2, build_value_like(b, head->n_dense ? "dense_l2" : "pool_l2", x), ATTRIBUTES(.scale = 1), x);
    add_output(b, OUT_pooled, x, true);
    if (!head->classifier) return;
    if (head->normed) x = build_row_norm(b, &BUILD_NO_STEM, "pool_norm", x, head->norm);
    add_output(b, OUT_logits, classified(b, head, x), true);
}

static void build_alone(Build *b) {
    const Model *model = b->model;
    const Attention *a = &model->alone->attention;
    b->location = model->alone->location;
    b->precision = &model->alone->precision;
    b->last = &model->alone->last;
    b->where = "attention";
    b->stem = (Stem){"attention.", NULL, -1, "attention."};
    Dim n = build_length(b, "queries", model->queries), m = a->cross ? build_length(b, "keys", model->keys) : n;
    Dim query_dims[] = {n, build_constant(a->query_width)}, key_dims[] = {m, build_constant(a->key_width)},
        value_dims[] = {m, build_constant(a->value_width)};
    int query = build_input(b, IN_query, 2, query_dims, false), key = query, value = query;
    if (a->cross) {
        key = build_input(b, IN_key, 2, key_dims, false);
        build_mark_source(b);
        bool optional = a->value_width == a->key_width; /* without it, the keys are the values */
        value = build_input(b, IN_value, 2, value_dims, optional);
        build_mark_source(b);
    }
    int x = build_attention(b, &b->stem, NULL, a, (Heads){query, key, value},
                      model->queries.n > model->keys.n ? model->queries.n : model->keys.n, 0);
    add_output(b, OUT_context, x, false);
}

/* ---------------------------------------------------------------- the ways into a model */

static Build begin(Arena *arena, Module *module, EntryKind entry) {
    Graph *graph = arena_alloc(arena, sizeof *graph);
    graph->name = entry_name(entry);
    module->entries[entry] = graph;
    return (Build){.entry = entry,
                   .arena = arena,
                   .model = module->model,
                   .module = module,
                   .graph = graph,
                   .location = module->model->location,
                   .precision = &module->model->precision,
                   .where = "",
                   .stem = BUILD_NO_STEM};
}

static void build_forward(Arena *arena, Module *module) {
    Build b = begin(arena, module, ENTRY_FORWARD);
    const Model *model = module->model;
    bool both = model->encoder && model->decoder;
    if (model->alone) {
        build_alone(&b);
        return;
    }
    int encoder = NO_TENSOR, hidden = NO_TENSOR;
    if (model->encoder) {
        Dim rows = build_length(&b, both ? "src" : "rows", model->encoder->seq);
        encoder = hidden = build_stack(&b, model->encoder, rows, both ? IN_source : IN_tokens, NO_TENSOR);
    }
    if (both) add_output(&b, OUT_encoder_hidden, encoder, false);
    if (model->decoder) {
        Dim rows = build_length(&b, both ? "tgt" : "rows", model->decoder->seq);
        hidden = build_stack(&b, model->decoder, rows, both ? IN_target : IN_tokens, encoder);
    }
    build_head(&b, model->decoder ? model->decoder : model->encoder, hidden);
}

/* Writes the tensor t to the caller's encoded source, where `decode` reads it. */
static void leave_source(Build *b, const char *what, Role role, int t) {
    graph_state(b->arena, b->graph,
                (GraphState){.name = build_name(b, &b->stem, what),
                             .site = build_site(b, &b->stem, what, role),
                             .in = NO_TENSOR,
                             .out = t,
                             .of_source = true});
}

static void leave_second(Build *b, int key) {
    const Stem own = b->stem;
    b->stem = build_second_stem(b, &own);
    leave_source(b, "keys", ROLE_KEY, key);
    b->stem = own;
}

/* Computes the hidden rows of a source, and each cross attention's keys and values over them. */
static void build_encode(Arena *arena, Module *module) {
    Build b = begin(arena, module, ENTRY_ENCODE);
    const Stack *encoder = module->model->encoder, *decoder = module->model->decoder;
    int rows = build_stack(&b, encoder, build_length(&b, "src", encoder->seq), IN_source, NO_TENSOR);
    add_output(&b, OUT_encoder_hidden, rows, false);
    StackRows stack_rows = {decoder, decoder->seq.n, rows};
    for (int64_t l = 0; l < decoder->n_layers; l++)
        for (int i = 0; i < decoder->layers[l].count; i++) {
            const Sublayer *s = &decoder->layers[l].sublayers[i];
            if (s->kind != SUBLAYER_ATTENTION || !s->attention.cross) continue;
            enter_sublayer(&b, &stack_rows, l, s);
            const Stem stem = build_sublayer_stem(&b, decoder, decoder->layers[l].weights_of, s);
            Heads h = build_project(&b, &stem, &s->attention, (Heads){NO_TENSOR, rows, rows});
            const Heads second = build_second(&b, &stem, &s->attention, (Heads){NO_TENSOR, rows, rows});
            h = build_score_rows(&b, &stem, &s->attention, h);
            leave_source(&b, "keys", ROLE_KEY, h.key);
            leave_source(&b, "values", ROLE_VALUE, h.value);
            if (second.key != NO_TENSOR) leave_second(&b, second.key);
            build_leave_numbers(&b, &s->attention, build_rows(&b, rows));
        }
}

/* Appends rows to a state. Only the last row gets logits, because generation reads no others. */
static void build_decode(Arena *arena, Module *module) {
    Build b = begin(arena, module, ENTRY_DECODE);
    const Model *model = module->model;
    const Stack *decoder = model->decoder;
    Dim rows = build_symbol(&b, "rows", 1, decoder->seq.n);
    b.past = build_symbol(&b, "past", 0, decoder->seq.n);
    b.total = build_symbol(&b, "total", 1, decoder->seq.n);
    if (model->encoder) b.source = build_length(&b, "src", model->encoder->seq);
    int hidden = build_stack(&b, decoder, rows, IN_tokens, NO_TENSOR);
    enter_head(&b);
    add_output(&b, OUT_hidden, hidden, false);
    if (model->head.logits) {
        int logits = head_logits(&b, decoder, pooled_row(&b, decoder, POOL_LAST, hidden));
        add_output(&b, OUT_logits, logits, true);
    }
}

/* The reason why a decoder cannot continue from a state, or NULL where it can. */
static const char *no_decode(const Model *model) {
    if (model->unroll_full) return "`unroll full` leaves no room for a state";
    const Stack *decoder = model->decoder;
    for (int64_t l = 0; l < decoder->n_layers; l++)
        for (int i = 0; i < decoder->layers[l].count; i++) {
            const Sublayer *s = &decoder->layers[l].sublayers[i];
            if (s->kind != SUBLAYER_ATTENTION) continue;
            if (s->attention.mask_given) return "`mask given` is over whole sequences";
        }
    return decoder->input == INPUT_PATCHES ? "an image is one whole sequence" : NULL;
}

Module *build(Arena *arena, const Model *model) {
    Module *module = arena_alloc(arena, sizeof *module);
    module->model = model;
    build_forward(arena, module);
    if (model->decoder) module->no_decode = no_decode(model);
    if (model->decoder && !module->no_decode) {
        build_decode(arena, module);
        if (model->encoder) build_encode(arena, module);
    }
    return module;
}
