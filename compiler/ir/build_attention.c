/* build_attention.c: attention as operations. In a decoder's `decode`, keys and values of earlier rows come from a
 * state, and those of cross attention from what `encode` left. */
#include "builder.h"

#include <math.h>

/* The number of the table of `position relative`, or NO_WEIGHT. */
static int declare_relative(Build *b, const Stem *stem, const Stack *stack, const Attention *a) {
    const Position *p = &a->position;
    if (p->kind != POSITION_RELATIVE) return NO_WEIGHT;
    if (!p->per_layer) return build_declare_relative(b, stack);
    const WeightSpec table = {.shape = build_matrix(p->buckets, a->heads), .deviation = 1};
    return build_declare(b, stem, "relative.weight", table);
}

/* The new scores that a rule of pairs computes. The rule reads `input`, or no input where that is NO_TENSOR. */
static int rescored(Build *b, const char *what, const PairRule *rule, int scores, int input) {
    return EMIT(rescore, build_value_like(b, what, scores), ATTRIBUTES(.rule = rule, .past = b->past.symbol), scores,
                input);
}

/* A number for each position, to which slopes that are rounded have no common factor. Vectors of keys are read whole,
 * also where some lie beyond the last key. */
static int key_biased(Build *b, const Attention *a, int scores, int64_t bound) {
    enum { KEYS_READ = 8 * PANEL };
    const Position *p = &a->position;
    const int64_t width = (bound + KEYS_READ - 1) / KEYS_READ * KEYS_READ;
    const char *name = arena_printf(b->arena, "alibi.bf16.%lld.%lld.%.17g", (long long)a->heads, (long long)width,
                                    p->alibi_max);
    const int bias = build_derived(b, (Derived){.kind = DERIVED_KEY_BIAS,
                                                .name = name,
                                                .shape = {2, {a->heads, width}},
                                                .position = p,
                                                .heads = a->heads});
    return rescored(b, "alibi", rule_by_position(b->arena, p->alibi_scaled ? a->scale : 1), scores, bias);
}

/* `relative` is the number of the table of `position relative`. */
static int position_scores(Build *b, const Attention *a, int scores, int64_t bound, int relative) {
    const Position *p = &a->position;
    if (p->kind == POSITION_ALIBI && p->alibi == ALIBI_BF16) return key_biased(b, a, scores, bound);
    if (p->kind == POSITION_ALIBI) {
        double scale = p->alibi_scaled ? a->scale : 1;
        const char *name =
            arena_printf(b->arena, "alibi.slopes.%lld.%.17g.%.17g", (long long)a->heads, p->alibi_max, scale);
        int slopes = build_derived(b, (Derived){.kind = DERIVED_RULE,
                                          .name = name,
                                          .shape = {1, {a->heads}},
                                          .rule = table_slopes(b->arena, a->heads, p->alibi_max, scale),
                                          .rows = a->heads});
        if (!p->n_at) return rescored(b, "alibi", rule_slopes(b->arena, NULL, bound), scores, slopes);
        const Tensor result = build_value_like(b, "alibi", scores);
        const int at = build_rule_input(b, p->at[0], result.dims[1], result.dims[2]);
        const char *of = model_row_input(b->model, p->at[0])->kind.name;
        return EMIT(rescore, result,
                    ATTRIBUTES(.rule = rule_slopes(b->arena, of, p->at_rows), .past = b->past.symbol), scores, slopes,
                    at);
    }
    if (p->kind != POSITION_RELATIVE) return scores;
    const char *table = b->module->weights.specs[relative].name;
    const char *name = arena_printf(b->arena, "%s.%s", table, p->bidirectional ? "by_distance" : "by_distance_back");
    int bias = build_derived(b, (Derived){.kind = DERIVED_RELATIVE,
                                    .name = name,
                                    .shape = {2, {a->heads, 2 * bound - 1}},
                                    .position = p,
                                    .rows = bound,
                                    .heads = a->heads,
                                    .source = relative});
    return rescored(b, "biased", rule_by_distance(b->arena, bound - 1), scores, bias);
}

/* Those of `position content` are scaled behind all their terms. */
static int attention_scores(Build *b, const Stem *stem, const Stack *stack, const Attention *a, int query, int key) {
    const double scale = a->position.kind == POSITION_CONTENT ? 1 : a->scale;
    const bool cached = stack && stack->is_decoder;
    Dim n = build_rows(b, query), m = build_rows(b, key);
    Tensor result = build_value3(b, "scores", a->heads, n, m);
    if (a->score == SCORE_additive) {
        const WeightSpec spec = {.shape = build_vector(a->d_score), .deviation = 1 / sqrt((double)a->d_score)};
        int vector = build_weight(b, build_declare(b, stem, "score.vector.weight", spec));
        return EMIT(additive_scores, result, ATTRIBUTES(.scale = a->scale, .cached = cached), query, key, vector);
    }
    const int64_t head_dim = a->latent ? a->latent_rope + a->latent : a->head_dim;
    return EMIT(scores, result,
                ATTRIBUTES(.scale = scale, .heads = a->heads, .kv_heads = a->kv_heads, .head_dim = head_dim,
                           .cached = cached),
                query, key);
}

static int declare_sink(Build *b, const Stem *stem, const Attention *a) {
    if (!a->sink_learned) return NO_WEIGHT;
    return build_declare(b, stem, "sink.weight", (WeightSpec){.shape = build_vector(a->heads), .deviation = 1});
}

/* Appends the inputs of a rule to the n inputs of an operation, and returns the new number of inputs. */
static int with_rule(Build *b, const Attention *a, const Tensor *scores, int *inputs, int n) {
    for (int i = 0; i < a->n_visible_roles; i++)
        inputs[n++] = build_rule_input(b, a->visible_roles[i], scores->dims[1], scores->dims[2]);
    return n;
}

/* `sink` is the number of the weights of a learned sink, or NO_WEIGHT. */
static int softmax(Build *b, const Attention *a, int scores, int sink) {
    const Tensor result = build_value_like(b, "weights", scores);
    int inputs[2 + MOST_PAIR_INPUTS] = {scores}, n = 1;
    OpAttributes at = {.heads = a->heads, .rule = a->visible, .weighing = a->weighing,
                       .has_sink = sink != NO_WEIGHT, .past = b->past.symbol};
    if (at.has_sink) inputs[n++] = build_weight(b, sink);
    return build_op(b, OP_softmax, at, result, with_rule(b, a, &result, inputs, n), inputs);
}

/* The output `lse` of the scores, of which each softmax has one. Fusion finds the softmax after it. */
static void export_lse(Build *b, const Attention *a, int scores, int sink) {
    if (!a->exports_lse) return;
    const Tensor shape = *build_tensor(b, scores);
    Tensor result = build_value2(b, "lse", build_constant(a->heads), 1);
    result.dims[1] = shape.dims[1];
    int inputs[2 + MOST_PAIR_INPUTS] = {scores}, n = 1;
    OpAttributes at = {.heads = a->heads, .rule = a->visible, .has_sink = sink != NO_WEIGHT};
    if (at.has_sink) inputs[n++] = build_weight(b, sink);
    const int lse = build_op(b, OP_log_sum, at, result, with_rule(b, a, &shape, inputs, n), inputs);
    graph_output(b->arena, b->graph,
                 (GraphOutput){.role = OUT_lse, .tensor = lse, .layer = -1, .n_heads = a->heads});
}

static int weighted_sum(Build *b, const Attention *a, int weights, int value, Dim queries) {
    const int64_t value_dim = a->latent ? a->latent : a->value_dim;
    const Tensor scores = *build_tensor(b, weights);
    const Tensor result = build_value2(b, "attended", queries, a->heads * value_dim);
    OpAttributes at = {.heads = a->heads, .kv_heads = a->kv_heads, .head_dim = value_dim, .rule = a->visible,
                       .weighing = a->weighing, .past = b->past.symbol};
    int inputs[2 + MOST_PAIR_INPUTS] = {weights, value};
    return build_op(b, OP_weighted_sum, at, result, with_rule(b, a, &scores, inputs, 2), inputs);
}

static int project_query(Build *b, const Stem *stem, const Attention *a, int x) {
    /* Random queries make scores with a deviation of about 1, whatever their factor. */
    double scale = build_inverse(a->scale * sqrt((double)a->head_dim));
    if (a->qk_norm.kind || score_is_bare(a->score)) scale = 1;
    const int64_t width = a->heads * a->head_dim;
    const LinearWeights query = build_declare_linear(b, stem, "query", width, a->query_width, a->bias_q, scale);
    return build_linear(b, &query, ROLE_QUERY, x);
}

static Shape qk_norm_shape(const Attention *a, int64_t heads) {
    if (a->qk_norm_all_heads) return build_vector(heads * a->head_dim);
    return a->qk_norm_weight_per_head ? build_matrix(heads, a->head_dim) : build_vector(a->head_dim);
}

/* The normalized queries or keys x, of so many heads. */
static int qk_norm(Build *b, const Stem *stem, Role role, int x, const Attention *a, int64_t heads) {
    const char *what = role == ROLE_QUERY ? "query_norm" : "key_norm";
    return build_norm(b, stem, what, role, x, a->qk_norm, qk_norm_shape(a, heads));
}

/* The same without the norm that `after_rotation` adds later, of which the weights alone are declared here: they stand
 * next to the projections in the table. */
static int qk_norm_first(Build *b, const Stem *stem, Role role, int x, const Attention *a, int64_t heads) {
    if (!a->qk_norm_after_rotation) return qk_norm(b, stem, role, x, a, heads);
    const char *what = role == ROLE_QUERY ? "query_norm" : "key_norm";
    build_declare_gain(b, stem, what, a->qk_norm, qk_norm_shape(a, heads));
    if (a->qk_norm.bias) build_declare_bias(b, stem, what, qk_norm_shape(a, heads));
    return x;
}

static int clipped(Build *b, const char *what, Role role, int x, double bound) {
    if (x == NO_TENSOR || bound == 0) return x;
    Tensor result = build_value_like(b, what, x);
    result.site.role = role;
    return EMIT(clip, result, ATTRIBUTES(.cap = bound), x);
}

Heads build_project(Build *b, const Stem *stem, const Attention *a, Heads rows) {
    Heads h = rows;
    const int64_t keys = a->kv_heads * a->head_dim, values = a->kv_heads * a->value_dim;
    if (a->projected) {
        if (h.query != NO_TENSOR) h.query = project_query(b, stem, a, h.query);
        if (h.key != NO_TENSOR) h.key = build_new_linear(b, stem, "key", ROLE_KEY, h.key, keys, a->bias_k);
        if (h.value != NO_TENSOR) h.value = build_new_linear(b, stem, "value", ROLE_VALUE, h.value, values, a->bias_v);
    }
    if (h.query != NO_TENSOR) h.query = qk_norm_first(b, stem, ROLE_QUERY, h.query, a, a->heads);
    if (h.key != NO_TENSOR) h.key = qk_norm_first(b, stem, ROLE_KEY, h.key, a, a->kv_heads);
    h.query = clipped(b, "query_clipped", ROLE_QUERY, h.query, a->clip);
    h.key = clipped(b, "key_clipped", ROLE_KEY, h.key, a->clip);
    h.value = clipped(b, "value_clipped", ROLE_VALUE, h.value, a->clip);
    return h;
}

Heads build_second(Build *b, const Stem *stem, const Attention *a, Heads rows) {
    if (!a->differential) return (Heads){NO_TENSOR, NO_TENSOR, NO_TENSOR};
    const Stem own = b->stem, second = build_second_stem(b, stem);
    b->stem = build_second_stem(b, &own);
    const Heads h = build_project(b, &second, a, (Heads){rows.query, rows.key, NO_TENSOR});
    b->stem = own;
    return h;
}

Heads build_score_rows(Build *b, const Stem *stem, const Attention *a, Heads h) {
    const bool additive = a->score == SCORE_additive;
    if (additive && h.query != NO_TENSOR)
        h.query = build_new_linear(b, stem, "score.query", ROLE_QUERY, h.query, a->d_score, false);
    if (additive && h.key != NO_TENSOR)
        h.key = build_new_linear(b, stem, "score.key", ROLE_KEY, h.key, a->d_score, false);
    if (a->score == SCORE_general && h.key != NO_TENSOR) {
        const WeightSpec spec = {.shape = build_matrix(a->query_width, a->key_width),
                                 .precision = b->precision,
                                 .deviation = 1 / sqrt((double)a->query_width * (double)a->key_width)};
        const LinearWeights score = {
            .what = "score", .weight = build_declare(b, stem, "score.weight", spec), .bias = NO_WEIGHT};
        h.key = build_linear(b, &score, ROLE_KEY, h.key);
    }
    return h;
}

int build_state(Build *b, const char *what, Role role, Dim rows, int64_t columns) {
    Tensor tensor = build_value2(b, what, rows, columns);
    tensor.site.role = role;
    tensor.kind = TENSOR_STATE;
    tensor.location = b->location;
    return graph_tensor(b->arena, b->graph, tensor);
}

int build_append(Build *b, const char *what, Role role, int in, int x) {
    Tensor longer = build_value2(b, what, b->total, build_columns(b, x));
    longer.site.role = role;
    int out = EMIT(append, longer, ATTRIBUTES(.past = b->past.symbol), in, x);
    graph_state(b->arena, b->graph,
                (GraphState){.name = longer.name, .site = longer.site, .in = in, .out = out});
    return out;
}

/* The rows of the state followed by x, which are all rows that this call's queries may attend to. */
static int append(Build *b, const char *what, Role role, int x) {
    const char *before = arena_printf(b->arena, "%s_before", what);
    const int in = build_state(b, before, role, b->past, build_columns(b, x));
    return build_append(b, what, role, in, x);
}

/* Keys or values that `encode` computed from the source. */
static int from_source(Build *b, const char *what, Role role, int64_t columns) {
    int in = build_state(b, what, role, b->source, columns);
    const Tensor *tensor = build_tensor(b, in);
    graph_state(b->arena, b->graph,
                (GraphState){.name = tensor->name,
                             .site = tensor->site,
                             .in = in,
                             .out = NO_TENSOR,
                             .of_source = true});
    return in;
}

static int64_t key_columns(const Attention *a) {
    if (a->score == SCORE_additive) return a->d_score;
    return a->score == SCORE_general ? a->query_width : a->kv_heads * a->head_dim;
}

/* Rotates queries and keys by position, and appends to the caches. A cache holds rotated keys, behind their norm. */
static Heads place_heads(Build *b, const Stem *stem, const Attention *a, Heads h, int64_t bound) {
    const bool cached = b->entry == ENTRY_DECODE && !a->cross;
    if (a->position.kind == POSITION_ROPE && !a->latent) {
        const int past = b->past.symbol;
        h.query = build_rope(b, "query_rope", ROLE_QUERY, h.query, a, a->heads, a->head_dim, bound, past);
        h.key = build_rope(b, "key_rope", ROLE_KEY, h.key, a, a->kv_heads, a->head_dim, bound, past);
    }
    if (a->qk_norm_after_rotation) {
        h.query = qk_norm(b, stem, ROLE_QUERY, h.query, a, a->heads);
        h.key = qk_norm(b, stem, ROLE_KEY, h.key, a, a->kv_heads);
    }
    if (!cached) return h;
    h.key = append(b, "keys", ROLE_KEY, h.key);
    if (h.value != NO_TENSOR) h.value = append(b, "values", ROLE_VALUE, h.value);
    return h;
}

static void export_map(Build *b, const Stack *stack, const Attention *a, int weights, int layer) {
    graph_output(b->arena, b->graph,
                 (GraphOutput){.role = map_role(b->model, stack, a),
                               .tensor = weights,
                               .layer = layer,
                               .heads = a->exported_heads,
                               .n_heads = a->n_exported_heads});
}

/* The weights that the scores read beside queries and keys: numbers in the table, or NO_WEIGHT. */
typedef struct ScoreWeights {
    int relative, sink;
    ContentWeights content;
} ScoreWeights;

/* The weights of each softmax. Those of the second one are at the stem of its queries and keys, but for tables that no
 * query and no key belongs to, which both read. */
static void declare_score(Build *b, const Stem *stem, const Stack *stack, const Attention *a, ScoreWeights *weights) {
    const Stem second = build_second_stem(b, stem);
    const Stem *const stems[] = {stem, &second};
    const int relative = declare_relative(b, stem, stack, a), n = a->differential ? 2 : 1;
    for (int i = 0; i < n; i++) weights[i] = (ScoreWeights){.relative = relative, .sink = declare_sink(b, stems[i], a)};
    for (int i = 0; i < n; i++) weights[i].content = build_declare_terms(b, stem, stems[i], stack, a);
}

/* The rows that the scores and the weighted sum read; with `values` false no values, which another attention has. */
static Heads attended_rows(Build *b, const Stem *stem, const Attention *a, Heads h, int64_t bound, bool values) {
    h = build_score_rows(b, stem, a, h);
    if (!build_keeps_source(b, a)) return place_heads(b, stem, a, h, bound);
    h.key = from_source(b, "keys", ROLE_KEY, key_columns(a));
    if (values)
        h.value = from_source(b, "values", ROLE_VALUE, a->projected ? a->kv_heads * a->value_dim : a->value_width);
    return h;
}

/* The heads side by side: the values, each times its weight of one softmax. */
static int attended(Build *b, const Stem *stem, const Stack *stack, const Attention *a, Heads h,
                    const ScoreWeights *weights, int64_t bound, int layer) {
    /* The scores and the softmax, which reads the kept integers, become one step. */
    for (int i = 0; i < a->n_where_roles && b->entry == ENTRY_DECODE; i++)
        build_rule_input(b, a->visible_roles[i], build_rows(b, h.query), build_rows(b, h.key));
    for (int i = 0; i < a->n_score_roles && b->entry == ENTRY_DECODE; i++)
        build_rule_input(b, a->score_roles[i], build_rows(b, h.query), build_rows(b, h.key));
    if (a->position.kind == POSITION_ALIBI && a->position.n_at && b->entry == ENTRY_DECODE)
        build_rule_input(b, a->position.at[0], build_rows(b, h.query), build_rows(b, h.key));
    int scores = attention_scores(b, stem, stack, a, h.query, h.key);
    scores = position_scores(b, a, scores, bound, weights->relative);
    if (a->position.kind == POSITION_CONTENT) scores = build_content(b, a, &weights->content, scores, h, bound);
    if (a->softcap > 0) scores = rescored(b, "capped", rule_softcap(b->arena, a->softcap), scores, NO_TENSOR);
    scores = build_rescore(b, stem, stack, a, scores);
    export_lse(b, a, scores, weights->sink);
    const int of_keys = softmax(b, a, scores, weights->sink);
    if (a->exported) export_map(b, stack, a, of_keys, layer);
    return weighted_sum(b, a, of_keys, h.value, build_rows(b, h.query));
}

int build_attention(Build *b, const Stem *stem, const Stack *stack, const Attention *a, Heads rows, int64_t bound,
                     int layer) {
    if (build_keeps_source(b, a)) rows.key = rows.value = NO_TENSOR;
    Heads h = a->latent ? build_latent(b, stem, a, rows.query, bound) : build_project(b, stem, a, rows);
    Heads second = build_second(b, stem, a, rows);
    /* The tensors of the scores are read after the weights of a score, and stand before them in the table. */
    ScoreWeights weights[2];
    declare_score(b, stem, stack, a, weights);
    build_declare_learned(b, stem, stack, a->rescore);
    h = attended_rows(b, stem, a, h, bound, true);
    int x = attended(b, stem, stack, a, h, &weights[0], bound, layer);
    if (a->differential) {
        const Stem own = b->stem, of_second = build_second_stem(b, stem);
        b->stem = build_second_stem(b, &own);
        second = attended_rows(b, &of_second, a, second, bound, false);
        second.value = h.value;
        const int other = attended(b, stem, stack, a, second, &weights[1], bound, layer);
        b->stem = own;
        x = build_difference(b, stem, a, x, other, layer);
    }
    if (a->latent) x = build_latent_values(b, stem, a, x);
    x = build_row_norm(b, stem, "inner_norm", x, a->inner_norm);
    b->precision = b->last;
    return a->has_output ? build_new_linear(b, stem, "output", ROLE_NONE, x, a->output_width, a->bias_o) : x;
}
