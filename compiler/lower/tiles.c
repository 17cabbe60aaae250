/* tiles.c: chooses how many rows, panels and columns a kernel computes at a time, by the registers of the target. */
#include "lower.h"

int64_t panel_columns(const Plan *plan, const Step *s) {
    int64_t most = 0;
    for (int p = 0; p < s->gemm.parts; p++) {
        int64_t columns = packed_rows(&plan->program->packed[s->gemm.weight + p]);
        if (columns > PANEL) return PANEL;
        if (columns > most) most = columns;
    }
    return most;
}

/* A choice that shows in bits is made of the columns of all ranks. */
int64_t panel_columns_of_ranks(const Plan *plan, const Step *s) {
    int64_t most = 0;
    for (int p = 0; p < s->gemm.parts; p++) {
        const Packed *part = &plan->program->packed[s->gemm.weight + p];
        const Sharding *sharding = plan->program->module->weights.specs[part->weight].sharding;
        const int64_t columns = sharding ? sharding->columns : packed_rows(part);
        if (columns > most) most = columns;
    }
    return most < PANEL ? most : PANEL;
}

/* Accumulators fill the registers except those for the weights of a row of panels and for one broadcast. Where a panel
 * has two vectors, three vectors of a row would be one and a half panels. The code of a microcontroller is to be
 * short. */
GemmTile gemm_tile(const Isa *isa, int64_t used) {
    if (isa_has(isa, "small")) return (GemmTile){1, 1};
    bool many = isa->registers >= 32;
    if (many && isa->width == 8 && used > 8) return (GemmTile){6, 2};
    int64_t height = isa->width >= 8 ? (many ? 8 : 6) : isa->width >= 4 ? (many ? 6 : 2) : 1;
    int64_t vectors = isa->width >= 8 ? (many ? 3 : 2) : PANEL / isa->width; /* of a row */
    int64_t panels = vectors / ceil_div(used, isa->width);
    return (GemmTile){height, panels > 1 ? panels : 1};
}

int64_t scale_group(const Plan *plan, const Step *s) {
    const Packed *weight = &plan->program->packed[s->gemm.weight];
    return plan->program->module->weights.specs[weight->weight].type.group;
}

GemmTile gemm_dots_tile(const Isa *isa, int64_t used) {
    GemmTile tile = gemm_tile(isa, used);
    if (isa->width > 1 && tile.height < 4 && !isa_has(isa, "small")) tile.height = 4;
    if (isa_has(isa, "costly_spills") && tile.height > 4) tile.height = 4; /* bytes of weights take registers, too */
    return tile;
}

/* Registers hold sums of a group and of all groups, sums of columns, a row's codes and a column's weights. If one
 * instruction multiplies bytes and adds the products, unpacking weights and summing columns take much of the time, and
 * all rows of a tile share this work: a tile of eight rows and one panel takes 15 % less time than two tiles of four
 * rows and two panels (Zen 5). On targets that widen weights instead, taller tiles are faster although some sums
 * are kept in memory (measured on AVX2, AVX-512 and SSE2). Where an instruction multiplies pairs of rows, the height is
 * even, and some sums are in memory, too (not measured). */
static GemmTile group_dots_tile(const Isa *isa, int64_t used, int64_t most_panels, bool offset) {
    if (isa_has(isa, "small")) return (GemmTile){1, 1};
    if (!isa_has(isa, "dot_of_bytes") && !isa_has(isa, "costly_spills")) {
        const int64_t height = isa->width == 1 ? 1 : offset ? 4 : 6;
        return (GemmTile){height, most_panels < 2 ? most_panels : 2};
    }
    const int64_t vectors = ceil_div(used, isa->width);
    const int64_t fit = (isa->registers - 2 - vectors) / (2 * vectors + offset);
    const int64_t height = isa_has(isa, "dot_of_row_pairs") ? round_up(fit, 2) : fit;
    return (GemmTile){height < 1 ? 1 : height > 8 ? 8 : height, 1};
}

GemmTile gemm_group_tile(const Isa *isa, int64_t used, bool dots, bool offset) {
    GemmTile tile = gemm_tile(isa, used);
    if (dots) return group_dots_tile(isa, used, tile.panels, offset);
    const int64_t vectors = tile.panels * ceil_div(used, isa->width);
    const int64_t height = (isa->registers - 1) / vectors - 2 - offset;
    if (height < tile.height) tile.height = height < 1 ? 1 : height;
    return tile;
}

GemmTile gemm_largest_tile(const Plan *plan, const Isa *isa, const Step *s, int64_t rows) {
    GemmTile most = gemm_tile(isa, panel_columns(plan, s));
    int64_t panels = ceil_div(s->n, PANEL);
    return (GemmTile){ceil_div(rows, ceil_div(rows, most.height)), ceil_div(panels, ceil_div(panels, most.panels))};
}

int64_t gemm_k_step(const Isa *isa, const Step *s, GemmTile largest, int64_t used) {
    int64_t vectors = largest.panels * ceil_div(used, isa->width), sums = largest.height * vectors;
    int64_t step = (STATEMENTS - 4 * sums - vectors) / (vectors + largest.height + sums); /* an epilogue, and k by k */
    return step < 1 ? 1 : step < s->gemm.k ? step : s->gemm.k;
}

/* The columns of the product on all ranks: a choice that shows in bits is made of the whole model. */
static int64_t columns_of_ranks(const Plan *plan, const Step *s) {
    const Packed *weight = &plan->program->packed[s->gemm.weight];
    const Sharding *sharding = plan->program->module->weights.specs[weight->weight].sharding;
    return sharding ? sharding->columns : s->n;
}

int gemm_chains(const Plan *plan, const Isa *isa, const Step *s, GemmTile tile, int64_t rows) {
    enum { FEW_ROWS = 8, K_LEAST = 8, K_MOST = 32 };
    const Packed *weight = &plan->program->packed[s->gemm.weight];
    const bool floats = weight->slot.layout.dtype == DTYPE_F32 && plan->program->arithmetic == ARITHMETIC_FREE;
    return floats && plan->seq.exact && rows <= FEW_ROWS && isa->width > 1 && columns_of_ranks(plan, s) <= isa->width &&
           s->gemm.k >= K_LEAST && s->gemm.k <= K_MOST && 2 * tile.height + 2 <= isa->registers ? 2 : 1;
}

int64_t key_block(const Step *s) {
    int64_t bound = round_up(s->attention.key_bound, PANEL);
    return bound <= MOST_KEYS || s->attention.first_export >= 0 ? bound : MOST_KEYS; /* a map's row is one block */
}

/* Whether bounds may decide a condition for many pairs. */
static bool has_ranges(const PairRule *rule) {
    if (rule->op == PAIR_and || rule->op == PAIR_or) return has_ranges(rule->a) || has_ranges(rule->b);
    return !pair_is_unbounded(rule);
}

/* Between leading keys and a window lie hidden keys, which are worth finding among many (of 64 keys, 0.74 of the speed;
 * of 512, 1.07; of 4,096, 3.7; Zen 4). */
bool mask_has_ranges(const AttentionStep *a) {
    const int64_t many = 512;
    return (a->bounds.leading && a->key_bound >= many) || (a->bounds.rest && has_ranges(a->bounds.rest));
}

/* Four rows of a panel would need all registers, or more. */
static bool is_narrow(const Isa *isa) { return isa->width < 8 && isa->registers < 32; }

RowsTile rows_tile(const Isa *isa, const Step *s) {
    int64_t vectors = ceil_div(s->attention.value_dim, isa->width);
    bool wide = isa->registers >= 32 && isa->width >= 16, additive = s->attention.vector != NO_PACKED;
    int64_t rows = wide ? 8 : isa->width == 1 ? 1 : is_narrow(isa) ? 2 : 4;
    return (RowsTile){additive ? 1 : rows, /* each product takes a tanh, so one row suffices */
                      wide && !additive ? 3 : 1,
                      isa->width == 1 ? 8 : is_narrow(isa) ? 4 : wide && vectors % 3 == 0 ? 3 : 2};
}

int64_t columns_looped(const Isa *isa, const Step *s, RowsTile tile) {
    int64_t blocks = s->attention.value_dim / isa->width / tile.columns;
    return blocks > 2 ? blocks * tile.columns : 0;
}

bool scores_in_registers(const Plan *plan, const Isa *isa, const Step *s) {
    const AttentionStep *a = &s->attention;
    RowsTile tile = rows_tile(isa, s);
    const Cache *keys = cache_of(plan, a->key_cache);
    bool ring = keys && keys->ring;
    return a->key_bound <= key_block(s) && key_block(s) <= PANEL * tile.panels && !a->bounds.rest && !ring &&
           !a->bounds.leading && tile.rows * key_block(s) <= isa->registers / 2 * isa->width;
}

static bool reads_positions(const AttentionStep *a) {
    for (int i = 0; i < a->n_rescores; i++)
        if (pair_reads(a->rescores[i].rule, PAIR_query) || pair_reads(a->rescores[i].rule, PAIR_key)) return true;
    return a->n_score_rows > 0;
}

bool attention_is_plain(const Step *s) {
    const AttentionStep *a = &s->attention;
    const bool positions = a->n_inputs || reads_positions(a) || a->by_query != NO_PACKED || a->by_key != NO_PACKED;
    return pair_inputs(a->visible) == 0 && !pair_reads(a->visible, PAIR_head) && a->first_export < 0 && !positions &&
           a->sink == NO_PACKED && a->vector == NO_PACKED && !a->weighing && !a->exports_lse;
}

bool rows_unrolled(const Plan *plan, const Isa *isa, const Step *s) {
    const AttentionStep *a = &s->attention;
    bool all_visible = !a->visible && s->rows == a->key_rows;
    RowsTile tile = rows_tile(isa, s);
    int64_t vectors = key_block(s) / isa->width;
    int64_t scores = a->head_dim * (vectors + tile.rows + tile.rows * vectors);
    int64_t weighted = a->key_bound * (tile.rows + 1) * (ceil_div(a->value_dim, isa->width) + 1);
    return attention_is_plain(s) && all_visible && scores_in_registers(plan, isa, s) &&
           scores + weighted < STATEMENTS / 2;
}

int64_t heads_across(const Plan *plan, const Isa *isa, const Step *s) {
    const AttentionStep *a = &s->attention;
    const Cache *keys = cache_of(plan, a->key_cache);
    if (!attention_is_plain(s) || !keys || !keys->slot.layout.panel || isa->width < 4 ||
        isa_has(isa, "small"))
        return 0;
    int64_t group = a->heads / a->kv_heads;
    int64_t most = isa_for(isa, a->value_dim) != isa ? 8 : is_narrow(isa) ? 2 : 4; /* half vectors in pairs */
    for (int64_t across = most; across > 1; across /= 2)
        if (a->heads % across == 0 && (across % group == 0 || group % across == 0)) return across;
    return 0;
}

int64_t heads_together(const Plan *plan, const Isa *isa, const Step *s) {
    const AttentionStep *a = &s->attention;
    int64_t rows = plan->seq.n, group = a->heads / a->kv_heads;
    if (s->rows == ROWS_SOURCE) rows = plan->source_seq.n;
    int64_t resident = isa->registers / 2 * isa->width / key_block(s); /* rows with scores in registers */
    for (int64_t heads = a->heads; heads > 1; heads--)
        if (a->heads % heads == 0 && heads * rows <= resident && (heads % group == 0 || group % heads == 0))
            return heads;
    return 1;
}
