"""What the parts of this suite share: attnc, TAP, and the programs around the emitted C of a spec."""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from lib.attnc import ATTNC, ROOT, run  # noqa: E402
from lib.tap import Report  # noqa: E402

report = Report("promises")
result = report.result


def must(*command, **more):
    """What a command printed that succeeds."""
    return run(*command, status=0, **more).stdout


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, data):
    with open(path, "wb") as file:
        file.write(data.encode() if isinstance(data, str) else data)
    return path


# ---------------------------------------------------------------- a program around a model

KINDS = {"[rows]": "ROWS", "[source_rows]": "SOURCE", "[batch]": "SEQUENCE"}


def fields(struct, text):
    """C of the Field of each array in a struct of a model's header; the comments there say how long it is."""
    body = re.search(r"typedef struct %s \{\n(.*?)\n\} %s;" % (struct, struct), text, re.S).group(1)
    found = []
    for kind, name, comment in re.findall(r"^    (?:const )?(float|int32_t) \*(\w+);\s*/\* (.*?) \*/", body, re.M):
        if name.endswith("lengths"):
            continue
        maps = re.search(r"\[(\d+)\]\[n\]\[m\]", comment)
        if maps:
            counted, width = "MAPS_SOURCE" if "of the source, or keys" in comment else "MAPS_SELF", maps.group(1)
        else:
            place, width = re.match(r"(\[\w+\])(?:\[(\d+)\])?", comment).groups()
            counted = KINDS[place]
        ids = re.search(r"ids, 0 to (\d+)", comment)
        number = int(ids.group(1)) + 1 if ids else 0
        found.append('{"%s", offsetof(%s, %s), %s, %s, %d}' % (name, struct, name, width or 1, counted, number))
    return found


def bound(text, *names):
    """The rows of a sequence, or of a source: (most, whether all have that many)."""
    for name in names:
        found = re.search(r"\b\w*[A-Z]_%s = (\d+),\s*/\* (most )?\w+ of a" % name, text)
        if found:
            return int(found.group(1)), not found.group(2)
    return 0, False


def config(name, folder):
    """config.h of program.h."""
    text = read(os.path.join(folder, name + ".h")).decode()
    inputs, outputs = fields(name + "_input", text), fields(name + "_output", text)
    rows, exact = bound(text, "SEQ", "QUERIES")
    source, exact_source = bound(text, "SOURCE_SEQ", "KEYS")
    source_lengths = re.search(r"\*(source_lengths|key_lengths);", text)
    source_ids = re.search(r"\*source; /\* \[source_rows\] ids, 0 to (\d+)", text)
    lines = ['#include "%s.h"' % name, "#define M(x) %s_##x" % name, "#define U(x) %s_##x" % name.upper()]
    lines += ["enum { MOST_ROWS = %d, EXACT_ROWS = %d, MOST_SOURCE = %d, EXACT_SOURCE = %d, ONE_SEQUENCE = %d };" % (
        rows, exact, source, exact_source, "/* sequences: 1 */" in text)]
    lines += ["#define SOURCE_LENGTHS " + source_lengths.group(1)] if source_lengths else []
    lines += ["#define SOURCE_IDS %d" % (int(source_ids.group(1)) + 1)] if source_ids else []
    lines += ["#define HAS_DECODE"] if "%s_prefill(" % name in text else []
    for what, list_ in (("INPUTS", inputs), ("OUTPUTS", outputs)):
        lines += ["#define N_%s %d" % (what, len(list_)),
                  "static const Field %s[] = {%s};" % (what, ", ".join(list_))]
    if not rows or not inputs or not outputs:
        raise AssertionError("the header of %s is read wrongly: %s" % (name, lines))
    return "\n".join(lines) + "\n"


class Program:
    """The C of a spec and what is around it, in a folder of its own; `build` makes a program of it."""

    def __init__(self, spec, folder, options=()):
        self.folder = folder
        os.mkdir(folder)
        must(ATTNC, "compile", os.path.join(ROOT, spec), "-o", folder, "--weights", "random:5", *options)
        self.name = next(name[:-6] for name in os.listdir(folder) if name.endswith(".attnw"))
        self.weights = os.path.join(folder, self.name + ".attnw")
        write(os.path.join(folder, "config.h"), config(self.name, folder))

    def build(self, cc, *flags):
        out = os.path.join(self.folder, "-".join(["program", os.path.basename(cc), *flags]).replace("/", ""))
        around = [os.path.join(HERE, name) for name in ("program.c", "decode.c", "refuse.c")]
        runtime = os.path.join(ROOT, "runtime")
        must(cc, "-std=c11", "-D_GNU_SOURCE", *flags, "-Wno-unused-variable", "-I", self.folder, "-I", runtime,
             os.path.join(self.folder, self.name + ".c"), *around, os.path.join(runtime, "attn_runtime.c"), "-o", out,
             "-lpthread")
        return out
