#!/usr/bin/env python3
"""attnc and the C that it emits, both with sanitizers, in one process: `attnc check --small` of specs, and `attnc
generate`. KIND/SPEC/TARGET, where KIND is address (with undefined behaviour), thread, memory or valgrind (memcheck, of
attnc as it is). planted/KIND/…: each of them sees a fault that is written into the emitted C. generate/KIND/…: several
threads and beams. Speaks TAP.

Environment: ATTNC_LONG=1 takes every spec with every sanitizer, on a target that takes turns with the commits;
ATTNC_QUICK=1 valgrind alone; else a sample, of which valgrind takes one spec in turn."""
import concurrent.futures
import glob
import os
import re
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import npy  # noqa: E402
from lib.attnc import LONG, QUICK, ROOT, lacks_target, make  # noqa: E402
from lib.attnc import run as run_command  # noqa: E402
from lib.tap import Report  # noqa: E402
from lib.targets import here, of_processor  # noqa: E402
from lib.turns import in_turn, turn  # noqa: E402

sys.dont_write_bytecode = True
SANITIZE = {
    "address": ["-fsanitize=address,undefined,float-cast-overflow"],
    "thread": ["-fsanitize=thread"],
    "memory": ["-fsanitize=memory"],
}
KINDS = [] if QUICK else list(SANITIZE) if LONG else ["address"]
TARGETS = here()
# LLVM's memory sanitizer takes AVX's masked stores and minima for reads of all lanes; valgrind knows them.
UNKNOWN = {"memory": ("avx2", "avxvnni")}
FOLDERS = ["tests/differential", "tests/decode", "tests/codegen"]
SAMPLE = [
    ("address", "tests/differential/cross_additive.attn", "scalar"),
    ("address", "tests/decode/pair.attn", "avx512"),
]
# It knows nothing of AVX-512, and a whole check of a larger model would take minutes.
VALGRIND = [
    ("tests/differential/features.attn", "avx2"), ("tests/differential/seq2seq_odd.attn", "scalar"),
    ("tests/differential/rope_odd.attn", "sse2"), ("tests/differential/windows.attn", "avx2"),
    ("tests/differential/unrolled_masks.attn", "avx2"), ("tests/differential/many_keys_additive.attn", "scalar"),
    ("tests/differential/patches_to_tokens.attn", "avx2"), ("tests/differential/alone_given.attn", "sse2"),
    ("tests/differential/relative_per_layer.attn", "avx2"), ("tests/families/modernbert.attn", "avx2"),
]
VALGRIND_SAMPLE = VALGRIND[:1] if QUICK else in_turn(VALGRIND, len(VALGRIND))
TELLING = re.compile(r"ERROR: |WARNING: |runtime error|^ *#\d|^==\d+== |SUMMARY|FAIL|attnc: ")

report = Report("sanitized")
result = report.result


def run(*command):
    options = {"ASAN_OPTIONS": "detect_leaks=1", "UBSAN_OPTIONS": "print_stacktrace=1"}
    options["TSAN_OPTIONS"] = "halt_on_error=1"
    options["TMPDIR"] = tempfile.gettempdir()  # main's own folder: a sanitizer that ends attnc leaves things there
    return run_command(*command, env=options)


def what_it_says(ran):
    lines = [line for line in (ran.stderr + ran.stdout).splitlines() if TELLING.search(line)]
    return "\n".join(lines[:25] + [f"exit {ran.returncode}"])


class Tools:
    """attnc of each kind, and the compilers that give what it loads the same sanitizer."""

    def __init__(self, folder):
        self.folder = folder

    def attnc(self, kind):
        if kind == "valgrind":
            return ["valgrind", "-q", "--error-exitcode=9", os.path.join(self.folder, "attnc")]
        return [os.path.join(ROOT, "build", kind, "attnc")]

    def compiler(self, kind):
        return ["--cc", os.path.join(self.folder, kind)] if kind in SANITIZE else []

    def make(self):
        """What there is of them; what cannot be made is a failure."""
        for kind in KINDS:
            script = os.path.join(self.folder, kind)
            # sanitizers make what is optimized slow to compile, and see as much without
            flags = " ".join(SANITIZE[kind] + ["-O0", "-g1", "-fno-omit-frame-pointer", "-fno-sanitize-recover=all"])
            with open(script, "w", encoding="utf-8") as file:
                file.write(f'#!/bin/sh\nexec clang "$@" {flags}\n')
            os.chmod(script, 0o755)
        level = "SANITIZED_LEVEL=" + ("-O1" if LONG else "-O0")
        made = make("-j2", level, *["attnc-" + kind for kind in KINDS]) if KINDS else None
        result("built", what_it_says(made) if made and made.returncode else None)
        # valgrind cannot read every compiler's debugging information, and needs none
        run("strip", "-o", os.path.join(self.folder, "attnc"), os.path.join(ROOT, "build/attnc"))


def check(tools, kind, spec, target, *more):
    ran = run(*tools.attnc(kind), "check", spec, "--small", "--target", target, *tools.compiler(kind), *more)
    name = f"{kind}/{os.path.basename(spec)[:-5]}/{target}"
    fine = ran.returncode == 0 and ran.stdout.rstrip().endswith("thread counts") or lacks_target(ran)
    return name, None if fine else what_it_says(ran), lacks_target(ran)


# ---------------------------------------------------------------- faults that must be seen

# What a function does first, where, and what is said of it.
PLANTED = {
    "address": {
        "overflow": ("volatile int most = 0x7fffffff; most = most + 1;", "signed integer overflow"),
        "stack": ("volatile float few[4], *volatile to = few; to[4] = 1.0f;", "stack-buffer-overflow"),
        "global": ("static volatile float few[4], *volatile to; to = few; to[4] = 1.0f;", "global-buffer-overflow"),
        "shift": ("volatile int bits = 32; bits = 1 << bits;", "shift exponent 32 is too large"),
        "bounds": ("static const int few[2] = {1, 2}; volatile int at = 2; at = few[at];", "out of bounds"),
        "alignment": ("volatile int at = *(const int *)(const void *)((const char *)input->lengths + 1); (void)at;",
                      "misaligned address"),
        "cast": ("volatile float big = 1e30f; volatile int made = (int)big; (void)made;", "outside the range"),
    },
    # it lasts, so that another thread awakes and takes its share
    "thread": {"race": ("static volatile int shared; for (int i = 0; i < 100000; i++) shared++;", "data race")},
    "memory": {"unset": ("volatile float few[2]; if (few[input->batch & 1] > 1.0f) return 0;", "use-of-uninitialized")},
    "valgrind": {"unset": ("volatile float few[2]; if (few[input->batch & 1] > 1.0f) return 0;",
                           "depends on uninitialised")},
}
ENTRY = re.compile(r"(?m)^int exact_one_forward\([^;{]*\{$")
STEP = re.compile(r"(?m)^(?:static )?void exact_one_scalar_step_\w+\(const \w+ \*run, int \w+\) \{$")


def planted(tools, kind, what):
    line, expected = PLANTED[kind][what]
    with tempfile.TemporaryDirectory() as folder:
        run(os.path.join(ROOT, "build/attnc"), "compile", "tests/differential/exact_one.attn", "-o", folder, "--target",
            "scalar")
        path = os.path.join(folder, "exact_one.c")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        changed, n = (STEP if kind == "thread" else ENTRY).subn(lambda m: m[0] + "\n    " + line, text)
        with open(path, "w", encoding="utf-8") as file:
            file.write(changed)
        ran = run(*tools.attnc(kind), "check", "tests/differential/exact_one.attn", "--emitted", path, "--target",
                  "scalar", "--case", "batch-1", *tools.compiler(kind))
    seen = n and ran.returncode not in (0, 4) and expected in ran.stderr
    return f"planted/{kind}/{what}", None if seen else f"{n} functions changed\n" + what_it_says(ran), None


# ---------------------------------------------------------------- texts


def generate(tools, kind, how, options):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "tokens.npy")
        npy.write(path, [1, 5, 9, 13, 2])
        ran = run(*tools.attnc(kind), "generate", "tests/decode/ring.attn", "--weights", "random:3", "--in",
                  "tokens=" + path, "--max-new", "24", *options, *tools.compiler(kind))
    fine = ran.returncode == 0 and re.search(r"\d+( \d+){20}", ran.stdout)
    return f"generate/{kind}/{how}", None if fine else what_it_says(ran) + ran.stdout, None


GENERATE = {
    "greedy": ["--threads", "3"],
    "beams": ["--threads", "2", "--beam", "4"],
    "sampled": ["--threads", "4", "--temperature", "0.9", "--top-p", "0.8", "--seed", "5"],
}


# ---------------------------------------------------------------- all of it


def one_length(spec):
    """The options for one sequence: of 7 rows, or of as many as the spec's sequences have to have."""
    with open(os.path.join(ROOT, spec), encoding="utf-8") as file:
        exact = re.search(r"\bseq = (\d+)", file.read())
    return "--lengths", exact[1] if exact else "7"


def jobs(tools):
    specs = [spec for folder in FOLDERS for spec in sorted(glob.glob(folder + "/*.attn", root_dir=ROOT))]
    if LONG:
        first, chosen = turn(), []
        for shift, kind in enumerate(KINDS):
            known = [target for target in TARGETS if target not in UNKNOWN.get(kind, ())]
            chosen += [(kind, spec, known[(at + first + shift) % len(known)]) for at, spec in enumerate(specs)]
    else:
        chosen = [job for job in SAMPLE if job[0] in KINDS]
    yield from ((check, tools, *job) for job in chosen)
    for spec, target in VALGRIND_SAMPLE if shutil.which("valgrind") else []:
        yield (check, tools, "valgrind", spec, target, "--threads", "2", *(() if LONG else one_length(spec)))
    for kind in KINDS + ["valgrind"]:
        yield from ((planted, tools, kind, what) for what in (PLANTED[kind] if LONG else list(PLANTED[kind])[:2]))
    for kind in KINDS:
        yield from ((generate, tools, kind, how, GENERATE[how]) for how in (GENERATE if LONG else ["beams"]))


def main():
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = folder
        tools = Tools(folder)
        tools.make()
        for target in of_processor():
            if target not in TARGETS:
                result(target, skip="this machine does not run it")
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for future in [pool.submit(*job) for job in jobs(tools)]:
                result(*future.result())
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
