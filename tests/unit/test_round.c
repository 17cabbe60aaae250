/* test_round.c: rows as numbers of narrower types in the interpreter, and how it judges rows that C has rounded. */
#include "one_op.h"

#include <float.h>

enum { N = 5, HEADS = 2, D = 9, COLUMNS = HEADS * D, STRIDE = 24 * sizeof(float) };

static int op_over(Dtype dtype, const float *x, int64_t n, int64_t heads, int64_t columns) {
    int in = FLOATS(x, n, columns);
    return add_op(OP_round, A(.dtype = dtype, .heads = heads), 1, (int[]){in}, DIMS(n, columns));
}

static const double *run_from(int t, const float *data, QuantizeReport *report) {
    QuantizedRows *rows = arena_array(arena, (size_t)graph.n_tensors, sizeof *rows);
    rows[t] = (QuantizedRows){(const uint8_t *)data, STRIDE};
    const InterpretHow how = {.rows = data ? rows : NULL, .report = report};
    const int64_t symbols[4] = {0};
    Weights none = {0};
    return interpret_as(arena, &module, &graph, &none, arrays, graph.n_inputs, symbols, &how)->tensors[t];
}

static const double *rounded(Dtype dtype, const float *x, int64_t n, int64_t heads, int64_t columns) {
    return run_from(op_over(dtype, x, n, heads, columns), NULL, NULL);
}

static bool same(double a, double b) { return a == b || (isnan(a) && isnan(b)); }

/* Ties go to even, what is too large is infinite, and NaN stays with its number. */
static void floats(void **state) {
    (void)state;
    const float x[] = {0x1.01p0f,   0x1.03p0f, -0x1.010002p0f, 0x1.fep127f, FLT_MAX, NAN,
                       -INFINITY,   0,         0x1p-133f,      0x1.8p-133f, 1e-40f,  3};
    const double bf16[] = {1,         0x1.04p0, -0x1.02p0, 0x1.fep127, INFINITY,  NAN,
                           -INFINITY, 0,        0x1p-133,  0x1p-132,   0x1.1p-133, 3};
    const double *y = rounded(DTYPE_BF16, x, 1, 1, 12);
    for (int i = 0; i < 12; i++)
        if (i != 10) assert_true(same(y[i], bf16[i]));
    assert_true(fabs(y[10] - 1e-40) <= 0x1p-134);
    const float z[] = {65519, 65520, -65520, 0x1.002p0f, 0x1.006p0f, 0x1p-25f, 0x1.8p-24f, NAN, INFINITY, 1e-30f};
    const double f16[] = {65504, INFINITY, -INFINITY, 1, 0x1.008p0, 0, 0x1p-23, NAN, INFINITY, 0};
    y = rounded(DTYPE_F16, z, 1, 1, 10);
    for (int i = 0; i < 10; i++) assert_true(same(y[i], f16[i]));
}

/* Each head of a row has its scale; a row of zeros, and one with an infinity or NaN, touch no other. */
static void integers(void **state) {
    (void)state;
    float *x = drawn("rows", N * COLUMNS);
    for (int c = 0; c < D; c++) x[COLUMNS + c] = 0, x[2 * COLUMNS + D + c] *= 1e20f;
    x[3 * COLUMNS] = INFINITY, x[4 * COLUMNS + D + 2] = NAN;
    const double *y = rounded(DTYPE_I8, x, N, HEADS, COLUMNS);
    float *again = arena_array(arena, N * COLUMNS, sizeof *again);
    for (int r = 0; r < N * HEADS; r++) {
        const bool odd = r == 3 * HEADS || r == 4 * HEADS + 1;
        double largest = 0, most = 0;
        for (int c = 0; c < D; c++) largest = fmax(largest, fabs((double)x[r * D + c]));
        for (int c = 0; c < D; c++) most = fmax(most, fabs(y[r * D + c]));
        const double scale = most / 127;
        assert_true(odd || fabs(scale * 127 - largest) <= largest * 0x1p-15);
        for (int c = 0; c < D; c++) {
            again[r * D + c] = (float)y[r * D + c];
            if (odd) assert_true(isnan(y[r * D + c]));
            else if (scale == 0) assert_true(y[r * D + c] == 0);
            else assert_true(y[r * D + c] == scale * nearbyint(y[r * D + c] / scale) &&
                             fabs(y[r * D + c] - (double)x[r * D + c]) <= 0.501 * scale);
        }
    }
    const double *twice = rounded(DTYPE_I8, again, N, HEADS, COLUMNS);
    for (int i = 0; i < N * COLUMNS; i++) assert_true(same(twice[i], y[i]));
}

/* A number that no rounding gives is wrong, a neighbour from the middle a tie; the interpreter goes on from both. */
static void judged(void **state) {
    (void)state;
    static const Dtype dtypes[] = {DTYPE_BF16, DTYPE_F16, DTYPE_I8};
    for (int k = 0; k < 3; k++) {
        float x[COLUMNS] = {[1] = 0.5f, [2] = 127, [D] = 127, [D + 1] = 100.5f, [D + 2] = 1.005859375f};
        const int t = op_over(dtypes[k], x, 1, HEADS, COLUMNS);
        const double *own = run_from(t, NULL, NULL);
        float data[24] = {0};
        for (int c = 0; c < COLUMNS; c++) data[c] = (float)own[c];
        QuantizeReport fine = {0}, wrong = {0}, tie = {0}, nan = {0};
        run_from(t, data, &fine);
        assert_int_equal(fine.numbers, COLUMNS);
        assert_int_equal(fine.ties + fine.wrong, 0);
        data[1] = 3;
        assert_true(run_from(t, data, &wrong)[1] == 3);
        assert_int_equal(wrong.wrong, 1);
        assert_string_equal(wrong.tensor, graph.tensors[t].name);
        data[1] = NAN;
        run_from(t, data, &nan);
        assert_true(nan.wrong >= 1);
        data[1] = (float)own[1];
        const float other = k == 0 ? 1.0078125f : k == 1 ? 1.0068359375f : 101;
        const int at = k == 2 ? D + 1 : D + 2;
        data[at] = other;
        assert_true(run_from(t, data, &tie)[at] == (double)other);
        assert_int_equal(tie.ties, k != 0);
        assert_int_equal(tie.wrong, 0);
    }
}

/* Beside a large number, f32 may give several neighbours of a tiny one, as gelu of -6 does; that is no tie. */
static void judged_beside_large(void **state) {
    (void)state;
    float x[COLUMNS] = {[0] = 8, [1] = -1e-9f, [2] = 0.01f};
    const int t = op_over(DTYPE_BF16, x, 1, HEADS, COLUMNS);
    const double *own = run_from(t, NULL, NULL);
    float data[24] = {0};
    for (int c = 0; c < COLUMNS; c++) data[c] = (float)own[c];
    QuantizeReport tiny = {0}, tie = {0};
    data[1] = -0.0f;
    run_from(t, data, &tiny);
    assert_int_equal(tiny.ties + tiny.wrong, 0);
    assert_true(tiny.most_ties < COLUMNS * SHARE_OF_TIES);
    data[2] += 0x1p-14f;
    run_from(t, data, &tie);
    assert_int_equal(tie.ties, 1);
}

/* Equal numbers count as one tie in whatever columns they are, and different ones each, however many there are. */
static void ties_counted_once(void **state) {
    (void)state;
    enum { MANY = 150, EQUAL = 8 };
    float x[MANY], data[MANY];
    for (int c = 0; c < MANY; c++) {
        const int i = c < EQUAL ? 0 : c - EQUAL + 1, power = i / 64;
        x[c] = ldexpf(1 + (float)(i % 64) * 0x1p-6f + 0x1p-8f, power);
        data[c] = x[c] + ldexpf(0x1p-8f, power);
    }
    const int t = op_over(DTYPE_BF16, x, 1, 1, MANY);
    QuantizedRows *rows = arena_array(arena, (size_t)graph.n_tensors, sizeof *rows);
    rows[t] = (QuantizedRows){(const uint8_t *)data, sizeof data};
    QuantizeReport report = {0};
    const InterpretHow how = {.rows = rows, .report = &report};
    const int64_t symbols[4] = {0};
    Weights none = {0};
    interpret_as(arena, &module, &graph, &none, arrays, graph.n_inputs, symbols, &how);
    assert_int_equal(report.wrong, 0);
    assert_int_equal(report.ties, MANY - EQUAL + 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OP_TEST(floats),
        OP_TEST(integers),
        OP_TEST(judged),
        OP_TEST(judged_beside_large),
        OP_TEST(ties_counted_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
