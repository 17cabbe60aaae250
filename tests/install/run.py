#!/usr/bin/env python3
"""`make install`: what it leaves, that the program there works, and that man page and completion know every command and
option. Speaks TAP."""
import glob
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib.attnc import ROOT, make  # noqa: E402
from lib.attnc import run as run_command  # noqa: E402
from lib.tap import run_tests  # noqa: E402


def run(*command, status=0, **environment):
    return run_command(*command, status=status, env=environment).stdout


def files(folder):
    return sorted(os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder) for name in names)


class Install:
    def __init__(self, folder):
        self.folder = folder
        self.prefix = os.path.join(folder, "a b", "usr")  # a path with a space
        self.attnc = os.path.join(self.prefix, "bin", "attnc")

    def make(self, target):
        make(target, "DESTDIR=" + os.path.join(self.folder, "a b"), "PREFIX=/usr", status=0)

    def commands(self):
        return re.findall(r"^  (\w+) ", run(self.attnc, "help"), re.M)

    def options(self, command):
        return set(re.findall(r"(?:^|[^\w-])(--[a-z][a-z-]*|-[ov])\b", run(self.attnc, "help", command)))

    def test_installs(self):
        self.make("install")
        there = files(self.prefix)
        for name in ("bin/attnc", "share/man/man1/attnc.1", "share/bash-completion/completions/attnc",
                     "share/attnc/runtime/attn_runtime.c", "share/attnc/runtime/attn_generate.h",
                     "share/attnc/runtime/attn_rules.c", "share/attnc/runtime/attn_rules.h",
                     "share/attnc/runtime/attn_sample.c", "share/attnc/runtime/attn_sample.h",
                     "share/attnc/runtime/tokenizer/attn_tokenizer.h", "share/attnc/runtime/tokenizer/encode.c",
                     "share/doc/attnc/docs/tokenizers.md", "lib/libattn_tokenizer.a",
                     "lib/pkgconfig/attnc-tokenizer.pc",
                     "share/attnc/specs/minilm.attn", "share/attnc/editors/attn.tmLanguage.json",
                     "share/doc/attnc/README.md", "share/doc/attnc/LICENSE", "share/doc/attnc/docs/language.md",
                     "lib/libattn_runtime.a", "lib/pkgconfig/attnc.pc", "lib/cmake/attnc/attnc-config.cmake",
                     "lib/cmake/attnc/attnc-config-version.cmake"):
            assert name in there, "%s is not among %s" % (name, there)
        assert run(self.attnc, "--version").startswith("attnc "), "no version"
        out = os.path.join(self.folder, "out")
        run(self.attnc, "compile", os.path.join(self.prefix, "share/attnc/specs/by_hand.attn"), "-o", out)
        assert "by_hand.c" in files(out), "nothing was compiled"

    def test_symbols(self):
        """Every name that the libraries give to a program begins with attn_."""
        for library in ("libattn_runtime.a", "libattn_tokenizer.a"):
            lines = run("nm", "-g", "--defined-only", os.path.join(self.prefix, "lib", library)).splitlines()
            names = [line.split()[2] for line in lines if len(line.split()) == 3]
            others = [name for name in names if not name.startswith("attn_")]
            assert len(names) > 10 and not others, "%s defines %s" % (library, others)

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
        source = {"python": "package", "rust": "package", "page": "package_page"}.get(command, command)
        with open(os.path.join(ROOT, "compiler", "commands", source + ".c"), encoding="utf-8") as file:
            text = file.read()
        if "TEXT_OPTIONS(" in text:  # options that several commands read
            with open(os.path.join(ROOT, "compiler", "commands", "text_input.h"), encoding="utf-8") as file:
                text += file.read()
        found = set(re.findall(r'\{"(--?[a-z][a-z-]*)", \.(?:text|flag|list) =', text))
        return found - {"--name", "--wheel"} if command == "rust" else found  # which `attnc python` takes

    def test_man_page(self):
        with open(os.path.join(self.prefix, "share/man/man1/attnc.1"), encoding="utf-8") as file:
            page = file.read().replace("\\-", "-")
        assert "--targets" in page, "--targets is not on the page"
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
            done = run_command("groff", "-man", "-Tascii", "-ww", "-z", "packaging/attnc.1", status=0)
            assert not done.stderr, done.stderr

    def complete(self, *words):
        script = os.path.join(self.prefix, "share/bash-completion/completions/attnc")
        text = 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _attnc; printf "%s\\n" "${COMPREPLY[@]}"'
        path = os.path.dirname(self.attnc) + os.pathsep + os.environ["PATH"]
        return run("bash", "-c", text, script, *words, PATH=path).split()

    def test_completion(self):
        assert sorted(self.complete("attnc", "")) == sorted(self.commands() + ["help", "--version", "--targets"])
        assert self.complete("attnc", "exp") == ["explain"]
        assert self.complete("attnc", "help", "im") == ["import"]
        for command in self.commands():
            missing = self.options(command) - set(self.complete("attnc", command, "-"))
            assert not missing, "%s: %s" % (command, missing)
        assert self.complete("attnc", "compile", "--unroll", "f") == ["full"]
        assert self.complete("attnc", "compile", "--unroll", "=", "l") == ["loops"]
        assert self.complete("attnc", "compile", "--unroll", "=") == ["auto", "full", "loops"]
        assert self.complete("attnc", "check", "--target", "ss") == ["sse2"]
        targets = [line.split()[0] for line in run(self.attnc, "--targets").splitlines()]
        assert self.complete("attnc", "compile", "--target", "") == targets + ["native"]
        assert self.complete("attnc", "compile", "--target", "scalar,av") == \
            ["scalar," + name for name in targets if name.startswith("av")]
        assert self.complete("attnc", "compile", "specs/by_h") == ["specs/by_hand.attn"]

    def test_targets(self):
        """One line for each table that has a rank, in its order; the help names the same; and a target runs where a
        program of it finds what it probes for."""
        tables = [open(path, encoding="utf-8").read() for path in glob.glob(ROOT + "/compiler/targets/*.isa")]
        ranks = {re.search(r"^name (\w+)", table, re.M).group(1): re.search(r"^rank (\d+)", table, re.M)
                 for table in tables}
        names = sorted((name for name in ranks if ranks[name]), key=lambda name: int(ranks[name].group(1)))
        lines = run(self.attnc, "--targets").splitlines()
        assert [line.split()[0] for line in lines] == names and len(names) > 5, lines
        told = " ".join(run(self.attnc, "help", "compile").split())
        assert ", ".join(names) + " or native" in told, "the help names others"
        for name, runs in (line.split(" ") for line in lines):
            run(self.attnc, "check", "tests/differential/exact_one.attn", "--lengths", "1", "--target", name, "--run",
                "env", status={"runs": 0, "no": 3}[runs])

    def test_uninstalls(self):
        self.make("uninstall")
        assert files(self.prefix) == [], "left: %s" % files(self.prefix)


if __name__ == "__main__":
    sys.exit(run_tests("install", Install))
