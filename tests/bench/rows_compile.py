"""What compiling costs: attnc on every spec, and C compilers on what it writes."""
import glob
import os
import platform
import shutil
import statistics
import subprocess
import tempfile
import time

from lib.targets import of_processor
from programs import build
from rows import Bar, NotRun

RUNS = 3


def timed(command):
    begin = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().split("\n")[0][:160])
    return time.perf_counter() - begin


class Figures:
    """Lines and bars of this row, in the form that report.py takes."""
    def __init__(self):
        self.lines, self.bars, self.wrong = [], [], []

    def line(self, name, figure, unit, failure=None):
        self.lines.append({"name": name, "ours": True, "figure": figure, "unit": unit, "failure": failure})

    def bar(self, text, value, needed):
        self.bars.append(Bar(text, needed, lambda _: value, most=True).judge(None))


def attnc_times(figures, context, folder):
    times, refused = {}, {}
    for spec in sorted(glob.glob(os.path.join(context.root, "specs", "*.attn"))):
        name = os.path.basename(spec)[:-5]
        try:
            times[name] = statistics.median(timed([build.ATTNC, "compile", spec, "-o", folder]) for _ in range(RUNS))
        except RuntimeError as error:
            refused[name] = str(error)
            figures.wrong.append("%s: %s" % (name, error))
    slowest = max(times, key=times.get)
    figures.line("attnc, %d specs" % len(times), statistics.median(times.values()) * 1e3, "ms, the median spec")
    figures.line("attnc, slowest", times[slowest] * 1e3, "ms, " + slowest)
    figures.bar("slowest spec, ms", times[slowest] * 1e3, 50)


def compile_c(figures, cc, source, label, needed=None):
    if not shutil.which(cc):
        figures.line(label, None, "s", cc + " is not there")
        return
    try:
        took = timed([cc, "-std=c11", "-O2", "-c", source, "-o", source + ".o"])
    except RuntimeError as error:
        figures.line(label, None, "s", str(error))
        figures.wrong.append(label + ": " + str(error))
        return
    figures.line(label, took, "s")
    if needed:
        figures.bar(label + ", s", took, needed)


def size_of_c(figures, source, label, most):
    kilobytes = os.path.getsize(source) / 1e3
    figures.line(label, kilobytes, "kB")
    figures.bar(label + ", kB", kilobytes, most)


def narrow_for_all(figures, context, folder):
    """MiniLM in int8 for all x86 targets in one file."""
    build.run([build.ATTNC, "compile", context.spec("minilm"), "-o", folder + "/int8", "--precision", "int8",
               "--target", ",".join(of_processor())])
    source = os.path.join(folder, "int8", "minilm.c")
    size_of_c(figures, source, "MiniLM's C in int8, all x86", 1100)
    compile_c(figures, "clang", source, "MiniLM in int8, all x86, by clang -O2", 25)


def row(context, name):
    if not shutil.which("clang"):
        raise NotRun("needs clang")
    figures, core = Figures(), context.row_cores(1)
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, core)
    try:
        with tempfile.TemporaryDirectory() as folder:
            attnc_times(figures, context, folder)
            source = os.path.join(folder, "minilm.c")
            size_of_c(figures, source, "MiniLM's C", 500)
            compile_c(figures, "clang", source, "MiniLM by clang -O2", 15)
            if platform.machine() == "x86_64":
                narrow_for_all(figures, context, folder)
            if not context.quick:
                compile_c(figures, "gcc", source, "MiniLM by gcc -O2")
                build.run([build.ATTNC, "compile", context.spec("small_d32"), "-o", folder, "--unroll", "full",
                           "--target", context.meter.target])
                for cc in ("clang", "gcc"):
                    compile_c(figures, cc, os.path.join(folder, "small_d32.c"), "d 32 full by %s -O2" % cc, 60)
    finally:
        os.sched_setaffinity(0, before)
    first = figures.lines[0]["name"]
    return {"name": name, "title": "time to compile, on one core", "unit": "", "threads": 1,
            "contestants": figures.lines,
            "note": "all targets, but of `--unroll full` %s alone" % context.meter.target, "bars": figures.bars,
            "own": first, "best_peer": None, "ratio": None, "wrong": figures.wrong, "not_run": None}


ROWS = {"compile": row}
