"""docs/language.md as the test reads it: sections, examples, tables, and formulas that can be evaluated."""
import math
import re
import struct


def single(x):
    """x rounded to 32 bits."""
    return struct.unpack("<f", struct.pack("<f", x))[0]


class Row:
    """A row of numbers; arithmetic is column by column, with a row or a number."""

    def __init__(self, values):
        self.values = list(values)

    def __len__(self):
        return len(self.values)

    def __getitem__(self, at):
        return Row(self.values[at]) if isinstance(at, slice) else self.values[at]

    def with_(self, other, f):
        if isinstance(other, Row):
            assert len(self) == len(other), "rows of %d and %d columns" % (len(self), len(other))
            return Row(f(a, b) for a, b in zip(self, other))
        return Row(f(a, other) for a in self)

    def __add__(self, other):
        return self.with_(other, lambda a, b: a + b)

    def __sub__(self, other):
        return self.with_(other, lambda a, b: a - b)

    def __mul__(self, other):
        return self.with_(other, lambda a, b: a * b)

    def __truediv__(self, other):
        return self.with_(other, lambda a, b: a / b)

    def __pow__(self, other):
        return self.with_(other, lambda a, b: a ** b)

    __radd__, __rmul__ = __add__, __mul__


class Around:
    """Rows, of which all before the first one and after the last one are 0."""

    def __init__(self, rows):
        self.rows = rows

    def __getitem__(self, i):
        return self.rows[i] if 0 <= i < len(self.rows) else [0.0] * len(self.rows[0])


class Matrix:
    """[out][in]; W @ x is a row of `out` numbers."""

    def __init__(self, rows):
        self.rows = [Row(row) for row in rows]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, at):
        return self.rows[at]

    def __matmul__(self, x):
        return Row(dot(row, x) for row in self.rows)


def dot(a, b):
    assert len(a) == len(b), "%d and %d columns" % (len(a), len(b))
    return math.fsum(x * y for x, y in zip(a, b))


def each(f):
    return lambda x: Row(f(v) for v in x) if isinstance(x, Row) else f(x)


def mean(x):
    return math.fsum(x) / len(x)


WORDS = {"abs": abs, "min": min, "max": max, "sum": sum, "zip": zip, "pi": math.pi, "floor": math.floor,
         "ceil": math.ceil, "log": math.log, "log2": math.log2, "cos": math.cos, "sin": math.sin, "single": single,
         "round": round,
         "sqrt": each(math.sqrt), "exp": each(math.exp), "tanh": each(math.tanh), "erf": math.erf, "dot": dot,
         "mean": mean, "var": lambda x: mean((x - mean(x)) ** 2), "True": True}


def evaluate(text, names):
    """`^` is power. The page is this repository's own; no name is known but those given and WORDS."""
    return eval(text.replace("^", "**"), {"__builtins__": {}, **WORDS, **names})  # pylint: disable=eval-used


class Page:
    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.text = file.read()
        self.sections = {}  # of `### NAME`, in the page's order
        for part in re.split(r"^### ", re.sub(r"^## .*$", "### ", self.text, flags=re.M), flags=re.M)[1:]:
            name, body = part.split("\n", 1)
            if name.strip():
                assert name not in self.sections, "two sections `%s`" % name
                self.sections[name] = body
        fenced = re.findall(r"^```(.*)\n((?:.*\n)*?)```$", self.text, re.M)
        self.blocks = [(info.strip(), body) for info, body in fenced]

    def examples(self):
        return [body for info, body in self.blocks if info == "attn"]

    def table(self, setting):
        """{option: (takes, meaning, default)}."""
        text = re.search(r"<!-- table: %s -->\n(.*?)<!-- end -->" % setting, self.text, re.S).group(1)
        rows = [line.strip("|").split(" | ") for line in text.splitlines() if line.startswith("| `")]
        return {row[0].strip(" `"): [cell.strip() for cell in row[1:]] for row in rows}

    def meaning(self, setting, option, names):
        """What the table says of an option, evaluated: behind the colon where there is one."""
        return evaluate(self.table(setting)[option][1].split(": ")[-1].split("; ")[0], names)

    def formulas(self, labels, **names):
        """The blocks of these labels, evaluated in their order: a dict of numbers and functions, with `names` in it."""
        known = dict(names)
        for label in labels.split():
            found = [body for info, body in self.blocks if info == "formula " + label]
            assert len(found) == 1, "%d blocks of formulas `%s`" % (len(found), label)
            for line in re.split(r"\n(?=\S)", re.sub(r" *#.*", "", found[0]).strip()):
                left, right = line.split("=", 1)
                name, *arguments = re.findall(r"\w+", left)
                text = " ".join(right.split())
                if arguments:
                    known[name] = self.function(text, arguments, known)
                elif name not in names:
                    known[name] = evaluate(text, known)
        return known

    @staticmethod
    def function(text, arguments, known):
        code = compile(text.replace("^", "**"), text, "eval")

        def call(*values):
            assert len(values) == len(arguments), "%s wants %s" % (text, arguments)
            names = {"__builtins__": {}, **WORDS, **known, **dict(zip(arguments, values))}
            return eval(code, names)  # pylint: disable=eval-used
        return call
