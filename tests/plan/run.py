#!/usr/bin/env python3
"""The passes by what `attnc --dump=plan` prints of every spec: which steps there are (steps.txt, of some), all that it
says of a few (plans.txt), and that what lives at the same time has places of its own. What build made of some, as
`attnc --dump=graph` prints it (graphs.txt), and of all, as they are rewritten: every kind of op, each made before it
is read. The emitted text: what its reader counts on. Speaks TAP.

    tests/plan/run.py --renew     writes steps.txt, plans.txt and graphs.txt anew"""
import collections
import glob
import itertools
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from lib.attnc import ROOT, attnc  # noqa: E402
from lib.tap import run_tests  # noqa: E402

STEPS, PLANS, GRAPHS = (os.path.join(HERE, name) for name in ("steps.txt", "plans.txt", "graphs.txt"))
COUNTED = ["specs/%s.attn" % name for name in ("by_hand", "deit_small", "gemma2_2b", "minilm", "qwen3_0_6b")]
COUNTED += ["tests/differential/%s.attn" % name for name in (
    "cross_general", "embedding_factor", "features_scaled", "logits_odd", "norm_after", "norm_none", "parallel_shared",
    "patches_to_tokens", "seq2seq_odd", "seq2seq_shared", "sublayers", "unrolled_kinds", "longrope_both")]
COUNTED += ["tests/decode/ring.attn", "tests/decode/prefixed.attn"]
COUNTED += ["tests/differential/alone_%s.attn" % name for name in ("additive_values", "cross", "dot")]
PLANNED = ["tests/differential/%s.attn" % name for name in ("alone_dot", "patches", "patches_bare")]
SCRATCH = re.compile(r"^schedule (\w+) of .*, (\d+) bytes of scratch a thread$", re.M)
SHOWN = ["specs/by_hand.attn", "tests/differential/single.attn", "tests/differential/unrolled_patches.attn"]
SHOWN += ["tests/differential/alone_%s.attn" % name for name in ("additive_values", "exact_keys", "given", "relative")]
EMITTED = ("specs/minilm.attn", "specs/qwen3_0_6b.attn", "tests/calls/ids.attn", "tests/calls/both.attn",
           "tests/calls/whole.attn", "tests/decode/ring.attn", "tests/differential/exact.attn",
           "tests/codegen/single.attn")
TILES = ["tests/differential/%s_tiles.attn" % name for name in ("int8", "int4", "bf16")]
SHARED = ("specs/minilm.attn", "specs/tinyllama.attn")  # among ranks
PANEL = 16  # columns of a panel
ALIGNMENT = 64  # bytes of a cache line, to which everything is aligned


def dump(spec, stage="plan", *more):
    """None where the spec cannot be emitted."""
    done = attnc("--dump=" + stage, spec, *more)
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
        text, needed = dump(spec), {}
        for name, bytes_ in SCRATCH.findall(dump(spec, "schedule")):
            needed[name] = max(needed.get(name, 0), int(bytes_))
        for plan in re.split(r"^(?=plan )", text, flags=re.M)[1:]:
            kinds = collections.Counter(re.findall(r"^  (?!buffer|packed|cache)(\w+) \S+ ", plan, re.M))
            words = " ".join("%s %d" % pair for pair in sorted(kinds.items()))
            sizes = re.match(r"plan .*: \d+ steps?, (\d+ rows?) a chunk, (\d+) bytes? of workspace$", plan, re.M)
            lines.append("%s %s: %s" % (spec, plan.split()[1], words))
            lines.append("    %s, workspace %s, scratch %d" % (*sizes.groups(), needed[plan.split()[1]]))
        packed = re.findall(r"^  packed .* at \d+, (\w+)$", text, re.M)
        size = re.search(r"^weights of \w+: (\d+) bytes$", text, re.M).group(1)
        lines.append("%s: %s bytes, %d panels, %d rows" % (spec, size, packed.count("panels"), packed.count("rows")))
        lines += ["    %s: %s" % found for found in re.findall(r"^  cache (\S+) of .* at \d+: (.*)$", text, re.M)[:4]]
    return "\n".join(lines) + "\n"


def dumps_text(specs_shown, stage):
    return "".join("%s\n%s\n" % (spec, dump(spec, stage)) for spec in specs_shown)


def golden_texts():
    return ((STEPS, steps_text()), (PLANS, dumps_text(PLANNED, "plan")), (GRAPHS, dumps_text(SHOWN, "graph")))


def expect_golden(path, text):
    with open(path, encoding="utf-8") as file:
        lines = itertools.zip_longest(text.splitlines(), file.read().splitlines())
    for found, wanted in lines:
        assert found == wanted, "found    %s\nexpected %s (run.py --renew)" % (found, wanted)


def apart(spec, what, places):
    """places: (name, offset, room, first, last): none that meet in time may meet in place."""
    for i, (name, at, room, first, last) in enumerate(places):
        assert at % ALIGNMENT == 0 and room > 0, "%s: %s %s at %d, of %d bytes" % (spec, what, name, at, room)
        for other, other_at, other_room, other_first, other_last in places[:i]:
            together = first <= other_last and other_first <= last
            overlap = at < other_at + other_room and other_at < at + room
            assert not (together and overlap), "%s: %s %s lies over %s" % (spec, what, name, other)


BUFFER = re.compile(r"^  buffer (\S+) at (\d+), stride (\d+), (\d+) bytes, steps (\d+)\.\.(\d+)$", re.M)
SIZE = r"\(\w+_CAST\(size_t, (\d+)u\) \+ (?:\\\s+)?\w+_CAST\(size_t, threads\) \* \w+_CAST\(size_t, (\d+)u\)\)"


class Plans:
    def __init__(self, folder):
        self.folder = folder
        self.texts = [(spec, text) for spec, text in ((spec, dump(spec)) for spec in specs()) if text]

    def test_steps(self):
        expect_golden(STEPS, steps_text())

    def test_plans(self):
        expect_golden(PLANS, dumps_text(PLANNED, "plan"))

    def test_graphs(self):
        expect_golden(GRAPHS, dumps_text(SHOWN, "graph"))
        with open(os.path.join(ROOT, "compiler/ir/ops.def"), encoding="utf-8") as file:
            left = set(re.findall(r"^(?:OP|MAP)\((\w+),", file.read(), re.M))
        for spec, more in [*((spec, ()) for spec, _ in self.texts), *((spec, ("--ranks", "3")) for spec in SHARED)]:
            for graph in re.split(r"^(?=graph )", dump(spec, "rewrite", *more), flags=re.M)[1:]:
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
                size = int(re.search(r"(\d+) bytes of workspace", plan).group(1))
                ends = [int(at) + int(room) for _, at, _, room, _, _ in found]
                assert max(ends, default=0) <= size, "%s: too little room" % spec
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
            size = int(re.search(r"^weights of \w+: (\d+) bytes$", text, re.M).group(1))
            at = [int(place) for place in re.findall(r"^  packed .* at (\d+), \w+$", text, re.M)]
            assert at == sorted(set(at)) and all(place % ALIGNMENT == 0 for place in at), "%s: %s" % (spec, at)
            assert not at or at[-1] + ALIGNMENT < size, "%s: nothing behind the last tensor" % spec

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
            assert int(places[1][1]) - int(places[0][1]) == 4 * 4 * rows, "%s: %s" % (seq, places)

    def test_caches(self):
        count, sizes = 0, {"": 4, "BF16": 2, "F16": 2, "I8": 1, "I32": 4, "I64": 8}
        more = {"I8": 4, "I32": 8 / PANEL}  # bytes for each slot: a scale, a part of a panel's range
        line = r"^  cache (\S+) of the (state|source) at (\d+): (\d+) heads?, (\d+) (?:slots? in panels|rows?)" \
               r" of (\d+)(?:, a ring)?(?: of (\w+))?$"
        for spec, text in self.texts:
            found = re.findall(line, text, re.M)
            assert len(found) == len(re.findall("^  cache ", text, re.M)), "%s: a cache without a place" % spec
            for kind in ("state", "source"):
                apart(spec, "the cache", [
                    (name, int(at), int(int(heads) * int(slots) * (int(width) * sizes[dtype] + more.get(dtype, 0))),
                     0, 0) for name, of, at, heads, slots, width, dtype in found if of == kind])
            count += len(found)
        assert count > 100, "%d caches" % count

    def test_default_targets(self):
        """A schedule is that of the targets that `attnc compile` takes: others for rows of integers than for floats."""
        for spec, wanted in (("int8_rows", {"scalar", "avx2", "avxvnni", "avx512", "avx512vnni", "amx"}),
                             ("norm_post", {"scalar", "avx2", "avx512"})):
            schedule = dump("tests/differential/%s.attn" % spec, "schedule")
            assert set(re.findall(r"^schedule \S+ of \S+ for (\w+):", schedule, re.M)) == wanted, (spec, schedule[:200])

    def test_kernels(self):
        """Every kernel of kernels.def is in some schedule, in loops and unrolled as far as it has both."""
        with open(os.path.join(ROOT, "compiler/lower/kernels.def"), encoding="utf-8") as file:
            names = re.findall(r"^KERNEL\((\w+),", file.read(), re.M)
        only = {"attention": {"loops"}, "attention_tiles": {"loops"}, "gemm_tiles": {"loops"},
                "gemm_tiles_grouped": {"loops"}, "store": {"loops"}, "round": {"loops"}, "experts": {"loops"},
                "store_integers": {"loops"}, "heads": {"loops"}, "gemm_small": {"loops"},
                "exchange": {"loops"}, "assemble": {"loops"},
                "choose": {"loops"}, "sort": {"loops"}, "gather": {"loops"}, "combine": {"loops"},
                "attention_register_resident": {"unrolled"}, "attention_full": {"unrolled"}}
        found = {name: set() for name in names}
        schedules = [dump(spec, "schedule") for spec, _ in self.texts]
        for spec in TILES:
            schedules.append(attnc("--dump=schedule", spec, "--target", "amx", status=0).stdout)
        schedules += [dump(spec, "schedule", "--ranks", "3") for spec in SHARED]
        small = attnc("--dump=schedule", "tests/differential/int8_rows.attn", "--target", "cm3", status=0).stdout
        for schedule in [*schedules, small]:
            for part in re.split(r"^(?=schedule )", schedule, flags=re.M)[1:]:
                how = re.match(r"schedule \S+ of \S+ for \S+: (\w+)", part).group(1)
                for name in re.findall(r"^ +\w+: (\w+) on ", part, re.M):
                    found[name].add(how)
        assert len(names) > 8 and found == {name: only.get(name, {"loops", "unrolled"}) for name in names}, found

    # ------------------------------------------------------------ the emitted text

    def emitted(self, spec):
        done = attnc("compile", spec, "-o", self.folder)
        assert done.returncode == 0, done.stderr
        stem = os.path.join(self.folder, os.path.splitext(os.path.basename(spec))[0])
        for end in (".c", ".h"):
            with open(stem + end, encoding="utf-8") as file:
                yield file.read()

    def test_words(self):
        """A comment for each step of the file's first target and for each field, each include once."""
        for spec in EMITTED:
            code, header = self.emitted(spec)
            code = re.sub(r"\n \* ", " ", code)  # a long comment is one of several lines
            steps = re.findall(r"^(.*)\n.*\nvoid \w+_step_(\w+)\(const \w+ \*run,\s+int thread\) \{$", code, re.M)
            first = re.search(r"^/\* -+ target \w+ \*/\n(.*?)(?=^/\* -+ target |\Z)", code, re.M | re.S)
            within = re.findall(r"^void \w+_step_\w+\(const \w+ \*run,\s+int thread\) \{$", first[1], re.M)
            assert len(within) > 5, "%s: %d steps" % (spec, len(within))
            assert not any(comment for comment, _ in steps[len(within):]), "%s: another target has comments" % spec
            for comment, name in steps[:len(within)]:
                layer = re.search(r"layer\d+(?=_)", name)
                place = layer.group().replace("layer", "layer ") + ", " if layer else ""
                words = r"/\* (encoder |decoder )?%s[^:]+: \S.* \*/" % place
                assert re.fullmatch(words, comment), "%s: %s: %s" % (spec, name, comment)
            if spec == "specs/minilm.attn":
                wanted = "layer 3, self attention, query, key and value projection: [rows][384] x [384][1152] + bias"
                of_targets = [name for comment, name in steps if comment == "/* %s */" % wanted]
                assert of_targets == ["layer3_attention_query_key_value"], of_targets
            assert not re.search(r"^ *run\.\w+ \+= .* \* 1;$", code, re.M), "%s: a product by 1" % spec
            alone = re.findall(r"^ *\w+_single_chunk\(run\);\n *(.*)$", code, re.M)
            assert bool(alone) == spec.endswith("single.attn") and set(alone) <= {"return;"}, "%s: %s" % (spec, alone)
            includes = re.findall(r"^#include .*$", code, re.M)
            assert len(includes) == len(set(includes)), "%s: %s" % (spec, includes)
            structs = re.findall(r"^typedef struct \w+_(?:input|output|rows|decoded) \{\n(.*?)^\}", header, re.M | re.S)
            assert structs, "%s: no struct" % spec
            for struct in structs:
                whole = re.sub(r"\n +\* ", " ", struct)  # a long comment stands in front of its field
                for line in re.sub(r"^ +(/\*.*\*/)\n( +.*;)$", r"\2 \1", whole, flags=re.M).splitlines():
                    assert re.search(r"; +/\* \S", line), "%s: %s" % (spec, line)

    def places(self, spec):
        """Of each target, entry and step where its rows, weights and caches begin: [(space, element)], by --dump."""
        text, found = dump(spec), {}
        weights = {name: int(at) // 4 for name, at in re.findall(r"^  packed (\S+) at (\d+),", text, re.M)}
        caches = {name: int(at) // 4 for name, at in re.findall(r"^  cache (\S+) of .* at (\d+):", text, re.M)}
        buffers = {}
        for plan in re.split(r"^(?=plan )", text, flags=re.M)[1:]:
            rows = BUFFER.findall(plan)
            buffers[plan.split()[1]] = {name: int(at) // 4 for name, at, *_ in rows}
            assert len({name for name, *_ in rows}) == len(rows), "%s: two buffers of a name" % spec
        for part in re.split(r"^(?=schedule )", dump(spec, "schedule"), flags=re.M)[1:]:
            entry, target, loops = re.match(r"schedule (\w+) of \w+ for (\w+): (\w+)", part).groups()
            for step, arguments in re.findall(r"^  (\w+): \w+ on (.*)$", part, re.M) if loops == "loops" else []:
                of_step = found.setdefault((target, entry, step), [])
                for slot, column in re.findall(r"=([^\s+]+)(?:\+(\d+))?", arguments):
                    if slot in buffers[entry]:
                        of_step.append(("workspace", buffers[entry][slot] + int(column or 0)))
                    elif slot in weights or slot in caches:
                        space = "weights" if slot in weights else "cache"
                        of_step.append((space, (weights if space == "weights" else caches)[slot]))
        return found

    def test_offsets(self):
        """The steps of every target begin where the plan says, and say so by constants that the file has once."""
        for spec, entries in (("specs/minilm.attn", 1), ("specs/gemma2_2b.attn", 2), ("tests/decode/ring.attn", 2),
                              ("tests/differential/seq2seq_odd.attn", 3), ("tests/differential/logits_odd.attn", 2)):
            code, _ = self.emitted(spec)
            model = os.path.splitext(os.path.basename(spec))[0]
            lines = re.findall(r"^#define (%s_(?:(?:encode_|decode_)?x|w|cache)_\w+) (\d+)\b" % model, code, re.M)
            offsets = {name: int(at) for name, at in lines}
            assert len(offsets) == len(lines) > 20, "%s: %d constants, %d names" % (spec, len(lines), len(offsets))
            assert "gemma" not in spec or max(offsets.values()) > 2 ** 31, "%s: no large offset" % spec
            assert not re.search(r"run->(?:weights|workspace) \+ \d", code), "%s: a bare number" % spec
            wanted = self.places(spec)
            found, used = set(), set()
            step = (r"^void %s_([a-z0-9]+)_(encode_|decode_)?step_(\w+)\(const \w+ \*run,\s+int thread\) "
                    r"\{\n(.*?)^\}" % model)
            argument = r"(run->weights \+|run->workspace \+|,) (%s_\w+)(?<!_maps)\b(?: \+ (\d+))?" % model
            for target, entry, name, body in re.findall(step, code, re.M | re.S):
                begins = []
                body = " ".join(body.replace("%s_next(run," % model, "run->weights +").split())
                for of, constant, column in re.findall(argument, body):
                    assert constant in offsets, "%s: %s is no constant" % (name, constant)
                    used.add(constant)
                    space = "workspace" if "workspace" in of else "cache" if of == "," else "weights"
                    begins.append((space, offsets[constant] + int(column or 0)))
                key = (target, entry[:-1] or "forward", name)
                assert begins == wanted[key], "%s %s: %s, not %s" % (spec, key, begins, wanted[key])
                found.add(key)
            assert found == set(wanted) and len({target for target, _, _ in found}) > 1, "%s: steps are missing" % spec
            assert len({entry for _, entry, _ in found}) == entries and used == set(offsets), set(offsets) - used

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
        for path, text in golden_texts():
            with open(path, "w", encoding="utf-8") as golden:
                golden.write(text)
    else:
        sys.exit(run_tests("plan", Plans))
