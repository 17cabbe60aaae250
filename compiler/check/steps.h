/* steps.h: a batch, or a text in a state, that runs step by step. Included by check/ alone. */
#ifndef STEPS_H
#define STEPS_H

#include "check.h"

typedef struct Steps {
    Engine *engine;
    const Batch *batch;
    /* Called after each step of each chunk, with the results in place. */
    void (*look)(struct Steps *steps, const Step *step);
    int step;                           /* the one that runs; in `look`, the one that has run */
    int64_t first, end;                 /* the sequences of the chunk: as many whole ones as fit, as in NAME_forward */
    int64_t rows_before, source_before; /* rows of the chunks before this one */
    Arena *arena;                       /* of the run */
    CheckRun run;
} Steps;

/* Lets later calls tell `at` of each step before it runs, and of the number of steps at the end. Returns what
 * steps_unwatch needs. */
DriverCall steps_watch(Engine *engine, const char *target, void (*at)(void *watcher, int step), void *watcher);
void steps_unwatch(Engine *engine, const char *target, const DriverCall *before);

/* Runs the batch once; the threads of later calls are those before. Results are in `arena`. */
void steps_run(Steps *steps, Arena *arena, const char *target, GuardSide side);
/* The rows of the chunk that the step has made: those of a sequence behind those of the one before it, and those of a
 * row's experts in the order in which the row has chosen them. */
const void *steps_result(const Steps *steps, const Step *step);
int64_t steps_rows(const Steps *steps, RowsKind kind, const Sequence *sequence);
int64_t steps_rows_made(const Steps *steps, const Step *step, const Sequence *sequence); /* with those of experts */
/* Writes rows that stand in the order of experts, each of `stride` bytes, in the order of the rows that chose these. */
void rows_in_own_order(const Plan *plan, const Step *step, const void *from, const void *order, int64_t rows,
                       int64_t stride, void *to);

/* The tensors that stand beside each other in the result of a step: one, or one for each part of a joined product. */
typedef struct StepPart {
    int tensor;
    int rounded; /* the rounded tensor, whose numbers these are; or NO_TENSOR */
    int64_t column, width; /* columns of the result */
} StepPart;
enum { MOST_STEP_PARTS = 8 };
int steps_parts(const Plan *plan, const Step *step, StepPart parts[MOST_STEP_PARTS]); /* returns their number */

/* As steps_parts, for a step that rounds rows; 0 for others. Sets the bytes from one row of its buffer to the next, and
 * where in such a row each part begins. */
int steps_rounded(const Plan *plan, const Step *step, StepPart parts[MOST_STEP_PARTS], int64_t *stride,
                  int64_t begins[MOST_STEP_PARTS]);
/* Runs the batch and returns the quantized rows of each sequence, by the tensors of the engine's graph. */
QuantizedRows **steps_quantized(Arena *arena, Engine *engine, const Batch *batch, const char *target, GuardSide side,
                                const char **complaint);
/* For each tensor of `graph`, the rows of the tensor of that name in the graph `of`. */
const QuantizedRows *quantized_of(Arena *arena, const Graph *graph, const QuantizedRows *rows, const Graph *of);

/* --- decode_steps.c */
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

/* --- check/text.c */
int64_t *draw_ids(Arena *arena, const char *key, int64_t count, int64_t below);
/* Draws `count` numbers of an input of the graph: int64_t, float, or bytes of a mask. */
const void *draw_text(Arena *arena, const Graph *graph, const GraphInput *input, int64_t count, int64_t seed);
/* The same of an input of rows, in order: upwards, or downwards. */
const void *draw_sorted_text(Arena *arena, const Graph *graph, const GraphInput *input, int64_t count, bool down);

#endif
