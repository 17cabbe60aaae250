/* coded.c: the numbers of quantized matrices. */
#include "coded.h"

#include "bytes.h"
#include "half.h"

static uint32_t word_at(const uint8_t *words, int64_t index) { return (uint32_t)number_at(words + 4 * index, 4); }

static float real_at(const uint8_t *data, Dtype type, int64_t index) {
    if (type == DTYPE_F32) return float_of_bits(word_at(data, index));
    const uint16_t half = (uint16_t)number_at(data + 2 * index, 2);
    return type == DTYPE_F16 ? float_of_half(half) : float_of_bits((uint32_t)half << 16);
}

static float rounded_to(Dtype type, float number) {
    if (type == DTYPE_BF16) return float_of_bits((uint32_t)bf16_of_float(number) << 16);
    return type == DTYPE_F16 ? float_of_half(half_of_float(number)) : number;
}

/* The code at bit `bit` of the words at `at`, which are `step` words apart; it may begin in one and end in the next. */
static uint32_t bits_at(const uint8_t *words, int64_t at, int64_t step, int64_t bit, int bits) {
    const int64_t first = at + bit / 32 * step, skipped = bit % 32;
    uint64_t value = word_at(words, first);
    if (skipped + bits > 32) value |= (uint64_t)word_at(words, first + step) << 32;
    return (uint32_t)(value >> skipped) & ((1u << bits) - 1);
}

static int64_t group_of(const CodedMatrix *m, int64_t column) {
    return m->order ? word_at(m->order, column) : column / m->block_columns;
}

/* Frantar et al. 2022, arXiv:2210.17323, in the layout of AutoGPTQ: codes [columns * bits / 32][rows], zeros
 * [groups][rows * bits / 32], scales [groups][rows]. The first version of the layout stores zero - 1. */
float gptq_number(const CodedMatrix *m, int64_t row, int64_t column) {
    const int64_t group = group_of(m, column);
    const uint32_t code = bits_at(m->codes, row, m->code_width, column * m->bits, m->bits);
    const uint32_t zero = bits_at(m->zeros, group * m->zero_width, 1, row * m->bits, m->bits);
    const int steps = (int)code - (int)zero - m->least_zero;
    return real_at(m->scales, m->scale_type, group * m->scale_width + row) * (float)steps;
}

/* Lin et al. 2023, arXiv:2306.00978, in the layout of AutoAWQ's `gemm`: codes [columns][rows / 8], zeros
 * [groups][rows / 8], scales [groups][rows]. The nibbles of a word, from the lowest on, are rows 0 2 4 6 1 3 5 7. */
float awq_number(const CodedMatrix *m, int64_t row, int64_t column) {
    static const int places[8] = {0, 4, 1, 5, 2, 6, 3, 7};
    const int64_t group = group_of(m, column);
    const int shift = 4 * places[row % 8];
    const int code = word_at(m->codes, column * m->code_width + row / 8) >> shift & 15,
              zero = word_at(m->zeros, group * m->zero_width + row / 8) >> shift & 15;
    return real_at(m->scales, m->scale_type, group * m->scale_width + row) * (float)(code - zero);
}

static float scale_of(const CodedMatrix *m, int64_t row, int64_t column) {
    const int64_t line = m->order ? row * m->scale_width : row / m->block_rows * m->scale_width;
    return real_at(m->scales, m->scale_type, line + group_of(m, column));
}

/* `pack-quantized` of compressed-tensors: codes [rows][columns * bits / 32] and zeros [rows * bits / 32][groups], both
 * with half of their range added. */
float packed_number(const CodedMatrix *m, int64_t row, int64_t column) {
    const int half = 1 << (m->bits - 1);
    int code = (int)bits_at(m->codes, row * m->code_width, 1, column * m->bits, m->bits) - half;
    if (m->zeros) code -= (int)bits_at(m->zeros, group_of(m, column), m->zero_width, row * m->bits, m->bits) - half;
    return rounded_to(m->rounded, scale_of(m, row, column) * (float)code);
}

/* A number of 8 bits for each number, times the scale of its block. */
float scaled_number(const CodedMatrix *m, int64_t row, int64_t column) {
    const uint8_t code = m->codes[row * m->columns + column];
    float number = m->code_type == DTYPE_I8 ? (float)(int8_t)code : float_of_f8(m->code_type, code);
    if (m->zeros) number -= (float)(int8_t)m->zeros[row / m->block_rows * m->zero_width + group_of(m, column)];
    return rounded_to(m->rounded, scale_of(m, row, column) * number);
}

/* Dettmers et al. 2023, arXiv:2305.14314, in the layout of bitsandbytes: the code of an even number is the upper half
 * of a byte, each block has a scale, and scales can have codes of 8 bits with scales of their own. */
float four_bit_number(const CodedMatrix *m, int64_t row, int64_t column) {
    const int64_t at = row * m->columns + column, block = at / m->block;
    const int code = at % 2 ? m->codes[at / 2] & 15 : m->codes[at / 2] >> 4;
    float scale;
    if (m->nested) {
        scale = real_at(m->nested_levels, DTYPE_F32, m->scales[block]);
        scale *= real_at(m->nested, DTYPE_F32, block / m->nested_block);
        scale += m->offset; /* in a statement of its own, which is not fused with the product */
    } else {
        scale = real_at(m->scales, DTYPE_F32, block);
    }
    return rounded_to(m->rounded, real_at(m->levels, DTYPE_F32, code) * scale);
}

/* Dettmers et al. 2022, arXiv:2208.07339, in the layout of bitsandbytes: the scale is a row's greatest magnitude. */
float eight_bit_number(const CodedMatrix *m, int64_t row, int64_t column) {
    const float number = (float)(int8_t)m->codes[row * m->columns + column] * real_at(m->scales, DTYPE_F32, row);
    return number * 7.874015718698502e-3f; /* 1/127, as bitsandbytes rounds it */
}

/* OCP Microscaling Formats, version 1.0, sections 5.3.3 and 5.4.1. The table has doubled numbers, so that the scale, an
 * exponent of 8 bits with bias 127, is halved. */
const int8_t e2m1_doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

float e8m0_half(uint8_t code) {
    return float_of_bits(code < 2 ? UINT32_C(0x00200000) << code : (uint32_t)(code - 1) << 23);
}

/* In the layout of GPT-OSS: codes [rows][columns / 2], whose lower halves are the even columns, and a scale for each 32
 * columns of a row. */
float mxfp4_number(const CodedMatrix *m, int64_t row, int64_t column) {
    const int64_t at = row * m->columns + column;
    const int code = at % 2 ? m->codes[at / 2] >> 4 : m->codes[at / 2] & 15;
    return e8m0_half(m->scales[at / 32]) * (float)e2m1_doubled[code];
}

const char *coded_exact(const CodedMatrix *m) {
    static const char *const words[] = {"int8:32:halves", "int8:64:halves", "int8:128:halves"};
    if (m->number == mxfp4_number) return "int8:32";
    const bool grouped = (m->number == gptq_number || m->number == awq_number) && m->scale_type == DTYPE_F16 &&
                         m->bits <= 4 && !m->order && m->columns % m->block_columns == 0;
    for (int i = 0; grouped && i < 3; i++)
        if (m->block_columns == 32 << i) return words[i];
    return m->rounded == DTYPE_BF16 ? "bf16" : m->rounded == DTYPE_F16 ? "f16" : NULL;
}

const char *coded_nearest(const CodedMatrix *m) {
    const bool nibbles = m->number == four_bit_number || (m->bits && m->bits <= 4 && m->number != mxfp4_number);
    return nibbles ? "int4:32:offset:halves" : m->number == mxfp4_number ? "int8:32" : "int8:32:halves";
}

/* Columns are the outer loop over a few rows, since codes of neighbouring rows can share a word. */
void coded_numbers(const CodedMatrix *m, int64_t first, int64_t count, float *out) {
    enum { ROWS = 16 };
    const int64_t last = first + count, begin = first / m->columns;
    const bool within = count <= m->columns - first % m->columns; /* one row */
    for (int64_t row = begin; row * m->columns < last; row += ROWS)
        for (int64_t c = within ? first % m->columns : 0; c < (within ? last - begin * m->columns : m->columns); c++)
            for (int64_t r = row; r < row + ROWS && r < m->rows; r++) {
                const int64_t at = r * m->columns + c;
                if (at >= first && at < last) out[at - first] = m->number(m, r, c);
            }
}
