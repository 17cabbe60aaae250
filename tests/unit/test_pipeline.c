/* test_pipeline.c: the stages of a compilation run once each, in their order, from wherever it stands; errors of a spec
 * end it; copies go on by themselves. */
#include "fixture.h"

#define LAYERS "layers 1 { attention self { heads 2 }, ffn { d_ff 12 } }"
static const char encoder[] = "model m { d_model 8, vocab 9, encoder { seq <= 4, " LAYERS " } }";
static const char pair[] = "model m { d_model 8, vocab 9, encoder { seq <= 4, " LAYERS " }, decoder { seq <= 5, "
                           "layers 1 { attention self { heads 2 }, attention cross { heads 2 } } } }";

typedef struct Seen {
    Stage stages[8];
    int count;
} Seen;

static void see(const Compilation *c, void *with) {
    Seen *seen = with;
    assert_true(seen->count < 8);
    seen->stages[seen->count++] = c->stage;
}

static Compilation spec_of(const char *text, Seen *seen) {
    Compilation c = compilation_quiet(arena, source_of(text));
    static const char *const targets[] = {"scalar"};
    c.options = (EmitOptions){.targets = targets, .n_targets = 1, .command = "test"};
    c.after = seen ? see : NULL;
    c.with = seen;
    return c;
}

static void each_stage_once(void **state) {
    (void)state;
    Seen seen = {0};
    Compilation c = spec_of(encoder, &seen);
    assert_true(compile_until(&c, STAGE_MODEL));
    assert_int_equal(seen.count, 2);
    assert_true(c.ast && c.model && !c.module && !c.program && !c.emitted.c);
    const Model *model = c.model;
    assert_true(compile_until(&c, STAGE_AST)); /* is behind it */
    assert_int_equal(c.stage, STAGE_MODEL);
    assert_true(compile_until(&c, STAGE_C));
    assert_true(c.model == model && c.module->model == model && c.program->module == c.module);
    assert_true(c.options.layout_hash == packed_layout_hash(c.program));
    assert_int_equal(strlen(c.emitted.c), c.emitted.c_bytes);
    assert_true(compile_until(&c, STAGE_C));
    static const Stage wanted[] = {STAGE_AST,  STAGE_MODEL,    STAGE_GRAPH, STAGE_REWRITE,
                                   STAGE_PLAN, STAGE_SCHEDULE, STAGE_C};
    assert_int_equal(seen.count, sizeof wanted / sizeof *wanted);
    assert_memory_equal(seen.stages, wanted, sizeof wanted);
}

static void changes_between_stages(void **state) {
    (void)state;
    Compilation c = spec_of(encoder, NULL);
    assert_true(compile_until(&c, STAGE_MODEL));
    model_export_all(c.model);
    c.model->name = "renamed";
    assert_true(compile_until(&c, STAGE_C));
    assert_non_null(strstr(c.emitted.h, "int renamed_forward("));
    assert_non_null(strstr(c.emitted.h, "float *attention;"));
}

static void errors_end_it(void **state) {
    (void)state;
    Seen seen = {0};
    Compilation c = spec_of("model m { d_model 8", &seen);
    assert_false(compile_until(&c, STAGE_C));
    assert_int_equal(c.stage, STAGE_AST);
    assert_non_null(strstr(c.diagnostics.log.data, "spec:1:"));
    assert_false(compile_until(&c, STAGE_C));
    assert_false(compile_until(&c, STAGE_AST));
    assert_int_equal(seen.count, 1);
    c = spec_of("model m { d_model 7, vocab 9, encoder { seq <= 4, " LAYERS " } }", &seen); /* two heads of 3.5 */
    assert_true(compile_until(&c, STAGE_AST));
    assert_false(compile_until(&c, STAGE_C));
    assert_int_equal(c.stage, STAGE_MODEL);
    assert_null(c.model);
    assert_true(c.diagnostics.errors > 0);
    assert_int_equal(seen.count, 3);
}

static Emitted code_of(Compilation planned, const char *target) {
    planned.options.targets = &target;
    assert_true(compile_until(&planned, STAGE_C));
    return planned.emitted;
}

static void copies_go_on_alone(void **state) {
    (void)state;
    Compilation c = spec_of(pair, NULL);
    assert_true(compile_until(&c, STAGE_PLAN));
    Compilation elsewhere = c;
    elsewhere.arena = arena_new();
    const Emitted one = code_of(c, "scalar"), wide = code_of(c, "avx2"), other = code_of(elsewhere, "scalar");
    assert_int_equal(c.stage, STAGE_PLAN);
    assert_null(c.emitted.c);
    assert_string_equal(one.c, other.c);
    assert_string_equal(one.h, other.h);
    assert_null(strstr(one.c, "_mm256_"));
    assert_non_null(strstr(wide.c, "_mm256_"));
    arena_free(elsewhere.arena);
    assert_int_equal(strlen(one.c), one.c_bytes);
}

/* An op that reads its own result is found in whichever graph it stands. */
static void every_graph_is_verified(void **state) {
    (void)state;
    Compilation c = spec_of(pair, NULL);
    assert_true(compile_until(&c, STAGE_GRAPH));
    Graph *const *graphs = c.module->entries;
    for (int i = 0; i < ENTRY_COUNT; i++) {
        Op *last = &graphs[i]->ops[graphs[i]->n_ops - 1];
        const int *read = last->inputs;
        verify_module(c.module, "the test");
        last->inputs = &last->result;
        REFUSED(verify_module(c.module, "the test"), EXIT_BUG, "after the test");
        last->inputs = read;
    }
    verify_module(c.module, "the test");
}

static void columns_are_few(const char *what, const char *text) {
    for (const char *at = text; *at; at += strcspn(at, "\n") + 1)
        if (strcspn(at, "\n") > 120)
            fail_msg("%s has a line of %zu columns: %.*s", what, strcspn(at, "\n"), (int)strcspn(at, "\n"), at);
}

/* Neither in the files that users see nor in the driver and the unit, which the tests of emitted files do not read. */
static void no_long_lines(void **state) {
    (void)state;
    static const char *const names[] = {"m", "a_name_that_begins_each_of_the_functions"};
    static const char *const targets[] = {"avx512", "avx2", "sse2", "neon", "sve", "sve512", "wasm", "rvv", "scalar"};
    static const char *const specs[] = {encoder, pair, "model m { d_model 8, vocab 9, unroll full, encoder { seq = 4, "
                                                       LAYERS " } }"};
    for (size_t s = 0; s < sizeof specs / sizeof *specs; s++) {
        for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
            Compilation c = spec_of(specs[s], NULL);
            assert_true(compile_until(&c, STAGE_MODEL));
            model_export_all(c.model);
            c.model->name = names[n];
            c.options.targets = targets;
            c.options.n_targets = sizeof targets / sizeof *targets;
            c.options.serves = c.options.incbin = true;
            assert_true(compile_until(&c, STAGE_C));
            columns_are_few("C", c.emitted.c);
            columns_are_few("header", c.emitted.h);
            columns_are_few("driver", c.emitted.driver);
            columns_are_few("unit", c.emitted.unit);
            columns_are_few("assembly", c.emitted.assembly);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(each_stage_once), TEST(changes_between_stages), TEST(errors_end_it),
                                       TEST(copies_go_on_alone), TEST(every_graph_is_verified),
                                       TEST(no_long_lines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
