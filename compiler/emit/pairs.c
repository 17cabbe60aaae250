/* pairs.c: the rules of an attention's scores and of its mask, as the templates read them. */
#include "emit.h"

#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- masks */

enum { MOST_TABLES = 16 };

/* Sets the name of an input of the model in the C. Its prefix keeps it apart from the names of the C's own variables.
 */
static void set_input(Arena *arena, TemplateVars *record, const PairRule *leaf) {
    vars_text(record, "name", leaf ? arena_printf(arena, "in_%s", leaf->name) : "");
}

/* Sets the fields of the sum of queries * (the query's position), keys * (the key's position), numbers * (the input
 * `name`) and `at`. */
static void set_sum(Arena *arena, TemplateVars *record, const PairLinear *sum) {
    vars_int(record, "queries", (int64_t)sum->query);
    vars_int(record, "keys", (int64_t)sum->key);
    vars_int(record, "numbers", (int64_t)sum->number);
    set_input(arena, record, sum->of);
    vars_int(record, "at", (int64_t)sum->constant);
}

/* Sets `has_FIELD` and, if there is a bound, FIELD to its record. The `op` of the record is `sum`, or `min` or `max` of
 * the bounds `a` and `b`. */
static void bound_record(Arena *arena, TemplateVars *vars, const char *field, const PairRule *bound) {
    vars_int(vars, arena_printf(arena, "has_%s", field), bound != NULL);
    if (!bound) return;
    TemplateVars *record = vars_record(vars, field);
    PairLinear sum = {0};
    if (pair_linear(bound, 1, &sum)) {
        vars_text(record, "op", "sum");
        set_sum(arena, record, &sum);
        return;
    }
    vars_text(record, "op", pair_name(bound->op));
    bound_record(arena, record, "a", bound->a);
    bound_record(arena, record, "b", bound->b);
}

/* The part of a sum whose terms have the sign, so that neither side of a comparison is negative. */
static void set_side(Arena *arena, TemplateVars *record, const char *field, const PairLinear *sum, double sign) {
    const PairLinear side = {fmax(sign * sum->query, 0), fmax(sign * sum->key, 0), fmax(sign * sum->number, 0),
                             fmax(sign * sum->constant, 0), sum->of};
    set_sum(arena, vars_record(record, field), &side);
}

static void condition_record(Arena *arena, TemplateVars *vars, const char *field, const PairRule *rule);

/* Sets the name of the array of a table in the C, and its length. */
static void set_table(Arena *arena, TemplateVars *record, const PairTable *table) {
    vars_text(record, "name", arena_printf(arena, "table_%s", table->name));
    vars_int(record, "count", table->count);
}

/* Adds the tables whose numbers decide in a rule, each once, with their numbers as C. */
static void add_tables(Arena *arena, TemplateList *list, const PairRule *rule, const PairTable **added, int *n) {
    if (!rule) return;
    add_tables(arena, list, rule->a, added, n);
    add_tables(arena, list, rule->b, added, n);
    add_tables(arena, list, rule->c, added, n);
    if (rule->op != PAIR_entry) return;
    for (int i = 0; i < *n; i++)
        if (strcmp(added[i]->name, rule->table->name) == 0) return;
    if (*n == MOST_TABLES) fail_status(EXIT_CANNOT, "conditions with more than %d tables are not supported yet", *n);
    added[(*n)++] = rule->table;
    Text numbers = text_new(arena);
    for (int64_t i = 0; i < rule->table->count; i++)
        text_printf(&numbers, "%s%s", i ? ", " : "", rule->table->whole
                                                         ? arena_printf(arena, "%.0f", rule->table->numbers[i])
                                                         : hex_float(arena, rule->table->numbers[i]));
    TemplateVars *record = list_record(list);
    set_table(arena, record, rule->table);
    vars_text(record, "type", rule->table->whole ? "int" : "float");
    vars_text(record, "numbers", numbers.data);
}

/* Sets `least` and `most`, the bounds of a whole number; both are 0 where 32 bits do not hold the bounds. */
static void set_bounds(TemplateVars *record, PairRange range) {
    const bool fits = range.low >= INT32_MIN && range.high <= INT32_MAX;
    vars_int(record, "least", fits ? (int64_t)range.low : 0);
    vars_int(record, "most", fits ? (int64_t)range.high : 0);
}

/* Sets `field` to a record of a rule of whole numbers. A choice has the condition `when`. An entry of a table has the
 * `name` of its array and its `count`. `op` is the operation, or `unknown` for a comparison of numbers
 * of pairs, of which no bounds are known, and without `reals` for a comparison that reads real numbers. `has_a` and
 * `has_b` say whether there are the arguments `a` and `b`, and each record has an `id` of its own. A constant is `at`,
 * and an input has the `name` of the input. A `natural` number is never below 0, and an operation that `repeats` is a
 * function. A number of the sequence that the spec states is the spec's `own`. */
static void tree_record(Arena *arena, TemplateVars *vars, const char *field, const PairRule *rule, bool reals,
                        int *ids) {
    const PairRange positions = {0, INFINITY};
    TemplateVars *record = vars_record(vars, field);
    const bool literal = rule->op == PAIR_single && rule->a->op == PAIR_constant;
    const bool unknown = pair_is_unbounded(rule) || (!reals && pair_is_comparison(rule) && pair_has_singles(rule)),
               leaf = unknown || !rule->a || literal;
    vars_int(record, "id", (*ids)++);
    vars_text(record, "op", unknown ? "unknown" : literal ? "literal" : pair_name(rule->op));
    vars_int(record, "own", rule->op == PAIR_number && !rule_reads_prefix(rule));
    vars_int(record, "single", pair_is_single(rule));
    vars_int(record, "repeats", pair_repeats(rule));
    if (literal) vars_text(record, "number", hex_float(arena, rule->a->constant));
    vars_int(record, "natural", pair_range(rule, positions, positions).low >= 0);
    if (rule->op == PAIR_floor) set_bounds(record, pair_range(rule, positions, positions));
    if (rule->op == PAIR_constant) vars_int(record, "at", (int64_t)rule->constant);
    if (pair_reads_input(rule->op)) set_input(arena, record, rule);
    if (rule->op == PAIR_entry) set_table(arena, record, rule->table);
    if (rule->op == PAIR_choose) condition_record(arena, record, "when", pair_without_abs(arena, rule->a));
    vars_int(record, "has_a", !leaf);
    vars_int(record, "has_b", !leaf && rule->b);
    vars_int(record, "has_c", !leaf && rule->c);
    if (!leaf) tree_record(arena, record, "a", rule->a, reals, ids);
    if (!leaf && rule->b) tree_record(arena, record, "b", rule->b, reals, ids);
    if (!leaf && rule->c) tree_record(arena, record, "c", rule->c, reals, ids);
}

/* Whether a comparison is one of a sum whose terms are positions, numbers and a constant, each of them once. */
static bool is_sum(const PairRule *rule, PairLinear *sum) {
    return pair_comparison(rule, sum) && fabs(sum->query) <= 1 && fabs(sum->key) <= 1 && fabs(sum->number) <= 1;
}

/* The number that a comparison compares with a constant, or NULL. */
static const PairRule *compared_with_constant(const PairRule *rule) {
    if (!pair_is_comparison(rule)) return NULL;
    return rule->b->op == PAIR_constant ? rule->a : rule->a->op == PAIR_constant ? rule->b : NULL;
}

/* Whether both conditions compare one number with constants, so that one of them may decide the other one. C has the
 * constant of a sum of one number on the other side. */
static bool overlaps(const PairRule *one, const PairRule *other) {
    PairLinear x, y;
    if (is_sum(one, &x) && is_sum(other, &y) && fabs(x.query) + fabs(x.key) + fabs(x.number) == 1 &&
        fabs(x.query) == fabs(y.query) && fabs(x.key) == fabs(y.key) && fabs(x.number) == fabs(y.number) &&
        pair_same(x.of, y.of))
        return true;
    const PairRule *a = compared_with_constant(one), *b = compared_with_constant(other);
    return a && b && pair_same(a, b);
}

/* Sets `has_FIELD` and, if there is a condition, FIELD to its record, whose `op` says what must hold:
 *     never, always
 *     and, or           the conditions `a` and `b`; where one may decide the other one, it `overlaps`
 *     given             the byte of the input `name` differs from `at`
 *     compares          the number `a` is in the `relation` to the number `b`
 *     below, equals, differs    the sum is less than 0, is 0, or differs from 0; the same are left < right, left ==
 *                       right and left != right. The sum is `known` where it has no input. */
static void condition_record(Arena *arena, TemplateVars *vars, const char *field, const PairRule *rule) {
    vars_int(vars, arena_printf(arena, "has_%s", field), rule != NULL);
    if (!rule) return;
    TemplateVars *record = vars_record(vars, field);
    PairLinear sum;
    if (rule->op == PAIR_and || rule->op == PAIR_or) {
        vars_text(record, "op", pair_name(rule->op));
        vars_int(record, "overlaps", overlaps(rule->a, rule->b));
        condition_record(arena, record, "a", rule->a);
        condition_record(arena, record, "b", rule->b);
    } else if (is_sum(rule, &sum)) {
        vars_text(record, "op", pair_name(rule->op == PAIR_at_most ? PAIR_below : rule->op));
        vars_int(record, "known", sum.number == 0);
        set_sum(arena, record, &sum);
        set_side(arena, record, "left", &sum, 1);
        set_side(arena, record, "right", &sum, -1);
    } else if (rule->op == PAIR_constant) { /* in a mask it never holds, since what always holds is no condition */
        vars_text(record, "op", rule->constant == 0 ? "never" : "always");
    } else if (pair_compares_bytes(rule)) {
        vars_text(record, "op", "given");
        set_input(arena, record, rule->a);
        vars_int(record, "at", (int64_t)rule->b->constant);
    } else {
        int ids = 0;
        vars_text(record, "op", "compares");
        vars_text(record, "relation", pair_spelling(rule->op));
        tree_record(arena, record, "a", rule->a, true, &ids);
        tree_record(arena, record, "b", rule->b, true, &ids);
    }
}

/* Whether bounds of products and quotients are computed, of numbers in f32 or of whole numbers. */
static bool has_products(const PairRule *rule, bool singles) {
    if (!rule || pair_is_unbounded(rule)) return false;
    const bool own = rule->op == PAIR_mul || rule->op == PAIR_quotient || rule->op == PAIR_div;
    return (own && pair_is_single(rule) == singles) || has_products(rule->a, singles) ||
           has_products(rule->b, singles) || has_products(rule->c, singles);
}

/* Whether bounds of any numbers in f32 are computed. */
static bool has_singles(const PairRule *rule) {
    if (!rule || pair_is_unbounded(rule)) return false;
    return pair_is_single(rule) || has_singles(rule->a) || has_singles(rule->b) || has_singles(rule->c);
}

/* Sets what attention_ranges.c.tmpl computes the bounds of. */
static void set_ranges(Arena *arena, TemplateVars *vars, const PairRule *rule) {
    int ids = 0;
    tree_record(arena, vars, "ranges", rule, true, &ids);
    vars_int(vars, "has_products", has_products(rule, false));
    vars_int(vars, "has_single_products", has_products(rule, true));
    vars_int(vars, "has_singles", has_singles(rule));
}

/* The caches of a program, and the names of their offsets in the C. */
typedef struct NamedCaches {
    const Program *program;
    const char *const *names;
} NamedCaches;

/* Sets where a state, or with `kept_source` a source, keeps an input of rows, at `kept_at`, and its ranges,
 * `kept_ranges` integers after that, where it is `kept`. */
static void set_kept(TemplateVars *input, int cache, const NamedCaches *caches) {
    vars_int(input, "kept", cache != NO_CACHE);
    if (cache == NO_CACHE) return;
    vars_int(input, "kept_source", caches->program->caches[cache].slot.space == SPACE_SOURCE);
    vars_text(input, "kept_at", caches->names[cache]);
    vars_int(input, "kept_ranges", caches->program->caches[cache].ranges / (int64_t)sizeof(int32_t));
}

/* Whether a rule reads an input of rows for queries, or for keys. */
static bool reads_row(const PairRule *rule, PairOp leaf, int input) {
    return rule && ((rule->op == leaf && rule->input == input) || reads_row(rule->a, leaf, input) ||
                    reads_row(rule->b, leaf, input) || reads_row(rule->c, leaf, input));
}

/* Sets the array of an input of the model: its `name` in the C, the field `array` of a call, and the `type` of its
 * numbers. An `own_number` is one of the sequence that the spec states. */
static void set_array(Arena *arena, TemplateVars *input, const InputKind *kind) {
    vars_text(input, "name", arena_printf(arena, "in_%s", kind->name));
    vars_text(input, "array", kind->array);
    vars_text(input, "type", input_c_type(kind));
    vars_int(input, "own_number", input_is_own_number(kind));
}

/* What the templates ask of each input of a mask. One that is neither of pairs nor of rows is one number: of the
 * sequence, or of the head. */
typedef struct MaskInput {
    bool of_pairs, of_rows;
    bool scanned;             /* of pairs, whose least and largest number of rows and panels are used */
    bool of_queries, of_keys; /* the least and the largest number of the rows of the queries, or the keys, are used */
    bool from_keys;           /* its array begins at the first key, and no such bounds are used */
    bool is_signed, is_head;
} MaskInput;

/* Adds an input of the model, or with NULL the number of the head. */
static TemplateVars *add_input(Arena *arena, TemplateList *list, const InputKind *kind, MaskInput is) {
    TemplateVars *input = list_record(list);
    if (kind) {
        set_array(arena, input, kind);
    } else {
        vars_text(input, "name", "head");
        vars_text(input, "type", "size_t");
        vars_int(input, "own_number", 0);
    }
    vars_int(input, "of_pairs", is.of_pairs);
    vars_int(input, "scanned", is.scanned);
    vars_int(input, "of_rows", is.of_rows);
    vars_int(input, "of_queries", is.of_queries);
    vars_int(input, "of_keys", is.of_keys);
    vars_int(input, "from_keys", is.from_keys);
    vars_int(input, "signed", is.is_signed);
    vars_int(input, "is_head", is.is_head);
    return input;
}

/* Adds what the rule reads, each input once. */
static void add_inputs(Arena *arena, TemplateList *list, const AttentionStep *a, const PairRule *rule,
                       const NamedCaches *caches, bool *added) {
    if (rule->a) add_inputs(arena, list, a, rule->a, caches, added);
    if (rule->b) add_inputs(arena, list, a, rule->b, caches, added);
    if (rule->c) add_inputs(arena, list, a, rule->c, caches, added);
    if (!pair_reads_input(rule->op) || added[rule->input]) return;
    added[rule->input] = true;
    const InputKind *kind = a->visible_inputs[rule->input];
    TemplateVars *input = add_input(
        arena, list, kind,
        (MaskInput){
            .of_pairs = rule->op == PAIR_given || rule->op == PAIR_of_pair,
            .scanned = rule->op == PAIR_of_pair,
            .of_rows = rule->op == PAIR_of_query || rule->op == PAIR_of_key || pair_is_bit(rule),
            .of_queries = reads_row(a->visible, PAIR_of_query, rule->input),
            .of_keys = reads_row(a->visible, PAIR_of_key, rule->input),
            .from_keys = reads_row(a->visible, PAIR_bit_of_key, rule->input),
            .is_signed = rule->range.low < 0,
        });
    vars_int(input, "number", rule->input);
    vars_int(input, "range_at", rule->input * panel_range_numbers(a));
    vars_int(input, "scan_at", pair_scans(a->visible, rule->input));
    set_kept(input, a->visible_caches[rule->input], caches);
}

/* Adds the inputs of pairs that the scores alone read, which go the way of a mask's. */
static void add_score_pairs(Arena *arena, TemplateList *list, const AttentionStep *a) {
    for (int i = 0; i < a->n_score_rows; i++)
        if (a->score_rows[i]->rows == PER_PAIR && !mask_reads(a, a->score_rows[i]))
            add_input(arena, list, a->score_rows[i], (MaskInput){.of_pairs = true});
}

/* Adds the number of the head, where a mask or lanes of scores differ from head to head. */
static void add_head(Arena *arena, TemplateList *list, const AttentionStep *a) {
    bool found = pair_reads(a->visible, PAIR_head);
    for (int i = 0; i < a->n_rescores; i++) found |= pair_reads(a->rescores[i].rule, PAIR_head);
    if (found) add_input(arena, list, NULL, (MaskInput){.is_head = true});
}

static void set_mask(Arena *arena, TemplateVars *vars, const AttentionStep *a, const NamedCaches *caches) {
    bool added[MOST_PAIR_INPUTS] = {false};
    const KeyBounds *bounds = &a->bounds;
    TemplateList *inputs = vars_list(vars, "mask_inputs");
    if (a->visible) add_inputs(arena, inputs, a, a->visible, caches, added);
    add_score_pairs(arena, inputs, a);
    add_head(arena, inputs, a);
    const PairTable *tables[MOST_TABLES];
    TemplateList *entries = vars_list(vars, "mask_tables");
    int n_tables = 0;
    add_tables(arena, entries, a->visible, tables, &n_tables);
    for (int i = 0; i < a->n_rescores; i++) add_tables(arena, entries, a->rescores[i].rule, tables, &n_tables);
    condition_record(arena, vars, "mask", a->visible ? pair_without_abs(arena, a->visible) : NULL);
    condition_record(arena, vars, "window", bounds->window);
    condition_record(arena, vars, "rest", bounds->rest);
    const bool ranged = mask_has_ranges(a);
    vars_int(vars, "has_ranges", ranged);
    if (ranged) set_ranges(arena, vars, a->visible);
    bound_record(arena, vars, "limit", bounds->limit);
    bound_record(arena, vars, "low", bounds->low);
    bound_record(arena, vars, "high", bounds->high);
    bound_record(arena, vars, "leading", bounds->leading);
}

/* ---------------------------------------------------------------- scores */

/* What the records of the scores of a step share. */
typedef struct Scores {
    Arena *arena;
    const AttentionStep *a;
    const ScoreRule *rescore;
    TemplateList *lanes;
    int n_lanes, n_trees;
} Scores;

/* Whether a rule differs from key to key. */
static bool reads_keys(const PairRule *rule) {
    return pair_reads(rule, PAIR_key) || pair_reads_rows(rule, false) || pair_reads(rule, PAIR_of_pair) ||
           pair_reads(rule, PAIR_given);
}

/* Adds numbers that are computed lane by lane before the vectors of a score: the `op` is `number`, `entry` of a table
 * with a `name`, or `truth` of a condition; `of_keys` says whether it differs from key to key. Returns their number. */
static int add_lanes(Scores *s, const char *op, const char *name, const PairRule *rule) {
    TemplateVars *record = list_record(s->lanes);
    vars_int(record, "id", s->n_lanes);
    vars_text(record, "op", op);
    vars_text(record, "name", name);
    vars_int(record, "of_keys", reads_keys(rule));
    if (strcmp(op, "truth") == 0) condition_record(s->arena, record, "rule", pair_without_abs(s->arena, rule));
    else tree_record(s->arena, record, "rule", rule, true, &s->n_trees);
    return s->n_lanes++;
}

/* Sets `field` to a record of the rule. `op` is the operation, and `a`, `b` and `c` are the records of its arguments. A
 * constant has its `number` in C, a leaf that reads an input has the `name` of the input, and a function of math.c.tmpl
 * is named by `function`. A table has the fields `keys`, `queries` and `at`, whose index is keys * (the key's position)
 * + queries * (the query's position) + at. The op `lanes` stands for the numbers `id` of add_lanes, by which `choose`
 * chooses between `b` and `c`. */
static void rule_record(Scores *s, TemplateVars *vars, const char *field, const PairRule *rule) {
    TemplateVars *record = vars_record(vars, field);
    PairLinear sum;
    const bool table = rule->op == PAIR_table || rule->op == PAIR_list;
    const bool gathered = table && !pair_follows(rule->a, &sum);
    const bool of_table = pair_reads_input(rule->op) && rule->op != PAIR_number;
    const char *name = of_table ? s->a->inputs[s->rescore->inputs[rule->input]].name : "";
    const bool lanes = gathered || rule->op == PAIR_real;
    if (lanes && !gathered && rule->a->op == PAIR_number) { /* which no lane needs of its own */
        vars_text(record, "op", pair_name(PAIR_number));
        set_input(s->arena, record, rule->a);
        return;
    }
    vars_text(record, "op", lanes ? "lanes" : table ? "table" : pair_name(rule->op));
    if (rule->op == PAIR_constant) vars_text(record, "number", hex_float(s->arena, rule->constant));
    if (of_table) vars_text(record, "name", name);
    if (rule->op == PAIR_number) set_input(s->arena, record, rule);
    vars_text(record, "function", pair_function(rule->op) ? pair_function(rule->op) : "");
    if (gathered) vars_int(record, "id", add_lanes(s, "entry", name, rule->a));
    if (table && !gathered) {
        vars_int(record, "keys", (int64_t)sum.key);
        vars_int(record, "queries", (int64_t)sum.query);
        vars_int(record, "at", (int64_t)sum.constant);
    }
    if (rule->op == PAIR_real) vars_int(record, "id", add_lanes(s, "number", "", rule->a));
    if (rule->op == PAIR_choose) vars_int(record, "id", add_lanes(s, "truth", "", rule->a));
    if (rule->a && !table && rule->op != PAIR_real && rule->op != PAIR_choose) rule_record(s, record, "a", rule->a);
    if (rule->b) rule_record(s, record, "b", rule->b);
    if (rule->c) rule_record(s, record, "c", rule->c);
}

/* Adds the inputs of rows that the scores read and that the mask does not pass. */
static void add_score_rows(Arena *arena, TemplateVars *vars, const AttentionStep *a, const NamedCaches *caches) {
    TemplateList *rows = vars_list(vars, "score_rows");
    for (int i = 0; i < a->n_score_rows; i++) {
        if (a->score_rows[i]->rows == PER_PAIR || mask_reads(a, a->score_rows[i])) continue;
        TemplateVars *input = list_record(rows);
        set_array(arena, input, a->score_rows[i]);
        vars_int(input, "of_keys", a->score_of_keys[i]);
        vars_int(input, "from_keys", 0);
        set_kept(input, a->score_caches[i], caches);
    }
}

static void set_scores(Arena *arena, TemplateVars *vars, const AttentionStep *a, const NamedCaches *caches) {
    TemplateList *scores = vars_list(vars, "scores"), *inputs = vars_list(vars, "score_inputs");
    Scores s = {.arena = arena, .a = a, .lanes = vars_list(vars, "score_lanes")};
    for (int i = 0; i < a->n_rescores; i++) {
        s.rescore = &a->rescores[i];
        rule_record(&s, list_record(scores), "rule", s.rescore->rule);
    }
    for (int i = 0; i < a->n_inputs; i++) {
        TemplateVars *input = list_record(inputs);
        vars_text(input, "name", a->inputs[i].name);
        vars_int(input, "of_head", a->inputs[i].of_head);
        vars_int(input, "shared", a->inputs[i].shared);
        vars_int(input, "width", a->inputs[i].width);
    }
    add_score_rows(arena, vars, a, caches);
}

void pair_variables(Arena *arena, TemplateVars *vars, const AttentionStep *a, const Program *program,
                    const char *const *caches) {
    const NamedCaches named = {program, caches};
    set_scores(arena, vars, a, &named);
    set_mask(arena, vars, a, &named);
}

/* ---------------------------------------------------------------- rows that look ahead */

/* Adds the inputs of rows, and the numbers of the sequence, that the mask of a step reads, each of them once for all
 * steps. */
static void add_look_inputs(Arena *arena, TemplateList *list, TemplateList *numbers, const Program *program,
                            const AttentionStep *a, bool *added) {
    for (int i = 0; i < pair_inputs(a->visible); i++) {
        const InputKind *kind = a->visible_inputs[i];
        const PairRule *reader = pair_reader(a->visible, i); /* none where bounds decide what the input decided */
        if (!reader || !role_is_of_rows(kind->role) || added[kind->role]) continue;
        added[kind->role] = true;
        if (input_is_own_number(kind)) {
            TemplateVars *number = list_record(numbers);
            set_array(arena, number, kind);
            vars_int(number, "real", kind->dtype == DTYPE_F32);
            vars_int(number, "signed", reader->range.low < 0);
            continue;
        }
        const Cache *cache = &program->caches[a->visible_caches[i]];
        TemplateVars *input = list_record(list);
        set_array(arena, input, kind);
        vars_int(input, "wide", kind->wide);
        vars_int(input, "real", kind->dtype == DTYPE_F32);
        vars_int(input, "kept_at", cache->slot.offset / (int64_t)dtype_bytes(cache->slot.layout.dtype));
        vars_int(input, "kept_ranges", cache->ranges / (int64_t)sizeof(int32_t));
    }
}

void set_look_ahead(Arena *arena, TemplateVars *vars, const Program *program) {
    const Plan *decode = program->entries[ENTRY_DECODE];
    TemplateList *rules = vars_list(vars, "look_rules"), *inputs = vars_list(vars, "look_inputs"),
                 *numbers = vars_list(vars, "look_numbers"), *entries = vars_list(vars, "look_tables");
    const PairTable *tables[MOST_TABLES];
    int n_tables = 0;
    bool added[MOST_INPUTS] = {false}, products = false, reals = false;
    const AttentionStep **steps = arena_array(arena, decode ? (size_t)decode->n_steps + 1 : 1, sizeof *steps);
    int n = 0;
    for (int i = 0; decode && i < decode->n_steps; i++) {
        const AttentionStep *a = &decode->steps[i].attention;
        if (decode->steps[i].kind != STEP_ATTENTION || !a->looks_ahead) continue;
        const PairRule *visible = a->visible ? a->visible : pair_constant(arena, 1); /* each row sees all rows */
        int same = 0;
        while (same < n && !pair_same(steps[same]->visible, a->visible)) same++;
        if (same < n) continue;
        steps[n] = a;
        TemplateVars *rule = list_record(rules);
        int ids = 0;
        vars_int(rule, "id", n++);
        tree_record(arena, rule, "ranges", visible, false, &ids);
        condition_record(arena, rule, "mask", pair_without_abs(arena, visible));
        vars_int(rule, "heads", pair_reads(a->visible, PAIR_head) ? a->heads : 0);
        add_tables(arena, entries, a->visible, tables, &n_tables);
        products |= has_products(a->visible, false);
        reals |= pair_has_singles(a->visible);
        add_look_inputs(arena, inputs, numbers, program, a, added);
    }
    vars_int(vars, "look_products", products);
    vars_int(vars, "has_look_ahead", n > 0);
    vars_int(vars, "look_pairs", reals);
}
