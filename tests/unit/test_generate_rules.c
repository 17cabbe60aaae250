#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "fake_model.h"

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The cases of rules.txt, which make_rules.py has written: what transformers answers. */

enum { MOST = 64, ROWS = 32, BEAMS = 5 };

typedef struct Tokens {
    int count;
    int32_t tokens[MOST];
} Tokens;

typedef struct Case {
    uint64_t salt;
    int vocab, doublings;
    attn_generate_options options;
    Tokens prompt, end, suppressed, suppressed_first, bad_words, forced_first, forced_last, answer;
    int no_token;
    double score;
} Case;

static bool read_tokens(FILE *file, Tokens *list) {
    if (fscanf(file, "%d", &list->count) != 1 || list->count < 0 || list->count > MOST) return false;
    for (int i = 0; i < list->count; i++) {
        int token;
        if (fscanf(file, "%d", &token) != 1) return false;
        list->tokens[i] = token;
    }
    return true;
}

/* False at the end of the file. */
static bool read_case(FILE *file, Case *c) {
    memset(c, 0, sizeof *c);
    attn_generate_options *o = &c->options;
    unsigned long long salt;
    int first = fscanf(file, "%llu %d %d %d %d %lf %lf %d %d %d %d", &salt, &c->vocab, &c->doublings, &o->beams,
                       &o->early_stopping, &o->length_penalty, &o->repetition_penalty, &o->no_repeat_ngram,
                       &o->min_length, &o->min_new, &o->max_new);
    if (first == EOF) return false;
    assert_int_equal(first, 11);
    c->salt = salt;
    o->size = sizeof *o;
    o->length_form = ATTN_GENERATE_POWER;
    Tokens *const lists[] = {&c->prompt, &c->end, &c->suppressed, &c->suppressed_first, &c->bad_words,
                             &c->forced_first, &c->forced_last, &c->answer};
    for (int i = 0; i < LENGTH(lists); i++) assert_true(read_tokens(file, lists[i]));
    assert_int_equal(fscanf(file, "%d %lf", &c->no_token, &c->score), 2);
    o->end = c->end.tokens, o->end_count = c->end.count;
    o->suppressed = c->suppressed.tokens, o->suppressed_count = c->suppressed.count;
    o->suppressed_first = c->suppressed_first.tokens, o->suppressed_first_count = c->suppressed_first.count;
    o->bad_words = c->bad_words.tokens, o->bad_words_count = c->bad_words.count;
    o->forced_first = c->forced_first.tokens, o->forced_first_count = c->forced_first.count;
    o->forced_last = c->forced_last.tokens, o->forced_last_count = c->forced_last.count;
    return true;
}

typedef struct Ruled {
    const Case *c;
    int32_t texts[BEAMS][ROWS];
    int held[BEAMS];
} Ruled;

/* logits_of in make_rules.py; every sum and product is exact. */
static void ruled_logits(const Case *c, const int32_t *text, int count, float *logits) {
    const uint64_t whole = hash_tokens(c->salt, text, count);
    for (int32_t token = 0; token < c->vocab; token++) {
        const int32_t after[] = {text[count - 1], token, 7}, next[] = {token, 7, 7};
        const double coarse = (double)(hash_tokens(c->salt, after, 3) >> 52) / 512 - 4;
        const double fine = (double)(hash_tokens(whole, next, 3) >> 51) / (1 << 17);
        logits[token] = (float)ldexp(coarse + fine, c->doublings);
    }
}

static int ruled_prefill(void *with, int slot, const int32_t *tokens, int count, float *logits) {
    Ruled *model = with;
    assert_true(model->held[slot] + count <= ROWS);
    memcpy(model->texts[slot] + model->held[slot], tokens, (size_t)count * sizeof *tokens);
    model->held[slot] += count;
    ruled_logits(model->c, model->texts[slot], model->held[slot], logits);
    return 0;
}

static int ruled_step(void *with, int count, const int *slots, const int32_t *tokens, float *logits) {
    const Ruled *model = with;
    for (int i = 0; i < count; i++) ruled_prefill(with, slots[i], tokens + i, 1, logits + i * model->c->vocab);
    return 0;
}

static int ruled_copy(void *with, int to, int from) {
    Ruled *model = with;
    memcpy(model->texts[to], model->texts[from], sizeof model->texts[to]);
    model->held[to] = model->held[from];
    return 0;
}

/* Runs a case whose first `held` tokens of the prompt are the history. */
static void check_case(const Case *c, int number, int held) {
    Ruled with = {.c = c};
    memcpy(with.texts[0], c->prompt.tokens, (size_t)held * sizeof *c->prompt.tokens);
    with.held[0] = held;
    const attn_model model = {sizeof model, c->vocab, ROWS, &with, ruled_prefill, ruled_step, ruled_copy};
    attn_generate_options options = c->options;
    options.rows = options.history_count = held;
    options.history = c->prompt.tokens;
    int32_t tokens[MAX_NEW] = {0};
    attn_generated result;
    const int status = generate(&model, &options, c->prompt.tokens + held, c->prompt.count - held, tokens, &result);
    const bool same = status == (c->no_token ? ATTN_GENERATE_NO_TOKEN : ATTN_GENERATE_OK) &&
                      result.count == c->answer.count &&
                      memcmp(tokens, c->answer.tokens, (size_t)result.count * sizeof *tokens) == 0 &&
                      fabs(result.score - c->score) <= 2e-5 * (1 + fabs(c->score));
    if (same) return;
    print_message("status %d, score %.7g instead of %.7g; tokens", status, result.score, c->score);
    for (int i = 0; i < result.count; i++) print_message(" %d", (int)tokens[i]);
    print_message("\ninstead of");
    for (int i = 0; i < c->answer.count; i++) print_message(" %d", (int)c->answer.tokens[i]);
    fail_msg("\ncase %d of rules.txt, %d tokens of history", number, held);
}

static void test_rules_of_transformers(void **state) {
    (void)state;
    FILE *file = fopen("tests/unit/rules.txt", "r");
    assert_non_null(file);
    static Case c;
    int count = 0, beams = 0, ended = 0, stuck = 0;
    for (; read_case(file, &c); count++) {
        for (int held = 0; held < c.prompt.count; held += (c.prompt.count + 1) / 2) check_case(&c, count + 1, held);
        beams += c.options.beams > 1;
        ended += c.answer.count < c.options.max_new;
        stuck += c.no_token;
    }
    (void)fclose(file);
    assert_true(count >= 500 && beams > 300 && ended > 100 && stuck > 0);
}

/* Sampling against the exact distribution of the options, computed with libm. */

enum { WIDE = 40, SOME = 60, MANY = 300, DRAWS = 20000, MORE_DRAWS = 60000 };

typedef struct Drawn {
    float row[WIDE];
    int32_t prompt[4], forbidden[3];
    attn_generate_options options;
    double p[WIDE];
} Drawn;

static int drawn_prefill(void *with, int slot, const int32_t *tokens, int count, float *logits) {
    (void)slot, (void)tokens, (void)count;
    memcpy(logits, ((const Drawn *)with)->row, sizeof(float[WIDE]));
    return 0;
}

static int drawn_step(void *with, int count, const int *slots, const int32_t *tokens, float *logits) {
    return drawn_prefill(with, *slots, tokens, count, logits);
}

static uint64_t number_of(uint64_t salt, int32_t which, uint64_t below) {
    const int32_t tokens[] = {which, 7, 7};
    return (hash_tokens(salt, tokens, 3) >> 20) % below;
}

static Drawn drawn_of(int number) {
    static const double temperatures[] = {0.3, 0.7, 1, 1.5, 4}, top_ps[] = {0, 0, 0.3, 0.8, 0.95},
                        min_ps[] = {0, 0, 0.02, 0.1, 0.5}, penalties[] = {0, 0.6, 1.2, 2};
    static const int top_ks[] = {0, 0, 5, 20};
    const uint64_t salt = 1000 + (uint64_t)number;
    Drawn drawn;
    memset(&drawn, 0, sizeof drawn);
    for (int i = 0; i < WIDE; i++) drawn.row[i] = (float)number_of(salt, i, 1 << 20) * 0x1p-17f - 4;
    for (int i = 0; i < 4; i++) drawn.prompt[i] = (int32_t)number_of(salt, 100 + i, WIDE);
    for (int i = 0; i < 3; i++) drawn.forbidden[i] = (int32_t)number_of(salt, 200 + i, WIDE);
    attn_generate_options *o = &drawn.options;
    *o = options_of(1);
    o->temperature = temperatures[number_of(salt, 300, LENGTH(temperatures))];
    o->top_p = top_ps[number_of(salt, 301, LENGTH(top_ps))];
    o->top_k = top_ks[number_of(salt, 302, LENGTH(top_ks))];
    o->min_p = min_ps[number_of(salt, 303, LENGTH(min_ps))];
    o->repetition_penalty = penalties[number_of(salt, 304, LENGTH(penalties))];
    o->suppressed_count = (int)number_of(salt, 305, 4);
    return drawn;
}

/* The place of each token of scores [WIDE], the largest score first. */
static void rank_scores(const double *scores, int *ranked) {
    for (int i = 0; i < WIDE; i++) {
        int at = i;
        for (; at > 0 && scores[ranked[at - 1]] < scores[i]; at--) ranked[at] = ranked[at - 1];
        ranked[at] = i;
    }
}

/* In the order of transformers: penalty, suppressed tokens, temperature, top_k, top_p, min_p. */
static void fill_probabilities(Drawn *drawn) {
    const attn_generate_options *o = &drawn->options;
    double scores[WIDE], sum = 0, before = 0;
    int ranked[WIDE], kept = WIDE;
    for (int i = 0; i < WIDE; i++) scores[i] = (double)drawn->row[i];
    for (int i = 0; i < 4 && o->repetition_penalty > 0; i++) {
        const double logit = (double)drawn->row[drawn->prompt[i]];
        scores[drawn->prompt[i]] = logit < 0 ? logit * o->repetition_penalty : logit / o->repetition_penalty;
    }
    for (int i = 0; i < o->suppressed_count; i++) scores[drawn->forbidden[i]] = -INFINITY;
    rank_scores(scores, ranked);
    if (o->top_k > 0) kept = o->top_k;
    for (int i = 0; i < WIDE; i++) drawn->p[i] = 0;
    for (int i = 0; i < kept; i++) sum += exp((scores[ranked[i]] - scores[ranked[0]]) / o->temperature);
    for (int i = 0; i < kept && (o->top_p == 0 || before < o->top_p * sum); i++) {
        const double weight = exp((scores[ranked[i]] - scores[ranked[0]]) / o->temperature);
        before += weight;
        if (weight >= o->min_p) drawn->p[ranked[i]] = weight;
    }
    sum = 0;
    for (int i = 0; i < WIDE; i++) sum += drawn->p[i];
    for (int i = 0; i < WIDE; i++) drawn->p[i] /= sum;
}

/* The value that chi-squared exceeds once in about 3 million draws of so many freedoms (Wilson and Hilferty 1931). */
static double chi_squared_limit(int freedoms) {
    const double part = 2.0 / (9 * freedoms);
    return freedoms * pow(1 - part + 5 * sqrt(part), 3);
}

static void check_drawn(Drawn *drawn, int draws, int number) {
    const attn_model model = {sizeof model, WIDE, 8, drawn, drawn_prefill, drawn_step, NULL};
    static char memory[1 << 14];
    int counts[WIDE] = {0}, freedoms = -1;
    double rest = 0, chi_squared = 0;
    int rest_count = 0;
    drawn->options.suppressed = drawn->forbidden;
    fill_probabilities(drawn);
    for (int i = 0; i < draws; i++) {
        int32_t token = -1;
        attn_generated result = {.size = sizeof result, .tokens = &token};
        drawn->options.sequence = (uint64_t)i;
        assert_int_equal(attn_generate(&model, &drawn->options, drawn->prompt, 4, &result, memory, sizeof memory),
                         ATTN_GENERATE_OK);
        counts[token]++;
    }
    for (int i = 0; i < WIDE; i++) {
        const double expected = drawn->p[i] * draws, off = counts[i] - expected;
        if (drawn->p[i] == 0) assert_int_equal(counts[i], 0);
        if (expected < 5) {
            rest += expected, rest_count += counts[i];
        } else {
            chi_squared += off * off / expected, freedoms++;
        }
    }
    if (rest >= 5) chi_squared += (rest_count - rest) * (rest_count - rest) / rest, freedoms++;
    const double limit = freedoms > 0 ? chi_squared_limit(freedoms) : 1e-9;
    if (chi_squared > limit) fail_msg("setting %d: chi-squared %g of %d freedoms", number, chi_squared, freedoms);
}

static void test_sampled_rules(void **state) {
    (void)state;
    const bool all = getenv("ATTNC_LONG") != NULL;
    for (int i = 0; i < (all ? MANY : SOME); i++) {
        Drawn drawn = drawn_of(i);
        check_drawn(&drawn, all ? MORE_DRAWS : DRAWS, i);
    }
}

/* One option wrong at a time, by number. Returns the status it must give, -1 after the last. */
static int spoil(int what, attn_generate_options *o) {
    static const int32_t good[] = {0, 3, -1}, large[] = {0, 4, -1}, negative[] = {-2, -1}, no_word[] = {1, -1, -1},
                         first[] = {-1, 0, -1};
    const int32_t **const lists[] = {&o->history, &o->suppressed, &o->suppressed_first, &o->bad_words,
                                     &o->forced_first, &o->forced_last};
    int *const counts[] = {&o->history_count, &o->suppressed_count, &o->suppressed_first_count, &o->bad_words_count,
                           &o->forced_first_count, &o->forced_last_count};
    enum { LISTS = 6, OF_LISTS = 4 * LISTS };
    if (what < OF_LISTS) {
        const int list = what / 4, at = list == 3 ? 3 : 2;
        static const int32_t *const given[] = {NULL, good, large, negative};
        *lists[list] = given[what % 4];
        *counts[list] = what % 4 == 1 ? -1 : what % 4 == 3 ? at - 1 : at;
        return what % 4 < 2 ? ATTN_GENERATE_BAD_OPTION : ATTN_GENERATE_BAD_TOKEN;
    }
    switch (what - OF_LISTS) {
    case 0: o->repetition_penalty = -1; return ATTN_GENERATE_BAD_OPTION;
    case 1: o->repetition_penalty = NAN; return ATTN_GENERATE_BAD_OPTION;
    case 2: o->repetition_penalty = INFINITY; return ATTN_GENERATE_BAD_OPTION;
    case 3: o->repetition_penalty = 1e39; return ATTN_GENERATE_BAD_OPTION; /* infinite in f32, */
    case 4: o->repetition_penalty = 1e-39; return ATTN_GENERATE_BAD_OPTION; /* and not normal */
    case 5: o->no_repeat_ngram = -1; return ATTN_GENERATE_BAD_OPTION;
    case 6: o->min_length = -1; return ATTN_GENERATE_BAD_OPTION;
    case 7: o->min_p = -0.1; return ATTN_GENERATE_BAD_OPTION;
    case 8: o->min_p = 1.1; return ATTN_GENERATE_BAD_OPTION;
    case 9: o->min_p = NAN; return ATTN_GENERATE_BAD_OPTION;
    case 10: o->early_stopping = -1; return ATTN_GENERATE_BAD_OPTION;
    case 11: o->early_stopping = 4; return ATTN_GENERATE_BAD_OPTION;
    case 12: o->bad_words = no_word, o->bad_words_count = 3; return ATTN_GENERATE_BAD_OPTION;
    case 13: o->bad_words = first, o->bad_words_count = 3; return ATTN_GENERATE_BAD_OPTION;
    case 14: o->bad_words = good, o->bad_words_count = 2; return ATTN_GENERATE_BAD_OPTION; /* the last -1 lacks */
    case 15: o->history = good, o->history_count = 2, o->rows = 1; return ATTN_GENERATE_BAD_OPTION;
    default: return -1;
    }
}

static void test_bad_rules(void **state) {
    (void)state;
    static char memory[1 << 14];
    int expected = 0;
    for (int what = 0; expected >= 0; what++) {
        Fake fake = fake_of(4, 16, 2);
        int32_t tokens[4] = {-7, -7, -7, -7};
        attn_model model = model_of(&fake);
        attn_generate_options options = options_of(4);
        options.rows = 3;
        expected = spoil(what, &options);
        attn_generated result = {.size = sizeof result, .tokens = tokens};
        const int wanted = expected < 0 ? ATTN_GENERATE_OK : expected;
        const int status =
            attn_generate(&model, &options, PROMPT, PROMPT_COUNT, &result, memory, sizeof memory);
        if (status != wanted) fail_msg("case %d: status %d, expected %d", what, status, wanted);
        assert_int_equal(attn_generate_bytes(&model, &options) > 0, expected < 0);
        if (expected >= 0) {
            assert_int_equal(fake.calls, 0);
            assert_tokens(tokens, (const int32_t[]){-7, -7, -7, -7}, 4);
        }
    }
}

/* The sizes of the arrays of the rules do not overflow, and a rule that no text can break needs no memory. */
static void test_memory_of_rules(void **state) {
    (void)state;
    Fake fake = fake_of(4, 16, 2);
    attn_model model = model_of(&fake);
    attn_generate_options options = options_of(4);
    options.beams = 2;
    const size_t plain = attn_generate_bytes(&model, &options);
    options.no_repeat_ngram = INT_MAX;
    options.early_stopping = ATTN_GENERATE_NEVER;
    assert_in_range(attn_generate_bytes(&model, &options), plain, plain + 256);
    model.vocab = model.bound = INT_MAX;
    options.repetition_penalty = 1.5;
    options.beams = INT_MAX;
    assert_true(attn_generate_bytes(&model, &options) == SIZE_MAX);
    options.beams = 0;
    model.vocab = 4;
    assert_in_range(attn_generate_bytes(&model, &options), (size_t)INT_MAX * sizeof(int), (size_t)INT_MAX * 5);
}

/* A text that repeats one token, whose end the n-gram rule finds at every place, costs about as much as one that never
 * repeats itself: each step reads the text a few times, and not once for each token of an n-gram. */
static void test_long_texts(void **state) {
    (void)state;
    enum { LONG = 1 << 20, SIZE = 1 << 19 };
    static int32_t history[LONG];
    Fake fake = fake_of(4, 16, 1);
    attn_model model = model_of(&fake);
    model.bound = LONG + 16;
    attn_generate_options options = options_of(2);
    options.rows = options.history_count = LONG;
    options.history = history;
    options.no_repeat_ngram = SIZE;
    options.repetition_penalty = 1.1;
    int32_t tokens[2], zeros[PROMPT_COUNT] = {0};
    attn_generated result;
    assert_int_equal(generate(&model, &options, zeros, PROMPT_COUNT, tokens, &result), ATTN_GENERATE_OK);
    assert_int_not_equal(tokens[0], 0); /* 0 would repeat */
}

/* The end 0 1 0 of the text is found at both places that overlap: after one of them comes 1, after the other 2. */
static void test_overlapping_ngrams(void **state) {
    (void)state;
    static const int32_t history[] = {0, 1, 0, 1, 0, 2}, prompt[] = {0, 1, 0};
    static const float row[] = {0, 3, 2, 1};
    Fake fake = fake_of(4, 16, 1);
    fake.row = row;
    attn_model model = model_of(&fake);
    attn_generate_options options = options_of(1);
    options.rows = options.history_count = LENGTH(history);
    options.history = history;
    options.no_repeat_ngram = 4;
    int32_t token;
    attn_generated result;
    assert_int_equal(generate(&model, &options, prompt, LENGTH(prompt), &token, &result), ATTN_GENERATE_OK);
    assert_int_equal(token, 3);
}

/* Without a token that the rules allow, the search ends. A rule gives way to a forced token, except the last two. */
static void test_no_token_left(void **state) {
    (void)state;
    static const int32_t all[] = {0, 1, 2, 3}, words[] = {0, -1, 1, -1, 2, -1, 3, -1}, start = 0;
    for (int mode = 0; mode < 4; mode++) {
        for (int beams = 1; beams <= 2; beams++) {
            Fake fake = fake_of(4, 16, 2);
            attn_model model = model_of(&fake);
            attn_generate_options options = options_of(3);
            options.beams = beams;
            options.early_stopping = beams == 2 ? mode : 0;
            if (mode % 2 == 0) options.suppressed = all, options.suppressed_count = 4;
            if (mode % 2 == 1) options.bad_words = words, options.bad_words_count = 8;
            if (mode >= 2) options.forced_first = all + 2, options.forced_first_count = 1;
            int32_t tokens[3];
            attn_generated result;
            const int status = generate(&model, &options, &start, 1, tokens, &result);
            assert_int_equal(status, ATTN_GENERATE_NO_TOKEN);
            assert_int_equal(result.count, mode == 3 && beams == 1);
            if (result.count > 0) assert_int_equal(tokens[0], 2);
        }
    }
}

/* A search that ends with the beams' number of finished texts is the shortest. Both others count alike without a
 * positive length penalty; with one, a search that counts max_new tokens for unfinished texts ends last. */
static void test_lengths_of_searches(void **state) {
    (void)state;
    static const int32_t end[] = {1, 4, 5};
    int longer[2] = {0};
    for (int n = 0; n < 300; n++) {
        int steps[ATTN_GENERATE_NEVER + 1];
        for (int early = ATTN_GENERATE_AT_FULL; early <= ATTN_GENERATE_NEVER; early++) {
            Fake fake = fake_of(8, PROMPT_COUNT + MAX_NEW - 1, 3);
            fake.salt = (uint64_t)n;
            attn_generate_options options = options_of(MAX_NEW);
            options.beams = 3;
            options.end = end;
            options.end_count = LENGTH(end);
            options.length_form = ATTN_GENERATE_POWER;
            options.length_penalty = n % 2 ? 1 : -0.05;
            options.early_stopping = early;
            int32_t tokens[MAX_NEW];
            run(&fake, &options, tokens);
            steps[early] = fake.steps;
        }
        assert_true(steps[ATTN_GENERATE_AT_FULL] <= steps[ATTN_GENERATE_HEURISTIC]);
        assert_true(steps[ATTN_GENERATE_HEURISTIC] <= steps[ATTN_GENERATE_NEVER]);
        longer[n % 2] += steps[ATTN_GENERATE_HEURISTIC] > steps[ATTN_GENERATE_AT_FULL];
        if (n % 2 == 0) assert_int_equal(steps[ATTN_GENERATE_NEVER], steps[ATTN_GENERATE_HEURISTIC]);
    }
    assert_true(longer[0] > 10 && longer[1] > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules_of_transformers),
        cmocka_unit_test(test_sampled_rules),
        cmocka_unit_test(test_bad_rules),
        cmocka_unit_test(test_memory_of_rules),
        cmocka_unit_test(test_long_texts),
        cmocka_unit_test(test_overlapping_ngrams),
        cmocka_unit_test(test_no_token_left),
        cmocka_unit_test(test_lengths_of_searches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
