/* bulk.c: many texts at once, as examples/similarity does it: WordPiece, then one call for all of them. */
#include "bench.h"

#include "wordpiece.h"

#include "timer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { MOST_TOKENS = 256 }; /* of a text: sentence-transformers cuts there too */

struct bulk {
    bench_model *model;
    wordpiece *vocab;
    char *texts, **lines;
    int count;
    int32_t *tokens, *lengths;
    float *pooled;
};

static char *read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    char *text = size >= 0 ? calloc((size_t)size + 1, 1) : NULL;
    if (text && fread(text, 1, (size_t)size, file) != (size_t)size) text[0] = 0;
    fclose(file);
    return text;
}

static int run(void *with) {
    struct bulk *b = with;
    size_t rows = 0;
    for (int i = 0; i < b->count; i++) {
        b->lengths[i] = wordpiece_encode(b->vocab, b->lines[i], strlen(b->lines[i]), b->tokens + rows, MOST_TOKENS);
        if (b->lengths[i] < 0) return -1;
        rows += (size_t)b->lengths[i];
    }
    bench_call call = {.size = sizeof call, .kind = BENCH_FORWARD, .batch = b->count, .lengths = b->lengths};
    call.tokens = b->tokens;
    call.pooled = b->pooled;
    return bench_run(b->model, &call);
}

/* Texts stand a line each in the file `texts`; pooled is [count][width], the caller's. NULL: one of them is missing. */
EXPORT void *bulk_open(const char *weights, const char *vocab, const char *texts, int count, int threads,
                       float *pooled) {
    struct bulk *b = calloc(1, sizeof *b);
    if (!b) return NULL;
    char error[200];
    b->model = bench_open(weights, threads, NULL);
    b->vocab = wordpiece_open(vocab, error, sizeof error);
    b->texts = read_file(texts);
    b->lines = calloc((size_t)count, sizeof *b->lines);
    b->tokens = calloc((size_t)count * MOST_TOKENS, sizeof *b->tokens);
    b->lengths = calloc((size_t)count, sizeof *b->lengths);
    b->pooled = pooled;
    if (!b->model || !b->vocab || !b->texts || !b->lines || !b->tokens || !b->lengths) return NULL;
    for (char *line = strtok(b->texts, "\n"); line && b->count < count; line = strtok(NULL, "\n"))
        b->lines[b->count++] = line;
    return b->count == count ? b : NULL;
}

EXPORT int bulk_run(void *bulk) { return run(bulk); }

EXPORT int bulk_time(void *bulk, double seconds, double sample, double *median, long *calls) {
    return timer_median(run, bulk, seconds, sample, median, calls);
}
