/* check.h: what the files of attnc check share: the cases, guarded calls, comparisons, and the search for the first
 * tensor that is off. */
#ifndef CHECK_H
#define CHECK_H

#include "engine.h"
#include "guard.h"

enum { ALL_WANTED = (1 << CALL_OUTPUTS) - 1 };

/* What one call gave: the arrays of call_outputs, NULL where not wanted or not there. */
typedef struct CheckRun {
    float *arrays[CALL_OUTPUTS];
    int64_t items[CALL_OUTPUTS];
    Guard *guards[CALL_OUTPUTS + 1]; /* while the call runs: around the outputs and the workspace */
    const char *complaint; /* of the call itself: a status, a write outside, a crash; NULL: none */
} CheckRun;

typedef struct Case {
    const char *name;
    Batch *batch; /* its sequences' outputs are the interpreter's */
    const Batch *known; /* the same with the outputs of every pass */
    CheckRun run; /* with one thread and every output wanted */
} Case;

enum { MOST_CASES = 40 };

/* Interpretations with rounded results, by whose spread outputs may differ. Of results that go `steps` times as far as
 * rounding goes, the spread is that part of what is seen: where outputs follow their causes it is the same, and jumps,
 * as of a softmax whose largest scores are equal but for rounding, are more likely to be met. */
typedef struct Rounded {
    int runs;
    double steps;
} Rounded;

typedef struct Cases {
    Arena *arena;
    const char *usage, *path, *only, *lengths_text; /* as the command line has them, or NULL */
    bool small, brief; /* brief: no batch of more rows than the workspace has, which takes as long as all others */
    Rounded rounded;     /* numbers of any size: bounds are what f32 can promise; else 0 runs */
    RandomInputs inputs; /* what is said here holds for the inputs of all cases */
    uint64_t seed;
    const Module *reference; /* what the interpreter runs: with every attention map */
    const Weights *weights;
    Case known[MOST_CASES];
    int n_known;
    Case list[MOST_CASES]; /* of this pass: the spec as it is, or with every attention map */
    int count;
} Cases;

/* --- check_cases.c: sets the list for the engine of a pass. */
void cases_make(Cases *cases, const Engine *engine, bool maps);

/* The numbers of one sequence in one output (of one head, for attention maps), and what the interpreter gives. */
typedef struct Piece {
    int array, output; /* of call_outputs; of the graph */
    int64_t sequence, head, offset, rows, columns;
    const double *want;
    double spread; /* of the output */
} Piece;

typedef struct Pieces {
    Piece *list; /* sequence by sequence */
    int64_t count;
} Pieces;

typedef struct Difference {
    int64_t elements, bad;  /* compared; outside the bound */
    double most, allowed;   /* largest |a-b|, and the bound, of the array nearest to its bound */
    double share;           /* most / allowed */
    int64_t ulps;           /* largest distance in f32 numbers */
    int64_t row, column;    /* of the first bad one */
    double got, want;
} Difference;

/* --- check_run.c */
Pieces check_pieces(Arena *arena, const Engine *engine, const Batch *batch);
/* got [rows][stride] against want [rows][columns]: |a-b| <= 2e-5 * (1 + max |b|), or 8 times the spread where that is
 * more; inf the same inf, NaN only NaN. */
void check_compare(Difference *difference, const float *got, int64_t stride, const double *want, int64_t rows,
                   int64_t columns, double spread);
/* The same bits, but that any NaN is any other: which of two a sum keeps is the C compiler's choice. */
bool check_same_bits(const float *a, const float *b, int64_t count);
/* Adds to the spread of each output of a graph: how far one of its numbers moves in such interpretations; inf where it
 * does not stay finite, or the same inf or NaN. */
void check_spread(const Module *module, const Graph *graph, const Weights *weights, const Sequence *sequence,
                  Rounded how, OutputArray *outputs);
/* As a share of 1 + max |b|, which must not pass MOST_SPREAD for the comparison to say anything. */
double check_spread_share(const OutputArray *output);
#define MOST_SPREAD 1e-2
/* One call in one thread or several, as the engine's `call` says, with everything on that `side` of its pages. Inputs
 * cannot be written; outputs and workspace begin as NaN. Bit i of `wanted`: output i is asked for. `run` lives in
 * `arena`. */
void check_call(Arena *arena, Engine *engine, const Batch *batch, unsigned wanted, GuardSide side, CheckRun *run);
/* While the call runs: a write beside an output or the workspace, in words, or NULL. */
const char *check_damage(Arena *arena, const CheckRun *run);
/* Sets target and threads of the calls that follow; `pool` and `parallel_for` as in NAME_options. The threads share
 * every step, however small. */
void check_set(Engine *engine, const char *target, int threads, void *pool,
               void (*parallel_for)(void *pool, int count, void (*task)(void *with, int index), void *with));

/* --- check_decode.c: a text of n rows appended to states in many ways. */
typedef struct DecodeCheck DecodeCheck;

/* What one thread gave, for other numbers of threads to meet; NULL at first. Lives in the arena of the first call. */
typedef struct DecodeBits {
    const float *hidden, *logits;
} DecodeBits;

/* `rounded` as in Cases; then check_decode_spread is the largest share of its outputs. */
DecodeCheck *check_decode_new(Arena *arena, const Module *reference, const Weights *weights, int64_t n, int64_t seed,
                              Rounded rounded);
double check_decode_spread(const DecodeCheck *check);
/* NULL, or what is wrong in words; the differences to the interpreter's whole pass come beside. */
const char *check_decode(DecodeCheck *check, Arena *arena, Engine *engine, GuardSide side, DecodeBits *bits,
                         Difference *hidden, Difference *logits);

/* The same for the attention maps of two calls, where the engine's module exports them. */
const char *check_decode_maps(DecodeCheck *check, Arena *arena, Engine *engine, GuardSide side, Difference *self,
                              Difference *cross);

/* --- check_compare.c: what a pass compares, and what came of it so far. */
typedef struct Checks {
    Arena *arena;
    Cases *cases;
    Engine *engine;
    const void *packed; /* its weights where they were mapped, and where calls read them */
    Guard *weights;
    GuardSide side; /* of the calls */
    DecodeCheck *decode; /* rows appended to states; NULL: not done */
    int thread_counts[2], n_thread_counts; /* beside one thread */
    struct attn_pool *pools[2];
    int64_t compared, off;    /* elements; rows of the table that failed */
    const char *first_target; /* of the first failure */
    const Case *first_case;   /* NULL: of rows appended to states */
    int first_threads;
    GuardSide first_side;
    /* Of a case: how far an output is off; what else is wrong. */
    void (*row)(void *with, const char *target, const char *name, const char *output, const Difference *d);
    void (*trouble)(void *with, const char *target, const char *name, const char *output, const char *text);
    void *with;
} Checks;

void checks_begin(Checks *checks, Arena *arena, Engine *engine); /* of a pass; `arena` must outlive it */
void checks_run(Checks *checks, const char *target);
void checks_states(Checks *checks, const char *target);
void checks_state_maps(Checks *checks, const char *target);

/* --- check_first.c: runs a batch step by step and says in words which tensor is the first that is off, and where; NULL
 * when every step is within the bound. */
const char *check_first(Arena *arena, Engine *engine, const Weights *weights, const char *target, const Batch *batch,
                        GuardSide side);

#endif
