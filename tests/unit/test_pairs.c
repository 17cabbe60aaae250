/* test_pairs.c: rules of pairs: their values, their ranges, and the bounds of the keys that they show. */
#include "fixture.h"

#include <math.h>
#include <stdlib.h>

static const PairRule *q(void) { return pair_leaf(arena, PAIR_query); }
static const PairRule *k(void) { return pair_leaf(arena, PAIR_key); }
static const PairRule *c(double value) { return pair_constant(arena, value); }
static const PairRule *two(PairOp op, const PairRule *a, const PairRule *b) { return pair_apply(arena, op, a, b); }
static const PairRule *causal(void) { return two(PAIR_at_most, k(), q()); }
static const PairRule *near(double n) {
    return two(PAIR_below, two(PAIR_abs, two(PAIR_sub, q(), k()), NULL), c(n));
}
static const PairRule *prefix(void) { return two(PAIR_below, k(), pair_input(arena, PAIR_number, 0, "prefix_length")); }
static const PairRule *given(void) {
    return two(PAIR_differs, pair_input(arena, PAIR_given, 1, "mask"), c(0));
}

static const int64_t tree[] = {1, 3, 5, 11, 19, 37, 69, 139, 21, -1, INT64_MIN, 0, 7, 9, 255, 8, 1, 1};
static const PairRule *bit(PairOp op, const PairRule *index) {
    return two(PAIR_differs, pair_bit(arena, op, 2, "tree", index), c(0));
}

static const double of_four[] = {4, 0, 9, 1};
static const PairTable squares = {.name = "t", .count = 4, .numbers = of_four, .whole = true};

enum { ROWS = 9, MOST_RULES = 24 };

/* Rules of every operation, alone and combined; returns their number. */
static int rules(const PairRule **out) {
    int n = 0;
    out[n++] = causal();
    out[n++] = near(3);
    out[n++] = two(PAIR_and, causal(), near(1));
    out[n++] = two(PAIR_or, near(2), two(PAIR_below, k(), c(2)));
    out[n++] = two(PAIR_and, causal(), two(PAIR_or, near(2), two(PAIR_below, k(), c(3))));
    out[n++] = two(PAIR_or, causal(), prefix());
    out[n++] = two(PAIR_and, two(PAIR_or, causal(), prefix()), near(4));
    out[n++] = two(PAIR_and, causal(), given());
    out[n++] = two(PAIR_at_most, two(PAIR_add, k(), c(2)), q());
    out[n++] = two(PAIR_at_most, two(PAIR_sub, q(), k()), c(3));
    out[n++] = two(PAIR_and, two(PAIR_below, q(), two(PAIR_add, k(), c(2))), two(PAIR_or, prefix(), given()));
    out[n++] = two(PAIR_equals, two(PAIR_quotient, q(), c(4)), two(PAIR_quotient, k(), c(4)));
    out[n++] = two(PAIR_below, two(PAIR_mod, two(PAIR_sub, q(), k()), c(3)), c(2));
    out[n++] = two(PAIR_at_most, two(PAIR_quotient, two(PAIR_sub, k(), q()), two(PAIR_add, k(), c(1))), c(-1));
    out[n++] = two(PAIR_differs, two(PAIR_mod, q(), two(PAIR_add, k(), c(1))), c(0));
    out[n++] = two(PAIR_or, two(PAIR_equals, k(), q()), two(PAIR_at_most, two(PAIR_mul, c(2), k()), q()));
    out[n++] = two(PAIR_or, two(PAIR_below, k(), c(2)), bit(PAIR_bit_of_query, two(PAIR_sub, k(), c(2))));
    out[n++] = two(PAIR_equals, bit(PAIR_bit_of_key, two(PAIR_mul, q(), c(9)))->a, c(0));
    out[n++] = two(PAIR_below, two(PAIR_sub, q(), k()), pair_table_entry(arena, &squares, two(PAIR_mod, k(), c(4))));
    out[n++] = two(PAIR_at_most, pair_choose(arena, two(PAIR_below, k(), c(3)), q(), two(PAIR_mul, c(2), k())), c(6));
    return n;
}

/* A bound for a query, or `none`. */
static double bound_at(const PairRule *bound, const PairAt *at, double none) {
    return bound ? pair_value(bound, at) : none;
}

static bool in_bounds(const KeyBounds *b, const PairAt *at) {
    if (at->key >= bound_at(b->limit, at, INFINITY)) return false;
    if (b->low && (at->key < pair_value(b->low, at) || at->key >= bound_at(b->high, at, INFINITY)) &&
        at->key >= bound_at(b->leading, at, -INFINITY)) return false;
    return !b->rest || pair_value(b->rest, at) != 0;
}

/* Fails unless the bounds are the rule for every pair of some rows, and the window's rule the window. */
static void bounds_are(const PairRule *rule, int rows) {
    const KeyBounds b = key_bounds(arena, rule);
    if (!b.low) assert_true(!b.window && !b.high && !b.leading);
    for (int pair = 0; pair < rows * rows * 6; pair++) {
        const PairAt at = {pair / 6 / rows, pair / 6 % rows, 0, 0, 0,
                           {{.number = pair % 3 * 4}, {.number = pair % 2}, {.rows = tree}}};
        if (in_bounds(&b, &at) != (!rule || pair_value(rule, &at) != 0)) {
            Text text = text_new(arena);
            pair_print(&text, rule);
            fail_msg("%s: query %g, key %g", text.data, at.query, at.key);
        }
        const KeyBounds window = {.low = b.low, .high = b.high, .leading = b.leading};
        const bool held = !b.limit || at.key < pair_value(b.limit, &at);
        if (b.window && held && in_bounds(&window, &at) != (pair_value(b.window, &at) != 0)) fail_msg("the window");
    }
}

static void bounds_are_the_rule(void **state) {
    (void)state;
    const PairRule *all[MOST_RULES];
    const int n = rules(all);
    for (int i = 0; i < n; i++) bounds_are(all[i], ROWS);
}

/* Bounds hold for every pair and input in the ranges, and what they decide changes no value. */
static void bounds_hold(void **state) {
    (void)state;
    const PairRule *all[MOST_RULES];
    const int n = rules(all);
    for (int i = 0; i < n; i++)
        for (int block = 0; block < 81; block++) {
            const int q0 = block / 9, q1 = q0 + block % 3 * 2, k0 = block % 9, k1 = k0 + 2;
            const PairRange query = {q0, q1}, key = {k0, k1};
            const PairRange bounds = pair_range(all[i], query, key);
            const PairRule *rest = pair_simplified(arena, all[i], query, key);
            const PairRule *choices = pair_decided(arena, all[i], query, key);
            if (bounds.low == 1) assert_null(rest);
            for (int a = q0; a <= q1; a++)
                for (int b = k0; b <= k1; b++)
                    for (int in = 0; in < 6; in++) {
                        const PairAt at = {a, b, 0, 0, 0, {{.number = in % 3 * 4}, {.number = in % 2}, {.rows = tree}}};
                        const double value = pair_value(all[i], &at);
                        assert_true(bounds.low <= value && value <= bounds.high);
                        assert_true((rest ? pair_value(rest, &at) : 1) == value);
                        assert_true(pair_value(choices, &at) == value);
                    }
        }
}

static void printed(void **state) {
    (void)state;
    static const char *const wanted[] = {
        "k <= q", "abs(q - k) < 3", "k <= q and abs(q - k) < 1", "abs(q - k) < 2 or k < 2",
        "k <= q and (abs(q - k) < 2 or k < 3)", "k <= q or k < prefix_length",
        "(k <= q or k < prefix_length) and abs(q - k) < 4", "k <= q and mask[q, k] != 0", "k + 2 <= q", "q - k <= 3",
        "q < k + 2 and (k < prefix_length or mask[q, k] != 0)", "floor(q / 4) == floor(k / 4)",
        "(q - k) mod 3 < 2", "floor((k - q) / (k + 1)) <= -1", "q mod (k + 1) != 0", "k == q or 2 * k <= q",
        "k < 2 or bit(tree[q], k - 2)", "not bit(tree[k], q * 9)", "q - k < t[k mod 4]",
        "(if k < 3 then q else 2 * k) <= 6"};
    const PairRule *all[MOST_RULES];
    const int n = rules(all);
    assert_int_equal(n, sizeof wanted / sizeof *wanted);
    for (int i = 0; i < n; i++) {
        Text text = text_new(arena);
        pair_print(&text, all[i]);
        assert_string_equal(text.data, wanted[i]);
    }
}

/* A window as wide as the bounds hides nothing, also where sinks stand beside it; a later one is kept. */
static void wide_windows_go(void **state) {
    (void)state;
    const PairRange query = {0, 5}, key = {0, 7};
    const PairRule *wide = pair_simplified(arena, two(PAIR_and, causal(), near(8)), query, key);
    assert_int_equal(wide->op, PAIR_at_most);
    assert_null(pair_simplified(arena, two(PAIR_or, near(8), two(PAIR_below, k(), c(1))), query, key));
    assert_int_equal(pair_simplified(arena, two(PAIR_and, causal(), near(7)), query, key)->op, PAIR_and);
    assert_null(pair_simplified(arena, NULL, query, key));
    const PairRule *before = two(PAIR_below, pair_leaf(arena, PAIR_query), c(2)),
                   *after = two(PAIR_below, c(1), pair_leaf(arena, PAIR_query)),
                   *later = two(PAIR_at_most, c(2), pair_leaf(arena, PAIR_query));
    assert_null(pair_simplified(arena, two(PAIR_or, before, after), query, key));
    assert_null(pair_simplified(arena, two(PAIR_or, two(PAIR_or, later, before), causal()), query, key));
    assert_int_equal(pair_simplified(arena, two(PAIR_or, before, two(PAIR_below, c(2), pair_leaf(arena, PAIR_query))),
                                     query, key)->op, PAIR_or); /* the query 2 is on neither side */
    const PairRule *sum = two(PAIR_add, c(3), k()); /* 3 + k >= 4 or k < 1 */
    assert_null(pair_simplified(arena, two(PAIR_or, two(PAIR_at_most, c(4), sum), two(PAIR_below, k(), c(1))), query,
                                key));
    assert_int_equal(pair_simplified(arena, two(PAIR_or, two(PAIR_below, c(4), sum), two(PAIR_below, k(), c(1))), query,
                                     key)->op, PAIR_or); /* the key 1 is on neither side */
    const PairRule *never = pair_simplified(arena, two(PAIR_and, two(PAIR_and, before, after), causal()), query, key);
    assert_int_equal(never->op, PAIR_constant);
    assert_true(never->constant == 0);
}

/* A choice whose condition the positions decide is gone, and so is what it alone reads. */
static void decided_choices_go(void **state) {
    (void)state;
    const PairRange query = {0, 5}, key = {0, 7}, row = {-2, 3};
    const PairRule *input = pair_of_row(arena, PAIR_of_key, 0, "image", row);
    const PairRule *open = two(PAIR_equals, input, c(1)), *always = two(PAIR_at_most, k(), k());
    const PairRule *chosen = pair_choose(arena, two(PAIR_or, open, always), c(2), c(3));
    const PairRule *score = two(PAIR_add, pair_leaf(arena, PAIR_score), two(PAIR_mul, chosen, c(4)));
    assert_true(pair_reads(score, PAIR_of_key));
    const PairRule *rest = pair_decided(arena, score, query, key);
    assert_false(pair_reads(rest, PAIR_of_key));
    assert_int_equal(rest->b->a->op, PAIR_constant);
    assert_true(rest->b->a->constant == 2);
    assert_false(pair_reads(pair_decided(arena, pair_choose(arena, two(PAIR_below, k(), k()), input, c(3)), query, key),
                            PAIR_of_key));
    const PairRule *half = pair_decided(arena, pair_choose(arena, two(PAIR_and, open, always), c(2), c(3)), query, key);
    assert_int_equal(half->op, PAIR_choose);
    assert_true(pair_same(half->a, open));
    const PairRule *kept = pair_choose(arena, open, c(2), c(3));
    assert_true(pair_decided(arena, kept, query, key) == kept);
}

static void windows_of_caches(void **state) {
    (void)state;
    const PairRule *sinks = two(PAIR_or, near(4), two(PAIR_below, k(), c(2)));
    const struct {
        const PairRule *rule;
        int64_t window;
        bool leading;
    } cases[] = {{NULL, 0, false},
                 {causal(), 0, false},
                 {two(PAIR_and, causal(), near(4)), 4, false},
                 {two(PAIR_and, two(PAIR_or, causal(), prefix()), near(4)), 4, false},
                 {two(PAIR_and, causal(), sinks), 4, true},
                 {two(PAIR_at_most, two(PAIR_add, q(), c(2)), k()), 0, false},
                 {given(), 0, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const KeyBounds bounds = key_bounds(arena, cases[i].rule);
        assert_int_equal(key_bounds_window(&bounds), cases[i].window);
        assert_int_equal(bounds.leading != NULL, cases[i].leading);
    }
}

/* The bounds are the rule for every mask that the language has words for, and only a given mask is left over. */
static void bounds_of_words(void **state) {
    (void)state;
    for (int words = 0; words < 2 * 2 * 2 * 4 * 4 * 6; words++) {
        const bool is_causal = words % 2, has_prefix = words / 2 % 2, is_given = words / 4 % 2;
        const int window = words / 8 % 4, sinks = words / 32 % 4, rows = words / 128 + 1;
        const PairRule *mask = is_causal ? causal() : NULL;
        if (has_prefix) mask = rule_prefix(arena, 0);
        if (window) mask = pair_both(arena, mask, rule_window(arena, window, sinks));
        if (is_given) mask = pair_both(arena, mask, given());
        const PairRange all = {0, rows - 1};
        mask = pair_simplified(arena, mask, all, all);
        bounds_are(mask, rows);
        const PairRule *rest = key_bounds(arena, mask).rest;
        assert_true(!rest || (is_given && pair_same(rest, given())));
    }
}

/* What bounds cannot stand for is left over, and nothing is lost. */
static void other_rules_are_left(void **state) {
    (void)state;
    const PairRule *twice = two(PAIR_at_most, two(PAIR_add, k(), k()), q());
    const PairRule *few = two(PAIR_at_most, two(PAIR_abs, two(PAIR_sub, k(), c(4)), NULL), q());
    const PairRule *const others[] = {twice, two(PAIR_differs, k(), q()), two(PAIR_below, q(), c(3)), few,
                                      two(PAIR_below, two(PAIR_mul, q(), k()), c(9)),
                                      two(PAIR_or, near(2), two(PAIR_below, c(5), k()))};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_non_null(key_bounds(arena, others[i]).rest);
        bounds_are(others[i], ROWS);
        bounds_are(two(PAIR_and, near(3), two(PAIR_and, others[i], causal())), ROWS);
    }
    const PairRule *const leading[] = {two(PAIR_below, c(2), two(PAIR_abs, two(PAIR_sub, q(), k()), NULL)),
                                      two(PAIR_or, two(PAIR_below, k(), c(2)), two(PAIR_at_most, c(5), k())),
                                      two(PAIR_at_most, two(PAIR_sub, q(), k()), c(2.5))};
    for (size_t i = 0; i < sizeof leading / sizeof *leading; i++) {
        assert_null(key_bounds(arena, leading[i]).rest);
        assert_non_null(key_bounds(arena, leading[i]).low);
        bounds_are(leading[i], ROWS);
        bounds_are(two(PAIR_and, leading[i], near(4)), ROWS);
    }
    assert_true(pair_shows_own(causal()) && pair_shows_own(pair_without_abs(arena, near(1))));
    assert_false(pair_shows_own(two(PAIR_below, k(), q())) || pair_shows_own(prefix()));
    assert_false(pair_shows_own(two(PAIR_differs, k(), q())) || pair_shows_own(twice));
}

/* A rule looks back exactly if no query sees a later key, for comparisons that are solved. */
static void rules_that_look_back(void **state) {
    (void)state;
    const PairRule *twice = two(PAIR_mul, c(2), two(PAIR_sub, k(), q()));
    const PairRule *const back[] = {causal(), two(PAIR_below, k(), q()), two(PAIR_equals, k(), q()),
                                    two(PAIR_equals, q(), two(PAIR_add, k(), c(3))),
                                    two(PAIR_and, near(3), causal()), two(PAIR_below, twice, c(2)),
                                    two(PAIR_or, two(PAIR_and, given(), causal()), two(PAIR_below, k(), q()))};
    const PairRule *const ahead[] = {near(1), two(PAIR_at_most, k(), two(PAIR_add, q(), c(1))), prefix(),
                                     two(PAIR_equals, k(), two(PAIR_add, q(), c(1))), two(PAIR_or, causal(), given()),
                                     two(PAIR_differs, k(), q()), two(PAIR_at_most, q(), k()),
                                     two(PAIR_below, twice, c(3)), two(PAIR_below, two(PAIR_mod, k(), c(2)), q())};
    for (size_t i = 0; i < sizeof back / sizeof *back; i++) assert_true(pair_looks_back(back[i]));
    for (size_t i = 0; i < sizeof ahead / sizeof *ahead; i++) assert_false(pair_looks_back(ahead[i]));
}

/* ------------------------------------------------------------------ scores */

static void scores(void **state) {
    (void)state;
    static const float table[] = {10, 20, 30, 40, 50};
    PairAt at = {.query = 3, .key = 1, .score = 0.5, .inputs = {{.number = 0.25, .single = table}}};
    const struct {
        const PairRule *rule;
        double value;
        const char *text;
    } cases[] = {{rule_slopes(arena, NULL, 1), 0.5 - 0.25 * 2, "s - slope[h] * abs(k - q)"},
                 {rule_by_distance(arena, 4), 0.5 + 30, "s + relative[h, k - q + 4]"},
                 {rule_by_position(arena, 0.5), 0.5 - 0.5 * (40 - 20), "s - 0.5 * (key_bias[h, q] - key_bias[h, k])"},
                 {rule_softcap(arena, 2), 2 * tanh(0.5 / 2), "2 * tanh(s * 0.5)"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(pair_value(cases[i].rule, &at) == cases[i].value);
        Text text = text_new(arena);
        pair_print(&text, cases[i].rule);
        assert_string_equal(text.data, cases[i].text);
        assert_int_equal(pair_inputs(cases[i].rule), i < 3);
        for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
            assert_int_equal(pair_same(cases[i].rule, cases[k].rule), i == k);
    }
    assert_true(pair_same(rule_by_distance(arena, 7), rule_by_distance(arena, 7)));
    assert_false(pair_same(rule_by_distance(arena, 7), rule_by_distance(arena, 0)));
}

/* A product with a range that has no end is bounded by it, and by 0 where it meets 0 alone. */
static void bounds_of_products(void **state) {
    (void)state;
    const PairRange query = {-2, 3}, key = {0, 0};
    const PairRange plain = pair_range(two(PAIR_mul, q(), c(-4)), query, key);
    assert_true(plain.low == -12 && plain.high == 8);
    const PairRule *length = pair_input(arena, PAIR_number, 0, "n");
    const PairRange open = pair_range(two(PAIR_mul, q(), length), query, key);
    assert_true(open.low == -INFINITY && open.high == INFINITY);
    const PairRange none = pair_range(two(PAIR_mul, k(), length), query, key);
    assert_true(none.low == 0 && none.high == 0);
}

/* The graph's verifier proves that no index leaves its table. */
static void indices_stay(void **state) {
    (void)state;
    const Module *module = module_of("model m { d_model 8, queries <= 4, attention self { heads 2,\n"
                                     "position relative buckets 4 distance 5 per_layer } }");
    Op *op = module->entries[ENTRY_FORWARD]->ops;
    while (op->kind != OP_rescore) op++;
    verify(module, module->entries[ENTRY_FORWARD], "the test");
    for (int wrong = -1; wrong <= 1; wrong += 2) {
        op->a.rule = rule_by_distance(arena, 3 + wrong);
        assert_true(FAILS(verify(module, module->entries[ENTRY_FORWARD], "the test")));
        message_holds(EXIT_BUG, "at.low >= 0");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(bounds_are_the_rule), TEST(bounds_hold), TEST(printed),
                                       TEST(wide_windows_go), TEST(decided_choices_go), TEST(windows_of_caches),
                                       TEST(bounds_of_words), TEST(other_rules_are_left), TEST(rules_that_look_back),
                                       TEST(scores), TEST(bounds_of_products), TEST(indices_stay)};
    return cmocka_run_group_tests_name("pairs", tests, NULL, NULL);
}
