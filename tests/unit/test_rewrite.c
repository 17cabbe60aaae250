/* test_rewrite.c: the passes from graph to graph. They keep the numbers of the interpreter where they change nothing,
 * and round where the precision says so; what nothing reads any more goes. */
#include "fixture.h"

#include "../../compiler/rewrite/rewrite.h"

#include <math.h>

/* ------------------------------------------------------------------ models and their numbers */

#define BOTH(precision)                                                                                             \
    "model m { d_model 8, vocab 11, head logits tied, norm rmsnorm pre, precision " precision "\n"                   \
    "encoder { seq <= 6, position relative buckets 4 distance 9, final_norm yes,\n"                                   \
    "layers 2 { attention self { heads 2 }, ffn { d_ff 12, activation silu gated } } }\n"                        \
    "decoder { seq <= 5, position rope, final_norm yes, layers 2 {\n"                                                 \
    "attention self { heads 4, kv_heads 2 }, attention cross { heads 2 }, ffn { d_ff 12 } } } }"
#define EXPERTS(precision)                                                                                          \
    "model m { d_model 8, vocab 11, head logits, norm rmsnorm pre, precision " precision "\n"                        \
    "decoder { seq <= 6, position rope, final_norm yes, layers 2 { attention self { heads 2 },\n"                     \
    "ffn { d_ff 6, activation silu gated, experts 3, top 2 } } } }"
#define ALONE(precision)                                                                                            \
    "model m { precision " precision ", attention cross { score dot, d_query 6, d_key 6, project none,\n"            \
    "queries <= 5, keys <= 7 } }"

enum { ROWS = 4, ROOM = 64 };

static Module *built(const char *text) { return compiled(text, STAGE_GRAPH).module; }

/* The numbers of the first output of `forward`. */
static const OutputArray *forward_numbers(const Module *module) {
    const Graph *g = module->entries[ENTRY_FORWARD];
    static const int64_t ids[ROWS] = {3, 1, 8, 3};
    float *numbers = arena_array(arena, ROOM, sizeof *numbers);
    random_normal(3, "rows", 0, 1, ROOM, numbers);
    InputArray inputs[MAX_GRAPH_INPUTS];
    for (int i = 0; i < g->n_inputs; i++) {
        const Dtype dtype = g->tensors[g->inputs[i].tensor].dtype;
        const void *rows = dtype == DTYPE_F32 ? (const void *)numbers : ids;
        inputs[i] = (InputArray){g->inputs[i].kind->role, dtype, ROWS, rows};
    }
    const int64_t symbols[4] = {ROWS, ROWS};
    const Weights *weights = weights_load(arena, module->model, &module->weights, "random:7", false);
    const Interpretation *run = interpret(arena, module, g, weights, inputs, g->n_inputs, symbols);
    return &run->outputs[run->n_outputs - 1];
}

static double difference(const Module *a, const Module *b) {
    const OutputArray *one = forward_numbers(a), *two = forward_numbers(b);
    assert_true(shape_equal(one->shape, two->shape));
    int64_t n;
    assert_true(shape_elements(one->shape, &n));
    double most = 0;
    for (int64_t i = 0; i < n; i++) {
        const double d = one->data[i] > two->data[i] ? one->data[i] - two->data[i] : two->data[i] - one->data[i];
        if (d > most) most = d;
    }
    return most;
}

static const struct {
    const char *plain, *narrow[6];
} models[] = {
    {BOTH("weights f32"),
     {BOTH("weights bf16 activations bf16 attention bf16"), BOTH("weights int8 activations int8 attention bf16"),
      BOTH("weights int8 activations int8 smooth outliers 1"), BOTH("cache int8"),
      BOTH("weights bf16 attention bf16 cache f16"), BOTH("attention int8")}},
    {EXPERTS("weights f32"),
     {EXPERTS("weights bf16 activations bf16 attention bf16"), EXPERTS("weights int8 activations int8"),
      EXPERTS("weights int8 activations int8 smooth"), EXPERTS("attention bf16 cache int8"), EXPERTS("weights f16"),
      EXPERTS("weights int4")}},
    {ALONE("weights f32"), {ALONE("attention bf16"), ALONE("attention int8")}},
};

/* Calls f(built of f32, built of a precision) for all. */
static void each(void (*f)(const Module *plain, const Module *narrow)) {
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        for (int p = 0; p < 6 && models[i].narrow[p]; p++) f(built(models[i].plain), built(models[i].narrow[p]));
}

/* ------------------------------------------------------------------ precision */

/* A graph is f32 as it is built, whatever the precision. */
static void is_plain(const Module *plain, const Module *narrow) {
    assert_true(difference(plain, narrow) == 0);
    assert_int_equal(weight_table_dtype(&narrow->weights), DTYPE_F32);
    assert_false(graph_jumps(narrow->entries[ENTRY_FORWARD]) && !graph_jumps(plain->entries[ENTRY_FORWARD]));
}

static void built_plain(void **state) {
    (void)state;
    each(is_plain);
}

/* Each pass in its turn: without a precision the numbers stay, bit for bit; with one, they move a little. */
static void moves_little(const Module *plain, const Module *narrow) {
    for (int i = 0; rewrite_passes[i]; i++) {
        const Module *after = graph_rewrite(arena, plain, rewrite_passes[i], NULL);
        assert_true(difference(plain, after) == 0);
        assert_int_equal(after->entries[ENTRY_FORWARD]->n_ops, plain->entries[ENTRY_FORWARD]->n_ops);
        const Module *rounded = graph_rewrite(arena, narrow, rewrite_passes[i], NULL);
        const double moved = difference(narrow, rounded);
        if (rewrite_passes[i] == &precision_pass) assert_true(moved > 0);
        if (!(moved < 1)) fail_msg("%s moves a number by %g", rewrite_passes[i]->name, moved);
    }
}

static void each_pass(void **state) {
    (void)state;
    each(moves_little);
}

/* The type to which the rows of tensor t are rounded. */
static Dtype rounded_to(const Graph *g, int t) {
    const Op *op = g->tensors[t].kind == TENSOR_VALUE ? &g->ops[g->tensors[t].op] : NULL;
    if (op && op->kind == OP_append) return rounded_to(g, op->inputs[1]);
    if (op && op->kind == OP_quantize) return DTYPE_I8;
    return op && op->kind == OP_round ? op->a.dtype : DTYPE_F32;
}

static void rows_of_products(const Module *module, const Graph *g, const Precision *precision) {
    for (int o = 0; o < g->n_ops; o++) {
        const Op *op = &g->ops[o];
        if (!op_is_product(op->kind)) continue;
        const WeightSpec *matrix = &module->weights.specs[g->tensors[op->inputs[1]].weight];
        assert_int_equal(matrix->type.dtype, matrix->precision ? precision->weights.dtype : DTYPE_F32);
        assert_int_equal(rounded_to(g, op->inputs[0]), rows_dtype(precision, matrix->type.dtype));
        const bool is_smooth = precision->smooth && matrix->precision && strstr(matrix->name, "tokens") == NULL;
        assert_int_equal(matrix->smoothing != 0, is_smooth);
    }
}

static void rows_of_attention(const Module *module, const Graph *g, const Precision *p) {
    for (int o = 0; o < g->n_ops; o++) {
        const Op *op = &g->ops[o];
        const bool is_scores = op->kind == OP_scores, of_decoder = strncmp(op->where, "decoder", 7) == 0;
        if (!is_scores && op->kind != OP_weighted_sum) continue;
        const Dtype own = !is_scores && p->attention == DTYPE_I8 ? DTYPE_BF16 : p->attention;
        const Dtype kept = of_decoder && p->cache != DTYPE_F32 ? p->cache : own;
        if (is_scores) assert_int_equal(rounded_to(g, op->inputs[0]), p->attention);
        if (g->tensors[op->inputs[1]].kind == TENSOR_STATE) continue; /* as `encode` has rounded it */
        assert_int_equal(rounded_to(g, op->inputs[1]), kept);
    }
    for (int s = 0; s < g->n_states; s++) {
        assert_int_equal(g->states[s].dtype, p->cache);
        if (g != module->entries[ENTRY_ENCODE]) continue;
        const Dtype left = rounded_to(g, g->states[s].out);
        if (p->cache != DTYPE_F32) assert_int_equal(left, p->cache);
        else if (p->attention != DTYPE_I8) assert_int_equal(left, p->attention);
        else assert_int_equal(left, strstr(g->states[s].name, "values") ? DTYPE_BF16 : DTYPE_I8);
    }
}

static void is_rounded_everywhere(const Module *plain, const Module *narrow) {
    (void)plain;
    const Module *module = graph_rewrite(arena, narrow, &precision_pass, NULL);
    const Precision *precision =
        module->model->alone ? &module->model->alone->precision : &module->model->precision;
    Graph *const *graphs = module->entries;
    for (int i = 0; i < ENTRY_COUNT; i++) {
        if (!graphs[i]) continue;
        rows_of_products(module, graphs[i], precision);
        rows_of_attention(module, graphs[i], precision);
    }
}

static void rounded_everywhere(void **state) {
    (void)state;
    each(is_rounded_everywhere);
}

/* ------------------------------------------------------------------ what nothing reads */

/* A product of activated gates with rows leaves the rows alone. */
static int without_gates(Rewrite *r, const Op *op) {
    return op->kind == OP_mul ? rewrite_tensor(r, op->inputs[1]) : rewrite_copy(r, op);
}

static const RewritePass ungated = {.name = "ungated", .op = without_gates};

static void dead_go(void **state) {
    (void)state;
    const Module *old = built(BOTH("weights f32")), *module = graph_rewrite(arena, old, &ungated, NULL);
    const Graph *g = module->entries[ENTRY_FORWARD];
    /* Each of two layers loses the product, the activation and the projection of the gate with matrix and bias. */
    assert_int_equal(g->n_ops, old->entries[ENTRY_FORWARD]->n_ops - 6);
    assert_int_equal(g->n_tensors, old->entries[ENTRY_FORWARD]->n_tensors - 10);
    for (int t = 0; t < g->n_tensors; t++) assert_null(strstr(g->tensors[t].name, "gate"));
    assert_int_equal(module->weights.count, old->weights.count); /* a file still has them */
    assert_true(difference(module, old) > 0);
}

/* ------------------------------------------------------------------ what the planner does not know */

/* Adds an operation of that kind, with these attributes, after the one that made t. */
static int followed(Rewrite *r, const Op *by, int t, OpKind kind, OpAttributes a) {
    return rewrite_add(r, by, kind, a, r->to->tensors[t], 1, &t);
}

/* Halves the weights of each attention. */
static int with_halved(Rewrite *r, const Op *op) {
    const int t = rewrite_copy(r, op);
    return op->kind == OP_softmax ? followed(r, op, t, OP_scale, (OpAttributes){.scale = 0.5}) : t;
}

/* Caps the scores of each attention before their biases. */
static int with_caps(Rewrite *r, const Op *op) {
    const int t = rewrite_copy(r, op);
    return op->kind == OP_scores ? followed(r, op, t, OP_softcap, (OpAttributes){.cap = 2}) : t;
}

/* Takes 1 from the scores of later keys. */
static int with_conditions(Rewrite *r, const Op *op) {
    const int t = rewrite_copy(r, op);
    const PairRule *query = pair_leaf(arena, PAIR_query), *key = pair_leaf(arena, PAIR_key);
    const PairRule *later = pair_apply(arena, PAIR_below, query, key);
    const PairRule *rule = pair_apply(arena, PAIR_sub, pair_leaf(arena, PAIR_score), later);
    return op->kind == OP_scores ? followed(r, op, t, OP_rescore, (OpAttributes){.rule = rule}) : t;
}

/* Reads the table of distances at half the key's position, which is no whole number. */
static int with_index(Rewrite *r, const Op *op) {
    Op copy = *op;
    const PairRule *half = pair_apply(arena, PAIR_div, pair_leaf(arena, PAIR_key), pair_constant(arena, 2));
    if (op->kind == OP_rescore)
        copy.a.rule = pair_apply(arena, PAIR_add, pair_leaf(arena, PAIR_score), pair_table(arena, 0, "t", half));
    return rewrite_as(r, &copy, rewrite_inputs(r, op));
}

/* The product by distance comes after the scale of scores. */
static int with_scaled(Rewrite *r, const Op *op) {
    Op copy = *op;
    if (op->kind == OP_scores) copy.a.scale = 2;
    return rewrite_as(r, &copy, rewrite_inputs(r, op));
}

static void unknown_is_refused(void **state) {
    (void)state;
    static const char content[] = "model m { d_model 8, vocab 11, encoder { seq <= 6, layers 1 {\n"
                                  "attention self { heads 2, position content by_query rows 9 } } } }";
    const struct {
        const char *spec;
        RewritePass pass;
        const char *refusal;
    } cases[] = {
        {BOTH("weights f32"), {.name = "halved", .op = with_halved}, "spec:3:12: the generator cannot emit a softmax"},
        {BOTH("weights f32"), {.name = "caps", .op = with_caps}, "this operation on scores yet"},
        {BOTH("weights f32"), {.name = "conditions", .op = with_conditions}, "a score with a condition yet"},
        {BOTH("weights f32"), {.name = "index", .op = with_index}, "other than comparisons of whole numbers yet"},
        {content, {.name = "scaled", .op = with_scaled}, "products by distance after scores that are scaled yet"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const Module *module = graph_rewrite(arena, built(cases[i].spec), &cases[i].pass, NULL);
        assert_true(isfinite(forward_numbers(module)->data[0]));
        assert_true(FAILS(plan_model(arena, module, false)));
        message_holds(EXIT_CANNOT, cases[i].refusal);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(built_plain), TEST(each_pass), TEST(rounded_everywhere), TEST(dead_go),
                                       TEST(unknown_is_refused)};
    return cmocka_run_group_tests_name("rewrite", tests, NULL, NULL);
}
