"""Part of run.py: no kernel leaves the scratch that its call states. In the emitted C each step is given scratch whose
last thread's part ends with the workspace, where `attnc check` has a page that may not be touched; steps that state no
scratch get none. And the parts are no larger than they need to be: a cache line less, and the page is touched."""
import itertools
import os
import re
import tempfile

from lib.attnc import QUICK, ROOT, UNOPTIMIZED, attnc
from lib.targets import here
from lib.turns import in_turn

LINE = 64  # bytes of a cache line
SPECS = ["tests/codegen/small_full.attn", "tests/decode/pair.attn"]
if not QUICK:
    SPECS += ["tests/codegen/single.attn", "tests/decode/longrope.attn", "tests/decode/ring.attn",
              "tests/differential/alone_self.attn", "tests/differential/exact_five.attn",
              "tests/differential/many_keys_source.attn", "tests/differential/unrolled_masks.attn"]
AT_LENGTH = {"tests/decode/ring.attn": ["--lengths", "400"], "tests/differential/alone_self.attn": ["--lengths", "48"]}
ROOMY = {"tests/decode/ring.attn"}  # rows that see no further than a window leave the end of their block alone
AREAS = {"attention keys", "attention values", "attention block", "attention_rows scores", "attention_rows weighted",
         "attention_full keys", "attention_full block", "attention_register_resident keys",
         "attention_register_resident block", "gemm sums"}  # at least one of each has to be there


def stated(spec, target):
    """{function of a step: (bytes of scratch, whether threads share it)}, {kernel and area}"""
    text = attnc("--dump=schedule", spec, "--target", target, status=0).stdout
    needs, areas, single, before = {}, set(), "", None
    for line in text.splitlines():
        head = re.match(r"schedule (\w+) of (\w+) for \w+: (\w+)", line)
        step = re.match(r"  (\w+): (\w+) on ", line)
        callee = re.match(r" {4,}\w+: (\w+) on ", line)
        scratch = re.match(r"( +)scratch: (\d+) bytes, floats: (.*)", line)
        if head:
            entry, model, form = head.groups()
            single, before = "_single" if entry == before else "", entry
            stem = "%s_%s%s%s" % (model, target, "" if entry == "forward" else "_" + entry, single)
        elif step:
            function, kernel = "%s_step_%s" % (stem, step[1]), step[2]
            needs[function] = 0, form == "loops"
        elif callee:
            kernel = callee[1]
        elif scratch:
            areas |= {"%s %s" % (kernel, area.split()[0]) for area in scratch[3].split(", ")}
            if len(scratch[1]) == 5:  # the step's own, not that of a function it calls
                needs[function] = int(scratch[2]), form == "loops"
    return needs, areas


def moved(c, needs, less=0):
    """The C with each step's scratch at the end of the workspace, of so many bytes less than it states."""
    c, count = re.subn(r"run\.scratch = run\.workspace \+ \d+;",
                       "run.scratch = (float *)(void *)((unsigned char *)workspace + bytes / 64 * 64);", c)
    assert count, "no entry sets run.scratch"
    left = dict(needs)

    def begin(found):
        need, shared = left.pop(found[2])
        parts = "(size_t)run->threads" if shared else "1"
        end = "run->scratch -= %s * %d" % (parts, (need - less) // 4) if need else "run->scratch = NULL"
        return "%sgiven%s    %s own = *given, *run = &own;\n    %s;\n" % (found[1], found[4], found[3], end)

    c = re.sub(r"(void (\w+_step_\w+)\(const (\w+_run) \*)run(,\s+int thread\) \{\n)", begin, c)
    assert not left, "no function of the steps %s" % sorted(left)[:5]
    return c


def problem(folder, spec, target, needs):
    """What is wrong, or None."""
    name = os.path.basename(spec)[:-5]
    to = os.path.join(folder, "%s_%s" % (name, target))
    attnc("compile", spec, "-o", to, "--target", target, status=0)
    with open(os.path.join(ROOT, spec), encoding="utf-8") as file:
        path = os.path.join(to, re.search(r"model (\w+)", file.read())[1] + ".c")
    with open(path, encoding="utf-8") as file:
        c = file.read()

    def check(less):
        with open(path, "w", encoding="utf-8") as file:
            file.write(moved(c, needs, less))
        done = attnc("check", spec, "--target", target, "--cc", UNOPTIMIZED, "--emitted", path,
                     *AT_LENGTH.get(spec, []))
        return done.returncode, (done.stdout + done.stderr)[-1500:]

    status, said = check(0)
    if status:
        return "a kernel leaves its scratch: " + said
    if spec in ROOMY:
        return None
    status, said = check(LINE)
    if status != 1 or "workspace" not in said:
        return "%d bytes of scratch less are enough: %s" % (LINE, said)
    return None


def try_all(pool, result):
    """Tries each spec for each target in the pool, a sixth of these pairs in turn."""
    with tempfile.TemporaryDirectory() as folder:
        cases = {case: stated(*case) for case in itertools.product(SPECS, here(on_request=False))}
        chosen = list(cases) if QUICK else in_turn(cases, 6)
        for (spec, target), wrong in zip(chosen, pool.map(lambda case: problem(folder, *case, cases[case][0]), chosen)):
            result("scratch/%s/%s" % (os.path.basename(spec)[:-5], target), wrong)
        if not QUICK:
            areas = set().union(*(areas for _, areas in cases.values()))
            result("scratch/areas", None if areas == AREAS else "found: %s" % sorted(areas))
