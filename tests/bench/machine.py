"""What this machine is, and what one of its cores can do."""
import ctypes
import os
import platform
import re
import subprocess

import programs.build as lib_build

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
WIDTHS = {"scalar": 1, "neon": 4, "avx2": 8, "avx512": 16}  # of vectors, as the tables of the targets say
SHOWN_FLAGS = ("avx2", "fma", "avx512f", "avx512dq", "avx512vl", "avx512_vnni", "avx512_bf16", "amx_tile", "asimd")


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
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            flags = set(file.read().split())
    except OSError:
        flags = set()
    if {"avx512f", "avx512vl", "avx512dq"} <= flags:
        return "avx512"
    if {"avx2", "fma"} <= flags:
        return "avx2"
    return "neon" if platform.machine() == "aarch64" else "scalar"


def library(out):
    """Builds the timer of machine.c, with the compiler's peak.c inside."""
    path = os.path.join(out, "libmachine.so")
    commands = os.path.join(ROOT, "compiler", "commands")
    lib_build.run(["clang", "-std=c11", "-D_GNU_SOURCE", "-O2", "-fPIC", "-shared", "-I" + commands,
                   os.path.join(HERE, "programs", "machine.c"), os.path.join(commands, "peak.c"),
                   os.path.join(ROOT, "compiler", "targets", "features.c"),
                   os.path.join(ROOT, "runtime", "attn_runtime.c"), "-lpthread", "-o", path])
    return path


class Meter:
    """Bytes and flops a second of one core; in the driver's process, which is pinned while it measures."""
    def __init__(self, out, core):
        self.lib = ctypes.CDLL(library(out))
        for name in ("machine_peak", "machine_read"):
            getattr(self.lib, name).restype = ctypes.c_double
        self.core, self.target = core, best_target()
        self.peaks, self.reads = [], []

    def measure(self):
        """(flops/s, bytes/s), the read being the better of two ways."""
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {self.core})
        try:
            peak = self.lib.machine_peak(WIDTHS[self.target])
            read = self.lib.machine_read()
        finally:
            os.sched_setaffinity(0, before)
        self.peaks.append(peak)
        self.reads.append(read)
        return peak, read
