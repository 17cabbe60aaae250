/* main.c: the fuzzer's command line: drawing, trying, telling what failed, and trying that again. */
#include "fuzz.h"

#include "../../../compiler/commands/commands.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

static const char usage[] =
    "specs [--seed S] [--from N] [--count N] [--targets all|two|rotate|T,…] [--jobs N] [--log FILE] …\n"
    "       specs --replay FILE…\n"
    "  --seed S             what specs are drawn from (1); spec N of a seed is the same everywhere\n"
    "  --from N             the first number (0)\n"
    "  --count N            how many (200)\n"
    "  --targets L          of each spec: all that this machine has (the default), two or one of them by its number,\n"
    "                       or these\n"
    "  --jobs N             processes at once (1)\n"
    "  --batch N            specs that are compiled together (16)\n"
    "  --level -ON          of the C compiler (-O1)\n"
    "  --cc CC              the C compiler; without it $CC, else the first there of clang, gcc, cc\n"
    "  --seconds N          for a spec, before it counts as hanging (120)\n"
    "  --tries N            for making a spec that fails smaller (150)\n"
    "  --found DIR          where specs that fail are written (build/fuzz/found)\n"
    "  --log FILE           a line a spec, added to\n"
    "  --table FILE         how often each setting and pair of settings was drawn\n"
    "  --pair A,B           whether a spec can have both, as the table names them\n"
    "  --expressions        small models whose mask and score are expressions of all types, to a depth of 12\n"
    "  --probe              of pairs that were not drawn: a plain spec for each, or why none can have them\n"
    "  --dry                draws, and runs nothing\n"
    "  --print              prints what is drawn\n"
    "  --plant FROM=>TO     in the C, to see that a fault is found\n"
    "  --replay FILE        tries a spec that was written; given several times, all of them";

typedef struct Main {
    Arena *arena;
    Workshop shop;
    uint64_t seed, from, count;
    const char **probed; /* specs that come behind those, [n_probed] */
    int n_probed;
    int jobs, batch, tries;
    bool expressions; /* instead of specs over the whole language */
    const char *targets, *found, *replay_words;
    const char *here[MOST_TARGETS]; /* that this machine has */
    int n_here;
    FILE *log;
    Refusals refusals;
    Pairs *pairs;
    int64_t outcomes[OUTCOME_COUNT], stressed[STRESS_COUNT], redrawn, delicate, empty, compared;
    double begin;
} Main;

/* ---------------------------------------------------------------- what is tried */

static void find_targets(Main *m) {
    static const char *const all[] = {"scalar", "sse2", "avx2", "avx512", "neon", "avx512vnni", "avx512bf16",
                                      "avxvnni", "neondot", "neoni8mm", "sve", "sve256", "sve512",
                                      "rvv", "rvv256", "rvv512"};
    for (int i = 0; i < COUNT(all); i++)
        if (machine_has(all[i], false)) m->here[m->n_here++] = all[i];
}

static void choose_targets(const Main *m, uint64_t number, Trial *t) {
    int first = (int)((number + number / 4) % (uint64_t)m->n_here); /* draw_spec has a rule for every fourth */
    if (strcmp(m->targets, "all") == 0) {
        while (t->n_targets < m->n_here) t->targets[t->n_targets] = m->here[t->n_targets], t->n_targets++;
        return;
    }
    bool two = strcmp(m->targets, "two") == 0;
    if (two || strcmp(m->targets, "rotate") == 0) {
        t->targets[t->n_targets++] = m->here[first];
        int step = 1 + (int)(number / (uint64_t)m->n_here) % (m->n_here > 1 ? m->n_here - 1 : 1);
        if (two && m->n_here > 1) t->targets[t->n_targets++] = m->here[(first + step) % m->n_here];
        return;
    }
    for (int i = 0; i < m->n_here; i++) {
        const char *at = strstr(m->targets, m->here[i]);
        size_t n = strlen(m->here[i]);
        if (at && (at[n] == ',' || !at[n])) t->targets[t->n_targets++] = m->here[i];
    }
    if (!t->n_targets) fail("this machine has none of the targets %s", m->targets);
}

static Trial *new_trial(Main *m, Arena *arena, uint64_t number) {
    Trial *t = arena_alloc(arena, sizeof *t);
    Dice dice = dice_new(m->seed, number, "trial");
    uint64_t drawn = m->from + m->count;
    const char *text = number >= drawn ? m->probed[number - drawn] :
                       m->expressions ? draw_expressions(arena, m->seed, number, &m->refusals) :
                                        draw_spec(arena, m->seed, number, &m->refusals);
    *t = (Trial){.text = text};
    t->stress = dice_chance(&dice, 50) ? STRESS_UNIT : (Stress)dice_between(&dice, 1, STRESS_COUNT - 1);
    t->seed = dice_bits(&dice) % 1000000;
    bool finite = t->stress != STRESS_SPECIAL && t->stress != STRESS_SCALED; /* C has no number for the others */
    t->embedded = finite && dice_chance(&dice, 15);
    t->reproducible = dice_chance(&dice, 15);
    t->brief = !dice_chance(&dice, 25);
    t->threads = 2 + (int)dice_below(&dice, 2);
    choose_targets(m, number, t);
    return t;
}

/* ---------------------------------------------------------------- what is told */

static bool failed(const Trial *t) { return t->outcome >= OUTCOME_WRONG; }

static void count_trial(Main *m, const Trial *t) {
    m->outcomes[t->outcome]++;
    m->stressed[t->stress]++;
    m->redrawn += t->redrawn;
    m->delicate += t->delicate;
    m->compared += t->compared;
    m->empty += t->outcome == OUTCOME_FINE && !t->compared;
    if (t->outcome == OUTCOME_REFUSED) refusals_add(&m->refusals, t->message, 1);
}

/* Writes the spec where it can be tried again, and says how. */
static void tell(Main *m, const Trial *t, const char *name) {
    const char *path = arena_printf(m->arena, "%s/%s.attn", m->found, name);
    mkdir(m->found, 0777);
    OutputFile *file = output_open(m->arena, path);
    const char *text = trial_text(m->arena, t);
    output_write(file, text, strlen(text));
    output_commit(file);
    printf("\n%s: %s\n%s\n%s", name, outcome_name(t->outcome), t->message, text);
    printf("again: build/fuzz/specs --replay %s%s%s%s\n", path, m->shop.cc ? " --cc " : "",
           m->shop.cc ? m->shop.cc : "", m->replay_words);
    fflush(stdout);
}

static void tell_failure(Main *m, const Trial *t, uint64_t number) {
    Arena *arena = arena_new();
    Trial small = *t;
    const char *name = arena_printf(arena, "seed%llu_%llu", (unsigned long long)m->seed, (unsigned long long)number);
    tell(m, t, arena_printf(arena, "%s_whole", name));
    if (m->tries > 0) {
        shrink(arena, &m->shop, &small, m->tries);
        tell(m, &small, name);
    }
    arena_free(arena);
}

static void tell_totals(const Main *m) {
    double seconds = seconds_now() - m->begin;
    int64_t all = 0, refused = 0, wrong = 0;
    for (int i = 0; i < OUTCOME_COUNT; i++) all += m->outcomes[i];
    for (int i = OUTCOME_WRONG; i < OUTCOME_COUNT; i++) wrong += m->outcomes[i];
    for (int i = 0; i < m->refusals.n; i++) refused += m->refusals.list[i].count;
    printf("%lld specs, %lld wrong:", (long long)all, (long long)wrong);
    for (int i = 0; i < OUTCOME_COUNT; i++) printf(" %lld %s", (long long)m->outcomes[i], outcome_name((Outcome)i));
    printf("; %lld numbers compared in %.0f s\nweights:", (long long)m->compared, seconds);
    for (int i = 0; i < STRESS_COUNT; i++) printf(" %lld %s", (long long)m->stressed[i], stress_name((Stress)i));
    printf("; %lld drawn again, %lld fine by a second bound, %lld specs without a comparison\n",
           (long long)m->redrawn, (long long)m->delicate, (long long)m->empty);
    printf("%lld of %lld specs drawn without a plan were refused\n", (long long)refused, (long long)m->refusals.drawn);
}

/* ---------------------------------------------------------------- running */

typedef struct Running {
    Arena *arena;
    Job *job;
    Trial **trials;
    uint64_t first;
    int n;
} Running;

static void finish(Main *m, Running *r, int status) {
    job_end(&m->shop, r->job, status);
    for (int i = 0; i < r->n; i++) {
        const Trial *t = r->trials[i];
        uint64_t number = r->first + (uint64_t)i;
        count_trial(m, t);
        pairs_add(m->pairs, t->text);
        if (m->log)
            fprintf(m->log, "%llu %s %s:%llu %s%.*s\n", (unsigned long long)number, outcome_name(t->outcome),
                    stress_name(t->stress), (unsigned long long)t->seed, t->n_targets == 1 ? t->targets[0] : "",
                    (int)strcspn(t->message, "\n"), t->message);
        if (failed(t)) tell_failure(m, t, number);
    }
    if (m->log) fflush(m->log);
    arena_free(r->arena);
    r->job = NULL;
}

static void wait_for_one(Main *m, Running *running) {
    int status = 0;
    pid_t ended = waitpid(-1, &status, 0);
    for (int j = 0; j < m->jobs; j++)
        if (running[j].job && job_process(running[j].job) == ended) finish(m, &running[j], status);
}

/* Specs from number `first` on, `count` of them. */
static void run(Main *m, uint64_t first, uint64_t count) {
    Running running[64] = {{0}};
    int busy = 0;
    for (uint64_t next = 0; next < count || busy;) {
        int free_place = -1;
        busy = 0;
        for (int j = 0; j < m->jobs; j++) {
            if (running[j].job) busy++;
            else free_place = j;
        }
        if (next >= count || free_place < 0) {
            if (busy) wait_for_one(m, running);
            continue;
        }
        Running *r = &running[free_place];
        *r = (Running){.arena = arena_new(), .first = first + next};
        r->n = (int)(count - next < (uint64_t)m->batch ? count - next : (uint64_t)m->batch);
        r->trials = arena_array(r->arena, (size_t)r->n, sizeof *r->trials);
        for (int i = 0; i < r->n; i++) r->trials[i] = new_trial(m, r->arena, r->first + (uint64_t)i);
        r->job = job_begin(r->arena, &m->shop, r->trials, r->n);
        next += (uint64_t)r->n;
        busy = 1;
    }
}

static void only_draw(Main *m, uint64_t first, uint64_t count, bool print) {
    for (uint64_t i = 0; i < count; i++) {
        Arena *arena = arena_new();
        const Trial *t = new_trial(m, arena, first + i);
        pairs_add(m->pairs, t->text);
        if (print) printf("%s\n", trial_text(arena, t));
        arena_free(arena);
    }
}

static int replay(Main *m, const ValueNode *files) {
    int n = 0, bad = 0;
    for (const ValueNode *f = files; f; f = f->next) n++;
    Trial **trials = arena_array(m->arena, (size_t)n, sizeof *trials);
    n = 0;
    for (const ValueNode *f = files; f; f = f->next) {
        size_t size;
        trials[n] = arena_alloc(m->arena, sizeof *trials[n]);
        *trials[n++] = trial_of_text(m->arena, file_read(m->arena, f->text, MAX_SPEC_BYTES, &size));
    }
    for (int first = 0; first < n; first += m->batch)
        try_all(&m->shop, trials + first, n - first < m->batch ? n - first : m->batch);
    n = 0;
    for (const ValueNode *f = files; f; f = f->next, n++) {
        if (!trials[n]->n_targets) {
            printf("%s: this machine has none of its targets\n", f->text);
            continue;
        }
        printf("%s: %s\n%s", f->text, outcome_name(trials[n]->outcome), trials[n]->message);
        bad += failed(trials[n]) || !trials[n]->compared;
    }
    return bad ? EXIT_USER : EXIT_FINE;
}

/* ---------------------------------------------------------------- the command line */

/* Words of resolve and of the passes for what the drawer may come to; anything else is a finding. */
static const char *const expected[] = {
#include "refusals.inc"
};

static bool is_expected(const char *message) {
    for (int i = 0; i < COUNT(expected); i++)
        if (strstr(message, expected[i])) return true;
    return false;
}

/* Whether everything that was refused may be, and not too much was. */
static bool tell_refusals(const Main *m) {
    enum { MOST_PERCENT = 40 };
    int64_t refused = 0;
    bool fine = true;
    for (int i = 0; i < m->refusals.n; i++) {
        const struct Refusal *r = &m->refusals.list[i];
        refused += r->count;
        printf("refused %6lld times: %s\n", (long long)r->count, r->message);
        if (is_expected(r->message)) continue;
        printf("that is not among the refusals that are expected\n");
        fine = false;
    }
    if (m->refusals.drawn > 20 && refused * 100 > m->refusals.drawn * MOST_PERCENT) {
        printf("more than %d %% are refused\n", MOST_PERCENT);
        fine = false;
    }
    return fine;
}

static int word_named(Arena *arena, const char *name) {
    for (int w = 0; w < word_count(); w++)
        if (strcmp(word_name(arena, w), name) == 0) return w;
    fail("no option or form is called `%s`", name);
}

static void tell_pairs(Arena *arena, const ValueNode *pairs) {
    for (; pairs; pairs = pairs->next) {
        const char *comma = strchr(pairs->text, ',');
        if (!comma) usage_error(usage, "`--pair` wants A,B, found `%s`", pairs->text);
        int one = word_named(arena, arena_copy(arena, pairs->text, (size_t)(comma - pairs->text))),
            other = word_named(arena, comma + 1);
        if (one > other) {
            int before = one;
            one = other;
            other = before;
        }
        const char *why, *spec = pair_spec(arena, one, other, &why);
        printf("%s: %s, %s%s%s\n", spec ? "can be had" : "cannot", word_name(arena, one), word_name(arena, other),
               spec ? "" : ": ", spec ? "" : why);
    }
}

static FILE *open_or_fail(const char *path, const char *mode) {
    FILE *file = path ? fopen(path, mode) : NULL;
    if (path && !file) fail("%s: %s", path, strerror(errno));
    return file;
}

int main(int argc, char **argv) {
    Arena *arena = arena_new();
    Main m = {.arena = arena, .refusals = {.arena = arena}, .targets = "all", .found = "build/fuzz/found"};
    const char *seed = NULL, *from = NULL, *count = NULL, *targets = NULL, *jobs = NULL, *batch = NULL, *seconds = NULL,
               *tries = NULL, *found = NULL, *log = NULL, *table = NULL;
    bool probe = false, dry = false, print = false;
    ValueNode *files = NULL, *asked = NULL;
    m.shop.level = NULL;
    const Option options[] = {
        {"--seed", .text = &seed},         {"--from", .text = &from},     {"--count", .text = &count},
        {"--targets", .text = &targets},   {"--jobs", .text = &jobs},     {"--batch", .text = &batch},
        {"--level", .text = &m.shop.level}, {"--cc", .text = &m.shop.cc}, {"--seconds", .text = &seconds},
        {"--tries", .text = &tries},       {"--found", .text = &found},   {"--log", .text = &log},
        {"--table", .text = &table},       {"--probe", .flag = &probe},
        {"--expressions", .flag = &m.expressions},   {"--dry", .flag = &dry},
        {"--print", .flag = &print},       {"--plant", .text = &m.shop.plant}, {"--replay", .list = &files},
        {"--pair", .list = &asked}};
    options_read(arena, argc - 1, argv + 1, usage, options, COUNT(options), NULL, 0);
    m.seed = (uint64_t)option_integer(usage, "--seed", seed, 1, 0, INT32_MAX);
    m.from = (uint64_t)option_integer(usage, "--from", from, 0, 0, INT32_MAX);
    m.count = (uint64_t)option_integer(usage, "--count", count, 200, 1, INT32_MAX);
    m.jobs = (int)option_integer(usage, "--jobs", jobs, 1, 1, 64);
    m.batch = (int)option_integer(usage, "--batch", batch, 16, 1, 256);
    m.shop.seconds = (int)option_integer(usage, "--seconds", seconds, 120, 1, 100000);
    m.tries = (int)option_integer(usage, "--tries", tries, 150, 0, 100000);
    if (!m.shop.level) m.shop.level = "-O1";
    if (targets) m.targets = targets;
    if (found) m.found = found;
    m.replay_words = m.shop.plant ? arena_printf(arena, " --plant '%s'", m.shop.plant) : "";
    m.log = open_or_fail(log, "a");
    m.pairs = arena_alloc(arena, sizeof *m.pairs);
    m.begin = seconds_now();
    find_targets(&m);
    if (files) return replay(&m, files);
    tell_pairs(arena, asked);
    for (int round = 0; round < 1 + probe; round++) {
        if (round) m.probed = pairs_probe(arena, m.pairs, &m.n_probed);
        uint64_t first = m.from + (round ? m.count : 0), some = round ? (uint64_t)m.n_probed : m.count;
        if (dry || print) only_draw(&m, first, some, print);
        else run(&m, first, some);
    }
    if (print) return EXIT_FINE;
    pairs_print(open_or_fail(table, "w"), stdout, m.pairs, probe);
    bool fine = tell_refusals(&m);
    if (!dry) tell_totals(&m);
    for (int i = OUTCOME_WRONG; i < OUTCOME_COUNT; i++) fine = fine && !m.outcomes[i];
    return fine ? EXIT_FINE : EXIT_USER;
}
