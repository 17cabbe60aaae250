/* fuse_ranks.c: the columns or rows of all ranks. Two steps: an exchange puts a rank's own rows where those of the
 * others will stand, and calls the collective of the program; an assembly makes rows of what all ranks have. */
#include "fuse.h"

static Step ranks_step(Fuse *f, StepKind kind, const Op *op, const char *word) {
    Step step = step_new(f, kind, op->location, op->result);
    step.site.part = arena_printf(f->arena, "%s_%s", step.site.part, word);
    step.name = site_name(f, &step.site);
    return step;
}

/* The parts of all ranks, one rank after the other, [ranks][rows][part]. */
static Operand exchanged(Fuse *f, const Op *op) {
    const int x = op->inputs[0];
    const Sharding *sharding = op->a.sharding;
    const int64_t part = op->kind == OP_owner_rows ? columns_of(f, x) : sharding->part;
    Step step = ranks_step(f, STEP_EXCHANGE, op, "exchange");
    step.exchange = (ExchangeStep){.x = f->at[x], .sharding = sharding, .part = part, .ids = NO_INPUT};
    step.tensor = x;
    step.n = part;
    step.out = (Operand){plan_buffer(f->arena, f->plan,
                                     (Buffer){.slot = {.space = SPACE_WORKSPACE, .layout = LAYOUT_ROWS,
                                                       .name = step.name},
                                              .site = step.site,
                                              .rows = f->rows[x],
                                              .times = f->times[x] * sharding->ranks,
                                              .stride = round_up(part, PANEL),
                                              .columns = part}),
                         0};
    step.shape = arena_printf(f->arena, "[rows][%lld] of %d ranks", (long long)step.n, sharding->ranks);
    step_add(f, step);
    return step.out;
}

void fuse_all_gather(Fuse *f, const Op *op) {
    if (f->program->unroll_full) refuse_to_emit(op->location, "`unroll full` of a model that several ranks share");
    share_rows(f, op->inputs[0], op->result);
    const Operand parts = exchanged(f, op);
    Step step = ranks_step(f, STEP_ASSEMBLE, op, "assembly");
    step.exchange = (ExchangeStep){.x = parts, .sharding = op->a.sharding, .ids = NO_INPUT};
    step.exchange.part = f->plan->buffers[parts.buffer].columns;
    if (op->kind == OP_owner_rows) step.exchange.ids = input_index(f, op->inputs[1]);
    step.n = columns_of(f, op->result);
    step.out = place_result(f, op->result);
    step.shape = arena_printf(f->arena, "[rows][%lld] of %d ranks", (long long)step.n, op->a.sharding->ranks);
    step_add(f, step);
}
