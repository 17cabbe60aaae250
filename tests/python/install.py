"""pip builds a wheel of a package, which another Python process installs and uses; its size; missing libraries."""
import glob
import os
import subprocess
import sys
import zipfile

from lib.attnc import ROOT, run
from lib.tap import Skip
from texts import SPEC, TOKENIZER, VOCAB, write

MOST_CODE = 1_000_000  # bytes of a wheel beside weights and tokenizer
PROBE = """import importlib.util, setuptools
try:
    import setuptools.command.bdist_wheel
except ImportError:
    import wheel
assert importlib.util.find_spec("pip")
"""
CHECK = """import numpy, boxed
model = boxed.load(threads=2)
assert boxed.__file__.startswith(%r), boxed.__file__
assert model.embed(["w3 w5"]).shape == (1, 12)
assert numpy.isfinite(model.forward(tokens=[1, 2])["hidden"]).all()
assert "tokens: integers [n], 0 to 36" in help_of(boxed.Model.forward)
""".replace("help_of(boxed.Model.forward)", "boxed.Model.forward.__doc__")


def pip(*words):
    """Runs pip of this Python, or of Debian's, without a network."""
    if subprocess.run([sys.executable, "-c", PROBE], capture_output=True, check=False).returncode:
        raise Skip("no python3-pip or python3-wheel")
    return run(sys.executable, "-m", "pip", *words, "-q", "--no-deps", "--no-index", "--disable-pip-version-check",
               env={"PIP_ROOT_USER_ACTION": "ignore", "PIP_BREAK_SYSTEM_PACKAGES": "1"})


def wheel_of(packages, folder):
    to = packages.path("wheels", os.path.basename(folder))
    done = pip("wheel", "--no-build-isolation", "-w", to, folder)
    assert done.returncode == 0, done.stderr[-2000:]
    (wheel,) = glob.glob(os.path.join(to, "*.whl"))
    return wheel


def wheel(packages):
    spec = write(packages.path("boxed.attn"), SPEC.replace("reader", "boxed") % VOCAB)
    folder, _ = packages.write(spec, "--target", "scalar", "--tokenizer", write(packages.path("boxed.json"), TOKENIZER))
    path = wheel_of(packages, folder)
    assert os.path.basename(path).startswith("boxed-1.0-cp311-abi3-"), path
    with zipfile.ZipFile(path) as box:
        names = {name for name in box.namelist() if name.startswith("boxed/")}
    (module,) = (name for name in names if name.endswith(".so"))
    assert names == {"boxed/__init__.py", "boxed/__init__.pyi", "boxed/py.typed", "boxed/boxed.attnw",
                     "boxed/tokenizer.json", module}, names
    site = packages.path("site")
    done = pip("install", "--target", site, path)
    assert done.returncode == 0, done.stderr[-2000:]
    run(sys.executable, "-c", CHECK % site, cwd=packages.scratch, env={"PYTHONPATH": site}, status=0)


def small(packages):
    """The code of MiniLM for three sets of instructions."""
    folder, _ = packages.write(os.path.join(ROOT, "specs", "minilm.attn"), weights=None)
    packages.build(folder, cflags="-w")
    (module,) = glob.glob(os.path.join(folder, "minilm", "*.so"))
    assert os.path.getsize(module) < MOST_CODE, "%d bytes" % os.path.getsize(module)


def lacks(packages):
    """Without the tokenizer's libraries, the build says what to install."""
    spec = write(packages.path("lacking.attn"), SPEC.replace("reader", "lacking") % VOCAB)
    tokenizer = write(packages.path("lacking.json"), TOKENIZER)
    folder, _ = packages.write(spec, "--target", "scalar", "--tokenizer", tokenizer)
    done = run(sys.executable, "setup.py", "-q", "build_ext", "--inplace", cwd=folder, env={"CC": "false"})
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    assert "apt-get install libonig-dev libcjson-dev libutf8proc-dev" in done.stderr, done.stderr
