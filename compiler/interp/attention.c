/* attention.c: scores, softmax and weighted sums, in double. Where the weights of a softmax are rounded, the C may
 * round a weight near the middle of two numbers to the other one. The interpreter then goes on from the C's weighted
 * sums, after it has held each number against its own. */
#include "numbers.h"
#include "quantize.h"

#include <float.h>
#include <math.h>

void run_scores(Interp *in, const Op *op, Numbers query, Numbers key, Numbers vector, double *out) {
    const bool additive = op->kind == OP_additive_scores;
    const int64_t heads = extent(in, op->result, 0), n = extent(in, op->result, 1), m = extent(in, op->result, 2);
    const int64_t kv_heads = additive ? 1 : op->a.kv_heads, group = heads / kv_heads;
    const int64_t d = extent(in, op->inputs[0], 1) / heads;
    for (int64_t h = 0; h < heads; h++)
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < m; j++) {
                const int64_t q = (i * heads + h) * d, k = (j * kv_heads + h / group) * d;
                double sum = 0;
                for (int64_t c = 0; c < d; c++)
                    sum += additive ? at(vector, c) * tanh(at(query, q + c) + at(key, k + c))
                                    : at(query, q + c) * at(key, k + c);
                if (!additive) sum = rounded_dot(&in->rounding, sum, query, q, key, k, d);
                out[(h * n + i) * m + j] = op->a.scale * sum;
            }
}

void run_distance_scores(Interp *in, const Op *op, Numbers scores, Numbers rows, Numbers table, double *out) {
    const OpAttributes *a = &op->a;
    const int64_t n = extent(in, op->result, 1), m = extent(in, op->result, 2), past = past_of(in, a);
    const int64_t width = extent(in, op->inputs[2], 2);
    const bool by_head = extent(in, op->inputs[2], 0) > 1;
    const int64_t d = a->head_dim, heads = a->by_key ? a->kv_heads : a->heads, group = a->heads / heads;
    for (int64_t r = 0; r < a->heads * n * m; r++) {
        const int64_t h = r / (n * m), i = r / m % n, j = r % m;
        const int64_t row = ((a->by_key ? j : i) * heads + h / group) * d;
        const int64_t column = (by_head ? h * d : 0) * width + j - past - i + a->offset;
        double sum = 0, magnitude = 0;
        for (int64_t c = 0; c < d; c++) {
            const double product = at(rows, row + c) * at(table, column + c * width);
            sum += product, magnitude += fabs(product);
        }
        if (in->rounding.state) sum = round_sum(&in->rounding, sum, magnitude);
        out[r] = a->scale * (at(scores, r) + sum);
    }
}

/* The greatest of `most` and the visible ones of m scores from `row` on; NaN if one of these is. */
static double greatest(Numbers scores, int64_t row, const bool *visible, int64_t m, double most) {
    for (int64_t j = 0; j < m; j++)
        if (is_visible(visible, row + j) && !(at(scores, row + j) <= most)) most = at(scores, row + j);
    return most;
}

static double weight_without_sum(Weighing weighing, double score) {
    return weighing == WEIGHING_SIGMOID ? 1 / (1 + exp(-score)) : score;
}

static const double LOG2_E = 1.4426950408889634;

/* How far the C's scores of a softmax may be from the interpreter's, whose largest absolute value is `size`. A score of
 * f32 is within a tenth of the bound on results, unless rounding moves it farther. */
static double score_error(const Interp *in, const Op *op, double size) {
    return fmax(2e-6 * (1 + size), in->spreads ? 8 * in->spreads[op->inputs[0]] : 0);
}

/* The largest absolute value of m visible scores from `row` on; infinite and NaN ones do not count. */
static double size_of_scores(Numbers scores, int64_t row, const bool *visible, int64_t m) {
    double size = 0;
    for (int64_t j = 0; j < m; j++)
        if (is_visible(visible, row + j) && isfinite(at(scores, row + j)))
            size = fmax(size, fabs(at(scores, row + j)));
    return size;
}

/* Rounds m weights, and sets how far the C's may be from them, whose powers of 2 may have another relative `error`. */
static void round_weights(double *weights, int64_t m, double error, double *doubts) {
    for (int64_t j = 0; j < m; j++) {
        const double around[] = {weights[j], weights[j] * (1 - error), weights[j] * (1 + error)};
        double rounded[3];
        round_row(DTYPE_BF16, around, 3, rounded);
        weights[j] = rounded[0];
        if (doubts) doubts[j] = fmax(rounded[2] - rounded[0], rounded[0] - rounded[1]);
    }
}

/* A weight in bf16 is a rounded power of 2, whose exponent a whole number keeps at 0 or below: rounding is the same for
 * all such numbers. */
static double power_of(const Op *op, double score, double most) {
    return op->a.dtype == DTYPE_BF16 ? exp2(score * LOG2_E - ceil(most * LOG2_E)) : exp(score - most);
}

void run_softmax(Interp *in, const Op *op, Numbers scores, const Numbers *sink, double *out) {
    const int64_t heads = extent(in, op->result, 0), n = extent(in, op->result, 1), m = extent(in, op->result, 2);
    const bool *visible = visible_pairs(in, op, heads, n, m), rounds = op->a.dtype == DTYPE_BF16;
    double *doubts = rounds && in->given ? arena_array(in->arena, (size_t)(heads * n * m), sizeof *doubts) : NULL;
    in->numbers[op->result].doubts = doubts;
    if (op->a.weighing) {
        for (int64_t r = 0; r < heads * n * m; r++)
            if (is_visible(visible, r)) out[r] = weight_without_sum(op->a.weighing, at(scores, r));
        return;
    }
    for (int64_t r = 0; r < heads * n; r++) {
        const int64_t row = r * m;
        const double most = greatest(scores, row, visible, m, sink ? at(*sink, r / n) : -INFINITY);
        double sum = sink ? power_of(op, at(*sink, r / n), most) : 0;
        for (int64_t j = 0; j < m; j++)
            out[row + j] = is_visible(visible, row + j) ? power_of(op, at(scores, row + j), most) : 0;
        if (rounds)
            round_weights(out + row, m, score_error(in, op, size_of_scores(scores, row, visible, m)),
                          doubts ? doubts + row : NULL);
        for (int64_t j = 0; j < m; j++) sum += out[row + j];
        for (int64_t j = 0; j < m; j++) {
            if (!is_visible(visible, row + j)) continue;
            out[row + j] /= sum;
            if (doubts) doubts[row + j] /= sum;
        }
    }
}

void run_log_sum(const Interp *in, const Op *op, Numbers scores, const Numbers *sink, double *out) {
    const int64_t heads = extent(in, op->result, 0), n = extent(in, op->result, 1), m = extent(in, op->inputs[0], 2);
    const bool *visible = visible_pairs(in, op, heads, n, m);
    for (int64_t r = 0; r < heads * n; r++) {
        double most = greatest(scores, r * m, visible, m, sink ? at(*sink, r / n) : -INFINITY), sum = 0;
        bool sees = false;
        for (int64_t j = 0; j < m; j++) {
            if (!is_visible(visible, r * m + j)) continue;
            sum += exp(at(scores, r * m + j) - most);
            sees = true;
        }
        if (sink) sum += exp(at(*sink, r / n) - most);
        out[r] = !sees || most == -INFINITY ? -INFINITY : most + log(sum);
    }
}

/* The largest absolute value of x[i..i+d-1]; NaN does not count. */
static double largest(Numbers x, int64_t i, int64_t d) {
    double most = 0;
    for (int64_t c = 0; c < d; c++) most = fmax(most, fabs(at(x, i + c)));
    return most;
}

void run_weighted_sum(const Interp *in, const Op *op, Numbers weights, Numbers value, double *out) {
    const OpAttributes *a = &op->a;
    const int64_t n = extent(in, op->result, 0), m = extent(in, op->inputs[0], 2);
    const int64_t d = a->head_dim, group = a->heads / a->kv_heads;
    const bool *visible = visible_pairs(in, op, a->heads, n, m);
    for (int64_t h = 0; h < a->heads; h++)
        for (int64_t i = 0; i < n; i++) {
            double *row = out + (i * a->heads + h) * d, size = 0;
            for (int64_t j = 0; j < m; j++) {
                if (!is_visible(visible, (h * n + i) * m + j)) continue;
                double p = at(weights, (h * n + i) * m + j);
                for (int64_t c = 0; c < d; c++) row[c] += p * at(value, (j * a->kv_heads + h / group) * d + c);
                const double most = a->weighing ? fabs(p) : 1;
                if (in->rounding.state) size += most * largest(value, (j * a->kv_heads + h / group) * d, d);
            }
            for (int64_t c = 0; c < d && sum_overflows(&in->rounding, size); c++) row[c] = NAN;
        }
}

/* The values of a head of keys: where they begin, the number of keys, of columns, and of numbers from key to key, and
 * the largest of each key. */
typedef struct HeadValues {
    Numbers numbers;
    int64_t first, keys, columns, step;
    const double *largest;
} HeadValues;

static HeadValues head_values(const Interp *in, const Op *op, Numbers value, int64_t kv_head) {
    const int64_t d = op->a.head_dim, step = op->a.kv_heads * d, m = extent(in, op->inputs[0], 2);
    double *most = arena_array(in->arena, (size_t)m, sizeof *most);
    for (int64_t j = 0; j < m; j++) most[j] = largest(value, j * step + kv_head * d, d);
    return (HeadValues){value, kv_head * d, m, d, step, most};
}

/* Compares the C's sums of a row with those of `own`. A weight that the C rounds to another number also changes
 * the sum by which the row is divided. */
static void compare_sums(const HeadValues *v, const double *weights, const double *doubts, double allowed,
                         const double *own, const float *given, QuantizeReport *report) {
    double size = 0;
    for (int64_t j = 0; j < v->keys; j++)
        if (weights[j] > 0) size += v->largest[j];
    for (int64_t c = 0; c < v->columns; c++) {
        const double got = (double)given[c];
        double by = allowed;
        for (int64_t j = 0; j < v->keys; j++)
            if (doubts[j] > 0) by += doubts[j] * (fabs(at(v->numbers, v->first + j * v->step + c)) + fabs(own[c]));
        const bool same = isnan(own[c]) ? isnan(got) : isinf(own[c]) ? got == own[c] : fabs(got - own[c]) <= by;
        report->wrong += !same && !(size > (double)FLT_MAX);
    }
}

void adopt_weighted_sum(Interp *in, const Op *op, Numbers weights, Numbers value, double *out) {
    const QuantizedRows *rows = in->given ? &in->given[op->result] : NULL;
    if (op->a.dtype != DTYPE_BF16 || !rows || !rows->data) return;
    const OpAttributes *a = &op->a;
    const int64_t n = extent(in, op->result, 0), m = extent(in, op->inputs[0], 2), d = a->head_dim;
    const int64_t group = a->heads / a->kv_heads;
    double most = 0;
    for (int64_t i = 0; i < n * a->heads * d; i++)
        if (isfinite(out[i])) most = fmax(most, fabs(out[i]));
    HeadValues values = {0};
    for (int64_t h = 0; h < a->heads; h++)
        for (int64_t i = 0; i < n; i++) {
            const float *given = (const float *)(const void *)(rows->data + i * rows->stride) + h * d;
            const int64_t row = (h * n + i) * m;
            double *own = out + (i * a->heads + h) * d;
            if (i == 0 && h % group == 0) values = head_values(in, op, value, h / group);
            if (in->report)
                compare_sums(&values, weights.real + row, weights.doubts + row, 2e-5 * (1 + most), own, given,
                             in->report);
            for (int64_t c = 0; c < d; c++) own[c] = (double)given[c];
        }
}
