/* score_names.c: the names that the expressions of `mask where`, of `score` and of tables read. */
#include "conditions.h"

static Typed refuse_score(const Condition *c, const Expr *expr) {
    return refuse(c, expr->location,
                  arena_printf(c->r->arena, "`%s` is a score, and a score may not decide%s", expr->text,
                               c->kind == OF_SCORE ? ": engines round it differently"
                                                   : " which keys are visible: hidden keys are skipped before there "
                                                     "are scores"));
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
        if (of_pairs)
            return refuse(c, expr->location,
                          "`i` is the index of a table alone; a query's position is `q`, a key's `k`");
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
        if (!c->decides) return real(pair_leaf(arena, PAIR_score));
        return refuse_score(c, expr);
    default:
        return (Typed){.type = WHOLE, .rule = pair_ranged(arena, PAIR_head, (PairRange){0, c->heads - 1})};
    }
}

static Typed given_number(const Condition *c, const Expr *expr, PairOp op, const RowInput *input);

/* Where a name was found, as synonyms.def calls it. */
static const char *found_in(const Condition *c, const char *name) {
    if (c->kind == OF_TABLE || c->kind == OF_TABLE_OF_HEADS) return "table";
    const bool scored = c->kind == OF_SCORE && !c->decides && synonym_of("score expression", name);
    return scored ? "score expression" : "expression";
}

Typed typed_name(const Condition *c, const Expr *expr) {
    Arena *arena = c->r->arena;
    const RowInput *input = row_input_named(c->r, c->scope, expr->text, expr->location);
    if (input && input->kind.rows == PER_SEQUENCE) return given_number(c, expr, PAIR_number, input);
    const Binding *table = binding_named(c->scope, expr->text);
    if (table && table->table && location_before(table->location, expr->location))
        return refuse(c, expr->location,
                      arena_printf(arena, "`%s` is a table: a number of it is `%s[EXPR]`", expr->text, expr->text));
    if (is_letter(expr->text)) return letter(c, expr);
    if (table && table->leaf) return (Typed){.type = WHOLE, .rule = table->leaf};
    if (!table && c->a && c->decides && is_word(expr, "score")) return refuse_score(c, expr);
    return constant(evaluate_name(c->r, c->scope, expr, found_in(c, expr->text)));
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

static Typed beyond(const Condition *c, const Expr *at, PairRange range, const PairTable *table) {
    return refuse(c, at->location,
                  arena_printf(c->r->arena, "the index may be from %s to %s here, and `%s` has the numbers 0 to %lld",
                               number_text(c->r->arena, range.low), number_text(c->r->arena, range.high), table->name,
                               (long long)table->count - 1));
}

/* Whether the index is the same for equal distances, or for the same head or position, and thus known when the table is
 * packed. */
static bool is_tabled(const PairRule *index) {
    return pair_tabled(index) != TABLED_NOT && pair_tabled(index) != TABLED_CONSTANT;
}

/* A number of a learned table at an index that is_tabled, each of which must be a whole number within the table. */
static Typed at_each(const Condition *c, const Expr *at, const PairTable *table, const PairRule *index) {
    Arena *arena = c->r->arena;
    const PairTabled of = pair_tabled(index);
    const int64_t origin = of == TABLED_DISTANCE ? (int64_t)c->query.high : 0;
    const double most = of == TABLED_HEAD ? c->heads - 1 : of == TABLED_QUERY ? c->query.high : c->key.high;
    for (int64_t i = 0; i <= (int64_t)most + origin; i++) {
        const double value = pair_tabled_value(index, of, i, origin);
        if (value >= 0 && value <= (double)table->count - 1 && value == floor(value)) continue;
        const char *what = of == TABLED_HEAD ? "head" : of == TABLED_DISTANCE ? "distance `k - q`" : "position";
        return refuse(c, at->location,
                      arena_printf(arena, "the index is %s where the %s is %lld, and `%s` has the numbers 0 to %lld",
                                   number_text(arena, value), what, (long long)(i - origin), table->name,
                                   (long long)table->count - 1));
    }
    return real(pair_let(arena, table, index));
}

/* The index of a table that `heads` have a row of each: EXPR of `[h, EXPR]`; NULL after a diagnostic. */
static const Expr *behind_head(const Condition *c, const Expr *expr, const PairTable *table) {
    if (is_word(expr->left, "h") && expr->right && !expr->third) {
        if (c->heads <= (double)table->heads) return expr->right;
        beyond(c, expr->left, (PairRange){0, c->heads - 1}, &(PairTable){.name = table->name, .count = table->heads});
        return NULL;
    }
    refuse(c, expr->left->location, arena_printf(c->r->arena, "a number of `%s` is `%s[h, EXPR]`", table->name,
                                                 table->name));
    return NULL;
}

/* NAME[EXPR] of a table, or NAME[h, EXPR] */
static Typed entry(const Condition *c, const Expr *expr, const PairTable *table) {
    Arena *arena = c->r->arena;
    if (!table->rule && c->decides)
        return refuse(c, expr->location, c->kind == OF_MASK ? "learned numbers may not decide which keys are visible"
                                                            : "learned numbers may not decide");
    if (!table->rule && c->kind != OF_SCORE)
        return refuse(c, expr->location, "a table reads no learned numbers");
    const Expr *where = table->heads ? behind_head(c, expr, table) : expr->left;
    if (!where) return (Typed){.type = REFUSED};
    if (expr->right && !table->heads)
        return refuse(c, expr->right->location, arena_printf(arena, "`%s` has one index", table->name));
    Typed at = number_of(c, where);
    if (at.type == REAL && !table->rule && is_tabled(at.rule)) return at_each(c, where, table, at.rule);
    at = index_of(c, where, at);
    if (at.type == REFUSED) return at;
    const PairRule *index = rule_of(c, where, &at);
    if (!index) return (Typed){.type = REFUSED};
    const PairRange range = pair_range(index, c->query, c->key);
    if (range.low >= 0 && range.high <= (double)table->count - 1)
        return !c->decides ? real(pair_let(arena, table, index))
                           : (Typed){.type = table->whole ? WHOLE : REAL,
                                     .rule = pair_table_entry(arena, table, index)};
    return !table->rule && is_tabled(index) ? at_each(c, where, table, index) : beyond(c, where, range, table);
}

/* What an operation reads by a name of a definition: a number of the head, also at an index, a number of the query's or
 * the key's row, or a byte of the pair. */
static Typed read_by_name(const Condition *c, const Expr *expr, const PairRule *leaf) {
    Arena *arena = c->r->arena;
    switch (leaf->op) {
    case PAIR_of_head: return real(leaf);
    case PAIR_table: return real(pair_with(arena, leaf, number_of(c, expr->right).rule, NULL, NULL));
    case PAIR_of_query: {
        const PairOp op = is_word(expr->left, "q") ? PAIR_of_query : PAIR_of_key;
        return (Typed){.type = WHOLE, .rule = pair_of_row(arena, op, leaf->input, leaf->name, leaf->range)};
    }
    default: return (Typed){.type = WHOLE, .rule = leaf};
    }
}

Typed typed_bit(const Condition *c, const Expr *expr) {
    Arena *arena = c->r->arena;
    const Expr *of = expr->left;
    if (!expr->right || expr->third) return refuse(c, expr->location, "`bit` has 2 arguments");
    const RowInput *input = of->kind == EXPR_INDEX ? row_input_named(c->r, c->scope, of->text, of->location) : NULL;
    const bool of_query = input && is_word(of->left, "q");
    if (!input || of->right || !(of_query || is_word(of->left, "k")) || input->kind.rows == PER_PAIR)
        return refuse(c, of->location, "`bit` reads an input of rows, as `bit(NAME[q], EXPR)` or `bit(NAME[k], EXPR)`");
    if (!c->a) return refuse(c, of->location, "a table reads no input");
    const char *why = row_input_unread(c->r, c->a, input, of_query);
    if (why) return refuse(c, of->location, why);
    if (!row_input_is_bits(c->r, input, of->location)) return (Typed){.type = REFUSED};
    const Typed at = index_of(c, expr->right, number_of(c, expr->right));
    const PairRule *index = at.type == REFUSED ? NULL : rule_of(c, expr->right, &at);
    if (!index) return (Typed){.type = REFUSED};
    const PairRule *bit = pair_bit(arena, of_query ? PAIR_bit_of_query : PAIR_bit_of_key,
                                   input_of(c, input->kind.role), input->kind.name, index);
    return truth(pair_apply(arena, PAIR_differs, bit, pair_constant(arena, 0)));
}

/* The number of an input that a leaf reads. */
static Typed given_number(const Condition *c, const Expr *expr, PairOp op, const RowInput *input) {
    Arena *arena = c->r->arena;
    const bool is_real = input->kind.dtype == DTYPE_F32;
    if (!c->a) return refuse(c, expr->location, "a table reads no input");
    const char *why = row_input_unread(c->r, c->a, input, op == PAIR_of_query);
    if (why) return refuse(c, expr->location, why);
    if (!row_input_is_number(c->r, input, expr->location)) return (Typed){.type = REFUSED};
    const PairRange whole = {(double)input->least, (double)input->most};
    const int number = input_of(c, input->kind.role);
    if (!is_real) return (Typed){.type = WHOLE, .rule = pair_of_row(arena, op, number, input->kind.name, whole)};
    const PairRule *leaf = pair_of_real(arena, op, number, input->kind.name, input->range);
    return real(c->decides ? leaf : pair_apply(arena, PAIR_real, leaf, NULL));
}

/* NAME[q] or NAME[k] of an input, NAME[q, k] of one of pairs, or a number of a table. */
Typed typed_entry(const Condition *c, const Expr *expr) {
    Arena *arena = c->r->arena;
    const Binding *binding = binding_named(c->scope, expr->text);
    if (binding && binding->table && location_before(binding->location, expr->location))
        return entry(c, expr, binding->table);
    if (binding && binding->leaf) return read_by_name(c, expr, binding->leaf);
    if (binding && !binding->input && !location_before(binding->location, expr->location)) {
        refuse(c, expr->location, arena_printf(arena, "`%s` gets its value only after this use", expr->text));
        diagnose_note(c->r->diagnostics, binding->location, "given here");
        return (Typed){.type = REFUSED};
    }
    if (binding && !binding->known && !binding->input) return (Typed){.type = REFUSED}; /* a table that was refused */
    const RowInput *input = row_input_named(c->r, c->scope, expr->text, expr->location);
    if (input && !c->a) return refuse(c, expr->location, "a table reads no input");
    if (!input && refuse_other_part(c->r, expr->text, expr->location)) return (Typed){.type = REFUSED};
    const char *advice = input ? NULL : advice_of("expression", expr->text);
    if (advice)
        return refuse(c, expr->location, arena_printf(arena, "there is no table `%s` here: %s", expr->text, advice));
    if (!input)
        return refuse(c, expr->location,
                      arena_printf(arena, "there is no table and no input `%s` of rows: state `input rows %s 0..N` "
                                   "in the encoder or decoder%s%s%s", expr->text, expr->text,
                                   c->kind == OF_SCORE ? ", or `learned " : "",
                                   c->kind == OF_SCORE ? expr->text : "", c->kind == OF_SCORE ? " [N]`" : ""));
    if (input->kind.rows == PER_SEQUENCE)
        return refuse(c, expr->location,
                      arena_printf(arena, "`%s` is one number of the sequence: write `%s` alone", expr->text,
                                   expr->text));
    const bool of_pairs = input->kind.rows == PER_PAIR, of_query = is_word(expr->left, "q");
    if (of_pairs && !(of_query && is_word(expr->right, "k") && !expr->third))
        return refuse(c, expr->left->location, arena_printf(arena, "an input of pairs is read as `%s[q, k]`",
                                                            expr->text));
    if (!of_pairs && (expr->right || !(of_query || is_word(expr->left, "k"))))
        return refuse(c, expr->left->location,
                      arena_printf(arena, "an input of rows is read as `%s[q]` and `%s[k]`", expr->text, expr->text));
    return given_number(c, expr, of_pairs ? PAIR_of_pair : of_query ? PAIR_of_query : PAIR_of_key, input);
}
