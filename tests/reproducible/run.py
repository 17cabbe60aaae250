#!/usr/bin/env python3
"""--reproducible: the outputs of a model have the same bits on every target, and `attnc check` holds them against those
of the interpreter. here: on all targets of this machine, with AMX's tiles computed by functions in C, and from two
compilers. elsewhere: the code on aarch64 under QEMU and on WebAssembly under node has the bits of here.
free: without the option the same model has other bits on other targets, so that the comparison shows something.
planted: check sees a sum in another order. refused: what has no such code ends with status 3 and its place.
Speaks TAP.

Environment: ATTNC_QUICK=1 takes fewer specs; ATTNC_LONG=1 all of them, which else take turns."""
import concurrent.futures
import os
import re
import shutil
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib.attnc import QUICK, ROOT, UNOPTIMIZED, attnc, lacks_target  # noqa: E402
from lib.tap import Skip, run_tests  # noqa: E402
from lib.targets import here  # noqa: E402
from lib.turns import in_turn  # noqa: E402

DIFFERENTIAL = "tests/differential/%s.attn"
# a spec, its options, and whether its products are rounded as f32, so that they need a fused multiply-add
CASES = [
    ("specs/minilm.attn", ["--small", "--lengths", "1,17,33"], True),
    ("specs/minilm.attn", ["--small", "--lengths", "1,17,33", "--precision", "int8"], False),
    (DIFFERENTIAL % "int8_rows", ["--lengths", "1,9"], True),
    ("specs/llama2c_15m.attn", ["--small", "--lengths", "1,17"], True),
    (DIFFERENTIAL % "seq2seq_odd", ["--small", "--lengths", "1,9"], True),
    (DIFFERENTIAL % "bf16_tiles", ["--lengths", "1,17,33"], False),
    (DIFFERENTIAL % "cache_int8", ["--small", "--lengths", "1,9"], True),
    (DIFFERENTIAL % "int4_offset", ["--small", "--lengths", "1,9"], True),
    (DIFFERENTIAL % "int8_smooth", ["--lengths", "1,9"], True),
    (DIFFERENTIAL % "int8_outliers", ["--lengths", "1,9"], True),
    ("specs/small_encoder.attn", ["--precision", "weights=int8,activations=int8:smooth:5,attention=bf16"], False),
]
FUSED = {"avx2", "avxvnni", "avx512", "avx512vnni", "avx512bf16", "amx", "neon", "neondot", "neoni8mm", "sve",
         "sve256", "sve512", "rvv", "rvv256", "rvv512"}
NODE = "node " + os.path.join(ROOT, "tests/portability/wasm.mjs")
AARCH64 = ('aarch64-linux-gnu-gcc "$@"', "qemu-aarch64 -L /usr/aarch64-linux-gnu",
           ["aarch64-linux-gnu-gcc", "qemu-aarch64"])
DOTS = ["neondot", "neoni8mm"]  # differ from neon in products of integers alone
SVE = ["sve", "sve256", "sve512"]  # the emulator has registers of 64 bytes
RVV = ["rvv", "rvv256", "rvv512"]
RISCV = ('clang-16 --target=riscv64-linux-gnu -march=rv64gcv "$@"',
         "qemu-riscv64 -cpu rv64,v=true,vext_spec=v1.0,vlen=512 -L /usr/riscv64-linux-gnu",
         ["clang-16", "riscv64-linux-gnu-gcc", "qemu-riscv64"])
WAYS = [  # as tests/portability/elsewhere.py has them
    *((target, target, *AARCH64) for target in ("neon", *DOTS, *SVE)),
    *((target, target, *RISCV) for target in RVV),
    ("wasm", "wasm", 'clang --target=wasm32 -mbulk-memory -msimd128 -nostdlib -Wl,--no-entry "$@"', NODE,
     ["clang", "wasm-ld", "node"]),
]


def bits(spec, *options):
    """The hash of the outputs, which equal the interpreter's; or None for a target that this machine lacks."""
    done = attnc("check", spec, "--reproducible", "--bits", *options)
    if lacks_target(done):
        return None
    assert done.returncode == 0, "%s\n%s" % (done.stdout[-1500:], done.stderr)
    return re.search(r"^bits \w+ (\w+)$", done.stdout, re.M)[1]


def has_kernels_for(target, spec, options, fused):
    """Whether the target has reproducible code for a case, and kernels of its own in it."""
    narrow = "int8" in spec or "int8" in options or "int4" in spec
    return (target in FUSED or not fused) and (narrow or target not in DOTS)


def targets_of(fused):
    return [target for target in here() if not fused or target in FUSED]


class Reproducible:
    def __init__(self, folder):
        self.folder = folder

    def here(self, case):
        spec, options, fused = case
        found = {}
        for target in targets_of(fused):
            compiler = [] if target == "scalar" else ["--cc", UNOPTIMIZED]
            found[target] = bits(spec, "--target", target, "--threads", "3", *compiler, *options)
        best = targets_of(fused)[-1]
        found[best + " by gcc"] = bits(spec, "--target", best, "--cc", "gcc", *options) if shutil.which("gcc") else None
        found["amx, emulated"] = bits(spec, "--target", "amx", "--emulate", "--cc", UNOPTIMIZED, *options)
        found = {target: hash_of for target, hash_of in found.items() if hash_of}
        assert len(found) > 1 and len(set(found.values())) == 1, "%s: %s" % (case, found)
        return next(iter(found.values()))

    def test_here(self):
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(self.here, CASES[:3] if QUICK else in_turn(CASES, 5)))

    def test_smoothed(self):
        """The interpreter, too, multiplies rows by their vectors before it rounds them."""
        assert bits("specs/small_encoder.attn", "--target", "scalar", "--lengths", "1,5", "--precision",
                    "weights=int8,activations=int8:smooth,attention=bf16")

    def test_elsewhere(self):
        """Emulation takes ten times as long: of all pairs of a way and a case, two or three have their turn."""
        jobs, absent = [], []
        for way, target, compiler, command, tools in WAYS:
            missing = [tool for tool in tools if not shutil.which(tool)]
            if missing:
                absent.append("%s has no %s" % (way, missing[0]))
                continue
            cc = os.path.join(self.folder, way + "-cc")
            with open(cc, "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\nexec " + compiler + "\n")
            os.chmod(cc, 0o755)
            cases = [case for case in CASES if has_kernels_for(target, *case)]
            jobs += [(way, target, cc, command, *case) for case in (cases[:1] if QUICK else cases)]
        if not jobs:
            raise Skip(", ".join(absent))
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(self.elsewhere, jobs if QUICK else in_turn(jobs, len(jobs) // 2)))

    def elsewhere(self, job):
        """A case on one of WAYS has the bits of the best target of this machine."""
        way, target, cc, command, spec, options, fused = job
        there = bits(spec, "--target", target, "--cc", cc, "--run", command, *options)
        own = bits(spec, "--target", targets_of(fused)[-1], "--cc", UNOPTIMIZED, *options)
        assert there == own, "%s on %s: %s, here %s" % (spec, way, there, own)

    def test_free(self):
        """Without the option, targets with vectors of other widths sum in other orders."""
        if len(targets_of(True)) < 2:
            return
        found = {re.search(r"^bits \w+ (\w+)$", attnc("check", "specs/minilm.attn", "--small", "--bits", "--target",
                                                      target, status=0).stdout, re.M)[1]
                 for target in {targets_of(True)[0], targets_of(True)[-1]}}
        assert len(found) == 2, found

    def test_planted(self):
        """A norm whose lanes are added in another order differs from the interpreter in bits alone."""
        words = ("--reproducible", "--target", "scalar", "--precision", "int8")
        attnc("compile", DIFFERENTIAL % "norm_post", "-o", self.folder, *words, status=0)
        path = os.path.join(self.folder, "norm_post.c")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        changed, count = re.subn(r"squares0 = (\(?)squares0 \+ squares8", r"squares0 = \1squares0 + squares9", text)
        changed = re.sub(r"squares1 = (\(?)squares1 \+ squares9", r"squares1 = \1squares1 + squares8", changed)
        assert count, "no sum of squares in 16 lanes"
        with open(path, "w", encoding="utf-8") as file:
            file.write(changed)
        done = attnc("check", DIFFERENTIAL % "norm_post", "--emitted", path, "--cc", UNOPTIMIZED, *words)
        assert done.returncode == 1 and "the interpreter has the bits of" in done.stdout, done.stdout + done.stderr

    def test_refused(self):
        long = os.path.join(self.folder, "long.attn")
        with open(long, "w", encoding="utf-8") as file:
            file.write("model many_rows { d_model 8, vocab 9, export attention\n"
                       "  encoder { seq <= 600, layers 1 { attention self { heads 2 } } } }\n")
        for spec, target, part in (("specs/minilm.attn", "sse2", "has no fused multiply-add"),
                                   (DIFFERENTIAL % "exact_unrolled", "avx2", "`unroll full`"),
                                   (long, "avx2", "a map of more than 512 keys")):
            done = attnc("compile", spec, "-o", self.folder + "/none", "--reproducible", "--target", target)
            assert done.returncode == 3 and part in done.stderr, "%d: %s" % (done.returncode, done.stderr)
            assert re.search(re.escape(spec) + r":\d+:\d+: `--reproducible`: ", done.stderr), done.stderr
            assert not os.path.exists(self.folder + "/none")


if __name__ == "__main__":
    run_tests("reproducible", Reproducible)
