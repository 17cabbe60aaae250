#!/usr/bin/env python3
"""bits/NAME: `attnc check --small --ranks N` of specs of specs/, tests/families/ and tests/differential/: a model that
2, 3, 5 or 7 ranks share has the bits of one process, in f32, bf16 and int8 and with --reproducible. host/…: an
application with a collective of its own, compiled without a warning, which meets wrong weights and a collective that
fails. mpi/…: examples/cluster under mpirun writes the text of one process, and a missing rank is named. memory/NAME:
a rank's file has its share of the weights. refused/…: wrong command lines and files. Speaks TAP.

Environment: ATTNC_QUICK=1 tries few specs, ATTNC_LONG=1 all with every number of ranks; else a part of them, each with
one number of ranks and one precision, in turn with the commits."""
import concurrent.futures
import glob
import json
import os
import re
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib.attnc import ATTNC, COMPILERS, LONG, QUICK, ROOT, UNOPTIMIZED, attnc, lacks_target, run, said  # noqa: E402
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


MPIRUN = ("mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "btl_vader_single_copy_mechanism", "none")
STORY = os.path.join(ROOT, "examples", "story", "model")


def mpirun(ranks, *words, **more):
    return run(*MPIRUN, "-n", str(ranks), *words, env={"OMPI_MCA_rmaps_base_oversubscribe": "1"}, **more)


def cluster(folder, ranks):
    """The program of examples/cluster, made by its Makefile, for that many ranks."""
    out = os.path.join(folder, "parts%d" % ranks)
    made = run("make", "-C", os.path.join(ROOT, "examples", "cluster"), "RANKS=%d" % ranks, "OUT=" + out,
               "ATTNC=" + ATTNC, out + "/cluster")
    assert made.returncode == 0, said(made)
    return out


def texts_of_ranks(folder, ranks):
    """The texts are the same as those of one process, which `attnc generate` makes."""
    out = cluster(folder, ranks)
    with open(os.path.join(STORY, "expected.json"), encoding="utf-8") as file:
        cases = json.load(file)
    for case in cases[:None if LONG else 1]:
        most = str(len(case["continued"]))
        alone = attnc("generate", out + "/shared.attn", "--weights", STORY + "/model.safetensors", "--tokenizer",
                      STORY, "--text", case["text"], "--max-new", most, status=0)
        done = mpirun(ranks, out + "/cluster", out + "/shared", STORY + "/tokenizer.json", case["text"], most)
        wanted = alone.stdout.strip()
        assert done.returncode == 0 and wanted and wanted in done.stdout, "%s\nnot\n%s" % (said(done), wanted)


def files_of_others(folder):
    """A rank without its file, and too few processes, end the job with 1."""
    out = cluster(folder, 3)
    words = (out + "/cluster", out + "/shared", STORY + "/tokenizer.json", "Once")
    few = mpirun(2, *words)
    assert few.returncode == 1 and "3 ranks, and 2 processes" in few.stderr, said(few)
    os.remove(out + "/shared.1.attnw")
    lacking = mpirun(3, *words, timeout=100)
    assert lacking.returncode == 1 and "shared.1.attnw: No such file" in lacking.stderr, said(lacking)


def missing_rank(folder):
    program = os.path.join(folder, "missing")
    sources = [os.path.join(ROOT, name) for name in ("tests/ranks/missing.c", "runtime/attn_mpi.c")]
    run("mpicc", *STRICT, "-I", os.path.join(ROOT, "runtime"), *sources, "-o", program, status=0)
    done = mpirun(3, program, timeout=100)
    assert done.returncode == 1 and "rank 1 of 3 is missing" in done.stderr, said(done)
    assert "rank 2 of 3 is missing" not in done.stderr and "rank 0 of 3 is missing" not in done.stderr, said(done)


def mpi(folder):
    if not shutil.which("mpicc") or not shutil.which("mpirun"):
        report.result("mpi", skip="no mpicc or no mpirun: Debian has both in libopenmpi-dev and openmpi-bin")
        return
    for ranks in (2, 3, 5, 7) if LONG else (rotated((2, 5, 7)), 3):
        report.attempt("mpi/text_of_%d" % ranks, texts_of_ranks, folder, ranks)
    report.attempt("mpi/files", files_of_others, folder)
    report.attempt("mpi/missing_rank", missing_rank, folder)


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
        mpi(folder)
    for name, ranks in (("specs/llama2c_15m.attn", 4), ("specs/minilm.attn", 2)):
        report.attempt("memory/%s_of_%d" % (os.path.basename(name)[:-5], ranks), memory, name, ranks)
    return report.finish()


sys.exit(main())
