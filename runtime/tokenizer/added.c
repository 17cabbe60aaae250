/* added.c: finds the added tokens of a file, such as `[SEP]` and `</s>`, before the text is split into words. */
#include <string.h>

#include "attn_tokenizer_internal.h"

/* The character that ends before text[at], which begins at text[*begin]. */
static int32_t char_before(const char *text, size_t at, size_t *begin) {
    size_t step;
    for (*begin = at - 1; *begin > 0 && (text[*begin] & 0xc0) == 0x80;) --*begin;
    return attn_char_at(text + *begin, at - *begin, &step);
}

static bool stands_alone(const char *text, size_t size, size_t begin, size_t end) {
    size_t at;
    if (begin > 0 && attn_is_word(char_before(text, begin, &at))) return false;
    return end == size || !attn_is_word(attn_char_at(text + end, size - end, &at));
}

static size_t spaces_before(const char *text, size_t at, size_t least) {
    for (size_t begin; at > least && attn_is_space(char_before(text, at, &begin)); at = begin)
        if (begin < least) break;
    return at;
}

static size_t spaces_behind(const char *text, size_t size, size_t at) {
    for (size_t step; at < size && attn_is_space(attn_char_at(text + at, size - at, &step));) at += step;
    return at;
}

/* The end of the white space from text[at] on, which is looked for once in a run of it. */
static size_t skip_spaces(AddedSearch *s, size_t at) {
    if (at < s->spaces || at >= s->spaces_end) {
        s->spaces = at;
        s->spaces_end = spaces_behind(s->text, s->size, at);
    }
    return s->spaces_end;
}

const AddedToken *attn_added_next(const attn_tokenizer *t, const AddedSet *set, AddedSearch *s, size_t *begin) {
    while (s->look < s->size) {
        const size_t at = s->look++;
        size_t end = 0;
        if (!set->begins[(unsigned char)s->text[at]]) continue;
        const int32_t found = attn_longest_token(&set->texts, attn_whole_range(&set->texts), s->text + at, s->size - at,
                                                 &end);
        if (found < 0) continue;
        const AddedToken *token = &t->added[found];
        s->look = end += at;
        if (token->single_word && !stands_alone(s->text, s->size, at, end)) continue;
        if (token->right) end = skip_spaces(s, end);
        const bool nothing_left = token->left && s->done >= end; /* all of it was stripped by the token before */
        *begin = at < s->done ? s->done : token->left ? spaces_before(s->text, at, s->done) : at;
        s->done = end;
        if (!nothing_left) return token;
    }
    return NULL;
}
