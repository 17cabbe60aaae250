/* test_quantize.c: rows as codes of 0 to 255 in the interpreter, and how it judges rows that C has rounded. */
#include "one_op.h"

#include <float.h>

enum { N = 6, K = 37, STRIDE = ROW_HEAD + 64 };

static int op_over(const float *x, int64_t n, int64_t k) {
    int in = FLOATS(x, n, k);
    return add_op(OP_quantize, A(.scale = 1), 1, (int[]){in}, DIMS(n, k));
}

static const double *run_from(int t, const uint8_t *data, QuantizeReport *report) {
    QuantizedRows *rows = arena_array(arena, (size_t)graph.n_tensors, sizeof *rows);
    rows[t] = (QuantizedRows){data, STRIDE};
    const InterpretHow how = {.rows = data ? rows : NULL, .report = report};
    const int64_t symbols[4] = {0};
    Weights none = {0};
    return interpret_as(arena, &module, &graph, &none, arrays, graph.n_inputs, symbols, &how)->tensors[t];
}

/* The formula of docs/language.md for one row; writes what C writes. */
static void by_formula(const float *x, int64_t k, uint8_t *out) {
    float low = 0, high = 0;
    for (int64_t c = 0; c < k; c++) low = fminf(low, x[c]), high = fmaxf(high, x[c]);
    const float range = high - low, inverse = 255 / range;
    const RowHead head = {range / 255, rintf(-low * inverse)};
    memcpy(out, &head, sizeof head);
    for (int64_t c = 0; c < k; c++) {
        float code = rintf(x[c] * inverse) + head.zero;
        out[ROW_HEAD + c] = (uint8_t)(code < 0 ? 0 : code > 255 ? 255 : code);
    }
}

static void formula(void **state) {
    (void)state;
    float *x = drawn("rows", N * K);
    for (int c = 0; c < K; c++) x[K + c] = fabsf(x[K + c]), x[2 * K + c] = -fabsf(x[2 * K + c]), x[3 * K + c] *= 1e-20f;
    uint8_t data[N * STRIDE] = {0};
    const int t = op_over(x, N, K);
    QuantizeReport report = {0};
    for (int i = 0; i < N; i++) by_formula(x + i * K, K, data + i * STRIDE);
    const double *own = run_from(t, NULL, NULL), *given = run_from(t, data, &report);
    for (int i = 0; i < N * K; i++) {
        RowHead head;
        memcpy(&head, data + i / K * STRIDE, sizeof head);
        double step = (double)head.scale;
        assert_true(own[i] == step * ((double)data[i / K * STRIDE + ROW_HEAD + i % K] - (double)head.zero));
        assert_true(own[i] == given[i]);
        assert_true(fabs(own[i] - (double)x[i]) <= 0.51 * step + step * 0.5); /* the zero point is rounded too */
    }
    assert_int_equal(report.numbers, N * K);
    assert_int_equal(report.ties + report.wrong, 0);
    RowHead positive, negative;
    memcpy(&positive, data + STRIDE, sizeof positive);
    memcpy(&negative, data + 2 * STRIDE, sizeof negative);
    assert_true(positive.zero == 0 && negative.zero == 255);
}

static void rows_without_a_scale(void **state) {
    (void)state;
    const float x[7 * 2] = {0, -0.0f, 1e-31f, -2e-31f, NAN, 1, INFINITY, 1, -INFINITY, 0, FLT_MAX, -FLT_MAX, 3, -1};
    const double *y = run_from(op_over(x, 7, 2), NULL, NULL);
    for (int i = 0; i < 4; i++) assert_true(y[i] == 0);
    for (int i = 4; i < 12; i++) assert_true(isnan(y[i]));
    assert_true(fabs(y[12] - 3) < 0.01 && fabs(y[13] + 1) < 0.01); /* no row touches another */
}

static QuantizeReport judged(int t, const uint8_t *data) {
    QuantizeReport report = {0};
    run_from(t, data, &report);
    return report;
}

/* A code that no rounding gives, and a head that is another row's, are wrong; the interpreter goes on from them. */
static void wrong_rows(void **state) {
    (void)state;
    float *x = drawn("rows", N * K);
    uint8_t data[N * STRIDE] = {0};
    const int t = op_over(x, N, K);
    for (int i = 0; i < N; i++) by_formula(x + i * K, K, data + i * STRIDE);
    uint8_t *code = &data[2 * STRIDE + ROW_HEAD + 5];
    for (int by = -1; by <= 1; by += 2) {
        *code = (uint8_t)(*code + 2 * by);
        QuantizeReport report = judged(t, data);
        assert_int_equal(report.wrong, 1);
        assert_string_equal(report.tensor, graph.tensors[t].name);
        *code = (uint8_t)(*code - 2 * by);
    }
    RowHead head, other;
    memcpy(&head, data, sizeof head);
    const RowHead others[] = {{head.scale * 1.01f, head.zero}, {head.scale, head.zero + 2}, {NAN, 0}, {0, 0},
                              {-head.scale, head.zero},        {head.scale, head.zero + 0.25f}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        other = others[i];
        memcpy(data, &other, sizeof other);
        assert_int_equal(judged(t, data).wrong, K);
    }
    memcpy(data, &head, sizeof head);
    assert_int_equal(judged(t, data).wrong, 0);
    x[3] = NAN; /* then only a row without a scale is right */
    assert_int_equal(judged(t, data).wrong, K);
    head = (RowHead){NAN, 0};
    memcpy(data, &head, sizeof head);
    assert_int_equal(judged(t, data).wrong, 0);
}

/* Between two codes either is right, and the one that the interpreter does not choose is counted. */
static void ties(void **state) {
    (void)state;
    float x[K] = {0, 255, 100.5f, 101.5f, 30.4999f};
    uint8_t data[STRIDE] = {0};
    const int t = op_over(x, 1, K);
    by_formula(x, K, data);
    assert_int_equal(data[ROW_HEAD + 2], 100);
    assert_int_equal(judged(t, data).ties, 0);
    data[ROW_HEAD + 2] = 101;
    data[ROW_HEAD + 3] = 101;
    data[ROW_HEAD + 4] = 31;
    const QuantizeReport report = judged(t, data);
    assert_int_equal(report.wrong, 0);
    assert_int_equal(report.ties, 3);
    QuantizeReport again = report;
    const double *from = run_from(t, data, &again);
    assert_true(from[2] == 101 && from[3] == 101 && from[4] == 31);
    assert_int_equal(again.ties, 3); /* each of which was seen before */
    assert_int_equal(again.numbers, 2 * K);
    data[ROW_HEAD + 2] = 99;
    assert_int_equal(judged(t, data).wrong, 1);
}

/* Columns where the vector is 0 are as they are, and those that C has must be them. */
static void outliers(void **state) {
    (void)state;
    float x[K] = {0, 255, 1e6f, 101, 30.25f}, vector[K], rounded[K];
    for (int c = 0; c < K; c++) vector[c] = 1, rounded[c] = x[c];
    vector[2] = vector[4] = rounded[2] = rounded[4] = 0;
    const int in = FLOATS(x, 1, K), smooth = FLOATS(vector, K);
    const int t = add_op(OP_quantize, A(.scale = 1), 2, (int[]){in, smooth}, DIMS(1, K));
    uint8_t data[STRIDE] = {0};
    by_formula(rounded, K, data);
    float *numbers = (float *)(void *)(data + sizeof(RowHead));
    numbers[0] = 1e6f, numbers[1] = 30.25f;
    assert_int_equal(judged(t, data).wrong, 0);
    const double *own = run_from(t, NULL, NULL), *given = run_from(t, data, NULL);
    for (int c = 0; c < K; c++) assert_true(own[c] == given[c] && own[c] == (double)x[c]);
    numbers[0] = 30.25f, numbers[1] = 1e6f;
    assert_int_equal(judged(t, data).wrong, 2);
    numbers[0] = NAN, numbers[1] = 30.25f;
    assert_int_equal(judged(t, data).wrong, 1);
    x[2] = INFINITY; /* then the row has no scale */
    assert_int_equal(judged(t, data).wrong, K);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OP_TEST(formula),
        OP_TEST(rows_without_a_scale),
        OP_TEST(wrong_rows),
        OP_TEST(ties),
        OP_TEST(outliers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
