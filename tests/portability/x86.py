"""One C file with every target of x86-64 on many emulated processors: what it picks, that no instruction is illegal
there, that the bits are those of this machine, that what the processor lacks is refused where it is named, and that
`attnc --targets` names the same targets."""

import concurrent.futures
import os
import shutil
import tempfile

from common import HERE, STRICT, output, result, runs
from lib.attnc import ATTNC, NO_TARGET, QUICK, run
from lib.targets import of_processor
from lib.turns import in_turn

EMULATOR = "qemu-x86_64"
TARGETS = of_processor()
# A processor, what is picked there, and the sets of which it has no instruction. The first has SSE2 and nothing newer.
# Without XSAVE the system keeps no registers of AVX, whatever the processor says beside.
PROCESSORS = [
    ("kvm64,-sse3", "sse2", "sse3 avx avx2 fma avx512"), ("SandyBridge", "sse2", "avx2 fma avx512"),
    ("Haswell,-fma", "sse2", "fma avx512"), ("Haswell", "avx2", "avx512"),
    ("core2duo", "sse2", "avx avx2 fma avx512"), ("Nehalem", "sse2", "avx avx2 fma avx512"),
    ("IvyBridge", "sse2", "avx2 fma avx512"), ("Haswell,-avx2", "sse2", "avx2 avx512"),
    ("Haswell,-avx", "sse2", "avx avx2 fma avx512"), ("Haswell,-xsave", "sse2", "avx avx2 fma avx512"),
    ("EPYC", "avx2", "avx512"), ("max,-avx512f", "avx2", "avx512"),
]
MODELS = {"encoder": "tests/codegen/small.attn", "translator": "tests/differential/seq2seq.attn"}
if QUICK:
    del MODELS["translator"]


def build(cc, folder):
    """A problem, or None: a program for each model with all targets, and encoder2 without scalar and sse2."""
    jobs = [(name, spec, TARGETS) for name, spec in MODELS.items()]
    jobs.append(("encoder2", MODELS["encoder"], ["avx2", "avx512"]))
    for name, spec, targets in jobs:
        own = f"{folder}/{name}.d"
        done = run(ATTNC, "compile", spec, "-o", own, "--target", ",".join(targets), "--weights", "random:5",
                   "--embed-weights")
        stem = os.path.join(own, os.path.basename(spec)[:-5])
        main = f"{HERE}/{name.rstrip('2')}.c"
        if done.returncode == 0:
            done = run(cc, *STRICT, "-static", "-I", own, main, stem + ".c", "-o", f"{folder}/{name}")
        if done.returncode:
            return output(done)
    done = run(cc, *STRICT, "-static", f"{HERE}/instruction.c", "-o", folder + "/instruction")
    return output(done) if done.returncode else None


def processor(folder, natives, job):
    """A problem on one processor, or None."""
    cpu, picked, lacking = job
    listed = run(EMULATOR, "-cpu", cpu, ATTNC, "--targets")
    if listed.returncode or runs(listed.stdout) != TARGETS[: TARGETS.index(picked) + 1]:
        return "attnc --targets prints there\n" + output(listed)

    def emulated(program, *arguments):
        return run(EMULATOR, "-cpu", cpu, f"{folder}/{program}", *arguments)

    def gives(name, target, *arguments):
        done, native = emulated(name, *arguments), natives[name, target]
        if done.returncode or not done.stdout.startswith(target + "\n"):
            return f"{name} {arguments} is not done by {target}\n{done.stdout[:60]}{done.stderr}exit {done.returncode}"
        if native.returncode != NO_TARGET and done.stdout != native.stdout:
            return f"{name}: the bits of {target} are not those of this machine"
        return None

    for instructions in lacking.split():
        if emulated("instruction", instructions).returncode == 0:
            return f"it runs an instruction of {instructions}, so that nothing is shown"
    for name in MODELS:
        problem = gives(name, picked)
        for target in TARGETS[: TARGETS.index(picked) + 1] if name == "encoder" else []:
            problem = problem or gives(name, target, target)
        for target in TARGETS[TARGETS.index(picked) + 1 :]:
            refused = emulated(name, target)
            if not problem and refused.returncode != NO_TARGET:
                problem = f"{name} does not refuse {target}: " + output(refused)[-200:]
        if problem:
            return problem
    alone = emulated("encoder2")
    if picked == "sse2" and alone.returncode != NO_TARGET:
        return "AVX2 or AVX-512 alone is not refused: " + output(alone)[-200:]
    if picked == "sse2":
        return None
    return None if alone.stdout.startswith(picked + "\n") else "encoder2 picks something else: " + output(alone)[:200]


def tests():
    cc = "gcc" if shutil.which("gcc") else "clang"
    with tempfile.TemporaryDirectory() as folder:
        problem = build(cc, folder)
        if problem:
            result("x86/build", problem)
            return
        natives = {(name, target): run(f"{folder}/{name}", target) for name in MODELS for target in TARGETS}
        for (name, target), done in natives.items():
            if done.returncode not in (0, NO_TARGET):
                result("x86/build", f"{name} {target} here: {output(done)[-200:]}")
                return
        processors = PROCESSORS[:4] if QUICK else in_turn(PROCESSORS, 6)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for job, problem in zip(processors, pool.map(lambda job: processor(folder, natives, job), processors)):
                result("x86/" + job[0], problem)
        done = run(cc, *STRICT, "-mfpmath=387", "-c", f"{folder}/encoder.d/small.c", "-o", folder + "/x.o")
        refused = done.returncode != 0 and "floats that are rounded at once" in done.stderr
        if cc == "gcc":
            result("x86/387", None if refused else "it is compiled for the 387: " + output(done))
