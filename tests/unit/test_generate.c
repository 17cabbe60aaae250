#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "fake_model.h"

#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

/* Greedy goes 0, 2, 1, 3, 1, 3: past NaN and infinities, of equals the lower. */
static const float TABLE[] = {
    0.5f, -1, 2, 1,                    /* after 0 */
    -INFINITY, NAN, -3, -2,            /* 1 */
    1, 4, NAN, 3.999f,                 /* 2 */
    7, INFINITY, -INFINITY, INFINITY}; /* 3 */

static void test_greedy(void **state) {
    (void)state;
    int32_t tokens[6];
    Fake fake = fake_of(4, 8, 1);
    fake.table = TABLE;
    attn_generate_options options = options_of(6);
    attn_generated result = run(&fake, &options, tokens);
    assert_tokens(tokens, (const int32_t[]){2, 1, 3, 1, 3, 1}, 6);
    assert_int_equal(result.count, 6);
    assert_int_equal(result.ended, 0);
    assert_int_equal(result.rows, 8);
    assert_int_equal(fake.steps, 5);
    assert_int_equal(fake.held[0], 8);

    Fake tied = fake_of(4, 8, 1);
    tied.row = (const float[]){NAN, -5, -5, -INFINITY};
    run(&tied, &options, tokens);
    assert_tokens(tokens, (const int32_t[]){1, 1, 1, 1, 1, 1}, 6);
}

static void test_no_token(void **state) {
    (void)state;
    const float none[] = {NAN, -INFINITY, NAN}, end_only[] = {-INFINITY, 1, NAN};
    for (int i = 0; i < 6; i++) {
        int32_t tokens[2], end = 1;
        Fake fake = fake_of(3, 8, 2);
        fake.row = i < 3 ? none : end_only;
        attn_generate_options options = options_of(2);
        options.temperature = i % 3 == 1 ? 1 : 0;
        options.beams = i % 3 == 2 ? 2 : 0;
        options.min_new = 1;
        options.end = &end;
        options.end_count = 1;
        attn_model model = model_of(&fake);
        attn_generated result;
        assert_int_equal(generate(&model, &options, PROMPT, 2, tokens, &result), ATTN_GENERATE_NO_TOKEN);
        assert_int_equal(result.count, 0);
    }
}

enum { DRAWS = 40000 };

static int32_t drawn[DRAWS];

/* Draws from one row of logits and compares frequencies with `p`; tokens with p = 0 must never come. `limit` is the
 * chi-square that chance passes once in 10000, for its degrees of freedom; with fixed seeds there is no chance. */
static void check_draws(const attn_generate_options *base, const float *row, const double *p, int vocab, double limit) {
    for (int by_seed = 0; by_seed < 2; by_seed++) { /* many draws of one seed; the first draw of many seeds */
        int counts[MAX_VOCAB] = {0}, tokens = by_seed ? 1 : DRAWS, runs = by_seed ? 4000 : 1;
        for (int r = 0; r < runs; r++) {
            Fake fake = fake_of(vocab, ROOM, 1);
            fake.row = row;
            attn_generate_options options = *base;
            options.max_new = tokens;
            options.seed = (uint64_t)r;
            run(&fake, &options, drawn);
            for (int i = 0; i < tokens; i++) {
                counts[drawn[i]]++;
            }
        }
        double chi = 0, n = (double)tokens * runs;
        for (int i = 0; i < vocab; i++) {
            if (p[i] == 0) {
                assert_int_equal(counts[i], 0);
            } else {
                chi += (counts[i] - n * p[i]) * (counts[i] - n * p[i]) / (n * p[i]);
            }
        }
        if (!(chi < limit)) {
            fail_msg("chi-square %f over %f", chi, limit);
        }
    }
}

static const float ROW[] = {1.5f, -0.5f, NAN, 0.25f, 1.5f, -INFINITY, 0, -2};

/* The exact softmax at a temperature of those tokens of ROW whose bit is in `set`. */
static void softmax_of(unsigned set, double temperature, double *p) {
    double sum = 0;
    for (int i = 0; i < LENGTH(ROW); i++) {
        p[i] = set >> i & 1 ? exp((double)ROW[i] / temperature) : 0;
        sum += p[i];
    }
    for (int i = 0; i < LENGTH(ROW); i++) {
        p[i] /= sum;
    }
}

/* At temperature 1 the probabilities are .374 (0 and 4), .107 (3), .083 (6), .051 (1), .011 (7). */
static void test_sampling_frequencies(void **state) {
    (void)state;
    static const struct {
        double temperature, top_p;
        int top_k;
        unsigned set;
        double limit;
    } cases[] = {
        {1, 0, 0, 0xdb, 25.7}, {0.5, 1, 0, 0xdb, 25.7}, {3, 0, 100, 0xdb, 25.7}, {1, 0, 6, 0xdb, 25.7},
        {1, 0, 3, 0x19, 18.4}, {2, 1, 4, 0x59, 21.1}, {1, 0, 2, 0x11, 15.1}, {1, 0, 1, 0x01, 1e-9},
        {1, 1e-300, 0, 0x01, 1e-9}, {1, 0.37, 0, 0x01, 1e-9}, {1, 0.38, 0, 0x11, 15.1}, {1, 0.74, 0, 0x11, 15.1},
        {1, 0.76, 0, 0x19, 18.4}, {1, 0.985, 0, 0x5b, 23.5}, {1, 0.99999, 0, 0xdb, 25.7}, {1, 0.87, 3, 0x11, 15.1},
        {1, 0.43, 3, 0x01, 1e-9}, {1, 0.88, 3, 0x19, 18.4}, {1e-300, 0, 0, 0x11, 15.1}, {1e-9, 0.9, 7, 0x11, 15.1},
    };
    double p[8], all[8];
    softmax_of(0xdb, 1, all);
    /* what the cases rest on: the sums that top_p is compared with, over all and over the best three */
    assert_true(all[0] > 0.37 && all[0] < 0.38 && 2 * all[0] > 0.74 && 2 * all[0] < 0.76);
    assert_true(1 - all[7] > 0.985 && 1 - all[7] - all[1] < 0.985);
    double three = 2 * all[0] + all[3];
    assert_true(all[0] / three > 0.43 && 2 * all[0] / three > 0.87 && 2 * all[0] / three < 0.88);
    for (int i = 0; i < LENGTH(cases); i++) {
        attn_generate_options options = options_of(1);
        options.temperature = cases[i].temperature;
        options.top_p = cases[i].top_p;
        options.top_k = cases[i].top_k;
        softmax_of(cases[i].set, fmax(cases[i].temperature, 1e-2), p); /* colder only weighs equals */
        check_draws(&options, ROW, p, LENGTH(ROW), cases[i].limit);
    }
}

/* Probabilities that sum to top_p exactly are enough; two infinite logits share all. */
static void test_sampling_edges(void **state) {
    (void)state;
    attn_generate_options options = options_of(1);
    options.temperature = 1;
    options.top_p = 0.5;
    check_draws(&options, (const float[]){3, 3, 3, 3}, (const double[]){0.5, 0.5, 0, 0}, 4, 15.1);
    options.top_p = 0.75;
    check_draws(&options, (const float[]){3, 3, 3, 3}, (const double[]){1.0 / 3, 1.0 / 3, 1.0 / 3, 0}, 4, 18.4);
    options.top_p = 0;
    const float infinite[] = {1, INFINITY, FLT_MAX, INFINITY}, far[] = {-FLT_MAX, FLT_MAX, 0, FLT_MAX};
    check_draws(&options, infinite, (const double[]){0, 0.5, 0, 0.5}, 4, 15.1);
    check_draws(&options, far, (const double[]){0, 0.5, 0, 0.5}, 4, 15.1);
}

static void test_seeds(void **state) {
    (void)state;
    int32_t texts[3][MAX_NEW];
    const uint64_t seeds[] = {42, 42, 43};
    for (int i = 0; i < 3; i++) {
        Fake fake = fake_of(16, 64, 1);
        fake.salt = 5;
        attn_generate_options options = options_of(MAX_NEW);
        options.temperature = 1.7;
        options.top_p = 0.97;
        options.top_k = 13;
        options.seed = seeds[i];
        run(&fake, &options, texts[i]);
    }
    assert_memory_equal(texts[0], texts[1], sizeof texts[0]);
    assert_memory_not_equal(texts[0], texts[2], sizeof texts[0]);
    /* What the same written in Python gives; any machine and compiler must. */
    assert_tokens(texts[0], (const int32_t[]){2, 14, 8, 13, 10, 15, 11, 8, 14, 8, 8, 3, 15, 6, 2, 7}, MAX_NEW);
}

/* The number splitmix64 gives is the published one: 1234567 as seed gives 6457827717110365317 first. */
static void test_generator(void **state) {
    (void)state;
    assert_first_number(0, UINT64_C(6457827717110365317));
}

/* The row's best token, 2, ends. */
static void test_ends(void **state) {
    (void)state;
    const float row[] = {0, 1, 4, 2};
    const int32_t end[] = {0, 2};
    for (int mode = 0; mode < 3; mode++) { /* greedy, sampling of the best token, beams */
        for (int min_new = 0; min_new <= 5; min_new++) {
            for (int ignored = 0; ignored < 2; ignored++) {
                int32_t tokens[5];
                Fake fake = fake_of(4, 8, 3);
                fake.row = row;
                attn_generate_options options = options_of(5);
                options.temperature = mode == 1 ? 1 : 0;
                options.top_k = 1;
                options.beams = mode == 2 ? 3 : 0;
                options.min_new = min_new;
                options.ignore_end = ignored;
                options.end = end;
                options.end_count = 2;
                attn_generated result = run(&fake, &options, tokens);
                int count = ignored || min_new == 5 ? 5 : min_new + 1;
                assert_int_equal(result.count, count);
                assert_int_equal(result.ended, !ignored && min_new < 5);
                for (int i = 0; i < count; i++) {
                    assert_int_equal(tokens[i], ignored || i >= min_new ? 2 : 3);
                }
                if (mode < 2) {
                    assert_int_equal(fake.steps, count - 1);
                }
            }
        }
    }
}

typedef struct Stream {
    const Fake *fake;
    int32_t tokens[MAX_NEW];
    int steps[MAX_NEW]; /* how many the model had made */
    int count, stop_at;
} Stream;

static int stream_token(void *with, int32_t token) {
    Stream *stream = with;
    assert_true(stream->count < MAX_NEW);
    stream->steps[stream->count] = stream->fake->steps;
    stream->tokens[stream->count++] = token;
    return stream->count == stream->stop_at ? -1 : 0;
}

static void test_streaming(void **state) {
    (void)state;
    for (int mode = 0; mode < 3; mode++) {
        int32_t whole[8], tokens[8];
        for (int stop_at = 0; stop_at <= 8; stop_at++) {
            Fake fake = fake_of(12, 16, 4);
            fake.salt = 77;
            Stream stream = {.fake = &fake, .stop_at = stop_at};
            attn_generate_options options = options_of(8);
            options.temperature = mode == 1 ? 0.8 : 0;
            options.beams = mode == 2 ? 4 : 0;
            options.on_token = stream_token;
            options.on_token_with = &stream;
            attn_model model = model_of(&fake);
            attn_generated result;
            int status = generate(&model, &options, PROMPT, PROMPT_COUNT, tokens, &result);
            assert_int_equal(status, stop_at == 0 ? ATTN_GENERATE_OK : ATTN_GENERATE_STOPPED);
            assert_int_equal(result.count, stop_at == 0 ? 8 : stop_at);
            assert_int_equal(stream.count, result.count);
            assert_tokens(stream.tokens, tokens, result.count);
            if (stop_at == 0) {
                memcpy(whole, tokens, sizeof whole);
            }
            assert_tokens(tokens, whole, result.count);
            for (int i = 0; i < stream.count; i++) {
                assert_int_equal(stream.steps[i], mode == 2 ? 7 : i);
            }
            assert_int_equal(result.rows, mode == 2 ? PROMPT_COUNT : fake.held[0]);
        }
    }
}

/* Two turns give the history that the header promises. */
static void test_conversation(void **state) {
    (void)state;
    int32_t first[4], second[3], prompt[] = {0, 9, 8};
    Fake fake = fake_of(12, 12, 1);
    fake.salt = 3;
    attn_generate_options options = options_of(4);
    attn_generated result = run(&fake, &options, first);
    assert_int_equal(result.rows, 6);
    prompt[0] = first[3];
    attn_model model = model_of(&fake);
    options.rows = result.rows;
    options.max_new = 3;
    assert_int_equal(generate(&model, &options, prompt, 3, second, &result), ATTN_GENERATE_OK);
    const int32_t history[] = {0, 1, 0, first[0], first[1], first[2], first[3], 9, 8, second[0], second[1]};
    assert_int_equal(result.rows, LENGTH(history));
    assert_int_equal(fake.held[0], LENGTH(history));
    assert_tokens(fake.history, history, LENGTH(history));
}

/* One thing wrong at a time, by number. Returns the status it must give, -1 behind the last. */
static int spoil(int what, attn_model *model, attn_generate_options *options, attn_generated *result,
                 const int32_t **prompt, int *prompt_count) {
    static const int32_t bad_token[] = {0, 1, 4}, negative_token[] = {-1, 1, 2};
    switch (what) {
    case 0: model->size--; return ATTN_GENERATE_BAD_ARGUMENT;
    case 1: options->size++; return ATTN_GENERATE_BAD_ARGUMENT;
    case 2: result->size = 0; return ATTN_GENERATE_BAD_ARGUMENT;
    case 3: result->tokens = NULL; return ATTN_GENERATE_BAD_ARGUMENT;
    case 4: model->vocab = 0; return ATTN_GENERATE_BAD_ARGUMENT;
    case 5: model->bound = 0; return ATTN_GENERATE_BAD_ARGUMENT;
    case 6: model->prefill = NULL; return ATTN_GENERATE_BAD_ARGUMENT;
    case 7: model->step = NULL; return ATTN_GENERATE_BAD_ARGUMENT;
    case 8: model->copy = NULL; options->beams = 2; return ATTN_GENERATE_BAD_ARGUMENT;
    case 9: options->end = NULL; return ATTN_GENERATE_BAD_ARGUMENT;
    case 10: options->end_count = -1; return ATTN_GENERATE_BAD_ARGUMENT;
    case 11: *prompt = NULL; return ATTN_GENERATE_BAD_ARGUMENT;
    case 12: *prompt_count = 0; return ATTN_GENERATE_BAD_ARGUMENT;
    case 13: options->rows = -1; return ATTN_GENERATE_BAD_OPTION;
    case 14: options->max_new = 0; return ATTN_GENERATE_BAD_OPTION;
    case 15: options->max_new = -3; return ATTN_GENERATE_BAD_OPTION;
    case 16: options->min_new = -1; return ATTN_GENERATE_BAD_OPTION;
    case 17: options->min_new = 5; return ATTN_GENERATE_BAD_OPTION;
    case 18: options->temperature = -0.1; return ATTN_GENERATE_BAD_OPTION;
    case 19: options->temperature = NAN; return ATTN_GENERATE_BAD_OPTION;
    case 20: options->temperature = INFINITY; return ATTN_GENERATE_BAD_OPTION;
    case 21: options->top_k = -1; return ATTN_GENERATE_BAD_OPTION;
    case 22: options->top_p = -0.1; return ATTN_GENERATE_BAD_OPTION;
    case 23: options->top_p = 1.001; return ATTN_GENERATE_BAD_OPTION;
    case 24: options->top_p = NAN; return ATTN_GENERATE_BAD_OPTION;
    case 25: options->beams = -1; return ATTN_GENERATE_BAD_OPTION;
    case 26: options->beams = 2; options->temperature = 1; return ATTN_GENERATE_BAD_OPTION;
    case 27: options->length_penalty = NAN; return ATTN_GENERATE_BAD_OPTION;
    case 28: options->length_penalty = 17; return ATTN_GENERATE_BAD_OPTION;
    case 29: options->length_penalty = -INFINITY; return ATTN_GENERATE_BAD_OPTION;
    case 30: model->bound = 5; return ATTN_GENERATE_TOO_LONG;
    case 31: options->rows = 3; return ATTN_GENERATE_TOO_LONG;
    case 32: options->rows = options->max_new = *prompt_count = INT_MAX; return ATTN_GENERATE_TOO_LONG;
    case 33: options->max_new = 7; return ATTN_GENERATE_TOO_LONG;
    case 34: *prompt = bad_token; return ATTN_GENERATE_BAD_TOKEN;
    case 35: *prompt = negative_token; return ATTN_GENERATE_BAD_TOKEN;
    case 36: options->end = &bad_token[2]; return ATTN_GENERATE_BAD_TOKEN;
    case 37: options->end = negative_token; return ATTN_GENERATE_BAD_TOKEN;
    case 38: model->vocab = model->bound = INT_MAX; options->beams = INT_MAX; return ATTN_GENERATE_SHORT_MEMORY;
    case 39: options->length_form = -1; return ATTN_GENERATE_BAD_OPTION;
    case 40: options->length_form = 2; return ATTN_GENERATE_BAD_OPTION;
    default: return -1;
    }
}

static void test_bad_calls(void **state) {
    (void)state;
    static char memory[1 << 16];
    int expected = 0;
    for (int what = 0; expected >= 0; what++) {
        Fake fake = fake_of(4, 8, 2);
        fake.table = TABLE;
        int32_t tokens[4] = {-7, -7, -7, -7}, end = 3;
        const int32_t *prompt = PROMPT;
        int prompt_count = PROMPT_COUNT;
        attn_model model = model_of(&fake);
        attn_generate_options options = options_of(4);
        options.end = &end;
        options.end_count = 1;
        attn_generated result = {.size = sizeof result, .tokens = tokens, .count = 99, .model_status = 99};
        options.rows = 2; /* 2 + 3 + 4 - 1 is the bound */
        expected = spoil(what, &model, &options, &result, &prompt, &prompt_count);
        int wanted = expected < 0 ? ATTN_GENERATE_OK : expected;
        int status = attn_generate(&model, &options, prompt, prompt_count, &result, memory, sizeof memory);
        if (status != wanted) {
            fail_msg("case %d: status %d, expected %d", what, status, wanted);
        }
        if (expected >= 0) {
            assert_int_equal(fake.calls, 0);
            assert_tokens(tokens, (const int32_t[]){-7, -7, -7, -7}, 4);
            assert_int_equal(result.count, expected == ATTN_GENERATE_BAD_ARGUMENT ? 99 : 0);
        }
    }
    assert_int_equal(attn_generate_bytes(NULL, NULL), 0);
    Fake fake = fake_of(4, 8, 2);
    attn_model model = model_of(&fake);
    attn_generate_options options = options_of(4);
    assert_int_equal(attn_generate(&model, NULL, PROMPT, 3, NULL, memory, sizeof memory), ATTN_GENERATE_BAD_ARGUMENT);
    options.beams = -1;
    assert_int_equal(attn_generate_bytes(&model, &options), 0);
    options.beams = model.vocab = INT_MAX;
    assert_true(attn_generate_bytes(&model, &options) == SIZE_MAX);
    model.vocab = 4;
    options.max_new = model.bound = INT_MAX;
    assert_true(attn_generate_bytes(&model, &options) == SIZE_MAX);
}

/* Two rows are held and three come with the prompt: one new token more fits than the state has rows left, none of them
 * at first, in every search. */
static void test_full_state(void **state) {
    (void)state;
    for (int mode = 0; mode < 3; mode++) {
        for (int i = 0; i < 6; i++) {
            int32_t tokens[4];
            int left = i / 2, max_new = left + 1 + i % 2;
            Fake fake = fake_of(4, 5 + left, 2);
            fake.row = (const float[]){0, 3, 1, 2};
            fake.held[0] = 2;
            attn_generate_options options = options_of(max_new);
            options.temperature = mode == 1 ? 1 : 0;
            options.beams = mode == 2 ? 2 : 0;
            options.rows = 2;
            attn_model model = model_of(&fake);
            attn_generated result;
            int status = generate(&model, &options, PROMPT, PROMPT_COUNT, tokens, &result);
            bool fits = max_new <= left + 1;
            assert_int_equal(status, fits ? ATTN_GENERATE_OK : ATTN_GENERATE_TOO_LONG);
            assert_int_equal(result.count, fits ? max_new : 0);
            assert_int_equal(fake.prefills, fits);
            if (!fits) continue;
            assert_int_equal(fake.steps, max_new - 1);
            assert_int_equal(result.rows, mode == 2 ? 5 : 5 + max_new - 1);
        }
    }
}

static void test_short_memory(void **state) {
    (void)state;
    for (int mode = 0; mode < 3; mode++) {
        Fake fake = fake_of(4, 8, 2);
        fake.table = TABLE;
        int32_t tokens[4];
        char memory[4096];
        attn_model model = model_of(&fake);
        attn_generate_options options = options_of(4);
        options.temperature = mode == 1 ? 1 : 0;
        options.beams = mode == 2 ? 2 : 0;
        attn_generated result = {.size = sizeof result, .tokens = tokens};
        size_t bytes = attn_generate_bytes(&model, &options);
        assert_true(bytes > 0 && bytes <= sizeof memory);
        int status = attn_generate(&model, &options, PROMPT, 3, &result, memory, bytes - 1);
        assert_int_equal(status, ATTN_GENERATE_SHORT_MEMORY);
        assert_int_equal(attn_generate(&model, &options, PROMPT, 3, &result, NULL, bytes), ATTN_GENERATE_BAD_ARGUMENT);
        assert_int_equal(fake.calls, 0);
        assert_int_equal(attn_generate(&model, &options, PROMPT, 3, &result, memory, bytes), ATTN_GENERATE_OK);
    }
}

/* Memory of any alignment serves, and no byte around it is written. */
static void test_memory_borders(void **state) {
    (void)state;
    enum { SLACK = 128, FILL = 0x5c };
    for (int mode = 0; mode < 3; mode++) {
        static char memory[1 << 14];
        attn_generate_options options = options_of(4);
        options.temperature = mode == 1 ? 1 : 0;
        options.beams = mode == 2 ? 16 : 0;
        for (size_t offset = SLACK; offset <= SLACK + 64; offset++) {
            Fake fake = fake_of(16, 8, 16); /* 64 bytes a row of logits */
            int32_t tokens[4];
            attn_model model = model_of(&fake);
            attn_generated result = {.size = sizeof result, .tokens = tokens};
            size_t bytes = attn_generate_bytes(&model, &options), end = offset + bytes;
            assert_true(end + SLACK <= sizeof memory);
            memset(memory, FILL, sizeof memory);
            int status = attn_generate(&model, &options, PROMPT, PROMPT_COUNT, &result, memory + offset, bytes);
            assert_int_equal(status, ATTN_GENERATE_OK);
            for (size_t i = 0; i < SLACK; i++) {
                assert_int_equal(memory[offset - 1 - i], FILL);
                assert_int_equal(memory[end + i], FILL);
            }
        }
    }
}

/* Each callback of a run fails once. */
static void test_failing_model(void **state) {
    (void)state;
    for (int mode = 0; mode < 3; mode++) {
        int32_t whole[6], tokens[6];
        attn_generate_options options = options_of(6);
        options.temperature = mode == 1 ? 1 : 0;
        options.beams = mode == 2 ? 3 : 0;
        Fake fake = fake_of(9, 8, 3);
        run(&fake, &options, whole);
        int calls = fake.calls;
        assert_true(calls == fake.prefills + fake.steps + fake.copies && calls >= 6 && (mode < 2 || fake.copies > 1));
        for (int at = 0; at < calls; at++) {
            fake = fake_of(9, 8, 3);
            fake.fail_at = at;
            attn_model model = model_of(&fake);
            attn_generated result;
            assert_int_equal(generate(&model, &options, PROMPT, 3, tokens, &result), ATTN_GENERATE_MODEL);
            assert_int_equal(result.model_status, FAILED + at);
            assert_int_equal(fake.calls, at + 1);
            assert_int_equal(result.count, mode == 2 ? 0 : at);
            assert_int_equal(result.ended, 0);
            assert_tokens(tokens, whole, result.count);
            assert_int_equal(result.rows, mode < 2 ? fake.held[0] : at == 0 ? 0 : PROMPT_COUNT);
        }
    }
}

static void test_status_text(void **state) {
    (void)state;
    for (int a = ATTN_GENERATE_OK; a <= ATTN_GENERATE_STOPPED + 1; a++) {
        assert_non_null(attn_generate_status_text(a));
        for (int b = ATTN_GENERATE_OK; b < a; b++) {
            assert_string_not_equal(attn_generate_status_text(a), attn_generate_status_text(b));
        }
    }
    assert_string_equal(attn_generate_status_text(-1), attn_generate_status_text(ATTN_GENERATE_STOPPED + 1));
}

/* What attnc generates for a model called `pairs`, in small. */
enum { PAIRS_SEQ = 12, PAIRS_VOCAB = 6, PAIRS_BUSY = 3 };

typedef struct pairs_ctx {
    const Fake *fake;
} pairs_ctx;

typedef struct pairs_decoded {
    size_t size;
    float *hidden, *logits;
} pairs_decoded;

typedef struct PairsState {
    int32_t tokens[PAIRS_SEQ];
    int rows;
} PairsState;

static int pairs_step(const pairs_ctx *ctx, void *const *states, const int32_t *tokens, int count,
                      pairs_decoded *output, void *workspace, size_t bytes) {
    if (bytes != 8 || output->size != sizeof *output || output->hidden != NULL) {
        return PAIRS_BUSY;
    }
    memset(workspace, 0, bytes);
    for (int i = 0; i < count; i++) {
        PairsState *held = states[i];
        assert_true(held->rows < PAIRS_SEQ);
        held->tokens[held->rows++] = tokens[i];
        fake_logits(ctx->fake, held->tokens, held->rows, output->logits + i * PAIRS_VOCAB);
    }
    return 0;
}

static int pairs_prefill(const pairs_ctx *ctx, void *state, const int32_t *tokens, int count, pairs_decoded *output,
                         void *workspace, size_t bytes) {
    int status = 0;
    for (int i = 0; i < count && status == 0; i++) {
        status = pairs_step(ctx, &state, tokens + i, 1, output, workspace, bytes);
    }
    return status;
}

static int pairs_state_copy(void *to, const void *from) {
    memcpy(to, from, sizeof(PairsState));
    return 0;
}

ATTN_MODEL_OF(pairs);

/* As the fake in the slots; 40 beams are more than one call of pairs_step takes. */
static void test_generated_code(void **state) {
    (void)state;
    for (int mode = 0; mode < 3; mode++) {
        attn_generate_options options = options_of(8);
        options.beams = mode == 1 ? 40 : 0;
        options.temperature = mode == 2 ? 1 : 0;
        Fake fake = fake_of(PAIRS_VOCAB, PAIRS_SEQ, 40);
        int32_t expected[8], tokens[8];
        attn_generated wanted = run(&fake, &options, expected), result;
        static PairsState held[40];
        void *states[40];
        memset(held, 0, sizeof held);
        for (int i = 0; i < 40; i++) {
            states[i] = &held[i];
        }
        char workspace[8];
        pairs_ctx ctx = {&fake};
        pairs_generator generator = {&ctx, states, workspace, sizeof workspace, 0};
        attn_model model = pairs_generator_model(&generator, PAIRS_VOCAB, PAIRS_SEQ);
        assert_int_equal(generate(&model, &options, PROMPT, PROMPT_COUNT, tokens, &result), ATTN_GENERATE_OK);
        assert_int_equal(result.count, 8);
        assert_tokens(tokens, expected, 8);
        assert_true(result.score == wanted.score);
        generator.bytes = 7;
        assert_int_equal(generate(&model, &options, PROMPT, PROMPT_COUNT, tokens, &result), ATTN_GENERATE_MODEL);
        assert_int_equal(result.model_status, PAIRS_BUSY);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_greedy),
        cmocka_unit_test(test_no_token),
        cmocka_unit_test(test_sampling_frequencies),
        cmocka_unit_test(test_sampling_edges),
        cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_generator),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_streaming),
        cmocka_unit_test(test_conversation),
        cmocka_unit_test(test_bad_calls),
        cmocka_unit_test(test_full_state),
        cmocka_unit_test(test_short_memory),
        cmocka_unit_test(test_memory_borders),
        cmocka_unit_test(test_failing_model),
        cmocka_unit_test(test_status_text),
        cmocka_unit_test(test_generated_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
