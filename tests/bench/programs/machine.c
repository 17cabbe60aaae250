/* machine.c: what one core can do, measured by the compiler's own peak.c and peak_unit.c. */
#include "peak.h"

#include "attn_runtime.h"

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
_Noreturn void out_of_memory(void) { abort(); }
void progress_begin(const char *what, ...) { (void)what; }
void progress_tick(void) {}
static int has_dots, has_pairs, has_tiles;
bool isa_has(const Isa *isa, const char *capability) {
    (void)isa;
    return (has_tiles && !strcmp(capability, "tiles")) || (has_dots && !strcmp(capability, "dot_of_bytes")) ||
           (has_pairs && !strcmp(capability, "dot_of_bf16"));
}

/* Separate multiply-adds where `width`, the floats of a vector, is 1; else fused ones. */
EXPORT double machine_peak(int width) { return peak_flops(&(Isa){.width = width, .fused = width > 1}); }
EXPORT double machine_read(void) { return read_bandwidth(); }

/* Of the unit that multiplies bytes, or numbers in bf16 where `bf16` is not 0; 0 where floats multiply them. */
EXPORT double machine_unit(int width, int dots, int pairs, int tiles, int bf16) {
    has_dots = dots, has_pairs = pairs, has_tiles = tiles;
    return peak_unit(&(Isa){.width = width, .fused = width > 1}, bf16 ? DTYPE_BF16 : DTYPE_I8);
}

enum { PLACES = 4, LINE = 64, READS = 8 };
typedef unsigned long long Line __attribute__((vector_size(LINE), aligned(LINE)));

static unsigned long long read_lines(const Line *data, size_t lines) {
    Line sums[PLACES] = {{0}}, sum = {0};
    size_t part = lines / PLACES;
    for (size_t i = 0; i < part; i++)
        for (size_t p = 0; p < PLACES; p++) sums[p] += data[p * part + i];
    for (size_t p = 0; p < PLACES; p++) sum += sums[p];
    return sum[0] + sum[LINE / 8 - 1];
}

/* Bytes a second from a buffer of that size, read many times, as a decoder reads its weights; the best of READS. */
EXPORT double machine_read_of(size_t bytes) {
    size_t lines = bytes / LINE / PLACES * PLACES;
    Line *data = attn_alloc(lines * LINE);
    if (!data || !lines) return 0;
    memset(data, 1, lines * LINE);
    double least = 0;
    for (int i = 0; i <= READS; i++) {
        double begin = seconds_now();
        unsigned long long sum = read_lines(data, lines);
        __asm__ volatile("" : "+r"(sum));
        double took = seconds_now() - begin;
        if (i == 1 || (i && took < least)) least = took;
    }
    attn_free(data);
    return (double)(lines * LINE) / least;
}
