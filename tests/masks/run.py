#!/usr/bin/env python3
"""where/N: random conditions of `mask where` over positions and `input rows`, each the mask of one layer of an
encoder, interpreted and compiled. The weights of attention are above 0 exactly where Python says that the condition
holds. decode/N: the same of a decoder whose states get the integers; texts that are divided into calls, forked and
rewound give the bits of forward. ahead/N: the same of masks that show later rows, where calls between such rows are
refused; ahead/reals/N, of masks that compare real numbers; ahead/generated, by attnc generate, too; ahead/always,
where each row sees all rows. blocks/N: random conditions over numbers of pairs and real numbers, in blocks, with NaN
and infinities. pages: a step reads no keys and no values of hidden panels at both ends of a text; pages/values:
attention reads no values of panels that pairs hide. hidden/TARGET/PRECISION/NAME: hidden values that are not finite
change no row. generated: new rows of attnc generate have the last integer of the
prompt, or those of --rows.
same/NAME: a word and the condition that it stands for give the same C, also as definitions.attn states them.
refused/NAME: integers of rows that are outside of their range, too few, or missing; refused/state: the same of a call
that appends rows, which leaves the states as they were. numbers: numbers of the sequence, which a state keeps from
its first rows on, and real numbers of rows. Every second random model has a real number of the sequence, too.
pattern/N: pictures of random conditions that attnc explain prints, and the visible pairs that it counts, are
Python's. multiplied/TARGET/NAME: the C multiplies as many pairs as explain says. Of each spec of specs/masks, half
of which take turns with the commits: formula/NAME and weights/NAME, Python's formula against the picture and
against the interpreter's weights, and check/NAME, attnc check on a target of this machine. page: the pictures of
docs/masks.md are what attnc prints; `run.py --renew` writes them. flexattention/NAME: the example of that page in
Python and in a spec.

Environment: ATTNC_QUICK=1 draws fewer models, ATTNC_LONG=1 many; else the models that are drawn take turns with the
commits."""
import itertools
import math
import os
import random
import re
import signal
import struct
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib.attnc import LONG, QUICK, attnc, run_compiled  # noqa: E402
from lib.tap import Report  # noqa: E402
from lib import definitions, npy, turns  # noqa: E402
from lib.targets import here  # noqa: E402
from masks import ahead, flex, hidden, numbers, pairs, patterns, published, states  # noqa: E402

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
# Every second model has a number of the sequence in place of one of them.
RANGES = {"doc": (0, 3), "sign_of": (-2, 2), "far": (-2000000, 2000000)}
NUMBERS = {}  # real numbers of the sequence, with their ranges
BITS = ["tree"]  # an input whose bits conditions read
TABLES = {"ten": ("table [10] i*i mod 7 - 2", [i * i % 7 - 2 for i in range(10)])}
WORDS = ["h"]  # the head, of which GIVEN has the number
GIVEN = {"h": 0}


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


def entry(draw, index):
    name = draw.choice(list(TABLES))
    numbers = TABLES[name][1]
    last = len(numbers) - 1
    return Expression("%s[clamp(%s, 0, %d)]" % (name, index.text, last), 9,
                      lambda q, k: numbers[max(0, min(index.value(q, k), last))])


def choice(test, a, b):
    text = "(if %s then %s else %s)" % (test.text, a.text, b.text)
    return Expression(text, 9, lambda q, k: a.value(q, k) if test.value(q, k) else b.value(q, k))


def number(draw, depth):
    kind = draw.randrange(9 if depth else 4)
    if kind == 3 and not depth or draw.randrange(8) == 0:
        name = draw.choice(list(RANGES))
        of_query = draw.randrange(2)
        return Expression("%s[%s]" % (name, "q" if of_query else "k"), 9,
                          lambda q, k: GIVEN[name][q if of_query else k])
    if WORDS and draw.randrange(10) == 0:
        return Expression("h", 9, lambda q, k: GIVEN["h"])
    if TABLES and depth and draw.randrange(10) == 0:
        return entry(draw, number(draw, depth - 1))
    if TABLES and depth and draw.randrange(10) == 0:
        return choice(condition(draw, depth - 1), number(draw, depth - 1), number(draw, depth - 1))
    if COMPARED and depth and draw.randrange(10) == 0:
        return step(draw, depth - 1)
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


def bit(draw, depth):
    name, at, of_query = draw.choice(BITS), number(draw, depth), draw.randrange(2)

    def value(q, k):
        index = at.value(q, k)
        return 0 <= index < 64 and GIVEN[name][q if of_query else k] >> index & 1
    return Expression("bit(%s[%s], %s)" % (name, "q" if of_query else "k", at.text), 9, value)


def drawn_input(draw, name):
    """An integer of an input, small ones more often than others; of bits about a half are set."""
    return draw.randint(-2**63, 2**63 - 1) if name in BITS else \
        draw.choice((draw.randint(*RANGES[name]), draw.randint(0, 1)))


def choose_inputs(seed):
    for name in ("sign_of", "width"):
        RANGES.pop(name, None), NUMBERS.pop(name, None)
    if seed % 2:
        NUMBERS["width"] = (-3, 40)
    else:
        RANGES["sign_of"] = (-2, 2)


def drawn_number(draw, name):
    return single(draw.choice((draw.uniform(*NUMBERS[name]), draw.uniform(0, 4), draw.randint(*NUMBERS[name]))))


def inputs_of():
    return "".join(["        input rows %s %d..%d\n" % (name, *ends) for name, ends in RANGES.items()] +
                   ["        input number %s real %d..%d\n" % (name, *ends) for name, ends in NUMBERS.items()] +
                   ["        input rows %s\n" % name for name in BITS] +
                   ["        let %s = %s\n" % (name, formula) for name, (formula, _) in TABLES.items()] +
                   ["        let halves = table [10] 0.3*i\n"])


HALVES = [0.3 * i for i in range(10)]  # a table of reals
COMPARED = ["<", "<=", ">", ">="]  # how real numbers compare


def single(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def real(draw, depth):
    """A real number, which is rounded after each operation."""
    kind = draw.randrange(9 if depth else 3)
    if NUMBERS and draw.randrange(3) == 0:
        name = draw.choice(list(NUMBERS))
        return Expression(name, 9, lambda q, k: GIVEN[name])
    if kind == 0:
        constant_of, a = draw.choice((0.5, 1.3, 2.75)), whole_in(draw, 1)
        return Expression("%s*%s" % (constant_of, a.within(7)), 6,
                          lambda q, k: single(single(constant_of) * single(a.value(q, k))))
    if kind == 1:
        a, by = whole_in(draw, 1), draw.choice((3, 7, 10))
        return Expression("%s / %d" % (a.within(6), by), 6, lambda q, k: single(single(a.value(q, k)) / by))
    if kind == 2:
        a = number(draw, 1)
        return Expression("halves[clamp(%s, 0, 9)]" % a.text, 9,
                          lambda q, k: single(HALVES[max(0, min(a.value(q, k), 9))]))
    a, b = real(draw, depth - 1), real(draw, depth - 1)
    if kind == 3:
        of_two = draw.choice((min, max))
        return Expression("%s(%s, %s)" % (of_two.__name__, a.text, b.text), 9,
                          lambda q, k: of_two(a.value(q, k), b.value(q, k)))
    if kind == 7:
        return Expression("sqrt(abs(%s))" % a.text, 9, lambda q, k: single(math.sqrt(abs(a.value(q, k)))))
    if kind == 8:
        return Expression("%s / (abs(%s) + 0.5)" % (a.within(6), b.text), 6,
                          lambda q, k: single(a.value(q, k) / single(abs(b.value(q, k)) + 0.5)))
    name = draw.choice("+-*")
    level, value = OPERATORS[name]
    return Expression("%s %s %s" % (a.within(level), name, b.within(level + 1)), level,
                      lambda q, k: single(value(a.value(q, k), b.value(q, k))))


def step(draw, depth):
    """A whole number of a real one."""
    a = real(draw, min(depth, 1))
    if draw.randrange(2):
        return Expression("sign(%s)" % a.text, 9, lambda q, k: (a.value(q, k) > 0) - (a.value(q, k) < 0))
    return Expression("floor(clamp(%s, -60, 60.5))" % a.text, 9,
                      lambda q, k: math.floor(max(-60, min(a.value(q, k), 60.5))))


def whole_in(draw, depth):
    """A whole number that is no constant, of which a quotient would be computed by the compiler."""
    a, letter = number(draw, depth), draw.choice("qk")
    return binary("+", Expression(letter, 9, lambda q, k: q if letter == "q" else k), a)


def real_condition(draw, depth):
    name = draw.choice(COMPARED)
    return binary(name, real(draw, depth), real(draw, depth))


def condition(draw, depth):
    kind = draw.randrange(6) if depth else 0
    if BITS and draw.randrange(6) == 0:
        return bit(draw, min(depth, 2))
    if COMPARED and draw.randrange(6) == 0:
        return real_condition(draw, min(depth, 2))
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


def spec_of(masks, rows="seq <= 40", heads=1):
    layers = "".join("        layers 1 { attention self { heads %d, mask %s } }\n" % (heads, m) for m in masks)
    return "model m {\n    d_model 8, export attention\n    encoder {\n        input features, %s, position none\n" \
           "%s%s    }\n}\n" % (rows, inputs_of(), layers)


def model(seed):
    draw = random.Random(seed)
    choose_inputs(seed)
    conditions = [condition(draw, draw.randrange(DEPTH)) for _ in range(LAYERS)]
    with tempfile.TemporaryDirectory() as folder:
        spec = os.path.join(folder, "m.attn")
        with open(spec, "w", encoding="utf-8") as file:
            file.write(spec_of(("where " + c.text for c in conditions), heads=2))
        features = os.path.join(folder, "x.npy")
        npy.write(features, [draw.gauss(0, 1) for _ in range(ROWS * 8)], (ROWS, 8), "<f4")
        given = ["--in", "features=" + features]
        for name in [*RANGES, *BITS]:
            GIVEN[name] = [drawn_input(draw, name) for _ in range(ROWS)]
            if any(name + "[" in c.text for c in conditions):
                path = npy.write(os.path.join(folder, name + ".npy"), GIVEN[name], None, "<i8")
                given += ["--in", "%s=%s" % (name, path)]
        for name in [name for name in NUMBERS if any(name in c.text for c in conditions)]:
            GIVEN[name] = drawn_number(draw, name)
            path = npy.write(os.path.join(folder, name + ".npy"), [GIVEN[name]], None, "<f4")
            given += ["--in", "%s=%s" % (name, path)]
        for engine in ("interp", "compiled"):
            out = ["--out=attention.%d=%s/%d.npy" % (layer, folder, layer) for layer in range(LAYERS)]
            done = attnc("run", spec, "--weights", "random:%d" % seed, *given, "--engine", engine, *out)
            assert done.returncode == 0, done.stderr
            for layer, c in enumerate(conditions):
                for pair, weight in enumerate(npy.read("%s/%d.npy" % (folder, layer)).numbers):
                    q, k = divmod(pair % ROWS**2, ROWS)
                    GIVEN["h"] = pair // ROWS**2
                    assert (weight > 0) == bool(c.value(q, k)), "%s, layer %d: %s: head %d, query %d, key %d has the " \
                        "weight %g" % (engine, layer, c.text, GIVEN["h"], q, k, weight)
    GIVEN["h"] = 0


def pattern(seed):
    draw = random.Random(seed)
    choose_inputs(seed // 2)  # in every second model this test draws the inputs
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
        given.pop("h", None)  # the first head is drawn
        for name in list(given) if seed % 2 else []:
            ends = RANGES.get(name, (-2**63, 2**63 - 1))
            given[name] = [drawn_number(draw, name)] if name in NUMBERS else \
                [draw.randint(*ends) for _ in range(draw.randrange(1, rows + 3))]
            words += ["--draw", "%s=%s" % (name, ",".join(map(repr, given[name])))]
        text = attnc("explain", spec, "--seq", str(rows), *words, status=0).stdout
    for name in [*RANGES, *BITS]:  # of an input that no drawn condition reads, any integers will do
        numbers = given.get(name, [0])
        GIVEN[name] = [numbers[row % len(numbers)] for row in range(rows)]
    GIVEN.update((name, single(given.get(name, [0])[0])) for name in NUMBERS)
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
    ("gap", "where k mod 64 < 3 or abs(q - k) < 8", 127),
    ("number", "where abs(q - k) < width or k*k < width*width/8", 150),
    ("quotient", "where abs(k - 50) < width or width / (abs(q - k) - 3) > 2 and q != k", 149))


def multiplied(target, mask, rows):
    choose_inputs(1)
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


# ---------------------------------------------------------------- states

MOST, STATES, CALLS, STATED = 60, 3, 14, 3


class Text:
    """A state, with the words and the integers of its rows."""

    def __init__(self, decoder):
        self.state, self.words, self.integers = decoder.state(), [], {name: [] for name in [*RANGES, *BITS]}
        self.numbers = {}

    def cut(self, rows):
        del self.words[rows:]
        for row in self.integers.values():
            del row[rows:]


def drawn(draw, count):
    """Words and integers of new rows. Integers are in runs, since a panel whose rows are alike is wholly hidden."""
    integers = {}
    for name in [*RANGES, *BITS]:
        integers[name] = [drawn_input(draw, name)]
        while len(integers[name]) < count:
            integers[name].append(drawn_input(draw, name) if draw.randrange(8) == 0 else integers[name][-1])
    return [draw.randrange(9) for _ in range(count)], integers


def same_as_forward(decoder, conditions, text, rows, hidden, maps):
    """The last rows of a text, and the visible pairs of each layer."""
    n = len(text.words)
    numbers_of = {name: [number] for name, number in text.numbers.items()}
    status, whole, _ = decoder.forward(text.words, {**text.integers, **numbers_of})
    same = whole[(n - rows) * 4 * decoder.width:] == hidden
    assert status == 0 and same, "other bits than forward: %d rows of %d" % (rows, n)
    GIVEN.update(text.integers)
    GIVEN.update(text.numbers)
    for layer, c in enumerate(conditions if maps else []):
        for pair, weight in enumerate(maps[layer * rows * n:][:rows * n]):
            q, k = n - rows + pair // n, pair % n
            assert (weight > 0) == bool(k <= q and c.value(q, k)), \
                "layer %d: %s: query %d, key %d has the weight %g" % (layer, c.text, q, k, weight)


def append(decoder, conditions, draw, texts):
    """Appends rows to some texts in one call: any number to each, or one."""
    chosen = [t for t in draw.sample(texts, draw.randint(1, len(texts))) if len(t.words) < MOST]
    step = draw.randrange(2)
    lengths = [1 if step else draw.randint(1, min(40, MOST - len(t.words))) for t in chosen]
    words, integers = drawn(draw, sum(lengths))
    at, pairs = 0, 0
    for name in NUMBERS:  # which only the first rows of a text come with
        integers[name] = [math.nan if text.words else drawn_number(draw, name) for text in chosen]
        for text, value in zip(chosen, integers[name]):
            if not text.words:
                text.numbers[name] = value
    for text, rows in zip(chosen, lengths):
        text.words += words[at:at + rows]
        for name, row in text.integers.items():
            row += integers[name][at:at + rows]
        at, pairs = at + rows, pairs + STATED * rows * len(text.words)
    held = [t.state for t in chosen]
    if not chosen:
        return
    if draw.randrange(2) and (step or len(chosen) == 1):
        status, hidden = decoder.short(held, words, integers)
        maps = []
    else:
        status, hidden, maps = decoder.decode(held, words, integers, None if step else lengths, pairs)
    assert status == 0, status
    for text, rows in zip(chosen, lengths):
        size, count = rows * 4 * decoder.width, STATED * rows * len(text.words)
        same_as_forward(decoder, conditions, text, rows, hidden[:size], maps[:count])
        hidden, maps = hidden[size:], maps[count:]


def decode(seed):
    draw = random.Random(seed)
    choose_inputs(seed)
    conditions = [condition(draw, draw.randrange(DEPTH)) for _ in range(STATED)]
    layers = "".join("layers 1 { attention self { heads 1, mask causal where %s } }\n" % c.text for c in conditions)
    spec = "model m { d_model 8, vocab 9, export attention\ndecoder { seq <= %d, position none\n%s%s} }\n" % (
        MOST, inputs_of(), layers)
    with tempfile.TemporaryDirectory() as folder:
        decoder = states.Decoder(folder, spec, seed, 8)
        texts = [Text(decoder) for _ in range(STATES)]
        for _ in range(CALLS):
            append(decoder, conditions, draw, texts)
            a, b = draw.sample(texts, 2)
            if draw.randrange(3) == 0:
                assert decoder.copy(b.state, a.state) == 0
                b.words, b.integers = list(a.words), {name: list(row) for name, row in a.integers.items()}
                b.numbers = dict(a.numbers)
            if draw.randrange(3) == 0:
                rows = draw.randint(0, len(a.words))
                assert decoder.rewind(a.state, rows) == 0
                a.cut(rows)


def pages():
    """Rows of three documents; the last row sees the second one alone. Rows of it which the state has dropped make no
    panel visible."""
    spec = "model m { d_model 32, vocab 9\ndecoder { seq <= 4096, position none\ninput rows doc 0..3\n" \
           "input rows wanted 0..3\nlayers 2 { attention self { heads 2, head_dim 16\n" \
           "mask causal where doc[k] == wanted[q] } } } }\n"
    begin, end, rows, slots, width = 1029, 2043, 4095, 4096, 16
    doc = [0] * begin + [1] * (end - begin) + [2] * (rows - end)
    with tempfile.TemporaryDirectory() as folder:
        decoder = states.Decoder(folder, spec, 1, 32)
        state, other = decoder.state(), decoder.state()
        for first, given in ((0, [0] * 1000 + [1] * 9), (1000, doc[1000:])):
            assert decoder.rewind(state, first) == 0
            words = [k % 9 for k in range(first, first + len(given))]
            assert decoder.decode([state], words, {"doc": given, "wanted": given}, [len(given)])[0] == 0
        assert decoder.copy(other, state) == 0
        status, wanted, _ = decoder.decode([other], [4], {"doc": [2], "wanted": [1]}, None)
        assert status == 0
        count = 0
        for at in (64 + 4 * at for name, at in decoder.caches.items() if "input" not in name):
            for head in (at + 4 * slots * width * h for h in range(2)):
                for first, last in ((0, begin // 16 * 16), ((end + 15) // 16 * 16, rows // 16 * 16)):
                    count += states.protect(state, head + 4 * width * first, head + 4 * width * last)
        assert count > 300, count

        def step(document):
            status, hidden, _ = decoder.decode([state], [4], {"doc": [2], "wanted": [document]}, None)
            return status == 0 and hidden == wanted

        assert states.in_child(lambda: step(1)) == 0, "a step touches a page of hidden keys or values, or errs"
        assert states.in_child(lambda: step(0)) == -signal.SIGSEGV, "the pages can be read"


def state_refused():
    spec = "model m { d_model 8, vocab 9\ndecoder { seq <= 40, position none\ninput rows doc -1..3\n" \
           "layers 1 { attention self { heads 1, mask causal where doc[q] == doc[k] } } } }\n"
    with tempfile.TemporaryDirectory() as folder:
        decoder = states.Decoder(folder, spec, 1, 8)
        both = [decoder.state(), decoder.state()]
        assert decoder.decode(both, [1, 2, 3], {"doc": [0, -1, 3]}, [2, 1])[0] == 0
        before = [bytes(block) for block, _ in both]
        for doc, wanted in (([0, 1, 4], "BAD_TOKEN"), ([-2, 1, 3], "BAD_TOKEN"), (None, "BAD_ARGUMENT")):
            status = decoder.decode(both, [1, 2, 3], {"doc": doc}, [1, 2])[0]
            assert status == decoder.statuses[wanted], "%s: status %d" % (doc, status)
            assert [bytes(block) for block, _ in both] == before, "%s: a state was written" % doc


def generated():
    """Generated rows have the last integer of the prompt: the tokens are those to which forward gives the most."""
    spec = "model m { d_model 8, vocab 30, start 1\ndecoder { seq <= 40, position rope\ninput rows doc 0..3\n" \
           "layers 2 { attention self { heads 2, mask causal where doc[q] == doc[k] } } }\nhead logits }\n"
    words, doc, new = [1, 7, 3, 9, 20, 4], [0, 0, 2, 2, 1, 2], 12
    with tempfile.TemporaryDirectory() as folder:
        def array(name, numbers):
            return "%s=%s" % (name, npy.write("%s/%s.npy" % (folder, name), numbers))

        path = os.path.join(folder, "m.attn")
        with open(path, "w", encoding="utf-8") as file:
            file.write(spec)
        weights, missing = ["--weights", "random:3"], "input doc is missing"
        for engine in ("interp", "compiled"):
            given = [*weights, "--engine", engine, "--max-new", str(new)]
            prompt = ["--in", array("tokens", words), "--in", array("doc", doc)]
            made = attnc("generate", path, *given, *prompt, status=0).stdout
            text = words + [int(word) for word in made.split()]
            assert len(text) == len(words) + new, made
            attnc("run", path, *weights, "--engine", engine, "--in", array("tokens", text[:-1]),
                  "--in", array("doc", doc + doc[-1:] * (new - 1)), "--out", "logits=%s/l.npy" % folder, status=0)
            logits = npy.read(folder + "/l.npy").numbers
            for row in range(len(words) - 1, len(text) - 1):
                scores = list(logits[row * 30:row * 30 + 30])
                assert scores.index(max(scores)) == text[row + 1], "%s: row %d of %s" % (engine, row, text)
            beams = [attnc("generate", path, *given[:2], "--engine", e, *given[4:], *prompt, "--beam", "3",
                           status=0).stdout for e in ("interp", engine)]
            assert beams[0] == beams[1], beams
            for problem, some in ((missing, []), (missing, ["--in", array("tokens", words)]),
                                  ("input doc", ["--in", array("tokens", words), "--in", array("doc", doc[1:])]),
                                  ("the integer 4 at 5 is outside 0 to 3",
                                   ["--in", array("tokens", words), "--in", array("doc", doc[:-1] + [4])])):
                done = attnc("generate", path, *given, *some)
                assert done.returncode == 1 and problem in done.stderr, "%s: %s" % (problem, done.stderr)


def whole_texts():
    """--rows gives the numbers of generated rows, too: the tokens are those to which forward gives the most."""
    spec = "model m { d_model 8, vocab 30, start 1\ndecoder { seq <= 40\ninput rows doc 0..3, input rows weight real " \
           "-2..2, input rows pos 0..63, input number far 1..9\nposition learned at pos, layers 2 { attention self { " \
           "heads 2, mask causal where doc[q] == doc[k] or q - k < far, score s + weight[k] } } }\nhead logits }\n"
    words, new, far = [[1, 7, 3, 9, 20, 4], [1, 5, 2]], 12, [2, 3]
    counts = [len(text) + new - 1 for text in words]
    rows = {"doc": ([[(i * i + b) % 4 for i in range(17)] for b in range(2)], "<i8"),
            "weight": ([[(i % 5 - 2) / 2 + b / 4 for i in range(17)] for b in range(2)], "<f4"),
            "pos": ([[(7 * i + b) % 64 for i in range(17)] for b in range(2)], "<i4")}
    count = itertools.count()
    with tempfile.TemporaryDirectory() as folder:
        def array(name, numbers, kind="<i8", shape=None):
            path = npy.write("%s/%d.npy" % (folder, next(count)), numbers, shape or (len(numbers),), kind)
            return "%s=%s" % (name, path)

        whole = [word for name, (both, kind) in rows.items()
                 for word in ("--rows", array(name, both[0] + both[1], kind, (2, 17)))]

        path = os.path.join(folder, "m.attn")
        with open(path, "w", encoding="utf-8") as file:
            file.write(spec)
        for engine in ("interp", "compiled"):
            given = ["--weights", "random:3", "--engine", engine]
            made = attnc("generate", path, *given, "--max-new", str(new), *whole, "--in",
                         array("tokens", words[0] + words[1] + [0] * 3, shape=(2, 6)), "--in", array("far", far),
                         "--in", array("attention_mask", [1] * 9 + [0] * 3, shape=(2, 6)), status=0).stdout.splitlines()
            for b, line in enumerate(made):
                text = words[b] + [int(word) for word in line.split()]
                assert len(text) == counts[b] + 1, line
                attnc("run", path, *given, "--in", array("tokens", text[:-1]), "--in", array("far", far[b:b + 1]),
                      *[word for name, (both, kind) in rows.items()
                        for word in ("--in", array(name, both[b][:counts[b]], kind))],
                      "--out", "logits=%s/l.npy" % folder, status=0)
                logits = npy.read(folder + "/l.npy").numbers
                for row in range(len(words[b]) - 1, counts[b]):
                    scores = list(logits[row * 30:row * 30 + 30])
                    assert scores.index(max(scores)) == text[row + 1], "%s: row %d of %s" % (engine, row, text)
        tokens = ["--in", array("tokens", words[0])]
        alone = [word for name, (both, kind) in rows.items() if name != "doc"
                 for word in ("--rows", array(name, both[0], kind))] + ["--in", array("far", far[:1])]
        for problem, some in (
                ("has 16 numbers, and a prompt of 6 with `--max-new` 12 needs 17", ["--rows", array("doc", [0] * 16)]),
                ("the integer 4 at 16 is outside 0 to 3", ["--rows", array("doc", [0] * 16 + [4])]),
                ("input doc is given twice", ["--rows", array("doc", [0] * 17), "--in", array("doc", [0] * 6)]),
                ("`far` is not one", ["--in", array("doc", [0] * 6), "--rows", array("far", far[:1])]),
                ("`tokens` is not one", ["--in", array("doc", [0] * 6), "--rows", array("tokens", words[0])]),
                ("it takes tokens, pos, doc, far, weight, attention_mask",
                 ["--in", array("doc", [0] * 6), "--in", array("other", [1])])):
            done = attnc("generate", path, "--weights", "random:3", "--max-new", str(new), *tokens, *alone, *some)
            assert done.returncode == 1 and problem in done.stderr, "%s: %s" % (problem, done.stderr)


# ---------------------------------------------------------------- words, and what is refused

def c_of(text):
    """The C of a spec of the model m, without comments."""
    with tempfile.TemporaryDirectory() as folder:
        spec = os.path.join(folder, "m.attn")
        with open(spec, "w", encoding="utf-8") as file:
            file.write(text)
        done = attnc("compile", spec, "-o", folder)
        assert done.returncode == 0, done.stderr
        with open(os.path.join(folder, "m.c"), encoding="utf-8") as file:
            return re.sub(r"/\*.*?\*/|//[^\n]*", "", file.read(), flags=re.S)


def same(word, expression):
    spec = "model m {\n    d_model 8\n    encoder { input features, seq <= 40, layers 1 { attention self {\n" \
           "        heads 1\n        %s\n    } } }\n}\n"
    assert c_of(spec % word) == c_of(spec % expression), "`%s` and `%s` give other C" % (word, expression)


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


def attempts():
    seeds = turns.seeds(6, 2, 200)
    for seed in seeds:
        REPORT.attempt("where/%d" % seed, model, seed)
        REPORT.attempt("decode/%d" % seed, decode, seed)
        REPORT.attempt("ahead/%d" % seed, ahead.whole, seed)
        REPORT.attempt("ahead/reals/%d" % seed, ahead.real, seed)
        REPORT.attempt("blocks/%d" % seed, pairs.blocks, seed)
    for name, word, expression in (
            ("both", "mask causal window 4", "mask where q >= k and abs(q - k) < 2^2"),
            ("rest", "mask causal where k mod 3 == 0", "mask where k <= q and not k mod 3 != 0"),
            *((name, *forms) for name, forms in definitions.masks().items())):
        REPORT.attempt("same/" + name, same, word, expression)
    for seed in seeds:
        REPORT.attempt("pattern/%d" % seed, pattern, seed)
    cases = [(target, *case) for target in patterns.widths() for case in MULTIPLIED]
    for target, name, mask, rows in turns.in_turn(cases, 3):
        REPORT.attempt("multiplied/%s/%s" % (target, name), multiplied, target, mask, rows)
    for target in patterns.widths():
        REPORT.attempt("multiplied/%s/pairs" % target, pairs.multiplied, target)
    REPORT.attempt("page", published.page_is_printed)
    REPORT.attempt("specs", published.every_spec)
    for number, name in enumerate(published.MASKS):
        if not LONG and (number + turns.turn()) % (8 if QUICK else 2):
            continue
        REPORT.attempt("formula/" + name, published.formula, name)
        with tempfile.TemporaryDirectory() as folder:
            REPORT.attempt("weights/" + name, published.weights, name, folder, "interp")
        REPORT.attempt("check/" + name, published.check, name, turns.rotated(here(on_request=False), number))
    for number, (name, python, spec) in enumerate(flex.sections()):
        with tempfile.TemporaryDirectory() as folder:
            target = turns.rotated(here(on_request=False), number)
            REPORT.attempt("flexattention/" + name.replace(" ", "_"), flex.same, python, spec, folder, target)
    REPORT.attempt("ahead/always", ahead.always)
    REPORT.attempt("ahead/generated", ahead.generated)
    REPORT.attempt("pages", pages)
    REPORT.attempt("pages/values", pairs.pages)
    cases = [(target, precision, name) for target in here(on_request=False) for precision in ("f32", "bf16")
             for name in hidden.MASKS]
    in_pairs = [case for case in cases if case[:2] == ("avx512bf16", "bf16")]
    for target, precision, name in in_pairs + turns.in_turn([case for case in cases if case not in in_pairs], 6):
        REPORT.attempt("hidden/%s/%s/%s" % (target, precision, name), hidden.values_stay_hidden, name, precision,
                       ("compiled", "--target", target))
    for name in hidden.MASKS:
        REPORT.attempt("hidden/interp/%s" % name, hidden.values_stay_hidden, name, "bf16", ("interp",))
    REPORT.attempt("generated", generated)
    REPORT.attempt("generated/whole", whole_texts)
    REPORT.attempt("numbers", numbers.kept)
    REPORT.attempt("numbers/zeros", numbers.zeros)
    REPORT.attempt("refused/state", state_refused)
    REPORT.attempt("refused/above", refused, [0, 4, 1], "the integer 4 at 1 is outside 0 to 3")
    REPORT.attempt("refused/below", refused, [0, 3, -1], "the integer -1 at 2 is outside 0 to 3")
    REPORT.attempt("refused/few", refused, [0, 3], "the length")
    REPORT.attempt("refused/missing", refused, [0], "input doc is missing", False)


if __name__ == "__main__":
    if sys.argv[1:] == ["--renew"]:
        published.renew()
    else:
        sys.exit(run_compiled(REPORT, attempts))
