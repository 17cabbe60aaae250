/* blocks.c: decodes the block formats of GGUF files. Layouts and formulas are those of ggml-org/ggml, src/ggml-common.h
 * and src/ggml-quants.c. The products in a formula have at most 24 significant bits, so that f32 holds them exactly and
 * only a last addition rounds. */
#include "blocks.h"

#include "bytes.h"
#include "coded.h"
#include "half.h"

#include <stddef.h>
#include <string.h>

static float half_at(const uint8_t *at) { return float_of_half((uint16_t)number_at(at, 2)); }

/* ---------------------------------------------------------------- 32 numbers, one scale */

/* The nibbles of 16 bytes: first the lower ones, then the upper ones. */
static inline int nibble(const uint8_t *bytes, int i) { return i < 16 ? bytes[i] & 15 : bytes[i - 16] >> 4; }

/* The fifth bits of Q5_0 and Q5_1: bit i of 32 bits belongs to number i. */
static inline int fifth_bit(const uint8_t *bits, int i) { return (bits[i / 8] >> i % 8 & 1) << 4; }

static void decode_q4_0(const uint8_t *block, float *out) {
    const float scale = half_at(block);
    for (int i = 0; i < 32; i++) out[i] = scale * (float)(nibble(block + 2, i) - 8);
}

static void decode_q4_1(const uint8_t *block, float *out) {
    const float scale = half_at(block), least = half_at(block + 2);
    for (int i = 0; i < 32; i++) out[i] = scale * (float)nibble(block + 4, i) + least;
}

static void decode_q5_0(const uint8_t *block, float *out) {
    const float scale = half_at(block);
    for (int i = 0; i < 32; i++) out[i] = scale * (float)((nibble(block + 6, i) | fifth_bit(block + 2, i)) - 16);
}

static void decode_q5_1(const uint8_t *block, float *out) {
    const float scale = half_at(block), least = half_at(block + 2);
    for (int i = 0; i < 32; i++) out[i] = scale * (float)(nibble(block + 8, i) | fifth_bit(block + 4, i)) + least;
}

static void decode_q8_0(const uint8_t *block, float *out) {
    const float scale = half_at(block);
    for (int i = 0; i < 32; i++) out[i] = scale * (float)(int8_t)block[2 + i];
}

static void decode_iq4_nl(const uint8_t *block, float *out) {
    static const int8_t values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
    const float scale = half_at(block);
    for (int i = 0; i < 32; i++) out[i] = scale * (float)values[nibble(block + 2, i)];
}

static void decode_mxfp4(const uint8_t *block, float *out) {
    const float scale = e8m0_half(block[0]);
    for (int i = 0; i < 32; i++) out[i] = scale * (float)e2m1_doubled[nibble(block + 1, i)];
}

/* ---------------------------------------------------------------- 256 numbers, scales of parts */

/* Scale and least number of part 0 to 7 in 6 bits each, of 12 bytes: the parts from 4 on have their upper 2 bits in the
 * bytes of the first parts. */
static void part_scales(const uint8_t *bytes, int part, float *scale, float *least) {
    int s, l;
    if (part < 4) {
        s = bytes[part] & 63;
        l = bytes[part + 4] & 63;
    } else {
        s = (bytes[part + 4] & 15) | (bytes[part - 4] >> 6) << 4;
        l = bytes[part + 4] >> 4 | (bytes[part] >> 6) << 4;
    }
    *scale = (float)s;
    *least = (float)l;
}

/* Q4_K and Q5_K have 8 parts of 32 numbers. Parts 2i and 2i + 1 are the lower and the upper nibbles of the same 32
 * bytes. Q5_K adds a fifth bit: bit p of byte i of `high` belongs to number i of part p. For Q4_K, `high` is NULL. */
static void decode_parts(const uint8_t *block, const uint8_t *high, const uint8_t *nibbles, float *out) {
    const float whole = half_at(block), whole_least = half_at(block + 2);
    for (int part = 0; part < 8; part++) {
        float scale, least;
        part_scales(block + 4, part, &scale, &least);
        const float d = whole * scale, m = whole_least * least;
        for (int i = 0; i < 32; i++) {
            int code = nibbles[part / 2 * 32 + i] >> part % 2 * 4 & 15;
            if (high) code |= (high[i] >> part & 1) << 4;
            out[part * 32 + i] = d * (float)code - m;
        }
    }
}

static void decode_q4_k(const uint8_t *block, float *out) { decode_parts(block, NULL, block + 16, out); }
static void decode_q5_k(const uint8_t *block, float *out) { decode_parts(block, block + 16, block + 48, out); }

/* 16 parts of 16 numbers. Each half of the block has 64 bytes with the lower 4 bits and 32 bytes with the upper 2 bits
 * of four runs of 32 numbers. */
static void decode_q6_k(const uint8_t *block, float *out) {
    const float whole = half_at(block + 208);
    for (int i = 0; i < 256; i++) {
        const int half = i / 128, run = i % 128 / 32, at = i % 32;
        const uint8_t *low = block + half * 64, *high = block + 128 + half * 32;
        const int lower = low[run % 2 * 32 + at] >> run / 2 * 4 & 15, upper = high[at] >> run * 2 & 3;
        const float scale = whole * (float)(int8_t)block[192 + i / 16];
        out[i] = scale * (float)((lower | upper << 4) - 32);
    }
}

/* ---------------------------------------------------------------- the table */

/* Scales of f16 need halves, and powers of two do not. A code of Q8_0 is -128 in no file that llama.cpp writes. */
static const BlockFormat formats[] = {
    {2, "Q4_0", "int4:32:halves", "int4:32:halves", 32, 18, decode_q4_0},
    {3, "Q4_1", NULL, "int4:32:offset:halves", 32, 20, decode_q4_1},
    {6, "Q5_0", "int8:32:halves", "int8:32:halves", 32, 22, decode_q5_0},
    {7, "Q5_1", NULL, "int8:32:halves", 32, 24, decode_q5_1},
    {8, "Q8_0", "int8:32:halves", "int8:32:halves", 32, 34, decode_q8_0},
    {12, "Q4_K", NULL, "int4:32:offset:halves", 256, 144, decode_q4_k},
    {13, "Q5_K", NULL, "int8:32:halves", 256, 176, decode_q5_k},
    {14, "Q6_K", NULL, "int8:32:halves", 256, 210, decode_q6_k},
    {20, "IQ4_NL", "int8:32:halves", "int8:32:halves", 32, 18, decode_iq4_nl},
    {39, "MXFP4", "int8:32", "int8:32", 32, 17, decode_mxfp4},
};

const BlockFormat *block_format(uint32_t id) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (formats[i].id == id) return &formats[i];
    return NULL;
}

void block_numbers(const BlockFormat *format, const uint8_t *data, int64_t first, int64_t count, float *out) {
    const int64_t size = format->elements;
    float block[MOST_BLOCK_ELEMENTS];
    while (count > 0) {
        const int64_t skipped = first % size, n = size - skipped < count ? size - skipped : count;
        const uint8_t *from = data + first / size * format->bytes;
        format->decode(from, n == size ? out : block);
        if (n < size) memcpy(out, block + skipped, (size_t)n * sizeof *out);
        first += n, count -= n, out += n;
    }
}
