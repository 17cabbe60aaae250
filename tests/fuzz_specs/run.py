#!/usr/bin/env python3
"""The differential fuzzer of specs, tests/fuzz/specs (`make fuzz-specs`): specs drawn over the whole language, the
interpreter against the C of each on the targets of this machine. knows_every_setting: whatever settings.def has is
drawn, and what is refused may be. same_everywhere: a spec is what its seed and number say. pairs: the table tells what
was drawn together, and why the rest cannot be. planted: a fault in the C is found, made small, and found again by the
command that is printed. pinned: specs that once were findings (tests/fuzz/pinned/specs), a third of them in turn with
the commits. random: the first FUZZ_SPECS specs of the seed FUZZ_SEED (1), each on one target of this machine; without
that number 40 of the first 1000 in turn, 15 with ATTNC_QUICK=1. ATTNC_LONG=1 tries the 1000, and a plain spec for each
pair of settings that none of them has. expressions: small models whose mask and score are random expressions, 100 of
10,000 in turn, 20 with ATTNC_QUICK=1, all of them with ATTNC_LONG=1. Speaks TAP."""

import concurrent.futures
import glob
import os
import re
import shlex
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from lib.attnc import LONG, QUICK, ROOT, make  # noqa: E402
from lib.attnc import run as run_command  # noqa: E402
from lib.attnc import said as output  # noqa: E402
from lib.tap import run_tests  # noqa: E402
from lib.turns import in_turn, rotated  # noqa: E402

WHOLE = 1000
WANTED = os.environ.get("FUZZ_SPECS")
SPECS = int(WANTED or (15 if QUICK else WHOLE if LONG else 40))
FIRST = 0 if WANTED or QUICK or LONG else rotated(range(0, WHOLE, SPECS))  # of the random ones
ALL_EXPRESSIONS = 10000
EXPRESSIONS = 20 if QUICK else ALL_EXPRESSIONS if LONG else 100
FIRST_EXPRESSION = 0 if QUICK or LONG else rotated(range(0, ALL_EXPRESSIONS, EXPRESSIONS))
SEED = os.environ.get("FUZZ_SEED", "1")
PROGRAM = "build/fuzz/specs"


class FuzzSpecs:
    def __init__(self, scratch):
        self.scratch = scratch

    def run(self, *words, seconds=600):
        """Exit status and what was said. The time is for machines that are much slower."""
        done = run_command(PROGRAM, *words, env={"TMPDIR": self.scratch}, timeout=seconds)
        return done.returncode, output(done)

    def test_builds(self):
        make("-j2", "fuzz-specs", status=0)

    def test_knows_every_setting(self):
        status, said = self.run("--dry", "--count", "3000", "--seed", SEED)
        assert status == 0 and "never drawn: " not in said, said

    def test_same_everywhere(self):
        status, some = self.run("--print", "--count", "6", "--from", "37", "--seed", "5")
        assert status == 0 and some.count("\nmodel s") == 6, some
        status, later = self.run("--print", "--count", "2", "--from", "41", "--seed", "5")
        assert status == 0 and some.endswith(later), "spec 41 depends on what was drawn before it:\n" + some + later
        status, other = self.run("--print", "--count", "6", "--from", "37", "--seed", "6")
        assert status == 0 and other != some, "another seed draws the same"

    def test_pairs(self):
        table = os.path.join(self.scratch, "table")
        status, said = self.run("--pair", "position rope,heads N", "--pair", "norm pre,norm post", "--count", "20",
                                "--dry", "--table", table)
        assert status == 0, said
        with open(table, encoding="utf-8") as file:
            text = file.read()
        assert "can be had: position rope, heads N" in said, said
        assert "cannot: norm pre, norm post: `pre` and `post` exclude each other" in said, said
        status, specs = self.run("--print", "--count", "20")
        wide = sum("d_model" in spec for spec in specs.split("\nmodel s")[1:])
        assert status == 0 and 10 < wide <= 20, specs[:300]
        assert re.search(r"^ +%d  d_model N$" % wide, text, re.M), text[:300]

    def test_planted(self):
        """A coefficient of 2^x is another: softmax is off wherever scores differ, which they do in most specs."""
        found = os.path.join(self.scratch, "found")
        plant = "0x1.62e428p-1f=>0x1.4p-1f"
        for first in range(4, 12):
            status, said = self.run("--count", "1", "--from", str(first), "--seed", "3", "--targets", "scalar",
                                    "--plant", plant, "--found", found, "--tries", "30")
            if status == 1:
                break
        assert status == 1 and " 0 wrong" not in said, said
        again = re.findall(r"^again: (.*)$", said, re.M)
        assert len(again) >= 2, said
        whole, small = (shlex.split(line) for line in again[:2])
        sizes = [os.path.getsize(words[words.index("--replay") + 1]) for words in (whole, small)]
        assert sizes[1] < sizes[0], "it was not made smaller: %s\n%s" % (sizes, said)
        for words in (whole, small):
            status, replayed = self.run(*words[1:])
            assert status == 1 and ": wrong\n" in replayed, "%s does not fail again:\n%s" % (words, replayed)
        status, replayed = self.run("--replay", small[small.index("--replay") + 1])
        assert status == 0 and ": fine\n" in replayed, "it fails without the fault:\n" + replayed

    def test_pinned(self):
        paths = sorted(glob.glob(os.path.join(ROOT, "tests/fuzz/pinned/specs/*.attn")))

        def replay(some):
            words = [word for path in some for word in ("--replay", os.path.relpath(path, ROOT))]
            status, said = self.run(*words, *([] if LONG else ["--level", "-O0"]))
            done = said.count(": fine\n") + said.count(": this machine has none of its targets\n")
            return said if status or done != len(some) else ""

        chosen = in_turn(paths, 3)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            wrong = "".join(pool.map(replay, (chosen[::2], chosen[1::2])))
        assert len(chosen) > 1 and not wrong, wrong

    def test_random(self):
        found = os.path.join(ROOT, "build/fuzz/found")
        # the bits are the same at each level, as tests/promises and tests/decode see to, and -O0 takes half the time
        how = ["--probe"] if LONG else ["--level", "-O0"]
        status, said = self.run("--count", str(SPECS), "--from", str(FIRST), "--seed", SEED, "--targets", "rotate",
                                "--jobs", "2", "--found", found, *how, seconds=120 + 20 * SPECS)
        assert status == 0 and re.search(r"^\d+ specs, 0 wrong", said, re.M), said[-6000:]
        assert not LONG or " 0 not drawn" in said, said[-6000:]
        for line in said.split("\n")[-4:]:
            print("# " + line)

    def test_expressions(self):
        status, said = self.run("--expressions", "--count", str(EXPRESSIONS), "--from", str(FIRST_EXPRESSION), "--seed",
                                SEED, "--targets", "rotate", "--jobs", "2", "--level", "-O0", "--found",
                                os.path.join(ROOT, "build/fuzz/found"), seconds=120 + 20 * EXPRESSIONS)
        assert status == 0 and re.search(r"^\d+ specs, 0 wrong", said, re.M), said[-6000:]


if __name__ == "__main__":
    sys.exit(run_tests("fuzz_specs", FuzzSpecs))
