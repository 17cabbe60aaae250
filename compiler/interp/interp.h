/* interp.h: inputs and outputs of the interpreter. Included by attnc.h alone. */
#ifndef INTERP_H
#define INTERP_H

typedef struct InputArray {
    InputRole role;
    Dtype dtype; /* DTYPE_I64 for ids, DTYPE_F32 for features, DTYPE_U8 for a mask */
    int64_t rows; /* the first dimension */
    const void *data;
} InputArray;

typedef struct OutputArray {
    OutputRole role;
    int layer;
    Shape shape;
    const double *data;
    double spread; /* largest movement of the numbers by rounding, set by check_spread; else 0 */
} OutputArray;

typedef struct Interpretation {
    OutputArray *outputs; /* for each output of the graph, in its order */
    int n_outputs;
    const double **tensors; /* the numbers of each tensor of the graph, or NULL if they are not doubles */
} Interpretation;

/* symbols[s - 1] is the value of symbol s. An input that is missing or has the wrong length is a failure that names
 * it. */
Interpretation *interpret(Arena *arena, const Module *module, const Graph *graph, const Weights *weights,
                          const InputArray *inputs, int n_inputs, const int64_t *symbols);
/* What stands in front of the codes of a row that C has rounded; they begin ROW_HEAD bytes behind the row's begin. */
typedef struct RowHead {
    float scale, zero; /* the zero point is a whole number from 0 to 255 */
} RowHead;

/* The rows of an OP_quantize as C has them, a RowHead and codes of 0 to 255, or those of an OP_round, whose numbers are
 * f32. `data` is NULL for other tensors. */
typedef struct QuantizedRows {
    const uint8_t *data;
    int64_t stride; /* bytes from row to row */
} QuantizedRows;

/* Of integers, and of numbers in bf16, that lie so near the middle. Neighbours in f16 are 8 times nearer to each other
 * than those in bf16, so that the same error in f32 makes 8 times as many ties. */
#define SHARE_OF_TIES 0.001

/* How such rows compare with the numbers that they stand for. A tie lies so near the middle of two integers, or of two
 * neighbours of a float type, that f32 may round it to either, and has become the one that the interpreter's number
 * does not. A tie of the same two numbers, which equal rows and clipped rows hold many times, is counted once. */
typedef struct QuantizeReport {
    int64_t numbers, ties, wrong;
    uint64_t seen[64]; /* hashes of ties, at their last bits or the next place that was free; 0 is free */
    double most_ties; /* of these numbers: the sum of their types' shares */
    const char *tensor; /* the first one with a wrong number, or NULL */
} QuantizeReport;

/* As interpret, in another way. With `steps`, the result of every op is rounded to f32 in a direction that the seed
 * determines, or moved `steps` times as far. The movement of the outputs shows the precision that f32 can give; larger
 * steps reach discontinuities that are farther away. The sums of linear and of scores are rounded at the magnitude of
 * their terms. If f32 may overflow in partial sums, a sum, a mean and a weighted sum of values are NaN, and the sum of
 * squares of a norm or of l2 is infinite. */
typedef struct InterpretHow {
    const double *const *states; /* the rows of each state before the call, or NULL where a state has none */
    const QuantizedRows *rows;   /* for each tensor, from which the graph goes on in place of its own; or NULL */
    QuantizeReport *report;      /* is added to where `rows` are given, unless it is NULL */
    const double *spreads;       /* how far rounding moves the numbers of each tensor, which the report allows 8 times
                                  * as far; or NULL */
    uint64_t seed;               /* with `steps` */
    double steps;                /* 0: results are not moved */
    Arithmetic arithmetic;       /* FREE: in double; else in f32, with the bits of reproducible C */
} InterpretHow;

Interpretation *interpret_as(Arena *arena, const Module *module, const Graph *graph, const Weights *weights,
                             const InputArray *inputs, int n_inputs, const int64_t *symbols, const InterpretHow *how);

/* --- interp/quantize.c: the numbers that a row of k stands for in I8 or BF16, as OP_quantize and OP_round round it, or
 * in F32. */
void row_in(Dtype dtype, const double *x, int64_t k, double *out);

/* --- interp/session.c: runs `decode`, which appends rows to a state, and `encode`, which computes the source of the
 * state. */
typedef struct Session Session;

/* The session must be freed before the arena. */
Session *session_new(Arena *arena, const Module *module, const Weights *weights);
void session_free(Session *session);
int64_t session_rows(const Session *session);
/* Encodes a source of `rows` rows, and empties the state. */
Interpretation *session_encode(Arena *arena, Session *session, const InputArray *inputs, int n_inputs, int64_t rows);
/* Appends `rows` rows to the state. All rows of a prefix are in the first call, and later calls give the same length.
 * Interpretation.tensors is NULL for the tensors that the state held before. */
Interpretation *session_decode(Arena *arena, Session *session, const InputArray *inputs, int n_inputs, int64_t rows);
/* Later calls go on from these rows of the graphs encode and decode, as InterpretHow states. */
void session_adopt(Session *session, const QuantizedRows *encode, const QuantizedRows *decode, QuantizeReport *report);
void session_arithmetic(Session *session, Arithmetic arithmetic); /* of later calls, as InterpretHow states */
void session_copy(Session *to, const Session *from);
void session_rewind(Session *session, int64_t rows); /* keeps the first `rows` rows */

#endif
