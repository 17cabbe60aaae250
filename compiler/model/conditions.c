/* conditions.c: makes a rule of pairs from the expression of a `mask where`, a `score`, an activation or a table, and
 * computes the numbers of tables. This file reads comparisons, `and`, `or`, `not` and `if`; score_numbers.c reads
 * numbers, score_names.c names, and formulas.c the names and the `if` of an activation. Whole numbers are proved to
 * stay below 2^31 for all positions of the model. Real numbers that decide are rounded to f32 after each operation. */
#include "conditions.h"

#include <string.h>

/* A whole number is compared with a constant that is not whole as with the next whole number. */
static Number next_whole(PairOp op, Number number, bool on_left) {
    if (!number.is_real) return number;
    const bool up = (op == PAIR_below) != on_left; /* x < 2.5 is x < 3, and 2.5 < x is 2 < x */
    return whole_number(up ? ceil(number.real) : floor(number.real));
}

/* Two constants compare as their order compares with 0. */
static void take_order(Typed *a, Typed *b) {
    if (!a->constant || !b->constant || (!is_real(a) && !is_real(b))) return;
    *a = constant(whole_number((a->number.real > b->number.real) - (a->number.real < b->number.real)));
    *b = constant(whole_number(0));
}

/* The rule of a number that is compared, with `reals` as one of two of which at least one is real. */
static const PairRule *compared_number(const Condition *c, const Expr *expr, const Typed *t, bool reals) {
    if (!reals) return rule_of(c, expr, t);
    return c->decides ? single_of(c, expr, t) : real_of(c, t);
}

static Typed compared(const Condition *c, const Expr *expr) {
    Typed a = whole_if_known(c, expr->left, number_of(c, expr->left));
    Typed b = whole_if_known(c, expr->right, number_of(c, expr->right));
    if (a.type == REFUSED || b.type == REFUSED) return (Typed){.type = REFUSED};
    const bool reals = a.type == REAL || b.type == REAL;
    take_order(&a, &b);
    const bool swapped = expr->kind == EXPR_GREATER || expr->kind == EXPR_AT_LEAST;
    const PairOp op = expr->kind == EXPR_EQUAL     ? PAIR_equals
                      : expr->kind == EXPR_DIFFERS ? PAIR_differs
                      : expr->kind == EXPR_LESS || expr->kind == EXPR_GREATER ? PAIR_below
                                                                              : PAIR_at_most;
    if (!reals && (op == PAIR_below || op == PAIR_at_most)) {
        if (a.constant) a.number = next_whole(op, a.number, !swapped);
        if (b.constant) b.number = next_whole(op, b.number, swapped);
    }
    const PairRule *left = compared_number(c, expr->left, &a, reals);
    const PairRule *right = compared_number(c, expr->right, &b, reals);
    if (!left || !right) return (Typed){.type = REFUSED};
    return truth(swapped ? pair_apply(c->r->arena, op, right, left) : pair_apply(c->r->arena, op, left, right));
}

/* The condition that holds where the rule does not. */
static const PairRule *denied(Arena *arena, const PairRule *rule) {
    const bool singles = rule->op != PAIR_and && rule->op != PAIR_or && pair_is_single(rule->a);
    if (singles && (rule->op == PAIR_below || rule->op == PAIR_at_most)) /* NaN is in no order */
        return pair_apply(arena, PAIR_equals,
                          pair_choose(arena, rule, pair_constant(arena, 1), pair_constant(arena, 0)),
                          pair_constant(arena, 0));
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

/* `if a then b else c` of numbers in a condition. */
static Typed chosen_number(const Condition *c, const Expr *expr, const Typed *a, Typed b) {
    const Typed d = number_of(c, expr->third);
    const bool singles = is_real(&b) || is_real(&d);
    if (a->type == REFUSED || b.type == REFUSED || d.type == REFUSED) return (Typed){.type = REFUSED};
    const PairRule *then = singles ? single_of(c, expr->right, &b) : rule_of(c, expr->right, &b);
    const PairRule *otherwise = singles ? single_of(c, expr->third, &d) : rule_of(c, expr->third, &d);
    if (!then || !otherwise) return (Typed){.type = REFUSED};
    if (singles) return real(pair_choose(c->r->arena, a->rule, then, otherwise));
    return whole(c, expr, pair_choose(c->r->arena, a->rule, then, otherwise));
}

/* `if a then b else c` of conditions, or of numbers, which are real in a score. */
static Typed chosen(const Condition *c, const Expr *expr) {
    Arena *arena = c->r->arena;
    const Condition decision = deciding(c);
    const Typed a = condition_of(&decision, expr->left), b = c->typed(c, expr->right);
    if ((b.type == WHOLE || b.type == REAL) && !c->decides) {
        const Typed other = number_of(c, expr->third);
        if (a.type == REFUSED || other.type == REFUSED) return (Typed){.type = REFUSED};
        const PairRule *choice = pair_choose(arena, a.rule, real_of(c, &b), real_of(c, &other));
        /* a model has the inputs that its spec reads, also where ranges decide that it does not need them */
        const bool reads_rows = pair_reads_own(choice);
        const PairRule *condition = reads_rows ? a.rule : pair_simplified(arena, a.rule, c->query, c->key);
        if (!condition) return real(choice->b);
        if (condition->op == PAIR_constant) return real(choice->c); /* which never holds */
        return real(pair_with(arena, choice, condition, choice->b, choice->c));
    }
    if (b.type == WHOLE || b.type == REAL) return chosen_number(c, expr, &a, b);
    const Typed d = condition_of(c, expr->third);
    if (a.type == REFUSED || b.type == REFUSED || d.type == REFUSED) return (Typed){.type = REFUSED};
    return truth(pair_apply(arena, PAIR_or, pair_apply(arena, PAIR_and, a.rule, b.rule),
                            pair_apply(arena, PAIR_and, denied(arena, a.rule), d.rule)));
}

static bool is_bit(const Expr *expr) { return expr->kind == EXPR_CALL && strcmp(expr->text, "bit") == 0; }

static Typed typed_of(const Condition *c, const Expr *expr) {
    const bool is_name = expr->kind == EXPR_NAME || expr->kind == EXPR_INDEX || is_bit(expr);
    if (c->kind == OF_ACTIVATION && is_name) return typed_argument(c, expr);
    if (c->kind == OF_ACTIVATION && expr->kind == EXPR_IF) return typed_branches(c, expr);
    switch (expr->kind) {
    case EXPR_INTEGER: case EXPR_REAL: return constant(evaluate(c->r, c->scope, expr));
    case EXPR_NAME: return typed_name(c, expr);
    case EXPR_CALL: case EXPR_SQRT: return is_bit(expr) ? typed_bit(c, expr) : typed_call(c, expr);
    case EXPR_INDEX: return typed_entry(c, expr);
    case EXPR_NEGATE: return typed_negation(c, expr);
    case EXPR_ADD: case EXPR_SUB: case EXPR_MUL: case EXPR_DIV: case EXPR_MOD: case EXPR_POWER:
        return typed_arithmetic(c, expr);
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

/* A power and a choice of conditions hold an argument several times, so that few words could make a huge rule. */
static Typed typed(const Condition *c, const Expr *expr) {
    const int64_t most = 4096;
    const Typed t = typed_of(c, expr);
    if (!t.rule || t.rule->size <= most) return t;
    return refuse(c, expr->location, arena_printf(c->r->arena, "the expression has more than %lld operations, since "
                                                  "powers and `if` of conditions repeat their arguments",
                                                  (long long)most));
}

const PairRule *resolve_condition(Resolver *r, const Scope *scope, const Expr *expr, PairRange query, PairRange key,
                                  Attention *a) {
    if (expr == r->refused) return NULL;
    const Condition c = {.r = r, .scope = scope, .query = query, .key = key, .a = a, .kind = OF_MASK,
                         .decides = true, .heads = (double)a->heads, .typed = typed};
    const Typed condition = condition_of(&c, expr);
    if (condition.type == REFUSED) r->refused = expr;
    return condition.rule;
}

static bool constants_fit(const PairRule *rule) {
    if (!rule) return true;
    if (rule->op == PAIR_constant && !f32_holds(rule->constant)) return false;
    return constants_fit(rule->a) && constants_fit(rule->b) && constants_fit(rule->c);
}

const PairRule *resolve_rescore(Resolver *r, const Scope *scope, const Expr *expr, PairRange query, PairRange key,
                                Attention *a) {
    if (expr == r->refused) return NULL;
    const Condition c = {.r = r, .scope = scope, .query = query, .key = key, .a = a, .kind = OF_SCORE,
                         .heads = (double)a->heads, .typed = typed};
    const Typed score = number_of(&c, expr);
    const PairRule *rule = score.type == REFUSED ? NULL : real_of(&c, &score);
    if (rule && !constants_fit(rule)) {
        refuse(&c, expr->location, "f32 does not hold a constant of this score");
        rule = NULL;
    }
    if (!rule) r->refused = expr;
    return rule;
}

const PairRule *resolve_formula(Resolver *r, const Scope *scope, const Expr *expr) {
    const Condition c = {.r = r, .scope = scope, .kind = OF_ACTIVATION, .typed = typed};
    const Typed value = number_of(&c, expr);
    const PairRule *rule = value.type == REFUSED ? NULL : real_of(&c, &value);
    const char *why = !rule                             ? NULL
                      : !pair_reads(rule, PAIR_score) ? "an activation is an expression of `x`"
                      : !constants_fit(rule)          ? "f32 does not hold a constant of this activation"
                                                      : formula_hole(r->arena, rule);
    if (why) refuse(&c, expr->location, why);
    if (!rule || why) r->refused = expr;
    return why ? NULL : rule;
}

const PairTable *resolve_table(Resolver *r, const Scope *scope, const char *name, const Expr *count, const Expr *of) {
    PairTable *table = arena_alloc(r->arena, sizeof *table);
    const bool of_heads = is_word(count, "heads");
    const Number n = evaluate_integer(r, scope, count, "the length of a table", 1, MOST_ROWS);
    const Condition c = {.r = r, .scope = scope, .kind = of_heads ? OF_TABLE_OF_HEADS : OF_TABLE,
                         .count = (double)n.integer, .typed = typed};
    if (!n.ok) return NULL;
    const Typed number = number_of(&c, of);
    if (number.type == REFUSED) return NULL;
    double *numbers = arena_array(r->arena, (size_t)n.integer, sizeof *numbers);
    *table = (PairTable){.name = name, .count = n.integer, .of_heads = of_heads, .rule = real_of(&c, &number),
                         .numbers = numbers, .whole = true};
    for (int64_t i = 0; i < n.integer; i++) {
        numbers[i] = pair_value(table->rule, &(PairAt){.head = (double)i, .index = (double)i});
        table->whole &= numbers[i] == floor(numbers[i]) && fabs(numbers[i]) <= MOST_WHOLE;
        if (!isfinite((float)numbers[i])) {
            diagnose(r->diagnostics, of->location, "f32 does not hold the number of the table where the index is %lld",
                     (long long)i);
            return NULL;
        }
    }
    for (int64_t i = 0; i < n.integer && !table->whole; i++) numbers[i] = (double)(float)numbers[i];
    return table;
}
