/* pipeline.c: the compiler, stage by stage. */
#include "lower/lower.h"

Compilation compilation_new(Arena *arena, Source *source) {
    return (Compilation){.arena = arena, .source = source, .diagnostics = diagnostics_new(arena)};
}

Compilation compilation_quiet(Arena *arena, Source *source) {
    return (Compilation){.arena = arena, .source = source, .diagnostics = diagnostics_quiet(arena)};
}

/* NULL when a line of the `weights` block names no weight that the graphs read. */
static Module *graphs_of(Arena *arena, const Model *model, Diagnostics *diagnostics) {
    Module *module = build(arena, model);
    verify_module(module, "build");
    check_source_names(module, diagnostics);
    if (diagnostics->errors) return NULL;
    note_unordered(model, diagnostics); /* notes are for specs without errors */
    return module;
}

/* Makes what c->stage stands for out of what the stages before it have made. */
static void run_stage(Compilation *c) {
    switch (c->stage) {
    case STAGE_SOURCE: break;
    case STAGE_AST: c->ast = parse(c->arena, c->source, &c->diagnostics); break;
    case STAGE_MODEL: c->model = resolve(c->arena, c->ast, &c->precision, &c->diagnostics); break;
    case STAGE_GRAPH: c->module = c->built = graphs_of(c->arena, c->model, &c->diagnostics); break;
    case STAGE_REWRITE: c->module = rewrite(c->arena, c->built, c->ranks); break;
    case STAGE_PLAN:
        c->program = plan_model(c->arena, c->module, targets_are_small(c->options.targets, c->options.n_targets));
        if (c->reproducible) c->program->arithmetic = reproducible_arithmetic(c->module);
        break;
    case STAGE_SCHEDULE:
        c->schedules =
            lower_targets(c->arena, c->program, c->options.targets, c->options.n_targets, c->options.loops);
        break;
    case STAGE_C:
        c->options.layout_hash = packed_layout_hash(c->program);
        c->emitted = emit(c->arena, c->program, c->schedules, &c->options);
        break;
    }
}

bool compile_until(Compilation *c, Stage last) {
    while (c->stage < last && c->diagnostics.errors == 0) {
        c->stage++;
        run_stage(c);
        if (c->after) c->after(c, c->with);
    }
    return c->diagnostics.errors == 0;
}
