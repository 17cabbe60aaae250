#!/usr/bin/env python3
"""--tokenizer and --text of attnc run, generate, compare and map: the same as the ids of the text in files, names of
tokens beside maps, and what is wrong with a text. Speaks TAP."""
import json
import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import npy  # noqa: E402
from lib.attnc import TESTS, UNOPTIMIZED, attnc  # noqa: E402
from lib.tap import run_tests  # noqa: E402
from lib.words import END, START, TOKENIZER, VOCAB  # noqa: E402

ENCODER = """model reads { d_model 16, vocab %d, encoder { seq <= 12, position learned
    layers 2 { attention self { heads 2 }, ffn { d_ff 20, activation gelu } } }
    %s
    head pool mean l2 }
"""
DECODER = """model writes { d_model 16, vocab %d, start 35, decoder { seq <= 24, position learned
    layers 1 { attention self { heads 2, mask causal }, ffn { d_ff 20, activation gelu } } }
    head logits tied }
""" % VOCAB
BOTH = """model turns { d_model 16, vocab %d, start 3, end 36
    encoder { seq <= 12, position learned, layers 1 { attention self { heads 2 } } }
    decoder { seq <= 12, position learned
        layers 1 { attention self { heads 2, mask causal }, attention cross { heads 2 } } }
    head logits tied }
""" % VOCAB


class Texts:
    def __init__(self, scratch):
        self.scratch = scratch
        os.environ["CC"] = UNOPTIMIZED
        self.words = ["--weights", "random:3", "--tokenizer", self.path("tokenizer.json", json.dumps(TOKENIZER))]

    def path(self, name, content=None):
        path = os.path.join(self.scratch, name)
        if content is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(content)
        return path

    def encoder(self, rules=""):
        return self.path("reads.attn", ENCODER % (VOCAB, rules))

    def ids(self, name, rows):
        """--in of a sequence, or of sequences of one length."""
        many = isinstance(rows[0], list)
        flat = [number for row in rows for number in row] if many else rows
        shape = [len(rows), len(rows[0])] if many else [len(rows)]
        npy.write(self.path(name + ".npy"), flat, shape, "<i4")
        return ["--in", "%s=%s" % (name, self.path(name + ".npy"))]

    def ran(self, spec, output, *given):
        attnc("run", spec, *self.words, *given, "--engine", "interp", "--out", output + "=" + self.path("out.npy"),
              status=0)
        with open(self.path("out.npy"), "rb") as file:
            return file.read()

    def test_run(self):
        """One text, several of different lengths as a padded batch, and one after the spec's prompt."""
        spec = self.encoder()
        assert self.ran(spec, "hidden", "--text", "w3 w5") == self.ran(spec, "hidden", *self.ids(
            "tokens", [START, 3, 5, END]))
        batch = self.ids("tokens", [[START, 3, 5, END], [START, 4, END, 0]])
        mask = self.ids("attention_mask", [[1, 1, 1, 1], [1, 1, 1, 0]])
        for output in ("hidden", "pooled"):
            assert self.ran(spec, output, "--text", "w3 w5", "--text", "w4") == self.ran(spec, output, *batch, *mask)
        spec = self.encoder('text { prompt query "w9 ", default query }')
        assert self.ran(spec, "hidden", "--text", "w3") == self.ran(spec, "hidden", *self.ids(
            "tokens", [START, 9, 3, END]))

    def test_run_of_two(self):
        """A source, and what the decoder is fed with when it writes the target."""
        spec = self.path("turns.attn", BOTH)
        given = self.ids("source", [START, 4, 6, END]) + self.ids("target", [3, START, 7, 8])
        assert self.ran(spec, "logits", "--text", "w4 w6", "--target-text", "w7 w8") == self.ran(spec, "logits", *given)

    def test_generate(self):
        """The new text in place of ids, also as it comes; a prompt does not have what ends a text."""
        spec = self.path("writes.attn", DECODER)
        given = ["generate", spec, "--weights", "random:3", "--max-new", "6"]
        tokenizer = self.words[2:]
        for more in ([], ["--engine", "interp"], ["--beam", "3"]):
            ids = attnc(*given, *self.ids("tokens", [START, 3, 5]), *more, status=0).stdout.split()
            text = " ".join("w" + number for number in ids if int(number) not in (START, END)) + "\n"
            words = [*given, *tokenizer, "--text", "w3 w5", *more]
            assert len(ids) == 6 and attnc(*words, status=0).stdout == text, text
            assert attnc(*words, "--stream", status=0).stdout == text, text
        assert attnc(*given, *tokenizer, *self.ids("tokens", [START, 3, 5]), status=0).stdout.split()[-1] == "w" + (
            attnc(*given, *self.ids("tokens", [START, 3, 5]), status=0).stdout.split()[-1]), "ids in, a text out"
        spec = self.path("turns.attn", BOTH)
        given = ["generate", spec, "--weights", "random:3", "--max-new", "5", "--ignore-eos"]
        ids = attnc(*given, *self.ids("source", [START, 4, 6, END]), status=0).stdout.split()
        text = " ".join("w" + number for number in ids if int(number) not in (START, END)) + "\n"
        assert attnc(*given, *tokenizer, "--text", "w4 w6", status=0).stdout == text, text

    def test_compare(self):
        """The errors of both calls are the same; times are not."""
        spec = self.encoder()
        found = [json.loads(attnc("compare", spec, *self.words, *given, "--precision", "int8", "--json",
                                  status=0).stdout)["precisions"]
                 for given in (["--text", "w3 w5"], self.ids("tokens", [START, 3, 5, END]))]
        assert [one["outputs"] for one in found[0]] == [one["outputs"] for one in found[1]] and len(found[0]) == 1

    def test_map(self):
        """The symbols are the names of the tokens, also of ids, unless a file has labels."""
        def axes(*given):
            attnc("map", *given, *self.words, "--engine", "interp", "-o", self.path("page.html"), status=0)
            with open(self.path("page.html"), encoding="utf-8") as file:
                data = re.search(r'type="application/json">(.*?)</script>', file.read(), re.S)[1]
            return {axis["name"]: axis["labels"] for axis in json.loads(data)["axes"]}
        names = ["w35", "w3", "w5", "w36"]
        spec = self.encoder()
        assert axes(spec, "--text", "w3 w5") == {"tokens": names}
        assert axes(spec, *self.ids("tokens", [START, 3, 5, END])) == {"tokens": names}
        labels = ["--labels", self.path("labels.txt", "a\nb\nc\nd\n")]
        assert axes(spec, "--text", "w3 w5", *labels) == {"tokens": list("abcd")}
        assert axes(self.path("turns.attn", BOTH), "--text", "w4", "--target-text", "w7") == {
            "source": ["w35", "w4", "w36"], "target": ["w3", "w35", "w7"]}

    def test_refuses(self):
        spec, both = self.encoder(), self.path("turns.attn", BOTH)
        alone = os.path.join(TESTS, "differential", "alone_self.attn")
        out = ["--engine", "interp", "--out", "hidden=" + self.path("none.npy")]
        text, tokens = ["--text", "w3"], self.ids("tokens", [1])
        wide = self.path("wide.json", json.dumps({**TOKENIZER, "model": {
            **TOKENIZER["model"], "vocab": {"w%d" % i: i for i in range(50)}}}))
        for words, status, told in (
                ([spec, *self.words[:2], *text], 2, "`--text` needs `--tokenizer F`"),
                ([both, *self.words[:2], "--target-text", "w3"], 2, "`--target-text` needs `--tokenizer F`"),
                ([spec, *self.words, *text, *tokens], 2, "`--text` gives the input `tokens` already"),
                ([spec, *self.words, "--target-text", "w3"], 2, "reads has no target; give `--text`"),
                ([alone, *self.words, *text], 2, "`--tokenizer`: alone_self reads no text"),
                ([spec, *self.words, "--text", "w3 " * 11], 1,
                 "text 1 has 13 tokens, and the encoder reads at most 12"),
                ([both, *self.words, *text * 2, "--target-text", "w1", "--target-text", "w1 w2"], 1,
                 "the texts have different numbers of tokens, and only sources may"),
                ([spec, *self.words[:3], wide, *text], 1, "the tokenizer has 50 ids, and the model has rows for 37"),
                ([spec, *self.words[:3], self.path("bad.json", "{"), *text], 1, "bad.json"),
                ([spec, *self.words[:3], self.path("absent.json"), *text], 1, "absent.json"),
                ([spec, *self.words, *text, "--cc", "absent-cc"], 1, "`absent-cc` is not there")):
            shown = "attention.0=" if words[0] == alone else "logits=" if words[0] == both else "hidden="
            done = attnc("run", *words, *out[:3], shown + out[3].split("=")[1], status=status)
            assert told in done.stderr, (told, done.stderr)
        assert not os.path.exists(self.path("none.npy")), "something is written"


if __name__ == "__main__":
    sys.exit(run_tests("texts", Texts))
