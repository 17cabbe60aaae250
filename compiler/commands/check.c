/* check.c: attnc check: the interpreter against compiled C, output by output, at many lengths, in batches, with several
 * threads, with outputs that are not wanted. */
#include "check.h"

#include "../../runtime/attn_runtime.h"

#include <errno.h>
#include <string.h>

static const char usage[] =
    "attnc check SPEC [--weights F] [--seed N] [--target T] [--cc CC] [--threads N] [--small] [--lengths N,…] [--case "
    "NAME] [--emitted FILE.c]\n"
    "  --small         the same model with few layers, narrow and short, at every kind of length\n"
    "  --lengths N,…   these lengths in place of the usual ones\n"
    "  --case NAME     only that case of the table\n"
    "  --emitted F.c   checks this C in place of a fresh emission (header and driver are fresh)";

enum { MOST_CASES = 24, MOST_TARGETS = TARGET_COUNT };

typedef struct Case {
    const char *name;
    Batch *batch; /* its sequences' outputs are the interpreter's */
    CheckRun run; /* with one thread and every output wanted */
} Case;

typedef struct Checker {
    Arena *arena;
    const char *path, *weights_path, *target, *cc, *threads_text, *only, *emitted_path, *lengths_text;
    bool small;
    int64_t seed;
    const char *emitted_c;
    const char *targets[MOST_TARGETS];
    int n_targets;
    int thread_counts[2];
    int n_thread_counts;
    attn_pool *pools[2];
    const Module *reference; /* what the interpreter runs: with every attention map */
    const Weights *weights;
    DecodeCheck *decode; /* rows appended to states; NULL: not done */
    Case known[MOST_CASES];
    int n_known;
    /* one pass: the spec as it is, then with every attention map */
    const Module *module;
    Engine *engine;
    bool maps;
    Case cases[MOST_CASES];
    int n_cases;
    int64_t compared, off;    /* elements; rows of the table that failed */
    const char *first_target; /* of the first failure */
    const Case *first_case;
    int first_threads;
} Checker;

/* ---------------------------------------------------------------- cases */

/* Seeded by the case and the sequence, so that a case alone has the same inputs. */
static void fill_sequence(const Checker *c, Sequence *s, const char *name, int64_t index, int64_t n, bool optional) {
    const Graph *g = c->module->forward;
    const Stack *stack = c->module->model->encoder ? c->module->model->encoder : c->module->model->decoder;
    for (int k = 0; k < 4; k++) s->symbols[k] = n;
    for (int i = 0; i < g->n_inputs; i++) {
        if (g->inputs[i].optional && !optional) continue;
        const Tensor *t = &g->tensors[g->inputs[i].tensor];
        int64_t count = 1;
        for (int d = 0; d < t->rank; d++) count *= t->dims[d].symbol ? n : t->dims[d].n;
        const char *key = arena_printf(c->arena, "%s.%lld.%s", name, (long long)index, g->inputs[i].name);
        InputArray *array = &s->inputs[s->n_inputs++];
        *array = (InputArray){g->inputs[i].name, t->dtype, t->dims[0].symbol ? n : t->dims[0].n, NULL};
        if (t->dtype == DTYPE_F32) {
            float *numbers = arena_array(c->arena, (size_t)count, sizeof *numbers);
            random_normal((uint64_t)c->seed, key, 0, 1, count, numbers);
            array->data = numbers;
            continue;
        }
        int64_t most = strcmp(g->inputs[i].name, "segments") == 0 ? stack->segments : stack->vocab,
                *ids = arena_array(c->arena, (size_t)count, sizeof *ids);
        uint64_t state = hash_bytes((uint64_t)c->seed + 1, key, strlen(key));
        for (int64_t k = 0; k < count; k++) {
            state = hash_bytes(state, &k, sizeof k);
            ids[k] = (int64_t)((state >> 17) % (uint64_t)most);
        }
        ids[count - 1] = most - 1; /* the table's end */
        array->data = ids;
    }
}

/* The interpreter's outputs, kept; the rest of it is forgotten. */
static void interpret_sequence(const Checker *c, Sequence *s) {
    Arena *own = arena_new();
    const Graph *g = c->reference->forward;
    Interpretation *result = interpret(own, c->reference, g, c->weights, s->inputs, s->n_inputs, s->symbols);
    s->outputs = arena_array(c->arena, (size_t)g->n_outputs, sizeof *s->outputs);
    for (int o = 0; o < g->n_outputs; o++) {
        int64_t elements = 0;
        s->outputs[o] = result->outputs[o];
        shape_elements(result->outputs[o].shape, &elements);
        double *kept = arena_array(c->arena, (size_t)elements, sizeof *kept);
        memcpy(kept, result->outputs[o].data, (size_t)elements * sizeof *kept);
        s->outputs[o].data = kept;
    }
    arena_free(own);
}

/* Interpreted once for both passes, with every output. */
static const Batch *known_batch(Checker *c, const char *name, const int64_t *lengths, int64_t count, bool optional) {
    for (int k = 0; k < c->n_known; k++)
        if (strcmp(c->known[k].name, name) == 0) return c->known[k].batch;
    if (c->n_known == MOST_CASES) bug("more cases than there is room for");
    Case *one = &c->known[c->n_known++];
    *one = (Case){.name = name, .batch = arena_alloc(c->arena, sizeof *one->batch)};
    one->batch->count = count;
    one->batch->sequences = arena_array(c->arena, (size_t)count, sizeof *one->batch->sequences);
    for (int64_t b = 0; b < count; b++) {
        fill_sequence(c, &one->batch->sequences[b], name, b, lengths[b], optional);
        interpret_sequence(c, &one->batch->sequences[b]);
    }
    return one->batch;
}

/* The reference's output that is output `o` of g; a layer with several attentions has several maps, in order. */
static int reference_output(const Graph *reference, const Graph *g, int o) {
    int before = 0;
    for (int i = 0; i < o; i++)
        before += strcmp(g->outputs[i].name, g->outputs[o].name) == 0 && g->outputs[i].layer == g->outputs[o].layer;
    for (int r = 0; r < reference->n_outputs; r++)
        if (strcmp(reference->outputs[r].name, g->outputs[o].name) == 0 &&
            reference->outputs[r].layer == g->outputs[o].layer && before-- == 0)
            return r;
    bug("the interpreter has no output `%s`", g->outputs[o].name);
}

static OutputArray *outputs_of_pass(const Checker *c, const OutputArray *all) {
    const Graph *g = c->module->forward;
    OutputArray *outputs = arena_array(c->arena, (size_t)g->n_outputs, sizeof *outputs);
    for (int o = 0; o < g->n_outputs; o++) outputs[o] = all[reference_output(c->reference->forward, g, o)];
    return outputs;
}

static void add_case(Checker *c, const char *name, const int64_t *lengths, int64_t count, bool optional) {
    const char *shown = c->maps ? arena_printf(c->arena, "maps-%s", name) : name;
    if (c->only && strcmp(c->only, shown) != 0) return;
    for (int k = 0; k < c->n_cases; k++)
        if (strcmp(c->cases[k].name, shown) == 0) return;
    if (c->n_cases == MOST_CASES) bug("more cases than there is room for");
    const Batch *known = known_batch(c, name, lengths, count, optional);
    Case *one = &c->cases[c->n_cases++];
    *one = (Case){.name = shown, .batch = arena_alloc(c->arena, sizeof *one->batch)};
    one->batch->count = known->count;
    one->batch->sequences = arena_array(c->arena, (size_t)known->count, sizeof *one->batch->sequences);
    for (int64_t b = 0; b < known->count; b++) {
        one->batch->sequences[b] = known->sequences[b];
        one->batch->sequences[b].outputs = outputs_of_pass(c, known->sequences[b].outputs);
    }
}

static void add_length(Checker *c, int64_t n, int64_t bound) {
    if (n >= 1 && n <= bound) add_case(c, arena_printf(c->arena, "length-%lld", (long long)n), &n, 1, true);
}

/* Sequences of random lengths, at least `count` and until there are more than `rows` rows. */
static void add_ragged(Checker *c, const char *name, int64_t count, int64_t rows) {
    Length seq = c->engine->plan->seq;
    int64_t room = count + rows + 1, *lengths = arena_array(c->arena, (size_t)room, sizeof *lengths), total = 0, n = 0;
    uint64_t state = hash_bytes((uint64_t)c->seed + 1, name, strlen(name));
    while (n < count || total <= rows) {
        state = hash_bytes(state, &n, sizeof n);
        lengths[n] = seq.exact ? seq.n : 1 + (int64_t)((state >> 17) % (uint64_t)seq.n);
        total += lengths[n++];
    }
    add_case(c, name, lengths, n, true);
}

static void add_given_lengths(Checker *c, Length seq) {
    int n = 0;
    for (const char *at = c->lengths_text; n < MOST_CASES; n++) {
        size_t length = strcspn(at, ",");
        int64_t rows = option_integer(usage, "--lengths", arena_copy(c->arena, at, length), 0, 1, INT32_MAX);
        if (rows > seq.n || (seq.exact && rows < seq.n))
            fail("%s: a sequence has %s %lld rows, not %lld", c->path, seq.exact ? "exactly" : "at most",
                 (long long)seq.n, (long long)rows);
        add_length(c, rows, seq.n);
        at += length;
        if (!*at++) return;
    }
    fail("more than %d lengths", MOST_CASES);
}

static void add_cases(Checker *c) {
    Length seq = c->engine->plan->seq;
    int64_t bound = seq.n;
    const int64_t small[] = {1, 2, 15, 16, 17, 31, 33, bound - 1, bound}, full[] = {1, 17 < bound ? 17 : bound};
    c->n_cases = 0;
    if (c->lengths_text) {
        add_given_lengths(c, seq);
        return;
    }
    if (seq.exact) add_length(c, bound, bound);
    for (int i = 0; c->small && !seq.exact && i < 9; i++) add_length(c, small[i], bound);
    for (int i = 0; !c->small && !seq.exact && i < 2; i++) add_length(c, full[i], bound);
    for (int i = 0; i < c->module->forward->n_inputs; i++)
        if (c->module->forward->inputs[i].optional)
            add_case(c, "required-inputs", seq.exact ? &bound : &full[1], 1, false);
    if (c->engine->program->unroll_full) return; /* one sequence a call */
    if (!c->small && seq.exact) add_case(c, "batch-1", (const int64_t[]){bound, bound}, 2, true);
    if (!c->small && !seq.exact) add_case(c, "batch-1", (const int64_t[]){full[1], 1, full[1]}, 3, true);
    if (!c->small) return;
    add_ragged(c, "batch-1", 2, 0);
    add_ragged(c, "batch-2", 3, 0);
    add_ragged(c, "batch-3", 7, 0);
    add_ragged(c, "batch-chunks", 3, 2 * c->engine->plan->rows);
}

/* ---------------------------------------------------------------- rows of the table */

static void note_failure(Checker *c, const char *target, const Case *one, int threads) {
    c->off++;
    if (c->first_case) return;
    c->first_case = one;
    c->first_target = target;
    c->first_threads = threads;
}

static void print_head(void) {
    printf("%-8s %-20s %-10s %10s %12s %12s %10s\n", "target", "case", "output", "elements", "max |a-b|", "allowed",
           "max ulp");
}

static void print_trouble(Checker *c, const char *target, const Case *one, const char *output, const char *text,
                          int threads) {
    printf("%-8s %-20s %-10s FAIL: %s\n", target, one->name, output, text);
    note_failure(c, target, one, threads);
}

/* A row an output: the worst of its sequences. */
static void compare_values(Checker *c, const char *target, const Case *one, const Pieces *pieces) {
    for (int a = 0; a < CHECK_ARRAYS; a++) {
        if (!one->run.arrays[a]) continue;
        Difference d = {0};
        for (int64_t i = 0; i < pieces->count; i++) {
            const Piece *p = &pieces->list[i];
            if (p->array == a)
                check_compare(&d, one->run.arrays[a] + p->offset, p->columns, p->want, p->rows, p->columns);
        }
        printf("%-8s %-20s %-10s %10lld %12.3e %12.3e %10lld  %s\n", target, one->name, check_array_names[a],
               (long long)d.elements, d.most, d.allowed, (long long)d.ulps, d.bad ? "FAIL" : "ok");
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
            output = check_array_names[p->array];
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
    for (int a = 0; a < CHECK_ARRAYS; a++)
        if (run->arrays[a] && memcmp(run->arrays[a], one->run.arrays[a], (size_t)run->items[a] * sizeof(float)) != 0)
            print_trouble(c, target, one, check_array_names[a], arena_printf(c->arena, "%s: other bits", how), threads);
}

/* Nothing, and each output alone. */
static void compare_wanted(Checker *c, const char *target, const Case *one) {
    int outputs = 0;
    for (int a = 0; a < CHECK_ARRAYS; a++) outputs += one->run.arrays[a] != NULL;
    for (int a = -1; a < CHECK_ARRAYS; a++) {
        if (a >= 0 && (outputs < 2 || !one->run.arrays[a])) continue;
        Arena *own = arena_new();
        CheckRun run;
        check_call(own, c->engine, one->batch, a < 0 ? 0 : 1u << a, &run);
        compare_bits(c, target, one, &run,
                     a < 0 ? "no output wanted" : arena_printf(c->arena, "only %s wanted", check_array_names[a]), 1);
        arena_free(own);
    }
}

static void check_target(Checker *c, const char *target) {
    check_set(c->engine, target, 1, NULL, NULL);
    for (int k = 0; k < c->n_cases; k++) {
        Case *one = &c->cases[k];
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
        for (int k = 0; k < c->n_cases; k++) {
            if (c->cases[k].run.complaint) continue;
            Arena *own = arena_new();
            CheckRun run;
            check_call(own, c->engine, c->cases[k].batch, ALL_WANTED, &run);
            compare_bits(c, target, &c->cases[k], &run, arena_printf(c->arena, "%d threads", c->thread_counts[t]),
                         c->thread_counts[t]);
            arena_free(own);
        }
    }
}

/* ---------------------------------------------------------------- states */

static void print_states(Checker *c, const char *target, const char *output, const Difference *d) {
    if (!d->elements) return;
    printf("%-8s %-20s %-10s %10lld %12.3e %12.3e %10lld  %s\n", target, "decode", output, (long long)d->elements,
           d->most, d->allowed, (long long)d->ulps, d->bad ? "FAIL" : "ok");
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
        const char *trouble = check_decode(c->decode, own, c->engine, &bits, &hidden, &logits);
        if (t < 0 || hidden.bad) print_states(c, target, "hidden", &hidden);
        if (t < 0 || logits.bad) print_states(c, target, "logits", &logits);
        if (!trouble) continue;
        printf("%-8s %-20s %-10s FAIL: %d thread%s: %s\n", target, "decode", "", threads, threads == 1 ? "" : "s", trouble);
        c->off++;
    }
    arena_free(own);
}

/* Rows of that text: up to the bound where the model is small. */
static int64_t text_rows(const Checker *c, const Module *module) {
    enum { MULTIPLY_ADDS = 300000000, LEAST = 17 };
    Length seq = module->model->decoder->seq;
    if (seq.exact || c->small) return seq.n;
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
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
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
    const char *what = check_first(c->arena, c->engine, c->weights, c->first_target, c->first_case->batch);
    if (what) printf("\nthe first tensor that is off: %s\n", what);
    else printf("\nevery step alone is within its bound; what fails is how the call is made (see FAIL above)\n");
    printf("again: attnc check %s --seed %lld --target %s --case %s", c->path, (long long)c->seed, c->first_target,
           c->first_case->name);
    if (c->small) printf(" --small");
    if (c->lengths_text) printf(" --lengths %s", c->lengths_text);
    if (c->weights_path) printf(" --weights %s", c->weights_path);
    if (c->cc) printf(" --cc %s", c->cc);
    if (c->first_threads > 1 || c->threads_text)
        printf(" --threads %d", c->first_threads > 1 ? c->first_threads : c->thread_counts[0]);
    if (c->emitted_path) printf(" --emitted %s", c->emitted_path);
    printf("\n");
}

/* One engine for every target and length; false when something is off. */
static bool check_pass(Checker *c, const Module *module) {
    c->module = module;
    EngineOptions options = {
        .target = c->n_targets == 1 ? c->targets[0] : NULL, .cc = c->cc, .threads = 1, .emitted_c = c->emitted_c};
    c->engine = engine_new(c->arena, module, c->weights, &options);
    if (!c->maps || c->only) print_head();
    add_cases(c);
    for (int t = 0; t < c->n_targets; t++) check_target(c, c->targets[t]);
    if (c->first_case) print_failure(c);
    for (int t = 0; t < c->n_targets && c->decode && !c->maps && !c->off; t++) check_states(c, c->targets[t]);
    if (c->off && !c->first_case) printf("again: attnc check %s --seed %lld --case decode%s\n", c->path, (long long)c->seed, c->small ? " --small" : "");
    return !c->off;
}

static bool wants_pass(const Checker *c, bool maps) { return !c->only || (strncmp(c->only, "maps-", 5) == 0) == maps; }

static Module *load_module(const Checker *c, bool maps) {
    Model *model = model_load(c->arena, c->path);
    if (c->small) model = model_small(c->arena, model);
    const ValueNode all = {.text = "attention=all"};
    if (maps) model_turn_on(c->arena, model, &all);
    return build(c->arena, model);
}

static bool check_spec(Checker *c) {
    Module *plain = load_module(c, false);
    plan_model(c->arena, plain); /* refuses before anything is computed */
    Module *maps = load_module(c, true);
    c->reference = maps;
    c->weights = load_weights(
        c->arena, plain, c->weights_path ? c->weights_path : arena_printf(c->arena, "random:%lld", (long long)c->seed),
        false);
    bool states = !c->only || strcmp(c->only, "decode") == 0;
    if (plain->decode && states && !c->lengths_text)
        c->decode = check_decode_new(c->arena, maps, c->weights, text_rows(c, plain), c->seed);
    bool fine = true, any = false;
    if (wants_pass(c, false)) {
        fine = check_pass(c, plain);
        any = c->n_cases > 0 || c->decode;
    }
    c->maps = true;
    if (fine && !c->emitted_c && wants_pass(c, true) && maps->forward->n_outputs > plain->forward->n_outputs) {
        fine = check_pass(c, maps);
        any |= c->n_cases > 0;
    }
    if (!any) fail("%s: there is no case `%s`", c->path, c->only ? c->only : "");
    return fine;
}

int command_check(int argc, char **argv) {
    Arena *arena = arena_new();
    Checker *c = arena_alloc(arena, sizeof *c);
    c->arena = arena;
    const char *seed = NULL;
    const Option options[] = {{"--weights", .text = &c->weights_path}, {"--seed", .text = &seed},
                              {"--target", .text = &c->target},        {"--cc", .text = &c->cc},
                              {"--threads", .text = &c->threads_text}, {"--small", .flag = &c->small},
                              {"--lengths", .text = &c->lengths_text}, {"--case", .text = &c->only},
                              {"--emitted", .text = &c->emitted_path}};
    options_read(arena, argc, argv, usage, options, sizeof options / sizeof *options, &c->path, 1);
    c->seed = option_integer(usage, "--seed", seed, 1, 0, INT32_MAX);
    int threads = (int)option_integer(usage, "--threads", c->threads_text, 0, 1, 256);
    if (c->small && c->weights_path)
        usage_error(usage, "`--small` draws its weights from the seed; `--weights` are of the whole model");
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
    if (fine)
        printf("%s: %lld elements within the bound; the same bits alone, in batches, and with other thread counts\n",
               c->path, (long long)c->compared);
    else
        fprintf(stderr, "attnc: error: %s: the compiled C and the interpreter differ in %lld places\n", c->path,
                (long long)c->off);
    fflush(stdout);
    arena_free(arena);
    return fine ? EXIT_FINE : EXIT_USER;
}
