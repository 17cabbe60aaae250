/* fuse_rows.c: the rows that the layers begin with. Lookup, scale, positions and segments become one step, and so do
 * the patches of an image and the learned rows in front of them. */
#include "fuse.h"

static bool table_is_tied(const Fuse *f, int table) {
    for (int i = 0; i < f->graph->n_ops; i++)
        if (f->graph->ops[i].kind == OP_linear && f->graph->ops[i].inputs[1] == table) return true;
    return false;
}

static Step embed_step(Fuse *f, StepKind kind, const Op *op) {
    Step step = step_new(f, kind, op->location, op->result);
    step.embed = (EmbedStep){.given = NOWHERE,
                             .counts = NOWHERE,
                             .counted = NO_INPUT,
                             .ids = NO_INPUT,
                             .at = NO_INPUT,
                             .segment_ids = NO_INPUT,
                             .table = NO_PACKED,
                             .scales = NO_PACKED,
                             .offsets = NO_PACKED,
                             .segments = NO_PACKED,
                             .positions = NO_PACKED,
                             .front = {NO_PACKED, NO_PACKED},
                             .scale = 1,
                             .mask = -1};
    return step;
}

static bool gives_positions(const Op *op) { return op && (op->kind == OP_take_rows || op->kind == OP_pick_rows); }

static void add_positions(Fuse *f, EmbedStep *embed, const Op *rows) {
    embed->positions = pack_tensor(f, rows->inputs[0], false, false);
    embed->first_position = rows->a.offset;
    if (rows->kind == OP_take_rows) {
        if (rows->n_inputs > 1) embed->at = input_index(f, rows->inputs[1]);
        return;
    }
    embed->counted = input_index(f, rows->inputs[1]);
    embed->counts = f->at[rows->inputs[2]];
    embed->skipped = rows->a.token;
}

/* The numbers of a state's rows stand in a cache; the numbers of the call's rows are stored after them. */
void fuse_tally(Fuse *f, const Op *op) {
    f->rows[op->result] = f->rows[op->inputs[0]];
    Step step = step_new(f, STEP_TALLY, op->location, op->result);
    step.tally = (TallyStep){.ids = input_index(f, op->inputs[0]), .cache = NO_CACHE, .token = op->a.token};
    for (int s = 0; s < f->graph->n_states && op->n_inputs > 1; s++) {
        if (f->graph->states[s].in != op->inputs[1]) continue;
        step.tally.cache = cache_of_state(f, &f->graph->states[s], false);
        Cache *cache = &f->program->caches[step.tally.cache];
        cache->heads = cache->width = 1;
    }
    step.n = 1;
    step.out = place_result(f, op->result);
    step.shape = "[rows][1]";
    step_add(f, step);
}

/* Makes the scale, positions and segments after `result` part of the step; returns the tensor of its result. */
static int absorb(Fuse *f, Step *step, int result) {
    EmbedStep *embed = &step->embed;
    bool lookup = step->kind == STEP_EMBED;
    for (;;) {
        const Op *reader = only_reader(f, result);
        if (!reader || embed->positions != NO_PACKED) return result;
        const Op *kept = reader->kind == OP_mul ? writer_of(f, reader->inputs[1]) : NULL;
        if (kept && kept->kind == OP_keep && lookup && embed->segment_ids == NO_INPUT && embed->scale == 1) {
            embed->mask = kept->a.token;
            embed->scale = kept->a.scale;
            cover(f, kept);
        } else if (reader->kind == OP_scale && lookup && embed->segment_ids == NO_INPUT &&
            f32_holds(embed->scale * reader->a.scale)) {
            embed->scale *= reader->a.scale;
        } else if (reader->kind == OP_add && reader->n_inputs == 2 && reader->inputs[0] == result &&
                   reader->a.scale == 1) {
            const Op *other = writer_of(f, reader->inputs[1]);
            if (gives_positions(other)) {
                add_positions(f, embed, other);
            } else if (other && other->kind == OP_embed && lookup && embed->segment_ids == NO_INPUT) {
                embed->segment_ids = input_index(f, other->inputs[0]);
                embed->segments = pack_tensor(f, other->inputs[1], false, false);
            } else {
                return result;
            }
            cover(f, other);
        } else {
            return result;
        }
        cover(f, reader);
        result = reader->result;
        f->rows[result] = step->rows;
    }
}

static void finish(Fuse *f, Step step, int result, const char *name) {
    const Site *site = &tensor_in(f, result)->site;
    step.tensor = result;
    step.name = f->plan->source_seq.n ? arena_printf(f->arena, "%s_%s", site->stack, name) : name;
    step.site.part = name;
    step.n = columns_of(f, result);
    step.out = place_result(f, result);
    step.shape = arena_printf(f->arena, "[rows][%lld]", (long long)step.n);
    step_add(f, step);
}

void fuse_embed(Fuse *f, const Op *op) {
    f->rows[op->result] = f->rows[op->inputs[0]];
    Step step = embed_step(f, STEP_EMBED, op);
    step.embed.ids = input_index(f, op->inputs[0]);
    step.embed.sharding = op->a.sharding;
    step.embed.table = pack_tensor(f, op->inputs[1], table_is_tied(f, op->inputs[1]), false);
    step.embed.scales = pack_scales(f, op->inputs[1]);
    step.embed.offsets = pack_offsets(f, op->inputs[1]);
    /* another graph may have tied it */
    step.embed.table_in_panels = f->program->packed[step.embed.table].slot.layout.panel > 0;
    const char *divided = op->a.sharding ? "embedding_lookup" : "embedding_segments"; /* positions are added later */
    finish(f, step, absorb(f, &step, op->result), f->module->ranks > 1 ? divided : "embedding");
}

void fuse_add_positions(Fuse *f, const Op *op) {
    f->rows[op->result] = f->rows[op->inputs[0]];
    Step step = embed_step(f, STEP_EMBED, op);
    step.embed.given = f->at[op->inputs[0]];
    add_positions(f, &step.embed, writer_of(f, op->inputs[1]));
    const Op *given = writer_of(f, op->inputs[0]); /* a norm, before which a lookup may have the other name */
    const bool normed = given && (given->kind == OP_layernorm || given->kind == OP_rmsnorm);
    finish(f, step, op->result, normed ? "positions" : "embedding");
}

/* The rows that an image gives; a decoder reads none. */
static RowsKind image_rows(const Fuse *f) { return f->plan->source_seq.n ? ROWS_SOURCE : ROWS_CHUNK; }

/* The kind of a constant number of rows for each sequence. */
static RowsKind fixed_rows(const Fuse *f, int64_t rows) {
    Plan *plan = f->plan;
    int i = 0;
    while (i < plan->n_fixed_rows && plan->fixed_rows[i] != rows) i++;
    if (i == MOST_FIXED_ROWS) bug("a plan has more than %d constant numbers of rows", MOST_FIXED_ROWS);
    if (i == plan->n_fixed_rows) plan->fixed_rows[plan->n_fixed_rows++] = rows;
    return (RowsKind)(ROWS_FIXED + i);
}

/* The rows of a tensor with a constant number of them for each sequence. */
static RowsKind constant_rows(const Fuse *f, int tensor) {
    const Length seq = f->plan->source_seq.n ? f->plan->source_seq : f->plan->seq;
    const int64_t rows = tensor_in(f, tensor)->dims[0].n;
    return rows == seq.n ? image_rows(f) : fixed_rows(f, rows);
}

void fuse_patches(Fuse *f, const Op *op) {
    const Stack *stack = f->module->model->encoder;
    const int64_t rows = tensor_in(f, op->result)->dims[0].n;
    f->rows[op->result] = constant_rows(f, op->result); /* fewer where learned rows stand in front */
    Step step = step_new(f, STEP_PATCHES, op->location, op->result);
    step.patches = (PatchesStep){.channels = stack->image_channels,
                                 .height = stack->image_height,
                                 .width = stack->image_width,
                                 .patch = stack->patch,
                                 .step = stack->patch_step};
    step.n = columns_of(f, op->result);
    step.out = place_result(f, op->result);
    step.shape = arena_printf(f->arena, "[%lld a sequence][%lld]", (long long)rows, (long long)step.n);
    step_add(f, step);
}

void fuse_windows(Fuse *f, const Op *op) {
    const Tensor *x = tensor_in(f, op->inputs[0]), *result = tensor_in(f, op->result);
    const bool given = op->a.by_column, each = !given && op->a.stride == 1; /* each row has a result */
    const bool varied = result->dims[0].symbol;
    f->rows[op->result] = each ? f->rows[op->inputs[0]] : constant_rows(f, op->result);
    Step step = step_new(f, STEP_WINDOWS, op->location, op->result);
    step.windows = (WindowsStep){.x = given ? NOWHERE : f->at[op->inputs[0]],
                                 .channels = x->dims[given ? 0 : 1].n,
                                 .frames = varied ? 0 : x->dims[given ? 1 : 0].n,
                                 .kernel = op->a.kernel,
                                 .stride = op->a.stride,
                                 .results = varied ? 0 : result->dims[0].n};
    step.n = columns_of(f, op->result);
    step.out = place_result(f, op->result);
    step.shape = varied ? arena_printf(f->arena, "[rows][%lld]", (long long)step.n)
                        : arena_printf(f->arena, "[%lld a sequence][%lld]", (long long)result->dims[0].n,
                                       (long long)step.n);
    step_add(f, step);
}

void fuse_prepend(Fuse *f, const Op *op) {
    f->rows[op->result] = image_rows(f);
    Step step = embed_step(f, STEP_PREPEND, op);
    step.embed.given = f->at[op->inputs[op->n_inputs - 1]];
    for (int i = 0; i < op->n_inputs - 1; i++) step.embed.front[i] = pack_tensor(f, op->inputs[i], false, false);
    finish(f, step, absorb(f, &step, op->result), "rows");
}
