#!/usr/bin/env python3
"""emitted_diff.py BASE [SPEC…]: compares the C that the attnc of commit BASE emits with the C of the attnc in build/,
for each spec, way to unroll, precision and target: byte by byte without comments and, where the C differs, the bits of
the outputs on the targets of this machine. SPEC is a part of a spec's name; without one, all are compared. It prints
the differences, and ends with status 1 if any C differs. `make emitted-diff BASE=COMMIT [SPECS='…']` calls it."""
import concurrent.futures
import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "tests"))
from language.page import Page  # noqa: E402
from lib import targets  # noqa: E402
from lib.attnc import ATTNC, CANNOT, UNOPTIMIZED, make, run  # noqa: E402

UNROLL = ("auto", "loops", "full")
PRECISIONS = ("bf16", "int8", "int4", "weights=f16,cache=int8", "weights=int8,activations=int8:smooth:2")
SAME, COMMENTS, SAME_BITS, OTHER_BITS, OTHER = "same", "comments", "other C, same bits", "other bits", "other C"
SHOWN = 12  # lines of a difference
# A literal, which is kept, or a comment.
TOKENS = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/', re.S)
# The hash of a header with its comments, in the header and in the C.
HEADER_HASH = re.compile(r"(_HEADER (?:!= )?)0x\w+")


def build(commit, folder):
    """The attnc of a commit, built below the folder once; the reason where that fails."""
    whole = run("git", "rev-parse", "--verify", commit + "^{commit}")
    if whole.returncode:
        return None, "%s is no commit" % commit
    place = os.path.join(folder, whole.stdout.strip()[:16])
    attnc = os.path.join(place, "build", "attnc")
    if os.path.exists(attnc):
        return attnc, None
    os.makedirs(place, exist_ok=True)
    archive = subprocess.run(["git", "archive", whole.stdout.strip()], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    subprocess.run(["tar", "x", "-C", place], input=archive.stdout, check=True)
    made = make("-j%d" % (os.cpu_count() or 1), "build/attnc", cwd=place)
    if made.returncode:
        shutil.rmtree(place)
        return None, "%s does not build:\n%s" % (commit, made.stderr[-2000:])
    return attnc, None


def without_comments(text):
    """The text without comments, the hash of the header, empty lines, and spaces at the ends of lines."""
    text = HEADER_HASH.sub(r"\1", text)
    text = TOKENS.sub(lambda token: token[0] if token[0][0] in "\"'" else " ", text)
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip()) + "\n"


@dataclass
class Way:
    """One call of compile, for several targets at once."""
    name: str  # of the spec
    path: str
    unroll: str
    precision: str
    targets: list
    weights: bool = False  # random ones, packed

    def __str__(self):
        how = [self.unroll, self.precision] + (["weights"] if self.weights else [])
        return "%s (%s; %s)" % (self.name, ", ".join(word for word in how if word), ",".join(self.targets))

    def options(self):
        return ["--unroll", self.unroll, *(["--precision", self.precision] if self.precision else []),
                *(["--weights", "random:1"] if self.weights else []), "--target", ",".join(self.targets)]

    def each(self):
        """The same, target by target."""
        return [Way(self.name, self.path, self.unroll, self.precision, [one], self.weights) for one in self.targets]


@dataclass
class Verdict:
    way: Way
    word: str
    shown: list = field(default_factory=list)


def written(attnc, way):
    """{name: content} of the files that compile writes, as text where they are C, and what it says; no files where it
    refuses the spec, and None in place of them where it ends as no command should."""
    with tempfile.TemporaryDirectory() as folder:
        done = run(attnc, "compile", way.path, "-o", folder, *way.options())
        if done.returncode not in (0, 1, CANNOT):
            return None, "status %d: %s" % (done.returncode, done.stderr)
        files = {}
        for name in sorted(os.listdir(folder)) if done.returncode == 0 else ():
            with open(os.path.join(folder, name), "rb") as file:
                content = file.read()
            files[name] = content.decode() if name.endswith((".c", ".h", ".S")) else content
        return files, done.stderr.replace(folder, "")


class Comparison:
    def __init__(self, base, head=ATTNC):
        self.attncs = (base, head)

    def bits(self, way):
        """Whether check computes the same bits with both; None where it cannot."""
        options = ["--small", "--bits", "--threads", "1", "--target", way.targets[0], "--cc", UNOPTIMIZED,
                   *(["--precision", way.precision] if way.precision else [])]
        found = [re.findall(r"^bits \w+ (\w+)$", run(attnc, "check", way.path, *options).stdout, re.M)
                 for attnc in self.attncs]
        return found[0] == found[1] if found[0] or found[1] else None

    def judge(self, way):
        """Verdicts of a way, or of its targets where these cannot be had at once."""
        (old, reason), (new, other) = (written(attnc, way) for attnc in self.attncs)
        if old is None or new is None:
            return [Verdict(way, OTHER, [reason if old is None else other])]
        if len(way.targets) > 1 and (old != new or not old):
            return [verdict for one in way.each() for verdict in self.judge(one)]
        if old == new:
            return [Verdict(way, SAME if old or reason == other else OTHER, [] if old else [reason, other])]
        texts = [{name: without_comments(content) if isinstance(content, str) else content
                  for name, content in files.items()} for files in (old, new)]
        if texts[0] == texts[1]:
            return [Verdict(way, COMMENTS)]
        same = self.bits(way) if way.targets[0] in targets.here() else None
        word = {True: SAME_BITS, False: OTHER_BITS, None: OTHER}[same]
        return [Verdict(way, word, difference(*texts) or [reason, other])]


def difference(old, new):
    """The first lines that differ."""
    lines = []
    for name in sorted(set(old) | set(new)):
        sides = [files.get(name, "") for files in (old, new)]
        if sides[0] == sides[1]:
            continue
        if not all(isinstance(side, str) for side in sides):
            lines.append("%s: other bytes" % name)
            continue
        lines += list(difflib.unified_diff(*(side.splitlines() for side in sides), name, name, n=1, lineterm=""))
    return lines[:SHOWN]


def specs(folder):
    """(name, path, whether it is small enough for weights) of each spec; the examples of docs/language.md are written
    into the folder."""
    for group, small in (("specs", False), ("tests/differential", True), ("tests/codegen", True)):
        for name in sorted(os.listdir(os.path.join(ROOT, group))):
            if name.endswith(".attn"):
                yield "%s/%s" % (group, name), os.path.join(ROOT, group, name), small
    for body in Page("docs/language.md").examples():
        name = re.search(r"^model (\w+)", body, re.M).group(1)
        path = os.path.join(folder, name + ".attn")
        with open(path, "w", encoding="utf-8") as file:
            file.write(body)
        yield "docs/language.md:" + name, path, False


def ways(found):
    """Each spec in each way: all targets together but those of microcontrollers, which have C of their own."""
    table = targets.listed()
    whole = [name for name in table if "small" not in targets.table(name)]
    for name, path, small in found:
        for unroll in UNROLL:
            yield Way(name, path, unroll, "", whole)
        yield from (Way(name, path, "auto", precision, whole) for precision in PRECISIONS)
        yield from (Way(name, path, "auto", "", [one]) for one in table if one not in whole)
        if small:
            yield Way(name, path, "auto", "", targets.here(on_request=False), weights=True)


def compare(base, chosen, head=ATTNC):
    """All verdicts, in the order of the ways."""
    comparison = Comparison(base, head)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for verdicts in pool.map(comparison.judge, chosen):
            yield from verdicts


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: emitted_diff.py BASE [SPEC…]")
    words = sys.argv[2:]
    base, reason = build(sys.argv[1], os.path.join(ROOT, "build", "emitted"))
    if not base:
        sys.exit(reason)
    counts = {}
    with tempfile.TemporaryDirectory() as folder:
        found = [spec for spec in specs(folder) if not words or any(word in spec[0] for word in words)]
        for verdict in compare(base, ways(found)):
            counts[verdict.word] = counts.get(verdict.word, 0) + 1
            if verdict.word not in (SAME, COMMENTS):
                print("%s: %s" % (verdict.way, verdict.word), *verdict.shown, sep="\n    ", flush=True)
    print(", ".join("%d %s" % (count, word) for word, count in sorted(counts.items())))
    return 1 if set(counts) - {SAME, COMMENTS} or not counts else 0


if __name__ == "__main__":
    sys.exit(main())
