#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "fake_model.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static int32_t history_room[ROOM];

Fake fake_of(int vocab, int bound, int slots) {
    assert_true(slots <= MAX_SLOTS && slots * bound <= ROOM);
    Fake fake = {.vocab = vocab, .bound = bound, .slots = slots, .history = history_room, .fail_at = -1};
    return fake;
}

uint64_t hash_tokens(uint64_t salt, const int32_t *tokens, int count) {
    uint64_t hash = salt * 0x9e3779b97f4a7c15 + 1;
    for (int i = 0; i < count; i++) {
        hash = (hash ^ (uint64_t)tokens[i]) * 0xff51afd7ed558ccd;
        hash ^= hash >> 29;
    }
    return hash;
}

void fake_logits(const Fake *fake, const int32_t *tokens, int count, float *logits) {
    for (int token = 0; token < fake->vocab; token++) {
        if (fake->row != NULL) {
            logits[token] = fake->row[token];
        } else if (fake->table != NULL) {
            logits[token] = fake->table[tokens[count - 1] * fake->vocab + token];
        } else {
            uint64_t hash = hash_tokens(hash_tokens(fake->salt, tokens, count), (int32_t[]){token, 7, 7}, 3);
            logits[token] = (float)(hash >> 40) * 0x1p-21f; /* 0 to 8 */
        }
    }
}

static int fake_call(Fake *fake) {
    int call = fake->calls++;
    return call == fake->fail_at ? FAILED + call : 0;
}

static void fake_append(Fake *fake, int slot, const int32_t *tokens, int count, float *logits) {
    assert_in_range(slot, 0, fake->slots - 1);
    int32_t *history = fake->history + slot * fake->bound;
    for (int i = 0; i < count; i++) {
        assert_in_range(tokens[i], 0, fake->vocab - 1);
        assert_true(fake->held[slot] < fake->bound);
        history[fake->held[slot]++] = tokens[i];
    }
    fake_logits(fake, history, fake->held[slot], logits);
}

static int fake_prefill(void *with, int slot, const int32_t *tokens, int count, float *logits) {
    Fake *fake = with;
    int status = fake_call(fake);
    if (status == 0) {
        assert_true(count >= 1);
        fake->prefills++;
        fake_append(fake, slot, tokens, count, logits);
        fake->prompt_count = fake->held[slot];
    }
    return status;
}

static int fake_step(void *with, int count, const int *slots, const int32_t *tokens, float *logits) {
    Fake *fake = with;
    int status = fake_call(fake);
    if (status != 0) {
        return status;
    }
    bool seen[MAX_SLOTS] = {false};
    assert_in_range(count, 1, fake->slots);
    for (int i = 0; i < count; i++) {
        fake_append(fake, slots[i], &tokens[i], 1, logits + i * fake->vocab);
        assert_false(seen[slots[i]]);
        seen[slots[i]] = true;
        if (fake->steps < MAX_NEW) {
            fake->fed[fake->steps] += hash_tokens(1, fake->history + slots[i] * fake->bound + fake->prompt_count,
                                                  fake->held[slots[i]] - fake->prompt_count);
        }
    }
    fake->steps++;
    return 0;
}

static int fake_copy(void *with, int to, int from) {
    Fake *fake = with;
    int status = fake_call(fake);
    if (status == 0) {
        assert_in_range(to, 0, fake->slots - 1);
        assert_in_range(from, 0, fake->slots - 1);
        assert_int_not_equal(to, from);
        assert_true(fake->held[from] > 0);
        fake->copies++;
        fake->held[to] = fake->held[from];
        memcpy(fake->history + to * fake->bound, fake->history + from * fake->bound,
               (size_t)fake->held[from] * sizeof(int32_t));
    }
    return status;
}

attn_model model_of(Fake *fake) {
    attn_model model = {sizeof model, fake->vocab, fake->bound, fake, fake_prefill, fake_step, fake_copy};
    return model;
}

attn_generate_options options_of(int max_new) {
    attn_generate_options options = {.size = sizeof options, .max_new = max_new};
    return options;
}

int generate(const attn_model *model, const attn_generate_options *options, const int32_t *prompt,
             int prompt_count, int32_t *tokens, attn_generated *result) {
    size_t bytes = attn_generate_bytes(model, options);
    assert_true(bytes > 0 && bytes < (size_t)1 << 30);
    char *memory = malloc(bytes + 1);
    assert_non_null(memory);
    memset(memory, 0xa5, bytes + 1);
    memset(result, 0xa5, sizeof *result);
    result->size = sizeof *result;
    result->tokens = tokens;
    int status = attn_generate(model, options, prompt, prompt_count, result, memory + 1, bytes);
    free(memory);
    return status;
}

const int32_t PROMPT[PROMPT_COUNT] = {0, 1, 0};

attn_generated run(Fake *fake, const attn_generate_options *options, int32_t *tokens) {
    attn_model model = model_of(fake);
    attn_generated result;
    assert_int_equal(generate(&model, options, PROMPT, PROMPT_COUNT, tokens, &result), ATTN_GENERATE_OK);
    assert_int_equal(fake->prefills, 1);
    assert_int_equal(result.model_status, 0);
    return result;
}

void assert_first_number(uint64_t sequence, uint64_t number) {
    const float row[MAX_VOCAB] = {0}; /* all alike, so that the token is a share of the number */
    Fake fake = fake_of(MAX_VOCAB, 8, 1);
    fake.row = row;
    attn_generate_options options = options_of(1);
    options.temperature = 1;
    options.seed = 1234567;
    options.sequence = sequence;
    int32_t token;
    run(&fake, &options, &token);
    assert_int_equal(token, (int)((double)(number >> 11) * 0x1p-53 * MAX_VOCAB));
}

void assert_tokens(const int32_t *tokens, const int32_t *expected, int count) {
    for (int i = 0; i < count; i++) {
        if (tokens[i] != expected[i]) {
            fail_msg("token %d is %d, expected %d", i, (int)tokens[i], (int)expected[i]);
        }
    }
}
