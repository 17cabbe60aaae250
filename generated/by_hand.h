/* by_hand.h: encoder of 1 layer over exactly 4 rows, d_model 6; model hash 15ddb4f768ecaee6
 *
 * Made by attnc 0.1.0: attnc compile by_hand.attn --target scalar
 * The output of attnc belongs to its user, without conditions. */
#ifndef BY_HAND_H
#define BY_HAND_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#define BY_HAND_CAST(type, value) static_cast<type>(value)
#else
#define BY_HAND_CAST(type, value) ((type)(value))
#endif

enum {
    BY_HAND_ABI = 4,             /* version of the structs below */
    BY_HAND_ALIGNMENT = 64       /* of weights and workspaces, in bytes */
};
#define BY_HAND_WEIGHTS_BYTES BY_HAND_CAST(size_t, 1344u) /* size of the .attnw */

/* Status of a call. All arguments are checked before anything is written. */
enum {
    BY_HAND_OK = 0,
    BY_HAND_BAD_ARGUMENT,    /* a null pointer, a wrong struct size, or a count out of range */
    BY_HAND_BAD_WEIGHTS,     /* damaged, or packed for another model, layout or version */
    BY_HAND_NO_TARGET,       /* the CPU has none of the instruction sets, lacks the requested one, or is big-endian */
    BY_HAND_SHORT_WORKSPACE, /* the workspace is smaller than its macro says, or not aligned */
    BY_HAND_BAD_LENGTH,      /* a sequence is empty or longer than the model allows */
    BY_HAND_BAD_TOKEN        /* an id is out of range */
};
const char *by_hand_status_text(int status);

/* Options of by_hand_init; zeros are defaults. */
typedef struct by_hand_options {
    size_t size;        /* sizeof(by_hand_options) */
    const char *target; /* "scalar"; NULL: the best that this CPU has */
    int verify;         /* not 0: init also verifies the checksum of the weights */
    /* threads of a call; 0 and 1: the caller's alone; this code runs on the caller's thread alone */
    int threads;
    /* calls task(with, i) once for each i below count, which is at most `threads`, and returns when all are done */
    void (*parallel_for)(void *pool, int count, void (*task)(void *with, int index), void *with);
    void *pool;
    size_t least_work; /* has no effect in this code */
    /* NULL, or a function for profiles. The thread that called the model calls it with i before step i of each chunk,
     * and with the number of steps after the last one, while no task runs. If several threads call the model, it must
     * be safe for them. BY_HAND_STEP_NAMES names the steps of forward; a step whose output is not wanted does
     * nothing. */
    void (*on_step)(void *watcher, int step);
    void *watcher;
} by_hand_options;

/* Set by by_hand_init and then only read: any number of threads may share a context, each with a workspace of its
 * own. */
typedef struct by_hand_ctx {
    const float *weights;
    int target, threads;
    void (*parallel_for)(void *pool, int count, void (*task)(void *with, int index), void *with);
    void *pool;
    void (*on_step)(void *watcher, int step);
    void *watcher;
} by_hand_ctx;

/* `weights`: the bytes of a .attnw, aligned to BY_HAND_ALIGNMENT; they must outlive the ctx. `options` may be NULL. */
int by_hand_init(by_hand_ctx *ctx, const void *weights, size_t bytes, const by_hand_options *options);
const char *by_hand_target(const by_hand_ctx *ctx); /* the name of the target that init chose */

enum {
    BY_HAND_SEQ = 4,        /* rows of a sequence */
    BY_HAND_HIDDEN_WIDTH = 3,
    BY_HAND_ROWS = 4       /* rows of the workspace; a larger batch runs in chunks of whole sequences */
};
#define BY_HAND_WORKSPACE_BYTES(threads) (BY_HAND_CAST(size_t, 896u) + \
    BY_HAND_CAST(size_t, threads) * BY_HAND_CAST(size_t, 256u))
#define BY_HAND_STEPS 2 /* steps of by_hand_forward */
/* their names, to initialize an array of const char * */
#define BY_HAND_STEP_NAMES { \
    "layer0_attention_query_key_value", "layer0_attention_attended"}

/* Sequences follow each other without padding; rows is the sum of their lengths. */
typedef struct by_hand_input {
    size_t size;            /* sizeof(by_hand_input) */
    int batch;              /* sequences: 1 */
    const int32_t *lengths; /* [batch] rows of each; NULL: all have 4 */
    const float *features; /* [rows][6] */
} by_hand_input;

/* Buffers for results. A result whose pointer is NULL is computed only if another one depends on it. */
typedef struct by_hand_output {
    size_t size; /* sizeof(by_hand_output) */
    float *hidden; /* [rows][3] */
} by_hand_output;

/* Runs the model on whole sequences. `workspace`: BY_HAND_WORKSPACE_BYTES(threads) bytes, aligned to BY_HAND_ALIGNMENT,
 * which no other call uses meanwhile. */
int by_hand_forward(const by_hand_ctx *ctx, const by_hand_input *input, by_hand_output *output, void *workspace,
    size_t bytes);

#define BY_HAND_HEADER 0x4e9f1f9du /* hash of this header, which by_hand.c compares with its own */

#ifdef __cplusplus
}
#endif

#endif
