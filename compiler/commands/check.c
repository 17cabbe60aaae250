/* check.c: attnc check compares compiled C with the interpreter and prints a table of the differences. */
#include "commands.h"

#include "../check/check.h"
#include "../lower/lower.h"
#include "../../runtime/attn_runtime.h"

#include <errno.h>
#include <string.h>

static const char usage[] =
    "attnc check SPEC [--weights F[,F…]|random:SEED] [--seed N] [--target T] [--cc CC] [--threads N] [--small]\n"
    "                 [--lengths N,…] [--case NAME] [--emitted FILE.c] [--run COMMAND] [--bits] [--emulate]\n"
    "                 [--precision P] [--reproducible] [--ranks N] [--denormals]\n"
    HELP_WEIGHTS "\n" HELP_PRECISION HELP_REPRODUCIBLE
    "  --seed N             seed of the random inputs, and of the weights without --weights (default: 1)\n"
    "  --target T           one instruction set: " HELP_TARGETS "\n"
    "                       (default: all that this machine runs)\n" HELP_CC
    "  --threads N          compares calls in N threads, 1 to 256, with calls in one thread (default: 2, then 3)\n"
    "  --small              checks a small model of the same kind, narrow, short and with few layers, at every kind\n"
    "                       of length\n"
    "  --lengths N,…        checks these lengths instead of the usual ones\n"
    "  --case NAME          checks only that case of the table\n"
    "  --emitted FILE.c     checks this C instead of newly emitted C (header and driver are newly emitted)\n"
    "  --run COMMAND        checks C for another machine: CC builds a program, and COMMAND PROGRAM, for instance an\n"
    "                       emulator, runs it; it communicates over standard input and output; needs --target\n"
    "  --bits               prints for each target a hash of all bits of the outputs, which is equal on all machines\n"
    "  --ranks N            also runs the model as it is divided among N processes, each as a thread of this one; the\n"
    "                       results must have the bits of one process\n"
    "  --emulate            computes the tiles of AMX by functions in C, whether or not this machine has them\n"
    "  --denormals          compares nothing: fails where a call of 1 to 33 rows, or one that appends rows to states,\n"
    "                       makes or reads a denormal number, which takes some processors as long as a hundred others\n"
    "                       (in one thread, on x86-64)";

typedef struct Checker {
    Arena *arena;
    const char *path, *weights_path, *target, *cc, *threads_text, *lengths_text, *precision_text, *emitted_path, *run;
    Precision precision;
    RowTypes rows;
    Arithmetic arithmetic;
    int64_t seed;
    bool print_bits, emulate, denormals, reproducible;
    int ranks; /* 0: one process */
    const char *ranks_text;
    uint64_t bits[MOST_TARGETS];
    const char *emitted_c;
    const char *targets[MOST_TARGETS];
    int n_targets;
    Cases cases;
    Checks checks; /* of the current pass: the spec as it is, or with every attention map */
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

/* The rows of the text that is appended to states: fewer for larger models, up to the bound. */
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
    const char *const *here = targets_here(c->arena, c->rows, &n_here);
    here = targets_of_arithmetic(c->arena, c->arithmetic, here, &n_here);
    bool native = c->target && strcmp(c->target, "native") == 0;
    if (c->target && !native) {
        target_require(c->arena, c->target);
        if (!c->run && !machine_has(c->target, c->emulate))
            fail_status(EXIT_CANNOT, "this machine has no %s", c->target);
        c->targets[c->n_targets++] = c->target;
        return;
    }
    for (int t = 0; t < n_here; t++) {
        if (!machine_has(here[t], c->emulate)) continue;
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
    if (k->first_case && !c->denormals) print_first(c);
    say(stdout, "again: attnc check %s --seed %lld --target %s --case %s", c->path, (long long)c->seed,
        k->first_target, k->first_case ? k->first_case->name : maps ? "maps-decode" : "decode");
    if (c->cases.small) printf(" --small");
    if (c->lengths_text) printf(" --lengths %s", c->lengths_text);
    if (c->precision_text) say(stdout, " --precision %s", c->precision_text);
    if (c->ranks > 1) printf(" --ranks %d", c->ranks);
    if (c->reproducible) printf(" --reproducible");
    if (c->weights_path) say(stdout, " --weights %s", c->weights_path);
    if (c->cc) say(stdout, " --cc %s", c->cc);
    if (!c->denormals && (k->first_threads > 1 || c->threads_text))
        printf(" --threads %d", k->first_threads > 1 || !k->n_thread_counts ? k->first_threads : k->thread_counts[0]);
    if (c->emitted_path) say(stdout, " --emitted %s", c->emitted_path);
    if (c->run) say(stdout, " --run '%s'", c->run);
    if (c->emulate) printf(" --emulate");
    if (c->denormals) printf(" --denormals");
    printf("\n");
}

static EngineOptions engine_options(const Checker *c) {
    return (EngineOptions){.target = c->n_targets == 1 ? c->targets[0] : NULL,
                           .cc = c->cc,
                           .run = c->run,
                           .threads = 1,
                           .level = c->cases.small ? "-O1" : NULL,
                           .emitted_c = c->emitted_c,
                           .emulate = c->emulate};
}

/* Returns whether no call on any target makes or reads a denormal number. */
static bool check_denormals(Checker *c, const Compilation *spec) {
    const EngineOptions options = engine_options(c);
    Arena *own = arena_new();
    checks_begin(&c->checks, own, engine_new(own, spec, c->cases.weights, &options));
    for (int t = 0; t < c->n_targets; t++) checks_denormals(&c->checks, c->targets[t]);
    arena_free(own);
    if (c->checks.off) print_failure(c, false);
    return !c->checks.off;
}

/* Makes an engine of the model as it is divided among ranks. */
static Engine *ranks_engine(const Checker *c, Arena *own, const Compilation *spec) {
    const EngineOptions options = engine_options(c);
    Compilation divided = *spec;
    if (c->ranks < 2) return NULL;
    divided.ranks = c->ranks;
    divided.stage = STAGE_GRAPH;
    divided.module = spec->built;
    return engine_new(own, &divided, c->cases.weights, &options);
}

/* Checks all targets and lengths with one engine; returns whether all comparisons hold. */
static bool check_pass(Checker *c, const Compilation *spec, bool maps) {
    const EngineOptions options = engine_options(c);
    Arena *own = arena_new();
    checks_begin(&c->checks, own, engine_new(own, spec, c->cases.weights, &options));
    c->checks.ranks = ranks_engine(c, own, spec);
    if (!maps || c->cases.only) print_head();
    cases_make(&c->cases, c->checks.engine, maps);
    for (int t = 0; t < c->n_targets; t++) {
        c->checks.bits = c->print_bits ? &c->bits[t] : NULL;
        checks_run(&c->checks, c->targets[t]);
    }
    for (int t = 0; t < c->n_targets && c->checks.decode && !c->checks.off; t++) {
        c->checks.bits = c->print_bits ? &c->bits[t] : NULL;
        if (maps) checks_state_maps(&c->checks, c->targets[t]);
        else checks_states(&c->checks, c->targets[t]);
    }
    if (c->checks.off) print_failure(c, maps);
    const char *constant = maps || c->checks.off ? NULL : check_constant(own, &c->cases, c->checks.engine->plan->graph);
    if (constant) print_trouble(NULL, "interp", "all", "", constant);
    const bool fine = !c->checks.off && !constant;
    arena_free(own);
    return fine;
}

static bool wants_pass(const Checker *c, bool maps) {
    return !c->cases.only || (strncmp(c->cases.only, "maps-", 5) == 0) == maps;
}

/* Builds the graphs of a spec without errors as it is, or with every attention map as an output. */
static Compilation load_graphs(const Checker *c, Source *source, bool maps) {
    Compilation spec = compilation_quiet(c->arena, source);
    spec.precision = c->precision;
    spec.reproducible = c->reproducible;
    compile_until(&spec, STAGE_MODEL);
    if (c->cases.small) spec.model = model_small(c->arena, spec.model);
    if (maps) model_export_all(spec.model);
    compile_until(&spec, STAGE_REWRITE);
    return spec;
}

/* Sets what the passes to come are compared with. */
static void set_reference(Checker *c, const Module *module, bool states) {
    c->cases.reference = module;
    if (states)
        c->checks.decode = check_decode_new(c->arena, module, c->cases.weights, text_rows(c, module), c->seed,
                                            (Rounded){0});
}

static bool check_spec(Checker *c) {
    /* errors and notes are of the whole spec */
    Source *source = spec_load(c->arena, c->path, c->precision, STAGE_REWRITE).source;
    Compilation plain = load_graphs(c, source, false);
    spec_plan(&plain, &c->target, c->target != NULL); /* refuses the spec before anything is computed */
    c->rows = graph_row_types(plain.module->entries[ENTRY_FORWARD]);
    c->arithmetic = plain.program->arithmetic;
    choose_targets(c);
    Compilation maps = load_graphs(c, source, true);
    const char *drawn = arena_printf(c->arena, "random:%lld", (long long)c->seed);
    c->cases.weights = load_weights(&plain, c->weights_path ? c->weights_path : drawn, false, true);
    const char *only = c->cases.only;
    bool states = !only || strcmp(only, "decode") == 0 || strcmp(only, "maps-decode") == 0;
    states &= plain.module->entries[ENTRY_DECODE] && !c->lengths_text;
    /* Weights of an exported map keep their bits, so that a graph whose ops jump is compared with its own. */
    const bool apart = graph_jumps(plain.module->entries[ENTRY_FORWARD]);
    set_reference(c, apart ? plain.module : maps.module, states);
    bool fine = true, any = false;
    if (c->denormals) {
        fine = check_denormals(c, &plain);
        any = c->checks.calls > 0;
    } else if (wants_pass(c, false)) {
        fine = check_pass(c, &plain, false);
        any = c->cases.count > 0 || c->checks.decode;
    }
    bool has_maps = maps.module->entries[ENTRY_FORWARD]->n_outputs > plain.module->entries[ENTRY_FORWARD]->n_outputs;
    has_maps &= !c->reproducible || maps_are_reproducible(plain.program);
    if (fine && !c->denormals && !c->emitted_c && wants_pass(c, true) && has_maps) {
        if (apart) set_reference(c, maps.module, states);
        fine = check_pass(c, &maps, true);
        any |= c->cases.count > 0 || c->checks.decode;
    }
    if (!any) fail("%s: there is no case `%s`", c->path, c->cases.only ? c->cases.only : "");
    return fine;
}

/* "1,17,33" */
static void read_lengths(Checker *c) {
    int64_t *lengths = arena_array(c->arena, MOST_CASES, sizeof *lengths);
    c->cases.lengths = lengths;
    for (const char *at = c->lengths_text;; at++) {
        size_t length = strcspn(at, ",");
        if (c->cases.n_lengths == MOST_CASES) fail("more than %d lengths", MOST_CASES);
        const char *text = arena_copy(c->arena, at, length);
        lengths[c->cases.n_lengths++] = option_integer(usage, "--lengths", text, 0, 1, INT32_MAX);
        at += length;
        if (!*at) return;
    }
}

/* Tells that all comparisons hold, or ends the program. */
static void print_end(const Checker *c, bool fine) {
    const Checks *k = &c->checks;
    if (!fine && c->denormals) fail("%s: denormal numbers are made or read on the way", c->path);
    if (!fine && k->off)
        fail("%s: the compiled C and the interpreter differ in %s", c->path, counted(c->arena, k->off, "place"));
    if (!fine)
        fail("%s: the compiled C and the interpreter agree, but an output that is the same for all inputs shows "
             "nothing", c->path);
    if (c->denormals)
        say(stdout, "%s: no denormal number is made or read in %lld calls\n", c->path, (long long)k->calls);
    else
        say(stdout,
            "%s: %lld elements within the bound; the same bits alone, in batches, and with other thread counts\n",
            c->path, (long long)k->compared);
}

void command_check(Arena *arena, int argc, char **argv) {
    Checker *c = arena_alloc(arena, sizeof *c);
    c->arena = c->cases.arena = arena;
    const char *seed = NULL;
    const Option options[] = {{"--weights", .text = &c->weights_path}, {"--seed", .text = &seed},
                              {"--target", .text = &c->target},        {"--cc", .text = &c->cc},
                              {"--threads", .text = &c->threads_text}, {"--small", .flag = &c->cases.small},
                              {"--lengths", .text = &c->lengths_text}, {"--case", .text = &c->cases.only},
                              {"--emitted", .text = &c->emitted_path}, {"--run", .text = &c->run},
                              {"--bits", .flag = &c->print_bits},
                              {"--ranks", .text = &c->ranks_text},
                              {"--emulate", .flag = &c->emulate},
                              {"--denormals", .flag = &c->denormals},
                              {"--reproducible", .flag = &c->reproducible},
                              {"--precision", .text = &c->precision_text}};
    options_read(arena, argc, argv, usage, options, sizeof options / sizeof *options, &c->path, 1);
    c->seed = option_integer(usage, "--seed", seed, 1, 0, INT32_MAX);
    int threads = (int)option_integer(usage, "--threads", c->threads_text, 0, 1, 256);
    if (c->cases.small && c->weights_path)
        usage_error(usage, "`--small` draws its weights from the seed; `--weights` are of the whole model");
    if (c->run && (!c->target || strcmp(c->target, "native") == 0))
        usage_error(usage, "`--run` needs `--target T`: which of the other machine's");
    c->ranks = option_ranks(usage, c->ranks_text);
    if (c->ranks > 1 && (c->run || c->denormals || c->emitted_path))
        usage_error(usage, "`--ranks` compares fresh C with one process, in this process");
    if (c->denormals && (c->run || c->print_bits))
        usage_error(usage, "`--denormals` compares nothing, and looks at calls in this process");
    if (c->denormals && !denormals_recorded())
        fail_status(EXIT_CANNOT, "this processor does not tell of denormal numbers; those of x86-64 do");
    c->precision = option_precision(arena, usage, "--precision", c->precision_text);
    if (c->lengths_text) read_lengths(c);
    c->cases.path = c->path;
    c->cases.seed = (uint64_t)c->seed;
    size_t size;
    if (c->emitted_path) c->emitted_c = file_read(arena, c->emitted_path, 64 << 20, &size);
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
    for (int t = 0; fine && c->print_bits && t < c->n_targets; t++)
        printf("bits %s %016llx\n", c->targets[t], (unsigned long long)c->bits[t]);
    print_end(c, fine);
}
