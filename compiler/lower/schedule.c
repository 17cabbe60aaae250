/* schedule.c: the rows of kernels.def as data, and the checks and the printer of a schedule. */
#include "lower.h"

#include <string.h>

#define RUN {PARAMETER_RUN, NULL, false}
#define READ(name) {PARAMETER_READ, #name, false}
#define WRITE(name) {PARAMETER_WRITE, #name, false}
#define WEIGHT(name) {PARAMETER_WEIGHT, #name, false}
#define KEYS(name) {PARAMETER_KEYS, #name, false}
#define CACHE(name) {PARAMETER_CACHE, #name, false}
#define SCRATCH(name) {PARAMETER_SCRATCH, #name, false}
#define MAYBE_READ(name) {PARAMETER_READ, #name, true}
#define MAYBE_WEIGHT(name) {PARAMETER_WEIGHT, #name, true}
#define MAYBE_NEXT(name) {PARAMETER_NEXT, #name, true}
#define MAYBE_CACHE(name) {PARAMETER_CACHE, #name, true}
#define MAYBE_MAPS(name) {PARAMETER_MAPS, #name, true}
#define MAYBE_SCRATCH(name) {PARAMETER_SCRATCH, #name, true}
#define ROWS {PARAMETER_ROWS, NULL, true}
#define SHARE {PARAMETER_SHARE, NULL, true}

/* C has no empty array, so each array begins with an element that is not a parameter. */
#define KERNEL(name, steps, template, applies, lower, ...) \
    static const Parameter parameters_##name[] = {{0}, __VA_ARGS__};
#include "kernels.def"
#undef KERNEL

const KernelRow kernel_rows[KERNEL_COUNT] = {
#define KERNEL(name, steps, template, applies, lower, ...) \
    {#name, template, parameters_##name + 1, sizeof parameters_##name / sizeof *parameters_##name - 1},
#include "kernels.def"
#undef KERNEL
};

const Cache *cache_of(const Plan *plan, int cache) {
    return cache == NO_CACHE ? NULL : &plan->program->caches[cache];
}

Dtype cache_dtype(const Plan *plan, int cache) {
    return cache == NO_CACHE ? DTYPE_F32 : cache_of(plan, cache)->slot.layout.dtype;
}

const char *pairs_of(const Plan *plan, const Step *s) {
    const Cache *keys = cache_of(plan, s->attention.key_cache);
    bool source_keys = keys ? keys->slot.space == SPACE_SOURCE : s->attention.key_rows == ROWS_SOURCE;
    if (s->rows == ROWS_SOURCE) return "source_pairs";
    return source_keys ? "cross_pairs" : "self_pairs";
}

int64_t entry_scratch_bytes(Schedule *const *schedules, int entry) {
    int64_t most = 0;
    for (; *schedules; schedules++) {
        const PlanSchedule *plan = (*schedules)->entries[entry];
        if (plan && plan->scratch_bytes > most) most = plan->scratch_bytes;
    }
    return most;
}

/* ---------------------------------------------------------------- verifying */

/* Describes what is wrong with a given argument, or returns NULL. */
static const char *argument_fault(const Plan *plan, const Parameter *parameter, const Argument *a) {
    const Program *program = plan->program;
    bool has_rows = a->operand.buffer >= 0 && a->operand.buffer < plan->n_buffers;
    bool has_cache = a->cache >= 0 && a->cache < program->n_caches;
    switch (parameter->kind) {
    case PARAMETER_READ: return has_rows ? NULL : "reads no buffer";
    case PARAMETER_WRITE:
        if (!has_rows) return "writes no buffer";
        return plan->buffers[a->operand.buffer].slot.space == SPACE_INPUT ? "writes into an input" : NULL;
    case PARAMETER_WEIGHT: case PARAMETER_NEXT:
        return a->packed >= 0 && a->packed < program->n_packed ? NULL : "is no packed tensor";
    case PARAMETER_KEYS: return has_rows != has_cache ? NULL : "is neither rows nor a cache";
    case PARAMETER_CACHE: return has_cache ? NULL : "is no cache";
    case PARAMETER_RUN: case PARAMETER_MAPS: case PARAMETER_SCRATCH: case PARAMETER_ROWS: case PARAMETER_SHARE: break;
    }
    return NULL;
}

/* The fault of the areas of a call's scratch, or NULL. */
static const char *areas_fault(const KernelCall *call) {
    int64_t end = 0;
    for (int i = 0; i < call->n_areas; i++) {
        const Area *area = &call->areas[i];
        if (area->at * (int64_t)sizeof(float) % ALIGNMENT) return "is not aligned";
        if (area->at < end || area->floats < 0) return "lies over the one before it";
        end = area->at + area->floats;
        if (end * (int64_t)sizeof(float) > call->scratch_bytes) return "passes the end of its scratch";
    }
    return call->scratch_bytes % ALIGNMENT ? "is followed by one of another thread that is not aligned" : NULL;
}

static void verify_areas(const Step *step, const KernelCall *call) {
    const char *fault = areas_fault(call);
    const char *kernel = kernel_rows[call->kernel].name;
    if (fault) bug("the schedule of `%s`: an area of the kernel %s %s", step->name, kernel, fault);
    int64_t block = 0; /* the area that is passed to the functions for rows of queries */
    for (int i = 0; i < call->n_areas; i++)
        if (strcmp(call->areas[i].name, "block") == 0) block = call->areas[i].floats * (int64_t)sizeof(float);
    for (int i = 0; i < call->n_constants; i++)
        if (call->constants[i].kind == CONSTANT_CALLEE && call->constants[i].callee->scratch_bytes > block)
            bug("the schedule of `%s`: the kernel %s has too little scratch for %s", step->name, kernel,
                call->constants[i].name);
}

static void verify_call(const Plan *plan, const Step *step, const KernelCall *call) {
    const KernelRow *row = &kernel_rows[call->kernel];
    verify_areas(step, call);
    for (int i = 0; i < row->n_parameters; i++) {
        const Parameter *parameter = &row->parameters[i];
        const Argument *a = &call->arguments[i];
        const char *fault = a->given ? argument_fault(plan, parameter, a) : parameter->optional ? NULL : "is missing";
        if (fault)
            bug("the schedule of `%s`: `%s` of the kernel %s %s", step->name,
                parameter->name ? parameter->name : "an argument", row->name, fault);
    }
    for (int i = 0; i < call->n_constants; i++)
        if (call->constants[i].kind == CONSTANT_CALLEE) verify_call(plan, step, call->constants[i].callee);
}

static void verify_plan(const PlanSchedule *schedule) {
    for (int i = 0; schedule && i < schedule->plan->n_steps; i++) {
        const ScheduledStep *s = &schedule->steps[i];
        verify_call(schedule->plan, s->step, s->call);
        if (s->call->scratch_bytes > schedule->scratch_bytes)
            bug("the schedule of `%s`: its kernel %s needs more scratch than there is", s->step->name,
                kernel_rows[s->call->kernel].name);
    }
    if (!schedule || !schedule->single) return;
    verify_plan(schedule->single);
    if (schedule->single->scratch_bytes > schedule->scratch_bytes)
        bug("the schedule of %s: one sequence needs more scratch than there is", schedule->plan->graph->name);
}

void schedule_verify(const Schedule *schedule) {
    for (int i = 0; i < ENTRY_COUNT; i++) verify_plan(schedule->entries[i]);
}

/* ---------------------------------------------------------------- printing */

static void print_argument(Text *out, const Plan *plan, const Parameter *parameter, const Argument *a) {
    const Program *program = plan->program;
    if (!parameter->name || !a->given) return;
    text_printf(out, " %s", parameter->name);
    if (a->packed != NO_PACKED) text_printf(out, "=%s", program->packed[a->packed].slot.name);
    else if (a->cache != NO_CACHE) text_printf(out, "=%s", program->caches[a->cache].slot.name);
    else if (a->operand.buffer != NO_BUFFER) text_printf(out, "=%s", plan->buffers[a->operand.buffer].slot.name);
    if (a->operand.column) text_printf(out, "+%lld", (long long)a->operand.column);
}

static void print_rules(Text *out, const AttentionStep *a) {
    if (a->visible) {
        text_printf(out, " visible=\"");
        pair_print(out, a->visible);
        text_printf(out, "\"");
    }
    for (int i = 0; i < a->n_rescores; i++) {
        text_printf(out, i ? ", " : " scores=\"");
        pair_print(out, a->rescores[i].rule);
    }
    if (a->n_rescores) text_printf(out, "\"");
}

static void print_call(Text *out, const Plan *plan, const KernelCall *call, const char *indent) {
    const KernelRow *row = &kernel_rows[call->kernel];
    text_printf(out, "%s on %s", row->name, call->v->name);
    if (call->u != call->v) text_printf(out, " and %s", call->u->name);
    for (int i = 0; i < row->n_parameters; i++) print_argument(out, plan, &row->parameters[i], &call->arguments[i]);
    text_printf(out, "\n%s ", indent);
    for (int i = 0; i < call->n_constants; i++) {
        const Constant *c = &call->constants[i];
        if (c->kind == CONSTANT_INTEGER) text_printf(out, " %s=%lld", c->name, (long long)c->integer);
        else if (c->kind == CONSTANT_WORD) text_printf(out, " %s=%s", c->name, c->word);
        else if (c->kind == CONSTANT_REAL) text_printf(out, " %s=%a", c->name, (double)c->real);
        else if (c->kind == CONSTANT_RULES) print_rules(out, c->attention);
    }
    text_printf(out, "\n");
    if (call->n_areas) text_printf(out, "%s  scratch: %lld bytes", indent, (long long)call->scratch_bytes);
    for (int i = 0; i < call->n_areas; i++)
        text_printf(out, "%s %s %lld", i ? "," : ", floats:", call->areas[i].name, (long long)call->areas[i].floats);
    if (call->n_areas) text_printf(out, "\n");
    for (int i = 0; i < call->n_constants; i++) {
        const Constant *c = &call->constants[i];
        if (c->kind != CONSTANT_CALLEE) continue;
        text_printf(out, "%s  %s: ", indent, c->name);
        print_call(out, plan, c->callee, "      ");
    }
}

static void print_steps(Text *out, const Schedule *schedule, const PlanSchedule *plan) {
    text_printf(out, "schedule %s of %s for %s: %s, %lld bytes of scratch a thread\n", plan->plan->graph->name,
                schedule->program->module->model->name, schedule->isa->name,
                plan->unrolled ? "unrolled, one sequence" : "loops", (long long)plan->scratch_bytes);
    for (int i = 0; i < plan->plan->n_steps; i++) {
        text_printf(out, "  %s: ", plan->steps[i].step->name);
        print_call(out, plan->plan, plan->steps[i].call, "   ");
    }
    if (plan->single) print_steps(out, schedule, plan->single);
}

void schedule_print(Text *out, const Schedule *schedule) {
    for (int i = 0; i < ENTRY_COUNT; i++)
        if (schedule->entries[i]) print_steps(out, schedule, schedule->entries[i]);
}
