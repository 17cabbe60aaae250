/* test_rules.c: scores and masks that the language has no words for, which passes of the test add, in the C and in the
 * interpreter; with the same bits on all targets, too. */
#include "rewritten.h"

static const PairRule *q(void) { return pair_leaf(arena, PAIR_query); }
static const PairRule *k(void) { return pair_leaf(arena, PAIR_key); }
static const PairRule *s(void) { return pair_leaf(arena, PAIR_score); }
static const PairRule *c(double value) { return pair_constant(arena, value); }
static const PairRule *two(PairOp op, const PairRule *a, const PairRule *b) { return pair_apply(arena, op, a, b); }
static const PairRule *one(PairOp op, const PairRule *a) { return two(op, a, NULL); }
static const PairRule *ahead(void) { return two(PAIR_sub, k(), q()); }
static const PairRule *distance(void) { return one(PAIR_abs, ahead()); }

enum { SCORES = 7, MASKS = 10 };

/* Each score makes the generator print other operations. */
static const PairRule *score(int i) {
    switch (i) {
    case 0: return two(PAIR_sub, s(), two(PAIR_mul, c(0.125), distance()));
    case 1: return two(PAIR_add, s(), one(PAIR_tanh, two(PAIR_mul, c(0.25), ahead())));
    case 2: return two(PAIR_mul, two(PAIR_add, s(), c(1)), one(PAIR_tanh, two(PAIR_mul, distance(), c(0.1))));
    case 3: return two(PAIR_add, one(PAIR_tanh, s()), two(PAIR_mul, k(), c(-0.0625)));
    case 4: return two(PAIR_sub, one(PAIR_abs, s()), q());
    case 5: return two(PAIR_min, two(PAIR_max, s(), c(-0.5)), two(PAIR_mul, c(0.0625), k()));
    default: return two(PAIR_add, s(), two(PAIR_mul, s(), s()));
    }
}

/* Each mask has other bounds, alone and together with the bounds of a spec. */
static const PairRule *mask(int i) {
    switch (i) {
    case 0: return two(PAIR_below, k(), q()); /* the first row sees nothing */
    case 1: return two(PAIR_at_most, c(3), two(PAIR_sub, q(), k()));
    case 2: return two(PAIR_at_most, two(PAIR_sub, q(), k()), c(5)); /* a window that has no end */
    case 3: return two(PAIR_differs, k(), q());
    case 4: return two(PAIR_below, c(2), distance()); /* leading keys end before the row, the window begins after it */
    case 5: return two(PAIR_at_most, one(PAIR_abs, two(PAIR_sub, k(), c(4))), q());
    case 6: return two(PAIR_or, two(PAIR_below, k(), c(5)), two(PAIR_at_most, c(9), k()));
    case 7:
        return two(PAIR_or, two(PAIR_at_most, k(), two(PAIR_add, q(), c(1.5))),
                   two(PAIR_below, two(PAIR_add, k(), c(1)), c(7)));
    case 8: /* two windows, of which one is a condition */
        return two(PAIR_and, two(PAIR_at_most, distance(), c(7)),
                   two(PAIR_or, two(PAIR_below, ahead(), c(2)), two(PAIR_below, k(), c(3))));
    default: /* a band of rows sees no key */
        return two(PAIR_or, two(PAIR_below, q(), c(3)),
                   two(PAIR_and, two(PAIR_below, c(5), q()), two(PAIR_differs, k(), c(1))));
    }
}

/* Inputs that io.def does not name. */
static const InputKind kinds[] = {
    {IN_COUNT, "reach", "reaches", DTYPE_I64, PER_SEQUENCE, ABSENT_ZEROS, false},
    {IN_COUNT + 1, "seen", "seen", DTYPE_U8, PER_PAIR, ABSENT_NOTHING, false},
};

/* Each rule may be NULL. The mask reads `inputs` of the kinds. */
typedef struct Added {
    const PairRule *score, *mask;
    int inputs;
} Added;

static Added added;

static int past_of(const Graph *g) {
    int i = 0;
    while (g->ops[i].kind != OP_softmax) i++;
    return g->ops[i].a.past;
}

static void add_inputs(Rewrite *r) {
    const Op *softmax = r->from->ops;
    while (softmax->kind != OP_softmax) softmax++;
    const Tensor *scores = &r->from->tensors[softmax->inputs[0]];
    for (int i = 0; i < added.inputs; i++) {
        const bool pairs = kinds[i].rows == PER_PAIR;
        const Tensor tensor = {.kind = TENSOR_INPUT, .name = kinds[i].name, .dtype = kinds[i].dtype,
                               .rank = pairs ? 2 : 1, .dims = {pairs ? scores->dims[1] : (Dim){0, 1}, scores->dims[2]}};
        const GraphInput input = {.kind = &kinds[i], .tensor = graph_tensor(r->arena, r->to, tensor), .most = 30};
        r->to->inputs[r->to->n_inputs++] = input;
        module_input(r->module, &kinds[i]);
    }
}

/* The operation with its mask and the mask that is added, of which one has no inputs. */
static int with_mask(Rewrite *r, const Op *op) {
    Op changed = *op;
    int *inputs = arena_array(arena, (size_t)(op->n_inputs + added.inputs), sizeof *inputs);
    memcpy(inputs, rewrite_inputs(r, op), (size_t)op->n_inputs * sizeof *inputs);
    changed.a.rule = pair_both(arena, op->a.rule, added.mask);
    for (int i = 0; i < added.inputs; i++)
        inputs[changed.n_inputs++] = graph_input(r->to, kinds[i].role)->tensor;
    return rewrite_as(r, &changed, inputs);
}

static int with_rules(Rewrite *r, const Op *op) {
    const bool is_score = op->kind == OP_scores || op->kind == OP_additive_scores;
    if (op->kind == OP_softmax || op->kind == OP_weighted_sum) return with_mask(r, op);
    const int t = rewrite_copy(r, op);
    if (!is_score || !added.score) return t;
    const OpAttributes a = {.rule = added.score, .past = past_of(r->from)};
    return rewrite_add(r, op, OP_rescore, a, r->to->tensors[t], 1, &t);
}

static const RewritePass pass = {.name = "ruled", .begin = add_inputs, .op = with_rules};

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

/* Masks meet those of the language, and are alone where rows see all keys; 6: every loop is written out. */
static const char *const masked[] = {
    ENCODER("attention self { heads 2 }"),
    "model m { d_model 24, queries <= 40, keys <= 30, attention cross { heads 2, window 6, sink 3 } }",
    DECODER("position rope"),
    "model m { d_model 24, queries <= 40, attention self { heads 2, mask given, sink learned } }",
    DECODER("mask prefix, position rope"),
    DECODER("window 9, position rope"),
    "model m { unroll full, d_model 16, vocab 19, encoder { seq = 11, layers 1 { attention self { heads 2 } } } }",
    "model m { d_model 16, queries <= 700, attention self { heads 1 } }",
};

static Compilation with(const char *text, Added rules, bool maps) {
    Compilation spec = compiled(text, STAGE_MODEL);
    if (maps) model_export_all(spec.model);
    compile_until(&spec, STAGE_REWRITE);
    added = rules;
    spec.module = graph_rewrite(arena, spec.module, &pass, NULL);
    return spec;
}

static void run(const char *text, int new_score, int new_mask, bool reproducible) {
    const Added rules = {new_score < 0 ? NULL : score(new_score), new_mask < 0 ? NULL : mask(new_mask), 0};
    Compilation spec = with(text, rules, new_mask % 3 == 1 && !reproducible);
    const Weights *weights = weights_load(arena, spec.model, &spec.module->weights, "random:7", UNUSED_UNSAID);
    spec.reproducible = reproducible;
    check_rewritten(&spec, weights, arena_printf(arena, "score %d, mask %d of %s", new_score, new_mask, text), NULL);
}

static void scores_are_computed(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
        for (int n = 0; n < SCORES; n++)
            if (getenv("ATTNC_LONG") || n % 5 == (int)i) run(specs[i], n, -1, false);
}

static void masks_are_kept(void **state) {
    (void)state;
    const int n = sizeof masked / sizeof *masked;
    for (int i = 0; i < n; i++)
        for (int m = 0; m < MASKS; m++)
            if (getenv("ATTNC_LONG") || m % n == i || (m + 3) % n == i) run(masked[i], -1, m, false);
}

/* Masks that read inputs which no spec can state, alone and together with a mask of the spec. */
static void inputs_are_read(void **state) {
    (void)state;
    const PairRule *reach = pair_input(arena, PAIR_number, 0, "reach");
    const PairRule *seen = pair_input(arena, PAIR_given, 1, "seen");
    const PairRule *rules[] = {
        two(PAIR_below, k(), reach), two(PAIR_at_most, two(PAIR_add, k(), reach), two(PAIR_add, q(), c(9))),
        two(PAIR_or, two(PAIR_differs, seen, c(1)), two(PAIR_below, two(PAIR_add, q(), c(2)), reach)),
        two(PAIR_and, two(PAIR_or, two(PAIR_below, k(), reach), two(PAIR_at_most, k(), q())),
            two(PAIR_differs, seen, c(0))),
    };
    for (int i = 0; i < 4; i++) {
        const Added by = {NULL, rules[i], i < 2 ? 1 : 2};
        Compilation spec = with(masked[i % 2 ? 1 : 6 * (i / 2)], by, false);
        const Weights *weights = weights_load(arena, spec.model, &spec.module->weights, "random:7", UNUSED_UNSAID);
        check_rewritten(&spec, weights, arena_printf(arena, "inputs, rule %d", i), NULL);
    }
}

/* Masks that the templates cannot print end with a located failure. */
static void others_are_refused(void **state) {
    (void)state;
    const PairRule *seen = pair_input(arena, PAIR_given, 1, "seen");
    const struct {
        const PairRule *rule;
        const char *message;
    } cases[] = {
        {two(PAIR_below, k(), two(PAIR_mul, q(), c(0.5))), "a mask of numbers that are not whole"},
        {two(PAIR_below, one(PAIR_tanh, q()), c(0.5)), "other than comparisons of whole numbers"},
        {two(PAIR_or, two(PAIR_below, k(), q()), one(PAIR_tanh, k())), "a mask that is no comparison"},
        {two(PAIR_differs, seen, c(0.5)), "compares its bytes with other than a whole number"},
        {two(PAIR_below, seen, c(1)), "other than comparisons of whole numbers"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Compilation spec = with(masked[0], (Added){NULL, cases[i].rule, i < 3 ? 0 : 2}, false);
        assert_true(FAILS(compile_until(&spec, STAGE_PLAN)));
        message_holds(EXIT_CANNOT, cases[i].message);
        message_holds(EXIT_CANNOT, "spec:2:");
    }
    const PairRule *reach = pair_input(arena, PAIR_number, 0, "reach");
    Compilation spec = with(DECODER("position rope"), (Added){NULL, two(PAIR_below, k(), reach), 1}, false);
    compile_until(&spec, STAGE_PLAN); /* a state keeps the number of a sequence */
}

static void rules_have_the_same_bits(void **state) {
    (void)state;
    for (int n = 0; n < SCORES; n++) run(specs[n % 2 ? 4 : 0], n, n, true);
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(scores_are_computed), TEST(masks_are_kept), TEST(inputs_are_read),
                                       TEST(others_are_refused), TEST(rules_have_the_same_bits)};
    return cmocka_run_group_tests_name("rules", tests, NULL, NULL);
}
