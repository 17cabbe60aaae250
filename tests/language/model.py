"""A small spec with chosen weights in the interpreter: .npy and safetensors files, in pure Python."""
import array
import os
import random
import re

from lib import npy, safetensors
from lib.attnc import ATTNC, ROOT
from lib.attnc import run as run_command
from page import Matrix, Row, single


def run(*command, status=0, folder=ROOT, **more):
    return run_command(*command, cwd=folder, status=status, **more)


def flat(values):
    return [n for v in values for n in flat(v)] if hasattr(values, "__len__") else [values]


def shape_of(values):
    return ([len(values)] + shape_of(values[0])) if hasattr(values, "__len__") else []


def write_npy(path, values):
    """Integers as int64, anything else as float."""
    numbers = flat(values)
    npy.write(path, numbers, shape_of(values), "<i8" if all(isinstance(n, int) for n in numbers) else "<f4")


def with_rows(values):
    """Nested lists whose innermost are Rows."""
    return Row(values) if isinstance(values, array.array) else [with_rows(inner) for inner in values]


def read_npy(path):
    """Nested lists of floats; the last dimension as Rows."""
    return with_rows(npy.read(path).rows())


def draw(dice, *shape):
    """Nested lists of numbers about 0, exact in 32 bits."""
    if not shape:
        return single(dice.gauss(0, 1))
    return [draw(dice, *shape[1:]) for _ in range(shape[0])]


class Model:
    """A spec; weights are drawn, but for those that `chosen` says: {name: nested lists}."""

    def __init__(self, folder, spec, chosen=None, seed=1):
        self.folder, self.dice = folder, random.Random(seed)
        self.spec = os.path.join(folder, "model.attn")
        with open(self.spec, "w", encoding="utf-8") as file:
            file.write(spec)
        listed = run(ATTNC, "weights", self.spec).stdout
        self.shapes = {name: [int(n) for n in shape.split(",")]
                       for name, shape in re.findall(r"^(\S+) +\[([\d, ]+)\]", listed, re.M)}
        self.values = {name: draw(self.dice, *shape) for name, shape in self.shapes.items()}
        for name, values in (chosen or {}).items():
            assert name in self.shapes, "no weight `%s` among %s" % (name, list(self.shapes))
            self.values[name] = values
        self.file = os.path.join(folder, "model.safetensors")
        safetensors.write(self.file, {name: (self.shapes[name], flat(v)) for name, v in self.values.items()})

    def weight(self, name):
        """A Row or a Matrix; the Row of no columns where the spec has no such bias."""
        values = self.values[name]
        return Matrix(values) if len(self.shapes[name]) == 2 else Row(values)

    def linear(self, stem, x):
        """W @ x + b, without b where there is none."""
        y = self.weight(stem + ".weight") @ x
        return y + self.weight(stem + ".bias") if stem + ".bias" in self.shapes else y

    def outputs(self, names, inputs, file=None, spec=None):
        """Of the interpreter, in the order of `names`."""
        command = [ATTNC, "run", spec or self.spec, "--engine", "interp", "--weights", file or self.file]
        for name, values in inputs.items():
            write_npy(os.path.join(self.folder, name + ".npy"), values)
            command += ["--in", "%s=%s" % (name, os.path.join(self.folder, name + ".npy"))]
        paths = {name: os.path.join(self.folder, "out." + name + ".npy") for name in names.split()}
        for name, path in paths.items():
            command += ["--out", "%s=%s" % (name, path)]
        run(*command)
        return [read_npy(path) for path in paths.values()]


def near(found, wanted, what):
    """Within 1e-5 of 1 and the size of what is wanted."""
    a, b = flat(found), flat(wanted)
    assert len(a) == len(b) and a, "%s: %d numbers for %d" % (what, len(a), len(b))
    for i, (x, y) in enumerate(zip(a, b)):
        assert abs(x - y) <= 1e-5 * (1 + abs(y)), "%s: number %d is %.9g, and the page says %.9g" % (what, i, x, y)
