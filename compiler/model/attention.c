/* attention.c: resolves an attention sublayer with all defaults, and refuses combinations that exclude each other. */
#include "settings.h"

#include <math.h>
#include <string.h>

/* A row refuses a combination that has no meaning or that no back end supports. The diagnostic points at the source
 * location of the field `blame`. */
typedef struct Exclusion {
    bool (*holds)(const Scope *scope, const Attention *a, bool alone, bool in_decoder);
    Field blame;
    const char *reason;
} Exclusion;

static bool all_known(const Scope *scope, const Field *fields, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!known(scope, fields[i])) return false;
    return true;
}

bool score_is_bare(ScoreKind score) {
    static const bool rows[] = {
#define SCORE(name, bare, scale, help) [SCORE_##name] = bare,
#include "scores.def"
    };
    return rows[score];
}

static double usual_scale(const Attention *a) {
    const double scales[] = {
#define SCORE(name, bare, scale, help) [SCORE_##name] = scale,
#include "scores.def"
    };
    return scales[a->score];
}

#define WIDTHS F_heads, F_head_dim, F_d_model /* the fields that decide the width of a head */
#define EXCLUSION(name, blame, reason, condition, ...) \
    static bool name(const Scope *scope, const Attention *a, bool alone, bool in_decoder) { \
        (void)scope, (void)a, (void)alone, (void)in_decoder; \
        static const Field reads[] = {__VA_ARGS__}; \
        return all_known(scope, reads, sizeof reads / sizeof reads[0]) && (condition); \
    }
#include "exclusions.def"

static const Exclusion exclusions[] = {
#define EXCLUSION(name, blame, reason, condition, ...) {name, F_##blame, reason},
#include "exclusions.def"
};

static void check_exclusions(Resolver *r, const Scope *scope, const Item *item, const Attention *a, bool alone,
                             bool in_decoder) {
    for (size_t i = 0; i < sizeof exclusions / sizeof exclusions[0]; i++)
        if (known(scope, exclusions[i].blame) && exclusions[i].holds(scope, a, alone, in_decoder)) {
            Location location = stated_at(scope, exclusions[i].blame, item->location);
            diagnose(r->diagnostics, location, "%s", exclusions[i].reason);
            if (scope->fields[exclusions[i].blame].stated && !stands_in(location, item))
                diagnose_note(r->diagnostics, item->location, "in this attention");
        }
}

/* Reports a `part` that does not divide `whole`, and marks it as doubtful, so that later checks skip it. The note
 * points at the other half of the conflict. */
static bool must_divide(Resolver *r, Scope *scope, const Item *item, Field part, const char *part_name,
                        Field whole, const char *whole_name) {
    int64_t p = get(scope, part), w = get(scope, whole);
    if (!known(scope, part) || !known(scope, whole) || (p > 0 && w % p == 0)) return true;
    doubt(scope, part);
    diagnose(r->diagnostics, stated_at(scope, part, item->location), "`%s %lld` does not divide `%s %lld`", part_name,
             (long long)p, whole_name, (long long)w);
    if (stated(scope, whole)) diagnose_note(r->diagnostics, scope->fields[whole].location, "`%s` stands here",
                                            whole_name);
    return false;
}

static void resolve_heads(Resolver *r, Scope *scope, const Item *item, Attention *a, bool alone) {
    int64_t d_model = get(scope, F_d_model);
    a->heads = get(scope, F_heads);
    if (!a->projected && !stated(scope, F_heads)) a->heads = 1;
    if (a->heads == 0) {
        if (known(scope, F_heads)) diagnose(r->diagnostics, item->location, "this attention needs `heads`");
        doubt(scope, F_heads);
        a->heads = 1;
    }
    if (a->heads > MOST_HEADS) {
        diagnose(r->diagnostics, stated_at(scope, F_heads, item->location), "at most %d heads, found %lld", MOST_HEADS,
                 (long long)a->heads);
        doubt(scope, F_heads);
        a->heads = 1;
    }
    a->kv_heads = stated(scope, F_kv_heads) ? get(scope, F_kv_heads) : a->heads;
    if (stated(scope, F_kv_heads) && !must_divide(r, scope, item, F_kv_heads, "kv_heads", F_heads, "heads"))
        a->kv_heads = a->heads;
    if (!a->projected) { /* the heads cut the rows that are given */
        a->head_dim = a->query_width / a->heads;
        a->value_dim = a->value_width / a->kv_heads;
        return;
    }
    a->head_dim = get(scope, F_head_dim);
    if (a->head_dim == 0) {
        if (d_model == 0 && alone) {
            if (known(scope, F_head_dim) && known(scope, F_d_model))
                diagnose(r->diagnostics, item->location, "this attention needs `head_dim` or `d_model`");
            doubt(scope, F_head_dim);
            a->head_dim = 1;
        } else if (stated(scope, F_heads) && stated(scope, F_d_model) &&
                   !must_divide(r, scope, item, F_heads, "heads", F_d_model, "d_model")) {
            a->head_dim = 1;
        } else {
            a->head_dim = d_model / (a->differential ? 2 * a->heads : a->heads);
        }
    }
    if (a->head_dim == 0) a->head_dim = 1; /* see the exclusion differential_halves */
    const int64_t usual = a->differential ? 2 * a->head_dim : a->head_dim;
    a->value_dim = stated(scope, F_value_dim) ? get(scope, F_value_dim) : usual;
}

/* Differential attention (Ye et al. 2024, arXiv:2410.05258). */
static void resolve_differential(const Scope *scope, Attention *a) {
    a->differential = get(scope, F_differential);
    a->differential_init = get_real(scope, F_differential_init);
    a->differential_eps = get_real(scope, F_differential_eps);
}

bool all_biased(const Scope *scope) {
    static const Field projections[] = {F_bias_q, F_bias_k, F_bias_v, F_bias_o, F_bias_up, F_bias_gate, F_bias_down};
    if (get(scope, F_bias) != BIAS_UNSAID) return get(scope, F_bias) == BIAS_ALL;
    for (size_t i = 0; i < sizeof projections / sizeof projections[0]; i++)
        if (stated(scope, projections[i])) return false;
    return true;
}

static void resolve_bias(const Scope *scope, Attention *a) {
    const bool all = all_biased(scope);
    a->bias_q = a->projected && (all || get(scope, F_bias_q));
    a->bias_k = a->projected && (all || get(scope, F_bias_k));
    a->bias_v = a->projected && (all || get(scope, F_bias_v));
    a->bias_o = a->has_output && (all || get(scope, F_bias_o));
}

static void rope_lists(Resolver *r, const Scope *scope, const Item *item, Position *p) {
    const FieldValue *s = &scope->fields[F_rope_short], *l = &scope->fields[F_rope_long];
    p->short_factors = s->list;
    p->long_factors = l->list;
    static const Field reads[] = {F_position, F_rope_partial, F_rope_short, F_rope_long, WIDTHS};
    if (!all_known(scope, reads, sizeof reads / sizeof reads[0])) return;
    if (s->n != p->rope_width / 2 || l->n != p->rope_width / 2)
        diagnose(r->diagnostics, stated_at(scope, F_rope_short, item->location),
                 "longrope needs %lld `short` and %lld `long` factors, found %lld and %lld",
                 (long long)(p->rope_width / 2), (long long)(p->rope_width / 2), (long long)s->n, (long long)l->n);
}

Norm resolve_norm(const Scope *scope) {
    NormKind kind = (NormKind)get(scope, F_norm);
    return (Norm){kind, get_real(scope, F_norm_eps), get(scope, F_norm_plus_one),
                  norm_has_bias(kind) && !get(scope, F_norm_no_bias)};
}

void position_on_grid(Position *p, const Stack *stack) {
    if (!p->grid || !stack || stack->input != INPUT_PATCHES || !stack->patch) return;
    p->grid_before = stack->class_token + stack->distillation_token + stack->registers;
    p->grid_lines = patch_lines(stack);
    p->grid_columns = patch_columns(stack);
}

/* Several inputs of positions share the pairs of columns. */
static void rope_sections(Resolver *r, const Scope *scope, const Item *item, const Position *p) {
    const FieldValue *sections = &scope->fields[F_rope_sections];
    static const Field reads[] = {F_position, F_position_at, F_rope_sections, F_rope_partial, WIDTHS};
    if (!all_known(scope, reads, sizeof reads / sizeof reads[0])) return;
    int64_t pairs = 0;
    for (int64_t i = 0; i < sections->n; i++) pairs += (int64_t)sections->list[i];
    if (p->n_at < 2 && !sections->n) return;
    if (sections->n != p->n_at)
        diagnose(r->diagnostics, stated_at(scope, sections->n ? F_rope_sections : F_position_at, item->location),
                 "`sections` has a number of pairs for each of several inputs of `at`, found %lld and %d",
                 (long long)sections->n, p->n_at);
    else if (pairs != p->rope_width / 2)
        diagnose(r->diagnostics, stated_at(scope, F_rope_sections, item->location),
                 "`sections` must be %lld pairs together, found %lld", (long long)(p->rope_width / 2),
                 (long long)pairs);
}

static void resolve_position(Resolver *r, const Scope *scope, const Item *item, const Stack *stack, Attention *a) {
    Position *p = &a->position;
    PositionKind kind = (PositionKind)get(scope, F_position);
    bool here = stated(scope, F_position) && stands_in(scope->fields[F_position].location, item);
    bool within = kind == POSITION_ROPE || kind == POSITION_ALIBI || kind == POSITION_RELATIVE ||
                  kind == POSITION_CONTENT;
    if (a->cross) {
        if (here && kind != POSITION_NONE)
            diagnose(r->diagnostics, scope->fields[F_position].location, "cross attention has no position of its own");
        return;
    }
    if (here && !within && kind != POSITION_NONE)
        diagnose(r->diagnostics, scope->fields[F_position].location,
                 "these positions are added to the embedding; they have no meaning in attention");
    if (!within) return;
    *p = (Position){
        .kind = kind,
        .theta = get_real(scope, F_rope_theta),
        .factor = get_real(scope, F_rope_factor),
        .rope_interleaved = get(scope, F_rope_interleaved),
        .grid = get(scope, F_position_grid),
        .low = get_real(scope, F_rope_low),
        .high = get_real(scope, F_rope_high),
        .beta_fast = get_real(scope, F_rope_beta_fast),
        .beta_slow = get_real(scope, F_rope_beta_slow),
        .attention_factor = get_real(scope, F_rope_attention_factor),
        .untruncated = get(scope, F_rope_untruncated),
        .original = get(scope, F_rope_original),
        .alibi_max = get_real(scope, F_alibi_max),
        .alibi_scaled = get(scope, F_alibi_scaled),
        .alibi = (Alibi)get(scope, F_alibi),
        .buckets = get(scope, F_relative_buckets),
        .distance = get(scope, F_relative_distance),
        .per_layer = get(scope, F_relative_per_layer),
        .bidirectional = !a->mask_causal && !a->mask_prefix && !(a->where && pair_looks_back(a->where)),
        .scaling = (RopeScaling)get(scope, F_rope_scaling),
        .by_query = get(scope, F_content_by_query),
        .by_key = get(scope, F_content_by_key),
        .projected = get(scope, F_content_projected),
        .own = get(scope, F_content_own),
        .rows = get(scope, F_content_rows),
        .logarithmic = get(scope, F_content_logarithmic),
    };
    if (get(scope, F_content_normalized)) p->norm = resolve_norm(scope);
    position_at_inputs(r, scope, stack ? stack->seq.n : get(scope, F_queries), p);
    if (kind != POSITION_ROPE) return;
    p->rope_width = a->latent ? a->latent_rope
                              : (int64_t)floor((double)a->head_dim * get_real(scope, F_rope_partial) + 1e-9);
    position_on_grid(p, stack);
    rope_sections(r, scope, item, p);
    if (p->scaling == ROPE_LONGROPE) rope_lists(r, scope, item, p);
}

/* Heads whose keys and values come from one row, of which each head has a matrix of its own. */
static void resolve_latent(const Scope *scope, Attention *a) {
    a->latent = get(scope, F_latent);
    a->latent_rope = get(scope, F_latent_rope);
    a->latent_query = get(scope, F_latent_query);
    a->latent_eps = get_real(scope, F_latent_eps);
    if (!a->latent) return;
    a->kv_heads = 1;
    a->by_head = (Experts){.count = a->heads, .top = a->heads, .groups = 1, .top_groups = 1, .scale = 1};
}

/* A norm with an eps of its own, or that of `norm`. The fields of `qk_norm` and `inner_norm` have no common order. */
static Norm own_norm(const Scope *scope, Field kind_field, Field eps_field, Field plus_one, Field no_bias) {
    const NormKind kind = (NormKind)get(scope, kind_field);
    const double eps = get_real(scope, eps_field);
    if (kind == NORM_NONE) return (Norm){0};
    return (Norm){kind, eps == UNSET ? get_real(scope, F_norm_eps) : eps, get(scope, plus_one),
                  norm_has_bias(kind) && !get(scope, no_bias)};
}

Norm resolve_inner_norm(const Scope *scope) {
    return own_norm(scope, F_inner_norm, F_inner_norm_eps, F_inner_norm_plus_one, F_inner_norm_no_bias);
}

static void resolve_qk_norm(const Scope *scope, Attention *a) {
    a->qk_norm = own_norm(scope, F_qk_norm, F_qk_norm_eps, F_qk_norm_plus_one, F_qk_norm_no_bias);
    a->qk_norm_all_heads = a->qk_norm.kind && get(scope, F_qk_norm_all_heads);
    a->qk_norm_weight_per_head = a->qk_norm.kind && get(scope, F_qk_norm_weight_per_head);
    a->qk_norm_after_rotation = a->qk_norm.kind && get(scope, F_qk_norm_after_rotation);
}

/* Widths of the input rows: d_model, the encoder's hidden width, or, in attention alone, d_query, d_key, d_value. */
static void resolve_widths(Resolver *r, const Scope *scope, const Item *item, const Stack *stack, Attention *a) {
    int64_t d_model = get(scope, F_d_model);
    a->query_width = a->key_width = a->value_width = d_model;
    if (stack) {
        const Stack *read = stack->probed ? stack : r->model->encoder;
        if (a->cross && read) a->key_width = a->value_width = read->hidden_width;
        static const Field alone_only[] = {F_d_query, F_d_key, F_d_value, F_queries, F_keys};
        for (size_t i = 0; i < sizeof alone_only / sizeof alone_only[0]; i++)
            if (stated(scope, alone_only[i]))
                diagnose(r->diagnostics, scope->fields[alone_only[i]].location,
                         "this setting is for attention alone, outside encoder and decoder");
        return;
    }
    if (stated(scope, F_d_query)) a->query_width = get(scope, F_d_query);
    a->key_width = stated(scope, F_d_key) ? get(scope, F_d_key) : a->cross ? d_model : a->query_width;
    a->value_width = stated(scope, F_d_value) ? get(scope, F_d_value) : a->key_width;
    static const Field widths[] = {F_d_model, F_d_query, F_d_key, F_d_value};
    bool sure = all_known(scope, widths, sizeof widths / sizeof widths[0]);
    if (sure && !a->cross && (a->key_width != a->query_width || a->value_width != a->query_width)) {
        diagnose(r->diagnostics, stated_at(scope, F_d_key, item->location),
                 "self attention has one input: d_query, d_key and d_value must be equal");
        a->key_width = a->value_width = a->query_width;
    }
    if (a->query_width == 0 || a->key_width == 0) {
        if (sure)
            diagnose(r->diagnostics, item->location, "this attention needs %s or `d_model`",
                     a->query_width ? "`d_key`" : "`d_query`");
        a->query_width = a->query_width ? a->query_width : 1;
        a->key_width = a->key_width ? a->key_width : 1;
        a->value_width = a->value_width ? a->value_width : 1;
    }
}

bool attention_crosses(Resolver *r, const Item *item, bool cross_allowed) {
    static const char *const kinds[] = {"self", "cross", NULL};
    const char *word = block_word(item), *near = word ? near_word(r->arena, word, kinds) : NULL;
    const char *wanted = word ? synonym_of("attention", word) : NULL;
    const char *advice = word ? advice_of("attention", word) : NULL;
    bool cross = near && strcmp(near, "cross") == 0;
    if (!word || !near || strcmp(word, near) != 0)
        diagnose(r->diagnostics, item->values ? item->values->location : item->location,
                 "an attention is `attention self { … }` or `attention cross { … }`%s%s",
                 advice ? "; " : did_you_mean(r->arena, word ? word : "", wanted ? wanted : near),
                 advice ? advice : "");
    else if (!cross_allowed && cross)
        diagnose(r->diagnostics, item->values->location, "cross attention needs an encoder and belongs in the decoder");
    return cross;
}

/* The positions of queries and keys. */
static void position_ranges(const Scope *scope, const Stack *stack, const Stack *encoder, const Attention *a,
                            PairRange *query, PairRange *key) {
    const bool single = stack && stack->probed && a->cross; /* the query is the probe's row */
    const Stack *read = stack && a->cross && !single && encoder ? encoder : stack;
    const int64_t n = single ? 1 : stack ? stack->seq.n : get(scope, F_queries);
    const int64_t m = read ? read->seq.n : !a->cross && !stated(scope, F_keys) ? n : get(scope, F_keys);
    *query = (PairRange){0, (double)(n - 1)};
    *key = (PairRange){0, (double)(m - 1)};
}

void resolve_attention(Resolver *r, Scope *scope, const Item *item, const Stack *stack, bool cross,
                       Sublayer *sublayer) {
    Attention *a = &sublayer->attention;
    bool alone = !stack, in_decoder = stack && stack->is_decoder;
    a->cross = cross;
    a->score = (ScoreKind)get(scope, F_score);
    a->d_score = get(scope, F_d_score);
    a->projected = get(scope, F_project) == UNSET ? !score_is_bare(a->score) : get(scope, F_project);
    resolve_widths(r, scope, item, stack, a);
    resolve_differential(scope, a);
    resolve_heads(r, scope, item, a, alone);
    resolve_latent(scope, a);
    a->has_output = get(scope, F_output) == UNSET ? a->projected : get(scope, F_output);
    int64_t inner = 0;
    if (!mul_fits(a->heads, a->value_dim, &inner) || inner > MOST_INTEGER ||
        !mul_fits(a->heads, a->head_dim, &a->output_width) || a->output_width > MOST_INTEGER) {
        diagnose(r->diagnostics, item->location, "heads * head_dim is out of range");
        inner = 1;
    }
    int64_t d_out = get(scope, F_d_model) ? get(scope, F_d_model) : a->query_width;
    a->output_width = a->has_output ? d_out : inner;
    double scale = get_real(scope, F_scale);
    a->scale = stated(scope, F_scale) ? scale : usual_scale(a);
    a->softcap = get_real(scope, F_softcap);
    a->weighing = (Weighing)get(scope, F_softmax);
    a->clip = get_real(scope, F_clip);
    resolve_bias(scope, a);
    a->query_rows = alone || in_decoder ? ROWS_OF_OWN : ROWS_OF_SOURCE;
    a->key_rows = cross && (alone || !stack->probed) ? ROWS_OF_SOURCE : a->query_rows;
    if (!alone && stack->probed) a->query_rows = ROWS_OF_NONE;
    PairRange query, key;
    position_ranges(scope, stack, r->model->encoder, a, &query, &key);
    resolve_masks(r, scope, a, stack, query, key);
    resolve_score_rule(r, scope, a, query, key);
    resolve_qk_norm(scope, a);
    a->inner_norm = resolve_inner_norm(scope);
    resolve_position(r, scope, item, stack, a);
    check_exclusions(r, scope, item, a, alone, in_decoder);
}
