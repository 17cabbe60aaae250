/* The rules of a search that change a row of scores before a token is chosen: penalized, forbidden and forced tokens.
 * Internal to attn_generate.c and attn_rules.c; programs include attn_generate.h, which documents the options.
 *
 * The rules, their order and their arithmetic in f32 follow `generate` in Hugging Face transformers 5.23
 * (generation/logits_process.py). They change logits in greedy search and sampling, and log probabilities in beam
 * search. */
#ifndef ATTN_RULES_H
#define ATTN_RULES_H

#include "attn_generate.h"

#include "attn_sample.h"

/* What the rules do to a row. */
typedef enum RowChange {
    ROW_KEPT,    /* nothing */
    ROW_REDUCED, /* some scores become minus infinity, and the others keep their values */
    ROW_RESCORED /* scores get other values */
} RowChange;

typedef struct Rules {
    const attn_generate_options *options;
    int vocab;
    bool ends;             /* whether end tokens end a text */
    const int32_t *prompt; /* a text is options->history, the prompt and the new tokens */
    size_t prompt_count;

    unsigned char *marked; /* [vocab] all 0 between two calls: the tokens that have their penalty already */
    int *borders;          /* [at most no_repeat_ngram] by length, the longest border of the end of the text */
} Rules;

/* Whether the options of the rules are in their ranges, apart from their tokens. */
bool attn_rules_options_good(const attn_generate_options *options);
/* Whether all tokens of the rules' options, which have passed attn_rules_options_good, are below `vocab`. */
bool attn_rules_tokens_good(const attn_generate_options *options, int vocab);
/* Whether each of the `count` tokens is below `vocab`. */
bool attn_tokens_good(const int32_t *tokens, int count, int vocab);
/* Whether a rule looks at the tokens of the text, and not only at its length. */
bool attn_rules_read_text(const attn_generate_options *options);

/* Lays out the arrays. A text has at most `longest` tokens. */
void attn_rules_lay_out(Rules *rules, size_t longest, char *base, size_t *used);
/* Prepares the arrays for a search; the other fields are set. */
void attn_rules_begin(Rules *rules);
/* Whether a token ends a text. */
bool attn_rules_is_end(const Rules *rules, int32_t token);
/* What attn_rules_apply will do to a row that follows `count` new tokens. */
RowChange attn_rules_change(const Rules *rules, int count);
/* Applies the rules to the scores [vocab] that follow the new tokens `added` [count]. `added` is not read unless
 * attn_rules_read_text. */
void attn_rules_apply(const Rules *rules, const int32_t *added, int count, float *scores);

#endif
