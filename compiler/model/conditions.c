/* conditions.c: makes a rule of pairs of the expression of `mask where`, of `score` or of a table. Whole numbers are
 * proved to stay below 2^31 for all positions of the model. The numbers of a condition are whole, and constants may be
 * real; the numbers of a score and of a table may be real, too. */
#include "settings.h"

#include <math.h>
#include <string.h>

typedef enum Type { WHOLE, REAL, TRUTH, REFUSED } Type;

/* An expression with a value for each pair. A number that is the same for all pairs is `constant`, and then has no
 * rule. */
typedef struct Typed {
    Type type;
    bool constant;
    Number number;
    const PairRule *rule;
} Typed;

typedef enum Kind { OF_MASK, OF_SCORE, OF_TABLE, OF_TABLE_OF_HEADS } Kind;

typedef struct Condition {
    Resolver *r;
    const Scope *scope;
    PairRange query, key;
    Attention *a; /* whose inputs are added to; NULL for a table */
    Kind kind;
    double heads, count; /* of the attention, and of the table */
} Condition;

static Typed typed(const Condition *c, const Expr *expr);

static Typed refuse(const Condition *c, Location location, const char *why) {
    diagnose(c->r->diagnostics, location, "%s", why);
    return (Typed){.type = REFUSED};
}

static Typed constant(Number number) {
    return number.ok ? (Typed){.type = WHOLE, .constant = true, .number = number} : (Typed){.type = REFUSED};
}

static Typed real(const PairRule *rule) { return (Typed){.type = REAL, .rule = rule}; }

static Typed truth(const PairRule *rule) { return (Typed){.type = TRUTH, .rule = rule}; }

static Number whole_number(double value) { return (Number){true, false, (int64_t)value, value}; }

/* The most of a whole number, which 32 bits hold with its sign. */
#define MOST_WHOLE 2147483647.0

/* A rule whose value is a whole number. It is refused where the value may not fit 32 bits. */
static Typed whole(const Condition *c, const Expr *expr, const PairRule *rule) {
    const PairRange range = pair_range(rule, c->query, c->key);
    if (range.low >= -MOST_WHOLE && range.high <= MOST_WHOLE) return (Typed){.type = WHOLE, .rule = rule};
    const bool reads_rows = c->a && c->a->n_where_roles + c->a->n_score_roles > 0;
    return refuse(c, expr->location,
                  arena_printf(c->r->arena, "the value may be from %s to %s here, which 32 bits do not hold%s",
                               number_text(c->r->arena, range.low), number_text(c->r->arena, range.high),
                               reads_rows ? "; an input states its range as `input rows NAME 0..64`" : ""));
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

/* The rule of a number in f32, which rounds a whole number where f32 does not hold it. */
static const PairRule *real_of(const Condition *c, const Typed *t) {
    if (t->constant) return pair_constant(c->r->arena, t->number.real);
    if (t->type == REAL || pair_is_exact(t->rule, c->query, c->key)) return t->rule;
    return pair_apply(c->r->arena, PAIR_real, t->rule, NULL);
}

/* Whether a number is real: a constant that is not whole is. */
static bool is_real(const Typed *t) {
    return t->constant ? t->number.real != floor(t->number.real) || fabs(t->number.real) > MOST_WHOLE : t->type == REAL;
}

static Typed number_of(const Condition *c, const Expr *expr) {
    if (!expr) bug("an expression lacks an argument");
    const Typed t = typed(c, expr);
    return t.type == TRUTH ? refuse(c, expr->location, "a number is needed here, and this is a condition") : t;
}

static Typed condition_of(const Condition *c, const Expr *expr) {
    if (!expr) bug("an expression lacks an argument");
    const Typed t = typed(c, expr);
    return t.type == WHOLE || t.type == REAL
               ? refuse(c, expr->location, "a condition is needed here, and this is a number") : t;
}

/* ---------------------------------------------------------------- numbers */

/* A number that decides is whole: a real number is refused. */
static Typed decides(const Condition *c, const Expr *expr, Typed t) {
    if (t.type != REAL) return t;
    return refuse(c, expr->location, "a condition and an index are of whole numbers, and this number is real");
}

/* A head in a condition or in whole numbers that differ from pair to pair would be one more number of the C. */
static bool refuse_head(const Condition *c, const Expr *expr, const PairRule *rule) {
    if (!pair_reads(rule, PAIR_head) || pair_tabled(rule) == TABLED_HEAD) return false;
    refuse(c, expr->location, "whole numbers of a head and of positions together are not supported yet");
    return true;
}

/* Whether the numbers are of a head and of positions together, which only vectors of reals compute, not exactly. */
static bool mixes_heads(const Condition *c, PairOp op, const Typed *a, const Typed *b) {
    if (!pair_reads(a->rule, PAIR_head) && !pair_reads(b->rule, PAIR_head)) return false;
    const PairRule *rule = pair_apply(c->r->arena, op, real_of(c, a), real_of(c, b));
    return pair_tabled(rule) != TABLED_HEAD && !pair_is_exact(rule, c->query, c->key);
}

static Typed of_two(const Condition *c, const Expr *expr, PairOp op, const Typed *a, const Typed *b) {
    if (c->kind != OF_MASK && (is_real(a) || is_real(b) || mixes_heads(c, op, a, b)))
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
    if (!a->constant && refuse_head(c, expr, pair_apply(c->r->arena, op, a->rule, divisor)))
        return (Typed){.type = REFUSED};
    return of_two(c, expr, op, a, b);
}

/* The names that have a meaning in a table alone, and those that have one for pairs alone. */
static Typed letter(const Condition *c, const Expr *expr) {
    Arena *arena = c->r->arena;
    const bool of_pairs = c->kind == OF_MASK || c->kind == OF_SCORE;
    const Binding *bound = binding_named(c->scope, expr->text);
    if (bound) {
        refuse(c, expr->location, arena_printf(arena, "`%s` has a meaning of its own in this expression", expr->text));
        diagnose_note(c->r->diagnostics, bound->location, "a `let` gives it another one here");
        return (Typed){.type = REFUSED};
    }
    if (*expr->text == 'i' || (*expr->text == 'h' && !of_pairs)) {
        if (of_pairs) return refuse(c, expr->location, "`i` is the index of a table alone");
        if (*expr->text == 'h' && c->kind == OF_TABLE)
            return refuse(c, expr->location, "`h` is the index of a table of heads, `table [heads]`");
        return (Typed){.type = WHOLE, .rule = pair_ranged(arena, PAIR_index, (PairRange){0, c->count - 1})};
    }
    if (!of_pairs)
        return refuse(c, expr->location,
                      arena_printf(arena, "a table is computed for its index `i` alone, and has no `%s`", expr->text));
    switch (*expr->text) {
    case 'q': return (Typed){.type = WHOLE, .rule = pair_leaf(arena, PAIR_query)};
    case 'k': return (Typed){.type = WHOLE, .rule = pair_leaf(arena, PAIR_key)};
    case 's':
        if (c->kind == OF_SCORE) return real(pair_leaf(arena, PAIR_score));
        return refuse(c, expr->location,
                      "`s` is a score, and a score may not decide which keys are visible: hidden keys are skipped "
                      "before there are scores");
    default:
        if (c->kind == OF_SCORE)
            return (Typed){.type = WHOLE, .rule = pair_ranged(arena, PAIR_head, (PairRange){0, c->heads - 1})};
        return refuse(c, expr->location, "`h`: a mask that differs from head to head is not supported yet");
    }
}

static Typed name(const Condition *c, const Expr *expr) {
    Arena *arena = c->r->arena;
    const Binding *table = binding_named(c->scope, expr->text);
    if (table && table->table && location_before(table->location, expr->location))
        return refuse(c, expr->location,
                      arena_printf(arena, "`%s` is a table: a number of it is `%s[EXPR]`", expr->text, expr->text));
    if (strlen(expr->text) == 1 && strchr("qkhsi", *expr->text)) return letter(c, expr);
    return constant(evaluate(c->r, c->scope, expr));
}

/* The number of an input among the inputs of the mask or of the score, which have room for all of the model's inputs
 * of rows. */
static int input_of(const Condition *c, InputRole role) {
    InputRole *roles = c->kind == OF_MASK ? c->a->visible_roles : c->a->score_roles;
    int *n = c->kind == OF_MASK ? &c->a->n_where_roles : &c->a->n_score_roles, i = 0;
    while (i < *n && roles[i] != role) i++;
    if (i == *n) roles[(*n)++] = role;
    return i;
}

/* NAME[EXPR] of a table */
static Typed entry(const Condition *c, const Expr *expr, const PairTable *table) {
    Arena *arena = c->r->arena;
    if (c->kind == OF_MASK)
        return refuse(c, expr->location, "a table in a mask is not supported yet");
    if (expr->right)
        return refuse(c, expr->right->location, arena_printf(arena, "`%s` has one index", table->name));
    const Typed at = decides(c, expr->left, number_of(c, expr->left));
    if (at.type == REFUSED) return at;
    const PairRule *index = rule_of(c, expr->left, &at);
    if (!index || refuse_head(c, expr->left, index)) return (Typed){.type = REFUSED};
    const PairRange range = pair_range(index, c->query, c->key);
    if (!(range.low >= 0 && range.high <= (double)table->count - 1))
        return refuse(c, expr->left->location,
                      arena_printf(arena, "the index may be from %s to %s here, and `%s` has the numbers 0 to %lld",
                                   number_text(arena, range.low), number_text(arena, range.high), table->name,
                                   (long long)table->count - 1));
    return real(pair_let(arena, table, index));
}

/* NAME[q] or NAME[k] of an input, or a number of a table. */
static Typed indexed(const Condition *c, const Expr *expr) {
    Arena *arena = c->r->arena;
    const Binding *binding = binding_named(c->scope, expr->text);
    if (binding && binding->table && location_before(binding->location, expr->location))
        return entry(c, expr, binding->table);
    if (binding && !binding->known && !binding->input) return (Typed){.type = REFUSED}; /* a table that was refused */
    const RowInput *input = row_input_named(c->r, c->scope, expr->text, expr->location);
    if (input && !c->a) return refuse(c, expr->location, "a table reads no input");
    if (!input)
        return refuse(c, expr->location,
                      arena_printf(arena, "there is no table and no input `%s` of rows", expr->text));
    const bool named = !expr->right && expr->left->kind == EXPR_NAME;
    const bool of_query = named && strcmp(expr->left->text, "q") == 0;
    if (!of_query && !(named && strcmp(expr->left->text, "k") == 0))
        return refuse(c, expr->left->location,
                      arena_printf(arena, "an input of rows is read as `%s[q]` and `%s[k]`", expr->text, expr->text));
    const char *why = row_input_unread(c->r, c->a, input, of_query);
    if (why) return refuse(c, expr->location, why);
    const int number = input_of(c, input->kind.role);
    const PairRange range = {(double)input->least, (double)input->most};
    return (Typed){.type = WHOLE, .rule = pair_of_row(arena, of_query ? PAIR_of_query : PAIR_of_key, number,
                                                      input->kind.name, range)};
}

static Typed negated(const Condition *c, const Expr *expr) {
    const Typed a = number_of(c, expr->left);
    if (a.type == REFUSED) return a;
    if (a.constant) return constant((Number){true, a.number.is_real, -a.number.integer, -a.number.real});
    if (a.type == REAL) return real(pair_apply(c->r->arena, PAIR_mul, pair_constant(c->r->arena, -1), a.rule));
    return whole(c, expr, pair_apply(c->r->arena, PAIR_sub, pair_constant(c->r->arena, 0), a.rule));
}

/* A function that is computed when the model is packed. Its argument must be the index of a table. */
static Typed tabled(const Condition *c, const Expr *expr, const PairRule *rule) {
    if (c->kind == OF_TABLE || c->kind == OF_TABLE_OF_HEADS) return real(rule);
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
static Typed whole_power(const Condition *c, const Typed *a, int factors) {
    const PairRule *factor = real_of(c, a), *product = factor;
    for (int i = 1; i < factors; i++) product = pair_apply(c->r->arena, PAIR_mul, product, factor);
    return real(product);
}

static Typed power(const Condition *c, const Expr *expr, const Typed *a, const Typed *b) {
    const double most_factors = 8;
    if (c->kind != OF_MASK && (!a->constant || !b->constant)) {
        if (b->constant && b->number.real >= 1 && b->number.real <= most_factors && !is_real(b))
            return whole_power(c, a, (int)b->number.real);
        return tabled(c, expr, pair_apply(c->r->arena, PAIR_power, real_of(c, a), real_of(c, b)));
    }
    if (!a->constant || !b->constant)
        return refuse(c, expr->location, "a power in a condition is of constants; write a square as a product");
    const double value = pow(a->number.real, b->number.real);
    if (!isfinite(value)) return refuse(c, expr->location, "the result is not a finite number");
    return value == floor(value) && fabs(value) < 0x1p53 ? constant(whole_number(value))
                                                         : constant((Number){true, true, 0, value});
}

/* A quotient by a constant is a product, where f32 holds the reciprocal. */
static Typed ratio(const Condition *c, const Expr *expr, const Typed *a, const Typed *b) {
    Arena *arena = c->r->arena;
    if (b->constant && b->number.real == 0) return refuse(c, expr->right->location, "division by zero");
    if (b->constant && f32_holds(1 / b->number.real))
        return real(pair_apply(arena, PAIR_mul, real_of(c, a), pair_constant(arena, 1 / b->number.real)));
    return real(pair_apply(arena, PAIR_div, real_of(c, a), real_of(c, b)));
}

static Typed arithmetic(const Condition *c, const Expr *expr) {
    const Typed a = number_of(c, expr->left), b = number_of(c, expr->right);
    if (a.type == REFUSED || b.type == REFUSED) return (Typed){.type = REFUSED};
    if (expr->kind == EXPR_POWER) return power(c, expr, &a, &b);
    if (expr->kind == EXPR_MOD && c->kind != OF_MASK && (is_real(&a) || is_real(&b)))
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
    default:
        if (c->kind != OF_MASK) return ratio(c, expr, &a, &b);
        return refuse(c, expr->location, "a quotient is real here: write `floor(a / b)`, or `a mod b` for the rest");
    }
}

/* ---------------------------------------------------------------- functions */

/* The floor of a real number, at whose steps two engines would differ if the number were not from a table. */
static Typed floored(const Condition *c, const Expr *expr, const PairRule *rule) {
    if (pair_reads(rule, PAIR_score))
        return refuse(c, expr->location, "`s` is a score, and a score may not decide where a step is");
    return tabled(c, expr, pair_apply(c->r->arena, PAIR_floor, rule, NULL));
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
    if (c->kind != OF_MASK && (is_real(&a) || is_real(&b)) && !(a.constant && b.constant)) {
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
    if (a.constant && a.number.real < 0) return negated(c, expr);
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
    const Typed a = number_of(c, expr->left);
    if (a.type == REFUSED) return a;
    if (a.constant) return constant(whole_number((a.number.real > 0) - (a.number.real < 0)));
    if (a.type == REAL) return refuse(c, expr->location, "`sign` of a real number is not supported yet");
    Arena *arena = c->r->arena;
    const PairRule *most = pair_apply(arena, PAIR_min, a.rule, pair_constant(arena, 1));
    return whole(c, expr, pair_apply(arena, PAIR_max, most, pair_constant(arena, -1)));
}

static Typed minimum(const Condition *c, const Expr *expr) { return of_pick(c, expr, PAIR_min); }
static Typed maximum(const Condition *c, const Expr *expr) { return of_pick(c, expr, PAIR_max); }

/* A function of one variable: a row of pairs.def. */
static Typed of_one(const Condition *c, const Expr *expr, PairOp op, const Typed *a) {
    if (op == PAIR_COUNT) bug("a function of numbers has no row in pairs.def");
    const PairRule *rule = pair_apply(c->r->arena, op, real_of(c, a), NULL);
    return pair_is_of_tables(op) ? tabled(c, expr, rule) : real(rule);
}

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
        if (!a.constant && c->kind != OF_MASK) return of_one(c, expr, pair_named(names[f], 1), &a);
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
    Typed a = decides(c, expr->left, number_of(c, expr->left));
    Typed b = decides(c, expr->right, number_of(c, expr->right));
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
    if (pair_reads(left, PAIR_head) || pair_reads(right, PAIR_head))
        return refuse(c, expr->location, "a condition that differs from head to head is not supported yet");
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

/* `if a then b else c` of conditions, or of numbers, which are real. */
static Typed chosen(const Condition *c, const Expr *expr) {
    Arena *arena = c->r->arena;
    const Typed a = condition_of(c, expr->left), b = typed(c, expr->right);
    if ((b.type == WHOLE || b.type == REAL) && c->kind != OF_MASK) {
        const Typed other = number_of(c, expr->third);
        if (a.type == REFUSED || other.type == REFUSED) return (Typed){.type = REFUSED};
        const PairRule *choice = pair_choose(arena, a.rule, real_of(c, &b), real_of(c, &other));
        /* a model has the inputs that its spec reads, also where ranges decide that it does not need them */
        const bool reads_rows = pair_reads(choice, PAIR_of_query) || pair_reads(choice, PAIR_of_key);
        const PairRule *condition = reads_rows ? a.rule : pair_simplified(arena, a.rule, c->query, c->key);
        if (!condition) return real(choice->b);
        if (condition->op == PAIR_constant) return real(choice->c); /* which never holds */
        return real(pair_with(arena, choice, condition, choice->b, choice->c));
    }
    if (b.type == WHOLE)
        return refuse(c, expr->location, "`if` chooses between conditions; a choice of numbers is not supported yet");
    const Typed d = condition_of(c, expr->third);
    if (a.type == REFUSED || b.type == REFUSED || d.type == REFUSED) return (Typed){.type = REFUSED};
    return truth(pair_apply(arena, PAIR_or, pair_apply(arena, PAIR_and, a.rule, b.rule),
                            pair_apply(arena, PAIR_and, denied(arena, a.rule), d.rule)));
}

static Typed typed_of(const Condition *c, const Expr *expr) {
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
    const Condition c = {.r = r, .scope = scope, .query = query, .key = key, .a = a, .kind = OF_MASK};
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
                         .heads = (double)a->heads};
    const Typed score = number_of(&c, expr);
    const PairRule *rule = score.type == REFUSED ? NULL : real_of(&c, &score);
    if (rule && !constants_fit(rule)) {
        refuse(&c, expr->location, "f32 does not hold a constant of this score");
        rule = NULL;
    }
    if (!rule) r->refused = expr;
    return rule;
}

const PairTable *resolve_table(Resolver *r, const Scope *scope, const char *name, const Expr *count, const Expr *of) {
    PairTable *table = arena_alloc(r->arena, sizeof *table);
    const bool of_heads = count->kind == EXPR_NAME && strcmp(count->text, "heads") == 0;
    const Number n = evaluate_integer(r, scope, count, "the length of a table", 1, MOST_ROWS);
    const Condition c = {.r = r, .scope = scope, .kind = of_heads ? OF_TABLE_OF_HEADS : OF_TABLE,
                         .count = (double)n.integer};
    if (!n.ok) return NULL;
    const Typed number = number_of(&c, of);
    if (number.type == REFUSED) return NULL;
    *table = (PairTable){.name = name, .count = n.integer, .of_heads = of_heads, .rule = real_of(&c, &number)};
    for (int64_t i = 0; i < n.integer; i++)
        if (!isfinite((float)pair_value(table->rule, &(PairAt){.index = (double)i}))) {
            diagnose(r->diagnostics, of->location, "f32 does not hold the number of the table where the index is %lld",
                     (long long)i);
            return NULL;
        }
    return table;
}
