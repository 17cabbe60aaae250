/* denormals.c: whether calls of every small length make or read denormal numbers, and in which step. */
#include "steps.h"

#include <string.h>

enum { MOST_ROWS = 33 }; /* two vectors of 16 and a row */

static const char *in_words(unsigned flags) {
    switch (flags) {
    case 0: return NULL;
    case DENORMAL_READ: return "a denormal number is read (DE)";
    case DENORMAL_MADE: return "a denormal number is made (UE)";
    default: return "denormal numbers are made and read (UE, DE)";
    }
}

/* Reports what the engine's calls have seen, if anything. */
static const char *seen_by(Engine *engine) {
    const unsigned seen = engine->denormals;
    engine->denormals = 0;
    return in_words(seen);
}

typedef struct Finder {
    Steps steps;
    unsigned seen;
    const Step *found;
} Finder;

static void look(Steps *steps, const Step *step) {
    Finder *f = (Finder *)steps; /* its first member */
    if (!f->found && denormals_seen()) {
        f->seen = denormals_seen();
        f->found = step;
    }
    denormals_forget();
}

/* `seen` is what the whole call has made or read. */
static const char *find_step(Checks *c, const char *target, const Batch *batch, const char *seen) {
    Arena *own = arena_new();
    Finder f = {.steps = {.engine = c->engine, .batch = batch, .look = look}};
    denormals_forget();
    steps_run(&f.steps, own, target, GUARD_BEHIND);
    arena_free(own);
    if (!f.found) return arena_printf(c->arena, "%s in the whole call, by no step alone", seen);
    return arena_printf(c->arena, "%s by the step %s", in_words(f.seen), f.found->name);
}

static void fail_at(Checks *c, const char *target, const char *name, const char *text) {
    Case *one = arena_alloc(c->arena, sizeof *one);
    one->name = name;
    checks_fail(c, target, one, "", text, 1);
}

static void call_length(Checks *c, const char *target, const char *name, int64_t rows, int64_t source) {
    Arena *own = arena_new();
    CheckRun run;
    const Batch *batch = case_of_rows(own, c->cases, c->engine, name, rows, source);
    check_call(own, c->engine, batch, ALL_WANTED, GUARD_BEHIND, &run);
    c->calls++;
    const char *seen = seen_by(c->engine);
    if (run.complaint) fail_at(c, target, name, run.complaint);
    else if (seen) fail_at(c, target, name, find_step(c, target, batch, seen));
    arena_free(own);
}

static void append_rows(Checks *c, const char *target) {
    Arena *own = arena_new();
    DecodeBits bits = {0};
    Difference hidden = {0}, logits = {0};
    const char *trouble = check_decode(c->decode, own, c->engine, GUARD_BEHIND, &bits, &hidden, &logits);
    c->calls++;
    const char *seen = seen_by(c->engine);
    if (trouble) fail_at(c, target, "decode", trouble);
    else if (seen) fail_at(c, target, "decode", seen);
    arena_free(own);
}

void checks_denormals(Checks *c, const char *target) {
    const Length seq = c->engine->plan->seq, source = c->engine->plan->source_seq;
    const int64_t own = seq.exact ? 1 : seq.n, others = source.exact ? 1 : source.n, most = own > others ? own : others;
    const char *only = c->cases->only;
    const int64_t off = c->off;
    progress_begin("looking for denormal numbers, %s", target);
    check_set(c->engine, target, 1, NULL, NULL);
    c->engine->watches = true;
    for (int64_t n = 1; n <= MOST_ROWS && n <= most && c->off == off; n++) {
        const char *name = arena_printf(c->arena, "length-%lld", (long long)n);
        if (only && strcmp(only, name) != 0) continue;
        progress_at(n, MOST_ROWS, "lengths");
        call_length(c, target, name, n, MOST_ROWS + 1 - n);
    }
    if (c->decode && (!only || strcmp(only, "decode") == 0)) append_rows(c, target);
    c->engine->watches = false;
}
