/* fixed_attention.c: attention in the fixed order of f32 operations. The softmax takes FIXED_KEYS keys at a time; sums
 * of earlier blocks fade when a later one has a greater score, and the division by the sum comes last. */
#include "fixed.h"

#include <math.h>

static const float LOG2_E = 0x1.715476p+0f;

static float larger(float a, float b) { return a > b ? a : b; }

/* query [n][heads*d], key [m][kv_heads*d], or query [n][d], key [m][d] and vector [d] -> out [heads][n][m] */
void fixed_scores(Interp *in, const Op *op, double *out) {
    const bool additive = op->kind == OP_additive_scores;
    const Arithmetic way = in->arithmetic;
    const int64_t heads = extent(in, op->result, 0), n = extent(in, op->result, 1), m = extent(in, op->result, 2);
    const int64_t kv_heads = additive ? 1 : op->a.kv_heads, group = heads / kv_heads;
    const int64_t d = extent(in, op->inputs[0], 1) / heads;
    const float *query = fixed_numbers(in, op->inputs[0]), *key = fixed_numbers(in, op->inputs[1]);
    const float *vector = additive ? fixed_numbers(in, op->inputs[2]) : NULL;
    for (int64_t h = 0; h < heads; h++)
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < m; j++) {
                const float *q = query + (i * heads + h) * d, *k = key + (j * kv_heads + h / group) * d;
                float sum = 0;
                for (int64_t c = 0; c < d; c++)
                    sum = additive ? fixed_add(way, sum, vector[c], fixed_tanh(way, q[c] + k[c]))
                                   : fixed_add(way, sum, q[c], k[c]);
                out[(h * n + i) * m + j] = (double)(sum * (float)op->a.scale);
            }
}

void fixed_distance_scores(Interp *in, const Op *op, double *out) {
    const OpAttributes *a = &op->a;
    const float *scores = fixed_numbers(in, op->inputs[0]), *rows = fixed_numbers(in, op->inputs[1]),
                *table = fixed_numbers(in, op->inputs[2]);
    const int64_t n = extent(in, op->result, 1), m = extent(in, op->result, 2), past = past_of(in, a);
    const int64_t width = extent(in, op->inputs[2], 2), d = a->head_dim;
    const int64_t heads = a->by_key ? a->kv_heads : a->heads, group = a->heads / heads;
    const int64_t step = extent(in, op->inputs[2], 0) > 1 ? d * width : 0;
    for (int64_t r = 0; r < a->heads * n * m; r++) {
        const int64_t h = r / (n * m), i = r / m % n, j = r % m;
        const float *row = rows + ((a->by_key ? j : i) * heads + h / group) * d;
        const float *column = table + h * step + j - past - i + a->offset;
        float sum = scores[r];
        for (int64_t c = 0; c < d; c++) sum = fixed_add(in->arithmetic, sum, row[c], column[c * width]);
        out[r] = (double)(sum * (float)a->scale);
    }
}

/* A row of scores, in which hidden keys are -inf, on its way through the blocks. */
typedef struct Row {
    Arithmetic way;
    bool rounds;     /* weights are rounded to bf16 */
    float most, sum; /* log2(e) times the greatest score; the sum of the powers */
} Row;

/* Far from 0, rounded products replace those inside the fused multiply-add. */
static float far_base(Arithmetic way, float base, float *scores, int64_t count) {
    const bool far = way == ARITHMETIC_FUSED && fabsf(base) >= 0x1p29f && isfinite(base);
    for (int64_t k = 0; k < count && far; k++)
        scores[k] = (scores[k] * LOG2_E - base) * (float)(1 / 1.4426950408889634);
    return far ? 0.0f : base;
}

/* Puts powers in place of the scores of a block, and returns the factor by which earlier sums fade. */
static float block_weights(Row *row, float *scores, int64_t count) {
    float greatest = scores[0], lanes[FIXED_LANES] = {0};
    for (int64_t k = 1; k < count; k++) greatest = larger(greatest, scores[k]);
    const float most = larger(row->most, greatest * LOG2_E), now = row->rounds ? nearbyintf(most + 0.5f) : most;
    const float finite = now < -0x1p127f ? 0.0f : now;
    const float fade = fixed_exp2(row->way, row->most - finite), base = far_base(row->way, finite, scores, count);
    for (int64_t k = 0; k < count; k++) {
        const float power = fixed_add(row->way, -base, scores[k], LOG2_E);
        scores[k] = row->rounds ? fixed_exp2_bf16(row->way, power) : fixed_exp2(row->way, power);
        lanes[k % FIXED_LANES] += scores[k];
    }
    row->most = now;
    row->sum = fixed_add(row->way, fixed_tree(lanes), row->sum, fade);
    return fade;
}

/* Puts weights that no sum divides in place of scores. */
static void weights_alone(Arithmetic way, Weighing weighing, float *scores, int64_t count) {
    if (weighing != WEIGHING_SIGMOID) return;
    for (int64_t k = 0; k < count; k++) scores[k] = fixed_activation(way, ACTIVATION_sigmoid, scores[k]);
}

/* What the sums of a row are multiplied by: 0 for a row that sees no key, NaN for one that sees only scores of -inf. */
static float inverse_of(const Row *row, const bool *visible, int64_t m, int64_t r) {
    bool any = row->sum != 0.0f;
    for (int64_t j = 0; j < m && !any; j++) any = is_visible(visible, r * m + j);
    return !any ? 0.0f : row->sum == 0.0f ? NAN : 1.0f / row->sum;
}

void fixed_softmax(Interp *in, const Op *op, double *out) {
    const int64_t heads = extent(in, op->result, 0), n = extent(in, op->result, 1), m = extent(in, op->result, 2);
    const int64_t blocks = (m + FIXED_KEYS - 1) / FIXED_KEYS;
    const bool *visible = visible_pairs(in, op, heads, n, m);
    const float *scores = fixed_numbers(in, op->inputs[0]);
    const float *sink = op->a.has_sink ? fixed_numbers(in, op->inputs[1]) : NULL;
    float *powers = arena_array(in->arena, (size_t)(heads * n * m), sizeof *powers);
    float *fades = arena_array(in->arena, (size_t)(heads * n * blocks), sizeof *fades);
    float *inverse = arena_array(in->arena, (size_t)(heads * n), sizeof *inverse);
    for (int64_t r = 0; r < heads * n; r++) {
        float *weights = powers + r * m;
        Row row = {.way = in->arithmetic, .rounds = op->a.dtype == DTYPE_BF16,
                   .most = sink ? sink[r / n] * LOG2_E : -INFINITY, .sum = sink ? 1.0f : 0.0f};
        for (int64_t j = 0; j < m; j++) weights[j] = is_visible(visible, r * m + j) ? scores[r * m + j] : -INFINITY;
        for (int64_t b = 0; b < blocks; b++) {
            const int64_t begin = b * FIXED_KEYS, left = m - begin;
            if (op->a.weighing) fades[r * blocks + b] = 1;
            else fades[r * blocks + b] = block_weights(&row, weights + begin, left < FIXED_KEYS ? left : FIXED_KEYS);
        }
        if (op->a.weighing) weights_alone(in->arithmetic, op->a.weighing, weights, m);
        inverse[r] = op->a.weighing ? 1 : inverse_of(&row, visible, m, r);
        for (int64_t j = 0; j < m; j++)
            out[r * m + j] = is_visible(visible, r * m + j) ? (double)(weights[j] * inverse[r]) : 0;
    }
    FixedWeights *fixed = arena_alloc(in->arena, sizeof *fixed);
    *fixed = (FixedWeights){powers, fades, inverse, blocks};
    in->numbers[op->result].fixed = fixed;
}

void fixed_weighted_sum(Interp *in, const Op *op, double *out) {
    const Numbers *weights = &in->numbers[op->inputs[0]];
    const float *value = fixed_numbers(in, op->inputs[1]);
    const int64_t d = op->a.head_dim, group = op->a.heads / op->a.kv_heads, heads = op->a.heads;
    const int64_t n = extent(in, op->result, 0), m = extent(in, op->inputs[0], 2), blocks = weights->fixed->blocks;
    const bool *visible = visible_pairs(in, op, heads, n, m);
    float *sums = arena_array(in->arena, (size_t)d, sizeof *sums);
    for (int64_t r = 0; r < heads * n; r++) {
        const int64_t h = r / n, i = r % n;
        for (int64_t c = 0; c < d; c++) sums[c] = 0;
        for (int64_t j = 0; j < m; j++) {
            const float fade = weights->fixed->fades[r * blocks + j / FIXED_KEYS];
            for (int64_t c = 0; c < d && j % FIXED_KEYS == 0 && j > 0; c++) sums[c] *= fade;
            if (!is_visible(visible, r * m + j)) continue;
            const float *row = value + (j * op->a.kv_heads + h / group) * d;
            for (int64_t c = 0; c < d; c++)
                sums[c] = fixed_add(in->arithmetic, sums[c], weights->fixed->powers[r * m + j], row[c]);
        }
        for (int64_t c = 0; c < d; c++)
            out[(i * heads + h) * d + c] = (double)(sums[c] * weights->fixed->inverse[r]);
    }
}
