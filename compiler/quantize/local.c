/* local.c: the errors that choices make in the products of kept rows, each against the same product in f32, and the
 * vectors that make them small.
 *
 * A vector divides the columns of rows by s and multiplies those of matrices by s, where s_j is max|x_j|^a over
 * max|w_j|^(1 - a) (SmoothQuant: Xiao et al. 2022, arXiv:2211.10438): large columns of rows become smaller where those
 * of the matrices leave room. Of a few a, the one with the least error is taken. Columns that remain the largest become
 * outliers where a choice has such (as in LLM.int8(): Dettmers et al. 2022, arXiv:2208.07339, section 3.2). */
#include "quantize.h"

#include <math.h>
#include <string.h>

static const double exponents[] = {0.3, 0.45, 0.6, 0.75};

static const WeightSpec *spec_of(const Quantization *q, const Matrix *m) {
    return &q->f32->module->weights.specs[m->weight];
}

static const float *numbers_of(const Quantization *q, const Matrix *m) { return q->weights->data[m->weight]; }

const float *vector_in(const Quantization *q, const Matrix *m, int choice) {
    return m->looked_up || m->set == NO_ROWS ? NULL : q->sets[m->set].vectors[choice];
}

static void refuse_not_finite(const WeightSpec *spec, const float *numbers, int64_t count) {
    for (int64_t i = 0; i < count && dtype_has_scales(spec->type.dtype); i++)
        if (!isfinite(numbers[i]))
            fail("number %lld of `%s` is %s, and integers have no such number", (long long)i, spec->name,
                 isnan(numbers[i]) ? "NaN" : "infinite");
}

/* The numbers of a matrix in that precision, smoothed by the vector unless it is NULL. */
static const float *rounded(Arena *arena, const Quantization *q, const Matrix *m, const Precision *p,
                            const float *vector, Scaling *scaling) {
    WeightSpec spec = *spec_of(q, m);
    spec.type = p->weights;
    const float *numbers = numbers_of(q, m);
    int64_t count = 0;
    shape_elements(spec.shape, &count);
    refuse_not_finite(&spec, numbers, count);
    return weight_rounded(arena, &spec, numbers, vector, weight_squares(arena, q->weights, &spec), scaling);
}

/* Whether the numbers of a matrix are the same in two choices. */
static bool same_numbers(const Quantization *q, const Matrix *m, int a, int b) {
    const Precision *p = &q->task->choices[a].precision, *other = &q->task->choices[b].precision;
    return weight_type_equal(p->weights, other->weights) && vector_in(q, m, a) == vector_in(q, m, b);
}

bool same_model(const Quantization *q, int unit, int a, int b) {
    const Precision *p = &q->task->choices[a].precision, *other = &q->task->choices[b].precision;
    bool same = !q->units[unit].attends || (p->attention == other->attention && p->cache == other->cache);
    for (int i = 0; i < q->n_matrices && same; i++) {
        const Matrix *m = &q->matrices[i];
        if (m->unit != unit) continue;
        same = same_numbers(q, m, a, b) && (m->set == NO_ROWS || rows_dtype(p, p->weights.dtype) ==
                                                                    rows_dtype(other, other->weights.dtype));
    }
    return same;
}

const float *matrix_rounded(Quantization *q, Matrix *m, int choice) {
    Scaling *scaling = (Scaling *)m->scaling;
    for (int c = 0; c < q->task->n_choices && !m->rounded[choice]; c++)
        if (m->rounded[c] && same_numbers(q, m, choice, c)) {
            m->rounded[choice] = m->rounded[c];
            scaling[choice] = scaling[c];
        }
    if (m->rounded[choice]) return m->rounded[choice];
    const Precision *p = &q->task->choices[choice].precision;
    return m->rounded[choice] = rounded(q->arena, q, m, p, vector_in(q, m, choice), &scaling[choice]);
}

/* ---------------------------------------------------------------- products */

enum { BLOCK = 64 };

/* rows [n][k], matrix [N][k]: their product is added to out [n][N], with that sign. */
static void multiply(const float *rows, const float *matrix, int64_t n, int64_t k, int64_t N, float sign, float *out) {
    Arena *own = arena_new();
    float *block = arena_array(own, (size_t)(k * BLOCK), sizeof *block);
    for (int64_t from = 0; from < N; from += BLOCK) {
        const int64_t columns = N - from < BLOCK ? N - from : BLOCK;
        for (int64_t c = 0; c < columns; c++)
            for (int64_t j = 0; j < k; j++) block[j * BLOCK + c] = matrix[(from + c) * k + j];
        for (int64_t i = 0; i < n; i++) {
            float sum[BLOCK] = {0};
            for (int64_t j = 0; j < k; j++) {
                const float x = rows[i * k + j];
                for (int64_t c = 0; c < BLOCK; c++) sum[c] += x * block[j * BLOCK + c];
            }
            for (int64_t c = 0; c < columns; c++) out[i * N + from + c] += sign * sum[c];
        }
    }
    arena_free(own);
}

static double squares(const float *numbers, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += (double)numbers[i] * (double)numbers[i];
    return sum;
}

static double ratio(double apart, double size) { return size > 0 ? apart / size : apart > 0 ? 1 : 0; }

/* The kept rows as a product of that precision reads them. */
static const float *rows_in(Arena *arena, const RowSet *set, Dtype dtype, const float *vector) {
    float *out = arena_array(arena, (size_t)(set->n_kept * set->k), sizeof *out);
    double *row = arena_array(arena, (size_t)set->k, sizeof *row), *to = arena_array(arena, (size_t)set->k, sizeof *to);
    for (int64_t i = 0; i < set->n_kept; i++) {
        for (int64_t c = 0; c < set->k; c++)
            row[c] = (double)set->kept[i * set->k + c] * (vector ? (double)vector[c] : 1);
        row_in(dtype, row, set->k, to);
        for (int64_t c = 0; c < set->k; c++)
            out[i * set->k + c] = vector && vector[c] == 0 ? set->kept[i * set->k + c] : (float)to[c];
    }
    return out;
}

/* The square of the relative error of the matrix's product of the kept rows. `exact` is the product in f32. */
static double product_error(const Quantization *q, const Matrix *m, const Precision *p, const float *matrix,
                            const float *vector, const float *exact) {
    const RowSet *set = &q->sets[m->set];
    const int64_t N = weight_rows(spec_of(q, m)), count = set->n_kept * N;
    Arena *own = arena_new();
    float *apart = arena_array(own, (size_t)count, sizeof *apart);
    memcpy(apart, exact, (size_t)count * sizeof *apart);
    multiply(rows_in(own, set, rows_dtype(p, p->weights.dtype), vector), matrix, set->n_kept, set->k, N, -1, apart);
    const double error = ratio(squares(apart, count), squares(exact, count));
    arena_free(own);
    return error;
}

static const float *exact_product(Arena *arena, const Quantization *q, const Matrix *m) {
    const RowSet *set = &q->sets[m->set];
    const int64_t N = weight_rows(spec_of(q, m));
    float *exact = arena_array(arena, (size_t)(set->n_kept * N), sizeof *exact);
    multiply(set->kept, numbers_of(q, m), set->n_kept, set->k, N, 1, exact);
    return exact;
}

/* Of the table's rows, some of which may be looked up. */
static double table_error(const Quantization *q, const Matrix *m, const float *matrix) {
    const float *numbers = numbers_of(q, m);
    int64_t count = 0;
    double apart = 0;
    shape_elements(spec_of(q, m)->shape, &count);
    for (int64_t i = 0; i < count; i++) {
        const double by = (double)matrix[i] - (double)numbers[i];
        apart += by * by;
    }
    return ratio(apart, squares(numbers, count));
}

/* ---------------------------------------------------------------- vectors */

/* The numbers of a vector have 8 significant bits, so that what other functions of the C library make of the last bits
 * of an activation leaves the vector as it is. */
static float in_eight_bits(double x) {
    int exponent;
    const double part = frexp(x, &exponent);
    return (float)ldexp(nearbyint(part * 256), exponent - 8);
}

static float *ones(Arena *arena, int64_t k) {
    float *out = arena_array(arena, (size_t)k, sizeof *out);
    for (int64_t c = 0; c < k; c++) out[c] = 1;
    return out;
}

/* The vector of a set for an exponent. Columns that are 0 in all rows, or in all matrices, are left as they are; the
 * others have a geometric mean of 1. */
static float *vector_of(Arena *arena, const RowSet *set, const float *of_weights, double exponent) {
    enum { MOST = 20 }; /* powers of two from 1 */
    float *out = ones(arena, set->k);
    double *logs = arena_array(arena, (size_t)set->k, sizeof *logs), sum = 0;
    int64_t n = 0;
    for (int64_t c = 0; c < set->k; c++) {
        if (set->most[c] <= 0 || of_weights[c] <= 0) continue;
        logs[c] = (1 - exponent) * portable_log((double)of_weights[c]) - exponent * portable_log((double)set->most[c]);
        sum += logs[c];
        n++;
    }
    for (int64_t c = 0; c < set->k; c++) {
        if (set->most[c] <= 0 || of_weights[c] <= 0) continue;
        const double power = (logs[c] - sum / (double)n) / portable_log(2);
        out[c] = in_eight_bits(portable_pow(2, fmax(-MOST, fmin(MOST, power))));
    }
    return out;
}

/* Makes the n columns outliers that would be the largest after the vector. */
static void take_outliers(const RowSet *set, int n, float *vector) {
    for (int j = 0; j < n; j++) {
        int64_t largest = 0;
        for (int64_t c = 1; c < set->k; c++)
            if (set->most[c] * vector[c] > set->most[largest] * vector[largest]) largest = c;
        vector[largest] = 0;
    }
}

static bool smooths(const Precision *p) { return p->smooth && rows_dtype(p, p->weights.dtype) == DTYPE_I8; }

/* The largest magnitude of each column of the matrices that read the set's rows; false where all are looked up. */
static bool columns_of(const Quantization *q, int set, float *most) {
    bool any = false;
    for (int i = 0; i < q->n_matrices; i++) {
        const Matrix *m = &q->matrices[i];
        if (m->set != set || m->looked_up) continue;
        any = true;
        const int64_t N = weight_rows(spec_of(q, m)), k = q->sets[set].k;
        for (int64_t n = 0; n < N; n++)
            for (int64_t c = 0; c < k; c++) most[c] = fmaxf(most[c], fabsf(numbers_of(q, m)[n * k + c]));
    }
    return any;
}

/* The sum of the errors of the products of a set with that vector; `exact` are those in f32, which are made once. */
static double error_with(Quantization *q, int at, const Precision *p, const float *vector, const float **exact) {
    double error = 0;
    for (int i = 0; i < q->n_matrices; i++) {
        const Matrix *m = &q->matrices[i];
        if (m->set != at || m->looked_up) continue;
        Scaling scaling;
        Arena *once = arena_new();
        error += product_error(q, m, p, rounded(once, q, m, p, vector, &scaling), vector, exact[i]);
        arena_free(once);
    }
    return error;
}

/* The vector of the set for a choice: that of the exponent with the least sum of errors. Beside outliers, the other
 * columns may be left as they are. */
static const float *find_vector(Quantization *q, int at, const Precision *p, const float *of_weights,
                                const float **exact) {
    const RowSet *set = &q->sets[at];
    float *best = NULL;
    double least = INFINITY;
    const size_t n = sizeof exponents / sizeof *exponents;
    for (size_t e = 0; e < n + (p->outliers > 0); e++) {
        float *vector = e < n ? vector_of(q->arena, set, of_weights, exponents[e]) : ones(q->arena, set->k);
        take_outliers(set, p->outliers, vector);
        const double error = error_with(q, at, p, vector, exact);
        if (error < least) least = error, best = vector;
    }
    if (!best) bug("no exponent has an error");
    return best;
}

/* Sets the vectors of a set. Choices with as many outliers share that of the first. */
static void find_vectors(Quantization *q, int at) {
    RowSet *set = &q->sets[at];
    Arena *own = arena_new();
    float *of_weights = arena_array(own, (size_t)set->k, sizeof *of_weights);
    const float **exact = arena_array(own, (size_t)q->n_matrices, sizeof *exact);
    const bool any = columns_of(q, at, of_weights);
    for (int i = 0; i < q->n_matrices; i++)
        if (q->matrices[i].set == at && !q->matrices[i].looked_up) exact[i] = exact_product(own, q, &q->matrices[i]);
    for (int c = 0; c < q->task->n_choices && any; c++) {
        const Precision *p = &q->task->choices[c].precision;
        if (!smooths(p)) continue;
        for (int first = 0; first < c && !set->vectors[c]; first++)
            if (q->task->choices[first].precision.outliers == p->outliers) set->vectors[c] = set->vectors[first];
        if (!set->vectors[c]) set->vectors[c] = find_vector(q, at, p, of_weights, exact);
    }
    arena_free(own);
}

static void matrix_errors(Quantization *q, Matrix *m) {
    Arena *own = arena_new();
    const float *exact = m->set == NO_ROWS ? NULL : exact_product(own, q, m);
    double *errors = q->error + m->unit * q->task->n_choices;
    for (int c = 0; c < q->task->n_choices; c++) {
        const Precision *p = &q->task->choices[c].precision;
        const float *numbers = matrix_rounded(q, m, c);
        if (m->looked_up) errors[c] += table_error(q, m, numbers);
        if (!exact) continue;
        errors[c] += product_error(q, m, p, numbers, vector_in(q, m, c), exact);
    }
    arena_free(own);
}

void local_errors(Quantization *q) {
    bool any = false;
    for (int c = 0; c < q->task->n_choices; c++) any |= smooths(&q->task->choices[c].precision);
    progress_begin("smoothing rows");
    for (int s = 0; s < q->n_sets && any; s++) {
        progress_at(s, q->n_sets, "products");
        find_vectors(q, s);
    }
    progress_begin("trying %s", counted(q->arena, q->task->n_choices, "precision"));
    for (int m = 0; m < q->n_matrices; m++) {
        progress_at(m, q->n_matrices, "matrices");
        matrix_errors(q, &q->matrices[m]);
    }
    progress_end();
}
