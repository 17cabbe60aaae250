/* rewritten.h: checks what a pass of a test has made of a module as `attnc check` checks a spec: the C of the best and
 * the last target of this machine, and with ATTNC_LONG=1 of all, against the interpreter, with states. With EMULATOR,
 * the command that runs programs of another machine, it is the C of the one TARGET, which CC compiles. */
#ifndef REWRITTEN_H
#define REWRITTEN_H

#include "fixture.h"

#include "../../compiler/check/check.h"
#include "../../compiler/rewrite/rewrite.h"
#include "../../compiler/targets/targets.h"

#include <stdlib.h>

static inline const char *const *targets_to_test(const Module *module, Arithmetic arithmetic, int *n) {
    int n_here = 0;
    const char *const *here = targets_here(arena, graph_row_types(module->entries[ENTRY_FORWARD]), &n_here);
    here = targets_of_arithmetic(arena, arithmetic, here, &n_here);
    const char **kept = arena_array(arena, (size_t)n_here + 1, sizeof *kept);
    *n = 0;
    if (getenv("EMULATOR")) {
        kept[0] = getenv("TARGET");
        *n = 1;
        return targets_of_arithmetic(arena, arithmetic, kept, n);
    }
    for (int i = 0; i < n_here; i++)
        if (machine_has(here[i], false)) kept[(*n)++] = here[i];
    if (getenv("ATTNC_LONG") || *n < 3) return kept;
    kept[1] = kept[*n - 1];
    *n = 2;
    return kept;
}

static inline void fail_of_row(void *with, const char *target, const char *name, const char *output,
                               const Difference *d) {
    if (d->bad)
        fail_msg("%s: %s %s %s: %g in row %d, column %d, not %g", (const char *)with, target, name, output, d->got,
                 (int)d->row, (int)d->column, d->want);
}

static inline void fail_of_trouble(void *with, const char *target, const char *name, const char *output,
                                   const char *text) {
    fail_msg("%s: %s %s %s: %s", (const char *)with, target, name, output, text);
}

/* Fails with `how` where the C is wrong. Sets the hash of all outputs for each target, unless `bits` is NULL. */
static inline void check_rewritten(const Compilation *spec, const Weights *weights, const char *how, uint64_t *bits) {
    enum { TEXT_ROWS = 19 };
    int n = 0;
    const Arithmetic arithmetic = spec->reproducible ? reproducible_arithmetic(spec->module) : ARITHMETIC_FREE;
    const char *const *targets = targets_to_test(spec->module, arithmetic, &n);
    const char *run = getenv("EMULATOR");
    assert_true(n > 0 || run);
    if (!n) return; /* the target of an emulator may lack the arithmetic */
    const EngineOptions options = {.targets = targets, .n_targets = n, .target = run ? targets[0] : NULL, .run = run,
                                   .cc = run ? getenv("CC") : NULL, .threads = 1, .level = "-O0"};
    Cases cases = {.arena = arena, .path = how, .brief = true, .seed = 1, .reference = spec->module,
                   .weights = weights};
    Checks checks = {.arena = arena, .cases = &cases, .row = fail_of_row, .trouble = fail_of_trouble,
                     .with = (void *)(uintptr_t)how};
    checks_begin(&checks, arena, engine_new(arena, spec, weights, &options));
    cases_make(&cases, checks.engine, false);
    if (spec->module->entries[ENTRY_DECODE])
        checks.decode = check_decode_new(arena, spec->module, weights, TEXT_ROWS, 1, (Rounded){0});
    for (int t = 0; t < n; t++) {
        checks.bits = bits ? &bits[t] : NULL;
        checks_run(&checks, targets[t]);
        if (checks.decode) checks_states(&checks, targets[t]);
    }
}

#endif
