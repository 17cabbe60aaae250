/* plan_verify.c: checks the promises of each pass after it has run. A broken promise is a bug of attnc. */
#include "../attnc.h"

#include <string.h>

typedef struct Checker {
    const Plan *plan;
    const char *pass;
    const Step *step; /* being checked, for messages */
} Checker;

static _Noreturn void broken(const Checker *c, const char *what, const char *name) {
    bug("after %s: the step `%s` of %s: `%s` %s", c->pass, c->step->name, c->plan->graph->name, name, what);
}

/* ---------------------------------------------------------------- behind fuse: steps */

/* Columns that a step reads of an operand, from the operand's column on. */
static int64_t columns_read(const Step *s, int read) {
    if (s->kind == STEP_GEMM && s->gemm.heads) return s->gemm.heads * s->gemm.k;
    if (s->kind == STEP_GEMM && read == 0) return s->gemm.k;
    if (s->kind == STEP_JOIN) return s->join.heads * (read ? s->join.second : s->join.first);
    if (s->kind == STEP_CHOOSE) return s->choose.experts->count;
    if (s->kind == STEP_ASSEMBLE) return s->exchange.part;
    if (s->kind == STEP_WINDOWS) return s->windows.channels;
    if (s->kind == STEP_MAP && read == 1 && s->map.same_column) return 1;
    if (s->kind == STEP_COMBINE && read == 1) return 2 * s->combine.experts->top;
    if (s->kind != STEP_ATTENTION) return s->n;
    const AttentionStep *a = &s->attention;
    const int64_t columns[] = {a->heads * a->head_dim, a->kv_heads * a->head_dim, a->kv_heads * a->value_dim};
    return columns[read];
}

static const Buffer *buffer_at(const Checker *c, Operand operand, const char *name, int64_t columns) {
    if (operand.buffer < 0 || operand.buffer >= c->plan->n_buffers) broken(c, "is no buffer", name);
    const Buffer *b = &c->plan->buffers[operand.buffer];
    int64_t step = c->step - c->plan->steps;
    if (operand.column < 0 || operand.column + columns > b->stride) broken(c, "passes the end of its row", name);
    if (step < b->first || step > b->last) broken(c, "is used outside of its life", name);
    return b;
}

static void verify_dtype(const Checker *c, const Buffer *b, const char *name, Dtype dtype) {
    if (b->slot.layout.dtype != dtype || b->slot.layout.panel)
        broken(c, dtype == DTYPE_F32 ? "is not rows of f32" : "is not quantized rows", name);
}

static void verify_reads(const Checker *c, const bool *written) {
    Read reads[MOST_READS];
    int n = step_reads(c->step, reads);
    for (int r = 0; r < n; r++) {
        const bool is_order = strcmp(reads[r].name, "order") == 0;
        const bool is_number = is_order || strcmp(reads[r].name, "counts") == 0;
        const Buffer *b = buffer_at(c, reads[r].operand, reads[r].name, is_number ? 1 : columns_read(c->step, r));
        const bool may_be_codes = (c->step->kind == STEP_GEMM || c->step->kind == STEP_GATHER) && r == 0;
        const bool codes = may_be_codes && b->slot.layout.dtype == DTYPE_U8;
        verify_dtype(c, b, reads[r].name, is_order ? DTYPE_I32 : codes ? DTYPE_U8 : DTYPE_F32);
        if (b->slot.space == SPACE_OUTPUT) broken(c, "is an output, which the caller may not want", reads[r].name);
        if (b->slot.space == SPACE_WORKSPACE && !written[reads[r].operand.buffer])
            broken(c, "is read before it is written", reads[r].name);
    }
}

static void verify_packed(const Checker *c, int packed, const char *name, bool required) {
    if (packed == NO_PACKED && !required) return;
    if (packed < 0 || packed >= c->plan->program->n_packed) broken(c, "is no packed tensor", name);
}

static void verify_gemm(const Checker *c) {
    const GemmStep *g = &c->step->gemm;
    int64_t columns = 0;
    verify_packed(c, g->weight, "weight", true);
    verify_packed(c, g->weight + g->parts - 1, "weight", true);
    verify_packed(c, g->bias, "bias", false);
    const Layout *layout = &c->plan->program->packed[g->weight].slot.layout;
    const bool scaled = dtype_has_scales(layout->dtype);
    verify_packed(c, g->scales, "scales", scaled);
    const bool quantized = c->plan->buffers[g->x.buffer].slot.layout.dtype == DTYPE_U8;
    if (quantized && !scaled) broken(c, "is quantized, and the weights are no integers", "x");
    if (layout->k_group != k_group_of(layout->dtype, quantized)) broken(c, "are in groups that do not fit x", "weight");
    verify_packed(c, g->sums, "sums", quantized);
    verify_packed(c, g->offsets, "offsets", false);
    verify_packed(c, g->outliers, "outliers", false);
    if (g->outliers != NO_PACKED && !quantized) broken(c, "are of rows that are not quantized", "outliers");
    if (!scaled && g->scales != NO_PACKED) broken(c, "are of weights that have none", "scales");
    for (int p = 0; p < g->parts; p++) {
        const Packed *part = &c->plan->program->packed[g->weight + p];
        if (part->slot.layout.panel != PANEL) broken(c, "is not in panels", "weight");
        if (part->slot.layout.dtype != c->plan->program->packed[g->weight].slot.layout.dtype)
            broken(c, "has parts of different types", "weight");
        if (g->parts > 1 && !layout_is_dense(&part->slot.layout, part->shape))
            broken(c, "has parts that do not follow each other", "weight");
        if (part->shape.rank != (g->experts ? 3 : 2) || packed_columns(part) != g->k)
            broken(c, "has other columns than x", "weight");
        columns += g->parts > 1 ? round_up(packed_rows(part), PANEL) : packed_rows(part);
    }
    if (columns != c->step->n) broken(c, "has other columns than the weights have rows", "out");
}

static void verify_attention(const Checker *c) {
    const AttentionStep *a = &c->step->attention;
    const int caches[] = {a->key_cache, a->value_cache};
    const Operand operands[] = {a->key, a->value};
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "value" : "key";
        if (caches[i] >= c->plan->program->n_caches) broken(c, "is no cache", name);
        if ((caches[i] == NO_CACHE) == (operands[i].buffer == NO_BUFFER))
            broken(c, "is neither rows nor a cache", name);
    }
    if (a->kv_heads < 1 || a->heads % a->kv_heads) broken(c, "does not divide the heads", "kv_heads");
    if (a->rounds && !a->bf16 && !a->bytes) broken(c, "needs rows of bf16, or queries and keys of bytes", "rounds");
    verify_packed(c, a->by_query, "by_query", false);
    verify_packed(c, a->by_key, "by_key", false);
    for (int i = 0; i < a->n_inputs; i++) verify_packed(c, a->inputs[i].packed, a->inputs[i].name, true);
    verify_packed(c, a->sink, "sink", false);
    verify_packed(c, a->vector, "vector", false);
}

static void verify_step(const Checker *c) {
    const Step *s = c->step;
    switch (s->kind) {
    case STEP_GEMM: verify_gemm(c); break;
    case STEP_ATTENTION: verify_attention(c); break;
    case STEP_CHOOSE: verify_packed(c, s->choose.correction, "correction", false); break;
    case STEP_NORM: verify_packed(c, s->norm.weight, "weight", true); break;
    case STEP_ROPE:
        verify_packed(c, s->rope.cos, "cos", true);
        verify_packed(c, s->rope.sin, "sin", true);
        break;
    case STEP_STORE:
        if (s->store.cache < 0 || s->store.cache >= c->plan->program->n_caches) broken(c, "is no cache", "cache");
        if ((s->store.input == NO_INPUT) == (s->store.x.buffer == NO_BUFFER))
            broken(c, "or an input must be stored", "x");
        break;
    case STEP_TALLY:
        if (s->tally.cache >= c->plan->program->n_caches) broken(c, "is no cache", "cache");
        break;
    case STEP_EMBED:
        verify_packed(c, s->embed.table, "table", s->embed.ids != NO_INPUT);
        verify_packed(c, s->embed.scales, "scales", false);
        verify_packed(c, s->embed.offsets, "offsets", false);
        break;
    case STEP_PREPEND: verify_packed(c, s->embed.front[0], "front", true); break;
    case STEP_LEARNED: verify_packed(c, s->learned.row, "row", true); break;
    case STEP_QUANTIZE:
        verify_packed(c, s->quantize.smooth, "smooth", s->quantize.columns != NO_PACKED);
        verify_packed(c, s->quantize.columns, "columns", false);
        break;
    case STEP_SORT: case STEP_GATHER: case STEP_COMBINE: case STEP_PATCHES: case STEP_WINDOWS: case STEP_MAP:
    case STEP_POOL: case STEP_COPY:
        break;
    case STEP_EXCHANGE:
        if (s->n != s->exchange.part) broken(c, "are not the columns of a rank", "out");
        break;
    case STEP_ASSEMBLE:
        if (s->n != (s->exchange.ids == NO_INPUT ? s->exchange.sharding->columns : s->exchange.part))
            broken(c, "are not the columns of all ranks", "out");
        break;
    case STEP_JOIN:
        if (s->join.heads * (s->join.first + s->join.second) != s->n) broken(c, "are not the columns", "heads");
        break;
    case STEP_ROUND:
        if (s->round.heads < 1 || s->n % s->round.heads) broken(c, "do not divide the columns", "heads");
        break;
    case STEP_COUNT: broken(c, "has no kind", "the step");
    }
}

static Dtype dtype_written(const Plan *plan, const Step *s) {
    if (s->kind == STEP_GATHER) return plan->buffers[s->gather.x.buffer].slot.layout.dtype;
    return s->kind == STEP_QUANTIZE ? DTYPE_U8 : s->kind == STEP_SORT ? DTYPE_I32 : DTYPE_F32;
}

void plan_verify(const Plan *plan, const char *pass) {
    Arena *arena = arena_new();
    bool *written = arena_array(arena, (size_t)plan->n_buffers, sizeof *written);
    for (int i = 0; i < plan->n_steps; i++) {
        const Checker c = {plan, pass, &plan->steps[i]};
        verify_step(&c);
        verify_reads(&c, written);
        if (c.step->kind == STEP_STORE) continue;
        const bool product = c.step->kind == STEP_GEMM;
        const Buffer *out = buffer_at(&c, c.step->out, "out", product ? gemm_columns(c.step) : c.step->n);
        if (out->slot.space == SPACE_INPUT) broken(&c, "is an input", "out");
        verify_dtype(&c, out, "out", dtype_written(plan, c.step));
        written[c.step->out.buffer] = true;
    }
    arena_free(arena);
}

/* ---------------------------------------------------------------- behind memory and layout: places */

static void verify_slot(const Slot *slot, Shape shape, int64_t end) {
    int64_t bytes = 0;
    if (slot->offset < 0 || slot->offset % ALIGNMENT) bug("`%s` is not aligned", slot->name);
    if (!layout_bytes(&slot->layout, shape, &bytes) || slot->bytes < bytes) bug("`%s` has too few bytes", slot->name);
    if (slot->offset > end - slot->bytes) bug("`%s` passes the end of its memory", slot->name);
}

/* Lists the buffers of the workspace in the order of the step that first touches them; returns their number. */
static int by_first_step(const Plan *plan, Arena *arena, int *sorted) {
    int n = 0, *at = arena_array(arena, (size_t)plan->n_steps + 1, sizeof *at);
    for (int b = 0; b < plan->n_buffers; b++) {
        const Buffer *buffer = &plan->buffers[b];
        if (buffer->slot.space == SPACE_WORKSPACE && buffer->first >= 0) at[buffer->first + 1]++, n++;
    }
    for (int i = 0; i < plan->n_steps; i++) at[i + 1] += at[i];
    for (int b = 0; b < plan->n_buffers; b++) {
        const Buffer *buffer = &plan->buffers[b];
        if (buffer->slot.space == SPACE_WORKSPACE && buffer->first >= 0) sorted[at[buffer->first]++] = b;
    }
    return n;
}

static void verify_workspace(const Plan *plan) {
    Arena *arena = arena_new();
    int *sorted = arena_array(arena, (size_t)plan->n_buffers, sizeof *sorted), n_alive = 0;
    int *alive = arena_array(arena, (size_t)plan->n_buffers, sizeof *alive);
    int n = by_first_step(plan, arena, sorted);
    for (int i = 0; i < n; i++) {
        const Buffer *b = &plan->buffers[sorted[i]];
        int kept = 0;
        verify_slot(&b->slot, (Shape){2, {buffer_rows(plan, b), b->stride}}, plan->workspace_bytes);
        for (int k = 0; k < n_alive; k++) {
            const Buffer *other = &plan->buffers[alive[k]];
            if (other->last < b->first) continue;
            alive[kept++] = alive[k];
            bool apart = other->slot.offset + other->slot.bytes <= b->slot.offset ||
                         b->slot.offset + b->slot.bytes <= other->slot.offset;
            if (!apart) bug("`%s` lies over `%s` while both are in use", b->slot.name, other->slot.name);
        }
        alive[kept] = sorted[i];
        n_alive = kept + 1;
    }
    arena_free(arena);
}

void program_verify(const Program *program) {
    int64_t weights = 0, state = 0, source = 0;
    for (int i = 0; i < ENTRY_COUNT; i++) {
        if (!program->entries[i]) continue;
        plan_verify(program->entries[i], "memory");
        verify_workspace(program->entries[i]);
    }
    for (int i = 0; i < program->n_packed; i++) {
        const Packed *p = &program->packed[i];
        verify_slot(&p->slot, p->shape, program->weight_bytes);
        if (p->slot.offset < weights) bug("`%s` lies over the tensor in front of it", p->slot.name);
        weights = p->slot.offset + p->slot.bytes;
    }
    for (int i = 0; i < program->n_caches; i++) {
        const Cache *c = &program->caches[i];
        bool of_source = c->slot.space == SPACE_SOURCE;
        int64_t *at = of_source ? &source : &state;
        if ((c->slot.layout.dtype == DTYPE_I8) != (c->scales > 0)) bug("`%s` has no scales", c->slot.name);
        if (c->scales && c->scales + c->heads * c->slots * (int64_t)sizeof(float) > c->slot.bytes)
            bug("the scales of `%s` pass its end", c->slot.name);
        const bool ranged = c->slot.layout.dtype == DTYPE_I32 || c->ranged;
        if (ranged != (c->ranges > 0)) bug("`%s` has no ranges", c->slot.name);
        if (c->ranges && c->ranges + c->slots / PANEL * 2 * (int64_t)sizeof(int32_t) > c->slot.bytes)
            bug("the ranges of `%s` pass its end", c->slot.name);
        verify_slot(&c->slot, (Shape){3, {c->heads, c->slots, c->width}},
                    of_source ? program->source_bytes : program->state_bytes);
        if (c->slot.offset < *at) bug("`%s` lies over the cache in front of it", c->slot.name);
        *at = c->slot.offset + c->slot.bytes;
    }
}
