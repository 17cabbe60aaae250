/* reproducible.c: what a program of --reproducible cannot have on a target, or on any. */
#include "kernel_call.h"

static _Noreturn void refuse(Location at, const char *what) {
    fail_status(EXIT_CANNOT, "%s:%d:%d: `--reproducible`: %s", at.source ? at.source->path : "", at.line, at.column,
                what);
}

static void need_fused(Arena *arena, const Program *program, const Isa *isa) {
    const Op *rounded = module_rounded_product(program->module);
    if (!rounded || isa->fused) return;
    refuse(rounded->location,
           arena_printf(arena, "the products of `%s` are rounded as f32, and the target %s has no fused multiply-add "
                        "that sums them as avx2, avx512 and neon do; with `--precision int8` it needs none",
                        rounded->where, isa->name));
}

static void need_steps(const Plan *plan) {
    for (int i = 0; plan && i < plan->n_steps; i++) {
        const Step *s = &plan->steps[i];
        if (s->kind != STEP_ATTENTION) continue;
        const AttentionStep *a = &s->attention;
        if (a->first_export >= 0 && a->key_bound > MOST_KEYS)
            refuse(s->location, "a map of more than 512 keys is summed in another order than the output");
        if (cache_dtype(plan, a->key_cache) == DTYPE_I8 || cache_dtype(plan, a->value_cache) == DTYPE_I8)
            refuse(s->location, "the order of operations on keys and values in int8 is not fixed yet");
    }
}

void need_reproducible(Arena *arena, const Program *program, const Isa *isa) {
    if (program->unroll_full)
        refuse(program->module->model->location, "`unroll full` has an exponential of its own; `unroll auto` has not");
    need_fused(arena, program, isa);
    for (int i = 0; i < ENTRY_COUNT; i++) need_steps(program->entries[i]);
}
