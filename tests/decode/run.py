#!/usr/bin/env python3
"""Generated code that appends rows to states, and attnc generate. TAP on stdout.

statuses/COMPILER/TARGET/…: main.c and its neighbours, linked with what attnc emits for the specs of this folder, under
sanitizers. races/…: its threads. bits/…: the same numbers whatever the compiler and its optimization. stack/SPEC: of
the largest function. check/SPEC: attnc check. binding/SPEC: attn_generate.h in C and C++. traces/SPEC: nothing of
exported attention where nothing is exported. bench/…: of decode. generate/…: generate.py.

Compilers take turns with the commits. Environment: ATTNC_QUICK=1 takes fewer targets and fixtures, ATTNC_LONG=1 all;
ATTNC_FIXTURES names a folder of big ones."""
import concurrent.futures
import json
import os
import re
import shutil
import sys
import tempfile

from common import HERE, SPECS, TARGETS, report, result, spec_path, spec_text, write_text
from lib.attnc import COMPILERS, NO_TARGET, QUICK, ROOT, attnc, compile_once, lacks_target, run
from lib.turns import in_turn
import generate

STRICT = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic"]
ADDRESS = ["-O0", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
THREAD = ["-O1", "-g1", "-fsanitize=thread"]
RUNTIME = os.path.join(ROOT, "runtime")
OWN = ("main", "models", "statuses", "ways", "together")
# Emitted code is slow to compile with sanitizers, so that each compiler has its share of the targets, and optimizes
# nothing.
SANITIZED = (("gcc", ("avx2",)),) if QUICK else (("clang", ("scalar", "avx2")), ("gcc", ("avx512",)))
# Where one of them has its turn, the sanitizers, at -O0, are those of the other compiler.
VARIANTS = (("gcc", "-O2"), ("clang", "-O3"))
MOST_STACK = 16384


def emit(folder, targets, specs=SPECS):
    for spec in specs:
        attnc("compile", spec_path(spec), "-o", folder, "--target", ",".join(targets), "--weights", "random:5",
              status=0)


def build(pool, folder, cc, flags):
    """The test program, from the emitted C of `folder`; its path."""
    name = os.path.join(folder, cc + "".join(flags).replace("/", "") + ".")
    jobs, objects = [], []
    sources = [os.path.join(folder, s + ".c") for s in SPECS] + [os.path.join(HERE, s + ".c") for s in OWN]
    runtime = ("attn_generate", "attn_rules", "attn_sample", "attn_runtime")
    for source in sources + [os.path.join(RUNTIME, s + ".c") for s in runtime]:
        objects.append(name + os.path.basename(source) + ".o")
        more = ["-D_GNU_SOURCE"] if source.endswith("attn_runtime.c") else []
        jobs.append([cc, *STRICT, *flags, *more, "-I", folder, "-I", RUNTIME, "-c", source, "-o", objects[-1]])
    list(pool.map(lambda job: run(*job, status=0), jobs))
    run(cc, *flags, *objects, "-o", name + "test", "-lpthread", "-lm", status=0)
    return name + "test"


def tried(prefix, done):
    """Takes over the lines of the test program, under names of this suite."""
    if done.returncode == NO_TARGET:
        result(prefix, skip="this machine does not have it")
        return
    report.program(prefix + "/", done.stdout)
    crashed = done.returncode not in (0, 1) or "ok the end" not in done.stdout or done.stderr
    result(prefix + "/exit", "status %d\n%s" % (done.returncode, done.stderr[:4000]) if crashed else None)


answers = {}


def same_bits(name, program, target, folder):
    """One hash a model of a prefill and 40 steps; the same for every program."""
    done = run(program, target, folder, "hashes")
    if done.returncode == NO_TARGET:
        result(name, skip="this machine does not have it")
        return
    wanted = answers.setdefault(target, done.stdout)
    fine = done.returncode == 0 and len(done.stdout.splitlines()) == len(SPECS) and done.stdout == wanted
    result(name, None if fine else "status %d\n%s\nand another compiler:\n%s" % (done.returncode, done.stdout, wanted))


def statuses(pool, cc, targets):
    if cc not in COMPILERS:
        result("statuses/" + cc, skip=cc + " is not here")
        return
    with tempfile.TemporaryDirectory() as folder:
        emit(folder, targets)
        program = build(pool, folder, cc, ADDRESS)
        for target in targets:
            env = {"ASAN_OPTIONS": "redzone=512:detect_leaks=1"}
            tried("statuses/%s/%s" % (cc, target), run(program, target, folder, env=env))
            same_bits("bits/%s -O0/%s" % (cc, target), program, target, folder)


def races(pool):
    if "clang" not in COMPILERS:
        result("races", skip="clang is not here")
        return
    target = "scalar" if QUICK else "avx2"
    with tempfile.TemporaryDirectory() as folder:
        emit(folder, (target,))
        tried("races/" + target, run(build(pool, folder, "clang", THREAD), target, folder, "together"))


def optimized(pool, cc, level):
    if cc not in COMPILERS:
        result("bits/%s %s" % (cc, level), skip=cc + " is not here")
        return
    targets = TARGETS[:2] if QUICK else TARGETS
    with tempfile.TemporaryDirectory() as folder:
        emit(folder, targets)
        program = build(pool, folder, cc, [level, "-fstack-usage"] if cc == "gcc" else [level])
        for target in targets:
            same_bits("bits/%s %s/%s" % (cc, level, target), program, target, folder)
        for name in sorted(os.listdir(folder)):
            spec = re.match(r"gcc.*\.(\w+)\.c\.su$", name)
            if spec and spec.group(1) in SPECS:
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    worst = max(int(line.split("\t")[1]) for line in file)
                result("stack/" + spec.group(1), "a function uses %d bytes" % worst if worst > MOST_STACK else None)


def check(spec):
    options = ["--case", "decode", "--target", "avx2", "--threads", "2"] if QUICK else ["--threads", "3"]
    done = attnc("check", spec_path(spec), *options)
    if lacks_target(done):
        result("check/" + spec, skip=lacks_target(done))
        return
    seen = re.search(r"^\w+ +decode +hidden .* ok$", done.stdout, re.M)
    tail = "\n".join([line for line in done.stdout.splitlines() if "FAIL" in line][:5] + done.stdout.splitlines()[-4:])
    fine = done.returncode == 0 and seen
    result("check/" + spec, None if fine else "status %d\n%s\n%s" % (done.returncode, tail, done.stderr))


def binding(spec):
    """The binding of runtime/attn_generate.h in C and C++."""
    with tempfile.TemporaryDirectory() as folder:
        emit(folder, TARGETS[:1], (spec,))
        main = write_text(os.path.join(folder, "main.c"),
                          '#include "%s.h"\n#include "attn_generate.h"\nATTN_MODEL_OF(%s);\n'
                          "int main(void) { return %s_generator_model == 0; }\n" % (spec, spec, spec))
        flags = STRICT[1:] + ["-Wno-address", "-I", folder, "-I", RUNTIME, "-fsyntax-only"]
        for cc, language in (("clang", "c11"), ("gcc", "c11"), ("clang++", "c++17"), ("g++", "c++17")):
            if shutil.which(cc):
                done = run(cc, "-x", language.rstrip("17"), "-std=" + language, *flags, main)
                result("binding/%s/%s" % (spec, cc), done.stderr if done.returncode else None)


# ---------------------------------------------------------------- exported attention

MAP_WORDS = re.compile(r"\bmaps\b|map_|_maps\b|_pairs\b|out_attention|out_cross_attention|\bfloat \*map\b")


def functions(text):
    """Name and text of each function."""
    return {found.group(2): found.group(1) for found in
            re.finditer(r"^([a-z][^\n;]*?\b(\w+)\([^;{]*\) \{\n(?:.*\n)*?\}\n)", text, re.M)}


def traces(spec):
    """Off, export attention leaves no word of maps; on, it changes nothing that has nothing to do with attention."""
    plain = re.sub(r"\n *export .*", "", spec_text(spec))
    with tempfile.TemporaryDirectory() as folder:
        texts = {}
        for name, text in (("off", plain), ("on", spec_text(spec))):
            where = os.path.join(folder, name)
            os.mkdir(where)
            attnc("compile", write_text(os.path.join(folder, spec + ".attn"), text), "-o", where, status=0)
            texts[name] = ""
            for end in (".c", ".h"):
                with open(os.path.join(where, spec + end), encoding="utf-8") as file:
                    texts[name] += file.read()
    left = sorted(set(MAP_WORDS.findall(texts["off"])))
    result("traces/%s/off" % spec, "words of maps: %s" % left if left else None)
    words = ["out_attention", "map_", "_pairs", "maps"]
    lacking = [word for word in words if word not in texts["on"]]
    result("traces/%s/on" % spec, "no %s" % lacking if lacking else None)
    off, on = functions(texts["off"]), functions(texts["on"])
    entries = {"%s_%s" % (spec, entry) for entry in ("forward", "encode", "decode")}
    same = [name for name in off if "attention" not in name and name not in entries]
    other = [name for name in same if on.get(name) != off[name]]
    more = [name for name in on if name not in off and "attention" not in name]
    enough = len(same) >= 40 and all(entry in off for entry in entries if spec == "pair" or "encode" not in entry)
    result("traces/%s/the rest" % spec, "changed: %s, new: %s, of %d" % (other, more, len(same))
           if other or more or not enough else None)


# ---------------------------------------------------------------- bench


def bench():
    spec = spec_path("ring")
    done = attnc("bench", spec, "--decode", "--seq", "8", "--target", "scalar", "--json")
    try:
        numbers = json.loads(done.stdout)
        wanted = {"median_s", "min_s", "runs", "flops", "bytes", "gflops", "tokens_s", "read_gb_s", "threads", "target",
                  "seq"}
        problem = "keys: %s" % sorted(wanted ^ set(numbers)) if wanted != set(numbers) else None
        if not problem and (numbers["seq"] != 8 or not numbers["tokens_s"] > 0 or not numbers["read_gb_s"] > 0 or
                            abs(numbers["tokens_s"] * numbers["median_s"] - 1) > 1e-3):
            problem = str(numbers)
    except ValueError:
        problem = "status %d: %s%s" % (done.returncode, done.stdout, done.stderr)
    result("bench/json", problem)
    done = attnc("bench", spec, "--decode", "--seq", "4", "--target", "scalar")
    fine = done.returncode == 0 and re.search(r"decode of 4 tokens.* \d+\.\d tokens/s", done.stdout)
    result("bench/text", None if fine else done.stdout + done.stderr)
    done = attnc("bench", spec_path("pair"), "--decode", "--target", "scalar")
    result("bench/a source", None if done.returncode == 1 and "--decode" in done.stderr else done.stdout + done.stderr)


def main():
    kept = tempfile.TemporaryDirectory()  # of the libraries of `attnc generate`, which several tests ask for
    compile_once(kept.name)
    parts = 1 if QUICK else 2
    compilers = concurrent.futures.ThreadPoolExecutor(os.cpu_count())
    jobs = [(report.guard, ("statuses/" + cc, statuses, compilers, cc, targets))
            for cc, targets in in_turn(SANITIZED, parts)]
    jobs += [(report.guard, ("bits/" + cc, optimized, compilers, cc, level)) for cc, level in in_turn(VARIANTS, parts)]
    jobs += [(report.guard, ("races", races, compilers))]
    jobs += [(report.guard, ("check/" + spec, check, spec)) for spec in (SPECS if QUICK else in_turn(SPECS))]
    jobs += [(report.guard, ("binding/" + spec, binding, spec)) for spec in SPECS]
    jobs += [(report.guard, ("traces/" + spec, traces, spec)) for spec in ("ring", "pair")]
    with concurrent.futures.ThreadPoolExecutor(2 * (os.cpu_count() or 1)) as pool:
        for job in [pool.submit(function, *args) for function, args in jobs + list(generate.jobs())]:
            job.result()
    compilers.shutdown()
    report.guard("bench", bench)
    kept.cleanup()
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
