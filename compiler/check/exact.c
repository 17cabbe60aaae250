/* exact.c: reproducible C must give the interpreter's own bits, which runs the graph in the fixed order of f32
 * operations. */
#include "check.h"

static OutputArray *interpret_exactly(Arena *arena, const Engine *engine, const Weights *weights, const Sequence *s) {
    Arena *own = arena_new();
    const InterpretHow how = {.arithmetic = engine->program->arithmetic};
    OutputArray *outputs = outputs_copy(arena, sequence_interpret(own, engine->module, weights, s, &how));
    arena_free(own);
    return outputs;
}

void exact_interpret(Arena *arena, const Engine *engine, const Weights *weights, Case *one) {
    const Batch *batch = one->batch;
    if (one->exact) return;
    progress_begin("interpreting in f32");
    one->exact = arena_array(arena, (size_t)batch->count, sizeof *one->exact);
    for (int64_t b = 0; b < batch->count; b++)
        one->exact[b] = interpret_exactly(arena, engine, weights, &batch->sequences[b]);
}

int64_t exact_difference(const float *got, int64_t stride, const double *want, int64_t rows, int64_t columns) {
    for (int64_t i = 0; i < rows * columns; i++) {
        const float number = (float)want[i];
        if (!check_same_bits(&got[i / columns * stride + i % columns], &number, 1)) return i;
    }
    return -1;
}

const char *exact_case(Arena *arena, const Engine *engine, const Case *one, OutputRole *output) {
    const Pieces pieces = batch_pieces(arena, engine->plan->graph, one->batch);
    for (int64_t i = 0; i < pieces.count; i++) {
        const Piece *p = &pieces.list[i];
        if (!one->run.arrays[p->role]) continue;
        const float *got = one->run.arrays[p->role] + p->offset;
        const double *want = one->exact[p->sequence][p->output].data +
                             (p->head >= 0 ? p->head * p->rows * p->columns : 0);
        const int64_t at = exact_difference(got, p->columns, want, p->rows, p->columns);
        if (at < 0) continue;
        *output = p->role;
        return arena_printf(arena, "sequence %lld at [%lld][%lld]: %.9g, the interpreter has the bits of %.9g in f32",
                            (long long)p->sequence, (long long)(at / p->columns), (long long)(at % p->columns),
                            (double)got[at], want[at]);
    }
    return NULL;
}
