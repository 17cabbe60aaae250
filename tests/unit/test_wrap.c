/* test_wrap.c: how lines of C that are too long are broken. A `~` in a text stands for 30 letters. */
#include "../../compiler/emit/emit.h" /* first: cmocka makes `fail` a macro */

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

static const char *spelled(Arena *arena, const char *text) {
    Text out = text_new(arena);
    for (; *text; text++) {
        if (*text == '~') text_printf(&out, "abcdefghijklmnopqrstuvwxyz_abc");
        else text_add(&out, text, 1);
    }
    return out.data;
}

/* The lines of `text`, one by one, become `expected`. */
static void gives(const char *text, const char *expected) {
    Arena *arena = arena_new();
    Writer *w = writer_new(arena, 100000, "too much");
    for (const char *at = spelled(arena, text), *end; *at; at = *end ? end + 1 : end) {
        end = at + strcspn(at, "\n");
        writer_raw_line(w, at, (size_t)(end - at));
    }
    assert_string_equal(writer_text(w, NULL), spelled(arena, expected));
    for (const char *at = writer_text(w, NULL); *at; at += strcspn(at, "\n") + 1)
        assert_true(strcspn(at, "\n") <= C_COLUMNS);
    arena_free(arena);
}

static void test_columns(void **state) {
    (void)state;
    Arena *arena = arena_new();
    Writer *w = writer_new(arena, 100000, "too much");
    const char *whole = spelled(arena, "~, ~, ~, 123456789012345678901234"); /* 120 columns */
    assert_int_equal(strlen(whole), C_COLUMNS);
    writer_line(w, "%s", whole);
    writer_line(w, "%s;", whole);
    assert_string_equal(writer_text(w, NULL),
                        arena_printf(arena, "%s\n%s\n    123456789012345678901234;\n", whole,
                                     spelled(arena, "~, ~, ~,")));
    arena_free(arena);
}

static void test_expressions(void **state) {
    (void)state;
    gives("f(~, ~, ~, ~, ~);", "f(~, ~, ~,\n    ~, ~);\n");
    gives("x = f(~, g(~, ~, a), ~);", "x = f(~, g(~, ~, a),\n    ~);\n"); /* where fewer brackets are open */
    gives("x = ~ + ~ * ~ + ~ * 2;", "x = ~ + ~ * ~ +\n    ~ * 2;\n");
    gives("x = ~ * ~ + ~ * ~ * 2;", "x = ~ * ~ +\n    ~ * ~ * 2;\n"); /* the operator that binds loosest */
    gives("x = f(~ + ~ + ~ + ~);", "x = f(~ + ~ + ~ +\n    ~);\n");
    gives("x = f(~ * ~, ~ + ~);", "x = f(~ * ~,\n    ~ + ~);\n");
    gives("float ~ = a, ~ = b, ~ = c, ~ = d;", "float ~ = a, ~ = b, ~ = c,\n    ~ = d;\n");
    gives("x = ~ ? ~ : ~ ? ~ : 0;", "x = ~ ? ~ : ~ ?\n    ~ : 0;\n");
    gives("int32_t ~_~ = ~__________~;", "int32_t ~_~ =\n    ~__________~;\n"); /* nothing else */
    gives("f(~, ~, ~, ~, ~, ~, ~, ~);", "f(~, ~, ~,\n    ~, ~, ~,\n    ~, ~);\n");
    /* one wide argument: a short first line is fine where no third one comes of it */
    gives("f(abcdefgh, g(~, ~, ~, abcdefghijkl));", "f(abcdefgh,\n    g(~, ~, ~, abcdefghijkl));\n");
    gives("f(a, g(~, ~, ~, ~, ~, ~));", "f(a, g(~, ~, ~,\n    ~, ~, ~));\n");
    gives("*~ = ~ *a - -~ & &~;", "*~ = ~ *a - -~ &\n    &~;\n"); /* no sign of one operand */
}

static void test_literals(void **state) {
    (void)state;
    gives("f(\"~, ~ + ~\", ~);", "f(\"~, ~ + ~\",\n    ~);\n");
    gives("f(~, ~, ~ /* a, ( */, ~, b);", "f(~, ~, ~ /* a, ( */,\n    ~, b);\n");
    gives("f(~, ~, '(', '\"', ~, ~);", "f(~, ~, '(', '\"', ~,\n    ~);\n");
    gives("puts(\"~ \\\", ~, ~\"), puts(\"~\"), f(~);", "puts(\"~ \\\", ~, ~\"),\n    puts(\"~\"), f(~);\n");
}

static void test_statements(void **state) {
    (void)state;
    gives("if (~) return f(~, ~, ~);", "if (~)\n    return f(~, ~, ~);\n");
    gives("if (~ && ~ && ~ && ~) return ~;", "if (~ && ~ && ~ &&\n    ~)\n    return ~;\n");
    gives("for (int i = 0; i < ~; i++) f(~, ~, ~);", "for (int i = 0; i < ~; i++)\n    f(~, ~, ~);\n");
    gives("for (int ~ = 0, ~ = 1; ~ < ~; f(~)) {\n}",
          "for (int ~ = 0, ~ = 1;\n    ~ < ~; f(~)) {\n}\n");
    gives("for (;;) if (~) f(~, ~, ~, ~);", "for (;;)\n    if (~)\n        f(~, ~, ~,\n            ~);\n");
    gives("if (x) f(~, ~, ~);\nelse if (~) g(~, ~, ~);\nelse h(~, ~, ~, a, ~);\nz;",
          "if (x) f(~, ~, ~);\nelse if (~)\n    g(~, ~, ~);\n"
          "else\n    h(~, ~, ~, a,\n        ~);\nz;\n");
    gives("switch (x) {\ncase ~: f(~, ~, ~); break;\ndefault: return f(~, ~, ~, ~);\n}",
          "switch (x) {\n    case ~:\n        f(~, ~, ~); break;\n    default:\n"
          "        return f(~, ~, ~,\n            ~);\n}\n");
    gives("f(~); g(~); h(~, ~);", "f(~);\ng(~); h(~, ~);\n");
    gives("if (~) f(~, ~); g(~, ~);", "if (~)\n    f(~, ~);\ng(~, ~);\n");
    gives("void f(int ~, int ~, int ~, int ~) {\nx;\n}",
          "void f(int ~, int ~, int ~,\n    int ~) {\n    x;\n}\n");
    gives("{\nx = {~, ~, ~, ~,\n~};\n}",
          "{\n    x = {~, ~, ~,\n        ~,\n        ~};\n}\n");
}

static void test_comments(void **state) {
    (void)state;
    gives("/* ~ ~ ~ ~ */", "/* ~ ~ ~\n * ~ */\n");
    gives("/* ~ ~ ~ ~\n * ~ ~ ~ ~\n * end */", "/* ~ ~ ~\n * ~\n * ~ ~ ~\n * ~\n * end */\n");
    gives("{\n/* ~\n~ ~ ~ ~ */\nx;\n}",
          "{\n    /* ~\n       ~ ~ ~\n       ~ */\n    x;\n}\n");
    gives("{\nint x; /* ~ ~ ~ ~ */\n}", "{\n    /* ~ ~ ~\n     * ~ */\n    int x;\n}\n");
    gives("f(~, ~, ~); /* ~ */", "/* ~ */\nf(~, ~, ~);\n");
    gives("f(~, ~, ~, ~); /* ~ */", "/* ~ */\nf(~, ~, ~,\n    ~);\n");
    /* never the end of a comment alone */
    gives("/* ~ ~ ~ abcdefghijklmnopqrstuvwx */", "/* ~ ~ ~\n * abcdefghijklmnopqrstuvwx */\n");
    gives("/* ~\n~ ~ ~ */ f(~, ~, ~);", "/* ~\n   ~ ~ ~ */\n   f(~, ~, ~);\n");
}

static void test_directives(void **state) {
    (void)state;
    gives("#if defined(~) || ~ || ~ || ~\nx\n#endif",
          "#if defined(~) || ~ || ~ || \\\n    ~\nx\n#endif\n");
    gives("#define ~(x) (~ + ~ * (x) + ~) /* ~ */",
          "/* ~ */\n#define ~(x) (~ + ~ * (x) + \\\n    ~)\n");
    gives("#define X \\\nf(~, ~, ~, ~); \\\ng(~, ~, ~, ~)\nx",
          "#define X \\\n    f(~, ~, ~, \\\n        ~); \\\n    g(~, ~, ~, \\\n        ~)\nx\n");
}

/* What has no place to break stays whole, and nothing is lost below column 120. */
static void test_unbreakable(void **state) {
    (void)state;
    Arena *arena = arena_new();
    Writer *w = writer_new(arena, 100000, "too much");
    for (int i = 0; i < 40; i++) writer_line(w, "{");
    writer_line(w, "f(a, b);");
    writer_line(w, "/* a b */");
    for (int i = 0; i < 40; i++) writer_line(w, "}");
    writer_line(w, "%s", spelled(arena, "\"~ ~ ~ ~ ~\""));
    assert_non_null(strstr(writer_text(w, NULL), " f(a, b);\n"));
    assert_non_null(strstr(writer_text(w, NULL), "/* a b */\n"));
    assert_non_null(strstr(writer_text(w, NULL), spelled(arena, "}\n\"~ ~ ~ ~ ~\"\n")));
    arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns),    cmocka_unit_test(test_expressions), cmocka_unit_test(test_literals),
        cmocka_unit_test(test_statements), cmocka_unit_test(test_comments),    cmocka_unit_test(test_directives),
        cmocka_unit_test(test_unbreakable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
