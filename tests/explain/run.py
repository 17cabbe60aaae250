#!/usr/bin/env python3
"""`attnc explain --html`: a page of every spec, its numbers those of the text, its buffers those of the plan, its code
that of `attnc compile`; what a browser makes of it; and what is said of bad calls. Speaks TAP.

Environment: ATTNC_QUICK=1 takes fewer specs."""
import concurrent.futures
import html.parser
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib.attnc import QUICK, ROOT, attnc  # noqa: E402
from lib.browser import WIDTHS, see  # noqa: E402
from lib.tap import run_tests  # noqa: E402
from lib.targets import here  # noqa: E402
from lib.turns import in_turn  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
DIFFERENTIAL = "tests/differential/"
SPECS = ["specs/" + name for name in sorted(os.listdir(os.path.join(ROOT, "specs"))) if name.endswith(".attn")]
# beside the published models: two parts of which one is of fixed length, maps, patches, nothing but attention, no
# loops, masks by integers of rows
SPECS += [DIFFERENTIAL + name for name in ("seq2seq_exact_source.attn", "export_some.attn", "patches.attn",
                                           "alone_exact_keys.attn", "unrolled_pair.attn", "where_rows.attn")]
if QUICK:
    SPECS = ["specs/minilm.attn", "specs/by_hand.attn", DIFFERENTIAL + "seq2seq_exact_source.attn"]


def run(*command, status=0):
    return attnc(*command, status=status)


def amount(value, unit):
    """As explain.c prints it."""
    p = 0
    while value >= 1000 and p < 4:
        value, p = value / 1000, p + 1
    return "%.*f %s%s" % (2 if p else 0, value, ["", "k", "M", "G", "T"][p], unit)


def duration(seconds):
    """As explain.c prints it: four digits."""
    u = 0
    while seconds < 1 and u < 3:
        seconds, u = seconds * 1000, u + 1
    return "%.*f %s" % (3 if seconds < 10 else 2 if seconds < 100 else 1, seconds, ["s", "ms", "us", "ns"][u])


class Page(html.parser.HTMLParser):
    """Every element closed in its order, nothing from elsewhere; `data` is what the script draws."""
    VOID = {"meta", "br"}

    def __init__(self, path):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.json = [], [], ""
        with open(path, encoding="utf-8") as file:
            self.text = file.read()
        assert self.text.startswith("<!DOCTYPE html>\n"), "no page"
        self.feed(self.text)
        self.close()
        assert not self.open, "left open: %s" % self.open
        assert "http" not in self.text.replace("http://www.w3.org/2000/svg", ""), "something from elsewhere"
        self.data = json.loads(self.json)

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)
        for key, value in attrs:
            assert key not in ("src", "href", "srcset", "data", "action"), "<%s %s=%s>" % (tag, key, value)
            if key == "id":
                assert value not in self.ids, "%s twice" % value
                self.ids.append(value)

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, "</%s> in %s" % (tag, self.open)
        self.open.pop()

    def handle_data(self, data):
        if self.open[-1:] == ["script"] and self.ids[-1] == "data" and not self.json:
            self.json = data


class Explain:
    def __init__(self, folder):
        self.folder, self.pages = folder, {}

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, spec):
        name = self.path(os.path.basename(spec) + ".html")
        text = run("explain", spec, "--html", name).stdout
        return Page(name), text

    def each(self):
        """(spec, page, text) of every spec, made once."""
        if not self.pages:
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                self.pages = dict(zip(SPECS, pool.map(self.write, SPECS)))
        return [(spec, page, text) for spec, (page, text) in self.pages.items()]

    def made(self, wanted):
        """(page, text) of one of them."""
        return next((page, text) for spec, page, text in self.each() if spec == wanted)

    def test_every_spec(self):
        for spec, page, _ in self.each():
            name = os.path.splitext(os.path.basename(spec))[0]
            assert page.data["model"] == name, "%s: %s" % (spec, page.data["model"])
            assert "<h1>%s</h1>" % name in page.text, spec

    def compare(self, spec, data, text):
        """Numbers of the page against what is printed."""
        lines = text.splitlines()
        assert lines[0] == "%s: %s" % (data["model"], data["call"]), lines[0]
        facts = dict((line[:16].strip(), line[17:]) for line in lines[2:lines.index("", 2)] if line[0] != " ")
        flops, moved = sum(s["flops"] for s in data["steps"]), sum(s["bytes"] for s in data["steps"])
        assert (flops, moved) == (data["flops"], data["bytes"]), "%s: %d, %d" % (spec, flops, moved)
        for fact, begin in (("parameters", amount(data["parameters"], "")),
                            ("flops", amount(flops, "FLOP") + ":"), ("bytes moved", amount(moved, "B") + ":"),
                            ("weights", amount(data["weights"], "B")),
                            ("workspace", "%d bytes, for chunks of %d rows" % (data["workspace"], data["chunk"])),
                            ("scratch", "%d bytes per thread" % data["scratch"]),
                            ("steps", "%d: " % len(data["steps"]))):
            assert facts[fact].startswith(begin), "%s, %s: %s, not %s" % (spec, fact, facts[fact], begin)
        sizes = facts["code"]
        assert re.findall(r"(\w+) [\d.]+ k?M?B", sizes) == data["targets"] + ["all"], sizes
        assert sizes.endswith("all " + amount(data["code"], "B")), sizes
        steps, *masks = "\n".join(lines[lines.index("", 2) + 2:]).split("\n\n")
        self.compare_masks(spec, data["patterns"], masks)
        table = steps.splitlines()
        assert len(table) == len(data["steps"]), "%s: %d steps" % (spec, len(table))
        for line, s in zip(table, data["steps"]):
            count = (amount(s["flops"], ""), "%.2f %%" % (100 * s["flops"] / flops)) if s["flops"] else ("-", "-")
            want = "%-10s %-44s %-36s %6d %12s %7s %12s" % (s["kind"], s["name"], s["shape"], s["rows"], *count,
                                                           amount(s["bytes"], "B"))
            assert line == want, "%s: printed %s\nwritten %s" % (spec, line, want)
        roofs = data["roofs"]
        if roofs is None:
            assert facts["roofline"].startswith("not measured"), facts["roofline"]
            return
        both = (flops / roofs["flops"], moved / roofs["read"])
        want = "%s in one thread: %s of multiply-adds at %s (%s), %s of bytes at %s" % (
            duration(max(both)), duration(both[0]), amount(roofs["flops"], "FLOP/s"), roofs["target"],
            duration(both[1]), amount(roofs["read"], "B/s"))
        assert facts["roofline"] == want, "%s: printed %s\nwritten %s" % (spec, facts["roofline"], want)

    @staticmethod
    def compare_masks(spec, patterns, masks):
        """Drawings of the page against the printed ones."""
        assert len(patterns) == len(masks), "%s: %d masks, %d printed" % (spec, len(patterns), len(masks))
        for p, printed in zip(patterns, masks):
            pairs, cell = p["rows"] * p["keys"], p["cell"]
            want = ["mask of %s: %s" % (p["place"], p["rule"])]
            want += ["drawn for %s" % p["given"]] * bool(p["given"])
            want += ["%s%d x %d pairs of query and key: %d (%.2f %%) visible, %d (%.2f %%) multiplied by %s, %s and %d "
                     "keys at a time" % (
                         "the first " if p["allRows"] > p["rows"] else "", p["rows"], p["keys"], p["visible"],
                         100 * p["visible"] / pairs, p["multiplied"], 100 * p["multiplied"] / pairs, p["target"],
                         "1 query" if p["tile"] == 1 else "%d queries" % p["tile"], p["panel"])]
            if cell > 1:
                want += ["a character is %d x %d pairs: # all of them are visible, + some, . none" % (cell, cell)]
            assert printed.splitlines() == want + ["  " + line for line in p["lines"]], "%s:\n%s" % (spec, printed)
            assert cell == -(-max(p["rows"], p["keys"]) // 32) and len(p["lines"]) == -(-p["rows"] // cell), spec
            assert all(len(line) == -(-p["keys"] // cell) for line in p["lines"]), spec

    def test_masks(self):
        """Nothing is drawn of a model that sees everything, and each mask of other models once."""
        count = {page.data["model"]: [(p["place"], p["rule"]) for p in page.data["patterns"]]
                 for _, page, _ in self.each()}
        assert count["minilm"] == [], count
        assert QUICK or count["gemma2_2b"] == [
            ("layers 0, 2, 4, 6, 8, 10 and 7 more", "k <= q and abs(q - k) < 4096"),
            ("layers 1, 3, 5, 7, 9, 11 and 7 more", "k <= q")], count["gemma2_2b"]
        assert QUICK or count["where_rows"] == [
            ("encoder, layer 0", "doc[q] == doc[k]"),
            ("encoder, layer 1", "abs(q - k) < 5 or 0 < global[q] or 0 < global[k]"), ("decoder, layer 0", "k <= q")]

    def test_draw(self):
        """Integers that are given, and wrong ones."""
        spec = DIFFERENTIAL + "where_rows.attn"
        text = run("explain", spec, "--draw", "doc=2*3,0", "--draw", "global=-1", "--seq", "6").stdout
        assert "drawn for doc=2*3,0\n" in text and "drawn for global=-1\n" in text, text
        assert "  ##.##.\n  ##.##.\n  ..#..#\n  ##.##.\n  ##.##.\n  ..#..#\n" in text, text
        for words, problem in ((["doc=4"], "`--draw doc`: 4 is outside 0 to 3"), (["doc="], "wants NAME="),
                               (["dog=1"], "`--draw dog`: no mask that is drawn reads an input of this name"),
                               (["doc=1,x"], "`--draw doc` wants integers such as 3,0 or 8*1,4*2, found `x`"),
                               (["doc=1;2"], "`--draw doc` wants integers such as 3,0 or 8*1,4*2, found `1;2`"),
                               (["doc=0*1"], "`--draw doc`: 0 is outside 1 to 1048576"),
                               (["doc=1048576*1,2"], "`--draw doc` has more than 1048576 integers"),
                               (["doc=1", "--draw", "doc=2"], "`--draw doc` stands twice")):
            done = run("explain", spec, "--draw", *words, status=2)
            assert problem in done.stderr and not done.stdout, done.stderr
        prefix = os.path.join(self.folder, "prefix.attn")
        with open(prefix, "w", encoding="utf-8") as file:
            file.write("model prefix { d_model 8, vocab 9, decoder { seq <= 5, layers 1 { attention self { heads 1, "
                       "mask prefix } } } }\n")
        assert "drawn for prefix_length=2\n" in run("explain", prefix).stdout
        text = run("explain", prefix, "--draw", "prefix_length=3").stdout
        assert "drawn for prefix_length=3\n" in text and "  ###..\n  ###..\n  ###..\n  ####.\n  #####\n" in text, text
        with open(prefix, "w", encoding="utf-8") as file:  # too many pairs that no bounds decide
            file.write("model prefix { d_model 8, vocab 9, encoder { seq <= 100000, input rows doc 0..9, layers 1 { "
                       "attention self { heads 1, mask where doc[q] == doc[k] and (q + k) mod 3 == 1 } } } }\n")
        text = run("explain", prefix).stdout
        rows, drawn = int(re.search(r"\nthe first (\d+) x", text)[1]), re.search(r"drawn for doc=(.*)\n", text)[1]
        assert 100 < rows < 10000 and sum(int(part.split("*")[0]) for part in drawn.split(",")) == rows, text
        with open(prefix, "w", encoding="utf-8") as file:
            file.write("model prefix { d_model 8, vocab 9, decoder { seq <= 5, layers 1 { attention self { heads 1, "
                       "mask prefix } } } }\n")
        done = run("explain", prefix, "--draw", "prefix_length=1,2", status=2)
        assert "`--draw prefix_length` wants one integer, found `1,2`" in done.stderr, done.stderr

    def test_numbers_are_those_printed(self):
        for spec, page, text in self.each():
            self.compare(spec, page.data, text)

    def test_rows(self):
        whole = self.made("specs/minilm.attn")[0].data
        text = run("explain", "specs/minilm.attn", "--seq", "16", "--html", self.path("rows.html")).stdout
        data = Page(self.path("rows.html")).data
        self.compare("minilm, 16 rows", data, text)
        assert {s["rows"] for s in data["steps"]} == {16, 1} and data["flops"] < whole["flops"] / 32, data["call"]
        assert (data["buffers"], data["parts"]) == (whole["buffers"], whole["parts"]), "rows change the code"

    def test_text_is_the_same_without(self):
        def known(text):
            return [line for line in text.splitlines() if not line.startswith("roofline ")]
        _, text = self.made("specs/by_hand.attn")
        assert known(run("explain", "specs/by_hand.attn").stdout) == known(text), "another text"

    def test_same_page_again(self):
        first, second = self.made("specs/by_hand.attn")[0].data, self.write("specs/by_hand.attn")[0].data
        assert {**first, "roofs": 0} == {**second, "roofs": 0}, "another page"

    def test_layers(self):
        for spec, page, _ in self.each():
            for s in page.data["steps"]:
                named = re.match(r"((?:encoder_|decoder_)?layer\d+)_\w+$", s["name"])
                assert s["layer"] == (named and named.group(1)), "%s: %s of %s" % (spec, s["name"], s["layer"])

    def test_buffers_fill_the_workspace(self):
        for spec, page, _ in self.each():
            data, n = page.data, len(page.data["steps"])
            buffers = data["buffers"]
            assert max(b["offset"] + b["bytes"] for b in buffers) == data["workspace"], spec
            for b in buffers:
                assert b["bytes"] > 0 <= b["offset"] and 0 <= b["first"] <= b["last"] < n, "%s: %s" % (spec, b)
            for i, a in enumerate(buffers):
                for b in buffers[:i]:
                    apart = a["last"] < b["first"] or b["last"] < a["first"]
                    beside = a["offset"] + a["bytes"] <= b["offset"] or b["offset"] + b["bytes"] <= a["offset"]
                    assert apart or beside, "%s: %s and %s" % (spec, a, b)

    def test_buffers_live_as_the_plan_says(self):
        for spec, page, _ in self.each():
            lines = run("--dump=plan", spec).stdout.splitlines()
            steps = lines[1:1 + len(page.data["steps"])]
            for buffer in page.data["buffers"][1:]:
                word = re.compile(r" \w+=%s(?:\+\d+)?(?= |$)" % re.escape(buffer["name"]))
                touched = [i for i, line in enumerate(steps) if word.search(line)]
                assert [touched[0], touched[-1]] == [buffer["first"], buffer["last"]], "%s: %s, %s" % (
                    spec, buffer, touched)

    def test_parts_are_the_code(self):
        for spec, page, _ in self.each():
            data = page.data
            assert sum(p["bytes"] for p in data["parts"]) == data["code"], "%s: parts do not add up" % spec
            assert all(p["bytes"] > 0 for p in data["parts"]), spec
            self.compare_code(spec, data)

    def compare_code(self, spec, data):
        """Each kernel's part of the C of `attnc compile` holds its functions, whole, and no other part has them."""
        run("compile", spec, "--target", ",".join(data["targets"]), "-o", self.path("code"))
        with open(self.path("code/%s.c" % data["model"]), "rb") as file:
            code = file.read()
        at = len(code) - data["code"]  # the command line in the head is longer
        assert 0 <= at < 200, "%s: %d bytes, %d on the page" % (spec, len(code), data["code"])
        names = [(p["target"], p["name"]) for p in data["parts"] if p["kind"] not in ("helpers", "steps", "shared")]
        assert len(set(names)) == len(names), "%s: a kernel twice" % spec
        for i, part in enumerate(data["parts"]):
            begin = 0 if i == 0 else at
            at += part["bytes"]
            text = code[begin:at].decode()
            prefix = r"%s_%s_" % (data["model"], part["target"])
            functions = re.findall(r"^(?:\w+ )*%s(\w+)\([^;{}]*\{$" % prefix, text, re.M) if part["target"] else []
            what = "%s: %s" % (spec, part)
            assert text.count("{") == text.count("}") and text.endswith("\n"), what
            if part["kind"] == "shared":
                assert part["target"] is None, what
            elif part["kind"] == "steps":
                assert all(re.search(r"(^|_)(step_\w+|chunk)$", f) for f in functions) and functions, what
            elif part["kind"] == "helpers":
                alone = "#define " in text  # the attribute of half vectors whose kernels call no helper
                assert (functions or alone) and not any("step_" in f for f in functions), what
            else:
                own = re.compile(r"%s(_|$)" % part["name"])
                assert functions and all(own.match(f) for f in functions), "%s: %s" % (what, functions)
                assert os.path.exists(os.path.join(ROOT, "compiler/emit/templates", part["kind"] + ".c.tmpl")), what

    def test_target(self):
        """That of another processor: its code alone, and no roof of this one."""
        spec, name = "specs/by_hand.attn", self.path("wasm.html")
        text = run("explain", spec, "--target", "wasm", "--html", name).stdout
        page = Page(name)
        self.compare(spec, page.data, text)
        assert page.data["targets"] == ["wasm"], page.data["targets"]
        assert page.data["code"] < self.made(spec)[0].data["code"] / 2
        self.compare_code(spec, page.data)
        assert re.search(r"^roofline +not measured: this machine has no wasm$", text, re.M), text
        here = run("explain", spec, "--target", "native").stdout
        assert re.search(r"^code +C of (?!scalar)\w+ [^;]*; all ", here, re.M), here
        assert "cannot be emitted" in run("explain", spec, "--target", "z80", status=3).stderr

    def test_browser(self):
        """The script runs, every buffer and step has its rectangle, equal names are told apart, no two texts overlap
        and none leaves the window, from that of a telephone on, in the light and in the dark."""
        with open(os.path.join(HERE, "look.js"), encoding="utf-8") as file:
            look = file.read()
        for spec, page, _ in self.each():
            if page.data["model"] not in ("minilm", "by_hand", "gemma2_2b", "vaswani_base", "seq2seq_exact_source",
                                          "unrolled_pair", "where_rows"):
                continue
            texts = [page.text]
            if "by_hand" in spec:  # a machine that cannot be measured
                texts.append(re.sub(r'"roofs":\{.*?\}', '"roofs":null', page.text))
                assert texts[1] != texts[0], "the roofs are not found"
            for text in texts:
                for width in WIDTHS:
                    seen = see(text, self.folder, look, width=width, dark=width == 500 or "gemma" in spec)
                    self.compare_seen("%s, %d wide" % (spec, width), page.data, seen)

    def compare_seen(self, what, data, seen):
        assert not seen["wrong"], "%s: %s" % (what, seen["wrong"])
        groups = {(s["kind"], s["shape"], s["rows"], s["flops"], s["bytes"]) for s in data["steps"]}
        products = len([g for g in groups if g[3]])
        assert seen["narrow"] == (seen["width"] < 800) and seen["counted"] == products, what
        runs = sum(len(re.findall(r"#+|\++", line)) for p in data["patterns"] for line in p["lines"])
        want = {"marks": products if seen["narrow"] else len(groups), "time": len(data["steps"]),
                "masks": runs + len(data["patterns"]),
                "memory": len(data["buffers"]) + 1, "numbers": [str(i + 1) for i in range(len(groups))]}
        assert {key: seen[key] for key in want} == want, "%s: %s, not %s" % (what, seen, want)
        for step in data["steps"]:
            short = step["name"][len(step["layer"]) + 1:] if step["layer"] else step["name"]
            assert short in seen["text"], "%s: %s is not on the page" % (what, short)

    def test_words(self):
        """What the marks and the dashed line are called."""
        text = self.made("specs/by_hand.attn")[0].text
        assert "no step was timed; `attnc bench --profile` times each" in text, "marks that look measured"
        assert "end of the workspace, ${amount(data.workspace" in text and "ever used" not in text, "another end"

    def test_bench(self):
        """What takes nanoseconds has digits too; what reads faster than memory is explained."""
        text = run("bench", "specs/by_hand.attn").stdout
        found = re.search(r"median ([\d.]+) (?:ns|us), best ([\d.]+) (?:ns|us) of \d+ runs\n"
                          r"624 FLOP, ([\d.]+) [kMG]?FLOP/s, [\d.]+ % of 1 x [\d.]+ [MGT]FLOP/s measured; "
                          r"([\d.]+) kB touched, one core reads [\d.]+ GB/s\n$", text)
        assert found and all(float(number) > 0 for number in found.groups()), text
        text = run("bench", self.decoder(), "--decode").stdout
        found = re.search(r"^[\d.]+ MB a token, [\d.]+ [kMG]B/s: ([\d.]+) % of the [\d.]+ GB/s that one core "
                          r"reads from memory(.*)$", text, re.M)
        assert found, text
        assert found.group(2) == (" (the weights stay in the caches)" if float(found.group(1)) > 100 else ""), text

    def test_unit(self):
        """A precision of narrow rows adds the rate of what multiplies them. Words of 16 bits are multiplied at most
        twice as fast as floats; a loop that the compiler has emptied is faster."""
        plain = json.loads(run("bench", "specs/small_encoder.attn", "--json").stdout)
        assert "peak_gops" not in plain and "precision" not in plain, plain
        words = ["--precision", "weights=int8,activations=int8", "--json", "--target"]
        for target in sorted({"sse2", "avx2", "avx512"} & set(here(on_request=True))):
            seen = json.loads(run("bench", "specs/small_encoder.attn", *words, target).stdout)
            assert seen["precision"] == words[1] and seen["target"] == target, seen
            assert 0.25 < seen["peak_gops"] / seen["peak_gflops"] < 4, seen

    def decoder(self):
        """A decoder whose steps take longer than reading the clock, and whose weights stay in the caches."""
        spec = self.path("cached.attn")
        with open(spec, "w", encoding="utf-8") as file:
            file.write("model cached { d_model 256, vocab 64, decoder { seq <= 16, layers 1 {"
                       " attention self { heads 4, mask causal }, ffn { d_ff 1024 } } }, head logits }\n")
        return spec

    def profile(self, spec, *options):
        """The numbers of bench, whose profile was compared with them and with itself."""
        seen = json.loads(run("bench", spec, "--profile", "--json", *options).stdout)
        steps, total = seen["profile"]["steps"], sum(step["median_s"] for step in seen["profile"]["steps"])
        assert seen["min_s"] / 2 < total < 2 * seen["profile"]["median_s"], "%g s of steps in %s" % (total, seen)
        for what in ("flops", "bytes"):
            counted = sum(step[what] for step in steps)
            assert abs(counted - seen[what]) <= len(steps), "%s of %s: %g" % (what, seen, counted)
        for step in steps:
            assert step["calls"] == 1 and step["median_s"] >= 0, step
            want = step["median_s"] / step["predicted_s"]
            assert abs(step["ratio"] - want) < 1e-3 * (1 + want), "%s: %g" % (step, want)
            if "peak_gflops" in seen:
                want = max(step["flops"] / seen["peak_gflops"] / seen["threads"], step["bytes"] / seen["read_gb_s"])
                assert abs(step["predicted_s"] * 1e9 / want - 1) < 1e-3, "%s: %g ns" % (step, want)
        return seen, [[step["kind"], step["name"]] for step in steps]

    def test_profile(self):
        """The steps of explain in their order, code without loops and of one row too, and each takes a time: of three
        models, which take turns with the commits."""
        # the second one's steps take longer than reading the clock, which those of by_hand.attn do not
        for spec in in_turn(["specs/small_encoder.attn", DIFFERENTIAL + "unrolled_masks.attn",
                             "tests/dropin/translator.attn"], 3):
            listed = run("explain", spec, "--target", "native").stdout.split("\n\n")[2].splitlines()[1:]
            seen, steps = self.profile(spec, *(["--threads", "2"] if "translator" in spec else []))
            assert steps == [line.split()[:2] for line in listed], "%s: %s" % (spec, steps)
            slowest = max(seen["profile"]["steps"], key=lambda step: step["median_s"])
            assert slowest["kind"] in ("gemm", "attention"), slowest
        steps = self.profile(self.decoder(), "--decode", "--seq", "16")[1]
        assert ["store", "layer0_attention_values"] in steps and ["gemm", "logits"] in steps, steps
        text = run("bench", "specs/small_encoder.attn", "--profile").stdout
        rows = [line.split() for line in text.split("\n\n")[1].splitlines()]
        assert rows[0] == ["kind", "step", "calls", "median", "share", "predicted", "by", "ratio"], text
        share = sum(float(row[row.index("%") - 1]) for row in rows[1:-1])
        assert abs(share - 100) < 0.01 * len(rows), "%g %%: %s" % (share, text)
        found = re.search(r"\n +all steps +([\d.]+ [um]s) +100 % +[\d.]+ [um]s +[\d.]+\n\nall steps: [\d.]+ % of the "
                          r"([\d.]+ [um]s) that a call takes without the profile, and [\d.]+ [um]s with it \(median of "
                          r"\d+ runs\)\npredicted: the longer of flops at [\d.]+ GFLOP/s and bytes at [\d.]+ GB/s",
                          text)
        assert found, text
        run("bench", "tests/dropin/translator.attn", "--profile", "--decode", status=1)
        done = run("explain", "specs/by_hand.attn", "--profile", status=2)
        assert "usage: attnc explain SPEC" in done.stderr and not done.stdout, done.stderr
        assert "profile" not in json.loads(run("bench", "specs/by_hand.attn", "--json").stdout)

    def test_bad_calls(self):
        spec, folder = "specs/by_hand.attn", self.path("folder")
        os.mkdir(folder)
        for path, why in ((folder, "Is a directory"), (self.path("absent/x.html"), "No such file"),
                          ("/dev/full", "No space left")):
            done = run("explain", spec, "--html", path, status=1)
            assert path + ": cannot be written: " + why in done.stderr and not done.stdout, done.stderr + done.stdout
        for options in (["--html"], ["--html", "a", "--html", "b"], ["--html", "a", "--seq", "0"], ["--htm", "a"]):
            done = run("explain", spec, *options, status=2)
            assert "usage: attnc explain SPEC" in done.stderr and not done.stdout, done.stderr
        with open(self.path("bad.attn"), "w", encoding="utf-8") as file:
            file.write("model bad {\n")
        old = self.path("old.html")
        with open(old, "w", encoding="utf-8") as file:
            file.write("old")
        run("explain", self.path("bad.attn"), "--html", old, status=1)
        with open(old, encoding="utf-8") as file:
            assert file.read() == "old", "the old page is gone"
        left = [name for name in os.listdir(self.folder) if "part" in name] + os.listdir(folder)
        assert not left and not os.path.exists(os.path.join(ROOT, "a")), "left: %s" % left


if __name__ == "__main__":
    sys.exit(run_tests("explain", Explain))
