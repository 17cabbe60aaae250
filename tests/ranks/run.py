#!/usr/bin/env python3
"""bits/NAME: `attnc check --small --ranks N` of specs of specs/, tests/families/ and tests/differential/: a model that
2, 3, 5 or 7 ranks share has the bits of one process, in f32, bf16 and int8 and with --reproducible. host/…: an
application with a collective of its own, compiled without a warning, which meets wrong weights and a collective that
fails. memory/NAME: a rank's file has its share of the weights. refused/…: wrong command lines and files. Speaks TAP.

Environment: ATTNC_QUICK=1 tries few specs, ATTNC_LONG=1 all with every number of ranks; else a part of them, each with
one number of ranks and one precision, in turn with the commits."""
import concurrent.futures
import glob
import os
import re
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib.attnc import COMPILERS, LONG, QUICK, ROOT, UNOPTIMIZED, attnc, lacks_target, run, said  # noqa: E402
from lib.tap import Report  # noqa: E402
from lib.targets import here  # noqa: E402
from lib.turns import in_turn, rotated, turn  # noqa: E402

FOLDERS = ("specs", "tests/families", "tests/differential")
RANKS = (2, 3, 5, 7)
HOW = ((), ("--precision", "int8"), ("--precision", "bf16"), ("--reproducible",))
STRICT = "-std=c11 -O2 -Wall -Wextra -Wconversion -Wshadow -Werror -pthread".split()
# a decoder whose widths several ranks share, with more heads than heads of keys
DECODER = """model NAME { d_model 48, decoder { vocab 97, seq <= 24, layers 2 {
    attention self { heads 6, kv_heads 2, head_dim 8, norm pre, position rope }
    ffn { d_ff 80, activation silu gated, norm pre } } }
    head logits }
"""

report = Report("ranks")


def jobs():
    """(spec, ranks, options, target) of each check."""
    specs = [spec for folder in FOLDERS for spec in sorted(glob.glob(folder + "/*.attn", root_dir=ROOT))]
    targets = sorted(here())
    if LONG:
        return [(spec, ranks, how, rotated(targets, at)) for at, spec in enumerate(specs) for ranks in RANKS
                for how in HOW]
    drawn = [(spec, rotated(RANKS, at), rotated(HOW, at // 4), rotated(targets, at)) for at, spec in enumerate(specs)]
    return drawn[turn() % 60::60] if QUICK else in_turn(drawn, 16)


def check(spec, ranks, how, target):
    """A name, what is wrong, and why the machine or the generator cannot try it."""
    name = "bits/%s_of_%d%s/%s" % (os.path.splitext(os.path.basename(spec))[0], ranks, "_".join(("", *how)), target)
    done = attnc("check", spec, "--small", "--ranks", str(ranks), "--threads", "1", "--target", target, "--cc",
                 UNOPTIMIZED, *how)
    if lacks_target(done):
        return name, None, lacks_target(done).replace("attnc: error: ", "")
    # some specs cannot be stated in every precision
    if done.returncode and how and re.search(r"the same in all of|states `precision`|shows nothing", said(done)):
        return name, None, said(done).strip().splitlines()[-1][:150]
    return name, None if done.returncode == 0 else said(done), None


def bits():
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, problem, skip in pool.map(lambda job: check(*job), jobs()):
            report.result(name, problem, skip)


def host(folder, compiler):
    """The host's program with the C of a decoder, whole and divided between two ranks."""
    for name, options in (("whole", ()), ("parts", ("--ranks", "2"))):
        spec = os.path.join(folder, name + ".attn")
        with open(spec, "w", encoding="utf-8") as file:
            file.write(DECODER.replace("NAME", name))
        attnc("compile", spec, "-o", folder, "--weights", "random:5", "--runtime", *options, status=0)
    other = os.path.join(folder, "other.attnw")
    attnc("pack", os.path.join(folder, "parts.attn"), "--weights", "random:6", "--ranks", "2", "-o", other, status=0)
    program = os.path.join(folder, "host_" + compiler)
    sources = [os.path.join(folder, name) for name in ("whole.c", "parts.c", "attn_runtime.c")]
    run(compiler, *STRICT, "-I", folder, os.path.join(ROOT, "tests", "ranks", "host.c"), *sources, "-o", program,
        status=0)
    files = [os.path.join(folder, name) for name in ("whole.attnw", "parts.0.attnw", "parts.1.attnw", "other.1.attnw")]
    done = run(program, *files, timeout=60)
    assert done.returncode == 0, said(done)
    report.program("host/%s/" % compiler, done.stdout)


def memory(spec, ranks):
    """The largest file of a rank has 1/N of the weights, 5 % of all, and a panel of each matrix."""
    with tempfile.TemporaryDirectory() as folder:
        whole = os.path.join(folder, "whole.attnw")
        attnc("pack", spec, "--weights", "random:1", "-o", whole, status=0)
        attnc("pack", spec, "--weights", "random:1", "--ranks", str(ranks), "-o", os.path.join(folder, "part.attnw"),
              status=0)
        files = [os.path.join(folder, "part.%d.attnw" % rank) for rank in range(ranks)]
        most, all_bytes = max(os.path.getsize(name) for name in files), os.path.getsize(whole)
        unit = 16 / 288  # a panel of the narrowest matrix
        assert most <= all_bytes * (1 / ranks + 0.05 + unit), "%d of %d bytes" % (most, all_bytes)


def refused(name, words, status, message):
    done = attnc(*words)
    problem = None
    if done.returncode != status or message not in done.stderr:
        problem = "status %d, expected %d\n%s" % (done.returncode, status, said(done)[:1500])
    report.result("refused/" + name, problem)


def command_lines(folder):
    spec, out = os.path.join(ROOT, "specs", "small_encoder.attn"), os.path.join(folder, "out")
    refused("none", ("compile", spec, "-o", out, "--ranks", "0"), 2, "`--ranks` wants an integer from 1 to 1024")
    refused("many", ("check", spec, "--ranks", "1025"), 2, "`--ranks` wants an integer from 1 to 1024")
    refused("embedded", ("compile", spec, "-o", out, "--ranks", "2", "--weights", "random:1", "--embed-weights"), 2,
            "`--embed-weights`")
    fixed = os.path.join(folder, "fixed.attn")
    with open(fixed, "w", encoding="utf-8") as file:
        file.write("model fixed { d_model 48, encoder { vocab 97, seq = 4, layers 1 { ffn { d_ff 40 } } } }")
    refused("unrolled", ("compile", fixed, "-o", out, "--ranks", "2", "--unroll", "full"), 3, "several ranks share")
    refused("verified", ("pack", spec, "--ranks", "2", "--weights", "x.attnw", "--verify"), 2, "`--verify`")
    refused("elsewhere", ("check", spec, "--ranks", "2", "--target", "avx2", "--run", "env"), 2, "`--ranks`")
    packed = os.path.join(folder, "p.attnw")
    attnc("pack", spec, "--ranks", "2", "--weights", "random:1", "-o", packed, status=0)
    refused("file_of_a_rank", ("pack", spec, "--weights", os.path.join(folder, "p.1.attnw"), "-o", packed), 1,
            "p.1.attnw")


def main():
    bits()
    with tempfile.TemporaryDirectory() as folder:
        for compiler in COMPILERS:
            report.guard("host/" + compiler, host, folder, compiler)
        command_lines(folder)
    for name, ranks in (("specs/llama2c_15m.attn", 4), ("specs/minilm.attn", 2)):
        report.attempt("memory/%s_of_%d" % (os.path.basename(name)[:-5], ranks), memory, name, ranks)
    return report.finish()


sys.exit(main())
