/* formulas.c: the names and the `if` in the expression of an activation, `activation = EXPR`. */
#include "conditions.h"

#include <string.h>

Typed typed_argument(const Condition *c, const Expr *expr) {
    Arena *arena = c->r->arena;
    const Binding *bound = binding_named(c->scope, expr->text);
    if (expr->kind == EXPR_NAME && strcmp(expr->text, "x") == 0) {
        if (!bound) return real(pair_input(arena, PAIR_score, 0, "x"));
        refuse(c, expr->location, "`x` has a meaning of its own in this expression");
        diagnose_note(c->r->diagnostics, bound->location, "a `let` gives it another one here");
        return (Typed){.type = REFUSED};
    }
    const bool is_number = bound ? !bound->table && !bound->input : !is_letter(expr->text);
    if (expr->kind == EXPR_NAME && is_number) return constant(evaluate(c->r, c->scope, expr));
    return refuse(c, expr->location, "an activation reads `x` and numbers alone");
}

/* The number that `x` is compared with. `x_first` becomes whether `x` stands on the left. */
static bool find_threshold(const Condition *c, const Expr *condition, double *threshold, bool *x_first) {
    switch (condition->kind) {
    case EXPR_LESS: case EXPR_AT_MOST: case EXPR_GREATER: case EXPR_AT_LEAST: break;
    default:
        refuse(c, condition->location, "the condition of an activation compares `x` with a number by <, <=, > or >=");
        return false;
    }
    *x_first = is_word(condition->left, "x");
    const Expr *other = *x_first ? condition->right : condition->left;
    if (!*x_first && !is_word(condition->right, "x")) {
        refuse(c, condition->location, "the condition of an activation compares `x` with a number");
        return false;
    }
    const Typed x = number_of(c, *x_first ? condition->left : condition->right), t = number_of(c, other);
    if (x.type == REFUSED || t.type == REFUSED) return false;
    if (!t.constant || !f32_holds(t.number.real)) {
        refuse(c, other->location, "the condition of an activation compares `x` with a number");
        return false;
    }
    *threshold = (double)(float)t.number.real;
    return true;
}

/* `x <= 2` counts as `x < 2`, since both branches meet there. */
Typed typed_branches(const Condition *c, const Expr *expr) {
    Arena *arena = c->r->arena;
    double threshold = 0;
    bool x_first = false;
    if (!find_threshold(c, expr->left, &threshold, &x_first)) return (Typed){.type = REFUSED};
    const Typed a = number_of(c, expr->right), b = number_of(c, expr->third);
    if (a.type == REFUSED || b.type == REFUSED) return (Typed){.type = REFUSED};
    const PairRule *then = real_of(c, &a), *otherwise = real_of(c, &b);
    const PairAt at = {.score = threshold};
    const double one = pair_value(then, &at), other = pair_value(otherwise, &at);
    if (!(fabs(one - other) <= 1e-6 * fmax(fabs(one), fabs(other))))
        return refuse(c, expr->location,
                      arena_printf(arena, "the branches are %s and %s where `x` is %s, and an activation has no steps: "
                                          "engines round `x` differently",
                                   number_text(arena, one), number_text(arena, other), number_text(arena, threshold)));
    const bool below = x_first == (expr->left->kind == EXPR_LESS || expr->left->kind == EXPR_AT_MOST);
    const PairRule *x = pair_input(arena, PAIR_score, 0, "x"), *limit = pair_constant(arena, threshold);
    const PairRule *condition = pair_apply(arena, PAIR_below, below ? x : limit, below ? limit : x);
    return real(pair_choose(arena, condition, then, otherwise));
}
