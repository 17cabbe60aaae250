/* tested_targets.h: the targets for which a test of a rewritten module compiles. */
#ifndef TESTED_TARGETS_H
#define TESTED_TARGETS_H

#include "fixture.h"

#include "../../compiler/engine/engine.h"
#include "../../compiler/targets/targets.h"

#include <stdlib.h>

/* The best and the last target of this machine that compute the module in that arithmetic; with ATTNC_LONG=1 all. */
static inline const char *const *targets_to_test(const Module *module, Arithmetic arithmetic, int *n) {
    const char *const *all = targets_here(arena, graph_rows_dtype(module->entries[ENTRY_FORWARD]), n);
    all = targets_of_arithmetic(arena, arithmetic, all, n);
    if (getenv("ATTNC_LONG") || *n < 2) return all;
    const char **ends = arena_array(arena, 2, sizeof *ends);
    ends[0] = all[0];
    ends[1] = all[*n - 1];
    *n = 2;
    return ends;
}

#endif
