/* ints.c: encoder of 1 layer over at most 4 rows, d_model 8; model hash d71179113016e990
 *
 * Made by attnc 0.1.0: attnc compile ints.attn --target scalar --precision int8
 * Memory: a workspace of 66816 bytes plus 0 per thread; 2112 bytes of weights.
 * The output of attnc belongs to its user, without conditions. */
#include "ints.h"

#if INTS_HEADER != 0x0d85e70bu
#error "ints.h is of another run of attnc than this file"
#endif
#ifdef __FAST_MATH__
#error "this file counts on IEEE arithmetic: compile it without -ffast-math"
#endif
#if defined(__FLT_EVAL_METHOD__) && (__FLT_EVAL_METHOD__ < 0 || __FLT_EVAL_METHOD__ == 1 || __FLT_EVAL_METHOD__ == 2)
#error "this file counts on floats that are rounded at once: compile it with -msse2 -mfpmath=sse, or with -std=gnu11"
#endif

typedef struct ints_run {
    const float *weights;
    float *workspace, *scratch;
    size_t rows, sequences;   /* of this chunk */
    size_t ended;             /* sequences whose last row is in this chunk */
    const int32_t *starts;    /* [sequences + 1] first row of each sequence */
    const int32_t *tokens;
    float *out_hidden;
    uint64_t self_scores;   /* pairs of a query and a key: the work of attention */
    uint64_t least_work;
    void (*task)(const struct ints_run *run, int thread); /* of the step that threads share */
    int threads;
    void (*parallel_for)(void *pool, int count, void (*task)(void *with, int index), void *with);
    void *pool;
    void (*on_step)(void *watcher, int step);
    void *watcher;
} ints_run;

static inline __attribute__((unused)) void ints_before(const ints_run *run, int step) {
    if (__builtin_expect(run->on_step != NULL, 0)) run->on_step(run->watcher, step);
}

static __attribute__((unused)) void ints_task(void *with, int thread) {
    const ints_run *run = (const ints_run *)with;
    run->task(run, thread);
}

/* `work`: multiply-adds, roughly. Below the bound, waking threads costs more than it saves. */
static __attribute__((unused)) void ints_run_step(ints_run *run, int step,
    void (*const *tasks)(const ints_run *run, int thread), uint64_t work) {
    ints_before(run, step);
    const int threads = run->threads;
    if (threads > 1 && work >= run->least_work) {
        run->task = tasks[step];
        run->parallel_for(run->pool, threads, ints_task, run);
        return;
    }
    run->threads = 1; /* tasks divide their work by it */
    tasks[step](run, 0);
    run->threads = threads;
}

/* The first of n items that a thread has; those of the next thread follow its last one. */
static inline __attribute__((unused)) size_t ints_first(size_t n, int thread, int threads) {
    return n * (size_t)thread / (size_t)threads;
}

/* Where each tensor begins in the weights, in elements of its type, and its shape. A matrix [N][K] stands in panels,
 * [N / 16][K][16]. ints_w_layer3_ffn_up is the tensor layers.3.ffn.up.weight of its stack. A product of
 * several matrices reads them as one: behind its shape are their names, in their order. */
#define ints_w_embedding_tokens 0 /* I8 [9][8] */
#define ints_w_embedding_tokens_weight_scales 32 /* [9] */
/* encoder.layers.0. */
#define ints_w_layer0_ffn_up 192 /* I8 [1][8][16] */
#define ints_w_layer0_ffn_up_weight_scales 80 /* [16] */
#define ints_w_layer0_ffn_up_weight_sums 96 /* [16] */
#define ints_w_layer0_ffn_up_bias 112 /* [16] */
#define ints_w_layer0_ffn_down 512 /* I8 [1][16][16] */
#define ints_w_layer0_ffn_down_weight_scales 192 /* [8] */
#define ints_w_layer0_ffn_down_weight_sums 208 /* [8] */
#define ints_w_layer0_ffn_down_bias 224 /* [8] */

/* The workspace of forward, in bytes:
 *     0: starts[257], the first row of each sequence
 *     1088: buffers of 16432 floats
 *     then 0 of scratch for each thread
 * Each buffer has its offset in floats, its shape, and the first and the last step that use it. */
#define ints_x_embedding_looked_up 0 /* [256][16] embedding to ffn_down of layer 0 */
#define ints_x_embedding_looked_up_quantized 4112 /* [256][128] embedding_looked_up_quantized to ffn_up of layer 0 */
#define ints_x_ffn_activated_quantized 4112 /* [256][128] ffn_activated_quantized to ffn_down */
#define ints_x_ffn_activated 12320 /* [256][16] ffn_up to ffn_activated_quantized */

static __attribute__((unused)) void ints_forward_steps(ints_run *run,
    void (*const *tasks)(const ints_run *run, int thread)) {
    __asm__("" : "+r"(tasks)); /* hides the steps, which would round otherwise if they were inlined here */
    ints_run_step(run, 0, tasks, run->rows * UINT64_C(80));
    ints_run_step(run, 1, tasks, run->rows * UINT64_C(80));
    ints_run_step(run, 2, tasks, run->rows * UINT64_C(128));
    ints_run_step(run, 3, tasks, run->rows * UINT64_C(160));
    if (run->out_hidden) ints_run_step(run, 4, tasks, run->rows * UINT64_C(128));
    else ints_before(run, 4);
    ints_before(run, 5);
}

/* ------------------------------------------------------------------ target scalar */

#if defined(__x86_64__)
#define ints_SCALAR __attribute__((target("no-fma,no-fma4,no-avx512f")))
#elif defined(__GNUC__) && !defined(__clang__)
#define ints_SCALAR __attribute__((optimize("fp-contract=off")))
#else
#define ints_SCALAR
#endif

/* acc + a * b, rounded twice */
static inline __attribute__((unused)) ints_SCALAR
float ints_scalar_fma(float acc, float a, float b) {
#if defined(__clang__)
#pragma clang fp contract(off)
#endif
    float product = a * b;
    return acc + product;
}

static inline __attribute__((unused)) ints_SCALAR
float ints_scalar_max(float a, float b) {
    return a > b ? a : b;
}

static inline __attribute__((unused)) ints_SCALAR
float ints_scalar_min(float a, float b) {
    return a < b ? a : b;
}

/* Below 2^23 adding 2^23 leaves no bits of a fraction; above, and with NaN, there is nothing to round. */
static inline __attribute__((unused)) ints_SCALAR
float ints_scalar_round(float a) {
    float size = __builtin_fabsf(a);
    if (!(size < 8388608.0f)) return a;
    return __builtin_copysignf((size + 8388608.0f) - 8388608.0f, a);
}

static inline __attribute__((unused)) ints_SCALAR
uint8_t ints_scalar_code(float a, float z) {
    const float code = ints_scalar_round(a) + z;
    return (uint8_t)(code > 0.0f ? code < 255.0f ? code : 255.0f : 0.0f);
}

static inline __attribute__((unused)) ints_SCALAR
int32_t ints_scalar_word(const void *p) {
    int32_t word;
    __builtin_memcpy(&word, p, sizeof word);
    return word;
}

/* acc + the sum of the products of four bytes */
static inline __attribute__((unused)) ints_SCALAR
int32_t ints_scalar_dot(int32_t acc, int32_t a, int32_t b) {
    const int32_t low = (a & 255) * (int8_t)b + (a >> 8 & 255) * (int8_t)(b >> 8);
    const int32_t high = (a >> 16 & 255) * (int8_t)(b >> 16) + (a >> 24 & 255) * (int8_t)(b >> 24);
    return (int32_t)((uint32_t)acc + (uint32_t)(low + high));
}

/* The zero point of a row may be NaN, whose conversion to an integer is undefined; its scale is NaN then. */
static inline __attribute__((unused)) ints_SCALAR
int32_t ints_scalar_less_product(int32_t acc, float zero, float sums) {
    return (int32_t)((uint32_t)acc - (uint32_t)(zero == zero ? (int32_t)zero : 0) * (uint32_t)(int32_t)sums);
}

static inline __attribute__((unused)) ints_SCALAR
float ints_scalar_relu(float x) {
    return ints_scalar_max(0.0f, x);
}

/* rows of 8 columns, looked up: row `row` of the chunk, row `index` of its sequence */
static ints_SCALAR
void ints_scalar_rows_row(const ints_run *run, size_t row, size_t sequence, size_t index, const int8_t *table,
    const float *scales, float *to) {
    (void)run, (void)row, (void)sequence, (void)index;
    const size_t id = (size_t)run->tokens[row];
    const float unit = scales[id];
    const int8_t *from = table + id * 8;
    for (size_t c = 0; c < 8; c++) {
        {
            float lane[1] = {0};
            lane[0] = from[c];
            float value = *lane;
            value = (value * unit);
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

static ints_SCALAR
void ints_scalar_rows(const ints_run *run, const int8_t *table, const float *scales, float *out, int thread,
    int threads) {
    const size_t end = ints_first(run->rows, thread + 1, threads);
    size_t sequence = 0;
    for (size_t row = ints_first(run->rows, thread, threads); row < end; row++) {
        while (row >= (size_t)run->starts[sequence + 1]) sequence++;
        const size_t index = row - (size_t)run->starts[sequence];
        ints_scalar_rows_row(run, row, sequence, index, table, scales, out + row * 16);
    }
}

/* embedding: [rows][8] of a table [9][8] */
static ints_SCALAR
void ints_scalar_step_embedding(const ints_run *run, int thread) {
    ints_scalar_rows(run, (const int8_t *)(const void *)run->weights + ints_w_embedding_tokens, run->weights +
        ints_w_embedding_tokens_weight_scales, run->workspace + ints_x_embedding_looked_up, thread, run->threads);
}

/* 8 columns as codes of 0 to 255: one row */
static ints_SCALAR
void ints_scalar_quantize_8_row(const float *x, uint8_t *to) {
    const float zeros = 0.0f;
    float low0 = zeros, high0 = zeros, odd0 = zeros;
    float low1 = zeros, high1 = zeros, odd1 = zeros;
    float low2 = zeros, high2 = zeros, odd2 = zeros;
    float low3 = zeros, high3 = zeros, odd3 = zeros;
    for (size_t c = 0; c < 8; c += 4) {
        {
            const float value = x[c];
            low0 = ints_scalar_min(value, low0);
            high0 = ints_scalar_max(value, high0);
            odd0 = ints_scalar_fma(odd0, value, zeros);
        }
        {
            const float value = x[c + 1];
            low1 = ints_scalar_min(value, low1);
            high1 = ints_scalar_max(value, high1);
            odd1 = ints_scalar_fma(odd1, value, zeros);
        }
        {
            const float value = x[c + 2];
            low2 = ints_scalar_min(value, low2);
            high2 = ints_scalar_max(value, high2);
            odd2 = ints_scalar_fma(odd2, value, zeros);
        }
        {
            const float value = x[c + 3];
            low3 = ints_scalar_min(value, low3);
            high3 = ints_scalar_max(value, high3);
            odd3 = ints_scalar_fma(odd3, value, zeros);
        }
    }
    low0 = ints_scalar_min(low1, low0);
    high0 = ints_scalar_max(high1, high0);
    odd0 = (odd0 + odd1);
    low0 = ints_scalar_min(low2, low0);
    high0 = ints_scalar_max(high2, high0);
    odd0 = (odd0 + odd2);
    low0 = ints_scalar_min(low3, low0);
    high0 = ints_scalar_max(high3, high0);
    odd0 = (odd0 + odd3);
    const float least = -(zeros - low0), range = high0 - least;
    const float none = odd0 + range * 0.0f;
    const float inverse = range >= 0x1p-100f && none == 0.0f ? 255.0f / range : 0.0f;
    const float zero = ints_scalar_round(-least * inverse);
    const float reciprocal = inverse, shift = zero;
    float *head = (float *)(void *)to;
    head[0] = (range >= 0x1p-100f ? range / 255.0f : 0.0f) + none;
    head[1] = zero;
    for (size_t c = 0; c < 8; c++) {
        {
            const float value = x[c];
            to[64 + c] = ints_scalar_code((value * reciprocal), shift);
        }
    }
    for (size_t c = 72; c < 128; c++) {
        to[c] = 0;
    }
}

static ints_SCALAR
void ints_scalar_quantize_8(const float *x, uint8_t *out, size_t rows, int thread, int threads) {
    const size_t end = ints_first(rows, thread + 1, threads);
    for (size_t row = ints_first(rows, thread, threads); row < end; row++)
        ints_scalar_quantize_8_row(x + row * 16, out + row * 128);
}

/* embedding looked up quantized: [rows][8] as codes of 0 to 255 */
static ints_SCALAR
void ints_scalar_step_encoder_embedding_looked_up_quantized(const ints_run *run, int thread) {
    ints_scalar_quantize_8(run->workspace + ints_x_embedding_looked_up,
        (uint8_t *)(void *)(run->workspace + ints_x_embedding_looked_up_quantized), run->rows, thread, run->threads);
}

static __attribute__((noinline)) ints_SCALAR
void ints_scalar_gemm_8x16_finish(const float *sums, const uint8_t *x, const float *scales, const float *bias,
    float *out, size_t rows, size_t stride, size_t panels) {
    for (size_t r = 0; r < rows; r++) {
        const float unitr = *(const float *)(const void *)(x + r * 128);
        for (size_t panel = 0; panel < panels; panel++) {
            float sum0 = *(sums + (r * stride + panel) * 16);
            sum0 = ints_scalar_fma(bias[panel * 16], sum0, (scales[panel * 16] * unitr));
            sum0 = ints_scalar_relu(sum0);
            out[((r * 16) + (panel * 16))] = sum0;
            float sum1 = *(sums + (r * stride + panel) * 16 + 1);
            sum1 = ints_scalar_fma(bias[((panel * 16) + 1)], sum1, (scales[((panel * 16) + 1)] * unitr));
            sum1 = ints_scalar_relu(sum1);
            out[((r * 16) + ((panel * 16) + 1))] = sum1;
            float sum2 = *(sums + (r * stride + panel) * 16 + 2);
            sum2 = ints_scalar_fma(bias[((panel * 16) + 2)], sum2, (scales[((panel * 16) + 2)] * unitr));
            sum2 = ints_scalar_relu(sum2);
            out[((r * 16) + ((panel * 16) + 2))] = sum2;
            float sum3 = *(sums + (r * stride + panel) * 16 + 3);
            sum3 = ints_scalar_fma(bias[((panel * 16) + 3)], sum3, (scales[((panel * 16) + 3)] * unitr));
            sum3 = ints_scalar_relu(sum3);
            out[((r * 16) + ((panel * 16) + 3))] = sum3;
            float sum4 = *(sums + (r * stride + panel) * 16 + 4);
            sum4 = ints_scalar_fma(bias[((panel * 16) + 4)], sum4, (scales[((panel * 16) + 4)] * unitr));
            sum4 = ints_scalar_relu(sum4);
            out[((r * 16) + ((panel * 16) + 4))] = sum4;
            float sum5 = *(sums + (r * stride + panel) * 16 + 5);
            sum5 = ints_scalar_fma(bias[((panel * 16) + 5)], sum5, (scales[((panel * 16) + 5)] * unitr));
            sum5 = ints_scalar_relu(sum5);
            out[((r * 16) + ((panel * 16) + 5))] = sum5;
            float sum6 = *(sums + (r * stride + panel) * 16 + 6);
            sum6 = ints_scalar_fma(bias[((panel * 16) + 6)], sum6, (scales[((panel * 16) + 6)] * unitr));
            sum6 = ints_scalar_relu(sum6);
            out[((r * 16) + ((panel * 16) + 6))] = sum6;
            float sum7 = *(sums + (r * stride + panel) * 16 + 7);
            sum7 = ints_scalar_fma(bias[((panel * 16) + 7)], sum7, (scales[((panel * 16) + 7)] * unitr));
            sum7 = ints_scalar_relu(sum7);
            out[((r * 16) + ((panel * 16) + 7))] = sum7;
            float sum8 = *(sums + (r * stride + panel) * 16 + 8);
            sum8 = ints_scalar_fma(bias[((panel * 16) + 8)], sum8, (scales[((panel * 16) + 8)] * unitr));
            sum8 = ints_scalar_relu(sum8);
            out[((r * 16) + ((panel * 16) + 8))] = sum8;
            float sum9 = *(sums + (r * stride + panel) * 16 + 9);
            sum9 = ints_scalar_fma(bias[((panel * 16) + 9)], sum9, (scales[((panel * 16) + 9)] * unitr));
            sum9 = ints_scalar_relu(sum9);
            out[((r * 16) + ((panel * 16) + 9))] = sum9;
            float sum10 = *(sums + (r * stride + panel) * 16 + 10);
            sum10 = ints_scalar_fma(bias[((panel * 16) + 10)], sum10, (scales[((panel * 16) + 10)] * unitr));
            sum10 = ints_scalar_relu(sum10);
            out[((r * 16) + ((panel * 16) + 10))] = sum10;
            float sum11 = *(sums + (r * stride + panel) * 16 + 11);
            sum11 = ints_scalar_fma(bias[((panel * 16) + 11)], sum11, (scales[((panel * 16) + 11)] * unitr));
            sum11 = ints_scalar_relu(sum11);
            out[((r * 16) + ((panel * 16) + 11))] = sum11;
            float sum12 = *(sums + (r * stride + panel) * 16 + 12);
            sum12 = ints_scalar_fma(bias[((panel * 16) + 12)], sum12, (scales[((panel * 16) + 12)] * unitr));
            sum12 = ints_scalar_relu(sum12);
            out[((r * 16) + ((panel * 16) + 12))] = sum12;
            float sum13 = *(sums + (r * stride + panel) * 16 + 13);
            sum13 = ints_scalar_fma(bias[((panel * 16) + 13)], sum13, (scales[((panel * 16) + 13)] * unitr));
            sum13 = ints_scalar_relu(sum13);
            out[((r * 16) + ((panel * 16) + 13))] = sum13;
            float sum14 = *(sums + (r * stride + panel) * 16 + 14);
            sum14 = ints_scalar_fma(bias[((panel * 16) + 14)], sum14, (scales[((panel * 16) + 14)] * unitr));
            sum14 = ints_scalar_relu(sum14);
            out[((r * 16) + ((panel * 16) + 14))] = sum14;
            float sum15 = *(sums + (r * stride + panel) * 16 + 15);
            sum15 = ints_scalar_fma(bias[((panel * 16) + 15)], sum15, (scales[((panel * 16) + 15)] * unitr));
            sum15 = ints_scalar_relu(sum15);
            out[((r * 16) + ((panel * 16) + 15))] = sum15;
        }
    }
}

static inline __attribute__((always_inline)) ints_SCALAR
void ints_scalar_gemm_8x16_vector(int32_t acc, float zero, const float *column_sums, float *out) {
    float sum = (float)ints_scalar_less_product(acc, zero, column_sums[0]);
    *out = sum;
}

static inline __attribute__((always_inline)) ints_SCALAR
void ints_scalar_gemm_8x16_row_1(int32_t acc0, int32_t acc1, int32_t acc2, int32_t acc3, int32_t acc4, int32_t acc5,
    int32_t acc6, int32_t acc7, int32_t acc8, int32_t acc9, int32_t acc10, int32_t acc11, int32_t acc12, int32_t acc13,
    int32_t acc14, int32_t acc15, const uint8_t *x, const float *column_sums, float *out) {
    const float *head = (const float *)(const void *)x;
    const float zero = head[1];
    ints_scalar_gemm_8x16_vector(acc0, zero, column_sums, out);
    ints_scalar_gemm_8x16_vector(acc1, zero, column_sums + 1, out + 1);
    ints_scalar_gemm_8x16_vector(acc2, zero, column_sums + 2, out + 2);
    ints_scalar_gemm_8x16_vector(acc3, zero, column_sums + 3, out + 3);
    ints_scalar_gemm_8x16_vector(acc4, zero, column_sums + 4, out + 4);
    ints_scalar_gemm_8x16_vector(acc5, zero, column_sums + 5, out + 5);
    ints_scalar_gemm_8x16_vector(acc6, zero, column_sums + 6, out + 6);
    ints_scalar_gemm_8x16_vector(acc7, zero, column_sums + 7, out + 7);
    ints_scalar_gemm_8x16_vector(acc8, zero, column_sums + 8, out + 8);
    ints_scalar_gemm_8x16_vector(acc9, zero, column_sums + 9, out + 9);
    ints_scalar_gemm_8x16_vector(acc10, zero, column_sums + 10, out + 10);
    ints_scalar_gemm_8x16_vector(acc11, zero, column_sums + 11, out + 11);
    ints_scalar_gemm_8x16_vector(acc12, zero, column_sums + 12, out + 12);
    ints_scalar_gemm_8x16_vector(acc13, zero, column_sums + 13, out + 13);
    ints_scalar_gemm_8x16_vector(acc14, zero, column_sums + 14, out + 14);
    ints_scalar_gemm_8x16_vector(acc15, zero, column_sums + 15, out + 15);
}

static ints_SCALAR
void ints_scalar_gemm_8x16_1x1(const uint8_t *x, const int8_t *w, const float *column_sums, const float *scales,
    const float *bias, float *out) {
    const int32_t none = 0;
    int32_t acc0_0 = none, acc0_1 = none, acc0_2 = none, acc0_3 = none, acc0_4 = none, acc0_5 = none, acc0_6 = none,
        acc0_7 = none, acc0_8 = none, acc0_9 = none, acc0_10 = none, acc0_11 = none, acc0_12 = none, acc0_13 = none,
        acc0_14 = none, acc0_15 = none;
    for (size_t k = 0; k < 2; k++) {
        const int32_t a0 = ints_scalar_word(x + (64 + (k * 4)));
        const int32_t w0 = ints_scalar_word(w + (k * 64));
        acc0_0 = ints_scalar_dot(acc0_0, a0, w0);
        const int32_t w1 = ints_scalar_word(w + (4 + (k * 64)));
        acc0_1 = ints_scalar_dot(acc0_1, a0, w1);
        const int32_t w2 = ints_scalar_word(w + (8 + (k * 64)));
        acc0_2 = ints_scalar_dot(acc0_2, a0, w2);
        const int32_t w3 = ints_scalar_word(w + (12 + (k * 64)));
        acc0_3 = ints_scalar_dot(acc0_3, a0, w3);
        const int32_t w4 = ints_scalar_word(w + (16 + (k * 64)));
        acc0_4 = ints_scalar_dot(acc0_4, a0, w4);
        const int32_t w5 = ints_scalar_word(w + (20 + (k * 64)));
        acc0_5 = ints_scalar_dot(acc0_5, a0, w5);
        const int32_t w6 = ints_scalar_word(w + (24 + (k * 64)));
        acc0_6 = ints_scalar_dot(acc0_6, a0, w6);
        const int32_t w7 = ints_scalar_word(w + (28 + (k * 64)));
        acc0_7 = ints_scalar_dot(acc0_7, a0, w7);
        const int32_t w8 = ints_scalar_word(w + (32 + (k * 64)));
        acc0_8 = ints_scalar_dot(acc0_8, a0, w8);
        const int32_t w9 = ints_scalar_word(w + (36 + (k * 64)));
        acc0_9 = ints_scalar_dot(acc0_9, a0, w9);
        const int32_t w10 = ints_scalar_word(w + (40 + (k * 64)));
        acc0_10 = ints_scalar_dot(acc0_10, a0, w10);
        const int32_t w11 = ints_scalar_word(w + (44 + (k * 64)));
        acc0_11 = ints_scalar_dot(acc0_11, a0, w11);
        const int32_t w12 = ints_scalar_word(w + (48 + (k * 64)));
        acc0_12 = ints_scalar_dot(acc0_12, a0, w12);
        const int32_t w13 = ints_scalar_word(w + (52 + (k * 64)));
        acc0_13 = ints_scalar_dot(acc0_13, a0, w13);
        const int32_t w14 = ints_scalar_word(w + (56 + (k * 64)));
        acc0_14 = ints_scalar_dot(acc0_14, a0, w14);
        const int32_t w15 = ints_scalar_word(w + (60 + (k * 64)));
        acc0_15 = ints_scalar_dot(acc0_15, a0, w15);
    }
    float sums[16];
    ints_scalar_gemm_8x16_row_1(acc0_0, acc0_1, acc0_2, acc0_3, acc0_4, acc0_5, acc0_6, acc0_7, acc0_8, acc0_9, acc0_10,
        acc0_11, acc0_12, acc0_13, acc0_14, acc0_15, x, column_sums, sums);
    ints_scalar_gemm_8x16_finish(sums, x, scales, bias, out, 1, 1, 1);
}

/* out [rows][16] = x [rows][8] times weight, + bias, relu */
static ints_SCALAR
void ints_scalar_gemm_8x16(const uint8_t *x, const int8_t *w, const float *scales, const float *column_sums,
    const float *bias, float *out, size_t rows, int thread, int threads) {
    if (rows == 0) return;
    const size_t tiles = (rows), least = rows / tiles, taller = rows % tiles;
    const size_t begin = ints_first(tiles, thread, threads), end = ints_first(tiles, thread + 1, threads);
    size_t block = begin / tiles, tile = begin % tiles, row = tile * least + (tile < taller ? tile : taller);
    for (size_t unit = begin, height; unit < end; unit++, row += height, tile++) {
        if (tile == tiles) block++, tile = 0, row = 0;
        height = least + (tile < taller);
        const size_t panel = block;
        const size_t column = panel * 16;
        ints_scalar_gemm_8x16_1x1(x + row * 128, w + panel * 128, column_sums + column, scales + column, bias + column,
            out + row * 16 + column);
    }
}

/* layer 0, ffn, up projection: [rows][8] x [8][16] + bias, relu */
static ints_SCALAR
void ints_scalar_step_layer0_ffn_up(const ints_run *run, int thread) {
    ints_scalar_gemm_8x16((uint8_t *)(void *)(run->workspace + ints_x_embedding_looked_up_quantized),
        (const int8_t *)(const void *)run->weights + ints_w_layer0_ffn_up,
        run->weights + ints_w_layer0_ffn_up_weight_scales, run->weights + ints_w_layer0_ffn_up_weight_sums,
        run->weights + ints_w_layer0_ffn_up_bias, run->workspace + ints_x_ffn_activated, run->rows, thread,
        run->threads);
}

/* 16 columns as codes of 0 to 255: one row */
static ints_SCALAR
void ints_scalar_quantize_16_row(const float *x, uint8_t *to) {
    const float zeros = 0.0f;
    float low0 = zeros, high0 = zeros, odd0 = zeros;
    float low1 = zeros, high1 = zeros, odd1 = zeros;
    float low2 = zeros, high2 = zeros, odd2 = zeros;
    float low3 = zeros, high3 = zeros, odd3 = zeros;
    for (size_t c = 0; c < 16; c += 4) {
        {
            const float value = x[c];
            low0 = ints_scalar_min(value, low0);
            high0 = ints_scalar_max(value, high0);
            odd0 = ints_scalar_fma(odd0, value, zeros);
        }
        {
            const float value = x[c + 1];
            low1 = ints_scalar_min(value, low1);
            high1 = ints_scalar_max(value, high1);
            odd1 = ints_scalar_fma(odd1, value, zeros);
        }
        {
            const float value = x[c + 2];
            low2 = ints_scalar_min(value, low2);
            high2 = ints_scalar_max(value, high2);
            odd2 = ints_scalar_fma(odd2, value, zeros);
        }
        {
            const float value = x[c + 3];
            low3 = ints_scalar_min(value, low3);
            high3 = ints_scalar_max(value, high3);
            odd3 = ints_scalar_fma(odd3, value, zeros);
        }
    }
    low0 = ints_scalar_min(low1, low0);
    high0 = ints_scalar_max(high1, high0);
    odd0 = (odd0 + odd1);
    low0 = ints_scalar_min(low2, low0);
    high0 = ints_scalar_max(high2, high0);
    odd0 = (odd0 + odd2);
    low0 = ints_scalar_min(low3, low0);
    high0 = ints_scalar_max(high3, high0);
    odd0 = (odd0 + odd3);
    const float least = -(zeros - low0), range = high0 - least;
    const float none = odd0 + range * 0.0f;
    const float inverse = range >= 0x1p-100f && none == 0.0f ? 255.0f / range : 0.0f;
    const float zero = ints_scalar_round(-least * inverse);
    const float reciprocal = inverse, shift = zero;
    float *head = (float *)(void *)to;
    head[0] = (range >= 0x1p-100f ? range / 255.0f : 0.0f) + none;
    head[1] = zero;
    for (size_t c = 0; c < 16; c++) {
        {
            const float value = x[c];
            to[64 + c] = ints_scalar_code((value * reciprocal), shift);
        }
    }
    for (size_t c = 80; c < 128; c++) {
        to[c] = 0;
    }
}

static ints_SCALAR
void ints_scalar_quantize_16(const float *x, uint8_t *out, size_t rows, int thread, int threads) {
    const size_t end = ints_first(rows, thread + 1, threads);
    for (size_t row = ints_first(rows, thread, threads); row < end; row++)
        ints_scalar_quantize_16_row(x + row * 16, out + row * 128);
}

/* layer 0, ffn, activated quantized: [rows][16] as codes of 0 to 255 */
static ints_SCALAR
void ints_scalar_step_layer0_ffn_activated_quantized(const ints_run *run, int thread) {
    ints_scalar_quantize_16(run->workspace + ints_x_ffn_activated,
        (uint8_t *)(void *)(run->workspace + ints_x_ffn_activated_quantized), run->rows, thread, run->threads);
}

static ints_SCALAR
void ints_scalar_gemm_16x8_1x1_last(const uint8_t *x, const int8_t *w, const float *column_sums, const float *scales,
    const float *bias, const float *other, float *out) {
    const int32_t none = 0;
    const float *head0 = (const float *)(const void *)(x);
    const float unit0 = head0[0];
    const float zero0 = head0[1];
    int32_t acc0_0 = none, acc0_1 = none, acc0_2 = none, acc0_3 = none, acc0_4 = none, acc0_5 = none, acc0_6 = none,
        acc0_7 = none;
    for (size_t k = 0; k < 4; k++) {
        const int32_t a0 = ints_scalar_word(x + (64 + (k * 4)));
        const int32_t w0 = ints_scalar_word(w + (k * 64));
        acc0_0 = ints_scalar_dot(acc0_0, a0, w0);
        const int32_t w1 = ints_scalar_word(w + (4 + (k * 64)));
        acc0_1 = ints_scalar_dot(acc0_1, a0, w1);
        const int32_t w2 = ints_scalar_word(w + (8 + (k * 64)));
        acc0_2 = ints_scalar_dot(acc0_2, a0, w2);
        const int32_t w3 = ints_scalar_word(w + (12 + (k * 64)));
        acc0_3 = ints_scalar_dot(acc0_3, a0, w3);
        const int32_t w4 = ints_scalar_word(w + (16 + (k * 64)));
        acc0_4 = ints_scalar_dot(acc0_4, a0, w4);
        const int32_t w5 = ints_scalar_word(w + (20 + (k * 64)));
        acc0_5 = ints_scalar_dot(acc0_5, a0, w5);
        const int32_t w6 = ints_scalar_word(w + (24 + (k * 64)));
        acc0_6 = ints_scalar_dot(acc0_6, a0, w6);
        const int32_t w7 = ints_scalar_word(w + (28 + (k * 64)));
        acc0_7 = ints_scalar_dot(acc0_7, a0, w7);
    }
    float sum0_0 = (float)ints_scalar_less_product(acc0_0, zero0, column_sums[0]);
    sum0_0 = ints_scalar_fma(bias[0], sum0_0, (scales[0] * unit0));
    sum0_0 = (other[0] + sum0_0);
    out[0] = sum0_0;
    float sum0_1 = (float)ints_scalar_less_product(acc0_1, zero0, column_sums[1]);
    sum0_1 = ints_scalar_fma(bias[1], sum0_1, (scales[1] * unit0));
    sum0_1 = (other[1] + sum0_1);
    out[1] = sum0_1;
    float sum0_2 = (float)ints_scalar_less_product(acc0_2, zero0, column_sums[2]);
    sum0_2 = ints_scalar_fma(bias[2], sum0_2, (scales[2] * unit0));
    sum0_2 = (other[2] + sum0_2);
    out[2] = sum0_2;
    float sum0_3 = (float)ints_scalar_less_product(acc0_3, zero0, column_sums[3]);
    sum0_3 = ints_scalar_fma(bias[3], sum0_3, (scales[3] * unit0));
    sum0_3 = (other[3] + sum0_3);
    out[3] = sum0_3;
    float sum0_4 = (float)ints_scalar_less_product(acc0_4, zero0, column_sums[4]);
    sum0_4 = ints_scalar_fma(bias[4], sum0_4, (scales[4] * unit0));
    sum0_4 = (other[4] + sum0_4);
    out[4] = sum0_4;
    float sum0_5 = (float)ints_scalar_less_product(acc0_5, zero0, column_sums[5]);
    sum0_5 = ints_scalar_fma(bias[5], sum0_5, (scales[5] * unit0));
    sum0_5 = (other[5] + sum0_5);
    out[5] = sum0_5;
    float sum0_6 = (float)ints_scalar_less_product(acc0_6, zero0, column_sums[6]);
    sum0_6 = ints_scalar_fma(bias[6], sum0_6, (scales[6] * unit0));
    sum0_6 = (other[6] + sum0_6);
    out[6] = sum0_6;
    float sum0_7 = (float)ints_scalar_less_product(acc0_7, zero0, column_sums[7]);
    sum0_7 = ints_scalar_fma(bias[7], sum0_7, (scales[7] * unit0));
    sum0_7 = (other[7] + sum0_7);
    out[7] = sum0_7;
}

/* out [rows][8] = x [rows][16] times weight, + bias, + other */
static ints_SCALAR
void ints_scalar_gemm_16x8(const uint8_t *x, const int8_t *w, const float *scales, const float *column_sums,
    const float *bias, const float *other, float *out, size_t rows, int thread, int threads) {
    if (rows == 0) return;
    const size_t tiles = (rows), least = rows / tiles, taller = rows % tiles;
    const size_t begin = ints_first(tiles, thread, threads), end = ints_first(tiles, thread + 1, threads);
    size_t block = begin / tiles, tile = begin % tiles, row = tile * least + (tile < taller ? tile : taller);
    for (size_t unit = begin, height; unit < end; unit++, row += height, tile++) {
        if (tile == tiles) block++, tile = 0, row = 0;
        height = least + (tile < taller);
        const size_t panel = block;
        const size_t column = panel * 16;
        if (block == 0) {
            ints_scalar_gemm_16x8_1x1_last(x + row * 128, w + panel * 256, column_sums + column, scales + column,
                bias + column, other + row * 16 + column, out + row * 8 + column);
            continue;
        }
    }
}

/* layer 0, ffn, down projection: [rows][16] x [16][8] + bias, + residual */
static ints_SCALAR
void ints_scalar_step_layer0_ffn_down(const ints_run *run, int thread) {
    ints_scalar_gemm_16x8((uint8_t *)(void *)(run->workspace + ints_x_ffn_activated_quantized),
        (const int8_t *)(const void *)run->weights + ints_w_layer0_ffn_down,
        run->weights + ints_w_layer0_ffn_down_weight_scales, run->weights + ints_w_layer0_ffn_down_weight_sums,
        run->weights + ints_w_layer0_ffn_down_bias, run->workspace + ints_x_embedding_looked_up, run->out_hidden,
        run->rows, thread, run->threads);
}

static void (*const ints_scalar_tasks[])(const ints_run *run, int thread) = {
    ints_scalar_step_embedding,
    ints_scalar_step_encoder_embedding_looked_up_quantized,
    ints_scalar_step_layer0_ffn_up,
    ints_scalar_step_layer0_ffn_activated_quantized,
    ints_scalar_step_layer0_ffn_down,
};

static __attribute__((noinline)) ints_SCALAR
void ints_scalar_forward_chunk(ints_run *run) {
    ints_forward_steps(run, ints_scalar_tasks);
}

const char *ints_status_text(int status) {
    switch (status) {
        case INTS_OK: return "fine";
        case INTS_BAD_ARGUMENT: return "a null pointer, a struct of another size, or a bad count";
        case INTS_BAD_WEIGHTS: return "the weights are damaged, or of another size, model, layout or version";
        case INTS_NO_TARGET: return "this machine lacks the instructions, or is big-endian";
        case INTS_SHORT_WORKSPACE: return "the workspace is too small or not aligned";
        case INTS_BAD_LENGTH: return "a sequence is empty or too long";
        case INTS_BAD_TOKEN: return "an id is outside its table";
        default: return "unknown status";
    }
}

/* FNV-1a, 64 bit */
static uint64_t ints_hash(uint64_t hash, const unsigned char *bytes, size_t size) {
    for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t ints_u64(const unsigned char *b) {
    return (uint64_t)b[0] | (uint64_t)b[1] << 8 | (uint64_t)b[2] << 16 | (uint64_t)b[3] << 24 | (uint64_t)b[4] << 32 |
        (uint64_t)b[5] << 40 | (uint64_t)b[6] << 48 | (uint64_t)b[7] << 56;
}

/* The header of a .attnw: magic, version, hashes of model and layout, dtype, sizes, zeros, checksums. */
static int ints_good_weights(const unsigned char *bytes, size_t size, int verify) {
    const uint64_t seed = UINT64_C(0xcbf29ce484222325);
    if (size != INTS_WEIGHTS_BYTES || (uintptr_t)bytes % INTS_ALIGNMENT != 0) return 0;
    if (ints_u64(bytes) != UINT64_C(0x1a0a0d574e545441) || ints_u64(bytes + 8) != (UINT64_C(1) << 32 | 1)) return 0;
    if (ints_u64(bytes + 120) != ints_hash(seed, bytes, 120)) return 0;
    if (ints_u64(bytes + 16) != UINT64_C(0xd71179113016e990) || ints_u64(bytes + 56) != UINT64_C(0x4761da93718ccbe4))
        return 0;
    if (ints_u64(bytes + 24) != (UINT64_C(10) << 32 | 7)) return 0; /* tensors; I8 */
    if (ints_u64(bytes + 32) != 128 || ints_u64(bytes + 40) != UINT64_C(1984)) return 0;
    if (ints_u64(bytes + 64) | ints_u64(bytes + 72) | ints_u64(bytes + 80) | ints_u64(bytes + 88) |
        ints_u64(bytes + 96) | ints_u64(bytes + 104) | ints_u64(bytes + 112))
        return 0;
    return !verify || ints_u64(bytes + 48) == ints_hash(seed, bytes + 128, (size_t)1984u);
}

static int ints_same(const char *a, const char *b) {
    return *a == *b && (*a == 0 || ints_same(a + 1, b + 1));
}

static const char *const ints_targets[] = {"scalar"};

/* Index of the best target that this CPU has, or of the requested one; -1: none. */
static int ints_pick(const char *wanted) {
    if (!wanted || ints_same(wanted, "scalar")) return 0;
    return -1;
}

int ints_init(ints_ctx *ctx, const void *weights, size_t bytes, const ints_options *options) {
    if (!ctx || !weights || (options && options->size != sizeof *options)) return INTS_BAD_ARGUMENT;
    const int threads = options && options->threads > 0 ? options->threads : 1;
    if (options && (options->threads < 0 || options->threads > 4096 || (threads > 1 && !options->parallel_for)))
        return INTS_BAD_ARGUMENT;
    if (!ints_good_weights((const unsigned char *)weights, bytes, options ? options->verify : 0))
        return INTS_BAD_WEIGHTS;
    const int target = ints_pick(options ? options->target : NULL);
    static const uint16_t one = 1; /* the numbers of the weights begin with their lowest byte */
    if (target < 0 || *(const unsigned char *)&one != 1) return INTS_NO_TARGET;
    ctx->weights = (const float *)(const void *)((const unsigned char *)weights + 128);
    ctx->target = target;
    ctx->threads = threads;
    ctx->parallel_for = options ? options->parallel_for : NULL;
    ctx->pool = options ? options->pool : NULL;
    ctx->on_step = options ? options->on_step : NULL;
    ctx->watcher = options ? options->watcher : NULL;
    ctx->least_work = options && options->least_work ? options->least_work : INTS_LEAST_WORK;
    return INTS_OK;
}

const char *ints_target(const ints_ctx *ctx) {
    return ctx ? ints_targets[ctx->target] : "";
}

static int ints_check_input(const ints_input *input) {
    size_t rows = 0;
    for (int b = 0; b < input->batch; b++) {
        const int32_t length = input->lengths[b];
        if (length < 1 || length > 4) return INTS_BAD_LENGTH;
        rows += (size_t)length;
    }
    (void)rows;
    for (size_t i = 0; i < rows; i++)
        if (input->tokens[i] < 0 || input->tokens[i] >= 9) return INTS_BAD_TOKEN;
    return INTS_OK;
}

int ints_forward(const ints_ctx *ctx, const ints_input *input, ints_output *output, void *workspace, size_t bytes) {
    if (!ctx || !input || !output || !workspace || input->size != sizeof *input || output->size != sizeof *output)
        return INTS_BAD_ARGUMENT;
    if (input->batch < 1 || !input->lengths || !input->tokens) return INTS_BAD_ARGUMENT;
    if (bytes < INTS_WORKSPACE_BYTES(ctx->threads) || (uintptr_t)workspace % INTS_ALIGNMENT != 0)
        return INTS_SHORT_WORKSPACE;
    const int status = ints_check_input(input);
    if (status != INTS_OK) return status;
    unsigned char *memory = (unsigned char *)workspace;
    int32_t *starts = (int32_t *)(void *)memory;
    ints_run run = {0};
    run.weights = ctx->weights;
    run.workspace = (float *)(void *)(memory + 1088);
    run.scratch = run.workspace + 16432;
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
            case 0: ints_scalar_forward_chunk(&run); break;
        }
        run.tokens += rows;
        if (run.out_hidden) run.out_hidden += rows * 8;
    }
    return INTS_OK;
}
