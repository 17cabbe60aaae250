/* pattern.c: matches the patterns of tokenizer.json, which are literal texts and Oniguruma's regular expressions. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* for memmem */
#endif
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "attn_tokenizer_internal.h"

/* A search of so many bytes is one call of Oniguruma, which may go back so often; a longer one tries each place. */
enum { SHORT = 1 << 15, MOST_BACK = 20000000, PLACES = 64 };

static OnigMatchParam *match_limits; /* no search changes them; NULL stands for Oniguruma's own limits */

static void initialize(void) {
    OnigEncoding encodings[] = {ONIG_ENCODING_UTF8};
    onig_initialize(encodings, 1);
    match_limits = onig_new_match_param();
    if (match_limits) onig_initialize_match_param(match_limits);
    if (match_limits) onig_set_retry_limit_in_search_of_match_param(match_limits, MOST_BACK);
}

static double seconds_of(clockid_t clock) {
    struct timespec time;
    return clock_gettime(clock, &time) ? 0 : (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

Limits attn_limits_of(size_t bytes) { return (Limits){65536 + 64 * bytes, 5 + 2e-6 * (double)bytes, 0, 0}; }

/* The thread's clock is slow to read; the function reads it only after the machine's clock has passed the limit. */
static bool is_late(Limits *limits) {
    if (limits->begun == 0) {
        limits->begun = seconds_of(CLOCK_MONOTONIC);
        limits->used = seconds_of(CLOCK_THREAD_CPUTIME_ID);
    }
    return seconds_of(CLOCK_MONOTONIC) - limits->begun > limits->seconds &&
           seconds_of(CLOCK_THREAD_CPUTIME_ID) - limits->used > limits->seconds;
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

typedef struct {
    regex_t *regex;
    const OnigUChar *text, *end;
    OnigRegion *region;
} Search;

static int search_at_once(const Search *s, const OnigUChar *from) {
    if (!match_limits) return onig_search(s->regex, s->text, s->end, from, s->end, s->region, ONIG_OPTION_NONE);
    return onig_search_with_param(s->regex, s->text, s->end, from, s->end, s->region, ONIG_OPTION_NONE, match_limits);
}

/* The clock is looked at between some places, since an expression may read the rest of the text at each of them. */
static int search_by_places(const Search *s, const OnigUChar *from, Limits *limits) {
    int places = 0;
    for (const OnigUChar *at = from; at <= s->end; at++) {
        if (at < s->end && (*at & 0xc0) == 0x80) continue;
        if (++places % PLACES == 0 && is_late(limits)) return ONIGERR_RETRY_LIMIT_IN_SEARCH_OVER;
        int size = match_limits ? onig_match_with_param(s->regex, s->text, s->end, at, s->region, ONIG_OPTION_NONE,
                                                        match_limits)
                                : onig_match(s->regex, s->text, s->end, at, s->region, ONIG_OPTION_NONE);
        if (size != ONIG_MISMATCH) return size < 0 ? size : (int)(at - s->text);
    }
    return ONIG_MISMATCH;
}

int attn_pattern_find(const Pattern *pattern, const char *text, size_t size, size_t from, size_t *begin, size_t *end,
                      Limits *limits) {
    if (size == 0) return 0;
    if (!pattern->regex) return find_literal(&pattern->literal, text, size, from, begin, end);
    if (is_late(limits)) return ATTN_TOKENIZER_PATTERN;
    OnigRegion region;
    onig_region_init(&region);
    const OnigUChar *first = (const OnigUChar *)text;
    const Search search = {pattern->regex, first, first + size, &region};
    const int at = size - from <= SHORT ? search_at_once(&search, first + from)
                                        : search_by_places(&search, first + from, limits);
    if (at >= 0) {
        *begin = (size_t)region.beg[0];
        *end = (size_t)region.end[0];
    }
    onig_region_free(&region, 0);
    if (at == ONIGERR_MEMORY) return ATTN_TOKENIZER_NO_MEMORY;
    return at >= 0 ? 1 : at == ONIG_MISMATCH ? 0 : ATTN_TOKENIZER_PATTERN;
}

int attn_next_match(const Pattern *pattern, Matches *m, Limits *limits) {
    size_t begin, end, step;
    for (int found; m->look <= m->size;) {
        found = attn_pattern_find(pattern, m->text, m->size, m->look, &begin, &end, limits);
        if (found <= 0) return found;
        if (begin < end || !m->any || end != m->end) {
            m->begin = begin;
            m->end = m->look = end;
            m->any = true;
            return 1;
        }
        if (m->look == m->size) return 0;
        attn_char_at(m->text + m->look, m->size - m->look, &step);
        m->look += step;
    }
    return 0;
}
