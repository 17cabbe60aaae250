/* decoder.h: a model that continues rows, by the interpreter or by generated code: a number of states beside each
 * other, over one source where the model has one. */
#ifndef DECODER_H
#define DECODER_H

#include "engine.h"

#include "../../runtime/attn_generate.h"

typedef struct Decoder Decoder;

/* `engine` NULL: the interpreter. States are numbered 0 to slots - 1 and hold nothing yet. */
Decoder *decoder_new(Arena *arena, const Module *module, const Weights *weights, Engine *engine, int slots);
/* Empties every state. `source`: the inputs of the encoder, NULL without one; `prefix`: rows that all rows see. */
void decoder_begin(Decoder *decoder, const Sequence *source, int64_t prefix);
/* Appends lengths[i] rows (NULL: one each) to each of `count` states. logits [count][vocab] of their last rows, hidden
 * of all rows; either may be NULL. 0, or a status of the generated code; the interpreter fails by itself. */
int decoder_append(Decoder *decoder, int count, const int *slots, const int32_t *lengths, const int32_t *tokens,
                   float *logits, float *hidden);
int decoder_copy(Decoder *decoder, int to, int from);
int decoder_rewind(Decoder *decoder, int slot, int64_t rows);
void *decoder_state(Decoder *decoder, int slot); /* the memory of the generated code's */
const char *decoder_text(const Decoder *decoder, int status);
attn_model decoder_model(Decoder *decoder); /* for attn_generate */

#endif
