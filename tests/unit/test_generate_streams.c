#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "fake_model.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* Sampling by sequence number: streams of one seed that are independent of each other, and structs of the version that
 * has no such number. */
enum { VOCAB = 5, TEXTS = 8000, TOKENS = 3 };

static const float LOGITS[VOCAB] = {1, 0.5f, 0, -0.5f, 1.25f};

/* [TEXTS][TOKENS] of sequence numbers from `first` on. */
static void draw_texts(uint64_t seed, uint64_t first, int32_t (*texts)[TOKENS]) {
    for (int i = 0; i < TEXTS; i++) {
        Fake fake = fake_of(VOCAB, 8, 1);
        fake.row = LOGITS;
        attn_generate_options options = options_of(TOKENS);
        options.temperature = 1;
        options.seed = seed;
        options.sequence = first + (uint64_t)i;
        run(&fake, &options, texts[i]);
    }
}

static void softmax(double *p) {
    double sum = 0;
    for (int i = 0; i < VOCAB; i++) sum += exp((double)LOGITS[i]);
    for (int i = 0; i < VOCAB; i++) p[i] = exp((double)LOGITS[i]) / sum;
}

/* Pairs of tokens, each pair expected as often as two independent draws give it. 58.6 is the chi-square of 24 degrees
 * of freedom that chance passes once in 10000; the seeds are fixed, so that the answer is, too. */
static void check_pairs(int32_t (*texts)[TOKENS], int apart, int first, int second) {
    double p[VOCAB], chi = 0;
    int counts[VOCAB][VOCAB] = {{0}}, pairs = 0;
    softmax(p);
    for (int i = 0; i + apart < TEXTS; i++, pairs++) counts[texts[i][first]][texts[i + apart][second]]++;
    for (int a = 0; a < VOCAB; a++)
        for (int b = 0; b < VOCAB; b++) {
            double expected = pairs * p[a] * p[b];
            chi += (counts[a][b] - expected) * (counts[a][b] - expected) / expected;
        }
    if (!(chi < 58.6)) fail_msg("tokens %d and %d of texts %d apart: chi-square %f", first, second, apart, chi);
}

/* Each text by itself follows the model's probabilities, and no token of a text tells one of the texts beside it: a
 * stream that is another one moved by some draws would. */
static void test_streams_are_independent(void **state) {
    (void)state;
    static int32_t texts[TEXTS][TOKENS];
    static const uint64_t seeds[] = {0, 1, 7, UINT64_C(0x9e3779b97f4a7c15)}, firsts[] = {0, UINT64_MAX - 4000};
    for (int i = 0; i < LENGTH(seeds); i++)
        for (int j = 0; j < LENGTH(firsts); j++) {
            draw_texts(seeds[i], firsts[j], texts);
            for (int apart = 0; apart <= 4; apart++)
                for (int first = 0; first < TOKENS; first++)
                    for (int second = 0; second < TOKENS; second++)
                        if (apart > 0 || first != second) check_pairs(texts, apart, first, second);
        }
}

/* Seeds in a row and sequence numbers in a row: text i of seed s + 1 is no text of seed s. */
static void test_seeds_and_sequences(void **state) {
    (void)state;
    enum { LONG = MAX_NEW, SEEDS = 6, SEQUENCES = 6 };
    int32_t texts[SEEDS * SEQUENCES][LONG];
    for (int i = 0; i < SEEDS * SEQUENCES; i++) {
        Fake fake = fake_of(16, 64, 1);
        fake.salt = 5;
        attn_generate_options options = options_of(LONG);
        options.temperature = 1.7;
        options.seed = (uint64_t)(i / SEQUENCES);
        options.sequence = (uint64_t)(i % SEQUENCES);
        run(&fake, &options, texts[i]);
        for (int other = 0; other < i; other++) assert_memory_not_equal(texts[i], texts[other], sizeof texts[i]);
    }
}

/* The state is seed + m(sequence): 1234567 + m(1) gives this first number, by the published algorithm in Python. */
static void test_state_of_a_sequence(void **state) {
    (void)state;
    assert_first_number(1, UINT64_C(14751402514657605009));
}

/* The options as they were before there was a sequence number. */
typedef struct FirstOptions {
    size_t size;
    int rows, max_new, min_new;
    double temperature;
    int top_k;
    double top_p;
    uint64_t seed;
    int beams;
    double length_penalty;
    const int32_t *end;
    int end_count, ignore_end;
    int (*on_token)(void *on_token_with, int32_t token);
    void *on_token_with;
} FirstOptions;

/* The options as they were before the rules. */
typedef struct SecondOptions {
    FirstOptions first;
    uint64_t sequence;
    int length_form;
} SecondOptions;

/* A program that was compiled with an older version: what is after its struct in memory is not read. */
static void test_older_versions(void **state) {
    (void)state;
    static const size_t sizes[] = {sizeof(FirstOptions), sizeof(SecondOptions)};
    assert_true(sizes[0] < sizes[1] && sizes[1] < sizeof(attn_generate_options));
    for (int i = 0; i < 6; i++) {
        const int mode = i / 2; /* greedy, sampling, beams */
        const size_t size = sizes[i % 2];
        int32_t texts[2][MAX_NEW];
        attn_generate_options options = options_of(MAX_NEW), old;
        options.temperature = mode == 1 ? 1.7 : 0;
        options.beams = mode == 2 ? 4 : 0;
        options.length_penalty = 0.6;
        options.seed = 42;
        memset(&old, 0xa5, sizeof old);
        memcpy(&old, &options, size);
        old.size = size;
        for (int version = 0; version < 2; version++) {
            Fake fake = fake_of(16, 64, 4);
            fake.salt = 5;
            run(&fake, version == 0 ? &old : &options, texts[version]);
        }
        assert_tokens(texts[0], texts[1], MAX_NEW);
    }
    Fake fake = fake_of(16, 64, 1);
    attn_model model = model_of(&fake);
    for (size_t size = 0; size < sizeof(attn_generate_options) + 16; size++) { /* no other size is a version's */
        attn_generate_options options = options_of(1);
        bool known = size == sizes[0] || size == sizes[1] || size == sizeof options;
        options.size = size;
        assert_int_equal(attn_generate_bytes(&model, &options) > 0, known);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_streams_are_independent),
        cmocka_unit_test(test_seeds_and_sequences),
        cmocka_unit_test(test_state_of_a_sequence),
        cmocka_unit_test(test_older_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
