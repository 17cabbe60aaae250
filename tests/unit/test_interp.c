/* test_interp.c: the other ops of ops.def and every derived tensor against values worked another way. */
#include "one_op.h"

#include <complex.h>
#include <float.h>
#include <string.h>

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

/* Without the token 7, the rows 0, 2 and 3 are numbers 1, 2 and 3. */
static void tally(void **state) {
    (void)state;
    const int64_t ids[] = {1, 7, 4, 2, 7};
    const double *out = RUN(tally, A(.token = 7), INPUTS(input_of(DTYPE_I64, ids, DIMS(5))), 5, 1);
    static const double counts[] = {1, 1, 2, 3, 3};
    for (int i = 0; i < 5; i++) near(out[i], counts[i]);
}

/* 0.5 * 5 / 3 for the three ids that are not 7 */
static void keep(void **state) {
    (void)state;
    const int64_t ids[] = {7, 3, 7, 4, 0};
    const double *out = RUN(keep, A(.token = 7, .scale = 0.5), INPUTS(input_of(DTYPE_I64, ids, DIMS(5))), 5, 1);
    const double kept = 0.5 * 5 / 3, wanted[] = {0, kept, 0, kept, kept};
    for (int i = 0; i < 5; i++) near(out[i], wanted[i]);
}

static void pick_rows(void **state) {
    (void)state;
    const int64_t ids[] = {1, 7, 4, 7};
    const float counts[] = {1, 1, 2, 2}, *table = drawn("table", 7 * 3);
    const int inputs[] = {FLOATS(table, 7, 3), input_of(DTYPE_I64, ids, DIMS(4)), FLOATS(counts, 4, 1)};
    const double *out = RUN(pick_rows, A(.token = 7, .offset = 2), inputs, 4, 3);
    static const int rows[] = {3, 2, 4, 2};
    for (int i = 0; i < 12; i++) near(out[i], table[rows[i / 3] * 3 + i % 3]);
}

/* Pixel (c, y, x) lands in the square (y / p, x / p), at (c, y % p, x % p) of it. */
static void patches(void **state) {
    (void)state;
    enum { H = 6, W = 9, P = 3 };
    const float *pixels = drawn("pixels", 3 * H * W);
    const double *out = RUN(patches, A(.patch = P, .stride = P), INPUTS(FLOATS(pixels, 3, H, W)), 6, 27);
    for (int c = 0; c < 3; c++)
        for (int y = 0; y < H; y++)
            for (int x = 0; x < W; x++)
                near(out[(y / P * (W / P) + x / P) * 27 + c * 9 + y % P * 3 + x % P], pixels[(c * H + y) * W + x]);
}

/* A window of three rows around every other one; rows beyond the ends are 0. */
static void windows(void **state) {
    (void)state;
    enum { FRAMES = 5, COLUMNS = 2, KERNEL = 3 };
    const float *x = drawn("frames", FRAMES * COLUMNS);
    for (int by_column = 0; by_column < 2; by_column++) {
        const int rows = by_column ? FLOATS(x, COLUMNS, FRAMES) : FLOATS(x, FRAMES, COLUMNS);
        const double *out =
            RUN(windows, A(.kernel = KERNEL, .stride = 2, .by_column = by_column), INPUTS(rows), 3, COLUMNS * KERNEL);
        for (int i = 0; i < 3; i++)
            for (int c = 0; c < COLUMNS; c++)
                for (int tap = 0; tap < KERNEL; tap++) {
                    const int row = 2 * i + tap - 1;
                    const bool inside = row >= 0 && row < FRAMES;
                    const int at = by_column ? c * FRAMES + row : row * COLUMNS + c;
                    near(out[(i * COLUMNS + c) * KERNEL + tap], inside ? (double)x[at] : 0);
                }
    }
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
    case ACTIVATION_relu: return fmax(x, 0);
    case ACTIVATION_gelu: return x * erfc(-x / sqrt(2)) / 2;
    case ACTIVATION_gelu_tanh: return x / (1 + exp(-2 * sqrt(2 / acos(-1)) * (x + 0.044715 * pow(x, 3))));
    case ACTIVATION_silu: return x * (1 + tanh(x / 2)) / 2;
    case ACTIVATION_relu2: return pow(fmax(x, 0), 2);
    case ACTIVATION_quick_gelu: return x * (1 + tanh(0.851 * x)) / 2;
    case ACTIVATION_tanh: return expm1(2 * x) / (expm1(2 * x) + 2);
    case ACTIVATION_softplus: return x > 30 ? x : (double)logl(1 + expl((long double)x));
    case ACTIVATION_mish: return x / (1 + 2 / (exp(x) * (exp(x) + 2)));
    case ACTIVATION_sigmoid: return exp(x) / (1 + exp(x));
    case ACTIVATION_leaky_relu: return fmax(x, 0) + 0.01 * fmin(x, 0);
    case ACTIVATION_elu: return x > 0 ? x : 2 * sinh(x / 2) * exp(x / 2);
    case ACTIVATION_hard_swish: return x * fmin(fmax(x + 3, 0), 6) / 6;
    case ACTIVATION_hard_sigmoid: return fmin(fmax(x + 3, 0), 6) / 6;
    case ACTIVATION_identity: return x;
    case ACTIVATION_COUNT: case MOST_ACTIVATIONS: break;
    }
    return NAN;
}

static void activations(void **state) {
    (void)state;
    float x[] = {-30, -8.5f, -3, -1.25f, -0.5f, -1e-3f, -1e-20f, 0, 1e-20f, 1e-3f, 0.5f, 0.75f, 1, 2.5f, 6, 17.5f, 30};
    enum { N = sizeof x / sizeof *x };
    int input = FLOATS(x, 1, N);
    for (int kind = 0; kind < ACTIVATION_COUNT; kind++) {
        const double *out = RUN(activation, A(.activation = (Activation)kind), INPUTS(input), 1, N);
        for (int i = 0; i < N; i++) near(out[i], activation_of((Activation)kind, x[i]));
    }
    const double *capped = RUN(softcap, A(.cap = 5), INPUTS(input), 1, N);
    for (int i = 0; i < N; i++) near(capped[i], 5 * (1 - 2 / (exp(2 * (double)x[i] / 5) + 1)));
    const double *clipped = RUN(clip, A(.cap = 2), INPUTS(input), 1, N);
    for (int i = 0; i < N; i++) near(clipped[i], fmax(fmin((double)x[i], 2), -2));
}

static void activations_at_the_edges(void **state) {
    (void)state;
    float x[] = {NAN, INFINITY, -INFINITY};
    static const double wanted[][3] = {
        [ACTIVATION_relu] = {NAN, INFINITY, 0},
        [ACTIVATION_gelu] = {NAN, INFINITY, NAN},
        [ACTIVATION_gelu_tanh] = {NAN, INFINITY, NAN},
        [ACTIVATION_silu] = {NAN, INFINITY, NAN},
        [ACTIVATION_relu2] = {NAN, INFINITY, 0},
        [ACTIVATION_quick_gelu] = {NAN, INFINITY, NAN},
        [ACTIVATION_tanh] = {NAN, 1, -1},
        [ACTIVATION_mish] = {NAN, INFINITY, NAN},
        [ACTIVATION_softplus] = {NAN, INFINITY, 0},
        [ACTIVATION_sigmoid] = {NAN, 1, 0},
        [ACTIVATION_leaky_relu] = {NAN, INFINITY, -INFINITY},
        [ACTIVATION_elu] = {NAN, INFINITY, -1},
        [ACTIVATION_hard_swish] = {NAN, INFINITY, NAN},
        [ACTIVATION_hard_sigmoid] = {NAN, 1, 0},
        [ACTIVATION_identity] = {NAN, INFINITY, -INFINITY},
    };
    int input = FLOATS(x, 1, 3);
    for (int kind = 0; kind < ACTIVATION_COUNT; kind++) {
        const double *out = RUN(activation, A(.activation = (Activation)kind), INPUTS(input), 1, 3);
        for (int i = 0; i < 3; i++) near(out[i], wanted[kind][i]);
    }
    const double *capped = RUN(softcap, A(.cap = 5), INPUTS(input), 1, 3);
    near(capped[0], NAN), near(capped[1], 5), near(capped[2], -5);
    const double *clipped = RUN(clip, A(.cap = 5), INPUTS(input), 1, 3);
    near(clipped[0], NAN), near(clipped[1], 5), near(clipped[2], -5);
}

/* Weights of 1e18 make such a result as large as any other: it is no difference of numbers near 1. */
static void far_tails(void **state) {
    (void)state;
    float x[] = {-4, -6, -7.25f, -8, -8.5f, -9, -10};
    enum { N = sizeof x / sizeof *x };
    int input = FLOATS(x, 1, N);
    for (int kind = ACTIVATION_gelu; kind <= ACTIVATION_gelu_tanh; kind++) {
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
        end(state), begin_graph(state);
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
                end(state), begin_graph(state);
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
    const PairRule *table = table_slopes(arena, 6, 8, 0.5);
    derived_fill(&(Derived){.kind = DERIVED_RULE, .name = "s", .shape = {1, {6}}, .rule = table, .rows = 6}, NULL, out);
    for (int h = 0; h < 6; h++) near(out[h], 0.5 * published[h]);
    const float *x = drawn("x", 2 * 3 * 4);
    float slopes[] = {0.5f, -3};
    const double *sum =
        RUN(rescore, A(.rule = rule_slopes(arena, NULL, 1)), INPUTS(FLOATS(x, 2, 3, 4), FLOATS(slopes, 2)), 2, 3, 4);
    for (int h = 0; h < 2; h++)
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 4; j++)
                near(sum[(h * 3 + i) * 4 + j], (double)x[(h * 3 + i) * 4 + j] - (double)slopes[h] * abs(j - i));
}

/* Falcon's build_alibi_tensor of transformers, 12 heads; and the difference of two of its numbers. */
static void key_bias(void **state) {
    (void)state;
    enum { POSITIONS = 700 };
    static const int chosen[] = {0, 7, 8, 11}, places[] = {1, 3, 129, 257, 259, 699};
    static const double published[4][6] = {{0.5, 1.5, 64.5, 128, 130, 350},
                                           {0.00390625, 0.01171875, 0.50390625, 1, 1.015625, 2.734375},
                                           {0.70703125, 2.125, 91, 181, 184, 494},
                                           {0.08837890625, 0.265625, 11.375, 22.625, 23, 61.75}};
    static double table[12 * POSITIONS];
    Position p = {.kind = POSITION_ALIBI, .alibi_max = 8, .alibi = ALIBI_BF16};
    const Shape shape = {2, {12, POSITIONS}};
    derived_fill(&(Derived){.kind = DERIVED_KEY_BIAS, .name = "b", .shape = shape, .position = &p, .heads = 12}, NULL,
                 table);
    for (int h = 0; h < 4; h++) {
        near(table[chosen[h] * POSITIONS], 0);
        for (int j = 0; j < 6; j++) near(table[chosen[h] * POSITIONS + places[j]], published[h][j]);
    }
    const float *x = drawn("x", 2 * 3 * 4), bias[] = {0, 1, 3, 7, 0, 0.5f, 0.25f, 9};
    const double *sum =
        RUN(rescore, A(.rule = rule_by_position(arena, 0.5)), INPUTS(FLOATS(x, 2, 3, 4), FLOATS(bias, 2, 4)), 2, 3, 4);
    for (int h = 0; h < 2; h++)
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 4; j++) {
                const double less = (double)bias[h * 4 + i] - (double)bias[h * 4 + j];
                near(sum[(h * 3 + i) * 4 + j], (double)x[(h * 3 + i) * 4 + j] - 0.5 * less);
            }
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
    for (int i = 0; i < 32 * HEADS; i++) {
        const int bucket = i / HEADS, head = i % HEADS;
        table[i] = (float)(bucket + 100 * head);
    }
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
        RUN(rescore, A(.rule = rule_by_distance(arena, 4)), INPUTS(FLOATS(x, 2, 3, 4), FLOATS(bias, 2, 9)), 2, 3, 4);
    for (int h = 0; h < 2; h++)
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 4; j++)
                near(out[(h * 3 + i) * 4 + j], (double)x[(h * 3 + i) * 4 + j] + (double)bias[h * 9 + 4 - i + j]);
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
    const double *weighted = RUN(pool, A(.pool = POOL_WEIGHTED_MEAN), INPUTS(in), 1, 3),
                 *by_root = RUN(pool, A(.pool = POOL_MEAN_SQRT), INPUTS(in), 1, 3);
    const double *unit = RUN(l2, A(0), INPUTS(FLOATS(x, 1, 3)), 1, 3);
    for (int c = 0; c < 3; c++) {
        const float *p = x + c;
        near(mean[c], ((double)p[0] + (double)p[3] + (double)p[6] + (double)p[9] + (double)p[12]) * 0.2);
        near(weighted[c],
             ((double)p[0] + 2 * (double)p[3] + 3 * (double)p[6] + 4 * (double)p[9] + 5 * (double)p[12]) / 15);
        near(by_root[c], 5 * mean[c] / sqrt(5.0));
        near(first[c], p[0]);
        near(last[c], p[12]);
        near(most[c], fmaxf(fmaxf(fmaxf(p[0], p[3]), fmaxf(p[6], p[9])), p[12]));
        near(unit[c], (double)x[c] / hypot(hypot((double)x[0], (double)x[1]), (double)x[2]));
    }
}

/* Logits whose sigmoids are 1 in f32 are told apart, and corrected scores are compared in f32. */
static void experts_of_large_logits(void **state) {
    (void)state;
    const float logits[] = {20, 30, 25, -3, 40, 35}, none[6] = {0}, first[] = {0, 0, 0, 0, 0.5f, 0};
    const int in = FLOATS(logits, 1, 6);
    const Experts plain = {.count = 6, .top = 2, .router = ROUTER_SIGMOID, .scale = 1, .groups = 1, .top_groups = 1};
    Experts corrected = plain, grouped = plain;
    corrected.corrected = true;
    grouped.groups = 3, grouped.top_groups = 2;
    const double *by_logits = RUN(choose, A(.experts = &plain), INPUTS(in), 1, 4);
    near(by_logits[0], 4), near(by_logits[1], 5), near(by_logits[2], 1), near(by_logits[3], 1);
    const double *equal = RUN(choose, A(.experts = &corrected), INPUTS(in, FLOATS(none, 6)), 1, 4);
    near(equal[0], 0), near(equal[1], 1);
    const double *raised = RUN(choose, A(.experts = &corrected), INPUTS(in, FLOATS(first, 6)), 1, 4);
    near(raised[0], 4), near(raised[1], 0);
    /* The sums of the groups are 2, 1 + sigmoid(-3), 2; the first two experts of the best logits are in kept groups. */
    const double *kept = RUN(choose, A(.experts = &grouped), INPUTS(in), 1, 4);
    near(kept[0], 4), near(kept[1], 5);
}

/* The last row whose id is 7, or is not 7; where there is no such row, the last one or the first one. */
static void pools_by_ids(void **state) {
    (void)state;
    const float *x = drawn("x", 4 * 2);
    static const struct {
        int64_t ids[5];
        int n;
        bool shifted;
        int skip, token; /* the rows */
    } cases[] = {
        {{7, 1, 7, 2}, 4, false, 3, 2}, {{1, 2, 7, 7}, 4, false, 1, 3}, {{7, 7, 7, 7}, 4, false, 0, 3},
        {{7, 7, 7, 7}, 4, true, 1, 3},  {{7, 2, 3}, 3, true, 3, 0},     {{1, 7, 1, 2, 7}, 5, true, 3, 1},
    };
    const int in = FLOATS(x, 4, 2);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int ids = input_of(DTYPE_I64, cases[i].ids, DIMS(cases[i].n));
        const OpAttributes skip = {.pool = POOL_LAST_SKIP, .token = 7, .shifted = cases[i].shifted};
        const double *skipped = RUN(pool, skip, INPUTS(in, ids), 1, 2),
                     *named = RUN(pool, A(.pool = POOL_LAST_TOKEN, .token = 7), INPUTS(in, ids), 1, 2);
        for (int c = 0; c < 2; c++) {
            near(skipped[c], x[cases[i].skip * 2 + c]);
            near(named[c], x[cases[i].token * 2 + c]);
        }
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

/* Runs the graph, whose results rounding moves by `steps` in directions that the seed determines. */
static Interpretation *run_moved(const Weights *weights, const int64_t *symbols, uint64_t seed, double steps) {
    return interpret_as(arena, &module, &graph, weights, arrays, graph.n_inputs, symbols,
                        &(InterpretHow){.seed = seed, .steps = steps});
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
                   *rounded = run_moved(&none, symbols, 1, 1);
    near(plain->tensors[product][0], 0), near(plain->tensors[score][0], 0);
    near(rounded->tensors[product][0], NAN), near(rounded->tensors[score][0], NAN);
    w[0] = w[1] = 1;
    rounded = run_moved(&none, symbols, 1, 1);
    assert_true(fabs(rounded->tensors[product][0] / 2e20 - 1) < 1e-6);
    x[0] = INFINITY;
    rounded = run_moved(&none, symbols, 1, 1);
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
    const PairRule *given = rule_given(arena, 0);
    int seen = input_of(DTYPE_U8, mask, DIMS(2, 3));
    int sight = add_op(OP_softmax, A(.heads = 1, .rule = given), 2, (int[]){FLOATS(scores, 1, 2, 3), seen},
                       DIMS(1, 2, 3));
    int mix = add_op(OP_weighted_sum, A(.heads = 1, .kv_heads = 1, .head_dim = 2, .rule = given), 3,
                     (int[]){sight, in, seen}, DIMS(2, 2));
    verify(&module, &graph, "test_interp");
    Weights weights = {0};
    int64_t symbols[4] = {past};
    Interpretation *plain = interpret(arena, &module, &graph, &weights, arrays, graph.n_inputs, symbols),
                   *rounded =
                       run_moved(&weights, symbols, 1, 1);
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
        const Interpretation *one = run_moved(&none, symbols, seed, 1),
                             *four = run_moved(&none, symbols, seed, 4);
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
        const double *y = run_moved(&none, symbols, seed, 1)
                              ->tensors[product];
        least = fmin(least, y[0]), most = fmax(most, y[0]);
        near(y[3], 0);
    }
    assert_true(least < plain && plain < most);
    near(most - least, last_bit);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OP_TEST(embed),
        OP_TEST(take_rows),
        OP_TEST(tally),
        OP_TEST(keep),
        OP_TEST(pick_rows),
        OP_TEST(patches), OP_TEST(windows),
        OP_TEST(prepend),
        OP_TEST(sums_and_products),
        OP_TEST(linear),
        OP_TEST(activations),
        OP_TEST(activations_at_the_edges),
        OP_TEST(far_tails),
        OP_TEST(norms),
        OP_TEST(norms_at_the_edges),
        OP_TEST(ropes),
        OP_TEST(rope_scalings),
        OP_TEST(sinusoids),
        OP_TEST(alibi),
        OP_TEST(key_bias),
        OP_TEST(buckets),
        OP_TEST(relative_bias),
        OP_TEST(pools),
        OP_TEST(pools_by_ids),
        OP_TEST(pools_at_the_edges),
        OP_TEST(sums_beyond_f32),
        OP_TEST(means_beyond_f32),
        OP_TEST(experts_of_large_logits),
        OP_TEST(steps_of_rounding),
        OP_TEST(sums_of_larger_terms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
