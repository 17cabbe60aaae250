/* load.c: the spec and the weights that a command line names. */
#include "commands.h"

#include <string.h>

Compilation spec_load(Arena *arena, const char *path, Precision precision, Stage last) {
    Compilation c = compilation_new(arena, source_read(arena, path));
    c.precision = precision;
    spec_compile(&c, last);
    return c;
}

void spec_compile(Compilation *c, Stage last) {
    if (compile_until(c, last)) return;
    fail("%s: %s", c->source->path, counted(c->arena, c->diagnostics.errors, "error"));
}

void spec_plan(Compilation *c, const char *const *targets, int n) {
    c->options.targets = targets;
    c->options.n_targets = n;
    spec_compile(c, STAGE_PLAN);
}

const char *const *rank_paths(Arena *arena, const char *path, int ranks) {
    const char **paths = arena_array(arena, (size_t)ranks, sizeof *paths);
    const char *end = text_ends(path, ".attnw") ? ".attnw" : "";
    const int kept = (int)(strlen(path) - strlen(end));
    for (int r = 0; r < ranks; r++) paths[r] = arena_printf(arena, "%.*s.%d%s", kept, path, r, end);
    return paths;
}

Arithmetic arithmetic_of(const Compilation *c) {
    return c->reproducible ? reproducible_arithmetic(c->module) : ARITHMETIC_FREE;
}

Weights *load_weights(Compilation *c, const char *source, bool verbose, bool whole) {
    const Module *module = c->module->whole ? c->module->whole : c->module;
    bool named = strlen(source) > 6 && text_ends(source, ".attnw");
    if (named || packed_is(source)) {
        Compilation planned = *c; /* the layout of packed weights does not depend on the targets, still unknown */
        if (c->module->whole) planned.module = c->module->whole, planned.ranks = 0, planned.stage = STAGE_REWRITE;
        compile_until(&planned, STAGE_PLAN);
        return packed_read(c->arena, planned.program, source, false);
    }
    return (whole ? weights_load : weights_open)(c->arena, c->model, &module->weights, source,
                                                 verbose ? UNUSED_LISTED : UNUSED_SUMMED_UP);
}
