/* formulas.c: the names and the `if` in the expression of an activation, `activation = EXPR`, and the numbers `x` for
 * which it has no value. */
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

static const char *branch_text(Arena *arena, double value) { return isnan(value) ? "NaN" : number_text(arena, value); }

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
                                   branch_text(arena, one), branch_text(arena, other), number_text(arena, threshold)));
    const bool below = x_first == (expr->left->kind == EXPR_LESS || expr->left->kind == EXPR_AT_MOST);
    const PairRule *x = pair_input(arena, PAIR_score, 0, "x"), *limit = pair_constant(arena, threshold);
    const PairRule *condition = pair_apply(arena, PAIR_below, below ? x : limit, below ? limit : x);
    return real(pair_choose(arena, condition, then, otherwise));
}

/* ---------------------------------------------------------------- divisors and roots */

/* Values of a rule at two neighbouring numbers `x`. */
typedef struct Two {
    double at[2];
} Two;

typedef struct Hole {
    Two x;
    bool far;             /* a divisor may be 0 by rounding alone, so that only its signs count */
    bool between;         /* a branch of an `if` begins between the two numbers, so that signs are not compared */
    const PairRule *part; /* the first divisor that is 0 there, or the first number below 0 of a root; else NULL */
    bool root;
    double value[2];
} Hole;

static double applied(PairOp op, double a, double b, double c) {
    const PairRule of[] = {{.op = PAIR_constant, .constant = a}, {.op = PAIR_constant, .constant = b},
                           {.op = PAIR_constant, .constant = c}};
    return pair_value(&(PairRule){.op = op, .a = &of[0], .b = &of[1], .c = &of[2]}, &(PairAt){0});
}

static void inspect(Hole *hole, const PairRule *part, bool root, Two value) {
    const double a = value.at[0], b = value.at[1];
    const bool crosses = !hole->between && ((a < 0 && b > 0) || (a > 0 && b < 0));
    const bool bad = root ? a < 0 : crosses || (a == 0 && !hole->far);
    if (!bad || hole->part) return;
    hole->part = part;
    hole->root = root;
    hole->value[0] = a, hole->value[1] = b;
}

static Two walk(Hole *hole, const PairRule *rule) {
    if (rule->op == PAIR_score) return hole->x;
    if (rule->op == PAIR_constant) return (Two){{rule->constant, rule->constant}};
    const Two a = walk(hole, rule->a);
    if (rule->op == PAIR_choose) {
        const bool before = hole->between;
        const bool first = a.at[0] != 0, second = a.at[1] != 0;
        hole->between |= first != second;
        const Two of_first = walk(hole, first ? rule->b : rule->c);
        hole->between = before;
        if (first == second) return of_first;
        return (Two){{of_first.at[0], pair_value(second ? rule->b : rule->c, &(PairAt){.score = hole->x.at[1]})}};
    }
    const Two b = rule->b ? walk(hole, rule->b) : a;
    if (rule->op == PAIR_div) inspect(hole, rule->b, false, b);
    if (rule->op == PAIR_sqrt) inspect(hole, rule->a, true, a);
    Two value;
    for (int i = 0; i < 2; i++) value.at[i] = applied(rule->op, a.at[i], b.at[i], 0);
    return value;
}

/* Looks from 0 outwards, densely where most rows are. */
static Hole find_hole(const PairRule *rule) {
    enum { DENSE = 8 * 16, FAR = 20 };
    for (int i = 0; i < DENSE + FAR; i++) {
        const bool far = i >= DENSE;
        const double from = far ? 7.9 * ldexp(1, i - DENSE) : i / 16.0, to = far ? 2 * from : (i + 1) / 16.0;
        for (int sign = -1; sign <= 1; sign += 2) {
            Hole hole = {.x = {{sign * from, sign * to}}, .far = far};
            walk(&hole, rule);
            if (hole.part) return hole;
        }
    }
    return (Hole){0};
}

const char *formula_hole(Arena *arena, const PairRule *rule) {
    const Hole hole = find_hole(rule);
    if (!hole.part) return NULL;
    Text part = text_new(arena);
    pair_print(&part, hole.part);
    const double x = hole.x.at[0] + 0.0; /* no -0 */
    const char *at = number_text(arena, x), *next = number_text(arena, hole.x.at[1]);
    if (hole.root)
        return arena_printf(arena, "`%s` is below 0 where `x` is %s, and its square root is no number", part.data, at);
    if (hole.value[0] == 0)
        return arena_printf(arena, "`%s` is 0 where `x` is %s, and an activation is not divided by 0", part.data, at);
    return arena_printf(arena, "`%s` is 0 for an `x` between %s and %s, and an activation is not divided by 0",
                        part.data, x < hole.x.at[1] ? at : next, x < hole.x.at[1] ? next : at);
}
