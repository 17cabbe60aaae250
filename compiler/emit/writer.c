/* writer.c: output text with its indentation, blank lines and fresh names. */
#include "emit.h"

#include <limits.h>
#include <string.h>

struct Writer {
    Text text, line, folded; /* the output; the line in hand, before and after folding */
    Text wrapped;            /* a line that was too long */
    bool folds, assembly, verbatim;
    size_t budget;
    const char *over_budget;
    int braces, brackets; /* open ones; brackets are ( and [ */
    int bodies;           /* nested `for (...)` and the like, whose body without braces comes next */
    int *outer_bodies;    /* for each open brace, the bodies around it */
    int n_outer, room_outer;
    int closed_bodies;    /* their sum over all open braces */
    int if_bodies;        /* the bodies around the last `if`, which its `else` shares */
    bool in_control;      /* a `for (` and the like is not closed yet */
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
    /* Memory that is never touched costs nothing, while copies into ever larger buffers would touch twice as much. */
    const size_t usual = (size_t)4 << 20;
    Writer *writer = arena_alloc(arena, sizeof *writer);
    *writer = (Writer){.text = text_new(arena),
                       .line = text_new(arena),
                       .folded = text_new(arena),
                       .wrapped = text_new(arena),
                       .budget = budget,
                       .over_budget = over_budget,
                       .after_opening = true};
    text_reserve(&writer->text, budget < usual ? budget : usual);
    return writer;
}

void writer_need(const Writer *writer, size_t bytes) {
    size_t room = writer->text.size < writer->budget ? writer->budget - writer->text.size : 0;
    if (bytes > room) fail_status(EXIT_CANNOT, "%s: it is over %zu bytes of C", writer->over_budget, writer->budget);
}

static void put(Writer *writer, const char *bytes, size_t size) {
    writer_need(writer, size);
    text_add(&writer->text, bytes, size);
}

/* The writer's state behind a line, and two properties of the line. */
typedef struct Counted {
    int braces, brackets;
    bool in_comment;
    bool opens;    /* the last thing of its code is a `{` */
    bool may_fold; /* a 0 or 1 stands beside a sign */
} Counted;

/* The bytes that count_line looks at. */
static const bool is_special[UCHAR_MAX + 1] = {['"'] = true, ['\''] = true, ['/'] = true, ['{'] = true,
                                               ['}'] = true, ['('] = true,  [')'] = true, ['['] = true,
                                               [']'] = true, ['0'] = true,  ['1'] = true};

static void count_bracket(Counted *to, char c) {
    if (c == '{') to->braces++;
    if (c == '}' && to->braces) to->braces--;
    if (c == '(' || c == '[') to->brackets++;
    if ((c == ')' || c == ']') && to->brackets) to->brackets--;
}

/* Counts braces and brackets outside literals and comments. */
static Counted count_line(const Writer *writer, const char *line, size_t size) {
    Counted to = {writer->braces, writer->brackets, writer->in_comment, false, false};
    const char *at = line, *end = line + size;
    char last = 0;
    while (at < end) {
        if (to.in_comment) {
            const char *star = memchr(at, '*', (size_t)(end - at));
            if (!star) break;
            at = star + 1;
            if (at < end && *at == '/') {
                to.in_comment = false;
                at++;
            }
            continue;
        }
        const char *plain = at;
        while (at < end && !is_special[(unsigned char)*at]) at++;
        /* behind a `{`, anything but spaces means that the line does not end in it */
        if (last == '{' && strspn(plain, " \t") < (size_t)(at - plain)) last = 0;
        if (at == end) break;
        char c = *at;
        if (c == '0' || c == '1') {
            to.may_fold = to.may_fold || c_may_fold(line, size, (size_t)(at - line));
        } else if (c == '"' || c == '\'') {
            at = c_literal_end(at, end) - 1;
        } else if (c == '/' && at + 1 < end && at[1] == '/') {
            break;
        } else if (c == '/' && at + 1 < end && at[1] == '*') {
            to.in_comment = true;
            at += 2;
            continue;
        } else {
            count_bracket(&to, c);
        }
        last = c;
        at++;
    }
    to.opens = last == '{';
    return to;
}

/* The indentation of a line, in columns, from the state behind the lines before it. */
static size_t indentation(const Writer *writer, const char *line, size_t size) {
    if (writer->in_directive) return 4;
    if (!writer->in_comment && line[0] == '#') return 0;
    if (writer->assembly) return line[0] == '/' || line[size - 1] == ':' ? 0 : 4;
    int braces = writer->braces, brackets = writer->brackets, around = writer->closed_bodies + writer->bodies;
    if (writer->in_comment) return (size_t)(4 * (braces + around) + (line[0] == '*' ? 1 : 3));
    for (size_t i = 0; i < size && (line[i] == '}' || line[i] == ')' || line[i] == ']' || line[i] == ' '); i++) {
        if (line[i] == '}' && braces) braces--;
        if (line[i] != '}' && line[i] != ' ' && brackets) brackets--;
    }
    return (size_t)(4 * (braces + around) + (brackets ? 4 : 0));
}

static bool begins_with(const char *line, size_t size, const char *word) {
    size_t length = strlen(word);
    return size >= length && memcmp(line, word, length) == 0;
}

/* Whether a statement without braces may follow the line, one level further in. */
static bool is_control(const char *line, size_t size) {
    static const char *const words[] = {"for (", "if (", "while (", "else if ("};
    if (begins_with(line, size, "} else")) line += 2, size -= 2;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (begins_with(line, size, words[i])) return true;
    return size == 4 && begins_with(line, size, "else");
}

/* Counts the braces that a line closes and opens. A `}` at its begin also closes a level of bodies. */
static void count_braces(Writer *writer, const char *line, int before) {
    int closed = before - writer->braces > 0 ? before - writer->braces : line[0] == '}';
    int opened = writer->braces - (before - closed), inner = 0;
    for (; closed > 0 && writer->n_outer; closed--) {
        inner = writer->outer_bodies[--writer->n_outer];
        writer->closed_bodies -= inner;
    }
    if (line[0] == '}') writer->bodies = inner; /* an `else` goes on there */
    for (; opened > 0; opened--) {
        writer->outer_bodies = arena_grow(writer->text.arena, writer->outer_bodies, writer->n_outer,
                                          &writer->room_outer, sizeof *writer->outer_bodies);
        writer->outer_bodies[writer->n_outer++] = writer->bodies;
        writer->closed_bodies += writer->bodies;
        writer->bodies = 0;
    }
}

/* Takes note of the statements without braces that a line of code begins or ends. */
static void count_bodies(Writer *writer, const char *line, size_t size, int braces_before) {
    char last = line[size - 1];
    if (last == '/') return; /* a comment */
    bool begins = !writer->in_control && is_control(line, size);
    if (braces_before != writer->braces || line[0] == '}') count_braces(writer, line, braces_before);
    bool loops = begins_with(line, size, "for") || begins_with(line, size, "while");
    if (begins && !loops) writer->if_bodies = writer->bodies;
    writer->in_control |= begins;
    if (writer->brackets) return;
    if (writer->in_control && (last == ')' || (begins && last == 'e'))) writer->bodies++;
    else if (last == ';' || last == '}') writer->bodies = 0;
    writer->in_control = false;
}

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\0'; }

/* all of a header stands in that block, at column 0 */
static bool opens_linkage(const char *line, size_t size) {
    static const char linkage[] = "extern \"C\" {";
    return size == sizeof linkage - 1 && memcmp(line, linkage, size) == 0;
}

static void put_line(Writer *writer, const char *line, size_t size) {
    size_t columns = indentation(writer, line, size);
    if (columns + size > C_COLUMNS && (!writer->assembly || line[0] == '/')) {
        writer->wrapped.size = 0;
        c_wrap(&writer->wrapped, line, size, columns, writer->in_comment, writer->in_directive);
        put(writer, writer->wrapped.data, writer->wrapped.size);
        return;
    }
    writer_need(writer, columns + size + 1);
    Text *text = &writer->text;
    text_reserve(text, columns + size + 1);
    memset(text->data + text->size, ' ', columns);
    memcpy(text->data + text->size + columns, line, size);
    text->size += columns + size;
    text_add(text, "\n", 1);
}

/* A line that is no C. Blank lines are left out behind a line that ends in `{`, and in front of a `}`. */
static void put_verbatim(Writer *writer, const char *line, size_t size) {
    size_t spaces = 0;
    while (size && is_blank(line[size - 1])) size--;
    if (!size) {
        writer_blank(writer);
        return;
    }
    while (line[spaces] == ' ') spaces++;
    if (writer->blank_wanted && !writer->after_opening && line[spaces] != '}') put(writer, "\n", 1);
    put(writer, line, size);
    put(writer, "\n", 1);
    writer->blank_wanted = false;
    writer->after_opening = line[size - 1] == '{';
}

void writer_raw_line(Writer *writer, const char *line, size_t size) {
    if (writer->verbatim) {
        put_verbatim(writer, line, size);
        return;
    }
    while (size && (line[0] == ' ' || line[0] == '\t')) line++, size--;
    while (size && is_blank(line[size - 1])) size--;
    if (!size) {
        writer_blank(writer);
        return;
    }
    bool directive = writer->in_directive || (!writer->in_comment && line[0] == '#');
    Counted counted = count_line(writer, line, size);
    if (writer->folds && counted.may_fold && !directive) {
        writer->folded.size = 0;
        text_add(&writer->folded, line, size);
        c_fold(&writer->folded, writer->in_comment);
        line = writer->folded.data;
        size = writer->folded.size;
        counted = count_line(writer, line, size);
    }
    if (!writer->in_comment && begins_with(line, size, "else")) writer->bodies = writer->if_bodies;
    if (writer->blank_wanted && !writer->after_opening && line[0] != '}') put(writer, "\n", 1);
    writer->blank_wanted = false;
    put_line(writer, line, size);
    writer->in_directive = directive && line[size - 1] == '\\';
    writer->after_opening = false;
    if (directive) return;
    writer->after_opening = counted.opens;
    if (opens_linkage(line, size)) return; /* its brace does not count */
    bool comment = writer->in_comment;
    int braces = writer->braces;
    writer->braces = counted.braces;
    writer->brackets = counted.brackets;
    writer->in_comment = counted.in_comment;
    if (!comment && !writer->in_comment) count_bodies(writer, line, size, braces);
}

void writer_line(Writer *writer, const char *format, ...) {
    va_list args;
    va_start(args, format);
    writer->line.size = 0;
    text_vprintf(&writer->line, format, args);
    va_end(args);
    writer_raw_line(writer, writer->line.data, writer->line.size);
}

void writer_fold_constants(Writer *writer) { writer->folds = true; }

void writer_assembly(Writer *writer) { writer->assembly = true; }

void writer_verbatim(Writer *writer) { writer->verbatim = true; }

void writer_blank(Writer *writer) { writer->blank_wanted = true; }

const char *writer_fresh(Writer *writer, const char *stem) {
    return arena_printf(writer->text.arena, "%s_%d", stem, ++writer->fresh);
}

size_t writer_begin(Writer *writer) {
    writer->fresh = 0;
    return writer->text.size;
}

void writer_take_back(Writer *writer, size_t place) {
    writer->text.size = place;
    writer->blank_wanted = true;
}

static bool same_name(const char *a, const char *b) { return a && b ? strcmp(a, b) == 0 : a == b; }

int writer_part(Writer *writer, const char *target, const char *kind, const char *name) {
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
    return writer->n_parts - 1;
}

void writer_insert(Writer *writer, size_t place, int part, const Writer *from) {
    Text *text = &writer->text;
    size_t behind = text->size - place;
    bool blank_behind = behind && text->data[place] == '\n';
    size_t size = 1 + from->text.size + !blank_behind;
    if (!from->text.size) return;
    put(writer, from->text.data, from->text.size);
    put(writer, "\n\n", size - from->text.size);
    char *at = text->data + place;
    memmove(at + size, at, behind);
    at[0] = at[size - 1] = '\n';
    memcpy(at + 1, from->text.data, from->text.size);
    writer->parts[part].bytes += size;
    writer->in_parts += size;
}

const CodePart *writer_parts(Writer *writer, int *n) {
    int kept = 0;
    for (int i = 0; i < writer->n_parts; i++)
        if (writer->parts[i].bytes) writer->parts[kept++] = writer->parts[i];
    *n = writer->n_parts = kept;
    return writer->parts;
}

const char *writer_text(const Writer *writer, size_t *size) {
    if (size) *size = writer->text.size;
    return writer->text.data;
}
