#!/usr/bin/env python3
"""tests/rooms/run.py: the rooms of compiler/ in the order that attnc.h lists, against the symbols of the objects in
build/ and the #include lines: no arrow runs back up the list, no files of the compiler or of runtime/ need each other
in a circle, and only commands/ and main.c write to the terminal. And the sizes that CONVENTIONS.md allows: columns of a
line, lines of a function, of a macro of the templates and of a file. TAP on stdout."""
import glob
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib.attnc import run  # noqa: E402
from lib.tap import run_tests  # noqa: E402

GENERATED = {"build/gen/parser.o": "compiler/syntax/parser.y", "build/gen/lexer.o": "compiler/syntax/lexer.l",
             "build/gen/embedded.o": "compiler/support/embedded"}
STREAMS = {"stdout", "stderr", "printf", "__printf_chk", "puts", "putchar", "perror", "write", "dprintf"}
# A program without a reporter has plain lines on stderr, a crash in a thread and a file that is cut end attnc within a
# signal handler, and what flex generates names stdout.
WRITERS = {"compiler/support/report.c", "compiler/support/mapping.c", "compiler/engine/guard.c",
           "compiler/syntax/lexer.l"}

LINES = {"compiler": 600, "runtime": 600, "tests": 800}  # of a file, by folder
FUNCTION_LINES, MACRO_LINES, COLUMNS = 80, 70, 120
# The map of the compiler has one file, and the runtime of two systems one too, since users copy it.
WHOLE = ("compiler/attnc.h", "runtime/attn_runtime.c")


def rooms():
    """The rooms in the order of attnc.h's list, and main.c behind them."""
    with open("compiler/attnc.h", encoding="utf-8") as file:
        head = file.read().split("*/")[0]
    names = re.findall(r"\w+", " ".join(re.findall(r"^ \*   (.*->.*)$", head, re.M)))
    return names + ["main"]


def room(path):
    """compiler/ir/build.c -> ir; compiler/pipeline.c -> pipeline"""
    return os.path.splitext(path.split("/")[1])[0]


def objects():
    """{source: object} of all that attnc is made of, without runtime/."""
    sources = glob.glob("compiler/*.c") + glob.glob("compiler/*/*.c")
    return {**{path: "build/%s.o" % path[:-2] for path in sources}, **{path: o for o, path in GENERATED.items()}}


def runtime_objects(folder):
    """{source: object}, compiled into the folder, of what applications link and examples/ tokenizes with."""
    made = {path: os.path.join(folder, path.replace("/", "_")[:-2] + ".o")
            for path in glob.glob("runtime/*.c") + glob.glob("runtime/*/*.c")}
    for source, path in made.items():
        run("clang", "-std=c11", "-D_GNU_SOURCE", "-c", source, "-o", path, status=0)
    return made


def symbols(files):
    """{symbol: the source that owns it}, and (user, symbol) of each that a source uses and does not own."""
    owners, users = {}, []
    for source, path in files.items():
        lines = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout.splitlines()
        for kind, symbol in (line.split()[-2:] for line in lines):
            if kind == "U":
                users.append((source, symbol))
            elif kind in "TDRBC":
                owners[symbol] = source
    return owners, users


def circles(edges):
    """Sets of files of which each reaches each."""
    reached = {}
    for start in edges:
        seen, open_ends = set(), [start]
        while open_ends:
            for end in edges.get(open_ends.pop(), ()):
                if end not in seen:
                    seen.add(end)
                    open_ends.append(end)
        reached[start] = seen
    found = {frozenset(b for b in edges if b in reached[a] and a in reached[b]) for a in edges if a in reached[a]}
    return sorted(found, key=sorted)


def function_lengths(lines):
    """(line, length) of each function of C: from the line that its name begins to the brace in the first column."""
    start = None
    for number, line in enumerate(lines, 1):
        if re.match(r"[A-Za-z_].*\(", line):
            start = None if line.endswith((";", "}")) else number
        elif start and line.startswith("}"):
            yield start, number - start + 1
            start = None


def macro_lengths(lines):
    """(line, length) of each $macro of a template."""
    start = None
    for number, line in enumerate(lines, 1):
        if line.startswith("$macro"):
            start = number
        elif start and line.startswith("$end"):
            yield start, number - start + 1
            start = None


def oversized(path, text):
    """What is larger in that file than CONVENTIONS.md allows, in words."""
    lines = text.splitlines()
    most = LINES.get(path.split("/")[0])
    wrong = ["%s has %d lines" % (path, len(lines))] if most and len(lines) > most and path not in WHOLE else []
    wrong += ["%s:%d has %d columns" % (path, number, len(line))
              for number, line in enumerate(lines, 1) if len(line) > COLUMNS]
    if path.endswith((".c", ".h", ".l", ".y")):
        wrong += ["%s:%d is a function of %d lines" % (path, *found)
                  for found in function_lengths(lines) if found[1] > FUNCTION_LINES]
    if path.endswith(".tmpl"):
        wrong += ["%s:%d is a macro of %d lines" % (path, *found)
                  for found in macro_lengths(lines) if found[1] > MACRO_LINES]
    return wrong


class Rooms:
    def __init__(self, folder):
        self.folder = folder
        self.order = rooms()
        owners, self.users = symbols(objects())
        # (user, symbol, owner) of each symbol that a file uses and another file owns
        self.arrows = [(user, symbol, owners[symbol]) for user, symbol in self.users if symbol in owners]

    def test_list(self):
        folders = {room(path) for path in objects()}
        assert folders == set(self.order), "attnc.h's list and the folders differ in %s" % (folders ^ set(self.order))
        with open("CONVENTIONS.md", encoding="utf-8") as file:
            told = re.search(r"Data flows one way: ([^.]*)\.", file.read())[1]
        assert re.findall(r"\w+", told) + ["main"] == self.order, "CONVENTIONS.md has another order: " + told
        assert len(self.arrows) > 1000, "%d arrows: nm shows less than there is" % len(self.arrows)

    def test_no_symbol_from_above(self):
        wrong = ["%s uses %s of %s" % arrow for arrow in self.arrows
                 if self.order.index(room(arrow[0])) < self.order.index(room(arrow[2]))]
        assert not wrong, "\n".join(sorted(wrong))

    def test_no_header_from_above(self):
        wrong, seen = [], 0
        for path in glob.glob("compiler/*.[chly]") + glob.glob("compiler/*/*.[chly]"):
            if path == "compiler/attnc.h":  # the map, whose order is the subject
                continue
            with open(path, encoding="utf-8") as file:
                names = re.findall(r'^#include "(.*\.h)"', file.read(), re.M)
            for header in (os.path.normpath(os.path.join(os.path.dirname(path), name)) for name in names):
                if header.startswith("compiler/") and header != "compiler/attnc.h":
                    seen += 1
                    if self.order.index(room(path)) < self.order.index(room(header)):
                        wrong.append("%s includes %s" % (path, header))
        assert seen > 50 and not wrong, "\n".join(sorted(wrong))

    def test_no_circles(self):
        owners, users = symbols(runtime_objects(self.folder))
        below = [(user, symbol, owners[symbol]) for user, symbol in users if symbol in owners]
        assert len(below) > 100, "%d arrows of runtime/: nm shows less than there is" % len(below)
        edges = {}
        for user, _symbol, owner in self.arrows + below:
            edges.setdefault(user, set()).add(owner)
        found = [sorted(circle) for circle in circles(edges)]
        assert not found, "\n".join(", ".join(circle) for circle in found)
        assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [frozenset("bc")]
        assert circles({"a": {"b", "c"}, "b": {"c"}}) == []

    def test_sizes(self):
        paths = ["tests/run", *glob.glob("scripts/*.*")]
        for folder, kinds in (("compiler", "c h l y def tmpl isa"), ("runtime", "c h"), ("tests", "c h py"),
                              ("examples", "c h cpp py")):
            for kind in kinds.split():
                paths += glob.glob("%s/**/*.%s" % (folder, kind), recursive=True)
        wrong, functions = [], 0
        for path in paths:
            with open(path, encoding="utf-8") as file:
                text = file.read()
            wrong += oversized(path, text)
            functions += len(list(function_lengths(text.splitlines()))) if path.endswith(".c") else 0
        assert len(paths) > 400 and functions > 2000, "%d files with %d functions" % (len(paths), functions)
        assert not wrong, "\n".join(sorted(wrong))

    def test_groups_are_run(self):
        """tests/run finds a group by its executable run.py. tests/bench measures peers, and is no group."""
        idle = [path for path in glob.glob("tests/*/run.py") if not os.access(path, os.X_OK)]
        assert idle == ["tests/bench/run.py"], idle

    def test_sizes_are_seen(self):
        def function(lines):
            return "/* f(x) */\nstatic int f(int x,\n             int y) {\n%s}\n" % ("    g(x);\n" * (lines - 3))

        macro = "$macro m()\n%s$end\n"
        for path, text, told in (
                ("compiler/a/b.c", "x\n" * 600, ""),
                ("compiler/a/b.c", "x\n" * 601, " has 601 lines"),
                ("compiler/attnc.h", "x\n" * 601, ""),
                ("runtime/b.h", "x\n" * 601, " has 601 lines"),
                ("tests/a/b.py", "x\n" * 800, ""),
                ("tests/b.c", "x\n" * 801, " has 801 lines"),
                ("scripts/b.py", "\n" + "é" * 120, ""),
                ("tests/b.py", "\n" + "x" * 121, ":2 has 121 columns"),
                ("runtime/b.c", function(80), ""),
                ("runtime/b.c", function(81), ":2 is a function of 81 lines"),
                ("runtime/b.c", "int x;\n" + function(9) + function(81), ":13 is a function of 81 lines"),
                ("compiler/b.tmpl", macro % ("x;\n" * 68), ""),
                ("compiler/b.tmpl", macro % ("x;\n" * 69), ":1 is a macro of 71 lines")):
            found = "\n".join(oversized(path, text))
            assert found == (path + told if told else ""), "%s: `%s`, not `%s`" % (path, found, told)

    def test_terminal(self):
        wrong = ["%s uses %s" % (user, symbol) for user, symbol in self.users
                 if symbol in STREAMS and room(user) not in ("commands", "main") and user not in WRITERS]
        assert not wrong, "\n".join(sorted(wrong))


if __name__ == "__main__":
    sys.exit(run_tests("rooms", Rooms))
