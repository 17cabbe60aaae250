/* by_hand.c: encoder of 1 layers over exactly 4 rows, d_model 6; model hash 15ddb4f768ecaee6
 *
 * Made by attnc 0.1.0: attnc compile by_hand.attn --target scalar
 * A workspace of 896 bytes and 2496 a thread; weights of 1344 bytes.
 * The output of attnc belongs to its user, without conditions. */
#include "by_hand.h"

#if BY_HAND_HEADER != 0xd68bec84u
#error "by_hand.h is of another run of attnc than this file"
#endif
#ifdef __FAST_MATH__
#error "this file counts on IEEE arithmetic: compile it without -ffast-math"
#endif
#if defined(__FLT_EVAL_METHOD__) && (__FLT_EVAL_METHOD__ < 0 || __FLT_EVAL_METHOD__ == 1 || __FLT_EVAL_METHOD__ == 2)
#error "this file counts on floats that are rounded at once: compile it with -msse2 -mfpmath=sse"
#endif

typedef struct by_hand_run {
    const float *weights;
    float *workspace, *scratch;
    size_t rows, sequences;   /* of this chunk */
    size_t ended;             /* sequences whose last row is in it */
    const int32_t *starts;    /* [sequences + 1] first row of each sequence */
    const float *features;
    float *out_hidden;
    int threads;
    void (*parallel_for)(void *pool, int count, void (*task)(void *with, int index), void *with);
    void *pool;
} by_hand_run;

/* ------------------------------------------------------------------ target scalar */

#if defined(__x86_64__)
#define by_hand_SCALAR __attribute__((target("no-fma,no-fma4,no-avx512f")))
#elif defined(__GNUC__) && !defined(__clang__)
#define by_hand_SCALAR __attribute__((optimize("fp-contract=off")))
#else
#define by_hand_SCALAR
#endif

static inline __attribute__((unused)) by_hand_SCALAR
unsigned by_hand_scalar_low_bits(float a) {
    const union { float number; unsigned bits; } both = {a};
    return both.bits & 15u;
}

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

static inline __attribute__((unused)) by_hand_SCALAR
float by_hand_scalar_sqrt(float a) {
#if defined(__x86_64__)
    float root;
    __asm__("sqrtss %1, %0" : "=x"(root) : "x"(a));
    return root;
#elif defined(__aarch64__)
    float root;
    __asm__("fsqrt %s0, %s1" : "=w"(root) : "w"(a));
    return root;
#else
    return __builtin_sqrtf(a);
#endif
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

/* exp(x): 2^n times a polynomial in r, |r| <= ln(2)/2 (at most 2 ulp); NaN stays, the ends are 0 and inf */
static inline __attribute__((unused)) by_hand_SCALAR
float by_hand_scalar_exp(float x) {
    float t = by_hand_scalar_min(100.0f, by_hand_scalar_max((-110.0f), x));
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
    return by_hand_scalar_exp2i(y, n);
}

/* 2^x, x at most 160: 2^n times a polynomial in r, |r| <= 1/2 (at most 2 ulp); below -150 it is 0, NaN stays. Where a
 * power of e is wanted only beside 1, or as a weight, its argument is scaled: that error is relative to the power. */
static inline __attribute__((unused)) by_hand_SCALAR
float by_hand_scalar_exp2(float x) {
    float t = by_hand_scalar_max((-160.0f), x), n = by_hand_scalar_round(t), r = (t - n);
    float y = (0x1.5bba12p-10f);
    y = by_hand_scalar_fma((0x1.3ceba8p-7f), y, r);
    y = by_hand_scalar_fma((0x1.c6b7bep-5f), y, r);
    y = by_hand_scalar_fma((0x1.ebf9bap-3f), y, r);
    y = by_hand_scalar_fma((0x1.62e428p-1f), y, r);
    y = by_hand_scalar_fma(1.0f, y, r);
    return by_hand_scalar_exp2i(y, n);
}

/* tanh(x): an odd polynomial below 0.625, from there 1 - 2 / (e^(2|x|) + 1) */
static inline __attribute__((unused)) by_hand_SCALAR
float by_hand_scalar_tanh(float x) {
    float size = __builtin_fabsf(x), u = (x * x);
    float y = (-0x1.73bf82p-8f);
    y = by_hand_scalar_fma((0x1.518fe0p-6f), y, u);
    y = by_hand_scalar_fma((-0x1.b81dfap-5f), y, u);
    y = by_hand_scalar_fma((0x1.1105cep-3f), y, u);
    y = by_hand_scalar_fma((-0x1.555526p-2f), y, u);
    y = by_hand_scalar_fma(1.0f, y, u);
    float large = (2.0f / (by_hand_scalar_exp2(by_hand_scalar_min(160.0f, (size * (0x1.715476p+1f)))) + 1.0f));
    large = __builtin_copysignf((1.0f - large), x);
    return (size < 0.625f ? (x * y) : large);
}

static inline __attribute__((unused)) by_hand_SCALAR
float by_hand_scalar_relu(float x) {
    return by_hand_scalar_max(0.0f, x);
}

static inline __attribute__((unused)) by_hand_SCALAR
float by_hand_scalar_relu2(float x) {
    float y = by_hand_scalar_max(0.0f, x);
    return (y * y);
}

/* x (1 + erf(x / sqrt 2)) / 2 by Q = exp(-x^2 / 2) u P(u), u = 1 / (1 + 0.36 |x|): relative error of Q at most 2e-6 up
 * to 3, 6e-5 beyond */
static inline __attribute__((unused)) by_hand_SCALAR
float by_hand_scalar_gelu(float x) {
    float u = (1.0f / by_hand_scalar_fma(1.0f, __builtin_fabsf(x), (0x1.70a3d8p-2f)));
    float y = (0x1.6de5p-5f);
    y = by_hand_scalar_fma((-0x1.5b667ap-3f), y, u);
    y = by_hand_scalar_fma((0x1.4fca5cp-3f), y, u);
    y = by_hand_scalar_fma((0x1.4e82ccp-5f), y, u);
    y = by_hand_scalar_fma((0x1.116028p-3f), y, u);
    y = by_hand_scalar_fma((0x1.24fea4p-3f), y, u);
    y = by_hand_scalar_fma((0x1.2623d8p-3f), y, u);
    y = ((y * u) * by_hand_scalar_exp2(((x * x) * (-0x1.715476p-1f))));
    return (x * (x < 0.0f ? y : (1.0f - y)));
}

/* x (1 + tanh(a)) / 2 with a = sqrt(2/pi) (x + 0.044715 x^3), which is x / (1 + e^(-2 a)) */
static inline __attribute__((unused)) by_hand_SCALAR
float by_hand_scalar_gelu_tanh(float x) {
    float power = (x * by_hand_scalar_fma((-0x1.26aec2p+1f), (x * x), (-0x1.a5a7dp-4f)));
    return (x / (1.0f + by_hand_scalar_exp2(by_hand_scalar_min(160.0f, power))));
}

static inline __attribute__((unused)) by_hand_SCALAR
float by_hand_scalar_silu(float x) {
    float power = (x * (-0x1.715476p+0f));
    return (x / (1.0f + by_hand_scalar_exp2(by_hand_scalar_min(160.0f, power))));
}

static inline __attribute__((unused)) by_hand_SCALAR
float by_hand_scalar_quick_gelu(float x) {
    float power = (x * (-0x1.3a4cbep+1f));
    return (x / (1.0f + by_hand_scalar_exp2(by_hand_scalar_min(160.0f, power))));
}

/* the same of one number */
static inline __attribute__((unused)) by_hand_SCALAR
float by_hand_scalar_exp1(float x) {
    float lanes[1];
    *lanes = by_hand_scalar_exp(x);
    return lanes[0];
}

/* acc + a b, as the vectors round it */
static inline __attribute__((unused)) by_hand_SCALAR
float by_hand_scalar_fma1(float acc, float a, float b) {
    float lanes[1];
    *lanes = by_hand_scalar_fma(acc, a, b);
    return lanes[0];
}

/* a c + b s */
static inline __attribute__((unused)) by_hand_SCALAR
float by_hand_scalar_rotate(float a, float b, float c, float s) {
    return by_hand_scalar_fma1(a * c, b, s);
}

static by_hand_SCALAR
void by_hand_scalar_gemm_6x48_1x3(const float *x, const float *w, float *out) {
    const float b0 = 0.0f;
    const float b1 = 0.0f;
    const float b2 = 0.0f;
    const float b3 = 0.0f;
    const float b4 = 0.0f;
    const float b5 = 0.0f;
    const float b6 = 0.0f;
    const float b7 = 0.0f;
    const float b8 = 0.0f;
    float acc0_0 = b0;
    float acc0_1 = b1;
    float acc0_2 = b2;
    float acc0_3 = b3;
    float acc0_4 = b4;
    float acc0_5 = b5;
    float acc0_6 = b6;
    float acc0_7 = b7;
    float acc0_8 = b8;
    {
        const float a0 = *(x + 0);
        const float w0 = *(w + 0);
        acc0_0 = by_hand_scalar_fma(acc0_0, a0, w0);
        const float w1 = *(w + 1);
        acc0_1 = by_hand_scalar_fma(acc0_1, a0, w1);
        const float w2 = *(w + 2);
        acc0_2 = by_hand_scalar_fma(acc0_2, a0, w2);
        const float w3 = *(w + 96);
        acc0_3 = by_hand_scalar_fma(acc0_3, a0, w3);
        const float w4 = *(w + 97);
        acc0_4 = by_hand_scalar_fma(acc0_4, a0, w4);
        const float w5 = *(w + 98);
        acc0_5 = by_hand_scalar_fma(acc0_5, a0, w5);
        const float w6 = *(w + 192);
        acc0_6 = by_hand_scalar_fma(acc0_6, a0, w6);
        const float w7 = *(w + 193);
        acc0_7 = by_hand_scalar_fma(acc0_7, a0, w7);
        const float w8 = *(w + 194);
        acc0_8 = by_hand_scalar_fma(acc0_8, a0, w8);
    }
    {
        const float a0 = *(x + 1);
        const float w0 = *(w + 16);
        acc0_0 = by_hand_scalar_fma(acc0_0, a0, w0);
        const float w1 = *(w + 17);
        acc0_1 = by_hand_scalar_fma(acc0_1, a0, w1);
        const float w2 = *(w + 18);
        acc0_2 = by_hand_scalar_fma(acc0_2, a0, w2);
        const float w3 = *(w + 112);
        acc0_3 = by_hand_scalar_fma(acc0_3, a0, w3);
        const float w4 = *(w + 113);
        acc0_4 = by_hand_scalar_fma(acc0_4, a0, w4);
        const float w5 = *(w + 114);
        acc0_5 = by_hand_scalar_fma(acc0_5, a0, w5);
        const float w6 = *(w + 208);
        acc0_6 = by_hand_scalar_fma(acc0_6, a0, w6);
        const float w7 = *(w + 209);
        acc0_7 = by_hand_scalar_fma(acc0_7, a0, w7);
        const float w8 = *(w + 210);
        acc0_8 = by_hand_scalar_fma(acc0_8, a0, w8);
    }
    {
        const float a0 = *(x + 2);
        const float w0 = *(w + 32);
        acc0_0 = by_hand_scalar_fma(acc0_0, a0, w0);
        const float w1 = *(w + 33);
        acc0_1 = by_hand_scalar_fma(acc0_1, a0, w1);
        const float w2 = *(w + 34);
        acc0_2 = by_hand_scalar_fma(acc0_2, a0, w2);
        const float w3 = *(w + 128);
        acc0_3 = by_hand_scalar_fma(acc0_3, a0, w3);
        const float w4 = *(w + 129);
        acc0_4 = by_hand_scalar_fma(acc0_4, a0, w4);
        const float w5 = *(w + 130);
        acc0_5 = by_hand_scalar_fma(acc0_5, a0, w5);
        const float w6 = *(w + 224);
        acc0_6 = by_hand_scalar_fma(acc0_6, a0, w6);
        const float w7 = *(w + 225);
        acc0_7 = by_hand_scalar_fma(acc0_7, a0, w7);
        const float w8 = *(w + 226);
        acc0_8 = by_hand_scalar_fma(acc0_8, a0, w8);
    }
    {
        const float a0 = *(x + 3);
        const float w0 = *(w + 48);
        acc0_0 = by_hand_scalar_fma(acc0_0, a0, w0);
        const float w1 = *(w + 49);
        acc0_1 = by_hand_scalar_fma(acc0_1, a0, w1);
        const float w2 = *(w + 50);
        acc0_2 = by_hand_scalar_fma(acc0_2, a0, w2);
        const float w3 = *(w + 144);
        acc0_3 = by_hand_scalar_fma(acc0_3, a0, w3);
        const float w4 = *(w + 145);
        acc0_4 = by_hand_scalar_fma(acc0_4, a0, w4);
        const float w5 = *(w + 146);
        acc0_5 = by_hand_scalar_fma(acc0_5, a0, w5);
        const float w6 = *(w + 240);
        acc0_6 = by_hand_scalar_fma(acc0_6, a0, w6);
        const float w7 = *(w + 241);
        acc0_7 = by_hand_scalar_fma(acc0_7, a0, w7);
        const float w8 = *(w + 242);
        acc0_8 = by_hand_scalar_fma(acc0_8, a0, w8);
    }
    {
        const float a0 = *(x + 4);
        const float w0 = *(w + 64);
        acc0_0 = by_hand_scalar_fma(acc0_0, a0, w0);
        const float w1 = *(w + 65);
        acc0_1 = by_hand_scalar_fma(acc0_1, a0, w1);
        const float w2 = *(w + 66);
        acc0_2 = by_hand_scalar_fma(acc0_2, a0, w2);
        const float w3 = *(w + 160);
        acc0_3 = by_hand_scalar_fma(acc0_3, a0, w3);
        const float w4 = *(w + 161);
        acc0_4 = by_hand_scalar_fma(acc0_4, a0, w4);
        const float w5 = *(w + 162);
        acc0_5 = by_hand_scalar_fma(acc0_5, a0, w5);
        const float w6 = *(w + 256);
        acc0_6 = by_hand_scalar_fma(acc0_6, a0, w6);
        const float w7 = *(w + 257);
        acc0_7 = by_hand_scalar_fma(acc0_7, a0, w7);
        const float w8 = *(w + 258);
        acc0_8 = by_hand_scalar_fma(acc0_8, a0, w8);
    }
    {
        const float a0 = *(x + 5);
        const float w0 = *(w + 80);
        acc0_0 = by_hand_scalar_fma(acc0_0, a0, w0);
        const float w1 = *(w + 81);
        acc0_1 = by_hand_scalar_fma(acc0_1, a0, w1);
        const float w2 = *(w + 82);
        acc0_2 = by_hand_scalar_fma(acc0_2, a0, w2);
        const float w3 = *(w + 176);
        acc0_3 = by_hand_scalar_fma(acc0_3, a0, w3);
        const float w4 = *(w + 177);
        acc0_4 = by_hand_scalar_fma(acc0_4, a0, w4);
        const float w5 = *(w + 178);
        acc0_5 = by_hand_scalar_fma(acc0_5, a0, w5);
        const float w6 = *(w + 272);
        acc0_6 = by_hand_scalar_fma(acc0_6, a0, w6);
        const float w7 = *(w + 273);
        acc0_7 = by_hand_scalar_fma(acc0_7, a0, w7);
        const float w8 = *(w + 274);
        acc0_8 = by_hand_scalar_fma(acc0_8, a0, w8);
    }
    *(out + 0) = acc0_0;
    *(out + 1) = acc0_1;
    *(out + 2) = acc0_2;
    *(out + 16) = acc0_3;
    *(out + 17) = acc0_4;
    *(out + 18) = acc0_5;
    *(out + 32) = acc0_6;
    *(out + 33) = acc0_7;
    *(out + 34) = acc0_8;
}

/* out [rows][48] = x [rows][6] times weight */
static by_hand_SCALAR
void by_hand_scalar_gemm_6x48(const float *x, const float *w, float *out, float *sums) {
    (void)sums;
    by_hand_scalar_gemm_6x48_1x3(x + 0, w + 0, out + 0);
    by_hand_scalar_gemm_6x48_1x3(x + 6, w + 0, out + 48);
    by_hand_scalar_gemm_6x48_1x3(x + 12, w + 0, out + 96);
    by_hand_scalar_gemm_6x48_1x3(x + 18, w + 0, out + 144);
}

/* layer0_attention_query_key_value: [rows][6] x [48][6] */
static by_hand_SCALAR
void by_hand_scalar_step_layer0_attention_query_key_value(void *with, int thread) {
    by_hand_run *run = (by_hand_run *)with;
    (void)thread;
    by_hand_scalar_gemm_6x48(run->features, run->weights + 0, run->workspace + 0, run->scratch);
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
    {
        const float k0 = *(panels + 0);
        const float k1 = *(panels + 1);
        const float k2 = *(panels + 2);
        const float k3 = *(panels + 3);
        const float k4 = *(panels + 4);
        const float k5 = *(panels + 5);
        const float k6 = *(panels + 6);
        const float k7 = *(panels + 7);
        const float k8 = *(panels + 8);
        const float k9 = *(panels + 9);
        const float k10 = *(panels + 10);
        const float k11 = *(panels + 11);
        const float k12 = *(panels + 12);
        const float k13 = *(panels + 13);
        const float k14 = *(panels + 14);
        const float k15 = *(panels + 15);
        const float q0 = *(query + 0);
        s0_0 = by_hand_scalar_fma(s0_0, q0, k0);
        s0_1 = by_hand_scalar_fma(s0_1, q0, k1);
        s0_2 = by_hand_scalar_fma(s0_2, q0, k2);
        s0_3 = by_hand_scalar_fma(s0_3, q0, k3);
        s0_4 = by_hand_scalar_fma(s0_4, q0, k4);
        s0_5 = by_hand_scalar_fma(s0_5, q0, k5);
        s0_6 = by_hand_scalar_fma(s0_6, q0, k6);
        s0_7 = by_hand_scalar_fma(s0_7, q0, k7);
        s0_8 = by_hand_scalar_fma(s0_8, q0, k8);
        s0_9 = by_hand_scalar_fma(s0_9, q0, k9);
        s0_10 = by_hand_scalar_fma(s0_10, q0, k10);
        s0_11 = by_hand_scalar_fma(s0_11, q0, k11);
        s0_12 = by_hand_scalar_fma(s0_12, q0, k12);
        s0_13 = by_hand_scalar_fma(s0_13, q0, k13);
        s0_14 = by_hand_scalar_fma(s0_14, q0, k14);
        s0_15 = by_hand_scalar_fma(s0_15, q0, k15);
    }
    {
        const float k0 = *(panels + 16);
        const float k1 = *(panels + 17);
        const float k2 = *(panels + 18);
        const float k3 = *(panels + 19);
        const float k4 = *(panels + 20);
        const float k5 = *(panels + 21);
        const float k6 = *(panels + 22);
        const float k7 = *(panels + 23);
        const float k8 = *(panels + 24);
        const float k9 = *(panels + 25);
        const float k10 = *(panels + 26);
        const float k11 = *(panels + 27);
        const float k12 = *(panels + 28);
        const float k13 = *(panels + 29);
        const float k14 = *(panels + 30);
        const float k15 = *(panels + 31);
        const float q0 = *(query + 1);
        s0_0 = by_hand_scalar_fma(s0_0, q0, k0);
        s0_1 = by_hand_scalar_fma(s0_1, q0, k1);
        s0_2 = by_hand_scalar_fma(s0_2, q0, k2);
        s0_3 = by_hand_scalar_fma(s0_3, q0, k3);
        s0_4 = by_hand_scalar_fma(s0_4, q0, k4);
        s0_5 = by_hand_scalar_fma(s0_5, q0, k5);
        s0_6 = by_hand_scalar_fma(s0_6, q0, k6);
        s0_7 = by_hand_scalar_fma(s0_7, q0, k7);
        s0_8 = by_hand_scalar_fma(s0_8, q0, k8);
        s0_9 = by_hand_scalar_fma(s0_9, q0, k9);
        s0_10 = by_hand_scalar_fma(s0_10, q0, k10);
        s0_11 = by_hand_scalar_fma(s0_11, q0, k11);
        s0_12 = by_hand_scalar_fma(s0_12, q0, k12);
        s0_13 = by_hand_scalar_fma(s0_13, q0, k13);
        s0_14 = by_hand_scalar_fma(s0_14, q0, k14);
        s0_15 = by_hand_scalar_fma(s0_15, q0, k15);
    }
    {
        const float k0 = *(panels + 32);
        const float k1 = *(panels + 33);
        const float k2 = *(panels + 34);
        const float k3 = *(panels + 35);
        const float k4 = *(panels + 36);
        const float k5 = *(panels + 37);
        const float k6 = *(panels + 38);
        const float k7 = *(panels + 39);
        const float k8 = *(panels + 40);
        const float k9 = *(panels + 41);
        const float k10 = *(panels + 42);
        const float k11 = *(panels + 43);
        const float k12 = *(panels + 44);
        const float k13 = *(panels + 45);
        const float k14 = *(panels + 46);
        const float k15 = *(panels + 47);
        const float q0 = *(query + 2);
        s0_0 = by_hand_scalar_fma(s0_0, q0, k0);
        s0_1 = by_hand_scalar_fma(s0_1, q0, k1);
        s0_2 = by_hand_scalar_fma(s0_2, q0, k2);
        s0_3 = by_hand_scalar_fma(s0_3, q0, k3);
        s0_4 = by_hand_scalar_fma(s0_4, q0, k4);
        s0_5 = by_hand_scalar_fma(s0_5, q0, k5);
        s0_6 = by_hand_scalar_fma(s0_6, q0, k6);
        s0_7 = by_hand_scalar_fma(s0_7, q0, k7);
        s0_8 = by_hand_scalar_fma(s0_8, q0, k8);
        s0_9 = by_hand_scalar_fma(s0_9, q0, k9);
        s0_10 = by_hand_scalar_fma(s0_10, q0, k10);
        s0_11 = by_hand_scalar_fma(s0_11, q0, k11);
        s0_12 = by_hand_scalar_fma(s0_12, q0, k12);
        s0_13 = by_hand_scalar_fma(s0_13, q0, k13);
        s0_14 = by_hand_scalar_fma(s0_14, q0, k14);
        s0_15 = by_hand_scalar_fma(s0_15, q0, k15);
    }
    s0_0 = (s0_0 * (0x1.279a74p-1f));
    *(block + 0) = s0_0;
    s0_1 = (s0_1 * (0x1.279a74p-1f));
    *(block + 1) = s0_1;
    s0_2 = (s0_2 * (0x1.279a74p-1f));
    *(block + 2) = s0_2;
    s0_3 = (s0_3 * (0x1.279a74p-1f));
    *(block + 3) = s0_3;
    s0_4 = (s0_4 * (0x1.279a74p-1f));
    *(block + 4) = s0_4;
    s0_5 = (s0_5 * (0x1.279a74p-1f));
    *(block + 5) = s0_5;
    s0_6 = (s0_6 * (0x1.279a74p-1f));
    *(block + 6) = s0_6;
    s0_7 = (s0_7 * (0x1.279a74p-1f));
    *(block + 7) = s0_7;
    s0_8 = (s0_8 * (0x1.279a74p-1f));
    *(block + 8) = s0_8;
    s0_9 = (s0_9 * (0x1.279a74p-1f));
    *(block + 9) = s0_9;
    s0_10 = (s0_10 * (0x1.279a74p-1f));
    *(block + 10) = s0_10;
    s0_11 = (s0_11 * (0x1.279a74p-1f));
    *(block + 11) = s0_11;
    s0_12 = (s0_12 * (0x1.279a74p-1f));
    *(block + 12) = s0_12;
    s0_13 = (s0_13 * (0x1.279a74p-1f));
    *(block + 13) = s0_13;
    s0_14 = (s0_14 * (0x1.279a74p-1f));
    *(block + 14) = s0_14;
    s0_15 = (s0_15 * (0x1.279a74p-1f));
    *(block + 15) = s0_15;
}

static by_hand_SCALAR
float by_hand_scalar_attention_softmax_0(float *row) {
    row[4] = -__builtin_inff();
    row[5] = -__builtin_inff();
    row[6] = -__builtin_inff();
    row[7] = -__builtin_inff();
    row[8] = -__builtin_inff();
    row[9] = -__builtin_inff();
    row[10] = -__builtin_inff();
    row[11] = -__builtin_inff();
    row[12] = -__builtin_inff();
    row[13] = -__builtin_inff();
    row[14] = -__builtin_inff();
    row[15] = -__builtin_inff();
    float greatest = *(row + 0);
    greatest = by_hand_scalar_max(greatest, *(row + 1));
    greatest = by_hand_scalar_max(greatest, *(row + 2));
    greatest = by_hand_scalar_max(greatest, *(row + 3));
    greatest = by_hand_scalar_max(greatest, *(row + 4));
    greatest = by_hand_scalar_max(greatest, *(row + 5));
    greatest = by_hand_scalar_max(greatest, *(row + 6));
    greatest = by_hand_scalar_max(greatest, *(row + 7));
    greatest = by_hand_scalar_max(greatest, *(row + 8));
    greatest = by_hand_scalar_max(greatest, *(row + 9));
    greatest = by_hand_scalar_max(greatest, *(row + 10));
    greatest = by_hand_scalar_max(greatest, *(row + 11));
    greatest = by_hand_scalar_max(greatest, *(row + 12));
    greatest = by_hand_scalar_max(greatest, *(row + 13));
    greatest = by_hand_scalar_max(greatest, *(row + 14));
    greatest = by_hand_scalar_max(greatest, *(row + 15));
    float most = greatest;
    float total = 0.0f;
    {
        const float e = by_hand_scalar_exp(((*(row + 0)) - most));
        *(row + 0) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 1)) - most));
        *(row + 1) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 2)) - most));
        *(row + 2) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 3)) - most));
        *(row + 3) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 4)) - most));
        *(row + 4) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 5)) - most));
        *(row + 5) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 6)) - most));
        *(row + 6) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 7)) - most));
        *(row + 7) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 8)) - most));
        *(row + 8) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 9)) - most));
        *(row + 9) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 10)) - most));
        *(row + 10) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 11)) - most));
        *(row + 11) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 12)) - most));
        *(row + 12) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 13)) - most));
        *(row + 13) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 14)) - most));
        *(row + 14) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 15)) - most));
        *(row + 15) = e;
        total = (total + e);
    }
    return total;
}

static by_hand_SCALAR
void by_hand_scalar_attention_mix_0_0(const float *row, const float *value, float inverse, float *out) {
    float o0 = 0.0f;
    float o1 = 0.0f;
    float o2 = 0.0f;
    {
        const float w = *(row + 0);
        o0 = by_hand_scalar_fma(o0, w, *(value + 0));
        o1 = by_hand_scalar_fma(o1, w, *(value + 1));
        o2 = by_hand_scalar_fma(o2, w, *(value + 2));
    }
    {
        const float w = *(row + 1);
        o0 = by_hand_scalar_fma(o0, w, *(value + 48));
        o1 = by_hand_scalar_fma(o1, w, *(value + 49));
        o2 = by_hand_scalar_fma(o2, w, *(value + 50));
    }
    {
        const float w = *(row + 2);
        o0 = by_hand_scalar_fma(o0, w, *(value + 96));
        o1 = by_hand_scalar_fma(o1, w, *(value + 97));
        o2 = by_hand_scalar_fma(o2, w, *(value + 98));
    }
    {
        const float w = *(row + 3);
        o0 = by_hand_scalar_fma(o0, w, *(value + 144));
        o1 = by_hand_scalar_fma(o1, w, *(value + 145));
        o2 = by_hand_scalar_fma(o2, w, *(value + 146));
    }
    o0 = (o0 * inverse);
    *(out + 0) = o0;
    o1 = (o1 * inverse);
    *(out + 1) = o1;
    o2 = (o2 * inverse);
    *(out + 2) = o2;
}

static by_hand_SCALAR
void by_hand_scalar_attention_rows_0(const float *query, const float *panels, const float *value, float *block, float *out) {
    by_hand_scalar_attention_scores_0_0(query, panels, block);
    (void)value;
    {
        float *row = block + 0;
        const float sum = by_hand_scalar_attention_softmax_0(row);
        const float inverse = sum == 0.0f ? 0.0f : 1.0f / sum;
        by_hand_scalar_attention_mix_0_0(row, value, inverse, out + 0);
    }
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
    {
        const float k0 = *(panels + 0);
        const float k1 = *(panels + 1);
        const float k2 = *(panels + 2);
        const float k3 = *(panels + 3);
        const float k4 = *(panels + 4);
        const float k5 = *(panels + 5);
        const float k6 = *(panels + 6);
        const float k7 = *(panels + 7);
        const float k8 = *(panels + 8);
        const float k9 = *(panels + 9);
        const float k10 = *(panels + 10);
        const float k11 = *(panels + 11);
        const float k12 = *(panels + 12);
        const float k13 = *(panels + 13);
        const float k14 = *(panels + 14);
        const float k15 = *(panels + 15);
        const float q0 = *(query + 0);
        s0_0 = by_hand_scalar_fma(s0_0, q0, k0);
        s0_1 = by_hand_scalar_fma(s0_1, q0, k1);
        s0_2 = by_hand_scalar_fma(s0_2, q0, k2);
        s0_3 = by_hand_scalar_fma(s0_3, q0, k3);
        s0_4 = by_hand_scalar_fma(s0_4, q0, k4);
        s0_5 = by_hand_scalar_fma(s0_5, q0, k5);
        s0_6 = by_hand_scalar_fma(s0_6, q0, k6);
        s0_7 = by_hand_scalar_fma(s0_7, q0, k7);
        s0_8 = by_hand_scalar_fma(s0_8, q0, k8);
        s0_9 = by_hand_scalar_fma(s0_9, q0, k9);
        s0_10 = by_hand_scalar_fma(s0_10, q0, k10);
        s0_11 = by_hand_scalar_fma(s0_11, q0, k11);
        s0_12 = by_hand_scalar_fma(s0_12, q0, k12);
        s0_13 = by_hand_scalar_fma(s0_13, q0, k13);
        s0_14 = by_hand_scalar_fma(s0_14, q0, k14);
        s0_15 = by_hand_scalar_fma(s0_15, q0, k15);
    }
    {
        const float k0 = *(panels + 16);
        const float k1 = *(panels + 17);
        const float k2 = *(panels + 18);
        const float k3 = *(panels + 19);
        const float k4 = *(panels + 20);
        const float k5 = *(panels + 21);
        const float k6 = *(panels + 22);
        const float k7 = *(panels + 23);
        const float k8 = *(panels + 24);
        const float k9 = *(panels + 25);
        const float k10 = *(panels + 26);
        const float k11 = *(panels + 27);
        const float k12 = *(panels + 28);
        const float k13 = *(panels + 29);
        const float k14 = *(panels + 30);
        const float k15 = *(panels + 31);
        const float q0 = *(query + 1);
        s0_0 = by_hand_scalar_fma(s0_0, q0, k0);
        s0_1 = by_hand_scalar_fma(s0_1, q0, k1);
        s0_2 = by_hand_scalar_fma(s0_2, q0, k2);
        s0_3 = by_hand_scalar_fma(s0_3, q0, k3);
        s0_4 = by_hand_scalar_fma(s0_4, q0, k4);
        s0_5 = by_hand_scalar_fma(s0_5, q0, k5);
        s0_6 = by_hand_scalar_fma(s0_6, q0, k6);
        s0_7 = by_hand_scalar_fma(s0_7, q0, k7);
        s0_8 = by_hand_scalar_fma(s0_8, q0, k8);
        s0_9 = by_hand_scalar_fma(s0_9, q0, k9);
        s0_10 = by_hand_scalar_fma(s0_10, q0, k10);
        s0_11 = by_hand_scalar_fma(s0_11, q0, k11);
        s0_12 = by_hand_scalar_fma(s0_12, q0, k12);
        s0_13 = by_hand_scalar_fma(s0_13, q0, k13);
        s0_14 = by_hand_scalar_fma(s0_14, q0, k14);
        s0_15 = by_hand_scalar_fma(s0_15, q0, k15);
    }
    {
        const float k0 = *(panels + 32);
        const float k1 = *(panels + 33);
        const float k2 = *(panels + 34);
        const float k3 = *(panels + 35);
        const float k4 = *(panels + 36);
        const float k5 = *(panels + 37);
        const float k6 = *(panels + 38);
        const float k7 = *(panels + 39);
        const float k8 = *(panels + 40);
        const float k9 = *(panels + 41);
        const float k10 = *(panels + 42);
        const float k11 = *(panels + 43);
        const float k12 = *(panels + 44);
        const float k13 = *(panels + 45);
        const float k14 = *(panels + 46);
        const float k15 = *(panels + 47);
        const float q0 = *(query + 2);
        s0_0 = by_hand_scalar_fma(s0_0, q0, k0);
        s0_1 = by_hand_scalar_fma(s0_1, q0, k1);
        s0_2 = by_hand_scalar_fma(s0_2, q0, k2);
        s0_3 = by_hand_scalar_fma(s0_3, q0, k3);
        s0_4 = by_hand_scalar_fma(s0_4, q0, k4);
        s0_5 = by_hand_scalar_fma(s0_5, q0, k5);
        s0_6 = by_hand_scalar_fma(s0_6, q0, k6);
        s0_7 = by_hand_scalar_fma(s0_7, q0, k7);
        s0_8 = by_hand_scalar_fma(s0_8, q0, k8);
        s0_9 = by_hand_scalar_fma(s0_9, q0, k9);
        s0_10 = by_hand_scalar_fma(s0_10, q0, k10);
        s0_11 = by_hand_scalar_fma(s0_11, q0, k11);
        s0_12 = by_hand_scalar_fma(s0_12, q0, k12);
        s0_13 = by_hand_scalar_fma(s0_13, q0, k13);
        s0_14 = by_hand_scalar_fma(s0_14, q0, k14);
        s0_15 = by_hand_scalar_fma(s0_15, q0, k15);
    }
    s0_0 = (s0_0 * (0x1.279a74p-1f));
    *(block + 0) = s0_0;
    s0_1 = (s0_1 * (0x1.279a74p-1f));
    *(block + 1) = s0_1;
    s0_2 = (s0_2 * (0x1.279a74p-1f));
    *(block + 2) = s0_2;
    s0_3 = (s0_3 * (0x1.279a74p-1f));
    *(block + 3) = s0_3;
    s0_4 = (s0_4 * (0x1.279a74p-1f));
    *(block + 4) = s0_4;
    s0_5 = (s0_5 * (0x1.279a74p-1f));
    *(block + 5) = s0_5;
    s0_6 = (s0_6 * (0x1.279a74p-1f));
    *(block + 6) = s0_6;
    s0_7 = (s0_7 * (0x1.279a74p-1f));
    *(block + 7) = s0_7;
    s0_8 = (s0_8 * (0x1.279a74p-1f));
    *(block + 8) = s0_8;
    s0_9 = (s0_9 * (0x1.279a74p-1f));
    *(block + 9) = s0_9;
    s0_10 = (s0_10 * (0x1.279a74p-1f));
    *(block + 10) = s0_10;
    s0_11 = (s0_11 * (0x1.279a74p-1f));
    *(block + 11) = s0_11;
    s0_12 = (s0_12 * (0x1.279a74p-1f));
    *(block + 12) = s0_12;
    s0_13 = (s0_13 * (0x1.279a74p-1f));
    *(block + 13) = s0_13;
    s0_14 = (s0_14 * (0x1.279a74p-1f));
    *(block + 14) = s0_14;
    s0_15 = (s0_15 * (0x1.279a74p-1f));
    *(block + 15) = s0_15;
}

static by_hand_SCALAR
float by_hand_scalar_attention_softmax_1(float *row) {
    row[4] = -__builtin_inff();
    row[5] = -__builtin_inff();
    row[6] = -__builtin_inff();
    row[7] = -__builtin_inff();
    row[8] = -__builtin_inff();
    row[9] = -__builtin_inff();
    row[10] = -__builtin_inff();
    row[11] = -__builtin_inff();
    row[12] = -__builtin_inff();
    row[13] = -__builtin_inff();
    row[14] = -__builtin_inff();
    row[15] = -__builtin_inff();
    float greatest = *(row + 0);
    greatest = by_hand_scalar_max(greatest, *(row + 1));
    greatest = by_hand_scalar_max(greatest, *(row + 2));
    greatest = by_hand_scalar_max(greatest, *(row + 3));
    greatest = by_hand_scalar_max(greatest, *(row + 4));
    greatest = by_hand_scalar_max(greatest, *(row + 5));
    greatest = by_hand_scalar_max(greatest, *(row + 6));
    greatest = by_hand_scalar_max(greatest, *(row + 7));
    greatest = by_hand_scalar_max(greatest, *(row + 8));
    greatest = by_hand_scalar_max(greatest, *(row + 9));
    greatest = by_hand_scalar_max(greatest, *(row + 10));
    greatest = by_hand_scalar_max(greatest, *(row + 11));
    greatest = by_hand_scalar_max(greatest, *(row + 12));
    greatest = by_hand_scalar_max(greatest, *(row + 13));
    greatest = by_hand_scalar_max(greatest, *(row + 14));
    greatest = by_hand_scalar_max(greatest, *(row + 15));
    float most = greatest;
    float total = 0.0f;
    {
        const float e = by_hand_scalar_exp(((*(row + 0)) - most));
        *(row + 0) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 1)) - most));
        *(row + 1) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 2)) - most));
        *(row + 2) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 3)) - most));
        *(row + 3) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 4)) - most));
        *(row + 4) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 5)) - most));
        *(row + 5) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 6)) - most));
        *(row + 6) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 7)) - most));
        *(row + 7) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 8)) - most));
        *(row + 8) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 9)) - most));
        *(row + 9) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 10)) - most));
        *(row + 10) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 11)) - most));
        *(row + 11) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 12)) - most));
        *(row + 12) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 13)) - most));
        *(row + 13) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 14)) - most));
        *(row + 14) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 15)) - most));
        *(row + 15) = e;
        total = (total + e);
    }
    return total;
}

static by_hand_SCALAR
void by_hand_scalar_attention_mix_1_0(const float *row, const float *value, float inverse, float *out) {
    float o0 = 0.0f;
    float o1 = 0.0f;
    float o2 = 0.0f;
    {
        const float w = *(row + 0);
        o0 = by_hand_scalar_fma(o0, w, *(value + 0));
        o1 = by_hand_scalar_fma(o1, w, *(value + 1));
        o2 = by_hand_scalar_fma(o2, w, *(value + 2));
    }
    {
        const float w = *(row + 1);
        o0 = by_hand_scalar_fma(o0, w, *(value + 48));
        o1 = by_hand_scalar_fma(o1, w, *(value + 49));
        o2 = by_hand_scalar_fma(o2, w, *(value + 50));
    }
    {
        const float w = *(row + 2);
        o0 = by_hand_scalar_fma(o0, w, *(value + 96));
        o1 = by_hand_scalar_fma(o1, w, *(value + 97));
        o2 = by_hand_scalar_fma(o2, w, *(value + 98));
    }
    {
        const float w = *(row + 3);
        o0 = by_hand_scalar_fma(o0, w, *(value + 144));
        o1 = by_hand_scalar_fma(o1, w, *(value + 145));
        o2 = by_hand_scalar_fma(o2, w, *(value + 146));
    }
    o0 = (o0 * inverse);
    *(out + 0) = o0;
    o1 = (o1 * inverse);
    *(out + 1) = o1;
    o2 = (o2 * inverse);
    *(out + 2) = o2;
}

static by_hand_SCALAR
void by_hand_scalar_attention_rows_1(const float *query, const float *panels, const float *value, float *block, float *out) {
    by_hand_scalar_attention_scores_1_0(query, panels, block);
    (void)value;
    {
        float *row = block + 0;
        const float sum = by_hand_scalar_attention_softmax_1(row);
        const float inverse = sum == 0.0f ? 0.0f : 1.0f / sum;
        by_hand_scalar_attention_mix_1_0(row, value, inverse, out + 0);
    }
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
    {
        const float k0 = *(panels + 0);
        const float k1 = *(panels + 1);
        const float k2 = *(panels + 2);
        const float k3 = *(panels + 3);
        const float k4 = *(panels + 4);
        const float k5 = *(panels + 5);
        const float k6 = *(panels + 6);
        const float k7 = *(panels + 7);
        const float k8 = *(panels + 8);
        const float k9 = *(panels + 9);
        const float k10 = *(panels + 10);
        const float k11 = *(panels + 11);
        const float k12 = *(panels + 12);
        const float k13 = *(panels + 13);
        const float k14 = *(panels + 14);
        const float k15 = *(panels + 15);
        const float q0 = *(query + 0);
        s0_0 = by_hand_scalar_fma(s0_0, q0, k0);
        s0_1 = by_hand_scalar_fma(s0_1, q0, k1);
        s0_2 = by_hand_scalar_fma(s0_2, q0, k2);
        s0_3 = by_hand_scalar_fma(s0_3, q0, k3);
        s0_4 = by_hand_scalar_fma(s0_4, q0, k4);
        s0_5 = by_hand_scalar_fma(s0_5, q0, k5);
        s0_6 = by_hand_scalar_fma(s0_6, q0, k6);
        s0_7 = by_hand_scalar_fma(s0_7, q0, k7);
        s0_8 = by_hand_scalar_fma(s0_8, q0, k8);
        s0_9 = by_hand_scalar_fma(s0_9, q0, k9);
        s0_10 = by_hand_scalar_fma(s0_10, q0, k10);
        s0_11 = by_hand_scalar_fma(s0_11, q0, k11);
        s0_12 = by_hand_scalar_fma(s0_12, q0, k12);
        s0_13 = by_hand_scalar_fma(s0_13, q0, k13);
        s0_14 = by_hand_scalar_fma(s0_14, q0, k14);
        s0_15 = by_hand_scalar_fma(s0_15, q0, k15);
    }
    {
        const float k0 = *(panels + 16);
        const float k1 = *(panels + 17);
        const float k2 = *(panels + 18);
        const float k3 = *(panels + 19);
        const float k4 = *(panels + 20);
        const float k5 = *(panels + 21);
        const float k6 = *(panels + 22);
        const float k7 = *(panels + 23);
        const float k8 = *(panels + 24);
        const float k9 = *(panels + 25);
        const float k10 = *(panels + 26);
        const float k11 = *(panels + 27);
        const float k12 = *(panels + 28);
        const float k13 = *(panels + 29);
        const float k14 = *(panels + 30);
        const float k15 = *(panels + 31);
        const float q0 = *(query + 1);
        s0_0 = by_hand_scalar_fma(s0_0, q0, k0);
        s0_1 = by_hand_scalar_fma(s0_1, q0, k1);
        s0_2 = by_hand_scalar_fma(s0_2, q0, k2);
        s0_3 = by_hand_scalar_fma(s0_3, q0, k3);
        s0_4 = by_hand_scalar_fma(s0_4, q0, k4);
        s0_5 = by_hand_scalar_fma(s0_5, q0, k5);
        s0_6 = by_hand_scalar_fma(s0_6, q0, k6);
        s0_7 = by_hand_scalar_fma(s0_7, q0, k7);
        s0_8 = by_hand_scalar_fma(s0_8, q0, k8);
        s0_9 = by_hand_scalar_fma(s0_9, q0, k9);
        s0_10 = by_hand_scalar_fma(s0_10, q0, k10);
        s0_11 = by_hand_scalar_fma(s0_11, q0, k11);
        s0_12 = by_hand_scalar_fma(s0_12, q0, k12);
        s0_13 = by_hand_scalar_fma(s0_13, q0, k13);
        s0_14 = by_hand_scalar_fma(s0_14, q0, k14);
        s0_15 = by_hand_scalar_fma(s0_15, q0, k15);
    }
    {
        const float k0 = *(panels + 32);
        const float k1 = *(panels + 33);
        const float k2 = *(panels + 34);
        const float k3 = *(panels + 35);
        const float k4 = *(panels + 36);
        const float k5 = *(panels + 37);
        const float k6 = *(panels + 38);
        const float k7 = *(panels + 39);
        const float k8 = *(panels + 40);
        const float k9 = *(panels + 41);
        const float k10 = *(panels + 42);
        const float k11 = *(panels + 43);
        const float k12 = *(panels + 44);
        const float k13 = *(panels + 45);
        const float k14 = *(panels + 46);
        const float k15 = *(panels + 47);
        const float q0 = *(query + 2);
        s0_0 = by_hand_scalar_fma(s0_0, q0, k0);
        s0_1 = by_hand_scalar_fma(s0_1, q0, k1);
        s0_2 = by_hand_scalar_fma(s0_2, q0, k2);
        s0_3 = by_hand_scalar_fma(s0_3, q0, k3);
        s0_4 = by_hand_scalar_fma(s0_4, q0, k4);
        s0_5 = by_hand_scalar_fma(s0_5, q0, k5);
        s0_6 = by_hand_scalar_fma(s0_6, q0, k6);
        s0_7 = by_hand_scalar_fma(s0_7, q0, k7);
        s0_8 = by_hand_scalar_fma(s0_8, q0, k8);
        s0_9 = by_hand_scalar_fma(s0_9, q0, k9);
        s0_10 = by_hand_scalar_fma(s0_10, q0, k10);
        s0_11 = by_hand_scalar_fma(s0_11, q0, k11);
        s0_12 = by_hand_scalar_fma(s0_12, q0, k12);
        s0_13 = by_hand_scalar_fma(s0_13, q0, k13);
        s0_14 = by_hand_scalar_fma(s0_14, q0, k14);
        s0_15 = by_hand_scalar_fma(s0_15, q0, k15);
    }
    s0_0 = (s0_0 * (0x1.279a74p-1f));
    *(block + 0) = s0_0;
    s0_1 = (s0_1 * (0x1.279a74p-1f));
    *(block + 1) = s0_1;
    s0_2 = (s0_2 * (0x1.279a74p-1f));
    *(block + 2) = s0_2;
    s0_3 = (s0_3 * (0x1.279a74p-1f));
    *(block + 3) = s0_3;
    s0_4 = (s0_4 * (0x1.279a74p-1f));
    *(block + 4) = s0_4;
    s0_5 = (s0_5 * (0x1.279a74p-1f));
    *(block + 5) = s0_5;
    s0_6 = (s0_6 * (0x1.279a74p-1f));
    *(block + 6) = s0_6;
    s0_7 = (s0_7 * (0x1.279a74p-1f));
    *(block + 7) = s0_7;
    s0_8 = (s0_8 * (0x1.279a74p-1f));
    *(block + 8) = s0_8;
    s0_9 = (s0_9 * (0x1.279a74p-1f));
    *(block + 9) = s0_9;
    s0_10 = (s0_10 * (0x1.279a74p-1f));
    *(block + 10) = s0_10;
    s0_11 = (s0_11 * (0x1.279a74p-1f));
    *(block + 11) = s0_11;
    s0_12 = (s0_12 * (0x1.279a74p-1f));
    *(block + 12) = s0_12;
    s0_13 = (s0_13 * (0x1.279a74p-1f));
    *(block + 13) = s0_13;
    s0_14 = (s0_14 * (0x1.279a74p-1f));
    *(block + 14) = s0_14;
    s0_15 = (s0_15 * (0x1.279a74p-1f));
    *(block + 15) = s0_15;
}

static by_hand_SCALAR
float by_hand_scalar_attention_softmax_2(float *row) {
    row[4] = -__builtin_inff();
    row[5] = -__builtin_inff();
    row[6] = -__builtin_inff();
    row[7] = -__builtin_inff();
    row[8] = -__builtin_inff();
    row[9] = -__builtin_inff();
    row[10] = -__builtin_inff();
    row[11] = -__builtin_inff();
    row[12] = -__builtin_inff();
    row[13] = -__builtin_inff();
    row[14] = -__builtin_inff();
    row[15] = -__builtin_inff();
    float greatest = *(row + 0);
    greatest = by_hand_scalar_max(greatest, *(row + 1));
    greatest = by_hand_scalar_max(greatest, *(row + 2));
    greatest = by_hand_scalar_max(greatest, *(row + 3));
    greatest = by_hand_scalar_max(greatest, *(row + 4));
    greatest = by_hand_scalar_max(greatest, *(row + 5));
    greatest = by_hand_scalar_max(greatest, *(row + 6));
    greatest = by_hand_scalar_max(greatest, *(row + 7));
    greatest = by_hand_scalar_max(greatest, *(row + 8));
    greatest = by_hand_scalar_max(greatest, *(row + 9));
    greatest = by_hand_scalar_max(greatest, *(row + 10));
    greatest = by_hand_scalar_max(greatest, *(row + 11));
    greatest = by_hand_scalar_max(greatest, *(row + 12));
    greatest = by_hand_scalar_max(greatest, *(row + 13));
    greatest = by_hand_scalar_max(greatest, *(row + 14));
    greatest = by_hand_scalar_max(greatest, *(row + 15));
    float most = greatest;
    float total = 0.0f;
    {
        const float e = by_hand_scalar_exp(((*(row + 0)) - most));
        *(row + 0) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 1)) - most));
        *(row + 1) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 2)) - most));
        *(row + 2) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 3)) - most));
        *(row + 3) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 4)) - most));
        *(row + 4) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 5)) - most));
        *(row + 5) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 6)) - most));
        *(row + 6) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 7)) - most));
        *(row + 7) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 8)) - most));
        *(row + 8) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 9)) - most));
        *(row + 9) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 10)) - most));
        *(row + 10) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 11)) - most));
        *(row + 11) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 12)) - most));
        *(row + 12) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 13)) - most));
        *(row + 13) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 14)) - most));
        *(row + 14) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 15)) - most));
        *(row + 15) = e;
        total = (total + e);
    }
    return total;
}

static by_hand_SCALAR
void by_hand_scalar_attention_mix_2_0(const float *row, const float *value, float inverse, float *out) {
    float o0 = 0.0f;
    float o1 = 0.0f;
    float o2 = 0.0f;
    {
        const float w = *(row + 0);
        o0 = by_hand_scalar_fma(o0, w, *(value + 0));
        o1 = by_hand_scalar_fma(o1, w, *(value + 1));
        o2 = by_hand_scalar_fma(o2, w, *(value + 2));
    }
    {
        const float w = *(row + 1);
        o0 = by_hand_scalar_fma(o0, w, *(value + 48));
        o1 = by_hand_scalar_fma(o1, w, *(value + 49));
        o2 = by_hand_scalar_fma(o2, w, *(value + 50));
    }
    {
        const float w = *(row + 2);
        o0 = by_hand_scalar_fma(o0, w, *(value + 96));
        o1 = by_hand_scalar_fma(o1, w, *(value + 97));
        o2 = by_hand_scalar_fma(o2, w, *(value + 98));
    }
    {
        const float w = *(row + 3);
        o0 = by_hand_scalar_fma(o0, w, *(value + 144));
        o1 = by_hand_scalar_fma(o1, w, *(value + 145));
        o2 = by_hand_scalar_fma(o2, w, *(value + 146));
    }
    o0 = (o0 * inverse);
    *(out + 0) = o0;
    o1 = (o1 * inverse);
    *(out + 1) = o1;
    o2 = (o2 * inverse);
    *(out + 2) = o2;
}

static by_hand_SCALAR
void by_hand_scalar_attention_rows_2(const float *query, const float *panels, const float *value, float *block, float *out) {
    by_hand_scalar_attention_scores_2_0(query, panels, block);
    (void)value;
    {
        float *row = block + 0;
        const float sum = by_hand_scalar_attention_softmax_2(row);
        const float inverse = sum == 0.0f ? 0.0f : 1.0f / sum;
        by_hand_scalar_attention_mix_2_0(row, value, inverse, out + 0);
    }
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
    {
        const float k0 = *(panels + 0);
        const float k1 = *(panels + 1);
        const float k2 = *(panels + 2);
        const float k3 = *(panels + 3);
        const float k4 = *(panels + 4);
        const float k5 = *(panels + 5);
        const float k6 = *(panels + 6);
        const float k7 = *(panels + 7);
        const float k8 = *(panels + 8);
        const float k9 = *(panels + 9);
        const float k10 = *(panels + 10);
        const float k11 = *(panels + 11);
        const float k12 = *(panels + 12);
        const float k13 = *(panels + 13);
        const float k14 = *(panels + 14);
        const float k15 = *(panels + 15);
        const float q0 = *(query + 0);
        s0_0 = by_hand_scalar_fma(s0_0, q0, k0);
        s0_1 = by_hand_scalar_fma(s0_1, q0, k1);
        s0_2 = by_hand_scalar_fma(s0_2, q0, k2);
        s0_3 = by_hand_scalar_fma(s0_3, q0, k3);
        s0_4 = by_hand_scalar_fma(s0_4, q0, k4);
        s0_5 = by_hand_scalar_fma(s0_5, q0, k5);
        s0_6 = by_hand_scalar_fma(s0_6, q0, k6);
        s0_7 = by_hand_scalar_fma(s0_7, q0, k7);
        s0_8 = by_hand_scalar_fma(s0_8, q0, k8);
        s0_9 = by_hand_scalar_fma(s0_9, q0, k9);
        s0_10 = by_hand_scalar_fma(s0_10, q0, k10);
        s0_11 = by_hand_scalar_fma(s0_11, q0, k11);
        s0_12 = by_hand_scalar_fma(s0_12, q0, k12);
        s0_13 = by_hand_scalar_fma(s0_13, q0, k13);
        s0_14 = by_hand_scalar_fma(s0_14, q0, k14);
        s0_15 = by_hand_scalar_fma(s0_15, q0, k15);
    }
    {
        const float k0 = *(panels + 16);
        const float k1 = *(panels + 17);
        const float k2 = *(panels + 18);
        const float k3 = *(panels + 19);
        const float k4 = *(panels + 20);
        const float k5 = *(panels + 21);
        const float k6 = *(panels + 22);
        const float k7 = *(panels + 23);
        const float k8 = *(panels + 24);
        const float k9 = *(panels + 25);
        const float k10 = *(panels + 26);
        const float k11 = *(panels + 27);
        const float k12 = *(panels + 28);
        const float k13 = *(panels + 29);
        const float k14 = *(panels + 30);
        const float k15 = *(panels + 31);
        const float q0 = *(query + 1);
        s0_0 = by_hand_scalar_fma(s0_0, q0, k0);
        s0_1 = by_hand_scalar_fma(s0_1, q0, k1);
        s0_2 = by_hand_scalar_fma(s0_2, q0, k2);
        s0_3 = by_hand_scalar_fma(s0_3, q0, k3);
        s0_4 = by_hand_scalar_fma(s0_4, q0, k4);
        s0_5 = by_hand_scalar_fma(s0_5, q0, k5);
        s0_6 = by_hand_scalar_fma(s0_6, q0, k6);
        s0_7 = by_hand_scalar_fma(s0_7, q0, k7);
        s0_8 = by_hand_scalar_fma(s0_8, q0, k8);
        s0_9 = by_hand_scalar_fma(s0_9, q0, k9);
        s0_10 = by_hand_scalar_fma(s0_10, q0, k10);
        s0_11 = by_hand_scalar_fma(s0_11, q0, k11);
        s0_12 = by_hand_scalar_fma(s0_12, q0, k12);
        s0_13 = by_hand_scalar_fma(s0_13, q0, k13);
        s0_14 = by_hand_scalar_fma(s0_14, q0, k14);
        s0_15 = by_hand_scalar_fma(s0_15, q0, k15);
    }
    {
        const float k0 = *(panels + 32);
        const float k1 = *(panels + 33);
        const float k2 = *(panels + 34);
        const float k3 = *(panels + 35);
        const float k4 = *(panels + 36);
        const float k5 = *(panels + 37);
        const float k6 = *(panels + 38);
        const float k7 = *(panels + 39);
        const float k8 = *(panels + 40);
        const float k9 = *(panels + 41);
        const float k10 = *(panels + 42);
        const float k11 = *(panels + 43);
        const float k12 = *(panels + 44);
        const float k13 = *(panels + 45);
        const float k14 = *(panels + 46);
        const float k15 = *(panels + 47);
        const float q0 = *(query + 2);
        s0_0 = by_hand_scalar_fma(s0_0, q0, k0);
        s0_1 = by_hand_scalar_fma(s0_1, q0, k1);
        s0_2 = by_hand_scalar_fma(s0_2, q0, k2);
        s0_3 = by_hand_scalar_fma(s0_3, q0, k3);
        s0_4 = by_hand_scalar_fma(s0_4, q0, k4);
        s0_5 = by_hand_scalar_fma(s0_5, q0, k5);
        s0_6 = by_hand_scalar_fma(s0_6, q0, k6);
        s0_7 = by_hand_scalar_fma(s0_7, q0, k7);
        s0_8 = by_hand_scalar_fma(s0_8, q0, k8);
        s0_9 = by_hand_scalar_fma(s0_9, q0, k9);
        s0_10 = by_hand_scalar_fma(s0_10, q0, k10);
        s0_11 = by_hand_scalar_fma(s0_11, q0, k11);
        s0_12 = by_hand_scalar_fma(s0_12, q0, k12);
        s0_13 = by_hand_scalar_fma(s0_13, q0, k13);
        s0_14 = by_hand_scalar_fma(s0_14, q0, k14);
        s0_15 = by_hand_scalar_fma(s0_15, q0, k15);
    }
    s0_0 = (s0_0 * (0x1.279a74p-1f));
    *(block + 0) = s0_0;
    s0_1 = (s0_1 * (0x1.279a74p-1f));
    *(block + 1) = s0_1;
    s0_2 = (s0_2 * (0x1.279a74p-1f));
    *(block + 2) = s0_2;
    s0_3 = (s0_3 * (0x1.279a74p-1f));
    *(block + 3) = s0_3;
    s0_4 = (s0_4 * (0x1.279a74p-1f));
    *(block + 4) = s0_4;
    s0_5 = (s0_5 * (0x1.279a74p-1f));
    *(block + 5) = s0_5;
    s0_6 = (s0_6 * (0x1.279a74p-1f));
    *(block + 6) = s0_6;
    s0_7 = (s0_7 * (0x1.279a74p-1f));
    *(block + 7) = s0_7;
    s0_8 = (s0_8 * (0x1.279a74p-1f));
    *(block + 8) = s0_8;
    s0_9 = (s0_9 * (0x1.279a74p-1f));
    *(block + 9) = s0_9;
    s0_10 = (s0_10 * (0x1.279a74p-1f));
    *(block + 10) = s0_10;
    s0_11 = (s0_11 * (0x1.279a74p-1f));
    *(block + 11) = s0_11;
    s0_12 = (s0_12 * (0x1.279a74p-1f));
    *(block + 12) = s0_12;
    s0_13 = (s0_13 * (0x1.279a74p-1f));
    *(block + 13) = s0_13;
    s0_14 = (s0_14 * (0x1.279a74p-1f));
    *(block + 14) = s0_14;
    s0_15 = (s0_15 * (0x1.279a74p-1f));
    *(block + 15) = s0_15;
}

static by_hand_SCALAR
float by_hand_scalar_attention_softmax_3(float *row) {
    row[4] = -__builtin_inff();
    row[5] = -__builtin_inff();
    row[6] = -__builtin_inff();
    row[7] = -__builtin_inff();
    row[8] = -__builtin_inff();
    row[9] = -__builtin_inff();
    row[10] = -__builtin_inff();
    row[11] = -__builtin_inff();
    row[12] = -__builtin_inff();
    row[13] = -__builtin_inff();
    row[14] = -__builtin_inff();
    row[15] = -__builtin_inff();
    float greatest = *(row + 0);
    greatest = by_hand_scalar_max(greatest, *(row + 1));
    greatest = by_hand_scalar_max(greatest, *(row + 2));
    greatest = by_hand_scalar_max(greatest, *(row + 3));
    greatest = by_hand_scalar_max(greatest, *(row + 4));
    greatest = by_hand_scalar_max(greatest, *(row + 5));
    greatest = by_hand_scalar_max(greatest, *(row + 6));
    greatest = by_hand_scalar_max(greatest, *(row + 7));
    greatest = by_hand_scalar_max(greatest, *(row + 8));
    greatest = by_hand_scalar_max(greatest, *(row + 9));
    greatest = by_hand_scalar_max(greatest, *(row + 10));
    greatest = by_hand_scalar_max(greatest, *(row + 11));
    greatest = by_hand_scalar_max(greatest, *(row + 12));
    greatest = by_hand_scalar_max(greatest, *(row + 13));
    greatest = by_hand_scalar_max(greatest, *(row + 14));
    greatest = by_hand_scalar_max(greatest, *(row + 15));
    float most = greatest;
    float total = 0.0f;
    {
        const float e = by_hand_scalar_exp(((*(row + 0)) - most));
        *(row + 0) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 1)) - most));
        *(row + 1) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 2)) - most));
        *(row + 2) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 3)) - most));
        *(row + 3) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 4)) - most));
        *(row + 4) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 5)) - most));
        *(row + 5) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 6)) - most));
        *(row + 6) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 7)) - most));
        *(row + 7) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 8)) - most));
        *(row + 8) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 9)) - most));
        *(row + 9) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 10)) - most));
        *(row + 10) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 11)) - most));
        *(row + 11) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 12)) - most));
        *(row + 12) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 13)) - most));
        *(row + 13) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 14)) - most));
        *(row + 14) = e;
        total = (total + e);
    }
    {
        const float e = by_hand_scalar_exp(((*(row + 15)) - most));
        *(row + 15) = e;
        total = (total + e);
    }
    return total;
}

static by_hand_SCALAR
void by_hand_scalar_attention_mix_3_0(const float *row, const float *value, float inverse, float *out) {
    float o0 = 0.0f;
    float o1 = 0.0f;
    float o2 = 0.0f;
    {
        const float w = *(row + 0);
        o0 = by_hand_scalar_fma(o0, w, *(value + 0));
        o1 = by_hand_scalar_fma(o1, w, *(value + 1));
        o2 = by_hand_scalar_fma(o2, w, *(value + 2));
    }
    {
        const float w = *(row + 1);
        o0 = by_hand_scalar_fma(o0, w, *(value + 48));
        o1 = by_hand_scalar_fma(o1, w, *(value + 49));
        o2 = by_hand_scalar_fma(o2, w, *(value + 50));
    }
    {
        const float w = *(row + 2);
        o0 = by_hand_scalar_fma(o0, w, *(value + 96));
        o1 = by_hand_scalar_fma(o1, w, *(value + 97));
        o2 = by_hand_scalar_fma(o2, w, *(value + 98));
    }
    {
        const float w = *(row + 3);
        o0 = by_hand_scalar_fma(o0, w, *(value + 144));
        o1 = by_hand_scalar_fma(o1, w, *(value + 145));
        o2 = by_hand_scalar_fma(o2, w, *(value + 146));
    }
    o0 = (o0 * inverse);
    *(out + 0) = o0;
    o1 = (o1 * inverse);
    *(out + 1) = o1;
    o2 = (o2 * inverse);
    *(out + 2) = o2;
}

static by_hand_SCALAR
void by_hand_scalar_attention_rows_3(const float *query, const float *panels, const float *value, float *block, float *out) {
    by_hand_scalar_attention_scores_3_0(query, panels, block);
    (void)value;
    {
        float *row = block + 0;
        const float sum = by_hand_scalar_attention_softmax_3(row);
        const float inverse = sum == 0.0f ? 0.0f : 1.0f / sum;
        by_hand_scalar_attention_mix_3_0(row, value, inverse, out + 0);
    }
}

/* attention of 1 heads of 3 over the keys of the same sequence */
static by_hand_SCALAR
void by_hand_scalar_attention(const by_hand_run *run, const float *q, const float *k, const float *v, float *out) {
    float *panels = run->scratch, *block = panels + 48;
    by_hand_scalar_attention_pack_0_0(k + 0, panels);
    by_hand_scalar_attention_rows_0(q + 0, panels, v + 0, block, out + 0);
    by_hand_scalar_attention_rows_1(q + 48, panels, v + 0, block, out + 3);
    by_hand_scalar_attention_rows_2(q + 96, panels, v + 0, block, out + 6);
    by_hand_scalar_attention_rows_3(q + 144, panels, v + 0, block, out + 9);
}

/* layer0_attention_mixed: 1 heads of 3 */
static by_hand_SCALAR
void by_hand_scalar_step_layer0_attention_mixed(void *with, int thread) {
    by_hand_run *run = (by_hand_run *)with;
    (void)thread;
    by_hand_scalar_attention(run, run->workspace + 0, run->workspace + 16, run->workspace + 32, run->out_hidden);
}

static __attribute__((noinline)) by_hand_SCALAR
void by_hand_scalar_forward_chunk(by_hand_run *run) {
    by_hand_scalar_step_layer0_attention_query_key_value(run, 0);
    if (run->out_hidden) by_hand_scalar_step_layer0_attention_mixed(run, 0);
}

const char *by_hand_status_text(int status) {
    switch (status) {
        case BY_HAND_OK: return "fine";
        case BY_HAND_BAD_ARGUMENT: return "a null pointer, a struct of another size, or a bad count";
        case BY_HAND_BAD_WEIGHTS: return "the weights are damaged, or of another size, model, layout or version";
        case BY_HAND_NO_TARGET: return "this machine lacks the instructions";
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
    return (uint64_t)b[0] | (uint64_t)b[1] << 8 | (uint64_t)b[2] << 16 | (uint64_t)b[3] << 24 | (uint64_t)b[4] << 32 | (uint64_t)b[5] << 40 | (uint64_t)b[6] << 48 | (uint64_t)b[7] << 56;
}

/* The header of a .attnw: magic, version, hashes of model and layout, dtype, sizes, zeros, checksums. */
static int by_hand_good_weights(const unsigned char *bytes, size_t size, int verify) {
    const uint64_t seed = UINT64_C(0xcbf29ce484222325);
    if (size != BY_HAND_WEIGHTS_BYTES || (uintptr_t)bytes % BY_HAND_ALIGNMENT != 0) return 0;
    if (by_hand_u64(bytes) != UINT64_C(0x1a0a0d574e545441) || by_hand_u64(bytes + 8) != (UINT64_C(1) << 32 | 1)) return 0;
    if (by_hand_u64(bytes + 120) != by_hand_hash(seed, bytes, 120)) return 0;
    if (by_hand_u64(bytes + 16) != UINT64_C(0x15ddb4f768ecaee6) || by_hand_u64(bytes + 56) != UINT64_C(0x6c3145c1f1741413)) return 0;
    if (by_hand_u64(bytes + 24) != UINT64_C(3) << 32) return 0; /* of f32 */
    if (by_hand_u64(bytes + 32) != 128 || by_hand_u64(bytes + 40) != UINT64_C(1216)) return 0;
    if (by_hand_u64(bytes + 64) | by_hand_u64(bytes + 72) | by_hand_u64(bytes + 80) | by_hand_u64(bytes + 88) | by_hand_u64(bytes + 96) | by_hand_u64(bytes + 104) | by_hand_u64(bytes + 112)) return 0;
    return !verify || by_hand_u64(bytes + 48) == by_hand_hash(seed, bytes + 128, (size_t)1216u);
}

static int by_hand_same(const char *a, const char *b) {
    return *a == *b && (*a == 0 || by_hand_same(a + 1, b + 1));
}

static const char *const by_hand_targets[] = {"scalar"};

/* The best target of this machine, or the wanted one where it is there; -1: none. */
static int by_hand_pick(const char *wanted) {
    if (!wanted || by_hand_same(wanted, "scalar")) return 0;
    return -1;
}

int by_hand_init(by_hand_ctx *ctx, const void *weights, size_t bytes, const by_hand_options *options) {
    if (!ctx || !weights || (options && options->size != sizeof *options)) return BY_HAND_BAD_ARGUMENT;
    const int threads = options && options->threads > 0 ? options->threads : 1;
    if (options && (options->threads < 0 || options->threads > 4096 || (threads > 1 && !options->parallel_for))) return BY_HAND_BAD_ARGUMENT;
    if (!by_hand_good_weights((const unsigned char *)weights, bytes, options ? options->verify : 0)) return BY_HAND_BAD_WEIGHTS;
    const int target = by_hand_pick(options ? options->target : NULL);
    if (target < 0) return BY_HAND_NO_TARGET;
    ctx->weights = (const float *)(const void *)((const unsigned char *)weights + 128);
    ctx->target = target;
    ctx->threads = threads;
    ctx->parallel_for = options ? options->parallel_for : NULL;
    ctx->pool = options ? options->pool : NULL;
    return BY_HAND_OK;
}

const char *by_hand_target(const by_hand_ctx *ctx) {
    return ctx ? by_hand_targets[ctx->target] : "";
}

static int by_hand_check_input(const by_hand_input *input) {
    if (input->lengths && input->lengths[0] != 4) return BY_HAND_BAD_LENGTH;
    return BY_HAND_OK;
}

int by_hand_forward(const by_hand_ctx *ctx, const by_hand_input *input, by_hand_output *output, void *workspace, size_t bytes) {
    if (!ctx || !input || !output || !workspace || input->size != sizeof *input || output->size != sizeof *output) return BY_HAND_BAD_ARGUMENT;
    if (input->batch != 1 || !input->features) return BY_HAND_BAD_ARGUMENT;
    if (bytes < BY_HAND_WORKSPACE_BYTES(ctx->threads) || (uintptr_t)workspace % BY_HAND_ALIGNMENT != 0) return BY_HAND_SHORT_WORKSPACE;
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
