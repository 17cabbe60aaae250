#include "gru.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------- the file */

/* Before the floats of a Gru, as this machine keeps its numbers. */
typedef struct Header {
    char magic[8];
    uint32_t version, symbols, words, embedded, cells, state, maxout, checksum;
} Header;

/* Adler-32 (RFC 1950) */
static uint32_t checksum(const void *data, size_t bytes) {
    uint32_t a = 1, b = 0;
    for (size_t i = 0; i < bytes; i++) {
        a = (a + ((const unsigned char *)data)[i]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

static const char *read_all(Gru *gru, FILE *file) {
    static const Header expected = {{'G', 'R', 'U', 's', 'p', 'e', 'l', 'l'}, 1, GRU_SYMBOLS, GRU_WORDS, GRU_EMBEDDED,
                                    GRU_CELLS, GRU_STATE, GRU_MAXOUT, 0};
    Header header;
    if (fread(&header, sizeof header, 1, file) != 1) return ferror(file) ? strerror(errno) : "the file is too short";
    if (memcmp(header.magic, expected.magic, sizeof header.magic) != 0) return "this is no file of gru weights";
    uint32_t given = header.checksum;
    header.checksum = 0;
    if (memcmp(&header, &expected, sizeof header) != 0) return "the weights are of another model, version or machine";
    if (fread(gru, sizeof *gru, 1, file) != 1) return ferror(file) ? strerror(errno) : "the file is too short";
    if (getc(file) != EOF) return "the file is too long";
    return checksum(gru, sizeof *gru) == given ? NULL : "the file is damaged: its checksum is another";
}

const char *gru_read(Gru *gru, const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) return strerror(errno);
    const char *why = read_all(gru, file);
    fclose(file);
    return why;
}

/* ---------------------------------------------------------------- the unit */

/* out[rows] += weight[rows][columns] in[columns] */
static void add_product(float *out, const float *weight, const float *in, int rows, int columns) {
    for (int row = 0; row < rows; row++)
        for (int k = 0; k < columns; k++) out[row] += weight[row * columns + k] * in[k];
}

static float sigmoid(float x) {
    return 1 / (1 + expf(-x));
}

/* The gated hidden unit, A.1.1, of `cells` cells: s_i of state s_(i-1) and what comes from outside, x[inputs]. */
static void unit(float *state, int cells, const float *x, int inputs, const float *w, const float *bias,
                 const float *u_gates, const float *u) {
    float outside[3 * GRU_STATE], reset[GRU_STATE];
    float *z = outside, *r = z + cells, *candidate = r + cells;
    memcpy(outside, bias, 3 * (size_t)cells * sizeof *outside);
    add_product(outside, w, x, 3 * cells, inputs);
    add_product(outside, u_gates, state, 2 * cells, cells); /* z and r */
    for (int i = 0; i < cells; i++) reset[i] = sigmoid(r[i]) * state[i];
    add_product(candidate, u, reset, cells, cells);
    for (int i = 0; i < cells; i++) {
        float update = sigmoid(z[i]);
        state[i] = (1 - update) * state[i] + update * tanhf(candidate[i]);
    }
}

static void encoder_unit(const GruEncoder *e, float state[GRU_CELLS], const float *x) {
    unit(state, GRU_CELLS, x, GRU_EMBEDDED, e->inputs[0], e->bias, e->gates[0], e->candidate[0]);
}

/* ---------------------------------------------------------------- encoder and decoder */

void gru_encode(const Gru *gru, const int *symbols, int length, float annotations[][GRU_ANNOTATION],
                float state[GRU_STATE]) {
    float ahead[GRU_CELLS] = {0}, back[GRU_CELLS] = {0};
    for (int j = 0; j < length; j++) {
        encoder_unit(&gru->forwards, ahead, gru->source[symbols[j]]);
        memcpy(annotations[j], ahead, sizeof ahead);
    }
    for (int j = length - 1; j >= 0; j--) {
        encoder_unit(&gru->backwards, back, gru->source[symbols[j]]);
        memcpy(annotations[j] + GRU_CELLS, back, sizeof back);
    }
    memcpy(state, gru->first_bias, sizeof gru->first_bias); /* s_0 = tanh(W_s h_1), of the reader backwards */
    add_product(state, gru->first[0], back, GRU_STATE, GRU_CELLS);
    for (int i = 0; i < GRU_STATE; i++) state[i] = tanhf(state[i]);
}

void gru_score(const Gru *gru, const float state[GRU_STATE], int word, const float context[GRU_ANNOTATION],
               float logits[GRU_WORDS]) {
    float seen[GRU_STATE + GRU_OUTSIDE], pairs[2 * GRU_MAXOUT], t[GRU_MAXOUT];
    memcpy(seen, state, GRU_STATE * sizeof *seen);
    memcpy(seen + GRU_STATE, gru->target[word], sizeof gru->target[word]);
    memcpy(seen + GRU_STATE + GRU_EMBEDDED, context, GRU_ANNOTATION * sizeof *seen);
    memcpy(pairs, gru->maxout_bias, sizeof pairs);
    add_product(pairs, gru->maxout[0], seen, 2 * GRU_MAXOUT, GRU_STATE + GRU_OUTSIDE);
    for (int i = 0; i < GRU_MAXOUT; i++) t[i] = fmaxf(pairs[2 * i], pairs[2 * i + 1]);
    memset(logits, 0, GRU_WORDS * sizeof *logits);
    add_product(logits, gru->logits[0], t, GRU_WORDS, GRU_MAXOUT);
}

void gru_advance(const Gru *gru, float state[GRU_STATE], int word, const float context[GRU_ANNOTATION]) {
    const GruDecoder *d = &gru->decoder;
    float outside[GRU_OUTSIDE];
    memcpy(outside, gru->target[word], sizeof gru->target[word]);
    memcpy(outside + GRU_EMBEDDED, context, GRU_ANNOTATION * sizeof *outside);
    unit(state, GRU_STATE, outside, GRU_OUTSIDE, d->inputs[0], d->bias, d->gates[0], d->candidate[0]);
}
