"""Part of run.py: a mutant is found by what it stands in, wherever that is, and what is not found once is an error."""
import os
import tempfile

import places
from tree import Wrong

ONE = """/* one.c: a "comment", with twice(int x) { in it. */
#define HALF(x) \\
    ((x) / 2)
static const int table[2][2] = {{1, 2}, {3, 4}};

static int twice(int x) { return 2 * x; }

struct Pair {
    int a, b;
};

int sum(const struct Pair *p) {
    if (p->a == '{') return 0;
    return p->a +
           p->b;
}
"""
# What a text stands in, and the text; of those that are refused, a part of the error too.
FOUND = [("sum", "return p->a + p->b;"), ("twice", "2 * x"), ("table", "{3, 4}"), ("HALF", "/ 2"),
         ("Pair", "int a, b;"), ("gemm.c.tmpl", "${k} * 2")]
REFUSED = [("sum", "return p->a - p->b;", "stands 0 times in `sum`"), ("sum", "p->", "stands 3 times in `sum`"),
           ("twice", "p->a", "stands 0 times in `twice`"), ("thrice", "3 * x", "is named `thrice`")]


def found(files, where, old):
    """What place() says of a tree with these files."""
    with tempfile.TemporaryDirectory() as root:
        for name, text in files.items():
            os.makedirs(os.path.join(root, os.path.dirname(name)), exist_ok=True)
            with open(os.path.join(root, name), "w", encoding="utf-8") as file:
                file.write(text)
        name, begin, end = places.place(where, old, root)
        return name, files[name][begin:end]


def error_of(files, where, old):
    try:
        return "found: %s %s" % found(files, where, old)
    except Wrong as why:
        return str(why)


def moved():
    for name in ("compiler/plan/one.c", "compiler/lower/deep/two.c", "runtime/three.h"):
        files = {name: ONE, "compiler/other.c": "int other(void) { return 2; }\n",
                 "compiler/emit/gemm.c.tmpl": "x = ${k} * 2;\n"}
        for where, old in FOUND:
            file, text = found(files, where, old)
            assert file == ("compiler/emit/gemm.c.tmpl" if "tmpl" in where else name), file
            assert text.split() == old.split(), text
        for where, old, why in REFUSED:
            said = error_of(files, where, old)
            assert why in said, said
    twice = {"compiler/a.c": ONE, "compiler/b.c": ONE}
    assert "stands 2 times in `sum` (compiler/a.c, compiler/b.c)" in error_of(twice, "sum", "return p->a + p->b;")
    apart = {"compiler/a.c": ONE, "compiler/b.c": ONE.replace("p->b", "p->a")}
    assert found(apart, "sum", "p->b;")[0] == "compiler/a.c", "the name alone does not decide"
