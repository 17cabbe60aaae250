/* counts.h: the functions of counts.c, which run the operations that count the ids of a text. */
#ifndef COUNTS_H
#define COUNTS_H

#include "numbers.h"

void run_tally(const int64_t *ids, const Numbers *counts, int64_t past, int64_t n, int64_t token, double *out);
void run_keep(Arithmetic way, const int64_t *ids, const OpAttributes *a, int64_t n, double *out);
void run_pick_rows(Numbers table, const int64_t *ids, Numbers counts, const OpAttributes *a, int64_t n, int64_t d,
                   double *out);

#endif
