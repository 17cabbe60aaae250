#!/usr/bin/env python3
"""tests/python/run.py: packages of attnc python. They are built and imported, and compared with attnc run and attnc
generate on the same inputs; wrong arguments are exceptions; threads share a model. Speaks TAP."""
import importlib
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib.attnc import LONG, QUICK  # noqa: E402
from lib.tap import Report, run_tests  # noqa: E402
from lib.turns import in_turn  # noqa: E402
from support import Packages, suitable  # noqa: E402

# One for each kind of input and result, each in the turns of some commits.
SPECS = ["seq2seq_export", "features", "patches_grid", "sound_to_tokens", "alone_cross", "mask_given_cross", "prefix",
         "classifier_no_bias", "patches_to_tokens", "alone_given", "exact_unrolled", "dense_last", "export_some",
         "features_to_tokens", "features_to_features", "unrolled_kinds", "alone_self", "decoder_only", "output_none"]

# The functions of other files, each of which is a test.
TESTS = {"states": ["decoder", "options", "encoder_decoder", "starts_again", "prefixed", "rows", "rows_of_both",
                    "together", "other_sources", "integers", "numbers"],
         "carried": ["like_attnc", "like_items", "with_history", "refused"],
         "errors": ["arguments", "sequences", "loads", "without_weights", "leaves_nothing", "drawn", "names"],
         "objects": ["tells", "closes", "pickles"],
         "texts": ["reads", "many", "prompted", "encodes", "refuses", "sentences"],
         "writes": ["writes", "stops"],
         "sounds": ["spectrograms", "transcribes", "falls_back", "deaf"],
         "install": ["wheel", "small", "one_step", "sealed", "lacks", "compiler", "example"] + ["sanitized"] * LONG}


class Python:
    def __init__(self, scratch):
        self.packages = Packages(scratch)

    def compare(self, name, **more):
        import forward
        forward.compare(self.packages, name, **more)


def add(name, test):
    setattr(Python, "test_" + name, test)


def chosen(names):
    """The tests of these names, or all; a comparison of each spec in its turn."""
    found = {name: lambda self, name=name: self.compare(name) for name in [*SPECS, *names]}
    others = {name: lambda self, name=name, file=file: getattr(importlib.import_module(file), name)(self.packages)
              for file, tests in TESTS.items() for name in tests}
    in_this = {name: found[name] for name in in_turn(SPECS, 9 if QUICK else 6)}
    wanted = {name: {**found, **others}[name] for name in names} if names else {**in_this, **others}
    for name, test in wanted.items():
        add(name, test)


def main():
    python, missing = suitable()
    if not python:
        report = Report("python")
        report.result("packages", skip="missing: " + ", ".join(missing))
        return report.finish()
    if python != sys.executable and "ATTNC_AGAIN" not in os.environ:
        os.execve(python, [python, os.path.abspath(__file__), *sys.argv[1:]], {**os.environ, "ATTNC_AGAIN": "1"})
    chosen(sys.argv[1:])
    return run_tests("python", Python)


if __name__ == "__main__":
    sys.exit(main())
