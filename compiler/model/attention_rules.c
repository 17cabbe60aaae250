/* attention_rules.c: the masks and scores that the language has words for, as rules of pairs. */
#include "../attnc.h"

static const PairRule *query(Arena *arena) { return pair_leaf(arena, PAIR_query); }
static const PairRule *key(Arena *arena) { return pair_leaf(arena, PAIR_key); }
static const PairRule *score(Arena *arena) { return pair_leaf(arena, PAIR_score); }
static const PairRule *number(Arena *arena, int64_t n) { return pair_constant(arena, (double)n); }

const PairRule *rule_causal(Arena *arena) { return pair_apply(arena, PAIR_at_most, key(arena), query(arena)); }

const PairRule *rule_prefix(Arena *arena, int input) {
    const PairRule *length = pair_input(arena, PAIR_number, input, input_kinds[IN_prefix_length].name);
    return pair_apply(arena, PAIR_or, rule_causal(arena), pair_apply(arena, PAIR_below, key(arena), length));
}

const PairRule *rule_window(Arena *arena, int64_t n, int64_t sinks) {
    const PairRule *distance = pair_apply(arena, PAIR_sub, query(arena), key(arena));
    const PairRule *near = pair_apply(arena, PAIR_below, pair_apply(arena, PAIR_abs, distance, NULL), number(arena, n));
    if (!sinks) return near;
    return pair_apply(arena, PAIR_or, near, pair_apply(arena, PAIR_below, key(arena), number(arena, sinks)));
}

const PairRule *rule_given(Arena *arena, int input) {
    const PairRule *byte = pair_input(arena, PAIR_given, input, input_kinds[IN_mask].name);
    return pair_apply(arena, PAIR_differs, byte, number(arena, 0));
}

/* ALiBi (Press et al. 2021). */
const PairRule *rule_slopes(Arena *arena, const char *at, int64_t rows) {
    const PairRange range = {0, (double)(rows - 1)};
    const PairRule *own = at ? pair_of_row(arena, PAIR_of_query, 1, at, range) : query(arena);
    const PairRule *other = at ? pair_of_row(arena, PAIR_of_key, 1, at, range) : key(arena);
    const PairRule *difference = pair_apply(arena, PAIR_sub, other, own);
    const PairRule *distance = pair_apply(arena, PAIR_abs, difference, NULL);
    if (at) distance = pair_apply(arena, PAIR_real, distance, NULL);
    const PairRule *less = pair_apply(arena, PAIR_mul, pair_input(arena, PAIR_of_head, 0, "slope"), distance);
    return pair_apply(arena, PAIR_sub, score(arena), less);
}

/* Buckets of distances (Raffel et al. 2020), whose biases stand in the table at every distance. */
const PairRule *rule_by_distance(Arena *arena, int64_t origin) {
    const PairRule *difference = pair_apply(arena, PAIR_sub, key(arena), query(arena));
    const PairRule *index = pair_apply(arena, PAIR_add, difference, number(arena, origin));
    return pair_apply(arena, PAIR_add, score(arena), pair_table(arena, 0, "relative", index));
}

/* ALiBi in bf16: the table holds each position times the slope of the head, rounded. */
const PairRule *rule_by_position(Arena *arena, double scale) {
    const PairRule *own = pair_table(arena, 0, "key_bias", query(arena));
    const PairRule *less = pair_apply(arena, PAIR_sub, own, pair_table(arena, 0, "key_bias", key(arena)));
    const PairRule *scaled = pair_apply(arena, PAIR_mul, pair_constant(arena, scale), less);
    return pair_apply(arena, PAIR_sub, score(arena), scaled);
}

/* The soft cap of Gemma 2 (Riviere et al. 2024, section 2). */
const PairRule *rule_softcap(Arena *arena, double cap) {
    const PairRule *part = pair_apply(arena, PAIR_mul, score(arena), pair_constant(arena, 1 / cap));
    return pair_apply(arena, PAIR_mul, pair_constant(arena, cap), pair_apply(arena, PAIR_tanh, part, NULL));
}
