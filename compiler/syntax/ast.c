/* ast.c: builds the syntax tree, prints it, and formats a spec. */
#include "syntax.h"

#include <string.h>

Source *source_from_text(Arena *arena, const char *path, const char *text, size_t size) {
    Source *source = arena_alloc(arena, sizeof *source);
    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        text += 3;
        size -= 3;
    }
    *source = (Source){arena_copy(arena, path, strlen(path)), arena_copy(arena, text, size), size};
    return source;
}

Source *source_read(Arena *arena, const char *path) {
    size_t size;
    char *text = file_read(arena, path, MAX_SPEC_BYTES, &size);
    return source_from_text(arena, path, text, size);
}

Source *source_from_input(Arena *arena) {
    static const char name[] = "<stdin>";
    size_t size;
    char *text = stream_read(arena, 0, name, MAX_SPEC_BYTES, &size);
    return source_from_text(arena, name, text, size);
}

Location place_join(Location first, Location last) {
    if (first.line == last.line && last.column + last.length > first.column)
        first.length = last.column + last.length - first.column;
    return first;
}

Expr *expr_of_three(Parse *parse, ExprKind kind, Location location, Expr *left, Expr *right, Expr *third) {
    const Expr *const parts[] = {left, right, third};
    int depth = 1;
    for (int i = 0; i < 3; i++)
        if (parts[i] && parts[i]->depth >= depth) depth = parts[i]->depth + 1;
    if (depth > MAX_EXPR_DEPTH) {
        if (parse->deep_line != location.line) /* reported once per line, because the rest of a long chain is as deep */
            diagnose(parse->diagnostics, location, "an expression has more than %d steps", MAX_EXPR_DEPTH);
        parse->deep_line = location.line;
        left = right = third = NULL;
        kind = EXPR_INTEGER;
        depth = 1;
    }
    Expr *expr = arena_alloc(parse->arena, sizeof *expr);
    *expr =
        (Expr){.kind = kind, .location = location, .depth = depth, .text = "1", .integer = 1, .left = left,
               .right = right, .third = third};
    return expr;
}

Expr *expr_new(Parse *parse, ExprKind kind, Location location, Expr *left, Expr *right) {
    return expr_of_three(parse, kind, location, left, right, NULL);
}

/* ---------------------------------------------------------------- formatting */

static const struct {
    int level;
    const char *spelling;
} operators[] = {
#define EXPR(name, level, spelling) [EXPR_##name] = {level, spelling},
#include "expr.def"
};

enum { ANY_LEVEL = 0, AND_LEVEL = 3, SUM_LEVEL = 6, PRODUCT_LEVEL = 8, SIGN_LEVEL = 9, POWER_LEVEL = 10 };

static void format_expr(Text *out, const Expr *expr, int least, bool rule);

static void format_arguments(Text *out, const Expr *expr, const char *open, const char *close) {
    const Expr *const arguments[] = {expr->left, expr->right, expr->third};
    text_printf(out, "%s%s", expr->text, open);
    for (int i = 0; i < 3 && arguments[i]; i++) {
        if (i) text_printf(out, ", ");
        format_expr(out, arguments[i], ANY_LEVEL, true);
    }
    text_printf(out, "%s", close);
}

/* An operator between its arguments. Only a product and a power of a rule have no spaces around them. */
static void format_binary(Text *out, const Expr *expr, int own, bool rule) {
    const char *spelling = operators[expr->kind].spelling;
    const bool spaced = rule && (own < PRODUCT_LEVEL || expr->kind == EXPR_MOD);
    const bool chains = own <= AND_LEVEL || (own >= SUM_LEVEL && own < POWER_LEVEL); /* a - b - c is (a - b) - c */
    format_expr(out, expr->left, chains ? own : own + 1, rule);
    text_printf(out, spaced ? " %s " : "%s", spelling);
    format_expr(out, expr->right, expr->kind == EXPR_POWER ? SIGN_LEVEL : own + 1, rule);
}

/* An expression of a lower level than `least` stands in parentheses. */
static void format_expr(Text *out, const Expr *expr, int least, bool rule) {
    const int own = expr->kind == EXPR_NEGATE && !rule ? ANY_LEVEL : operators[expr->kind].level;
    const bool parenthesized = own < least;
    if (parenthesized) text_printf(out, "(");
    switch (expr->kind) {
    case EXPR_INTEGER: case EXPR_REAL: case EXPR_NAME: text_printf(out, "%s", expr->text); break;
    case EXPR_SQRT:
        text_printf(out, "sqrt(");
        format_expr(out, expr->left, ANY_LEVEL, rule);
        text_printf(out, ")");
        break;
    case EXPR_NEGATE:
        text_printf(out, "-");
        format_expr(out, expr->left, rule ? POWER_LEVEL : PRODUCT_LEVEL, rule);
        break;
    case EXPR_NOT:
        text_printf(out, "not ");
        format_expr(out, expr->left, own, rule);
        break;
    case EXPR_IF:
        text_printf(out, "if ");
        format_expr(out, expr->left, own, rule);
        text_printf(out, " then ");
        format_expr(out, expr->right, own, rule);
        text_printf(out, " else ");
        format_expr(out, expr->third, own, rule);
        break;
    case EXPR_CALL: format_arguments(out, expr, "(", ")"); break;
    case EXPR_INDEX: format_arguments(out, expr, "[", "]"); break;
    default: format_binary(out, expr, own, rule);
    }
    if (parenthesized) text_printf(out, ")");
}

void spec_quote(Text *out, const char *text) {
    static const char letters[] = "n\nt\tr\r\"\"\\\\";
    text_printf(out, "\"");
    for (const char *c = text; *c; c++) {
        const char *pair = letters;
        while (*pair && pair[1] != *c) pair += 2;
        if (*pair) text_printf(out, "\\%c", *pair);
        else if ((unsigned char)*c < ' ' || *c == 0x7f) text_printf(out, "\\x%02x", (unsigned)*c);
        else text_add(out, c, 1);
    }
    text_printf(out, "\"");
}

/* The grammar takes the name and the lower end of `input rows NAME -1..3` for a difference. */
static bool is_name_and_range(const Item *item, const Value *value) {
    return strcmp(item->name, "input") == 0 && value->kind == VALUE_RANGE && value->expr->kind == EXPR_SUB &&
           value->expr->left->kind == EXPR_NAME;
}

static void format_size(Text *out, const Expr *size) {
    if (!size) return;
    text_printf(out, "[");
    format_expr(out, size, ANY_LEVEL, true);
    text_printf(out, "]");
}

static void format_value(Text *out, const Item *item, const Value *value) {
    text_printf(out, " ");
    if (is_name_and_range(item, value)) {
        text_printf(out, "%s -", value->expr->left->text);
        format_expr(out, value->expr->right, PRODUCT_LEVEL, false);
        text_printf(out, "..");
        format_expr(out, value->until, ANY_LEVEL, false);
        return;
    }
    if (value->kind == VALUE_STRING) {
        spec_quote(out, value->string);
        return;
    }
    if (value->kind == VALUE_LEARNED) {
        format_size(out, value->until);
        format_size(out, value->expr);
        return;
    }
    if (value->kind == VALUE_RULE && *value->string) text_printf(out, "%s ", value->string);
    if (value->kind == VALUE_TABLE) {
        text_printf(out, "table [");
        format_expr(out, value->until, ANY_LEVEL, true);
        text_printf(out, "] ");
    }
    format_expr(out, value->expr, ANY_LEVEL, value->kind == VALUE_RULE || value->kind == VALUE_TABLE);
    if (value->kind == VALUE_RANGE) {
        text_printf(out, "..");
        format_expr(out, value->until, ANY_LEVEL, false);
    }
}

static void format_head(Text *out, const Item *item) {
    if (item->quoted) spec_quote(out, item->name);
    else text_printf(out, item_is_learned(item) ? "learned %s" : item->is_let ? "let %s =" : "%s", item->name);
    if (item->relation) text_printf(out, item->relation == RELATION_EQUAL ? " =" : " <=");
    for (const Value *v = item->values; v; v = v->next) format_value(out, item, v);
}

/* Prints an item with its blocks on one line. */
static void format_flat(Text *out, const Item *item) {
    format_head(out, item);
    if (!item->has_block) return;
    text_printf(out, " {");
    for (const Item *i = item->items; i; i = i->next) {
        text_printf(out, " ");
        format_flat(out, i);
        if (i->next) text_printf(out, ",");
    }
    text_printf(out, item->items ? " }" : "}");
}

typedef struct Formatter {
    Arena *arena;
    Text out;
    const Comment *comment; /* the next comment to print */
    int last_line;          /* last source line printed; single blank lines are kept */
} Formatter;

enum { FORMAT_WIDTH = 110 };

static void indent(Formatter *f, int depth) {
    for (int i = 0; i < depth; i++) text_printf(&f->out, "    ");
}

static void blank_before(Formatter *f, int line) {
    if (f->last_line && line > f->last_line + 1) text_printf(&f->out, "\n");
}

/* Prints the comments that have lines of their own before `line`. */
static void comments_before(Formatter *f, int line, int depth) {
    for (; f->comment && f->comment->location.line < line; f->comment = f->comment->next) {
        blank_before(f, f->comment->location.line);
        indent(f, depth);
        text_printf(&f->out, "%s\n", f->comment->text);
        f->last_line = f->comment->location.line;
    }
}

/* Ends a line, with the comment that followed it in the source if the item was the last one of its line. */
static void end_line(Formatter *f, int line, bool was_last) {
    if (was_last && f->comment && f->comment->location.line <= line) {
        text_printf(&f->out, "  %s", f->comment->text);
        f->comment = f->comment->next;
    }
    text_printf(&f->out, "\n");
    f->last_line = line;
}

/* `stop` is the line on which the enclosing block ends: a comment there is printed behind the closing brace. */
static void format_items(Formatter *f, const Item *items, int depth, int stop) {
    for (const Item *item = items; item; item = item->next) {
        const int line = item->location.line, next = item->next ? item->next->location.line : stop;
        comments_before(f, line, depth);
        blank_before(f, line);
        indent(f, depth);
        bool one_line = !item->has_block || item->block_end.line == line;
        if (one_line && item->has_block) {
            Text flat = text_new(f->arena);
            format_flat(&flat, item);
            one_line = flat.size + 4 * (size_t)depth <= FORMAT_WIDTH;
        }
        if (one_line) {
            format_flat(&f->out, item);
            end_line(f, line, next > line);
            continue;
        }
        format_head(&f->out, item);
        text_printf(&f->out, " {");
        end_line(f, line, !item->items || item->items->location.line > line);
        f->last_line = 0; /* no blank line after a brace */
        format_items(f, item->items, depth + 1, item->block_end.line);
        comments_before(f, item->block_end.line, depth + 1);
        indent(f, depth);
        text_printf(&f->out, "}");
        end_line(f, item->block_end.line, next > item->block_end.line);
    }
}

char *ast_format(Arena *arena, const Ast *ast) {
    Formatter f = {.arena = arena, .out = text_new(arena), .comment = ast->comments};
    format_items(&f, ast->items, 0, INT32_MAX);
    comments_before(&f, INT32_MAX, 0);
    return f.out.data;
}

/* ---------------------------------------------------------------- --dump=ast */

static void print_items(Text *out, const Item *items, int depth) {
    for (const Item *item = items; item; item = item->next) {
        text_printf(out, "%4d:%-3d %*s", item->location.line, item->location.column, 2 * depth, "");
        format_head(out, item);
        text_add(out, "\n", 1);
        print_items(out, item->items, depth + 1);
    }
}

void ast_print(Text *out, const Ast *ast) { print_items(out, ast->items, 0); }
