/* test_scores.c: rules of scores that the language has no words for, which passes of the test add: the C of the best
 * and the last target of this machine, and with ATTNC_LONG=1 of all, against the interpreter; with the same bits on
 * all targets, the interpreter's bits. */
#include "tested_targets.h"

#include "../../compiler/rewrite/rewrite.h"

#include <math.h>

static const PairRule *q(void) { return pair_leaf(arena, PAIR_query); }
static const PairRule *k(void) { return pair_leaf(arena, PAIR_key); }
static const PairRule *s(void) { return pair_leaf(arena, PAIR_score); }
static const PairRule *c(double value) { return pair_constant(arena, value); }
static const PairRule *two(PairOp op, const PairRule *a, const PairRule *b) { return pair_apply(arena, op, a, b); }
static const PairRule *one(PairOp op, const PairRule *a) { return two(op, a, NULL); }
static const PairRule *distance(void) { return one(PAIR_abs, two(PAIR_sub, q(), k())); }

/* Each rule makes the generator print other operations. */
static const PairRule *rule(int i) {
    const PairRule *ahead = two(PAIR_sub, k(), q());
    switch (i) {
    case 0: return two(PAIR_sub, s(), two(PAIR_mul, c(0.125), distance()));
    case 1: return two(PAIR_add, s(), one(PAIR_tanh, two(PAIR_mul, c(0.25), ahead)));
    case 2: return two(PAIR_mul, two(PAIR_add, s(), c(1)), one(PAIR_tanh, two(PAIR_mul, distance(), c(0.1))));
    case 3: return two(PAIR_add, one(PAIR_tanh, s()), two(PAIR_mul, k(), c(-0.0625)));
    case 4: return two(PAIR_sub, one(PAIR_abs, s()), q());
    case 5: return two(PAIR_add, s(), two(PAIR_mul, s(), s()));
    default: return NULL;
    }
}

static const PairRule *added;

static int past_of(const Graph *g) {
    int i = 0;
    while (g->ops[i].kind != OP_softmax) i++;
    return g->ops[i].a.past;
}

static int with_rule(Rewrite *r, const Op *op) {
    const int t = rewrite_copy(r, op);
    const OpAttributes a = {.rule = added, .past = past_of(r->from)};
    const bool is_score = op->kind == OP_scores || op->kind == OP_additive_scores;
    return is_score ? rewrite_add(r, op, OP_rescore, a, r->to->tensors[t], 1, &t) : t;
}

static const RewritePass pass = {.name = "rescored", .op = with_rule};

#define DECODER(words)                                                                                               \
    "model m { d_model 24, vocab 19, head logits, norm rmsnorm pre\n"                                                 \
    "decoder { seq <= 40, layers 1 { attention self { heads 3, " words " } } } }"
#define ENCODER(words)                                                                                               \
    "model m { d_model 24, vocab 19, head logits, encoder { seq = 12, position none, layers 1 {\n" words " } } }"

static const char *const specs[] = {
    DECODER("position alibi, softcap 2"),
    "model m { d_model 24, queries <= 40, attention self { score additive, d_score 8, softcap 2, sink learned } }",
    DECODER("position relative buckets 8 distance 20, mask window 9"),
    DECODER("sink learned, position alibi bf16"), ENCODER("attention self { heads 2, softcap 1 }"),
};

static bool is_right(double number, double wanted, bool exact) {
    return exact ? number == wanted : fabs(number - wanted) <= 2e-5 * fmax(1, fabs(wanted));
}

static void compare(const Sequence *wanted, const Sequence *made, const char *how, int n, bool exact) {
    int64_t count;
    assert_true(shape_elements(wanted->outputs[0].shape, &count));
    for (int64_t i = 0; i < count; i++)
        if (!is_right(made->outputs[0].data[i], wanted->outputs[0].data[i], exact))
            fail_msg("%s, rule %d: %g at %d, not %g", how, n, (double)made->outputs[0].data[i], (int)i,
                     (double)wanted->outputs[0].data[i]);
}

/* Compares the C of some targets with the interpreter, for the spec with rule n added. */
static void run(const char *spec, int n, bool reproducible) {
    Compilation whole = compiled(spec, STAGE_REWRITE);
    added = rule(n);
    whole.module = graph_rewrite(arena, whole.module, &pass);
    whole.reproducible = reproducible;
    const Graph *forward = whole.module->entries[ENTRY_FORWARD];
    const Weights *weights = weights_load(arena, whole.model, &whole.module->weights, "random:7", UNUSED_UNSAID);
    int count = 0;
    const Arithmetic arithmetic = reproducible ? reproducible_arithmetic(whole.module) : ARITHMETIC_FREE;
    const char *const *targets = targets_to_test(whole.module, arithmetic, &count);
    const EngineOptions options = {.targets = targets, .n_targets = count, .threads = 1, .level = "-O0"};
    Engine *engine = engine_new(arena, &whole, weights, &options);
    Sequence wanted = {0}, made;
    sequence_lengths(forward, &wanted, 12, 0);
    sequence_fill(arena, forward, &wanted, &(RandomInputs){.seed = 5, .key = "scores"});
    made = wanted;
    Batch of_wanted = {.sequences = &wanted, .count = 1}, of_made = {.sequences = &made, .count = 1};
    batch_interpret(arena, whole.module, weights, arithmetic, &of_wanted);
    for (int t = 0; t < count; t++) {
        engine->call.target = targets[t];
        engine_init(engine);
        engine_run(arena, engine, &of_made);
        compare(&wanted, &made, arena_printf(arena, "%s: %s", targets[t], spec), n, reproducible);
    }
}

static void rules_are_computed(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
        for (int n = 0; rule(n); n++)
            if (getenv("ATTNC_LONG") || n % 5 == (int)i) run(specs[i], n, false);
}

static void rules_have_the_same_bits(void **state) {
    (void)state;
    for (int n = 0; rule(n); n++) run(specs[n % 2 ? 4 : 0], n, true);
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(rules_are_computed), TEST(rules_have_the_same_bits)};
    return cmocka_run_group_tests_name("scores", tests, NULL, NULL);
}
