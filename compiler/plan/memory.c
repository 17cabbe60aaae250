/* memory.c: gives the buffers offsets in one workspace, so that buffers that are alive in the same step do not overlap.
 * Each gets the lowest offset that fits, the largest first among buffers that begin at the same step, so that the
 * activations of one block stay close. On a microcontroller the largest of all is first, which leaves fewer gaps. */
#include "../attnc.h"

#include <limits.h>
#include <stdlib.h>

/* Images and spectrograms are whole sequences, of the source if there is one. */
static int64_t sequences_of(const Plan *plan) {
    return plan->source_seq.n ? plan->source_rows / plan->source_seq.n : plan->rows / plan->seq.n;
}

int64_t plan_rows(const Plan *plan, RowsKind kind) {
    if (kind >= ROWS_FIXED) return sequences_of(plan) * rows_fixed(plan, kind);
    switch (kind) {
    case ROWS_CHUNK: return plan->rows;
    case ROWS_SOURCE: return plan->source_rows;
    case ROWS_SEQUENCES: return plan->seq.exact && !plan->cached ? plan->rows / plan->seq.n : plan->rows;
    case ROWS_FIXED: break;
    }
    return 0;
}

int64_t buffer_rows(const Plan *plan, const Buffer *buffer) { return plan_rows(plan, buffer->rows) * buffer->times; }

static bool together(const Buffer *a, const Buffer *b) { return a->first <= b->last && b->first <= a->last; }

/* For each buffer, the first step that touches it or a later buffer of the list. */
static int *first_from(Arena *arena, const Plan *plan) {
    int *first = arena_array(arena, (size_t)plan->n_buffers + 1, sizeof *first);
    first[plan->n_buffers] = INT_MAX;
    for (int i = plan->n_buffers - 1; i >= 0; i--) {
        int own = plan->buffers[i].first;
        first[i] = own >= 0 && own < first[i + 1] ? own : first[i + 1];
    }
    return first;
}

/* Drops the buffers that are alive together with no later buffer; returns how many remain. */
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
            if (together(o, b) && at < o->slot.offset + o->slot.bytes && o->slot.offset < at + b->slot.bytes) {
                at = o->slot.offset + o->slot.bytes;
                moved = true;
            }
        }
    }
    return at;
}

/* The rows of a chunk: whole sequences, so many that a GEMM uses its weights for many rows, or one sequence where
 * memory is scarce. */
static int64_t chunk_rows(const Plan *plan, Length seq) {
    enum { AIM = 256 };
    return plan->program->small || seq.n >= AIM ? seq.n : AIM / seq.n * seq.n;
}

/* A prefill is cut into chunks of the size that fits; rows that look ahead, as those of a prefix, stay together. */
static int64_t decode_rows(const Plan *plan) {
    enum { MOST = 128, MOST_SMALL = 4 };
    bool prefixed = false;
    for (int i = 0; i < plan->n_steps; i++) {
        const Step *s = &plan->steps[i];
        prefixed |= s->kind == STEP_ATTENTION && (rule_reads_prefix(s->attention.visible) ||
                                                  s->attention.looks_ahead);
    }
    if (plan->program->small && !prefixed) return MOST_SMALL;
    return prefixed || plan->seq.n < MOST ? round_up(plan->seq.n, PANEL) : MOST;
}

static void set_bytes(const Plan *plan, Buffer *b) {
    if (!layout_bytes(&b->slot.layout, (Shape){2, {buffer_rows(plan, b), b->stride}}, &b->slot.bytes))
        fail("the workspace of `%s` is too large", plan->program->module->model->name);
    b->slot.bytes += b->extra + ALIGNMENT; /* a full vector may be read beyond the end of the last row */
}

static void end_at_most(Plan *plan, const Buffer *b) {
    const int64_t end = b->slot.offset + b->slot.bytes;
    if (end > plan->workspace_bytes) plan->workspace_bytes = end;
}

static bool is_placed(const Buffer *b) { return b->slot.space == SPACE_WORKSPACE && b->first >= 0; }

typedef struct Sized {
    int64_t bytes;
    int buffer;
} Sized;

static int larger_first(const void *a, const void *b) {
    const Sized *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return x->buffer - y->buffer;
}

static void place_by_size(Arena *arena, Plan *plan) {
    Sized *order = arena_array(arena, (size_t)plan->n_buffers, sizeof *order);
    int *placed = arena_array(arena, (size_t)plan->n_buffers, sizeof *placed), n = 0;
    for (int i = 0; i < plan->n_buffers; i++) {
        if (!is_placed(&plan->buffers[i])) continue;
        set_bytes(plan, &plan->buffers[i]);
        order[n++] = (Sized){plan->buffers[i].slot.bytes, i};
    }
    qsort(order, (size_t)n, sizeof *order, larger_first);
    for (int i = 0; i < n; i++) {
        Buffer *b = &plan->buffers[order[i].buffer];
        b->slot.offset = first_fit(plan, placed, i, b);
        placed[i] = order[i].buffer;
        end_at_most(plan, b);
    }
}

void plan_memory(Arena *arena, Plan *plan) {
    bool one = plan->program->unroll_full;
    plan->rows = one ? plan->seq.n : plan->cached ? decode_rows(plan) : chunk_rows(plan, plan->seq);
    if (plan->source_seq.n) plan->source_rows = one ? plan->source_seq.n : chunk_rows(plan, plan->source_seq);
    if (plan->program->small) {
        place_by_size(arena, plan);
        return;
    }
    int *placed = arena_array(arena, (size_t)plan->n_buffers, sizeof *placed), n_placed = 0;
    const int *first = first_from(arena, plan);
    for (int i = 0; i < plan->n_buffers; i++) {
        Buffer *b = &plan->buffers[i];
        if (!is_placed(b)) continue;
        set_bytes(plan, b);
        n_placed = still_alive(plan, placed, n_placed, first[i]);
        b->slot.offset = first_fit(plan, placed, n_placed, b);
        placed[n_placed++] = i;
        end_at_most(plan, b);
    }
}
