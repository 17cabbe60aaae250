/* one_op.h: a graph of one op over given inputs, and what the interpreter makes of it. */
#ifndef ONE_OP_H
#define ONE_OP_H

#include "fixture.h"

#include <math.h>
#include <stdlib.h>

static Graph graph;
static Module module;
static InputArray arrays[MAX_GRAPH_INPUTS];
static int64_t past; /* the value of symbol 1 */

static inline int begin_graph(void **state) {
    past = 0;
    graph = (Graph){.name = "test", .symbols = {{"past", 0, 6}, {"total", 1, 6}}, .n_symbols = 1};
    module = (Module){.entries = {&graph}};
    return begin(state);
}

static inline int64_t sizes(Tensor *tensor, int rank, const int64_t *dims) {
    int64_t count = 1;
    tensor->rank = rank;
    for (int d = 0; d < rank; d++) {
        tensor->dims[d] = (Dim){0, dims[d]};
        count *= dims[d];
    }
    return count;
}

static inline int input_of(Dtype dtype, const void *data, int rank, const int64_t *dims) {
    Tensor tensor = {.kind = TENSOR_INPUT, .name = arena_printf(arena, "input%d", graph.n_inputs), .dtype = dtype};
    sizes(&tensor, rank, dims);
    int t = graph_tensor(arena, &graph, tensor);
    /* A role tells the arrays apart. The interpreter asks nothing else of these. */
    static const InputRole roles[MAX_GRAPH_INPUTS] = {IN_tokens,   IN_segments, IN_source, IN_target,
                                                      IN_features, IN_pixels,   IN_query,  IN_key};
    const InputRole role = roles[graph.n_inputs];
    arrays[graph.n_inputs] = (InputArray){role, dtype, dims[0], data};
    graph.inputs[graph.n_inputs++] =
        (GraphInput){.kind = &input_kinds[role], .tensor = t};
    return t;
}

#define OP_TEST(f) TEST_WITH(begin_graph, f)
#define DIMS(...) (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__}
#define FLOATS(data, ...) input_of(DTYPE_F32, data, DIMS(__VA_ARGS__))
#define A(...) ((OpAttributes){__VA_ARGS__})

/* Numbers around 0 with a spread of about 1; the same for the same name. */
static inline float *drawn(const char *name, int64_t count) {
    float *out = arena_array(arena, (size_t)count, sizeof *out);
    random_normal(77, name, 0.1, 1, count, out);
    return out;
}

/* The result's number in the graph. */
static inline int add_op(OpKind kind, OpAttributes a, int n, const int *inputs, int rank, const int64_t *dims) {
    Tensor result = {.name = "result", .dtype = DTYPE_F32};
    sizes(&result, rank, dims);
    const Op op = {.kind = kind, .inputs = inputs, .n_inputs = n, .a = a, .where = "test"};
    return graph_op(arena, &graph, op, result);
}

static inline const double *run(OpKind kind, OpAttributes a, int n, const int *inputs, int rank, const int64_t *dims) {
    int t = add_op(kind, a, n, inputs, rank, dims);
    verify(&module, &graph, "test_interp");
    Weights none = {0};
    Interpretation *in = interpret(arena, &module, &graph, &none, arrays, graph.n_inputs, (int64_t[4]){past});
    return in->tensors[t];
}

#define RUN(kind, a, inputs, ...) run(OP_##kind, a, (int)(sizeof(inputs) / sizeof(int)), inputs, DIMS(__VA_ARGS__))
#define INPUTS(...) ((int[]){__VA_ARGS__})

static inline void near(double found, double wanted) {
    if (isnan(wanted)   ? !isnan(found)
        : isinf(wanted) ? found != wanted
                        : !(fabs(found - wanted) <= 1e-12 * (1 + fabs(wanted))))
        fail_msg("%.17g is not %.17g", found, wanted);
}

#endif
