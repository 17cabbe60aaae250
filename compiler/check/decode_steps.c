/* decode_steps.c: appends a text to a state step by step, and keeps the rows that the steps quantize. */
#include "steps.h"

#include <string.h>

static int64_t rows_of(const DecodeSteps *s, RowsKind kind) {
    switch (kind) {
    case ROWS_CHUNK:
    case ROWS_SOURCE: return s->taken;                /* of append, and of encode */
    case ROWS_SEQUENCES: return s->taken == s->left; /* logits are of a text's last row */
    default: return rows_fixed(s->plan, kind);
    }
}

static void begin_chunk(DecodeSteps *s) {
    s->before += s->taken;
    s->left -= s->taken;
    s->taken = s->left < s->plan->rows ? s->left : s->plan->rows;
}

void decode_steps_enter(DecodeSteps *s, EntryKind entry, int64_t rows) {
    s->entry = entry;
    s->plan = s->engine->program->entries[entry];
    s->before = s->taken = 0;
    s->left = rows;
    s->kept[entry] = arena_array(s->arena, (size_t)s->plan->graph->n_tensors, sizeof **s->kept);
    for (int i = 0; i < s->plan->n_steps; i++) {
        const Step *step = &s->plan->steps[i];
        StepPart parts[MOST_STEP_PARTS];
        int64_t stride, begins[MOST_STEP_PARTS];
        const int n = steps_rounded(s->plan, step, parts, &stride, begins);
        if (!n) continue;
        const int64_t fixed = rows_fixed(s->plan, step->rows);
        const int64_t most = fixed ? fixed : step->rows == ROWS_SEQUENCES ? 1 : rows;
        const uint8_t *rows_kept = arena_alloc(s->arena, (size_t)(most * step->times * stride));
        for (int p = 0; p < n; p++)
            s->kept[entry][parts[p].rounded] = (QuantizedRows){rows_kept + begins[p], stride};
    }
    begin_chunk(s);
}

static void *workspace_at(const DecodeSteps *s, const Buffer *buffer) {
    return (uint8_t *)decoder_workspace(s->decoder) + s->engine->emitted.entries[s->entry].control_bytes +
           buffer->slot.offset;
}

static void keep(DecodeSteps *s, const Step *step) {
    StepPart parts[MOST_STEP_PARTS];
    int64_t stride, begins[MOST_STEP_PARTS];
    if (!steps_rounded(s->plan, step, parts, &stride, begins)) return;
    const Buffer *buffer = &s->plan->buffers[step->out.buffer];
    const QuantizedRows *to = &s->kept[s->entry][parts[0].rounded];
    void *at = workspace_at(s, buffer);
    const int64_t before = step->rows == ROWS_CHUNK || step->rows == ROWS_SOURCE ? s->before * step->times : 0;
    const int64_t rows = rows_of(s, step->rows) * step->times;
    uint8_t *kept = (uint8_t *)to->data - begins[0] + before * stride;
    engine_see(s->engine, at, (size_t)(rows * stride));
    if (step->order.buffer == NO_BUFFER) {
        memcpy(kept, at, (size_t)(rows * stride));
        return;
    }
    const Buffer *by = &s->plan->buffers[step->order.buffer];
    void *order = workspace_at(s, by);
    engine_see(s->engine, order, (size_t)(by->extra + 2 * rows * (int64_t)sizeof(int32_t)));
    rows_in_own_order(s->plan, step, at, order, rows, stride, kept);
}

void decode_steps_at(void *watcher, int step) {
    DecodeSteps *s = watcher;
    if (step > 0) keep(s, &s->plan->steps[step - 1]);
    if (step == s->plan->n_steps) begin_chunk(s);
}
