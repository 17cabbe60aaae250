"""What the parts of this suite share: its specs and its results."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from lib import npy  # noqa: E402
from lib.tap import Report  # noqa: E402
from lib.targets import of_processor  # noqa: E402

TARGETS = of_processor(on_request=False)
SPECS = ("ring", "pair", "prefixed", "longrope")

report = Report("decode")
result = report.result


def spec_path(name):
    return os.path.join(HERE, name + ".attn")


def spec_text(name):
    with open(spec_path(name), encoding="utf-8") as file:
        return file.read()


def write_text(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def write_ids(path, rows, descr="<i4"):
    """Rows of one length, or a plain list."""
    if rows and isinstance(rows[0], (list, tuple)):
        return npy.write(path, [n for row in rows for n in row], (len(rows), len(rows[0])), descr)
    return npy.write(path, rows, descr=descr)


def read_ids(path):
    """A list, or a list of lists, of a file of one or two dimensions."""
    found = npy.read(path)
    return list(found.numbers) if len(found.shape) == 1 else [list(row) for row in found.rows()]
