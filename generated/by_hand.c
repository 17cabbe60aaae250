/* by_hand.c: encoder of 1 layer over exactly 4 rows, d_model 6; model hash 15ddb4f768ecaee6
 *
 * Made by attnc 0.1.0: attnc compile by_hand.attn --target scalar
 * Memory: a workspace of 896 bytes plus 256 per thread; 1344 bytes of weights.
 * The output of attnc belongs to its user, without conditions. */
#include "by_hand.h"

#if BY_HAND_HEADER != 0x4e9f1f9du
#error "by_hand.h is of another run of attnc than this file"
#endif
#ifdef __FAST_MATH__
#error "this file counts on IEEE arithmetic: compile it without -ffast-math"
#endif
#if defined(__FLT_EVAL_METHOD__) && (__FLT_EVAL_METHOD__ < 0 || __FLT_EVAL_METHOD__ == 1 || __FLT_EVAL_METHOD__ == 2)
#error "this file counts on floats that are rounded at once: compile it with -msse2 -mfpmath=sse, or with -std=gnu11"
#endif

typedef struct by_hand_run {
    const float *weights;
    float *workspace, *scratch;
    size_t rows, sequences;   /* of this chunk */
    size_t ended;             /* sequences whose last row is in this chunk */
    const int32_t *starts;    /* [sequences + 1] first row of each sequence */
    const float *features;
    float *out_hidden;
    int threads;
    void (*parallel_for)(void *pool, int count, void (*task)(void *with, int index), void *with);
    void *pool;
    void (*on_step)(void *watcher, int step);
    void *watcher;
} by_hand_run;

static inline __attribute__((unused)) void by_hand_before(const by_hand_run *run, int step) {
    if (__builtin_expect(run->on_step != NULL, 0)) run->on_step(run->watcher, step);
}

/* Where each tensor begins in the weights, in floats, and its shape. A matrix [N][K] stands in panels,
 * [N / 16][K][16]. by_hand_w_layer3_ffn_up is the tensor layers.3.ffn.up.weight of its stack. A product of
 * several matrices reads them as one: behind its shape are their names, in their order. */
/* encoder.layers.0. */
#define by_hand_w_layer0_attention_query_key_value 0 /* [3][6][16] query, key, value */

/* The workspace of forward, in bytes:
 *     0: starts[5], the first row of each sequence
 *     64: buffers of 208 floats
 *     then 256 of scratch for each thread
 * Each buffer has its offset in floats, its shape, and the first and the last step that use it. */
#define by_hand_x_attention_query_key_value 0 /* [4][48] attention_query_key_value to attention_attended */

/* ------------------------------------------------------------------ target scalar */

#if defined(__x86_64__)
#define by_hand_SCALAR __attribute__((target("no-fma,no-fma4,no-avx512f")))
#elif defined(__GNUC__) && !defined(__clang__)
#define by_hand_SCALAR __attribute__((optimize("fp-contract=off")))
#else
#define by_hand_SCALAR
#endif

/* acc + a * b, rounded twice */
static inline __attribute__((unused)) by_hand_SCALAR
float by_hand_scalar_fma(float acc, float a, float b) {
#if defined(__clang__)
#pragma clang fp contract(off)
#endif
    float product = a * b;
    return acc + product;
}

static inline __attribute__((unused)) by_hand_SCALAR
float by_hand_scalar_max(float a, float b) {
    return a > b ? a : b;
}

static inline __attribute__((unused)) by_hand_SCALAR
float by_hand_scalar_min(float a, float b) {
    return a < b ? a : b;
}

/* Below 2^23 adding 2^23 leaves no bits of a fraction; above, and with NaN, there is nothing to round. */
static inline __attribute__((unused)) by_hand_SCALAR
float by_hand_scalar_round(float a) {
    float size = __builtin_fabsf(a);
    if (!(size < 8388608.0f)) return a;
    return __builtin_copysignf((size + 8388608.0f) - 8388608.0f, a);
}

/* The product is exact as a double; it is rounded once, to a float. n comes out of the low bits of n + 3 * 2^22: a
 * conversion of NaN to an integer is undefined. */
static inline __attribute__((unused)) by_hand_SCALAR
float by_hand_scalar_exp2i(float x, float n) {
    const float shifted = n + 12582912.0f;
    unsigned word;
    __builtin_memcpy(&word, &shifted, sizeof word);
    const unsigned long long bits = (unsigned long long)(word - 0x4b400000u + 1023u) << 52;
    double power;
    __builtin_memcpy(&power, &bits, sizeof power);
    return (float)((double)x * power);
}

/* exp(x) for the weights of the softmax. Results below 2^-125.99 are 0, so that masked keys and padding make no
 * denormal numbers; large ones are infinite. */
static inline __attribute__((unused)) by_hand_SCALAR
float by_hand_scalar_exp(float x) {
    float t = by_hand_scalar_min(100.0f, by_hand_scalar_max((-87.33f), x));
    float n = by_hand_scalar_round((t * (0x1.715476p+0f)));
    float r = by_hand_scalar_fma(t, -n, (0x1.62e4p-1f));
    r = by_hand_scalar_fma(r, -n, (0x1.7f7d1cp-20f));
    float y = (0x1.6dd992p-10f);
    y = by_hand_scalar_fma((0x1.126fbap-7f), y, r);
    y = by_hand_scalar_fma((0x1.55541cp-5f), y, r);
    y = by_hand_scalar_fma((0x1.555404p-3f), y, r);
    y = by_hand_scalar_fma(0.5f, y, r);
    y = by_hand_scalar_fma(1.0f, y, r);
    y = by_hand_scalar_fma(1.0f, y, r);
    return (x < (-87.33f) ? 0.0f : by_hand_scalar_exp2i(y, n));
}

static by_hand_SCALAR
void by_hand_scalar_gemm_6x48_1x3(const float *x, const float *w, float *out) {
    const float none = 0.0f;
    float acc0_0 = none, acc0_1 = none, acc0_2 = none, acc0_3 = none, acc0_4 = none, acc0_5 = none, acc0_6 = none,
        acc0_7 = none, acc0_8 = none;
    {
        const float a0 = x[0];
        const float w0 = w[0];
        acc0_0 = by_hand_scalar_fma(acc0_0, a0, w0);
        const float w1 = w[1];
        acc0_1 = by_hand_scalar_fma(acc0_1, a0, w1);
        const float w2 = w[2];
        acc0_2 = by_hand_scalar_fma(acc0_2, a0, w2);
        const float w3 = w[96];
        acc0_3 = by_hand_scalar_fma(acc0_3, a0, w3);
        const float w4 = w[97];
        acc0_4 = by_hand_scalar_fma(acc0_4, a0, w4);
        const float w5 = w[98];
        acc0_5 = by_hand_scalar_fma(acc0_5, a0, w5);
        const float w6 = w[192];
        acc0_6 = by_hand_scalar_fma(acc0_6, a0, w6);
        const float w7 = w[193];
        acc0_7 = by_hand_scalar_fma(acc0_7, a0, w7);
        const float w8 = w[194];
        acc0_8 = by_hand_scalar_fma(acc0_8, a0, w8);
    }
    {
        const float a0 = x[1];
        const float w0 = w[16];
        acc0_0 = by_hand_scalar_fma(acc0_0, a0, w0);
        const float w1 = w[17];
        acc0_1 = by_hand_scalar_fma(acc0_1, a0, w1);
        const float w2 = w[18];
        acc0_2 = by_hand_scalar_fma(acc0_2, a0, w2);
        const float w3 = w[112];
        acc0_3 = by_hand_scalar_fma(acc0_3, a0, w3);
        const float w4 = w[113];
        acc0_4 = by_hand_scalar_fma(acc0_4, a0, w4);
        const float w5 = w[114];
        acc0_5 = by_hand_scalar_fma(acc0_5, a0, w5);
        const float w6 = w[208];
        acc0_6 = by_hand_scalar_fma(acc0_6, a0, w6);
        const float w7 = w[209];
        acc0_7 = by_hand_scalar_fma(acc0_7, a0, w7);
        const float w8 = w[210];
        acc0_8 = by_hand_scalar_fma(acc0_8, a0, w8);
    }
    {
        const float a0 = x[2];
        const float w0 = w[32];
        acc0_0 = by_hand_scalar_fma(acc0_0, a0, w0);
        const float w1 = w[33];
        acc0_1 = by_hand_scalar_fma(acc0_1, a0, w1);
        const float w2 = w[34];
        acc0_2 = by_hand_scalar_fma(acc0_2, a0, w2);
        const float w3 = w[128];
        acc0_3 = by_hand_scalar_fma(acc0_3, a0, w3);
        const float w4 = w[129];
        acc0_4 = by_hand_scalar_fma(acc0_4, a0, w4);
        const float w5 = w[130];
        acc0_5 = by_hand_scalar_fma(acc0_5, a0, w5);
        const float w6 = w[224];
        acc0_6 = by_hand_scalar_fma(acc0_6, a0, w6);
        const float w7 = w[225];
        acc0_7 = by_hand_scalar_fma(acc0_7, a0, w7);
        const float w8 = w[226];
        acc0_8 = by_hand_scalar_fma(acc0_8, a0, w8);
    }
    {
        const float a0 = x[3];
        const float w0 = w[48];
        acc0_0 = by_hand_scalar_fma(acc0_0, a0, w0);
        const float w1 = w[49];
        acc0_1 = by_hand_scalar_fma(acc0_1, a0, w1);
        const float w2 = w[50];
        acc0_2 = by_hand_scalar_fma(acc0_2, a0, w2);
        const float w3 = w[144];
        acc0_3 = by_hand_scalar_fma(acc0_3, a0, w3);
        const float w4 = w[145];
        acc0_4 = by_hand_scalar_fma(acc0_4, a0, w4);
        const float w5 = w[146];
        acc0_5 = by_hand_scalar_fma(acc0_5, a0, w5);
        const float w6 = w[240];
        acc0_6 = by_hand_scalar_fma(acc0_6, a0, w6);
        const float w7 = w[241];
        acc0_7 = by_hand_scalar_fma(acc0_7, a0, w7);
        const float w8 = w[242];
        acc0_8 = by_hand_scalar_fma(acc0_8, a0, w8);
    }
    {
        const float a0 = x[4];
        const float w0 = w[64];
        acc0_0 = by_hand_scalar_fma(acc0_0, a0, w0);
        const float w1 = w[65];
        acc0_1 = by_hand_scalar_fma(acc0_1, a0, w1);
        const float w2 = w[66];
        acc0_2 = by_hand_scalar_fma(acc0_2, a0, w2);
        const float w3 = w[160];
        acc0_3 = by_hand_scalar_fma(acc0_3, a0, w3);
        const float w4 = w[161];
        acc0_4 = by_hand_scalar_fma(acc0_4, a0, w4);
        const float w5 = w[162];
        acc0_5 = by_hand_scalar_fma(acc0_5, a0, w5);
        const float w6 = w[256];
        acc0_6 = by_hand_scalar_fma(acc0_6, a0, w6);
        const float w7 = w[257];
        acc0_7 = by_hand_scalar_fma(acc0_7, a0, w7);
        const float w8 = w[258];
        acc0_8 = by_hand_scalar_fma(acc0_8, a0, w8);
    }
    {
        const float a0 = x[5];
        const float w0 = w[80];
        acc0_0 = by_hand_scalar_fma(acc0_0, a0, w0);
        const float w1 = w[81];
        acc0_1 = by_hand_scalar_fma(acc0_1, a0, w1);
        const float w2 = w[82];
        acc0_2 = by_hand_scalar_fma(acc0_2, a0, w2);
        const float w3 = w[176];
        acc0_3 = by_hand_scalar_fma(acc0_3, a0, w3);
        const float w4 = w[177];
        acc0_4 = by_hand_scalar_fma(acc0_4, a0, w4);
        const float w5 = w[178];
        acc0_5 = by_hand_scalar_fma(acc0_5, a0, w5);
        const float w6 = w[272];
        acc0_6 = by_hand_scalar_fma(acc0_6, a0, w6);
        const float w7 = w[273];
        acc0_7 = by_hand_scalar_fma(acc0_7, a0, w7);
        const float w8 = w[274];
        acc0_8 = by_hand_scalar_fma(acc0_8, a0, w8);
    }
    out[0] = acc0_0;
    out[1] = acc0_1;
    out[2] = acc0_2;
    out[16] = acc0_3;
    out[17] = acc0_4;
    out[18] = acc0_5;
    out[32] = acc0_6;
    out[33] = acc0_7;
    out[34] = acc0_8;
}

/* out [rows][48] = x [rows][6] times weight */
static by_hand_SCALAR
void by_hand_scalar_gemm_6x48(const float *x, const float *w, float *out) {
    by_hand_scalar_gemm_6x48_1x3(x, w, out);
    by_hand_scalar_gemm_6x48_1x3(x + 6, w, out + 48);
    by_hand_scalar_gemm_6x48_1x3(x + 12, w, out + 96);
    by_hand_scalar_gemm_6x48_1x3(x + 18, w, out + 144);
}

/* layer 0, self attention, query, key and value projection: [rows][6] x [6][48] */
static by_hand_SCALAR
void by_hand_scalar_step_layer0_attention_query_key_value(const by_hand_run *run, int thread) {
    (void)thread;
    by_hand_scalar_gemm_6x48(run->features, run->weights + by_hand_w_layer0_attention_query_key_value,
        run->workspace + by_hand_x_attention_query_key_value);
}

static by_hand_SCALAR
void by_hand_scalar_attention_pack_0_0(const float *key, float *panels) {
    panels[0] = key[0];
    panels[1] = key[48];
    panels[2] = key[96];
    panels[3] = key[144];
    panels[4] = 0.0f;
    panels[5] = 0.0f;
    panels[6] = 0.0f;
    panels[7] = 0.0f;
    panels[8] = 0.0f;
    panels[9] = 0.0f;
    panels[10] = 0.0f;
    panels[11] = 0.0f;
    panels[12] = 0.0f;
    panels[13] = 0.0f;
    panels[14] = 0.0f;
    panels[15] = 0.0f;
    panels[16] = key[1];
    panels[17] = key[49];
    panels[18] = key[97];
    panels[19] = key[145];
    panels[20] = 0.0f;
    panels[21] = 0.0f;
    panels[22] = 0.0f;
    panels[23] = 0.0f;
    panels[24] = 0.0f;
    panels[25] = 0.0f;
    panels[26] = 0.0f;
    panels[27] = 0.0f;
    panels[28] = 0.0f;
    panels[29] = 0.0f;
    panels[30] = 0.0f;
    panels[31] = 0.0f;
    panels[32] = key[2];
    panels[33] = key[50];
    panels[34] = key[98];
    panels[35] = key[146];
    panels[36] = 0.0f;
    panels[37] = 0.0f;
    panels[38] = 0.0f;
    panels[39] = 0.0f;
    panels[40] = 0.0f;
    panels[41] = 0.0f;
    panels[42] = 0.0f;
    panels[43] = 0.0f;
    panels[44] = 0.0f;
    panels[45] = 0.0f;
    panels[46] = 0.0f;
    panels[47] = 0.0f;
}

static by_hand_SCALAR
void by_hand_scalar_attention_scores_0_0(const float *query, const float *panels, float *block) {
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
    const float *panel = panels;
    {
        const float k0_0 = panel[0];
        const float k0_1 = panel[1];
        const float k0_2 = panel[2];
        const float k0_3 = panel[3];
        const float k0_4 = panel[4];
        const float k0_5 = panel[5];
        const float k0_6 = panel[6];
        const float k0_7 = panel[7];
        const float k0_8 = panel[8];
        const float k0_9 = panel[9];
        const float k0_10 = panel[10];
        const float k0_11 = panel[11];
        const float k0_12 = panel[12];
        const float k0_13 = panel[13];
        const float k0_14 = panel[14];
        const float k0_15 = panel[15];
        const float q0 = query[0];
        s0_0 = by_hand_scalar_fma(s0_0, q0, k0_0);
        s0_1 = by_hand_scalar_fma(s0_1, q0, k0_1);
        s0_2 = by_hand_scalar_fma(s0_2, q0, k0_2);
        s0_3 = by_hand_scalar_fma(s0_3, q0, k0_3);
        s0_4 = by_hand_scalar_fma(s0_4, q0, k0_4);
        s0_5 = by_hand_scalar_fma(s0_5, q0, k0_5);
        s0_6 = by_hand_scalar_fma(s0_6, q0, k0_6);
        s0_7 = by_hand_scalar_fma(s0_7, q0, k0_7);
        s0_8 = by_hand_scalar_fma(s0_8, q0, k0_8);
        s0_9 = by_hand_scalar_fma(s0_9, q0, k0_9);
        s0_10 = by_hand_scalar_fma(s0_10, q0, k0_10);
        s0_11 = by_hand_scalar_fma(s0_11, q0, k0_11);
        s0_12 = by_hand_scalar_fma(s0_12, q0, k0_12);
        s0_13 = by_hand_scalar_fma(s0_13, q0, k0_13);
        s0_14 = by_hand_scalar_fma(s0_14, q0, k0_14);
        s0_15 = by_hand_scalar_fma(s0_15, q0, k0_15);
    }
    {
        const float k0_0 = panel[16];
        const float k0_1 = panel[17];
        const float k0_2 = panel[18];
        const float k0_3 = panel[19];
        const float k0_4 = panel[20];
        const float k0_5 = panel[21];
        const float k0_6 = panel[22];
        const float k0_7 = panel[23];
        const float k0_8 = panel[24];
        const float k0_9 = panel[25];
        const float k0_10 = panel[26];
        const float k0_11 = panel[27];
        const float k0_12 = panel[28];
        const float k0_13 = panel[29];
        const float k0_14 = panel[30];
        const float k0_15 = panel[31];
        const float q0 = query[1];
        s0_0 = by_hand_scalar_fma(s0_0, q0, k0_0);
        s0_1 = by_hand_scalar_fma(s0_1, q0, k0_1);
        s0_2 = by_hand_scalar_fma(s0_2, q0, k0_2);
        s0_3 = by_hand_scalar_fma(s0_3, q0, k0_3);
        s0_4 = by_hand_scalar_fma(s0_4, q0, k0_4);
        s0_5 = by_hand_scalar_fma(s0_5, q0, k0_5);
        s0_6 = by_hand_scalar_fma(s0_6, q0, k0_6);
        s0_7 = by_hand_scalar_fma(s0_7, q0, k0_7);
        s0_8 = by_hand_scalar_fma(s0_8, q0, k0_8);
        s0_9 = by_hand_scalar_fma(s0_9, q0, k0_9);
        s0_10 = by_hand_scalar_fma(s0_10, q0, k0_10);
        s0_11 = by_hand_scalar_fma(s0_11, q0, k0_11);
        s0_12 = by_hand_scalar_fma(s0_12, q0, k0_12);
        s0_13 = by_hand_scalar_fma(s0_13, q0, k0_13);
        s0_14 = by_hand_scalar_fma(s0_14, q0, k0_14);
        s0_15 = by_hand_scalar_fma(s0_15, q0, k0_15);
    }
    {
        const float k0_0 = panel[32];
        const float k0_1 = panel[33];
        const float k0_2 = panel[34];
        const float k0_3 = panel[35];
        const float k0_4 = panel[36];
        const float k0_5 = panel[37];
        const float k0_6 = panel[38];
        const float k0_7 = panel[39];
        const float k0_8 = panel[40];
        const float k0_9 = panel[41];
        const float k0_10 = panel[42];
        const float k0_11 = panel[43];
        const float k0_12 = panel[44];
        const float k0_13 = panel[45];
        const float k0_14 = panel[46];
        const float k0_15 = panel[47];
        const float q0 = query[2];
        s0_0 = by_hand_scalar_fma(s0_0, q0, k0_0);
        s0_1 = by_hand_scalar_fma(s0_1, q0, k0_1);
        s0_2 = by_hand_scalar_fma(s0_2, q0, k0_2);
        s0_3 = by_hand_scalar_fma(s0_3, q0, k0_3);
        s0_4 = by_hand_scalar_fma(s0_4, q0, k0_4);
        s0_5 = by_hand_scalar_fma(s0_5, q0, k0_5);
        s0_6 = by_hand_scalar_fma(s0_6, q0, k0_6);
        s0_7 = by_hand_scalar_fma(s0_7, q0, k0_7);
        s0_8 = by_hand_scalar_fma(s0_8, q0, k0_8);
        s0_9 = by_hand_scalar_fma(s0_9, q0, k0_9);
        s0_10 = by_hand_scalar_fma(s0_10, q0, k0_10);
        s0_11 = by_hand_scalar_fma(s0_11, q0, k0_11);
        s0_12 = by_hand_scalar_fma(s0_12, q0, k0_12);
        s0_13 = by_hand_scalar_fma(s0_13, q0, k0_13);
        s0_14 = by_hand_scalar_fma(s0_14, q0, k0_14);
        s0_15 = by_hand_scalar_fma(s0_15, q0, k0_15);
    }
    s0_0 = (s0_0 * (0x1.279a74p-1f));
    s0_1 = (s0_1 * (0x1.279a74p-1f));
    s0_2 = (s0_2 * (0x1.279a74p-1f));
    s0_3 = (s0_3 * (0x1.279a74p-1f));
    s0_4 = (s0_4 * (0x1.279a74p-1f));
    s0_5 = (s0_5 * (0x1.279a74p-1f));
    s0_6 = (s0_6 * (0x1.279a74p-1f));
    s0_7 = (s0_7 * (0x1.279a74p-1f));
    s0_8 = (s0_8 * (0x1.279a74p-1f));
    s0_9 = (s0_9 * (0x1.279a74p-1f));
    s0_10 = (s0_10 * (0x1.279a74p-1f));
    s0_11 = (s0_11 * (0x1.279a74p-1f));
    s0_12 = (s0_12 * (0x1.279a74p-1f));
    s0_13 = (s0_13 * (0x1.279a74p-1f));
    s0_14 = (s0_14 * (0x1.279a74p-1f));
    s0_15 = (s0_15 * (0x1.279a74p-1f));
    block[0] = s0_0;
    block[1] = s0_1;
    block[2] = s0_2;
    block[3] = s0_3;
    block[4] = s0_4;
    block[5] = s0_5;
    block[6] = s0_6;
    block[7] = s0_7;
    block[8] = s0_8;
    block[9] = s0_9;
    block[10] = s0_10;
    block[11] = s0_11;
    block[12] = s0_12;
    block[13] = s0_13;
    block[14] = s0_14;
    block[15] = s0_15;
}

static by_hand_SCALAR
float by_hand_scalar_attention_softmax_0(float *block) {
    block[4] = -__builtin_inff();
    block[5] = -__builtin_inff();
    block[6] = -__builtin_inff();
    block[7] = -__builtin_inff();
    block[8] = -__builtin_inff();
    block[9] = -__builtin_inff();
    block[10] = -__builtin_inff();
    block[11] = -__builtin_inff();
    block[12] = -__builtin_inff();
    block[13] = -__builtin_inff();
    block[14] = -__builtin_inff();
    block[15] = -__builtin_inff();
    float sum[1];
    float greatest0 = block[0];
    greatest0 = by_hand_scalar_max(greatest0, block[1]);
    greatest0 = by_hand_scalar_max(greatest0, block[2]);
    greatest0 = by_hand_scalar_max(greatest0, block[3]);
    greatest0 = by_hand_scalar_max(greatest0, block[4]);
    greatest0 = by_hand_scalar_max(greatest0, block[5]);
    greatest0 = by_hand_scalar_max(greatest0, block[6]);
    greatest0 = by_hand_scalar_max(greatest0, block[7]);
    greatest0 = by_hand_scalar_max(greatest0, block[8]);
    greatest0 = by_hand_scalar_max(greatest0, block[9]);
    greatest0 = by_hand_scalar_max(greatest0, block[10]);
    greatest0 = by_hand_scalar_max(greatest0, block[11]);
    greatest0 = by_hand_scalar_max(greatest0, block[12]);
    greatest0 = by_hand_scalar_max(greatest0, block[13]);
    greatest0 = by_hand_scalar_max(greatest0, block[14]);
    greatest0 = by_hand_scalar_max(greatest0, block[15]);
    float base[1];
    base[0] = greatest0;
    const float less0 = (-base[0]);
    float total0 = 0.0f;
    {
        const float e0 = by_hand_scalar_exp((block[0] + less0));
        block[0] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[1] + less0));
        block[1] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[2] + less0));
        block[2] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[3] + less0));
        block[3] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[4] + less0));
        block[4] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[5] + less0));
        block[5] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[6] + less0));
        block[6] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[7] + less0));
        block[7] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[8] + less0));
        block[8] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[9] + less0));
        block[9] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[10] + less0));
        block[10] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[11] + less0));
        block[11] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[12] + less0));
        block[12] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[13] + less0));
        block[13] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[14] + less0));
        block[14] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[15] + less0));
        block[15] = e0;
        total0 = (total0 + e0);
    }
    float inverse[1];
    sum[0] = total0;
    inverse[0] = 1.0f / sum[0];
    return inverse[0];
}

static by_hand_SCALAR
void by_hand_scalar_attention_weighted_sum_0_0(const float *block, const float *value, const float *inverse,
    float *out) {
    float o0_0 = 0.0f;
    float o0_1 = 0.0f;
    float o0_2 = 0.0f;
    {
        const float w0 = block[0];
        o0_0 = by_hand_scalar_fma(o0_0, w0, *(value));
        o0_1 = by_hand_scalar_fma(o0_1, w0, *(value + 1));
        o0_2 = by_hand_scalar_fma(o0_2, w0, *(value + 2));
    }
    {
        const float w0 = block[1];
        o0_0 = by_hand_scalar_fma(o0_0, w0, *(value + 48));
        o0_1 = by_hand_scalar_fma(o0_1, w0, *(value + 48 + 1));
        o0_2 = by_hand_scalar_fma(o0_2, w0, *(value + 48 + 2));
    }
    {
        const float w0 = block[2];
        o0_0 = by_hand_scalar_fma(o0_0, w0, *(value + 96));
        o0_1 = by_hand_scalar_fma(o0_1, w0, *(value + 96 + 1));
        o0_2 = by_hand_scalar_fma(o0_2, w0, *(value + 96 + 2));
    }
    {
        const float w0 = block[3];
        o0_0 = by_hand_scalar_fma(o0_0, w0, *(value + 144));
        o0_1 = by_hand_scalar_fma(o0_1, w0, *(value + 144 + 1));
        o0_2 = by_hand_scalar_fma(o0_2, w0, *(value + 144 + 2));
    }
    out[0] = (o0_0 * inverse[0]);
    out[1] = (o0_1 * inverse[0]);
    out[2] = (o0_2 * inverse[0]);
}

static by_hand_SCALAR
void by_hand_scalar_attention_rows_0(const float *query, const float *panels, const float *value, float *block,
    float *out) {
    float inverse[1];
    by_hand_scalar_attention_scores_0_0(query, panels, block);
    (void)value, (void)inverse;
    inverse[0] = by_hand_scalar_attention_softmax_0(block);
    by_hand_scalar_attention_weighted_sum_0_0(block, value, inverse, out);
}

static by_hand_SCALAR
void by_hand_scalar_attention_scores_1_0(const float *query, const float *panels, float *block) {
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
    const float *panel = panels;
    {
        const float k0_0 = panel[0];
        const float k0_1 = panel[1];
        const float k0_2 = panel[2];
        const float k0_3 = panel[3];
        const float k0_4 = panel[4];
        const float k0_5 = panel[5];
        const float k0_6 = panel[6];
        const float k0_7 = panel[7];
        const float k0_8 = panel[8];
        const float k0_9 = panel[9];
        const float k0_10 = panel[10];
        const float k0_11 = panel[11];
        const float k0_12 = panel[12];
        const float k0_13 = panel[13];
        const float k0_14 = panel[14];
        const float k0_15 = panel[15];
        const float q0 = query[0];
        s0_0 = by_hand_scalar_fma(s0_0, q0, k0_0);
        s0_1 = by_hand_scalar_fma(s0_1, q0, k0_1);
        s0_2 = by_hand_scalar_fma(s0_2, q0, k0_2);
        s0_3 = by_hand_scalar_fma(s0_3, q0, k0_3);
        s0_4 = by_hand_scalar_fma(s0_4, q0, k0_4);
        s0_5 = by_hand_scalar_fma(s0_5, q0, k0_5);
        s0_6 = by_hand_scalar_fma(s0_6, q0, k0_6);
        s0_7 = by_hand_scalar_fma(s0_7, q0, k0_7);
        s0_8 = by_hand_scalar_fma(s0_8, q0, k0_8);
        s0_9 = by_hand_scalar_fma(s0_9, q0, k0_9);
        s0_10 = by_hand_scalar_fma(s0_10, q0, k0_10);
        s0_11 = by_hand_scalar_fma(s0_11, q0, k0_11);
        s0_12 = by_hand_scalar_fma(s0_12, q0, k0_12);
        s0_13 = by_hand_scalar_fma(s0_13, q0, k0_13);
        s0_14 = by_hand_scalar_fma(s0_14, q0, k0_14);
        s0_15 = by_hand_scalar_fma(s0_15, q0, k0_15);
    }
    {
        const float k0_0 = panel[16];
        const float k0_1 = panel[17];
        const float k0_2 = panel[18];
        const float k0_3 = panel[19];
        const float k0_4 = panel[20];
        const float k0_5 = panel[21];
        const float k0_6 = panel[22];
        const float k0_7 = panel[23];
        const float k0_8 = panel[24];
        const float k0_9 = panel[25];
        const float k0_10 = panel[26];
        const float k0_11 = panel[27];
        const float k0_12 = panel[28];
        const float k0_13 = panel[29];
        const float k0_14 = panel[30];
        const float k0_15 = panel[31];
        const float q0 = query[1];
        s0_0 = by_hand_scalar_fma(s0_0, q0, k0_0);
        s0_1 = by_hand_scalar_fma(s0_1, q0, k0_1);
        s0_2 = by_hand_scalar_fma(s0_2, q0, k0_2);
        s0_3 = by_hand_scalar_fma(s0_3, q0, k0_3);
        s0_4 = by_hand_scalar_fma(s0_4, q0, k0_4);
        s0_5 = by_hand_scalar_fma(s0_5, q0, k0_5);
        s0_6 = by_hand_scalar_fma(s0_6, q0, k0_6);
        s0_7 = by_hand_scalar_fma(s0_7, q0, k0_7);
        s0_8 = by_hand_scalar_fma(s0_8, q0, k0_8);
        s0_9 = by_hand_scalar_fma(s0_9, q0, k0_9);
        s0_10 = by_hand_scalar_fma(s0_10, q0, k0_10);
        s0_11 = by_hand_scalar_fma(s0_11, q0, k0_11);
        s0_12 = by_hand_scalar_fma(s0_12, q0, k0_12);
        s0_13 = by_hand_scalar_fma(s0_13, q0, k0_13);
        s0_14 = by_hand_scalar_fma(s0_14, q0, k0_14);
        s0_15 = by_hand_scalar_fma(s0_15, q0, k0_15);
    }
    {
        const float k0_0 = panel[32];
        const float k0_1 = panel[33];
        const float k0_2 = panel[34];
        const float k0_3 = panel[35];
        const float k0_4 = panel[36];
        const float k0_5 = panel[37];
        const float k0_6 = panel[38];
        const float k0_7 = panel[39];
        const float k0_8 = panel[40];
        const float k0_9 = panel[41];
        const float k0_10 = panel[42];
        const float k0_11 = panel[43];
        const float k0_12 = panel[44];
        const float k0_13 = panel[45];
        const float k0_14 = panel[46];
        const float k0_15 = panel[47];
        const float q0 = query[2];
        s0_0 = by_hand_scalar_fma(s0_0, q0, k0_0);
        s0_1 = by_hand_scalar_fma(s0_1, q0, k0_1);
        s0_2 = by_hand_scalar_fma(s0_2, q0, k0_2);
        s0_3 = by_hand_scalar_fma(s0_3, q0, k0_3);
        s0_4 = by_hand_scalar_fma(s0_4, q0, k0_4);
        s0_5 = by_hand_scalar_fma(s0_5, q0, k0_5);
        s0_6 = by_hand_scalar_fma(s0_6, q0, k0_6);
        s0_7 = by_hand_scalar_fma(s0_7, q0, k0_7);
        s0_8 = by_hand_scalar_fma(s0_8, q0, k0_8);
        s0_9 = by_hand_scalar_fma(s0_9, q0, k0_9);
        s0_10 = by_hand_scalar_fma(s0_10, q0, k0_10);
        s0_11 = by_hand_scalar_fma(s0_11, q0, k0_11);
        s0_12 = by_hand_scalar_fma(s0_12, q0, k0_12);
        s0_13 = by_hand_scalar_fma(s0_13, q0, k0_13);
        s0_14 = by_hand_scalar_fma(s0_14, q0, k0_14);
        s0_15 = by_hand_scalar_fma(s0_15, q0, k0_15);
    }
    s0_0 = (s0_0 * (0x1.279a74p-1f));
    s0_1 = (s0_1 * (0x1.279a74p-1f));
    s0_2 = (s0_2 * (0x1.279a74p-1f));
    s0_3 = (s0_3 * (0x1.279a74p-1f));
    s0_4 = (s0_4 * (0x1.279a74p-1f));
    s0_5 = (s0_5 * (0x1.279a74p-1f));
    s0_6 = (s0_6 * (0x1.279a74p-1f));
    s0_7 = (s0_7 * (0x1.279a74p-1f));
    s0_8 = (s0_8 * (0x1.279a74p-1f));
    s0_9 = (s0_9 * (0x1.279a74p-1f));
    s0_10 = (s0_10 * (0x1.279a74p-1f));
    s0_11 = (s0_11 * (0x1.279a74p-1f));
    s0_12 = (s0_12 * (0x1.279a74p-1f));
    s0_13 = (s0_13 * (0x1.279a74p-1f));
    s0_14 = (s0_14 * (0x1.279a74p-1f));
    s0_15 = (s0_15 * (0x1.279a74p-1f));
    block[0] = s0_0;
    block[1] = s0_1;
    block[2] = s0_2;
    block[3] = s0_3;
    block[4] = s0_4;
    block[5] = s0_5;
    block[6] = s0_6;
    block[7] = s0_7;
    block[8] = s0_8;
    block[9] = s0_9;
    block[10] = s0_10;
    block[11] = s0_11;
    block[12] = s0_12;
    block[13] = s0_13;
    block[14] = s0_14;
    block[15] = s0_15;
}

static by_hand_SCALAR
float by_hand_scalar_attention_softmax_1(float *block) {
    block[4] = -__builtin_inff();
    block[5] = -__builtin_inff();
    block[6] = -__builtin_inff();
    block[7] = -__builtin_inff();
    block[8] = -__builtin_inff();
    block[9] = -__builtin_inff();
    block[10] = -__builtin_inff();
    block[11] = -__builtin_inff();
    block[12] = -__builtin_inff();
    block[13] = -__builtin_inff();
    block[14] = -__builtin_inff();
    block[15] = -__builtin_inff();
    float sum[1];
    float greatest0 = block[0];
    greatest0 = by_hand_scalar_max(greatest0, block[1]);
    greatest0 = by_hand_scalar_max(greatest0, block[2]);
    greatest0 = by_hand_scalar_max(greatest0, block[3]);
    greatest0 = by_hand_scalar_max(greatest0, block[4]);
    greatest0 = by_hand_scalar_max(greatest0, block[5]);
    greatest0 = by_hand_scalar_max(greatest0, block[6]);
    greatest0 = by_hand_scalar_max(greatest0, block[7]);
    greatest0 = by_hand_scalar_max(greatest0, block[8]);
    greatest0 = by_hand_scalar_max(greatest0, block[9]);
    greatest0 = by_hand_scalar_max(greatest0, block[10]);
    greatest0 = by_hand_scalar_max(greatest0, block[11]);
    greatest0 = by_hand_scalar_max(greatest0, block[12]);
    greatest0 = by_hand_scalar_max(greatest0, block[13]);
    greatest0 = by_hand_scalar_max(greatest0, block[14]);
    greatest0 = by_hand_scalar_max(greatest0, block[15]);
    float base[1];
    base[0] = greatest0;
    const float less0 = (-base[0]);
    float total0 = 0.0f;
    {
        const float e0 = by_hand_scalar_exp((block[0] + less0));
        block[0] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[1] + less0));
        block[1] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[2] + less0));
        block[2] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[3] + less0));
        block[3] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[4] + less0));
        block[4] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[5] + less0));
        block[5] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[6] + less0));
        block[6] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[7] + less0));
        block[7] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[8] + less0));
        block[8] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[9] + less0));
        block[9] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[10] + less0));
        block[10] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[11] + less0));
        block[11] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[12] + less0));
        block[12] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[13] + less0));
        block[13] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[14] + less0));
        block[14] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[15] + less0));
        block[15] = e0;
        total0 = (total0 + e0);
    }
    float inverse[1];
    sum[0] = total0;
    inverse[0] = 1.0f / sum[0];
    return inverse[0];
}

static by_hand_SCALAR
void by_hand_scalar_attention_weighted_sum_1_0(const float *block, const float *value, const float *inverse,
    float *out) {
    float o0_0 = 0.0f;
    float o0_1 = 0.0f;
    float o0_2 = 0.0f;
    {
        const float w0 = block[0];
        o0_0 = by_hand_scalar_fma(o0_0, w0, *(value));
        o0_1 = by_hand_scalar_fma(o0_1, w0, *(value + 1));
        o0_2 = by_hand_scalar_fma(o0_2, w0, *(value + 2));
    }
    {
        const float w0 = block[1];
        o0_0 = by_hand_scalar_fma(o0_0, w0, *(value + 48));
        o0_1 = by_hand_scalar_fma(o0_1, w0, *(value + 48 + 1));
        o0_2 = by_hand_scalar_fma(o0_2, w0, *(value + 48 + 2));
    }
    {
        const float w0 = block[2];
        o0_0 = by_hand_scalar_fma(o0_0, w0, *(value + 96));
        o0_1 = by_hand_scalar_fma(o0_1, w0, *(value + 96 + 1));
        o0_2 = by_hand_scalar_fma(o0_2, w0, *(value + 96 + 2));
    }
    {
        const float w0 = block[3];
        o0_0 = by_hand_scalar_fma(o0_0, w0, *(value + 144));
        o0_1 = by_hand_scalar_fma(o0_1, w0, *(value + 144 + 1));
        o0_2 = by_hand_scalar_fma(o0_2, w0, *(value + 144 + 2));
    }
    out[0] = (o0_0 * inverse[0]);
    out[1] = (o0_1 * inverse[0]);
    out[2] = (o0_2 * inverse[0]);
}

static by_hand_SCALAR
void by_hand_scalar_attention_rows_1(const float *query, const float *panels, const float *value, float *block,
    float *out) {
    float inverse[1];
    by_hand_scalar_attention_scores_1_0(query, panels, block);
    (void)value, (void)inverse;
    inverse[0] = by_hand_scalar_attention_softmax_1(block);
    by_hand_scalar_attention_weighted_sum_1_0(block, value, inverse, out);
}

static by_hand_SCALAR
void by_hand_scalar_attention_scores_2_0(const float *query, const float *panels, float *block) {
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
    const float *panel = panels;
    {
        const float k0_0 = panel[0];
        const float k0_1 = panel[1];
        const float k0_2 = panel[2];
        const float k0_3 = panel[3];
        const float k0_4 = panel[4];
        const float k0_5 = panel[5];
        const float k0_6 = panel[6];
        const float k0_7 = panel[7];
        const float k0_8 = panel[8];
        const float k0_9 = panel[9];
        const float k0_10 = panel[10];
        const float k0_11 = panel[11];
        const float k0_12 = panel[12];
        const float k0_13 = panel[13];
        const float k0_14 = panel[14];
        const float k0_15 = panel[15];
        const float q0 = query[0];
        s0_0 = by_hand_scalar_fma(s0_0, q0, k0_0);
        s0_1 = by_hand_scalar_fma(s0_1, q0, k0_1);
        s0_2 = by_hand_scalar_fma(s0_2, q0, k0_2);
        s0_3 = by_hand_scalar_fma(s0_3, q0, k0_3);
        s0_4 = by_hand_scalar_fma(s0_4, q0, k0_4);
        s0_5 = by_hand_scalar_fma(s0_5, q0, k0_5);
        s0_6 = by_hand_scalar_fma(s0_6, q0, k0_6);
        s0_7 = by_hand_scalar_fma(s0_7, q0, k0_7);
        s0_8 = by_hand_scalar_fma(s0_8, q0, k0_8);
        s0_9 = by_hand_scalar_fma(s0_9, q0, k0_9);
        s0_10 = by_hand_scalar_fma(s0_10, q0, k0_10);
        s0_11 = by_hand_scalar_fma(s0_11, q0, k0_11);
        s0_12 = by_hand_scalar_fma(s0_12, q0, k0_12);
        s0_13 = by_hand_scalar_fma(s0_13, q0, k0_13);
        s0_14 = by_hand_scalar_fma(s0_14, q0, k0_14);
        s0_15 = by_hand_scalar_fma(s0_15, q0, k0_15);
    }
    {
        const float k0_0 = panel[16];
        const float k0_1 = panel[17];
        const float k0_2 = panel[18];
        const float k0_3 = panel[19];
        const float k0_4 = panel[20];
        const float k0_5 = panel[21];
        const float k0_6 = panel[22];
        const float k0_7 = panel[23];
        const float k0_8 = panel[24];
        const float k0_9 = panel[25];
        const float k0_10 = panel[26];
        const float k0_11 = panel[27];
        const float k0_12 = panel[28];
        const float k0_13 = panel[29];
        const float k0_14 = panel[30];
        const float k0_15 = panel[31];
        const float q0 = query[1];
        s0_0 = by_hand_scalar_fma(s0_0, q0, k0_0);
        s0_1 = by_hand_scalar_fma(s0_1, q0, k0_1);
        s0_2 = by_hand_scalar_fma(s0_2, q0, k0_2);
        s0_3 = by_hand_scalar_fma(s0_3, q0, k0_3);
        s0_4 = by_hand_scalar_fma(s0_4, q0, k0_4);
        s0_5 = by_hand_scalar_fma(s0_5, q0, k0_5);
        s0_6 = by_hand_scalar_fma(s0_6, q0, k0_6);
        s0_7 = by_hand_scalar_fma(s0_7, q0, k0_7);
        s0_8 = by_hand_scalar_fma(s0_8, q0, k0_8);
        s0_9 = by_hand_scalar_fma(s0_9, q0, k0_9);
        s0_10 = by_hand_scalar_fma(s0_10, q0, k0_10);
        s0_11 = by_hand_scalar_fma(s0_11, q0, k0_11);
        s0_12 = by_hand_scalar_fma(s0_12, q0, k0_12);
        s0_13 = by_hand_scalar_fma(s0_13, q0, k0_13);
        s0_14 = by_hand_scalar_fma(s0_14, q0, k0_14);
        s0_15 = by_hand_scalar_fma(s0_15, q0, k0_15);
    }
    {
        const float k0_0 = panel[32];
        const float k0_1 = panel[33];
        const float k0_2 = panel[34];
        const float k0_3 = panel[35];
        const float k0_4 = panel[36];
        const float k0_5 = panel[37];
        const float k0_6 = panel[38];
        const float k0_7 = panel[39];
        const float k0_8 = panel[40];
        const float k0_9 = panel[41];
        const float k0_10 = panel[42];
        const float k0_11 = panel[43];
        const float k0_12 = panel[44];
        const float k0_13 = panel[45];
        const float k0_14 = panel[46];
        const float k0_15 = panel[47];
        const float q0 = query[2];
        s0_0 = by_hand_scalar_fma(s0_0, q0, k0_0);
        s0_1 = by_hand_scalar_fma(s0_1, q0, k0_1);
        s0_2 = by_hand_scalar_fma(s0_2, q0, k0_2);
        s0_3 = by_hand_scalar_fma(s0_3, q0, k0_3);
        s0_4 = by_hand_scalar_fma(s0_4, q0, k0_4);
        s0_5 = by_hand_scalar_fma(s0_5, q0, k0_5);
        s0_6 = by_hand_scalar_fma(s0_6, q0, k0_6);
        s0_7 = by_hand_scalar_fma(s0_7, q0, k0_7);
        s0_8 = by_hand_scalar_fma(s0_8, q0, k0_8);
        s0_9 = by_hand_scalar_fma(s0_9, q0, k0_9);
        s0_10 = by_hand_scalar_fma(s0_10, q0, k0_10);
        s0_11 = by_hand_scalar_fma(s0_11, q0, k0_11);
        s0_12 = by_hand_scalar_fma(s0_12, q0, k0_12);
        s0_13 = by_hand_scalar_fma(s0_13, q0, k0_13);
        s0_14 = by_hand_scalar_fma(s0_14, q0, k0_14);
        s0_15 = by_hand_scalar_fma(s0_15, q0, k0_15);
    }
    s0_0 = (s0_0 * (0x1.279a74p-1f));
    s0_1 = (s0_1 * (0x1.279a74p-1f));
    s0_2 = (s0_2 * (0x1.279a74p-1f));
    s0_3 = (s0_3 * (0x1.279a74p-1f));
    s0_4 = (s0_4 * (0x1.279a74p-1f));
    s0_5 = (s0_5 * (0x1.279a74p-1f));
    s0_6 = (s0_6 * (0x1.279a74p-1f));
    s0_7 = (s0_7 * (0x1.279a74p-1f));
    s0_8 = (s0_8 * (0x1.279a74p-1f));
    s0_9 = (s0_9 * (0x1.279a74p-1f));
    s0_10 = (s0_10 * (0x1.279a74p-1f));
    s0_11 = (s0_11 * (0x1.279a74p-1f));
    s0_12 = (s0_12 * (0x1.279a74p-1f));
    s0_13 = (s0_13 * (0x1.279a74p-1f));
    s0_14 = (s0_14 * (0x1.279a74p-1f));
    s0_15 = (s0_15 * (0x1.279a74p-1f));
    block[0] = s0_0;
    block[1] = s0_1;
    block[2] = s0_2;
    block[3] = s0_3;
    block[4] = s0_4;
    block[5] = s0_5;
    block[6] = s0_6;
    block[7] = s0_7;
    block[8] = s0_8;
    block[9] = s0_9;
    block[10] = s0_10;
    block[11] = s0_11;
    block[12] = s0_12;
    block[13] = s0_13;
    block[14] = s0_14;
    block[15] = s0_15;
}

static by_hand_SCALAR
float by_hand_scalar_attention_softmax_2(float *block) {
    block[4] = -__builtin_inff();
    block[5] = -__builtin_inff();
    block[6] = -__builtin_inff();
    block[7] = -__builtin_inff();
    block[8] = -__builtin_inff();
    block[9] = -__builtin_inff();
    block[10] = -__builtin_inff();
    block[11] = -__builtin_inff();
    block[12] = -__builtin_inff();
    block[13] = -__builtin_inff();
    block[14] = -__builtin_inff();
    block[15] = -__builtin_inff();
    float sum[1];
    float greatest0 = block[0];
    greatest0 = by_hand_scalar_max(greatest0, block[1]);
    greatest0 = by_hand_scalar_max(greatest0, block[2]);
    greatest0 = by_hand_scalar_max(greatest0, block[3]);
    greatest0 = by_hand_scalar_max(greatest0, block[4]);
    greatest0 = by_hand_scalar_max(greatest0, block[5]);
    greatest0 = by_hand_scalar_max(greatest0, block[6]);
    greatest0 = by_hand_scalar_max(greatest0, block[7]);
    greatest0 = by_hand_scalar_max(greatest0, block[8]);
    greatest0 = by_hand_scalar_max(greatest0, block[9]);
    greatest0 = by_hand_scalar_max(greatest0, block[10]);
    greatest0 = by_hand_scalar_max(greatest0, block[11]);
    greatest0 = by_hand_scalar_max(greatest0, block[12]);
    greatest0 = by_hand_scalar_max(greatest0, block[13]);
    greatest0 = by_hand_scalar_max(greatest0, block[14]);
    greatest0 = by_hand_scalar_max(greatest0, block[15]);
    float base[1];
    base[0] = greatest0;
    const float less0 = (-base[0]);
    float total0 = 0.0f;
    {
        const float e0 = by_hand_scalar_exp((block[0] + less0));
        block[0] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[1] + less0));
        block[1] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[2] + less0));
        block[2] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[3] + less0));
        block[3] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[4] + less0));
        block[4] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[5] + less0));
        block[5] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[6] + less0));
        block[6] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[7] + less0));
        block[7] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[8] + less0));
        block[8] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[9] + less0));
        block[9] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[10] + less0));
        block[10] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[11] + less0));
        block[11] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[12] + less0));
        block[12] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[13] + less0));
        block[13] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[14] + less0));
        block[14] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[15] + less0));
        block[15] = e0;
        total0 = (total0 + e0);
    }
    float inverse[1];
    sum[0] = total0;
    inverse[0] = 1.0f / sum[0];
    return inverse[0];
}

static by_hand_SCALAR
void by_hand_scalar_attention_weighted_sum_2_0(const float *block, const float *value, const float *inverse,
    float *out) {
    float o0_0 = 0.0f;
    float o0_1 = 0.0f;
    float o0_2 = 0.0f;
    {
        const float w0 = block[0];
        o0_0 = by_hand_scalar_fma(o0_0, w0, *(value));
        o0_1 = by_hand_scalar_fma(o0_1, w0, *(value + 1));
        o0_2 = by_hand_scalar_fma(o0_2, w0, *(value + 2));
    }
    {
        const float w0 = block[1];
        o0_0 = by_hand_scalar_fma(o0_0, w0, *(value + 48));
        o0_1 = by_hand_scalar_fma(o0_1, w0, *(value + 48 + 1));
        o0_2 = by_hand_scalar_fma(o0_2, w0, *(value + 48 + 2));
    }
    {
        const float w0 = block[2];
        o0_0 = by_hand_scalar_fma(o0_0, w0, *(value + 96));
        o0_1 = by_hand_scalar_fma(o0_1, w0, *(value + 96 + 1));
        o0_2 = by_hand_scalar_fma(o0_2, w0, *(value + 96 + 2));
    }
    {
        const float w0 = block[3];
        o0_0 = by_hand_scalar_fma(o0_0, w0, *(value + 144));
        o0_1 = by_hand_scalar_fma(o0_1, w0, *(value + 144 + 1));
        o0_2 = by_hand_scalar_fma(o0_2, w0, *(value + 144 + 2));
    }
    out[0] = (o0_0 * inverse[0]);
    out[1] = (o0_1 * inverse[0]);
    out[2] = (o0_2 * inverse[0]);
}

static by_hand_SCALAR
void by_hand_scalar_attention_rows_2(const float *query, const float *panels, const float *value, float *block,
    float *out) {
    float inverse[1];
    by_hand_scalar_attention_scores_2_0(query, panels, block);
    (void)value, (void)inverse;
    inverse[0] = by_hand_scalar_attention_softmax_2(block);
    by_hand_scalar_attention_weighted_sum_2_0(block, value, inverse, out);
}

static by_hand_SCALAR
void by_hand_scalar_attention_scores_3_0(const float *query, const float *panels, float *block) {
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
    const float *panel = panels;
    {
        const float k0_0 = panel[0];
        const float k0_1 = panel[1];
        const float k0_2 = panel[2];
        const float k0_3 = panel[3];
        const float k0_4 = panel[4];
        const float k0_5 = panel[5];
        const float k0_6 = panel[6];
        const float k0_7 = panel[7];
        const float k0_8 = panel[8];
        const float k0_9 = panel[9];
        const float k0_10 = panel[10];
        const float k0_11 = panel[11];
        const float k0_12 = panel[12];
        const float k0_13 = panel[13];
        const float k0_14 = panel[14];
        const float k0_15 = panel[15];
        const float q0 = query[0];
        s0_0 = by_hand_scalar_fma(s0_0, q0, k0_0);
        s0_1 = by_hand_scalar_fma(s0_1, q0, k0_1);
        s0_2 = by_hand_scalar_fma(s0_2, q0, k0_2);
        s0_3 = by_hand_scalar_fma(s0_3, q0, k0_3);
        s0_4 = by_hand_scalar_fma(s0_4, q0, k0_4);
        s0_5 = by_hand_scalar_fma(s0_5, q0, k0_5);
        s0_6 = by_hand_scalar_fma(s0_6, q0, k0_6);
        s0_7 = by_hand_scalar_fma(s0_7, q0, k0_7);
        s0_8 = by_hand_scalar_fma(s0_8, q0, k0_8);
        s0_9 = by_hand_scalar_fma(s0_9, q0, k0_9);
        s0_10 = by_hand_scalar_fma(s0_10, q0, k0_10);
        s0_11 = by_hand_scalar_fma(s0_11, q0, k0_11);
        s0_12 = by_hand_scalar_fma(s0_12, q0, k0_12);
        s0_13 = by_hand_scalar_fma(s0_13, q0, k0_13);
        s0_14 = by_hand_scalar_fma(s0_14, q0, k0_14);
        s0_15 = by_hand_scalar_fma(s0_15, q0, k0_15);
    }
    {
        const float k0_0 = panel[16];
        const float k0_1 = panel[17];
        const float k0_2 = panel[18];
        const float k0_3 = panel[19];
        const float k0_4 = panel[20];
        const float k0_5 = panel[21];
        const float k0_6 = panel[22];
        const float k0_7 = panel[23];
        const float k0_8 = panel[24];
        const float k0_9 = panel[25];
        const float k0_10 = panel[26];
        const float k0_11 = panel[27];
        const float k0_12 = panel[28];
        const float k0_13 = panel[29];
        const float k0_14 = panel[30];
        const float k0_15 = panel[31];
        const float q0 = query[1];
        s0_0 = by_hand_scalar_fma(s0_0, q0, k0_0);
        s0_1 = by_hand_scalar_fma(s0_1, q0, k0_1);
        s0_2 = by_hand_scalar_fma(s0_2, q0, k0_2);
        s0_3 = by_hand_scalar_fma(s0_3, q0, k0_3);
        s0_4 = by_hand_scalar_fma(s0_4, q0, k0_4);
        s0_5 = by_hand_scalar_fma(s0_5, q0, k0_5);
        s0_6 = by_hand_scalar_fma(s0_6, q0, k0_6);
        s0_7 = by_hand_scalar_fma(s0_7, q0, k0_7);
        s0_8 = by_hand_scalar_fma(s0_8, q0, k0_8);
        s0_9 = by_hand_scalar_fma(s0_9, q0, k0_9);
        s0_10 = by_hand_scalar_fma(s0_10, q0, k0_10);
        s0_11 = by_hand_scalar_fma(s0_11, q0, k0_11);
        s0_12 = by_hand_scalar_fma(s0_12, q0, k0_12);
        s0_13 = by_hand_scalar_fma(s0_13, q0, k0_13);
        s0_14 = by_hand_scalar_fma(s0_14, q0, k0_14);
        s0_15 = by_hand_scalar_fma(s0_15, q0, k0_15);
    }
    {
        const float k0_0 = panel[32];
        const float k0_1 = panel[33];
        const float k0_2 = panel[34];
        const float k0_3 = panel[35];
        const float k0_4 = panel[36];
        const float k0_5 = panel[37];
        const float k0_6 = panel[38];
        const float k0_7 = panel[39];
        const float k0_8 = panel[40];
        const float k0_9 = panel[41];
        const float k0_10 = panel[42];
        const float k0_11 = panel[43];
        const float k0_12 = panel[44];
        const float k0_13 = panel[45];
        const float k0_14 = panel[46];
        const float k0_15 = panel[47];
        const float q0 = query[2];
        s0_0 = by_hand_scalar_fma(s0_0, q0, k0_0);
        s0_1 = by_hand_scalar_fma(s0_1, q0, k0_1);
        s0_2 = by_hand_scalar_fma(s0_2, q0, k0_2);
        s0_3 = by_hand_scalar_fma(s0_3, q0, k0_3);
        s0_4 = by_hand_scalar_fma(s0_4, q0, k0_4);
        s0_5 = by_hand_scalar_fma(s0_5, q0, k0_5);
        s0_6 = by_hand_scalar_fma(s0_6, q0, k0_6);
        s0_7 = by_hand_scalar_fma(s0_7, q0, k0_7);
        s0_8 = by_hand_scalar_fma(s0_8, q0, k0_8);
        s0_9 = by_hand_scalar_fma(s0_9, q0, k0_9);
        s0_10 = by_hand_scalar_fma(s0_10, q0, k0_10);
        s0_11 = by_hand_scalar_fma(s0_11, q0, k0_11);
        s0_12 = by_hand_scalar_fma(s0_12, q0, k0_12);
        s0_13 = by_hand_scalar_fma(s0_13, q0, k0_13);
        s0_14 = by_hand_scalar_fma(s0_14, q0, k0_14);
        s0_15 = by_hand_scalar_fma(s0_15, q0, k0_15);
    }
    s0_0 = (s0_0 * (0x1.279a74p-1f));
    s0_1 = (s0_1 * (0x1.279a74p-1f));
    s0_2 = (s0_2 * (0x1.279a74p-1f));
    s0_3 = (s0_3 * (0x1.279a74p-1f));
    s0_4 = (s0_4 * (0x1.279a74p-1f));
    s0_5 = (s0_5 * (0x1.279a74p-1f));
    s0_6 = (s0_6 * (0x1.279a74p-1f));
    s0_7 = (s0_7 * (0x1.279a74p-1f));
    s0_8 = (s0_8 * (0x1.279a74p-1f));
    s0_9 = (s0_9 * (0x1.279a74p-1f));
    s0_10 = (s0_10 * (0x1.279a74p-1f));
    s0_11 = (s0_11 * (0x1.279a74p-1f));
    s0_12 = (s0_12 * (0x1.279a74p-1f));
    s0_13 = (s0_13 * (0x1.279a74p-1f));
    s0_14 = (s0_14 * (0x1.279a74p-1f));
    s0_15 = (s0_15 * (0x1.279a74p-1f));
    block[0] = s0_0;
    block[1] = s0_1;
    block[2] = s0_2;
    block[3] = s0_3;
    block[4] = s0_4;
    block[5] = s0_5;
    block[6] = s0_6;
    block[7] = s0_7;
    block[8] = s0_8;
    block[9] = s0_9;
    block[10] = s0_10;
    block[11] = s0_11;
    block[12] = s0_12;
    block[13] = s0_13;
    block[14] = s0_14;
    block[15] = s0_15;
}

static by_hand_SCALAR
float by_hand_scalar_attention_softmax_3(float *block) {
    block[4] = -__builtin_inff();
    block[5] = -__builtin_inff();
    block[6] = -__builtin_inff();
    block[7] = -__builtin_inff();
    block[8] = -__builtin_inff();
    block[9] = -__builtin_inff();
    block[10] = -__builtin_inff();
    block[11] = -__builtin_inff();
    block[12] = -__builtin_inff();
    block[13] = -__builtin_inff();
    block[14] = -__builtin_inff();
    block[15] = -__builtin_inff();
    float sum[1];
    float greatest0 = block[0];
    greatest0 = by_hand_scalar_max(greatest0, block[1]);
    greatest0 = by_hand_scalar_max(greatest0, block[2]);
    greatest0 = by_hand_scalar_max(greatest0, block[3]);
    greatest0 = by_hand_scalar_max(greatest0, block[4]);
    greatest0 = by_hand_scalar_max(greatest0, block[5]);
    greatest0 = by_hand_scalar_max(greatest0, block[6]);
    greatest0 = by_hand_scalar_max(greatest0, block[7]);
    greatest0 = by_hand_scalar_max(greatest0, block[8]);
    greatest0 = by_hand_scalar_max(greatest0, block[9]);
    greatest0 = by_hand_scalar_max(greatest0, block[10]);
    greatest0 = by_hand_scalar_max(greatest0, block[11]);
    greatest0 = by_hand_scalar_max(greatest0, block[12]);
    greatest0 = by_hand_scalar_max(greatest0, block[13]);
    greatest0 = by_hand_scalar_max(greatest0, block[14]);
    greatest0 = by_hand_scalar_max(greatest0, block[15]);
    float base[1];
    base[0] = greatest0;
    const float less0 = (-base[0]);
    float total0 = 0.0f;
    {
        const float e0 = by_hand_scalar_exp((block[0] + less0));
        block[0] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[1] + less0));
        block[1] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[2] + less0));
        block[2] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[3] + less0));
        block[3] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[4] + less0));
        block[4] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[5] + less0));
        block[5] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[6] + less0));
        block[6] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[7] + less0));
        block[7] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[8] + less0));
        block[8] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[9] + less0));
        block[9] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[10] + less0));
        block[10] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[11] + less0));
        block[11] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[12] + less0));
        block[12] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[13] + less0));
        block[13] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[14] + less0));
        block[14] = e0;
        total0 = (total0 + e0);
    }
    {
        const float e0 = by_hand_scalar_exp((block[15] + less0));
        block[15] = e0;
        total0 = (total0 + e0);
    }
    float inverse[1];
    sum[0] = total0;
    inverse[0] = 1.0f / sum[0];
    return inverse[0];
}

static by_hand_SCALAR
void by_hand_scalar_attention_weighted_sum_3_0(const float *block, const float *value, const float *inverse,
    float *out) {
    float o0_0 = 0.0f;
    float o0_1 = 0.0f;
    float o0_2 = 0.0f;
    {
        const float w0 = block[0];
        o0_0 = by_hand_scalar_fma(o0_0, w0, *(value));
        o0_1 = by_hand_scalar_fma(o0_1, w0, *(value + 1));
        o0_2 = by_hand_scalar_fma(o0_2, w0, *(value + 2));
    }
    {
        const float w0 = block[1];
        o0_0 = by_hand_scalar_fma(o0_0, w0, *(value + 48));
        o0_1 = by_hand_scalar_fma(o0_1, w0, *(value + 48 + 1));
        o0_2 = by_hand_scalar_fma(o0_2, w0, *(value + 48 + 2));
    }
    {
        const float w0 = block[2];
        o0_0 = by_hand_scalar_fma(o0_0, w0, *(value + 96));
        o0_1 = by_hand_scalar_fma(o0_1, w0, *(value + 96 + 1));
        o0_2 = by_hand_scalar_fma(o0_2, w0, *(value + 96 + 2));
    }
    {
        const float w0 = block[3];
        o0_0 = by_hand_scalar_fma(o0_0, w0, *(value + 144));
        o0_1 = by_hand_scalar_fma(o0_1, w0, *(value + 144 + 1));
        o0_2 = by_hand_scalar_fma(o0_2, w0, *(value + 144 + 2));
    }
    out[0] = (o0_0 * inverse[0]);
    out[1] = (o0_1 * inverse[0]);
    out[2] = (o0_2 * inverse[0]);
}

static by_hand_SCALAR
void by_hand_scalar_attention_rows_3(const float *query, const float *panels, const float *value, float *block,
    float *out) {
    float inverse[1];
    by_hand_scalar_attention_scores_3_0(query, panels, block);
    (void)value, (void)inverse;
    inverse[0] = by_hand_scalar_attention_softmax_3(block);
    by_hand_scalar_attention_weighted_sum_3_0(block, value, inverse, out);
}

/* attention of 1 head of 3 over the keys of the same sequence */
static by_hand_SCALAR
void by_hand_scalar_attention(const by_hand_run *run, const float *q, const float *k, const float *v, float *out) {
    float *panels = run->scratch, *block = run->scratch + 48;
    by_hand_scalar_attention_pack_0_0(k, panels);
    by_hand_scalar_attention_rows_0(q, panels, v, block, out);
    by_hand_scalar_attention_rows_1(q + 48, panels, v, block, out + 3);
    by_hand_scalar_attention_rows_2(q + 96, panels, v, block, out + 6);
    by_hand_scalar_attention_rows_3(q + 144, panels, v, block, out + 9);
}

/* layer 0, self attention: softmax(query x key * 0.57735) x value, 1 heads of 3 */
static by_hand_SCALAR
void by_hand_scalar_step_layer0_attention_attended(const by_hand_run *run, int thread) {
    (void)thread;
    by_hand_scalar_attention(run, run->workspace + by_hand_x_attention_query_key_value,
        run->workspace + by_hand_x_attention_query_key_value + 16,
        run->workspace + by_hand_x_attention_query_key_value + 32, run->out_hidden);
}

static __attribute__((noinline)) by_hand_SCALAR
void by_hand_scalar_forward_chunk(by_hand_run *run) {
    by_hand_before(run, 0);
    by_hand_scalar_step_layer0_attention_query_key_value(run, 0);
    by_hand_before(run, 1);
    if (run->out_hidden) by_hand_scalar_step_layer0_attention_attended(run, 0);
    by_hand_before(run, 2);
}

const char *by_hand_status_text(int status) {
    switch (status) {
        case BY_HAND_OK: return "fine";
        case BY_HAND_BAD_ARGUMENT: return "a null pointer, a struct of another size, or a bad count";
        case BY_HAND_BAD_WEIGHTS: return "the weights are damaged, or of another size, model, layout or version";
        case BY_HAND_NO_TARGET: return "this machine lacks the instructions, or is big-endian";
        case BY_HAND_SHORT_WORKSPACE: return "the workspace is too small or not aligned";
        case BY_HAND_BAD_LENGTH: return "a sequence is empty or too long";
        case BY_HAND_BAD_TOKEN: return "an id is outside its table";
        default: return "unknown status";
    }
}

/* FNV-1a, 64 bit */
static uint64_t by_hand_hash(uint64_t hash, const unsigned char *bytes, size_t size) {
    if (size == 0) return hash;
    if (size == 1) return (hash ^ bytes[0]) * UINT64_C(0x100000001b3);
    return by_hand_hash(by_hand_hash(hash, bytes, size / 2), bytes + size / 2, size - size / 2);
}

static uint64_t by_hand_u64(const unsigned char *b) {
    return (uint64_t)b[0] | (uint64_t)b[1] << 8 | (uint64_t)b[2] << 16 | (uint64_t)b[3] << 24 | (uint64_t)b[4] << 32 |
        (uint64_t)b[5] << 40 | (uint64_t)b[6] << 48 | (uint64_t)b[7] << 56;
}

/* The header of a .attnw: magic, version, hashes of model and layout, dtype, sizes, zeros, checksums. */
static int by_hand_good_weights(const unsigned char *bytes, size_t size, int verify) {
    const uint64_t seed = UINT64_C(0xcbf29ce484222325);
    if (size != BY_HAND_WEIGHTS_BYTES || (uintptr_t)bytes % BY_HAND_ALIGNMENT != 0) return 0;
    if (by_hand_u64(bytes) != UINT64_C(0x1a0a0d574e545441) || by_hand_u64(bytes + 8) != (UINT64_C(1) << 32 | 1))
        return 0;
    if (by_hand_u64(bytes + 120) != by_hand_hash(seed, bytes, 120)) return 0;
    if (by_hand_u64(bytes + 16) != UINT64_C(0x15ddb4f768ecaee6) ||
        by_hand_u64(bytes + 56) != UINT64_C(0x6c3145c1f1741413))
        return 0;
    if (by_hand_u64(bytes + 24) != UINT64_C(3) << 32) return 0; /* tensors; f32 */
    if (by_hand_u64(bytes + 32) != 128 || by_hand_u64(bytes + 40) != UINT64_C(1216)) return 0;
    if (by_hand_u64(bytes + 64) | by_hand_u64(bytes + 72) | by_hand_u64(bytes + 80) | by_hand_u64(bytes + 88) |
        by_hand_u64(bytes + 96) | by_hand_u64(bytes + 104) | by_hand_u64(bytes + 112))
        return 0;
    return !verify || by_hand_u64(bytes + 48) == by_hand_hash(seed, bytes + 128, (size_t)1216u);
}

static int by_hand_same(const char *a, const char *b) {
    return *a == *b && (*a == 0 || by_hand_same(a + 1, b + 1));
}

static const char *const by_hand_targets[] = {"scalar"};

/* Index of the best target that this CPU has, or of the requested one; -1: none. */
static int by_hand_pick(const char *wanted) {
    if (!wanted || by_hand_same(wanted, "scalar")) return 0;
    return -1;
}

int by_hand_init(by_hand_ctx *ctx, const void *weights, size_t bytes, const by_hand_options *options) {
    if (!ctx || !weights || (options && options->size != sizeof *options)) return BY_HAND_BAD_ARGUMENT;
    const int threads = options && options->threads > 0 ? options->threads : 1;
    if (options && (options->threads < 0 || options->threads > 4096 || (threads > 1 && !options->parallel_for)))
        return BY_HAND_BAD_ARGUMENT;
    if (!by_hand_good_weights((const unsigned char *)weights, bytes, options ? options->verify : 0))
        return BY_HAND_BAD_WEIGHTS;
    const int target = by_hand_pick(options ? options->target : NULL);
    static const uint16_t one = 1; /* the numbers of the weights begin with their lowest byte */
    if (target < 0 || *(const unsigned char *)&one != 1) return BY_HAND_NO_TARGET;
    ctx->weights = (const float *)(const void *)((const unsigned char *)weights + 128);
    ctx->target = target;
    ctx->threads = threads;
    ctx->parallel_for = options ? options->parallel_for : NULL;
    ctx->pool = options ? options->pool : NULL;
    ctx->on_step = options ? options->on_step : NULL;
    ctx->watcher = options ? options->watcher : NULL;
    return BY_HAND_OK;
}

const char *by_hand_target(const by_hand_ctx *ctx) {
    return ctx ? by_hand_targets[ctx->target] : "";
}

static int by_hand_check_input(const by_hand_input *input) {
    if (input->lengths && input->lengths[0] != 4) return BY_HAND_BAD_LENGTH;
    return BY_HAND_OK;
}

int by_hand_forward(const by_hand_ctx *ctx, const by_hand_input *input, by_hand_output *output, void *workspace,
    size_t bytes) {
    if (!ctx || !input || !output || !workspace || input->size != sizeof *input || output->size != sizeof *output)
        return BY_HAND_BAD_ARGUMENT;
    if (input->batch != 1 || !input->features) return BY_HAND_BAD_ARGUMENT;
    if (bytes < BY_HAND_WORKSPACE_BYTES(ctx->threads) || (uintptr_t)workspace % BY_HAND_ALIGNMENT != 0)
        return BY_HAND_SHORT_WORKSPACE;
    const int status = by_hand_check_input(input);
    if (status != BY_HAND_OK) return status;
    unsigned char *memory = (unsigned char *)workspace;
    int32_t *starts = (int32_t *)(void *)memory;
    by_hand_run run = {0};
    run.weights = ctx->weights;
    run.workspace = (float *)(void *)(memory + 64);
    run.scratch = run.workspace + 208;
    run.threads = ctx->threads;
    run.parallel_for = ctx->parallel_for;
    run.pool = ctx->pool;
    run.on_step = ctx->on_step;
    run.watcher = ctx->watcher;
    run.starts = starts;
    run.features = input->features;
    run.out_hidden = output->hidden;
    starts[0] = 0;
    starts[1] = 4;
    run.rows = 4;
    run.sequences = run.ended = 1;
    switch (ctx->target) {
        case 0: by_hand_scalar_forward_chunk(&run); break;
    }
    return BY_HAND_OK;
}
