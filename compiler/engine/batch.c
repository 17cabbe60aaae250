/* batch.c: sequences, and how the interpreter runs them. */
#include "batch.h"

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

int32_t *ids_narrow(Arena *arena, const int64_t *ids, int64_t count) {
    int32_t *out = arena_array(arena, (size_t)count, sizeof *out);
    for (int64_t i = 0; i < count; i++) out[i] = ids[i] < INT32_MIN || ids[i] > INT32_MAX ? -1 : (int32_t)ids[i];
    return out;
}

void batch_interpret(Arena *arena, const Module *module, const Weights *weights, Arithmetic arithmetic,
                     Batch *batch) {
    progress_begin("interpreting %s", module->model->name);
    for (int64_t b = 0; b < batch->count; b++) {
        Sequence *s = &batch->sequences[b];
        progress_at(b, batch->count, "sequences");
        s->outputs = interpret_as(arena, module, module->entries[ENTRY_FORWARD], weights, s->inputs, s->n_inputs,
                                  s->symbols, &(InterpretHow){.arithmetic = arithmetic})->outputs;
    }
    progress_end();
}
