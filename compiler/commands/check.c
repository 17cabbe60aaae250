/* check.c: attnc check: the interpreter against compiled C, output by output, at many lengths, in batches, with several
 * threads, with outputs that are not wanted. */
#include "check.h"

#include "../../runtime/attn_runtime.h"

#include <errno.h>
#include <string.h>

static const char usage[] =
    "attnc check SPEC [--weights F[,F…]|random:SEED] [--seed N] [--target T] [--cc CC] [--threads N] [--small]\n"
    "                 [--lengths N,…] [--case NAME] [--emitted FILE.c] [--run COMMAND]\n" HELP_WEIGHTS "\n"
    "  --seed N             what inputs are drawn from, and weights without --weights (1)\n"
    "  --target T           one instruction set: " HELP_TARGETS "\n"
    "                       (all that this machine has)\n" HELP_CC
    "  --threads N          compares calls in N threads, 1 to 256, with those in one (2, then 3)\n"
    "  --small              the same model with few layers, narrow and short, at every kind of length\n"
    "  --lengths N,…        these lengths in place of the usual ones\n"
    "  --case NAME          only that case of the table\n"
    "  --emitted FILE.c     checks this C in place of a fresh emission (header and driver are fresh)\n"
    "  --run COMMAND        for another machine: CC makes a program, and COMMAND PROGRAM, an emulator say, runs it\n"
    "                       and answers over standard input and output; needs --target";

typedef struct Checker {
    Arena *arena;
    const char *path, *weights_path, *target, *cc, *threads_text, *emitted_path, *run;
    int64_t seed;
    const char *emitted_c;
    const char *targets[MOST_TARGETS];
    int n_targets;
    Cases cases;
    Checks checks; /* of one pass after the other: the spec as it is, then with every attention map */
} Checker;

/* ---------------------------------------------------------------- rows of the table */

static void print_head(void) {
    progress_hide();
    printf("%-8s %-20s %-17s %10s %12s %12s %10s\n", "target", "case", "output", "elements", "max |a-b|", "allowed",
           "max ulp");
}

static void print_row(void *with, const char *target, const char *name, const char *output, const Difference *d) {
    (void)with;
    progress_hide();
    printf("%-8s %-20s %-17s %10lld %12.3e %12.3e %10lld  %s%s%s\n", target, name, output, (long long)d->elements,
           d->most, d->allowed, (long long)d->ulps, paint(stdout, d->bad ? PAINT_ERROR : PAINT_GOOD),
           d->bad ? "FAIL" : "ok", paint(stdout, PAINT_NONE));
}

static void print_trouble(void *with, const char *target, const char *name, const char *output, const char *text) {
    (void)with;
    progress_hide();
    printf("%-8s %-20s %-17s %sFAIL%s: %s\n", target, name, output, paint(stdout, PAINT_ERROR),
           paint(stdout, PAINT_NONE), text);
}

/* Rows of that text: up to the bound where the model is small. */
static int64_t text_rows(const Checker *c, const Module *module) {
    enum { MULTIPLY_ADDS = 300000000, LEAST = 17 };
    Length seq = module->model->decoder->seq;
    if (seq.exact || c->cases.small) return seq.n;
    int64_t rows = LEAST, floats = 1;
    for (size_t w = 0; w < module->weights.count; w++) {
        int64_t elements = 0;
        if (shape_elements(module->weights.specs[w].shape, &elements)) floats += elements;
    }
    if (MULTIPLY_ADDS / floats > rows) rows = MULTIPLY_ADDS / floats;
    return rows < seq.n ? rows : seq.n;
}

/* ---------------------------------------------------------------- the command */

static void choose_targets(Checker *c) {
    int n_here;
    const char *const *here = targets_here(c->arena, &n_here);
    bool native = c->target && strcmp(c->target, "native") == 0;
    if (c->target && !native) {
        target_require(c->arena, c->target);
        if (!c->run && !machine_has(c->target)) fail_status(EXIT_CANNOT, "this machine has no %s", c->target);
        c->targets[c->n_targets++] = c->target;
        return;
    }
    for (int t = 0; t < n_here; t++) {
        if (!machine_has(here[t])) continue;
        if (native) c->n_targets = 0;
        c->targets[c->n_targets++] = here[t];
    }
}

static void print_first(Checker *c) {
    progress_begin("looking for the first tensor that is off");
    const Checks *k = &c->checks;
    const char *what = c->run ? NULL
                              : check_first(c->arena, k->engine, c->cases.weights, k->first_target,
                                            k->first_case->batch, k->first_side);
    progress_hide();
    if (c->run) printf("\nthe steps cannot be looked into where another program runs them\n");
    else if (what) printf("\nthe first tensor that is off: %s\n", what);
    else printf("\nevery step alone is within its bound; what fails is how the call is made (see FAIL above)\n");
}

static void print_failure(Checker *c, bool maps) {
    const Checks *k = &c->checks;
    if (k->first_case) print_first(c);
    say(stdout, "again: attnc check %s --seed %lld --target %s --case %s", c->path, (long long)c->seed,
        k->first_target, k->first_case ? k->first_case->name : maps ? "maps-decode" : "decode");
    if (c->cases.small) printf(" --small");
    if (c->cases.lengths_text) printf(" --lengths %s", c->cases.lengths_text);
    if (c->weights_path) say(stdout, " --weights %s", c->weights_path);
    if (c->cc) say(stdout, " --cc %s", c->cc);
    if (k->first_threads > 1 || c->threads_text)
        printf(" --threads %d", k->first_threads > 1 ? k->first_threads : k->thread_counts[0]);
    if (c->emitted_path) say(stdout, " --emitted %s", c->emitted_path);
    if (c->run) say(stdout, " --run '%s'", c->run);
    printf("\n");
}

/* One engine for every target and length; false when something is off. */
static bool check_pass(Checker *c, const Module *module, bool maps) {
    EngineOptions options = {.target = c->n_targets == 1 ? c->targets[0] : NULL,
                             .cc = c->cc,
                             .run = c->run,
                             .threads = 1,
                             .level = c->cases.small ? "-O1" : NULL,
                             .emitted_c = c->emitted_c};
    Arena *own = arena_new();
    checks_begin(&c->checks, own, engine_new(own, module, c->cases.weights, &options));
    if (!maps || c->cases.only) print_head();
    cases_make(&c->cases, c->checks.engine, maps);
    for (int t = 0; t < c->n_targets; t++) checks_run(&c->checks, c->targets[t]);
    for (int t = 0; t < c->n_targets && c->checks.decode && !c->checks.off; t++) {
        if (maps) checks_state_maps(&c->checks, c->targets[t]);
        else checks_states(&c->checks, c->targets[t]);
    }
    if (c->checks.off) print_failure(c, maps);
    arena_free(own);
    return !c->checks.off;
}

static bool wants_pass(const Checker *c, bool maps) {
    return !c->cases.only || (strncmp(c->cases.only, "maps-", 5) == 0) == maps;
}

static Module *load_module(const Checker *c, bool maps) {
    Model *model = model_load(c->arena, c->path);
    if (c->cases.small) model = model_small(c->arena, model);
    if (maps) model_turn_on_all(model);
    return build(c->arena, model);
}

static bool check_spec(Checker *c) {
    Module *plain = load_module(c, false);
    plan_model(c->arena, plain); /* refuses before anything is computed */
    Module *maps = load_module(c, true);
    c->cases.reference = maps;
    c->cases.weights = load_weights(
        c->arena, plain, c->weights_path ? c->weights_path : arena_printf(c->arena, "random:%lld", (long long)c->seed),
        false);
    const char *only = c->cases.only;
    bool states = !only || strcmp(only, "decode") == 0 || strcmp(only, "maps-decode") == 0;
    if (plain->decode && states && !c->cases.lengths_text)
        c->checks.decode = check_decode_new(c->arena, maps, c->cases.weights, text_rows(c, plain), c->seed,
                                            (Rounded){0});
    bool fine = true, any = false;
    if (wants_pass(c, false)) {
        fine = check_pass(c, plain, false);
        any = c->cases.count > 0 || c->checks.decode;
    }
    if (fine && !c->emitted_c && wants_pass(c, true) && maps->forward->n_outputs > plain->forward->n_outputs) {
        fine = check_pass(c, maps, true);
        any |= c->cases.count > 0 || c->checks.decode;
    }
    if (!any) fail("%s: there is no case `%s`", c->path, c->cases.only ? c->cases.only : "");
    return fine;
}

int command_check(int argc, char **argv) {
    Arena *arena = arena_new();
    Checker *c = arena_alloc(arena, sizeof *c);
    c->arena = c->cases.arena = arena;
    c->cases.usage = usage;
    const char *seed = NULL;
    const Option options[] = {{"--weights", .text = &c->weights_path}, {"--seed", .text = &seed},
                              {"--target", .text = &c->target},        {"--cc", .text = &c->cc},
                              {"--threads", .text = &c->threads_text}, {"--small", .flag = &c->cases.small},
                              {"--lengths", .text = &c->cases.lengths_text}, {"--case", .text = &c->cases.only},
                              {"--emitted", .text = &c->emitted_path}, {"--run", .text = &c->run}};
    options_read(arena, argc, argv, usage, options, sizeof options / sizeof *options, &c->path, 1);
    c->seed = option_integer(usage, "--seed", seed, 1, 0, INT32_MAX);
    int threads = (int)option_integer(usage, "--threads", c->threads_text, 0, 1, 256);
    if (c->cases.small && c->weights_path)
        usage_error(usage, "`--small` draws its weights from the seed; `--weights` are of the whole model");
    if (c->run && (!c->target || strcmp(c->target, "native") == 0))
        usage_error(usage, "`--run` needs `--target T`: which of the other machine's");
    c->cases.path = c->path;
    c->cases.seed = (uint64_t)c->seed;
    size_t size;
    if (c->emitted_path) c->emitted_c = file_read(arena, c->emitted_path, 64 << 20, &size);
    choose_targets(c);
    Checks *k = &c->checks;
    *k = (Checks){.arena = arena, .cases = &c->cases, .row = print_row, .trouble = print_trouble};
    if (threads != 1) k->thread_counts[k->n_thread_counts++] = threads ? threads : 2;
    if (!threads) k->thread_counts[k->n_thread_counts++] = 3;
    for (int t = 0; t < k->n_thread_counts; t++)
        if (!(k->pools[t] = attn_pool_new(k->thread_counts[t])))
            fail_system(errno, "a pool of %d threads cannot be made", k->thread_counts[t]);
    bool fine = check_spec(c);
    for (int t = 0; t < k->n_thread_counts; t++) attn_pool_free(k->pools[t]);
    progress_end();
    if (fine) {
        say(stdout,
            "%s: %lld elements within the bound; the same bits alone, in batches, and with other thread counts\n",
            c->path, (long long)k->compared);
    } else {
        say_head(stderr, PAINT_ERROR, "error");
        say(stderr, "%s: the compiled C and the interpreter differ in %lld places\n", c->path, (long long)k->off);
    }
    fflush(stdout);
    arena_free(arena);
    return fine ? EXIT_FINE : EXIT_USER;
}
