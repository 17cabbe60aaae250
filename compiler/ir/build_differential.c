/* build_differential.c: differential attention (Ye et al. 2024, arXiv:2410.05258, section 2.1). A head has two queries
 * and keys and one value. With its two softmaxes p1 and p2,
 *
 *     y = rmsnorm((p1 - lambda p2) value) (1 - init),  lambda = exp(q1 . k1) - exp(q2 . k2) + init
 *
 * of learned vectors q1, k1, q2, k2 [head_dim], which the heads share. Since p1 value - lambda p2 value is the same,
 * the graph has two attentions over the same values. */
#include "builder.h"

static const double LAMBDA_DEVIATION = 0.1; /* as the vectors are drawn in the paper's code */

Stem build_second_stem(Build *b, const Stem *stem) {
    Stem second = *stem;
    second.text = arena_printf(b->arena, "%ssecond.", stem->text);
    second.part = arena_printf(b->arena, "%ssecond.", stem->part);
    return second;
}

static double usual_init(int layer) { return 0.8 - 0.6 * portable_exp(-0.3 * (layer < 0 ? 0 : layer)); }

/* The factor of the second sum, [heads*value_dim]. */
static int lambda(Build *b, const Stem *stem, const Attention *a, double init) {
    static const char *const names[LAMBDA_SOURCES] = {"lambda.query.weight", "lambda.key.weight",
                                                      "second.lambda.query.weight", "second.lambda.key.weight"};
    Derived d = {.kind = DERIVED_LAMBDA,
                 .name = build_name(b, &b->stem, "lambda.factor"),
                 .shape = build_vector(a->heads * a->value_dim),
                 .columns = a->head_dim,
                 .init = init};
    for (int s = 0; s < LAMBDA_SOURCES; s++) {
        const WeightSpec vector = {.shape = build_vector(a->head_dim), .deviation = LAMBDA_DEVIATION};
        d.sources[s] = 1 + build_declare(b, stem, names[s], vector);
    }
    return build_derived(b, d);
}

int build_difference(Build *b, const Stem *stem, const Attention *a, int first, int second, int layer) {
    const double init = a->differential_init == UNSET ? usual_init(layer) : a->differential_init;
    int x = EMIT(add, build_value_like(b, "difference", first), ATTRIBUTES(.scale = -1), first, second,
                 lambda(b, stem, a, init));
    const Norm norm = {.kind = NORM_rmsnorm, .eps = a->differential_eps};
    x = build_norm(b, stem, "head_norm", ROLE_NONE, x, norm, build_vector(a->value_dim));
    return EMIT(scale, build_value_like(b, "head_scaled", x), ATTRIBUTES(.scale = 1 - init), x);
}
