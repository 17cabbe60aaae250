/* build_content.c: scores that products of queries and keys with vectors of distances are added to. */
#include "builder.h"

#include <math.h>
#include <string.h>

/* `sources` are as those of Derived. */
static void declare_table(Build *b, const Stack *stack, int *sources) {
    const Stem stem = build_stem(b, stack, "");
    const Position *p = &stack->content;
    const int64_t d = stack->d_model;
    const WeightSpec table = {.shape = build_matrix(p->rows, d), .deviation = 1};
    sources[SOURCE_TABLE] = 1 + build_declare(b, &stem, "distances.weight", table);
    if (!p->norm.kind) return;
    sources[SOURCE_GAIN] = 1 + build_declare_gain(b, &stem, "distances.norm", p->norm, build_vector(d));
    if (p->norm.bias) sources[SOURCE_SHIFT] = 1 + build_declare_bias(b, &stem, "distances.norm", build_vector(d));
}

void build_declare_content(Build *b, const Stack *stack) {
    int sources[DERIVED_SOURCES];
    declare_table(b, stack, sources);
}

/* The matrix by which a layer projects the table. A random one keeps the scale of the rows. */
static void declare_matrix(Build *b, const Stem *stem, const Attention *a, bool by_key, int *sources) {
    const int64_t d = a->query_width, numbers = a->heads * a->head_dim;
    const char *what = by_key ? "query" : "key";
    if (a->position.own) what = arena_printf(b->arena, "distance_%s", what);
    const WeightSpec matrix = {.shape = build_matrix(numbers, d), .deviation = 1 / sqrt((double)d)};
    sources[SOURCE_MATRIX] = 1 + build_declare(b, stem, arena_printf(b->arena, "%s.weight", what), matrix);
    if (by_key ? a->bias_q : a->bias_k)
        sources[SOURCE_BIAS] = 1 + build_declare_bias(b, stem, what, build_vector(numbers));
}

static bool has_term(const Position *p, bool by_key) { return by_key ? p->by_key : p->by_query; }

ContentWeights build_declare_terms(Build *b, const Stem *stem, const Stem *rows, const Stack *stack,
                                   const Attention *a) {
    const Position *p = &a->position;
    ContentWeights weights = {{{0}}};
    if (p->kind != POSITION_CONTENT) return weights;
    int table[DERIVED_SOURCES] = {0};
    if (p->projected) {
        declare_table(b, stack, table);
    } else {
        const WeightSpec own = {.shape = build_matrix(p->rows, a->head_dim), .deviation = 1};
        table[SOURCE_TABLE] = 1 + build_declare(b, stem, "distances.weight", own);
    }
    for (int by_key = 0; by_key < 2; by_key++) {
        if (!has_term(p, by_key)) continue;
        memcpy(weights.sources[by_key], table, sizeof table);
        if (p->projected) declare_matrix(b, rows, a, by_key, weights.sources[by_key]);
    }
    return weights;
}

int build_content(Build *b, const Attention *a, const ContentWeights *weights, int scores, Heads heads,
                  int64_t bound) {
    const Position *p = &a->position;
    for (int by_key = 0; by_key < 2; by_key++) {
        if (!has_term(p, by_key)) continue;
        const int *sources = weights->sources[by_key];
        const int owner = sources[SOURCE_MATRIX] ? sources[SOURCE_MATRIX] : sources[SOURCE_TABLE];
        Derived d = {.kind = DERIVED_DISTANCES,
                     .name = arena_printf(b->arena, "%s.by_distance", b->module->weights.specs[owner - 1].name),
                     .shape = {3, {p->projected ? a->heads : 1, a->head_dim, 2 * bound - 1}},
                     .position = p,
                     .rows = bound,
                     .heads = a->heads,
                     .columns = p->projected ? a->query_width : a->head_dim};
        memcpy(d.sources, sources, sizeof d.sources);
        build_count_elements(b, d.name, d.shape);
        const int table = build_derived(b, d);
        const bool last = by_key || !p->by_key;
        scores = EMIT(distance_scores, build_value_like(b, by_key ? "by_key" : "by_query", scores),
                      ATTRIBUTES(.scale = last ? a->scale : 1, .heads = a->heads, .kv_heads = a->kv_heads,
                                 .head_dim = a->head_dim, .offset = bound - 1, .past = b->past.symbol,
                                 .by_key = by_key),
                      scores, by_key ? heads.key : heads.query, table);
    }
    return scores;
}
