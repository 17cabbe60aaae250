/* quantize.h: chooses a precision for each matrix of a model, so that the model costs the least by the committed rates
 * and an output stays within a bound on calibration inputs.
 *
 * The choices are made for units: matrices whose rows are the same, and which the language gives one precision. All is
 * computed by the interpreter and in fixed orders, and nothing is timed, so that the result is the same everywhere. */
#ifndef QUANTIZE_H
#define QUANTIZE_H

#include "../check/measure.h"
#include "../restate/restate.h"

typedef struct Choice {
    const char *name; /* as --precision takes it */
    Precision precision;
} Choice;

/* The first is the default of an output without logits. */
typedef enum ErrorKind { ERROR_COS, ERROR_KL, ERROR_REL } ErrorKind;

typedef struct QuantizeTask {
    const Choice *choices; /* in the order in which equal ones are preferred */
    int n_choices;
    OutputRole output;
    ErrorKind kind;
    double bound;
} QuantizeTask;

/* The rows that some products of the f32 model read, and what is known of them from calibration. */
typedef struct RowSet {
    int64_t k;
    int64_t seen, stride; /* rows, of which each `stride`-th is kept */
    float *kept;          /* [n_kept][k] */
    int64_t n_kept, room;
    float *most;           /* [k]: the largest magnitude of each column */
    const float **vectors; /* [n_choices]: the vector [k] that smooths the rows; NULL for a choice that smooths none */
} RowSet;

/* A matrix of the f32 model: of a product, or a table whose rows are looked up (and which may be a tied head too). */
typedef struct Matrix {
    int weight; /* in the f32 model's table */
    int unit;
    int set;        /* NO_ROWS: of a table that no product reads */
    bool looked_up; /* never smoothed */
    double rows;    /* that a call multiplies by it, the mean of the calibration; 1 where a decoder goes step by step */
    double share;   /* of the matrices of experts, those that such a call reads; 1 of others */
    double looked;  /* rows of a table that a call looks up */
    const float **rounded;    /* [n_choices]: the numbers of each choice, or NULL before they are needed */
    const Scaling *scaling;   /* [n_choices] */
} Matrix;
enum { NO_ROWS = -1 };

typedef struct Quantization {
    Arena *arena;
    const QuantizeTask *task;
    Source *source;
    const Compilation *f32; /* at STAGE_REWRITE, with all precisions f32 */
    const Weights *weights;
    const Batch *batch;
    const float **reference; /* of each sequence: the output in f32 */
    Unit *units;
    int n_units;
    Matrix *matrices;
    int n_matrices;
    RowSet *sets;
    int n_sets;
    double *cost, *error; /* [n_units][n_choices]: picoseconds of a call; squares of the products' relative errors */
    int *chosen;          /* [n_units]: a choice, or -1 for a unit without matrices */
    int64_t worst;        /* the sequence with the largest error of the last model */
    double reached;       /* the largest error of a row with them */
    bool kept;            /* the bound; else no choice keeps it, and `chosen` are the most accurate ones */
} Quantization;

/* --- quantize/chosen.c */
/* Sets the precision of each unit that has a choice; of the others that of most matrices. */
void units_set(const Quantization *q, const Unit *units, const int *chosen);
int units_most(const Quantization *q, const int *chosen); /* the choice of most units */
/* Fails for a spec that states a precision, and reports the place of each. */
void refuse_stated(const Compilation *spec);

/* --- quantize/calibrate.c: runs the f32 model, and keeps what choices are judged by. */
void calibrate(Quantization *q);

/* --- quantize/local.c: the error that a choice makes in the products of a unit, and the vectors that smooth rows. */
void local_errors(Quantization *q);
/* The vector that smooths the rows of the matrix in a choice, or NULL. */
const float *vector_in(const Quantization *q, const Matrix *matrix, int choice);
/* Whether two choices for a unit give the same model. */
bool same_model(const Quantization *q, int unit, int a, int b);
/* The numbers of a matrix in a choice, and their scaling. */
const float *matrix_rounded(Quantization *q, Matrix *matrix, int choice);

/* --- quantize/evaluate.c: the largest error of the output's rows over each `stride`-th sequence, or one above the
 * limit where there is one. The sequence with the largest one comes first at the next call. */
double model_error(Quantization *q, const int *chosen, int64_t stride, double limit);
Compilation chosen_spec(Arena *arena, const Quantization *q, const int *chosen); /* at STAGE_REWRITE */
/* The numbers of a vector of the model with these choices, given by its place in that table. */
const float *chosen_vector(const Quantization *q, const WeightTable *table, int weight, const int *chosen);

/* --- quantize/search.c: sets `chosen`; false where no choice keeps the bound, and `reached` is then what the most
 * accurate one has. */
bool search_choices(Quantization *q);
void tidy_choices(Quantization *q); /* gives units that of most where both give the same model */
double total_cost(const Quantization *q, const int *chosen);

/* --- quantize/run.c: all of it. The spec is at STAGE_REWRITE with every precision f32. */
Quantization *quantize(Arena *arena, Source *source, const Compilation *f32, const Weights *weights, const Batch *batch,
                       const QuantizeTask *task);
/* The text of the spec with `precision` lines for what is chosen. */
const char *quantized_text(const Quantization *q);
/* The vectors that the chosen model reads, by their names in it. */
const NamedTensor *quantize_vectors(Quantization *q, size_t *count);

#endif
