/* activations.c: the activation of a scope, a word or an expression of `x`. */
#include "settings.h"

#include <string.h>

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
