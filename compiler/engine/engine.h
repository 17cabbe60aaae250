/* engine.h: compiles the generated C of a model and loads it into this process, or runs it through remote.h. */
#ifndef ENGINE_H
#define ENGINE_H

#include "batch.h"
#include "remote.h"
#include "team.h"

typedef struct EngineOptions {
    const char *target;  /* NULL or native: the best target of this machine */
    const char *const *targets; /* those in the code; with n_targets 0, `target` or all of this processor */
    int n_targets;
    const char *cc;      /* the C compiler, as cc_find takes it */
    int threads;
    bool load;             /* weights are read into memory by attn_load_file; otherwise the file is mapped */
    bool or_interp;        /* the command also has --engine interp: a message suggests it */
    const char *run;       /* a command that runs the code on another machine; NULL: the code is loaded here */
    const char *level;     /* the optimization level, which changes no bits; NULL: -O2 */
    bool strict;           /* warnings of the C compiler are errors */
    const char *emitted_c; /* C that is compiled in place of a fresh emission; or NULL */
    bool emulate;            /* functions in C compute the tiles of AMX */
    const Weights *embedded; /* weights that are embedded in the C and read from there; or NULL */
} EngineOptions;

/* The functions of the loaded library; NULL for functions that the model does not have. */
typedef struct Loaded {
    int (*init)(DriverCall *call);
    int (*entries[ENTRY_COUNT])(const DriverCall *call);
    int (*state_init)(void *state, size_t bytes, const void *source);
    int (*state_copy)(void *to, const void *from);
    int (*state_rewind)(void *state, int rows);
    const char *(*text)(int status);
} Loaded;

typedef struct Engine {
    Arena *arena;
    const Module *module;
    const Program *program;
    const Plan *plan; /* of forward */
    Emitted emitted;
    DriverCall call;
    size_t input_bytes[MOST_INPUTS], output_bytes[OUT_COUNT]; /* sizes of the bound arrays; 0: no array */
    double compile_seconds;
    bool given_c;
    bool watches;       /* calls add to `denormals` what denormals_seen says behind them */
    unsigned denormals;
    void *library;   /* the handle of dlopen */
    Loaded loaded;  /* the functions in it */
    Remote *remote; /* the program that runs the code with options.run; else NULL */
    Team *team;     /* the ranks of a divided model; else NULL */
} Engine;

/* Emits the C of a spec at STAGE_REWRITE or later, compiles it (cc -std=c11 -O2), packs the weights and loads both. A
 * target that this machine lacks is a failure with exit 3. */
Engine *engine_new(Arena *arena, const Compilation *spec, const Weights *weights, const EngineOptions *options);
/* The three parts of engine_new. engine_write plans and emits. engines_compile compiles engines of models with
 * different names into one library, which stays loaded until the arena is freed. engine_load packs the weights and
 * initializes the model; it may be called again with other weights. */
Engine *engine_write(Arena *arena, const Compilation *spec, const EngineOptions *options);
void engines_compile(Arena *arena, Engine *const *engines, int n, const EngineOptions *options);
void engine_load(Arena *arena, Engine *engine, const Weights *weights, const EngineOptions *options);
/* Runs a batch in one call and sets each sequence's outputs. */
void engine_run(Arena *arena, Engine *engine, Batch *batch);
/* The rows of a sequence, and the rows of its source or keys (0 without a source or keys). */
int64_t engine_rows(const Engine *engine, const Sequence *sequence);
int64_t engine_source_rows(const Engine *engine, const Sequence *sequence);
/* Converts the inputs of a batch to the form that the code takes, and allocates its outputs. engine_forward then runs
 * the batch any number of times. */
void engine_bind(Arena *arena, Engine *engine, const Batch *batch);
void engine_forward(Engine *engine);

/* The bytes of workspace that a call of the entry takes in that many threads. */
size_t engine_workspace(const Engine *engine, EntryKind entry, int threads);
void *engine_memory(Arena *arena, size_t bytes); /* of attn_alloc, and freed with the arena */

/* The functions of the model, loaded or remote. They return 0 or a status. engine_init is called again after a change
 * of target, thread count or pool. States and sources are memory of the caller, or only names for memory of the remote
 * program. */
int engine_init(Engine *engine);
int engine_call(Engine *engine); /* forward on the bound batch; any status is returned */
/* Runs encode or decode; `bytes[role]` is the size of the output of that OutputRole, of which encode has none. */
int engine_entry(Engine *engine, EntryKind entry, const DriverCall *call, const size_t *bytes);
/* call.on_step may call it: the bytes at `at`, of the workspace or of an output, become those of the running code,
 * which are elsewhere with options.run. */
void engine_see(Engine *engine, void *at, size_t bytes);
/* Changes a state: 's' sets it up over the source `from`, which may be NULL, 'c' copies the state `from` to it, and 'r'
 * rewinds it to `rows`. */
int engine_state(Engine *engine, char how, void *state, const void *from, int rows);
const char *engine_text(const Engine *engine, int status);

#endif
