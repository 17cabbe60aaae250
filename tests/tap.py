"""For tests/*/run.py whose tests are methods test_NAME of one class, made of a scratch folder."""
import subprocess
import tempfile


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
