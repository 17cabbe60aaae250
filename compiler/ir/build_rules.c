/* build_rules.c: the inputs of rules of pairs, and the rule of `score EXPR` as an operation. The parts of this rule
 * that are the same for all calls become tables, which are computed when weights are packed. */
#include "builder.h"

#include <string.h>

/* The input with the length of each sequence's prefix, in rows of the decoder or of the only stack, or in keys. */
static int prefix_length(Build *b) {
    const Model *m = b->module->model;
    Dim one = build_constant(1);
    int prefix = build_input(b, IN_prefix_length, 1, &one, false);
    const Stack *stack = m->decoder ? m->decoder : m->encoder;
    b->graph->inputs[b->graph->n_inputs - 1].most = m->alone ? m->keys.n : stack->seq.n;
    return prefix;
}

/* The type in which a state keeps the numbers of an input. */
static Dtype kept_dtype(const InputKind *kind) {
    return kind->dtype != DTYPE_I64 ? kind->dtype : kind->wide ? DTYPE_I64 : DTYPE_I32;
}

/* The numbers of the state's rows, followed by the input's. */
static int kept_numbers(Build *b, const InputKind *kind, int input) {
    const Graph *g = b->graph;
    for (int s = 0; s < g->n_states; s++) {
        const int out = g->states[s].out;
        if (out != NO_TENSOR && g->ops[g->tensors[out].op].inputs[1] == input) return out;
    }
    const Stem stem = build_stem(b, b->model->decoder, ""); /* of all layers */
    const char *name = build_tensor(b, input)->name, *what = arena_printf(b->arena, "input_%s", name),
               *before = arena_printf(b->arena, "%s_before", what);
    const Dtype dtype = build_tensor(b, input)->dtype;
    Tensor rows = {.kind = TENSOR_STATE, .name = build_name(b, &stem, before), .dtype = dtype, .rank = 1,
                   .site = build_site(b, &stem, before, ROLE_NONE), .dims = {b->past}, .location = b->location};
    const int in = graph_tensor(b->arena, b->graph, rows);
    rows.name = build_name(b, &stem, what);
    rows.site = build_site(b, &stem, what, ROLE_NONE);
    rows.dims[0] = b->total;
    const int out = EMIT(append, rows, ATTRIBUTES(.past = b->past.symbol), in, input);
    graph_state(b->arena, b->graph,
                (GraphState){.name = rows.name, .site = rows.site, .in = in, .out = out, .dtype = kept_dtype(kind)});
    return out;
}

/* The input of that role if it is of other rows than those of the last stack or of the queries, else NULL. */
static const RowInput *source_input(const Build *b, InputRole role) {
    const RowInput *input = model_row_input(b->model, role);
    return input && input->of_source && (b->model->decoder || b->model->alone) ? input : NULL;
}

static const char *source_name(const Build *b, const RowInput *input) {
    return arena_printf(b->arena, "source_%s", input->kind.name);
}

static const GraphState *state_named(const Build *b, const char *name) {
    for (int s = 0; s < b->graph->n_states; s++)
        if (strcmp(b->graph->states[s].name, name) == 0) return &b->graph->states[s];
    return NULL;
}

/* The numbers of the source's rows, which `encode` left. */
static int numbers_from_source(Build *b, const RowInput *input) {
    const Stem stem = build_stem(b, b->model->decoder, ""); /* of all layers */
    const char *what = source_name(b, input), *name = build_name(b, &stem, what);
    const GraphState *kept = state_named(b, name);
    if (kept) return kept->in;
    const Tensor rows = {.kind = TENSOR_STATE, .name = name, .dtype = input->kind.dtype, .rank = 1,
                         .site = build_site(b, &stem, what, ROLE_NONE), .dims = {b->source}, .location = b->location};
    const int in = graph_tensor(b->arena, b->graph, rows);
    graph_state(b->arena, b->graph,
                (GraphState){.name = name, .site = rows.site, .in = in, .out = NO_TENSOR, .of_source = true,
                             .dtype = kept_dtype(&input->kind)});
    return in;
}

/* The input of that role, which is made of these dimensions where it is missing. */
static int input_of(Build *b, InputRole role, int rank, const Dim *dims, bool of_source) {
    const GraphInput *input = graph_input(b->graph, role);
    if (input) return input->tensor;
    const int made = build_input(b, role, rank, dims, false);
    if (of_source) build_mark_source(b);
    return made;
}

/* Leaves the numbers of a source of that many rows where `decode` reads them. */
static void leave_numbers(Build *b, const RowInput *input, Dim source) {
    const Stem stem = build_stem(b, b->model->decoder, "");
    const char *what = source_name(b, input), *name = build_name(b, &stem, what);
    if (state_named(b, name)) return;
    const int in = input_of(b, input->kind.role, 1, &source, false);
    graph_state(b->arena, b->graph,
                (GraphState){.name = name, .site = build_site(b, &stem, what, ROLE_NONE), .in = NO_TENSOR, .out = in,
                             .of_source = true, .dtype = kept_dtype(&input->kind)});
}

void build_leave_numbers(Build *b, const Attention *a, Dim source) {
    const RowInput *input;
    for (int i = 0; i < a->n_where_roles; i++)
        if ((input = source_input(b, a->visible_roles[i]))) leave_numbers(b, input, source);
    for (int i = 0; i < a->n_score_roles; i++)
        if ((input = source_input(b, a->score_roles[i]))) leave_numbers(b, input, source);
}

int build_row_input(Build *b, InputRole role, Dim rows) { return input_of(b, role, 1, &rows, b->of_source); }

int build_rule_input(Build *b, InputRole role, Dim rows, Dim keys) {
    const RowInput *own = model_row_input(b->model, role), *of_source = source_input(b, role);
    if (role == IN_prefix_length) {
        const GraphInput *length = graph_input(b->graph, role);
        return length ? length->tensor : prefix_length(b);
    }
    if (of_source && b->entry == ENTRY_DECODE) return numbers_from_source(b, of_source);
    const InputKind *kind = own ? &own->kind : &input_kinds[role];
    const Dim one = build_constant(1);
    if (input_is_number(kind)) return input_of(b, role, 1, &one, false);
    const bool of_keys = of_source || b->probes; /* a probe's row has no numbers */
    const Dim dims[] = {of_keys ? keys : rows, keys};
    const int made = input_of(b, role, kind->rows == PER_PAIR ? 2 : 1, dims,
                              b->of_source || (of_source && b->entry == ENTRY_FORWARD));
    return role_is_of_rows(role) && b->entry == ENTRY_DECODE ? kept_numbers(b, kind, made) : made;
}

/* The weight of a learned table: [count], or [heads][count]. */
static int learned_weight(Build *b, const Stem *stem, const Stack *stack, const PairTable *table) {
    const Stem of_stack = stack ? build_stem(b, stack, "") : BUILD_NO_STEM;
    const Stem *own = table->block == LEARNED_ATTENTION ? stem : table->block == LEARNED_STACK ? &of_stack
                                                                                              : &BUILD_NO_STEM;
    const Shape shape = table->heads ? build_matrix(table->heads, table->count) : build_vector(table->count);
    return build_declare(b, own, arena_printf(b->arena, "%s.weight", table->name),
                         (WeightSpec){.shape = shape, .deviation = 1, .learned = table->location});
}

void build_declare_learned(Build *b, const Stem *stem, const Stack *stack, const PairRule *rule) {
    if (!rule) return;
    if (pair_is_learned(rule)) learned_weight(b, stem, stack, rule->table);
    build_declare_learned(b, stem, stack, rule->a);
    build_declare_learned(b, stem, stack, rule->b);
    build_declare_learned(b, stem, stack, rule->c);
}

enum { KEYS_READ = 8 * PANEL }; /* vectors of keys are read whole, also where some lie after the last key */

typedef struct Rescore {
    Build *b;
    const Stem *stem;
    const Stack *stack;
    const Attention *a;
    const Tensor *scores;
    int inputs[1 + MOST_PAIR_INPUTS]; /* the scores first */
    int n;
} Rescore;

/* The number in the rule of an input of the operation. */
static int rule_input(Rescore *r, int tensor) {
    for (int i = 1; i < r->n; i++)
        if (r->inputs[i] == tensor) return i - 1;
    if (r->n == 1 + MOST_PAIR_INPUTS)
        fail_status(EXIT_CANNOT, "%s: a score with more than %d tables and inputs is not supported yet", r->b->where,
                    MOST_PAIR_INPUTS);
    r->inputs[r->n] = tensor;
    return r->n++ - 1;
}

/* A name for the table of `count` numbers of the rule. */
static const char *table_name(Arena *arena, const char *word, const PairRule *rule, PairTabled of, int64_t count,
                              int64_t origin) {
    Text formula = text_new(arena);
    text_printf(&formula, "%d %lld %lld ", (int)of, (long long)count, (long long)origin);
    pair_print(&formula, rule);
    pair_print_tables(&formula, rule);
    return arena_printf(arena, "%s.%016llx", word, (unsigned long long)hash_bytes(0, formula.data, formula.size));
}

/* A table of `count` numbers of the rule. */
static int table(Rescore *r, const char *word, const PairRule *rule, PairTabled of, int64_t count, int64_t origin) {
    Build *b = r->b;
    const int64_t width = of == TABLED_HEAD ? count : count + KEYS_READ;
    const char *name = table_name(b->arena, word, rule, of, count, origin);
    const int derived = build_derived(b, (Derived){.kind = DERIVED_RULE,
                                                   .name = arena_printf(b->arena, "score.%s", name),
                                                   .shape = build_vector(width),
                                                   .rule = rule,
                                                   .tabled = of,
                                                   .rows = count,
                                                   .origin = origin});
    return rule_input(r, derived);
}

/* The numbers of a learned table at `count` indexes: those of the rule, or without one all from 0 on. */
static int learned(Rescore *r, const PairTable *table, const PairRule *rule, PairTabled of, int64_t count,
                   int64_t origin) {
    Build *b = r->b;
    const int weight = learned_weight(b, r->stem, r->stack, table);
    const char *own = b->module->weights.specs[weight].name;
    const char *name = rule ? table_name(b->arena, own, rule, of, count, origin)
                            : arena_printf(b->arena, "%s.padded", own);
    const bool by_head = table->heads && of != TABLED_HEAD;
    const int64_t width = of == TABLED_HEAD ? count : count + KEYS_READ;
    const int derived = build_derived(b, (Derived){.kind = DERIVED_LEARNED,
                                                   .name = name,
                                                   .shape = by_head ? build_matrix(r->a->heads, width)
                                                                    : build_vector(width),
                                                   .rule = rule,
                                                   .tabled = of,
                                                   .rows = count,
                                                   .columns = table->heads ? table->count : 0,
                                                   .origin = origin,
                                                   .source = weight});
    return rule_input(r, derived);
}

/* The rule of a condition or of whole numbers, which is computed as it is, with the inputs of the operation. */
static const PairRule *with_inputs(Rescore *r, const PairRule *pair) {
    Arena *arena = r->b->arena;
    if (pair_tabled(pair) == TABLED_CONSTANT && pair->op != PAIR_constant) {
        const PairRule *value = pair_constant(arena, pair_tabled_value(pair, TABLED_CONSTANT, 0, 0));
        return pair_is_single(pair) ? pair_apply(arena, PAIR_single, value, NULL) : value;
    }
    if (pair_reads_input(pair->op)) {
        const Dim *dims = r->scores->dims;
        const int read = build_rule_input(r->b, r->a->score_roles[pair->input], dims[1], dims[2]);
        pair = pair_with_input(arena, pair, rule_input(r, read));
    }
    if (!pair->a) return pair;
    return pair_with(arena, pair, with_inputs(r, pair->a), pair->b ? with_inputs(r, pair->b) : NULL,
                     pair->c ? with_inputs(r, pair->c) : NULL);
}

/* key - query, from 0 on */
static const PairRule *distance_index(Arena *arena, int64_t origin) {
    const PairRule *distance = pair_apply(arena, PAIR_sub, pair_leaf(arena, PAIR_key), pair_leaf(arena, PAIR_query));
    return pair_apply(arena, PAIR_add, distance, pair_constant(arena, (double)origin));
}

/* A number of a learned table. Where the index is known for each distance, position or head, the table is packed in the
 * order of these, so that neighbouring keys have neighbouring numbers. */
static const PairRule *learned_entry(Rescore *r, const PairRule *pair) {
    Arena *arena = r->b->arena;
    const Attention *a = r->a;
    const PairTable *table = pair->table;
    const PairTabled of = pair_tabled(pair->a);
    const char *name = arena_printf(arena, "learned_%s", table->name);
    if (of == TABLED_HEAD)
        return pair_input(arena, PAIR_of_head, learned(r, table, pair->a, of, a->heads, 0), name);
    const PairRule *at = NULL;
    int input = 0;
    if (pair_follows(pair->a, &(PairLinear){0}) || of == TABLED_CONSTANT || of == TABLED_NOT) {
        at = with_inputs(r, pair->a);
        input = learned(r, table, NULL, TABLED_NOT, table->count, 0);
    } else if (of == TABLED_DISTANCE) {
        const int64_t origin = a->most_queries - 1;
        at = distance_index(arena, origin);
        input = learned(r, table, pair->a, of, a->most_keys + origin, origin);
    } else {
        at = pair_leaf(arena, of == TABLED_QUERY ? PAIR_query : PAIR_key);
        input = learned(r, table, pair->a, of, of == TABLED_QUERY ? a->most_queries : a->most_keys, 0);
    }
    return (table->heads ? pair_table : pair_list)(arena, input, name, at);
}

/* The rule with inputs in place of the parts that are numbers of a table. */
static const PairRule *with_tables(Rescore *r, const PairRule *pair) {
    Arena *arena = r->b->arena;
    const Attention *a = r->a;
    const PairTabled of = pair_tabled(pair);
    const bool needs = pair_needs_table(pair);
    if (of == TABLED_CONSTANT && pair->op != PAIR_constant)
        return pair_constant(arena, pair_tabled_value(pair, of, 0, 0));
    if (of == TABLED_HEAD) {
        const char *word = pair->op == PAIR_let && pair->a->op == PAIR_head ? pair->name : "heads";
        return pair_input(arena, PAIR_of_head, table(r, word, pair, of, a->heads, 0),
                          arena_printf(arena, "table_%s", word));
    }
    if (pair_is_learned(pair)) return learned_entry(r, pair);
    if (pair->op == PAIR_let) {
        const int input = table(r, pair->name, pair->table->rule, TABLED_NOT, pair->table->count, 0);
        return pair_list(arena, input, arena_printf(arena, "table_%s", pair->name), with_inputs(r, pair->a));
    }
    if (needs && of == TABLED_QUERY)
        return pair_list(arena, table(r, "queries", pair, of, a->most_queries, 0), "table_queries",
                         pair_leaf(arena, PAIR_query));
    if (needs && of == TABLED_KEY)
        return pair_list(arena, table(r, "keys", pair, of, a->most_keys, 0), "table_keys", pair_leaf(arena, PAIR_key));
    if (needs && of == TABLED_DISTANCE) {
        const int64_t origin = a->most_queries - 1;
        return pair_list(arena, table(r, "distances", pair, of, a->most_keys + origin, origin), "table_distances",
                         distance_index(arena, origin));
    }
    if (pair->op == PAIR_of_query || pair->op == PAIR_of_key || pair->op == PAIR_of_pair || pair->op == PAIR_number) {
        const Dim *dims = r->scores->dims;
        const int read = build_rule_input(r->b, a->score_roles[pair->input], dims[1], dims[2]);
        return pair_with_input(arena, pair, rule_input(r, read));
    }
    if (!pair->a) return pair;
    const bool whole = pair->op == PAIR_choose || pair->op == PAIR_real;
    const PairRule *first = (whole ? with_inputs : with_tables)(r, pair->a);
    return pair_with(arena, pair, first, pair->b ? with_tables(r, pair->b) : NULL,
                     pair->c ? with_tables(r, pair->c) : NULL);
}

int build_rescore(Build *b, const Stem *stem, const Stack *stack, const Attention *a, int scores) {
    if (!a->rescore) return scores;
    const Tensor result = build_value_like(b, "rescored", scores);
    Rescore r = {.b = b, .stem = stem, .stack = stack, .a = a, .scores = &result, .inputs = {scores}, .n = 1};
    OpAttributes at = {.rule = with_tables(&r, a->rescore), .past = b->past.symbol};
    return build_op(b, OP_rescore, at, result, r.n, r.inputs);
}
