#!/usr/bin/env python3
"""What makes weights of scores. softmax/KIND: the rows and the weights of attention alone are those of Python's
formula, with `softmax sigmoid`, `softmax none` and `softmax yes`. Interpreted and compiled."""
import math
import os
import random
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib.attnc import attnc, compile_once  # noqa: E402
from lib.tap import Report  # noqa: E402
from lib import npy  # noqa: E402

REPORT = Report("weighing")
MOST_ERROR = 1e-5  # |a - b| / (1 + |b|)
QUERIES, KEYS, WIDTH = 7, 21, 8


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
        file.write("model m {\n    export attention\n    attention cross {\n        project none, score dot, queries <= 9, "
                   "keys <= 600, d_query %d, d_key %d\n        %s\n    }\n}\n" % (WIDTH, WIDTH, setting))
    words = [word for name, table in given.items() for word in array(folder, name, table)]
    named = ["--out=%s=%s/%s.out" % (name, folder, name) for name in outputs]
    attnc("run", spec, "--weights", "random:1", "--engine", engine, *words, *named, status=0)
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


def attempts():
    for kind in ("yes", "sigmoid", "none"):
        REPORT.attempt("softmax/" + kind, softmax, kind)


def main():
    with tempfile.TemporaryDirectory() as kept:
        compile_once(kept)
        attempts()
    return REPORT.finish()


if __name__ == "__main__":
    sys.exit(main())
