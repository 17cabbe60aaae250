/* calibrate.c: finds the matrices of the f32 model, interprets it on each calibration sequence, and keeps the output,
 * the largest magnitudes of the columns that products read, and some of their rows. */
#include "quantize.h"

#include <math.h>
#include <string.h>

enum { MOST_KEPT = 256 }; /* rows of a set */

static int unit_of(const Quantization *q, const Precision *precision) {
    for (int u = 0; u < q->n_units; u++)
        for (int p = 0; p < q->units[u].n_places; p++)
            if (q->units[u].places[p] == precision) return u;
    bug("a matrix has a precision of no unit");
}

/* The matrix of a weight of the f32 table, which is added if there is none. */
static Matrix *matrix_of(Quantization *q, int *room, int weight) {
    for (int m = 0; m < q->n_matrices; m++)
        if (q->matrices[m].weight == weight) return &q->matrices[m];
    const size_t choices = (size_t)q->task->n_choices;
    q->matrices = arena_grow(q->arena, q->matrices, q->n_matrices, room, sizeof *q->matrices);
    Matrix *matrix = &q->matrices[q->n_matrices++];
    *matrix = (Matrix){.weight = weight,
                       .unit = unit_of(q, q->f32->module->weights.specs[weight].precision),
                       .set = NO_ROWS,
                       .rounded = arena_array(q->arena, choices, sizeof *matrix->rounded),
                       .scaling = arena_array(q->arena, choices, sizeof(Scaling))};
    return matrix;
}

/* The mean number of rows that a call has of a dimension. A decoder with a state goes on by one row a call, but for
 * those of its source. */
static double mean_rows(const Quantization *q, Dim dim) {
    const Module *module = q->f32->module;
    const Graph *g = module->entries[ENTRY_FORWARD];
    if (!dim.symbol) return (double)dim.n;
    const bool source = module->entries[ENTRY_ENCODE] && strcmp(g->symbols[dim.symbol - 1].name, "src") == 0;
    if (module->entries[ENTRY_DECODE] && !source) return 1;
    double sum = 0;
    for (int64_t b = 0; b < q->batch->count; b++) sum += (double)sequence_extent(&q->batch->sequences[b], dim);
    return sum / (double)q->batch->count;
}

/* Adds the rows of a product. Each row is multiplied by the matrices of its experts, which are taken to differ as long
 * as there are others; errors are of all rows with all experts. */
static void count_rows(Matrix *matrix, const Op *op, double rows) {
    const Experts *e = op->a.experts;
    const double share = e ? (double)e->top / (double)e->count : 1;
    matrix->rows += rows * share;
    matrix->share = fmin(1, fmax(matrix->share, e ? rows * share : 1));
}

/* The rows that a set gets of a tensor's row: several where it has a part for each expert. */
static int64_t parts_of(const Tensor *tensor, const RowSet *set) { return tensor->dims[1].n / set->k; }

/* Finds the matrices, and gives those that read the same rows, or share their weights with such, one set. of_tensor is
 * set to the set of each tensor of the graph, or NO_ROWS. */
static void find_matrices(Quantization *q, int *of_tensor) {
    const Graph *g = q->f32->module->entries[ENTRY_FORWARD];
    int room = 0, room_sets = 0;
    for (int o = 0; o < g->n_ops; o++) {
        const Op *op = &g->ops[o];
        if (!op_is_product(op->kind) && op->kind != OP_embed) continue;
        const int weight = g->tensors[op->inputs[1]].weight, x = op->inputs[0];
        const WeightSpec *spec = &q->f32->module->weights.specs[weight];
        if (!spec->precision) continue;
        Matrix *matrix = matrix_of(q, &room, weight);
        if (op->kind == OP_embed) {
            matrix->looked_up = true;
            matrix->looked += mean_rows(q, g->tensors[x].dims[0]);
            continue;
        }
        count_rows(matrix, op, mean_rows(q, g->tensors[x].dims[0]));
        if (of_tensor[x] == NO_ROWS) of_tensor[x] = matrix->set;
        if (of_tensor[x] == NO_ROWS) {
            q->sets = arena_grow(q->arena, q->sets, q->n_sets, &room_sets, sizeof *q->sets);
            q->sets[of_tensor[x] = q->n_sets++] = (RowSet){.k = weight_columns(spec)};
        }
        if (matrix->set != NO_ROWS && matrix->set != of_tensor[x]) bug("a matrix reads rows of two sets");
        matrix->set = of_tensor[x];
    }
}

static void make_room(Quantization *q, const int *of_tensor) {
    const Graph *g = q->f32->module->entries[ENTRY_FORWARD];
    int64_t *total = arena_array(q->arena, (size_t)q->n_sets + 1, sizeof *total);
    for (int t = 0; t < g->n_tensors; t++)
        for (int64_t b = 0; b < q->batch->count && of_tensor[t] != NO_ROWS; b++)
            total[of_tensor[t]] += sequence_extent(&q->batch->sequences[b], g->tensors[t].dims[0]) *
                                   parts_of(&g->tensors[t], &q->sets[of_tensor[t]]);
    for (int s = 0; s < q->n_sets; s++) {
        RowSet *set = &q->sets[s];
        set->stride = ceil_div(total[s], MOST_KEPT);
        set->room = ceil_div(total[s], set->stride);
        set->kept = arena_array(q->arena, (size_t)(set->room * set->k), sizeof *set->kept);
        set->most = arena_array(q->arena, (size_t)set->k, sizeof *set->most);
        set->vectors = arena_array(q->arena, (size_t)q->task->n_choices, sizeof *set->vectors);
    }
}

static void keep_rows(RowSet *set, const double *real, const float *single, int64_t rows) {
    for (int64_t i = 0; i < rows; i++) {
        const bool kept = set->seen++ % set->stride == 0;
        for (int64_t c = 0; c < set->k; c++) {
            const float x = single ? single[i * set->k + c] : (float)real[i * set->k + c];
            if (fabsf(x) > set->most[c]) set->most[c] = fabsf(x);
            if (kept) set->kept[set->n_kept * set->k + c] = x;
        }
        set->n_kept += kept;
    }
}

/* The rows of an input of floats; an absent one is another's, as the values of attention alone are its keys. */
static const float *input_rows(const Sequence *s, const InputKind *kind) {
    const InputArray *array = sequence_input(s, kind->role);
    if (!array && kind->absent == ABSENT_THE_KEYS) array = sequence_input(s, IN_key);
    if (!array) bug("the input `%s` has no rows", kind->name);
    return array->data;
}

/* The output of the task as floats. */
static const float *output_of(const Quantization *q, const Interpretation *run) {
    for (int o = 0; o < run->n_outputs; o++) {
        const OutputArray *output = &run->outputs[o];
        if (output->role != q->task->output || output->layer >= 0) continue;
        int64_t count = 0;
        shape_elements(output->shape, &count);
        float *out = arena_array(q->arena, (size_t)count, sizeof *out);
        for (int64_t i = 0; i < count; i++) {
            out[i] = (float)output->data[i];
            if (!isfinite(out[i]))
                fail("the output `%s` holds NaN or infinity in f32", output_name(q->task->output));
        }
        return out;
    }
    bug("the model has no output `%s`", output_name(q->task->output));
}

void calibrate(Quantization *q) {
    const Module *module = q->f32->module;
    const Graph *g = module->entries[ENTRY_FORWARD];
    int *of_tensor = arena_array(q->arena, (size_t)g->n_tensors, sizeof *of_tensor);
    for (int t = 0; t < g->n_tensors; t++) of_tensor[t] = NO_ROWS;
    find_matrices(q, of_tensor);
    make_room(q, of_tensor);
    q->reference = arena_array(q->arena, (size_t)q->batch->count, sizeof *q->reference);
    progress_begin("interpreting %s in f32", module->model->name);
    for (int64_t b = 0; b < q->batch->count; b++) {
        const Sequence *s = &q->batch->sequences[b];
        Arena *own = arena_new();
        progress_at(b, q->batch->count, "sequences");
        const Interpretation *run =
            interpret(own, module, g, q->weights, s->inputs, s->n_inputs, s->symbols);
        q->reference[b] = output_of(q, run);
        for (int t = 0; t < g->n_tensors; t++) {
            if (of_tensor[t] == NO_ROWS) continue;
            const float *single = NULL;
            for (int i = 0; i < g->n_inputs; i++)
                if (g->inputs[i].tensor == t) single = input_rows(s, g->inputs[i].kind);
            RowSet *set = &q->sets[of_tensor[t]];
            keep_rows(set, run->tensors[t], single,
                      sequence_extent(s, g->tensors[t].dims[0]) * parts_of(&g->tensors[t], set));
        }
        arena_free(own);
    }
    progress_end();
}
