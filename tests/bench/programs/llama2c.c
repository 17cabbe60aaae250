/* llama2c.c: a loop around llama2.c. -DLLAMA2C_SOURCE names its run.c, whose main is left out. */
#define TESTING
#include LLAMA2C_SOURCE

#include "timer.h"

#define EXPORT __attribute__((visibility("default")))

struct text {
    Transformer *model;
    const int *tokens;
    int count;
    float *last; /* logits of the last token */
};

/* The tokens one by one; each call overwrites the cache of keys and values from its first row on. */
static int run(void *with) {
    struct text *text = with;
    for (int i = 0; i < text->count; i++) text->last = forward(text->model, text->tokens[i], i);
    return 0;
}

EXPORT void *llama_open(const char *path, int threads, int flash, int half) {
    (void)threads, (void)flash, (void)half; /* OMP_NUM_THREADS says; there is one kind of attention and of cache */
    Transformer *model = calloc(1, sizeof *model);
    if (model) build_transformer(model, (char *)path);
    return model;
}

EXPORT int llama_run(void *model, const int *tokens, int count, int together, float *logits) {
    struct text text = {model, tokens, count, NULL};
    if (together) return -1;
    run(&text);
    memcpy(logits, text.last, sizeof(float) * (size_t)((Transformer *)model)->config.vocab_size);
    return 0;
}

EXPORT int llama_time(void *model, const int *tokens, int count, int together, double seconds, double sample,
                      double *median, long *calls) {
    struct text text = {model, tokens, count, NULL};
    return together ? -1 : timer_median(run, &text, seconds, sample, median, calls);
}
