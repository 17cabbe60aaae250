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
#endif

enum {
    SMALL_ENCODER_ABI = 3,             /* of the structs below */
    SMALL_ENCODER_LEAST_WORK = 65536,   /* of small_encoder_options */
    SMALL_ENCODER_ALIGNMENT = 64       /* of weights, workspaces, bytes */
};
#define SMALL_ENCODER_WEIGHTS_BYTES ((size_t)80896u) /* the whole .attnw */

/* What a call gives back. Everything is checked before the first write. */
enum {
    SMALL_ENCODER_OK = 0,
    SMALL_ENCODER_BAD_ARGUMENT,    /* a null pointer, a struct of another size, a count of threads below 1 */
    SMALL_ENCODER_BAD_WEIGHTS,     /* damaged, or of another size, model, layout or version */
    SMALL_ENCODER_NO_TARGET,       /* this machine has none of the instruction sets, or not the one that was wanted */
    SMALL_ENCODER_SHORT_WORKSPACE, /* fewer bytes than its macro says, or not aligned */
    SMALL_ENCODER_BAD_LENGTH,      /* a sequence of no rows or of more than the bound */
    SMALL_ENCODER_BAD_TOKEN        /* an id outside its table */
};
const char *small_encoder_status_text(int status);

/* How to run; zeros are defaults. */
typedef struct small_encoder_options {
    size_t size;        /* sizeof(small_encoder_options) */
    const char *target; /* "avx2"; NULL: the best one of this machine */
    int verify;         /* not 0: the checksum of the weights' data is checked as well */
    int threads;        /* 0 and 1: none but the caller's */
    /* calls task(with, i) once with every i below count, at most `threads`, and returns when all are done */
    void (*parallel_for)(void *pool, int count, void (*task)(void *with, int index), void *with);
    void *pool;
    /* steps of fewer multiply-adds, by a rough count, are run by the caller alone, without parallel_for. No bit depends
     * on it. 0: SMALL_ENCODER_LEAST_WORK */
    size_t least_work;
} small_encoder_options;

/* Made by small_encoder_init; read only from then on, so that any number of threads may use one, each with a workspace. */
typedef struct small_encoder_ctx {
    const float *weights;
    int target, threads;
    void (*parallel_for)(void *pool, int count, void (*task)(void *with, int index), void *with);
    void *pool;
    size_t least_work;
} small_encoder_ctx;

/* `weights`: the bytes of a .attnw, aligned to SMALL_ENCODER_ALIGNMENT; they must stay as long as the ctx is used.
 * `options` may be NULL. */
int small_encoder_init(small_encoder_ctx *ctx, const void *weights, size_t bytes, const small_encoder_options *options);
const char *small_encoder_target(const small_encoder_ctx *ctx); /* the name of the target that init picked */

enum {
    SMALL_ENCODER_SEQ = 16,        /* rows of a sequence: at most that many */
    SMALL_ENCODER_HIDDEN_WIDTH = 32,
    SMALL_ENCODER_POOLED_WIDTH = 32,
    SMALL_ENCODER_LOGITS_WIDTH = 5,
    SMALL_ENCODER_ROWS = 256       /* rows that the workspace holds at a time; a batch runs in chunks of whole sequences */
};
#define SMALL_ENCODER_WORKSPACE_BYTES(threads) ((size_t)165120u + (size_t)(threads) * (size_t)2816u)

/* Sequences lie one after another, without padding; rows is the sum of their lengths. */
typedef struct small_encoder_input {
    size_t size;            /* sizeof(small_encoder_input) */
    int batch;              /* sequences, at least 1 */
    const int32_t *lengths; /* [batch] rows of each */
    const int32_t *tokens; /* [rows] ids, 0 to 63 */
} small_encoder_input;

/* Where results go; NULL: not wanted, and not computed where nothing else needs it. */
typedef struct small_encoder_output {
    size_t size; /* sizeof(small_encoder_output) */
    float *hidden; /* [rows][32] */
    float *pooled; /* [batch][32] */
    float *logits; /* [batch][5] */
} small_encoder_output;

/* Whole sequences. `workspace`: SMALL_ENCODER_WORKSPACE_BYTES(threads) bytes,
 * aligned to SMALL_ENCODER_ALIGNMENT, of this call alone. */
int small_encoder_forward(const small_encoder_ctx *ctx, const small_encoder_input *input, small_encoder_output *output, void *workspace, size_t bytes);

#define SMALL_ENCODER_HEADER 0x9fcf22ebu /* of all above: small_encoder.c wants this one, not that of another run */

#ifdef __cplusplus
}
#endif

#endif
