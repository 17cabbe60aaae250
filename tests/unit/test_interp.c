/* test_interp.c: every op of ops.def and every derived tensor against values worked another way. */
#include "../../compiler/attnc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <complex.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static Arena *arena;
static Graph graph;
static Module module;
static InputArray arrays[MAX_GRAPH_INPUTS];
static int64_t past; /* the value of symbol 1 */

static int begin(void **state) {
    (void)state;
    arena = arena_new();
    past = 0;
    graph = (Graph){.name = "test", .symbols = {{"past", 0, 6}, {"total", 1, 6}}, .n_symbols = 1};
    module = (Module){.forward = &graph};
    return 0;
}

static int end(void **state) {
    (void)state;
    arena_free(arena);
    return 0;
}

/* ------------------------------------------------------------------ a graph of one op */

static int64_t sizes(Tensor *tensor, int rank, const int64_t *dims) {
    int64_t count = 1;
    tensor->rank = rank;
    for (int d = 0; d < rank; d++) {
        tensor->dims[d] = (Dim){0, dims[d]};
        count *= dims[d];
    }
    return count;
}

static int input_of(Dtype dtype, const void *data, int rank, const int64_t *dims) {
    Tensor tensor = {.kind = TENSOR_INPUT, .name = arena_printf(arena, "input%d", graph.n_inputs), .dtype = dtype};
    sizes(&tensor, rank, dims);
    int t = graph_tensor(arena, &graph, tensor);
    arrays[graph.n_inputs] = (InputArray){tensor.name, dtype, dims[0], data};
    graph.inputs[graph.n_inputs++] = (GraphInput){.name = tensor.name, .tensor = t};
    return t;
}

#define DIMS(...) (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__}
#define FLOATS(data, ...) input_of(DTYPE_F32, data, DIMS(__VA_ARGS__))
#define A(...) ((OpAttributes){__VA_ARGS__})

/* Numbers around 0 with a spread of about 1; the same for the same name. */
static float *drawn(const char *name, int64_t count) {
    float *out = arena_array(arena, (size_t)count, sizeof *out);
    random_normal(77, name, 0.1, 1, count, out);
    return out;
}

/* The result's number in the graph. */
static int add_op(OpKind kind, OpAttributes a, int n, const int *inputs, int rank, const int64_t *dims) {
    Tensor result = {.name = "result", .dtype = DTYPE_F32};
    sizes(&result, rank, dims);
    Op op = {.kind = kind, .n_inputs = n, .a = a, .where = "test"};
    for (int i = 0; i < n; i++) op.inputs[i] = inputs[i];
    return graph_op(arena, &graph, op, result);
}

static const double *run(OpKind kind, OpAttributes a, int n, const int *inputs, int rank, const int64_t *dims) {
    int t = add_op(kind, a, n, inputs, rank, dims);
    verify(&module, &graph, "test_interp");
    Weights none = {0};
    Interpretation *in = interpret(arena, &module, &graph, &none, arrays, graph.n_inputs, (int64_t[4]){past});
    return in->tensors[t];
}

#define RUN(kind, a, inputs, ...) run(OP_##kind, a, (int)(sizeof(inputs) / sizeof(int)), inputs, DIMS(__VA_ARGS__))
#define INPUTS(...) ((int[]){__VA_ARGS__})

static void near(double found, double wanted) {
    if (isnan(wanted)   ? !isnan(found)
        : isinf(wanted) ? found != wanted
                        : !(fabs(found - wanted) <= 1e-12 * (1 + fabs(wanted))))
        fail_msg("%.17g is not %.17g", found, wanted);
}

/* ------------------------------------------------------------------ rows and columns */

static void embed(void **state) {
    (void)state;
    const float *table = drawn("table", 7 * 5);
    int64_t ids[] = {6, 0, 3, 3};
    const double *out = RUN(embed, A(0), INPUTS(input_of(DTYPE_I64, ids, DIMS(4)), FLOATS(table, 7, 5)), 4, 5);
    for (int i = 0; i < 4; i++)
        for (int c = 0; c < 5; c++) near(out[i * 5 + c], table[ids[i] * 5 + c]);
}

static void take_rows(void **state) {
    (void)state;
    const float *table = drawn("table", 7 * 3);
    const double *out = RUN(take_rows, A(.offset = 2), INPUTS(FLOATS(table, 7, 3)), 4, 3);
    for (int i = 0; i < 12; i++) near(out[i], table[6 + i]);
}

/* Pixel (c, y, x) lands in the square (y / p, x / p), at (c, y % p, x % p) of it. */
static void patches(void **state) {
    (void)state;
    enum { H = 6, W = 9, P = 3 };
    const float *pixels = drawn("pixels", 3 * H * W);
    const double *out = RUN(patches, A(.patch = P), INPUTS(FLOATS(pixels, 3, H, W)), 6, 27);
    for (int c = 0; c < 3; c++)
        for (int y = 0; y < H; y++)
            for (int x = 0; x < W; x++)
                near(out[(y / P * (W / P) + x / P) * 27 + c * 9 + y % P * 3 + x % P], pixels[(c * H + y) * W + x]);
}

static void prepend(void **state) {
    (void)state;
    const float *a = drawn("a", 3), *b = drawn("b", 3), *x = drawn("x", 6);
    int rows[] = {FLOATS(a, 3), FLOATS(b, 3), FLOATS(x, 2, 3)};
    const double *out = RUN(prepend, A(0), rows, 4, 3);
    for (int c = 0; c < 3; c++) {
        near(out[c], a[c]);
        near(out[3 + c], b[c]);
        near(out[6 + c], x[c]);
        near(out[9 + c], x[3 + c]);
    }
    out = RUN(prepend, A(0), INPUTS(rows[1], rows[2]), 3, 3);
    near(out[2], b[2]);
    near(out[8], x[5]);
}

static void sums_and_products(void **state) {
    (void)state;
    const float *a = drawn("a", 15), *b = drawn("b", 15), *row = drawn("row", 5);
    int x = FLOATS(a, 3, 5), y = FLOATS(b, 3, 5), z = FLOATS(row, 5);
    const double *sum = RUN(add, A(.scale = -0.5), INPUTS(x, y), 3, 5),
                 *each = RUN(add, A(.scale = 2), INPUTS(x, z), 3, 5);
    const double *product = RUN(mul, A(0), INPUTS(x, y), 3, 5), *scaled = RUN(scale, A(.scale = 3), INPUTS(x), 3, 5);
    for (int i = 0; i < 15; i++) {
        near(sum[i], (double)a[i] - 0.5 * (double)b[i]);
        near(each[i], (double)a[i] + 2.0 * (double)row[i % 5]);
        near(product[i], (double)a[i] * (double)b[i]);
        near(scaled[i], 3.0 * (double)a[i]);
    }
}

/* More columns than a block of the interpreter's loop, and odd ones. */
static void linear(void **state) {
    (void)state;
    enum { N = 3, K = 7, D = 67 };
    const float *x = drawn("x", N * K), *w = drawn("w", D * K), *b = drawn("b", D);
    int inputs[] = {FLOATS(x, N, K), FLOATS(w, D, K), FLOATS(b, D)};
    const double *with = RUN(linear, A(0), inputs, N, D),
                 *without = RUN(linear, A(0), INPUTS(inputs[0], inputs[1]), N, D);
    for (int i = 0; i < N; i++)
        for (int c = 0; c < D; c++) {
            long double sum = 0;
            for (int k = K - 1; k >= 0; k--) sum += (long double)x[i * K + k] * (long double)w[c * K + k];
            near(without[i * D + c], (double)sum);
            near(with[i * D + c], (double)(sum + (long double)b[c]));
        }
}

static double activation_of(Activation kind, double x) {
    switch (kind) {
    case ACTIVATION_RELU: return fmax(x, 0);
    case ACTIVATION_GELU: return x * erfc(-x / sqrt(2)) / 2;
    case ACTIVATION_GELU_TANH: return x / (1 + exp(-2 * sqrt(2 / acos(-1)) * (x + 0.044715 * pow(x, 3))));
    case ACTIVATION_SILU: return x * (1 + tanh(x / 2)) / 2;
    case ACTIVATION_RELU2: return pow(fmax(x, 0), 2);
    case ACTIVATION_QUICK_GELU: return x * (1 + tanh(0.851 * x)) / 2;
    case ACTIVATION_TANH: return expm1(2 * x) / (expm1(2 * x) + 2);
    }
    return NAN;
}

static void activations(void **state) {
    (void)state;
    float x[] = {-30, -8.5f, -3, -1.25f, -0.5f, -1e-3f, -1e-20f, 0, 1e-20f, 1e-3f, 0.5f, 0.75f, 1, 2.5f, 6, 17.5f, 30};
    enum { N = sizeof x / sizeof *x };
    int input = FLOATS(x, 1, N);
    for (int kind = 0; kind <= ACTIVATION_TANH; kind++) {
        const double *out = RUN(activation, A(.activation = (Activation)kind), INPUTS(input), 1, N);
        for (int i = 0; i < N; i++) near(out[i], activation_of((Activation)kind, x[i]));
    }
    const double *capped = RUN(softcap, A(.cap = 5), INPUTS(input), 1, N);
    for (int i = 0; i < N; i++) near(capped[i], 5 * (1 - 2 / (exp(2 * (double)x[i] / 5) + 1)));
}

static void activations_at_the_edges(void **state) {
    (void)state;
    float x[] = {NAN, INFINITY, -INFINITY};
    static const double wanted[][3] = {
        [ACTIVATION_RELU] = {NAN, INFINITY, 0},
        [ACTIVATION_GELU] = {NAN, INFINITY, NAN},
        [ACTIVATION_GELU_TANH] = {NAN, INFINITY, NAN},
        [ACTIVATION_SILU] = {NAN, INFINITY, NAN},
        [ACTIVATION_RELU2] = {NAN, INFINITY, 0},
        [ACTIVATION_QUICK_GELU] = {NAN, INFINITY, NAN},
        [ACTIVATION_TANH] = {NAN, 1, -1},
    };
    int input = FLOATS(x, 1, 3);
    for (int kind = 0; kind <= ACTIVATION_TANH; kind++) {
        const double *out = RUN(activation, A(.activation = (Activation)kind), INPUTS(input), 1, 3);
        for (int i = 0; i < 3; i++) near(out[i], wanted[kind][i]);
    }
    const double *capped = RUN(softcap, A(.cap = 5), INPUTS(input), 1, 3);
    near(capped[0], NAN), near(capped[1], 5), near(capped[2], -5);
}

/* Weights of 1e18 make such a result as large as any other: it is no difference of numbers near 1. */
static void far_tails(void **state) {
    (void)state;
    float x[] = {-4, -6, -7.25f, -8, -8.5f, -9, -10};
    enum { N = sizeof x / sizeof *x };
    int input = FLOATS(x, 1, N);
    for (int kind = ACTIVATION_GELU; kind <= ACTIVATION_GELU_TANH; kind++) {
        const double *out = RUN(activation, A(.activation = (Activation)kind), INPUTS(input), 1, N);
        for (int i = 0; i < N; i++) near(out[i] / activation_of((Activation)kind, x[i]), 1);
    }
}

/* ------------------------------------------------------------------ norms */

enum { ROWS = 3, GROUPS = 4, WIDTH = 5 };

typedef struct NormCase {
    bool layernorm, plus_one, bias, weight_per_group;
    int groups;
} NormCase;

static void check_norm(NormCase n) {
    int64_t columns = n.groups * WIDTH, gains = n.weight_per_group ? columns : WIDTH;
    const float *x = drawn("x", ROWS * columns), *w = drawn("w", gains), *b = drawn("b", gains);
    int in = FLOATS(x, ROWS, columns), weight, bias;
    weight = n.weight_per_group ? FLOATS(w, n.groups, WIDTH) : FLOATS(w, WIDTH);
    bias = n.weight_per_group ? FLOATS(b, n.groups, WIDTH) : FLOATS(b, WIDTH);
    OpAttributes a = {.eps = 0.01, .plus_one = n.plus_one, .groups = n.groups};
    const double *out =
        run(n.layernorm ? OP_layernorm : OP_rmsnorm, a, n.bias ? 3 : 2, INPUTS(in, weight, bias), DIMS(ROWS, columns));
    for (int64_t row = 0; row < ROWS * n.groups; row++) {
        const float *from = x + row * WIDTH;
        int64_t first = n.weight_per_group ? row % n.groups * WIDTH : 0;
        double sum = 0, squares = 0;
        for (int c = 0; c < WIDTH; c++) sum += (double)from[c], squares += (double)from[c] * (double)from[c];
        double mean = n.layernorm ? sum / WIDTH : 0, root = sqrt(squares / WIDTH - mean * mean + 0.01);
        for (int c = 0; c < WIDTH; c++) {
            double gain = (double)w[first + c] + (n.plus_one ? 1 : 0), wanted = ((double)from[c] - mean) / root * gain;
            near(out[row * WIDTH + c], wanted + (n.bias ? (double)b[first + c] : 0));
        }
    }
}

static void norms(void **state) {
    for (int bits = 0; bits < 32; bits++) {
        NormCase n = {bits & 1, bits & 2, bits & 4, bits & 8, bits & 16 ? GROUPS : 1};
        if (n.bias && !n.layernorm) continue;
        end(state), begin(state);
        check_norm(n);
    }
}

static void norms_at_the_edges(void **state) {
    (void)state;
    float x[] = {1, 2, NAN, INFINITY, 2, 3, 4, 4, 4}, w[] = {1, 1, 1};
    int in = FLOATS(x, 3, 3), weight = FLOATS(w, 3);
    const double *out = RUN(layernorm, A(.eps = 0, .groups = 1), INPUTS(in, weight), 3, 3);
    for (int i = 0; i < 9; i++) near(out[i], NAN); /* the last row: 0 / 0 */
    out = RUN(rmsnorm, A(.eps = 0, .groups = 1), INPUTS(in, weight), 3, 3);
    for (int i = 0; i < 9; i++) near(out[i], i < 4 ? NAN : i < 6 ? 0 : 1); /* inf / inf, 2 / inf */
}

/* ------------------------------------------------------------------ rotation */

static void check_rope(bool interleaved, int width, int offset, int rows) {
    enum { HEADS = 3, DIM = 7, COLUMNS = HEADS * DIM };
    int pairs = width / 2;
    const float *x = drawn("x", rows * COLUMNS), *turns = drawn("turns", 20 * pairs);
    float *c = drawn("c", 20 * pairs), *s = drawn("s", 20 * pairs);
    for (int i = 0; i < 20 * pairs; i++) c[i] = cosf(turns[i]), s[i] = sinf(turns[i]);
    int inputs[] = {FLOATS(x, rows, COLUMNS), FLOATS(c, 20, pairs), FLOATS(s, 20, pairs)};
    const double *out =
        RUN(rope, A(.heads = HEADS, .head_dim = DIM, .width = width, .interleaved = interleaved, .offset = offset),
            inputs, rows, COLUMNS);
    for (int i = 0; i < rows; i++)
        for (int h = 0; h < HEADS; h++) {
            const float *from = x + i * COLUMNS + h * DIM;
            const double *to = out + i * COLUMNS + h * DIM;
            int row = rows > offset ? i + offset : i;
            for (int p = 0; p < pairs; p++) {
                int re = interleaved ? 2 * p : p, im = interleaved ? 2 * p + 1 : p + pairs;
                double complex turn = (double)c[row * pairs + p] + I * (double)s[row * pairs + p];
                double complex y = ((double)from[re] + I * (double)from[im]) * turn;
                near(to[re], creal(y));
                near(to[im], cimag(y));
            }
            for (int k = width; k < DIM; k++) near(to[k], from[k]);
        }
}

static void ropes(void **state) {
    for (int interleaved = 0; interleaved < 2; interleaved++)
        for (int width = 2; width <= 6; width += 2)
            for (int offset = 0; offset <= 4; offset += 2) {
                end(state), begin(state);
                check_rope(interleaved, width, offset, 4);
            }
}

/* The angle a row of pair i, from the tables. */
static double frequency_of(const Position *p, int64_t rows, int64_t i, double *amplitude) {
    int64_t pairs = p->rope_width / 2;
    double *c = arena_array(arena, (size_t)(rows * pairs), sizeof *c),
           *s = arena_array(arena, (size_t)(rows * pairs), sizeof *s);
    Derived d = {.kind = DERIVED_ROPE_COS, .name = "cos", .shape = {2, {rows, pairs}}, .position = p, .rows = rows};
    derived_fill(&d, NULL, c);
    d.kind = DERIVED_ROPE_SIN;
    derived_fill(&d, NULL, s);
    *amplitude = c[0];
    assert_true(s[i] == 0);
    return atan2(s[pairs + i], c[pairs + i]);
}

typedef struct Spot {
    int pair;
    double frequency;
} Spot;

/* Single precision in the reference: 1e-6 of each. */
static void check_spots(const Position *p, double amplitude, const Spot *spots, int n) {
    for (int i = 0; i < n; i++) {
        double found_amplitude, found = frequency_of(p, 2, spots[i].pair, &found_amplitude);
        if (fabs(found / spots[i].frequency - 1) > 1e-6)
            fail_msg("pair %d: %.9g is not %.9g", spots[i].pair, found, spots[i].frequency);
        near(found_amplitude, amplitude);
    }
}

/* Values of Hugging Face transformers 5.2, modeling_rope_utils.py, head_dim 64. */
static void rope_scalings(void **state) {
    (void)state;
    static const Spot llama3[] = {{0, 1},
                                  {5, 0.128687382},
                                  {10, 0.0165604409},
                                  {13, 0.00483942125},
                                  {14, 0.00321144611},
                                  {15, 0.00137189368},
                                  {16, 0.000524846022},
                                  {17, 0.000178507791},
                                  {20, 3.42810235e-05},
                                  {31, 3.7673226e-07}};
    static const Spot yarn[] = {{0, 1},
                                {8, 0.1},
                                {10, 0.0562341288},
                                {11, 0.039736785},
                                {16, 0.0065384619},
                                {20, 0.00133788679},
                                {23, 0.000333380362},
                                {24, 0.00025},
                                {31, 3.33380376e-05}};
    static const Spot untruncated[] = {
        {8, 0.1}, {11, 0.0407834463}, {16, 0.006556971}, {20, 0.00128563191}, {23, 0.000333380362}};
    Position p = {.kind = POSITION_ROPE,
                  .rope_width = 64,
                  .theta = 500000,
                  .scaling = ROPE_LLAMA3,
                  .factor = 8,
                  .low = 1,
                  .high = 4,
                  .original = 8192};
    check_spots(&p, 1, llama3, 10);
    p = (Position){.kind = POSITION_ROPE,
                   .rope_width = 64,
                   .theta = 10000,
                   .scaling = ROPE_YARN,
                   .factor = 4,
                   .original = 4096,
                   .beta_fast = 32,
                   .beta_slow = 1};
    check_spots(&p, 1.1386294361119891, yarn, 9);
    p.untruncated = true;
    check_spots(&p, 1.1386294361119891, untruncated, 5);
    p.attention_factor = 0.75;
    check_spots(&p, 0.75, untruncated, 5);
    p = (Position){.kind = POSITION_ROPE, .rope_width = 4, .theta = 100, .scaling = ROPE_LINEAR, .factor = 4};
    check_spots(&p, 1, (Spot[]){{0, 0.25}, {1, 0.025}}, 2);
    double near_factors[] = {1, 1.25}, far_factors[] = {2, 4};
    p = (Position){.kind = POSITION_ROPE,
                   .rope_width = 4,
                   .theta = 100,
                   .scaling = ROPE_LONGROPE,
                   .factor = 4,
                   .original = 16,
                   .short_factors = near_factors,
                   .long_factors = far_factors};
    double amplitude;
    near(frequency_of(&p, 16, 1, &amplitude), 0.1 / 1.25);
    near(frequency_of(&p, 17, 1, &amplitude), 0.1 / 4);
    near(amplitude, 1.224744871391589); /* sqrt(1 + ln 4 / ln 16) */
}

/* ------------------------------------------------------------------ other derived tensors */

static void sinusoids(void **state) {
    (void)state;
    static const Sinusoid kinds[] = {SINUSOID_INTERLEAVED, SINUSOID_HALVES, SINUSOID_FAIRSEQ};
    enum { N = 5, W = 6 };
    double out[N * W];
    for (int k = 0; k < 3; k++) {
        Position p = {.kind = POSITION_SINUSOIDAL, .sinusoid = kinds[k], .offset = 2};
        derived_fill(
            &(Derived){.kind = DERIVED_SINUSOIDS, .name = "s", .shape = {2, {N, W}}, .position = &p, .rows = N}, NULL,
            out);
        for (int i = 0; i < N; i++)
            for (int c = 0; c < W / 2; c++) {
                double step = log(10000) * (kinds[k] == SINUSOID_FAIRSEQ ? c / 2.0 : c / 3.0),
                       angle = (i + 2) * exp(-step);
                double complex turn = cexp(I * angle);
                near(out[i * W + (k == 0 ? 2 * c : c)], cimag(turn));
                near(out[i * W + (k == 0 ? 2 * c + 1 : c + 3)], creal(turn));
            }
    }
}

static void alibi(void **state) {
    (void)state;
    static const double published[] = {0.25,       0.0625, 0.015625,
                                       0.00390625, 0.5,    0.125}; /* transformers' build_alibi_tensor, 6 heads */
    double out[6];
    Position p = {.kind = POSITION_ALIBI, .alibi_max = 8};
    derived_fill(
        &(Derived){
            .kind = DERIVED_SLOPES, .name = "s", .shape = {1, {6}}, .position = &p, .heads = 6, .alibi_scale = 0.5},
        NULL, out);
    for (int h = 0; h < 6; h++) near(out[h], 0.5 * published[h]);
    const float *x = drawn("x", 2 * 3 * 4);
    float slopes[] = {0.5f, -3};
    const double *sum = RUN(alibi, A(.heads = 2), INPUTS(FLOATS(x, 2, 3, 4), FLOATS(slopes, 2)), 2, 3, 4);
    for (int h = 0; h < 2; h++)
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 4; j++)
                near(sum[(h * 3 + i) * 4 + j], (double)x[(h * 3 + i) * 4 + j] - (double)slopes[h] * abs(j - i));
}

/* T5Attention._relative_position_bucket of transformers, 32 buckets up to 128. */
static void buckets(void **state) {
    (void)state;
    static const int distances[] = {-200, -128, -127, -91, -64, -50, -32, -17, -16, -12, -9, -8, -7, -1, 0,
                                    1, 7, 8, 9, 12, 16, 17, 31, 32, 50, 64, 91, 127, 128, 200};
    static const int both[] = {15, 15, 15, 15, 14, 13, 12, 10, 10, 9,  8,  8,  7,  1,  0,
                               17, 23, 24, 24, 25, 26, 26, 27, 28, 29, 30, 31, 31, 31, 31};
    static const int back[] = {31, 31, 31, 29, 26, 24, 21, 16, 16, 12, 9, 8, 7, 1, 0,
                               0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0, 0, 0, 0, 0};
    enum { BOUND = 201, HEADS = 2, W = 2 * BOUND - 1 };
    float table[32 * HEADS];
    double *out = arena_array(arena, HEADS * W, sizeof *out);
    for (int i = 0; i < 32 * HEADS; i++) table[i] = (float)(i / HEADS + 100 * (i % HEADS));
    for (int way = 0; way < 2; way++) {
        Position p = {.kind = POSITION_RELATIVE, .buckets = 32, .distance = 128, .bidirectional = way == 0};
        derived_fill(&(Derived){.kind = DERIVED_RELATIVE,
                                .name = "r",
                                .shape = {2, {HEADS, W}},
                                .position = &p,
                                .rows = BOUND,
                                .heads = HEADS},
                     table, out);
        for (int h = 0; h < HEADS; h++)
            for (int k = 0; k < 30; k++)
                near(out[h * W + distances[k] + BOUND - 1], (way ? back[k] : both[k]) + 100 * h);
    }
}

static void relative_bias(void **state) {
    (void)state;
    const float *x = drawn("x", 2 * 3 * 4), *bias = drawn("bias", 2 * 9); /* for a bound of 5: distances -4 to 4 */
    const double *out =
        RUN(relative_bias, A(.heads = 2, .offset = 4), INPUTS(FLOATS(x, 2, 3, 4), FLOATS(bias, 2, 9)), 2, 3, 4);
    for (int h = 0; h < 2; h++)
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 4; j++)
                near(out[(h * 3 + i) * 4 + j], (double)x[(h * 3 + i) * 4 + j] + (double)bias[h * 9 + 4 - i + j]);
}

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
        RUN(mix, A(.heads = H, .kv_heads = G, .head_dim = D), INPUTS(FLOATS(w, H, N, M), key), N, H * D);
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
    Diagnostics diagnostics = diagnostics_new(arena, stderr);
    Model *model =
        resolve(arena, parse(arena, source_from_text(arena, "t", text, strlen(text)), &diagnostics), &diagnostics);
    assert_non_null(model);
    Module *m = build(arena, model);
    assert_int_equal(m->weights.count, 1);
    Weights *weights = weights_load(arena, model, &m->weights, "random:4", false);
    const float *w = weights->data[0], *q = drawn("q", N * Q), *k = drawn("k", M * K), *v = drawn("v", M * V);
    InputArray in[] = {{"query", DTYPE_F32, N, q}, {"key", DTYPE_F32, M, k}, {"value", DTYPE_F32, M, v}};
    Interpretation *result = interpret(arena, m, m->forward, weights, in, 3, (int64_t[4]){N, M});
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
            bool map = strcmp(result->outputs[o].name, "attention") == 0;
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
    int inputs[] = {FLOATS(scores, 1, 3, 2), input_of(DTYPE_U8, mask, DIMS(3, 2))};
    int weights = add_op(OP_softmax, A(.heads = 1, .has_mask = true), 2, inputs, DIMS(1, 3, 2));
    const double *out =
        RUN(mix, A(.heads = 1, .kv_heads = 1, .head_dim = 1), INPUTS(weights, FLOATS(v, 2, 1)), 3, 1);
    near(out[0], 3), near(out[1], INFINITY), near(out[2], NAN);
}

/* ------------------------------------------------------------------ softmax */

enum { HEADS = 2, N = 5, M = 6 };

/* `rows`: N strings of M letters, x where the query sees the key. */
static void check_softmax(const OpAttributes *a, const uint8_t *mask, const int64_t *prefix, const float *sink,
                          const char *const *rows) {
    const float *x = drawn("x", HEADS * N * M);
    int inputs[MAX_OP_INPUTS] = {FLOATS(x, HEADS, N, M)}, n = 1;
    OpAttributes at = *a;
    at.heads = HEADS;
    if (mask) inputs[n++] = input_of(DTYPE_U8, mask, DIMS(N, M)), at.has_mask = true;
    if (prefix) inputs[n++] = input_of(DTYPE_I64, prefix, DIMS(1)), at.has_prefix = true;
    if (sink) inputs[n++] = FLOATS(sink, HEADS), at.has_sink = true;
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
    end(state), begin(state); \
    check_softmax(&A(attributes), mask, prefix, s, SEES(__VA_ARGS__))
        CHECK(0, NULL, NULL, "xxxxxx", "xxxxxx", "xxxxxx", "xxxxxx", "xxxxxx");
        CHECK(.causal = true, NULL, NULL, "x.....", "xx....", "xxx...", "xxxx..", "xxxxx.");
        CHECK(.window = 2, NULL, NULL, "xx....", "xxx...", ".xxx..", "..xxx.", "...xxx");
        CHECK(.window = 1, NULL, NULL, "x.....", ".x....", "..x...", "...x..", "....x.");
        end(state), begin(state);
        check_softmax(&(OpAttributes){.causal = true, .window = 2}, NULL, NULL, s,
                      SEES("x.....", "xx....", ".xx...", "..xx..", "...xx."));
        end(state), begin(state);
        check_softmax(&(OpAttributes){.causal = true, .window = 2, .sink = 1}, NULL, NULL, s,
                      SEES("x.....", "xx....", "xxx...", "x.xx..", "x..xx."));
        end(state), begin(state);
        check_softmax(&(OpAttributes){.window = 1, .sink = 2}, NULL, NULL, s,
                      SEES("xx....", "xx....", "xxx...", "xx.x..", "xx..x."));
        CHECK(0, mask, NULL, "x.xxx.", "......", "xxxxxx", ".....x", ".x.x.x");
        CHECK(.causal = true, mask, NULL, "x.....", "......", "xxx...", "......", ".x.x..");
        CHECK(0, NULL, &prefix, "xxx...", "xxx...", "xxx...", "xxxx..", "xxxxx.");
        CHECK(0, mask, &prefix, "x.x...", "......", "xxx...", "......", ".x.x..");
        end(state), begin(state);
        check_softmax(&(OpAttributes){.window = 2}, mask, &prefix, s,
                      SEES("x.....", "......", ".xx...", "......", "...x.."));
        prefix = 0;
        CHECK(0, NULL, &prefix, "x.....", "xx....", "xxx...", "xxxx..", "xxxxx.");
        prefix = 6;
        CHECK(.causal = true, NULL, &prefix, "xxxxxx", "xxxxxx", "xxxxxx", "xxxxxx", "xxxxxx");
#undef CHECK
    }
}

static void softmax_at_the_edges(void **state) {
    (void)state;
    float x[] = {1000, 999, -1000, NAN, 1, 2, -INFINITY, 0, 0, INFINITY, 0, 0}, far = 2000;
    uint8_t mask[] = {1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 0};
    int in = FLOATS(x, 1, 4, 3), seen = input_of(DTYPE_U8, mask, DIMS(4, 3)), sink = FLOATS(&far, 1);
    const double *out = RUN(softmax, A(.has_mask = true), INPUTS(in, seen), 1, 4, 3);
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
        {OP_alibi, A(.heads = HEADS), 2, s, s},
        {OP_relative_bias, A(.heads = HEADS, .offset = 5), 2, b, b},
        {OP_softmax, A(.causal = true), 1, 0, 0},
        {OP_softmax, A(.window = 2), 1, 0, 0},
        {OP_softmax, A(.causal = true, .window = 2, .sink = 1), 1, 0, 0},
        {OP_softmax, A(.causal = true, .has_prefix = true), 2, first, first},
        {OP_softmax, A(.causal = true, .has_mask = true), 2, seen, seen_last},
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
    static FailureTrap trap;
    const float *x = drawn("x", ROWS_IN * D);
    Tensor before = {.kind = TENSOR_STATE, .name = "before", .dtype = DTYPE_F32, .rank = 2, .dims = {{1, 6}, {0, D}}};
    Tensor result = {.name = "result", .dtype = DTYPE_F32, .rank = 2, .dims = {{2, 6}, {0, D}}};
    Op op = {.kind = OP_append, .n_inputs = 2, .where = "test"};
    op.inputs[0] = graph_tensor(arena, &graph, before), op.inputs[1] = FLOATS(x, ROWS_IN, D);
    graph.n_symbols = 2;
    int t = graph_op(arena, &graph, op, result);
    graph_state(arena, &graph, (GraphState){"rows", op.inputs[0], t, false});
    verify(&module, &graph, "test_interp");
    Weights none = {0};
    for (int64_t rows = 0; rows <= 4; rows += 4) {
        Interpretation *in = interpret_from(arena, &module, &graph, &none, arrays, 1,
                                            (int64_t[4]){rows, rows + ROWS_IN}, (const double *[]){rows ? held : NULL});
        same(in->tensors[t], held, rows * D);
        for (int i = 0; i < ROWS_IN * D; i++) near(in->tensors[t][rows * D + i], x[i]);
    }
    if (failure_trap(&trap) == 0) {
        interpret_from(arena, &module, &graph, &none, arrays, 1, (int64_t[4]){3, 6}, (const double *[]){held});
        failure_release(&trap);
        fail_msg("2 rows behind 3 were 6");
    }
    assert_string_equal(trap.message, "2 rows behind 3 are not 6");
}

/* ------------------------------------------------------------------ heads */

static void pools(void **state) {
    (void)state;
    const float *x = drawn("x", 5 * 3);
    int in = FLOATS(x, 5, 3);
    const double *mean = RUN(pool, A(.pool = POOL_MEAN), INPUTS(in), 1, 3),
                 *first = RUN(pool, A(.pool = POOL_CLS), INPUTS(in), 1, 3);
    const double *most = RUN(pool, A(.pool = POOL_MAX), INPUTS(in), 1, 3),
                 *last = RUN(pool, A(.pool = POOL_LAST), INPUTS(in), 1, 3);
    const double *unit = RUN(l2, A(0), INPUTS(FLOATS(x, 1, 3)), 1, 3);
    for (int c = 0; c < 3; c++) {
        const float *p = x + c;
        near(mean[c], ((double)p[0] + (double)p[3] + (double)p[6] + (double)p[9] + (double)p[12]) * 0.2);
        near(first[c], p[0]);
        near(last[c], p[12]);
        near(most[c], fmaxf(fmaxf(fmaxf(p[0], p[3]), fmaxf(p[6], p[9])), p[12]));
        near(unit[c], (double)x[c] / hypot(hypot((double)x[0], (double)x[1]), (double)x[2]));
    }
}

static void pools_at_the_edges(void **state) {
    (void)state;
    float x[] = {1, -INFINITY, -5, NAN, 2, -7, 3, 4, -6};
    int in = FLOATS(x, 3, 3);
    const double *most = RUN(pool, A(.pool = POOL_MAX), INPUTS(in), 1, 3),
                 *mean = RUN(pool, A(.pool = POOL_MEAN), INPUTS(in), 1, 3);
    near(most[0], NAN), near(most[1], 4), near(most[2], -5);
    near(mean[0], NAN), near(mean[1], -INFINITY), near(mean[2], -6);
    float zero[3] = {0}, odd[3] = {NAN, 1, 2}, tiny[3] = {3e-13f, 4e-13f, 0};
    const double *none = RUN(l2, A(0), INPUTS(FLOATS(zero, 1, 3)), 1, 3),
                 *nan = RUN(l2, A(0), INPUTS(FLOATS(odd, 1, 3)), 1, 3);
    const double *small = RUN(l2, A(0), INPUTS(FLOATS(tiny, 1, 3)), 1, 3);
    for (int c = 0; c < 3; c++) near(none[c], 0), near(nan[c], NAN), near(small[c], (double)tiny[c] / 1e-12);
}

/* Products of which f32 holds the sum, but not the sums on the way: of rounded results that is NaN. */
static void sums_beyond_f32(void **state) {
    (void)state;
    float x[] = {1e20f, 1e20f, 1e20f, 1}, w[] = {1e20f, -1e20f};
    int in = FLOATS(x, 2, 2), weight = FLOATS(w, 1, 2);
    int product = add_op(OP_linear, A(0), 2, (int[]){in, weight}, DIMS(2, 1));
    int score = add_op(OP_scores, A(.heads = 1, .kv_heads = 1, .head_dim = 2, .scale = 1), 2, (int[]){in, weight},
                       DIMS(1, 2, 1));
    verify(&module, &graph, "test_interp");
    Weights none = {0};
    int64_t symbols[4] = {past};
    Interpretation *plain = interpret(arena, &module, &graph, &none, arrays, graph.n_inputs, symbols),
                   *rounded = interpret_rounded(arena, &module, &graph, &none, arrays, graph.n_inputs, symbols, 1, 1);
    near(plain->tensors[product][0], 0), near(plain->tensors[score][0], 0);
    near(rounded->tensors[product][0], NAN), near(rounded->tensors[score][0], NAN);
    w[0] = w[1] = 1;
    rounded = interpret_rounded(arena, &module, &graph, &none, arrays, graph.n_inputs, symbols, 1, 1);
    assert_true(fabs(rounded->tensors[product][0] / 2e20 - 1) < 1e-6);
    x[0] = INFINITY;
    rounded = interpret_rounded(arena, &module, &graph, &none, arrays, graph.n_inputs, symbols, 1, 1);
    near(rounded->tensors[product][0], INFINITY);
}

/* What f32 holds, but not the sum on the way to it: of rounded results that is NaN, each row and column alone. */
static void means_beyond_f32(void **state) {
    (void)state;
    float x[] = {3e38f, 1, 1e38f, 2, 1e38f, 3}, one[] = {1, 1, 1}, none[3] = {0}, scores[] = {1, 1, 1, -1000, 1, 1};
    uint8_t mask[] = {1, 1, 1, 0, 1, 1};
    int in = FLOATS(x, 3, 2), rows = FLOATS(x, 2, 3), gain = FLOATS(one, 3), bias = FLOATS(none, 3);
    int pool = add_op(OP_pool, A(.pool = POOL_MEAN), 1, (int[]){in}, DIMS(1, 2));
    int norm = add_op(OP_layernorm, A(.groups = 1, .eps = 1e-5), 3, (int[]){rows, gain, bias}, DIMS(2, 3));
    int sight = add_op(OP_softmax, A(.heads = 1, .has_mask = true), 2,
                       (int[]){FLOATS(scores, 1, 2, 3), input_of(DTYPE_U8, mask, DIMS(2, 3))}, DIMS(1, 2, 3));
    int mix = add_op(OP_mix, A(.heads = 1, .kv_heads = 1, .head_dim = 2), 2, (int[]){sight, in}, DIMS(2, 2));
    verify(&module, &graph, "test_interp");
    Weights weights = {0};
    int64_t symbols[4] = {past};
    Interpretation *plain = interpret(arena, &module, &graph, &weights, arrays, graph.n_inputs, symbols),
                   *rounded =
                       interpret_rounded(arena, &module, &graph, &weights, arrays, graph.n_inputs, symbols, 1, 1);
    for (int i = 0; i < 2; i++) assert_true(isfinite(plain->tensors[pool][i]));
    near(rounded->tensors[pool][0], NAN), near(rounded->tensors[pool][1], 2);
    for (int i = 0; i < 6; i++) assert_true(isfinite(plain->tensors[norm][i]));
    near(rounded->tensors[norm][0], NAN), near(rounded->tensors[norm][5], 0);
    for (int i = 0; i < 4; i++) assert_true(isfinite(plain->tensors[mix][i]));
    near(rounded->tensors[mix][0], NAN), assert_true(isfinite(rounded->tensors[mix][2]));
}

/* Four steps go four times as far in the same direction; what f32 holds stays, and what it cannot is rounded. */
static void steps_of_rounding(void **state) {
    (void)state;
    float x[] = {0.1f, 1e20f}, gain[] = {0.3f, 1e20f};
    int in = FLOATS(x, 1, 2), by = FLOATS(gain, 1, 2);
    int product = add_op(OP_mul, A(0), 2, (int[]){in, by}, DIMS(1, 2));
    int exact = add_op(OP_scale, A(.scale = 2), 1, (int[]){in}, DIMS(1, 2));
    verify(&module, &graph, "test_interp");
    Weights none = {0};
    int64_t symbols[4] = {past};
    for (uint64_t seed = 1; seed < 20; seed++) {
        const Interpretation *one = interpret_rounded(arena, &module, &graph, &none, arrays, graph.n_inputs, symbols,
                                                      seed, 1),
                             *four = interpret_rounded(arena, &module, &graph, &none, arrays, graph.n_inputs, symbols,
                                                       seed, 4);
        double plain = (double)x[0] * (double)gain[0], moved = one->tensors[product][0] - plain;
        near((double)(float)one->tensors[product][0], one->tensors[product][0]);
        assert_true(moved != 0 && fabs(moved) < 2e-9);
        assert_true(fabs((four->tensors[product][0] - plain) / moved - 4) < 1e-6);
        near(four->tensors[exact][0], 2 * (double)x[0]);
        assert_true(one->tensors[product][1] == four->tensors[product][1]);
        assert_true(one->tensors[product][1] >= (double)FLT_MAX);
    }
}

/* A small sum of large products is no better than they are; one that the terms' last bits make is what it is. */
static void sums_of_larger_terms(void **state) {
    (void)state;
    float x[] = {1.1f, 1.3f, 3, 5}, w[] = {9000.1f, -7600.3f, 5, -3};
    int in = FLOATS(x, 2, 2), weight = FLOATS(w, 2, 2);
    int product = add_op(OP_linear, A(0), 2, (int[]){in, weight}, DIMS(2, 2));
    verify(&module, &graph, "test_interp");
    Weights none = {0};
    int64_t symbols[4] = {past};
    double plain = (double)x[0] * (double)w[0] + (double)x[1] * (double)w[1], least = INFINITY, most = -INFINITY;
    const double last_bit = 0x1p-9; /* of 19780.5, what the terms add up to without their signs */
    for (uint64_t seed = 1; seed < 20; seed++) {
        const double *y = interpret_rounded(arena, &module, &graph, &none, arrays, graph.n_inputs, symbols, seed, 1)
                              ->tensors[product];
        least = fmin(least, y[0]), most = fmax(most, y[0]);
        near(y[3], 0);
    }
    assert_true(least < plain && plain < most);
    near(most - least, last_bit);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(embed),
        TEST(take_rows),
        TEST(patches),
        TEST(prepend),
        TEST(sums_and_products),
        TEST(linear),
        TEST(activations),
        TEST(activations_at_the_edges),
        TEST(far_tails),
        TEST(norms),
        TEST(norms_at_the_edges),
        TEST(ropes),
        TEST(rope_scalings),
        TEST(sinusoids),
        TEST(alibi),
        TEST(buckets),
        TEST(relative_bias),
        TEST(grouped_scores_and_mix),
        TEST(additive_scores),
        TEST(general_scores),
        TEST(hidden_values),
        TEST(softmax_masks),
        TEST(softmax_at_the_edges),
        TEST(placed_rows_behind_others),
        TEST(seen_rows_behind_others),
        TEST(append),
        TEST(pools),
        TEST(pools_at_the_edges),
        TEST(sums_beyond_f32),
        TEST(means_beyond_f32),
        TEST(steps_of_rounding),
        TEST(sums_of_larger_terms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
