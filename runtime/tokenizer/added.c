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

int attn_added_find(const attn_tokenizer *t, const AddedSet *set, const char *text, size_t size, size_t from,
                    size_t *index, size_t *begin, size_t *end) {
    for (size_t at = from, used = 0; at < size; at++) {
        if (!set->begins[(unsigned char)text[at]]) continue;
        int32_t found = attn_longest_token(&set->texts, attn_whole_range(&set->texts), text + at, size - at, &used);
        if (found < 0) continue;
        const AddedToken *token = &t->added[found];
        if (token->single_word && !stands_alone(text, size, at, at + used)) {
            at += used - 1;
            continue;
        }
        *index = (size_t)found;
        *begin = token->left ? spaces_before(text, at, from) : at;
        *end = token->right ? spaces_behind(text, size, at + used) : at + used;
        return 1;
    }
    return 0;
}
