"""The tables of this folder, and mutants: a place in a file, and what stands there instead.

    == NAME: what is wrong
    file PATH
    by COMMAND                  who must catch it; several are run in turn until one fails
    - TEXT                      stands once in the file; several such lines are lines of it that follow each other
    + TEXT                      what stands there instead
"""
import fnmatch
import os
import re

from tree import Command, Wrong

HERE = os.path.dirname(os.path.abspath(__file__))


class Mutant:
    def __init__(self, name, file, old, new, commands=()):
        self.name, self.file, self.old, self.new, self.commands = name, file, old, new, commands

    def applied(self, text):
        if text.count(self.old) != 1:
            raise Wrong("its text stands %d times in %s:\n%s" % (text.count(self.old), self.file, self.old))
        return text.replace(self.old, self.new)


class Drawn(Mutant):
    """One that chance made: its place is an offset."""

    def __init__(self, name, file, at, old, new, lines):
        super().__init__(name, file, old, new)
        self.at, self.lines = at, lines  # the line before and after

    def applied(self, text):
        if text[self.at:self.at + len(self.old)] != self.old:
            raise Wrong("%s: %s has changed" % (self.name, self.file))
        return text[:self.at] + self.new + text[self.at + len(self.old):]


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
    mutants = []
    for title, lines in entries("named.txt"):
        if sorted(lines) != ["+", "-", "by", "file"] or len(lines["file"]) != 1 or not re.match(r"\w+: ", title):
            raise Wrong("named.txt: `%s` is not whole" % title)
        old, new = "\n".join(lines["-"]), "\n".join(lines["+"])
        mutants.append(Mutant(title, lines["file"][0], old, new, commands.of(lines["by"])))
    names = [mutant.name.split(":")[0] for mutant in mutants]
    if len(set(names)) != len(names):
        raise Wrong("named.txt: a name stands twice")
    return mutants


def killers(commands):
    """What tries to catch mutants of a file: a function of its path."""
    rows = [(title.split(), commands.of(lines["by"])) for title, lines in entries("killers.txt")]

    def of(path):
        for patterns, found in rows:
            if any(fnmatch.fnmatch(path, pattern) for pattern in patterns):
                return found
        raise Wrong("killers.txt has nothing for " + path)
    return of


def explanations():
    """Of survivors: why nothing can catch them, by file, line before and line after."""
    found = {}
    for title, lines in entries("explained.txt"):
        for old, new in zip(lines["-"], lines["+"], strict=True):
            found[lines["file"][0], old.strip(), new.strip()] = title
    return found
