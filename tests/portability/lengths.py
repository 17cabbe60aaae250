"""One C file with targets for several lengths of registers, on emulated processors: what it picks, that a target has
the same bits on each of them, and that what the processor lacks is refused where it is named. Half of KINDS takes its
turn with the commits."""

import concurrent.futures
import os
import shutil
import tempfile

from common import HERE, RISCV_TOOLS, STRICT, output, result, riscv_clang, riscv_cpu
from lib.attnc import ATTNC, NO_TARGET, QUICK, run
from lib.turns import in_turn

SPEC = "tests/codegen/small.attn"
# Targets from the best one on, a compiler, an emulator, what both need; and processors with the number of targets that
# each runs.
SVE = (["sve512", "sve256", "sve", "neon"], ["aarch64-linux-gnu-gcc"], "qemu-aarch64",
       ["aarch64-linux-gnu-gcc", "qemu-aarch64"],
       [("cortex-a72", 1), ("max,sve-max-vq=1", 2), ("max,sve-max-vq=2", 3), ("max,sve-max-vq=4", 4),
        ("max,sve=off", 1), ("max,sve-max-vq=3", 3), ("max,sve-max-vq=8", 4), ("max,sve-max-vq=16", 4)])
# Without vectors of the compiler's own, the program runs on processors that lack them.
RVV = (["rvv512", "rvv256", "rvv", "scalar"],
       [*riscv_clang(), "-fno-vectorize", "-fno-slp-vectorize", "-mno-implicit-float"], "qemu-riscv64", RISCV_TOOLS,
       [("rv64,v=false", 1), *((riscv_cpu(16 * n), count) for n, count in ((1, 2), (2, 3), (4, 4), (8, 4)))])
# Groups of registers hold the vectors of f16 weights in another way if registers are longer than vectors.
KINDS = [("sve", "f32", *SVE), ("rvv", "f32", *RVV), ("rvv_f16", "weights=f16", *RVV)]


def processor(program, emulator, targets, job):
    """(problem, {target: the bits}) of one processor that runs the last `count` targets."""
    cpu, count = job
    lacking, there = targets[: len(targets) - count], targets[len(targets) - count :]
    bits = {}
    for target in (None, *targets):
        done = run(emulator, "-cpu", cpu, program, *([target] if target else []))
        if target in lacking:
            if done.returncode != NO_TARGET:
                return f"it does not refuse {target}: {output(done)[-200:]}", bits
            continue
        if done.returncode or not done.stdout.startswith((target or there[0]) + "\n"):
            return f"it is not done by {target or there[0]}: {output(done)[-200:]}", bits
        bits[target or there[0]] = done.stdout
    return None, bits


def check(kind, folder):
    name, precision, targets, cc, emulator, _, processors = kind
    done = run(ATTNC, "compile", SPEC, "-o", folder, "--target", ",".join(targets), "--weights", "random:5",
               "--embed-weights", "--precision", precision)
    program = f"{folder}/{name}"
    if done.returncode == 0:
        done = run(*cc, *STRICT, "-static", "-I", folder, HERE + "/encoder.c", folder + "/small.c", "-o", program)
    if done.returncode:
        result(name + "/build", output(done))
        return
    first = {}
    tried = processors[:4] if QUICK else processors[:4] + in_turn(processors[4:])
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda job: processor(program, emulator, targets, job), tried)
        for (cpu, _), (problem, bits) in zip(tried, found):
            for target, text in bits.items():
                if first.setdefault(target, text) != text:
                    problem = problem or f"the bits of {target} are not those of another processor"
            result(f"{name}/{cpu}", problem)


def tests():
    for kind in KINDS if QUICK else in_turn(KINDS):
        name, *_, tools, _ = kind
        absent = [tool for tool in tools if not shutil.which(tool)]
        if absent:
            result(name, skip=f"{absent[0]} is not there: scripts/install_packages.sh test")
            continue
        with tempfile.TemporaryDirectory() as folder:
            check(kind, folder)
