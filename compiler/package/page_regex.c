/* page_regex.c: regular expressions of a tokenizer.json, which Oniguruma reads in Ruby's syntax, in that of JavaScript
 * with the flag u. What differs is spelled out: classes of characters by Unicode, anchors, letters of either case, and
 * possessive operators and atomic groups, which become a lookahead and a reference to what it found. */
#include "page.h"

#include <string.h>

typedef struct Regex {
    const char *at, *end;
    Text *out;
    const char *why; /* NULL: fine so far */
    int names;       /* of groups that stand for atomic ones */
    int depth;
    bool any_case, dot_all, behind; /* within (?i:), (?m:) and a lookbehind */
} Regex;

/* White_Space, and every other character. */
#define SPACE "\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000"
#define NOT_SPACE "\\0-\\x08\\x0e-\\x1f!-\\x84\\x86-\\x9f\\xa1-\\u167f\\u1681-\\u1fff\\u200b-\\u2027\\u202a-\\u202e" \
    "\\u2030-\\u205e\\u2060-\\u2fff\\u3001-\\u{10ffff}"
#define WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}"
#define HEX "0-9A-Fa-f"
#define END "(?![\\s\\S])"
#define BEGIN "(?<![\\s\\S])"

enum { MOST_DEPTH = 100 };

static void refuse(Regex *r, const char *why) {
    if (!r->why) r->why = why;
    r->at = r->end;
}

static bool take(Regex *r, const char *text) {
    const size_t size = strlen(text);
    if ((size_t)(r->end - r->at) < size || memcmp(r->at, text, size) != 0) return false;
    r->at += size;
    return true;
}

static bool is_letter(unsigned c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static bool is_digit(unsigned c) { return c >= '0' && c <= '9'; }

static void put(Regex *r, const char *text) { text_printf(r->out, "%s", text); }

/* Takes the text that stands there, if `pairs` {text, in JavaScript} has it, and puts what it has for it. */
static bool replace(Regex *r, const char *const (*pairs)[2], size_t count) {
    for (size_t i = 0; i < count; i++)
        if (take(r, pairs[i][0])) return put(r, pairs[i][1]), true;
    return false;
}

static void put_char(Regex *r, uint32_t c) {
    if (c < 0x80 && (is_letter(c) || is_digit(c) || strchr(" _'\",;:!@#%&=<>~`", (int)c)) && c)
        text_printf(r->out, "%c", (int)c);
    else text_printf(r->out, "\\u{%x}", (unsigned)c);
}

/* The letters whose case is folded to the same one. */
static void put_cases(Regex *r, uint32_t c) {
    put_char(r, c);
    if (!is_letter(c)) return;
    put_char(r, c ^ 0x20);
    if ((c | 0x20) == 'k') put(r, "\\u212a");
    if ((c | 0x20) == 's') put(r, "\\u017f");
}

/* A character as it stands there, in UTF-8. */
static uint32_t next_char(Regex *r) {
    const unsigned char *at = (const unsigned char *)r->at;
    const size_t size = utf8_bytes(at, (size_t)(r->end - r->at));
    if (!size) return refuse(r, "bytes that are not UTF-8"), 0;
    r->at += size;
    if (size == 1) return at[0];
    uint32_t c = at[0] & (0xffu >> (size + 1));
    for (size_t i = 1; i < size; i++) c = c << 6 | (at[i] & 0x3fu);
    return c;
}

/* `most` hexadecimal digits; at least one. */
static uint32_t hexadecimal(Regex *r, int most) {
    uint32_t c = 0;
    int n = 0;
    for (; n < most && r->at < r->end; n++, r->at++) {
        const unsigned d = (unsigned char)*r->at;
        if (is_digit(d)) c = c << 4 | (d - '0');
        else if ((d | 0x20) >= 'a' && (d | 0x20) <= 'f') c = c << 4 | ((d | 0x20) - 'a' + 10);
        else break;
    }
    if (!n || c > 0x10ffff) refuse(r, "a character in hexadecimal that is none");
    return c;
}

/* The character of an escape whose letter is behind r->at; false where the escape is another one. */
static bool escaped_char(Regex *r, uint32_t *c) {
    static const char names[] = "nrtfvae", chars[] = "\n\r\t\f\v\a\x1b";
    const unsigned char letter = (unsigned char)*r->at;
    const char *named = letter ? strchr(names, letter) : NULL;
    if (named) return r->at++, *c = (uint32_t)chars[named - names], true;
    if (letter == 'x') {
        r->at++;
        const bool braces = take(r, "{");
        *c = hexadecimal(r, braces ? 8 : 2);
        if (!braces && *c > 0x7f) refuse(r, "a byte beyond ASCII");
        if (braces && !take(r, "}")) refuse(r, "a character in hexadecimal that is none");
        return true;
    }
    if (letter == 'u') return r->at++, *c = hexadecimal(r, 4), true;
    if (is_letter(letter) || is_digit(letter)) return false;
    return *c = next_char(r), true;
}

/* ---------------------------------------------------------------- classes */

/* Properties by their names in Oniguruma, and in JavaScript where that is another one. */
static const char *const properties[][2] = {
    {"Letter", "L"}, {"Mark", "M"}, {"Number", "N"}, {"Punctuation", "P"}, {"Symbol", "S"}, {"Separator", "Z"},
    {"Alpha", "Alphabetic"}, {"Alphabetic", "Alphabetic"}, {"Digit", "Nd"}, {"Lower", "Lowercase"},
    {"Upper", "Uppercase"}, {"Lowercase", "Lowercase"}, {"Uppercase", "Uppercase"}, {"White_Space", "White_Space"},
    {"Space", "White_Space"}, {"Ideographic", "Ideographic"}};
static const char *const scripts[] = {"Arabic", "Armenian", "Bengali", "Cyrillic", "Devanagari", "Georgian", "Greek",
    "Gujarati", "Han", "Hangul", "Hebrew", "Hiragana", "Kannada", "Katakana", "Khmer", "Lao", "Latin", "Malayalam",
    "Mongolian", "Myanmar", "Sinhala", "Tamil", "Telugu", "Thai", "Tibetan"};

static const char *property_of(Arena *arena, const char *name) {
    static const char categories[] = " L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z "
                                     "Zs Zl Zp C Cc Cf Co ";
    if (strstr(categories, arena_printf(arena, " %s ", name))) return name;
    for (size_t i = 0; i < sizeof properties / sizeof *properties; i++)
        if (strcmp(name, properties[i][0]) == 0) return properties[i][1];
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
        if (strcmp(name, scripts[i]) == 0) return arena_printf(arena, "Script=%s", name);
    return NULL;
}

/* {NAME} or {^NAME}, behind \p or \P. */
static void property(Regex *r, bool other) {
    if (!take(r, "{")) return refuse(r, "a property without its name");
    if (take(r, "^")) other = !other;
    const char *close = memchr(r->at, '}', (size_t)(r->end - r->at));
    const char *name = close ? property_of(r->out->arena, arena_copy(r->out->arena, r->at, (size_t)(close - r->at)))
                             : NULL;
    if (!name) return refuse(r, "a property that is not known here");
    if (r->any_case && (strstr(" Lu Ll Lt ", arena_printf(r->out->arena, " %s ", name)) || text_ends(name, "case")))
        return refuse(r, "letters of one case within (?i:)");
    text_printf(r->out, "\\%c{%s}", other ? 'P' : 'p', name);
    r->at = close + 1;
}

/* The escape of a class of characters as items of a class; false where the escape is another one. */
static bool escaped_class(Regex *r) {
    static const char *const classes[][2] = {{"s", SPACE}, {"S", NOT_SPACE}, {"d", "\\p{Nd}"}, {"D", "\\P{Nd}"},
                                             {"w", WORD}, {"h", HEX}};
    if (replace(r, classes, sizeof classes / sizeof *classes)) return true;
    if (take(r, "p")) return property(r, false), true;
    if (take(r, "P")) return property(r, true), true;
    return false;
}

static bool posix_class(Regex *r) {
    static const char *const classes[][2] = {{"[:alpha:]", "\\p{Alphabetic}"}, {"[:digit:]", "\\p{Nd}"},
                                             {"[:space:]", SPACE}, {"[:word:]", WORD}, {"[:xdigit:]", HEX},
                                             {"[:alnum:]", "\\p{Alphabetic}\\p{Nd}"}};
    return replace(r, classes, sizeof classes / sizeof *classes);
}

/* One character of a class; false where it is a class of its own, which is then put. */
static bool class_char(Regex *r, uint32_t *c) {
    if (!take(r, "\\")) return *c = next_char(r), true;
    if (r->at == r->end) return refuse(r, "an escape without its letter"), true;
    if (escaped_class(r)) return false;
    if (take(r, "b")) return *c = '\b', true;
    if (escaped_char(r, c)) return true;
    return refuse(r, "an escape in a class that is not known here"), true;
}

static void put_range(Regex *r, uint32_t first, uint32_t last) {
    if (first > last) return refuse(r, "a range that ends before it begins");
    if (!r->any_case) {
        put_char(r, first);
        if (last > first) put(r, "-"), put_char(r, last);
        return;
    }
    if (last > 0x7f) return refuse(r, "characters beyond ASCII within (?i:)");
    for (uint32_t c = first; c <= last; c++) put_cases(r, c);
}

static void class_items(Regex *r) {
    bool first_item = true;
    if (++r->depth > MOST_DEPTH) return refuse(r, "classes within classes, too deep");
    for (; !r->why; first_item = false) {
        if (r->at == r->end) return refuse(r, "a class without its end");
        if (take(r, "]")) {
            if (first_item) return refuse(r, "a class that begins with its end");
            break;
        }
        if (take(r, "&&")) return refuse(r, "the intersection of classes");
        if (posix_class(r)) continue;
        if (take(r, "[")) {
            if (r->at < r->end && (*r->at == '^' || *r->at == ':')) return refuse(r, "a class without another one");
            class_items(r);
            continue;
        }
        uint32_t first = 0, last;
        if (!class_char(r, &first)) continue;
        last = first;
        if (r->end - r->at >= 2 && r->at[0] == '-' && r->at[1] != ']') {
            r->at++;
            if (*r->at == '[' || !class_char(r, &last)) return refuse(r, "a range that ends in a class");
        }
        if (!r->why) put_range(r, first, last);
    }
    r->depth--;
}

static void class(Regex *r) {
    if (take(r, "\\s\\S]") || take(r, "\\S\\s]")) return put(r, "[\\s\\S]"); /* any character */
    put(r, take(r, "^") ? "[^" : "[");
    class_items(r);
    put(r, "]");
}

/* ---------------------------------------------------------------- atoms */

static void alternatives(Regex *r);

static void escape(Regex *r) {
    static const char *const anchors[][2] = {
        {"A", BEGIN}, {"z", END}, {"Z", "(?=\\n?" END ")"}, {"W", "[^" WORD "]"}, {"H", "[^" HEX "]"},
        {"b", "(?:(?<=[" WORD "])(?![" WORD "])|(?<![" WORD "])(?=[" WORD "]))"},
        {"B", "(?:(?<=[" WORD "])(?=[" WORD "])|(?<![" WORD "])(?![" WORD "]))"}};
    uint32_t c;
    if (r->at == r->end) return refuse(r, "an escape without its letter");
    if (replace(r, anchors, sizeof anchors / sizeof *anchors)) return;
    const size_t from = r->out->size;
    put(r, "[");
    if (escaped_class(r)) return put(r, "]");
    r->out->size = from;
    if (!escaped_char(r, &c)) return refuse(r, "an escape that is not known here");
    put_char(r, c);
}

/* The name of a group, to which nothing refers: escapes that refer to groups are refused. */
static bool take_name(Regex *r) {
    const char *close = r->end - r->at > 2 && r->at[0] == '?' && r->at[1] == '<' && strchr("=!", r->at[2]) == NULL
                            ? memchr(r->at, '>', (size_t)(r->end - r->at))
                            : NULL;
    if (!close || close == r->at + 2) return false;
    r->at = close + 1;
    return true;
}

/* What is behind the bracket that opens a group, up to the one that closes it. */
static void group(Regex *r) {
    static const char *const plain[] = {"?:", "?=", "?!", "?<=", "?<!"};
    const Regex outer = *r;
    bool atomic = false, known = false;
    for (size_t i = 0; i < sizeof plain / sizeof *plain && !known; i++)
        if ((known = take(r, plain[i]))) {
            text_printf(r->out, "(%s", plain[i]);
            r->behind |= plain[i][1] == '<';
        }
    if (!known && take(r, "?>")) {
        atomic = true;
        text_printf(r->out, "(?:(?=(?<a%d>", ++r->names);
    } else if (!known) {
        if (take(r, "?i:")) r->any_case = true;
        else if (take(r, "?m:")) r->dot_all = true;
        else if (!take_name(r) && r->at < r->end && *r->at == '?')
            return refuse(r, "a group of a kind that is not known here");
        put(r, "(?:"); /* nothing refers to a captured text */
    }
    const int name = r->names;
    if (atomic && r->behind) return refuse(r, "an atomic group in a lookbehind");
    if (++r->depth > MOST_DEPTH) return refuse(r, "groups within groups, too deep");
    alternatives(r);
    if (!take(r, ")")) return refuse(r, "a group without its end");
    if (atomic) text_printf(r->out, "))\\k<a%d>)", name);
    else put(r, ")");
    r->any_case = outer.any_case, r->dot_all = outer.dot_all, r->behind = outer.behind, r->depth = outer.depth;
}

/* Two letters that Oniguruma also finds as one character, such as U+00DF, where it ignores case. */
static bool folds_together(uint32_t a, uint32_t b) {
    static const char *const pairs[] = {"ss", "ff", "fi", "fl", "st"};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if ((a | 0x20) == (uint32_t)pairs[i][0] && (b | 0x20) == (uint32_t)pairs[i][1]) return true;
    return false;
}

static void literal(Regex *r) {
    const uint32_t c = next_char(r);
    if (!r->any_case) return put_char(r, c);
    if (c > 0x7f) return refuse(r, "characters beyond ASCII within (?i:)");
    if (r->at < r->end && folds_together(c, (unsigned char)*r->at))
        return refuse(r, "letters within (?i:) that stand for a single character, too");
    put(r, "[");
    put_cases(r, c);
    put(r, "]");
}

/* ---------------------------------------------------------------- repetition */

/* {n}, {n,}, {,m} or {n,m} at r->at: its text and whether it is {n}; false where the brace stands for itself. */
static bool counts(Regex *r, const char **text, bool *exact) {
    const char *at = r->at + 1, *first = at, *second = NULL;
    while (at < r->end && is_digit((unsigned char)*at)) at++;
    const size_t n = (size_t)(at - first);
    size_t m = 0;
    if (at < r->end && *at == ',') {
        second = ++at;
        while (at < r->end && is_digit((unsigned char)*at)) at++;
        m = (size_t)(at - second);
    }
    if (at == r->end || *at != '}' || (!n && !m)) return false;
    if (n > 5 || m > 5) return refuse(r, "a repetition of more than 99999"), true;
    *exact = !second;
    *text = arena_printf(r->out->arena, "{%.*s%s%.*s}", n ? (int)n : 1, n ? first : "0", second ? "," : "", (int)m,
                         second ? second : "");
    r->at = at + 1;
    return true;
}

/* The operators behind an atom, which begins at `from` in the output. */
static void repetition(Regex *r, size_t from) {
    while (r->at < r->end && !r->why) {
        const char *sign = NULL;
        bool exact = false, braces = false;
        if (take(r, "*")) sign = "*";
        else if (take(r, "+")) sign = "+";
        else if (take(r, "?")) sign = "?";
        else if (!(braces = *r->at == '{' && counts(r, &sign, &exact))) return;
        if (r->why) return;
        const char *atom = arena_copy(r->out->arena, r->out->data + from, r->out->size - from);
        r->out->size = from;
        if (r->at < r->end && *r->at == '?') {
            if (exact) return refuse(r, "a question mark behind a count");
            r->at++;
            text_printf(r->out, "(?:%s%s?)", atom, sign);
        } else if (!braces && take(r, "+")) {
            if (r->behind) return refuse(r, "a possessive operator in a lookbehind");
            r->names++;
            text_printf(r->out, "(?:(?=(?<a%d>%s%s))\\k<a%d>)", r->names, atom, sign, r->names);
        } else {
            text_printf(r->out, "(?:%s%s)", atom, sign);
        }
    }
}

static void sequence(Regex *r) {
    while (r->at < r->end && *r->at != '|' && *r->at != ')' && !r->why) {
        const size_t from = r->out->size;
        bool anchor = false;
        if (take(r, "(")) {
            const bool behind = r->end - r->at > 2 && r->at[1] == '<';
            anchor = r->end - r->at > 2 && r->at[0] == '?' && strchr("=!", r->at[behind ? 2 : 1]);
            group(r);
        } else if (take(r, "[")) class(r);
        else if (take(r, "\\")) escape(r);
        else if (take(r, ".")) put(r, r->dot_all ? "[\\s\\S]" : "[^\\n]");
        else if (take(r, "^")) anchor = true, put(r, "(?:" BEGIN "|(?<=\\n)(?=[\\s\\S]))");
        else if (take(r, "$")) anchor = true, put(r, "(?![^\\n])");
        else if (strchr("*+?", *r->at)) refuse(r, "an operator behind nothing");
        else literal(r);
        if (anchor && r->at < r->end && strchr("*+?", *r->at)) refuse(r, "a repeated anchor");
        if (!r->why && !anchor) repetition(r, from);
    }
}

static void alternatives(Regex *r) {
    sequence(r);
    while (take(r, "|")) {
        put(r, "|");
        sequence(r);
    }
}

const char *page_regex(const char *regex, Text *out) {
    Regex r = {.at = regex, .end = regex + strlen(regex), .out = out};
    if (take(&r, "(?i)")) r.any_case = true;
    else if (take(&r, "(?m)")) r.dot_all = true;
    alternatives(&r);
    if (r.at < r.end && !r.why) refuse(&r, "a bracket that closes no group");
    return r.why;
}
