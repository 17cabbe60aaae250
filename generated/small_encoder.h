/* small_encoder.h: encoder of 2 layers over at most 16 rows, d_model 32; model hash 891956682cd12f0a
 *
 * Made by attnc 0.1.0: attnc compile small_encoder.attn --target avx2
 * The output of attnc belongs to its user, without conditions. */
#ifndef SMALL_ENCODER_H
#define SMALL_ENCODER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#define SMALL_ENCODER_CAST(type, value) static_cast<type>(value)
#else
#define SMALL_ENCODER_CAST(type, value) ((type)(value))
#endif

enum {
    SMALL_ENCODER_ABI = 4,             /* version of the structs below */
    SMALL_ENCODER_LEAST_WORK = 65536,   /* default of small_encoder_options.least_work */
    SMALL_ENCODER_ALIGNMENT = 64       /* of weights and workspaces, in bytes */
};
#define SMALL_ENCODER_WEIGHTS_BYTES SMALL_ENCODER_CAST(size_t, 80896u) /* size of the .attnw */

/* Status of a call. All arguments are checked before anything is written. */
enum {
    SMALL_ENCODER_OK = 0,
    SMALL_ENCODER_BAD_ARGUMENT,    /* a null pointer, a wrong struct size, or a count out of range */
    SMALL_ENCODER_BAD_WEIGHTS,     /* damaged, or packed for another model, layout or version */
    /* the CPU has none of the instruction sets, lacks the requested one, or is big-endian */
    SMALL_ENCODER_NO_TARGET,
    SMALL_ENCODER_SHORT_WORKSPACE, /* the workspace is smaller than its macro says, or not aligned */
    SMALL_ENCODER_BAD_LENGTH,      /* a sequence is empty or longer than the model allows */
    SMALL_ENCODER_BAD_TOKEN        /* an id is out of range */
};
const char *small_encoder_status_text(int status);

/* Options of small_encoder_init; zeros are defaults. */
typedef struct small_encoder_options {
    size_t size;        /* sizeof(small_encoder_options) */
    const char *target; /* "avx2"; NULL: the best that this CPU has */
    int verify;         /* not 0: init also verifies the checksum of the weights */
    int threads;        /* threads of a call; 0 and 1: the caller's alone */
    /* calls task(with, i) once for each i below count, which is at most `threads`, and returns when all are done */
    void (*parallel_for)(void *pool, int count, void (*task)(void *with, int index), void *with);
    void *pool;
    /* a step with fewer multiply-adds than this runs in the caller's thread alone; results do not depend on it; 0:
     * SMALL_ENCODER_LEAST_WORK */
    size_t least_work;
    /* NULL, or a function for profiles. The thread that called the model calls it with i before step i of each chunk,
     * and with the number of steps after the last one, while no task runs. If several threads call the model, it must
     * be safe for them. SMALL_ENCODER_STEP_NAMES names the steps of forward; a step whose output is not wanted does
     * nothing. */
    void (*on_step)(void *watcher, int step);
    void *watcher;
} small_encoder_options;

/* Set by small_encoder_init and then only read: any number of threads may share a context, each with a workspace of its
 * own. */
typedef struct small_encoder_ctx {
    const float *weights;
    int target, threads;
    void (*parallel_for)(void *pool, int count, void (*task)(void *with, int index), void *with);
    void *pool;
    size_t least_work;
    void (*on_step)(void *watcher, int step);
    void *watcher;
} small_encoder_ctx;

/* `weights`: the bytes of a .attnw, aligned to SMALL_ENCODER_ALIGNMENT; they must outlive the ctx. `options` may be
 * NULL. */
int small_encoder_init(small_encoder_ctx *ctx, const void *weights, size_t bytes, const small_encoder_options *options);
const char *small_encoder_target(const small_encoder_ctx *ctx); /* the name of the target that init chose */

enum {
    SMALL_ENCODER_SEQ = 16,        /* most rows of a sequence */
    SMALL_ENCODER_HIDDEN_WIDTH = 32,
    SMALL_ENCODER_POOLED_WIDTH = 32,
    SMALL_ENCODER_LOGITS_WIDTH = 5,
    SMALL_ENCODER_ROWS = 256       /* rows of the workspace; a larger batch runs in chunks of whole sequences */
};
#define SMALL_ENCODER_WORKSPACE_BYTES(threads) (SMALL_ENCODER_CAST(size_t, 165120u) + \
    SMALL_ENCODER_CAST(size_t, threads) * SMALL_ENCODER_CAST(size_t, 768u))
#define SMALL_ENCODER_STEPS 19 /* steps of small_encoder_forward */
/* their names, to initialize an array of const char * */
#define SMALL_ENCODER_STEP_NAMES { \
    "embedding", "layer0_attention_query_key_value", "layer0_attention_attended", "layer0_attention_output", \
    "layer0_attention_norm_out", "layer0_ffn_up", "layer0_ffn_down", "layer0_ffn_norm_out", \
    "layer1_attention_query_key_value", "layer1_attention_attended", "layer1_attention_output", \
    "layer1_attention_norm_out", "layer1_ffn_up", "layer1_ffn_down", "layer1_ffn_norm_out", "pool", "classifier", \
    "copy_hidden", "copy_pooled"}

/* Sequences follow each other without padding; rows is the sum of their lengths. */
typedef struct small_encoder_input {
    size_t size;            /* sizeof(small_encoder_input) */
    int batch;              /* sequences, at least 1 */
    const int32_t *lengths; /* [batch] rows of each */
    const int32_t *tokens; /* [rows] ids, 0 to 63 */
} small_encoder_input;

/* Buffers for results. A result whose pointer is NULL is computed only if another one depends on it. */
typedef struct small_encoder_output {
    size_t size; /* sizeof(small_encoder_output) */
    float *hidden; /* [rows][32] */
    float *pooled; /* [batch][32] */
    float *logits; /* [batch][5] */
} small_encoder_output;

/* Runs the model on whole sequences. `workspace`: SMALL_ENCODER_WORKSPACE_BYTES(threads) bytes, aligned to
 * SMALL_ENCODER_ALIGNMENT, which no other call uses meanwhile. */
int small_encoder_forward(const small_encoder_ctx *ctx, const small_encoder_input *input, small_encoder_output *output,
    void *workspace, size_t bytes);

#define SMALL_ENCODER_HEADER 0x38c052dbu /* hash of this header, which small_encoder.c compares with its own */

#ifdef __cplusplus
}
#endif

#endif
