/* cases.c: the batches that check runs, with every kind of length, source, mask and prefix that a model takes. Each is
 * interpreted once. */
#include "steps.h"

#include <string.h>

typedef struct CaseRows {
    int64_t rows, source;
} CaseRows;

/* The making of the cases for one pass, whose module is the engine's. */
typedef struct Maker {
    Cases *cases;
    const Engine *engine;
    Length seq, source;
    bool maps;
} Maker;

/* ---------------------------------------------------------------- making a case */

/* Keeps the interpreter's outputs and frees its other tensors. `rows` are those that C has quantized, or NULL. */
static void interpret_sequence(const Cases *c, Sequence *s, const QuantizedRows *rows, QuantizeReport *report) {
    Arena *own = arena_new();
    const Graph *g = c->reference->entries[ENTRY_FORWARD];
    const bool waits = rows && c->rounded.runs; /* the report, until it is known how far rounding moves the rows */
    const Interpretation *result = sequence_interpret(
        own, c->reference, c->weights, s, &(InterpretHow){.rows = rows, .report = waits ? NULL : report});
    s->outputs = outputs_copy(c->arena, result);
    double *spreads = waits ? arena_array(own, (size_t)g->n_tensors, sizeof *spreads) : NULL;
    check_spread(c->reference, c->weights, s, rows, c->rounded, result, s->outputs, spreads);
    if (waits)
        sequence_interpret(own, c->reference, c->weights, s,
                           &(InterpretHow){.rows = rows, .report = report, .spreads = spreads});
    arena_free(own);
}

/* Interprets each case once, with the outputs of both passes. */
static void interpret_known(Cases *c) {
    const char *what = "interpreting";
    for (int k = 0; k < c->n_known; k++)
        for (int64_t b = 0; b < c->known[k].batch->count; b++) {
            Sequence *s = &c->known[k].batch->sequences[b];
            if (s->outputs) continue;
            if (what) progress_begin("%s", what);
            what = NULL;
            progress_at(k, c->n_known, "cases");
            interpret_sequence(c, s, NULL, NULL);
        }
}

/* Inputs are seeded by the case and the sequence, so that they are the same when a case runs alone. */
static Batch *draw_batch(Arena *arena, const Cases *c, const char *name, const CaseRows *rows, int64_t count,
                         RandomInputs how) {
    Batch *batch = arena_alloc(arena, sizeof *batch);
    batch->count = count;
    batch->sequences = arena_array(arena, (size_t)count, sizeof *batch->sequences);
    how.seed = c->seed;
    how.key = name;
    how.alter = c->inputs.alter;
    how.with = c->inputs.with;
    for (how.index = 0; how.index < count; how.index++) {
        Sequence *s = &batch->sequences[how.index];
        sequence_lengths(c->reference->entries[ENTRY_FORWARD], s, rows[how.index].rows, rows[how.index].source);
        sequence_fill(arena, c->reference->entries[ENTRY_FORWARD], s, &how);
    }
    return batch;
}

static const Batch *known_batch(Cases *c, const char *name, const CaseRows *rows, int64_t count, RandomInputs how) {
    for (int k = 0; k < c->n_known; k++)
        if (strcmp(c->known[k].name, name) == 0) return c->known[k].batch;
    if (c->n_known == MOST_CASES) bug("more cases than there is room for");
    Case *one = &c->known[c->n_known++];
    *one = (Case){.name = name, .batch = draw_batch(c->arena, c, name, rows, count, how)};
    return one->batch;
}

static OutputArray *outputs_of_pass(const Cases *c, const Engine *engine, const OutputArray *all) {
    const Graph *g = engine->plan->graph;
    OutputArray *outputs = arena_array(c->arena, (size_t)g->n_outputs, sizeof *outputs);
    for (int o = 0; o < g->n_outputs; o++)
        outputs[o] = all[check_same_output(c->reference->entries[ENTRY_FORWARD], g, o)];
    return outputs;
}

void case_interpret(Cases *c, const Engine *engine, Case *one, QuantizedRows *const *rows, QuantizeReport *report) {
    for (int64_t b = 0; b < one->batch->count; b++) {
        Sequence whole = one->known->sequences[b];
        const QuantizedRows *own =
            quantized_of(c->arena, c->reference->entries[ENTRY_FORWARD], rows[b], engine->plan->graph);
        interpret_sequence(c, &whole, own, report);
        one->batch->sequences[b].outputs = outputs_of_pass(c, engine, whole.outputs);
    }
}

static void take_outputs(const Maker *m) {
    Cases *c = m->cases;
    if (graph_jumps(c->reference->entries[ENTRY_FORWARD])) return; /* case_interpret follows */
    interpret_known(c);
    for (int k = 0; k < c->count; k++)
        for (int64_t b = 0; b < c->list[k].batch->count; b++)
            c->list[k].batch->sequences[b].outputs =
                outputs_of_pass(c, m->engine, c->list[k].known->sequences[b].outputs);
}

static void add_case(Maker *m, const char *name, const CaseRows *rows, int64_t count, RandomInputs how) {
    Cases *c = m->cases;
    const char *shown = m->maps ? arena_printf(c->arena, "maps-%s", name) : name;
    if (c->only && strcmp(c->only, shown) != 0) return;
    for (int k = 0; k < c->count; k++)
        if (strcmp(c->list[k].name, shown) == 0) return;
    if (c->count == MOST_CASES) bug("more cases than there is room for");
    const Batch *known = known_batch(c, name, rows, count, how);
    Case *one = &c->list[c->count++];
    *one = (Case){.name = shown, .known = known, .batch = arena_alloc(c->arena, sizeof *one->batch)};
    one->batch->count = known->count;
    one->batch->sequences = arena_array(c->arena, (size_t)known->count, sizeof *one->batch->sequences);
    memcpy(one->batch->sequences, known->sequences, (size_t)known->count * sizeof *known->sequences);
}

/* ---------------------------------------------------------------- lengths */

/* The rows of the source for a sequence of `rows` rows: one, the bound or an odd number, and different from `rows` when
 * the bound allows. Full-size models get short sources unless lengths were requested. */
static int64_t source_of(const Maker *m, int64_t rows) {
    Length source = m->source;
    if (source.exact || !source.n) return source.n;
    const int64_t all[] = {source.n, source.n - 1, 17, 1}, few[] = {5, 33, 5, 1};
    const int64_t *choices = m->cases->small || m->cases->lengths ? all : few;
    for (int64_t k = rows; k < rows + 4; k++) {
        int64_t n = choices[k % 4];
        if (n >= 1 && n <= source.n && n != rows) return n;
    }
    return source.n;
}

static CaseRows rows_and_source(const Maker *m, int64_t rows) { return (CaseRows){rows, source_of(m, rows)}; }

static void add_length(Maker *m, int64_t n) {
    if (n < 1 || n > m->seq.n) return;
    CaseRows one = rows_and_source(m, n);
    add_case(m, arena_printf(m->cases->arena, "length-%lld", (long long)n), &one, 1, (RandomInputs){0});
}

/* The rows of cases that do not test lengths. */
static int64_t usual_rows(const Maker *m) { return m->seq.exact || m->seq.n < 17 ? m->seq.n : 17; }

static void add_source(Maker *m, int64_t n) {
    if (m->source.exact || n < 1 || n > m->source.n) return;
    CaseRows one = {usual_rows(m), n};
    add_case(m, arena_printf(m->cases->arena, "source-%lld", (long long)n), &one, 1, (RandomInputs){0});
}

/* Adds a batch of random lengths: at least `count` sequences, and more than `rows` rows in all. */
static void add_ragged(Maker *m, const char *name, int64_t count, int64_t rows) {
    const Length own = m->seq, source = m->source;
    int64_t room = count + rows + 1, total = 0, n = 0;
    CaseRows *each = arena_array(m->cases->arena, (size_t)room, sizeof *each);
    uint64_t state = hash_bytes(m->cases->seed + 1, name, strlen(name));
    while (n < count || total <= rows) {
        state = hash_bytes(state, &n, sizeof n);
        each[n].rows = own.exact ? own.n : 1 + (int64_t)((state >> 17) % (uint64_t)own.n);
        each[n].source = source.exact || !source.n ? source.n : 1 + (int64_t)((state >> 37) % (uint64_t)source.n);
        total += each[n++].rows;
    }
    add_case(m, name, each, n, (RandomInputs){0});
}

static void add_given_lengths(Maker *m) {
    const Cases *c = m->cases;
    for (int i = 0; i < c->n_lengths; i++) {
        int64_t rows = c->lengths[i];
        if (rows > m->seq.n || (m->seq.exact && rows < m->seq.n))
            fail("%s: a sequence has %s %s, not %lld", c->path, m->seq.exact ? "exactly" : "at most",
                 counted(c->arena, m->seq.n, "row"), (long long)rows);
        add_length(m, rows);
    }
}

static void add_lengths(Maker *m) {
    int64_t bound = m->seq.n;
    const int64_t small[] = {1, 2, 15, 16, 17, 31, 33, bound - 1, bound}, full[] = {1, 17 < bound ? 17 : bound};
    if (m->seq.exact) add_length(m, bound);
    else if (m->cases->small)
        for (int i = 0; i < 9; i++) add_length(m, small[i]);
    else
        for (int i = 0; i < 2; i++) add_length(m, full[i]);
    const int64_t sources[] = {1, 2, 16, m->source.n};
    for (int i = 0; i < 4 && m->cases->small; i++) add_source(m, sources[i]);
    if (!m->cases->small && m->seq.exact) { /* only the source's length can differ */
        add_source(m, 1);
        add_source(m, 17 < m->source.n ? 17 : m->source.n);
    }
}

/* ---------------------------------------------------------------- inputs of their own */

static void add_inputs(Maker *m) {
    const Graph *g = m->engine->plan->graph;
    CaseRows one = rows_and_source(m, usual_rows(m));
    const struct { const char *name; int64_t prefix;
    } prefixes[] = {{"prefix-none", 0}, {"prefix-1", 1}, {"prefix-half", (one.rows + 1) / 2}, {"prefix-all", one.rows}};
    for (int i = 0; i < g->n_inputs; i++) {
        if (g->inputs[i].optional) add_case(m, "required-inputs", &one, 1, (RandomInputs){.only_required = true});
        if (g->inputs[i].kind->role == IN_mask)
            add_case(m, "all-visible", &one, 1, (RandomInputs){.all_visible = true});
        for (int p = 0; p < 4 && g->inputs[i].kind->role == IN_prefix_length; p++)
            add_case(m, prefixes[p].name, &one, 1, (RandomInputs){.has_prefix = true, .prefix = prefixes[p].prefix});
    }
}

static void add_batches(Maker *m) {
    if (m->engine->program->unroll_full) return; /* one sequence a call */
    int64_t usual = usual_rows(m), least = m->seq.exact ? m->seq.n : 1;
    if (!m->cases->small) {
        int64_t one = m->source.exact ? m->source.n : m->source.n > 0, some = m->source.n < 17 ? m->source.n : 17;
        const CaseRows few[] = {rows_and_source(m, usual), {least, one}, {usual, m->source.exact ? one : some}};
        add_case(m, "batch-1", few, m->seq.exact ? 2 : 3, (RandomInputs){0});
        return;
    }
    add_ragged(m, "batch-1", 2, 0);
    add_ragged(m, "batch-2", 3, 0);
    add_ragged(m, "batch-3", 7, 0);
    if (!m->cases->brief) add_ragged(m, "batch-chunks", 3, 2 * m->engine->plan->rows);
}

void cases_make(Cases *cases, const Engine *engine, bool maps) {
    Maker m = {cases, engine, engine->plan->seq, engine->plan->source_seq, maps};
    cases->count = 0;
    if (cases->lengths) {
        add_given_lengths(&m);
    } else {
        add_lengths(&m);
        add_inputs(&m);
        add_batches(&m);
    }
    take_outputs(&m);
}

static int64_t rows_or(Length length, int64_t rows) {
    return length.exact || !length.n || rows > length.n ? length.n : rows;
}

Batch *case_of_rows(Arena *arena, const Cases *cases, const Engine *engine, const char *name, int64_t rows,
                    int64_t source) {
    const CaseRows one = {rows_or(engine->plan->seq, rows), rows_or(engine->plan->source_seq, source)};
    return draw_batch(arena, cases, name, &one, 1, (RandomInputs){0});
}
