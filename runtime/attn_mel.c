/* See attn_mel.h. */
#include "attn_mel.h"

#include <math.h>

enum { WINDOW = 400, SIDE = 20, POWERS = WINDOW / 2 + 1 }; /* SIDE * SIDE is WINDOW */

static const double PI = 3.14159265358979323846;

/* What a call keeps in its memory. */
typedef struct Mel {
    double *cosine, *sine, *hann; /* [WINDOW] */
    double *frame;                /* [WINDOW] the samples times the window */
    double *real, *imaginary;     /* [SIDE][SIDE] sums of the first stage */
    double *power;                /* [POWERS] */
    double *filters;              /* [bins][POWERS] */
} Mel;

enum { FIXED = 4 * WINDOW + 2 * SIDE * SIDE + POWERS };

size_t attn_mel_bytes(int bins) {
    if (bins < 1 || bins > ATTN_MEL_MOST_BINS) return 0;
    return ((size_t)FIXED + (size_t)bins * POWERS) * sizeof(double);
}

const char *attn_mel_status_text(int status) {
    static const char *const texts[] = {"fine", "an argument is out of its bounds", "the memory is too small",
                                        "a sample is NaN or infinite"};
    return status >= 0 && status <= ATTN_MEL_SAMPLE ? texts[status] : "unknown status";
}

/* Slaney's mel scale: 15 mels up to 1000 Hz, then 27 for each factor of 6.4. */
static double mel_of(double hertz) { return hertz < 1000 ? hertz * 3 / 200 : 15 + log(hertz / 1000) * 27 / log(6.4); }
static double hertz_of(double mel) { return mel < 15 ? mel * 200 / 3 : 1000 * exp((mel - 15) * log(6.4) / 27); }

static void fill_filters(double *filters, int bins) {
    const double highest = ATTN_MEL_RATE / 2.0, step = mel_of(highest) / (bins + 1);
    for (int b = 0; b < bins; b++) {
        const double low = hertz_of(step * b), middle = hertz_of(step * (b + 1)), high = hertz_of(step * (b + 2));
        for (int k = 0; k < POWERS; k++) {
            const double f = highest * k / (POWERS - 1);
            const double rise = (f - low) / (middle - low), fall = (high - f) / (high - middle);
            const double height = fmin(rise, fall);
            filters[b * POWERS + k] = height > 0 ? height * 2 / (high - low) : 0;
        }
    }
}

static Mel mel_new(void *memory, int bins) {
    double *at = memory;
    Mel m = {.cosine = at};
    m.sine = m.cosine + WINDOW;
    m.hann = m.sine + WINDOW;
    m.frame = m.hann + WINDOW;
    m.real = m.frame + WINDOW;
    m.imaginary = m.real + SIDE * SIDE;
    m.power = m.imaginary + SIDE * SIDE;
    m.filters = m.power + POWERS;
    for (int j = 0; j < WINDOW; j++) {
        m.cosine[j] = cos(2 * PI * j / WINDOW);
        m.sine[j] = sin(2 * PI * j / WINDOW);
        m.hann[j] = 0.5 - 0.5 * m.cosine[j];
    }
    fill_filters(m.filters, bins);
    return m;
}

/* Sample i of `length`, of which `count` are given and the others silent; i may be up to half a window outside. */
static double sample_at(const float *samples, size_t count, ptrdiff_t length, ptrdiff_t i) {
    if (i < 0) i = -i;
    if (i >= length) i = 2 * (length - 1) - i;
    return (size_t)i < count ? (double)samples[i] : 0;
}

/* The powers of the frame by two stages of SIDE sums of SIDE terms (Cooley and Tukey 1965): with j = SIDE * j1 + j2 and
 * k = k1 + SIDE * k2, the sums over j1 serve all k2. */
static void fill_powers(const Mel *m) {
    for (int j2 = 0; j2 < SIDE; j2++)
        for (int k1 = 0; k1 < SIDE; k1++) {
            double real = 0, imaginary = 0;
            for (int j1 = 0; j1 < SIDE; j1++) {
                const double x = m->frame[SIDE * j1 + j2];
                const int angle = j1 * k1 % SIDE * SIDE;
                real += x * m->cosine[angle];
                imaginary -= x * m->sine[angle];
            }
            const double c = m->cosine[j2 * k1], s = m->sine[j2 * k1];
            m->real[k1 * SIDE + j2] = real * c + imaginary * s;
            m->imaginary[k1 * SIDE + j2] = imaginary * c - real * s;
        }
    for (int k = 0; k < POWERS; k++) {
        const double *re = m->real + k % SIDE * SIDE, *im = m->imaginary + k % SIDE * SIDE;
        double real = 0, imaginary = 0;
        for (int j2 = 0; j2 < SIDE; j2++) {
            const int angle = j2 * (k / SIDE) % SIDE * SIDE;
            real += re[j2] * m->cosine[angle] + im[j2] * m->sine[angle];
            imaginary += im[j2] * m->cosine[angle] - re[j2] * m->sine[angle];
        }
        m->power[k] = real * real + imaginary * imaginary;
    }
}

size_t attn_mel_first_odd(const float *samples, size_t count) {
    size_t i = 0;
    while (i < count && isfinite(samples[i])) i++;
    return i;
}

int attn_mel(const float *samples, size_t count, int bins, int frames, float *mel, void *memory, size_t bytes) {
    const size_t needed = attn_mel_bytes(bins);
    if (!needed || (!samples && count) || !mel || !memory || frames < 2) return ATTN_MEL_ARGUMENT;
    if (bytes < needed) return ATTN_MEL_MEMORY;
    const size_t whole = (size_t)frames * ATTN_MEL_HOP;
    const size_t all = count > whole && count - whole < ATTN_MEL_HOP ? count : whole;
    const size_t given = count < all ? count : all;
    if (attn_mel_first_odd(samples, given) < given) return ATTN_MEL_SAMPLE;
    const Mel m = mel_new(memory, bins);
    const ptrdiff_t length = (ptrdiff_t)all;
    float loudest = -10;
    for (int t = 0; t < frames; t++) {
        for (int j = 0; j < WINDOW; j++)
            m.frame[j] = m.hann[j] *
                         sample_at(samples, count, length, (ptrdiff_t)t * ATTN_MEL_HOP + j - WINDOW / 2);
        fill_powers(&m);
        for (int b = 0; b < bins; b++) {
            double energy = 0;
            for (int k = 0; k < POWERS; k++) energy += m.power[k] * m.filters[b * POWERS + k];
            const float level = (float)log10(energy > 1e-10 ? energy : 1e-10);
            mel[(size_t)b * (size_t)frames + (size_t)t] = level;
            if (level > loudest) loudest = level;
        }
    }
    for (size_t i = 0; i < (size_t)bins * (size_t)frames; i++) {
        const float level = mel[i] > loudest - 8 ? mel[i] : loudest - 8;
        mel[i] = (level + 4) / 4;
    }
    return ATTN_MEL_FINE;
}
