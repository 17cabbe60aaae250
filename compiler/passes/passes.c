/* passes.c: the passes in their order. */
#include "../attnc.h"

Program *plan_model(Arena *arena, const Module *module) {
    Program *program = arena_alloc(arena, sizeof *program);
    program->module = module;
    program->unroll_full = module->model->unroll_full;
    program->forward = fuse(arena, program, module->forward);
    layout(program);
    plan_memory(arena, program->forward);
    return program;
}
