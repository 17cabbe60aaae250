/* denormals.h: tells whether this thread has read or made denormal numbers, which are below the normal ones. Each of
 * them can take an Intel processor 150 cycles. Only x86-64 records them, in MXCSR. */
#ifndef DENORMALS_H
#define DENORMALS_H

#include <stdbool.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

enum { DENORMAL_READ = 0x02, DENORMAL_MADE = 0x10 }; /* DE and UE of MXCSR */

enum { DENORMAL_BITS = 0x00412345 }; /* a denormal number, also by the halves of these bits */

#if defined(__x86_64__)
static inline bool denormals_recorded(void) { return true; }
static inline unsigned denormals_seen(void) { return _mm_getcsr() & (DENORMAL_READ | DENORMAL_MADE); }
static inline void denormals_forget(void) { _mm_setcsr(_mm_getcsr() & ~(unsigned)_MM_EXCEPT_MASK); }
#else
static inline bool denormals_recorded(void) { return false; }
static inline unsigned denormals_seen(void) { return 0; }
static inline void denormals_forget(void) {}
#endif

#endif
