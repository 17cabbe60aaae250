#!/usr/bin/env python3
"""Which lines of compiler/ and runtime/ the tests run: `make coverage`, or scripts/coverage.py [GROUP…].

Builds a copy of the tree in build/coverage/tree with clang's counters, runs the unit tests and the groups of tests/
there, merges what was counted and writes build/coverage/lines.txt, every line that was not run. Prints a table by file
and ends with status 1 where less than 90 % were run. What flex and bison wrote does not count. Of groups the ones below
are run: those left out build their own programs (fuzz, bench, examples), or let calls fail that the counters make too
(faults)."""
import os
import re
import shutil
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PLACE = os.path.join(ROOT, "build", "coverage")
TREE = os.path.join(PLACE, "tree")
COUNTERS = os.path.join(PLACE, "counters")
CFLAGS = "-std=c11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -fprofile-instr-generate -fcoverage-mapping"
GROUPS = ["golden", "language", "files", "explain", "map", "import", "decode", "terminal", "parity", "differential",
          "families", "codegen", "plan", "calls"]
LEAST = 90


def run(*command, **more):
    return subprocess.run(command, check=True, text=True, **more)


def copy_tree():
    names = run("git", "ls-files", "-co", "--exclude-standard", "-z", cwd=ROOT, stdout=subprocess.PIPE).stdout
    shutil.rmtree(COUNTERS, ignore_errors=True)
    os.makedirs(COUNTERS)
    kept = set()
    for name in filter(None, names.split("\0")):
        source, copy = os.path.join(ROOT, name), os.path.join(TREE, name)
        if not os.path.isfile(source):
            continue
        kept.add(copy)
        if os.path.exists(copy) and os.path.getmtime(copy) == os.path.getmtime(source):
            continue
        os.makedirs(os.path.dirname(copy), exist_ok=True)
        shutil.copy2(source, copy)  # with its time, so that make builds what is new
    for folder in ("compiler", "runtime", "tests/unit"):
        for at, _, files in os.walk(os.path.join(TREE, folder)):
            for name in files:
                if os.path.join(at, name) not in kept:
                    os.remove(os.path.join(at, name))


def run_tests(groups):
    """Every unit test, and the groups; the names of those that fail."""
    unit = sorted(os.listdir(os.path.join(TREE, "build", "unit")))
    commands = [("unit/" + name, "build/unit/" + name) for name in unit if re.fullmatch(r"test_\w+", name)]
    commands += [(group, "tests/%s/run.py" % group) for group in groups]
    failed = []
    # A process adds to one of four files a program, so that thousands of processes leave few.
    environment = {**os.environ, "LLVM_PROFILE_FILE": COUNTERS + "/%4m.profraw", "CMOCKA_MESSAGE_OUTPUT": "TAP"}
    for name, command in commands:
        begin = time.monotonic()
        done = subprocess.run([command], cwd=TREE, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              check=False)
        bad = [line for line in done.stdout.decode(errors="replace").splitlines() if line.startswith("not ok")]
        print("%-28s %7.1f s%s" % (name, time.monotonic() - begin, "  %d failed" % len(bad) if bad else ""))
        for line in bad[:5]:
            print("    " + line)
        sys.stdout.flush()
        if bad or done.returncode < 0:
            failed.append(name)
    return failed


def count_lines():
    """{file: {line: times}} and {file: [functions that did not run]} of compiler/ and runtime/."""
    raw = [os.path.join(COUNTERS, name) for name in os.listdir(COUNTERS)]
    merged = os.path.join(PLACE, "merged.profdata")
    run("llvm-profdata", "merge", "-sparse", *raw, "-o", merged)
    unit = os.path.join(TREE, "build", "unit")
    objects = [os.path.join(TREE, "build", "attnc")] + [
        os.path.join(unit, name) for name in sorted(os.listdir(unit)) if re.fullmatch(r"test_\w+", name)]
    others = [argument for path in objects[1:] for argument in ("-object", path)]
    text = run("llvm-cov", "export", "--format=lcov", "--instr-profile=" + merged, objects[0], *others,
               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    lines, idle, file = {}, {}, None
    for line in text.splitlines():
        kind, _, rest = line.partition(":")
        if kind == "SF":
            file = os.path.relpath(rest if os.path.isabs(rest) else os.path.join(TREE, rest), TREE)
            if not file.startswith(("compiler/", "runtime/")) or file.endswith((".l", ".y")):
                file = None
        elif file and kind == "DA":
            number, times = rest.split(",")[:2]
            of_file = lines.setdefault(file, {})
            of_file[int(number)] = of_file.get(int(number), 0) + int(times)
        elif file and kind == "FNDA":
            times, name = rest.split(",", 1)
            if int(times) == 0:
                idle.setdefault(file, []).append(name.split(":")[-1])
    return lines, idle


def report(lines, idle):
    total = ran = 0
    print("\n%-44s %6s %6s %7s  functions that did not run" % ("file", "lines", "ran", "%"))
    with open(os.path.join(PLACE, "lines.txt"), "w", encoding="utf-8") as out:
        for file in sorted(lines):
            counts = lines[file]
            here = sum(times > 0 for times in counts.values())
            total, ran = total + len(counts), ran + here
            print("%-44s %6d %6d %7.1f  %s" % (file, len(counts), here, 100 * here / len(counts),
                                               " ".join(sorted(set(idle.get(file, []))))))
            with open(os.path.join(TREE, file), encoding="utf-8") as source:
                text = source.read().splitlines()
            for number in sorted(number for number, times in counts.items() if not times):
                out.write("%s:%d: %s\n" % (file, number, text[number - 1].strip()))
    share = 100 * ran / total
    print("%-44s %6d %6d %7.1f" % ("all", total, ran, share))
    print("the lines that did not run are in %s" % os.path.relpath(out.name, ROOT))
    return share


def main():
    groups = sys.argv[1:] or GROUPS
    copy_tree()
    jobs = "-j%d" % (os.cpu_count() or 1)
    run("make", "-s", jobs, "CFLAGS=" + CFLAGS, "build/attnc", "build/language_tables", cwd=TREE)
    tests = ["build/unit/" + name[:-2] for name in sorted(os.listdir(os.path.join(TREE, "tests", "unit")))
             if name.startswith("test_") and name.endswith(".c")]
    run("make", "-s", jobs, "CFLAGS=" + CFLAGS, *tests, cwd=TREE)
    failed = run_tests(groups)
    share = report(*count_lines())
    if failed:
        print("failed, so that less ran than could have: " + ", ".join(failed))
    if share < LEAST:
        print("less than %d %% of the lines ran" % LEAST)
    return 1 if share < LEAST or failed else 0


if __name__ == "__main__":
    sys.exit(main())
