#!/usr/bin/env python3
"""What `forward` of emitted C refuses, each before the first write, under sanitizers: main.c, once for each spec beside
it. (tests/decode does the same for states.) Speaks TAP."""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
ATTNC = os.environ.get("ATTNC", os.path.join(ROOT, "build", "attnc"))
MODELS = ("ids", "both", "fixed", "whole")
FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined",
         "-fno-sanitize-recover=all"]


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


def problem(folder):
    """What stops the tests from being run, or None; they print their own results."""
    for model in MODELS:
        spec = os.path.join(HERE, model + ".attn")
        options = ["--target", "scalar", "--weights", "random:5", "--embed-weights"]
        done = run(ATTNC, "compile", spec, "-o", folder, *options)
        if done.returncode:
            return done.stderr
    sources = [os.path.join(HERE, "main.c")] + [os.path.join(folder, model + ".c") for model in MODELS]
    done = run("clang", *FLAGS, "-I", folder, *sources, "-o", os.path.join(folder, "calls"))
    if done.returncode:
        return done.stderr
    done = run(os.path.join(folder, "calls"))
    print(done.stdout, end="")
    return "status %d\n%s" % (done.returncode, done.stderr) if done.returncode not in (0, 1) or done.stderr else None


def main():
    with tempfile.TemporaryDirectory() as folder:
        why = problem(folder)
    print("%sok calls/end" % ("not " if why else ""))
    for line in (why or "").splitlines()[:20]:
        print("# " + line)


if __name__ == "__main__":
    sys.exit(main())
