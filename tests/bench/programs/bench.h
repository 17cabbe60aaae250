/* bench.h: one ABI for what attnc generates of any spec, so that a foreign program can dlopen and time it.
 *
 * `make bench-lib SPEC=…` builds libNAME.so, which exports the functions below and no others. One thread may use a
 * model at a time; several models may be open at once. bench_time is for one thread of the process. */
#ifndef BENCH_H
#define BENCH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    BENCH_ABI = 2,
    BENCH_OK = 0,
    BENCH_UNSUPPORTED = -1, /* the spec has no such call: a decoder's of an encoder, say */
    BENCH_BAD_CALL = -2,    /* a null pointer, a struct of another size, a count below 1 */
    BENCH_NO_MEMORY = -3
}; /* a status above 0 is the model's own: see bench_status_text */

/* What bench_run does. */
enum {
    BENCH_FORWARD = 0,  /* whole sequences, from `tokens`, `features`, `pixels`, or `source` and `target` */
    BENCH_DECODE = 1,   /* `count` tokens one by one from an empty state, the logits of each computed; `batch` texts
                         * beside each other, at most 8 */
    BENCH_PREFILL = 2,  /* `count` tokens in one call from an empty state, the logits of the last */
    BENCH_GENERATE = 3  /* the source, if there is one, then `max_new` tokens behind the `count` ones of `tokens` */
};

/* Zeros are defaults. What a spec does not have is ignored. */
typedef struct bench_call {
    size_t size; /* sizeof(bench_call) */
    int kind;
    int batch;                     /* sequences, at least 1; prompts and generation have 1 */
    const int32_t *lengths;        /* [batch] */
    const int32_t *source_lengths; /* [batch] */
    const int32_t *tokens, *segments, *source, *target;
    const float *features, *pixels, *query, *mel;
    const int32_t *in_group; /* [rows] of `input rows group` */
    int count;     /* of `tokens` where decoding; with several sequences they are [count][batch] */
    int max_new;   /* BENCH_GENERATE: exactly so many tokens, end tokens are not chosen before */
    int beams;     /* 0 and 1: greedy */
    int32_t end;   /* the end token */
    int32_t *generated; /* [max_new] */
    float *hidden, *pooled, *logits, *context, *encoder_hidden; /* NULL: not wanted */
} bench_call;

typedef struct bench_model bench_model;

int bench_abi(void);
const char *bench_name(void); /* of the spec */

/* `weights`: the path of a .attnw, which is read into memory. `target`: "avx512", "avx2", "neon", "scalar"; NULL: the
 * best one. NULL on failure, bench_error says why. */
bench_model *bench_open(const char *weights, int threads, const char *target);
const char *bench_error(void);
const char *bench_target(const bench_model *model);
const char *bench_status_text(int status);
void bench_close(bench_model *model);

/* One call of `kind`. For BENCH_DECODE `logits` is [batch][vocab]: of the last tokens. */
int bench_run(bench_model *model, const bench_call *call);

/* The same for `seconds`, in samples of whole calls and at least `sample` seconds each: *median is seconds a call. */
int bench_time(bench_model *model, const bench_call *call, double seconds, double sample, double *median, long *calls);

/* By hand: an empty state, rows appended to it. bench_reset encodes the source where the spec has one. */
int bench_reset(bench_model *model, const int32_t *source, int source_length);
int bench_prefill(bench_model *model, const int32_t *tokens, int count, float *logits);
int bench_step(bench_model *model, int32_t token, float *logits);

#ifdef __cplusplus
}
#endif

#endif
