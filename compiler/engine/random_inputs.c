/* random_inputs.c: seeded random inputs for a graph, on which check and bench run. */
#include "batch.h"

#include <stdlib.h>
#include <string.h>

void sequence_lengths(const Graph *g, Sequence *s, int64_t rows, int64_t source) {
    for (int i = 0; i < g->n_inputs; i++) {
        Dim first = g->tensors[g->inputs[i].tensor].dims[0];
        if (first.symbol) s->symbols[first.symbol - 1] = g->inputs[i].of_source ? source : rows;
    }
}

/* The greatest prefix_length: its own bound, and at most the rows of the first input that is not a source. The rows of
 * an image are fixed. */
static int64_t prefix_most(const Graph *g, const Sequence *s, const GraphInput *prefix) {
    const GraphInput *own = g->inputs;
    while (own->of_source) own++;
    if (own->kind->rows == PER_SEQUENCE) return prefix->most;
    int64_t rows = sequence_extent(s, g->tensors[own->tensor].dims[0]);
    return rows < prefix->most ? rows : prefix->most;
}

static int64_t draw(uint64_t *stream, int64_t position, int64_t below) {
    *stream = hash_bytes(*stream, &position, sizeof position);
    return (int64_t)((*stream >> 17) % (uint64_t)below);
}

/* mask [rows][columns]: about every fifth row is all zeros; in the others about half of the columns are visible. */
static uint8_t *random_mask(Arena *arena, uint64_t *stream, int64_t count, int64_t columns, bool all_visible) {
    uint8_t *mask = arena_array(arena, (size_t)count, 1);
    bool blind = false;
    for (int64_t k = 0; k < count; k++) {
        int64_t number = draw(stream, k, 1000);
        if (k % columns == 0) blind = number / 2 % 5 == 0;
        mask[k] = all_visible || (!blind && number % 2);
    }
    return mask;
}

void drawn_range(const Graph *g, const GraphInput *input, int64_t *least, int64_t *most) {
    if (!graph_input_range(g, input, least, most)) return;
    if (*least > INT32_MIN || *most < INT32_MAX) return;
    *least = -1;
    *most = 3;
}

void draw_integers(uint64_t stream, const Graph *g, const GraphInput *input, int64_t count, int64_t *out) {
    int64_t least, most;
    drawn_range(g, input, &least, &most);
    const bool in_runs = draw(&stream, -1, 2);
    for (int64_t k = 0; k < count; k++) {
        const bool again = in_runs && k && draw(&stream, 2 * k, 4);
        if (input->kind->wide && !again) draw(&stream, 2 * k + 1, 2), memcpy(&out[k], &stream, sizeof out[k]);
        else out[k] = again ? out[k - 1] : least + draw(&stream, 2 * k + 1, most - least + 1);
    }
}

void draw_reals(uint64_t seed, const char *key, const GraphInput *input, int64_t count, float *out) {
    const PairRange range = input->range;
    random_normal(seed, key, 0, 1, count, out);
    if (!graph_input_is_ranged(input)) return;
    uint64_t stream = hash_bytes(seed + 1, key, strlen(key));
    const int64_t parts = 1 << 20;
    for (int64_t k = 0; k < count; k++) { /* both ends are drawn, too */
        const double share = (double)draw(&stream, k, parts) / (double)(parts - 1);
        const int64_t end = draw(&stream, k, 16);
        out[k] = (float)(end == 0 ? range.low : end == 1 ? range.high : range.low + share * (range.high - range.low));
    }
}

void draw_sorted(uint64_t stream, const Graph *g, const GraphInput *input, int64_t count, bool down, int64_t *out) {
    int64_t least, most;
    drawn_range(g, input, &least, &most);
    const int64_t values = most - least + 1, run = count / values + 1;
    int64_t value = least;
    for (int64_t k = 0; k < count; k++) {
        if (k && value < most && draw(&stream, k, run) == 0) value++;
        out[down ? count - 1 - k : k] = value;
    }
}

static int by_number(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

void draw_sorted_reals(uint64_t seed, const char *key, const GraphInput *input, int64_t count, bool down, float *out) {
    draw_reals(seed, key, input, count, out);
    qsort(out, (size_t)count, sizeof *out, by_number);
    for (int64_t i = 0; down && i < count / 2; i++) {
        const float first = out[i];
        out[i] = out[count - 1 - i];
        out[count - 1 - i] = first;
    }
}

static const void *random_array(Arena *arena, const Graph *g, const Sequence *s, const GraphInput *input,
                                const RandomInputs *how) {
    const Tensor *t = &g->tensors[input->tensor];
    int64_t count = sequence_items(s, t), table = graph_table_rows(g, input);
    const char *key = arena_printf(arena, "%s.%lld.%s", how->key, (long long)how->index, input->kind->name);
    if (t->dtype == DTYPE_F32) {
        float *numbers = arena_array(arena, (size_t)count, sizeof *numbers);
        draw_reals(how->seed, key, input, count, numbers);
        if (how->alter && !graph_input_is_ranged(input)) how->alter(how->with, numbers, count);
        return numbers;
    }
    uint64_t stream = hash_bytes(how->seed + 1, key, strlen(key));
    if (t->dtype == DTYPE_U8)
        return random_mask(arena, &stream, count, sequence_extent(s, t->dims[1]), how->all_visible);
    int64_t *ids = arena_array(arena, (size_t)count, sizeof *ids);
    if (input->kind->role != IN_prefix_length && !table) {
        draw_integers(stream, g, input, count, ids);
        return ids;
    }
    if (!table) {
        int64_t most = prefix_most(g, s, input);
        ids[0] = how->has_prefix ? how->prefix : draw(&stream, 0, most + 1);
        if (ids[0] > most) ids[0] = most;
        return ids;
    }
    for (int64_t k = 0; k < count; k++) ids[k] = draw(&stream, k, table);
    ids[count - 1] = table - 1; /* the last row of the table */
    const int64_t named = graph_named_token(g, input);
    for (int64_t k = 0; k < count && named >= 0; k++)
        if (draw(&stream, k, 3) == 0) ids[k] = named;
    return ids;
}

void sequence_fill(Arena *arena, const Graph *g, Sequence *s, const RandomInputs *how) {
    for (int i = 0; i < g->n_inputs; i++) {
        const GraphInput *input = &g->inputs[i];
        const Tensor *t = &g->tensors[input->tensor];
        if (input->optional && how->only_required) continue;
        s->inputs[s->n_inputs++] = (InputArray){input->kind->role, t->dtype, sequence_extent(s, t->dims[0]),
                                                random_array(arena, g, s, input, how)};
    }
}
