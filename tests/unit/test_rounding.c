/* test_rounding.c: how the numbers of a weight are rounded to integers with a scale for each row. */
#include "fixture.h"

#include <float.h>
#include <math.h>

static double error_of(const float *row, int64_t K, double scale) {
    int8_t *q = arena_alloc(arena, (size_t)K);
    double sum = 0;
    int8_round(row, K, scale, q);
    for (int64_t k = 0; k < K; k++) sum += (row[k] - scale * q[k]) * (row[k] - scale * q[k]);
    return sum;
}

static bool has_16_bits(double scale) {
    int exponent;
    double bits = ldexp(frexp(scale, &exponent), 16);
    return bits == nearbyint(bits);
}

/* No scale near the chosen one is better by more than a step of the search, and none by the largest number alone. */
static void least_squares(void **state) {
    (void)state;
    enum { K = 384 };
    for (int draw = 0; draw < 40; draw++) {
        float row[K], most = 0;
        random_normal((uint64_t)draw, "row", 0, pow(10, draw % 9 - 4), K, row);
        if (draw % 4 == 3) row[7] *= 3; /* an outlier */
        for (int k = 0; k < K; k++) most = fmaxf(most, fabsf(row[k]));
        double scale = int8_scale(row, K), error = error_of(row, K, scale);
        assert_true(has_16_bits(scale));
        assert_true(error <= error_of(row, K, most / 127));
        for (double by = 0.7; by < 1.3; by += 0.01) assert_true(error <= 1.1 * error_of(row, K, by * scale));
    }
}

static void ties_and_limits(void **state) {
    (void)state;
    const float row[] = {0.5f, 1.5f, -0.5f, -2.5f, 200, -200, 126.6f, 0};
    const int8_t wanted[] = {0, 2, 0, -2, 127, -127, 127, 0};
    int8_t q[8];
    int8_round(row, 8, 1, q);
    assert_memory_equal(q, wanted, sizeof q);
    int8_round(row, 8, 0, q);
    for (int k = 0; k < 8; k++) assert_int_equal(q[k], 0);
}

static WeightSpec spec_of(int64_t N, int64_t K, Dtype dtype) {
    return (WeightSpec){.name = "w", .shape = {2, {N, K}}, .dtype = dtype};
}

/* A second rounding changes no number, whatever the first row of integers is, also where rows are short or steep. */
static void rounded_twice(void **state) {
    (void)state;
    for (int draw = 0; draw < 300; draw++) {
        enum { N = 4 };
        const int64_t K = 1 + draw % 37;
        const WeightSpec spec = spec_of(N, K, DTYPE_I8);
        float *numbers = arena_array(arena, (size_t)(N * K), sizeof *numbers);
        random_normal((uint64_t)draw, "w", 0, draw % 3 ? 1 : 1e-3, N * K, numbers);
        for (int64_t i = 0; i < N * K && draw % 2; i++) numbers[i] *= numbers[i] * numbers[i]; /* small beside large */
        const float *scales, *again, *first = weight_rounded(arena, &spec, numbers, &scales);
        const float *second = weight_rounded(arena, &spec, first, &again);
        assert_memory_equal(first, second, (size_t)(N * K) * sizeof *first);
        for (int64_t i = 0; i < N * K; i++) {
            double q = (double)first[i] / (double)scales[i / K];
            assert_true(q == nearbyint(q) && fabs(q) <= 127);
        }
    }
}

/* Rows of zeros have no scale; numbers at the ends of f32 give scales whose products are finite and exact. */
static void extremes(void **state) {
    (void)state;
    const float zeros[] = {0, -0.0f, 0}, large[] = {FLT_MAX, -FLT_MAX / 2, 1}, small[] = {1e-45f, 1e-38f, 0},
                tiny[] = {1e-29f, -3e-30f, 0};
    assert_true(int8_scale(zeros, 3) == 0);
    const float *const rows[] = {large, small, tiny};
    for (int i = 0; i < 3; i++) {
        double scale = int8_scale(rows[i], 3);
        assert_true(has_16_bits(scale) && scale > 0 && 127 * scale <= (double)FLT_MAX);
        assert_true((double)(float)(127 * scale) == 127 * scale);
    }
    assert_true(error_of(tiny, 3, int8_scale(tiny, 3)) < 1e-63);
}

/* Rows that no matrix of weights has are told from those of int8. */
static void other_dtypes(void **state) {
    (void)state;
    const float numbers[] = {1, 1.00001f, -3.14159f, 1e-20f};
    const float *scales = numbers;
    const WeightSpec single = spec_of(2, 2, DTYPE_F32), brain = spec_of(2, 2, DTYPE_BF16),
                     bytes = spec_of(2, 2, DTYPE_I8);
    assert_ptr_equal(weight_rounded(arena, &single, numbers, &scales), numbers);
    assert_null(scales);
    scales = numbers;
    assert_true(weight_rounded(arena, &brain, numbers, &scales)[1] == 1);
    assert_null(scales);
    assert_int_equal(weight_scale_count(&brain), 0);
    assert_int_equal(weight_scale_count(&bytes), 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(least_squares), TEST(ties_and_limits), TEST(rounded_twice), TEST(extremes), TEST(other_dtypes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
