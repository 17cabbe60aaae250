"""What forward and load refuse, and that nothing of a call stays behind: references, threads, processes."""
import array
import ctypes
import os
import sys
import threading

import numpy as np

from lib.attnc import attnc
from states import raises

SPEC = """model tiny {
    d_model 12
    vocab 300
    encoder {
        seq <= 9
        position learned
        segments 2
        layers 1 { attention self { heads 2 }
                   ffn { d_ff 20 } }
    }
    head pool mean l2
}
"""


def tiny(packages):
    spec = packages.path("tiny.attn")
    with open(spec, "w", encoding="utf-8") as file:
        file.write(SPEC)
    return packages.get(spec)


class OnDevice:
    __cuda_array_interface__ = {"shape": (3,), "typestr": "<i4", "data": (0, False), "version": 3}


class Described:
    def __init__(self, inner):
        self.inner = inner
        self.__array_interface__ = inner.__array_interface__


class Liar(list):
    """A list whose length and items are not what it holds."""

    def __len__(self):
        return -1

    def __getitem__(self, at):
        return [object()]


class Shrinking:
    """An array whose description empties the list that it is in."""

    def __init__(self, around):
        self.around = around

    @property
    def ndim(self):
        self.around.clear()
        return 1

    def __array__(self, *_):
        self.around.clear()
        return np.array([1])


def arguments(packages):
    module = tiny(packages)
    model = module.load()
    forward = model.forward
    good = np.array([1, 2, 299])
    wanted = forward(tokens=good)["hidden"]
    for same in (array.array("i", good), (ctypes.c_int * 3)(*good), memoryview(good), Described(good), tuple(good),
                 np.array([1, 2, 299], "uint16"), np.array([1, 2, 299], "uint64"), np.array([[1, 2, 299]])[0],
                 np.array([299, 2, 1])[::-1], np.frombuffer(b"\0" + np.int32(good).tobytes(), "int32", 3, 1)):
        np.testing.assert_array_equal(forward(tokens=same)["hidden"], wanted)
    for wrong in (np.array([1.0]), np.array([True]), np.array([1], "uint8"), np.array([1], "int8"), np.array(["a"]),
                  np.array([1], ">i4"), np.array([object()]), np.array([1j]), "text", object(), 3, 1.5, {1: 2}, {1},
                  OnDevice(), [1, None], [[1], None], np.array([1], "datetime64[s]"), np.zeros(2, "i4,i4"), range(3),
                  [2**70]):
        raises(TypeError, "", forward, tokens=wrong)
    np.testing.assert_array_equal(forward(tokens=Liar([good]))["hidden"][0], wanted)
    for wrong in (Liar([1, 2]), Liar([Liar([1])])):
        raises((TypeError, ValueError), "", forward, tokens=wrong)
    shrinking = []
    shrinking += [Shrinking(shrinking), Shrinking(shrinking)]
    raises((TypeError, ValueError, IndexError), "", forward, tokens=shrinking)
    for wrong in (np.array(3), [], np.zeros((0, 3), int), [[]], [[1], []], np.zeros((2, 0), int), [1] * 10,
                  np.zeros((1, 1, 1), int), [300], [-1], [2**31], np.array([2**64 - 1], "uint64"),
                  [[1, 2], [3, 300]], [[[1]]], np.broadcast_to(np.int32(1), (3, 10))):
        raises(ValueError, "", forward, tokens=wrong)
    for words, named in (("length 2, which in another input has 3", {"segments": [0, 1]}),
                         ("outside 0 to 1", {"segments": [0, 1, 2]}),
                         ("batch", {"segments": [[0, 1, 1]]}),
                         ("not ones, then zeros", {"attention_mask": [0, 1, 1]}),
                         ("not ones, then zeros", {"attention_mask": [1, 1, 2]}),
                         ("no one", {"attention_mask": [0, 0, 0]}),
                         ("length 2", {"attention_mask": [1, 1]}),
                         ("no output", {"outputs": "nothing"}),
                         ("no output", {"outputs": [3]})):
        raises(ValueError, words, forward, tokens=good, **named)
    for words, wrong in (
            ("tokens: int32 or another type of integers is wanted, found float64", np.array([1.0])),
            ("tokens: ids go up to 299, which numbers of the type uint8 cannot hold", np.array([1], "uint8")),
            ("tokens: int32 or another type of integers is wanted, found the format '>i'", np.array([1], ">i4")),
            ("tokens: an array in this process's memory or a list of numbers is wanted, not str", "text")):
        raises(TypeError, words, forward, tokens=wrong)
    raises(TypeError, "outputs: the name of a result or a list of names is wanted, not int", forward, tokens=good,
           outputs=3)
    raises(TypeError, "needs the input tokens", forward)
    raises(TypeError, "needs the input tokens", forward, tokens=None)
    raises(TypeError, "tokens, segments, attention_mask", forward, tokenz=good)
    raises(TypeError, "by their names", forward, good)
    raises(TypeError, "", forward, tokens=good, outputs=3)
    assert forward(tokens=good, outputs=[]) == {}
    assert forward(tokens=[good])["hidden"][0].shape == (3, 12)


def sequences(packages):
    """Lists, padded arrays and masks in every mixture."""
    model = tiny(packages).load()
    rows = np.array([[1, 2, 3, 4], [5, 6, 7, 10**6]])
    lists = model.forward(tokens=[[1, 2, 3, 4], np.array([5, 6, 7])])
    padded = model.forward(tokens=rows, attention_mask=[[1, 1, 1, 1], [1, 1, 1, 0]])
    cut = model.forward(tokens=list(rows), attention_mask=np.array([[1, 1, 1, 1], [1, 1, 1, 0]], bool))
    mixed = model.forward(tokens=rows[:, :3], segments=[[0, 0, 1], [0, 1, 1]])
    assert padded["hidden"].shape == (2, 4, 12) and not padded["hidden"][1, 3].any()
    assert isinstance(mixed["hidden"], list) and mixed["hidden"][0].shape == (3, 12)
    for results in (padded, cut):
        for b, n in enumerate((4, 3)):
            np.testing.assert_array_equal(results["hidden"][b][:n], lists["hidden"][b])
        np.testing.assert_array_equal(results["pooled"], lists["pooled"])
    raises(ValueError, "sequences", model.forward, tokens=rows[:, :3], segments=[[0, 0, 1]])


def loads(packages):
    module = tiny(packages)
    folder = os.path.dirname(module.__file__)
    path = os.path.join(folder, "tiny.attnw")
    with open(path, "rb") as file:
        data = bytearray(file.read())
    damaged = packages.path("damaged.attnw")
    for at, verify in ((40, False), (len(data) - 5, True)):
        changed = bytearray(data)
        changed[at] ^= 1
        with open(damaged, "wb") as file:
            file.write(changed)
        raises(module.WeightsError, "damaged", module.load, damaged, verify=verify)
    for content in (b"", bytes(data[:-4]), b"x" * 300):
        with open(damaged, "wb") as file:
            file.write(content)
        raises(module.WeightsError, "weights", module.load, damaged)
    for wrong, kind in ((0, ValueError), (257, ValueError), (-1, ValueError), (2**80, ValueError), (1.5, TypeError)):
        raises(kind, "threads: ", module.load, threads=wrong)
    raises(TypeError, "threads: an integer is wanted, not float", module.load, threads=1.5)
    raises(TypeError, "target: a str or None is wanted, not int", module.load, target=3)
    raises(TypeError, "weights: a path is wanted, not int", module.load, 3)
    raises(FileNotFoundError, "none", module.load, packages.path("none"))
    raises(IsADirectoryError, "", module.load, folder)
    raises(module.Error, "instructions", module.load, target="none")
    raises(TypeError, "", module.load, 3.5)
    raises(ValueError, "null", module.load, "a\0b")
    assert module.load(path.encode(), verify=True).target() == module.load(target="scalar").target() == "scalar"
    assert issubclass(module.StateError, module.Error) and issubclass(module.WeightsError, module.Error)


def without_weights(packages):
    spec = packages.path("bare_tiny.attn")
    with open(spec, "w", encoding="utf-8") as file:
        file.write(SPEC.replace("tiny", "bare_tiny"))
    module = packages.get(spec, weights=None)
    raises(module.WeightsError, "no weights", module.load)


def leaves_nothing(packages):
    """Neither references nor threads, whatever calls end with; and a child of fork can call."""
    module = tiny(packages)
    model = module.load(threads=3)
    good, bad = np.array([1, 2, 3]), np.array([1, 2, 300])
    calls = [{"tokens": good}, {"tokens": bad}, {"tokens": [good, bad]}, {"tokens": [good, good]}, {"other": good},
             {"tokens": good, "attention_mask": bad}, {"tokens": good, "outputs": "none"}]

    def call_all():
        for named in calls:
            try:
                model.forward(**named)
            except (TypeError, ValueError):
                pass

    call_all()
    watched = [good, bad, None, model, np.float32]
    before = [sys.getrefcount(x) for x in watched]
    for _ in range(300):
        call_all()
    after = [sys.getrefcount(x) for x in watched]
    assert all(abs(a - b) < 50 for a, b in zip(after, before)), (before, after)
    child = os.fork()
    if child == 0:
        try:
            model.forward(tokens=good)
            del model
            os._exit(0)
        except BaseException:  # pylint: disable=broad-except
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0, "the child of a fork"
    results, threads = [], []
    wanted = model.forward(tokens=good)["hidden"]

    def work():
        for _ in range(200):
            results.append((model.forward(tokens=good)["hidden"] == wanted).all())

    for _ in range(6):
        threads.append(threading.Thread(target=work))
        threads[-1].start()
    for thread in threads:
        thread.join()
    assert len(results) == 1200 and all(results)


def mutated(random, value):
    """The same array in other clothes, or a wrong one."""
    kinds = [lambda: value, value.tolist, lambda: value.astype(random.choice(["int8", "uint64", "float16", "int64"])),
             lambda: value[..., :random.integers(0, value.shape[-1] + 1)], lambda: value[None], lambda: [value, value],
             lambda: np.asfortranarray(value), lambda: value.T, lambda: np.full_like(value, random.integers(-9, 400)),
             lambda: [value.tolist(), value[:1]], lambda: memoryview(np.ascontiguousarray(value)), lambda: None,
             lambda: np.broadcast_to(value[:1], value.shape), lambda: list(value), lambda: value[::-1],
             lambda: random.choice(["text", b"bytes", 3, 1.5, object()])]
    return kinds[random.integers(len(kinds))]()


def drawn(packages):
    """Random arguments are refused by TypeError or ValueError, or give results of good shapes."""
    module = tiny(packages)
    model = module.load()
    random = np.random.default_rng(5)
    good = 0
    for _ in range(3000):
        n = int(random.integers(1, 11))
        inputs = {"tokens": random.integers(0, 300, n), "segments": random.integers(0, 2, n),
                  "attention_mask": np.arange(n) < random.integers(0, n + 1)}
        named = {name: mutated(random, value) for name, value in inputs.items() if random.random() < 0.8}
        try:
            results = model.forward(**named)
        except (TypeError, ValueError):
            continue
        good += 1
        pooled = results["pooled"]
        assert pooled.shape[-1] == 12 and np.isfinite(pooled).all(), named
        rows = results["hidden"]
        for row in rows if isinstance(rows, list) else [rows]:
            assert np.isfinite(row).all() and row.shape[-1] == 12, named
    assert good > 100, "%d calls were good" % good


def names(packages):
    """An input whose name would be a word of Python or another argument is refused, and other names are not."""
    spec, folder = packages.path("names.attn"), packages.path("package_names")
    for name, status in (("class", 3), ("self", 3), ("outputs", 3), ("classes", 0)):
        with open(spec, "w", encoding="utf-8") as file:
            file.write(SPEC.replace("segments 2", f"input rows {name} 0..9").replace("heads 2", f"score s + {name}[k], "
                                                                                     "heads 2"))
        done = attnc("python", spec, "-o", folder)
        assert done.returncode == status, done.stderr
        assert not status or f"the input `{name}` has the name of a word of Python" in done.stderr, done.stderr
