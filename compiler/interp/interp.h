/* interp.h: what the interpreter takes and gives. Included by attnc.h, which has the types it stands on. */
#ifndef INTERP_H
#define INTERP_H

typedef struct InputArray {
    const char *name;
    Dtype dtype; /* DTYPE_I64 for ids, DTYPE_F32 for features, DTYPE_U8 for a mask */
    int64_t rows; /* of the first dimension that is a symbol or that the spec fixes */
    const void *data;
} InputArray;

typedef struct OutputArray {
    const char *name;
    int layer;
    Shape shape;
    const double *data;
    double spread; /* how far its numbers move under rounding, where that was asked for (check_spread); else 0 */
} OutputArray;

typedef struct Interpretation {
    OutputArray *outputs; /* one a graph output, in order */
    int n_outputs;
    const double **tensors; /* every tensor of the graph, or NULL; for finding the first one that is off */
    int64_t symbols[4];
} Interpretation;

/* rows[symbol - 1] gives each symbol's value; a failure names an input that is missing or has the wrong length. */
Interpretation *interpret(Arena *arena, const Module *module, const Graph *graph, const Weights *weights,
                          const InputArray *inputs, int n_inputs, const int64_t *symbols);
/* The same with every op's result rounded to f32, up or down as the seed says, the sums of linear and scores as
 * numbers of their terms' size: how far outputs move is what f32 can promise of them. Sums whose terms pass FLT_MAX
 * together are NaN, also those of means and of mixed values; squares of a norm or of l2 are infinite. Results that
 * go `steps` times as far meet jumps that are so much further away. */
Interpretation *interpret_rounded(Arena *arena, const Module *module, const Graph *graph, const Weights *weights,
                                  const InputArray *inputs, int n_inputs, const int64_t *symbols, uint64_t seed,
                                  double steps);
/* As `interpret`, for a graph with states: states[i] is what the graph's state i holds, NULL where nothing comes in. */
Interpretation *interpret_from(Arena *arena, const Module *module, const Graph *graph, const Weights *weights,
                               const InputArray *inputs, int n_inputs, const int64_t *symbols,
                               const double *const *states);

/* --- interp/session.c: a state that rows are appended to (Module.decode), and its source (Module.encode). */
typedef struct Session Session;

Session *session_new(Arena *arena, const Module *module,
                     const Weights *weights); /* session_free before the arena's end */
void session_free(Session *session);
int64_t session_rows(const Session *session);
/* A source of `rows` rows; what the state held before is gone. */
Interpretation *session_encode(Arena *arena, Session *session, const InputArray *inputs, int n_inputs, int64_t rows);
/* `rows` more rows behind those of the state. A prefix comes whole in the first call, and later calls name the same.
 * Interpretation.tensors of what the state held are NULL. */
Interpretation *session_decode(Arena *arena, Session *session, const InputArray *inputs, int n_inputs, int64_t rows);
void session_copy(Session *to, const Session *from);
void session_rewind(Session *session, int64_t rows); /* back to the first `rows` rows */

#endif
