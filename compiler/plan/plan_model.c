/* plan_model.c: makes the plans of a module's graphs. Packed weights have the order in which forward reads them. Caches
 * are sized after memory has set the rows of a chunk of decode. */
#include "../attnc.h"

static int *none_packed(Arena *arena, size_t count) {
    int *packed = arena_array(arena, count, sizeof *packed);
    for (size_t i = 0; i < count; i++) packed[i] = NO_PACKED;
    return packed;
}

Program *plan_model(Arena *arena, const Module *module, bool small) {
    Program *program = arena_alloc(arena, sizeof *program);
    program->module = module;
    program->small = small;
    program->of_weight = none_packed(arena, module->weights.count);
    program->scales_of = none_packed(arena, module->weights.count);
    program->offsets_of = none_packed(arena, module->weights.count);
    program->sums_of = none_packed(arena, module->weights.count);
    program->outliers_of = none_packed(arena, module->weights.count);
    program->columns_of = none_packed(arena, module->weights.count);
    program->zeros_of = none_packed(arena, module->weights.count);
    program->of_derived = none_packed(arena, (size_t)module->n_derived);
    program->unroll_full = module->model->unroll_full;
    static const EntryKind order[] = {ENTRY_FORWARD, ENTRY_DECODE, ENTRY_ENCODE}; /* of packed tensors and caches */
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (module->entries[order[i]]) program->entries[order[i]] = fuse(arena, program, module->entries[order[i]]);
    for (int i = 0; i < ENTRY_COUNT; i++) {
        if (!program->entries[i]) continue;
        plan_verify(program->entries[i], "fuse");
        plan_memory(arena, program->entries[i]);
    }
    layout(program);
    program_verify(program);
    return program;
}
