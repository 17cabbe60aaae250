/* build_parts.c: the names, tensors, inputs and operations out of which the builder makes every layer. */
#include "builder.h"

#include <string.h>

const Stem BUILD_NO_STEM = {"", NULL, -1, ""};

/* ---------------------------------------------------------------- names */

Stem build_stem(Build *b, const Stack *stack, const char *part) {
    return (Stem){arena_printf(b->arena, "%s.%s", stack->name, part), stack->name, -1, part};
}

Stem build_sublayer_stem(Build *b, const Stack *stack, int64_t layer, const Sublayer *s) {
    const char *text = arena_printf(b->arena, "%s.layers.%lld.%s.", stack->name, (long long)layer, s->name);
    return (Stem){text, stack->name, (int)layer, arena_printf(b->arena, "%s.", s->name)};
}

const char *build_name(Build *b, const Stem *stem, const char *what) {
    return arena_printf(b->arena, "%s%s", stem->text, what);
}

Site build_site(Build *b, const Stem *stem, const char *what, Role role) {
    char *part = arena_printf(b->arena, "%s%s", stem->part, what);
    for (char *c = part; *c; c++)
        if (*c == '.') *c = '_';
    return (Site){stem->stack, stem->layer, part, role};
}

/* ---------------------------------------------------------------- tensors */

Dim build_constant(int64_t n) { return (Dim){0, n}; }

Dim build_symbol(Build *b, const char *name, int64_t least, int64_t bound) {
    Graph *g = b->graph;
    g->symbols[g->n_symbols++] = (Symbol){name, least, bound};
    return (Dim){g->n_symbols, bound};
}

Dim build_length(Build *b, const char *name, Length length) {
    return length.exact ? build_constant(length.n) : build_symbol(b, name, 1, length.n);
}

Tensor build_value2(Build *b, const char *what, Dim rows, int64_t columns) {
    return (Tensor){.name = build_name(b, &b->stem, what),
                    .site = build_site(b, &b->stem, what, ROLE_NONE),
                    .dtype = DTYPE_F32,
                    .rank = 2,
                    .dims = {rows, build_constant(columns)}};
}

Tensor build_value3(Build *b, const char *what, int64_t heads, Dim n, Dim m) {
    return (Tensor){.name = build_name(b, &b->stem, what),
                    .site = build_site(b, &b->stem, what, ROLE_NONE),
                    .dtype = DTYPE_F32,
                    .rank = 3,
                    .dims = {build_constant(heads), n, m}};
}

Tensor build_value_like(Build *b, const char *what, int x) {
    Tensor value = b->graph->tensors[x];
    value.name = build_name(b, &b->stem, what);
    value.site = build_site(b, &b->stem, what, ROLE_NONE);
    return value;
}

int build_weight(Build *b, int weight) {
    return weight == NO_WEIGHT ? NO_TENSOR : graph_weight(b->arena, b->graph, &b->module->weights, weight);
}

int build_derived(Build *b, Derived wanted) {
    Module *m = b->module;
    int index = 0;
    while (index < m->n_derived && strcmp(m->derived[index].name, wanted.name) != 0) index++;
    if (index == m->n_derived) {
        Derived *grown = arena_array(b->arena, (size_t)m->n_derived + 1, sizeof *grown);
        if (m->n_derived) memcpy(grown, m->derived, (size_t)m->n_derived * sizeof *grown);
        grown[m->n_derived++] = wanted;
        m->derived = grown;
    }
    for (int t = 0; t < b->graph->n_tensors; t++)
        if (b->graph->tensors[t].kind == TENSOR_DERIVED && b->graph->tensors[t].weight == index) return t;
    Tensor tensor = {.kind = TENSOR_DERIVED,
                     .name = wanted.name,
                     .site = build_site(b, &BUILD_NO_STEM, wanted.name, ROLE_NONE),
                     .dtype = DTYPE_F32,
                     .rank = wanted.shape.rank,
                     .weight = index,
                     .location = b->location};
    for (int d = 0; d < wanted.shape.rank; d++) tensor.dims[d] = build_constant(wanted.shape.dims[d]);
    return graph_tensor(b->arena, b->graph, tensor);
}

const Tensor *build_tensor(const Build *b, int t) { return &b->graph->tensors[t]; }
Dim build_rows(const Build *b, int t) { return build_tensor(b, t)->dims[0]; }
int64_t build_columns(const Build *b, int t) { return build_tensor(b, t)->dims[1].n; }

int build_input(Build *b, InputRole role, int rank, const Dim *dims, bool optional) {
    const RowInput *own = model_row_input(b->model, role);
    const InputKind *kind = own ? &own->kind : &input_kinds[role];
    const char *name = kind->name;
    Tensor tensor = {.kind = TENSOR_INPUT,
                     .name = name,
                     .site = build_site(b, &BUILD_NO_STEM, name, ROLE_NONE),
                     .dtype = kind->dtype,
                     .rank = rank,
                     .location = b->location};
    for (int d = 0; d < rank; d++) tensor.dims[d] = dims[d];
    int t = graph_tensor(b->arena, b->graph, tensor);
    GraphInput input = {.kind = kind, .tensor = t, .optional = optional};
    if (own) input.least = own->least, input.most = own->most, input.range = own->range;
    b->graph->inputs[b->graph->n_inputs++] = input;
    module_input(b->module, kind);
    return t;
}

void build_mark_source(Build *b) { b->graph->inputs[b->graph->n_inputs - 1].of_source = true; }

/* ---------------------------------------------------------------- ops */

int build_op(Build *b, OpKind kind, OpAttributes a, Tensor result, int n, const int *inputs) {
    while (inputs[n - 1] == NO_TENSOR) n--;
    const Op op = {.kind = kind, .inputs = inputs, .n_inputs = n, .a = a, .location = b->location, .where = b->where,
                   .precision = b->precision};
    return graph_op(b->arena, b->graph, op, result);
}
