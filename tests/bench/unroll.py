#!/usr/bin/env python3
"""What writing a model out without loops saves, and what code it takes: the measurements behind `unroll auto`.

    unroll.py [FILE]       measures small encoders on this machine's best target; writes FILE (tests/bench/unroll.csv)

Each encoder is built with `--unroll loops` and `--unroll full`; both take turns, pinned to the last core. `code` is the
machine code of the functions of the latter that one call runs; `cycles`, `saved` and `bytes` are what the model of
compiler/lower/unroll.c says (`attnc explain`), where it says something. Needs numpy."""
import csv
import os
import re
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "programs")]
import build  # noqa: E402
import machine  # noqa: E402
from peers import ours  # noqa: E402

# d_model, heads, d_ff, rows, layers
GRID = [(8, 2, 16, 1, 1), (8, 2, 16, 4, 1), (8, 2, 16, 4, 4), (8, 2, 32, 8, 2), (16, 2, 32, 1, 1), (16, 2, 32, 4, 1),
        (16, 2, 32, 4, 2), (16, 4, 64, 8, 2), (16, 4, 64, 16, 1), (32, 4, 64, 1, 1), (32, 4, 64, 1, 4),
        (32, 4, 64, 4, 1), (32, 4, 64, 8, 1), (32, 4, 64, 8, 2), (32, 4, 64, 16, 1), (48, 4, 96, 8, 1),
        (64, 4, 128, 1, 1), (64, 4, 128, 1, 2), (64, 4, 128, 4, 1), (64, 4, 128, 8, 1), (64, 4, 128, 16, 1)]
SPEC = """model %s {
    d_model %d
    norm layernorm post
    encoder {
        seq = %d, position none
        input features
        layers %d { attention self { heads %d }, ffn { d_ff %d, activation relu } }
    }
    head none
}
"""
ROUNDS, SECONDS, SAMPLE = 7, 0.1, 0.01


def code_bytes(library, target):
    symbols = build.run(["nm", "-S", library]).splitlines()
    return sum(int(s.split()[1], 16) for s in symbols if re.search(r" [tT] \w*_%s_" % target, s))


def predicted(spec, target):
    text = build.run([build.ATTNC, "explain", spec])
    line = re.search(r"^(?:one sequence)? +%s: .*" % target, text, re.M).group(0)
    said = re.search(r"about ([\d.]+) (k?)B of code; loops take ([\d.]+) % of about (\d+) cycles", line)
    if not said:
        return "-", "-", "-"
    cycles = int(said.group(4))
    return cycles, round(cycles * float(said.group(3)) / 100), \
        round(float(said.group(1)) * (1000 if said.group(2) else 1))


def measure(folder, row, target):
    d, heads, d_ff, rows, layers = row
    name = "unroll_%d_%d_%d_%d_%d" % row
    spec = os.path.join(folder, name + ".attn")
    with open(spec, "w", encoding="utf-8") as file:
        file.write(SPEC % (name, d, rows, layers, heads, d_ff))
    models = []
    for way in ("loops", "full"):
        library, weights, _ = build.build(spec, target=target, unroll=way, out=os.path.join(folder, way))
        models.append(ours.Ours({"library": library, "weights": weights, "threads": 1, "kind": "forward", "inputs": {},
                                 "outputs": {"hidden": (rows, d)}}))
        models[-1].keep("features", ours.np.random.default_rng(1).standard_normal((rows, d), ours.np.float32))
    times = [[], []]
    for turn in range(ROUNDS):
        for way in (0, 1) if turn % 2 == 0 else (1, 0):
            times[way].append(models[way].time(SECONDS, SAMPLE)[0])
    loops, full = (1e9 * statistics.median(t) for t in times)
    library = os.path.join(folder, "full", "lib%s.so" % name)
    return (*row, round(loops), round(full), code_bytes(library, target), *predicted(spec, target))


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "unroll.csv")
    folder = os.path.join(build.ROOT, "build", "bench", "unroll")
    os.makedirs(folder, exist_ok=True)
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    target = machine.best_target()
    found = []
    for row in GRID:
        found.append(measure(folder, row, target))
        print(*found[-1], flush=True)
    with open(path, "w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(("d_model", "heads", "d_ff", "rows", "layers", "loops_ns", "full_ns", "code", "cycles", "saved",
                      "bytes"))
        out.writerows(found)


if __name__ == "__main__":
    try:
        main()
    except (RuntimeError, OSError, subprocess.SubprocessError) as error:
        sys.exit(str(error))
