"""docs/flexattention.md: the functions of Python and the spec of each section give the same attention."""
import array
import math
import os
import random
import re
import types

from lib import npy
from lib.attnc import ROOT, attnc

PAGE, ROWS, HEADS, WIDTH = "docs/flexattention.md", 64, 2, 16
SECTION = re.compile(r"^## (.+?)\n.*?```python\n(.+?)```.*?```attn\n(.+?)```", re.S | re.M)

# What the functions of the page take of PyTorch, for numbers in place of tensors.
TORCH = types.SimpleNamespace(tanh=math.tanh, cos=math.cos, where=lambda truth, a, b: a if truth else b,
                              clamp=lambda x, low, high: max(low, min(x, high)))


def sections():
    """(name, Python, spec) of each section; every spec of the page is in one."""
    with open(os.path.join(ROOT, PAGE), encoding="utf-8") as file:
        text = file.read()
    found = [match.groups() for part in re.split(r"^(?=## )", text, flags=re.M) for match in SECTION.finditer(part)]
    assert len(found) == text.count("```attn") == text.count("\n## "), "a section has no example in both languages"
    return found


def numbers_of(draw, low, high):
    """Integers of the rows, in runs."""
    numbers = []
    while len(numbers) < ROWS:
        numbers += [draw.randint(low, high)] * draw.randint(1, 9)
    return numbers[:ROWS]


def expected(x, words):
    """Attention of every head over the rows of x, by the functions of the page."""
    score_of = words.get("score_mod", lambda score, *_: score)
    sees = words.get("mask_mod", lambda *_: True)
    size, out = WIDTH // HEADS, []
    for q in range(ROWS):
        for h in range(HEADS):
            scores = {}
            for k in range(ROWS):
                product = sum(x[q * WIDTH + h * size + d] * x[k * WIDTH + h * size + d] for d in range(size))
                if sees(0, h, q, k):
                    scores[k] = score_of(product / math.sqrt(size), 0, h, q, k)
            most = max(scores.values())
            weights = {k: math.exp(score - most) for k, score in scores.items()}
            total = sum(weights.values())
            out += [sum(w * x[k * WIDTH + h * size + d] for k, w in weights.items()) / total for d in range(size)]
    return out


def same(python, spec, folder, target):
    """What attnc computes for a section, by the interpreter and the C of a target, against its functions."""
    draw, words = random.Random(python), {"torch": TORCH}
    path = os.path.join(folder, "m.attn")
    with open(path, "w", encoding="utf-8") as file:
        file.write(spec)
    x = array.array("f", (draw.gauss(0, 1) for _ in range(ROWS * WIDTH)))
    given = ["--in", "query=" + npy.write(os.path.join(folder, "x.npy"), x, (ROWS, WIDTH), "<f4")]
    for name, low, high in re.findall(r"input rows (\w+) (-?\d+)\.\.(\d+)", spec):
        words[name] = numbers_of(draw, int(low), int(high))
        given += ["--in", "%s=%s" % (name, npy.write(os.path.join(folder, name + ".npy"), words[name]))]
    exec(python, words)  # pylint: disable=exec-used # the page's own lines
    wanted = expected(x, words)
    for engine in (["--engine", "interp"], ["--target", target]):
        attnc("run", path, "--weights", "random:1", *given, *engine, "--out=context=%s/y.npy" % folder, status=0)
        found = npy.read(folder + "/y.npy").numbers
        worst = max(abs(a - b) for a, b in zip(found, wanted))
        assert len(found) == len(wanted) and worst < 1e-5, "%s differs by %g" % (engine[1], worst)
