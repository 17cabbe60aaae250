/* fuse_experts.c: mixtures of experts. The rows that have chosen an expert are copied next to each other, in the order
 * of the experts, so that each matrix is read once, for all of its rows, and only if there are any. Steps between the
 * copies and the sum see ordinary rows. */
#include "fuse.h"

static Step expert_step(Fuse *f, StepKind kind, const Op *op, int tensor, const char *word) {
    Step step = step_new(f, kind, op->location, tensor);
    step.site.part = arena_printf(f->arena, "%s_%s", step.site.part, word);
    step.name = site_name(f, &step.site);
    return step;
}

/* Adds the step that sorts the rows of a choice, whose buffer stands in f->order of the choice. */
static void sort_rows(Fuse *f, const Op *op) {
    const Experts *e = op->a.experts;
    Step step = expert_step(f, STEP_SORT, op, op->result, "order");
    const Layout layout = {.dtype = DTYPE_I32, .k_group = 1};
    step.n = 2 * e->top;
    step.sort = (SortStep){.x = f->at[op->result], .experts = e};
    step.out = (Operand){plan_buffer(f->arena, f->plan,
                                     (Buffer){.slot = {.space = SPACE_WORKSPACE, .layout = layout, .name = step.name},
                                              .site = step.site,
                                              .rows = f->rows[op->result],
                                              .extra = SORT_STARTS(e->count) * (int64_t)sizeof(int32_t),
                                              .stride = round_up(step.n, PANEL),
                                              .columns = step.n}),
                         0};
    step.shape = arena_printf(f->arena, "[rows][%lld] of %lld experts", (long long)e->top, (long long)e->count);
    step_add(f, step);
    f->order[op->result] = step.out;
}

void fuse_choose(Fuse *f, const Op *op) {
    const Experts *e = op->a.experts;
    share_rows(f, op->inputs[0], op->result);
    Step step = step_new(f, STEP_CHOOSE, op->location, op->result);
    step.choose = (ChooseStep){.x = f->at[op->inputs[0]], .correction = NO_PACKED, .experts = e};
    if (op->n_inputs > 1) step.choose.correction = pack_tensor(f, op->inputs[1], false, false);
    step.n = columns_of(f, op->result);
    step.out = place_result(f, op->result);
    step.shape = arena_printf(f->arena, "[rows][%lld] of %lld experts", (long long)e->top, (long long)e->count);
    step_add(f, step);
    sort_rows(f, op);
}

/* The rows x by experts. */
static Operand gathered(Fuse *f, const Op *op, int x) {
    if (f->gathered[x] != NO_BUFFER) return (Operand){f->gathered[x], 0};
    const Buffer *from = &f->plan->buffers[f->at[x].buffer];
    Step step = expert_step(f, STEP_GATHER, op, x, "by_expert");
    Buffer copies = {.slot = {.space = SPACE_WORKSPACE, .layout = from->slot.layout, .name = step.name},
                     .site = step.site,
                     .rows = f->rows[x],
                     .times = op->a.experts->top,
                     .stride = from->slot.layout.dtype == DTYPE_U8 ? from->stride : round_up(columns_of(f, x), PANEL),
                     .columns = columns_of(f, x)};
    step.n = columns_of(f, x);
    step.times = op->a.experts->top;
    step.order = f->order[op->inputs[2]];
    step.gather = (GatherStep){.x = f->at[x], .experts = op->a.experts};
    step.out = (Operand){f->gathered[x] = plan_buffer(f->arena, f->plan, copies), 0};
    step.shape = arena_printf(f->arena, "[rows][%lld] to experts", (long long)step.n);
    step_add(f, step);
    return step.out;
}

void fuse_expert_linear(Fuse *f, const Op *op) {
    const int x = op->inputs[0];
    if (op_is_by_head(op)) {
        if (f->program->unroll_full)
            refuse_to_emit(op->location, "`unroll full` of latent attention or of a convolution in groups");
        share_rows(f, x, op->result);
        fuse_product(f, op, f->at[x]);
        return;
    }
    const bool ordered = f->order[x].buffer != NO_BUFFER;
    f->rows[op->result] = f->rows[x];
    f->times[op->result] = op->a.experts->top;
    f->order[op->result] = f->order[op->inputs[2]];
    fuse_product(f, op, ordered ? f->at[x] : gathered(f, op, x));
}

void fuse_join(Fuse *f, const Op *op) {
    const int64_t heads = op->a.heads;
    share_rows(f, op->inputs[0], op->result);
    Step step = step_new(f, STEP_JOIN, op->location, op->result);
    step.join = (JoinStep){.x = f->at[op->inputs[0]],
                           .other = f->at[op->inputs[1]],
                           .heads = heads,
                           .first = columns_of(f, op->inputs[0]) / heads,
                           .second = columns_of(f, op->inputs[1]) / heads};
    step.n = columns_of(f, op->result);
    step.out = place_result(f, op->result);
    step.shape = arena_printf(f->arena, "[rows][%lld] of %s", (long long)step.n, counted(f->arena, heads, "head"));
    step_add(f, step);
}

void fuse_expert_sum(Fuse *f, const Op *op) {
    const int choice = op->inputs[1];
    int result = op->result;
    f->rows[result] = f->rows[choice];
    Step step = step_new(f, STEP_COMBINE, op->location, result);
    step.n = columns_of(f, result);
    step.combine = (CombineStep){.x = f->at[op->inputs[0]],
                                 .order = f->order[choice],
                                 .choice = f->at[choice],
                                 .residual = NOWHERE,
                                 .experts = op->a.experts,
                                 .residual_scale = 1};
    const Op *reader = sole_output(f, result) < 0 ? only_reader(f, result) : NULL;
    if (reader && reader->kind == OP_add && reader->n_inputs == 2 && reader->inputs[1] == result &&
        available(f, reader->inputs[0])) {
        step.combine.residual = f->at[reader->inputs[0]];
        step.combine.residual_scale = reader->a.scale;
        cover(f, reader);
        f->rows[reader->result] = f->rows[result];
        step.tensor = result = reader->result;
    }
    step.out = place_result(f, result);
    step.shape = arena_printf(f->arena, "[rows][%lld] of %lld parts", (long long)step.n,
                              (long long)op->a.experts->top);
    step_add(f, step);
}
