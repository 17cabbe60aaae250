/* check.h: compares compiled C with the interpreter: test cases, calls between guard pages, bounds, and the search for
 * the first wrong tensor. */
#ifndef CHECK_H
#define CHECK_H

#include "../engine/decoder.h"
#include "../engine/denormals.h"
#include "../engine/engine.h"
#include "../engine/guard.h"

enum { ALL_WANTED = (1 << OUT_COUNT) - 1 };

/* The outputs of one call by their OutputRole, NULL for outputs that were not wanted or do not exist. */
typedef struct CheckRun {
    float *arrays[OUT_COUNT];
    int64_t items[OUT_COUNT];
    Guard *guards[OUT_COUNT + 1]; /* around the outputs and the workspace, only while the call runs */
    const char *complaint; /* describes a status, a write outside of the memory or a crash; or NULL */
} CheckRun;

typedef struct Case {
    const char *name;
    Batch *batch; /* with the interpreter's outputs */
    const Batch *known; /* the same sequences with the outputs of all passes */
    CheckRun run; /* the call in one thread with every output wanted */
    OutputArray **exact; /* of each sequence, by exact_interpret; or NULL */
} Case;

enum { MOST_CASES = 40 };

/* How the spread of an output is measured: by `runs` interpretations whose intermediate results are randomly moved
 * `steps` roundings each. The spread is the largest movement of the output divided by `steps`. More than one step makes
 * it more likely that a jump is met, for instance in a softmax whose largest scores differ by a rounding. */
typedef struct Rounded {
    int runs;
    double steps;
} Rounded;

typedef struct Cases {
    Arena *arena;
    const char *path, *only; /* the spec's path, for messages; the name of the only case, or NULL */
    const int64_t *lengths;  /* lengths to check in place of the usual ones, or NULL */
    int n_lengths;           /* at most MOST_CASES */
    bool small, brief; /* brief: leaves out the batch with more rows than a chunk, which takes as long as all others */
    Rounded rounded;     /* measures the spread, which widens the bounds; 0 runs: the fixed bound alone */
    RandomInputs inputs; /* its `alter` is applied to the inputs of all cases */
    uint64_t seed;
    const Module *reference; /* the module for the interpreter, which exports every attention map */
    const Weights *weights;
    Case known[MOST_CASES];
    int n_known;
    Case list[MOST_CASES]; /* the cases of this pass: of the spec as it is, or with every attention map */
    int count;
} Cases;

/* --- cases.c: makes the list of cases for the engine of a pass. */
void cases_make(Cases *cases, const Engine *engine, bool maps);
/* A batch of one sequence with `rows` rows and `source` rows of the source, or with the bound of the model where that
 * is smaller or exact. The interpreter's outputs are not computed. */
Batch *case_of_rows(Arena *arena, const Cases *cases, const Engine *engine, const char *name, int64_t rows,
                    int64_t source);
/* Sets the interpreter's outputs of a case of a model that quantizes rows, going on from those of each sequence, by the
 * tensors of the engine's graph. Other models have theirs by cases_make. */
void case_interpret(Cases *cases, const Engine *engine, Case *one, QuantizedRows *const *rows, QuantizeReport *report);

typedef struct Difference {
    int64_t elements, bad;  /* numbers that were compared, and those outside the bound */
    double most, allowed;   /* the largest |a-b| and the bound, for the array that is nearest to its bound */
    double share;           /* most / allowed */
    int64_t ulps;           /* the largest distance, counted in f32 numbers */
    int64_t row, column;    /* of the first number outside the bound */
    double got, want;
} Difference;

/* --- compare.c */
/* Compares got [rows][stride] with want [rows][columns]. The bound for |a-b| is 2e-5 * (1 + max |b|), or 8 times the
 * spread when that is more. An infinity must be the same infinity, and NaN must be NaN. */
void check_compare(Difference *difference, const float *got, int64_t stride, const double *want, int64_t rows,
                   int64_t columns, double spread);
/* Whether all bits are the same, except that any two NaNs are equal: the C compiler chooses which NaN a sum of two
 * keeps. */
bool check_same_bits(const float *a, const float *b, int64_t count);
/* A hash in which all NaN are one; it goes on from that of other numbers, seed 0 begins. */
uint64_t check_bits(uint64_t seed, const float *a, int64_t count);
/* Raises the spread of each output of `forward` to the largest movement of its numbers, which is infinite when a number
 * changes to or from an infinity or NaN; `still` is the interpretation that nothing moves. Raises `spreads`, unless it
 * is NULL, in the same way for each tensor that an op quantizes or rounds. */
void check_spread(const Module *module, const Weights *weights, const Sequence *sequence, const QuantizedRows *rows,
                  Rounded how, const Interpretation *still, OutputArray *outputs, double *spreads);
/* The output of the graph `of` that is output `output` of another graph of the model. A layer with several attentions
 * has several maps, in the same order. */
int check_same_output(const Graph *of, const Graph *graph, int output);
/* The spread as a share of 1 + max |b|. Above MOST_SPREAD a comparison shows nothing. */
double check_spread_share(const OutputArray *output);
#define MOST_SPREAD 1e-2

/* --- exact.c: the bits of reproducible C, whose program has another arithmetic than FREE. */
void exact_interpret(Arena *arena, const Engine *engine, const Weights *weights, Case *one); /* sets `exact` once */
/* Describes the first number of the case's run that has other bits than the interpreter's, and sets *output; or returns
 * NULL. */
const char *exact_case(Arena *arena, const Engine *engine, const Case *one, OutputRole *output);
/* The index in want [rows][columns] of the first number with other bits in got [rows][stride]; -1: there is none. */
int64_t exact_difference(const float *got, int64_t stride, const double *want, int64_t rows, int64_t columns);

/* --- constant.c: a comparison of outputs that do not depend on the inputs shows nothing. */
/* Whether two rows of some input differ, in any of the batches; masks and lengths of prefixes do not count. With
 * `of_source` only those of the source or of the keys count. */
bool check_inputs_differ(const Graph *graph, const Batch *const *batches, int n, bool of_source);
/* Describes an output of the interpreter whose rows, but for maps, are equal as f32 in all sequences of all cases,
 * although the inputs differ; or returns NULL. One sequence, one token and rows of one number have no such output. */
const char *check_constant(Arena *arena, const Cases *cases, const Graph *graph);

/* --- call.c */
/* Runs a batch with the threads that the engine's `call` has, with all memory on a `side` of its pages. Inputs are
 * read-only; outputs and workspace hold NaN at first. Bit i of `wanted` requests output i. Results are in `arena`. */
void check_call(Arena *arena, Engine *engine, const Batch *batch, unsigned wanted, GuardSide side, CheckRun *run);
/* Describes a write beside an output or the workspace, or returns NULL; only while the call runs. */
const char *check_damage(Arena *arena, const CheckRun *run);
/* Sets the target and the threads of later calls; `pool` and `parallel_for` are those of NAME_options. Even the
 * smallest steps are divided among the threads. */
void check_set(Engine *engine, const char *target, int threads, void *pool,
               void (*parallel_for)(void *pool, int count, void (*task)(void *with, int index), void *with));

/* --- decode.c: appends a text of n rows to states in many ways. */
typedef struct DecodeCheck DecodeCheck;

/* The results of one thread, which other numbers of threads must repeat; NULL at first, then in the arena of the first
 * call. */
typedef struct DecodeBits {
    const float *hidden, *logits;
} DecodeBits;

/* `rounded` is that of Cases; check_decode_spread returns the largest spread of an output, as a share. */
DecodeCheck *check_decode_new(Arena *arena, const Module *reference, const Weights *weights, int64_t n, int64_t seed,
                              Rounded rounded);
double check_decode_spread(const DecodeCheck *check);
/* The inputs of a call that appends *length rows of the text, from row `from` on, to the state *slot. A fork has other
 * tokens and other numbers than the text. It gives its numbers of the sequence again, which a state with rows must not
 * read. */
DecoderRows check_decode_rows(const DecodeCheck *check, bool fork, int64_t from, const int *slot,
                              const int32_t *length);
/* Describes what is wrong, or returns NULL; sets the differences from the interpreter's pass over the whole text, which
 * are zeros before. */
const char *check_decode(DecodeCheck *check, Arena *arena, Engine *engine, GuardSide side, DecodeBits *bits,
                         Difference *hidden, Difference *logits);

uint64_t check_decode_bits(const DecodeCheck *check, uint64_t seed, const DecodeBits *bits); /* check_bits of both */

/* The same for the attention maps of two calls; the engine's module exports them. */
const char *check_decode_maps(DecodeCheck *check, Arena *arena, Engine *engine, GuardSide side, Difference *self,
                              Difference *cross);

/* --- checks.c: the comparisons of a pass, and their results so far. */
typedef struct Checks {
    Arena *arena;
    Cases *cases;
    Engine *engine;
    Engine *ranks;      /* the same model, divided among ranks, which must give the same bits; or NULL */
    const void *packed; /* the mapped weights */
    Guard *weights;     /* the copy of them that calls read */
    GuardSide side; /* where the memory of the calls stands */
    DecodeCheck *decode; /* NULL: states are not checked */
    int thread_counts[2], n_thread_counts; /* in addition to one thread */
    struct attn_pool *pools[2];
    uint64_t *bits;           /* check_bits of every output of every case on the target that runs; NULL: not hashed */
    int64_t compared, off;    /* numbers that were compared, and failures */
    int64_t calls;            /* the number that checks_denormals has made */
    QuantizeReport quantized; /* of the rows that the target has quantized */
    const char *first_target; /* where the first failure was */
    const Case *first_case;   /* NULL: in rows appended to states */
    int first_threads;
    GuardSide first_side;
    /* Called for each output of a case with its difference, and for anything else that is wrong. */
    void (*row)(void *with, const char *target, const char *name, const char *output, const Difference *d);
    void (*trouble)(void *with, const char *target, const char *name, const char *output, const char *text);
    void *with;
} Checks;

void checks_begin(Checks *checks, Arena *arena, Engine *engine); /* begins a pass, which `arena` must outlive */
void checks_run(Checks *checks, const char *target);
void checks_states(Checks *checks, const char *target);
void checks_state_maps(Checks *checks, const char *target);

/* Tells `trouble` of a case, and counts it as a failure. */
void checks_fail(Checks *checks, const char *target, const Case *one, const char *output, const char *text,
                 int threads);

/* --- denormals.c: calls of 1 to 33 rows and rows appended to states, in one thread. A call that makes or reads a
 * denormal number has failed, which `trouble` reports. Results are not compared. */
void checks_denormals(Checks *checks, const char *target);

/* --- first.c: runs a batch step by step and describes the first tensor that is outside the bound; NULL when there is
 * none. */
const char *check_first(Arena *arena, Engine *engine, const Weights *weights, const char *target, const Batch *batch,
                        GuardSide side);

#endif
