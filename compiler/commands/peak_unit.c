/* peak_unit.c: the rate of the instructions that multiply narrow numbers, of one core, measured. */
#include "peak.h"

#if defined(__x86_64__)
#include "../../runtime/attn_runtime.h"

#include <immintrin.h>
#include <stdint.h>

CHAINS(dot_512, "avx512f,avx512vnni", __m512i, 12, _mm512_setzero_si512, _mm512_dpbusd_epi32, 128)
CHAINS(dot_256, "avx2,avxvnni", __m256i, 12, _mm256_setzero_si256, _mm256_dpbusd_avx_epi32, 64)
#define DOT_BF16(acc, a, b) _mm512_dpbf16_ps(acc, (__m512bh)(a), (__m512bh)(b))
/* Twelve chains do not hide the latency of these products on Zen 5. */
CHAINS(dot_bf16, "avx512f,avx512bf16", __m512, 24, _mm512_setzero_ps, DOT_BF16, 64)
/* Targets without these instructions widen bytes to 16 bits. */
#define ADD_512(acc, a, b) _mm512_add_epi32(acc, _mm512_madd_epi16(a, b))
#define ADD_256(acc, a, b) _mm256_add_epi32(acc, _mm256_madd_epi16(a, b))
#define ADD_128(acc, a, b) _mm_add_epi32(acc, _mm_madd_epi16(a, b))
CHAINS(madd_512, "avx512f,avx512bw", __m512i, 12, _mm512_setzero_si512, ADD_512, 64)
CHAINS(madd_256, "avx2", __m256i, 8, _mm256_setzero_si256, ADD_256, 32)
CHAINS(madd_128, "sse2", __m128i, 8, _mm_setzero_si128, ADD_128, 16)

/* The product of tiles 6 and 7 is added to tiles 0 to 5 in turn, six independent chains. */
#define TILES(name, instruction, OPS) \
    static void name##_rounds(void) { \
        _Alignas(64) uint8_t shapes[64] = {1}; \
        for (int t = 0; t < 8; t++) shapes[16 + 2 * t] = 64, shapes[48 + t] = 16; \
        __asm__ volatile("ldtilecfg %0" : : "m"(*(const char(*)[64])shapes)); \
        for (int r = 0; r < PEAK_ROUNDS; r++) \
            __asm__ volatile(instruction " %%tmm7, %%tmm6, %%tmm0\n" instruction " %%tmm7, %%tmm6, %%tmm1\n" \
                             instruction " %%tmm7, %%tmm6, %%tmm2\n" instruction " %%tmm7, %%tmm6, %%tmm3\n" \
                             instruction " %%tmm7, %%tmm6, %%tmm4\n" instruction " %%tmm7, %%tmm6, %%tmm5" : :); \
        __asm__ volatile("tilerelease"); \
    } \
    static double name(void) { return rate_of(name##_rounds, 6.0 * (OPS) * PEAK_ROUNDS); }
TILES(tiles_of_bytes, "tdpbusd", 32768)
TILES(tiles_of_bf16, "tdpbf16ps", 16384)

static double of_bytes(const Isa *isa) {
    const bool dots = isa_has(isa, "dot_of_bytes");
    if (isa->width == 16) return dots ? dot_512() : madd_512();
    if (isa->width == 8) return dots ? dot_256() : madd_256();
    return isa->width == 4 ? madd_128() : 0;
}

double peak_unit(const Isa *isa, Dtype rows) {
    const bool tiles = isa_has(isa, "tiles") && attn_allow_tiles();
    if (rows == DTYPE_I8) return tiles ? tiles_of_bytes() : of_bytes(isa);
    if (rows != DTYPE_BF16) return 0;
    return tiles ? tiles_of_bf16() : isa_has(isa, "dot_of_bf16") ? dot_bf16() : 0;
}

#else

double peak_unit(const Isa *isa, Dtype rows) {
    (void)isa, (void)rows;
    return 0;
}

#endif
