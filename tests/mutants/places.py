"""Where a mutant stands: in a function, a table or a macro of C by its name, whichever file has it, or in a template or
another file that is no C by the file's base name."""
import collections
import functools
import glob
import os
import re

from tree import ROOT, Wrong

FOLDERS = ("compiler", "runtime")
ENDS = (".c", ".h", ".y", ".l")
# What may hold a brace that opens nothing.
HIDDEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|/\*.*?\*/|//[^\n]*', re.S)
MACRO = re.compile(r"^#[ \t]*define[ \t]+(\w+)(?:[^\n]*\\\n)*[^\n]*$|^#(?:[^\n]*\\\n)*[^\n]*$", re.M)

Definition = collections.namedtuple("Definition", "name file begin end")


def blank(found):
    return re.sub(r"[^\n]", " ", found.group())


def name_of(head):
    """The name that is defined by what stands before a brace: a function's, a table's, a type's."""
    table = re.search(r"(\w+)\s*(?:\[[^\]]*\]\s*)*=\s*$", head)
    function = re.search(r"(\w+)\s*\(", head)
    words = re.findall(r"\w+", head)
    return table[1] if table else function[1] if function else words[-1] if words else ""


def definitions(text, file):
    """Every definition of a file in C. What stands between two of them belongs to the second."""
    seen, begin, depth, name = HIDDEN.sub(blank, text), 0, 0, ""
    for found in MACRO.finditer(seen):
        if found[1]:
            yield Definition(found[1], file, found.start(), found.end())
    seen = MACRO.sub(blank, seen)
    for found in re.finditer(r"[{};]", seen):
        at = found.start()
        if found[0] == "{":
            if depth == 0:
                name = name_of(seen[begin:at])
            depth += 1
        elif found[0] == "}":
            depth -= 1
        if depth == 0 and found[0] != "{":
            if found[0] == "}":
                yield Definition(name, file, begin, at + 1)
            begin = at + 1


def read(root, file):
    with open(os.path.join(root, file), encoding="utf-8") as source:
        return source.read()


@functools.cache
def index(root):
    """{name: its definitions} of all C, and {base name: definitions that are whole files} of the rest."""
    found = collections.defaultdict(list)
    for folder in FOLDERS:
        for file in sorted(glob.glob(folder + "/**/*", root_dir=root, recursive=True)):
            if not os.path.isfile(os.path.join(root, file)):
                continue
            if file.endswith(ENDS):
                for one in definitions(read(root, file), file):
                    found[one.name].append(one)
            else:
                found[os.path.basename(file)].append(Definition(os.path.basename(file), file, 0, None))
    return found


def pattern(old):
    """Any white space stands for any other."""
    return re.compile(r"\s+".join(re.escape(word) for word in old.split()))


def matches(where, old, root=ROOT):
    """(file, offset, end) of each place where the text stands in definitions of that name."""
    found = []
    for one in index(root)[where]:
        text = read(root, one.file)
        end = len(text) if one.end is None else one.end
        found += [(one.file, match.start(), match.end()) for match in pattern(old).finditer(text, one.begin, end)]
    return found


def place(where, old, root=ROOT):
    """(file, offset, end) of the only place of a text."""
    if not index(root)[where]:
        raise Wrong("nothing in %s is named `%s`" % (" or ".join(FOLDERS), where))
    found = matches(where, old, root)
    if len(found) != 1:
        files = ", ".join(sorted({one.file for one in index(root)[where]}))
        raise Wrong("its text stands %d times in `%s` (%s):\n%s" % (len(found), where, files, old))
    return found[0]


def definition_at(file, offset, root=ROOT):
    """The name of the definition that an offset of a file stands in; the file's own base name for what is no C."""
    if not file.endswith(ENDS):
        return os.path.basename(file)
    around = [one for one in definitions(read(root, file), file) if one.begin <= offset < one.end]
    return around[0].name if around else ""
