/* constant.c: finds outputs of the interpreter that are the same for all inputs. */
#include "check.h"

#include <string.h>

bool check_inputs_differ(const Graph *g, const Batch *const *batches, int n, bool of_source) {
    for (int i = 0; i < g->n_inputs; i++) {
        const InputKind *kind = g->inputs[i].kind;
        const InputRole role = kind->role;
        const Tensor *t = &g->tensors[g->inputs[i].tensor];
        const uint8_t *first = NULL;
        if (kind->rows == PER_PAIR || input_is_number(kind) || (of_source && !g->inputs[i].of_source)) continue;
        for (int k = 0; k < n; k++)
            for (int64_t b = 0; b < batches[k]->count; b++) {
                const Sequence *s = &batches[k]->sequences[b];
                const InputArray *a = sequence_input(s, role);
                if (!a || !a->rows) continue;
                const uint8_t *at = a->data;
                const size_t each = (size_t)(sequence_items(s, t) / a->rows) * dtype_bytes(t->dtype);
                if (!first) first = at;
                for (int64_t row = 0; row < a->rows; row++)
                    if (memcmp(first, at + (size_t)row * each, each) != 0) return true;
            }
    }
    return false;
}

static bool equal_rows(const double *a, const double *b, int64_t columns) {
    int64_t i = 0;
    while (i < columns && (float)a[i] == (float)b[i]) i++; /* no number equals NaN */
    return i == columns;
}

/* Whether all rows of an output are equal in all sequences, of which there are at least two. */
static bool is_constant(const Cases *c, const Graph *g, int output, int64_t *rows) {
    const int64_t columns = g->tensors[g->outputs[output].tensor].dims[1].n;
    const double *first = NULL;
    int64_t sequences = 0;
    *rows = 0;
    for (int k = 0; k < c->count; k++)
        for (int64_t b = 0; b < c->list[k].batch->count; b++) {
            const Sequence *s = &c->list[k].batch->sequences[b];
            if (!s->outputs) continue;
            const OutputArray *out = &s->outputs[output];
            if (!first) first = out->data;
            for (int64_t row = 0; row < out->shape.dims[0]; row++)
                if (!equal_rows(first, out->data + row * columns, columns)) return false;
            *rows += out->shape.dims[0];
            sequences++;
        }
    return sequences > 1 && columns > 1;
}

const char *check_constant(Arena *arena, const Cases *c, const Graph *g) {
    const Batch *batches[MOST_CASES];
    for (int k = 0; k < c->count; k++) batches[k] = c->list[k].batch;
    for (int o = 0; o < g->n_outputs; o++) {
        const GraphOutput *out = &g->outputs[o];
        int64_t rows;
        if (out->layer >= 0 || !is_constant(c, g, o, &rows)) continue;
        if (!check_inputs_differ(g, batches, c->count, out->role == OUT_encoder_hidden)) continue;
        return arena_printf(arena, "the output `%s` is the same in all of %lld rows, and the inputs differ", out->name,
                            (long long)rows);
    }
    return NULL;
}
