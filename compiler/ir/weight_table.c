/* weight_table.c: the weights of a module, in the order in which the builder declares them. */
#include "../attnc.h"

#include <string.h>

/* The slot of the weight of that name in the hash table, or the empty slot where it belongs. */
static int *slot_of(const WeightTable *table, const char *name) {
    size_t mask = table->n_slots - 1, at = (size_t)hash_bytes(0, name, strlen(name)) & mask;
    while (table->slots[at] && strcmp(table->specs[table->slots[at] - 1].name, name) != 0) at = (at + 1) & mask;
    return &table->slots[at];
}

static void double_slots(Arena *arena, WeightTable *table) {
    table->n_slots = table->n_slots ? 2 * table->n_slots : 128;
    table->slots = arena_array(arena, table->n_slots, sizeof *table->slots);
    for (size_t i = 0; i < table->count; i++) *slot_of(table, table->specs[i].name) = (int)i + 1;
}

int weight_table_add(Arena *arena, WeightTable *table, WeightSpec spec) {
    if (2 * table->count >= table->n_slots) double_slots(arena, table);
    table->specs = arena_grow(arena, table->specs, (int)table->count, &table->room, sizeof spec);
    int *slot = slot_of(table, spec.name);
    if (*slot) bug("the weight `%s` is in the table already", spec.name);
    table->specs[table->count++] = spec;
    *slot = (int)table->count;
    return *slot - 1;
}

WeightTable weight_table_copy(Arena *arena, const WeightTable *table) {
    WeightTable copy = *table;
    copy.room = (int)table->count;
    copy.specs = arena_array(arena, table->count + 1, sizeof *copy.specs);
    copy.slots = arena_array(arena, table->n_slots + 1, sizeof *copy.slots);
    if (table->count) memcpy(copy.specs, table->specs, table->count * sizeof *copy.specs);
    if (table->n_slots) memcpy(copy.slots, table->slots, table->n_slots * sizeof *copy.slots);
    return copy;
}

const WeightSpec *weight_spec_find(const WeightTable *table, const char *name) {
    int number = table->n_slots ? *slot_of(table, name) : 0;
    return number ? &table->specs[number - 1] : NULL;
}

Dtype weight_table_dtype(const WeightTable *table) {
    for (size_t i = 0; i < table->count; i++)
        if (table->specs[i].type.dtype != DTYPE_F32) return table->specs[i].type.dtype;
    return DTYPE_F32;
}

int64_t weight_columns(const WeightSpec *spec) { return spec->shape.dims[spec->shape.rank - 1]; }

int64_t weight_rows(const WeightSpec *spec) {
    int64_t rows = 1;
    for (int d = 0; d < spec->shape.rank - 1; d++) rows *= spec->shape.dims[d];
    return rows;
}

int64_t weight_groups(const WeightSpec *spec) {
    if (!dtype_has_scales(spec->type.dtype)) return 0;
    return spec->type.group ? (weight_columns(spec) - 1) / spec->type.group + 1 : 1;
}

int64_t weight_bytes(const WeightSpec *spec) {
    const WeightType *type = &spec->type;
    int64_t count = 0;
    if (!shape_elements(spec->shape, &count)) bug("`%s` is too large", spec->name);
    const int64_t numbers = (count * (int64_t)dtype_bits(type->dtype) + 7) / 8, groups = weight_groups(spec);
    const size_t each = type->group ? dtype_bytes(DTYPE_BF16) : sizeof(float);
    return numbers + (groups ? weight_rows(spec) : 0) * groups * (int64_t)each * (type->offset ? 2 : 1);
}
