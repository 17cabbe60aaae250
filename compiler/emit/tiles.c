/* tiles.c: how many rows, panels and columns a kernel takes at a time, by the registers of the target. */
#include "emit.h"

int64_t panel_columns(const Plan *plan, const Step *s) {
    int64_t most = 0, left = s->n;
    for (const Packed *part = &plan->program->packed[s->weight]; left > 0; part++) {
        int64_t columns = part->shape.dims[0];
        if (columns > 16) return 16;
        if (columns > most) most = columns;
        left -= 16;
    }
    return most;
}

/* Accumulators fill the registers but for the weights of a row of panels and one broadcast. */
GemmTile gemm_tile(const Isa *isa, int64_t used) {
    bool many = isa->registers >= 32;
    int64_t height = isa->width >= 8 ? (many ? 8 : 6) : isa->width >= 4 ? (many ? 6 : 2) : 1;
    int64_t vectors = isa->width >= 8 ? (many ? 3 : 2) : 16 / isa->width; /* of a row */
    int64_t panels = vectors / ceil_div(used, isa->width);
    return (GemmTile){height, panels > 1 ? panels : 1};
}

/* Vectors of a panel times four rows are all registers, or more. */
static bool is_narrow(const Isa *isa) { return isa->width < 8 && isa->registers < 32; }

RowsTile rows_tile(const Isa *isa, const Step *s) {
    int64_t vectors = ceil_div(s->value_dim, isa->width);
    bool wide = isa->registers >= 32 && isa->width >= 16, additive = s->vector != NO_PACKED;
    int64_t rows = wide ? 8 : isa->width == 1 ? 1 : is_narrow(isa) ? 2 : 4;
    return (RowsTile){additive ? 1 : rows, /* a tanh a product is enough in one row */
                      wide && !additive ? 3 : 1,
                      isa->width == 1 ? 8 : is_narrow(isa) ? 4 : wide && vectors % 3 == 0 ? 3 : 2};
}

const Cache *cache_of(const Plan *plan, int cache) {
    return cache == NO_CACHE ? NULL : &plan->program->caches[cache];
}

bool scores_held(const Plan *plan, const Isa *isa, const Step *s) {
    RowsTile tile = rows_tile(isa, s);
    const Cache *keys = cache_of(plan, s->keys);
    bool ring = keys && keys->ring;
    return s->key_bound <= s->key_block && s->key_block <= 16 * tile.panels && !s->a.has_mask && !ring && !s->a.sink &&
           tile.rows * s->key_block <= isa->registers / 2 * isa->width;
}

/* Nothing but queries, keys, values and positions has a part in it. */
static bool is_plain(const Step *s) {
    return !s->a.has_prefix && !s->a.has_mask && s->first_export < 0 && s->relative == NO_PACKED &&
           s->slopes == NO_PACKED && s->sink == NO_PACKED && s->vector == NO_PACKED;
}

bool rows_written_out(const Plan *plan, const Isa *isa, const Step *s) {
    bool sees_all = !s->a.causal && !s->a.window && s->rows == s->key_rows;
    RowsTile tile = rows_tile(isa, s);
    int64_t vectors = s->key_block / isa->width;
    int64_t scores = s->a.head_dim * (vectors + tile.rows + tile.rows * vectors);
    int64_t mix = s->key_bound * (tile.rows + 1) * (ceil_div(s->value_dim, isa->width) + 1);
    return is_plain(s) && sees_all && scores_held(plan, isa, s) && scores + mix < STATEMENTS / 2;
}

int64_t heads_across(const Plan *plan, const Isa *isa, const Step *s) {
    const Cache *keys = cache_of(plan, s->keys);
    if (!is_plain(s) || !keys || !keys->panels || isa->width < 4) return 0;
    int64_t group = s->a.heads / s->a.kv_heads;
    int64_t most = isa_for(isa, s->value_dim) != isa ? 8 : is_narrow(isa) ? 2 : 4; /* two half vectors go at a time */
    for (int64_t across = most; across > 1; across /= 2)
        if (s->a.heads % across == 0 && (across % group == 0 || group % across == 0)) return across;
    return 0;
}

int64_t heads_together(const Plan *plan, const Isa *isa, const Step *s) {
    int64_t rows = plan->seq.n, group = s->a.heads / s->a.kv_heads;
    if (s->rows == ROWS_SOURCE) rows = plan->source_seq.n;
    int64_t held = isa->registers / 2 * isa->width / s->key_block; /* rows whose scores are */
    for (int64_t heads = s->a.heads; heads > 1; heads--)
        if (s->a.heads % heads == 0 && heads * rows <= held && (heads % group == 0 || group % heads == 0)) return heads;
    return 1;
}
