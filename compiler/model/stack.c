/* stack.c: an encoder or a decoder, with its input, embedding, positions and widths. */
#include "settings.h"

#include <math.h>
#include <string.h>

static void resolve_input(Resolver *r, Scope *scope, const Item *item, Stack *stack) {
    stack->input = (int)get(scope, F_input);
    if (stack->input == INPUT_MEL) {
        resolve_mel(r, scope, item, stack);
        return;
    }
    if (stack->input == INPUT_PATCHES) {
        resolve_patches(r, scope, item, stack);
        return;
    }
    stack->seq = get_length(scope, F_seq);
    if (!stack->seq.n) {
        if (known(scope, F_seq) && known(scope, F_input))
            diagnose(r->diagnostics, item->location, "`%s` needs `seq = N` or `seq <= N`", stack->name);
        doubt(scope, F_seq);
        stack->seq.n = 1;
    }
    if (known(scope, F_input) && (stated(scope, F_patch) || stated(scope, F_image_height)))
        diagnose(r->diagnostics, stated_at(scope, F_input, item->location),
                 "`image` and `patch` belong to `input patches`");
}

/* Only a call that reads a whole text knows the share of a token. */
static void check_mask(Resolver *r, const Scope *scope, const Stack *stack, Location location) {
    if (stack->is_decoder)
        diagnose(r->diagnostics, location, "`embedding mask` is for an encoder, whose calls read whole texts");
    else if (stack->input != INPUT_TOKENS && known(scope, F_input))
        diagnose(r->diagnostics, location, "`embedding mask` needs `input tokens`");
    else check_token(r, location, stack->embedding_mask, stack->vocab);
}

static void resolve_embedding(Resolver *r, Scope *scope, const Item *item, Stack *stack) {
    stack->vocab = get(scope, F_vocab);
    stack->precision = resolve_precision(scope);
    stack->segments = get(scope, F_segments);
    stack->embedding_scale = get_real(scope, F_embedding_scale);
    stack->embedding_mask = get(scope, F_embedding_mask) == UNSET ? -1 : get(scope, F_embedding_mask);
    if (stack->embedding_mask >= 0) check_mask(r, scope, stack, stated_at(scope, F_embedding_mask, item->location));
    stack->embedding_width = stated(scope, F_embedding_factor) ? get(scope, F_embedding_factor) : stack->d_model;
    stack->embedding_projected = stated(scope, F_embedding_factor);
    stack->embedding_projection_bias = stack->embedding_projected && get(scope, F_embedding_factor_bias);
    if (get(scope, F_embedding_normalized)) stack->embedding_norm = resolve_norm(scope);
    stack->embedding_norm_first = get(scope, F_embedding_norm_first);
    if (get(scope, F_embedding_tied) && !r->model->embedding_tied)
        diagnose(r->diagnostics, stated_at(scope, F_embedding_tied, item->location),
                 "`embedding tied` applies to the whole model: state it outside of `%s`", stack->name);
    if (!get(scope, F_embedding_factor_bias) && !stack->embedding_projected && known(scope, F_embedding_factor))
        diagnose(r->diagnostics, stated_at(scope, F_embedding_factor_bias, item->location),
                 "`embedding no_bias` needs `factor`");
    if (stack->input == INPUT_TOKENS && !stack->vocab) {
        if (known(scope, F_vocab) && known(scope, F_input))
            diagnose(r->diagnostics, item->location, "`%s` reads tokens and needs `vocab`", stack->name);
        doubt(scope, F_vocab);
    }
    if (!known(scope, F_vocab)) stack->vocab = 0; /* without a known vocabulary no token counts as outside it */
    if (stack->input != INPUT_TOKENS) {
        stack->vocab = 0;
        if (stack->segments)
            diagnose(r->diagnostics, scope->fields[F_segments].location, "`segments` needs `input tokens`");
        if (stack->embedding_projected)
            diagnose(r->diagnostics, scope->fields[F_embedding_factor].location,
                     "`embedding factor` needs `input tokens`");
        if (stack->input != INPUT_FEATURES && stack->embedding_scale != 1)
            diagnose(r->diagnostics, stated_at(scope, F_embedding_scale, item->location),
                     "`embedding scale` needs `input tokens` or `input features`");
        stack->segments = 0;
    }
}

/* Positions that count tokens need tokens, and a learned table a row for those that are not counted. */
static void check_skip(Resolver *r, const Scope *scope, const Stack *stack, Location location) {
    const Position *p = &stack->position;
    if (stack->input != INPUT_TOKENS && known(scope, F_input))
        diagnose(r->diagnostics, location, "`skip` needs `input tokens`");
    else if (p->kind == POSITION_LEARNED && p->offset < 1)
        diagnose(r->diagnostics, location, "`learned skip` needs an `offset` of at least 1: rows of the token have "
                 "position offset - 1");
    else check_token(r, location, p->skipped, stack->vocab);
}

/* Half of the columns are sinusoids of the column of a patch, and the other half of its line. */
static void check_grid(Resolver *r, const Scope *scope, const Stack *stack, Location location) {
    if (stack->input != INPUT_PATCHES && known(scope, F_input))
        diagnose(r->diagnostics, location,
                 "`sinusoidal grid` has lines and columns of patches: it needs `input patches`");
    else if (stack->embedding_width % 4)
        diagnose(r->diagnostics, location, "`sinusoidal grid` needs a width that 4 divides, found %lld",
                 (long long)stack->embedding_width);
    else if (stack->position.sinusoid == SINUSOID_FAIRSEQ && stack->embedding_width < 8)
        diagnose(r->diagnostics, location, "fairseq's positions on a `grid` need a width of at least 8");
    if (stack->position.offset)
        diagnose(r->diagnostics, stated_at(scope, F_position_offset, location),
                 "`grid` and `offset` exclude each other");
    if (stack->position.n_at)
        diagnose(r->diagnostics, stated_at(scope, F_position_at, location), "`grid` and `at` exclude each other");
}

static void check_norm_first(Resolver *r, const Scope *scope, Location location, PositionKind kind) {
    if (!get(scope, F_embedding_normalized))
        diagnose(r->diagnostics, location, "`before_positions` needs `normalized`");
    else if (kind != POSITION_SINUSOIDAL && kind != POSITION_LEARNED)
        diagnose(r->diagnostics, location, "`before_positions` needs `position learned` or `position sinusoidal`");
}

static void resolve_stack_position(Resolver *r, const Scope *scope, const Item *item, Stack *stack) {
    PositionKind kind = (PositionKind)get(scope, F_position);
    stack->position =
        (Position){.kind = kind, .sinusoid = (Sinusoid)get(scope, F_sinusoid), .offset = get(scope, F_position_offset)};
    const int64_t skip = get(scope, F_position_skip);
    if (skip != UNSET) stack->position.skips = true, stack->position.skipped = skip;
    stack->position.grid = get(scope, F_position_grid);
    if (kind != POSITION_SINUSOIDAL && kind != POSITION_LEARNED) stack->position = (Position){0};
    Location location = stated_at(scope, F_position, item->location);
    if (stack->embedding_norm_first && known(scope, F_position))
        check_norm_first(r, scope, stated_at(scope, F_embedding_norm_first, item->location), kind);
    if (!known(scope, F_position) || !known(scope, F_d_model) || !known(scope, F_embedding_factor)) return;
    const bool on_grid = stack->position.grid;
    if (kind == POSITION_SINUSOIDAL && stack->registers && !on_grid)
        diagnose(r->diagnostics, location, "`registers` have no sinusoidal positions");
    if (kind == POSITION_SINUSOIDAL && stack->embedding_width % 2 && !on_grid)
        diagnose(r->diagnostics, location, "sinusoidal positions need an even width, found %lld",
                 (long long)stack->embedding_width);
    if (kind == POSITION_SINUSOIDAL && stack->position.sinusoid == SINUSOID_FAIRSEQ && stack->embedding_width < 4 &&
        !on_grid)
        diagnose(r->diagnostics, location, "fairseq's positions need a width of at least 4");
    if (stack->position.offset > MOST_ROWS) diagnose(r->diagnostics, location, "`offset` must be at most %d",
                                                     MOST_ROWS);
    if (stack->position.kind) position_at_inputs(r, scope, stack->seq.n, &stack->position);
    if (stack->position.n_at && stack->position.skips)
        diagnose(r->diagnostics, stated_at(scope, F_position_skip, location), "`skip` and `at` exclude each other");
    if (stack->position.n_at && stack->registers && !on_grid)
        diagnose(r->diagnostics, stated_at(scope, F_position_at, location),
                 "positions `at` an input next to `registers` are not supported yet");
    if (stack->position.skips) check_skip(r, scope, stack, stated_at(scope, F_position_skip, location));
    if (on_grid) check_grid(r, scope, stack, stated_at(scope, F_position_grid, location));
    position_on_grid(&stack->position, stack);
}

/* Gives a relative table shared by the whole stack the shape of the self attentions, which must agree. */
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
            } else if (r->diagnostics->errors == 0 && /* a refused number would disagree with every other */
                       (first->heads != sub->attention.heads || first->position.buckets != p->buckets ||
                        first->position.distance != p->distance)) {
                diagnose(r->diagnostics, sub->location,
                         "layers that share relative positions must agree in heads, buckets and distance");
                return;
            }
        }
}

static bool norms_equal(const Norm *a, const Norm *b) {
    return a->kind == b->kind && a->eps == b->eps && a->plus_one == b->plus_one && a->bias == b->bias;
}

/* The same for the table that the layers project. */
static void share_content(Resolver *r, Stack *stack) {
    for (int64_t l = 0; l < stack->n_layers; l++)
        for (int s = 0; s < stack->layers[l].count; s++) {
            const Sublayer *sub = &stack->layers[l].sublayers[s];
            const Position *p = &sub->attention.position;
            if (sub->kind != SUBLAYER_ATTENTION || p->kind != POSITION_CONTENT || !p->projected) continue;
            if (!stack->content.kind) stack->content = *p;
            const bool agree = stack->content.rows == p->rows && norms_equal(&stack->content.norm, &p->norm);
            if (r->diagnostics->errors || agree) continue;
            diagnose(r->diagnostics, sub->location, "layers that project a table of distances must agree in its rows");
            return;
        }
}

static void resolve_final_norm(const Scope *scope, Stack *stack) {
    const Layer *last = stack->n_layers ? &stack->layers[stack->n_layers - 1] : NULL;
    const Norm *norm = NULL;
    bool open = false; /* the last sum is not normalized, although the input or output of its sublayer is */
    for (int s = 0; last && s < last->count; s++) {
        const Sublayer *sub = &last->sublayers[s];
        if (sub->norm_in.kind) norm = &sub->norm_in;
        if (sub->norm_out.kind) norm = &sub->norm_out;
        open = norm && !sub->norm_out_on_sum;
    }
    int64_t said = get(scope, F_final_norm);
    if (said == UNSET ? open : said) stack->final_norm = stated(scope, F_norm) || !norm ? resolve_norm(scope) : *norm;
}

/* Rows keep their width between sublayers; only the last sublayer of a stack may change it. */
static void check_widths(Resolver *r, Stack *stack) {
    int64_t width = stack->d_model;
    for (int64_t l = 0; l < stack->n_layers; l++)
        for (int s = 0; s < stack->layers[l].count; s++) {
            const Sublayer *sub = &stack->layers[l].sublayers[s];
            if (width != stack->d_model) {
                diagnose(
                    r->diagnostics, sub->location,
                    "this sublayer gets rows of width %lld from an attention with `output none`, not `d_model %lld`",
                    (long long)width, (long long)stack->d_model);
                return;
            }
            int64_t out = sub->kind == SUBLAYER_ATTENTION ? sub->attention.output_width : width;
            if (out != width && sub->residual) {
                diagnose(r->diagnostics, sub->location,
                         "`output none` gives rows of width %lld, which cannot be added to the input of width %lld: "
                         "state `residual no`",
                         (long long)out, (long long)width);
                return;
            }
            width = out;
        }
    stack->hidden_width = width;
    if (stack->beside && width != r->model->d_model) /* of the only layer: no other may follow such a width */
        diagnose(r->diagnostics, stack->beside->location,
                 "the convolution is added to rows of width %lld, and has %lld channels", (long long)width,
                 (long long)stack->beside->channels);
}

static void check_export(Resolver *r, const Scope *scope, const Stack *stack) {
    const FieldValue *layers = &scope->fields[F_export_layers];
    if (get(scope, F_export_lse))
        diagnose(r->diagnostics, scope->fields[F_export_lse].location,
                 "`export lse` is for attention alone: no context that a caller has merged goes back into a layer");
    bool sure = !r->layers_doubted && known(scope, F_export_layers);
    for (int64_t i = 0; i < layers->n && sure; i++)
        if ((int64_t)layers->list[i] >= stack->n_layers)
            diagnose(r->diagnostics, layers->location, "`export` names layer %lld, and there are %lld, from 0",
                     (long long)layers->list[i], (long long)stack->n_layers);
}

/* Attention over all rows is invariant to their order, unless positions or a mask distinguish them. */
static bool knows_order(const Resolver *r, const Stack *stack) {
    const bool places = stack->input == INPUT_PATCHES || stack->input == INPUT_MEL ||
                        (stack->beside && stack->beside->kernel > 1);
    bool attends = false, ordered = r->position_said || places || stack->seq.n == 1;
    for (int64_t l = 0; l < stack->n_layers; l++)
        for (int s = 0; s < stack->layers[l].count; s++) {
            const Sublayer *sub = &stack->layers[l].sublayers[s];
            const Attention *a = &sub->attention;
            if (sub->kind != SUBLAYER_ATTENTION || a->cross) continue;
            attends = true;
            ordered |= a->visible != NULL;
        }
    return ordered || !attends;
}

void note_unordered(const Model *model, Diagnostics *diagnostics) {
    for (int i = 0; i < 2; i++) {
        const Stack *stack = i ? model->decoder : model->encoder;
        if (!stack || !stack->unordered) continue;
        diagnose_note(diagnostics, stack->location,
                      "without `position`, this %s ignores the order of its %s; "
                      "state `position none` if that is intended",
                      stack->name, stack->input == INPUT_TOKENS ? "tokens" : "rows");
    }
}

static void resolve_width(Resolver *r, Scope *scope, const Item *item, Stack *stack) {
    if (!get(scope, F_d_model)) {
        if (known(scope, F_d_model))
            diagnose(r->diagnostics, item->location, "`%s` needs `d_model`, in its block or in `model`", stack->name);
        doubt(scope, F_d_model);
        scope->fields[F_d_model].integer = 1;
    }
    r->width = scope->fields[F_d_model];
    stack->d_model = stack->hidden_width = get(scope, F_d_model);
}

Stack *resolve_stack(Resolver *r, const Scope *outer, const Item *item, bool is_decoder) {
    Stack *stack = arena_alloc(r->arena, sizeof *stack);
    stack->name = is_decoder ? "decoder" : "encoder";
    stack->location = item->location;
    stack->is_decoder = is_decoder;
    refuse_values(r, item);
    Scope *scope = scope_enter(r, outer, is_decoder ? BLOCK_DECODER : BLOCK_ENCODER, item->items);
    resolve_width(r, scope, item, stack);
    r->layers_doubted = false;
    r->position_said = stated(scope, F_position);
    resolve_input(r, scope, item, stack);
    resolve_embedding(r, scope, item, stack);
    resolve_beside(r, scope, item, stack);
    resolve_stack_position(r, scope, item, stack);
    check_export_list(r, &scope->fields[F_export_layers], "layer");
    check_export_list(r, &scope->fields[F_export_heads], "head");
    for (const Item *i = item->items; i; i = i->next)
        if (item_is_block(i, "layers")) resolve_layers(r, scope, i, stack);
    if (scope->lost) r->layers_doubted = true;
    if (!stack->n_layers && !r->diagnostics->errors)
        diagnose(r->diagnostics, item->location, "`%s` needs `layers N { … }`", stack->name);
    share_relative(r, stack);
    share_content(r, stack);
    resolve_final_norm(scope, stack);
    if (r->diagnostics->errors == 0) check_widths(r, stack);
    check_export(r, scope, stack);
    stack->unordered = !knows_order(r, stack);
    return stack;
}
