/* rewrite.c: copies a graph by the rule of a pass. */
#include "rewrite.h"

#include <string.h>

/* ---------------------------------------------------------------- operations */

int rewrite_tensor(Rewrite *r, int t) {
    if (r->now[t] != NO_TENSOR) return r->now[t];
    const Tensor *tensor = &r->from->tensors[t];
    if (tensor->kind == TENSOR_VALUE) bug("`%s` is read before an operation stands for its writer", tensor->name);
    r->now[t] = tensor->kind == TENSOR_WEIGHT ? graph_weight(r->arena, r->to, &r->module->weights, tensor->weight)
                                              : graph_tensor(r->arena, r->to, *tensor);
    return r->now[t];
}

int *rewrite_inputs(Rewrite *r, const Op *op) {
    int *inputs = arena_array(r->arena, (size_t)op->n_inputs, sizeof *inputs);
    for (int i = 0; i < op->n_inputs; i++) inputs[i] = rewrite_tensor(r, op->inputs[i]);
    return inputs;
}

int rewrite_as(Rewrite *r, const Op *op, const int *inputs) {
    Op copy = *op;
    copy.inputs = inputs;
    return graph_op(r->arena, r->to, copy, r->from->tensors[op->result]);
}

int rewrite_add(Rewrite *r, const Op *by, OpKind kind, OpAttributes a, Tensor result, int n, const int *inputs) {
    Op op = *by;
    op.kind = kind;
    op.inputs = inputs;
    op.n_inputs = n;
    op.a = a;
    return graph_op(r->arena, r->to, op, result);
}

int rewrite_copy(Rewrite *r, const Op *op) { return rewrite_as(r, op, rewrite_inputs(r, op)); }

void rewrite_sibling(Arena *arena, const char **name, Site *site, const char *word) {
    const char *dot = strrchr(*name, '.');
    const size_t whole = strlen(*name), kept = dot ? (size_t)(dot + 1 - *name) : 0;
    *name = arena_printf(arena, "%.*s%s", (int)kept, *name, word);
    site->part = arena_printf(arena, "%.*s%s", (int)(strlen(site->part) - (whole - kept)), site->part, word);
}

/* ---------------------------------------------------------------- graphs */

/* Of each tensor: whether it is an input, an output or a state, or an operation reads it whose result is read. */
static const bool *read_tensors(Arena *arena, const Graph *g) {
    bool *read = arena_array(arena, (size_t)g->n_tensors + 1, sizeof *read);
    for (int i = 0; i < g->n_inputs; i++) read[g->inputs[i].tensor] = true;
    for (int i = 0; i < g->n_outputs; i++) read[g->outputs[i].tensor] = true;
    for (int i = 0; i < g->n_states; i++) {
        if (g->states[i].in != NO_TENSOR) read[g->states[i].in] = true;
        if (g->states[i].out != NO_TENSOR) read[g->states[i].out] = true;
    }
    for (int o = g->n_ops; o-- > 0;)
        for (int i = 0; read[g->ops[o].result] && i < g->ops[o].n_inputs; i++) read[g->ops[o].inputs[i]] = true;
    return read;
}

/* Takes out what nothing reads, and renumbers the rest. */
static void drop_dead(Arena *arena, Graph *g) {
    const bool *read = read_tensors(arena, g);
    int *now = arena_array(arena, (size_t)g->n_tensors + 1, sizeof *now), n_tensors = 0, n_ops = 0;
    for (int t = 0; t < g->n_tensors; t++) {
        now[t] = read[t] ? n_tensors : NO_TENSOR;
        if (read[t]) g->tensors[n_tensors++] = g->tensors[t];
    }
    if (n_tensors == g->n_tensors) return;
    for (int o = 0; o < g->n_ops; o++) {
        Op op = g->ops[o];
        if (!read[op.result]) continue;
        int *inputs = arena_array(arena, (size_t)op.n_inputs, sizeof *inputs);
        for (int i = 0; i < op.n_inputs; i++) inputs[i] = now[op.inputs[i]];
        op.inputs = inputs;
        op.result = now[op.result];
        g->tensors[op.result].op = n_ops;
        g->ops[n_ops++] = op;
    }
    for (int i = 0; i < g->n_inputs; i++) g->inputs[i].tensor = now[g->inputs[i].tensor];
    for (int i = 0; i < g->n_outputs; i++) g->outputs[i].tensor = now[g->outputs[i].tensor];
    for (int i = 0; i < g->n_states; i++) {
        GraphState *state = &g->states[i];
        if (state->in != NO_TENSOR) state->in = now[state->in];
        if (state->out != NO_TENSOR) state->out = now[state->out];
    }
    g->n_tensors = n_tensors;
    g->n_ops = n_ops;
    g->of_weight = NULL; /* of the numbers before */
    g->room_of_weight = 0;
}

static void copy_ends(Rewrite *r) {
    for (int i = 0; i < r->from->n_outputs; i++) {
        GraphOutput output = r->from->outputs[i];
        output.tensor = rewrite_tensor(r, output.tensor);
        graph_output(r->arena, r->to, output);
    }
    for (int i = 0; i < r->from->n_states; i++) {
        GraphState state = r->from->states[i];
        if (state.in != NO_TENSOR) state.in = rewrite_tensor(r, state.in);
        if (state.out != NO_TENSOR) state.out = rewrite_tensor(r, state.out);
        graph_state(r->arena, r->to, state);
    }
}

static Graph *rewrite_graph(Rewrite *r, const RewritePass *pass, const Graph *from) {
    if (!from) return NULL;
    Graph *to = arena_alloc(r->arena, sizeof *to);
    to->name = from->name;
    to->n_symbols = from->n_symbols;
    memcpy(to->symbols, from->symbols, sizeof to->symbols);
    r->from = from;
    r->to = to;
    r->now = arena_array(r->arena, (size_t)from->n_tensors + 1, sizeof *r->now);
    for (int t = 0; t < from->n_tensors; t++) r->now[t] = NO_TENSOR;
    for (int i = 0; i < from->n_inputs; i++) {
        to->inputs[to->n_inputs] = from->inputs[i];
        to->inputs[to->n_inputs++].tensor = rewrite_tensor(r, from->inputs[i].tensor);
    }
    if (pass->begin) pass->begin(r);
    for (int o = 0; o < from->n_ops; o++) r->now[from->ops[o].result] = pass->op(r, &from->ops[o]);
    copy_ends(r);
    if (pass->end) pass->end(r);
    drop_dead(r->arena, to);
    return to;
}

Module *graph_rewrite(Arena *arena, const Module *old, const RewritePass *pass, void *with) {
    Module *module = arena_alloc(arena, sizeof *module);
    *module = *old;
    module->weights = weight_table_copy(arena, &old->weights);
    Rewrite r = {.arena = arena, .old = old, .module = module, .with = with};
    if (pass->weights) pass->weights(&r);
    for (int e = 0; e < ENTRY_COUNT; e++) module->entries[e] = rewrite_graph(&r, pass, old->entries[e]);
    verify_module(module, pass->name);
    return module;
}
