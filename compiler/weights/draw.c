/* draw.c: draws random weights. A seed gives the same weights on every machine. */
#include "../attnc.h"

#include <string.h>

/* splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t next_random(uint64_t *state) {
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* The sum of 12 uniform numbers has variance 1. Without libm every machine draws the same bits. */
void random_normal(uint64_t seed, const char *name, double mean, double deviation, int64_t count, float *out) {
    uint64_t state = hash_bytes(hash_bytes(0, &seed, sizeof seed), name, strlen(name));
    for (int64_t i = 0; i < count; i++) {
        int64_t sum = 0;
        for (int draw = 0; draw < 4; draw++) {
            uint64_t bits = next_random(&state);
            sum += (int64_t)(bits & 0x1fffff) + (int64_t)(bits >> 21 & 0x1fffff) + (int64_t)(bits >> 42 & 0x1fffff);
        }
        double normal = ((double)sum - 6.0 * 0x1fffff) / 0x200000;
        out[i] = (float)(mean + deviation * normal);
    }
}

const float *weight_drawn(Arena *arena, const WeightSpec *spec, uint64_t seed) {
    /* The smallest number of a drawn smoothing vector, apart from the zeros of its outliers. */
    static const float LEAST = 0.125f;
    int64_t count = 0;
    if (!shape_elements(spec->shape, &count)) bug("`%s` is too large", spec->name);
    float *out = arena_array(arena, (size_t)count, sizeof *out);
    random_normal(seed, spec->name, spec->mean, spec->deviation, count, out);
    for (int64_t i = 0; i < count && spec->smooths; i++)
        if (out[i] < LEAST) out[i] = LEAST;
    uint64_t state = hash_bytes(seed, spec->name, strlen(spec->name));
    for (int j = 0; j < spec->outliers; j++) out[next_random(&state) % (uint64_t)count] = 0;
    return out;
}
