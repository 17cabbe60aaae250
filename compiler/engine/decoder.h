/* decoder.h: appends rows to states, in the interpreter or in compiled code. A decoder has several states, all over the
 * same source when the model has an encoder. */
#ifndef DECODER_H
#define DECODER_H

#include "engine.h"
#include "guard.h"

#include "../../runtime/attn_generate.h"

typedef struct Decoder Decoder;

/* Runs in the interpreter when `engine` is NULL. States are numbered 0 to slots - 1 and are empty at first. `side` says
 * where the memory of compiled code begins; with guards, every decoder_begin changes the side, and neighbouring states
 * have different sides. */
Decoder *decoder_new(Arena *arena, const Module *module, const Weights *weights, Engine *engine, int slots,
                     GuardSide side);
void decoder_arithmetic(Decoder *decoder, Arithmetic arithmetic); /* of one that runs in the interpreter */
/* Empties every state. `source` holds the inputs of the encoder, or is NULL without an encoder; the first `prefix` rows
 * are visible to all rows. */
void decoder_begin(Decoder *decoder, const Sequence *source, int64_t prefix);

/* The numbers of an input that the spec states, int64_t or float, for calls that give none: row i of each text has
 * number i, and rows after the n-th have the last number, or count on from it where the numbers are the positions of
 * rows. Of a number of the sequence, n is 1. The array must outlive the calls. */
void decoder_numbers(Decoder *decoder, InputRole role, const void *numbers, int64_t n);

/* The rows to append, for one state after another. The interpreter takes tokens and the inputs that the spec states
 * only. */
typedef struct DecoderRows {
    int count;              /* number of states */
    const int *slots;       /* [count] */
    const int32_t *lengths; /* [count] rows for each state; NULL: one row each */
    const void *inputs[MOST_INPUTS]; /* by role, ids as int32_t: those with a row for each row, and the [count]
                                      * numbers of sequences that the spec states; NULL for the others */
} DecoderRows;

/* The arrays for results, NULL for results that are not wanted. The interpreter computes logits and hidden only. */
typedef struct DecoderOutputs {
    float *logits;                      /* [count][vocab], for the last row of each state */
    float *hidden;                      /* for all rows */
    float *attention, *cross_attention; /* maps in the layout of NAME_decoded */
} DecoderOutputs;

/* Returns 0 or a status of the compiled code; the interpreter calls fail() itself. */
int decoder_append(Decoder *decoder, const DecoderRows *rows, const DecoderOutputs *outputs);
int decoder_copy(Decoder *decoder, int to, int from);
int decoder_rewind(Decoder *decoder, int slot, int64_t rows);
/* Describes a crash, or a write beside a state, the source or the workspace; NULL when there was none. */
const char *decoder_damage(const Decoder *decoder);
const void *decoder_workspace(const Decoder *decoder); /* of the next call */
const char *decoder_text(const Decoder *decoder, int status);
attn_model decoder_model(Decoder *decoder); /* for attn_generate; each step advances the progress line */

#endif
