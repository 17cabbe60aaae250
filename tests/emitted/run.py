#!/usr/bin/env python3
"""tests/emitted/run.py [--refresh]: what `attnc compile` writes, against hashes.txt.

A row is a spec and an unroll mode; a column is a target alone, or the default targets with drawn weights packed for
them (small specs only). A cell is the start of a SHA-256 of NAME.c, NAME.h and NAME.attnw, `refused` where the
generator cannot write the spec, `-` where nothing is tried. A refactoring leaves the list as it is; a commit that
means to change the emitted C renews the list by --refresh, and its message says why. Of each row, a third of the
columns has its turn with a commit, all with ATTNC_LONG=1. No line of any C is longer than 120 columns. Speaks TAP."""
import concurrent.futures
import hashlib
import os
import re
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from language.page import Page  # noqa: E402
from lib.attnc import CANNOT, attnc  # noqa: E402
from lib.tap import Report  # noqa: E402
from lib.turns import in_turn  # noqa: E402

LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hashes.txt")
COLUMNS = ["scalar", "sse2", "avx2", "avx512", "neon", "sve", "sve512", "rvv", "wasm", "default"]
UNROLL = ["auto", "loops", "full"]
COLUMN_LIMIT = 120


def language_specs(folder):
    """The examples of docs/language.md as files named by their models."""
    for body in Page("docs/language.md").examples():
        path = os.path.join(folder, re.search(r"^model (\w+)", body, re.M).group(1) + ".attn")
        with open(path, "w", encoding="utf-8") as file:
            file.write(body)
        yield path


def specs(folder):
    """(name in the list, path, small enough for weights) of each spec."""
    for group, small in (("specs", False), ("tests/differential", True), ("tests/codegen", True)):
        for name in sorted(os.listdir(group)):
            if name.endswith(".attn"):
                yield "%s/%s" % (group, name), os.path.join(group, name), small
    for path in language_specs(folder):
        yield "docs/language.md:" + os.path.basename(path)[:-5], path, False


def long_line(text):
    """The first line that has too many columns, or None."""
    return next((line for line in text.splitlines() if len(line) > COLUMN_LIMIT), None)


def digest(spec, unroll, target):
    """One cell of the list, and a line of the C that is too long, or None."""
    with tempfile.TemporaryDirectory() as out:
        how = ["--weights", "random:1"] if target == "default" else ["--target", target]
        done = attnc("compile", spec, "-o", out, "--unroll", unroll, *how)
        if done.returncode == CANNOT:
            return "refused", None
        if done.returncode:
            raise RuntimeError("%s --unroll %s --target %s: exit %d\n%s" % (spec, unroll, target, done.returncode,
                                                                            done.stderr))
        total, too_long = hashlib.sha256(), None
        for name in sorted(os.listdir(out)):
            with open(os.path.join(out, name), "rb") as file:
                content = file.read()
            total.update(content)
            if name.endswith((".c", ".h")):
                too_long = too_long or long_line(content.decode())
        return total.hexdigest()[:12], too_long


def row(name, path, small, unroll, columns):
    """The cells of one line by their columns, and a line of the C that is too long, or None."""
    cells = {target: digest(path, unroll, target) if small or target != "default" else ("-", None)
             for target in columns}
    return name, unroll, {target: cell for target, (cell, _) in cells.items()}, \
        next((line for _, line in cells.values() if line), None)


def third_in_turn(at):
    """The columns of the line of a number; the next line has another third."""
    return in_turn(COLUMNS[at % 3:] + COLUMNS[:at % 3], 3)


def written(columns_of):
    """The cells of all lines, from the compiler that stands in build/; columns_of: the columns of a line's number."""
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        named = [(*spec, unroll) for spec in specs(folder) for unroll in UNROLL]
        lines = [pool.submit(row, *line, columns_of(at)) for at, line in enumerate(named)]
        return [line.result() for line in lines]


def print_list(lines, file):
    print("# spec unroll " + " ".join(COLUMNS), file=file)
    for name, unroll, cells, _ in lines:
        print(name, unroll, *cells.values(), file=file)


def committed():
    with open(LIST, encoding="utf-8") as file:
        rows = [line.split() for line in file if not line.startswith("#")]
    return {(name, unroll): dict(zip(COLUMNS, cells)) for name, unroll, *cells in rows}


def main():
    if sys.argv[1:] == ["--refresh"]:
        lines = written(lambda _: COLUMNS)
        with open(LIST, "w", encoding="utf-8") as file:
            print_list(lines, file)
        return 0
    report, known = Report("emitted"), committed()
    for name, unroll, cells, too_long in written(third_in_turn):
        listed = known.pop((name, unroll), None)
        changed = [target for target, cell in cells.items() if listed and listed[target] != cell]
        problem = ("it is not in the list; `tests/emitted/run.py --refresh` adds it" if listed is None else
                   "other text for " + ", ".join(changed) if changed else
                   "a line of %d columns: %s" % (len(too_long), too_long) if too_long else None)
        report.result("%s_%s" % (name.replace(" ", "_"), unroll), problem)
    for name, unroll in known:
        report.result("%s_%s" % (name, unroll), "it is in the list alone")
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
