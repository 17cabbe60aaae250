/* build_latent.c: latent attention (DeepSeek-AI 2024, arXiv:2405.04434, sections 2.1.2 and 2.1.3). For a row x,
 * matrices W and a head i,
 *
 *     c = rmsnorm(W_latent x),  r = rope(W_key_rope x),  key_i = [r, W_key_i c],  value_i = W_value_i c
 *
 * A state keeps c and r alone. Since q . (W_key_i c) = (W_key_i^T q) . c, a query is brought to the width of c in
 * place of each key; since the sum of p_j W_value_i c_j is W_value_i times the sum of p_j c_j, the values are made of
 * the sum. So all heads attend to one key [r, c] and one value c. The weight of the keys holds the matrices
 * W_key_i^T. */
#include "builder.h"

#include <math.h>

static LinearWeights declare_heads(Build *b, const Stem *stem, const char *what, const Attention *a, int64_t out,
                                   int64_t in) {
    return build_declare_experts(b, stem, what, &a->by_head, out, in, false, 1 / sqrt((double)a->latent));
}

static int normalized(Build *b, const Stem *stem, const char *what, Role role, int x, const Attention *a) {
    const Norm norm = {.kind = NORM_rmsnorm, .eps = a->latent_eps};
    return build_norm(b, stem, what, role, x, norm, build_vector(build_columns(b, x)));
}

/* Each head of a, and behind it that of b; the result is as wide as both. */
static int joined(Build *b, const char *what, Role role, int first, int second, int64_t heads) {
    Tensor result = build_value2(b, what, build_rows(b, first), build_columns(b, first) + build_columns(b, second));
    result.site.role = role;
    return EMIT(join, result, ATTRIBUTES(.heads = heads), first, second);
}

/* Random queries make scores with a deviation of about 1, whatever their factor. */
static int project_query(Build *b, const Stem *stem, const Attention *a, const char *what, int64_t columns, int x) {
    const double scale = build_inverse(a->scale * sqrt((double)(a->head_dim + a->latent_rope)));
    const LinearWeights w =
        build_declare_linear(b, stem, what, a->heads * columns, build_columns(b, x), false, scale);
    return build_linear(b, &w, ROLE_QUERY, x);
}

Heads build_latent(Build *b, const Stem *stem, const Attention *a, int x, int64_t bound) {
    const int past = b->past.symbol;
    int from = x;
    if (a->latent_query) {
        from = build_new_linear(b, stem, "query_latent", ROLE_NONE, x, a->latent_query, false);
        from = normalized(b, stem, "query_latent_norm", ROLE_NONE, from, a);
    }
    const int plain = project_query(b, stem, a, "query", a->head_dim, from);
    int turned = project_query(b, stem, a, "query_rope", a->latent_rope, from);
    turned = build_rope(b, "query_rotated", ROLE_QUERY, turned, a, a->heads, a->latent_rope, bound, past);
    int latent = build_new_linear(b, stem, "latent", ROLE_VALUE, x, a->latent, false);
    latent = normalized(b, stem, "latent_norm", ROLE_VALUE, latent, a);
    int key = build_new_linear(b, stem, "key_rope", ROLE_KEY, x, a->latent_rope, false);
    key = build_rope(b, "key_rotated", ROLE_KEY, key, a, 1, a->latent_rope, bound, past);
    const LinearWeights keys = declare_heads(b, stem, "key", a, a->latent, a->head_dim);
    const int absorbed = build_head_linear(b, &keys, ROLE_QUERY, plain);
    return (Heads){.query = joined(b, "query_joined", ROLE_QUERY, turned, absorbed, a->heads),
                   .key = joined(b, "key_joined", ROLE_KEY, key, latent, 1),
                   .value = latent};
}

int build_latent_values(Build *b, const Stem *stem, const Attention *a, int x) {
    const LinearWeights values = declare_heads(b, stem, "value", a, a->value_dim, a->latent);
    return build_head_linear(b, &values, ROLE_NONE, x);
}
