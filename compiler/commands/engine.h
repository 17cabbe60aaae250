/* engine.h: generated C, compiled and loaded into this process. */
#ifndef ENGINE_H
#define ENGINE_H

#include "batch.h"

/* The struct of driver.c.tmpl, field for field. */
typedef struct DriverCall {
    const char *target;
    int threads;
    void (*parallel_for)(void *pool, int count, void (*task)(void *with, int index), void *with);
    void *pool;
    size_t least_work;
    const void *weights;
    size_t weights_bytes;
    int batch;
    const int32_t *lengths, *source_lengths, *tokens, *segments, *source, *target_ids, *prefix_lengths;
    const float *features, *pixels, *query, *key, *value;
    const unsigned char *mask;
    float *hidden, *pooled, *logits, *encoder_hidden, *context, *attention, *encoder_attention, *cross_attention;
    void *const *states, *const *sources;
    void *workspace;
    size_t workspace_bytes;
    const char *picked;
} DriverCall;

/* An array of a call, by the name that graph and command line have for it. */
typedef struct CallField {
    const char *name;
    size_t at; /* in DriverCall */
} CallField;

enum { CALL_INPUTS = 11, CALL_OUTPUTS = 8 };

extern const CallField call_inputs[CALL_INPUTS], call_outputs[CALL_OUTPUTS];

void *call_get(const DriverCall *call, CallField field);
void call_set(DriverCall *call, CallField field, const void *array);
int call_output(const char *name); /* its place in call_outputs */

typedef struct EngineOptions {
    const char *target;  /* NULL or native: the best one of this machine */
    const char *const *targets; /* the code has these; without any, `target` or all of this processor */
    int n_targets;
    const char *cc;      /* NULL: $CC, or the first of clang, gcc, cc */
    int threads;
    bool load;             /* weights in memory of their own, as attn_load_file has them; else a map */
    bool or_interp;        /* the command has --engine interp too: said where there is no compiler */
    const char *run;       /* a command that runs the code where this program is not; NULL: it is loaded here */
    const char *level;     /* of the compiler's optimization, the same bits at each; NULL: -O2 */
    bool strict;           /* its warnings are errors */
    const char *emitted_c; /* this C in place of a fresh emission; NULL: none */
    const Weights *embedded; /* these stand in the C, and are taken from there; NULL: none */
} EngineOptions;

typedef struct Remote Remote;

/* The functions of the library that the code was made; NULL where the model has none such. */
typedef struct Loaded {
    int (*init)(DriverCall *call);
    int (*forward)(const DriverCall *call);
    int (*encode)(const DriverCall *call);
    int (*decode)(const DriverCall *call);
    int (*state_init)(void *state, size_t bytes, const void *source);
    int (*state_copy)(void *to, const void *from);
    int (*state_rewind)(void *state, int rows);
    const char *(*text)(int status);
} Loaded;

typedef struct Engine {
    Arena *arena;
    const Module *module;
    const Program *program;
    const Plan *plan; /* the forward one */
    Emitted emitted;
    DriverCall call;
    size_t input_bytes[CALL_INPUTS], output_bytes[CALL_OUTPUTS]; /* of the arrays that are bound; 0: none */
    double compile_seconds;
    size_t workspace_bytes;
    bool given_c;
    void *library;   /* with the code, and its functions */
    Loaded loaded;
    Remote *remote; /* with options.run: what has the code instead */
} Engine;

/* Emits, compiles (cc -std=c11 -O2), packs the weights and loads all of it. A target that this machine lacks is a
 * failure with exit 3. */
Engine *engine_new(Arena *arena, const Module *module, const Weights *weights, const EngineOptions *options);
/* Its three parts: plans and emits; compiles several, of different names, into one library, which is loaded until the
 * arena ends; packs the weights and begins, which may be done again, with others. */
Engine *engine_write(Arena *arena, const Module *module, const EngineOptions *options);
void engines_compile(Arena *arena, Engine *const *engines, int n, const EngineOptions *options);
void engine_load(Arena *arena, Engine *engine, const Weights *weights, const EngineOptions *options);
/* Runs a batch in one call and sets each sequence's outputs. */
void engine_run(Arena *arena, Engine *engine, Batch *batch);
/* Rows of a sequence, and of its source or keys (0 where there is none). */
int64_t engine_rows(const Engine *engine, const Sequence *sequence);
int64_t engine_source_rows(const Engine *engine, const Sequence *sequence);
/* The inputs of a batch in the form that the code takes, and room for its outputs; for timing calls one after
 * another. */
void engine_bind(Arena *arena, Engine *engine, const Batch *batch);
void engine_forward(Engine *engine);

/* Its functions, wherever they are; 0 or a status. init: again, after another target, thread count or pool was set.
 * States and sources are the caller's memory, or known by its address where the code is elsewhere. */
int engine_init(Engine *engine);
int engine_call(Engine *engine); /* forward, with what is bound, whatever its status */
int engine_encode(Engine *engine, const DriverCall *call);
/* `bytes` of each output, in the order of call_outputs. */
int engine_decode(Engine *engine, const DriverCall *call, const size_t *bytes);
int engine_state_init(Engine *engine, void *state, const void *source);
int engine_state_copy(Engine *engine, void *to, const void *from);
int engine_state_rewind(Engine *engine, void *state, int rows);
const char *engine_text(const Engine *engine, int status);

/* Of a target of its processor. */
bool machine_has(const char *target);

/* Runs a program and waits; its stderr passes through. Returns its exit status, -1 when it cannot be started. */
int run_program(const char *const *argv);

#endif
