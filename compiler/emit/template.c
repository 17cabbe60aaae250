/* template.c: expands templates of C.
 *
 * A template looks like the C it prints. A line that begins with `$` and a letter steers; the others are
 * printed, with ${EXPR} replaced by the expression's value and $$ by one $. Indentation is the writer's:
 * a template may indent as it likes. A line that has text but expands to none prints nothing.
 *
 *   $# TEXT                          a comment of the template, not printed
 *   $let NAME = EXPR                 a new name, until the block around it ends
 *   $set NAME = EXPR                 another value for a name that the template let
 *   $if EXPR  $elif EXPR  $else  $end
 *   $for NAME in A..B [step S]  $end            always written out, for A, A + S, ... below B
 *   $loop NAME in A..B [step S] unroll U  $end  see below
 *   $macro NAME(p, q)  $end          sees its parameters and the names let outside all blocks
 *   $use NAME(EXPR, EXPR)            expands a macro
 *   $include "file"                  an embedded file, as if its lines stood here
 *   $error TEXT                      ends the program
 *
 * $loop is the one way to write a loop in the output. With `unroll full`, or when bounds are numbers and
 * there are less than 2 U trips, it becomes straight-line code in which NAME is a number. With U <= 1 it
 * becomes `for (size_t NAME = A; NAME < B; NAME += S)`, in which NAME is text. Otherwise it becomes a C
 * loop of U copies, in which NAME is "NAME", "(NAME + S)", ..., and the rest follows: straight-line for
 * bounds that are numbers, a plain loop for bounds that are text. A copy that declares C variables gets
 * braces of its own. So nothing that is declared inside is seen outside, however the loop is written.
 *
 * Values are 64-bit integers and texts. Operators, loosest first: ?: || && == != < <= > >= ~ + - * / % ! -
 * where `~` joins two values as text. Arithmetic with a text is C that runs later: the result is the
 * text "(a * b)", simplified for 0 and 1. Functions: min max ceil_div round_up defined(NAME).
 *
 * `v` is the target: v.width v.registers v.fused are integers, v.type v.name v.attribute v.guard texts;
 * v.OP(TEXT, TEXT) is an operation of its table. The arguments are text, split at commas outside brackets,
 * and may hold ${} themselves: ${v.fma(acc${r}, a, b${c})}. `u` is the same, or another table of the same
 * processor (template_expand_with). */
#include "emit.h"

#include <string.h>

enum { MAX_BLOCK_DEPTH = 64, MAX_PARAMS = 16, MAX_RUNTIME_UNROLL = 4096 };
static const int64_t MAX_STEPS = 2000000; /* an expansion that prints nothing must end too */

typedef enum StatementKind {
    STATEMENT_LINE,
    STATEMENT_BLANK,
    STATEMENT_LET,
    STATEMENT_SET,
    STATEMENT_IF,
    STATEMENT_FOR,
    STATEMENT_LOOP,
    STATEMENT_MACRO,
    STATEMENT_USE,
    STATEMENT_INCLUDE,
    STATEMENT_ERROR
} StatementKind;

typedef struct Statement {
    struct Statement *next, *body, *otherwise;
    StatementKind kind;
    int line;
    const char *name;
    Pieces *pieces;
    TemplateExpr *value;                         /* of $let and $set, the condition, or U; NULL in a $loop: full */
    TemplateExpr *first, *last, *step;           /* step may be NULL */
    const char *params[MAX_PARAMS];
    TemplateExpr *args[MAX_PARAMS];
    int count;
} Statement;

typedef struct Template {
    struct Template *next;
    const char *name;
    Statement *body;
} Template;

typedef struct Macro {
    struct Macro *next;
    const Statement *statement;
    const char *file;
} Macro;

/* ---------------------------------------------------------------------------------- parsing */

typedef struct Parser {
    Scan scan; /* of the current line */
    const char *next, *end;
    int nesting;
    const char *stop; /* the word that ended the last block: "end", "elif", "else", or NULL at the end of the text */
} Parser;

static Statement *parse_block(Parser *parser, const char *opened_by, int opened_at);

static bool next_line(Parser *parser) {
    if (parser->next >= parser->end) return false;
    const char *start = parser->next, *newline = memchr(start, '\n', (size_t)(parser->end - start));
    const char *end = newline ? newline : parser->end;
    parser->next = newline ? newline + 1 : parser->end;
    while (start < end && strchr(" \t\r", *start)) start++;
    while (end > start && strchr(" \t\r", end[-1])) end--;
    parser->scan.at = start;
    parser->scan.end = end;
    parser->scan.line++;
    parser->scan.depth = 0;
    return true;
}

static void expect_line_end(Scan *scan) {
    template_scan_spaces(scan);
    if (scan->at < scan->end) template_scan_error(scan, "'%.*s' is too much", (int)(scan->end - scan->at), scan->at);
}

static bool scan_word(Scan *scan, const char *word) {
    Scan ahead = *scan;
    const char *name = template_scan_name(&ahead);
    if (!name || strcmp(name, word) != 0) return false;
    *scan = ahead;
    return true;
}

static const char *need_name(Scan *scan, const char *what) {
    const char *name = template_scan_name(scan);
    if (!name) template_scan_error(scan, "%s is missing", what);
    return name;
}

static void need_symbol(Scan *scan, const char *symbol) {
    if (!template_scan_symbol(scan, symbol)) template_scan_error(scan, "'%s' is missing", symbol);
}

static void parse_assignment(Parser *parser, Statement *s) {
    s->name = need_name(&parser->scan, "a name");
    need_symbol(&parser->scan, "=");
    s->value = template_scan_expression(&parser->scan);
    expect_line_end(&parser->scan);
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
    if (!scan_word(scan, "in")) template_scan_error(scan, "'in' is missing");
    s->first = template_scan_expression(scan);
    need_symbol(scan, "..");
    s->last = template_scan_expression(scan);
    if (scan_word(scan, "step")) s->step = template_scan_expression(scan);
    if (loop) {
        if (!scan_word(scan, "unroll")) template_scan_error(scan, "'unroll' is missing");
        if (!scan_word(scan, "full")) s->value = template_scan_expression(scan);
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

static void parse_macro(Parser *parser, Statement *s) {
    Scan *scan = &parser->scan;
    s->name = need_name(scan, "the macro's name");
    need_symbol(scan, "(");
    if (!template_scan_symbol(scan, ")")) {
        do {
            if (s->count == MAX_PARAMS) template_scan_error(scan, "a macro has at most %d parameters", MAX_PARAMS);
            s->params[s->count++] = need_name(scan, "a parameter");
        } while (template_scan_symbol(scan, ","));
        need_symbol(scan, ")");
    }
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
    static const char *const words[] = {"let", "set", "if", "for", "loop", "macro", "use", "include", "error",
                                        "elif", "else", "end", NULL};
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
    } else if (strcmp(word, "use") == 0) {
        s->kind = STATEMENT_USE;
        parse_use(parser, s);
    } else if (strcmp(word, "include") == 0) {
        s->kind = STATEMENT_INCLUDE;
        parse_include(parser, s);
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

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/* Statements up to the $end, $elif or $else that closes the block, or to the end of the text. */
static Statement *parse_block(Parser *parser, const char *opened_by, int opened_at) {
    if (++parser->nesting > MAX_BLOCK_DEPTH) template_scan_error(&parser->scan, "blocks are nested too deep");
    Statement *first = NULL, **link = &first;
    while (next_line(parser)) {
        Scan *scan = &parser->scan;
        const char *word = NULL;
        if (scan->end - scan->at > 1 && scan->at[0] == '$') {
            if (scan->at[1] == '#') continue;
            if (is_letter(scan->at[1])) {
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
            s->pieces = template_scan_pieces(scan);
        }
    }
    if (opened_by) template_scan_error(&parser->scan, "the $%s of line %d has no $end", opened_by, opened_at);
    return first;
}

static Template *parse_template(Arena *arena, const char *name, const char *text) {
    Template *template = arena_alloc(arena, sizeof *template);
    template->name = arena_copy(arena, name, strlen(name));
    size_t size = strlen(text);
    Parser parser = {.scan = {.arena = arena, .file = template->name}, .next = text, .end = text + size};
    template->body = parse_block(&parser, NULL, 0);
    return template;
}

/* Embedded templates are parsed once a process. */
static const Template *embedded_template(const char *name) {
    static Arena *arena;
    static Template *parsed;
    for (Template *t = parsed; t; t = t->next)
        if (strcmp(t->name, name) == 0) return t;
    const char *text = embedded_text(name);
    if (!text) return NULL;
    if (!arena) arena = arena_new();
    Template *template = parse_template(arena, name, text);
    template->next = parsed;
    parsed = template;
    return template;
}

/* ---------------------------------------------------------------------------------- printing */

/* Lines that wait until it is known whether they need braces. */
typedef struct Capture {
    Text text;
    struct Capture *outer;
} Capture;

static void print_line(Expansion *x, const char *line, size_t size) {
    if (!x->capture) {
        writer_raw_line(x->writer, line, size);
        return;
    }
    if (x->capture->text.size + size + 1 > writer_room(x->writer)) writer_over_budget(x->writer);
    text_add(&x->capture->text, line, size);
    text_add(&x->capture->text, "\n", 1);
}

/* Prints text of one line or several, without a final newline. */
static void print_lines(Expansion *x, const char *text) {
    for (;;) {
        const char *newline = strchr(text, '\n');
        print_line(x, text, newline ? (size_t)(newline - text) : strlen(text));
        if (!newline) return;
        text = newline + 1;
    }
}

static bool is_word_byte(char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_'; }

/* Whether a line of C looks like a declaration: two words in a row, or a word, stars and a word. */
static bool is_declaration(const char *line, size_t size) {
    static const char *const others[] = {"return", "goto", "else", "case", "do", "break", "continue"};
    size_t at = 0;
    while (at < size && (line[at] == ' ' || line[at] == '\t')) at++;
    size_t word = at;
    while (at < size && is_word_byte(line[at])) at++;
    if (at == word || !(is_letter(line[word]) || line[word] == '_')) return false;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strlen(others[i]) == at - word && memcmp(others[i], line + word, at - word) == 0) return false;
    if (at == size || line[at] != ' ') return false;
    while (at < size && line[at] == ' ') at++;
    size_t stars = at;
    while (at < size && line[at] == '*') at++;
    if (at < size && line[at] == ' ' && at > stars) return false; /* a product */
    return at < size && (is_letter(line[at]) || line[at] == '_');
}

/* Whether text declares something outside its own braces. */
static bool declares(const char *text, size_t size) {
    int open = 0;
    for (const char *at = text, *end = text + size; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        if (open == 0 && is_declaration(at, (size_t)(newline - at))) return true;
        for (; at < newline; at++) open += (*at == '{' || *at == '(') - (*at == '}' || *at == ')');
        at = newline + 1;
    }
    return false;
}

/* ---------------------------------------------------------------------------------- expanding */

/* A loop of the output that is open, by the name of its C variable. */
typedef struct OpenLoop {
    const char *variable;
    struct OpenLoop *outer;
} OpenLoop;

static void run_block(Expansion *x, const Statement *s);
static void run_statements(Expansion *x, const Statement *s);

static void run_with(Expansion *x, const Statement *s, TemplateValue value) {
    TemplateVars *outer = x->scope;
    x->scope = vars_new(x->arena, outer);
    vars_set(x->scope, s->name, value);
    run_statements(x, s->body);
    x->scope = outer;
    x->frame->line = s->line;
}

static int64_t step_of(Expansion *x, const Statement *s) {
    int64_t step = s->step ? template_evaluate_int(x, s->step, "the step") : 1;
    if (step <= 0) expand_error(x, "the step is %lld, it must be above 0", (long long)step);
    return step;
}

/* How often NAME = first, first + step, ... stays below last. */
static int64_t trip_count(Expansion *x, int64_t first, int64_t last, int64_t step) {
    int64_t span;
    if (last <= first) return 0;
    if (__builtin_sub_overflow(last, first, &span) || !add_fits(last, step, &(int64_t){0}))
        expand_error(x, "the range %lld..%lld is too long", (long long)first, (long long)last);
    return span / step + (span % step != 0);
}

static void run_for(Expansion *x, const Statement *s) {
    int64_t first = template_evaluate_int(x, s->first, "the first bound");
    int64_t last = template_evaluate_int(x, s->last, "the last bound");
    int64_t step = step_of(x, s), trips = trip_count(x, first, last, step);
    for (int64_t i = 0; i < trips; i++) run_with(x, s, template_int(first + i * step));
}

typedef struct Loop {
    const Statement *statement;
    TemplateValue first, last;
    int64_t step, unroll;
    const char *variable; /* in C */
} Loop;

/* One copy of the body, in braces when it declares something. */
static void run_copy(Expansion *x, const Loop *loop, TemplateValue value) {
    Capture capture = {text_new(x->arena), x->capture};
    x->capture = &capture;
    run_with(x, loop->statement, value);
    x->capture = capture.outer;
    if (!capture.text.size) return;
    bool braces = declares(capture.text.data, capture.text.size);
    if (braces) print_line(x, "{", 1);
    capture.text.data[capture.text.size - 1] = '\0';
    print_lines(x, capture.text.data);
    if (braces) print_line(x, "}", 1);
}

static TemplateValue plus(Expansion *x, TemplateValue a, int64_t b) { return template_sum(x, a, template_int(b)); }

static void run_straight(Expansion *x, const Loop *loop, int64_t from, int64_t trips) {
    for (int64_t i = 0; i < trips; i++) run_copy(x, loop, template_int(from + i * loop->step));
}

/* The head and body of a C loop; `first` NULL goes on with the variable as it is. */
static void run_c_loop(Expansion *x, const Loop *loop, const char *first, const char *last, int64_t copies) {
    const char *variable = loop->variable;
    Text head = text_new(x->arena);
    text_printf(&head, "for (");
    if (first) text_printf(&head, "size_t %s = %s", variable, first);
    text_printf(&head, "; ");
    if (!first && copies > 1) text_printf(&head, "%s + %lld", variable, (long long)((copies - 1) * loop->step));
    else text_printf(&head, "%s", variable);
    text_printf(&head, " < %s; ", last);
    if (copies * loop->step == 1) text_printf(&head, "%s++) {", variable);
    else text_printf(&head, "%s += %lld) {", variable, (long long)(copies * loop->step));
    print_line(x, head.data, head.size);
    OpenLoop open = {variable, x->loops};
    x->loops = &open;
    if (copies == 1) run_with(x, loop->statement, template_text(variable));
    else
        for (int64_t i = 0; i < copies; i++) run_copy(x, loop, plus(x, template_text(variable), i * loop->step));
    x->loops = open.outer;
    print_line(x, "}", 1);
}

static void run_constant_loop(Expansion *x, Loop *loop, int64_t trips) {
    int64_t first = loop->first.integer;
    int64_t copies = loop->unroll < 1 ? 1 : loop->unroll, rounds = trips / copies;
    if (trips <= loop->unroll || rounds < 2) {
        run_straight(x, loop, first, trips);
        return;
    }
    if (first < 0) expand_error(x, "a loop in C begins at %lld, below 0", (long long)first);
    int64_t rest = first + rounds * copies * loop->step;
    const char *last = template_print(x->arena, copies == 1 ? loop->last : template_int(rest));
    run_c_loop(x, loop, template_print(x->arena, loop->first), last, copies);
    run_straight(x, loop, rest, trips - rounds * copies);
}

/* A bound in a loop's head, without the parentheses of its own. */
static const char *bound(Expansion *x, TemplateValue value) {
    const char *text = template_print(x->arena, value);
    return value.wrapped ? arena_copy(x->arena, text + 1, strlen(text) - 2) : text;
}

static void run_runtime_loop(Expansion *x, Loop *loop) {
    const char *first = bound(x, loop->first), *last = bound(x, loop->last);
    if (loop->unroll <= 1) {
        run_c_loop(x, loop, first, last, 1);
        return;
    }
    print_line(x, "{", 1);
    const char *head = arena_printf(x->arena, "size_t %s = %s;", loop->variable, first);
    print_line(x, head, strlen(head));
    run_c_loop(x, loop, NULL, last, loop->unroll);
    run_c_loop(x, loop, NULL, last, 1);
    print_line(x, "}", 1);
}

static void run_loop(Expansion *x, const Statement *s) {
    Loop loop = {s, template_evaluate(x, s->first), template_evaluate(x, s->last), step_of(x, s), INT64_MAX, s->name};
    if (s->value) {
        TemplateValue unroll = template_evaluate(x, s->value);
        if (unroll.is_text && strcmp(unroll.text, "full") != 0)
            expand_error(x, "unroll is '%s', a number or \"full\" is needed", unroll.text);
        if (!unroll.is_text) loop.unroll = unroll.integer;
    }
    for (const OpenLoop *open = x->loops; open; open = open->outer)
        if (strcmp(open->variable, loop.variable) == 0) {
            loop.variable = writer_fresh(x->writer, s->name);
            break;
        }
    if (!loop.first.is_text && !loop.last.is_text) {
        run_constant_loop(x, &loop, trip_count(x, loop.first.integer, loop.last.integer, loop.step));
        return;
    }
    if (!loop.first.is_text && loop.first.integer < 0) expand_error(x, "a loop in C begins below 0");
    if (loop.unroll > MAX_RUNTIME_UNROLL)
        expand_error(x, "a loop from '%s' to '%s' cannot be unrolled fully", template_print(x->arena, loop.first),
                     template_print(x->arena, loop.last));
    run_runtime_loop(x, &loop);
}

static void enter(Expansion *x, Frame *frame, const char *file, const char *macro) {
    int depth = 0;
    for (const Frame *f = x->frame; f; f = f->outer) depth++;
    if (depth >= MAX_BLOCK_DEPTH) expand_error(x, "macros and files are nested too deep");
    *frame = (Frame){file, 0, macro, x->frame};
    x->frame = frame;
}

static void run_macro(Expansion *x, const Statement *s) {
    for (const Macro *m = x->macros; m; m = m->next)
        if (m->statement != s && m->statement->name == s->name)
            expand_error(x, "macro '%s' is there already, at %s:%d", s->name, m->file, m->statement->line);
    Macro *macro = arena_alloc(x->arena, sizeof *macro);
    *macro = (Macro){x->macros, s, x->frame->file};
    x->macros = macro;
}

static void unknown_macro(const Expansion *x, const char *name) {
    size_t count = 0;
    for (const Macro *m = x->macros; m; m = m->next) count++;
    const char **names = arena_array(x->arena, count + 1, sizeof *names);
    count = 0;
    for (const Macro *m = x->macros; m; m = m->next) names[count++] = m->statement->name;
    const char *near = nearest_word(name, names);
    if (near) expand_error(x, "there is no macro '%s'; is '%s' meant?", name, near);
    expand_error(x, "there is no macro '%s'", name);
}

static void run_use(Expansion *x, const Statement *s) {
    const Macro *m = x->macros;
    while (m && m->statement->name != s->name) m = m->next;
    if (!m) {
        unknown_macro(x, s->name);
        return;
    }
    if (m->statement->count != s->count)
        expand_error(x, "macro '%s' takes %d arguments, %d are given", s->name, m->statement->count, s->count);
    TemplateVars *outer = x->scope, *own = vars_new(x->arena, x->globals);
    for (int i = 0; i < s->count; i++) vars_set(own, m->statement->params[i], template_evaluate(x, s->args[i]));
    Frame frame;
    enter(x, &frame, m->file, s->name);
    x->scope = own;
    run_statements(x, m->statement->body);
    x->scope = outer;
    x->frame = frame.outer;
}

static void run_include(Expansion *x, const Statement *s) {
    const Template *template = embedded_template(s->name);
    if (!template) {
        expand_error(x, "there is no file \"%s\" to include", s->name);
        return;
    }
    Frame frame;
    enter(x, &frame, template->name, NULL);
    run_statements(x, template->body);
    x->frame = frame.outer;
}

static void run_line(Expansion *x, const Statement *s) {
    static Arena *parts; /* texts that a line is made of, none of which outlives it */
    if (!parts) parts = arena_new();
    arena_clear(parts);
    Arena *outer = x->arena;
    x->arena = parts;
    const char *text = template_evaluate_pieces(x, s->pieces);
    x->arena = outer;
    if (text[strspn(text, " \t\n")] != '\0') print_lines(x, text);
}

static void run_statement(Expansion *x, const Statement *s) {
    switch (s->kind) {
    case STATEMENT_LINE: run_line(x, s); break;
    case STATEMENT_BLANK: print_line(x, "", 0); break;
    case STATEMENT_LET:
        if (vars_has_own(x->scope, s->name))
            expand_error(x, "'%s' is let in this block already; $set is meant", s->name);
        vars_set(x->scope, s->name, template_evaluate(x, s->value));
        break;
    case STATEMENT_SET:
        if (!vars_assign(x, s->name, template_evaluate(x, s->value)))
            expand_error(x, "$set: the template let no '%s'", s->name);
        break;
    case STATEMENT_IF:
        run_block(x, template_evaluate_int(x, s->value, "the condition") ? s->body : s->otherwise);
        break;
    case STATEMENT_FOR: run_for(x, s); break;
    case STATEMENT_LOOP: run_loop(x, s); break;
    case STATEMENT_MACRO: run_macro(x, s); break;
    case STATEMENT_USE: run_use(x, s); break;
    case STATEMENT_INCLUDE: run_include(x, s); break;
    case STATEMENT_ERROR: expand_error(x, "%s", template_evaluate_pieces(x, s->pieces));
    }
}

static void run_statements(Expansion *x, const Statement *s) {
    for (; s; s = s->next) {
        x->frame->line = s->line;
        if (++x->steps > MAX_STEPS) expand_error(x, "the expansion takes over %lld steps", (long long)MAX_STEPS);
        run_statement(x, s);
    }
}

static void run_block(Expansion *x, const Statement *s) {
    TemplateVars *outer = x->scope;
    x->scope = vars_new(x->arena, outer);
    run_statements(x, s);
    x->scope = outer;
}

static void expand(Arena *arena, Writer *writer, const Template *template, TemplateVars *vars, const Isa *v,
                   const Isa *u) {
    Frame frame = {.file = template->name};
    TemplateVars *globals = vars_new(arena, vars);
    Expansion x = {
        .arena = arena, .writer = writer, .v = v, .u = u, .scope = globals, .globals = globals, .frame = &frame};
    run_statements(&x, template->body);
}

void template_expand_with(Arena *arena, Writer *writer, const char *template_name, TemplateVars *vars, const Isa *v,
                          const Isa *u) {
    const Template *template = embedded_template(template_name);
    if (!template) bug("template %s: there is no such file", template_name);
    expand(arena, writer, template, vars, v, u);
}

void template_expand(Arena *arena, Writer *writer, const char *template_name, TemplateVars *vars, const Isa *isa) {
    template_expand_with(arena, writer, template_name, vars, isa, isa);
}

void template_expand_text(Arena *arena, Writer *writer, const char *name, const char *text, TemplateVars *vars,
                          const Isa *isa) {
    expand(arena, writer, parse_template(arena, name, text), vars, isa, isa);
}

void template_expand_helpers(Arena *arena, Writer *writer, TemplateVars *vars, const Isa *isa) {
    const char *name = arena_printf(arena, "%s.isa", isa->name);
    template_expand_text(arena, writer, name, isa->helpers, vars, isa);
}
