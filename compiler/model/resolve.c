/* resolve.c: from the tree to a Model: blocks, layers, sublayers, heads. */
#include "settings.h"

#include <math.h>
#include <string.h>

/* The word that a block's name is followed by: `attention self`, `model NAME`; NULL without one. */
static const char *block_word(const Item *item) {
    const Value *v = item->values;
    return v && v->kind == VALUE_EXPR && v->expr->kind == EXPR_NAME && !v->next ? v->expr->text : NULL;
}

static Norm norm_of(const Scope *scope) {
    NormKind kind = (NormKind)get(scope, F_norm);
    return (Norm){kind, get_real(scope, F_norm_eps), get(scope, F_norm_plus_one),
                  kind == NORM_LAYERNORM && !get(scope, F_norm_no_bias)};
}

/* ---------------------------------------------------------------- sublayers and layers */

static void resolve_ffn(Resolver *r, const Scope *scope, const Item *item, Ffn *ffn) {
    int64_t said = get(scope, F_bias_given);
    bool some = stated(scope, F_bias_q) || stated(scope, F_bias_k) || stated(scope, F_bias_v) ||
                stated(scope, F_bias_o) || stated(scope, F_bias_up) || stated(scope, F_bias_gate) ||
                stated(scope, F_bias_down);
    bool all = said == BIAS_ALL || (said == BIAS_UNSAID && !some);
    *ffn = (Ffn){.d_ff = get(scope, F_d_ff),
                 .activation = (Activation)get(scope, F_activation),
                 .gated = get(scope, F_gated),
                 .bias_up = all || get(scope, F_bias_up),
                 .bias_down = all || get(scope, F_bias_down)};
    ffn->bias_gate = ffn->gated && (all || get(scope, F_bias_gate));
    if (ffn->d_ff == 0) {
        if (known(scope, F_d_ff)) diagnose(r->diagnostics, item->place, "this ffn needs `d_ff`");
        ffn->d_ff = 1;
    }
    if (item->values) diagnose(r->diagnostics, item->values->place, "`ffn` is followed by its block, not by a value");
}

static void place_norms(const Scope *scope, Sublayer *sublayer) {
    NormPlace place = (NormPlace)get(scope, F_norm_place);
    Norm norm = norm_of(scope);
    if (place == PLACE_PRE || place == PLACE_BOTH) sublayer->norm_in = norm;
    if (place == PLACE_POST || place == PLACE_AFTER || place == PLACE_BOTH) sublayer->norm_out = norm;
    sublayer->norm_out_on_sum = place == PLACE_POST;
}

static bool is_attention(const Item *item) {
    return !item->is_let && !item->quoted && item->has_block && strcmp(item->name, "attention") == 0;
}
static bool is_ffn(const Item *item) {
    return !item->is_let && !item->quoted && item->has_block && strcmp(item->name, "ffn") == 0;
}
static bool is_block(const Item *item, const char *name) {
    return !item->is_let && !item->quoted && item->has_block && strcmp(item->name, name) == 0;
}

static void attention_word(Resolver *r, const Item *item, bool cross_allowed) {
    const char *word = block_word(item);
    if (!word || (strcmp(word, "self") != 0 && strcmp(word, "cross") != 0))
        diagnose(r->diagnostics, item->values ? item->values->place : item->place,
                 "an attention is `attention self { … }` or `attention cross { … }`");
    else if (!cross_allowed && strcmp(word, "cross") == 0)
        diagnose(r->diagnostics, item->values->place, "cross attention needs an encoder and stands in the decoder");
}

static Sublayer resolve_sublayer(Resolver *r, const Scope *outer, const Item *item, Stack *stack) {
    Sublayer sublayer = {.place = item->place, .kind = is_ffn(item) ? SUBLAYER_FFN : SUBLAYER_ATTENTION};
    Scope *scope = scope_enter(r, outer, is_ffn(item) ? BLOCK_FFN : BLOCK_ATTENTION, item->items);
    if (sublayer.kind == SUBLAYER_FFN) {
        resolve_ffn(r, scope, item, &sublayer.ffn);
        sublayer.name = "ffn";
    } else {
        attention_word(r, item, stack->is_decoder && r->model->encoder);
        r->position_said |= stated(scope, F_position);
        resolve_attention(r, scope, item, stack, &sublayer);
        sublayer.name = sublayer.attention.cross ? "cross_attention" : "attention";
    }
    place_norms(scope, &sublayer);
    sublayer.residual = get(scope, F_residual);
    sublayer.residual_scale = get_real(scope, F_residual_scale);
    if (!sublayer.residual && known(scope, F_residual) && stated(scope, F_residual_scale) &&
        get_real(scope, F_residual_scale) != 1)
        diagnose(r->diagnostics, scope->fields[F_residual_scale].place, "`residual no` excludes a scale");
    return sublayer;
}

/* Names stay unique within a layer: ffn, ffn2, ffn3. */
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
    Place place = stated_at(scope, F_block_parallel, item->place);
    const Sublayer *s = layer->sublayers;
    if (layer->count != 2 || s[0].kind != SUBLAYER_ATTENTION || s[0].attention.cross || s[1].kind != SUBLAYER_FFN) {
        diagnose(r->diagnostics, place, "a parallel block holds one `attention self` and one `ffn`, in this order");
        return;
    }
    if (s[0].norm_out_on_sum || s[1].norm_out_on_sum)
        diagnose(r->diagnostics, place, "a parallel block excludes `norm post`: there is one sum for both sublayers");
    if (!s[0].residual || !s[1].residual) diagnose(r->diagnostics, place, "a parallel block excludes `residual no`");
    if (layer->shared_norm && s[0].norm_in.kind == NORM_NONE)
        diagnose(r->diagnostics, place, "`shared_norm` needs `norm pre` or `norm both`");
}

static Layer resolve_layer(Resolver *r, const Scope *scope, const Item *item, Stack *stack) {
    Layer layer = {
        .place = item->place, .parallel = get(scope, F_block_parallel), .shared_norm = get(scope, F_block_shared_norm)};
    int count = 0;
    for (const Item *i = item->items; i; i = i->next) count += is_attention(i) || is_ffn(i);
    if (count == 0 && !scope->lost)
        diagnose(r->diagnostics, item->place, "a layer needs a sublayer: `attention self { … }` or `ffn { … }`");
    if (count > MOST_SUBLAYERS) {
        diagnose(r->diagnostics, item->place, "a layer holds at most %d sublayers", MOST_SUBLAYERS);
        return layer;
    }
    layer.sublayers = arena_array(r->arena, (size_t)count, sizeof *layer.sublayers);
    for (const Item *i = item->items; i; i = i->next)
        if (is_attention(i) || is_ffn(i)) layer.sublayers[layer.count++] = resolve_sublayer(r, scope, i, stack);
    name_twins(r, &layer);
    if (layer.parallel && !scope->lost && known(scope, F_norm_place)) check_parallel(r, scope, item, &layer);
    if (!layer.parallel && layer.shared_norm && known(scope, F_block_parallel))
        diagnose(r->diagnostics, stated_at(scope, F_block_shared_norm, item->place),
                 "`shared_norm` belongs to `block parallel`");
    return layer;
}

/* N of `layers N`, and `shared`. */
static int64_t layer_count(Resolver *r, const Scope *scope, const Item *item, bool *shared) {
    const Value *v = item->values;
    if (!v || v->kind != VALUE_EXPR) {
        diagnose(r->diagnostics, item->place, "`layers` wants their number: `layers N { … }`");
        r->layers_doubted = true;
        return 1;
    }
    Number n = evaluate_integer(r, scope, v->expr, "`layers`", 1, MOST_LAYERS);
    if (!n.ok) r->layers_doubted = true;
    v = v->next;
    *shared = v && v->kind == VALUE_EXPR && v->expr->kind == EXPR_NAME && strcmp(v->expr->text, "shared") == 0;
    if (*shared) v = v->next;
    if (v) diagnose(r->diagnostics, v->place, "behind `layers N` may only stand `shared`");
    return n.integer;
}

/* `export` names a layer or head once; numbers out of range are found later. */
static void check_export_list(Resolver *r, FieldValue *list, const char *what) {
    bool *seen = arena_array(r->arena, MOST_HEADS, sizeof *seen);
    for (int64_t i = 0; i < list->n; i++) {
        int64_t number = (int64_t)list->list[i];
        if (number < MOST_HEADS && !seen[number]) {
            seen[number] = true;
            continue;
        }
        diagnose(r->diagnostics, list->place, "`export` names %s %lld%s", what, (long long)number,
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

static void export_heads(Resolver *r, const Scope *scope, Attention *a) {
    const FieldValue *heads = &scope->fields[F_export_heads];
    a->exported = true;
    a->n_exported_heads = heads->n ? heads->n : a->heads;
    int64_t *list = arena_array(r->arena, (size_t)a->n_exported_heads, sizeof *list);
    for (int64_t h = 0; h < a->n_exported_heads; h++) {
        list[h] = heads->n ? (int64_t)heads->list[h] : h;
        if (list[h] < a->heads) continue;
        if (r->diagnostics->errors == 0)
            diagnose(r->diagnostics, heads->place, "`export` names head %lld, and there are %lld", (long long)list[h],
                     (long long)a->heads);
        list[h] = 0;
    }
    a->exported_heads = list;
}

/* Copies a layer of the pattern to its place among the layers; what is exported differs from layer to layer. */
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

static void resolve_layers(Resolver *r, const Scope *outer, const Item *item, Stack *stack) {
    bool shared = false;
    Scope *scope = scope_enter(r, outer, BLOCK_LAYERS, item->items);
    int64_t n = layer_count(r, outer, item, &shared), patterns = 0, direct = 0, first = stack->n_layers;
    for (const Item *i = item->items; i; i = i->next) {
        patterns += is_block(i, "layer");
        direct += is_attention(i) || is_ffn(i);
    }
    if (patterns && direct)
        diagnose(r->diagnostics, item->place, "`layers` holds either `layer` blocks or sublayers, not both");
    if (first + n > MOST_LAYERS) {
        diagnose(r->diagnostics, item->place, "at most %d layers", MOST_LAYERS);
        r->layers_doubted = true;
        return;
    }
    if (patterns > n && !r->layers_doubted) {
        r->layers_doubted = true;
        diagnose(r->diagnostics, item->place, "the pattern has %lld layers, and `layers` says %lld",
                 (long long)patterns, (long long)n);
        return;
    }
    Layer *pattern = arena_array(r->arena, (size_t)(patterns ? patterns : 1), sizeof *pattern);
    int64_t p = 0;
    for (const Item *i = item->items; i && patterns; i = i->next)
        if (is_block(i, "layer")) {
            if (i->values)
                diagnose(r->diagnostics, i->values->place, "`layer` is followed by its block, not by a value");
            Scope *inner = scope_enter(r, scope, BLOCK_LAYER, i->items);
            pattern[p++] = resolve_layer(r, inner, i, stack);
        }
    if (!p) pattern[p++] = resolve_layer(r, scope, item, stack);
    if (!stack->layers) stack->layers = arena_array(r->arena, MOST_LAYERS, sizeof *stack->layers);
    for (int64_t i = 0; i < n; i++) place_layer(r, stack, scope, &pattern[i % p], shared ? first + i % p : first + i);
    stack->pattern = first ? stack->n_layers : p;
}

/* ---------------------------------------------------------------- stacks */

static void resolve_input(Resolver *r, Scope *scope, const Item *item, Stack *stack) {
    stack->input = (int)get(scope, F_input);
    if (stack->input == INPUT_PATCHES) {
        stack->image_height = get(scope, F_image_height);
        stack->image_width = stated(scope, F_image_width) ? get(scope, F_image_width) : stack->image_height;
        stack->patch = get(scope, F_patch);
        stack->class_token = get(scope, F_class_token);
        stack->distillation_token = get(scope, F_distillation_token);
        Place place = stated_at(scope, F_input, item->place);
        bool sure = known(scope, F_image_height) && known(scope, F_image_width) && known(scope, F_patch);
        if (!sure) {
            stack->seq = (Length){1, true};
        } else if (!stack->image_height || !stack->patch) {
            diagnose(r->diagnostics, place, "`input patches` needs `image N` and `patch N`");
        } else if (stack->patch > MOST_PATCH) {
            diagnose(r->diagnostics, place, "`patch` must be at most %d, found %lld", MOST_PATCH,
                     (long long)stack->patch);
        } else if (stack->image_height % stack->patch || stack->image_width % stack->patch) {
            diagnose(r->diagnostics, place, "`patch %lld` does not divide the image, %lld x %lld",
                     (long long)stack->patch, (long long)stack->image_height, (long long)stack->image_width);
        } else {
            int64_t rows = (stack->image_height / stack->patch) * (stack->image_width / stack->patch) +
                           stack->class_token + stack->distillation_token;
            if (rows > MOST_ROWS)
                diagnose(r->diagnostics, place, "the image has more than %d patches", MOST_ROWS), rows = 1;
            if (stated(scope, F_seq) && known(scope, F_seq) && get(scope, F_seq) != rows)
                diagnose(r->diagnostics, scope->fields[F_seq].place, "the image gives %lld rows, not %lld",
                         (long long)rows, (long long)get(scope, F_seq));
            stack->seq = (Length){rows, true};
        }
        if (stack->distillation_token && !stack->class_token && known(scope, F_input))
            diagnose(r->diagnostics, place, "`distillation` needs `class`");
        if (stack->is_decoder) diagnose(r->diagnostics, place, "a decoder reads tokens or features, not patches");
        return;
    }
    stack->seq = (Length){get(scope, F_seq), get(scope, F_seq_exact)};
    if (!stack->seq.n) {
        if (known(scope, F_seq) && known(scope, F_input))
            diagnose(r->diagnostics, item->place, "`%s` needs `seq = N` or `seq <= N`", stack->name);
        doubt(scope, F_seq);
        stack->seq.n = 1;
    }
    if (known(scope, F_input) && (stated(scope, F_patch) || stated(scope, F_image_height)))
        diagnose(r->diagnostics, stated_at(scope, F_input, item->place),
                 "`image` and `patch` belong to `input patches`");
}

static void resolve_embedding(Resolver *r, Scope *scope, const Item *item, Stack *stack) {
    int64_t d_model = r->model->d_model;
    stack->vocab = get(scope, F_vocab);
    stack->segments = get(scope, F_segments);
    stack->embedding_scale = get_real(scope, F_embedding_scale);
    stack->embedding_width = stated(scope, F_embedding_factor) ? get(scope, F_embedding_factor) : d_model;
    stack->embedding_projected = stated(scope, F_embedding_factor);
    stack->embedding_projection_bias = stack->embedding_projected && get(scope, F_embedding_factor_bias);
    if (get(scope, F_embedding_normalized)) stack->embedding_norm = norm_of(scope);
    if (get(scope, F_embedding_tied) && !r->model->embedding_tied)
        diagnose(r->diagnostics, stated_at(scope, F_embedding_tied, item->place),
                 "`embedding tied` is said of the whole model: it stands outside `%s`", stack->name);
    if (!get(scope, F_embedding_factor_bias) && !stack->embedding_projected && known(scope, F_embedding_factor))
        diagnose(r->diagnostics, stated_at(scope, F_embedding_factor_bias, item->place),
                 "`embedding no_bias` needs `factor`");
    if (stack->input == INPUT_TOKENS && !stack->vocab) {
        if (known(scope, F_vocab) && known(scope, F_input))
            diagnose(r->diagnostics, item->place, "`%s` reads tokens and needs `vocab`", stack->name);
        doubt(scope, F_vocab);
    }
    if (!known(scope, F_vocab)) stack->vocab = 0; /* no token is outside of what is not known */
    if (stack->input != INPUT_TOKENS) {
        stack->vocab = 0;
        if (stack->segments)
            diagnose(r->diagnostics, scope->fields[F_segments].place, "`segments` needs `input tokens`");
        if (stack->embedding_projected)
            diagnose(r->diagnostics, scope->fields[F_embedding_factor].place,
                     "`embedding factor` needs `input tokens`");
        if (stack->input == INPUT_PATCHES && stack->embedding_scale != 1)
            diagnose(r->diagnostics, stated_at(scope, F_embedding_scale, item->place),
                     "`embedding scale` needs `input tokens` or `input features`");
        stack->segments = 0;
    }
}

static void resolve_stack_position(Resolver *r, const Scope *scope, const Item *item, Stack *stack) {
    PositionKind kind = (PositionKind)get(scope, F_position);
    stack->position =
        (Position){.kind = kind, .sinusoid = (Sinusoid)get(scope, F_sinusoid), .offset = get(scope, F_position_offset)};
    if (kind != POSITION_SINUSOIDAL && kind != POSITION_LEARNED) stack->position = (Position){0};
    Place place = stated_at(scope, F_position, item->place);
    if (!known(scope, F_position) || !known(scope, F_d_model) || !known(scope, F_embedding_factor)) return;
    if (kind == POSITION_SINUSOIDAL && stack->embedding_width % 2)
        diagnose(r->diagnostics, place, "sinusoidal positions need an even width, found %lld",
                 (long long)stack->embedding_width);
    if (kind == POSITION_SINUSOIDAL && stack->position.sinusoid == SINUSOID_FAIRSEQ && stack->embedding_width < 4)
        diagnose(r->diagnostics, place, "fairseq's positions need a width of at least 4");
    if (stack->position.offset > MOST_ROWS) diagnose(r->diagnostics, place, "`offset` must be at most %d", MOST_ROWS);
}

/* A relative table that the whole stack shares takes its shape from the self attentions, which must agree. */
static void share_relative(Resolver *r, Stack *stack) {
    const Attention *first = NULL;
    for (int64_t l = 0; l < stack->n_layers; l++)
        for (int s = 0; s < stack->layers[l].count; s++) {
            const Sublayer *sub = &stack->layers[l].sublayers[s];
            const Position *p = &sub->attention.position;
            if (sub->kind != SUBLAYER_ATTENTION || p->kind != POSITION_RELATIVE || p->per_layer) continue;
            if (!first) {
                first = &sub->attention;
                stack->relative = *p;
                stack->relative_heads = first->heads;
            } else if (r->diagnostics->errors == 0 && /* a number that was refused agrees with none */
                       (first->heads != sub->attention.heads || first->position.buckets != p->buckets ||
                        first->position.distance != p->distance)) {
                diagnose(r->diagnostics, sub->place,
                         "layers that share relative positions must agree in heads, buckets and distance");
                return;
            }
        }
}

static void resolve_final_norm(const Scope *scope, Stack *stack) {
    const Layer *last = stack->n_layers ? &stack->layers[stack->n_layers - 1] : NULL;
    const Norm *norm = NULL;
    bool open = false; /* the last sum is not normalized, though its sublayer's input or output is */
    for (int s = 0; last && s < last->count; s++) {
        const Sublayer *sub = &last->sublayers[s];
        if (sub->norm_in.kind) norm = &sub->norm_in;
        if (sub->norm_out.kind) norm = &sub->norm_out;
        open = norm && !sub->norm_out_on_sum;
    }
    int64_t said = get(scope, F_final_norm);
    if (said == UNSET ? open : said) stack->final_norm = stated(scope, F_norm) || !norm ? norm_of(scope) : *norm;
}

/* Rows keep their width from sublayer to sublayer; only the last one of a stack may give another. */
static void check_widths(Resolver *r, Stack *stack) {
    int64_t width = r->model->d_model;
    for (int64_t l = 0; l < stack->n_layers; l++)
        for (int s = 0; s < stack->layers[l].count; s++) {
            const Sublayer *sub = &stack->layers[l].sublayers[s];
            if (width != r->model->d_model) {
                diagnose(
                    r->diagnostics, sub->place,
                    "this sublayer gets rows of width %lld from an attention with `output none`, not `d_model %lld`",
                    (long long)width, (long long)r->model->d_model);
                return;
            }
            int64_t out = sub->kind == SUBLAYER_ATTENTION ? sub->attention.output_width : width;
            if (out != width && sub->residual) {
                diagnose(r->diagnostics, sub->place,
                         "`output none` gives rows of width %lld, which cannot be added to the input of width %lld: "
                         "say `residual no`",
                         (long long)out, (long long)width);
                return;
            }
            width = out;
        }
    stack->hidden_width = width;
}

static void check_export(Resolver *r, const Scope *scope, const Stack *stack) {
    const FieldValue *layers = &scope->fields[F_export_layers];
    bool sure = !r->layers_doubted && known(scope, F_export_layers);
    for (int64_t i = 0; i < layers->n && sure; i++)
        if ((int64_t)layers->list[i] >= stack->n_layers)
            diagnose(r->diagnostics, layers->place, "`export` names layer %lld, and there are %lld, from 0",
                     (long long)layers->list[i], (long long)stack->n_layers);
}

/* Attention over all rows gives the same whatever their order is, unless positions or the mask tell it. */
static bool knows_order(const Resolver *r, const Stack *stack) {
    bool mixes = false, ordered = r->position_said || stack->input == INPUT_PATCHES || stack->seq.n == 1;
    for (int64_t l = 0; l < stack->n_layers; l++)
        for (int s = 0; s < stack->layers[l].count; s++) {
            const Sublayer *sub = &stack->layers[l].sublayers[s];
            const Attention *a = &sub->attention;
            if (sub->kind != SUBLAYER_ATTENTION || a->cross) continue;
            mixes = true;
            ordered |= a->mask_causal || a->mask_prefix || a->mask_given || a->window;
        }
    return ordered || !mixes;
}

static void note_unordered(Resolver *r) {
    for (int i = 0; i < r->n_unordered; i++) {
        const Stack *stack = r->unordered[i];
        diagnose_note(r->diagnostics, stack->place,
                      "without `position` this %s cannot tell the order of its %s: it sees a bag of them; "
                      "say `position none` if that is meant",
                      stack->name, stack->input == INPUT_TOKENS ? "tokens" : "rows");
    }
}

static Stack *resolve_stack(Resolver *r, const Scope *outer, const Item *item, bool is_decoder) {
    Stack *stack = arena_alloc(r->arena, sizeof *stack);
    stack->name = is_decoder ? "decoder" : "encoder";
    stack->place = item->place;
    stack->is_decoder = is_decoder;
    stack->hidden_width = r->model->d_model;
    if (item->values)
        diagnose(r->diagnostics, item->values->place, "`%s` is followed by its block, not by a value", stack->name);
    Scope *scope = scope_enter(r, outer, is_decoder ? BLOCK_DECODER : BLOCK_ENCODER, item->items);
    r->layers_doubted = false;
    r->position_said = stated(scope, F_position);
    resolve_input(r, scope, item, stack);
    resolve_embedding(r, scope, item, stack);
    resolve_stack_position(r, scope, item, stack);
    check_export_list(r, &scope->fields[F_export_layers], "layer");
    check_export_list(r, &scope->fields[F_export_heads], "head");
    for (const Item *i = item->items; i; i = i->next)
        if (is_block(i, "layers")) resolve_layers(r, scope, i, stack);
    if (scope->lost) r->layers_doubted = true;
    if (!stack->n_layers && !r->diagnostics->errors)
        diagnose(r->diagnostics, item->place, "`%s` needs `layers N { … }`", stack->name);
    share_relative(r, stack);
    resolve_final_norm(scope, stack);
    if (r->diagnostics->errors == 0) check_widths(r, stack);
    check_export(r, scope, stack);
    if (!knows_order(r, stack)) r->unordered[r->n_unordered++] = stack;
    return stack;
}

/* ---------------------------------------------------------------- the model */

static void check_name(Resolver *r, const Item *item, const char *name) {
    const char *fault = model_name_fault(r->arena, name);
    if (fault) diagnose(r->diagnostics, item->values->place, "%s", fault);
}

static void resolve_head(Resolver *r, const Scope *scope, const Item *item) {
    Model *model = r->model;
    Head *head = &model->head;
    const Stack *stack = model->decoder ? model->decoder : model->encoder;
    *head = (Head){.place = stated_at(scope, F_head_logits, item->place),
                   .logits = get(scope, F_head_logits),
                   .tied = get(scope, F_head_tied),
                   .bias = get(scope, F_head_bias),
                   .softcap = get_real(scope, F_head_softcap),
                   .scale = get_real(scope, F_head_scale),
                   .pool = get(scope, F_head_pooled) ? (PoolKind)get(scope, F_head_pool) : POOL_NONE,
                   .l2 = get(scope, F_head_l2),
                   .pooler = get(scope, F_head_pooler),
                   .classifier = get(scope, F_head_classifier),
                   .classifier_bias = get(scope, F_head_classifier_bias)};
    static const Field any[] = {F_head_tied, F_head_pooled, F_head_pooler, F_head_classifier, F_head_pool,
                                F_head_l2, F_head_bias, F_head_softcap, F_head_scale};
    for (size_t i = 0; i < sizeof any / sizeof any[0]; i++)
        if (stated(scope, any[i])) head->place = scope->fields[any[i]].place;
    bool pooling = head->pool || head->pooler || head->classifier;
    if (!stack) {
        if (pooling || head->logits) diagnose(r->diagnostics, head->place, "attention alone has no head");
        return;
    }
    bool tied = head->tied || (head->logits && model->embedding_tied);
    if (!head->logits && (head->tied || head->bias || stated(scope, F_head_softcap) || stated(scope, F_head_scale)))
        diagnose(r->diagnostics, head->place, "tied, bias, softcap and scale belong to `head logits`");
    if ((stated(scope, F_head_pool) || head->l2) && !head->pool)
        diagnose(r->diagnostics, head->place, "mean, cls, max, last and l2 belong to `head pool`");
    if (!head->classifier_bias && !head->classifier)
        diagnose(r->diagnostics, stated_at(scope, F_head_classifier_bias, head->place),
            "`no_bias` belongs to `head classifier`");
    if (head->logits && pooling) diagnose(r->diagnostics, head->place, "`logits` and pooling exclude each other");
    if (head->l2 && (head->pooler || head->classifier))
        diagnose(r->diagnostics, head->place, "`l2` stands alone behind a pool");
    if (head->logits && !stack->vocab) diagnose(r->diagnostics, head->place, "`head logits` needs tokens and `vocab`");
    if (tied && stack->hidden_width != stack->embedding_width)
        diagnose(r->diagnostics, head->place,
                 "a tied head needs embedding rows as wide as the hidden rows: %lld and %lld",
                 (long long)stack->embedding_width, (long long)stack->hidden_width);
    if (model->decoder && model->encoder && pooling)
        diagnose(r->diagnostics, head->place, "pooling is for one stack alone");
    head->tied = tied;
}

static void resolve_tokens(Resolver *r, const Scope *scope) {
    Model *model = r->model;
    const Stack *stack = model->decoder ? model->decoder : model->encoder;
    model->start = get(scope, F_start);
    model->pad = get(scope, F_pad);
    const FieldValue *end = &scope->fields[F_end];
    int64_t *list = arena_array(r->arena, (size_t)end->n, sizeof *list);
    for (int64_t i = 0; i < end->n; i++) list[i] = (int64_t)end->list[i];
    model->end = list;
    model->n_end = end->n;
    if (!stack || !stack->vocab) return;
    static const Field fields[] = {F_start, F_pad};
    for (int i = 0; i < 2; i++)
        if (get(scope, fields[i]) >= stack->vocab)
            diagnose(r->diagnostics, scope->fields[fields[i]].place, "token %lld is outside the vocabulary of %lld",
                     (long long)get(scope, fields[i]), (long long)stack->vocab);
    for (int64_t i = 0; i < end->n; i++)
        if (list[i] >= stack->vocab)
            diagnose(r->diagnostics, end->place, "token %lld is outside the vocabulary of %lld", (long long)list[i],
                     (long long)stack->vocab);
}

static void resolve_alone(Resolver *r, const Scope *outer, const Item *item) {
    Model *model = r->model;
    Sublayer *sublayer = arena_alloc(r->arena, sizeof *sublayer);
    *sublayer = (Sublayer){.kind = SUBLAYER_ATTENTION, .place = item->place, .name = "attention", .residual_scale = 1};
    attention_word(r, item, true);
    Scope *scope = scope_enter(r, outer, BLOCK_ATTENTION, item->items);
    resolve_attention(r, scope, item, NULL, sublayer);
    model->queries = (Length){get(scope, F_queries), get(scope, F_queries_exact)};
    model->keys = (Length){get(scope, F_keys), get(scope, F_keys_exact)};
    bool self = !sublayer->attention.cross;
    if (!model->queries.n && known(scope, F_queries))
        diagnose(r->diagnostics, item->place, "attention alone needs `queries = N` or `queries <= N`");
    if (self && !stated(scope, F_keys)) model->keys = model->queries;
    bool sure = known(scope, F_queries) && known(scope, F_keys);
    if (!model->keys.n && sure)
        diagnose(r->diagnostics, item->place, "attention alone needs `keys = N` or `keys <= N`");
    if (self && sure && (model->keys.n != model->queries.n || model->keys.exact != model->queries.exact))
        diagnose(r->diagnostics, stated_at(scope, F_keys, item->place), "self attention has as many keys as queries");
    check_export_list(r, &scope->fields[F_export_heads], "head");
    if (stated(scope, F_export_layers))
        diagnose(r->diagnostics, scope->fields[F_export_layers].place, "attention alone has no layers");
    if (get(scope, F_export_attention)) export_heads(r, scope, &sublayer->attention);
    model->alone = sublayer;
}

static const Item *only_block(Resolver *r, const Item *items, const char *name) {
    const Item *found = NULL;
    for (const Item *i = items; i; i = i->next) {
        if (!is_block(i, name)) continue;
        if (found) {
            diagnose(r->diagnostics, i->place, "a model has one `%s`", name);
            diagnose_note(r->diagnostics, found->place, "the first one");
        } else {
            found = i;
        }
    }
    return found;
}

/* The name behind `model`, or "unnamed" and a diagnostic: of `nano-gpt`, which reads as a difference, too. */
static const char *name_of(Resolver *r, const Item *item) {
    const char *name = block_word(item);
    const Value *first = item->values;
    if (name) {
        check_name(r, item, name);
        return name;
    }
    if (first && first->kind == VALUE_EXPR && (first->next || first->expr->kind != EXPR_INTEGER)) {
        Place place = first->place;
        for (const Value *v = first; v; v = v->next)
            if (v->place.line == place.line) place.length = v->place.column + v->place.length - place.column;
        diagnose(r->diagnostics, place, "`%.63s` is no name: letters, digits and `_`", text_at(r->arena, place));
    } else {
        diagnose(r->diagnostics, first ? first->place : item->place, "a model needs a name: `model NAME { … }`");
    }
    return "unnamed";
}

static void resolve_model(Resolver *r, const Scope *outermost, const Item *item) {
    Model *model = r->model;
    model->place = item->place;
    model->name = name_of(r, item);
    Scope *scope = scope_enter(r, outermost, BLOCK_MODEL, item->items);
    const Item *encoder = only_block(r, item->items, "encoder"), *decoder = only_block(r, item->items, "decoder");
    const Item *alone = only_block(r, item->items, "attention"), *weights = only_block(r, item->items, "weights");
    model->d_model = get(scope, F_d_model);
    model->embedding_tied = get(scope, F_embedding_tied);
    model->unroll_full = get(scope, F_unroll_full);
    model->dtype = DTYPE_F32;
    if (!encoder && !decoder && !alone && r->diagnostics->errors == 0)
        diagnose(r->diagnostics, item->place, "a model needs `encoder { … }`, `decoder { … }` or an `attention` alone");
    if (alone && (encoder || decoder))
        diagnose(r->diagnostics, alone->place,
                 "attention alone excludes encoder and decoder; in them it stands in `layers`");
    if ((encoder || decoder) && !model->d_model) {
        if (known(scope, F_d_model)) diagnose(r->diagnostics, item->place, "this model needs `d_model`");
        doubt(scope, F_d_model);
        model->d_model = scope->fields[F_d_model].integer = 1;
    }
    if (encoder) model->encoder = resolve_stack(r, scope, encoder, false);
    if (decoder) model->decoder = resolve_stack(r, scope, decoder, true);
    if (alone && !encoder && !decoder) resolve_alone(r, scope, alone);
    const Stack *e = model->encoder, *d = model->decoder;
    if (model->embedding_tied && e && d && r->diagnostics->errors == 0 &&
        (e->vocab != d->vocab || e->embedding_width != d->embedding_width))
        diagnose(r->diagnostics, stated_at(scope, F_embedding_tied, item->place),
                 "`embedding tied` needs one vocabulary and width for source and target");
    if (r->diagnostics->errors == 0) check_inputs(r);
    if (r->diagnostics->errors == 0) resolve_head(r, scope, item);
    resolve_tokens(r, scope);
    if (weights) resolve_source_names(r, scope, weights);
}

Model *resolve(Arena *arena, const Ast *ast, Diagnostics *diagnostics) {
    Model *model = arena_alloc(arena, sizeof *model);
    model->source = ast->source;
    Resolver r = {.arena = arena, .diagnostics = diagnostics, .model = model};
    Scope *scope = scope_outermost(&r);
    scope->block = BLOCK_MODEL;
    const Item *found = NULL;
    for (const Item *item = ast->items; item; item = item->next) {
        if (scope_let(&r, scope, item)) continue;
        if (item->quoted || strcmp(item->name, "model") != 0) {
            static const char *const only[] = {"model", NULL};
            const char *near = near_word(r.arena, item->name, only);
            diagnose(diagnostics, item->place, "a file holds `let` lines and one `model NAME { … }`, found `%s`%s",
                     item->name, did_you_mean(r.arena, item->name, near));
        } else if (found) {
            diagnose(diagnostics, item->place, "a file holds one model");
            diagnose_note(diagnostics, found->place, "the first one");
        } else {
            found = item;
            refuse_relation(&r, item);
            if (!item->has_block) diagnose(diagnostics, item->place, "`model` wants a block: `model NAME { … }`");
        }
    }
    if (!found && !diagnostics->errors)
        diagnose(diagnostics, (Place){ast->source, 1, 1, 0}, "the file has no model: it must hold `model NAME { … }`");
    if (found && found->has_block) resolve_model(&r, scope, found);
    if (diagnostics->errors) return NULL;
    if (model->n_source_names > 0) {
        WeightTable table = weights_table(arena, model);
        check_source_names(&r, &table);
        if (diagnostics->errors) return NULL;
    }
    note_unordered(&r);
    Text canonical = text_new(arena);
    model_print(&canonical, model, false);
    model->hash = hash_bytes(0, canonical.data, canonical.size);
    return model;
}

Model *model_load(Arena *arena, const char *path) {
    Diagnostics diagnostics = diagnostics_new(arena, stderr);
    Ast *ast = parse(arena, source_read(arena, path), &diagnostics);
    Model *model = diagnostics.errors ? NULL : resolve(arena, ast, &diagnostics);
    if (!model) fail("%s: %d error%s", path, diagnostics.errors, diagnostics.errors == 1 ? "" : "s");
    return model;
}
