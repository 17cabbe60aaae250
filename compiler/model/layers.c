/* layers.c: sublayers, layers, and the pattern in which layers repeat. */
#include "settings.h"

#include <string.h>

/* The types of the matrices whose precision begins with the field `first`, and of the rows that they multiply. The
 * fields of `precision` and those of a last matrix have the same order. */
static Precision product_precision(const Scope *scope, Field first) {
    const FieldValue *fields = &scope->fields[first] - F_weights_dtype;
    Precision p = {.weights = {.dtype = (Dtype)fields[F_weights_dtype].integer,
                               .group = (int)fields[F_weights_group].integer,
                               .offset = fields[F_weights_offset].integer,
                               .halves = fields[F_weights_halves].integer},
                   .activations = (Dtype)fields[F_activations_dtype].integer,
                   .smooth = fields[F_smooth].integer,
                   .outliers = (int)fields[F_outliers].integer};
    if (!p.weights.group && (p.weights.dtype == DTYPE_I4 || p.weights.halves)) p.weights.group = DEFAULT_GROUP;
    return p;
}

Precision resolve_precision(const Scope *scope) {
    Precision precision = product_precision(scope, F_weights_dtype);
    precision.attention = (Dtype)get(scope, F_attention_dtype);
    precision.cache = (Dtype)get(scope, F_cache_dtype);
    return precision;
}

Precision resolve_last_precision(const Scope *scope, SublayerKind kind) {
    Precision last = resolve_precision(scope);
    const Precision own =
        product_precision(scope, kind == SUBLAYER_FFN ? F_down_weights_dtype : F_output_weights_dtype);
    if (own.weights.dtype != DTYPE_COUNT) last.weights = own.weights;
    if (own.activations == DTYPE_COUNT) return last;
    last.activations = own.activations;
    last.smooth = own.smooth;
    last.outliers = own.outliers;
    return last;
}

/* Refuses what a mixture of experts lacks or cannot be, and options of one where there is none. */
static void check_experts(Resolver *r, const Scope *scope, const Item *item, Experts *e) {
    static const Field of_experts[] = {F_top, F_router, F_router_renormalized, F_router_scale, F_router_bias,
                                       F_router_corrected, F_router_groups, F_router_top_groups, F_shared_expert,
                                       F_shared_gated};
    for (size_t i = 0; i < sizeof of_experts / sizeof *of_experts && !stated(scope, F_experts); i++) {
        if (!stated(scope, of_experts[i])) continue;
        diagnose(r->diagnostics, scope->fields[of_experts[i]].location,
                 "`top`, `router` and `shared_expert` need `experts N`");
        return;
    }
    if (!e->count) return;
    const Location at = stated_at(scope, F_experts, item->location);
    if (!e->top && known(scope, F_top))
        diagnose(r->diagnostics, at, "`experts %lld` needs `top N`", (long long)e->count);
    if (!e->top) e->top = 1;
    if (e->count > MOST_EXPERTS)
        diagnose(r->diagnostics, at, "`experts %lld`: at most %d", (long long)e->count, MOST_EXPERTS);
    const bool sure = known(scope, F_experts) && known(scope, F_top) && known(scope, F_router_groups) &&
                      known(scope, F_router_top_groups);
    if (!sure) return;
    if (e->count % e->groups)
        diagnose(r->diagnostics, stated_at(scope, F_router_groups, at), "%lld experts are not %lld groups of one size",
                 (long long)e->count, (long long)e->groups);
    else if (e->top_groups > e->groups)
        diagnose(r->diagnostics, stated_at(scope, F_router_top_groups, at), "`top_groups %lld` of %lld groups",
                 (long long)e->top_groups, (long long)e->groups);
    else if (e->top > e->count / e->groups * e->top_groups)
        diagnose(r->diagnostics, stated_at(scope, F_top, at), "`top %lld` of %lld experts%s", (long long)e->top,
                 (long long)(e->count / e->groups * e->top_groups),
                 e->top_groups < e->groups ? " in the chosen groups" : "");
    else if (e->router == ROUTER_SIGMOID && e->top_groups < e->groups && e->count / e->groups < 2)
        diagnose(r->diagnostics, stated_at(scope, F_router_groups, at),
                 "groups of one expert have no two scores to add, as `sigmoid` needs for `top_groups`");
    if (e->shared_gated && !e->shared)
        diagnose(r->diagnostics, stated_at(scope, F_shared_gated, at),
                 "`shared_expert gated` needs the width: `shared_expert N gated`");
}

static void resolve_experts(Resolver *r, const Scope *scope, const Item *item, Experts *e) {
    *e = (Experts){.count = get(scope, F_experts),
                   .top = get(scope, F_top),
                   .router = (RouterKind)get(scope, F_router),
                   .renormalized = get(scope, F_router_renormalized),
                   .bias = get(scope, F_router_bias),
                   .corrected = get(scope, F_router_corrected),
                   .scale = get_real(scope, F_router_scale),
                   .groups = get(scope, F_router_groups),
                   .top_groups = get(scope, F_router_top_groups),
                   .shared = get(scope, F_shared_expert),
                   .shared_gated = get(scope, F_shared_gated)};
    if (!e->top_groups) e->top_groups = e->groups;
    check_experts(r, scope, item, e);
    if (!e->count) *e = (Experts){0};
}

static void refuse_inner_norm(Resolver *r, const Scope *scope, const Item *item) {
    if (!known(scope, F_experts) || !known(scope, F_inner_norm)) return;
    const Location at = scope->fields[F_inner_norm].location;
    diagnose(r->diagnostics, at, "`inner_norm` of a mixture of experts is not supported yet");
    if (!stands_in(at, item)) diagnose_note(r->diagnostics, item->location, "in this ffn");
}

static void resolve_ffn(Resolver *r, const Scope *scope, const Item *item, Ffn *ffn) {
    const bool all = all_biased(scope);
    *ffn = (Ffn){.d_ff = get(scope, F_d_ff),
                 .activation = resolve_activation(r, scope, ACTIVATION_relu),
                 .gated = get(scope, F_gated),
                 .limit = get_real(scope, F_activation_limit),
                 .plus_one = get(scope, F_activation_plus_one),
                 .bias_up = all || get(scope, F_bias_up),
                 .bias_down = all || get(scope, F_bias_down)};
    ffn->bias_gate = ffn->gated && (all || get(scope, F_bias_gate));
    ffn->inner_norm = resolve_inner_norm(scope);
    resolve_experts(r, scope, item, &ffn->experts);
    if (ffn->experts.count && ffn->inner_norm.kind) refuse_inner_norm(r, scope, item);
    if (ffn->d_ff == 0) {
        if (known(scope, F_d_ff)) diagnose(r->diagnostics, item->location, "this ffn needs `d_ff`");
        ffn->d_ff = 1;
    }
    refuse_values(r, item);
}

static void place_norms(const Scope *scope, Sublayer *sublayer) {
    NormPlace place = (NormPlace)get(scope, F_norm_place);
    Norm norm = resolve_norm(scope);
    if (place == PLACE_PRE || place == PLACE_BOTH) sublayer->norm_in = norm;
    if (place == PLACE_POST || place == PLACE_AFTER || place == PLACE_BOTH) sublayer->norm_out = norm;
    sublayer->norm_out_on_sum = place == PLACE_POST;
}

static bool is_attention(const Item *item) { return item_is_block(item, "attention"); }
static bool is_ffn(const Item *item) { return item_is_block(item, "ffn"); }

static Sublayer resolve_sublayer(Resolver *r, const Scope *outer, const Item *item, Stack *stack) {
    Sublayer sublayer = {.location = item->location, .kind = is_ffn(item) ? SUBLAYER_FFN : SUBLAYER_ATTENTION};
    Scope *scope = scope_enter(r, outer, is_ffn(item) ? BLOCK_FFN : BLOCK_ATTENTION, item->items);
    if (sublayer.kind == SUBLAYER_FFN) {
        resolve_ffn(r, scope, item, &sublayer.ffn);
        sublayer.name = "ffn";
    } else {
        bool cross = attention_crosses(r, item, stack->probed || (stack->is_decoder && r->model->encoder));
        r->position_said |= stated(scope, F_position);
        resolve_attention(r, scope, item, stack, cross, &sublayer);
        sublayer.name = sublayer.attention.cross && !stack->probed ? "cross_attention" : "attention";
    }
    place_norms(scope, &sublayer);
    sublayer.precision = resolve_precision(scope);
    sublayer.last = resolve_last_precision(scope, sublayer.kind);
    sublayer.residual = get(scope, F_residual);
    sublayer.residual_scale = get_real(scope, F_residual_scale);
    sublayer.residual_learned = get(scope, F_residual_learned);
    if (!sublayer.residual && known(scope, F_residual) && sublayer.residual_learned)
        diagnose(r->diagnostics, scope->fields[F_residual_learned].location, "`residual no` excludes `learned`");
    if (!sublayer.residual && known(scope, F_residual) && stated(scope, F_residual_scale) &&
        get_real(scope, F_residual_scale) != 1)
        diagnose(r->diagnostics, scope->fields[F_residual_scale].location, "`residual no` excludes a scale");
    return sublayer;
}

/* Numbers sublayers of the same kind, so that names are unique within a layer: ffn, ffn2, ffn3. */
static void name_twins(Resolver *r, Layer *layer) {
    for (int i = 0; i < layer->count; i++) {
        int before = 0;
        for (int j = 0; j < i; j++)
            before += layer->sublayers[j].kind == layer->sublayers[i].kind &&
                      layer->sublayers[j].attention.cross == layer->sublayers[i].attention.cross;
        if (before) layer->sublayers[i].name = arena_printf(r->arena, "%s%d", layer->sublayers[i].name, before + 1);
    }
}

static void check_parallel(Resolver *r, const Scope *scope, const Item *item, Layer *layer) {
    Location location = stated_at(scope, F_block_parallel, item->location);
    const Sublayer *s = layer->sublayers;
    if (layer->count != 2 || s[0].kind != SUBLAYER_ATTENTION || s[0].attention.cross || s[1].kind != SUBLAYER_FFN) {
        diagnose(r->diagnostics, location, "a parallel block holds one `attention self` and one `ffn`, in this order");
        return;
    }
    if (s[0].norm_out_on_sum || s[1].norm_out_on_sum)
        diagnose(r->diagnostics, location,
                 "a parallel block excludes `norm post`: there is one sum for both sublayers");
    if (!s[0].residual || !s[1].residual) diagnose(r->diagnostics, location, "a parallel block excludes `residual no`");
    if (layer->shared_norm && s[0].norm_in.kind == NORM_NONE)
        diagnose(r->diagnostics, location, "`shared_norm` needs `norm pre` or `norm both`");
}

Layer resolve_layer(Resolver *r, const Scope *scope, const Item *item, Stack *stack) {
    Layer layer = {.location = item->location};
    if (!stack->probed) {
        layer.parallel = get(scope, F_block_parallel);
        layer.shared_norm = get(scope, F_block_shared_norm);
    }
    int count = 0;
    for (const Item *i = item->items; i; i = i->next) count += is_attention(i) || is_ffn(i);
    if (count == 0 && !scope->lost)
        diagnose(r->diagnostics, item->location, "a layer needs a sublayer: `attention self { … }` or `ffn { … }`");
    if (count > MOST_SUBLAYERS) {
        diagnose(r->diagnostics, item->location, "a layer holds at most %d sublayers", MOST_SUBLAYERS);
        return layer;
    }
    layer.sublayers = arena_array(r->arena, (size_t)count, sizeof *layer.sublayers);
    for (const Item *i = item->items; i; i = i->next)
        if (is_attention(i) || is_ffn(i)) layer.sublayers[layer.count++] = resolve_sublayer(r, scope, i, stack);
    name_twins(r, &layer);
    if (layer.parallel && !scope->lost && known(scope, F_norm_place)) check_parallel(r, scope, item, &layer);
    if (!layer.parallel && layer.shared_norm && known(scope, F_block_parallel))
        diagnose(r->diagnostics, stated_at(scope, F_block_shared_norm, item->location),
                 "`shared_norm` belongs to `block parallel`");
    return layer;
}

/* Reads the number behind `layers`, and whether `shared` follows. */
static int64_t layer_count(Resolver *r, const Scope *scope, const Item *item, bool *shared) {
    const Value *v = item->values;
    if (!v || v->kind != VALUE_EXPR) {
        diagnose(r->diagnostics, item->location, "`layers` wants their number: `layers N { … }`");
        r->layers_doubted = true;
        return 1;
    }
    Number n = evaluate_integer(r, scope, v->expr, "`layers`", 1, MOST_LAYERS);
    if (!n.ok) r->layers_doubted = true;
    v = v->next;
    *shared = v && v->kind == VALUE_EXPR && is_word(v->expr, "shared");
    if (*shared) v = v->next;
    if (v) diagnose(r->diagnostics, v->location, "only `shared` may follow `layers N`");
    return n.integer;
}

/* Refuses a layer or head that `export` names twice. Numbers out of range are reported later. */
void check_export_list(Resolver *r, FieldValue *list, const char *what) {
    bool *seen = arena_array(r->arena, MOST_HEADS, sizeof *seen);
    for (int64_t i = 0; i < list->n; i++) {
        int64_t number = (int64_t)list->list[i];
        if (number < MOST_HEADS && !seen[number]) {
            seen[number] = true;
            continue;
        }
        diagnose(r->diagnostics, list->location, "`export` names %s %lld%s", what, (long long)number,
                 number < MOST_HEADS ? " twice" : ", which no model has");
        list->n = 0;
    }
}

static bool is_exported(const Scope *scope, int64_t layer) {
    const FieldValue *layers = &scope->fields[F_export_layers];
    if (!get(scope, F_export_attention)) return false;
    if (!layers->n) return true;
    for (int64_t i = 0; i < layers->n; i++)
        if ((int64_t)layers->list[i] == layer) return true;
    return false;
}

void export_heads(Resolver *r, const Scope *scope, Attention *a) {
    const FieldValue *heads = &scope->fields[F_export_heads];
    a->exported = true;
    a->n_exported_heads = heads->n ? heads->n : a->heads;
    int64_t *list = arena_array(r->arena, (size_t)a->n_exported_heads, sizeof *list);
    for (int64_t h = 0; h < a->n_exported_heads; h++) {
        list[h] = heads->n ? (int64_t)heads->list[h] : h;
        if (list[h] < a->heads) continue;
        if (r->diagnostics->errors == 0)
            diagnose(r->diagnostics, heads->location, "`export` names head %lld, and there are %lld",
                     (long long)list[h],
                     (long long)a->heads);
        list[h] = 0;
    }
    a->exported_heads = list;
}

/* Appends a copy of a layer of the pattern to the stack. The exported maps differ from layer to layer. */
static void place_layer(Resolver *r, Stack *stack, const Scope *scope, const Layer *pattern, int64_t weights_of) {
    Layer *layer = &stack->layers[stack->n_layers];
    *layer = *pattern;
    layer->weights_of = weights_of;
    layer->sublayers = arena_array(r->arena, (size_t)pattern->count, sizeof *layer->sublayers);
    if (pattern->count) memcpy(layer->sublayers, pattern->sublayers, (size_t)pattern->count * sizeof *layer->sublayers);
    for (int s = 0; s < layer->count; s++)
        if (layer->sublayers[s].kind == SUBLAYER_ATTENTION && is_exported(scope, stack->n_layers))
            export_heads(r, scope, &layer->sublayers[s].attention);
    stack->n_layers++;
}

void resolve_layers(Resolver *r, const Scope *outer, const Item *item, Stack *stack) {
    bool shared = false;
    Scope *scope = scope_enter(r, outer, BLOCK_LAYERS, item->items);
    int64_t n = layer_count(r, outer, item, &shared), patterns = 0, direct = 0, first = stack->n_layers;
    for (const Item *i = item->items; i; i = i->next) {
        patterns += item_is_block(i, "layer");
        direct += is_attention(i) || is_ffn(i);
    }
    if (patterns && direct)
        diagnose(r->diagnostics, item->location, "`layers` holds either `layer` blocks or sublayers, not both");
    if (first + n > MOST_LAYERS) {
        diagnose(r->diagnostics, item->location, "at most %d layers", MOST_LAYERS);
        r->layers_doubted = true;
        return;
    }
    if (patterns > n && !r->layers_doubted) {
        r->layers_doubted = true;
        diagnose(r->diagnostics, item->location, "the pattern has %lld layers, and `layers` says %lld",
                 (long long)patterns, (long long)n);
        return;
    }
    Layer *pattern = arena_array(r->arena, (size_t)(patterns ? patterns : 1), sizeof *pattern);
    int64_t p = 0;
    for (const Item *i = item->items; i && patterns; i = i->next)
        if (item_is_block(i, "layer")) {
            refuse_values(r, i);
            Scope *inner = scope_enter(r, scope, BLOCK_LAYER, i->items);
            pattern[p++] = resolve_layer(r, inner, i, stack);
        }
    if (!p) pattern[p++] = resolve_layer(r, scope, item, stack);
    if (!stack->layers) stack->layers = arena_array(r->arena, MOST_LAYERS, sizeof *stack->layers);
    for (int64_t i = 0; i < n; i++) place_layer(r, stack, scope, &pattern[i % p], shared ? first + i % p : first + i);
    stack->pattern = first + p;
}
