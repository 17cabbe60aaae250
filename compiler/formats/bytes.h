/* bytes.h: little-endian numbers in files. */
#ifndef BYTES_H
#define BYTES_H

#include <stdint.h>

/* The number in `bytes` bytes, at most 8, which may be unaligned. */
static inline uint64_t number_at(const uint8_t *at, int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) value |= (uint64_t)at[i] << 8 * i;
    return value;
}

#endif
