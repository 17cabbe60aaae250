/* fuse_parts.c: queries of fuse on the graph, and the buffers and packed tensors that its steps need. */
#include "fuse.h"

#include <string.h>

_Noreturn void refuse_to_emit(const Location location, const char *what) {
    if (location.source)
        fail_status(EXIT_CANNOT, "%s:%d:%d: the generator cannot emit %s yet", location.source->path, location.line,
                    location.column, what);
    fail_status(EXIT_CANNOT, "the generator cannot emit %s yet", what);
}

const Tensor *tensor_in(const Fuse *f, int t) { return &f->graph->tensors[t]; }

int64_t columns_of(const Fuse *f, int t) {
    return tensor_in(f, t)->dims[tensor_in(f, t)->rank - 1].n / f->times[t];
}

void share_rows(Fuse *f, int from, int to) {
    f->rows[to] = f->rows[from];
    f->times[to] = f->times[from];
    f->order[to] = f->order[from];
}

const Op *only_reader(const Fuse *f, int t) {
    return f->uses[t] == 1 && f->reader[t] >= 0 ? &f->graph->ops[f->reader[t]] : NULL;
}

const Op *log_sum_of(const Fuse *f, int scores) {
    if (f->uses[scores] < 2) return NULL; /* a softmax reads them, too */
    for (int i = 0; i < f->graph->n_ops; i++)
        if (f->graph->ops[i].kind == OP_log_sum && f->graph->ops[i].inputs[0] == scores) return &f->graph->ops[i];
    return NULL;
}

const Op *score_reader(const Fuse *f, int t) {
    const Op *log_sum = log_sum_of(f, t);
    const bool sole = f->uses[t] == (log_sum ? 2 : 1) && f->reader[t] >= 0;
    return sole ? &f->graph->ops[f->reader[t]] : NULL;
}

const Op *writer_of(const Fuse *f, int t) {
    const Tensor *tensor = tensor_in(f, t);
    return tensor->kind == TENSOR_VALUE ? &f->graph->ops[tensor->op] : NULL;
}

int input_index(const Fuse *f, int tensor) {
    for (int i = 0; i < f->graph->n_inputs; i++)
        if (f->graph->inputs[i].tensor == tensor) return i;
    return NO_INPUT;
}

int op_index(const Fuse *f, const Op *op) { return (int)(op - f->graph->ops); }
void cover(Fuse *f, const Op *op) { f->done[op_index(f, op)] = true; }
bool available(const Fuse *f, int t) { return f->at[t].buffer != NO_BUFFER; }

/* ---------------------------------------------------------------- names */

static bool has_two_stacks(const Fuse *f) { return f->module->model->encoder && f->module->model->decoder; }

static const char *layer_name(Fuse *f, const Site *site) {
    if (site->layer < 0) return NULL;
    bool two = has_two_stacks(f);
    return arena_printf(f->arena, "%s%slayer%d", two ? site->stack : "", two ? "_" : "", site->layer);
}

const char *site_name(Fuse *f, const Site *site) {
    const char *layer = layer_name(f, site), *in = layer ? layer : site->stack;
    return in ? arena_printf(f->arena, "%s_%s", in, site->part) : site->part;
}

Step step_new(Fuse *f, StepKind kind, Location location, int result) {
    const Site *site = &tensor_in(f, result)->site;
    return (Step){.kind = kind,
                  .location = location,
                  .name = site_name(f, site),
                  .site = *site,
                  .layer = layer_name(f, site),
                  .shape = "",
                  .out = NOWHERE,
                  .tensor = result,
                  .rows = f->rows[result],
                  .times = f->times[result],
                  .order = f->order[result]};
}

/* Of a divided model, more operations on the same rows have steps of their own. */
static bool is_taken(const Fuse *f, const char *name) {
    for (int i = 0; i < f->plan->n_steps; i++)
        if (strcmp(f->plan->steps[i].name, name) == 0) return true;
    return false;
}

void step_add(Fuse *f, Step step) {
    const char *name = step.name;
    for (int n = 2; f->module->ranks > 1 && is_taken(f, step.name); n++)
        step.name = arena_printf(f->arena, "%s_%d", name, n);
    plan_step(f->arena, f->plan, step);
}

/* ---------------------------------------------------------------- buffers */

int workspace_buffer(Fuse *f, int tensor, int64_t columns) {
    const Slot slot = {.space = SPACE_WORKSPACE, .layout = LAYOUT_ROWS, .name = tensor_in(f, tensor)->name};
    return plan_buffer(f->arena, f->plan,
                       (Buffer){.slot = slot,
                                .site = tensor_in(f, tensor)->site,
                                .rows = f->rows[tensor],
                                .times = f->times[tensor],
                                .stride = round_up(columns, PANEL),
                                .columns = columns});
}

int quantized_buffer(Fuse *f, int tensor) {
    const Layout layout = {.dtype = DTYPE_U8, .k_group = 1};
    const int64_t columns = columns_of(f, tensor);
    return plan_buffer(
        f->arena, f->plan,
        (Buffer){.slot = {.space = SPACE_WORKSPACE, .layout = layout, .name = tensor_in(f, tensor)->name},
                 .site = tensor_in(f, tensor)->site,
                 .rows = f->rows[tensor],
                 .times = f->times[tensor],
                 .stride = ROW_HEAD + round_up(columns, ALIGNMENT),
                 .columns = columns});
}

int output_buffer(Fuse *f, int tensor, int output) {
    int64_t columns = columns_of(f, tensor);
    const Slot slot = {.space = SPACE_OUTPUT, .layout = LAYOUT_ROWS, .name = f->graph->outputs[output].name};
    return plan_buffer(f->arena, f->plan,
                       (Buffer){.slot = slot,
                                .rows = f->rows[tensor],
                                .stride = columns,
                                .columns = columns,
                                .io = output});
}

/* Whether the step that writes t also writes an attention map or the logarithms of its sums; it then runs even if the
 * caller does not want t. */
static bool gives_map(const Fuse *f, int t) {
    const Op *weighted = writer_of(f, t);
    if (!weighted || weighted->kind != OP_weighted_sum) return false;
    for (int o = 0; o < f->graph->n_outputs; o++)
        if (f->graph->outputs[o].tensor == weighted->inputs[0] || f->graph->outputs[o].role == OUT_lse) return true;
    return false;
}

int sole_output(const Fuse *f, int t) {
    if (f->uses[t] != 1 || gives_map(f, t)) return -1;
    for (int o = 0; o < f->graph->n_outputs; o++)
        if (f->graph->outputs[o].tensor == t && f->graph->outputs[o].layer < 0) return o;
    return -1;
}

Operand place_result(Fuse *f, int t) {
    int output = sole_output(f, t);
    int buffer = output < 0 ? workspace_buffer(f, t, columns_of(f, t)) : output_buffer(f, t, output);
    return f->at[t] = (Operand){buffer, 0};
}

Operand place_over(Fuse *f, int from, int result) {
    bool shared = f->uses[from] != 1 || f->plan->buffers[f->at[from].buffer].slot.space != SPACE_WORKSPACE ||
                  sole_output(f, result) >= 0;
    return shared ? place_result(f, result) : (f->at[result] = f->at[from]);
}

/* ---------------------------------------------------------------- packed tensors */

bool is_quantized(const Fuse *f, int t) {
    const Op *writer = writer_of(f, t);
    return writer && writer->kind == OP_quantize;
}

bool is_rounded(const Fuse *f, int t, Dtype dtype) {
    const Op *writer = writer_of(f, t);
    return writer && writer->kind == OP_round && writer->a.dtype == dtype;
}

/* Whether a product of quantized rows reads the weight. Such a weight is packed in groups of four k, because the
 * instructions multiply four bytes at once. The lookup and, after it, the product may read a token table; the last
 * reader decides. */
static bool in_fours(const Fuse *f, int weight) {
    const Op *last = f->reader[weight] < 0 ? NULL : &f->graph->ops[f->reader[weight]];
    return last && op_is_product(last->kind) && last->inputs[1] == weight && is_quantized(f, last->inputs[0]);
}

/* Packs the weights that a derived tensor is made of, so that a packed file holds all weights. */
static void pack_sources(Fuse *f, const Derived *derived) {
    for (int s = 0; s < DERIVED_SOURCES; s++) {
        if (!derived->sources[s]) continue;
        const int weight = derived->sources[s] - 1;
        const WeightSpec *spec = &f->module->weights.specs[weight];
        int *index = &f->program->of_weight[weight];
        if (*index != NO_PACKED) continue;
        if (spec->type.dtype != DTYPE_F32) bug("nothing multiplies rows by `%s`", spec->name);
        *index = program_packed(f->arena, f->program,
                                (Packed){.slot = {.space = SPACE_WEIGHTS, .layout = LAYOUT_ROWS, .name = spec->name},
                                         .site = spec->site,
                                         .weight = weight,
                                         .derived = -1,
                                         .shape = spec->shape});
    }
}

int pack_tensor(Fuse *f, int t, bool panels, bool plus_one) {
    const Tensor *tensor = tensor_in(f, t);
    bool is_weight = tensor->kind == TENSOR_WEIGHT;
    int *index = &(is_weight ? f->program->of_weight : f->program->of_derived)[tensor->weight];
    if (*index != NO_PACKED) {
        const Packed *p = &f->program->packed[*index];
        if (panels && !p->slot.layout.panel) refuse_to_emit(tensor->location, "a tensor that is a matrix and a table");
        if (p->plus_one != plus_one) refuse_to_emit(tensor->location, "a tensor with and without one added");
        return *index;
    }
    panels |= tensor->dtype == DTYPE_I4;
    Layout layout = panels && is_weight ? matrix_layout(f, t, in_fours(f, t)) : panels ? LAYOUT_PANELS : LAYOUT_ROWS;
    layout.dtype = tensor->dtype;
    Packed packed = {.slot = {.space = SPACE_WEIGHTS, .layout = layout, .name = tensor->name},
                     .site = tensor->site,
                     .weight = is_weight ? tensor->weight : -1,
                     .derived = is_weight ? -1 : tensor->weight,
                     .plus_one = plus_one};
    packed.shape =
        is_weight ? f->module->weights.specs[tensor->weight].shape : f->module->derived[tensor->weight].shape;
    *index = program_packed(f->arena, f->program, packed);
    if (!is_weight) pack_sources(f, &f->module->derived[tensor->weight]);
    return *index;
}

WeightType weight_type(const Fuse *f, int weight) {
    return f->module->weights.specs[tensor_in(f, weight)->weight].type;
}

Layout matrix_layout(const Fuse *f, int weight, bool quantized) {
    Layout layout = LAYOUT_PANELS;
    layout.dtype = weight_type(f, weight).dtype;
    layout.k_group = k_group_of(layout.dtype, quantized);
    return layout;
}

/* The shape of `width` numbers beside each row of a weight. */
static Shape beside_shape(const Fuse *f, int weight, int64_t width) {
    Shape shape = f->module->weights.specs[tensor_in(f, weight)->weight].shape;
    shape.dims[shape.rank - 1] = width;
    return shape;
}

/* The layout and the shape of one number beside each row; those of experts begin at a panel each. */
static Layout beside_layout(const Fuse *f, int weight, Shape *shape) {
    *shape = beside_shape(f, weight, 1);
    if (shape->rank > 2) return LAYOUT_PANELS;
    shape->rank = 1;
    return LAYOUT_ROWS;
}

Layout scaling_layout(const Fuse *f, int weight, Shape *shape) {
    const WeightSpec *spec = &f->module->weights.specs[tensor_in(f, weight)->weight];
    if (!spec->type.group) return beside_layout(f, weight, shape);
    Layout layout = LAYOUT_PANELS;
    layout.dtype = spec->type.halves ? DTYPE_F16 : DTYPE_BF16;
    *shape = beside_shape(f, weight, weight_groups(spec));
    return layout;
}

int outliers_of(const Fuse *f, int x) {
    const Op *op = writer_of(f, x);
    if (!op || op->kind != OP_quantize || op->n_inputs == 1) return 0;
    return f->module->weights.specs[tensor_in(f, op->inputs[1])->weight].outliers;
}

/* What belongs to the rows of a weight of integers, or to a vector that smooths. */
static int pack_beside(Fuse *f, int weight, int *index, PackedOf of, Layout layout, Shape shape, const char *what) {
    const Tensor *tensor = tensor_in(f, weight);
    if (*index != NO_PACKED) return *index;
    Packed rows = {.slot = {.space = SPACE_WEIGHTS, .layout = layout},
                   .site = tensor->site,
                   .weight = tensor->weight,
                   .derived = -1,
                   .of = of,
                   .shape = shape};
    rows.slot.name = arena_printf(f->arena, "%s.%s", tensor->name, what);
    rows.site.part = arena_printf(f->arena, "%s_%s", tensor->site.part, what);
    return *index = program_packed(f->arena, f->program, rows);
}

int pack_scales(Fuse *f, int weight) {
    const Tensor *tensor = tensor_in(f, weight);
    if (!dtype_has_scales(tensor->dtype)) return NO_PACKED;
    Shape shape;
    const Layout layout = scaling_layout(f, weight, &shape);
    return pack_beside(f, weight, &f->program->scales_of[tensor->weight], OF_SCALES, layout, shape, "scales");
}

int pack_offsets(Fuse *f, int weight) {
    if (!weight_type(f, weight).offset) return NO_PACKED;
    Shape shape;
    const Layout layout = scaling_layout(f, weight, &shape);
    int *index = &f->program->offsets_of[tensor_in(f, weight)->weight];
    return pack_beside(f, weight, index, OF_OFFSETS, layout, shape, "offsets");
}

int pack_sums(Fuse *f, int weight) {
    const Tensor *tensor = tensor_in(f, weight);
    Shape shape;
    const Layout layout = beside_layout(f, weight, &shape);
    return pack_beside(f, weight, &f->program->sums_of[tensor->weight], OF_SUMS, layout, shape, "sums");
}

int pack_outliers(Fuse *f, int weight, int n) {
    if (!n) return NO_PACKED;
    const Tensor *tensor = tensor_in(f, weight);
    const Shape shape = beside_shape(f, weight, n);
    int *index = &f->program->outliers_of[tensor->weight];
    return pack_beside(f, weight, index, OF_OUTLIERS, LAYOUT_PANELS, shape, "outliers");
}

int pack_columns(Fuse *f, int vector) {
    const Tensor *tensor = tensor_in(f, vector);
    const int n = f->module->weights.specs[tensor->weight].outliers;
    if (!n) return NO_PACKED;
    const Shape shape = {1, {n}};
    return pack_beside(f, vector, &f->program->columns_of[tensor->weight], OF_COLUMNS, LAYOUT_ROWS, shape, "columns");
}

/* A vector for each expert, which begins at a panel. */
int pack_expert_bias(Fuse *f, int bias) {
    const Tensor *tensor = tensor_in(f, bias);
    int *index = &f->program->of_weight[tensor->weight];
    if (*index != NO_PACKED) return *index;
    const Packed packed = {.slot = {.space = SPACE_WEIGHTS, .layout = LAYOUT_PANELS, .name = tensor->name},
                           .site = tensor->site,
                           .weight = tensor->weight,
                           .derived = -1,
                           .shape = {3, {tensor->dims[0].n, tensor->dims[1].n, 1}}};
    return *index = program_packed(f->arena, f->program, packed);
}

int pack_zeros(Fuse *f, int weight, int64_t n) {
    const Tensor *tensor = tensor_in(f, weight);
    int *index = &f->program->zeros_of[tensor->weight];
    if (*index != NO_PACKED) return *index;
    const char *name = arena_printf(f->arena, "%s.zeros", tensor->name);
    Packed zeros = {.slot = {.space = SPACE_WEIGHTS, .layout = LAYOUT_ROWS, .name = name},
                    .site = tensor->site,
                    .weight = -1,
                    .derived = -1,
                    .shape = {1, {n}}};
    zeros.site.part = arena_printf(f->arena, "%s_zeros", tensor->site.part);
    return *index = program_packed(f->arena, f->program, zeros);
}
