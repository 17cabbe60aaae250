/* passes.c: the passes in their order. */
#include "../attnc.h"

Plan *plan_model(Arena *arena, const Module *module) {
    Plan *plan = fuse(arena, module, module->forward);
    layout(plan);
    plan_memory(arena, plan);
    return plan;
}
