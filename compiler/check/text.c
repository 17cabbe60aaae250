/* text.c: draws the inputs of the text that check appends to states. */
#include "steps.h"

#include <string.h>

int64_t *draw_ids(Arena *arena, const char *key, int64_t count, int64_t below) {
    int64_t *ids = arena_array(arena, (size_t)count, sizeof *ids);
    uint64_t state = hash_bytes(7, key, strlen(key));
    for (int64_t k = 0; k < count; k++) {
        state = hash_bytes(state, &k, sizeof k);
        ids[k] = (int64_t)((state >> 17) % (uint64_t)below);
    }
    return ids;
}

const void *draw_text(Arena *arena, const Graph *g, const GraphInput *input, int64_t count, int64_t seed) {
    const Dtype dtype = g->tensors[input->tensor].dtype;
    const char *key = arena_printf(arena, "decode.%lld.%s", (long long)seed, input->kind->name);
    const int64_t table = graph_table_rows(g, input);
    if (dtype == DTYPE_I64 && table) return draw_ids(arena, key, count, table);
    if (dtype == DTYPE_I64) {
        int64_t *integers = arena_array(arena, (size_t)count, sizeof *integers);
        draw_integers(hash_bytes(7, key, strlen(key)), g, input, count, integers);
        return integers;
    }
    if (dtype == DTYPE_U8) {
        const int64_t *seen = draw_ids(arena, key, count, 3);
        uint8_t *mask = arena_array(arena, (size_t)count, 1);
        for (int64_t k = 0; k < count; k++) mask[k] = seen[k] > 0;
        return mask;
    }
    float *numbers = arena_array(arena, (size_t)count, sizeof *numbers);
    draw_reals((uint64_t)seed, key, input, count, numbers);
    return numbers;
}

const void *draw_sorted_text(Arena *arena, const Graph *g, const GraphInput *input, int64_t count, bool down) {
    const char *name = input->kind->name;
    if (input->kind->dtype == DTYPE_F32) {
        float *numbers = arena_array(arena, (size_t)count, sizeof *numbers);
        draw_sorted_reals(7, name, input, count, down, numbers);
        return numbers;
    }
    int64_t *integers = arena_array(arena, (size_t)count, sizeof *integers);
    draw_sorted(hash_bytes(7, name, strlen(name)), g, input, count, down, integers);
    return integers;
}
