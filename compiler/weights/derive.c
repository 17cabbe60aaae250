/* derive.c: computes the derived tensors of a model from its weights. */
#include "../attnc.h"

static const float *source_of(const Weights *weights, const Derived *derived, int source) {
    return derived->sources[source] ? weights->data[derived->sources[source] - 1] : NULL;
}

static void derive_lambda(const Weights *weights, const Derived *derived, double *out) {
    const float *of[LAMBDA_SOURCES];
    for (int s = 0; s < LAMBDA_SOURCES; s++) of[s] = source_of(weights, derived, s);
    if (!lambda_fill(derived, of, out))
        fail("the weights `%s` and its neighbours give a lambda that f32 does not hold",
             weights->table->specs[derived->sources[SOURCE_QUERY] - 1].name);
}

void weights_derive(const Weights *weights, const Derived *derived, double *out) {
    if (derived->kind == DERIVED_LAMBDA) {
        derive_lambda(weights, derived, out);
        return;
    }
    if (derived->kind != DERIVED_DISTANCES) {
        derived_fill(derived, derived_has_source(derived) ? weights->data[derived->source] : NULL, out);
        return;
    }
    const int matrix = derived->sources[SOURCE_MATRIX];
    const DistanceSources sources = {.table = source_of(weights, derived, SOURCE_TABLE),
                                     .gain = source_of(weights, derived, SOURCE_GAIN),
                                     .shift = source_of(weights, derived, SOURCE_SHIFT),
                                     .matrix = source_of(weights, derived, SOURCE_MATRIX),
                                     .bias = source_of(weights, derived, SOURCE_BIAS),
                                     .smooth = matrix ? weights->scaling[matrix - 1].vector : NULL};
    distances_fill(derived, &sources, out);
}
