#!/usr/bin/env python3
"""Static analysis of the compiler, the runtime and emitted C: the warnings of gcc and clang, gcc -fanalyzer, and
clang-tidy with .clang-tidy's list, which holds clang's static analyzer. Each tool is shown planted faults first.

`run.py FILE…` looks at these files alone. ATTNC_QUICK=1 leaves out the files of compiler/ but support/. Speaks
TAP."""
import glob
import os
import re
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib.attnc import LONG, QUICK, ROOT, run, said  # noqa: E402
from lib.tap import Report  # noqa: E402
from lib.turns import in_turn  # noqa: E402

WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
OF_ATTNC = ["-D_GNU_SOURCE", "-Icompiler", "-Icompiler/syntax", "-Ibuild/gen"]
# Without ATTNC_LONG=1, clang and gcc look for warnings in half of the files in turn with the commits. gcc's analyzer
# and clang-tidy, which follow each way through a function, look at a sixth of them. All tools look at what the last
# commits changed. clang's analyzer follows a function through 50000 states in place of 225000, in a fifth of the time.
SHORTER = ["-Xclang", "-analyzer-config", "-Xclang", "max-nodes=50000"]
# Emitted C has rows of intrinsics and statements in lists; what is const is said where it matters to a caller.
OF_EMITTED = "--checks=-readability-*"
REPORT = Report("analysis")


def command(tool, path):
    """clang and gcc look at a file with their warnings, the analyzer without optimization, which would move what it
    names."""
    of_attnc = [] if path.startswith("generated/") else OF_ATTNC
    if path.startswith("build/gen/"):
        of_attnc = OF_ATTNC + ["-Wno-unused-function"]  # flex writes one that lexer.l replaces
    if tool == "clang":
        return ["clang", "-fsyntax-only", "-std=c11", *WARNINGS, *of_attnc, path]
    if tool == "gcc":
        return ["gcc", "-O1", "-std=c11", *WARNINGS, *of_attnc, "-c", path, "-o", os.devnull]
    if tool == "gcc -fanalyzer":
        return ["gcc", "-O0", "-fanalyzer", "-fdiagnostics-plain-output", "-Werror", "-std=c11", *of_attnc, "-c", path,
                "-o", os.devnull]
    checks = [OF_EMITTED] if path.startswith("generated/") else []
    return ["clang-tidy", "--quiet", *checks, path, "--", "-std=c11", *of_attnc, *([] if LONG else SHORTER)]


def look(tool, path):
    """What a tool says of a file; "" if nothing. clang-tidy looks at one file a process: its list of variable
    arguments takes a second file's for the first one's."""
    done = run(*command(tool, path), timeout=900)
    return "" if done.returncode == 0 else said(done) or "status %d" % done.returncode


def tell(good, name, details=""):
    REPORT.result(name, None if good else details or "no reason given")


# A fault, and the words with which each tool must speak of it.
PLANTED = {
    "clang": [("int f(long a); int f(long a) { int b = a; return b; }", "-Wshorten-64-to-32"),
              ("int x; int f(int x); int f(int x) { return x; }", "-Wshadow"),
              ("int f(int a); int f(int a) { if (a = 2) return 3; return a; }", "-Wparentheses")],
    "gcc": [("int f(long a); int f(long a) { int b = a; return b; }", "-Werror=conversion"),
            ("int x; int f(int x); int f(int x) { return x; }", "-Werror=shadow"),
            ("int f(int a); int f(int a) { int b; return a + b; }", "-Werror=uninitialized")],
    "gcc -fanalyzer": [("#include <stdlib.h>\nvoid f(void); void f(void) { char *p = malloc(3); free(p); free(p); }",
                        "double-free"),
                       ("#include <stdlib.h>\nvoid f(void); void f(void) { int *p = malloc(8); *p = 1; free(p); }",
                        "possible-null"),
                       ("#include <stdio.h>\nint f(void); int f(void) { return fopen(\"a\", \"r\") != NULL; }",
                        "file-leak")],
    "clang-tidy": [("int f(const int *p); int f(const int *p) { if (!p) return *p; return 0; }",
                    "clang-analyzer-core.NullDereference"),
                   ("#include <stdlib.h>\nint *f(int n); int *f(int n) { int *p = malloc(4); return n ? 0 : p; }",
                    "clang-analyzer-unix.Malloc"),
                   ("int f(int a); int f(int a) { if (a) return 1; else return 1; }", "bugprone-branch-clone"),
                   ("double f(int a); double f(int a) { return a / 3; }", "bugprone-integer-division"),
                   ("void f(float *a); void f(float *a) { for (float x = 0; x < 3; x += 1) *a += x; }",
                    "cert-flp30-c"),
                   ("int f(int a); int f(int a) { if (a) return 1; return 1 == 1 && a == a; }", "misc-redundant"),
                   ("void f(int *a); void f(int *a) { *a = 1; return; }", "readability-redundant-control-flow")],
}


def planted(pool):
    for tool, faults in PLANTED.items():
        with tempfile.TemporaryDirectory(dir=os.path.join(ROOT, "build")) as folder:  # where .clang-tidy is in force
            paths = []
            for number, (text, _) in enumerate(faults):
                paths.append(os.path.join(folder, "planted_%d.c" % number))
                with open(paths[-1], "w", encoding="utf-8") as file:
                    file.write(text + "\n")
            found = list(pool.map(lambda path, tool=tool: look(tool, path), paths))
        missed = ["%s\nsays of `%s`:\n%s" % (words, text, told)
                  for (text, words), told in zip(faults, found) if not re.search(words, told)]
        tell(not missed, tool + " sees planted faults", "\n".join(missed))


def reasons():
    """Each check that .clang-tidy leaves out is named in its comment."""
    with open(os.path.join(ROOT, ".clang-tidy"), encoding="utf-8") as file:
        lines = file.read().splitlines()
    out = [line.strip(" ,") for line in lines if line.startswith("  -") and line.strip(" ,") != "-*"]
    comment = "\n".join(line for line in lines if line.startswith("#"))
    bare = [name for name in out if name not in comment]
    tell(out and not bare, "each check that is left out has its reason", "\n".join(bare))


def some(paths, parts):
    recent = run("git", "log", "-5", "--name-only", "--format=").stdout.split()
    chosen = {*in_turn(paths, parts), *recent}
    return [path for path in paths if path in chosen]


def main():
    os.chdir(ROOT)
    own = sorted(path for folder in ("compiler", "runtime")
                 for path in glob.glob(folder + "/**/*.c", recursive=True))
    emitted = sorted(glob.glob("generated/*.c"))
    skeletons = ["build/gen/parser.c", "build/gen/lexer.c"]
    if QUICK:
        own = [path for path in own if path.startswith(("runtime/", "compiler/support/"))]
    if sys.argv[1:]:
        own, emitted, skeletons = sys.argv[1:], [], []
    with ThreadPoolExecutor(2) as pool:
        planted(pool)
        reasons()
        for tool in PLANTED:
            warns = tool in ("clang", "gcc")
            parts = 6 if not warns else 1 if QUICK else 2
            paths = own + emitted if LONG or sys.argv[1:] else some(own + emitted, parts)
            if warns:
                paths += skeletons  # of which the analyzers would judge what is flex's and bison's
            found = list(pool.map(lambda path, tool=tool: look(tool, path), paths))
            bad = [path + "\n" + told for path, told in zip(paths, found) if told]
            tell(not bad, "%s: %d files" % (tool, len(paths)), "\n".join(bad))
    return REPORT.finish()


if __name__ == "__main__":
    sys.exit(main())
