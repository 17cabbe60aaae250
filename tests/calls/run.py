#!/usr/bin/env python3
"""What `forward` of emitted C refuses, each before the first write, under sanitizers: main.c, once for each spec beside
it. (tests/decode does the same for states.) Speaks TAP."""
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from lib.attnc import attnc, run, said  # noqa: E402
from lib.tap import Report  # noqa: E402

MODELS = ("ids", "both", "fixed", "whole")
FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined",
         "-fno-sanitize-recover=all"]


def build(folder):
    """The test program, of main.c and the emitted C of each model."""
    program = os.path.join(folder, "calls")
    for model in MODELS:
        attnc("compile", os.path.join(HERE, model + ".attn"), "-o", folder, "--target", "scalar", "--weights",
              "random:5", "--embed-weights", status=0)
    sources = [os.path.join(HERE, "main.c")] + [os.path.join(folder, model + ".c") for model in MODELS]
    run("clang", *FLAGS, "-I", folder, *sources, "-o", program, status=0)
    return program


def calls(report, folder):
    done = run(build(folder))
    report.program("", done.stdout.replace("ok calls/", "ok "))
    ended = done.returncode in (0, 1) and not done.stderr
    assert ended, "status %d\n%s" % (done.returncode, said(done))


def main():
    report = Report("calls")
    with tempfile.TemporaryDirectory() as folder:
        report.attempt("end", calls, report, folder)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
