/* layout.c: where each packed tensor stands in the weights. Needs the packed tensors in the order in which
 * the code reads them; gives every one an offset at a 64-byte boundary. A table that is read both by rows
 * and as panels (a tied head) is stored once, as panels. Zeros behind the last one let a kernel load a whole
 * vector from any table's last row. Caches are placed the same way in a state and in a source, in the order in
 * which the layers use them. */
#include "../attnc.h"

enum { SLACK = 16 };

/* A window's cache is a ring of the window and of what one chunk appends; it is one only where that saves slots. */
static void size_cache(Program *program, Cache *c) {
    const Model *m = program->module->model;
    const Stack *stack = c->of_source ? m->encoder : m->decoder;
    int64_t slots = round_up(stack->seq.n, 16),
            ring = c->window ? round_up(c->window + program->decode->rows, 16) : slots;
    c->ring = ring < slots;
    c->slots = c->ring ? ring : slots;
    if (c->ring && c->slots - c->window < program->rewind) program->rewind = c->slots - c->window;
    int64_t *at = c->of_source ? &program->source_floats : &program->state_floats;
    if (!mul_fits(c->heads * c->width, c->slots, &c->room)) fail("the state of `%s` is too large", m->name);
    c->offset = *at;
    *at += c->room;
}

static void layout_caches(Program *program) {
    enum { SLACK_BEHIND = 16 };
    if (!program->decode) return;
    program->rewind = program->module->model->decoder->seq.n;
    for (int i = 0; i < program->n_caches; i++) size_cache(program, &program->caches[i]);
    program->state_floats += SLACK_BEHIND;
    program->source_floats += SLACK_BEHIND;
}

static void add_up_matrices(Plan *plan) {
    for (int i = 0; i < plan->n_steps; i++)
        if (plan->steps[i].kind == STEP_GEMM)
            plan->matrix_floats += plan->program->packed[plan->steps[i].weight].room;
}

void layout(Program *program) {
    int64_t at = 0;
    for (int i = 0; i < program->n_packed; i++) {
        Packed *p = &program->packed[i];
        int64_t elements = 0;
        if (p->panels) elements = round_up(p->shape.dims[0], 16) * p->shape.dims[1];
        else if (!shape_elements(p->shape, &elements)) bug("the packed tensor `%s` is too large", p->name);
        p->offset = at;
        p->room = round_up(elements, 16);
        at += p->room;
    }
    program->weight_floats = at + SLACK;
    Plan *const plans[] = {program->forward, program->encode, program->decode};
    for (int i = 0; i < 3; i++)
        if (plans[i]) add_up_matrices(plans[i]);
    layout_caches(program);
}
