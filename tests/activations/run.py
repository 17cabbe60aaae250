#!/usr/bin/env python3
"""NAME/TARGET: each activation of model/activations.def as the emitted C computes it on each target of this machine,
against the interpreter, one number a row: over ordinary numbers, far tails, denormals, the largest numbers, infinities
and NaN. The difference is at most BOUNDS' share of the result and an absolute part, below which math.c.tmpl says that
the function gives 0. NaN equals only NaN, and an infinity only itself. TAP on stdout."""
import math
import os
import re
import struct
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from lib import npy, safetensors  # noqa: E402
from lib.attnc import ROOT, attnc  # noqa: E402
from lib.tap import Report  # noqa: E402
from lib.targets import here  # noqa: E402

TINY = 2.0 ** -124  # products of smaller numbers lose bits
BOUNDS = {"relu": (0, 0), "relu2": (1e-7, TINY), "gelu": (1e-5, TINY), "gelu_tanh": (2e-5, TINY),
          "silu": (1e-5, 8 * TINY), "quick_gelu": (1e-5, 8 * TINY), "sigmoid": (1e-5, 8 * TINY)}
DEFAULT_BOUND = (1e-6, TINY)
SPEC = """model one { d_model 1, norm none, final_norm no
    encoder { input features, seq <= %d, position none
        layers 1 { ffn { d_ff 1, activation %s, bias none, residual no } } } }
"""


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def numbers():
    ordinary = [i / 64 for i in range(-64 * 14, 64 * 14 + 1)] + [i / 8 for i in range(-800, 801)]
    powers = [sign * 1.37 * 2.0 ** e for e in range(-149, 127) for sign in (1, -1)]
    edges = [0.0, -0.0, 2.0 ** -149, -2.0 ** -149, f32(3.4028234e38), f32(-3.4028234e38), math.inf, -math.inf, math.nan]
    return [f32(x) for x in ordinary + powers + edges]


def fault(given, found, wanted, bound):
    """What is wrong with one result, or None."""
    if math.isnan(wanted) or math.isinf(wanted):
        right = found == wanted or (math.isnan(wanted) and math.isnan(found))
    else:
        right = abs(found - wanted) <= bound[0] * abs(wanted) + bound[1]
    return None if right else "f(%r) is %r, not %r" % (given, found, wanted)


def main():
    report = Report("activations")
    with open(os.path.join(ROOT, "compiler/model/activations.def"), encoding="utf-8") as file:
        kinds = re.findall(r"^ACTIVATION\((\w+),", file.read(), re.M)
    given = numbers()
    with tempfile.TemporaryDirectory() as folder:
        names = "one.attn", "w.safetensors", "x.npy", "y.npy"
        spec, weights, array, out = (os.path.join(folder, name) for name in names)
        one = {"encoder.layers.0.ffn.%s.weight" % part: ((1, 1), [1]) for part in ("up", "down")}
        safetensors.write(weights, one)
        npy.write(array, given, (len(given), 1), "<f4")

        def results(*engine):
            attnc("run", spec, "--weights", weights, "--in", "features=" + array, "--out", "hidden=" + out, *engine,
                  status=0)
            return npy.read(out).numbers

        for kind in kinds:
            with open(spec, "w", encoding="utf-8") as file:
                file.write(SPEC % (len(given), kind))
            wanted = results("--engine", "interp")
            for target in here():
                found = results("--engine", "compiled", "--target", target)
                faults = [fault(*row, BOUNDS.get(kind, DEFAULT_BOUND)) for row in zip(given, found, wanted)]
                faults = [text for text in faults if text]
                told = "%d of %d: %s" % (len(faults), len(given), "; ".join(faults[:5]))
                report.result("%s/%s" % (kind, target), told if faults else None)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
