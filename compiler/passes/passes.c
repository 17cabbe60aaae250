/* passes.c: the passes in their order. Packed weights come in the order in which forward reads them; caches are
 * sized after memory has said how many rows a chunk of decode has. */
#include "../attnc.h"

static int *none_packed(Arena *arena, size_t count) {
    int *packed = arena_array(arena, count, sizeof *packed);
    for (size_t i = 0; i < count; i++) packed[i] = NO_PACKED;
    return packed;
}

Program *plan_model(Arena *arena, const Module *module) {
    Program *program = arena_alloc(arena, sizeof *program);
    program->module = module;
    program->of_weight = none_packed(arena, module->weights.count);
    program->zeros_of = none_packed(arena, module->weights.count);
    program->of_derived = none_packed(arena, (size_t)module->n_derived);
    program->unroll_full = module->model->unroll_full;
    program->forward = fuse(arena, program, module->forward);
    if (module->decode) program->decode = fuse(arena, program, module->decode);
    if (module->encode) program->encode = fuse(arena, program, module->encode);
    Plan *const plans[] = {program->forward, program->encode, program->decode};
    for (int i = 0; i < 3; i++)
        if (plans[i]) plan_memory(arena, plans[i]);
    layout(program);
    return program;
}
