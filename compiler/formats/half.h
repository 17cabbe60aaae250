/* half.h: floats of 16 and 8 bits, as their bits. */
#ifndef HALF_H
#define HALF_H

#include "../attnc.h"

#include <stdint.h>

float float_of_bits(uint32_t bits);
float float_of_half(uint16_t half);
float float_of_f8(Dtype dtype, uint8_t bits); /* DTYPE_F8_E4M3 or DTYPE_F8_E5M2 */
uint16_t bf16_of_float(float number);
uint16_t half_of_float(float number);

#endif
