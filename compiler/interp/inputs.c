/* inputs.c: refuses numbers of an input that are outside of its range. */
#include "numbers.h"

static void check_integers(const Graph *graph, const GraphInput *input, const int64_t *ids, int64_t n) {
    int64_t least, most;
    if (!graph_input_range(graph, input, &least, &most)) return;
    const char *what = graph_table_rows(graph, input) ? "id" : "the integer";
    for (int64_t i = 0; i < n; i++) {
        if (ids[i] >= least && ids[i] <= most) continue;
        if (input_is_number(input->kind))
            fail("input %s is %lld; it must be %lld to %lld", input->kind->name, (long long)ids[i], (long long)least,
                 (long long)most);
        fail("input %s: %s %lld at %lld is outside %lld to %lld", input->kind->name, what, (long long)ids[i],
             (long long)i, (long long)least, (long long)most);
    }
}

static void check_reals(const GraphInput *input, const float *numbers, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (graph_input_excludes(input, (double)numbers[i]))
            fail("input %s: the number %g at %lld is outside %g to %g", input->kind->name, (double)numbers[i],
                 (long long)i, input->range.low, input->range.high);
}

void check_input(const Graph *graph, const GraphInput *input, const void *data, int64_t count) {
    const Dtype dtype = graph->tensors[input->tensor].dtype;
    if (dtype == DTYPE_I64) check_integers(graph, input, data, count);
    if (dtype == DTYPE_F32) check_reals(input, data, count);
}
