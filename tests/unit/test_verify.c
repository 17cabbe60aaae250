/* test_verify.c: the graph verifier refuses an operand of a wrong dtype, wherever it stands. */
#include "fixture.h"

/* The verifier finds something. */
static bool is_broken(const Module *module, const Graph *g) {
    if (!FAILS(verify(module, g, "the test"))) return false;
    assert_int_equal(trap.status, EXIT_BUG);
    return true;
}

/* Every tensor that an op reads or writes, with every other dtype; returns how many tensors were tried. */
static int try_dtypes(const Module *module, Graph *g, bool *ops) {
    int tried = 0;
    for (int o = 0; o < g->n_ops; o++) {
        const Op *op = &g->ops[o];
        ops[op->kind] = true;
        for (int n = -1; n < op->n_inputs; n++) {
            Tensor *tensor = &g->tensors[n < 0 ? op->result : op->inputs[n]];
            const Dtype right = tensor->dtype;
            for (int wrong = 0; wrong < DTYPE_COUNT; wrong++) {
                if ((Dtype)wrong == right) continue;
                tensor->dtype = (Dtype)wrong;
                if (!is_broken(module, g))
                    fail_msg("%s takes `%s` as %s", op_name(op->kind), tensor->name, dtype_name((Dtype)wrong));
                tensor->dtype = right;
            }
            tried++;
        }
    }
    assert_false(is_broken(module, g));
    return tried;
}

static const Module *divided_among(const char *text, int ranks) {
    Compilation c = compiled(text, STAGE_GRAPH);
    c.ranks = ranks;
    assert_true(compile_until(&c, STAGE_REWRITE));
    return c.module;
}

static void wrong_dtypes(void **state) {
    (void)state;
    static const char *const specs[] = {
        "model m { d_model 8, vocab 5, head logits softcap 30 scale 2, encoder { seq <= 6, segments 2, norm rmsnorm,\n"
        "position learned, layers 1 { attention self { heads 2, position relative, softcap 5 },\n"
        "ffn { d_ff 9, activation silu gated } } }\n"
        "decoder { seq <= 5, position sinusoidal, layers 1 {\n"
        "attention self { heads 2, position alibi, sink learned, clip 2, precision cache bf16 },\n"
        "attention cross { heads 2 } } } }",
        "model m { d_model 8, head pool l2, encoder { input patches image 6 patch 3 class distillation, layers 1 {\n"
        "attention self { heads 2, position rope } } } }",
        "model m { queries <= 4, keys <= 5, d_model 6, export lse, attention cross { score additive, d_score 4,\n"
        "mask given prefix, sink learned } }",
        "model m { d_model 8, vocab 5, encoder { seq <= 6, position none, layers 1 { ffn { d_ff 5, experts 4, top 2,\n"
        "activation silu gated limit 7 plus_one, router sigmoid corrected bias, shared_expert 3 gated } } } }",
        "model m { d_model 8, vocab 5, bias none, decoder { seq <= 6, position rope, layers 1 {\n"
        "attention self { heads 2, latent 6 rope 2 query 4 } } } }",
        "model m { d_model 8, encoder { input mel bins 3 frames 5, position content by_query by_key rows 4\n"
        "convolution { kernel 3 stride 2 }, layers 1 { attention self { heads 2 } } }\n"
        "head pool probe, probe { attention cross { heads 2, position none } } }",
        "model m { d_model 4, vocab 5, precision weights int8 activations int8\n"
        "encoder { seq <= 4, position none, embedding mask 2\nlayers 1 { attention self { heads 1 } } } }",
        "model m { d_model 4, vocab 5, head pool last skip 1, decoder { seq <= 4, position learned offset 1 skip 1,\n"
        "layers 1 { attention self { heads 2, position alibi bf16 } } } }",
        "model m { d_model 8, vocab 5, decoder { seq <= 4, input rows one 0..3, input rows other 0..5\n"
        "position learned at one, layers 1 { attention self { heads 2, position rope at one other sections 1 1 }\n"
        "attention self { heads 2, position alibi at other } } } }",
    };
    bool ops[OP_COUNT] = {false};
    int tried = 0;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        const Module *module = module_of(specs[i]);
        Graph *const *graphs = module->entries;
        for (int g = 0; g < ENTRY_COUNT; g++)
            if (graphs[g]) tried += try_dtypes(module, graphs[g], ops);
    }
    const Module *divided = divided_among("model m { d_model 20, vocab 40, encoder { seq <= 4, layers 1 {\n"
                                          "ffn { d_ff 20 } } } }", 2);
    tried += try_dtypes(divided, divided->entries[ENTRY_FORWARD], ops);
    for (int kind = 0; kind < OP_COUNT; kind++)
        if (!ops[kind]) fail_msg("no spec has the op %s", op_name((OpKind)kind));
    assert_true(tried > 100);
}

/* A softmax whose attributes and rule name other inputs than it has reads the wrong dtypes. */
static void inputs_of_softmax(void **state) {
    (void)state;
    const Module *module = module_of("model m { queries <= 4, keys <= 5, d_model 6, attention cross {\n"
                                     "heads 2, mask given, sink learned } }");
    Graph *g = module->entries[ENTRY_FORWARD];
    Op *op = NULL;
    for (int o = 0; o < g->n_ops; o++)
        if (g->ops[o].kind == OP_softmax) op = &g->ops[o];
    assert_non_null(op);
    assert_int_equal(op->n_inputs, 3);
    const PairRule *const rule = op->a.rule;
    assert_int_equal(pair_inputs(rule), 1);
    const PairRule *const others[] = {NULL, pair_input(arena, PAIR_number, 0, "mask"),
                                      pair_input(arena, PAIR_given, 1, "mask")};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        op->a.rule = others[i];
        assert_true(is_broken(module, g));
        op->a.rule = rule;
        assert_false(is_broken(module, g));
    }
    op->a.has_sink = false;
    assert_true(is_broken(module, g));
    op->a.has_sink = true;
    op->n_inputs = 2; /* the mask is named, and missing */
    assert_true(is_broken(module, g));
    op->n_inputs = 3;
    g->tensors[op->inputs[1]].dtype = DTYPE_U8;
    REFUSED(verify(module, g, "the test"), EXIT_BUG, "its input `attention.sink.weight` is U8, not F32");
}

/* Two inputs or outputs of one role would share an array. */
static void roles_apart(void **state) {
    (void)state;
    const Module *module = module_of("model m { d_model 8, vocab 5, head pool l2, encoder { seq <= 6, segments 2, "
                                     "position none,\n"
                                     "layers 1 { attention self { heads 2 }, ffn { d_ff 9 } } } }");
    Graph *g = module->entries[ENTRY_FORWARD];
    assert_int_equal(g->n_inputs, 2);
    const InputKind *kind = g->inputs[1].kind, again = {.role = IN_tokens, .name = kind->name};
    g->inputs[1].kind = &again;
    REFUSED(verify(module, g, "the test"), EXIT_BUG, "input `segments` has the role of another");
    g->inputs[1].kind = kind;
    const int segments = g->inputs[1].tensor;
    g->inputs[1].tensor = g->ops[0].result;
    REFUSED(verify(module, g, "the test"), EXIT_BUG, "input `segments` is no input");
    g->inputs[1].tensor = segments;
    assert_int_equal(g->n_outputs, 2);
    g->outputs[1].role = OUT_hidden;
    REFUSED(verify(module, g, "the test"), EXIT_BUG, "output `pooled` has the role of another");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(wrong_dtypes),
        TEST(inputs_of_softmax),
        TEST(roles_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
