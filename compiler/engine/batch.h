/* batch.h: sequences that a model runs on, their inputs and their outputs. */
#ifndef BATCH_H
#define BATCH_H

#include "../attnc.h"

/* One sequence: the value of each symbol of the graph, and arrays for the graph's inputs, in the graph's order. */
typedef struct Sequence {
    int64_t symbols[4];
    InputArray inputs[MAX_GRAPH_INPUTS];
    int n_inputs;
    OutputArray *outputs; /* one for each output of the graph, set by the engine that ran the sequence */
} Sequence;

typedef struct Batch {
    bool batched;         /* the arrays in files have a batch dimension first */
    Sequence *sequences;
    int64_t count;
    int64_t padded[4];    /* the largest value of each symbol, to which arrays in files are padded */
} Batch;

/* The number of rows or columns that the sequence has in a dimension of its graph. */
int64_t sequence_extent(const Sequence *sequence, Dim dim);
/* The array for the input of that role, or NULL. */
const InputArray *sequence_input(const Sequence *sequence, InputRole role);
/* The number of elements that a tensor of the graph has for the sequence. */
int64_t sequence_items(const Sequence *sequence, const Tensor *tensor);

/* The part of an output that belongs to one sequence (and to one exported head of an attention map): `rows` times
 * `columns` numbers, which begin `offset` numbers after the beginning of the output's array. */
typedef struct Piece {
    OutputRole role;
    int output; /* index in the outputs of the graph */
    int64_t sequence, head, offset, rows, columns;
    const double *want; /* those of the sequence's outputs; NULL where it has none */
    double spread;      /* of this output of the sequence */
} Piece;

typedef struct Pieces {
    Piece *list; /* sequence by sequence */
    int64_t count;
} Pieces;

Pieces batch_pieces(Arena *arena, const Graph *graph, const Batch *batch);
int64_t output_items(const OutputArray *output); /* the number of its elements */
/* The outputs of an interpretation in another arena, with copies of their numbers. */
OutputArray *outputs_copy(Arena *arena, const Interpretation *from);
/* Interprets the graph `forward` of a module with the inputs of a sequence. */
Interpretation *sequence_interpret(Arena *arena, const Module *module, const Weights *weights, const Sequence *sequence,
                                   const InterpretHow *how);

/* The integers of an input as the C takes them, in 32 bits unless they are wide. */
const void *ids_packed(Arena *arena, const InputKind *kind, const int64_t *ids, int64_t count);
/* The ids in 32 bits. An id that does not fit is outside of every table, and becomes -1, which is outside, too. */
int32_t *ids_narrow(Arena *arena, const int64_t *ids, int64_t count);

/* --- random_inputs.c */
typedef struct RandomInputs {
    uint64_t seed;
    const char *key;    /* the same key and index give the same numbers */
    int64_t index;
    bool only_required; /* optional inputs are left out */
    bool all_visible;   /* masks are all ones */
    bool has_prefix;    /* prefix_length is `prefix`; otherwise it is drawn */
    int64_t prefix;
    void (*alter)(void *with, float *numbers, int64_t count); /* changes drawn real numbers; or NULL */
    void *with;
} RandomInputs;
/* The range from which the integers of an input are drawn; -1 to 3 where the input states none. */
void drawn_range(const Graph *g, const GraphInput *input, int64_t *least, int64_t *most);
/* Draws `count` of them, in runs of equal ones or scattered. */
void draw_integers(uint64_t stream, const Graph *g, const GraphInput *input, int64_t count, int64_t *out);
/* Draws numbers of a real input from its range, or from a normal distribution where the input states none. */
void draw_reals(uint64_t seed, const char *key, const GraphInput *input, int64_t count, float *out);
/* Draws integers in runs from the least on upwards, or in the reverse order. */
void draw_sorted(uint64_t stream, const Graph *g, const GraphInput *input, int64_t count, bool down, int64_t *out);
/* The numbers of draw_reals from the least on upwards, or in the reverse order. */
void draw_sorted_reals(uint64_t seed, const char *key, const GraphInput *input, int64_t count, bool down, float *out);

/* Sets the symbols of a sequence: its rows, and the rows of its source or keys. */
void sequence_lengths(const Graph *graph, Sequence *sequence, int64_t rows, int64_t source);
/* Adds an array for each input of the graph to a sequence whose lengths are set. */
void sequence_fill(Arena *arena, const Graph *graph, Sequence *sequence, const RandomInputs *how);

/* --- batch.c: runs every sequence through the interpreter and sets its outputs. */
void batch_interpret(Arena *arena, const Module *module, const Weights *weights, Arithmetic arithmetic, Batch *batch);

/* A .npy file that is read as an input or written from an output of that name. */
typedef struct NamedFile {
    const char *name, *path;
    int layer; /* the layer of an attention map; -1: no layer is named */
    bool whole; /* of an input of rows: of a whole text, which may have more rows than the other inputs */
    struct NamedFile *next;
} NamedFile;

/* --- batch_read.c: reads the inputs of a graph from files and checks their names, dtypes, shapes and ids. The file
 * attention_mask, a row of ones and then zeros for each sequence, sets the lengths of padded sequences. The array of a
 * `whole` file has as many rows as the file, padded or not. */
Batch *batch_read(Arena *arena, const Graph *graph, const NamedFile *files);

/* --- batch_write.c */
/* The names that --out takes, "hidden, attention[.LAYER]": outputs of the graph, and maps that the spec does not
 * export. */
const char *output_names(Arena *arena, const Module *module);
/* Fails when a file names an output that the graph lacks. */
void batch_check_outputs(Arena *arena, const Module *module, const NamedFile *files);
/* Writes each file as a batch of padded sequences; rows of padding are zeros. */
void batch_write(Arena *arena, const Module *module, const Batch *batch, const NamedFile *files);

#endif
