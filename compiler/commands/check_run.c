/* check_run.c: one guarded call of generated C, and how its numbers compare with the interpreter's. */
#include "check.h"

#include "../../runtime/attn_runtime.h"

#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- where numbers stand */

Pieces check_pieces(Arena *arena, const Engine *engine, const Batch *batch) {
    const Graph *g = engine->plan->graph;
    int64_t most = 0, at[CALL_OUTPUTS] = {0};
    for (int o = 0; o < g->n_outputs; o++) most += g->outputs[o].layer >= 0 ? g->outputs[o].n_heads : 1;
    Pieces pieces = {arena_array(arena, (size_t)(most * batch->count), sizeof(Piece)), 0};
    for (int64_t b = 0; b < batch->count; b++) {
        const Sequence *s = &batch->sequences[b];
        for (int o = 0; o < g->n_outputs; o++) {
            const GraphOutput *out = &g->outputs[o];
            const Dim *dims = g->tensors[out->tensor].dims;
            int array = call_output(out->name);
            bool map = out->layer >= 0; /* [heads][n][m] */
            for (int64_t h = 0; h < (map ? out->n_heads : 1); h++) {
                Piece *p = &pieces.list[pieces.count++];
                *p = (Piece){.array = array,
                             .output = o,
                             .sequence = b,
                             .head = map ? out->heads[h] : -1,
                             .offset = at[array],
                             .rows = sequence_extent(s, dims[map]),
                             .columns = sequence_extent(s, dims[map + 1])};
                p->spread = s->outputs ? s->outputs[o].spread : 0;
                p->want = s->outputs ? s->outputs[o].data + (map ? p->head * p->rows * p->columns : 0) : NULL;
                at[array] += p->rows * p->columns;
            }
        }
    }
    return pieces;
}

/* ---------------------------------------------------------------- comparing */

/* f32 numbers between a and b. */
static int64_t ulps_between(float a, float b) {
    int32_t i, j;
    memcpy(&i, &a, sizeof i);
    memcpy(&j, &b, sizeof j);
    int64_t x = i < 0 ? (int64_t)INT32_MIN - i : i, y = j < 0 ? (int64_t)INT32_MIN - j : j;
    return x > y ? x - y : y - x;
}

static double largest_of(const double *numbers, int64_t count) {
    double largest = 0;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(numbers[i]) && fabs(numbers[i]) > largest) largest = fabs(numbers[i]);
    return largest;
}

/* Of two results of one number. */
static double apart(double a, double b) {
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b) ? 0 : INFINITY;
    return a == b ? 0 : fabs(a - b);
}

static bool one_bits(float a, float b) {
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
    return a == b && signbit(a) == signbit(b);
}

bool check_same_bits(const float *a, const float *b, int64_t count) {
    int64_t i = 0;
    while (i < count && one_bits(a[i], b[i])) i++;
    return i == count;
}

void check_spread(const Module *module, const Graph *graph, const Weights *weights, const Sequence *s,
                  Rounded how, OutputArray *outputs) {
    for (int run = 1; run <= how.runs; run++) {
        Arena *own = arena_new();
        const Interpretation *rounded =
            interpret_rounded(own, module, graph, weights, s->inputs, s->n_inputs, s->symbols, (uint64_t)run,
                              how.steps);
        for (int o = 0; o < graph->n_outputs; o++) {
            int64_t count = 0;
            shape_elements(outputs[o].shape, &count);
            for (int64_t i = 0; i < count; i++)
                outputs[o].spread =
                    fmax(outputs[o].spread, apart(rounded->outputs[o].data[i], outputs[o].data[i]) / how.steps);
        }
        arena_free(own);
    }
}

double check_spread_share(const OutputArray *output) {
    int64_t count = 0;
    shape_elements(output->shape, &count);
    return output->spread / (1 + largest_of(output->data, count));
}

void check_compare(Difference *d, const float *got, int64_t stride, const double *want, int64_t rows, int64_t columns,
                   double spread) {
    double allowed = fmax(2e-5 * (1 + largest_of(want, rows * columns)), 8 * spread), most = 0;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) {
            double a = got[r * stride + c], b = want[r * columns + c], error = fabs(a - b);
            bool good;
            if (isnan(b) || isinf((float)b)) {
                good = isnan(b) ? isnan(a) : a == (double)(float)b;
                error = good ? 0 : INFINITY;
            } else {
                good = error <= allowed; /* false for NaN */
                if (isnan(error)) error = INFINITY;
                int64_t ulps = isfinite(a) ? ulps_between((float)a, (float)b) : INT32_MAX;
                if (ulps > d->ulps) d->ulps = ulps;
            }
            if (error > most) most = error;
            if (!good && d->bad++ == 0)
                d->row = r, d->column = c, d->got = isnan(a) ? NAN : a, d->want = isnan(b) ? NAN : b;
        }
    d->elements += rows * columns;
    if (most / allowed >= d->share) d->share = most / allowed, d->most = most, d->allowed = allowed;
}

/* ---------------------------------------------------------------- a call */

void check_set(Engine *engine, const char *target, int threads, void *pool,
               void (*parallel_for)(void *pool, int count, void (*task)(void *with, int index), void *with)) {
    DriverCall *call = &engine->call;
    call->target = target;
    call->threads = threads;
    call->pool = pool;
    call->parallel_for = parallel_for;
    call->least_work = 1;
    int status = engine_init(engine);
    if (status == 3) fail_status(EXIT_CANNOT, "this machine has no %s", target);
    if (status) bug("the compiled model refuses to begin: %s", engine_text(engine, status));
}

static const void *input_copy(Arena *arena, const char *name, const void *data, size_t bytes, size_t item,
                              GuardSide side) {
    if (!data) return NULL;
    return guard_input(guard_new(arena, arena_printf(arena, "the input %s", name), bytes), data, bytes, item, side);
}

static void guard_inputs(Arena *arena, Engine *engine, const Batch *batch, GuardSide side) {
    DriverCall *call = &engine->call;
    size_t item = sizeof *call->lengths, bytes = (size_t)batch->count * item;
    call->lengths = input_copy(arena, "lengths", call->lengths, bytes, item, side);
    call->source_lengths = input_copy(arena, "source_lengths", call->source_lengths, bytes, item, side);
    for (int f = 0; f < CALL_INPUTS; f++) {
        item = strcmp(call_inputs[f].name, "mask") == 0 ? 1 : sizeof(float);
        call_set(call, call_inputs[f],
                 input_copy(arena, call_inputs[f].name, call_get(call, call_inputs[f]), engine->input_bytes[f], item,
                            side));
    }
}

const char *check_damage(Arena *arena, const CheckRun *run) {
    const char *damage = NULL;
    for (int a = 0; a <= CALL_OUTPUTS && !damage; a++)
        if (run->guards[a]) damage = guard_damage(arena, run->guards[a]);
    return damage;
}

static int forward(void *with) { return engine_call(with); }

/* Outputs are aligned to a float, no more. */
static void guard_outputs(Arena *arena, DriverCall *call, unsigned wanted, GuardSide side, CheckRun *run) {
    for (int a = 0; a < CALL_OUTPUTS; a++) {
        call_set(call, call_outputs[a], NULL);
        if (!run->items[a] || !(wanted >> a & 1)) continue;
        size_t bytes = (size_t)run->items[a] * sizeof(float);
        run->guards[a] = guard_new(arena, arena_printf(arena, "the output %s", call_outputs[a].name), bytes);
        run->arrays[a] = guard_place(run->guards[a], bytes, sizeof(float), side);
        call_set(call, call_outputs[a], run->arrays[a]);
    }
}

/* The outputs in place of what stands between the pages. */
static void keep_outputs(Arena *arena, CheckRun *run) {
    for (int a = 0; a < CALL_OUTPUTS; a++) {
        if (!run->arrays[a]) continue;
        float *kept = arena_array(arena, (size_t)run->items[a], sizeof *kept);
        memcpy(kept, run->arrays[a], (size_t)run->items[a] * sizeof *kept);
        run->arrays[a] = kept;
    }
    memset(run->guards, 0, sizeof run->guards);
}

void check_call(Arena *arena, Engine *engine, const Batch *batch, unsigned wanted, GuardSide side, CheckRun *run) {
    DriverCall *call = &engine->call;
    Arena *own = arena_new();
    engine_bind(own, engine, batch);
    guard_inputs(own, engine, batch, side);
    *run = (CheckRun){0};
    Pieces pieces = check_pieces(own, engine, batch);
    for (int64_t i = 0; i < pieces.count; i++)
        run->items[pieces.list[i].array] += pieces.list[i].rows * pieces.list[i].columns;
    guard_outputs(own, call, wanted, side, run);
    void *old = call->workspace;
    const EntrySizes *sizes = &engine->emitted.forward;
    call->workspace_bytes = (size_t)(sizes->workspace_bytes + call->threads * sizes->scratch_bytes);
    run->guards[CALL_OUTPUTS] = guard_new(own, "the workspace", call->workspace_bytes);
    call->workspace = guard_place(run->guards[CALL_OUTPUTS], call->workspace_bytes, GUARD_ALIGNMENT, side);
    int status = guard_call(forward, engine, call->parallel_for == attn_pool_run);
    if (status == GUARD_CRASHED) run->complaint = arena_copy(arena, guard_crash(), strlen(guard_crash()));
    else if (status) run->complaint = arena_printf(arena, "the status `%s`", engine_text(engine, status));
    else run->complaint = check_damage(arena, run);
    keep_outputs(arena, run);
    call->workspace = old;
    arena_free(own);
}
