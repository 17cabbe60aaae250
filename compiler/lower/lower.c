/* lower.c: chooses a kernel for each step of each plan: the first row of kernels.def that applies. */
#include "kernel_call.h"

#include <string.h>

typedef struct Rule {
    StepKind first, second; /* the steps that the kernel computes */
    bool (*applies)(const Lowering *l, const Step *step);
    KernelCall *(*lower)(const Lowering *l, const Step *step);
} Rule;

static bool always(const Lowering *l, const Step *s) {
    (void)l, (void)s;
    return true;
}

static bool is_unrolled(const Lowering *l, const Step *s) {
    (void)s;
    return l->unrolled;
}

static bool is_register_resident(const Lowering *l, const Step *s) {
    return l->unrolled && rows_unrolled(l->plan, l->isa, s);
}

/* The target loads vectors of the dtype in which the weights are packed. */
static bool loads_weights(const Lowering *l, const Step *s) {
    return isa_find(l->isa, load_operation(l->arena, weights_dtype(l, s->gemm.weight)));
}

static bool multiplies_by_head(const Lowering *l, const Step *s) { return s->gemm.heads && loads_weights(l, s); }

static bool has_experts(const Lowering *l, const Step *s) {
    if (!s->gemm.experts) return false;
    return multiplies_in_tiles(l, s) || multiplies_groups_in_tiles(l, s) || loads_weights(l, s);
}

/* The same of the dtype in which keys and values are kept. */
static bool loads_cache(const Lowering *l, const Step *s) {
    const char *load = load_operation(l->arena, cache_dtype(l->plan, s->attention.key_cache));
    return isa_find(l->isa, load) && isa_find(isa_for(l->isa, s->attention.value_dim), load);
}

#define STEPS(first, second) STEP_##first, STEP_##second
static const Rule rules[KERNEL_COUNT] = {
#define KERNEL(name, steps, template, applies, lower, ...) {steps, applies, lower},
#include "kernels.def"
#undef KERNEL
};

static KernelCall *lower_step(const Lowering *l, const Step *s) {
    for (int k = 0; k < KERNEL_COUNT; k++) {
        const Rule *rule = &rules[k];
        bool computes = rule->first == s->kind || rule->second == s->kind;
        if (computes && rule->applies(l, s)) return rule->lower(l, s);
    }
    const Location *location = &s->location;
    const char *why = "";
    if (s->kind == STEP_GEMM && !loads_weights(l, s))
        why = arena_printf(l->arena, ", whose weights are %s", dtype_name(weights_dtype(l, s->gemm.weight)));
    if (s->kind == STEP_ATTENTION)
        why = arena_printf(l->arena, ", whose keys and values are %s",
                           dtype_name(cache_dtype(l->plan, s->attention.key_cache)));
    fail_status(EXIT_CANNOT, "%s:%d:%d: the target %s has no kernel for `%s`%s",
                location->source ? location->source->path : "",
                location->line, location->column, l->isa->name, s->name, why);
}

/* The maps of a sequence are stored layer by layer and head by head; a head that is not exported has no map (-1). */
static const int64_t *map_places(const Lowering *l, const Step *s) {
    if (s->kind != STEP_ATTENTION || s->attention.first_export < 0) return NULL;
    const GraphOutput *outputs = l->plan->graph->outputs, *own = &outputs[s->attention.first_export];
    int64_t *places = arena_array(l->arena, (size_t)s->attention.heads, sizeof *places), first = 0;
    for (const GraphOutput *o = outputs; o < own; o++)
        if (o->role == own->role) first += o->n_heads;
    for (int64_t h = 0; h < s->attention.heads; h++) places[h] = -1;
    for (int64_t i = 0; i < own->n_heads; i++) places[own->heads[i]] = first + i;
    return places;
}

static const char *optional_output(const Lowering *l, const Step *s) {
    if (s->out.buffer == NO_BUFFER) return NULL;
    const Slot *slot = &buffer_of(l, s->out)->slot;
    return slot->space == SPACE_OUTPUT ? slot->name : NULL;
}

static void need_scratch(PlanSchedule *schedule, int64_t bytes) {
    if (bytes > schedule->scratch_bytes) schedule->scratch_bytes = bytes;
}

static PlanSchedule *lower_plan(Arena *arena, CallTable *calls, const Plan *plan, const Isa *isa, bool unrolled) {
    const Lowering l = {arena, calls, plan, isa, unrolled};
    PlanSchedule *schedule = arena_alloc(arena, sizeof *schedule);
    schedule->plan = plan;
    schedule->unrolled = unrolled;
    schedule->steps = arena_array(arena, (size_t)plan->n_steps, sizeof *schedule->steps);
    for (int i = 0; i < plan->n_steps; i++) {
        const Step *s = &plan->steps[i];
        KernelCall *call = lower_step(&l, s);
        call_share(&l, call);
        need_scratch(schedule, call->scratch_bytes);
        schedule->steps[i] = (ScheduledStep){.step = s,
                                             .call = call,
                                             .maps = map_places(&l, s),
                                             .optional = optional_output(&l, s)};
    }
    return schedule;
}

/* The plan with loops, and unrolled for one sequence if a gain is expected. */
static PlanSchedule *lower_entry(Arena *arena, CallTable *calls, const Plan *plan, const Isa *isa, bool loops) {
    if (!plan) return NULL;
    bool full = plan->program->unroll_full;
    loops |= isa_has(isa, "small");
    PlanSchedule *schedule = lower_plan(arena, calls, plan, isa, full);
    if (loops || full || !unroll(plan, isa).pays) return schedule;
    const PlanSchedule *single = schedule->single = lower_plan(arena, calls, plan, isa, true);
    need_scratch(schedule, single->scratch_bytes);
    return schedule;
}

Schedule *lower(Arena *arena, const Program *program, const Isa *isa, bool loops) {
    Schedule *schedule = arena_alloc(arena, sizeof *schedule);
    loops |= program->module->ranks > 1;
    if (program->arithmetic != ARITHMETIC_FREE) {
        need_reproducible(arena, program, isa);
        loops = true;
    }
    if (program->arithmetic == ARITHMETIC_APART) isa = isa_apart(arena, isa);
    *schedule = (Schedule){.program = program, .isa = isa};
    CallTable calls = {0};
    for (int i = 0; i < ENTRY_COUNT; i++)
        schedule->entries[i] = lower_entry(arena, &calls, program->entries[i], isa, loops);
    schedule_verify(schedule);
    return schedule;
}

Schedule **lower_targets(Arena *arena, const Program *program, const char *const *targets, int n_targets, bool loops) {
    Schedule **schedules = arena_array(arena, (size_t)n_targets + 1, sizeof *schedules);
    int n = 0;
    for (const Isa *const *isa = targets_all(); *isa; isa++)
        for (int t = 0; t < n_targets; t++)
            if (strcmp(targets[t], (*isa)->name) == 0) schedules[n++] = lower(arena, program, *isa, loops);
    return schedules;
}
