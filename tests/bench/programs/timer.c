/* timer.c: see timer.h. */
#include "timer.h"

#include <stdlib.h>
#include <time.h>

enum { MOST_SAMPLES = 4096 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int repeat(int (*call)(void *), void *with, long count, double *took) {
    double begin = now();
    int status = 0;
    for (long i = 0; i < count && !status; i++) status = call(with);
    *took = now() - begin;
    return status;
}

int timer_median(int (*call)(void *with), void *with, double seconds, double sample, double *median, long *calls) {
    static double samples[MOST_SAMPLES];
    double took = 0, begin = now();
    long count = 1;
    int status = repeat(call, with, 1, &took); /* finds caches cold: not counted unless it fills the time alone */
    *calls = 1;
    *median = took;
    if (status || took >= seconds) return status;
    /* Doubling warms them, and finds how many calls a sample needs. */
    while (!status && took < sample) {
        if (took > sample / 50) {
            count = (long)((double)count * sample / took) + 1;
            break;
        }
        count *= 2;
        status = repeat(call, with, count, &took);
    }
    int n = 0;
    *calls = 0;
    while (!status && n < MOST_SAMPLES && (n < 1 || now() - begin + took / 2 < seconds)) {
        status = repeat(call, with, count, &took);
        samples[n++] = took / (double)count;
        *calls += count;
    }
    if (status) return status;
    qsort(samples, (size_t)n, sizeof *samples, by_size);
    *median = n % 2 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2;
    return 0;
}
