/* A program of C or C++ around four models: TARGET writes what they give as it is; TARGET threads, pool, OTHER:
 * the same bits in eight threads at once, with a pool inside of the calls, beside contexts of another target; TARGET
 * steps: the same bits while on_step sees every step of every chunk, in order; and TARGET texts: what attn_generate
 * says. Exit status: 0 fine, 1 not, 77 this machine lacks the target. */
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
    int status = calls_init(&contexts, target, MOST_THREADS, attn_pool_run, pool, NULL, NULL);
    if (!status) status = answer(&contexts, &shared);
    attn_pool_free(pool);
    if (status) return fail("with a pool", status);
    return different(&shared, wanted) ? fail("a pool gives other bits", 0) : 0;
}

/* What on_step has seen: the number of steps of each chunk. */
typedef struct Seen {
    pthread_t caller;
    int next, wrong, chunks;
    int steps[64];
} Seen;

static void see(void *with, int step) {
    Seen *seen = (Seen *)with;
    if (!pthread_equal(pthread_self(), seen->caller)) seen->wrong++;
    if (step == 0 && seen->next > 0 && seen->chunks < 64) {
        seen->steps[seen->chunks++] = seen->next - 1;
        seen->next = 0;
    }
    if (step != seen->next++) seen->wrong++;
}

/* Compares the chunks with `count` times `first`, once `second`, which 0 leaves out, and `rest` of `others`. */
static int unseen(Seen *seen, const char *model, int count, int first, int second, int others, int rest) {
    int at = 0, wrong = seen->wrong;
    see(seen, 0); /* ends the last chunk */
    for (int i = 0; i < count; i++) wrong += seen->steps[at++] != first;
    if (second) wrong += seen->steps[at++] != second;
    for (int i = 0; i < rest; i++) wrong += seen->steps[at++] != others;
    if (wrong || seen->chunks != at) fprintf(stderr, "%s: %d chunks, %d wrong\n", model, seen->chunks, wrong);
    wrong += seen->chunks != at;
    seen->next = seen->wrong = seen->chunks = 0;
    return wrong;
}

/* A batch that takes two chunks. */
#define SEQUENCES (SENTENCE_ROWS / 12 + 1)
static int two_chunks(const sentence_ctx *ctx, Memory *memory) {
    static int32_t lengths[SEQUENCES], tokens[SEQUENCES * 12];
    static float pooled[SEQUENCES * SENTENCE_POOLED_WIDTH];
    sentence_input input = {sizeof input, SEQUENCES, lengths, tokens};
    sentence_output output = {sizeof output, 0, 0};
    output.pooled = pooled;
    for (int i = 0; i < SEQUENCES; i++) lengths[i] = 12;
    return sentence_forward(ctx, &input, &output, memory->workspace, sizeof memory->workspace);
}

static int with_steps(const char *target, const Answer *wanted) {
    static Contexts contexts;
    static Answer watched;
    static Seen seen;
    static const char *const names[] = SPEAKER_DECODE_STEP_NAMES, *const whole[] = STRAIGHT_STEP_NAMES;
    const int decoded = SPEAKER_DECODE_STEPS, straight = STRAIGHT_STEPS, speaker = SPEAKER_STEPS;
    const int sentence = SENTENCE_STEPS, translator = TRANSLATOR_STEPS, encoded = TRANSLATOR_ENCODE_STEPS;
    Memory *memory = memory_new();
    attn_pool *pool = attn_pool_new(MOST_THREADS);
    if (!pool) abort();
    int wrong = sizeof names / sizeof *names != (size_t)decoded || sizeof whole / sizeof *whole != (size_t)straight ||
                strcmp(names[decoded - 1], "copy_hidden") != 0;
    seen.caller = pthread_self();
    for (int threads = 1; threads <= MOST_THREADS; threads += MOST_THREADS - 1) {
        int status = calls_init(&contexts, target, threads, attn_pool_run, pool, see, &seen);
        if (status) return fail("with on_step", status);
        for (int m = 0; m < MODELS; m++) {
            watched.floats[m] = calls_run(&contexts, m, memory, watched.numbers[m]);
            if (m == SENTENCE) wrong += unseen(&seen, "sentence", 1, sentence, 0, 0, 0);
            if (m == SPEAKER) wrong += unseen(&seen, "speaker", 1, speaker, 0, decoded, 1 + 2 * (SPOKEN - PROMPT));
            if (m == TRANSLATOR)
                wrong += unseen(&seen, "translator", 1, translator, encoded, TRANSLATOR_DECODE_STEPS, TARGET_ROWS);
            if (m == STRAIGHT) wrong += unseen(&seen, "straight", 1, straight, 0, 0, 0);
        }
        wrong += different(&watched, wanted);
        wrong += two_chunks(&contexts.sentence, memory);
        wrong += unseen(&seen, "two chunks", 2, sentence, 0, 0, 0);
    }
    attn_pool_free(pool);
    attn_free(memory);
    return wrong != 0;
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
    const char *const others[] = {"", "threads", "pool", "steps", "texts"}; /* than targets */
    int plain = 0;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) plain |= !strcmp(mode, others[i]);
    for (int i = 0; i < 2; i++) {
        int status = calls_init(&contexts[i], i && !plain ? mode : target, 1, NULL, NULL, NULL, NULL);
        if (!status) status = answer(&contexts[i], &wanted[i]);
        if (status) return fail("a model", status);
    }
    if (!strcmp(mode, "pool")) return with_pool(target, &wanted[0]);
    if (!strcmp(mode, "steps")) return with_steps(target, &wanted[0]);
    if (!strcmp(mode, "texts")) return texts(&contexts[0], 0) || texts(&contexts[0], 3);
    if (*mode) return at_once(contexts, wanted) ? fail("a thread got other bits", 0) : 0;
    for (int m = 0; m < MODELS; m++) fwrite(wanted[0].numbers[m], sizeof(float), (size_t)wanted[0].floats[m], stdout);
    return fflush(stdout) != 0;
}
