/* masks.c: the keys that a query sees, as one rule of the mask's words and of its condition. */
#include "settings.h"

#include <math.h>

static int add_role(Attention *a, InputRole role) {
    a->visible_roles[a->n_visible_roles] = role;
    return a->n_visible_roles++;
}

void attention_visible(Arena *arena, Attention *a) {
    const PairRule *rule = a->mask_causal ? rule_causal(arena) : NULL;
    a->n_visible_roles = a->n_where_roles;
    if (a->mask_prefix) rule = rule_prefix(arena, add_role(a, IN_prefix_length)); /* which is causal, too */
    if (a->window) rule = pair_both(arena, rule, rule_window(arena, a->window, a->sink));
    if (a->mask_given) rule = pair_both(arena, rule, rule_given(arena, add_role(a, IN_mask)));
    a->visible = pair_both(arena, rule, a->where);
}

static bool is_whole(double number) { return number == floor(number) && number <= (double)MOST_INTEGER; }

/* Takes the conditions that words stand for as these words, so that both have the same rule, and leaves the others in
 * `where`. */
static void take_words(Arena *arena, Attention *a, const PairRule *rule) {
    double numbers[WORD_NUMBERS];
    if (rule->op == PAIR_and) {
        take_words(arena, a, rule->a);
        take_words(arena, a, rule->b);
    } else if (rule_is_of_word(arena, rule, "causal", numbers)) {
        a->mask_causal = true;
    } else if (!a->window && (rule_is_of_word(arena, rule, "window", numbers) ||
                              rule_is_of_word(arena, rule, "sink", numbers)) &&
               is_whole(numbers['N']) && is_whole(numbers['S'])) {
        a->window = (int64_t)numbers['N'];
        a->sink = (int64_t)numbers['S'];
    } else {
        a->where = pair_both(arena, a->where, rule);
    }
}

void resolve_masks(Resolver *r, Scope *scope, Attention *a, const Stack *stack, PairRange query, PairRange key) {
    const FieldValue *where = &scope->fields[F_mask_where];
    const bool said = stated(scope, F_mask_none) || stated(scope, F_mask_causal) || stated(scope, F_mask_padding) ||
                      stated(scope, F_mask_prefix) || stated(scope, F_mask_given) || where->stated;
    a->mask_prefix = get(scope, F_mask_prefix);
    a->mask_causal = get(scope, F_mask_causal) || (!said && stack && stack->is_decoder && !a->cross);
    a->mask_padding = get(scope, F_mask_padding);
    a->mask_given = get(scope, F_mask_given);
    a->window = get(scope, F_window);
    a->sink = get(scope, F_sink);
    a->sink_learned = get(scope, F_sink_learned);
    if (where->expr) {
        const PairRule *rule = resolve_condition(r, where->scope, where->expr, query, key, a);
        if (!rule) doubt(scope, F_mask_where);
        else if (a->cross && stack) a->where = rule; /* where words have no meaning */
        else take_words(r->arena, a, rule);
    }
    attention_visible(r->arena, a);
    if (where->expr && known(scope, F_mask_where) && stack && stack->is_decoder && !a->cross && !a->mask_causal &&
        !a->mask_prefix && !(a->where && pair_looks_back(a->where)))
        diagnose_note(r->diagnostics, where->location, "under this mask a row may see later rows: a call that appends "
                                                       "rows which an earlier row sees is refused");
    if (a->visible && pair_range(a->visible, query, key).high == 0)
        diagnose_note(r->diagnostics, where->location, "this mask hides every key from every query");
}

void resolve_score_rule(Resolver *r, Scope *scope, Attention *a, PairRange query, PairRange key) {
    const FieldValue *score = &scope->fields[F_rescore];
    if (!score->expr) return;
    a->most_queries = (int64_t)query.high + 1;
    a->most_keys = (int64_t)key.high + 1;
    a->rescore = resolve_rescore(r, score->scope, score->expr, query, key, a);
    if (!a->rescore) {
        doubt(scope, F_rescore);
        return;
    }
    double numbers[WORD_NUMBERS];
    if (a->softcap > 0 || !rule_is_of_word(r->arena, a->rescore, "softcap", numbers)) return;
    a->softcap = numbers['C'];
    a->rescore = NULL;
}
