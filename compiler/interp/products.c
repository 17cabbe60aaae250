/* products.c: products of rows with matrices, in double. */
#include "numbers.h"

#include <math.h>

double rounded_dot(Rounding *how, double sum, Numbers a, int64_t i, Numbers b, int64_t j, int64_t d) {
    if (!how->state) return sum;
    double magnitude = 0;
    for (int64_t c = 0; c < d; c++) magnitude += fabs(at(a, i + c) * at(b, j + c));
    if (b.scales && sum_overflows(how, magnitude / (double)b.scales[j / d])) return NAN;
    return round_sum(how, sum, magnitude);
}

enum { COLUMN_BLOCK = 64 };

/* The weights of a block of columns are transposed first, so that the inner loop runs over neighbours in memory. */
void run_linear(Arena *arena, Rounding *how, Numbers x, Numbers weight, const Numbers *bias, int64_t n, int64_t k,
                int64_t d, double *out) {
    double *transposed = arena_array(arena, (size_t)(k * COLUMN_BLOCK), sizeof *transposed);
    for (int64_t c0 = 0; c0 < d; c0 += COLUMN_BLOCK) {
        int64_t columns = d - c0 < COLUMN_BLOCK ? d - c0 : COLUMN_BLOCK;
        progress_tick();
        for (int64_t c = 0; c < columns; c++)
            for (int64_t j = 0; j < k; j++) transposed[j * COLUMN_BLOCK + c] = at(weight, (c0 + c) * k + j);
        for (int64_t i = 0; i < n; i++) {
            double sum[COLUMN_BLOCK] = {0};
            for (int64_t j = 0; j < k; j++) {
                double factor = at(x, i * k + j);
                for (int64_t c = 0; c < COLUMN_BLOCK; c++) sum[c] += factor * transposed[j * COLUMN_BLOCK + c];
            }
            for (int64_t c = 0; c < columns; c++)
                out[i * d + c0 + c] = rounded_dot(how, sum[c], x, i * k, weight, (c0 + c) * k, k) +
                                      (bias ? at(*bias, c0 + c) : 0);
        }
    }
}
