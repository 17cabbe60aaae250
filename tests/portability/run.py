#!/usr/bin/env python3
"""Targets of other machines. x86/CPU: one file with all targets of x86-64 on emulated processors, see x86.py. run,
wasm/..., neon/... and so on: attnc here, the code elsewhere, see elsewhere.py. sve/CPU: one file with targets for
several lengths of registers, see lengths.py. instructions/...: how many products take, see instructions.py. isa/CC:
each row of the tables of aarch64 and RISC-V against its meaning.
emitted/NAME: the C compiles without a warning, for these and for this machine, and asks for no symbol but those that
the documentation names.
native, bits, check/NAME: attnc itself, built for aarch64, picks neon; compilers and their leave to contract do not
show; `check --small`. TAP on stdout.

What runs under an emulator takes turns with the commits: a sixth of the processors, half of the lengths of registers,
an eighth of the tables, a twelfth of the specs elsewhere, and attnc on aarch64 with every eighth one. Environment:
ATTNC_QUICK=1 leaves attnc on aarch64 out, and most specs elsewhere; ATTNC_LONG=1 takes all of them."""

import concurrent.futures
import os
import platform
import shlex
import shutil
import sys
import tempfile

import elsewhere
import instructions
import lengths
import x86
from common import (RISCV_TOOLS, STRICT, new_clang, output, report, result, riscv_clang, riscv_cpu,
                    runs, write_script)
from lib import npy
from lib.attnc import ATTNC, LONG, QUICK, ROOT, make, run
from lib.turns import has_turn, in_turn

ATTNC_AARCH64 = os.path.join(ROOT, "build/aarch64/attnc")
GCC = "aarch64-linux-gnu-gcc"
CLANG = "clang --target=aarch64-linux-gnu"
EMULATOR = "qemu-aarch64 -L /usr/aarch64-linux-gnu"
ALLOWED = {"memcpy", "memset", "memmove", "_GLOBAL_OFFSET_TABLE_"}
NEON = ["neon", "neondot", "neoni8mm"]
# Times 16 bytes of a register, of which emulated processors have 1, 2 or 4.
SVE = {"sve": 1, "sve256": 2, "sve512": 4}
RVV = {"rvv": 1, "rvv256": 2, "rvv512": 4}
EMITTED = {
    "specs/minilm.attn": ["neon"], "tests/codegen/small_full.attn": ["neon", "scalar"],
    "tests/differential/norm_post.attn": ["neon"], "tests/differential/int8_rows.attn": [*NEON, "avx2", "scalar"],
    "tests/differential/int8_rows_small.attn": [*SVE, "neon"], "tests/differential/norm_pre_rms.attn": [*SVE, "neon"],
}
CHECKED = [
    ["specs/minilm.attn", "--lengths", "1,17,33"], ["tests/differential/causal.attn"],
    ["tests/differential/windows.attn"], ["tests/differential/rope_odd.attn"],
    ["tests/differential/int8_rows.attn"], ["tests/differential/int4_rows.attn"],
]  # what elsewhere.py runs on aarch64 is asked for from here


def run_aarch64(arguments, job=0, **more):
    """attnc for aarch64, on one processor of this machine: with more, QEMU on x86 lets a load-acquire pass an earlier
    store-release, which aarch64 forbids, and threads that count on it miss a wake-up."""
    cpus = sorted(os.sched_getaffinity(0))
    pinned = ["taskset", "-c", str(cpus[job % len(cpus)]), *shlex.split(EMULATOR)]
    return run(*pinned, ATTNC_AARCH64, *arguments, **more)


def isa(cc):
    # clang contracts scalar products across statements when it is told to, whatever its pragma says
    tables = [*NEON, "scalar"] if cc == GCC else NEON
    done = run("build/unit/test_isa", *tables, env={"CC": cc, "EMULATOR": EMULATOR})
    return None if done.returncode == 0 else output(done)


def isa_sve(quads):
    """The tables of vectors that fit in registers of so many times 16 bytes."""
    tables = [name for name, least in SVE.items() if least <= quads]
    emulator = EMULATOR.replace("qemu-aarch64", f"qemu-aarch64 -cpu max,sve-max-vq={quads}")
    for cc in [GCC] + ([new_clang() + " --target=aarch64-linux-gnu"] if new_clang() else []):
        done = run("build/unit/test_isa", *tables, env={"CC": cc, "EMULATOR": emulator})
        if done.returncode or "skipped" in done.stdout:
            return cc + ": " + output(done)
    return None


def isa_rvv(quads):
    """The same for RISC-V."""
    tables = [name for name, least in RVV.items() if least <= quads]
    emulator = f"qemu-riscv64 -cpu {riscv_cpu(16 * quads)} -L /usr/riscv64-linux-gnu"
    with tempfile.TemporaryDirectory() as folder:
        cc = write_script(folder + "/cc", "exec " + shlex.join(riscv_clang()) + ' "$@"\n')
        done = run("build/unit/test_isa", *tables, env={"CC": cc, "EMULATOR": emulator})
    return None if done.returncode == 0 and "skipped" not in done.stdout else output(done)


def emitted_riscv():
    """No warning, with and without vectors; GCC 12, which has none of the intrinsics, is told so where it has to have
    them."""
    with tempfile.TemporaryDirectory() as folder:
        done = run(ATTNC, "compile", "tests/differential/int8_rows_small.attn", "-o", folder, "--target",
                   ",".join([*RVV, "scalar"]))
        if done.returncode:
            return output(done)
        source, gcc = folder + "/int8_rows_small.c", ["riscv64-linux-gnu-gcc"]
        for cc in (riscv_clang(), riscv_clang()[:2] + ["-march=rv64gc"], gcc, ["gcc"]):
            done = run(*cc, *STRICT, "-c", source, "-o", folder + "/x.o")
            if done.returncode:
                return f"{cc}: {output(done)}"
        done = run(*gcc, "-march=rv64gcv", "-E", source)
        new = int(run(*gcc, "-dumpversion").stdout.split(".")[0]) >= 13
        return None if new or "RISC-V vectors need a compiler" in done.stderr else output(done)


def riscv():
    for program in RISCV_TOOLS:
        if not shutil.which(program):
            result("riscv", skip=program + " is not there: scripts/install_packages.sh riscv")
            return
    result("emitted/riscv", emitted_riscv())


def isa_tables(compilers):
    """An eighth of the tables in turn: one by each compiler for aarch64, one for each length of registers.
    `compilers` is empty where aarch64 cannot be emulated."""
    lengths = [4] if QUICK else [1, 2, 4]
    jobs = [("isa/" + cc.split()[0], isa, cc) for cc in compilers]
    if compilers:
        jobs += [(f"isa/sve of {16 * quads} bytes", isa_sve, quads) for quads in lengths]
    if all(shutil.which(program) for program in RISCV_TOOLS):
        jobs += [(f"isa/rvv of {16 * quads} bytes", isa_rvv, quads) for quads in lengths]
    for name, test, of in jobs if QUICK else in_turn(jobs, 8):
        result(name, test(of))


def emitted(spec, compilers):
    with tempfile.TemporaryDirectory() as folder:
        done = run(ATTNC, "compile", spec, "-o", folder, "--target", ",".join(EMITTED[spec]))
        if done.returncode:
            return output(done)
        source = next(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".c"))
        for cc in compilers:
            done = run(*shlex.split(cc), *STRICT, "-c", source, "-o", folder + "/x.o")
            if done.returncode:
                return f"{cc}: {output(done)}"
            probed = {"neondot", *SVE} & set(EMITTED[spec])
            allowed = {"U " + name for name in ALLOWED} | ({"w getauxval"} if probed else set())
            undefined = {" ".join(line.split()) for line in run("nm", "-u", folder + "/x.o").stdout.splitlines()}
            if undefined - allowed:
                return f"{cc}: undefined symbols {sorted(undefined - allowed)}"
    return None


def build():
    """(reason to skip, problem) of build/aarch64/attnc."""
    library = "build/aarch64/root/usr/lib/aarch64-linux-gnu/libzstd.so"
    if not os.path.exists(os.path.join(ROOT, library)):
        done = run("scripts/arm64_library.sh", "build/aarch64/root")
        if done.returncode:
            return done.stderr.strip(), None
    host = next(cc for cc in ("clang", "gcc", "cc") if shutil.which(cc))
    done = make(f"-j{os.cpu_count()}", "CC=" + host, "aarch64")
    return None, output(done) if done.returncode else None


def check(options, job):
    done = run_aarch64(["check", "--small", "--cc", GCC, *options], job)
    rows = {line.split()[0] for line in done.stdout.splitlines()[1:-1] if line}
    fine = done.returncode == 0 and {"neon", "scalar"} <= rows and done.stdout.rstrip().endswith("thread counts")
    return None if fine else output(done)


def native():
    spec = "tests/differential/exact_one.attn"
    listed = run_aarch64(["--targets"])
    if runs(listed.stdout) != ["scalar", "neon", "sve", "neondot", "neoni8mm", "sve256", "sve512"]:
        return "attnc --targets: " + output(listed)
    done = run_aarch64(["check", "--small", "--cc", GCC, "--target", "native", spec])
    rows = {line.split()[0] for line in done.stdout.splitlines()[1:-1] if line} - {"target"}
    return None if done.returncode == 0 and rows == {"neon"} else output(done)


def bits():
    """The same output from each compiler, as it is and with leave to contract."""
    rows = 19
    answers = {}
    with tempfile.TemporaryDirectory() as folder:
        npy.write(folder + "/tokens.npy", [7 * i % 61 for i in range(rows)])
        compilers = [GCC] + ([CLANG] if shutil.which("clang") else [])
        for cc in [cc + flags for cc in compilers for flags in ("", " -std=gnu11 -O3 -ffp-contract=fast")]:
            first, *rest = shlex.split(cc)
            with open(folder + "/cc", "w", encoding="utf-8") as file:
                file.write(f'#!/bin/sh\nexec {first} "$@" {shlex.join(rest)}\n')
            os.chmod(folder + "/cc", 0o755)
            command = ["run", "tests/codegen/small.attn", "--weights", "random:3", "--in",
                       f"tokens={folder}/tokens.npy", "--out", f"hidden={folder}/hidden.npy", "--engine", "compiled",
                       "--target", "neon"]
            done = run_aarch64(command, env={"CC": folder + "/cc"})
            if done.returncode:
                return f"{cc}: {output(done)}"
            with open(folder + "/hidden.npy", "rb") as file:
                answers.setdefault(file.read(), []).append(cc)
    return None if len(answers) == 1 else "\n".join(f"{cc} agree" for cc in answers.values())


def lacks_aarch64():
    """Why aarch64 is not emulated here, or None."""
    if platform.machine() == "aarch64":
        return "this machine is one: every other test runs on it"
    absent = [program for program in (GCC, EMULATOR.split()[0], "taskset") if not shutil.which(program)]
    return absent[0] + " is not there: scripts/install_packages.sh aarch64" if absent else None


def tests():
    if platform.machine() == "x86_64" and shutil.which(x86.EMULATOR):
        x86.tests()
    else:
        result("x86", skip=x86.EMULATOR + " is not there, or this machine is no x86-64")
    elsewhere.tests()
    lengths.tests()
    instructions.tests()
    riscv()
    compilers, lacking = [GCC] + ([CLANG] if shutil.which("clang") else []), lacks_aarch64()
    isa_tables([] if lacking else compilers)
    if lacking:
        result("aarch64", skip=lacking)
        return
    newer = [new_clang() + " --target=aarch64-linux-gnu"] if new_clang() not in (None, "clang") else []
    here = [cc for cc in ("gcc", "clang") if shutil.which(cc)]
    for spec in list(EMITTED)[:1] if QUICK else in_turn(list(EMITTED), 6):
        result("emitted/" + os.path.basename(spec), emitted(spec, compilers + newer + here))
    if QUICK or not has_turn("attnc on aarch64", 8):
        return
    skip, problem = build()
    result("build", problem, skip)
    if skip or problem:
        return
    result("native", native())
    result("bits", bits())
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        checked = CHECKED if LONG else CHECKED[::2]
        for options, problem in zip(checked, pool.map(check, checked, range(len(checked)))):
            result("check/" + os.path.basename(options[0]), problem)


def main():
    tests()
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
