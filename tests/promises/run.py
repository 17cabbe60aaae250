#!/usr/bin/env python3
"""Promises of the emitted C and of attnc, tried.

bits/SPEC: program.c around it: the same bits for 1 to 8 threads of several pools and of a parallel_for that runs the
shares in any order anywhere, in any batch, by any cut of a text into calls, twice in a process; built_by/SPEC: and by
every compiler and optimization. refuse/SPEC: init takes no damaged weights. bytes/…: generated.py, the files that
attnc writes are the same wherever and by whatever it was built. packed/…: packed.py, weights that attnc refuses.
warnings: of no spec's C. TAP on stdout.

Environment: ATTNC_QUICK=1 tries few specs and compilers, ATTNC_LONG=1 all with each other; else half of the specs
and a third of the compilers take turns with the commits."""
import concurrent.futures
import glob
import os
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import generated  # noqa: E402
import packed  # noqa: E402
from common import Program, must, report, result  # noqa: E402
from lib.attnc import ATTNC, COMPILERS, LONG, NO_TARGET, QUICK, ROOT, run  # noqa: E402
from lib.targets import of_processor  # noqa: E402
from lib.turns import in_turn  # noqa: E402

TARGETS = of_processor(on_request=False)
ALL_LEVELS = ("-O0", "-O1", "-O2", "-O3")
FIRST = ("clang" if "clang" in COMPILERS else COMPILERS[0], "-O2")  # the program that tries; others give its hash
SPECS = {  # and the builds beside FIRST that give its bits, of `all` a third in turn; decode and codegen try some, too
    "tests/differential/alone_additive.attn": "all",
    "tests/codegen/single.attn": "all",
    "tests/differential/norm_post.attn": (("gcc", "-O0"), ("clang", "-O3"), ("gcc", "-O3")),
    "tests/promises/chat.attn": (("clang", "-O0"), ("gcc", "-O1")),
    "tests/decode/pair.attn": (("gcc", "-O0"), ("clang", "-O3")),
    "tests/codegen/odd_full.attn": (("clang", "-O1"), ("gcc", "-O3")),
}
ROUNDS = 30 if QUICK else 5000 if LONG else 300


def targets_of(program, options):
    """Output of the program for each target that this machine has."""
    answers = {}
    for target in TARGETS:
        done = run(program, target, *options)
        if done.returncode != NO_TARGET:
            if done.returncode:
                raise AssertionError("%s: exit %d: %s%s" % (target, done.returncode, done.stdout[-600:],
                                                            done.stderr[-600:]))
            answers[target] = done.stdout
    if not answers:
        raise AssertionError("this machine has none of the targets")
    return answers


def builds_of(spec):
    chosen = SPECS[spec]
    if QUICK:
        chosen = (("gcc", "-O1"),) if chosen == "all" else "none"
    if chosen == "all" or LONG:
        builds = [(cc, level) for cc in COMPILERS for level in ALL_LEVELS if (cc, level) != FIRST]
        chosen = in_turn(builds, 3)
    return [build for build in chosen if build[0] in COMPILERS and build != FIRST] if chosen != "none" else []


def built_by(pool, program, builds, wanted):
    def one(build):
        answers = targets_of(program.build(*build), [program.weights, "hash"])
        return ["%s: other bits than by %s: %s" % (" ".join(build), " ".join(FIRST), target)
                for target in wanted if answers[target] != wanted[target]]
    jobs = [pool.submit(one, build) for build in builds]
    return "\n".join(line for job in jobs for line in job.result()) or None


def bits(pool, spec, scratch):
    name = os.path.basename(spec)[:-5]
    program = Program(spec, os.path.join(scratch, name))
    first = program.build(*FIRST)
    wanted = targets_of(first, [program.weights, "bits", str(ROUNDS), "1"])
    result("bits/" + name)
    again = targets_of(first, [program.weights, "hash"])
    result("bits/%s/another process" % name, None if again == wanted else "%s\n%s" % (wanted, again))
    targets_of(first, [program.weights, "refuse", *(["all"] if LONG else [])])
    result("refuse/" + name)
    result("built_by/" + name, built_by(pool, program, builds_of(spec), wanted))


def warnings(spec, scratch, compilers):
    """Also of specs that no other test compiles strictly."""
    folder = os.path.join(scratch, "warnings-" + os.path.basename(spec))
    targets = ",".join(of_processor() if LONG else [TARGETS[0], TARGETS[1]])
    must(ATTNC, "compile", spec, "-o", folder, "--target", targets)
    source = next(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".c"))
    for cc in compilers:
        must(cc, "-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", source)


def all_warnings(scratch):
    wrong = []
    specs = sorted(glob.glob("tests/differential/*.attn", root_dir=ROOT) + ["tests/fuzz/inputs/loaded.attn"])
    specs += sorted(glob.glob("tests/fuzz/pinned/specs/*.attn", root_dir=ROOT))
    for at, spec in enumerate(specs[::12] if QUICK else in_turn(specs, 3)):
        try:
            warnings(spec, scratch, COMPILERS if LONG else [COMPILERS[at % len(COMPILERS)]])
        except AssertionError as why:
            wrong.append(str(why))
    result("warnings", "\n".join(wrong) or None)


def main():
    specs = [spec for spec in SPECS if SPECS[spec] == "all"] if QUICK else in_turn(SPECS)
    workers = os.cpu_count() or 1
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(workers) as compilers:
        with concurrent.futures.ThreadPoolExecutor(2 * workers) as pool:
            jobs = [pool.submit(report.guard, "bits/" + spec, bits, compilers, spec, scratch) for spec in specs]
            jobs.append(pool.submit(report.guard, "warnings", all_warnings, scratch))
            others = generated.jobs(scratch) + packed.jobs(scratch)
            jobs += [pool.submit(report.guard, name, *job) for name, *job in others]
            for job in jobs:
                job.result()
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
