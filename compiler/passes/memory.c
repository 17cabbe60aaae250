/* memory.c: one workspace for all buffers. Needs the steps that touch each buffer; gives offsets such that
 * buffers alive in the same step never overlap. First fit by offset, largest first among those that begin
 * together: activations of one block stay close. */
#include "../attnc.h"

#include <limits.h>

/* Images are whole sequences, of the source where there is one. */
static int64_t sequences_of(const Plan *plan) {
    return plan->source_seq.n ? plan->source_rows / plan->source_seq.n : plan->rows / plan->seq.n;
}

static int64_t rows_of(const Plan *plan, RowsKind kind) {
    switch (kind) {
    case ROWS_CHUNK: return plan->rows;
    case ROWS_SOURCE: return plan->source_rows;
    case ROWS_SEQUENCES: return plan->seq.exact && !plan->cached ? plan->rows / plan->seq.n : plan->rows;
    case ROWS_PATCHES: return sequences_of(plan) * plan->patch_rows;
    }
    return 0;
}

static bool together(const Buffer *a, const Buffer *b) { return a->first <= b->last && b->first <= a->last; }

/* For each buffer the first step that touches it or one behind it in the list. */
static int *first_from(Arena *arena, const Plan *plan) {
    int *first = arena_array(arena, (size_t)plan->n_buffers + 1, sizeof *first);
    first[plan->n_buffers] = INT_MAX;
    for (int i = plan->n_buffers - 1; i >= 0; i--) {
        int own = plan->buffers[i].first;
        first[i] = own >= 0 && own < first[i + 1] ? own : first[i + 1];
    }
    return first;
}

/* Leaves out those that no buffer to come is alive together with; how many remain. */
static int still_alive(const Plan *plan, int *placed, int n_placed, int first) {
    int kept = 0;
    for (int i = 0; i < n_placed; i++)
        if (plan->buffers[placed[i]].last >= first) placed[kept++] = placed[i];
    return kept;
}

/* The lowest offset at which `b` fits among the placed ones. */
static int64_t first_fit(const Plan *plan, const int *placed, int n_placed, const Buffer *b) {
    int64_t at = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < n_placed; i++) {
            const Buffer *o = &plan->buffers[placed[i]];
            if (together(o, b) && at < o->offset + o->room && o->offset < at + b->room) {
                at = o->offset + o->room;
                moved = true;
            }
        }
    }
    return at;
}

/* Rows of a chunk: whole sequences, enough of them that a GEMM's weights are read for many rows. */
static int64_t chunk_rows(Length seq) {
    enum { AIM = 256 };
    return seq.n >= AIM ? seq.n : AIM / seq.n * seq.n;
}

/* A prefill is cut into chunks wherever that fits; rows of a prefix see each other, so that they stay together. */
static int64_t decode_rows(const Plan *plan) {
    enum { MOST = 128 };
    bool prefixed = false;
    for (int i = 0; i < plan->n_steps; i++) prefixed |= plan->steps[i].a.has_prefix;
    return prefixed || plan->seq.n < MOST ? round_up(plan->seq.n, 16) : MOST;
}

/* Rows that an attention's keys may have. */
static int64_t key_bound(const Plan *plan, const Step *s) {
    const Program *program = plan->program;
    if (s->keys != NO_CACHE && program->caches[s->keys].of_source) return program->module->model->encoder->seq.n;
    return s->key_rows == ROWS_SOURCE ? plan->source_seq.n : plan->seq.n;
}

/* A window whose edge no query and key are apart enough to meet hides nothing, and there is nothing to ignore. */
static void drop_window(const Plan *plan, Step *s) {
    int64_t queries = s->rows == ROWS_SOURCE ? plan->source_seq.n : plan->seq.n;
    if (s->a.window >= queries && s->a.window >= s->key_bound) s->a.window = s->a.sink = 0;
}

static void size_scratch(Plan *plan) {
    enum { MOST_KEYS = 512, MOST_QUERY_ROWS = 8, HELD_KEYS = 48, HELD_SCORES = 16 * 16 };
    for (int i = 0; i < plan->n_steps; i++) {
        Step *s = &plan->steps[i];
        if (s->kind != STEP_ATTENTION) continue;
        s->key_bound = key_bound(plan, s);
        drop_window(plan, s);
        int64_t bound = round_up(s->key_bound, 16);
        s->key_block = bound <= MOST_KEYS || s->first_export >= 0 ? bound : MOST_KEYS; /* a map's row is one block */
        /* a head's keys and values; scores and weighted values of some rows */
        int64_t width = round_up(s->value_dim, 16);
        int64_t need = bound * (s->a.head_dim + width) + MOST_QUERY_ROWS * (s->key_block + width) + 64;
        if (need > plan->scratch_floats) plan->scratch_floats = need;
        /* all heads' keys, and scores that fill half of the registers, where they go together */
        int64_t together = bound * s->a.kv_heads * s->a.head_dim + HELD_SCORES;
        if (plan->seq.exact && bound <= HELD_KEYS && together > plan->scratch_floats) plan->scratch_floats = together;
    }
    enum { TILE_SUMS = 8 * 48 }; /* where tiles that are cut leave their sums */
    if (plan->seq.exact && plan->scratch_floats < TILE_SUMS) plan->scratch_floats = TILE_SUMS;
    plan->scratch_floats = round_up(plan->scratch_floats, 16);
}

void plan_memory(Arena *arena, Plan *plan) {
    bool one = plan->program->unroll_full;
    plan->rows = one ? plan->seq.n : plan->cached ? decode_rows(plan) : chunk_rows(plan->seq);
    if (plan->source_seq.n) plan->source_rows = one ? plan->source_seq.n : chunk_rows(plan->source_seq);
    int *placed = arena_array(arena, (size_t)plan->n_buffers, sizeof *placed), n_placed = 0;
    const int *first = first_from(arena, plan);
    for (int i = 0; i < plan->n_buffers; i++) {
        Buffer *b = &plan->buffers[i];
        if (b->kind != BUFFER_WORKSPACE || b->first < 0) continue;
        if (!mul_fits(rows_of(plan, b->rows), b->stride, &b->room))
            fail("the workspace of `%s` is too large", plan->program->module->model->name);
        b->room = round_up(b->room, 16) + 16; /* a full vector may be read behind the last row's end */
        n_placed = still_alive(plan, placed, n_placed, first[i]);
        b->offset = first_fit(plan, placed, n_placed, b);
        placed[n_placed++] = i;
        if (b->offset + b->room > plan->workspace_floats) plan->workspace_floats = b->offset + b->room;
    }
    size_scratch(plan);
}
