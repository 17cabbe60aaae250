/* batch.h: the sequences that a command runs, their inputs and their outputs. */
#ifndef BATCH_H
#define BATCH_H

#include "commands.h"

/* One sequence: a length a symbol of the graph, and its inputs in the order of the graph's. */
typedef struct Sequence {
    int64_t symbols[4];
    InputArray inputs[MAX_GRAPH_INPUTS];
    int n_inputs;
    OutputArray *outputs; /* one a graph output, set by the engine that ran it */
} Sequence;

typedef struct Batch {
    bool batched;         /* the arrays have a batch dimension in front */
    Sequence *sequences;
    int64_t count;
    int64_t padded[4];    /* the longest length a symbol: what the arrays of a batch are padded to */
} Batch;

/* How many rows or columns the sequence has in a dimension of its graph. */
int64_t sequence_extent(const Sequence *sequence, Dim dim);
/* Items of one of its tensors. */
int64_t sequence_items(const Sequence *sequence, const Tensor *tensor);

/* --- random_inputs.c */
typedef struct RandomInputs {
    uint64_t seed;
    const char *key;    /* the same key and index give the same numbers */
    int64_t index;
    bool only_required; /* without inputs that may be absent */
    bool all_visible;   /* masks hide nothing */
    bool has_prefix;    /* prefix_length is `prefix`, not drawn */
    int64_t prefix;
    void (*alter)(void *with, float *numbers, int64_t count); /* real numbers, after they were drawn; or NULL */
    void *with;
} RandomInputs;

/* Sets the lengths that the graph leaves open: of the rows, and of their source or keys. */
void sequence_lengths(const Graph *graph, Sequence *sequence, int64_t rows, int64_t source);
/* Adds an array for each input of the graph to a sequence whose lengths are set. */
void sequence_fill(Arena *arena, const Graph *graph, Sequence *sequence, const RandomInputs *how);

/* --- batch.c */
/* `inputs` are NAME=F.npy; checked against the graph: names, kinds, shapes, ids, masks of ones then zeros. A value
 * without NAME= is an error of `usage`. */
Batch *batch_read(Arena *arena, const char *usage, const Graph *graph, const ValueNode *inputs);

/* What --out may name, "hidden, attention[.LAYER]": the graph's outputs, and maps that the spec does not export. */
const char *output_names(Arena *arena, const Module *module);
/* `outputs` are NAME=F.npy: a failure where the graph lacks one. */
void batch_check_outputs(Arena *arena, const char *usage, const Module *module, const ValueNode *outputs);
/* Rows at padding are zero. */
void batch_write(Arena *arena, const char *usage, const Module *module, const Batch *batch, const ValueNode *outputs);
/* Maps that `outputs` name and the spec does not export are turned on; or all of them. */
void model_turn_on(Model *model, const ValueNode *outputs);
void model_turn_on_all(Model *model);

/* Runs every sequence through the interpreter. */
void batch_interpret(Arena *arena, const Module *module, const Weights *weights, Batch *batch);

/* --- run.c */
/* Options of the commands that run a batch; NULL: not given. */
typedef struct RunOptions {
    const char *weights, *engine, *target, *cc, *threads;
    bool verbose;
    bool interpreted;  /* set by run_check, as is */
    int thread_count;
} RunOptions;

void run_check(RunOptions *run, const char *usage); /* a usage error where one is missing or wrong */
/* Loads the weights and sets each sequence's outputs, in the interpreter or compiled. */
void run_batch(Arena *arena, const Module *module, const RunOptions *run, Batch *batch);

/* --- batch.c */
/* Splits NAME=VALUE; a missing `=` is a usage error. */
const char *split_assignment(Arena *arena, const char *usage, const char *option, const char *text, char **name);

#endif
