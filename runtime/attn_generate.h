/* Search over next-token logits: greedy search, sampling, beam search, streaming. C11 and C++17; compile
 * attn_generate.c, attn_rules.c and attn_sample.c, which need only the memory functions of libc. A model is a set of
 * callbacks, attn_model; ATTN_MODEL_OF defines them for code that attnc generated.
 *
 * The same logits, options and seed give the same tokens on every machine: exp, log and the random generator are part
 * of these files, every operation is rounded by itself, and sums are added in double in an order that does not depend
 * on the vector width.
 *
 * A search passes over each row of logits once, block by block. Beam search passes a second time, comparing only, where
 * a rule changes the row. With top_p and without top_k, a second pass that only compares follows when the nucleus is
 * larger than the tokens that were kept (256; for a small vocabulary one 16th of it, but at least 32); with min_p alone
 * it always follows. A top_k above 1024 sorts the whole row.
 *
 * A logit that is NaN or minus infinity has probability 0 in every search, unless its token is forced. A row with no
 * other logit that the rules allow ends the search with ATTN_GENERATE_NO_TOKEN. A logit of plus infinity takes all the
 * probability; several share it equally. */
#ifndef ATTN_GENERATE_H
#define ATTN_GENERATE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The results of attn_generate. Those up to ATTN_GENERATE_SHORT_MEMORY are found before the first call of the model, so
 * its states are unchanged. */
enum {
    ATTN_GENERATE_OK = 0,
    ATTN_GENERATE_BAD_ARGUMENT, /* a null pointer, a struct of another size, a count or size below its minimum */
    ATTN_GENERATE_BAD_OPTION,   /* an option outside its range, or two options that exclude each other */
    ATTN_GENERATE_TOO_LONG,     /* rows + prompt + max_new - 1 exceeds the model's bound */
    ATTN_GENERATE_BAD_TOKEN,    /* a token of the prompt or of an option is outside 0..vocab-1 */
    ATTN_GENERATE_SHORT_MEMORY, /* the memory has fewer bytes than attn_generate_bytes */
    ATTN_GENERATE_MODEL,        /* a callback of the model failed; attn_generated.model_status has its status */
    ATTN_GENERATE_NO_TOKEN,     /* no token of a row can be chosen; with beam search, none of any live beam */
    ATTN_GENERATE_STOPPED       /* on_token stopped the search; the tokens so far are valid */
};
const char *attn_generate_status_text(int status);

/* A model with numbered states, slots 0..beams-1 (slot 0 alone without beam search), which the caller has created. The
 * callbacks return 0 or a nonzero status of the model. They write every logit of a row; `logits` belongs to
 * attn_generate. */
typedef struct attn_model {
    size_t size; /* sizeof(attn_model) */
    int vocab;   /* columns of a row of logits, at least 1 */
    int bound;   /* rows that a state can hold, at least 1 */
    void *with;
    /* Appends `count` >= 1 tokens to the state of `slot`, and writes the logits [vocab] of the last one. */
    int (*prefill)(void *with, int slot, const int32_t *tokens, int count, float *logits);
    /* Appends one token to each of `count` >= 1 different states, and writes logits [count][vocab]. */
    int (*step)(void *with, int count, const int *slots, const int32_t *tokens, float *logits);
    /* Copies the state of slot `from` to another slot `to`. May be NULL without beam search. */
    int (*copy)(void *with, int to, int from);
} attn_model;

/* attn_generate_options.length_form: the divisor of log P for n tokens and a length penalty A. */
enum {
    ATTN_GENERATE_GNMT = 0, /* ((5 + n) / 6)^A */
    ATTN_GENERATE_POWER     /* n^A */
};

/* attn_generate_options.early_stopping: when a beam search ends. `generate` of Hugging Face transformers 5.23 has the
 * last three, by the names of its own option. In them only one of the best `beams` continuations of a step can finish a
 * text, and at max_new only these are finished; the search keeps the best `beams` finished texts and goes on at least
 * until there are so many. */
enum {
    ATTN_GENERATE_EXACT = 0, /* no live beam can beat the best finished text */
    ATTN_GENERATE_AT_FULL,   /* true: there are `beams` finished texts */
    ATTN_GENERATE_HEURISTIC, /* false: no live beam would beat the worst kept text if it ended now */
    ATTN_GENERATE_NEVER      /* "never": as false, but with the lp of max_new if the length penalty is positive */
};

/* How to search. Zero is the default of every field except size and max_new.
 *
 * Greedy search (temperature 0, no beams) takes the largest logit; among equal logits, the lowest id.
 *
 * Sampling (temperature > 0) divides the logits by the temperature and keeps the top_k largest (Fan et al. 2018); among
 * equal logits, those with the lowest ids. It takes the softmax of these and keeps the nucleus, the smallest set of
 * most probable tokens whose probabilities sum to at least top_p (Holtzman et al. 2020, section 3.1), never empty. Of
 * this it keeps the tokens that are at least min_p times as probable as the most probable one (Nguyen et al. 2024). It
 * draws one of them, weighted; the cumulative sum runs by rank, or by id when neither top_k nor top_p nor min_p
 * applies. Each token consumes one number of splitmix64 (Steele, Lea and Flood 2014), whose top 53 bits are a fraction.
 * The generator starts from seed + m(sequence), where m is its output function and m(0) = 0: texts with one seed and
 * different sequence numbers are drawn independently, even for equal prompts.
 *
 * Beam search (beams >= 2; Vaswani et al. 2017, section 6.1, use 4 beams and a length penalty of 0.6) returns the text
 * with the best score log P / lp. There lp = ((5 + n) / 6)^length_penalty (Wu et al. 2016, eq. 14) or, with
 * ATTN_GENERATE_POWER, n^length_penalty, and n counts the new tokens with the end token, without the prompt. P is the
 * softmax over the whole vocabulary, even where a rule forbids tokens. Each step ranks the best beams * (1 +
 * end_count) continuations of all live beams; those that end are finished texts, and the best `beams` others stay live.
 * A tie is won by the better beam, then by the larger logit (different logits can give a long text equal rounded log
 * P), then by the lower id. At max_new tokens all live beams are finished. The search stops when no live beam can beat
 * the best finished text. The bound on the score of a live beam is its log P so far / lp, with the most favourable lp
 * of all lengths that the beam can still reach. early_stopping chooses other ends of the search.
 *
 * The rules are the logits processors of transformers, which apply to each row in this order: repetition_penalty,
 * no_repeat_ngram, bad_words, min_length and min_new, forced_first, forced_last, suppressed, suppressed_first. Their
 * text is history, the prompt and the new tokens. They apply to logits, and in beam search to the logarithms of P,
 * where a penalty multiplies every logarithm. A forced token has the score 0, whatever came before, and all others
 * have minus infinity. */
typedef struct attn_generate_options {
    size_t size;           /* sizeof(attn_generate_options); the size of an older version sets newer fields to 0 */
    int rows;              /* rows that the state of slot 0 already holds, for instance of a conversation */
    int max_new;           /* largest number of tokens to generate, at least 1 */
    int min_new;           /* end tokens are not chosen before the text has that many tokens; at most max_new */
    double temperature;    /* 0: no sampling; finite and not negative */
    int top_k;             /* sampling; 0: all tokens */
    double top_p;          /* sampling, in (0, 1]; 0 and 1: all tokens */
    uint64_t seed;         /* sampling */
    int beams;             /* 0 and 1: no beam search; excludes a temperature */
    double length_penalty; /* beam search, from -16 to 16 */
    const int32_t *end;    /* [end_count] tokens that end a text; a chosen one is written and counted */
    int end_count;
    int ignore_end;        /* nonzero: end tokens are like any other token */
    /* Called with each token in order once it is final: after each choice, or for all tokens at the end of a beam
     * search. A nonzero result stops the search. May be NULL. */
    int (*on_token)(void *on_token_with, int32_t token);
    void *on_token_with;
    uint64_t sequence;     /* sampling: number of the random stream of this seed, for instance a text's index */
    int length_form;       /* beam search: ATTN_GENERATE_GNMT or ATTN_GENERATE_POWER */

    /* The rules */
    double repetition_penalty; /* 0 and 1: none; divides positive scores of the text's tokens, multiplies others */
    int no_repeat_ngram;       /* no sequence of that many tokens is completed a second time; 0: no rule */
    int min_length;            /* end tokens are not chosen before the whole text has that many tokens */
    const int32_t *history;    /* [history_count <= rows] the tokens of the rows that the state of slot 0 holds */
    int history_count;
    const int32_t *suppressed; /* [suppressed_count] tokens that are never chosen */
    int suppressed_count;
    /* [suppressed_first_count] tokens that are not chosen as the first new token; where forced_first chooses that
     * token, they are not chosen as the second one instead. */
    const int32_t *suppressed_first;
    int suppressed_first_count;
    /* [bad_words_count] words of one token or more, each followed by -1: a word's last token is not chosen after its
     * other tokens. A word that is an end token alone has no effect. */
    const int32_t *bad_words;
    int bad_words_count;
    const int32_t *forced_first; /* [forced_first_count] the only tokens that can follow a text of one token */
    int forced_first_count;
    const int32_t *forced_last;  /* [forced_last_count] the only tokens that can be new token number max_new */
    int forced_last_count;
    double min_p;       /* sampling, in [0, 1]: tokens less probable than min_p times the most probable one are cut */
    int early_stopping; /* beam search: ATTN_GENERATE_EXACT or another of its values */
} attn_generate_options;

/* The result of a search. Every call sets it, unless it returns ATTN_GENERATE_BAD_ARGUMENT. */
typedef struct attn_generated {
    size_t size;      /* sizeof(attn_generated); set by the caller */
    int32_t *tokens;  /* [max_new]; set by the caller */
    int count;        /* number of tokens written; on_token was called for each */
    int ended;        /* 1: the last token is an end token, and end tokens are not ignored */
    int rows;         /* number of valid rows at the start of the state of slot 0; see attn_generate */
    int model_status; /* with ATTN_GENERATE_MODEL, the status that the callback returned; else 0 */
    double score;     /* with beam search, log P / lp of the text; else 0 */
} attn_generated;

/* Bytes of memory that attn_generate needs for this model and these options: 0 if it would refuse them, SIZE_MAX if
 * they exceed the address space. Without beam search at most about 21 * vocab and, where a text can have as many
 * tokens, 4 * no_repeat_ngram. */
size_t attn_generate_bytes(const attn_model *model, const attn_generate_options *options);

/* Feeds `prompt` [prompt_count >= 1] to slot 0 and generates tokens. Returns ATTN_GENERATE_OK or another of the results
 * above. `memory` has attn_generate_bytes bytes of any alignment, for this call alone; nothing is kept in it.
 *
 * To continue a text, call again with `rows` set to result->rows and a prompt that begins with the generated tokens
 * that slot 0 lacks. Greedy search and sampling leave in slot 0 the earlier rows, the prompt, and all new tokens except
 * the last one, which has not been fed. After a beam search, result->rows counts the earlier rows and the prompt; after
 * a failure, the rows fed before it. Rows of other texts may follow these, so rewind the state first
 * (NAME_state_rewind). */
int attn_generate(const attn_model *model, const attn_generate_options *options, const int32_t *prompt,
                  int prompt_count, attn_generated *result, void *memory, size_t bytes);

#ifdef __cplusplus
}
#endif

enum { ATTN_GENERATE_STATES = 32 }; /* most states in one call of NAME_step; more states take several calls */

/* A cast of C or of C++, for the macros of these headers. */
#ifdef __cplusplus
#define ATTN_CAST(type, value) static_cast<type>(value)
#else
#define ATTN_CAST(type, value) ((type)(value))
#endif

/* Defines the callbacks for generated code. Behind #include "NAME.h", once in a file and outside of functions:
 *
 *     ATTN_MODEL_OF(NAME);
 *
 * Then, with one state for each beam, initialized by NAME_state_init:
 *
 *     NAME_generator generator = {&ctx, states, workspace, workspace_bytes, 0};
 *     attn_model model = NAME_generator_model(&generator, vocab, bound);
 *
 * `vocab` and `bound` are NAME_VOCAB and NAME_SEQ of the header, with NAME in capitals, which a macro cannot spell. The
 * generator must outlive the model and serves one attn_generate at a time, since it holds one workspace. */
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
        const NAME##_generator *generator = ATTN_CAST(const NAME##_generator *, with);                                 \
        NAME##_decoded output;                                                                                         \
        memset(&output, 0, sizeof output);                                                                             \
        output.size = sizeof output;                                                                                   \
        output.logits = logits;                                                                                        \
        return NAME##_prefill(generator->ctx, generator->states[slot], tokens, count, &output, generator->workspace,   \
                              generator->bytes);                                                                       \
    }                                                                                                                  \
    static inline int NAME##_generator_step(void *with, int count, const int *slots, const int32_t *tokens,            \
                                            float *logits) {                                                           \
        const NAME##_generator *generator = ATTN_CAST(const NAME##_generator *, with);                                 \
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
            output.logits = logits + ATTN_CAST(size_t, done) * ATTN_CAST(size_t, generator->vocab);                    \
            status = NAME##_step(generator->ctx, states, tokens + done, part, &output, generator->workspace,           \
                                 generator->bytes);                                                                    \
        }                                                                                                              \
        return status;                                                                                                 \
    }                                                                                                                  \
    static inline int NAME##_generator_copy(void *with, int to, int from) {                                            \
        const NAME##_generator *generator = ATTN_CAST(const NAME##_generator *, with);                                 \
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
    struct NAME##_generator /* the semicolon behind ATTN_MODEL_OF(NAME) ends this declaration */

#endif
