/* distances.c: the tables of `position content`, which hold a vector for each head and each distance of a key from a
 * query. They depend on weights alone and are computed when these are packed, not in a call. */
#include "../attnc.h"

#include <math.h>

/* DeBERTa (He et al. 2021, arXiv:2006.03654): near distances have a row each, those up to `logarithmic` share the outer
 * half of the rows. The logarithm is in single precision, as in the training of the published models. `distance` is
 * the position of the query minus that of the key. */
static int64_t row_of(const Position *p, int64_t distance) {
    const int64_t near = p->rows / 4, far = distance < 0 ? -distance : distance;
    int64_t bucket = far;
    if (p->logarithmic && far > near) {
        float part = (float)portable_log((double)((float)far / (float)near));
        part /= (float)portable_log((double)(float)((double)(p->logarithmic - 1) / (double)near));
        bucket = near + (int64_t)ceilf(part * (float)(near - 1));
    }
    const int64_t row = p->rows / 2 + (distance < 0 ? -bucket : bucket);
    return row < 0 ? 0 : row < p->rows ? row : p->rows - 1;
}

/* row [n] -> out [n], as a norm of rows has it. */
static void normalized(const Norm *norm, const DistanceSources *s, const float *row, int64_t n, double *out) {
    double mean = 0, variance = 0;
    for (int64_t c = 0; c < n && norm->kind == NORM_layernorm; c++) mean += (double)row[c] / (double)n;
    for (int64_t c = 0; c < n; c++) variance += ((double)row[c] - mean) * ((double)row[c] - mean) / (double)n;
    const double root = 1 / sqrt(variance + norm->eps);
    for (int64_t c = 0; c < n; c++) {
        const double gain = (double)s->gain[c] + (norm->plus_one ? 1 : 0);
        out[c] = ((double)row[c] - mean) * root * gain + (s->shift ? (double)s->shift[c] : 0);
    }
}

/* What undoes the smoothing of column c, which the matrix holds divided by the vector's number, unless that is 0. */
static double smoothed(const DistanceSources *s, int64_t c) {
    return s->smooth && s->smooth[c] != 0 ? (double)s->smooth[c] : 1;
}

void distances_fill(const Derived *d, const DistanceSources *s, double *out) {
    const Position *p = d->position;
    const int64_t width = d->shape.dims[2], numbers = d->shape.dims[0] * d->shape.dims[1], origin = d->rows - 1;
    const int64_t columns = d->columns;
    Arena *arena = arena_new();
    double *row = arena_array(arena, (size_t)columns, sizeof *row);
    double *vector = arena_array(arena, (size_t)numbers, sizeof *vector);
    int64_t last = -1;
    for (int64_t t = 0; t < width; t++) {
        const int64_t r = row_of(p, origin - t);
        const float *from = s->table + r * columns;
        if (r != last) {
            for (int64_t c = 0; c < columns; c++) row[c] = (double)from[c];
            if (s->gain) normalized(&p->norm, s, from, columns, row);
            for (int64_t c = 0; c < columns && s->matrix; c++) row[c] *= smoothed(s, c);
            for (int64_t n = 0; n < numbers; n++) {
                double sum = s->matrix ? 0 : row[n];
                for (int64_t c = 0; c < columns && s->matrix; c++) sum += (double)s->matrix[n * columns + c] * row[c];
                vector[n] = sum + (s->bias ? (double)s->bias[n] : 0);
            }
        }
        last = r;
        for (int64_t n = 0; n < numbers; n++) out[n * width + t] = vector[n];
    }
    arena_free(arena);
}
