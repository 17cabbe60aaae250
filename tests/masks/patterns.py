"""Pictures of masks that `attnc explain` prints, against conditions of Python and the pairs that the C multiplies."""
import ast
import os
import re
import typing

from lib.attnc import attnc, run
from lib.targets import here, table

MOST_CELLS = 32


class Picture(typing.NamedTuple):
    """What explain prints of a mask: the rows of the drawing, and its numbers."""
    place: str
    rule: str
    given: typing.Optional[str]
    rows: int
    keys: int
    visible: int
    multiplied: int
    target: str
    tile: int
    cell: int
    lines: list
    text: str


HEAD = re.compile(r"""mask of (?P<place>.+?): (?P<rule>.+)
(?:drawn for (?P<given>.+)\n)?\
(?P<rows>\d+) x (?P<keys>\d+) pairs of query and key: (?P<visible>\d+) \((?P<seen>[\d.]+) %\) visible, \
(?P<multiplied>\d+) \((?P<share>[\d.]+) %\) multiplied by (?P<target>\w+), (?P<tile>\d+) (?:query|queries) and 16 keys \
at a time
(?:a character is (?P<cell>\d+) x (?P=cell) pairs: # all of them are visible, \+ some, \. none\n)?\
(?P<lines>(?:  [#+.]+\n)+)""".replace("\\\n", ""))


def pictures(text):
    """The pictures of what explain printed; every word of them is read."""
    found, at = [], text.find("\nmask of ")
    while at >= 0:
        end = text.find("\n\n", at + 1)
        part = text[at + 1:len(text) if end < 0 else end + 1]
        match = HEAD.fullmatch(part)
        assert match, part
        numbers = {name: int(match[name]) for name in ("rows", "keys", "visible", "multiplied", "tile")}
        for count, share in ((numbers["visible"], match["seen"]), (numbers["multiplied"], match["share"])):
            assert share == "%.2f" % (100 * count / (numbers["rows"] * numbers["keys"])), part
        lines = [line[2:] for line in match["lines"].splitlines()]
        found.append(Picture(match["place"], match["rule"], match["given"], target=match["target"],
                             cell=int(match["cell"] or 1), lines=lines, text=part, **numbers))
        at = -1 if end < 0 else end + 1
    return found


def drawn(rows, keys, sees):
    """(cell, lines, visible) as the condition `sees(query, key)` has them."""
    cell = -(-max(rows, keys) // MOST_CELLS)
    seen = [[bool(sees(q, k)) for k in range(keys)] for q in range(rows)]
    lines = []
    for top in range(0, rows, cell):
        line = ""
        for left in range(0, keys, cell):
            pairs = [pair for row in seen[top:top + cell] for pair in row[left:left + cell]]
            line += "#" if all(pairs) else "+" if any(pairs) else "."
        lines.append(line)
    return cell, lines, sum(map(sum, seen))


def compare(picture, sees):
    """A picture against a condition of Python."""
    wanted = drawn(picture.rows, picture.keys, sees)
    assert (picture.cell, picture.lines, picture.visible) == wanted, \
        "%s\nwanted: %d visible\n  %s" % (picture.text, wanted[2], "\n  ".join(wanted[1]))


def integers(given):
    """{name: numbers} of a line `drawn for doc=3*0,2*1, far=7, width=2.5`."""
    found = {}
    for item in given.split(", "):
        name, numbers = item.split("=")
        pairs = [number.split("*") for number in numbers.split(",")]
        found[name] = [ast.literal_eval(pair[-1]) for pair in pairs
                       for _ in range(int(pair[0]) if len(pair) > 1 else 1)]
    return found


MAIN = """
#include <stddef.h>
static size_t multiplied;
#include "m.c"
#include <stdio.h>

int main(void) {
    static _Alignas(M_ALIGNMENT) unsigned char workspace[M_WORKSPACE_BYTES(1)];
    static const float features[%(rows)d][8];
    static float hidden[%(rows)d][8];
    const int32_t lengths[] = {%(rows)d};
%(arrays)s
    m_input input = {.size = sizeof input, .batch = 1, .lengths = lengths, .features = &features[0][0]%(fields)s};
    m_output output = {.size = sizeof output, .hidden = &hidden[0][0]};
    m_ctx model;
    int status = m_init(&model, m_embedded(), M_WEIGHTS_BYTES, NULL);
    if (!status) status = m_forward(&model, &input, &output, workspace, sizeof workspace);
    printf("%%d %%zu\\n", status, multiplied);
    return 0;
}
"""


def count_multiplied(folder, spec, target, rows, inputs):
    """The pairs that the C of a model `m` of one attention with one head multiplies for a sequence, counted as it
    runs."""
    attnc("compile", spec, "-o", folder, "--target", target, "--weights", "random:1", "--embed-weights", status=0)
    path = os.path.join(folder, "m.c")
    with open(path, encoding="utf-8") as file:
        parts = re.split(r"(?<=_rows)(\d)(?=\(const float \*query, const float \*panels)", file.read())
    assert len(parts) > 1, "the functions of rows are not found"
    for i in range(2, len(parts), 2):
        found = r"(size_t x = 0;)(?=\s*for \(; x \+)", "shown * 16"
        if not re.search(found[0], parts[i]):
            found = "(const size_t padded = [^;]*;)", "(padded - from)"
        parts[i], count = re.subn(found[0], r"\1 multiplied += %s * %s;" % (parts[i - 1], found[1]), parts[i])
        assert count == 1, "the panels are not found"
    with open(path, "w", encoding="utf-8") as file:
        file.write("".join(parts))
    with open(os.path.join(folder, "m.h"), encoding="utf-8") as file:
        kinds = {name: kind for kind, name in re.findall(r"const (\w+) \*in_(\w+);", file.read())}
    arrays = "\n".join("    static const %s %s[] = {%s};" % (kinds[name], name, ", ".join(map(str, numbers)))
                       for name, numbers in inputs.items())
    with open(os.path.join(folder, "main.c"), "w", encoding="utf-8") as file:
        file.write(MAIN % {"rows": rows, "arrays": arrays, "fields": "".join(", .in_%s = %s" % (x, x) for x in inputs)})
    program = os.path.join(folder, "count")
    run("clang", "-std=c11", "-O1", os.path.join(folder, "main.c"), "-o", program, "-lm", status=0)
    status, count = run(program, status=0).stdout.split()
    assert status == "0", "status " + status
    return int(count)


def widths():
    """The targets of this machine whose C differs in the rows that it multiplies at once."""
    return [name for name in here(on_request=False) if name in ("scalar", "sse2", "avx2", "avx512", "neon", "rvv")] \
        or [name for name in here() if "small" not in table(name)][:1]
