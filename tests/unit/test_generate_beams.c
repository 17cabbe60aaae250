#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "fake_model.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A plain beam search that keeps whole texts, sorts everything, keeps `beams` finished texts and only stops when none
 * that lives can beat the worst of them; libm's exp, log and pow. */
typedef struct Text {
    int32_t tokens[MAX_NEW];
    int count, beam;
    double log_p, score;
} Text;

typedef struct Reference {
    Text best;
    int steps;
    uint64_t fed[MAX_NEW]; /* as Fake's */
} Reference;

static int by_log_p(const void *left, const void *right) {
    const Text *a = left, *b = right;
    if (a->log_p != b->log_p) {
        return a->log_p > b->log_p ? -1 : 1;
    }
    int32_t a_last = a->tokens[a->count - 1], b_last = b->tokens[b->count - 1];
    return a->beam != b->beam ? (a->beam > b->beam) - (a->beam < b->beam) : (a_last > b_last) - (a_last < b_last);
}

static double lp(const attn_generate_options *options, int count) {
    double base = options->length_form == ATTN_GENERATE_POWER ? count : (5.0 + count) / 6;
    return pow(base, options->length_penalty);
}

static bool ends(const attn_generate_options *options, int32_t token) {
    for (int i = 0; !options->ignore_end && i < options->end_count; i++) {
        if (options->end[i] == token) {
            return true;
        }
    }
    return false;
}

/* ln of the softmax of what follows PROMPT and `text`. */
static void log_softmax(const Fake *fake, const Text *text, double *log_p) {
    int32_t tokens[PROMPT_COUNT + MAX_NEW];
    float logits[MAX_VOCAB];
    memcpy(tokens, PROMPT, sizeof PROMPT);
    memcpy(tokens + PROMPT_COUNT, text->tokens, (size_t)text->count * sizeof *tokens);
    fake_logits(fake, tokens, PROMPT_COUNT + text->count, logits);
    double sum = 0;
    for (int i = 0; i < fake->vocab; i++) {
        sum += exp((double)logits[i]);
    }
    for (int i = 0; i < fake->vocab; i++) {
        log_p[i] = (double)logits[i] - log(sum);
    }
}

/* All continuations of `live` texts, the best first. Returns their number. */
static int continue_all(const Fake *fake, const attn_generate_options *options, const Text *live, int count,
                        Text *all) {
    int n = 0;
    for (int beam = 0; beam < count; beam++) {
        double log_p[MAX_VOCAB];
        log_softmax(fake, &live[beam], log_p);
        for (int32_t token = 0; token < fake->vocab; token++) {
            if (!ends(options, token) || live[beam].count >= options->min_new) {
                all[n] = live[beam];
                all[n].beam = beam;
                all[n].tokens[all[n].count++] = token;
                all[n++].log_p += log_p[token];
            }
        }
    }
    qsort(all, (size_t)n, sizeof *all, by_log_p);
    return n;
}

static void finish(Text text, const attn_generate_options *options, Text *finished, int *count, int room) {
    text.score = text.log_p / lp(options, text.count);
    int at = *count;
    while (at > 0 && finished[at - 1].score < text.score) {
        at--;
    }
    if (at < room) {
        *count += *count < room;
        memmove(finished + at + 1, finished + at, (size_t)(*count - at - 1) * sizeof text);
        finished[at] = text;
    }
}

static Reference reference(const Fake *fake, const attn_generate_options *options) {
    static Text live[MAX_SLOTS], finished[MAX_SLOTS], all[MAX_SLOTS * MAX_VOCAB];
    int beams = options->beams, n_live = 1, n_finished = 0, room = beams * (1 + options->end_count);
    Reference result = {.steps = 0};
    live[0] = (Text){.count = 0};
    for (int length = 1;; length++) {
        int n = continue_all(fake, options, live, n_live, all);
        n_live = 0;
        for (int i = 0; i < n && i < room; i++) {
            bool end = ends(options, all[i].tokens[length - 1]);
            if (!end && n_live < beams) {
                live[n_live++] = all[i];
            }
            if (end) {
                finish(all[i], options, finished, &n_finished, beams);
            }
        }
        for (int i = 0; length == options->max_new && i < n_live; i++) {
            finish(live[i], options, finished, &n_finished, beams);
        }
        int friendliest = options->length_penalty >= 0 ? options->max_new : length + 1;
        if (length == options->max_new || n_live == 0 ||
            (n_finished == beams && live[0].log_p / lp(options, friendliest) <= finished[beams - 1].score)) {
            break;
        }
        for (int i = 0; i < n_live; i++) {
            result.fed[result.steps] += hash_tokens(1, live[i].tokens, length);
        }
        result.steps++;
    }
    result.best = finished[0];
    return result;
}

/* Texts, scores, and the histories in the slots at every step are those of the plain search: a state that went to the
 * wrong beam would change all three. */
static void test_beams_against_reference(void **state) {
    (void)state;
    static const double alphas[] = {0, 0.6, 1, 4, -1.5};
    static const int32_t end[] = {3, 5, 9};
    int stopped_early = 0, copies = 0, ended = 0;
    for (int n = 0; n < 2000; n++) {
        int vocab = 10 + n % 7, beams = 2 + n % 9;
        Fake fake = fake_of(vocab, PROMPT_COUNT + MAX_NEW - 1, beams);
        fake.salt = (uint64_t)n;
        attn_generate_options options = options_of(1 + n / 3 % MAX_NEW);
        options.beams = beams;
        options.length_penalty = alphas[n % LENGTH(alphas)];
        options.end = end;
        options.end_count = n / 5 % 4;
        options.min_new = n % 4 == 0 ? options.max_new / 2 : 0;
        options.ignore_end = n % 11 == 0;
        options.length_form = n / 13 % 2;
        Reference expected = reference(&fake, &options);
        int32_t tokens[MAX_NEW];
        attn_generated result = run(&fake, &options, tokens);
        assert_int_equal(result.count, expected.best.count);
        assert_tokens(tokens, expected.best.tokens, result.count);
        assert_true(fabs(result.score - expected.best.score) <= 1e-13 * (1 + fabs(expected.best.score)));
        assert_int_equal(result.ended, ends(&options, tokens[result.count - 1]));
        assert_true(fake.steps <= expected.steps);
        assert_memory_equal(fake.fed, expected.fed, (size_t)fake.steps * sizeof *fake.fed);
        assert_int_equal(result.rows, PROMPT_COUNT);
        assert_memory_equal(fake.history, PROMPT, sizeof PROMPT);
        stopped_early += fake.steps < options.max_new - 1;
        copies += fake.copies;
        ended += result.ended;
    }
    assert_true(stopped_early > 200 && copies > 2000 && ended > 200 && ended < 1800);
}

static void brute(const Fake *fake, const attn_generate_options *options, Text text, Text *best) {
    double log_p[MAX_VOCAB];
    log_softmax(fake, &text, log_p);
    for (int32_t token = 0; token < fake->vocab; token++) {
        Text next = text;
        next.tokens[next.count++] = token;
        next.log_p += log_p[token];
        next.score = next.log_p / lp(options, next.count);
        if (!ends(options, token) && next.count < options->max_new) {
            brute(fake, options, next, best);
        } else if (best->count == 0 || next.score > best->score) {
            *best = next;
        }
    }
}

/* With room for every text, the search must find the best of all. */
static void test_beams_against_brute_force(void **state) {
    (void)state;
    static const double alphas[] = {0, 0.3, 0.6, 1.5, 6, -1};
    int lengths[5] = {0};
    for (int n = 0; n < 120; n++) {
        float table[25];
        for (int i = 0; i < 25; i++) {
            table[i] = (float)(hash_tokens((uint64_t)n, (int32_t[]){i, 7, 7}, 3) >> 40) * 0x1p-21f;
        }
        Fake fake = fake_of(5, 8, MAX_SLOTS);
        fake.table = table;
        const int32_t end[] = {2, 4};
        attn_generate_options options = options_of(4);
        options.beams = MAX_SLOTS; /* 4^4: no more texts than that go on */
        options.length_penalty = alphas[n % LENGTH(alphas)];
        options.end = end;
        options.end_count = 1 + n / 6 % 2;
        options.length_form = n / 12 % 2;
        Text best = {.count = 0};
        brute(&fake, &options, best, &best);
        int32_t tokens[4];
        attn_generated result = run(&fake, &options, tokens);
        assert_int_equal(result.count, best.count);
        assert_tokens(tokens, best.tokens, best.count);
        assert_true(fabs(result.score - best.score) <= 1e-13 * (1 + fabs(best.score)));
        lengths[best.count]++;
    }
    assert_true(lengths[1] > 5 && lengths[2] + lengths[3] > 3 && lengths[4] > 5);
}

/* By hand: 3 ends. At first it has probability 1/2 and 1 the other half; 2 follows 1, and 3 follows 2, with 1/4 each
 * (the rest is spread too thinly to matter). Of log P = ln(1/2) for one token and ln(1/32) = 5 ln(1/2) for three the
 * forms choose another text where A is between ln 5 / ln 3 = 1.465 and ln 5 / ln(8/6) = 5.594. */
static void test_length_forms(void **state) {
    (void)state;
    enum { WIDE = 32 };
    float table[WIDE * WIDE];
    for (int from = 0; from < WIDE; from++)
        for (int to = 0; to < WIDE; to++) {
            double p = from == 0 ? 1e-9 : 0.75 / (WIDE - 1);
            if (from == 0 && (to == 1 || to == 3)) p = 0.5;
            if ((from == 1 && to == 2) || (from == 2 && to == 3)) p = 0.25;
            table[from * WIDE + to] = (float)log(p);
        }
    static const struct {
        double alpha;
        int form, count;
    } cases[] = {{1.4, ATTN_GENERATE_POWER, 1}, {1.5, ATTN_GENERATE_POWER, 3}, {1.5, ATTN_GENERATE_GNMT, 1},
                 {5.5, ATTN_GENERATE_GNMT, 1},  {5.7, ATTN_GENERATE_GNMT, 3}, {5.7, ATTN_GENERATE_POWER, 3},
                 {-1, ATTN_GENERATE_POWER, 1},  {0, ATTN_GENERATE_POWER, 1}};
    const int32_t end = 3;
    for (int i = 0; i < LENGTH(cases); i++) {
        int32_t tokens[3];
        Fake fake = fake_of(WIDE, 8, 2);
        fake.table = table;
        attn_generate_options options = options_of(3);
        options.beams = 2;
        options.end = &end;
        options.end_count = 1;
        options.length_penalty = cases[i].alpha;
        options.length_form = cases[i].form;
        attn_generated result = run(&fake, &options, tokens);
        assert_int_equal(result.count, cases[i].count);
        assert_tokens(tokens, result.count == 1 ? (const int32_t[]){3} : (const int32_t[]){1, 2, 3}, result.count);
        double base = cases[i].form == ATTN_GENERATE_POWER ? result.count : (5.0 + result.count) / 6;
        double score = log(result.count == 1 ? 0.5 : 1.0 / 32) / pow(base, cases[i].alpha);
        assert_true(fabs(result.score - score) < 1e-6);
    }
}

static void test_beam_2_beats_greedy(void **state) {
    (void)state;
    /* ln of probabilities: 0 -> 1 (.6) or 2 (.4); 1 -> all alike; 2 -> 3 (.97) */
    float table[16];
    const double p[] = {0.0001, 0.6, 0.3998, 0.0001, 0.25, 0.25, 0.25, 0.25, 0.01, 0.01, 0.01, 0.97, 1, 1, 1, 1};
    for (int i = 0; i < 16; i++) {
        table[i] = (float)log(p[i]);
    }
    const int32_t expected[4][2] = {{1, 0}, {1, 0}, {2, 3}, {2, 3}};
    for (int beams = 0; beams < 4; beams++) {
        int32_t tokens[2];
        Fake fake = fake_of(4, 8, 3);
        fake.table = table;
        attn_generate_options options = options_of(2);
        options.beams = beams;
        attn_generated result = run(&fake, &options, tokens);
        assert_tokens(tokens, expected[beams], 2);
        assert_true(fabs(result.score - (beams > 1 ? log(0.3998 * 0.97) : 0)) < 1e-6);
        assert_int_equal(fake.copies, beams > 1 ? beams - 1 : 0);
    }
}

/* Equal texts: the lower beam and then the lower token goes first, so the first text is the lowest. */
static void test_beam_ties(void **state) {
    (void)state;
    const float row[] = {-INFINITY, 1, 1, NAN, 1};
    int32_t tokens[3];
    Fake fake = fake_of(5, 8, 3);
    fake.row = row;
    attn_generate_options options = options_of(3);
    options.beams = 3;
    run(&fake, &options, tokens);
    assert_tokens(tokens, (const int32_t[]){1, 1, 1}, 3);
    /* After the first step each of 1, 2, 4 lives; then beam 0's three children have all the places. */
    const int32_t first[] = {1, 2, 4}, second[][2] = {{1, 1}, {1, 2}, {1, 4}};
    uint64_t sums[2] = {0, 0};
    for (int i = 0; i < 3; i++) {
        sums[0] += hash_tokens(1, &first[i], 1);
        sums[1] += hash_tokens(1, second[i], 2);
    }
    assert_memory_equal(fake.fed, sums, sizeof sums);
}

/* Fewer continuations than beams, at first and always. */
static void test_beams_beyond_vocab(void **state) {
    (void)state;
    for (int vocab = 1; vocab <= 3; vocab++) {
        int32_t tokens[4], prompt = 0;
        Fake fake = fake_of(vocab, 4, 20);
        fake.row = (const float[]){1, 2, 0};
        attn_generate_options options = options_of(4);
        options.beams = 20;
        attn_model model = model_of(&fake);
        attn_generated result;
        assert_int_equal(generate(&model, &options, &prompt, 1, tokens, &result), ATTN_GENERATE_OK);
        assert_int_equal(result.count, 4);
        assert_tokens(tokens, vocab == 1 ? (const int32_t[]){0, 0, 0, 0} : (const int32_t[]){1, 1, 1, 1}, 4);
    }
}

/* 0 goes on with 1, after which nothing can be chosen, or less likely with 2: only the beam of 2 lives on. */
static void test_dead_beam(void **state) {
    (void)state;
    const float table[] = {0, 5, 3, 0, NAN, NAN, -INFINITY, NAN, 0, 0, 0, 9, 0, 0, 9, 0};
    int32_t tokens[3];
    Fake fake = fake_of(4, 8, 2);
    fake.table = table;
    attn_generate_options options = options_of(3);
    options.beams = 2;
    run(&fake, &options, tokens);
    assert_tokens(tokens, (const int32_t[]){2, 3, 2}, 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_beams_against_reference),
        cmocka_unit_test(test_beams_against_brute_force),
        cmocka_unit_test(test_length_forms),
        cmocka_unit_test(test_beam_2_beats_greedy),
        cmocka_unit_test(test_beam_ties),
        cmocka_unit_test(test_beams_beyond_vocab),
        cmocka_unit_test(test_dead_beam),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
