/* writer.c: output text with its indentation, blank lines and fresh names. */
#include "emit.h"

#include <limits.h>
#include <string.h>

struct Writer {
    Text text, line; /* all of it, and the one of writer_line */
    size_t budget;
    const char *over_budget;
    int braces, brackets; /* open ones; brackets are ( and [ */
    bool in_comment;      /* inside a comment that began on an earlier line */
    bool in_directive;    /* the last line was a preprocessor line that goes on */
    bool blank_wanted;
    bool after_opening; /* nothing printed yet, or the last line ended in { */
    int fresh;
    CodePart *parts;
    int n_parts, room_parts;
    size_t in_parts; /* bytes */
};

Writer *writer_new(Arena *arena, size_t budget, const char *over_budget) {
    /* Memory never touched costs nothing; copies into ever larger buffers would double what is touched. */
    const size_t usual = (size_t)2 << 20;
    Writer *writer = arena_alloc(arena, sizeof *writer);
    *writer = (Writer){.text = text_new(arena),
                       .line = text_new(arena),
                       .budget = budget,
                       .over_budget = over_budget,
                       .after_opening = true};
    text_reserve(&writer->text, budget < usual ? budget : usual);
    return writer;
}

void writer_over_budget(const Writer *writer) {
    fail_status(EXIT_CANNOT, "%s: it is over %zu bytes of C", writer->over_budget, writer->budget);
}

size_t writer_room(const Writer *writer) {
    return writer->text.size < writer->budget ? writer->budget - writer->text.size : 0;
}

static void put(Writer *writer, const char *bytes, size_t size) {
    if (size > writer_room(writer)) writer_over_budget(writer);
    text_add(&writer->text, bytes, size);
}

/* The first byte after the literal that begins at `at`, or `end`. */
static const char *after_literal(const char *at, const char *end) {
    char quote = *at++;
    while (at < end && *at != quote) at += *at == '\\' && at + 1 < end ? 2 : 1;
    return at < end ? at + 1 : end;
}

/* Bytes that can mean something to count_line. */
static const bool is_special[UCHAR_MAX + 1] = {['"'] = true, ['\''] = true, ['/'] = true, ['{'] = true, ['}'] = true,
                                               ['('] = true, [')'] = true,  ['['] = true, [']'] = true};

/* Counts a line's braces and brackets outside literals and comments; says whether the last thing of
 * the code on it is a `{`. */
static bool count_line(Writer *writer, const char *at, const char *end) {
    char last = 0;
    while (at < end) {
        const char *plain = at;
        while (!writer->in_comment && at < end && !is_special[(unsigned char)*at]) at++;
        /* only after a `{` it matters whether these are more than spaces */
        if (last == '{' && strspn(plain, " \t") < (size_t)(at - plain)) last = 0;
        if (at == end) break;
        if (writer->in_comment) {
            const char *star = memchr(at, '*', (size_t)(end - at));
            if (!star) return last == '{';
            at = star + 1;
            if (at < end && *at == '/') {
                writer->in_comment = false;
                at++;
            }
            continue;
        }
        char c = *at;
        if (c == '"' || c == '\'') {
            at = after_literal(at, end);
            last = c;
            continue;
        }
        if (c == '/' && at + 1 < end && at[1] == '/') break;
        if (c == '/' && at + 1 < end && at[1] == '*') {
            writer->in_comment = true;
            at += 2;
            continue;
        }
        if (c == '{') writer->braces++;
        if (c == '}' && writer->braces) writer->braces--;
        if (c == '(' || c == '[') writer->brackets++;
        if ((c == ')' || c == ']') && writer->brackets) writer->brackets--;
        last = c;
        at++;
    }
    return last == '{';
}

/* Columns in front of a line, from the state that the lines before it left. */
static int indentation(const Writer *writer, const char *line, size_t size) {
    if (writer->in_directive) return 4;
    if (!writer->in_comment && line[0] == '#') return 0;
    int braces = writer->braces, brackets = writer->brackets;
    if (writer->in_comment) return 4 * braces + (line[0] == '*' ? 1 : 3);
    for (size_t i = 0; i < size && (line[i] == '}' || line[i] == ')' || line[i] == ']' || line[i] == ' '); i++) {
        if (line[i] == '}' && braces) braces--;
        if (line[i] != '}' && line[i] != ' ' && brackets) brackets--;
    }
    return 4 * braces + (brackets ? 4 : 0);
}

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\0'; }

/* All of a header stands in that block, at column 0. */
static bool opens_linkage(const char *line, size_t size) {
    static const char linkage[] = "extern \"C\" {";
    return size == sizeof linkage - 1 && memcmp(line, linkage, size) == 0;
}

void writer_raw_line(Writer *writer, const char *line, size_t size) {
    while (size && (line[0] == ' ' || line[0] == '\t')) line++, size--;
    while (size && is_blank(line[size - 1])) size--;
    if (!size) {
        writer_blank(writer);
        return;
    }
    if (writer->blank_wanted && !writer->after_opening && line[0] != '}') put(writer, "\n", 1);
    writer->blank_wanted = false;
    for (int left = indentation(writer, line, size); left > 0; left -= 32)
        put(writer, "                                ", left < 32 ? (size_t)left : 32);
    put(writer, line, size);
    put(writer, "\n", 1);
    bool directive = writer->in_directive || (!writer->in_comment && line[0] == '#');
    writer->in_directive = directive && line[size - 1] == '\\';
    writer->after_opening = !directive && (opens_linkage(line, size) || count_line(writer, line, line + size));
}

void writer_line(Writer *writer, const char *format, ...) {
    va_list args;
    va_start(args, format);
    writer->line.size = 0;
    text_vprintf(&writer->line, format, args);
    va_end(args);
    writer_raw_line(writer, writer->line.data, writer->line.size);
}

void writer_blank(Writer *writer) { writer->blank_wanted = true; }

const char *writer_fresh(Writer *writer, const char *stem) {
    return arena_printf(writer->text.arena, "%s_%d", stem, ++writer->fresh);
}

static bool same_name(const char *a, const char *b) { return a && b ? strcmp(a, b) == 0 : a == b; }

void writer_part(Writer *writer, const char *target, const char *kind, const char *name) {
    Arena *arena = writer->text.arena;
    CodePart *last = writer->n_parts ? &writer->parts[writer->n_parts - 1] : NULL;
    if (!last || !same_name(last->target, target) || !same_name(last->kind, kind) || !same_name(last->name, name)) {
        writer->parts = arena_grow(arena, writer->parts, writer->n_parts, &writer->room_parts, sizeof *last);
        last = &writer->parts[writer->n_parts++];
        *last = (CodePart){target ? arena_copy(arena, target, strlen(target)) : NULL,
                           arena_copy(arena, kind, strlen(kind)), arena_copy(arena, name, strlen(name)), 0};
    }
    last->bytes += writer->text.size - writer->in_parts;
    writer->in_parts = writer->text.size;
}

const CodePart *writer_parts(const Writer *writer, int *n) {
    *n = writer->n_parts;
    return writer->parts;
}

const char *writer_text(const Writer *writer, size_t *size) {
    if (size) *size = writer->text.size;
    return writer->text.data;
}
