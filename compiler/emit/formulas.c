/* formulas.c: turns an activation that is an expression of x into lines of C, one for each operation, which math.c.tmpl
 * prints. */
#include "emit.h"

typedef struct Formula {
    Arena *arena;
    TemplateVars *helpers;
    TemplateList *lines;
    int count;
} Formula;

static const char *operand(Formula *f, const PairRule *rule);

/* Adds a line for an operation on these operands, the last of which may be NULL, and returns the variable of its
 * result. */
static const char *add_line(Formula *f, const PairRule *rule, const char *op, const char *const operands[4]) {
    static const char *const names[] = {"a", "b", "c", "d"};
    const char *function = pair_function(rule->op), *to = arena_printf(f->arena, "t%d", ++f->count);
    TemplateVars *line = list_record(f->lines);
    vars_text(line, "to", to);
    vars_text(line, "op", op);
    vars_text(line, "function", function ? function : "");
    if (function) vars_int(f->helpers, arena_printf(f->arena, "uses_%s", function), 1);
    if (rule->op == PAIR_constant) vars_text(line, "number", hex_float(f->arena, rule->constant));
    for (int i = 0; i < 4; i++) vars_text(line, names[i], operands[i] ? operands[i] : "");
    return to;
}

/* The variable that holds the value of a rule. A product is added or subtracted by one operation, as the interpreter
 * does for --reproducible. */
static const char *operand(Formula *f, const PairRule *rule) {
    if (rule->op == PAIR_score) return "x";
    const char *operands[4] = {NULL};
    if (rule->op == PAIR_choose) {
        operands[0] = operand(f, rule->a->a), operands[1] = operand(f, rule->a->b);
        operands[2] = operand(f, rule->b), operands[3] = operand(f, rule->c);
        return add_line(f, rule, pair_name(rule->op), operands);
    }
    const bool sum = rule->op == PAIR_add || rule->op == PAIR_sub;
    if (rule->a) operands[0] = operand(f, rule->a);
    if (sum && rule->b->op == PAIR_mul) {
        operands[1] = operand(f, rule->b->a), operands[2] = operand(f, rule->b->b);
        return add_line(f, rule, rule->op == PAIR_add ? "add_product" : "sub_product", operands);
    }
    if (rule->b) operands[1] = operand(f, rule->b);
    return add_line(f, rule, pair_name(rule->op), operands);
}

void formula_variables(Arena *arena, TemplateVars *formula, TemplateVars *helpers, const char *name,
                       const PairRule *rule) {
    Formula f = {.arena = arena, .helpers = helpers, .lines = vars_list(formula, "lines")};
    Text text = text_new(arena);
    pair_print(&text, rule);
    vars_text(formula, "name", name);
    vars_text(formula, "text", text.data);
    vars_text(formula, "result", operand(&f, rule));
}
