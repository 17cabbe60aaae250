"""A Python that can build and load packages, packages of specs, and what attnc computes of the same inputs."""
import glob
import importlib
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib.attnc import TESTS, attnc, run  # noqa: E402

NEEDED = {"numpy": "python3-numpy", "setuptools": "python3-setuptools", "Python.h": "python3-dev"}
STRICT = "-O1 -Wall -Wextra -Wconversion -Wshadow -Werror -Wno-unused-function"
SANITIZED = "-fsanitize=address,undefined -fno-sanitize-recover=all" if "ATTNC_SANITIZED" in os.environ else ""
PROBE = """import importlib.util, os, sysconfig
print(*[name for name in ("numpy", "setuptools") if not importlib.util.find_spec(name)],
      *["Python.h"] * (not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h"))))"""


def suitable():
    """(a Python of at least 3.11 that has what packages need, or None; what is missing, by Debian's names).
    ATTNC_PYTHON names another one than that which runs the tests."""
    missing = sorted(NEEDED.values())
    for python in (os.environ.get("ATTNC_PYTHON"), sys.executable, "/usr/bin/python3"):
        if not python or not shutil.which(python):
            continue
        found = subprocess.run([python, "-c", PROBE], capture_output=True, text=True, check=False)
        if found.returncode == 0 and not found.stdout.strip():
            return python, []
        if found.returncode == 0:
            missing = [NEEDED[name] for name in found.stdout.split()]
    return None, missing


def spec_of(name):
    """The spec NAME.attn of a folder of tests, or the path that the name is."""
    if name.endswith(".attn"):
        return name
    return next(iter(glob.glob(os.path.join(TESTS, "*", name + ".attn"))))


class Packages:
    """Packages of one scratch folder, each built once and imported."""

    def __init__(self, scratch):
        self.scratch, self.modules = scratch, {}

    def path(self, *names):
        return os.path.join(self.scratch, *names)

    def write(self, spec, *options, status=0, weights="random:1"):
        """The folder of the package of a spec, and what attnc said."""
        folder = self.path("package_" + os.path.basename(spec)[:-5])
        given = ["--weights", weights] if weights else []
        done = attnc("python", spec, *given, "-o", folder, *options, status=status)
        return folder, done.stderr

    def build(self, folder, cflags=STRICT):
        """Builds the module of a package into its folder; without `cflags`, as pip does."""
        more = {"CFLAGS": "-O1 -w " + SANITIZED, "LDFLAGS": SANITIZED, "LD_PRELOAD": None} if SANITIZED else {}
        run(sys.executable, "setup.py", "-q", "build_ext", "--inplace", cwd=folder, status=0,
            env={"CFLAGS": cflags, "PYTHONPATH": None, **more})

    def get(self, name, *options, target="scalar", cflags=STRICT, **more):
        """The imported package of a spec, by its name in a folder of tests or by its path."""
        if name in self.modules:
            return self.modules[name]
        spec = spec_of(name)
        folder, _ = self.write(spec, "--target", target, *options, **more)
        self.build(folder, cflags)
        sys.path.insert(0, folder)
        try:
            module = importlib.import_module(os.path.basename(spec)[:-5])
        finally:
            sys.path.remove(folder)
        module.spec = spec
        self.modules[name] = module
        return module


class Input:
    """What forward's docstring says of an input: its kind, its dimensions and the end of its ids."""

    def __init__(self, kind, shape, last):
        self.kind, self.shape, self.end = kind, shape, int(last) + 1 if last else 0


def described(module):
    """{name: Input} and the bounds {n: (least, most), m: ...} of forward."""
    doc = module.Model.forward.__doc__
    inputs = {}
    for name, kind, shape, last in re.findall(
            r"^    (\w+): (integers|float32|booleans) \[([^]]*)\](?:, 0 to (\d+)|)", doc.split("Results:")[0], re.M):
        inputs[name] = Input(kind, shape.split(", "), last)
    bounds = {}
    for letter, least, most in re.findall(r"\b([nm])(?:, the [a-z ]+,)? (?:is )?(?:(\d+) to )?(\d+)[.,]",
                                          doc[doc.index("\nn is ") + 1:]):
        bounds[letter] = (int(least or most), int(most))
    return inputs, bounds


def attnc_runs(module, scratch, inputs, outputs, weights="random:1"):
    """{output: array} of attnc run in the interpreter."""
    import numpy as np
    arguments = []
    for name, value in inputs.items():
        path = os.path.join(scratch, "in_%s.npy" % name)
        np.save(path, value)
        arguments += ["--in", "%s=%s" % (name, path)]
    for name in outputs:
        arguments += ["--out", "%s=%s" % (name, os.path.join(scratch, "out_%s.npy" % name))]
    attnc("run", module.spec, "--weights", weights, "--engine", "interp", *arguments, status=0)
    return {name: np.load(os.path.join(scratch, "out_%s.npy" % name)) for name in outputs}


def near(got, wanted, what, by=2e-5):
    """Whether two arrays have one shape, and numbers within the tolerance of tests/differential."""
    import numpy as np
    assert isinstance(got, np.ndarray) and got.dtype == np.float32, "%s: %r" % (what, type(got))
    assert got.shape == wanted.shape, "%s has the shape %s, not %s" % (what, got.shape, wanted.shape)
    finite = np.isfinite(wanted)
    assert (np.isfinite(got) == finite).all(), what + ": other numbers are finite"
    if finite.any():
        worst = np.abs(got[finite] - wanted[finite]).max()
        most = by * (1 + np.abs(wanted[finite]).max())
        assert worst <= most, "%s is off by %g, more than %g" % (what, worst, most)
