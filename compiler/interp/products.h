/* products.h: products of rows with matrices, in double. Included by interp/ alone. */
#ifndef PRODUCTS_H
#define PRODUCTS_H

#include "numbers.h"

/* The dot product of a[i..i+d-1] and b[j..j+d-1], whose exact value is `sum`, as f32 arithmetic might give it: rounded
 * at the magnitude of sum(|a*b|), or NaN if that overflows; the products of an int8 weight are summed before they are
 * multiplied by the scale of its row. Without rounding it is `sum`. */
double rounded_dot(Rounding *how, double sum, Numbers a, int64_t i, Numbers b, int64_t j, int64_t d);
/* x [n][k], weight [d][k], bias [d] or none -> out [n][d] */
void run_linear(Arena *arena, Rounding *how, Numbers x, Numbers weight, const Numbers *bias, int64_t n, int64_t k,
                int64_t d, double *out);

#endif
