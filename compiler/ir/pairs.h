/* pairs.h: rules of pairs. Included by attnc.h alone.
 *
 * A rule is an expression over the position of a query and the position of a key, both counted from the first row of
 * the sequence, and over inputs of the model. An operation holds it and reads its inputs. */
#ifndef PAIRS_H
#define PAIRS_H

typedef enum PairOp {
    PAIR_constant, PAIR_query, PAIR_key,
    PAIR_number, /* an input [1], one for the sequence: a whole number from 0 on */
    PAIR_given,  /* an input [n][m] of bytes, of this call's queries and keys */
#define PAIR(name, arity, level, spelling, value, low, high) PAIR_##name,
#include "pairs.def"
    PAIR_COUNT
} PairOp;

typedef struct PairRule {
    PairOp op;
    double constant;  /* of PAIR_constant */
    int input;        /* of PAIR_number and PAIR_given: which of the inputs that the operation has for the rule */
    const char *name; /* of that input */
    const struct PairRule *a, *b;
} PairRule;

typedef struct PairRange {
    double low, high;
} PairRange;

enum { MOST_PAIR_INPUTS = 2 };

/* --- ir/pairs.c */
const PairRule *pair_leaf(Arena *arena, PairOp op);
const PairRule *pair_constant(Arena *arena, double constant);
const PairRule *pair_input(Arena *arena, PairOp op, int input, const char *name);
const PairRule *pair_apply(Arena *arena, PairOp op, const PairRule *a, const PairRule *b);
/* Both rules; NULL is the rule that always holds. */
const PairRule *pair_both(Arena *arena, const PairRule *a, const PairRule *b);
/* The value for these positions, and for these values of the rule's inputs. */
double pair_value(const PairRule *pair, double query, double key, const double inputs[MOST_PAIR_INPUTS]);
/* Bounds of the value for all positions in these ranges and all inputs. */
PairRange pair_range(const PairRule *pair, PairRange query, PairRange key);
/* The rule without the conditions that the ranges decide; NULL where it always holds. */
const PairRule *pair_simplified(Arena *arena, const PairRule *pair, PairRange query, PairRange key);
bool pair_reads(const PairRule *pair, PairOp leaf); /* false for NULL */
int pair_inputs(const PairRule *pair);              /* the number of the rule's inputs; 0 for NULL */
void pair_print(Text *out, const PairRule *pair);

/* --- ir/key_ranges.c: the keys that a rule shows to a query, as a union of ranges. */
/* Keys from query + behind to query + ahead that are below `end` and, with `below_number`, below the number that the
 * call gives, of which those count whose byte is not 0 where bytes are `given`. */
typedef struct KeyRange {
    int64_t behind, ahead, end; /* INT64_MIN, INT64_MAX: no bound */
    bool below_number, given;
} KeyRange;

enum { MOST_KEY_RANGES = 8 };

typedef struct KeyRanges {
    KeyRange all[MOST_KEY_RANGES];
    int count;
} KeyRanges;

/* False where the rule is no such union. NULL gives one range without bounds. */
bool key_ranges(const PairRule *rule, KeyRanges *out);
bool key_ranges_show_all(const KeyRanges *ranges);
/* How many keys before the query, the query's own included, hold all that it sees; 0: there is no such bound. */
int64_t key_ranges_window(const KeyRanges *ranges);

#endif
