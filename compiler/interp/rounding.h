/* rounding.h: moves the interpreter's results as f32 arithmetic might round them. Included by interp/ alone. */
#ifndef ROUNDING_H
#define ROUNDING_H

#include "../attnc.h"

/* Results are rounded in random directions, so that the differences of several runs estimate the error of f32. */
typedef struct Rounding {
    uint64_t state; /* of the generator of directions; 0: results stay as they are */
    double steps;   /* the distance that a result is moved, as a multiple of the distance to the neighbouring f32 */
} Rounding;

Rounding rounding_new(uint64_t seed, double steps);

/* Moves x to a randomly chosen neighbouring f32, or `steps` times as far. NaN and infinite results are not moved. */
double round_result(Rounding *how, double x);
/* Whether partial sums may overflow f32; `magnitude` is the sum of the absolute values of the terms. False without
 * rounding, and for an infinite or NaN magnitude, because the sum in double is then infinite or NaN itself. */
bool sum_overflows(const Rounding *how, double magnitude);
/* The sum as f32 arithmetic might give it: NaN if partial sums may overflow, else rounded to the last place of a number
 * as large as `magnitude`. The size of the sum itself would be too small if terms cancel. The factors are not rounded,
 * since inputs and weights are exact. */
double round_sum(Rounding *how, double sum, double magnitude);

#endif
