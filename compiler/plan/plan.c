/* plan.c: functions that add to a plan, and its printer. */
#include "../attnc.h"

#include <string.h>

int plan_buffer(Arena *arena, Plan *plan, Buffer buffer) {
    plan->buffers = arena_grow(arena, plan->buffers, plan->n_buffers, &plan->room_buffers, sizeof buffer);
    buffer.first = -1;
    if (!buffer.times) buffer.times = 1;
    plan->buffers[plan->n_buffers] = buffer;
    return plan->n_buffers++;
}

int program_cache(Arena *arena, Program *program, Cache cache) {
    for (int i = 0; i < program->n_caches; i++) {
        const Cache *c = &program->caches[i];
        if (c->slot.space == cache.slot.space && strcmp(c->slot.name, cache.slot.name) == 0) return i;
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

int step_reads(const Step *s, Read reads[MOST_READS]) {
    Read all[MOST_READS] = {{0}};
    int n = 0, kept = 0;
    switch (s->kind) {
    case STEP_EMBED: case STEP_PREPEND:
        all[n++] = (Read){"given", s->embed.given};
        all[n++] = (Read){"counts", s->embed.counts};
        break;
    case STEP_GEMM:
        all[n++] = (Read){"x", s->gemm.x};
        all[n++] = (Read){"factor", s->gemm.factor};
        all[n++] = (Read){"residual", s->gemm.residual};
        break;
    case STEP_CHOOSE: all[n++] = (Read){"x", s->choose.x}; break;
    case STEP_SORT: all[n++] = (Read){"x", s->sort.x}; break;
    case STEP_GATHER: all[n++] = (Read){"x", s->gather.x}; break;
    case STEP_COMBINE:
        all[n++] = (Read){"x", s->combine.x};
        all[n++] = (Read){"choice", s->combine.choice};
        all[n++] = (Read){"order", s->combine.order};
        all[n++] = (Read){"residual", s->combine.residual};
        break;
    case STEP_NORM: all[n++] = (Read){"x", s->norm.x}; break;
    case STEP_ROPE: all[n++] = (Read){"x", s->rope.x}; break;
    case STEP_STORE: all[n++] = (Read){"x", s->store.x}; break;
    case STEP_ATTENTION:
        all[n++] = (Read){"query", s->attention.query};
        all[n++] = (Read){"key", s->attention.key};
        all[n++] = (Read){"value", s->attention.value};
        break;
    case STEP_QUANTIZE: all[n++] = (Read){"x", s->quantize.x}; break;
    case STEP_MAP: case STEP_COPY:
        all[n++] = (Read){"x", s->map.x};
        all[n++] = (Read){"other", s->map.other};
        break;
    case STEP_JOIN:
        all[n++] = (Read){"x", s->join.x};
        all[n++] = (Read){"other", s->join.other};
        break;
    case STEP_ROUND: all[n++] = (Read){"x", s->round.x}; break;
    case STEP_POOL: all[n++] = (Read){"x", s->pool.x}; break;
    case STEP_EXCHANGE: case STEP_ASSEMBLE: all[n++] = (Read){"x", s->exchange.x}; break;
    case STEP_WINDOWS: all[n++] = (Read){"x", s->windows.x}; break;
    case STEP_TALLY: case STEP_PATCHES: case STEP_LEARNED: case STEP_COUNT: break;
    }
    all[n++] = (Read){"order", s->order};
    for (int i = 0; i < n; i++)
        if (all[i].operand.buffer != NO_BUFFER) reads[kept++] = all[i];
    return kept;
}

static void touch(Plan *plan, Operand operand) {
    if (operand.buffer == NO_BUFFER) return;
    Buffer *b = &plan->buffers[operand.buffer];
    if (b->first < 0) b->first = plan->n_steps;
    b->last = plan->n_steps;
}

void plan_step(Arena *arena, Plan *plan, Step step) {
    plan->steps = arena_grow(arena, plan->steps, plan->n_steps, &plan->room_steps, sizeof step);
    Read reads[MOST_READS];
    int n = step_reads(&step, reads);
    for (int i = 0; i < n; i++) touch(plan, reads[i].operand);
    touch(plan, step.out);
    plan->steps[plan->n_steps++] = step;
}

static void print_operand(Text *out, const Plan *plan, const char *name, Operand o) {
    if (o.buffer == NO_BUFFER) return;
    text_printf(out, " %s=%s", name, plan->buffers[o.buffer].slot.name);
    if (o.column) text_printf(out, "+%lld", (long long)o.column);
}

const char *step_kind_name(StepKind kind) {
    static const char *const names[STEP_COUNT] = {"tally", "embed", "patches", "windows", "prepend", "gemm", "choose",
                                                  "sort", "gather", "combine", "norm", "rope", "store", "attention",
                                                  "map", "quantize", "join", "round", "learned", "pool", "copy",
                                                  "exchange", "assemble"};
    return names[kind];
}

static void print_plan(Text *out, const Plan *plan) {
    text_printf(out,
                "plan %s of %s: %s, %s a chunk, %s of workspace\n",
                plan->graph->name, plan->program->module->model->name, counted(out->arena, plan->n_steps, "step"),
                counted(out->arena, plan->rows, "row"), counted(out->arena, plan->workspace_bytes, "byte"));
    for (int i = 0; i < plan->n_steps; i++) {
        const Step *s = &plan->steps[i];
        text_printf(out, "  %s %s %s", step_kind_name(s->kind), s->name, s->shape);
        Read reads[MOST_READS];
        int n = step_reads(s, reads);
        for (int r = 0; r < n; r++) print_operand(out, plan, reads[r].name, reads[r].operand);
        print_operand(out, plan, "out", s->out);
        if (s->kind == STEP_GEMM && s->gemm.has_activation)
            text_printf(out, " %s", activation_name(s->gemm.activation));
        text_printf(out, "\n");
    }
    for (int i = 0; i < plan->n_buffers; i++) {
        const Buffer *b = &plan->buffers[i];
        if (b->slot.space == SPACE_WORKSPACE)
            text_printf(out, "  buffer %s at %lld, stride %lld, %lld bytes, steps %d..%d\n", b->slot.name,
                        (long long)b->slot.offset, (long long)b->stride, (long long)b->slot.bytes, b->first, b->last);
    }
}

void program_print(Text *out, const Program *program) {
    for (int i = 0; i < ENTRY_COUNT; i++)
        if (program->entries[i]) print_plan(out, program->entries[i]);
    text_printf(out, "weights of %s: %lld bytes\n", program->module->model->name, (long long)program->weight_bytes);
    for (int i = 0; i < program->n_packed; i++) {
        const Packed *p = &program->packed[i];
        Dtype dtype = p->slot.layout.dtype;
        text_printf(out, "  packed %s at %lld, %s%s%s\n", p->slot.name, (long long)p->slot.offset,
                    p->slot.layout.panel ? "panels" : "rows", dtype == DTYPE_F32 ? "" : " of ",
                    dtype == DTYPE_F32 ? "" : dtype_name(dtype));
    }
    for (int i = 0; i < program->n_caches; i++) {
        const Cache *c = &program->caches[i];
        text_printf(out, "  cache %s of the %s at %lld: %s, %s%s of %lld%s", c->slot.name,
                    c->slot.space == SPACE_SOURCE ? "source" : "state", (long long)c->slot.offset,
                    counted(out->arena, c->heads, "head"),
                    counted(out->arena, c->slots, c->slot.layout.panel ? "slot" : "row"),
                    c->slot.layout.panel ? " in panels" : "", (long long)c->width, c->ring ? ", a ring" : "");
        if (c->slot.layout.dtype != DTYPE_F32) text_printf(out, " of %s", dtype_name(c->slot.layout.dtype));
        text_printf(out, "\n");
    }
}
