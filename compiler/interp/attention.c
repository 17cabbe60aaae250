/* attention.c: scores, softmax and weighted sums, in double. */
#include "numbers.h"

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
static double greatest(Numbers scores, int64_t row, const bool *visible, int64_t pair, int64_t m, double most) {
    for (int64_t j = 0; j < m; j++)
        if (is_visible(visible, pair + j) && !(at(scores, row + j) <= most)) most = at(scores, row + j);
    return most;
}

static double weight_without_sum(Weighing weighing, double score) {
    return weighing == WEIGHING_SIGMOID ? 1 / (1 + exp(-score)) : score;
}

void run_softmax(const Interp *in, const Op *op, Numbers scores, const Numbers *sink, double *out) {
    const int64_t heads = extent(in, op->result, 0), n = extent(in, op->result, 1), m = extent(in, op->result, 2);
    const bool *visible = visible_pairs(in, op, n, m);
    if (op->a.weighing) {
        for (int64_t r = 0; r < heads * n * m; r++)
            if (is_visible(visible, r % (n * m))) out[r] = weight_without_sum(op->a.weighing, at(scores, r));
        return;
    }
    for (int64_t h = 0; h < heads; h++)
        for (int64_t i = 0; i < n; i++) {
            int64_t row = (h * n + i) * m;
            double most = greatest(scores, row, visible, i * m, m, sink ? at(*sink, h) : -INFINITY), sum = 0;
            bool sees = false;
            for (int64_t j = 0; j < m; j++) {
                bool seen = is_visible(visible, i * m + j);
                out[row + j] = seen ? exp(at(scores, row + j) - most) : 0;
                sum += out[row + j];
                sees |= seen;
            }
            if (sink) sum += exp(at(*sink, h) - most);
            for (int64_t j = 0; j < m && sees; j++)
                if (is_visible(visible, i * m + j)) out[row + j] /= sum;
        }
}

void run_log_sum(const Interp *in, const Op *op, Numbers scores, const Numbers *sink, double *out) {
    const int64_t heads = extent(in, op->result, 0), n = extent(in, op->result, 1), m = extent(in, op->inputs[0], 2);
    const bool *visible = visible_pairs(in, op, n, m);
    for (int64_t r = 0; r < heads * n; r++) {
        double most = greatest(scores, r * m, visible, r % n * m, m, sink ? at(*sink, r / n) : -INFINITY), sum = 0;
        bool sees = false;
        for (int64_t j = 0; j < m; j++) {
            if (!is_visible(visible, r % n * m + j)) continue;
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
    const bool *visible = visible_pairs(in, op, n, m);
    for (int64_t h = 0; h < a->heads; h++)
        for (int64_t i = 0; i < n; i++) {
            double *row = out + (i * a->heads + h) * d, size = 0;
            for (int64_t j = 0; j < m; j++) {
                if (!is_visible(visible, i * m + j)) continue;
                double p = at(weights, (h * n + i) * m + j);
                for (int64_t c = 0; c < d; c++) row[c] += p * at(value, (j * a->kv_heads + h / group) * d + c);
                const double most = a->weighing ? fabs(p) : 1;
                if (in->rounding.state) size += most * largest(value, (j * a->kv_heads + h / group) * d, d);
            }
            for (int64_t c = 0; c < d && sum_overflows(&in->rounding, size); c++) row[c] = NAN;
        }
}
