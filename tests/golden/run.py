#!/usr/bin/env python3
"""The front end against files: bad/*.attn must be refused as their `#!` lines say, good/*.attn taken, fmt/*.attn
formatted to the bytes of fmt/*.expected. ATTNC names another binary than build/attnc.

    #! status 1                 the exit status of `attnc weights FILE`
    #! error LINE:COL: TEXT     a diagnostic with TEXT in its message; all are listed, in order
    #! note LINE:COL: TEXT      the same for a note
    #! model TEXT               a part of what `attnc --dump=model FILE` prints

A good file may have notes as well; without them nothing is on stderr.
"""
import glob
import os
import re
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib.attnc import ROOT, attnc  # noqa: E402
from lib.tap import Report  # noqa: E402

SECONDS = 5
REPORT = Report("golden")


def run(*args):
    begin = time.monotonic()
    done = attnc(*args, text=False, timeout=60)
    return done.returncode, done.stdout, done.stderr.decode("utf-8", "replace"), time.monotonic() - begin


def report(name, problems):
    REPORT.result(name, "\n".join(map(str, problems)) or None)


def expectations(path):
    found = []
    with open(path, "rb") as file:
        for line in file.read().decode("utf-8", "replace").splitlines():
            if line.startswith("#!"):
                found.append(line[2:].strip().split(" ", 1))
    return found


def diagnostics(stderr, path):
    """(kind, LINE:COL, message) of each, and the complaints about missing source lines and carets."""
    found, problems, lines = [], [], stderr.split("\n")
    for i, line in enumerate(lines):
        match = re.match(re.escape(path) + r":(\d+):(\d+): (error|note): (.*)$", line)
        if not match:
            continue
        caret = next((j for j in range(i + 1, len(lines)) if not re.match(r" {4}", lines[j])
                      or re.match(r"\s*\^~*$", lines[j])), len(lines) - 1)
        more = lines[i + 1:caret - 1]  # of a long message
        found.append((match[3], match[1] + ":" + match[2], " ".join([match[4]] + [part.strip() for part in more])))
        if caret < i + 2 or not re.match(r"\s*\^~*$", lines[caret]):
            problems.append("no source line and caret under: " + line)
        elif len(lines[caret].rstrip("~")) > len(lines[caret - 1]) + 1:
            problems.append("the caret stands behind its line: " + line)
        for part in more:
            if not re.match(r" {8}\S", part) or len(part) > 100 or len(more) > 6:
                problems.append("a long message is not wrapped: " + part)
    return found, problems


def refused(path, expected, parts=()):
    """Problems with the refusal of `path`; `expected` as diagnostics() gives them, `parts` anywhere on stderr."""
    status, stdout, stderr, seconds = run("weights", path)
    found, problems = diagnostics(stderr, path)
    if status != 1:
        problems.append(f"exit status {status}, not 1")
    if stdout:
        problems.append("something on stdout: " + repr(stdout[:100]))
    if seconds > SECONDS:
        problems.append(f"took {seconds:.1f} s")
    if expected is not None:
        same = len(found) == len(expected) and all(
            f[:2] == e[:2] and e[2] in f[2] for f, e in zip(found, expected))
        if not same:
            problems.append("expected:\n" + "\n".join("  %s %s: %s" % e for e in expected))
            problems.append("found:\n" + stderr[:4000])
    problems += [f"`{part}` is not on stderr:\n{stderr[:2000]}" for part in parts if part not in stderr]
    if "internal error" in stderr or "Sanitizer" in stderr or "runtime error" in stderr:
        problems.append(stderr[:4000])
    return problems


def bad_file(path):
    expected, parts = [], []
    for kind, text in expectations(path):
        if kind in ("error", "note"):
            place, message = text.split(": ", 1)
            expected.append((kind, place, message))
        elif kind == "stderr":
            parts.append(text)
        elif (kind, text) != ("status", "1"):
            return [f"what is `#! {kind} {text}`?"]
    if not expected and not parts:
        return ["the file says nothing about what is expected"]
    return refused(path, expected, parts)


def refused_everywhere(path, folder):
    """Commands that change the model before its graphs are built say of the graphs what `attnc weights` says."""
    out = os.path.join(folder, "out")
    call = ["--weights", "random:1", "--in", "tokens=absent.npy"]
    commands = [["compile", path, "-o", out], ["check", path], ["check", path, "--small"], ["--dump=ast", path],
                ["run", path, *call, "--out", "hidden=" + out], ["map", path, *call, "-o", out]]
    said, problems = run("weights", path)[2], []
    for command in commands:
        status, _, stderr, _ = run(*command)
        if status != 1 or stderr != said:
            problems.append(f"{command}: exit status {status}, stderr:\n{stderr[:1000]}")
    if os.path.exists(out):
        problems.append("something is written")
    return problems


def good_file(path):
    problems = []
    notes = [(kind, *text.split(": ", 1)) for kind, text in expectations(path) if kind == "note"]
    status, stdout, stderr, _ = run("weights", path)
    found, more = diagnostics(stderr, path)
    same = len(found) == len(notes) and all(f[:2] == e[:2] and e[2] in f[2] for f, e in zip(found, notes))
    if status != 0 or not same or more or not stdout or (stderr and not notes):
        problems.append(f"exit status {status}, stderr:\n{stderr[:2000]}")
    status, stdout, stderr, _ = run("--dump=model", path)
    dump = stdout.decode("utf-8", "replace")
    for kind, text in expectations(path):
        if kind == "note":
            continue
        if kind != "model":
            problems.append(f"what is `#! {kind} {text}`?")
        elif text not in dump:
            problems.append(f"`{text}` is not in:\n{dump[:3000]}")
    return problems


def comments(data):
    """The comments of a text, in order; strings hold none."""
    found = []
    for line in data.decode("utf-8", "replace").split("\n"):
        match = re.match(r'(?:[^"#]|"[^"]*")*(#.*)', line)
        if match:
            found.append(match[1].rstrip())
    return found


def formatted(path, folder):
    """fmt keeps the meaning and every comment, and does nothing the second time."""
    status, once, stderr, _ = run("fmt", path)
    if status != 0 or stderr:
        return [f"fmt: exit status {status}: {stderr[:1000]}"]
    problems = []
    again_path = os.path.join(folder, os.path.basename(path))
    with open(again_path, "wb") as file:
        file.write(once)
    twice = run("fmt", again_path)[1]
    if twice != once:
        problems.append("fmt twice differs:\n" + once.decode()[:1500] + "---\n" + twice.decode()[:1500])
    models = [run("--dump=model", p) for p in (path, again_path)]
    if models[0][0] != 0 or models[0][:2] != models[1][:2]:
        problems.append("fmt changes the model:\n" + once.decode()[:3000] + models[1][2][:1000])
    with open(path, "rb") as file:
        before = comments(file.read())
    if before != comments(once):
        problems.append("fmt loses comments:\n" + once.decode()[:3000])
    return problems


def fmt_golden(path):
    status, stdout, stderr, _ = run("fmt", path)
    with open(path[:-5] + ".expected", "rb") as file:
        expected = file.read()
    if status != 0 or stderr or stdout != expected:
        return [f"exit status {status}, found:\n" + stdout.decode("utf-8", "replace") + stderr]
    return []


GOOD = b"model m { d_model 4, vocab 3, encoder { seq <= 4, layers 1 { ffn { d_ff 8 } } } }\n"


def made(folder):
    """Bad files that cannot carry their expectation: (name, bytes or None, diagnostics or None, parts of stderr)."""
    nothing = [("error", "1:1", "the file has no model")]
    deep = "blocks nest more than 64 deep"
    chain = b"model m { d_model " + b"1+" * 100000 + b"1 }\n"
    return [
        ("empty", b"", nothing, ()),
        ("only_newline", b"\n", nothing, ()),
        ("only_bom", b"\xef\xbb\xbf", nothing, ()),
        ("half_bom", b"\xef\xbb" + GOOD, [("error", "1:1", "outside of ASCII")], ()),
        ("two_boms", b"\xef\xbb\xbf" * 2 + GOOD, [("error", "1:1", "outside of ASCII")], ()),
        ("nul_byte", GOOD.replace(b"d_model", b"d_\0model"), [("error", "1:13", "a NUL byte")], ()),
        ("nul_first", b"\0" + GOOD, [("error", "1:1", "a NUL byte")], ()),
        ("nul_last", GOOD + b"\0", [("error", "2:1", "a NUL byte")], ()),
        ("nul_in_comment", b"# a\0b\n" + GOOD, [("error", "1:1", "a NUL byte in a comment")], ()),
        ("nul_in_string", GOOD[:-2] + b', weights { prefix "a\0b" } }\n', None,
         ("a string holds a control character",)),
        ("utf16", GOOD.decode().encode("utf-16"), None, (": error: ",)),
        ("all_bytes", bytes(range(256)), None, (": error: ",)),
        ("random_binary", bytes((i * i * 7919 >> 3) & 255 for i in range(5000)), None, (": error: ",)),
        ("unclosed_string_at_end", b'model m { d_model 4, weights { prefix "bert', None, ("a string is not closed",)),
        ("quote_at_end", b'model m { d_model "', None, ("a string is not closed",)),
        ("open_at_end", b"model m {", [("error", "1:10", "the file ends inside a block: 1 `}` missing"),
                                      ("note", "1:9", "this block was opened here")], ()),
        ("name_at_end", b"model m", [("error", "1:1", "`model` wants a block")], ()),
        ("let_at_end", b"let", [("error", "1:4", "found end of item, expected name")], ()),
        ("too_large", b"# " + b"x" * (10 << 20) + b"\n" + GOOD, [], ("is too large: ", "at most 1048576 are read")),
        ("nesting", b"model m " + b"{ a " * 10000 + b"}" * 10000 + b"\n", [("error", "1:265", deep)], ()),
        ("nesting_of_lines", b"model m {\n" + b"a {\n" * 10000 + b"}\n" * 10001, [("error", "65:3", deep)], ()),
        ("closing_braces", b"}" * 10000, None, ("found `}`",)),
        ("parentheses", b"let a = sqrt" + b"(" * 10000 + b"1" + b")" * 10000 + b"\n",
         [("error", "1:77", "parentheses nest more than 64 deep")], ()),
        ("roots", b"let a = " + b"sqrt(" * 10000 + b"1" + b")" * 10000 + b"\n",
         [("error", "1:333", "parentheses nest more than 64 deep")], ()),
        ("additions", chain, [("error", "1:19", "an expression has more than 100 steps")], ()),
        ("additions_of_lines", b"let a = 1*(1" + b"+1\n" * 100000 + b")\n" + GOOD,
         [("error", "1:12", "an expression has more than 100 steps")], ()),
        ("long_line", b"model m { " + b"d_model 4, " * 90000 + b"}\n", None,
         ("`d_model` stands twice", "too many errors")),
        ("many_lets", b"".join(b"let a%d=1\n" % i for i in range(80000)) + GOOD,
         [("error", "4097:5", "at most 4096 `let` lines")], ()),
        ("many_layers", b"model m{d_model 1,vocab 1,encoder{seq=1\n" + b"layers 1{ffn{d_ff 1}}\n" * 45000 + b"}}\n",
         None, ("at most 4096 layers", "too many errors")),
        ("many_sublayers", b"model m{d_model 1,vocab 1,encoder{seq=1\nlayers 1{" + b"ffn{d_ff 1}," * 80000 + b"}}}\n",
         [("error", "2:1", "at most 16 sublayers")], ()),
        ("many_exports", b"model m{d_model 1,vocab 1,encoder{seq=1\nexport attention heads" +
         b" ".join(b" %d" % (i % 65536) for i in range(140000)) + b"\nlayers 4096{attention self{heads 1}}}}\n",
         None, ("`export` names head 0 twice",)),
        ("longest_word", b"a" * 1000000, [("error", "1:1", "a word is longer than 63 characters")], ()),
        ("longest_number", b"let a = " + b"9" * 1000000 + b"\n" + GOOD, [("error", "1:9", "does not fit 63 bits")], ()),
        ("longest_string", b'model m { weights { prefix "' + b"a" * 1000000 + b'" "" x } }', None, ("wants strings",)),
        ("folder", None, [], ("it is a folder",)),
        ("missing", None, [], ("cannot be opened: No such file or directory",)),
    ]


def main():
    os.chdir(ROOT)
    for path in sorted(glob.glob("tests/golden/bad/*.attn")):
        report("bad/" + os.path.basename(path), bad_file(path))
    with tempfile.TemporaryDirectory() as folder:
        for name, data, expected, parts in made(folder):
            path = os.path.join(folder, name + ".attn")
            if data is not None:
                with open(path, "wb") as file:
                    file.write(data)
            elif name == "folder":
                os.mkdir(path)
            report("made/" + name, refused(path, expected, parts))
        for name in ("weights_no_tensor", "tensor_too_large"):
            report("every command of " + name, refused_everywhere(f"tests/golden/bad/{name}.attn", folder))
    good = sorted(glob.glob("tests/golden/good/*.attn"))
    for path in good:
        report("good/" + os.path.basename(path), good_file(path))
    with tempfile.TemporaryDirectory() as folder:
        for path in good + sorted(glob.glob("specs/**/*.attn", recursive=True)) + sorted(
                glob.glob("tests/families/*.attn")):
            report("fmt of " + path, formatted(path, folder))
        for path in sorted(glob.glob("tests/golden/fmt/*.attn")):
            report("fmt/" + os.path.basename(path), fmt_golden(path))
    return REPORT.finish()


if __name__ == "__main__":
    sys.exit(main())
