/* test_build.c: what the builder and the passes make of positions, shared weights and partly biased products; and
 * which tensors of a file are spoken of as unused. */
#include "scratch_folder.h"

#include <math.h>

static Plan *plan_of(const char *text) { return program_of(text)->entries[ENTRY_FORWARD]; }

static const WeightSpec *weight_named(const Module *module, const char *name) {
    return weight_spec_find(&module->weights, name);
}

static void near(double found, double wanted) {
    if (!(fabs(found - wanted) <= 1e-12)) fail_msg("%.17g is not %.17g", found, wanted);
}

static bool same_shape(const WeightSpec *spec, int64_t rows, int64_t columns) {
    return spec && spec->shape.rank == 2 && spec->shape.dims[0] == rows && spec->shape.dims[1] == columns;
}

/* ------------------------------------------------------------------ positions */

/* MPNet: what is added to the embedding and what is added to the scores are two things. */
static void learned_and_relative(void **state) {
    (void)state;
    Module *m = module_of("model m { d_model 8, vocab 5, encoder { seq <= 6, position learned offset 2\n"
                          "layers 2 { attention self { heads 2, position relative buckets 4 distance 5 } } } }");
    assert_true(same_shape(weight_named(m, "encoder.embedding.positions.weight"), 8, 8));
    assert_true(same_shape(weight_named(m, "encoder.relative.weight"), 4, 2));
    int biased = 0, added = 0;
    for (int o = 0; o < m->entries[ENTRY_FORWARD]->n_ops; o++) {
        biased += m->entries[ENTRY_FORWARD]->ops[o].kind == OP_rescore;
        added += m->entries[ENTRY_FORWARD]->ops[o].kind == OP_take_rows;
    }
    assert_int_equal(biased, 2);
    assert_int_equal(added, 1);
    Text text = text_new(arena);
    model_print(&text, m->model, false);
    assert_non_null(strstr(text.data, "position learned offset 2"));
    assert_non_null(strstr(text.data, "shared by 2 heads: position relative buckets 4"));
}

static void relative_for_all(void **state) {
    (void)state;
    Module *m = module_of(
        "model m { d_model 8, vocab 5, encoder { seq <= 6, position relative\n"
        "layers 1 { layer { attention self { heads 2 } } }, layers 1 { attention self { heads 2, mask causal } } } }");
    assert_true(same_shape(weight_named(m, "encoder.relative.weight"), 32, 2));
    assert_null(weight_named(m, "encoder.embedding.positions.weight"));
    assert_int_equal(m->n_derived, 2); /* the causal layer counts its buckets in one direction */
}

/* A matrix knows the norm that gives its rows; one that multiplies other rows, or is looked up, has none. */
static void norms_of_matrices(void **state) {
    (void)state;
    Module *m = module_of("model m { d_model 8, vocab 5, norm layernorm pre, decoder { seq <= 6, position learned\n"
                          "layers 2 { attention self { heads 2, mask causal }, ffn { d_ff 16 } } }, "
                          "head logits tied }");
    const WeightSpec *query = weight_named(m, "decoder.layers.1.attention.query.weight"),
                     *up = weight_named(m, "decoder.layers.1.ffn.up.weight");
    assert_string_equal(m->weights.specs[query->gain - 1].name, "decoder.layers.1.attention.norm_in.weight");
    assert_string_equal(m->weights.specs[up->gain - 1].name, "decoder.layers.1.ffn.norm_in.weight");
    assert_string_equal(m->weights.specs[up->shift - 1].name, "decoder.layers.1.ffn.norm_in.bias");
    assert_int_equal(weight_named(m, "decoder.layers.1.ffn.down.weight")->gain, 0);
    assert_int_equal(weight_named(m, "decoder.layers.1.attention.output.weight")->gain, 0);
    assert_int_equal(weight_named(m, "decoder.embedding.tokens.weight")->gain, 0);
}

/* Every number of a rotation makes a table of its own, equal numbers share one. */
static void rotations_are_told_apart(void **state) {
    (void)state;
    static const char *const others[] = {
        "llama3 factor 8 low 1 high 4 original 16",
        "llama3 factor 8 low 2 high 4 original 16",
        "llama3 factor 8 low 1 high 5 original 16",
        "llama3 factor 8 low 1 high 4 original 17",
        "llama3 factor 9 low 1 high 4 original 16",
        "yarn factor 8 original 16",
        "yarn factor 8 original 16 beta_fast 31",
        "yarn factor 8 original 16 beta_slow 2",
        "yarn factor 8 original 16 untruncated",
        "yarn factor 8 original 16 attention_factor 1.5",
        "longrope factor 8 original 16 short 1 2 long 3 4",
        "longrope factor 8 original 16 short 1 3 long 3 4",
        "longrope factor 8 original 16 short 1 2 long 3 5",
        "linear factor 8",
        "theta 500",
    };
    enum { N = sizeof others / sizeof *others };
    for (int a = 0; a < N; a++)
        for (int b = 0; b < N; b++) {
            Module *m = module_of(arena_printf(arena,
                                               "model m { d_model 8, vocab 5, encoder { seq <= 16, layers 2 {\n"
                                               "layer { attention self { heads 2, position rope %s } }\n"
                                               "layer { attention self { heads 2, position rope %s } } } } }",
                                               others[a], others[b]));
            if (m->n_derived != (a == b ? 2 : 4))
                fail_msg("`%s` and `%s` make %d tables", others[a], others[b], m->n_derived);
        }
}

/* A grid is told from rows, and by its base; its rows are those of the image with those in front of it. */
static void rotations_on_a_grid(void **state) {
    (void)state;
    static const char *const others[] = {"grid", "grid theta 100", "theta 100", "grid partial 0.5"};
    enum { N = sizeof others / sizeof *others };
    for (int a = 0; a < N; a++)
        for (int b = 0; b < N; b++) {
            Module *m = module_of(arena_printf(
                arena,
                "model m { d_model 16, encoder { input patches image 4 width 6 patch 2 class registers 2, layers 2 {\n"
                "layer { attention self { heads 2, position rope %s } }\n"
                "layer { attention self { heads 2, position rope %s } } } } }",
                others[a], others[b]));
            if (m->n_derived != (a == b ? 2 : 4))
                fail_msg("`%s` and `%s` make %d tables", others[a], others[b], m->n_derived);
            assert_int_equal(m->derived[0].shape.dims[0], 9);
        }
}

/* Stacks of different bounds turned alike: each needs its own number of rows. */
static void rotations_of_two_bounds(void **state) {
    (void)state;
    Module *m = module_of(
        "model m { d_model 8, vocab 5, encoder { seq <= 3, layers 1 { attention self { heads 2, position rope } } }\n"
        "decoder { seq <= 30, layers 1 { attention self { heads 2, position rope }, attention cross { heads 2 } } } }");
    assert_int_equal(m->n_derived, 4);
    for (int d = 0; d < 4; d++) assert_int_equal(m->derived[d].shape.dims[0], d < 2 ? 3 : 30);
}

/* ------------------------------------------------------------------ longrope */

#define LONGROPE(seq, original) \
    "model m { d_model 4, vocab 5, norm none, encoder { seq " seq "\n" \
    "layers 1 { attention self { heads 1, residual no, position rope longrope factor 2 original " original \
    " short 1 1.5 long 2 4 } } } }"

/* Row `row` of the rotated queries over the queries themselves, as the angle of pair `pair`. */
static double angle_of(Module *m, int64_t rows, int64_t row, int pair) {
    const Graph *g = m->entries[ENTRY_FORWARD];
    Weights *weights = weights_load(arena, m->model, &m->weights, "random:3", false);
    int64_t ids[8] = {1, 2, 3, 4, 0, 1, 2, 3};
    InputArray input = {IN_tokens, DTYPE_I64, rows, ids};
    Interpretation *in = interpret(arena, m, g, weights, &input, 1, &rows);
    for (int o = 0; o < g->n_ops; o++)
        if (g->ops[o].kind == OP_rope) {
            const double *x = in->tensors[g->ops[o].inputs[0]] + row * 4, *y = in->tensors[g->ops[o].result] + row * 4;
            double cross = x[pair] * y[pair + 2] - x[pair + 2] * y[pair],
                   dot = x[pair] * y[pair] + x[pair + 2] * y[pair + 2];
            return atan2(cross, dot);
        }
    return NAN;
}

static void longrope_by_the_rows_at_hand(void **state) {
    (void)state;
    Module *m = module_of(LONGROPE("<= 8", "4"));
    for (int64_t rows = 1; rows <= 8; rows++)
        for (int64_t row = 0; row < rows; row++) {
            double slow = (double)row * 0.01; /* theta^(-2/4) */
            near(angle_of(m, rows, row, 1), rows > 4 ? slow / 4 : slow / 1.5);
            if (row < 3) near(angle_of(m, rows, row, 0), rows > 4 ? (double)row / 2 : (double)row);
        }
    near(angle_of(module_of(LONGROPE("<= 4", "4")), 3, 2, 1), 0.02 / 1.5);
    near(angle_of(module_of(LONGROPE("= 5", "4")), 5, 2, 1), 0.02 / 4);
    near(angle_of(module_of(LONGROPE("= 4", "4")), 4, 2, 1), 0.02 / 1.5);
}

/* ------------------------------------------------------------------ packed biases */

static const Step *gemm_named(const Plan *plan, const char *name) {
    for (int i = 0; i < plan->n_steps; i++)
        if (plan->steps[i].kind == STEP_GEMM && strcmp(plan->steps[i].name, name) == 0) return &plan->steps[i];
    fail_msg("no step %s", name);
    return NULL;
}

static void check_parts(const Plan *plan, const Step *step) {
    const char *const parts[] = {"query.bias", "key.weight.zeros", "value.bias"};
    for (int i = 0; i < 3; i++) {
        const Packed *p = &plan->program->packed[step->gemm.bias + i];
        const char *name = strstr(p->slot.name, "attention.");
        assert_non_null(name);
        assert_string_equal(name + strlen("attention."), parts[i]);
        assert_int_equal(p->slot.offset, plan->program->packed[step->gemm.bias].slot.offset + ALIGNMENT * i);
    }
}

/* Layers that share weights read the same biases, and the same zeros where a part has none. */
static void zeros_are_shared(void **state) {
    (void)state;
    Plan *plan = plan_of("model m { d_model 8, vocab 5, encoder { seq <= 6, layers 3 shared { attention self { heads "
                         "2, bias q v } } } }");
    const Step *first = gemm_named(plan, "layer0_attention_query_key_value"),
               *third = gemm_named(plan, "layer2_attention_query_key_value");
    check_parts(plan, first);
    assert_int_equal(first->gemm.bias, third->gemm.bias);
    int zeros = 0;
    for (int i = 0; i < plan->program->n_packed; i++)
        zeros += plan->program->packed[i].weight < 0 && plan->program->packed[i].derived < 0;
    assert_int_equal(zeros, 1);
}

static void zeros_of_every_layer(void **state) {
    (void)state;
    Plan *plan = plan_of(
        "model m { d_model 8, vocab 5, encoder { seq <= 6, layers 2 { attention self { heads 2, bias q v } } } }");
    check_parts(plan, gemm_named(plan, "layer0_attention_query_key_value"));
    check_parts(plan, gemm_named(plan, "layer1_attention_query_key_value"));
}

/* ------------------------------------------------------------------ ignored tensors */

static const char *notes_of(const char *ignored, const char *extra) {
    const char *file = in_folder("w.safetensors"), *log = in_folder("log");
    Module *m = module_of(
        arena_printf(arena,
                     "model m { attention cross { score general, d_query 1, d_key 1, queries = 1, keys = 1 }\n"
                     "weights { prefix \"bert.\" \"model.\"\n%s } }",
                     ignored));
    float one = 1;
    NamedTensor tensors[] = {{"attention.score.weight", {2, {1, 1}}, &one}, {extra, {1, {1}}, &one}};
    safetensors_write(arena, file, tensors, 2);
    fflush(stderr);
    int kept = dup(2);
    assert_non_null(freopen(log, "w", stderr));
    weights_load(arena, m->model, &m->weights, file, UNUSED_LISTED);
    fflush(stderr);
    assert_true(dup2(kept, 2) == 2);
    close(kept);
    size_t size;
    return file_read(arena, log, 1 << 16, &size);
}

static void expect_note(const char *ignored, const char *extra, bool note) {
    const char *text = notes_of(ignored, extra);
    if ((strstr(text, extra) != NULL) != note) fail_msg("ignore %s, tensor %s: `%s`", ignored, extra, text);
}

static void ignored_tensors(void **state) {
    (void)state;
    expect_note("", "pooler.weight", true);
    expect_note("ignore \"pooler.*\"", "pooler.weight", false);
    expect_note("ignore \"pooler.weight\"", "pooler.weights", true);
    expect_note("ignore \"pooler.weight\"", "pooler.weigh", true);
    expect_note("ignore \"pooler.*\"", "bert.pooler.weight", false);
    expect_note("ignore \"a\" \"pooler.weight\"", "model.pooler.weight", false);
    expect_note("ignore \"pooler.*\"", "other.pooler.weight", true);
    expect_note("ignore \"h.{layer}.attn.bias\"", "h.11.attn.bias", false);
    expect_note("ignore \"h.{layer}.attn.bias\"", "model.h.0.attn.bias", false);
    expect_note("ignore \"h.{layer}.attn.bias\"", "h.x.attn.bias", true);
    expect_note("ignore \"h.{layer}.attn.bias\"", "h.11.attn.biases", true);
    expect_note("ignore \"h.{layer}.attn.*\"", "h.3.attn.masked.bias", false);
}

/* ------------------------------------------------------------------ the part of the model that a tensor belongs to */

/* What the name of a value says, its site says too. */
static void sites_spell_the_names(const Graph *g) {
    for (int t = 0; t < g->n_tensors; t++) {
        const Tensor *tensor = &g->tensors[t];
        const Site *site = &tensor->site;
        assert_non_null(site->part);
        if (tensor->kind != TENSOR_VALUE && tensor->kind != TENSOR_STATE) continue;
        const char *stack = site->stack ? arena_printf(arena, "%s.", site->stack) : "";
        if (site->layer >= 0) stack = arena_printf(arena, "%slayers.%d.", stack, site->layer);
        char *spelled = arena_printf(arena, "%s%s", stack, tensor->name + strlen(stack));
        assert_string_equal(spelled, tensor->name);
        char *part = arena_printf(arena, "%s", tensor->name + strlen(stack));
        for (char *c = part; *c; c++)
            if (*c == '.') *c = '_';
        assert_string_equal(site->part, part);
    }
}

static const Tensor *tensor_named(const Graph *g, const char *name) {
    for (int t = 0; t < g->n_tensors; t++)
        if (strcmp(g->tensors[t].name, name) == 0) return &g->tensors[t];
    fail_msg("no tensor `%s`", name);
    return NULL;
}

static void expect_site(const Graph *g, const char *name, const char *stack, int layer, const char *part, Role role) {
    const Site *site = &tensor_named(g, name)->site;
    assert_int_equal(stack != NULL, site->stack != NULL);
    if (stack) assert_string_equal(site->stack, stack);
    assert_int_equal(site->layer, layer);
    assert_string_equal(site->part, part);
    assert_int_equal(site->role, role);
}

static void sites_of_two_stacks(void **state) {
    (void)state;
    Module *m = module_of(
        "model m { d_model 8, vocab 5, head logits, embedding tied, encoder { seq <= 6, final_norm yes,\n"
        "layers 2 { attention self { heads 2, qk_norm rmsnorm, position rope }, ffn { d_ff 12 } } }\n"
        "decoder { seq <= 5, layers 2 shared { attention self { heads 2 }, attention cross { heads 2 } } } }");
    Graph *const *graphs = m->entries;
    for (int i = 0; i < ENTRY_COUNT; i++) sites_spell_the_names(graphs[i]);
    const Graph *g = m->entries[ENTRY_FORWARD];
    expect_site(g, "encoder.layers.1.attention.query", "encoder", 1, "attention_query", ROLE_QUERY);
    expect_site(g, "encoder.layers.1.attention.query_norm", "encoder", 1, "attention_query_norm", ROLE_QUERY);
    expect_site(g, "encoder.layers.0.attention.key_rope", "encoder", 0, "attention_key_rope", ROLE_KEY);
    expect_site(g, "encoder.layers.0.attention.value", "encoder", 0, "attention_value", ROLE_VALUE);
    expect_site(g, "encoder.layers.0.ffn.up", "encoder", 0, "ffn_up", ROLE_NONE);
    expect_site(g, "encoder.final_norm", "encoder", -1, "final_norm", ROLE_NONE);
    expect_site(g, "encoder.embedding.looked_up", "encoder", -1, "embedding_looked_up", ROLE_NONE);
    expect_site(g, "decoder.layers.1.cross_attention.key", "decoder", 1, "cross_attention_key", ROLE_KEY);
    expect_site(g, "logits", NULL, -1, "logits", ROLE_NONE);
    expect_site(m->entries[ENTRY_DECODE], "decoder.layers.1.attention.keys", "decoder", 1, "attention_keys", ROLE_KEY);
    assert_true(m->entries[ENTRY_ENCODE]->n_states == 4);
    assert_string_equal(m->entries[ENTRY_ENCODE]->states[3].site.part, "cross_attention_values");
    assert_int_equal(m->entries[ENTRY_ENCODE]->states[3].site.layer, 1);
    assert_int_equal(m->entries[ENTRY_ENCODE]->states[3].site.role, ROLE_VALUE);
}

static void sites_of_narrow_rows(void **state) {
    (void)state;
    static const struct {
        const char *precision, *word;
    } cases[] = {{"weights bf16 activations bf16", "rounded"},
                 {"weights int8 activations int8", "quantized"},
                 {"weights int8 activations int8 smooth", "smoothed"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const Module *m = module_of(arena_printf(arena, "model m { d_model 4, vocab 5, precision %s, encoder { "
                                                 "seq <= 2, position none, layers 1 { ffn { d_ff 4 } } } }",
                                                 cases[i].precision));
        const char *name = arena_printf(arena, "encoder.layers.0.ffn.norm_in.%s", cases[i].word);
        expect_site(m->entries[ENTRY_FORWARD], name, "encoder", 0,
                    arena_printf(arena, "ffn_norm_in_%s", cases[i].word), ROLE_NONE);
    }
}

static void sites_of_attention_alone(void **state) {
    (void)state;
    Module *m = module_of(
        "model m { d_model 8, queries <= 4, keys <= 5, attention cross { heads 2, qk_norm rmsnorm } }");
    sites_spell_the_names(m->entries[ENTRY_FORWARD]);
    expect_site(m->entries[ENTRY_FORWARD], "attention.key_norm", NULL, -1, "attention_key_norm", ROLE_KEY);
    expect_site(m->entries[ENTRY_FORWARD], "key", NULL, -1, "key", ROLE_NONE);
}

static const GraphOutput *output_of(const Graph *graph, OutputRole role) {
    for (int o = 0; o < graph->n_outputs; o++)
        if (graph->outputs[o].role == role) return &graph->outputs[o];
    fail_msg("%s has no output %s", graph->name, output_name(role));
    abort();
}

/* The roles of what a call is given and gives, in each of the three graphs. */
static void roles_of_arrays(void **state) {
    (void)state;
    Module *m = module_of("model m { d_model 8, vocab 7, head logits\n"
                          "encoder { seq <= 6, segments 3, position none, layers 1 { attention self { heads 2 } } }\n"
                          "decoder { seq <= 5, position none, layers 1 {\n"
                          "attention self { heads 2, mask causal prefix }, attention cross { heads 2 } }\n"
                          "export attention } }");
    const Graph *forward = m->entries[ENTRY_FORWARD];
    const GraphInput *source = graph_input(forward, IN_source), *target = graph_input(forward, IN_target);
    assert_true(source->of_source && graph_input(forward, IN_segments)->of_source && !target->of_source);
    assert_int_equal(graph_table_rows(m->entries[ENTRY_FORWARD], source), 7);
    assert_int_equal(graph_table_rows(forward, graph_input(forward, IN_segments)), 3);
    const GraphInput *prefix = graph_input(m->entries[ENTRY_DECODE], IN_prefix_length);
    assert_int_equal(graph_table_rows(m->entries[ENTRY_DECODE], prefix), 0);
    assert_int_equal(prefix->most, 5);
    assert_ptr_equal(graph_input_named(m->entries[ENTRY_DECODE], "prefix_length"), prefix);
    assert_non_null(graph_input(m->entries[ENTRY_DECODE], IN_tokens));
    assert_null(graph_input(m->entries[ENTRY_FORWARD], IN_tokens));
    assert_null(graph_input(m->entries[ENTRY_ENCODE], IN_target));
    assert_false(output_of(m->entries[ENTRY_FORWARD], OUT_logits)->of_sequence);
    assert_true(output_of(m->entries[ENTRY_DECODE], OUT_logits)->of_sequence); /* of the last row alone */
    assert_int_equal(graph_output_heads(m->entries[ENTRY_DECODE], OUT_attention), 2);
    assert_int_equal(graph_output_heads(m->entries[ENTRY_FORWARD], OUT_encoder_attention), 0);
    assert_int_equal(output_named("cross_attention"), OUT_cross_attention);
    assert_int_equal(output_named("tokens"), OUT_COUNT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(learned_and_relative),
        TEST(relative_for_all),
        TEST(rotations_are_told_apart),
        TEST(rotations_on_a_grid),
        TEST(rotations_of_two_bounds),
        TEST(longrope_by_the_rows_at_hand),
        TEST(zeros_are_shared),
        TEST(zeros_of_every_layer),
        TEST(ignored_tensors),
        TEST(norms_of_matrices),
        TEST(sites_of_two_stacks),
        TEST(sites_of_narrow_rows),
        TEST(sites_of_attention_alone),
        TEST(roles_of_arrays),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
