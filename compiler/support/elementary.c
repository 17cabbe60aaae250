/* elementary.c: sine, cosine, logarithm, exponential and power, computed by sums, products and quotients of doubles
 * alone. IEEE 754 defines these to the last bit, unlike the functions of libm, so that tables have the same bytes on
 * every machine. The compiler must not contract a product and a sum into one operation here.
 *
 * A Wide is the sum of two doubles, with about 106 bits (Dekker 1971). */
#include "../attnc.h"

#include <math.h>
#include <string.h>

typedef struct Wide {
    double hi, lo; /* |lo| is at most half a unit in the last place of hi */
} Wide;

static const Wide LN2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
static const Wide HALF_PI = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};

/* a + b; requires |a| >= |b| or a = 0. */
static Wide sum_ordered(double a, double b) {
    double sum = a + b;
    return (Wide){sum, b - (sum - a)};
}

static Wide sum(double a, double b) {
    double sum = a + b, part = sum - a;
    return (Wide){sum, (a - (sum - part)) + (b - part)};
}

static void halve(double a, double *high, double *low) {
    double scaled = 0x1.0000002p+27 * a; /* 2^27 + 1 */
    *high = scaled - (scaled - a);
    *low = a - *high;
}

static Wide product(double a, double b) {
    double a_high, a_low, b_high, b_low, all = a * b;
    halve(a, &a_high, &a_low);
    halve(b, &b_high, &b_low);
    return (Wide){all, ((a_high * b_high - all) + a_high * b_low + a_low * b_high) + a_low * b_low};
}

static Wide wide_sum(Wide a, Wide b) {
    Wide high = sum(a.hi, b.hi);
    return sum_ordered(high.hi, high.lo + (a.lo + b.lo));
}

static Wide wide_product(Wide a, Wide b) {
    Wide high = product(a.hi, b.hi);
    return sum_ordered(high.hi, high.lo + (a.hi * b.lo + a.lo * b.hi));
}

static Wide wide_quotient(Wide a, Wide b) {
    double first = a.hi / b.hi;
    Wide back = wide_product(b, (Wide){first, 0}), rest = wide_sum(a, (Wide){-back.hi, -back.lo});
    return sum_ordered(first, rest.hi / b.hi);
}

/* ---------------------------------------------------------------- logarithm, exponential and power */

/* With x = m 2^e and m near 1, ln m = 2 artanh s for s = (m - 1) / (m + 1). As |s| < 0.172, 23 terms are enough. */
static Wide wide_log(double x) {
    int e;
    double m = frexp(x, &e);
    if (m < 0.70710678118654752) m *= 2, e--;
    Wide s = wide_quotient((Wide){m - 1, 0}, sum(m, 1)), square = wide_product(s, s), series = {0, 0};
    for (int n = 22; n >= 0; n--)
        series = wide_sum(wide_product(series, square), wide_quotient((Wide){1, 0}, (Wide){2 * n + 1, 0}));
    Wide part = wide_product(s, series);
    return wide_sum(wide_product((Wide){e, 0}, LN2), (Wide){2 * part.hi, 2 * part.lo});
}

double portable_log(double x) {
    if (!(x > 0) || isinf(x)) return x == 0 ? -INFINITY : x > 0 ? INFINITY : NAN;
    Wide log = wide_log(x);
    return log.hi + log.lo;
}

/* x = k ln 2 + r with |r| < 0.35, for which 24 terms of the series of e^r are enough. */
static double exp_of(Wide x) {
    if (x.hi > 710) return INFINITY;
    if (x.hi < -746) return 0;
    double k = floor(x.hi / LN2.hi + 0.5);
    Wide off = wide_product((Wide){-k, 0}, LN2), r = wide_sum(x, off), series = {1, 0};
    for (int n = 24; n >= 1; n--)
        series = wide_sum((Wide){1, 0}, wide_quotient(wide_product(series, r), (Wide){n, 0}));
    return ldexp(series.hi + series.lo, (int)k);
}

double portable_exp(double x) { return isnan(x) ? NAN : exp_of((Wide){x, 0}); }

double portable_pow(double x, double y) {
    if (!(x > 0) || isinf(x) || isnan(y)) return NAN;
    if (fabs(y) > 0x1p+64) y = y > 0 ? 0x1p+64 : -0x1p+64; /* the power overflows or is 0 there unless x is 1 */
    return exp_of(wide_product(wide_log(x), (Wide){y, 0}));
}

/* ---------------------------------------------------------------- sine and cosine */

/* The fraction bits of 2 / pi, 32 in each word, which reach 224 bits beyond what the largest double needs. */
static const uint32_t TWO_OVER_PI[] = {
    0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab, 0xdebbc561, 0xb7246e3a,
    0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e, 0xe88235f5, 0x2ebb4484, 0xe99c7026, 0xb45f7e41,
    0x3991d639, 0x835339f4, 0x9c845f8b, 0xbdf9283b, 0x1ff897ff, 0xde05980f, 0xef2f118b, 0x5a0a6d1f, 0x6d367ecf,
    0x27cb09b7, 0x4f463f66, 0x9e5fea2d, 0x7527bac7, 0xebe5f17b, 0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1, 0x1f8d5d08,
    0x56033046, 0xfc7b6bab, 0xf0cfbc20, 0x9af4361d, 0xa9e39161, 0x5ee61b08};

enum { WORDS = 7, WORD_BITS = 32 };

/* 64 bits, from bit `at` on, of a number of WORDS + 2 words with the lowest word first. */
static uint64_t bits_at(const uint32_t *words, int at) {
    uint64_t bits = 0;
    for (int word = at / WORD_BITS, shift = -(at % WORD_BITS); shift < 64 && word < WORDS + 2; word++) {
        bits |= shift < 0 ? (uint64_t)words[word] >> -shift : (uint64_t)words[word] << shift;
        shift += WORD_BITS;
    }
    return bits;
}

/* words[WORDS + 2] = the 53 bits of m times WORDS words of 2 / pi from word `first` on. */
static void multiply_words(uint64_t m, int first, uint32_t *words) {
    uint64_t halves[2] = {m & UINT32_MAX, m >> WORD_BITS}, carry;
    memset(words, 0, (WORDS + 2) * sizeof *words);
    for (int h = 0; h < 2; h++) {
        carry = 0;
        for (int i = 0; i < WORDS; i++) {
            carry += halves[h] * TWO_OVER_PI[first + WORDS - 1 - i] + words[h + i];
            words[h + i] = (uint32_t)carry;
            carry >>= WORD_BITS;
        }
        words[h + WORDS] = (uint32_t)carry;
    }
}

/* Splits a finite x into *rest, |*rest| <= pi / 4, and a multiple of pi / 2, which is returned modulo 4. Of the product
 * with 2 / pi only the bits that matter are computed, which are 7 words (Payne and Hanek 1983). */
static int reduce(double x, Wide *rest) {
    if (fabs(x) < 0.78539816339744830) {
        *rest = (Wide){x, 0};
        return 0;
    }
    int e;
    uint64_t m = (uint64_t)ldexp(frexp(fabs(x), &e), 53);
    e -= 53; /* |x| = m 2^e */
    int first = e > 2 ? (e - 2) / WORD_BITS : 0, point = WORDS * WORD_BITS - (e - first * WORD_BITS);
    uint32_t words[WORDS + 2];
    multiply_words(m, first, words);
    uint64_t high = bits_at(words, point - 64), low = bits_at(words, point - 128);
    int quadrant = (int)(bits_at(words, point) & 3);
    bool above = high >> 63;
    if (above) { /* the next multiple is nearer, and x is below it */
        low = 0 - low;
        high = 0 - high - (low != 0);
    }
    double most = (double)(high >> 11), middle = (double)((high & 0x7ff) << 32 | low >> 32);
    Wide part = sum_ordered(most * 0x1p-53, middle * 0x1p-96), last = {(double)(low & UINT32_MAX) * 0x1p-128, 0};
    *rest = wide_product(wide_sum(part, last), HALF_PI);
    quadrant += above;
    if (above != signbit(x)) *rest = (Wide){-rest->hi, -rest->lo};
    return signbit(x) ? -quadrant & 3 : quadrant & 3;
}

/* The Taylor series after the terms x of sine and 1 - x^2 / 2 of cosine. For |x| <= pi / 4 the terms that are left out
 * are below the last place. */
static const double SINE[] = {1.0 / 355687428096000, -1.0 / 1307674368000, 1.0 / 6227020800, -1.0 / 39916800,
                              1.0 / 362880, -1.0 / 5040, 1.0 / 120, -1.0 / 6};
static const double COSINE[] = {-1.0 / 6402373705728000, 1.0 / 20922789888000, -1.0 / 87178291200, 1.0 / 479001600,
                                -1.0 / 3628800, 1.0 / 40320, -1.0 / 720, 1.0 / 24};
enum { TERMS = sizeof SINE / sizeof *SINE };

static double horner(const double *terms, double z) {
    double value = terms[0];
    for (int i = 1; i < TERMS; i++) value = value * z + terms[i];
    return value;
}

static double sine_of(Wide x) {
    double z = x.hi * x.hi;
    return x.hi + (x.hi * z * horner(SINE, z) + x.lo * (1 - 0.5 * z));
}

static double cosine_of(Wide x) {
    Wide square = product(x.hi, x.hi), first = sum_ordered(1, -0.5 * square.hi);
    double z = square.hi;
    return first.hi + (first.lo - 0.5 * square.lo + (z * z * horner(COSINE, z) - x.hi * x.lo));
}

static double turned(double x, int quadrants) {
    Wide rest;
    if (!isfinite(x)) return NAN;
    int quadrant = reduce(x, &rest) + quadrants;
    double value = quadrant & 1 ? cosine_of(rest) : sine_of(rest);
    return quadrant & 2 ? -value : value;
}

double portable_sin(double x) { return turned(x, 0); }
double portable_cos(double x) { return turned(x, 1); }
