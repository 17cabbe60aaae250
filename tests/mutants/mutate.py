"""Mutants that chance makes: an operator, a constant or a statement of a template or a pass is another, or none.

A place has a rank, the hash of the seed, of its file's name and of its line's text; the lowest ranks are taken. So one
seed gives the same mutants always, and a change of the sources leaves those of other lines as they are."""
import glob
import hashlib
import os
import re

from table import Drawn
from tree import Wrong

# Files, and how many mutants of them all together.
ELSEWHERE = "compiler/emit/templates/driver_serve.c.tmpl"  # of programs for emulators: tests/portability runs them
STRATA = (
    (("compiler/emit/templates/*.tmpl",), 30), (("compiler/plan/*.c",), 12),
    (("compiler/lower/*.c", "compiler/emit/file.c", "compiler/emit/interface.c", "compiler/emit/kernels.c"), 10),
    (("compiler/ir/build*.c",), 8),
)
OPERATORS = {" + ": " - ", " - ": " + ", " * ": " / ", " / ": " * ", " < ": " <= ", " <= ": " < ", " > ": " >= ",
             " >= ": " > ", " == ": " != ", " != ": " == ", " && ": " || ", " || ": " && "}
OPERATOR = re.compile("|".join(re.escape(operator) for operator in OPERATORS))
CONSTANT = re.compile(r"(?:(?<=\.\.)|(?<![\w.]))\d+(?!\w)(?!\.\d)")
# a whole statement on a line of its own: an assignment, a call, a jump; declarations begin with a type
STATEMENT = re.compile(r"^ *((?:\*?[\w.>\[\]-]+ [-+*|&/]?= |[a-z]\w*\(|\$\{v\.store|continue\b|break\b)"
                       r"(?:[^{\n]|\$\{)*;)$", re.M)
HIDDEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\''
                    r'|/\*.*?\*/|//[^\n]*|^ *#[^\n]*|\bbug\([^\n]*', re.S | re.M)


def blank(found):
    return re.sub(r"[^\n]", " ", found.group())


def sites(text, is_template):
    """(offset, old, new) of all that can be changed; comments, words in quotes and what calls bug are left out."""
    if is_template:
        seen = re.sub(r"/\*.*?\*/|^ *\$#[^\n]*", blank, text, flags=re.S | re.M)
    else:
        seen = HIDDEN.sub(blank, text)
    for found in OPERATOR.finditer(seen):
        yield found.start(), found.group(), OPERATORS[found.group()]
    for found in CONSTANT.finditer(seen):
        number = int(found.group())
        yield found.start(), found.group(), str(number + 1)
        if number > 0:
            yield found.start(), found.group(), str(number - 1)
    for found in STATEMENT.finditer(seen):
        at = found.start(1)
        yield at, text[at:found.end(1)], ";"


def line_around(text, at):
    begin = text.rfind("\n", 0, at) + 1
    return begin, text[begin:text.find("\n", at)]


def drawn(root, seed):
    """Of each stratum its mutants, lowest rank first, and how many are wanted."""
    for patterns, wanted in STRATA:
        found = []
        for pattern in patterns:
            if not glob.glob(pattern, root_dir=root):
                raise Wrong("mutate.py: no file is named " + pattern)
        names = sorted(name for pattern in patterns for name in glob.glob(pattern, root_dir=root)
                       if name != ELSEWHERE)
        for name in names:
            with open(os.path.join(root, name), encoding="utf-8") as file:
                text = file.read()
            times = {}
            for at, old, new in sites(text, name.endswith(".tmpl")):
                begin, line = line_around(text, at)
                key = (line, at - begin, new)
                times[key] = times.get(key, 0) + 1
                rank = hashlib.sha256(repr((seed, name, times[key]) + key).encode()).hexdigest()
                after = line[:at - begin] + new + line[at - begin + len(old):]
                found.append((rank, Drawn(rank[:8], name, at, old, new, (line.strip(), after.strip()))))
        yield [mutant for _, mutant in sorted(found, key=lambda pair: pair[0])], wanted
