/* small.c: shrinks a model for `attnc check --small`, which runs it at every length. Widths, lengths, the vocabulary
 * and the number of layers shrink. Kinds, heads and relations stay: equal widths stay equal, odd widths stay odd, and
 * a window shorter than the sequence stays shorter. */
#include "settings.h"

#include <math.h>
#include <string.h>

enum { LAYERS = 4, LENGTH = 48, VOCAB = 97, WIDTH = 64, GRID = 6, CLASSES = 33, BUCKETS = 32 };
enum { LEAST_WINDOW = 7, MOST_OFFSET = 8 };

typedef struct Small {
    Arena *arena;
    const Model *from;
    Model *to;
    int64_t d_from, d_to; /* d_model of the part at hand */
    int64_t memory_width; /* width of the encoder's rows, for cross attention */
} Small;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t greatest(int64_t a, int64_t b) { return a > b ? a : b; }

static int64_t ceil_of(int64_t n, int64_t by) { return (n - 1) / by + 1; }

/* `size` or `size` - 1, so that the result has the parity of `of`; at least 1 or 2. */
static int64_t same_parity(int64_t size, int64_t of) {
    if (size % 2 != of % 2) size--;
    return greatest(size, of % 2 ? 1 : 2);
}

/* x * to / from. Sizes are below 2^31, so the product fits. */
static int64_t in_proportion(int64_t x, int64_t to, int64_t from) { return from ? x * to / from : x; }

/* ---------------------------------------------------------------- sizes */

/* The width of a head, narrower the more heads there are. */
static int64_t small_head(int64_t heads, int64_t head_dim) {
    if (head_dim <= 16 && heads * head_dim <= 2 * WIDTH) return head_dim;
    return least(head_dim, same_parity(heads <= 4 ? 16 : heads <= 16 ? 8 : 4, head_dim));
}

static int64_t small_value(int64_t value_dim, int64_t head_dim, int64_t small_head_dim) {
    if (value_dim == head_dim) return small_head_dim;
    if (small_head_dim == head_dim && value_dim <= 16) return value_dim;
    int64_t size = same_parity(greatest(in_proportion(value_dim, small_head_dim, head_dim), 2), value_dim);
    return size == small_head_dim ? size + 2 : least(size, 4 * small_head_dim + value_dim % 2);
}

/* Shrinks an independent width; equal widths stay equal. */
static int64_t small_width(const Small *s, int64_t width) {
    if (width == s->d_from) return s->d_to;
    return width <= WIDTH / 2 ? width : same_parity(width <= 1024 ? WIDTH / 2 : WIDTH / 2 + 8, width);
}

static int64_t small_bound(int64_t n) { return n <= LENGTH ? n : n % 16 == 0 ? LENGTH : same_parity(LENGTH - 10, n); }

static int64_t small_vocab(int64_t n) { return n <= VOCAB ? n : n % 16 == 0 ? VOCAB - 1 : n % 2 ? VOCAB : VOCAB - 3; }

/* Shrinks d_model so that the number of heads stays, or in proportion to the first attention's head width. */
static int64_t small_d_model(const Stack *stack, const Sublayer *alone, int64_t d) {
    const Attention *a = alone ? &alone->attention : NULL;
    for (int64_t l = 0; stack && l < stack->n_layers && !a; l++)
        for (int i = 0; i < stack->layers[l].count && !a; i++) {
            const Sublayer *s = &stack->layers[l].sublayers[i];
            if (s->kind == SUBLAYER_ATTENTION && s->attention.projected) a = &s->attention;
        }
    if (!a || !a->projected) return d <= WIDTH ? d : same_parity(WIDTH, d);
    int64_t head = small_head(a->heads, a->head_dim);
    if (a->heads * a->head_dim == d) return a->heads * head;
    if (head == a->head_dim && d <= 2 * WIDTH) return d;
    int64_t width = in_proportion(d, head, a->head_dim);
    width = same_parity(least(greatest(width, 16), 2 * WIDTH), d);
    return stack && stack->position.grid ? ceil_of(width, 4) * 4 : width;
}

static int64_t small_ffn(const Small *s, int64_t d_ff) {
    int64_t d = s->d_to;
    if (d == s->d_from && d_ff <= 4 * WIDTH) return d_ff;
    return same_parity(least(greatest(in_proportion(d_ff, d, s->d_from), d + 1), 4 * d), d_ff);
}

/* Shrinks the widths, and the number of experts to those of as many groups, with what a row needs to choose from. */
static void shrink_ffn(const Small *s, Ffn *f) {
    enum { EXPERTS = 16 };
    Experts *e = &f->experts;
    f->d_ff = small_ffn(s, f->d_ff);
    if (!e->count) return;
    if (e->shared) e->shared = small_ffn(s, e->shared);
    const int64_t needed = greatest(ceil_of(e->top, e->top_groups), 2);
    const int64_t each = greatest(least(e->count / e->groups, ceil_of(EXPERTS, e->groups)), needed);
    e->count = least(e->count / e->groups, each) * e->groups;
}

/* ---------------------------------------------------------------- attention */

static void shrink_relative(Position *p, int64_t bound, int64_t small) {
    if (p->kind != POSITION_RELATIVE) return;
    if (p->buckets > BUCKETS) p->buckets = same_parity(BUCKETS, p->buckets);
    int64_t distance = greatest(in_proportion(p->distance, small, bound), p->buckets / 2 + 1);
    p->distance = least(p->distance, distance);
}

static void shrink_content(Position *p, int64_t bound, int64_t small) {
    if (p->kind != POSITION_CONTENT) return;
    if (p->rows > BUCKETS) p->rows = same_parity(BUCKETS, p->rows);
    if (!p->logarithmic) return;
    p->logarithmic = least(p->logarithmic, greatest(in_proportion(p->logarithmic, small, bound), p->rows / 4 + 2));
}

/* The sections of fewer pairs, each of at least one where there are enough pairs. The last ones get the rest. */
static void shrink_sections(Position *p, int64_t width) {
    int64_t rest = p->rope_width / 2;
    for (int i = 0; i < p->n_at; i++) {
        const int after = p->n_at - 1 - i;
        const int64_t part = greatest(in_proportion(p->sections[i], p->rope_width, width), 1);
        p->sections[i] = after ? greatest(least(part, rest - after), 0) : rest;
        rest -= p->sections[i];
    }
}

/* Shrinks the rotated width. Longrope keeps the factors of the remaining pairs. */
static void shrink_rope(Position *p, int64_t head_dim, int64_t small_head_dim, int64_t bound, int64_t small) {
    if (p->kind != POSITION_ROPE) return;
    const int64_t before = p->rope_width;
    if (p->rope_width == head_dim) {
        p->rope_width = small_head_dim;
    } else if (small_head_dim != head_dim) {
        const int64_t unit = p->grid ? 4 : 2, width = in_proportion(p->rope_width, small_head_dim, head_dim);
        p->rope_width = greatest(least(width, small_head_dim - 1) / unit * unit, unit);
    }
    if (p->n_at > 1 && p->rope_width != before) shrink_sections(p, before);
    if (!p->original || small == bound) return;
    if (p->original < bound) p->original = least(greatest(in_proportion(p->original, small, bound), 2), small - 1);
    else p->original = greatest(in_proportion(p->original, small, bound), small);
}

static void shrink_mask(const Small *s, Attention *a, int64_t bound, int64_t small) {
    if (a->window && a->window < bound && a->window >= small)
        a->window = least(greatest(in_proportion(a->window, small, bound), LEAST_WINDOW), small - 1);
    if (a->sink && a->sink < bound && a->sink >= small) a->sink = greatest(in_proportion(a->sink, small, bound), 1);
    attention_visible(s->arena, a);
}

static void shrink_latent(Attention *a) {
    enum { LATENT = 24, LATENT_ROPE = 8 };
    if (a->latent > LATENT) a->latent = same_parity(LATENT, a->latent);
    if (a->latent_query > LATENT) a->latent_query = same_parity(LATENT, a->latent_query);
    a->latent_rope = a->position.scaling == ROPE_LONGROPE ? a->latent_rope : least(a->latent_rope, LATENT_ROPE);
}

/* `bound` and `small` are the rows of the sequence before and after. */
static void shrink_attention(const Small *s, Attention *a, bool alone, int64_t bound, int64_t small) {
    int64_t head_dim = a->head_dim;
    bool usual_scale = a->scale == 1.0 / sqrt((double)(head_dim + a->latent_rope));
    if (alone) {
        a->query_width = small_width(s, a->query_width);
        a->key_width = small_width(s, a->key_width);
        a->value_width = small_width(s, a->value_width);
    } else {
        a->query_width = s->d_to;
        a->key_width = a->value_width = a->cross ? s->memory_width : s->d_to;
    }
    if (a->projected) {
        a->head_dim = small_head(a->heads, head_dim);
        a->value_dim = small_value(a->value_dim, head_dim, a->head_dim);
    } else if (a->heads > 1) { /* attention alone, whose heads cut the rows that are given */
        a->head_dim = small_head(a->heads, head_dim);
        a->value_dim = small_value(a->value_dim, head_dim, a->head_dim);
        a->query_width = a->heads * a->head_dim;
        a->key_width = a->kv_heads * a->head_dim;
        a->value_width = a->kv_heads * a->value_dim;
    } else {
        a->head_dim = a->query_width;
        a->value_dim = a->value_width;
    }
    if (a->score == SCORE_additive) a->d_score = small_width(s, a->d_score);
    if (a->latent) shrink_latent(a);
    if (usual_scale) a->scale = 1.0 / sqrt((double)(a->head_dim + a->latent_rope));
    a->output_width = !a->has_output ? a->heads * a->value_dim : s->d_to ? s->d_to : a->query_width;
    if (a->latent) shrink_rope(&a->position, a->position.rope_width, a->latent_rope, bound, small);
    else shrink_rope(&a->position, head_dim, a->head_dim, bound, small);
    shrink_relative(&a->position, bound, small);
    shrink_content(&a->position, bound, small);
    shrink_mask(s, a, bound, small);
}

/* ---------------------------------------------------------------- stacks */

/* The most groups, at most as many as before, that divide the columns of the rows and of the result. */
static void shrink_groups(Convolution *c, int64_t width) {
    while (width % c->groups || c->channels % c->groups) c->groups--;
    c->by_group.count = c->by_group.top = c->groups;
}

/* Fewer frames, of which as many are left beyond the last whole stride as before. */
static void shrink_mel(const Small *s, Stack *stack, const Stack *from) {
    enum { BINS = 12, FRAMES = 24 };
    int64_t whole = 1;
    for (int i = 0; i < from->n_convolutions && whole <= FRAMES; i++) whole *= from->convolutions[i].stride;
    stack->mel_bins = from->mel_bins > BINS ? same_parity(BINS, from->mel_bins) : from->mel_bins;
    if (from->mel_frames > FRAMES) stack->mel_frames = FRAMES / whole * whole + from->mel_frames % whole;
    if (stack->mel_frames < 1) stack->mel_frames = 1;
    stack->convolutions = arena_array(s->arena, (size_t)from->n_convolutions, sizeof *stack->convolutions);
    int64_t rows = stack->mel_frames, width = stack->mel_bins;
    for (int i = 0; i < from->n_convolutions; i++) {
        Convolution *c = &stack->convolutions[i];
        *c = from->convolutions[i];
        c->channels = c->channels == s->d_from ? s->d_to : small_width(s, c->channels);
        shrink_groups(c, width);
        width = c->channels;
        rows = c->rows = convolution_rows(rows, c->stride);
    }
    stack->seq.n = rows;
}

/* The side of an image with that many squares; one pixel longer where the original side ends in pixels that no square
 * covers. */
static int64_t small_side(int64_t side, const Stack *from, int64_t squares, const Stack *to) {
    const bool more = to->patch_step > 1 && (side - from->patch) % from->patch_step;
    return (squares - 1) * to->patch_step + to->patch + more;
}

static void shrink_input(const Small *s, Stack *stack, const Stack *from) {
    stack->vocab = from->vocab ? small_vocab(from->vocab) : 0;
    stack->segments = least(from->segments, 8);
    stack->seq.n = small_bound(from->seq.n);
    if (stack->input == INPUT_PATCHES) {
        int64_t high = patch_lines(from), wide = patch_columns(from);
        stack->patch = from->patch <= 4 ? from->patch : same_parity(4, from->patch);
        stack->patch_step = from->patch_step == from->patch   ? stack->patch
                            : from->patch_step < stack->patch ? from->patch_step
                                                              : stack->patch - 1;
        int64_t rows = least(high, GRID), columns = rows;
        if (high != wide) columns = least(wide, wide < high ? GRID - 1 : GRID + 1);
        stack->image_height = small_side(from->image_height, from, rows, stack);
        stack->image_width = small_side(from->image_width, from, columns, stack);
        stack->seq.n = rows * columns + from->class_token + from->distillation_token + from->registers;
    }
    if (stack->input == INPUT_MEL) shrink_mel(s, stack, from);
    int64_t d = s->d_from, small = s->d_to;
    if (from->embedding_width == d) stack->embedding_width = small;
    else if (small != d)
        stack->embedding_width =
            same_parity(greatest(in_proportion(from->embedding_width, small, d), 6), from->embedding_width);
    if (from->embedding_scale == sqrt((double)d)) stack->embedding_scale = sqrt((double)small);
    if (stack->position.kind == POSITION_LEARNED) stack->position.offset = least(from->position.offset, MOST_OFFSET);
}

/* The number of layers, as many whole patterns as fit. */
static int64_t small_layers(const Stack *from) {
    if (from->n_layers <= LAYERS) return from->n_layers;
    int64_t whole = from->pattern;
    if (whole >= 1 && whole < LAYERS) whole = LAYERS / whole * whole;
    return least(greatest(whole, 1), from->n_layers);
}

/* Exports the attention of the last remaining layer where only removed layers exported theirs. */
static void keep_an_export(Stack *stack, const Stack *from) {
    const Attention *exported = NULL;
    for (int64_t l = 0; l < from->n_layers; l++)
        for (int i = 0; i < from->layers[l].count; i++) {
            const Sublayer *s = &from->layers[l].sublayers[i];
            if (s->kind != SUBLAYER_ATTENTION || !s->attention.exported) continue;
            if (l < stack->n_layers) return;
            exported = &s->attention;
        }
    Layer *last = &stack->layers[stack->n_layers - 1];
    for (int i = 0; i < last->count && exported; i++) {
        Attention *a = &last->sublayers[i].attention;
        if (last->sublayers[i].kind != SUBLAYER_ATTENTION || a->cross != exported->cross || a->heads != exported->heads)
            continue;
        a->exported = true;
        a->exported_heads = exported->exported_heads;
        a->n_exported_heads = exported->n_exported_heads;
    }
}

/* `bound` and `small` are the rows of the stack before and after. */
static Layer shrink_layer(const Small *s, const Layer *from, int64_t bound, int64_t small) {
    Layer layer = *from;
    layer.sublayers = arena_array(s->arena, (size_t)layer.count, sizeof *layer.sublayers);
    for (int i = 0; i < layer.count; i++) {
        Sublayer *sub = &layer.sublayers[i];
        *sub = from->sublayers[i];
        if (sub->kind == SUBLAYER_FFN) shrink_ffn(s, &sub->ffn);
        else shrink_attention(s, &sub->attention, false, bound, small);
    }
    return layer;
}

static Stack *shrink_stack(const Small *s, const Stack *from) {
    Stack *stack = arena_alloc(s->arena, sizeof *stack);
    *stack = *from;
    shrink_input(s, stack, from);
    position_on_grid(&stack->position, stack);
    shrink_relative(&stack->relative, from->seq.n, stack->seq.n);
    shrink_content(&stack->content, from->seq.n, stack->seq.n);
    stack->n_layers = small_layers(from);
    stack->layers = arena_array(s->arena, (size_t)stack->n_layers, sizeof *stack->layers);
    stack->d_model = stack->hidden_width = s->d_to;
    for (int64_t l = 0; l < stack->n_layers; l++) {
        const Layer *layer = &stack->layers[l];
        stack->layers[l] = shrink_layer(s, &from->layers[l], from->seq.n, stack->seq.n);
        for (int i = 0; i < layer->count; i++) {
            Sublayer *sub = &layer->sublayers[i];
            position_on_grid(&sub->attention.position, stack);
            stack->hidden_width = sub->kind == SUBLAYER_ATTENTION ? sub->attention.output_width : s->d_to;
        }
    }
    stack->pattern = least(stack->pattern, stack->n_layers);
    if (from->beside) {
        stack->beside = arena_alloc(s->arena, sizeof *stack->beside);
        *stack->beside = *from->beside;
        stack->beside->channels = s->d_to;
        shrink_groups(stack->beside, s->d_to);
    }
    keep_an_export(stack, from);
    return stack;
}

/* ---------------------------------------------------------------- the model */

/* The sublayers of `probe` read the rows of the last stack, which memory_width is the width of. */
static void shrink_probe(const Small *s, Head *head, const Stack *from, const Stack *to) {
    if (!head->probe) return;
    Layer *probe = arena_alloc(s->arena, sizeof *probe);
    *probe = shrink_layer(s, head->probe, from->seq.n, to->seq.n);
    head->probe = probe;
}

/* Moves a token id beyond the small vocabulary to one of its last ids, a different one for each while any is left. */
static int64_t small_token(int64_t id, int64_t vocab, int64_t *taken) {
    if (id < 0 || !vocab || id < vocab) return id;
    return greatest(vocab - 1 - (*taken)++, 0);
}

static void shrink_tokens(const Small *s) {
    const Model *from = s->from;
    Model *to = s->to;
    const Stack *stack = to->decoder ? to->decoder : to->encoder;
    int64_t vocab = stack ? stack->vocab : 0, taken = 0;
    int64_t *end = arena_array(s->arena, (size_t)from->n_end, sizeof *end);
    to->start = small_token(from->start, vocab, &taken);
    to->pad = small_token(from->pad, vocab, &taken);
    Stack *const stacks[] = {to->encoder, to->decoder};
    for (int i = 0; i < 2; i++) {
        if (stacks[i] && stacks[i]->position.skips)
            stacks[i]->position.skipped = small_token(stacks[i]->position.skipped, stacks[i]->vocab, &taken);
        if (stacks[i]) stacks[i]->embedding_mask = small_token(stacks[i]->embedding_mask, stacks[i]->vocab, &taken);
    }
    const int64_t read = to->encoder ? to->encoder->vocab : vocab;
    to->head.pool_token = small_token(from->head.pool_token, read, &taken);
    for (int64_t i = 0; i < from->n_end; i++) end[i] = small_token(from->end[i], vocab, &taken);
    to->end = end;
    to->generation = (Generation){0}; /* its tokens may be outside of the small vocabulary */
}

Model *model_small(Arena *arena, const Model *model) {
    Model *to = arena_alloc(arena, sizeof *to);
    *to = *model;
    Small s = {.arena = arena, .from = model, .to = to, .d_from = model->d_model};
    if (model->alone) s.d_to = to->d_model = small_d_model(NULL, model->alone, model->d_model);
    if (model->encoder) {
        s.d_from = model->encoder->d_model;
        s.d_to = small_d_model(model->encoder, NULL, s.d_from);
        to->encoder = shrink_stack(&s, model->encoder);
        s.memory_width = to->encoder->hidden_width;
    }
    if (model->decoder) {
        const bool same = model->encoder && model->encoder->d_model == model->decoder->d_model;
        s.d_from = model->decoder->d_model;
        s.d_to = same ? to->encoder->d_model : small_d_model(model->decoder, NULL, s.d_from);
        to->decoder = shrink_stack(&s, model->decoder);
    }
    Stack *last = to->decoder ? to->decoder : to->encoder;
    const Stack *last_from = model->decoder ? model->decoder : model->encoder;
    if (last && model->head.tied && !model->head.transform) last->embedding_width = last->hidden_width;
    if (last && to->encoder && model->embedding_tied) to->encoder->embedding_width = last->embedding_width;
    if (last && last_from) {
        to->d_model = s.d_to;
        s.memory_width = last->hidden_width;
        shrink_probe(&s, &to->head, last_from, last);
    }
    to->queries.n = small_bound(model->queries.n);
    to->keys.n = small_bound(model->keys.n);
    if (model->alone) {
        to->alone = arena_alloc(arena, sizeof *to->alone);
        *to->alone = *model->alone;
        shrink_attention(&s, &to->alone->attention, true, model->keys.n, to->keys.n);
    }
    const Head *head = &model->head;
    if (head->classifier > CLASSES) to->head.classifier = same_parity(CLASSES, head->classifier);
    if (head->scale == 1 / sqrt((double)model->d_model)) to->head.scale = 1 / sqrt((double)to->d_model);
    shrink_tokens(&s);
    to->source_names = NULL;
    to->prefixes = to->ignored = NULL;
    to->n_source_names = to->n_prefixes = to->n_ignored = 0;
    to->hash = model_hash(arena, to);
    return to;
}
