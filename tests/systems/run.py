#!/usr/bin/env python3
"""The emitted C and the runtime on other systems: Windows by mingw and the C by clang-cl, too, under wine; a big-endian
machine under qemu, which is refused; the C and its weights for macOS, which clang compiles without that system's
headers; and macOS and Windows by the clang of Zig, compiled alone. TAP on stdout."""
import os
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib.attnc import LONG, ROOT, attnc  # noqa: E402
from lib.attnc import run as run_command  # noqa: E402
from lib.tap import Skip, run_tests  # noqa: E402

SPEC = os.path.join(ROOT, "examples", "two_models", "embedder.attn")
PROGRAM = os.path.join(ROOT, "tests", "systems", "program.c")
STRICT = ["-std=c11", "-Wall", "-Wextra", "-Wshadow", "-Werror"]
ZIG_TARGETS = ("aarch64-macos", "x86_64-macos", "x86_64-windows-gnu")


class Systems:
    def __init__(self, scratch):
        self.scratch = scratch
        self.weights = os.path.join(scratch, "embedder.attnw")
        attnc("compile", SPEC, "-o", scratch, "--target", "scalar,sse2,avx2,avx512", "--weights", "random:3",
              "--runtime", status=0)
        self.sources = [PROGRAM, os.path.join(scratch, "embedder.c"), os.path.join(scratch, "attn_runtime.c")]

    def build(self, compiler, name, *flags):
        program = os.path.join(self.scratch, name)
        run_command(*compiler, *STRICT, "-I", self.scratch, *self.sources, *flags, "-o", program, status=0)
        return program

    def lines(self, *command, status=0, **environment):
        words = [*command[:-1], self.weights, command[-1], os.path.join(self.scratch, "no file")]
        return run_command(*words, env=environment, status=status).stdout.replace("\r", "").splitlines()

    def wine(self):
        if not shutil.which("x86_64-w64-mingw32-gcc"):
            raise Skip("needs the package gcc-mingw-w64-x86-64")
        wine = shutil.which("wine64") or shutil.which("wine")
        if not wine:
            raise Skip("needs the package wine64")
        return wine

    def compare(self, wine, there):
        """What a program for Windows prints for each target is what the one of this system prints."""
        here = self.build(["gcc"], "native", "-O1", "-lpthread", "-lm")
        for target in ("scalar", "sse2", "avx2", "avx512"):
            native = run_command(here, self.weights, target, "none")
            if native.returncode:
                continue  # this machine lacks the target
            found = self.lines(wine, there, target, WINEDEBUG="-all", WINEPREFIX=os.path.join(self.scratch, "wine"))
            assert found == native.stdout.splitlines(), "%s\n%s" % (native.stdout, "\n".join(found))
            assert found[0] == "missing 1 folder 1 mapped 1 loaded 1 processors 1", found[0]

    def test_windows(self):
        wine = self.wine()
        for level in ("-O0", "-O2") if LONG else ("-O1",):
            # at -O0 gcc's intrinsics are macros, of whose conversions it warns
            warns = [] if level == "-O0" else ["-Wconversion"]
            self.compare(wine, self.build(["x86_64-w64-mingw32-gcc", *warns], "windows.exe", level, "-static"))

    def test_clang_cl(self):
        """The driver of clang that takes the options of Microsoft's compiler. Its object is linked by mingw, which has
        no cookies on the stack (/GS)."""
        wine = self.wine()
        if not shutil.which("clang"):
            raise Skip("needs the package clang")
        model = os.path.join(self.scratch, "embedder.obj")
        run_command("clang", "--driver-mode=cl", "--target=x86_64-pc-windows-msvc", "/c", "/O2", "/W4", "/WX", "/GS-",
                    "/clang:-ffreestanding", self.sources[1], "/Fo" + model, status=0)
        there = os.path.join(self.scratch, "clang_cl.exe")
        run_command("x86_64-w64-mingw32-gcc", *STRICT, "-I", self.scratch, self.sources[0], self.sources[2], model,
                    "-static", "-o", there, status=0)
        self.compare(wine, there)

    def test_apple(self):
        """Embedded weights are constant data there, under the name that the C asks for."""
        if not shutil.which("clang"):
            raise Skip("needs the package clang")
        spec = os.path.join(self.scratch, "large.attn")
        with open(spec, "w", encoding="utf-8") as file:
            file.write("model large { d_model 64, vocab 5000\n"
                       "encoder { seq <= 9, position none, layers 1 { attention self { heads 4 } } } }\n")
        attnc("compile", spec, "-o", self.scratch, "--target", "neon,neondot,sse2,avx2,avx512,scalar", "--weights",
              "random:1", "--embed-weights", status=0)
        for system in ("arm64-apple-macos11", "x86_64-apple-macos11"):
            for source in ("large.c", "large_weights.S"):
                made = os.path.join(self.scratch, source + ".o")
                run_command("clang", "--target=" + system, *(STRICT if source[-1] == "c" else []), "-ffreestanding",
                            "-I", self.scratch, "-c", os.path.join(self.scratch, source), "-o", made, status=0)
                with open(made, "rb") as file:
                    text = file.read()
                assert b"\0_large_embedded_data\0" in text, source + " has no such symbol"
                assert (b"__const\0" in text) or source[-1] == "c", "the weights are no constant data"

    def test_big_endian(self):
        if not shutil.which("s390x-linux-gnu-gcc") or not os.path.exists("/usr/s390x-linux-gnu/include/stdint.h"):
            raise Skip("needs the packages gcc-s390x-linux-gnu and libc6-dev-s390x-cross")
        if not shutil.which("qemu-s390x"):
            raise Skip("needs the package qemu-user")
        # With -std=c11 floats are computed in double there, which the C refuses.
        program = self.build(["s390x-linux-gnu-gcc", "-std=gnu11"], "big", "-std=gnu11", "-O1", "-static", "-lpthread",
                             "-lm")
        found = self.lines("qemu-s390x", program, "scalar", status=3)
        assert found[-1] == "init: this machine lacks the instructions, or is big-endian", found

    def test_zig(self):
        """A clang with the headers of other systems, which is a package of PyPI."""
        if not LONG:
            raise Skip("make check-long runs it")
        python = os.path.join(ROOT, "build", "zig-python", "bin", "python")
        if not os.path.exists(python):
            run_command(sys.executable, "-m", "venv", os.path.dirname(os.path.dirname(python)), status=0)
        if subprocess.run([python, "-m", "pip", "install", "-q", "ziglang"], check=False, capture_output=True,
                          timeout=900).returncode:
            raise Skip("pip cannot install ziglang")
        for target in ZIG_TARGETS:
            self.build([python, "-m", "ziglang", "cc", "-target", target], target, "-O1")


if __name__ == "__main__":
    sys.exit(run_tests("systems", Systems))
