"""The differential suite where attnc is not: `attnc check --run` has the interpreter here and the code on WebAssembly
under node, on aarch64, RISC-V and an old x86-64 under QEMU. WAY/NAME: a spec of tests/differential, all of them with
ATTNC_LONG=1 where kernels are of this way alone. run/here: what --run says of programs that fail. wasm/...: the C for
browsers alone."""

import concurrent.futures
import glob
import os
import platform
import re
import shutil
import tempfile

from common import HERE, RISCV_TOOLS, STRICT, output, result, riscv_clang, riscv_cpu, write_script
from lib.attnc import ATTNC, LONG, QUICK, ROOT, run
from lib.turns import in_turn, rotated, turn

NODE = f"node {HERE}/wasm.mjs"
WASM = "clang --target=wasm32 -mbulk-memory"
FREE = '-nostdlib -Wl,--no-entry "$@"'  # no WASI, no library: the page imports what the program needs
LIBC = '-nodefaultlibs -Wno-unused-command-line-argument "$@" -lc'
AARCH64 = 'aarch64-linux-gnu-gcc "$@"'
QEMU_AARCH64 = "qemu-aarch64 -L /usr/aarch64-linux-gnu"
# A name, the target, how C becomes a program and how that is run, what both need, specs of which a check takes some.
WASM_TOOLS = ["clang", "wasm-ld", "node"]
AARCH64_TOOLS = ["aarch64-linux-gnu-gcc", "qemu-aarch64"]


def sve_of(*quads):
    """The command for registers of SVE of so many times 16 bytes, which take turns with the commits."""
    return f"qemu-aarch64 -cpu max,sve-max-vq={rotated(quads)} -L /usr/aarch64-linux-gnu"


def rvv_of(*quads):
    """The same for RISC-V."""
    return f"qemu-riscv64 -cpu {riscv_cpu(16 * rotated(quads))} -L /usr/riscv64-linux-gnu"


RISCV = " ".join(riscv_clang()) + ' "$@"'


WAYS = [
    ("wasm", "wasm", f"{WASM} -msimd128 {FREE}", NODE, WASM_TOOLS,
     "seq2seq_odd norm_post windows unrolled_kinds prefix patches bf16 f16 int8 int8_rows"),
    ("wasm_scalar", "scalar", f"{WASM} {FREE}", NODE, WASM_TOOLS, "seq2seq_narrow"),
    ("neon", "neon", AARCH64, QEMU_AARCH64, AARCH64_TOOLS,
     "seq2seq_odd many_keys unrolled_kinds bf16 f16 int8 int4_rows"),
    ("neondot", "neondot", AARCH64, QEMU_AARCH64, AARCH64_TOOLS, "int8_rows"),
    ("neoni8mm", "neoni8mm", AARCH64, QEMU_AARCH64, AARCH64_TOOLS, "int8_rows int4_rows int4_tiles int8_outliers"),
    ("sve", "sve", AARCH64, sve_of(1, 2, 4), AARCH64_TOOLS,
     "seq2seq_odd many_keys unrolled_kinds bf16 f16 int8 int8_rows int4_rows"),
    ("sve256", "sve256", AARCH64, sve_of(2, 4), AARCH64_TOOLS, "windows unrolled_kinds bf16_rows int4_tiles"),
    ("sve512", "sve512", AARCH64, sve_of(4), AARCH64_TOOLS, "seq2seq_narrow norm_post int8_outliers cache_mixed"),
    ("rvv", "rvv", RISCV, rvv_of(1, 2, 4), RISCV_TOOLS,
     "seq2seq_odd many_keys unrolled_kinds bf16 f16 int8 int8_rows int4_rows"),
    ("rvv256", "rvv256", RISCV, rvv_of(2, 4), RISCV_TOOLS, "windows unrolled_kinds bf16_rows int4_tiles"),
    ("rvv512", "rvv512", RISCV, rvv_of(4), RISCV_TOOLS, "seq2seq_narrow norm_post int8_outliers cache_mixed"),
    ("aarch64_scalar", "scalar", AARCH64, QEMU_AARCH64, AARCH64_TOOLS, "rope_odd"),
    ("old_x86", "sse2", 'gcc -static "$@"', "qemu-x86_64 -cpu kvm64,-sse3", ["gcc", "qemu-x86_64"], "qk_norm"),
]
WASI = ("wasi", "wasm", f"clang --target=wasm32-wasi -msimd128 {LIBC}", NODE, WASM_TOOLS, "decoder_only")
HAS_WASI = os.path.exists("/usr/lib/wasm32-wasi/libc.a")


def specs_of(way, names):
    if LONG and way != "wasi":  # kernels of their own, wasm's and neon's, meet every spec; those of here a part of them
        every = {"wasm": 1, "neon": 1, "sve": 2, "rvv": 2}.get(way, 5)
        return sorted(glob.glob(ROOT + "/tests/differential/*.attn"))[turn() % every::every]
    if QUICK:
        names = {"wasm": "norm_post", "neon": "rope_odd"}.get(way, "")
    return [f"{ROOT}/tests/differential/{name}.attn" for name in names.split()]


def check(job):
    """(name, problem) of a spec: every row of the table is there, and none of another target."""
    way, target, cc, command, spec = job
    done = run(ATTNC, "check", "--small", os.path.relpath(spec, ROOT), "--target", target, "--cc", cc,
               "--run", command)
    rows = [line.split() for line in done.stdout.splitlines()[1:-1] if line and not line.startswith("target ")]
    fine = done.returncode == 0 and rows and all(row[0] == target and row[-1] == "ok" for row in rows)
    with open(spec, encoding="utf-8") as file:
        text = file.read()
    has_states = re.search(r"^ *decoder", text, re.M) and not re.search("mask given|unroll *full", text)
    if fine and has_states and not any(row[1] == "decode" for row in rows):
        return f"{way}/{os.path.basename(spec)}", "no state was checked\n" + done.stdout[-500:]
    return f"{way}/{os.path.basename(spec)}", None if fine else output(done)


def rewritten(job):
    """(name, problem) of the tests of modules that a pass of a test has rewritten."""
    way, target, cc, command, program = job
    done = run(program, env={"CC": cc, "EMULATOR": command, "TARGET": target})
    return f"{way}/{os.path.basename(program)}", None if done.returncode == 0 else output(done)


def suites(folder):
    jobs = []
    for way, target, compiler, command, tools, names in WAYS + [WASI] if HAS_WASI else WAYS:
        absent = [tool for tool in tools if not shutil.which(tool)]
        if way == "old_x86" and platform.machine() != "x86_64":
            absent = ["an x86-64"]
        if absent:
            result(way, skip=f"{absent[0]} is not there: scripts/install_packages.sh test")
            continue
        cc = write_script(f"{folder}/{way}-cc", "exec " + compiler + "\n")
        jobs += [(check, way, target, cc, command, spec) for spec in specs_of(way, names)]
        if not QUICK:
            jobs += [(rewritten, way, target, cc, command, f"build/unit/test_{name}") for name in ("split", "rules")]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, problem in pool.map(lambda job: job[0](job[1:]), jobs if QUICK else in_turn(jobs, 12)):
            result(name, problem)


# ---------------------------------------------------------------- --run


def run_here(folder):
    """--run on this machine: `env PROGRAM`. What is wrong with the code or with the program is said."""
    spec = "tests/differential/decoder_only.attn"

    def checked(*options):
        return run(ATTNC, "check", "--small", spec, "--target", "scalar", *options)

    done = checked("--run", "env", "--cc", "gcc" if shutil.which("gcc") else "clang")
    if done.returncode or " decode " not in done.stdout:
        return output(done)
    for options, status, text in (
            (["--run", "false"], 1, "`false`: the program ended with status 1 instead of an answer"),
            (["--run", "no-such-emulator"], 1, "`no-such-emulator`: the program ended with status 127"),
            (["--run", "yes"], 1, "`yes` runs no program of this kind"),
            (["--run", "env", "--cc", "true"], 1, "`true` ends without an error, and writes no file"),
            (["--run", "env", "--cc", "false"], 1, "false does not compile the C of"),
            (["--run", "env", "--target", "native"], 2, "stands twice")):
        done = checked(*options)
        if done.returncode != status or text not in done.stderr:
            return f"{options}: not `{text}`: {output(done)}"
    done = run(ATTNC, "check", "--small", spec, "--run", "env")
    if done.returncode != 2 or "`--run` needs `--target T`" not in done.stderr:
        return "no target: " + output(done)
    return mutated(folder)


def mutated(folder):
    """A wrong number is seen, a row that is rounded wrongly, a write beside an output, and a step that is none."""
    changes = [("decoder_only", "return acc + product;", "return acc + product * 1.001f;", "FAIL"),
               ("decoder_only", "    run.weights = ctx->weights;\n",
                "    run.weights = ctx->weights;\n    if (output->hidden) output->hidden[-1] = 1;\n",
                "a write beside hidden"),
               ("int8_rows_small", "(uint8_t)(code > 0.0f ?", "(uint8_t)(code > 9.0f ?",
                "are not near those of the interpreter"),
               ("int8_rows_small", "run->on_step(run->watcher, step);", "run->on_step(run->watcher, step + 1000);",
                "`env` gives no answer of this kind")]
    for stem, old, new, want in changes:
        spec = f"tests/differential/{stem}.attn"
        done = run(ATTNC, "compile", spec, "-o", folder, "--target", "scalar")
        if done.returncode:
            return output(done)
        with open(f"{folder}/{stem}.c", encoding="utf-8") as file:
            text = file.read()
        if text.count(old) < 1:
            return f"`{old}` is not in the C"
        with open(folder + "/changed.c", "w", encoding="utf-8") as file:
            file.write(text.replace(old, new))
        done = run(ATTNC, "check", spec, "--lengths", "6", "--target", "scalar", "--run", "env", "--emitted",
                   folder + "/changed.c")
        if done.returncode != 1 or want not in done.stdout + done.stderr:
            return f"`{new}` is not seen: {output(done)}"
        if want == "FAIL" and not re.search(r"again: attnc check .* --run 'env'$", done.stdout, re.M):
            return "the command that shows it again is not there: " + output(done)
    return None


# ---------------------------------------------------------------- the C of wasm


def compiled(folder):
    """The C for browsers alone, with and without vectors, asks for nothing and warns of nothing."""
    spec = "specs/minilm.attn" if not QUICK else "tests/differential/norm_post.attn"
    for flags in ([], ["-msimd128"], ["-msimd128", "-std=c11", "-O3", "-ffp-contract=fast"]):
        own = f"{folder}/c{len(flags)}"
        done = run(ATTNC, "compile", spec, "-o", own, "--target", "wasm,scalar")
        source = glob.glob(own + "/*.c")
        if done.returncode or len(source) != 1:
            return output(done)
        done = run("clang", "--target=wasm32", "-mbulk-memory", *STRICT, *flags, "-c", source[0], "-o", own + "/x.o")
        if done.returncode:
            return output(done)
        with open(own + "/x.o", "rb") as file:
            code = file.read()
        model = os.path.basename(source[0])[:-2]
        for target in ("wasm", "scalar"):
            if (f"{model}_{target}_forward_chunk".encode() in code) != (target == "scalar" or "-msimd128" in flags):
                return f"{flags}: the target {target} is not as it should be"
        done = run("wasm-ld", "--no-entry", "--export-all", own + "/x.o", "-o", own + "/x.wasm")
        if done.returncode:
            return "it asks for symbols: " + output(done)
    return None


def compile_large(folder, vocab):
    with open(folder + "/large.attn", "w", encoding="utf-8") as file:
        file.write(f"model large {{ d_model 4096, vocab {vocab}\n"
                   "encoder { seq <= 128, position none, layers 1 { attention self { heads 32 } } } }\n")
    return run(ATTNC, "compile", folder + "/large.attn", "-o", folder, "--target", "scalar")


THREADS = r"""
#include "large.h"
static void none(void *pool, int count, void (*task)(void *with, int index), void *with) {
    (void)pool, (void)count, (void)task, (void)with;
}
__attribute__((export_name("serve"))) int serve(void) {
    static _Alignas(64) unsigned char weights[64];
    large_ctx model;
    large_options options = {.size = sizeof options, .threads = 3000, .parallel_for = none};
    const int some = large_init(&model, weights, LARGE_WEIGHTS_BYTES, &options);
    options.threads = 4096;
    const int many = large_init(&model, weights, LARGE_WEIGHTS_BYTES, &options);
    return some == LARGE_BAD_WEIGHTS && many == LARGE_BAD_ARGUMENT ? 21 : some * 10 + many;
}
"""


def large(folder):
    """Of 32 bits: weights of 2.3 GB are refused by the compiler; with 1.9 GB, so many threads that the size of their
    workspace would begin again at 0 are refused by init."""
    if compile_large(folder, 140000).returncode:
        return "it is not written"
    done = run("clang", "--target=wasm32", "-c", folder + "/large.c", "-o", folder + "/x.o")
    if done.returncode == 0 or "are more than the memory of such a machine" not in done.stderr:
        return "weights of 2.3 GB are compiled for 32 bits: " + output(done)
    done = run("clang", "-c", *STRICT, folder + "/large.c", "-o", folder + "/x.o")
    if done.returncode or compile_large(folder, 100000).returncode:
        return output(done)
    with open(folder + "/threads.c", "w", encoding="utf-8") as file:
        file.write(THREADS)
    done = run("clang", "--target=wasm32", "-mbulk-memory", *STRICT, "-nostdlib", "-Wl,--no-entry",
               folder + "/threads.c", folder + "/large.c", "-o", folder + "/threads.wasm")
    if done.returncode == 0:
        done = run(*NODE.split(), folder + "/threads.wasm")
    return None if done.returncode == 21 else output(done)


def isa(folder):
    """Each row of the table against its meaning, under node."""
    if not HAS_WASI:
        return None, "wasi-libc is not there: scripts/install_packages.sh test"
    compiler = "clang --target=wasm32-wasi -msimd128 " + LIBC
    cc = write_script(folder + "/isa-cc", "exec " + compiler + "\n")
    tables = ["wasm"] if QUICK else ["wasm", "scalar"]
    done = run("build/unit/test_isa", *tables, env={"CC": cc, "EMULATOR": NODE})
    return (None if done.returncode == 0 and "skipped" not in done.stdout else output(done)), None


def embedded(folder):
    """Weights of more than 1 MB stand in the module as they are in the file, at a multiple of 64."""
    spec = folder + "/mid.attn"
    with open(spec, "w", encoding="utf-8") as file:
        file.write("model mid { d_model 64, vocab 5000\n"
                   "encoder { seq <= 9, position none, layers 1 { attention self { heads 4 } } } }\n")
    done = run(ATTNC, "compile", spec, "-o", folder, "--target", "wasm", "--weights", "random:1", "--embed-weights")
    if done.returncode:
        return output(done)
    module = folder + "/mid.wasm"
    done = run("clang", "--target=wasm32", "-msimd128", "-mbulk-memory", "-O2", "-nostdlib", "-Wl,--no-entry",
               "-Wl,--export=mid_embedded", folder + "/mid.c", folder + "/mid_weights.S", "-I", folder, "-o", module)
    if done.returncode:
        return output(done)
    script = """
        const fs = require("fs");
        WebAssembly.instantiate(fs.readFileSync(process.argv[1])).then(({instance}) => {
            const at = instance.exports.mid_embedded(), weights = fs.readFileSync(process.argv[2]);
            const there = Buffer.from(instance.exports.memory.buffer).subarray(at, at + weights.length);
            console.log(at % 64, weights.length > 1 << 20, Buffer.compare(there, weights));
        });"""
    done = run("node", "-e", script, module, folder + "/mid.attnw")
    return None if done.stdout == "0 true 0\n" else output(done)


# ---------------------------------------------------------------- the rates of explain and bench


def peak(folder):
    """The rate of multiply-adds is measured for each length of vectors that the processor has."""
    absent = [tool for tool in AARCH64_TOOLS if not shutil.which(tool)]
    if absent:
        return None, f"{absent[0]} is not there: scripts/install_packages.sh test"
    done = run("aarch64-linux-gnu-gcc", "-O2", "-D_GNU_SOURCE", *STRICT, "-static", ROOT + "/tests/portability/peak.c",
               ROOT + "/compiler/commands/peak.c", "-o", folder + "/peak")
    for width in (4, 8, 16):
        if done.returncode == 0:
            done = run("qemu-aarch64", "-cpu", "max,sve-max-vq=4", folder + "/peak", str(width))
        if done.returncode or int(done.stdout) < 1000000:
            return f"{width} numbers: {output(done)}", None
    return None, None


def tests():
    with tempfile.TemporaryDirectory() as folder:
        result("run/here", run_here(folder))
        result("peak", *peak(folder))
        absent = [tool for tool in WASM_TOOLS if not shutil.which(tool)]
        if absent:
            result("wasm", skip=absent[0] + " is not there: scripts/install_packages.sh test")
        else:
            result("wasm/compiled", compiled(folder))
            result("wasm/isa", *isa(folder))
            for test in () if QUICK else (large, embedded):
                result("wasm/" + test.__name__, test(folder))
        suites(folder)
