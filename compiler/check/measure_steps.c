/* measure_steps.c: the results of the steps of two models of the same spec, tensor by tensor. Both run for a few
 * sequences at a time, and again for as many steps as memory is kept for. */
#include "measure.h"
#include "steps.h"

#include <math.h>
#include <string.h>

enum { ROWS_AT_ONCE = 1024, KEPT_BYTES = 256 << 20 };

/* The rows of a tensor of the f32 model, those of all sequences one after another. */
typedef struct Kept {
    bool wanted;
    int step; /* the first step that has made them, from which they are copied */
    float *rows;
    int64_t width, filled, room;
} Kept;

/* The sums of a step over the rows so far. */
typedef struct StepSums {
    int n_parts; /* 0: the f32 model has no such tensors */
    StepPart parts[MOST_STEP_PARTS];
    int of_f32[MOST_STEP_PARTS]; /* tensors of the f32 graph */
    int64_t rows, kept_rows;     /* of all sequences, and of those at once */
    double rel;
    bool odd; /* a number of the measured model is not finite */
} StepSums;

typedef struct StepsPair {
    Arena *arena; /* of the kept rows */
    const MeasuredModel *f32, *own;
    const Plan *plan; /* of the measured model */
    StepSums *sums;   /* for each of its steps */
    Kept *kept;       /* for each tensor of the f32 graph */
    int from, to;     /* the steps of this pass */
} StepsPair;

/* ---------------------------------------------------------------- matching */

static int tensor_named(const Graph *g, const char *name) {
    for (int t = 0; t < g->n_tensors; t++)
        if (strcmp(g->tensors[t].name, name) == 0) return t;
    return NO_TENSOR;
}

/* Rows in integers are compared by what is made of them, copies by what they copy, and experts, which may be others in
 * another precision, by the sum of their results. */
static bool is_left_out(const Step *s) {
    return s->kind == STEP_QUANTIZE || s->kind == STEP_COPY || s->kind == STEP_CHOOSE || s->kind == STEP_SORT ||
           s->order.buffer != NO_BUFFER || s->out.buffer == NO_BUFFER;
}

/* Finds the tensors of each step in the plan of the f32 model. */
static void match_steps(StepsPair *p) {
    const Plan *f32 = p->f32->engine->plan;
    bool *made = arena_array(p->arena, (size_t)f32->graph->n_tensors, sizeof *made);
    for (int i = 0; i < f32->n_steps; i++) {
        StepPart parts[MOST_STEP_PARTS];
        if (is_left_out(&f32->steps[i])) continue;
        int n = steps_parts(f32, &f32->steps[i], parts);
        for (int k = 0; k < n; k++) {
            Kept *kept = &p->kept[parts[k].tensor];
            if (!made[parts[k].tensor]) kept->step = i;
            made[parts[k].tensor] = true;
        }
    }
    for (int i = 0; i < p->plan->n_steps; i++) {
        const Step *s = &p->plan->steps[i];
        StepSums *sums = &p->sums[i];
        if (is_left_out(s)) continue;
        sums->n_parts = steps_parts(p->plan, s, sums->parts);
        for (int k = 0; k < sums->n_parts; k++) {
            const char *name = p->plan->graph->tensors[sums->parts[k].tensor].name;
            sums->of_f32[k] = tensor_named(f32->graph, name);
            if (sums->of_f32[k] != NO_TENSOR && made[sums->of_f32[k]]) continue;
            sums->n_parts = 0;
        }
    }
}

/* ---------------------------------------------------------------- rows */

/* Adds rows of a step of the measured model, whose part k of n_parts is at own[k] + row * stride. */
static void add_rows(StepsPair *p, StepSums *s, const float *const *own, int n_parts, int64_t stride, int64_t rows) {
    for (int64_t row = 0; row < rows; row++, s->kept_rows++) {
        double apart = 0, size = 0;
        for (int k = 0; k < n_parts; k++) {
            const Kept *kept = &p->kept[s->of_f32[k]];
            if (s->kept_rows >= kept->filled) bug("a step of the f32 model has fewer rows");
            const float *a = own[k] + row * stride, *b = kept->rows + s->kept_rows * kept->width;
            for (int64_t i = 0; i < s->parts[k].width; i++) {
                const double d = (double)a[i] - b[i];
                apart += d * d;
                size += (double)b[i] * b[i];
                s->odd |= !isfinite(a[i]);
            }
        }
        s->rel += apart == 0 ? 0 : size > 0 ? sqrt(apart / size) : 1;
        s->rows++;
    }
}

static float *keep_room(StepsPair *p, Kept *kept, int64_t width, int64_t rows) {
    kept->width = width;
    if (kept->filled + rows > kept->room) {
        kept->room = 2 * (kept->filled + rows);
        float *larger = arena_array(p->arena, (size_t)(kept->room * width), sizeof *larger);
        if (kept->filled) memcpy(larger, kept->rows, (size_t)(kept->filled * width) * sizeof *larger);
        kept->rows = larger;
    }
    kept->filled += rows;
    return kept->rows + (kept->filled - rows) * width;
}

/* ---------------------------------------------------------------- compiled */

typedef struct Looking {
    Steps steps;
    StepsPair *pair;
} Looking;

static int64_t chunk_rows(const Steps *steps, const Step *s) {
    int64_t rows = 0;
    for (int64_t b = steps->first; b < steps->end; b++)
        rows += steps_rows(steps, s->rows, &steps->batch->sequences[b]);
    return rows;
}

static void keep_look(Steps *steps, const Step *s) {
    StepsPair *p = ((Looking *)steps)->pair; /* steps is its first member */
    const Plan *plan = steps->engine->plan;
    StepPart parts[MOST_STEP_PARTS];
    if (is_left_out(s)) return;
    const int64_t stride = plan->buffers[s->out.buffer].stride, rows = chunk_rows(steps, s);
    int n = steps_parts(plan, s, parts);
    for (int k = 0; k < n; k++) {
        Kept *kept = &p->kept[parts[k].tensor];
        if (!kept->wanted || kept->step != steps->step) continue;
        const float *from = (const float *)steps_result(steps, s) + s->out.column + parts[k].column;
        float *to = keep_room(p, kept, parts[k].width, rows);
        for (int64_t row = 0; row < rows; row++)
            memcpy(to + row * kept->width, from + row * stride, (size_t)kept->width * sizeof *to);
    }
}

static void compare_look(Steps *steps, const Step *s) {
    StepsPair *p = ((Looking *)steps)->pair;
    StepSums *sums = &p->sums[steps->step];
    const int n = sums->n_parts;
    if (steps->step < p->from || steps->step >= p->to || !n) return;
    const float *own[MOST_STEP_PARTS];
    for (int k = 0; k < n; k++)
        own[k] = (const float *)steps_result(steps, s) + s->out.column + sums->parts[k].column;
    add_rows(p, sums, own, n, p->plan->buffers[s->out.buffer].stride, chunk_rows(steps, s));
}

static void run_steps(StepsPair *p, const MeasuredModel *m, const Batch *batch,
                      void (*look)(Steps *steps, const Step *step)) {
    const DriverCall before = m->engine->call;
    Arena *own = arena_new();
    Looking looking = {.steps = {.engine = m->engine, .batch = batch, .look = look}, .pair = p};
    steps_run(&looking.steps, own, before.target, GUARD_NONE);
    if (looking.steps.run.complaint) bug("precision %s, step by step: %s", m->name, looking.steps.run.complaint);
    arena_free(own);
    m->engine->call = before;
    int status = engine_init(m->engine);
    if (status) bug("the compiled model refuses to begin: %s", engine_text(m->engine, status));
}

/* ---------------------------------------------------------------- interpreted */

/* The rows of a tensor as f32. */
static float *narrowed(Arena *arena, const Graph *g, const Interpretation *result, const Sequence *s, int tensor) {
    const int64_t count = sequence_items(s, &g->tensors[tensor]);
    float *out = arena_array(arena, (size_t)count, sizeof *out);
    if (!result->tensors[tensor]) bug("`%s` has no numbers", g->tensors[tensor].name);
    for (int64_t i = 0; i < count; i++) out[i] = (float)result->tensors[tensor][i];
    return out;
}

static void interpret_steps(StepsPair *p, const Sequence *s) {
    const Graph *f32 = p->f32->module->entries[ENTRY_FORWARD], *graph = p->own->module->entries[ENTRY_FORWARD];
    const InterpretHow how = {0};
    const Interpretation *b = sequence_interpret(p->arena, p->f32->module, p->f32->weights, s, &how);
    const Interpretation *a = sequence_interpret(p->arena, p->own->module, p->own->weights, s, &how);
    for (int i = 0; i < p->plan->n_steps; i++) {
        StepSums *sums = &p->sums[i];
        const int n = sums->n_parts;
        const float *own[MOST_STEP_PARTS];
        if (!n) continue;
        for (int k = 0; k < n; k++) {
            const int t = sums->of_f32[k];
            const int64_t width = sums->parts[k].width, rows = sequence_items(s, &f32->tensors[t]) / width;
            p->kept[t] = (Kept){.rows = narrowed(p->arena, f32, b, s, t), .width = width, .filled = rows};
            own[k] = narrowed(p->arena, graph, a, s, sums->parts[k].tensor);
        }
        /* the parts have matrices of their own, which may differ in width */
        const int64_t rows = p->kept[sums->of_f32[0]].filled;
        sums->kept_rows = 0;
        for (int64_t row = 0; row < rows; row++) {
            add_rows(p, sums, own, n, 0, 1);
            for (int k = 0; k < n; k++) own[k] += sums->parts[k].width;
        }
    }
}

/* ---------------------------------------------------------------- all */

/* Sets the steps of the next pass, whose rows of f32 fit in KEPT_BYTES, but at least one. */
static void next_pass(StepsPair *p, int64_t rows) {
    const int n_tensors = p->f32->engine->plan->graph->n_tensors;
    for (int t = 0; t < n_tensors; t++) p->kept[t].wanted = false, p->kept[t].filled = p->kept[t].room = 0;
    int64_t bytes = 0;
    for (p->from = p->to; p->to < p->plan->n_steps; p->to++) {
        StepSums *s = &p->sums[p->to];
        for (int k = 0; k < s->n_parts; k++) bytes += 2 * rows * s->parts[k].width * (int64_t)sizeof(float);
        if (bytes > KEPT_BYTES && p->to > p->from) break;
        s->kept_rows = 0;
        for (int k = 0; k < s->n_parts; k++) p->kept[s->of_f32[k]].wanted = true;
    }
}

/* The rows that a step may have for the sequences of a batch. */
static int64_t most_rows(const StepsPair *p, const Batch *batch) {
    int64_t rows = 0, source = 0;
    for (int64_t b = 0; b < batch->count; b++) {
        rows += engine_rows(p->own->engine, &batch->sequences[b]);
        source += engine_source_rows(p->own->engine, &batch->sequences[b]);
    }
    int64_t most = rows > source ? rows : source;
    for (int i = 0; i < p->plan->n_fixed_rows; i++)
        if (p->plan->fixed_rows[i] * batch->count > most) most = p->plan->fixed_rows[i] * batch->count;
    return most;
}

static void compare_batch(StepsPair *p, const Batch *batch, bool interpreted) {
    const int64_t rows = most_rows(p, batch);
    p->to = 0;
    while (p->to < p->plan->n_steps) {
        Arena *own = p->arena = arena_new();
        if (interpreted) {
            p->to = p->plan->n_steps;
            for (int64_t b = 0; b < batch->count; b++) {
                interpret_steps(p, &batch->sequences[b]);
                arena_clear(own);
            }
        } else {
            next_pass(p, rows);
            run_steps(p, p->f32, batch, keep_look);
            run_steps(p, p->own, batch, compare_look);
        }
        arena_free(own);
    }
}

/* Sets the errors in the order of the model. The rows that a step reads have the error of their writer, and rows in
 * integers that of the rows that they stand for. */
static void take_steps(Arena *arena, const StepsPair *p, Measurement *out, const char **odd) {
    double *of_buffer = arena_array(arena, (size_t)p->plan->n_buffers, sizeof *of_buffer);
    out->steps = arena_array(arena, (size_t)p->plan->n_steps, sizeof *out->steps);
    *odd = NULL;
    for (int i = 0; i < p->plan->n_steps; i++) {
        const Step *s = &p->plan->steps[i];
        const StepSums *sums = &p->sums[i];
        Read reads[MOST_READS];
        double before = 0;
        for (int n = step_reads(s, reads), k = 0; k < n; k++) before = fmax(before, of_buffer[reads[k].operand.buffer]);
        const bool known = sums->n_parts && sums->rows;
        const double rel = known ? sums->rel / (double)sums->rows : before;
        if (s->out.buffer != NO_BUFFER) of_buffer[s->out.buffer] = rel;
        if (!known) continue;
        const char *name = arena_copy(arena, s->name, strlen(s->name));
        if (sums->odd && !*odd) *odd = name;
        const char *layer = s->layer ? arena_copy(arena, s->layer, strlen(s->layer)) : NULL;
        out->steps[out->n_steps++] = (StepError){name, layer, step_kind_name(s->kind), sums->rows, rel, before};
    }
}

void measure_steps(Arena *arena, const Reference *r, const MeasuredModel *m, Measurement *out, const char **odd) {
    Arena *own = arena_new();
    StepsPair p = {.arena = own, .f32 = &r->model, .own = m, .plan = m->engine->plan};
    p.sums = arena_array(own, (size_t)p.plan->n_steps, sizeof *p.sums);
    p.kept = arena_array(own, (size_t)r->model.engine->plan->graph->n_tensors, sizeof *p.kept);
    match_steps(&p);
    progress_begin("comparing the steps of %s with f32", m->name);
    for (int64_t b = 0; b < r->batch->count;) {
        Batch some = {.sequences = &r->batch->sequences[b]};
        int64_t rows = 0;
        progress_at(b, r->batch->count, "sequences");
        do {
            some.count++;
            rows += engine_rows(m->engine, &r->batch->sequences[b]) +
                    engine_source_rows(m->engine, &r->batch->sequences[b]);
        } while (++b < r->batch->count && rows < ROWS_AT_ONCE);
        compare_batch(&p, &some, r->options.interpreted);
    }
    take_steps(arena, &p, out, odd);
    arena_free(own);
}
