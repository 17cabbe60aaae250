/* peak.c: the multiply-add rate and the read bandwidth of one core, measured. */
#include "peak.h"

#include "../../runtime/attn_runtime.h"

#include <stdlib.h>
#include <string.h>

double rate_of(void (*rounds)(void), double operations) {
    const double seconds = 0.1, begin = seconds_now();
    double done = 0, end;
    do {
        rounds();
        done += operations;
        end = seconds_now();
    } while (end - begin < seconds);
    return done / (end - begin);
}

#if defined(__x86_64__) || defined(__aarch64__)

static double best(double (*const *chains)(void), int n) {
    double most = 0;
    progress_begin("measuring what this machine can do");
    for (int i = 0; i < n; i++) {
        progress_tick();
        double rate = chains[i]();
        if (rate > most) most = rate;
    }
    return most;
}

#endif

#if defined(__x86_64__)
#include <immintrin.h>

CHAINS(avx512_8, "avx512f", __m512, 8, _mm512_setzero_ps, _mm512_fmadd_ps, 32)
CHAINS(avx512_12, "avx512f", __m512, 12, _mm512_setzero_ps, _mm512_fmadd_ps, 32)
CHAINS(avx512_16, "avx512f", __m512, 16, _mm512_setzero_ps, _mm512_fmadd_ps, 32)
CHAINS(avx2_8, "avx2,fma", __m256, 8, _mm256_setzero_ps, _mm256_fmadd_ps, 16)
CHAINS(avx2_10, "avx2,fma", __m256, 10, _mm256_setzero_ps, _mm256_fmadd_ps, 16)
CHAINS(avx2_12, "avx2,fma", __m256, 12, _mm256_setzero_ps, _mm256_fmadd_ps, 16)
/* For sse2, and for the scalar target, whose compiler may use SSE. */
#define SSE_FMA(acc, a, b) _mm_add_ps(_mm_mul_ps(acc, a), b)
CHAINS(sse2_8, "sse2", __m128, 8, _mm_setzero_ps, SSE_FMA, 8)
CHAINS(sse2_12, "sse2", __m128, 12, _mm_setzero_ps, SSE_FMA, 8)

double peak_flops(const Isa *isa) {
    static double (*const avx512[])(void) = {avx512_8, avx512_12, avx512_16};
    static double (*const avx2[])(void) = {avx2_8, avx2_10, avx2_12};
    static double (*const sse2[])(void) = {sse2_8, sse2_12};
    if (!isa->fused) return best(sse2, 2);
    return isa->width == 16 ? best(avx512, 3) : best(avx2, 3);
}

#elif defined(__aarch64__)
#include <arm_neon.h>

#define CHAINS(name, N, fma) MEASURE(name, (noinline), "+w", float32x4_t, N, vdupq_n_f32(0), fma, 8)
CHAINS(neon_8, 8, vfmaq_f32)
CHAINS(neon_12, 12, vfmaq_f32)
CHAINS(neon_16, 16, vfmaq_f32)
/* The scalar target's compiler may use vectors, but fuses nothing. */
#define TWO_ROUNDINGS(acc, a, b) vaddq_f32(vmulq_f32(acc, a), b)
CHAINS(scalar_8, 8, TWO_ROUNDINGS)
CHAINS(scalar_16, 16, TWO_ROUNDINGS)

/* Sixteen chains of SVE in assembly, since the compiler that builds attnc may lack its intrinsics. The registers v0 to
 * v31 of the clobber list are the low halves of z0 to z31. */
#define CHAINS_OF_SVE(STEP) \
    STEP(0) STEP(1) STEP(2) STEP(3) STEP(4) STEP(5) STEP(6) STEP(7) \
    STEP(8) STEP(9) STEP(10) STEP(11) STEP(12) STEP(13) STEP(14) STEP(15)
#define CLEAR_SVE(n) "movi v" #n ".2d, #0\n"
#define FMA_OF_SVE(n) "fmla z" #n ".s, p0/m, z30.s, z31.s\n"
#define MEASURE_SVE(name, LANES) \
    static void name##_rounds(void) { \
        long rounds = PEAK_ROUNDS; \
        __asm__ volatile(".arch_extension sve\nptrue p0.s, vl" #LANES "\n" CHAINS_OF_SVE(CLEAR_SVE) CLEAR_SVE(30) \
                         CLEAR_SVE(31) "1:\n" CHAINS_OF_SVE(FMA_OF_SVE) "subs %0, %0, #1\nb.ne 1b\n" \
                         : "+r"(rounds) \
                         : \
                         : "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", \
                           "v13", "v14", "v15", "v30", "v31"); \
    } \
    static double name(void) { return rate_of(name##_rounds, 2.0 * (LANES) * 16 * PEAK_ROUNDS); }
MEASURE_SVE(sve_8, 8)
MEASURE_SVE(sve_16, 16)

double peak_flops(const Isa *isa) {
    static double (*const neon[])(void) = {neon_8, neon_12, neon_16};
    static double (*const scalar[])(void) = {scalar_8, scalar_16};
    static double (*const sve[])(void) = {sve_8, sve_16};
    if (isa->width > 4) return best(&sve[isa->width > 8], 1);
    return isa->fused ? best(neon, 3) : best(scalar, 2);
}

#else

double peak_flops(const Isa *isa) {
    (void)isa;
    return 0;
}

#endif

enum { WORDS = 32 << 20 }; /* 256 MB */

static uint64_t walk(const uint64_t *data) {
    uint64_t lanes[16] = {0}, sum = 0;
    for (size_t i = 0; i < WORDS; i += 16)
        for (size_t l = 0; l < 16; l++) lanes[l] += data[i + l];
    for (size_t l = 0; l < 16; l++) sum += lanes[l];
    return sum;
}

#if defined(__x86_64__)
/* Each load reads a cache line. Reading at several places keeps more lines in flight than a single sequence of
 * reads. */
#define WALK(name, PLACES) \
    __attribute__((target("avx512f"), noinline)) static uint64_t name(const uint64_t *data) { \
        __m512i sums[PLACES]; \
        for (int p = 0; p < PLACES; p++) sums[p] = _mm512_setzero_si512(); \
        for (size_t i = 0; i < WORDS / PLACES; i += 8) \
            _Pragma("GCC unroll 16") for (size_t p = 0; p < PLACES; p++) sums[p] = \
                _mm512_add_epi64(sums[p], _mm512_loadu_si512(data + p * (WORDS / PLACES) + i)); \
        for (int p = 1; p < PLACES; p++) sums[0] = _mm512_add_epi64(sums[0], sums[p]); \
        return (uint64_t)_mm512_reduce_add_epi64(sums[0]); \
    }
WALK(walk_lines, 1)
WALK(walk_places, 4)
#endif

double read_bandwidth(void) {
    uint64_t (*walks[3])(const uint64_t *) = {walk};
    int n = 1;
#if defined(__x86_64__)
    if (machine_has_feature(feature_find("avx512f"))) {
        walks[n++] = walk_lines;
        walks[n++] = walk_places;
    }
#endif
    uint64_t *data = attn_alloc((size_t)WORDS * sizeof *data), sum = 0; /* in huge pages, which weights may use too */
    if (!data) out_of_memory();
    memset(data, 1, (size_t)WORDS * sizeof *data);
    double most = 0;
    progress_begin("measuring how fast this machine reads");
    for (int run = 0; run < 6; run++) {
        progress_tick();
        double begin = seconds_now();
        sum += walks[run % n](data);
        __asm__ volatile("" : "+r"(sum));
        double rate = 8.0 * WORDS / (seconds_now() - begin);
        if (rate > most) most = rate;
    }
    attn_free(data);
    return most;
}
