"""A small spec with chosen weights in the interpreter: .npy and safetensors files, in pure Python."""
import ast
import json
import os
import random
import re
import struct
import subprocess

from page import Matrix, Row, single

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ATTNC = os.environ.get("ATTNC", os.path.join(ROOT, "build", "attnc"))


def run(*command, status=0, folder=ROOT):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == status, "%s: %d\n%s" % (" ".join(command), done.returncode, done.stderr)
    return done


def flat(values):
    return [n for v in values for n in flat(v)] if hasattr(values, "__len__") else [values]


def shape_of(values):
    return ([len(values)] + shape_of(values[0])) if hasattr(values, "__len__") else []


def write_npy(path, values):
    """Integers as int64, anything else as float."""
    numbers, whole = flat(values), all(isinstance(n, int) for n in flat(values))
    header = "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }" % (
        "<i8" if whole else "<f4", "".join("%d," % n for n in shape_of(values)))
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack("<%d%s" % (len(numbers), "q" if whole else "f"), *numbers))


def read_npy(path):
    """Nested lists of floats; the last dimension as Rows."""
    with open(path, "rb") as file:
        data = file.read()
    begin = 10 + struct.unpack_from("<H", data, 8)[0]
    shape = ast.literal_eval(data[10:begin].decode("latin1"))["shape"]
    values = [Row(struct.unpack_from("<%df" % shape[-1], data, at))
              for at in range(begin, len(data), 4 * shape[-1])] if shape else []
    for size in reversed(shape[1:-1] if len(shape) > 1 else ()):
        values = [values[i:i + size] for i in range(0, len(values), size)]
    return values[0] if len(shape) == 1 else values


def write_safetensors(path, tensors):
    """{name: (shape, numbers)} as f32."""
    header, data = {}, b""
    for name, (shape, numbers) in tensors.items():
        part = struct.pack("<%df" % len(numbers), *numbers)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


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
        write_safetensors(self.file, {name: (self.shapes[name], flat(v)) for name, v in self.values.items()})

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
