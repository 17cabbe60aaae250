/* test_template.c: each construct of the template language against the text it prints, each error
 * against its message, and the writer. */
#include "../../compiler/emit/emit.h" /* first: cmocka makes `fail` a macro */

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

static const char table[] = "name toy\nprocessor any\nwidth 4\nregisters 8\ntype vec4\nfused yes\nguard 1\n"
                            "attribute ${prefix}_ATTRIBUTE\n"
                            "op fma(acc, a, b) | toy_fma($a, $b, $acc) | acc[i] + a[i] * b[i] | cost 1\n"
                            "op add(a, b) | $a + $b | a[i] + b[i] | cost 1\n"
                            "op load(read p) | *(const vec4 *)$p | p[i] | cost 1\n"
                            "op void save(write p, count n, a) | toy_save($p, $n, $a) | i < n ? a[i] : p[i] | cost 2\n"
                            "op void save_2(write p, a) | toy_pair($p, $a) | i < 2 ? a[i] : p[i] | cost 1\n"
                            "op zero() | 0 | 0 | cost 1\n"
                            "op twice(a) | ${prefix}_twice($a) | 2 * a[i] | cost 1\n"
                            "helper\n"
                            "static vec4 ${prefix}_twice(vec4 a) { return ${v.add(a, a)}; }\n"
                            "end\n";

typedef struct Fixture {
    Arena *arena;
    Writer *writer;
    TemplateVars *vars;
    const Isa *isa;
} Fixture;

static Fixture fixture(void) {
    Arena *arena = arena_new();
    Fixture f = {arena, writer_new(arena, 100000, "too much"), vars_new(arena, NULL),
                 isa_parse(arena, "toy.isa", table)};
    vars_int(f.vars, "K", 384);
    vars_int(f.vars, "four", 4);
    vars_text(f.vars, "n", "rows");
    vars_text(f.vars, "sum", "a + b");
    vars_text(f.vars, "prefix", "tiny");
    return f;
}

static void gives(const char *text, const char *expected) {
    Fixture f = fixture();
    template_expand_text(f.arena, f.writer, "test", text, f.vars, f.isa);
    assert_string_equal(writer_text(f.writer, NULL), expected);
    arena_free(f.arena);
}

static void refuses_with(int status, const char *text, const char *message) {
    Fixture f = fixture();
    FailureTrap trap;
    if (failure_trap(&trap) == 0) {
        template_expand_text(f.arena, f.writer, "test", text, f.vars, f.isa);
        failure_release(&trap);
        print_error("expanded without the error \"%s\":\n%s\n", message, text);
        fail_msg("no error");
    }
    assert_string_equal(trap.message, message);
    assert_int_equal(trap.status, status);
    arena_free(f.arena);
}

static void refuses(const char *text, const char *message) { refuses_with(EXIT_BUG, text, message); }

static void test_lines(void **state) {
    (void)state;
    gives("int x;\n", "int x;\n");
    gives("   int x;", "int x;\n");
    gives("", "");
    gives("\n\n\nint x;\n\n\n\nint y;\n\n", "int x;\n\nint y;\n");
    gives("void f(void) {\n\nint x;\n\n}\n", "void f(void) {\n    int x;\n}\n");
    gives("$# a comment\n  $# another\nint x;\n", "int x;\n");
    gives("cost 5 $$ and $x $$${four}\n", "cost 5 $ and $x $4\n");
    gives("${\"\"}\nx;\n", "x;\n");
    gives("$let lines = \"a;\" ~ n\n${lines};\n", "a;rows;\n");
}

static void test_expressions(void **state) {
    (void)state;
    gives("${1 + 2 * 3} ${(1 + 2) * 3} ${7 / 2} ${7 % 2} ${-7 / 2} ${2 - 3 - 4}", "7 9 3 1 -3 -5\n");
    gives("${1 < 2}${2 < 1}${2 <= 2}${1 > 2}${2 >= 3}${1 == 1}${1 != 1}", "1010010\n");
    gives("${1 && 0}${1 && 2}${0 || 0}${0 || 3}${!1}${!0}${!(1 == 2)}", "0101011\n");
    gives("${0 && 1 / 0} ${1 || 1 / 0} ${1 ? 2 : 1 / 0} ${0 ? 1 : 0 ? 2 : 3}", "0 1 2 3\n");
    gives("${\"a\" ~ 1 + 2 ~ n} ${\"q\\\"\\\\\"}", "a3rows q\"\\\n");
    gives("${\"a\" == \"a\"}${n != \"rows\"}${n == \"x\"}", "100\n");
    gives("${min(3, 4)} ${max(3, 4)} ${ceil_div(9, 4)} ${round_up(9, 4)} ${ceil_div(8, 4)}", "3 4 3 12 2\n");
    gives("${defined(K)} ${defined(L)} ${defined(L) && L > 3}", "1 0 0\n");
    gives("${v.width} ${v.registers} ${v.fused} ${v.type} ${v.name} ${v.guard} ${v.attribute}",
          "4 8 1 vec4 toy 1 tiny_ATTRIBUTE\n");
    gives("${9223372036854775807}", "9223372036854775807\n");
}

static void test_text_arithmetic(void **state) {
    (void)state;
    gives("x ${n * 4}", "x (rows * 4)\n");
    gives("x ${n + 2 * four} ${(n + 1) * 2} ${n / 2} ${n % 2} ${-n}",
          "x (rows + 8) ((rows + 1) * 2) (rows / 2) (rows % 2) (-rows)\n");
    gives("x ${n * 1} ${1 * n} ${n + 0} ${0 + n} ${n - 0} ${n / 1} ${n * 0} ${0 * n}",
          "x rows rows rows rows rows rows 0 0\n");
    gives("x ${n - -3} ${n + -3} ${sum * 2} ${0 - n}", "x (rows + 3) (rows - 3) ((a + b) * 2) (0 - rows)\n");
    gives("p[${n * 4}] f(${n + 1}, ${n + 2}) = ${n + 3}; (${n})",
          "p[rows * 4] f(rows + 1, rows + 2) = rows + 3; (rows)\n");
    gives("p[${n * 4} + 1]", "p[(rows * 4) + 1]\n");
}

static void test_operations(void **state) {
    (void)state;
    gives("$for r in 0..2\nacc${r}_0 = ${v.fma(acc${r}_0, a, b${four})};\n$end",
          "acc0_0 = toy_fma(a, b4, acc0_0);\nacc1_0 = toy_fma(a, b4, acc1_0);\n");
    gives("${v.add(a, b)}; ${v.add(a + b, f(c, d)[1])}; ${v.zero()};", "a + b; (a + b) + f(c, d)[1]; 0;\n");
    gives("${v.fma(x + y, ${v.add(a, b)}, c)};", "toy_fma(a + b, c, x + y);\n");
    /* a row of a count of its own */
    gives("${v.save(p, 2, a)};", "toy_pair(p, a);\n");
    gives("${v.save(p, ${four / 2}, a)};", "toy_pair(p, a);\n");
    gives("${v.save(p, 3, a)};", "toy_save(p, 3, a);\n");
    gives("${v.save(p, n, a)};", "toy_save(p, n, a);\n");
    gives("${v.load(p + ${n * 4})};", "*(const vec4 *)(p + (rows * 4));\n");
    gives("${v.add(',', \"),\")};", "(',') + (\"),\");\n");
    gives("$let x = v.add(p, q)\n${x}; ${v.twice(x)};", "p + q; tiny_twice(x);\n");
    gives("${u.add(a, b)}; ${u.width};", "a + b; 4;\n");
    gives("$for u in 0..2\n${u * v.width}\n$end\n", "0\n4\n"); /* a name like others where no point is behind it */
    Fixture f = fixture();
    template_expand_helpers(f.arena, f.writer, f.vars, f.isa);
    assert_string_equal(writer_text(f.writer, NULL), "static vec4 tiny_twice(vec4 a) { return a + a; }\n");
    arena_free(f.arena);
}

static void test_names(void **state) {
    (void)state;
    gives("$let x = 1\n$if 1\n$let x = 2\n${x}\n$end\n${x}\n", "2\n1\n");
    gives("$let x = 1\n$for i in 0..3\n$set x = x * 2\n$end\n${x}\n", "8\n");
    gives("$for i in 0..2\n$let x = i\n${x}\n$end\n", "0\n1\n");
}

static void test_if(void **state) {
    (void)state;
    const char *text = "$for i in 0..4\n$if i == 0\nzero\n$elif i == 1\none\n"
                       "$elif i == 2\ntwo\n$else\nmany\n$end\n$end\n";
    gives(text, "zero\none\ntwo\nmany\n");
    gives("$if 0\na\n$end\nb\n", "b\n");
    gives("$if n == \"rows\"\n  a\n$end\n", "a\n");
}

static void test_for(void **state) {
    (void)state;
    gives("$for i in 1..2 + 2\n${i}\n$end", "1\n2\n3\n");
    gives("$for i in 0..v.width step 3\n${i}\n$end", "0\n3\n");
    gives("$for i in -1..1\n${i}\n$end", "-1\n0\n");
    gives("$for i in 3..3\n${i}\n$end", "");
}

static void test_loop_constant(void **state) {
    (void)state;
    gives("$loop i in 0..3 unroll 3\nf(${i});\n$end", "f(0);\nf(1);\nf(2);\n");
    gives("$loop i in 0..6 step 2 unroll full\nf(${i});\n$end", "f(0);\nf(2);\nf(4);\n");
    gives("$let u = \"full\"\n$loop i in 0..2 unroll u\nf(${i});\n$end", "f(0);\nf(1);\n");
    gives("$loop i in 0..2 unroll 1000000000\nf(${i});\n$end", "f(0);\nf(1);\n");
    gives("$loop i in 0..K unroll 1\nf(${i * 4}, ${i + 1} + 2);\n$end",
          "for (size_t i = 0; i < 384; i++) {\n    f(i * 4, (i + 1) + 2);\n}\n");
    gives("$loop i in 8..K step 16 unroll 0\nf(${i});\n$end", "for (size_t i = 8; i < 384; i += 16) {\n    f(i);\n}\n");
    gives("$loop i in 0..8 unroll 4\nf(${i});\n$end",
          "for (size_t i = 0; i < 8; i += 4) {\n    f(i);\n    f(i + 1);\n    f(i + 2);\n    f(i + 3);\n}\n");
    gives("$loop i in 2..21 step 2 unroll 4\nf(${i});\n$end",
          "for (size_t i = 2; i < 18; i += 8) {\n    f(i);\n    f(i + 2);\n    f(i + 4);\n    f(i + 6);\n}\n"
          "f(18);\nf(20);\n");
    gives("$loop i in 0..5 unroll 4\nf(${i});\n$end", "f(0);\nf(1);\nf(2);\nf(3);\nf(4);\n");
    gives("$loop i in 5..5 unroll 1\nf(${i});\n$end", "");
}

static void test_loop_runtime(void **state) {
    (void)state;
    gives("$loop i in 0..n unroll 1\nf(${i});\n$end", "for (size_t i = 0; i < rows; i++) {\n    f(i);\n}\n");
    gives("$loop i in n..n + 4 step 4 unroll 1\nf(${i});\n$end",
          "for (size_t i = rows; i < rows + 4; i += 4) {\n    f(i);\n}\n");
    gives("$loop i in 0..n unroll 2\nf(${i});\n$end",
          "{\n    size_t i = 0;\n    for (; i + 1 < rows; i += 2) {\n        f(i);\n        f(i + 1);\n    }\n"
          "    for (; i < rows; i++) {\n        f(i);\n    }\n}\n");
}

static void test_loop_nested(void **state) {
    (void)state;
    gives("$loop i in 0..n unroll 1\n$loop i in 0..9 unroll 1\nf(${i});\n$end\n$end\n"
          "$loop i in 0..9 unroll 1\ng(${i});\n$end",
          "for (size_t i = 0; i < rows; i++) {\n    for (size_t i_1 = 0; i_1 < 9; i_1++) {\n        f(i_1);\n    }\n}\n"
          "for (size_t i = 0; i < 9; i++) {\n    g(i);\n}\n");
    gives("$loop i in 0..2 unroll full\n$loop j in 0..2 unroll full\nf(${i}, ${j});\n$end\n\n$end",
          "f(0, 0);\nf(0, 1);\n\nf(1, 0);\nf(1, 1);\n");
}

/* A copy gets a scope of its own exactly when it declares something. */
static void test_loop_scopes(void **state) {
    (void)state;
    gives("$loop i in 0..2 unroll 2\nfloat x = p[${i}];\nf(x);\n$end",
          "{\n    float x = p[0];\n    f(x);\n}\n{\n    float x = p[1];\n    f(x);\n}\n");
    gives("$loop i in 0..1 unroll 2\nconst float *x = p;\n$end", "{\n    const float *x = p;\n}\n");
    gives("$loop i in 0..1 unroll 2\n${v.type} x = p;\n$end", "{\n    vec4 x = p;\n}\n");
    gives("$loop i in 0..1 unroll 2\nif (x) {\nint y;\n}\nreturn x;\nx *= y;\na * b;\nf(a,\nint b);\n$end",
          "if (x) {\n    int y;\n}\nreturn x;\nx *= y;\na * b;\nf(a,\n    int b);\n");
    gives("$macro m(i)\nint x = ${i};\n$end\n$loop i in 0..1 unroll 2\n$use m(i)\n$end", "{\n    int x = 0;\n}\n");
}

static void test_macros(void **state) {
    (void)state;
    gives("$macro m(a, b)\nf(${a}, ${b}, ${K});\n$end\n$use m(1, n ~ \"x\")\n$use m(four, 2)\n",
          "f(1, rowsx, 384);\nf(4, 2, 384);\n");
    gives("$let g = 5\n$macro m()\n${g};\n$end\n$use m()\n", "5;\n");
    gives("$let x = 1\n$macro m(x)\n$set x = x + 1\n${x};\n$end\n$use m(7)\n${x};", "8;\n1;\n");
    gives("$macro down(i)\n$if i > 0\n${i};\n$use down(i - 1)\n$end\n$end\n$use down(3)", "3;\n2;\n1;\n");
}

static void test_include(void **state) {
    (void)state;
    assert_non_null(embedded_text("scalar.isa"));
    assert_null(embedded_text("no such file"));
    refuses("$include \"no.tmpl\"", "template test:1: there is no file \"no.tmpl\" to include");
    Fixture f = fixture(); /* the tables are embedded too, and are as good as any text */
    template_expand_text(f.arena, f.writer, "test", "x;\n$include \"avx2.isa\"\n$include \"avx2.isa\"\n",
                         f.vars, f.isa);
    const char *once = strstr(writer_text(f.writer, NULL), "__m256i tiny_avx2_first(size_t n) {\n    return");
    assert_non_null(once);
    assert_non_null(strstr(once + 1, "__m256i tiny_avx2_first(size_t n) {\n    return"));
    FailureTrap trap;
    if (failure_trap(&trap) == 0)
        template_expand_text(f.arena, f.writer, "test", "$include \"avx2.isa\"\n", vars_new(f.arena, NULL), f.isa);
    assert_string_equal(trap.message, "template avx2.isa:16: there is no name 'prefix' (included at test:1)");
    arena_free(f.arena);
}

static void test_statement_errors(void **state) {
    (void)state;
    refuses("x\n$fro i in 0..2\n$end", "template test:2: there is no statement $fro; is $for meant?");
    refuses("$banana", "template test:1: there is no statement $banana");
    refuses("$if 1\nx\n", "template test:2: the $if of line 1 has no $end");
    refuses("$end", "template test:1: $end closes nothing");
    refuses("$for i in 0..1\n$else\n$end", "template test:2: $else stands in the $for of line 1");
    refuses("$if 1\n$else\n$else\n$end", "template test:3: $else stands in the $if of line 1");
    refuses("$let x 3", "template test:1: '=' is missing");
    refuses("$let = 3", "template test:1: a name is missing");
    refuses("$let x = 3 4", "template test:1: '4' is too much");
    refuses("$for i of 0..3\n$end", "template test:1: 'in' is missing");
    refuses("$for i in 0\n$end", "template test:1: '..' is missing");
    refuses("$loop i in 0..3\n$end", "template test:1: 'unroll' is missing");
    refuses("$for i in 0..n\n$end", "template test:1: the last bound is the text 'rows', a number is needed");
    refuses("$for i in 0..3 step 0\n$end", "template test:1: the step is 0, it must be above 0");
    refuses("$loop i in 0..3 unroll \"ful\"\n$end", "template test:1: unroll is 'ful', a number or \"full\" is needed");
    refuses("$loop i in 0..n unroll full\n$end", "template test:1: a loop from '0' to 'rows' cannot be unrolled fully");
    refuses("$loop i in -4..9 unroll 1\n$end", "template test:1: a loop in C begins at -4, below 0");
    refuses("$let x = 1\n$let x = 2", "template test:2: 'x' is let in this block already; $set is meant");
    refuses("$set K = 2", "template test:1: $set: the template let no 'K'");
    refuses("$error no way with ${K}", "template test:1: no way with 384");
    refuses("$macro m(a)\n$end\n$use m()", "template test:3: macro 'm' takes 1 arguments, 0 are given");
    refuses("$macro m(a)\n$end\n$macro m(b)\n$end", "template test:3: macro 'm' is there already, at test:1");
    refuses("$macro tile(a)\n$end\n$use tiel(1)", "template test:3: there is no macro 'tiel'; is 'tile' meant?");
}

static void test_expression_errors(void **state) {
    (void)state;
    refuses("a\nb ${Kk}", "template test:2: there is no name 'Kk'; is 'K' meant?");
    refuses("${banana}", "template test:1: there is no name 'banana'");
    refuses("${1 / 0}", "template test:1: a division by zero");
    refuses("${n % 0}", "template test:1: a division by zero");
    refuses("${9223372036854775807 + 1}", "template test:1: 9223372036854775807 + 1 does not fit in 64 bits");
    refuses("${9223372036854775808}", "template test:1: the number is too large");
    refuses("${n < 2}", "template test:1: '<' cannot compare 'rows' with '2'");
    refuses("${n == 2}", "template test:1: '==' cannot compare 'rows' with '2'");
    refuses("${n && 1}", "template test:1: && is the text 'rows', a number is needed");
    refuses("${1 +}", "template test:1: an expression cannot go on with '}'");
    refuses("${1", "template test:1: a '}' is missing after an inserted expression");
    refuses("${(1}", "template test:1: a ')' is missing");
    refuses("${\"abc}", "template test:1: the string has no end");
    refuses("${1 ? 2}", "template test:1: a '?' has no ':'");
    refuses("${mni(1, 2)}", "template test:1: there is no function 'mni'; is 'min' meant?");
    refuses("${min(1)}", "template test:1: min takes two arguments");
    refuses("${ceil_div(1, 0)}", "template test:1: ceil_div(1, 0) is not defined");
    refuses("${v.fmaa(a, b, c)}", "template test:1: toy has no operation 'fmaa'; is 'fma' meant?");
    refuses("${v.fma(a, b)}", "template test:1: v.fma takes 3 arguments, 2 are given");
    refuses("${v.fma(a, , b)}", "template test:1: argument 2 of v.fma is empty");
    refuses("${v.fma(a, b}", "template test:1: '}' closes nothing in the arguments of v.fma");
    refuses("${v.fma(a, (b}", "template test:1: an argument list has no end");
    refuses("${v.fma}", "template test:1: v.fma is an operation and needs arguments");
    refuses("${v.widht}", "template test:1: there is no property 'v.widht'; is 'v.width' meant?");
}

static void test_error_stack(void **state) {
    (void)state;
    refuses("$macro inner(a)\n${a + nope}\n$end\n$macro outer()\n\n$use inner(1)\n$end\n$use outer()",
            "template test:2: there is no name 'nope' (in macro inner used at test:6, in macro outer used at test:8)");
}

static void test_limits(void **state) {
    (void)state;
    refuses_with(EXIT_CANNOT, "$for i in 0..100000\nint x${i};\n$end", "too much: it is over 100000 bytes of C");
    refuses_with(EXIT_CANNOT, "$loop i in 0..1000000 unroll full\n$loop j in 0..100000 unroll full\nint x;\n$end\n$end",
                 "too much: it is over 100000 bytes of C");
    refuses("$for i in 0..1000000000\n$let x = i\n$end", "template test:2: the expansion takes over 2000000 steps");
    Arena *arena = arena_new();
    Text deep = text_new(arena);
    for (int i = 0; i < 200; i++) text_printf(&deep, "$if 1\n");
    refuses(deep.data, "template test:64: blocks are nested too deep");
    Text parens = text_new(arena);
    text_printf(&parens, "${");
    for (int i = 0; i < 5000; i++) text_printf(&parens, "(");
    refuses(parens.data, "template test:1: an expression is nested too deep");
    arena_free(arena);
    Fixture f = fixture();
    FailureTrap trap;
    const char *endless = "$macro m()\n$use m()\n$end\n$use m()";
    if (failure_trap(&trap) == 0) template_expand_text(f.arena, f.writer, "test", endless, f.vars, NULL);
    assert_non_null(strstr(trap.message,
                           "template test:2: macros and files are nested too deep (in macro m used at test:2"));
    if (failure_trap(&trap) == 0) template_expand_text(f.arena, f.writer, "test", "${v.width}", f.vars, NULL);
    assert_string_equal(trap.message, "template test:1: v.width: no target is given");
    if (failure_trap(&trap) == 0) template_expand_text(f.arena, f.writer, "test", "${u.load(p)}", f.vars, NULL);
    assert_string_equal(trap.message, "template test:1: u.load: no target is given");
    if (failure_trap(&trap) == 0) template_expand(f.arena, f.writer, "none.tmpl", f.vars, NULL);
    assert_string_equal(trap.message, "template none.tmpl: there is no such file");
    arena_free(f.arena);
}

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),           cmocka_unit_test(test_expressions),
        cmocka_unit_test(test_text_arithmetic), cmocka_unit_test(test_operations),
        cmocka_unit_test(test_names),           cmocka_unit_test(test_if),
        cmocka_unit_test(test_for),             cmocka_unit_test(test_loop_constant),
        cmocka_unit_test(test_loop_runtime),    cmocka_unit_test(test_loop_nested),
        cmocka_unit_test(test_loop_scopes),     cmocka_unit_test(test_macros),
        cmocka_unit_test(test_include),         cmocka_unit_test(test_statement_errors),
        cmocka_unit_test(test_expression_errors), cmocka_unit_test(test_error_stack),
        cmocka_unit_test(test_limits),          cmocka_unit_test(test_writer),
        cmocka_unit_test(test_writer_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
