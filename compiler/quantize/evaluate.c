/* evaluate.c: interprets the model with a choice for each unit, and compares its output with that of f32. */
#include "quantize.h"

#include <math.h>

Compilation chosen_spec(Arena *arena, const Quantization *q, const int *chosen) {
    Compilation c = compilation_quiet(arena, q->source);
    if (!compile_until(&c, STAGE_MODEL)) bug("the spec has errors only the second time");
    int n = 0;
    const Unit *units = units_of(arena, c.model, &n);
    if (n != q->n_units) bug("the model has %d units, and had %d", n, q->n_units);
    units_set(q, units, chosen);
    compile_until(&c, STAGE_REWRITE);
    return c;
}

const float *chosen_vector(const Quantization *q, const WeightTable *table, int weight, const int *chosen) {
    for (size_t i = 0; i < table->count; i++) {
        if (table->specs[i].smoothing != weight + 1) continue;
        const WeightSpec *own = weight_spec_find(&q->f32->module->weights, table->specs[i].name);
        for (int k = 0; k < q->n_matrices; k++) {
            const Matrix *m = &q->matrices[k];
            if (&q->f32->module->weights.specs[m->weight] == own) return q->sets[m->set].vectors[chosen[m->unit]];
        }
    }
    bug("no matrix is smoothed by `%s`", table->specs[weight].name);
}

static Weights *chosen_weights(Arena *arena, Quantization *q, const WeightTable *table, const int *chosen) {
    Weights *weights = weights_new(arena, table);
    const WeightTable *f32 = &q->f32->module->weights;
    for (size_t i = 0; i < table->count; i++) {
        const WeightSpec *own = weight_spec_find(f32, table->specs[i].name);
        weights->data[i] = own ? q->weights->data[own - f32->specs] : chosen_vector(q, table, (int)i, chosen);
        for (int m = 0; m < q->n_matrices && own; m++) {
            Matrix *matrix = &q->matrices[m];
            if (&f32->specs[matrix->weight] != own) continue;
            weights->data[i] = matrix_rounded(q, matrix, chosen[matrix->unit]);
            weights->scaling[i] = matrix->scaling[chosen[matrix->unit]];
        }
    }
    return weights;
}

/* The largest error of the rows of one sequence; infinite where a number is not finite. */
static double sequence_error(const Quantization *q, const Interpretation *run, const float *reference) {
    const OutputArray *output = run->outputs;
    while (output->role != q->task->output || output->layer >= 0) output++;
    const int64_t columns = output->shape.dims[output->shape.rank - 1];
    int64_t count = 0;
    shape_elements(output->shape, &count);
    Arena *own = arena_new();
    float *row = arena_array(own, (size_t)columns, sizeof *row);
    double most = 0;
    for (int64_t at = 0; at < count; at += columns) {
        bool finite = true;
        for (int64_t c = 0; c < columns; c++) {
            row[c] = (float)output->data[at + c];
            finite &= isfinite(row[c]) != 0;
        }
        double error = INFINITY;
        if (finite && q->task->kind == ERROR_KL) error = measure_divergence(row, reference + at, columns);
        else if (finite && q->task->kind == ERROR_REL) error = measure_row(row, reference + at, columns).rel;
        else if (finite) error = measure_row(row, reference + at, columns).cos;
        most = fmax(most, error);
    }
    arena_free(own);
    return most;
}

double model_error(Quantization *q, const int *chosen, int64_t stride, double limit) {
    Arena *arena = arena_new();
    const Compilation spec = chosen_spec(arena, q, chosen);
    const Weights *weights = chosen_weights(arena, q, &spec.module->weights, chosen);
    const int64_t n = ceil_div(q->batch->count, stride), first = q->worst % stride ? 0 : q->worst / stride;
    double most = 0;
    for (int64_t i = 0; i < n && most <= limit; i++) {
        const int64_t b = (first + i) % n * stride;
        const Sequence *s = &q->batch->sequences[b];
        Arena *own = arena_new();
        const Graph *forward = spec.module->entries[ENTRY_FORWARD];
        const Interpretation *run =
            interpret(own, spec.module, forward, weights, s->inputs, s->n_inputs, s->symbols);
        const double error = sequence_error(q, run, q->reference[b]);
        if (error > most) most = error, q->worst = b;
        arena_free(own);
    }
    arena_free(arena);
    return most;
}
