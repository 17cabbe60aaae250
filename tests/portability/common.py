"""What the tests of this folder share."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from lib.attnc import said  # noqa: E402
from lib.tap import Report  # noqa: E402

STRICT = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-pedantic"]

report = Report("portability")
result = report.result


def output(done):
    return f"{said(done)}exit {done.returncode}"


def write_script(path, text):
    """A program for --cc, which takes one word."""
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n" + text)
    os.chmod(path, 0o755)
    return path
