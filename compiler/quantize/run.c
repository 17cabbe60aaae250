/* run.c: the stages of attnc quantize between what it reads and what it writes. */
#include "quantize.h"

Quantization *quantize(Arena *arena, Source *source, const Compilation *f32, const Weights *weights,
                       const Batch *batch, const QuantizeTask *task) {
    Quantization *q = arena_alloc(arena, sizeof *q);
    *q = (Quantization){
        .arena = arena, .task = task, .source = source, .f32 = f32, .weights = weights, .batch = batch};
    q->units = units_of(arena, f32->model, &q->n_units);
    const size_t units = (size_t)q->n_units, choices = (size_t)task->n_choices;
    q->cost = arena_array(arena, units * choices, sizeof *q->cost);
    q->error = arena_array(arena, units * choices, sizeof *q->error);
    q->chosen = arena_array(arena, units, sizeof *q->chosen);
    for (int u = 0; u < q->n_units; u++) q->chosen[u] = -1;
    calibrate(q);
    for (int m = 0; m < q->n_matrices; m++) q->chosen[q->matrices[m].unit] = 0;
    local_errors(q);
    q->kept = search_choices(q);
    tidy_choices(q);
    return q;
}

const NamedTensor *quantize_vectors(Quantization *q, size_t *count) {
    const Compilation spec = chosen_spec(q->arena, q, q->chosen);
    const WeightTable *table = &spec.module->weights;
    NamedTensor *tensors = arena_array(q->arena, table->count, sizeof *tensors);
    *count = 0;
    for (size_t i = 0; i < table->count; i++)
        if (table->specs[i].smooths)
            tensors[(*count)++] =
                (NamedTensor){table->specs[i].name, table->specs[i].shape, chosen_vector(q, table, (int)i, q->chosen)};
    return tensors;
}

const char *quantized_text(const Quantization *q) {
    const Compilation chosen = chosen_spec(q->arena, q, q->chosen);
    return restated(q->arena, &chosen);
}
