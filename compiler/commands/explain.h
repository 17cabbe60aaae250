/* explain.h: what attnc explain counts, for its text and for its page. */
#ifndef EXPLAIN_H
#define EXPLAIN_H

#include "../attnc.h"

typedef struct Explain {
    Arena *arena;
    const Module *module;
    const Plan *plan;
    CallRows rows;    /* of the sequence that is counted */
    const char *call; /* the same in words */
    double parameters, flops, bytes;
    const char *const *targets; /* least first */
    int n_targets;
    size_t code_bytes[MOST_TARGETS]; /* the C of each target alone */
    Emitted code;                    /* of all of them */
    const char *peak_target;
    double peak, read; /* flops and bytes a second of one core (peak.h); 0 where they cannot be measured */
} Explain;

/* explain_page.c: the same as a page; written whole or, with a failure, not at all. */
void explain_page(const Explain *x, const char *path);

#endif
