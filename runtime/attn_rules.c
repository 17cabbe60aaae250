/* See attn_rules.h. */
#include "attn_rules.h"

/* A text, part by part. */
typedef struct Text {
    const int32_t *history, *prompt, *added;
    size_t history_count, prompt_count, added_count;
} Text;

static Text text_of(const Rules *rules, const int32_t *added, int count) {
    return (Text){rules->options->history, rules->prompt, added, (size_t)rules->options->history_count,
                  rules->prompt_count, (size_t)count};
}

static size_t text_length(const Text *text) { return text->history_count + text->prompt_count + text->added_count; }

static int32_t token_at(const Text *text, size_t i) {
    if (i < text->history_count) return text->history[i];
    i -= text->history_count;
    return i < text->prompt_count ? text->prompt[i] : text->added[i - text->prompt_count];
}

static bool is_list(const int32_t *tokens, int count) { return count == 0 || (count > 0 && tokens != NULL); }

/* Every word has a token, and -1 follows the last one, too. */
static bool are_words(const int32_t *tokens, int count) {
    if (!is_list(tokens, count)) return false;
    for (int i = 0; i < count; i++)
        if (tokens[i] == -1 && (i == 0 || tokens[i - 1] == -1)) return false;
    return count == 0 || tokens[count - 1] == -1;
}

static bool is_penalty(double penalty) {
    return penalty == 0 || (penalty >= (double)FLT_MIN && penalty <= (double)FLT_MAX); /* false for NaN */
}

bool attn_rules_options_good(const attn_generate_options *o) {
    return is_penalty(o->repetition_penalty) && o->no_repeat_ngram >= 0 && o->min_length >= 0 &&
           is_list(o->history, o->history_count) && o->history_count <= o->rows &&
           is_list(o->suppressed, o->suppressed_count) && is_list(o->suppressed_first, o->suppressed_first_count) &&
           are_words(o->bad_words, o->bad_words_count) && is_list(o->forced_first, o->forced_first_count) &&
           is_list(o->forced_last, o->forced_last_count);
}

bool attn_tokens_good(const int32_t *tokens, int count, int vocab) {
    for (int i = 0; i < count; i++)
        if (tokens[i] < 0 || tokens[i] >= vocab) return false;
    return true;
}

bool attn_rules_tokens_good(const attn_generate_options *o, int vocab) {
    for (int i = 0; i < o->bad_words_count; i++)
        if (o->bad_words[i] < -1 || o->bad_words[i] >= vocab) return false;
    return attn_tokens_good(o->history, o->history_count, vocab) &&
           attn_tokens_good(o->suppressed, o->suppressed_count, vocab) &&
           attn_tokens_good(o->suppressed_first, o->suppressed_first_count, vocab) &&
           attn_tokens_good(o->forced_first, o->forced_first_count, vocab) &&
           attn_tokens_good(o->forced_last, o->forced_last_count, vocab);
}

static bool penalizes(const attn_generate_options *options) {
    return options->repetition_penalty > 0 && options->repetition_penalty != 1;
}

bool attn_rules_read_text(const attn_generate_options *options) {
    return penalizes(options) || options->no_repeat_ngram > 0 || options->bad_words_count > 0;
}

void attn_rules_lay_out(Rules *rules, size_t longest, char *base, size_t *used) {
    const attn_generate_options *options = rules->options;
    size_t size = (size_t)options->no_repeat_ngram; /* a longer one than the text forbids nothing */
    rules->marked = attn_carve(base, used, penalizes(options) ? (size_t)rules->vocab : 0, sizeof *rules->marked);
    rules->borders = attn_carve(base, used, size <= longest ? size : 0, sizeof *rules->borders);
}

void attn_rules_begin(Rules *rules) {
    if (penalizes(rules->options)) memset(rules->marked, 0, (size_t)rules->vocab);
}

static bool may_not_end(const Rules *rules, const Text *text) {
    const attn_generate_options *options = rules->options;
    return rules->ends && (text->added_count < (size_t)options->min_new ||
                           text_length(text) < (size_t)options->min_length);
}

/* The first new token, but the second one where forced_first chooses the first one. */
static bool is_first_free(const Rules *rules, const Text *text) {
    const bool forced = text->history_count + text->prompt_count == 1 && rules->options->forced_first_count > 0;
    return text->added_count == (forced ? 1 : 0);
}

/* The tokens that are forced to follow a text, and their number. */
static const int32_t *forced(const Rules *rules, const Text *text, int *count) {
    const attn_generate_options *options = rules->options;
    *count = options->forced_last_count;
    if (*count > 0 && text->added_count == (size_t)options->max_new - 1) return options->forced_last;
    *count = text_length(text) == 1 ? options->forced_first_count : 0;
    return options->forced_first;
}

RowChange attn_rules_change(const Rules *rules, int count) {
    const attn_generate_options *options = rules->options;
    const Text text = text_of(rules, NULL, count);
    int n = 0;
    (void)forced(rules, &text, &n);
    if (n > 0 || penalizes(options)) return ROW_RESCORED;
    return options->no_repeat_ngram > 0 || options->bad_words_count > 0 || options->suppressed_count > 0 ||
           (options->suppressed_first_count > 0 && is_first_free(rules, &text)) || may_not_end(rules, &text)
               ? ROW_REDUCED
               : ROW_KEPT;
}

static void forbid(const int32_t *tokens, int count, float *scores) {
    for (int i = 0; i < count; i++) scores[tokens[i]] = -INFINITY;
}

static void penalize_part(const Rules *rules, const int32_t *tokens, size_t count, float *scores) {
    const float penalty = (float)rules->options->repetition_penalty;
    for (size_t i = 0; i < count; i++) {
        const int32_t token = tokens[i];
        if (rules->marked[token]) continue;
        rules->marked[token] = 1;
        scores[token] = scores[token] < 0 ? scores[token] * penalty : scores[token] / penalty;
    }
}

static void penalize(const Rules *rules, const Text *text, float *scores) {
    penalize_part(rules, text->history, text->history_count, scores);
    penalize_part(rules, text->prompt, text->prompt_count, scores);
    penalize_part(rules, text->added, text->added_count, scores);
    for (size_t i = 0, n = text_length(text); i < n; i++) rules->marked[token_at(text, i)] = 0;
}

/* Forbids each token whose choice would end the text with `size` tokens that it already has, the search of Knuth,
 * Morris and Pratt 1977 for the last size - 1 tokens: linear in the text, whatever it repeats. */
static void forbid_ngrams(const Rules *rules, const Text *text, size_t size, float *scores) {
    const size_t length = text_length(text), wanted = size - 1, begin = length - wanted;
    int *borders = rules->borders;
    size_t matched = 0;
    borders[0] = 0;
    for (size_t i = 1; i < wanted; i++) { /* borders[i] belongs to the first i + 1 of the wanted tokens */
        const int32_t token = token_at(text, begin + i);
        while (matched > 0 && token_at(text, begin + matched) != token) matched = (size_t)borders[matched - 1];
        matched += token_at(text, begin + matched) == token;
        borders[i] = (int)matched;
    }
    matched = 0;
    for (size_t i = 0; i < length; i++) {
        const int32_t token = token_at(text, i);
        if (matched == wanted) {
            scores[token] = -INFINITY; /* it follows an earlier place of the wanted tokens */
            if (wanted == 0) continue;
            matched = (size_t)borders[wanted - 1];
        }
        while (matched > 0 && token_at(text, begin + matched) != token) matched = (size_t)borders[matched - 1];
        matched += token_at(text, begin + matched) == token;
    }
}

bool attn_rules_is_end(const Rules *rules, int32_t token) {
    for (int i = 0; rules->ends && i < rules->options->end_count; i++)
        if (rules->options->end[i] == token) return true;
    return false;
}

static bool text_ends_with(const Text *text, const int32_t *tokens, size_t count) {
    const size_t length = text_length(text);
    if (count > length) return false;
    for (size_t i = 1; i <= count; i++)
        if (token_at(text, length - i) != tokens[count - i]) return false;
    return true;
}

/* A word that is an end token alone may be chosen, as in transformers. */
static void forbid_bad_words(const Rules *rules, const Text *text, float *scores) {
    const int32_t *words = rules->options->bad_words;
    for (int i = 0, end; i < rules->options->bad_words_count; i = end + 1) {
        for (end = i; words[end] != -1;) end++;
        const int32_t last = words[end - 1];
        if (end - i == 1 ? !attn_rules_is_end(rules, last) : text_ends_with(text, words + i, (size_t)(end - 1 - i)))
            scores[last] = -INFINITY;
    }
}

void attn_rules_apply(const Rules *rules, const int32_t *added, int count, float *scores) {
    const attn_generate_options *options = rules->options;
    const Text text = text_of(rules, added, count);
    int forced_count = 0;
    const int32_t *forced_tokens = forced(rules, &text, &forced_count);
    if (forced_count > 0) { /* this overrides what the rules before it did to the row */
        for (int token = 0; token < rules->vocab; token++) scores[token] = -INFINITY;
        for (int i = 0; i < forced_count; i++) scores[forced_tokens[i]] = 0;
    } else {
        if (penalizes(options)) penalize(rules, &text, scores);
        if (options->no_repeat_ngram > 0 && text_length(&text) >= (size_t)options->no_repeat_ngram)
            forbid_ngrams(rules, &text, (size_t)options->no_repeat_ngram, scores);
        forbid_bad_words(rules, &text, scores);
        if (may_not_end(rules, &text)) forbid(options->end, options->end_count, scores);
    }
    forbid(options->suppressed, options->suppressed_count, scores);
    if (is_first_free(rules, &text)) forbid(options->suppressed_first, options->suppressed_first_count, scores);
}
