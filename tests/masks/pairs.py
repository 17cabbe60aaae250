"""Masks that read numbers of pairs and real numbers of rows, which a call gives in blocks and scattered, with NaN and
infinities: the C decides whole panels by their least and greatest numbers."""
import ctypes
import math
import os
import random
import re
import signal
import struct
import tempfile

from lib import npy, turns
from lib.attnc import UNOPTIMIZED, attnc, run
from lib.targets import here
from masks import patterns, states

LAYERS, MOST = 6, 130
INPUTS = "input pairs near -2..3\ninput pairs slant real\ninput rows age real\ninput rows size real 0.5..4\n"
UNUSUAL = (math.nan, -math.nan, math.inf, -math.inf, 0.0, -0.0, 3e38, -3e38)


def f32(x):
    try:
        return struct.unpack("f", struct.pack("f", x))[0]
    except OverflowError:
        return math.copysign(math.inf, x)


def product(a, b):
    return f32(a * b)


def quotient(a, b):
    if b != 0:
        return f32(a / b)
    return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1, b)


def floored(a):
    return f32(math.floor(a)) if math.isfinite(a) and a != 0 else a


class Term:
    """A text, and its value for the arrays of a call, a query and a key."""

    def __init__(self, text, value):
        self.text, self.value = text, value


def leaf(draw):
    kind = draw.randrange(6)
    if kind < 2:
        return Term("slant[q, k]", lambda x, q, k: x["slant"][q][k])
    if kind == 2:
        return Term("(near[q, k]*0.75)", lambda x, q, k: f32(0.75 * x["near"][q][k]))
    name, of_query = draw.choice(("age", "size")), draw.randrange(2)
    return Term("%s[%s]" % (name, "q" if of_query else "k"), lambda x, q, k: x[name][q if of_query else k])


def other(draw, depth):
    """The second operand, which may be a constant."""
    if draw.randrange(4):
        return real(draw, draw.randrange(depth + 1))
    number = draw.choice((0.5, -1.25, 3.0))
    return Term("(%s)" % number, lambda x, q, k: number)


def real(draw, depth):
    if depth == 0:
        return leaf(draw)
    a, b, kind = real(draw, depth - 1), other(draw, depth - 1), draw.randrange(9)
    if kind == 0:
        return Term("sqrt(%s)" % a.text,
                    lambda x, q, k: f32(math.sqrt(v)) if (v := a.value(x, q, k)) >= 0 else math.nan)
    if kind == 1:
        return Term("abs(%s)" % a.text, lambda x, q, k: abs(a.value(x, q, k)))
    if kind == 2:
        return Term("(floor(%s)*0.5)" % a.text, lambda x, q, k: f32(floored(a.value(x, q, k)) / 2))
    if kind == 3:
        return Term("min(%s, %s)" % (a.text, b.text),
                    lambda x, q, k: v if (v := a.value(x, q, k)) < (w := b.value(x, q, k)) else w)
    if kind == 4:
        return Term("max(%s, %s)" % (a.text, b.text),
                    lambda x, q, k: v if (v := a.value(x, q, k)) > (w := b.value(x, q, k)) else w)
    if kind == 5:
        c = condition(draw, 0)
        return Term("(if %s then %s else %s)" % (c.text, a.text, b.text),
                    lambda x, q, k: (a if c.value(x, q, k) else b).value(x, q, k))
    sign = draw.choice("+-*/")
    value = {"+": lambda a, b: f32(a + b), "-": lambda a, b: f32(a - b), "*": product, "/": quotient}[sign]
    return Term("(%s %s %s)" % (a.text, sign, b.text), lambda x, q, k: value(a.value(x, q, k), b.value(x, q, k)))


COMPARISONS = {"<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b,
               ">=": lambda a, b: a >= b, "==": lambda a, b: a == b, "!=": lambda a, b: a != b}


def whole(draw):
    """A comparison of whole numbers."""
    name, number = draw.choice(list(COMPARISONS)), draw.randrange(-2, 4)
    a = draw.choice((Term("near[q, k]", lambda x, q, k: x["near"][q][k]),
                     Term("near[q, k]*near[q, k] - 3", lambda x, q, k: x["near"][q][k]**2 - 3),
                     Term("floor((q - k)/30) + near[q, k]", lambda x, q, k: (q - k) // 30 + x["near"][q][k]),
                     Term("floor(size[k]*1.5) - abs(near[q, k])",
                          lambda x, q, k: math.floor(f32(x["size"][k] * 1.5)) - abs(x["near"][q][k]))))
    return Term("%s %s %d" % (a.text, name, number), lambda x, q, k: COMPARISONS[name](a.value(x, q, k), number))


def condition(draw, depth):
    if depth:
        a, b, word = condition(draw, depth - 1), condition(draw, 0), draw.choice(("and", "or"))
        return Term("(%s %s %s)" % (a.text, word, b.text),
                    lambda x, q, k: a.value(x, q, k) and b.value(x, q, k) if word == "and" else
                    a.value(x, q, k) or b.value(x, q, k))
    if draw.randrange(3) == 0:
        return whole(draw)
    name, a, b = draw.choice(list(COMPARISONS)), real(draw, draw.randrange(3)), other(draw, 1)
    return Term("%s %s %s" % (a.text, name, b.text),
                lambda x, q, k: COMPARISONS[name](a.value(x, q, k), b.value(x, q, k)))


def in_blocks(draw, rows, keys, number):
    """Numbers that are the same in boxes, but for some scattered ones."""
    high, wide = draw.choice((1, 9, 24)), draw.choice((16, 23, 40))
    boxes = [[number() for _ in range(keys // wide + 1)] for _ in range(rows // high + 1)]
    return [[number() if draw.randrange(400) == 0 else boxes[q // high][k // wide] for k in range(keys)]
            for q in range(rows)]


def some_real(draw):
    return f32(draw.choice(UNUSUAL) if draw.randrange(12) == 0 else draw.choice((draw.gauss(0, 2), 1.5)))


def arrays(draw, rows):
    return {"near": in_blocks(draw, rows, rows, lambda: draw.randint(-2, 3)),
            "slant": in_blocks(draw, rows, rows, lambda: some_real(draw)),
            "age": in_blocks(draw, 1, rows, lambda: some_real(draw))[0],
            "size": in_blocks(draw, 1, rows, lambda: f32(draw.uniform(0.5, 4)))[0]}


def given(folder, numbers, rows, conditions):
    """The inputs that some condition reads, as options."""
    options = []
    for name, values in numbers.items():
        if any(name + "[" in c.text for c in conditions):
            flat = [x for row in values for x in row] if isinstance(values[0], list) else values
            path = npy.write("%s/%s.npy" % (folder, name), flat, (rows,) * (2 if flat is not values else 1),
                             "<i8" if name == "near" else "<f4")
            options += ["--in", "%s=%s" % (name, path)]
    return options


def blocks(seed):
    """Random conditions: weights are above 0 exactly where Python says, in both engines and on a target in turn."""
    draw = random.Random(seed)
    conditions = [condition(draw, draw.randrange(3)) for _ in range(LAYERS)]
    rows = draw.choice((33, 70, MOST))
    numbers = arrays(draw, rows)
    layers = "".join("layers 1 { attention self { heads 1, mask where %s } }\n" % c.text for c in conditions)
    with tempfile.TemporaryDirectory() as folder:
        spec = os.path.join(folder, "m.attn")
        with open(spec, "w", encoding="utf-8") as file:
            file.write("model m {\nd_model 8, export attention\nencoder {\ninput features, seq <= %d, position none\n"
                       "%s%s} }\n" % (MOST, INPUTS, layers))
        features = npy.write(folder + "/x.npy", [draw.gauss(0, 1) for _ in range(rows * 8)], (rows, 8), "<f4")
        words = ["run", spec, "--weights", "random:%d" % seed, "--in", "features=" + features,
                 *given(folder, numbers, rows, conditions)]
        for engine in (["interp"], ["compiled", "--target", turns.rotated(here(on_request=False), seed)]):
            out = ["--out=attention.%d=%s/%d.npy" % (layer, folder, layer) for layer in range(LAYERS)]
            attnc(*words, "--engine", *engine, *out, status=0)
            for layer, c in enumerate(conditions):
                for pair, weight in enumerate(npy.read("%s/%d.npy" % (folder, layer)).numbers):
                    q, k = divmod(pair, rows)
                    assert (weight > 0) == bool(c.value(numbers, q, k)), "%s, layer %d: %s: query %d, key %d has the " \
                        "weight %g" % (" ".join(engine), layer, c.text, q, k, weight)


def library(folder, text, target):
    """The C of the model m as a library, and its header."""
    spec = os.path.join(folder, "m.attn")
    with open(spec, "w", encoding="utf-8") as file:
        file.write(text)
    attnc("compile", spec, "-o", folder, "--target", target, "--weights", "random:1", "--embed-weights",
          status=0)
    run(UNOPTIMIZED, "-std=c11", "-shared", "-fPIC", "-w", folder + "/m.c", "-o", folder + "/m.so", status=0)
    with open(folder + "/m.h", encoding="utf-8") as file:
        return ctypes.CDLL(folder + "/m.so"), file.read()


def pages():
    """Of keys in panels that no row sees, no value is read: each value is a page, and those pages have no access."""
    queries, keys, width = 21, 120, states.PAGE // 4
    spec = "model m {\ninput pairs near 0..9\nattention cross { score dot, project none, d_query 8, d_key 8, " \
           "d_value %d\nqueries <= %d, keys <= %d, mask where near[q, k] <= 3 } }\n" % (width, queries, keys)
    hidden = [*range(16, 48), *range(80, 96)]
    near = [[9 if k in hidden else (q + k) % 7 for k in range(keys)] for q in range(queries)]
    with tempfile.TemporaryDirectory() as folder:
        made, header = library(folder, spec, here()[-1])
        given, written = states.record(header, "m_input")(), states.record(header, "m_output")()
        context, block = (ctypes.c_char * 256)(), states.memory(keys * states.PAGE)
        values = (ctypes.c_float * (keys * width)).from_buffer(block[0])
        values[:] = [(i % 31 - 15) / 8 for i in range(keys * width)]
        rows = (ctypes.c_float * (keys * 8))(*[math.sin(i) for i in range(keys * 8)])
        out = (ctypes.c_float * (queries * width))()
        counts, pairs = states.ints([queries, keys]), states.ints([x for row in near for x in row])
        given.size, given.batch = ctypes.sizeof(given), 1
        given.lengths, given.key_lengths = ctypes.addressof(counts), ctypes.addressof(counts) + 4
        given.query = given.key = ctypes.addressof(rows)
        given.value, given.in_near = block[1], ctypes.addressof(pairs)
        written.size, written.context = ctypes.sizeof(written), ctypes.addressof(out)
        work = states.memory(1 << 24)
        made.m_embedded.restype = ctypes.c_void_p
        size = int(re.search(r"M_WEIGHTS_BYTES M_CAST\(size_t, (\d+)u\)", header)[1])
        assert made.m_init(context, ctypes.c_void_p(made.m_embedded()), ctypes.c_size_t(size), None) == 0

        def forward():
            return made.m_forward(context, ctypes.byref(given), ctypes.byref(written), ctypes.c_void_p(work[1]),
                                  ctypes.c_size_t(1 << 24))

        assert forward() == 0
        wanted = bytes(out)
        for k in hidden:
            assert states.protect(block, k * states.PAGE, (k + 1) * states.PAGE) == 1
        ctypes.memset(out, 0, ctypes.sizeof(out))
        assert states.in_child(lambda: forward() == 0 and bytes(out) == wanted) == 0, "a hidden value is read, or errs"
        pairs[keys + hidden[0]] = 3
        assert states.in_child(lambda: forward() == 0) == -signal.SIGSEGV, "the pages can be read"


def multiplied(target):
    """The C multiplies as many pairs as explain says, which draws the pairs of a list."""
    rows, lines = 100, [(48, 1, 5)] * 48 + [(48, 5, 2)] * 40 + [(30, 2, 6)] * 12
    spec = "model m {\nd_model 8, export attention\nencoder { input features, seq <= %d, position none\n" \
           "input pairs near 0..9\nlayers 1 { attention self { heads 1, mask where near[q, k] <= 3 } } } }\n" % rows
    listed = [number for wide, a, b in lines for number in [a] * wide + [b] * (rows - wide)]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "m.attn")
        with open(path, "w", encoding="utf-8") as file:
            file.write(spec)
        text = attnc("explain", path, "--target", target, "--seq", str(rows), "--draw",
                     "near=" + ",".join("%d*%d,%d*%d" % (n, a, rows - n, b) for n, a, b in lines), status=0).stdout
        picture, = patterns.pictures(text)
        patterns.compare(picture, lambda q, k: listed[q * rows + k] <= 3)
        found = patterns.count_multiplied(folder, path, target, rows, {"near": listed})
        assert found == picture.multiplied, "counted %d:\n%s" % (found, picture.text)
        assert found < rows * rows * 0.7, "hidden panels are multiplied"
        without = attnc("explain", path, "--seq", str(rows), status=0).stdout
        assert not patterns.pictures(without), "pairs are not known before a call"
