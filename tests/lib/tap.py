"""Results in TAP, the protocol that tests/run reads."""
import re
import sys
import tempfile
import threading
import traceback

MOST_LINES = 30  # of what is said about a failed test


class Skip(Exception):
    """A test raises this with the reason why this machine cannot run it."""


class Report:
    """Prints the results of a group as they come, from any thread, and counts them."""

    def __init__(self, group):
        self.group, self.lock, self.done, self.failed = group, threading.Lock(), 0, 0

    def result(self, name, problem=None, skip=None, note=None):
        """`problem` says in words what is wrong; None is a pass. True where the test passed."""
        fine = problem is None
        with self.lock:
            self.done += 1
            self.failed += not fine
            print("%sok %s/%s%s" % ("" if fine else "not ", self.group, name, " # SKIP " + skip if skip else ""))
            for line in [*(problem or "").splitlines()[:MOST_LINES], *(note or "").splitlines()]:
                print("# " + line)
            sys.stdout.flush()
        return fine

    def attempt(self, name, test, *arguments):
        """Calls a test, whose assertions and other exceptions are its failures, and Skip its reason to be skipped.
        True where it passed."""
        return self.guard(name, test, *arguments) and self.result(name)

    def guard(self, name, function, *arguments):
        """Calls a function that reports results of its own. An exception is a failure of `name`, and Skip its reason
        to be skipped. True where there was none."""
        try:
            function(*arguments)
            return True
        except Skip as why:
            self.result(name, skip=str(why))
        except AssertionError as why:
            self.result(name, str(why) or traceback.format_exc())
        except Exception:  # pylint: disable=broad-except
            self.result(name, traceback.format_exc())
        return False

    def program(self, prefix, printed):
        """Takes over the results that a test program printed as `ok NAME`, or `not ok NAME` and notes."""
        lines = printed.splitlines()
        for i, line in enumerate(lines):
            found = re.match(r"(ok|not ok) (.*)", line)
            if not found:
                continue
            notes = []
            for note in lines[i + 1:]:
                if not note.startswith("#"):
                    break
                notes.append(note[2:])
            passed = found[1] == "ok"
            self.result(prefix + found[2], None if passed else "\n".join(notes) or "no reason given")

    def finish(self):
        """Prints the plan; the exit status of the group."""
        print("1..%d" % self.done)
        return 1 if self.failed or not self.done else 0


def run_tests(group, tests):
    """Reports the methods test_NAME of a class and before them those that it inherits, in their order; `tests` is
    constructed with a scratch folder. The exit status of the group."""
    report = Report(group)
    with tempfile.TemporaryDirectory() as folder:
        instance = tests(folder)
        names = dict.fromkeys(name for own in reversed(tests.__mro__) for name in vars(own))
        for name in [name for name in names if name.startswith("test_")]:
            report.attempt(name[len("test_"):], getattr(instance, name))
    return report.finish()
