/* quantize.h: rows as integers of 0 to 255, and as the numbers of a narrower type. Included by interp/ alone. */
#ifndef QUANTIZE_H
#define QUANTIZE_H

#include "../attnc.h"

/* --- interp/quantize.c */
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

/* --- interp/round.c */
/* Rounds a row x of d numbers, which f32 holds first, to those of `dtype`; ties go to even.
 *
 * BF16 and F16: each number by itself; beyond the largest one it is infinite, and NaN stays NaN.
 * I8: a number is scale * integer, with an integer of -127 to 127. In f32, step by step: the scale is max|x| / 127,
 * rounded to 16 significant bits, so that every product is exact and a rounded row rounds to itself; the integer is
 * x * (1 / scale), rounded. A row whose max|x| is below 2^-100 is 0, and one with an infinity or a NaN is NaN. */
void round_row(Dtype dtype, const double *x, int64_t d, double *out);
/* Compares a row that C has rounded with x, which may be wrong by `by`: counts its numbers, those that round_row rounds
 * otherwise, and those that no number so near gives. */
void round_compare(Dtype dtype, const double *x, int64_t d, double by, const float *given, QuantizeReport *report);
/* Counts a tie, whose number x was rounded to `given`. If an earlier tie had the same two numbers in f32, the count
 * stays as it is. */
void count_tie(QuantizeReport *report, double x, double given);

#endif
