/* formulas.c: activations that are expressions of `x`, in `activation = EXPR`. */
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
    const bool is_number = !bound || (!bound->table && !bound->input);
    if (expr->kind == EXPR_NAME && !is_letter(expr->text) && is_number) return constant(evaluate(c->r, c->scope, expr));
    return refuse(c, expr->location, "an activation reads `x` and numbers alone");
}

/* The number that `x` is compared with. `x_first` becomes whether `x` stands on the left. */
static bool find_threshold(const Condition *c, const Expr *condition, double *threshold, bool *x_first) {
    switch (condition->kind) {
    case EXPR_LESS: case EXPR_AT_MOST: case EXPR_GREATER: case EXPR_AT_LEAST: break;
    default: refuse(c, condition->location, "the condition of an activation compares `x` with a number"); return false;
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
    if (!(fabs(one - other) <= 1e-6 * fmax(1, fmax(fabs(one), fabs(other)))))
        return refuse(c, expr->location,
                      arena_printf(arena, "the branches are %s and %s where `x` is %s, and an activation has no steps: "
                                          "engines round `x` differently",
                                   number_text(arena, one), number_text(arena, other), number_text(arena, threshold)));
    const bool below = x_first == (expr->left->kind == EXPR_LESS || expr->left->kind == EXPR_AT_MOST);
    const PairRule *x = pair_input(arena, PAIR_score, 0, "x"), *limit = pair_constant(arena, threshold);
    const PairRule *condition = pair_apply(arena, PAIR_below, below ? x : limit, below ? limit : x);
    return real(pair_choose(arena, condition, then, otherwise));
}

const PairRule *activation_formula(const Model *model, Activation activation) {
    return (int)activation < ACTIVATION_COUNT ? NULL : model->formulas[(int)activation - ACTIVATION_COUNT];
}

static bool is_activation(const char *word) {
    for (int kind = 0; kind < ACTIVATION_COUNT; kind++)
        if (strcmp(activation_name((Activation)kind), word) == 0) return true;
    return false;
}

/* The number of the formula among those of the model. */
static Activation formula_number(Resolver *r, Location location, const PairRule *rule) {
    Model *model = r->model;
    int i = 0;
    while (i < model->n_formulas && !pair_same(model->formulas[i], rule)) i++;
    if (i == MOST_FORMULAS) {
        diagnose(r->diagnostics, location, "a model has at most %d different expressions of activations",
                 MOST_FORMULAS);
        return ACTIVATION_identity;
    }
    if (i == model->n_formulas) model->formulas[model->n_formulas++] = rule;
    return (Activation)(ACTIVATION_COUNT + i);
}

Activation resolve_activation(Resolver *r, const Scope *scope, Activation without) {
    const FieldValue *formula = &scope->fields[F_formula];
    if (!formula->stated) return stated(scope, F_activation) ? (Activation)get(scope, F_activation) : without;
    const Expr *expr = formula->expr;
    if (expr == r->refused) return ACTIVATION_identity;
    if (expr->kind == EXPR_NAME && is_activation(expr->text)) {
        diagnose(r->diagnostics, expr->location, "`activation` takes its value without `=`: write `activation %s`",
                 expr->text);
        r->refused = expr;
        return ACTIVATION_identity;
    }
    const PairRule *rule = resolve_formula(r, formula->scope, expr);
    return rule ? formula_number(r, formula->location, rule) : ACTIVATION_identity;
}
