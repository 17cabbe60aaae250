"""The tables of this folder, and mutants: a name, what stands there, and what stands there instead.

    == NAME: what is wrong
    in FUNCTION                 or a table, a macro, a type of C, in whichever file; or the base name of a template
    by COMMAND                  who must catch it; several are run in turn until one fails
    - TEXT                      stands there once, whatever its white space; several such lines follow each other
    + TEXT                      what stands there instead
"""
import fnmatch
import glob
import os
import re

import places
from tree import Command, Wrong

HERE = os.path.dirname(os.path.abspath(__file__))
NAMED = ("named.txt", "named_narrow.txt")


class Mutant:
    """A mutant at an offset of a file, where `old` stands."""

    def __init__(self, name, file, at, old, new, commands=()):
        self.name, self.file, self.at, self.old, self.new, self.commands = name, file, at, old, new, commands

    def applied(self, text):
        if text[self.at:self.at + len(self.old)] != self.old:
            raise Wrong("%s: %s has changed" % (self.name, self.file))
        return text[:self.at] + self.new + text[self.at + len(self.old):]


class Drawn(Mutant):
    """A mutant that chance made."""

    def __init__(self, name, file, at, old, new, lines):
        super().__init__(name, file, at, old, new)
        self.lines = lines  # the line before and after

    def key(self):
        """What explained.txt knows it by."""
        return (places.definition_at(self.file, self.at), *self.lines)


def entries(name):
    """Of each `== TITLE`: the title, and lists of what its lines say by their first word."""
    found = []
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            line = line.rstrip("\n")
            if line.startswith("== "):
                found.append((line[3:], {}))
            elif line and not line.startswith("#"):
                if not found or " " not in line:
                    raise Wrong("%s:%d: no line of an entry: %s" % (name, number, line))
                key, value = line.split(" ", 1)
                found[-1][1].setdefault(key, []).append(value)
    return found


class Commands:
    """One for each text, so that each is timed once."""

    def __init__(self):
        self.known = {}

    def of(self, texts):
        return [self.known.setdefault(text, Command(text)) for text in texts]


def named(commands):
    """The mutants of NAMED. Wrong, with every entry that is at fault, where one has no place or not one alone."""
    mutants, wrong = [], []
    for title, lines in [entry for name in NAMED for entry in entries(name)]:
        if sorted(lines) != ["+", "-", "by", "in"] or len(lines["in"]) != 1 or not re.match(r"\w+: ", title):
            raise Wrong("the mutant `%s` is not whole" % title)
        try:
            file, begin, end = places.place(lines["in"][0], "\n".join(lines["-"]))
        except Wrong as why:
            wrong.append("the mutant %s: %s" % (title.split(":")[0], why))
            continue
        old = places.read(places.ROOT, file)[begin:end]
        mutants.append(Mutant(title, file, begin, old, "\n".join(lines["+"]), commands.of(lines["by"])))
    if wrong:
        raise Wrong("\n".join(wrong))
    names = [mutant.name.split(":")[0] for mutant in mutants]
    if len(set(names)) != len(names):
        raise Wrong("two mutants have the same name")
    return mutants


def killers(commands):
    """What tries to catch mutants of a file: a function of its path."""
    rows = [(title.split(), commands.of(lines["by"])) for title, lines in entries("killers.txt")]
    gone = [pattern for patterns, _ in rows for pattern in patterns if not glob.glob(pattern, root_dir=places.ROOT)]
    if gone:
        raise Wrong("killers.txt: no file is named " + ", ".join(gone))

    def of(path):
        for patterns, found in rows:
            if any(fnmatch.fnmatch(path, pattern) for pattern in patterns):
                return found
        raise Wrong("killers.txt has nothing for " + path)
    return of


def explanations():
    """Of survivors: why nothing can catch them, by definition, line before and line after."""
    found, gone = {}, []
    for title, lines in entries("explained.txt"):
        for old, new in zip(lines["-"], lines["+"], strict=True):
            if not places.matches(lines["in"][0], old):
                gone.append("explained.txt: a line is gone from `%s`:\n%s" % (lines["in"][0], old))
            found[lines["in"][0], old.strip(), new.strip()] = title
    if gone:
        raise Wrong("\n".join(gone))
    return found
