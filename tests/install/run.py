#!/usr/bin/env python3
"""`make install`: what it leaves, that the program there works, and that man page and completion know every command and
option. Speaks TAP."""
import glob
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from tap import run_tests  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def run(*command, status=0, **environment):
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600,
                          env={**os.environ, **environment})
    assert done.returncode == status, "%s: %d\n%s" % (" ".join(command), done.returncode, done.stderr)
    return done.stdout


def files(folder):
    return sorted(os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder) for name in names)


class Install:
    def __init__(self, folder):
        self.folder = folder
        self.prefix = os.path.join(folder, "a b", "usr")  # a path with a space
        self.attnc = os.path.join(self.prefix, "bin", "attnc")

    def make(self, target):
        run("make", "-s", target, "DESTDIR=" + os.path.join(self.folder, "a b"), "PREFIX=/usr")

    def commands(self):
        return re.findall(r"^  (\w+) ", run(self.attnc, "help"), re.M)

    def options(self, command):
        return set(re.findall(r"(?:^|[^\w-])(--[a-z][a-z-]*|-[ov])\b", run(self.attnc, "help", command)))

    def test_installs(self):
        self.make("install")
        there = files(self.prefix)
        for name in ("bin/attnc", "share/man/man1/attnc.1", "share/bash-completion/completions/attnc",
                     "share/attnc/runtime/attn_runtime.c", "share/attnc/runtime/attn_generate.h",
                     "share/attnc/specs/minilm.attn", "share/attnc/editors/attn.tmLanguage.json",
                     "share/doc/attnc/README.md", "share/doc/attnc/LICENSE", "share/doc/attnc/docs/language.md",
                     "lib/libattn_runtime.a", "lib/pkgconfig/attnc.pc", "lib/cmake/attnc/attnc-config.cmake",
                     "lib/cmake/attnc/attnc-config-version.cmake"):
            assert name in there, "%s is not among %s" % (name, there)
        assert run(self.attnc, "--version").startswith("attnc "), "no version"
        out = os.path.join(self.folder, "out")
        run(self.attnc, "compile", os.path.join(self.prefix, "share/attnc/specs/by_hand.attn"), "-o", out)
        assert "by_hand.c" in files(out), "nothing was compiled"

    def test_help(self):
        for command in self.commands():
            assert run(self.attnc, "help", command) == run(self.attnc, command, "--help"), command
        run(self.attnc, "help", "comple", status=2)
        run(self.attnc, "comple", status=2)

    def test_help_of_options(self):
        """Each option in how a command is called is one that it takes, and has a line that tells of it; no other."""
        for command in self.commands():
            lines = run(self.attnc, "help", command).splitlines()
            begin = next(i for i, line in enumerate(lines) if line.startswith("  -"))
            called = " ".join(lines[:begin])
            told = [re.match(r"  (--?[a-z][a-z-]*)", line).group(1) for line in lines[begin:]
                    if line.startswith("  -")]
            assert told[-1] == "--color" and len(set(told)) == len(told), "%s: %s" % (command, told)
            options = set(re.findall(r"(?:^|[ \[])(--?[a-z][a-z-]*)", called))
            assert options == set(told[:-1]), "%s is called with %s, and tells %s" % (command, options, told)
            assert "" not in lines and all(len(line) <= 120 for line in lines), "%s: %s" % (command, lines)
            for line in lines[begin:]:
                told_of = re.match(r"  --?[a-z-]+(?:[ =]\S+)*  +\S|  --color=\S+$|" + 23 * " " + r"\S", line)
                assert told_of, "%s: `%s` tells nothing" % (command, line)
            known = self.known(command)
            assert options == known, "%s takes %s, and is called with %s" % (command, known, options)

    def known(self, command):
        """The options that its source reads."""
        with open(os.path.join(ROOT, "compiler", "commands", command + ".c"), encoding="utf-8") as file:
            return set(re.findall(r'\{"(--?[a-z][a-z-]*)", \.(?:text|flag|list) =', file.read()))

    def test_man_page(self):
        with open(os.path.join(self.prefix, "share/man/man1/attnc.1"), encoding="utf-8") as file:
            page = file.read().replace("\\-", "-")
        assert "--version" in page and run(self.attnc, "--version").strip() in page, "no version"
        places = re.findall(r"^\.I PREFIX/(\S+)", page, re.M)
        gone = [place for place in places if not os.path.exists(os.path.join(self.prefix, place))]
        assert len(places) > 5 and not gone, "%s is on the page, not in its place" % gone
        sections = re.split(r"^\.TP\n\.BI (\w+)", page, flags=re.M)
        assert sorted(sections[1::2]) == sorted(self.commands()), "%s are described" % sections[1::2]
        for command in self.commands():
            missing = [o for o in self.options(command) if not re.search(re.escape(o) + r"(?![\w-])", page)]
            assert not missing, "%s %s is not on the page" % (command, missing)
        if shutil.which("groff"):
            done = subprocess.run(["groff", "-man", "-Tascii", "-ww", "-z", os.path.join(ROOT, "packaging/attnc.1")],
                                  capture_output=True, text=True, check=False)
            assert done.returncode == 0 and not done.stderr, done.stderr

    def complete(self, *words):
        script = os.path.join(self.prefix, "share/bash-completion/completions/attnc")
        text = 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _attnc; printf "%s\\n" "${COMPREPLY[@]}"'
        path = os.path.dirname(self.attnc) + os.pathsep + os.environ["PATH"]
        return run("bash", "-c", text, script, *words, PATH=path).split()

    def test_completion(self):
        assert sorted(self.complete("attnc", "")) == sorted(self.commands() + ["help", "--version"])
        assert self.complete("attnc", "exp") == ["explain"]
        assert self.complete("attnc", "help", "im") == ["import"]
        for command in self.commands():
            missing = self.options(command) - set(self.complete("attnc", command, "-"))
            assert not missing, "%s: %s" % (command, missing)
        assert self.complete("attnc", "compile", "--unroll", "f") == ["full"]
        assert self.complete("attnc", "compile", "--unroll", "=", "l") == ["loops"]
        assert self.complete("attnc", "compile", "--unroll", "=") == ["auto", "full", "loops"]
        assert self.complete("attnc", "compile", "--target", "scalar,av") == ["scalar,avx2", "scalar,avx512"]
        assert self.complete("attnc", "check", "--target", "ss") == ["sse2"]
        tables = [open(path, encoding="utf-8").read() for path in glob.glob(ROOT + "/compiler/emit/isa/*.isa")]
        targets = {re.search(r"^name (\w+)", table, re.M).group(1) for table in tables if "\nrank " in table}
        assert set(self.complete("attnc", "compile", "--target", "")) == targets | {"native"}
        assert self.complete("attnc", "compile", "specs/by_h") == ["specs/by_hand.attn"]

    def test_uninstalls(self):
        self.make("uninstall")
        assert files(self.prefix) == [], "left: %s" % files(self.prefix)


if __name__ == "__main__":
    sys.exit(run_tests("install", Install))
