"""What the tests of this folder share."""

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "../.."))
sys.path.insert(0, os.path.dirname(HERE))
from tap import turn  # noqa: E402, F401

ATTNC = os.path.join(ROOT, "build/attnc")
QUICK = os.environ.get("ATTNC_QUICK") == "1"
LONG = os.environ.get("ATTNC_LONG") == "1" and not QUICK
STRICT = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-pedantic"]
MOST_SECONDS = 600


def run(command, **more):
    more = {"cwd": ROOT} | more | {"capture_output": True, "text": True, "timeout": MOST_SECONDS}
    try:
        return subprocess.run(command, check=False, **more)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", f"it hangs: no end after {MOST_SECONDS} s\n")


def result(name, problem=None, skip=None):
    print(("not ok " if problem else "ok ") + "portability/" + name + (" # SKIP " + skip if skip else ""))
    for line in (problem or "").splitlines()[-20:]:
        print("# " + line)
    sys.stdout.flush()
    return not problem


def output(done):
    return f"{done.stdout}{done.stderr}exit {done.returncode}"


def write_script(path, text):
    """A program for --cc, which takes one word."""
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n" + text)
    os.chmod(path, 0o755)
    return path
