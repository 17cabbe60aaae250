#!/usr/bin/env python3
"""The passes by what `attnc --dump=plan` prints of every spec: which steps there are (steps.txt, of some), and that
what lives at the same time has places of its own. What build made of some, as `attnc --dump=graph` prints it
(graphs.txt), and of all: every kind of op, each made before it is read. The emitted text: what its reader counts on.
Speaks TAP.

    tests/plan/run.py --renew     writes steps.txt and graphs.txt anew"""
import collections
import glob
import itertools
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.dirname(HERE))
from tap import run_tests  # noqa: E402

ATTNC = os.environ.get("ATTNC", os.path.join(ROOT, "build", "attnc"))
STEPS, GRAPHS = (os.path.join(HERE, name) for name in ("steps.txt", "graphs.txt"))
COUNTED = ["specs/%s.attn" % name for name in ("by_hand", "deit_small", "gemma2_2b", "minilm", "qwen3_0_6b")]
COUNTED += ["tests/differential/%s.attn" % name for name in (
    "cross_general", "embedding_factor", "features_scaled", "logits_odd", "norm_after", "norm_none", "parallel_shared",
    "patches_to_tokens", "seq2seq_odd", "seq2seq_shared", "sublayers", "unrolled_kinds", "longrope_both")]
COUNTED += ["tests/decode/ring.attn", "tests/decode/prefixed.attn"]
COUNTED += ["tests/differential/alone_%s.attn" % name for name in ("additive_values", "cross", "dot")]
SHOWN = ["specs/by_hand.attn", "tests/differential/single.attn", "tests/differential/unrolled_patches.attn"]
SHOWN += ["tests/differential/alone_%s.attn" % name for name in ("additive_values", "exact_keys", "given", "relative")]
EMITTED = ("specs/qwen3_0_6b.attn", "tests/calls/ids.attn", "tests/calls/both.attn", "tests/calls/whole.attn",
           "tests/decode/ring.attn", "tests/differential/exact.attn", "tests/codegen/single.attn")
PANEL = 16  # floats of a cache line, to which everything is aligned


def run(*command):
    return subprocess.run([ATTNC, *command], capture_output=True, text=True, timeout=120, cwd=ROOT, check=False)


def dump(spec, stage="plan"):
    """None where the spec cannot be emitted."""
    done = run("--dump=" + stage, spec)
    assert done.returncode in (0, 3), "%s: status %d: %s" % (spec, done.returncode, done.stderr)
    return done.stdout if done.returncode == 0 else None


def specs():
    for folder in ("specs", "tests/families", "tests/differential", "tests/decode", "tests/calls"):
        for spec in sorted(glob.glob(folder + "/*.attn", root_dir=ROOT)):
            yield spec


def steps_text():
    """Of each spec and plan how many steps of each kind and what they need; how many tensors; the first caches."""
    lines = []
    for spec in COUNTED:
        text = dump(spec)
        for plan in re.split(r"^(?=plan )", text, flags=re.M)[1:]:
            kinds = collections.Counter(re.findall(r"^  (?!buffer|packed|cache)(\w+) \S+ ", plan, re.M))
            words = " ".join("%s %d" % pair for pair in sorted(kinds.items()))
            sizes = re.match(r"plan .*: \d+ steps, (\d+ rows) a chunk, (\d+) floats of workspace, (\d+) a thread", plan)
            lines.append("%s %s: %s" % (spec, plan.split()[1], words))
            lines.append("    %s, workspace %s, scratch %s" % sizes.groups())
        packed = re.findall(r"^  packed .* at \d+, (\w+)$", text, re.M)
        floats = re.search(r"^weights of \w+: (\d+) floats$", text, re.M).group(1)
        lines.append("%s: %s floats, %d panels, %d rows" % (spec, floats, packed.count("panels"), packed.count("rows")))
        lines += ["    %s: %s" % found for found in re.findall(r"^  cache (\S+) of .* at \d+: (.*)$", text, re.M)[:4]]
    return "\n".join(lines) + "\n"


def graphs_text():
    return "".join("%s\n%s\n" % (spec, dump(spec, "graph")) for spec in SHOWN)


def expect_golden(path, text):
    with open(path, encoding="utf-8") as file:
        lines = itertools.zip_longest(text.splitlines(), file.read().splitlines())
    for found, wanted in lines:
        assert found == wanted, "found    %s\nexpected %s (run.py --renew)" % (found, wanted)


def apart(spec, what, places):
    """places: (name, offset, room, first, last): none that meet in time may meet in place."""
    for i, (name, at, room, first, last) in enumerate(places):
        assert at % PANEL == 0 and room > 0, "%s: %s %s at %d, of %d floats" % (spec, what, name, at, room)
        for other, other_at, other_room, other_first, other_last in places[:i]:
            together = first <= other_last and other_first <= last
            overlap = at < other_at + other_room and other_at < at + room
            assert not (together and overlap), "%s: %s %s lies over %s" % (spec, what, name, other)


BUFFER = re.compile(r"^  buffer (\S+) at (\d+), stride (\d+), room (\d+), steps (\d+)\.\.(\d+)$", re.M)
SIZE = r"\(\(size_t\)(\d+)u \+ \(size_t\)\(threads\) \* \(size_t\)(\d+)u\)"


class Plans:
    def __init__(self, folder):
        self.folder = folder
        self.texts = [(spec, text) for spec, text in ((spec, dump(spec)) for spec in specs()) if text]

    def test_steps(self):
        expect_golden(STEPS, steps_text())

    def test_graphs(self):
        expect_golden(GRAPHS, graphs_text())
        with open(os.path.join(ROOT, "compiler/ir/ops.def"), encoding="utf-8") as file:
            left = set(re.findall(r"^OP\((\w+),", file.read(), re.M))
        for spec, _ in self.texts:
            for graph in re.split(r"^(?=graph )", dump(spec, "graph"), flags=re.M)[1:]:
                made = set()
                for result, kind, read in re.findall(r"^  (%\d+) \S+ \[.*?\] = (\w+)(.*)$", graph, re.M):
                    late = [name for name in re.findall(r"%\d+", read) if name not in made]
                    assert not late and result not in made, "%s: %s reads %s" % (spec, result, late)
                    made.add(result)
                    left.discard(kind)
        assert not left, "ops that no spec has: %s" % left

    def test_workspace(self):
        count = 0
        for spec, text in self.texts:
            for plan in re.split(r"^(?=plan |weights of )", text, flags=re.M)[1:-1]:
                found = BUFFER.findall(plan)
                apart(spec, "the buffer", [(name, int(at), int(room), int(first), int(last))
                                           for name, at, _, room, first, last in found if int(room)])
                floats = int(re.search(r"(\d+) floats of workspace", plan).group(1))
                ends = [int(at) + int(room) for _, at, _, room, _, _ in found]
                assert max(ends, default=0) <= floats, "%s: too little room" % spec
                assert all(int(stride) % PANEL == 0 for _, _, stride, _, _, _ in found), "%s: a stride" % spec
                count += len(found)
        assert count > 1000, "%d buffers" % count

    def test_last_use(self):
        """A buffer lives as long as a step names it."""
        for spec, text in self.texts:
            for plan in re.split(r"^(?=plan |weights of )", text, flags=re.M)[1:-1]:
                steps = [line for line in plan.splitlines()[1:] if not line.startswith("  buffer ")]
                names = re.findall(r"^  buffer (\S+) at .* steps (\d+)\.\.(\d+)$", plan, re.M)
                for name, first, last in names:
                    if sum(other == name for other, _, _ in names) > 1:
                        continue
                    used = [i for i, line in enumerate(steps) if re.search(r"=%s(\+\d+)?( |$)" % re.escape(name), line)]
                    said = "%s: %s: steps %s, said %s to %s" % (spec, name, used, first, last)
                    assert used and (used[0], used[-1]) == (int(first), int(last)), said

    def test_weights(self):
        for spec, text in self.texts:
            floats = int(re.search(r"^weights of \w+: (\d+) floats$", text, re.M).group(1))
            at = [int(place) for place in re.findall(r"^  packed .* at (\d+), \w+$", text, re.M)]
            assert at == sorted(set(at)) and all(place % PANEL == 0 for place in at), "%s: %s" % (spec, at)
            assert not at or at[-1] + PANEL < floats, "%s: nothing behind the last tensor" % spec

    def test_longrope(self):
        """Angles of short sequences and of long ones stand in one table where the length is known, in two elsewhere."""
        spec = ("model m { d_model 8, vocab 5, encoder { seq %s, layers 1 { attention self { heads 1,"
                " position rope longrope factor 3 original 16 short 1 1 1 1 long 2 2 2 2 } } } }\n")
        path = os.path.join(self.folder, "m.attn")
        for seq, rows in (("= 48", 48), ("<= 48", 16 + 48), ("<= 16", 16), ("= 16", 16)):
            with open(path, "w", encoding="utf-8") as file:
                file.write(spec % seq)
            places = re.findall(r"^  packed (rope\.\w+)\S* at (\d+)", dump(path), re.M)
            assert [name for name, _ in places] == ["rope.cos", "rope.sin"], places
            assert int(places[1][1]) - int(places[0][1]) == 4 * rows, "%s: %s" % (seq, places)

    def test_caches(self):
        count = 0
        line = r"^  cache (\S+) of the (state|source) at (\d+): (\d+) heads, (\d+) (?:slots in panels|rows) of (\d+)"
        for spec, text in self.texts:
            found = re.findall(line, text, re.M)
            assert len(found) == len(re.findall("^  cache ", text, re.M)), "%s: a cache without a place" % spec
            for kind in ("state", "source"):
                apart(spec, "the cache", [(name, int(at), int(heads) * int(slots) * int(width), 0, 0)
                                          for name, of, at, heads, slots, width in found if of == kind])
            count += len(found)
        assert count > 100, "%d caches" % count

    # ------------------------------------------------------------ the emitted text

    def emitted(self, spec):
        done = run("compile", spec, "-o", self.folder)
        assert done.returncode == 0, done.stderr
        stem = os.path.join(self.folder, os.path.splitext(os.path.basename(spec))[0])
        for end in (".c", ".h"):
            with open(stem + end, encoding="utf-8") as file:
                yield file.read()

    def test_words(self):
        """A comment for each step and each field, each include once."""
        for spec in EMITTED:
            code, header = self.emitted(spec)
            steps = re.findall(r"^(.*)\n.*\nvoid \w+_step_(\w+)\(void \*with, int thread\) \{$", code, re.M)
            assert len(steps) > 5, "%s: %d steps" % (spec, len(steps))
            for comment, name in steps:
                assert re.fullmatch(r"/\* %s: \S.* \*/" % name, comment), "%s: %s: %s" % (spec, name, comment)
            assert not re.search(r"^ *run\.\w+ \+= .* \* 1;$", code, re.M), "%s: a product by 1" % spec
            alone = re.findall(r"^ *\w+_single_chunk\(run\);\n *(.*)$", code, re.M)
            assert bool(alone) == spec.endswith("single.attn") and set(alone) <= {"return;"}, "%s: %s" % (spec, alone)
            includes = re.findall(r"^#include .*$", code, re.M)
            assert len(includes) == len(set(includes)), "%s: %s" % (spec, includes)
            structs = re.findall(r"^typedef struct \w+_(?:input|output|rows|decoded) \{\n(.*?)^\}", header, re.M | re.S)
            assert structs, "%s: no struct" % spec
            for struct in structs:
                for line in struct.splitlines():
                    assert re.search(r"; +/\* \S", line), "%s: %s" % (spec, line)

    def test_narrow_machines(self):
        """Where a workspace of so many threads passes what 31 bits count, and only there, init looks."""
        for spec, wanted in (("specs/gemma2_2b.attn", True), ("tests/calls/ids.attn", False)):
            code, header = self.emitted(spec)
            sizes = re.findall(r"WORKSPACE_BYTES\(threads\) " + SIZE, header)
            bytes_, thread = max(tuple(map(int, pair)) for pair in sizes)
            assert (bytes_ + 4096 * thread > 2 ** 31 - 1) == wanted, "%s: %d and %d" % (spec, bytes_, thread)
            assert ("PTRDIFF_MAX - " in code) == wanted, spec


if __name__ == "__main__":
    if sys.argv[1:] == ["--renew"]:
        for path, text in ((STEPS, steps_text()), (GRAPHS, graphs_text())):
            with open(path, "w", encoding="utf-8") as golden:
                golden.write(text)
    else:
        sys.exit(run_tests("plan", Plans))
