#!/usr/bin/env python3
"""score/N: random expressions of `score EXPR` over positions, heads, inputs of rows and of pairs, and tables, also
learned ones, each the score of one layer of an encoder whose products are 0, interpreted and compiled. The weights of
attention are those that Python computes. alone/N: the same over scores that are not 0, in attention alone. same/NAME:
words and the expression that they stand for give the same C, or the same bits.

Environment: ATTNC_QUICK=1 draws fewer models, ATTNC_LONG=1 many; else the models that are drawn take turns with the
commits."""
import math
import os
import random
import re
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib.attnc import attnc, run_compiled  # noqa: E402
from lib.tap import Report  # noqa: E402
from lib import definitions, npy, safetensors, turns  # noqa: E402
from masks import run as whole  # noqa: E402

LAYERS, ROWS, DEPTH, HEADS = 6, 19, 4, 2
REPORT = Report("scores")
TABLE = [math.sin(i) + i / 4 for i in range(7)]


LEARNED = {}  # the numbers of the learned tables of the layer whose pairs are evaluated


class Pair:
    """A query and a key, their score and head, and the largest number that an expression made of them."""

    def __init__(self, q, k, h=0, s=0.0):
        self.q, self.k, self.h, self.s, self.most = q, k, h, s, 1.0

    def note(self, value):
        self.most = max(self.most, abs(value))
        return value


class Real:
    """A text in parentheses where it needs them, and its value for a Pair."""

    def __init__(self, text, value):
        self.text, self.value = text, lambda p: p.note(value(p))


for some in (whole.BITS, whole.TABLES, whole.WORDS, whole.COMPARED):  # other parts of these tests have them
    some.clear()
whole.RANGES.pop("far")  # whose products f32 rounds


def of_whole(draw, rows):
    """A whole number, perhaps of integers of rows."""
    while True:
        x = whole.number(draw, 2)
        if rows or "[" not in x.text:
            return x


def of_real(draw, depth, rows):
    """A real number that decides, perhaps of a real input."""
    kind = draw.randrange(5 if depth else 2)
    if kind == 0 and rows:
        name, (_, shape) = REAL[-1], REAL_INPUTS[REAL[-1]]
        at = "q, k" if len(shape) == 2 else draw.choice("qk")
        return whole.Expression("%s[%s]" % (name, at), 9, lambda q, k: whole.GIVEN[name][
            q * ROWS + k if len(shape) == 2 else q if at == "q" else k])
    if kind < 2:
        while True:
            x = whole.real(draw, 1)
            if rows or "[" not in x.text.replace("halves[", ""):
                return x
    a = of_real(draw, depth - 1, rows)
    if kind == 2:
        return whole.Expression("sqrt(abs(%s))" % a.text, 9, lambda q, k: single(math.sqrt(abs(a.value(q, k)))))
    if kind == 3:
        return whole.Expression("%s^2" % a.within(9), 8, lambda q, k: single(a.value(q, k) * a.value(q, k)))
    b = of_real(draw, depth - 1, rows)
    return whole.Expression("%s/(%s + 40)" % (a.within(6), b.within(5)), 6,
                            lambda q, k: single(a.value(q, k) / single(b.value(q, k) + 40)))


def of_condition(draw, rows):
    if draw.randrange(3) == 0:
        a, b = of_real(draw, draw.randrange(3), rows), of_real(draw, draw.randrange(3), rows)
        return whole.binary(draw.choice(("<", "<=", ">", ">=")), a, b)
    a, b = of_whole(draw, rows), of_whole(draw, rows)
    return whole.binary(draw.choice(("<", "<=", "==", "!=")), a, b)


FUNCTIONS = {"tanh": math.tanh, "sigmoid": lambda x: 1 / (1 + math.exp(-x)), "abs": abs}
TABLED = {"log": math.log, "sin": math.sin, "cos": math.cos, "erf": math.erf}


def learned(draw, rows):
    kind = draw.randrange(5)
    if kind == 0:
        return Real("gain[h]", lambda p: LEARNED["gain"][p.h])
    if kind == 1:
        x = of_whole(draw, rows)
        return Real("near[h, %s mod 12]" % x.within(6), lambda p: LEARNED["near"][12 * p.h + x.value(p.q, p.k) % 12])
    if kind == 2:
        return Real("near[h, clamp(q - k + 6, 0, 11)]",
                    lambda p: LEARNED["near"][12 * p.h + max(0, min(p.q - p.k + 6, 11))])
    if kind == 3:
        at = draw.choice("qk")
        return Real("common[%s mod 9]" % at, lambda p: LEARNED["common"][(p.q if at == "q" else p.k) % 9])
    return Real("common[min(8, floor(2*log(abs(q - k) + 1)))]",
                lambda p: LEARNED["common"][min(8, int(2 * math.log(abs(p.q - p.k) + 1)))])


# The real input of the model at hand, which has as many inputs of rows and of pairs as one can have.
REAL_INPUTS = {"slant": ("pairs", (ROWS, ROWS)), "weight": ("rows", (ROWS,))}
REAL = []


def dist(p):
    return whole.GIVEN["dist"][p.q * ROWS + p.k]


def of_steps(draw):
    """Steps of a number that reads the real input."""
    x = of_real(draw, 2, True)
    while REAL[-1] not in x.text:
        x = of_real(draw, 2, True)
    kind = draw.randrange(3)
    if kind == 0 or (kind == 2 and "sqrt" in x.text):  # without a range, its root is NaN or at least 0: no index
        return Real("floor(%s)" % x.text, lambda p: math.floor(x.value(p.q, p.k)))
    if kind == 1:
        return Real("(%s + sign(%s))" % (x.text, x.text),
                    lambda p: x.value(p.q, p.k) + (x.value(p.q, p.k) > 0) - (x.value(p.q, p.k) < 0))
    return Real("near[h, floor(clamp(%s, 0, 11))]" % x.text,
                lambda p: LEARNED["near"][12 * p.h + math.floor(max(0, min(x.value(p.q, p.k), 11)))])


def of_pairs(draw):
    kind = draw.randrange(6)
    if kind > 3:
        return of_steps(draw)
    if kind == 3 and REAL[-1] == "slant":
        return Real("slant[q, k]", lambda p: whole.GIVEN["slant"][p.q * ROWS + p.k])
    if kind == 3:
        at = draw.choice("qk")
        return Real("weight[%s]" % at, lambda p: whole.GIVEN["weight"][p.q if at == "q" else p.k])
    if kind == 0:
        return Real("near[h, dist[q, k]]", lambda p: LEARNED["near"][12 * p.h + dist(p)])
    if kind == 1:
        return Real("(if dist[q, k] < 4 then s else -0.5)", lambda p: p.s if dist(p) < 4 else -0.5)
    return Real("(dist[q, k] - k)", lambda p: dist(p) - p.k)


def leaf(draw, rows):
    kind = draw.randrange(9 if rows else 8)
    if kind == 8:
        return of_pairs(draw)
    if kind == 7:
        return learned(draw, rows)
    if kind < 2:
        return Real("s", lambda p: p.s)
    if kind == 2:
        if draw.randrange(2):
            return Real("slope[h]", lambda p: 2.0 ** -(p.h + 1))
        return Real("(h + 1)", lambda p: p.h + 1)
    if kind == 3:
        x = of_whole(draw, rows)
        return Real("wave[%s mod 7]" % x.within(6), lambda p: TABLE[x.value(p.q, p.k) % 7])
    if kind == 4:
        name, of = draw.choice(list(TABLED)), draw.choice(("q", "k", "abs(q - k)"))
        value = {"q": lambda p: p.q, "k": lambda p: p.k, "abs(q - k)": lambda p: abs(p.q - p.k)}[of]
        return Real("%s(%s/2 + 1)" % (name, of), lambda p: TABLED[name](value(p) / 2 + 1))
    if kind == 5:
        x = of_whole(draw, rows)
        return Real("(%s)" % x.text, lambda p: x.value(p.q, p.k))
    number = draw.choice(("0.5", "1.25", "2", "3e-1"))
    return Real(number, lambda p: float(number))


def real(draw, depth, rows):
    if not depth:
        return leaf(draw, rows)
    a, kind = real(draw, depth - 1, rows), draw.randrange(9)
    if kind == 0:
        name = draw.choice(list(FUNCTIONS))
        return Real("%s(%s)" % (name, a.text), lambda p: FUNCTIONS[name](a.value(p)))
    if kind == 1:
        return Real("exp(-abs(%s))" % a.text, lambda p: math.exp(-abs(a.value(p))))
    if kind == 2:
        return Real("sqrt(abs(%s))" % a.text, lambda p: math.sqrt(abs(a.value(p))))
    if kind == 3:
        return Real("(-%s)" % a.text, lambda p: -a.value(p))
    if kind == 4:
        return Real("(%s/(1.5 + abs(%s)))" % (a.text, a.text), lambda p: a.value(p) / (1.5 + abs(a.value(p))))
    b = real(draw, draw.randrange(depth), rows)
    if kind == 5:
        c = of_condition(draw, rows)
        return Real("(if %s then %s else %s)" % (c.text, a.text, b.text),
                    lambda p: a.value(p) if c.value(p.q, p.k) else b.value(p))
    if kind == 6:
        name, value = draw.choice((("min", min), ("max", max)))
        return Real("%s(%s, %s)" % (name, a.text, b.text), lambda p: value(a.value(p), b.value(p)))
    sign = draw.choice("+-")
    return Real("(%s %s %s)" % (a.text, sign, b.text),
                lambda p: a.value(p) + b.value(p) if sign == "+" else a.value(p) - b.value(p))


def bounded(draw, rows):
    """A score of at most 4, so that the weights of a softmax say what it is. It reads at most 5 tables and inputs, also
    within indexes: a score can have 6, of which the compiler may make one of positions or heads."""
    x = real(draw, draw.randrange(DEPTH) + 1, rows)
    while len(set(re.findall(r"(?=\b(\w+\[[^]]*\]|(?:log|sin|cos|erf)\([^)]*))", x.text))) > 5:
        x = real(draw, draw.randrange(DEPTH) + 1, rows)
    return Real("4*tanh(%s/64)" % x.text, lambda p: 4 * math.tanh(x.value(p) / 64))


def compare(where, score, weights, pairs):
    """Fails unless the weights of a row are the softmax of its scores."""
    values = [score.value(p) for p in pairs]
    largest = max(values)
    powers = [math.exp(value - largest) for value in values]
    bound = 2e-6 + 1e-6 * max(p.most for p in pairs)
    for p, power, weight in zip(pairs, powers, weights):
        assert abs(weight - power / sum(powers)) <= bound, \
            "%s: %s: query %d, key %d, head %d has the weight %.9g, not %.9g" \
            % (where, score.text, p.q, p.k, p.h, weight, power / sum(powers))


LETS = "let slope = table [heads] 2^-(h + 1), let wave = table [7] sin(i) + i/4, " \
       "let halves = table [10] 0.3*i, " \
       "learned gain [heads], learned near [heads][12]"


def weights_of(draw, spec, folder):
    """A file with random numbers, and {tensor: numbers}."""
    done = attnc("weights", spec)
    assert done.returncode == 0, done.stderr
    shapes = {name: [int(n) for n in shape.split(", ")]
              for name, shape in re.findall(r"^(\S+) +\[([\d, ]+)\]", done.stdout, re.M)}
    numbers = {name: [single(draw.gauss(0, 1)) for _ in range(math.prod(shape))] for name, shape in shapes.items()}
    safetensors.write(folder + "/w.safetensors", {name: (shapes[name], numbers[name]) for name in shapes})
    return folder + "/w.safetensors", numbers


def learn(numbers, *stems):
    """Sets the tables of the attention whose tensors begin with one of the stems."""
    LEARNED.clear()
    for stem in stems:
        LEARNED.update((name[len(stem):-len(".weight")], given) for name, given in numbers.items()
                       if name.startswith(stem) and name.endswith(".weight"))


MASK = "mask where dist[q, k] != 3 or q == k"


def spec_of(scores):
    inputs = "".join("        input rows %s %d..%d\n" % (name, *ends) for name, ends in whole.RANGES.items())
    inputs += "        input pairs dist 0..9\n        input %s %s real\n" % (REAL_INPUTS[REAL[-1]][0], REAL[-1])
    layers = "".join("        layers 1 { attention self { heads %d, %s, %s\n            score %s\n        } }\n"
                     % (HEADS, LETS, MASK if layer % 2 else "mask none", score) for layer, score in enumerate(scores))
    return "model m {\n    d_model 8, export attention\n    encoder {\n        input features, seq <= 40\n" \
           "        position none, norm none, bias none, learned common [9]\n%s%s    }\n}\n" % (inputs, layers)


def encoder(seed):
    draw = random.Random(seed)
    REAL.append(draw.choice(list(REAL_INPUTS)))
    scores = [bounded(draw, True) for _ in range(LAYERS)]
    with tempfile.TemporaryDirectory() as folder:
        spec = os.path.join(folder, "m.attn")
        with open(spec, "w", encoding="utf-8") as file:
            file.write(spec_of(score.text for score in scores))
        weights, drawn = weights_of(draw, spec, folder)
        features = npy.write(os.path.join(folder, "x.npy"), [0] * (ROWS * 8), (ROWS, 8), "<f4")
        given = ["--in", "features=" + features]
        for name, (least, most) in whole.RANGES.items():
            whole.GIVEN[name] = [draw.randint(least, most) for _ in range(ROWS)]
            path = npy.write(os.path.join(folder, name + ".npy"), whole.GIVEN[name])
            given += ["--in=%s=%s" % (name, path)] if any(name + "[" in score.text for score in scores) else []
        whole.GIVEN["dist"] = [draw.randint(0, 9) for _ in range(ROWS * ROWS)]
        given.append("--in=dist=" + npy.write(folder + "/dist.npy", whole.GIVEN["dist"], (ROWS, ROWS)))
        name, (_, shape) = REAL[-1], REAL_INPUTS[REAL[-1]]
        whole.GIVEN[name] = [single(draw.gauss(0, 1)) for _ in range(math.prod(shape))]
        path = npy.write("%s/%s.npy" % (folder, name), whole.GIVEN[name], shape, "<f4")
        given += ["--in=%s=%s" % (name, path)] if any(name + "[" in score.text for score in scores) else []
        for engine in ("interp", "compiled"):
            out = ["--out=attention.%d=%s/%d.npy" % (layer, folder, layer) for layer in range(LAYERS)]
            done = attnc("run", spec, "--weights", weights, *given, "--engine", engine, *out)
            assert done.returncode == 0, done.stderr
            for layer, score in enumerate(scores):
                learn(drawn, "encoder.layers.%d.attention." % layer, "encoder.")
                numbers = npy.read("%s/%d.npy" % (folder, layer)).numbers
                for row in range(HEADS * ROWS):
                    h, q = divmod(row, ROWS)
                    pairs = [Pair(q, k, h) for k in range(ROWS)]
                    seen = [p for p in pairs if not layer % 2 or dist(p) != 3 or p.q == p.k]
                    weights_of_row = numbers[row * ROWS:(row + 1) * ROWS]
                    assert all(not weights_of_row[p.k] for p in pairs if p not in seen), "a hidden key has a weight"
                    compare("%s, layer %d" % (engine, layer), score, [weights_of_row[p.k] for p in seen], seen)


def alone(seed):
    draw = random.Random(seed)
    score = bounded(draw, False)
    queries, keys, width = 9, 21, 4
    with tempfile.TemporaryDirectory() as folder:
        spec = os.path.join(folder, "m.attn")
        with open(spec, "w", encoding="utf-8") as file:
            file.write("model m {\n    export attention\n    attention cross { heads 1, project none, score dot\n"
                       "        queries <= 12, keys <= 30\n        d_query %d, d_key %d, %s, learned common [9]\n"
                       "        score %s\n"
                       "    }\n}\n"
                       % (width, width, LETS, score.text))
        file, drawn = weights_of(draw, spec, folder)
        learn(drawn, "attention.")
        rows = {"query": queries, "key": keys, "value": keys}
        numbers = {name: [single(draw.gauss(0, 1)) for _ in range(n * width)] for name, n in rows.items()}
        given = ["--in=%s=%s" % (name, npy.write("%s/%s.npy" % (folder, name), numbers[name], (n, width), "<f4"))
                 for name, n in rows.items()]
        for engine in ("interp", "compiled"):
            done = attnc("run", spec, "--weights", file, *given, "--engine", engine,
                         "--out=attention=%s/a.npy" % folder)
            assert done.returncode == 0, done.stderr
            weights = npy.read(folder + "/a.npy").numbers
            for q in range(queries):
                query = numbers["query"][q * width:(q + 1) * width]
                pairs = [Pair(q, k, 0, sum(a * b for a, b in zip(query, numbers["key"][k * width:(k + 1) * width])))
                         for k in range(keys)]
                compare(engine, score, weights[q * keys:(q + 1) * keys], pairs)


def single(value):
    return npy.array.array("f", [value])[0]


def spec_of_items(items):
    pos = "input rows pos 0..39\n    " if "pos" in re.findall(r"\w+", items) else ""
    return "model m {\n    d_model 8\n    encoder { input features, seq <= 40\n    " + pos + \
           "layers 1 { attention self {\n" \
           "        heads 2\n        %s\n    } } }\n}\n" % items


def c_of(items):
    """The C without comments, line breaks and hashes of the model, in which a table of ALiBi has the name that a table
    of a spec has."""
    text = " ".join(re.sub(r"\btable_(slopes?)\b", r"\1", whole.c_of(spec_of_items(items))).split())
    text = re.sub(r"UINT64_C\(0x\w{15,16}\)|M_HEADER != 0x\w+", "hash", text)
    return re.sub(r"\bm_w_(alibi_slopes|score_slope)\w+", "m_w_slope", text)


def same_c(word, expression):
    assert c_of(word) == c_of(expression), "`%s` and `%s` give other C" % (word, expression)


def numbers_of(items, engine):
    draw = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        x = npy.write(folder + "/x.npy", [draw.gauss(0, 1) for _ in range(ROWS * 8)], (ROWS, 8), "<f4")
        spec = os.path.join(folder, "m.attn")
        with open(spec, "w", encoding="utf-8") as file:
            file.write(spec_of_items(items))
        done = attnc("run", spec, "--weights", "random:1", "--in", "features=" + x, "--engine", engine,
                     "--out=hidden=%s/h.npy" % folder)
        assert done.returncode == 0, done.stderr
        return npy.read(folder + "/h.npy").numbers


def same_bits(word, expression):
    for engine in ("interp", "compiled"):
        assert numbers_of(word, engine) == numbers_of(expression, engine), "%s: `%s` and `%s` give other bits" \
            % (engine, word, expression)


def attempts():
    for seed in turns.seeds(5, 2, 150):
        REPORT.attempt("score/%d" % seed, encoder, seed)
        REPORT.attempt("alone/%d" % seed, alone, seed)
    for name, (word, expression) in definitions.scores().items():
        REPORT.attempt("same/" + name, same_c, word, "position none\n" * ("position" in word) + expression)
    slopes = "position none, let slope = table [heads] 2^(-8*(h + 1)/heads), score "
    REPORT.attempt("same/slopes", same_bits, "position alibi", slopes + "s - slope[h]*abs(k - q)")
    REPORT.attempt("same/numbers", same_bits, slopes + "s - slope[h]*abs(q - k)",
                   slopes + "s - abs(k - q)*2^(-8*(h + 1)/heads)")
    REPORT.attempt("same/first", same_bits, "let t = table [7] i + 2, score s*t[0]", "score s*2")


if __name__ == "__main__":
    sys.exit(run_compiled(REPORT, attempts))
