/* mask_view.c: counts the pairs that a mask shows, box by box. */
#include "mask_view.h"

#include <string.h>

enum { FEW_PAIRS = 16 };

static PairRule *copied(Arena *arena, MaskView *v, const PairRule *rule) {
    PairRule *made = arena_alloc(arena, sizeof *made);
    *made = *rule;
    if (rule->op == PAIR_head) made->range = (PairRange){v->at.head, v->at.head};
    const double number = rule->op == PAIR_number ? v->at.inputs[rule->input].number : 0;
    if (rule->op == PAIR_number && rule->is_real) { /* which may be NaN */
        made->range = (PairRange){number, number};
    } else if (rule->op == PAIR_number) {
        made->op = PAIR_constant;
        made->constant = number;
    }
    if (rule->op == PAIR_of_query || rule->op == PAIR_of_key || rule->op == PAIR_of_pair) {
        v->leaves = arena_grow(arena, v->leaves, v->n_leaves, &v->room, sizeof *v->leaves);
        v->leaves[v->n_leaves++] = made;
    }
    if (rule->a) made->a = copied(arena, v, rule->a);
    if (rule->b) made->b = copied(arena, v, rule->b);
    if (rule->c) made->c = copied(arena, v, rule->c);
    return made;
}

void mask_view_begin(Arena *arena, MaskView *v) { v->copy = copied(arena, v, v->rule); }

/* Sets the range of a leaf to that of its integers in `lines` lines of `count` of them, `stride` apart. */
static void set_range(MaskView *v, PairRule *leaf, const int64_t *from, int64_t lines, int64_t count, int64_t stride) {
    int64_t least = from[0], most = from[0];
    for (int64_t line = 0; line < lines; line++)
        for (int64_t i = line * stride; i < line * stride + count; i++) {
            if (from[i] < least) least = from[i];
            if (from[i] > most) most = from[i];
        }
    leaf->range = (PairRange){(double)least, (double)most};
    v->work += lines * count / FEW_PAIRS;
}

static void set_ranges(MaskView *v, PairRule *leaf, PairBox box) {
    const PairInput *input = &v->at.inputs[leaf->input];
    const int64_t *pairs = v->of_pairs[leaf->input];
    if (leaf->op == PAIR_of_query) set_range(v, leaf, input->rows + box.query, 1, box.rows, 0);
    else if (leaf->op == PAIR_of_key) set_range(v, leaf, input->rows + box.key, 1, box.keys, 0);
    else if (pairs) set_range(v, leaf, pairs + box.query * v->keys + box.key, box.rows, box.keys, v->keys);
    else leaf->range = (PairRange){input->number, input->number};
}

PairRange mask_view_range(MaskView *v, PairBox box) {
    v->work++;
    for (int i = 0; i < v->n_leaves; i++) set_ranges(v, v->leaves[i], box);
    return pair_data_range(v->copy, (PairRange){(double)box.query, (double)(box.query + box.rows - 1)},
                      (PairRange){(double)box.key, (double)(box.key + box.keys - 1)});
}

static bool is_visible(MaskView *v, int64_t q, int64_t k) {
    for (int i = 0; i < MOST_PAIR_INPUTS; i++) {
        if (v->of_pairs[i]) v->at.inputs[i].number = (double)v->of_pairs[i][q * v->keys + k];
        if (v->bytes[i]) v->at.inputs[i].number = (double)v->bytes[i][q * v->keys + k];
    }
    v->at.query = (double)q;
    v->at.key = (double)k;
    return pair_value(v->rule, &v->at) != 0;
}

static int64_t one_by_one(MaskView *v, PairBox box, uint8_t *seen) {
    int64_t count = 0;
    for (int64_t q = box.query; q < box.query + box.rows; q++)
        for (int64_t k = box.key; k < box.key + box.keys; k++) {
            const bool visible = is_visible(v, q, k);
            count += visible;
            if (seen && visible) seen[q * v->keys + k] = 1;
        }
    v->work += box.rows * box.keys;
    return count;
}

/* Bounds decide most of the boxes into which a box is halved. */
int64_t mask_view_count(MaskView *v, PairBox box, uint8_t *seen) {
    if (box.rows < 1 || box.keys < 1 || v->work > v->most_work) return 0;
    const PairRange range = mask_view_range(v, box);
    if (range.low == range.high) {
        for (int64_t q = box.query; range.low != 0 && seen && q < box.query + box.rows; q++)
            memset(seen + q * v->keys + box.key, 1, (size_t)box.keys);
        return range.low != 0 ? box.rows * box.keys : 0;
    }
    if (box.rows * box.keys <= FEW_PAIRS) return one_by_one(v, box, seen);
    PairBox first = box, second = box;
    if (box.rows > box.keys) {
        first.rows = box.rows / 2;
        second.query += first.rows;
        second.rows -= first.rows;
    } else {
        first.keys = box.keys / 2;
        second.key += first.keys;
        second.keys -= first.keys;
    }
    return mask_view_count(v, first, seen) + mask_view_count(v, second, seen);
}
