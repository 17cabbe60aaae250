/* fixed_order.c: sums, products and their operands as reproducible code has them. */
#include "fixed.h"

#include <math.h>

float fixed_add(Arithmetic way, float acc, float a, float b) {
    return way == ARITHMETIC_FUSED ? fmaf(a, b, acc) : acc + a * b;
}

float fixed_sub(Arithmetic way, float acc, float a, float b) {
    return way == ARITHMETIC_FUSED ? fmaf(-a, b, acc) : acc - a * b;
}

const float *fixed_numbers(const Interp *in, int tensor) {
    const Numbers *numbers = &in->numbers[tensor];
    if (numbers->single) return numbers->single;
    const int64_t count = extent(in, tensor, 0) * extent(in, tensor, 1) * extent(in, tensor, 2);
    float *out = arena_array(in->arena, (size_t)count, sizeof *out);
    for (int64_t i = 0; i < count; i++) out[i] = (float)numbers->real[i];
    return out;
}

float fixed_tree(const float lanes[FIXED_LANES]) {
    float sum[FIXED_LANES];
    for (int i = 0; i < FIXED_LANES; i++) sum[i] = lanes[i];
    for (int half = FIXED_LANES / 2; half; half /= 2)
        for (int i = 0; i < half; i++) sum[i] += sum[i + half];
    return sum[0];
}
