/* by_hand.h: encoder of 1 layers over exactly 4 rows, d_model 6; model hash 15ddb4f768ecaee6
 *
 * Made by attnc 0.1.0: attnc compile by_hand.attn --target scalar
 * The output of attnc belongs to its user, without conditions. */
#ifndef BY_HAND_H
#define BY_HAND_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    BY_HAND_ABI = 3,             /* of the structs below */
    BY_HAND_ALIGNMENT = 64       /* of weights, workspaces, bytes */
};
#define BY_HAND_WEIGHTS_BYTES ((size_t)1344u) /* the whole .attnw */

/* What a call gives back. Everything is checked before the first write. */
enum {
    BY_HAND_OK = 0,
    BY_HAND_BAD_ARGUMENT,    /* a null pointer, a struct of another size, a count of threads below 1 */
    BY_HAND_BAD_WEIGHTS,     /* damaged, or of another size, model, layout or version */
    BY_HAND_NO_TARGET,       /* this machine has none of the instruction sets, or not the one that was wanted */
    BY_HAND_SHORT_WORKSPACE, /* fewer bytes than its macro says, or not aligned */
    BY_HAND_BAD_LENGTH,      /* a sequence of no rows or of more than the bound */
    BY_HAND_BAD_TOKEN        /* an id outside its table */
};
const char *by_hand_status_text(int status);

/* How to run; zeros are defaults. */
typedef struct by_hand_options {
    size_t size;        /* sizeof(by_hand_options) */
    const char *target; /* "scalar"; NULL: the best one of this machine */
    int verify;         /* not 0: the checksum of the weights' data is checked as well */
    int threads;        /* 0 and 1: none but the caller's; this code runs on the caller's thread alone */
    /* calls task(with, i) once with every i below count, at most `threads`, and returns when all are done */
    void (*parallel_for)(void *pool, int count, void (*task)(void *with, int index), void *with);
    void *pool;
    size_t least_work; /* without effect here */
} by_hand_options;

/* Made by by_hand_init; read only from then on, so that any number of threads may use one, each with a workspace. */
typedef struct by_hand_ctx {
    const float *weights;
    int target, threads;
    void (*parallel_for)(void *pool, int count, void (*task)(void *with, int index), void *with);
    void *pool;
} by_hand_ctx;

/* `weights`: the bytes of a .attnw, aligned to BY_HAND_ALIGNMENT; they must stay as long as the ctx is used.
 * `options` may be NULL. */
int by_hand_init(by_hand_ctx *ctx, const void *weights, size_t bytes, const by_hand_options *options);
const char *by_hand_target(const by_hand_ctx *ctx); /* the name of the target that init picked */

enum {
    BY_HAND_SEQ = 4,        /* rows of a sequence: exactly that many */
    BY_HAND_HIDDEN_WIDTH = 3,
    BY_HAND_ROWS = 4       /* rows that the workspace holds at a time; a batch runs in chunks of whole sequences */
};
#define BY_HAND_WORKSPACE_BYTES(threads) ((size_t)896u + (size_t)(threads) * (size_t)2496u)

/* Sequences lie one after another, without padding; rows is the sum of their lengths. */
typedef struct by_hand_input {
    size_t size;            /* sizeof(by_hand_input) */
    int batch;              /* sequences: 1 */
    const int32_t *lengths; /* [batch] rows of each; NULL: all have 4 */
    const float *features; /* [rows][6] */
} by_hand_input;

/* Where results go; NULL: not wanted, and not computed where nothing else needs it. */
typedef struct by_hand_output {
    size_t size; /* sizeof(by_hand_output) */
    float *hidden; /* [rows][3] */
} by_hand_output;

/* Whole sequences. `workspace`: BY_HAND_WORKSPACE_BYTES(threads) bytes,
 * aligned to BY_HAND_ALIGNMENT, of this call alone. */
int by_hand_forward(const by_hand_ctx *ctx, const by_hand_input *input, by_hand_output *output, void *workspace, size_t bytes);

#define BY_HAND_HEADER 0xd68bec84u /* of all above: by_hand.c wants this one, not that of another run */

#ifdef __cplusplus
}
#endif

#endif
