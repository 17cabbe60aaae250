/* plan.c: growing a plan, and printing it. */
#include "../attnc.h"

#include <string.h>

int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
int64_t ceil_div(int64_t n, int64_t by) { return (n + by - 1) / by; }

int plan_buffer(Arena *arena, Plan *plan, Buffer buffer) {
    plan->buffers = arena_grow(arena, plan->buffers, plan->n_buffers, &plan->room_buffers, sizeof buffer);
    buffer.first = -1;
    plan->buffers[plan->n_buffers] = buffer;
    return plan->n_buffers++;
}

int program_cache(Arena *arena, Program *program, Cache cache) {
    for (int i = 0; i < program->n_caches; i++) {
        const Cache *c = &program->caches[i];
        if (c->of_source == cache.of_source && strcmp(c->name, cache.name) == 0) return i;
    }
    program->caches = arena_grow(arena, program->caches, program->n_caches, &program->room_caches, sizeof cache);
    program->caches[program->n_caches] = cache;
    return program->n_caches++;
}

int program_packed(Arena *arena, Program *program, Packed packed) {
    program->packed =
        arena_grow(arena, program->packed, program->n_packed, &program->room_packed, sizeof packed);
    program->packed[program->n_packed] = packed;
    return program->n_packed++;
}

void plan_step(Arena *arena, Plan *plan, Step step) {
    plan->steps = arena_grow(arena, plan->steps, plan->n_steps, &plan->room_steps, sizeof step);
    const Operand touched[] = {step.in, step.other, step.third, step.factor, step.out};
    for (size_t i = 0; i < sizeof touched / sizeof *touched; i++) {
        if (touched[i].buffer == NO_BUFFER) continue;
        Buffer *b = &plan->buffers[touched[i].buffer];
        if (b->first < 0) b->first = plan->n_steps;
        b->last = plan->n_steps;
    }
    plan->steps[plan->n_steps++] = step;
}

static void print_operand(Text *out, const Plan *plan, const char *name, Operand o) {
    if (o.buffer == NO_BUFFER) return;
    text_printf(out, " %s=%s", name, plan->buffers[o.buffer].name);
    if (o.column) text_printf(out, "+%lld", (long long)o.column);
}

const char *step_kind_name(StepKind kind) {
    static const char *const names[STEP_COUNT] = {"embed", "patches",   "prepend", "gemm", "norm", "rope",
                                                  "store", "attention", "map",     "pool", "copy"};
    return names[kind];
}

static void print_plan(Text *out, const Plan *plan) {
    text_printf(out,
                "plan %s of %s: %d steps, %lld rows a chunk, %lld floats of workspace, %lld a thread\n",
                plan->graph->name, plan->program->module->model->name, plan->n_steps, (long long)plan->rows,
                (long long)plan->workspace_floats, (long long)plan->scratch_floats);
    for (int i = 0; i < plan->n_steps; i++) {
        const Step *s = &plan->steps[i];
        text_printf(out, "  %s %s %s", step_kind_name(s->kind), s->name, s->shape);
        print_operand(out, plan, "in", s->in);
        print_operand(out, plan, "other", s->other);
        print_operand(out, plan, "third", s->third);
        print_operand(out, plan, "factor", s->factor);
        print_operand(out, plan, "out", s->out);
        if (s->has_activation) text_printf(out, " %s", activation_name(s->a.activation));
        text_printf(out, "\n");
    }
    for (int i = 0; i < plan->n_buffers; i++) {
        const Buffer *b = &plan->buffers[i];
        if (b->kind == BUFFER_WORKSPACE)
            text_printf(out, "  buffer %s at %lld, stride %lld, room %lld, steps %d..%d\n", b->name,
                        (long long)b->offset, (long long)b->stride, (long long)b->room, b->first, b->last);
    }
}

void program_print(Text *out, const Program *program) {
    const Plan *const plans[] = {program->forward, program->encode, program->decode};
    for (int i = 0; i < 3; i++)
        if (plans[i]) print_plan(out, plans[i]);
    text_printf(out, "weights of %s: %lld floats\n", program->module->model->name, (long long)program->weight_floats);
    for (int i = 0; i < program->n_packed; i++) {
        const Packed *p = &program->packed[i];
        text_printf(out, "  packed %s at %lld, %s\n", p->name, (long long)p->offset, p->panels ? "panels" : "rows");
    }
    for (int i = 0; i < program->n_caches; i++) {
        const Cache *c = &program->caches[i];
        text_printf(out, "  cache %s of the %s at %lld: %lld heads, %lld %s of %lld%s\n", c->name,
                    c->of_source ? "source" : "state", (long long)c->offset, (long long)c->heads, (long long)c->slots,
                    c->panels ? "slots in panels" : "rows", (long long)c->width, c->ring ? ", a ring" : "");
    }
}
