/* unroll.c: whether `unroll auto` unrolls a call of one sequence, beside the kernels with loops.
 *
 * Unrolling saves the entry into each step and the exits of its loops, some 16 cycles a step whatever the step does,
 * and in attention the waits of a head's few rows, since heads are computed together. It costs code, since every row
 * and every k of a tile is unrolled, so it pays in small models. The constants are least squares of
 * tests/bench/unroll.csv (tests/bench/unroll.py; Zen 4, AVX-512, clang 14), times and code mostly within 15 %. There,
 * even 92 kB of code, read from the second-level cache at each call, are not slower than loops; but a model is not
 * alone in its program, and it may claim no more than the first-level cache. */
#include "lower.h"

static const double SAVED_A_STEP = 16, SAVED_A_SCORE = 0.4; /* cycles; of vectors, as below */
static const double CYCLES_A_STEP = 70, CYCLES_A_PRODUCT = 1.3, CYCLES_A_SCORE = 0.48;
static const double BYTES_A_STEP = 145, BYTES_A_PRODUCT = 13, BYTES_A_SCORE = 17; /* of code */
static const double LEAST_GAIN = 0.02;
static const double CODE_BYTES = 32768; /* the first-level instruction cache of x86-64 and of many arm cores */

static bool same_gemm(const GemmStep *a, const GemmStep *b) {
    return a->k == b->k && a->has_activation == b->has_activation && gemm_has_residual(a) == gemm_has_residual(b) &&
           gemm_has_factor(a) == gemm_has_factor(b) && (a->bias == NO_PACKED) == (b->bias == NO_PACKED);
}

/* Whether an earlier step has the same kernel, whose code then exists already. */
static bool is_known(const Plan *plan, int step) {
    const Step *s = &plan->steps[step];
    for (const Step *t = plan->steps; t < s; t++)
        if (t->kind == s->kind && t->n == s->n && t->rows == s->rows &&
            (s->kind != STEP_GEMM || same_gemm(&t->gemm, &s->gemm)) &&
            (s->kind != STEP_ATTENTION ||
             (t->attention.vector == NO_PACKED) == (s->attention.vector == NO_PACKED)))
            return true;
    return false;
}

/* The number of vectors that `rows` rows of a step's matrix product multiply and add. */
static double products(const Isa *isa, const Step *s, int64_t rows) {
    return (double)rows * (double)s->gemm.k * (double)ceil_div(s->n, isa->width);
}

/* The same number in the emitted tiles, of at most two widths, since rows and panels are cut evenly. */
static double tile_products(const Plan *plan, const Isa *isa, const Step *s, int64_t rows) {
    const GemmTile tile = gemm_largest_tile(plan, isa, s, rows);
    int64_t narrow = ceil_div(s->n, PANEL) % tile.panels ? tile.panels - 1 : 0;
    return (double)tile.height * (double)s->gemm.k *
           (double)((tile.panels + narrow) * ceil_div(panel_columns(plan, s), isa->width));
}

/* Vectors of scores, exponentials and weighted values of `rows` rows of a head. */
static double scores(const Isa *isa, const Step *s, int64_t rows) {
    const int64_t exponential = 20;
    const AttentionStep *a = &s->attention;
    int64_t keys = key_block(s) / isa->width * (a->head_dim + exponential);
    return (double)rows * (double)(keys + a->key_bound * ceil_div(a->value_dim, isa->width));
}

static bool is_possible(const Plan *plan, const Isa *isa, const char **why) {
    *why = "rows are not fixed by `seq = N`";
    if (!plan->seq.exact || (plan->source_seq.n && !plan->source_seq.exact)) return false;
    *why = "a state's rows are not fixed";
    if (plan->cached) return false;
    *why = "its rows choose among experts";
    for (int i = 0; i < plan->n_steps; i++)
        if (plan->steps[i].kind == STEP_CHOOSE) return false;
    *why = "its heads have matrices of their own";
    for (int i = 0; i < plan->n_steps; i++)
        if (plan->steps[i].kind == STEP_GEMM && plan->steps[i].gemm.heads) return false;
    *why = "numbers of its weights share scales in groups";
    for (int i = 0; i < plan->n_steps; i++)
        if (plan->steps[i].kind == STEP_GEMM && scale_group(plan, &plan->steps[i])) return false;
    *why = "it stores keys and values for later calls";
    for (int i = 0; i < plan->n_steps; i++)
        if (plan->steps[i].kind == STEP_STORE) return false;
    *why = "it rounds rows";
    for (int i = 0; i < plan->n_steps; i++)
        if (plan->steps[i].kind == STEP_ROUND || (plan->steps[i].kind == STEP_GEMM && plan->steps[i].gemm.rounds))
            return false;
    *why = "its attention is not plain, or of too many keys";
    for (int i = 0; i < plan->n_steps; i++)
        if (plan->steps[i].kind == STEP_ATTENTION && !rows_unrolled(plan, isa, &plan->steps[i])) return false;
    return true;
}

Unrolling unroll(const Plan *plan, const Isa *isa) {
    Unrolling u = {0};
    if (!is_possible(plan, isa, &u.why_not)) return u;
    CallRows all = call_rows(plan, plan->seq.n);
    for (int i = 0; i < plan->n_steps; i++) {
        const Step *s = &plan->steps[i];
        int64_t rows = step_rows(plan, s, &all);
        bool fresh = !is_known(plan, i);
        u.saved += SAVED_A_STEP;
        u.cycles += CYCLES_A_STEP;
        u.code_bytes += BYTES_A_STEP;
        if (s->kind == STEP_GEMM) {
            u.cycles += CYCLES_A_PRODUCT * products(isa, s, rows);
            if (fresh) u.code_bytes += BYTES_A_PRODUCT * tile_products(plan, isa, s, rows);
        } else if (s->kind == STEP_ATTENTION) {
            int64_t tile = rows_tile(isa, s).rows;
            u.cycles += CYCLES_A_SCORE * scores(isa, s, rows * s->attention.heads);
            u.saved += SAVED_A_SCORE * scores(isa, s, rows * s->attention.heads);
            if (fresh) u.code_bytes += BYTES_A_SCORE * scores(isa, s, rows < tile ? rows : tile);
        }
    }
    u.why_not = u.code_bytes > CODE_BYTES         ? "its code would not fit the first-level cache"
                : u.saved < LEAST_GAIN * u.cycles ? "loops take next to nothing of its time"
                                                  : NULL;
    u.pays = u.why_not == NULL;
    return u;
}
