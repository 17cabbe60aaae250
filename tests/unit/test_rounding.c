/* test_rounding.c: how the numbers of a weight are rounded to integers with a scale for each row or each group. */
#include "fixture.h"

#include <float.h>
#include <math.h>

static double error_of(const float *row, int64_t K, double scale) {
    int8_t *q = arena_alloc(arena, (size_t)K);
    double sum = 0;
    grid_round(&(Grid){.least = -127, .most = 127, .scale = scale}, row, K, q);
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
    grid_round(&(Grid){.least = -127, .most = 127, .scale = 1}, row, 8, q);
    assert_memory_equal(q, wanted, sizeof q);
    grid_round(&(Grid){.least = -127, .most = 127}, row, 8, q);
    for (int k = 0; k < 8; k++) assert_int_equal(q[k], 0);
}

static WeightSpec spec_of(int64_t N, int64_t K, Dtype dtype) {
    return (WeightSpec){.name = "w", .shape = {2, {N, K}}, .type = {.dtype = dtype}};
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
        Scaling scaling, again;
        const float *first = weight_rounded(arena, &spec, numbers, NULL, NULL, &scaling);
        const float *second = weight_rounded(arena, &spec, first, NULL, NULL, &again);
        assert_memory_equal(first, second, (size_t)(N * K) * sizeof *first);
        for (int64_t i = 0; i < N * K; i++) {
            double q = (double)first[i] / (double)scaling.scales[i / K];
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
    Scaling scaling = {numbers, numbers, NULL};
    const WeightSpec single = spec_of(2, 2, DTYPE_F32), brain = spec_of(2, 2, DTYPE_BF16),
                     bytes = spec_of(2, 2, DTYPE_I8);
    assert_ptr_equal(weight_rounded(arena, &single, numbers, NULL, NULL, &scaling), numbers);
    assert_true(!scaling.scales && !scaling.offsets);
    scaling.scales = numbers;
    assert_true(weight_rounded(arena, &brain, numbers, NULL, NULL, &scaling)[1] == 1);
    assert_null(scaling.scales);
    assert_int_equal(weight_groups(&brain), 0);
    assert_int_equal(weight_groups(&bytes), 1);
}

static const WeightType GROUP_TYPES[] = {
    {DTYPE_I4, 32, false, false}, {DTYPE_I4, 64, true, false}, {DTYPE_I4, 128, false, false},
    {DTYPE_I8, 32, false, false}, {DTYPE_I4, 32, true, false},  {DTYPE_I4, 32, false, true},
    {DTYPE_I4, 64, true, true},   {DTYPE_I8, 32, false, true}};

static bool is_of(Dtype dtype, float number) {
    float same;
    uint16_t half;
    tensor_from_f32(dtype, &number, 1, &half);
    const FileTensor stored = {.dtype = dtype, .data = (const uint8_t *)&half, .bytes = sizeof half};
    tensor_to_f32(&stored, 0, 1, &same);
    return same == number;
}

/* Groups round to numbers of their own grid, and a second rounding changes none; the last group is shorter. */
static void groups_rounded_twice(void **state) {
    (void)state;
    for (int draw = 0; draw < 300; draw++) {
        enum { N = 3 };
        const int64_t K = 1 + draw * 7 % 150;
        const WeightSpec spec = {.name = "w", .shape = {2, {N, K}}, .type = GROUP_TYPES[draw % 8]};
        const int64_t groups = weight_groups(&spec);
        const Dtype stored = spec.type.halves ? DTYPE_F16 : DTYPE_BF16;
        assert_int_equal(groups, (K + spec.type.group - 1) / spec.type.group);
        float *numbers = arena_array(arena, (size_t)(N * K), sizeof *numbers);
        random_normal((uint64_t)draw, "w", draw % 7 ? 0 : 3, draw % 3 ? 1 : 1e-3, N * K, numbers);
        for (int64_t i = 0; i < N * K && draw % 2; i++) numbers[i] *= numbers[i] * numbers[i];
        if (draw % 11 == 0) memset(numbers, 0, (size_t)K * sizeof *numbers); /* a row of zeros */
        Scaling scaling, again;
        const float *first = weight_rounded(arena, &spec, numbers, NULL, NULL, &scaling);
        const float *second = weight_rounded(arena, &spec, first, NULL, NULL, &again);
        assert_memory_equal(first, second, (size_t)(N * K) * sizeof *first);
        assert_true((scaling.offsets != NULL) == spec.type.offset);
        int8_t *codes = arena_alloc(arena, (size_t)K);
        const int least = spec.type.dtype == DTYPE_I4 ? -8 : -127, most = spec.type.dtype == DTYPE_I4 ? 7 : 127;
        for (int64_t n = 0; n < N; n++) {
            weight_codes(&spec, &scaling, first, n, codes);
            for (int64_t k = 0; k < K; k++) {
                const int64_t g = n * groups + k / spec.type.group;
                const double offset = scaling.offsets ? (double)scaling.offsets[g] : 0;
                assert_true(is_of(stored, scaling.scales[g]) && is_of(stored, (float)offset));
                assert_in_range(codes[k] - least, 0, most - least);
                assert_true(first[n * K + k] == (float)((double)scaling.scales[g] * codes[k] + offset));
            }
        }
    }
}

/* Scales of 11 significant bits, also subnormal ones, are found again from the numbers that they made. */
static void halves_are_kept(void **state) {
    (void)state;
    enum { K = 32 };
    for (int draw = 0; draw < 400; draw++) {
        const WeightSpec spec = {.name = "w", .shape = {2, {1, K}},
                                 .type = {draw % 2 ? DTYPE_I4 : DTYPE_I8, K, .halves = true}};
        const int most = draw % 2 ? 7 : 127;
        float numbers[K], scale = 0;
        random_normal((uint64_t)draw, "w", 0, 1, K, numbers);
        random_normal((uint64_t)draw, "s", 0, draw % 5 ? 0.1 : 1e-5, 1, &scale);
        uint16_t bits;
        tensor_from_f32(DTYPE_F16, &scale, 1, &bits);
        tensor_to_f32(&(FileTensor){.dtype = DTYPE_F16, .data = (const uint8_t *)&bits, .bytes = 2}, 0, 1, &scale);
        for (int k = 0; k < K; k++)
            numbers[k] = scale * (float)fmax(-most, fmin(most, nearbyint((double)numbers[k] * most / 2)));
        Scaling scaling;
        const float *made = weight_rounded(arena, &spec, numbers, NULL, NULL, &scaling);
        for (int k = 0; k < K; k++) assert_true(made[k] == numbers[k]);
    }
}

/* Where the vector is 0, columns stay as they are, and what becomes of the others is as without them. */
static void columns_that_stay(void **state) {
    (void)state;
    static const WeightType types[] = {
        {DTYPE_I8, 0, false, false}, {DTYPE_I4, 32, true, false}, {DTYPE_I8, 32, false, false}};
    enum { N = 3, K = 75, LEFT = 70 };
    const int64_t at[K - LEFT] = {0, 31, 32, 33, 74};
    for (int t = 0; t < 3; t++) {
        float numbers[N * K], left[N * LEFT], vector[K], halves[LEFT];
        random_normal((uint64_t)t, "w", 0, 1, N * K, numbers);
        for (int k = 0, j = 0, l = 0; k < K; k++) {
            const bool stays = j < K - LEFT && at[j] == k;
            vector[k] = stays ? 0 : 0.5f;
            for (int n = 0; n < N; n++) {
                if (stays) numbers[n * K + k] = 1000 + (float)k;
                else left[n * LEFT + l] = numbers[n * K + k];
            }
            if (stays) j++;
            else halves[l++] = 0.5f;
        }
        const WeightSpec spec = {.name = "w", .shape = {2, {N, K}}, .type = types[t]},
                         fewer = {.name = "w", .shape = {2, {N, LEFT}}, .type = types[t]};
        Scaling scaling, without;
        const float *out = weight_rounded(arena, &spec, numbers, vector, NULL, &scaling);
        const float *apart = weight_rounded(arena, &fewer, left, halves, NULL, &without);
        int64_t columns[MOST_OUTLIERS];
        int8_t codes[K];
        assert_int_equal(outlier_columns(scaling.vector, K, columns), K - LEFT);
        assert_memory_equal(columns, at, sizeof at);
        for (int n = 0; n < N; n++) {
            weight_codes(&spec, &scaling, out, n, codes);
            for (int k = 0, l = 0; k < K; k++) {
                if (vector[k] == 0) {
                    assert_true(out[n * K + k] == 1000 + (float)k && codes[k] == 0);
                    continue;
                }
                /* groups begin elsewhere without the columns before them */
                if (!types[t].group) assert_true(out[n * K + k] == apart[n * LEFT + l]);
                assert_true(fabsf(out[n * K + k] - 2 * numbers[n * K + k]) < 0.6f);
                l++;
            }
        }
    }
}

/* A group without a column that is rounded has no scale. */
static void group_that_stays(void **state) {
    (void)state;
    enum { K = 35 };
    float numbers[K], vector[K];
    for (int k = 0; k < K; k++) numbers[k] = (float)k - 3, vector[k] = k < 32;
    const WeightSpec spec = {.name = "w", .shape = {2, {1, K}}, .type = {DTYPE_I4, 32, true, false}};
    Scaling scaling;
    const float *out = weight_rounded(arena, &spec, numbers, vector, NULL, &scaling);
    assert_true(scaling.scales[1] == 0 && scaling.offsets[1] == 0 && scaling.scales[0] != 0);
    for (int k = 32; k < K; k++) assert_true(out[k] == numbers[k]);
}

/* The sum of squared errors of K numbers in a grid. */
static double error_in(const Grid *grid, const float *row, int K) {
    int8_t codes[64];
    double sum = 0;
    grid_round(grid, row, K, codes);
    for (int k = 0; k < K; k++) sum += pow((double)row[k] - (grid->scale * codes[k] + grid->offset), 2);
    return sum;
}

/* The error of a group is below that of scales by its extremes alone, and no scale near the chosen one is better. */
static void groups_of_least_squares(void **state) {
    (void)state;
    for (int draw = 0; draw < 60; draw++) {
        enum { K = 32 };
        float row[K];
        random_normal((uint64_t)draw, "group", 0, 1, K, row);
        const WeightType type = GROUP_TYPES[draw % 2 ? 0 : 4];
        double low = 0, high = 0;
        for (int k = 0; k < K; k++) low = fmin(low, (double)row[k]), high = fmax(high, (double)row[k]);
        const Grid grid = group_grid(type, row, NULL, K);
        Grid simple = {.least = -8, .most = 7, .scale = type.offset ? (high - low) / 15 : fmax(-low, high) / 7};
        if (type.offset) simple.offset = low + 8 * simple.scale;
        const double error = error_in(&grid, row, K);
        assert_true(error <= error_in(&simple, row, K));
        for (double by = 0.8; by < 1.2; by += 0.02) {
            Grid near = grid;
            near.scale *= by;
            assert_true(error <= 1.1 * error_in(&near, row, K));
        }
    }
}

/* Numbers whose scale and offset have more bits than a group's, as blocks of Q4_K have, keep their integers where both
 * are rounded to f16: the group's are within a unit of f16 of them. */
static void groups_of_finer_scales(void **state) {
    (void)state;
    enum { K = 32 };
    for (int draw = 0; draw < 200; draw++) {
        float row[K];
        random_normal((uint64_t)draw, "finer", 0, 1, K, row);
        const double scale = (1 + 2 * (draw % 63)) * 0x1.a5p-9, least = -(1 + draw % 61) * 0x1.77p-7;
        for (int k = 0; k < K; k++) {
            const int q = k < 2 ? 15 * k : (int)(fabs((double)row[k]) * 1000) % 16;
            row[k] = (float)(scale * q + least);
        }
        const WeightType type = {DTYPE_I4, K, true, true};
        const Grid grid = group_grid(type, row, NULL, K);
        assert_true(fabs(grid.scale - scale) <= scale * 0x1p-10);
        assert_true(fabs(grid.offset - 8 * grid.scale - least) <= (8 * scale - least) * 0x1p-10);
        int8_t codes[K];
        grid_round(&grid, row, K, codes);
        for (int k = 0; k < K; k++) assert_int_equal(codes[k] + 8, lround(((double)row[k] - least) / scale));
    }
}

/* The share of the squares of normal numbers that groups of 32 lose is bounded. A search over 200 scales, each with
 * the best offset, ends at 0.0063 and 0.0047. */
static void errors_of_many_groups(void **state) {
    (void)state;
    enum { K = 32, DRAWS = 4000 };
    for (int offset = 0; offset < 2; offset++) {
        const WeightType type = {DTYPE_I4, K, offset, false};
        double error = 0, power = 0;
        for (int draw = 0; draw < DRAWS; draw++) {
            float row[K];
            random_normal((uint64_t)draw, "many", 0, 1, K, row);
            const Grid grid = group_grid(type, row, NULL, K);
            error += error_in(&grid, row, K);
            for (int k = 0; k < K; k++) power += pow((double)row[k], 2);
        }
        assert_true(error / power < (offset ? 0.00477 : 0.0064));
    }
}

/* A column counts gain^2 + bias^2 of the norm in front, but at least a hundredth of the mean over the columns. */
static void squares_of_norms(void **state) {
    (void)state;
    enum { K = 32 };
    float gain[K], bias[K], numbers[K];
    for (int k = 0; k < K; k++) gain[k] = k ? 0.5f : 7, bias[k] = k == 1 ? 2 : 0;
    random_normal(3, "weighed", 0, 1, K, numbers);
    WeightSpec specs[] = {{.name = "gain", .shape = {1, {K}}},
                          {.name = "bias", .shape = {1, {K}}},
                          {.name = "w", .shape = {2, {1, K}}, .type = {DTYPE_I4, K, false, false}, .gain = 1,
                           .shift = 2, .gain_plus_one = true}};
    const WeightTable table = {.specs = specs, .count = 3};
    Weights *weights = weights_new(arena, &table);
    weights->data[0] = gain, weights->data[1] = bias, weights->data[2] = numbers;
    const float *squares = weight_squares(arena, weights, &specs[2]);
    const double mean = (64 + 30 * 2.25 + 2.25 + 4) / K;
    assert_float_equal(squares[0], 64 / mean, 1e-5);
    assert_float_equal(squares[1], 6.25 / mean, 1e-5);
    assert_float_equal(squares[2], 2.25 / mean, 1e-5);
    gain[2] = -1;
    assert_float_equal(weight_squares(arena, weights, &specs[2])[2], 0.01, 1e-9);
    Scaling scaling, plain;
    const float *out = weight_rounded(arena, &specs[2], numbers, NULL, squares, &scaling);
    const float *alike = weight_rounded(arena, &specs[2], numbers, NULL, NULL, &plain);
    double error = 0, other = 0;
    for (int k = 0; k < K; k++) {
        error += (double)squares[k] * pow((double)out[k] - (double)numbers[k], 2);
        other += (double)squares[k] * pow((double)alike[k] - (double)numbers[k], 2);
    }
    assert_true(error < other);
    specs[2].type.group = 0; /* a scale of a row does not ask for them */
    assert_null(weight_squares(arena, weights, &specs[2]));
    specs[2].type.group = K;
    gain[0] = NAN;
    assert_null(weight_squares(arena, weights, &specs[2]));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(least_squares), TEST(ties_and_limits), TEST(rounded_twice), TEST(extremes), TEST(other_dtypes),
        TEST(groups_rounded_twice), TEST(halves_are_kept), TEST(columns_that_stay), TEST(group_that_stays),
        TEST(groups_of_least_squares), TEST(groups_of_finer_scales), TEST(errors_of_many_groups),
        TEST(squares_of_norms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
