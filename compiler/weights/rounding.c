/* rounding.c: rounds a weight's numbers to those that its dtype represents. An int8 matrix has a scale for each row,
 * which is an output channel of a product or a token of a table; a number is the scale times an integer of -127 to 127.
 *
 * Scales have 16 significant bits, so that an f32 holds each of these products exactly. */
#include "../attnc.h"

#include <math.h>

enum { MOST_INTEGER = 127, SCALE_BITS = 16 };

/* The products of a smaller scale may be subnormal, and those of a larger one infinite. */
#define LEAST_SCALE 0x1p-126
#define MOST_SCALE 0x1p+120

static double to_scale(double x) {
    if (!(x > LEAST_SCALE)) return LEAST_SCALE;
    if (x >= MOST_SCALE) return MOST_SCALE;
    int exponent;
    double fraction = frexp(x, &exponent);
    return ldexp(nearbyint(ldexp(fraction, SCALE_BITS)), exponent - SCALE_BITS);
}

static double to_integer(double x, double scale) {
    double q = nearbyint(x / scale);
    return q > MOST_INTEGER ? MOST_INTEGER : q < -MOST_INTEGER ? -MOST_INTEGER : q;
}

static bool is_exact(const float *row, int64_t K, double scale) {
    int64_t k = 0;
    while (k < K && (double)row[k] == scale * to_integer((double)row[k], scale)) k++;
    return k == K;
}

static double squared_error(const float *row, int64_t K, double scale) {
    double sum = 0;
    for (int64_t k = 0; k < K; k++) {
        double error = (double)row[k] - scale * to_integer((double)row[k], scale);
        sum += error * error;
    }
    return sum;
}

/* For the integers that `scale` gives, the scale of least squared error is sum(q x) / sum(q q). */
static double refined(const float *row, int64_t K, double scale) {
    double products = 0, squares = 0;
    for (int64_t k = 0; k < K; k++) {
        double q = to_integer((double)row[k], scale);
        products += q * (double)row[k];
        squares += q * q;
    }
    return squares > 0 ? to_scale(products / squares) : scale;
}

double int8_scale(const float *row, int64_t K) {
    /* The largest number becomes 127, or lies up to a fifth beyond and is cut, for which the others are finer. */
    static const double largest_becomes[] = {127, 129, 132, 136, 141, 147, 153};
    double most = 0, best = 0, least = INFINITY;
    for (int64_t k = 0; k < K; k++) most = fmax(most, fabs((double)row[k]));
    if (most == 0) return 0;
    /* Numbers that int8 has rounded before are kept. */
    for (int q = MOST_INTEGER; q > 0; q--)
        if (is_exact(row, K, to_scale(most / q))) return to_scale(most / q);
    for (size_t i = 0; i < sizeof largest_becomes / sizeof *largest_becomes; i++) {
        double scale = refined(row, K, to_scale(most / largest_becomes[i])), error = squared_error(row, K, scale);
        if (error < least) least = error, best = scale;
    }
    return best;
}

void int8_round(const float *row, int64_t K, double scale, int8_t *out) {
    for (int64_t k = 0; k < K; k++) out[k] = (int8_t)(scale > 0 ? to_integer((double)row[k], scale) : 0);
}

int64_t weight_scale_count(const WeightSpec *spec) {
    return spec->dtype == DTYPE_I8 ? spec->shape.dims[0] : 0;
}

/* The matrix [N][K] = scales [N] times integers. */
static const float *int8_weight(Arena *arena, const WeightSpec *spec, const float *numbers, float *scales) {
    int64_t N = spec->shape.dims[0], K = spec->shape.dims[1];
    float *out = arena_array(arena, (size_t)(N * K), sizeof *out);
    int8_t *row = arena_alloc(arena, (size_t)K);
    for (int64_t n = 0; n < N; n++) {
        double scale = int8_scale(numbers + n * K, K);
        int8_round(numbers + n * K, K, scale, row);
        for (int64_t k = 0; k < K; k++) out[n * K + k] = (float)(scale * row[k]);
        scales[n] = (float)scale;
    }
    return out;
}

static const float *float_weight(Arena *arena, const WeightSpec *spec, const float *numbers, int64_t count) {
    enum { BLOCK = 1024 };
    float *out = arena_array(arena, (size_t)count, sizeof *out);
    double block[BLOCK]; /* of the widest dtype */
    for (int64_t i = 0; i < count; i += BLOCK) {
        int64_t n = count - i < BLOCK ? count - i : BLOCK;
        tensor_from_f32(spec->dtype, numbers + i, n, block);
        const FileTensor stored = {.name = spec->name,
                                   .dtype = spec->dtype,
                                   .data = (const uint8_t *)block,
                                   .bytes = (size_t)n * dtype_bytes(spec->dtype)};
        tensor_to_f32(&stored, 0, n, out + i);
    }
    return out;
}

const float *weight_rounded(Arena *arena, const WeightSpec *spec, const float *numbers, const float **scales) {
    int64_t count = 0;
    if (!shape_elements(spec->shape, &count)) bug("`%s` is too large", spec->name);
    *scales = NULL;
    if (spec->dtype == DTYPE_F32) return numbers;
    if (spec->dtype != DTYPE_I8) return float_weight(arena, spec, numbers, count);
    float *own = arena_array(arena, (size_t)weight_scale_count(spec), sizeof *own);
    *scales = own;
    return int8_weight(arena, spec, numbers, own);
}
