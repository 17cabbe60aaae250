/* coded.h: matrices that a quantized checkpoint holds as integers or short floats in several tensors. */
#ifndef CODED_H
#define CODED_H

#include "../attnc.h"

/* A matrix [rows][columns] of codes; `number` decodes the one at a row and a column. The pointers lead into mapped
 * files, and quantized.c has checked that these hold all codes, scales and zeros of the matrix. */
typedef struct CodedMatrix {
    float (*number)(const struct CodedMatrix *matrix, int64_t row, int64_t column);
    int64_t rows, columns;
    const uint8_t *codes, *scales, *zeros, *order; /* zeros and order may be NULL; order is I32 [columns] */
    Dtype code_type, scale_type, rounded;          /* the result is rounded to the last one */
    int bits, least_zero;                          /* of a code; what a zero of 0 stands for */
    int64_t code_width, scale_width, zero_width;   /* numbers or words in a line of each */
    int64_t block_rows, block_columns;             /* that share a scale */
    const uint8_t *levels, *nested, *nested_levels; /* of bitsandbytes: the 16 values; the scales of the scales */
    int64_t block, nested_block;                    /* numbers, and scales, that share one */
    float offset;                                   /* of the scales */
} CodedMatrix;

/* The words of --precision weights=… that hold the numbers exactly; NULL where only f32 does. */
const char *coded_exact(const CodedMatrix *matrix);
const char *coded_nearest(const CodedMatrix *matrix); /* the words whose numbers are nearest to them, or NULL */
/* `count` numbers of the matrix, by rows, from number `first` on. */
void coded_numbers(const CodedMatrix *matrix, int64_t first, int64_t count, float *out);

/* The formulas. */
float gptq_number(const CodedMatrix *matrix, int64_t row, int64_t column);
float awq_number(const CodedMatrix *matrix, int64_t row, int64_t column);
float packed_number(const CodedMatrix *matrix, int64_t row, int64_t column);
float scaled_number(const CodedMatrix *matrix, int64_t row, int64_t column);
float four_bit_number(const CodedMatrix *matrix, int64_t row, int64_t column);
float eight_bit_number(const CodedMatrix *matrix, int64_t row, int64_t column);
float mxfp4_number(const CodedMatrix *matrix, int64_t row, int64_t column);
/* A number of E2M1, doubled, and the half of the scale that a code of E8M0 stands for. */
extern const int8_t e2m1_doubled[16];
float e8m0_half(uint8_t code);

/* --- quantized.c */
/* Whether the file has tensors that only make weights together, as those of quantized checkpoints do. */
bool quantized_is(const TensorFile *file);
/* Replaces these tensors by the matrices that they stand for, as the `quantization_config` of FOLDER/config.json
 * describes them; anything that it does not describe is refused. */
void quantized_decode(Arena *arena, TensorFile *file, const char *folder);

#endif
