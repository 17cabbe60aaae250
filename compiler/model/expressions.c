/* expressions.c: the value of an expression, over the `let` lines and settings before it. */
#include "tables.h"

#include <math.h>
#include <string.h>

static Number no_number(void) { return (Number){0}; }

const Binding *binding_named(const Scope *scope, const char *name) {
    const Binding *b = scope->lets;
    while (b && strcmp(b->name, name) != 0) b = b->next;
    return b;
}

bool refuse_bound(Resolver *r, const Scope *scope, const char *name, Location location) {
    const Binding *b = binding_named(scope, name);
    if (!b) return false;
    diagnose(r->diagnostics, location, "`%s` has a value already", name);
    diagnose_note(r->diagnostics, b->location, "given here");
    return true;
}

void scope_bind(Resolver *r, Scope *scope, Binding binding) {
    Binding *added = arena_alloc(r->arena, sizeof *added);
    *added = binding;
    added->next = scope->lets;
    scope->lets = added;
}

bool refuse_other_part(Resolver *r, const char *name, Location location) {
    for (int i = 0; i < r->model->n_row_inputs; i++) {
        const RowInput *input = &r->model->row_inputs[i];
        if (strcmp(input->kind.name, name) != 0) continue;
        if (location_before(location, input->location))
            diagnose(r->diagnostics, location, "the input `%s` is stated only after this use", name);
        else diagnose(r->diagnostics, location, "`%s` is an input of another part of the model; %s", name,
                      input->kind.rows == PER_ROW    ? "cross attention reads `input rows` that are `of source`"
                      : input->kind.rows == PER_PAIR ? "`input pairs` of a stack are read in that stack alone"
                                                     : "a stack reads the `input number` that it states itself");
        diagnose_note(r->diagnostics, input->location, "stated here");
        return true;
    }
    return false;
}

Number evaluate_name(Resolver *r, const Scope *scope, const Expr *expr, const char *in) {
    for (const Binding *b = scope->lets; b; b = b->next)
        if (strcmp(b->name, expr->text) == 0 && b->input) {
            const InputRows rows = r->model->row_inputs[b->input - 1].kind.rows;
            if (rows == PER_SEQUENCE)
                diagnose(r->diagnostics, expr->location,
                         "`%s` is given at each call: only `mask where` and `score` read it", b->name);
            else if (rows == PER_PAIR)
                diagnose(r->diagnostics, expr->location, "`%s` is an input of pairs: a condition reads `%s[q, k]`",
                         b->name, b->name);
            else
                diagnose(r->diagnostics, expr->location,
                         "`%s` is an input of rows: a condition reads `%s[q]` or `%s[k]`", b->name, b->name, b->name);
            return no_number();
        } else if (strcmp(b->name, expr->text) == 0 && b->table) {
            diagnose(r->diagnostics, expr->location, "`%s` is a table; only `score` reads its numbers, as `%s[h]`",
                     b->name, b->name);
            return no_number();
        } else if (strcmp(b->name, expr->text) == 0 && location_before(b->location, expr->location))
            return (Number){b->known, b->is_real, b->integer, b->real};
    const SettingRow *row = setting_named(expr->text);
    Field field = row ? bare_field((SettingId)(row - model_settings)) : FIELD_COUNT;
    if (field != FIELD_COUNT) {
        const FieldValue *value = &scope->fields[field];
        if (value->doubted && (!value->stated || location_before(value->location, expr->location))) return no_number();
        if (value->stated && location_before(value->location, expr->location))
            return (Number){true, model_fields[field].type == TYPE_real, value->integer, value->real};
        diagnose(r->diagnostics, expr->location,
                 "`%s` has no value before this line, in this block or an enclosing one", expr->text);
        return no_number();
    }
    const char *names[SETTING_COUNT + 65];
    int n = 0;
    for (const Binding *b = scope->lets; b && n < 64; b = b->next) {
        if (strcmp(b->name, expr->text) == 0) {
            diagnose(r->diagnostics, expr->location, "`%s` gets its value only after this use", expr->text);
            diagnose_note(r->diagnostics, b->location, "given here");
            return no_number();
        }
        names[n++] = b->name;
    }
    if (refuse_other_part(r, expr->text, expr->location)) return no_number();
    for (int s = 0; s < SETTING_COUNT; s++)
        if (bare_field((SettingId)s) != FIELD_COUNT) names[n++] = model_settings[s].name;
    names[n] = NULL;
    const char *near = in ? synonym_of(in, expr->text) : NULL, *advice = in ? advice_of(in, expr->text) : NULL;
    if (!near) near = near_word(r->arena, expr->text, names);
    diagnose(r->diagnostics, expr->location, "`%s` is neither a `let` nor a numeric setting%s%s", expr->text,
             advice ? ": " : did_you_mean(r->arena, expr->text, near), advice ? advice : "");
    return no_number();
}

static Number real_number(Resolver *r, Location location, double value) {
    if (!isfinite(value)) {
        diagnose(r->diagnostics, location, "the result is not a finite number");
        return no_number();
    }
    return (Number){true, true, 0, value};
}

Number evaluate_of_two(Resolver *r, const Expr *expr, Number a, Number b) {
    if (expr->kind == EXPR_DIV && b.real == 0) {
        diagnose(r->diagnostics, expr->right->location, "division by zero");
        return no_number();
    }
    if (!a.is_real && !b.is_real) {
        int64_t result = 0;
        bool fits = true;
        switch (expr->kind) {
        case EXPR_ADD: fits = !__builtin_add_overflow(a.integer, b.integer, &result); break;
        case EXPR_SUB: fits = !__builtin_sub_overflow(a.integer, b.integer, &result); break;
        case EXPR_MUL: fits = !__builtin_mul_overflow(a.integer, b.integer, &result); break;
        default:
            if (a.integer == INT64_MIN && b.integer == -1) fits = false;
            else if (a.integer % b.integer != 0) return real_number(r, expr->location, a.real / b.real);
            else result = a.integer / b.integer;
        }
        if (!fits) {
            diagnose(r->diagnostics, expr->location, "the result does not fit 63 bits");
            return no_number();
        }
        return (Number){true, false, result, (double)result};
    }
    switch (expr->kind) {
    case EXPR_ADD: return real_number(r, expr->location, a.real + b.real);
    case EXPR_SUB: return real_number(r, expr->location, a.real - b.real);
    case EXPR_MUL: return real_number(r, expr->location, a.real * b.real);
    default: return real_number(r, expr->location, a.real / b.real);
    }
}

Number evaluate(Resolver *r, const Scope *scope, const Expr *expr) {
    switch (expr->kind) {
    case EXPR_INTEGER: return (Number){true, false, expr->integer, (double)expr->integer};
    case EXPR_REAL: return (Number){true, true, 0, expr->real};
    case EXPR_NAME: return evaluate_name(r, scope, expr, NULL);
    case EXPR_SQRT: {
        Number a = evaluate(r, scope, expr->left);
        if (!a.ok) return a;
        if (a.real < 0) {
            diagnose(r->diagnostics, expr->location, "the root of a negative number");
            return no_number();
        }
        return real_number(r, expr->location, sqrt(a.real));
    }
    case EXPR_NEGATE: {
        Number a = evaluate(r, scope, expr->left);
        if (a.ok && a.integer == INT64_MIN) {
            diagnose(r->diagnostics, expr->location, "the result does not fit 63 bits");
            return no_number();
        }
        if (a.ok) a = (Number){true, a.is_real, -a.integer, -a.real};
        return a;
    }
    default: {
        Number a = evaluate(r, scope, expr->left), b = evaluate(r, scope, expr->right);
        return a.ok && b.ok ? evaluate_of_two(r, expr, a, b) : no_number();
    }
    }
}

bool refuse_sign(Resolver *r, const Expr *expr, const char *what, const char *range) {
    if (expr->kind != EXPR_NEGATE) return false;
    ExprKind kind = expr->left->kind;
    bool sum = kind == EXPR_ADD || kind == EXPR_SUB || kind == EXPR_NEGATE; /* the operand was in parentheses */
    diagnose(r->diagnostics, expr->location,
             "a value cannot begin with a sign; a negative number is `0 - %s%s%s`%s%s%s%s",
             sum ? "(" : "", text_at(r->arena, expr->left->location), sum ? ")" : "",
             range ? ", and " : "", range ? what : "", range ? " must be " : "",
             range ? range : "");
    return true;
}

/* The text of a real number. A whole value gets a point, so that it does not look like an integer. */
static const char *real_text(Arena *arena, double value) {
    const char *text = number_text(arena, value);
    return strpbrk(text, ".e") ? text : arena_printf(arena, "%s.0", text);
}

/* Refuses a real number where an integer is needed, and suggests the nearest integers. */
static void refuse_real(Resolver *r, const Expr *expr, const char *what, double value) {
    Text message = text_new(r->arena);
    text_printf(&message, "%s wants an integer, ", what);
    if (expr->kind == EXPR_DIV && value != floor(value))
        text_printf(&message, "and this quotient is not whole: %s", number_text(r->arena, value));
    else
        text_printf(&message, "found the real number %s",
                    expr->kind == EXPR_REAL ? expr->text : real_text(r->arena, value));
    if (fabs(value) <= (double)MOST_INTEGER) {
        text_printf(&message, "; write `%lld`", (long long)floor(value));
        if (value != floor(value)) text_printf(&message, " or `%lld`", (long long)ceil(value));
    }
    diagnose(r->diagnostics, expr->location, "%s", message.data);
}

Number evaluate_integer(Resolver *r, const Scope *scope, const Expr *expr, const char *what, int64_t least,
                        int64_t most) {
    const Number refused = {.integer = least, .real = (double)least};
    const char *range = least >= 0 ? arena_printf(r->arena, "at least %lld", (long long)least) : NULL;
    if (refuse_sign(r, expr, what, range)) return refused;
    Number n = evaluate(r, scope, expr);
    if (!n.ok) return refused;
    if (n.is_real) {
        refuse_real(r, expr, what, n.real);
        return refused;
    }
    if (n.integer < least || n.integer > most) {
        diagnose(r->diagnostics, expr->location, "%s must be at %s %lld, found %lld", what,
                 n.integer < least ? "least" : "most", (long long)(n.integer < least ? least : most),
                 (long long)n.integer);
        return refused;
    }
    return n;
}

/* Refuses a number that f32 does not hold, or whose reciprocal it does not hold although the C divides by it. */
static bool refuse_beyond_f32(Resolver *r, const Expr *expr, const char *what, Range range, double value) {
    const bool divides = (range == RANGE_divisor || range == RANGE_natural_divisor) && value != 0;
    if (f32_holds(value) && (!divides || f32_holds(1 / value))) return false;
    diagnose(r->diagnostics, expr->location, "%s must be 0, or from 1.1754944e-38 to %s in size, %s; found %s", what,
             divides ? "8.5070592e37" : "3.4028235e38",
             divides ? "so that f32 holds it and its reciprocal" : "which f32 holds", number_text(r->arena, value));
    return true;
}

Number evaluate_real(Resolver *r, const Scope *scope, const Expr *expr, const char *what, Range range) {
    const Number refused = {.real = 1};
    static const char *const wanted[] = {[RANGE_any] = NULL,
                                         [RANGE_positive] = "greater than 0",
                                         [RANGE_natural] = "0 or greater",
                                         [RANGE_unit] = "greater than 0 and at most 1",
                                         [RANGE_divisor] = "greater than 0",
                                         [RANGE_natural_divisor] = "0 or greater"};
    if (refuse_sign(r, expr, what, wanted[range])) return refused;
    Number n = evaluate(r, scope, expr);
    if (!n.ok) return refused;
    const bool with_0 = range == RANGE_natural || range == RANGE_natural_divisor;
    const bool good = range == RANGE_any || n.real > 0 || (with_0 && n.real == 0);
    if (!good || (range == RANGE_unit && n.real > 1)) {
        diagnose(r->diagnostics, expr->location, "%s must be %s, found %s", what, wanted[range],
                 number_text(r->arena, n.real));
        return refused;
    }
    if (refuse_beyond_f32(r, expr, what, range, n.real)) return refused;
    n.real += 0.0; /* -0 becomes 0 */
    return n;
}
