/* A model for the tests of attn_generate, and what they share. */
#ifndef FAKE_MODEL_H
#define FAKE_MODEL_H

#include "../../runtime/attn_generate.h"

#define LENGTH(array) ((int)(sizeof(array) / sizeof *(array)))

enum { MAX_NEW = 16, MAX_SLOTS = 256, MAX_VOCAB = 32, ROOM = 1 << 16, PROMPT_COUNT = 3 };

/* A model whose state is the very tokens it was fed, and that fails the test when it is called wrongly. */
typedef struct Fake {
    int vocab, bound, slots;
    const float *table;  /* [vocab][vocab] logits after each last token; NULL: a hash of the whole history */
    const float *row;    /* [vocab] logits whatever came before; NULL: see table */
    uint64_t salt;       /* of the hash */
    int32_t *history;    /* [slots][bound] */
    int held[MAX_SLOTS]; /* tokens in each */
    int calls, fail_at;  /* callback number fail_at, from 0, fails with FAILED + fail_at; -1: none does */
    int prefills, steps, copies;
    uint64_t fed[MAX_NEW]; /* by step: the sum of the hashes of all histories it fed, over their new tokens */
    int prompt_count;      /* where new tokens begin */
} Fake;

enum { FAILED = 100 };

extern const int32_t PROMPT[PROMPT_COUNT]; /* 0, 1, 0 */

/* Empty states; they share one memory with those of every other Fake. */
Fake fake_of(int vocab, int bound, int slots);
uint64_t hash_tokens(uint64_t salt, const int32_t *tokens, int count);
/* The row that follows these tokens. */
void fake_logits(const Fake *fake, const int32_t *tokens, int count, float *logits);
attn_model model_of(Fake *fake);
attn_generate_options options_of(int max_new);

/* Generates with just the memory asked for, at an odd address, so that a sanitizer sees a byte beyond it. */
int generate(const attn_model *model, const attn_generate_options *options, const int32_t *prompt, int prompt_count,
             int32_t *tokens, attn_generated *result);
/* From PROMPT on, which must go well. */
attn_generated run(Fake *fake, const attn_generate_options *options, int32_t *tokens);
/* With the seed 1234567, sampling draws this number of 64 bits first. */
void assert_first_number(uint64_t sequence, uint64_t number);
void assert_tokens(const int32_t *tokens, const int32_t *expected, int count);

#endif
