/* mask_view.h: the pairs of queries and keys that a mask shows, for attnc explain and attnc map. */
#ifndef MASK_VIEW_H
#define MASK_VIEW_H

#include "../attnc.h"

/* The pairs of some rows of queries, from `query` on, and some keys, from `key` on. */
typedef struct PairBox {
    int64_t query, rows, key, keys;
} PairBox;

/* A rule, and what its inputs are. The leaves of its copy take the ranges of the integers of a box. */
typedef struct MaskView {
    const PairRule *rule;
    PairAt at; /* `number` and `rows` of the inputs */
    const int64_t *of_pairs[MOST_PAIR_INPUTS]; /* [queries][keys] of inputs of pairs; NULL: `number` for every pair */
    const uint8_t *bytes[MOST_PAIR_INPUTS];    /* the same of `mask given` */
    int64_t keys;                              /* of the sequence */
    int64_t work, most_work; /* rules that were evaluated; the counts end where they are more than most_work */
    PairRule *copy, **leaves;
    int n_leaves, room;
} MaskView;

void mask_view_begin(Arena *arena, MaskView *view); /* after its inputs are set */
/* Returns 0, 0 where no pair of the box is visible, 1, 1 where all are, and else 0, 1. */
PairRange mask_view_range(MaskView *view, PairBox box);
/* Counts the visible pairs of a box, and sets `seen` [queries][keys] to 1 for each of them, unless that is NULL. */
int64_t mask_view_count(MaskView *view, PairBox box, uint8_t *seen);

#endif
