"""For tests/*/run.py: TAP, either of methods test_NAME of one class, made of a scratch folder, or of results as they
come."""
import os
import subprocess
import sys
import tempfile
import threading


class Skip(Exception):
    """What a test raises where a tool that it needs is absent."""


def run_tests(group, tests):
    """Runs them in their order and prints TAP; the exit status."""
    good, names = True, [name for name in vars(tests) if name.startswith("test_")]
    with tempfile.TemporaryDirectory() as folder:
        instance = tests(folder)
        for name in names:
            try:
                getattr(instance, name)()
                print("ok %s/%s" % (group, name[5:]))
            except Skip as why:
                print("ok %s/%s # SKIP %s" % (group, name[5:], why))
            except (AssertionError, OSError, subprocess.TimeoutExpired) as why:
                good = False
                print("not ok %s/%s\n# %s" % (group, name[5:], str(why).replace("\n", "\n# ")))
    print("1..%d" % len(names))
    return 0 if good else 1


def commit():
    """The head's hash, or that of nothing without git: for tests of which each commit has its turn."""
    head = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False,
                          cwd=os.path.dirname(os.path.abspath(__file__)))
    return head.stdout.strip() or "0" * 40


def turn():
    """The same as a number."""
    return int(commit()[:8], 16)


class Report:
    """Prints results of a group as they come, from any thread, and counts them."""

    def __init__(self, group):
        self.group, self.lock, self.done, self.failed = group, threading.Lock(), 0, 0

    def result(self, name, problem=None, skip=None):
        """problem: None, or what is wrong, in words."""
        fine = problem is None
        with self.lock:
            self.done += 1
            self.failed += not fine
            print("%sok %s/%s%s" % ("" if fine else "not ", self.group, name, " # SKIP " + skip if skip else ""))
            for line in (problem or "").splitlines()[:30]:
                print("# " + line)
            sys.stdout.flush()

    def finish(self):
        """The plan; the exit status."""
        print("1..%d" % self.done)
        return 1 if self.failed else 0
