/* round.h: rows as the numbers of a narrower type. Included by interp/ alone. */
#ifndef ROUND_H
#define ROUND_H

#include "../attnc.h"
#include "interp.h"

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
