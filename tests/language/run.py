#!/usr/bin/env python3
"""docs/language.md: its tables are those of settings.def, every setting has its section, its examples compile, its
diagnostics are what attnc says, and its formulas are what the interpreter computes. Speaks TAP."""
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
from formulas import Formulas  # noqa: E402
from lib.attnc import ATTNC, ROOT, make  # noqa: E402
from lib.tap import run_tests  # noqa: E402
from model import read_npy, run, write_npy  # noqa: E402
from norms import Norms  # noqa: E402
from page import Page  # noqa: E402
from positions import Positions  # noqa: E402

PATH = os.path.join(ROOT, "docs", "language.md")
TABLES = os.path.join(ROOT, "build", "language_tables")
SMALL = ("turned", "sinks", "scored")  # examples that are compared with the interpreter, compiled

# Where a line of the table of refusals stands: the page's words for it.
FRAMES = {
    "encoder": "model m {\nd_model 8, vocab 11\nencoder {\nseq <= 8\nlayers 1 {\n%s\n}\n}\n}\n",
    "decoder": "model m {\nd_model 8, vocab 11\ndecoder {\nseq <= 8\nlayers 1 {\n%s\n}\n}\n}\n",
    "over": "model m {\nd_model 8, vocab 11\nencoder { seq <= 8, layers 1 { attention self { heads 2 } } }\n"
            "decoder {\nseq <= 8\nlayers 1 {\nattention self { heads 2 }\n%s\n}\n}\n}\n",
    "alone": "model m {\n%s\n}\n",
    "stack": "model m {\nd_model 8, vocab 11\nencoder {\n%s\n"
             "layers 1 { attention self { heads 2 }, ffn { d_ff 16 } }\n}\n}\n",
    "model": "model m {\nd_model 8, vocab 11\nencoder { seq <= 8, layers 1 { attention self { heads 2 } } }\n%s\n}\n",
}


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def items_of(spec, setting):
    """The values of each item of that name, as words; comments and the weights block are gone."""
    text = re.sub(r"#[^\n]*", "", spec).split("weights {")[0]
    return [set(re.findall(r"\w+", values)) | ({"="} if sign == "=" else {"<="} if sign else set())
            for sign, values in re.findall(r"(?<!\w)%s\b\s*(<?=)?([^,\n{}]*)" % setting, text)]


class Language(Norms, Positions):
    def __init__(self, folder):
        super().__init__(folder, Page(PATH))
        self.settings = re.findall(r"^### (\w+)$", self.page.text, re.M)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    # ------------------------------------------------------------ the page and the table

    def test_tables(self):
        make("build/language_tables", status=0)
        assert run(TABLES, PATH).stdout == self.page.text, "the page is old: make language-tables"

    def test_renewal(self):
        """`make language-tables` renews an old page, and leaves a bad one as it is."""
        old = self.page.text.replace("| 10000 |", "| 10001 |")
        bad = old.replace("table: pad ", "table: pads ")
        for text, wanted, status in ((old, self.page.text, 0), (bad, bad, 2)):
            path = self.write("renewed.md", text)
            make("language-tables", "LANGUAGE_PAGE=" + path, status=status)
            assert read(path) == wanted and not os.path.exists(path + ".part-new"), "another page"

    def test_bad_pages(self):
        for change, why in ((lambda t: t.replace("<!-- table: sink -->\n", ""), "an end without a table"),
                            (lambda t: t.replace("table: sink ", "table: sinks "), "neither a setting"),
                            (lambda t: t.replace("table: sink ", "table: mask "), "stands twice"),
                            (lambda t: t[:t.rindex("<!-- end -->")], "the page ends inside a table"),
                            (lambda t: t.replace("<!-- end -->\n", "", 1), "before the last one has its end"),
                            (lambda t: re.sub(r"<!-- table: pad -->.*?<!-- end -->\n", "", t, flags=re.S),
                             "no table of: pad")):
            done = run(TABLES, self.write("page.md", change(self.page.text)), status=1)
            assert why in done.stderr, done.stderr

    def test_sections(self):
        """As many as the table has settings, in its order (the tables' markers are checked by language_tables)."""
        rows = re.sub(r'^#include "(norm_settings|precisions)\.def"$', lambda file: read(
            "compiler", "model", file[1] + ".def"), read("compiler", "model", "settings.def"), flags=re.M)
        listed = re.findall(r"^SETTING\((\w+),", rows, re.M)
        assert self.settings == listed, "sections %s, settings %s" % (self.settings, listed)
        for name, body in self.page.sections.items():
            assert body.startswith("<!-- table: %s -->\n" % name), "%s: its table does not come first" % name
            rest = body.split("<!-- end -->\n", 1)[1]
            examples = re.findall(r"^```attn\n(.*?)^```$", rest, re.S | re.M)
            assert len(examples) == 1, "%s: %d examples" % (name, len(examples))
            assert items_of(examples[0], name), "%s is not in its example" % name
            meaning = rest.split("Used by:")[0]
            assert "Used by:" in rest and len(meaning.split()) >= 5, "%s: no meaning" % name
            assert "`" in meaning, "%s: no formula, option or shape" % name

    def test_used_by(self):
        links = dict(re.findall(r"^\[([^\]]+)\]: \.\./(\S+)$", self.page.text, re.M))
        text = " ".join(self.page.text.split())
        used, count = set(re.findall(r"\[([A-Za-z][^\]]*)\](?![:(\[])", text)), 0
        for name, path in links.items():
            assert os.path.isfile(os.path.join(ROOT, path)), "%s: %s is not there" % (name, path)
            assert name in used, "[%s] is not used" % name
        for name, body in self.page.sections.items():
            text = " ".join(re.search(r"^Used by:(.*?)\n\n", body, re.S | re.M).group(1).split())
            words = set()
            for code, link in re.findall(r"`([^`]*)`|\[([^\]]+)\]", text):
                if code:
                    words = set(code.split())
                    continue
                assert link in links, "%s: [%s] leads nowhere" % (name, link)
                found = items_of(read(links[link]), name)
                assert any(words <= item for item in found), "%s: %s does not say `%s %s`" % (
                    name, links[link], name, " ".join(sorted(words)))
                count += 1
            nobody = re.search(r"[Nn]o spec in this tree uses ([^.;]*)", text)
            for folder in ("specs", "specs/masks", "tests/families") if nobody else ():
                words = re.findall(r"`(\w+)`", nobody.group(1))
                assert words or nobody.group(1) == "it", nobody.group(0)
                for file in os.listdir(os.path.join(ROOT, folder)):
                    for item in items_of(read(folder, file), name) if file.endswith(".attn") else ():
                        assert words and not item & set(words), "%s/%s uses `%s`" % (folder, file, name)
        assert count > 100, "%d names" % count

    # ------------------------------------------------------------ examples and diagnostics

    def test_examples(self):
        names = set()
        for body in self.page.examples():
            name = re.search(r"^model (\w+)", body, re.M).group(1)
            assert name not in names, "two examples `%s`" % name
            names.add(name)
            path = self.write(name + ".attn", body)
            formatted = self.write("formatted.attn", run(ATTNC, "fmt", path).stdout)
            for spec in (path, formatted):
                run(ATTNC, "compile", spec, "-o", os.path.join(self.folder, "out"), "--target", "scalar")
            models = [run(ATTNC, "--dump=model", spec).stdout for spec in (path, formatted)]
            assert models[0] == models[1], "%s: fmt changes it" % name
        assert len(names) == len(self.settings) + 9, "%d examples" % len(names)

    def test_examples_compiled(self):
        for body in self.page.examples():
            name = re.search(r"^model (\w+)", body, re.M).group(1)
            if name in SMALL:
                run(ATTNC, "check", self.write(name + ".attn", body), "--small", "--target", "scalar")

    def test_restated(self):
        """What the page says of settings that are stated again."""
        dumps = {}
        for body in self.page.examples():
            name = re.search(r"^model (\w+)", body, re.M).group(1)
            if name in ("restated", "kept", "pattern"):
                dumps[name] = run(ATTNC, "--dump=model", self.write(name + ".attn", body)).stdout
        thetas = re.findall(r"theta (\d+)", dumps["restated"])
        assert thetas == ["500000", "10000"], dumps["restated"]
        norms = re.findall(r"norm_out of the sum rmsnorm eps (\S+)", dumps["kept"])
        assert len(norms) == 2 and all(float(eps) == 1e-6 for eps in norms), dumps["kept"]
        assert "norm_in" not in dumps["kept"], dumps["kept"]
        windows = [("window 16" in line, "1000000" in line) for line in dumps["pattern"].splitlines()
                   if "heads" in line and "position" in line]
        window, every = (True, False), (False, True)
        assert windows == [(False, False), window, window, every, window, window], dumps["pattern"]

    def test_tensors(self):
        """The names of the page's list are those of the tensors of its examples, and of settings that have none."""
        more = ["model tied { d_model 8, vocab 11, embedding tied, encoder { seq <= 4, layers 1 { attention self {\n"
                "heads 2, position relative per_layer } } }, decoder { seq <= 4, layers 1 { attention cross {\n"
                "heads 1, project none, score general } } } }",
                "model image { d_model 8, encoder { input patches image 4 patch 2 class distillation\n"
                "layers 1 { ffn { d_ff 9 } } } }",
                "model registered { d_model 8, encoder { input patches image 4 patch 2 class registers 1\n"
                "layers 1 { ffn { d_ff 9 } } } }",
                "model twice { d_model 8, encoder { input features, seq <= 4, layers 1 { attention self { heads 2\n"
                "differential yes, sink learned, qk_norm rmsnorm\n"
                "position content by_query by_key rows 9 projected own } } } }",
                "model cloze { d_model 8, head logits tied transform, encoder { vocab 11, seq <= 4, position learned\n"
                "layers 1 { ffn { d_ff 9 } } } }"]
        body = self.page.text.split("\n## Tensors")[1].split("\n## ")[0]
        patterns, used = {}, set()
        for row in re.findall(r"^\| (`.*?) \|", body, re.M):
            names = re.findall(r"`([\w.*]+)`", row.split("the same")[0])
            stem = ".".join(names[0].rstrip("*").split(".")[:-2] + [""])
            sublayer = r"(cross_)?attention\d*" + (r"|ffn\d*" if "the same" in row else "")
            for name in names:
                whole = name if re.match(r"S\.|embedding|head|pooler|classifier|dense|probe", name) else stem + name
                parts = {"S": "(encoder|decoder)", "L": r"\d+", "I": r"\d+", "A": "(%s)" % sublayer, "ffn": r"ffn\d*",
                         "*": "(weight|bias|smooth)"}
                patterns[whole] = r"\.".join(parts.get(part, part) for part in whole.split("."))
        assert len(patterns) > 25, str(patterns)
        for example in [*self.page.examples(), *more]:
            listed = run(ATTNC, "weights", self.write("example.attn", example)).stdout
            for name in re.findall(r"^([\w.]+) +\[", listed, re.M):
                if name.startswith("attention."):  # alone
                    name = "encoder.layers.0." + name
                name = re.sub(r"^probe\.(?=attention|ffn)", "encoder.layers.0.", name)
                found = {whole for whole, pattern in patterns.items() if re.fullmatch(pattern, name)}
                assert found, "`%s` is not on the page" % name
                used |= found
        assert used == set(patterns), "no example has %s" % (set(patterns) - used)

    def test_diagnostics(self):
        pairs = re.findall(r"^```attn error\n(.*?)^```\n\n```text\n(.*?)^```$", self.page.text, re.S | re.M)
        assert pairs and len(pairs) == self.page.text.count("```attn error"), "an error without its text"
        for spec, text in pairs:
            self.write(text.split(":")[0], spec)
            done = run(ATTNC, "weights", text.split(":")[0], status=1, folder=self.folder)
            assert done.stderr == text, done.stderr

    def test_refused(self):
        rows = re.findall(r"^\| `(.*?)` \| `(encoder|decoder|over|alone|stack|model)` \| (.*) \|$",
                          self.page.text.split("## Refused combinations")[1], re.M)
        assert len(rows) > 60, "%d rows" % len(rows)
        for spec, where, why in rows:
            path = self.write("refused.attn", FRAMES[where] % spec)
            said = run(ATTNC, "weights", path, status=1).stderr
            found = re.findall(r"^%s:\d+:\d+: error: (.*)$" % re.escape(path), said, re.M)
            assert found == [why], "%s: %s" % (spec, found)

    def test_said_by_hand(self):
        """What the page says that a spec by hand can say, of keys that import looks at."""
        body = self.page.text.split("## What a spec cannot express")[1].split("\n## ")[0]
        rows = re.findall(r"^\| `([\w.]+)` [^|]*\| `(.*?)` \| `(encoder|decoder|over|stack|model)` \|$", body, re.M)
        files = os.listdir(os.path.join(ROOT, "compiler", "import"))
        source = "".join(read("compiler", "import", file) for file in files)
        assert len(rows) == len(re.findall(r"` \| `\w+` \|$", body, re.M)) > 10, "%d rows" % len(rows)
        for key, spec, where in rows:
            assert re.search(r"[\" .]%s[\" ]" % re.escape(key), source), "import knows no `%s`" % key
            run(ATTNC, "weights", self.write("by_hand.attn", FRAMES[where] % spec))

    def test_norm_without_weights(self):
        """plus_one with weights that are optional, as the page says it: rows of variance 1."""
        body = self.page.text.split("## What a spec cannot express")[1]
        norm = re.search(r"`(norm layernorm plus_one no_bias)`, and `optional`", body)[1]
        line = 'decoder.%s.weight" from "nowhere" optional'
        spec = self.write("bare.attn", """model bare { d_model 8, vocab 11, %s
            decoder { seq <= 8, position learned, layers 1 { attention self { heads 2, output none, residual no } } }
            weights { "%s\n"%s } }""" % (norm, line % "layers.{layer}.attention.norm_in", line % "final_norm"))
        drawn = self.write("drawn.attn", "model drawn { d_model 8, vocab 11, norm layernorm\ndecoder { seq <= 8, "
                           "position learned, layers 1 { attention self { heads 2, output none, residual no, "
                           "norm none } }\nfinal_norm no } }")
        weights, tokens, out = [os.path.join(self.folder, name) for name in ("w.safetensors", "t.npy", "h.npy")]
        run(ATTNC, "weights", drawn, "--weights", "random:3", "-o", weights)
        write_npy(tokens, [3, 1, 7])
        run(ATTNC, "run", spec, "--engine", "interp", "--weights", weights, "--in", "tokens=" + tokens,
            "--out", "hidden=" + out)
        for row in read_npy(out):
            mean = sum(row.values) / 8
            assert abs(mean) < 1e-5 and abs(sum((x - mean) ** 2 for x in row.values) / 8 - 1) < 1e-3, str(row.values)

    def test_refused_all(self):
        """Every row of the compiler's table of exclusions is on the page."""
        program = "#define EXCLUSION(name, blame, reason, ...) reason\n#include \"exclusions.def\"\n"
        done = run("cc", "-E", "-P", "-I", "compiler/model", "-x", "c", "-", input=program)
        rows = [json.loads(line) for line in done.stdout.splitlines() if line]
        assert len(rows) > 20, "%d rows" % len(rows)
        for reason in rows:
            assert "| %s |\n" % reason in self.page.text, "not on the page: " + reason


# run_tests runs what the class itself holds
for tests in (Formulas, Norms, Positions):
    for test in [name for name in vars(tests) if name.startswith("test_")]:
        setattr(Language, test, vars(tests)[test])

if __name__ == "__main__":
    sys.exit(run_tests("language", Language))
