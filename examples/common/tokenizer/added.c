/* added.c: the tokens that are found in a text before it is cut into words, as `[SEP]` and `</s>`. */
#include <string.h>

#include "internal.h"

/* The character that ends at text[at]. */
static int32_t char_before(const char *text, size_t at, size_t *begin) {
    size_t step;
    for (*begin = at - 1; *begin > 0 && (text[*begin] & 0xc0) == 0x80;) --*begin;
    return char_at(text + *begin, at - *begin, &step);
}

static bool stands_alone(const char *text, size_t size, size_t begin, size_t end) {
    size_t at;
    if (begin > 0 && is_word(char_before(text, begin, &at))) return false;
    return end == size || !is_word(char_at(text + end, size - end, &at));
}

static size_t spaces_before(const char *text, size_t at, size_t least) {
    for (size_t begin; at > least && is_space(char_before(text, at, &begin)); at = begin)
        if (begin < least) break;
    return at;
}

static size_t spaces_behind(const char *text, size_t size, size_t at) {
    for (size_t step; at < size && is_space(char_at(text + at, size - at, &step));) at += step;
    return at;
}

int added_find(const tokenizer *t, const AddedSet *set, const char *text, size_t size, size_t from, size_t *index,
               size_t *begin, size_t *end) {
    for (size_t at = from, used = 0; at < size; at++) {
        if (!set->begins[(unsigned char)text[at]]) continue;
        int32_t found = longest_token(&set->texts, whole_range(&set->texts), text + at, size - at, &used);
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
