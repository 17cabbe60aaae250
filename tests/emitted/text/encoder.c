/* encoder.c: encoder of 1 layer over at most 4 rows, d_model 8; model hash 615f254e03f2d2ad
 *
 * Made by attnc 0.1.0: attnc compile encoder.attn --target scalar
 * Memory: a workspace of 83200 bytes plus 320 per thread; 4480 bytes of weights.
 * The output of attnc belongs to its user, without conditions. */
#include "encoder.h"

#if ENCODER_HEADER != 0xb69a54f5u
#error "encoder.h is of another run of attnc than this file"
#endif
#ifdef __FAST_MATH__
#error "this file counts on IEEE arithmetic: compile it without -ffast-math"
#endif
#if defined(__FLT_EVAL_METHOD__) && (__FLT_EVAL_METHOD__ < 0 || __FLT_EVAL_METHOD__ == 1 || __FLT_EVAL_METHOD__ == 2)
#error "this file counts on floats that are rounded at once: compile it with -msse2 -mfpmath=sse, or with -std=gnu11"
#endif

typedef struct encoder_run {
    const float *weights;
    float *workspace, *scratch;
    size_t rows, sequences;   /* of this chunk */
    size_t ended;             /* sequences whose last row is in this chunk */
    const int32_t *starts;    /* [sequences + 1] first row of each sequence */
    const int32_t *tokens;
    float *out_hidden;
    uint64_t self_scores;   /* pairs of a query and a key: the work of attention */
    uint64_t least_work;
    void (*task)(const struct encoder_run *run, int thread); /* of the step that threads share */
    int threads;
    void (*parallel_for)(void *pool, int count, void (*task)(void *with, int index), void *with);
    void *pool;
    void (*on_step)(void *watcher, int step);
    void *watcher;
} encoder_run;

static inline __attribute__((unused)) void encoder_before(const encoder_run *run, int step) {
    if (__builtin_expect(run->on_step != NULL, 0)) run->on_step(run->watcher, step);
}

static __attribute__((unused)) void encoder_task(void *with, int thread) {
    const encoder_run *run = (const encoder_run *)with;
    run->task(run, thread);
}

/* `work`: multiply-adds, roughly. Below the bound, waking threads costs more than it saves. */
static __attribute__((unused)) void encoder_run_step(encoder_run *run, int step,
    void (*const *tasks)(const encoder_run *run, int thread), uint64_t work) {
    encoder_before(run, step);
    const int threads = run->threads;
    if (threads > 1 && work >= run->least_work) {
        run->task = tasks[step];
        run->parallel_for(run->pool, threads, encoder_task, run);
        return;
    }
    run->threads = 1; /* tasks divide their work by it */
    tasks[step](run, 0);
    run->threads = threads;
}

/* The first of n items that a thread has; those of the next thread follow its last one. */
static inline __attribute__((unused)) size_t encoder_first(size_t n, int thread, int threads) {
    return n * (size_t)thread / (size_t)threads;
}

/* Where each tensor begins in the weights, in floats, and its shape. A matrix [N][K] stands in panels,
 * [N / 16][K][16]. encoder_w_layer3_ffn_up is the tensor layers.3.ffn.up.weight of its stack. A product of
 * several matrices reads them as one: behind its shape are their names, in their order. */
#define encoder_w_embedding_tokens 0 /* [9][8] */
/* encoder.layers.0. */
#define encoder_w_layer0_attention_query_key_value 80 /* [3][8][16] query, key, value */
#define encoder_w_layer0_attention_query_key_value_bias 464 /* [48] query, key, value */
#define encoder_w_layer0_attention_output 512 /* [1][8][16] */
#define encoder_w_layer0_attention_output_bias 640 /* [8] */
#define encoder_w_layer0_ffn_up 656 /* [1][8][16] */
#define encoder_w_layer0_ffn_up_bias 784 /* [16] */
#define encoder_w_layer0_ffn_down 800 /* [1][16][16] */
#define encoder_w_layer0_ffn_down_bias 1056 /* [8] */

/* The workspace of forward, in bytes:
 *     0: starts[257], the first row of each sequence
 *     1088: buffers of 20528 floats
 *     then 320 of scratch for each thread
 * Each buffer has its offset in floats, its shape, and the first and the last step that use it. */
#define encoder_x_embedding_looked_up 0 /* [256][16] embedding to attention_output of layer 0 */
#define encoder_x_ffn_activated 0 /* [256][16] ffn_up to ffn_down */
#define encoder_x_attention_query_key_value 4112 /* [256][48] attention_query_key_value to attention_attended */
#define encoder_x_attention_sum 4112 /* [256][16] attention_output to ffn_down */
#define encoder_x_attention_attended 16416 /* [256][16] attention_attended to attention_output */

static __attribute__((unused)) void encoder_forward_steps(encoder_run *run,
    void (*const *tasks)(const encoder_run *run, int thread)) {
    __asm__("" : "+r"(tasks)); /* hides the steps, which would round otherwise if they were inlined here */
    encoder_run_step(run, 0, tasks, run->rows * UINT64_C(80));
    encoder_run_step(run, 1, tasks, run->rows * UINT64_C(384));
    encoder_run_step(run, 2, tasks, run->self_scores * UINT64_C(36));
    encoder_run_step(run, 3, tasks, run->rows * UINT64_C(64));
    encoder_run_step(run, 4, tasks, run->rows * UINT64_C(128));
    if (run->out_hidden) encoder_run_step(run, 5, tasks, run->rows * UINT64_C(128));
    else encoder_before(run, 5);
    encoder_before(run, 6);
}

/* ------------------------------------------------------------------ target scalar */

#if defined(__x86_64__)
#define encoder_SCALAR __attribute__((target("no-fma,no-fma4,no-avx512f")))
#elif defined(__GNUC__) && !defined(__clang__)
#define encoder_SCALAR __attribute__((optimize("fp-contract=off")))
#else
#define encoder_SCALAR
#endif

/* acc + a * b, rounded twice */
static inline __attribute__((unused)) encoder_SCALAR
float encoder_scalar_fma(float acc, float a, float b) {
#if defined(__clang__)
#pragma clang fp contract(off)
#endif
    float product = a * b;
    return acc + product;
}

static inline __attribute__((unused)) encoder_SCALAR
float encoder_scalar_max(float a, float b) {
    return a > b ? a : b;
}

/* Below 2^23 adding 2^23 leaves no bits of a fraction; above, and with NaN, there is nothing to round. */
static inline __attribute__((unused)) encoder_SCALAR
float encoder_scalar_round(float a) {
    float size = __builtin_fabsf(a);
    if (!(size < 8388608.0f)) return a;
    return __builtin_copysignf((size + 8388608.0f) - 8388608.0f, a);
}

/* The product is exact as a double; it is rounded once, to a float. n comes out of the low bits of n + 3 * 2^22: a
 * conversion of NaN to an integer is undefined. */
static inline __attribute__((unused)) encoder_SCALAR
float encoder_scalar_exp2i(float x, float n) {
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
static inline __attribute__((unused)) encoder_SCALAR
float encoder_scalar_exp2(float x) {
    const float t = encoder_scalar_max((-126.0f), x);
    const float n = encoder_scalar_round(t);
    const float r = (t - n);
    float y = (0x1.5bba12p-10f);
    y = encoder_scalar_fma((0x1.3ceba8p-7f), y, r);
    y = encoder_scalar_fma((0x1.c6b7bep-5f), y, r);
    y = encoder_scalar_fma((0x1.ebf9bap-3f), y, r);
    y = encoder_scalar_fma((0x1.62e428p-1f), y, r);
    y = encoder_scalar_fma(1.0f, y, r);
    return (x < (-126.0f) ? 0.0f : encoder_scalar_exp2i(y, n));
}

static inline __attribute__((unused)) encoder_SCALAR
float encoder_scalar_relu(float x) {
    return encoder_scalar_max(0.0f, x);
}

/* rows of 8 columns, looked up: row `row` of the chunk, row `index` of its sequence */
static encoder_SCALAR
void encoder_scalar_rows_row(const encoder_run *run, size_t row, size_t sequence, size_t index, const float *table,
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

static encoder_SCALAR
void encoder_scalar_rows(const encoder_run *run, const float *table, float *out, int thread, int threads) {
    const size_t end = encoder_first(run->rows, thread + 1, threads);
    size_t sequence = 0;
    for (size_t row = encoder_first(run->rows, thread, threads); row < end; row++) {
        while (row >= (size_t)run->starts[sequence + 1]) sequence++;
        const size_t index = row - (size_t)run->starts[sequence];
        encoder_scalar_rows_row(run, row, sequence, index, table, out + row * 16);
    }
}

/* embedding: [rows][8] of a table [9][8] */
static encoder_SCALAR
void encoder_scalar_step_embedding(const encoder_run *run, int thread) {
    encoder_scalar_rows(run, run->weights + encoder_w_embedding_tokens, run->workspace + encoder_x_embedding_looked_up,
        thread, run->threads);
}

static encoder_SCALAR
void encoder_scalar_gemm_8x48_1x2(const float *x, const float *w, const float *bias, float *out) {
    float acc0_0 = bias[0], acc0_1 = bias[1], acc0_2 = bias[2], acc0_3 = bias[3], acc0_4 = bias[4], acc0_5 = bias[5],
        acc0_6 = bias[6], acc0_7 = bias[7], acc0_8 = bias[16], acc0_9 = bias[17], acc0_10 = bias[18],
        acc0_11 = bias[19], acc0_12 = bias[20], acc0_13 = bias[21], acc0_14 = bias[22], acc0_15 = bias[23];
    for (size_t k = 0; k < 8; k++) {
        const float a0 = x[k];
        const float w0 = w[k * 16];
        acc0_0 = encoder_scalar_fma(acc0_0, a0, w0);
        const float w1 = w[(1 + (k * 16))];
        acc0_1 = encoder_scalar_fma(acc0_1, a0, w1);
        const float w2 = w[(2 + (k * 16))];
        acc0_2 = encoder_scalar_fma(acc0_2, a0, w2);
        const float w3 = w[(3 + (k * 16))];
        acc0_3 = encoder_scalar_fma(acc0_3, a0, w3);
        const float w4 = w[(4 + (k * 16))];
        acc0_4 = encoder_scalar_fma(acc0_4, a0, w4);
        const float w5 = w[(5 + (k * 16))];
        acc0_5 = encoder_scalar_fma(acc0_5, a0, w5);
        const float w6 = w[(6 + (k * 16))];
        acc0_6 = encoder_scalar_fma(acc0_6, a0, w6);
        const float w7 = w[(7 + (k * 16))];
        acc0_7 = encoder_scalar_fma(acc0_7, a0, w7);
        const float w8 = w[(128 + (k * 16))];
        acc0_8 = encoder_scalar_fma(acc0_8, a0, w8);
        const float w9 = w[(129 + (k * 16))];
        acc0_9 = encoder_scalar_fma(acc0_9, a0, w9);
        const float w10 = w[(130 + (k * 16))];
        acc0_10 = encoder_scalar_fma(acc0_10, a0, w10);
        const float w11 = w[(131 + (k * 16))];
        acc0_11 = encoder_scalar_fma(acc0_11, a0, w11);
        const float w12 = w[(132 + (k * 16))];
        acc0_12 = encoder_scalar_fma(acc0_12, a0, w12);
        const float w13 = w[(133 + (k * 16))];
        acc0_13 = encoder_scalar_fma(acc0_13, a0, w13);
        const float w14 = w[(134 + (k * 16))];
        acc0_14 = encoder_scalar_fma(acc0_14, a0, w14);
        const float w15 = w[(135 + (k * 16))];
        acc0_15 = encoder_scalar_fma(acc0_15, a0, w15);
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

static encoder_SCALAR
void encoder_scalar_gemm_8x48_1x1(const float *x, const float *w, const float *bias, float *out) {
    float acc0_0 = bias[0], acc0_1 = bias[1], acc0_2 = bias[2], acc0_3 = bias[3], acc0_4 = bias[4], acc0_5 = bias[5],
        acc0_6 = bias[6], acc0_7 = bias[7];
    for (size_t k = 0; k < 8; k++) {
        const float a0 = x[k];
        const float w0 = w[k * 16];
        acc0_0 = encoder_scalar_fma(acc0_0, a0, w0);
        const float w1 = w[(1 + (k * 16))];
        acc0_1 = encoder_scalar_fma(acc0_1, a0, w1);
        const float w2 = w[(2 + (k * 16))];
        acc0_2 = encoder_scalar_fma(acc0_2, a0, w2);
        const float w3 = w[(3 + (k * 16))];
        acc0_3 = encoder_scalar_fma(acc0_3, a0, w3);
        const float w4 = w[(4 + (k * 16))];
        acc0_4 = encoder_scalar_fma(acc0_4, a0, w4);
        const float w5 = w[(5 + (k * 16))];
        acc0_5 = encoder_scalar_fma(acc0_5, a0, w5);
        const float w6 = w[(6 + (k * 16))];
        acc0_6 = encoder_scalar_fma(acc0_6, a0, w6);
        const float w7 = w[(7 + (k * 16))];
        acc0_7 = encoder_scalar_fma(acc0_7, a0, w7);
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
static encoder_SCALAR
void encoder_scalar_gemm_8x48(const float *x, const float *w, const float *bias, float *out, size_t rows, int thread,
    int threads) {
    if (rows == 0) return;
    const size_t tiles = (rows), least = rows / tiles, taller = rows % tiles;
    const size_t begin = encoder_first(tiles * 2, thread, threads), end = encoder_first(tiles * 2, thread + 1, threads);
    size_t block = begin / tiles, tile = begin % tiles, row = tile * least + (tile < taller ? tile : taller);
    for (size_t unit = begin, height; unit < end; unit++, row += height, tile++) {
        if (tile == tiles) block++, tile = 0, row = 0;
        height = least + (tile < taller);
        const size_t panel = block < 1 ? block * 2 : 2 + (block - 1);
        const size_t column = panel * 16;
        if (block >= 1) {
            encoder_scalar_gemm_8x48_1x1(x + row * 16, w + panel * 128, bias + column, out + row * 48 + column);
            continue;
        }
        encoder_scalar_gemm_8x48_1x2(x + row * 16, w + panel * 128, bias + column, out + row * 48 + column);
    }
}

/* layer 0, self attention, query, key and value projection: [rows][8] x [8][48] + bias */
static encoder_SCALAR
void encoder_scalar_step_layer0_attention_query_key_value(const encoder_run *run, int thread) {
    encoder_scalar_gemm_8x48(run->workspace + encoder_x_embedding_looked_up,
        run->weights + encoder_w_layer0_attention_query_key_value,
        run->weights + encoder_w_layer0_attention_query_key_value_bias,
        run->workspace + encoder_x_attention_query_key_value, run->rows, thread, run->threads);
}

static __attribute__((noinline)) encoder_SCALAR
void encoder_scalar_attention_of_rows1(const float *query, const float *panels, const float *value, size_t v_stride,
    size_t i, size_t n, float *block, float *out) {
    (void)i, (void)n;
    const size_t first = 0;
    const size_t last = n;
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
                    s0_0 = encoder_scalar_fma(s0_0, q0, k0_0);
                    s0_1 = encoder_scalar_fma(s0_1, q0, k0_1);
                    s0_2 = encoder_scalar_fma(s0_2, q0, k0_2);
                    s0_3 = encoder_scalar_fma(s0_3, q0, k0_3);
                    s0_4 = encoder_scalar_fma(s0_4, q0, k0_4);
                    s0_5 = encoder_scalar_fma(s0_5, q0, k0_5);
                    s0_6 = encoder_scalar_fma(s0_6, q0, k0_6);
                    s0_7 = encoder_scalar_fma(s0_7, q0, k0_7);
                    s0_8 = encoder_scalar_fma(s0_8, q0, k0_8);
                    s0_9 = encoder_scalar_fma(s0_9, q0, k0_9);
                    s0_10 = encoder_scalar_fma(s0_10, q0, k0_10);
                    s0_11 = encoder_scalar_fma(s0_11, q0, k0_11);
                    s0_12 = encoder_scalar_fma(s0_12, q0, k0_12);
                    s0_13 = encoder_scalar_fma(s0_13, q0, k0_13);
                    s0_14 = encoder_scalar_fma(s0_14, q0, k0_14);
                    s0_15 = encoder_scalar_fma(s0_15, q0, k0_15);
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
        {
            float *row = block;
            for (size_t k = to; k < padded; k += 1)
                row[k - from] = (0.0f < (float)(int)(to - k) ? row[k - from] : (-__builtin_inff()));
        }
        float greatest0 = *(block);
        for (size_t k = 1; k < padded - from; k++) {
            greatest0 = encoder_scalar_max(greatest0, *(block + k));
        }
        float base[1];
        base[0] = greatest0 * 0x1.715476p-1f;
        const float less0 = (-base[0]);
        float total0 = 0.0f;
        for (size_t k = 0; k < padded - from; k++) {
            const float e0 = encoder_scalar_exp2(encoder_scalar_fma(less0, *(block + k), (0x1.715476p-1f)));
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
            for (size_t key_row = from; key_row < to; key_row++) {
                const float v0_0 = *(value + (key_row * v_stride));
                const float v0_1 = *(value + (key_row * v_stride) + 1);
                const float v0_2 = *(value + (key_row * v_stride) + 2);
                const float v0_3 = *(value + (key_row * v_stride) + 3);
                const float w0 = *(block + (key_row - from));
                o0_0 = encoder_scalar_fma(o0_0, w0, v0_0);
                o0_1 = encoder_scalar_fma(o0_1, w0, v0_1);
                o0_2 = encoder_scalar_fma(o0_2, w0, v0_2);
                o0_3 = encoder_scalar_fma(o0_3, w0, v0_3);
            }
            out[0] = (o0_0 * inverse[0]);
            out[1] = (o0_1 * inverse[0]);
            out[2] = (o0_2 * inverse[0]);
            out[3] = (o0_3 * inverse[0]);
        }
    }
}

/* keys of one head, [n][48] -> [n/16][4][16], the last panel filled up with zeros */
static encoder_SCALAR
void encoder_scalar_attention_2_pack(const float *key, size_t n, float *panels) {
    for (size_t j = 0; j < n; j += 16) {
        const size_t rows = n - j < 16 ? n - j : 16;
        const float *from = key + j * 48;
        float *to = panels + j * 4;
        for (size_t d = 0; d < 4; d++)
            for (size_t l = 0; l < 16; l++) to[d * 16 + l] = l < rows ? from[l * 48 + d] : 0.0f;
    }
}

/* attention of 2 heads of 4 over the keys of the same sequence */
static encoder_SCALAR
void encoder_scalar_attention_2(const encoder_run *run, const float *q, const float *k, const float *v, float *out,
    int thread, int threads) {
    float *scratch = run->scratch + (size_t)thread * 80, *block = scratch + 64;
    size_t total = 0, unit = 0;
    for (size_t s = 0; s < run->sequences; s++) total += ((size_t)(run->starts[s + 1] - run->starts[s])) * 2;
    const size_t begin = encoder_first(total, thread, threads), end = encoder_first(total, thread + 1, threads);
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
                encoder_scalar_attention_2_pack(keys, n, panels);
            }
            packed = kv;
            const float *query = q + start * 48 + head * 4;
            float *to = out + start * 16 + head * 4;
            const size_t from = begin > unit ? begin - unit : 0, until = end - unit < blocks ? end - unit : blocks;
            const size_t stop = until < rows ? until : rows;
            size_t i = from;
            for (; i < stop; i++)
                encoder_scalar_attention_of_rows1(query + i * 48, panels, values, 48, i, n, block, to + i * 16);
        }
    }
}

/* layer 0, self attention: softmax(query x key * 0.5) x value, 2 heads of 4 */
static encoder_SCALAR
void encoder_scalar_step_layer0_attention_attended(const encoder_run *run, int thread) {
    encoder_scalar_attention_2(run, run->workspace + encoder_x_attention_query_key_value,
        run->workspace + encoder_x_attention_query_key_value + 16, run->workspace +
        encoder_x_attention_query_key_value + 32, run->workspace + encoder_x_attention_attended, thread, run->threads);
}

static encoder_SCALAR
void encoder_scalar_gemm_8x8_1x1(const float *x, const float *w, const float *bias, const float *other, float *out) {
    float acc0_0 = bias[0], acc0_1 = bias[1], acc0_2 = bias[2], acc0_3 = bias[3], acc0_4 = bias[4], acc0_5 = bias[5],
        acc0_6 = bias[6], acc0_7 = bias[7];
    for (size_t k = 0; k < 8; k++) {
        const float a0 = x[k];
        const float w0 = w[k * 16];
        acc0_0 = encoder_scalar_fma(acc0_0, a0, w0);
        const float w1 = w[(1 + (k * 16))];
        acc0_1 = encoder_scalar_fma(acc0_1, a0, w1);
        const float w2 = w[(2 + (k * 16))];
        acc0_2 = encoder_scalar_fma(acc0_2, a0, w2);
        const float w3 = w[(3 + (k * 16))];
        acc0_3 = encoder_scalar_fma(acc0_3, a0, w3);
        const float w4 = w[(4 + (k * 16))];
        acc0_4 = encoder_scalar_fma(acc0_4, a0, w4);
        const float w5 = w[(5 + (k * 16))];
        acc0_5 = encoder_scalar_fma(acc0_5, a0, w5);
        const float w6 = w[(6 + (k * 16))];
        acc0_6 = encoder_scalar_fma(acc0_6, a0, w6);
        const float w7 = w[(7 + (k * 16))];
        acc0_7 = encoder_scalar_fma(acc0_7, a0, w7);
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
static encoder_SCALAR
void encoder_scalar_gemm_8x8(const float *x, const float *w, const float *bias, const float *other, float *out,
    size_t rows, int thread, int threads) {
    if (rows == 0) return;
    const size_t tiles = (rows), least = rows / tiles, taller = rows % tiles;
    const size_t begin = encoder_first(tiles, thread, threads), end = encoder_first(tiles, thread + 1, threads);
    size_t block = begin / tiles, tile = begin % tiles, row = tile * least + (tile < taller ? tile : taller);
    for (size_t unit = begin, height; unit < end; unit++, row += height, tile++) {
        if (tile == tiles) block++, tile = 0, row = 0;
        height = least + (tile < taller);
        const size_t panel = block;
        const size_t column = panel * 16;
        encoder_scalar_gemm_8x8_1x1(x + row * 16, w + panel * 128, bias + column, other + row * 16 + column,
            out + row * 16 + column);
    }
}

/* layer 0, self attention, output projection: [rows][8] x [8][8] + bias, + residual */
static encoder_SCALAR
void encoder_scalar_step_layer0_attention_output(const encoder_run *run, int thread) {
    encoder_scalar_gemm_8x8(run->workspace + encoder_x_attention_attended,
        run->weights + encoder_w_layer0_attention_output, run->weights + encoder_w_layer0_attention_output_bias,
        run->workspace + encoder_x_embedding_looked_up, run->workspace + encoder_x_attention_sum, run->rows, thread,
        run->threads);
}

static __attribute__((noinline)) encoder_SCALAR
void encoder_scalar_gemm_8x16_finish(const float *sums, float *out, size_t rows, size_t stride, size_t panels) {
    for (size_t r = 0; r < rows; r++) {
        for (size_t panel = 0; panel < panels; panel++) {
            float sum0 = *(sums + (r * stride + panel) * 16);
            sum0 = encoder_scalar_relu(sum0);
            out[((r * 16) + (panel * 16))] = sum0;
            float sum1 = *(sums + (r * stride + panel) * 16 + 1);
            sum1 = encoder_scalar_relu(sum1);
            out[((r * 16) + ((panel * 16) + 1))] = sum1;
            float sum2 = *(sums + (r * stride + panel) * 16 + 2);
            sum2 = encoder_scalar_relu(sum2);
            out[((r * 16) + ((panel * 16) + 2))] = sum2;
            float sum3 = *(sums + (r * stride + panel) * 16 + 3);
            sum3 = encoder_scalar_relu(sum3);
            out[((r * 16) + ((panel * 16) + 3))] = sum3;
            float sum4 = *(sums + (r * stride + panel) * 16 + 4);
            sum4 = encoder_scalar_relu(sum4);
            out[((r * 16) + ((panel * 16) + 4))] = sum4;
            float sum5 = *(sums + (r * stride + panel) * 16 + 5);
            sum5 = encoder_scalar_relu(sum5);
            out[((r * 16) + ((panel * 16) + 5))] = sum5;
            float sum6 = *(sums + (r * stride + panel) * 16 + 6);
            sum6 = encoder_scalar_relu(sum6);
            out[((r * 16) + ((panel * 16) + 6))] = sum6;
            float sum7 = *(sums + (r * stride + panel) * 16 + 7);
            sum7 = encoder_scalar_relu(sum7);
            out[((r * 16) + ((panel * 16) + 7))] = sum7;
            float sum8 = *(sums + (r * stride + panel) * 16 + 8);
            sum8 = encoder_scalar_relu(sum8);
            out[((r * 16) + ((panel * 16) + 8))] = sum8;
            float sum9 = *(sums + (r * stride + panel) * 16 + 9);
            sum9 = encoder_scalar_relu(sum9);
            out[((r * 16) + ((panel * 16) + 9))] = sum9;
            float sum10 = *(sums + (r * stride + panel) * 16 + 10);
            sum10 = encoder_scalar_relu(sum10);
            out[((r * 16) + ((panel * 16) + 10))] = sum10;
            float sum11 = *(sums + (r * stride + panel) * 16 + 11);
            sum11 = encoder_scalar_relu(sum11);
            out[((r * 16) + ((panel * 16) + 11))] = sum11;
            float sum12 = *(sums + (r * stride + panel) * 16 + 12);
            sum12 = encoder_scalar_relu(sum12);
            out[((r * 16) + ((panel * 16) + 12))] = sum12;
            float sum13 = *(sums + (r * stride + panel) * 16 + 13);
            sum13 = encoder_scalar_relu(sum13);
            out[((r * 16) + ((panel * 16) + 13))] = sum13;
            float sum14 = *(sums + (r * stride + panel) * 16 + 14);
            sum14 = encoder_scalar_relu(sum14);
            out[((r * 16) + ((panel * 16) + 14))] = sum14;
            float sum15 = *(sums + (r * stride + panel) * 16 + 15);
            sum15 = encoder_scalar_relu(sum15);
            out[((r * 16) + ((panel * 16) + 15))] = sum15;
        }
    }
}

static encoder_SCALAR
void encoder_scalar_gemm_8x16_1x1(const float *x, const float *w, const float *bias, float *out) {
    float acc0_0 = bias[0], acc0_1 = bias[1], acc0_2 = bias[2], acc0_3 = bias[3], acc0_4 = bias[4], acc0_5 = bias[5],
        acc0_6 = bias[6], acc0_7 = bias[7], acc0_8 = bias[8], acc0_9 = bias[9], acc0_10 = bias[10], acc0_11 = bias[11],
        acc0_12 = bias[12], acc0_13 = bias[13], acc0_14 = bias[14], acc0_15 = bias[15];
    for (size_t k = 0; k < 8; k++) {
        const float a0 = x[k];
        const float w0 = w[k * 16];
        acc0_0 = encoder_scalar_fma(acc0_0, a0, w0);
        const float w1 = w[(1 + (k * 16))];
        acc0_1 = encoder_scalar_fma(acc0_1, a0, w1);
        const float w2 = w[(2 + (k * 16))];
        acc0_2 = encoder_scalar_fma(acc0_2, a0, w2);
        const float w3 = w[(3 + (k * 16))];
        acc0_3 = encoder_scalar_fma(acc0_3, a0, w3);
        const float w4 = w[(4 + (k * 16))];
        acc0_4 = encoder_scalar_fma(acc0_4, a0, w4);
        const float w5 = w[(5 + (k * 16))];
        acc0_5 = encoder_scalar_fma(acc0_5, a0, w5);
        const float w6 = w[(6 + (k * 16))];
        acc0_6 = encoder_scalar_fma(acc0_6, a0, w6);
        const float w7 = w[(7 + (k * 16))];
        acc0_7 = encoder_scalar_fma(acc0_7, a0, w7);
        const float w8 = w[(8 + (k * 16))];
        acc0_8 = encoder_scalar_fma(acc0_8, a0, w8);
        const float w9 = w[(9 + (k * 16))];
        acc0_9 = encoder_scalar_fma(acc0_9, a0, w9);
        const float w10 = w[(10 + (k * 16))];
        acc0_10 = encoder_scalar_fma(acc0_10, a0, w10);
        const float w11 = w[(11 + (k * 16))];
        acc0_11 = encoder_scalar_fma(acc0_11, a0, w11);
        const float w12 = w[(12 + (k * 16))];
        acc0_12 = encoder_scalar_fma(acc0_12, a0, w12);
        const float w13 = w[(13 + (k * 16))];
        acc0_13 = encoder_scalar_fma(acc0_13, a0, w13);
        const float w14 = w[(14 + (k * 16))];
        acc0_14 = encoder_scalar_fma(acc0_14, a0, w14);
        const float w15 = w[(15 + (k * 16))];
        acc0_15 = encoder_scalar_fma(acc0_15, a0, w15);
    }
    float sums[16];
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
    sums[12] = acc0_12;
    sums[13] = acc0_13;
    sums[14] = acc0_14;
    sums[15] = acc0_15;
    encoder_scalar_gemm_8x16_finish(sums, out, 1, 1, 1);
}

/* out [rows][16] = x [rows][8] times weight, + bias, relu */
static encoder_SCALAR
void encoder_scalar_gemm_8x16(const float *x, const float *w, const float *bias, float *out, size_t rows, int thread,
    int threads) {
    if (rows == 0) return;
    const size_t tiles = (rows), least = rows / tiles, taller = rows % tiles;
    const size_t begin = encoder_first(tiles, thread, threads), end = encoder_first(tiles, thread + 1, threads);
    size_t block = begin / tiles, tile = begin % tiles, row = tile * least + (tile < taller ? tile : taller);
    for (size_t unit = begin, height; unit < end; unit++, row += height, tile++) {
        if (tile == tiles) block++, tile = 0, row = 0;
        height = least + (tile < taller);
        const size_t panel = block;
        const size_t column = panel * 16;
        encoder_scalar_gemm_8x16_1x1(x + row * 16, w + panel * 128, bias + column, out + row * 16 + column);
    }
}

/* layer 0, ffn, up projection: [rows][8] x [8][16] + bias, relu */
static encoder_SCALAR
void encoder_scalar_step_layer0_ffn_up(const encoder_run *run, int thread) {
    encoder_scalar_gemm_8x16(run->workspace + encoder_x_attention_sum, run->weights + encoder_w_layer0_ffn_up,
        run->weights + encoder_w_layer0_ffn_up_bias, run->workspace + encoder_x_ffn_activated, run->rows, thread,
        run->threads);
}

static encoder_SCALAR
void encoder_scalar_gemm_16x8_1x1_last(const float *x, const float *w, const float *bias, const float *other,
    float *out) {
    float acc0_0 = bias[0], acc0_1 = bias[1], acc0_2 = bias[2], acc0_3 = bias[3], acc0_4 = bias[4], acc0_5 = bias[5],
        acc0_6 = bias[6], acc0_7 = bias[7];
    for (size_t k = 0; k < 16; k++) {
        const float a0 = x[k];
        const float w0 = w[k * 16];
        acc0_0 = encoder_scalar_fma(acc0_0, a0, w0);
        const float w1 = w[(1 + (k * 16))];
        acc0_1 = encoder_scalar_fma(acc0_1, a0, w1);
        const float w2 = w[(2 + (k * 16))];
        acc0_2 = encoder_scalar_fma(acc0_2, a0, w2);
        const float w3 = w[(3 + (k * 16))];
        acc0_3 = encoder_scalar_fma(acc0_3, a0, w3);
        const float w4 = w[(4 + (k * 16))];
        acc0_4 = encoder_scalar_fma(acc0_4, a0, w4);
        const float w5 = w[(5 + (k * 16))];
        acc0_5 = encoder_scalar_fma(acc0_5, a0, w5);
        const float w6 = w[(6 + (k * 16))];
        acc0_6 = encoder_scalar_fma(acc0_6, a0, w6);
        const float w7 = w[(7 + (k * 16))];
        acc0_7 = encoder_scalar_fma(acc0_7, a0, w7);
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

/* out [rows][8] = x [rows][16] times weight, + bias, + other */
static encoder_SCALAR
void encoder_scalar_gemm_16x8(const float *x, const float *w, const float *bias, const float *other, float *out,
    size_t rows, int thread, int threads) {
    if (rows == 0) return;
    const size_t tiles = (rows), least = rows / tiles, taller = rows % tiles;
    const size_t begin = encoder_first(tiles, thread, threads), end = encoder_first(tiles, thread + 1, threads);
    size_t block = begin / tiles, tile = begin % tiles, row = tile * least + (tile < taller ? tile : taller);
    for (size_t unit = begin, height; unit < end; unit++, row += height, tile++) {
        if (tile == tiles) block++, tile = 0, row = 0;
        height = least + (tile < taller);
        const size_t panel = block;
        const size_t column = panel * 16;
        if (block == 0) {
            encoder_scalar_gemm_16x8_1x1_last(x + row * 16, w + panel * 256, bias + column, other + row * 16 + column,
                out + row * 8 + column);
            continue;
        }
    }
}

/* layer 0, ffn, down projection: [rows][16] x [16][8] + bias, + residual */
static encoder_SCALAR
void encoder_scalar_step_layer0_ffn_down(const encoder_run *run, int thread) {
    encoder_scalar_gemm_16x8(run->workspace + encoder_x_ffn_activated, run->weights + encoder_w_layer0_ffn_down,
        run->weights + encoder_w_layer0_ffn_down_bias, run->workspace + encoder_x_attention_sum, run->out_hidden,
        run->rows, thread, run->threads);
}

static void (*const encoder_scalar_tasks[])(const encoder_run *run, int thread) = {
    encoder_scalar_step_embedding,
    encoder_scalar_step_layer0_attention_query_key_value,
    encoder_scalar_step_layer0_attention_attended,
    encoder_scalar_step_layer0_attention_output,
    encoder_scalar_step_layer0_ffn_up,
    encoder_scalar_step_layer0_ffn_down,
};

static __attribute__((noinline)) encoder_SCALAR
void encoder_scalar_forward_chunk(encoder_run *run) {
    encoder_forward_steps(run, encoder_scalar_tasks);
}

const char *encoder_status_text(int status) {
    switch (status) {
        case ENCODER_OK: return "fine";
        case ENCODER_BAD_ARGUMENT: return "a null pointer, a struct of another size, or a bad count";
        case ENCODER_BAD_WEIGHTS: return "the weights are damaged, or of another size, model, layout or version";
        case ENCODER_NO_TARGET: return "this machine lacks the instructions, or is big-endian";
        case ENCODER_SHORT_WORKSPACE: return "the workspace is too small or not aligned";
        case ENCODER_BAD_LENGTH: return "a sequence is empty or too long";
        case ENCODER_BAD_TOKEN: return "an id is outside its table";
        default: return "unknown status";
    }
}

/* FNV-1a, 64 bit */
static uint64_t encoder_hash(uint64_t hash, const unsigned char *bytes, size_t size) {
    for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t encoder_u64(const unsigned char *b) {
    return (uint64_t)b[0] | (uint64_t)b[1] << 8 | (uint64_t)b[2] << 16 | (uint64_t)b[3] << 24 | (uint64_t)b[4] << 32 |
        (uint64_t)b[5] << 40 | (uint64_t)b[6] << 48 | (uint64_t)b[7] << 56;
}

/* The header of a .attnw: magic, version, hashes of model and layout, dtype, sizes, zeros, checksums. */
static int encoder_good_weights(const unsigned char *bytes, size_t size, int verify) {
    const uint64_t seed = UINT64_C(0xcbf29ce484222325);
    if (size != ENCODER_WEIGHTS_BYTES || (uintptr_t)bytes % ENCODER_ALIGNMENT != 0) return 0;
    if (encoder_u64(bytes) != UINT64_C(0x1a0a0d574e545441) || encoder_u64(bytes + 8) != (UINT64_C(1) << 32 | 1))
        return 0;
    if (encoder_u64(bytes + 120) != encoder_hash(seed, bytes, 120)) return 0;
    if (encoder_u64(bytes + 16) != UINT64_C(0x615f254e03f2d2ad) ||
        encoder_u64(bytes + 56) != UINT64_C(0x07c24852bfdf7156))
        return 0;
    if (encoder_u64(bytes + 24) != UINT64_C(13) << 32) return 0; /* tensors; f32 */
    if (encoder_u64(bytes + 32) != 128 || encoder_u64(bytes + 40) != UINT64_C(4352)) return 0;
    if (encoder_u64(bytes + 64) | encoder_u64(bytes + 72) | encoder_u64(bytes + 80) | encoder_u64(bytes + 88) |
        encoder_u64(bytes + 96) | encoder_u64(bytes + 104) | encoder_u64(bytes + 112))
        return 0;
    return !verify || encoder_u64(bytes + 48) == encoder_hash(seed, bytes + 128, (size_t)4352u);
}

static int encoder_same(const char *a, const char *b) {
    return *a == *b && (*a == 0 || encoder_same(a + 1, b + 1));
}

static const char *const encoder_targets[] = {"scalar"};

/* Index of the best target that this CPU has, or of the requested one; -1: none. */
static int encoder_pick(const char *wanted) {
    if (!wanted || encoder_same(wanted, "scalar")) return 0;
    return -1;
}

int encoder_init(encoder_ctx *ctx, const void *weights, size_t bytes, const encoder_options *options) {
    if (!ctx || !weights || (options && options->size != sizeof *options)) return ENCODER_BAD_ARGUMENT;
    const int threads = options && options->threads > 0 ? options->threads : 1;
    if (options && (options->threads < 0 || options->threads > 4096 || (threads > 1 && !options->parallel_for)))
        return ENCODER_BAD_ARGUMENT;
    if (!encoder_good_weights((const unsigned char *)weights, bytes, options ? options->verify : 0))
        return ENCODER_BAD_WEIGHTS;
    const int target = encoder_pick(options ? options->target : NULL);
    static const uint16_t one = 1; /* the numbers of the weights begin with their lowest byte */
    if (target < 0 || *(const unsigned char *)&one != 1) return ENCODER_NO_TARGET;
    ctx->weights = (const float *)(const void *)((const unsigned char *)weights + 128);
    ctx->target = target;
    ctx->threads = threads;
    ctx->parallel_for = options ? options->parallel_for : NULL;
    ctx->pool = options ? options->pool : NULL;
    ctx->on_step = options ? options->on_step : NULL;
    ctx->watcher = options ? options->watcher : NULL;
    ctx->least_work = options && options->least_work ? options->least_work : ENCODER_LEAST_WORK;
    return ENCODER_OK;
}

const char *encoder_target(const encoder_ctx *ctx) {
    return ctx ? encoder_targets[ctx->target] : "";
}

static int encoder_check_input(const encoder_input *input) {
    size_t rows = 0;
    for (int b = 0; b < input->batch; b++) {
        const int32_t length = input->lengths[b];
        if (length < 1 || length > 4) return ENCODER_BAD_LENGTH;
        rows += (size_t)length;
    }
    (void)rows;
    for (size_t i = 0; i < rows; i++)
        if (input->tokens[i] < 0 || input->tokens[i] >= 9) return ENCODER_BAD_TOKEN;
    return ENCODER_OK;
}

int encoder_forward(const encoder_ctx *ctx, const encoder_input *input, encoder_output *output, void *workspace,
    size_t bytes) {
    if (!ctx || !input || !output || !workspace || input->size != sizeof *input || output->size != sizeof *output)
        return ENCODER_BAD_ARGUMENT;
    if (input->batch < 1 || !input->lengths || !input->tokens) return ENCODER_BAD_ARGUMENT;
    if (bytes < ENCODER_WORKSPACE_BYTES(ctx->threads) || (uintptr_t)workspace % ENCODER_ALIGNMENT != 0)
        return ENCODER_SHORT_WORKSPACE;
    const int status = encoder_check_input(input);
    if (status != ENCODER_OK) return status;
    unsigned char *memory = (unsigned char *)workspace;
    int32_t *starts = (int32_t *)(void *)memory;
    encoder_run run = {0};
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
            case 0: encoder_scalar_forward_chunk(&run); break;
        }
        run.tokens += rows;
        if (run.out_hidden) run.out_hidden += rows * 8;
    }
    return ENCODER_OK;
}
