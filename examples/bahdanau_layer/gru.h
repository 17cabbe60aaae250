/* The encoder and the decoder of Bahdanau et al. 2015, "Neural machine translation by jointly learning to align and
 * translate", in plain C: everything of appendix A but the alignment model, whose context comes from outside. */
#ifndef GRU_H
#define GRU_H

enum {
    GRU_SYMBOLS = 12, /* the ten digits and two languages */
    GRU_WORDS = 66,
    GRU_EMBEDDED = 16,              /* E x_j, E y_i */
    GRU_CELLS = 32,                 /* of the encoder, in each direction */
    GRU_ANNOTATION = 2 * GRU_CELLS, /* h_j, and so the context c_i */
    GRU_STATE = 64,                 /* s_i */
    GRU_MAXOUT = 32,                /* t_i */
    GRU_OUTSIDE = GRU_EMBEDDED + GRU_ANNOTATION /* E y_(i-1) and c_i, what comes to the decoder from outside */
};

/* The weights, in the order of the file. Matrices over the same input stand below each other: the rows of `inputs` are
 * those of z, r and the candidate (in the paper W_z, W_r, W and in the decoder beside each C_z, C_r, C), those of
 * `gates` U_z and U_r, `candidate` is U. There are biases, which the paper leaves out of its formulas. */
typedef struct GruEncoder {
    float inputs[3 * GRU_CELLS][GRU_EMBEDDED], bias[3 * GRU_CELLS];
    float gates[2 * GRU_CELLS][GRU_CELLS], candidate[GRU_CELLS][GRU_CELLS];
} GruEncoder;

typedef struct GruDecoder {
    float inputs[3 * GRU_STATE][GRU_OUTSIDE], bias[3 * GRU_STATE];
    float gates[2 * GRU_STATE][GRU_STATE], candidate[GRU_STATE][GRU_STATE];
} GruDecoder;

typedef struct Gru {
    float source[GRU_SYMBOLS][GRU_EMBEDDED], target[GRU_WORDS][GRU_EMBEDDED]; /* E of either side */
    GruEncoder forwards, backwards;
    float first[GRU_STATE][GRU_CELLS], first_bias[GRU_STATE]; /* W_s */
    GruDecoder decoder;
    float maxout[2 * GRU_MAXOUT][GRU_STATE + GRU_OUTSIDE], maxout_bias[2 * GRU_MAXOUT]; /* U_o, V_o, C_o in a row */
    float logits[GRU_WORDS][GRU_MAXOUT]; /* W_o */
} Gru;

/* Reads the file that train.py writes. NULL, or a sentence that says why not; then *gru is not to be used. */
const char *gru_read(Gru *gru, const char *path);

/* A.2.1: the annotations of `length` symbols below GRU_SYMBOLS, and s_0 of A.2.2. */
void gru_encode(const Gru *gru, const int *symbols, int length, float annotations[][GRU_ANNOTATION],
                float state[GRU_STATE]);

/* A.2.2: how likely each word is next, as logits, of s_(i-1), the word before and the context c_i. */
void gru_score(const Gru *gru, const float state[GRU_STATE], int word, const float context[GRU_ANNOTATION],
               float logits[GRU_WORDS]);

/* A.2.2: s_i in place of s_(i-1), of the word before and the context c_i. */
void gru_advance(const Gru *gru, float state[GRU_STATE], int word, const float context[GRU_ANNOTATION]);

#endif
