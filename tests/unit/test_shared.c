/* test_shared.c: which functions of a target are those of a target that it is based on. */
#include "../../compiler/emit/emit.h" /* first: cmocka makes `fail` a macro */
#include "../../compiler/targets/targets.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

typedef struct Targets {
    Arena *arena;
    SharedCode *shared;
    const Isa *avx2, *avx512, *vnni, *amx;
    const Isa *all[6];
} Targets;

static int set_up(void **state) {
    Arena *arena = arena_new();
    Targets *t = arena_alloc(arena, sizeof *t);
    *t = (Targets){.arena = arena,
                   .avx2 = isa_load(arena, "avx2"),
                   .avx512 = isa_load(arena, "avx512"),
                   .vnni = isa_load(arena, "avx512vnni"),
                   .amx = isa_load(arena, "amx")};
    const Isa *const all[] = {t->amx, t->vnni, t->avx512, isa_load(arena, "avxvnni"), t->avx2, NULL};
    memcpy(t->all, all, sizeof t->all);
    t->shared = shared_code_new(arena, "m", t->all);
    *state = t;
    return 0;
}

static int tear_down(void **state) {
    arena_free(((Targets *)*state)->arena);
    return 0;
}

/* A target writes a function `stem` with this body, in which `@` is its prefix. The result is the name that it gets. */
static const char *writes(Targets *t, const Isa *isa, const char *stem, const char *body) {
    const char *prefix = arena_printf(t->arena, "m_%s_", isa->name);
    const char *name = arena_printf(t->arena, "%s%s", prefix, stem);
    Text text = text_new(t->arena);
    text_printf(&text, "static %s\nvoid %s(float *x) {\n", isa_with_prefix(t->arena, isa->attribute, "m"), name);
    for (; *body; body++) text_printf(&text, *body == '@' ? "%s" : "%.1s", *body == '@' ? prefix : body);
    text_printf(&text, "\n}\n");
    return shared_function(t->shared, isa, strncmp(stem, "step", 4) != 0, name, text.data, text.size);
}

static void test_same_text(void **state) {
    Targets *t = *state;
    assert_string_equal(writes(t, t->avx512, "norm", "x[0] = @sum(x);"), "m_avx512_norm");
    assert_string_equal(writes(t, t->vnni, "norm", "x[0] =\n    @sum(x);"), "m_avx512_norm");
    assert_string_equal(writes(t, t->amx, "norm", "x[0] = @sum(x);"), "m_avx512_norm");
}

static void test_other_text(void **state) {
    Targets *t = *state;
    assert_string_equal(writes(t, t->avx512, "dot", "x[0] = 1;"), "m_avx512_dot");
    assert_string_equal(writes(t, t->vnni, "dot", "x[0] = 2;"), "m_avx512vnni_dot");
    assert_string_equal(writes(t, t->amx, "dot", "x[0] = 2;"), "m_avx512vnni_dot");
}

/* The helpers of longer vectors have the same names and are others. */
static void test_other_width(void **state) {
    Targets t = *(Targets *)*state;
    const Isa *const sve = isa_load(t.arena, "sve"), *const longer = isa_load(t.arena, "sve256");
    const Isa *const all[] = {longer, sve, NULL};
    t.shared = shared_code_new(t.arena, "m", all);
    assert_string_equal(writes(&t, sve, "norm", "x[0] = @sum(x);"), "m_sve_norm");
    assert_string_equal(writes(&t, longer, "norm", "x[0] = @sum(x);"), "m_sve256_norm");
}

static void test_words_stay_apart(void **state) {
    Targets *t = *state;
    writes(t, t->avx512, "copy", "unsigned x;");
    assert_string_equal(writes(t, t->vnni, "copy", "unsignedx;"), "m_avx512vnni_copy");
}

/* A table with the same text that is no base of the other one has other instructions. */
static void test_unrelated(void **state) {
    Targets *t = *state;
    writes(t, t->avx2, "norm", "x[0] = @sum(x);");
    assert_string_equal(writes(t, t->avx512, "norm", "x[0] = @sum(x);"), "m_avx512_norm");
}

/* A step is shared only if its kernel is. */
static void test_callers(void **state) {
    Targets *t = *state;
    writes(t, t->avx512, "dot", "x[0] = 1;");
    writes(t, t->avx512, "norm", "x[0] = 3;");
    writes(t, t->avx512, "step_dot", "@dot(x);");
    writes(t, t->avx512, "step_norm", "@norm(x);");
    writes(t, t->vnni, "dot", "x[0] = 2;");
    const char *norm = writes(t, t->vnni, "norm", "x[0] = 3;");
    assert_string_equal(writes(t, t->vnni, "step_dot", "@dot(x);"), "m_avx512vnni_step_dot");
    assert_string_equal(writes(t, t->vnni, "step_norm", arena_printf(t->arena, "%s(x);", norm)), "m_avx512_step_norm");
}

/* Parts of a function are its own, also where a longer name begins like its name. */
static void test_parts(void **state) {
    Targets *t = *state;
    writes(t, t->avx512, "dot_2", "x[0] = 1;");
    writes(t, t->avx512, "dot", "@dot_row(x); @dot_2_row(x);");
    writes(t, t->vnni, "dot_2", "x[0] = 2;");
    assert_string_equal(writes(t, t->vnni, "dot", "@dot_row(x); @dot_2_row(x);"), "m_avx512vnni_dot");
    writes(t, t->avx512, "other", "@other_row(x);");
    assert_string_equal(writes(t, t->vnni, "other", "@other_row(x);"), "m_avx512_other");
}

/* A helper that replaces another one makes other functions of those that call it. */
static void test_replaced_helpers(void **state) {
    Targets *t = *state;
    const Isa *isa = isa_parse(t->arena, "z.isa", "name z\nbased on avx512\nrank 36\nattribute ${prefix}_Z\n"
                                                  "helper hmax\nfloat ${table}_hmax(__m512 a);\nend\n");
    const Isa *const all[] = {isa, t->avx512, NULL};
    Targets two = {.arena = t->arena, .shared = shared_code_new(t->arena, "m", all)};
    writes(&two, t->avx512, "most", "x[0] = @hmax(x);");
    writes(&two, t->avx512, "sum", "x[0] = @hmax_4(x);");
    assert_string_equal(writes(&two, isa, "most", "x[0] = @hmax(x);"), "m_z_most");
    assert_string_equal(writes(&two, isa, "sum", "x[0] = @hmax_4(x);"), "m_avx512_sum");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {TEST(test_same_text), TEST(test_other_text), TEST(test_words_stay_apart),
                                       TEST(test_unrelated), TEST(test_callers),    TEST(test_parts),
                                       TEST(test_replaced_helpers), TEST(test_other_width)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
