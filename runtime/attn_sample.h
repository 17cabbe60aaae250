/* Operations on a row of logits: find its best tokens, sum its softmax, draw a token from it. Internal to
 * attn_generate.c, attn_rules.c, attn_sample.c and attn_transcribe.c; programs include attn_generate.h.
 *
 * Every machine computes the same bits only if each operation is rounded to double by itself, so a compiler may not
 * fuse a product with a sum, reorder operations or keep wider registers. */
#ifndef ATTN_SAMPLE_H
#define ATTN_SAMPLE_H

#include <float.h>
#include <math.h> /* for INFINITY; no function of libm is called */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __FAST_MATH__
#error "attn_generate.c, attn_rules.c and attn_sample.c need IEEE arithmetic: compile them without -ffast-math"
#endif
#if FLT_EVAL_METHOD < 0 || FLT_EVAL_METHOD == 2
#error "the search needs arithmetic without excess precision: on x86, compile with -msse2 -mfpmath=sse"
#endif
#if defined(__clang__) || !defined(__GNUC__)
#pragma STDC FP_CONTRACT OFF
#else
#pragma GCC optimize("fp-contract=off") /* gcc ignores the standard pragma */
#endif

enum { CARVED_ALIGNMENT = 64 }; /* alignment in bytes of the arrays that attn_carve lays out */

/* A continuation of live beam `beam` by `token`. log_p is the log probability of the whole text with that token; in
 * LogitRow.top it holds the token's logit instead. */
typedef struct Candidate {
    double log_p;
    int beam;
    int32_t token;
} Candidate;

/* A row of logits [vocab], and what attn_row_sweep found in it. */
typedef struct LogitRow {
    int vocab;
    const float *logits; /* the row of the last sweep */
    bool weighed;        /* whether a sweep computes `sum` */
    double per;          /* 1 / temperature; 1 without sampling */
    float most;          /* the largest logit; minus infinity if no token can be chosen */
    double sum;          /* sum of the weights e^((logit - most) * per) */
    Candidate *top;      /* [room] the best tokens: a heap with the worst first; attn_row_sort sorts it */
    size_t kept, room;

    /* for sampling */
    int top_k;         /* 0: all tokens */
    double top_p;      /* 0: all tokens */
    double min_p;      /* 0: all tokens */
    uint64_t random;   /* the state of the generator */
    float *mosts;      /* [blocks] `most` after each block, without top_k, top_p and min_p */
    double *sums;      /* [blocks] sum of the weights of the block, relative to mosts[block] */
    uint64_t *order;   /* [ranks] sorted: high half a key that rises as the logit falls, low half the id */
    double *weights;   /* [ranks] weights by rank; before that, scratch memory of the sort */
} LogitRow;

/* Sums and products of sizes saturate at SIZE_MAX, more than any memory has. */
size_t attn_add_sizes(size_t a, size_t b);
size_t attn_multiply_sizes(size_t a, size_t b);
/* Reserves `count` objects of `size` bytes at base + *used and advances *used to a multiple of CARVED_ALIGNMENT. With
 * `base` NULL it counts bytes and returns NULL. */
void *attn_carve(char *base, size_t *used, size_t count, size_t size);

/* e^x; 0 for x < -708, close to where results become denormal. */
double attn_exp(double x);
/* ln x for finite x >= 1, with a relative error below 4e-16; attn_log(1) is 0, and no result is negative. */
double attn_log(double x);

/* Log of the ratio of a token's probability to the largest probability: at most 0, also when both logits are plus
 * infinity. */
static inline double attn_log_ratio(float logit, float most) {
    return logit == most ? 0 : (double)logit - (double)most;
}

/* The generator's first state for text number `sequence` of a seed. */
uint64_t attn_random_start(uint64_t seed, uint64_t sequence);
/* Lays out the arrays of attn_row_draw, whose sizes follow from row->vocab, top_k, top_p and min_p, and sets
 * row->room. */
void attn_row_lay_out(LogitRow *row, char *base, size_t *used);
/* Passes over a row [vocab] once: finds its largest logit, its best `room` tokens and, if row->weighed, the sum. */
void attn_row_sweep(LogitRow *row, const float *logits);
/* Sorts row->top after a sweep, the best token first. */
void attn_row_sort(LogitRow *row);
/* Draws a token from the logits [vocab]; -1 if no token can be chosen. */
int32_t attn_row_draw(LogitRow *row, const float *logits);

#endif
