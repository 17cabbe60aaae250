/* round.c: rounds rows to the numbers of a narrower type, and judges rows that compiled C has rounded. As in
 * quantize.c, the interpreter takes over the compiled rows, after it has held each number against its own. */
#include "quantize.h"

#include <math.h>
#include <string.h>

enum { MOST_CODE = 127, SCALE_BITS = 16 };

/* A row of smaller numbers counts as 0, so that no reciprocal is infinite. */
#define LEAST_LARGEST 0x1p-100f

/* A float type: `digits` significant bits, and exponents of `least` to `most` as frexp counts them. */
typedef struct FloatType {
    int digits, least, most;
} FloatType;

static FloatType float_type(Dtype dtype) {
    return dtype == DTYPE_BF16 ? (FloatType){8, -125, 128} : (FloatType){11, -13, 16};
}

/* The distance of the neighbours of a number of x's size. */
static double unit_at(const FloatType *type, double x) {
    int exponent = type->least;
    if (x != 0) frexp(x, &exponent);
    return ldexp(1, (exponent > type->least ? exponent : type->least) - type->digits);
}

static double to_float(const FloatType *type, double x) {
    if (!isfinite(x)) return x;
    const double unit = unit_at(type, x), number = nearbyint(x / unit) * unit;
    return fabs(number) < ldexp(1, type->most) ? number : copysign(INFINITY, x);
}

/* Of a row of integers; 0 for a row of zeros, and NaN for one that is not finite. */
static float scale_of(const double *x, int64_t d) {
    float largest = 0;
    for (int64_t c = 0; c < d; c++) {
        const float size = fabsf((float)x[c]);
        if (!isfinite(size)) return NAN;
        if (size > largest) largest = size;
    }
    if (largest < LEAST_LARGEST) return 0;
    const double scale = (double)(largest / MOST_CODE);
    int exponent;
    frexp(scale, &exponent);
    return (float)ldexp(nearbyint(ldexp(scale, SCALE_BITS - exponent)), exponent - SCALE_BITS);
}

static double integer_of(double x, float scale) {
    return scale > 0 ? (double)nearbyintf((float)x * (1 / scale)) : 0;
}

void round_row(Dtype dtype, const double *x, int64_t d, double *out) {
    if (dtype != DTYPE_I8) {
        const FloatType type = float_type(dtype);
        for (int64_t c = 0; c < d; c++) out[c] = to_float(&type, (double)(float)x[c]);
        return;
    }
    const float scale = scale_of(x, d);
    for (int64_t c = 0; c < d; c++) out[c] = isnan(scale) ? NAN : (double)scale * integer_of(x[c], scale);
}

/* If the table is full, the newest tie replaces an older one. The older one would then be counted twice, and no tie is
 * missed. */
void count_tie(QuantizeReport *report, double x, double given) {
    const float key[2] = {(float)x, (float)given};
    const uint64_t hash = hash_bytes(0, key, sizeof key), places = sizeof report->seen / sizeof *report->seen;
    uint64_t at = hash % places;
    for (uint64_t i = 1; i < places && report->seen[at] != 0 && report->seen[at] != hash; i++) at = (at + 1) % places;
    report->ties += report->seen[at] != hash;
    report->seen[at] = hash;
}

static bool same(double a, double b) { return a == b || (isnan(a) && isnan(b)); }

/* Whether a number of the float type may be that of x. */
static bool float_fits(const FloatType *type, double x, double given, double by) {
    const double most = ldexp(1, type->most), least_infinite = most - ldexp(1, type->most - type->digits - 1);
    if (isnan(x) || isnan(given)) return isnan(x) && isnan(given);
    if (!isfinite(given)) return copysign(1, given) * x >= least_infinite - by;
    if (!isfinite(x)) return false;
    return to_float(type, given) == given && fabs(given - x) <= 0.5 * unit_at(type, given) + by;
}

/* The rounding error of functions such as gelu depends on the magnitude of the argument, not of the result. A tie is
 * counted only if the neighbours of the number are farther apart than this error, which is about 2^-24 of the largest
 * number of the tensor. `by` is 2^8 times this error. */
static void compare_floats(Dtype dtype, const double *x, int64_t d, double by, const float *given,
                           QuantizeReport *report) {
    const FloatType type = float_type(dtype);
    const double rounding = by * 0x1p-8;
    int64_t resolved = 0;
    for (int64_t c = 0; c < d; c++) {
        report->wrong += !float_fits(&type, x[c], (double)given[c], by);
        if (0.5 * unit_at(&type, x[c]) < rounding) continue;
        resolved++;
        if (!same(to_float(&type, (double)(float)x[c]), (double)given[c])) count_tie(report, x[c], (double)given[c]);
    }
    report->most_ties += (double)resolved * (dtype == DTYPE_F16 ? 8 : 1) * SHARE_OF_TIES;
}

/* The scale of a row that is rounded already. */
static float given_scale(const float *given, int64_t d) {
    float largest = 0;
    for (int64_t c = 0; c < d; c++) {
        if (isnan(given[c])) return NAN;
        largest = fmaxf(largest, fabsf(given[c]));
    }
    return largest / MOST_CODE;
}

static void compare_integers(const double *x, int64_t d, double by, const float *given, QuantizeReport *report) {
    const float own = scale_of(x, d), scale = given_scale(given, d);
    bool fits = isnan(own) == isnan(scale);
    if (!isnan(own) && !isnan(scale))
        fits = MOST_CODE * fabs((double)own - (double)scale) <= by + MOST_CODE * (double)own * 0x1p-15;
    for (int64_t c = 0; c < d; c++) {
        const double code = scale > 0 ? (double)given[c] / (double)scale : 0;
        const double exact = scale > 0 ? x[c] / (double)scale : 0;
        if (scale > 0 && code != integer_of(x[c], scale)) count_tie(report, x[c], (double)given[c]);
        if (isnan(scale)) report->wrong += !fits || !isnan(given[c]);
        else if (!(scale > 0)) report->wrong += !fits || given[c] != 0;
        else report->wrong += !fits || code != nearbyint(code) ||
                              fabs(code - exact) > 0.5 + 0x1p-10 + by / (double)scale;
    }
    report->most_ties += (double)d * SHARE_OF_TIES;
}

void round_compare(Dtype dtype, const double *x, int64_t d, double by, const float *given, QuantizeReport *report) {
    if (dtype == DTYPE_I8) compare_integers(x, d, by, given, report);
    else compare_floats(dtype, x, d, by, given, report);
    report->numbers += d;
}
