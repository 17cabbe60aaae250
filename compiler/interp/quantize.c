/* quantize.c: rounds rows of activations to integers, with a scale and a zero point for each row that its smallest and
 * its largest number determine, and compares rows that compiled C has rounded with the numbers that they stand for.
 *
 * A compiled row differs from the interpreter's where a number lies between two integers, since the numbers before the
 * rounding differ as f32 does. So the interpreter takes over the compiled rows, after it has held each integer against
 * its own number, and what follows keeps the bound of f32. */
#include "quantize.h"

#include <math.h>

enum { MOST_CODE = 255 };

/* A smaller range of a row counts as 0, so that no reciprocal is infinite. */
#define LEAST_RANGE 0x1p-100f

RowScale quantize_scale(const double *x, int64_t k) {
    float low = 0, high = 0;
    bool finite = true;
    for (int64_t c = 0; c < k; c++) {
        const float number = (float)x[c];
        finite &= isfinite(number) != 0;
        if (number < low) low = number;
        if (number > high) high = number;
    }
    const float range = high - low;
    if (!finite || !isfinite(range)) return (RowScale){{NAN, 0}, 0};
    if (range < LEAST_RANGE) return (RowScale){{0, 0}, 0};
    const float inverse = MOST_CODE / range;
    return (RowScale){{range / MOST_CODE, nearbyintf(-low * inverse)}, inverse};
}

double quantized_value(const RowHead *head, uint8_t code) {
    return head->scale == head->scale ? (double)head->scale * ((double)code - (double)head->zero) : NAN;
}

uint8_t quantized_code(double x, float inverse, float zero) {
    const float code = nearbyintf((float)x * inverse) + zero;
    return (uint8_t)(code > 0 ? code < MOST_CODE ? code : MOST_CODE : 0);
}

void row_in(Dtype dtype, const double *x, int64_t k, double *out) {
    if (dtype == DTYPE_I8) {
        const RowScale own = quantize_scale(x, k);
        for (int64_t c = 0; c < k; c++)
            out[c] = quantized_value(&own.head, quantized_code(x[c], own.inverse, own.head.zero));
    } else if (dtype == DTYPE_F32) {
        for (int64_t c = 0; c < k; c++) out[c] = x[c];
    } else {
        round_row(dtype, x, k, out);
    }
}

/* Whether a head may be that of the row: its range within `by` of the row's at each end. */
static bool head_fits(const double *x, int64_t k, const RowHead *own, const RowHead *given, double by) {
    if (isnan(own->scale) || isnan(given->scale)) return isnan(own->scale) && isnan(given->scale);
    double range = MOST_CODE * fabs((double)own->scale - (double)given->scale);
    if (range > 2 * by + 0x1p-20 * MOST_CODE * (double)own->scale) return false;
    if (given->scale == 0) return given->zero == 0;
    double low = 0;
    for (int64_t c = 0; c < k; c++) low = fmin(low, x[c]);
    double zero = -low / (double)given->scale;
    return given->scale > 0 && given->zero >= 0 && given->zero <= MOST_CODE && given->zero == nearbyintf(given->zero) &&
           fabs((double)given->zero - zero) <= 0.5 + 0x1p-10 + by / (double)given->scale;
}

static bool code_fits(double x, const RowHead *head, uint8_t code, double by) {
    if (!(head->scale > 0)) return code == 0;
    double exact = x / (double)head->scale + (double)head->zero, slack = 0.5 + 0x1p-10 + by / (double)head->scale;
    if (exact > MOST_CODE) exact = MOST_CODE;
    if (exact < 0) exact = 0;
    return fabs(code - exact) <= slack;
}

void quantize_compare(const double *x, int64_t k, const double *by, const RowHead *head, const uint8_t *codes,
                      QuantizeReport *report) {
    const RowScale own = quantize_scale(x, k);
    double most = 0;
    for (int64_t c = 0; c < k; c++) most = fmax(most, by[c]);
    const bool fits = head_fits(x, k, &own.head, head, most);
    for (int64_t c = 0; c < k; c++) {
        if (head->scale > 0 && codes[c] != quantized_code(x[c], own.inverse, head->zero))
            count_tie(report, x[c], (double)codes[c]);
        report->wrong += !fits || !(isnan(head->scale) || code_fits(x[c], head, codes[c], by[c]));
    }
    report->numbers += k;
    report->most_ties += (double)k * SHARE_OF_TIES;
}
