/* A program of C or C++ around four models: TARGET writes what they give as it is; TARGET threads, pool, OTHER:
 * the same bits in eight threads at once, with a pool inside of the calls, beside contexts of another target; and
 * TARGET texts: what attn_generate says. Exit status: 0 fine, 1 not, 77 this machine lacks the target. */
#include "calls.h"

#include "attn_generate.h"
#include "attn_runtime.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif
ATTN_MODEL_OF(speaker);
#ifdef __cplusplus
}
#endif

enum { THREADS = 8, ROUNDS = 20 };

typedef struct Answer {
    int floats[MODELS];
    float numbers[MODELS][MOST_FLOATS];
} Answer;

typedef struct Worker {
    const Contexts *contexts;
    const Answer *wanted;
    pthread_t thread;
    int first, different;
} Worker;

static int fail(const char *what, int status) {
    fprintf(stderr, "%s: status %d\n", what, status);
    return status == SENTENCE_NO_TARGET ? 77 : 1;
}

static Memory *memory_new(void) {
    Memory *memory = (Memory *)attn_alloc(sizeof *memory);
    if (!memory) abort();
    memset(memory, 0xff, sizeof *memory);
    return memory;
}

static int answer(const Contexts *contexts, Answer *out) {
    Memory *memory = memory_new();
    int status = 0;
    for (int m = 0; m < MODELS && !status; m++) {
        out->floats[m] = calls_run(contexts, m, memory, out->numbers[m]);
        if (out->floats[m] < 1) status = -out->floats[m];
    }
    attn_free(memory);
    return status;
}

static int different(const Answer *a, const Answer *b) {
    int found = 0;
    for (int m = 0; m < MODELS; m++)
        found += a->floats[m] != b->floats[m] ||
                 memcmp(a->numbers[m], b->numbers[m], sizeof(float) * (size_t)a->floats[m]) != 0;
    return found;
}

/* Each thread begins with another model, in memory of its own. */
static void *work(void *with) {
    Worker *worker = (Worker *)with;
    Memory *memory = memory_new();
    float *numbers = (float *)malloc(sizeof(float) * MOST_FLOATS);
    if (!numbers) abort();
    for (int i = 0; i < ROUNDS * MODELS; i++) {
        int m = (worker->first + i) % MODELS, floats = calls_run(worker->contexts, m, memory, numbers);
        worker->different += floats != worker->wanted->floats[m] ||
                             memcmp(numbers, worker->wanted->numbers[m], sizeof(float) * (size_t)floats) != 0;
    }
    free(numbers);
    attn_free(memory);
    return NULL;
}

/* Odd threads have the second contexts. */
static int at_once(const Contexts *contexts, const Answer *wanted) {
    static Worker workers[THREADS];
    int found = 0;
    for (int i = 0; i < THREADS; i++) {
        workers[i].contexts = &contexts[i % 2];
        workers[i].wanted = &wanted[i % 2];
        workers[i].first = i / 2;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) abort();
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        found += workers[i].different;
    }
    return found;
}

static int with_pool(const char *target, const Answer *wanted) {
    static Contexts contexts;
    static Answer shared;
    attn_pool *pool = attn_pool_new(MOST_THREADS);
    if (!pool) abort();
    int status = calls_init(&contexts, target, MOST_THREADS, attn_pool_run, pool);
    if (!status) status = answer(&contexts, &shared);
    attn_pool_free(pool);
    if (status) return fail("with a pool", status);
    return different(&shared, wanted) ? fail("a pool gives other bits", 0) : 0;
}

static int texts(const Contexts *contexts, int beams) {
    Memory *memory = memory_new(), *other = memory_new();
    void *states[] = {memory->state, memory->fork, other->state};
    speaker_generator generator = {&contexts->speaker, states, memory->workspace, sizeof memory->workspace, 0};
    attn_model model = speaker_generator_model(&generator, SPEAKER_VOCAB, SPEAKER_SEQ);
    attn_generate_options options;
    attn_generated text;
    const int32_t prompt[] = {1, 5, 9};
    int32_t tokens[12];
    memset(&options, 0, sizeof options);
    memset(&text, 0, sizeof text);
    options.size = sizeof options;
    options.max_new = 12;
    options.beams = beams;
    options.length_penalty = 0.6;
    text.size = sizeof text;
    text.tokens = tokens;
    for (int i = 0; i < 3; i++) speaker_state_init(states[i], SPEAKER_STATE_BYTES);
    size_t bytes = attn_generate_bytes(&model, &options);
    void *room = malloc(bytes);
    if (!room) abort();
    int status = attn_generate(&model, &options, prompt, 3, &text, room, bytes);
    for (int i = 0; i < text.count && !status; i++) printf("%d ", tokens[i]);
    printf("\n");
    free(room);
    attn_free(memory);
    attn_free(other);
    return status ? fail("attn_generate", status) : 0;
}

int main(int argc, char **argv) {
    static Contexts contexts[2];
    static Answer wanted[2];
    const char *target = argc > 1 ? argv[1] : NULL, *mode = argc > 2 ? argv[2] : "";
    int plain = !*mode || !strcmp(mode, "threads") || !strcmp(mode, "pool") || !strcmp(mode, "texts");
    for (int i = 0; i < 2; i++) {
        int status = calls_init(&contexts[i], i && !plain ? mode : target, 1, NULL, NULL);
        if (!status) status = answer(&contexts[i], &wanted[i]);
        if (status) return fail("a model", status);
    }
    if (!strcmp(mode, "pool")) return with_pool(target, &wanted[0]);
    if (!strcmp(mode, "texts")) return texts(&contexts[0], 0) || texts(&contexts[0], 3);
    if (*mode) return at_once(contexts, wanted) ? fail("a thread got other bits", 0) : 0;
    for (int m = 0; m < MODELS; m++) fwrite(wanted[0].numbers[m], sizeof(float), (size_t)wanted[0].floats[m], stdout);
    return fflush(stdout) != 0;
}
