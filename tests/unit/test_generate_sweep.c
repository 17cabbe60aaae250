#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "fake_model.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* Rows of logits around the sizes of blocks and of what is kept, of every kind, and every search on them beside a plain
 * one that sorts the whole row; libm's exp and log in long double. */
enum { MOST_VOCAB = 32000, DRAWS = 40 };

static const int VOCABS[] = {1, 2, 255, 256, 257, 300, 1023, 1024, 1500, MOST_VOCAB};

enum { NORMAL, EQUAL, RISING, FALLING, COARSE, HOLES, INFINITE, EXTREME, ZEROS, LAST, KINDS };

static float row[MOST_VOCAB];

static double fraction(uint64_t salt, int token) {
    const int32_t tokens[] = {token, 7, 7};
    return ((double)(hash_tokens(salt, tokens, 3) >> 11) + 0.5) * 0x1p-53;
}

static float logit_of(int kind, uint64_t salt, int token, int vocab) {
    double uniform = fraction(salt, token);
    float normal = (float)(3 * sqrt(-2 * log(uniform)) * cos(6.283185307179586 * fraction(salt + 1, token)));
    switch (kind) {
    case EQUAL: return -3.25f;
    case RISING: return (float)token * 0.01f - 7;
    case FALLING: return 7 - (float)token * 0.01f;
    case COARSE: return floorf(normal);
    case HOLES: return uniform < 0.3 ? NAN : uniform < 0.6 || token == 0 ? -INFINITY : normal;
    case INFINITE: return uniform < 0.2 ? INFINITY : uniform < 0.4 ? NAN : normal;
    case EXTREME: return uniform < 0.5 ? FLT_MAX : uniform < 0.7 ? -FLT_MAX : normal * 1e-40f;
    case ZEROS: return uniform < 0.5 ? -0.0f : 0;
    case LAST: return token == vocab - 1 ? 1 : -800;
    default: return normal;
    }
}

static void fill(int kind, uint64_t salt, int vocab) {
    for (int i = 0; i < vocab; i++) {
        row[i] = logit_of(kind, salt, i, vocab);
    }
}

static Fake fake_row(int vocab, int slots) {
    Fake fake = fake_of(vocab, PROMPT_COUNT + DRAWS, slots);
    fake.row = row;
    return fake;
}

/* From a prompt of one token, which every vocabulary has. */
static int generate_row(Fake *fake, const attn_generate_options *options, int32_t *tokens, attn_generated *result) {
    const int32_t prompt = 0;
    attn_model model = model_of(fake);
    return generate(&model, options, &prompt, 1, tokens, result);
}

static int by_logit(const void *left, const void *right) {
    int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
    return row[a] != row[b] ? (row[a] < row[b]) - (row[a] > row[b]) : (a > b) - (a < b);
}

/* The tokens that can be chosen, the best first. */
static int rank(int vocab, int32_t *ranked) {
    int count = 0;
    for (int32_t i = 0; i < vocab; i++) {
        if (row[i] > -INFINITY) {
            ranked[count++] = i;
        }
    }
    qsort(ranked, (size_t)count, sizeof *ranked, by_logit);
    return count;
}

/* ln of the probability as a part of the best token's. */
static long double ratio(int32_t token, int32_t best) {
    return row[token] == row[best] ? 0 : (long double)row[token] - (long double)row[best];
}

static void test_greedy_rows(void **state) {
    (void)state;
    static int32_t ranked[MOST_VOCAB];
    for (int v = 0; v < LENGTH(VOCABS); v++) {
        for (int kind = 0; kind < KINDS; kind++) {
            for (uint64_t salt = 0; salt < 5; salt++) {
                fill(kind, salt, VOCABS[v]);
                int count = rank(VOCABS[v], ranked);
                int32_t tokens[2];
                attn_generated result;
                attn_generate_options options = options_of(2);
                Fake fake = fake_row(VOCABS[v], 1);
                int status = generate_row(&fake, &options, tokens, &result);
                assert_int_equal(status, count == 0 ? ATTN_GENERATE_NO_TOKEN : ATTN_GENERATE_OK);
                if (count > 0) {
                    assert_tokens(tokens, (const int32_t[]){ranked[0], ranked[0]}, 2);
                }
            }
        }
    }
}

/* splitmix64 */
static double next_fraction(uint64_t *random) {
    *random += 0x9e3779b97f4a7c15;
    uint64_t z = *random;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

/* Draws as attn_generate.h says, by rank where something is cut and else by id. Returns the size of the nucleus. */
static int reference_draws(int vocab, const attn_generate_options *options, int32_t *tokens) {
    static int32_t ranked[MOST_VOCAB];
    static long double weights[MOST_VOCAB];
    int count = rank(vocab, ranked), kept = count;
    bool top_k = options->top_k > 0 && options->top_k < vocab, top_p = options->top_p > 0 && options->top_p < 1;
    int32_t best = ranked[0];
    long double total = 0, sum = 0;
    if (top_k && options->top_k < kept) {
        kept = options->top_k;
    }
    if (!top_k && !top_p) {
        int at = 0;
        for (int32_t i = 0; i < vocab; i++) {
            if (row[i] > -INFINITY) {
                ranked[at++] = i;
            }
        }
    }
    for (int i = 0; i < kept; i++) {
        weights[i] = expl(ratio(ranked[i], best) / options->temperature);
        total += weights[i];
    }
    if (top_p) {
        int i = 0;
        while (i < kept && sum < (long double)(options->top_p * (double)total)) {
            sum += weights[i++];
        }
        kept = i;
        total = sum;
    }
    uint64_t random = options->seed;
    for (int n = 0; n < options->max_new; n++) {
        long double target = next_fraction(&random) * total;
        int i = 0;
        for (sum = weights[0]; sum <= target && i < kept - 1; sum += weights[i]) {
            i++;
        }
        tokens[n] = ranked[i];
    }
    return kept;
}

static void test_sampled_rows(void **state) {
    (void)state;
    static const struct {
        double temperature, top_p;
        int top_k;
    } cases[] = {{1, 0, 0},      {0.3, 1, 0},      {5, 0, MOST_VOCAB}, {1e-300, 0, 0},  {1, 0, 1},       {0.8, 0, 50},
                 {2, 0, 255},    {1, 0, 1024},     {1, 0, 1025},       {3, 0.93, 1400}, {1, 0.6, 40},    {0.7, 0.9, 0},
                 {1.5, 0.95, 0}, {4, 0.999999, 0}, {1, 1e-300, 0},     {2, 0.5, 0},     {0.01, 0.99, 0},
                 {1e-5, 0.5, 0}};
    int large = 0, small = 0;
    for (int v = 0; v < LENGTH(VOCABS); v++) {
        for (int kind = 0; kind < KINDS; kind++) {
            fill(kind, (uint64_t)kind, VOCABS[v]);
            for (int c = 0; c < LENGTH(cases); c++) {
                int32_t tokens[DRAWS], expected[DRAWS];
                attn_generated result;
                attn_generate_options options = options_of(DRAWS);
                options.temperature = cases[c].temperature;
                options.top_p = cases[c].top_p;
                options.top_k = cases[c].top_k;
                options.seed = (uint64_t)(c + kind);
                Fake fake = fake_row(VOCABS[v], 1);
                int status = generate_row(&fake, &options, tokens, &result);
                static int32_t ranked[MOST_VOCAB];
                if (rank(VOCABS[v], ranked) == 0) {
                    assert_int_equal(status, ATTN_GENERATE_NO_TOKEN);
                    continue;
                }
                assert_int_equal(status, ATTN_GENERATE_OK);
                int nucleus = reference_draws(VOCABS[v], &options, expected);
                int kept = VOCABS[v] / 16 < 32 ? 32 : VOCABS[v] / 16 > 256 ? 256 : VOCABS[v] / 16;
                large += nucleus > kept && options.top_k == 0 && options.top_p > 0 && options.top_p < 1;
                small += nucleus <= kept && VOCABS[v] > kept;
                for (int i = 0; i < DRAWS; i++) {
                    if (tokens[i] != expected[i]) {
                        fail_msg("vocab %d, kind %d, case %d, draw %d: %d, expected %d", VOCABS[v], kind, c, i,
                                 (int)tokens[i], (int)expected[i]);
                    }
                }
            }
        }
    }
    assert_true(large > 20 && small > 20);
}

typedef struct Text {
    int32_t tokens[3];
    int count, beam;
    double log_p;
} Text;

static int by_log_p(const void *left, const void *right) {
    const Text *a = left, *b = right;
    if (a->log_p != b->log_p) {
        return a->log_p > b->log_p ? -1 : 1;
    }
    return a->beam != b->beam ? a->beam - b->beam : by_logit(&a->tokens[a->count - 1], &b->tokens[b->count - 1]);
}

static bool ends(const attn_generate_options *options, int32_t token) {
    for (int i = 0; i < options->end_count; i++) {
        if (options->end[i] == token) {
            return true;
        }
    }
    return false;
}

/* A beam search that sorts every continuation. The sums of the hashes of what lives go to `fed`; returns the best
 * text, of count 0 if there is none, and its score. */
static Text reference_beams(int vocab, const attn_generate_options *options, uint64_t *fed, double *score) {
    static Text all[4 * MOST_VOCAB];
    static int32_t ranked[MOST_VOCAB];
    Text live[4] = {{.count = 0}}, best = {.count = 0};
    int count = rank(vocab, ranked), n_live = 1, room = options->beams * (1 + options->end_count);
    long double total = 0;
    for (int i = 0; i < count; i++) {
        total += expl(ratio(ranked[i], ranked[0]));
    }
    for (int length = 1; n_live > 0 && length <= options->max_new; length++) {
        int n = 0;
        for (int beam = 0; beam < n_live; beam++) {
            for (int i = 0; i < count; i++) {
                double log_p = live[beam].log_p + ((double)ratio(ranked[i], ranked[0]) - (double)logl(total));
                if (log_p == -INFINITY || (length <= options->min_new && ends(options, ranked[i]))) {
                    continue;
                }
                all[n] = live[beam];
                all[n].beam = beam;
                all[n].log_p = log_p;
                all[n++].tokens[length - 1] = ranked[i];
                all[n - 1].count = length;
            }
        }
        qsort(all, (size_t)n, sizeof *all, by_log_p);
        n_live = 0;
        for (int i = 0; i < n && i < room; i++) {
            bool end = ends(options, all[i].tokens[length - 1]);
            double its = all[i].log_p / pow((5.0 + length) / 6, options->length_penalty);
            if (!end && n_live == options->beams) {
                continue;
            }
            if (!end) {
                live[n_live++] = all[i];
            }
            if ((end || length == options->max_new) && (best.count == 0 || its > *score)) {
                best = all[i];
                *score = its;
            }
        }
        for (int i = 0; i < n_live && length < options->max_new; i++) {
            fed[length - 1] += hash_tokens(1, live[i].tokens, length);
        }
    }
    return best;
}

static void test_beam_rows(void **state) {
    (void)state;
    int tried = 0;
    for (int v = 0; v < LENGTH(VOCABS); v++) {
        for (int n = 0; n < 3 * KINDS; n++) {
            fill(n % KINDS, (uint64_t)n, VOCABS[v]);
            static int32_t ranked[MOST_VOCAB];
            int count = rank(VOCABS[v], ranked);
            /* of small rank, of large rank, twice */
            const int32_t end[] = {count > 2 ? ranked[2] : 0, VOCABS[v] / 2, VOCABS[v] / 2};
            int32_t tokens[3];
            attn_generated result;
            attn_generate_options options = options_of(3);
            options.beams = 2 + n % 3;
            options.end = end;
            options.end_count = n / KINDS == 0 ? 0 : 3;
            options.min_new = n / KINDS == 2 ? 2 : 0;
            options.length_penalty = 0.6;
            Fake fake = fake_row(VOCABS[v], 4);
            int status = generate_row(&fake, &options, tokens, &result);
            uint64_t fed[MAX_NEW] = {0};
            double score = 0;
            Text best = reference_beams(VOCABS[v], &options, fed, &score);
            assert_int_equal(status, best.count == 0 ? ATTN_GENERATE_NO_TOKEN : ATTN_GENERATE_OK);
            if (best.count == 0) {
                continue;
            }
            assert_int_equal(result.count, best.count);
            assert_tokens(tokens, best.tokens, best.count);
            assert_true(fabs(result.score - score) <= 1e-13 * (1 + fabs(score)));
            assert_memory_equal(fake.fed, fed, (size_t)fake.steps * sizeof *fed);
            tried++;
        }
    }
    assert_true(tried > 200);
}

/* Logits that differ by less than their log P can tell: the larger goes first, not the lower id. */
static void test_close_logits(void **state) {
    (void)state;
    for (int vocab = 300; vocab <= 1500; vocab += 1200) {
        fill(LAST, 0, vocab);
        row[3] = 1e-30f;
        row[vocab - 1] = 2e-30f;
        row[1] = 0;
        int32_t tokens[1];
        attn_generated result;
        attn_generate_options options = options_of(1);
        options.beams = 2;
        Fake fake = fake_row(vocab, 2);
        assert_int_equal(generate_row(&fake, &options, tokens, &result), ATTN_GENERATE_OK);
        assert_int_equal(tokens[0], vocab - 1);
    }
}

/* Nothing can be chosen, in rows of one block, several, and one token more. */
static void test_empty_rows(void **state) {
    (void)state;
    for (int v = 0; v < LENGTH(VOCABS); v++) {
        for (int mode = 0; mode < 12; mode++) {
            for (int i = 0; i < VOCABS[v]; i++) {
                row[i] = mode % 3 == 0 || (mode % 3 == 1 && i % 2 == 0) ? NAN : -INFINITY;
            }
            int32_t tokens[2];
            attn_generated result;
            attn_generate_options options = options_of(2);
            options.beams = mode / 3 == 1 ? 2 : 0;
            options.temperature = mode / 3 > 1 ? 1 : 0;
            options.top_p = mode / 3 == 3 ? 0.5 : 0;
            Fake fake = fake_row(VOCABS[v], 2);
            assert_int_equal(generate_row(&fake, &options, tokens, &result), ATTN_GENERATE_NO_TOKEN);
            row[VOCABS[v] - 1] = -FLT_MAX; /* but one */
            fake = fake_row(VOCABS[v], 2);
            assert_int_equal(generate_row(&fake, &options, tokens, &result), ATTN_GENERATE_OK);
            assert_int_equal(tokens[0], VOCABS[v] - 1);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_greedy_rows),  cmocka_unit_test(test_sampled_rows), cmocka_unit_test(test_beam_rows),
        cmocka_unit_test(test_close_logits), cmocka_unit_test(test_empty_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
