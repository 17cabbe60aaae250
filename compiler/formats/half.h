/* half.h: numbers of 16 bits, as their bits. */
#ifndef HALF_H
#define HALF_H

#include <stdint.h>

float float_of_bits(uint32_t bits);
float float_of_half(uint16_t half);
uint16_t bf16_of_float(float number);
uint16_t half_of_float(float number);

#endif
