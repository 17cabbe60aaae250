"""What this machine is, and what one of its cores can do."""
import ctypes
import os
import platform
import re
import subprocess

import env
import programs.build as lib_build

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
WIDTHS = {"scalar": 1, "neon": 4, "avx2": 8, "avx512": 16}  # of vectors, as the tables of the targets say
SHOWN_FLAGS = ("avx2", "fma", "avx512f", "avx512dq", "avx512vl", "avx512_vnni", "avx512_bf16", "amx_int8", "asimd")


def first_line(command):
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              check=False).stdout.split("\n")[0].strip()
    except OSError:
        return "none"


def caches():
    found, base = [], "/sys/devices/system/cpu/cpu0/cache"
    for index in sorted(os.listdir(base)) if os.path.isdir(base) else []:
        def field(name, folder=os.path.join(base, index)):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                return file.read().strip()
        if index.startswith("index") and field("type") != "Instruction":
            found.append("L%s %s" % (field("level"), field("size")))
    return ", ".join(found)


def describe():
    """One line: processor, cores, caches, instruction sets, compilers."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            text = file.read()
    except OSError:
        text = ""
    def find(name, otherwise):
        found = re.search(r"^%s\s*: (.*)$" % name, text, re.M)
        return found.group(1) if found else otherwise
    flags = set(find("(?:flags|Features)", "").split())
    return "%s (family %s, model %s), %d cores, %s, %s; %s; %s" % (
        find("model name", platform.machine()), find("cpu family", "?"), find("model", "?"),
        len(os.sched_getaffinity(0)), caches(), " ".join(f for f in SHOWN_FLAGS if f in flags),
        first_line(["clang", "--version"]), first_line(["gcc", "--version"]))


def best_target():
    flags = env.cpu_flags()
    if {"avx512f", "avx512vl", "avx512dq"} <= flags:
        return "avx512"
    if {"avx2", "fma"} <= flags:
        return "avx2"
    return "neon" if platform.machine() == "aarch64" else "scalar"


def has_tiles():
    return {"amx_tile", "amx_int8", "amx_bf16"} <= env.cpu_flags()


def has_dots():
    return "avx512_vnni" in env.cpu_flags() if best_target() == "avx512" else "avx_vnni" in env.cpu_flags()


def has_pairs():
    return "avx512_bf16" in env.cpu_flags()


def narrow_targets(rows="int8"):
    """Of models with rows of integers or in bf16, the best of this machine; None: what attnc writes by default."""
    if rows == "bf16" and not has_tiles():
        return None
    if has_pairs() and not has_tiles():
        return "avx512bf16"
    dots = {"avx512": "avx512vnni", "avx2": "avxvnni"}.get(best_target()) if has_dots() else None
    return ("amx,%s" % dots if has_tiles() else dots) if dots else None


def library(out):
    """Builds the timer of machine.c, with the compiler's peak.c inside."""
    path = os.path.join(out, "libmachine.so")
    commands = os.path.join(ROOT, "compiler", "commands")
    lib_build.run(["clang", "-std=c11", "-D_GNU_SOURCE", "-O2", "-march=native", "-fPIC", "-shared",
                   "-I" + commands, "-I" + os.path.join(ROOT, "runtime"),
                   os.path.join(HERE, "programs", "machine.c"), os.path.join(commands, "peak.c"),
                   os.path.join(commands, "peak_unit.c"),
                   os.path.join(ROOT, "compiler", "targets", "features.c"),
                   os.path.join(ROOT, "runtime", "attn_runtime.c"), "-lpthread", "-o", path])
    return path


class Meter:
    """Bytes and flops a second of one core; in the driver's process, which is pinned while it measures."""
    def __init__(self, out, core):
        self.lib = ctypes.CDLL(library(out))
        for name in ("machine_peak", "machine_read", "machine_unit", "machine_read_of"):
            getattr(self.lib, name).restype = ctypes.c_double
        self.lib.machine_read_of.argtypes = [ctypes.c_size_t]
        self.core, self.target = core, best_target()
        self.peaks, self.reads, self.units = [], [], {"int8": [], "bf16": []}

    def unit(self, rows):
        """Operations a second of what multiplies rows of that type, "int8" or "bf16"; of floats where nothing else."""
        rate = self.lib.machine_unit(WIDTHS[self.target], int(has_dots()), int(has_pairs()), int(has_tiles()),
                                     int(rows == "bf16"))
        if rate:
            self.units[rows].append(rate)
        return rate or self.peaks[-1]

    def measure(self, rows=None, sizes=(None,)):
        """(operations/s, bytes/s by size). The rate is that of multiply-adds of floats, or of what multiplies `rows`;
        bytes are read from buffers of these sizes, None for one far larger than caches."""
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {self.core})
        try:
            peak = self.lib.machine_peak(WIDTHS[self.target])
            self.peaks.append(peak)
            peak = self.unit(rows) if rows else peak
            reads = {size: self.lib.machine_read_of(size) if size else self.lib.machine_read() for size in sizes}
        finally:
            os.sched_setaffinity(0, before)
        if None in reads:
            self.reads.append(reads[None])
        return peak, reads
