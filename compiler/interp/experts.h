/* experts.h: the choice of experts, and products with their matrices. Included by interp/ alone. */
#ifndef EXPERTS_H
#define EXPERTS_H

#include "numbers.h"

/* The rows of one expert: part s of row i of a tensor [n][top] is number i * top + s. */
typedef struct ExpertRows {
    int64_t *parts;
    int64_t n;
} ExpertRows;

/* The rows of each matrix of an expert_linear, in ascending order: those that have chosen the expert, or part h of
 * every row for head h. */
ExpertRows *rows_by_matrix(const Interp *in, const Op *op, int64_t n);
/* The row of the input x of an expert_linear that part `part` of its result reads. */
int64_t expert_input(const Interp *in, const Op *op, int64_t part);

/* logits [n][e], correction [e] or none -> out [n][2*top] */
void run_choose(Interp *in, const Op *op, double *out);
/* x [n][k] or [n][top*k], weight [e][d][k], choice, bias [e][d] or none -> out [n][top*d] */
void run_expert_linear(Interp *in, const Op *op, double *out);
/* y [n][top*d], choice [n][2*top] -> out [n][d] */
void run_expert_sum(Numbers y, Numbers choice, int64_t n, int64_t d, int64_t top, double *out);

#endif
