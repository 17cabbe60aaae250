#!/usr/bin/env python3
"""where/N: random conditions of `mask where` over positions and `input rows`, each the mask of one layer of an encoder,
interpreted and compiled. The weights of attention are above 0 exactly where Python says that the condition holds.
same/NAME: a word and the condition that it stands for give the same C. refused/NAME: integers of rows that are outside
of their range, too few, or missing. pattern/N: pictures of random conditions that attnc explain prints, and the visible
pairs that it counts, are Python's. multiplied/TARGET/NAME: the C multiplies as many pairs as explain says. Of each spec
of specs/masks, half of which take turns with the commits: formula/NAME and weights/NAME, Python's formula against the
picture and against the interpreter's weights, and check/NAME, attnc check on a target of this machine. page: the
pictures of docs/masks.md are what attnc prints; `run.py --renew` writes them.

Environment: ATTNC_QUICK=1 draws fewer models, ATTNC_LONG=1 many; else the models that are drawn take turns with the
commits."""
import os
import random
import re
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib.attnc import LONG, QUICK, attnc  # noqa: E402
from lib.tap import Report  # noqa: E402
from lib import npy, turns  # noqa: E402
from lib.targets import here  # noqa: E402
import patterns  # noqa: E402
import published  # noqa: E402

LAYERS, ROWS, DEPTH = 8, 19, 5
REPORT = Report("masks")
OPERATORS = {  # level, and the value
    "or": (1, lambda a, b: a or b), "and": (2, lambda a, b: a and b),
    "<": (4, lambda a, b: a < b), "<=": (4, lambda a, b: a <= b), ">": (4, lambda a, b: a > b),
    ">=": (4, lambda a, b: a >= b), "==": (4, lambda a, b: a == b), "!=": (4, lambda a, b: a != b),
    "+": (5, lambda a, b: a + b), "-": (5, lambda a, b: a - b), "*": (6, lambda a, b: a * b),
    "mod": (6, lambda a, b: a % b),
}
FUNCTIONS = {
    "min": min, "max": max, "abs": abs, "sign": lambda a: (a > 0) - (a < 0),
    "clamp": lambda x, low, high: max(low, min(x, high)),
}


# The inputs of rows, by name, with their ranges; the values of a model are set before its conditions are evaluated.
RANGES = {"doc": (0, 3), "sign_of": (-2, 2), "far": (-2000000, 2000000)}
GIVEN = {}


class Expression:
    """A text, the level of its operator, and its value for a query and a key."""

    def __init__(self, text, level, value):
        self.text, self.level, self.value = text, level, value

    def within(self, level):
        return self.text if self.level >= level else "(%s)" % self.text


def binary(name, a, b):
    level, value = OPERATORS[name]
    left = level + 1 if level == 4 else level  # comparisons are not chained
    text = "%s %s %s" % (a.within(left), name, b.within(level + 1))
    return Expression(text, level, lambda q, k: value(a.value(q, k), b.value(q, k)))


def constant(number):
    return Expression(str(number), 9, lambda q, k: number)


def number(draw, depth):
    kind = draw.randrange(9 if depth else 4)
    if kind == 3 and not depth or draw.randrange(8) == 0:
        name = draw.choice(list(RANGES))
        of_query = draw.randrange(2)
        return Expression("%s[%s]" % (name, "q" if of_query else "k"), 9,
                          lambda q, k: GIVEN[name][q if of_query else k])
    if kind == 0:
        return Expression("q", 9, lambda q, k: q)
    if kind == 1:
        return Expression("k", 9, lambda q, k: k)
    if kind == 2:
        return constant(draw.randrange(8))
    a = number(draw, depth - 1)
    if kind == 3:
        name = draw.choice(list(FUNCTIONS))
        value = FUNCTIONS[name]
        more = {"abs": 0, "sign": 0, "clamp": 2}.get(name, 1)
        rest = [number(draw, depth - 1) for _ in range(more)]
        text = "%s(%s)" % (name, ", ".join(x.text for x in [a, *rest]))
        return Expression(text, 9, lambda q, k: value(a.value(q, k), *[x.value(q, k) for x in rest]))
    if kind == 4:
        by = draw.randrange(1, 7)
        return Expression("floor(%s / %d)" % (a.within(6), by), 9, lambda q, k: a.value(q, k) // by)
    if kind == 5:
        return Expression("-" + a.within(8), 7, lambda q, k: -a.value(q, k))
    if kind == 6:
        return binary(draw.choice(("*", "mod")), a, constant(draw.randrange(1, 7)))
    return binary(draw.choice("+-"), a, number(draw, depth - 1))


def condition(draw, depth):
    kind = draw.randrange(6) if depth else 0
    if kind < 2:
        name = draw.choice(("<", "<=", ">", ">=", "==", "!="))
        return binary(name, number(draw, depth), number(draw, depth))
    a = condition(draw, depth - 1)
    if kind == 2:
        return Expression("not " + a.within(3), 3, lambda q, k: not a.value(q, k))
    b = condition(draw, depth - 1)
    if kind == 3:
        other = condition(draw, depth - 1)
        text = "if %s then %s else %s" % (a.text, b.text, other.text)
        return Expression(text, 0, lambda q, k: b.value(q, k) if a.value(q, k) else other.value(q, k))
    return binary(draw.choice(("and", "or")), a, b)


def spec_of(masks, rows="seq <= 40"):
    inputs = "".join("        input rows %s %d..%d\n" % (name, *ends) for name, ends in RANGES.items())
    layers = "".join("        layers 1 { attention self { heads 1, mask %s } }\n" % m for m in masks)
    return "model m {\n    d_model 8, export attention\n    encoder {\n        input features, %s, position none\n" \
           "%s%s    }\n}\n" % (rows, inputs, layers)


def model(seed):
    draw = random.Random(seed)
    conditions = [condition(draw, draw.randrange(DEPTH)) for _ in range(LAYERS)]
    with tempfile.TemporaryDirectory() as folder:
        spec = os.path.join(folder, "m.attn")
        with open(spec, "w", encoding="utf-8") as file:
            file.write(spec_of("where " + c.text for c in conditions))
        features = os.path.join(folder, "x.npy")
        npy.write(features, [draw.gauss(0, 1) for _ in range(ROWS * 8)], (ROWS, 8), "<f4")
        given = ["--in", "features=" + features]
        for name, (least, most) in RANGES.items():
            GIVEN[name] = [draw.choice((draw.randint(least, most), draw.randint(0, 1))) for _ in range(ROWS)]
            given += ["--in", "%s=%s" % (name, npy.write(os.path.join(folder, name + ".npy"), GIVEN[name]))]
        for engine in ("interp", "compiled"):
            out = ["--out=attention.%d=%s/%d.npy" % (layer, folder, layer) for layer in range(LAYERS)]
            done = attnc("run", spec, "--weights", "random:%d" % seed, *given, "--engine", engine, *out)
            assert done.returncode == 0, done.stderr
            for layer, c in enumerate(conditions):
                for pair, weight in enumerate(npy.read("%s/%d.npy" % (folder, layer)).numbers):
                    q, k = divmod(pair, ROWS)
                    assert (weight > 0) == bool(c.value(q, k)), \
                        "%s, layer %d: %s: query %d, key %d has the weight %g" % (engine, layer, c.text, q, k, weight)


def pattern(seed):
    draw = random.Random(seed)
    conditions = [condition(draw, draw.randrange(DEPTH)) for _ in range(LAYERS)]
    rows = draw.choice((7, 31, 32, 33, 40))
    with tempfile.TemporaryDirectory() as folder:
        spec = os.path.join(folder, "m.attn")
        with open(spec, "w", encoding="utf-8") as file:
            file.write(spec_of("where " + c.text for c in conditions))
        text = attnc("explain", spec, "--seq", str(rows), status=0).stdout
        given, words = {}, []
        for picture in patterns.pictures(text):
            given.update(patterns.integers(picture.given) if picture.given else {})
        for name in list(given) if seed % 2 else []:  # in every second model this test draws the integers
            given[name] = [draw.randint(*RANGES[name]) for _ in range(draw.randrange(1, rows + 3))]
            words += ["--draw", "%s=%s" % (name, ",".join(map(str, given[name])))]
        text = attnc("explain", spec, "--seq", str(rows), *words, status=0).stdout
    for name, (least, _) in RANGES.items():  # of an input that no drawn condition reads, any integers will do
        numbers = given.get(name, [least])
        GIVEN[name] = [numbers[row % len(numbers)] for row in range(rows)]
    drawn = {}
    for picture in patterns.pictures(text):
        first = int(re.match(r"encoder, layers? (\d+)|layers? (\d+)", picture.place)[2])
        last = re.search(r" to (\d+)$", picture.place)
        layers = range(first, int(last[1]) + 1) if last else map(int, re.findall(r"\d+", picture.place))
        drawn.update((layer, picture) for layer in layers)
    for layer, c in enumerate(conditions):
        assert layer in drawn or constant_condition(c, rows), "%s is not drawn:\n%s" % (c.text, text)
        if layer in drawn:
            assert drawn[layer].rows == rows
            patterns.compare(drawn[layer], c.value)


def constant_condition(c, rows):
    """Whether it is the same for all pairs."""
    return len({bool(c.value(q, k)) for q in range(rows) for k in range(rows)}) == 1


MULTIPLIED = (
    ("causal", "causal", 150), ("window", "causal window 20", 149), ("both", "window 9", 131),
    ("sinks", "where k <= q and (q - k < 30 or k < 4)", 150), ("chunks", "where floor(q/40) == floor(k/40)", 150),
    ("documents", "where doc[q] == doc[k]", 143), ("documents_causal", "causal where doc[q] == doc[k]", 150),
    ("gap", "where k mod 64 < 3 or abs(q - k) < 8", 127))


def multiplied(target, mask, rows):
    with tempfile.TemporaryDirectory() as folder:
        spec = os.path.join(folder, "m.attn")
        with open(spec, "w", encoding="utf-8") as file:
            file.write(spec_of([mask], "seq <= 150"))
        text = attnc("explain", spec, "--target", target, "--seq", str(rows), status=0).stdout
        picture, = patterns.pictures(text)
        given = patterns.integers(picture.given) if picture.given else {}
        found = patterns.count_multiplied(folder, spec, target, rows, given)
        assert found == picture.multiplied, "counted %d:\n%s" % (found, picture.text)
        assert found < rows * (rows + 15), "every pair is multiplied"


def c_of(mask):
    with tempfile.TemporaryDirectory() as folder:
        spec = os.path.join(folder, "m.attn")
        with open(spec, "w", encoding="utf-8") as file:
            file.write(spec_of([mask]))
        done = attnc("compile", spec, "-o", folder)
        assert done.returncode == 0, done.stderr
        with open(os.path.join(folder, "m.c"), encoding="utf-8") as file:
            return re.sub(r"/\*.*?\*/|//[^\n]*", "", file.read(), flags=re.S)


def same(word, expression):
    assert c_of(word) == c_of(expression), "`mask %s` and `mask %s` give other C" % (word, expression)


def refused(row, problem, given=True):
    with tempfile.TemporaryDirectory() as folder:
        spec = os.path.join(folder, "m.attn")
        with open(spec, "w", encoding="utf-8") as file:
            file.write(spec_of(["where doc[q] == doc[k]"]))
        features = npy.write(os.path.join(folder, "x.npy"), [0.5] * 24, (3, 8), "<f4")
        doc = npy.write(os.path.join(folder, "doc.npy"), row)
        done = attnc("run", spec, "--weights", "random:1", "--in", "features=" + features,
                     *(["--in", "doc=" + doc] if given else []), "--out", "hidden=%s/h.npy" % folder)
        assert done.returncode == 1 and problem in done.stderr, done.stderr
        assert not os.path.exists(folder + "/h.npy")


def main():
    count = 2 if QUICK else 200 if LONG else 6
    first = 0 if LONG else turns.turn() % 1000 * count
    for seed in range(first, first + count):
        REPORT.attempt("where/%d" % seed, model, seed)
    for name, word, expression in (
            ("causal", "causal", "where k <= q"), ("window", "window 4", "where abs(q - k) < 4"),
            ("both", "causal window 4", "where q >= k and abs(q - k) < 2^2"),
            ("rest", "causal where k mod 3 == 0", "where k <= q and not k mod 3 != 0")):
        REPORT.attempt("same/" + name, same, word, expression)
    for seed in range(first, first + count):
        REPORT.attempt("pattern/%d" % seed, pattern, seed)
    cases = [(target, *case) for target in patterns.widths() for case in MULTIPLIED]
    for target, name, mask, rows in turns.in_turn(cases, 3):
        REPORT.attempt("multiplied/%s/%s" % (target, name), multiplied, target, mask, rows)
    REPORT.attempt("page", published.page_is_printed)
    REPORT.attempt("specs", published.every_spec)
    for number, name in enumerate(published.MASKS):
        if not LONG and (number + turns.turn()) % (8 if QUICK else 2):
            continue
        REPORT.attempt("formula/" + name, published.formula, name)
        with tempfile.TemporaryDirectory() as folder:
            REPORT.attempt("weights/" + name, published.weights, name, folder, "interp")
        REPORT.attempt("check/" + name, published.check, name, turns.rotated(here(on_request=False), number))
    REPORT.attempt("refused/above", refused, [0, 4, 1], "the integer 4 at 1 is outside 0 to 3")
    REPORT.attempt("refused/below", refused, [0, 3, -1], "the integer -1 at 2 is outside 0 to 3")
    REPORT.attempt("refused/few", refused, [0, 3], "the length")
    REPORT.attempt("refused/missing", refused, [0], "input doc is missing", False)
    return REPORT.finish()


if __name__ == "__main__":
    if sys.argv[1:] == ["--renew"]:
        published.renew()
    else:
        sys.exit(main())
