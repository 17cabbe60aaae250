/* lambda.c: the factor of the second softmax of differential attention. It depends on weights alone and is computed
 * when these are packed, not in a call. */
#include "../attnc.h"

#include <float.h>
#include <math.h>

static double product(const float *a, const float *b, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

/* Ye et al. 2024, arXiv:2410.05258, equation 2. The heads of a layer have the same lambda. */
bool lambda_fill(const Derived *d, const float *const weights[LAMBDA_SOURCES], double *out) {
    const double first = product(weights[SOURCE_QUERY], weights[SOURCE_KEY], d->columns);
    const double second = product(weights[SOURCE_QUERY2], weights[SOURCE_KEY2], d->columns);
    const double lambda = portable_exp(first) - portable_exp(second) + d->init;
    for (int64_t i = 0; i < d->shape.dims[0]; i++) out[i] = f32_holds(lambda) ? lambda : 0;
    return fabs(lambda) <= (double)FLT_MAX;
}
