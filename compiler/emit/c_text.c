/* c_text.c: what the generator asks about a piece of C text. */
#include "emit.h"

#include <ctype.h>
#include <string.h>

const char *c_literal_end(const char *at, const char *end) {
    char quote = *at++;
    while (at < end && *at != quote) at += *at == '\\' && at + 1 < end ? 2 : 1;
    return at < end ? at + 1 : end;
}

bool c_stands_alone(const char *text) {
    int open = 0;
    for (const char *at = text; *at; at++) {
        if (*at == '(' || *at == '[' || *at == '{') {
            open++;
        } else if (*at == ')' || *at == ']' || *at == '}') {
            open--;
            if (!open && c_in_name(at[1])) return false; /* a cast */
        } else if (!open && !c_in_name(*at) && *at != '.') {
            return false;
        }
    }
    return open == 0;
}

/* Whether a line of C looks like a declaration: two words in a row, or a word, stars and a word. */
static bool is_declaration(const char *line, size_t size) {
    static const char *const others[] = {"return", "goto", "else", "case", "do", "break", "continue"};
    size_t at = 0;
    while (at < size && (line[at] == ' ' || line[at] == '\t')) at++;
    size_t word = at;
    while (at < size && c_in_name(line[at])) at++;
    if (at == word || !c_starts_name(line[word])) return false;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strlen(others[i]) == at - word && memcmp(others[i], line + word, at - word) == 0) return false;
    if (at == size || line[at] != ' ') return false;
    while (at < size && line[at] == ' ') at++;
    size_t stars = at;
    while (at < size && line[at] == '*') at++;
    if (at < size && line[at] == ' ' && at > stars) return false; /* a product */
    return at < size && c_starts_name(line[at]);
}

bool c_declares(const char *text, size_t size) {
    int open = 0;
    for (const char *at = text, *end = text + size; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        if (open == 0 && is_declaration(at, (size_t)(newline - at))) return true;
        for (; at < newline; at++) open += (*at == '{' || *at == '(') - (*at == '}' || *at == ')');
        at = newline + 1;
    }
    return false;
}

/* Returns the operand of an address such as "x + (k + 1)", a name plus an operand, or NULL for other addresses. */
static const char *offset_in(const char *address) {
    const char *end = address;
    while (c_in_name(*end)) end++;
    if (end == address || strncmp(end, " + ", 3) != 0 || !c_stands_alone(end + 3)) return NULL;
    return end + 3;
}

/* Writes *(x + (k + 1)) as x[k + 1]. The text ends with the star, which is taken back. */
static void add_element(Text *text, const char *address, const char *offset) {
    size_t name = (size_t)(offset - address) - 3, size = strlen(offset);
    bool brackets = *offset == '(' && strchr(offset, ')') == offset + size - 1;
    text->size--;
    text_printf(text, "%.*s[%.*s]", (int)name, address, (int)(brackets ? size - 2 : size), offset + brackets);
}

const char *isa_spell(Arena *arena, const IsaOp *op, const char *const *args, const char *prefix) {
    Text text = text_new(arena);
    for (size_t i = 0; i < op->piece_count; i++) {
        const IsaPiece *piece = &op->pieces[i];
        if (piece->param == ISA_TEXT) {
            text_add(&text, piece->text, piece->size);
            continue;
        }
        if (piece->param == ISA_PREFIX) {
            if (!prefix) bug("%s: the prefix of its table is missing", op->name);
            text_add(&text, prefix, strlen(prefix));
            continue;
        }
        const char *arg = args[piece->param];
        char before = text.size ? text.data[text.size - 1] : ' ';
        if (before == ' ' && text.size > 1) before = text.data[text.size - 2] == ',' ? ',' : ' ';
        const char *next = i + 1 < op->piece_count && piece[1].param == ISA_TEXT ? piece[1].text : "";
        bool enclosed = (before == '(' || before == ',') && (next[0] == ')' || next[0] == ',');
        const char *offset = before == '*' ? offset_in(arg) : NULL;
        if (offset) {
            add_element(&text, arg, offset);
            continue;
        }
        bool bare = enclosed || c_stands_alone(arg);
        if (!bare) text_add(&text, "(", 1);
        text_add(&text, arg, strlen(arg));
        if (!bare) text_add(&text, ")", 1);
    }
    return text.data;
}

const char *hex_float(Arena *arena, double value) { return arena_printf(arena, "%af", (double)(float)value); }

const char *upper_case(Arena *arena, const char *text) {
    char *out = arena_copy(arena, text, strlen(text));
    for (char *c = out; *c; c++) *c = (char)toupper((unsigned char)*c);
    return out;
}
