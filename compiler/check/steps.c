/* steps.c: runs a batch step by step. The C calls on_step before each step and behind the last one, where the result of
 * the step before can be read from the workspace, whose memory a later step may use again. */
#include "steps.h"

#include <string.h>

static void begin_chunk(Steps *s) {
    const Plan *plan = s->engine->plan;
    int64_t rows = 0, source = 0;
    for (int64_t b = s->first; b < s->end; b++) {
        s->rows_before += engine_rows(s->engine, &s->batch->sequences[b]);
        s->source_before += engine_source_rows(s->engine, &s->batch->sequences[b]);
    }
    s->first = s->end;
    for (; s->end < s->batch->count; s->end++) {
        const Sequence *sequence = &s->batch->sequences[s->end];
        int64_t n = engine_rows(s->engine, sequence), m = engine_source_rows(s->engine, sequence);
        if (rows + n > plan->rows || source + m > plan->source_rows) break;
        rows += n;
        source += m;
    }
}

static void *result_at(const Steps *s, const Buffer *buffer) {
    const DriverCall *call = &s->engine->call;
    int64_t control = s->engine->emitted.entries[ENTRY_FORWARD].control_bytes;
    if (buffer->slot.space == SPACE_WORKSPACE) return (uint8_t *)call->workspace + control + buffer->slot.offset;
    int64_t before = buffer->rows == ROWS_SEQUENCES ? s->first
                     : buffer->rows == ROWS_SOURCE  ? s->source_before
                                                    : s->rows_before;
    return call->outputs[s->engine->plan->graph->outputs[buffer->io].role] + before * buffer->stride;
}

void rows_in_own_order(const Plan *plan, const Step *step, const void *from, const void *order, int64_t rows,
                       int64_t stride, void *to) {
    const int64_t starts = plan->buffers[step->order.buffer].extra / (int64_t)sizeof(int32_t);
    const int32_t *pairs = (const int32_t *)order + starts;
    for (int64_t p = 0; p < rows; p++)
        memcpy((uint8_t *)to + p * stride, (const uint8_t *)from + pairs[2 * p + 1] * stride, (size_t)stride);
}

const void *steps_result(const Steps *s, const Step *step) {
    const Plan *plan = s->engine->plan;
    const Buffer *buffer = &plan->buffers[step->out.buffer];
    const int64_t stride = buffer->stride * (int64_t)dtype_bytes(buffer->slot.layout.dtype);
    void *at = result_at(s, buffer);
    int64_t rows = 0;
    for (int64_t b = s->first; b < s->end; b++) rows += steps_rows_made(s, step, &s->batch->sequences[b]);
    engine_see(s->engine, at, (size_t)(rows * stride));
    if (step->order.buffer == NO_BUFFER) return at;
    const Buffer *by = &plan->buffers[step->order.buffer];
    void *order = result_at(s, by);
    engine_see(s->engine, order, (size_t)(by->extra + 2 * rows * (int64_t)sizeof(int32_t)));
    void *own = arena_alloc(s->arena, (size_t)(rows * stride));
    rows_in_own_order(plan, step, at, order, rows, stride, own);
    return own;
}

int64_t steps_rows_made(const Steps *s, const Step *step, const Sequence *sequence) {
    return steps_rows(s, step->rows, sequence) * step->times;
}

int64_t steps_rows(const Steps *s, RowsKind kind, const Sequence *sequence) {
    switch (kind) {
    case ROWS_CHUNK: return engine_rows(s->engine, sequence);
    case ROWS_SOURCE: return engine_source_rows(s->engine, sequence);
    case ROWS_SEQUENCES: return 1;
    default: return rows_fixed(s->engine->plan, kind);
    }
}

/* Whether the op of a step jumps; others may round at last, as products do. */
static bool jumps(const Step *s) {
    return s->kind == STEP_QUANTIZE || s->kind == STEP_ROUND || s->kind == STEP_CHOOSE ||
           (s->kind == STEP_ATTENTION && s->attention.rounds);
}

/* The result of the op that rounds a tensor, for the result of a product that rounds. */
static int rounded_of(const Graph *g, const Step *s, int tensor) {
    if (s->kind != STEP_GEMM || !s->gemm.rounds)
        return jumps(s) ? s->tensor : NO_TENSOR;
    for (int o = 0; o < g->n_ops; o++)
        if (g->ops[o].kind == OP_round && g->ops[o].inputs[0] == tensor) return g->ops[o].result;
    bug("nothing rounds `%s`", g->tensors[tensor].name);
}

int steps_parts(const Plan *plan, const Step *s, StepPart parts[MOST_STEP_PARTS]) {
    const Graph *g = plan->graph;
    parts[0] = (StepPart){s->tensor, rounded_of(g, s, s->tensor), 0, g->tensors[s->tensor].dims[1].n / s->times};
    if (s->kind != STEP_GEMM || s->gemm.parts == 1) return 1;
    if (s->gemm.parts > MOST_STEP_PARTS) bug("the step `%s` has %d parts", s->name, s->gemm.parts);
    /* The search begins at the first part: earlier layers with the same weights may have multiplied these rows. */
    const int first = g->tensors[s->tensor].op, x = g->ops[first].inputs[0];
    int64_t column = 0;
    int n = 0;
    for (int part = 0; part < s->gemm.parts; part++) {
        const Packed *p = &plan->program->packed[s->gemm.weight + part];
        for (int o = first; o < g->n_ops; o++) {
            const Op *op = &g->ops[o];
            if (op->kind != OP_linear || op->inputs[0] != x || g->tensors[op->inputs[1]].weight != p->weight) continue;
            parts[n++] = (StepPart){op->result, rounded_of(g, s, op->result), column,
                                    g->tensors[op->result].dims[1].n};
            break;
        }
        column += round_up(packed_rows(p), PANEL);
    }
    return n;
}

static void at_step(void *watcher, int step) {
    Steps *s = watcher;
    const Plan *plan = s->engine->plan;
    if (step == 0) begin_chunk(s);
    else s->look(s, &plan->steps[s->step]);
    s->step = step < plan->n_steps ? step : 0;
}

static void one_by_one(void *pool, int count, void (*task)(void *with, int index), void *with) {
    (void)pool;
    for (int i = 0; i < count; i++) task(with, i);
}

DriverCall steps_watch(Engine *engine, const char *target, void (*at)(void *watcher, int step), void *watcher) {
    enum { THREADS = 2 }; /* one thread may have steps of its own for one sequence */
    const DriverCall before = engine->call;
    engine->call.on_step = at;
    engine->call.watcher = watcher;
    check_set(engine, target, THREADS, NULL, one_by_one);
    return before;
}

void steps_unwatch(Engine *engine, const char *target, const DriverCall *before) {
    engine->call.on_step = before->on_step;
    engine->call.watcher = before->watcher;
    check_set(engine, target, before->threads, before->pool, before->parallel_for);
}

void steps_run(Steps *s, Arena *arena, const char *target, GuardSide side) {
    const DriverCall before = steps_watch(s->engine, target, at_step, s);
    s->arena = arena;
    check_call(arena, s->engine, s->batch, ALL_WANTED, side, &s->run);
    steps_unwatch(s->engine, target, &before);
}

/* ---------------------------------------------------------------- quantized rows */

int steps_rounded(const Plan *plan, const Step *step, StepPart parts[MOST_STEP_PARTS], int64_t *stride,
                  int64_t begins[MOST_STEP_PARTS]) {
    if (!jumps(step) && (step->kind != STEP_GEMM || !step->gemm.rounds)) return 0;
    const Buffer *buffer = &plan->buffers[step->out.buffer];
    const int64_t number = (int64_t)dtype_bytes(buffer->slot.layout.dtype);
    const int n = steps_parts(plan, step, parts);
    *stride = buffer->stride * number;
    for (int i = 0; i < n; i++) begins[i] = (step->out.column + parts[i].column) * number;
    return n;
}

typedef struct Keeper {
    Steps steps;
    Arena *arena;
    QuantizedRows **kept; /* [sequences][tensors] */
} Keeper;

static void keep_rows(Steps *s, const Step *step) {
    Keeper *k = (Keeper *)s; /* its first member */
    StepPart parts[MOST_STEP_PARTS];
    int64_t stride, begins[MOST_STEP_PARTS];
    const int n = steps_rounded(s->engine->plan, step, parts, &stride, begins);
    if (!n) return;
    const uint8_t *at = steps_result(s, step);
    for (int64_t b = s->first; b < s->end; b++) {
        int64_t bytes = stride * steps_rows_made(s, step, &s->batch->sequences[b]);
        uint8_t *own = arena_alloc(k->arena, (size_t)bytes);
        memcpy(own, at, (size_t)bytes);
        for (int i = 0; i < n; i++) k->kept[b][parts[i].rounded] = (QuantizedRows){own + begins[i], stride};
        at += bytes;
    }
}

QuantizedRows **steps_quantized(Arena *arena, Engine *engine, const Batch *batch, const char *target, GuardSide side,
                                const char **complaint) {
    Keeper k = {.steps = {.engine = engine, .batch = batch, .look = keep_rows}, .arena = arena};
    k.kept = arena_array(arena, (size_t)batch->count, sizeof *k.kept);
    for (int64_t b = 0; b < batch->count; b++)
        k.kept[b] = arena_array(arena, (size_t)engine->plan->graph->n_tensors, sizeof **k.kept);
    steps_run(&k.steps, arena, target, side);
    *complaint = k.steps.run.complaint;
    return k.kept;
}

const QuantizedRows *quantized_of(Arena *arena, const Graph *graph, const QuantizedRows *rows, const Graph *of) {
    QuantizedRows *out = arena_array(arena, (size_t)graph->n_tensors, sizeof *out);
    for (int o = 0; o < graph->n_ops; o++) {
        if (!op_jumps(&graph->ops[o])) continue;
        int t = graph->ops[o].result, same = 0;
        while (same < of->n_tensors && strcmp(of->tensors[same].name, graph->tensors[t].name) != 0) same++;
        if (same == of->n_tensors || !rows[same].data) bug("the rows of `%s` are not kept", graph->tensors[t].name);
        out[t] = rows[same];
    }
    return out;
}
