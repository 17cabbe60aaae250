#!/usr/bin/env python3
"""The fuzz targets of inputs/ (`make fuzz-inputs`): libFuzzer with AddressSanitizer, LeakSanitizer and UBSan.
planted: each kind of fault is reported, and nothing else. pinned_NAME: inputs that once were findings (pinned/NAME/*).
NAME: the fuzzer runs from the seeds for 2 s and finds nothing; a quarter of the fuzzers, in turn with the commits, run
for 10 s, or for 3 s with ATTNC_QUICK=1. Of what a fuzzer finds, the input is printed with the command that replays it.
These short runs draw the same changes each time and have 15 s for an input, so that a busy machine is no finding; with
ATTNC_FUZZ_SECONDS, a search, others each time, and 5 s. Speaks TAP."""

import base64
import concurrent.futures
import glob
import os
import re
import shutil
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import seeds  # noqa: E402
from lib.attnc import LONG, QUICK, ROOT, TIMED_OUT, make, said  # noqa: E402
from lib.attnc import run as run_command  # noqa: E402
from lib.tap import Skip, run_tests  # noqa: E402
from lib.turns import in_turn  # noqa: E402

SEARCH = os.environ.get("ATTNC_FUZZ_SECONDS")
SECONDS, FEWER = int(SEARCH or (3 if QUICK else 10)), int(SEARCH or 2)  # in turn, each for the one or the other
LIMITS = ["-rss_limit_mb=2048", *(["-timeout=5"] if SEARCH else ["-timeout=15", "-seed=1"])]
SANITIZERS = "allocator_may_return_null=1:max_allocation_size_mb=512:detect_leaks=1:quarantine_size_mb=32"
EMPTY_TARGET = "int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return d && n > 9 ? 0 : 0; }"
TELLING = re.compile(r"BROKEN: |runtime error: |ERROR: |SUMMARY: |^ *#\d+ 0x.* in "
                     r".*(compiler|runtime|examples|tests/fuzz|build/fuzz/gen)/")
# Letter of inputs/fuzz_planted.c: what the report says. "" and m (out of memory) are none.
PLANTED = {
    "": None,
    "m": None,
    "b": "BROKEN: planted",
    "s": "status that no file can cause",
    "o": "heap-buffer-overflow",
    "u": "signed integer overflow",
    "f": "a file stays open",
    "l": "detected memory leaks",
    "r": "an arena is not freed",
    "h": "timeout",
}


def fuzzer(name):
    return os.path.join(ROOT, "build/fuzz/fuzz_" + name)


def run(name, *words, scratch, seconds):
    """Exit status and what was said; a fuzzer that does not end is a failure like any other."""
    done = run_command(fuzzer(name), *words, timeout=seconds, env={
        "ASAN_OPTIONS": SANITIZERS, "UBSAN_OPTIONS": "print_stacktrace=1", "TMPDIR": scratch})
    return (1, "the fuzzer itself does not end") if done.returncode == TIMED_OUT else (done.returncode, said(done))


def story(name, said, data):
    """Of a report what tells the fault, and how to see it again."""
    lines = [line.rstrip()[:300] for line in said.split("\n") if TELLING.search(line)] or said.split("\n")[-10:]
    text = ["%s: a finding" % name, *lines[:30]]
    if data is not None:
        text += [
            "the input in base64, and how to replay it:",
            base64.b64encode(data).decode(),
            "base64 -d <<<'...' >input && ASAN_OPTIONS=%s build/fuzz/fuzz_%s -timeout=5 input" % (SANITIZERS, name),
            "when it is mended, the input belongs to tests/fuzz/pinned/%s" % name,
        ]
    return "\n".join(text)


def fuzz(name, folder):
    """None, or the story of what was found in its seconds: more in every fourth commit."""
    seconds = SECONDS if name in in_turn(seeds.TARGETS, 4) else FEWER
    seeds.write(folder, name)
    os.makedirs(os.path.join(folder, "corpus"))
    longest = seeds.TARGETS[name][2]
    status, said = run(
        name, *LIMITS, "-max_total_time=%d" % seconds, "-max_len=%d" % longest, "-close_fd_mask=2",
        "-dict=" + os.path.join(folder, "words"), "-artifact_prefix=%s/found-" % folder,
        os.path.join(folder, "corpus"), os.path.join(folder, "seeds"), scratch=folder, seconds=seconds + 120)
    inputs = sorted(glob.glob(os.path.join(folder, "found-*")))
    ran = re.search(r"^Done (\d+) runs", said, re.M)
    if status == 0 and not inputs and ran and int(ran.group(1)) > 0:
        return None
    data = None
    if inputs:
        with open(inputs[0], "rb") as file:
            data = file.read()
    return story(name, said, data)


class Fuzz:
    results = None

    def __init__(self, scratch):
        self.scratch = scratch

    def require(self):
        if not os.path.exists(fuzzer("planted")):
            raise Skip("clang here has no libFuzzer")

    def test_builds(self):
        program, source = (os.path.join(self.scratch, name) for name in ("empty", "empty.c"))
        with open(source, "w", encoding="ascii") as file:
            file.write(EMPTY_TARGET + "\n")
        command = ["clang", "-fsanitize=fuzzer,address,undefined", source, "-o", program]
        if not shutil.which("clang") or run_command(*command).returncode:
            for path in glob.glob(os.path.join(ROOT, "build/fuzz/fuzz_*")):
                os.remove(path)
            raise Skip("clang here has no libFuzzer")
        make("-j2", "fuzz-inputs", status=0)
        names = {path[len(fuzzer("")):] for path in glob.glob(fuzzer("*"))}
        assert names == {*seeds.TARGETS, "planted"}, "targets: %s" % sorted(names)

    def test_planted(self):
        self.require()
        for letter, said in PLANTED.items():
            path = os.path.join(self.scratch, "planted")
            with open(path, "w", encoding="ascii") as file:
                file.write(letter)
            prefix = "-artifact_prefix=%s/" % self.scratch
            status, text = run("planted", path, "-timeout=1", prefix, scratch=self.scratch, seconds=60)
            assert (status != 0) == bool(said), "`%s` ends with status %d: %s" % (letter, status, text[-1000:])
            assert not said or said in text, "`%s` does not say `%s`: %s" % (letter, said, text[-1000:])

    def fuzzed(self, name):
        """All are run at the first call, two at a time."""
        self.require()
        if self.results is None:
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                begun = {n: pool.submit(fuzz, n, os.path.join(self.scratch, n)) for n in seeds.TARGETS}
                self.results = {n: job.result() for n, job in begun.items()}
        assert not self.results[name], self.results[name]

    def pinned(self, name):
        self.require()
        paths = sorted(glob.glob(os.path.join(HERE, "pinned", name, "*")))
        for path in paths:
            prefix = "-artifact_prefix=%s/" % self.scratch
            # some are of the largest kind: two seconds, on a machine that has nothing else to do
            status, said = run(name, path, *LIMITS, "-timeout=60", prefix, scratch=self.scratch, seconds=120)
            with open(path, "rb") as file:
                assert status == 0, os.path.relpath(path, ROOT) + "\n" + story(name, said, file.read())


def add_tests():
    for name in seeds.TARGETS:
        if os.path.isdir(os.path.join(HERE, "pinned", name)):
            setattr(Fuzz, "test_pinned_" + name, lambda self, name=name: self.pinned(name))
    for name in seeds.TARGETS:
        setattr(Fuzz, "test_" + name, lambda self, name=name: self.fuzzed(name))


if __name__ == "__main__":
    add_tests()
    sys.exit(run_tests("fuzz", Fuzz))
