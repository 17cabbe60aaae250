"""instructions/PRECISION/TARGET: how many instructions the products of an encoder take on SVE and on RISC-V, beside
those of NEON with registers of the same length, counted by a plugin of qemu's."""

import re
import shutil
import tempfile

from common import HERE, RISCV_TOOLS, output, result, riscv_clang, riscv_cpu
from lib.attnc import ATTNC, QUICK, run
from lib.turns import in_turn

SPEC = HERE + "/products.attn"
PRECISIONS = ["f32", "weights=bf16", "weights=f16", "weights=int8,activations=int8", "weights=int4:32,activations=int8"]
# A target, its compiler and its emulator. gcc 12 has no vectors of RISC-V, and clang 14 none of SVE.
WAYS = {"neon": (["aarch64-linux-gnu-gcc"], ["qemu-aarch64", "-cpu", "max,sve-max-vq=1"]),
        "sve": (["aarch64-linux-gnu-gcc"], ["qemu-aarch64", "-cpu", "max,sve-max-vq=1"]),
        "rvv": (riscv_clang(), ["qemu-riscv64", "-cpu", riscv_cpu(16)])}
TOOLS = ["aarch64-linux-gnu-gcc", "qemu-aarch64", *RISCV_TOOLS]
MOST = 1.3  # times those of NEON
# Kernels of products, and the steps into which a compiler may put them.
PRODUCT = re.compile(r"_gemm_|_step_layer0_(attention_query_key_value|attention_output|ffn_up|ffn_down)$")


def counted(folder, precision, target):
    """The number of instructions, or None with the reason."""
    cc, emulator = WAYS[target]
    program = f"{folder}/{target}"
    done = run(ATTNC, "compile", SPEC, "-o", folder, "--target", target, "--weights", "random:5", "--embed-weights",
               "--precision", precision)
    if done.returncode == 0:
        done = run(*cc, "-std=c11", "-O2", "-static", "-w", "-I", folder, HERE + "/products.c",
                   folder + "/products.c", "-o", program)
    if done.returncode:
        return None, output(done)
    ranges = []
    for line in run("nm", "-S", "--defined-only", program, status=0).stdout.splitlines():
        words = line.split()
        if len(words) == 4 and PRODUCT.search(words[3].split(".")[0]):
            begin = int(words[0], 16)
            ranges += ["from=%d" % begin, "to=%d" % (begin + int(words[1], 16))]
    done = run(*emulator, "-plugin", ",".join([folder + "/count.so", *ranges]), "-d", "plugin", program, target)
    count = re.search(r"counted (\d+)", output(done))
    return (int(count[1]), None) if done.returncode == 0 and count and ranges else (None, output(done))


def compare(folder, precision):
    neon, why = counted(folder, precision, "neon")
    for target in ("sve", "rvv"):
        name = f"instructions/{precision}/{target}"
        count, problem = (None, why) if neon is None else counted(folder, precision, target)
        if count is None:
            result(name, problem or "no count")
            continue
        ratio = count / neon
        note = "%d, %.2f times the %d of NEON" % (count, ratio, neon)
        result(name, None if ratio <= MOST else note + "; at most %.2f are wanted" % MOST, note=note)


def tests():
    lacking = [tool for tool in TOOLS if not shutil.which(tool)]
    if not lacking and "-plugin" not in run("qemu-aarch64", "--help").stdout:
        lacking = ["a qemu-user with plugins"]
    if lacking:
        result("instructions", skip="needs " + " ".join(lacking))
        return
    with tempfile.TemporaryDirectory() as folder:
        run("cc", "-O2", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", HERE + "/count.c", "-o",
            folder + "/count.so", status=0)
        for precision in PRECISIONS[:1] if QUICK else in_turn(PRECISIONS, 5):
            compare(folder, precision)
