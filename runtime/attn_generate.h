/* Search over next-token logits: greedy, sampling, beam search, streaming. C11 and C++17, no dependency but libc's
 * memory functions. It knows of a model what attn_model says; ATTN_MODEL_OF makes one of code that attnc generated.
 *
 * The same logits, options and seed give the same tokens on every machine: exp and log are this file's own, in double,
 * sums are added in an order that does not depend on the width of vectors, and the random generator is its own, too.
 *
 * Each row of logits is passed over once, in blocks. A second pass, which only compares, comes where top_p cuts without
 * top_k and leaves more tokens than were kept (256; of a small vocabulary a 16th, but 32 at least); and all of the row
 * is sorted for a top_k of more than 1024.
 *
 * Chosen is only what can be: a logit that is NaN or minus infinity has probability 0 in every search, and a row with
 * no other is ATTN_GENERATE_NO_TOKEN. Plus infinity takes all the probability; several share it equally. */
#ifndef ATTN_GENERATE_H
#define ATTN_GENERATE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What attn_generate gives back. What stands up to ATTN_GENERATE_SHORT_MEMORY is found before the model is first
 * called, so that its states are as they were. */
enum {
    ATTN_GENERATE_OK = 0,
    ATTN_GENERATE_BAD_ARGUMENT, /* a null pointer, a struct of another size, a count or size below its least */
    ATTN_GENERATE_BAD_OPTION,   /* an option outside its range, or two that exclude each other */
    ATTN_GENERATE_TOO_LONG,     /* rows + prompt + max_new - 1 is more than the model's bound */
    ATTN_GENERATE_BAD_TOKEN,    /* a token of the prompt or an end token outside 0..vocab-1 */
    ATTN_GENERATE_SHORT_MEMORY, /* fewer bytes than attn_generate_bytes */
    ATTN_GENERATE_MODEL,        /* a callback of the model failed: attn_generated.model_status */
    ATTN_GENERATE_NO_TOKEN,     /* no logit of a row can be chosen; with beam search, none of any live beam */
    ATTN_GENERATE_STOPPED       /* on_token asked for it; the tokens up to then are good */
};
const char *attn_generate_status_text(int status);

/* A model with numbered states, `slot` 0..beams-1 (0 alone without beam search), which the caller has made. The
 * callbacks give 0, or a status of the model's own. `logits` is memory of attn_generate: each row is written whole. */
typedef struct attn_model {
    size_t size; /* sizeof(attn_model) */
    int vocab;   /* columns of a row of logits, at least 1 */
    int bound;   /* rows that a state can hold, at least 1 */
    void *with;
    /* Appends `count` >= 1 tokens to the state of `slot`. logits [vocab]: of the last one. */
    int (*prefill)(void *with, int slot, const int32_t *tokens, int count, float *logits);
    /* Appends one token to each of `count` >= 1 different states. logits [count][vocab]. */
    int (*step)(void *with, int count, const int *slots, const int32_t *tokens, float *logits);
    /* Makes the state of `to` a copy of that of `from`, another slot. May be NULL without beam search. */
    int (*copy)(void *with, int to, int from);
} attn_model;

/* attn_generate_options.length_form: what a length penalty A divides log P of n tokens by. */
enum {
    ATTN_GENERATE_GNMT = 0, /* ((5 + n) / 6)^A */
    ATTN_GENERATE_POWER     /* n^A */
};

/* How to search; zeros are defaults, except for size and max_new.
 *
 * Greedy (temperature 0, no beams): the largest logit, of equal ones the lowest id.
 *
 * Sampling (temperature > 0): logits / temperature; of these the top_k largest (Fan et al. 2018), of equal
 * ones the lowest ids; softmax of the rest; the nucleus, the smallest set of most probable tokens whose probabilities
 * sum to at least top_p (Holtzman et al. 2020, section 3.1), never empty; one draw from it, weighted, in the order of
 * the ranks; of the ids where nothing is cut. A token takes one number of splitmix64 (Steele, Lea and Flood 2014), its
 * top 53 bits as a fraction. The generator's first state is seed + m(sequence), m its output function, which maps 0 to
 * 0: texts of one seed whose sequence numbers differ are drawn independently, even of equal prompts.
 *
 * Beam search (beams >= 2; Vaswani et al. 2017, section 6.1 has 4 beams and a length penalty of 0.6): the text with the
 * best score log P / lp, lp = ((5 + n) / 6)^length_penalty (Wu et al. 2016, eq. 14) or, with ATTN_GENERATE_POWER,
 * n^length_penalty, n its new tokens with the end token, without the prompt. P is the softmax over the whole
 * vocabulary, also where min_new forbids end tokens. Of the best beams * (1 + end_count) continuations of all live
 * beams those that end are finished texts and the best `beams` others live on; of equals the one of the better beam,
 * then of the larger logit (log P of a long text is rounded to more than they differ by), then of the lower id. At
 * max_new tokens the live ones are finished.
 * It stops when no live beam can beat the best finished text, however it goes on: score <= log P so far / lp, with lp
 * the one that favours it most of the lengths it can still reach. */
typedef struct attn_generate_options {
    size_t size;           /* sizeof(attn_generate_options); that of a version without the last fields: they are 0 */
    int rows;              /* rows that the state of slot 0 holds already, of a conversation say */
    int max_new;           /* tokens to generate at most, at least 1 */
    int min_new;           /* end tokens are not chosen before there are that many; up to max_new */
    double temperature;    /* 0: no sampling; finite, not negative */
    int top_k;             /* sampling: 0 is all */
    double top_p;          /* sampling: in (0, 1]; 0 is 1, no cut */
    uint64_t seed;         /* sampling */
    int beams;             /* 0 and 1: no beam search; not together with a temperature */
    double length_penalty; /* beam search: -16 to 16 */
    const int32_t *end;    /* [end_count] tokens that end a text; each is written and counted where it is chosen */
    int end_count;
    int ignore_end;        /* not 0: end tokens are like any other */
    /* Called with each token once it is certain, in order: after each choice, but all at the end of a beam search. Not
     * 0 stops. NULL: not called. */
    int (*on_token)(void *on_token_with, int32_t token);
    void *on_token_with;
    uint64_t sequence;     /* sampling: which stream of the seed's, the index of a text in its batch say */
    int length_form;       /* beam search: ATTN_GENERATE_GNMT or ATTN_GENERATE_POWER */
} attn_generate_options;

/* What came of it. Set by every call that gets past ATTN_GENERATE_BAD_ARGUMENT. */
typedef struct attn_generated {
    size_t size;      /* sizeof(attn_generated); the caller's */
    int32_t *tokens;  /* [max_new]; the caller's */
    int count;        /* tokens written: what on_token saw, or would have seen */
    int ended;        /* 1: the last of them is an end token, and was not ignored */
    int rows;         /* the state of slot 0 begins with so many rows of the conversation; see attn_generate */
    int model_status; /* ATTN_GENERATE_MODEL: what the model's callback gave back; else 0 */
    double score;     /* beam search: log P / lp of the text; else 0 */
} attn_generated;

/* Bytes of memory that attn_generate needs for this model and these options; 0 if it would refuse them, SIZE_MAX if
 * they exceed the address space. Not more than about 20 bytes * vocab without beam search. */
size_t attn_generate_bytes(const attn_model *model, const attn_generate_options *options);

/* Feeds `prompt` [prompt_count >= 1] to slot 0 and generates. `memory`: attn_generate_bytes bytes, of any alignment, of
 * this call alone; nothing is kept in it.
 *
 * To go on afterwards, call again with `rows` set to result->rows and a prompt that begins with the generated tokens
 * that slot 0 lacks. Greedy and sampling leave exactly these rows in it: what was held, the prompt, and all tokens but
 * the last one, which was not fed. After a beam search they are what was held and the prompt, after a failure what was
 * fed before it; rows of other texts may follow, so the state must be rewound to them first (NAME_state_rewind). */
int attn_generate(const attn_model *model, const attn_generate_options *options, const int32_t *prompt,
                  int prompt_count, attn_generated *result, void *memory, size_t bytes);

#ifdef __cplusplus
}
#endif

enum { ATTN_GENERATE_STATES = 32 }; /* states to a call of NAME_step; more go in several calls */

/* Binds generated code. With #include "NAME.h", once in a file, outside of functions:
 *
 *     ATTN_MODEL_OF(NAME);
 *
 * and where it is used, with states that NAME_state_init has made, one a beam:
 *
 *     NAME_generator generator = {&ctx, states, workspace, workspace_bytes, 0};
 *     attn_model model = NAME_generator_model(&generator, vocab, bound);
 *
 * `bound` is the NAME_SEQ of the header in capitals, which a macro cannot spell. The generator must outlive the model,
 * and serves one attn_generate at a time, as its workspace does. */
#define ATTN_MODEL_OF(NAME)                                                                                            \
    typedef struct NAME##_generator {                                                                                  \
        const NAME##_ctx *ctx;                                                                                         \
        void *const *states; /* [beams] */                                                                             \
        void *workspace;                                                                                               \
        size_t bytes; /* of the workspace */                                                                           \
        int vocab;    /* set by NAME_generator_model */                                                                \
    } NAME##_generator;                                                                                                \
    static inline int NAME##_generator_prefill(void *with, int slot, const int32_t *tokens, int count,                 \
                                               float *logits) {                                                        \
        const NAME##_generator *generator = (const NAME##_generator *)with;                                            \
        NAME##_decoded output;                                                                                         \
        memset(&output, 0, sizeof output);                                                                             \
        output.size = sizeof output;                                                                                   \
        output.logits = logits;                                                                                        \
        return NAME##_prefill(generator->ctx, generator->states[slot], tokens, count, &output, generator->workspace,   \
                              generator->bytes);                                                                       \
    }                                                                                                                  \
    static inline int NAME##_generator_step(void *with, int count, const int *slots, const int32_t *tokens,            \
                                            float *logits) {                                                           \
        const NAME##_generator *generator = (const NAME##_generator *)with;                                            \
        void *states[ATTN_GENERATE_STATES];                                                                            \
        int status = 0;                                                                                                \
        for (int done = 0, part; status == 0 && done < count; done += part) {                                          \
            part = count - done < ATTN_GENERATE_STATES ? count - done : ATTN_GENERATE_STATES;                          \
            for (int i = 0; i < part; i++) {                                                                           \
                states[i] = generator->states[slots[done + i]];                                                        \
            }                                                                                                          \
            NAME##_decoded output;                                                                                     \
            memset(&output, 0, sizeof output);                                                                         \
            output.size = sizeof output;                                                                               \
            output.logits = logits + (size_t)done * (size_t)generator->vocab;                                          \
            status = NAME##_step(generator->ctx, states, tokens + done, part, &output, generator->workspace,           \
                                 generator->bytes);                                                                    \
        }                                                                                                              \
        return status;                                                                                                 \
    }                                                                                                                  \
    static inline int NAME##_generator_copy(void *with, int to, int from) {                                            \
        const NAME##_generator *generator = (const NAME##_generator *)with;                                            \
        return NAME##_state_copy(generator->states[to], generator->states[from]);                                      \
    }                                                                                                                  \
    static inline attn_model NAME##_generator_model(NAME##_generator *generator, int vocab, int bound) {               \
        attn_model model;                                                                                              \
        generator->vocab = vocab;                                                                                      \
        model.size = sizeof model;                                                                                     \
        model.vocab = vocab;                                                                                           \
        model.bound = bound;                                                                                           \
        model.with = generator;                                                                                        \
        model.prefill = NAME##_generator_prefill;                                                                      \
        model.step = NAME##_generator_step;                                                                            \
        model.copy = NAME##_generator_copy;                                                                            \
        return model;                                                                                                  \
    }                                                                                                                  \
    struct NAME##_generator /* the user's semicolon follows */

#endif
