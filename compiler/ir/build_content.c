/* build_content.c: scores that products of queries and keys with vectors of distances are added to. */
#include "builder.h"

#include <math.h>

/* The numbers of the weights of a stack's table; the last two are of a layer's matrix. */
typedef struct Sources {
    int of[DERIVED_SOURCES];
} Sources;

static void declare_table(Build *b, const Stack *stack, Sources *sources) {
    const Stem stem = build_stem(b, stack, "");
    const Position *p = &stack->content;
    const int64_t d = b->model->d_model;
    const WeightSpec table = {.shape = build_matrix(p->rows, d), .deviation = 1};
    sources->of[SOURCE_TABLE] = 1 + build_declare(b, &stem, "distances.weight", table);
    if (!p->norm.kind) return;
    sources->of[SOURCE_GAIN] = 1 + build_declare_gain(b, &stem, "distances.norm", p->norm, build_vector(d));
    if (p->norm.bias) sources->of[SOURCE_SHIFT] = 1 + build_declare_bias(b, &stem, "distances.norm", build_vector(d));
}

void build_declare_content(Build *b, const Stack *stack) {
    Sources sources = {{0}};
    declare_table(b, stack, &sources);
}

/* The weights of a term, of which those of the table are in `shared`. Random matrices of its own keep the scale. */
static Sources declare_term(Build *b, const Stem *stem, const Attention *a, const Sources *shared, bool by_key) {
    Sources sources = *shared;
    const int64_t d = a->query_width;
    const bool bias = by_key ? a->bias_q : a->bias_k;
    const char *what = by_key ? "query" : "key";
    if (!a->position.projected) return sources;
    if (a->position.own) what = arena_printf(b->arena, "distance_%s", what);
    const int64_t numbers = a->heads * a->head_dim;
    const WeightSpec own = {.shape = build_matrix(numbers, d), .deviation = 1 / sqrt((double)d)};
    const char *matrix = arena_printf(b->arena, "%s.weight", what);
    sources.of[SOURCE_MATRIX] = 1 + build_declare(b, stem, matrix, own);
    if (bias) sources.of[SOURCE_BIAS] = 1 + build_declare_bias(b, stem, what, build_vector(numbers));
    return sources;
}

ContentWeights build_declare_terms(Build *b, const Stem *stem, const Stack *stack, const Attention *a) {
    const Position *p = &a->position;
    ContentWeights weights = {{{0}}};
    if (p->kind != POSITION_CONTENT) return weights;
    Sources shared = {{0}};
    if (p->projected) declare_table(b, stack, &shared);
    else {
        const WeightSpec table = {.shape = build_matrix(p->rows, a->head_dim), .deviation = 1};
        shared.of[SOURCE_TABLE] = 1 + build_declare(b, stem, "distances.weight", table);
    }
    for (int by_key = 0; by_key < 2; by_key++) {
        if (!(by_key ? p->by_key : p->by_query)) continue;
        const Sources sources = declare_term(b, stem, a, &shared, by_key);
        for (int s = 0; s < DERIVED_SOURCES; s++) weights.sources[by_key][s] = sources.of[s];
    }
    return weights;
}

int build_content(Build *b, const Attention *a, const ContentWeights *weights, int scores, Heads heads,
                  int64_t bound) {
    const Position *p = &a->position;
    for (int by_key = 0; by_key < 2; by_key++) {
        if (!(by_key ? p->by_key : p->by_query)) continue;
        const int *sources = weights->sources[by_key];
        const int owner = sources[SOURCE_MATRIX] ? sources[SOURCE_MATRIX] : sources[SOURCE_TABLE];
        Derived d = {.kind = DERIVED_DISTANCES,
                     .name = arena_printf(b->arena, "%s.by_distance", b->module->weights.specs[owner - 1].name),
                     .shape = {3, {p->projected ? a->heads : 1, a->head_dim, 2 * bound - 1}},
                     .position = p,
                     .rows = bound,
                     .heads = a->heads,
                     .columns = p->projected ? a->query_width : a->head_dim};
        for (int s = 0; s < DERIVED_SOURCES; s++) d.sources[s] = sources[s];
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
