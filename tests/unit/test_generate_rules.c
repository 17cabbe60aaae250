#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "fake_model.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules_of_transformers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
