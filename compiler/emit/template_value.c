/* template_value.c: the values of expressions and of text with insertions (see template.c). */
#include "template_parts.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_FRAMES = 512 }; /* a macro for a tree enters twice a level; a level of a spec makes up to three of a rule */
static const int64_t MAX_STEPS = 2000000; /* an expansion that prints nothing must end too */

/* ---------------------------------------------------------------------------------- macros and functions */

void template_count_step(Expansion *x) {
    if (++x->steps > MAX_STEPS) expand_error(x, "the expansion takes over %lld steps", (long long)MAX_STEPS);
}

void template_enter(Expansion *x, Frame *frame, const char *file, const char *kind, const char *name) {
    if (x->frame->depth + 1 >= MAX_FRAMES) expand_error(x, "macros and files are nested too deep");
    *frame = (Frame){file, 0, kind, name, x->frame, x->frame->depth + 1};
    x->frame = frame;
}

static _Noreturn void unknown_macro(const Expansion *x, const Macro *list, const char *kind, const char *name) {
    size_t count = 0;
    for (const Macro *m = list; m; m = m->next) count++;
    const char **names = arena_array(x->arena, count + 1, sizeof *names);
    count = 0;
    for (const Macro *m = list; m; m = m->next) names[count++] = m->statement->name;
    const char *near = nearest_word(name, names);
    if (!near && strcmp(kind, "function") == 0) near = nearest_word(name, template_functions);
    if (near) expand_error(x, "there is no %s '%s'; is '%s' meant?", kind, name, near);
    expand_error(x, "there is no %s '%s'", kind, name);
}

/* A macro that is found moves to the front, since a template uses few of the macros that it includes, and often. */
static const Macro *find_macro(Macro **list, const char *name) {
    for (Macro **link = list; *link; link = &(*link)->next) {
        Macro *m = *link;
        if (m->statement->name != name) continue;
        *link = m->next;
        m->next = *list;
        return *list = m;
    }
    return NULL;
}

const Statement *template_open_call(Expansion *x, Call *call, Macro **list, const char *kind, const char *name,
                                    TemplateExpr *const *args, int n) {
    const Macro *m = find_macro(list, name);
    if (!m) unknown_macro(x, *list, kind, name);
    const Statement *s = m->statement;
    if (s->count != n) expand_error(x, "%s '%s' takes %d arguments, %d are given", kind, name, s->count, n);
    call->own = (TemplateVars){x->arena, x->globals, NULL, {0}};
    for (int i = 0; i < n; i++) vars_set(&call->own, s->params[i], template_evaluate(x, args[i]));
    template_count_step(x);
    template_enter(x, &call->frame, m->file, kind, name);
    x->frame->line = s->line;
    call->outer = x->scope;
    x->scope = &call->own;
    return s;
}

void template_close_call(Expansion *x, const Call *call) {
    x->scope = call->outer;
    x->frame = call->frame.outer;
}

static TemplateValue evaluate_call(Expansion *x, const TemplateExpr *expr) {
    Call call;
    const Statement *s =
        template_open_call(x, &call, &x->functions, "function", expr->text, expr->values, expr->arg_count);
    TemplateValue value = template_evaluate(x, s->value);
    template_close_call(x, &call);
    return value;
}

/* ---------------------------------------------------------------------------------- expressions */

int64_t template_evaluate_int(Expansion *x, TemplateExpr *expr, const char *what) {
    TemplateValue value = template_evaluate(x, expr);
    if (value.kind != TEMPLATE_INT)
        expand_error(x, "%s is %s, a number is needed", what, template_describe(x->arena, value));
    return value.integer;
}

TemplateValue template_evaluate_plain(Expansion *x, TemplateExpr *expr) {
    TemplateValue value = template_evaluate(x, expr);
    if (value.kind == TEMPLATE_INT || value.kind == TEMPLATE_TEXT) return value;
    const char *what = template_describe(x->arena, value);
    if (expr->kind == TERM_NAME || expr->kind == TERM_FIELD)
        expand_error(x, "'%s' is %s, a number or a text is needed", expr->text, what);
    expand_error(x, "%s stands where a number or a text is needed", what);
}

static bool is_number(TemplateValue value, int64_t number) {
    if (value.kind == TEMPLATE_INT) return value.integer == number;
    return value.text[0] == '0' + number && value.text[1] == '\0';
}

static const char *operand(Expansion *x, TemplateValue value) {
    const char *text = template_print(x->arena, value);
    bool alone = value.kind == TEMPLATE_TEXT ? c_stands_alone(text) : value.integer >= 0;
    return alone ? text : arena_printf(x->arena, "(%s)", text);
}

/* Arithmetic with a text, that is, with a value that only the emitted C knows. */
static TemplateValue text_arithmetic(Expansion *x, char symbol, TemplateValue a, TemplateValue b) {
    if (symbol == '*' && (is_number(a, 0) || is_number(b, 0))) return template_int(0);
    if (symbol == '*' && is_number(a, 1)) return b;
    if ((symbol == '*' || symbol == '/') && is_number(b, 1)) return a;
    if (symbol == '+' && is_number(a, 0)) return b;
    if ((symbol == '+' || symbol == '-') && is_number(b, 0)) return a;
    if ((symbol == '/' || symbol == '%') && is_number(b, 0)) expand_error(x, "a division by zero");
    if ((symbol == '+' || symbol == '-') && b.kind == TEMPLATE_INT && b.integer < 0 && b.integer != INT64_MIN) {
        symbol = symbol == '+' ? '-' : '+';
        b.integer = -b.integer;
    }
    TemplateValue result = template_text(arena_printf(x->arena, "(%s %c %s)", operand(x, a), symbol, operand(x, b)));
    result.wrapped = true;
    return result;
}

static TemplateValue arithmetic(Expansion *x, char symbol, TemplateValue a, TemplateValue b) {
    if (a.kind == TEMPLATE_TEXT || b.kind == TEMPLATE_TEXT) return text_arithmetic(x, symbol, a, b);
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
    if (a.kind != b.kind || (a.kind == TEMPLATE_TEXT && !equality))
        expand_error(x, "'%s' cannot compare '%s' with '%s'", symbol, template_print(x->arena, a),
                     template_print(x->arena, b));
    int order = a.kind == TEMPLATE_TEXT ? strcmp(a.text, b.text) : (a.integer > b.integer) - (a.integer < b.integer);
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
    TemplateValue a = template_evaluate_plain(x, expr->a), b = template_evaluate_plain(x, expr->b);
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
    if (!prefix || prefix->kind != TEMPLATE_TEXT) unknown_name(x, "prefix");
    return prefix->text;
}

static const Isa *table_of(const Expansion *x, const TemplateExpr *expr) {
    const Isa *isa = expr->vectors == 'u' ? x->u : x->v;
    if (!isa) expand_error(x, "%c.%s: no target is given", expr->vectors, expr->text);
    return isa;
}

static void note_use(Expansion *x, const Isa *isa, uint32_t helpers) {
    for (HelperUse *use = x->uses; use && use->isa; use++) {
        if (use->isa != isa) continue;
        use->helpers |= helpers;
        use->needed = true;
    }
}

static TemplateValue evaluate_property(Expansion *x, const TemplateExpr *expr) {
    const Isa *isa = table_of(x, expr);
    char vectors = expr->vectors;
    switch ((TemplateProperty)expr->property) {
    case PROPERTY_WIDTH: return template_int(isa->width);
    case PROPERTY_REGISTERS: return template_int(isa->registers);
    case PROPERTY_FUSED: return template_int(isa->fused);
    case PROPERTY_APART: return template_int(isa->apart);
    case PROPERTY_TYPE: return template_text(isa->type);
    case PROPERTY_INTEGERS: return template_text(isa->integers);
    case PROPERTY_NAME: return template_text(isa->name);
    case PROPERTY_ATTRIBUTE:
        note_use(x, isa, 0);
        if (!strstr(isa->attribute, "${prefix}")) return template_text(isa->attribute);
        return template_text(isa_with_prefix(x->arena, isa->attribute, prefix_of(x)));
    case PROPERTY_GUARD: return template_text(isa->guard);
    case PROPERTY_COUNT: break;
    }
    const char *near = nearest_word(expr->text, template_properties);
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

/* The row NAME_8 of a table where NAME's count is the number 8, or NAME where NAME_part's count is all lanes. The count
 * is taken off `args`. */
static const IsaOp *operation_of_count(const Expansion *x, const Isa *isa, const IsaOp *op, const char **args) {
    int at = 0;
    while (at < op->param_count && op->kinds[at] != ISA_COUNT) at++;
    if (at == op->param_count || !args[at] || strspn(args[at], "0123456789") != strlen(args[at])) return op;
    const IsaOp *counted = isa_find(isa, arena_printf(x->arena, "%s_%s", op->name, args[at]));
    const char *suffix = strstr(op->name, "_part");
    bool all_lanes = strtoll(args[at], NULL, 10) == isa->width;
    if (!counted && all_lanes && suffix && strcmp(suffix, "_part") == 0)
        counted = isa_find(isa, arena_copy(x->arena, op->name, (size_t)(suffix - op->name)));
    if (!counted) return op;
    for (; at + 1 < op->param_count; at++) args[at] = args[at + 1];
    return counted;
}

static TemplateValue evaluate_has(Expansion *x, const TemplateExpr *expr) {
    const Isa *isa = table_of(x, expr);
    if (expr->arg_count != 1) expand_error(x, "%c.has takes the name of a capability", expr->vectors);
    const char *name = template_evaluate_pieces(x, expr->args[0]);
    int which = 0;
    while (isa_capabilities[which] && strcmp(isa_capabilities[which], name) != 0) which++;
    if (!isa_capabilities[which]) expand_error(x, "there is no capability '%s'", name);
    return template_int(isa_has(isa, name));
}

static TemplateValue evaluate_operation(Expansion *x, TemplateExpr *expr) {
    const IsaOp *op = operation_of(x, expr);
    if (expr->arg_count != op->param_count)
        expand_error(x, "%c.%s takes %d arguments, %d are given", expr->vectors, op->name, op->param_count,
                     expr->arg_count);
    const char *args[MAX_ARGS] = {NULL};
    for (int i = 0; i < op->param_count; i++) args[i] = template_evaluate_pieces(x, expr->args[i]);
    op = operation_of_count(x, table_of(x, expr), op, args);
    if (op->helpers) note_use(x, table_of(x, expr), op->helpers);
    return template_text(isa_spell(x->arena, op, args, op->needs_prefix ? prefix_of(x) : NULL));
}

static TemplateVars *evaluate_record(Expansion *x, TemplateExpr *expr, const char *field) {
    TemplateValue value = template_evaluate(x, expr);
    if (value.kind != TEMPLATE_RECORD)
        expand_error(x, "'%s' is %s, it has no field '%s'", expr->text, template_describe(x->arena, value), field);
    return value.record;
}

const TemplateList *template_evaluate_list(Expansion *x, TemplateExpr *expr) {
    TemplateValue value = template_evaluate(x, expr);
    if (value.kind != TEMPLATE_LIST)
        expand_error(x, "%s stands where a list is needed", template_describe(x->arena, value));
    return value.list;
}

/* Texts that are empty are left out, with the separator that would stand in front of them. */
static TemplateValue evaluate_join(Expansion *x, const TemplateExpr *expr) {
    const TemplateList *list = template_evaluate_list(x, expr->a);
    const char *separator = expr->b ? template_print(x->arena, template_evaluate_plain(x, expr->b)) : ", ";
    TemplateVars *outer = x->scope;
    Text text = text_new(x->arena);
    TemplateVars *record;
    for (int64_t i = 0; (record = template_record(list, i)); i++) {
        TemplateVars own = {x->arena, outer, NULL, {0}};
        x->scope = &own;
        vars_set(&own, expr->text, (TemplateValue){.kind = TEMPLATE_RECORD, .record = record});
        if (expr->counter) vars_set(&own, expr->counter, template_int(i));
        const char *item = template_evaluate_pieces(x, expr->args[0]);
        if (*item && text.size) text_add(&text, separator, strlen(separator));
        text_add(&text, item, strlen(item));
        writer_need(x->writer, text.size);
    }
    x->scope = outer;
    return template_text(text.data);
}

/* The caller of a template may give it a text that holds insertions, too. */
static TemplateValue evaluate_expand(Expansion *x, const TemplateExpr *expr) {
    const char *text = template_print(x->arena, template_evaluate_plain(x, expr->a));
    Scan scan = {.arena = x->arena, .file = x->frame->file, .line = x->frame->line, .at = text,
                 .end = text + strlen(text)};
    return template_text(template_evaluate_pieces(x, template_scan_pieces(&scan)));
}

static TemplateValue evaluate_variable(Expansion *x, const TemplateExpr *expr) {
    const TemplateValue *value = vars_find(x->scope, expr->text);
    if (!value) unknown_name(x, expr->text);
    return *value;
}

static TemplateValue evaluate_field(Expansion *x, const TemplateExpr *expr) {
    TemplateVars *record = evaluate_record(x, expr->a, expr->text);
    const TemplateValue *value = vars_find(record, expr->text);
    if (!value) unknown_field(x, expr->a->text, record, expr->text);
    return *value;
}

/* Of all terms but the ones that template_evaluate evaluates by itself. */
static __attribute__((noinline)) TemplateValue evaluate_term(Expansion *x, TemplateExpr *expr) {
    switch (expr->kind) {
    case TERM_TEXT: return template_text(template_evaluate_pieces(x, expr->args[0]));
    case TERM_NOT: return template_int(!template_evaluate_int(x, expr->a, "the operand of '!'"));
    case TERM_NEGATE: {
        TemplateValue a = template_evaluate_plain(x, expr->a);
        if (a.kind == TEMPLATE_INT) return arithmetic(x, '-', template_int(0), a);
        TemplateValue result = template_text(arena_printf(x->arena, "(-%s)", operand(x, a)));
        result.wrapped = true;
        return result;
    }
    case TERM_BINARY: return evaluate_binary(x, expr);
    case TERM_CHOICE: return template_evaluate(x, template_evaluate_int(x, expr->a, "a condition") ? expr->b : expr->c);
    case TERM_FUNCTION: return evaluate_function(x, expr);
    case TERM_DEFINED: return template_int(vars_find(expr->a ? evaluate_record(x, expr->a, expr->text) : x->scope,
                                                     expr->text) != NULL);
    case TERM_FIELD: return evaluate_field(x, expr);
    case TERM_COUNT: return template_int(template_count(template_evaluate_list(x, expr->a)));
    case TERM_EXPAND: return evaluate_expand(x, expr);
    case TERM_JOIN: return evaluate_join(x, expr);
    case TERM_CALL: return evaluate_call(x, expr);
    case TERM_PROPERTY: return evaluate_property(x, expr);
    case TERM_HAS: return evaluate_has(x, expr);
    case TERM_OPERATION: return evaluate_operation(x, expr);
    default: bug("an expression has kind %d", (int)expr->kind);
    }
}

/* Most terms are constants and variables. */
TemplateValue template_evaluate(Expansion *x, TemplateExpr *expr) {
    switch (expr->kind) {
    case TERM_INT: return template_int(expr->integer);
    case TERM_STRING: return template_text(expr->text);
    case TERM_NAME: return evaluate_variable(x, expr);
    default: return evaluate_term(x, expr);
    }
}

/* Whether an insertion needs no parentheses of its own, as in `[(i * 4)]` and `f(x, (i * 4))`. */
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
        TemplateValue value = template_evaluate_plain(x, piece->expr);
        if (value.kind == TEMPLATE_INT) {
            text_add_int(&text, value.integer);
            continue;
        }
        size_t size = strlen(value.text);
        writer_need(x->writer, size);
        bool bare = value.wrapped && is_enclosed(&text, piece->next);
        text_add(&text, value.text + bare, size - 2 * (size_t)bare);
    }
    return text.data;
}
