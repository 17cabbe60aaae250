/* fuzz_generate.c: attn_generate with any options over a model whose logits are any floats.
 *
 * The input: the bytes of Given, then the logits, which repeat. Memory is as long as attn_generate_bytes says, so that
 * its end is watched. */
#include "target.h"
#include "../../../runtime/attn_generate.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_VOCAB = 1200, MOST_BOUND = 40, MOST_BEAMS = 9, MOST_ENDS = 4, MOST_PROMPT = 6, MOST_LISTED = 16 };

typedef struct Given {
    double temperature, top_p, length_penalty, repetition_penalty, min_p;
    int32_t top_k, rows, max_new, min_new, end[MOST_ENDS], prompt[MOST_PROMPT], no_repeat_ngram, min_length,
        listed[MOST_LISTED];
    uint16_t vocab;
    uint8_t bound, beams, ends, prompt_count, ignore_end, stop_at, fail_at, plain, early_stopping, history_count;
    uint8_t lists[5]; /* first number of `listed` in the low half, how many in the high one */
} Given;

typedef struct Fake {
    const float *logits; /* [count] */
    size_t count;
    int vocab, bound, beams, calls, fail_at, told, stop_at;
    int held[MOST_BEAMS];
} Fake;

static void fill(Fake *fake, int slot, int32_t token, int count, float *logits) {
    fake->held[slot] += count;
    if (fake->held[slot] > fake->bound) broken("more rows than the model's bound");
    size_t from = (size_t)token * 7 + (size_t)fake->held[slot] * 31;
    for (int i = 0; i < fake->vocab; i++) logits[i] = fake->count ? fake->logits[(from + (size_t)i) % fake->count] : 0;
}

static int failing(Fake *fake) { return fake->fail_at && ++fake->calls == fake->fail_at ? 5 : 0; }

static void check_slot(const Fake *fake, int slot, int32_t token) {
    if (slot < 0 || slot >= fake->beams) broken("a slot that there is not");
    if (token < 0 || token >= fake->vocab) broken("the model is fed a token that there is not");
}

static int prefill(void *with, int slot, const int32_t *tokens, int count, float *logits) {
    Fake *fake = with;
    for (int i = 0; i < count; i++) check_slot(fake, slot, tokens[i]);
    fill(fake, slot, tokens[count - 1], count, logits);
    return failing(fake);
}

static int step(void *with, int count, const int *slots, const int32_t *tokens, float *logits) {
    Fake *fake = with;
    for (int i = 0; i < count; i++) {
        check_slot(fake, slots[i], tokens[i]);
        fill(fake, slots[i], tokens[i], 1, logits + (size_t)i * (size_t)fake->vocab);
    }
    return failing(fake);
}

static int copy(void *with, int to, int from) {
    Fake *fake = with;
    check_slot(fake, to, 0);
    check_slot(fake, from, 0);
    fake->held[to] = fake->held[from];
    return failing(fake);
}

static int on_token(void *with, int32_t token) {
    Fake *fake = with;
    check_slot(fake, 0, token);
    return ++fake->told == fake->stop_at;
}

static void check_result(const Given *given, const Fake *fake, int status, const attn_generated *result) {
    bool known = status >= 0 && status <= ATTN_GENERATE_STOPPED && *attn_generate_status_text(status);
    if (!known) broken("an unknown status");
    if (status == ATTN_GENERATE_BAD_ARGUMENT) return;
    int most = given->max_new > 0 ? given->max_new : 0;
    if (result->count < 0 || result->count > most) broken("a count of tokens out of range");
    for (int i = 0; i < result->count; i++)
        if (result->tokens[i] < 0 || result->tokens[i] >= fake->vocab) broken("a token that there is not");
    if (fake->told != result->count && given->plain & 1) broken("on_token saw another number of tokens");
    if (status == ATTN_GENERATE_OK && !result->ended && result->count != given->max_new) broken("it stops too early");
}

/* A part of `listed`, which may have tokens that there are not and words that are none. */
static const int32_t *list_of(const Given *given, int which, int *count) {
    const int first = given->lists[which] & 15, most = MOST_LISTED - first;
    *count = given->lists[which] >> 4 < most ? given->lists[which] >> 4 : most;
    return given->listed + first;
}

static void give_rules(const Given *given, attn_generate_options *options) {
    options->repetition_penalty = given->repetition_penalty;
    options->min_p = given->min_p;
    options->no_repeat_ngram = given->no_repeat_ngram;
    options->min_length = given->min_length;
    options->early_stopping = given->early_stopping & 7;
    options->history = given->listed;
    options->history_count = given->history_count % (MOST_LISTED + 1);
    options->suppressed = list_of(given, 0, &options->suppressed_count);
    options->suppressed_first = list_of(given, 1, &options->suppressed_first_count);
    options->bad_words = list_of(given, 2, &options->bad_words_count);
    options->forced_first = list_of(given, 3, &options->forced_first_count);
    options->forced_last = list_of(given, 4, &options->forced_last_count);
}

/* One search; the tokens in memory of exactly max_new. */
static int search(const Given *given, Fake *fake, int32_t *tokens, attn_generated *result) {
    attn_model model = {sizeof model, fake->vocab, fake->bound, fake, prefill, step, copy};
    attn_generate_options options = {
        .size = sizeof options, .rows = given->rows, .max_new = given->max_new, .min_new = given->min_new,
        .temperature = given->temperature, .top_k = given->top_k, .top_p = given->top_p, .seed = given->plain,
        .beams = given->beams, .length_penalty = given->length_penalty, .end = given->end, .end_count = given->ends,
        .ignore_end = given->ignore_end & 1, .sequence = given->plain >> 2, .length_form = given->plain >> 1 & 1,
        .on_token_with = fake, .on_token = given->plain & 1 ? on_token : NULL};
    give_rules(given, &options);
    *result = (attn_generated){.size = sizeof *result, .tokens = tokens};
    fake->held[0] = given->rows;
    size_t bytes = attn_generate_bytes(&model, &options);
    if (bytes > (size_t)1 << 26) fail("memory for that many tokens");
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory) fail_status(EXIT_MEMORY, "out of memory");
    int status = attn_generate(&model, &options, given->prompt, given->prompt_count, result, memory, bytes);
    free(memory);
    return status;
}

static void read_input(Arena *arena, const uint8_t *data, size_t size) {
    Given given = {0};
    memcpy(&given, data, size < sizeof given ? size : sizeof given);
    data += size < sizeof given ? size : sizeof given;
    size_t count = size < sizeof given ? 0 : (size - sizeof given) / sizeof(float);
    float *logits = arena_array(arena, count, sizeof *logits);
    if (count) memcpy(logits, data, count * sizeof *logits);
    given.ends %= MOST_ENDS + 1;
    given.prompt_count %= MOST_PROMPT + 1;
    given.beams %= MOST_BEAMS + 1;
    int most = given.max_new < 0 || given.max_new > MOST_BOUND ? 0 : given.max_new;
    if (most != given.max_new && given.max_new > 0) given.max_new = MOST_BOUND, most = MOST_BOUND;
    int32_t *tokens[2];
    attn_generated results[2];
    int statuses[2];
    for (int i = 0; i < 2; i++) {
        Fake fake = {.logits = logits, .count = count, .vocab = given.vocab % MOST_VOCAB,
                     .bound = given.bound % MOST_BOUND, .beams = given.beams ? given.beams : 1,
                     .stop_at = given.stop_at % 32, .fail_at = given.fail_at % 64};
        tokens[i] = arena_array(arena, (size_t)most + 1, sizeof *tokens[i]);
        statuses[i] = search(&given, &fake, tokens[i], &results[i]);
        check_result(&given, &fake, statuses[i], &results[i]);
    }
    if (statuses[0] != statuses[1] || results[0].count != results[1].count ||
        memcmp(tokens[0], tokens[1], (size_t)most * sizeof **tokens))
        broken("a second search gives something else");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) { return run_target(read_input, data, size); }
