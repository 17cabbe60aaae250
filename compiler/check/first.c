/* first.c: finds the first tensor outside its bound, step by step. */
#include "steps.h"

#include <string.h>

typedef struct Watch {
    Steps steps;
    Arena *arena;
    Interpretation **wants; /* one for each sequence */
    const char *found;
} Watch;

/* Counts the first number with other bits. */
static void compare_bits(Difference *d, const float *got, int64_t stride, const double *want, int64_t rows,
                         int64_t columns) {
    const int64_t at = exact_difference(got, stride, want, rows, columns);
    d->bad = at >= 0;
    if (!d->bad) return;
    d->row = at / columns, d->column = at % columns;
    d->got = (double)got[d->row * stride + d->column], d->want = want[at];
}

/* Compares the result of a step, or a part of a joined product, for each sequence of the chunk. */
static void observe(Watch *w, const Step *s, int tensor, int64_t column) {
    const Plan *plan = w->steps.engine->plan;
    const Buffer *buffer = &plan->buffers[s->out.buffer];
    const Tensor *t = &plan->graph->tensors[tensor];
    const int64_t columns = t->dims[1].n / s->times;
    const float *at = (const float *)steps_result(&w->steps, s) + s->out.column + column;
    for (int64_t b = w->steps.first; b < w->steps.end && !w->found; b++) {
        const Sequence *sequence = &w->steps.batch->sequences[b];
        int64_t rows = steps_rows_made(&w->steps, s, sequence);
        const double *want = w->wants[b]->tensors[tensor];
        Difference d = {0};
        if (want) check_compare(&d, at, buffer->stride, want, rows, columns, 0);
        if (want && w->steps.engine->program->arithmetic != ARITHMETIC_FREE)
            compare_bits(&d, at, buffer->stride, want, rows, columns);
        if (d.bad)
            w->found = arena_printf(w->arena,
                                    "%s (step %s, sequence %lld of %lld rows) at [%lld][%lld]: %.9g, the interpreter "
                                    "has %.9g; %lld of %lld elements are off",
                                    t->name, s->name, (long long)b,
                                    (long long)steps_rows(&w->steps, s->rows == ROWS_SOURCE ? ROWS_SOURCE : ROWS_CHUNK,
                                                          sequence),
                                    (long long)d.row, (long long)d.column, d.got, d.want, (long long)d.bad,
                                    (long long)d.elements);
        at += rows * buffer->stride;
    }
}

static void observe_parts(Watch *w, const Step *s) {
    StepPart parts[MOST_STEP_PARTS];
    int n = steps_parts(w->steps.engine->plan, s, parts);
    for (int i = 0; i < n; i++)
        observe(w, s, parts[i].rounded != NO_TENSOR ? parts[i].rounded : parts[i].tensor, parts[i].column);
}

static void look(Steps *steps, const Step *s) {
    Watch *w = (Watch *)steps; /* its first member */
    if (w->found) return;
    const char *damage = check_damage(w->arena, &steps->run);
    if (damage)
        w->found = arena_printf(w->arena, "%s (step %s): %s", steps->engine->plan->graph->tensors[s->tensor].name,
                                s->name, damage);
    else if (s->kind != STEP_QUANTIZE && s->kind != STEP_SORT && s->kind != STEP_GATHER) observe_parts(w, s);
}

/* The interpreter's tensors for each sequence, which go on from the rows that the C has quantized. */
static Interpretation **interpret_all(Arena *arena, Engine *engine, const Weights *weights, const char *target,
                                      const Batch *batch, GuardSide side) {
    Interpretation **wants = arena_array(arena, (size_t)batch->count, sizeof(Interpretation *));
    QuantizedRows **rows = NULL;
    const char *complaint;
    if (graph_jumps(engine->plan->graph) && engine->program->arithmetic == ARITHMETIC_FREE)
        rows = steps_quantized(arena, engine, batch, target, side, &complaint);
    for (int64_t b = 0; b < batch->count; b++)
        wants[b] = sequence_interpret(
            arena, engine->module, weights, &batch->sequences[b],
            &(InterpretHow){.rows = rows ? rows[b] : NULL, .arithmetic = engine->program->arithmetic});
    return wants;
}

const char *check_first(Arena *arena, Engine *engine, const Weights *weights, const char *target, const Batch *batch,
                        GuardSide side) {
    Watch w = {.steps = {.engine = engine, .batch = batch, .look = look},
               .arena = arena,
               .wants = interpret_all(arena, engine, weights, target, batch, side)};
    steps_run(&w.steps, arena, target, side);
    if (w.found) return w.found;
    const CheckRun *run = &w.steps.run;
    const Step *last = &engine->plan->steps[w.steps.step];
    if (run->complaint)
        return arena_printf(arena, "%s (step %s): %s", engine->plan->graph->tensors[last->tensor].name, last->name,
                            run->complaint);
    Pieces pieces = batch_pieces(arena, engine->plan->graph, batch);
    for (int64_t i = 0; i < pieces.count; i++) {
        const Piece *p = &pieces.list[i];
        const GraphOutput *out = &engine->plan->graph->outputs[p->output];
        Difference d = {0};
        check_compare(&d, run->arrays[p->role] + p->offset, p->columns, p->want, p->rows, p->columns, p->spread);
        if (!d.bad) continue;
        return arena_printf(arena,
                            "%s (layer %d, head %lld, sequence %lld) at [%lld][%lld]: %.9g, the interpreter has %.9g",
                            engine->plan->graph->tensors[out->tensor].name, out->layer, (long long)p->head,
                            (long long)p->sequence, (long long)d.row, (long long)d.column, d.got, d.want);
    }
    return NULL;
}
