/* half.c: converts floats of 16 and 8 bits. */
#include "half.h"

#include <string.h>

float float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

float float_of_half(uint16_t half) {
    uint32_t sign = (half & 0x8000u) << 16, exponent = (half >> 10) & 31u, fraction = half & 0x3ffu;
    if (exponent == 31) return float_of_bits(sign | 0x7f800000u | fraction << 13);
    if (exponent) return float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
    float magnitude = (float)fraction * 0x1p-24f;
    return sign ? -magnitude : magnitude;
}

/* Micikevicius et al. 2022, arXiv:2209.05433, table 1. E4M3 has no infinity, and one NaN. */
float float_of_f8(Dtype dtype, uint8_t bits) {
    if (dtype == DTYPE_F8_E5M2) return float_of_half((uint16_t)(bits << 8));
    const uint32_t sign = (uint32_t)(bits & 0x80) << 24, exponent = bits >> 3 & 15u, fraction = bits & 7u;
    if ((bits & 0x7f) == 0x7f) return float_of_bits(sign | 0x7fc00000u);
    if (exponent) return float_of_bits(sign | (exponent + 120) << 23 | fraction << 20);
    const float magnitude = (float)fraction * 0x1p-9f;
    return sign ? -magnitude : magnitude;
}

/* To nearest even; numbers above the largest become infinite. NaN stays NaN: it is made quiet, so that no NaN whose
 * payload is in the lower bits alone becomes infinite. */
uint16_t bf16_of_float(float number) {
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    if (number != number) return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/* To nearest even; numbers from 65520 on become infinite. NaN stays NaN, and is made quiet. */
uint16_t half_of_float(float number) {
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    const uint32_t sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu, normal = 0x38800000u; /* 2^-14 */
    if (size > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | (size >> 13 & 0x1ffu));
    if (size >= 0x47800000u) return (uint16_t)(sign | 0x7c00u); /* 2^16 */
    if (size >= normal) return (uint16_t)(sign | ((size - 0x38000000u + 0xfffu + (size >> 13 & 1u)) >> 13));
    /* Below 2^-14 a half is a multiple of 2^-24, which is half the last bit of the sum: the sum rounds to it. */
    float sum = float_of_bits(size) + 0.5f;
    memcpy(&bits, &sum, sizeof bits);
    return (uint16_t)(sign | (bits - 0x3f000000u));
}
