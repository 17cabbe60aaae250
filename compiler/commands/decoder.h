/* decoder.h: a model that continues rows, by the interpreter or by generated code: a number of states beside each
 * other, over one source where the model has one. */
#ifndef DECODER_H
#define DECODER_H

#include "engine.h"
#include "guard.h"

#include "../../runtime/attn_generate.h"

typedef struct Decoder Decoder;

/* `engine` NULL: the interpreter. States are numbered 0 to slots - 1 and hold nothing yet. */
/* `side`: where the generated code's memory stands at first; with guards every decoder_begin takes the other side, and
 * the states take both in turns. */
Decoder *decoder_new(Arena *arena, const Module *module, const Weights *weights, Engine *engine, int slots,
                     GuardSide side);
/* Empties every state. `source`: the inputs of the encoder, NULL without one; `prefix`: rows that all rows see. */
void decoder_begin(Decoder *decoder, const Sequence *source, int64_t prefix);

/* Rows to append: of each state in order. The interpreter takes tokens alone. */
typedef struct DecoderRows {
    int count;              /* states */
    const int *slots;       /* [count] */
    const int32_t *lengths; /* [count], NULL: one each */
    const int32_t *tokens, *segments;
    const float *features;
} DecoderRows;

/* Where results go; NULL: not wanted. The interpreter gives logits and hidden. */
typedef struct DecoderOutputs {
    float *logits;                      /* [count][vocab] of each state's last row */
    float *hidden;                      /* of all rows */
    float *attention, *cross_attention; /* maps, as NAME_decoded has them */
} DecoderOutputs;

/* 0, or a status of the generated code; the interpreter fails by itself. */
int decoder_append(Decoder *decoder, const DecoderRows *rows, const DecoderOutputs *outputs);
int decoder_copy(Decoder *decoder, int to, int from);
int decoder_rewind(Decoder *decoder, int slot, int64_t rows);
/* A write beside a state, the source or the workspace, or a crash, in words, or NULL. */
const char *decoder_damage(const Decoder *decoder);
const char *decoder_text(const Decoder *decoder, int status);
attn_model decoder_model(Decoder *decoder); /* for attn_generate; a step is one more of the progress */

#endif
