/* conditions.h: declarations shared by the files that make rules of pairs of expressions: score_numbers.c of numbers,
 * score_names.c of names, and conditions.c of conditions. */
#ifndef CONDITIONS_H
#define CONDITIONS_H

#include "settings.h"

#include <math.h>

typedef enum Type { WHOLE, REAL, TRUTH, REFUSED } Type;

/* An expression with a value for each pair. A number that is the same for all pairs is `constant`, and then has no
 * rule. */
typedef struct Typed {
    Type type;
    bool constant;
    Number number;
    const PairRule *rule;
} Typed;

typedef enum Kind { OF_MASK, OF_SCORE, OF_TABLE, OF_TABLE_OF_HEADS, OF_ACTIVATION } Kind;

typedef struct Condition {
    Resolver *r;
    const Scope *scope;
    PairRange query, key;
    Attention *a; /* whose inputs are added to; NULL for a table */
    Kind kind;
    bool decides; /* whether the numbers decide: in a mask, and in the condition of a score */
    double heads, count; /* of the attention, and of the table */
    Typed (*typed)(const struct Condition *c, const Expr *expr); /* of the arguments of an expression */
} Condition;

/* The most of a whole number, which 32 bits hold with its sign. */
#define MOST_WHOLE 2147483647.0

static inline Typed constant(Number number) {
    return number.ok ? (Typed){.type = WHOLE, .constant = true, .number = number} : (Typed){.type = REFUSED};
}

static inline Typed real(const PairRule *rule) { return (Typed){.type = REAL, .rule = rule}; }

static inline Typed truth(const PairRule *rule) { return (Typed){.type = TRUTH, .rule = rule}; }

static inline Number whole_number(double value) { return (Number){true, false, (int64_t)value, value}; }

/* Whether a number is real: a constant that is not whole is. */
static inline bool is_real(const Typed *t) {
    return t->constant ? t->number.real != floor(t->number.real) || fabs(t->number.real) > MOST_WHOLE : t->type == REAL;
}

/* The context of an expression whose numbers decide. The numbers of a table are computed once, so that they decide as
 * they are. */
static inline Condition deciding(const Condition *c) {
    Condition made = *c;
    made.decides |= c->kind == OF_SCORE;
    return made;
}

/* --- model/score_numbers.c */
Typed refuse(const Condition *c, Location location, const char *why);
/* A rule whose value is a whole number. It is refused where the value may not fit 32 bits. */
Typed whole(const Condition *c, const Expr *expr, const PairRule *rule);
/* The rule of a number. A constant that is not whole is refused. */
const PairRule *rule_of(const Condition *c, const Expr *expr, const Typed *t);
/* The rule of a number of a condition in f32; NULL after a diagnostic. */
const PairRule *single_of(const Condition *c, const Expr *expr, const Typed *t);
/* The rule of a number in f32, which rounds a whole number where f32 does not hold it. */
const PairRule *real_of(const Condition *c, const Typed *t);
/* A number, or a condition: what an expression is refused not to be. */
Typed number_of(const Condition *c, const Expr *expr);
Typed condition_of(const Condition *c, const Expr *expr);
/* The same number as a whole number, where all of its parts are whole. */
Typed whole_if_known(const Condition *c, const Expr *expr, Typed t);
/* An index is whole: a real number is refused. */
Typed index_of(const Condition *c, const Expr *expr, Typed t);
Typed typed_negation(const Condition *c, const Expr *expr);
Typed typed_arithmetic(const Condition *c, const Expr *expr); /* of two numbers */
Typed typed_call(const Condition *c, const Expr *expr);

/* --- model/score_names.c */
Typed typed_name(const Condition *c, const Expr *expr);
Typed typed_entry(const Condition *c, const Expr *expr); /* NAME[...] */
Typed typed_bit(const Condition *c, const Expr *expr);   /* bit(NAME[q], EXPR) or bit(NAME[k], EXPR) */

/* --- model/formulas.c: of an activation, the name `x` or one of a number; and `if CONDITION then A else B`, where `x`
 * is compared with a number, at which both branches have the same value. */
Typed typed_argument(const Condition *c, const Expr *expr);
Typed typed_branches(const Condition *c, const Expr *expr);
/* What is wrong with an activation that divides by 0 or takes the square root of a number below 0, at or between the
 * numbers `x` that are tried, up to 8 million and down to -8 million; else NULL. */
const char *formula_hole(Arena *arena, const PairRule *rule);

#endif
