/* unrolled.c: encoder of 1 layer over exactly 2 rows, d_model 4; model hash 3b976d590ab69c37
 *
 * Made by attnc 0.1.0: attnc compile unrolled.attn --target sse2 --unroll full
 * Memory: a workspace of 448 bytes plus 0 per thread; 960 bytes of weights.
 * The output of attnc belongs to its user, without conditions. */
#include "unrolled.h"

#if UNROLLED_HEADER != 0xa1379c44u
#error "unrolled.h is of another run of attnc than this file"
#endif
#ifdef __FAST_MATH__
#error "this file counts on IEEE arithmetic: compile it without -ffast-math"
#endif
#if defined(__FLT_EVAL_METHOD__) && (__FLT_EVAL_METHOD__ < 0 || __FLT_EVAL_METHOD__ == 1 || __FLT_EVAL_METHOD__ == 2)
#error "this file counts on floats that are rounded at once: compile it with -msse2 -mfpmath=sse, or with -std=gnu11"
#endif

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

typedef struct unrolled_run {
    const float *weights;
    float *workspace, *scratch;
    size_t rows, sequences;   /* of this chunk */
    size_t ended;             /* sequences whose last row is in this chunk */
    const int32_t *starts;    /* [sequences + 1] first row of each sequence */
    const int32_t *tokens;
    float *out_hidden;
    int threads;
    void (*parallel_for)(void *pool, int count, void (*task)(void *with, int index), void *with);
    void *pool;
    void (*on_step)(void *watcher, int step);
    void *watcher;
} unrolled_run;

static inline __attribute__((unused)) void unrolled_before(const unrolled_run *run, int step) {
    if (__builtin_expect(run->on_step != NULL, 0)) run->on_step(run->watcher, step);
}

/* Where each tensor begins in the weights, in floats, and its shape. A matrix [N][K] stands in panels,
 * [N / 16][K][16]. unrolled_w_layer3_ffn_up is the tensor layers.3.ffn.up.weight of its stack. A product of
 * several matrices reads them as one: behind its shape are their names, in their order. */
#define unrolled_w_embedding_tokens 0 /* [5][4] */
/* encoder.layers.0. */
#define unrolled_w_layer0_ffn_up 32 /* [1][4][16] */
#define unrolled_w_layer0_ffn_up_bias 96 /* [4] */
#define unrolled_w_layer0_ffn_down 112 /* [1][4][16] */
#define unrolled_w_layer0_ffn_down_bias 176 /* [4] */

/* The workspace of forward, in bytes:
 *     0: starts[3], the first row of each sequence
 *     64: buffers of 96 floats
 *     then 0 of scratch for each thread
 * Each buffer has its offset in floats, its shape, and the first and the last step that use it. */
#define unrolled_x_embedding_looked_up 0 /* [2][16] embedding to ffn_down of layer 0 */
#define unrolled_x_ffn_activated 48 /* [2][16] ffn_up to ffn_down */

/* ------------------------------------------------------------------ target sse2 */
#if defined(__x86_64__)

#define unrolled_SSE2 __attribute__((target("no-fma,no-fma4,no-avx512f")))

typedef int unrolled_sse2_ints __attribute__((vector_size(16)));

static inline __attribute__((unused)) unrolled_SSE2
__m128 unrolled_sse2_set1(float x) {
    return (__m128){x, x, x, x};
}

static inline __attribute__((unused)) unrolled_SSE2
__m128 unrolled_sse2_relu(__m128 x) {
    return __builtin_ia32_maxps((__m128){0.0f, 0.0f, 0.0f, 0.0f}, x);
}

/* rows of 4 columns, looked up: row `row` of the chunk, row `index` of its sequence */
static unrolled_SSE2
void unrolled_sse2_rows_row(const unrolled_run *run, size_t row, size_t sequence, size_t index, const float *table,
    float *to) {
    (void)run, (void)row, (void)sequence, (void)index;
    const size_t id = (size_t)run->tokens[row];
    const float *from = table + id * 4;
    {
        __m128 value = *(const __m128_u *)(from);
        *(__m128_u *)(to) = value;
    }
    *(__m128_u *)(to + 4) = (__m128){0.0f, 0.0f, 0.0f, 0.0f};
    *(__m128_u *)(to + 8) = (__m128){0.0f, 0.0f, 0.0f, 0.0f};
    *(__m128_u *)(to + 12) = (__m128){0.0f, 0.0f, 0.0f, 0.0f};
}

static unrolled_SSE2
void unrolled_sse2_rows(const unrolled_run *run, const float *table, float *out) {
    unrolled_sse2_rows_row(run, 0, 0, 0, table, out);
    unrolled_sse2_rows_row(run, 1, 0, 1, table, out + 16);
}

/* embedding: [rows][4] of a table [5][4] */
static unrolled_SSE2
void unrolled_sse2_step_embedding(const unrolled_run *run, int thread) {
    (void)thread;
    unrolled_sse2_rows(run, run->weights + unrolled_w_embedding_tokens,
        run->workspace + unrolled_x_embedding_looked_up);
}

static unrolled_SSE2
void unrolled_sse2_gemm_4x4_2x1(const float *x, const float *w, const float *bias, float *out) {
    const __m128 b0 = *(const __m128_u *)(bias);
    __m128 acc0_0 = b0;
    __m128 acc1_0 = b0;
    {
        const __m128 w0 = *(const __m128_u *)(w);
        const __m128 a0 = unrolled_sse2_set1(x[0]);
        acc0_0 = (acc0_0 + a0 * w0);
        const __m128 a1 = unrolled_sse2_set1(x[16]);
        acc1_0 = (acc1_0 + a1 * w0);
    }
    {
        const __m128 w0 = *(const __m128_u *)(w + 16);
        const __m128 a0 = unrolled_sse2_set1(x[1]);
        acc0_0 = (acc0_0 + a0 * w0);
        const __m128 a1 = unrolled_sse2_set1(x[17]);
        acc1_0 = (acc1_0 + a1 * w0);
    }
    {
        const __m128 w0 = *(const __m128_u *)(w + 32);
        const __m128 a0 = unrolled_sse2_set1(x[2]);
        acc0_0 = (acc0_0 + a0 * w0);
        const __m128 a1 = unrolled_sse2_set1(x[18]);
        acc1_0 = (acc1_0 + a1 * w0);
    }
    {
        const __m128 w0 = *(const __m128_u *)(w + 48);
        const __m128 a0 = unrolled_sse2_set1(x[3]);
        acc0_0 = (acc0_0 + a0 * w0);
        const __m128 a1 = unrolled_sse2_set1(x[19]);
        acc1_0 = (acc1_0 + a1 * w0);
    }
    acc0_0 = unrolled_sse2_relu(acc0_0);
    *(__m128_u *)(out) = acc0_0;
    acc1_0 = unrolled_sse2_relu(acc1_0);
    *(__m128_u *)(out + 16) = acc1_0;
}

/* out [rows][4] = x [rows][4] times weight, + bias, relu */
static unrolled_SSE2
void unrolled_sse2_gemm_4x4(const float *x, const float *w, const float *bias, float *out) {
    unrolled_sse2_gemm_4x4_2x1(x, w, bias, out);
}

/* layer 0, ffn, up projection: [rows][4] x [4][4] + bias, relu */
static unrolled_SSE2
void unrolled_sse2_step_layer0_ffn_up(const unrolled_run *run, int thread) {
    (void)thread;
    unrolled_sse2_gemm_4x4(run->workspace + unrolled_x_embedding_looked_up, run->weights + unrolled_w_layer0_ffn_up,
        run->weights + unrolled_w_layer0_ffn_up_bias, run->workspace + unrolled_x_ffn_activated);
}

static unrolled_SSE2
void unrolled_sse2_gemm_4x4_2_2x1_last(const float *x, const float *w, const float *bias, const float *other,
    float *out) {
    const __m128 b0 = *(const __m128_u *)(bias);
    __m128 acc0_0 = b0;
    __m128 acc1_0 = b0;
    {
        const __m128 w0 = *(const __m128_u *)(w);
        const __m128 a0 = unrolled_sse2_set1(x[0]);
        acc0_0 = (acc0_0 + a0 * w0);
        const __m128 a1 = unrolled_sse2_set1(x[16]);
        acc1_0 = (acc1_0 + a1 * w0);
    }
    {
        const __m128 w0 = *(const __m128_u *)(w + 16);
        const __m128 a0 = unrolled_sse2_set1(x[1]);
        acc0_0 = (acc0_0 + a0 * w0);
        const __m128 a1 = unrolled_sse2_set1(x[17]);
        acc1_0 = (acc1_0 + a1 * w0);
    }
    {
        const __m128 w0 = *(const __m128_u *)(w + 32);
        const __m128 a0 = unrolled_sse2_set1(x[2]);
        acc0_0 = (acc0_0 + a0 * w0);
        const __m128 a1 = unrolled_sse2_set1(x[18]);
        acc1_0 = (acc1_0 + a1 * w0);
    }
    {
        const __m128 w0 = *(const __m128_u *)(w + 48);
        const __m128 a0 = unrolled_sse2_set1(x[3]);
        acc0_0 = (acc0_0 + a0 * w0);
        const __m128 a1 = unrolled_sse2_set1(x[19]);
        acc1_0 = (acc1_0 + a1 * w0);
    }
    acc0_0 = ((*(const __m128_u *)(other)) + acc0_0);
    *(__m128_u *)(out) = acc0_0;
    acc1_0 = ((*(const __m128_u *)(other + 16)) + acc1_0);
    *(__m128_u *)(out + 4) = acc1_0;
}

/* out [rows][4] = x [rows][4] times weight, + bias, + other */
static unrolled_SSE2
void unrolled_sse2_gemm_4x4_2(const float *x, const float *w, const float *bias, const float *other, float *out) {
    unrolled_sse2_gemm_4x4_2_2x1_last(x, w, bias, other, out);
}

/* layer 0, ffn, down projection: [rows][4] x [4][4] + bias, + residual */
static unrolled_SSE2
void unrolled_sse2_step_layer0_ffn_down(const unrolled_run *run, int thread) {
    (void)thread;
    unrolled_sse2_gemm_4x4_2(run->workspace + unrolled_x_ffn_activated, run->weights + unrolled_w_layer0_ffn_down,
        run->weights + unrolled_w_layer0_ffn_down_bias, run->workspace + unrolled_x_embedding_looked_up,
        run->out_hidden);
}

static __attribute__((noinline)) unrolled_SSE2
void unrolled_sse2_forward_chunk(unrolled_run *run) {
    unrolled_before(run, 0);
    unrolled_sse2_step_embedding(run, 0);
    unrolled_before(run, 1);
    unrolled_sse2_step_layer0_ffn_up(run, 0);
    unrolled_before(run, 2);
    if (run->out_hidden) unrolled_sse2_step_layer0_ffn_down(run, 0);
    unrolled_before(run, 3);
}
#endif

const char *unrolled_status_text(int status) {
    switch (status) {
        case UNROLLED_OK: return "fine";
        case UNROLLED_BAD_ARGUMENT: return "a null pointer, a struct of another size, or a bad count";
        case UNROLLED_BAD_WEIGHTS: return "the weights are damaged, or of another size, model, layout or version";
        case UNROLLED_NO_TARGET: return "this machine lacks the instructions, or is big-endian";
        case UNROLLED_SHORT_WORKSPACE: return "the workspace is too small or not aligned";
        case UNROLLED_BAD_LENGTH: return "a sequence is empty or too long";
        case UNROLLED_BAD_TOKEN: return "an id is outside its table";
        default: return "unknown status";
    }
}

/* FNV-1a, 64 bit */
static uint64_t unrolled_hash(uint64_t hash, const unsigned char *bytes, size_t size) {
    if (size == 0) return hash;
    if (size == 1) return (hash ^ bytes[0]) * UINT64_C(0x100000001b3);
    return unrolled_hash(unrolled_hash(hash, bytes, size / 2), bytes + size / 2, size - size / 2);
}

static uint64_t unrolled_u64(const unsigned char *b) {
    return (uint64_t)b[0] | (uint64_t)b[1] << 8 | (uint64_t)b[2] << 16 | (uint64_t)b[3] << 24 | (uint64_t)b[4] << 32 |
        (uint64_t)b[5] << 40 | (uint64_t)b[6] << 48 | (uint64_t)b[7] << 56;
}

/* The header of a .attnw: magic, version, hashes of model and layout, dtype, sizes, zeros, checksums. */
static int unrolled_good_weights(const unsigned char *bytes, size_t size, int verify) {
    const uint64_t seed = UINT64_C(0xcbf29ce484222325);
    if (size != UNROLLED_WEIGHTS_BYTES || (uintptr_t)bytes % UNROLLED_ALIGNMENT != 0) return 0;
    if (unrolled_u64(bytes) != UINT64_C(0x1a0a0d574e545441) || unrolled_u64(bytes + 8) != (UINT64_C(1) << 32 | 1))
        return 0;
    if (unrolled_u64(bytes + 120) != unrolled_hash(seed, bytes, 120)) return 0;
    if (unrolled_u64(bytes + 16) != UINT64_C(0x3b976d590ab69c37) ||
        unrolled_u64(bytes + 56) != UINT64_C(0x469ac630e2b083df))
        return 0;
    if (unrolled_u64(bytes + 24) != UINT64_C(5) << 32) return 0; /* tensors; f32 */
    if (unrolled_u64(bytes + 32) != 128 || unrolled_u64(bytes + 40) != UINT64_C(832)) return 0;
    if (unrolled_u64(bytes + 64) | unrolled_u64(bytes + 72) | unrolled_u64(bytes + 80) | unrolled_u64(bytes + 88) |
        unrolled_u64(bytes + 96) | unrolled_u64(bytes + 104) | unrolled_u64(bytes + 112))
        return 0;
    return !verify || unrolled_u64(bytes + 48) == unrolled_hash(seed, bytes + 128, (size_t)832u);
}

static int unrolled_same(const char *a, const char *b) {
    return *a == *b && (*a == 0 || unrolled_same(a + 1, b + 1));
}

static const char *const unrolled_targets[] = {"sse2"};

/* Index of the best target that this CPU has, or of the requested one; -1: none. */
static int unrolled_pick(const char *wanted) {
    if (!wanted || unrolled_same(wanted, "sse2")) {
#if defined(__x86_64__)
        return 0;
#endif
    }
    return -1;
}

int unrolled_init(unrolled_ctx *ctx, const void *weights, size_t bytes, const unrolled_options *options) {
    if (!ctx || !weights || (options && options->size != sizeof *options)) return UNROLLED_BAD_ARGUMENT;
    const int threads = options && options->threads > 0 ? options->threads : 1;
    if (options && (options->threads < 0 || options->threads > 4096 || (threads > 1 && !options->parallel_for)))
        return UNROLLED_BAD_ARGUMENT;
    if (!unrolled_good_weights((const unsigned char *)weights, bytes, options ? options->verify : 0))
        return UNROLLED_BAD_WEIGHTS;
    const int target = unrolled_pick(options ? options->target : NULL);
    static const uint16_t one = 1; /* the numbers of the weights begin with their lowest byte */
    if (target < 0 || *(const unsigned char *)&one != 1) return UNROLLED_NO_TARGET;
    ctx->weights = (const float *)(const void *)((const unsigned char *)weights + 128);
    ctx->target = target;
    ctx->threads = threads;
    ctx->parallel_for = options ? options->parallel_for : NULL;
    ctx->pool = options ? options->pool : NULL;
    ctx->on_step = options ? options->on_step : NULL;
    ctx->watcher = options ? options->watcher : NULL;
    return UNROLLED_OK;
}

const char *unrolled_target(const unrolled_ctx *ctx) {
    return ctx ? unrolled_targets[ctx->target] : "";
}

static int unrolled_check_input(const unrolled_input *input) {
    if (input->lengths && input->lengths[0] != 2) return UNROLLED_BAD_LENGTH;
    if ((input->tokens[0] < 0 || input->tokens[0] >= 5)) return UNROLLED_BAD_TOKEN;
    if ((input->tokens[1] < 0 || input->tokens[1] >= 5)) return UNROLLED_BAD_TOKEN;
    return UNROLLED_OK;
}

int unrolled_forward(const unrolled_ctx *ctx, const unrolled_input *input, unrolled_output *output, void *workspace,
    size_t bytes) {
    if (!ctx || !input || !output || !workspace || input->size != sizeof *input || output->size != sizeof *output)
        return UNROLLED_BAD_ARGUMENT;
    if (input->batch != 1 || !input->tokens) return UNROLLED_BAD_ARGUMENT;
    if (bytes < UNROLLED_WORKSPACE_BYTES(ctx->threads) || (uintptr_t)workspace % UNROLLED_ALIGNMENT != 0)
        return UNROLLED_SHORT_WORKSPACE;
    const int status = unrolled_check_input(input);
    if (status != UNROLLED_OK) return status;
    unsigned char *memory = (unsigned char *)workspace;
    int32_t *starts = (int32_t *)(void *)memory;
    unrolled_run run = {0};
    run.weights = ctx->weights;
    run.workspace = (float *)(void *)(memory + 64);
    run.scratch = run.workspace + 96;
    run.threads = ctx->threads;
    run.parallel_for = ctx->parallel_for;
    run.pool = ctx->pool;
    run.on_step = ctx->on_step;
    run.watcher = ctx->watcher;
    run.starts = starts;
    run.tokens = input->tokens;
    run.out_hidden = output->hidden;
    starts[0] = 0;
    starts[1] = 2;
    run.rows = 2;
    run.sequences = run.ended = 1;
    switch (ctx->target) {
#if defined(__x86_64__)
        case 0: unrolled_sse2_forward_chunk(&run); break;
#endif
    }
    return UNROLLED_OK;
}
