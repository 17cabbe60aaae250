/* inputs.c: refuses a model whose parts would share an input with different shapes: an input has one name and shape. */
#include "settings.h"

static void refuse_both(Resolver *r, bool both, const char *what) {
    const Model *m = r->model;
    if (!both) return;
    diagnose(r->diagnostics, m->decoder->location, "both the encoder and the decoder take %s: only one of them can",
             what);
    diagnose_note(r->diagnostics, m->encoder->location, "the encoder");
}

/* The stacks whose rows an attention's queries and keys are. */
typedef enum MaskKind { MASK_ENCODER, MASK_DECODER, MASK_CROSS } MaskKind;

typedef struct FirstMask {
    bool found;
    MaskKind kind;
    Location location;
} FirstMask;

static void check_masks(Resolver *r, const Stack *stack, FirstMask *first) {
    for (int64_t l = 0; l < stack->n_layers; l++)
        for (int i = 0; i < stack->layers[l].count; i++) {
            const Sublayer *s = &stack->layers[l].sublayers[i];
            if (s->kind != SUBLAYER_ATTENTION || !s->attention.mask_given) continue;
            MaskKind kind = s->attention.cross ? MASK_CROSS : stack->is_decoder ? MASK_DECODER : MASK_ENCODER;
            if (!first->found) *first = (FirstMask){true, kind, s->location};
            if (first->kind == kind) continue;
            diagnose(r->diagnostics, s->location,
                     "a model has one input `mask`: this attention has other rows or keys than an earlier one");
            diagnose_note(r->diagnostics, first->location, "the earlier one");
            return;
        }
}

void check_inputs(Resolver *r) {
    const Stack *e = r->model->encoder, *d = r->model->decoder;
    if (!e || !d) return;
    refuse_both(r, e->input == INPUT_PATCHES && d->input == INPUT_PATCHES, "patches");
    refuse_both(r, e->segments && d->segments, "segments");
    FirstMask first = {0};
    check_masks(r, e, &first);
    check_masks(r, d, &first);
}
