/* definitions.c: the rules of the words of masks and scores, whose expressions stand in definitions.attn. */
#include "settings.h"

#include <math.h>
#include <string.h>

/* What a name of an expression means: a number, or what an operation reads. */
typedef struct Meaning {
    const char *name;
    const PairRule *rule;
} Meaning;

#define MEANINGS(...) (const Meaning[]){__VA_ARGS__, {NULL, NULL}}

/* The items of the block of a word. The file is parsed once a process. */
static const Item *definition(const char *word) {
    static const Ast *parsed;
    static Arena *arena; /* of the process */
    if (!parsed) {
        const char *name = "definitions.attn", *text = embedded_file(name);
        arena = arena_new();
        Diagnostics diagnostics = diagnostics_quiet(arena);
        parsed = parse(arena, source_from_text(arena, name, text, strlen(text)), &diagnostics);
        if (diagnostics.errors) bug("%s", diagnostics.log.data);
    }
    for (const Item *item = parsed->items; item; item = item->next)
        if (strcmp(item->name, word) == 0) return item->items;
    bug("`%s` has no definition", word);
}

/* The expression of a word, which is the only value of the last item. */
static const Item *expression_of(const char *word) {
    const Item *item = definition(word);
    while (item->next) item = item->next;
    return item;
}

static Scope *scope_with(Resolver *r, const Meaning *names) {
    Scope *scope = arena_alloc(r->arena, sizeof *scope);
    for (; names->name; names++) {
        const PairRule *rule = names->rule;
        if (rule->op != PAIR_constant) {
            scope_bind(r, scope, (Binding){.name = names->name, .leaf = rule});
            continue;
        }
        const double value = rule->constant;
        const bool is_whole = value == floor(value) && fabs(value) <= (double)MOST_INTEGER;
        scope_bind(r, scope, (Binding){.name = names->name, .known = true, .is_real = !is_whole,
                                       .integer = is_whole ? (int64_t)value : 0, .real = value});
    }
    return scope;
}

/* NULL: the expression has no such rule, for the reason that *why becomes. */
static const PairRule *resolved(Arena *arena, const char *word, const Meaning *names, const char **why) {
    const Item *item = expression_of(word);
    const Expr *expr = item->values->expr;
    const bool is_mask = strcmp(item->name, "mask") == 0;
    const PairRange rows = {0, MOST_ROWS - 1};
    Diagnostics diagnostics = diagnostics_quiet(arena);
    Resolver r = {.arena = arena, .diagnostics = &diagnostics};
    Attention attention = {.heads = 1}; /* would get the inputs of a spec, of which a definition reads none */
    const Scope *scope = scope_with(&r, names);
    const PairRule *rule = is_mask ? resolve_condition(&r, scope, expr, rows, rows, &attention)
                                   : resolve_rescore(&r, scope, expr, rows, rows, &attention);
    *why = diagnostics.log.data;
    return rule;
}

static const PairRule *rule_of_word(Arena *arena, const char *word, const Meaning *names) {
    const char *why;
    const PairRule *rule = resolved(arena, word, names, &why);
    if (!rule) bug("%s", why);
    return rule;
}

static const PairRule *number(Arena *arena, double value) { return pair_constant(arena, value); }

const PairRule *rule_causal(Arena *arena) { return rule_of_word(arena, "causal", MEANINGS({NULL, NULL})); }

const PairRule *rule_prefix(Arena *arena, int input) {
    const char *name = input_kinds[IN_prefix_length].name;
    return rule_of_word(arena, "prefix", MEANINGS({name, pair_input(arena, PAIR_number, input, name)}));
}

bool rule_reads_prefix(const PairRule *rule) {
    if (!rule) return false;
    const bool own = rule->op == PAIR_number && strcmp(rule->name, input_kinds[IN_prefix_length].name) == 0;
    return own || rule_reads_prefix(rule->a) || rule_reads_prefix(rule->b) || rule_reads_prefix(rule->c);
}

const PairRule *rule_window(Arena *arena, int64_t n, int64_t sinks) {
    return rule_of_word(arena, sinks ? "sink" : "window",
                        MEANINGS({"N", number(arena, (double)n)}, {"S", number(arena, (double)sinks)}));
}

const PairRule *rule_given(Arena *arena, int input) {
    const char *name = input_kinds[IN_mask].name;
    return rule_of_word(arena, "given", MEANINGS({name, pair_input(arena, PAIR_given, input, name)}));
}

const PairRule *rule_softcap(Arena *arena, double cap) {
    return rule_of_word(arena, "softcap", MEANINGS({"C", number(arena, cap)}));
}

const PairRule *rule_slopes(Arena *arena, const char *at, int64_t rows) {
    const PairRule *slope = pair_input(arena, PAIR_of_head, 0, "slope");
    if (!at) return rule_of_word(arena, "alibi", MEANINGS({"slope", slope}));
    const PairRange range = {0, (double)(rows - 1)};
    const PairRule *position = pair_of_row(arena, PAIR_of_query, 1, at, range);
    return rule_of_word(arena, "alibi_at", MEANINGS({"slope", slope}, {"POS", position}));
}

const PairRule *rule_by_position(Arena *arena, double scale) {
    const PairRule *table = pair_table(arena, 0, "key_bias", pair_leaf(arena, PAIR_query));
    return rule_of_word(arena, "alibi_bf16", MEANINGS({"key_bias", table}, {"F", number(arena, scale)}));
}

const PairRule *rule_by_distance(Arena *arena, int64_t origin) {
    const PairRule *table = pair_table(arena, 0, "relative", pair_leaf(arena, PAIR_key));
    return rule_of_word(arena, "relative", MEANINGS({"relative", table}, {"ORIGIN", number(arena, (double)origin)}));
}

const PairRule *table_slopes(Arena *arena, int64_t heads, double most, double factor) {
    const Item *item = definition("alibi");
    while (!item->is_let) item = item->next;
    Diagnostics diagnostics = diagnostics_quiet(arena);
    Resolver r = {.arena = arena, .diagnostics = &diagnostics};
    const Scope *scope = scope_with(&r, MEANINGS({"heads", number(arena, (double)heads)}, {"M", number(arena, most)},
                                                 {"F", number(arena, factor)}));
    const PairTable *table = resolve_table(&r, scope, item->name, item->values->until, item->values->expr);
    if (!table) bug("%s", diagnostics.log.data);
    return table->rule;
}

/* Reads the numbers of a word from a rule, whose form may be another one. */
static void read_numbers(const Expr *expr, const PairRule *rule, double *numbers) {
    if (!expr || !rule) return;
    double *number = expr->kind == EXPR_NAME ? &numbers[*expr->text & 127] : NULL;
    if (number && *number == 0 && rule->op == PAIR_constant) *number = rule->constant;
    read_numbers(expr->left, rule->a, numbers);
    read_numbers(expr->right, rule->b, numbers);
    read_numbers(expr->third, rule->c, numbers);
}

static bool is_number(const Expr *expr) { return expr->kind == EXPR_NAME && *expr->text >= 'A' && *expr->text <= 'Z'; }

static bool has_numbers(const Expr *expr, const double *numbers) {
    return !expr || ((!is_number(expr) || numbers[*expr->text & 127] > 0) && has_numbers(expr->left, numbers) &&
                     has_numbers(expr->right, numbers) && has_numbers(expr->third, numbers));
}

bool rule_is_of_word(Arena *arena, const PairRule *rule, const char *word, double *numbers) {
    const Expr *expr = expression_of(word)->values->expr;
    Meaning names[1 + 'Z' - 'A' + 1] = {{NULL, NULL}};
    const char *why;
    int n = 0;
    memset(numbers, 0, WORD_NUMBERS * sizeof *numbers);
    read_numbers(expr, rule, numbers);
    if (!has_numbers(expr, numbers)) return false;
    for (int i = 'A'; i <= 'Z'; i++) {
        const char letter = (char)i;
        if (numbers[i] > 0) names[n++] = (Meaning){arena_copy(arena, &letter, 1), number(arena, numbers[i])};
    }
    return pair_same(rule, resolved(arena, word, names, &why));
}
