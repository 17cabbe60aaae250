/* layout.c: gives each packed tensor an offset in the weights, at a 64-byte boundary, in the order in which the code
 * reads the tensors. A table that is read both by rows and as panels (a tied head) is stored once, as panels.
 * Zeros after the last tensor let a kernel load a whole vector from the last row of any table, or a whole tile of
 * integers. Caches get offsets in a state and in a source in the same way, in the order in which the layers use
 * them. */
#include "../attnc.h"

enum { SLACK = ALIGNMENT, TILE_SLACK = 1024 }; /* bytes */

/* Sets the bytes of the numbers and of the scales or ranges after them; false on overflow. */
static bool cache_bytes(Cache *c) {
    const bool scaled = c->slot.layout.dtype == DTYPE_I8, ranged = c->slot.layout.dtype == DTYPE_I32 || c->ranged;
    int64_t more;
    if (!layout_bytes(&c->slot.layout, (Shape){3, {c->heads, c->slots, c->width}}, &c->slot.bytes)) return false;
    if (!scaled && !ranged) return true;
    *(scaled ? &c->scales : &c->ranges) = c->slot.bytes;
    const Shape shape = {2, {scaled ? c->heads : c->slots / PANEL, scaled ? c->slots : 2}};
    return layout_bytes(&LAYOUT_ROWS, shape, &more) && add_fits(c->slot.bytes, more, &c->slot.bytes);
}

/* The cache of a layer with a window is a ring for the window and the rows that one chunk appends, if that saves
 * slots. */
static void size_cache(Program *program, Cache *c) {
    const Model *m = program->module->model;
    const Stack *stack = c->slot.space == SPACE_SOURCE ? m->encoder : m->decoder;
    int64_t slots = round_up(stack->seq.n, PANEL),
            ring = c->window ? round_up(c->window + program->entries[ENTRY_DECODE]->rows, PANEL) : slots;
    c->ring = ring < slots;
    c->slots = c->ring ? ring : slots;
    if (c->ring && c->slots - c->window < program->rewind) program->rewind = c->slots - c->window;
    int64_t *at = c->slot.space == SPACE_SOURCE ? &program->source_bytes : &program->state_bytes;
    if (!cache_bytes(c))
        fail("the state of `%s` is too large", m->name);
    c->slot.offset = *at;
    *at += c->slot.bytes;
}

static void layout_caches(Program *program) {
    if (!program->entries[ENTRY_DECODE]) return;
    program->rewind = program->module->model->decoder->seq.n;
    for (int i = 0; i < program->n_caches; i++) size_cache(program, &program->caches[i]);
    program->state_bytes += SLACK;
    program->source_bytes += SLACK;
}

static void add_up_matrices(Plan *plan) {
    for (int i = 0; i < plan->n_steps; i++)
        if (plan->steps[i].kind == STEP_GEMM)
            plan->matrix_bytes += plan->program->packed[plan->steps[i].gemm.weight].slot.bytes;
}

/* Whether products of integers may read their weights in tiles, the last of which may reach beyond a matrix. */
static bool has_sums(const Program *program) {
    for (int i = 0; i < program->n_packed; i++)
        if (program->packed[i].of == OF_SUMS) return true;
    return false;
}

void layout(Program *program) {
    int64_t at = 0;
    for (int i = 0; i < program->n_packed; i++) {
        Packed *p = &program->packed[i];
        if (!layout_bytes(&p->slot.layout, p->shape, &p->slot.bytes))
            bug("the packed tensor `%s` is too large", p->slot.name);
        p->slot.offset = at;
        at += p->slot.bytes;
    }
    program->weight_bytes = at + (has_sums(program) ? TILE_SLACK : SLACK);
    for (int i = 0; i < ENTRY_COUNT; i++)
        if (program->entries[i]) add_up_matrices(program->entries[i]);
    layout_caches(program);
}
