/* weights.c: weights and inputs of any size: section 8's stressed cases. */
#include "fuzz.h"

#include <float.h>
#include <math.h>
#include <string.h>

static const char *const names[STRESS_COUNT] = {"unit", "scaled", "zeros", "tiny", "scores", "special"};

const char *stress_name(Stress stress) { return names[stress]; }

bool stress_named(const char *name, Stress *stress) {
    for (int s = 0; s < STRESS_COUNT; s++)
        if (strcmp(names[s], name) == 0) {
            *stress = (Stress)s;
            return true;
        }
    return false;
}

typedef struct Numbers {
    float *data;
    int64_t count;
} Numbers;

static void multiply(Numbers n, double by) {
    for (int64_t i = 0; i < n.count; i++) n.data[i] = (float)(n.data[i] * by);
}

static Numbers some_tensor(Dice *dice, const Weights *w, float **data) {
    int64_t i = dice_below(dice, (int64_t)w->table->count);
    Numbers n = {data[i], 0};
    shape_elements(w->table->specs[i].shape, &n.count);
    return n;
}

/* What stands for a number in special weights. */
static float special(Dice *dice) {
    const float all[] = {INFINITY, -INFINITY, NAN};
    return all[dice_below(dice, 3)];
}

static void spoil(Dice *dice, Numbers n) {
    if (n.count) n.data[dice_below(dice, n.count)] = special(dice);
}

/* Scores are far apart, or all the same: by the queries, the keys, or both. */
static void stress_scores(Dice *dice, const Weights *w, float **data) {
    const double by[] = {0, 1e2, 1e4, 1e6};
    double query = by[dice_below(dice, 4)], key = by[dice_below(dice, 4)];
    for (size_t i = 0; i < w->table->count; i++) {
        const char *name = w->table->specs[i].name;
        Numbers n = {data[i], 0};
        shape_elements(w->table->specs[i].shape, &n.count);
        if (strstr(name, "query.")) multiply(n, query);
        else if (strstr(name, "key.")) multiply(n, key);
        else if (strstr(name, "relative.") || strstr(name, "sink.")) multiply(n, query > 0 ? query : 1);
    }
}

typedef struct Alteration {
    Dice dice;
    Stress stress;
    double by;
} Alteration;

static void alter_input(void *with, float *numbers, int64_t count) {
    Alteration *a = with;
    if (a->stress == STRESS_SPECIAL) spoil(&a->dice, (Numbers){numbers, count});
    else multiply((Numbers){numbers, count}, a->by);
}

static double any_power(Dice *dice) { return pow(10, (double)dice_between(dice, -20, 18)); }

/* Makes the numbers those of a smoothing vector; the first zeros stay. */
static void limit_vector(float *numbers, int64_t count, int outliers) {
    int zeros = 0;
    for (int64_t k = 0; k < count; k++) {
        if (numbers[k] == 0 && zeros++ < outliers) numbers[k] = 0;
        else numbers[k] = numbers[k] > 0x1p-20f ? fminf(numbers[k], 0x1p20f) : 0x1p-20f;
    }
}

/* Weights whose exponentials f32 does not hold are refused: the vectors of `differential` are within -1 and 1. */
static void limit_lambda(float *numbers, int64_t count) {
    for (int64_t k = 0; k < count; k++) numbers[k] = isnan(numbers[k]) ? 1 : fminf(fmaxf(numbers[k], -1), 1);
}

/* A vector with these zeros that leaves the other columns as they are: the numbers of a matrix may be too large to be
 * divided. */
static const float *outliers_of(Arena *arena, const float *vector, int64_t K) {
    float *out = arena_array(arena, (size_t)K, sizeof *out);
    for (int64_t k = 0; k < K; k++) out[k] = vector[k] != 0;
    return out;
}

Weights *stressed_weights(Arena *arena, const Module *module, Stress stress, uint64_t seed, RandomInputs *inputs) {
    const char *source = arena_printf(arena, "random:%llu", (unsigned long long)(seed % 1000000007));
    Weights *w = weights_load(arena, module->model, &module->weights, source, false);
    float **data = arena_array(arena, w->table->count + 1, sizeof *data);
    Dice dice = dice_new(seed, 0, names[stress]);
    *inputs = (RandomInputs){0};
    if (stress == STRESS_UNIT) return w;
    for (size_t i = 0; i < w->table->count; i++) {
        int64_t count = 0;
        shape_elements(w->table->specs[i].shape, &count);
        data[i] = arena_array(arena, (size_t)count, sizeof *data[i]);
        memcpy(data[i], w->data[i], (size_t)count * sizeof *data[i]);
        w->data[i] = data[i];
    }
    bool by_inputs = dice_chance(&dice, 25) || !w->table->count;
    int times = (int)dice_between(&dice, 1, 3);
    if (by_inputs && (stress == STRESS_SCALED || stress == STRESS_SPECIAL || stress == STRESS_TINY)) {
        Alteration *a = arena_alloc(arena, sizeof *a);
        *a = (Alteration){dice, stress, stress == STRESS_TINY ? 1e-40 : any_power(&dice)};
        *inputs = (RandomInputs){.alter = alter_input, .with = a};
    }
    if (!w->table->count) return w;
    if (stress == STRESS_SCORES) stress_scores(&dice, w, data);
    for (int i = 0; i < times && stress != STRESS_SCORES; i++) {
        Numbers n = some_tensor(&dice, w, data);
        if (stress == STRESS_SCALED) multiply(n, any_power(&dice));
        if (stress == STRESS_ZEROS) multiply(n, 0);
        if (stress == STRESS_TINY) multiply(n, dice_chance(&dice, 50) ? 1e-39 : 1e-43);
        if (stress == STRESS_SPECIAL && i == 0) spoil(&dice, n);
    }
    for (size_t i = 0; i < w->table->count; i++) { /* a matrix of fewer bits and a smoothing vector hold no others */
        const WeightSpec *spec = &w->table->specs[i];
        int64_t count = 0;
        shape_elements(spec->shape, &count);
        for (int64_t k = 0; k < count && dtype_has_scales(spec->type.dtype); k++)
            if (!isfinite(data[i][k])) data[i][k] = FLT_MAX; /* a file with such a number is refused */
        if (spec->smooths) limit_vector(data[i], count, spec->outliers);
        if (strstr(spec->name, "lambda.")) limit_lambda(data[i], count);
    }
    for (size_t i = 0; i < w->table->count; i++) {
        const WeightSpec *spec = &w->table->specs[i];
        const float *vector = spec->smoothing ? data[spec->smoothing - 1] : NULL;
        const float *ones = vector ? outliers_of(arena, vector, spec->shape.dims[1]) : NULL;
        w->data[i] = weight_rounded(arena, spec, data[i], ones, NULL, &w->scaling[i]);
        w->scaling[i].vector = vector;
    }
    return w;
}
