/* json_line.c: the text of one line of JSON. A line is read once, without a tree, and a string is decoded in its place,
 * where it never grows. cJSON is not used because it accepts what RFC 8259 does not and ends a string at an encoded
 * NUL. */
#include "embed.h"

#include <string.h>

enum { MOST_DEPTH = 500 };

typedef struct Line {
    char *at, *end;
    Fault fault; /* the first */
} Line;

static void skip_spaces(Line *l) {
    while (l->at < l->end && (*l->at == ' ' || *l->at == '\t' || *l->at == '\r' || *l->at == '\n')) l->at++;
}

static bool wrong(Line *l, Fault fault) {
    if (!l->fault) l->fault = fault;
    return false;
}

static bool accept(Line *l, char wanted) {
    skip_spaces(l);
    if (l->at == l->end || *l->at != wanted) return false;
    l->at++;
    return true;
}

static bool accept_word(Line *l, const char *word) {
    const size_t size = strlen(word);
    if ((size_t)(l->end - l->at) < size || memcmp(l->at, word, size) != 0) return false;
    l->at += size;
    return true;
}

static bool hex4(Line *l, unsigned *out) {
    *out = 0;
    if (l->end - l->at < 4) return false;
    for (int i = 0; i < 4; i++) {
        const char c = *l->at++;
        if (c >= '0' && c <= '9') *out = *out << 4 | (unsigned)(c - '0');
        else if ((c | 32) >= 'a' && (c | 32) <= 'f') *out = *out << 4 | (unsigned)((c | 32) - 'a' + 10);
        else return false;
    }
    return true;
}

static char *put_utf8(char *to, unsigned point) {
    if (point < 0x80) return *to = (char)point, to + 1;
    const int more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
    static const unsigned char heads[] = {0, 0xc0, 0xe0, 0xf0};
    *to++ = (char)(heads[more] | point >> 6 * more);
    for (int i = more - 1; i >= 0; i--) *to++ = (char)(0x80 | (point >> 6 * i & 0x3f));
    return to;
}

/* The digits of \u, and those of the other half of a surrogate pair, which a \u must follow. */
static bool escaped_point(Line *l, unsigned *point, bool *half) {
    unsigned low;
    if (!hex4(l, point)) return false;
    if (*point < 0xd800 || *point > 0xdfff) return true;
    *half = true;
    if (*point > 0xdbff || !accept_word(l, "\\u")) return true;
    if (!hex4(l, &low)) return false;
    if (low < 0xdc00 || low > 0xdfff) return true;
    *half = false;
    *point = 0x10000 + ((*point - 0xd800) << 10) + (low - 0xdc00);
    return true;
}

/* Reads a string after its first quote, and decodes it where it stands. *half: it has half of a surrogate pair. */
static bool string(Line *l, char **text, size_t *bytes, bool *half) {
    static const char names[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    char *to = *text = l->at;
    *half = false;
    while (l->at < l->end && *l->at != '"') {
        if ((unsigned char)*l->at < 0x20) return wrong(l, FAULT_JSON);
        if (*l->at != '\\') {
            *to++ = *l->at++;
            continue;
        }
        if (++l->at == l->end) return wrong(l, FAULT_JSON);
        const char *found = *l->at ? strchr(names, *l->at) : NULL;
        const bool numbered = *l->at++ == 'u';
        unsigned point = 0;
        if (found) *to++ = meant[found - names];
        else if (!numbered || !escaped_point(l, &point, half)) return wrong(l, FAULT_JSON);
        else to = put_utf8(to, point);
    }
    *bytes = (size_t)(to - *text);
    return accept(l, '"') || wrong(l, FAULT_JSON);
}

static bool digits(Line *l) {
    const char *begin = l->at;
    while (l->at < l->end && *l->at >= '0' && *l->at <= '9') l->at++;
    return l->at > begin;
}

static bool number(Line *l) {
    accept_word(l, "-");
    if (!accept_word(l, "0") && !digits(l)) return false;
    if (accept_word(l, ".") && !digits(l)) return false;
    if (accept_word(l, "e") || accept_word(l, "E")) {
        if (!accept_word(l, "+")) accept_word(l, "-");
        return digits(l);
    }
    return true;
}

static bool skip_value(Line *l, int depth);

static bool skip_members(Line *l, int depth, char end) {
    char *key;
    size_t bytes;
    bool half;
    if (depth == MOST_DEPTH) return wrong(l, FAULT_DEEP);
    if (accept(l, end)) return true;
    do {
        if (end == '}' && !(accept(l, '"') && string(l, &key, &bytes, &half) && accept(l, ':')))
            return wrong(l, FAULT_JSON);
        if (!skip_value(l, depth + 1)) return false;
    } while (accept(l, ','));
    return accept(l, end) || wrong(l, FAULT_JSON);
}

static bool skip_value(Line *l, int depth) {
    char *text;
    size_t bytes;
    bool half;
    if (accept(l, '"')) return string(l, &text, &bytes, &half);
    if (accept(l, '{')) return skip_members(l, depth, '}');
    if (accept(l, '[')) return skip_members(l, depth, ']');
    return accept_word(l, "true") || accept_word(l, "false") || accept_word(l, "null") || number(l) ||
           wrong(l, FAULT_JSON);
}

/* Reads an object after its first bracket. What follows the field is read too: the line may be no JSON after all. */
static bool object(Line *l, const char *field, char **text, size_t *bytes) {
    const size_t size = strlen(field);
    Fault found = FAULT_NO_FIELD;
    if (!accept(l, '}')) {
        do {
            char *key;
            size_t key_bytes;
            bool half;
            if (!(accept(l, '"') && string(l, &key, &key_bytes, &half) && accept(l, ':'))) return wrong(l, FAULT_JSON);
            const bool wanted = key_bytes == size && memcmp(key, field, size) == 0;
            if (wanted && accept(l, '"')) {
                if (!string(l, text, bytes, &half)) return false;
                found = found != FAULT_NO_FIELD ? FAULT_TWICE : half ? FAULT_SURROGATE : FAULT_NONE;
            } else {
                if (!skip_value(l, 1)) return false;
                if (wanted) found = found != FAULT_NO_FIELD ? FAULT_TWICE : FAULT_NO_STRING;
            }
        } while (accept(l, ','));
        if (!accept(l, '}')) return wrong(l, FAULT_JSON);
    }
    l->fault = found;
    return true;
}

Fault json_line(char **text, size_t *bytes, const char *field) {
    Line l = {*text, *text + *bytes, FAULT_NONE};
    bool half = false;
    skip_spaces(&l);
    if (l.at == l.end) return FAULT_EMPTY;
    if (accept(&l, '"')) {
        if (string(&l, text, bytes, &half) && half) l.fault = FAULT_SURROGATE;
    } else if (accept(&l, '{')) {
        object(&l, field, text, bytes);
    } else if (skip_value(&l, 0)) {
        l.fault = FAULT_KIND;
    }
    skip_spaces(&l);
    return l.at != l.end && l.fault != FAULT_DEEP ? FAULT_JSON : l.fault;
}
