/* inputs.c: inputs that several parts of a model would have to share. Each has one name, and so one shape. */
#include "settings.h"

static void refuse_both(Resolver *r, bool both, const char *what) {
    const Model *m = r->model;
    if (!both) return;
    diagnose(r->diagnostics, m->decoder->place, "the decoder takes %s, and the encoder does: only one of them can",
             what);
    diagnose_note(r->diagnostics, m->encoder->place, "the encoder");
}

/* Where the rows of an attention's queries and keys come from. */
typedef enum MaskKind { MASK_ENCODER, MASK_DECODER, MASK_CROSS } MaskKind;

typedef struct FirstMask {
    bool found;
    MaskKind kind;
    Place place;
} FirstMask;

static void check_masks(Resolver *r, const Stack *stack, FirstMask *first) {
    for (int64_t l = 0; l < stack->n_layers; l++)
        for (int i = 0; i < stack->layers[l].count; i++) {
            const Sublayer *s = &stack->layers[l].sublayers[i];
            if (s->kind != SUBLAYER_ATTENTION || !s->attention.mask_given) continue;
            MaskKind kind = s->attention.cross ? MASK_CROSS : stack->is_decoder ? MASK_DECODER : MASK_ENCODER;
            if (!first->found) *first = (FirstMask){true, kind, s->place};
            if (first->kind == kind) continue;
            diagnose(r->diagnostics, s->place,
                     "`mask given` is one mask a model: this attention has other rows or keys than one before");
            diagnose_note(r->diagnostics, first->place, "the one before");
            return;
        }
}

void check_inputs(Resolver *r) {
    const Stack *e = r->model->encoder, *d = r->model->decoder;
    if (!e || !d) return;
    refuse_both(r, e->input == INPUT_FEATURES && d->input == INPUT_FEATURES, "features");
    refuse_both(r, e->input == INPUT_PATCHES && d->input == INPUT_PATCHES, "patches");
    refuse_both(r, e->segments && d->segments, "segments");
    FirstMask first = {0};
    check_masks(r, e, &first);
    check_masks(r, d, &first);
}
