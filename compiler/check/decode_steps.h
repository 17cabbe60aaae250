/* decode_steps.h: a text whose steps are seen one by one. Included by check/ alone. */
#ifndef DECODE_STEPS_H
#define DECODE_STEPS_H

#include "check.h"
#include "../engine/decoder.h"

/* The steps of encode for one source, then those of decode for one text. */
typedef struct DecodeSteps {
    Arena *arena;
    Engine *engine;
    const Decoder *decoder;
    const Plan *plan; /* of the entry that runs */
    EntryKind entry;
    int64_t before, taken, left;        /* rows before this chunk, in it, and from its begin on */
    QuantizedRows *kept[ENTRY_COUNT];   /* by the tensors of the entry's graph */
} DecodeSteps;

/* Must be called before each call of the entry, which gets that many rows. */
void decode_steps_enter(DecodeSteps *steps, EntryKind entry, int64_t rows);
/* The on_step of these calls, whose watcher is the DecodeSteps. */
void decode_steps_at(void *watcher, int step);

#endif
