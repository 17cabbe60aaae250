/* quantize.h: rows of activations as integers of 0 to 255. Included by interp/ alone. */
#ifndef QUANTIZE_H
#define QUANTIZE_H

#include "../attnc.h"

/* The scale and the zero point of a row x of k numbers. In f32, step by step: low and high are the least and the
 * largest of 0 and all x; range is high - low; the scale is range / 255, and the zero point is -low * (255 / range),
 * rounded. The scale is NaN where a number or the range is not finite, and 0 where the range is below 2^-100. */
typedef struct RowScale {
    RowHead head;
    float inverse; /* 255 / range; 0 where the scale is 0 or NaN */
} RowScale;

RowScale quantize_scale(const double *x, int64_t k);
/* round(x * inverse) + zero point in f32, limited to 0 to 255; ties go to even. */
uint8_t quantized_code(double x, float inverse, float zero);
double quantized_value(const RowHead *head, uint8_t code); /* scale * (code - zero point) */
/* Compares a row that C has rounded with x, whose numbers may be wrong by those of `by`: counts its numbers, those that
 * this file rounds to another integer, and those that no number so near gives. */
void quantize_compare(const double *x, int64_t k, const double *by, const RowHead *head, const uint8_t *codes,
                      QuantizeReport *report);

#endif
