"""What the tests of this folder share."""

import functools
import os
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from lib.attnc import run, said  # noqa: E402
from lib.tap import Report  # noqa: E402

STRICT = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-pedantic"]

MICROCONTROLLERS = {"cm3", "cm4", "rv32"}  # plain C, which runs on every machine


def runs(listed):
    """The targets that attnc --targets says this machine runs, without those of microcontrollers."""
    lines = [line.split() for line in listed.splitlines()]
    return [line[0] for line in lines if line[1:] == ["runs"] and line[0] not in MICROCONTROLLERS]


report = Report("portability")
result = report.result


def output(done):
    return f"{said(done)}exit {done.returncode}"


def write_script(path, text):
    """A program for --cc, which takes one word."""
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n" + text)
    os.chmod(path, 0o755)
    return path


@functools.cache
def new_clang():
    """The name of a clang of version 16 or newer, which has the vectors of RISC-V, and those of SVE without options; or
    None."""
    for name in ["clang"] + ["clang-%d" % version for version in range(22, 15, -1)]:
        if shutil.which(name) and int(run(name, "-dumpversion").stdout.split(".")[0]) >= 16:
            return name
    return None


def riscv_clang():
    """The words of a compiler of C with vectors of RISC-V."""
    return [new_clang() or "clang-16", "--target=riscv64-linux-gnu", "-march=rv64gcv"]


RISCV_TOOLS = [riscv_clang()[0], "riscv64-linux-gnu-gcc", "qemu-riscv64"]


def riscv_cpu(bytes_of_register):
    """The processor of the emulator with vectors of so many bytes."""
    return f"rv64,v=true,vext_spec=v1.0,vlen={8 * bytes_of_register}"
