/* build_rope.c: the rotation of queries and keys by position, and its tables. */
#include "builder.h"

/* A name made of all numbers of a rotation, so that layers share a table only if their rotations are equal. */
static const char *rotation_name(Build *b, const Position *p, int64_t bound) {
    Text numbers = text_new(b->arena);
    text_printf(&numbers, "%.17g %.17g %.17g %.17g %.17g %.17g %d %lld", p->factor, p->low, p->high, p->beta_fast,
                p->beta_slow, p->attention_factor, p->untruncated, (long long)p->original);
    for (int64_t i = 0; p->scaling == ROPE_LONGROPE && i < p->rope_width / 2; i++)
        text_printf(&numbers, " %.17g %.17g", p->short_factors[i], p->long_factors[i]);
    const char *name = arena_printf(b->arena, "%lld.%.17g.%lld", (long long)p->rope_width, p->theta, (long long)bound);
    if (p->grid)
        return arena_printf(b->arena, "%s.grid.%lld.%lld.%lld", name, (long long)p->grid_before,
                            (long long)p->grid_lines, (long long)p->grid_columns);
    if (p->scaling == ROPE_PLAIN) return name;
    return arena_printf(b->arena, "%s.%d.%016llx", name, (int)p->scaling,
                        (unsigned long long)hash_bytes(0, numbers.data, numbers.size));
}

/* Longrope has a table for sequences up to `original` rows and another for longer sequences. Where the length is known
 * only at the call, the tables are concatenated. Returns the first row of the second table, or 0 for a single table. */
static int64_t second_table(const Build *b, const Position *p, Dim rows, int64_t bound) {
    bool exact = !rows.symbol || (b->entry == ENTRY_DECODE && b->model->decoder->seq.exact);
    return p->scaling == ROPE_LONGROPE && !exact && p->original < bound ? p->original : 0;
}

int build_rope(Build *b, const char *what, Role role, int x, const Attention *a, int64_t heads, int64_t head_dim,
               int64_t bound, int past) {
    const Position *p = &a->position;
    if (p->n_at) bound = p->at_rows;
    int64_t first = second_table(b, p, build_rows(b, x), bound);
    Shape shape = {2, {first + bound, p->rope_width / 2}};
    const char *key = rotation_name(b, p, bound);
    if (first) key = arena_printf(b->arena, "%s.both", key);
    Derived table = {.kind = DERIVED_ROPE_COS, .shape = shape, .position = p, .rows = bound};
    table.name = arena_printf(b->arena, "rope.cos.%s", key);
    const int c = build_derived(b, table);
    table.kind = DERIVED_ROPE_SIN;
    table.name = arena_printf(b->arena, "rope.sin.%s", key);
    const int s = build_derived(b, table);
    Tensor result = build_value_like(b, what, x);
    result.site.role = role;
    const OpAttributes at = {.heads = heads, .head_dim = head_dim, .width = p->rope_width,
                             .interleaved = p->rope_interleaved, .offset = first, .past = past,
                             .sections = p->n_at > 1 ? p->sections : NULL};
    int inputs[3 + MOST_ROW_INPUTS] = {x, c, s};
    for (int i = 0; i < p->n_at; i++) inputs[3 + i] = build_row_input(b, p->at[i], build_rows(b, x));
    return build_op(b, OP_rope, at, result, 3 + p->n_at, inputs);
}
