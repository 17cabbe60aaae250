/* bench.c: attnc bench times the C on one sequence and measures the machine in the same run. */
#include "commands.h"
#include "peak.h"
#include "profile.h"

#include "../engine/decoder.h"

#include <math.h>

static const char usage[] =
    "attnc bench SPEC [--weights F[,F…]|random:SEED] [--seq N] [--threads N] [--target T] [--cc CC]\n"
    "                 [--json] [--decode] [--profile] [--precision P] [--reproducible]\n" HELP_WEIGHTS
    " (default: random:1)\n" HELP_PRECISION HELP_REPRODUCIBLE
    "  --seq N              rows of the sequence, and of its source or keys (default: 128, or the spec's bound if\n"
    "                       that is smaller)\n"
    "  --threads N          number of threads, 1 to 256 (default: 1)\n" HELP_TARGET HELP_CC
    "  --json               prints one line of JSON, with times in seconds\n"
    "  --decode             times the decoding of --seq N tokens, one by one, instead of whole sequences\n"
    "  --profile            also times each step, beside what the counts of attnc explain predict for it";

/* One sequence with seeded inputs; masks are all ones. */
static Batch *one_sequence(Arena *arena, const Graph *g, const CallRows *rows) {
    Batch *batch = arena_alloc(arena, sizeof *batch);
    batch->count = 1;
    batch->sequences = arena_alloc(arena, sizeof *batch->sequences);
    sequence_lengths(g, batch->sequences, rows->rows, rows->source);
    sequence_fill(arena, g, batch->sequences, &(RandomInputs){.seed = 1, .key = "bench", .all_visible = true});
    return batch;
}

enum { MOST_RUNS = 2000 };

typedef struct Timing {
    double median, least;
    int runs;
} Timing;

/* Times at least 15 runs and 1.5 s, after 0.3 s of runs that warm the caches and raise the clock. `profile` may be
 * NULL. */
static Timing time_forward(Engine *engine, Profile *profile) {
    static double seconds[MOST_RUNS];
    progress_begin("timing");
    for (double begin = seconds_now(); seconds_now() - begin < 0.3;) engine_forward(engine);
    Timing t = {0};
    for (double begin = seconds_now(); t.runs < MOST_RUNS && (t.runs < 15 || seconds_now() - begin < 1.5); t.runs++) {
        progress_tick();
        if (profile) profile_begin(profile);
        double from = seconds_now();
        engine_forward(engine);
        seconds[t.runs] = seconds_now() - from;
        if (profile) profile_end(profile, 1);
    }
    t.median = sort_median(seconds, t.runs);
    t.least = seconds[0];
    return t;
}

/* Times texts of n tokens, one step for each token, from an empty state. */
static Timing time_decode(Decoder *decoder, int64_t n, int64_t vocab, Profile *profile) {
    static double seconds[MOST_RUNS];
    Timing t = {0};
    Arena *own = arena_new();
    float *logits = arena_array(own, (size_t)vocab, sizeof *logits);
    const int slot = 0;
    progress_begin("timing");
    for (double begin = seconds_now(); t.runs < MOST_RUNS && (t.runs < 7 || seconds_now() - begin < 2); t.runs++) {
        decoder_begin(decoder, NULL, 0);
        progress_tick();
        if (profile) profile_begin(profile);
        double from = seconds_now();
        for (int64_t i = 0; i < n; i++) {
            int32_t token = (int32_t)(hash_bytes(0, &i, sizeof i) % (uint64_t)vocab);
            const DecoderRows rows = {.count = 1, .slots = &slot, .inputs = {[IN_tokens] = &token}};
            int status = decoder_append(decoder, &rows, &(DecoderOutputs){.logits = vocab ? logits : NULL});
            if (status) fail("the compiled model says: %s", decoder_text(decoder, status));
        }
        seconds[t.runs] = (seconds_now() - from) / (double)n;
        if (profile) profile_end(profile, n);
    }
    t.median = sort_median(seconds, t.runs);
    t.least = seconds[0];
    arena_free(own);
    return t;
}

/* Ends the report of a call, which --profile continues with its table or its JSON; else `profile` is NULL. */
static void print_profile(Arena *arena, const Profile *profile, double unwatched, bool json) {
    if (json) {
        if (profile) {
            printf(", ");
            profile_json(profile);
        }
        printf("}\n");
    } else if (profile) profile_print(arena, profile, unwatched);
}

/* How the numbers of a text's rows are drawn: as they come, or all integers are the least one and the real numbers are
 * in order. */
typedef enum Drawn { DRAWN_ANY, DRAWN_UP, DRAWN_DOWN, DRAWN_COUNT } Drawn;

/* Sets the numbers of the rows of a text of n tokens. */
static void set_numbers(Arena *arena, const Graph *decode, int64_t n, Drawn drawn, PairInput *numbers) {
    for (int i = 0; i < decode->n_inputs; i++) {
        const GraphInput *input = &decode->inputs[i];
        const InputKind *kind = input->kind;
        if (!role_is_of_rows(kind->role)) continue;
        if (kind->dtype == DTYPE_F32) {
            float *reals = arena_array(arena, (size_t)n, sizeof *reals);
            if (drawn == DRAWN_ANY) draw_reals(1, kind->name, input, n, reals);
            else draw_sorted_reals(1, kind->name, input, n, drawn == DRAWN_DOWN, reals);
            numbers[kind->role].single = reals;
            continue;
        }
        int64_t least, most, *integers = arena_array(arena, (size_t)n, sizeof *integers);
        drawn_range(decode, input, &least, &most);
        for (int64_t row = 0; row < n; row++) integers[row] = least;
        if (drawn == DRAWN_ANY) draw_integers(1, decode, input, n, integers);
        numbers[kind->role].rows = integers;
    }
}

/* Whether no row of the text sees a later one. */
static bool looks_back(Arena *arena, const Graph *decode, int64_t n, const PairInput *numbers) {
    bool *cuts = arena_array(arena, (size_t)n + 1, sizeof *cuts), all = true;
    if (!graph_looks_ahead(decode)) return true;
    graph_cuts(decode, numbers, n, cuts);
    for (int64_t row = 1; row < n; row++) all &= cuts[row];
    return all;
}

/* Gives the decoder numbers of a text of n tokens, whose rows can be appended one by one. */
static void give_numbers(Arena *arena, Decoder *decoder, const Graph *decode, int64_t n) {
    PairInput numbers[MOST_INPUTS] = {{0}};
    bool found = false;
    for (int drawn = 0; drawn < DRAWN_COUNT && !found; drawn++) {
        set_numbers(arena, decode, n, (Drawn)drawn, numbers);
        found = looks_back(arena, decode, n, numbers);
    }
    if (!found) fail("`--decode` appends rows one by one, and rows of this model look ahead");
    for (int role = IN_COUNT; role < MOST_INPUTS; role++) {
        const PairInput *given = &numbers[role];
        const void *data = given->rows ? (const void *)given->rows : (const void *)given->single;
        if (data) decoder_numbers(decoder, (InputRole)role, data, n);
    }
}

static void bench_decode(Arena *arena, Engine *engine, const Weights *weights, int64_t n, bool json, bool profiled) {
    const Module *module = engine->module;
    const Plan *plan = engine->program->entries[ENTRY_DECODE];
    if (module->entries[ENTRY_ENCODE]) fail("`--decode` is for decoders without a source");
    Decoder *decoder = decoder_new(arena, module, weights, engine, 1, GUARD_NONE);
    give_numbers(arena, decoder, plan->graph, n);
    Profile *profile = profiled ? profile_new(arena, plan, MOST_RUNS) : NULL;
    double flops = 0, bytes = 0;
    for (int64_t past = 0; past < n; past++) {
        CallRows rows = {.rows = 1, .past = past};
        if (profile) profile_count(profile, &rows, 1 / (double)n);
        add_cost(plan, &rows, (double)n, &flops, &bytes);
    }
    double read = read_bandwidth();
    Timing t = time_decode(decoder, n, decoder_model(decoder).vocab, NULL);
    if (profile) {
        profile_watch(profile, engine);
        profile->median = time_decode(decoder, n, decoder_model(decoder).vocab, profile).median;
        const Isa *isa = isa_load(arena, engine->call.picked);
        profile->peak = engine->call.threads * peak_flops(isa);
        profile->unit = engine->call.threads * peak_unit(isa, graph_row_types(module->entries[ENTRY_DECODE]).narrowest);
        profile_finish(profile);
    }
    read = fmax(read, read_bandwidth());
    if (profile) profile->read = read;
    progress_end();
    double share = bytes / t.median / read;
    if (json)
        printf("{\"median_s\": %.9g, \"min_s\": %.9g, \"runs\": %d, \"flops\": %.0f, \"bytes\": %.0f, \"gflops\": "
               "%.4f, \"tokens_s\": %.2f, \"read_gb_s\": %.4f, \"threads\": %d, \"target\": \"%s\", \"seq\": %lld",
               t.median, t.least, t.runs, flops, bytes, flops / t.median / 1e9, 1 / t.median, read / 1e9,
               engine->call.threads, engine->call.picked, (long long)n);
    else
        printf(
            "%s, decode of %s from an empty state, %s, %s: %.1f tokens/s (median of %s; best "
            "%.1f)\n%s a token, %s: %.1f %% of the %s that one core reads from memory%s\n",
            module->model->name, counted(arena, n, "token"), counted(arena, engine->call.threads, "thread"),
            engine->call.picked, 1 / t.median, counted(arena, t.runs, "text"), 1 / t.least,
            amount_text(arena, bytes, "B"),
            amount_text(arena, bytes / t.median, "B/s"), 100 * share, amount_text(arena, read, "B/s"),
            share <= 1                   ? ""
            : engine->call.threads == 1 ? " (the weights stay in the caches)"
                                        : " (caches and the other cores give the rest)");
    print_profile(arena, profile, t.median, json);
}

static Profile *profile_forward(Arena *arena, Engine *engine, const CallRows *rows) {
    Profile *profile = profile_new(arena, engine->plan, MOST_RUNS);
    profile_count(profile, rows, 1);
    profile_watch(profile, engine);
    profile->median = time_forward(engine, profile).median;
    profile_finish(profile);
    return profile;
}

void command_bench(Arena *arena, int argc, char **argv) {
    const char *path, *weights_path = NULL, *seq = NULL, *threads_text = NULL, *target = NULL, *cc = NULL,
               *precision = NULL;
    bool json = false, decode = false, profiled = false, reproducible = false;
    const Option options[] = {
        {"--weights", .text = &weights_path}, {"--seq", .text = &seq}, {"--threads", .text = &threads_text},
        {"--target", .text = &target},        {"--cc", .text = &cc},   {"--json", .flag = &json},
        {"--decode", .flag = &decode},        {"--precision", .text = &precision},
        {"--profile", .flag = &profiled},     {"--reproducible", .flag = &reproducible}};
    options_read(arena, argc, argv, usage, options, sizeof options / sizeof *options, &path, 1);
    int threads = (int)option_integer(usage, "--threads", threads_text, 1, 1, 256);
    Compilation c = spec_load(arena, path, option_precision(arena, usage, "--precision", precision), STAGE_REWRITE);
    c.reproducible = reproducible;
    EngineOptions engine_options = {.target = target, .cc = cc, .threads = threads, .load = true};
    Weights *weights = load_weights(&c, weights_path ? weights_path : "random:1", false, false);
    Engine *engine = engine_new(arena, &c, weights, &engine_options);
    Length bound = call_bound(engine->plan);
    int64_t n = option_integer(usage, "--seq", seq, bound.exact || bound.n < 128 ? bound.n : 128, 1, bound.n);
    if (bound.exact && n != bound.n) fail("%s: the spec says `seq = %lld`", path, (long long)bound.n);
    if (decode) {
        bench_decode(arena, engine, weights, n, json, profiled);
        return;
    }
    CallRows rows = call_rows(engine->plan, n);
    engine_bind(arena, engine, one_sequence(arena, c.module->entries[ENTRY_FORWARD], &rows));

    double flops = 0, bytes = 0;
    add_cost(engine->plan, &rows, 1, &flops, &bytes);
    const Isa *isa = isa_load(arena, engine->call.picked);
    const Dtype narrow = graph_row_types(c.module->entries[ENTRY_FORWARD]).narrowest;
    double peak = peak_flops(isa), unit = peak_unit(isa, narrow), read = read_bandwidth();
    Timing t = time_forward(engine, NULL);
    Profile *profile = profiled ? profile_forward(arena, engine, &rows) : NULL;
    peak = fmax(peak, peak_flops(isa));
    unit = fmax(unit, peak_unit(isa, narrow));
    if (profile) {
        profile->peak = peak * threads;
        profile->unit = unit * threads;
        profile->read = read;
    }
    progress_end();
    const double rate = flops / t.median, best = unit > 0 ? unit : peak,
                 share = best > 0 ? rate / (best * threads) : 0;
    if (json) {
        printf("{\"median_s\": %.9g, \"min_s\": %.9g, \"runs\": %d, \"flops\": %.0f, \"bytes\": %.0f, \"gflops\": "
               "%.4f, \"peak_gflops\": %.4f, \"read_gb_s\": %.4f, "
               "\"threads\": %d, \"target\": \"%s\", \"seq\": %lld, \"rows\": %lld, \"source_rows\": %lld",
               t.median, t.least, t.runs, flops, bytes, rate / 1e9, peak / 1e9, read / 1e9, threads,
               engine->call.picked, (long long)n, (long long)rows.rows, (long long)rows.source);
        if (precision) printf(", \"precision\": \"%s\"", precision);
        if (unit > 0) printf(", \"peak_gops\": %.4f", unit / 1e9);
    } else
        printf("%s, %s%s, %s, %s: median %s, best %s of %s\n%s, %s, "
               "%.1f %% of %d x %s measured; %s touched, one core reads %s\n",
               c.model->name, counted(arena, rows.rows, "row"),
               rows.source ? c.model->alone ? arena_printf(arena, " over %s", counted(arena, rows.source, "key"))
                                            : arena_printf(arena, " over %lld of the source", (long long)rows.source)
                           : "",
               counted(arena, threads, "thread"), engine->call.picked,
               duration_text(arena, t.median), duration_text(arena, t.least), counted(arena, t.runs, "run"),
               amount_text(arena, flops, "FLOP"), amount_text(arena, rate, "FLOP/s"), 100 * share, threads,
               amount_text(arena, best, unit > 0 ? "OP/s" : "FLOP/s"), amount_text(arena, bytes, "B"),
               amount_text(arena, read, "B/s"));
    print_profile(arena, profile, t.median, json);
}
