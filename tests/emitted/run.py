#!/usr/bin/env python3
"""text/NAME: the C of six small specs is the text beside them, and `run.py --refresh` writes it anew. columns/NAME: no
line of emitted C is longer than 120 columns. judge/…: scripts/emitted_diff.py compares this tree with the newest commit
that builds, and sees planted changes, each for what it is. Speaks TAP.

The first line of a spec in text/ holds the options of `attnc compile`."""
import concurrent.futures
import glob
import os
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from lib.attnc import ATTNC, QUICK, ROOT, attnc, make, run  # noqa: E402
from lib.tap import Report, Skip  # noqa: E402
from lib.turns import in_turn  # noqa: E402

sys.path.insert(0, os.path.join(ROOT, "scripts"))
import emitted_diff as judge  # noqa: E402

COLUMN_LIMIT = 120
REPORT = Report("emitted")
# A template, a text of it, the text that takes its place, and what the judge must say of the C of a layer norm.
PLANTED = {
    "comment": ("norm.c", "/* ${comment}: one row */", "/* ${comment}: another row */", judge.COMMENTS),
    "comment_of_header": ("end.h", "/* hash of this header,", "/* the hash of this header,", judge.COMMENTS),
    "statement": ("norm.c", "float *to = target + ${g * D};", "float *to = target + ${g * D};\n        (void)to;",
                  judge.SAME_BITS),
    "number": ("norm.c", "total, ${v.set1(${inverse_d})})", "total, ${v.set1(2 * ${inverse_d})})", judge.OTHER_BITS),
}
OF_PLANTED = "tests/codegen/small.attn"  # it has layer norms


def compiled(spec, folder):
    with open(spec, encoding="utf-8") as file:
        options = file.readline().removeprefix("# ").split()
    attnc("compile", spec, "-o", folder, *options, status=0)
    with open(os.path.join(folder, os.path.basename(spec)[:-5] + ".c"), encoding="utf-8") as file:
        return file.read()


def texts(refresh):
    for spec in sorted(glob.glob(os.path.join(HERE, "text", "*.attn"))):
        with tempfile.TemporaryDirectory() as folder:
            found = compiled(spec, folder)
        path = spec[:-5] + ".txt"
        if refresh:
            with open(path, "w", encoding="utf-8") as file:
                file.write(found)
            continue
        with open(path, encoding="utf-8") as file:
            lines = judge.difference({"it": file.read()}, {"it": found})
        REPORT.result("text/" + os.path.basename(spec)[:-5], "\n".join(lines) or None)


def columns():
    """Of the specs of this commit's turn, with all targets in one file where that can be."""
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(judge.ways(in_turn(list(judge.specs(folder)), 16)))
        for way, lines in zip(found, pool.map(too_long, found)):
            if lines:
                REPORT.result("columns/%s" % way, lines[0])
        REPORT.result("columns", None if found else "no spec")


def too_long(way):
    """The lines of a way's C that have too many columns; of each target's C where the targets cannot be had at once."""
    files, reason = judge.written(ATTNC, way)
    assert files is not None, reason
    if not files and len(way.targets) > 1:
        return [line for one in way.each() for line in too_long(one)]
    return ["%d columns: %s" % (len(line), line) for text in files.values() if isinstance(text, str)
            for line in text.splitlines() if len(line) > COLUMN_LIMIT]


def newest(folder):
    """The attnc of the newest commit that builds."""
    reason = "no commit"
    for commit in ("HEAD", "HEAD~1", "HEAD~2"):
        base, reason = judge.build(commit, folder)
        if base:
            return base
    raise Skip(reason.splitlines()[0])


def this_tree(base):
    """What is committed emits the same C as its own commit; what is not may emit another."""
    with tempfile.TemporaryDirectory() as folder:
        found = in_turn(list(judge.specs(folder)), 80)
        verdicts = list(judge.compare(base, judge.ways(found)))
    changed = run("git", "diff", "--quiet", "HEAD", "--", "compiler").returncode
    bad = ["%s: %s" % (v.way, v.word) for v in verdicts if v.word != judge.SAME]
    assert verdicts and (changed or not bad), "\n".join(bad)


def planted(base, name):
    """The tree of the commit with one change, built where it stands, so that only the templates are compiled again."""
    template, old, new, wanted = PLANTED[name]
    place = os.path.dirname(os.path.dirname(base))
    copy = place + "." + name
    shutil.copytree(place, copy, symlinks=True)
    path = os.path.join(copy, "compiler/emit/templates", template + ".tmpl")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert old in text, "the template has no text `%s`" % old
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace(old, new, 1))
    make("-C", copy, "build/attnc", status=0)
    ways = [judge.Way("small", os.path.join(ROOT, OF_PLANTED), "auto", "", ["scalar"])]
    words = [verdict.word for verdict in judge.compare(base, ways, os.path.join(copy, "build", "attnc"))]
    assert words == [wanted], words


def judging():
    with tempfile.TemporaryDirectory() as folder:
        base = newest(folder)
        REPORT.attempt("judge/this_tree", this_tree, base)
        for name in PLANTED:
            REPORT.attempt("judge/" + name, planted, base, name)


def main():
    if sys.argv[1:] == ["--refresh"]:
        return texts(True)
    texts(False)
    columns()
    if not QUICK:
        REPORT.guard("judge", judging)
    return REPORT.finish()


if __name__ == "__main__":
    sys.exit(main())
