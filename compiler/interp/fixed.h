/* fixed.h: operations in f32 in the order of --reproducible, which docs/trust.md states. Every result is the one
 * that compiled reproducible code gives, to the last bit. Included by interp/ alone. */
#ifndef FIXED_H
#define FIXED_H

#include "numbers.h"

enum { FIXED_LANES = 16, FIXED_KEYS = 512 }; /* of a sum over columns or keys; keys of a block */

/* Writes the op's result, whose numbers are f32; false for an op that only moves or rounds numbers. */
bool fixed_op(Interp *in, const Op *op, double *out);

/* --- interp/fixed_order.c */
/* acc + a b and acc - a b, rounded once for FUSED and twice for APART. */
float fixed_add(Arithmetic arithmetic, float acc, float a, float b);
float fixed_sub(Arithmetic arithmetic, float acc, float a, float b);
/* The numbers of a tensor as f32, which they are, or are rounded to where a table is computed in double. */
const float *fixed_numbers(const Interp *in, int tensor);
float fixed_tree(const float lanes[FIXED_LANES]); /* the sum: lanes i and i + 8 first, then i + 4, i + 2, i + 1 */

/* --- interp/fixed_functions.c: over one number. */
float fixed_exp2(Arithmetic arithmetic, float x); /* for x up to 160; 0 below 2^-126 */
float fixed_exp2_bf16(Arithmetic arithmetic, float x); /* rounded to bf16; for x up to 1 */
float fixed_exp(Arithmetic arithmetic, float x);  /* e^x, which underflows to 0 and overflows to infinity */
float fixed_tanh(Arithmetic arithmetic, float x);
float fixed_activation(Arithmetic arithmetic, Activation kind, float x);

/* --- interp/rules.c: an activation that is an expression of x */
float fixed_formula(Arithmetic arithmetic, const PairRule *formula, float x);

/* --- interp/fixed_products.c: x [n][k] times weight [d][k], with a bias [d] or none -> out [n][d] */
void fixed_linear(Interp *in, const Op *op, double *out);
void fixed_expert_linear(Interp *in, const Op *op, double *out);
void fixed_expert_sum(Interp *in, const Op *op, double *out);

/* --- interp/fixed_attention.c: scores, softmax and weighted sum. */
void fixed_scores(Interp *in, const Op *op, double *out);
void fixed_distance_scores(Interp *in, const Op *op, double *out);
void fixed_softmax(Interp *in, const Op *op, double *out);
void fixed_weighted_sum(Interp *in, const Op *op, double *out);

#endif
