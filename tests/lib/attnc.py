"""The tree, how thorough a run of the tests is, and attnc and other programs as processes."""
import fcntl
import os
import shutil
import subprocess
import tempfile
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TESTS = os.path.join(ROOT, "tests")
ATTNC = os.environ.get("ATTNC") or os.path.join(ROOT, "build", "attnc")
FIXTURES = os.environ.get("ATTNC_FIXTURES", "")  # a folder of big fixtures, or nothing
QUICK = os.environ.get("ATTNC_QUICK") == "1"
LONG = os.environ.get("ATTNC_LONG") == "1" and not QUICK
COMPILERS = [cc for cc in ("clang", "gcc") if shutil.which(cc)]
UNOPTIMIZED = os.path.join(TESTS, "cc")  # a C compiler at -O0, for --cc and CC
NO_TARGET = 77  # the exit status of a test program whose target this machine lacks
CANNOT = 3  # attnc's exit status where this machine lacks a target
MOST_SECONDS = 3600 if LONG else 600
TIMED_OUT = 124

# Groups may start more threads than there are processors: threads wait for each other's commands.
processors = threading.BoundedSemaphore(os.cpu_count() or 1)


class Failed(AssertionError):
    """A command ended with another exit status than the test expects."""


def run(*command, status=None, cwd=ROOT, env=None, timeout=MOST_SECONDS, text=True, **more):
    """The CompletedProcess of a command in the tree's root, with its output as text, or as bytes without `text`.
    `env` is added to the environment; None takes a variable away. A command that does not end in `timeout` seconds has
    the status TIMED_OUT.
    With `status`, any other exit status raises Failed."""
    given = {} if "stdin" in more or "input" in more else {"stdin": subprocess.DEVNULL}
    decoded = {"text": True, "errors": "replace"} if text else {}
    merged = {name: value for name, value in {**os.environ, **(env or {})}.items() if value is not None}
    with processors:
        try:
            done = subprocess.run(command, cwd=cwd, capture_output=True, check=False, timeout=timeout,
                                  env=merged, **decoded, **given, **more)
        except subprocess.TimeoutExpired:
            why = "no end after %d s" % timeout
            done = subprocess.CompletedProcess(command, TIMED_OUT, *(("", why) if text else (b"", why.encode())))
    if status is not None and done.returncode != status:
        words = " ".join(os.path.basename(word) for word in command)[:300]
        raise Failed("%s: exit status %d, expected %d\n%s" % (words, done.returncode, status, said(done)[-3000:]))
    return done


def compile_once(folder):
    """From now on attnc compiles without optimization. Each library stays in the folder, for later calls with the same
    sources."""
    os.environ.update(CC=UNOPTIMIZED, ATTNC_KEPT=folder)


def run_compiled(report, attempts):
    """Calls attempts(), which reports the tests of a group, while attnc compiles as compile_once says. The exit status
    of the group."""
    with tempfile.TemporaryDirectory() as kept:
        compile_once(kept)
        attempts()
    return report.finish()


def said(done):
    """What a process printed, errors last."""
    parts = [part if isinstance(part, str) else part.decode(errors="replace") for part in (done.stdout, done.stderr)]
    return "".join(parts)


def attnc(*words, **more):
    """As run."""
    return run(ATTNC, *words, **more)


def lacks_target(done):
    """attnc's reason, where it refused because this machine lacks a target; else None."""
    return (done.stderr.strip().splitlines() or ["no reason given"])[-1] if done.returncode == CANNOT else None


def make(*words, env=None, **more):
    """Runs make in the tree, without the settings of a make that runs the tests, while no other group does so."""
    outer = {name: None for name in os.environ if name.startswith(("MAKE", "MFLAGS"))}
    with open(os.path.join(ROOT, "build", "tests.lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return run("make", "-s", *words, env={**outer, **(env or {})}, **more)
