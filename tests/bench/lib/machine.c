/* machine.c: what one core can do, measured by the compiler's own peak.c and, for reads, by wider loads as well. */
#include "peak.h"

#include "../attnc.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

/* What peak.c takes from the rest of the compiler. */
double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
void *checked_malloc(size_t bytes) { return malloc(bytes); }
_Noreturn void out_of_memory(void) { abort(); }

EXPORT double machine_peak(const char *target) { return peak_flops(target); }
EXPORT double machine_read(void) { return read_bandwidth(); }

#if defined(__x86_64__)
#include <immintrin.h>

enum { BYTES = 256 << 20, STREAMS = 4 };

/* STREAMS places of the buffer at a time: more lines are under way than a single walk asks for. */
__attribute__((target("avx512f"), noinline)) static float read_wide(const char *data) {
    const size_t part = BYTES / STREAMS;
    __m512 sums[STREAMS];
    for (int s = 0; s < STREAMS; s++) sums[s] = _mm512_setzero_ps();
    for (size_t i = 0; i < part; i += 64)
        for (int s = 0; s < STREAMS; s++) sums[s] = _mm512_add_ps(sums[s], _mm512_load_ps(data + s * part + i));
    return _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(sums[0], sums[1]), _mm512_add_ps(sums[2], sums[3])));
}

__attribute__((target("avx512f"), noinline)) static float read_line(const char *data) {
    __m512 a = _mm512_setzero_ps(), b = a;
    for (size_t i = 0; i < BYTES; i += 128) {
        a = _mm512_add_ps(a, _mm512_load_ps(data + i));
        b = _mm512_add_ps(b, _mm512_load_ps(data + i + 64));
    }
    return _mm512_reduce_add_ps(_mm512_add_ps(a, b));
}

EXPORT double machine_read_wide(void) {
    if (!__builtin_cpu_supports("avx512f")) return 0;
    static char *data;
    if (!data) {
        data = aligned_alloc(64, BYTES);
        if (!data) return 0;
        memset(data, 0, BYTES);
    }
    double most = 0;
    float (*const ways[])(const char *) = {read_wide, read_line};
    for (int run = 0; run < 6; run++) {
        double begin = seconds_now();
        float sum = ways[run % 2](data);
        __asm__ volatile("" : : "x"(sum));
        double rate = BYTES / (seconds_now() - begin);
        if (rate > most) most = rate;
    }
    return most;
}
#else
EXPORT double machine_read_wide(void) { return 0; }
#endif
