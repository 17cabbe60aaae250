#!/usr/bin/env python3
"""`attnc map`: the page's numbers are those of `attnc run`, its symbols those of the labels, on every kind of
attention; the pairs that it draws as hidden are those that the mask hides; how large it is, what a browser shows of it,
and what it says of bad input. Speaks TAP.

Environment: ATTNC_QUICK=1 takes one layer of the largest page."""
import base64
import json
import os
import re
import sys
import zlib

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import npy  # noqa: E402
from lib.attnc import QUICK, ROOT, attnc  # noqa: E402
from lib.browser import WIDTHS, see  # noqa: E402
from lib.tap import run_tests  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
LEAST_LEVELS = 16  # of a row's greatest weight
DIFFERENTIAL = os.path.join(ROOT, "tests", "differential")


def run(*command, status=0):
    return attnc(*command, status=status)


def page_of(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.S)
    assert found, "no data"
    page = text.replace(found.group(1), "").replace("http://www.w3.org/2000/svg", "")  # weights may spell any word
    assert "http" not in page, "something from elsewhere"
    return json.loads(found.group(1))


def weights_of(one):
    """(weights, the step of each) by what compiler/commands/map.h says of the bytes."""
    rows, columns = one["rows"], one["columns"]
    data = zlib.decompress(base64.b64decode(one["weights"], validate=True))
    assert len(data) == columns + rows + rows * columns, "%d bytes" % len(data)
    means, exponents, levels = data[:columns], data[columns:columns + rows], data[columns + rows:]
    order = sorted(range(columns), key=lambda column: (-means[column], column))
    weights, steps = [0.0] * (rows * columns), [0.0] * (rows * columns)
    for place, column in enumerate(order):
        for row in range(rows):
            step = one["greatest"] / 255 / 2 ** exponents[row]
            weights[row * columns + column] = step * ((levels[place * rows + row] + means[column]) % 256)
            steps[row * columns + column] = step
    return weights, steps


def compare_weights(one, numbers):
    """Each within half a step, which is 1/255 of the greatest, or less so that a row's greatest is 16 steps."""
    weights, steps = weights_of(one)
    assert len(weights) == len(numbers) and abs(one["greatest"] - max(numbers)) <= 1e-6, "greatest %g" % one["greatest"]
    for row in range(one["rows"]):
        part = slice(row * one["columns"], (row + 1) * one["columns"])
        step, most = steps[row * one["columns"]], max(numbers[part])
        worst = max(abs(a - b) for a, b in zip(weights[part], numbers[part]))
        assert worst <= 0.5 * step + 1e-7 * most, "row %d is off by %g, its step is %g" % (row, worst, step)
        assert step <= one["greatest"] / 255, "a step of %g" % step
        assert most == 0 or most >= (LEAST_LEVELS - 0.01) * step, "the greatest weight of row %d is %g steps" % (
            row, most / step)


class Map:
    def __init__(self, folder):
        self.folder = folder

    def path(self, name, content=None):
        path = os.path.join(self.folder, name)
        if content is not None:
            with open(path, "wb") as file:
                file.write(content.encode() if isinstance(content, str) else content)
        return path

    def ids(self, name, numbers):
        npy.write(self.path(name + ".npy"), numbers, descr="<i8")
        return ["--in", "%s=%s" % (name, self.path(name + ".npy"))]

    def page(self, spec, *arguments):
        run("map", spec, "--weights", "random:3", *arguments, "-o", self.path("page.html"))
        return page_of(self.path("page.html"))

    def compare(self, spec, given, kinds):
        """Every map of the page against `attnc run`."""
        page = self.page(spec, *given, "--engine", "interp")
        for output, title in kinds.items():
            groups = [g for g in page["groups"] if g["title"].startswith(title)]
            for layer, group in enumerate(groups):
                assert group["title"] == "%s, layer %d" % (title, layer), group["title"]
                run("run", spec, "--weights", "random:3", "--engine", "interp", *given, "--out",
                    "%s.%d=%s" % (output, layer, self.path("map.npy")))
                shape, numbers = npy.read(self.path("map.npy"))
                assert len(group["maps"]) == shape[0], "%d heads of %d" % (len(group["maps"]), shape[0])
                for head, one in enumerate(group["maps"]):
                    assert (one["head"], one["rows"], one["columns"]) == (head, *shape[1:]), str(shape)
                    size = one["rows"] * one["columns"]
                    compare_weights(one, numbers[head * size:(head + 1) * size])
                    assert one["greatest"] > 0, "nothing but zeros"
            assert groups, "no " + title
        assert len(page["groups"]) == sum(len([g for g in page["groups"] if g["title"].startswith(t)])
                                          for t in kinds.values()), "more groups"
        return page

    def test_encoder(self):
        page = self.compare(DIFFERENTIAL + "/alibi.attn", self.ids("tokens", [3, 1, 4, 1, 5]),
                            {"attention": "self-attention"})
        assert page["axes"] == [{"name": "tokens", "labels": ["3", "1", "4", "1", "5"]}], page["axes"]

    def test_seq2seq(self):
        given = self.ids("source", [1, 2, 3, 4, 5, 6, 7]) + self.ids("target", [8, 9, 10])
        kinds = {"cross_attention": "cross attention", "attention": "self-attention",
                 "encoder_attention": "attention in the encoder"}
        page = self.compare(DIFFERENTIAL + "/seq2seq.attn", given, kinds)
        assert page["groups"][0]["title"].startswith("cross"), "cross attention is not first"
        one = page["groups"][0]["maps"][0]
        axes = page["axes"]
        assert (axes[one["rowAxis"]]["name"], axes[one["columnAxis"]]["name"]) == ("target", "source"), str(one)
        assert axes[one["rowAxis"]]["labels"] == ["8", "9", "10"], axes

    def test_hidden(self):
        """The pairs that the mask of this call hides, apart from those with a small weight."""
        documents = [0] * 5 + [1] * 3 + [0] * 4
        spots = [int((3 * i + 5 * j) % 4 != 0) for i in range(12) for j in range(12)]
        near = [(7 * i + j) % 10 for i in range(12) for j in range(12)]
        tokens = self.ids("tokens", list(range(12)))
        npy.write(self.path("mask.npy"), spots, [12, 12], "|u1")
        npy.write(self.path("near.npy"), near, [12, 12], "<i8")
        given = ["--in", "mask=" + self.path("mask.npy"), "--in", "near=" + self.path("near.npy"),
                 *self.ids("document", documents)]
        spec = self.path("hidden.attn", "model hidden { d_model 16, vocab 50, encoder { seq <= 12, position none\n"
                         "input rows document 0..3, input pairs near 0..9\n" + "".join(
                             "layers 1 { attention self { heads 2, mask %s } }\n" % mask for mask in (
                                 "where document[q] == document[k] and k <= q", "given where near[q, k] < 7", "none",
                                 "window 3", "causal, differential yes, head_dim 4")) + "} }\n")
        sees = [lambda i, j: documents[i] == documents[j] and j <= i,
                lambda i, j: spots[12 * i + j] and near[12 * i + j] < 7, None, lambda i, j: abs(i - j) < 3,
                lambda i, j: j <= i, lambda i, j: j <= i]
        page = self.page(spec, *tokens, *given, "--engine", "interp")
        assert len(page["groups"]) == len(sees), len(page["groups"])
        for group, visible in zip(page["groups"], sees):
            assert (group["hidden"] is None) == (visible is None), group["title"]
            bits = zlib.decompress(base64.b64decode(group["hidden"])) if visible else bytes(18)
            for pair in range(144):
                i, j = divmod(pair, 12)
                hidden = bits[pair >> 3] >> (pair & 7) & 1
                assert hidden == (0 if visible is None else not visible(i, j)), "%s: %d, %d" % (group["title"], i, j)
                for one in group["maps"]:
                    assert not hidden or weights_of(one)[0][pair] == 0, "a hidden pair has a weight"
        seen = self.look()
        assert not seen["wrong"], seen["wrong"]
        assert seen["hidden"] == [[bool(visible) and not visible(*divmod(pair, 12)) for pair in range(144)]
                                  for visible in sees for _ in range(2)], "other pairs are hidden"
        assert seen["said"][0].startswith("the mask hides 1 (column 1) from 0 (row 0); "), seen["said"][0]
        assert "A stroke marks a pair that the mask hides." in seen["text"], "strokes are not explained"

    def test_engines_agree(self):
        given = self.ids("tokens", [3, 1, 4])
        pages = [self.page(DIFFERENTIAL + "/alibi.attn", *given, "--engine", e) for e in ("interp", "compiled")]
        for a, b in zip(pages[0]["groups"], pages[1]["groups"]):
            for x, y in zip(a["maps"], b["maps"]):
                (p, steps), (q, _) = weights_of(x), weights_of(y)
                assert all(abs(u - v) < 1.01 * step for u, v, step in zip(p, q, steps)), "they differ"

    def test_labels(self):
        given = self.ids("source", [1, 2, 3]) + self.ids("target", [8, 9])
        spec = DIFFERENTIAL + "/seq2seq.attn"
        hostile = "</script><b>\n\"\\&\t\n\xfc\n".encode("latin1")
        page = self.page(spec, *given, "--labels", "source=" + self.path("s.txt", hostile),
                         "--labels", "target=" + self.path("t.txt", "a\r\nb \u00e9"), "--engine", "interp")
        assert page["axes"] == [{"name": "source", "labels": ["</script><b>", "\"\\&\t", "\ufffd"]},
                                {"name": "target", "labels": ["a", "b \u00e9"]}], page["axes"]
        for text, lines in (("a\n", "1 line"), ("a\nb\nc\n", "3 lines"), ("", "0 lines")):
            done = run("map", spec, "--weights", "random:3", *given, "--labels", "target=" + self.path("t.txt", text),
                       "-o", self.path("none.html"), status=1)
            assert "has %s, but `target` has 2 rows" % lines in done.stderr, done.stderr
        for labels, why in ((self.path("t.txt"), "say `--labels"), ("pixels=" + self.path("t.txt"), "names no input"),
                            ("target=" + self.path("absent"), "absent")):
            done = run("map", spec, "--weights", "random:3", *given, "--labels", labels, "-o", self.path("none.html"),
                       status=1)
            assert why in done.stderr, done.stderr
        assert not os.path.exists(self.path("none.html")), "half a page"

    def test_texts(self):
        """Those of --show, in their order, whatever they hold."""
        texts = ["--show", "text=" + self.path("a.txt", "</script><b>3rd of May '97\r\n\n"), "--show",
                 "<i>=" + self.path("b.txt", b"a\nb \xff")]
        page = self.page(DIFFERENTIAL + "/alibi.attn", *self.ids("tokens", [3, 1]), *texts, "--engine", "interp")
        assert page["texts"] == [{"name": "text", "text": "</script><b>3rd of May '97"},
                                 {"name": "<i>", "text": "a\nb \ufffd"}], page["texts"]

    def write_spec(self, name, attention, seq=12):
        return self.path(name + ".attn", "model %s { d_model 16, vocab 50, decoder { seq <= %d, layers 2 {\n%s,\n"
                         "ffn { d_ff 16 } } }, head logits }\n" % (name, seq, attention))

    def test_sums(self):
        """What is said of a row's sum is true: of no sink, of a learned one, of both, and of rows that see nothing."""
        plain, sink = "attention self { heads 2 }", "attention self { heads 2, sink learned }"
        begin = "Each row is a symbol that looks, each column one that is looked at; "
        tokens = self.ids("tokens", [1, 2, 3, 4])
        for name, attention, says, noted in (
                ("plain", plain, "a row's weights sum to 1. ", []),
                ("sinks", sink, "a row's weights sum to less than 1, because a learned sink takes the rest. ", [0, 1]),
                ("mixed", plain + ",\n" + sink,
                 "a row's weights sum to 1, in layers with a learned sink to less. ", [1, 3])):
            page = self.page(self.write_spec(name, attention), *tokens, "--engine", "interp")
            assert page["about"].startswith(begin + says), page["about"]
            with open(self.path("page.html"), encoding="utf-8") as file:
                assert ("sum to 1" in file.read()) == (name != "sinks"), name
            for i, group in enumerate(page["groups"]):
                found = re.fullmatch(r"A learned sink takes a part of each row: the weights of a row sum to less than "
                                     r"1, here to between ([\d.]+) and ([\d.]+), rounded\.", group["note"])
                assert bool(found) == (i in noted) and (found or not group["note"]), "%s: %s" % (name, group["note"])
                sums, half = [], 0
                for one in group["maps"]:
                    weights, steps = weights_of(one)
                    sums += [sum(weights[r * 4:r * 4 + 4]) for r in range(4)]
                    half = max(half, 2.1 * max(steps))
                low, high = (float(found.group(1)), float(found.group(2))) if found else (1, 1)
                near = abs(min(sums) - low) < half and abs(max(sums) - high) < half
                assert high <= 1 and near, "%s: %s" % (name, sums)
        mask = self.path("mask.npy")
        npy.write(mask, [0, 0, 0, 1, 1, 0, 0, 0, 0], [3, 3], "|u1")
        given = self.path("given.attn", "model given { d_model 16, vocab 50, encoder { seq <= 12, layers 1 {\n"
                          "attention self { heads 2, mask given }, ffn { d_ff 16 } } }, head pool mean }\n")
        page = self.page(given, *self.ids("tokens", [1, 2, 3]), "--in", "mask=" + mask, "--engine", "interp")
        assert page["groups"][0]["note"] == "4 rows have no weight other than 0.", page["groups"][0]["note"]

    def test_names(self):
        """Two attentions of one kind in a layer have a name each."""
        both = "attention self { heads 2 },\nattention self { heads 2 }"
        page = self.page(self.write_spec("twins", both), *self.ids("tokens", [1, 2]), "--engine", "interp")
        assert [g["title"] for g in page["groups"]] == [
            "self-attention (attention%s), layer %d" % (name, layer) for layer in (0, 1) for name in ("", "2")], \
            str([g["title"] for g in page["groups"]])

    def test_small_weights(self):
        """A row of weights far below the map's greatest keeps 16 levels at least; a causal map's first row is one 1."""
        spec = self.write_spec("causal", "attention self { heads 2, mask causal, scale 40 }", seq=300)
        given = self.ids("tokens", [i % 50 for i in range(300)])
        page = self.page(spec, *given, "--engine", "interp")
        run("run", spec, "--weights", "random:3", "--engine", "interp", *given, "--out",
            "attention.0=" + self.path("map.npy"))
        numbers = npy.read(self.path("map.npy")).numbers
        for head, one in enumerate(page["groups"][0]["maps"]):
            compare_weights(one, numbers[head * 90000:(head + 1) * 90000])
            assert one["greatest"] == 1, str(one["greatest"])

    def test_size(self):
        """MiniLM's shape at 512 tokens: below 15 MB, and below 3 MB a layer."""
        with open(os.path.join(ROOT, "specs", "minilm.attn"), encoding="utf-8") as file:
            text = file.read()
        layers = 1 if QUICK else 6
        spec = self.path("minilm.attn", text.replace("layers 6", "layers %d" % layers))
        page = self.page(spec, *self.ids("tokens", [7919 * i % 30522 for i in range(512)]))
        size = os.path.getsize(self.path("page.html"))
        sizes = [sum(len(one["weights"]) for one in group["maps"]) for group in page["groups"]]
        assert len(sizes) == layers and all(len(g["maps"]) == 12 for g in page["groups"]), "%s" % sizes
        assert size < (3e6 if QUICK else 15e6) and max(sizes) < 2.9e6, "%d bytes, %s" % (size, sizes)
        one = page["groups"][-1]["maps"][11]
        run("run", spec, "--weights", "random:3", "--in", "tokens=" + self.path("tokens.npy"), "--out",
            "attention.%d=%s" % (layers - 1, self.path("map.npy")))
        compare_weights(one, npy.read(self.path("map.npy")).numbers[11 * 512 * 512:])

    def look(self, **window):
        with open(self.path("page.html"), encoding="utf-8") as file:
            page = file.read()
        with open(os.path.join(HERE, "look.js"), encoding="utf-8") as file:
            return see(window.pop("alter", lambda text: text)(page), self.folder, file.read(), **window)

    def test_browser(self):
        """The weights that a browser unpacks, the colours, what keys and taps say, and the texts above."""
        labels = self.path("labels.txt", "the\n</script><b>x</b>\nthe\n\u202e\n \n")
        shown = self.path("shown.txt", "3rd of May '97 <b>")
        page = self.page(DIFFERENTIAL + "/alibi.attn", *self.ids("tokens", [3, 1, 3, 2, 5]), "--labels", labels,
                         "--show", "text=" + shown, "--engine", "interp")
        maps = [one for group in page["groups"] for one in group["maps"]]
        names = ["the #0", "</script><b>x</b>", "the #2", "U+202E", "\u2423"]
        for width in WIDTHS:
            for dark in (False, True):
                seen = self.look(width=width, dark=dark)
                assert not seen["wrong"], "%d: %s" % (width, seen["wrong"])
                assert seen["symbols"] == [names], seen["symbols"]
                assert seen["maps"] == [weights_of(one)[0] for one in maps], "other weights"
                weights, steps = weights_of(maps[0])
                cells = [(0, 1), (0, 2), (1, 2), (1, 1), (0, 1), (0, 1), (0, 4), (0, 0), (4, 4)]
                assert len(seen["said"]) == len(cells), seen["said"]
                for said, (row, column) in zip(seen["said"] + [seen["tapped"]], cells + [(4, 4)]):
                    self.compare_said(said, names, (row, column), (weights[5 * row + column], steps[5 * row + column]))
                assert seen["corner"]["tabs"] == 0 and seen["corner"]["live"] == "polite", seen["corner"]
                pixel = seen["pixels"][0]
                want = seen["ramp"][round(1000 * weights[5 * pixel["row"] + pixel["column"]])]
                assert pixel["rgb"] == want + [255], "%s, not %s" % (pixel, want)
                assert seen["strips"][1:] == ["%.3f" % (i / 100) ** 0.5 for i in range(101)], seen["strips"]
                assert not seen["choose"] and seen["small"] == 0, "choosing where all is shown"
                assert "3rd of May '97 <b>" in seen["text"] and "head 3" in seen["text"], seen["text"]

    def compare_said(self, said, names, cell, kept):
        """`said` names both symbols, their positions, the layer and head, and the weight within what it admits."""
        row, column = cell
        begin = "%s (row %d) attends to %s (column %d): " % (names[row], row, names[column], column)
        assert said.startswith(begin) and said.endswith("; self-attention, layer 0, head 0"), said
        weight, half = map(float, re.match(r"([\d.]+) \u00b1 ([\d.]+);", said[len(begin):]).groups())
        assert kept[1] / 2 <= half <= kept[1] and abs(weight - kept[0]) <= half, "%s: %s" % (said, kept)

    def test_browser_many(self):
        """Many tokens: small pictures, each with its greatest weight in the strongest colour, and one enlarged."""
        spec = self.write_spec("many", "attention self { heads 4, mask causal, scale 3 }", seq=300)
        for n in (45, 300):
            page = self.page(spec, *self.ids("tokens", [i % 50 for i in range(n)]), "--engine", "interp")
            for width in WIDTHS:
                seen = self.look(width=width, dark=n == 300)
                assert not seen["wrong"], "%d: %s" % (width, seen["wrong"])
                assert seen["choose"] and seen["small"] == 8, "%d small pictures" % seen["small"]
                assert seen["travelled"]["hidden"] and seen["travelled"]["choices"] == [
                    "self-attention, layer %d" % layer for layer in range(2)], seen["travelled"]
                assert not seen["covered"]["found"], seen["covered"]["found"]
                side = n * (160 // n) if n < 160 else 160
                for across, down, strongest in seen["smallSizes"]:
                    assert (across, down) == (side, side) and strongest >= 1, "%d: %s" % (n, seen["smallSizes"])
                assert seen["symbols"][0][0] == ("0" if n == 45 else "0 #0"), seen["symbols"][0][0]
                assert "(row %d) attends to %s (column %d)" % (n - 1, seen["symbols"][0][-1], n - 1) in seen["said"][-1]
                assert "scale of its own, from 0 to its" in seen["text"], "nothing is said of the scale"
                for one in page["groups"][0]["maps"]:
                    line = "layer 0, head %d\n0 to %g" % (one["head"], float("%.3g" % one["greatest"]))
                    assert line in seen["text"], "no %s" % line

    def test_browser_overview(self):
        """A small picture of each head of a short text leads to its map, a list to a layer; symbols, long ones too, do
        not cover each other."""
        given = self.ids("source", [1, 2, 3]) + self.ids("target", [8, 9])
        labels = ["--labels", "source=" + self.path("s.txt", "internationalization of\n\u6771\u4eac\nfox\n"),
                  "--labels", "target=" + self.path("g.txt", "a\nlonger than sixteen letters\n")]
        page = self.page(DIFFERENTIAL + "/seq2seq.attn", *given, *labels, "--engine", "interp")
        titles = [group["title"] for group in page["groups"]]
        heads = ["%s, head %d" % (group["title"], one["head"]) for group in page["groups"] for one in group["maps"]]
        for width in WIDTHS:
            seen = self.look(width=width)
            assert not seen["wrong"], "%d: %s" % (width, seen["wrong"])
            assert seen["covered"]["count"] > 5 * len(heads) and not seen["covered"]["found"], seen["covered"]
            found = seen["travelled"]
            assert [cell[0] for cell in found["cells"]] == ["go to " + head for head in heads], found["cells"]
            assert all(24 <= max(cell[1:3]) <= 72 and cell[3] for cell in found["cells"]), found["cells"]
            assert [name.split(":")[0] for name in found["heads"]] == heads, found["heads"]
            assert found["choices"] == ["all layers and heads", *titles] and not found["hidden"], found["choices"]
            for place, (top, chosen, ends) in enumerate(found["tops"]):
                assert 0 <= top < (800 if ends else 100) and chosen == place, "%d: %s" % (width, found["tops"])
            assert not found["tops"][1][2], "the page is too short for this test"

    def test_browser_room(self):
        """A picture is as wide as it needs, up to the width of the window, where it scrolls."""
        spec = self.write_spec("room", "attention self { heads 2 }", seq=100)
        for n in (5, 30, 40, 100):
            self.page(spec, *self.ids("tokens", [i % 50 for i in range(n)]), "--engine", "interp")
            for width in (400, 1200):
                grids = self.look(width=width)["grids"]
                assert grids, "no picture"
                for grid in grids:
                    assert grid["wide"] > 15 * n and grid["reach"] >= grid["wide"], grid
                    bar = 16 if n > 30 else 0  # of a picture that is higher than the window
                    assert grid["seen"] >= min(grid["wide"], grid["room"] - bar), "%d tokens at %d: %s" % (
                        n, width, grid)
                    assert grid["right"] <= width, "%d tokens at %d: %s" % (n, width, grid)

    def test_browser_without(self):
        """A browser that cannot unpack, and a damaged page, are told so."""
        self.page(DIFFERENTIAL + "/alibi.attn", *self.ids("tokens", [3, 1]), "--engine", "interp")
        seen = self.look(alter=lambda text: text.replace("<body>", "<body><script>delete window.DecompressionStream;"
                                                         "</script>"))
        assert "this browser has no DecompressionStream" in seen["text"] and not seen["said"], seen["text"]
        seen = self.look(alter=lambda text: re.sub(r'"weights":"....', '"weights":"AAAA', text))
        assert "The weights cannot be unpacked" in seen["text"], seen["text"]

    def test_bad_calls(self):
        spec, given = DIFFERENTIAL + "/alibi.attn", self.ids("tokens", [3, 1, 4])
        npy.write(self.path("two.npy"), [1, 2, 3, 4], [2, 2], "<i8")
        mask = self.path("mask.npy")
        npy.write(mask, [1, 1, 1, 1], [2, 2], "<i8")
        done = run("map", spec, "--weights", "random:3", "--in", "tokens=" + self.path("two.npy"), "--in",
                   "attention_mask=" + mask, "-o", self.path("none.html"), status=1)
        assert "one sequence" in done.stderr, done.stderr
        run("map", spec, *given, "-o", self.path("none.html"), status=2)
        done = run("map", spec, "--weights", "random:3", "--in", self.path("two.npy"), "-o", self.path("none.html"),
                   status=2)
        help_text = run("help", "map").stdout
        usage = done.stderr[done.stderr.index("usage: "):]
        assert help_text.startswith(usage) and help_text[len(usage):].startswith("  --"), done.stderr
        bad = self.ids("tokens", [3, 1, 41])
        for engine in ("compiled", "interp"):
            done = run("map", spec, "--weights", "random:3", *bad, "--engine", engine, "-o", self.path("none.html"),
                       status=1)
            assert "tokens.npy: input tokens: id 41 at 2 is outside 0 to 40" in done.stderr, done.stderr
        done = run("map", spec, "--weights", "random:3", *self.ids("tokens", [3]), "--cc", "absent-cc", "-o",
                   self.path("none.html"), status=1)
        assert "`absent-cc` is not there; --engine interp needs none" in done.stderr, done.stderr
        run("map", spec, "--weights", "random:3", *given, status=2)
        run("map", spec, "--weights", "random:3", *given, "--engine", "none", "-o", self.path("none.html"), status=2)
        run("map", spec, "--weights", "random:3", *given, "-o", self.path("absent/x.html"), status=1)
        same = ["--labels", "tokens=" + self.path("t.txt", "a")] * 2
        done = run("map", spec, "--weights", "random:3", *given, *same * 20, "-o", self.path("none.html"), status=1)
        assert "the symbols of `tokens` are given already" in done.stderr, done.stderr
        done = run("map", spec, "--weights", "random:3", *given, "--show", "text", "-o", self.path("none.html"),
                   status=2)
        assert "`--show` wants NAME=FILE, found `text`" in done.stderr, done.stderr
        done = run("map", spec, "--weights", "random:3", *given, "--show", "text=" + self.path("absent"), "-o",
                   self.path("none.html"), status=1)
        assert "absent" in done.stderr, done.stderr
        assert not os.path.exists(self.path("none.html")), "half a page"


if __name__ == "__main__":
    sys.exit(run_tests("map", Map))
