/* template_scan.c: reads names, expressions and text with insertions (see template.c). */
#include "template_parts.h"

#include <string.h>

enum { MAX_EXPRESSION_DEPTH = 100 };

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static char peek(const Scan *scan, size_t ahead) {
    return (size_t)(scan->end - scan->at) > ahead ? scan->at[ahead] : '\0';
}

void template_scan_spaces(Scan *scan) {
    while (peek(scan, 0) == ' ' || peek(scan, 0) == '\t') scan->at++;
}

bool template_scan_symbol(Scan *scan, const char *symbol) {
    template_scan_spaces(scan);
    size_t size = strlen(symbol);
    if ((size_t)(scan->end - scan->at) < size || memcmp(scan->at, symbol, size) != 0) return false;
    scan->at += size;
    return true;
}

const char *template_scan_name(Scan *scan) {
    template_scan_spaces(scan);
    if (!c_starts_name(peek(scan, 0))) return NULL;
    const char *start = scan->at;
    while (c_in_name(peek(scan, 0))) scan->at++;
    return name_of(start, (size_t)(scan->at - start));
}

bool template_scan_word(Scan *scan, const char *word) {
    Scan ahead = *scan;
    const char *name = template_scan_name(&ahead);
    if (!name || strcmp(name, word) != 0) return false;
    *scan = ahead;
    return true;
}

static TemplateExpr *new_expr(Scan *scan, TermKind kind) {
    TemplateExpr *expr = arena_alloc(scan->arena, sizeof *expr);
    expr->kind = kind;
    return expr;
}

static TemplateExpr *scan_integer(Scan *scan) {
    TemplateExpr *expr = new_expr(scan, TERM_INT);
    for (; is_digit(peek(scan, 0)); scan->at++)
        if (!mul_fits(expr->integer, 10, &expr->integer) || !add_fits(expr->integer, *scan->at - '0', &expr->integer))
            template_scan_error(scan, "the number is too large");
    return expr;
}

static TemplateExpr *scan_string(Scan *scan) {
    TemplateExpr *expr = new_expr(scan, TERM_STRING);
    Text text = text_new(scan->arena);
    for (scan->at++; peek(scan, 0) != '"'; scan->at++) {
        if (peek(scan, 0) == '\\') scan->at++;
        if (scan->at >= scan->end) template_scan_error(scan, "the string has no end");
        text_add(&text, scan->at, 1);
    }
    scan->at++;
    expr->text = text.data;
    return expr;
}

/* Returns the end of the text that begins at `at`: a byte of `ends`, or a closing bracket, outside brackets and
 * literals; NULL if there is no end. */
static const char *text_end(const Scan *scan, const char *ends) {
    int open = 0;
    for (const char *at = scan->at; at < scan->end; at++) {
        if (*at == '"' || *at == '\'') {
            char quote = *at++;
            while (at < scan->end && *at != quote) at += *at == '\\' ? 2 : 1;
            if (at >= scan->end) break;
        } else if (*at == '(' || *at == '[' || *at == '{') {
            open++;
        } else if (*at == ')' || *at == ']' || *at == '}') {
            if (!open) return at;
            open--;
        } else if (strchr(ends, *at) && !open) {
            return at;
        }
    }
    return NULL;
}

/* Reads up to `end` text with insertions, without the spaces around it; NULL where there is nothing. */
static Pieces *scan_pieces_to(Scan *scan, const char *end) {
    template_scan_spaces(scan);
    Scan inner = *scan;
    inner.end = end;
    while (inner.end > inner.at && inner.end[-1] == ' ') inner.end--;
    scan->at = end;
    return inner.end > inner.at ? template_scan_pieces(&inner) : NULL;
}

/* After `v.NAME(`: texts split at commas, each with its own insertions. */
static void scan_operation_args(Scan *scan, TemplateExpr *expr) {
    template_scan_spaces(scan);
    if (template_scan_symbol(scan, ")")) return;
    for (;;) {
        if (expr->arg_count == MAX_ARGS)
            template_scan_error(scan, "%c.%s has too many arguments", expr->vectors, expr->text);
        const char *end = text_end(scan, ",");
        if (!end) template_scan_error(scan, "an argument list has no end");
        Pieces *arg = scan_pieces_to(scan, end);
        if (!arg)
            template_scan_error(scan, "argument %d of %c.%s is empty", expr->arg_count + 1, expr->vectors, expr->text);
        expr->args[expr->arg_count++] = arg;
        scan->at = end + 1;
        if (*end == ')') return;
        if (*end != ',')
            template_scan_error(scan, "'%c' closes nothing in the arguments of %c.%s", *end, expr->vectors, expr->text);
    }
}

const char *const template_properties[] = {[PROPERTY_WIDTH] = "width",
                                           [PROPERTY_REGISTERS] = "registers",
                                           [PROPERTY_FUSED] = "fused",
                                           [PROPERTY_APART] = "apart",
                                           [PROPERTY_TYPE] = "type",
                                           [PROPERTY_INTEGERS] = "integers",
                                           [PROPERTY_NAME] = "name",
                                           [PROPERTY_ATTRIBUTE] = "attribute",
                                           [PROPERTY_GUARD] = "guard",
                                           [PROPERTY_COUNT] = NULL};

static TemplateExpr *scan_vector(Scan *scan, char vectors) {
    scan->at++; /* the point */
    const char *name = template_scan_name(scan);
    if (!name) template_scan_error(scan, "a name is missing after '%c.'", vectors);
    TemplateExpr *expr = new_expr(scan, TERM_PROPERTY);
    expr->text = name;
    expr->vectors = vectors;
    if (peek(scan, 0) == '(') {
        scan->at++;
        expr->kind = strcmp(name, "has") == 0 ? TERM_HAS : TERM_OPERATION;
        scan_operation_args(scan, expr);
    } else {
        while (expr->property < PROPERTY_COUNT && strcmp(template_properties[expr->property], name) != 0)
            expr->property++;
    }
    return expr;
}

/* `expr` and the fields behind it: .NAME.NAME; `..` is another symbol. */
static TemplateExpr *scan_fields(Scan *scan, TemplateExpr *expr) {
    while (peek(scan, 0) == '.' && peek(scan, 1) != '.') {
        scan->at++;
        TemplateExpr *field = new_expr(scan, TERM_FIELD);
        field->a = expr;
        field->text = template_scan_name(scan);
        if (!field->text) template_scan_error(scan, "a field's name is missing after '%s.'", expr->text);
        expr = field;
    }
    return expr;
}

static TemplateExpr *scan_variable(Scan *scan, const char *name) {
    TemplateExpr *expr = new_expr(scan, TERM_NAME);
    expr->text = name;
    return scan_fields(scan, expr);
}

static bool is_table_name(const char *name) { return strcmp(name, "v") == 0 || strcmp(name, "u") == 0; }

void template_check_record_name(const Scan *scan, const char *name) {
    if (is_table_name(name)) template_scan_error(scan, "a record cannot be called '%s' as a target is", name);
}

/* After `join`: NAME [, NAME] in LIST [by SEPARATOR]: TEXT. */
static TemplateExpr *scan_join(Scan *scan) {
    TemplateExpr *expr = new_expr(scan, TERM_JOIN);
    expr->text = template_scan_name(scan);
    template_check_record_name(scan, expr->text);
    if (template_scan_symbol(scan, ",") && !(expr->counter = template_scan_name(scan)))
        template_scan_error(scan, "a name is missing");
    if (!template_scan_word(scan, "in")) template_scan_error(scan, "'in' is missing");
    expr->a = template_scan_expression(scan);
    if (template_scan_word(scan, "by")) expr->b = template_scan_expression(scan);
    if (!template_scan_symbol(scan, ":")) template_scan_error(scan, "':' is missing");
    const char *end = text_end(scan, "");
    expr->args[0] = scan_pieces_to(scan, end ? end : scan->end);
    if (!expr->args[0]) template_scan_error(scan, "the text of a join is missing");
    return expr;
}

/* After `defined(`: a name, or a field of a record `a`. */
static TemplateExpr *scan_defined(Scan *scan) {
    const char *name = template_scan_name(scan);
    TemplateExpr *expr = name ? scan_variable(scan, name) : NULL;
    if (!expr || !template_scan_symbol(scan, ")")) template_scan_error(scan, "defined(NAME) is meant");
    expr->kind = TERM_DEFINED;
    return expr;
}

/* The argument of a function that is called as `meant` says. */
static TemplateExpr *scan_single(Scan *scan, TermKind kind, const char *meant) {
    TemplateExpr *expr = new_expr(scan, kind);
    expr->a = template_scan_expression(scan);
    if (!template_scan_symbol(scan, ")")) template_scan_error(scan, "%s is meant", meant);
    return expr;
}

const char *const template_functions[] = {"min", "max", "ceil_div", "round_up", "defined", "count", "expand", NULL};

/* After `NAME(` of a function that the template defines. */
static TemplateExpr *scan_call(Scan *scan, TemplateExpr *expr) {
    expr->kind = TERM_CALL;
    if (template_scan_symbol(scan, ")")) return expr;
    do {
        if (expr->arg_count == MAX_ARGS) template_scan_error(scan, "%s has too many arguments", expr->text);
        expr->values[expr->arg_count++] = template_scan_expression(scan);
    } while (template_scan_symbol(scan, ","));
    if (!template_scan_symbol(scan, ")")) template_scan_error(scan, "a ')' is missing");
    return expr;
}

static TemplateExpr *scan_function(Scan *scan, const char *name) {
    if (strcmp(name, "defined") == 0) return scan_defined(scan);
    if (strcmp(name, "count") == 0) return scan_single(scan, TERM_COUNT, "count(LIST)");
    if (strcmp(name, "expand") == 0) return scan_single(scan, TERM_EXPAND, "expand(TEXT)");
    TemplateExpr *expr = new_expr(scan, TERM_FUNCTION);
    expr->text = name;
    bool known = false;
    for (int i = 0; template_functions[i]; i++) known = known || strcmp(name, template_functions[i]) == 0;
    if (!known) return scan_call(scan, expr);
    expr->a = template_scan_expression(scan);
    if (!template_scan_symbol(scan, ",")) template_scan_error(scan, "%s takes two arguments", name);
    expr->b = template_scan_expression(scan);
    if (!template_scan_symbol(scan, ")")) template_scan_error(scan, "%s takes two arguments", name);
    return expr;
}

static TemplateExpr *scan_primary(Scan *scan) {
    template_scan_spaces(scan);
    char c = peek(scan, 0);
    if (is_digit(c)) return scan_integer(scan);
    if (c == '"') return scan_string(scan);
    if (c == '(') {
        scan->at++;
        TemplateExpr *expr = template_scan_expression(scan);
        if (!template_scan_symbol(scan, ")")) template_scan_error(scan, "a ')' is missing");
        return expr;
    }
    const char *name = template_scan_name(scan);
    if (!name) {
        if (!c) template_scan_error(scan, "an expression ends too early");
        template_scan_error(scan, "an expression cannot go on with '%c'", c);
    }
    if (is_table_name(name) && peek(scan, 0) == '.' && peek(scan, 1) != '.') return scan_vector(scan, *name);
    if (peek(scan, 0) == '(') {
        scan->at++;
        return scan_function(scan, name);
    }
    if (strcmp(name, "join") == 0) {
        template_scan_spaces(scan);
        if (c_starts_name(peek(scan, 0))) return scan_join(scan);
    }
    return scan_variable(scan, name);
}

static TemplateExpr *scan_unary(Scan *scan) {
    if (++scan->depth > MAX_EXPRESSION_DEPTH) template_scan_error(scan, "an expression is nested too deep");
    template_scan_spaces(scan);
    TemplateExpr *expr;
    char c = peek(scan, 0);
    if (c == '-' || (c == '!' && peek(scan, 1) != '=')) {
        scan->at++;
        expr = new_expr(scan, c == '-' ? TERM_NEGATE : TERM_NOT);
        expr->a = scan_unary(scan);
    } else {
        expr = scan_primary(scan);
    }
    scan->depth--;
    return expr;
}

/* Loosest first. A symbol stands in front of its own prefixes. */
static const char *const operators[][5] = {
    {"||"}, {"&&"}, {"==", "!="}, {"<=", ">=", "<", ">"}, {"~"}, {"+", "-"}, {"*", "/", "%"},
};

enum { LEVELS = sizeof operators / sizeof operators[0] };

static TemplateExpr *scan_binary(Scan *scan, int level) {
    if (level == LEVELS) return scan_unary(scan);
    TemplateExpr *left = scan_binary(scan, level + 1);
    template_scan_spaces(scan);
    if (!strchr("|&=!<>~+-*/%", peek(scan, 0))) return left; /* a shortcut past the symbols of every level */
    for (int i = 0; operators[level][i];) {
        if (!template_scan_symbol(scan, operators[level][i])) {
            i++;
            continue;
        }
        TemplateExpr *expr = new_expr(scan, TERM_BINARY);
        expr->symbol = operators[level][i];
        expr->operator = strchr("=!<>", expr->symbol[0]) ? '=' : expr->symbol[0];
        expr->a = left;
        expr->b = scan_binary(scan, level + 1);
        left = expr;
        i = 0;
    }
    return left;
}

TemplateExpr *template_scan_expression(Scan *scan) {
    if (++scan->depth > MAX_EXPRESSION_DEPTH) template_scan_error(scan, "an expression is nested too deep");
    TemplateExpr *expr = scan_binary(scan, 0);
    if (template_scan_symbol(scan, "?")) {
        TemplateExpr *choice = new_expr(scan, TERM_CHOICE);
        choice->a = expr;
        choice->b = template_scan_expression(scan);
        if (!template_scan_symbol(scan, ":")) template_scan_error(scan, "a '?' has no ':'");
        choice->c = template_scan_expression(scan);
        expr = choice;
    }
    scan->depth--;
    return expr;
}

TemplateExpr *template_scan_text(Scan *scan) {
    TemplateExpr *expr = new_expr(scan, TERM_TEXT);
    template_scan_spaces(scan);
    expr->args[0] = template_scan_pieces(scan);
    return expr;
}

Pieces *template_scan_pieces(Scan *scan) {
    Pieces *pieces = arena_alloc(scan->arena, sizeof *pieces);
    Piece **link = &pieces->first;
    while (scan->at < scan->end) {
        Piece *piece = *link = arena_alloc(scan->arena, sizeof *piece);
        link = &piece->next;
        if (peek(scan, 0) == '$' && peek(scan, 1) == '{') {
            scan->at += 2;
            piece->expr = template_scan_expression(scan);
            if (!template_scan_symbol(scan, "}"))
                template_scan_error(scan, "a '}' is missing after an inserted expression");
            continue;
        }
        if (peek(scan, 0) == '$' && peek(scan, 1) == '$') scan->at++; /* $$ prints one $ */
        const char *dollar = memchr(scan->at + 1, '$', (size_t)(scan->end - scan->at - 1));
        piece->text = scan->at;
        piece->size = (size_t)((dollar ? dollar : scan->end) - scan->at);
        scan->at += piece->size;
    }
    const Piece *only = pieces->first;
    if (!only) pieces->plain = "";
    else if (!only->next && !only->expr) pieces->plain = arena_copy(scan->arena, only->text, only->size);
    return pieces;
}
