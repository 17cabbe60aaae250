/* first.c: finds the first tensor outside its bound. The C runs every step through the caller's parallel_for, so a
 * function that replaces it can read each result from the workspace before a later step reuses the memory. */
#include "check.h"

#include <string.h>

typedef struct Watch {
    Arena *arena;
    Engine *engine;
    const Weights *weights;
    const Batch *batch;
    Interpretation **wants; /* one for each sequence of the running chunk */
    int step;
    int64_t first, end;     /* the sequences of the chunk */
    int64_t rows_before, source_before; /* rows of the chunks before this one */
    CheckRun run;
    const char *found;
} Watch;

/* A chunk is as many whole sequences as fit the plan's rows and source rows, as in NAME_forward. */
static void begin_chunk(Watch *w) {
    const Plan *plan = w->engine->plan;
    int64_t rows = 0, source = 0;
    for (int64_t b = w->first; b < w->end; b++) {
        w->rows_before += engine_rows(w->engine, &w->batch->sequences[b]);
        w->source_before += engine_source_rows(w->engine, &w->batch->sequences[b]);
    }
    w->step = 0;
    w->first = w->end;
    for (; w->end < w->batch->count; w->end++) {
        const Sequence *s = &w->batch->sequences[w->end];
        int64_t n = engine_rows(w->engine, s), m = engine_source_rows(w->engine, s);
        if (rows + n > plan->rows || source + m > plan->source_rows) break;
        rows += n;
        source += m;
        w->wants[w->end] =
            interpret(w->arena, w->engine->module, plan->graph, w->weights, s->inputs, s->n_inputs, s->symbols);
    }
}

static const float *base_of(const Watch *w, const Buffer *buffer) {
    const DriverCall *call = &w->engine->call;
    int64_t control = w->engine->emitted.entries[ENTRY_FORWARD].control_bytes;
    if (buffer->slot.space == SPACE_WORKSPACE)
        return (const float *)(const void *)((const uint8_t *)call->workspace + control + buffer->slot.offset);
    const float *base = call->outputs[w->engine->plan->graph->outputs[buffer->io].role];
    int64_t before = buffer->rows == ROWS_SEQUENCES ? w->first
                     : buffer->rows == ROWS_SOURCE  ? w->source_before
                                                    : w->rows_before;
    return base + before * buffer->stride;
}

static int64_t rows_of(const Watch *w, RowsKind kind, const Sequence *s) {
    switch (kind) {
    case ROWS_CHUNK: return engine_rows(w->engine, s);
    case ROWS_SOURCE: return engine_source_rows(w->engine, s);
    case ROWS_SEQUENCES: return 1;
    case ROWS_PATCHES: return w->engine->plan->patch_rows;
    }
    return 0;
}

/* Compares the result of a step, or a part of a joined product, for each sequence of the chunk. */
static void observe(Watch *w, const Step *s, int tensor, int64_t column) {
    const Plan *plan = w->engine->plan;
    const Buffer *buffer = &plan->buffers[s->out.buffer];
    const Tensor *t = &plan->graph->tensors[tensor];
    const float *at = base_of(w, buffer) + s->out.column + column;
    for (int64_t b = w->first; b < w->end && !w->found; b++) {
        const Sequence *sequence = &w->batch->sequences[b];
        int64_t rows = rows_of(w, s->rows, sequence);
        const double *want = w->wants[b]->tensors[tensor];
        Difference d = {0};
        if (want) check_compare(&d, at, buffer->stride, want, rows, t->dims[1].n, 0);
        if (d.bad)
            w->found = arena_printf(w->arena,
                                    "%s (step %s, sequence %lld of %lld rows) at [%lld][%lld]: %.9g, the interpreter "
                                    "has %.9g; %lld of %lld elements are off",
                                    t->name, s->name, (long long)b,
                                    (long long)rows_of(w, s->rows == ROWS_SOURCE ? ROWS_SOURCE : ROWS_CHUNK, sequence),
                                    (long long)d.row, (long long)d.column, d.got, d.want, (long long)d.bad,
                                    (long long)d.elements);
        at += rows * buffer->stride;
    }
}

static void observe_parts(Watch *w, const Step *s) {
    const Plan *plan = w->engine->plan;
    const Graph *g = plan->graph;
    if (s->kind != STEP_GEMM || s->gemm.parts == 1) {
        observe(w, s, s->tensor, 0);
        return;
    }
    int x = g->ops[g->tensors[s->tensor].op].inputs[0];
    int64_t column = 0;
    for (int part = 0; part < s->gemm.parts; part++) {
        const Packed *p = &plan->program->packed[s->gemm.weight + part];
        for (int o = 0; o < g->n_ops; o++) {
            const Op *op = &g->ops[o];
            if (op->kind != OP_linear || op->inputs[0] != x || g->tensors[op->inputs[1]].weight != p->weight) continue;
            observe(w, s, op->result, column);
            break;
        }
        column += round_up(p->shape.dims[0], PANEL);
    }
}

static void after_step(void *pool, int count, void (*task)(void *with, int index), void *with) {
    Watch *w = pool;
    const Plan *plan = w->engine->plan;
    for (int i = 0; i < count; i++) task(with, i);
    if (w->found) return;
    const Step *s = &plan->steps[w->step];
    const char *damage = check_damage(w->arena, &w->run);
    if (damage)
        w->found = arena_printf(w->arena, "%s (step %s): %s", plan->graph->tensors[s->tensor].name, s->name, damage);
    else observe_parts(w, s);
    if (++w->step < plan->n_steps) return;
    begin_chunk(w);
}

const char *check_first(Arena *arena, Engine *engine, const Weights *weights, const char *target, const Batch *batch,
                        GuardSide side) {
    Watch w = {.arena = arena, .engine = engine, .weights = weights, .batch = batch};
    w.wants = arena_array(arena, (size_t)batch->count, sizeof *w.wants);
    begin_chunk(&w);
    check_set(engine, target, 2, &w, after_step);
    check_call(arena, engine, batch, ALL_WANTED, side, &w.run);
    if (w.found) return w.found;
    if (w.run.complaint)
        return arena_printf(arena, "%s (step %s): %s",
                            engine->plan->graph->tensors[engine->plan->steps[w.step].tensor].name,
                            engine->plan->steps[w.step].name, w.run.complaint);
    Pieces pieces = check_pieces(arena, engine, batch);
    for (int64_t i = 0; i < pieces.count; i++) {
        const Piece *p = &pieces.list[i];
        const GraphOutput *out = &engine->plan->graph->outputs[p->output];
        Difference d = {0};
        check_compare(&d, w.run.arrays[p->role] + p->offset, p->columns, p->want, p->rows, p->columns, p->spread);
        if (!d.bad) continue;
        return arena_printf(arena,
                            "%s (layer %d, head %lld, sequence %lld) at [%lld][%lld]: %.9g, the interpreter has %.9g",
                            engine->plan->graph->tensors[out->tensor].name, out->layer, (long long)p->head,
                            (long long)p->sequence, (long long)d.row, (long long)d.column, d.got, d.want);
    }
    return NULL;
}
