/* emitted.c: a loop around the C that another program wrote of an ONNX file. -DEMITTED_SOURCE names that file and
 * -DEMITTED_ENTRY its function; one translation unit, so that its compiler sees as much as a user's would. */
#include EMITTED_SOURCE

#include "timer.h"

#define EXPORT __attribute__((visibility("default")))

struct arrays {
    const void *in;
    void *out;
};

static int call(void *with) {
    const struct arrays *a = with;
    EMITTED_ENTRY(a->in, a->out);
    return 0;
}

EXPORT int emitted_run(const void *in, void *out) {
    struct arrays a = {in, out};
    return call(&a);
}

EXPORT int emitted_time(const void *in, void *out, double seconds, double sample, double *median, long *calls) {
    struct arrays a = {in, out};
    return timer_median(call, &a, seconds, sample, median, calls);
}
