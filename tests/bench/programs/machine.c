/* machine.c: what one core can do, measured by the compiler's own peak.c. */
#include "peak.h"

#include <stdlib.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

/* What peak.c takes from the rest of the compiler. */
double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
_Noreturn void out_of_memory(void) { abort(); }
void progress_begin(const char *what, ...) { (void)what; }
void progress_tick(void) {}

/* Separate multiply-adds where `width`, the floats of a vector, is 1; else fused ones. */
EXPORT double machine_peak(int width) { return peak_flops(&(Isa){.width = width, .fused = width > 1}); }
EXPORT double machine_read(void) { return read_bandwidth(); }
