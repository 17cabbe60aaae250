#!/usr/bin/env python3
"""attnc page: pages of small models in a headless Chromium, against attnc and the C programs; the tokenizer of a page
under node, against the tokenizer of the runtime; what the command refuses. Speaks TAP."""
import glob
import json
import math
import os
import random
import re
import shutil
import statistics
import struct
import sys
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), os.path.join(os.path.dirname(HERE), "tokenizers")]
import gguf_twins  # noqa: E402
import given  # noqa: E402
import lines  # noqa: E402
import served  # noqa: E402
from lib import npy, searches  # noqa: E402
from lib.attnc import QUICK, ROOT, attnc, run  # noqa: E402
from lib.tap import Skip, run_tests  # noqa: E402
from lib.tokenizer import encoder, framed  # noqa: E402
from lib.turns import in_turn  # noqa: E402

FIXTURES = os.path.join(ROOT, "tests/tokenizers/fixtures")
DATES, STORY = os.path.join(ROOT, "examples/dates"), os.path.join(ROOT, "examples/story/model")
MOST_CODE = 300000  # bytes of a page beside its weights and its tokenizer
BLOCK = 8  # texts to a checksum, as in tests/tokenizers/cases.py
SPEC = """model %s {
    d_model 16
    vocab %d
    encoder {
        seq <= 24
        position learned
        %s
        layers 2 { attention self { heads 2 }
                   ffn { d_ff 20, activation gelu } }
    }
    head %s
}
"""
TEXTS = ["The quick brown fox jumps over the lazy dog.", "A fox that is quick, and a dog that is lazy.",
         "na\u00efve caf\u00e9 \u4e1c\u4eac 12", "Once upon a time there was a little girl named Lily"]
SETTINGS = {"temperature": "--temperature", "seed": "--seed", "top_k": "--top-k", "top_p": "--top-p",
            "min_p": "--min-p", "beams": "--beam", "most": "--max-new"}  # of a page, and options of attnc generate
# Regular expressions beyond those of published files.
REGEXES = [r"(?>a+b?)+|[0-9]{2,}?|^x|x$|\h+", r"\b\w+\b|\W", r"(?m:a.b)|.e|\D\d", r"(ab|c)+?d|[a-c[x-z]]+|\x41|\u0042",
           r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"
           r"|\s+(?!\S)|\s", r"(?<word>\w)+(?<=[aeiou]|er)|(?<!\S)", r"(?m)[^a].e"]
NO_REGEXES = [r"(a)\1", r"(?<n>a)\k<n>", r"[a&&b]", r"(?<=a++)b", r"\Ga", r"(?i:stra\xc3\x9fe)", r"[^a[^b]]",
              r"\p{Nonsense}", r"(?i:ss)", "(a"]


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            raise Skip("%s is not there: scripts/install_packages.sh page" % program)


class Pages(given.Given):
    def __init__(self, scratch):
        self.scratch, self.made = scratch, {}

    def path(self, name, content=None):
        path = os.path.join(self.scratch, name)
        if content is not None:
            with open(path, "wb" if isinstance(content, bytes) else "w") as file:
                file.write(content)
        return path

    def page(self, name, *words):
        """The folder of a page, which is made at the first call."""
        need("clang", "wasm-ld")
        if name not in self.made:
            attnc("page", *words, "-o", self.path(name), status=0)
            self.made[name] = self.path(name)
        return self.made[name]

    def dates(self):
        """Made by the command of docs/page.md."""
        with open(os.path.join(ROOT, "docs/page.md"), encoding="utf-8") as file:
            words = re.search(r"^```sh\nattnc page (.*)$", file.read(), re.M)[1].split()
        assert words[-2:] == ["-o", "page"], words
        return self.page("dates", *[os.path.join(DATES, word) if "." in word else word for word in words[:-2]])

    def story(self):
        spec = self.path("story.attn")
        if not os.path.exists(spec):
            attnc("import", STORY, "-o", spec, "--name", "story", status=0)
        return self.page("story", spec, "--weights", STORY + "/model.safetensors", "--tokenizer", STORY)

    def small(self, name, head, stack="", *more):
        """An encoder that reads the vocabulary of an uncased BERT."""
        spec = self.path(name + ".attn", SPEC % (name, 2600, stack, head))
        return self.page(name, spec, "--weights", "random:3", "--tokenizer", FIXTURES + "/vocab.txt", *more)

    def tokenized(self, folder, texts, capacity=None, *alone):
        """(ids, text or segments) of each text, by the tokenizer of a page."""
        need("node")
        self.as_module(folder)
        given = framed(texts)
        done = run("node", HERE + "/encode.mjs", folder, *([capacity] if capacity else []), *alone, input=given,
                   text=False, status=0)
        return done.stdout.decode().split("\n")[:-1]

    def as_module(self, folder):
        """Tells node what the scripts are."""
        with open(os.path.join(folder, "package.json"), "w", encoding="ascii") as file:
            file.write('{"type": "module"}')

    def ids(self, folder, text):
        return [int(word) for word in self.tokenized(folder, [text.encode()])[0].split("\t")[0].split()]

    def run_spec(self, name, output, batch, **more):
        """What attnc run gives for one sequence, a list of rows."""
        words = ["--in", "tokens=" + npy.write(self.path("tokens.npy"), batch, (1, len(batch)))]
        for key, numbers in more.items():
            words += ["--in", "%s=%s" % (key, npy.write(self.path(key + ".npy"), numbers, (1, len(numbers))))]
        attnc("run", self.path(name + ".attn"), "--weights", "random:3", "--engine", "interp", *words, "--out",
              "%s=%s" % (output, self.path("out.npy")), status=0)
        return list(npy.read(self.path("out.npy")).numbers)

    # ------------------------------------------------------------------------------------------------ the tokenizer

    def test_tables(self):
        """The classes of characters are the same as in the runtime."""
        with open(os.path.join(ROOT, "runtime/tokenizer/unicode.c"), encoding="utf-8") as file:
            ours = file.read()
        with open(os.path.join(ROOT, "compiler/package/page/page_unicode.js.tmpl"), encoding="utf-8") as file:
            theirs = file.read()
        for name in ("CLEANED", "NONSPACING_MARKS", "OTHER_MARKS", "PUNCTUATION"):
            body = re.search(r"CharRange %s\[\] = \{(.*?)\n\};" % name, ours, re.S)[1]
            wanted = [(int(a, 16), int(b, 16)) for a, b in re.findall(r"\{0x(\w+), 0x(\w+)\}", body)]
            table = re.search(r"const %s = tableOf\((.*?)\);" % name, theirs, re.S)[1]
            words = "".join(re.findall(r'"([^"]*)"', table))
            got = [tuple(int(end, 16) for end in (word.split("-") if "-" in word else [word, word]))
                   for word in words.split()]
            assert got == wanted and len(got) > 20, name

    def test_tokenizers(self):
        """Every kind of file: the ids and texts of tests/tokenizers."""
        names = sorted(glob.glob(FIXTURES + "/*.crc"))
        drawn = lines.lines()[:2000 if QUICK else 10000]
        for name in in_turn(names, 14 if QUICK else 7):
            (path,) = (p for p in glob.glob(name[:-4] + ".*") if not p.endswith(".crc"))
            got = self.tokenized(self.tokenizer_page(path), drawn)
            with open(name, encoding="ascii") as file:
                wanted = file.read().split()
            wrong = [i for i in range(0, len(drawn), BLOCK)
                     if "%08x" % zlib.crc32("\n".join(got[i:i + BLOCK]).encode()) != wanted[i // BLOCK]]
            assert not wrong, "%s: %d blocks of texts differ, the first from text %d on: %r" % (
                path, len(wrong), wrong[0], drawn[wrong[0]:wrong[0] + BLOCK])

    def tokenizer_page(self, path):
        spec = self.path("tok.attn", SPEC % ("tok", 3000, "", "pool mean"))
        attnc("page", spec, "--weights", "random:1", "--tokenizer", path, "-o", self.path("tok"), status=0)
        return self.path("tok")

    def test_pairs(self):
        with open(os.path.join(ROOT, "tests/tokenizers/pairs.json"), encoding="utf-8") as file:
            pairs = json.load(file)
        texts, folder = [text.encode() for text in pairs["texts"]], None
        need("clang", "wasm-ld")
        for case in in_turn(pairs["cases"], 4):
            with open(os.path.join(FIXTURES, case["file"]), encoding="utf-8") as file:
                whole = {**json.load(file), "post_processor": case["post_processor"]}
            if not folder:
                folder = self.tokenizer_page(self.path("tokenizer.json", json.dumps(whole)))
            self.path("tok/tokenizer.json", json.dumps(whole))  # none of these has a regular expression
            got = [[[int(word) for word in part.split()] for part in line.split("\t")]
                   for line in self.tokenized(folder, texts, str(case["capacity"]))]
            assert got == case["answers"], "%s of %d" % (case["name"], case["capacity"])

    def test_added_tokens(self):
        need("clang", "wasm-ld")
        with open(os.path.join(ROOT, "tests/tokenizers/added.json"), encoding="utf-8") as file:
            added = json.load(file)
        texts, folder = [text.encode() for text in added["texts"]], None
        for case in in_turn(added["cases"], 4):
            path = self.path("tokenizer.json", json.dumps(case["tokenizer"]))
            folder = folder or self.tokenizer_page(path)
            shutil.copy(path, folder)  # none of these has a regular expression
            for text, mine, wanted in zip(texts, self.tokenized(folder, texts), case["answers"], strict=True):
                assert wanted in (None, "%08x" % zlib.crc32(mine.encode())), "%s: %r: %s" % (case["name"], text, mine)

    def test_decoders(self):
        """Texts of random decoders, and the parts in which a stream gives them."""
        need("clang", "wasm-ld")
        with open(os.path.join(ROOT, "tests/tokenizers/decoders.json"), encoding="utf-8") as file:
            cases = [case for case in json.load(file) if "Regex" not in json.dumps(case["tokenizer"])]
        folder = None
        for case in in_turn(cases, 4):
            path = self.path("tokenizer.json", json.dumps(case["tokenizer"]))
            folder = folder or self.tokenizer_page(path)
            shutil.copy(path, folder)
            lists = [struct.pack("<%di" % len(ids), *ids) for ids, _ in case["answers"]]
            for (ids, wanted), line in zip(case["answers"], self.tokenized(folder, lists, "ids"), strict=True):
                whole, parts = line.split("\t")
                assert wanted in (None, bytes.fromhex(whole).decode()), (case["tokenizer"]["decoder"], ids, whole)
                parts = "".join(bytes.fromhex(part).decode() for part in parts.split(","))
                assert wanted in (None, parts), (case["tokenizer"]["decoder"], ids, parts)

    def test_rules(self):
        """Lower case, and texts that lose their beginning, as `tokenizers` has them; a prompt before them."""
        with open(os.path.join(ROOT, "tests/tokenizers/rules.json"), encoding="utf-8") as file:
            rules = json.load(file)
        texts, folder = [text.encode() for text in rules["texts"]], self.path("rules")
        need("clang", "wasm-ld", "node")
        block = 'text { prompt q "A \\"b\\"\\n", default q, lower_case, truncate left }\n    head'
        text = SPEC % ("rules", 3000, "", "pool mean")
        spec = self.path("rules.attn", text.replace("\n    head", "\n    " + block))
        for file in in_turn(sorted({case["file"] for case in rules["cases"]}), 3):
            attnc("page", spec, "--weights", "random:1", "--tokenizer", os.path.join(FIXTURES, file), "-o", folder,
                  status=0)
            with open(os.path.join(folder, "model.js"), encoding="utf-8") as model:
                described = model.read()
            both = '"rules": {"lower_case": true, "truncate_left": true}'
            assert both in described and '"prompt": "A \\"b\\"\\u000a"' in described, described
            for case in (case for case in rules["cases"] if case["file"] == file):
                words = tuple("true" if case["rules"] & bit else "false" for bit in (1, 2))
                self.path("rules/model.js", described.replace(
                    both, '"rules": {"lower_case": %s, "truncate_left": %s}' % words))
                pairs = [[[int(word) for word in part.split()] for part in line.split("\t")]
                         for line in self.tokenized(folder, texts, str(case["capacity"]))]
                alone = [[int(word) for word in line.split()]
                         for line in self.tokenized(folder, texts, str(case["capacity"]), "alone")]
                where = "%s of %d by %d" % (case["file"], case["capacity"], case["rules"])
                assert pairs == case["pairs"] and alone == case["alone"], where

    def test_empty_matches(self):
        """Expressions that match nothing wide; none splits a character of two units."""
        need("clang", "wasm-ld")
        with open(os.path.join(ROOT, "tests/tokenizers/empty.json"), encoding="utf-8") as file:
            empty = json.load(file)
        steps = {"type": "Sequence", "pretokenizers": [gguf_twins.cut(regex) for regex in empty["regexes"]]}
        path = self.path("tokenizer.json", json.dumps({"model": empty["model"], "pre_tokenizer": steps}))
        folder, texts = self.tokenizer_page(path), [text.encode() for text in empty["texts"]]
        for case in in_turn(empty["cases"], 4):
            answers = case.pop("answers")
            self.path("tok/tokenizer.json", json.dumps({"model": empty["model"], **case}))
            assert [line.split("\t")[0] for line in self.tokenized(folder, texts)] == answers, case

    def test_limits(self):
        """Steps that make a text ever longer give an error, as in the runtime."""
        need("clang", "wasm-ld")
        twice = [{"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}] * 40
        plain = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}
        model = {"type": "WordLevel", "vocab": {"a": 0, "b": 1}, "unk_token": "b"}
        for steps in ({"normalizer": {"type": "Sequence", "normalizers": twice}},
                      {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [plain] * 40}},
                      {"decoder": {"type": "Sequence", "decoders": twice}}):
            folder = self.tokenizer_page(self.path("tokenizer.json", json.dumps({"model": model, **steps})))
            (line,) = self.tokenized(folder, ["\u00e9".encode() if "pre_tokenizer" in steps else b"a"])
            assert "make this text more than 64 times as long" in line, line

    def test_regular_expressions(self):
        """Those of published files and others, against the tokenizer of the runtime."""
        need("clang", "wasm-ld", "cc")
        encode = encoder(self.path("encode"))
        drawn = lines.lines()[:1500]
        given = framed(drawn)
        cases = [gguf_twins.STEPS[name] for name in gguf_twins.STEPS]
        cases += [[gguf_twins.cut(regex), gguf_twins.bytes_step(False)] for regex in REGEXES]
        for steps in in_turn(cases, len(cases) if QUICK else 7):
            data = gguf_twins.fixture("gpt2")
            data["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": steps}
            path = self.path("tokenizer.json", json.dumps(data))
            got = self.tokenized(self.tokenizer_page(path), drawn)
            wanted = run(encode, path, input=given, text=False, status=0).stdout.decode().split("\n")[:-1]
            wrong = [i for i, (a, b) in enumerate(zip(got, wanted)) if a != b]
            assert len(got) == len(wanted) and not wrong, "%s: %d texts differ, the first is %r" % (
                steps, len(wrong), drawn[wrong[0]])

    # ------------------------------------------------------------------------------------------------ the command

    def refused(self, status, why, *words, **more):
        """The command ends so and leaves neither the folder nor a temporary file."""
        temporary = self.path("temporary")
        os.makedirs(temporary, exist_ok=True)
        more["env"] = {"TMPDIR": temporary, **more.get("env", {})}
        done = attnc("page", *words, "-o", self.path("none"), status=status, **more)
        assert why in done.stderr, done.stderr
        assert not os.path.exists(self.path("none")) and not os.listdir(temporary), words

    def test_wrong_calls(self):
        spec = self.path("plain.attn", SPEC % ("plain", 50, "", "pool mean"))
        classes = self.path("classes.attn", SPEC % ("classes", 50, "", "classifier 3"))
        assert "--weights" in attnc("page", spec, "-o", self.path("none"), status=2).stderr
        assert "-o DIR" in attnc("page", spec, "--weights", "random:1", status=2).stderr
        wrong = [*"abc"]
        self.refused(1, "none.safetensors", spec, "--weights", self.path("none.safetensors"))
        self.refused(1, "no classes", spec, "--weights", "random:1", "--labels", self.path("l", "\n".join(wrong)))
        self.refused(1, "it names 2 classes", classes, "--weights", "random:1", "--labels", self.path("l", "a\nb\n"))
        self.refused(1, "rows for 50", spec, "--weights", "random:1", "--tokenizer", FIXTURES + "/vocab.txt")

    def test_without_compiler(self):
        spec = self.path("plain.attn", SPEC % ("plain", 50, "", "pool mean"))
        os.makedirs(self.path("empty"), exist_ok=True)
        self.refused(1, "clang and lld", spec, "--weights", "random:1", env={"PATH": self.path("empty")})
        self.refused(1, "clang and lld", spec, "--weights", "random:1", "--cc", self.path("no-clang"))
        need("clang")
        os.symlink(shutil.which("clang"), self.path("empty/clang"))
        self.refused(1, "`wasm-ld` is not there", spec, "--weights", "random:1", env={"PATH": self.path("empty")})

    def test_no_page(self):
        """Models whose interface no page gives."""
        for why, head, stack in (("gives rows", "none", ""), ("token of each row", "logits", ""),
                                 ("`features` is no text", "pool mean", "input features")):
            text = SPEC % ("other", 50, stack, head)
            if "features" in stack:
                text = text.replace("vocab 50\n", "")
            self.refused(3, why, self.path("other.attn", text), "--weights", "random:1")
        text = (SPEC % ("other", 50, "", "pool mean")).replace("heads 2", "heads 2, mask given")
        self.refused(3, "`mask` is no text", self.path("other.attn", text), "--weights", "random:1")

    def test_no_tokenizer(self):
        """What the tokenizer of a page does not read."""
        spec = self.path("tok.attn", SPEC % ("tok", 3000, "", "pool mean"))
        name, keys, _ = next(iter(gguf_twins.twins()))
        path = self.path(name + ".gguf", gguf_twins.pack(keys))
        self.refused(3, "GGUF", spec, "--weights", "random:1", "--tokenizer", path)
        whole = gguf_twins.fixture("gpt2")
        step, dropout = {"type": "Unknown"}, {**whole["model"], "dropout": 0.1}
        changes = [("the normalizer", {"normalizer": step}), ("the pre-tokenizer", {"pre_tokenizer": step}),
                   ("the decoder", {"decoder": {"type": "Sequence", "decoders": [step]}}), ("the post-processor",
                   {"post_processor": step}), ("`dropout`", {"model": dropout}),
                   ("the model", {"model": {**whole["model"], "type": "Odd"}})]
        with open(FIXTURES + "/llama2c.bin", "rb") as file:
            pieces = file.read()
        path = self.path("pieces.bin", pieces + struct.pack("<fI", -1.0, 2) + b"\xc3\x28")
        self.refused(3, "is not UTF-8", spec, "--weights", "random:1", "--tokenizer", path)
        self.refused(1, "ends inside token", spec, "--weights", "random:1", "--tokenizer",
                     self.path("pieces.bin", pieces + struct.pack("<fI", -1.0, 20) + b"ab"))
        twice = json.dumps(whole).replace('"vocab": {', '"vocab": {"twice": 1, "twice": 2, ')
        path = self.path("tokenizer.json", twice)
        self.refused(1, "`twice` stands there twice", spec, "--weights", "random:1", "--tokenizer", path)
        changes += [("no translation", {"pre_tokenizer": gguf_twins.cut(regex)}) for regex in NO_REGEXES]
        for why, change in changes:
            path = self.path("tokenizer.json", json.dumps({**whole, **change}))
            self.refused(3, why, spec, "--weights", "random:1", "--tokenizer", path)

    def test_sizes(self):
        """A page of MiniLM's shape in int8."""
        folder = self.minilm()
        sizes = {name: os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder)}
        code = sum(size for name, size in sizes.items() if not name.endswith((".attnw", ".json")))
        assert code < MOST_CODE and sum(sizes.values()) < 25e6, sizes
        print("# %d bytes of code, %d in all" % (code, sum(sizes.values())))

    def minilm(self):
        return self.page("minilm", "specs/minilm.attn", "--precision", "int8", "--weights", "random:1")

    # ------------------------------------------------------------------------------------------------ in a browser

    def test_dates(self):
        """Dates as their C program reads them, with the map of cross attention."""
        site, folder = served.site(self.scratch), self.dates()
        native = self.path("native")
        attnc("compile", DATES + "/dates.attn", "-o", self.path("c"), "--embed-weights", "--weights",
              DATES + "/dates.safetensors", status=0)
        run("cc", "-std=c11", "-O1", "-I" + self.path("c"), DATES + "/dates.c", self.path("c/dates.c"), "-o", native,
            "-lm", status=0)
        with site.open(folder) as page:
            for text in ("3rd of May '97", "tue 11/20/2026", "jully 4, 1976"):
                answer = page.ask(text)
                assert answer + "\n" == run(native, text, status=0).stdout, answer
                source = npy.write(self.path("source.npy"), self.ids(folder, text), (1, len(self.ids(folder, text))))
                done = attnc("generate", DATES + "/dates.attn", "--weights", DATES + "/dates.safetensors", "--in",
                             "source=" + source, "--max-new", "12", "--engine", "interp", status=0)
                assert page.value("output.dataset.ids").split() == done.stdout.split(), done.stdout
                shape = page.value("[map.tBodies[0].rows.length, map.tHead.rows[0].cells.length]")
                assert shape == [11, len(text) + 1], shape
                sums = page.value("[...map.tBodies[0].rows].map((row) => [...row.cells].slice(1)"
                                  ".reduce((sum, cell) => sum + Number(cell.dataset.value), 0))")
                assert all(abs(total - 1) < 1e-4 for total in sums), sums
            assert page.ask("x" * 49) == "" and "at most 48 tokens" in page.message()
            assert page.ask("") == "" and "empty" in page.message()
            assert page.ask("3rd of May '97") == "1997-05-03" and page.message() == ""

    def test_packed_weights(self):
        """Weights that were packed for the spec serve its page, whose C also has the maps."""
        packed = self.path("packed.attnw")
        attnc("pack", DATES + "/dates.attn", "--weights", DATES + "/dates.safetensors", "-o", packed, status=0)
        spec = self.path("dates_plain.attn")
        with open(DATES + "/dates.attn", encoding="ascii") as file:
            self.path("dates_plain.attn", file.read().replace("        export attention\n", ""))
        folder = self.page("dates_plain", spec, "--weights", packed, "--tokenizer", DATES + "/tokenizer.json")
        with served.site(self.scratch).open(folder) as page:
            assert page.ask("3rd of May '97") == "1997-05-03"
            assert page.value("map.tBodies[0].rows.length") == 11

    def test_story(self):
        """A text that appears while it is written, equal to attnc generate, greedy and sampled; and one that stops."""
        folder = self.story()
        prompt = self.ids(folder, "Once upon a time")
        assert prompt[0] == 0, "the tokenizer puts the token that begins its texts"
        tokens, chosen, answers = npy.write(self.path("prompt.npy"), prompt, (1, len(prompt))), {}, set()
        with served.site(self.scratch).open(folder) as page:
            page.run("globalThis.seen = []; new MutationObserver(() => seen.push(output.textContent))"
                     ".observe(output, {childList: true, subtree: true})")
            for settings in ({}, {"temperature": 0.8, "seed": 5}, {"top_p": 0.6}, {"top_k": 3}):
                chosen.update(settings)
                words = [word for key, value in chosen.items() for word in ("--" + key.replace("_", "-"), str(value))]
                for key, value in settings.items():
                    page.run("document.getElementById('%s').value = %s" % (key, value))
                page.run("seen.length = 0")
                answer = page.ask("Once upon a time")
                done = attnc("generate", self.path("story.attn"), "--weights", STORY + "/model.safetensors", "--in",
                             "tokens=" + tokens, "--max-new", "256", *words, status=0)
                wanted = done.stdout.split()
                got = page.value("output.dataset.ids").split()
                assert got == wanted, "%s, not %s" % (got, wanted)
                assert answer.startswith("Once upon a time") and len(answer) > 40, answer
                seen = [text for text in page.value("seen") if text and text != "asked"]
                assert seen and all(answer.startswith(text) for text in seen), seen
                answers.add(answer)
            assert len(answers) == 4, "settings that change nothing: %s" % answers
            page.run("document.getElementById('temperature').value = 0")
            assert page.ask("word " * 400) == "" and "too long" in page.message()

    def test_stop(self):
        """A slow text appears in parts, and ends early where its reader wants that."""
        folder = self.story()
        with served.site(self.scratch).open(folder + "?module=scalar") as page:
            page.run("globalThis.first = 0; new MutationObserver(() => { if (output.textContent && !first) { first = "
                     "output.textContent.length; document.getElementById('stop').click(); } })"
                     ".observe(output, {childList: true, subtree: true})")
            answer = page.ask("Once upon a time")
            whole = len(page.value("output.dataset.ids").split())
            assert page.value("first") <= len(answer) and whole <= 256, answer
            page.run("first = 1")
            assert len(page.ask("Once upon a time")) >= len(answer)

    def test_similarity(self):
        folder = self.small("similar", "pool mean l2", "segments 2")
        vectors = [self.run_spec("similar", "pooled", ids, segments=[0] * len(ids))
                   for ids in (self.cut_ids(folder, text) for text in TEXTS)]
        with served.site(self.scratch).open(folder) as page:
            page.ask("\n".join(TEXTS))
            got = page.value("[...document.querySelectorAll('#more tbody tr')].map((row) => "
                             "[...row.querySelectorAll('td')].map((cell) => Number(cell.dataset.value)))")
            assert len(got) == len(TEXTS), got
            for i, a in enumerate(vectors):
                for j, b in enumerate(vectors):
                    wanted = sum(x * y for x, y in zip(a, b)) / math.hypot(*a) / math.hypot(*b)
                    assert abs(got[i][j] - wanted) < 1e-5, (i, j, got[i][j], wanted)
            ranked = page.value("[...output.querySelectorAll('li')].map((item) => [Number(item.dataset.index), "
                                "Number(item.dataset.value)])")
            assert sorted(index for index, _ in ranked) == [1, 2, 3]
            assert [value for _, value in ranked] == sorted((value for _, value in ranked), reverse=True), ranked
            assert page.ask("one line") == "" and "two lines" in page.message()

    def cut_ids(self, folder, text, most=24):
        """The first ids of a text and the last one, as many as the model reads."""
        ids = self.ids(folder, text)
        return ids if len(ids) <= most else ids[:most - 1] + ids[-1:]

    def test_classes(self):
        labels = self.path("labels", "good\nbad <b>\nodd\n")
        folder = self.small("sorting", "pool mean classifier 3", "segments 2", "--labels", labels)
        text, other = TEXTS[0], TEXTS[1]
        pair = self.tokenized(folder, [text.encode(), other.encode()], "24")[0].split("\t")
        ids, segments = ([int(word) for word in part.split()] for part in pair)
        with served.site(self.scratch).open(folder) as page:
            for given, tokens, parts in ((text, self.cut_ids(folder, text), None),
                                         (text + "\t" + other, ids, segments)):
                logits = self.run_spec("sorting", "logits", tokens, segments=parts or [0] * len(tokens))
                powers = [math.exp(x - max(logits)) for x in logits]
                page.ask(given)
                got = page.value("[...output.querySelectorAll('li')].map((item) => [Number(item.dataset.index), "
                                 "Number(item.dataset.value), item.lastElementChild.textContent])")
                assert len(got) == 3, got
                for index, value, label in got:
                    assert abs(value - powers[index] / sum(powers)) < 1e-5
                    assert label == ["good", "bad <b>", "odd"][index]

    def test_tags(self):
        folder = self.small("tagging", "classifier 4 rows")
        ids = self.cut_ids(folder, TEXTS[3])
        logits = self.run_spec("tagging", "logits", ids)
        with served.site(self.scratch).open(folder) as page:
            page.ask(TEXTS[3])
            got = page.value("[...output.querySelectorAll('tr')].map((row) => Number(row.dataset.class))")
        rows = [logits[4 * i:4 * i + 4] for i in range(len(ids))]
        assert got == [row.index(max(row)) for row in rows], got

    def test_numbers(self):
        """Without a tokenizer, a page reads and writes ids."""
        text = (SPEC % ("counting", 50, "", "logits")).replace("encoder", "decoder").replace(
            "heads 2", "heads 2, mask causal")
        spec = self.path("counting.attn", text)
        folder = self.page("counting", spec, "--weights", "random:3")
        tokens = npy.write(self.path("prompt.npy"), [3, 7, 11], (1, 3))
        done = attnc("generate", spec, "--weights", "random:3", "--in", "tokens=" + tokens, "--max-new", "22", status=0)
        with served.site(self.scratch).open(folder) as page:
            assert page.ask("3, 7 11").split() == ["3", "7", "11", *done.stdout.split()]
            for wrong in ("3 50", "3 x", "-1"):
                assert page.ask(wrong) == "" and "no id of a token" in page.message(), wrong

    def test_searches(self):
        """The search of the spec, and the settings that take its place, as in attnc generate."""
        warm = {"temperature": 0.8, "seed": 6}
        settings = {"penalties": ({}, warm, {**warm, "top_k": 0, "min_p": 0.3}, {"beams": 3}, {"most": 6}),
                    "by_beams": ({}, {"beams": 40}, {"beams": 1}, {"temperature": 1.1}),
                    "sampled": ({}, {"seed": 4294967295}, {"top_p": 0.35}, {"temperature": 0}), "forced": ({},),
                    "forced_beams": ({},)}
        for name, (_, _, prompt, source) in searches.SPECS.items():
            spec = searches.spec(self.scratch, name)
            folder = self.page(name, spec, "--weights", "random:1")
            given = [1, *prompt] if source is None else source  # a text begins with the token of `start`
            tokens = npy.write(self.path("given.npy"), given)
            with served.site(self.scratch).open(folder) as page:
                for chosen in settings[name]:
                    before = {key: page.value("document.getElementById('%s').value" % key) for key in chosen}
                    for key, value in chosen.items():
                        page.run("document.getElementById('%s').value = %s" % (key, value))
                    page.ask(" ".join(map(str, given)))
                    got = page.value("output.dataset.ids")
                    options = [word for key, value in chosen.items() for word in (SETTINGS[key], str(value))]
                    done = attnc("generate", spec, "--weights", "random:1", "--engine", "interp", "--in", "%s=%s" % (
                        "tokens" if source is None else "source", tokens), *options, status=0)
                    assert got == done.stdout.strip(), "%s %s: %s, not %s" % (name, chosen, got, done.stdout)
                    for key, value in before.items():
                        page.run("document.getElementById('%s').value = '%s'" % (key, value))
                if name == "forced_beams":
                    self.looks(page, spec, given, got.split())
                if name == "by_beams":
                    assert page.ask(" ".join(["4"] * 17)) == "" and "it may have 17 tokens" in page.message()

    def looks(self, page, spec, source, target):
        """After beam search, the map shows where the rows of the chosen text looked."""
        rows = page.value("[...map.tBodies[0].rows].map((row) => [...row.cells].slice(1)"
                          ".map((cell) => Number(cell.dataset.value)))")
        with open(spec, encoding="utf-8") as file:
            exported = file.read().replace("    decoder {\n", "    decoder {\n        export attention\n")
        path = self.path("exported.attn", exported)
        words = ["--in", "source=" + npy.write(self.path("source.npy"), source),
                 "--in", "target=" + npy.write(self.path("target.npy"), [1, *map(int, target[:-1])])]
        attnc("run", path, "--weights", "random:1", "--engine", "interp", *words, "--out",
              "cross_attention=" + self.path("maps.npy"), status=0)
        maps = npy.read(self.path("maps.npy"))
        n, m = len(target), len(source)
        heads = len(maps.numbers) // (n * m)
        wanted = [[sum(maps.numbers[(h * n + i) * m + j] for h in range(heads)) / heads for j in range(m)]
                  for i in range(n)]
        assert len(rows) == n and len(rows[0]) == m, (len(rows), len(rows[0]))
        worst = max(abs(a - b) for got, row in zip(rows, wanted) for a, b in zip(got, row))
        assert worst < 1e-5, "the map is off by %g" % worst

    def test_fixtures(self):
        """Models of Hugging Face, by ids: pages answer as attnc, whatever the family; others are refused."""
        fixtures = os.path.join(ROOT, "tests/parity/fixtures")
        for name in in_turn(sorted(os.listdir(fixtures)), 250 if QUICK else 120):
            spec, weights = self.path(name + ".attn"), os.path.join(fixtures, name)
            if attnc("import", weights, "-o", spec).returncode:
                continue
            done = attnc("page", spec, "--weights", weights, "-o", self.path(name))
            if done.returncode == 3:
                assert "there is no page for this model" in done.stderr, done.stderr
                continue
            assert done.returncode == 0, done.stderr
            with served.site(self.scratch).open(self.path(name)) as page:
                self.compare_fixture(page, spec, weights)

    def compare_texts(self, spec, weights, source, line, got, wanted):
        """Texts of greatest logits are the same, or first differ where two logits are, within the bound of
        attnc check: vectors of other widths round differently."""
        if got == wanted:
            return
        at = next((i for i, pair in enumerate(zip(got, wanted)) if pair[0] != pair[1]), -1)
        assert at >= 0 and len(got) == len(wanted), "%s: %d ids, not %d" % (spec, len(got), len(wanted))
        with open(spec, encoding="utf-8") as file:
            start = [int(found) for found in re.findall(r"^ *start (\d+)", file.read(), re.M)]
        before = [int(token) for token in got[:at]]
        arrays = {source: line, "target": start + before} if source == "source" else {source: line + before}
        given = ["--in=%s=%s" % (name, npy.write(self.path(name + ".npy"), ids)) for name, ids in arrays.items()]
        attnc("run", spec, "--weights", weights, "--engine", "interp", *given, "--out",
              "logits=" + self.path("out.npy"), status=0)
        logits = npy.read(self.path("out.npy")).rows()[-1]
        bound = 2e-5 * (1 + max(map(abs, logits)))
        less = logits[int(wanted[at])] - logits[int(got[at])]
        assert abs(less) < bound, "%s: id %d is %s, not %s, of which the logits differ by %g" % (
            spec, at, got[at], wanted[at], less)

    def compare_fixture(self, page, spec, weights):
        model = page.value("import('./model.js').then((module) => module.model)")
        draw = random.Random(spec.rsplit("/", 1)[1])
        ids = [[draw.randrange(model["vocab"]) for _ in range(3)] for _ in range(2)]
        given, task = [" ".join(map(str, line)) for line in ids], model["task"]
        page.ask("\n".join(given) if task in ("similarity", "classify") else given[0])
        if page.message():  # a length that the model does not take
            return
        if task in ("generate", "translate"):
            source, line = "source" if task == "translate" else "tokens", ids[0]
            got = page.value("output.dataset.ids").split()
            done = attnc("generate", spec, "--weights", weights, "--in", source + "=" + npy.write(
                self.path("in.npy"), line, (1, len(line))), "--max-new", str(len(got)), status=0)
            self.compare_texts(spec, weights, source, line, got, done.stdout.split())
            return
        rows = []
        for line in ids:
            attnc("run", spec, "--weights", weights, "--engine", "interp", "--in", "tokens=" + npy.write(
                self.path("in.npy"), line, (1, len(line))), "--out", "%s=%s" % (
                    "pooled" if task == "similarity" else "logits", self.path("out.npy")), status=0)
            rows.append(list(npy.read(self.path("out.npy")).numbers))
        self.compare_rows(page, spec, task, rows)

    def compare_rows(self, page, spec, task, rows):
        if task == "similarity":
            got = page.value("Number(output.querySelector('li').dataset.value)")
            wanted = sum(a * b for a, b in zip(*rows)) / math.hypot(*rows[0]) / math.hypot(*rows[1])
            assert abs(got - wanted) < 2e-5, spec
        elif task == "tag":
            got = page.value("[...output.querySelectorAll('tr')].map((row) => Number(row.dataset.class))")
            width = len(rows[0]) // len(got)
            parts = [rows[0][i * width:(i + 1) * width] for i in range(len(got))]
            assert got == [part.index(max(part)) for part in parts], spec
        else:
            got = page.value("[...output.querySelectorAll('ol')].map((list) => [...list.querySelectorAll('li')]"
                             ".map((item) => [Number(item.dataset.index), Number(item.dataset.value)]))")
            for shown, row in zip(got, rows, strict=True):
                powers = [math.exp(x - max(row)) for x in row]
                for index, value in shown:
                    wanted = powers[index] / sum(powers) if len(row) > 1 else row[0]
                    assert abs(value - wanted) < 2e-5, (spec, shown, row)

    # ------------------------------------------------------------------------------------------------ every page

    def all_pages(self):
        yield self.dates(), "3rd of May '97 and some more words"
        yield self.story(), "Once upon a time"
        yield self.small("similar", "pool mean l2", "segments 2"), "\n".join(TEXTS * 3)
        yield self.small("tagging", "classifier 4 rows"), TEXTS[3]

    def test_widths_and_colors(self):
        """A phone's width without scrolling sideways, light and dark; nothing in the console."""
        site = served.site(self.scratch)
        for folder, text in self.all_pages():
            for width, dark in ((320, False), (390, True), (1200, True)):
                with site.open(folder, width=width, dark=dark) as page:
                    page.ask(text)
                    inner = page.value("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
                    assert inner[0] == inner[1] <= width, "%s: %s" % (folder, inner)
                    color = page.value("getComputedStyle(document.documentElement).backgroundColor")
                    assert (int(re.search(r"\d+", color)[0]) > 128) != dark, folder

    def test_keyboard(self):
        with served.site(self.scratch).open(self.dates()) as page:
            page.browser_page.key("Tab", 9)
            assert page.value("document.activeElement.id") == "input"
            page.browser_page.type("1/2/1999")
            page.browser_page.key("Enter", 13, "\r")
            assert page.settled() == "1999-01-02"
            page.browser_page.key("Tab", 9)
            assert page.value("document.activeElement.id") == "run"
            assert page.value("input.labels.length") == 1

    def test_offline(self):
        """A page that has loaded needs no server."""
        site = served.Site(self.scratch)
        with site.open(self.dates()) as page:
            site.stop()
            assert page.ask("3rd of May '97") == "1997-05-03"

    def test_bad_weights(self):
        """A line on the page says what is wrong with its weights."""
        folder = self.dates()
        with open(folder + "/dates.attnw", "rb") as file:
            whole = file.read()
        damaged = bytearray(whole)
        damaged[len(whole) // 2] ^= 1
        other = self.path("other_dates.attn")
        with open(DATES + "/dates.attn", encoding="ascii") as file:
            self.path("other_dates.attn", file.read().replace("eps 1e-5", "eps 1e-6"))
        attnc("pack", other, "--weights", "random:1", "-o", self.path("other.attnw"), status=0)
        with open(self.path("other.attnw"), "rb") as file:
            another = file.read()
        assert len(another) == len(whole)
        for i, (bytes_, why) in enumerate(((whole[:-100], "is cut"), (b"", "is cut"), (whole + b"x", "another model"),
                            (another, "another model"), (bytes(damaged), "damaged"), (None, "404"))):
            copy = shutil.copytree(folder, self.path("bad%d" % i))
            os.remove(copy + "/dates.attnw")
            if bytes_ is not None:
                self.path("bad%d/dates.attnw" % i, bytes_)
            with served.site(self.scratch).open(copy, state="error", quiet=bytes_ is not None) as page:
                assert why in page.message() and "dates.attnw" in page.message(), page.message()
                assert page.value("run.disabled")

    def test_bad_tokenizer(self):
        folder, copy = self.dates(), self.path("bad_tokenizer")
        shutil.copytree(folder, copy)
        self.path("bad_tokenizer/tokenizer.json", "{}")
        with served.site(self.scratch).open(copy, state="error") as page:
            assert "tokenizer.json cannot be read" in page.message(), page.message()

    def test_times(self):
        """How long a page takes until it is ready, and until its first answer."""
        notes = []
        for query in ("", "?module=scalar"):
            with served.site(self.scratch).open(self.story() + query) as page:
                page.ask("Once upon a time")
                assert page.value("document.body.dataset.module") == ("scalar" if query else "simd")
                notes.append("%s: ready after %.0f ms, a first story of 210 tokens after %.0f ms more" % (
                    page.value("document.body.dataset.module"), float(page.value("document.body.dataset.loaded")),
                    float(page.value("document.body.dataset.time"))))
        print("".join("# %s\n" % note for note in notes), end="")

    def test_speed(self):
        """The module with SIMD against that without, on a decoder and on an encoder of integers."""
        need("node")
        folders = [self.story()] + ([] if QUICK else [self.minilm()])
        for folder in folders:
            self.as_module(folder)
            done = run("node", HERE + "/speed.mjs", folder, "3" if folder != folders[0] else "21", status=0)
            rounds = [[float(word) for word in line.split()] for line in done.stdout.splitlines()]
            simd, scalar = (statistics.median(times) for times in zip(*rounds))
            print("# %s: %.1f ms with SIMD, %.1f ms without, %.2f x" % (
                os.path.basename(folder), simd, scalar, scalar / simd))
            assert scalar >= 1.5 * simd, done.stdout


if __name__ == "__main__":
    sys.exit(run_tests("page", Pages))
