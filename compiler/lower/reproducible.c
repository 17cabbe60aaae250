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

/* The first attention over more than one block of keys, with maps alone if `exported`; or NULL. */
static const Step *long_attention(const Program *program, bool exported) {
    for (int e = 0; e < ENTRY_COUNT; e++) {
        const Plan *plan = program->entries[e];
        for (int i = 0; plan && i < plan->n_steps; i++) {
            const Step *s = &plan->steps[i];
            if (s->kind == STEP_ATTENTION && s->attention.key_bound > MOST_KEYS &&
                (!exported || s->attention.first_export >= 0))
                return s;
        }
    }
    return NULL;
}

/* The first attention with the output `lse`, or NULL. */
static const Step *with_lse(const Program *program) {
    const Plan *plan = program->entries[ENTRY_FORWARD];
    for (int i = 0; plan && i < plan->n_steps; i++)
        if (plan->steps[i].kind == STEP_ATTENTION && plan->steps[i].attention.exports_lse) return &plan->steps[i];
    return NULL;
}

bool maps_are_reproducible(const Program *program) { return !long_attention(program, false); }

void need_reproducible(Arena *arena, const Program *program, const Isa *isa) {
    if (program->unroll_full)
        refuse(program->module->model->location, "`unroll full` has an exponential of its own; `unroll auto` has not");
    need_fused(arena, program, isa);
    const Step *map = long_attention(program, true);
    const Step *lse = with_lse(program);
    if (lse) refuse(lse->location, "the logarithms of `export lse` are those of the target");
    if (map) refuse(map->location, "a map of more than 512 keys is summed in another order than the output");
}
