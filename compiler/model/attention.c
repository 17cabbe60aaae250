/* attention.c: an attention sublayer, every default explicit, and the table of what excludes what. */
#include "settings.h"

#include <math.h>

/* A row refuses a combination that has no meaning, or that no back end is meant to give. `blame` is the
 * field whose place is shown. */
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

static bool bare_score(const Attention *a) { return a->score == SCORE_GENERAL || a->score == SCORE_ADDITIVE; }

#define WIDTHS F_heads, F_head_dim, F_d_model /* the fields that give a head its width */
/* A rule's condition, and the fields that it reads: it is not asked while one of them is in doubt. */
#define RULE(name, condition, ...) \
    static bool name(const Scope *scope, const Attention *a, bool alone, bool in_decoder) { \
        (void)scope, (void)a, (void)alone, (void)in_decoder; \
        static const Field reads[] = {__VA_ARGS__}; \
        return all_known(scope, reads, sizeof reads / sizeof reads[0]) && (condition); \
    }
RULE(bare_in_self, bare_score(a) && !alone && !a->cross, F_score)
RULE(bare_heads, bare_score(a) && a->heads > 1, F_score, F_heads)
RULE(bare_projected, bare_score(a) && a->projected, F_score, F_project)
RULE(bare_head_dim, !a->projected && (stated(scope, F_head_dim) || stated(scope, F_value_dim)), F_score, F_project)
RULE(bare_kv_heads, !a->projected && !bare_score(a) && a->heads > 1, F_score, F_project, F_heads)
RULE(additive_width, a->score == SCORE_ADDITIVE && a->d_score == 0, F_score, F_d_score)
RULE(score_width, a->score != SCORE_ADDITIVE && stated(scope, F_d_score), F_score)
RULE(dot_widths,
     !a->projected && !bare_score(a) && a->query_width != a->key_width,
     F_score, F_project, F_d_model, F_d_query, F_d_key)
RULE(bare_qk_norm, bare_score(a) && a->qk_norm.kind != NORM_NONE, F_score, F_qk_norm)
RULE(bare_position, bare_score(a) && a->position.kind != POSITION_NONE, F_score, F_position)
RULE(cross_causal, a->cross && a->mask_causal && !alone, F_mask_causal)
RULE(cross_prefix, a->cross && a->mask_prefix && !alone, F_mask_prefix)
RULE(cross_window, a->cross && a->window && !alone, F_window)
RULE(decoder_open,
     in_decoder && !a->cross && !a->mask_causal && !a->mask_prefix,
     F_mask_given, F_mask_causal, F_mask_prefix)
RULE(rope_odd,
     a->position.kind == POSITION_ROPE && a->position.rope_width % 2 != 0 && !(a->position.rope_width < 2 &&
     stated(scope, F_rope_partial)),
     F_position, F_rope_partial, WIDTHS)
RULE(rope_nothing,
     a->position.kind == POSITION_ROPE && a->position.rope_width < 2 && stated(scope, F_rope_partial),
     F_position, F_rope_partial, WIDTHS)
RULE(rope_factor,
     a->position.kind == POSITION_ROPE && a->position.scaling != ROPE_PLAIN && !stated(scope, F_rope_factor),
     F_position, F_rope_factor)
RULE(rope_original,
     a->position.kind == POSITION_ROPE && a->position.scaling >= ROPE_LLAMA3 && a->position.original == 0,
     F_position, F_rope_original)
RULE(longrope_original, a->position.scaling == ROPE_LONGROPE && a->position.original == 1, F_position, F_rope_original)
RULE(rope_low_high,
     a->position.scaling == ROPE_LLAMA3 && a->position.high <= a->position.low,
     F_position, F_rope_low, F_rope_high)
RULE(sink_no_window, a->sink > 0 && a->window == 0, F_sink, F_window)
RULE(alone_norm, alone && stated(scope, F_norm_place) && get(scope, F_norm_place) != PLACE_NONE, F_norm_place)
RULE(alone_residual, alone && stated(scope, F_residual) && get(scope, F_residual), F_residual)
RULE(qk_per_head_all, a->qk_norm_all_heads && a->qk_norm_weight_per_head, F_qk_norm)
RULE(relative_buckets,
     a->position.kind == POSITION_RELATIVE && a->position.buckets < (a->position.bidirectional ? 4 : 2),
     F_position, F_relative_buckets, F_mask_given)
RULE(relative_even,
     a->position.kind == POSITION_RELATIVE && a->position.bidirectional && a->position.buckets % 2 != 0,
     F_position, F_relative_buckets, F_mask_given)
RULE(relative_distance,
     a->position.kind == POSITION_RELATIVE && a->position.distance <= a->position.buckets / (a->position.bidirectional
     ? 4 : 2),
     F_position, F_relative_buckets, F_relative_distance, F_mask_given)
RULE(relative_alone, alone && a->position.kind == POSITION_RELATIVE && !a->position.per_layer, F_position)
#undef RULE

static const Exclusion exclusions[] = {
    {bare_in_self, F_score, "`general` and `additive` scores are for attention alone and cross attention"},
    {bare_heads, F_heads, "`general` and `additive` scores have one head"},
    {bare_projected, F_project, "`general` and `additive` scores take rows as they come: `project yes` excludes them"},
    {bare_kv_heads, F_heads, "attention without projections has one head"},
    {bare_head_dim, F_head_dim, "attention without projections has no head_dim or value_dim of its own"},
    {additive_width, F_score, "`score additive` needs `d_score`"},
    {score_width, F_d_score, "`d_score` belongs to `score additive`"},
    {dot_widths, F_d_query, "without projections a query and a key must be of one width"},
    {bare_qk_norm, F_qk_norm, "`qk_norm` needs a scaled_dot or dot score"},
    {bare_position, F_position, "rope, alibi and relative positions need a scaled_dot or dot score"},
    {cross_causal, F_mask_causal, "cross attention sees the whole source: `mask causal` has no meaning there"},
    {cross_prefix, F_mask_prefix, "cross attention sees the whole source: `mask prefix` has no meaning there"},
    {cross_window, F_window, "cross attention sees the whole source: a window has no meaning there"},
    {decoder_open, F_mask_given,
     "a decoder generates row by row: its self attention needs `mask causal` or `mask prefix`"},
    {rope_nothing, F_rope_partial, "rope rotates no column: `partial` is too small for this head_dim"},
    {rope_odd, F_position, "rope rotates pairs of columns, and the rotated width is odd"},
    {rope_factor, F_rope_scaling, "this rope scaling needs `factor F`"},
    {rope_original, F_position, "this rope scaling needs `original N`"},
    {longrope_original, F_rope_original, "longrope divides by the logarithm of `original`, which must be at least 2"},
    {rope_low_high, F_rope_low, "llama3: `high` must be greater than `low`"},
    {sink_no_window, F_sink, "`sink N` lets keys ignore the window, and there is no window"},
    {alone_norm, F_norm_place, "attention alone has no norm around it"},
    {alone_residual, F_residual, "attention alone has no residual"},
    {qk_per_head_all, F_qk_norm_weight_per_head, "a norm over all heads has a weight a column already"},
    {relative_buckets, F_relative_buckets, "relative positions need at least 4 buckets (2 where the mask is causal)"},
    {relative_even, F_relative_buckets, "relative positions without a causal mask need an even number of buckets"},
    {relative_distance, F_relative_distance,
     "`distance` must be greater than the buckets of single distances (a half of those of one direction)"},
    {relative_alone, F_position, "attention alone needs `position relative per_layer`"},
};

static bool stands_in(Place place, const Item *item) {
    return place_before(item->place, place) && place_before(place, item->block_end);
}

static void check_exclusions(Resolver *r, const Scope *scope, const Item *item, const Attention *a, bool alone,
                             bool in_decoder) {
    for (size_t i = 0; i < sizeof exclusions / sizeof exclusions[0]; i++)
        if (known(scope, exclusions[i].blame) && exclusions[i].holds(scope, a, alone, in_decoder)) {
            Place place = stated_at(scope, exclusions[i].blame, item->place);
            diagnose(r->diagnostics, place, "%s", exclusions[i].reason);
            if (scope->fields[exclusions[i].blame].stated && !stands_in(place, item))
                diagnose_note(r->diagnostics, item->place, "in this attention");
        }
}

/* `part` must divide `whole`, or is in doubt from here on; the note shows where the other half of the conflict
 * stands. */
static bool must_divide(Resolver *r, Scope *scope, const Item *item, Field part, const char *part_name,
                        Field whole, const char *whole_name) {
    int64_t p = get(scope, part), w = get(scope, whole);
    if (!known(scope, part) || !known(scope, whole) || (p > 0 && w % p == 0)) return true;
    doubt(scope, part);
    diagnose(r->diagnostics, stated_at(scope, part, item->place), "`%s %lld` does not divide `%s %lld`", part_name,
             (long long)p, whole_name, (long long)w);
    if (stated(scope, whole)) diagnose_note(r->diagnostics, scope->fields[whole].place, "`%s` stands here", whole_name);
    return false;
}

static void resolve_heads(Resolver *r, Scope *scope, const Item *item, Attention *a, bool alone) {
    int64_t d_model = get(scope, F_d_model);
    if (!a->projected) { /* rows as they come: one head over whole rows */
        a->heads = stated(scope, F_heads) ? get(scope, F_heads) : 1;
        a->kv_heads = 1;
        a->head_dim = a->query_width;
        a->value_dim = a->value_width;
        return;
    }
    a->heads = get(scope, F_heads);
    if (a->heads == 0) {
        if (known(scope, F_heads)) diagnose(r->diagnostics, item->place, "this attention needs `heads`");
        doubt(scope, F_heads);
        a->heads = 1;
    }
    if (a->heads > MOST_HEADS) {
        diagnose(r->diagnostics, stated_at(scope, F_heads, item->place), "at most %d heads, found %lld", MOST_HEADS,
                 (long long)a->heads);
        doubt(scope, F_heads);
        a->heads = 1;
    }
    a->kv_heads = stated(scope, F_kv_heads) ? get(scope, F_kv_heads) : a->heads;
    if (stated(scope, F_kv_heads) && !must_divide(r, scope, item, F_kv_heads, "kv_heads", F_heads, "heads"))
        a->kv_heads = a->heads;
    a->head_dim = get(scope, F_head_dim);
    if (a->head_dim == 0) {
        if (d_model == 0 && alone) {
            if (known(scope, F_head_dim) && known(scope, F_d_model))
                diagnose(r->diagnostics, item->place, "this attention needs `head_dim` or `d_model`");
            doubt(scope, F_head_dim);
            a->head_dim = 1;
        } else if (stated(scope, F_heads) && stated(scope, F_d_model) &&
                   !must_divide(r, scope, item, F_heads, "heads", F_d_model, "d_model")) {
            a->head_dim = 1;
        } else {
            a->head_dim = d_model / a->heads;
        }
    }
    a->value_dim = stated(scope, F_value_dim) ? get(scope, F_value_dim) : a->head_dim;
}

static void resolve_bias(const Scope *scope, Attention *a) {
    int64_t said = get(scope, F_bias_given);
    bool some = stated(scope, F_bias_q) || stated(scope, F_bias_k) || stated(scope, F_bias_v) ||
                stated(scope, F_bias_o) || stated(scope, F_bias_up) || stated(scope, F_bias_gate) ||
                stated(scope, F_bias_down);
    bool all = said == BIAS_ALL || (said == BIAS_UNSAID && !some);
    a->bias_q = a->projected && (all || get(scope, F_bias_q));
    a->bias_k = a->projected && (all || get(scope, F_bias_k));
    a->bias_v = a->projected && (all || get(scope, F_bias_v));
    a->bias_o = a->has_output && (all || get(scope, F_bias_o));
}

static void resolve_masks(const Scope *scope, Attention *a, bool in_decoder) {
    bool said = stated(scope, F_mask_given) || stated(scope, F_mask_causal) || stated(scope, F_mask_padding) ||
                stated(scope, F_mask_prefix) || stated(scope, F_mask_input);
    a->mask_prefix = get(scope, F_mask_prefix);
    a->mask_causal = get(scope, F_mask_causal) || (!said && in_decoder && !a->cross);
    a->mask_padding = get(scope, F_mask_padding);
    a->mask_given = get(scope, F_mask_input);
    a->window = get(scope, F_window);
    a->sink = get(scope, F_sink);
    a->sink_learned = get(scope, F_sink_learned);
}

static void rope_lists(Resolver *r, const Scope *scope, const Item *item, Position *p) {
    const FieldValue *s = &scope->fields[F_rope_short], *l = &scope->fields[F_rope_long];
    p->short_factors = s->list;
    p->long_factors = l->list;
    static const Field reads[] = {F_position, F_rope_partial, F_rope_short, F_rope_long, WIDTHS};
    if (!all_known(scope, reads, sizeof reads / sizeof reads[0])) return;
    if (s->n != p->rope_width / 2 || l->n != p->rope_width / 2)
        diagnose(r->diagnostics, stated_at(scope, F_rope_short, item->place),
                 "longrope needs %lld `short` and %lld `long` factors, found %lld and %lld",
                 (long long)(p->rope_width / 2), (long long)(p->rope_width / 2), (long long)s->n, (long long)l->n);
}

static void resolve_position(Resolver *r, const Scope *scope, const Item *item, Attention *a) {
    Position *p = &a->position;
    PositionKind kind = (PositionKind)get(scope, F_position);
    bool here = stated(scope, F_position) && stands_in(scope->fields[F_position].place, item);
    bool within = kind == POSITION_ROPE || kind == POSITION_ALIBI || kind == POSITION_RELATIVE;
    if (a->cross) {
        if (here && kind != POSITION_NONE)
            diagnose(r->diagnostics, scope->fields[F_position].place, "cross attention has no position of its own");
        return;
    }
    if (here && !within && kind != POSITION_NONE)
        diagnose(r->diagnostics, scope->fields[F_position].place,
                 "these positions are added to the embedding; they have no meaning in attention");
    if (!within) return;
    *p = (Position){
        .kind = kind,
        .theta = get_real(scope, F_rope_theta),
        .factor = get_real(scope, F_rope_factor),
        .rope_interleaved = get(scope, F_rope_interleaved),
        .low = get_real(scope, F_rope_low),
        .high = get_real(scope, F_rope_high),
        .beta_fast = get_real(scope, F_rope_beta_fast),
        .beta_slow = get_real(scope, F_rope_beta_slow),
        .attention_factor = get_real(scope, F_rope_attention_factor),
        .untruncated = get(scope, F_rope_untruncated),
        .original = get(scope, F_rope_original),
        .alibi_max = get_real(scope, F_alibi_max),
        .alibi_scaled = get(scope, F_alibi_scaled),
        .buckets = get(scope, F_relative_buckets),
        .distance = get(scope, F_relative_distance),
        .per_layer = get(scope, F_relative_per_layer),
        .bidirectional = !a->mask_causal && !a->mask_prefix,
        .scaling = (RopeScaling)get(scope, F_rope_scaling),
    };
    if (kind != POSITION_ROPE) return;
    p->rope_width = (int64_t)floor((double)a->head_dim * get_real(scope, F_rope_partial) + 1e-9);
    if (p->scaling == ROPE_LONGROPE) rope_lists(r, scope, item, p);
}

static void resolve_qk_norm(const Scope *scope, Attention *a) {
    NormKind kind = (NormKind)get(scope, F_qk_norm);
    double eps = get_real(scope, F_qk_norm_eps);
    a->qk_norm = (Norm){kind, eps == UNSET ? get_real(scope, F_norm_eps) : eps, get(scope, F_qk_norm_plus_one),
                        kind == NORM_LAYERNORM && !get(scope, F_qk_norm_no_bias)};
    if (kind == NORM_NONE) a->qk_norm = (Norm){0};
    a->qk_norm_all_heads = kind && get(scope, F_qk_norm_all_heads);
    a->qk_norm_weight_per_head = kind && get(scope, F_qk_norm_weight_per_head);
}

/* Widths of what comes in: from d_model, from the encoder's hidden rows, or, alone, from d_query, d_key, d_value. */
static void resolve_widths(Resolver *r, const Scope *scope, const Item *item, const Stack *stack, Attention *a) {
    int64_t d_model = get(scope, F_d_model);
    a->query_width = a->key_width = a->value_width = d_model;
    if (stack) {
        if (a->cross && r->model->encoder) a->key_width = a->value_width = r->model->encoder->hidden_width;
        static const Field alone_only[] = {F_d_query, F_d_key, F_d_value, F_queries, F_keys};
        for (size_t i = 0; i < sizeof alone_only / sizeof alone_only[0]; i++)
            if (stated(scope, alone_only[i]))
                diagnose(r->diagnostics, scope->fields[alone_only[i]].place,
                         "this setting is for attention alone, outside encoder and decoder");
        return;
    }
    if (stated(scope, F_d_query)) a->query_width = get(scope, F_d_query);
    a->key_width = stated(scope, F_d_key) ? get(scope, F_d_key) : a->cross ? d_model : a->query_width;
    a->value_width = stated(scope, F_d_value) ? get(scope, F_d_value) : a->key_width;
    static const Field widths[] = {F_d_model, F_d_query, F_d_key, F_d_value};
    bool sure = all_known(scope, widths, sizeof widths / sizeof widths[0]);
    if (sure && !a->cross && (a->key_width != a->query_width || a->value_width != a->query_width)) {
        diagnose(r->diagnostics, stated_at(scope, F_d_key, item->place),
                 "self attention has one input: d_query, d_key and d_value must be equal");
        a->key_width = a->value_width = a->query_width;
    }
    if (a->query_width == 0 || a->key_width == 0) {
        if (sure)
            diagnose(r->diagnostics, item->place, "this attention needs %s or `d_model`",
                     a->query_width ? "`d_key`" : "`d_query`");
        a->query_width = a->query_width ? a->query_width : 1;
        a->key_width = a->key_width ? a->key_width : 1;
        a->value_width = a->value_width ? a->value_width : 1;
    }
}

void resolve_attention(Resolver *r, Scope *scope, const Item *item, const Stack *stack, Sublayer *sublayer) {
    Attention *a = &sublayer->attention;
    bool alone = !stack, in_decoder = stack && stack->is_decoder;
    const char *word = item->values && item->values->kind == VALUE_EXPR && item->values->expr->kind == EXPR_NAME
                           ? item->values->expr->text
                           : "";
    a->cross = word[0] == 'c';
    a->score = (ScoreKind)get(scope, F_score);
    a->d_score = get(scope, F_d_score);
    a->projected = get(scope, F_project) == UNSET ? !bare_score(a) : get(scope, F_project);
    resolve_widths(r, scope, item, stack, a);
    resolve_heads(r, scope, item, a, alone);
    a->has_output = get(scope, F_output) == UNSET ? a->projected : get(scope, F_output);
    int64_t inner = 0;
    if (!mul_fits(a->heads, a->value_dim, &inner) || inner > MOST_INTEGER ||
        !mul_fits(a->heads, a->head_dim, &a->output_width) || a->output_width > MOST_INTEGER) {
        diagnose(r->diagnostics, item->place, "heads * head_dim is out of range");
        inner = 1;
    }
    int64_t d_out = get(scope, F_d_model) ? get(scope, F_d_model) : a->query_width;
    a->output_width = a->has_output ? d_out : inner;
    double scale = get_real(scope, F_scale);
    a->scale = stated(scope, F_scale) ? scale : a->score == SCORE_SCALED_DOT ? 1.0 / sqrt((double)a->head_dim) : 1.0;
    a->softcap = get_real(scope, F_softcap);
    resolve_bias(scope, a);
    resolve_masks(scope, a, in_decoder);
    resolve_qk_norm(scope, a);
    resolve_position(r, scope, item, a);
    check_exclusions(r, scope, item, a, alone, in_decoder);
}
