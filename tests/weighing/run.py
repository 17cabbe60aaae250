#!/usr/bin/env python3
"""What makes weights of scores. softmax/KIND: the rows and the weights of attention alone are those of Python's
formula, with `softmax sigmoid`, `softmax none` and `softmax yes`. lse/KIND: `export lse` is the logarithm of Python's
sum, and with it two parts of the keys are merged to the rows of all keys, which a part may hide all. batch: the
sequences of a batch have the numbers that each of them has alone. refused: what has no lse. Interpreted and
compiled."""
import math
import os
import random
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib.attnc import attnc, run_compiled  # noqa: E402
from lib.tap import Report  # noqa: E402
from lib import npy, safetensors  # noqa: E402

REPORT = Report("weighing")
MOST_ERROR = 1e-5  # |a - b| / (1 + |b|)
QUERIES, KEYS, WIDTH = 7, 21, 8
SINK = 1.75


def error_of(got, expected):
    assert len(got) == len(expected), (len(got), len(expected))
    return max(0 if a == b else abs(a - b) / (1 + abs(b)) for a, b in zip(got, expected))


def rows(draw, count, scale=1.0):
    return [[draw.gauss(0, scale) for _ in range(WIDTH)] for _ in range(count)]


def array(folder, name, table):
    numbers = [number for row in table for number in row]
    return ["--in", "%s=%s" % (name, npy.write("%s/%s.npy" % (folder, name), numbers, (len(table), WIDTH), "<f4"))]


def attend(folder, setting, given, engine, outputs):
    """Attention alone of one head without projections: the outputs, flat."""
    spec = os.path.join(folder, "m.attn")
    with open(spec, "w", encoding="utf-8") as file:
        file.write("model m {\n    export attention\n    attention cross {\n"
                   "        project none, score dot, queries <= 9, "
                   "keys <= 600, d_query %d, d_key %d\n        %s\n    }\n}\n" % (WIDTH, WIDTH, setting))
    words = [word for name, table in given.items() for word in array(folder, name, table)]
    named = ["--out=%s=%s/%s.out" % (name, folder, name) for name in outputs]
    weights = os.path.join(folder, "weights.safetensors")
    safetensors.write(weights, {"attention.sink.weight": ((1,), [SINK])} if "sink" in setting else {})
    attnc("run", spec, "--weights", weights, "--engine", engine, *words, *named, status=0)
    return [list(npy.read("%s/%s.out" % (folder, name)).numbers) for name in outputs]


def scores_of(given):
    return [[sum(a * b for a, b in zip(q, k)) for k in given["key"]] for q in given["query"]]


def softmax(kind):
    draw = random.Random(kind)
    given = {"query": rows(draw, QUERIES), "key": rows(draw, KEYS), "value": rows(draw, KEYS)}
    weights = []
    for row in scores_of(given):
        row = [score if j % 4 else -math.inf for j, score in enumerate(row)]
        if kind == "yes":
            most = max(row)
            powers = [math.exp(score - most) for score in row]
            weights.append([power / sum(powers) for power in powers])
        elif kind == "sigmoid":
            weights.append([1 / (1 + math.exp(2 - score)) if score > -math.inf else 0 for score in row])
        else:
            weights.append([score if score > -math.inf else 0 for score in row])
    context = [sum(w * value[c] for w, value in zip(row, given["value"])) for row in weights for c in range(WIDTH)]
    setting = "mask where k mod 4 != 0, softmax %s%s" % (kind, ", score s - 2" if kind == "sigmoid" else "")
    with tempfile.TemporaryDirectory() as folder:
        for engine in ("interp", "compiled"):
            found = attend(folder, setting, given, engine, ["context", "attention"])
            assert error_of(found[0], context) < MOST_ERROR, "%s: context" % engine
            assert error_of(found[1], [w for row in weights for w in row]) < MOST_ERROR, "%s: weights" % engine


LSE = {  # the length of a first part of the keys, the mask, and the words of the two parts, which have own positions
    "plain": (9, "mask none", "mask none"),
    "hidden": (9, "mask where k mod 3 == 0", "mask where k < 0"),
    "blocks": (530, "mask none", "mask none"),
}


def merged(draw, setting, second, engine, folder, first_keys):
    keys = first_keys + 31
    given = {"query": rows(draw, QUERIES), "key": rows(draw, keys), "value": rows(draw, keys)}
    halves = [{"query": given["query"], "key": given["key"][part], "value": given["value"][part]}
              for part in (slice(0, first_keys), slice(first_keys, keys))]
    hides_second = second != "mask none"
    whole = "mask none" if not hides_second else "%s and k < %d" % (setting, first_keys)
    parts = [attend(folder, words, part, engine, ["context", "lse"])
             for words, part in zip((setting, second), halves)]
    context, lse = attend(folder, whole, given, engine, ["context", "lse"])
    for i in range(QUERIES):
        most = max(parts[0][1][i], parts[1][1][i])
        shares = [math.exp(part[1][i] - most) for part in parts]
        total = sum(shares)
        assert error_of([most + math.log(total)], [lse[i]]) < MOST_ERROR, "%s: lse of %d" % (engine, i)
        row = [sum(share * part[0][i * WIDTH + c] for share, part in zip(shares, parts)) / total
               for c in range(WIDTH)]
        assert error_of(row, context[i * WIDTH:][:WIDTH]) < MOST_ERROR, "%s: row %d" % (engine, i)
    if hides_second:
        assert set(parts[1][1]) == {-math.inf} and set(parts[1][0]) == {0.0}, "%s: rows that see nothing" % engine
        return
    for got, row in zip(lse, scores_of(given)):
        most = max(row)
        wanted = most + math.log(sum(math.exp(score - most) for score in row))
        assert error_of([got], [wanted]) < MOST_ERROR, "%s: %g, wanted %g" % (engine, got, wanted)


def lse_merges(kind):
    first, setting, second = LSE[kind]
    with tempfile.TemporaryDirectory() as folder:
        for engine in ("interp", "compiled"):
            merged(random.Random(kind), setting, second, engine, folder, first)


def sink():
    """A learned sink is a part of the sum, but for queries that see no key."""
    draw = random.Random(3)
    given = {"query": rows(draw, QUERIES), "key": rows(draw, KEYS), "value": rows(draw, KEYS)}
    wanted = []
    for i, row in enumerate(scores_of(given)):
        seen = [math.exp(score) for j, score in enumerate(row) if j < 5 * (i - 1)]
        wanted.append(math.log(sum(seen) + math.exp(SINK)) if seen else -math.inf)
    with tempfile.TemporaryDirectory() as folder:
        for engine in ("interp", "compiled"):
            lse, = attend(folder, "sink learned, mask where k < 5*(q - 1)", given, engine, ["lse"])
            assert lse[:2] == [-math.inf] * 2 and error_of(lse, wanted) < MOST_ERROR, (engine, lse, wanted)


def batch():
    """A file has the numbers of a batch as [batch][heads][n]."""
    draw, heads, n = random.Random(5), 3, 9
    with tempfile.TemporaryDirectory() as folder:
        spec = os.path.join(folder, "m.attn")
        with open(spec, "w", encoding="utf-8") as file:
            file.write("model m {\n    attention self { heads %d, head_dim 4, d_query %d, queries <= 20 }\n}\n"
                       % (heads, WIDTH))
        tables = [rows(draw, n) for _ in range(4)]
        numbers = [number for table in tables for row in table for number in row]
        given = ["--in", "query=" + npy.write(folder + "/all.npy", numbers, (4, n, WIDTH), "<f4")]
        for engine in ("interp", "compiled"):
            words = ["--weights", "random:4", "--engine", engine]
            attnc("run", spec, *words, *given, "--out", "lse=%s/lse.npy" % folder, status=0)
            whole = npy.read(folder + "/lse.npy")
            assert tuple(whole.shape) == (4, heads, n), whole.shape
            for b, table in enumerate(tables):
                attnc("run", spec, *words, *array(folder, "query", table), "--out", "lse=%s/one.npy" % folder, status=0)
                one = npy.read(folder + "/one.npy")
                assert tuple(one.shape) == (heads, n), one.shape
                assert list(whole.numbers[b * heads * n:][:heads * n]) == list(one.numbers), (engine, b)


def refused():
    with tempfile.TemporaryDirectory() as folder:
        spec = os.path.join(folder, "m.attn")
        with open(spec, "w", encoding="utf-8") as file:
            file.write("model m {\n    export lse\n"
                       "    attention self { heads 2, head_dim 4, d_query 8, queries <= 9 }\n}\n")
        for command, words, status, problem in (
                ("compile", ["-o", folder, "--reproducible"], 3, "m.attn:3:5: `--reproducible`: the logarithms"),
                ("python", ["-o", folder + "/p", "--weights", "random:1"], 3, "has no output `lse` yet")):
            done = attnc(command, spec, *words)
            assert done.returncode == status and problem in done.stderr, done.stderr


def attempts():
    for kind in LSE:
        REPORT.attempt("lse/" + kind, lse_merges, kind)
    REPORT.attempt("lse/sink", sink)
    REPORT.attempt("batch", batch)
    REPORT.attempt("refused", refused)
    for kind in ("yes", "sigmoid", "none"):
        REPORT.attempt("softmax/" + kind, softmax, kind)


if __name__ == "__main__":
    sys.exit(run_compiled(REPORT, attempts))
