/* batch.c: sequences, and how the interpreter runs them. */
#include "batch.h"

#include <string.h>

int64_t sequence_extent(const Sequence *s, Dim dim) { return dim.symbol ? s->symbols[dim.symbol - 1] : dim.n; }

const InputArray *sequence_input(const Sequence *s, InputRole role) {
    for (int i = 0; i < s->n_inputs; i++)
        if (s->inputs[i].role == role) return &s->inputs[i];
    return NULL;
}

int64_t sequence_items(const Sequence *s, const Tensor *t) {
    int64_t count = 1;
    for (int d = 0; d < t->rank; d++) count *= sequence_extent(s, t->dims[d]);
    return count;
}

Pieces batch_pieces(Arena *arena, const Graph *g, const Batch *batch) {
    int64_t most = 0, at[OUT_COUNT] = {0};
    for (int o = 0; o < g->n_outputs; o++) most += g->outputs[o].layer >= 0 ? g->outputs[o].n_heads : 1;
    Pieces pieces = {arena_array(arena, (size_t)(most * batch->count), sizeof(Piece)), 0};
    for (int64_t b = 0; b < batch->count; b++) {
        const Sequence *s = &batch->sequences[b];
        for (int o = 0; o < g->n_outputs; o++) {
            const GraphOutput *out = &g->outputs[o];
            const Dim *dims = g->tensors[out->tensor].dims;
            bool map = out->layer >= 0; /* [heads][n][m] */
            for (int64_t h = 0; h < (map ? out->n_heads : 1); h++) {
                Piece *p = &pieces.list[pieces.count++];
                *p = (Piece){.role = out->role,
                             .output = o,
                             .sequence = b,
                             .head = map ? out->heads[h] : -1,
                             .offset = at[out->role],
                             .rows = sequence_extent(s, dims[map]),
                             .columns = sequence_extent(s, dims[map + 1])};
                p->spread = s->outputs ? s->outputs[o].spread : 0;
                p->want = s->outputs ? s->outputs[o].data + (map ? p->head * p->rows * p->columns : 0) : NULL;
                at[out->role] += p->rows * p->columns;
            }
        }
    }
    return pieces;
}

int64_t output_items(const OutputArray *output) {
    int64_t count = 0;
    shape_elements(output->shape, &count);
    return count;
}

OutputArray *outputs_copy(Arena *arena, const Interpretation *from) {
    OutputArray *outputs = arena_array(arena, (size_t)from->n_outputs, sizeof *outputs);
    for (int o = 0; o < from->n_outputs; o++) {
        const size_t count = (size_t)output_items(&from->outputs[o]);
        double *kept = arena_array(arena, count, sizeof *kept);
        memcpy(kept, from->outputs[o].data, count * sizeof *kept);
        outputs[o] = from->outputs[o];
        outputs[o].data = kept;
    }
    return outputs;
}

Interpretation *sequence_interpret(Arena *arena, const Module *module, const Weights *weights, const Sequence *s,
                                   const InterpretHow *how) {
    const Graph *forward = module->entries[ENTRY_FORWARD];
    return interpret_as(arena, module, forward, weights, s->inputs, s->n_inputs, s->symbols, how);
}

int32_t *ids_narrow(Arena *arena, const int64_t *ids, int64_t count) {
    int32_t *out = arena_array(arena, (size_t)count, sizeof *out);
    for (int64_t i = 0; i < count; i++) out[i] = ids[i] < INT32_MIN || ids[i] > INT32_MAX ? -1 : (int32_t)ids[i];
    return out;
}

const void *ids_packed(Arena *arena, const InputKind *kind, const int64_t *ids, int64_t count) {
    return kind->wide ? (const void *)ids : ids_narrow(arena, ids, count);
}

void batch_interpret(Arena *arena, const Module *module, const Weights *weights, Arithmetic arithmetic,
                     Batch *batch) {
    progress_begin("interpreting %s", module->model->name);
    for (int64_t b = 0; b < batch->count; b++) {
        Sequence *s = &batch->sequences[b];
        progress_at(b, batch->count, "sequences");
        s->outputs =
            sequence_interpret(arena, module, weights, s, &(InterpretHow){.arithmetic = arithmetic})->outputs;
    }
    progress_end();
}
