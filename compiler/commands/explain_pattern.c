/* explain_pattern.c: counts the keys that each query sees under the masks of a model, and the pairs that the C
 * multiplies, and draws them as characters. */
#include "explain.h"

#include "../emit/emit.h"
#include "../lower/lower.h"

#include <stdlib.h>
#include <string.h>

/* So many rules are evaluated in about half a second. A pattern that needs more is counted for fewer rows. */
enum { MOST_WORK = 1 << 22 };

/* The mask of a step. */
typedef struct View {
    const AttentionStep *step;
    MaskView mask;
} View;

/* ---------------------------------------------------------------- counting */

/* A bound of a row's keys, between 0 and `most`; without a bound it is `none`. */
static int64_t bound_at(View *v, const PairRule *bound, int64_t row, int64_t most, int64_t none) {
    if (!bound) return none;
    v->mask.at.query = (double)row;
    const double value = pair_value(bound, &v->mask.at);
    return value <= 0 ? 0 : value >= (double)most ? most : (int64_t)value;
}

static bool panel_is_seen(View *v, int64_t row, int64_t height, int64_t panel) {
    const int64_t key = panel * PANEL, left = v->mask.keys - key;
    return mask_view_range(&v->mask, (PairBox){row, height, key, left < PANEL ? left : PANEL}).high != 0;
}

/* The keys by which `height` queries from `row` on are multiplied: whole panels, from the first to the last that the
 * bounds of attention_rows.c.tmpl leave, without the panels between them that ranges show to be hidden. */
static int64_t multiplied_keys(View *v, int64_t row, int64_t height) {
    const KeyBounds *b = &v->step->bounds;
    const int64_t n = v->mask.keys, limit = bound_at(v, b->limit, row + height - 1, n, n);
    int64_t first = b->leading ? 0 : bound_at(v, b->low, row, n, 0);
    int64_t last = b->leading ? limit : bound_at(v, b->high, row + height - 1, limit, limit);
    if (first >= last) return 0;
    if (!mask_has_ranges(v->step)) return round_up(last, PANEL) - first / PANEL * PANEL;
    int64_t seen = 0;
    for (int64_t p = first / PANEL; p * PANEL < last; p++) seen += panel_is_seen(v, row, height, p);
    return seen * PANEL;
}

/* The pairs that the target's C multiplies for one head of a sequence. */
static int64_t multiplied_pairs(View *v, const Pattern *p, const Explain *x, const Isa *isa) {
    const Step *s = p->step;
    if (x->plan->program->unroll_full) return p->rows * round_up(s->attention.key_bound, PANEL);
    if (scores_in_registers(x->plan, isa, s)) return p->rows * key_block(s);
    int64_t pairs = 0, height = p->tile;
    for (int64_t row = 0; row < p->rows && v->mask.work <= MOST_WORK; row += height) {
        while (height > p->rows - row) height /= 2;
        pairs += height * multiplied_keys(v, row, height);
    }
    return pairs;
}

/* Counts and draws a pattern, and returns false if that takes too long. */
static bool count_pattern(View *v, Pattern *p, const Explain *x, const Isa *isa) {
    const int64_t most = p->rows > p->keys ? p->rows : p->keys;
    v->mask.work = 0;
    v->mask.keys = p->keys;
    p->cell = ceil_div(most, MOST_CELLS);
    p->lines = (int)ceil_div(p->rows, p->cell);
    p->visible = 0;
    for (int i = 0; i < p->lines; i++) {
        char *line = p->cells[i];
        for (int64_t j = 0; j * p->cell < p->keys; j++) {
            PairBox box = {i * p->cell, p->cell, j * p->cell, p->cell};
            if (box.rows > p->rows - box.query) box.rows = p->rows - box.query;
            if (box.keys > p->keys - box.key) box.keys = p->keys - box.key;
            const int64_t seen = mask_view_count(&v->mask, box, NULL);
            p->visible += seen;
            *line++ = seen == 0 ? CELL_HIDDEN : seen == box.rows * box.keys ? CELL_SEEN : CELL_MIXED;
        }
        *line = 0;
    }
    p->multiplied = multiplied_pairs(v, p, x, isa);
    return v->mask.work <= MOST_WORK;
}

/* ---------------------------------------------------------------- the masks of a model */

/* Draws the inputs of a pattern of p->rows x p->keys pairs, and counts the pairs. */
static bool view_pattern(const Explain *x, Pattern *p, const Isa *isa) {
    if (draws_pairs(x, p->step) && p->rows * p->keys > MOST_WORK) return false;
    View v = {.step = &p->step->attention, .mask = {.rule = p->step->attention.visible, .most_work = MOST_WORK}};
    Text given = text_new(x->arena);
    pattern_inputs(x, p, &v.mask, &given);
    p->given = given.size ? given.data : NULL;
    mask_view_begin(x->arena, &v.mask);
    return count_pattern(&v, p, x, isa);
}

/* Whether a rule has a condition that reads no numbers of pairs, which may decide. */
static bool reads_more_than_pairs(const PairRule *rule) {
    if (rule->op == PAIR_and || rule->op == PAIR_or)
        return reads_more_than_pairs(rule->a) || reads_more_than_pairs(rule->b);
    return !pair_is_unbounded(rule) && !pair_reads(rule, PAIR_of_pair);
}

/* Numbers of pairs are known only at a call, or by --draw, so that a mask of them alone is not drawn. */
static bool is_worth_drawing(const Explain *x, const Step *s) {
    const PairRule *visible = s->kind == STEP_ATTENTION ? s->attention.visible : NULL;
    const KeyBounds *bounds = &s->attention.bounds;
    return visible && visible->op != PAIR_constant &&
           (!(pair_reads(visible, PAIR_given) || pair_reads(visible, PAIR_of_pair)) || bounds->limit ||
            bounds->window || (bounds->rest && reads_more_than_pairs(bounds->rest)) || draws_pairs(x, s));
}

static bool same_pattern(const Step *a, const Step *b) {
    return a->rows == b->rows && a->attention.key_rows == b->attention.key_rows &&
           pair_same(a->attention.visible, b->attention.visible);
}

/* Adds a layer, which is named "layer3" or "encoder_layer3", to a sorted list. */
static void add_layer(Arena *arena, Pattern *p, const char *layer) {
    const char *word = layer ? strstr(layer, "layer") : NULL;
    if (!word) return;
    const int number = (int)strtol(word + strlen("layer"), NULL, 10);
    if (p->n_layers && p->layers[p->n_layers - 1] == number) return;
    p->layers = arena_grow(arena, p->layers, p->n_layers, &p->room_layers, sizeof *p->layers);
    p->layers[p->n_layers++] = number;
    if (word > layer) p->stack = arena_copy(arena, layer, (size_t)(word - layer - 1));
}

/* Names the layers of a pattern: "encoder, layers 0 to 5", "layers 0, 3, 6, 9 and 18 more". The name of
 * a cross attention ends with "cross attention". */
static const char *place_of(Arena *arena, const Pattern *p) {
    enum { MOST_NAMED = 6 };
    if (!p->n_layers) return "attention";
    Text out = text_new(arena);
    if (p->stack) text_printf(&out, "%s, ", p->stack);
    const int first = p->layers[0], last = p->layers[p->n_layers - 1];
    if (p->n_layers == 1) text_printf(&out, "layer %d", first);
    else if (last - first == p->n_layers - 1) text_printf(&out, "layers %d to %d", first, last);
    else {
        text_printf(&out, "layers %d", first);
        for (int i = 1; i < p->n_layers && i < MOST_NAMED; i++) text_printf(&out, ", %d", p->layers[i]);
        if (p->n_layers > MOST_NAMED) text_printf(&out, " and %d more", p->n_layers - MOST_NAMED);
    }
    const Step *s = p->step;
    if (p->stack && s->rows != s->attention.key_rows) text_printf(&out, ", cross attention");
    return out.data;
}

static void finish_pattern(const Explain *x, Pattern *p, const Isa *isa) {
    p->rows = step_rows(x->plan, p->step, &x->rows) / p->step->times;
    p->keys = step_keys(x->plan, p->step, &x->rows);
    p->all_rows = p->rows;
    p->tile = rows_tile(isa, p->step).rows;
    p->target = isa->name;
    p->place = place_of(x->arena, p);
    Text rule = text_new(x->arena);
    pair_print(&rule, p->step->attention.visible);
    p->rule = rule.data;
    while (!view_pattern(x, p, isa)) {
        p->rows = ceil_div(p->rows, 2);
        p->keys = ceil_div(p->keys, 2);
    }
}

void explain_patterns(Explain *x) {
    int room = 0;
    for (int i = 0; i < x->plan->n_steps; i++) {
        const Step *s = &x->plan->steps[i];
        if (!is_worth_drawing(x, s)) continue;
        int at = 0;
        while (at < x->n_patterns && !same_pattern(x->patterns[at].step, s)) at++;
        if (at == x->n_patterns) {
            x->patterns = arena_grow(x->arena, x->patterns, x->n_patterns, &room, sizeof *x->patterns);
            x->patterns[x->n_patterns++] = (Pattern){.step = s};
        }
        add_layer(x->arena, &x->patterns[at], s->layer);
    }
    check_drawn(x);
    const Isa *isa = x->n_patterns ? isa_load(x->arena, x->targets[x->n_targets - 1]) : NULL;
    for (int i = 0; i < x->n_patterns; i++) finish_pattern(x, &x->patterns[i], isa);
}
