#!/usr/bin/env python3
"""What the emitted C promises, tried with real compilers: no warning, no loop under `unroll full`, no undefined symbol,
no static function without a call, no header of another run, a small stack, the same bytes for the same input, and the
same bits whatever the compiler, its optimization and its leave to contract products and sums; of sse2, that it has no
newer instruction; of avxvnni, that its f32 code is that of avx2; and that kernels keep to their scratch (scratch.py).
Specs, compilers and targets take turns with the commits. TAP on stdout."""
import collections
import concurrent.futures
import difflib
import os
import re
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import scratch  # noqa: E402
from lib.attnc import ATTNC, COMPILERS, NO_TARGET, QUICK  # noqa: E402
from lib.attnc import run as run_command  # noqa: E402
from lib.tap import Report  # noqa: E402
from lib.targets import listed, of_processor  # noqa: E402
from lib.turns import in_turn  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
LOOP = re.compile(r"\b(for|while|do|goto)\b")
COMMENT = re.compile(r"/\*.*?\*/", re.S)
DEFAULT = of_processor(on_request=False)
# Every second way has both compilers and both levels, whether the first or the second way comes first.
WAYS = [(cc, ["-O2"]) for cc in COMPILERS] + [(cc, ["-O0"]) for cc in COMPILERS[::-1]]


def run(argv, **more):
    return run_command(*argv, **more)


report = Report("codegen")
result = report.result


def compile_spec(spec, folder, *more):
    done = run([ATTNC, "compile", spec, "-o", folder, *more])
    if done.returncode:
        raise RuntimeError(done.stderr)
    return os.path.join(folder, re.search(r"model (\w+)", open(spec).read()).group(1))


def object_of(stem, cc, flags):
    """The object of the emitted C by a compiler with every warning an error, made once; (problem, path)."""
    path = "%s.%s.o" % (stem, "".join([cc, *flags]))
    if os.path.exists(path):
        return None, path
    usage = ["-fstack-usage"] if cc == "gcc" else []
    standard = [] if any(flag.startswith("-std") for flag in flags) else ["-std=c11"]
    done = run([cc, *standard, *flags, *STRICT, *usage, "-c", stem + ".c", "-o", path])
    return (f"{cc} {flags}: {done.stderr}" if done.returncode else None), path


def warnings(stem, parts=1):
    """C11 with every warning an error, the header as C++17, and what the object asks of others. One of `parts` parts of
    WAYS has its turn."""
    for cc, flags in in_turn(WAYS, parts):
        problem, path = object_of(stem, cc, flags)
        if problem:
            return problem
        undefined = run(["nm", "-u", path]).stdout.split()
        other = [s for s in undefined if s != "U" and s not in ("memcpy", "memset", "memmove", "_GLOBAL_OFFSET_TABLE_")]
        if other:
            return f"{cc}: undefined symbols {other}"
    for cxx in ("clang++", "g++"):
        if shutil.which(cxx):
            done = run([cxx, "-std=c++17", *STRICT, "-fsyntax-only", "-x", "c++", stem + ".h"])
            if done.returncode:
                return f"{cxx}: {done.stderr}"
    return None


def as_cpp(stem):
    """An application in C++ may compile the C as its own."""
    for cxx in ("clang++", "g++"):
        if shutil.which(cxx):
            done = run([cxx, "-std=c++17", "-w", "-fsyntax-only", "-x", "c++", stem + ".c"])
            if done.returncode:
                return f"{cxx}: {done.stderr}"
    return None


def stack_use(stem):
    if "gcc" not in COMPILERS:
        return None
    problem, path = object_of(stem, "gcc", ["-O2"])
    if problem:
        return problem
    with open(path[:-2] + ".su", encoding="utf-8") as file:
        worst = max(int(line.split("\t")[1]) for line in file)
    return None if worst <= 16 << 10 else f"a function uses {worst} bytes of stack"


def loops(stem):
    found = []
    for end in (".c", ".h"):
        with open(stem + end, encoding="utf-8") as file:
            code = COMMENT.sub("", file.read())
        found += [line for line in code.splitlines() if LOOP.search(line)]
    return "\n".join(found) or None


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


def program(stem, folder, main, cc, flags):
    """(problem, path) of the driver with the emitted C."""
    problem, built = object_of(stem, cc, flags)
    path = built[:-2]
    if problem or os.path.exists(path):
        return problem, path
    done = run([cc, "-std=gnu11", *flags, "-w", "-I", folder, main, built, "-o", path])
    return (f"{cc} {flags}: {done.stderr}" if done.returncode else None), path


def variants():
    """Compilers and flags, of which all give the same bits; but for the first and the last, they take turns with the
    commits."""
    flags = [["-O2"], ["-O0"], ["-std=gnu11", "-O1"], ["-std=gnu11", "-O2", "-march=native"],
             ["-std=gnu11", "-O3", "-march=native", "-ffp-contract=fast"]]
    first, *more, last = [(cc, each) for cc in COMPILERS for each in flags]
    return [first, *([] if QUICK else in_turn(more, 4)), last]


def same_bits(stem, folder, name, seq, width, targets=tuple(DEFAULT)):
    """One target gives one answer: contraction, optimization and compiler do not show."""
    main = write_driver(folder, name, seq, width)
    answers = {}
    for cc, flags in variants():
        problem, path = program(stem, folder, main, cc, flags)
        if problem:
            return problem
        for target in targets:
            done = run([path, target])
            if done.returncode == NO_TARGET:
                continue
            if done.returncode:
                return f"{cc} {flags} {target}: {done.stdout}"
            first = answers.setdefault(target, (cc, flags, done.stdout))
            if first[2] != done.stdout:
                differ = sum(a != b for a, b in zip(first[2].split(), done.stdout.split()))
                return f"{target}: {differ} numbers of {cc} {flags} are not those of {first[0]} {first[1]}"
    return None


def same_ways(path, folder, name, seq, width):
    """A sequence alone gets the same bits from loops, from code of its own, and from code without any loop (where
    attention has the same kernel in all three, so not in the scalar target)."""
    answers = {}
    for way in ("loops", "auto", "full"):
        stem = compile_spec(path, f"{folder}/{way}", "--weights", "random:5", "--embed-weights", "--unroll", way)
        singles = len(re.findall(rf"{name}_{DEFAULT[-1]}_single_step_\w+\(const ", open(stem + ".c").read()))
        if (singles > 0) != (way == "auto"):
            return f"--unroll {way}: {singles} steps of a single sequence"
        main = write_driver(f"{folder}/{way}", name, seq, width)
        problem, built = program(stem, f"{folder}/{way}", main, COMPILERS[0], ["-O2"])
        if problem:
            return problem
        for target in DEFAULT:
            if (way, target) == ("full", "scalar"):
                continue
            done = run([built, target])
            if done.returncode != NO_TARGET and answers.setdefault(target, done.stdout) != done.stdout:
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


def same_code(target, base):
    """The C of `target` is that of `base` but for its name, the attribute of its functions, the header's hash, and the
    statements that probe CPUID."""
    texts = []
    with tempfile.TemporaryDirectory() as folder:
        for name in (base, target):
            stem = compile_spec(f"{HERE}/small.attn", f"{folder}/{name}", "--target", name)
            with open(stem + ".c", encoding="utf-8") as file:
                text = file.read()
            text = re.sub(rf"(?m)^(static .*)small_{name.upper()}$", r"\1ATTRIBUTE", text).replace(target, base)
            texts.append(re.sub(r"(?<![;{}/\\])\n +", " ", text).splitlines())  # names of other lengths, other breaks
    changed = [line for line in list(difflib.unified_diff(*texts, n=0))[2:]
               if line[:1] in "+-" and "#if SMALL_HEADER != " not in line]
    probes = [line for line in changed if "leaf" in line or '"a"(7), "c"(1)' in line or "#define small_AVX" in line]
    return None if len(probes) == len(changed) > 2 else "\n".join(changed[:20]) or "nothing is probed"


def of_target(target):
    with tempfile.TemporaryDirectory() as folder:
        result(f"spills/{target}", spills(target, folder))
        result(f"newer_instructions/{target}", newer_instructions(folder, target))


def idle_functions():
    """Static functions of emitted C that nothing in it calls, of all targets."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for spec in ("specs/minilm.attn", "specs/by_hand.attn", "tests/differential/bf16.attn",
                     "tests/differential/seq2seq_odd.attn", f"{HERE}/single.attn"):
            for target in listed():
                with open(compile_spec(spec, folder, "--target", target) + ".c", encoding="utf-8") as file:
                    text = file.read()
                names = re.findall(r"^static\b[^;={}]*?(\w+)\([^;{}()]*\) \{$", text, re.M)
                used = collections.Counter(re.findall(r"\b\w+\b", text))
                found += [f"{spec} for {target}: {name}" for name in names if used[name] < 2]
                if len(names) < 10:
                    found.append(f"{spec} for {target} has {len(names)} static functions")
    return "\n".join(found) or None


def narrow(name):
    """Rows and weights in low precision compile without a warning and ask for nothing on any target of this machine's
    processor, a third of which have their turn."""
    targets = of_processor() if QUICK else in_turn(of_processor(), 3)
    with tempfile.TemporaryDirectory() as folder:
        stem = compile_spec(f"tests/differential/{name}.attn", folder, "--target", ",".join(targets))
        result(f"narrow/{name}", warnings(stem, 1 if QUICK else 2))


HALVES = """model halves {
    d_model 12
    precision weights int8 activations int8
    encoder { input features, seq <= 9, position none, layers 1 { ffn { d_ff 5 } } }
}
"""


def all_targets(folder):
    """One file for every target of the processor, whose narrow products are of half vectors."""
    path = folder + "/halves.attn"
    with open(path, "w", encoding="utf-8") as file:
        file.write(HALVES)
    stem = compile_spec(path, folder, "--target", ",".join(of_processor()))
    done = run([COMPILERS[0], "-std=c11", *STRICT, "-fsyntax-only", stem + ".c"])
    return done.stderr if done.returncode else None


ONE_PANEL = """model one_panel {
    d_model 8, vocab 11
    encoder { seq <= 12, input rows document 0..7
        layers 1 { attention self { heads 1, mask where document[q] == document[k] } } }
}
"""


def one_panel(folder):
    """A mask of rows by which no more keys are seen than a panel has: lists of one panel, which gcc follows."""
    path = folder + "/one_panel.attn"
    with open(path, "w", encoding="utf-8") as file:
        file.write(ONE_PANEL)
    stem = compile_spec(path, folder)
    if "shows" not in open(stem + ".c", encoding="utf-8").read():
        return "no list of panels"
    for cc in COMPILERS:
        for level in ("-O1", "-Os"):
            problem = object_of(stem, cc, [level])[0]
            if problem:
                return problem
    return None


def real_range(folder):
    """The header has a range of real numbers as the spec has it, not the digits of the doubles next to it."""
    path = folder + "/ranged.attn"
    with open(path, "w", encoding="utf-8") as file:
        file.write("model ranged { d_model 8, encoder { seq <= 4, input features, position none\n"
                   "input rows age real 0.1..0.9, layers 1 { attention self { heads 1, score s*age[k] } } } }")
    with open(compile_spec(path, folder) + ".h", encoding="utf-8") as file:
        return None if "the input age, 0.1 to 0.9 " in file.read() else "another range"


def stored_as_bf16(folder, inner=""):
    """Weights of another type than f32, in products that prefetch those of the product behind them; `inner` stands in
    the ffn, whose type may differ."""
    with open("specs/gpt2_small.attn", encoding="utf-8") as file:
        text = re.sub(r"^(model \w+ \{)", r"\1\n    precision weights bf16", file.read(), flags=re.M)
    text = text.replace("ffn { ", "ffn { " + inner)
    path = folder + "/gpt2_small.attn"
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    stem = compile_spec(path, folder)
    if "gpt2_small_next(run, " not in open(stem + ".c", encoding="utf-8").read():
        return "no product prefetches weights"
    for cc in COMPILERS:
        done = run([cc, "-std=c11", *STRICT, "-fsyntax-only", stem + ".c"])
        if done.returncode:
            return f"{cc}: {done.stderr}"
    return None


def stack_of_long_map(folder):
    """Lists of the panels of many keys are not on the stack."""
    return stack_use(compile_spec("tests/differential/map_many_keys.attn", folder))


def of_spec(spec, seq, width):
    path, packed = f"{HERE}/{spec}.attn", ("--weights", "random:5", "--embed-weights")
    with tempfile.TemporaryDirectory() as folder:
        stem = compile_spec(path, folder, *packed)
        name = os.path.basename(stem)
        result(f"{spec}/warnings", warnings(stem))
        result(f"{spec}/stack", stack_use(stem))
        result(f"{spec}/cpp", as_cpp(stem))
        result(f"{spec}/bits", same_bits(stem, folder, name, seq, width))
        if spec.endswith("full"):
            result(f"{spec}/loops", loops(stem))
        if spec == "single":
            result("single/loops", single_loops(stem))
            result("single/ways", same_ways(path, folder, name, seq, width))
        before = open(stem + ".c").read()
        compile_spec(path, folder, *packed)
        result(f"{spec}/reproducible", None if before == open(stem + ".c").read() else "two runs differ")
        if spec == "small":
            stem = compile_spec(path, folder + "/sse2", *packed, "--target", "sse2")
            result("small/bits_sse2", same_bits(stem, folder + "/sse2", name, seq, width, ["sse2"]))


def main():
    committed()
    result("two_runs", two_runs())
    result("idle_functions", idle_functions())
    with tempfile.TemporaryDirectory() as folder:
        result("all_targets", all_targets(folder))
        result("real_range", real_range(folder))
        result("one_panel", one_panel(folder))
        result("stack_of_long_map", stack_of_long_map(folder))
        result("stored_as_bf16", stored_as_bf16(folder))
        result("stored_as_bf16/mixed", stored_as_bf16(folder, "precision weights f32, "))
    if "avxvnni" in of_processor():
        result("same_code/avxvnni", same_code("avxvnni", "avx2"))
    specs = (("small_full", 8, 32), ("odd_full", 5, 35), ("small", 16, 48), ("single", 5, 16))
    jobs = [(of_spec, *spec) for spec in (specs if QUICK else in_turn(specs))]
    names = ["int8_rows", "int4_rows", "bf16_rows", "cache_int8", "experts_rows"]
    jobs += [(narrow, name) for name in in_turn(names, 5)]
    jobs += [(of_target, target) for target in in_turn(sorted({*of_processor()} - {"scalar", "avxvnni"}), 4)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        submitted = [pool.submit(*job) for job in jobs]
        scratch.try_all(pool, result)
        for job in submitted:
            job.result()
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
