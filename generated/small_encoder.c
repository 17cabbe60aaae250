/* small_encoder.c: encoder of 2 layers over at most 16 rows, d_model 32; model hash 891956682cd12f0a
 *
 * Made by attnc 0.1.0: attnc compile small_encoder.attn --target avx2
 * Memory: a workspace of 165120 bytes plus 768 per thread; 80896 bytes of weights.
 * The output of attnc belongs to its user, without conditions. */
#include "small_encoder.h"

#if SMALL_ENCODER_HEADER != 0x38c052dbu
#error "small_encoder.h is of another run of attnc than this file"
#endif
#ifdef __FAST_MATH__
#error "this file counts on IEEE arithmetic: compile it without -ffast-math"
#endif
#if defined(__FLT_EVAL_METHOD__) && (__FLT_EVAL_METHOD__ < 0 || __FLT_EVAL_METHOD__ == 1 || __FLT_EVAL_METHOD__ == 2)
#error "this file counts on floats that are rounded at once: compile it with -msse2 -mfpmath=sse, or with -std=gnu11"
#endif

#if defined(__x86_64__)
#ifdef __clang__
#pragma push_macro("_MSC_VER")
#undef _MSC_VER
#endif
#include <immintrin.h>
#ifdef __clang__
#pragma pop_macro("_MSC_VER")
#endif
#endif

typedef struct small_encoder_run {
    const float *weights;
    float *workspace, *scratch;
    size_t rows, sequences;   /* of this chunk */
    size_t ended;             /* sequences whose last row is in this chunk */
    const int32_t *starts;    /* [sequences + 1] first row of each sequence */
    const int32_t *tokens;
    float *out_hidden;
    float *out_pooled;
    float *out_logits;
    uint64_t self_scores;   /* pairs of a query and a key: the work of attention */
    uint64_t least_work;
    void (*task)(const struct small_encoder_run *run, int thread); /* of the step that threads share */
    int threads;
    void (*parallel_for)(void *pool, int count, void (*task)(void *with, int index), void *with);
    void *pool;
    void (*on_step)(void *watcher, int step);
    void *watcher;
} small_encoder_run;

static inline __attribute__((unused)) void small_encoder_before(const small_encoder_run *run, int step) {
    if (__builtin_expect(run->on_step != NULL, 0)) run->on_step(run->watcher, step);
}

static __attribute__((unused)) void small_encoder_task(void *with, int thread) {
    const small_encoder_run *run = (const small_encoder_run *)with;
    run->task(run, thread);
}

/* `work`: multiply-adds, roughly. Below the bound, waking threads costs more than it saves. */
static __attribute__((unused)) void small_encoder_run_step(small_encoder_run *run, int step,
    void (*const *tasks)(const small_encoder_run *run, int thread), uint64_t work) {
    small_encoder_before(run, step);
    const int threads = run->threads;
    if (threads > 1 && work >= run->least_work) {
        run->task = tasks[step];
        run->parallel_for(run->pool, threads, small_encoder_task, run);
        return;
    }
    run->threads = 1; /* tasks divide their work by it */
    tasks[step](run, 0);
    run->threads = threads;
}

/* The first of n items that a thread has; those of the next thread follow its last one. */
static inline __attribute__((unused)) size_t small_encoder_first(size_t n, int thread, int threads) {
    return n * (size_t)thread / (size_t)threads;
}

/* Where each tensor begins in the weights, in floats, and its shape. A matrix [N][K] stands in panels,
 * [N / 16][K][16]. small_encoder_w_layer3_ffn_up is the tensor layers.3.ffn.up.weight of its stack. A product of
 * several matrices reads them as one: behind its shape are their names, in their order. */
#define small_encoder_w_embedding_tokens 0 /* [64][32] */
#define small_encoder_w_encoder_embedding_sinusoids 2048 /* [16][32] */
/* encoder.layers.0. */
#define small_encoder_w_layer0_attention_query_key_value 2560 /* [6][32][16] query, key, value */
#define small_encoder_w_layer0_attention_query_key_value_bias 5632 /* [96] query, key, value */
#define small_encoder_w_layer0_attention_output 5728 /* [2][32][16] */
#define small_encoder_w_layer0_attention_output_bias 6752 /* [32] */
#define small_encoder_w_layer0_attention_norm_out 6784 /* [32] */
#define small_encoder_w_layer0_attention_norm_out_bias 6816 /* [32] */
#define small_encoder_w_layer0_ffn_up 6848 /* [4][32][16] */
#define small_encoder_w_layer0_ffn_up_bias 8896 /* [64] */
#define small_encoder_w_layer0_ffn_down 8960 /* [2][64][16] */
#define small_encoder_w_layer0_ffn_down_bias 11008 /* [32] */
#define small_encoder_w_layer0_ffn_norm_out 11040 /* [32] */
#define small_encoder_w_layer0_ffn_norm_out_bias 11072 /* [32] */
/* encoder.layers.1. */
#define small_encoder_w_layer1_attention_query_key_value 11104 /* [6][32][16] query, key, value */
#define small_encoder_w_layer1_attention_query_key_value_bias 14176 /* [96] query, key, value */
#define small_encoder_w_layer1_attention_output 14272 /* [2][32][16] */
#define small_encoder_w_layer1_attention_output_bias 15296 /* [32] */
#define small_encoder_w_layer1_attention_norm_out 15328 /* [32] */
#define small_encoder_w_layer1_attention_norm_out_bias 15360 /* [32] */
#define small_encoder_w_layer1_ffn_up 15392 /* [4][32][16] */
#define small_encoder_w_layer1_ffn_up_bias 17440 /* [64] */
#define small_encoder_w_layer1_ffn_down 17504 /* [2][64][16] */
#define small_encoder_w_layer1_ffn_down_bias 19552 /* [32] */
#define small_encoder_w_layer1_ffn_norm_out 19584 /* [32] */
#define small_encoder_w_layer1_ffn_norm_out_bias 19616 /* [32] */
#define small_encoder_w_classifier 19648 /* [1][32][16] */
#define small_encoder_w_classifier_bias 20160 /* [5] */

/* The workspace of forward, in bytes:
 *     0: starts[257], the first row of each sequence
 *     1088: buffers of 41008 floats
 *     then 768 of scratch for each thread
 * Each buffer has its offset in floats, its shape, and the first and the last step that use it. */
#define small_encoder_x_embedding_with_positions 0 /* [256][32] embedding to attention_output of layer 0 */
/* [256][32] ffn_down to attention_output of the next layer, ffn_down to copy_hidden */
#define small_encoder_x_ffn_sum 0
#define small_encoder_x_attention_query_key_value 8208 /* [256][96] attention_query_key_value to attention_attended */
#define small_encoder_x_attention_sum 8208 /* [256][32] attention_output to ffn_down */
#define small_encoder_x_pool 8208 /* [256][32] pool to copy_pooled */
#define small_encoder_x_ffn_activated 16416 /* [256][64] ffn_up to ffn_down */
#define small_encoder_x_attention_attended 32800 /* [256][32] attention_attended to attention_output */

static __attribute__((unused)) void small_encoder_forward_steps(small_encoder_run *run,
    void (*const *tasks)(const small_encoder_run *run, int thread)) {
    __asm__("" : "+r"(tasks)); /* hides the steps, which would round otherwise if they were inlined here */
    small_encoder_run_step(run, 0, tasks, run->rows * UINT64_C(320));
    small_encoder_run_step(run, 1, tasks, run->rows * UINT64_C(3072));
    small_encoder_run_step(run, 2, tasks, run->self_scores * UINT64_C(104));
    small_encoder_run_step(run, 3, tasks, run->rows * UINT64_C(1024));
    small_encoder_run_step(run, 4, tasks, run->rows * UINT64_C(320));
    small_encoder_run_step(run, 5, tasks, run->rows * UINT64_C(2048));
    small_encoder_run_step(run, 6, tasks, run->rows * UINT64_C(2048));
    small_encoder_run_step(run, 7, tasks, run->rows * UINT64_C(320));
    small_encoder_run_step(run, 8, tasks, run->rows * UINT64_C(3072));
    small_encoder_run_step(run, 9, tasks, run->self_scores * UINT64_C(104));
    small_encoder_run_step(run, 10, tasks, run->rows * UINT64_C(1024));
    small_encoder_run_step(run, 11, tasks, run->rows * UINT64_C(320));
    small_encoder_run_step(run, 12, tasks, run->rows * UINT64_C(2048));
    small_encoder_run_step(run, 13, tasks, run->rows * UINT64_C(2048));
    small_encoder_run_step(run, 14, tasks, run->rows * UINT64_C(320));
    small_encoder_run_step(run, 15, tasks, run->ended * UINT64_C(320));
    if (run->out_logits) small_encoder_run_step(run, 16, tasks, run->ended * UINT64_C(160));
    else small_encoder_before(run, 16);
    if (run->out_hidden) small_encoder_run_step(run, 17, tasks, run->rows * UINT64_C(320));
    else small_encoder_before(run, 17);
    if (run->out_pooled) small_encoder_run_step(run, 18, tasks, run->ended * UINT64_C(320));
    else small_encoder_before(run, 18);
    small_encoder_before(run, 19);
}

/* ------------------------------------------------------------------ target avx2 */
#if defined(__x86_64__)

#define small_encoder_AVX2 __attribute__((target("avx2,f16c,fma")))

/* ones in the first n lanes */
static inline __attribute__((unused)) small_encoder_AVX2
__m256i small_encoder_avx2_first(size_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/* x * 2^n, rounded once. The second factor takes all of n that is a float's power; what is left to the
 * first is exact, or leaves nothing but zero or infinity to the second. The last product is an fma with
 * -0 so that no compiler makes it part of a sum. */
static inline __attribute__((unused)) small_encoder_AVX2
__m256 small_encoder_avx2_exp2i(__m256 x, __m256 n) {
    __m256 second = _mm256_max_ps(_mm256_min_ps(n, _mm256_set1_ps(127.0f)), _mm256_set1_ps(-126.0f));
    __m256i bias = _mm256_set1_epi32(127);
    __m256i j = _mm256_cvtps_epi32(second), i = _mm256_cvtps_epi32(_mm256_sub_ps(n, second));
    __m256 power_i = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(i, bias), 23));
    __m256 power_j = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(j, bias), 23));
    return _mm256_fmadd_ps(_mm256_mul_ps(x, power_i), power_j, _mm256_set1_ps(-0.0f));
}

static inline __attribute__((unused)) small_encoder_AVX2
float small_encoder_avx2_sum(__m256 a) {
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

static inline __attribute__((unused)) small_encoder_AVX2
float small_encoder_avx2_hmax(__m256 a) {
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

/* 2^x for x up to 160: 2^n times a polynomial in r, |r| <= 1/2 (at most 2 ulp). Results below 2^-126, which would
 * be denormal, are 0; NaN stays NaN. The softmax, and sums of 1 and a power of e, call it with a scaled argument:
 * the rounding of the scale is a relative error of the power. */
static inline __attribute__((unused)) small_encoder_AVX2
__m256 small_encoder_avx2_exp2(__m256 x) {
    const __m256 t = _mm256_max_ps(_mm256_set1_ps(-126.0f), x);
    const __m256 n = _mm256_round_ps(t, _MM_FROUND_NINT);
    const __m256 r = _mm256_sub_ps(t, n);
    __m256 y = _mm256_set1_ps(0x1.5bba12p-10f);
    y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(0x1.3ceba8p-7f));
    y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(0x1.c6b7bep-5f));
    y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(0x1.ebf9bap-3f));
    y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(0x1.62e428p-1f));
    y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(1.0f));
    return _mm256_blendv_ps(small_encoder_avx2_exp2i(y, n), _mm256_setzero_ps(),
        _mm256_cmp_ps(x, _mm256_set1_ps(-126.0f), _CMP_LT_OQ));
}

static inline __attribute__((unused)) small_encoder_AVX2
__m256 small_encoder_avx2_relu(__m256 x) {
    return _mm256_max_ps(_mm256_setzero_ps(), x);
}

/* acc + a b, as the vectors round it */
static inline __attribute__((unused)) small_encoder_AVX2
float small_encoder_avx2_fma1(float acc, float a, float b) {
    float lanes[8];
    _mm256_storeu_ps(lanes, _mm256_fmadd_ps(_mm256_set1_ps(a), _mm256_set1_ps(b), _mm256_set1_ps(acc)));
    return lanes[0];
}

/* rows of 32 columns, looked up, + positions: row `row` of the chunk, row `index` of its sequence */
static small_encoder_AVX2
void small_encoder_avx2_rows_row(const small_encoder_run *run, size_t row, size_t sequence, size_t index,
    const float *table, const float *positions, float *to) {
    (void)run, (void)row, (void)sequence, (void)index;
    const size_t id = (size_t)run->tokens[row];
    const float *from = table + id * 32;
    const float *position = positions + (index) * 32;
    for (size_t c = 0; c < 32; c += 8) {
        {
            __m256 value = _mm256_loadu_ps(from + c);
            value = _mm256_add_ps(value, _mm256_loadu_ps(position + c));
            _mm256_storeu_ps(to + c, value);
        }
    }
}

static small_encoder_AVX2
void small_encoder_avx2_rows(const small_encoder_run *run, const float *table, const float *positions, float *out,
    int thread, int threads) {
    const size_t end = small_encoder_first(run->rows, thread + 1, threads);
    size_t sequence = 0;
    for (size_t row = small_encoder_first(run->rows, thread, threads); row < end; row++) {
        while (row >= (size_t)run->starts[sequence + 1]) sequence++;
        const size_t index = row - (size_t)run->starts[sequence];
        small_encoder_avx2_rows_row(run, row, sequence, index, table, positions, out + row * 32);
    }
}

/* embedding: [rows][32] of a table [64][32] + positions */
static small_encoder_AVX2
void small_encoder_avx2_step_embedding(const small_encoder_run *run, int thread) {
    small_encoder_avx2_rows(run, run->weights + small_encoder_w_embedding_tokens,
        run->weights + small_encoder_w_encoder_embedding_sinusoids,
        run->workspace + small_encoder_x_embedding_with_positions, thread, run->threads);
}

static small_encoder_AVX2
void small_encoder_avx2_gemm_32x96_1x3(const float *x, const float *w, const float *bias, float *out) {
    __m256 acc0_0 = _mm256_loadu_ps(bias), acc0_1 = _mm256_loadu_ps(bias + 8), acc0_2 = _mm256_loadu_ps(bias + 16),
        acc0_3 = _mm256_loadu_ps(bias + 24), acc0_4 = _mm256_loadu_ps(bias + 32), acc0_5 = _mm256_loadu_ps(bias + 40);
    for (size_t k = 0; k < 32; k++) {
        const __m256 a0 = _mm256_broadcast_ss(x + k);
        const __m256 w0 = _mm256_loadu_ps(w + (k * 16));
        acc0_0 = _mm256_fmadd_ps(a0, w0, acc0_0);
        const __m256 w1 = _mm256_loadu_ps(w + (8 + (k * 16)));
        acc0_1 = _mm256_fmadd_ps(a0, w1, acc0_1);
        const __m256 w2 = _mm256_loadu_ps(w + (512 + (k * 16)));
        acc0_2 = _mm256_fmadd_ps(a0, w2, acc0_2);
        const __m256 w3 = _mm256_loadu_ps(w + (520 + (k * 16)));
        acc0_3 = _mm256_fmadd_ps(a0, w3, acc0_3);
        const __m256 w4 = _mm256_loadu_ps(w + (1024 + (k * 16)));
        acc0_4 = _mm256_fmadd_ps(a0, w4, acc0_4);
        const __m256 w5 = _mm256_loadu_ps(w + (1032 + (k * 16)));
        acc0_5 = _mm256_fmadd_ps(a0, w5, acc0_5);
    }
    _mm256_storeu_ps(out, acc0_0);
    _mm256_storeu_ps(out + 8, acc0_1);
    _mm256_storeu_ps(out + 16, acc0_2);
    _mm256_storeu_ps(out + 24, acc0_3);
    _mm256_storeu_ps(out + 32, acc0_4);
    _mm256_storeu_ps(out + 40, acc0_5);
}

static small_encoder_AVX2
void small_encoder_avx2_gemm_32x96_2x3(const float *x, const float *w, const float *bias, float *out) {
    const __m256 b0 = _mm256_loadu_ps(bias), b1 = _mm256_loadu_ps(bias + 8), b2 = _mm256_loadu_ps(bias + 16),
        b3 = _mm256_loadu_ps(bias + 24), b4 = _mm256_loadu_ps(bias + 32), b5 = _mm256_loadu_ps(bias + 40);
    __m256 acc0_0 = b0, acc0_1 = b1, acc0_2 = b2, acc0_3 = b3, acc0_4 = b4, acc0_5 = b5;
    __m256 acc1_0 = b0, acc1_1 = b1, acc1_2 = b2, acc1_3 = b3, acc1_4 = b4, acc1_5 = b5;
    for (size_t k = 0; k < 32; k++) {
        const __m256 a0 = _mm256_broadcast_ss(x + k);
        const __m256 a1 = _mm256_broadcast_ss(x + (32 + k));
        const __m256 w0 = _mm256_loadu_ps(w + (k * 16));
        acc0_0 = _mm256_fmadd_ps(a0, w0, acc0_0);
        acc1_0 = _mm256_fmadd_ps(a1, w0, acc1_0);
        const __m256 w1 = _mm256_loadu_ps(w + (8 + (k * 16)));
        acc0_1 = _mm256_fmadd_ps(a0, w1, acc0_1);
        acc1_1 = _mm256_fmadd_ps(a1, w1, acc1_1);
        const __m256 w2 = _mm256_loadu_ps(w + (512 + (k * 16)));
        acc0_2 = _mm256_fmadd_ps(a0, w2, acc0_2);
        acc1_2 = _mm256_fmadd_ps(a1, w2, acc1_2);
        const __m256 w3 = _mm256_loadu_ps(w + (520 + (k * 16)));
        acc0_3 = _mm256_fmadd_ps(a0, w3, acc0_3);
        acc1_3 = _mm256_fmadd_ps(a1, w3, acc1_3);
        const __m256 w4 = _mm256_loadu_ps(w + (1024 + (k * 16)));
        acc0_4 = _mm256_fmadd_ps(a0, w4, acc0_4);
        acc1_4 = _mm256_fmadd_ps(a1, w4, acc1_4);
        const __m256 w5 = _mm256_loadu_ps(w + (1032 + (k * 16)));
        acc0_5 = _mm256_fmadd_ps(a0, w5, acc0_5);
        acc1_5 = _mm256_fmadd_ps(a1, w5, acc1_5);
    }
    _mm256_storeu_ps(out, acc0_0);
    _mm256_storeu_ps(out + 8, acc0_1);
    _mm256_storeu_ps(out + 16, acc0_2);
    _mm256_storeu_ps(out + 24, acc0_3);
    _mm256_storeu_ps(out + 32, acc0_4);
    _mm256_storeu_ps(out + 40, acc0_5);
    _mm256_storeu_ps(out + 96, acc1_0);
    _mm256_storeu_ps(out + 104, acc1_1);
    _mm256_storeu_ps(out + 112, acc1_2);
    _mm256_storeu_ps(out + 120, acc1_3);
    _mm256_storeu_ps(out + 128, acc1_4);
    _mm256_storeu_ps(out + 136, acc1_5);
}

static small_encoder_AVX2
void small_encoder_avx2_gemm_32x96_3x1(const float *x, const float *w, const float *bias, float *out) {
    const __m256 b0 = _mm256_loadu_ps(bias), b1 = _mm256_loadu_ps(bias + 8);
    __m256 acc0_0 = b0, acc0_1 = b1;
    __m256 acc1_0 = b0, acc1_1 = b1;
    __m256 acc2_0 = b0, acc2_1 = b1;
    for (size_t k = 0; k < 32; k++) {
        const __m256 w0 = _mm256_loadu_ps(w + (k * 16));
        const __m256 w1 = _mm256_loadu_ps(w + (8 + (k * 16)));
        const __m256 a0 = _mm256_broadcast_ss(x + k);
        acc0_0 = _mm256_fmadd_ps(a0, w0, acc0_0);
        acc0_1 = _mm256_fmadd_ps(a0, w1, acc0_1);
        const __m256 a1 = _mm256_broadcast_ss(x + (32 + k));
        acc1_0 = _mm256_fmadd_ps(a1, w0, acc1_0);
        acc1_1 = _mm256_fmadd_ps(a1, w1, acc1_1);
        const __m256 a2 = _mm256_broadcast_ss(x + (64 + k));
        acc2_0 = _mm256_fmadd_ps(a2, w0, acc2_0);
        acc2_1 = _mm256_fmadd_ps(a2, w1, acc2_1);
    }
    _mm256_storeu_ps(out, acc0_0);
    _mm256_storeu_ps(out + 8, acc0_1);
    _mm256_storeu_ps(out + 96, acc1_0);
    _mm256_storeu_ps(out + 104, acc1_1);
    _mm256_storeu_ps(out + 192, acc2_0);
    _mm256_storeu_ps(out + 200, acc2_1);
}

static small_encoder_AVX2
void small_encoder_avx2_gemm_32x96_4x1(const float *x, const float *w, const float *bias, float *out) {
    const __m256 b0 = _mm256_loadu_ps(bias), b1 = _mm256_loadu_ps(bias + 8);
    __m256 acc0_0 = b0, acc0_1 = b1;
    __m256 acc1_0 = b0, acc1_1 = b1;
    __m256 acc2_0 = b0, acc2_1 = b1;
    __m256 acc3_0 = b0, acc3_1 = b1;
    for (size_t k = 0; k < 32; k++) {
        const __m256 w0 = _mm256_loadu_ps(w + (k * 16));
        const __m256 w1 = _mm256_loadu_ps(w + (8 + (k * 16)));
        const __m256 a0 = _mm256_broadcast_ss(x + k);
        acc0_0 = _mm256_fmadd_ps(a0, w0, acc0_0);
        acc0_1 = _mm256_fmadd_ps(a0, w1, acc0_1);
        const __m256 a1 = _mm256_broadcast_ss(x + (32 + k));
        acc1_0 = _mm256_fmadd_ps(a1, w0, acc1_0);
        acc1_1 = _mm256_fmadd_ps(a1, w1, acc1_1);
        const __m256 a2 = _mm256_broadcast_ss(x + (64 + k));
        acc2_0 = _mm256_fmadd_ps(a2, w0, acc2_0);
        acc2_1 = _mm256_fmadd_ps(a2, w1, acc2_1);
        const __m256 a3 = _mm256_broadcast_ss(x + (96 + k));
        acc3_0 = _mm256_fmadd_ps(a3, w0, acc3_0);
        acc3_1 = _mm256_fmadd_ps(a3, w1, acc3_1);
    }
    _mm256_storeu_ps(out, acc0_0);
    _mm256_storeu_ps(out + 8, acc0_1);
    _mm256_storeu_ps(out + 96, acc1_0);
    _mm256_storeu_ps(out + 104, acc1_1);
    _mm256_storeu_ps(out + 192, acc2_0);
    _mm256_storeu_ps(out + 200, acc2_1);
    _mm256_storeu_ps(out + 288, acc3_0);
    _mm256_storeu_ps(out + 296, acc3_1);
}

static small_encoder_AVX2
void small_encoder_avx2_gemm_32x96_5x1(const float *x, const float *w, const float *bias, float *out) {
    const __m256 b0 = _mm256_loadu_ps(bias), b1 = _mm256_loadu_ps(bias + 8);
    __m256 acc0_0 = b0, acc0_1 = b1;
    __m256 acc1_0 = b0, acc1_1 = b1;
    __m256 acc2_0 = b0, acc2_1 = b1;
    __m256 acc3_0 = b0, acc3_1 = b1;
    __m256 acc4_0 = b0, acc4_1 = b1;
    for (size_t k = 0; k < 32; k++) {
        const __m256 w0 = _mm256_loadu_ps(w + (k * 16));
        const __m256 w1 = _mm256_loadu_ps(w + (8 + (k * 16)));
        const __m256 a0 = _mm256_broadcast_ss(x + k);
        acc0_0 = _mm256_fmadd_ps(a0, w0, acc0_0);
        acc0_1 = _mm256_fmadd_ps(a0, w1, acc0_1);
        const __m256 a1 = _mm256_broadcast_ss(x + (32 + k));
        acc1_0 = _mm256_fmadd_ps(a1, w0, acc1_0);
        acc1_1 = _mm256_fmadd_ps(a1, w1, acc1_1);
        const __m256 a2 = _mm256_broadcast_ss(x + (64 + k));
        acc2_0 = _mm256_fmadd_ps(a2, w0, acc2_0);
        acc2_1 = _mm256_fmadd_ps(a2, w1, acc2_1);
        const __m256 a3 = _mm256_broadcast_ss(x + (96 + k));
        acc3_0 = _mm256_fmadd_ps(a3, w0, acc3_0);
        acc3_1 = _mm256_fmadd_ps(a3, w1, acc3_1);
        const __m256 a4 = _mm256_broadcast_ss(x + (128 + k));
        acc4_0 = _mm256_fmadd_ps(a4, w0, acc4_0);
        acc4_1 = _mm256_fmadd_ps(a4, w1, acc4_1);
    }
    _mm256_storeu_ps(out, acc0_0);
    _mm256_storeu_ps(out + 8, acc0_1);
    _mm256_storeu_ps(out + 96, acc1_0);
    _mm256_storeu_ps(out + 104, acc1_1);
    _mm256_storeu_ps(out + 192, acc2_0);
    _mm256_storeu_ps(out + 200, acc2_1);
    _mm256_storeu_ps(out + 288, acc3_0);
    _mm256_storeu_ps(out + 296, acc3_1);
    _mm256_storeu_ps(out + 384, acc4_0);
    _mm256_storeu_ps(out + 392, acc4_1);
}

static small_encoder_AVX2
void small_encoder_avx2_gemm_32x96_6x1(const float *x, const float *w, const float *bias, float *out) {
    const __m256 b0 = _mm256_loadu_ps(bias), b1 = _mm256_loadu_ps(bias + 8);
    __m256 acc0_0 = b0, acc0_1 = b1;
    __m256 acc1_0 = b0, acc1_1 = b1;
    __m256 acc2_0 = b0, acc2_1 = b1;
    __m256 acc3_0 = b0, acc3_1 = b1;
    __m256 acc4_0 = b0, acc4_1 = b1;
    __m256 acc5_0 = b0, acc5_1 = b1;
    for (size_t k = 0; k < 32; k++) {
        const __m256 w0 = _mm256_loadu_ps(w + (k * 16));
        const __m256 w1 = _mm256_loadu_ps(w + (8 + (k * 16)));
        const __m256 a0 = _mm256_broadcast_ss(x + k);
        acc0_0 = _mm256_fmadd_ps(a0, w0, acc0_0);
        acc0_1 = _mm256_fmadd_ps(a0, w1, acc0_1);
        const __m256 a1 = _mm256_broadcast_ss(x + (32 + k));
        acc1_0 = _mm256_fmadd_ps(a1, w0, acc1_0);
        acc1_1 = _mm256_fmadd_ps(a1, w1, acc1_1);
        const __m256 a2 = _mm256_broadcast_ss(x + (64 + k));
        acc2_0 = _mm256_fmadd_ps(a2, w0, acc2_0);
        acc2_1 = _mm256_fmadd_ps(a2, w1, acc2_1);
        const __m256 a3 = _mm256_broadcast_ss(x + (96 + k));
        acc3_0 = _mm256_fmadd_ps(a3, w0, acc3_0);
        acc3_1 = _mm256_fmadd_ps(a3, w1, acc3_1);
        const __m256 a4 = _mm256_broadcast_ss(x + (128 + k));
        acc4_0 = _mm256_fmadd_ps(a4, w0, acc4_0);
        acc4_1 = _mm256_fmadd_ps(a4, w1, acc4_1);
        const __m256 a5 = _mm256_broadcast_ss(x + (160 + k));
        acc5_0 = _mm256_fmadd_ps(a5, w0, acc5_0);
        acc5_1 = _mm256_fmadd_ps(a5, w1, acc5_1);
    }
    _mm256_storeu_ps(out, acc0_0);
    _mm256_storeu_ps(out + 8, acc0_1);
    _mm256_storeu_ps(out + 96, acc1_0);
    _mm256_storeu_ps(out + 104, acc1_1);
    _mm256_storeu_ps(out + 192, acc2_0);
    _mm256_storeu_ps(out + 200, acc2_1);
    _mm256_storeu_ps(out + 288, acc3_0);
    _mm256_storeu_ps(out + 296, acc3_1);
    _mm256_storeu_ps(out + 384, acc4_0);
    _mm256_storeu_ps(out + 392, acc4_1);
    _mm256_storeu_ps(out + 480, acc5_0);
    _mm256_storeu_ps(out + 488, acc5_1);
}

/* out [rows][96] = x [rows][32] times weight, + bias */
static small_encoder_AVX2
void small_encoder_avx2_gemm_32x96(const float *x, const float *w, const float *bias, float *out, size_t rows,
    int thread, int threads) {
    if (rows == 0) return;
    if (rows == 1) {
        const size_t row = 0, end = small_encoder_first(2, thread + 1, threads);
        for (size_t block = small_encoder_first(2, thread, threads); block < end; block++) {
            const size_t panel = block * 3;
            const size_t column = panel * 16;
            small_encoder_avx2_gemm_32x96_1x3(x + row * 32, w + panel * 512, bias + column, out + row * 96 + column);
        }
        return;
    }
    if (rows == 2) {
        const size_t row = 0, end = small_encoder_first(2, thread + 1, threads);
        for (size_t block = small_encoder_first(2, thread, threads); block < end; block++) {
            const size_t panel = block * 3;
            const size_t column = panel * 16;
            small_encoder_avx2_gemm_32x96_2x3(x + row * 32, w + panel * 512, bias + column, out + row * 96 + column);
        }
        return;
    }
    const size_t tiles = (rows + 5) / 6, least = rows / tiles, taller = rows % tiles;
    const size_t begin = small_encoder_first(tiles * 6, thread, threads),
        end = small_encoder_first(tiles * 6, thread + 1, threads);
    size_t block = begin / tiles, tile = begin % tiles, row = tile * least + (tile < taller ? tile : taller);
    for (size_t unit = begin, height; unit < end; unit++, row += height, tile++) {
        if (tile == tiles) block++, tile = 0, row = 0;
        height = least + (tile < taller);
        const size_t panel = block;
        const size_t column = panel * 16;
        switch (height) {
            case 3:
                small_encoder_avx2_gemm_32x96_3x1(x + row * 32, w + panel * 512, bias + column,
                    out + row * 96 + column);
                break;
            case 4:
                small_encoder_avx2_gemm_32x96_4x1(x + row * 32, w + panel * 512, bias + column,
                    out + row * 96 + column);
                break;
            case 5:
                small_encoder_avx2_gemm_32x96_5x1(x + row * 32, w + panel * 512, bias + column,
                    out + row * 96 + column);
                break;
            case 6:
                small_encoder_avx2_gemm_32x96_6x1(x + row * 32, w + panel * 512, bias + column,
                    out + row * 96 + column);
                break;
        }
    }
}

/* layer 0, self attention, query, key and value projection: [rows][32] x [32][96] + bias */
static small_encoder_AVX2
void small_encoder_avx2_step_layer0_attention_query_key_value(const small_encoder_run *run, int thread) {
    small_encoder_avx2_gemm_32x96(run->workspace + small_encoder_x_embedding_with_positions,
        run->weights + small_encoder_w_layer0_attention_query_key_value,
        run->weights + small_encoder_w_layer0_attention_query_key_value_bias,
        run->workspace + small_encoder_x_attention_query_key_value, run->rows, thread, run->threads);
}

static small_encoder_AVX2
void small_encoder_avx2_attention_of_rows4(const float *query, const float *panels, const float *value, size_t v_stride,
    size_t i, size_t n, float *block, float *out) {
    (void)i, (void)n;
    const size_t first = 0;
    const size_t last = n;
    float sum[4];
    {
        const size_t from = 0, to = last;
        const size_t padded = (to + 15) / 16 * 16;
        const size_t j = 0;
        (void)j, (void)padded, (void)first;
        __m256 s0_0 = _mm256_setzero_ps();
        __m256 s0_1 = _mm256_setzero_ps();
        __m256 s1_0 = _mm256_setzero_ps();
        __m256 s1_1 = _mm256_setzero_ps();
        __m256 s2_0 = _mm256_setzero_ps();
        __m256 s2_1 = _mm256_setzero_ps();
        __m256 s3_0 = _mm256_setzero_ps();
        __m256 s3_1 = _mm256_setzero_ps();
        const float *panel = panels + j * 8;
        for (size_t d = 0; d < 8; d++) {
            const __m256 k0_0 = _mm256_loadu_ps(panel + (d * 16));
            const __m256 k0_1 = _mm256_loadu_ps(panel + (8 + (d * 16)));
            const __m256 q0 = _mm256_broadcast_ss(query + d);
            s0_0 = _mm256_fmadd_ps(q0, k0_0, s0_0);
            s0_1 = _mm256_fmadd_ps(q0, k0_1, s0_1);
            const __m256 q1 = _mm256_broadcast_ss(query + (96 + d));
            s1_0 = _mm256_fmadd_ps(q1, k0_0, s1_0);
            s1_1 = _mm256_fmadd_ps(q1, k0_1, s1_1);
            const __m256 q2 = _mm256_broadcast_ss(query + (192 + d));
            s2_0 = _mm256_fmadd_ps(q2, k0_0, s2_0);
            s2_1 = _mm256_fmadd_ps(q2, k0_1, s2_1);
            const __m256 q3 = _mm256_broadcast_ss(query + (288 + d));
            s3_0 = _mm256_fmadd_ps(q3, k0_0, s3_0);
            s3_1 = _mm256_fmadd_ps(q3, k0_1, s3_1);
        }
        s0_0 = _mm256_blendv_ps(_mm256_set1_ps(-__builtin_inff()), s0_0,
            _mm256_cmp_ps(_mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_ps((float)(int)(to)), _CMP_LT_OQ));
        s0_1 = _mm256_blendv_ps(_mm256_set1_ps(-__builtin_inff()), s0_1,
            _mm256_cmp_ps(_mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_ps((float)(int)(to - 8)), _CMP_LT_OQ));
        s1_0 = _mm256_blendv_ps(_mm256_set1_ps(-__builtin_inff()), s1_0,
            _mm256_cmp_ps(_mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_ps((float)(int)(to)), _CMP_LT_OQ));
        s1_1 = _mm256_blendv_ps(_mm256_set1_ps(-__builtin_inff()), s1_1,
            _mm256_cmp_ps(_mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_ps((float)(int)(to - 8)), _CMP_LT_OQ));
        s2_0 = _mm256_blendv_ps(_mm256_set1_ps(-__builtin_inff()), s2_0,
            _mm256_cmp_ps(_mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_ps((float)(int)(to)), _CMP_LT_OQ));
        s2_1 = _mm256_blendv_ps(_mm256_set1_ps(-__builtin_inff()), s2_1,
            _mm256_cmp_ps(_mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_ps((float)(int)(to - 8)), _CMP_LT_OQ));
        s3_0 = _mm256_blendv_ps(_mm256_set1_ps(-__builtin_inff()), s3_0,
            _mm256_cmp_ps(_mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_ps((float)(int)(to)), _CMP_LT_OQ));
        s3_1 = _mm256_blendv_ps(_mm256_set1_ps(-__builtin_inff()), s3_1,
            _mm256_cmp_ps(_mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_ps((float)(int)(to - 8)), _CMP_LT_OQ));
        __m256 greatest0 = s0_0;
        __m256 greatest1 = s1_0;
        __m256 greatest2 = s2_0;
        __m256 greatest3 = s3_0;
        greatest0 = _mm256_max_ps(greatest0, s0_1);
        greatest1 = _mm256_max_ps(greatest1, s1_1);
        greatest2 = _mm256_max_ps(greatest2, s2_1);
        greatest3 = _mm256_max_ps(greatest3, s3_1);
        float base[8] = {0};
        base[0] = small_encoder_avx2_hmax(greatest0) * 0x1.0527dcp-1f;
        base[1] = small_encoder_avx2_hmax(greatest1) * 0x1.0527dcp-1f;
        base[2] = small_encoder_avx2_hmax(greatest2) * 0x1.0527dcp-1f;
        base[3] = small_encoder_avx2_hmax(greatest3) * 0x1.0527dcp-1f;
        if ((base[0] >= 0x1p29f || base[0] <= -0x1p29f) && base[0] - base[0] == 0.0f) {
            s0_0 = _mm256_mul_ps(_mm256_sub_ps(_mm256_fmadd_ps(s0_0, _mm256_set1_ps(0x1.0527dcp-1f),
                _mm256_set1_ps(-0.0f)), _mm256_set1_ps(base[0])), _mm256_set1_ps(0x1.f5e466p+0f));
            s0_1 = _mm256_mul_ps(_mm256_sub_ps(_mm256_fmadd_ps(s0_1, _mm256_set1_ps(0x1.0527dcp-1f),
                _mm256_set1_ps(-0.0f)), _mm256_set1_ps(base[0])), _mm256_set1_ps(0x1.f5e466p+0f));
            base[0] = 0.0f;
        }
        if ((base[1] >= 0x1p29f || base[1] <= -0x1p29f) && base[1] - base[1] == 0.0f) {
            s1_0 = _mm256_mul_ps(_mm256_sub_ps(_mm256_fmadd_ps(s1_0, _mm256_set1_ps(0x1.0527dcp-1f),
                _mm256_set1_ps(-0.0f)), _mm256_set1_ps(base[1])), _mm256_set1_ps(0x1.f5e466p+0f));
            s1_1 = _mm256_mul_ps(_mm256_sub_ps(_mm256_fmadd_ps(s1_1, _mm256_set1_ps(0x1.0527dcp-1f),
                _mm256_set1_ps(-0.0f)), _mm256_set1_ps(base[1])), _mm256_set1_ps(0x1.f5e466p+0f));
            base[1] = 0.0f;
        }
        if ((base[2] >= 0x1p29f || base[2] <= -0x1p29f) && base[2] - base[2] == 0.0f) {
            s2_0 = _mm256_mul_ps(_mm256_sub_ps(_mm256_fmadd_ps(s2_0, _mm256_set1_ps(0x1.0527dcp-1f),
                _mm256_set1_ps(-0.0f)), _mm256_set1_ps(base[2])), _mm256_set1_ps(0x1.f5e466p+0f));
            s2_1 = _mm256_mul_ps(_mm256_sub_ps(_mm256_fmadd_ps(s2_1, _mm256_set1_ps(0x1.0527dcp-1f),
                _mm256_set1_ps(-0.0f)), _mm256_set1_ps(base[2])), _mm256_set1_ps(0x1.f5e466p+0f));
            base[2] = 0.0f;
        }
        if ((base[3] >= 0x1p29f || base[3] <= -0x1p29f) && base[3] - base[3] == 0.0f) {
            s3_0 = _mm256_mul_ps(_mm256_sub_ps(_mm256_fmadd_ps(s3_0, _mm256_set1_ps(0x1.0527dcp-1f),
                _mm256_set1_ps(-0.0f)), _mm256_set1_ps(base[3])), _mm256_set1_ps(0x1.f5e466p+0f));
            s3_1 = _mm256_mul_ps(_mm256_sub_ps(_mm256_fmadd_ps(s3_1, _mm256_set1_ps(0x1.0527dcp-1f),
                _mm256_set1_ps(-0.0f)), _mm256_set1_ps(base[3])), _mm256_set1_ps(0x1.f5e466p+0f));
            base[3] = 0.0f;
        }
        const __m256 less0 = _mm256_set1_ps(-base[0]);
        const __m256 less1 = _mm256_set1_ps(-base[1]);
        const __m256 less2 = _mm256_set1_ps(-base[2]);
        const __m256 less3 = _mm256_set1_ps(-base[3]);
        __m256 total0;
        __m256 total1;
        __m256 total2;
        __m256 total3;
        {
            const __m256 e0 = small_encoder_avx2_exp2(_mm256_fmadd_ps(s0_0, _mm256_set1_ps(0x1.0527dcp-1f), less0));
            _mm256_storeu_ps(block, e0);
            total0 = e0;
        }
        {
            const __m256 e0 = small_encoder_avx2_exp2(_mm256_fmadd_ps(s0_1, _mm256_set1_ps(0x1.0527dcp-1f), less0));
            _mm256_storeu_ps(block + 8, e0);
            total0 = _mm256_add_ps(total0, e0);
        }
        {
            const __m256 e1 = small_encoder_avx2_exp2(_mm256_fmadd_ps(s1_0, _mm256_set1_ps(0x1.0527dcp-1f), less1));
            _mm256_storeu_ps(block + 16, e1);
            total1 = e1;
        }
        {
            const __m256 e1 = small_encoder_avx2_exp2(_mm256_fmadd_ps(s1_1, _mm256_set1_ps(0x1.0527dcp-1f), less1));
            _mm256_storeu_ps(block + 16 + 8, e1);
            total1 = _mm256_add_ps(total1, e1);
        }
        {
            const __m256 e2 = small_encoder_avx2_exp2(_mm256_fmadd_ps(s2_0, _mm256_set1_ps(0x1.0527dcp-1f), less2));
            _mm256_storeu_ps(block + 32, e2);
            total2 = e2;
        }
        {
            const __m256 e2 = small_encoder_avx2_exp2(_mm256_fmadd_ps(s2_1, _mm256_set1_ps(0x1.0527dcp-1f), less2));
            _mm256_storeu_ps(block + 32 + 8, e2);
            total2 = _mm256_add_ps(total2, e2);
        }
        {
            const __m256 e3 = small_encoder_avx2_exp2(_mm256_fmadd_ps(s3_0, _mm256_set1_ps(0x1.0527dcp-1f), less3));
            _mm256_storeu_ps(block + 48, e3);
            total3 = e3;
        }
        {
            const __m256 e3 = small_encoder_avx2_exp2(_mm256_fmadd_ps(s3_1, _mm256_set1_ps(0x1.0527dcp-1f), less3));
            _mm256_storeu_ps(block + 48 + 8, e3);
            total3 = _mm256_add_ps(total3, e3);
        }
        float inverse[4];
        sum[0] = small_encoder_avx2_sum(total0);
        inverse[0] = 1.0f / sum[0];
        sum[1] = small_encoder_avx2_sum(total1);
        inverse[1] = 1.0f / sum[1];
        sum[2] = small_encoder_avx2_sum(total2);
        inverse[2] = 1.0f / sum[2];
        sum[3] = small_encoder_avx2_sum(total3);
        inverse[3] = 1.0f / sum[3];
        {
            __m256 o0_0 = _mm256_setzero_ps();
            __m256 o1_0 = _mm256_setzero_ps();
            __m256 o2_0 = _mm256_setzero_ps();
            __m256 o3_0 = _mm256_setzero_ps();
            for (size_t key_row = from; key_row < to; key_row++) {
                const __m256 v0_0 = _mm256_loadu_ps(value + (key_row * v_stride));
                const __m256 w0 = _mm256_broadcast_ss(block + (key_row - from));
                o0_0 = _mm256_fmadd_ps(w0, v0_0, o0_0);
                const __m256 w1 = _mm256_broadcast_ss(block + 16 + (key_row - from));
                o1_0 = _mm256_fmadd_ps(w1, v0_0, o1_0);
                const __m256 w2 = _mm256_broadcast_ss(block + 32 + (key_row - from));
                o2_0 = _mm256_fmadd_ps(w2, v0_0, o2_0);
                const __m256 w3 = _mm256_broadcast_ss(block + 48 + (key_row - from));
                o3_0 = _mm256_fmadd_ps(w3, v0_0, o3_0);
            }
            _mm256_storeu_ps(out, _mm256_mul_ps(o0_0, _mm256_set1_ps(inverse[0])));
            _mm256_storeu_ps(out + 32, _mm256_mul_ps(o1_0, _mm256_set1_ps(inverse[1])));
            _mm256_storeu_ps(out + 64, _mm256_mul_ps(o2_0, _mm256_set1_ps(inverse[2])));
            _mm256_storeu_ps(out + 96, _mm256_mul_ps(o3_0, _mm256_set1_ps(inverse[3])));
        }
    }
}

static small_encoder_AVX2
void small_encoder_avx2_attention_of_rows2(const float *query, const float *panels, const float *value, size_t v_stride,
    size_t i, size_t n, float *block, float *out) {
    (void)i, (void)n;
    const size_t first = 0;
    const size_t last = n;
    float sum[2];
    {
        const size_t from = 0, to = last;
        const size_t padded = (to + 15) / 16 * 16;
        const size_t j = 0;
        (void)j, (void)padded, (void)first;
        __m256 s0_0 = _mm256_setzero_ps();
        __m256 s0_1 = _mm256_setzero_ps();
        __m256 s1_0 = _mm256_setzero_ps();
        __m256 s1_1 = _mm256_setzero_ps();
        const float *panel = panels + j * 8;
        for (size_t d = 0; d < 8; d++) {
            const __m256 k0_0 = _mm256_loadu_ps(panel + (d * 16));
            const __m256 k0_1 = _mm256_loadu_ps(panel + (8 + (d * 16)));
            const __m256 q0 = _mm256_broadcast_ss(query + d);
            s0_0 = _mm256_fmadd_ps(q0, k0_0, s0_0);
            s0_1 = _mm256_fmadd_ps(q0, k0_1, s0_1);
            const __m256 q1 = _mm256_broadcast_ss(query + (96 + d));
            s1_0 = _mm256_fmadd_ps(q1, k0_0, s1_0);
            s1_1 = _mm256_fmadd_ps(q1, k0_1, s1_1);
        }
        s0_0 = _mm256_blendv_ps(_mm256_set1_ps(-__builtin_inff()), s0_0,
            _mm256_cmp_ps(_mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_ps((float)(int)(to)), _CMP_LT_OQ));
        s0_1 = _mm256_blendv_ps(_mm256_set1_ps(-__builtin_inff()), s0_1,
            _mm256_cmp_ps(_mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_ps((float)(int)(to - 8)), _CMP_LT_OQ));
        s1_0 = _mm256_blendv_ps(_mm256_set1_ps(-__builtin_inff()), s1_0,
            _mm256_cmp_ps(_mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_ps((float)(int)(to)), _CMP_LT_OQ));
        s1_1 = _mm256_blendv_ps(_mm256_set1_ps(-__builtin_inff()), s1_1,
            _mm256_cmp_ps(_mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_ps((float)(int)(to - 8)), _CMP_LT_OQ));
        __m256 greatest0 = s0_0;
        __m256 greatest1 = s1_0;
        greatest0 = _mm256_max_ps(greatest0, s0_1);
        greatest1 = _mm256_max_ps(greatest1, s1_1);
        float base[8] = {0};
        base[0] = small_encoder_avx2_hmax(greatest0) * 0x1.0527dcp-1f;
        base[1] = small_encoder_avx2_hmax(greatest1) * 0x1.0527dcp-1f;
        if ((base[0] >= 0x1p29f || base[0] <= -0x1p29f) && base[0] - base[0] == 0.0f) {
            s0_0 = _mm256_mul_ps(_mm256_sub_ps(_mm256_fmadd_ps(s0_0, _mm256_set1_ps(0x1.0527dcp-1f),
                _mm256_set1_ps(-0.0f)), _mm256_set1_ps(base[0])), _mm256_set1_ps(0x1.f5e466p+0f));
            s0_1 = _mm256_mul_ps(_mm256_sub_ps(_mm256_fmadd_ps(s0_1, _mm256_set1_ps(0x1.0527dcp-1f),
                _mm256_set1_ps(-0.0f)), _mm256_set1_ps(base[0])), _mm256_set1_ps(0x1.f5e466p+0f));
            base[0] = 0.0f;
        }
        if ((base[1] >= 0x1p29f || base[1] <= -0x1p29f) && base[1] - base[1] == 0.0f) {
            s1_0 = _mm256_mul_ps(_mm256_sub_ps(_mm256_fmadd_ps(s1_0, _mm256_set1_ps(0x1.0527dcp-1f),
                _mm256_set1_ps(-0.0f)), _mm256_set1_ps(base[1])), _mm256_set1_ps(0x1.f5e466p+0f));
            s1_1 = _mm256_mul_ps(_mm256_sub_ps(_mm256_fmadd_ps(s1_1, _mm256_set1_ps(0x1.0527dcp-1f),
                _mm256_set1_ps(-0.0f)), _mm256_set1_ps(base[1])), _mm256_set1_ps(0x1.f5e466p+0f));
            base[1] = 0.0f;
        }
        const __m256 less0 = _mm256_set1_ps(-base[0]);
        const __m256 less1 = _mm256_set1_ps(-base[1]);
        __m256 total0;
        __m256 total1;
        {
            const __m256 e0 = small_encoder_avx2_exp2(_mm256_fmadd_ps(s0_0, _mm256_set1_ps(0x1.0527dcp-1f), less0));
            _mm256_storeu_ps(block, e0);
            total0 = e0;
        }
        {
            const __m256 e0 = small_encoder_avx2_exp2(_mm256_fmadd_ps(s0_1, _mm256_set1_ps(0x1.0527dcp-1f), less0));
            _mm256_storeu_ps(block + 8, e0);
            total0 = _mm256_add_ps(total0, e0);
        }
        {
            const __m256 e1 = small_encoder_avx2_exp2(_mm256_fmadd_ps(s1_0, _mm256_set1_ps(0x1.0527dcp-1f), less1));
            _mm256_storeu_ps(block + 16, e1);
            total1 = e1;
        }
        {
            const __m256 e1 = small_encoder_avx2_exp2(_mm256_fmadd_ps(s1_1, _mm256_set1_ps(0x1.0527dcp-1f), less1));
            _mm256_storeu_ps(block + 16 + 8, e1);
            total1 = _mm256_add_ps(total1, e1);
        }
        float inverse[2];
        sum[0] = small_encoder_avx2_sum(total0);
        inverse[0] = 1.0f / sum[0];
        sum[1] = small_encoder_avx2_sum(total1);
        inverse[1] = 1.0f / sum[1];
        {
            __m256 o0_0 = _mm256_setzero_ps();
            __m256 o1_0 = _mm256_setzero_ps();
            for (size_t key_row = from; key_row < to; key_row++) {
                const __m256 v0_0 = _mm256_loadu_ps(value + (key_row * v_stride));
                const __m256 w0 = _mm256_broadcast_ss(block + (key_row - from));
                o0_0 = _mm256_fmadd_ps(w0, v0_0, o0_0);
                const __m256 w1 = _mm256_broadcast_ss(block + 16 + (key_row - from));
                o1_0 = _mm256_fmadd_ps(w1, v0_0, o1_0);
            }
            _mm256_storeu_ps(out, _mm256_mul_ps(o0_0, _mm256_set1_ps(inverse[0])));
            _mm256_storeu_ps(out + 32, _mm256_mul_ps(o1_0, _mm256_set1_ps(inverse[1])));
        }
    }
}

static small_encoder_AVX2
void small_encoder_avx2_attention_of_rows1(const float *query, const float *panels, const float *value, size_t v_stride,
    size_t i, size_t n, float *block, float *out) {
    (void)i, (void)n;
    const size_t first = 0;
    const size_t last = n;
    float sum[1];
    {
        const size_t from = 0, to = last;
        const size_t padded = (to + 15) / 16 * 16;
        const size_t j = 0;
        (void)j, (void)padded, (void)first;
        __m256 s0_0 = _mm256_setzero_ps();
        __m256 s0_1 = _mm256_setzero_ps();
        const float *panel = panels + j * 8;
        for (size_t d = 0; d < 8; d++) {
            const __m256 k0_0 = _mm256_loadu_ps(panel + (d * 16));
            const __m256 k0_1 = _mm256_loadu_ps(panel + (8 + (d * 16)));
            const __m256 q0 = _mm256_broadcast_ss(query + d);
            s0_0 = _mm256_fmadd_ps(q0, k0_0, s0_0);
            s0_1 = _mm256_fmadd_ps(q0, k0_1, s0_1);
        }
        s0_0 = _mm256_blendv_ps(_mm256_set1_ps(-__builtin_inff()), s0_0,
            _mm256_cmp_ps(_mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_ps((float)(int)(to)), _CMP_LT_OQ));
        s0_1 = _mm256_blendv_ps(_mm256_set1_ps(-__builtin_inff()), s0_1,
            _mm256_cmp_ps(_mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_ps((float)(int)(to - 8)), _CMP_LT_OQ));
        __m256 greatest0 = s0_0;
        greatest0 = _mm256_max_ps(greatest0, s0_1);
        float base[8] = {0};
        base[0] = small_encoder_avx2_hmax(greatest0) * 0x1.0527dcp-1f;
        if ((base[0] >= 0x1p29f || base[0] <= -0x1p29f) && base[0] - base[0] == 0.0f) {
            s0_0 = _mm256_mul_ps(_mm256_sub_ps(_mm256_fmadd_ps(s0_0, _mm256_set1_ps(0x1.0527dcp-1f),
                _mm256_set1_ps(-0.0f)), _mm256_set1_ps(base[0])), _mm256_set1_ps(0x1.f5e466p+0f));
            s0_1 = _mm256_mul_ps(_mm256_sub_ps(_mm256_fmadd_ps(s0_1, _mm256_set1_ps(0x1.0527dcp-1f),
                _mm256_set1_ps(-0.0f)), _mm256_set1_ps(base[0])), _mm256_set1_ps(0x1.f5e466p+0f));
            base[0] = 0.0f;
        }
        const __m256 less0 = _mm256_set1_ps(-base[0]);
        __m256 total0;
        {
            const __m256 e0 = small_encoder_avx2_exp2(_mm256_fmadd_ps(s0_0, _mm256_set1_ps(0x1.0527dcp-1f), less0));
            _mm256_storeu_ps(block, e0);
            total0 = e0;
        }
        {
            const __m256 e0 = small_encoder_avx2_exp2(_mm256_fmadd_ps(s0_1, _mm256_set1_ps(0x1.0527dcp-1f), less0));
            _mm256_storeu_ps(block + 8, e0);
            total0 = _mm256_add_ps(total0, e0);
        }
        float inverse[1];
        sum[0] = small_encoder_avx2_sum(total0);
        inverse[0] = 1.0f / sum[0];
        {
            __m256 o0_0 = _mm256_setzero_ps();
            for (size_t key_row = from; key_row < to; key_row++) {
                const __m256 v0_0 = _mm256_loadu_ps(value + (key_row * v_stride));
                const __m256 w0 = _mm256_broadcast_ss(block + (key_row - from));
                o0_0 = _mm256_fmadd_ps(w0, v0_0, o0_0);
            }
            _mm256_storeu_ps(out, _mm256_mul_ps(o0_0, _mm256_set1_ps(inverse[0])));
        }
    }
}

/* keys of one head, [n][96] -> [n/16][8][16], the last panel filled up with zeros */
static small_encoder_AVX2
void small_encoder_avx2_attention_2_pack(const float *key, size_t n, float *panels) {
    static const float none[4] = {0};
    for (size_t j = 0; j < n; j += 16) {
        const size_t rows = n - j < 16 ? n - j : 16;
        const float *from = key + j * 96;
        float *to = panels + j * 8;
        for (size_t l = 0; l < 16; l += 8)
            for (size_t d = 0; d < 8; d += 4) {
                if (l + 8 <= rows) {
                    const float *row0 = from + (l) * 96 + d;
                    const float *row1 = from + (l + 1) * 96 + d;
                    const float *row2 = from + (l + 2) * 96 + d;
                    const float *row3 = from + (l + 3) * 96 + d;
                    const float *row4 = from + (l + 4) * 96 + d;
                    const float *row5 = from + (l + 5) * 96 + d;
                    const float *row6 = from + (l + 6) * 96 + d;
                    const float *row7 = from + (l + 7) * 96 + d;
                    const __m256 r0 = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(row0)),
                        _mm_loadu_ps(row4), 1);
                    const __m256 r1 = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(row1)),
                        _mm_loadu_ps(row5), 1);
                    const __m256 r2 = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(row2)),
                        _mm_loadu_ps(row6), 1);
                    const __m256 r3 = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(row3)),
                        _mm_loadu_ps(row7), 1);
                    const __m256 s0 = _mm256_unpacklo_ps(r0, r2), s2 = _mm256_unpackhi_ps(r0, r2);
                    const __m256 s1 = _mm256_unpacklo_ps(r1, r3), s3 = _mm256_unpackhi_ps(r1, r3);
                    _mm256_storeu_ps(to + (d) * 16 + l, _mm256_unpacklo_ps(s0, s1));
                    _mm256_storeu_ps(to + (d + 1) * 16 + l, _mm256_unpackhi_ps(s0, s1));
                    _mm256_storeu_ps(to + (d + 2) * 16 + l, _mm256_unpacklo_ps(s2, s3));
                    _mm256_storeu_ps(to + (d + 3) * 16 + l, _mm256_unpackhi_ps(s2, s3));
                } else {
                    const float *row0 = l >= rows ? none : from + (l) * 96 + d;
                    const float *row1 = l + 1 >= rows ? none : from + (l + 1) * 96 + d;
                    const float *row2 = l + 2 >= rows ? none : from + (l + 2) * 96 + d;
                    const float *row3 = l + 3 >= rows ? none : from + (l + 3) * 96 + d;
                    const float *row4 = l + 4 >= rows ? none : from + (l + 4) * 96 + d;
                    const float *row5 = l + 5 >= rows ? none : from + (l + 5) * 96 + d;
                    const float *row6 = l + 6 >= rows ? none : from + (l + 6) * 96 + d;
                    const float *row7 = l + 7 >= rows ? none : from + (l + 7) * 96 + d;
                    const __m256 r0 = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(row0)),
                        _mm_loadu_ps(row4), 1);
                    const __m256 r1 = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(row1)),
                        _mm_loadu_ps(row5), 1);
                    const __m256 r2 = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(row2)),
                        _mm_loadu_ps(row6), 1);
                    const __m256 r3 = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(row3)),
                        _mm_loadu_ps(row7), 1);
                    const __m256 s0 = _mm256_unpacklo_ps(r0, r2), s2 = _mm256_unpackhi_ps(r0, r2);
                    const __m256 s1 = _mm256_unpacklo_ps(r1, r3), s3 = _mm256_unpackhi_ps(r1, r3);
                    _mm256_storeu_ps(to + (d) * 16 + l, _mm256_unpacklo_ps(s0, s1));
                    _mm256_storeu_ps(to + (d + 1) * 16 + l, _mm256_unpackhi_ps(s0, s1));
                    _mm256_storeu_ps(to + (d + 2) * 16 + l, _mm256_unpacklo_ps(s2, s3));
                    _mm256_storeu_ps(to + (d + 3) * 16 + l, _mm256_unpackhi_ps(s2, s3));
                }
            }
    }
}

/* attention of 4 heads of 8 over the keys of the same sequence */
static small_encoder_AVX2
void small_encoder_avx2_attention_2(const small_encoder_run *run, const float *q, const float *k, const float *v,
    float *out, int thread, int threads) {
    float *scratch = run->scratch + (size_t)thread * 192, *block = scratch + 128;
    size_t total = 0, unit = 0;
    for (size_t s = 0; s < run->sequences; s++) total += ((size_t)(run->starts[s + 1] - run->starts[s]) + 3) / 4 * 4;
    const size_t begin = small_encoder_first(total, thread, threads),
        end = small_encoder_first(total, thread + 1, threads);
    for (size_t s = 0; s < run->sequences && unit < end; s++) {
        const size_t start = (size_t)run->starts[s], rows = (size_t)run->starts[s + 1] - start, blocks = (rows + 3) / 4;
        const size_t key_start = start, n = rows;
        size_t packed = 4;
        for (size_t head = 0; head < 4; head++, unit += blocks) {
            if (unit + blocks <= begin || unit >= end) continue;
            const size_t kv = head;
            const float *keys = k + key_start * 96 + kv * 8, *values = v + key_start * 96 + kv * 8;
            float *panels = scratch;
            if (kv != packed) {
                small_encoder_avx2_attention_2_pack(keys, n, panels);
            }
            packed = kv;
            const float *query = q + start * 96 + head * 8;
            float *to = out + start * 32 + head * 8;
            const size_t from = begin > unit ? begin - unit : 0, until = end - unit < blocks ? end - unit : blocks;
            const size_t stop = until * 4 < rows ? until * 4 : rows;
            size_t i = from * 4;
            for (; i + 4 <= stop; i += 4)
                small_encoder_avx2_attention_of_rows4(query + i * 96, panels, values, 96, i, n, block, to + i * 32);
            for (; i + 2 <= stop; i += 2)
                small_encoder_avx2_attention_of_rows2(query + i * 96, panels, values, 96, i, n, block, to + i * 32);
            for (; i < stop; i++)
                small_encoder_avx2_attention_of_rows1(query + i * 96, panels, values, 96, i, n, block, to + i * 32);
        }
    }
}

/* layer 0, self attention: softmax(query x key * 0.353553) x value, 4 heads of 8 */
static small_encoder_AVX2
void small_encoder_avx2_step_layer0_attention_attended(const small_encoder_run *run, int thread) {
    small_encoder_avx2_attention_2(run, run->workspace + small_encoder_x_attention_query_key_value,
        run->workspace + small_encoder_x_attention_query_key_value + 32,
        run->workspace + small_encoder_x_attention_query_key_value + 64,
        run->workspace + small_encoder_x_attention_attended, thread, run->threads);
}

static small_encoder_AVX2
void small_encoder_avx2_gemm_32x32_1x2(const float *x, const float *w, const float *bias, const float *other,
    float *out) {
    __m256 acc0_0 = _mm256_loadu_ps(bias), acc0_1 = _mm256_loadu_ps(bias + 8), acc0_2 = _mm256_loadu_ps(bias + 16),
        acc0_3 = _mm256_loadu_ps(bias + 24);
    for (size_t k = 0; k < 32; k++) {
        const __m256 a0 = _mm256_broadcast_ss(x + k);
        const __m256 w0 = _mm256_loadu_ps(w + (k * 16));
        acc0_0 = _mm256_fmadd_ps(a0, w0, acc0_0);
        const __m256 w1 = _mm256_loadu_ps(w + (8 + (k * 16)));
        acc0_1 = _mm256_fmadd_ps(a0, w1, acc0_1);
        const __m256 w2 = _mm256_loadu_ps(w + (512 + (k * 16)));
        acc0_2 = _mm256_fmadd_ps(a0, w2, acc0_2);
        const __m256 w3 = _mm256_loadu_ps(w + (520 + (k * 16)));
        acc0_3 = _mm256_fmadd_ps(a0, w3, acc0_3);
    }
    acc0_0 = _mm256_add_ps(_mm256_loadu_ps(other), acc0_0);
    _mm256_storeu_ps(out, acc0_0);
    acc0_1 = _mm256_add_ps(_mm256_loadu_ps(other + 8), acc0_1);
    _mm256_storeu_ps(out + 8, acc0_1);
    acc0_2 = _mm256_add_ps(_mm256_loadu_ps(other + 16), acc0_2);
    _mm256_storeu_ps(out + 16, acc0_2);
    acc0_3 = _mm256_add_ps(_mm256_loadu_ps(other + 24), acc0_3);
    _mm256_storeu_ps(out + 24, acc0_3);
}

static small_encoder_AVX2
void small_encoder_avx2_gemm_32x32_2x2(const float *x, const float *w, const float *bias, const float *other,
    float *out) {
    const __m256 b0 = _mm256_loadu_ps(bias), b1 = _mm256_loadu_ps(bias + 8), b2 = _mm256_loadu_ps(bias + 16),
        b3 = _mm256_loadu_ps(bias + 24);
    __m256 acc0_0 = b0, acc0_1 = b1, acc0_2 = b2, acc0_3 = b3;
    __m256 acc1_0 = b0, acc1_1 = b1, acc1_2 = b2, acc1_3 = b3;
    for (size_t k = 0; k < 32; k++) {
        const __m256 a0 = _mm256_broadcast_ss(x + k);
        const __m256 a1 = _mm256_broadcast_ss(x + (32 + k));
        const __m256 w0 = _mm256_loadu_ps(w + (k * 16));
        acc0_0 = _mm256_fmadd_ps(a0, w0, acc0_0);
        acc1_0 = _mm256_fmadd_ps(a1, w0, acc1_0);
        const __m256 w1 = _mm256_loadu_ps(w + (8 + (k * 16)));
        acc0_1 = _mm256_fmadd_ps(a0, w1, acc0_1);
        acc1_1 = _mm256_fmadd_ps(a1, w1, acc1_1);
        const __m256 w2 = _mm256_loadu_ps(w + (512 + (k * 16)));
        acc0_2 = _mm256_fmadd_ps(a0, w2, acc0_2);
        acc1_2 = _mm256_fmadd_ps(a1, w2, acc1_2);
        const __m256 w3 = _mm256_loadu_ps(w + (520 + (k * 16)));
        acc0_3 = _mm256_fmadd_ps(a0, w3, acc0_3);
        acc1_3 = _mm256_fmadd_ps(a1, w3, acc1_3);
    }
    acc0_0 = _mm256_add_ps(_mm256_loadu_ps(other), acc0_0);
    _mm256_storeu_ps(out, acc0_0);
    acc0_1 = _mm256_add_ps(_mm256_loadu_ps(other + 8), acc0_1);
    _mm256_storeu_ps(out + 8, acc0_1);
    acc0_2 = _mm256_add_ps(_mm256_loadu_ps(other + 16), acc0_2);
    _mm256_storeu_ps(out + 16, acc0_2);
    acc0_3 = _mm256_add_ps(_mm256_loadu_ps(other + 24), acc0_3);
    _mm256_storeu_ps(out + 24, acc0_3);
    acc1_0 = _mm256_add_ps(_mm256_loadu_ps(other + 32), acc1_0);
    _mm256_storeu_ps(out + 32, acc1_0);
    acc1_1 = _mm256_add_ps(_mm256_loadu_ps(other + 40), acc1_1);
    _mm256_storeu_ps(out + 40, acc1_1);
    acc1_2 = _mm256_add_ps(_mm256_loadu_ps(other + 48), acc1_2);
    _mm256_storeu_ps(out + 48, acc1_2);
    acc1_3 = _mm256_add_ps(_mm256_loadu_ps(other + 56), acc1_3);
    _mm256_storeu_ps(out + 56, acc1_3);
}

static small_encoder_AVX2
void small_encoder_avx2_gemm_32x32_3x1(const float *x, const float *w, const float *bias, const float *other,
    float *out) {
    const __m256 b0 = _mm256_loadu_ps(bias), b1 = _mm256_loadu_ps(bias + 8);
    __m256 acc0_0 = b0, acc0_1 = b1;
    __m256 acc1_0 = b0, acc1_1 = b1;
    __m256 acc2_0 = b0, acc2_1 = b1;
    for (size_t k = 0; k < 32; k++) {
        const __m256 w0 = _mm256_loadu_ps(w + (k * 16));
        const __m256 w1 = _mm256_loadu_ps(w + (8 + (k * 16)));
        const __m256 a0 = _mm256_broadcast_ss(x + k);
        acc0_0 = _mm256_fmadd_ps(a0, w0, acc0_0);
        acc0_1 = _mm256_fmadd_ps(a0, w1, acc0_1);
        const __m256 a1 = _mm256_broadcast_ss(x + (32 + k));
        acc1_0 = _mm256_fmadd_ps(a1, w0, acc1_0);
        acc1_1 = _mm256_fmadd_ps(a1, w1, acc1_1);
        const __m256 a2 = _mm256_broadcast_ss(x + (64 + k));
        acc2_0 = _mm256_fmadd_ps(a2, w0, acc2_0);
        acc2_1 = _mm256_fmadd_ps(a2, w1, acc2_1);
    }
    acc0_0 = _mm256_add_ps(_mm256_loadu_ps(other), acc0_0);
    _mm256_storeu_ps(out, acc0_0);
    acc0_1 = _mm256_add_ps(_mm256_loadu_ps(other + 8), acc0_1);
    _mm256_storeu_ps(out + 8, acc0_1);
    acc1_0 = _mm256_add_ps(_mm256_loadu_ps(other + 32), acc1_0);
    _mm256_storeu_ps(out + 32, acc1_0);
    acc1_1 = _mm256_add_ps(_mm256_loadu_ps(other + 40), acc1_1);
    _mm256_storeu_ps(out + 40, acc1_1);
    acc2_0 = _mm256_add_ps(_mm256_loadu_ps(other + 64), acc2_0);
    _mm256_storeu_ps(out + 64, acc2_0);
    acc2_1 = _mm256_add_ps(_mm256_loadu_ps(other + 72), acc2_1);
    _mm256_storeu_ps(out + 72, acc2_1);
}

static small_encoder_AVX2
void small_encoder_avx2_gemm_32x32_4x1(const float *x, const float *w, const float *bias, const float *other,
    float *out) {
    const __m256 b0 = _mm256_loadu_ps(bias), b1 = _mm256_loadu_ps(bias + 8);
    __m256 acc0_0 = b0, acc0_1 = b1;
    __m256 acc1_0 = b0, acc1_1 = b1;
    __m256 acc2_0 = b0, acc2_1 = b1;
    __m256 acc3_0 = b0, acc3_1 = b1;
    for (size_t k = 0; k < 32; k++) {
        const __m256 w0 = _mm256_loadu_ps(w + (k * 16));
        const __m256 w1 = _mm256_loadu_ps(w + (8 + (k * 16)));
        const __m256 a0 = _mm256_broadcast_ss(x + k);
        acc0_0 = _mm256_fmadd_ps(a0, w0, acc0_0);
        acc0_1 = _mm256_fmadd_ps(a0, w1, acc0_1);
        const __m256 a1 = _mm256_broadcast_ss(x + (32 + k));
        acc1_0 = _mm256_fmadd_ps(a1, w0, acc1_0);
        acc1_1 = _mm256_fmadd_ps(a1, w1, acc1_1);
        const __m256 a2 = _mm256_broadcast_ss(x + (64 + k));
        acc2_0 = _mm256_fmadd_ps(a2, w0, acc2_0);
        acc2_1 = _mm256_fmadd_ps(a2, w1, acc2_1);
        const __m256 a3 = _mm256_broadcast_ss(x + (96 + k));
        acc3_0 = _mm256_fmadd_ps(a3, w0, acc3_0);
        acc3_1 = _mm256_fmadd_ps(a3, w1, acc3_1);
    }
    acc0_0 = _mm256_add_ps(_mm256_loadu_ps(other), acc0_0);
    _mm256_storeu_ps(out, acc0_0);
    acc0_1 = _mm256_add_ps(_mm256_loadu_ps(other + 8), acc0_1);
    _mm256_storeu_ps(out + 8, acc0_1);
    acc1_0 = _mm256_add_ps(_mm256_loadu_ps(other + 32), acc1_0);
    _mm256_storeu_ps(out + 32, acc1_0);
    acc1_1 = _mm256_add_ps(_mm256_loadu_ps(other + 40), acc1_1);
    _mm256_storeu_ps(out + 40, acc1_1);
    acc2_0 = _mm256_add_ps(_mm256_loadu_ps(other + 64), acc2_0);
    _mm256_storeu_ps(out + 64, acc2_0);
    acc2_1 = _mm256_add_ps(_mm256_loadu_ps(other + 72), acc2_1);
    _mm256_storeu_ps(out + 72, acc2_1);
    acc3_0 = _mm256_add_ps(_mm256_loadu_ps(other + 96), acc3_0);
    _mm256_storeu_ps(out + 96, acc3_0);
    acc3_1 = _mm256_add_ps(_mm256_loadu_ps(other + 104), acc3_1);
    _mm256_storeu_ps(out + 104, acc3_1);
}

static small_encoder_AVX2
void small_encoder_avx2_gemm_32x32_5x1(const float *x, const float *w, const float *bias, const float *other,
    float *out) {
    const __m256 b0 = _mm256_loadu_ps(bias), b1 = _mm256_loadu_ps(bias + 8);
    __m256 acc0_0 = b0, acc0_1 = b1;
    __m256 acc1_0 = b0, acc1_1 = b1;
    __m256 acc2_0 = b0, acc2_1 = b1;
    __m256 acc3_0 = b0, acc3_1 = b1;
    __m256 acc4_0 = b0, acc4_1 = b1;
    for (size_t k = 0; k < 32; k++) {
        const __m256 w0 = _mm256_loadu_ps(w + (k * 16));
        const __m256 w1 = _mm256_loadu_ps(w + (8 + (k * 16)));
        const __m256 a0 = _mm256_broadcast_ss(x + k);
        acc0_0 = _mm256_fmadd_ps(a0, w0, acc0_0);
        acc0_1 = _mm256_fmadd_ps(a0, w1, acc0_1);
        const __m256 a1 = _mm256_broadcast_ss(x + (32 + k));
        acc1_0 = _mm256_fmadd_ps(a1, w0, acc1_0);
        acc1_1 = _mm256_fmadd_ps(a1, w1, acc1_1);
        const __m256 a2 = _mm256_broadcast_ss(x + (64 + k));
        acc2_0 = _mm256_fmadd_ps(a2, w0, acc2_0);
        acc2_1 = _mm256_fmadd_ps(a2, w1, acc2_1);
        const __m256 a3 = _mm256_broadcast_ss(x + (96 + k));
        acc3_0 = _mm256_fmadd_ps(a3, w0, acc3_0);
        acc3_1 = _mm256_fmadd_ps(a3, w1, acc3_1);
        const __m256 a4 = _mm256_broadcast_ss(x + (128 + k));
        acc4_0 = _mm256_fmadd_ps(a4, w0, acc4_0);
        acc4_1 = _mm256_fmadd_ps(a4, w1, acc4_1);
    }
    acc0_0 = _mm256_add_ps(_mm256_loadu_ps(other), acc0_0);
    _mm256_storeu_ps(out, acc0_0);
    acc0_1 = _mm256_add_ps(_mm256_loadu_ps(other + 8), acc0_1);
    _mm256_storeu_ps(out + 8, acc0_1);
    acc1_0 = _mm256_add_ps(_mm256_loadu_ps(other + 32), acc1_0);
    _mm256_storeu_ps(out + 32, acc1_0);
    acc1_1 = _mm256_add_ps(_mm256_loadu_ps(other + 40), acc1_1);
    _mm256_storeu_ps(out + 40, acc1_1);
    acc2_0 = _mm256_add_ps(_mm256_loadu_ps(other + 64), acc2_0);
    _mm256_storeu_ps(out + 64, acc2_0);
    acc2_1 = _mm256_add_ps(_mm256_loadu_ps(other + 72), acc2_1);
    _mm256_storeu_ps(out + 72, acc2_1);
    acc3_0 = _mm256_add_ps(_mm256_loadu_ps(other + 96), acc3_0);
    _mm256_storeu_ps(out + 96, acc3_0);
    acc3_1 = _mm256_add_ps(_mm256_loadu_ps(other + 104), acc3_1);
    _mm256_storeu_ps(out + 104, acc3_1);
    acc4_0 = _mm256_add_ps(_mm256_loadu_ps(other + 128), acc4_0);
    _mm256_storeu_ps(out + 128, acc4_0);
    acc4_1 = _mm256_add_ps(_mm256_loadu_ps(other + 136), acc4_1);
    _mm256_storeu_ps(out + 136, acc4_1);
}

static small_encoder_AVX2
void small_encoder_avx2_gemm_32x32_6x1(const float *x, const float *w, const float *bias, const float *other,
    float *out) {
    const __m256 b0 = _mm256_loadu_ps(bias), b1 = _mm256_loadu_ps(bias + 8);
    __m256 acc0_0 = b0, acc0_1 = b1;
    __m256 acc1_0 = b0, acc1_1 = b1;
    __m256 acc2_0 = b0, acc2_1 = b1;
    __m256 acc3_0 = b0, acc3_1 = b1;
    __m256 acc4_0 = b0, acc4_1 = b1;
    __m256 acc5_0 = b0, acc5_1 = b1;
    for (size_t k = 0; k < 32; k++) {
        const __m256 w0 = _mm256_loadu_ps(w + (k * 16));
        const __m256 w1 = _mm256_loadu_ps(w + (8 + (k * 16)));
        const __m256 a0 = _mm256_broadcast_ss(x + k);
        acc0_0 = _mm256_fmadd_ps(a0, w0, acc0_0);
        acc0_1 = _mm256_fmadd_ps(a0, w1, acc0_1);
        const __m256 a1 = _mm256_broadcast_ss(x + (32 + k));
        acc1_0 = _mm256_fmadd_ps(a1, w0, acc1_0);
        acc1_1 = _mm256_fmadd_ps(a1, w1, acc1_1);
        const __m256 a2 = _mm256_broadcast_ss(x + (64 + k));
        acc2_0 = _mm256_fmadd_ps(a2, w0, acc2_0);
        acc2_1 = _mm256_fmadd_ps(a2, w1, acc2_1);
        const __m256 a3 = _mm256_broadcast_ss(x + (96 + k));
        acc3_0 = _mm256_fmadd_ps(a3, w0, acc3_0);
        acc3_1 = _mm256_fmadd_ps(a3, w1, acc3_1);
        const __m256 a4 = _mm256_broadcast_ss(x + (128 + k));
        acc4_0 = _mm256_fmadd_ps(a4, w0, acc4_0);
        acc4_1 = _mm256_fmadd_ps(a4, w1, acc4_1);
        const __m256 a5 = _mm256_broadcast_ss(x + (160 + k));
        acc5_0 = _mm256_fmadd_ps(a5, w0, acc5_0);
        acc5_1 = _mm256_fmadd_ps(a5, w1, acc5_1);
    }
    acc0_0 = _mm256_add_ps(_mm256_loadu_ps(other), acc0_0);
    _mm256_storeu_ps(out, acc0_0);
    acc0_1 = _mm256_add_ps(_mm256_loadu_ps(other + 8), acc0_1);
    _mm256_storeu_ps(out + 8, acc0_1);
    acc1_0 = _mm256_add_ps(_mm256_loadu_ps(other + 32), acc1_0);
    _mm256_storeu_ps(out + 32, acc1_0);
    acc1_1 = _mm256_add_ps(_mm256_loadu_ps(other + 40), acc1_1);
    _mm256_storeu_ps(out + 40, acc1_1);
    acc2_0 = _mm256_add_ps(_mm256_loadu_ps(other + 64), acc2_0);
    _mm256_storeu_ps(out + 64, acc2_0);
    acc2_1 = _mm256_add_ps(_mm256_loadu_ps(other + 72), acc2_1);
    _mm256_storeu_ps(out + 72, acc2_1);
    acc3_0 = _mm256_add_ps(_mm256_loadu_ps(other + 96), acc3_0);
    _mm256_storeu_ps(out + 96, acc3_0);
    acc3_1 = _mm256_add_ps(_mm256_loadu_ps(other + 104), acc3_1);
    _mm256_storeu_ps(out + 104, acc3_1);
    acc4_0 = _mm256_add_ps(_mm256_loadu_ps(other + 128), acc4_0);
    _mm256_storeu_ps(out + 128, acc4_0);
    acc4_1 = _mm256_add_ps(_mm256_loadu_ps(other + 136), acc4_1);
    _mm256_storeu_ps(out + 136, acc4_1);
    acc5_0 = _mm256_add_ps(_mm256_loadu_ps(other + 160), acc5_0);
    _mm256_storeu_ps(out + 160, acc5_0);
    acc5_1 = _mm256_add_ps(_mm256_loadu_ps(other + 168), acc5_1);
    _mm256_storeu_ps(out + 168, acc5_1);
}

/* out [rows][32] = x [rows][32] times weight, + bias, + other */
static small_encoder_AVX2
void small_encoder_avx2_gemm_32x32(const float *x, const float *w, const float *bias, const float *other, float *out,
    size_t rows, int thread, int threads) {
    if (rows == 0) return;
    if (rows == 1) {
        const size_t row = 0, end = small_encoder_first(1, thread + 1, threads);
        for (size_t block = small_encoder_first(1, thread, threads); block < end; block++) {
            const size_t panel = block * 2;
            const size_t column = panel * 16;
            small_encoder_avx2_gemm_32x32_1x2(x + row * 32, w + panel * 512, bias + column, other + row * 32 + column,
                out + row * 32 + column);
        }
        return;
    }
    if (rows == 2) {
        const size_t row = 0, end = small_encoder_first(1, thread + 1, threads);
        for (size_t block = small_encoder_first(1, thread, threads); block < end; block++) {
            const size_t panel = block * 2;
            const size_t column = panel * 16;
            small_encoder_avx2_gemm_32x32_2x2(x + row * 32, w + panel * 512, bias + column, other + row * 32 + column,
                out + row * 32 + column);
        }
        return;
    }
    const size_t tiles = (rows + 5) / 6, least = rows / tiles, taller = rows % tiles;
    const size_t begin = small_encoder_first(tiles * 2, thread, threads),
        end = small_encoder_first(tiles * 2, thread + 1, threads);
    size_t block = begin / tiles, tile = begin % tiles, row = tile * least + (tile < taller ? tile : taller);
    for (size_t unit = begin, height; unit < end; unit++, row += height, tile++) {
        if (tile == tiles) block++, tile = 0, row = 0;
        height = least + (tile < taller);
        const size_t panel = block;
        const size_t column = panel * 16;
        switch (height) {
            case 3:
                small_encoder_avx2_gemm_32x32_3x1(x + row * 32, w + panel * 512, bias + column,
                    other + row * 32 + column, out + row * 32 + column);
                break;
            case 4:
                small_encoder_avx2_gemm_32x32_4x1(x + row * 32, w + panel * 512, bias + column,
                    other + row * 32 + column, out + row * 32 + column);
                break;
            case 5:
                small_encoder_avx2_gemm_32x32_5x1(x + row * 32, w + panel * 512, bias + column,
                    other + row * 32 + column, out + row * 32 + column);
                break;
            case 6:
                small_encoder_avx2_gemm_32x32_6x1(x + row * 32, w + panel * 512, bias + column,
                    other + row * 32 + column, out + row * 32 + column);
                break;
        }
    }
}

/* layer 0, self attention, output projection: [rows][32] x [32][32] + bias, + residual */
static small_encoder_AVX2
void small_encoder_avx2_step_layer0_attention_output(const small_encoder_run *run, int thread) {
    small_encoder_avx2_gemm_32x32(run->workspace + small_encoder_x_attention_attended,
        run->weights + small_encoder_w_layer0_attention_output, run->weights +
        small_encoder_w_layer0_attention_output_bias, run->workspace + small_encoder_x_embedding_with_positions,
        run->workspace + small_encoder_x_attention_sum, run->rows, thread, run->threads);
}

/* layernorm over 32 columns, eps 1e-05: one row */
static small_encoder_AVX2
void small_encoder_avx2_layernorm_32_row(const float *row, const float *weight, const float *bias, float *target) {
    {
        const float *from = row;
        float *to = target;
        __m256 sum0 = _mm256_setzero_ps();
        for (size_t c = 0; c < 32; c += 16) {
            {
                __m256 x0 = _mm256_loadu_ps(from + c);
                sum0 = _mm256_add_ps(sum0, x0);
            }
            {
                __m256 x0 = _mm256_loadu_ps(from + (c + 8));
                sum0 = _mm256_add_ps(sum0, x0);
            }
        }
        const __m256 total = _mm256_set1_ps(small_encoder_avx2_sum(sum0));
        __m256 squares0 = _mm256_setzero_ps();
        for (size_t c = 0; c < 32; c += 16) {
            {
                __m256 d0 = _mm256_loadu_ps(from + c);
                d0 = _mm256_fnmadd_ps(total, _mm256_set1_ps(0x1p-5f), d0);
                squares0 = _mm256_fmadd_ps(d0, d0, squares0);
            }
            {
                __m256 d0 = _mm256_loadu_ps(from + (c + 8));
                d0 = _mm256_fnmadd_ps(total, _mm256_set1_ps(0x1p-5f), d0);
                squares0 = _mm256_fmadd_ps(d0, d0, squares0);
            }
        }
        const float variance = small_encoder_avx2_fma1(0x1.4f8b58p-17f, small_encoder_avx2_sum(squares0), 0x1p-5f);
        const __m256 inverse = _mm256_set1_ps(1.0f / _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(variance))));
        for (size_t c = 0; c < 32; c += 16) {
            {
                __m256 d = _mm256_loadu_ps(from + c);
                d = _mm256_fnmadd_ps(total, _mm256_set1_ps(0x1p-5f), d);
                const __m256 gain = _mm256_loadu_ps(weight + c);
                _mm256_storeu_ps(to + c, _mm256_fmadd_ps(_mm256_mul_ps(d, inverse), gain, _mm256_loadu_ps(bias + c)));
            }
            {
                __m256 d = _mm256_loadu_ps(from + (c + 8));
                d = _mm256_fnmadd_ps(total, _mm256_set1_ps(0x1p-5f), d);
                const __m256 gain = _mm256_loadu_ps(weight + (c + 8));
                _mm256_storeu_ps(to + (c + 8),
                    _mm256_fmadd_ps(_mm256_mul_ps(d, inverse), gain, _mm256_loadu_ps(bias + (c + 8))));
            }
        }
    }
}

static small_encoder_AVX2
void small_encoder_avx2_layernorm_32(const float *x, const float *weight, const float *bias, float *out, size_t rows,
    int thread, int threads) {
    const size_t end = small_encoder_first(rows, thread + 1, threads);
    for (size_t row = small_encoder_first(rows, thread, threads); row < end; row++)
        small_encoder_avx2_layernorm_32_row(x + row * 32, weight, bias, out + row * 32);
}

/* layer 0, self attention, output layernorm: [rows][32] */
static small_encoder_AVX2
void small_encoder_avx2_step_layer0_attention_norm_out(const small_encoder_run *run, int thread) {
    small_encoder_avx2_layernorm_32(run->workspace + small_encoder_x_attention_sum,
        run->weights + small_encoder_w_layer0_attention_norm_out,
        run->weights + small_encoder_w_layer0_attention_norm_out_bias, run->workspace + small_encoder_x_attention_sum,
        run->rows, thread, run->threads);
}

static __attribute__((noinline)) small_encoder_AVX2
void small_encoder_avx2_gemm_32x64_finish(const float *sums, float *out, size_t rows, size_t stride, size_t panels) {
    for (size_t r = 0; r < rows; r++) {
        for (size_t panel = 0; panel < panels; panel++) {
            __m256 sum0 = _mm256_loadu_ps(sums + (r * stride + panel) * 16);
            sum0 = small_encoder_avx2_relu(sum0);
            _mm256_storeu_ps(out + ((r * 64) + (panel * 16)), sum0);
            __m256 sum1 = _mm256_loadu_ps(sums + (r * stride + panel) * 16 + 8);
            sum1 = small_encoder_avx2_relu(sum1);
            _mm256_storeu_ps(out + ((r * 64) + ((panel * 16) + 8)), sum1);
        }
    }
}

static small_encoder_AVX2
void small_encoder_avx2_gemm_32x64_1x4(const float *x, const float *w, const float *bias, float *out) {
    __m256 acc0_0 = _mm256_loadu_ps(bias), acc0_1 = _mm256_loadu_ps(bias + 8), acc0_2 = _mm256_loadu_ps(bias + 16),
        acc0_3 = _mm256_loadu_ps(bias + 24), acc0_4 = _mm256_loadu_ps(bias + 32), acc0_5 = _mm256_loadu_ps(bias + 40),
        acc0_6 = _mm256_loadu_ps(bias + 48), acc0_7 = _mm256_loadu_ps(bias + 56);
    for (size_t k = 0; k < 32; k++) {
        const __m256 a0 = _mm256_broadcast_ss(x + k);
        const __m256 w0 = _mm256_loadu_ps(w + (k * 16));
        acc0_0 = _mm256_fmadd_ps(a0, w0, acc0_0);
        const __m256 w1 = _mm256_loadu_ps(w + (8 + (k * 16)));
        acc0_1 = _mm256_fmadd_ps(a0, w1, acc0_1);
        const __m256 w2 = _mm256_loadu_ps(w + (512 + (k * 16)));
        acc0_2 = _mm256_fmadd_ps(a0, w2, acc0_2);
        const __m256 w3 = _mm256_loadu_ps(w + (520 + (k * 16)));
        acc0_3 = _mm256_fmadd_ps(a0, w3, acc0_3);
        const __m256 w4 = _mm256_loadu_ps(w + (1024 + (k * 16)));
        acc0_4 = _mm256_fmadd_ps(a0, w4, acc0_4);
        const __m256 w5 = _mm256_loadu_ps(w + (1032 + (k * 16)));
        acc0_5 = _mm256_fmadd_ps(a0, w5, acc0_5);
        const __m256 w6 = _mm256_loadu_ps(w + (1536 + (k * 16)));
        acc0_6 = _mm256_fmadd_ps(a0, w6, acc0_6);
        const __m256 w7 = _mm256_loadu_ps(w + (1544 + (k * 16)));
        acc0_7 = _mm256_fmadd_ps(a0, w7, acc0_7);
    }
    float sums[64];
    _mm256_storeu_ps(sums, acc0_0);
    _mm256_storeu_ps(sums + 8, acc0_1);
    _mm256_storeu_ps(sums + 16, acc0_2);
    _mm256_storeu_ps(sums + 24, acc0_3);
    _mm256_storeu_ps(sums + 32, acc0_4);
    _mm256_storeu_ps(sums + 40, acc0_5);
    _mm256_storeu_ps(sums + 48, acc0_6);
    _mm256_storeu_ps(sums + 56, acc0_7);
    small_encoder_avx2_gemm_32x64_finish(sums, out, 1, 4, 4);
}

static small_encoder_AVX2
void small_encoder_avx2_gemm_32x64_2x2(const float *x, const float *w, const float *bias, float *out) {
    const __m256 b0 = _mm256_loadu_ps(bias), b1 = _mm256_loadu_ps(bias + 8), b2 = _mm256_loadu_ps(bias + 16),
        b3 = _mm256_loadu_ps(bias + 24);
    __m256 acc0_0 = b0, acc0_1 = b1, acc0_2 = b2, acc0_3 = b3;
    __m256 acc1_0 = b0, acc1_1 = b1, acc1_2 = b2, acc1_3 = b3;
    for (size_t k = 0; k < 32; k++) {
        const __m256 a0 = _mm256_broadcast_ss(x + k);
        const __m256 a1 = _mm256_broadcast_ss(x + (32 + k));
        const __m256 w0 = _mm256_loadu_ps(w + (k * 16));
        acc0_0 = _mm256_fmadd_ps(a0, w0, acc0_0);
        acc1_0 = _mm256_fmadd_ps(a1, w0, acc1_0);
        const __m256 w1 = _mm256_loadu_ps(w + (8 + (k * 16)));
        acc0_1 = _mm256_fmadd_ps(a0, w1, acc0_1);
        acc1_1 = _mm256_fmadd_ps(a1, w1, acc1_1);
        const __m256 w2 = _mm256_loadu_ps(w + (512 + (k * 16)));
        acc0_2 = _mm256_fmadd_ps(a0, w2, acc0_2);
        acc1_2 = _mm256_fmadd_ps(a1, w2, acc1_2);
        const __m256 w3 = _mm256_loadu_ps(w + (520 + (k * 16)));
        acc0_3 = _mm256_fmadd_ps(a0, w3, acc0_3);
        acc1_3 = _mm256_fmadd_ps(a1, w3, acc1_3);
    }
    float sums[64];
    _mm256_storeu_ps(sums, acc0_0);
    _mm256_storeu_ps(sums + 8, acc0_1);
    _mm256_storeu_ps(sums + 16, acc0_2);
    _mm256_storeu_ps(sums + 24, acc0_3);
    _mm256_storeu_ps(sums + 32, acc1_0);
    _mm256_storeu_ps(sums + 40, acc1_1);
    _mm256_storeu_ps(sums + 48, acc1_2);
    _mm256_storeu_ps(sums + 56, acc1_3);
    small_encoder_avx2_gemm_32x64_finish(sums, out, 2, 2, 2);
}

static small_encoder_AVX2
void small_encoder_avx2_gemm_32x64_3x1(const float *x, const float *w, const float *bias, float *out) {
    const __m256 b0 = _mm256_loadu_ps(bias), b1 = _mm256_loadu_ps(bias + 8);
    __m256 acc0_0 = b0, acc0_1 = b1;
    __m256 acc1_0 = b0, acc1_1 = b1;
    __m256 acc2_0 = b0, acc2_1 = b1;
    for (size_t k = 0; k < 32; k++) {
        const __m256 w0 = _mm256_loadu_ps(w + (k * 16));
        const __m256 w1 = _mm256_loadu_ps(w + (8 + (k * 16)));
        const __m256 a0 = _mm256_broadcast_ss(x + k);
        acc0_0 = _mm256_fmadd_ps(a0, w0, acc0_0);
        acc0_1 = _mm256_fmadd_ps(a0, w1, acc0_1);
        const __m256 a1 = _mm256_broadcast_ss(x + (32 + k));
        acc1_0 = _mm256_fmadd_ps(a1, w0, acc1_0);
        acc1_1 = _mm256_fmadd_ps(a1, w1, acc1_1);
        const __m256 a2 = _mm256_broadcast_ss(x + (64 + k));
        acc2_0 = _mm256_fmadd_ps(a2, w0, acc2_0);
        acc2_1 = _mm256_fmadd_ps(a2, w1, acc2_1);
    }
    float sums[48];
    _mm256_storeu_ps(sums, acc0_0);
    _mm256_storeu_ps(sums + 8, acc0_1);
    _mm256_storeu_ps(sums + 16, acc1_0);
    _mm256_storeu_ps(sums + 24, acc1_1);
    _mm256_storeu_ps(sums + 32, acc2_0);
    _mm256_storeu_ps(sums + 40, acc2_1);
    small_encoder_avx2_gemm_32x64_finish(sums, out, 3, 1, 1);
}

static small_encoder_AVX2
void small_encoder_avx2_gemm_32x64_4x1(const float *x, const float *w, const float *bias, float *out) {
    const __m256 b0 = _mm256_loadu_ps(bias), b1 = _mm256_loadu_ps(bias + 8);
    __m256 acc0_0 = b0, acc0_1 = b1;
    __m256 acc1_0 = b0, acc1_1 = b1;
    __m256 acc2_0 = b0, acc2_1 = b1;
    __m256 acc3_0 = b0, acc3_1 = b1;
    for (size_t k = 0; k < 32; k++) {
        const __m256 w0 = _mm256_loadu_ps(w + (k * 16));
        const __m256 w1 = _mm256_loadu_ps(w + (8 + (k * 16)));
        const __m256 a0 = _mm256_broadcast_ss(x + k);
        acc0_0 = _mm256_fmadd_ps(a0, w0, acc0_0);
        acc0_1 = _mm256_fmadd_ps(a0, w1, acc0_1);
        const __m256 a1 = _mm256_broadcast_ss(x + (32 + k));
        acc1_0 = _mm256_fmadd_ps(a1, w0, acc1_0);
        acc1_1 = _mm256_fmadd_ps(a1, w1, acc1_1);
        const __m256 a2 = _mm256_broadcast_ss(x + (64 + k));
        acc2_0 = _mm256_fmadd_ps(a2, w0, acc2_0);
        acc2_1 = _mm256_fmadd_ps(a2, w1, acc2_1);
        const __m256 a3 = _mm256_broadcast_ss(x + (96 + k));
        acc3_0 = _mm256_fmadd_ps(a3, w0, acc3_0);
        acc3_1 = _mm256_fmadd_ps(a3, w1, acc3_1);
    }
    float sums[64];
    _mm256_storeu_ps(sums, acc0_0);
    _mm256_storeu_ps(sums + 8, acc0_1);
    _mm256_storeu_ps(sums + 16, acc1_0);
    _mm256_storeu_ps(sums + 24, acc1_1);
    _mm256_storeu_ps(sums + 32, acc2_0);
    _mm256_storeu_ps(sums + 40, acc2_1);
    _mm256_storeu_ps(sums + 48, acc3_0);
    _mm256_storeu_ps(sums + 56, acc3_1);
    small_encoder_avx2_gemm_32x64_finish(sums, out, 4, 1, 1);
}

static small_encoder_AVX2
void small_encoder_avx2_gemm_32x64_5x1(const float *x, const float *w, const float *bias, float *out) {
    const __m256 b0 = _mm256_loadu_ps(bias), b1 = _mm256_loadu_ps(bias + 8);
    __m256 acc0_0 = b0, acc0_1 = b1;
    __m256 acc1_0 = b0, acc1_1 = b1;
    __m256 acc2_0 = b0, acc2_1 = b1;
    __m256 acc3_0 = b0, acc3_1 = b1;
    __m256 acc4_0 = b0, acc4_1 = b1;
    for (size_t k = 0; k < 32; k++) {
        const __m256 w0 = _mm256_loadu_ps(w + (k * 16));
        const __m256 w1 = _mm256_loadu_ps(w + (8 + (k * 16)));
        const __m256 a0 = _mm256_broadcast_ss(x + k);
        acc0_0 = _mm256_fmadd_ps(a0, w0, acc0_0);
        acc0_1 = _mm256_fmadd_ps(a0, w1, acc0_1);
        const __m256 a1 = _mm256_broadcast_ss(x + (32 + k));
        acc1_0 = _mm256_fmadd_ps(a1, w0, acc1_0);
        acc1_1 = _mm256_fmadd_ps(a1, w1, acc1_1);
        const __m256 a2 = _mm256_broadcast_ss(x + (64 + k));
        acc2_0 = _mm256_fmadd_ps(a2, w0, acc2_0);
        acc2_1 = _mm256_fmadd_ps(a2, w1, acc2_1);
        const __m256 a3 = _mm256_broadcast_ss(x + (96 + k));
        acc3_0 = _mm256_fmadd_ps(a3, w0, acc3_0);
        acc3_1 = _mm256_fmadd_ps(a3, w1, acc3_1);
        const __m256 a4 = _mm256_broadcast_ss(x + (128 + k));
        acc4_0 = _mm256_fmadd_ps(a4, w0, acc4_0);
        acc4_1 = _mm256_fmadd_ps(a4, w1, acc4_1);
    }
    float sums[80];
    _mm256_storeu_ps(sums, acc0_0);
    _mm256_storeu_ps(sums + 8, acc0_1);
    _mm256_storeu_ps(sums + 16, acc1_0);
    _mm256_storeu_ps(sums + 24, acc1_1);
    _mm256_storeu_ps(sums + 32, acc2_0);
    _mm256_storeu_ps(sums + 40, acc2_1);
    _mm256_storeu_ps(sums + 48, acc3_0);
    _mm256_storeu_ps(sums + 56, acc3_1);
    _mm256_storeu_ps(sums + 64, acc4_0);
    _mm256_storeu_ps(sums + 72, acc4_1);
    small_encoder_avx2_gemm_32x64_finish(sums, out, 5, 1, 1);
}

static small_encoder_AVX2
void small_encoder_avx2_gemm_32x64_6x1(const float *x, const float *w, const float *bias, float *out) {
    const __m256 b0 = _mm256_loadu_ps(bias), b1 = _mm256_loadu_ps(bias + 8);
    __m256 acc0_0 = b0, acc0_1 = b1;
    __m256 acc1_0 = b0, acc1_1 = b1;
    __m256 acc2_0 = b0, acc2_1 = b1;
    __m256 acc3_0 = b0, acc3_1 = b1;
    __m256 acc4_0 = b0, acc4_1 = b1;
    __m256 acc5_0 = b0, acc5_1 = b1;
    for (size_t k = 0; k < 32; k++) {
        const __m256 w0 = _mm256_loadu_ps(w + (k * 16));
        const __m256 w1 = _mm256_loadu_ps(w + (8 + (k * 16)));
        const __m256 a0 = _mm256_broadcast_ss(x + k);
        acc0_0 = _mm256_fmadd_ps(a0, w0, acc0_0);
        acc0_1 = _mm256_fmadd_ps(a0, w1, acc0_1);
        const __m256 a1 = _mm256_broadcast_ss(x + (32 + k));
        acc1_0 = _mm256_fmadd_ps(a1, w0, acc1_0);
        acc1_1 = _mm256_fmadd_ps(a1, w1, acc1_1);
        const __m256 a2 = _mm256_broadcast_ss(x + (64 + k));
        acc2_0 = _mm256_fmadd_ps(a2, w0, acc2_0);
        acc2_1 = _mm256_fmadd_ps(a2, w1, acc2_1);
        const __m256 a3 = _mm256_broadcast_ss(x + (96 + k));
        acc3_0 = _mm256_fmadd_ps(a3, w0, acc3_0);
        acc3_1 = _mm256_fmadd_ps(a3, w1, acc3_1);
        const __m256 a4 = _mm256_broadcast_ss(x + (128 + k));
        acc4_0 = _mm256_fmadd_ps(a4, w0, acc4_0);
        acc4_1 = _mm256_fmadd_ps(a4, w1, acc4_1);
        const __m256 a5 = _mm256_broadcast_ss(x + (160 + k));
        acc5_0 = _mm256_fmadd_ps(a5, w0, acc5_0);
        acc5_1 = _mm256_fmadd_ps(a5, w1, acc5_1);
    }
    float sums[96];
    _mm256_storeu_ps(sums, acc0_0);
    _mm256_storeu_ps(sums + 8, acc0_1);
    _mm256_storeu_ps(sums + 16, acc1_0);
    _mm256_storeu_ps(sums + 24, acc1_1);
    _mm256_storeu_ps(sums + 32, acc2_0);
    _mm256_storeu_ps(sums + 40, acc2_1);
    _mm256_storeu_ps(sums + 48, acc3_0);
    _mm256_storeu_ps(sums + 56, acc3_1);
    _mm256_storeu_ps(sums + 64, acc4_0);
    _mm256_storeu_ps(sums + 72, acc4_1);
    _mm256_storeu_ps(sums + 80, acc5_0);
    _mm256_storeu_ps(sums + 88, acc5_1);
    small_encoder_avx2_gemm_32x64_finish(sums, out, 6, 1, 1);
}

/* out [rows][64] = x [rows][32] times weight, + bias, relu */
static small_encoder_AVX2
void small_encoder_avx2_gemm_32x64(const float *x, const float *w, const float *bias, float *out, size_t rows,
    int thread, int threads) {
    if (rows == 0) return;
    if (rows == 1) {
        const size_t row = 0, end = small_encoder_first(1, thread + 1, threads);
        for (size_t block = small_encoder_first(1, thread, threads); block < end; block++) {
            const size_t panel = block * 4;
            const size_t column = panel * 16;
            small_encoder_avx2_gemm_32x64_1x4(x + row * 32, w + panel * 512, bias + column, out + row * 64 + column);
        }
        return;
    }
    if (rows == 2) {
        const size_t row = 0, end = small_encoder_first(2, thread + 1, threads);
        for (size_t block = small_encoder_first(2, thread, threads); block < end; block++) {
            const size_t panel = block * 2;
            const size_t column = panel * 16;
            small_encoder_avx2_gemm_32x64_2x2(x + row * 32, w + panel * 512, bias + column, out + row * 64 + column);
        }
        return;
    }
    const size_t tiles = (rows + 5) / 6, least = rows / tiles, taller = rows % tiles;
    const size_t begin = small_encoder_first(tiles * 4, thread, threads),
        end = small_encoder_first(tiles * 4, thread + 1, threads);
    size_t block = begin / tiles, tile = begin % tiles, row = tile * least + (tile < taller ? tile : taller);
    for (size_t unit = begin, height; unit < end; unit++, row += height, tile++) {
        if (tile == tiles) block++, tile = 0, row = 0;
        height = least + (tile < taller);
        const size_t panel = block;
        const size_t column = panel * 16;
        switch (height) {
            case 3:
                small_encoder_avx2_gemm_32x64_3x1(x + row * 32, w + panel * 512, bias + column,
                    out + row * 64 + column);
                break;
            case 4:
                small_encoder_avx2_gemm_32x64_4x1(x + row * 32, w + panel * 512, bias + column,
                    out + row * 64 + column);
                break;
            case 5:
                small_encoder_avx2_gemm_32x64_5x1(x + row * 32, w + panel * 512, bias + column,
                    out + row * 64 + column);
                break;
            case 6:
                small_encoder_avx2_gemm_32x64_6x1(x + row * 32, w + panel * 512, bias + column,
                    out + row * 64 + column);
                break;
        }
    }
}

/* layer 0, ffn, up projection: [rows][32] x [32][64] + bias, relu */
static small_encoder_AVX2
void small_encoder_avx2_step_layer0_ffn_up(const small_encoder_run *run, int thread) {
    small_encoder_avx2_gemm_32x64(run->workspace + small_encoder_x_attention_sum,
        run->weights + small_encoder_w_layer0_ffn_up, run->weights + small_encoder_w_layer0_ffn_up_bias,
        run->workspace + small_encoder_x_ffn_activated, run->rows, thread, run->threads);
}

static __attribute__((noinline)) small_encoder_AVX2
void small_encoder_avx2_gemm_64x32_1x2(const float *x, const float *w, const float *bias, const float *other,
    float *out) {
    __m256 acc0_0 = _mm256_loadu_ps(bias), acc0_1 = _mm256_loadu_ps(bias + 8), acc0_2 = _mm256_loadu_ps(bias + 16),
        acc0_3 = _mm256_loadu_ps(bias + 24);
    for (size_t k = 0; k < 64; k++) {
        const __m256 a0 = _mm256_broadcast_ss(x + k);
        const __m256 w0 = _mm256_loadu_ps(w + (k * 16));
        acc0_0 = _mm256_fmadd_ps(a0, w0, acc0_0);
        const __m256 w1 = _mm256_loadu_ps(w + (8 + (k * 16)));
        acc0_1 = _mm256_fmadd_ps(a0, w1, acc0_1);
        const __m256 w2 = _mm256_loadu_ps(w + (1024 + (k * 16)));
        acc0_2 = _mm256_fmadd_ps(a0, w2, acc0_2);
        const __m256 w3 = _mm256_loadu_ps(w + (1032 + (k * 16)));
        acc0_3 = _mm256_fmadd_ps(a0, w3, acc0_3);
    }
    acc0_0 = _mm256_add_ps(_mm256_loadu_ps(other), acc0_0);
    _mm256_storeu_ps(out, acc0_0);
    acc0_1 = _mm256_add_ps(_mm256_loadu_ps(other + 8), acc0_1);
    _mm256_storeu_ps(out + 8, acc0_1);
    acc0_2 = _mm256_add_ps(_mm256_loadu_ps(other + 16), acc0_2);
    _mm256_storeu_ps(out + 16, acc0_2);
    acc0_3 = _mm256_add_ps(_mm256_loadu_ps(other + 24), acc0_3);
    _mm256_storeu_ps(out + 24, acc0_3);
}

static __attribute__((noinline)) small_encoder_AVX2
void small_encoder_avx2_gemm_64x32_2x2(const float *x, const float *w, const float *bias, const float *other,
    float *out) {
    const __m256 b0 = _mm256_loadu_ps(bias), b1 = _mm256_loadu_ps(bias + 8), b2 = _mm256_loadu_ps(bias + 16),
        b3 = _mm256_loadu_ps(bias + 24);
    __m256 acc0_0 = b0, acc0_1 = b1, acc0_2 = b2, acc0_3 = b3;
    __m256 acc1_0 = b0, acc1_1 = b1, acc1_2 = b2, acc1_3 = b3;
    for (size_t k = 0; k < 64; k++) {
        const __m256 a0 = _mm256_broadcast_ss(x + k);
        const __m256 a1 = _mm256_broadcast_ss(x + (64 + k));
        const __m256 w0 = _mm256_loadu_ps(w + (k * 16));
        acc0_0 = _mm256_fmadd_ps(a0, w0, acc0_0);
        acc1_0 = _mm256_fmadd_ps(a1, w0, acc1_0);
        const __m256 w1 = _mm256_loadu_ps(w + (8 + (k * 16)));
        acc0_1 = _mm256_fmadd_ps(a0, w1, acc0_1);
        acc1_1 = _mm256_fmadd_ps(a1, w1, acc1_1);
        const __m256 w2 = _mm256_loadu_ps(w + (1024 + (k * 16)));
        acc0_2 = _mm256_fmadd_ps(a0, w2, acc0_2);
        acc1_2 = _mm256_fmadd_ps(a1, w2, acc1_2);
        const __m256 w3 = _mm256_loadu_ps(w + (1032 + (k * 16)));
        acc0_3 = _mm256_fmadd_ps(a0, w3, acc0_3);
        acc1_3 = _mm256_fmadd_ps(a1, w3, acc1_3);
    }
    acc0_0 = _mm256_add_ps(_mm256_loadu_ps(other), acc0_0);
    _mm256_storeu_ps(out, acc0_0);
    acc0_1 = _mm256_add_ps(_mm256_loadu_ps(other + 8), acc0_1);
    _mm256_storeu_ps(out + 8, acc0_1);
    acc0_2 = _mm256_add_ps(_mm256_loadu_ps(other + 16), acc0_2);
    _mm256_storeu_ps(out + 16, acc0_2);
    acc0_3 = _mm256_add_ps(_mm256_loadu_ps(other + 24), acc0_3);
    _mm256_storeu_ps(out + 24, acc0_3);
    acc1_0 = _mm256_add_ps(_mm256_loadu_ps(other + 32), acc1_0);
    _mm256_storeu_ps(out + 32, acc1_0);
    acc1_1 = _mm256_add_ps(_mm256_loadu_ps(other + 40), acc1_1);
    _mm256_storeu_ps(out + 40, acc1_1);
    acc1_2 = _mm256_add_ps(_mm256_loadu_ps(other + 48), acc1_2);
    _mm256_storeu_ps(out + 48, acc1_2);
    acc1_3 = _mm256_add_ps(_mm256_loadu_ps(other + 56), acc1_3);
    _mm256_storeu_ps(out + 56, acc1_3);
}

static __attribute__((noinline)) small_encoder_AVX2
void small_encoder_avx2_gemm_64x32_3x1(const float *x, const float *w, const float *bias, const float *other,
    float *out) {
    const __m256 b0 = _mm256_loadu_ps(bias), b1 = _mm256_loadu_ps(bias + 8);
    __m256 acc0_0 = b0, acc0_1 = b1;
    __m256 acc1_0 = b0, acc1_1 = b1;
    __m256 acc2_0 = b0, acc2_1 = b1;
    for (size_t k = 0; k < 64; k++) {
        const __m256 w0 = _mm256_loadu_ps(w + (k * 16));
        const __m256 w1 = _mm256_loadu_ps(w + (8 + (k * 16)));
        const __m256 a0 = _mm256_broadcast_ss(x + k);
        acc0_0 = _mm256_fmadd_ps(a0, w0, acc0_0);
        acc0_1 = _mm256_fmadd_ps(a0, w1, acc0_1);
        const __m256 a1 = _mm256_broadcast_ss(x + (64 + k));
        acc1_0 = _mm256_fmadd_ps(a1, w0, acc1_0);
        acc1_1 = _mm256_fmadd_ps(a1, w1, acc1_1);
        const __m256 a2 = _mm256_broadcast_ss(x + (128 + k));
        acc2_0 = _mm256_fmadd_ps(a2, w0, acc2_0);
        acc2_1 = _mm256_fmadd_ps(a2, w1, acc2_1);
    }
    acc0_0 = _mm256_add_ps(_mm256_loadu_ps(other), acc0_0);
    _mm256_storeu_ps(out, acc0_0);
    acc0_1 = _mm256_add_ps(_mm256_loadu_ps(other + 8), acc0_1);
    _mm256_storeu_ps(out + 8, acc0_1);
    acc1_0 = _mm256_add_ps(_mm256_loadu_ps(other + 32), acc1_0);
    _mm256_storeu_ps(out + 32, acc1_0);
    acc1_1 = _mm256_add_ps(_mm256_loadu_ps(other + 40), acc1_1);
    _mm256_storeu_ps(out + 40, acc1_1);
    acc2_0 = _mm256_add_ps(_mm256_loadu_ps(other + 64), acc2_0);
    _mm256_storeu_ps(out + 64, acc2_0);
    acc2_1 = _mm256_add_ps(_mm256_loadu_ps(other + 72), acc2_1);
    _mm256_storeu_ps(out + 72, acc2_1);
}

static __attribute__((noinline)) small_encoder_AVX2
void small_encoder_avx2_gemm_64x32_4x1(const float *x, const float *w, const float *bias, const float *other,
    float *out) {
    const __m256 b0 = _mm256_loadu_ps(bias), b1 = _mm256_loadu_ps(bias + 8);
    __m256 acc0_0 = b0, acc0_1 = b1;
    __m256 acc1_0 = b0, acc1_1 = b1;
    __m256 acc2_0 = b0, acc2_1 = b1;
    __m256 acc3_0 = b0, acc3_1 = b1;
    for (size_t k = 0; k < 64; k++) {
        const __m256 w0 = _mm256_loadu_ps(w + (k * 16));
        const __m256 w1 = _mm256_loadu_ps(w + (8 + (k * 16)));
        const __m256 a0 = _mm256_broadcast_ss(x + k);
        acc0_0 = _mm256_fmadd_ps(a0, w0, acc0_0);
        acc0_1 = _mm256_fmadd_ps(a0, w1, acc0_1);
        const __m256 a1 = _mm256_broadcast_ss(x + (64 + k));
        acc1_0 = _mm256_fmadd_ps(a1, w0, acc1_0);
        acc1_1 = _mm256_fmadd_ps(a1, w1, acc1_1);
        const __m256 a2 = _mm256_broadcast_ss(x + (128 + k));
        acc2_0 = _mm256_fmadd_ps(a2, w0, acc2_0);
        acc2_1 = _mm256_fmadd_ps(a2, w1, acc2_1);
        const __m256 a3 = _mm256_broadcast_ss(x + (192 + k));
        acc3_0 = _mm256_fmadd_ps(a3, w0, acc3_0);
        acc3_1 = _mm256_fmadd_ps(a3, w1, acc3_1);
    }
    acc0_0 = _mm256_add_ps(_mm256_loadu_ps(other), acc0_0);
    _mm256_storeu_ps(out, acc0_0);
    acc0_1 = _mm256_add_ps(_mm256_loadu_ps(other + 8), acc0_1);
    _mm256_storeu_ps(out + 8, acc0_1);
    acc1_0 = _mm256_add_ps(_mm256_loadu_ps(other + 32), acc1_0);
    _mm256_storeu_ps(out + 32, acc1_0);
    acc1_1 = _mm256_add_ps(_mm256_loadu_ps(other + 40), acc1_1);
    _mm256_storeu_ps(out + 40, acc1_1);
    acc2_0 = _mm256_add_ps(_mm256_loadu_ps(other + 64), acc2_0);
    _mm256_storeu_ps(out + 64, acc2_0);
    acc2_1 = _mm256_add_ps(_mm256_loadu_ps(other + 72), acc2_1);
    _mm256_storeu_ps(out + 72, acc2_1);
    acc3_0 = _mm256_add_ps(_mm256_loadu_ps(other + 96), acc3_0);
    _mm256_storeu_ps(out + 96, acc3_0);
    acc3_1 = _mm256_add_ps(_mm256_loadu_ps(other + 104), acc3_1);
    _mm256_storeu_ps(out + 104, acc3_1);
}

static __attribute__((noinline)) small_encoder_AVX2
void small_encoder_avx2_gemm_64x32_5x1(const float *x, const float *w, const float *bias, const float *other,
    float *out) {
    const __m256 b0 = _mm256_loadu_ps(bias), b1 = _mm256_loadu_ps(bias + 8);
    __m256 acc0_0 = b0, acc0_1 = b1;
    __m256 acc1_0 = b0, acc1_1 = b1;
    __m256 acc2_0 = b0, acc2_1 = b1;
    __m256 acc3_0 = b0, acc3_1 = b1;
    __m256 acc4_0 = b0, acc4_1 = b1;
    for (size_t k = 0; k < 64; k++) {
        const __m256 w0 = _mm256_loadu_ps(w + (k * 16));
        const __m256 w1 = _mm256_loadu_ps(w + (8 + (k * 16)));
        const __m256 a0 = _mm256_broadcast_ss(x + k);
        acc0_0 = _mm256_fmadd_ps(a0, w0, acc0_0);
        acc0_1 = _mm256_fmadd_ps(a0, w1, acc0_1);
        const __m256 a1 = _mm256_broadcast_ss(x + (64 + k));
        acc1_0 = _mm256_fmadd_ps(a1, w0, acc1_0);
        acc1_1 = _mm256_fmadd_ps(a1, w1, acc1_1);
        const __m256 a2 = _mm256_broadcast_ss(x + (128 + k));
        acc2_0 = _mm256_fmadd_ps(a2, w0, acc2_0);
        acc2_1 = _mm256_fmadd_ps(a2, w1, acc2_1);
        const __m256 a3 = _mm256_broadcast_ss(x + (192 + k));
        acc3_0 = _mm256_fmadd_ps(a3, w0, acc3_0);
        acc3_1 = _mm256_fmadd_ps(a3, w1, acc3_1);
        const __m256 a4 = _mm256_broadcast_ss(x + (256 + k));
        acc4_0 = _mm256_fmadd_ps(a4, w0, acc4_0);
        acc4_1 = _mm256_fmadd_ps(a4, w1, acc4_1);
    }
    acc0_0 = _mm256_add_ps(_mm256_loadu_ps(other), acc0_0);
    _mm256_storeu_ps(out, acc0_0);
    acc0_1 = _mm256_add_ps(_mm256_loadu_ps(other + 8), acc0_1);
    _mm256_storeu_ps(out + 8, acc0_1);
    acc1_0 = _mm256_add_ps(_mm256_loadu_ps(other + 32), acc1_0);
    _mm256_storeu_ps(out + 32, acc1_0);
    acc1_1 = _mm256_add_ps(_mm256_loadu_ps(other + 40), acc1_1);
    _mm256_storeu_ps(out + 40, acc1_1);
    acc2_0 = _mm256_add_ps(_mm256_loadu_ps(other + 64), acc2_0);
    _mm256_storeu_ps(out + 64, acc2_0);
    acc2_1 = _mm256_add_ps(_mm256_loadu_ps(other + 72), acc2_1);
    _mm256_storeu_ps(out + 72, acc2_1);
    acc3_0 = _mm256_add_ps(_mm256_loadu_ps(other + 96), acc3_0);
    _mm256_storeu_ps(out + 96, acc3_0);
    acc3_1 = _mm256_add_ps(_mm256_loadu_ps(other + 104), acc3_1);
    _mm256_storeu_ps(out + 104, acc3_1);
    acc4_0 = _mm256_add_ps(_mm256_loadu_ps(other + 128), acc4_0);
    _mm256_storeu_ps(out + 128, acc4_0);
    acc4_1 = _mm256_add_ps(_mm256_loadu_ps(other + 136), acc4_1);
    _mm256_storeu_ps(out + 136, acc4_1);
}

static __attribute__((noinline)) small_encoder_AVX2
void small_encoder_avx2_gemm_64x32_6x1(const float *x, const float *w, const float *bias, const float *other,
    float *out) {
    const __m256 b0 = _mm256_loadu_ps(bias), b1 = _mm256_loadu_ps(bias + 8);
    __m256 acc0_0 = b0, acc0_1 = b1;
    __m256 acc1_0 = b0, acc1_1 = b1;
    __m256 acc2_0 = b0, acc2_1 = b1;
    __m256 acc3_0 = b0, acc3_1 = b1;
    __m256 acc4_0 = b0, acc4_1 = b1;
    __m256 acc5_0 = b0, acc5_1 = b1;
    for (size_t k = 0; k < 64; k++) {
        const __m256 w0 = _mm256_loadu_ps(w + (k * 16));
        const __m256 w1 = _mm256_loadu_ps(w + (8 + (k * 16)));
        const __m256 a0 = _mm256_broadcast_ss(x + k);
        acc0_0 = _mm256_fmadd_ps(a0, w0, acc0_0);
        acc0_1 = _mm256_fmadd_ps(a0, w1, acc0_1);
        const __m256 a1 = _mm256_broadcast_ss(x + (64 + k));
        acc1_0 = _mm256_fmadd_ps(a1, w0, acc1_0);
        acc1_1 = _mm256_fmadd_ps(a1, w1, acc1_1);
        const __m256 a2 = _mm256_broadcast_ss(x + (128 + k));
        acc2_0 = _mm256_fmadd_ps(a2, w0, acc2_0);
        acc2_1 = _mm256_fmadd_ps(a2, w1, acc2_1);
        const __m256 a3 = _mm256_broadcast_ss(x + (192 + k));
        acc3_0 = _mm256_fmadd_ps(a3, w0, acc3_0);
        acc3_1 = _mm256_fmadd_ps(a3, w1, acc3_1);
        const __m256 a4 = _mm256_broadcast_ss(x + (256 + k));
        acc4_0 = _mm256_fmadd_ps(a4, w0, acc4_0);
        acc4_1 = _mm256_fmadd_ps(a4, w1, acc4_1);
        const __m256 a5 = _mm256_broadcast_ss(x + (320 + k));
        acc5_0 = _mm256_fmadd_ps(a5, w0, acc5_0);
        acc5_1 = _mm256_fmadd_ps(a5, w1, acc5_1);
    }
    acc0_0 = _mm256_add_ps(_mm256_loadu_ps(other), acc0_0);
    _mm256_storeu_ps(out, acc0_0);
    acc0_1 = _mm256_add_ps(_mm256_loadu_ps(other + 8), acc0_1);
    _mm256_storeu_ps(out + 8, acc0_1);
    acc1_0 = _mm256_add_ps(_mm256_loadu_ps(other + 32), acc1_0);
    _mm256_storeu_ps(out + 32, acc1_0);
    acc1_1 = _mm256_add_ps(_mm256_loadu_ps(other + 40), acc1_1);
    _mm256_storeu_ps(out + 40, acc1_1);
    acc2_0 = _mm256_add_ps(_mm256_loadu_ps(other + 64), acc2_0);
    _mm256_storeu_ps(out + 64, acc2_0);
    acc2_1 = _mm256_add_ps(_mm256_loadu_ps(other + 72), acc2_1);
    _mm256_storeu_ps(out + 72, acc2_1);
    acc3_0 = _mm256_add_ps(_mm256_loadu_ps(other + 96), acc3_0);
    _mm256_storeu_ps(out + 96, acc3_0);
    acc3_1 = _mm256_add_ps(_mm256_loadu_ps(other + 104), acc3_1);
    _mm256_storeu_ps(out + 104, acc3_1);
    acc4_0 = _mm256_add_ps(_mm256_loadu_ps(other + 128), acc4_0);
    _mm256_storeu_ps(out + 128, acc4_0);
    acc4_1 = _mm256_add_ps(_mm256_loadu_ps(other + 136), acc4_1);
    _mm256_storeu_ps(out + 136, acc4_1);
    acc5_0 = _mm256_add_ps(_mm256_loadu_ps(other + 160), acc5_0);
    _mm256_storeu_ps(out + 160, acc5_0);
    acc5_1 = _mm256_add_ps(_mm256_loadu_ps(other + 168), acc5_1);
    _mm256_storeu_ps(out + 168, acc5_1);
}

/* out [rows][32] = x [rows][64] times weight, + bias, + other */
static small_encoder_AVX2
void small_encoder_avx2_gemm_64x32(const float *x, const float *w, const float *bias, const float *other, float *out,
    size_t rows, int thread, int threads) {
    if (rows == 0) return;
    if (rows == 1) {
        const size_t row = 0, end = small_encoder_first(1, thread + 1, threads);
        for (size_t block = small_encoder_first(1, thread, threads); block < end; block++) {
            const size_t panel = block * 2;
            const size_t column = panel * 16;
            small_encoder_avx2_gemm_64x32_1x2(x + row * 64, w + panel * 1024, bias + column, other + row * 32 + column,
                out + row * 32 + column);
        }
        return;
    }
    if (rows == 2) {
        const size_t row = 0, end = small_encoder_first(1, thread + 1, threads);
        for (size_t block = small_encoder_first(1, thread, threads); block < end; block++) {
            const size_t panel = block * 2;
            const size_t column = panel * 16;
            small_encoder_avx2_gemm_64x32_2x2(x + row * 64, w + panel * 1024, bias + column, other + row * 32 + column,
                out + row * 32 + column);
        }
        return;
    }
    const size_t tiles = (rows + 5) / 6, least = rows / tiles, taller = rows % tiles;
    const size_t begin = small_encoder_first(tiles * 2, thread, threads),
        end = small_encoder_first(tiles * 2, thread + 1, threads);
    size_t block = begin / tiles, tile = begin % tiles, row = tile * least + (tile < taller ? tile : taller);
    for (size_t unit = begin, height; unit < end; unit++, row += height, tile++) {
        if (tile == tiles) block++, tile = 0, row = 0;
        height = least + (tile < taller);
        const size_t panel = block;
        const size_t column = panel * 16;
        switch (height) {
            case 3:
                small_encoder_avx2_gemm_64x32_3x1(x + row * 64, w + panel * 1024, bias + column,
                    other + row * 32 + column, out + row * 32 + column);
                break;
            case 4:
                small_encoder_avx2_gemm_64x32_4x1(x + row * 64, w + panel * 1024, bias + column,
                    other + row * 32 + column, out + row * 32 + column);
                break;
            case 5:
                small_encoder_avx2_gemm_64x32_5x1(x + row * 64, w + panel * 1024, bias + column,
                    other + row * 32 + column, out + row * 32 + column);
                break;
            case 6:
                small_encoder_avx2_gemm_64x32_6x1(x + row * 64, w + panel * 1024, bias + column,
                    other + row * 32 + column, out + row * 32 + column);
                break;
        }
    }
}

/* layer 0, ffn, down projection: [rows][64] x [64][32] + bias, + residual */
static small_encoder_AVX2
void small_encoder_avx2_step_layer0_ffn_down(const small_encoder_run *run, int thread) {
    small_encoder_avx2_gemm_64x32(run->workspace + small_encoder_x_ffn_activated,
        run->weights + small_encoder_w_layer0_ffn_down, run->weights + small_encoder_w_layer0_ffn_down_bias,
        run->workspace + small_encoder_x_attention_sum, run->workspace + small_encoder_x_ffn_sum, run->rows, thread,
        run->threads);
}

/* layer 0, ffn, output layernorm: [rows][32] */
static small_encoder_AVX2
void small_encoder_avx2_step_layer0_ffn_norm_out(const small_encoder_run *run, int thread) {
    small_encoder_avx2_layernorm_32(run->workspace + small_encoder_x_ffn_sum,
        run->weights + small_encoder_w_layer0_ffn_norm_out, run->weights + small_encoder_w_layer0_ffn_norm_out_bias,
        run->workspace + small_encoder_x_ffn_sum, run->rows, thread, run->threads);
}

/* layer 1, self attention, query, key and value projection: [rows][32] x [32][96] + bias */
static small_encoder_AVX2
void small_encoder_avx2_step_layer1_attention_query_key_value(const small_encoder_run *run, int thread) {
    small_encoder_avx2_gemm_32x96(run->workspace + small_encoder_x_ffn_sum,
        run->weights + small_encoder_w_layer1_attention_query_key_value,
        run->weights + small_encoder_w_layer1_attention_query_key_value_bias,
        run->workspace + small_encoder_x_attention_query_key_value, run->rows, thread, run->threads);
}

/* layer 1, self attention: softmax(query x key * 0.353553) x value, 4 heads of 8 */
static small_encoder_AVX2
void small_encoder_avx2_step_layer1_attention_attended(const small_encoder_run *run, int thread) {
    small_encoder_avx2_attention_2(run, run->workspace + small_encoder_x_attention_query_key_value,
        run->workspace + small_encoder_x_attention_query_key_value + 32,
        run->workspace + small_encoder_x_attention_query_key_value + 64,
        run->workspace + small_encoder_x_attention_attended, thread, run->threads);
}

/* layer 1, self attention, output projection: [rows][32] x [32][32] + bias, + residual */
static small_encoder_AVX2
void small_encoder_avx2_step_layer1_attention_output(const small_encoder_run *run, int thread) {
    small_encoder_avx2_gemm_32x32(run->workspace + small_encoder_x_attention_attended,
        run->weights + small_encoder_w_layer1_attention_output, run->weights +
        small_encoder_w_layer1_attention_output_bias, run->workspace + small_encoder_x_ffn_sum,
        run->workspace + small_encoder_x_attention_sum, run->rows, thread, run->threads);
}

/* layer 1, self attention, output layernorm: [rows][32] */
static small_encoder_AVX2
void small_encoder_avx2_step_layer1_attention_norm_out(const small_encoder_run *run, int thread) {
    small_encoder_avx2_layernorm_32(run->workspace + small_encoder_x_attention_sum,
        run->weights + small_encoder_w_layer1_attention_norm_out,
        run->weights + small_encoder_w_layer1_attention_norm_out_bias, run->workspace + small_encoder_x_attention_sum,
        run->rows, thread, run->threads);
}

/* layer 1, ffn, up projection: [rows][32] x [32][64] + bias, relu */
static small_encoder_AVX2
void small_encoder_avx2_step_layer1_ffn_up(const small_encoder_run *run, int thread) {
    small_encoder_avx2_gemm_32x64(run->workspace + small_encoder_x_attention_sum,
        run->weights + small_encoder_w_layer1_ffn_up, run->weights + small_encoder_w_layer1_ffn_up_bias,
        run->workspace + small_encoder_x_ffn_activated, run->rows, thread, run->threads);
}

/* layer 1, ffn, down projection: [rows][64] x [64][32] + bias, + residual */
static small_encoder_AVX2
void small_encoder_avx2_step_layer1_ffn_down(const small_encoder_run *run, int thread) {
    small_encoder_avx2_gemm_64x32(run->workspace + small_encoder_x_ffn_activated,
        run->weights + small_encoder_w_layer1_ffn_down, run->weights + small_encoder_w_layer1_ffn_down_bias,
        run->workspace + small_encoder_x_attention_sum, run->workspace + small_encoder_x_ffn_sum, run->rows, thread,
        run->threads);
}

/* layer 1, ffn, output layernorm: [rows][32] */
static small_encoder_AVX2
void small_encoder_avx2_step_layer1_ffn_norm_out(const small_encoder_run *run, int thread) {
    small_encoder_avx2_layernorm_32(run->workspace + small_encoder_x_ffn_sum,
        run->weights + small_encoder_w_layer1_ffn_norm_out, run->weights + small_encoder_w_layer1_ffn_norm_out_bias,
        run->workspace + small_encoder_x_ffn_sum, run->rows, thread, run->threads);
}

/* mean of the rows of a sequence: one sequence */
static small_encoder_AVX2
void small_encoder_avx2_pool_row(const float *from, size_t count, float *to) {
    (void)count;
    for (size_t c = 0; c < 32; c += 8) {
        {
            __m256 value = _mm256_set1_ps(0.0f);
            for (size_t i = 0; i < count; i++) {
                const __m256 next = _mm256_loadu_ps(from + (i * 32) + c);
                value = _mm256_add_ps(value, next);
            }
            value = _mm256_div_ps(value, _mm256_set1_ps((float)count));
            _mm256_storeu_ps(to + c, value);
        }
    }
}

static small_encoder_AVX2
void small_encoder_avx2_pool(const small_encoder_run *run, const float *x, float *out, int thread, int threads) {
    const size_t end = small_encoder_first(run->ended, thread + 1, threads);
    for (size_t sequence = small_encoder_first(run->ended, thread, threads); sequence < end; sequence++) {
        const size_t start = (size_t)run->starts[sequence];
        small_encoder_avx2_pool_row(x + start * 32, (size_t)run->starts[sequence + 1] - start, out + sequence * 32);
    }
}

/* pool: [rows][32] to [sequences][32], mean */
static small_encoder_AVX2
void small_encoder_avx2_step_pool(const small_encoder_run *run, int thread) {
    small_encoder_avx2_pool(run, run->workspace + small_encoder_x_ffn_sum, run->workspace + small_encoder_x_pool,
        thread, run->threads);
}

static small_encoder_AVX2
void small_encoder_avx2_gemm_32x5_1x1_last(const float *x, const float *w, const float *bias, float *out) {
    __m256 acc0_0 = _mm256_loadu_ps(bias);
    for (size_t k = 0; k < 32; k++) {
        const __m256 w0 = _mm256_loadu_ps(w + (k * 16));
        const __m256 a0 = _mm256_broadcast_ss(x + k);
        acc0_0 = _mm256_fmadd_ps(a0, w0, acc0_0);
    }
    _mm256_maskstore_ps(out, small_encoder_avx2_first(5), acc0_0);
}

static small_encoder_AVX2
void small_encoder_avx2_gemm_32x5_2x1_last(const float *x, const float *w, const float *bias, float *out) {
    const __m256 b0 = _mm256_loadu_ps(bias);
    __m256 acc0_0 = b0;
    __m256 acc1_0 = b0;
    for (size_t k = 0; k < 32; k++) {
        const __m256 w0 = _mm256_loadu_ps(w + (k * 16));
        const __m256 a0 = _mm256_broadcast_ss(x + k);
        acc0_0 = _mm256_fmadd_ps(a0, w0, acc0_0);
        const __m256 a1 = _mm256_broadcast_ss(x + (32 + k));
        acc1_0 = _mm256_fmadd_ps(a1, w0, acc1_0);
    }
    _mm256_maskstore_ps(out, small_encoder_avx2_first(5), acc0_0);
    _mm256_maskstore_ps(out + 5, small_encoder_avx2_first(5), acc1_0);
}

static small_encoder_AVX2
void small_encoder_avx2_gemm_32x5_3x1_last(const float *x, const float *w, const float *bias, float *out) {
    const __m256 b0 = _mm256_loadu_ps(bias);
    __m256 acc0_0 = b0;
    __m256 acc1_0 = b0;
    __m256 acc2_0 = b0;
    for (size_t k = 0; k < 32; k++) {
        const __m256 w0 = _mm256_loadu_ps(w + (k * 16));
        const __m256 a0 = _mm256_broadcast_ss(x + k);
        acc0_0 = _mm256_fmadd_ps(a0, w0, acc0_0);
        const __m256 a1 = _mm256_broadcast_ss(x + (32 + k));
        acc1_0 = _mm256_fmadd_ps(a1, w0, acc1_0);
        const __m256 a2 = _mm256_broadcast_ss(x + (64 + k));
        acc2_0 = _mm256_fmadd_ps(a2, w0, acc2_0);
    }
    _mm256_maskstore_ps(out, small_encoder_avx2_first(5), acc0_0);
    _mm256_maskstore_ps(out + 5, small_encoder_avx2_first(5), acc1_0);
    _mm256_maskstore_ps(out + 10, small_encoder_avx2_first(5), acc2_0);
}

static small_encoder_AVX2
void small_encoder_avx2_gemm_32x5_4x1_last(const float *x, const float *w, const float *bias, float *out) {
    const __m256 b0 = _mm256_loadu_ps(bias);
    __m256 acc0_0 = b0;
    __m256 acc1_0 = b0;
    __m256 acc2_0 = b0;
    __m256 acc3_0 = b0;
    for (size_t k = 0; k < 32; k++) {
        const __m256 w0 = _mm256_loadu_ps(w + (k * 16));
        const __m256 a0 = _mm256_broadcast_ss(x + k);
        acc0_0 = _mm256_fmadd_ps(a0, w0, acc0_0);
        const __m256 a1 = _mm256_broadcast_ss(x + (32 + k));
        acc1_0 = _mm256_fmadd_ps(a1, w0, acc1_0);
        const __m256 a2 = _mm256_broadcast_ss(x + (64 + k));
        acc2_0 = _mm256_fmadd_ps(a2, w0, acc2_0);
        const __m256 a3 = _mm256_broadcast_ss(x + (96 + k));
        acc3_0 = _mm256_fmadd_ps(a3, w0, acc3_0);
    }
    _mm256_maskstore_ps(out, small_encoder_avx2_first(5), acc0_0);
    _mm256_maskstore_ps(out + 5, small_encoder_avx2_first(5), acc1_0);
    _mm256_maskstore_ps(out + 10, small_encoder_avx2_first(5), acc2_0);
    _mm256_maskstore_ps(out + 15, small_encoder_avx2_first(5), acc3_0);
}

static small_encoder_AVX2
void small_encoder_avx2_gemm_32x5_5x1_last(const float *x, const float *w, const float *bias, float *out) {
    const __m256 b0 = _mm256_loadu_ps(bias);
    __m256 acc0_0 = b0;
    __m256 acc1_0 = b0;
    __m256 acc2_0 = b0;
    __m256 acc3_0 = b0;
    __m256 acc4_0 = b0;
    for (size_t k = 0; k < 32; k++) {
        const __m256 w0 = _mm256_loadu_ps(w + (k * 16));
        const __m256 a0 = _mm256_broadcast_ss(x + k);
        acc0_0 = _mm256_fmadd_ps(a0, w0, acc0_0);
        const __m256 a1 = _mm256_broadcast_ss(x + (32 + k));
        acc1_0 = _mm256_fmadd_ps(a1, w0, acc1_0);
        const __m256 a2 = _mm256_broadcast_ss(x + (64 + k));
        acc2_0 = _mm256_fmadd_ps(a2, w0, acc2_0);
        const __m256 a3 = _mm256_broadcast_ss(x + (96 + k));
        acc3_0 = _mm256_fmadd_ps(a3, w0, acc3_0);
        const __m256 a4 = _mm256_broadcast_ss(x + (128 + k));
        acc4_0 = _mm256_fmadd_ps(a4, w0, acc4_0);
    }
    _mm256_maskstore_ps(out, small_encoder_avx2_first(5), acc0_0);
    _mm256_maskstore_ps(out + 5, small_encoder_avx2_first(5), acc1_0);
    _mm256_maskstore_ps(out + 10, small_encoder_avx2_first(5), acc2_0);
    _mm256_maskstore_ps(out + 15, small_encoder_avx2_first(5), acc3_0);
    _mm256_maskstore_ps(out + 20, small_encoder_avx2_first(5), acc4_0);
}

static small_encoder_AVX2
void small_encoder_avx2_gemm_32x5_6x1_last(const float *x, const float *w, const float *bias, float *out) {
    const __m256 b0 = _mm256_loadu_ps(bias);
    __m256 acc0_0 = b0;
    __m256 acc1_0 = b0;
    __m256 acc2_0 = b0;
    __m256 acc3_0 = b0;
    __m256 acc4_0 = b0;
    __m256 acc5_0 = b0;
    for (size_t k = 0; k < 32; k++) {
        const __m256 w0 = _mm256_loadu_ps(w + (k * 16));
        const __m256 a0 = _mm256_broadcast_ss(x + k);
        acc0_0 = _mm256_fmadd_ps(a0, w0, acc0_0);
        const __m256 a1 = _mm256_broadcast_ss(x + (32 + k));
        acc1_0 = _mm256_fmadd_ps(a1, w0, acc1_0);
        const __m256 a2 = _mm256_broadcast_ss(x + (64 + k));
        acc2_0 = _mm256_fmadd_ps(a2, w0, acc2_0);
        const __m256 a3 = _mm256_broadcast_ss(x + (96 + k));
        acc3_0 = _mm256_fmadd_ps(a3, w0, acc3_0);
        const __m256 a4 = _mm256_broadcast_ss(x + (128 + k));
        acc4_0 = _mm256_fmadd_ps(a4, w0, acc4_0);
        const __m256 a5 = _mm256_broadcast_ss(x + (160 + k));
        acc5_0 = _mm256_fmadd_ps(a5, w0, acc5_0);
    }
    _mm256_maskstore_ps(out, small_encoder_avx2_first(5), acc0_0);
    _mm256_maskstore_ps(out + 5, small_encoder_avx2_first(5), acc1_0);
    _mm256_maskstore_ps(out + 10, small_encoder_avx2_first(5), acc2_0);
    _mm256_maskstore_ps(out + 15, small_encoder_avx2_first(5), acc3_0);
    _mm256_maskstore_ps(out + 20, small_encoder_avx2_first(5), acc4_0);
    _mm256_maskstore_ps(out + 25, small_encoder_avx2_first(5), acc5_0);
}

/* out [rows][5] = x [rows][32] times weight, + bias */
static small_encoder_AVX2
void small_encoder_avx2_gemm_32x5(const float *x, const float *w, const float *bias, float *out, size_t rows,
    int thread, int threads) {
    if (rows == 0) return;
    if (rows == 1) {
        const size_t row = 0, end = small_encoder_first(1, thread + 1, threads);
        for (size_t block = small_encoder_first(1, thread, threads); block < end; block++) {
            const size_t panel = block;
            const size_t column = panel * 16;
            if (block == 0) {
                small_encoder_avx2_gemm_32x5_1x1_last(x + row * 32, w + panel * 512, bias + column,
                    out + row * 5 + column);
                continue;
            }
        }
        return;
    }
    if (rows == 2) {
        const size_t row = 0, end = small_encoder_first(1, thread + 1, threads);
        for (size_t block = small_encoder_first(1, thread, threads); block < end; block++) {
            const size_t panel = block;
            const size_t column = panel * 16;
            if (block == 0) {
                small_encoder_avx2_gemm_32x5_2x1_last(x + row * 32, w + panel * 512, bias + column,
                    out + row * 5 + column);
                continue;
            }
        }
        return;
    }
    const size_t tiles = (rows + 5) / 6, least = rows / tiles, taller = rows % tiles;
    const size_t begin = small_encoder_first(tiles, thread, threads),
        end = small_encoder_first(tiles, thread + 1, threads);
    size_t block = begin / tiles, tile = begin % tiles, row = tile * least + (tile < taller ? tile : taller);
    for (size_t unit = begin, height; unit < end; unit++, row += height, tile++) {
        if (tile == tiles) block++, tile = 0, row = 0;
        height = least + (tile < taller);
        const size_t panel = block;
        const size_t column = panel * 16;
        if (block == 0) {
            switch (height) {
                case 3:
                    small_encoder_avx2_gemm_32x5_3x1_last(x + row * 32, w + panel * 512, bias + column,
                        out + row * 5 + column);
                    break;
                case 4:
                    small_encoder_avx2_gemm_32x5_4x1_last(x + row * 32, w + panel * 512, bias + column,
                        out + row * 5 + column);
                    break;
                case 5:
                    small_encoder_avx2_gemm_32x5_5x1_last(x + row * 32, w + panel * 512, bias + column,
                        out + row * 5 + column);
                    break;
                case 6:
                    small_encoder_avx2_gemm_32x5_6x1_last(x + row * 32, w + panel * 512, bias + column,
                        out + row * 5 + column);
                    break;
            }
            continue;
        }
    }
}

/* classifier: [sequences][32] x [32][5] + bias */
static small_encoder_AVX2
void small_encoder_avx2_step_classifier(const small_encoder_run *run, int thread) {
    small_encoder_avx2_gemm_32x5(run->workspace + small_encoder_x_pool, run->weights + small_encoder_w_classifier,
        run->weights + small_encoder_w_classifier_bias, run->out_logits, run->ended, thread, run->threads);
}

/* copy over 32 columns: one row */
static small_encoder_AVX2
void small_encoder_avx2_copy_32_row(const float *from, float *to) {
    for (size_t c = 0; c < 32; c += 8) {
        {
            __m256 value = _mm256_loadu_ps(from + c);
            _mm256_storeu_ps(to + c, value);
        }
    }
}

static small_encoder_AVX2
void small_encoder_avx2_copy_32(const float *x, float *out, size_t rows, int thread, int threads) {
    const size_t end = small_encoder_first(rows, thread + 1, threads);
    for (size_t row = small_encoder_first(rows, thread, threads); row < end; row++)
        small_encoder_avx2_copy_32_row(x + row * 32, out + row * 32);
}

/* output hidden: [rows][32] */
static small_encoder_AVX2
void small_encoder_avx2_step_copy_hidden(const small_encoder_run *run, int thread) {
    small_encoder_avx2_copy_32(run->workspace + small_encoder_x_ffn_sum, run->out_hidden, run->rows, thread,
        run->threads);
}

/* output pooled: [sequences][32] */
static small_encoder_AVX2
void small_encoder_avx2_step_copy_pooled(const small_encoder_run *run, int thread) {
    small_encoder_avx2_copy_32(run->workspace + small_encoder_x_pool, run->out_pooled, run->ended, thread,
        run->threads);
}

static void (*const small_encoder_avx2_tasks[])(const small_encoder_run *run, int thread) = {
    small_encoder_avx2_step_embedding,
    small_encoder_avx2_step_layer0_attention_query_key_value,
    small_encoder_avx2_step_layer0_attention_attended,
    small_encoder_avx2_step_layer0_attention_output,
    small_encoder_avx2_step_layer0_attention_norm_out,
    small_encoder_avx2_step_layer0_ffn_up,
    small_encoder_avx2_step_layer0_ffn_down,
    small_encoder_avx2_step_layer0_ffn_norm_out,
    small_encoder_avx2_step_layer1_attention_query_key_value,
    small_encoder_avx2_step_layer1_attention_attended,
    small_encoder_avx2_step_layer1_attention_output,
    small_encoder_avx2_step_layer1_attention_norm_out,
    small_encoder_avx2_step_layer1_ffn_up,
    small_encoder_avx2_step_layer1_ffn_down,
    small_encoder_avx2_step_layer1_ffn_norm_out,
    small_encoder_avx2_step_pool,
    small_encoder_avx2_step_classifier,
    small_encoder_avx2_step_copy_hidden,
    small_encoder_avx2_step_copy_pooled,
};

static __attribute__((noinline)) small_encoder_AVX2
void small_encoder_avx2_forward_chunk(small_encoder_run *run) {
    small_encoder_forward_steps(run, small_encoder_avx2_tasks);
}
#endif

const char *small_encoder_status_text(int status) {
    switch (status) {
        case SMALL_ENCODER_OK: return "fine";
        case SMALL_ENCODER_BAD_ARGUMENT: return "a null pointer, a struct of another size, or a bad count";
        case SMALL_ENCODER_BAD_WEIGHTS: return "the weights are damaged, or of another size, model, layout or version";
        case SMALL_ENCODER_NO_TARGET: return "this machine lacks the instructions, or is big-endian";
        case SMALL_ENCODER_SHORT_WORKSPACE: return "the workspace is too small or not aligned";
        case SMALL_ENCODER_BAD_LENGTH: return "a sequence is empty or too long";
        case SMALL_ENCODER_BAD_TOKEN: return "an id is outside its table";
        default: return "unknown status";
    }
}

/* A bit for each target that needs more than x86-64: set if CPUID reports its instructions and the system saves its
 * registers (XGETBV). */
static unsigned small_encoder_cpu(void) {
    unsigned a, b, c, d, features = 0;
    __asm__ volatile("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(0), "c"(0));
    const unsigned highest = a;
    if (highest < 7) return 0;
    __asm__ volatile("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(1), "c"(0));
    const unsigned leaf1 = c;
    if (!(leaf1 >> 27 & 1)) return 0;
    unsigned kept, high;
    __asm__ volatile("xgetbv" : "=a"(kept), "=d"(high) : "c"(0));
    __asm__ volatile("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(7), "c"(0));
    /* avx2 */
    if ((leaf1 & 0x38001000u) == 0x38001000u && (b & 0x20u) == 0x20u && (kept & 0x6u) == 0x6u) features |= 1u << 0;
    return features;
}

/* FNV-1a, 64 bit */
static uint64_t small_encoder_hash(uint64_t hash, const unsigned char *bytes, size_t size) {
    for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t small_encoder_u64(const unsigned char *b) {
    return (uint64_t)b[0] | (uint64_t)b[1] << 8 | (uint64_t)b[2] << 16 | (uint64_t)b[3] << 24 | (uint64_t)b[4] << 32 |
        (uint64_t)b[5] << 40 | (uint64_t)b[6] << 48 | (uint64_t)b[7] << 56;
}

/* The header of a .attnw: magic, version, hashes of model and layout, dtype, sizes, zeros, checksums. */
static int small_encoder_good_weights(const unsigned char *bytes, size_t size, int verify) {
    const uint64_t seed = UINT64_C(0xcbf29ce484222325);
    if (size != SMALL_ENCODER_WEIGHTS_BYTES || (uintptr_t)bytes % SMALL_ENCODER_ALIGNMENT != 0) return 0;
    if (small_encoder_u64(bytes) != UINT64_C(0x1a0a0d574e545441) ||
        small_encoder_u64(bytes + 8) != (UINT64_C(1) << 32 | 1))
        return 0;
    if (small_encoder_u64(bytes + 120) != small_encoder_hash(seed, bytes, 120)) return 0;
    if (small_encoder_u64(bytes + 16) != UINT64_C(0x891956682cd12f0a) ||
        small_encoder_u64(bytes + 56) != UINT64_C(0xe18df08d2db8b820))
        return 0;
    if (small_encoder_u64(bytes + 24) != UINT64_C(36) << 32) return 0; /* tensors; f32 */
    if (small_encoder_u64(bytes + 32) != 128 || small_encoder_u64(bytes + 40) != UINT64_C(80768)) return 0;
    if (small_encoder_u64(bytes + 64) | small_encoder_u64(bytes + 72) | small_encoder_u64(bytes + 80) |
        small_encoder_u64(bytes + 88) | small_encoder_u64(bytes + 96) | small_encoder_u64(bytes + 104) |
        small_encoder_u64(bytes + 112))
        return 0;
    return !verify || small_encoder_u64(bytes + 48) == small_encoder_hash(seed, bytes + 128, (size_t)80768u);
}

static int small_encoder_same(const char *a, const char *b) {
    return *a == *b && (*a == 0 || small_encoder_same(a + 1, b + 1));
}

static const char *const small_encoder_targets[] = {"avx2"};

/* Index of the best target that this CPU has, or of the requested one; -1: none. */
static int small_encoder_pick(const char *wanted) {
    const unsigned cpu = small_encoder_cpu();
#if defined(__x86_64__)
    if ((cpu >> 0 & 1) && (!wanted || small_encoder_same(wanted, "avx2"))) return 0;
#endif
    return -1;
}

int small_encoder_init(small_encoder_ctx *ctx, const void *weights, size_t bytes,
    const small_encoder_options *options) {
    if (!ctx || !weights || (options && options->size != sizeof *options)) return SMALL_ENCODER_BAD_ARGUMENT;
    const int threads = options && options->threads > 0 ? options->threads : 1;
    if (options && (options->threads < 0 || options->threads > 4096 || (threads > 1 && !options->parallel_for)))
        return SMALL_ENCODER_BAD_ARGUMENT;
    if (!small_encoder_good_weights((const unsigned char *)weights, bytes, options ? options->verify : 0))
        return SMALL_ENCODER_BAD_WEIGHTS;
    const int target = small_encoder_pick(options ? options->target : NULL);
    static const uint16_t one = 1; /* the numbers of the weights begin with their lowest byte */
    if (target < 0 || *(const unsigned char *)&one != 1) return SMALL_ENCODER_NO_TARGET;
    ctx->weights = (const float *)(const void *)((const unsigned char *)weights + 128);
    ctx->target = target;
    ctx->threads = threads;
    ctx->parallel_for = options ? options->parallel_for : NULL;
    ctx->pool = options ? options->pool : NULL;
    ctx->on_step = options ? options->on_step : NULL;
    ctx->watcher = options ? options->watcher : NULL;
    ctx->least_work = options && options->least_work ? options->least_work : SMALL_ENCODER_LEAST_WORK;
    return SMALL_ENCODER_OK;
}

const char *small_encoder_target(const small_encoder_ctx *ctx) {
    return ctx ? small_encoder_targets[ctx->target] : "";
}

static int small_encoder_check_input(const small_encoder_input *input) {
    size_t rows = 0;
    for (int b = 0; b < input->batch; b++) {
        const int32_t length = input->lengths[b];
        if (length < 1 || length > 16) return SMALL_ENCODER_BAD_LENGTH;
        rows += (size_t)length;
    }
    (void)rows;
    for (size_t i = 0; i < rows; i++)
        if (input->tokens[i] < 0 || input->tokens[i] >= 64) return SMALL_ENCODER_BAD_TOKEN;
    return SMALL_ENCODER_OK;
}

int small_encoder_forward(const small_encoder_ctx *ctx, const small_encoder_input *input, small_encoder_output *output,
    void *workspace, size_t bytes) {
    if (!ctx || !input || !output || !workspace || input->size != sizeof *input || output->size != sizeof *output)
        return SMALL_ENCODER_BAD_ARGUMENT;
    if (input->batch < 1 || !input->lengths || !input->tokens) return SMALL_ENCODER_BAD_ARGUMENT;
    if (bytes < SMALL_ENCODER_WORKSPACE_BYTES(ctx->threads) || (uintptr_t)workspace % SMALL_ENCODER_ALIGNMENT != 0)
        return SMALL_ENCODER_SHORT_WORKSPACE;
    const int status = small_encoder_check_input(input);
    if (status != SMALL_ENCODER_OK) return status;
    unsigned char *memory = (unsigned char *)workspace;
    int32_t *starts = (int32_t *)(void *)memory;
    small_encoder_run run = {0};
    run.weights = ctx->weights;
    run.workspace = (float *)(void *)(memory + 1088);
    run.scratch = run.workspace + 41008;
    run.threads = ctx->threads;
    run.parallel_for = ctx->parallel_for;
    run.pool = ctx->pool;
    run.on_step = ctx->on_step;
    run.watcher = ctx->watcher;
    run.least_work = ctx->least_work;
    run.starts = starts;
    run.tokens = input->tokens;
    run.out_hidden = output->hidden;
    run.out_pooled = output->pooled;
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
#if defined(__x86_64__)
            case 0: small_encoder_avx2_forward_chunk(&run); break;
#endif
        }
        run.tokens += rows;
        if (run.out_hidden) run.out_hidden += rows * 32;
        if (run.out_pooled) run.out_pooled += sequences * 32;
        if (run.out_logits) run.out_logits += sequences * 5;
    }
    return SMALL_ENCODER_OK;
}
