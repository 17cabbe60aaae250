/* trial.c: specs in a process of their own: written, compiled together, and each compared with the interpreter. */
#include "fuzz.h"

#include "../../../runtime/attn_runtime.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const outcome_names[OUTCOME_COUNT] = {"fine", "refused", "wrong", "bug", "crash"};

const char *outcome_name(Outcome outcome) { return outcome_names[outcome]; }

/* ---------------------------------------------------------------- the line in front of a spec */

const char *trial_text(Arena *arena, const Trial *t) {
    Text text = text_new(arena);
    text_printf(&text, "# fuzz targets ");
    for (int i = 0; i < t->n_targets; i++) text_printf(&text, "%s%s", i ? "," : "", t->targets[i]);
    text_printf(&text, " threads %d weights %s:%llu", t->threads, stress_name(t->stress), (unsigned long long)t->seed);
    if (t->embedded) text_printf(&text, " embedded");
    if (t->reproducible) text_printf(&text, " reproducible");
    if (t->only) text_printf(&text, " case %s", t->only);
    text_printf(&text, "\n%s", t->text);
    return text.data;
}

static void take_targets(Arena *arena, Trial *t, const char *list) {
    for (const char *at = list; *at && t->n_targets < MOST_TARGETS; at += strspn(at, ",")) {
        size_t n = strcspn(at, ",");
        const char *target = arena_copy(arena, at, n);
        target_require(arena, target);
        if (machine_has(target, false)) t->targets[t->n_targets++] = target;
        at += n;
    }
}

static bool take_word(const char **at, const char *word) {
    const size_t n = strlen(word);
    if (strncmp(*at, word, n) != 0) return false;
    *at += n;
    return true;
}

Trial trial_of_text(Arena *arena, const char *text) {
    Trial t = {.threads = 2};
    char targets[100], stress[20], only[64];
    unsigned long long seed;
    int threads, end = 0, n = sscanf(text, "# fuzz targets %99s threads %d weights %19[^:]:%llu%n", targets, &threads,
                                     stress, &seed, &end);
    if (n < 4 || !stress_named(stress, &t.stress)) fail("the first line of a spec to replay is `# fuzz targets …`");
    t.threads = threads;
    t.seed = seed;
    const char *at = text + end;
    t.embedded = take_word(&at, " embedded");
    t.reproducible = take_word(&at, " reproducible");
    if (sscanf(at, " case %63s", only) == 1) t.only = arena_copy(arena, only, strlen(only));
    take_targets(arena, &t, targets);
    t.text = strchr(text, '\n') + 1;
    return t;
}

/* ---------------------------------------------------------------- comparing */

static void add_message(Trial *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add_message(Trial *t, const char *format, ...) {
    size_t used = strlen(t->message);
    va_list args;
    va_start(args, format);
    vsnprintf(t->message + used, MESSAGE - used, format, args);
    va_end(args);
}

typedef struct Hearing {
    Trial *trial;
    Checks *checks;
    int told, rows, troubles; /* messages, outputs that differ, and whatever else is wrong */
    int others;               /* troubles that are not rounded numbers far from the interpreter's */
} Hearing;

static void hear_row(void *with, const char *target, const char *name, const char *output, const Difference *d) {
    Hearing *h = with;
    h->rows += d->bad > 0;
    if (!d->bad || h->told++ > 4) return;
    add_message(h->trial, "%s %s %s: |a-b| %.3g, allowed %.3g; [%lld][%lld] is %.9g, the interpreter has %.9g\n",
                target, name, output, d->most, d->allowed, (long long)d->row, (long long)d->column, d->got, d->want);
}

static void hear_trouble(void *with, const char *target, const char *name, const char *output, const char *text) {
    Hearing *h = with;
    h->troubles++;
    h->others += !strstr(text, "are not near");
    if (h->told++ > 4) return;
    add_message(h->trial, "%s %s %s: %s\n", target, name, output, text);
}

enum { LONGEST_TEXT = 70 };

/* Of extreme weights; and wherever a first look finds something. What a number moves in a few interpretations is by
 * chance far too little about once in a thousand specs, and scores that are equal but for the rounding of their sums,
 * so that one bit says which key a query sees, need steps that are longer than that of a result. */
static const Rounded first_look = {4, 1}, second_look = {32, 4};

/* One set of weights, `rounded` as Cases has it. The largest spread comes back: above MOST_SPREAD nothing was
 * compared. */
static double compare(Trial *t, Engine *engine, attn_pool *pool, Stress stress, uint64_t seed, Rounded rounded,
                      Hearing *heard) {
    Arena *arena = arena_new();
    const Module *module = engine->module;
    Cases cases = {.arena = arena, .path = "drawn.attn", .small = true, .brief = t->brief, .seed = seed,
                   .reference = module, .rounded = rounded,
                   .only = t->only && strcmp(t->only, "decode") != 0 ? t->only : NULL};
    cases.weights = stressed_weights(arena, module, stress, seed, &cases.inputs);
    Checks checks = {.arena = arena, .cases = &cases, .thread_counts = {t->threads}, .n_thread_counts = 1,
                     .pools = {pool}, .row = hear_row, .trouble = hear_trouble};
    Hearing hearing = {.trial = t, .checks = &checks};
    checks.with = &hearing;
    if (!t->only || cases.only) cases_make(&cases, engine, false);
    double spread = 0;
    const Graph *forward = module->entries[ENTRY_FORWARD];
    const bool known = !graph_jumps(forward); /* else outputs follow from the rows that the C rounds */
    for (int k = 0; k < cases.count && rounded.runs && known; k++)
        for (int64_t b = 0; b < cases.list[k].batch->count; b++)
            for (int o = 0; o < forward->n_outputs; o++)
                spread = fmax(spread, check_spread_share(&cases.list[k].batch->sequences[b].outputs[o]));
    if (module->entries[ENTRY_DECODE] && !cases.only && spread <= MOST_SPREAD) {
        int64_t bound = module->model->decoder->seq.n, rows = bound < LONGEST_TEXT ? bound : LONGEST_TEXT;
        checks.decode = check_decode_new(arena, module, cases.weights, module->model->decoder->seq.exact ? bound : rows,
                                         (int64_t)(seed % 1000003), rounded);
        spread = fmax(spread, check_decode_spread(checks.decode));
    }
    if (spread <= MOST_SPREAD) {
        t->message[0] = 0;
        bool embedded = t->embedded && stress == t->stress && seed == t->seed;
        engine_load(arena, engine, cases.weights,
                    &(EngineOptions){.threads = 1, .embedded = embedded ? cases.weights : NULL});
        checks_begin(&checks, arena, engine);
        for (int i = 0; i < t->n_targets; i++) {
            checks_run(&checks, t->targets[i]);
            if (checks.decode && !checks.off) checks_states(&checks, t->targets[i]);
        }
        t->compared = checks.compared;
        t->outcome = checks.off ? OUTCOME_WRONG : OUTCOME_FINE;
    }
    *heard = hearing;
    arena_free(arena);
    return spread;
}

/* Whether rows that the C rounds are far from the interpreter's only since rounding moves what they come from as far:
 * the second look, which knows how far, finds nothing wrong with the outputs that the first one does not like. The
 * check of rounded rows knows no spread, so that such weights are not compared. */
static bool is_delicate(const Hearing *first, const Hearing *second) {
    return first->rows && !second->rows && !first->others && !second->others;
}

/* Weights are drawn again, and at last of unit scale, where f32 promises nothing of them. Narrow norms and the like can
 * make that so of unit scale too. */
static void compare_trial(Trial *t, Engine *engine, attn_pool *pool) {
    enum { TIMES = 4 };
    for (int i = 0; i < 2 * TIMES; i++) {
        Stress stress = i < TIMES ? t->stress : STRESS_UNIT;
        Hearing heard, again;
        uint64_t seed = t->seed + (uint64_t)i * 1000;
        Rounded first = stress == STRESS_UNIT ? (Rounded){0} : first_look;
        double spread = compare(t, engine, pool, stress, seed, first, &heard);
        if (spread <= MOST_SPREAD && t->outcome == OUTCOME_WRONG && !heard.others) {
            spread = compare(t, engine, pool, stress, seed, second_look, &again);
            if (is_delicate(&heard, &again) && t->outcome == OUTCOME_WRONG) spread = INFINITY;
            t->delicate = spread > MOST_SPREAD || t->outcome == OUTCOME_FINE;
        }
        if (spread <= MOST_SPREAD) return;
        t->redrawn++;
        t->outcome = OUTCOME_FINE; /* until something is compared */
        t->message[0] = 0;
    }
}

/* ---------------------------------------------------------------- writing and compiling */

static const char *planted(Arena *arena, const char *c, const char *plant) {
    const char *arrow = strstr(plant, "=>");
    if (!arrow) fail("a plant is FROM=>TO");
    size_t n = (size_t)(arrow - plant);
    const char *from = arena_copy(arena, plant, n);
    Text text = text_new(arena);
    for (const char *hit; (hit = strstr(c, from)); c = hit + n) {
        text_add(&text, c, (size_t)(hit - c));
        text_printf(&text, "%s", arrow + 2);
    }
    text_printf(&text, "%s", c);
    return text.data;
}

static void take_failure(Trial *t, const FailureTrap *trap, const char *when) {
    t->outcome = trap->status == EXIT_CANNOT ? OUTCOME_REFUSED : OUTCOME_BUG;
    t->message[0] = 0;
    add_message(t, "%s%s\n", when, trap->message);
}

/* Compiles the model with --reproducible for those of its targets that can; if none can, without it. */
static void make_reproducible(Arena *arena, Trial *t, Compilation *c) {
    int n = t->n_targets;
    const char *const *having = targets_of_arithmetic(arena, reproducible_arithmetic(c->module), t->targets, &n);
    t->reproducible = c->reproducible = n > 0;
    for (int i = 0; i < n; i++) t->targets[i] = having[i];
    if (n > 0) t->n_targets = n;
}

/* `index` is its model's name, so that no two of a batch have one. */
static Engine *write_engine(Arena *arena, const Workshop *shop, Trial *t, int index) {
    FailureTrap trap;
    Engine *volatile engine = NULL;
    if (failure_trap(&trap) == 0) {
        Compilation c = compilation_quiet(arena, source_from_text(arena, "drawn.attn", t->text, strlen(t->text)));
        if (!compile_until(&c, STAGE_MODEL)) fail_status(EXIT_CANNOT, "%s", c.diagnostics.log.data);
        c.model->name = arena_printf(arena, "s%d", index);
        if (!compile_until(&c, STAGE_REWRITE)) fail_status(EXIT_CANNOT, "%s", c.diagnostics.log.data);
        if (t->reproducible) make_reproducible(arena, t, &c);
        EngineOptions options = {.targets = t->targets, .n_targets = t->n_targets};
        RandomInputs inputs;
        /* How far rounding moves a model that rounds rows is known only from what a target has made of them. */
        if (graph_jumps(c.module->entries[ENTRY_FORWARD])) t->stress = STRESS_UNIT;
        if (t->embedded) options.embedded = stressed_weights(arena, c.module, t->stress, t->seed, &inputs);
        engine = engine_write(arena, &c, &options);
        if (shop->plant) engine->emitted.c = planted(arena, engine->emitted.c, shop->plant);
        failure_release(&trap);
    } else {
        take_failure(t, &trap, "");
        return NULL;
    }
    return engine;
}

static bool compile(Arena *arena, const Workshop *shop, Engine *const *engines, int n, FailureTrap *trap) {
    if (failure_trap(trap) == 0) {
        engines_compile(arena, engines, n, &(EngineOptions){.cc = shop->cc, .level = shop->level, .strict = true});
        failure_release(trap);
        return true;
    }
    return false;
}

/* In the process that does it. */
static void try_here(const Workshop *shop, Trial *const *trials, int n) {
    Arena *arena = arena_new();
    Engine **engines = arena_array(arena, (size_t)n, sizeof *engines);
    Trial **tried = arena_array(arena, (size_t)n, sizeof *tried);
    attn_pool *pools[] = {attn_pool_new(2), attn_pool_new(3)};
    int written = 0;
    FailureTrap trap;
    for (int i = 0; i < n; i++) {
        Engine *engine = write_engine(arena, shop, trials[i], i);
        if (!engine) continue;
        tried[written] = trials[i];
        engines[written++] = engine;
    }
    bool together = written && compile(arena, shop, engines, written, &trap);
    for (int i = 0; i < written; i++) {
        Trial *t = tried[i];
        if (!together && !compile(arena, shop, &engines[i], 1, &trap)) {
            take_failure(t, &trap, "");
        } else if (failure_trap(&trap) == 0) {
            compare_trial(t, engines[i], pools[t->threads == 3]);
            failure_release(&trap);
        } else {
            take_failure(t, &trap, "while comparing: ");
        }
    }
    for (int i = 0; i < 2; i++) attn_pool_free(pools[i]);
    arena_free(arena);
}

/* ---------------------------------------------------------------- processes */

struct Job {
    Trial *const *trials;
    int n;
    FILE *results; /* the trials, as they are behind the child's work */
    pid_t child;
};

int job_process(const Job *job) { return (int)job->child; }

Job *job_begin(Arena *arena, const Workshop *shop, Trial *const *trials, int n) {
    Job *job = arena_alloc(arena, sizeof *job);
    *job = (Job){trials, n, tmpfile(), 0};
    if (!job->results) fail("a temporary file cannot be made: %s", strerror(errno));
    fflush(NULL);
    job->child = fork();
    if (job->child < 0) fail("a process cannot be made: %s", strerror(errno));
    if (job->child) return job;
    alarm((unsigned)(shop->seconds * n));
    try_here(shop, trials, n);
    for (int i = 0; i < n; i++) fwrite(trials[i], sizeof *trials[i], 1, job->results);
    fflush(job->results);
    exit(EXIT_FINE);
}

void job_end(const Workshop *shop, Job *job, int status) {
    bool whole = WIFEXITED(status) && WEXITSTATUS(status) == EXIT_FINE;
    rewind(job->results);
    for (int i = 0; i < job->n && whole; i++) {
        Trial done;
        whole = fread(&done, sizeof done, 1, job->results) == 1;
        if (!whole) break;
        Trial *t = job->trials[i];
        t->outcome = done.outcome;
        t->redrawn = done.redrawn;
        t->delicate = done.delicate;
        t->compared = done.compared;
        memcpy(t->message, done.message, MESSAGE);
    }
    fclose(job->results);
    if (whole) return;
    for (int i = 0; i < job->n && job->n > 1; i++) try_all(shop, &job->trials[i], 1);
    if (job->n > 1) return;
    Trial *t = job->trials[0];
    t->outcome = OUTCOME_CRASH;
    t->message[0] = 0;
    if (WIFSIGNALED(status)) add_message(t, "signal %d: %s\n", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else add_message(t, "the process ended with %d\n", WEXITSTATUS(status));
}

void try_all(const Workshop *shop, Trial *const *trials, int n) {
    Arena *arena = arena_new();
    Job *job = job_begin(arena, shop, trials, n);
    int status = 0;
    while (waitpid(job->child, &status, 0) < 0 && errno == EINTR) continue;
    job_end(shop, job, status);
    arena_free(arena);
}
