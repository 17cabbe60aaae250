/* peak.h: measures the peak rates of this machine. */
#ifndef PEAK_H
#define PEAK_H

#include "../attnc.h"

/* Flops per second of one core: multiply-adds of the target's vectors, fused or separate according to its table; the
 * best of several numbers of chains, 100 ms each. This machine must run the target. 0 if the rate is unknown. */
double peak_flops(const Isa *isa);

/* The operations per second of the instructions with which the target multiplies rows of that type, of one core; a
 * multiply-add is two operations. 0 where the target multiplies such rows as floats, or the rate is unknown. This
 * machine must run the target. */
double peak_unit(const Isa *isa, Dtype rows);

/* Operations per second of `rounds`, a call of which does `operations` of them, over at least 100 ms. */
double rate_of(void (*rounds)(void), double operations);
enum { PEAK_ROUNDS = 20000 }; /* of each chain in a call, less than a millisecond */

/* Defines `double name(void)`, which measures the rate of acc = step(acc, a, b), counted as OPS operations. N
 * independent chains hide the latency of the instruction. All values are `zero`; the empty asm statements hide this
 * from the compiler, which would otherwise drop sums that do not change. `held` is the constraint of vectors in asm. */
#define MEASURE(name, attributes, held, type, N, zero, step, OPS) \
    __attribute__(attributes) static void name##_rounds(void) { \
        type acc[N]; \
        type a = zero, b = zero; \
        for (int i = 0; i < N; i++) acc[i] = zero; \
        for (int r = 0; r < PEAK_ROUNDS; r++) \
            _Pragma("GCC unroll 32") for (int i = 0; i < N; i++) { \
                acc[i] = step(acc[i], a, b); \
                __asm__ volatile("" : held(acc[i]), held(a), held(b)); \
            } \
    } \
    static double name(void) { return rate_of(name##_rounds, (double)(OPS)*N * PEAK_ROUNDS); }
#if defined(__x86_64__)
#define CHAINS(name, isa, type, N, zero, step, OPS) \
    MEASURE(name, (target(isa), noinline), "+v", type, N, zero(), step, OPS)
#endif

/* Bytes per second that one core reads from a buffer that is far larger than the caches. */
double read_bandwidth(void);

#endif
