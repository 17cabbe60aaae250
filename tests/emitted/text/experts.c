/* experts.c: encoder of 1 layer over at most 3 rows, d_model 4; model hash 87f1d1202f7d86ec
 *
 * Made by attnc 0.1.0: attnc compile experts.attn --target neon
 * Memory: a workspace of 132032 bytes plus 0 per thread; 2496 bytes of weights.
 * The output of attnc belongs to its user, without conditions. */
#include "experts.h"

#if EXPERTS_HEADER != 0x8149dcd5u
#error "experts.h is of another run of attnc than this file"
#endif
#ifdef __FAST_MATH__
#error "this file counts on IEEE arithmetic: compile it without -ffast-math"
#endif
#if defined(__FLT_EVAL_METHOD__) && (__FLT_EVAL_METHOD__ < 0 || __FLT_EVAL_METHOD__ == 1 || __FLT_EVAL_METHOD__ == 2)
#error "this file counts on floats that are rounded at once: compile it with -msse2 -mfpmath=sse, or with -std=gnu11"
#endif

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

typedef struct experts_run {
    const float *weights;
    float *workspace, *scratch;
    size_t rows, sequences;   /* of this chunk */
    size_t ended;             /* sequences whose last row is in this chunk */
    const int32_t *starts;    /* [sequences + 1] first row of each sequence */
    const int32_t *tokens;
    float *out_hidden;
    uint64_t self_scores;   /* pairs of a query and a key: the work of attention */
    uint64_t least_work;
    void (*task)(const struct experts_run *run, int thread); /* of the step that threads share */
    int threads;
    void (*parallel_for)(void *pool, int count, void (*task)(void *with, int index), void *with);
    void *pool;
    void (*on_step)(void *watcher, int step);
    void *watcher;
} experts_run;

static inline __attribute__((unused)) void experts_before(const experts_run *run, int step) {
    if (__builtin_expect(run->on_step != NULL, 0)) run->on_step(run->watcher, step);
}

static __attribute__((unused)) void experts_task(void *with, int thread) {
    const experts_run *run = (const experts_run *)with;
    run->task(run, thread);
}

/* `work`: multiply-adds, roughly. Below the bound, waking threads costs more than it saves. */
static __attribute__((unused)) void experts_run_step(experts_run *run, int step,
    void (*const *tasks)(const experts_run *run, int thread), uint64_t work) {
    experts_before(run, step);
    const int threads = run->threads;
    if (threads > 1 && work >= run->least_work) {
        run->task = tasks[step];
        run->parallel_for(run->pool, threads, experts_task, run);
        return;
    }
    run->threads = 1; /* tasks divide their work by it */
    tasks[step](run, 0);
    run->threads = threads;
}

/* The first of n items that a thread has; those of the next thread follow its last one. */
static inline __attribute__((unused)) size_t experts_first(size_t n, int thread, int threads) {
    return n * (size_t)thread / (size_t)threads;
}

/* Where each tensor begins in the weights, in floats, and its shape. A matrix [N][K] stands in panels,
 * [N / 16][K][16]. experts_w_layer3_ffn_up is the tensor layers.3.ffn.up.weight of its stack. A product of
 * several matrices reads them as one: behind its shape are their names, in their order. */
#define experts_w_embedding_tokens 0 /* [5][4] */
/* encoder.layers.0. */
#define experts_w_layer0_ffn_router 32 /* [1][4][16] */
#define experts_w_layer0_ffn_experts_up 96 /* [3][1][4][16] */
#define experts_w_layer0_ffn_experts_up_bias 288 /* [3][1][1][16] */
#define experts_w_layer0_ffn_experts_down 336 /* [3][1][4][16] */
#define experts_w_layer0_ffn_experts_down_bias 528 /* [3][1][1][16] */

/* The workspace of forward, in bytes:
 *     0: starts[256], the first row of each sequence
 *     1024: buffers of 32752 floats
 *     then 0 of scratch for each thread
 * Each buffer has its offset in floats, its shape, and the first and the last step that use it. */
#define experts_x_embedding_looked_up 0 /* [255][16] embedding to ffn_experts of layer 0 */
#define experts_x_ffn_router 4096 /* [255][16] ffn_router to ffn_choice */
#define experts_x_ffn_choice 8192 /* [255][16] ffn_choice to ffn_experts */
#define experts_x_ffn_choice_order 12288 /* [255][16] ffn_choice_order to ffn_experts */
/* [510][16] embedding_looked_up_by_expert to ffn_experts_up of layer 0 */
#define experts_x_embedding_looked_up_by_expert 16400
#define experts_x_ffn_experts_down 16400 /* [510][16] ffn_experts_down to ffn_experts */
#define experts_x_ffn_experts_activated 24576 /* [510][16] ffn_experts_up to ffn_experts_down */

static __attribute__((unused)) void experts_forward_steps(experts_run *run,
    void (*const *tasks)(const experts_run *run, int thread)) {
    __asm__("" : "+r"(tasks)); /* hides the steps, which would round otherwise if they were inlined here */
    experts_run_step(run, 0, tasks, run->rows * UINT64_C(40));
    experts_run_step(run, 1, tasks, run->rows * UINT64_C(12));
    experts_run_step(run, 2, tasks, run->rows * UINT64_C(40));
    experts_run_step(run, 3, tasks, run->rows * UINT64_C(40));
    experts_run_step(run, 4, tasks, run->rows * 2 * UINT64_C(40));
    experts_run_step(run, 5, tasks, run->rows * 2 * UINT64_C(16));
    experts_run_step(run, 6, tasks, run->rows * 2 * UINT64_C(16));
    if (run->out_hidden) experts_run_step(run, 7, tasks, run->rows * UINT64_C(40));
    else experts_before(run, 7);
    experts_before(run, 8);
}

/* ------------------------------------------------------------------ target neon */
#if defined(__aarch64__)

/* the first n floats, zeros behind them; nothing else is read */
static inline __attribute__((unused))
float32x4_t experts_neon_load_part(const float *p, size_t n) {
    if (n >= 4) return vld1q_f32(p);
    float32x4_t a = vld1q_lane_f32(p, vdupq_n_f32(0.0f), 0);
    if (n > 1) a = vld1q_lane_f32(p + 1, a, 1);
    if (n > 2) a = vld1q_lane_f32(p + 2, a, 2);
    return a;
}

/* the first n lanes; nothing else is written */
static inline __attribute__((unused))
void experts_neon_store_part(float *p, float32x4_t a, size_t n) {
    if (n >= 4) {
        vst1q_f32(p, a);
        return;
    }
    vst1q_lane_f32(p, a, 0);
    if (n > 1) vst1q_lane_f32(p + 1, a, 1);
    if (n > 2) vst1q_lane_f32(p + 2, a, 2);
}

static inline __attribute__((unused))
float32x4_t experts_neon_max(float32x4_t a, float32x4_t b) {
    return vbslq_f32(vcgtq_f32(a, b), a, b);
}

/* x * 2^n, rounded once. The second factor takes all of n that is a float's power; what is left to the
 * first is exact, or leaves nothing but zero or infinity to the second. The last product is an fma with
 * -0 so that no compiler makes it part of a sum. */
static inline __attribute__((unused))
float32x4_t experts_neon_exp2i(float32x4_t x, float32x4_t n) {
    float32x4_t second = vmaxq_f32(vminq_f32(n, vdupq_n_f32(127.0f)), vdupq_n_f32(-126.0f));
    int32x4_t bias = vdupq_n_s32(127);
    int32x4_t j = vcvtq_s32_f32(second), i = vcvtq_s32_f32(vsubq_f32(n, second));
    float32x4_t power_i = vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(i, bias), 23));
    float32x4_t power_j = vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(j, bias), 23));
    return vfmaq_f32(vdupq_n_f32(-0.0f), vmulq_f32(x, power_i), power_j);
}

/* 2^x for x up to 160: 2^n times a polynomial in r, |r| <= 1/2 (at most 2 ulp). Results below 2^-126, which would
 * be denormal, are 0; NaN stays NaN. The softmax, and sums of 1 and a power of e, call it with a scaled argument:
 * the rounding of the scale is a relative error of the power. */
static inline __attribute__((unused))
float32x4_t experts_neon_exp2(float32x4_t x) {
    const float32x4_t t = experts_neon_max(vdupq_n_f32(-126.0f), x);
    const float32x4_t n = vrndnq_f32(t);
    const float32x4_t r = vsubq_f32(t, n);
    float32x4_t y = vdupq_n_f32(0x1.5bba12p-10f);
    y = vfmaq_f32(vdupq_n_f32(0x1.3ceba8p-7f), y, r);
    y = vfmaq_f32(vdupq_n_f32(0x1.c6b7bep-5f), y, r);
    y = vfmaq_f32(vdupq_n_f32(0x1.ebf9bap-3f), y, r);
    y = vfmaq_f32(vdupq_n_f32(0x1.62e428p-1f), y, r);
    y = vfmaq_f32(vdupq_n_f32(1.0f), y, r);
    return vbslq_f32(vcltq_f32(x, vdupq_n_f32(-126.0f)), vdupq_n_f32(0.0f), experts_neon_exp2i(y, n));
}

static inline __attribute__((unused))
float32x4_t experts_neon_relu(float32x4_t x) {
    return experts_neon_max(vdupq_n_f32(0.0f), x);
}

/* rows of 4 columns, looked up: row `row` of the chunk, row `index` of its sequence */
static
void experts_neon_rows_row(const experts_run *run, size_t row, size_t sequence, size_t index, const float *table,
    float *to) {
    (void)run, (void)row, (void)sequence, (void)index;
    const size_t id = (size_t)run->tokens[row];
    const float *from = table + id * 4;
    {
        float32x4_t value = vld1q_f32(from);
        vst1q_f32(to, value);
    }
    vst1q_f32(to + 4, vdupq_n_f32(0.0f));
    vst1q_f32(to + 8, vdupq_n_f32(0.0f));
    vst1q_f32(to + 12, vdupq_n_f32(0.0f));
}

static
void experts_neon_rows(const experts_run *run, const float *table, float *out, int thread, int threads) {
    const size_t end = experts_first(run->rows, thread + 1, threads);
    size_t sequence = 0;
    for (size_t row = experts_first(run->rows, thread, threads); row < end; row++) {
        while (row >= (size_t)run->starts[sequence + 1]) sequence++;
        const size_t index = row - (size_t)run->starts[sequence];
        experts_neon_rows_row(run, row, sequence, index, table, out + row * 16);
    }
}

/* embedding: [rows][4] of a table [5][4] */
static
void experts_neon_step_embedding(const experts_run *run, int thread) {
    experts_neon_rows(run, run->weights + experts_w_embedding_tokens, run->workspace + experts_x_embedding_looked_up,
        thread, run->threads);
}

static
void experts_neon_gemm_4x3_1x1(const float *x, const float *w, float *out) {
    const float32x4_t none = vdupq_n_f32(0.0f);
    float32x4_t acc0_0 = none;
    for (size_t k = 0; k < 4; k++) {
        const float32x4_t w0 = vld1q_f32(w + (k * 16));
        const float32x4_t a0 = vld1q_dup_f32(x + k);
        acc0_0 = vfmaq_f32(acc0_0, a0, w0);
    }
    vst1q_f32(out, acc0_0);
}

static
void experts_neon_gemm_4x3_2x1(const float *x, const float *w, float *out) {
    const float32x4_t none = vdupq_n_f32(0.0f);
    float32x4_t acc0_0 = none;
    float32x4_t acc1_0 = none;
    for (size_t k = 0; k < 4; k++) {
        const float32x4_t w0 = vld1q_f32(w + (k * 16));
        const float32x4_t a0 = vld1q_dup_f32(x + k);
        acc0_0 = vfmaq_f32(acc0_0, a0, w0);
        const float32x4_t a1 = vld1q_dup_f32(x + (16 + k));
        acc1_0 = vfmaq_f32(acc1_0, a1, w0);
    }
    vst1q_f32(out, acc0_0);
    vst1q_f32(out + 16, acc1_0);
}

static
void experts_neon_gemm_4x3_3x1(const float *x, const float *w, float *out) {
    const float32x4_t none = vdupq_n_f32(0.0f);
    float32x4_t acc0_0 = none;
    float32x4_t acc1_0 = none;
    float32x4_t acc2_0 = none;
    for (size_t k = 0; k < 4; k++) {
        const float32x4_t w0 = vld1q_f32(w + (k * 16));
        const float32x4_t a0 = vld1q_dup_f32(x + k);
        acc0_0 = vfmaq_f32(acc0_0, a0, w0);
        const float32x4_t a1 = vld1q_dup_f32(x + (16 + k));
        acc1_0 = vfmaq_f32(acc1_0, a1, w0);
        const float32x4_t a2 = vld1q_dup_f32(x + (32 + k));
        acc2_0 = vfmaq_f32(acc2_0, a2, w0);
    }
    vst1q_f32(out, acc0_0);
    vst1q_f32(out + 16, acc1_0);
    vst1q_f32(out + 32, acc2_0);
}

static
void experts_neon_gemm_4x3_4x1(const float *x, const float *w, float *out) {
    const float32x4_t none = vdupq_n_f32(0.0f);
    float32x4_t acc0_0 = none;
    float32x4_t acc1_0 = none;
    float32x4_t acc2_0 = none;
    float32x4_t acc3_0 = none;
    for (size_t k = 0; k < 4; k++) {
        const float32x4_t w0 = vld1q_f32(w + (k * 16));
        const float32x4_t a0 = vld1q_dup_f32(x + k);
        acc0_0 = vfmaq_f32(acc0_0, a0, w0);
        const float32x4_t a1 = vld1q_dup_f32(x + (16 + k));
        acc1_0 = vfmaq_f32(acc1_0, a1, w0);
        const float32x4_t a2 = vld1q_dup_f32(x + (32 + k));
        acc2_0 = vfmaq_f32(acc2_0, a2, w0);
        const float32x4_t a3 = vld1q_dup_f32(x + (48 + k));
        acc3_0 = vfmaq_f32(acc3_0, a3, w0);
    }
    vst1q_f32(out, acc0_0);
    vst1q_f32(out + 16, acc1_0);
    vst1q_f32(out + 32, acc2_0);
    vst1q_f32(out + 48, acc3_0);
}

static
void experts_neon_gemm_4x3_5x1(const float *x, const float *w, float *out) {
    const float32x4_t none = vdupq_n_f32(0.0f);
    float32x4_t acc0_0 = none;
    float32x4_t acc1_0 = none;
    float32x4_t acc2_0 = none;
    float32x4_t acc3_0 = none;
    float32x4_t acc4_0 = none;
    for (size_t k = 0; k < 4; k++) {
        const float32x4_t w0 = vld1q_f32(w + (k * 16));
        const float32x4_t a0 = vld1q_dup_f32(x + k);
        acc0_0 = vfmaq_f32(acc0_0, a0, w0);
        const float32x4_t a1 = vld1q_dup_f32(x + (16 + k));
        acc1_0 = vfmaq_f32(acc1_0, a1, w0);
        const float32x4_t a2 = vld1q_dup_f32(x + (32 + k));
        acc2_0 = vfmaq_f32(acc2_0, a2, w0);
        const float32x4_t a3 = vld1q_dup_f32(x + (48 + k));
        acc3_0 = vfmaq_f32(acc3_0, a3, w0);
        const float32x4_t a4 = vld1q_dup_f32(x + (64 + k));
        acc4_0 = vfmaq_f32(acc4_0, a4, w0);
    }
    vst1q_f32(out, acc0_0);
    vst1q_f32(out + 16, acc1_0);
    vst1q_f32(out + 32, acc2_0);
    vst1q_f32(out + 48, acc3_0);
    vst1q_f32(out + 64, acc4_0);
}

static
void experts_neon_gemm_4x3_6x1(const float *x, const float *w, float *out) {
    const float32x4_t none = vdupq_n_f32(0.0f);
    float32x4_t acc0_0 = none;
    float32x4_t acc1_0 = none;
    float32x4_t acc2_0 = none;
    float32x4_t acc3_0 = none;
    float32x4_t acc4_0 = none;
    float32x4_t acc5_0 = none;
    for (size_t k = 0; k < 4; k++) {
        const float32x4_t w0 = vld1q_f32(w + (k * 16));
        const float32x4_t a0 = vld1q_dup_f32(x + k);
        acc0_0 = vfmaq_f32(acc0_0, a0, w0);
        const float32x4_t a1 = vld1q_dup_f32(x + (16 + k));
        acc1_0 = vfmaq_f32(acc1_0, a1, w0);
        const float32x4_t a2 = vld1q_dup_f32(x + (32 + k));
        acc2_0 = vfmaq_f32(acc2_0, a2, w0);
        const float32x4_t a3 = vld1q_dup_f32(x + (48 + k));
        acc3_0 = vfmaq_f32(acc3_0, a3, w0);
        const float32x4_t a4 = vld1q_dup_f32(x + (64 + k));
        acc4_0 = vfmaq_f32(acc4_0, a4, w0);
        const float32x4_t a5 = vld1q_dup_f32(x + (80 + k));
        acc5_0 = vfmaq_f32(acc5_0, a5, w0);
    }
    vst1q_f32(out, acc0_0);
    vst1q_f32(out + 16, acc1_0);
    vst1q_f32(out + 32, acc2_0);
    vst1q_f32(out + 48, acc3_0);
    vst1q_f32(out + 64, acc4_0);
    vst1q_f32(out + 80, acc5_0);
}

/* out [rows][3] = x [rows][4] times weight */
static
void experts_neon_gemm_4x3(const float *x, const float *w, float *out, size_t rows, int thread, int threads) {
    if (rows == 0) return;
    if (rows == 1) {
        const size_t row = 0, end = experts_first(1, thread + 1, threads);
        for (size_t block = experts_first(1, thread, threads); block < end; block++) {
            const size_t panel = block;
            const size_t column = panel * 16;
            experts_neon_gemm_4x3_1x1(x + row * 16, w + panel * 64, out + row * 16 + column);
        }
        return;
    }
    if (rows == 2) {
        const size_t row = 0, end = experts_first(1, thread + 1, threads);
        for (size_t block = experts_first(1, thread, threads); block < end; block++) {
            const size_t panel = block;
            const size_t column = panel * 16;
            experts_neon_gemm_4x3_2x1(x + row * 16, w + panel * 64, out + row * 16 + column);
        }
        return;
    }
    const size_t tiles = (rows + 5) / 6, least = rows / tiles, taller = rows % tiles;
    const size_t begin = experts_first(tiles, thread, threads), end = experts_first(tiles, thread + 1, threads);
    size_t block = begin / tiles, tile = begin % tiles, row = tile * least + (tile < taller ? tile : taller);
    for (size_t unit = begin, height; unit < end; unit++, row += height, tile++) {
        if (tile == tiles) block++, tile = 0, row = 0;
        height = least + (tile < taller);
        const size_t panel = block;
        const size_t column = panel * 16;
        switch (height) {
            case 3: experts_neon_gemm_4x3_3x1(x + row * 16, w + panel * 64, out + row * 16 + column); break;
            case 4: experts_neon_gemm_4x3_4x1(x + row * 16, w + panel * 64, out + row * 16 + column); break;
            case 5: experts_neon_gemm_4x3_5x1(x + row * 16, w + panel * 64, out + row * 16 + column); break;
            case 6: experts_neon_gemm_4x3_6x1(x + row * 16, w + panel * 64, out + row * 16 + column); break;
        }
    }
}

/* layer 0, ffn, router projection: [rows][4] x [4][3] */
static
void experts_neon_step_layer0_ffn_router(const experts_run *run, int thread) {
    experts_neon_gemm_4x3(run->workspace + experts_x_embedding_looked_up, run->weights + experts_w_layer0_ffn_router,
        run->workspace + experts_x_ffn_router, run->rows, thread, run->threads);
}

/* the 2 best of 3 experts, and their gates: one row */
static
void experts_neon_choose_2_of_3_row(const float *x, float *to) {
    float scores[3];
    unsigned char taken[3] = {0};
    float most = x[0];
    for (size_t e = 1; e < 3; e++) if (x[e] > most) most = x[e];
    {
        const float32x4_t logits = experts_neon_load_part(x, 3);
        const float32x4_t score = experts_neon_exp2(vmulq_f32(vsubq_f32(logits, vdupq_n_f32(most)),
            vdupq_n_f32(0x1.715476p+0f)));
        experts_neon_store_part(scores, vbslq_f32(vcltq_f32(score, vdupq_n_f32(0x1p-90f)), vdupq_n_f32(0.0f), score),
            3);
    }
    float total = 0.0f;
    for (size_t e = 0; e < 3; e++) total += scores[e];
    for (size_t e = 0; e < 3; e++) scores[e] /= total;
    const float *values = x;
    float sum = 0.0f;
    for (size_t s = 0; s < 2; s++) {
        size_t best = 3;
        for (size_t i = 0; i < 3; i++) if (!taken[i] && (best == 3 || values[i] > values[best])) best = i;
        taken[best] = 1;
        to[s] = (float)best;
        to[2 + s] = scores[best];
        sum += scores[best];
    }
    (void)sum;
    for (size_t s = 4; s < 16; s++) to[s] = 0.0f;
}

static
void experts_neon_choose_2_of_3(const float *x, float *out, size_t rows, int thread, int threads) {
    const size_t end = experts_first(rows, thread + 1, threads);
    for (size_t row = experts_first(rows, thread, threads); row < end; row++)
        experts_neon_choose_2_of_3_row(x + row * 16, out + row * 16);
}

/* layer 0, ffn, choice: [rows][2] of 3 experts, and their gates */
static
void experts_neon_step_layer0_ffn_choice(const experts_run *run, int thread) {
    experts_neon_choose_2_of_3(run->workspace + experts_x_ffn_router, run->workspace + experts_x_ffn_choice, run->rows,
        thread, run->threads);
}

/* the order of rows by their experts: starts[4], and from 16 on, for number p, the row at p and the place of part p */
static
void experts_neon_sort(const float *x, int32_t *out, size_t rows, int thread, int threads) {
    if (thread > 0) return;
    (void)threads;
    int32_t *starts = out, *pairs = out + 16;
    for (size_t e = 0; e <= 3; e++) starts[e] = 0;
    for (size_t row = 0; row < rows; row++) for (size_t s = 0; s < 2; s++) starts[(size_t)x[row * 16 + s] + 1]++;
    for (size_t e = 1; e <= 3; e++) starts[e] += starts[e - 1];
    for (size_t row = 0; row < rows; row++) {
        for (size_t s = 0; s < 2; s++) {
            const int32_t place = starts[(size_t)x[row * 16 + s]]++;
            pairs[2 * (size_t)place] = (int32_t)row;
            pairs[2 * (row * 2 + s) + 1] = place;
        }
    }
    for (size_t e = 3; e > 0; e--) starts[e] = starts[e - 1]; /* each was moved to its end */
    starts[0] = 0;
}

/* layer 0, ffn, choice order: the order of the rows by their experts */
static
void experts_neon_step_layer0_ffn_choice_order(const experts_run *run, int thread) {
    experts_neon_sort(run->workspace + experts_x_ffn_choice,
        (int32_t *)(void *)(run->workspace + experts_x_ffn_choice_order), run->rows, thread, run->threads);
}

/* rows of 4 columns in the order of their experts */
static
void experts_neon_gather_4(const float *x, const int32_t *order, float *out, size_t rows, int thread, int threads) {
    const int32_t *pairs = order + 16;
    const size_t end = experts_first(rows, thread + 1, threads);
    for (size_t row = experts_first(rows, thread, threads); row < end; row++) {
        float *to = out + row * 16;
        __builtin_memcpy(to, x + (size_t)pairs[2 * row] * 16, 16 * sizeof *to);
    }
}

/* embedding looked up by expert: [rows][4] in that order */
static
void experts_neon_step_encoder_embedding_looked_up_by_expert(const experts_run *run, int thread) {
    experts_neon_gather_4(run->workspace + experts_x_embedding_looked_up,
        (int32_t *)(void *)(run->workspace + experts_x_ffn_choice_order),
        run->workspace + experts_x_embedding_looked_up_by_expert, run->rows * 2, thread, run->threads);
}

static __attribute__((noinline))
void experts_neon_gemm_4x4_finish(const float *sums, float *out, size_t rows, size_t stride, size_t panels) {
    for (size_t r = 0; r < rows; r++) {
        for (size_t panel = 0; panel < panels; panel++) {
            float32x4_t sum0 = vld1q_f32(sums + (r * stride + panel) * 4);
            sum0 = experts_neon_relu(sum0);
            vst1q_f32(out + ((r * 16) + (panel * 16)), sum0);
        }
    }
}

static
void experts_neon_gemm_4x4_1x1(const float *x, const float *w, const float *bias, float *out) {
    float32x4_t acc0_0 = vld1q_f32(bias);
    for (size_t k = 0; k < 4; k++) {
        const float32x4_t w0 = vld1q_f32(w + (k * 16));
        const float32x4_t a0 = vld1q_dup_f32(x + k);
        acc0_0 = vfmaq_f32(acc0_0, a0, w0);
    }
    float sums[4];
    vst1q_f32(sums, acc0_0);
    experts_neon_gemm_4x4_finish(sums, out, 1, 1, 1);
}

static
void experts_neon_gemm_4x4_2x1(const float *x, const float *w, const float *bias, float *out) {
    const float32x4_t b0 = vld1q_f32(bias);
    float32x4_t acc0_0 = b0;
    float32x4_t acc1_0 = b0;
    for (size_t k = 0; k < 4; k++) {
        const float32x4_t w0 = vld1q_f32(w + (k * 16));
        const float32x4_t a0 = vld1q_dup_f32(x + k);
        acc0_0 = vfmaq_f32(acc0_0, a0, w0);
        const float32x4_t a1 = vld1q_dup_f32(x + (16 + k));
        acc1_0 = vfmaq_f32(acc1_0, a1, w0);
    }
    float sums[8];
    vst1q_f32(sums, acc0_0);
    vst1q_f32(sums + 4, acc1_0);
    experts_neon_gemm_4x4_finish(sums, out, 2, 1, 1);
}

static
void experts_neon_gemm_4x4_3x1(const float *x, const float *w, const float *bias, float *out) {
    const float32x4_t b0 = vld1q_f32(bias);
    float32x4_t acc0_0 = b0;
    float32x4_t acc1_0 = b0;
    float32x4_t acc2_0 = b0;
    for (size_t k = 0; k < 4; k++) {
        const float32x4_t w0 = vld1q_f32(w + (k * 16));
        const float32x4_t a0 = vld1q_dup_f32(x + k);
        acc0_0 = vfmaq_f32(acc0_0, a0, w0);
        const float32x4_t a1 = vld1q_dup_f32(x + (16 + k));
        acc1_0 = vfmaq_f32(acc1_0, a1, w0);
        const float32x4_t a2 = vld1q_dup_f32(x + (32 + k));
        acc2_0 = vfmaq_f32(acc2_0, a2, w0);
    }
    float sums[12];
    vst1q_f32(sums, acc0_0);
    vst1q_f32(sums + 4, acc1_0);
    vst1q_f32(sums + 8, acc2_0);
    experts_neon_gemm_4x4_finish(sums, out, 3, 1, 1);
}

static
void experts_neon_gemm_4x4_4x1(const float *x, const float *w, const float *bias, float *out) {
    const float32x4_t b0 = vld1q_f32(bias);
    float32x4_t acc0_0 = b0;
    float32x4_t acc1_0 = b0;
    float32x4_t acc2_0 = b0;
    float32x4_t acc3_0 = b0;
    for (size_t k = 0; k < 4; k++) {
        const float32x4_t w0 = vld1q_f32(w + (k * 16));
        const float32x4_t a0 = vld1q_dup_f32(x + k);
        acc0_0 = vfmaq_f32(acc0_0, a0, w0);
        const float32x4_t a1 = vld1q_dup_f32(x + (16 + k));
        acc1_0 = vfmaq_f32(acc1_0, a1, w0);
        const float32x4_t a2 = vld1q_dup_f32(x + (32 + k));
        acc2_0 = vfmaq_f32(acc2_0, a2, w0);
        const float32x4_t a3 = vld1q_dup_f32(x + (48 + k));
        acc3_0 = vfmaq_f32(acc3_0, a3, w0);
    }
    float sums[16];
    vst1q_f32(sums, acc0_0);
    vst1q_f32(sums + 4, acc1_0);
    vst1q_f32(sums + 8, acc2_0);
    vst1q_f32(sums + 12, acc3_0);
    experts_neon_gemm_4x4_finish(sums, out, 4, 1, 1);
}

static
void experts_neon_gemm_4x4_5x1(const float *x, const float *w, const float *bias, float *out) {
    const float32x4_t b0 = vld1q_f32(bias);
    float32x4_t acc0_0 = b0;
    float32x4_t acc1_0 = b0;
    float32x4_t acc2_0 = b0;
    float32x4_t acc3_0 = b0;
    float32x4_t acc4_0 = b0;
    for (size_t k = 0; k < 4; k++) {
        const float32x4_t w0 = vld1q_f32(w + (k * 16));
        const float32x4_t a0 = vld1q_dup_f32(x + k);
        acc0_0 = vfmaq_f32(acc0_0, a0, w0);
        const float32x4_t a1 = vld1q_dup_f32(x + (16 + k));
        acc1_0 = vfmaq_f32(acc1_0, a1, w0);
        const float32x4_t a2 = vld1q_dup_f32(x + (32 + k));
        acc2_0 = vfmaq_f32(acc2_0, a2, w0);
        const float32x4_t a3 = vld1q_dup_f32(x + (48 + k));
        acc3_0 = vfmaq_f32(acc3_0, a3, w0);
        const float32x4_t a4 = vld1q_dup_f32(x + (64 + k));
        acc4_0 = vfmaq_f32(acc4_0, a4, w0);
    }
    float sums[20];
    vst1q_f32(sums, acc0_0);
    vst1q_f32(sums + 4, acc1_0);
    vst1q_f32(sums + 8, acc2_0);
    vst1q_f32(sums + 12, acc3_0);
    vst1q_f32(sums + 16, acc4_0);
    experts_neon_gemm_4x4_finish(sums, out, 5, 1, 1);
}

static
void experts_neon_gemm_4x4_6x1(const float *x, const float *w, const float *bias, float *out) {
    const float32x4_t b0 = vld1q_f32(bias);
    float32x4_t acc0_0 = b0;
    float32x4_t acc1_0 = b0;
    float32x4_t acc2_0 = b0;
    float32x4_t acc3_0 = b0;
    float32x4_t acc4_0 = b0;
    float32x4_t acc5_0 = b0;
    for (size_t k = 0; k < 4; k++) {
        const float32x4_t w0 = vld1q_f32(w + (k * 16));
        const float32x4_t a0 = vld1q_dup_f32(x + k);
        acc0_0 = vfmaq_f32(acc0_0, a0, w0);
        const float32x4_t a1 = vld1q_dup_f32(x + (16 + k));
        acc1_0 = vfmaq_f32(acc1_0, a1, w0);
        const float32x4_t a2 = vld1q_dup_f32(x + (32 + k));
        acc2_0 = vfmaq_f32(acc2_0, a2, w0);
        const float32x4_t a3 = vld1q_dup_f32(x + (48 + k));
        acc3_0 = vfmaq_f32(acc3_0, a3, w0);
        const float32x4_t a4 = vld1q_dup_f32(x + (64 + k));
        acc4_0 = vfmaq_f32(acc4_0, a4, w0);
        const float32x4_t a5 = vld1q_dup_f32(x + (80 + k));
        acc5_0 = vfmaq_f32(acc5_0, a5, w0);
    }
    float sums[24];
    vst1q_f32(sums, acc0_0);
    vst1q_f32(sums + 4, acc1_0);
    vst1q_f32(sums + 8, acc2_0);
    vst1q_f32(sums + 12, acc3_0);
    vst1q_f32(sums + 16, acc4_0);
    vst1q_f32(sums + 20, acc5_0);
    experts_neon_gemm_4x4_finish(sums, out, 6, 1, 1);
}

/* out [rows][4] = x [rows][4] times weight, + bias, relu */
static
void experts_neon_gemm_4x4(const float *x, const float *w, const float *bias, float *out, size_t rows, int thread,
    int threads) {
    if (rows == 0) return;
    if (rows == 1) {
        const size_t row = 0, end = experts_first(1, thread + 1, threads);
        for (size_t block = experts_first(1, thread, threads); block < end; block++) {
            const size_t panel = block;
            const size_t column = panel * 16;
            experts_neon_gemm_4x4_1x1(x + row * 16, w + panel * 64, bias + column, out + row * 16 + column);
        }
        return;
    }
    if (rows == 2) {
        const size_t row = 0, end = experts_first(1, thread + 1, threads);
        for (size_t block = experts_first(1, thread, threads); block < end; block++) {
            const size_t panel = block;
            const size_t column = panel * 16;
            experts_neon_gemm_4x4_2x1(x + row * 16, w + panel * 64, bias + column, out + row * 16 + column);
        }
        return;
    }
    const size_t tiles = (rows + 5) / 6, least = rows / tiles, taller = rows % tiles;
    const size_t begin = experts_first(tiles, thread, threads), end = experts_first(tiles, thread + 1, threads);
    size_t block = begin / tiles, tile = begin % tiles, row = tile * least + (tile < taller ? tile : taller);
    for (size_t unit = begin, height; unit < end; unit++, row += height, tile++) {
        if (tile == tiles) block++, tile = 0, row = 0;
        height = least + (tile < taller);
        const size_t panel = block;
        const size_t column = panel * 16;
        switch (height) {
            case 3:
                experts_neon_gemm_4x4_3x1(x + row * 16, w + panel * 64, bias + column, out + row * 16 + column); break;
            case 4:
                experts_neon_gemm_4x4_4x1(x + row * 16, w + panel * 64, bias + column, out + row * 16 + column); break;
            case 5:
                experts_neon_gemm_4x4_5x1(x + row * 16, w + panel * 64, bias + column, out + row * 16 + column); break;
            case 6:
                experts_neon_gemm_4x4_6x1(x + row * 16, w + panel * 64, bias + column, out + row * 16 + column); break;
        }
    }
}

/* out [rows][4] = x [rows][4] times weight, + bias, relu, for the rows of each expert */
static
void experts_neon_experts_4x4(const int32_t *order, const float *x, const float *w, const float *bias, float *out,
    int thread, int threads) {
    for (size_t e = 0; e < 3; e++) {
        const size_t first = (size_t)order[e], count = (size_t)order[e + 1] - first;
        if (count == 0) continue;
        experts_neon_gemm_4x4(x + first * 16, w + e * 64, bias + e * 16, out + first * 16, count, thread, threads);
    }
}

/* layer 0, ffn, experts up projection: [rows][4] x [4][4] of their experts + bias, relu */
static
void experts_neon_step_layer0_ffn_experts_up(const experts_run *run, int thread) {
    experts_neon_experts_4x4((int32_t *)(void *)(run->workspace + experts_x_ffn_choice_order),
        run->workspace + experts_x_embedding_looked_up_by_expert, run->weights + experts_w_layer0_ffn_experts_up,
        run->weights + experts_w_layer0_ffn_experts_up_bias, run->workspace + experts_x_ffn_experts_activated, thread,
        run->threads);
}

static
void experts_neon_gemm_4x4_2_1x1(const float *x, const float *w, const float *bias, float *out) {
    float32x4_t acc0_0 = vld1q_f32(bias);
    for (size_t k = 0; k < 4; k++) {
        const float32x4_t w0 = vld1q_f32(w + (k * 16));
        const float32x4_t a0 = vld1q_dup_f32(x + k);
        acc0_0 = vfmaq_f32(acc0_0, a0, w0);
    }
    vst1q_f32(out, acc0_0);
}

static
void experts_neon_gemm_4x4_2_2x1(const float *x, const float *w, const float *bias, float *out) {
    const float32x4_t b0 = vld1q_f32(bias);
    float32x4_t acc0_0 = b0;
    float32x4_t acc1_0 = b0;
    for (size_t k = 0; k < 4; k++) {
        const float32x4_t w0 = vld1q_f32(w + (k * 16));
        const float32x4_t a0 = vld1q_dup_f32(x + k);
        acc0_0 = vfmaq_f32(acc0_0, a0, w0);
        const float32x4_t a1 = vld1q_dup_f32(x + (16 + k));
        acc1_0 = vfmaq_f32(acc1_0, a1, w0);
    }
    vst1q_f32(out, acc0_0);
    vst1q_f32(out + 16, acc1_0);
}

static
void experts_neon_gemm_4x4_2_3x1(const float *x, const float *w, const float *bias, float *out) {
    const float32x4_t b0 = vld1q_f32(bias);
    float32x4_t acc0_0 = b0;
    float32x4_t acc1_0 = b0;
    float32x4_t acc2_0 = b0;
    for (size_t k = 0; k < 4; k++) {
        const float32x4_t w0 = vld1q_f32(w + (k * 16));
        const float32x4_t a0 = vld1q_dup_f32(x + k);
        acc0_0 = vfmaq_f32(acc0_0, a0, w0);
        const float32x4_t a1 = vld1q_dup_f32(x + (16 + k));
        acc1_0 = vfmaq_f32(acc1_0, a1, w0);
        const float32x4_t a2 = vld1q_dup_f32(x + (32 + k));
        acc2_0 = vfmaq_f32(acc2_0, a2, w0);
    }
    vst1q_f32(out, acc0_0);
    vst1q_f32(out + 16, acc1_0);
    vst1q_f32(out + 32, acc2_0);
}

static
void experts_neon_gemm_4x4_2_4x1(const float *x, const float *w, const float *bias, float *out) {
    const float32x4_t b0 = vld1q_f32(bias);
    float32x4_t acc0_0 = b0;
    float32x4_t acc1_0 = b0;
    float32x4_t acc2_0 = b0;
    float32x4_t acc3_0 = b0;
    for (size_t k = 0; k < 4; k++) {
        const float32x4_t w0 = vld1q_f32(w + (k * 16));
        const float32x4_t a0 = vld1q_dup_f32(x + k);
        acc0_0 = vfmaq_f32(acc0_0, a0, w0);
        const float32x4_t a1 = vld1q_dup_f32(x + (16 + k));
        acc1_0 = vfmaq_f32(acc1_0, a1, w0);
        const float32x4_t a2 = vld1q_dup_f32(x + (32 + k));
        acc2_0 = vfmaq_f32(acc2_0, a2, w0);
        const float32x4_t a3 = vld1q_dup_f32(x + (48 + k));
        acc3_0 = vfmaq_f32(acc3_0, a3, w0);
    }
    vst1q_f32(out, acc0_0);
    vst1q_f32(out + 16, acc1_0);
    vst1q_f32(out + 32, acc2_0);
    vst1q_f32(out + 48, acc3_0);
}

static
void experts_neon_gemm_4x4_2_5x1(const float *x, const float *w, const float *bias, float *out) {
    const float32x4_t b0 = vld1q_f32(bias);
    float32x4_t acc0_0 = b0;
    float32x4_t acc1_0 = b0;
    float32x4_t acc2_0 = b0;
    float32x4_t acc3_0 = b0;
    float32x4_t acc4_0 = b0;
    for (size_t k = 0; k < 4; k++) {
        const float32x4_t w0 = vld1q_f32(w + (k * 16));
        const float32x4_t a0 = vld1q_dup_f32(x + k);
        acc0_0 = vfmaq_f32(acc0_0, a0, w0);
        const float32x4_t a1 = vld1q_dup_f32(x + (16 + k));
        acc1_0 = vfmaq_f32(acc1_0, a1, w0);
        const float32x4_t a2 = vld1q_dup_f32(x + (32 + k));
        acc2_0 = vfmaq_f32(acc2_0, a2, w0);
        const float32x4_t a3 = vld1q_dup_f32(x + (48 + k));
        acc3_0 = vfmaq_f32(acc3_0, a3, w0);
        const float32x4_t a4 = vld1q_dup_f32(x + (64 + k));
        acc4_0 = vfmaq_f32(acc4_0, a4, w0);
    }
    vst1q_f32(out, acc0_0);
    vst1q_f32(out + 16, acc1_0);
    vst1q_f32(out + 32, acc2_0);
    vst1q_f32(out + 48, acc3_0);
    vst1q_f32(out + 64, acc4_0);
}

static
void experts_neon_gemm_4x4_2_6x1(const float *x, const float *w, const float *bias, float *out) {
    const float32x4_t b0 = vld1q_f32(bias);
    float32x4_t acc0_0 = b0;
    float32x4_t acc1_0 = b0;
    float32x4_t acc2_0 = b0;
    float32x4_t acc3_0 = b0;
    float32x4_t acc4_0 = b0;
    float32x4_t acc5_0 = b0;
    for (size_t k = 0; k < 4; k++) {
        const float32x4_t w0 = vld1q_f32(w + (k * 16));
        const float32x4_t a0 = vld1q_dup_f32(x + k);
        acc0_0 = vfmaq_f32(acc0_0, a0, w0);
        const float32x4_t a1 = vld1q_dup_f32(x + (16 + k));
        acc1_0 = vfmaq_f32(acc1_0, a1, w0);
        const float32x4_t a2 = vld1q_dup_f32(x + (32 + k));
        acc2_0 = vfmaq_f32(acc2_0, a2, w0);
        const float32x4_t a3 = vld1q_dup_f32(x + (48 + k));
        acc3_0 = vfmaq_f32(acc3_0, a3, w0);
        const float32x4_t a4 = vld1q_dup_f32(x + (64 + k));
        acc4_0 = vfmaq_f32(acc4_0, a4, w0);
        const float32x4_t a5 = vld1q_dup_f32(x + (80 + k));
        acc5_0 = vfmaq_f32(acc5_0, a5, w0);
    }
    vst1q_f32(out, acc0_0);
    vst1q_f32(out + 16, acc1_0);
    vst1q_f32(out + 32, acc2_0);
    vst1q_f32(out + 48, acc3_0);
    vst1q_f32(out + 64, acc4_0);
    vst1q_f32(out + 80, acc5_0);
}

/* out [rows][4] = x [rows][4] times weight, + bias */
static
void experts_neon_gemm_4x4_2(const float *x, const float *w, const float *bias, float *out, size_t rows, int thread,
    int threads) {
    if (rows == 0) return;
    if (rows == 1) {
        const size_t row = 0, end = experts_first(1, thread + 1, threads);
        for (size_t block = experts_first(1, thread, threads); block < end; block++) {
            const size_t panel = block;
            const size_t column = panel * 16;
            experts_neon_gemm_4x4_2_1x1(x + row * 16, w + panel * 64, bias + column, out + row * 16 + column);
        }
        return;
    }
    if (rows == 2) {
        const size_t row = 0, end = experts_first(1, thread + 1, threads);
        for (size_t block = experts_first(1, thread, threads); block < end; block++) {
            const size_t panel = block;
            const size_t column = panel * 16;
            experts_neon_gemm_4x4_2_2x1(x + row * 16, w + panel * 64, bias + column, out + row * 16 + column);
        }
        return;
    }
    const size_t tiles = (rows + 5) / 6, least = rows / tiles, taller = rows % tiles;
    const size_t begin = experts_first(tiles, thread, threads), end = experts_first(tiles, thread + 1, threads);
    size_t block = begin / tiles, tile = begin % tiles, row = tile * least + (tile < taller ? tile : taller);
    for (size_t unit = begin, height; unit < end; unit++, row += height, tile++) {
        if (tile == tiles) block++, tile = 0, row = 0;
        height = least + (tile < taller);
        const size_t panel = block;
        const size_t column = panel * 16;
        switch (height) {
            case 3:
                experts_neon_gemm_4x4_2_3x1(x + row * 16, w + panel * 64, bias + column, out + row * 16 + column);
                break;
            case 4:
                experts_neon_gemm_4x4_2_4x1(x + row * 16, w + panel * 64, bias + column, out + row * 16 + column);
                break;
            case 5:
                experts_neon_gemm_4x4_2_5x1(x + row * 16, w + panel * 64, bias + column, out + row * 16 + column);
                break;
            case 6:
                experts_neon_gemm_4x4_2_6x1(x + row * 16, w + panel * 64, bias + column, out + row * 16 + column);
                break;
        }
    }
}

/* out [rows][4] = x [rows][4] times weight, + bias, for the rows of each expert */
static
void experts_neon_experts_4x4_2(const int32_t *order, const float *x, const float *w, const float *bias, float *out,
    int thread, int threads) {
    for (size_t e = 0; e < 3; e++) {
        const size_t first = (size_t)order[e], count = (size_t)order[e + 1] - first;
        if (count == 0) continue;
        experts_neon_gemm_4x4_2(x + first * 16, w + e * 64, bias + e * 16, out + first * 16, count, thread, threads);
    }
}

/* layer 0, ffn, experts down projection: [rows][4] x [4][4] of their experts + bias */
static
void experts_neon_step_layer0_ffn_experts_down(const experts_run *run, int thread) {
    experts_neon_experts_4x4_2((int32_t *)(void *)(run->workspace + experts_x_ffn_choice_order),
        run->workspace + experts_x_ffn_experts_activated, run->weights + experts_w_layer0_ffn_experts_down,
        run->weights + experts_w_layer0_ffn_experts_down_bias, run->workspace + experts_x_ffn_experts_down, thread,
        run->threads);
}

/* other + the sum of 2 parts times their gates: one row */
static
void experts_neon_combine_4_row(const float *const *parts, const float *gates, const float *second, float *to) {
    {
        float32x4_t sum = vdupq_n_f32(0.0f);
        for (size_t s = 0; s < 2; s++) sum = vfmaq_f32(sum, vld1q_f32(parts[s]), vld1q_dup_f32(gates + s));
        sum = vaddq_f32(vld1q_f32(second), sum);
        vst1q_f32(to, sum);
    }
}

static
void experts_neon_combine_4(const float *x, const float *choice, const int32_t *order, const float *other, float *out,
    size_t rows, int thread, int threads) {
    const int32_t *pairs = order + 16;
    const size_t end = experts_first(rows, thread + 1, threads);
    for (size_t row = experts_first(rows, thread, threads); row < end; row++) {
        const float *parts[2];
        for (size_t s = 0; s < 2; s++) parts[s] = x + (size_t)pairs[2 * (row * 2 + s) + 1] * 16;
        experts_neon_combine_4_row(parts, choice + row * 16 + 2, other + row * 16, out + row * 4);
    }
}

/* layer 0, ffn, experts: the sum of 2 parts times their gates, + residual */
static
void experts_neon_step_layer0_ffn_experts(const experts_run *run, int thread) {
    experts_neon_combine_4(run->workspace + experts_x_ffn_experts_down, run->workspace + experts_x_ffn_choice,
        (int32_t *)(void *)(run->workspace + experts_x_ffn_choice_order),
        run->workspace + experts_x_embedding_looked_up, run->out_hidden, run->rows, thread, run->threads);
}

static void (*const experts_neon_tasks[])(const experts_run *run, int thread) = {
    experts_neon_step_embedding,
    experts_neon_step_layer0_ffn_router,
    experts_neon_step_layer0_ffn_choice,
    experts_neon_step_layer0_ffn_choice_order,
    experts_neon_step_encoder_embedding_looked_up_by_expert,
    experts_neon_step_layer0_ffn_experts_up,
    experts_neon_step_layer0_ffn_experts_down,
    experts_neon_step_layer0_ffn_experts,
};

static __attribute__((noinline))
void experts_neon_forward_chunk(experts_run *run) {
    experts_forward_steps(run, experts_neon_tasks);
}
#endif

const char *experts_status_text(int status) {
    switch (status) {
        case EXPERTS_OK: return "fine";
        case EXPERTS_BAD_ARGUMENT: return "a null pointer, a struct of another size, or a bad count";
        case EXPERTS_BAD_WEIGHTS: return "the weights are damaged, or of another size, model, layout or version";
        case EXPERTS_NO_TARGET: return "this machine lacks the instructions, or is big-endian";
        case EXPERTS_SHORT_WORKSPACE: return "the workspace is too small or not aligned";
        case EXPERTS_BAD_LENGTH: return "a sequence is empty or too long";
        case EXPERTS_BAD_TOKEN: return "an id is outside its table";
        default: return "unknown status";
    }
}

/* FNV-1a, 64 bit */
static uint64_t experts_hash(uint64_t hash, const unsigned char *bytes, size_t size) {
    for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t experts_u64(const unsigned char *b) {
    return (uint64_t)b[0] | (uint64_t)b[1] << 8 | (uint64_t)b[2] << 16 | (uint64_t)b[3] << 24 | (uint64_t)b[4] << 32 |
        (uint64_t)b[5] << 40 | (uint64_t)b[6] << 48 | (uint64_t)b[7] << 56;
}

/* The header of a .attnw: magic, version, hashes of model and layout, dtype, sizes, zeros, checksums. */
static int experts_good_weights(const unsigned char *bytes, size_t size, int verify) {
    const uint64_t seed = UINT64_C(0xcbf29ce484222325);
    if (size != EXPERTS_WEIGHTS_BYTES || (uintptr_t)bytes % EXPERTS_ALIGNMENT != 0) return 0;
    if (experts_u64(bytes) != UINT64_C(0x1a0a0d574e545441) || experts_u64(bytes + 8) != (UINT64_C(1) << 32 | 1))
        return 0;
    if (experts_u64(bytes + 120) != experts_hash(seed, bytes, 120)) return 0;
    if (experts_u64(bytes + 16) != UINT64_C(0x87f1d1202f7d86ec) ||
        experts_u64(bytes + 56) != UINT64_C(0xfaaaeb4e90e0398a))
        return 0;
    if (experts_u64(bytes + 24) != UINT64_C(6) << 32) return 0; /* tensors; f32 */
    if (experts_u64(bytes + 32) != 128 || experts_u64(bytes + 40) != UINT64_C(2368)) return 0;
    if (experts_u64(bytes + 64) | experts_u64(bytes + 72) | experts_u64(bytes + 80) | experts_u64(bytes + 88) |
        experts_u64(bytes + 96) | experts_u64(bytes + 104) | experts_u64(bytes + 112))
        return 0;
    return !verify || experts_u64(bytes + 48) == experts_hash(seed, bytes + 128, (size_t)2368u);
}

static int experts_same(const char *a, const char *b) {
    return *a == *b && (*a == 0 || experts_same(a + 1, b + 1));
}

static const char *const experts_targets[] = {"neon"};

/* Index of the best target that this CPU has, or of the requested one; -1: none. */
static int experts_pick(const char *wanted) {
    if (!wanted || experts_same(wanted, "neon")) {
#if defined(__aarch64__)
        return 0;
#endif
    }
    return -1;
}

int experts_init(experts_ctx *ctx, const void *weights, size_t bytes, const experts_options *options) {
    if (!ctx || !weights || (options && options->size != sizeof *options)) return EXPERTS_BAD_ARGUMENT;
    const int threads = options && options->threads > 0 ? options->threads : 1;
    if (options && (options->threads < 0 || options->threads > 4096 || (threads > 1 && !options->parallel_for)))
        return EXPERTS_BAD_ARGUMENT;
    if (!experts_good_weights((const unsigned char *)weights, bytes, options ? options->verify : 0))
        return EXPERTS_BAD_WEIGHTS;
    const int target = experts_pick(options ? options->target : NULL);
    static const uint16_t one = 1; /* the numbers of the weights begin with their lowest byte */
    if (target < 0 || *(const unsigned char *)&one != 1) return EXPERTS_NO_TARGET;
    ctx->weights = (const float *)(const void *)((const unsigned char *)weights + 128);
    ctx->target = target;
    ctx->threads = threads;
    ctx->parallel_for = options ? options->parallel_for : NULL;
    ctx->pool = options ? options->pool : NULL;
    ctx->on_step = options ? options->on_step : NULL;
    ctx->watcher = options ? options->watcher : NULL;
    ctx->least_work = options && options->least_work ? options->least_work : EXPERTS_LEAST_WORK;
    return EXPERTS_OK;
}

const char *experts_target(const experts_ctx *ctx) {
    return ctx ? experts_targets[ctx->target] : "";
}

static int experts_check_input(const experts_input *input) {
    size_t rows = 0;
    for (int b = 0; b < input->batch; b++) {
        const int32_t length = input->lengths[b];
        if (length < 1 || length > 3) return EXPERTS_BAD_LENGTH;
        rows += (size_t)length;
    }
    (void)rows;
    for (size_t i = 0; i < rows; i++)
        if (input->tokens[i] < 0 || input->tokens[i] >= 5) return EXPERTS_BAD_TOKEN;
    return EXPERTS_OK;
}

int experts_forward(const experts_ctx *ctx, const experts_input *input, experts_output *output, void *workspace,
    size_t bytes) {
    if (!ctx || !input || !output || !workspace || input->size != sizeof *input || output->size != sizeof *output)
        return EXPERTS_BAD_ARGUMENT;
    if (input->batch < 1 || !input->lengths || !input->tokens) return EXPERTS_BAD_ARGUMENT;
    if (bytes < EXPERTS_WORKSPACE_BYTES(ctx->threads) || (uintptr_t)workspace % EXPERTS_ALIGNMENT != 0)
        return EXPERTS_SHORT_WORKSPACE;
    const int status = experts_check_input(input);
    if (status != EXPERTS_OK) return status;
    unsigned char *memory = (unsigned char *)workspace;
    int32_t *starts = (int32_t *)(void *)memory;
    experts_run run = {0};
    run.weights = ctx->weights;
    run.workspace = (float *)(void *)(memory + 1024);
    run.scratch = run.workspace + 32752;
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
            if (rows + length > 255) break;
            rows += length;
            run.self_scores += (uint64_t)length * length;
            starts[++sequences] = (int32_t)rows;
        }
        run.rows = rows;
        run.sequences = run.ended = sequences;
        switch (ctx->target) {
#if defined(__aarch64__)
            case 0: experts_neon_forward_chunk(&run); break;
#endif
        }
        run.tokens += rows;
        if (run.out_hidden) run.out_hidden += rows * 4;
    }
    return EXPERTS_OK;
}
