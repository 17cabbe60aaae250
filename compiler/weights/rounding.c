/* rounding.c: rounds a weight's numbers to those that its type represents. Integers have a scale, and perhaps an
 * offset, for each row of a matrix, which is an output channel of a product or a token of a table, or for each group of
 * neighbours in a row. */
#include "../../runtime/attn_runtime.h"
#include "../attnc.h"

#include <limits.h>
#include <math.h>
#include <string.h>

typedef struct Group {
    int64_t begin, size; /* columns */
} Group;

static Group group_at(const WeightSpec *spec, int64_t g) {
    const int64_t K = weight_columns(spec), size = spec->type.group ? spec->type.group : K, begin = g * size;
    return (Group){begin, K - begin < size ? K - begin : size};
}

static Grid grid_of(const WeightSpec *spec, const float *numbers, const float *squares, int64_t K) {
    if (spec->type.group) return group_grid(spec->type, numbers, squares, K);
    return (Grid){.least = -127, .most = 127, .scale = int8_scale(numbers, K)};
}

/* The grid of group g of row n. */
static Grid grid_at(const WeightSpec *spec, const Scaling *scaling, int64_t n, int64_t g) {
    const int64_t at = n * weight_groups(spec) + g;
    const bool nibbles = spec->type.dtype == DTYPE_I4;
    return (Grid){.least = nibbles ? -8 : -127,
                  .most = nibbles ? 7 : 127,
                  .halves = spec->type.halves,
                  .scale = (double)scaling->scales[at],
                  .offset = scaling->offsets ? (double)scaling->offsets[at] : 0};
}

int outlier_columns(const float *vector, int64_t K, int64_t *out) {
    int n = 0;
    for (int64_t k = 0; k < K && n < MOST_OUTLIERS; k++)
        if (vector[k] == 0) out[n++] = k;
    return n;
}

void weight_codes(const WeightSpec *spec, const Scaling *scaling, const float *numbers, int64_t n, int8_t *out) {
    const float *row = numbers + n * weight_columns(spec);
    for (int64_t g = 0; g < weight_groups(spec); g++) {
        const Group group = group_at(spec, g);
        const Grid grid = grid_at(spec, scaling, n, g);
        grid_round(&grid, row + group.begin, group.size, out + group.begin);
    }
    for (int64_t k = 0; k < weight_columns(spec) && scaling->vector; k++)
        if (scaling->vector[k] == 0) out[k] = 0;
}

float weight_sum(const WeightSpec *spec, const Scaling *scaling, int64_t n, const int8_t *codes) {
    double sum = 0;
    for (int64_t g = 0; g < weight_groups(spec); g++) {
        const Group group = group_at(spec, g);
        const Grid grid = grid_at(spec, scaling, n, g);
        int64_t integers = 0;
        for (int64_t k = group.begin; k < group.begin + group.size; k++) integers += codes[k];
        sum += spec->type.group ? grid.scale * (double)integers + grid.offset * (double)group.size : (double)integers;
    }
    return (float)sum;
}

/* Sets `from` to the numbers of a group of a row that become integers, and `at` to their columns; returns how many. */
static int64_t numbers_of_group(Group group, const float *row, const float *vector, float *from, int64_t *at) {
    int64_t n = 0;
    for (int64_t k = group.begin; k < group.begin + group.size; k++) {
        if (vector && vector[k] == 0) continue;
        from[n] = row[k];
        at[n++] = k;
    }
    return n;
}

/* A matrix [N][K] that becomes integers, whose rows are rounded apart from each other. */
typedef struct Rounding {
    const WeightSpec *spec;
    const float *numbers, *squares, *vector;
    float *out, *scales, *offsets;
} Rounding;

enum { ROWS_OF_TASK = 16 };

/* Rounds ROWS_OF_TASK rows, a task of a pool. */
static void round_rows(void *with, int index) {
    const Rounding *r = with;
    const WeightSpec *spec = r->spec;
    const int64_t N = weight_rows(spec), K = weight_columns(spec), groups = weight_groups(spec);
    const int64_t first = (int64_t)index * ROWS_OF_TASK;
    Arena *own = arena_new();
    int8_t *codes = arena_alloc(own, (size_t)K);
    float *from = arena_array(own, (size_t)K, sizeof *from), *weigh = arena_array(own, (size_t)K, sizeof *weigh);
    int64_t *at = arena_array(own, (size_t)K, sizeof *at);
    for (int64_t n = first; n < N && n < first + ROWS_OF_TASK; n++)
        for (int64_t g = 0; g < groups; g++) {
            const int64_t size = numbers_of_group(group_at(spec, g), r->numbers + n * K, r->vector, from, at);
            for (int64_t i = 0; i < size && r->squares; i++) weigh[i] = r->squares[at[i]];
            const Grid grid = size ? grid_of(spec, from, r->squares ? weigh : NULL, size) : (Grid){0};
            grid_round(&grid, from, size, codes);
            for (int64_t i = 0; i < size; i++)
                r->out[n * K + at[i]] = (float)(grid.scale * codes[i] + grid.offset);
            r->scales[n * groups + g] = (float)grid.scale;
            if (r->offsets) r->offsets[n * groups + g] = (float)grid.offset;
        }
    arena_free(own);
}

/* The matrix [N][K] as integers times scales, plus offsets; columns where the vector is 0 stay as they are. All
 * processors share its rows, since the search for the scales of a large model takes minutes. */
static const float *integer_weight(Arena *arena, const WeightSpec *spec, const float *numbers, const float *squares,
                                   Scaling *scaling) {
    enum { LEAST_FOR_THREADS = 1 << 16 };
    const int64_t N = weight_rows(spec), K = weight_columns(spec), groups = weight_groups(spec);
    const int64_t tasks = (N + ROWS_OF_TASK - 1) / ROWS_OF_TASK;
    Rounding r = {.spec = spec, .numbers = numbers, .squares = squares, .vector = scaling->vector};
    if (tasks > INT_MAX) fail("`%s` has %lld rows, which are too many", spec->name, (long long)N);
    r.out = arena_array(arena, (size_t)(N * K), sizeof *r.out);
    r.scales = arena_array(arena, (size_t)(N * groups), sizeof *r.scales);
    if (spec->type.offset) r.offsets = arena_array(arena, (size_t)(N * groups), sizeof *r.offsets);
    memcpy(r.out, numbers, (size_t)(N * K) * sizeof *r.out);
    const int processors = attn_cpu_count(), threads = processors < ATTN_MAX_THREADS ? processors : ATTN_MAX_THREADS;
    attn_pool *pool = N * K < LEAST_FOR_THREADS ? NULL : attn_pool_new(threads);
    attn_pool_run(pool, (int)tasks, round_rows, &r);
    attn_pool_free(pool);
    scaling->scales = r.scales;
    scaling->offsets = r.offsets;
    return r.out;
}

static const float *float_weight(Arena *arena, const WeightSpec *spec, const float *numbers, int64_t count) {
    enum { BLOCK = 1024 };
    const Dtype dtype = spec->type.dtype;
    float *out = arena_array(arena, (size_t)count, sizeof *out);
    double block[BLOCK]; /* of the widest dtype */
    for (int64_t i = 0; i < count; i += BLOCK) {
        int64_t n = count - i < BLOCK ? count - i : BLOCK;
        tensor_from_f32(dtype, numbers + i, n, block);
        const FileTensor stored = {.name = spec->name,
                                   .dtype = dtype,
                                   .data = (const uint8_t *)block,
                                   .bytes = (size_t)n * dtype_bytes(dtype)};
        tensor_to_f32(&stored, 0, n, out + i);
    }
    return out;
}

/* The matrix [N][K] with each column divided by its number of the vector, or as it is where that is 0. */
static const float *smoothed_weight(Arena *arena, const WeightSpec *spec, const float *numbers, const float *vector) {
    const int64_t N = weight_rows(spec), K = weight_columns(spec);
    float *out = arena_array(arena, (size_t)(N * K), sizeof *out);
    for (int64_t n = 0; n < N; n++)
        for (int64_t k = 0; k < K; k++) {
            const int64_t at = n * K + k;
            out[at] = vector[k] == 0 ? numbers[at] : (float)((double)numbers[at] / (double)vector[k]);
            if (!isfinite(out[at]))
                fail("number %lld of `%s` is too large for f32 when column %lld is smoothed by %g", (long long)at,
                     spec->name, (long long)k, (double)vector[k]);
        }
    return out;
}

static double column_square(const WeightSpec *spec, const float *gain, const float *shift, int64_t k) {
    const double g = (double)gain[k] + spec->gain_plus_one, b = shift ? (double)shift[k] : 0;
    return g * g + b * b;
}

const float *weight_squares(Arena *arena, const Weights *weights, const WeightSpec *spec) {
    if (!spec->gain || !spec->type.group) return NULL;
    const int64_t K = weight_columns(spec);
    const float *gain = weights->data[spec->gain - 1], *shift = spec->shift ? weights->data[spec->shift - 1] : NULL;
    double mean = 0;
    for (int64_t k = 0; k < K; k++) mean += column_square(spec, gain, shift, k) / (double)K;
    if (!(mean > 0) || !isfinite(mean)) return NULL;
    float *out = arena_array(arena, (size_t)K, sizeof *out);
    for (int64_t k = 0; k < K; k++) out[k] = (float)fmax(column_square(spec, gain, shift, k) / mean, 0.01);
    return out;
}

/* Returns what the columns count if a smoothing vector multiplies the rows. */
static const float *smoothed_squares(Arena *arena, const float *squares, const float *vector, int64_t K) {
    float *out = arena_array(arena, (size_t)K, sizeof *out);
    for (int64_t k = 0; k < K; k++) {
        const double square = (double)squares[k] * (double)vector[k] * (double)vector[k];
        out[k] = (float)fmin(fmax(square, 0x1p-60), 0x1p60);
    }
    return out;
}

const float *weight_rounded(Arena *arena, const WeightSpec *spec, const float *numbers, const float *vector,
                            const float *squares, Scaling *scaling) {
    int64_t count = 0;
    if (!shape_elements(spec->shape, &count)) bug("`%s` is too large", spec->name);
    *scaling = (Scaling){.vector = vector};
    if (spec->type.dtype == DTYPE_F32) return numbers;
    if (!dtype_has_scales(spec->type.dtype)) return float_weight(arena, spec, numbers, count);
    Arena *own = arena_new();
    if (vector) numbers = smoothed_weight(own, spec, numbers, vector);
    if (vector && squares) squares = smoothed_squares(own, squares, vector, weight_columns(spec));
    const float *out = integer_weight(arena, spec, numbers, squares, scaling);
    arena_free(own);
    return out;
}

void weight_round(Arena *arena, const Weights *weights, size_t i) {
    const WeightSpec *spec = &weights->table->specs[i];
    const float *vector = spec->smoothing ? weights->data[spec->smoothing - 1] : NULL;
    const float *squares = weight_squares(arena, weights, spec);
    weights->data[i] = weight_rounded(arena, spec, weights->data[i], vector, squares, &weights->scaling[i]);
}

void weights_round(Arena *arena, const Weights *weights) {
    for (size_t i = 0; i < weights->table->count; i++) weight_round(arena, weights, i);
}
