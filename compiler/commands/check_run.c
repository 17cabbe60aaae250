/* check_run.c: one guarded call of generated C, and how its numbers compare with the interpreter's. */
#include "check.h"

#include "../../runtime/attn_runtime.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

void check_spread(const Module *module, const Graph *graph, const Weights *weights, const Sequence *s,
                  OutputArray *outputs) {
    enum { RUNS = 4 };
    for (uint64_t run = 1; run <= RUNS; run++) {
        Arena *own = arena_new();
        const Interpretation *rounded =
            interpret_rounded(own, module, graph, weights, s->inputs, s->n_inputs, s->symbols, run);
        for (int o = 0; o < graph->n_outputs; o++) {
            int64_t count = 0;
            shape_elements(outputs[o].shape, &count);
            for (int64_t i = 0; i < count; i++)
                outputs[o].spread =
                    fmax(outputs[o].spread, apart(rounded->outputs[o].data[i], outputs[o].data[i]));
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

/* ---------------------------------------------------------------- guards */

enum { CANARY = 64, CANARY_BYTE = 0xc5, NAN_BYTE = 0xff, SHIFT = 4 }; /* outputs are aligned to a float, no more */

typedef struct Pages {
    void *base;
    size_t bytes;
} Pages;

static void pages_free(void *with) {
    Pages *pages = with;
    munmap(pages->base, pages->bytes);
}

/* A copy that cannot be written, and that ends where no memory is. */
static const void *guarded_input(Arena *arena, const void *data, size_t bytes) {
    if (!data) return NULL;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (bytes + page - 1) / page * page;
    Pages *pages = arena_alloc(arena, sizeof *pages);
    pages->bytes = room + 2 * page;
    pages->base = mmap(NULL, pages->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages->base == MAP_FAILED) out_of_memory();
    arena_on_free(arena, pages_free, pages);
    uint8_t *first = (uint8_t *)pages->base + page;
    if (mprotect(first, room, PROT_READ | PROT_WRITE)) out_of_memory();
    memcpy(first + room - bytes, data, bytes);
    mprotect(first, room, PROT_READ);
    return first + room - bytes;
}

static uint8_t *canaries_set(uint8_t *memory, size_t bytes) {
    memset(memory, CANARY_BYTE, CANARY);
    memset(memory + CANARY, NAN_BYTE, bytes);
    memset(memory + CANARY + bytes, CANARY_BYTE, CANARY);
    return memory + CANARY;
}

/* NULL, or on which side a canary is gone. */
static const char *canaries_side(const uint8_t *inside, size_t bytes) {
    for (size_t i = 0; i < CANARY; i++)
        if (inside[(ptrdiff_t)i - CANARY] != CANARY_BYTE) return "in front of";
    for (size_t i = 0; i < CANARY; i++)
        if (inside[bytes + i] != CANARY_BYTE) return "behind";
    return NULL;
}

/* ---------------------------------------------------------------- crashes */

static sigjmp_buf crash_jump;
static volatile sig_atomic_t crash_armed;
static const char crash_text[] = "a thread of the pool reads or writes outside its memory (or traps)\n";

static void on_crash(int number) {
    if (crash_armed) siglongjmp(crash_jump, number);
    progress_hide();
    folders_remove();
    if (write(STDOUT_FILENO, crash_text, sizeof crash_text - 1) < 0) _exit(EXIT_BUG);
    _exit(EXIT_USER);
}

/* The call's status, or -1 when it ended by a signal. */
static int call_caught(Engine *engine) {
    static const int caught[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    enum { CAUGHT = sizeof caught / sizeof *caught };
    struct sigaction action = {.sa_handler = on_crash}, old[CAUGHT];
    fflush(stdout);
    for (int i = 0; i < CAUGHT; i++) sigaction(caught[i], &action, &old[i]);
    int status = -1;
    crash_armed = engine->call.parallel_for != attn_pool_run; /* with a pool the others would run on */
    if (!sigsetjmp(crash_jump, 1)) status = engine_call(engine);
    crash_armed = 0;
    for (int i = 0; i < CAUGHT; i++) sigaction(caught[i], &old[i], NULL);
    return status;
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

static void guard_inputs(Arena *arena, Engine *engine, const Batch *batch) {
    DriverCall *call = &engine->call;
    size_t bytes = (size_t)batch->count * sizeof *call->lengths;
    call->lengths = guarded_input(arena, call->lengths, bytes);
    call->source_lengths = guarded_input(arena, call->source_lengths, bytes);
    for (int f = 0; f < CALL_INPUTS; f++)
        call_set(call, call_inputs[f], guarded_input(arena, call_get(call, call_inputs[f]), engine->input_bytes[f]));
}

const char *check_damage(Arena *arena, const Engine *engine, const CheckRun *run) {
    for (int a = 0; a < CALL_OUTPUTS; a++) {
        const char *side = run->arrays[a]
                               ? canaries_side((const uint8_t *)run->arrays[a], (size_t)run->items[a] * sizeof(float))
                               : NULL;
        if (side) return arena_printf(arena, "a write %s the output %s", side, call_outputs[a].name);
    }
    const char *side = canaries_side(engine->call.workspace, engine->call.workspace_bytes);
    return side ? arena_printf(arena, "a write %s the workspace", side) : NULL;
}

void check_call(Arena *arena, Engine *engine, const Batch *batch, unsigned wanted, CheckRun *run) {
    DriverCall *call = &engine->call;
    Arena *own = arena_new();
    engine_bind(own, engine, batch);
    guard_inputs(own, engine, batch);
    *run = (CheckRun){0};
    Pieces pieces = check_pieces(own, engine, batch);
    for (int64_t i = 0; i < pieces.count; i++)
        run->items[pieces.list[i].array] += pieces.list[i].rows * pieces.list[i].columns;
    for (int a = 0; a < CALL_OUTPUTS; a++) {
        call_set(call, call_outputs[a], NULL);
        if (!run->items[a] || !(wanted >> a & 1)) continue;
        size_t bytes = (size_t)run->items[a] * sizeof(float);
        run->arrays[a] =
            (float *)(void *)canaries_set((uint8_t *)arena_alloc(arena, SHIFT + bytes + 2 * CANARY) + SHIFT, bytes);
        call_set(call, call_outputs[a], run->arrays[a]);
    }
    void *old = call->workspace;
    const EntrySizes *sizes = &engine->emitted.forward;
    call->workspace_bytes = (size_t)(sizes->workspace_bytes + call->threads * sizes->scratch_bytes);
    uint8_t *memory = attn_alloc(call->workspace_bytes + 2 * CANARY),
            *workspace = memory ? canaries_set(memory, call->workspace_bytes) : NULL;
    if (!workspace) out_of_memory();
    call->workspace = workspace;
    int status = call_caught(engine);
    if (status < 0) run->complaint = "a read or write outside the memory that the call was given (or a trap)";
    else if (status) run->complaint = arena_printf(arena, "the status `%s`", engine_text(engine, status));
    else run->complaint = check_damage(arena, engine, run);
    attn_free(memory);
    call->workspace = old;
    arena_free(own);
}
