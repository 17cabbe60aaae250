/* test_build.c: what the builder and the passes make of positions, shared weights and partly biased products; and
 * which tensors of a file are spoken of as unused. */
#include "../../compiler/attnc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static Arena *arena;

static int begin(void **state) {
    (void)state;
    arena = arena_new();
    return 0;
}

static int end(void **state) {
    (void)state;
    arena_free(arena);
    return 0;
}

static Module *module_of(const char *text) {
    Diagnostics diagnostics = diagnostics_new(arena, stderr);
    Source *source = source_from_text(arena, "test.attn", text, strlen(text));
    Model *model = resolve(arena, parse(arena, source, &diagnostics), &diagnostics);
    assert_non_null(model);
    return build(arena, model);
}

static Plan *plan_of(const char *text) { return plan_model(arena, module_of(text))->forward; }

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
    for (int o = 0; o < m->forward->n_ops; o++) {
        biased += m->forward->ops[o].kind == OP_relative_bias;
        added += m->forward->ops[o].kind == OP_take_rows;
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
    const Graph *g = m->forward;
    Weights *weights = weights_load(arena, m->model, &m->weights, "random:3", false);
    int64_t ids[8] = {1, 2, 3, 4, 0, 1, 2, 3};
    InputArray input = {"tokens", DTYPE_I64, rows, ids};
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
        const Packed *p = &plan->program->packed[step->bias + i];
        const char *name = strstr(p->name, "attention.");
        assert_non_null(name);
        assert_string_equal(name + strlen("attention."), parts[i]);
        assert_int_equal(p->offset, plan->program->packed[step->bias].offset + 16 * i);
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
    assert_int_equal(first->bias, third->bias);
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
    char folder[] = "/tmp/attnc-test-build-XXXXXX";
    assert_non_null(mkdtemp(folder));
    const char *file = arena_printf(arena, "%s/w.safetensors", folder), *log = arena_printf(arena, "%s/log", folder);
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
    char *text = file_read(arena, log, 1 << 16, &size);
    unlink(file), unlink(log), rmdir(folder);
    return text;
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

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(learned_and_relative),
        TEST(relative_for_all),
        TEST(rotations_are_told_apart),
        TEST(rotations_of_two_bounds),
        TEST(longrope_by_the_rows_at_hand),
        TEST(zeros_are_shared),
        TEST(zeros_of_every_layer),
        TEST(ignored_tensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
