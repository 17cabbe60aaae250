/* test_interp_attention.c: scores, softmax, weighted sums and rows behind others, against values worked another way. */
#include "one_op.h"

#include <float.h>
#include <string.h>

/* ------------------------------------------------------------------ scores and mixing */

/* Six heads over two key heads: heads 0 to 2 read key head 0, the others key head 1. */
static void grouped_scores_and_mix(void **state) {
    (void)state;
    enum { N = 3, M = 5, H = 6, G = 2, D = 3 };
    static const int key_head[H] = {0, 0, 0, 1, 1, 1};
    const float *q = drawn("q", N * H * D), *k = drawn("k", M * G * D), *w = drawn("w", H * N * M);
    int key = FLOATS(k, M, G * D);
    const double *out = RUN(scores, A(.scale = 0.3, .heads = H, .kv_heads = G, .head_dim = D),
                            INPUTS(FLOATS(q, N, H * D), key), H, N, M);
    const double *mixed =
        RUN(weighted_sum, A(.heads = H, .kv_heads = G, .head_dim = D), INPUTS(FLOATS(w, H, N, M), key), N, H * D);
    for (int h = 0; h < H; h++)
        for (int i = 0; i < N; i++) {
            double sum[D] = {0};
            for (int j = 0; j < M; j++) {
                const float *a = q + i * H * D + h * D, *b = k + j * G * D + key_head[h] * D;
                near(out[(h * N + i) * M + j],
                     0.3 * ((double)a[0] * (double)b[0] + (double)a[1] * (double)b[1] + (double)a[2] * (double)b[2]));
                for (int c = 0; c < D; c++) sum[c] += (double)w[(h * N + i) * M + j] * (double)b[c];
            }
            for (int c = 0; c < D; c++) near(mixed[i * H * D + h * D + c], sum[c]);
        }
}

static void additive_scores(void **state) {
    (void)state;
    enum { N = 2, M = 3, D = 5 };
    const float *q = drawn("q", N * D), *k = drawn("k", M * D), *v = drawn("v", D);
    const double *out =
        RUN(additive_scores, A(.scale = 0.5), INPUTS(FLOATS(q, N, D), FLOATS(k, M, D), FLOATS(v, D)), 1, N, M);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < M; j++) {
            double sum = 0;
            for (int c = 0; c < D; c++) {
                double z = (double)q[i * D + c] + (double)k[j * D + c];
                sum += (double)v[c] * (1 - 2 / (exp(2 * z) + 1));
            }
            near(out[i * M + j], sum / 2);
        }
}

/* Luong's general score, q . W k, through the builder: one head, W the only weight. */
static void general_scores(void **state) {
    (void)state;
    enum { N = 2, M = 3, Q = 3, K = 4, V = 2 };
    const char *text = "model m { export attention, attention cross { score general, d_query 3, d_key 4, d_value 2, "
                       "queries <= 5, keys <= 5 } }";
    Compilation spec = compiled(text, STAGE_REWRITE);
    Module *m = spec.module;
    assert_int_equal(m->weights.count, 1);
    Weights *weights = weights_load(arena, spec.model, &m->weights, "random:4", false);
    const float *w = weights->data[0], *q = drawn("q", N * Q), *k = drawn("k", M * K), *v = drawn("v", M * V);
    InputArray in[] = {{IN_query, DTYPE_F32, N, q}, {IN_key, DTYPE_F32, M, k}, {IN_value, DTYPE_F32, M, v}};
    Interpretation *result = interpret(arena, m, m->entries[ENTRY_FORWARD], weights, in, 3, (int64_t[4]){N, M});
    for (int o = 0; o < result->n_outputs; o++)
        for (int i = 0; i < N; i++) {
            double p[M], total = 0, context[V] = {0};
            for (int j = 0; j < M; j++) {
                double score = 0;
                for (int a = 0; a < Q; a++)
                    for (int b = 0; b < K; b++)
                        score += (double)q[i * Q + a] * (double)w[a * K + b] * (double)k[j * K + b];
                total += p[j] = exp(score);
            }
            for (int j = 0; j < M; j++)
                for (int c = 0; c < V; c++) context[c] += p[j] / total * (double)v[j * V + c];
            bool map = result->outputs[o].role == OUT_attention;
            for (int c = 0; c < (map ? M : V); c++)
                near(result->outputs[o].data[i * (map ? M : V) + c], map ? p[c] / total : context[c]);
        }
}

/* The value of a key that a query does not see is left alone, whatever stands there; that of a key with a weight of 0
 * is not: the third query sees the second key, but its score is -inf. */
static void hidden_values(void **state) {
    (void)state;
    float scores[] = {1, 0, 0, 1, 0, -INFINITY}, v[] = {3, INFINITY};
    uint8_t mask[] = {1, 0, 0, 1, 1, 1};
    const PairRule *given = rule_given(arena, 0);
    int inputs[] = {FLOATS(scores, 1, 3, 2), input_of(DTYPE_U8, mask, DIMS(3, 2))};
    int weights = add_op(OP_softmax, A(.heads = 1, .rule = given), 2, inputs, DIMS(1, 3, 2));
    const double *out = RUN(weighted_sum, A(.heads = 1, .kv_heads = 1, .head_dim = 1, .rule = given),
                            INPUTS(weights, FLOATS(v, 2, 1), inputs[1]), 3, 1);
    near(out[0], 3), near(out[1], INFINITY), near(out[2], NAN);
}

/* ------------------------------------------------------------------ softmax */

enum { HEADS = 2, N = 5, M = 6 };

/* What the rule of a softmax says of positions; `window` 0: nothing. A prefix and a mask are its inputs. */
typedef struct Rule {
    bool causal;
    int64_t window, sink;
} Rule;

static const PairRule *rule_of(Rule r, int prefix, int mask) {
    const PairRule *rule = prefix >= 0 ? rule_prefix(arena, prefix) : r.causal ? rule_causal(arena) : NULL;
    if (r.window) rule = pair_both(arena, rule, rule_window(arena, r.window, r.sink));
    return mask < 0 ? rule : pair_both(arena, rule, rule_given(arena, mask));
}

/* `rows`: N strings of M letters, x where the query sees the key. */
static void check_softmax(const Rule *r, const uint8_t *mask, const int64_t *prefix, const float *sink,
                          const char *const *rows) {
    const float *x = drawn("x", HEADS * N * M);
    int inputs[2 + MOST_PAIR_INPUTS] = {FLOATS(x, HEADS, N, M)}, n = 1;
    OpAttributes at = {.heads = HEADS, .has_sink = sink != NULL};
    if (sink) inputs[n++] = FLOATS(sink, HEADS);
    const int first = n;
    if (mask) inputs[n++] = input_of(DTYPE_U8, mask, DIMS(N, M));
    if (prefix) inputs[n++] = input_of(DTYPE_I64, prefix, DIMS(1));
    at.rule = rule_of(*r, prefix ? n - 1 - first : -1, mask ? 0 : -1);
    const double *out = run(OP_softmax, at, n, inputs, DIMS(HEADS, N, M));
    for (int h = 0; h < HEADS; h++)
        for (int i = 0; i < N; i++) {
            double sum = sink ? exp((double)sink[h]) : 0;
            const float *row = x + (h * N + i) * M;
            for (int j = 0; j < M; j++) sum += rows[i][j] == 'x' ? exp((double)row[j]) : 0;
            for (int j = 0; j < M; j++)
                near(out[(h * N + i) * M + j], rows[i][j] == 'x' ? exp((double)row[j]) / sum : 0);
        }
}

#define SEES(...) ((const char *const[]){__VA_ARGS__})

static void softmax_masks(void **state) {
    static const float sink[] = {0.7f, -2};
    static const uint8_t mask[N * M] = {1, 0, 1, 1,      1, 0, /**/ 0, 0, 0, 0,      0, 0, /**/ 1, 1, 1,
                                        1, 1, 1, /**/ 0, 0, 0, 0,      0, 1, /**/ 0, 1, 0, 1,      0, 1};
    for (int sinks = 0; sinks < 2; sinks++) {
        const float *s = sinks ? sink : NULL;
        int64_t prefix = 3;
#define CHECK(attributes, mask, prefix, ...) \
    end(state), begin_graph(state); \
    check_softmax(&(Rule){attributes}, mask, prefix, s, SEES(__VA_ARGS__))
        CHECK(0, NULL, NULL, "xxxxxx", "xxxxxx", "xxxxxx", "xxxxxx", "xxxxxx");
        CHECK(.causal = true, NULL, NULL, "x.....", "xx....", "xxx...", "xxxx..", "xxxxx.");
        CHECK(.window = 2, NULL, NULL, "xx....", "xxx...", ".xxx..", "..xxx.", "...xxx");
        CHECK(.window = 1, NULL, NULL, "x.....", ".x....", "..x...", "...x..", "....x.");
        end(state), begin_graph(state);
        check_softmax(&(Rule){.causal = true, .window = 2}, NULL, NULL, s,
                      SEES("x.....", "xx....", ".xx...", "..xx..", "...xx."));
        end(state), begin_graph(state);
        check_softmax(&(Rule){.causal = true, .window = 2, .sink = 1}, NULL, NULL, s,
                      SEES("x.....", "xx....", "xxx...", "x.xx..", "x..xx."));
        end(state), begin_graph(state);
        check_softmax(&(Rule){.window = 1, .sink = 2}, NULL, NULL, s,
                      SEES("xx....", "xx....", "xxx...", "xx.x..", "xx..x."));
        CHECK(0, mask, NULL, "x.xxx.", "......", "xxxxxx", ".....x", ".x.x.x");
        CHECK(.causal = true, mask, NULL, "x.....", "......", "xxx...", "......", ".x.x..");
        CHECK(0, NULL, &prefix, "xxx...", "xxx...", "xxx...", "xxxx..", "xxxxx.");
        CHECK(0, mask, &prefix, "x.x...", "......", "xxx...", "......", ".x.x..");
        end(state), begin_graph(state);
        check_softmax(&(Rule){.window = 2}, mask, &prefix, s,
                      SEES("x.....", "......", ".xx...", "......", "...x.."));
        prefix = 0;
        CHECK(0, NULL, &prefix, "x.....", "xx....", "xxx...", "xxxx..", "xxxxx.");
        prefix = 6;
        CHECK(.causal = true, NULL, &prefix, "xxxxxx", "xxxxxx", "xxxxxx", "xxxxxx", "xxxxxx");
#undef CHECK
    }
}

/* x, which is positive, in 8 significant bits, by its bits in f32. */
static double eight_bits(double x) {
    const float single = (float)x;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
    float rounded;
    memcpy(&rounded, &bits, sizeof rounded);
    return (double)rounded;
}

/* Weights in bf16 are the same, but for a factor, whatever whole power of 2 they are taken over. */
static void rounded_weights(void **state) {
    (void)state;
    const float *x = drawn("x", HEADS * N * M), sink[] = {0.5f, -1};
    const int scores = FLOATS(x, HEADS, N, M);
    const double *out = RUN(softmax, A(.dtype = DTYPE_BF16), INPUTS(scores), HEADS, N, M);
    const double *sunk = RUN(softmax, A(.dtype = DTYPE_BF16, .has_sink = true), INPUTS(scores, FLOATS(sink, HEADS)),
                             HEADS, N, M);
    const double *plain = RUN(softmax, A(0), INPUTS(scores), HEADS, N, M);
    bool differs = false;
    for (int r = 0; r < HEADS * N; r++) {
        double sum = 0;
        for (int j = 0; j < M; j++) sum += eight_bits(exp((double)x[r * M + j]));
        for (int j = 0; j < M; j++) {
            const double weight = eight_bits(exp((double)x[r * M + j]));
            near(out[r * M + j], weight / sum);
            near(sunk[r * M + j], weight / (sum + exp((double)sink[r / N])));
            differs |= fabs(out[r * M + j] - plain[r * M + j]) > 1e-4;
        }
    }
    assert_true(differs);
}

static void softmax_at_the_edges(void **state) {
    (void)state;
    float x[] = {1000, 999, -1000, NAN, 1, 2, -INFINITY, 0, 0, INFINITY, 0, 0}, far = 2000;
    uint8_t mask[] = {1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 0};
    int in = FLOATS(x, 1, 4, 3), seen = input_of(DTYPE_U8, mask, DIMS(4, 3)), sink = FLOATS(&far, 1);
    const double *out = RUN(softmax, A(.rule = rule_given(arena, 0)), INPUTS(in, seen), 1, 4, 3);
    near(out[0], 1 / (1 + exp(-1))), near(out[1], 1 / (1 + exp(1))), near(out[2], 0);
    near(out[3], 0), near(out[4], 1 / (1 + exp(1))),
        near(out[5], 1 / (1 + exp(-1))); /* the hidden NaN does not count */
    near(out[6], 0), near(out[7], 0.5), near(out[8], 0.5);
    near(out[9], NAN), near(out[10], NAN), near(out[11], 0);
    const double *all = RUN(softmax, A(0), INPUTS(in), 1, 4, 3);
    for (int j = 3; j < 6; j++) near(all[j], NAN);
    const double *sunk = RUN(softmax, A(.has_sink = true), INPUTS(in, sink), 1, 4, 3);
    for (int j = 0; j < 3; j++) near(sunk[j], 0); /* the sink takes it all */
}

/* ------------------------------------------------------------------ rows behind others */

static void same(const double *found, const double *wanted, int64_t count) {
    for (int64_t i = 0; i < count; i++) near(found[i], wanted[i]);
}

enum { ALL = 5, PAST = 2, LAST = 3 }; /* five rows at once, and the last three with two before them */

static void placed_rows_behind_others(void **state) {
    (void)state;
    const float *x = drawn("x", ALL * 8), *table = drawn("table", 12 * 4);
    int t = FLOATS(table, 12, 4), all = FLOATS(x, ALL, 8), last = FLOATS(x + PAST * 8, LAST, 8);
    past = PAST;
    const double *rows = RUN(take_rows, A(.offset = 1, .past = 1), INPUTS(t), LAST, 4);
    for (int i = 0; i < LAST * 4; i++) near(rows[i], table[(1 + PAST) * 4 + i]);
    for (int offset = 0; offset <= 5; offset++) { /* 5: there are not more rows, the first table serves */
        OpAttributes a = {.heads = 1, .head_dim = 8, .width = 8, .offset = offset};
        const double *whole = RUN(rope, a, INPUTS(all, t, t), ALL, 8);
        a.past = 1;
        same(RUN(rope, a, INPUTS(last, t, t), LAST, 8), whole + PAST * 8, LAST * 8);
    }
}

static void seen_rows_behind_others(void **state) {
    (void)state;
    static const uint8_t mask[ALL * M] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1,
                                          1, 0, 1, 1, 0, 1, 1, 1, 0, 1, 0, 0, 1, 1, 1};
    const float *x = drawn("x", HEADS * ALL * M), *bias = drawn("bias", HEADS * 11), slopes[] = {0.5f, -3};
    float some[HEADS * LAST * M];
    for (int i = 0; i < HEADS * LAST * M; i++) some[i] = x[i + (i / (LAST * M) + 1) * PAST * M];
    int64_t prefix = 4;
    int all = FLOATS(x, HEADS, ALL, M), last = FLOATS(some, HEADS, LAST, M), s = FLOATS(slopes, HEADS),
        b = FLOATS(bias, HEADS, 11), first = input_of(DTYPE_I64, &prefix, DIMS(1)),
        seen = input_of(DTYPE_U8, mask, DIMS(ALL, M)), seen_last = input_of(DTYPE_U8, mask + PAST * M, DIMS(LAST, M));
    const struct {
        OpKind kind;
        OpAttributes a;
        int n, with, with_last;
    } ops[] = {
        {OP_rescore, A(.rule = rule_slopes(arena, NULL, 1)), 2, s, s},
        {OP_rescore, A(.rule = rule_by_distance(arena, 5)), 2, b, b},
        {OP_softmax, A(.rule = rule_of((Rule){.causal = true}, -1, -1)), 1, 0, 0},
        {OP_softmax, A(.rule = rule_of((Rule){.window = 2}, -1, -1)), 1, 0, 0},
        {OP_softmax, A(.rule = rule_of((Rule){.causal = true, .window = 2, .sink = 1}, -1, -1)), 1, 0, 0},
        {OP_softmax, A(.rule = rule_of((Rule){.causal = true}, 0, -1)), 2, first, first},
        {OP_softmax, A(.rule = rule_of((Rule){.causal = true}, -1, 0)), 2, seen, seen_last},
    };
    past = PAST;
    for (size_t o = 0; o < sizeof ops / sizeof *ops; o++) {
        OpAttributes a = ops[o].a;
        const double *whole = run(ops[o].kind, a, ops[o].n, INPUTS(all, ops[o].with), DIMS(HEADS, ALL, M));
        a.past = 1;
        const double *found = run(ops[o].kind, a, ops[o].n, INPUTS(last, ops[o].with_last), DIMS(HEADS, LAST, M));
        for (int h = 0; h < HEADS; h++) same(found + h * LAST * M, whole + (h * ALL + PAST) * M, LAST * M);
    }
}

static void append(void **state) {
    (void)state;
    enum { ROWS_IN = 2, D = 3 };
    static const double held[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    const float *x = drawn("x", ROWS_IN * D);
    Tensor before = {.kind = TENSOR_STATE, .name = "before", .dtype = DTYPE_F32, .rank = 2, .dims = {{1, 6}, {0, D}}};
    Tensor result = {.name = "result", .dtype = DTYPE_F32, .rank = 2, .dims = {{2, 6}, {0, D}}};
    const int inputs[] = {graph_tensor(arena, &graph, before), FLOATS(x, ROWS_IN, D)};
    const Op op = {.kind = OP_append, .inputs = inputs, .n_inputs = 2, .where = "test"};
    graph.n_symbols = 2;
    int t = graph_op(arena, &graph, op, result);
    graph_state(arena, &graph, (GraphState){.name = "rows", .in = op.inputs[0], .out = t});
    verify(&module, &graph, "test_interp");
    Weights none = {0};
    for (int64_t rows = 0; rows <= 4; rows += 4) {
        const InterpretHow how = {.states = (const double *[]){rows ? held : NULL}};
        Interpretation *in = interpret_as(arena, &module, &graph, &none, arrays, 1,
                                          (int64_t[4]){rows, rows + ROWS_IN}, &how);
        same(in->tensors[t], held, rows * D);
        for (int i = 0; i < ROWS_IN * D; i++) near(in->tensors[t][rows * D + i], x[i]);
    }
    const int64_t wrong[4] = {3, 6};
    assert_true(FAILS(interpret_as(arena, &module, &graph, &none, arrays, 1, wrong,
                                   &(InterpretHow){.states = (const double *[]){held}})));
    assert_string_equal(trap.message, "2 rows behind 3 are not 6");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OP_TEST(grouped_scores_and_mix),
        OP_TEST(additive_scores),
        OP_TEST(general_scores),
        OP_TEST(hidden_values),
        OP_TEST(softmax_masks),
        OP_TEST(rounded_weights),
        OP_TEST(softmax_at_the_edges),
        OP_TEST(placed_rows_behind_others),
        OP_TEST(seen_rows_behind_others),
        OP_TEST(append),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
