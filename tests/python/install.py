"""pip builds a wheel of a package, which another Python process installs and uses; its size; missing libraries."""
import glob
import os
import shutil
import subprocess
import sys
import zipfile

from lib.attnc import ATTNC, ROOT, attnc, run
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


def pip(*words, **env):
    """Runs pip of this Python, without a network."""
    if subprocess.run([sys.executable, "-c", PROBE], capture_output=True, check=False).returncode:
        raise Skip("no python3-pip or python3-wheel")
    return run(sys.executable, "-m", "pip", *words, "-q", "--no-deps", "--no-index", "--disable-pip-version-check",
               env={"PIP_ROOT_USER_ACTION": "ignore", "PIP_BREAK_SYSTEM_PACKAGES": "1", **env})


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
    packages.build(folder, cflags=None)
    (module,) = glob.glob(os.path.join(folder, "minilm", "*.so"))
    assert os.path.getsize(module) < MOST_CODE, "%d bytes" % os.path.getsize(module)


def one_step(packages):
    """A folder of transformers becomes the package that its imported spec becomes, whose name may be given."""
    folder, spec = packages.path("bert"), packages.path("named.attn")
    shutil.copytree(os.path.join(ROOT, "tests", "parity", "fixtures", "bert_pretrained"), folder)
    write(os.path.join(folder, "tokenizer.json"), TOKENIZER)
    whole, parts = packages.path("whole"), packages.path("parts")
    attnc("python", folder, "--name", "named", "--target", "scalar", "-o", whole, status=0)
    attnc("import", folder, "--name", "named", "-o", spec, status=0)
    attnc("python", spec, "--weights", folder, "--tokenizer", folder, "--target", "scalar", "-o", parts, status=0)
    for path in glob.glob(os.path.join(parts, "**"), recursive=True):
        if os.path.isfile(path):
            with open(path, "rb") as one, open(whole + path[len(parts):], "rb") as other:
                assert one.read() == other.read(), path
    assert os.path.exists(os.path.join(whole, "named", "named.attnw"))
    for words, status, told in (([spec, "--name", "other"], 2, "`--name`: a spec has its own name"),
                                ([folder, "--weights", "random:1"], 2, "`--weights`: an imported model has"),
                                ([folder, "--name", "a b"], 2, "`--name`"),
                                ([packages.scratch], 1, "config.json")):
        done = attnc("python", *words, "-o", packages.path("none"), status=status)
        assert told in done.stderr and not os.path.exists(packages.path("none")), done.stderr


SEALED = """import email, numpy, sys, zipfile
import named
box = zipfile.ZipFile(sys.argv[1])
said = email.message_from_bytes(box.read("named-1.0.dist-info/METADATA"))
assert (said["Name"], said["Version"], said["Requires-Dist"]) == ("named", "1.0", "numpy"), said
assert named.__file__.startswith(sys.prefix), named.__file__
vectors = named.load().embed(["w3 w5", "w4"])
assert vectors.ndim == 2 and len(vectors) == 2 and numpy.isfinite(vectors).all()
assert abs(vectors[0] - vectors[1]).max() > 1e-3
"""


def venv_of(packages, *wheels):
    """The Python of a new environment that has these wheels, and the packages of this Python."""
    import venv
    folder = packages.path("venv")
    venv.create(folder, system_site_packages=True, with_pip=False)
    python = os.path.join(folder, "bin", "python")
    run(python, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--disable-pip-version-check",
        *wheels, status=0)
    return python


def sealed(packages):
    """--wheel: a wheel of a folder of transformers in one step, which pip installs into a new environment."""
    if subprocess.run([sys.executable, "-c", PROBE], capture_output=True, check=False).returncode:
        raise Skip("no python3-pip or python3-wheel")
    folder, to = packages.path("sealed_model"), packages.path("sealed")
    shutil.copytree(os.path.join(ROOT, "tests", "parity", "fixtures", "bert_odd"), folder)
    write(os.path.join(folder, "tokenizer.json"), TOKENIZER)
    done = attnc("python", folder, "--name", "named", "--target", "scalar", "--wheel", "-o", to, status=0,
                 env={"PYTHON": sys.executable, "CFLAGS": "-O1"})
    (path,) = glob.glob(os.path.join(to, "*.whl"))
    assert done.stdout == path + "\n" and os.path.basename(path).startswith("named-1.0-cp311-abi3-"), done.stdout
    assert not path.endswith("-any.whl") and sorted(os.listdir(to)) == sorted(
        ["named", "pyproject.toml", "setup.py", os.path.basename(path)]), os.listdir(to)
    run(venv_of(packages, path), "-c", SEALED, path, cwd=packages.scratch, env={"PYTHONPATH": None}, status=0)
    spec = packages.path("none.attn")
    for python, told in (("/none/python", "`/none/python` is not there"), ("false", "its wheel could not be built")):
        done = attnc("python", folder, "--target", "scalar", "--wheel", "-o", packages.path("unsealed"), status=1,
                     env={"PYTHON": python})
        assert told in done.stderr and "the package is written" in done.stderr, done.stderr
    assert "--wheel" in attnc("rust", spec, "--wheel", "-o", packages.path("none"), status=2).stderr


def lacks(packages):
    """Without the tokenizer's libraries, the build says what to install."""
    spec = write(packages.path("lacking.attn"), SPEC.replace("reader", "lacking") % VOCAB)
    tokenizer = write(packages.path("lacking.json"), TOKENIZER)
    folder, _ = packages.write(spec, "--target", "scalar", "--tokenizer", tokenizer)
    done = run(sys.executable, "setup.py", "-q", "build_ext", "--inplace", cwd=folder, env={"CC": "false"})
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    assert "apt-get install libonig-dev libcjson-dev libutf8proc-dev" in done.stderr, done.stderr


COMPILER = """import os, attnc, numpy
assert attnc.program() == os.path.join(os.path.dirname(attnc.__file__), "bin", "attnc")
print(attnc.call("--version"), end="")
attnc.compile("%(spec)s", "c", weights="random:1", target=["scalar", "sse2"], runtime=True)
assert {"boxed.c", "boxed.h", "boxed.attnw", "attn_runtime.c"} <= set(os.listdir("c"))
results = attnc.run("%(spec)s", "random:1", {"tokens": [[1, 2, 3]], "segments": numpy.zeros((1, 3), int)},
                    ["hidden", "pooled"], engine="interp")
assert results["hidden"].shape == (1, 3, 12) and results["pooled"].shape == (1, 12)
attnc.package("%(spec)s", "package", weights="random:1")
assert os.path.exists("package/pyproject.toml")
for call, status, words in ((lambda: attnc.compile("none.attn", "d"), 1, "none.attn: cannot be opened"),
                            (lambda: attnc.call("nothing"), 2, "nothing"),
                            (lambda: attnc.import_model("c", "d.attn"), 1, "config.json")):
    try:
        call()
    except attnc.Error as why:
        assert why.status == status and words in str(why), (why.status, str(why))
    else:
        raise SystemExit("no error")
"""


def compiler(packages):
    """The package of attnc itself, with a program that is built already."""
    tree = packages.path("tree")
    shutil.copytree(os.path.join(ROOT, "packaging", "python"), os.path.join(tree, "packaging", "python"),
                    ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
    os.makedirs(os.path.join(tree, "compiler"))
    shutil.copy(os.path.join(ROOT, "compiler", "attnc.h"), os.path.join(tree, "compiler"))
    to = packages.path("compiler")
    done = pip("wheel", "--no-build-isolation", "-w", to, os.path.join(tree, "packaging", "python"), ATTNC=ATTNC)
    assert done.returncode == 0, done.stderr[-2000:]
    (path,) = glob.glob(os.path.join(to, "*.whl"))
    assert "-py3-none-" in path and os.path.getsize(path) < 2_000_000, (path, os.path.getsize(path))
    site = packages.path("compiler_site")
    assert pip("install", "--target", site, path).returncode == 0
    spec = write(packages.path("boxed.attn"), SPEC.replace("reader", "boxed") % VOCAB)
    done = run(sys.executable, "-c", COMPILER % {"spec": spec}, cwd=packages.scratch, status=0,
               env={"PYTHONPATH": site, "ATTNC": None})
    assert done.stdout == run(ATTNC, "--version").stdout, done.stdout


def example(packages):
    """examples/python prints what its README shows, and draws a picture."""
    import xml.dom.minidom
    dates = os.path.join(ROOT, "examples", "dates")
    module = packages.get(os.path.join(dates, "dates.attn"), weights=os.path.join(dates, "dates.safetensors"))
    picture = packages.path("dates.svg")
    folder = os.path.join(ROOT, "examples", "python")
    done = run(sys.executable, os.path.join(folder, "attention.py"), "3rd of May '97", picture, status=0,
               env={"PYTHONPATH": os.path.dirname(os.path.dirname(module.__file__))})
    with open(os.path.join(folder, "README.md"), encoding="utf-8") as file:
        assert done.stdout.replace(picture, "dates.svg") in file.read(), done.stdout
    squares = xml.dom.minidom.parse(picture).getElementsByTagName("rect")
    assert len(squares) == 4 * 10 * 14, len(squares)


def sanitized(_packages):
    """Tests of arguments, states and texts, with modules under AddressSanitizer and UBSan."""
    libraries = [run("gcc", "-print-file-name=lib%s.so" % name).stdout.strip() for name in ("asan", "ubsan")]
    if not all(map(os.path.isabs, libraries)):
        raise Skip("no libasan and libubsan of gcc")
    done = run(sys.executable, os.path.join(ROOT, "tests", "python", "run.py"), "drawn", "arguments", "sequences",
               "decoder", "options", "encoder_decoder", "starts_again", "like_items", "with_history",
               "refused", "closes", "pickles", "encodes", "writes", "stops", "reads", "transcribes", "deaf",
               env={"LD_PRELOAD": ":".join(libraries), "ATTNC_SANITIZED": "1", "ATTNC_AGAIN": "1",
                    "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1"})
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
