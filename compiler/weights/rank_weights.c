/* rank_weights.c: the rows of matrices that a rank has. */
#include "../attnc.h"

#include <string.h>

/* The rows of a rank, of each expert, from numbers with `width` for each row of the whole matrix; NULL for NULL. */
static const float *rows_of(Arena *arena, const WeightSpec *spec, int64_t width, const float *whole, int rank) {
    const Sharding *s = spec->sharding;
    if (!whole) return NULL;
    const int64_t matrices = spec->shape.rank > 2 || spec->of_experts ? spec->shape.dims[0] : 1;
    float *out = arena_array(arena, (size_t)(matrices * s->part * width), sizeof *out);
    for (int64_t m = 0; m < matrices; m++)
        memcpy(out + m * s->part * width, whole + (m * s->columns + s->begin[rank]) * width,
               (size_t)(s->count[rank] * width) * sizeof *out);
    return out;
}

Weights *rank_weights(Arena *arena, const WeightTable *table, const Weights *whole, const int *of, int n, int rank) {
    Weights *weights = weights_new(arena, table);
    for (int i = 0; i < n; i++) {
        const WeightSpec *spec = &table->specs[of[i]];
        const Scaling *scaling = &whole->scaling[of[i]];
        const int64_t columns = spec->shape.rank == 1 + spec->of_experts ? 1 : weight_columns(spec);
        weights->data[of[i]] = whole->data[of[i]];
        weights->scaling[of[i]] = *scaling;
        if (!spec->sharding) continue;
        weights->data[of[i]] = rows_of(arena, spec, columns, whole->data[of[i]], rank);
        const int64_t groups = weight_groups(spec);
        weights->scaling[of[i]] = (Scaling){.scales = rows_of(arena, spec, groups, scaling->scales, rank),
                                            .offsets = rows_of(arena, spec, groups, scaling->offsets, rank),
                                            .vector = scaling->vector};
    }
    return weights;
}
