/* bulk.c: the lines of a file through the embedder of examples/similarity, many times. What it cannot read ends
 * the process with a message. */
#include "../../../examples/similarity/embedder.h"

#include "timer.h"

#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

struct bulk {
    Embedder embedder;
    Batch batch;
};

static int run(void *with) {
    struct bulk *b = with;
    tokenize(&b->embedder, &b->batch);
    embed(&b->embedder, &b->batch, 0, 0, 1);
    return 0;
}

EXPORT void *bulk_open(const char *weights, const char *vocab, const char *texts, int threads) {
    struct bulk *b = must_have(calloc(1, sizeof *b));
    embedder_open(&b->embedder, vocab, weights, NULL, threads);
    embedder_warm(&b->embedder);
    Reader *reader = must_have(malloc(sizeof *reader));
    reader_open(reader, texts);
    while (reader_next(reader, &b->batch.texts)) continue;
    reader_close(reader);
    free(reader);
    return b;
}

/* [lines][384], overwritten by the next run. */
EXPORT const float *bulk_run(void *bulk) {
    struct bulk *b = bulk;
    run(b);
    return b->batch.embeddings;
}

EXPORT int bulk_time(void *bulk, double seconds, double sample, double *median, long *calls) {
    return timer_median(run, bulk, seconds, sample, median, calls);
}
