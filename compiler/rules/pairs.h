/* pairs.h: rules of pairs. Included by attnc.h alone.
 *
 * A rule is an expression for a query, a key and a head: over the positions of the query and the key, both counted
 * from the first row of the sequence, over the score, and over inputs. An operation holds the rule and reads the
 * inputs. The rule is the condition on which the query sees the key, or a new score. */
#ifndef PAIRS_H
#define PAIRS_H

#include <math.h>

typedef enum PairOp {
    PAIR_constant, PAIR_query, PAIR_key, PAIR_score,
    PAIR_head, PAIR_index, /* the number of the head, and the index of a table, whose rule alone reads it */
    PAIR_number,  /* an input [1], one for the sequence: an integer in a range, or a real */
    PAIR_of_query, PAIR_of_key, /* an input [rows] of integers in a range, or of reals: the query's row, or the key's */
    PAIR_given,   /* an input [n][m] of bytes, of this call's queries and keys */
    PAIR_of_pair, /* an input [n][m] of integers in a range, or of reals, of the same pairs */
    PAIR_bit_of_query, PAIR_bit_of_key, /* bit `a` of an input [rows] of 64 bits, 0 unless `a` is from 0 to 63 */
    PAIR_of_head, /* an input [heads]: the head's number */
    PAIR_list,    /* an input [r]: the number at the index `a` */
    PAIR_table,   /* an input [heads][r]: the head's number at the index `a` */
    PAIR_let,     /* the number of a table of the spec at the index `a`, of the head where heads have their own */
    PAIR_entry,   /* the same, where it decides: a whole number, or a real one in f32 */
#define PAIR(name, arity, level, spelling, function, value, single, low, high) PAIR_##name,
#include "pairs.def"
    PAIR_COUNT
} PairOp;

typedef struct PairRange {
    double low, high;
} PairRange;

/* What the tensor of a learned table belongs to. */
typedef enum LearnedBlock { LEARNED_ATTENTION, LEARNED_STACK, LEARNED_MODEL } LearnedBlock;

/* A table of a spec: `count` numbers, each of which is the value of the rule for its index; or, without a rule, learned
 * ones, of which each of so many heads has its own, unless `heads` is 0. */
typedef struct PairTable {
    const char *name;
    int64_t count;
    bool of_heads; /* the index is a head */
    const struct PairRule *rule;
    int64_t heads;
    LearnedBlock block;
    Location location; /* of a learned one */
    const double *numbers; /* [count] of the rule */
    bool whole;            /* all of them are whole numbers of 32 bits */
} PairTable;

typedef struct PairRule {
    PairOp op;
    double constant;  /* of PAIR_constant */
    int input;        /* of a leaf that reads an input: which of those that the operation has for the rule */
    const char *name; /* of that input */
    PairRange range;  /* of the numbers of an input, of a head and of an index */
    bool is_real;     /* whether the numbers of that input are real */
    const PairTable *table; /* of PAIR_let and PAIR_entry */
    int64_t size;           /* how often its operations are evaluated, where parts stand in it twice */
    const struct PairRule *a, *b, *c;
} PairRule;

enum { MOST_PAIR_INPUTS = 6 };

/* The whole quotient and the rest of a / b, which round down: of whole numbers below 2^31, b > 0. */
static inline double whole_quotient(double a, double b) { return floor(a / b); }
static inline double whole_rest(double a, double b) { return a - b * floor(a / b); }

/* The functions of a table's numbers, which are the same on every machine. */
static inline double table_log(double a) { return a > 0 ? portable_log(a) : a == 0 ? -INFINITY : NAN; }
static inline double table_power(double a, double b) { return a > 0 ? portable_pow(a, b) : pow(a, b); }
static inline double table_sin(double a) { return isfinite(a) ? portable_sin(a) : NAN; }
static inline double table_cos(double a) { return isfinite(a) ? portable_cos(a) : NAN; }

/* An input for one query, key and head: its number, its integers by row, or its numbers by row or the head's numbers of
 * a table, of which one is not NULL. */
typedef struct PairInput {
    double number;
    const int64_t *rows; /* of PAIR_of_query and PAIR_of_key */
    const float *single;
    const double *real;
} PairInput;

typedef struct PairAt {
    double query, key, score, head, index;
    PairInput inputs[MOST_PAIR_INPUTS];
} PairAt;

/* --- rules/pairs.c */
const PairRule *pair_leaf(Arena *arena, PairOp op);
const PairRule *pair_constant(Arena *arena, double constant);
const PairRule *pair_input(Arena *arena, PairOp op, int input, const char *name); /* a number is from 0 on */
/* A leaf that reads numbers of rows or of pairs, or one of the sequence, in this range. */
const PairRule *pair_of_row(Arena *arena, PairOp op, int input, const char *name, PairRange range);
const PairRule *pair_of_real(Arena *arena, PairOp op, int input, const char *name, PairRange range); /* of reals */
/* A leaf that reads another input. */
const PairRule *pair_with_input(Arena *arena, const PairRule *leaf, int input);
/* A bit of the integers of rows, PAIR_bit_of_query or PAIR_bit_of_key. */
const PairRule *pair_bit(Arena *arena, PairOp op, int input, const char *name, const PairRule *index);
const PairRule *pair_table(Arena *arena, int input, const char *name, const PairRule *index);
/* A number of a list at an index, or of a table of the spec. */
const PairRule *pair_list(Arena *arena, int input, const char *name, const PairRule *index);
const PairRule *pair_table_entry(Arena *arena, const PairTable *table, const PairRule *index); /* which decides */
const PairRule *pair_let(Arena *arena, const PairTable *table, const PairRule *index);
const PairRule *pair_ranged(Arena *arena, PairOp leaf, PairRange range); /* a head or an index */
const PairRule *pair_apply(Arena *arena, PairOp op, const PairRule *a, const PairRule *b);
const PairRule *pair_choose(Arena *arena, const PairRule *condition, const PairRule *a, const PairRule *b);
/* The rule with other arguments. */
const PairRule *pair_with(Arena *arena, const PairRule *pair, const PairRule *a, const PairRule *b, const PairRule *c);
/* Both rules; NULL is the rule that always holds. */
const PairRule *pair_both(Arena *arena, const PairRule *a, const PairRule *b);
double pair_value(const PairRule *pair, const PairAt *at);
double pair_entry(const PairInput *table, int64_t index);
/* Bounds of the value for all positions in these ranges and all inputs. */
PairRange pair_range(const PairRule *pair, PairRange query, PairRange key);
/* The same, where the ranges of inputs are of the numbers at hand, which also decide comparisons of real inputs. */
PairRange pair_data_range(const PairRule *pair, PairRange query, PairRange key);
/* Whether the value is a number for all of these, and never NaN. */
bool pair_is_ordered(const PairRule *pair, PairRange query, PairRange key);
/* The rule without the conditions that the ranges decide; NULL where it always holds. */
const PairRule *pair_simplified(Arena *arena, const PairRule *pair, PairRange query, PairRange key);
/* The rule without the choices that the ranges decide, and without the parts of their conditions that they decide. */
const PairRule *pair_decided(Arena *arena, const PairRule *pair, PairRange query, PairRange key);
bool pair_reads(const PairRule *pair, PairOp leaf); /* false for NULL */
bool pair_reads_own(const PairRule *pair);          /* whether it reads an input that the spec states */
bool pair_reads_rows(const PairRule *pair, bool of_query); /* whether it reads an input of rows for queries, or keys */
bool pair_is_comparison(const PairRule *pair);      /* whether it compares two numbers */
bool pair_is_bit(const PairRule *pair);             /* whether it is a bit of an input of rows */
bool pair_is_single(const PairRule *pair);          /* whether it is a number of a condition in f32 */
bool pair_has_singles(const PairRule *pair);        /* whether a part is such a number; false for NULL */
/* Whether a part applies the operation to such numbers; false for NULL. */
bool pair_applies_to_singles(const PairRule *pair, PairOp op);
bool pair_reads_bits(const PairRule *pair);         /* whether a part is a bit of an input of rows; false for NULL */
/* Whether the C of the operation names an operand twice that is itself an operation, so that the text of a deep rule
 * would double at each level; a function computes it then. */
bool pair_repeats(const PairRule *pair);
bool pair_has_repeats(const PairRule *pair);        /* whether a part is such an operation; false for NULL */
bool pair_is_learned(const PairRule *pair);         /* whether it is a number of a learned table */
int pair_inputs(const PairRule *pair);              /* the number of the rule's inputs; 0 for NULL */
int pair_scans(const PairRule *pair, int end);      /* how many of the inputs below `end` are numbers of pairs */
bool pair_compares_bytes(const PairRule *pair); /* whether it is a byte of a pair, compared with a constant */
bool pair_is_unbounded(const PairRule *pair);   /* whether it is a comparison whose bounds only its inputs decide */
bool pair_reads_input(PairOp op);                   /* whether a leaf of this kind reads an input */
const PairRule *pair_reader(const PairRule *pair, int input); /* the first leaf that reads the input, or NULL */
bool pair_same(const PairRule *a, const PairRule *b);
/* query * q + key * k + number * p + constant */
typedef struct PairLinear {
    double query, key, number, constant;
    const PairRule *of; /* p; NULL: there is none */
} PairLinear;
/* Adds `factor` times the rule to the sum, and returns false if the rule is not of this form. */
bool pair_linear(const PairRule *pair, double factor, PairLinear *sum);
/* Whether a vector of keys reads numbers of a table that follow each other, or one number, where the rule is the index;
 * `sum` becomes the index. */
bool pair_follows(const PairRule *index, PairLinear *sum);
/* Finds a sum of whole numbers that is less than 0 where the comparison holds, or not 0 for PAIR_differs, or 0 for
 * PAIR_equals; returns false if the rule is no such comparison. */
bool pair_comparison(const PairRule *pair, PairLinear *sum);
/* Whether comparisons, none of an absolute value, show that each query sees the key of its own position. */
bool pair_shows_own(const PairRule *pair);
/* Whether comparisons show that no query sees a key after its own position. */
bool pair_looks_back(const PairRule *pair);
/* The condition with two comparisons in place of each comparison of an absolute value. */
const PairRule *pair_without_abs(Arena *arena, const PairRule *pair);
/* Of what a rule without a score, without inputs and without conditions is a table: its value depends on the number of
 * the head alone, on the position of the query or the key, or on the distance from the query to the key. */
typedef enum PairTabled {
    TABLED_NOT, TABLED_CONSTANT, TABLED_HEAD, TABLED_QUERY, TABLED_KEY, TABLED_DISTANCE
} PairTabled;
PairTabled pair_tabled(const PairRule *pair);
/* The value at an index of that table, which is a head, a position, or a distance plus `origin`. */
double pair_tabled_value(const PairRule *pair, PairTabled of, int64_t index, int64_t origin);
bool pair_is_of_tables(PairOp op); /* whether an operation is computed in tables alone */
bool pair_needs_table(const PairRule *pair); /* whether a rule has such an operation */
/* Whether f32 holds the values of a rule of whole numbers and of all its parts, and a kernel computes them in f32. */
bool pair_is_exact(const PairRule *pair, PairRange query, PairRange key);
const char *pair_name(PairOp op);     /* "score", "add" */
const char *pair_spelling(PairOp op); /* "<=", of an operation of pairs.def */
const char *pair_function(PairOp op); /* the function of math.c.tmpl that computes the operation, or NULL */
int pair_arity(PairOp op);            /* of an operation of pairs.def; 0 for a leaf */
PairOp pair_named(const char *spelling, int arity); /* the function of pairs.def, or PAIR_COUNT */
void pair_print(Text *out, const PairRule *pair);
void pair_print_tables(Text *out, const PairRule *pair); /* the tables of the spec that it reads; nothing for NULL */

/* --- rules/key_bounds.c: the keys that a rule shows to a query. */
/* A query sees the keys k for which these three conditions hold:
 *     k < limit
 *     low <= k < high, or k < leading
 *     rest
 * A bound is a rule of the query and of a number, and its value may be negative. A bound that is NULL hides no key.
 * Without `low` there is no `window`, no `high` and no `leading`. */
typedef struct KeyBounds {
    const PairRule *limit;
    const PairRule *window; /* the condition that `low`, `high` and `leading` stand for */
    const PairRule *low, *high, *leading;
    const PairRule *rest; /* a condition that no bounds stand for; NULL: none */
} KeyBounds;

KeyBounds key_bounds(Arena *arena, const PairRule *rule); /* NULL has no bounds */
/* How many keys up to the query hold all that the window shows; 0: it has no such number, or there is none. */
int64_t key_bounds_window(const KeyBounds *bounds);

#endif
