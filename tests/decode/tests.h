/* tests.h: four generated models behind one table, so that what all of them promise is tried on each. */
#ifndef TESTS_H
#define TESTS_H

#include <stddef.h>
#include <stdint.h>

/* Statuses by the names that they have in every header; models.c asserts that the numbers are these. */
enum {
    OK, BAD_ARGUMENT, BAD_WEIGHTS, NO_TARGET, SHORT_WORKSPACE, BAD_LENGTH, BAD_TOKEN, BAD_STATE, TOO_FAR, START_AGAIN
};

/* What a call gets NULL for. */
enum { NOTHING, THE_CTX, THE_INPUT, THE_OUTPUT, THE_WORKSPACE, THE_STATES, THE_TOKENS, THE_LENGTHS };

/* Arguments of decode, and of encode: there `states` are the sources and `hidden` is encoder_hidden. */
typedef struct Call {
    const void *ctx;
    int batch;
    void *const *states;
    const int32_t *lengths, *tokens, *prefix_lengths;
    float *hidden, *logits, *attention, *cross_attention;
    void *workspace;
    size_t bytes;
    int without;                 /* THE_… */
    int input_size, output_size; /* added to the right ones */
} Call;

typedef void ParallelFor(void *pool, int count, void (*task)(void *with, int index), void *with);

typedef struct Model {
    const char *name;
    size_t ctx_bytes, weights_bytes, state_bytes, source_bytes; /* source_bytes 0: no encoder */
    int seq, source_seq, rewind, vocab, width;
    int self_maps, cross_maps;  /* exported heads */
    int has_prefix;
    size_t (*workspace)(int threads), (*encode_workspace)(int threads);
    int (*init)(void *ctx, const void *weights, size_t bytes, const char *target, int threads,
                ParallelFor *parallel_for, void *pool, size_t least_work, int options_size, int verify);
    int (*state_init)(void *state, size_t bytes, const void *source);
    int (*copy)(void *to, const void *from);
    int (*rewind_to)(void *state, int rows);
    int (*rows)(const void *state);
    int (*decode)(const Call *call);
    int (*encode)(const Call *call);
    int (*prefill)(const void *ctx, void *state, const int32_t *tokens, int count, float *logits, void *workspace,
                   size_t bytes);
    int (*step)(const void *ctx, void *const *states, const int32_t *tokens, int count, float *logits, void *workspace,
                size_t bytes);
    const char *(*text)(int status);
} Model;

enum { MODELS = 4, RING = 0, PAIR, PREFIXED, LONGROPE, MOST_SEQ = 600, MOST_VOCAB = 64, MOST_WIDTH = 32 };
extern const Model models[MODELS];

/* A model made ready: its weights, a ctx of one thread, a workspace of the size that the header says. */
typedef struct Setup {
    const Model *model;
    void *weights, *ctx, *workspace;
    void *sources[2];             /* encoded; NULL: no encoder */
    int32_t tokens[MOST_SEQ], others[MOST_SEQ];
} Setup;

extern Setup setups[MODELS];
extern const char *target;        /* that every ctx has */

/* main.c. Memory ends where its size says: the sanitizer sees what goes beyond. */
void *block(size_t bytes);        /* aligned as the headers ask, full of 0xff */
void *block_like(const void *memory, size_t bytes);
int verdict(const char *name);    /* one TAP line for the checks since the last one */
void failed(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));
void *new_state(const Setup *s);  /* made, without rows */
Call new_call(const Setup *s, void *const *states, int batch, const int32_t *tokens);
/* Appends rows to a state in one call; hidden [rows][width] and logits [vocab] may be NULL. */
int append(const Setup *s, void *state, const int32_t *tokens, int rows, float *hidden, float *logits);

#define CHECK(condition, ...) ((condition) ? (void)0 : failed(__FILE__, __LINE__, __VA_ARGS__))

void test_statuses(void); /* statuses.c */
void test_ways(void);     /* ways.c */
void test_together(void); /* together.c */
void print_hashes(void);

#endif
