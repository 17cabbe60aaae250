/* pairs.h: rules of pairs. Included by attnc.h alone.
 *
 * A rule is an expression for a query, a key and a head: over the positions of the query and the key, both counted
 * from the first row of the sequence, over the score, and over inputs. An operation holds the rule and reads the
 * inputs. The rule is the condition on which the query sees the key, or a new score. */
#ifndef PAIRS_H
#define PAIRS_H

typedef enum PairOp {
    PAIR_constant, PAIR_query, PAIR_key, PAIR_score,
    PAIR_number,  /* an input [1], one for the sequence: a whole number from 0 on */
    PAIR_given,   /* an input [n][m] of bytes, of this call's queries and keys */
    PAIR_of_head, /* an input [heads]: the head's number */
    PAIR_table,   /* an input [heads][r]: the head's number at the index `a` */
#define PAIR(name, arity, level, spelling, function, value, single, low, high) PAIR_##name,
#include "pairs.def"
    PAIR_COUNT
} PairOp;

typedef struct PairRule {
    PairOp op;
    double constant;  /* of PAIR_constant */
    int input;        /* of a leaf that reads an input: which of those that the operation has for the rule */
    const char *name; /* of that input */
    const struct PairRule *a, *b;
} PairRule;

typedef struct PairRange {
    double low, high;
} PairRange;

enum { MOST_PAIR_INPUTS = 2 };

/* An input for one query, key and head: its number, or the head's numbers of a table, of which one is not NULL. */
typedef struct PairInput {
    double number;
    const float *single;
    const double *real;
} PairInput;

typedef struct PairAt {
    double query, key, score;
    PairInput inputs[MOST_PAIR_INPUTS];
} PairAt;

/* --- ir/pairs.c */
const PairRule *pair_leaf(Arena *arena, PairOp op);
const PairRule *pair_constant(Arena *arena, double constant);
const PairRule *pair_input(Arena *arena, PairOp op, int input, const char *name);
const PairRule *pair_table(Arena *arena, int input, const char *name, const PairRule *index);
const PairRule *pair_apply(Arena *arena, PairOp op, const PairRule *a, const PairRule *b);
/* Both rules; NULL is the rule that always holds. */
const PairRule *pair_both(Arena *arena, const PairRule *a, const PairRule *b);
double pair_value(const PairRule *pair, const PairAt *at);
double pair_entry(const PairInput *table, int64_t index);
/* Bounds of the value for all positions in these ranges and all inputs. */
PairRange pair_range(const PairRule *pair, PairRange query, PairRange key);
/* The rule without the conditions that the ranges decide; NULL where it always holds. */
const PairRule *pair_simplified(Arena *arena, const PairRule *pair, PairRange query, PairRange key);
bool pair_reads(const PairRule *pair, PairOp leaf); /* false for NULL */
int pair_inputs(const PairRule *pair);              /* the number of the rule's inputs; 0 for NULL */
bool pair_reads_input(PairOp op);                   /* whether a leaf of this kind reads an input */
bool pair_same(const PairRule *a, const PairRule *b);
/* query * q + key * k + number * p + constant */
typedef struct PairLinear {
    double query, key, number, constant;
} PairLinear;
/* Adds `factor` times the rule to the sum, and returns false if the rule is not of this form. */
bool pair_linear(const PairRule *pair, double factor, PairLinear *sum);
const char *pair_name(PairOp op);     /* "score", "add" */
const char *pair_function(PairOp op); /* the function of math.c.tmpl that computes the operation, or NULL */
void pair_print(Text *out, const PairRule *pair);

/* --- ir/attention_rules.c: what the words of the language stand for. Inputs are numbered as the operation has them. */
const PairRule *rule_causal(Arena *arena);
const PairRule *rule_prefix(Arena *arena, int input);             /* causal, but for the first `prefix_length` keys */
const PairRule *rule_window(Arena *arena, int64_t n, int64_t sinks);
const PairRule *rule_given(Arena *arena, int input);              /* the byte is not 0 */
const PairRule *rule_slopes(Arena *arena);                        /* score - slope * distance, slopes [heads] */
const PairRule *rule_by_distance(Arena *arena, int64_t origin);   /* score + table[key - query + origin] */
const PairRule *rule_by_position(Arena *arena, double scale);     /* score - scale * (table[query] - table[key]) */
const PairRule *rule_softcap(Arena *arena, double cap);           /* cap * tanh(score / cap) */

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

/* Finds the ranges of a rule; returns false if it is no such union. NULL has one range without bounds. */
bool key_ranges(const PairRule *rule, KeyRanges *out);
/* Sets `out`, which is neither a nor b, to the keys that both show. Returns false if that takes more ranges than
 * MOST_KEY_RANGES. */
bool key_ranges_both(const KeyRanges *a, const KeyRanges *b, KeyRanges *out);
bool key_ranges_show_all(const KeyRanges *ranges);
/* How many keys before the query, the query's own included, hold all that it sees; 0: there is no such bound. */
int64_t key_ranges_window(const KeyRanges *ranges);

#endif
