/* counts.c: runs the operations that count the ids of a text. */
#include "numbers.h"

/* ids [n], counts [past][1] or none -> out [n]: how many ids other than `token` there are up to each row */
void run_tally(const int64_t *ids, const Numbers *counts, int64_t past, int64_t n, int64_t token, double *out) {
    double count = counts && past ? at(*counts, past - 1) : 0;
    for (int64_t i = 0; i < n; i++) out[i] = count += ids[i] != token;
}

/* ids [n] -> out [n] */
void run_keep(Arithmetic way, const int64_t *ids, const OpAttributes *a, int64_t n, double *out) {
    int64_t others = 0;
    for (int64_t i = 0; i < n; i++) others += ids[i] != a->token;
    const double factor = way == ARITHMETIC_FREE ? a->scale * (double)n / (double)others
                                                 : (double)((float)a->scale * (float)n / (float)others);
    for (int64_t i = 0; i < n; i++) out[i] = ids[i] == a->token ? 0 : factor;
}

/* table [r][d], ids [n], counts [n] -> out [n][d] */
void run_pick_rows(Numbers table, const int64_t *ids, Numbers counts, const OpAttributes *a, int64_t n, int64_t d,
                   double *out) {
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = a->offset + (ids[i] == a->token ? 0 : (int64_t)at(counts, i));
        for (int64_t c = 0; c < d; c++) out[i * d + c] = at(table, row * d + c);
    }
}
