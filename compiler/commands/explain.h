/* explain.h: the counts of attnc explain, which its text and its page show. */
#ifndef EXPLAIN_H
#define EXPLAIN_H

#include "../attnc.h"

typedef struct Explain {
    Arena *arena;
    const Module *module;
    const Plan *plan;
    CallRows rows;    /* the rows of the counted sequence */
    const char *call; /* describes them */
    double parameters, flops, bytes;
    const char *const *targets; /* from the least to the widest */
    int n_targets;
    size_t code_bytes[MOST_TARGETS]; /* the C of each target alone */
    Emitted code;                    /* the C of all targets together */
    const char *peak_target;
    double peak, read; /* flops and bytes per second of one core (peak.h); 0: not measured */
} Explain;

/* explain_page.c: writes the counts as a page; after a failure there is no file. */
void explain_page(const Explain *x, const char *path);

#endif
