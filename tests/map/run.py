#!/usr/bin/env python3
"""`attnc map`: the page's numbers are those of `attnc run`, its symbols those of the labels, on every kind of attention;
and what it says of bad input. Speaks TAP."""
import ast
import html
import json
import os
import re
import shutil
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from tap import Skip, run_tests  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ATTNC = os.path.join(ROOT, "build", "attnc")
DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
DIFFERENTIAL = os.path.join(ROOT, "tests", "differential")


def run(*command, status=0):
    done = subprocess.run([ATTNC, *command], cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == status, "%s: %d\n%s" % (" ".join(command), done.returncode, done.stderr)
    return done


def write_npy(path, numbers, shape, kind="<i8", code="q"):
    header = "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }" % (kind, "".join("%d," % n for n in shape))
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack("<%d%s" % (len(numbers), code), *numbers))


def read_npy(path):
    """(numbers, shape) of 32-bit floats."""
    with open(path, "rb") as file:
        data = file.read()
    begin = 10 + struct.unpack_from("<H", data, 8)[0]
    shape = ast.literal_eval(data[10:begin].decode("latin1"))["shape"]
    return struct.unpack_from("<%df" % ((len(data) - begin) // 4), data, begin), shape


def page_of(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.S)
    assert found, "no data"
    assert "http" not in text.replace("http://www.w3.org/2000/svg", ""), "something from elsewhere"
    return json.loads(found.group(1))


def weights_of(one):
    pairs = [one["weights"][i:i + 2] for i in range(0, len(one["weights"]), 2)]
    return [(64 * DIGITS.index(a) + DIGITS.index(b)) / 4095 for a, b in pairs]


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
        write_npy(self.path(name + ".npy"), numbers, [len(numbers)])
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
                numbers, shape = read_npy(self.path("map.npy"))
                assert len(group["maps"]) == shape[0], "%d heads of %d" % (len(group["maps"]), shape[0])
                for head, one in enumerate(group["maps"]):
                    assert (one["head"], one["rows"], one["columns"]) == (head, *shape[1:]), str(shape)
                    size = one["rows"] * one["columns"]
                    worst = max(abs(a - b) for a, b in zip(weights_of(one), numbers[head * size:(head + 1) * size]))
                    assert len(weights_of(one)) == size and worst <= 0.5 / 4095 + 1e-6, "off by %g" % worst
                    assert max(weights_of(one)) > 0, "nothing but zeros"
            assert groups, "no " + title
        assert len(page["groups"]) == sum(len([g for g in page["groups"] if g["title"].startswith(t)])
                                          for t in kinds.values()), "more groups"
        return page

    def test_encoder(self):
        page = self.compare(DIFFERENTIAL + "/alibi.attn", self.ids("tokens", [3, 1, 4, 1, 5]),
                            {"attention": "self-attention"})
        assert page["labels"] == {"tokens": ["3", "1", "4", "1", "5"]}, page["labels"]

    def test_seq2seq(self):
        given = self.ids("source", [1, 2, 3, 4, 5, 6, 7]) + self.ids("target", [8, 9, 10])
        kinds = {"cross_attention": "cross attention", "attention": "self-attention",
                 "encoder_attention": "attention in the encoder"}
        page = self.compare(DIFFERENTIAL + "/seq2seq.attn", given, kinds)
        assert page["groups"][0]["title"].startswith("cross"), "cross attention is not first"
        one = page["groups"][0]["maps"][0]
        assert (one["rowLabels"], one["columnLabels"]) == ("target", "source"), str(one)
        assert page["labels"]["target"] == ["8", "9", "10"], page["labels"]

    def test_engines_agree(self):
        given = self.ids("tokens", [3, 1, 4])
        pages = [self.page(DIFFERENTIAL + "/alibi.attn", *given, "--engine", e) for e in ("interp", "compiled")]
        for a, b in zip(pages[0]["groups"], pages[1]["groups"]):
            for x, y in zip(a["maps"], b["maps"]):
                assert max(abs(p - q) for p, q in zip(weights_of(x), weights_of(y))) < 2 / 4095, "they differ"

    def test_labels(self):
        given = self.ids("source", [1, 2, 3]) + self.ids("target", [8, 9])
        spec = DIFFERENTIAL + "/seq2seq.attn"
        hostile = "</script><b>\n\"\\&\t\n\xfc\n".encode("latin1")
        page = self.page(spec, *given, "--labels", "source=" + self.path("s.txt", hostile),
                         "--labels", "target=" + self.path("t.txt", "a\r\nb \u00e9"), "--engine", "interp")
        assert page["labels"] == {"source": ["</script><b>", "\"\\&\t", "\ufffd"], "target": ["a", "b \u00e9"]}, \
            page["labels"]
        for text, lines in (("a\n", 1), ("a\nb\nc\n", 3), ("", 0)):
            done = run("map", spec, "--weights", "random:3", *given, "--labels", "target=" + self.path("t.txt", text),
                       "-o", self.path("none.html"), status=1)
            assert "has %d lines, but `target` has 2 rows" % lines in done.stderr, done.stderr
        for labels, why in ((self.path("t.txt"), "say `--labels"), ("pixels=" + self.path("t.txt"), "names no input"),
                            ("target=" + self.path("absent"), "absent")):
            done = run("map", spec, "--weights", "random:3", *given, "--labels", labels, "-o", self.path("none.html"),
                       status=1)
            assert why in done.stderr, done.stderr
        assert not os.path.exists(self.path("none.html")), "half a page"

    def look(self, page):
        """What a browser makes of a page."""
        browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        if not browser:
            raise Skip("no chromium")
        done = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1280,800",
                               "--user-data-dir=" + self.path("profile"), "--dump-dom", "file://" + page],
                              capture_output=True, text=True, check=False, timeout=120)
        return html.unescape(done.stdout)

    def test_browser(self):
        """The scale has the colours of the maps; that a head can be chosen is said where one can."""
        wide = self.path("wide.attn")
        with open(DIFFERENTIAL + "/alibi.attn", encoding="utf-8") as file:
            text = file.read()
        with open(wide, "w", encoding="utf-8") as file:
            file.write(text.replace("seq <= 40", "seq <= 60"))
        for spec, n in ((DIFFERENTIAL + "/alibi.attn", 5), (wide, 45)):
            page = self.page(spec, *self.ids("tokens", [i % 9 for i in range(n)]), "--engine", "interp")
            seen = self.look(self.path("page.html"))
            shown = re.search(r'<span id="choose"( hidden="")?>([^<]*)</span>', seen)
            assert shown and shown.group(2) == " Choose a head to enlarge it.", "nothing is said of choosing"
            small = len(re.findall(r'<figure class="small', seen))
            assert bool(shown.group(1)) == (n == 5) and small == (0 if n == 5 else 12), "%d small heads" % small
            scale = re.search(r'<svg id="scale".*?</svg>', seen, re.S).group(0)
            assert re.findall(r"<text[^>]*>([^<]*)<", scale) == ["0", "0.1", "0.25", "0.5", "0.75", "1"], scale
            colour = r'fill="(#0b4f9c)" fill-opacity="([\d.]+)"'
            strips = re.findall(colour, scale)
            assert [s[1] for s in strips] == ["%.3f" % (i / 100) ** 0.5 for i in range(101)], strips
            first = weights_of(page["groups"][0]["maps"][0])
            drawn = re.findall(colour, seen[seen.index("</figcaption>"):])[:len([w for w in first if w >= 0.004])]
            for weight, (_, opacity) in zip([w for w in first if w >= 0.004], drawn):
                assert abs(float(opacity) - weight ** 0.5) < 6e-4, "%g is drawn as %s" % (weight, opacity)

    def test_bad_calls(self):
        spec, given = DIFFERENTIAL + "/alibi.attn", self.ids("tokens", [3, 1, 4])
        write_npy(self.path("two.npy"), [1, 2, 3, 4], [2, 2])
        mask = self.path("mask.npy")
        write_npy(mask, [1, 1, 1, 1], [2, 2])
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
        assert not os.path.exists(self.path("none.html")), "half a page"


if __name__ == "__main__":
    sys.exit(run_tests("map", Map))
