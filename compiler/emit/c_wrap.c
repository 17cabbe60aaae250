/* c_wrap.c: breaks a line of C that has more than C_COLUMNS columns.
 *
 * Statements that share a line get lines of their own, and the body of an `if` or of a loop stands 4 columns further
 * in, as what follows a `case` does. A statement that is still too long is broken behind a comma or an operator, where
 * the fewest brackets are open; all of it but its begin stands 4 columns further in. A comment behind code moves in
 * front of it. */
#include "emit.h"

#include <limits.h>
#include <string.h>

enum { INDENT = 4, MOST_DEPTH = 16 };

/* Ranks of breaks where as many brackets are open: the operators that bind loosest come first. Only where there is none
 * of them, a line is broken behind an assignment, a bracket or a word. */
enum { RANK_COMMA, RANK_CHOICE, RANKS = 9, ASSIGNMENT = RANKS * MOST_DEPTH, BRACKET, WORD, NO_BREAK };

static const struct {
    const char *text;
    int rank;
} operators[] = {{"?", RANK_CHOICE}, {":", RANK_CHOICE}, {"||", 2}, {"&&", 3}, {"==", 4}, {"!=", 4}, {"<", 4}, {">", 4},
                 {"<=", 4}, {">=", 4}, {"|", 5}, {"^", 5}, {"&", 5}, {"<<", 6}, {">>", 6}, {"+", 7}, {"-", 7}, {"*", 8},
                 {"/", 8}, {"%", 8}, {"=", ASSIGNMENT}, {"+=", ASSIGNMENT}, {"-=", ASSIGNMENT},
                 {"|=", ASSIGNMENT}};

/* A part of the line. */
typedef struct Piece {
    const char *at, *end;
} Piece;

static Piece trimmed(const char *at, const char *end) {
    while (at < end && *at == ' ') at++;
    while (end > at && end[-1] == ' ') end--;
    return (Piece){at, end};
}

static bool begins(Piece piece, const char *word) {
    size_t size = strlen(word);
    return (size_t)(piece.end - piece.at) >= size && memcmp(piece.at, word, size) == 0;
}

static bool fits(Piece piece, size_t column) { return column + (size_t)(piece.end - piece.at) <= C_COLUMNS; }

static void put_spaces(Text *out, size_t columns) {
    static const char spaces[] = "                                ";
    for (; columns >= sizeof spaces; columns -= sizeof spaces - 1) text_add(out, spaces, sizeof spaces - 1);
    text_add(out, spaces, columns);
}

static void put(Text *out, Piece piece, size_t column, const char *end) {
    put_spaces(out, column);
    text_add(out, piece.at, (size_t)(piece.end - piece.at));
    text_add(out, end, strlen(end));
    text_add(out, "\n", 1);
}

/* The effect of a character on the open brackets. LITERAL and COMMENT begin text that is passed over whole. A line may
 * be broken at every kind but PLAIN. */
enum { PLAIN, SPACE, OPENS, CLOSES, LITERAL, COMMENT };
static const unsigned char kinds[UCHAR_MAX + 1] = {[' '] = SPACE,   ['('] = OPENS,  ['['] = OPENS,   ['{'] = OPENS,
                                                   [')'] = CLOSES,  [']'] = CLOSES, ['}'] = CLOSES,
                                                   ['"'] = LITERAL, ['\''] = LITERAL, ['/'] = COMMENT};

/* Returns the position behind the comment that was begun. */
static const char *comment_end(const char *at, const char *end) {
    for (; at + 1 < end; at++)
        if (at[0] == '*' && at[1] == '/') return at + 2;
    return end;
}

/* Returns the position behind the character, literal or comment at `at`. */
static const char *next(const char *at, const char *end, int *depth) {
    int kind = kinds[(unsigned char)*at];
    if (kind == PLAIN) return at + 1;
    if (kind == LITERAL) return c_literal_end(at, end);
    if (kind == COMMENT && at + 1 < end && at[1] == '*') return comment_end(at + 2, end);
    *depth += (kind == OPENS) - (kind == CLOSES);
    return at + 1;
}

/* ---------------------------------------------------------------- within a statement */

/* The level of a break at a space or behind a bracket; a lower level is a better break. */
static int level_of(const char *begin, const char *at, int depth) {
    if (*at == '(') return BRACKET;
    if (*at != ' ' || at == begin) return NO_BREAK;
    int open = depth < 0 ? 0 : depth < MOST_DEPTH ? depth : MOST_DEPTH - 1;
    if (at[-1] == ',' || at[-1] == ';') return open * RANKS + RANK_COMMA;
    const char *from = at;
    while (from > begin && from[-1] != ' ' && at - from < 3) from--;
    if (from == begin || from[-1] != ' ' || c_in_name(*from) || at - from > 2) return WORD;
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        const char *text = operators[i].text;
        if (text[0] != from[0] || (at - from == 1 ? text[1] : text[1] != from[1]) != 0) continue;
        return operators[i].rank < RANKS ? open * RANKS + operators[i].rank : operators[i].rank;
    }
    return WORD;
}

/* A place to break a line: the columns of the line that ends there, which are 0 if there is no place, and the brackets
 * that are open. */
typedef struct Break {
    int level;
    size_t columns;
    int depth;
} Break;

/* Keeps the shallower of two breaks, and the later one if they are equally deep. */
static void keep(Break *best, Break found) {
    if (!best->columns || found.level <= best->level) *best = found;
}

/* Chooses the end of the first line of `piece`. That line has `room` columns, and the next line has `next_room`. The
 * best break is the shallowest after which no other is needed, then the shallowest in the right half of the line, then
 * the last. */
static Break best_break(Piece piece, int depth, size_t room, size_t next_room) {
    Break enough = {0, 0, 0}, right = {0, 0, 0}, last = {0, 0, 0}, other = {0, 0, 0};
    size_t size = (size_t)(piece.end - piece.at), least = size > next_room + 1 ? size - next_room - 1 : 1;
    const char *limit = piece.at + (room + 1 < size ? room + 1 : size);
    for (const char *at = piece.at; at < limit;) {
        if (kinds[(unsigned char)*at] == PLAIN) {
            at++;
            continue;
        }
        int level = level_of(piece.at, at, depth);
        size_t columns = (size_t)(at - piece.at) + (level == BRACKET);
        at = next(at, piece.end, &depth);
        if (level == NO_BREAK || columns > room) continue;
        Break found = {level, columns, depth};
        if (level >= ASSIGNMENT) {
            keep(&other, found);
            continue;
        }
        if (columns >= least) keep(&enough, found);
        if (columns > room / 2) keep(&right, found);
        last = found;
    }
    return enough.columns ? enough : right.columns ? right : last.columns ? last : other;
}

/* Each line but the last ends in `goes_on`. */
static void wrap_statement(Text *out, Piece piece, size_t column, const char *goes_on) {
    size_t most = C_COLUMNS - strlen(goes_on), further = column + INDENT;
    int depth = 0;
    for (bool first = true; !fits(piece, column); first = false) {
        Break where = best_break(piece, depth, most > column ? most - column : 0, most > further ? most - further : 0);
        if (!where.columns) break;
        put(out, (Piece){piece.at, piece.at + where.columns}, column, goes_on);
        if (first) column = further;
        piece = trimmed(piece.at + where.columns, piece.end);
        depth = where.depth;
    }
    put(out, piece, column, "");
}

/* ---------------------------------------------------------------- statements */

/* Returns the position behind the first `mark` that stands outside of brackets and in front of a space, or the end. */
static const char *behind(Piece piece, char mark) {
    /* most lines have a `;` at their end alone */
    if (piece.at == piece.end || !memchr(piece.at, mark, (size_t)(piece.end - piece.at) - 1)) return piece.end;
    int depth = 0;
    for (const char *at = piece.at; at < piece.end; at = next(at, piece.end, &depth))
        if (*at == mark && depth == 0 && at + 1 < piece.end && at[1] == ' ') return at + 1;
    return piece.end;
}

/* Returns the position behind the bracket that closes the first bracket. */
static const char *closing(Piece piece) {
    int depth = 0;
    for (const char *at = piece.at; at < piece.end;) {
        bool closes = *at == ')' || *at == '}';
        at = next(at, piece.end, &depth);
        if (closes && depth == 0) return at;
    }
    return piece.end;
}

/* Returns the end of an `if (...)` or the like in front of a body without braces, or NULL if there is none. */
static const char *control_end(Piece piece) {
    static const char *const words[] = {"if (", "for (", "while (", "else if (", "switch ("};
    if (begins(piece, "} else")) piece.at += 2;
    const char *end = NULL;
    if (begins(piece, "else ")) end = piece.at + 4;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (begins(piece, words[i])) end = closing(piece);
    return end && end + 1 < piece.end && end[0] == ' ' && end[1] != '{' ? end : NULL;
}

static void wrap_code(Text *out, Piece piece, size_t column) {
    if (fits(piece, column)) {
        if (piece.at < piece.end) put(out, piece, column, "");
        return;
    }
    const char *control = control_end(piece), *end = behind(piece, ';');
    bool label = begins(piece, "case ") || begins(piece, "default:");
    if (control) {
        wrap_statement(out, (Piece){piece.at, control}, column, "");
        Piece body = trimmed(control, piece.end);
        wrap_code(out, trimmed(body.at, behind(body, ';')), column + INDENT);
        wrap_code(out, trimmed(behind(body, ';'), piece.end), column);
    } else if (label && behind(piece, ':') < piece.end) {
        put(out, (Piece){piece.at, behind(piece, ':')}, column, "");
        wrap_code(out, trimmed(behind(piece, ':'), piece.end), column + INDENT);
    } else if (end < piece.end) {
        wrap_statement(out, (Piece){piece.at, end}, column, "");
        wrap_code(out, trimmed(end, piece.end), column);
    } else {
        wrap_statement(out, piece, column, "");
    }
}

/* ---------------------------------------------------------------- comments */

/* The first line begins at `column`. The comment began on an earlier line if it is `inside`. */
static void wrap_comment(Text *out, Piece piece, size_t column, bool inside) {
    const char *prefix = !inside || *piece.at == '*' ? "* " : "";
    for (bool first = true; ; first = false) {
        const char *before = first ? "" : prefix, *space = NULL, *comma = NULL;
        size_t used = column + strlen(before), room = used < C_COLUMNS ? C_COLUMNS - used : 0;
        if ((size_t)(piece.end - piece.at) > room)
            for (const char *at = piece.at + 3; at <= piece.at + room; at++) {
                if (*at == ' ' && at[1] != '*') space = at; /* a line of the comment's end alone is avoided */
                if (at[-1] == ',') comma = at; /* where a list that is longer than a line is cut */
            }
        if (!space) space = comma;
        put_spaces(out, column);
        text_add(out, before, strlen(before));
        put(out, (Piece){piece.at, space ? space : piece.end}, 0, "");
        if (!space) return;
        piece = trimmed(space, piece.end);
        if (first && !inside) column++;
    }
}

/* Returns the begin of the comment that ends with the line, or that fills the line and goes on; else the line's end. */
static const char *last_comment(Piece piece) {
    if (memcmp(piece.end - 2, "*/", 2) != 0)
        return begins(piece, "/*") && comment_end(piece.at + 2, piece.end) == piece.end ? piece.at : piece.end;
    int depth = 0;
    for (const char *at = piece.at; at < piece.end;) {
        const char *after = next(at, piece.end, &depth);
        if (after == piece.end && begins((Piece){at, piece.end}, "/*")) return at;
        at = after;
    }
    return piece.end;
}

void c_wrap(Text *out, const char *line, size_t size, size_t column, bool in_comment, bool in_directive) {
    Piece piece = {line, line + size};
    if (in_comment) {
        const char *end = comment_end(line, piece.end);
        wrap_comment(out, (Piece){line, end}, column, true);
        wrap_code(out, trimmed(end, piece.end), column);
        return;
    }
    const char *comment = last_comment(piece);
    if (comment < piece.end) wrap_comment(out, (Piece){comment, piece.end}, column, false);
    piece = trimmed(line, comment);
    if (line[0] != '#' && !in_directive) {
        wrap_code(out, piece, column);
        return;
    }
    bool goes_on = line[size - 1] == '\\';
    if (goes_on) piece = trimmed(line, piece.end - 1);
    wrap_statement(out, piece, column, " \\");
    if (!goes_on) return;
    out->size--;
    text_add(out, " \\\n", 3);
}
