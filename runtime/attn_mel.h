/* The log-mel spectrogram that Whisper reads (Radford et al. 2022, arXiv:2212.04356, section 2.2): sound at 16 kHz in,
 * an array [bins][frames] out. C11, and C++17 for this header; needs libm, allocates nothing and has no state. */
#ifndef ATTN_MEL_H
#define ATTN_MEL_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    ATTN_MEL_RATE = 16000, /* samples a second */
    ATTN_MEL_HOP = 160,    /* samples from frame to frame: 100 frames a second */
    ATTN_MEL_MOST_BINS = 512
};

/* Statuses of attn_mel, of which attn_mel_status_text tells in words. */
enum { ATTN_MEL_FINE, ATTN_MEL_ARGUMENT, ATTN_MEL_MEMORY, ATTN_MEL_SAMPLE };

/* The bytes of memory that attn_mel needs; 0 for a number of bins that is not 1 to ATTN_MEL_MOST_BINS. */
size_t attn_mel_bytes(int bins);

/* Writes mel [bins][frames]. `samples` are `count` numbers of -1 to 1; silence stands in place of missing ones
 * up to frames * ATTN_MEL_HOP. If the samples go less than a hop beyond that, the last frame reads all of them, as in
 * Whisper. If they go further, the function reads frames * ATTN_MEL_HOP samples. Let x be the samples that it reads,
 * reflected at both ends. Then
 *
 *     power[t][k] = |sum over j < 400 of hann(j) * x[160*t + j - 200] * e^(-2 pi i j k / 400)|^2 for each k <= 200
 *     hann(j)     = 0.5 - 0.5 cos(2 pi j / 400)
 *     energy[b]   = sum over k of power[t][k] * triangle_b(40 k), a triangle over three of bins + 2 frequencies that
 *                   are equally far apart on the mel scale of 0 to 8000 Hz, of area 1 (Slaney's scale, which is linear
 *                   below 1000 Hz)
 *     level[b][t] = log10(max(energy, 1e-10)); levels that are more than 8 below the largest one are raised to that
 *     mel[b][t]   = (level[b][t] + 4) / 4
 *
 * `memory` is aligned for double. The status is ATTN_MEL_MEMORY where `bytes` is less than attn_mel_bytes, and
 * ATTN_MEL_ARGUMENT where an array is NULL, where bins is beyond its bounds, or where frames is less than 2. It is
 * ATTN_MEL_SAMPLE where a sample that is read is NaN or infinite; no number is written then. */
int attn_mel(const float *samples, size_t count, int bins, int frames, float *mel, void *memory, size_t bytes);

/* The index of the first of `count` samples that is NaN or infinite, or `count`. */
size_t attn_mel_first_odd(const float *samples, size_t count);

const char *attn_mel_status_text(int status);

#ifdef __cplusplus
}
#endif

#endif
