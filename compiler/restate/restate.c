/* restate.c: writes the precisions of a model into the text of its spec. A block whose precision is not that of the
 * block around it gets a line `precision`, `output_precision` or `down_precision`. A block `layers` becomes several
 * where its layers have different precisions. The text is then formatted as attnc fmt does. */
#include "restate.h"

#include <string.h>

typedef struct Restate {
    Arena *arena;
    const char *text;  /* of the spec */
    const Model *model; /* with the new precisions */
    Text out;
    size_t at; /* where the text that is not copied yet begins */
} Restate;

/* ---------------------------------------------------------------- words */

static const char *word_of(Dtype dtype) {
    switch (dtype) {
    case DTYPE_BF16: return "bf16";
    case DTYPE_F16: return "f16";
    case DTYPE_I8: return "int8";
    case DTYPE_I4: return "int4";
    default: return "f32";
    }
}

/* ` weights int8 activations int8 smooth`: the parts that differ; "" where none does. */
const char *precision_parts(Arena *arena, const Precision *own, const Precision *inherited) {
    Text out = text_new(arena);
    print_precision(&out, own, inherited, word_of);
    return out.data;
}

/* Those of the last matrix, which has no attention and no cache of its own. */
static const char *last_parts(Arena *arena, const Sublayer *s) {
    Precision last = s->last;
    last.attention = s->precision.attention;
    last.cache = s->precision.cache;
    return precision_parts(arena, &last, &s->precision);
}

/* ---------------------------------------------------------------- places in the text */

static size_t offset_of(const Restate *r, Location location) {
    return (size_t)(line_begin(location) - r->text) + (size_t)location.column - 1;
}

static void copy_until(Restate *r, size_t end) {
    text_add(&r->out, r->text + r->at, end - r->at);
    r->at = end;
}

/* The end of an item's name and values, before its block. */
static size_t head_end(const Restate *r, const Item *item) {
    size_t end = offset_of(r, item->location) + strlen(item->name);
    for (const Value *v = item->values; v; v = v->next) {
        const size_t behind = offset_of(r, v->location) + (size_t)(v->location.length > 1 ? v->location.length : 1);
        if (behind > end) end = behind;
    }
    return end;
}

/* The first byte of an item's block, behind its brace, with comments in front of the brace skipped. */
static size_t block_begin(const Restate *r, const Item *item) {
    size_t at = head_end(r, item);
    while (r->text[at] && r->text[at] != '{') at += r->text[at] == '#' ? strcspn(r->text + at, "\n") : 1;
    return at + 1;
}

/* Puts settings at the end of a block, behind what is in it. */
static void append_settings(Restate *r, const Item *item, const char *const *lines, int n) {
    if (!item->has_block) {
        copy_until(r, head_end(r, item));
        text_printf(&r->out, " {");
    } else {
        copy_until(r, offset_of(r, item->block_end));
    }
    for (int i = 0; i < n; i++) text_printf(&r->out, "\n%s", lines[i]);
    text_printf(&r->out, item->has_block ? "\n" : "\n}");
}

static bool is_inside(Location at, const Item *item) {
    return !location_before(at, item->location) && location_before(at, item->block_end);
}

static bool named(const Item *item, const char *name) { return !item->quoted && strcmp(item->name, name) == 0; }

/* ---------------------------------------------------------------- blocks */

static void restate_sublayer(Restate *r, const Item *item, const Sublayer *s, const Precision *inherited) {
    const char *lines[2], *own = precision_parts(r->arena, &s->precision, inherited), *last = last_parts(r->arena, s);
    int n = 0;
    if (*own) lines[n++] = arena_printf(r->arena, "precision%s", own);
    if (*last)
        lines[n++] = arena_printf(r->arena, "%s_precision%s", s->kind == SUBLAYER_FFN ? "down" : "output", last);
    if (n) append_settings(r, item, lines, n);
}

static void restate_layer(Restate *r, const Item *items, const Layer *layer, const Precision *inherited) {
    int s = 0;
    for (const Item *i = items; i; i = i->next)
        if (named(i, "attention") || named(i, "ffn")) restate_sublayer(r, i, &layer->sublayers[s++], inherited);
}

/* The items of a `layers` block, for layers from `first` on. */
static void restate_body(Restate *r, const Item *item, const Layer *first, const Precision *inherited) {
    int patterns = 0;
    for (const Item *i = item->items; i; i = i->next)
        if (named(i, "layer")) restate_layer(r, i->items, &first[patterns++], inherited);
    if (!patterns) restate_layer(r, item->items, first, inherited);
}

/* Whether `n` layers have the precisions of as many others. */
static bool same_layers(const Layer *a, const Layer *b, int64_t n) {
    for (int64_t l = 0; l < n; l++)
        for (int i = 0; i < a[l].count; i++)
            if (!precision_equal(&a[l].sublayers[i].precision, &b[l].sublayers[i].precision) ||
                !precision_equal(&a[l].sublayers[i].last, &b[l].sublayers[i].last))
                return false;
    return true;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* The block `layers` of `n` layers. Periods of its pattern that follow each other with the same precisions stay one
 * block. */
static void restate_layers(Restate *r, const Item *item, const Layer *layers, int64_t n, const Precision *inherited) {
    int64_t period = 0, run;
    for (const Item *i = item->items; i; i = i->next) period += named(i, "layer");
    if (!period) period = 1;
    const size_t body = block_begin(r, item), end = offset_of(r, item->block_end) + 1;
    for (int64_t at = 0; at < n; at += run) {
        run = period;
        while (at + run < n && same_layers(layers + at, layers + at + run, least(period, n - at - run)))
            run += least(period, n - at - run);
        if (at == 0 && run >= n) {
            copy_until(r, body);
        } else {
            if (at == 0) copy_until(r, offset_of(r, item->location));
            run = least(run, n - at);
            text_printf(&r->out, "%slayers %lld {", at ? "\n" : "", (long long)run);
            r->at = body;
        }
        restate_body(r, item, layers + at, inherited);
        copy_until(r, end);
    }
}

/* A line in front of the first item that `is` one, which the blocks behind it inherit. */
static void insert_setting(Restate *r, const Item *items, bool (*is)(const Item *), const Precision *own,
                           const Precision *inherited) {
    const char *parts = precision_parts(r->arena, own, inherited);
    while (items && !is(items)) items = items->next;
    if (!*parts || !items) return;
    copy_until(r, offset_of(r, items->location));
    text_printf(&r->out, "precision%s\n", parts);
}

static bool is_layers(const Item *item) { return named(item, "layers"); }

static void restate_stack(Restate *r, const Item *block, const Stack *stack) {
    insert_setting(r, block->items, is_layers, &stack->precision, &r->model->precision);
    int64_t at = 0;
    for (const Item *i = block->items; i; i = i->next) {
        if (!is_layers(i)) continue;
        int64_t n = 0;
        while (at + n < stack->n_layers && is_inside(stack->layers[at + n].location, i)) n++;
        restate_layers(r, i, stack->layers + at, n, &stack->precision);
        at += n;
    }
    if (at != stack->n_layers) bug("layers of the %s are in no block", stack->name);
}

static bool is_part(const Item *item) {
    return item->has_block && (named(item, "encoder") || named(item, "decoder") || named(item, "attention"));
}

static void restate_model(Restate *r, const Item *model) {
    const Precision none = {.weights = {.dtype = DTYPE_F32}};
    insert_setting(r, model->items, is_part, &r->model->precision, &none);
    for (const Item *i = model->items; i; i = i->next) {
        if (named(i, "encoder")) restate_stack(r, i, r->model->encoder);
        else if (named(i, "decoder")) restate_stack(r, i, r->model->decoder);
        else if (named(i, "attention") && r->model->alone)
            restate_sublayer(r, i, r->model->alone, &r->model->precision);
    }
}

/* Returns whether the text is a valid spec, and its model has this hash. */
static bool is_spec_of(Arena *arena, const char *text, uint64_t hash) {
    Compilation c = compilation_quiet(arena, source_from_text(arena, "restated", text, strlen(text)));
    return compile_until(&c, STAGE_MODEL) && c.model->hash == hash;
}

const char *restated(Arena *arena, const Compilation *c) {
    Restate r = {.arena = arena, .text = c->source->text, .model = c->model, .out = text_new(arena)};
    for (const Item *i = c->ast->items; i; i = i->next)
        if (named(i, "model")) restate_model(&r, i);
    copy_until(&r, c->source->size);
    Compilation formatted = compilation_quiet(arena, source_from_text(arena, c->source->path, r.out.data, r.out.size));
    if (!compile_until(&formatted, STAGE_AST)) bug("the restated spec has errors:\n%s", formatted.diagnostics.log.data);
    const char *text = ast_format(arena, formatted.ast);
    if (!is_spec_of(arena, text, model_hash(arena, c->model))) bug("the restated spec is another model:\n%s", text);
    return text;
}

bool states_precision(const Item *item) {
    return named(item, "precision") || named(item, "output_precision") || named(item, "down_precision");
}
