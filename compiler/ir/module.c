/* module.c: functions that add to a graph, and queries on it. */
#include "../attnc.h"

#include <math.h>
#include <string.h>

int graph_tensor(Arena *arena, Graph *graph, Tensor tensor) {
    graph->tensors = arena_grow(arena, graph->tensors, graph->n_tensors, &graph->room_tensors, sizeof tensor);
    graph->tensors[graph->n_tensors] = tensor;
    return graph->n_tensors++;
}

int graph_weight(Arena *arena, Graph *graph, const WeightTable *table, int weight) {
    if (graph->room_of_weight <= weight) {
        const int room = table->room > weight ? table->room : weight + 1;
        int *grown = arena_array(arena, (size_t)room, sizeof *grown);
        if (graph->room_of_weight) memcpy(grown, graph->of_weight, (size_t)graph->room_of_weight * sizeof *grown);
        graph->of_weight = grown;
        graph->room_of_weight = room;
    }
    if (graph->of_weight[weight]) return graph->of_weight[weight] - 1;
    const WeightSpec *spec = &table->specs[weight];
    Tensor tensor = {.kind = TENSOR_WEIGHT,
                     .name = spec->name,
                     .site = spec->site,
                     .dtype = spec->type.dtype,
                     .rank = spec->shape.rank,
                     .weight = weight,
                     .location = spec->location};
    for (int d = 0; d < spec->shape.rank; d++) tensor.dims[d] = (Dim){0, spec->shape.dims[d]};
    const int t = graph_tensor(arena, graph, tensor);
    graph->of_weight[weight] = t + 1;
    return t;
}

int graph_op(Arena *arena, Graph *graph, Op op, Tensor result) {
    graph->ops = arena_grow(arena, graph->ops, graph->n_ops, &graph->room_ops, sizeof op);
    result.kind = TENSOR_VALUE;
    result.op = graph->n_ops;
    result.location = op.location;
    op.result = graph_tensor(arena, graph, result);
    int *inputs = arena_array(arena, (size_t)op.n_inputs, sizeof *inputs);
    memcpy(inputs, op.inputs, (size_t)op.n_inputs * sizeof *inputs);
    op.inputs = inputs;
    graph->ops[graph->n_ops++] = op;
    return op.result;
}

void graph_output(Arena *arena, Graph *graph, GraphOutput output) {
    graph->outputs = arena_grow(arena, graph->outputs, graph->n_outputs, &graph->room_outputs, sizeof output);
    output.name = output_name(output.role);
    graph->outputs[graph->n_outputs++] = output;
}

void graph_state(Arena *arena, Graph *graph, GraphState state) {
    graph->states = arena_grow(arena, graph->states, graph->n_states, &graph->room_states, sizeof state);
    graph->states[graph->n_states++] = state;
}

bool dim_equal(Dim a, Dim b) { return a.symbol == b.symbol && a.n == b.n; }

void module_input(Module *module, const InputKind *kind) {
    for (int i = 0; i < module->n_inputs; i++)
        if (module->inputs[i]->role == kind->role) return;
    if ((int)kind->role >= MOST_INPUTS) bug("the input `%s` is one too many", kind->name);
    module->inputs[module->n_inputs++] = kind;
}

const GraphInput *graph_input(const Graph *graph, InputRole role) {
    for (int i = 0; graph && i < graph->n_inputs; i++)
        if (graph->inputs[i].kind->role == role) return &graph->inputs[i];
    return NULL;
}

bool graph_input_range(const Graph *graph, const GraphInput *input, int64_t *least, int64_t *most) {
    const int64_t table = graph_table_rows(graph, input);
    *least = table ? 0 : input->least;
    *most = table ? table - 1 : input->most;
    return table || input_is_number(input->kind) || role_is_of_rows(input->kind->role) || input->least != input->most;
}

bool graph_input_is_ranged(const GraphInput *input) {
    return role_is_of_rows(input->kind->role) && input->kind->dtype == DTYPE_F32 && isfinite(input->range.low);
}

bool graph_input_excludes(const GraphInput *input, double number) {
    return graph_input_is_ranged(input) && !(number >= input->range.low && number <= input->range.high);
}

const GraphInput *graph_input_named(const Graph *graph, const char *name) {
    for (int i = 0; graph && i < graph->n_inputs; i++)
        if (strcmp(graph->inputs[i].kind->name, name) == 0) return &graph->inputs[i];
    return NULL;
}

bool graph_needs_tokens_alone(const Graph *graph) {
    for (int i = 0; graph && i < graph->n_inputs; i++) {
        const InputKind *kind = graph->inputs[i].kind;
        if (kind->role != IN_tokens && kind->absent != ABSENT_ZEROS) return false;
    }
    return graph_input(graph, IN_tokens) != NULL;
}

bool graph_reads_integers(const Graph *graph) {
    for (int i = 0; graph && i < graph->n_inputs; i++)
        if (role_is_of_rows(graph->inputs[i].kind->role)) return true;
    return false;
}

bool graph_takes_rows(const Graph *graph) {
    for (int i = 0; graph && i < graph->n_inputs; i++) {
        const InputKind *kind = graph->inputs[i].kind;
        if (role_is_of_rows(kind->role) && kind->rows != PER_SEQUENCE) return true;
    }
    return false;
}

const GraphOutput *graph_output_of(const Graph *graph, OutputRole role) {
    for (int o = 0; graph && o < graph->n_outputs; o++)
        if (graph->outputs[o].role == role) return &graph->outputs[o];
    return NULL;
}

int64_t graph_table_rows(const Graph *graph, const GraphInput *input) {
    for (int o = 0; o < graph->n_ops; o++) {
        const Op *op = &graph->ops[o];
        if (op->kind != OP_embed || op->inputs[0] != input->tensor) continue;
        return op->a.sharding ? op->a.sharding->columns : graph->tensors[op->inputs[1]].dims[0].n;
    }
    return 0;
}

int64_t graph_named_token(const Graph *graph, const GraphInput *input) {
    for (int o = 0; o < graph->n_ops; o++) {
        const Op *op = &graph->ops[o];
        if (op->kind == OP_pool && op->n_inputs > 1 && op->inputs[1] == input->tensor) return op->a.token;
        if ((op->kind == OP_tally || op->kind == OP_keep) && op->inputs[0] == input->tensor) return op->a.token;
    }
    return -1;
}

int64_t graph_output_heads(const Graph *graph, OutputRole role) {
    int64_t heads = 0;
    for (int o = 0; o < graph->n_outputs; o++)
        if (graph->outputs[o].role == role) heads += graph->outputs[o].n_heads;
    return heads;
}

int64_t graph_crossing(const Graph *graph, int64_t from, int64_t to) {
    for (int o = 0; o < graph->n_ops; o++) {
        int64_t at = graph->ops[o].kind == OP_rope ? graph->ops[o].a.offset : 0;
        if (at && from <= at && to > at) return at;
    }
    return 0;
}

const char *op_name(OpKind kind) {
    static const char *const names[] = {
#define OP(name, least, most, result, inputs, help) #name,
#include "ops.def"
    };
    return names[kind];
}

const char *op_formula(OpKind kind) {
    static const char *const formulas[] = {
#define OP(name, least, most, result, inputs, help) "",
#define MAP(name, value, fixed, formula, help) formula,
#include "ops.def"
    };
    return formulas[kind];
}

const char *entry_name(EntryKind entry) {
    static const char *const names[] = {
#define ENTRY(name, upper, help) #name,
#include "entries.def"
    };
    return names[entry];
}

bool op_is_by_head(const Op *op) { return op->kind == OP_expert_linear && op->a.by_head; }
int op_bias(const Op *op) {
    const int at = op->kind == OP_expert_linear && !op->a.by_head ? 3 : 2;
    return op->n_inputs > at ? op->inputs[at] : NO_TENSOR;
}
int op_rule_input(const Op *op) { return op->kind == OP_weighted_sum ? 2 : 1 + op->a.has_sink; }
bool op_is_product(OpKind kind) { return kind == OP_linear || kind == OP_expert_linear; }

static bool quantizes(const Graph *graph) {
    for (int o = 0; graph && o < graph->n_ops; o++)
        if (graph->ops[o].kind == OP_quantize) return true;
    return false;
}

RowTypes graph_row_types(const Graph *graph) {
    enum { MANY_KEYS = 128 };
    RowTypes types = {quantizes(graph) ? DTYPE_I8 : DTYPE_F32, false};
    for (int o = 0; graph && o < graph->n_ops; o++) {
        const Op *op = &graph->ops[o];
        const Tensor *x = op_is_product(op->kind) || op->kind == OP_scores ? &graph->tensors[op->inputs[0]] : NULL;
        if (!x || x->kind != TENSOR_VALUE) continue;
        const Op *writer = &graph->ops[x->op];
        if (writer->kind != OP_round) continue;
        if (writer->a.dtype == DTYPE_I8 && !op->a.cached) types.narrowest = DTYPE_I8;
        else if (writer->a.dtype != DTYPE_BF16) continue;
        if (types.narrowest == DTYPE_F32) types.narrowest = DTYPE_BF16;
        types.long_bf16 |= op->kind == OP_scores && graph->tensors[op->inputs[1]].dims[0].n >= MANY_KEYS;
    }
    return types;
}

bool op_jumps(const Op *op) {
    return op->kind == OP_quantize || op->kind == OP_round || op->kind == OP_choose ||
           (op->kind == OP_weighted_sum && op->a.dtype == DTYPE_BF16);
}

bool graph_jumps(const Graph *graph) {
    for (int o = 0; graph && o < graph->n_ops; o++)
        if (op_jumps(&graph->ops[o])) return true;
    return false;
}

/* Whether f32 holds every product of a row's number with a weight. */
static bool products_are_exact(const Module *module, const Graph *graph, const Op *linear) {
    const Tensor *x = &graph->tensors[linear->inputs[0]], *weight = &graph->tensors[linear->inputs[1]];
    const Op *writer = x->kind == TENSOR_VALUE ? &graph->ops[x->op] : NULL;
    if (!writer || weight->kind != TENSOR_WEIGHT) return false;
    if (writer->kind == OP_quantize) return true;
    return writer->kind == OP_round && writer->a.dtype == DTYPE_BF16 &&
           module->weights.specs[weight->weight].type.dtype == DTYPE_BF16;
}

const Op *module_rounded_product(const Module *module) {
    for (int e = 0; e < ENTRY_COUNT; e++) {
        const Graph *graph = module->entries[e];
        for (int o = 0; graph && o < graph->n_ops; o++)
            if (op_is_product(graph->ops[o].kind) && !products_are_exact(module, graph, &graph->ops[o]))
                return &graph->ops[o];
    }
    return NULL;
}

Arithmetic reproducible_arithmetic(const Module *module) {
    return module_rounded_product(module) ? ARITHMETIC_FUSED : ARITHMETIC_APART;
}
