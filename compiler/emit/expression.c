/* expression.c: expressions and insertions of the template language (see template.c). */
#include "emit.h"

#include <string.h>

enum { MAX_EXPRESSION_DEPTH = 100, MAX_ARGS = 8 };

typedef enum TermKind {
    TERM_INT,
    TERM_STRING,
    TERM_NAME,
    TERM_NOT,
    TERM_NEGATE,
    TERM_BINARY,
    TERM_CHOICE,
    TERM_FUNCTION,
    TERM_DEFINED,
    TERM_PROPERTY, /* v.NAME, u.NAME */
    TERM_OPERATION /* v.NAME(text, text) */
} TermKind;

struct TemplateExpr {
    TermKind kind;
    int64_t integer;
    const char *text; /* a string, or the name of what is used */
    const char *symbol;
    char vectors;  /* 'v' or 'u': the table of a property or an operation */
    char operator; /* the symbol's first byte, where a comparison is '=' */
    TemplateExpr *a, *b, *c;
    Pieces *args[MAX_ARGS];
    int arg_count;
    size_t op_index; /* where a table held the operation: that of another target mostly holds it there too */
};

typedef struct Piece {
    struct Piece *next;
    const char *text; /* when expr is NULL */
    size_t size;
    TemplateExpr *expr;
} Piece;

struct Pieces {
    Piece *first;
    const char *plain; /* the whole text when nothing is inserted, else NULL */
};

/* ---------------------------------------------------------------------------------- errors */

void template_scan_error(const Scan *scan, const char *format, ...) {
    char reason[512];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    bug("template %s:%d: %s", scan->file, scan->line, reason);
}

void expand_error(const Expansion *x, const char *format, ...) {
    char reason[400], stack[500] = "";
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    size_t used = 0;
    for (const Frame *f = x->frame; f->outer && used < sizeof stack; f = f->outer) {
        const char *how = f->macro ? "in macro " : "included at", *macro = f->macro ? f->macro : "";
        int size = snprintf(stack + used, sizeof stack - used, "%s%s%s%s %s:%d", used ? ", " : " (", how, macro,
                            f->macro ? " used at" : "", f->outer->file, f->outer->line);
        used += size > 0 ? (size_t)size : 0;
    }
    bug("template %s:%d: %s%s%s", x->frame->file, x->frame->line, reason, stack, used ? ")" : "");
}

/* ---------------------------------------------------------------------------------- reading */

static bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
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
    if (!is_name_start(peek(scan, 0))) return NULL;
    const char *start = scan->at;
    while (is_name_start(peek(scan, 0)) || is_digit(peek(scan, 0))) scan->at++;
    return name_of(start, (size_t)(scan->at - start));
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

/* Where the argument that begins at `at` ends: at a comma or a closing bracket outside brackets and literals. */
static const char *argument_end(const Scan *scan) {
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
        } else if (*at == ',' && !open) {
            return at;
        }
    }
    template_scan_error(scan, "an argument list has no end");
}

/* After `v.NAME(`: texts split at commas, each with its own insertions. */
static void scan_operation_args(Scan *scan, TemplateExpr *expr) {
    template_scan_spaces(scan);
    if (template_scan_symbol(scan, ")")) return;
    for (;;) {
        if (expr->arg_count == MAX_ARGS)
            template_scan_error(scan, "%c.%s has too many arguments", expr->vectors, expr->text);
        template_scan_spaces(scan);
        const char *end = argument_end(scan), *last = end;
        while (last > scan->at && last[-1] == ' ') last--;
        if (last == scan->at)
            template_scan_error(scan, "argument %d of %c.%s is empty", expr->arg_count + 1, expr->vectors, expr->text);
        Scan inner = *scan;
        inner.end = last;
        expr->args[expr->arg_count++] = template_scan_pieces(&inner);
        scan->at = end + 1;
        if (*end == ')') return;
        if (*end != ',')
            template_scan_error(scan, "'%c' closes nothing in the arguments of %c.%s", *end, expr->vectors, expr->text);
    }
}

static TemplateExpr *scan_vector(Scan *scan, char vectors) {
    scan->at++; /* the point */
    const char *name = template_scan_name(scan);
    if (!name) template_scan_error(scan, "a name is missing after '%c.'", vectors);
    TemplateExpr *expr = new_expr(scan, TERM_PROPERTY);
    expr->text = name;
    expr->vectors = vectors;
    if (peek(scan, 0) == '(') {
        scan->at++;
        expr->kind = TERM_OPERATION;
        scan_operation_args(scan, expr);
    }
    return expr;
}

static TemplateExpr *scan_function(Scan *scan, const char *name) {
    static const char *const functions[] = {"min", "max", "ceil_div", "round_up", "defined", NULL};
    TemplateExpr *expr = new_expr(scan, TERM_FUNCTION);
    expr->text = name;
    if (strcmp(name, "defined") == 0) {
        expr->kind = TERM_DEFINED;
        expr->text = template_scan_name(scan);
        if (!expr->text || !template_scan_symbol(scan, ")")) template_scan_error(scan, "defined(NAME) is meant");
        return expr;
    }
    bool known = false;
    for (int i = 0; functions[i]; i++) known = known || strcmp(name, functions[i]) == 0;
    if (!known) {
        const char *near = nearest_word(name, functions);
        template_scan_error(scan, "there is no function '%s'%s%s%s", name, near ? "; is '" : "", near ? near : "",
                   near ? "' meant?" : "");
    }
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
    bool vectors = strcmp(name, "v") == 0 || strcmp(name, "u") == 0;
    if (vectors && peek(scan, 0) == '.' && peek(scan, 1) != '.') return scan_vector(scan, *name);
    if (peek(scan, 0) == '(') {
        scan->at++;
        return scan_function(scan, name);
    }
    TemplateExpr *expr = new_expr(scan, TERM_NAME);
    expr->text = name;
    return expr;
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

/* Loosest first; longer symbols before those they begin with. */
static const char *const operators[][5] = {
    {"||"}, {"&&"}, {"==", "!="}, {"<=", ">=", "<", ">"}, {"~"}, {"+", "-"}, {"*", "/", "%"},
};

enum { LEVELS = sizeof operators / sizeof operators[0] };

static TemplateExpr *scan_binary(Scan *scan, int level) {
    if (level == LEVELS) return scan_unary(scan);
    TemplateExpr *left = scan_binary(scan, level + 1);
    template_scan_spaces(scan);
    if (!strchr("|&=!<>~+-*/%", peek(scan, 0))) return left; /* mostly: not every level need try its symbols */
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

/* ---------------------------------------------------------------------------------- evaluating */

int64_t template_evaluate_int(Expansion *x, TemplateExpr *expr, const char *what) {
    TemplateValue value = template_evaluate(x, expr);
    if (value.is_text) expand_error(x, "%s is the text '%s', a number is needed", what, value.text);
    return value.integer;
}

/* Whether C text can stand beside any operator without parentheses. */
static bool stands_alone(const char *text) {
    int open = 0;
    for (const char *at = text; *at; at++) {
        if (*at == '(' || *at == '[' || *at == '{') {
            open++;
        } else if (*at == ')' || *at == ']' || *at == '}') {
            open--;
            if (!open && (is_name_start(at[1]) || is_digit(at[1]))) return false; /* a cast */
        } else if (!open && !is_name_start(*at) && !is_digit(*at) && *at != '.') {
            return false;
        }
    }
    return open == 0;
}

static bool is_number(TemplateValue value, int64_t number) {
    if (!value.is_text) return value.integer == number;
    return value.text[0] == '0' + number && value.text[1] == '\0';
}

static const char *operand(Expansion *x, TemplateValue value) {
    const char *text = template_print(x->arena, value);
    bool alone = value.is_text ? stands_alone(text) : value.integer >= 0;
    return alone ? text : arena_printf(x->arena, "(%s)", text);
}

/* Arithmetic with a text, which is C that runs later. */
static TemplateValue text_arithmetic(Expansion *x, char symbol, TemplateValue a, TemplateValue b) {
    if (symbol == '*' && (is_number(a, 0) || is_number(b, 0))) return template_int(0);
    if (symbol == '*' && is_number(a, 1)) return b;
    if ((symbol == '*' || symbol == '/') && is_number(b, 1)) return a;
    if (symbol == '+' && is_number(a, 0)) return b;
    if ((symbol == '+' || symbol == '-') && is_number(b, 0)) return a;
    if ((symbol == '/' || symbol == '%') && is_number(b, 0)) expand_error(x, "a division by zero");
    if ((symbol == '+' || symbol == '-') && !b.is_text && b.integer < 0 && b.integer != INT64_MIN) {
        symbol = symbol == '+' ? '-' : '+';
        b.integer = -b.integer;
    }
    TemplateValue result = template_text(arena_printf(x->arena, "(%s %c %s)", operand(x, a), symbol, operand(x, b)));
    result.wrapped = true;
    return result;
}

static TemplateValue arithmetic(Expansion *x, char symbol, TemplateValue a, TemplateValue b) {
    if (a.is_text || b.is_text) return text_arithmetic(x, symbol, a, b);
    int64_t m = a.integer, n = b.integer, result = 0;
    bool fits = true;
    if ((symbol == '/' || symbol == '%') && n == 0) expand_error(x, "a division by zero");
    if (symbol == '+') fits = add_fits(m, n, &result);
    if (symbol == '-') fits = !__builtin_sub_overflow(m, n, &result);
    if (symbol == '*') fits = mul_fits(m, n, &result);
    if (symbol == '/' || symbol == '%') fits = !(m == INT64_MIN && n == -1);
    if (!fits) expand_error(x, "%lld %c %lld does not fit in 64 bits", (long long)m, symbol, (long long)n);
    if (symbol == '/') result = m / n;
    if (symbol == '%') result = m % n;
    return template_int(result);
}

TemplateValue template_sum(Expansion *x, TemplateValue a, TemplateValue b) { return arithmetic(x, '+', a, b); }

static TemplateValue compare(Expansion *x, const char *symbol, TemplateValue a, TemplateValue b) {
    bool equality = symbol[1] == '=' && (symbol[0] == '=' || symbol[0] == '!');
    if (a.is_text != b.is_text || (a.is_text && !equality))
        expand_error(x, "'%s' cannot compare '%s' with '%s'", symbol, template_print(x->arena, a),
                     template_print(x->arena, b));
    int order = a.is_text ? strcmp(a.text, b.text) : (a.integer > b.integer) - (a.integer < b.integer);
    if (equality) return template_int((order == 0) == (symbol[0] == '='));
    bool strict = symbol[1] == '\0';
    if (symbol[0] == '<') return template_int(strict ? order < 0 : order <= 0);
    return template_int(strict ? order > 0 : order >= 0);
}

static TemplateValue evaluate_binary(Expansion *x, const TemplateExpr *expr) {
    const char *symbol = expr->symbol;
    if (expr->operator == '&' || expr->operator == '|') {
        bool left = template_evaluate_int(x, expr->a, symbol) != 0;
        if (left == (expr->operator == '|')) return template_int(left);
        return template_int(template_evaluate_int(x, expr->b, symbol) != 0);
    }
    TemplateValue a = template_evaluate(x, expr->a), b = template_evaluate(x, expr->b);
    if (expr->operator == '~')
        return template_text(arena_printf(x->arena, "%s%s", template_print(x->arena, a), template_print(x->arena, b)));
    if (expr->operator == '=') return compare(x, symbol, a, b);
    return arithmetic(x, expr->operator, a, b);
}

static TemplateValue evaluate_function(Expansion *x, const TemplateExpr *expr) {
    int64_t a = template_evaluate_int(x, expr->a, expr->text), b = template_evaluate_int(x, expr->b, expr->text);
    if (strcmp(expr->text, "min") == 0) return template_int(a < b ? a : b);
    if (strcmp(expr->text, "max") == 0) return template_int(a > b ? a : b);
    if (a < 0 || b <= 0)
        expand_error(x, "%s(%lld, %lld) is not defined", expr->text, (long long)a, (long long)b);
    int64_t quotient = a / b + (a % b != 0);
    if (strcmp(expr->text, "ceil_div") == 0) return template_int(quotient);
    return arithmetic(x, '*', template_int(quotient), template_int(b));
}

static const char *prefix_of(Expansion *x) {
    const TemplateValue *prefix = vars_find(x->scope, name_of("prefix", strlen("prefix")));
    if (!prefix) unknown_name(x, "prefix");
    return template_print(x->arena, *prefix);
}

static const Isa *table_of(const Expansion *x, const TemplateExpr *expr) {
    const Isa *isa = expr->vectors == 'u' ? x->u : x->v;
    if (!isa) expand_error(x, "%c.%s: no target is given", expr->vectors, expr->text);
    return isa;
}

static TemplateValue evaluate_property(Expansion *x, const TemplateExpr *expr) {
    static const char *const names[] = {"width", "registers", "fused", "type", "name", "attribute", "guard", NULL};
    const Isa *isa = table_of(x, expr);
    char vectors = expr->vectors;
    int which = 0;
    while (names[which] && strcmp(names[which], expr->text) != 0) which++;
    switch (which) {
    case 0: return template_int(isa->width);
    case 1: return template_int(isa->registers);
    case 2: return template_int(isa->fused);
    case 3: return template_text(isa->type);
    case 4: return template_text(isa->name);
    case 5:
        if (!strstr(isa->attribute, "${prefix}")) return template_text(isa->attribute);
        return template_text(isa_with_prefix(x->arena, isa->attribute, prefix_of(x)));
    case 6: return template_text(isa->guard);
    default: break;
    }
    const char *near = nearest_word(expr->text, names);
    if (near) expand_error(x, "there is no property '%c.%s'; is '%c.%s' meant?", vectors, expr->text, vectors, near);
    if (isa_find(isa, expr->text)) expand_error(x, "%c.%s is an operation and needs arguments", vectors, expr->text);
    expand_error(x, "there is no property '%c.%s'", vectors, expr->text);
}

static const IsaOp *operation_of(Expansion *x, TemplateExpr *expr) {
    const Isa *isa = table_of(x, expr);
    if (expr->op_index < isa->op_count && strcmp(isa->ops[expr->op_index].name, expr->text) == 0)
        return &isa->ops[expr->op_index];
    const IsaOp *op = isa_find(isa, expr->text);
    if (!op) {
        const char *near = nearest_word(expr->text, isa->op_names);
        if (near) expand_error(x, "%s has no operation '%s'; is '%s' meant?", isa->name, expr->text, near);
        expand_error(x, "%s has no operation '%s'", isa->name, expr->text);
    }
    expr->op_index = (size_t)(op - isa->ops);
    return op;
}

/* The row NAME_8 of a table where NAME's count is the number 8, taken off `args`; `op` where there is none. */
static const IsaOp *operation_of_count(const Expansion *x, const Isa *isa, const IsaOp *op, const char **args) {
    int at = 0;
    while (at < op->param_count && op->kinds[at] != ISA_COUNT) at++;
    if (at == op->param_count || !args[at] || strspn(args[at], "0123456789") != strlen(args[at])) return op;
    const IsaOp *counted = isa_find(isa, arena_printf(x->arena, "%s_%s", op->name, args[at]));
    if (!counted) return op;
    for (; at + 1 < op->param_count; at++) args[at] = args[at + 1];
    return counted;
}

static TemplateValue evaluate_operation(Expansion *x, TemplateExpr *expr) {
    const IsaOp *op = operation_of(x, expr);
    if (expr->arg_count != op->param_count)
        expand_error(x, "%c.%s takes %d arguments, %d are given", expr->vectors, op->name, op->param_count,
                     expr->arg_count);
    const char *args[MAX_ARGS] = {NULL};
    for (int i = 0; i < op->param_count; i++) args[i] = template_evaluate_pieces(x, expr->args[i]);
    op = operation_of_count(x, table_of(x, expr), op, args);
    return template_text(isa_spell(x->arena, op, args, op->needs_prefix ? prefix_of(x) : NULL));
}

TemplateValue template_evaluate(Expansion *x, TemplateExpr *expr) {
    switch (expr->kind) {
    case TERM_INT: return template_int(expr->integer);
    case TERM_STRING: return template_text(expr->text);
    case TERM_NAME: {
        const TemplateValue *value = vars_find(x->scope, expr->text);
        if (!value) unknown_name(x, expr->text);
        return *value;
    }
    case TERM_NOT: return template_int(!template_evaluate_int(x, expr->a, "the operand of '!'"));
    case TERM_NEGATE: {
        TemplateValue a = template_evaluate(x, expr->a);
        if (!a.is_text) return arithmetic(x, '-', template_int(0), a);
        TemplateValue result = template_text(arena_printf(x->arena, "(-%s)", operand(x, a)));
        result.wrapped = true;
        return result;
    }
    case TERM_BINARY: return evaluate_binary(x, expr);
    case TERM_CHOICE: return template_evaluate(x, template_evaluate_int(x, expr->a, "a condition") ? expr->b : expr->c);
    case TERM_FUNCTION: return evaluate_function(x, expr);
    case TERM_DEFINED: return template_int(vars_find(x->scope, expr->text) != NULL);
    case TERM_PROPERTY: return evaluate_property(x, expr);
    case TERM_OPERATION: return evaluate_operation(x, expr);
    }
    bug("an expression has kind %d", (int)expr->kind);
}

/* Whether parentheses around an insertion would be doubled or idle: `[(i * 4)]`, `f(x, (i * 4))`. */
static bool is_enclosed(const Text *before, const Piece *after) {
    if (!before->size || !after || after->expr || !strchr(")],;", after->text[0])) return false;
    char last = before->data[before->size - 1];
    if (last == ' ' && before->size > 1) {
        last = before->data[before->size - 2];
        return last == ',' || last == '=';
    }
    return last == '(' || last == '[';
}

const char *template_evaluate_pieces(Expansion *x, const Pieces *pieces) {
    if (pieces->plain) return pieces->plain;
    Text text = text_new(x->arena);
    for (const Piece *piece = pieces->first; piece; piece = piece->next) {
        if (!piece->expr) {
            text_add(&text, piece->text, piece->size);
            continue;
        }
        TemplateValue value = template_evaluate(x, piece->expr);
        if (!value.is_text) {
            text_add_int(&text, value.integer);
            continue;
        }
        size_t size = strlen(value.text);
        if (size > writer_room(x->writer)) writer_over_budget(x->writer);
        bool bare = value.wrapped && is_enclosed(&text, piece->next);
        text_add(&text, value.text + bare, size - 2 * (size_t)bare);
    }
    return text.data;
}

/* ---------------------------------------------------------------------------------- spelling operations */

const char *isa_spell(Arena *arena, const IsaOp *op, const char *const *args, const char *prefix) {
    Text text = text_new(arena);
    for (size_t i = 0; i < op->piece_count; i++) {
        const IsaPiece *piece = &op->pieces[i];
        if (piece->param < 0) {
            const char *plain = piece->param == ISA_PREFIX ? prefix : piece->text;
            if (!plain) bug("%s: the prefix of its table is missing", op->name);
            text_add(&text, plain, strlen(plain));
            continue;
        }
        const char *arg = args[piece->param];
        char before = text.size ? text.data[text.size - 1] : ' ';
        if (before == ' ' && text.size > 1) before = text.data[text.size - 2] == ',' ? ',' : ' ';
        const char *next = i + 1 < op->piece_count && piece[1].param == ISA_TEXT ? piece[1].text : "";
        bool enclosed = (before == '(' || before == ',') && (next[0] == ')' || next[0] == ',');
        bool bare = enclosed || stands_alone(arg);
        if (!bare) text_add(&text, "(", 1);
        text_add(&text, arg, strlen(arg));
        if (!bare) text_add(&text, ")", 1);
    }
    return text.data;
}
