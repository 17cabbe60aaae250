/* test_template.c: each construct of the template language against the text it prints, each error
 * against its message. */
#include "../../compiler/emit/emit.h" /* first: cmocka makes `fail` a macro */

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

static const char table[] = "name toy\nprocessor any\nwidth 4\nregisters 8\ntype vec4\nintegers int4\n"
                            "fused yes\nguard 1\nattribute ${prefix}_ATTRIBUTE\n"
                            "op fma(acc, a, b) | toy_fma($a, $b, $acc) | acc[i] + a[i] * b[i]\n"
                            "op add(a, b) | $a + $b | a[i] + b[i]\n"
                            "op load(read p) | *(const vec4 *)$p | p[i]\n"
                            "op load_part(read p, count n) | toy_load($p, $n) | i < n ? p[i] : 0.0f\n"
                            "op void save(write p, count n, a) | toy_save($p, $n, $a) | i < n ? a[i] : p[i]\n"
                            "op void save_2(write p, a) | toy_pair($p, $a) | i < 2 ? a[i] : p[i]\n"
                            "op zero() | 0 | 0\n"
                            "op twice(a) | ${prefix}_twice($a) | 2 * a[i]\n"
                            "helper\n"
                            "static vec4 ${prefix}_twice(vec4 a) { return ${v.add(a, a)}; }\n"
                            "end\n";

typedef struct Fixture {
    Arena *arena;
    Writer *writer;
    TemplateVars *vars;
    const Isa *isa;
} Fixture;

/* `params` has three records, the last one an int `size`; `entries` two, with lists of fields; `nothing` none. */
static void add_lists(Fixture *f) {
    static const char *const params[][2] = {{"const float *", "x"}, {"", ""}, {"size_t ", "rows"}};
    TemplateList *list = vars_list(f->vars, "params");
    for (int i = 0; i < 3; i++) {
        TemplateVars *param = list_record(list);
        vars_text(param, "type", params[i][0]);
        vars_text(param, "name", params[i][1]);
        if (i == 2) vars_int(param, "size", 8);
    }
    TemplateList *entries = vars_list(f->vars, "entries");
    for (int i = 0; i < 2; i++) {
        TemplateVars *entry = list_record(entries);
        vars_text(entry, "name", i ? "decode" : "encode");
        TemplateList *fields = vars_list(entry, "fields");
        for (int j = 0; j <= i; j++) vars_int(list_record(fields), "at", 10 * i + j);
    }
    vars_list(f->vars, "nothing");
}

static Fixture fixture(void) {
    Arena *arena = arena_new();
    Fixture f = {arena, writer_new(arena, 100000, "too much"), vars_new(arena, NULL),
                 isa_parse(arena, "toy.isa", table)};
    vars_int(f.vars, "K", 384);
    vars_int(f.vars, "four", 4);
    vars_text(f.vars, "n", "rows");
    vars_text(f.vars, "sum", "a + b");
    vars_text(f.vars, "prefix", "tiny");
    add_lists(&f);
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

static void test_continued_lines(void **state) {
    (void)state;
    gives("f(a, \\\n  b);\ng();", "f(a, b);\ng();\n");
    gives("f(${1 + \\\n    2}, x\\  \n\ty\\\r\nz);", "f(3, xyz);\n");
    gives("$let x = 1 + \\\n  2 + \\\n  3\n${x}", "6\n");
    gives("$if n == \"rows\" && \\\n        four == 4\na\n$end", "a\n");
    gives("$# a comment \\\n goes on\nx", "x\n");
    gives("#define X ${\"\\\\\"}\n1", "#define X \\\n    1\n");
    gives("x \\\n\ny", "x\ny\n");
    refuses("a\nx \\\n  ${Kk} \\\n\n", "template test:2: there is no name 'Kk'; is 'K' meant?");
    refuses("x \\\n y\n${Kk}", "template test:3: there is no name 'Kk'; is 'K' meant?");
    refuses("a\n$let x = \\\n", "template test:2: the text ends behind a '\\'");
    refuses("a\nb \\", "template test:2: the text ends behind a '\\'");
}

static void test_verbatim(void **state) {
    (void)state;
    gives("$verbatim\nif x:\n    a = {\n\n        1}\n\n\n    # b\n", "if x:\n    a = {\n        1}\n\n    # b\n");
    gives("$verbatim\n  $if four == 4\n    'a\n  $else\n  b\n  $end\n  ${n}\n", "    'a\n  rows\n");
    gives("$verbatim\n  f(a, \\\n      b) \n", "  f(a, b)\n");
    gives("$macro m(x)\n${x}\n$end\n$verbatim\n    $use m(\"  two\")\n", "  two\n");
    refuses("$verbatim x", "template test:1: 'x' is too much");
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
    gives("${v.width} ${v.registers} ${v.fused} ${v.type} ${v.integers} ${v.name} ${v.guard} ${v.attribute}",
          "4 8 1 vec4 int4 toy 1 tiny_ATTRIBUTE\n");
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
    gives("${v.save(p, 4, a)};", "toy_save(p, 4, a);\n");
    gives("${v.load_part(p, 4)}; ${v.load_part(p, ${four - 1})}; ${v.load_part(p, n)};",
          "*(const vec4 *)p; toy_load(p, 3); toy_load(p, n);\n");
    gives("${v.load(p + ${n * 4})};", "*(const vec4 *)(p + (rows * 4));\n");
    gives("${v.add(',', \"),\")};", "(',') + (\"),\");\n");
    gives("$let x = v.add(p, q)\n${x}; ${v.twice(x)};", "p + q; tiny_twice(x);\n");
    gives("${v.has(order_of_bits)}", "0\n");
    gives("${u.add(a, b)}; ${u.width};", "a + b; 4;\n");
    gives("$for u in 0..2\n${u * v.width}\n$end\n", "0\n4\n"); /* a name like others where no point is behind it */
    Fixture f = fixture();
    template_expand_helpers(f.arena, f.writer, f.vars, &(HelperUse){f.isa, 0, true});
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

static void test_lists(void **state) {
    (void)state;
    gives("$for p in params\n${p.type}${p.name};\n$end", "const float *x;\n;\nsize_t rows;\n");
    gives("$for p, i in params\n${i} ${p.name} ${i + 1 == count(params) ? \"last\" : \"\"}\n$end",
          "0 x\n1\n2 rows last\n");
    gives("$for e in entries\n$for f in e.fields\n${e.name} ${f.at + 1}\n$end\n$end",
          "encode 1\ndecode 11\ndecode 12\n");
    gives("$let K = \"$\" ~ \"{count(params) + 1}\"\n${K} ${expand(K)} ${expand(7)}", "${count(params) + 1} 4 7\n");
    gives("$for p in nothing\nx\n$end\n${count(nothing)} ${count(params)}", "0 3\n");
    gives("$for p in params\n${defined(p.size)}${defined(p.name)}\n$end\n${defined(params)}", "01\n01\n11\n1\n");
    gives("$for e in entries\n${defined(e.fields) && count(e.fields) > 1}\n$end", "0\n1\n");
    gives("$let all = params\n$for p in all\n$let q = p\n${q.name};\n$end", "x;\n;\nrows;\n");
    gives("$macro m(list, record)\n$for p in list\n${record.name}_${p.at};\n$end\n$end\n"
          "$for e in entries\n$use m(e.fields, e)\n$end", "encode_0;\ndecode_10;\ndecode_11;\n");
    gives("$for p in params\n$for p in entries\n${p.name}\n$end\n${p.name}\n$end",
          "encode\ndecode\nx\nencode\ndecode\nencode\ndecode\nrows\n");
    gives("$for e in entries\nx\n$loop i in 0..2 unroll 1\nf(${e.name}, ${i});\n$end\n$end",
          "x\nfor (size_t i = 0; i < 2; i++) {\n    f(encode, i);\n}\n"
          "x\nfor (size_t i = 0; i < 2; i++) {\n    f(decode, i);\n}\n");
}

static void test_join(void **state) {
    (void)state;
    gives("void f(${join p in params: ${p.type}${p.name}}) {\n}", "void f(const float *x, size_t rows) {\n}\n");
    gives("f(run${join p in params by \"\":, ${p.name}});", "f(run, x, , rows);\n");
    gives("if (${join p, i in params by \" \" ~ four ~ \" \": ${i}})", "if (0 4 1 4 2)\n");
    gives("{${join e in entries: {${e.name}, {${join f in e.fields: ${f.at}}}}}}",
          "{{encode, {0}}, {decode, {10, 11}}}\n");
    gives("[${join p in nothing: ${p.name}}]", "[]\n");
    gives("$let list = join p in params by \"+\": ${p.name}\n${list} ${(join p in params: ${p.name}) ~ \"!\"}",
          "x+rows x, rows!\n");
    gives("${join p in params: ${v.add(${p.name}, 1)}}", "x + 1,  + 1, rows + 1\n");
    gives("${join p in 0 ? nothing : params: ${p.name}}", "x, rows\n");
    gives("$let join = 3\n${join} ${join + 1}", "3 4\n");
}

static void test_list_errors(void **state) {
    (void)state;
    refuses("a\n$for p in params\n${p.nmae}\n$end",
            "template test:3: the record 'p' has no field 'nmae'; is 'name' meant?");
    refuses("$for p in params\n${p.banana}\n$end", "template test:2: the record 'p' has no field 'banana'");
    refuses("$for e in entries\n${e.feilds.x}\n$end",
            "template test:2: the record 'e' has no field 'feilds'; is 'fields' meant?");
    refuses("${q.name}", "template test:1: there is no name 'q'");
    refuses("${K.name}", "template test:1: 'K' is the number 384, it has no field 'name'");
    refuses("${n.name}", "template test:1: 'n' is the text 'rows', it has no field 'name'");
    refuses("${params.name}", "template test:1: 'params' is a list, it has no field 'name'");
    refuses("${defined(params.name)}", "template test:1: 'params' is a list, it has no field 'name'");
    refuses("${defined(q.name)}", "template test:1: there is no name 'q'");
    refuses("$for e in entries\n${e.name.length}\n$end",
            "template test:2: 'name' is the text 'encode', it has no field 'length'");
    refuses("$for p in params\n${p}\n$end", "template test:2: 'p' is a record, a number or a text is needed");
    refuses("${params}", "template test:1: 'params' is a list, a number or a text is needed");
    refuses("${params ~ 1}", "template test:1: 'params' is a list, a number or a text is needed");
    refuses("${params + 1}", "template test:1: 'params' is a list, a number or a text is needed");
    refuses("${-params}", "template test:1: 'params' is a list, a number or a text is needed");
    refuses("${params == params}", "template test:1: 'params' is a list, a number or a text is needed");
    refuses("${1 ? params : 2}", "template test:1: a list stands where a number or a text is needed");
    refuses("$if params\n$end", "template test:1: the condition is a list, a number is needed");
    refuses("$loop i in 0..params unroll 1\n$end", "template test:1: 'params' is a list, a number or a text is needed");
    refuses("$for i in 3\n$end", "template test:1: the number 3 stands where a list is needed");
    refuses("$for i in n\n$end", "template test:1: the text 'rows' stands where a list is needed");
    refuses("$for e in entries\n$for f in e\n$end\n$end", "template test:2: a record stands where a list is needed");
    refuses("${count(K)}", "template test:1: the number 384 stands where a list is needed");
    refuses("${count(params}", "template test:1: count(LIST) is meant");
    refuses("${expand(\"$\" ~ \"{K\")}", "template test:1: a '}' is missing after an inserted expression");
    refuses("${expand(K, 1)}", "template test:1: expand(TEXT) is meant");
    refuses("${defined(3)}", "template test:1: defined(NAME) is meant");
    refuses("${K.}", "template test:1: a field's name is missing after 'K.'");
    refuses("$for p, i in 0..3\n$end", "template test:1: '..3' is too much");
    refuses("$for p, in params\n$end", "template test:1: 'in' is missing");
    refuses("$for p, 1 in params\n$end", "template test:1: a name is missing");
    refuses("$for v in params\n$end", "template test:1: a record cannot be called 'v' as a target is");
    refuses("$for i in params step 2\n$end", "template test:1: 'step 2' is too much");
    refuses("${join u in params: x}", "template test:1: a record cannot be called 'u' as a target is");
    refuses("${join p of params: x}", "template test:1: 'in' is missing");
    refuses("${join p, 1 in params: x}", "template test:1: a name is missing");
    refuses("${join p in params x}", "template test:1: ':' is missing");
    refuses("${join p in params: }", "template test:1: the text of a join is missing");
    refuses("${join p in params: x", "template test:1: a '}' is missing after an inserted expression");
    refuses("${join p in K: x}", "template test:1: the number 384 stands where a list is needed");
    refuses("${join p in params by entries: x}",
            "template test:1: 'entries' is a list, a number or a text is needed");
    refuses("${join p in params: ${p.size}}", "template test:1: the record 'p' has no field 'size'");
    Arena *arena = arena_new();
    Text deep = text_new(arena);
    for (int i = 0; i < 200; i++) text_printf(&deep, "${join p in params: ");
    text_printf(&deep, "x");
    for (int i = 0; i < 200; i++) text_printf(&deep, "}");
    refuses(deep.data, "template test:1: an expression is nested too deep");
    deep.size = 0;
    for (int i = 0; i < 20; i++) text_printf(&deep, "${join p in params: ");
    text_printf(&deep, "x");
    for (int i = 0; i < 20; i++) text_printf(&deep, "}");
    refuses_with(EXIT_CANNOT, deep.data, "too much: it is over 100000 bytes of C");
    arena_free(arena);
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

static void test_functions(void **state) {
    (void)state;
    gives("$define twice(a) = 2 * a\n${twice(3)} ${twice(K) + twice(1)} ${twice(twice(2))};\n", "6 770 8;\n");
    gives("$define at(r, c): x${r}_${c} + ${K}\nf(${at(1, n)});\n", "f(x1_rows + 384);\n");
    gives("$let g = 5\n$define h() = g\n$if 1\n$let g = 6\n${h()};\n$end", "5;\n");
    gives("$define name(e): ${e.name}!\n$for e in entries\n${name(e)};\n$end", "encode!;\ndecode!;\n");
    gives("$define fields(e) = e.fields\n$for e in entries\n$for f in fields(e)\n${f.at};\n$end\n$end",
          "0;\n10;\n11;\n");
    gives("$define of(a) = a > 0 ? a * of(a - 1) : 1\n${of(5)}", "120\n");
    gives("$define wide() = four * n\nx ${wide()} [${wide()}]", "x (4 * rows) [4 * rows]\n");
    gives("$define f() = 1\n$macro f()\n2\n$end\n${f()}\n$use f()", "1\n2\n");
    gives("$let call: f(${n}, ${four * n}, ${K > 1 ? \"b\" : \"\"})\n${call};\n$set call:\n[${call}]",
          "f(rows, 4 * rows, b);\n[]\n");
    refuses("$define f(a) = a\n${f()}", "template test:2: function 'f' takes 1 arguments, 0 are given");
    refuses("$define f(a) = a\n$define f(b) = b", "template test:2: function 'f' is there already, at test:1");
    refuses("$define f(a) = Kk\n\n${f(1)}",
            "template test:1: there is no name 'Kk'; is 'K' meant? (in function f used at test:3)");
    refuses("$define f(a) = f(a)\n${f(1) ? 1 : 2", "template test:2: a '}' is missing after an inserted expression");
    refuses("$define both(a) = 1\n${bth(1)}", "template test:2: there is no function 'bth'; is 'both' meant?");
    refuses("$define f(a = 1", "template test:1: ')' is missing");
    refuses("$define f(1) = 1", "template test:1: a parameter is missing");
    refuses("$define (a) = 1", "template test:1: the function's name is missing");
    refuses("$define f(a) 1", "template test:1: '=' is missing");
    refuses("${f(1", "template test:1: a ')' is missing");
    refuses("${f(1, 2, 3, 4, 5, 6, 7, 8, 9)}", "template test:1: f has too many arguments");
    refuses("$define f() = params\n${f()}", "template test:2: a list stands where a number or a text is needed");
    refuses("$let x: ${K", "template test:1: a '}' is missing after an inserted expression");
}

static void test_include(void **state) {
    (void)state;
    assert_non_null(embedded_text("scalar.isa"));
    assert_null(embedded_text("no such file"));
    refuses("$include \"no.tmpl\"", "template test:1: there is no file \"no.tmpl\" to include");
    Fixture f = fixture(); /* the tables are embedded too, and are as good as any text */
    vars_text(f.vars, "table", "tiny_avx2");
    template_expand_text(f.arena, f.writer, "test", "x;\n$include \"avx2.isa\"\n$include \"avx2.isa\"\n",
                         f.vars, f.isa);
    const char *once = strstr(writer_text(f.writer, NULL), "_mm256_maskload_ps($p, tiny_avx2_first($n))");
    assert_non_null(once);
    assert_non_null(strstr(once + 1, "_mm256_maskload_ps($p, tiny_avx2_first($n))"));
    FailureTrap trap;
    if (failure_trap(&trap) == 0)
        template_expand_text(f.arena, f.writer, "test", "$include \"avx2.isa\"\n", vars_new(f.arena, NULL), f.isa);
    assert_string_equal(trap.message, "template avx2.isa:11: there is no name 'prefix' (included at test:1)");
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
    refuses("$loop i in 0\n$end", "template test:1: '..' is missing");
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
    refuses("${v.has(wings)}", "template test:1: there is no capability 'wings'");
    refuses("${v.has(a, b)}", "template test:1: v.has takes the name of a capability");
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
    const char *recursive = "$define f(a) = f(a) + f(a)\n${f(1)}";
    if (failure_trap(&trap) == 0) template_expand_text(f.arena, f.writer, "test", recursive, f.vars, NULL);
    assert_non_null(strstr(trap.message,
                           "template test:1: macros and files are nested too deep (in function f used at test:1"));
    const char *branching = "$define f(a) = a > 0 ? f(a - 1) + f(a - 1) : 0\n${f(50)}";
    if (failure_trap(&trap) == 0) template_expand_text(f.arena, f.writer, "test", branching, f.vars, NULL);
    assert_non_null(strstr(trap.message, "template test:1: the expansion takes over 2000000 steps (in function f"));
    if (failure_trap(&trap) == 0) template_expand_text(f.arena, f.writer, "test", "${v.width}", f.vars, NULL);
    assert_string_equal(trap.message, "template test:1: v.width: no target is given");
    if (failure_trap(&trap) == 0) template_expand_text(f.arena, f.writer, "test", "${u.load(p)}", f.vars, NULL);
    assert_string_equal(trap.message, "template test:1: u.load: no target is given");
    if (failure_trap(&trap) == 0) template_expand(f.arena, f.writer, "none.tmpl", f.vars, NULL);
    assert_string_equal(trap.message, "template none.tmpl: there is no such file");
    arena_free(f.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),             cmocka_unit_test(test_continued_lines),
        cmocka_unit_test(test_expressions),       cmocka_unit_test(test_text_arithmetic),
        cmocka_unit_test(test_operations),        cmocka_unit_test(test_names),
        cmocka_unit_test(test_if),                cmocka_unit_test(test_for),
        cmocka_unit_test(test_loop_constant),     cmocka_unit_test(test_loop_runtime),
        cmocka_unit_test(test_loop_nested),       cmocka_unit_test(test_loop_scopes),
        cmocka_unit_test(test_macros),            cmocka_unit_test(test_functions),
        cmocka_unit_test(test_lists),             cmocka_unit_test(test_join),
        cmocka_unit_test(test_list_errors),       cmocka_unit_test(test_include),
        cmocka_unit_test(test_statement_errors),  cmocka_unit_test(test_expression_errors),
        cmocka_unit_test(test_error_stack),       cmocka_unit_test(test_limits),
        cmocka_unit_test(test_verbatim),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
