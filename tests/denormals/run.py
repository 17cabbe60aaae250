#!/usr/bin/env python3
"""NAME/TARGET: `attnc check --small --denormals` of every spec of specs/, tests/families/ and tests/differential/: by
the record that x86-64 keeps, calls of 1 to 33 rows and rows appended to states neither make nor read denormal numbers,
whatever stood in their memory before (here denormal numbers). planted/…: a denormal number in a weight, in a kernel,
and in columns that a kernel leaves as they were, is seen and its step named. Speaks TAP.

Environment: ATTNC_QUICK=1 tries few specs, ATTNC_LONG=1 all on every target, optimized; else an eighth of them, each on
one target, in turn with the commits."""
import array
import concurrent.futures
import glob
import os
import platform
import re
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import safetensors  # noqa: E402
from lib.attnc import LONG, QUICK, ROOT, UNOPTIMIZED, attnc, lacks_target, said  # noqa: E402
from lib.tap import Report  # noqa: E402
from lib.targets import here  # noqa: E402
from lib.turns import in_turn, rotated, turn  # noqa: E402

FOLDERS = ("specs", "tests/families", "tests/differential")
MODEL = "tests/differential/norm_post.attn"  # rows of 35 columns, in memory of 48

report = Report("denormals")


def jobs():
    """(spec, target) of each check."""
    specs = [spec for folder in FOLDERS for spec in sorted(glob.glob(folder + "/*.attn", root_dir=ROOT))]
    targets = sorted(here())
    if LONG:
        return [(spec, target) for spec in specs for target in targets]
    paired = [(spec, rotated(targets, at)) for at, spec in enumerate(specs)]
    return paired[turn() % 40::40] if QUICK else in_turn(paired, 8)


def check(spec, target):
    """A name, what is wrong, and why the machine or the generator cannot try it."""
    cheap = [] if LONG or target == "scalar" else ["--cc", UNOPTIMIZED]
    done = attnc("check", spec, "--small", "--denormals", "--target", target, *cheap)
    name = "%s/%s" % (os.path.splitext(os.path.basename(spec))[0], target)
    if lacks_target(done):
        return name, None, lacks_target(done).replace("attnc: error: ", "")
    calls = re.search(r"no denormal number is made or read in (\d+) calls", done.stdout)
    return name, None if done.returncode == 0 and calls and int(calls[1]) else said(done), None


def specs():
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, problem, skip in pool.map(lambda job: check(*job), jobs()):
            report.result(name, problem, skip)


# ---------------------------------------------------------------- planted


def must_see(expected, *words):
    """The check, and the command that it prints, end with 1 and say what `expected` matches."""
    done = attnc("check", MODEL, "--denormals", "--target", "scalar", "--cc", UNOPTIMIZED, *words)
    assert done.returncode == 1 and re.search(expected, done.stdout), said(done)
    again = re.search(r"^again: attnc (.*)$", done.stdout, re.M)
    assert again, said(done)
    replayed = attnc(*again[1].split())
    assert replayed.returncode == 1 and re.search(expected, replayed.stdout), said(replayed)


def in_a_weight(folder):
    path = os.path.join(folder, "planted.safetensors")
    attnc("weights", MODEL, "--weights", "random:3", "-o", path, status=0)
    header, data = safetensors.read(path)
    header.pop("__metadata__", None)
    tensors = {name: (tensor["shape"], list(array.array("f", data[slice(*tensor["data_offsets"])])))
               for name, tensor in header.items()}
    attnc("check", MODEL, "--denormals", "--target", "scalar", "--cc", UNOPTIMIZED, "--weights", path, status=0)
    tensors["encoder.layers.1.ffn.up.weight"][1][7] = 1e-39
    safetensors.write(path, tensors)
    must_see(r"length-1 .*FAIL: .*read.* by the step layer1_ffn_up", "--weights", path)


def changed(folder, pattern, change):
    """The C of MODEL with a change in every place that fits, as a file."""
    attnc("compile", MODEL, "-o", folder, "--target", "scalar", status=0)
    with open(os.path.join(folder, "norm_post.c"), encoding="utf-8") as file:
        text, n = re.subn(pattern, change, file.read())
    assert n > 0, pattern
    path = os.path.join(folder, "changed.c")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def in_a_kernel(folder):
    path = changed(folder, r"(scalar_step_layer1_ffn_up\(const \w+ \*run, int thread\) \{)",
                   r"\1 volatile float small = 1e-30f; if (thread == 0) small = small * small;")
    must_see(r"length-1 .*FAIL: a denormal number is made \(UE\) by the step layer1_ffn_up", "--emitted", path)


def in_padding(folder):
    path = changed(folder, r"to\[40\] = 0\.0f;", "")
    must_see(r"length-1 .*FAIL: .* is read \(DE\) by the step layer0_attention_output", "--emitted", path)


def in_usage(_):
    done = attnc("check", MODEL, "--denormals", "--bits")
    assert done.returncode == 2 and "compares nothing" in done.stderr, said(done)
    done = attnc("check", MODEL, "--denormals", "--case", "nothing", "--cc", UNOPTIMIZED)
    assert done.returncode == 1 and "nothing" in done.stderr, said(done)


def main():
    if platform.machine() != "x86_64":
        done = attnc("check", MODEL, "--denormals")
        report.result("refused", None if done.returncode == 3 else said(done), "only x86-64 keeps a record")
        return report.finish()
    for plant in (in_a_weight, in_a_kernel, in_padding, in_usage):
        with tempfile.TemporaryDirectory() as folder:
            report.attempt("planted/" + plant.__name__, plant, folder)
    specs()
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
