#!/usr/bin/env python3
"""Measures what the rows of compiler/plan/rates.def state, on this machine, and prints them beside those.

Usage: measure_rates.py [TARGET]

Picoseconds of a multiply-add: the sum of the medians that `attnc bench --profile` gives for the products of
specs/minilm.attn with 64 rows in one thread, over their multiply-adds; and of a byte: what `attnc bench` says that one
core reads. ATTNC names another binary than build/attnc."""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROWS, LAYERS, WIDTH, INNER = 64, 6, 384, 1536
MULTIPLY_ADDS = ROWS * LAYERS * (4 * WIDTH * WIDTH + 2 * WIDTH * INNER)
WEIGHTS = {"DTYPE_F32": "f32", "DTYPE_BF16": "bf16", "DTYPE_F16": "f16", "DTYPE_I8": "int8", "DTYPE_I4": "int4"}
UNITS = {"ns": 1e3, "us": 1e6, "ms": 1e9, "s": 1e12}


def precision(weights, group, rows):
    text = "weights=" + WEIGHTS[weights] + (":32" if group == "true" else "")
    return text + ",activations=" + WEIGHTS[rows]


def measured(target, value):
    """Picoseconds of a multiply-add and of a byte."""
    command = [os.environ.get("ATTNC", os.path.join(ROOT, "build", "attnc")), "bench",
               os.path.join(ROOT, "specs", "minilm.attn"), "--seq", str(ROWS), "--target", target, "--precision",
               value, "--profile"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    steps = re.findall(r"^gemm +\S+ +\d+ +([\d.]+) (\w+)", text, re.M)
    read = float(re.search(r"one core reads ([\d.]+) GB/s", text).group(1))
    return sum(float(number) * UNITS[unit] for number, unit in steps) / MULTIPLY_ADDS, 1e3 / read


def main():
    target = sys.argv[1] if len(sys.argv) > 1 else "avx512vnni"
    with open(os.path.join(ROOT, "compiler", "passes", "rates.def"), encoding="utf-8") as file:
        table = re.findall(r"^RATE\((\w+), (\w+), (\w+), (\w+), ([\d.]+),", file.read(), re.M)
    for name, weights, group, rows, stated in table:
        product, byte = measured(target, precision(weights, group, rows))
        print("%-18s %5.1f ps a multiply-add (stated: %s), %.0f ps a byte" % (name, product, stated, byte), flush=True)


if __name__ == "__main__":
    main()
