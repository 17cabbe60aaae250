"""Pages of models whose calls take numbers beside the tokens: of rows, of pairs, of the whole text."""
import math

import served
from lib import npy
from lib.attnc import attnc

ROWS = """model rows_written {
    d_model 16, vocab 40
    decoder {
        seq <= 24
        input rows document 0..3
        input rows weight real -2..2.5
        input rows pos 0..30
        input number far 1..9
        position learned at pos
        layers 2 {
            attention self {
                heads 2, mask causal where document[q] == document[k] or q - k < far
                score s + weight[k]
            }
        }
    }
    head logits
    start 1, end 2
}
"""
PREFIX = """model prefix_written {
    d_model 16, vocab 40
    decoder {
        seq <= 24, position learned
        input rows flags
        input number far real
        layers 2 { attention self { heads 2, mask prefix where not bit(flags[k], q - k), score s + far*(q - k) } }
    }
    head logits
}
"""
BOTH = """model both_stacks {
    d_model 16, vocab 40
    encoder {
        seq <= 12, position learned
        input number near 0..12
        input pairs dist 0..9
        layers 1 { attention self { heads 2, mask where abs(q - k) <= near, score s - dist[q, k] } }
    }
    decoder {
        seq <= 20, position learned
        input rows kind 0..3 of source
        input rows state 0..3
        layers 1 {
            attention self { heads 2 }
            attention cross { heads 2, mask where kind[k] <= state[q] or k == 0 }
        }
    }
    head logits
    start 1, end 2
}
"""


class Given:
    """Tests of run.py."""

    def test_inputs(self):
        """Numbers of rows, of pairs and of the whole text, which repeat until there are enough."""
        spec = self.path("asked.attn", """model asked {
    d_model 16, vocab 40
    encoder {
        seq <= 24, position learned
        input rows document 0..3
        input rows weight real
        input pairs dist 0..9
        layers 1 {
            attention self {
                heads 2, learned b [heads][10]
                mask prefix where document[q] == document[k] or k == 0
                score s*weight[k] + b[h, dist[q, k]]
            }
        }
    }
    head pool mean
}
""")
        folder = self.page("asked", spec, "--weights", "random:3")
        texts = [[3, 1, 4, 1, 5], [9, 2, 6]]

        def vector(ids):
            n = len(ids)
            given = {"tokens": (ids, (1, n), "<i8"), "document": ([[0, 0, 2][i % 3] for i in range(n)], (1, n), "<i8"),
                     "weight": ([[0.5, -1.25][i % 2] for i in range(n)], (1, n), "<f4"),
                     "prefix_length": ([2], (1,), "<i8"),
                     "dist": ([[7, 0, 3, 9][i % 4] for i in range(n * n)], (1, n, n), "<i8")}
            words = [word for name, (numbers, shape, kind) in given.items() for word in
                     ("--in", "%s=%s" % (name, npy.write(self.path(name + ".npy"), numbers, shape, kind)))]
            attnc("run", spec, "--weights", "random:3", "--engine", "interp", *words, "--out",
                  "pooled=" + self.path("out.npy"), status=0)
            return list(npy.read(self.path("out.npy")).numbers)
        a, b = (vector(ids) for ids in texts)
        wanted = sum(x * y for x, y in zip(a, b)) / math.hypot(*a) / math.hypot(*b)
        lines_of_ids = "\n".join(" ".join(map(str, ids)) for ids in texts)
        with served.site(self.scratch).open(folder) as page:
            def fill(**given):
                for name, numbers in given.items():
                    page.run("document.getElementById('given_%s').value = '%s'" % (name, numbers))
                return page.ask(lines_of_ids)
            assert fill() == "" and "no numbers" in page.message(), page.message()
            fill(document="2*0 2", weight=".5, -1.25e0", dist="7 0\\n3 9", prefix_length="2")
            got = page.value("Number(document.querySelector('#output li')?.dataset.value)")
            assert page.message() == "" and abs(got - wanted) < 1e-5, (got, wanted, page.message())
            for wrong in ({"document": "4"}, {"document": "1.5"}, {"weight": "x"}, {"weight": "0x1"}, {"dist": "0*3"}):
                assert fill(**wrong) == "" and "\u201c%s\u201d" % list(wrong)[0] in page.message(), page.message()
                fill(document="0", weight="1", dist="0")

    def test_inputs_of_other_types(self):
        """Bits of a row, a range of real numbers whose ends f32 rounds, and a number that no empty field stands for."""
        spec = self.path("typed.attn", """model typed {
    d_model 16, vocab 40
    encoder {
        seq <= 24, position learned
        input rows flags
        input rows weight real -0.7..1.3
        input number reach 2..9
        layers 1 { attention self { heads 2, mask where bit(flags[q], k) and q - k < reach, score s*weight[k] } }
    }
    head pool mean classifier 3
}
""")
        flags = [-2 ** 63 + 5, -1, -2 ** 63 + 5]
        words = [*self.array("--in", "tokens", [3, 1, 4]), *self.array("--in", "flags", flags),
                 *self.array("--in", "weight", [1.3, -0.7, 1.3], kind="<f4"), *self.array("--in", "reach", [2], ())]
        attnc("run", spec, "--weights", "random:3", "--engine", "interp", *words, "--out",
              "logits=" + self.path("out.npy"), status=0)
        powers = [math.exp(x) for x in npy.read(self.path("out.npy")).numbers]
        with served.site(self.scratch).open(self.page("typed", spec, "--weights", "random:3")) as page:
            stated = {"flags": "9223372036854775813 -1", "weight": "1.3 -0.7", "reach": "2"}
            for name, numbers in stated.items():
                self.complains(page, "3 1 4", "\u201d has no numbers")
                page.run("document.getElementById('given_%s').value = '%s'" % (name, numbers))
            page.ask("3 1 4")
            got = page.value("[...output.querySelectorAll('li')].map((li) => [li.dataset.index, li.dataset.value])")
            assert len(got) == 3, got
            for index, value in got:
                assert abs(float(value) - powers[int(index)] / sum(powers)) < 1e-5, (got, powers)
            for name, number in {"flags": "1.0", "weight": "1.51", "reach": "1"}.items():
                self.complains(page, "3 1 4", "\u201c%s\u201d is no number" % number, **{name: number})
                page.run("document.getElementById('given_%s').value = '%s'" % (name, stated[name]))

    def array(self, option, name, numbers, shape=None, kind="<i8"):
        """The words of an option with a file of numbers."""
        path = npy.write(self.path("%s.npy" % name), numbers, (len(numbers),) if shape is None else shape, kind)
        return [option, "%s=%s" % (name, path)]

    def written(self, page, text, spec, words, most=None, **given):
        """The page writes the tokens of attnc generate, whose inputs are the words."""
        for name, numbers in given.items():
            page.run("document.getElementById('given_%s').value = '%s'" % (name, numbers))
        page.ask(text)
        got = page.value("output.dataset.ids")
        count = len(got.split())
        done = attnc("generate", spec, "--weights", "random:3", "--engine", "interp", "--max-new", str(most or count),
                     *words, status=0)
        assert page.message() == "" and got == done.stdout.strip(), (got, done.stdout, given, page.message())
        return count

    def complains(self, page, text, why, **given):
        """A call with wrong numbers says so, and the page stays ready."""
        for name, numbers in given.items():
            page.run("document.getElementById('given_%s').value = '%s'" % (name, numbers))
        assert page.ask(text) == "" and why in page.message(), (given, page.message())

    def test_inputs_of_written_rows(self):
        """Numbers of the rows that a page writes: the stated ones, then the last one, or positions that count on."""
        spec = self.path("rows_written.attn", ROWS)
        folder = self.page("rows_written", spec, "--weights", "random:3")
        tokens = [3, 7, 11, 2, 5]
        text = " ".join(map(str, tokens))
        prompt = self.array("--in", "tokens", tokens)
        far, one = self.array("--in", "far", [3], ()), {"far": "3"}
        weight = self.array("--rows", "weight", [0.5, -1.25, 2] + [1.5] * 30, kind="<f4")
        with served.site(self.scratch).open(folder) as page:
            page.run("document.getElementById('most').value = 12")
            for settings in ({}, {"beams": 3}, {"beams": 0, "temperature": 0.9, "seed": 5}):
                for name, value in settings.items():
                    page.run("document.getElementById('%s').value = %s" % (name, value))
                search = {"beams": ["--beam", "3"], "temperature": ["--temperature", "0.9", "--seed", "5"]}
                words = next((search[name] for name in ("temperature", "beams") if name in settings), [])
                self.written(page, text, spec, [*prompt, *far, *words, *weight,
                                                *self.array("--in", "document", [0, 0, 1, 1, 2]),
                                                *self.array("--in", "pos", [0, 1, 2, 0, 1])], 12,
                             document="2*0 2*1 2", weight=".5 -1.25 2, 1.5", pos="0 1 2 0", **one)
                self.written(page, text, spec, [*prompt, *far, *words, *weight,
                                                *self.array("--rows", "document", [0, 1, 2, 3] * 6),
                                                *self.array("--rows", "pos", [*range(4), 30, *range(4, 30)])], 12,
                             document="0 1 2 3 " * 6, pos="0 1 2 3 30 4")
            page.run("document.getElementById('temperature').value = 0")
            page.run("document.getElementById('most').value = 200")
            words = [*self.array("--in", "document", [0] * 5), *self.array("--in", "pos", [0, 1, 2, 22, 23])]
            count = self.written(page, text, spec, [*prompt, *far, *weight, *words], document="0", pos="0 1 2 22")
            assert count <= 8, "positions of %d new tokens go on to 30" % count
            for wrong in ({"document": "4"}, {"weight": "3"}, {"weight": "-2.1"}, {"pos": "31"}, {"far": "0"},
                          {"far": "1.5"}):
                name, number = next(iter(wrong.items()))
                why = "\u201c%s\u201d is no number that \u201c%s\u201d" % (number, name)
                self.complains(page, text, why, **wrong)
                self.complains(page, text, "\u201c%s\u201d has no numbers" % name, **{name: " "})
                page.run("document.getElementById('given_%s').value = '1'" % name)
            self.complains(page, text, "\u201cpos\u201d is at most 30", pos="29")

    def test_inputs_of_a_prefix(self):
        """The length of a prefix, bits and a real number of the text."""
        spec = self.path("prefix_written.attn", PREFIX)
        folder = self.page("prefix_written", spec, "--weights", "random:3")
        words = [*self.array("--in", "tokens", [3, 7, 11]), *self.array("--in", "far", [-0.75], (), "<f4")]
        with served.site(self.scratch).open(folder) as page:
            page.run("document.getElementById('most').value = 12")
            for prefix, flags, last in (("2", "5 9223372036854775810", -(2 ** 63) + 2), ("", "5 -2", -2)):
                own = [*self.array("--in", "prefix_length", [int(prefix or 0)], ()),
                       *self.array("--rows", "flags", [5] + [last] * 30)]
                self.written(page, "3 7 11", spec, words + own, 12, far="-.75", flags=flags, prefix_length=prefix)
            self.complains(page, "3 7 11", "\u201c1.5\u201d is no number", flags="1.5")
            self.complains(page, "3 7 11", "is no number", flags="18446744073709551616")
            self.complains(page, "3 7 11", "The model refuses this text", flags="0", prefix_length="4")

    def test_inputs_of_two_stacks(self):
        """Numbers of a source, of its rows and its pairs, and of the rows or the text that a decoder writes for it."""
        source = [3, 7, 11, 2, 5]
        for kind, stated in (("rows", "0 0 1 2"), ("number", "2")):
            state = self.array("--rows", "state", [0, 0, 1] + [2] * 30) if kind == "rows" else \
                self.array("--in", "state", [2], ())
            name = "both_stacks_" + kind
            text = BOTH.replace("both_stacks", name).replace("input rows state", "input %s state" % kind)
            spec = self.path(name + ".attn", text.replace("state[q]", "state[q]" if kind == "rows" else "state"))
            with served.site(self.scratch).open(self.page(name, spec, "--weights", "random:3")) as page:
                for near in (1, 4):
                    words = [*self.array("--in", "source", source), *self.array("--in", "near", [near], ()),
                             *self.array("--in", "dist", [[7, 0, 3][i % 3] for i in range(25)], (5, 5)),
                             *self.array("--in", "kind", [0, 2, 0, 2, 0]), *self.array("--in", "tokens", [1]), *state]
                    self.written(page, " ".join(map(str, source)), spec, words, near=near, dist="7 0 3", kind="0 2",
                                 state=stated)
                self.complains(page, "3 7", "\u201c13\u201d is no number that \u201cnear\u201d takes", near="13")
                self.complains(page, "3 7", "\u201cstate\u201d has no numbers", near="1", state="")
