/* call.c: one call of compiled C between guard pages. */
#include "check.h"

#include "../../runtime/attn_runtime.h"

#include <string.h>

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
    for (int i = 0; i < engine->module->n_inputs; i++) {
        const InputKind *kind = engine->module->inputs[i];
        call->inputs[kind->role] = input_copy(arena, kind->name, call->inputs[kind->role],
                                              engine->input_bytes[kind->role], input_element_bytes(kind), side);
    }
}

const char *check_damage(Arena *arena, const CheckRun *run) {
    const char *damage = NULL;
    for (int a = 0; a <= OUT_COUNT && !damage; a++)
        if (run->guards[a]) damage = guard_damage(arena, run->guards[a]);
    return damage;
}

static int forward(void *with) { return engine_call(with); }

/* Outputs are aligned to a float and to nothing more. */
static void guard_outputs(Arena *arena, DriverCall *call, unsigned wanted, GuardSide side, CheckRun *run) {
    for (int a = 0; a < OUT_COUNT; a++) {
        call->outputs[a] = NULL;
        if (!run->items[a] || !(wanted >> a & 1)) continue;
        size_t bytes = (size_t)run->items[a] * sizeof(float);
        run->guards[a] = guard_new(arena, arena_printf(arena, "the output %s", output_name((OutputRole)a)), bytes);
        run->arrays[a] = guard_place(run->guards[a], bytes, sizeof(float), side);
        call->outputs[a] = run->arrays[a];
    }
}

/* Copies the outputs out of the memory between the pages. */
static void keep_outputs(Arena *arena, CheckRun *run) {
    for (int a = 0; a < OUT_COUNT; a++) {
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
    for (int a = 0; a < OUT_COUNT; a++) run->items[a] = (int64_t)(engine->output_bytes[a] / sizeof(float));
    guard_outputs(own, call, wanted, side, run);
    void *old = call->workspace;
    call->workspace_bytes = engine_workspace(engine, ENTRY_FORWARD, call->threads);
    run->guards[OUT_COUNT] = guard_new(own, "the workspace", call->workspace_bytes);
    call->workspace = guard_place(run->guards[OUT_COUNT], call->workspace_bytes, GUARD_ALIGNMENT, side);
    if (engine->watches) guard_fill(run->guards[OUT_COUNT], DENORMAL_BITS);
    int status = guard_call(forward, engine, call->parallel_for == attn_pool_run || engine->team);
    if (status == GUARD_CRASHED) run->complaint = arena_copy(arena, guard_crash(), strlen(guard_crash()));
    else if (status) run->complaint = arena_printf(arena, "the status `%s`", engine_text(engine, status));
    else run->complaint = check_damage(arena, run);
    keep_outputs(arena, run);
    call->workspace = old;
    arena_free(own);
}
