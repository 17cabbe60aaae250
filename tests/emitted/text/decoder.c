/* decoder.c: decoder of 1 layer over at most 4 rows, d_model 8; model hash 3bf76f72881550e8
 *
 * Made by attnc 0.1.0: attnc compile decoder.attn --target scalar
 * Memory: a workspace of 83200 bytes plus 320 per thread; 5632 bytes of weights.
 * The output of attnc belongs to its user, without conditions. */
#include "decoder.h"

#if DECODER_HEADER != 0xa4849642u
#error "decoder.h is of another run of attnc than this file"
#endif
#ifdef __FAST_MATH__
#error "this file counts on IEEE arithmetic: compile it without -ffast-math"
#endif
#if defined(__FLT_EVAL_METHOD__) && (__FLT_EVAL_METHOD__ < 0 || __FLT_EVAL_METHOD__ == 1 || __FLT_EVAL_METHOD__ == 2)
#error "this file counts on floats that are rounded at once: compile it with -msse2 -mfpmath=sse, or with -std=gnu11"
#endif

/* The header of a state or of an encoded source; its caches follow. */
typedef struct decoder_state {
    uint64_t kind;    /* state or source, and of which model */
    int32_t rows;     /* in the caches */
    int32_t most;     /* greatest `rows` since the state was empty: what the ring of a window has overwritten */
    int32_t prefix;   /* first rows that are visible to every row */
    int32_t total;    /* rows after the running call, or after the last one */
    const struct decoder_state *source;
    unsigned char rest[32];
} decoder_state;

static __attribute__((unused)) float *decoder_floats(decoder_state *state) {
    return (float *)(void *)((unsigned char *)state + 64);
}

static __attribute__((unused)) const float *decoder_cache(const decoder_state *state) {
    return (const float *)(const void *)((const unsigned char *)state + 64);
}

typedef struct decoder_run {
    const float *weights;
    float *workspace, *scratch;
    size_t rows, sequences;   /* of this chunk */
    size_t ended;             /* sequences whose last row is in this chunk */
    const int32_t *starts;    /* [sequences + 1] first row of each sequence */
    decoder_state *const *states; /* [sequences] */
    const int32_t *tokens;
    float *out_hidden;
    float *out_logits;
    uint64_t self_scores;   /* pairs of a query and a key: the work of attention */
    uint64_t least_work;
    void (*task)(const struct decoder_run *run, int thread); /* of the step that threads share */
    int threads;
    void (*parallel_for)(void *pool, int count, void (*task)(void *with, int index), void *with);
    void *pool;
    void (*on_step)(void *watcher, int step);
    void *watcher;
} decoder_run;

static inline __attribute__((unused)) void decoder_before(const decoder_run *run, int step) {
    if (__builtin_expect(run->on_step != NULL, 0)) run->on_step(run->watcher, step);
}

static __attribute__((unused)) void decoder_task(void *with, int thread) {
    const decoder_run *run = (const decoder_run *)with;
    run->task(run, thread);
}

/* `work`: multiply-adds, roughly. Below the bound, waking threads costs more than it saves. */
static __attribute__((unused)) void decoder_run_step(decoder_run *run, int step,
    void (*const *tasks)(const decoder_run *run, int thread), uint64_t work) {
    decoder_before(run, step);
    const int threads = run->threads;
    if (threads > 1 && work >= run->least_work) {
        run->task = tasks[step];
        run->parallel_for(run->pool, threads, decoder_task, run);
        return;
    }
    run->threads = 1; /* tasks divide their work by it */
    tasks[step](run, 0);
    run->threads = threads;
}

/* The first of n items that a thread has; those of the next thread follow its last one. */
static inline __attribute__((unused)) size_t decoder_first(size_t n, int thread, int threads) {
    return n * (size_t)thread / (size_t)threads;
}

/* Where each tensor begins in the weights, in floats, and its shape. A matrix [N][K] stands in panels,
 * [N / 16][K][16]. decoder_w_layer3_ffn_up is the tensor layers.3.ffn.up.weight of its stack. A product of
 * several matrices reads them as one: behind its shape are their names, in their order. */
#define decoder_w_embedding_tokens 0 /* [9][8] */
/* decoder.layers.0. */
#define decoder_w_layer0_attention_norm_in 80 /* [8] */
#define decoder_w_layer0_attention_query_key_value 96 /* [3][8][16] query, key, value */
#define decoder_w_layer0_attention_query_key_value_bias 480 /* [48] query, key, value */
#define decoder_w_rope_cos_4_10000_4 528 /* [4][2] */
#define decoder_w_rope_sin_4_10000_4 544 /* [4][2] */
#define decoder_w_layer0_attention_output 560 /* [1][8][16] */
#define decoder_w_layer0_attention_output_bias 688 /* [8] */
#define decoder_w_layer0_ffn_norm_in 704 /* [8] */
#define decoder_w_layer0_ffn_up 720 /* [1][8][16] */
#define decoder_w_layer0_ffn_up_bias 848 /* [12] */
#define decoder_w_layer0_ffn_gate 864 /* [1][8][16] */
#define decoder_w_layer0_ffn_gate_bias 992 /* [12] */
#define decoder_w_layer0_ffn_down 1008 /* [1][12][16] */
#define decoder_w_layer0_ffn_down_bias 1200 /* [8] */
#define decoder_w_final_norm 1216 /* [8] */
#define decoder_w_head 1232 /* [1][8][16] */

/* Where each layer's keys and values begin behind the header of a state, in floats, and their shapes: for each head
 * rows of values, and keys in panels. */
#define decoder_cache_layer0_attention_keys 0 /* [2][1][4][16] */
#define decoder_cache_layer0_attention_values 128 /* [2][16][4] */

/* The workspace of forward, in bytes:
 *     0: starts[257], the first row of each sequence
 *     1088: buffers of 20528 floats
 *     then 320 of scratch for each thread
 * Each buffer has its offset in floats, its shape, and the first and the last step that use it. */
#define decoder_x_embedding_looked_up 0 /* [256][16] embedding to attention_output of layer 0 */
#define decoder_x_ffn_norm_in 0 /* [256][16] ffn_norm_in to ffn_gate */
#define decoder_x_ffn_sum 0 /* [256][16] ffn_down to copy_hidden */
#define decoder_x_attention_attended 4112 /* [256][16] attention_attended to attention_output */
#define decoder_x_attention_norm_in 4112 /* [256][16] attention_norm_in to attention_query_key_value */
#define decoder_x_ffn_up 4112 /* [256][16] ffn_up to ffn_gate */
#define decoder_x_attention_query_key_value 8224 /* [256][48] attention_query_key_value to attention_attended */
#define decoder_x_attention_sum 8224 /* [256][16] attention_output to ffn_down */
#define decoder_x_ffn_gated 12336 /* [256][16] ffn_gate to ffn_down */

/* The workspace of decode, in bytes:
 *     0: starts[17], the first row of each sequence
 *     128: buffers of 1328 floats
 *     then 64 of scratch for each thread
 * Each buffer has its offset in floats, its shape, and the first and the last step that use it. */
#define decoder_decode_x_embedding_looked_up 0 /* [16][16] embedding to attention_output of layer 0 */
#define decoder_decode_x_ffn_norm_in 0 /* [16][16] ffn_norm_in to ffn_gate */
#define decoder_decode_x_ffn_sum 0 /* [16][16] ffn_down to copy_hidden */
#define decoder_decode_x_attention_attended 272 /* [16][16] attention_attended to attention_output */
#define decoder_decode_x_attention_norm_in 272 /* [16][16] attention_norm_in to attention_query_key_value */
#define decoder_decode_x_ffn_up 272 /* [16][16] ffn_up to ffn_gate */
#define decoder_decode_x_pool 272 /* [16][16] pool to logits */
#define decoder_decode_x_attention_query_key_value 544 /* [16][48] attention_query_key_value to attention_attended */
#define decoder_decode_x_attention_sum 544 /* [16][16] attention_output to ffn_down */
#define decoder_decode_x_ffn_gated 816 /* [16][16] ffn_gate to ffn_down */

static __attribute__((unused)) void decoder_forward_steps(decoder_run *run,
    void (*const *tasks)(const decoder_run *run, int thread)) {
    __asm__("" : "+r"(tasks)); /* hides the steps, which would round otherwise if they were inlined here */
    decoder_run_step(run, 0, tasks, run->rows * UINT64_C(80));
    decoder_run_step(run, 1, tasks, run->rows * UINT64_C(80));
    decoder_run_step(run, 2, tasks, run->rows * UINT64_C(384));
    decoder_run_step(run, 3, tasks, run->rows * UINT64_C(80));
    decoder_run_step(run, 4, tasks, run->rows * UINT64_C(80));
    decoder_run_step(run, 5, tasks, run->self_scores * UINT64_C(36));
    decoder_run_step(run, 6, tasks, run->rows * UINT64_C(64));
    decoder_run_step(run, 7, tasks, run->rows * UINT64_C(80));
    decoder_run_step(run, 8, tasks, run->rows * UINT64_C(96));
    decoder_run_step(run, 9, tasks, run->rows * UINT64_C(96));
    decoder_run_step(run, 10, tasks, run->rows * UINT64_C(96));
    decoder_run_step(run, 11, tasks, run->rows * UINT64_C(80));
    if (run->out_logits) decoder_run_step(run, 12, tasks, run->rows * UINT64_C(72));
    else decoder_before(run, 12);
    if (run->out_hidden) decoder_run_step(run, 13, tasks, run->rows * UINT64_C(80));
    else decoder_before(run, 13);
    decoder_before(run, 14);
}

static __attribute__((unused)) void decoder_decode_steps(decoder_run *run,
    void (*const *tasks)(const decoder_run *run, int thread)) {
    __asm__("" : "+r"(tasks)); /* hides the steps, which would round otherwise if they were inlined here */
    decoder_run_step(run, 0, tasks, run->rows * UINT64_C(80));
    decoder_run_step(run, 1, tasks, run->rows * UINT64_C(80));
    decoder_run_step(run, 2, tasks, run->rows * UINT64_C(384));
    decoder_run_step(run, 3, tasks, run->rows * UINT64_C(80));
    decoder_run_step(run, 4, tasks, run->rows * UINT64_C(80));
    decoder_run_step(run, 5, tasks, run->rows * UINT64_C(80));
    decoder_run_step(run, 6, tasks, run->rows * UINT64_C(80));
    decoder_run_step(run, 7, tasks, run->self_scores * UINT64_C(36));
    decoder_run_step(run, 8, tasks, run->rows * UINT64_C(64));
    decoder_run_step(run, 9, tasks, run->rows * UINT64_C(80));
    decoder_run_step(run, 10, tasks, run->rows * UINT64_C(96));
    decoder_run_step(run, 11, tasks, run->rows * UINT64_C(96));
    decoder_run_step(run, 12, tasks, run->rows * UINT64_C(96));
    decoder_run_step(run, 13, tasks, run->rows * UINT64_C(80));
    decoder_run_step(run, 14, tasks, run->ended * UINT64_C(80));
    if (run->out_logits) decoder_run_step(run, 15, tasks, run->ended * UINT64_C(72));
    else decoder_before(run, 15);
    if (run->out_hidden) decoder_run_step(run, 16, tasks, run->rows * UINT64_C(80));
    else decoder_before(run, 16);
    decoder_before(run, 17);
}

/* ------------------------------------------------------------------ target scalar */

#if defined(__x86_64__)
#define decoder_SCALAR __attribute__((target("no-fma,no-fma4,no-avx512f")))
#elif defined(__GNUC__) && !defined(__clang__)
#define decoder_SCALAR __attribute__((optimize("fp-contract=off")))
#else
#define decoder_SCALAR
#endif

/* acc + a * b, rounded twice */
static inline __attribute__((unused)) decoder_SCALAR
float decoder_scalar_fma(float acc, float a, float b) {
#if defined(__clang__)
#pragma clang fp contract(off)
#endif
    float product = a * b;
    return acc + product;
}

static inline __attribute__((unused)) decoder_SCALAR
float decoder_scalar_max(float a, float b) {
    return a > b ? a : b;
}

static inline __attribute__((unused)) decoder_SCALAR
float decoder_scalar_min(float a, float b) {
    return a < b ? a : b;
}

static inline __attribute__((unused)) decoder_SCALAR
float decoder_scalar_sqrt(float a) {
#if defined(__x86_64__)
    float root;
    __asm__("sqrtss %1, %0" : "=x"(root) : "x"(a));
    return root;
#elif defined(__aarch64__)
    float root;
    __asm__("fsqrt %s0, %s1" : "=w"(root) : "w"(a));
    return root;
#elif defined(__riscv_flen)
    float root;
    __asm__("fsqrt.s %0, %1" : "=f"(root) : "f"(a));
    return root;
#else
    return __builtin_sqrtf(a);
#endif
}

/* Below 2^23 adding 2^23 leaves no bits of a fraction; above, and with NaN, there is nothing to round. */
static inline __attribute__((unused)) decoder_SCALAR
float decoder_scalar_round(float a) {
    float size = __builtin_fabsf(a);
    if (!(size < 8388608.0f)) return a;
    return __builtin_copysignf((size + 8388608.0f) - 8388608.0f, a);
}

/* The product is exact as a double; it is rounded once, to a float. n comes out of the low bits of n + 3 * 2^22: a
 * conversion of NaN to an integer is undefined. */
static inline __attribute__((unused)) decoder_SCALAR
float decoder_scalar_exp2i(float x, float n) {
    const float shifted = n + 12582912.0f;
    unsigned word;
    __builtin_memcpy(&word, &shifted, sizeof word);
    const unsigned long long bits = (unsigned long long)(word - 0x4b400000u + 1023u) << 52;
    double power;
    __builtin_memcpy(&power, &bits, sizeof power);
    return (float)((double)x * power);
}

/* 2^x for x up to 160: 2^n times a polynomial in r, |r| <= 1/2 (at most 2 ulp). Results below 2^-126, which would
 * be denormal, are 0; NaN stays NaN. The softmax, and sums of 1 and a power of e, call it with a scaled argument:
 * the rounding of the scale is a relative error of the power. */
static inline __attribute__((unused)) decoder_SCALAR
float decoder_scalar_exp2(float x) {
    const float t = decoder_scalar_max((-126.0f), x);
    const float n = decoder_scalar_round(t);
    const float r = (t - n);
    float y = (0x1.5bba12p-10f);
    y = decoder_scalar_fma((0x1.3ceba8p-7f), y, r);
    y = decoder_scalar_fma((0x1.c6b7bep-5f), y, r);
    y = decoder_scalar_fma((0x1.ebf9bap-3f), y, r);
    y = decoder_scalar_fma((0x1.62e428p-1f), y, r);
    y = decoder_scalar_fma(1.0f, y, r);
    return (x < (-126.0f) ? 0.0f : decoder_scalar_exp2i(y, n));
}

static inline __attribute__((unused)) decoder_SCALAR
float decoder_scalar_silu(float x) {
    float power = (x * (-0x1.715476p+0f));
    return (x / (1.0f + decoder_scalar_exp2(decoder_scalar_min(160.0f, power))));
}

/* acc + a b, as the vectors round it */
static inline __attribute__((unused)) decoder_SCALAR
float decoder_scalar_fma1(float acc, float a, float b) {
    float lanes[1];
    *lanes = decoder_scalar_fma(acc, a, b);
    return lanes[0];
}

/* rows of 8 columns, looked up: row `row` of the chunk, row `index` of its sequence */
static decoder_SCALAR
void decoder_scalar_rows_row(const decoder_run *run, size_t row, size_t sequence, size_t index, const float *table,
    float *to) {
    (void)run, (void)row, (void)sequence, (void)index;
    const size_t id = (size_t)run->tokens[row];
    const float *from = table + id * 8;
    for (size_t c = 0; c < 8; c++) {
        {
            float value = from[c];
            to[c] = value;
        }
    }
    to[8] = 0.0f;
    to[9] = 0.0f;
    to[10] = 0.0f;
    to[11] = 0.0f;
    to[12] = 0.0f;
    to[13] = 0.0f;
    to[14] = 0.0f;
    to[15] = 0.0f;
}

static decoder_SCALAR
void decoder_scalar_rows(const decoder_run *run, const float *table, float *out, int thread, int threads) {
    const size_t end = decoder_first(run->rows, thread + 1, threads);
    size_t sequence = 0;
    for (size_t row = decoder_first(run->rows, thread, threads); row < end; row++) {
        while (row >= (size_t)run->starts[sequence + 1]) sequence++;
        const size_t index = row - (size_t)run->starts[sequence];
        decoder_scalar_rows_row(run, row, sequence, index, table, out + row * 16);
    }
}

/* embedding: [rows][8] of a table [9][8] */
static decoder_SCALAR
void decoder_scalar_step_embedding(const decoder_run *run, int thread) {
    decoder_scalar_rows(run, run->weights + decoder_w_embedding_tokens, run->workspace + decoder_x_embedding_looked_up,
        thread, run->threads);
}

/* rmsnorm over 8 columns, eps 1e-05: one row */
static decoder_SCALAR
void decoder_scalar_rmsnorm_8_row(const float *row, const float *weight, float *target) {
    {
        const float *from = row;
        float *to = target;
        float squares0 = 0.0f;
        float squares1 = 0.0f;
        float squares2 = 0.0f;
        float squares3 = 0.0f;
        {
            float d0 = from[0];
            squares0 = decoder_scalar_fma(squares0, d0, d0);
            float d1 = from[1];
            squares1 = decoder_scalar_fma(squares1, d1, d1);
            float d2 = from[2];
            squares2 = decoder_scalar_fma(squares2, d2, d2);
            float d3 = from[3];
            squares3 = decoder_scalar_fma(squares3, d3, d3);
        }
        {
            float d0 = from[4];
            squares0 = decoder_scalar_fma(squares0, d0, d0);
            float d1 = from[5];
            squares1 = decoder_scalar_fma(squares1, d1, d1);
            float d2 = from[6];
            squares2 = decoder_scalar_fma(squares2, d2, d2);
            float d3 = from[7];
            squares3 = decoder_scalar_fma(squares3, d3, d3);
        }
        squares0 = ((squares0 + squares1) + (squares2 + squares3));
        const float variance = decoder_scalar_fma1(0x1.4f8b58p-17f, squares0, 0x1p-3f);
        const float inverse = (1.0f / decoder_scalar_sqrt(variance));
        for (size_t c = 0; c < 8; c += 2) {
            {
                float d = from[c];
                const float gain = *(weight + c);
                to[c] = ((d * inverse) * gain);
            }
            {
                float d = from[c + 1];
                const float gain = *(weight + (c + 1));
                to[c + 1] = ((d * inverse) * gain);
            }
        }
        to[8] = 0.0f;
        to[9] = 0.0f;
        to[10] = 0.0f;
        to[11] = 0.0f;
        to[12] = 0.0f;
        to[13] = 0.0f;
        to[14] = 0.0f;
        to[15] = 0.0f;
    }
}

static decoder_SCALAR
void decoder_scalar_rmsnorm_8(const float *x, const float *weight, float *out, size_t rows, int thread, int threads) {
    const size_t end = decoder_first(rows, thread + 1, threads);
    for (size_t row = decoder_first(rows, thread, threads); row < end; row++)
        decoder_scalar_rmsnorm_8_row(x + row * 16, weight, out + row * 16);
}

/* layer 0, self attention, input rmsnorm: [rows][8] */
static decoder_SCALAR
void decoder_scalar_step_layer0_attention_norm_in(const decoder_run *run, int thread) {
    decoder_scalar_rmsnorm_8(run->workspace + decoder_x_embedding_looked_up,
        run->weights + decoder_w_layer0_attention_norm_in, run->workspace + decoder_x_attention_norm_in, run->rows,
        thread, run->threads);
}

static decoder_SCALAR
void decoder_scalar_gemm_8x48_1x2(const float *x, const float *w, const float *bias, float *out) {
    float acc0_0 = bias[0], acc0_1 = bias[1], acc0_2 = bias[2], acc0_3 = bias[3], acc0_4 = bias[4], acc0_5 = bias[5],
        acc0_6 = bias[6], acc0_7 = bias[7], acc0_8 = bias[16], acc0_9 = bias[17], acc0_10 = bias[18],
        acc0_11 = bias[19], acc0_12 = bias[20], acc0_13 = bias[21], acc0_14 = bias[22], acc0_15 = bias[23];
    for (size_t k = 0; k < 8; k++) {
        const float a0 = x[k];
        const float w0 = w[k * 16];
        acc0_0 = decoder_scalar_fma(acc0_0, a0, w0);
        const float w1 = w[(1 + (k * 16))];
        acc0_1 = decoder_scalar_fma(acc0_1, a0, w1);
        const float w2 = w[(2 + (k * 16))];
        acc0_2 = decoder_scalar_fma(acc0_2, a0, w2);
        const float w3 = w[(3 + (k * 16))];
        acc0_3 = decoder_scalar_fma(acc0_3, a0, w3);
        const float w4 = w[(4 + (k * 16))];
        acc0_4 = decoder_scalar_fma(acc0_4, a0, w4);
        const float w5 = w[(5 + (k * 16))];
        acc0_5 = decoder_scalar_fma(acc0_5, a0, w5);
        const float w6 = w[(6 + (k * 16))];
        acc0_6 = decoder_scalar_fma(acc0_6, a0, w6);
        const float w7 = w[(7 + (k * 16))];
        acc0_7 = decoder_scalar_fma(acc0_7, a0, w7);
        const float w8 = w[(128 + (k * 16))];
        acc0_8 = decoder_scalar_fma(acc0_8, a0, w8);
        const float w9 = w[(129 + (k * 16))];
        acc0_9 = decoder_scalar_fma(acc0_9, a0, w9);
        const float w10 = w[(130 + (k * 16))];
        acc0_10 = decoder_scalar_fma(acc0_10, a0, w10);
        const float w11 = w[(131 + (k * 16))];
        acc0_11 = decoder_scalar_fma(acc0_11, a0, w11);
        const float w12 = w[(132 + (k * 16))];
        acc0_12 = decoder_scalar_fma(acc0_12, a0, w12);
        const float w13 = w[(133 + (k * 16))];
        acc0_13 = decoder_scalar_fma(acc0_13, a0, w13);
        const float w14 = w[(134 + (k * 16))];
        acc0_14 = decoder_scalar_fma(acc0_14, a0, w14);
        const float w15 = w[(135 + (k * 16))];
        acc0_15 = decoder_scalar_fma(acc0_15, a0, w15);
    }
    out[0] = acc0_0;
    out[1] = acc0_1;
    out[2] = acc0_2;
    out[3] = acc0_3;
    out[4] = acc0_4;
    out[5] = acc0_5;
    out[6] = acc0_6;
    out[7] = acc0_7;
    out[16] = acc0_8;
    out[17] = acc0_9;
    out[18] = acc0_10;
    out[19] = acc0_11;
    out[20] = acc0_12;
    out[21] = acc0_13;
    out[22] = acc0_14;
    out[23] = acc0_15;
}

static decoder_SCALAR
void decoder_scalar_gemm_8x48_1x1(const float *x, const float *w, const float *bias, float *out) {
    float acc0_0 = bias[0], acc0_1 = bias[1], acc0_2 = bias[2], acc0_3 = bias[3], acc0_4 = bias[4], acc0_5 = bias[5],
        acc0_6 = bias[6], acc0_7 = bias[7];
    for (size_t k = 0; k < 8; k++) {
        const float a0 = x[k];
        const float w0 = w[k * 16];
        acc0_0 = decoder_scalar_fma(acc0_0, a0, w0);
        const float w1 = w[(1 + (k * 16))];
        acc0_1 = decoder_scalar_fma(acc0_1, a0, w1);
        const float w2 = w[(2 + (k * 16))];
        acc0_2 = decoder_scalar_fma(acc0_2, a0, w2);
        const float w3 = w[(3 + (k * 16))];
        acc0_3 = decoder_scalar_fma(acc0_3, a0, w3);
        const float w4 = w[(4 + (k * 16))];
        acc0_4 = decoder_scalar_fma(acc0_4, a0, w4);
        const float w5 = w[(5 + (k * 16))];
        acc0_5 = decoder_scalar_fma(acc0_5, a0, w5);
        const float w6 = w[(6 + (k * 16))];
        acc0_6 = decoder_scalar_fma(acc0_6, a0, w6);
        const float w7 = w[(7 + (k * 16))];
        acc0_7 = decoder_scalar_fma(acc0_7, a0, w7);
    }
    out[0] = acc0_0;
    out[1] = acc0_1;
    out[2] = acc0_2;
    out[3] = acc0_3;
    out[4] = acc0_4;
    out[5] = acc0_5;
    out[6] = acc0_6;
    out[7] = acc0_7;
}

/* out [rows][48] = x [rows][8] times weight, + bias */
static decoder_SCALAR
void decoder_scalar_gemm_8x48(const float *x, const float *w, const float *bias, float *out, size_t rows, int thread,
    int threads) {
    if (rows == 0) return;
    const size_t tiles = (rows), least = rows / tiles, taller = rows % tiles;
    const size_t begin = decoder_first(tiles * 2, thread, threads), end = decoder_first(tiles * 2, thread + 1, threads);
    size_t block = begin / tiles, tile = begin % tiles, row = tile * least + (tile < taller ? tile : taller);
    for (size_t unit = begin, height; unit < end; unit++, row += height, tile++) {
        if (tile == tiles) block++, tile = 0, row = 0;
        height = least + (tile < taller);
        const size_t panel = block < 1 ? block * 2 : 2 + (block - 1);
        const size_t column = panel * 16;
        if (block >= 1) {
            decoder_scalar_gemm_8x48_1x1(x + row * 16, w + panel * 128, bias + column, out + row * 48 + column);
            continue;
        }
        decoder_scalar_gemm_8x48_1x2(x + row * 16, w + panel * 128, bias + column, out + row * 48 + column);
    }
}

/* layer 0, self attention, query, key and value projection: [rows][8] x [8][48] + bias */
static decoder_SCALAR
void decoder_scalar_step_layer0_attention_query_key_value(const decoder_run *run, int thread) {
    decoder_scalar_gemm_8x48(run->workspace + decoder_x_attention_norm_in,
        run->weights + decoder_w_layer0_attention_query_key_value,
        run->weights + decoder_w_layer0_attention_query_key_value_bias,
        run->workspace + decoder_x_attention_query_key_value, run->rows, thread, run->threads);
}

/* 4 columns of 2 heads rotated by position: one head of one row */
static decoder_SCALAR
void decoder_scalar_rope_head(const float *from, const float *c, const float *s, float *to) {
    for (size_t i = 0; i < 2; i++) {
        const float u = from[i], w = *(from + 2 + i);
        const float cosine = c[i], sine = s[i];
        to[i] = decoder_scalar_fma((u * cosine), -w, sine);
        *(to + 2 + i) = decoder_scalar_fma((w * cosine), u, sine);
    }
}

static decoder_SCALAR
void decoder_scalar_rope(const decoder_run *run, const float *x, const float *cosine, const float *sine, float *out,
    int thread, int threads) {
    const size_t end = decoder_first(run->rows, thread + 1, threads);
    size_t sequence = 0;
    for (size_t row = decoder_first(run->rows, thread, threads); row < end; row++) {
        while (row >= (size_t)run->starts[sequence + 1]) sequence++;
        size_t index = row - (size_t)run->starts[sequence];
        const size_t at = index * 2;
        for (size_t head = 0; head < 2; head++)
            decoder_scalar_rope_head(x + row * 48 + head * 4, cosine + at, sine + at, out + row * 48 + head * 4);
    }
}

/* layer 0, self attention, rotary embedding of the query: [rows][8], 2 heads of 4 */
static decoder_SCALAR
void decoder_scalar_step_layer0_attention_query_rope(const decoder_run *run, int thread) {
    decoder_scalar_rope(run, run->workspace + decoder_x_attention_query_key_value,
        run->weights + decoder_w_rope_cos_4_10000_4, run->weights + decoder_w_rope_sin_4_10000_4,
        run->workspace + decoder_x_attention_query_key_value, thread, run->threads);
}

/* layer 0, self attention, rotary embedding of the key: [rows][8], 2 heads of 4 */
static decoder_SCALAR
void decoder_scalar_step_layer0_attention_key_rope(const decoder_run *run, int thread) {
    decoder_scalar_rope(run, run->workspace + decoder_x_attention_query_key_value + 16,
        run->weights + decoder_w_rope_cos_4_10000_4, run->weights + decoder_w_rope_sin_4_10000_4,
        run->workspace + decoder_x_attention_query_key_value + 16, thread, run->threads);
}

static __attribute__((noinline)) decoder_SCALAR
void decoder_scalar_attention_of_rows1(const float *query, const float *panels, const float *value, size_t v_stride,
    size_t i, size_t n, float *block, float *out) {
    (void)i, (void)n;
    const size_t first = 0;
    const size_t limit0 = i + 1;
    const size_t last = limit0;
    float sum[1];
    {
        const size_t from = first / 16 * 16, to = last;
        const size_t padded = (to + 15) / 16 * 16;
        size_t j = from;
        for (; j + 16 <= padded; j += 16)
            {
                float s0_0 = 0.0f;
                float s0_1 = 0.0f;
                float s0_2 = 0.0f;
                float s0_3 = 0.0f;
                float s0_4 = 0.0f;
                float s0_5 = 0.0f;
                float s0_6 = 0.0f;
                float s0_7 = 0.0f;
                float s0_8 = 0.0f;
                float s0_9 = 0.0f;
                float s0_10 = 0.0f;
                float s0_11 = 0.0f;
                float s0_12 = 0.0f;
                float s0_13 = 0.0f;
                float s0_14 = 0.0f;
                float s0_15 = 0.0f;
                const float *panel = panels + j * 4;
                for (size_t d = 0; d < 4; d++) {
                    const float k0_0 = panel[d * 16];
                    const float k0_1 = panel[(1 + (d * 16))];
                    const float k0_2 = panel[(2 + (d * 16))];
                    const float k0_3 = panel[(3 + (d * 16))];
                    const float k0_4 = panel[(4 + (d * 16))];
                    const float k0_5 = panel[(5 + (d * 16))];
                    const float k0_6 = panel[(6 + (d * 16))];
                    const float k0_7 = panel[(7 + (d * 16))];
                    const float k0_8 = panel[(8 + (d * 16))];
                    const float k0_9 = panel[(9 + (d * 16))];
                    const float k0_10 = panel[(10 + (d * 16))];
                    const float k0_11 = panel[(11 + (d * 16))];
                    const float k0_12 = panel[(12 + (d * 16))];
                    const float k0_13 = panel[(13 + (d * 16))];
                    const float k0_14 = panel[(14 + (d * 16))];
                    const float k0_15 = panel[(15 + (d * 16))];
                    const float q0 = query[d];
                    s0_0 = decoder_scalar_fma(s0_0, q0, k0_0);
                    s0_1 = decoder_scalar_fma(s0_1, q0, k0_1);
                    s0_2 = decoder_scalar_fma(s0_2, q0, k0_2);
                    s0_3 = decoder_scalar_fma(s0_3, q0, k0_3);
                    s0_4 = decoder_scalar_fma(s0_4, q0, k0_4);
                    s0_5 = decoder_scalar_fma(s0_5, q0, k0_5);
                    s0_6 = decoder_scalar_fma(s0_6, q0, k0_6);
                    s0_7 = decoder_scalar_fma(s0_7, q0, k0_7);
                    s0_8 = decoder_scalar_fma(s0_8, q0, k0_8);
                    s0_9 = decoder_scalar_fma(s0_9, q0, k0_9);
                    s0_10 = decoder_scalar_fma(s0_10, q0, k0_10);
                    s0_11 = decoder_scalar_fma(s0_11, q0, k0_11);
                    s0_12 = decoder_scalar_fma(s0_12, q0, k0_12);
                    s0_13 = decoder_scalar_fma(s0_13, q0, k0_13);
                    s0_14 = decoder_scalar_fma(s0_14, q0, k0_14);
                    s0_15 = decoder_scalar_fma(s0_15, q0, k0_15);
                }
                *(block + (j - from)) = s0_0;
                *(block + (j - from) + 1) = s0_1;
                *(block + (j - from) + 2) = s0_2;
                *(block + (j - from) + 3) = s0_3;
                *(block + (j - from) + 4) = s0_4;
                *(block + (j - from) + 5) = s0_5;
                *(block + (j - from) + 6) = s0_6;
                *(block + (j - from) + 7) = s0_7;
                *(block + (j - from) + 8) = s0_8;
                *(block + (j - from) + 9) = s0_9;
                *(block + (j - from) + 10) = s0_10;
                *(block + (j - from) + 11) = s0_11;
                *(block + (j - from) + 12) = s0_12;
                *(block + (j - from) + 13) = s0_13;
                *(block + (j - from) + 14) = s0_14;
                *(block + (j - from) + 15) = s0_15;
            }
        const size_t low0 = from;
        const size_t most_key0 = limit0;
        const size_t high0 = most_key0 < to ? (most_key0 > low0 ? most_key0 : low0) : to;
        const size_t common = low0, common_end = high0 > common ? high0 : common;
        {
            float *row = block;
            for (size_t k = high0; k < padded; k += 1)
                row[k - from] = (0.0f < (float)(int)(high0 - k) ? row[k - from] : (-__builtin_inff()));
        }
        float greatest0 = *(block);
        for (size_t k = 1; k < padded - from; k++) {
            greatest0 = decoder_scalar_max(greatest0, *(block + k));
        }
        float base[1];
        base[0] = greatest0 * 0x1.715476p-1f;
        const float less0 = (-base[0]);
        float total0 = 0.0f;
        for (size_t k = 0; k < padded - from; k++) {
            const float e0 = decoder_scalar_exp2(decoder_scalar_fma(less0, *(block + k), (0x1.715476p-1f)));
            *(block + k) = e0;
            total0 = (total0 + e0);
        }
        float inverse[1];
        sum[0] = total0;
        inverse[0] = 1.0f / sum[0];
        {
            float o0_0 = 0.0f;
            float o0_1 = 0.0f;
            float o0_2 = 0.0f;
            float o0_3 = 0.0f;
            for (size_t key_row = common; key_row < common_end; key_row++) {
                const float v0_0 = *(value + (key_row * v_stride));
                const float v0_1 = *(value + (key_row * v_stride) + 1);
                const float v0_2 = *(value + (key_row * v_stride) + 2);
                const float v0_3 = *(value + (key_row * v_stride) + 3);
                const float w0 = *(block + (key_row - from));
                o0_0 = decoder_scalar_fma(o0_0, w0, v0_0);
                o0_1 = decoder_scalar_fma(o0_1, w0, v0_1);
                o0_2 = decoder_scalar_fma(o0_2, w0, v0_2);
                o0_3 = decoder_scalar_fma(o0_3, w0, v0_3);
            }
            out[0] = (o0_0 * inverse[0]);
            out[1] = (o0_1 * inverse[0]);
            out[2] = (o0_2 * inverse[0]);
            out[3] = (o0_3 * inverse[0]);
        }
    }
}

/* keys of one head, [n][48] -> [n/16][4][16], the last panel filled up with zeros */
static decoder_SCALAR
void decoder_scalar_attention_2_pack(const float *key, size_t n, float *panels) {
    for (size_t j = 0; j < n; j += 16) {
        const size_t rows = n - j < 16 ? n - j : 16;
        const float *from = key + j * 48;
        float *to = panels + j * 4;
        for (size_t d = 0; d < 4; d++)
            for (size_t l = 0; l < 16; l++) to[d * 16 + l] = l < rows ? from[l * 48 + d] : 0.0f;
    }
}

/* attention of 2 heads of 4 over the keys of the same sequence */
static decoder_SCALAR
void decoder_scalar_attention_2(const decoder_run *run, const float *q, const float *k, const float *v, float *out,
    int thread, int threads) {
    float *scratch = run->scratch + (size_t)thread * 80, *block = scratch + 64;
    size_t total = 0, unit = 0;
    for (size_t s = 0; s < run->sequences; s++) total += ((size_t)(run->starts[s + 1] - run->starts[s])) * 2;
    const size_t begin = decoder_first(total, thread, threads), end = decoder_first(total, thread + 1, threads);
    for (size_t s = 0; s < run->sequences && unit < end; s++) {
        const size_t start = (size_t)run->starts[s], rows = (size_t)run->starts[s + 1] - start, blocks = (rows);
        const size_t key_start = start, n = rows;
        size_t packed = 2;
        for (size_t head = 0; head < 2; head++, unit += blocks) {
            if (unit + blocks <= begin || unit >= end) continue;
            const size_t kv = head;
            const float *keys = k + key_start * 48 + kv * 4, *values = v + key_start * 48 + kv * 4;
            float *panels = scratch;
            if (kv != packed) {
                decoder_scalar_attention_2_pack(keys, n, panels);
            }
            packed = kv;
            const float *query = q + start * 48 + head * 4;
            float *to = out + start * 16 + head * 4;
            const size_t from = begin > unit ? begin - unit : 0, until = end - unit < blocks ? end - unit : blocks;
            const size_t stop = until < rows ? until : rows;
            size_t i = from;
            for (; i < stop; i++)
                decoder_scalar_attention_of_rows1(query + i * 48, panels, values, 48, i, n, block, to + i * 16);
        }
    }
}

/* layer 0, self attention: softmax(query x key * 0.5) x value, 2 heads of 4, causal */
static decoder_SCALAR
void decoder_scalar_step_layer0_attention_attended(const decoder_run *run, int thread) {
    decoder_scalar_attention_2(run, run->workspace + decoder_x_attention_query_key_value,
        run->workspace + decoder_x_attention_query_key_value + 16, run->workspace +
        decoder_x_attention_query_key_value + 32, run->workspace + decoder_x_attention_attended, thread, run->threads);
}

static decoder_SCALAR
void decoder_scalar_gemm_8x8_1x1(const float *x, const float *w, const float *bias, const float *other, float *out) {
    float acc0_0 = bias[0], acc0_1 = bias[1], acc0_2 = bias[2], acc0_3 = bias[3], acc0_4 = bias[4], acc0_5 = bias[5],
        acc0_6 = bias[6], acc0_7 = bias[7];
    for (size_t k = 0; k < 8; k++) {
        const float a0 = x[k];
        const float w0 = w[k * 16];
        acc0_0 = decoder_scalar_fma(acc0_0, a0, w0);
        const float w1 = w[(1 + (k * 16))];
        acc0_1 = decoder_scalar_fma(acc0_1, a0, w1);
        const float w2 = w[(2 + (k * 16))];
        acc0_2 = decoder_scalar_fma(acc0_2, a0, w2);
        const float w3 = w[(3 + (k * 16))];
        acc0_3 = decoder_scalar_fma(acc0_3, a0, w3);
        const float w4 = w[(4 + (k * 16))];
        acc0_4 = decoder_scalar_fma(acc0_4, a0, w4);
        const float w5 = w[(5 + (k * 16))];
        acc0_5 = decoder_scalar_fma(acc0_5, a0, w5);
        const float w6 = w[(6 + (k * 16))];
        acc0_6 = decoder_scalar_fma(acc0_6, a0, w6);
        const float w7 = w[(7 + (k * 16))];
        acc0_7 = decoder_scalar_fma(acc0_7, a0, w7);
    }
    acc0_0 = (other[0] + acc0_0);
    out[0] = acc0_0;
    acc0_1 = (other[1] + acc0_1);
    out[1] = acc0_1;
    acc0_2 = (other[2] + acc0_2);
    out[2] = acc0_2;
    acc0_3 = (other[3] + acc0_3);
    out[3] = acc0_3;
    acc0_4 = (other[4] + acc0_4);
    out[4] = acc0_4;
    acc0_5 = (other[5] + acc0_5);
    out[5] = acc0_5;
    acc0_6 = (other[6] + acc0_6);
    out[6] = acc0_6;
    acc0_7 = (other[7] + acc0_7);
    out[7] = acc0_7;
}

/* out [rows][8] = x [rows][8] times weight, + bias, + other */
static decoder_SCALAR
void decoder_scalar_gemm_8x8(const float *x, const float *w, const float *bias, const float *other, float *out,
    size_t rows, int thread, int threads) {
    if (rows == 0) return;
    const size_t tiles = (rows), least = rows / tiles, taller = rows % tiles;
    const size_t begin = decoder_first(tiles, thread, threads), end = decoder_first(tiles, thread + 1, threads);
    size_t block = begin / tiles, tile = begin % tiles, row = tile * least + (tile < taller ? tile : taller);
    for (size_t unit = begin, height; unit < end; unit++, row += height, tile++) {
        if (tile == tiles) block++, tile = 0, row = 0;
        height = least + (tile < taller);
        const size_t panel = block;
        const size_t column = panel * 16;
        decoder_scalar_gemm_8x8_1x1(x + row * 16, w + panel * 128, bias + column, other + row * 16 + column,
            out + row * 16 + column);
    }
}

/* layer 0, self attention, output projection: [rows][8] x [8][8] + bias, + residual */
static decoder_SCALAR
void decoder_scalar_step_layer0_attention_output(const decoder_run *run, int thread) {
    decoder_scalar_gemm_8x8(run->workspace + decoder_x_attention_attended,
        run->weights + decoder_w_layer0_attention_output, run->weights + decoder_w_layer0_attention_output_bias,
        run->workspace + decoder_x_embedding_looked_up, run->workspace + decoder_x_attention_sum, run->rows, thread,
        run->threads);
}

/* layer 0, ffn, input rmsnorm: [rows][8] */
static decoder_SCALAR
void decoder_scalar_step_layer0_ffn_norm_in(const decoder_run *run, int thread) {
    decoder_scalar_rmsnorm_8(run->workspace + decoder_x_attention_sum, run->weights + decoder_w_layer0_ffn_norm_in,
        run->workspace + decoder_x_ffn_norm_in, run->rows, thread, run->threads);
}

static decoder_SCALAR
void decoder_scalar_gemm_8x12_1x1(const float *x, const float *w, const float *bias, float *out) {
    float acc0_0 = bias[0], acc0_1 = bias[1], acc0_2 = bias[2], acc0_3 = bias[3], acc0_4 = bias[4], acc0_5 = bias[5],
        acc0_6 = bias[6], acc0_7 = bias[7], acc0_8 = bias[8], acc0_9 = bias[9], acc0_10 = bias[10], acc0_11 = bias[11];
    for (size_t k = 0; k < 8; k++) {
        const float a0 = x[k];
        const float w0 = w[k * 16];
        acc0_0 = decoder_scalar_fma(acc0_0, a0, w0);
        const float w1 = w[(1 + (k * 16))];
        acc0_1 = decoder_scalar_fma(acc0_1, a0, w1);
        const float w2 = w[(2 + (k * 16))];
        acc0_2 = decoder_scalar_fma(acc0_2, a0, w2);
        const float w3 = w[(3 + (k * 16))];
        acc0_3 = decoder_scalar_fma(acc0_3, a0, w3);
        const float w4 = w[(4 + (k * 16))];
        acc0_4 = decoder_scalar_fma(acc0_4, a0, w4);
        const float w5 = w[(5 + (k * 16))];
        acc0_5 = decoder_scalar_fma(acc0_5, a0, w5);
        const float w6 = w[(6 + (k * 16))];
        acc0_6 = decoder_scalar_fma(acc0_6, a0, w6);
        const float w7 = w[(7 + (k * 16))];
        acc0_7 = decoder_scalar_fma(acc0_7, a0, w7);
        const float w8 = w[(8 + (k * 16))];
        acc0_8 = decoder_scalar_fma(acc0_8, a0, w8);
        const float w9 = w[(9 + (k * 16))];
        acc0_9 = decoder_scalar_fma(acc0_9, a0, w9);
        const float w10 = w[(10 + (k * 16))];
        acc0_10 = decoder_scalar_fma(acc0_10, a0, w10);
        const float w11 = w[(11 + (k * 16))];
        acc0_11 = decoder_scalar_fma(acc0_11, a0, w11);
    }
    out[0] = acc0_0;
    out[1] = acc0_1;
    out[2] = acc0_2;
    out[3] = acc0_3;
    out[4] = acc0_4;
    out[5] = acc0_5;
    out[6] = acc0_6;
    out[7] = acc0_7;
    out[8] = acc0_8;
    out[9] = acc0_9;
    out[10] = acc0_10;
    out[11] = acc0_11;
}

/* out [rows][12] = x [rows][8] times weight, + bias */
static decoder_SCALAR
void decoder_scalar_gemm_8x12(const float *x, const float *w, const float *bias, float *out, size_t rows, int thread,
    int threads) {
    if (rows == 0) return;
    const size_t tiles = (rows), least = rows / tiles, taller = rows % tiles;
    const size_t begin = decoder_first(tiles, thread, threads), end = decoder_first(tiles, thread + 1, threads);
    size_t block = begin / tiles, tile = begin % tiles, row = tile * least + (tile < taller ? tile : taller);
    for (size_t unit = begin, height; unit < end; unit++, row += height, tile++) {
        if (tile == tiles) block++, tile = 0, row = 0;
        height = least + (tile < taller);
        const size_t panel = block;
        const size_t column = panel * 16;
        decoder_scalar_gemm_8x12_1x1(x + row * 16, w + panel * 128, bias + column, out + row * 16 + column);
    }
}

/* layer 0, ffn, up projection: [rows][8] x [8][12] + bias */
static decoder_SCALAR
void decoder_scalar_step_layer0_ffn_up(const decoder_run *run, int thread) {
    decoder_scalar_gemm_8x12(run->workspace + decoder_x_ffn_norm_in, run->weights + decoder_w_layer0_ffn_up,
        run->weights + decoder_w_layer0_ffn_up_bias, run->workspace + decoder_x_ffn_up, run->rows, thread,
        run->threads);
}

static __attribute__((noinline)) decoder_SCALAR
void decoder_scalar_gemm_8x12_2_finish(const float *sums, const float *factor, float *out, size_t rows, size_t stride,
    size_t panels) {
    for (size_t r = 0; r < rows; r++) {
        for (size_t panel = 0; panel < panels; panel++) {
            float sum0 = *(sums + (r * stride + panel) * 12);
            sum0 = decoder_scalar_silu(sum0);
            sum0 = (sum0 * factor[((r * 16) + (panel * 16))]);
            out[((r * 16) + (panel * 16))] = sum0;
            float sum1 = *(sums + (r * stride + panel) * 12 + 1);
            sum1 = decoder_scalar_silu(sum1);
            sum1 = (sum1 * factor[((r * 16) + ((panel * 16) + 1))]);
            out[((r * 16) + ((panel * 16) + 1))] = sum1;
            float sum2 = *(sums + (r * stride + panel) * 12 + 2);
            sum2 = decoder_scalar_silu(sum2);
            sum2 = (sum2 * factor[((r * 16) + ((panel * 16) + 2))]);
            out[((r * 16) + ((panel * 16) + 2))] = sum2;
            float sum3 = *(sums + (r * stride + panel) * 12 + 3);
            sum3 = decoder_scalar_silu(sum3);
            sum3 = (sum3 * factor[((r * 16) + ((panel * 16) + 3))]);
            out[((r * 16) + ((panel * 16) + 3))] = sum3;
            float sum4 = *(sums + (r * stride + panel) * 12 + 4);
            sum4 = decoder_scalar_silu(sum4);
            sum4 = (sum4 * factor[((r * 16) + ((panel * 16) + 4))]);
            out[((r * 16) + ((panel * 16) + 4))] = sum4;
            float sum5 = *(sums + (r * stride + panel) * 12 + 5);
            sum5 = decoder_scalar_silu(sum5);
            sum5 = (sum5 * factor[((r * 16) + ((panel * 16) + 5))]);
            out[((r * 16) + ((panel * 16) + 5))] = sum5;
            float sum6 = *(sums + (r * stride + panel) * 12 + 6);
            sum6 = decoder_scalar_silu(sum6);
            sum6 = (sum6 * factor[((r * 16) + ((panel * 16) + 6))]);
            out[((r * 16) + ((panel * 16) + 6))] = sum6;
            float sum7 = *(sums + (r * stride + panel) * 12 + 7);
            sum7 = decoder_scalar_silu(sum7);
            sum7 = (sum7 * factor[((r * 16) + ((panel * 16) + 7))]);
            out[((r * 16) + ((panel * 16) + 7))] = sum7;
            float sum8 = *(sums + (r * stride + panel) * 12 + 8);
            sum8 = decoder_scalar_silu(sum8);
            sum8 = (sum8 * factor[((r * 16) + ((panel * 16) + 8))]);
            out[((r * 16) + ((panel * 16) + 8))] = sum8;
            float sum9 = *(sums + (r * stride + panel) * 12 + 9);
            sum9 = decoder_scalar_silu(sum9);
            sum9 = (sum9 * factor[((r * 16) + ((panel * 16) + 9))]);
            out[((r * 16) + ((panel * 16) + 9))] = sum9;
            float sum10 = *(sums + (r * stride + panel) * 12 + 10);
            sum10 = decoder_scalar_silu(sum10);
            sum10 = (sum10 * factor[((r * 16) + ((panel * 16) + 10))]);
            out[((r * 16) + ((panel * 16) + 10))] = sum10;
            float sum11 = *(sums + (r * stride + panel) * 12 + 11);
            sum11 = decoder_scalar_silu(sum11);
            sum11 = (sum11 * factor[((r * 16) + ((panel * 16) + 11))]);
            out[((r * 16) + ((panel * 16) + 11))] = sum11;
        }
    }
}

static decoder_SCALAR
void decoder_scalar_gemm_8x12_2_1x1(const float *x, const float *w, const float *bias, const float *factor,
    float *out) {
    float acc0_0 = bias[0], acc0_1 = bias[1], acc0_2 = bias[2], acc0_3 = bias[3], acc0_4 = bias[4], acc0_5 = bias[5],
        acc0_6 = bias[6], acc0_7 = bias[7], acc0_8 = bias[8], acc0_9 = bias[9], acc0_10 = bias[10], acc0_11 = bias[11];
    for (size_t k = 0; k < 8; k++) {
        const float a0 = x[k];
        const float w0 = w[k * 16];
        acc0_0 = decoder_scalar_fma(acc0_0, a0, w0);
        const float w1 = w[(1 + (k * 16))];
        acc0_1 = decoder_scalar_fma(acc0_1, a0, w1);
        const float w2 = w[(2 + (k * 16))];
        acc0_2 = decoder_scalar_fma(acc0_2, a0, w2);
        const float w3 = w[(3 + (k * 16))];
        acc0_3 = decoder_scalar_fma(acc0_3, a0, w3);
        const float w4 = w[(4 + (k * 16))];
        acc0_4 = decoder_scalar_fma(acc0_4, a0, w4);
        const float w5 = w[(5 + (k * 16))];
        acc0_5 = decoder_scalar_fma(acc0_5, a0, w5);
        const float w6 = w[(6 + (k * 16))];
        acc0_6 = decoder_scalar_fma(acc0_6, a0, w6);
        const float w7 = w[(7 + (k * 16))];
        acc0_7 = decoder_scalar_fma(acc0_7, a0, w7);
        const float w8 = w[(8 + (k * 16))];
        acc0_8 = decoder_scalar_fma(acc0_8, a0, w8);
        const float w9 = w[(9 + (k * 16))];
        acc0_9 = decoder_scalar_fma(acc0_9, a0, w9);
        const float w10 = w[(10 + (k * 16))];
        acc0_10 = decoder_scalar_fma(acc0_10, a0, w10);
        const float w11 = w[(11 + (k * 16))];
        acc0_11 = decoder_scalar_fma(acc0_11, a0, w11);
    }
    float sums[12];
    sums[0] = acc0_0;
    sums[1] = acc0_1;
    sums[2] = acc0_2;
    sums[3] = acc0_3;
    sums[4] = acc0_4;
    sums[5] = acc0_5;
    sums[6] = acc0_6;
    sums[7] = acc0_7;
    sums[8] = acc0_8;
    sums[9] = acc0_9;
    sums[10] = acc0_10;
    sums[11] = acc0_11;
    decoder_scalar_gemm_8x12_2_finish(sums, factor, out, 1, 1, 1);
}

/* out [rows][12] = x [rows][8] times weight, + bias, silu, times factor */
static decoder_SCALAR
void decoder_scalar_gemm_8x12_2(const float *x, const float *w, const float *bias, const float *factor, float *out,
    size_t rows, int thread, int threads) {
    if (rows == 0) return;
    const size_t tiles = (rows), least = rows / tiles, taller = rows % tiles;
    const size_t begin = decoder_first(tiles, thread, threads), end = decoder_first(tiles, thread + 1, threads);
    size_t block = begin / tiles, tile = begin % tiles, row = tile * least + (tile < taller ? tile : taller);
    for (size_t unit = begin, height; unit < end; unit++, row += height, tile++) {
        if (tile == tiles) block++, tile = 0, row = 0;
        height = least + (tile < taller);
        const size_t panel = block;
        const size_t column = panel * 16;
        decoder_scalar_gemm_8x12_2_1x1(x + row * 16, w + panel * 128, bias + column, factor + row * 16 + column,
            out + row * 16 + column);
    }
}

/* layer 0, ffn, gate projection: [rows][8] x [8][12] + bias, silu, times the other product */
static decoder_SCALAR
void decoder_scalar_step_layer0_ffn_gate(const decoder_run *run, int thread) {
    decoder_scalar_gemm_8x12_2(run->workspace + decoder_x_ffn_norm_in, run->weights + decoder_w_layer0_ffn_gate,
        run->weights + decoder_w_layer0_ffn_gate_bias, run->workspace + decoder_x_ffn_up,
        run->workspace + decoder_x_ffn_gated, run->rows, thread, run->threads);
}

static decoder_SCALAR
void decoder_scalar_gemm_12x8_1x1(const float *x, const float *w, const float *bias, const float *other, float *out) {
    float acc0_0 = bias[0], acc0_1 = bias[1], acc0_2 = bias[2], acc0_3 = bias[3], acc0_4 = bias[4], acc0_5 = bias[5],
        acc0_6 = bias[6], acc0_7 = bias[7];
    for (size_t k = 0; k < 12; k++) {
        const float a0 = x[k];
        const float w0 = w[k * 16];
        acc0_0 = decoder_scalar_fma(acc0_0, a0, w0);
        const float w1 = w[(1 + (k * 16))];
        acc0_1 = decoder_scalar_fma(acc0_1, a0, w1);
        const float w2 = w[(2 + (k * 16))];
        acc0_2 = decoder_scalar_fma(acc0_2, a0, w2);
        const float w3 = w[(3 + (k * 16))];
        acc0_3 = decoder_scalar_fma(acc0_3, a0, w3);
        const float w4 = w[(4 + (k * 16))];
        acc0_4 = decoder_scalar_fma(acc0_4, a0, w4);
        const float w5 = w[(5 + (k * 16))];
        acc0_5 = decoder_scalar_fma(acc0_5, a0, w5);
        const float w6 = w[(6 + (k * 16))];
        acc0_6 = decoder_scalar_fma(acc0_6, a0, w6);
        const float w7 = w[(7 + (k * 16))];
        acc0_7 = decoder_scalar_fma(acc0_7, a0, w7);
    }
    acc0_0 = (other[0] + acc0_0);
    out[0] = acc0_0;
    acc0_1 = (other[1] + acc0_1);
    out[1] = acc0_1;
    acc0_2 = (other[2] + acc0_2);
    out[2] = acc0_2;
    acc0_3 = (other[3] + acc0_3);
    out[3] = acc0_3;
    acc0_4 = (other[4] + acc0_4);
    out[4] = acc0_4;
    acc0_5 = (other[5] + acc0_5);
    out[5] = acc0_5;
    acc0_6 = (other[6] + acc0_6);
    out[6] = acc0_6;
    acc0_7 = (other[7] + acc0_7);
    out[7] = acc0_7;
}

/* out [rows][8] = x [rows][12] times weight, + bias, + other */
static decoder_SCALAR
void decoder_scalar_gemm_12x8(const float *x, const float *w, const float *bias, const float *other, float *out,
    size_t rows, int thread, int threads) {
    if (rows == 0) return;
    const size_t tiles = (rows), least = rows / tiles, taller = rows % tiles;
    const size_t begin = decoder_first(tiles, thread, threads), end = decoder_first(tiles, thread + 1, threads);
    size_t block = begin / tiles, tile = begin % tiles, row = tile * least + (tile < taller ? tile : taller);
    for (size_t unit = begin, height; unit < end; unit++, row += height, tile++) {
        if (tile == tiles) block++, tile = 0, row = 0;
        height = least + (tile < taller);
        const size_t panel = block;
        const size_t column = panel * 16;
        decoder_scalar_gemm_12x8_1x1(x + row * 16, w + panel * 192, bias + column, other + row * 16 + column,
            out + row * 16 + column);
    }
}

/* layer 0, ffn, down projection: [rows][12] x [12][8] + bias, + residual */
static decoder_SCALAR
void decoder_scalar_step_layer0_ffn_down(const decoder_run *run, int thread) {
    decoder_scalar_gemm_12x8(run->workspace + decoder_x_ffn_gated, run->weights + decoder_w_layer0_ffn_down,
        run->weights + decoder_w_layer0_ffn_down_bias, run->workspace + decoder_x_attention_sum,
        run->workspace + decoder_x_ffn_sum, run->rows, thread, run->threads);
}

/* final rmsnorm: [rows][8] */
static decoder_SCALAR
void decoder_scalar_step_decoder_final_norm(const decoder_run *run, int thread) {
    decoder_scalar_rmsnorm_8(run->workspace + decoder_x_ffn_sum, run->weights + decoder_w_final_norm,
        run->workspace + decoder_x_ffn_sum, run->rows, thread, run->threads);
}

static decoder_SCALAR
void decoder_scalar_gemm_8x9_1x1_last(const float *x, const float *w, float *out) {
    const float none = 0.0f;
    float acc0_0 = none, acc0_1 = none, acc0_2 = none, acc0_3 = none, acc0_4 = none, acc0_5 = none, acc0_6 = none,
        acc0_7 = none, acc0_8 = none;
    for (size_t k = 0; k < 8; k++) {
        const float a0 = x[k];
        const float w0 = w[k * 16];
        acc0_0 = decoder_scalar_fma(acc0_0, a0, w0);
        const float w1 = w[(1 + (k * 16))];
        acc0_1 = decoder_scalar_fma(acc0_1, a0, w1);
        const float w2 = w[(2 + (k * 16))];
        acc0_2 = decoder_scalar_fma(acc0_2, a0, w2);
        const float w3 = w[(3 + (k * 16))];
        acc0_3 = decoder_scalar_fma(acc0_3, a0, w3);
        const float w4 = w[(4 + (k * 16))];
        acc0_4 = decoder_scalar_fma(acc0_4, a0, w4);
        const float w5 = w[(5 + (k * 16))];
        acc0_5 = decoder_scalar_fma(acc0_5, a0, w5);
        const float w6 = w[(6 + (k * 16))];
        acc0_6 = decoder_scalar_fma(acc0_6, a0, w6);
        const float w7 = w[(7 + (k * 16))];
        acc0_7 = decoder_scalar_fma(acc0_7, a0, w7);
        const float w8 = w[(8 + (k * 16))];
        acc0_8 = decoder_scalar_fma(acc0_8, a0, w8);
    }
    out[0] = acc0_0;
    out[1] = acc0_1;
    out[2] = acc0_2;
    out[3] = acc0_3;
    out[4] = acc0_4;
    out[5] = acc0_5;
    out[6] = acc0_6;
    out[7] = acc0_7;
    out[8] = acc0_8;
}

/* out [rows][9] = x [rows][8] times weight */
static decoder_SCALAR
void decoder_scalar_gemm_8x9(const float *x, const float *w, float *out, size_t rows, int thread, int threads) {
    if (rows == 0) return;
    const size_t tiles = (rows), least = rows / tiles, taller = rows % tiles;
    const size_t begin = decoder_first(tiles, thread, threads), end = decoder_first(tiles, thread + 1, threads);
    size_t block = begin / tiles, tile = begin % tiles, row = tile * least + (tile < taller ? tile : taller);
    for (size_t unit = begin, height; unit < end; unit++, row += height, tile++) {
        if (tile == tiles) block++, tile = 0, row = 0;
        height = least + (tile < taller);
        const size_t panel = block;
        const size_t column = panel * 16;
        if (block == 0) {
            decoder_scalar_gemm_8x9_1x1_last(x + row * 16, w + panel * 128, out + row * 9 + column);
            continue;
        }
    }
}

/* logits: [rows][8] x [8][9] */
static decoder_SCALAR
void decoder_scalar_step_logits(const decoder_run *run, int thread) {
    decoder_scalar_gemm_8x9(run->workspace + decoder_x_ffn_sum, run->weights + decoder_w_head, run->out_logits,
        run->rows, thread, run->threads);
}

/* copy over 8 columns: one row */
static decoder_SCALAR
void decoder_scalar_copy_8_row(const float *from, float *to) {
    for (size_t c = 0; c < 8; c++) {
        {
            float value = from[c];
            to[c] = value;
        }
    }
}

static decoder_SCALAR
void decoder_scalar_copy_8(const float *x, float *out, size_t rows, int thread, int threads) {
    const size_t end = decoder_first(rows, thread + 1, threads);
    for (size_t row = decoder_first(rows, thread, threads); row < end; row++)
        decoder_scalar_copy_8_row(x + row * 16, out + row * 8);
}

/* output hidden: [rows][8] */
static decoder_SCALAR
void decoder_scalar_step_copy_hidden(const decoder_run *run, int thread) {
    decoder_scalar_copy_8(run->workspace + decoder_x_ffn_sum, run->out_hidden, run->rows, thread, run->threads);
}

static void (*const decoder_scalar_tasks[])(const decoder_run *run, int thread) = {
    decoder_scalar_step_embedding,
    decoder_scalar_step_layer0_attention_norm_in,
    decoder_scalar_step_layer0_attention_query_key_value,
    decoder_scalar_step_layer0_attention_query_rope,
    decoder_scalar_step_layer0_attention_key_rope,
    decoder_scalar_step_layer0_attention_attended,
    decoder_scalar_step_layer0_attention_output,
    decoder_scalar_step_layer0_ffn_norm_in,
    decoder_scalar_step_layer0_ffn_up,
    decoder_scalar_step_layer0_ffn_gate,
    decoder_scalar_step_layer0_ffn_down,
    decoder_scalar_step_decoder_final_norm,
    decoder_scalar_step_logits,
    decoder_scalar_step_copy_hidden,
};

static __attribute__((noinline)) decoder_SCALAR
void decoder_scalar_forward_chunk(decoder_run *run) {
    decoder_forward_steps(run, decoder_scalar_tasks);
}

/* rows of 8 columns, looked up: row `row` of the chunk, row `index` of its sequence */
static decoder_SCALAR
void decoder_scalar_rows_2_row(const decoder_run *run, size_t row, size_t sequence, size_t index, const float *table,
    float *to) {
    (void)run, (void)row, (void)sequence, (void)index;
    const size_t id = (size_t)run->tokens[row];
    const float *from = table + id * 8;
    for (size_t c = 0; c < 8; c++) {
        {
            float value = from[c];
            to[c] = value;
        }
    }
    to[8] = 0.0f;
    to[9] = 0.0f;
    to[10] = 0.0f;
    to[11] = 0.0f;
    to[12] = 0.0f;
    to[13] = 0.0f;
    to[14] = 0.0f;
    to[15] = 0.0f;
}

static decoder_SCALAR
void decoder_scalar_rows_2(const decoder_run *run, const float *table, float *out, int thread, int threads) {
    const size_t end = decoder_first(run->rows, thread + 1, threads);
    size_t sequence = 0;
    for (size_t row = decoder_first(run->rows, thread, threads); row < end; row++) {
        while (row >= (size_t)run->starts[sequence + 1]) sequence++;
        const size_t index = row - (size_t)run->starts[sequence] + (size_t)run->states[sequence]->rows;
        decoder_scalar_rows_2_row(run, row, sequence, index, table, out + row * 16);
    }
}

/* embedding: [rows][8] of a table [9][8] */
static decoder_SCALAR
void decoder_scalar_decode_step_embedding(const decoder_run *run, int thread) {
    decoder_scalar_rows_2(run, run->weights + decoder_w_embedding_tokens,
        run->workspace + decoder_decode_x_embedding_looked_up, thread, run->threads);
}

/* layer 0, self attention, input rmsnorm: [rows][8] */
static decoder_SCALAR
void decoder_scalar_decode_step_layer0_attention_norm_in(const decoder_run *run, int thread) {
    decoder_scalar_rmsnorm_8(run->workspace + decoder_decode_x_embedding_looked_up,
        run->weights + decoder_w_layer0_attention_norm_in, run->workspace + decoder_decode_x_attention_norm_in,
        run->rows, thread, run->threads);
}

/* layer 0, self attention, query, key and value projection: [rows][8] x [8][48] + bias */
static decoder_SCALAR
void decoder_scalar_decode_step_layer0_attention_query_key_value(const decoder_run *run, int thread) {
    decoder_scalar_gemm_8x48(run->workspace + decoder_decode_x_attention_norm_in,
        run->weights + decoder_w_layer0_attention_query_key_value,
        run->weights + decoder_w_layer0_attention_query_key_value_bias,
        run->workspace + decoder_decode_x_attention_query_key_value, run->rows, thread, run->threads);
}

/* 4 columns of 2 heads rotated by position: one head of one row */
static decoder_SCALAR
void decoder_scalar_rope_2_head(const float *from, const float *c, const float *s, float *to) {
    for (size_t i = 0; i < 2; i++) {
        const float u = from[i], w = *(from + 2 + i);
        const float cosine = c[i], sine = s[i];
        to[i] = decoder_scalar_fma((u * cosine), -w, sine);
        *(to + 2 + i) = decoder_scalar_fma((w * cosine), u, sine);
    }
}

static decoder_SCALAR
void decoder_scalar_rope_2(const decoder_run *run, const float *x, const float *cosine, const float *sine, float *out,
    int thread, int threads) {
    const size_t end = decoder_first(run->rows, thread + 1, threads);
    size_t sequence = 0;
    for (size_t row = decoder_first(run->rows, thread, threads); row < end; row++) {
        while (row >= (size_t)run->starts[sequence + 1]) sequence++;
        size_t index = row - (size_t)run->starts[sequence] + (size_t)run->states[sequence]->rows;
        const size_t at = index * 2;
        for (size_t head = 0; head < 2; head++)
            decoder_scalar_rope_2_head(x + row * 48 + head * 4, cosine + at, sine + at, out + row * 48 + head * 4);
    }
}

/* layer 0, self attention, rotary embedding of the query: [rows][8], 2 heads of 4 */
static decoder_SCALAR
void decoder_scalar_decode_step_layer0_attention_query_rope(const decoder_run *run, int thread) {
    decoder_scalar_rope_2(run, run->workspace + decoder_decode_x_attention_query_key_value,
        run->weights + decoder_w_rope_cos_4_10000_4, run->weights + decoder_w_rope_sin_4_10000_4,
        run->workspace + decoder_decode_x_attention_query_key_value, thread, run->threads);
}

/* layer 0, self attention, rotary embedding of the key: [rows][8], 2 heads of 4 */
static decoder_SCALAR
void decoder_scalar_decode_step_layer0_attention_key_rope(const decoder_run *run, int thread) {
    decoder_scalar_rope_2(run, run->workspace + decoder_decode_x_attention_query_key_value + 16,
        run->weights + decoder_w_rope_cos_4_10000_4, run->weights + decoder_w_rope_sin_4_10000_4,
        run->workspace + decoder_decode_x_attention_query_key_value + 16, thread, run->threads);
}

/* rows of 2 heads of 4 to their slots in panels */
static decoder_SCALAR
void decoder_scalar_store(const decoder_run *run, const float *x, size_t offset, int thread, int threads) {
    const size_t end = decoder_first(run->rows, thread + 1, threads);
    size_t sequence = 0;
    for (size_t row = decoder_first(run->rows, thread, threads); row < end; row++) {
        while (row >= (size_t)run->starts[sequence + 1]) sequence++;
        decoder_state *state = run->states[sequence];
        size_t slot = row - (size_t)run->starts[sequence] + (size_t)state->rows;
        const float *from = x + row * 48;
        float *to = decoder_floats(state) + offset + slot / 16 * 64 + slot % 16;
        for (size_t head = 0; head < 2; head++) {
            for (size_t d = 0; d < 4; d++) {
                __builtin_prefetch((const float *)(const void *)(to + (head + (head + 1 < 2)) * 64 + d * 16), 0, 3);
                to[head * 64 + d * 16] = from[head * 4 + d];
            }
        }
        if (row + 1 == (size_t)run->starts[sequence + 1] && (slot % 16 == 0 || row > (size_t)run->starts[sequence])) {
            const size_t behind = 15 - slot % 16;
            for (size_t head = 0; head < 2; head++) {
                for (size_t d = 0; d < 4; d++)
                    for (size_t k = 1; k <= behind; k++) to[head * 64 + d * 16 + k] = 0;
            }
        }
    }
}

/* layer 0, self attention, keys: [rows][8] to the state */
static decoder_SCALAR
void decoder_scalar_decode_step_layer0_attention_keys(const decoder_run *run, int thread) {
    decoder_scalar_store(run, run->workspace + decoder_decode_x_attention_query_key_value + 16,
        decoder_cache_layer0_attention_keys, thread, run->threads);
}

/* rows of 2 heads of 4 to their slots */
static decoder_SCALAR
void decoder_scalar_store_2(const decoder_run *run, const float *x, size_t offset, int thread, int threads) {
    const size_t end = decoder_first(run->rows, thread + 1, threads);
    size_t sequence = 0;
    for (size_t row = decoder_first(run->rows, thread, threads); row < end; row++) {
        while (row >= (size_t)run->starts[sequence + 1]) sequence++;
        decoder_state *state = run->states[sequence];
        size_t slot = row - (size_t)run->starts[sequence] + (size_t)state->rows;
        const float *from = x + row * 48;
        float *to = decoder_floats(state) + offset + slot * 4;
        for (size_t head = 0; head < 2; head++) {
            for (size_t d = 0; d < 4; d++) {
                to[head * 64 + d] = from[head * 4 + d];
            }
        }
    }
}

/* layer 0, self attention, values: [rows][8] to the state */
static decoder_SCALAR
void decoder_scalar_decode_step_layer0_attention_values(const decoder_run *run, int thread) {
    decoder_scalar_store_2(run, run->workspace + decoder_decode_x_attention_query_key_value + 32,
        decoder_cache_layer0_attention_values, thread, run->threads);
}

/* attention of 2 heads of 4 over the keys of the same sequence */
static decoder_SCALAR
void decoder_scalar_attention_3(const decoder_run *run, const float *q, size_t k, size_t v, float *out, int thread,
    int threads) {
    float *scratch = run->scratch + (size_t)thread * 16, *block = scratch;
    size_t total = 0, unit = 0;
    for (size_t s = 0; s < run->sequences; s++) total += ((size_t)(run->starts[s + 1] - run->starts[s])) * 2;
    const size_t begin = decoder_first(total, thread, threads), end = decoder_first(total, thread + 1, threads);
    for (size_t s = 0; s < run->sequences && unit < end; s++) {
        const size_t start = (size_t)run->starts[s], rows = (size_t)run->starts[s + 1] - start, blocks = (rows);
        const size_t past = (size_t)run->states[s]->rows;
        (void)past;
        decoder_state *home = run->states[s];
        const size_t n = past + rows;
        for (size_t head = 0; head < 2; head++, unit += blocks) {
            if (unit + blocks <= begin || unit >= end) continue;
            const size_t kv = head;
            const float *keys = decoder_cache(home) + k + kv * 64, *values = decoder_cache(home) + v + kv * 64;
            const float *panels = keys;
            const float *query = q + start * 48 + head * 4;
            float *to = out + start * 16 + head * 4;
            const size_t from = begin > unit ? begin - unit : 0, until = end - unit < blocks ? end - unit : blocks;
            const size_t stop = until < rows ? until : rows;
            size_t i = from;
            for (; i < stop; i++)
                decoder_scalar_attention_of_rows1(query + i * 48, panels, values, 4, past + i, n, block, to + i * 16);
        }
    }
}

/* layer 0, self attention: softmax(query x key * 0.5) x value, 2 heads of 4, causal */
static decoder_SCALAR
void decoder_scalar_decode_step_layer0_attention_attended(const decoder_run *run, int thread) {
    decoder_scalar_attention_3(run, run->workspace + decoder_decode_x_attention_query_key_value,
        decoder_cache_layer0_attention_keys, decoder_cache_layer0_attention_values,
        run->workspace + decoder_decode_x_attention_attended, thread, run->threads);
}

/* layer 0, self attention, output projection: [rows][8] x [8][8] + bias, + residual */
static decoder_SCALAR
void decoder_scalar_decode_step_layer0_attention_output(const decoder_run *run, int thread) {
    decoder_scalar_gemm_8x8(run->workspace + decoder_decode_x_attention_attended,
        run->weights + decoder_w_layer0_attention_output, run->weights + decoder_w_layer0_attention_output_bias,
        run->workspace + decoder_decode_x_embedding_looked_up, run->workspace + decoder_decode_x_attention_sum,
        run->rows, thread, run->threads);
}

/* layer 0, ffn, input rmsnorm: [rows][8] */
static decoder_SCALAR
void decoder_scalar_decode_step_layer0_ffn_norm_in(const decoder_run *run, int thread) {
    decoder_scalar_rmsnorm_8(run->workspace + decoder_decode_x_attention_sum, run->weights +
        decoder_w_layer0_ffn_norm_in, run->workspace + decoder_decode_x_ffn_norm_in, run->rows, thread, run->threads);
}

/* layer 0, ffn, up projection: [rows][8] x [8][12] + bias */
static decoder_SCALAR
void decoder_scalar_decode_step_layer0_ffn_up(const decoder_run *run, int thread) {
    decoder_scalar_gemm_8x12(run->workspace + decoder_decode_x_ffn_norm_in, run->weights + decoder_w_layer0_ffn_up,
        run->weights + decoder_w_layer0_ffn_up_bias, run->workspace + decoder_decode_x_ffn_up, run->rows, thread,
        run->threads);
}

/* layer 0, ffn, gate projection: [rows][8] x [8][12] + bias, silu, times the other product */
static decoder_SCALAR
void decoder_scalar_decode_step_layer0_ffn_gate(const decoder_run *run, int thread) {
    decoder_scalar_gemm_8x12_2(run->workspace + decoder_decode_x_ffn_norm_in, run->weights + decoder_w_layer0_ffn_gate,
        run->weights + decoder_w_layer0_ffn_gate_bias, run->workspace + decoder_decode_x_ffn_up,
        run->workspace + decoder_decode_x_ffn_gated, run->rows, thread, run->threads);
}

/* layer 0, ffn, down projection: [rows][12] x [12][8] + bias, + residual */
static decoder_SCALAR
void decoder_scalar_decode_step_layer0_ffn_down(const decoder_run *run, int thread) {
    decoder_scalar_gemm_12x8(run->workspace + decoder_decode_x_ffn_gated, run->weights + decoder_w_layer0_ffn_down,
        run->weights + decoder_w_layer0_ffn_down_bias, run->workspace + decoder_decode_x_attention_sum,
        run->workspace + decoder_decode_x_ffn_sum, run->rows, thread, run->threads);
}

/* final rmsnorm: [rows][8] */
static decoder_SCALAR
void decoder_scalar_decode_step_decoder_final_norm(const decoder_run *run, int thread) {
    decoder_scalar_rmsnorm_8(run->workspace + decoder_decode_x_ffn_sum, run->weights + decoder_w_final_norm,
        run->workspace + decoder_decode_x_ffn_sum, run->rows, thread, run->threads);
}

/* last of the rows of a sequence: one sequence */
static decoder_SCALAR
void decoder_scalar_pool_row(const float *from, size_t count, float *to) {
    (void)count;
    for (size_t c = 0; c < 8; c++) {
        {
            const float next = *(from + ((count - 1) * 16) + c);
            float value = next;
            to[c] = value;
        }
    }
}

static decoder_SCALAR
void decoder_scalar_pool(const decoder_run *run, const float *x, float *out, int thread, int threads) {
    const size_t end = decoder_first(run->ended, thread + 1, threads);
    for (size_t sequence = decoder_first(run->ended, thread, threads); sequence < end; sequence++) {
        const size_t start = (size_t)run->starts[sequence];
        decoder_scalar_pool_row(x + start * 16, (size_t)run->starts[sequence + 1] - start, out + sequence * 16);
    }
}

/* pool: [rows][8] to [sequences][8], last */
static decoder_SCALAR
void decoder_scalar_decode_step_pool(const decoder_run *run, int thread) {
    decoder_scalar_pool(run, run->workspace + decoder_decode_x_ffn_sum, run->workspace + decoder_decode_x_pool, thread,
        run->threads);
}

/* logits: [sequences][8] x [8][9] */
static decoder_SCALAR
void decoder_scalar_decode_step_logits(const decoder_run *run, int thread) {
    decoder_scalar_gemm_8x9(run->workspace + decoder_decode_x_pool, run->weights + decoder_w_head, run->out_logits,
        run->ended, thread, run->threads);
}

/* output hidden: [rows][8] */
static decoder_SCALAR
void decoder_scalar_decode_step_copy_hidden(const decoder_run *run, int thread) {
    decoder_scalar_copy_8(run->workspace + decoder_decode_x_ffn_sum, run->out_hidden, run->rows, thread, run->threads);
}

static void (*const decoder_scalar_decode_tasks[])(const decoder_run *run, int thread) = {
    decoder_scalar_decode_step_embedding,
    decoder_scalar_decode_step_layer0_attention_norm_in,
    decoder_scalar_decode_step_layer0_attention_query_key_value,
    decoder_scalar_decode_step_layer0_attention_query_rope,
    decoder_scalar_decode_step_layer0_attention_key_rope,
    decoder_scalar_decode_step_layer0_attention_keys,
    decoder_scalar_decode_step_layer0_attention_values,
    decoder_scalar_decode_step_layer0_attention_attended,
    decoder_scalar_decode_step_layer0_attention_output,
    decoder_scalar_decode_step_layer0_ffn_norm_in,
    decoder_scalar_decode_step_layer0_ffn_up,
    decoder_scalar_decode_step_layer0_ffn_gate,
    decoder_scalar_decode_step_layer0_ffn_down,
    decoder_scalar_decode_step_decoder_final_norm,
    decoder_scalar_decode_step_pool,
    decoder_scalar_decode_step_logits,
    decoder_scalar_decode_step_copy_hidden,
};

static __attribute__((noinline)) decoder_SCALAR
void decoder_scalar_decode_chunk(decoder_run *run) {
    decoder_decode_steps(run, decoder_scalar_decode_tasks);
}

const char *decoder_status_text(int status) {
    switch (status) {
        case DECODER_OK: return "fine";
        case DECODER_BAD_ARGUMENT: return "a null pointer, a struct of another size, or a bad count";
        case DECODER_BAD_WEIGHTS: return "the weights are damaged, or of another size, model, layout or version";
        case DECODER_NO_TARGET: return "this machine lacks the instructions, or is big-endian";
        case DECODER_SHORT_WORKSPACE: return "the workspace is too small or not aligned";
        case DECODER_BAD_LENGTH: return "a sequence is empty or too long";
        case DECODER_BAD_TOKEN: return "an id is outside its table";
        case DECODER_BAD_STATE:
            return "a state or source that was not made, is of another model, or stands twice in a call";
        case DECODER_TOO_FAR: return "a state cannot go back that far";
        default: return "unknown status";
    }
}

/* FNV-1a, 64 bit */
static uint64_t decoder_hash(uint64_t hash, const unsigned char *bytes, size_t size) {
    for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t decoder_u64(const unsigned char *b) {
    return (uint64_t)b[0] | (uint64_t)b[1] << 8 | (uint64_t)b[2] << 16 | (uint64_t)b[3] << 24 | (uint64_t)b[4] << 32 |
        (uint64_t)b[5] << 40 | (uint64_t)b[6] << 48 | (uint64_t)b[7] << 56;
}

/* The header of a .attnw: magic, version, hashes of model and layout, dtype, sizes, zeros, checksums. */
static int decoder_good_weights(const unsigned char *bytes, size_t size, int verify) {
    const uint64_t seed = UINT64_C(0xcbf29ce484222325);
    if (size != DECODER_WEIGHTS_BYTES || (uintptr_t)bytes % DECODER_ALIGNMENT != 0) return 0;
    if (decoder_u64(bytes) != UINT64_C(0x1a0a0d574e545441) || decoder_u64(bytes + 8) != (UINT64_C(1) << 32 | 1))
        return 0;
    if (decoder_u64(bytes + 120) != decoder_hash(seed, bytes, 120)) return 0;
    if (decoder_u64(bytes + 16) != UINT64_C(0x3bf76f72881550e8) ||
        decoder_u64(bytes + 56) != UINT64_C(0xa27111a092a5ea70))
        return 0;
    if (decoder_u64(bytes + 24) != UINT64_C(21) << 32) return 0; /* tensors; f32 */
    if (decoder_u64(bytes + 32) != 128 || decoder_u64(bytes + 40) != UINT64_C(5504)) return 0;
    if (decoder_u64(bytes + 64) | decoder_u64(bytes + 72) | decoder_u64(bytes + 80) | decoder_u64(bytes + 88) |
        decoder_u64(bytes + 96) | decoder_u64(bytes + 104) | decoder_u64(bytes + 112))
        return 0;
    return !verify || decoder_u64(bytes + 48) == decoder_hash(seed, bytes + 128, (size_t)5504u);
}

static int decoder_same(const char *a, const char *b) {
    return *a == *b && (*a == 0 || decoder_same(a + 1, b + 1));
}

static const char *const decoder_targets[] = {"scalar"};

/* Index of the best target that this CPU has, or of the requested one; -1: none. */
static int decoder_pick(const char *wanted) {
    if (!wanted || decoder_same(wanted, "scalar")) return 0;
    return -1;
}

int decoder_init(decoder_ctx *ctx, const void *weights, size_t bytes, const decoder_options *options) {
    if (!ctx || !weights || (options && options->size != sizeof *options)) return DECODER_BAD_ARGUMENT;
    const int threads = options && options->threads > 0 ? options->threads : 1;
    if (options && (options->threads < 0 || options->threads > 4096 || (threads > 1 && !options->parallel_for)))
        return DECODER_BAD_ARGUMENT;
    if (!decoder_good_weights((const unsigned char *)weights, bytes, options ? options->verify : 0))
        return DECODER_BAD_WEIGHTS;
    const int target = decoder_pick(options ? options->target : NULL);
    static const uint16_t one = 1; /* the numbers of the weights begin with their lowest byte */
    if (target < 0 || *(const unsigned char *)&one != 1) return DECODER_NO_TARGET;
    ctx->weights = (const float *)(const void *)((const unsigned char *)weights + 128);
    ctx->target = target;
    ctx->threads = threads;
    ctx->parallel_for = options ? options->parallel_for : NULL;
    ctx->pool = options ? options->pool : NULL;
    ctx->on_step = options ? options->on_step : NULL;
    ctx->watcher = options ? options->watcher : NULL;
    ctx->least_work = options && options->least_work ? options->least_work : DECODER_LEAST_WORK;
    return DECODER_OK;
}

const char *decoder_target(const decoder_ctx *ctx) {
    return ctx ? decoder_targets[ctx->target] : "";
}

static int decoder_good_state(const decoder_state *state) {
    if ((uintptr_t)state % DECODER_ALIGNMENT != 0 ||
        state->kind != (UINT64_C(0x3bf76f72881550e8) ^ UINT64_C(0x9965c0dd17186d3f)))
        return 0;
    return state->rows >= 0 && state->rows <= state->most && state->most <= 4;
}

int decoder_state_init(void *state, size_t bytes) {
    if (!state) return DECODER_BAD_ARGUMENT;
    if (bytes < DECODER_STATE_BYTES || (uintptr_t)state % DECODER_ALIGNMENT != 0) return DECODER_SHORT_WORKSPACE;
    decoder_state fresh = {0};
    fresh.kind = (UINT64_C(0x3bf76f72881550e8) ^ UINT64_C(0x9965c0dd17186d3f));
    *(decoder_state *)state = fresh;
    return DECODER_OK;
}

int decoder_state_rows(const void *state) {
    return state && decoder_good_state((const decoder_state *)state) ? ((const decoder_state *)state)->rows : -1;
}

int decoder_state_copy(void *to, const void *from) {
    static const struct {
        size_t offset, heads, row, slots; /* `row` and `offset` in bytes */
        int panels;
    } caches[] = {{0, 2, 16, 16, 1}, {512, 2, 16, 16, 0}};
    if (!to || !from) return DECODER_BAD_ARGUMENT;
    const decoder_state *old = (const decoder_state *)from;
    decoder_state *fresh = (decoder_state *)to;
    if (!decoder_good_state(old) || (uintptr_t)to % DECODER_ALIGNMENT != 0) return DECODER_BAD_STATE;
    if (fresh == old) return DECODER_OK;
    *fresh = *old;
    for (size_t c = 0; c < sizeof caches / sizeof *caches; c++) {
        size_t used = (size_t)old->most < caches[c].slots ? (size_t)old->most : caches[c].slots;
        if (caches[c].panels) used = (used + 15) / 16 * 16;
        for (size_t head = 0; head < caches[c].heads; head++) {
            const size_t at = caches[c].offset + head * caches[c].slots * caches[c].row;
            __builtin_memcpy((unsigned char *)decoder_floats(fresh) + at,
                (const unsigned char *)decoder_cache(old) + at, used * caches[c].row);
        }
    }
    return DECODER_OK;
}

int decoder_state_rewind(void *state, int rows) {
    if (!state) return DECODER_BAD_ARGUMENT;
    decoder_state *held = (decoder_state *)state;
    if (!decoder_good_state(held)) return DECODER_BAD_STATE;
    if (rows < 0 || rows > held->rows) return DECODER_BAD_LENGTH;
    held->rows = rows;
    if (rows == 0) held->most = 0;
    return DECODER_OK;
}

static int decoder_check_rows(const decoder_rows *input) {
    size_t rows = 0;
    for (int b = 0; b < input->batch; b++) {
        const decoder_state *state = (const decoder_state *)input->states[b];
        if (!state) return DECODER_BAD_ARGUMENT;
        if (!decoder_good_state(state)) return DECODER_BAD_STATE;
        for (int other = 0; other < b; other++)
            if (input->states[other] == input->states[b]) return DECODER_BAD_STATE;
        const int32_t length = input->lengths ? input->lengths[b] : 1;
        if (length < 1 || length > 4 - state->rows) return DECODER_BAD_LENGTH;
        rows += (size_t)length;
    }
    (void)rows;
    for (size_t i = 0; i < rows; i++)
        if (input->tokens[i] < 0 || input->tokens[i] >= 9) return DECODER_BAD_TOKEN;
    return DECODER_OK;
}

int decoder_decode(const decoder_ctx *ctx, const decoder_rows *input, decoder_decoded *output, void *workspace,
    size_t bytes) {
    if (!ctx || !input || !output || !workspace || input->size != sizeof *input || output->size != sizeof *output)
        return DECODER_BAD_ARGUMENT;
    if (input->batch < 1 || !input->states || !input->tokens) return DECODER_BAD_ARGUMENT;
    if (bytes < DECODER_DECODE_WORKSPACE_BYTES(ctx->threads) || (uintptr_t)workspace % DECODER_ALIGNMENT != 0)
        return DECODER_SHORT_WORKSPACE;
    const int status = decoder_check_rows(input);
    if (status != DECODER_OK) return status;
    unsigned char *memory = (unsigned char *)workspace;
    int32_t *starts = (int32_t *)(void *)memory;
    decoder_run run = {0};
    run.weights = ctx->weights;
    run.workspace = (float *)(void *)(memory + 128);
    run.scratch = run.workspace + 1328;
    run.threads = ctx->threads;
    run.parallel_for = ctx->parallel_for;
    run.pool = ctx->pool;
    run.on_step = ctx->on_step;
    run.watcher = ctx->watcher;
    run.least_work = ctx->least_work;
    run.starts = starts;
    run.tokens = input->tokens;
    run.out_hidden = output->hidden;
    run.out_logits = output->logits;
    for (int b = 0; b < input->batch; b++) {
        decoder_state *state = (decoder_state *)input->states[b];
        state->total = state->rows + (input->lengths ? input->lengths[b] : 1);
    }
    size_t done = 0; /* rows of sequence b in earlier chunks */
    for (int b = 0; b < input->batch;) {
        size_t rows = 0, sequences = 0, ended = 0, after = 0;
        starts[0] = 0;
        run.self_scores = 0;
        for (int next = b; next < input->batch && rows < 16; next++) {
            const size_t length = (size_t)(input->lengths ? input->lengths[next] : 1);
            const size_t before = next == b ? done : 0;
            const size_t left = length - before, room = 16 - rows, take = left < room ? left : room;
            rows += take;
            run.self_scores += (uint64_t)take * (uint64_t)((const decoder_state *)input->states[next])->total;
            starts[++sequences] = (int32_t)rows;
            if (take == left) ended++;
            else after = before + take;
        }
        run.states = (decoder_state *const *)(const void *)(input->states + b);
        run.rows = rows;
        run.sequences = sequences;
        run.ended = ended;
        switch (ctx->target) {
            case 0: decoder_scalar_decode_chunk(&run); break;
        }
        for (size_t s = 0; s < sequences; s++) {
            decoder_state *state = (decoder_state *)input->states[b + (int)s];
            state->rows += starts[s + 1] - starts[s];
            if (state->most < state->rows) state->most = state->rows;
        }
        b += (int)ended;
        done = after;
        run.tokens += rows;
        if (run.out_hidden) run.out_hidden += rows * 8;
        if (run.out_logits) run.out_logits += ended * 9;
    }
    return DECODER_OK;
}

int decoder_prefill(const decoder_ctx *ctx, void *state, const int32_t *tokens, int count, decoder_decoded *output,
    void *workspace, size_t bytes) {
    const int32_t length = count;
    decoder_rows input = {0};
    input.size = sizeof input;
    input.batch = 1;
    input.states = &state;
    input.lengths = &length;
    input.tokens = tokens;
    return decoder_decode(ctx, &input, output, workspace, bytes);
}

int decoder_step(const decoder_ctx *ctx, void *const *states, const int32_t *tokens, int count, decoder_decoded *output,
    void *workspace, size_t bytes) {
    decoder_rows input = {0};
    input.size = sizeof input;
    input.batch = count;
    input.states = states;
    input.tokens = tokens;
    return decoder_decode(ctx, &input, output, workspace, bytes);
}
static int decoder_check_input(const decoder_input *input) {
    size_t rows = 0;
    for (int b = 0; b < input->batch; b++) {
        const int32_t length = input->lengths[b];
        if (length < 1 || length > 4) return DECODER_BAD_LENGTH;
        rows += (size_t)length;
    }
    (void)rows;
    for (size_t i = 0; i < rows; i++)
        if (input->tokens[i] < 0 || input->tokens[i] >= 9) return DECODER_BAD_TOKEN;
    return DECODER_OK;
}

int decoder_forward(const decoder_ctx *ctx, const decoder_input *input, decoder_output *output, void *workspace,
    size_t bytes) {
    if (!ctx || !input || !output || !workspace || input->size != sizeof *input || output->size != sizeof *output)
        return DECODER_BAD_ARGUMENT;
    if (input->batch < 1 || !input->lengths || !input->tokens) return DECODER_BAD_ARGUMENT;
    if (bytes < DECODER_WORKSPACE_BYTES(ctx->threads) || (uintptr_t)workspace % DECODER_ALIGNMENT != 0)
        return DECODER_SHORT_WORKSPACE;
    const int status = decoder_check_input(input);
    if (status != DECODER_OK) return status;
    unsigned char *memory = (unsigned char *)workspace;
    int32_t *starts = (int32_t *)(void *)memory;
    decoder_run run = {0};
    run.weights = ctx->weights;
    run.workspace = (float *)(void *)(memory + 1088);
    run.scratch = run.workspace + 20528;
    run.threads = ctx->threads;
    run.parallel_for = ctx->parallel_for;
    run.pool = ctx->pool;
    run.on_step = ctx->on_step;
    run.watcher = ctx->watcher;
    run.least_work = ctx->least_work;
    run.starts = starts;
    run.tokens = input->tokens;
    run.out_hidden = output->hidden;
    run.out_logits = output->logits;
    for (int b = 0; b < input->batch;) {
        size_t rows = 0, sequences = 0;
        starts[0] = 0;
        run.self_scores = 0;
        for (; b < input->batch; b++) {
            const size_t length = (size_t)(input->lengths[b]);
            if (rows + length > 256) break;
            rows += length;
            run.self_scores += (uint64_t)length * length;
            starts[++sequences] = (int32_t)rows;
        }
        run.rows = rows;
        run.sequences = run.ended = sequences;
        switch (ctx->target) {
            case 0: decoder_scalar_forward_chunk(&run); break;
        }
        run.tokens += rows;
        if (run.out_hidden) run.out_hidden += rows * 8;
        if (run.out_logits) run.out_logits += rows * 9;
    }
    return DECODER_OK;
}
