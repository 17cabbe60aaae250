/* conditions.c: makes a rule of pairs of the expression of `mask where`. The numbers of a condition are whole, and are
 * proved to stay below 2^31 for all positions of the model; constants may be real. */
#include "settings.h"

#include <math.h>
#include <string.h>

typedef enum Type { WHOLE, TRUTH, REFUSED } Type;

/* An expression with a value for each pair. A number that is the same for all pairs is `constant`, and then has no
 * rule. */
typedef struct Typed {
    Type type;
    bool constant;
    Number number;
    const PairRule *rule;
} Typed;

typedef struct Condition {
    Resolver *r;
    const Scope *scope;
    PairRange query, key;
    Attention *a; /* whose inputs are added to */
} Condition;

static Typed typed(const Condition *c, const Expr *expr);

static Typed refuse(const Condition *c, Location location, const char *why) {
    diagnose(c->r->diagnostics, location, "%s", why);
    return (Typed){.type = REFUSED};
}

static Typed constant(Number number) {
    return number.ok ? (Typed){.type = WHOLE, .constant = true, .number = number} : (Typed){.type = REFUSED};
}

static Typed truth(const PairRule *rule) { return (Typed){.type = TRUTH, .rule = rule}; }

static Number whole_number(double value) { return (Number){true, false, (int64_t)value, value}; }

/* The most of a whole number, which 32 bits hold with its sign. */
#define MOST_WHOLE 2147483647.0

/* A rule whose value is a whole number. It is refused where the value may not fit 32 bits. */
static Typed whole(const Condition *c, const Expr *expr, const PairRule *rule) {
    const PairRange range = pair_range(rule, c->query, c->key);
    if (range.low >= -MOST_WHOLE && range.high <= MOST_WHOLE) return (Typed){.type = WHOLE, .rule = rule};
    return refuse(c, expr->location,
                  arena_printf(c->r->arena, "the value may be from %s to %s here, which 32 bits do not hold%s",
                               number_text(c->r->arena, range.low), number_text(c->r->arena, range.high),
                               c->a->n_where_roles ? "; an input states its range as `input rows NAME 0..64`" : ""));
}

/* The rule of a number. A constant that is not whole is refused. */
static const PairRule *rule_of(const Condition *c, const Expr *expr, const Typed *t) {
    if (!t->constant) return t->rule;
    if (t->number.real == floor(t->number.real) && fabs(t->number.real) <= MOST_WHOLE)
        return pair_constant(c->r->arena, t->number.real);
    refuse(c, expr->location,
           arena_printf(c->r->arena, "a condition is of whole numbers of 32 bits, and this is %s",
                        number_text(c->r->arena, t->number.real)));
    return NULL;
}

static Typed number_of(const Condition *c, const Expr *expr) {
    if (!expr) bug("an expression lacks an argument");
    const Typed t = typed(c, expr);
    return t.type == TRUTH ? refuse(c, expr->location, "a number is needed here, and this is a condition") : t;
}

static Typed condition_of(const Condition *c, const Expr *expr) {
    if (!expr) bug("an expression lacks an argument");
    const Typed t = typed(c, expr);
    return t.type == WHOLE ? refuse(c, expr->location, "a condition is needed here, and this is a number") : t;
}

/* ---------------------------------------------------------------- numbers */

static Typed of_two(const Condition *c, const Expr *expr, PairOp op, const Typed *a, const Typed *b) {
    const PairRule *left = rule_of(c, expr->left, a), *right = rule_of(c, expr->right, b);
    if (!left || !right) return (Typed){.type = REFUSED};
    return whole(c, expr, pair_apply(c->r->arena, op, left, right));
}

/* The quotient or the rest of two numbers of which one depends on the pair. */
static Typed divided(const Condition *c, const Expr *expr, PairOp op, const Typed *a, const Typed *b) {
    const PairRule *divisor = rule_of(c, expr->right, b);
    if (!divisor) return (Typed){.type = REFUSED};
    if (pair_range(divisor, c->query, c->key).low <= 0)
        return refuse(c, expr->right->location, "a divisor must be above 0 for every pair");
    return of_two(c, expr, op, a, b);
}

static Typed name(const Condition *c, const Expr *expr) {
    Arena *arena = c->r->arena;
    if (strcmp(expr->text, "q") == 0) return (Typed){.type = WHOLE, .rule = pair_leaf(arena, PAIR_query)};
    if (strcmp(expr->text, "k") == 0) return (Typed){.type = WHOLE, .rule = pair_leaf(arena, PAIR_key)};
    if (strcmp(expr->text, "s") == 0)
        return refuse(c, expr->location, "`s` is a score, and a score may not decide which keys are visible");
    if (strcmp(expr->text, "h") == 0)
        return refuse(c, expr->location, "`h`: a mask that differs from head to head is not supported yet");
    if (strcmp(expr->text, "i") == 0) return refuse(c, expr->location, "`i` is the index of a table alone");
    return constant(evaluate(c->r, c->scope, expr));
}

/* The number of an input among the inputs of the attention, which has room for all of the model's inputs of rows. */
static int input_of(Attention *a, InputRole role) {
    int i = 0;
    while (i < a->n_where_roles && a->visible_roles[i] != role) i++;
    if (i == a->n_where_roles) a->visible_roles[a->n_where_roles++] = role;
    return i;
}

/* NAME[q] or NAME[k] */
static Typed indexed(const Condition *c, const Expr *expr) {
    Arena *arena = c->r->arena;
    const RowInput *input = row_input_named(c->r, c->scope, expr->text, expr->location);
    if (!input)
        return refuse(c, expr->location,
                      arena_printf(arena, "there is no table and no input `%s` of rows", expr->text));
    const bool named = !expr->right && expr->left->kind == EXPR_NAME;
    const bool of_query = named && strcmp(expr->left->text, "q") == 0;
    if (!of_query && !(named && strcmp(expr->left->text, "k") == 0))
        return refuse(c, expr->left->location,
                      arena_printf(arena, "an input of rows is read as `%s[q]` and `%s[k]`", expr->text, expr->text));
    const int number = input_of(c->a, input->kind.role);
    const PairRange range = {(double)input->least, (double)input->most};
    return (Typed){.type = WHOLE, .rule = pair_of_row(arena, of_query ? PAIR_of_query : PAIR_of_key, number,
                                                      input->kind.name, range)};
}

static Typed negated(const Condition *c, const Expr *expr) {
    const Typed a = number_of(c, expr->left);
    if (a.type == REFUSED) return a;
    if (a.constant) return constant((Number){true, a.number.is_real, -a.number.integer, -a.number.real});
    return whole(c, expr, pair_apply(c->r->arena, PAIR_sub, pair_constant(c->r->arena, 0), a.rule));
}

static Typed power(const Condition *c, const Expr *expr, const Typed *a, const Typed *b) {
    if (!a->constant || !b->constant)
        return refuse(c, expr->location, "a power in a condition is of constants; write a square as a product");
    const double value = pow(a->number.real, b->number.real);
    if (!isfinite(value)) return refuse(c, expr->location, "the result is not a finite number");
    return value == floor(value) && fabs(value) < 0x1p53 ? constant(whole_number(value))
                                                         : constant((Number){true, true, 0, value});
}

static Typed arithmetic(const Condition *c, const Expr *expr) {
    const Typed a = number_of(c, expr->left), b = number_of(c, expr->right);
    if (a.type == REFUSED || b.type == REFUSED) return (Typed){.type = REFUSED};
    if (expr->kind == EXPR_POWER) return power(c, expr, &a, &b);
    if (expr->kind == EXPR_MOD) {
        if (!a.constant || !b.constant) return divided(c, expr, PAIR_mod, &a, &b);
        if (b.number.real <= 0) return refuse(c, expr->right->location, "a divisor must be above 0");
        return constant(whole_number(whole_rest(a.number.real, b.number.real)));
    }
    if (a.constant && b.constant) return constant(evaluate_of_two(c->r, expr, a.number, b.number));
    switch (expr->kind) {
    case EXPR_ADD: return of_two(c, expr, PAIR_add, &a, &b);
    case EXPR_SUB: return of_two(c, expr, PAIR_sub, &a, &b);
    case EXPR_MUL: return of_two(c, expr, PAIR_mul, &a, &b);
    default:
        return refuse(c, expr->location, "a quotient is real here: write `floor(a / b)`, or `a mod b` for the rest");
    }
}

/* ---------------------------------------------------------------- functions */

static Typed quotient(const Condition *c, const Expr *expr) {
    const Expr *inner = expr->left;
    if (inner->kind != EXPR_DIV) {
        const Typed a = number_of(c, inner);
        if (a.type == REFUSED || !a.constant) return a; /* which is whole */
        return constant(whole_number(floor(a.number.real)));
    }
    const Typed a = number_of(c, inner->left), b = number_of(c, inner->right);
    if (a.type == REFUSED || b.type == REFUSED) return (Typed){.type = REFUSED};
    if (!a.constant || !b.constant) return divided(c, inner, PAIR_quotient, &a, &b);
    const Number value = evaluate_of_two(c->r, inner, a.number, b.number);
    return value.ok ? constant(whole_number(floor(value.real))) : constant(value);
}

static Typed absolute(const Condition *c, const Expr *expr) {
    const Typed a = number_of(c, expr->left);
    if (a.type == REFUSED) return a;
    if (a.constant && a.number.real < 0) return negated(c, expr);
    if (a.constant) return a;
    return whole(c, expr, pair_apply(c->r->arena, PAIR_abs, a.rule, NULL));
}

static Typed picked(const Condition *c, const Expr *expr, PairOp op, const Typed *a, const Typed *b) {
    if (a->type == REFUSED || b->type == REFUSED) return (Typed){.type = REFUSED};
    if (a->constant && b->constant)
        return (a->number.real < b->number.real) == (op == PAIR_min) ? *a : *b;
    return of_two(c, expr, op, a, b);
}

static Typed of_pick(const Condition *c, const Expr *expr, PairOp op) {
    const Typed a = number_of(c, expr->left), b = number_of(c, expr->right);
    return picked(c, expr, op, &a, &b);
}

/* clamp(x, low, high) is max(low, min(x, high)). */
static Typed clamped(const Condition *c, const Expr *expr) {
    const Typed x = number_of(c, expr->left), low = number_of(c, expr->right), high = number_of(c, expr->third);
    const Expr inner = {.kind = EXPR_CALL, .location = expr->location, .left = expr->left, .right = expr->third};
    const Expr outer = {.kind = EXPR_CALL, .location = expr->location, .left = expr->left, .right = expr->right};
    const Typed most = picked(c, &inner, PAIR_min, &x, &high);
    return picked(c, &outer, PAIR_max, &most, &low);
}

/* sign(x) is the number of x > 0 less that of x < 0. */
static Typed sign(const Condition *c, const Expr *expr) {
    const Typed a = number_of(c, expr->left);
    if (a.type == REFUSED) return a;
    if (a.constant) return constant(whole_number((a.number.real > 0) - (a.number.real < 0)));
    Arena *arena = c->r->arena;
    const PairRule *most = pair_apply(arena, PAIR_min, a.rule, pair_constant(arena, 1));
    return whole(c, expr, pair_apply(arena, PAIR_max, most, pair_constant(arena, -1)));
}

static Typed minimum(const Condition *c, const Expr *expr) { return of_pick(c, expr, PAIR_min); }
static Typed maximum(const Condition *c, const Expr *expr) { return of_pick(c, expr, PAIR_max); }

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static Typed called(const Condition *c, const Expr *expr) {
    static const struct {
        const char *name;
        int arguments;
        Typed (*of)(const Condition *c, const Expr *expr); /* NULL: a function of a constant alone, which is: */
        double (*real)(double x);
    } functions[] = {
        {"min", 2, minimum, NULL}, {"max", 2, maximum, NULL},   {"abs", 1, absolute, NULL},
        {"clamp", 3, clamped, NULL}, {"floor", 1, quotient, NULL}, {"sign", 1, sign, NULL},
        {"sqrt", 1, NULL, sqrt},   {"exp", 1, NULL, exp},       {"log", 1, NULL, log},
        {"tanh", 1, NULL, tanh},   {"sigmoid", 1, NULL, sigmoid}, {"sin", 1, NULL, sin},
        {"cos", 1, NULL, cos},     {"erf", 1, NULL, erf},
    };
    enum { FUNCTIONS = sizeof functions / sizeof *functions };
    const char *names[FUNCTIONS + 1] = {NULL};
    const int arguments = (expr->left != NULL) + (expr->right != NULL) + (expr->third != NULL);
    for (int f = 0; f < FUNCTIONS; f++) {
        names[f] = functions[f].name;
        if (strcmp(expr->text, names[f]) != 0) continue;
        if (arguments != functions[f].arguments)
            return refuse(c, expr->location,
                          arena_printf(c->r->arena, "`%s` has %s, found %d", names[f],
                                       counted(c->r->arena, functions[f].arguments, "argument"), arguments));
        if (functions[f].of) return functions[f].of(c, expr);
        const Typed a = number_of(c, expr->left);
        if (a.type == REFUSED) return a;
        if (!a.constant)
            return refuse(c, expr->location,
                          arena_printf(c->r->arena, "`%s` of a pair may not decide which keys are visible", names[f]));
        const double value = functions[f].real(a.number.real);
        if (!isfinite(value)) return refuse(c, expr->location, "the result is not a finite number");
        return constant((Number){true, true, 0, value});
    }
    names[FUNCTIONS] = NULL;
    return refuse(c, expr->location,
                  arena_printf(c->r->arena, "`%s` is no function%s", expr->text,
                               did_you_mean(c->r->arena, expr->text, near_word(c->r->arena, expr->text, names))));
}

/* ---------------------------------------------------------------- conditions */

/* A whole number is compared with a constant that is not whole as with the next whole number. */
static Number next_whole(PairOp op, Number number, bool on_left) {
    if (!number.is_real) return number;
    const bool up = (op == PAIR_below) != on_left; /* x < 2.5 is x < 3, and 2.5 < x is 2 < x */
    return whole_number(up ? ceil(number.real) : floor(number.real));
}

static Typed compared(const Condition *c, const Expr *expr) {
    Typed a = number_of(c, expr->left), b = number_of(c, expr->right);
    if (a.type == REFUSED || b.type == REFUSED) return (Typed){.type = REFUSED};
    const bool swapped = expr->kind == EXPR_GREATER || expr->kind == EXPR_AT_LEAST;
    const PairOp op = expr->kind == EXPR_EQUAL     ? PAIR_equals
                      : expr->kind == EXPR_DIFFERS ? PAIR_differs
                      : expr->kind == EXPR_LESS || expr->kind == EXPR_GREATER ? PAIR_below
                                                                              : PAIR_at_most;
    if (op == PAIR_below || op == PAIR_at_most) {
        if (a.constant) a.number = next_whole(op, a.number, !swapped);
        if (b.constant) b.number = next_whole(op, b.number, swapped);
    }
    const PairRule *left = rule_of(c, expr->left, &a), *right = rule_of(c, expr->right, &b);
    if (!left || !right) return (Typed){.type = REFUSED};
    return truth(swapped ? pair_apply(c->r->arena, op, right, left) : pair_apply(c->r->arena, op, left, right));
}

/* The condition that holds where the rule does not. */
static const PairRule *denied(Arena *arena, const PairRule *rule) {
    switch (rule->op) {
    case PAIR_and: return pair_apply(arena, PAIR_or, denied(arena, rule->a), denied(arena, rule->b));
    case PAIR_or: return pair_apply(arena, PAIR_and, denied(arena, rule->a), denied(arena, rule->b));
    case PAIR_below: return pair_apply(arena, PAIR_at_most, rule->b, rule->a);
    case PAIR_at_most: return pair_apply(arena, PAIR_below, rule->b, rule->a);
    case PAIR_equals: return pair_apply(arena, PAIR_differs, rule->a, rule->b);
    case PAIR_differs: return pair_apply(arena, PAIR_equals, rule->a, rule->b);
    default: bug("a condition is no comparison");
    }
}

static Typed combined(const Condition *c, const Expr *expr) {
    const Typed a = condition_of(c, expr->left), b = condition_of(c, expr->right);
    if (a.type == REFUSED || b.type == REFUSED) return (Typed){.type = REFUSED};
    return truth(pair_apply(c->r->arena, expr->kind == EXPR_AND ? PAIR_and : PAIR_or, a.rule, b.rule));
}

/* `if a then b else c` of conditions. */
static Typed chosen(const Condition *c, const Expr *expr) {
    Arena *arena = c->r->arena;
    const Typed a = condition_of(c, expr->left), b = typed(c, expr->right);
    if (b.type == WHOLE)
        return refuse(c, expr->location, "`if` chooses between conditions; a choice of numbers is not supported yet");
    const Typed d = condition_of(c, expr->third);
    if (a.type == REFUSED || b.type == REFUSED || d.type == REFUSED) return (Typed){.type = REFUSED};
    return truth(pair_apply(arena, PAIR_or, pair_apply(arena, PAIR_and, a.rule, b.rule),
                            pair_apply(arena, PAIR_and, denied(arena, a.rule), d.rule)));
}

static Typed typed(const Condition *c, const Expr *expr) {
    switch (expr->kind) {
    case EXPR_INTEGER: case EXPR_REAL: return constant(evaluate(c->r, c->scope, expr));
    case EXPR_NAME: return name(c, expr);
    case EXPR_CALL: case EXPR_SQRT: return called(c, expr);
    case EXPR_INDEX: return indexed(c, expr);
    case EXPR_NEGATE: return negated(c, expr);
    case EXPR_ADD: case EXPR_SUB: case EXPR_MUL: case EXPR_DIV: case EXPR_MOD: case EXPR_POWER:
        return arithmetic(c, expr);
    case EXPR_LESS: case EXPR_AT_MOST: case EXPR_GREATER: case EXPR_AT_LEAST: case EXPR_EQUAL: case EXPR_DIFFERS:
        return compared(c, expr);
    case EXPR_NOT: {
        const Typed a = condition_of(c, expr->left);
        return a.type == REFUSED ? a : truth(denied(c->r->arena, a.rule));
    }
    case EXPR_AND: case EXPR_OR: return combined(c, expr);
    case EXPR_IF: return chosen(c, expr);
    }
    bug("an expression has no kind");
}

const PairRule *resolve_condition(Resolver *r, const Scope *scope, const Expr *expr, PairRange query, PairRange key,
                                  Attention *a) {
    if (expr == r->refused) return NULL;
    const Condition c = {r, scope, query, key, a};
    const Typed condition = condition_of(&c, expr);
    if (condition.type == REFUSED) r->refused = expr;
    return condition.rule;
}
