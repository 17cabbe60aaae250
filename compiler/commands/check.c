/* check.c: attnc check: the interpreter against compiled C, output by output, at many lengths, in batches, with several
 * threads, with outputs that are not wanted. */
#include "check.h"

#include "../../runtime/attn_runtime.h"

#include <errno.h>
#include <string.h>

static const char usage[] =
    "attnc check SPEC [--weights F[,F…]|random:SEED] [--seed N] [--target T] [--cc CC] [--threads N] [--small]\n"
    "                 [--lengths N,…] [--case NAME] [--emitted FILE.c]\n" HELP_WEIGHTS "\n"
    "  --seed N             what inputs are drawn from, and weights without --weights (1)\n"
    "  --target T           one instruction set: " HELP_TARGETS "\n"
    "                       (all that this machine has)\n" HELP_CC
    "  --threads N          compares calls in N threads, 1 to 256, with those in one (2, then 3)\n"
    "  --small              the same model with few layers, narrow and short, at every kind of length\n"
    "  --lengths N,…        these lengths in place of the usual ones\n"
    "  --case NAME          only that case of the table\n"
    "  --emitted FILE.c     checks this C in place of a fresh emission (header and driver are fresh)";

typedef struct Checker {
    Arena *arena;
    const char *path, *weights_path, *target, *cc, *threads_text, *emitted_path;
    int64_t seed;
    const char *emitted_c;
    const char *targets[MOST_TARGETS];
    int n_targets;
    int thread_counts[2];
    int n_thread_counts;
    attn_pool *pools[2];
    Cases cases;
    DecodeCheck *decode; /* rows appended to states; NULL: not done */
    Engine *engine; /* of one pass: the spec as it is, then with every attention map */
    int64_t compared, off;    /* elements; rows of the table that failed */
    const char *first_target; /* of the first failure */
    const Case *first_case;
    int first_threads;
} Checker;

/* ---------------------------------------------------------------- rows of the table */

static void note_failure(Checker *c, const char *target, const Case *one, int threads) {
    c->off++;
    if (c->first_case) return;
    c->first_case = one;
    c->first_target = target;
    c->first_threads = threads;
}

static void print_head(void) {
    progress_hide();
    printf("%-8s %-20s %-17s %10s %12s %12s %10s\n", "target", "case", "output", "elements", "max |a-b|", "allowed",
           "max ulp");
}

static void print_row(const char *target, const char *name, const char *output, const Difference *d) {
    progress_hide();
    printf("%-8s %-20s %-17s %10lld %12.3e %12.3e %10lld  %s%s%s\n", target, name, output, (long long)d->elements,
           d->most, d->allowed, (long long)d->ulps, paint(stdout, d->bad ? PAINT_ERROR : PAINT_GOOD),
           d->bad ? "FAIL" : "ok", paint(stdout, PAINT_NONE));
}

static void print_fail(const char *target, const char *name, const char *output, const char *text) {
    progress_hide();
    printf("%-8s %-20s %-17s %sFAIL%s: %s\n", target, name, output, paint(stdout, PAINT_ERROR),
           paint(stdout, PAINT_NONE), text);
}

static void print_trouble(Checker *c, const char *target, const Case *one, const char *output, const char *text,
                          int threads) {
    print_fail(target, one->name, output, text);
    note_failure(c, target, one, threads);
}

/* A row an output: the worst of its sequences. */
static void compare_values(Checker *c, const char *target, const Case *one, const Pieces *pieces) {
    for (int a = 0; a < CALL_OUTPUTS; a++) {
        if (!one->run.arrays[a]) continue;
        Difference d = {0};
        for (int64_t i = 0; i < pieces->count; i++) {
            const Piece *p = &pieces->list[i];
            if (p->array == a)
                check_compare(&d, one->run.arrays[a] + p->offset, p->columns, p->want, p->rows, p->columns);
        }
        print_row(target, one->name, call_outputs[a].name, &d);
        c->compared += d.elements;
        if (d.bad) note_failure(c, target, one, 1);
    }
}

/* Each sequence of a batch alone: the same bits. */
static void compare_alone(Checker *c, const char *target, const Case *one, const Pieces *pieces) {
    if (one->batch->count < 2) return;
    int64_t at = 0;
    for (int64_t b = 0; b < one->batch->count; b++) {
        Arena *own = arena_new();
        Batch single = {.sequences = &one->batch->sequences[b], .count = 1};
        CheckRun run;
        check_call(own, c->engine, &single, ALL_WANTED, &run);
        Pieces alone = check_pieces(own, c->engine, &single);
        const char *trouble =
            run.complaint ? arena_printf(c->arena, "sequence %lld alone: %s", (long long)b, run.complaint) : NULL;
        const char *output = "";
        for (int64_t i = 0; i < alone.count && !trouble; i++) {
            const Piece *p = &alone.list[i], *q = &pieces->list[at + i];
            if (memcmp(run.arrays[p->array] + p->offset, one->run.arrays[q->array] + q->offset,
                       (size_t)(p->rows * p->columns) * sizeof(float)) == 0)
                continue;
            output = call_outputs[p->array].name;
            trouble = arena_printf(c->arena, "sequence %lld alone gives other bits", (long long)b);
        }
        at += alone.count;
        arena_free(own);
        if (!trouble) continue;
        print_trouble(c, target, one, output, trouble, 1);
        return;
    }
}

static void compare_bits(Checker *c, const char *target, const Case *one, const CheckRun *run, const char *how,
                         int threads) {
    if (run->complaint) {
        print_trouble(c, target, one, "", arena_printf(c->arena, "%s: %s", how, run->complaint), threads);
        return;
    }
    for (int a = 0; a < CALL_OUTPUTS; a++)
        if (run->arrays[a] && memcmp(run->arrays[a], one->run.arrays[a], (size_t)run->items[a] * sizeof(float)) != 0)
            print_trouble(c, target, one, call_outputs[a].name, arena_printf(c->arena, "%s: other bits", how), threads);
}

/* Nothing, and each output alone. */
static void compare_wanted(Checker *c, const char *target, const Case *one) {
    int outputs = 0;
    for (int a = 0; a < CALL_OUTPUTS; a++) outputs += one->run.arrays[a] != NULL;
    for (int a = -1; a < CALL_OUTPUTS; a++) {
        if (a >= 0 && (outputs < 2 || !one->run.arrays[a])) continue;
        Arena *own = arena_new();
        CheckRun run;
        check_call(own, c->engine, one->batch, a < 0 ? 0 : 1u << a, &run);
        compare_bits(c, target, one, &run,
                     a < 0 ? "no output wanted" : arena_printf(c->arena, "only %s wanted", call_outputs[a].name), 1);
        arena_free(own);
    }
}

static void check_target(Checker *c, const char *target) {
    check_set(c->engine, target, 1, NULL, NULL);
    progress_begin("checking %s", target);
    for (int k = 0; k < c->cases.count; k++) {
        Case *one = &c->cases.list[k];
        progress_at(k, c->cases.count, "cases");
        check_call(c->arena, c->engine, one->batch, ALL_WANTED, &one->run);
        if (one->run.complaint) {
            print_trouble(c, target, one, "", one->run.complaint, 1);
            continue;
        }
        Pieces pieces = check_pieces(c->arena, c->engine, one->batch);
        compare_values(c, target, one, &pieces);
        compare_alone(c, target, one, &pieces);
        compare_wanted(c, target, one);
    }
    for (int t = 0; t < c->n_thread_counts; t++) {
        check_set(c->engine, target, c->thread_counts[t], c->pools[t], attn_pool_run);
        progress_begin("checking %s in %d threads", target, c->thread_counts[t]);
        for (int k = 0; k < c->cases.count; k++) {
            progress_at(k, c->cases.count, "cases");
            if (c->cases.list[k].run.complaint) continue;
            Arena *own = arena_new();
            CheckRun run;
            check_call(own, c->engine, c->cases.list[k].batch, ALL_WANTED, &run);
            compare_bits(c, target, &c->cases.list[k], &run, arena_printf(c->arena, "%d threads", c->thread_counts[t]),
                         c->thread_counts[t]);
            arena_free(own);
        }
    }
}

/* ---------------------------------------------------------------- states */

static void print_states(Checker *c, const char *target, const char *name, const char *output, const Difference *d) {
    if (!d->elements) return;
    print_row(target, name, output, d);
    c->compared += d->elements;
    if (d->bad) c->off++;
}

/* One text appended to states in many ways, with each number of threads. */
static void check_states(Checker *c, const char *target) {
    Arena *own = arena_new();
    DecodeBits bits = {0};
    for (int t = -1; t < c->n_thread_counts; t++) {
        int threads = t < 0 ? 1 : c->thread_counts[t];
        Difference hidden = {0}, logits = {0};
        check_set(c->engine, target, threads, t < 0 ? NULL : c->pools[t], t < 0 ? NULL : attn_pool_run);
        progress_begin("checking states, %s in %d thread%s", target, threads, threads == 1 ? "" : "s");
        const char *trouble = check_decode(c->decode, own, c->engine, &bits, &hidden, &logits);
        if (t < 0 || hidden.bad) print_states(c, target, "decode", "hidden", &hidden);
        if (t < 0 || logits.bad) print_states(c, target, "decode", "logits", &logits);
        if (!trouble) continue;
        print_fail(target, "decode", "",
                   arena_printf(c->arena, "%d thread%s: %s", threads, threads == 1 ? "" : "s", trouble));
        c->off++;
    }
    arena_free(own);
}

/* The same text's attention maps. */
static void check_state_maps(Checker *c, const char *target) {
    Arena *own = arena_new();
    Difference self = {0}, cross = {0};
    check_set(c->engine, target, 1, NULL, NULL);
    progress_begin("checking the maps of states, %s", target);
    const char *trouble = check_decode_maps(c->decode, own, c->engine, &self, &cross);
    print_states(c, target, "maps-decode", "attention", &self);
    print_states(c, target, "maps-decode", "cross_attention", &cross);
    if (trouble) {
        print_fail(target, "maps-decode", "", trouble);
        c->off++;
    }
    arena_free(own);
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

static bool machine_has(const char *target) {
#if defined(__x86_64__)
    if (strcmp(target, "avx512") == 0)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("fma");
    if (strcmp(target, "avx2") == 0) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
    return target_is_base(target);
}

static void choose_targets(Checker *c) {
    int n_here;
    const char *const *here = targets_here(c->arena, &n_here);
    bool native = c->target && strcmp(c->target, "native") == 0;
    if (c->target && !native) {
        target_require(c->arena, c->target);
        if (!machine_has(c->target)) fail_status(EXIT_CANNOT, "this machine has no %s", c->target);
        c->targets[c->n_targets++] = c->target;
        return;
    }
    for (int t = 0; t < n_here; t++) {
        if (!machine_has(here[t])) continue;
        if (native) c->n_targets = 0;
        c->targets[c->n_targets++] = here[t];
    }
}

static void print_failure(Checker *c) {
    progress_begin("looking for the first tensor that is off");
    const char *what = check_first(c->arena, c->engine, c->cases.weights, c->first_target, c->first_case->batch);
    progress_hide();
    if (what) printf("\nthe first tensor that is off: %s\n", what);
    else printf("\nevery step alone is within its bound; what fails is how the call is made (see FAIL above)\n");
    say(stdout, "again: attnc check %s --seed %lld --target %s --case %s", c->path, (long long)c->seed, c->first_target,
           c->first_case->name);
    if (c->cases.small) printf(" --small");
    if (c->cases.lengths_text) printf(" --lengths %s", c->cases.lengths_text);
    if (c->weights_path) say(stdout, " --weights %s", c->weights_path);
    if (c->cc) say(stdout, " --cc %s", c->cc);
    if (c->first_threads > 1 || c->threads_text)
        printf(" --threads %d", c->first_threads > 1 ? c->first_threads : c->thread_counts[0]);
    if (c->emitted_path) say(stdout, " --emitted %s", c->emitted_path);
    printf("\n");
}

/* One engine for every target and length; false when something is off. */
static bool check_pass(Checker *c, const Module *module, bool maps) {
    EngineOptions options = {.target = c->n_targets == 1 ? c->targets[0] : NULL,
                             .cc = c->cc,
                             .threads = 1,
                             .level = c->cases.small ? "-O1" : NULL,
                             .emitted_c = c->emitted_c};
    c->engine = engine_new(c->arena, module, c->cases.weights, &options);
    if (!maps || c->cases.only) print_head();
    cases_make(&c->cases, c->engine, maps);
    for (int t = 0; t < c->n_targets; t++) check_target(c, c->targets[t]);
    if (c->first_case) print_failure(c);
    for (int t = 0; t < c->n_targets && c->decode && !c->off; t++) {
        if (maps) check_state_maps(c, c->targets[t]);
        else check_states(c, c->targets[t]);
    }
    if (c->off && !c->first_case)
        say(stdout, "again: attnc check %s --seed %lld --case %sdecode%s\n", c->path, (long long)c->seed,
               maps ? "maps-" : "", c->cases.small ? " --small" : "");
    return !c->off;
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
        c->decode = check_decode_new(c->arena, maps, c->cases.weights, text_rows(c, plain), c->seed);
    bool fine = true, any = false;
    if (wants_pass(c, false)) {
        fine = check_pass(c, plain, false);
        any = c->cases.count > 0 || c->decode;
    }
    if (fine && !c->emitted_c && wants_pass(c, true) && maps->forward->n_outputs > plain->forward->n_outputs) {
        fine = check_pass(c, maps, true);
        any |= c->cases.count > 0 || c->decode;
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
                              {"--emitted", .text = &c->emitted_path}};
    options_read(arena, argc, argv, usage, options, sizeof options / sizeof *options, &c->path, 1);
    c->seed = option_integer(usage, "--seed", seed, 1, 0, INT32_MAX);
    int threads = (int)option_integer(usage, "--threads", c->threads_text, 0, 1, 256);
    if (c->cases.small && c->weights_path)
        usage_error(usage, "`--small` draws its weights from the seed; `--weights` are of the whole model");
    c->cases.path = c->path;
    c->cases.seed = (uint64_t)c->seed;
    size_t size;
    if (c->emitted_path) c->emitted_c = file_read(arena, c->emitted_path, 64 << 20, &size);
    choose_targets(c);
    if (threads != 1) c->thread_counts[c->n_thread_counts++] = threads ? threads : 2;
    if (!threads) c->thread_counts[c->n_thread_counts++] = 3;
    for (int t = 0; t < c->n_thread_counts; t++)
        if (!(c->pools[t] = attn_pool_new(c->thread_counts[t])))
            fail("a pool of %d threads cannot be made: %s", c->thread_counts[t], strerror(errno));
    bool fine = check_spec(c);
    for (int t = 0; t < c->n_thread_counts; t++) attn_pool_free(c->pools[t]);
    progress_end();
    if (fine) {
        say(stdout,
            "%s: %lld elements within the bound; the same bits alone, in batches, and with other thread counts\n",
            c->path, (long long)c->compared);
    } else {
        say_head(stderr, PAINT_ERROR, "error");
        say(stderr, "%s: the compiled C and the interpreter differ in %lld places\n", c->path, (long long)c->off);
    }
    fflush(stdout);
    arena_free(arena);
    return fine ? EXIT_FINE : EXIT_USER;
}
