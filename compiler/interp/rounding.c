/* rounding.c: moves the interpreter's results as f32 arithmetic might round them. */
#include "rounding.h"

#include <float.h>
#include <math.h>

Rounding rounding_new(uint64_t seed, double steps) {
    return (Rounding){hash_bytes(0, &seed, sizeof seed) | 1, steps};
}

/* Moves x to `below` or `above`, chosen by the next random bit, or `steps` times as far. */
static double moved(Rounding *how, double x, double below, double above) {
    how->state = how->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return x + how->steps * ((how->state >> 63 ? above : below) - x);
}

double round_result(Rounding *how, double x) {
    float nearest = (float)x;
    if (!(fabs(x) <= (double)FLT_MAX) || (double)nearest == x) return (double)nearest;
    bool low = (double)nearest < x;
    float other = nextafterf(nearest, low ? INFINITY : -INFINITY);
    return moved(how, x, (double)(low ? nearest : other), (double)(low ? other : nearest));
}

bool sum_overflows(const Rounding *how, double magnitude) {
    return how->state && isfinite(magnitude) && magnitude > (double)FLT_MAX;
}

double round_sum(Rounding *how, double sum, double magnitude) {
    if (!isfinite(magnitude)) return sum;
    if (sum_overflows(how, magnitude)) return NAN;
    int exponent;
    frexp(magnitude, &exponent);
    if (exponent < FLT_MIN_EXP) exponent = FLT_MIN_EXP;
    double unit = ldexp(1, exponent - FLT_MANT_DIG), below = unit * floor(sum / unit);
    return below == sum ? sum : moved(how, sum, below, below + unit);
}
