/* test_writer.c: the writer's indentation, its parts, and how it folds constants. */
#include "../../compiler/emit/emit.h" /* first: cmocka makes `fail` a macro */

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

static void test_writer(void **state) {
    (void)state;
    Arena *arena = arena_new();
    Writer *w = writer_new(arena, 10000, "too much");
    writer_line(w, "#define X(a) \\");
    writer_line(w, "f(a, {)");
    writer_line(w, "/* a comment with { and \"");
    writer_line(w, "* that goes on");
    writer_line(w, "and on */");
    writer_line(w, "int f(int a, // {");
    writer_line(w, "int b) {");
    writer_line(w, "char c = '{', *d = \"\\\"{\"; /* { */");
    writer_line(w, "#if X");
    writer_line(w, "if (a) {");
    writer_line(w, "g(%d,", 3);
    writer_line(w, "h[2]);");
    writer_line(w, "} else {");
    writer_line(w, "x = (S){");
    writer_line(w, "1, 2,");
    writer_line(w, "};");
    writer_line(w, "}   ");
    writer_line(w, "#endif");
    writer_line(w, "}");
    assert_string_equal(writer_text(w, NULL),
                        "#define X(a) \\\n    f(a, {)\n/* a comment with { and \"\n * that goes on\n   and on */\n"
                        "int f(int a, // {\n    int b) {\n    char c = '{', *d = \"\\\"{\"; /* { */\n"
                        "#if X\n    if (a) {\n"
                        "        g(3,\n            h[2]);\n    } else {\n"
                        "        x = (S){\n            1, 2,\n        };\n"
                        "    }\n#endif\n}\n");
    assert_string_equal(writer_fresh(w, "i"), "i_1");
    assert_string_equal(writer_fresh(w, "acc"), "acc_2");
    Writer *header = writer_new(arena, 10000, "too much");
    writer_line(header, "#ifdef __cplusplus");
    writer_line(header, "extern \"C\" {");
    writer_line(header, "#endif");
    writer_line(header, "enum {");
    writer_line(header, "X");
    writer_line(header, "};");
    writer_line(header, "}");
    assert_string_equal(writer_text(header, NULL),
                        "#ifdef __cplusplus\nextern \"C\" {\n#endif\nenum {\n    X\n};\n}\n");
    arena_free(arena);
}

/* Text that is known late stands where its place was, in the part that it was given. */
static void test_insert(void **state) {
    (void)state;
    Arena *arena = arena_new();
    Writer *w = writer_new(arena, 10000, "too much"), *late = writer_new(arena, 100, "too much");
    size_t place;
    writer_line(w, "first;");
    writer_part(w, NULL, "shared", "head");
    writer_text(w, &place);
    writer_blank(w);
    writer_line(w, "second;");
    int part = writer_part(w, "t", "helpers", "helpers");
    writer_line(w, "third;");
    writer_insert(w, place, part, late);
    assert_string_equal(writer_text(w, NULL), "first;\n\nsecond;\nthird;\n");
    writer_line(late, "late;");
    writer_insert(w, place, part, late);
    assert_string_equal(writer_text(w, NULL), "first;\n\nlate;\n\nsecond;\nthird;\n");
    writer_part(w, "t", "steps", "forward");
    writer_text(w, &place);
    writer_line(w, "fourth;");
    writer_insert(w, place, part, late);
    assert_string_equal(writer_text(w, NULL), "first;\n\nlate;\n\nsecond;\nthird;\n\nlate;\n\nfourth;\n");
    int n;
    const CodePart *parts = writer_parts(w, &n);
    assert_int_equal(n, 3);
    assert_int_equal(parts[0].bytes, strlen("first;\n"));
    assert_int_equal(parts[1].bytes, strlen("\nlate;\n\nsecond;\n\nlate;\n\n"));
    assert_int_equal(parts[2].bytes, strlen("third;\n"));
    arena_free(arena);
}

static void folds_to(const char *line, const char *expected) {
    Arena *arena = arena_new();
    Text text = text_new(arena);
    text_add(&text, line, strlen(line));
    bool may_fold = false;
    for (size_t i = 0; i < text.size; i++)
        may_fold |= (line[i] == '0' || line[i] == '1') && c_may_fold(line, text.size, i);
    if (strcmp(line, expected) != 0) assert_true(may_fold);
    c_fold(&text, false);
    assert_int_equal(text.size, strlen(expected));
    assert_memory_equal(text.data, expected, text.size);
    arena_free(arena);
}

static void test_fold(void **state) {
    (void)state;
    folds_to("f(out + 0, acc);", "f(out, acc);");
    folds_to("f(block + 0 + (j - from) + 0);", "f(block + (j - from));");
    folds_to("x = a - 0;", "x = a;");
    folds_to("x = 0 + a;", "x = a;");
    folds_to("from[0 + i]", "from[i]");
    folds_to("(0 + x)", "(x)");
    folds_to("k = high0 / 1 * 1; k < p", "k = high0; k < p");
    folds_to("begin = tiles * 1 * thread / threads;", "begin = tiles * thread / threads;");
    folds_to("end = 1 * (thread + 1) / threads;", "end = (thread + 1) / threads;");
    folds_to("a + 1 * b - 1 * c", "a + b - c");
    folds_to("f(-1 * x);", "f(-x);");
    folds_to("return 1 * x + 0;", "return x;");
    folds_to("if (!mask[0 * n + k]) continue;", "if (!mask[k]) continue;");
    folds_to("(rows + 0 * a[i].b->c) / 1;", "(rows);");
    folds_to("x[0 * (a + b) * c + d]", "x[d]");
    folds_to("x ? 0 * n + k : 0 * n;", "x ? k : 0;");
    folds_to("f(a + 0 /* + 0 */, \"b + 0, c\", d + 0);", "f(a /* + 0 */, \"b + 0, c\", d);");
    folds_to("f(x + 0 * y + 0);", "f(x);");
    /* what is no idle constant stays */
    static const char *const kept[] = {
        "x = a + 0 * f(b);", "x = a + 0 / b;", "x = 0 - a;",           "x = a + 0x1p+3f * b;", "x = a / 1.0f;",
        "x = a + 0.0f;",     "x = a * 1u;",    "x = a + 10;",          "x = 1 / a;",           "x = a % 1;",
        "x = b / 0;",        "case 0: x = 1;", "f(0, 1);",             "a = {0, 1};",          "x = (size_t)0 + a;",
        "x = a << 0;",       "x += 0;",        "x = a +",              "0 + a;",               "x = a + 0",
        "x = 'a' - '0';",    "f(\"x + 0);\");", "x = a; // b + 0;",     "x = 0 * (y++);",       "x = 1e+0 + 1;",
        "x = 0 * (float)a;", "x = 0 * a(b).c;", "for (i = 0; ; i++) {", "x = a * (1 + b);",     "x = a / 0 * 2;",
    };
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) folds_to(kept[i], kept[i]);
    folds_to("x = b / 1 * 2 % 1;", "x = b * 2 % 1;");
    folds_to("", "");
    Arena *arena = arena_new();
    Text comment = text_new(arena);
    text_printf(&comment, "a + 0, b */ f(c + 0, d);");
    c_fold(&comment, true);
    assert_int_equal(comment.size, strlen("a + 0, b */ f(c, d);"));
    assert_memory_equal(comment.data, "a + 0, b */ f(c, d);", comment.size);
    Writer *w = writer_new(arena, 10000, "too much");
    writer_line(w, "f(a + 0);");
    writer_fold_constants(w);
    writer_line(w, "f(a + %d, \"%s\");", 0, "1 * x");
    writer_line(w, "#if X + 0 > 1");
    writer_line(w, "#define Y(x) \\");
    writer_line(w, "(x + 0)");
    writer_line(w, "/* a + 0,");
    writer_line(w, "b + 0, */");
    writer_line(w, "g(1 * b);");
    assert_string_equal(writer_text(w, NULL),
                        "f(a + 0);\nf(a, \"1 * x\");\n#if X + 0 > 1\n#define Y(x) \\\n    (x + 0)\n/* a + 0,\n"
                        "   b + 0, */\ng(b);\n");
    arena_free(arena);
}

/* The body of a statement without braces stands one level further in, and so does what nests in it. */
static void test_writer_bodies(void **state) {
    (void)state;
    static const char *const lines[] = {
        "void f(void) {", "for (;;)", "for (;;)", "a();", "b();", "if (x)", "/* why */", "a();", "else", "b();",
        "for (;;)", "if (x)", "a();", "else if (y)", "b();", "else", "c();", "d();", "for (size_t i = 0;",
        "i < n; i++)", "a(i,", "i);", "while (x)", "if (y) {", "a();", "if (z)", "b();", "} else {", "c();", "}",
        "d();", "for (;;) a();", "if (x) {", "a();", "} else if (y)", "b();", "c();", "if (x) a();", "else b();",
        "#if X", "if (x)", "#endif", "a();", "switch (x) {", "case 1: a(); break;", "}", "do {", "a();", "} while (x);",
        "b();", "}", "int g(void);"};
    Arena *arena = arena_new();
    Writer *w = writer_new(arena, 10000, "too much");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) writer_line(w, "%s", lines[i]);
    assert_string_equal(writer_text(w, NULL),
                        "void f(void) {\n"
                        "    for (;;)\n        for (;;)\n            a();\n    b();\n"
                        "    if (x)\n        /* why */\n        a();\n    else\n        b();\n"
                        "    for (;;)\n        if (x)\n            a();\n        else if (y)\n"
                        "            b();\n        else\n            c();\n    d();\n"
                        "    for (size_t i = 0;\n        i < n; i++)\n"
                        "        a(i,\n            i);\n"
                        "    while (x)\n        if (y) {\n            a();\n            if (z)\n"
                        "                b();\n        } else {\n            c();\n        }\n"
                        "    d();\n    for (;;) a();\n"
                        "    if (x) {\n        a();\n    } else if (y)\n        b();\n    c();\n"
                        "    if (x) a();\n    else b();\n"
                        "#if X\n    if (x)\n#endif\n        a();\n"
                        "    switch (x) {\n        case 1: a(); break;\n    }\n"
                        "    do {\n        a();\n    } while (x);\n    b();\n}\nint g(void);\n");
    arena_free(arena);
}

/* Parts follow each other without a gap; what has the same names as the part before it belongs to it. */
static void test_writer_parts(void **state) {
    (void)state;
    static const CodePart wanted[] = {{NULL, "shared", "shared", 2},
                                      {"one", "gemm", "gemm_2x2", 5},
                                      {"one", "steps", "forward", 4},
                                      {"two", "steps", "forward", 3},
                                      {NULL, "steps", "forward", 2}};
    Arena *arena = arena_new();
    Writer *w = writer_new(arena, 10000, "too much");
    int n = 1;
    assert_null(writer_parts(w, &n));
    assert_int_equal(n, 0);
    writer_line(w, "a");
    writer_part(w, NULL, "shared", "shared");
    char name[] = "gemm_2x2"; /* a name may go when its part has ended */
    writer_line(w, "b");
    writer_line(w, "c;");
    writer_part(w, "one", "gemm", name);
    name[0] = 'x';
    writer_line(w, "d");
    writer_part(w, "one", "steps", "forward");
    writer_line(w, "e");
    writer_part(w, "one", "steps", "forward");
    writer_blank(w);
    writer_line(w, "f");
    writer_part(w, "two", "steps", "forward");
    writer_line(w, "g");
    writer_part(w, NULL, "steps", "forward");
    const CodePart *parts = writer_parts(w, &n);
    assert_int_equal(n, sizeof wanted / sizeof *wanted);
    size_t size, sum = 0;
    for (int i = 0; i < n; i++) {
        if (wanted[i].target) assert_string_equal(parts[i].target, wanted[i].target);
        else assert_null(parts[i].target);
        assert_string_equal(parts[i].kind, wanted[i].kind);
        assert_string_equal(parts[i].name, wanted[i].name);
        assert_int_equal(parts[i].bytes, wanted[i].bytes);
        sum += parts[i].bytes;
    }
    writer_text(w, &size);
    assert_int_equal(sum, size);
    arena_free(arena);
}

static void test_assembly(void **state) {
    (void)state;
    Arena *arena = arena_new();
    Writer *w = writer_new(arena, 10000, "too much");
    writer_assembly(w);
    static const char *const lines[] = {"/* weights */", "#if X", ".globl x", "#endif", "x:", ".incbin \"{\"", ".data"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) writer_line(w, "%s", lines[i]);
    assert_string_equal(writer_text(w, NULL), "/* weights */\n#if X\n    .globl x\n#endif\nx:\n"
                                              "    .incbin \"{\"\n    .data\n");
    arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_writer),       cmocka_unit_test(test_fold),     cmocka_unit_test(test_writer_bodies),
        cmocka_unit_test(test_insert),
        cmocka_unit_test(test_writer_parts), cmocka_unit_test(test_assembly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
