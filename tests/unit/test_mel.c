/* test_mel.c: runtime/attn_mel.c against the formulas of its header, summed term by term, and against numbers of
 * another program. */
#include "../../runtime/attn_mel.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>

enum { WINDOW = 400, POWERS = WINDOW / 2 + 1 };

static const double PI = 3.14159265358979323846;

static float *noise(size_t count) {
    float *x = malloc(count * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < count; i++) x[i] = (float)(i * 7919 % 1000) / 1000 - 0.5F;
    return x;
}

static int mel_of(const float *x, size_t count, int bins, int frames, float *mel) {
    const size_t bytes = attn_mel_bytes(bins);
    void *memory = malloc(bytes);
    assert_non_null(memory);
    const int status = attn_mel(x, count, bins, frames, mel, memory, bytes);
    free(memory);
    return status;
}

static double hertz_of(double mel) { return mel < 15 ? mel * 200 / 3 : 1000 * pow(6.4, (mel - 15) / 27); }

/* The sample behind a reflection at both ends. */
static double reflected(const float *x, int count, int length, int i) {
    const int at = i < 0 ? -i : i >= length ? 2 * length - 2 - i : i;
    return at < count ? (double)x[at] : 0;
}

static double energy_of(const float *x, int count, int frames, int bins, int b, int t) {
    const double step = (15 + 27 * log(8) / log(6.4)) / (bins + 1);
    const double low = hertz_of(b * step), middle = hertz_of((b + 1) * step), high = hertz_of((b + 2) * step);
    double energy = 0;
    for (int k = 0; k < POWERS; k++) {
        const double f = 40.0 * k, height = f < middle ? (f - low) / (middle - low) : (high - f) / (high - middle);
        double re = 0, im = 0;
        for (int j = 0; j < WINDOW && height > 0; j++) {
            const double angle = 2 * PI * j / WINDOW;
            const double hann = 0.5 - 0.5 * cos(angle);
            const double y = hann * reflected(x, count, frames * ATTN_MEL_HOP, ATTN_MEL_HOP * t + j - WINDOW / 2);
            re += y * cos(angle * k);
            im += y * sin(angle * k);
        }
        if (height > 0) energy += (re * re + im * im) * height * 2 / (high - low);
    }
    return energy;
}

/* The last frames are silent, and so 8 below the loudest one. */
static void formulas(void **state) {
    (void)state;
    enum { BINS = 7, FRAMES = 9, COUNT = 900 };
    float *x = noise(COUNT), mel[BINS * FRAMES];
    double levels[BINS * FRAMES], loudest = -10;
    assert_int_equal(mel_of(x, COUNT, BINS, FRAMES, mel), ATTN_MEL_FINE);
    for (int b = 0; b < BINS; b++)
        for (int t = 0; t < FRAMES; t++) {
            levels[b * FRAMES + t] = log10(fmax(energy_of(x, COUNT, FRAMES, BINS, b, t), 1e-10));
            loudest = fmax(loudest, levels[b * FRAMES + t]);
        }
    for (int i = 0; i < BINS * FRAMES; i++)
        assert_true(fabs((double)mel[i] - (fmax(levels[i], loudest - 8) + 4) / 4) < 1e-6);
    assert_true(fabs((double)mel[BINS * FRAMES - 1] - (loudest - 4) / 4) < 1e-6);
    free(x);
}

/* WhisperFeatureExtractor of transformers 5.24 for the same 2.5 seconds, in f32. */
static void another_program(void **state) {
    (void)state;
    enum { BINS = 80, FRAMES = 3000, COUNT = 40000 };
    static const struct { int b, t; double mel; } rows[] = {
        {0, 0, 0.3061029314994812},      {3, 7, 0.14463812112808228},   {40, 100, 0.7410727143287659},
        {79, 249, 0.761998176574707},    {20, 250, 0.7251393795013428}, {60, 2999, -0.6956503391265869},
    };
    float *x = noise(COUNT), *mel = malloc(sizeof *mel * BINS * FRAMES);
    assert_non_null(mel);
    assert_int_equal(mel_of(x, COUNT, BINS, FRAMES, mel), ATTN_MEL_FINE);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_true(fabs((double)mel[rows[i].b * FRAMES + rows[i].t] - rows[i].mel) < 2e-5);
    free(mel);
    free(x);
}

/* WhisperFeatureExtractor of transformers 5.23 for sounds of more than 30 seconds, as long as they are: the last frame
 * reads the samples after its hop. It does not read samples that a hop or more follows. */
static void tails(void **state) {
    (void)state;
    enum { BINS = 80, MOST = 3125 };
    static const struct { size_t count; int frames; double mel[3]; } sounds[] = {
        {480000, 3000, {0.5231021642684937, 0.8238335847854614, 0.761981725692749}},
        {480100, 3000, {0.5306792855262756, 0.8189736604690552, 0.762260913848877}},
        {480159, 3000, {0.5306792855262756, 0.8189736604690552, 0.762260913848877}},
        {480160, 3001, {0.6077964305877686, 0.7353802919387817, 0.7685670256614685}},
        {500077, 3125, {0.5306792855262756, 0.8189736604690552, 0.762260913848877}},
        {500077, 3000, {0.5231021642684937, 0.8238335847854614, 0.761981725692749}},
    };
    float *x = noise(500077), *mel = malloc(sizeof *mel * BINS * MOST);
    assert_non_null(mel);
    for (size_t i = 0; i < sizeof sounds / sizeof *sounds; i++) {
        const int frames = sounds[i].frames, bins[] = {0, 40, 79};
        assert_int_equal(mel_of(x, sounds[i].count, BINS, frames, mel), ATTN_MEL_FINE);
        for (int b = 0; b < 3; b++)
            assert_true(fabs((double)mel[(bins[b] + 1) * frames - 1] - sounds[i].mel[b]) < 2e-5);
    }
    free(mel);
    free(x);
}

static void odd_samples(void **state) {
    (void)state;
    float x[700] = {0}, mel[8];
    assert_int_equal(attn_mel_first_odd(x, 700), 700);
    for (int i = 0; i < 3; i++) {
        const float odd[] = {NAN, INFINITY, -INFINITY};
        x[319] = odd[i];
        mel[0] = 7;
        assert_int_equal(mel_of(x, 320, 4, 2, mel), ATTN_MEL_SAMPLE);
        assert_true(mel[0] == 7);
        assert_int_equal(mel_of(x, 319, 4, 2, mel), ATTN_MEL_FINE);
        assert_int_equal(attn_mel_first_odd(x, 700), 319);
    }
    x[319] = 0, x[340] = NAN; /* in the tail of the last frame, and after the last frame */
    assert_int_equal(mel_of(x, 341, 4, 2, mel), ATTN_MEL_SAMPLE);
    assert_int_equal(mel_of(x, 700, 4, 2, mel), ATTN_MEL_FINE);
    assert_string_equal(attn_mel_status_text(ATTN_MEL_SAMPLE), "a sample is NaN or infinite");
}

static void refusals(void **state) {
    (void)state;
    float x[1] = {0}, mel[8];
    assert_int_equal(attn_mel_bytes(0), 0);
    assert_int_equal(attn_mel_bytes(ATTN_MEL_MOST_BINS + 1), 0);
    assert_int_equal(mel_of(x, 1, 4, 2, mel), ATTN_MEL_FINE);
    assert_int_equal(mel_of(NULL, 0, 4, 2, mel), ATTN_MEL_FINE); /* silence */
    assert_int_equal(mel_of(NULL, 1, 4, 2, mel), ATTN_MEL_ARGUMENT);
    assert_int_equal(mel_of(x, 1, 4, 1, mel), ATTN_MEL_ARGUMENT);
    assert_int_equal(mel_of(x, 1, 4, 2, NULL), ATTN_MEL_ARGUMENT);
    double memory[1];
    assert_int_equal(attn_mel(x, 1, 4, 2, mel, memory, sizeof memory), ATTN_MEL_MEMORY);
    assert_string_equal(attn_mel_status_text(ATTN_MEL_MEMORY), "the memory is too small");
    assert_string_equal(attn_mel_status_text(-1), "unknown status");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formulas),
        cmocka_unit_test(another_program),
        cmocka_unit_test(tails),
        cmocka_unit_test(odd_samples),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
