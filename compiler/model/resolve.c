/* resolve.c: from the tree of a spec to a Model: the model itself, its head and its tokens. */
#include "settings.h"

#include <string.h>

/* Which of the last rows `head pool last skip N` and `token N` mean, by the ids of the tokens that the model reads. */
static void resolve_last_row(Resolver *r, const Scope *scope) {
    Head *head = &r->model->head;
    const int64_t skip = get(scope, F_head_pool_skip), token = get(scope, F_head_pool_token);
    const Stack *read = r->model->encoder ? r->model->encoder : r->model->decoder;
    head->pool_token = -1;
    if (head->pool != POOL_LAST || (skip == UNSET && token == UNSET)) return;
    const Location location = scope->fields[token == UNSET ? F_head_pool_skip : F_head_pool_token].location;
    head->pool = token == UNSET ? POOL_LAST_SKIP : POOL_LAST_TOKEN;
    head->pool_token = token == UNSET ? skip : token;
    if (skip != UNSET && token != UNSET) {
        diagnose(r->diagnostics, location, "`skip` and `token` exclude each other");
    } else if (read && read->input != INPUT_TOKENS) {
        diagnose(r->diagnostics, location, "`%s` needs `input tokens`", token == UNSET ? "skip" : "token");
    } else if (read) {
        check_token(r, location, head->pool_token, read->vocab);
    }
}

static void resolve_head(Resolver *r, const Scope *scope, const Item *item) {
    Model *model = r->model;
    Head *head = &model->head;
    const Stack *stack = model->decoder ? model->decoder : model->encoder;
    *head = (Head){.location = stated_at(scope, F_head_logits, item->location),
                   .logits = get(scope, F_head_logits),
                   .tied = get(scope, F_head_tied),
                   .bias = get(scope, F_head_bias),
                   .softcap = get_real(scope, F_head_softcap),
                   .scale = get_real(scope, F_head_scale),
                   .pool = get(scope, F_head_pooled) ? (PoolKind)get(scope, F_head_pool) : POOL_NONE,
                   .l2 = get(scope, F_head_l2),
                   .normed = get(scope, F_head_normed),
                   .pooler = get(scope, F_head_pooler),
                   .activation = (Activation)get(scope, F_head_activation),
                   .transform = get(scope, F_head_transform),
                   .transform_bias = get(scope, F_head_transform_bias),
                   .norm = get(scope, F_head_transform_norm) ? resolve_norm(scope) : (Norm){0},
                   .classifier = get(scope, F_head_classifier),
                   .classifier_bias = get(scope, F_head_classifier_bias),
                   .classifier_rows = get(scope, F_head_rows)};
    resolve_last_row(r, scope);
    static const Field any[] = {F_head_tied, F_head_pooled, F_head_pooler, F_head_classifier, F_head_pool,
                                F_head_l2, F_head_bias, F_head_softcap, F_head_scale};
    for (size_t i = 0; i < sizeof any / sizeof any[0]; i++)
        if (stated(scope, any[i])) head->location = scope->fields[any[i]].location;
    bool pooling = head->pool || head->pooler || head->classifier;
    if (!stack) {
        if (pooling || head->logits) diagnose(r->diagnostics, head->location, "attention alone has no head");
        return;
    }
    bool tied = head->tied || (head->logits && model->embedding_tied);
    if (!head->logits && (head->tied || head->bias || stated(scope, F_head_softcap) || stated(scope, F_head_scale)))
        diagnose(r->diagnostics, head->location, "tied, bias, softcap and scale belong to `head logits`");
    if ((stated(scope, F_head_pool) || head->l2 || head->normed) && !head->pool)
        diagnose(r->diagnostics, head->location, "mean, cls, max, last, cls_mean, cls_distillation, probe, l2 and norm "
            "belong to `head pool`");
    if (stated(scope, F_head_activation) && !head->pooler && !head->transform)
        diagnose(r->diagnostics, stated_at(scope, F_head_activation, head->location),
            "an activation belongs to `pooler` or `transform`");
    if (head->transform && !stated(scope, F_head_activation)) head->activation = ACTIVATION_gelu;
    if (head->transform && (head->pooler || (!head->logits && !head->classifier)))
        diagnose(r->diagnostics, stated_at(scope, F_head_transform, head->location),
            "`transform` belongs to `logits` or `classifier`, without `pooler`");
    if (!head->transform_bias && !head->transform)
        diagnose(r->diagnostics, stated_at(scope, F_head_transform_bias, head->location),
            "`transform_no_bias` belongs to `transform`");
    if (!get(scope, F_head_transform_norm) && !head->transform)
        diagnose(r->diagnostics, stated_at(scope, F_head_transform_norm, head->location),
            "`transform_no_norm` belongs to `transform`");
    if (!head->classifier_bias && !head->classifier)
        diagnose(r->diagnostics, stated_at(scope, F_head_classifier_bias, head->location),
            "`no_bias` belongs to `head classifier`");
    if (head->classifier_rows && (!head->classifier || head->pool || head->pooler))
        diagnose(r->diagnostics, stated_at(scope, F_head_rows, head->location),
            "`rows` belongs to `head classifier`, without `pool` and `pooler`");
    const bool has_class = stack->class_token && !stack->distillation_token;
    if (head->pool == POOL_CLS_MEAN && (stack->input != INPUT_PATCHES || !has_class))
        diagnose(r->diagnostics, stated_at(scope, F_head_pool, head->location),
            "`cls_mean` needs `input patches … class`, without `distillation`");
    if (head->pool == POOL_CLS_DISTILLATION && (stack->input != INPUT_PATCHES || !stack->distillation_token))
        diagnose(r->diagnostics, stated_at(scope, F_head_pool, head->location),
            "`cls_distillation` needs `input patches … class distillation`");
    if (head->normed && (head->l2 || head->transform || !head->classifier))
        diagnose(r->diagnostics, stated_at(scope, F_head_normed, head->location),
            "`norm` belongs to `pool … classifier`, without `l2` and `transform`");
    if (head->logits && pooling) diagnose(r->diagnostics, head->location, "`logits` and pooling exclude each other");
    if (head->l2 && (head->pooler || head->classifier))
        diagnose(r->diagnostics, head->location, "`l2` cannot be combined with `pooler` or `classifier`");
    if (head->logits && !stack->vocab) diagnose(r->diagnostics, head->location,
                                                "`head logits` needs tokens and `vocab`");
    if (tied && !head->transform && stack->hidden_width != stack->embedding_width)
        diagnose(r->diagnostics, head->location,
                 "a tied head needs embedding rows as wide as the hidden rows: %lld and %lld",
                 (long long)stack->embedding_width, (long long)stack->hidden_width);
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
    if (!stack) return;
    check_token(r, scope->fields[F_start].location, model->start, stack->vocab);
    check_token(r, scope->fields[F_pad].location, model->pad, stack->vocab);
    for (int64_t i = 0; i < end->n; i++) check_token(r, end->location, list[i], stack->vocab);
}

static void resolve_alone(Resolver *r, const Scope *outer, const Item *item) {
    Model *model = r->model;
    Sublayer *sublayer = arena_alloc(r->arena, sizeof *sublayer);
    *sublayer = (Sublayer){.kind = SUBLAYER_ATTENTION, .location = item->location, .name = "attention",
                           .residual_scale = 1};
    const bool cross = attention_crosses(r, item, true);
    Scope *scope = scope_enter(r, outer, BLOCK_ATTENTION, item->items);
    resolve_attention(r, scope, item, NULL, cross, sublayer);
    sublayer->precision = resolve_precision(scope);
    sublayer->last = resolve_last_precision(scope, SUBLAYER_ATTENTION);
    model->queries = get_length(scope, F_queries);
    model->keys = get_length(scope, F_keys);
    bool self = !sublayer->attention.cross;
    if (!model->queries.n && known(scope, F_queries))
        diagnose(r->diagnostics, item->location, "attention alone needs `queries = N` or `queries <= N`");
    if (self && !stated(scope, F_keys)) model->keys = model->queries;
    bool sure = known(scope, F_queries) && known(scope, F_keys);
    if (!model->keys.n && sure)
        diagnose(r->diagnostics, item->location, "attention alone needs `keys = N` or `keys <= N`");
    if (self && sure && (model->keys.n != model->queries.n || model->keys.exact != model->queries.exact))
        diagnose(r->diagnostics, stated_at(scope, F_keys, item->location),
                 "self attention has as many keys as queries");
    check_export_list(r, &scope->fields[F_export_heads], "head");
    if (stated(scope, F_export_layers))
        diagnose(r->diagnostics, scope->fields[F_export_layers].location, "attention alone has no layers");
    sublayer->attention.exports_lse = get(scope, F_export_lse);
    if (get(scope, F_export_lse) && sublayer->attention.weighing != WEIGHING_SOFTMAX && known(scope, F_softmax))
        diagnose(r->diagnostics, scope->fields[F_export_lse].location, "`export lse` needs the sum of `softmax yes`");
    if (get(scope, F_export_attention)) export_heads(r, scope, &sublayer->attention);
    model->alone = sublayer;
}

static const Item *only_block(Resolver *r, const Item *items, const char *name) {
    const Item *found = NULL;
    for (const Item *i = items; i; i = i->next) {
        if (!item_is_block(i, name)) continue;
        if (found) {
            diagnose(r->diagnostics, i->location, "a model has one `%s`", name);
            diagnose_note(r->diagnostics, found->location, "the first one");
        } else {
            found = i;
        }
    }
    return found;
}

/* The name behind `model`, or "unnamed" after a diagnostic. `nano-gpt` is refused too: it parses as a difference. */
static const char *name_of(Resolver *r, const Item *item) {
    const char *name = block_word(item);
    const Value *first = item->values;
    if (name) {
        const char *fault = model_name_fault(r->arena, name);
        if (fault) diagnose(r->diagnostics, first->location, "%s", fault);
        return name;
    }
    if (first && first->kind == VALUE_EXPR && (first->next || first->expr->kind != EXPR_INTEGER)) {
        Location location = first->location;
        for (const Value *v = first; v; v = v->next)
            if (v->location.line == location.line)
                location.length = v->location.column + v->location.length - location.column;
        diagnose(r->diagnostics, location, "`%.*s` is not a name: a name consists of letters, digits and `_`",
                 CUT(63, text_at(r->arena, location)));
    } else {
        diagnose(r->diagnostics, first ? first->location : item->location, "a model needs a name: `model NAME { … }`");
    }
    return "unnamed";
}

static bool states_width(const Item *stack) {
    for (const Item *i = stack ? stack->items : NULL; i; i = i->next)
        if (!i->is_let && !i->quoted && strcmp(i->name, "d_model") == 0) return true;
    return false;
}

/* Of a model of stacks, none of which states a width. The others are left to resolve_stack. */
static void check_width(Resolver *r, Scope *scope, const Item *item, const Item *encoder, const Item *decoder) {
    if ((!encoder && !decoder) || get(scope, F_d_model) || states_width(encoder) || states_width(decoder)) return;
    if (known(scope, F_d_model)) diagnose(r->diagnostics, item->location, "this model needs `d_model`");
    doubt(scope, F_d_model);
    scope->fields[F_d_model].integer = 1;
}

static void resolve_model(Resolver *r, const Scope *outermost, const Item *item) {
    Model *model = r->model;
    model->location = item->location;
    model->name = name_of(r, item);
    Scope *scope = scope_enter(r, outermost, BLOCK_MODEL, item->items);
    const Item *encoder = only_block(r, item->items, "encoder"), *decoder = only_block(r, item->items, "decoder");
    const Item *alone = only_block(r, item->items, "attention"), *weights = only_block(r, item->items, "weights");
    const Item *generation = only_block(r, item->items, "generation");
    const Item *text = only_block(r, item->items, "text");
    const char *kind = alone ? block_word(alone) : NULL;
    place_model_inputs(r, encoder, decoder, kind && strcmp(kind, "cross") == 0);
    model->d_model = get(scope, F_d_model);
    model->embedding_tied = get(scope, F_embedding_tied);
    model->unroll_full = get(scope, F_unroll_full);
    model->precision = resolve_precision(scope);
    if (!encoder && !decoder && !alone && r->diagnostics->errors == 0)
        diagnose(r->diagnostics, item->location,
                 "a model needs `encoder { … }`, `decoder { … }` or an `attention` alone");
    if (alone && (encoder || decoder))
        diagnose(r->diagnostics, alone->location,
                 "attention alone excludes encoder and decoder; inside of them, attention belongs in `layers`");
    check_width(r, scope, item, encoder, decoder);
    if (encoder) model->encoder = resolve_stack(r, scope, encoder, false);
    if (decoder) model->decoder = resolve_stack(r, scope, decoder, true);
    if (alone && !encoder && !decoder) resolve_alone(r, scope, alone);
    const Stack *e = model->encoder, *d = model->decoder;
    if (e || d) model->d_model = d ? d->d_model : e->d_model;
    if (model->embedding_tied && e && d && r->diagnostics->errors == 0) {
        const Location tied = stated_at(scope, F_embedding_tied, item->location);
        if (e->vocab != d->vocab || e->embedding_width != d->embedding_width)
            diagnose(r->diagnostics, tied,
                     "`embedding tied` needs the same vocabulary and width for source and target");
        else if (!weight_type_equal(e->precision.weights, d->precision.weights))
            diagnose(r->diagnostics, tied,
                     "`embedding tied` needs the same `precision weights` in encoder and decoder");
    }
    if (r->diagnostics->errors == 0) check_inputs(r);
    if (r->diagnostics->errors == 0) resolve_head(r, scope, item);
    resolve_pooled(r, scope, item->items);
    resolve_tokens(r, scope);
    if (generation) resolve_generation(r, scope, generation);
    if (weights) resolve_source_names(r, scope, weights);
    model->text.chosen = -1;
    if (text) resolve_text(r, text);
}

Model *resolve(Arena *arena, const Ast *ast, const Precision *outermost, Diagnostics *diagnostics) {
    Model *model = arena_alloc(arena, sizeof *model);
    model->source = ast->source;
    model->row_inputs = arena_array(arena, MOST_ROW_INPUTS, sizeof *model->row_inputs);
    Resolver r = {.arena = arena, .diagnostics = diagnostics, .model = model};
    Scope *scope = scope_outermost(&r);
    scope->block = BLOCK_MODEL;
    scope->fields[F_weights_dtype].integer = outermost->weights.dtype;
    scope->fields[F_weights_group].integer = outermost->weights.group;
    scope->fields[F_weights_offset].integer = outermost->weights.offset;
    scope->fields[F_weights_halves].integer = outermost->weights.halves;
    scope->fields[F_activations_dtype].integer = outermost->activations;
    scope->fields[F_smooth].integer = outermost->smooth;
    scope->fields[F_outliers].integer = outermost->outliers;
    scope->fields[F_attention_dtype].integer = outermost->attention;
    scope->fields[F_cache_dtype].integer = outermost->cache;
    const Item *found = NULL;
    for (const Item *item = ast->items; item; item = item->next) {
        if (item_is_learned(item)) {
            diagnose(diagnostics, item->location, "`learned` stands in the model, whose tensor the table is");
            continue;
        }
        if (scope_let(&r, scope, item)) continue;
        if (item->quoted || strcmp(item->name, "model") != 0) {
            static const char *const only[] = {"model", NULL};
            const char *near = near_word(r.arena, item->name, only);
            diagnose(diagnostics, item->location, "a file holds `let` lines and one `model NAME { … }`, found `%s`%s",
                     item->name, did_you_mean(r.arena, item->name, near));
        } else if (found) {
            diagnose(diagnostics, item->location, "a file holds one model");
            diagnose_note(diagnostics, found->location, "the first one");
        } else {
            found = item;
            refuse_relation(&r, item);
            if (!item->has_block) diagnose(diagnostics, item->location, "`model` wants a block: `model NAME { … }`");
        }
    }
    if (!found && !diagnostics->errors)
        diagnose(diagnostics, (Location){ast->source, 1, 1, 0},
                 "the file has no model: it must hold `model NAME { … }`");
    if (found && found->has_block) resolve_model(&r, scope, found);
    if (diagnostics->errors) return NULL;
    model->hash = model_hash(arena, model);
    return model;
}
