/* test_transcribe.c: runtime/attn_transcribe.c with a model whose logits a test sets: which tokens its rules let
 * through, where segments and windows begin and end, and what it refuses. tests/get compares it with transformers. */
#include "../../runtime/attn_transcribe.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { START = 6, END, EN, FR, TASK, NO_TIMES, TIME, VOCAB = TIME + 9, BINS = 2, FRAMES = 16, BOUND = 12 };

/* A model that wants a script of tokens, each by 1 more than any other; what it was given is kept. */
typedef struct Fake {
    const int32_t *script;
    int at, fails_at;
    int32_t second;          /* a token with half a point; -1: none */
    float times;             /* points of every time */
    float windows[4][BINS * FRAMES];
    int n_windows, rewinds;
    int32_t prompts[4][4];
    int prompt_sizes[4];
    float told[8][2];
    int32_t words[8][BOUND];
    int counts[8], n_told, stops_at;
} Fake;

static int answer(Fake *f, float *logits) {
    if (f->fails_at && f->at + 1 >= f->fails_at) return 42;
    for (int i = 0; i < VOCAB; i++) logits[i] = i >= TIME ? f->times : 0;
    if (f->second >= 0) logits[f->second] = 0.5F;
    if (f->script[f->at] >= 0) logits[f->script[f->at++]] = 1;
    return 0;
}

static int prefill(void *with, int slot, const int32_t *tokens, int count, float *logits) {
    Fake *f = with;
    assert_int_equal(slot, 0);
    if (count > 1) {
        const int window = f->n_windows - 1;
        assert_true(count <= 4);
        memcpy(f->prompts[window], tokens, (size_t)count * sizeof *tokens);
        f->prompt_sizes[window] = count;
    }
    return answer(f, logits);
}

static int step(void *with, int count, const int *slots, const int32_t *tokens, float *logits) {
    (void)slots, (void)tokens;
    assert_int_equal(count, 1);
    return answer(with, logits);
}

static int open_window(void *with, const float *mel) {
    Fake *f = with;
    memcpy(f->windows[f->n_windows++], mel, sizeof *f->windows);
    return f->fails_at == 1 ? 41 : 0;
}

static int rewind_state(void *with) {
    ((Fake *)with)->rewinds++;
    return 0;
}

static int keep(void *with, const attn_segment *segment) {
    Fake *f = with;
    const int i = f->n_told++;
    f->told[i][0] = (float)segment->begin;
    f->told[i][1] = (float)segment->end;
    f->counts[i] = segment->count;
    memcpy(f->words[i], segment->tokens, (size_t)segment->count * sizeof *segment->tokens);
    return f->stops_at == f->n_told;
}

static const int32_t languages[] = {FR, EN};

static attn_speech speech_of(Fake *f, const attn_speech_tokens *tokens) {
    const attn_model decoder = {sizeof decoder, VOCAB, BOUND, f, prefill, step, NULL};
    return (attn_speech){sizeof(attn_speech), BINS, FRAMES, 2, decoder, tokens, f, open_window, rewind_state};
}

static attn_speech_tokens usual(void) {
    return (attn_speech_tokens){.start = START, .end = END, .no_times = NO_TIMES, .latest_first = -1};
}

static attn_transcribe_options options_of(Fake *f) {
    return (attn_transcribe_options){sizeof(attn_transcribe_options), EN, TASK, 1, keep, f, NULL};
}

static float spectrogram[BINS * 3 * FRAMES];

/* Transcribes so many frames; the memory ends where it says that it ends. */
static int transcribe(Fake *f, const attn_speech_tokens *tokens, const attn_transcribe_options *options, int frames) {
    const attn_speech speech = speech_of(f, tokens);
    attn_transcribed result = {.size = sizeof result};
    const size_t bytes = attn_transcribe_bytes(&speech);
    void *memory = malloc(bytes ? bytes : 1);
    for (int i = 0; i < BINS * frames; i++) spectrogram[i] = (float)(i + 1);
    const int status = attn_transcribe(&speech, options, spectrogram, frames, &result, memory, bytes);
    free(memory);
    if (status == ATTN_TRANSCRIBE_MODEL) return 1000 + result.model_status;
    if (status == ATTN_TRANSCRIBE_OK) assert_int_equal(result.segments, f->n_told);
    return status;
}

static void expect_told(const Fake *f, int i, double begin, double end, int count, const int32_t *words) {
    assert_true(i < f->n_told);
    assert_float_equal(f->told[i][0], begin, 1e-6);
    assert_float_equal(f->told[i][1], end, 1e-6);
    assert_int_equal(f->counts[i], count);
    assert_memory_equal(f->words[i], words, (size_t)count * sizeof *words);
}

/* Two segments in a window that a single time ends, and the prompt. */
static void test_segments(void **state) {
    (void)state;
    const int32_t script[] = {TIME, 1, 2, TIME + 3, TIME + 4, 3, TIME + 6, END};
    Fake f = {.script = script, .second = -1, .times = -4};
    const attn_speech_tokens tokens = usual();
    const attn_transcribe_options options = options_of(&f);
    assert_int_equal(transcribe(&f, &tokens, &options, FRAMES), ATTN_TRANSCRIBE_OK);
    assert_int_equal(f.n_told, 2);
    expect_told(&f, 0, 0, 0.06, 2, (const int32_t[]){1, 2});
    expect_told(&f, 1, 0.08, 0.12, 1, (const int32_t[]){3});
    assert_int_equal(f.prompt_sizes[0], 3);
    assert_memory_equal(f.prompts[0], ((const int32_t[]){START, EN, TASK}), 3 * sizeof(int32_t));
}

/* A pair of times ends a window: the next one begins there, and the end of the sound is followed by zeros. */
static void test_windows(void **state) {
    (void)state;
    const int32_t script[] = {TIME, 1, TIME + 5, TIME + 5, 2, END, TIME + 1, 3, TIME + 4, END};
    Fake f = {.script = script, .second = -1, .times = -4};
    const attn_speech_tokens tokens = usual();
    attn_transcribe_options options = options_of(&f);
    options.times = 0; /* a sound of several windows has times all the same */
    assert_int_equal(transcribe(&f, &tokens, &options, FRAMES + 3), ATTN_TRANSCRIBE_OK);
    assert_int_equal(f.n_windows, 2);
    assert_int_equal(f.n_told, 2);
    expect_told(&f, 0, 0, 0.1, 1, (const int32_t[]){1});
    expect_told(&f, 1, 0.1 , 0.1 + 0.08, 1, (const int32_t[]){3});
    for (int bin = 0; bin < BINS; bin++)
        for (int i = 0; i < FRAMES; i++)
            assert_int_equal((int)f.windows[1][bin * FRAMES + i], i < 9 ? bin * (FRAMES + 3) + 10 + i + 1 : 0);
}

/* Without wanted times a window is one segment, and the prompt says so. */
static void test_no_times(void **state) {
    (void)state;
    const int32_t script[] = {1, 2, END};
    Fake f = {.script = script, .second = -1, .times = -4};
    attn_speech_tokens tokens = usual();
    attn_transcribe_options options = options_of(&f);
    options.times = 0;
    options.task = -1;
    assert_int_equal(transcribe(&f, &tokens, &options, FRAMES), ATTN_TRANSCRIBE_OK);
    expect_told(&f, 0, 0, 0.16, 2, (const int32_t[]){1, 2});
    assert_memory_equal(f.prompts[0], ((const int32_t[]){START, EN, NO_TIMES}), 3 * sizeof(int32_t));
    const int32_t two[] = {1, END, 2, END};
    Fake g = {.script = two, .second = -1, .times = -4};
    tokens.no_times = -1; /* a model without times goes from window to window */
    options = options_of(&g);
    assert_int_equal(transcribe(&g, &tokens, &options, FRAMES + 4), ATTN_TRANSCRIBE_OK);
    expect_told(&g, 1, 0.16, 0.2, 1, (const int32_t[]){2});
}

/* The language is that of the largest logit among the languages, of the first window. */
static void test_language(void **state) {
    (void)state;
    const int32_t script[] = {FR, 1, END};
    Fake f = {.script = script, .second = -1, .times = -4};
    attn_speech_tokens tokens = usual();
    tokens.languages = languages;
    tokens.language_count = 2;
    attn_transcribe_options options = options_of(&f);
    options.language = -1;
    options.times = 0;
    assert_int_equal(transcribe(&f, &tokens, &options, FRAMES), ATTN_TRANSCRIBE_OK);
    assert_int_equal(f.rewinds, 1);
    assert_memory_equal(f.prompts[0], ((const int32_t[]){START, FR, TASK, NO_TIMES}), 4 * sizeof(int32_t));
}

/* The model wants a token that is forbidden where it stands; the next best one is chosen. */
static void test_rules(void **state) {
    (void)state;
    static const int32_t never[] = {4}, never_first[] = {TIME + 1};
    const struct {
        const char *what;
        int32_t wanted[7], second, told[2];
        int latest_first;
    } cases[] = {
        {"never", {TIME, 4, TIME + 2, END}, 5, {5, -1}, -1},
        {"first is a time", {1, 2, TIME + 3, END}, TIME, {2, -1}, -1},
        {"never first", {TIME + 1, 2, TIME + 3, END}, TIME, {2, -1}, -1},
        {"the latest first time", {TIME + 5, 2, TIME + 3, END}, TIME + 2, {2, -1}, 2},
        {"a word behind the first time", {TIME, TIME + 1, TIME + 3, END}, 5, {5, -1}, -1},
        {"no word behind a single time", {TIME, 1, TIME + 3, 2, 3, TIME + 5, END}, TIME + 3, {1, 3}, -1},
        {"no time before another", {TIME + 3, 1, TIME + 2, 2, TIME + 5, END}, 5, {1, 5}, -1},
        {"no times wanted", {TIME, NO_TIMES, TIME + 4, END}, 5, {5, -1}, -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Fake f = {.script = cases[i].wanted, .second = cases[i].second, .times = -4};
        attn_speech_tokens tokens = usual();
        tokens.latest_first = cases[i].latest_first;
        tokens.never = never, tokens.never_count = 1;
        tokens.never_first = never_first, tokens.never_first_count = 1;
        const attn_transcribe_options options = options_of(&f);
        assert_int_equal(transcribe(&f, &tokens, &options, 2), ATTN_TRANSCRIBE_OK);
        int32_t words[BOUND], count = 0;
        for (int s = 0; s < f.n_told; s++)
            for (int k = 0; k < f.counts[s]; k++) words[count++] = f.words[s][k];
        if (count < 1 || words[0] != cases[i].told[0] || (cases[i].told[1] >= 0 && words[1] != cases[i].told[1]))
            fail_msg("%s: %d words, the first is %d", cases[i].what, (int)count, (int)words[0]);
    }
}

/* All times together outweigh a word that is more probable than each of them. */
static void test_times_prevail(void **state) {
    (void)state;
    const int32_t script[] = {TIME, 1, 2, END};
    for (int prevail = 0; prevail < 2; prevail++) {
        Fake f = {.script = script, .second = -1, .times = prevail ? 0 : -4};
        const attn_speech_tokens tokens = usual();
        const attn_transcribe_options options = options_of(&f);
        assert_int_equal(transcribe(&f, &tokens, &options, 2), ATTN_TRANSCRIBE_OK);
        assert_int_equal(f.counts[0], prevail ? 1 : 2);
    }
}

/* What a fallback was told of a window. */
static attn_heard heard;

static void hear(void *with, const attn_heard *window) {
    (void)with;
    heard = *window;
}

/* A text whose first word is 1 repeats itself. */
static double repetitions(void *with, const int32_t *tokens, int count) {
    (void)with;
    assert_int_equal(count, 3); /* with the time and the end */
    return tokens[1] == 1 ? 3 : 1;
}

/* Transcribes one window, whose three attempts write 1, 2 and 3. `first` is the most probable token after START. */
static Fake fall_back(double least, double compression, double silence, int32_t first) {
    static const double temperatures[] = {0, 1e-9, 2e-9}; /* the most probable token even where a sample is drawn */
    const int32_t script[] = {first, TIME, 1, END, TIME, 2, END, TIME, 3, END};
    const attn_fallback fallback = {temperatures, 3, least, compression, silence, 7, NULL, repetitions, hear};
    Fake f = {.script = script, .second = -1, .times = -4};
    const attn_speech_tokens tokens = usual();
    attn_transcribe_options options = options_of(&f);
    options.fallback = &fallback;
    heard = (attn_heard){.attempts = -1};
    assert_int_equal(transcribe(&f, &tokens, &options, FRAMES), ATTN_TRANSCRIBE_OK);
    assert_int_equal(f.rewinds, heard.attempts); /* after the row of START, and before each further attempt */
    assert_true(heard.begin == 0 && fabs(heard.end - 0.16) < 1e-9);
    return f;
}

/* Which attempt is accepted, and what was measured of it. */
static void test_fallback(void **state) {
    (void)state;
    const double e = exp(1), t = exp(-4); /* weights of the wanted token and of a time */
    const double mean = (log(e / (e + 8 * t)) + log(e / (e + 10)) + log(e / (e + 10 + 8 * t))) / 3;
    const struct {
        double least, compression;
        int attempts;
    } cases[] = {{-INFINITY, INFINITY, 1}, {-INFINITY, 3, 1}, {-INFINITY, 2.99, 2}, {-INFINITY, 0.5, 3},
                 {mean - 1e-6, INFINITY, 1}, {mean + 1e-6, INFINITY, 3}, {mean - 1e-6, 2, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const Fake f = fall_back(cases[i].least, cases[i].compression, 1, 1);
        const int32_t word = heard.attempts;
        assert_int_equal(heard.attempts, cases[i].attempts);
        assert_true(heard.temperature == 1e-9 * (heard.attempts - 1) && !heard.silent);
        assert_true(fabs(heard.log_probability - mean) < 1e-9);
        assert_true(heard.compression == (word == 1 ? 3 : 1));
        assert_true(fabs(heard.no_speech - 1 / (e + 11 + 9 * t)) < 1e-9);
        expect_told(&f, 0, 0, 0.16, 1, &word);
    }
}

/* Silence is a window with that token and an improbable text; it is tried no second time. */
static void test_silence(void **state) {
    (void)state;
    const double e = exp(1), silence = e / (e + 11 + 9 * exp(-4)); /* where the token of silence is wanted */
    const struct {
        double least, compression, most;
        int silent, attempts;
    } cases[] = {{0, INFINITY, silence - 1e-6, 1, 1}, {0, 0.5, silence - 1e-6, 1, 1}, {0, 0.5, silence + 1e-6, 0, 3},
                 {-INFINITY, INFINITY, 0, 1, 1}, {-9, INFINITY, 0, 0, 1}, {-9, 2, 0, 0, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const Fake f = fall_back(cases[i].least, cases[i].compression, cases[i].most, NO_TIMES - 1);
        assert_int_equal(heard.silent, cases[i].silent);
        assert_int_equal(heard.attempts, cases[i].attempts);
        assert_int_equal(f.n_told, !cases[i].silent);
        assert_true(fabs(heard.no_speech - silence) < 1e-9);
    }
}

/* Fallbacks that are none, and options of the version without fallbacks. */
static void test_fallbacks_refused(void **state) {
    (void)state;
    const int32_t script[] = {TIME, 1, END};
    const attn_speech_tokens tokens = usual();
    for (int i = 0; i < 8; i++) {
        double temperature = i == 0 ? -1 : i == 1 ? INFINITY : i == 2 ? NAN : 0;
        attn_fallback fallback = {&temperature, i != 3, -1, 2, 0.5, 0, NULL, NULL, NULL};
        if (i == 4) fallback.temperatures = NULL;
        if (i == 5) fallback.least_log_probability = NAN;
        if (i == 6) fallback.most_compression = NAN;
        if (i == 7) fallback.most_no_speech = NAN;
        Fake f = {.script = script, .second = -1, .times = -4};
        attn_transcribe_options options = options_of(&f);
        options.fallback = &fallback;
        assert_int_equal(transcribe(&f, &tokens, &options, FRAMES), ATTN_TRANSCRIBE_BAD_ARGUMENT);
        options.size = offsetof(attn_transcribe_options, fallback);
        assert_int_equal(transcribe(&f, &tokens, &options, FRAMES), ATTN_TRANSCRIBE_OK);
    }
}

static void test_refuses(void **state) {
    (void)state;
    const int32_t script[] = {TIME, 1, END};
    Fake f = {.script = script, .second = -1, .times = -4};
    attn_speech_tokens tokens = usual();
    attn_transcribe_options options = options_of(&f);
    attn_speech speech = speech_of(&f, &tokens);
    attn_transcribed result = {.size = sizeof result};
    char memory[4096];
    const size_t bytes = attn_transcribe_bytes(&speech);
    assert_true(bytes > 0 && bytes < sizeof memory);
#define CALL attn_transcribe(&speech, &options, spectrogram, FRAMES, &result, memory, bytes)
    assert_int_equal(attn_transcribe(&speech, &options, spectrogram, FRAMES, &result, memory, bytes - 1),
                     ATTN_TRANSCRIBE_SHORT_MEMORY);
    assert_int_equal(attn_transcribe(&speech, &options, spectrogram, 0, &result, memory, bytes),
                     ATTN_TRANSCRIBE_BAD_ARGUMENT);
    assert_int_equal(attn_transcribe(&speech, &options, NULL, FRAMES, &result, memory, bytes),
                     ATTN_TRANSCRIBE_BAD_ARGUMENT);
    options.language = VOCAB;
    assert_int_equal(CALL, ATTN_TRANSCRIBE_BAD_TOKEN);
    options.language = EN;
    tokens.end = -1;
    assert_int_equal(CALL, ATTN_TRANSCRIBE_BAD_TOKEN);
    tokens = usual();
    tokens.never_count = 1;
    assert_int_equal(CALL, ATTN_TRANSCRIBE_BAD_ARGUMENT);
    assert_int_equal(attn_transcribe_bytes(&speech), 0);
    tokens = usual();
    speech.decoder.bound = 3;
    assert_int_equal(CALL, ATTN_TRANSCRIBE_TOO_LONG);
    speech = speech_of(&f, &tokens);
    speech.open = NULL;
    assert_int_equal(CALL, ATTN_TRANSCRIBE_BAD_ARGUMENT);
    assert_string_equal(attn_transcribe_status_text(ATTN_TRANSCRIBE_STOPPED), "the caller stopped the work");
    assert_string_equal(attn_transcribe_status_text(99), "unknown status");
}

static void test_failures(void **state) {
    (void)state;
    const int32_t script[] = {TIME, 1, TIME + 3, TIME + 3, 2, END};
    const attn_speech_tokens tokens = usual();
    for (int at = 1; at < 4; at++) {
        Fake f = {.script = script, .second = -1, .times = -4, .fails_at = at};
        const attn_transcribe_options options = options_of(&f);
        assert_int_equal(transcribe(&f, &tokens, &options, FRAMES), at == 1 ? 1041 : 1042);
    }
    Fake f = {.script = script, .second = -1, .times = -4, .stops_at = 1};
    const attn_transcribe_options options = options_of(&f);
    assert_int_equal(transcribe(&f, &tokens, &options, FRAMES), ATTN_TRANSCRIBE_STOPPED);
    assert_int_equal(f.n_told, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_segments), cmocka_unit_test(test_windows),       cmocka_unit_test(test_no_times),
        cmocka_unit_test(test_language), cmocka_unit_test(test_rules),         cmocka_unit_test(test_times_prevail),
        cmocka_unit_test(test_fallback), cmocka_unit_test(test_silence),       cmocka_unit_test(test_fallbacks_refused),
        cmocka_unit_test(test_refuses),  cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
