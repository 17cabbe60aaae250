/* compare.c: how the numbers of a call compare with the interpreter's, and by how much they may differ. */
#include "check.h"

#include <math.h>
#include <string.h>

/* The distance between a and b, counted in f32 numbers. */
static int64_t ulps_between(float a, float b) {
    int32_t i, j;
    memcpy(&i, &a, sizeof i);
    memcpy(&j, &b, sizeof j);
    int64_t x = i < 0 ? (int64_t)INT32_MIN - i : i, y = j < 0 ? (int64_t)INT32_MIN - j : j;
    return x > y ? x - y : y - x;
}

static double largest_of(const double *numbers, int64_t count) {
    double largest = 0;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(numbers[i]) && fabs(numbers[i]) > largest) largest = fabs(numbers[i]);
    return largest;
}

/* The distance between two results for the same number. */
static double apart(double a, double b) {
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b) ? 0 : INFINITY;
    return a == b ? 0 : fabs(a - b);
}

static bool one_bits(float a, float b) {
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
    return a == b && signbit(a) == signbit(b);
}

bool check_same_bits(const float *a, const float *b, int64_t count) {
    int64_t i = 0;
    while (i < count && one_bits(a[i], b[i])) i++;
    return i == count;
}

uint64_t check_bits(uint64_t seed, const float *a, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        const float one = isnan(a[i]) ? NAN : a[i];
        seed = hash_bytes(seed, &one, sizeof one);
    }
    return seed;
}

/* Raises spreads[t] to the largest movement of each tensor t that an op quantizes or rounds, and of scores whose
 * weights are rounded. */
static void raise_row_spreads(const Graph *graph, const Sequence *s, const Interpretation *still,
                              const Interpretation *moved, double steps, double *spreads) {
    for (int o = 0; o < graph->n_ops; o++) {
        const Op *op = &graph->ops[o];
        const int t = op->inputs[0];
        const Tensor *x = &graph->tensors[t];
        const bool weighs = op->kind == OP_softmax && op->a.dtype == DTYPE_BF16;
        if (op->kind != OP_quantize && op->kind != OP_round && !weighs) continue;
        const int64_t count = still->tensors[t] && moved->tensors[t] ? sequence_items(s, x) : 0;
        for (int64_t i = 0; i < count; i++)
            spreads[t] = fmax(spreads[t], apart(moved->tensors[t][i], still->tensors[t][i]) / steps);
    }
}

void check_spread(const Module *module, const Weights *weights, const Sequence *s, const QuantizedRows *rows,
                  Rounded how, const Interpretation *still, OutputArray *outputs, double *spreads) {
    const Graph *graph = module->entries[ENTRY_FORWARD];
    for (int run = 1; run <= how.runs; run++) {
        Arena *own = arena_new();
        const InterpretHow steps = {.rows = rows, .seed = (uint64_t)run, .steps = how.steps};
        const Interpretation *moved = sequence_interpret(own, module, weights, s, &steps);
        for (int o = 0; o < graph->n_outputs; o++) {
            const int64_t count = output_items(&outputs[o]);
            for (int64_t i = 0; i < count; i++)
                outputs[o].spread =
                    fmax(outputs[o].spread, apart(moved->outputs[o].data[i], still->outputs[o].data[i]) / how.steps);
        }
        if (spreads) raise_row_spreads(graph, s, still, moved, how.steps, spreads);
        arena_free(own);
    }
}

double check_spread_share(const OutputArray *output) {
    return output->spread / (1 + largest_of(output->data, output_items(output)));
}

int check_same_output(const Graph *of, const Graph *graph, int output) {
    const GraphOutput *wanted = &graph->outputs[output];
    int before = 0;
    for (int o = 0; o < output; o++)
        before += graph->outputs[o].role == wanted->role && graph->outputs[o].layer == wanted->layer;
    for (int o = 0; o < of->n_outputs; o++)
        if (of->outputs[o].role == wanted->role && of->outputs[o].layer == wanted->layer && before-- == 0) return o;
    bug("the interpreter has no output `%s`", wanted->name);
}

void check_compare(Difference *d, const float *got, int64_t stride, const double *want, int64_t rows, int64_t columns,
                   double spread) {
    double allowed = fmax(2e-5 * (1 + largest_of(want, rows * columns)), 8 * spread), most = 0;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) {
            double a = got[r * stride + c], b = want[r * columns + c], error = fabs(a - b);
            bool good;
            if (isnan(b) || isinf((float)b)) {
                good = isnan(b) ? isnan(a) : a == (double)(float)b;
                error = good ? 0 : INFINITY;
            } else {
                good = error <= allowed; /* false for NaN */
                if (isnan(error)) error = INFINITY;
                int64_t ulps = isfinite(a) ? ulps_between((float)a, (float)b) : INT32_MAX;
                if (ulps > d->ulps) d->ulps = ulps;
            }
            if (error > most) most = error;
            if (!good && d->bad++ == 0)
                d->row = r, d->column = c, d->got = isnan(a) ? NAN : a, d->want = isnan(b) ? NAN : b;
        }
    d->elements += rows * columns;
    if (most / allowed >= d->share) d->share = most / allowed, d->most = most, d->allowed = allowed;
}
