#!/usr/bin/env python3
"""What the emitted C promises, tried with real compilers: no warning, no loop under `unroll full`, no undefined symbol,
no header of another run, a small stack, the same bytes for the same input, and the same bits whatever the compiler, its
optimization and its leave to contract products and sums; of sse2, that it has no newer instruction. TAP on stdout."""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from tap import Report  # noqa: E402

ATTNC = os.path.abspath("build/attnc")
HERE = os.path.dirname(os.path.abspath(__file__))
STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
QUICK = os.environ.get("ATTNC_QUICK") == "1"
LOOP = re.compile(r"\b(for|while|do|goto)\b")
COMPILERS = [c for c in ("clang", "gcc") if shutil.which(c)]


def run(argv, **more):
    return subprocess.run(argv, capture_output=True, text=True, **more)


report = Report("codegen")
result = report.result


def compile_spec(spec, folder, *more):
    done = run([ATTNC, "compile", spec, "-o", folder, *more])
    if done.returncode:
        raise RuntimeError(done.stderr)
    return os.path.join(folder, re.search(r"model (\w+)", open(spec).read()).group(1))


def warnings(stem, folder):
    """C11 with every warning an error, the header as C++17, and what the object asks of others."""
    for cc in COMPILERS:
        for flags in (["-O2"], ["-O0"]):
            done = run([cc, "-std=c11", *flags, *STRICT, "-c", stem + ".c", "-o", folder + "/x.o"])
            if done.returncode:
                return f"{cc} {flags}: {done.stderr}"
        undefined = run(["nm", "-u", folder + "/x.o"]).stdout.split()
        other = [s for s in undefined if s != "U" and s not in ("memcpy", "memset", "memmove", "_GLOBAL_OFFSET_TABLE_")]
        if other:
            return f"{cc}: undefined symbols {other}"
    for cxx in ("clang++", "g++"):
        if shutil.which(cxx):
            done = run([cxx, "-std=c++17", *STRICT, "-fsyntax-only", "-x", "c++", stem + ".h"])
            if done.returncode:
                return f"{cxx}: {done.stderr}"
    return None


def stack_use(stem, folder):
    if "gcc" not in COMPILERS:
        return None
    run(["gcc", "-std=c11", "-O2", "-fstack-usage", "-c", stem + ".c", "-o", folder + "/x.o"])
    worst = max(int(line.split("\t")[1]) for line in open(folder + "/x.su"))
    return None if worst <= 16 << 10 else f"a function uses {worst} bytes of stack"


def loops(stem):
    found = [line for end in (".c", ".h") for line in open(stem + end) if LOOP.search(line)]
    return "".join(found) or None


DRIVER = r"""
#include "NAME.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static unsigned char workspace[1 << 22] __attribute__((aligned(64)));
int main(int argc, char **argv) {
    static float out[1 << 16];
    static int32_t tokens[64], lengths[1] = {SEQ};
    NAME_ctx ctx;
    NAME_options options;
    NAME_input input;
    NAME_output output;
    memset(&options, 0, sizeof options);
    memset(&input, 0, sizeof input);
    memset(&output, 0, sizeof output);
    options.size = sizeof options;
    options.target = argc > 1 ? argv[1] : NULL;
    for (int i = 0; i < SEQ; i++) tokens[i] = (i * 7 + 3) % 61;
    int status = NAME_init(&ctx, NAME_embedded(), UPPER_WEIGHTS_BYTES, &options);
    if (status == UPPER_NO_TARGET) return 77;
    input.size = sizeof input;
    input.batch = 1;
    input.lengths = lengths;
    input.tokens = tokens;
    output.size = sizeof output;
    output.hidden = out;
    if (!status) status = NAME_forward(&ctx, &input, &output, workspace, sizeof workspace);
    if (status) return puts(NAME_status_text(status)), 1;
    for (int i = 0; i < SEQ * WIDTH; i++) {
        unsigned bits;
        memcpy(&bits, &out[i], 4);
        printf("%08x\n", bits);
    }
    return 0;
}
"""


def write_driver(folder, name, seq, width):
    text = DRIVER.replace("NAME", name).replace("UPPER", name.upper())
    path = folder + "/main.c"
    open(path, "w").write(text.replace("SEQ", str(seq)).replace("WIDTH", str(width)))
    return path


def same_bits(stem, folder, name, seq, width, targets=("scalar", "avx2", "avx512")):
    """One target gives one answer: contraction, optimization and compiler do not show."""
    main = write_driver(folder, name, seq, width)
    variants = []
    for cc in COMPILERS:
        variants += [[cc, "-std=c11", "-O2"], [cc, "-std=gnu11", "-O3", "-march=native", "-ffp-contract=fast"]]
        if not QUICK:
            variants += [[cc, "-std=gnu11", "-O1"], [cc, "-std=gnu11", "-O2", "-march=native"]]
    answers = {}
    for variant in variants:
        built = run([*variant, "-w", "-I", folder, main, stem + ".c", "-o", folder + "/main"])
        if built.returncode:
            return f"{variant}: {built.stderr}"
        for target in targets:
            done = run([folder + "/main", target])
            if done.returncode == 77:
                continue
            if done.returncode:
                return f"{variant} {target}: {done.stdout}"
            first = answers.setdefault(target, (variant, done.stdout))
            if first[1] != done.stdout:
                differ = sum(a != b for a, b in zip(first[1].split(), done.stdout.split()))
                return f"{target}: {differ} numbers of {' '.join(variant)} are not those of {' '.join(first[0])}"
    return None


def same_ways(path, folder, name, seq, width):
    """A sequence alone gets the same bits from loops, from code of its own, and from code without any loop (where
    attention has the same kernel in all three, so not in the scalar target)."""
    answers = {}
    for way in ("loops", "auto", "full"):
        stem = compile_spec(path, folder, "--weights", "random:5", "--embed-weights", "--unroll", way)
        singles = len(re.findall(rf"{name}_avx512_single_step_\w+\(void", open(stem + ".c").read()))
        if (singles > 0) != (way == "auto"):
            return f"--unroll {way}: {singles} steps of a single sequence"
        built = run([COMPILERS[0], "-std=c11", "-O2", "-w", "-I", folder, write_driver(folder, name, seq, width),
                     stem + ".c", "-o", folder + "/main"])
        if built.returncode:
            return built.stderr
        for target in ("scalar", "avx2", "avx512"):
            if (way, target) == ("full", "scalar"):
                continue
            done = run([folder + "/main", target])
            if done.returncode != 77 and answers.setdefault(target, done.stdout) != done.stdout:
                return f"{target}: --unroll {way} gives other numbers"
    return None


def single_loops(stem):
    """Functions of a single sequence have no loop."""
    functions = re.split(r"(?m)^(?=void |static )", open(stem + ".c").read())
    single = [f for f in functions if re.match(r"void \w+_single_", f)]
    found = [f.split("(")[0] for f in single if LOOP.search(f.split("\n}\n")[0])]
    return "no such function" if not single else "\n".join(found) or None


# A jump: not the innermost; sse2's conversion: the exponent of exp, whose products are mulps like a tile's
SKIPPED = ("j", "cvtps2dq")


def inner_loops(obj, product):
    """(function, products, vector moves to or from the stack) of each innermost loop with at least 8 products: the
    register tiles of products and scores, not the polynomials of exp and of activations, whose constants alone may be
    more than there are registers."""
    text = run(["objdump", "-d", "--no-show-raw-insn", obj]).stdout
    for function in re.split(r"\n(?=[0-9a-f]+ <)", text):
        name = re.match(r"\s*[0-9a-f]+ <(.*)>:", function)
        lines = re.findall(r"\n\s+([0-9a-f]+):\s+(.*)", function)
        at = {int(address, 16): i for i, (address, _) in enumerate(lines)}
        for i, (_, instruction) in enumerate(lines):
            jump = re.match(r"j\w+\s+([0-9a-f]+) ", instruction)
            begin = at.get(int(jump.group(1), 16), i) if jump else i
            body = [text for _, text in lines[begin:i]]
            products = sum(product in text for text in body)
            if name.group(1).endswith("_finish") or any(text.startswith(SKIPPED) for text in body):
                continue
            if begin < i and products >= 8:
                stacked = sum("mm" in text and ("(%rsp)" in text or "(%rbp)" in text) for text in body)
                yield name.group(1), products, stacked


def spills(target, folder):
    """No register tile of a real model goes through the stack inside its loop, under any compiler."""
    stem = compile_spec("specs/minilm.attn", folder, "--target", target)
    for cc in COMPILERS:
        obj = f"{folder}/{cc}.o"
        run([cc, "-std=c11", "-O2", "-c", stem + ".c", "-o", obj])
        loops_found = list(inner_loops(obj, "mulps" if target == "sse2" else "vfmadd"))
        if len(loops_found) < (8 if target == "sse2" else 10):  # its tiles of one row are too small to count
            return f"{cc}: only {len(loops_found)} loops found"
        spilling = [loop for loop in loops_found if loop[2]]
        if spilling:
            return f"{cc}: {spilling}"
    return None


# Of AVX and all that came after, and of SSE3 to SSE4.2
NEWER = re.compile(
    r"v\w+|addsubp[sd]|h(add|sub)p[sd]|mov(sh|sl|d)dup|lddqu|palignr|pshufb|pabs[bwd]|psign[bwd]|ph(add|sub)s?[wd]|"
    r"ph(add|sub)sw|pmulhrsw|pmaddubsw|blendv?p[sd]|pblend\w+|round[ps][sd]|dpp[sd]|p(min|max)(s[bd]|u[wd])|"
    r"pmov[sz]x\w+|pmul(ld|dq)|ptest|pextr[bdq]|pinsr[bdq]|extractps|insertps|packusdw|pcmp(eq|gt)q|pcmp[ei]str\w|"
    r"mpsadbw|phminposuw|movntdqa|popcnt|crc32\w?")


def newer_instructions(folder, target):
    """What spills() compiled: nothing newer than SSE2 is in sse2, while the same search finds it in other targets."""
    for cc in COMPILERS:
        text = run(["objdump", "-d", "--no-show-raw-insn", f"{folder}/{cc}.o"]).stdout
        functions = re.split(r"\n(?=[0-9a-f]+ <)", text)
        kernels = "".join(f for f in functions if f"_{target}_" in f.split(">", 1)[0])
        words = re.findall(r"\n\s+[0-9a-f]+:\s+(\w+)", kernels)
        found = sorted({word for word in words if NEWER.fullmatch(word)})
        if len(words) < 1000:
            return f"{cc}: only {len(words)} instructions found"
        if (target == "sse2") == bool(found):
            return f"{cc}: {found or 'nothing newer is found'}"
    return None


# The committed examples of what attnc prints, and how they are made.
COMMITTED = (("by_hand", "scalar"), ("small_encoder", "avx2"))


def committed():
    for name, target in COMMITTED:
        with tempfile.TemporaryDirectory() as folder:
            done = run([ATTNC, "compile", f"specs/{name}.attn", "-o", folder, "--target", target])
            problem = done.stderr if done.returncode else None
            for end in (".c", ".h"):
                if not problem and open(f"generated/{name}{end}").read() != open(f"{folder}/{name}{end}").read():
                    problem = f"generated/{name}{end} is not what attnc prints: see generated/README.md"
            result(f"committed/{name}", problem)


def two_runs():
    """A header and a C file of the same name that two runs made."""
    text = "model two {{ d_model 4, attention self {{ queries = {rows}, heads 1 }} }}\n"
    with tempfile.TemporaryDirectory() as folder:
        for rows in (3, 5, 3):
            with open(folder + "/two.attn", "w", encoding="utf-8") as file:
                file.write(text.format(rows=rows))
            os.makedirs(f"{folder}/{rows}", exist_ok=True)
            compile_spec(folder + "/two.attn", f"{folder}/{rows}", "--target", "scalar")
        shutil.copy(folder + "/3/two.c", folder + "/5/mixed.c")
        done = run([COMPILERS[0], "-std=c11", "-c", "mixed.c"], cwd=folder + "/5")
        if not done.returncode or "two.h is of another run of attnc than this file" not in done.stderr:
            return done.stderr or "it compiles"
        done = run([COMPILERS[0], "-std=c11", *STRICT, "-c", "two.c"], cwd=folder + "/3")
        return done.stderr if done.returncode else None


def of_target(target):
    with tempfile.TemporaryDirectory() as folder:
        result(f"spills/{target}", spills(target, folder))
        result(f"newer_instructions/{target}", newer_instructions(folder, target))


def of_spec(spec, seq, width):
    path, packed = f"{HERE}/{spec}.attn", ("--weights", "random:5", "--embed-weights")
    with tempfile.TemporaryDirectory() as folder:
        stem = compile_spec(path, folder, *packed)
        name = os.path.basename(stem)
        result(f"{spec}/warnings", warnings(stem, folder))
        result(f"{spec}/stack", stack_use(stem, folder))
        result(f"{spec}/bits", same_bits(stem, folder, name, seq, width))
        if spec.endswith("full"):
            result(f"{spec}/loops", loops(stem))
        if spec == "single":
            result("single/loops", single_loops(stem))
            result("single/ways", same_ways(path, folder, name, seq, width))
            stem = compile_spec(path, folder, *packed)
        before = open(stem + ".c").read()
        compile_spec(path, folder, *packed)
        result(f"{spec}/reproducible", None if before == open(stem + ".c").read() else "two runs differ")
        if spec == "small":
            stem = compile_spec(path, folder, *packed, "--target", "sse2")
            result("small/bits_sse2", same_bits(stem, folder, name, seq, width, ["sse2"]))


def main():
    committed()
    result("two_runs", two_runs())
    specs = (("small_full", 8, 32), ("odd_full", 5, 35), ("small", 16, 48), ("single", 5, 16))
    jobs = [(of_spec, *spec) for spec in specs]
    jobs += [(of_target, target) for target in ("sse2", "avx2", "avx512")]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for job in [pool.submit(*job) for job in jobs]:
            job.result()
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
