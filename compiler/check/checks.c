/* checks.c: runs every case of a pass on one target: compared with the interpreter, with each sequence alone, with
 * outputs left out and in several threads; and appends rows to states. */
#include "steps.h"

#include "../../runtime/attn_runtime.h"

#include <string.h>

void checks_begin(Checks *c, Arena *arena, Engine *engine) {
    c->engine = engine;
    c->packed = engine->call.weights;
    c->weights = guard_new(arena, "the weights", engine->call.weights_bytes);
    c->side = GUARD_NONE;
}

/* `one` is NULL for rows appended to states. */
static void count_failure(Checks *c, const char *target, const Case *one, int threads) {
    if (c->off++) return;
    c->first_case = one;
    c->first_target = target;
    c->first_threads = threads;
    c->first_side = c->side;
}

void checks_fail(Checks *c, const char *target, const Case *one, const char *output, const char *text, int threads) {
    c->trouble(c->with, target, one->name, output, text);
    count_failure(c, target, one, threads);
}

/* Reports one row for each output, with the worst of its sequences. */
static void compare_values(Checks *c, const char *target, const Case *one, const Pieces *pieces) {
    for (int a = 0; a < OUT_COUNT; a++) {
        if (!one->run.arrays[a]) continue;
        Difference d = {0};
        for (int64_t i = 0; i < pieces->count; i++) {
            const Piece *p = &pieces->list[i];
            if (p->role == (OutputRole)a)
                check_compare(&d, one->run.arrays[a] + p->offset, p->columns, p->want, p->rows, p->columns, p->spread);
        }
        c->row(c->with, target, one->name, output_name((OutputRole)a), &d);
        c->compared += d.elements;
        if (d.bad) count_failure(c, target, one, 1);
    }
}

/* Each sequence of a batch must have the same bits when it runs alone. */
static void compare_alone(Checks *c, const char *target, const Case *one, const Pieces *pieces) {
    if (one->batch->count < 2) return;
    int64_t at = 0;
    for (int64_t b = 0; b < one->batch->count; b++) {
        Arena *own = arena_new();
        Batch single = {.sequences = &one->batch->sequences[b], .count = 1};
        CheckRun run;
        check_call(own, c->engine, &single, ALL_WANTED, c->side, &run);
        Pieces alone = batch_pieces(own, c->engine->plan->graph, &single);
        const char *trouble =
            run.complaint ? arena_printf(c->arena, "sequence %lld alone: %s", (long long)b, run.complaint) : NULL;
        const char *output = "";
        for (int64_t i = 0; i < alone.count && !trouble; i++) {
            const Piece *p = &alone.list[i], *q = &pieces->list[at + i];
            if (check_same_bits(run.arrays[p->role] + p->offset, one->run.arrays[q->role] + q->offset,
                                p->rows * p->columns))
                continue;
            output = output_name(p->role);
            trouble = arena_printf(c->arena, "sequence %lld alone gives other bits", (long long)b);
        }
        at += alone.count;
        arena_free(own);
        if (!trouble) continue;
        checks_fail(c, target, one, output, trouble, 1);
        return;
    }
}

static void compare_bits(Checks *c, const char *target, const Case *one, const CheckRun *run, const char *how,
                         int threads) {
    if (run->complaint) {
        checks_fail(c, target, one, "", arena_printf(c->arena, "%s: %s", how, run->complaint), threads);
        return;
    }
    for (int a = 0; a < OUT_COUNT; a++)
        if (run->arrays[a] && !check_same_bits(run->arrays[a], one->run.arrays[a], run->items[a]))
            checks_fail(c, target, one, output_name((OutputRole)a), arena_printf(c->arena, "%s: other bits", how),
                         threads);
}

/* Calls that request no output, and each output alone, must give the same bits. */
static void compare_wanted(Checks *c, const char *target, const Case *one) {
    int outputs = 0;
    for (int a = 0; a < OUT_COUNT; a++) outputs += one->run.arrays[a] != NULL;
    for (int a = -1; a < OUT_COUNT; a++) {
        if (a >= 0 && (outputs < 2 || !one->run.arrays[a])) continue;
        Arena *own = arena_new();
        CheckRun run;
        check_call(own, c->engine, one->batch, a < 0 ? 0 : 1u << a, c->side, &run);
        const char *how =
            a < 0 ? "no output wanted" : arena_printf(c->arena, "only %s wanted", output_name((OutputRole)a));
        compare_bits(c, target, one, &run, how, 1);
        arena_free(own);
    }
}

/* Sets the target, the threads (pool -1: the caller alone) and the memory's side for later calls. */
static void begin_calls(Checks *c, const char *target, int pool, GuardSide side) {
    DriverCall *call = &c->engine->call;
    if (c->side != side && !c->engine->remote)
        call->weights = guard_input(c->weights, c->packed, call->weights_bytes, GUARD_ALIGNMENT, side);
    c->side = side;
    if (pool < 0) check_set(c->engine, target, 1, NULL, NULL);
    else check_set(c->engine, target, c->thread_counts[pool], c->pools[pool], attn_pool_run);
}

/* Runs every case once more, on an engine of the model; the bits must be those of its first call. */
static void repeat_cases(Checks *c, Engine *engine, const char *target, const char *how, int threads) {
    for (int k = 0; k < c->cases->count; k++) {
        Case *one = &c->cases->list[k];
        progress_at(k, c->cases->count, "cases");
        if (one->run.complaint) continue;
        Arena *own = arena_new();
        CheckRun run;
        check_call(own, engine, one->batch, ALL_WANTED, c->side, &run);
        compare_bits(c, target, one, &run, how, threads);
        arena_free(own);
    }
}

/* Interprets a case from the rows that the target has quantized; false where there are none. */
static bool interpret_case(Checks *c, const char *target, Case *one) {
    Arena *own = arena_new();
    const char *complaint;
    QuantizedRows **rows = steps_quantized(own, c->engine, one->batch, target, c->side, &complaint);
    const int64_t wrong = c->quantized.wrong;
    if (complaint) {
        checks_fail(c, target, one, "", arena_printf(c->arena, "step by step: %s", complaint), 1);
    } else {
        case_interpret(c->cases, c->engine, one, rows, &c->quantized);
        if (c->quantized.wrong > wrong)
            checks_fail(c, target, one, "",
                         arena_printf(c->arena, "%lld rounded numbers of `%s` are not near those of the interpreter",
                                      (long long)(c->quantized.wrong - wrong), c->quantized.tensor), 1);
    }
    arena_free(own);
    return !complaint;
}

/* A few numbers lie so near the middle of two integers that both engines may differ; more have another cause. */
static void judge_ties(Checks *c, const char *target) {
    enum { ALWAYS = 3 };
    const QuantizeReport *q = &c->quantized;
    if ((double)q->ties > ALWAYS + q->most_ties)
        checks_fail(c, target, c->cases->list, "",
                     arena_printf(c->arena, "%lld of %lld numbers lie between two others, and are rounded to the one "
                                  "that the interpreter does not give",
                                  (long long)q->ties, (long long)q->numbers), 1);
}

/* Sets the target of the ranks for later calls; returns how they run. */
static const char *begin_ranks(Checks *c, const char *target) {
    const char *ranks = counted(c->arena, c->ranks->module->ranks, "rank");
    check_set(c->ranks, target, 1, NULL, NULL);
    progress_begin("checking %s with %s", target, ranks);
    return ranks;
}

static bool is_exact(const Engine *engine) { return engine->program->arithmetic != ARITHMETIC_FREE; }

static void compare_exactly(Checks *c, const char *target, Case *one) {
    OutputRole output = OUT_COUNT;
    if (!is_exact(c->engine)) return;
    exact_interpret(c->arena, c->engine, c->cases->weights, one);
    const char *trouble = exact_case(c->arena, c->engine, one, &output);
    if (trouble) checks_fail(c, target, one, output_name(output), trouble, 1);
}

void checks_run(Checks *c, const char *target) {
    const bool quantizes = graph_jumps(c->engine->plan->graph);
    c->quantized = (QuantizeReport){0};
    begin_calls(c, target, -1, GUARD_BEHIND);
    progress_begin("checking %s", target);
    for (int k = 0; k < c->cases->count; k++) {
        Case *one = &c->cases->list[k];
        progress_at(k, c->cases->count, "cases");
        check_call(c->arena, c->engine, one->batch, ALL_WANTED, c->side, &one->run);
        if (one->run.complaint) {
            checks_fail(c, target, one, "", one->run.complaint, 1);
            continue;
        }
        if (quantizes && !interpret_case(c, target, one)) continue;
        Pieces pieces = batch_pieces(c->arena, c->engine->plan->graph, one->batch);
        for (int a = 0; a < OUT_COUNT && c->bits; a++)
            if (one->run.arrays[a]) *c->bits = check_bits(*c->bits, one->run.arrays[a], one->run.items[a]);
        compare_values(c, target, one, &pieces);
        compare_exactly(c, target, one);
        compare_alone(c, target, one, &pieces);
        compare_wanted(c, target, one);
    }
    judge_ties(c, target);
    if (!c->engine->remote) { /* a remote program has its memory elsewhere */
        begin_calls(c, target, -1, GUARD_IN_FRONT);
        repeat_cases(c, c->engine, target, "in memory that begins a page", 1);
    }
    for (int t = 0; t < c->n_thread_counts && !c->off; t++) { /* a crash in a pool ends the process */
        begin_calls(c, target, t, t ? GUARD_IN_FRONT : GUARD_SHIFTED);
        const char *threads = counted(c->arena, c->thread_counts[t], "thread");
        progress_begin("checking %s in %s", target, threads);
        repeat_cases(c, c->engine, target, threads, c->thread_counts[t]);
    }
    if (c->ranks && !c->off) {
        const char *ranks = begin_ranks(c, target);
        repeat_cases(c, c->ranks, target, ranks, 1);
    }
}

/* ---------------------------------------------------------------- states */

static void states_row(Checks *c, const char *target, const char *name, OutputRole output, const Difference *d,
                       int threads) {
    if (!d->elements) return;
    c->row(c->with, target, name, output_name(output), d);
    c->compared += d->elements;
    if (d->bad) count_failure(c, target, NULL, threads);
}

/* Appends the text to the states of all ranks, whose bits must be those of one process. */
static void states_of_ranks(Checks *c, Arena *own, const char *target, DecodeBits *bits) {
    Difference hidden = {0}, logits = {0};
    const char *ranks = begin_ranks(c, target);
    const char *trouble = check_decode(c->decode, own, c->ranks, GUARD_BEHIND, bits, &hidden, &logits);
    if (!trouble) return;
    c->trouble(c->with, target, "decode", "", arena_printf(c->arena, "%s: %s", ranks, trouble));
    count_failure(c, target, NULL, 1);
}

/* Appends a text to states in many ways, with each number of threads. */
void checks_states(Checks *c, const char *target) {
    Arena *own = arena_new();
    DecodeBits bits = {0};
    for (int t = -1; t < c->n_thread_counts && !c->off; t++) {
        int threads = t < 0 ? 1 : c->thread_counts[t];
        Difference hidden = {0}, logits = {0};
        begin_calls(c, target, t, t < 0 ? GUARD_BEHIND : t ? GUARD_IN_FRONT : GUARD_SHIFTED);
        progress_begin("checking states, %s in %s", target, counted(c->arena, threads, "thread"));
        const char *trouble = check_decode(c->decode, own, c->engine, c->side, &bits, &hidden, &logits);
        if (t < 0 && c->bits && !trouble) *c->bits = check_decode_bits(c->decode, *c->bits, &bits);
        if (t < 0 || hidden.bad) states_row(c, target, "decode", OUT_hidden, &hidden, threads);
        if (t < 0 || logits.bad) states_row(c, target, "decode", OUT_logits, &logits, threads);
        if (!trouble) continue;
        c->trouble(c->with, target, "decode", "",
                   arena_printf(c->arena, "%s: %s", counted(c->arena, threads, "thread"), trouble));
        count_failure(c, target, NULL, threads);
    }
    if (c->ranks && !c->off) states_of_ranks(c, own, target, &bits);
    arena_free(own);
}

/* Compares the attention maps of the same text. */
void checks_state_maps(Checks *c, const char *target) {
    Arena *own = arena_new();
    Difference self = {0}, cross = {0};
    begin_calls(c, target, -1, GUARD_BEHIND);
    progress_begin("checking the maps of states, %s", target);
    const char *trouble = check_decode_maps(c->decode, own, c->engine, c->side, &self, &cross);
    states_row(c, target, "maps-decode", OUT_attention, &self, 1);
    states_row(c, target, "maps-decode", OUT_cross_attention, &cross, 1);
    if (trouble) {
        c->trouble(c->with, target, "maps-decode", "", trouble);
        count_failure(c, target, NULL, 1);
    }
    arena_free(own);
}
