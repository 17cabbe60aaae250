/* What choosing tokens costs a step: the time between one call of the model and the next, for a model that gives
 * logits made beforehand. build/unit/time_generate prints medians in microseconds; make builds it when asked for. */
#include "../../runtime/attn_generate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { STEPS = 200, ROWS = 16, BEAMS = 4 };

typedef struct Made {
    int vocab, calls;
    float *rows; /* [ROWS][vocab] */
    double left; /* when the last call came back */
    double times[STEPS + 1];
} Made;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

static int step(void *with, int count, const int *slots, const int32_t *tokens, float *logits) {
    Made *made = with;
    double entered = now();
    (void)slots;
    if (made->calls > 0) {
        made->times[made->calls - 1] = entered - made->left;
    }
    made->calls++;
    for (int i = 0; i < count; i++) {
        size_t row = (size_t)(made->calls * 5 + tokens[i]) % ROWS, vocab = (size_t)made->vocab;
        memcpy(logits + (size_t)i * vocab, made->rows + row * vocab, vocab * sizeof *logits);
    }
    made->left = now();
    return 0;
}

static int prefill(void *with, int slot, const int32_t *tokens, int count, float *logits) {
    (void)count;
    return step(with, 1, &slot, tokens, logits);
}

static int copy(void *with, int to, int from) {
    (void)with;
    (void)to;
    (void)from;
    return 0;
}

static int by_value(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static uint64_t random_state = 1;

static double fraction(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return ((double)(random_state >> 12) + 0.5) * 0x1p-52;
}

/* Normal logits of deviation 3, as language models give. */
static void fill(float *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        rows[i] = (float)(3 * sqrt(-2 * log(fraction())) * cos(6.283185307179586 * fraction()));
    }
}

static double median_of(Made *made, attn_generate_options options) {
    attn_model model = {sizeof model, made->vocab, STEPS + 8, made, prefill, step, copy};
    static int32_t tokens[STEPS];
    attn_generated result = {.size = sizeof result, .tokens = tokens};
    const int32_t prompt = 0;
    options.size = sizeof options;
    options.max_new = STEPS;
    options.seed = 1;
    made->calls = 0;
    size_t bytes = attn_generate_bytes(&model, &options);
    void *memory = malloc(bytes);
    int status = memory ? attn_generate(&model, &options, &prompt, 1, &result, memory, bytes) : -1;
    free(memory);
    if (status != ATTN_GENERATE_OK || made->calls != STEPS) {
        printf("status %d after %d calls\n", status, made->calls);
        exit(1);
    }
    qsort(made->times, STEPS - 1, sizeof *made->times, by_value);
    return made->times[STEPS / 2];
}

int main(void) {
    static const struct {
        const char *name;
        attn_generate_options options;
    } cases[] = {
        {"greedy", {0}},
        {"temperature 1", {.temperature = 1}},
        {"temperature 0.8, top_k 50", {.temperature = 0.8, .top_k = 50}},
        {"temperature 0.8, top_k 5000", {.temperature = 0.8, .top_k = 5000}},
        {"temperature 0.7, top_p 0.9", {.temperature = 0.7, .top_p = 0.9}},
        {"temperature 1.5, top_p 0.95", {.temperature = 1.5, .top_p = 0.95}}, /* a large nucleus */
        {"4 beams", {.beams = BEAMS, .length_penalty = 0.6}},
    };
    for (int vocab = 32000; vocab <= 128000; vocab *= 4) {
        static Made made;
        made.vocab = vocab;
        made.rows = malloc((size_t)vocab * ROWS * sizeof *made.rows);
        if (!made.rows) {
            return 1;
        }
        fill(made.rows, (size_t)vocab * ROWS);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            printf("%6d  %-28s %9.1f us\n", vocab, cases[i].name, median_of(&made, cases[i].options));
        }
        free(made.rows);
    }
    return 0;
}
