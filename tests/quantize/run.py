#!/usr/bin/env python3
"""`attnc quantize`: what it writes keeps the bound, in the interpreter and compiled; smoothing makes a bound reachable
where rows have large columns; the same bytes come out of every run; and what cannot be done is refused in words.
Speaks TAP.

Environment: ATTNC_QUICK=1 takes fewer specs."""
import array
import json
import math
import os
import random
import re
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import npy, safetensors  # noqa: E402
from lib import attnc as lib  # noqa: E402
from lib.attnc import QUICK, TESTS, UNOPTIMIZED  # noqa: E402
from lib.tap import run_tests  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
SPEC = os.path.join(HERE, "outliers.attn")
DIFFERENTIAL = os.path.join(TESTS, "differential")
LARGE, TIMES = (3, 17), 50  # columns that norms enlarge, and how far
PLAIN = "weights=int8,activations=int8"


def attnc(*words, **more):
    return lib.attnc(*words, env={"CC": UNOPTIMIZED}, **more)


def numbers_of(path):
    """{name: (shape, array)} of a file of F32."""
    header, data = safetensors.read(path)
    header.pop("__metadata__", None)
    return {name: (tensor["shape"], array.array("f", data[slice(*tensor["data_offsets"])]))
            for name, tensor in header.items()}


class Quantize:
    def __init__(self, folder):
        self.folder = folder
        self.weights = self.path("planted.safetensors")
        attnc("weights", SPEC, "--weights", "random:5", "-o", self.weights, status=0)
        self.plant()
        dice = random.Random(11)
        ids = [dice.randrange(40) for _ in range(12 * 20)]
        self.ids = ["--in", "tokens=" + npy.write(self.path("ids.npy"), ids, (12, 20))]

    def path(self, name):
        return os.path.join(self.folder, name)

    def plant(self):
        """Norms enlarge some columns, which the matrices behind them make as much smaller: the model stays the same."""
        tensors = numbers_of(self.weights)
        for name, (shape, numbers) in tensors.items():
            if "norm_in" in name:
                for column in LARGE:
                    numbers[column] *= TIMES
            elif re.search(r"(query|key|value|up)\.weight", name):
                for row in range(shape[0]):
                    for column in LARGE:
                        numbers[row * shape[1] + column] /= TIMES
        safetensors.write(self.weights, tensors)

    def quantize(self, *words, to="q.attn", status=0, spec=SPEC, weights=None, ids=None):
        return attnc("quantize", spec, "--weights", weights or self.weights, *(ids or self.ids), *words, "-o",
                     self.path(to), status=status)

    def read(self, name, mode="r"):
        with open(self.path(name), mode) as file:
            return file.read()

    def measured(self, spec, precision, weights=None, ids=None, engine="interp"):
        """The outputs of `attnc compare` of a precision."""
        done = attnc("compare", spec, "--weights", weights or self.weights, *(ids or self.ids), "--precision",
                     precision, "--engine", engine, "--json", status=0)
        return json.loads(done.stdout)["precisions"][0]

    def beside(self, weights=None, name="q.attn"):
        """The weights with the vectors, if there are any."""
        vectors = self.path(name + ".vectors.safetensors")
        return ",".join([weights or self.weights] + [vectors] * os.path.exists(vectors))

    def test_outliers(self):
        """Rows in int8 are within the bound with vectors, and far from it without, by the same judge."""
        bound = 2e-4
        plain = self.measured(SPEC, PLAIN)["outputs"]["pooled"]["cos_max"]
        assert plain > 5 * bound, plain
        done = self.quantize("--allow", PLAIN, "--bound", str(bound)).stdout
        reached = float(re.search(r"`pooled` is at most (\S+) on 12 sequences", done).group(1))
        assert reached <= bound, done
        assert re.search(r"layer 1 attention +\S+ \w+ +\S+ +\S+ smooth$", done, re.M), done
        for engine, slack in (("interp", 1e-2), ("compiled", 0.2)):  # codes at the middle of two may become either
            found = self.measured(self.path("q.attn"), "f32", self.beside(), engine=engine)["outputs"]["pooled"]
            assert abs(found["cos_max"] - reached) <= slack * reached, (engine, found, reached)
        vectors = numbers_of(self.path("q.attn.vectors.safetensors"))
        shape, vector = vectors["encoder.layers.0.attention.query.smooth"]
        assert shape == [32] and all(x > 0 for x in vector)
        others = [x for column, x in enumerate(vector) if column not in LARGE]
        assert max(vector[column] for column in LARGE) * 3 < min(others), list(vector)
        attnc("check", self.path("q.attn"), "--weights", self.beside(), "--lengths", "1,5,24", status=0)

    def test_columns(self):
        """Outliers keep a bound that vectors without zeros do not."""
        bound, smoothed = 6e-5, PLAIN + ":smooth"
        self.quantize("--allow", PLAIN, "--bound", "1", to="any.attn")
        vectors = self.beside(name="any.attn")
        alone = self.measured(SPEC, smoothed, vectors)["outputs"]["pooled"]["cos_max"]
        done = self.quantize("--allow", PLAIN, "--bound", str(bound)).stdout
        assert alone > bound and re.search(r"layer 1 attention +\S+ \w+ +\S+ +\S+ smooth outliers 4$", done, re.M), \
            (alone, done)
        found = self.measured(self.path("q.attn"), "f32", self.beside())["outputs"]["pooled"]["cos_max"]
        assert found <= bound * 1.01, found
        zeros = {name: {k for k, x in enumerate(numbers) if x == 0}
                 for name, (_, numbers) in numbers_of(self.path("q.attn.vectors.safetensors")).items()}
        assert any(zeros.values()) and all(len(at) in (0, 4) for at in zeros.values()), zeros
        attnc("check", self.path("q.attn"), "--weights", self.beside(), "--lengths", "1,5,24", status=0)
        tensors = numbers_of(self.path("q.attn.vectors.safetensors"))
        name = next(name for name, at in zeros.items() if at)
        tensors[name][1][min(set(range(32)) - zeros[name])] = 0
        safetensors.write(self.path("five.safetensors"), tensors)
        done = attnc("pack", self.path("q.attn"), "--weights", self.weights + "," + self.path("five.safetensors"), "-o",
                     self.path("none.attnw"), status=1)
        assert "of `%s` is the zero of outlier 5, and the spec states `outliers 4`" % name in done.stderr, done.stderr

    def test_text(self):
        """The spec is in the layout of fmt, says the choices in its own words, and keeps its comments."""
        self.quantize("--allow", "int8+f32", "--bound", "3e-6")
        text = self.read("q.attn")
        assert attnc("fmt", self.path("q.attn"), status=0).stdout == text
        assert "# two layers that may differ" in text and re.search(r"precision .*int8", text), text
        listed = attnc("weights", self.path("q.attn"), status=0).stdout
        shown = self.quantize("--allow", "int8+f32", "--bound", "3e-6").stdout
        rows = re.findall(r"^encoder layer (\d) ffn\.down +\S+ \w+ +\S+ +(\w+)(?: smooth| outliers 4)*$", shown,
                          re.M)
        assert len(rows) == 2, shown
        for layer, precision in rows:
            types = re.search(r"layers\.%s\.ffn\.down\.weight +\[[\d, ]+\] +\d+(.*)" % layer, listed).group(1)
            assert types.strip() == {"int8": "I8", "f32": ""}[precision], (layer, precision, listed)

    def test_same_bytes(self):
        """Two runs write the same, whatever the processors, the locale and the environment of the second are."""
        files = ("q.attn", "q.attn.vectors.safetensors")
        words = ("quantize", SPEC, "--weights", self.weights, *self.ids, "--bound", "1e-5", "--allow",
                 "int8+weights=int8+f32", "-o", self.path("q.attn"))
        first = [attnc(*words, status=0).stdout] + [self.read(name, "rb") for name in files]
        done = lib.run("taskset", "1", lib.ATTNC, *words, status=0, env={"LC_ALL": "C.UTF-8", "OMP_NUM_THREADS": "3"})
        again = [done.stdout] + [self.read(name, "rb") for name in files]
        assert first == again

    def test_bounds(self):
        """Each bound is kept, and a smaller one costs as much or more."""
        sums = []
        for bound in (0.1, 1e-3, 1e-5, 1e-7, 0):
            done = self.quantize("--bound", str(bound), "--allow", "int4+int8+bf16+f32").stdout
            if bound:
                found = self.measured(self.path("q.attn"), "f32", self.beside())["outputs"]["pooled"]["cos_max"]
                assert found <= bound * 1.01, (bound, found)
            value, unit = re.search(r"^sum +(\S+) (\w+)$", done, re.M).groups()
            sums.append(float(value) * {"ns": 1, "us": 1e3, "ms": 1e6}[unit])
            os.remove(self.path("q.attn"))
            if os.path.exists(self.path("q.attn.vectors.safetensors")):
                os.remove(self.path("q.attn.vectors.safetensors"))
        assert sums == sorted(sums) and sums[0] < sums[-1] / 2, sums

    def test_kinds(self):
        """Models of every kind: shared and alternating layers, two stacks, tied heads, attention alone, images."""
        kinds = ("seq2seq_shared", "alone_cross", "parallel_shared", "patches", "windows", "seq2seq_odd")
        for kind in kinds[:2] if QUICK else kinds:
            spec = os.path.join(DIFFERENTIAL, kind + ".attn")
            inputs = self.inputs_of(spec)
            bound, measure = 2e-3, "rel"
            name = kind + ".attn"
            output = re.search(r"`(\w+)` is at most", self.quantize(
                "--bound", str(bound), "--measure", measure, "--allow", "int8+weights=int4:64:offset+weights=f16+f32",
                to=name, spec=spec, weights="random:4", ids=inputs).stdout).group(1)
            drawn = self.path(kind + ".safetensors")
            attnc("weights", spec, "--weights", "random:4", "-o", drawn, status=0)
            found = self.measured(self.path(name), "f32", self.beside(drawn, name), inputs)["outputs"][output]
            assert found["rel_max"] <= bound * 1.01, (kind, found)
            attnc("check", self.path(name), "--weights", self.beside(drawn, name), "--target", "scalar",
                  status=0)

    def inputs_of(self, spec):
        """Random arrays for the inputs that a sequence must have."""
        dice = random.Random(3)
        forward = attnc("--dump=graph", spec, status=0).stdout.split("\ngraph ")[0]
        words = []
        for name, dtype, dims in re.findall(r"^  input (\w+) (\w+) \[(.*?)\]$", forward, re.M):
            sizes = [min(6, int(d.split("<=")[1])) if "<=" in d else int(d) for d in dims.split(", ")]
            count = math.prod(sizes)
            numbers = [dice.gauss(0, 1) if dtype == "F32" else dice.randrange(2) for _ in range(count)]
            path = npy.write(self.path("in_%s.npy" % name), numbers, sizes, "<f4" if dtype == "F32" else "<i4")
            words += ["--in", name + "=" + path]
        return words

    def test_bound_not_kept(self):
        """Where nothing keeps the bound, nothing is written, and the message says how near the best one comes."""
        done = self.quantize("--bound", "1e-9", "--allow", "int4+int8", to="none.attn", status=1)
        assert "no precision that is allowed keeps the bound: 1 - cos of `pooled` is " in done.stderr, done.stderr
        assert not os.path.exists(self.path("none.attn")), "written"

    def test_inputs_of_another_model(self):
        for words, part in (
                (["--in", "source=%s/ids.npy" % self.folder], "no input"), ([], "input tokens is missing"),
                (["--in", "tokens=" + npy.write(self.path("wide.npy"), [1] * 30)], "30"),
                (["--in", "tokens=" + npy.write(self.path("large.npy"), [1, 40, 3])], "id 40"),
                (["--in", "tokens=" + npy.write(self.path("real.npy"), [.5, 1], descr="<f4")], "tokens")):
            done = attnc("quantize", SPEC, "--weights", self.weights, *words, "--bound", "1", "-o",
                         self.path("none.attn"), status=1)
            assert part in done.stderr and not os.path.exists(self.path("none.attn")), (part, done.stderr)

    def test_refused(self):
        fine = ("--bound", "1")
        for words, status, part in (
                (("--bound", "-1"), 2, "wants a number from 0 on"), (("--bound", "nan"), 2, "wants a number"),
                (("--bound", "1x"), 2, "wants a number"), ((), 2, "`--bound B` is missing"),
                ((*fine, "--measure", "mean"), 2, "is cos, kl or rel"), ((*fine, "--measure", "kl"), 1, "no logits"),
                ((*fine, "--output", "logits"), 1, "it has: hidden, pooled"),
                ((*fine, "--allow", "int8+int9"), 2, "`--allow int9`"), ((*fine, "--allow", ""), 2, "`--allow `"),
                ((*fine, "--allow", "attention=f16"), 3, "not supported yet")):
            done = attnc("quantize", SPEC, "--weights", self.weights, *self.ids, *words, "-o", self.path("none.attn"))
            assert done.returncode == status and part in done.stderr, (words, done.returncode, done.stderr)
        for line, status, part in (("precision weights int8", 1, "3:5: error: attnc quantize chooses each precision"),
                                   ("down_precision weights f32", 1, "3:5: error: attnc quantize")):
            spec = self.path("stated.attn")
            with open(SPEC, encoding="utf-8") as file:
                text = file.read().replace("model outliers {", "model outliers {\n    " + line).replace("<= 24", "= 20")
            with open(spec, "w", encoding="utf-8") as file:
                file.write(text)
            done = attnc("quantize", spec, "--weights", self.weights, *self.ids, *fine, "-o", self.path("none.attn"))
            assert done.returncode == status and part in done.stderr, (line, done.returncode, done.stderr)
        bad = numbers_of(self.weights)
        bad["encoder.layers.0.ffn.up.weight"][1][7] = float("nan")
        safetensors.write(self.path("bad.safetensors"), bad)
        done = self.quantize(*fine, "--allow", "weights=int8", weights=self.path("bad.safetensors"), status=1)
        assert "holds NaN or infinity in f32" in done.stderr, done.stderr

    def test_vectors(self):
        """Vectors that smooth nothing, or that are not there, are refused by name, and packed weights hold them."""
        self.quantize("--allow", PLAIN, "--bound", "1")
        spec, name = self.path("q.attn"), "encoder.layers.1.ffn.up.smooth"
        vectors = numbers_of(self.path("q.attn.vectors.safetensors"))
        for number, shown in ((0, "is 0"), (-0.0, "is 0"), (-1, "is -1"), (float("nan"), "is NaN"),
                              (float("inf"), "is inf")):
            changed = {key: (shape, array.array("f", own)) for key, (shape, own) in vectors.items()}
            changed[name][1][5] = number
            safetensors.write(self.path("bad.safetensors"), changed)
            done = attnc("pack", spec, "--weights", self.weights + "," + self.path("bad.safetensors"), "-o",
                         self.path("none.attnw"), status=1)
            assert "number 5 of `%s` %s, and a vector that smooths" % (name, shown) in done.stderr, done.stderr
        tiny = {key: (shape, array.array("f", own)) for key, (shape, own) in vectors.items()}
        tiny[name][1][5] = struct.unpack("<f", struct.pack("<I", 1))[0]
        safetensors.write(self.path("bad.safetensors"), tiny)
        done = attnc("pack", spec, "--weights", self.weights + "," + self.path("bad.safetensors"), "-o",
                     self.path("none.attnw"), status=1)
        assert "too large for f32 when column 5 is smoothed" in done.stderr, done.stderr
        done = attnc("pack", spec, "--weights", self.weights, "-o", self.path("none.attnw"), status=1)
        assert re.search(r"no tensor `\S+\.smooth`", done.stderr), done.stderr
        done = attnc("pack", spec, "--weights", self.weights + "," + self.path("none.safetensors"), "-o",
                     self.path("none.attnw"), status=1)
        assert "none.safetensors" in done.stderr, done.stderr
        attnc("pack", spec, "--weights", self.beside(), "-o", self.path("q.attnw"), status=0)
        outputs = []
        for weights in (self.beside(), self.path("q.attnw")):
            attnc("run", spec, "--weights", weights, *self.ids, "--out", "pooled=" + self.path("p.npy"), status=0)
            outputs.append(self.read("p.npy", "rb"))
        assert outputs[0] == outputs[1]


if __name__ == "__main__":
    run_tests("quantize", Quantize)
