/* module.c: growing a graph, and small questions about it. */
#include "../attnc.h"

int graph_tensor(Arena *arena, Graph *graph, Tensor tensor) {
    graph->tensors = arena_grow(arena, graph->tensors, graph->n_tensors, &graph->room_tensors, sizeof tensor);
    graph->tensors[graph->n_tensors] = tensor;
    return graph->n_tensors++;
}

int graph_op(Arena *arena, Graph *graph, Op op, Tensor result) {
    graph->ops = arena_grow(arena, graph->ops, graph->n_ops, &graph->room_ops, sizeof op);
    result.kind = TENSOR_VALUE;
    result.op = graph->n_ops;
    result.place = op.place;
    op.result = graph_tensor(arena, graph, result);
    graph->ops[graph->n_ops++] = op;
    return op.result;
}

void graph_output(Arena *arena, Graph *graph, GraphOutput output) {
    graph->outputs = arena_grow(arena, graph->outputs, graph->n_outputs, &graph->room_outputs, sizeof output);
    graph->outputs[graph->n_outputs++] = output;
}

void graph_state(Arena *arena, Graph *graph, GraphState state) {
    graph->states = arena_grow(arena, graph->states, graph->n_states, &graph->room_states, sizeof state);
    graph->states[graph->n_states++] = state;
}

bool dim_equal(Dim a, Dim b) { return a.symbol == b.symbol && a.n == b.n; }

int64_t graph_crossing(const Graph *graph, int64_t from, int64_t to) {
    for (int o = 0; o < graph->n_ops; o++) {
        int64_t at = graph->ops[o].kind == OP_rope ? graph->ops[o].a.offset : 0;
        if (at && from <= at && to > at) return at;
    }
    return 0;
}

const char *op_name(OpKind kind) {
    static const char *const names[] = {
#define OP(name, least, most, help) #name,
#include "ops.def"
    };
    return names[kind];
}
