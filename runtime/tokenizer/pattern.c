/* pattern.c: matches the patterns of tokenizer.json, which are literal texts and Oniguruma's regular expressions. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* for memmem */
#endif
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attn_tokenizer_internal.h"

static void initialize(void) {
    OnigEncoding encodings[] = {ONIG_ENCODING_UTF8};
    onig_initialize(encodings, 1);
}

const char *attn_pattern_compile(Pattern *pattern, const char *regex, size_t size, char *error, size_t error_size) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, initialize);
    const OnigUChar *text = (const OnigUChar *)regex;
    OnigErrorInfo info;
    int status = onig_new(&pattern->regex, text, text + size, ONIG_OPTION_NONE, ONIG_ENCODING_UTF8, ONIG_SYNTAX_RUBY,
                          &info);
    if (status == ONIG_NORMAL) return NULL;
    OnigUChar message[ONIG_MAX_ERROR_MESSAGE_LEN];
    int length = onig_error_code_to_str(message, status, &info);
    snprintf(error, error_size, "%.*s", length, (const char *)message);
    pattern->regex = NULL;
    return error;
}

void attn_pattern_free(Pattern *pattern) {
    if (pattern->regex) onig_free(pattern->regex);
    free(pattern->literal.data);
    *pattern = (Pattern){0};
}

static int find_literal(const String *literal, const char *text, size_t size, size_t from, size_t *begin, size_t *end) {
    if (literal->size == 0 || from >= size) return 0;
    const char *found = memmem(text + from, size - from, literal->data, literal->size);
    if (!found) return 0;
    *begin = (size_t)(found - text);
    *end = *begin + literal->size;
    return 1;
}

int attn_pattern_find(const Pattern *pattern, const char *text, size_t size, size_t from, size_t *begin, size_t *end) {
    if (size == 0) return 0;
    if (!pattern->regex) return find_literal(&pattern->literal, text, size, from, begin, end);
    OnigRegion region;
    onig_region_init(&region);
    const OnigUChar *first = (const OnigUChar *)text;
    int at = onig_search(pattern->regex, first, first + size, first + from, first + size, &region, ONIG_OPTION_NONE);
    if (at >= 0) {
        *begin = (size_t)region.beg[0];
        *end = (size_t)region.end[0];
    }
    onig_region_free(&region, 0);
    if (at == ONIGERR_MEMORY) return ATTN_TOKENIZER_NO_MEMORY;
    return at >= 0 ? 1 : at == ONIG_MISMATCH ? 0 : ATTN_TOKENIZER_PATTERN;
}
