/* measure.c: runs the f32 model and models of other precisions on the same inputs, and times their calls. */
#include "measure.h"

#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- weights */

/* The weights of the reference as the types of another table represent them. */
static Weights *weights_in(Arena *arena, const WeightTable *table, const Weights *from, const char *precision) {
    Weights *weights = weights_new(arena, table);
    progress_begin("rounding weights to %s", precision);
    for (size_t i = 0; i < table->count; i++) {
        progress_at((int64_t)i, (int64_t)table->count, "tensors");
        const WeightSpec *spec = &table->specs[i], *own = weight_spec_find(from->table, spec->name);
        if (!own || !shape_equal(own->shape, spec->shape)) bug("the f32 model has no `%s`", spec->name);
        const float *numbers = from->data[own - from->table->specs];
        int64_t count = 0;
        shape_elements(spec->shape, &count);
        for (int64_t k = 0; k < count && dtype_has_scales(spec->type.dtype); k++)
            if (!isfinite(numbers[k]))
                fail("precision %s: number %lld of `%s` is %s, and integers have no such number", precision,
                     (long long)k, spec->name, isnan(numbers[k]) ? "NaN" : "infinite");
        weights->data[i] = numbers;
    }
    weights_round(arena, weights);
    return weights;
}

/* ---------------------------------------------------------------- running */

/* The widest target of this machine for the model. */
static const char *best_target(Arena *arena, const Graph *graph) {
    int n;
    const char *const *here = targets_here(arena, graph_row_types(graph), &n), *best = NULL;
    for (int t = 0; t < n; t++)
        if (machine_has(here[t], false)) best = here[t];
    return best;
}

/* The interpreter's outputs as batch_pieces lays them out. */
static void interpret_outputs(Arena *arena, MeasuredModel *m, const Batch *batch) {
    Batch own = *batch;
    own.sequences = arena_array(arena, (size_t)batch->count, sizeof *own.sequences);
    memcpy(own.sequences, batch->sequences, (size_t)batch->count * sizeof *own.sequences);
    double begin = seconds_now();
    batch_interpret(arena, m->module, m->weights, ARITHMETIC_FREE, &own);
    m->seconds = arena_grow(arena, m->seconds, m->n_seconds, &m->room_seconds, sizeof *m->seconds);
    m->seconds[m->n_seconds++] = seconds_now() - begin;
    Pieces pieces = batch_pieces(arena, m->engine->plan->graph, &own);
    int64_t items[OUT_COUNT] = {0};
    for (int64_t i = 0; i < pieces.count; i++)
        items[pieces.list[i].role] += pieces.list[i].rows * pieces.list[i].columns;
    for (int a = 0; a < OUT_COUNT; a++)
        if (items[a]) m->outputs[a] = arena_array(arena, (size_t)items[a], sizeof(float));
    for (int64_t i = 0; i < pieces.count; i++) {
        const Piece *p = &pieces.list[i];
        for (int64_t k = 0; k < p->rows * p->columns; k++) m->outputs[p->role][p->offset + k] = (float)p->want[k];
    }
}

static void run_model(Arena *arena, MeasuredModel *m, const Compilation *spec, const Batch *batch,
                      const MeasureOptions *how) {
    EngineOptions options = {.target = how->target, .cc = how->cc, .threads = how->threads, .or_interp = true};
    m->module = spec->module;
    if (!options.target || strcmp(options.target, "native") == 0)
        options.target = best_target(arena, spec->module->entries[ENTRY_FORWARD]);
    m->engine = engine_write(arena, spec, &options);
    if (how->interpreted) {
        interpret_outputs(arena, m, batch);
        return;
    }
    engines_compile(arena, &m->engine, 1, &options);
    engine_load(arena, m->engine, m->weights, &options);
    progress_begin("running %s in %s", m->module->model->name, m->name);
    engine_bind(arena, m->engine, batch);
    engine_forward(m->engine);
    memcpy(m->outputs, m->engine->call.outputs, sizeof m->outputs);
}

/* ---------------------------------------------------------------- times */

static void time_calls(Arena *arena, MeasuredModel *m) {
    enum { MOST = 200 };
    const double begin = seconds_now();
    for (int n = 0; n < MOST && (n == 0 || seconds_now() - begin < 0.1); n++) {
        const double from = seconds_now();
        engine_forward(m->engine);
        m->seconds = arena_grow(arena, m->seconds, m->n_seconds, &m->room_seconds, sizeof *m->seconds);
        m->seconds[m->n_seconds++] = seconds_now() - from;
    }
}

/* Times both models in turn, at least three times and 1.5 s, so that what slows the machine meets both. */
static void time_both(Arena *arena, Reference *r, MeasuredModel *m) {
    Arena *own = arena_new();
    engine_bind(own, r->model.engine, r->batch);
    engine_bind(own, m->engine, r->batch);
    progress_begin("timing %s beside f32", m->name);
    engine_forward(r->model.engine);
    engine_forward(m->engine);
    const double begin = seconds_now();
    for (int round = 0; round < 3 || seconds_now() - begin < 1.5; round++) {
        progress_tick();
        time_calls(r->arena, &r->model);
        time_calls(arena, m);
    }
    arena_free(own);
}

static void set_sizes(Arena *arena, const Reference *r, const MeasuredModel *m, Measurement *out) {
    out->precision = m->name;
    out->weights_bytes = packed_file_bytes(m->engine->program);
    out->workspace_bytes = (int64_t)engine_workspace(m->engine, ENTRY_FORWARD, r->options.threads);
    const char *target = r->options.interpreted ? NULL : m->engine->call.picked;
    out->target = target ? arena_copy(arena, target, strlen(target)) : NULL;
    out->median_s = m->n_seconds ? sort_median(m->seconds, m->n_seconds) : 0;
}

/* ---------------------------------------------------------------- measuring */

/* Fails where an output of the model holds a number that is not finite. */
static void refuse_not_finite(const Reference *r, const MeasuredModel *m) {
    OutputRole role = measure_not_finite(m, r->batch);
    if (role == OUT_COUNT) return;
    Arena *own = arena_new();
    Measurement scratch = {0};
    const char *step = NULL;
    measure_steps(own, r, m, &scratch, &step);
    fail("precision %s: the output `%s` holds NaN or infinity%s%s%s", m->name, output_name(role),
         step ? ", and so does first of all steps `" : "", step ? step : "", step ? "`" : "");
}

static void refuse_constant(const Reference *r, const MeasuredModel *m) {
    for (int a = 0; a < OUT_COUNT; a++) {
        if (!measure_constant(m, r->batch, (OutputRole)a) || measure_constant(&r->model, r->batch, (OutputRole)a))
            continue;
        fail("precision %s: all rows of the output `%s` are equal, and those of f32 differ", m->name,
             output_name((OutputRole)a));
    }
}

Reference *measure_reference(Arena *arena, const Compilation *spec, const Weights *weights, const Batch *batch,
                             const MeasureOptions *options) {
    Reference *r = arena_alloc(arena, sizeof *r);
    *r = (Reference){.arena = arena, .options = *options, .batch = batch};
    r->model = (MeasuredModel){.name = "f32", .weights = weights};
    run_model(arena, &r->model, spec, batch, options);
    refuse_not_finite(r, &r->model);
    for (int a = 0; a < OUT_COUNT; a++)
        if (measure_constant(&r->model, batch, (OutputRole)a) &&
            check_inputs_differ(spec->module->entries[ENTRY_FORWARD], &batch, 1, a == OUT_encoder_hidden))
            report_note("all rows of the output `%s` are equal in f32, and the inputs differ",
                        output_name((OutputRole)a));
    return r;
}

Measurement *measure(Arena *arena, Reference *r, const Compilation *spec, const char *precision, MeasureHow how) {
    Arena *own = arena_new();
    Measurement *out = arena_alloc(arena, sizeof *out);
    MeasuredModel m = {.name = precision};
    m.weights = weights_in(own, &spec->module->weights, r->model.weights, precision);
    run_model(own, &m, spec, r->batch, &r->options);
    refuse_not_finite(r, &m);
    refuse_constant(r, &m);
    measure_outputs(r, &m, out);
    measure_logits(r, &m, &out->logits);
    if (how.times && !r->options.interpreted) time_both(own, r, &m);
    const char *odd = NULL;
    if (how.steps) measure_steps(arena, r, &m, out, &odd);
    if (odd) fail("precision %s: the step `%s` holds NaN or infinity", precision, odd);
    set_sizes(arena, r, &m, out);
    progress_end();
    arena_free(own);
    return out;
}

Measurement *measure_f32(Arena *arena, const Reference *r) {
    Measurement *out = arena_alloc(arena, sizeof *out);
    set_sizes(arena, r, &r->model, out);
    return out;
}
