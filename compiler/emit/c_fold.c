/* c_fold.c: takes constants without effect out of a line of C: x + 0, 0 + x, x - 0, x * 1, 1 * x, x / 1, 0 * x.
 *
 * A template says `x + row * ${stride}` whatever the stride is, and need not ask for 0 and 1. The operands are integers
 * and addresses. Of a float, a sum with the integer 0 would lose the sign of -0.0f; templates write 0.0f there, which
 * stays. */
#include "emit.h"

#include <string.h>

typedef struct Token {
    size_t start, end; /* equal: there is none */
} Token;

/* A line being folded, and the three tokens in hand: two that were passed, and the one behind them. */
typedef struct Fold {
    char *line;
    size_t size;
    Token before, last, here;
} Fold;

static char byte_at(const Fold *f, size_t at) { return at < f->size ? f->line[at] : '\0'; }

static bool is_token(const Fold *f, Token token, const char *text) {
    size_t size = strlen(text);
    return token.end - token.start == size && memcmp(f->line + token.start, text, size) == 0;
}

static bool is_one_of(const Fold *f, Token token, const char *const *texts) {
    for (; *texts; texts++)
        if (is_token(f, token, *texts)) return true;
    return false;
}

static size_t comment_end(const Fold *f, size_t at) {
    while (at < f->size && !(f->line[at] == '*' && byte_at(f, at + 1) == '/')) at++;
    return at < f->size ? at + 2 : f->size;
}

/* A number's end: its exponent may have a sign. */
static size_t word_end(const Fold *f, size_t at) {
    bool number = !c_starts_name(f->line[at]);
    for (; at < f->size; at++) {
        char c = f->line[at];
        bool sign = (c == '+' || c == '-') && number && strchr("eEpP", f->line[at - 1]);
        if (!c_in_name(c) && !(c == '.' && number) && !sign) break;
    }
    return at;
}

static Token token_from(const Fold *f, size_t at) {
    for (;;) {
        while (byte_at(f, at) == ' ' || byte_at(f, at) == '\t') at++;
        if (byte_at(f, at) != '/' || byte_at(f, at + 1) != '*') break;
        at = comment_end(f, at + 2);
    }
    char c = byte_at(f, at), next = byte_at(f, at + 1);
    if (at >= f->size || (c == '/' && next == '/')) return (Token){f->size, f->size};
    if (c == '"' || c == '\'') return (Token){at, (size_t)(c_literal_end(f->line + at, f->line + f->size) - f->line)};
    if (c_in_name(c) || (c == '.' && next >= '0' && next <= '9')) return (Token){at, word_end(f, at)};
    bool twice = c == next && strchr("+-&|<>=", c);
    bool assigns = next == '=' && strchr("+-*/%<>!&|^", c);
    return (Token){at, at + (twice || assigns || (c == '-' && next == '>') ? 2 : 1)};
}

/* Whether an operand ends with this token. */
static bool ends_operand(const Fold *f, Token token) {
    static const char *const words[] = {"return", "case", "else", "sizeof", NULL};
    if (token.start == token.end || is_one_of(f, token, words)) return false;
    char last = f->line[token.end - 1];
    return c_in_name(last) || last == ')' || last == ']' || last == '.';
}

/* Whether what follows this token is the whole left side of a sum. */
static bool begins_sum(const Fold *f, Token token) {
    static const char *const tokens[] = {"(",  "[",  "{",  ",",  ";",  "=",  "?",  ":",    "return", "<", ">",
                                         "<=", ">=", "==", "!=", "&&", "||", "+=", "case", NULL};
    return token.end > token.start && is_one_of(f, token, tokens);
}

static bool begins_product(const Fold *f, Token token) {
    static const char *const signs[] = {"+", "-", NULL};
    return begins_sum(f, token) || is_one_of(f, token, signs);
}

/* Whether a sum's last product ends before this token. */
static bool ends_product(const Fold *f, Token token) {
    static const char *const tokens[] = {")", "]", ",", ";", "}",  "+",  "-",  "?",  ":",
                                         "<", ">", "<=", ">=", "==", "!=", "&&", "||", NULL};
    return token.end > token.start && is_one_of(f, token, tokens);
}

/* Returns the position behind the bracket that closes `open`, or 0 if there is none or if something between the two
 * has an effect. */
static size_t closing_end(const Fold *f, Token open) {
    static const char *const effects[] = {"=", "++", "--", "+=", "-=", "*=", "/=", "%=", "{", ";", NULL};
    int depth = 1;
    bool name = false;
    for (Token t = token_from(f, open.end); t.end > t.start; t = token_from(f, t.end)) {
        if (is_one_of(f, t, effects) || (name && is_token(f, t, "("))) return 0;
        if (is_token(f, t, "(") || is_token(f, t, "[")) depth++;
        if (is_token(f, t, ")") || is_token(f, t, "]")) depth--;
        if (!depth) return t.end;
        name = c_starts_name(f->line[t.start]);
    }
    return 0;
}

/* Returns the end of the operand that begins with `token`, which is a name, a number or brackets, then members and
 * elements; or 0 if there is no operand, or if the operand has an effect and must stay. */
static size_t operand_end(const Fold *f, Token token) {
    if (token.start == token.end) return 0;
    bool bracket = is_token(f, token, "(");
    if (!bracket && !c_in_name(f->line[token.start])) return 0;
    size_t end = bracket ? closing_end(f, token) : token.end;
    while (end) {
        Token next = token_from(f, end);
        if (next.start == next.end) return 0;
        char c = f->line[next.start];
        bool call_or_cast = c == '(' || c_in_name(c);
        if (is_token(f, next, "++") || is_token(f, next, "--") || call_or_cast) return 0;
        if (is_token(f, next, ".") || is_token(f, next, "->")) end = token_from(f, next.end).end;
        else if (c == '[') end = closing_end(f, next);
        else return end;
    }
    return 0;
}

static void take_out(Fold *f, size_t from, size_t to) {
    memmove(f->line + from, f->line + to, f->size - to);
    f->size -= to - from;
}

/* Takes out the operation in which the constant in hand has no effect; returns false if there is no such operation. */
static bool fold_here(Fold *f) {
    Token next = token_from(f, f->here.end), behind = token_from(f, next.end);
    bool zero = f->line[f->here.start] == '0';
    const char *sum[] = {"+", "-", NULL}, *product[] = {"*", "/", NULL};
    bool has_left = ends_operand(f, f->before);
    if (has_left && is_one_of(f, f->last, zero ? sum : product) && (!zero || ends_product(f, next))) {
        take_out(f, f->before.end, f->here.end);
        return true;
    }
    bool plus = zero && is_token(f, next, "+") && begins_sum(f, f->last);
    bool times = !zero && is_token(f, next, "*") && begins_product(f, f->last);
    if ((plus || times) && behind.end > behind.start) {
        take_out(f, f->here.start, behind.start);
        return true;
    }
    if (!zero || !is_token(f, next, "*") || !begins_product(f, f->last)) return false;
    size_t end = operand_end(f, behind);
    if (end) take_out(f, f->here.end, end);
    return end != 0;
}

static bool is_sign(char c) { return c == '+' || c == '-' || c == '*' || c == '/'; }

bool c_may_fold(const char *line, size_t size, size_t i) {
    if (!i || i + 1 >= size || c_in_name(line[i - 1]) || c_in_name(line[i + 1])) return false;
    size_t before = i - 1, behind = i + 1;
    while (before && line[before] == ' ') before--;
    while (behind + 1 < size && line[behind] == ' ') behind++;
    return is_sign(line[before]) || is_sign(line[behind]);
}

void c_fold(Text *line, bool in_comment) {
    Fold f = {.line = line->data, .size = line->size};
    size_t first = in_comment ? comment_end(&f, 0) : 0;
    f.here = token_from(&f, first);
    while (f.here.end > f.here.start) {
        bool constant = is_token(&f, f.here, "0") || is_token(&f, f.here, "1");
        bool folded = constant && fold_here(&f);
        if (folded) f.before = f.last = (Token){0, 0}; /* the line is read again, since the rest may fold too */
        else f.before = f.last, f.last = f.here;
        f.here = token_from(&f, folded ? first : f.here.end);
    }
    line->size = f.size;
}
