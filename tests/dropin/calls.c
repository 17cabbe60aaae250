#include "calls.h"

#include <string.h>

/* Numbers of a call, which nobody could tell from random ones. */
static void fill(int32_t *ids, int count, int step, int below) {
    for (int i = 0; i < count; i++) ids[i] = (i * step + 3) % below;
}

/* Options are assigned one by one: C++17 has no designated initializers, and g++ warns of those that skip members. */
#define INIT(NAME)                                                                                                     \
    {                                                                                                                  \
        NAME##_options options;                                                                                        \
        memset(&options, 0, sizeof options);                                                                           \
        options.size = sizeof options, options.target = target, options.verify = 1, options.threads = threads;         \
        options.parallel_for = run, options.pool = pool, options.least_work = 1;                                       \
        options.on_step = on_step, options.watcher = watcher;                                                          \
        int status = NAME##_init(&contexts->NAME, NAME##_embedded(), NAME##_bytes, &options);                          \
        if (status) return status;                                                                                     \
    }

int calls_init(Contexts *contexts, const char *target, int threads, parallel run, void *pool, watch on_step,
               void *watcher) {
    const size_t sentence_bytes = SENTENCE_WEIGHTS_BYTES, speaker_bytes = SPEAKER_WEIGHTS_BYTES,
                 translator_bytes = TRANSLATOR_WEIGHTS_BYTES, straight_bytes = STRAIGHT_WEIGHTS_BYTES;
    INIT(sentence)
    INIT(speaker)
    INIT(translator)
    INIT(straight)
    return 0;
}

static int run_sentence(const sentence_ctx *ctx, Memory *memory, float *out) {
    const int32_t lengths[] = {5, 12};
    int32_t tokens[17];
    fill(tokens, 17, 7, 31);
    sentence_input input = {sizeof input, 2, lengths, tokens};
    sentence_output output = {sizeof output, 0, 0};
    output.hidden = out;
    output.pooled = out + 17 * SENTENCE_HIDDEN_WIDTH;
    int status = sentence_forward(ctx, &input, &output, memory->workspace, sizeof memory->workspace);
    return status ? -status : 17 * SENTENCE_HIDDEN_WIDTH + 2 * SENTENCE_POOLED_WIDTH;
}

/* The whole text in one call; then a prompt, a fork of it that goes on with the wrong token, and the rest in steps. */
static int run_speaker(const speaker_ctx *ctx, Memory *memory, float *out) {
    const int32_t length = SPOKEN, wrong = 2;
    int32_t tokens[SPOKEN];
    float *hidden = out, *logits;
    fill(tokens, SPOKEN, 5, 29);
    speaker_input input = {sizeof input, 1, &length, tokens};
    speaker_output output = {sizeof output, 0, 0};
    output.hidden = hidden;
    hidden += SPOKEN * SPEAKER_HIDDEN_WIDTH;
    output.logits = logits = hidden + SPOKEN * SPEAKER_HIDDEN_WIDTH;
    logits += SPOKEN * SPEAKER_LOGITS_WIDTH;
    int status = speaker_forward(ctx, &input, &output, memory->workspace, sizeof memory->workspace);
    if (!status) status = speaker_state_init(memory->state, sizeof memory->state);
    for (int i = PROMPT; i <= SPOKEN && !status; i++) {
        void *state = memory->state, *fork = memory->fork;
        speaker_decoded decoded = {sizeof decoded, 0, 0};
        decoded.hidden = hidden;
        decoded.logits = logits;
        if (i == PROMPT) {
            status = speaker_prefill(ctx, state, tokens, PROMPT, &decoded, memory->workspace, sizeof memory->workspace);
            if (!status) status = speaker_state_copy(fork, state);
            hidden += PROMPT * SPEAKER_HIDDEN_WIDTH;
            continue;
        }
        status = speaker_step(ctx, &fork, &wrong, 1, &decoded, memory->workspace, sizeof memory->workspace);
        if (!status)
            status =
                speaker_step(ctx, &state, tokens + i - 1, 1, &decoded, memory->workspace, sizeof memory->workspace);
        hidden += SPEAKER_HIDDEN_WIDTH;
    }
    return status ? -status : (int)(logits + SPEAKER_LOGITS_WIDTH - out);
}

/* The same over a source. */
static int run_translator(const translator_ctx *ctx, Memory *memory, float *out) {
    const int32_t length = TARGET_ROWS, source_length = SOURCE_ROWS;
    int32_t source[SOURCE_ROWS], target[TARGET_ROWS];
    void *sources[] = {memory->source}, *state = memory->target_state;
    fill(source, SOURCE_ROWS, 5, 23);
    fill(target, TARGET_ROWS, 9, 23);
    translator_input input = {sizeof input, 1, &length, &source_length, source, target};
    translator_output output = {sizeof output, 0, 0, 0};
    output.hidden = out;
    output.logits = out += TARGET_ROWS * TRANSLATOR_HIDDEN_WIDTH;
    out += TARGET_ROWS * TRANSLATOR_LOGITS_WIDTH;
    int status = translator_forward(ctx, &input, &output, memory->workspace, sizeof memory->workspace);
    translator_source given = {sizeof given, 1, &source_length, source};
    translator_encoded encoded = {sizeof encoded, 0};
    if (!status)
        status = translator_encode(ctx, &given, &encoded, sources, memory->workspace, sizeof memory->workspace);
    if (!status) status = translator_state_init(state, sizeof memory->target_state, memory->source);
    for (int i = 0; i < TARGET_ROWS && !status; i++) {
        translator_decoded decoded = {sizeof decoded, 0, 0};
        decoded.hidden = out + i * TRANSLATOR_HIDDEN_WIDTH;
        status = translator_step(ctx, &state, target + i, 1, &decoded, memory->workspace, sizeof memory->workspace);
    }
    return status ? -status
                  : TARGET_ROWS * (2 * TRANSLATOR_HIDDEN_WIDTH + TRANSLATOR_LOGITS_WIDTH);
}

static int run_straight(const straight_ctx *ctx, Memory *memory, float *out) {
    const int32_t length = STRAIGHT_SEQ;
    int32_t tokens[STRAIGHT_SEQ];
    fill(tokens, STRAIGHT_SEQ, 7, 19);
    straight_input input = {sizeof input, 1, &length, tokens};
    straight_output output = {sizeof output, 0};
    output.hidden = out;
    int status = straight_forward(ctx, &input, &output, memory->workspace, sizeof memory->workspace);
    return status ? -status : STRAIGHT_SEQ * STRAIGHT_HIDDEN_WIDTH;
}

int calls_run(const Contexts *contexts, int model, Memory *memory, float *out) {
    switch (model) {
    case SENTENCE: return run_sentence(&contexts->sentence, memory, out);
    case SPEAKER: return run_speaker(&contexts->speaker, memory, out);
    case TRANSLATOR: return run_translator(&contexts->translator, memory, out);
    default: return run_straight(&contexts->straight, memory, out);
    }
}
