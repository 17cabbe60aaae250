"""A tree of the project in which a mutant stands for a while: copied, built, tried and put back."""
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
PARTS = ("Makefile", "compiler", "docs", "examples", "generated", "mk", "runtime", "scripts", "specs", "tests")
BUILT = ("attnc", "libattnc.a", "embed", "language_tables", "gen", "compiler", "runtime", "unit")
FLAGS = "-std=c11 -D_GNU_SOURCE -O1 -w"  # what -Werror says of a mutant is not asked
UNBOUNDED = ("calls", "decode", "explain", "map", "programs")  # their sanitizers and browsers ask for any memory
CANNOT = 3  # attnc: this machine has not got what the command asks for
MOST_BYTES = 6 << 30
MOST_OUTPUT = 256 << 20
MOST_BUILD = 900
# Seconds for a command: many times what it takes without a mutant, since machines are slow and busy in turns.
LEAST_SECONDS, TIMES = 60, 15
BROKEN = re.compile(r"does not compile the C of|\.tmpl:\d+")


class Wrong(Exception):
    """What is wrong with the test itself."""


def limits():
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_OUTPUT, MOST_OUTPUT))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def variables():
    """CC=gcc and the like, that this run was made with."""
    words = os.environ.get("MAKEFLAGS", "").split()
    return [word for word in words if re.match(r"\w+=", word) and word.split("=")[0] not in ("B", "CFLAGS")]


def run(argv, folder, seconds, bounded):
    """Exit status (None: it did not end), output, seconds. What it began ends with it."""
    env = {key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "MAKELEVEL", "ATTNC_FIXTURES")}
    env.update(TMPDIR=os.path.join(folder, "tmp"), ATTNC_QUICK="1", PYTHONDONTWRITEBYTECODE="1")
    begin = time.monotonic()
    handle, path = tempfile.mkstemp(dir=os.path.join(folder, "tmp"))
    with open(handle, "wb") as said:
        child = subprocess.Popen(argv, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                                 start_new_session=True, preexec_fn=limits if bounded else None)
        try:
            status = child.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        child.wait()
    with open(path, errors="replace", encoding="utf-8") as file:
        text = file.read(1 << 20)
    os.remove(path)
    return status, text, time.monotonic() - begin


def failed(status, said):
    return status != 0 or re.search(r"^not ok(?!.*# SKIP)", said, re.M) is not None


class Command:
    """A line of the tables: `check SPEC [OPTION…]`, `aarch64 SPEC [OPTION…]` (check under QEMU), `unit NAME`,
    `tests GROUP`, `part GROUP FUNCTION` of its file, or `statuses TARGET`."""

    def __init__(self, text):
        self.text = text
        kind, name, *options = text.split()
        self.goal = []
        self.bounded = name not in UNBOUNDED
        self.lock = threading.Lock()
        if kind == "check":
            spec = name if "/" in name else "tests/differential/%s" % name
            self.argv = ["build/attnc", "check", spec + ".attn", *options]
            if "--lengths" not in options and "--case" not in options:
                self.argv.append("--small")
        elif kind == "aarch64":
            self.argv = ["build/attnc", "check", "tests/differential/%s.attn" % name, *options, "--small",
                         "--cc", "aarch64-linux-gnu-gcc", "--run", "qemu-aarch64 -L /usr/aarch64-linux-gnu"]
        elif kind == "unit":
            self.goal = ["build/unit/test_" + name]
            self.argv = self.goal
        elif kind == "tests":
            self.goal = ["build/language_tables"] if name == "language" else []
            self.argv = ["python3", "tests/%s/run.py" % name, *options]
        elif kind == "part":
            words = "import sys; sys.path.insert(0, 'tests/%s'); import run; run.%s()" % (name, *options)
            self.argv = ["python3", "-c", words]
        elif kind == "statuses":
            self.argv = ["python3", "tests/mutants/statuses.py", name]
        else:
            raise Wrong("no command: " + text)


class Tree:
    def __init__(self, folder, origin):
        self.folder = folder
        os.mkdir(folder)
        os.mkdir(os.path.join(folder, "tmp"))
        os.mkdir(os.path.join(folder, "build"))
        leave = shutil.ignore_patterns("__pycache__", "build", "bench")
        for name in PARTS + tuple("build/" + name for name in BUILT):
            source, target = os.path.join(origin, name), os.path.join(folder, name)
            if os.path.isdir(source):
                shutil.copytree(source, target, ignore=leave, symlinks=True)
            elif os.path.exists(source):
                shutil.copy2(source, target)

    def path(self, name):
        return os.path.join(self.folder, name)

    def make(self, goals):
        flags = ["CFLAGS=" + FLAGS, "GENERATED_CFLAGS=" + FLAGS, *variables()]
        return run(["make", "-s", *flags, *goals], self.folder, MOST_BUILD, False)

    def built(self):
        """Times of what stands under build/."""
        times = {}
        for folder, _, names in os.walk(self.path("build")):
            for name in names:
                path = os.path.join(folder, name)
                times[os.path.relpath(path, self.folder)] = os.stat(path, follow_symlinks=False).st_mtime_ns
        return times

    def put_back(self, origin, before, names):
        """As `origin` is: the sources `names`, and what built() said of it. (It says more while a command runs.)"""
        now = self.built()
        for name in now.keys() - before.keys():
            os.remove(self.path(name))
        for name in [n for n in before if now.get(n) != before[n]] + list(names):
            os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
            shutil.copy2(origin.path(name), self.path(name))


class Trees:
    """The tree as it is, and one for each worker."""

    def __init__(self, folder, workers, commands):
        self.lock = threading.Lock()
        self.clean = {}
        self.whole = Tree(os.path.join(folder, "whole"), ROOT)
        goals = sorted({goal for command in commands for goal in command.goal})
        status, said, _ = self.whole.make(["build/attnc", *goals])
        if status != 0:
            raise Wrong("the tree does not build:\n" + said[-2000:])
        self.built = self.whole.built()
        self.free = [Tree(os.path.join(folder, "worker%d" % i), self.whole.folder) for i in range(workers)]

    def without(self, command):
        """Seconds of the command without a mutant, or None where this machine cannot run it."""
        with command.lock:
            if command.text not in self.clean:
                limit = 60 * LEAST_SECONDS
                self.clean[command.text] = run(command.argv, self.whole.folder, limit, command.bounded)
            status, said, seconds = self.clean[command.text]
        if status == CANNOT:
            return None
        if failed(status, said):
            raise Wrong("`%s` fails without a mutant (%s):\n%s" % (command.text, status, said[-2000:]))
        return seconds

    def try_mutant(self, mutant, commands):
        """A word, and who caught it or why not: caught, survived, impossible (here), invalid (it does not build)."""
        with self.lock:
            tree = self.free.pop()
        try:
            return self.try_in(tree, mutant, commands)
        finally:
            tree.put_back(self.whole, self.built, [mutant.file])
            with self.lock:
                self.free.append(tree)

    def try_in(self, tree, mutant, commands):
        with open(tree.path(mutant.file), encoding="utf-8") as file:
            text = mutant.applied(file.read())
        with open(tree.path(mutant.file), "w", encoding="utf-8") as file:
            file.write(text)
        status, said, _ = tree.make(["build/attnc"])
        if status != 0:
            return "invalid", said[-2000:]
        tried = []
        for command in commands:
            seconds = self.without(command)
            if seconds is None:
                continue
            if command.goal:
                status, said, _ = tree.make(command.goal)
                if status != 0:
                    return "invalid", said[-2000:]
            status, said, _ = run(command.argv, tree.folder, LEAST_SECONDS + TIMES * seconds, command.bounded)
            if failed(status, said):
                if BROKEN.search(said) and mutant.file.startswith("compiler/emit/"):
                    return "invalid", said[-2000:]
                ending = "" if status is not None and status >= 0 else ", by a crash" if status else ", does not end"
                return "caught", command.text + ending
            tried.append(command.text)
        if not tried:
            return "impossible", "this machine cannot run " + ", ".join(command.text for command in commands)
        return "survived", ", ".join(tried)
