/* score_numbers.c: makes rules of the arithmetic and the functions of numbers in a `mask where`, a `score`, an
 * activation or a table. It decides whether a number is whole or real, computes constants, refuses operations on
 * numbers of the wrong type, and proves that whole numbers stay below 2^31 for all positions of the model. */
#include "conditions.h"

#include <string.h>

Typed refuse(const Condition *c, Location location, const char *why) {
    diagnose(c->r->diagnostics, location, "%s", why);
    return (Typed){.type = REFUSED};
}

/* What an item `input` is of whose range bounds the rule. */
static const char *ranged_kind(const PairRule *rule) {
    const bool of_rows = pair_reads(rule, PAIR_of_query) || pair_reads(rule, PAIR_of_key);
    return pair_reads(rule, PAIR_of_pair) ? "pairs" : pair_reads(rule, PAIR_number) && !of_rows ? "number" : "rows";
}

Typed whole(const Condition *c, const Expr *expr, const PairRule *rule) {
    const PairRange range = pair_range(rule, c->query, c->key);
    if (range.low == range.high && !pair_inputs(rule)) /* the same for all pairs */
        return (Typed){.type = WHOLE, .rule = pair_constant(c->r->arena, range.low)};
    if (range.low >= -MOST_WHOLE && range.high <= MOST_WHOLE) return (Typed){.type = WHOLE, .rule = rule};
    const bool reads_rows = c->a && c->a->n_where_roles + c->a->n_score_roles > 0;
    return refuse(c, expr->location,
                  arena_printf(c->r->arena, "the value may be from %s to %s here, which 32 bits do not hold%s",
                               number_text(c->r->arena, range.low), number_text(c->r->arena, range.high),
                               reads_rows ? arena_printf(c->r->arena,
                                                         "; an input states its range as `input %s NAME 0..64`",
                                                         ranged_kind(rule))
                                          : ""));
}

const PairRule *rule_of(const Condition *c, const Expr *expr, const Typed *t) {
    if (!t->constant) return t->rule;
    if (t->number.real == floor(t->number.real) && fabs(t->number.real) <= MOST_WHOLE)
        return pair_constant(c->r->arena, t->number.real);
    refuse(c, expr->location,
           arena_printf(c->r->arena, "a condition is of whole numbers of 32 bits, and this is %s",
                        number_text(c->r->arena, t->number.real)));
    return NULL;
}

const PairRule *real_of(const Condition *c, const Typed *t) {
    if (t->constant) return pair_constant(c->r->arena, t->number.real);
    if (t->type == REAL || pair_is_exact(t->rule, c->query, c->key)) return t->rule;
    return pair_apply(c->r->arena, PAIR_real, t->rule, NULL);
}

const PairRule *single_of(const Condition *c, const Expr *expr, const Typed *t) {
    if (!t->constant && t->type == REAL) return t->rule;
    Arena *arena = c->r->arena;
    if (!t->constant) return pair_apply(arena, PAIR_single, t->rule, NULL);
    if (f32_holds(t->number.real))
        return pair_apply(arena, PAIR_single, pair_constant(arena, (double)(float)t->number.real), NULL);
    refuse(c, expr->location, arena_printf(arena, "f32 does not hold %s", number_text(arena, t->number.real)));
    return NULL;
}

Typed number_of(const Condition *c, const Expr *expr) {
    if (!expr) bug("an expression lacks an argument");
    const Typed t = c->typed(c, expr);
    return t.type == TRUTH ? refuse(c, expr->location, "a number is needed here, and this is a condition") : t;
}

Typed condition_of(const Condition *c, const Expr *expr) {
    if (!expr) bug("an expression lacks an argument");
    const Typed t = c->typed(c, expr);
    return t.type == WHOLE || t.type == REAL
               ? refuse(c, expr->location, "a condition is needed here, and this is a number") : t;
}

/* The whole numbers that a rule of a score is of, where all of its numbers are whole; else NULL. */
static const PairRule *whole_numbers(Arena *arena, const PairRule *rule) {
    switch (rule->op) {
    case PAIR_constant: return rule->constant == floor(rule->constant) ? rule : NULL;
    case PAIR_query: case PAIR_key: case PAIR_head: return rule;
    case PAIR_real: return pair_is_single(rule->a) ? NULL : rule->a; /* unless it is of a real input */
    case PAIR_let: return rule->table->whole ? pair_table_entry(arena, rule->table, rule->a) : NULL;
    case PAIR_add: case PAIR_sub: case PAIR_mul: case PAIR_min: case PAIR_max: case PAIR_abs: case PAIR_choose: break;
    default: return NULL;
    }
    const PairRule *a = rule->op == PAIR_choose ? rule->a : whole_numbers(arena, rule->a);
    const PairRule *b = rule->b ? whole_numbers(arena, rule->b) : NULL;
    const PairRule *c = rule->c ? whole_numbers(arena, rule->c) : NULL;
    return a && !b == !rule->b && !c == !rule->c ? pair_with(arena, rule, a, b, c) : NULL;
}

Typed whole_if_known(const Condition *c, const Expr *expr, Typed t) {
    const PairRule *rule = t.type == REAL ? whole_numbers(c->r->arena, t.rule) : NULL;
    return rule ? whole(c, expr, rule) : t;
}

Typed index_of(const Condition *c, const Expr *expr, Typed t) {
    const Typed known = whole_if_known(c, expr, t);
    if (known.type != REAL) return known;
    const bool is_floor = pair_reads(known.rule, PAIR_floor) && pair_reads(known.rule, PAIR_single);
    if (!is_floor) return refuse(c, expr->location, "an index is a whole number, and this number is real");
    return refuse(c, expr->location,
                  arena_printf(c->r->arena, "an index is a whole number, and 32 bits may not hold this one; a real "
                                            "input states its range as `input %s NAME real 0..1`",
                               ranged_kind(known.rule)));
}

/* Whether the numbers are of a head and of positions together, which only vectors of reals compute, not exactly. */
static bool mixes_heads(const Condition *c, PairOp op, const Typed *a, const Typed *b) {
    if (op == PAIR_mod || op == PAIR_quotient) return false; /* which vectors do not compute */
    if (!pair_reads(a->rule, PAIR_head) && !pair_reads(b->rule, PAIR_head)) return false;
    const PairRule *rule = pair_apply(c->r->arena, op, real_of(c, a), real_of(c, b));
    return pair_tabled(rule) != TABLED_HEAD && !pair_is_exact(rule, c->query, c->key);
}

/* A number of a condition in f32, to which each operation but a choice rounds. */
static Typed of_two_singles(const Condition *c, const Expr *expr, PairOp op, const Typed *a, const Typed *b) {
    Arena *arena = c->r->arena;
    const PairRule *left = single_of(c, expr->left, a), *right = single_of(c, expr->right, b);
    if (!left || !right) return (Typed){.type = REFUSED};
    const PairRule *rule = pair_apply(arena, op, left, right);
    return real(op == PAIR_min || op == PAIR_max ? rule : pair_apply(arena, PAIR_single, rule, NULL));
}

static Typed of_two(const Condition *c, const Expr *expr, PairOp op, const Typed *a, const Typed *b) {
    if (c->decides && (is_real(a) || is_real(b))) return of_two_singles(c, expr, op, a, b);
    if (!c->decides && (is_real(a) || is_real(b) || mixes_heads(c, op, a, b)))
        return real(pair_apply(c->r->arena, op, real_of(c, a), real_of(c, b)));
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

Typed typed_negation(const Condition *c, const Expr *expr) {
    const Typed a = number_of(c, expr->left);
    if (a.type == REFUSED) return a;
    if (a.constant) return constant((Number){true, a.number.is_real, -a.number.integer, -a.number.real});
    const Typed minus = constant(whole_number(-1));
    if (a.type == REAL && c->decides) return of_two_singles(c, expr, PAIR_mul, &minus, &a);
    if (a.type == REAL) return real(pair_apply(c->r->arena, PAIR_mul, pair_constant(c->r->arena, -1), a.rule));
    return whole(c, expr, pair_apply(c->r->arena, PAIR_sub, pair_constant(c->r->arena, 0), a.rule));
}

/* A function that is computed when the model is packed. Its argument must be the index of a table. */
static Typed tabled(const Condition *c, const Expr *expr, const PairRule *rule) {
    if (c->kind == OF_TABLE || c->kind == OF_TABLE_OF_HEADS) return real(rule);
    if (c->kind == OF_ACTIVATION)
        return refuse(c, expr->location, "of `x`, an activation has the functions min, max, abs, clamp, sqrt, exp, "
                                         "tanh and sigmoid, and powers from 1 to 8");
    const PairTabled of = pair_tabled(rule);
    if (of == TABLED_NOT)
        return refuse(c, expr->location,
                      "this function is supported only of a position, of the distance `q - k` or `k - q`, or of `h`");
    const PairRange range = pair_range(rule, c->query, c->key);
    if (isfinite(range.low) && isfinite(range.high)) return real(rule);
    const int64_t origin = of == TABLED_DISTANCE ? (int64_t)c->query.high : 0;
    const double most = of == TABLED_HEAD ? c->heads - 1 : of == TABLED_QUERY ? c->query.high : c->key.high;
    for (int64_t i = 0; i <= (int64_t)most + origin; i++)
        if (!isfinite(pair_tabled_value(rule, of, i, origin)))
            return refuse(c, expr->location,
                          arena_printf(c->r->arena, "the result is not a finite number where the %s is %lld",
                                       of == TABLED_HEAD ? "head" : of == TABLED_DISTANCE ? "distance" : "position",
                                       (long long)(i - origin)));
    return real(rule);
}

/* A product of equal factors. */
static Typed whole_power(const Condition *c, const Expr *expr, const Typed *a, int factors) {
    if (c->decides) {
        Typed power = *a;
        for (int i = 1; i < factors && power.type != REFUSED; i++) power = of_two(c, expr, PAIR_mul, &power, a);
        return power;
    }
    const PairRule *factor = real_of(c, a), *product = factor;
    for (int i = 1; i < factors; i++) product = pair_apply(c->r->arena, PAIR_mul, product, factor);
    return real(product);
}

static Typed power(const Condition *c, const Expr *expr, const Typed *a, const Typed *b) {
    const double most_factors = 8;
    if (!a->constant || !b->constant) {
        if (b->constant && b->number.real >= 1 && b->number.real <= most_factors && !is_real(b))
            return whole_power(c, expr, a, (int)b->number.real);
        if (c->decides)
            return refuse(c, expr->location, "a power in a condition is of constants, or its exponent is 1 to 8");
        return tabled(c, expr, pair_apply(c->r->arena, PAIR_power, real_of(c, a), real_of(c, b)));
    }
    const double value = pow(a->number.real, b->number.real);
    if (!isfinite(value)) return refuse(c, expr->location, "the result is not a finite number");
    return value == floor(value) && fabs(value) < 0x1p53 ? constant(whole_number(value))
                                                         : constant((Number){true, true, 0, value});
}

/* Outside of conditions, a quotient by a constant is a product, where f32 holds the reciprocal. */
static Typed ratio(const Condition *c, const Expr *expr, const Typed *a, const Typed *b) {
    Arena *arena = c->r->arena;
    if (b->constant && b->number.real == 0) return refuse(c, expr->right->location, "division by zero");
    if (c->decides) return of_two_singles(c, expr, PAIR_div, a, b);
    if (b->constant && f32_holds(1 / b->number.real))
        return real(pair_apply(arena, PAIR_mul, real_of(c, a), pair_constant(arena, 1 / b->number.real)));
    return real(pair_apply(arena, PAIR_div, real_of(c, a), real_of(c, b)));
}

Typed typed_arithmetic(const Condition *c, const Expr *expr) {
    const Typed a = number_of(c, expr->left), b = number_of(c, expr->right);
    if (a.type == REFUSED || b.type == REFUSED) return (Typed){.type = REFUSED};
    if (expr->kind == EXPR_POWER) return power(c, expr, &a, &b);
    if (expr->kind == EXPR_MOD && (is_real(&a) || is_real(&b)))
        return refuse(c, expr->location, "`mod` is of whole numbers");
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
    default: return ratio(c, expr, &a, &b);
    }
}

/* ---------------------------------------------------------------- functions */

/* The same expression where its steps decide. Its numbers are those of a condition, so that all engines step at the
 * same pairs. A step of a score would differ from engine to engine. */
static Typed stepped(const Condition *c, const Expr *expr, const PairRule *of) {
    if (pair_reads(of, PAIR_score))
        return refuse(c, expr->location, "`s` is a score, and a score may not decide where a step is");
    const Condition decision = deciding(c);
    const Typed t = number_of(&decision, expr);
    return t.type == REAL ? real(pair_apply(c->r->arena, PAIR_real, t.rule, NULL)) : t;
}

/* The floor of a real number. It is whole where 32 bits hold it. A number of a table has a floor of a table. */
static Typed floored(const Condition *c, const Expr *expr, const PairRule *of) {
    Arena *arena = c->r->arena;
    const PairRule *rule = pair_apply(arena, PAIR_floor, of, NULL);
    if (!c->decides) {
        const bool in_table = c->kind != OF_SCORE || pair_tabled(of) != TABLED_NOT;
        return in_table ? tabled(c, expr, rule) : stepped(c, expr, of);
    }
    const PairRange range = pair_range(rule, c->query, c->key);
    const bool fits = range.low >= -MOST_WHOLE && range.high <= MOST_WHOLE;
    if (fits && pair_is_ordered(of, c->query, c->key)) return (Typed){.type = WHOLE, .rule = rule};
    return real(pair_apply(arena, PAIR_single, rule, NULL));
}

static Typed quotient(const Condition *c, const Expr *expr) {
    const Expr *inner = expr->left;
    if (inner->kind != EXPR_DIV) {
        const Typed a = number_of(c, inner);
        if (a.type == REAL) return floored(c, expr, a.rule);
        if (a.type == REFUSED || !a.constant) return a; /* which is whole */
        return constant(whole_number(floor(a.number.real)));
    }
    const Typed a = number_of(c, inner->left), b = number_of(c, inner->right);
    if (a.type == REFUSED || b.type == REFUSED) return (Typed){.type = REFUSED};
    if ((is_real(&a) || is_real(&b)) && !(a.constant && b.constant)) {
        const Typed t = ratio(c, inner, &a, &b);
        return t.type == REFUSED ? t : floored(c, expr, t.rule);
    }
    if (!a.constant || !b.constant) return divided(c, inner, PAIR_quotient, &a, &b);
    const Number value = evaluate_of_two(c->r, inner, a.number, b.number);
    return value.ok ? constant(whole_number(floor(value.real))) : constant(value);
}

static Typed absolute(const Condition *c, const Expr *expr) {
    const Typed a = number_of(c, expr->left);
    if (a.type == REFUSED) return a;
    if (a.constant && a.number.real < 0) return typed_negation(c, expr);
    if (a.constant) return a;
    const PairRule *rule = pair_apply(c->r->arena, PAIR_abs, a.rule, NULL);
    return a.type == REAL ? real(rule) : whole(c, expr, rule);
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
    Arena *arena = c->r->arena;
    const Typed a = number_of(c, expr->left);
    if (a.type == REFUSED) return a;
    if (a.constant) return constant(whole_number((a.number.real > 0) - (a.number.real < 0)));
    if (a.type == REAL && c->kind == OF_ACTIVATION) return tabled(c, expr, a.rule);
    if (a.type == REAL && c->kind == OF_SCORE && !c->decides) return stepped(c, expr, a.rule);
    if (a.type == REAL) {
        const PairRule *none = pair_constant(arena, 0), *zero = c->decides ? pair_apply(arena, PAIR_single, none, NULL)
                                                                           : none;
        const PairRule *negative = pair_choose(arena, pair_apply(arena, PAIR_below, a.rule, zero),
                                               pair_constant(arena, -1), none);
        const PairRule *rule = pair_choose(arena, pair_apply(arena, PAIR_below, zero, a.rule), pair_constant(arena, 1),
                                           negative);
        return (Typed){.type = WHOLE, .rule = rule};
    }
    const PairRule *most = pair_apply(arena, PAIR_min, a.rule, pair_constant(arena, 1));
    return whole(c, expr, pair_apply(arena, PAIR_max, most, pair_constant(arena, -1)));
}

static Typed minimum(const Condition *c, const Expr *expr) { return of_pick(c, expr, PAIR_min); }
static Typed maximum(const Condition *c, const Expr *expr) { return of_pick(c, expr, PAIR_max); }

/* A function of one variable: a row of pairs.def. */
static Typed of_one(const Condition *c, const Expr *expr, PairOp op, const Typed *a) {
    Arena *arena = c->r->arena;
    if (op == PAIR_COUNT) bug("a function of numbers has no row in pairs.def");
    if (c->decides)
        return real(pair_apply(arena, PAIR_single, pair_apply(arena, op, single_of(c, expr, a), NULL), NULL));
    const PairRule *rule = pair_apply(arena, op, real_of(c, a), NULL);
    return pair_is_of_tables(op) ? tabled(c, expr, rule) : real(rule);
}

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

Typed typed_call(const Condition *c, const Expr *expr) {
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
        if (!a.constant && (!c->decides || functions[f].real == sqrt))
            return of_one(c, expr, pair_named(names[f], 1), &a);
        if (!a.constant)
            return refuse(c, expr->location,
                          arena_printf(c->r->arena, "`%s` of a pair may not decide%s; a number of a table may",
                                       names[f], c->kind == OF_MASK ? " which keys are visible" : ""));
        const double value = functions[f].real(a.number.real);
        if (!isfinite(value)) return refuse(c, expr->location, "the result is not a finite number");
        return constant((Number){true, true, 0, value});
    }
    names[FUNCTIONS] = NULL;
    return refuse(c, expr->location,
                  arena_printf(c->r->arena, "`%s` is no function%s", expr->text,
                               did_you_mean(c->r->arena, expr->text, near_word(c->r->arena, expr->text, names))));
}
