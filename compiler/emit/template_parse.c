/* template_parse.c: turns the lines of a template into statements (see template.c). */
#include "template_parts.h"

#include <string.h>

enum { MAX_BLOCK_DEPTH = 64 };

typedef struct Parser {
    Scan scan; /* of the current line */
    const char *next, *end;
    int line; /* that ended in front of `next` */
    size_t indentation; /* of the current line, in bytes */
    bool verbatim;      /* lines of text keep their indentation */
    int nesting;
    const char *stop; /* the word that ended the last block: "end", "elif", "else", or NULL at the end of the text */
} Parser;

static Statement *parse_block(Parser *parser, const char *opened_by, int opened_at);

/* Sets *start and *end to the next line of the text without the spaces around it. Returns the number of spaces that
 * precede it. */
static size_t text_line(Parser *parser, const char **start, const char **end) {
    const char *at = parser->next, *newline = memchr(at, '\n', (size_t)(parser->end - at));
    const char *last = newline ? newline : parser->end;
    parser->next = newline ? newline + 1 : parser->end;
    parser->line++;
    const char *first = at;
    while (at < last && strchr(" \t\r", *at)) at++;
    while (last > at && strchr(" \t\r", last[-1])) last--;
    *start = at;
    *end = last;
    return (size_t)(at - first);
}

/* A line, joined with the lines that follow a `\` at its end. */
static bool next_line(Parser *parser) {
    Scan *scan = &parser->scan;
    if (parser->next >= parser->end) return false;
    parser->indentation = text_line(parser, &scan->at, &scan->end);
    scan->line = parser->line;
    scan->depth = 0;
    if (scan->end == scan->at || scan->end[-1] != '\\') return true;
    Text whole = text_new(scan->arena);
    const char *start = scan->at, *end = scan->end;
    text_add(&whole, start - parser->indentation, parser->indentation);
    while (end > start && end[-1] == '\\') {
        text_add(&whole, start, (size_t)(end - 1 - start));
        if (parser->next >= parser->end) template_scan_error(scan, "the text ends behind a '\\'");
        text_line(parser, &start, &end);
    }
    text_add(&whole, start, (size_t)(end - start));
    scan->at = whole.data + parser->indentation;
    scan->end = whole.data + whole.size;
    return true;
}

static void expect_line_end(Scan *scan) {
    template_scan_spaces(scan);
    if (scan->at < scan->end) template_scan_error(scan, "'%.*s' is too much", (int)(scan->end - scan->at), scan->at);
}

static const char *need_name(Scan *scan, const char *what) {
    const char *name = template_scan_name(scan);
    if (!name) template_scan_error(scan, "%s is missing", what);
    return name;
}

static void need_symbol(Scan *scan, const char *symbol) {
    if (!template_scan_symbol(scan, symbol)) template_scan_error(scan, "'%s' is missing", symbol);
}

/* `= EXPR` or `: TEXT`. */
static void parse_value(Parser *parser, Statement *s) {
    Scan *scan = &parser->scan;
    if (template_scan_symbol(scan, ":")) {
        s->value = template_scan_text(scan);
        return;
    }
    need_symbol(scan, "=");
    s->value = template_scan_expression(scan);
    expect_line_end(scan);
}

static void parse_assignment(Parser *parser, Statement *s) {
    s->name = need_name(&parser->scan, "a name");
    parse_value(parser, s);
}

static void need_end(Parser *parser, const char *of, int line) {
    if (strcmp(parser->stop, "end") != 0)
        template_scan_error(&parser->scan, "$%s stands in the $%s of line %d", parser->stop, of, line);
    expect_line_end(&parser->scan);
}

static void parse_range(Parser *parser, Statement *s) {
    Scan *scan = &parser->scan;
    bool loop = s->kind == STATEMENT_LOOP;
    s->name = need_name(scan, "a name");
    if (!loop && template_scan_symbol(scan, ",")) s->counter = need_name(scan, "a name");
    if (!template_scan_word(scan, "in")) template_scan_error(scan, "'in' is missing");
    s->first = template_scan_expression(scan);
    if (loop) need_symbol(scan, "..");
    if (loop || (!s->counter && template_scan_symbol(scan, ".."))) {
        s->last = template_scan_expression(scan);
        if (template_scan_word(scan, "step")) s->step = template_scan_expression(scan);
    } else {
        template_check_record_name(scan, s->name);
    }
    if (loop) {
        if (!template_scan_word(scan, "unroll")) template_scan_error(scan, "'unroll' is missing");
        if (!template_scan_word(scan, "full")) s->value = template_scan_expression(scan);
    }
    expect_line_end(scan);
    s->body = parse_block(parser, loop ? "loop" : "for", s->line);
    need_end(parser, loop ? "loop" : "for", s->line);
}

/* An $elif is an $if inside the $else. */
static void parse_if(Parser *parser, Statement *s) {
    s->kind = STATEMENT_IF;
    s->value = template_scan_expression(&parser->scan);
    expect_line_end(&parser->scan);
    int line = s->line;
    s->body = parse_block(parser, "if", line);
    while (strcmp(parser->stop, "elif") == 0) {
        Statement *inner = arena_alloc(parser->scan.arena, sizeof *inner);
        inner->kind = STATEMENT_IF;
        inner->line = parser->scan.line;
        inner->value = template_scan_expression(&parser->scan);
        expect_line_end(&parser->scan);
        s->otherwise = inner;
        s = inner;
        s->body = parse_block(parser, "if", line);
    }
    if (strcmp(parser->stop, "else") == 0) {
        expect_line_end(&parser->scan);
        s->otherwise = parse_block(parser, "if", line);
    }
    need_end(parser, "if", line);
}

/* (NAME, NAME) */
static void parse_params(Scan *scan, Statement *s, const char *of) {
    need_symbol(scan, "(");
    if (template_scan_symbol(scan, ")")) return;
    do {
        if (s->count == MAX_PARAMS) template_scan_error(scan, "a %s has at most %d parameters", of, MAX_PARAMS);
        s->params[s->count++] = need_name(scan, "a parameter");
    } while (template_scan_symbol(scan, ","));
    need_symbol(scan, ")");
}

static void parse_define(Parser *parser, Statement *s) {
    s->name = need_name(&parser->scan, "the function's name");
    parse_params(&parser->scan, s, "function");
    parse_value(parser, s);
}

static void parse_macro(Parser *parser, Statement *s) {
    Scan *scan = &parser->scan;
    s->name = need_name(scan, "the macro's name");
    parse_params(scan, s, "macro");
    expect_line_end(scan);
    s->body = parse_block(parser, "macro", s->line);
    need_end(parser, "macro", s->line);
}

static void parse_use(Parser *parser, Statement *s) {
    Scan *scan = &parser->scan;
    s->name = need_name(scan, "the macro's name");
    need_symbol(scan, "(");
    if (!template_scan_symbol(scan, ")")) {
        do {
            if (s->count == MAX_PARAMS) template_scan_error(scan, "a macro has at most %d parameters", MAX_PARAMS);
            s->args[s->count++] = template_scan_expression(scan);
        } while (template_scan_symbol(scan, ","));
        need_symbol(scan, ")");
    }
    expect_line_end(scan);
}

static void parse_include(Parser *parser, Statement *s) {
    Scan *scan = &parser->scan;
    need_symbol(scan, "\"");
    const char *start = scan->at, *quote = memchr(start, '"', (size_t)(scan->end - start));
    if (!quote) template_scan_error(scan, "the file's name has no end");
    s->name = arena_copy(scan->arena, start, (size_t)(quote - start));
    scan->at = quote + 1;
    expect_line_end(scan);
}

/* The line after its `$WORD`. */
static void parse_steering(Parser *parser, Statement *s, const char *word) {
    static const char *const words[] = {"let",     "set",   "if",   "for",  "loop", "macro", "define", "use",
                                        "include", "error", "verbatim", "elif", "else", "end",  NULL};
    Scan *scan = &parser->scan;
    if (strcmp(word, "let") == 0 || strcmp(word, "set") == 0) {
        s->kind = word[0] == 'l' ? STATEMENT_LET : STATEMENT_SET;
        parse_assignment(parser, s);
    } else if (strcmp(word, "if") == 0) {
        parse_if(parser, s);
    } else if (strcmp(word, "for") == 0 || strcmp(word, "loop") == 0) {
        s->kind = word[0] == 'f' ? STATEMENT_FOR : STATEMENT_LOOP;
        parse_range(parser, s);
    } else if (strcmp(word, "macro") == 0) {
        s->kind = STATEMENT_MACRO;
        parse_macro(parser, s);
    } else if (strcmp(word, "define") == 0) {
        s->kind = STATEMENT_DEFINE;
        parse_define(parser, s);
    } else if (strcmp(word, "use") == 0) {
        s->kind = STATEMENT_USE;
        parse_use(parser, s);
    } else if (strcmp(word, "include") == 0) {
        s->kind = STATEMENT_INCLUDE;
        parse_include(parser, s);
    } else if (strcmp(word, "verbatim") == 0) {
        s->kind = STATEMENT_VERBATIM;
        parser->verbatim = true;
        expect_line_end(scan);
    } else if (strcmp(word, "error") == 0) {
        s->kind = STATEMENT_ERROR;
        template_scan_spaces(scan);
        s->pieces = template_scan_pieces(scan);
    } else {
        const char *near = nearest_word(word, words);
        if (near) template_scan_error(scan, "there is no statement $%s; is $%s meant?", word, near);
        template_scan_error(scan, "there is no statement $%s", word);
    }
}

static bool ends_block(const char *word) {
    return strcmp(word, "end") == 0 || strcmp(word, "elif") == 0 || strcmp(word, "else") == 0;
}

/* Statements up to the $end, $elif or $else that closes the block, or to the end of the text. */
static Statement *parse_block(Parser *parser, const char *opened_by, int opened_at) {
    if (++parser->nesting > MAX_BLOCK_DEPTH) template_scan_error(&parser->scan, "blocks are nested too deep");
    Statement *first = NULL, **link = &first;
    while (next_line(parser)) {
        Scan *scan = &parser->scan;
        const char *word = NULL;
        if (scan->end - scan->at > 1 && scan->at[0] == '$') {
            if (scan->at[1] == '#') continue;
            if (c_starts_name(scan->at[1])) {
                scan->at++;
                word = template_scan_name(scan);
            }
        }
        if (word && ends_block(word)) {
            if (!opened_by) template_scan_error(scan, "$%s closes nothing", word);
            parser->stop = word;
            parser->nesting--;
            return first;
        }
        Statement *s = *link = arena_alloc(scan->arena, sizeof *s);
        link = &s->next;
        s->line = scan->line;
        if (word) {
            parse_steering(parser, s, word);
        } else if (scan->at == scan->end) {
            s->kind = STATEMENT_BLANK;
        } else {
            if (parser->verbatim) scan->at -= parser->indentation;
            s->pieces = template_scan_pieces(scan);
        }
    }
    if (opened_by) template_scan_error(&parser->scan, "the $%s of line %d has no $end", opened_by, opened_at);
    return first;
}

Template *template_parse(Arena *arena, const char *name, int line, const char *text) {
    Template *template = arena_alloc(arena, sizeof *template);
    template->name = arena_copy(arena, name, strlen(name));
    Parser parser = {.scan = {.arena = arena, .file = template->name}, .next = text, .end = text + strlen(text),
                     .line = line - 1};
    template->body = parse_block(&parser, NULL, 0);
    return template;
}

const Template *template_embedded(const char *name) {
    static Arena *arena;
    static Template *parsed;
    for (Template **link = &parsed; *link; link = &(*link)->next) {
        Template *t = *link;
        if (strcmp(t->name, name) != 0) continue;
        *link = t->next; /* moves to the front, since the template of a step is used many times */
        t->next = parsed;
        return parsed = t;
    }
    const char *text = embedded_text(name);
    if (!text) return NULL;
    if (!arena) arena = arena_new();
    Template *template = template_parse(arena, name, 1, text);
    template->next = parsed;
    parsed = template;
    return template;
}
