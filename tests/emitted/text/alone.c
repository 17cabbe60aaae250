/* alone.c: attention alone, d_model 0; model hash 6d4d62115c6a85aa
 *
 * Made by attnc 0.1.0: attnc compile alone.attn --target avx2
 * Memory: a workspace of 34880 bytes plus 512 per thread; 704 bytes of weights.
 * The output of attnc belongs to its user, without conditions. */
#include "alone.h"

#if ALONE_HEADER != 0x0c1a3f46u
#error "alone.h is of another run of attnc than this file"
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

typedef struct alone_run {
    const float *weights;
    float *workspace, *scratch;
    size_t rows, sequences;   /* of this chunk */
    size_t ended;             /* sequences whose last row is in this chunk */
    const int32_t *starts;    /* [sequences + 1] first row of each sequence */
    size_t source_rows;
    const int32_t *source_starts; /* first row of each source, or first key of each sequence */
    const float *query;
    const float *key;
    const float *value;
    float *out_context;
    uint64_t self_scores;   /* pairs of a query and a key: the work of attention */
    uint64_t source_scores, cross_scores; /* pairs within sources; pairs of a row and a source row */
    uint64_t least_work;
    void (*task)(const struct alone_run *run, int thread); /* of the step that threads share */
    int threads;
    void (*parallel_for)(void *pool, int count, void (*task)(void *with, int index), void *with);
    void *pool;
    void (*on_step)(void *watcher, int step);
    void *watcher;
} alone_run;

static inline __attribute__((unused)) void alone_before(const alone_run *run, int step) {
    if (__builtin_expect(run->on_step != NULL, 0)) run->on_step(run->watcher, step);
}

static __attribute__((unused)) void alone_task(void *with, int thread) {
    const alone_run *run = (const alone_run *)with;
    run->task(run, thread);
}

/* `work`: multiply-adds, roughly. Below the bound, waking threads costs more than it saves. */
static __attribute__((unused)) void alone_run_step(alone_run *run, int step,
    void (*const *tasks)(const alone_run *run, int thread), uint64_t work) {
    alone_before(run, step);
    const int threads = run->threads;
    if (threads > 1 && work >= run->least_work) {
        run->task = tasks[step];
        run->parallel_for(run->pool, threads, alone_task, run);
        return;
    }
    run->threads = 1; /* tasks divide their work by it */
    tasks[step](run, 0);
    run->threads = threads;
}

/* The first of n items that a thread has; those of the next thread follow its last one. */
static inline __attribute__((unused)) size_t alone_first(size_t n, int thread, int threads) {
    return n * (size_t)thread / (size_t)threads;
}

/* Where each tensor begins in the weights, in floats, and its shape. A matrix [N][K] stands in panels,
 * [N / 16][K][16]. alone_w_layer3_ffn_up is the tensor layers.3.ffn.up.weight of its stack. A product of
 * several matrices reads them as one: behind its shape are their names, in their order. */
#define alone_w_attention_score 0 /* [1][8][16] */

/* The workspace of forward, in bytes:
 *     0: starts[257], the first row of each sequence
 *     then the arrays that have constants
 *     2112: buffers of 8192 floats
 *     then 512 of scratch for each thread
 * Each buffer has its offset in floats, its shape, and the first and the last step that use it. */
#define alone_forward_source_starts_at 1088 /* [256] */
#define alone_x_attention_score 0 /* [255][16] attention_score to attention_attended */
#define alone_x_value 4096 /* [255][16] copy_value to attention_attended */

static __attribute__((unused)) void alone_forward_steps(alone_run *run,
    void (*const *tasks)(const alone_run *run, int thread)) {
    __asm__("" : "+r"(tasks)); /* hides the steps, which would round otherwise if they were inlined here */
    alone_run_step(run, 0, tasks, run->source_rows * UINT64_C(32));
    alone_run_step(run, 1, tasks, run->source_rows * UINT64_C(80));
    if (run->out_context) alone_run_step(run, 2, tasks, run->cross_scores * UINT64_C(22));
    else alone_before(run, 2);
    alone_before(run, 3);
}

/* ------------------------------------------------------------------ target avx2 */
#if defined(__x86_64__)

#define alone_AVX2 __attribute__((target("avx2,f16c,fma")))

/* x * 2^n, rounded once. The second factor takes all of n that is a float's power; what is left to the
 * first is exact, or leaves nothing but zero or infinity to the second. The last product is an fma with
 * -0 so that no compiler makes it part of a sum. */
static inline __attribute__((unused)) alone_AVX2
__m256 alone_avx2_exp2i(__m256 x, __m256 n) {
    __m256 second = _mm256_max_ps(_mm256_min_ps(n, _mm256_set1_ps(127.0f)), _mm256_set1_ps(-126.0f));
    __m256i bias = _mm256_set1_epi32(127);
    __m256i j = _mm256_cvtps_epi32(second), i = _mm256_cvtps_epi32(_mm256_sub_ps(n, second));
    __m256 power_i = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(i, bias), 23));
    __m256 power_j = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(j, bias), 23));
    return _mm256_fmadd_ps(_mm256_mul_ps(x, power_i), power_j, _mm256_set1_ps(-0.0f));
}

static inline __attribute__((unused)) alone_AVX2
float alone_avx2_sum(__m256 a) {
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

static inline __attribute__((unused)) alone_AVX2
float alone_avx2_hmax(__m256 a) {
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

/* 2^x for x up to 160: 2^n times a polynomial in r, |r| <= 1/2 (at most 2 ulp). Results below 2^-126, which would
 * be denormal, are 0; NaN stays NaN. The softmax, and sums of 1 and a power of e, call it with a scaled argument:
 * the rounding of the scale is a relative error of the power. */
static inline __attribute__((unused)) alone_AVX2
__m256 alone_avx2_exp2(__m256 x) {
    const __m256 t = _mm256_max_ps(_mm256_set1_ps(-126.0f), x);
    const __m256 n = _mm256_round_ps(t, _MM_FROUND_NINT);
    const __m256 r = _mm256_sub_ps(t, n);
    __m256 y = _mm256_set1_ps(0x1.5bba12p-10f);
    y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(0x1.3ceba8p-7f));
    y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(0x1.c6b7bep-5f));
    y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(0x1.ebf9bap-3f));
    y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(0x1.62e428p-1f));
    y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(1.0f));
    return _mm256_blendv_ps(alone_avx2_exp2i(y, n), _mm256_setzero_ps(),
        _mm256_cmp_ps(x, _mm256_set1_ps(-126.0f), _CMP_LT_OQ));
}

static alone_AVX2
void alone_avx2_gemm_8x4_1x1(const float *x, const float *w, float *out) {
    const __m256 none = _mm256_setzero_ps();
    __m256 acc0_0 = none;
    __m256 odd0_0 = _mm256_setzero_ps();
    for (size_t k = 0; k < 8; k += 2) {
        {
            const __m256 w0 = _mm256_loadu_ps(w + (k * 16));
            const __m256 a0 = _mm256_broadcast_ss(x + k);
            acc0_0 = _mm256_fmadd_ps(a0, w0, acc0_0);
        }
        {
            const __m256 w0 = _mm256_loadu_ps(w + ((k + 1) * 16));
            const __m256 a0 = _mm256_broadcast_ss(x + (k + 1));
            odd0_0 = _mm256_fmadd_ps(a0, w0, odd0_0);
        }
    }
    acc0_0 = _mm256_add_ps(acc0_0, odd0_0);
    _mm256_storeu_ps(out, acc0_0);
}

static alone_AVX2
void alone_avx2_gemm_8x4_2x1(const float *x, const float *w, float *out) {
    const __m256 none = _mm256_setzero_ps();
    __m256 acc0_0 = none;
    __m256 acc1_0 = none;
    __m256 odd0_0 = _mm256_setzero_ps(), odd1_0 = _mm256_setzero_ps();
    for (size_t k = 0; k < 8; k += 2) {
        {
            const __m256 w0 = _mm256_loadu_ps(w + (k * 16));
            const __m256 a0 = _mm256_broadcast_ss(x + k);
            acc0_0 = _mm256_fmadd_ps(a0, w0, acc0_0);
            const __m256 a1 = _mm256_broadcast_ss(x + (8 + k));
            acc1_0 = _mm256_fmadd_ps(a1, w0, acc1_0);
        }
        {
            const __m256 w0 = _mm256_loadu_ps(w + ((k + 1) * 16));
            const __m256 a0 = _mm256_broadcast_ss(x + (k + 1));
            odd0_0 = _mm256_fmadd_ps(a0, w0, odd0_0);
            const __m256 a1 = _mm256_broadcast_ss(x + (8 + (k + 1)));
            odd1_0 = _mm256_fmadd_ps(a1, w0, odd1_0);
        }
    }
    acc0_0 = _mm256_add_ps(acc0_0, odd0_0);
    acc1_0 = _mm256_add_ps(acc1_0, odd1_0);
    _mm256_storeu_ps(out, acc0_0);
    _mm256_storeu_ps(out + 16, acc1_0);
}

static alone_AVX2
void alone_avx2_gemm_8x4_3x1(const float *x, const float *w, float *out) {
    const __m256 none = _mm256_setzero_ps();
    __m256 acc0_0 = none;
    __m256 acc1_0 = none;
    __m256 acc2_0 = none;
    __m256 odd0_0 = _mm256_setzero_ps(), odd1_0 = _mm256_setzero_ps(), odd2_0 = _mm256_setzero_ps();
    for (size_t k = 0; k < 8; k += 2) {
        {
            const __m256 w0 = _mm256_loadu_ps(w + (k * 16));
            const __m256 a0 = _mm256_broadcast_ss(x + k);
            acc0_0 = _mm256_fmadd_ps(a0, w0, acc0_0);
            const __m256 a1 = _mm256_broadcast_ss(x + (8 + k));
            acc1_0 = _mm256_fmadd_ps(a1, w0, acc1_0);
            const __m256 a2 = _mm256_broadcast_ss(x + (16 + k));
            acc2_0 = _mm256_fmadd_ps(a2, w0, acc2_0);
        }
        {
            const __m256 w0 = _mm256_loadu_ps(w + ((k + 1) * 16));
            const __m256 a0 = _mm256_broadcast_ss(x + (k + 1));
            odd0_0 = _mm256_fmadd_ps(a0, w0, odd0_0);
            const __m256 a1 = _mm256_broadcast_ss(x + (8 + (k + 1)));
            odd1_0 = _mm256_fmadd_ps(a1, w0, odd1_0);
            const __m256 a2 = _mm256_broadcast_ss(x + (16 + (k + 1)));
            odd2_0 = _mm256_fmadd_ps(a2, w0, odd2_0);
        }
    }
    acc0_0 = _mm256_add_ps(acc0_0, odd0_0);
    acc1_0 = _mm256_add_ps(acc1_0, odd1_0);
    acc2_0 = _mm256_add_ps(acc2_0, odd2_0);
    _mm256_storeu_ps(out, acc0_0);
    _mm256_storeu_ps(out + 16, acc1_0);
    _mm256_storeu_ps(out + 32, acc2_0);
}

static alone_AVX2
void alone_avx2_gemm_8x4_4x1(const float *x, const float *w, float *out) {
    const __m256 none = _mm256_setzero_ps();
    __m256 acc0_0 = none;
    __m256 acc1_0 = none;
    __m256 acc2_0 = none;
    __m256 acc3_0 = none;
    __m256 odd0_0 = _mm256_setzero_ps(), odd1_0 = _mm256_setzero_ps(), odd2_0 = _mm256_setzero_ps(),
        odd3_0 = _mm256_setzero_ps();
    for (size_t k = 0; k < 8; k += 2) {
        {
            const __m256 w0 = _mm256_loadu_ps(w + (k * 16));
            const __m256 a0 = _mm256_broadcast_ss(x + k);
            acc0_0 = _mm256_fmadd_ps(a0, w0, acc0_0);
            const __m256 a1 = _mm256_broadcast_ss(x + (8 + k));
            acc1_0 = _mm256_fmadd_ps(a1, w0, acc1_0);
            const __m256 a2 = _mm256_broadcast_ss(x + (16 + k));
            acc2_0 = _mm256_fmadd_ps(a2, w0, acc2_0);
            const __m256 a3 = _mm256_broadcast_ss(x + (24 + k));
            acc3_0 = _mm256_fmadd_ps(a3, w0, acc3_0);
        }
        {
            const __m256 w0 = _mm256_loadu_ps(w + ((k + 1) * 16));
            const __m256 a0 = _mm256_broadcast_ss(x + (k + 1));
            odd0_0 = _mm256_fmadd_ps(a0, w0, odd0_0);
            const __m256 a1 = _mm256_broadcast_ss(x + (8 + (k + 1)));
            odd1_0 = _mm256_fmadd_ps(a1, w0, odd1_0);
            const __m256 a2 = _mm256_broadcast_ss(x + (16 + (k + 1)));
            odd2_0 = _mm256_fmadd_ps(a2, w0, odd2_0);
            const __m256 a3 = _mm256_broadcast_ss(x + (24 + (k + 1)));
            odd3_0 = _mm256_fmadd_ps(a3, w0, odd3_0);
        }
    }
    acc0_0 = _mm256_add_ps(acc0_0, odd0_0);
    acc1_0 = _mm256_add_ps(acc1_0, odd1_0);
    acc2_0 = _mm256_add_ps(acc2_0, odd2_0);
    acc3_0 = _mm256_add_ps(acc3_0, odd3_0);
    _mm256_storeu_ps(out, acc0_0);
    _mm256_storeu_ps(out + 16, acc1_0);
    _mm256_storeu_ps(out + 32, acc2_0);
    _mm256_storeu_ps(out + 48, acc3_0);
}

static alone_AVX2
void alone_avx2_gemm_8x4_5x1(const float *x, const float *w, float *out) {
    const __m256 none = _mm256_setzero_ps();
    __m256 acc0_0 = none;
    __m256 acc1_0 = none;
    __m256 acc2_0 = none;
    __m256 acc3_0 = none;
    __m256 acc4_0 = none;
    __m256 odd0_0 = _mm256_setzero_ps(), odd1_0 = _mm256_setzero_ps(), odd2_0 = _mm256_setzero_ps(),
        odd3_0 = _mm256_setzero_ps(), odd4_0 = _mm256_setzero_ps();
    for (size_t k = 0; k < 8; k += 2) {
        {
            const __m256 w0 = _mm256_loadu_ps(w + (k * 16));
            const __m256 a0 = _mm256_broadcast_ss(x + k);
            acc0_0 = _mm256_fmadd_ps(a0, w0, acc0_0);
            const __m256 a1 = _mm256_broadcast_ss(x + (8 + k));
            acc1_0 = _mm256_fmadd_ps(a1, w0, acc1_0);
            const __m256 a2 = _mm256_broadcast_ss(x + (16 + k));
            acc2_0 = _mm256_fmadd_ps(a2, w0, acc2_0);
            const __m256 a3 = _mm256_broadcast_ss(x + (24 + k));
            acc3_0 = _mm256_fmadd_ps(a3, w0, acc3_0);
            const __m256 a4 = _mm256_broadcast_ss(x + (32 + k));
            acc4_0 = _mm256_fmadd_ps(a4, w0, acc4_0);
        }
        {
            const __m256 w0 = _mm256_loadu_ps(w + ((k + 1) * 16));
            const __m256 a0 = _mm256_broadcast_ss(x + (k + 1));
            odd0_0 = _mm256_fmadd_ps(a0, w0, odd0_0);
            const __m256 a1 = _mm256_broadcast_ss(x + (8 + (k + 1)));
            odd1_0 = _mm256_fmadd_ps(a1, w0, odd1_0);
            const __m256 a2 = _mm256_broadcast_ss(x + (16 + (k + 1)));
            odd2_0 = _mm256_fmadd_ps(a2, w0, odd2_0);
            const __m256 a3 = _mm256_broadcast_ss(x + (24 + (k + 1)));
            odd3_0 = _mm256_fmadd_ps(a3, w0, odd3_0);
            const __m256 a4 = _mm256_broadcast_ss(x + (32 + (k + 1)));
            odd4_0 = _mm256_fmadd_ps(a4, w0, odd4_0);
        }
    }
    acc0_0 = _mm256_add_ps(acc0_0, odd0_0);
    acc1_0 = _mm256_add_ps(acc1_0, odd1_0);
    acc2_0 = _mm256_add_ps(acc2_0, odd2_0);
    acc3_0 = _mm256_add_ps(acc3_0, odd3_0);
    acc4_0 = _mm256_add_ps(acc4_0, odd4_0);
    _mm256_storeu_ps(out, acc0_0);
    _mm256_storeu_ps(out + 16, acc1_0);
    _mm256_storeu_ps(out + 32, acc2_0);
    _mm256_storeu_ps(out + 48, acc3_0);
    _mm256_storeu_ps(out + 64, acc4_0);
}

static alone_AVX2
void alone_avx2_gemm_8x4_6x1(const float *x, const float *w, float *out) {
    const __m256 none = _mm256_setzero_ps();
    __m256 acc0_0 = none;
    __m256 acc1_0 = none;
    __m256 acc2_0 = none;
    __m256 acc3_0 = none;
    __m256 acc4_0 = none;
    __m256 acc5_0 = none;
    __m256 odd0_0 = _mm256_setzero_ps(), odd1_0 = _mm256_setzero_ps(), odd2_0 = _mm256_setzero_ps(),
        odd3_0 = _mm256_setzero_ps(), odd4_0 = _mm256_setzero_ps(), odd5_0 = _mm256_setzero_ps();
    for (size_t k = 0; k < 8; k += 2) {
        {
            const __m256 w0 = _mm256_loadu_ps(w + (k * 16));
            const __m256 a0 = _mm256_broadcast_ss(x + k);
            acc0_0 = _mm256_fmadd_ps(a0, w0, acc0_0);
            const __m256 a1 = _mm256_broadcast_ss(x + (8 + k));
            acc1_0 = _mm256_fmadd_ps(a1, w0, acc1_0);
            const __m256 a2 = _mm256_broadcast_ss(x + (16 + k));
            acc2_0 = _mm256_fmadd_ps(a2, w0, acc2_0);
            const __m256 a3 = _mm256_broadcast_ss(x + (24 + k));
            acc3_0 = _mm256_fmadd_ps(a3, w0, acc3_0);
            const __m256 a4 = _mm256_broadcast_ss(x + (32 + k));
            acc4_0 = _mm256_fmadd_ps(a4, w0, acc4_0);
            const __m256 a5 = _mm256_broadcast_ss(x + (40 + k));
            acc5_0 = _mm256_fmadd_ps(a5, w0, acc5_0);
        }
        {
            const __m256 w0 = _mm256_loadu_ps(w + ((k + 1) * 16));
            const __m256 a0 = _mm256_broadcast_ss(x + (k + 1));
            odd0_0 = _mm256_fmadd_ps(a0, w0, odd0_0);
            const __m256 a1 = _mm256_broadcast_ss(x + (8 + (k + 1)));
            odd1_0 = _mm256_fmadd_ps(a1, w0, odd1_0);
            const __m256 a2 = _mm256_broadcast_ss(x + (16 + (k + 1)));
            odd2_0 = _mm256_fmadd_ps(a2, w0, odd2_0);
            const __m256 a3 = _mm256_broadcast_ss(x + (24 + (k + 1)));
            odd3_0 = _mm256_fmadd_ps(a3, w0, odd3_0);
            const __m256 a4 = _mm256_broadcast_ss(x + (32 + (k + 1)));
            odd4_0 = _mm256_fmadd_ps(a4, w0, odd4_0);
            const __m256 a5 = _mm256_broadcast_ss(x + (40 + (k + 1)));
            odd5_0 = _mm256_fmadd_ps(a5, w0, odd5_0);
        }
    }
    acc0_0 = _mm256_add_ps(acc0_0, odd0_0);
    acc1_0 = _mm256_add_ps(acc1_0, odd1_0);
    acc2_0 = _mm256_add_ps(acc2_0, odd2_0);
    acc3_0 = _mm256_add_ps(acc3_0, odd3_0);
    acc4_0 = _mm256_add_ps(acc4_0, odd4_0);
    acc5_0 = _mm256_add_ps(acc5_0, odd5_0);
    _mm256_storeu_ps(out, acc0_0);
    _mm256_storeu_ps(out + 16, acc1_0);
    _mm256_storeu_ps(out + 32, acc2_0);
    _mm256_storeu_ps(out + 48, acc3_0);
    _mm256_storeu_ps(out + 64, acc4_0);
    _mm256_storeu_ps(out + 80, acc5_0);
}

/* out [rows][4] = x [rows][8] times weight */
static alone_AVX2
void alone_avx2_gemm_8x4(const float *x, const float *w, float *out, size_t rows, int thread, int threads) {
    if (rows == 0) return;
    if (rows == 1) {
        const size_t row = 0, end = alone_first(1, thread + 1, threads);
        for (size_t block = alone_first(1, thread, threads); block < end; block++) {
            const size_t panel = block;
            const size_t column = panel * 16;
            alone_avx2_gemm_8x4_1x1(x + row * 8, w + panel * 128, out + row * 16 + column);
        }
        return;
    }
    if (rows == 2) {
        const size_t row = 0, end = alone_first(1, thread + 1, threads);
        for (size_t block = alone_first(1, thread, threads); block < end; block++) {
            const size_t panel = block;
            const size_t column = panel * 16;
            alone_avx2_gemm_8x4_2x1(x + row * 8, w + panel * 128, out + row * 16 + column);
        }
        return;
    }
    const size_t tiles = (rows + 5) / 6, least = rows / tiles, taller = rows % tiles;
    const size_t begin = alone_first(tiles, thread, threads), end = alone_first(tiles, thread + 1, threads);
    size_t block = begin / tiles, tile = begin % tiles, row = tile * least + (tile < taller ? tile : taller);
    for (size_t unit = begin, height; unit < end; unit++, row += height, tile++) {
        if (tile == tiles) block++, tile = 0, row = 0;
        height = least + (tile < taller);
        const size_t panel = block;
        const size_t column = panel * 16;
        switch (height) {
            case 3: alone_avx2_gemm_8x4_3x1(x + row * 8, w + panel * 128, out + row * 16 + column); break;
            case 4: alone_avx2_gemm_8x4_4x1(x + row * 8, w + panel * 128, out + row * 16 + column); break;
            case 5: alone_avx2_gemm_8x4_5x1(x + row * 8, w + panel * 128, out + row * 16 + column); break;
            case 6: alone_avx2_gemm_8x4_6x1(x + row * 8, w + panel * 128, out + row * 16 + column); break;
        }
    }
}

/* attention, score projection: [source rows][8] x [8][4] */
static alone_AVX2
void alone_avx2_step_attention_score(const alone_run *run, int thread) {
    alone_avx2_gemm_8x4(run->key, run->weights + alone_w_attention_score, run->workspace + alone_x_attention_score,
        run->source_rows, thread, run->threads);
}

/* copy over 8 columns: one row */
static alone_AVX2
void alone_avx2_copy_8_row(const float *from, float *to) {
    {
        __m256 value = _mm256_loadu_ps(from);
        _mm256_storeu_ps(to, value);
    }
    _mm256_storeu_ps(to + 8, _mm256_setzero_ps());
}

static alone_AVX2
void alone_avx2_copy_8(const float *x, float *out, size_t rows, int thread, int threads) {
    const size_t end = alone_first(rows, thread + 1, threads);
    for (size_t row = alone_first(rows, thread, threads); row < end; row++)
        alone_avx2_copy_8_row(x + row * 8, out + row * 16);
}

/* output value: [source rows][8] */
static alone_AVX2
void alone_avx2_step_copy_value(const alone_run *run, int thread) {
    alone_avx2_copy_8(run->value, run->workspace + alone_x_value, run->source_rows, thread, run->threads);
}

static alone_AVX2
void alone_avx2_attention_of_rows4(const float *query, const float *panels, const float *value, size_t v_stride,
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
        const float *panel = panels + j * 4;
        for (size_t d = 0; d < 4; d++) {
            const __m256 k0_0 = _mm256_loadu_ps(panel + (d * 16));
            const __m256 k0_1 = _mm256_loadu_ps(panel + (8 + (d * 16)));
            const __m256 q0 = _mm256_broadcast_ss(query + d);
            s0_0 = _mm256_fmadd_ps(q0, k0_0, s0_0);
            s0_1 = _mm256_fmadd_ps(q0, k0_1, s0_1);
            const __m256 q1 = _mm256_broadcast_ss(query + (4 + d));
            s1_0 = _mm256_fmadd_ps(q1, k0_0, s1_0);
            s1_1 = _mm256_fmadd_ps(q1, k0_1, s1_1);
            const __m256 q2 = _mm256_broadcast_ss(query + (8 + d));
            s2_0 = _mm256_fmadd_ps(q2, k0_0, s2_0);
            s2_1 = _mm256_fmadd_ps(q2, k0_1, s2_1);
            const __m256 q3 = _mm256_broadcast_ss(query + (12 + d));
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
        base[0] = alone_avx2_hmax(greatest0) * 0x1.715476p+0f;
        base[1] = alone_avx2_hmax(greatest1) * 0x1.715476p+0f;
        base[2] = alone_avx2_hmax(greatest2) * 0x1.715476p+0f;
        base[3] = alone_avx2_hmax(greatest3) * 0x1.715476p+0f;
        if ((base[0] >= 0x1p29f || base[0] <= -0x1p29f) && base[0] - base[0] == 0.0f) {
            s0_0 = _mm256_mul_ps(_mm256_sub_ps(_mm256_fmadd_ps(s0_0, _mm256_set1_ps(0x1.715476p+0f),
                _mm256_set1_ps(-0.0f)), _mm256_set1_ps(base[0])), _mm256_set1_ps(0x1.62e43p-1f));
            s0_1 = _mm256_mul_ps(_mm256_sub_ps(_mm256_fmadd_ps(s0_1, _mm256_set1_ps(0x1.715476p+0f),
                _mm256_set1_ps(-0.0f)), _mm256_set1_ps(base[0])), _mm256_set1_ps(0x1.62e43p-1f));
            base[0] = 0.0f;
        }
        if ((base[1] >= 0x1p29f || base[1] <= -0x1p29f) && base[1] - base[1] == 0.0f) {
            s1_0 = _mm256_mul_ps(_mm256_sub_ps(_mm256_fmadd_ps(s1_0, _mm256_set1_ps(0x1.715476p+0f),
                _mm256_set1_ps(-0.0f)), _mm256_set1_ps(base[1])), _mm256_set1_ps(0x1.62e43p-1f));
            s1_1 = _mm256_mul_ps(_mm256_sub_ps(_mm256_fmadd_ps(s1_1, _mm256_set1_ps(0x1.715476p+0f),
                _mm256_set1_ps(-0.0f)), _mm256_set1_ps(base[1])), _mm256_set1_ps(0x1.62e43p-1f));
            base[1] = 0.0f;
        }
        if ((base[2] >= 0x1p29f || base[2] <= -0x1p29f) && base[2] - base[2] == 0.0f) {
            s2_0 = _mm256_mul_ps(_mm256_sub_ps(_mm256_fmadd_ps(s2_0, _mm256_set1_ps(0x1.715476p+0f),
                _mm256_set1_ps(-0.0f)), _mm256_set1_ps(base[2])), _mm256_set1_ps(0x1.62e43p-1f));
            s2_1 = _mm256_mul_ps(_mm256_sub_ps(_mm256_fmadd_ps(s2_1, _mm256_set1_ps(0x1.715476p+0f),
                _mm256_set1_ps(-0.0f)), _mm256_set1_ps(base[2])), _mm256_set1_ps(0x1.62e43p-1f));
            base[2] = 0.0f;
        }
        if ((base[3] >= 0x1p29f || base[3] <= -0x1p29f) && base[3] - base[3] == 0.0f) {
            s3_0 = _mm256_mul_ps(_mm256_sub_ps(_mm256_fmadd_ps(s3_0, _mm256_set1_ps(0x1.715476p+0f),
                _mm256_set1_ps(-0.0f)), _mm256_set1_ps(base[3])), _mm256_set1_ps(0x1.62e43p-1f));
            s3_1 = _mm256_mul_ps(_mm256_sub_ps(_mm256_fmadd_ps(s3_1, _mm256_set1_ps(0x1.715476p+0f),
                _mm256_set1_ps(-0.0f)), _mm256_set1_ps(base[3])), _mm256_set1_ps(0x1.62e43p-1f));
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
            const __m256 e0 = alone_avx2_exp2(_mm256_fmadd_ps(s0_0, _mm256_set1_ps(0x1.715476p+0f), less0));
            _mm256_storeu_ps(block, e0);
            total0 = e0;
        }
        {
            const __m256 e0 = alone_avx2_exp2(_mm256_fmadd_ps(s0_1, _mm256_set1_ps(0x1.715476p+0f), less0));
            _mm256_storeu_ps(block + 8, e0);
            total0 = _mm256_add_ps(total0, e0);
        }
        {
            const __m256 e1 = alone_avx2_exp2(_mm256_fmadd_ps(s1_0, _mm256_set1_ps(0x1.715476p+0f), less1));
            _mm256_storeu_ps(block + 16, e1);
            total1 = e1;
        }
        {
            const __m256 e1 = alone_avx2_exp2(_mm256_fmadd_ps(s1_1, _mm256_set1_ps(0x1.715476p+0f), less1));
            _mm256_storeu_ps(block + 16 + 8, e1);
            total1 = _mm256_add_ps(total1, e1);
        }
        {
            const __m256 e2 = alone_avx2_exp2(_mm256_fmadd_ps(s2_0, _mm256_set1_ps(0x1.715476p+0f), less2));
            _mm256_storeu_ps(block + 32, e2);
            total2 = e2;
        }
        {
            const __m256 e2 = alone_avx2_exp2(_mm256_fmadd_ps(s2_1, _mm256_set1_ps(0x1.715476p+0f), less2));
            _mm256_storeu_ps(block + 32 + 8, e2);
            total2 = _mm256_add_ps(total2, e2);
        }
        {
            const __m256 e3 = alone_avx2_exp2(_mm256_fmadd_ps(s3_0, _mm256_set1_ps(0x1.715476p+0f), less3));
            _mm256_storeu_ps(block + 48, e3);
            total3 = e3;
        }
        {
            const __m256 e3 = alone_avx2_exp2(_mm256_fmadd_ps(s3_1, _mm256_set1_ps(0x1.715476p+0f), less3));
            _mm256_storeu_ps(block + 48 + 8, e3);
            total3 = _mm256_add_ps(total3, e3);
        }
        float inverse[4];
        sum[0] = alone_avx2_sum(total0);
        inverse[0] = 1.0f / sum[0];
        sum[1] = alone_avx2_sum(total1);
        inverse[1] = 1.0f / sum[1];
        sum[2] = alone_avx2_sum(total2);
        inverse[2] = 1.0f / sum[2];
        sum[3] = alone_avx2_sum(total3);
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
            _mm256_storeu_ps(out + 8, _mm256_mul_ps(o1_0, _mm256_set1_ps(inverse[1])));
            _mm256_storeu_ps(out + 16, _mm256_mul_ps(o2_0, _mm256_set1_ps(inverse[2])));
            _mm256_storeu_ps(out + 24, _mm256_mul_ps(o3_0, _mm256_set1_ps(inverse[3])));
        }
    }
}

static alone_AVX2
void alone_avx2_attention_of_rows2(const float *query, const float *panels, const float *value, size_t v_stride,
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
        const float *panel = panels + j * 4;
        for (size_t d = 0; d < 4; d++) {
            const __m256 k0_0 = _mm256_loadu_ps(panel + (d * 16));
            const __m256 k0_1 = _mm256_loadu_ps(panel + (8 + (d * 16)));
            const __m256 q0 = _mm256_broadcast_ss(query + d);
            s0_0 = _mm256_fmadd_ps(q0, k0_0, s0_0);
            s0_1 = _mm256_fmadd_ps(q0, k0_1, s0_1);
            const __m256 q1 = _mm256_broadcast_ss(query + (4 + d));
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
        base[0] = alone_avx2_hmax(greatest0) * 0x1.715476p+0f;
        base[1] = alone_avx2_hmax(greatest1) * 0x1.715476p+0f;
        if ((base[0] >= 0x1p29f || base[0] <= -0x1p29f) && base[0] - base[0] == 0.0f) {
            s0_0 = _mm256_mul_ps(_mm256_sub_ps(_mm256_fmadd_ps(s0_0, _mm256_set1_ps(0x1.715476p+0f),
                _mm256_set1_ps(-0.0f)), _mm256_set1_ps(base[0])), _mm256_set1_ps(0x1.62e43p-1f));
            s0_1 = _mm256_mul_ps(_mm256_sub_ps(_mm256_fmadd_ps(s0_1, _mm256_set1_ps(0x1.715476p+0f),
                _mm256_set1_ps(-0.0f)), _mm256_set1_ps(base[0])), _mm256_set1_ps(0x1.62e43p-1f));
            base[0] = 0.0f;
        }
        if ((base[1] >= 0x1p29f || base[1] <= -0x1p29f) && base[1] - base[1] == 0.0f) {
            s1_0 = _mm256_mul_ps(_mm256_sub_ps(_mm256_fmadd_ps(s1_0, _mm256_set1_ps(0x1.715476p+0f),
                _mm256_set1_ps(-0.0f)), _mm256_set1_ps(base[1])), _mm256_set1_ps(0x1.62e43p-1f));
            s1_1 = _mm256_mul_ps(_mm256_sub_ps(_mm256_fmadd_ps(s1_1, _mm256_set1_ps(0x1.715476p+0f),
                _mm256_set1_ps(-0.0f)), _mm256_set1_ps(base[1])), _mm256_set1_ps(0x1.62e43p-1f));
            base[1] = 0.0f;
        }
        const __m256 less0 = _mm256_set1_ps(-base[0]);
        const __m256 less1 = _mm256_set1_ps(-base[1]);
        __m256 total0;
        __m256 total1;
        {
            const __m256 e0 = alone_avx2_exp2(_mm256_fmadd_ps(s0_0, _mm256_set1_ps(0x1.715476p+0f), less0));
            _mm256_storeu_ps(block, e0);
            total0 = e0;
        }
        {
            const __m256 e0 = alone_avx2_exp2(_mm256_fmadd_ps(s0_1, _mm256_set1_ps(0x1.715476p+0f), less0));
            _mm256_storeu_ps(block + 8, e0);
            total0 = _mm256_add_ps(total0, e0);
        }
        {
            const __m256 e1 = alone_avx2_exp2(_mm256_fmadd_ps(s1_0, _mm256_set1_ps(0x1.715476p+0f), less1));
            _mm256_storeu_ps(block + 16, e1);
            total1 = e1;
        }
        {
            const __m256 e1 = alone_avx2_exp2(_mm256_fmadd_ps(s1_1, _mm256_set1_ps(0x1.715476p+0f), less1));
            _mm256_storeu_ps(block + 16 + 8, e1);
            total1 = _mm256_add_ps(total1, e1);
        }
        float inverse[2];
        sum[0] = alone_avx2_sum(total0);
        inverse[0] = 1.0f / sum[0];
        sum[1] = alone_avx2_sum(total1);
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
            _mm256_storeu_ps(out + 8, _mm256_mul_ps(o1_0, _mm256_set1_ps(inverse[1])));
        }
    }
}

static alone_AVX2
void alone_avx2_attention_of_rows1(const float *query, const float *panels, const float *value, size_t v_stride,
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
        const float *panel = panels + j * 4;
        for (size_t d = 0; d < 4; d++) {
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
        base[0] = alone_avx2_hmax(greatest0) * 0x1.715476p+0f;
        if ((base[0] >= 0x1p29f || base[0] <= -0x1p29f) && base[0] - base[0] == 0.0f) {
            s0_0 = _mm256_mul_ps(_mm256_sub_ps(_mm256_fmadd_ps(s0_0, _mm256_set1_ps(0x1.715476p+0f),
                _mm256_set1_ps(-0.0f)), _mm256_set1_ps(base[0])), _mm256_set1_ps(0x1.62e43p-1f));
            s0_1 = _mm256_mul_ps(_mm256_sub_ps(_mm256_fmadd_ps(s0_1, _mm256_set1_ps(0x1.715476p+0f),
                _mm256_set1_ps(-0.0f)), _mm256_set1_ps(base[0])), _mm256_set1_ps(0x1.62e43p-1f));
            base[0] = 0.0f;
        }
        const __m256 less0 = _mm256_set1_ps(-base[0]);
        __m256 total0;
        {
            const __m256 e0 = alone_avx2_exp2(_mm256_fmadd_ps(s0_0, _mm256_set1_ps(0x1.715476p+0f), less0));
            _mm256_storeu_ps(block, e0);
            total0 = e0;
        }
        {
            const __m256 e0 = alone_avx2_exp2(_mm256_fmadd_ps(s0_1, _mm256_set1_ps(0x1.715476p+0f), less0));
            _mm256_storeu_ps(block + 8, e0);
            total0 = _mm256_add_ps(total0, e0);
        }
        float inverse[1];
        sum[0] = alone_avx2_sum(total0);
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

/* keys of one head, [n][16] -> [n/16][4][16], the last panel filled up with zeros */
static alone_AVX2
void alone_avx2_attention_2_pack(const float *key, size_t n, float *panels) {
    static const float none[4] = {0};
    for (size_t j = 0; j < n; j += 16) {
        const size_t rows = n - j < 16 ? n - j : 16;
        const float *from = key + j * 16;
        float *to = panels + j * 4;
        for (size_t l = 0; l < 16; l += 8)
            for (size_t d = 0; d < 4; d += 4) {
                if (l + 8 <= rows) {
                    const float *row0 = from + (l) * 16 + d;
                    const float *row1 = from + (l + 1) * 16 + d;
                    const float *row2 = from + (l + 2) * 16 + d;
                    const float *row3 = from + (l + 3) * 16 + d;
                    const float *row4 = from + (l + 4) * 16 + d;
                    const float *row5 = from + (l + 5) * 16 + d;
                    const float *row6 = from + (l + 6) * 16 + d;
                    const float *row7 = from + (l + 7) * 16 + d;
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
                    const float *row0 = l >= rows ? none : from + (l) * 16 + d;
                    const float *row1 = l + 1 >= rows ? none : from + (l + 1) * 16 + d;
                    const float *row2 = l + 2 >= rows ? none : from + (l + 2) * 16 + d;
                    const float *row3 = l + 3 >= rows ? none : from + (l + 3) * 16 + d;
                    const float *row4 = l + 4 >= rows ? none : from + (l + 4) * 16 + d;
                    const float *row5 = l + 5 >= rows ? none : from + (l + 5) * 16 + d;
                    const float *row6 = l + 6 >= rows ? none : from + (l + 6) * 16 + d;
                    const float *row7 = l + 7 >= rows ? none : from + (l + 7) * 16 + d;
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

/* attention of 1 head of 4 over the keys of the same sequence */
static alone_AVX2
void alone_avx2_attention_2(const alone_run *run, const float *q, const float *k, const float *v, float *out,
    int thread, int threads) {
    float *scratch = run->scratch + (size_t)thread * 128, *block = scratch + 64;
    size_t total = 0, unit = 0;
    for (size_t s = 0; s < run->sequences; s++) total += ((size_t)(run->starts[s + 1] - run->starts[s]) + 3) / 4;
    const size_t begin = alone_first(total, thread, threads), end = alone_first(total, thread + 1, threads);
    for (size_t s = 0; s < run->sequences && unit < end; s++) {
        const size_t start = (size_t)run->starts[s], rows = 1, blocks = (rows + 3) / 4;
        const size_t key_start = (size_t)run->source_starts[s], n = (size_t)run->source_starts[s + 1] - key_start;
        size_t packed = 1;
        for (size_t head = 0; head < 1; head++, unit += blocks) {
            if (unit + blocks <= begin || unit >= end) continue;
            const size_t kv = head;
            const float *keys = k + key_start * 16 + kv * 4, *values = v + key_start * 16 + kv * 8;
            float *panels = scratch;
            if (kv != packed) {
                alone_avx2_attention_2_pack(keys, n, panels);
            }
            packed = kv;
            const float *query = q + start * 4 + head * 4;
            float *to = out + start * 8 + head * 8;
            const size_t from = begin > unit ? begin - unit : 0, until = end - unit < blocks ? end - unit : blocks;
            const size_t stop = until * 4 < rows ? until * 4 : rows;
            size_t i = from * 4;
            for (; i + 4 <= stop; i += 4)
                alone_avx2_attention_of_rows4(query + i * 4, panels, values, 16, i, n, block, to + i * 8);
            for (; i + 2 <= stop; i += 2)
                alone_avx2_attention_of_rows2(query + i * 4, panels, values, 16, i, n, block, to + i * 8);
            for (; i < stop; i++)
                alone_avx2_attention_of_rows1(query + i * 4, panels, values, 16, i, n, block, to + i * 8);
        }
    }
}

/* attention: softmax(query x key) x value, 1 heads of 4 */
static alone_AVX2
void alone_avx2_step_attention_attended(const alone_run *run, int thread) {
    alone_avx2_attention_2(run, run->query, run->workspace + alone_x_attention_score, run->workspace + alone_x_value,
        run->out_context, thread, run->threads);
}

static void (*const alone_avx2_tasks[])(const alone_run *run, int thread) = {
    alone_avx2_step_attention_score,
    alone_avx2_step_copy_value,
    alone_avx2_step_attention_attended,
};

static __attribute__((noinline)) alone_AVX2
void alone_avx2_forward_chunk(alone_run *run) {
    alone_forward_steps(run, alone_avx2_tasks);
}
#endif

const char *alone_status_text(int status) {
    switch (status) {
        case ALONE_OK: return "fine";
        case ALONE_BAD_ARGUMENT: return "a null pointer, a struct of another size, or a bad count";
        case ALONE_BAD_WEIGHTS: return "the weights are damaged, or of another size, model, layout or version";
        case ALONE_NO_TARGET: return "this machine lacks the instructions, or is big-endian";
        case ALONE_SHORT_WORKSPACE: return "the workspace is too small or not aligned";
        case ALONE_BAD_LENGTH: return "a sequence is empty or too long";
        case ALONE_BAD_TOKEN: return "an id is outside its table";
        default: return "unknown status";
    }
}

/* A bit for each target that needs more than x86-64: set if CPUID reports its instructions and the system saves its
 * registers (XGETBV). */
static unsigned alone_cpu(void) {
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
static uint64_t alone_hash(uint64_t hash, const unsigned char *bytes, size_t size) {
    for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t alone_u64(const unsigned char *b) {
    return (uint64_t)b[0] | (uint64_t)b[1] << 8 | (uint64_t)b[2] << 16 | (uint64_t)b[3] << 24 | (uint64_t)b[4] << 32 |
        (uint64_t)b[5] << 40 | (uint64_t)b[6] << 48 | (uint64_t)b[7] << 56;
}

/* The header of a .attnw: magic, version, hashes of model and layout, dtype, sizes, zeros, checksums. */
static int alone_good_weights(const unsigned char *bytes, size_t size, int verify) {
    const uint64_t seed = UINT64_C(0xcbf29ce484222325);
    if (size != ALONE_WEIGHTS_BYTES || (uintptr_t)bytes % ALONE_ALIGNMENT != 0) return 0;
    if (alone_u64(bytes) != UINT64_C(0x1a0a0d574e545441) || alone_u64(bytes + 8) != (UINT64_C(1) << 32 | 1)) return 0;
    if (alone_u64(bytes + 120) != alone_hash(seed, bytes, 120)) return 0;
    if (alone_u64(bytes + 16) != UINT64_C(0x6d4d62115c6a85aa) || alone_u64(bytes + 56) != UINT64_C(0x567fa12e8f749fd0))
        return 0;
    if (alone_u64(bytes + 24) != UINT64_C(1) << 32) return 0; /* tensors; f32 */
    if (alone_u64(bytes + 32) != 128 || alone_u64(bytes + 40) != UINT64_C(576)) return 0;
    if (alone_u64(bytes + 64) | alone_u64(bytes + 72) | alone_u64(bytes + 80) | alone_u64(bytes + 88) |
        alone_u64(bytes + 96) | alone_u64(bytes + 104) | alone_u64(bytes + 112))
        return 0;
    return !verify || alone_u64(bytes + 48) == alone_hash(seed, bytes + 128, (size_t)576u);
}

static int alone_same(const char *a, const char *b) {
    return *a == *b && (*a == 0 || alone_same(a + 1, b + 1));
}

static const char *const alone_targets[] = {"avx2"};

/* Index of the best target that this CPU has, or of the requested one; -1: none. */
static int alone_pick(const char *wanted) {
    const unsigned cpu = alone_cpu();
#if defined(__x86_64__)
    if ((cpu >> 0 & 1) && (!wanted || alone_same(wanted, "avx2"))) return 0;
#endif
    return -1;
}

int alone_init(alone_ctx *ctx, const void *weights, size_t bytes, const alone_options *options) {
    if (!ctx || !weights || (options && options->size != sizeof *options)) return ALONE_BAD_ARGUMENT;
    const int threads = options && options->threads > 0 ? options->threads : 1;
    if (options && (options->threads < 0 || options->threads > 4096 || (threads > 1 && !options->parallel_for)))
        return ALONE_BAD_ARGUMENT;
    if (!alone_good_weights((const unsigned char *)weights, bytes, options ? options->verify : 0))
        return ALONE_BAD_WEIGHTS;
    const int target = alone_pick(options ? options->target : NULL);
    static const uint16_t one = 1; /* the numbers of the weights begin with their lowest byte */
    if (target < 0 || *(const unsigned char *)&one != 1) return ALONE_NO_TARGET;
    ctx->weights = (const float *)(const void *)((const unsigned char *)weights + 128);
    ctx->target = target;
    ctx->threads = threads;
    ctx->parallel_for = options ? options->parallel_for : NULL;
    ctx->pool = options ? options->pool : NULL;
    ctx->on_step = options ? options->on_step : NULL;
    ctx->watcher = options ? options->watcher : NULL;
    ctx->least_work = options && options->least_work ? options->least_work : ALONE_LEAST_WORK;
    return ALONE_OK;
}

const char *alone_target(const alone_ctx *ctx) {
    return ctx ? alone_targets[ctx->target] : "";
}

static int alone_check_input(const alone_input *input) {
    size_t rows = 0, source_rows = 0;
    for (int b = 0; b < input->batch; b++) {
        const int32_t length = input->lengths ? input->lengths[b] : 1;
        if (length != 1) return ALONE_BAD_LENGTH;
        rows += (size_t)length;
        const int32_t source_length = input->key_lengths[b];
        if (source_length < 1 || source_length > 5) return ALONE_BAD_LENGTH;
        source_rows += (size_t)source_length;
    }
    (void)rows;
    (void)source_rows;
    return ALONE_OK;
}

int alone_forward(const alone_ctx *ctx, const alone_input *input, alone_output *output, void *workspace, size_t bytes) {
    if (!ctx || !input || !output || !workspace || input->size != sizeof *input || output->size != sizeof *output)
        return ALONE_BAD_ARGUMENT;
    if (input->batch < 1 || !input->key_lengths || !input->query || !input->key) return ALONE_BAD_ARGUMENT;
    if (bytes < ALONE_WORKSPACE_BYTES(ctx->threads) || (uintptr_t)workspace % ALONE_ALIGNMENT != 0)
        return ALONE_SHORT_WORKSPACE;
    const int status = alone_check_input(input);
    if (status != ALONE_OK) return status;
    unsigned char *memory = (unsigned char *)workspace;
    int32_t *starts = (int32_t *)(void *)memory;
    int32_t *source_starts = (int32_t *)(void *)(memory + alone_forward_source_starts_at);
    alone_run run = {0};
    run.weights = ctx->weights;
    run.workspace = (float *)(void *)(memory + 2112);
    run.scratch = run.workspace + 8192;
    run.threads = ctx->threads;
    run.parallel_for = ctx->parallel_for;
    run.pool = ctx->pool;
    run.on_step = ctx->on_step;
    run.watcher = ctx->watcher;
    run.least_work = ctx->least_work;
    run.starts = starts;
    run.source_starts = source_starts;
    run.query = input->query;
    run.key = input->key;
    run.value = input->value ? input->value : input->key;
    run.out_context = output->context;
    for (int b = 0; b < input->batch;) {
        size_t rows = 0, sequences = 0, source_rows = 0;
        starts[0] = 0;
        run.self_scores = 0;
        source_starts[0] = 0;
        run.source_scores = run.cross_scores = 0;
        for (; b < input->batch; b++) {
            const size_t length = (size_t)(input->lengths ? input->lengths[b] : 1);
            if (rows + length > 256) break;
            const size_t source_length = (size_t)(input->key_lengths[b]);
            if (source_rows + source_length > 255) break;
            rows += length;
            run.self_scores += (uint64_t)length * length;
            run.source_scores += (uint64_t)source_length * source_length;
            run.cross_scores += (uint64_t)length * source_length;
            source_rows += source_length;
            source_starts[sequences + 1] = (int32_t)source_rows;
            starts[++sequences] = (int32_t)rows;
        }
        run.rows = rows;
        run.sequences = run.ended = sequences;
        run.source_rows = source_rows;
        switch (ctx->target) {
#if defined(__x86_64__)
            case 0: alone_avx2_forward_chunk(&run); break;
#endif
        }
        run.query += rows * 4;
        run.key += source_rows * 8;
        run.value += source_rows * 8;
        if (run.out_context) run.out_context += rows * 8;
    }
    return ALONE_OK;
}
