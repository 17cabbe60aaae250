"""forward of packages against attnc run: single sequences, padded batches and lists of sequences."""
import ast
import inspect

import numpy as np

from support import attnc_runs, described, near


class Drawn:
    """Random inputs for a package, with the lengths of its sequences."""

    def __init__(self, module, seed):
        self.inputs, self.bounds = described(module)
        self.random = np.random.default_rng(seed)
        self.prefixed = "prefix_length" in module.Model.forward.__text_signature__
        self.masked = "attention_mask" in module.Model.forward.__text_signature__
        self.optional = {name for name in self.inputs
                         if " %s=None" % name in module.Model.forward.__text_signature__}

    def length(self, letter):
        least, most = self.bounds[letter]
        return int(self.random.integers(least, min(most, least + 12) + 1))

    def lengths(self):
        return {letter: self.length(letter) for letter in self.bounds}

    def one(self, name, lengths):
        """The input of one sequence with these lengths."""
        kind, random = self.inputs[name], self.random
        shape = [lengths[size] if size in lengths else int(size) for size in kind.shape]
        if kind.kind == "integers":
            return random.integers(0, kind.end, shape).astype(random.choice(["int32", "int64"]))
        if kind.kind == "booleans":
            return random.random(shape) < 0.7
        return random.standard_normal(shape).astype("float32")

    def sequence(self, lengths, most_prefix=99):
        inputs = {name: self.one(name, lengths) for name in self.inputs}
        if self.prefixed:
            inputs["prefix_length"] = np.array(self.random.integers(0, min(most_prefix, lengths["n"]) + 1))
        return inputs


def parts(value, b):
    return {name: array[b] for name, array in value.items()}


def single(module, model, scratch, drawn):
    """One sequence, as arrays, as nested lists and in other memory layouts."""
    inputs = drawn.sequence(drawn.lengths())
    got = model.forward(**inputs)
    wanted = attnc_runs(module, scratch, inputs, got)
    for name, array in wanted.items():
        near(got[name], array, name)
    layouts = (np.ndarray.tolist, np.asfortranarray, lambda value: np.repeat(value, 2, axis=0)[::2],
               lambda value: value.astype({"f": "float64", "i": "int64", "b": "int8"}[value.dtype.kind]),
               lambda value: memoryview(value.copy()))
    for layout in layouts:
        other = {name: layout(value) if value.ndim else value for name, value in inputs.items()}
        again = model.forward(**other)
        for name in got:
            np.testing.assert_array_equal(again[name], got[name], name)
    first = next(iter(got))
    alone = model.forward(**inputs, outputs=[first.split(".")[0]])
    assert first in alone and (len(alone) < len(got) or "." in first or len(got) == 1), list(alone)
    np.testing.assert_array_equal(alone[first], got[first])


def padded(module, model, scratch, drawn):
    """A batch of arrays, with attention_mask where the model takes it."""
    lengths = drawn.lengths()
    sequences = [drawn.sequence(lengths, most_prefix=1) for _ in range(3)]
    inputs = {name: np.stack([one[name] for one in sequences]) for name in sequences[0]}
    if drawn.masked:
        letter = "m" if "m" in drawn.bounds else "n"
        least, _ = drawn.bounds[letter]
        real = [lengths[letter], int(drawn.random.integers(least, lengths[letter] + 1)), least]
        inputs["attention_mask"] = (np.arange(lengths[letter]) < np.array(real)[:, None]).astype("int64")
    got = model.forward(**inputs)
    wanted = attnc_runs(module, scratch, inputs, got)
    for name, array in wanted.items():
        near(got[name], array, name)


def listed(_module, model, _scratch, drawn):
    """A list of sequences of different lengths gives the bits of each of them alone."""
    sequences = [drawn.sequence(drawn.lengths()) for _ in range(3)]
    got = model.forward(**{name: [one[name] for one in sequences] for name in sequences[0]})
    for b, one in enumerate(sequences):
        alone = model.forward(**one)
        assert alone.keys() == got.keys()
        for name, array in parts(got, b).items():
            np.testing.assert_array_equal(array, alone[name], name)


def defaults(module, model, scratch, drawn):
    """Absent inputs are what attnc run takes for them."""
    inputs = drawn.sequence(drawn.lengths())
    if drawn.prefixed:
        without = model.forward(**{**inputs, "prefix_length": None})
        for name, array in model.forward(**{**inputs, "prefix_length": 0}).items():
            near(without[name], array, name)
    if not drawn.optional:
        return
    inputs = {name: value for name, value in inputs.items() if name not in drawn.optional}
    got = model.forward(**inputs)
    for name, array in attnc_runs(module, scratch, inputs, got).items():
        near(got[name], array, name)


def stub(module):
    """The stub is Python, and has the methods of the classes."""
    with open(module.__file__ + "i", encoding="utf-8") as file:
        tree = ast.parse(file.read())
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name in ("Model", "State"):
            names = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
            names |= {target.id for part in node.body if isinstance(part, ast.Assign) for target in part.targets}
            own = {name for name, value in vars(getattr(module, node.name)).items() if callable(value)
                   or inspect.isgetsetdescriptor(value)} - {"__new__", "__doc__"}
            assert names == own, (node.name, names ^ own)
        if isinstance(node, ast.FunctionDef):
            assert getattr(module, node.name)


def compare(packages, name, *options, threads=1):
    """All of these for a spec."""
    module = packages.get(name, *options)
    stub(module)
    model = module.load(threads=threads)
    for seed, check in enumerate((single, padded, listed, defaults)):
        check(module, model, packages.scratch, Drawn(module, seed))
