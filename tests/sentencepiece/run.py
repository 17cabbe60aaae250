#!/usr/bin/env python3
"""Tokenizers that come as SentencePiece alone: attnc writes a tokenizer.json of each, which gives 10,000 texts the same
ids and decoded texts as sentencepiece or transformers (fixtures/*.crc, by make_models.py). Damaged files are refused.
Speaks TAP."""
import json
import os
import random
import shutil
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import folders  # noqa: E402
from lib.attnc import ATTNC, QUICK, run  # noqa: E402
from lib.tap import run_tests  # noqa: E402
from lib.tokenizer import encoder, framed  # noqa: E402

SPEC = """model tiny {
    d_model 8
    vocab 300000
    encoder {
        seq <= 16
        position learned
        layers 1 {
            attention self { heads 1, mask padding }
            ffn { d_ff 8, activation gelu }
        }
    }
    head pool mean l2
}
"""
SANITIZE = ["-std=c11", "-O1", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


class SentencePiece:
    def __init__(self, scratch):
        self.scratch = scratch
        self.fast, self.checked = (os.path.join(scratch, name) for name in ("encode", "encode_checked"))
        self.spec = folders.put(scratch, "tiny.attn", SPEC.encode())
        self.count = 0

    def folder(self):
        self.count += 1
        path = os.path.join(self.scratch, "folder%d" % self.count)
        os.mkdir(path)
        return path

    def convert(self, tokenizer, status=0):
        """Runs `attnc rust` with a tokenizer; the process, and the folder of the crate."""
        out = os.path.join(self.scratch, "crate")
        shutil.rmtree(out, ignore_errors=True)
        return run(ATTNC, "rust", self.spec, "--tokenizer", tokenizer, "-o", out, status=status), out

    def written(self, tokenizer):
        """The path of the tokenizer.json that attnc writes."""
        _, out = self.convert(tokenizer)
        found = [os.path.join(root, "tokenizer.json") for root, _, files in os.walk(out) if "tokenizer.json" in files]
        assert len(found) == 1, found
        return found[0]

    def answers(self, program, path, texts):
        done = run(program, path, input=framed([text.encode() for text in texts]), text=False, timeout=300, status=0)
        return done.stdout.decode().split("\n")[:-1]

    def refused(self, words, tokenizer, name=""):
        """One sentence with the file, and nothing written."""
        done, out = self.convert(tokenizer, status=1)
        said = done.stderr
        assert said.count("\n") == 1 and said.startswith("attnc: error: ") and words in said and name in said, said
        assert not os.path.exists(out) or not any(files for _, _, files in os.walk(out)), "half of it was written"

    def test_builds(self):
        encoder(self.fast, flags=("-std=c11", "-O2"))
        encoder(self.checked, "gcc", SANITIZE)

    def test_ids_and_texts(self):
        for case in folders.CASES:
            folder = self.folder()
            path = folders.write(case, folder)
            own = self.written(path if case in folders.PLAIN else folder)
            with open(folders.fixture(case + ".crc"), encoding="ascii") as file:
                expected = file.read().split()
            texts = folders.texts(case)[:1000 if QUICK else None]
            got = self.answers(self.fast, own, texts)
            sums = folders.blocks(got)
            assert len(got) == len(texts) and len(sums) == (125 if QUICK else len(expected)), case
            wrong = [i for i, own_sum in enumerate(sums) if own_sum != expected[i]]
            at = folders.BLOCK * wrong[0] if wrong else 0
            assert not wrong, "%s: %d of %d blocks of texts differ, the first from text %d on: %r" % (
                case, len(wrong), len(sums), at, texts[at:at + folders.BLOCK])
            assert self.answers(self.checked, own, texts[:200]) == got[:200], case + ": other ids under sanitizers"

    def test_long_texts(self):
        """A million characters that are one word, or none, take no square of that."""
        for case in ("unigram", "pairs_own", "pairs_bytes"):
            own = self.written(folders.write(case, self.folder()))
            for text in ("a" * 1000000, "#" * 100000, " " * 1000000, "\u4e01" * 100000, "\ufdfa" * 20000):
                assert len(self.answers(self.fast, own, [text])) == 1, case

    def marian(self, change=None, name="vocab.json"):
        folder = self.folder()
        folders.write("marian", folder)
        if change:
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                folders.put(folder, name, change(json.load(file)))
        return folder

    def test_bad_folders(self):
        def without(token):
            return lambda vocab: {name: i for name, i in vocab.items() if name != token}

        self.refused("it lacks the token `</s>`", self.marian(without("</s>")), "vocab.json")
        self.refused("it lacks the token `<unk>`", self.marian(without("<unk>")), "vocab.json")
        self.refused("it lacks the token `<pad>`", self.marian(without("<pad>")), "vocab.json")
        self.refused("pieces of source.spm, and belongs to another tokenizer",
                     self.marian(lambda vocab: {name: i for name, i in vocab.items() if i < 40 or name == "<pad>"}),
                     "vocab.json")
        self.refused("no whole number below", self.marian(lambda vocab: {**vocab, "x": 1 << 30}), "vocab.json")
        self.refused("no whole number below", self.marian(lambda vocab: {**vocab, "x": -1}), "vocab.json")
        self.refused("the id 1 stands there twice", self.marian(lambda vocab: {**vocab, "x": 1}), "vocab.json")
        self.refused("no object of names", self.marian(lambda vocab: [1]), "vocab.json")
        for words, more in (("`separate_vocabs` is true", {"separate_vocabs": True}),
                            ("class `Fancy`", {"tokenizer_class": "FancyTokenizer"}),
                            ("`pad_token` is no token", {"pad_token": 3})):
            self.refused(words, self.marian(lambda config, more=more: {**config, **more}, "tokenizer_config.json"))
        for name in ("vocab.json", "target.spm"):
            folder = self.marian()
            os.remove(os.path.join(folder, name))
            self.refused("there is no such file", folder, name)
        for case, words, more in (("m2m", "a language that the tokenizer lacks", {"src_lang": "xx"}),
                                  ("m2m", "neither \"m2m100\" nor", {"language_codes": "own"}),
                                  ("mbart", "a language that the tokenizer lacks", {"src_lang": "xx_XX"}),
                                  ("nllb", "a language that the tokenizer lacks", {"src_lang": "en"}),
                                  ("t5", "`extra_ids` is no number", {"extra_ids": -1}),
                                  ("albert", "`do_lower_case` is neither true nor false", {"do_lower_case": "yes"}),
                                  ("xlm_roberta", "reads pairs", {"tokenizer_class": "LlamaTokenizer"}),
                                  ("llama", "reads a unigram model", {"tokenizer_class": "T5Tokenizer"}),
                                  ("t5", "not <unk>, <s> and </s>", {"tokenizer_class": "XLMRobertaTokenizer"})):
            folder = self.folder()
            folders.write(case, folder)
            path = os.path.join(folder, "tokenizer_config.json")
            with open(path, encoding="utf-8") as file:
                folders.put(folder, "tokenizer_config.json", {**json.load(file), **more})
            if (case, "XLMRoberta") == ("t5", more.get("tokenizer_class", "")[:10]):
                first = folders.counted(1, folders.counted(1, b"zzq"))
                folders.put(folder, "spiece.model", first + folders.model("t5"))
            self.refused(words, folder)

    def test_bad_files(self):
        """Messages of protobuf that are no models, or are of kinds that are not read."""
        whole, number = folders.model("pairs_own"), folders.varint
        unigram = folders.model("unigram_bytes")

        def field(index, value):
            return number(index << 3) + number(value)

        def piece(text, *more):
            return folders.counted(1, folders.counted(1, text) + b"".join(more))
        long = b"\xff" * 9 + b"\x01"
        for words, data in (("it has no pieces", b""), ("it has no pieces", folders.counted(2, b"")),
                            ("how it was trained", piece(b"a")), ("a field has a number that there is not", b"\0"),
                            ("a field has a type that there is not", b"\x0b"), ("it ends inside a number", b"\x0a\x80"),
                            ("more than 64 bits", b"\x0a" + b"\xff" * 9 + b"\x02"),
                            ("more than 64 bits", b"\x0a" + b"\x80" * 12),
                            ("longer than what holds it", b"\x0a" + long),
                            ("longer than what holds it", b"\x0a\x05abc"), ("another type", b"\x08\x01"),
                            ("longer than what holds it", folders.counted(1, b"\x0a\x05abc") + folders.counted(2, b"")),
                            ("is empty", whole + piece(b"")), ("holds a NUL", whole + piece(b"a\0b")),
                            ("is not UTF-8", whole + piece(b"\xff")), ("stands there twice", whole + piece(b"the")),
                            ("no number", whole + piece(b"new", b"\x15" + struct.pack("<f", float("nan")))),
                            ("no number", whole + piece(b"new", b"\x15" + struct.pack("<f", float("-inf")))),
                            ("is of type 0", whole + piece(b"new", field(3, 9))),
                            ("two unknown pieces", whole + piece(b"new", field(3, 2))),
                            ("unused", whole + piece(b"new", field(3, 5))),
                            ("bytes without `byte_fallback`", whole + piece(b"<0x00>", field(3, 6))),
                            ("are not <0x00> to <0xFF>", unigram + piece(b"<0xZZ>", field(3, 6))),
                            ("no unknown piece", piece(b"a") + folders.counted(2, b"")),
                            ("not of 256", piece(b"a", field(3, 2)) + folders.counted(2, field(35, 1))),
                            ("of whole words", whole + folders.counted(2, field(3, 3))),
                            ("of whole characters", whole + folders.counted(2, field(3, 4))),
                            ("a type that is not known", whole + folders.counted(2, field(3, 77))),
                            ("treat_whitespace_as_suffix", whole + folders.counted(2, field(24, 1))),
                            ("denormalizer", whole + folders.counted(5, folders.counted(2, b"abc"))),
                            ("no model of SentencePiece", b"{}\n"), ("no model of SentencePiece", b"IQ== 0\nIg== 1\n"),
                            ("no model of SentencePiece", b"GGML" * 9)):
            self.refused(words, folders.put(self.scratch, "bad.model", data), "bad.model")
        path = folders.put(self.scratch, "table.model", whole + folders.counted(3, folders.counted(2, b"\5\0\0\0ab")))
        done = run(self.checked, self.written(path), input=b"", text=False, status=1)
        assert b"'precompiled_charsmap' is damaged" in done.stderr, done.stderr

    def test_cut_and_changed_files(self):
        """Cut at any byte or with bytes changed: refused in one line, or read as something else, and never a crash."""
        whole, draw = folders.model("pairs_own"), random.Random(2)
        for turn in range(12 if QUICK else 80):
            data = bytearray(whole)
            if turn % 2:
                del data[draw.randrange(len(data)):]
            for _ in range(0 if turn % 2 else 1 + turn // 4):
                data[draw.randrange(len(data))] = draw.randrange(256)
            path = folders.put(self.scratch, "cut.model", bytes(data))
            done, _ = self.convert(path, status=None)
            assert done.returncode in (0, 1), "turn %d: %d\n%s" % (turn, done.returncode, done.stderr)
            if done.returncode:
                assert done.stderr.count("\n") == 1 and "cut.model: " in done.stderr, done.stderr
                continue
            texts = folders.texts("pairs_own", 20)
            own = run(self.checked, self.written(path), input=framed([text.encode() for text in texts]), text=False)
            assert own.returncode in (0, 1), own.stderr.decode(errors="replace")[-2000:]

    def changed(self, case, more=None, files=None):
        """A folder of a case whose tokenizer_config.json has `more`, with these other files."""
        folder = self.folder()
        folders.write(case, folder)
        with open(os.path.join(folder, "tokenizer_config.json"), encoding="utf-8") as file:
            folders.put(folder, "tokenizer_config.json", {**json.load(file), **(more or {})})
        for name, content in (files or {}).items():
            folders.put(folder, name, content)
        return folder

    def ids(self, folder, text, *tokens):
        """The ids of a text; the ids of the tokens in tokenizer.json are checked first."""
        own = self.written(folder)
        with open(own, encoding="utf-8") as file:
            said = {token["content"]: token["id"] for token in json.load(file)["added_tokens"]}
        assert {name: said.get(name) for name, _ in tokens} == dict(tokens), said
        return [int(word) for word in self.answers(self.checked, own, [text])[0].split("\t")[0].split()]

    def test_new_tokens(self):
        """Tokens that are no pieces have the ids after the last name, as in transformers 5.24."""
        after = len(folders.pieces("pairs")) + 204  # one of fairseq, 202 codes, and <mask>
        first, second = ("tyv_Cyrl", after), ("<b>", after + 1)
        more = {"added_tokens_decoder": {str(after + 1): {"content": "<b>"},
                                         str(after): {"content": "tyv_Cyrl", "special": True}}, "src_lang": "tyv_Cyrl"}
        folder = self.changed("nllb", more)
        assert self.ids(folder, "<b>", first, second) == [after, after + 1, 2]
        spec = folders.put(self.scratch, "rows.attn", SPEC.replace("300000", str(after + 1)).encode())
        done = run(ATTNC, "rust", spec, "--tokenizer", folder, "-o", os.path.join(self.scratch, "few"), status=1)
        assert "the tokenizer has %d ids" % (after + 2) in done.stderr, done.stderr
        assert self.ids(self.changed("llama_legacy"), "[PAD]", ("[PAD]", 1000)) == [1, 1000, 2]
        both = ["<|im_start|>", "<|im_end|>"]
        for more, files in (({}, {"added_tokens.json": {both[1]: 1001, both[0]: 1000}}),
                            ({"additional_special_tokens": both}, {}), ({"extra_special_tokens": both}, {}),
                            ({"extra_special_tokens": {"one": both[0], "two": {"content": both[1]}}}, {}),
                            ({}, {"special_tokens_map.json": {"additional_special_tokens": both}})):
            got = self.ids(self.changed("llama", more, files), "a<|im_start|>b<|im_end|>", (both[0], 1000),
                           (both[1], 1001))
            assert got == [1, 271, 1000, 793, 1001], (more, files, got)
        for listed, expected in ((["<e>"], [19, 355, 3, 11, 3, 351, 1]),
                                 (["<e>", "<extra_id_3>"], [19, 355, 3, 11, 351, 1])):  # not the class's own
            folder = self.changed("t5", {"additional_special_tokens": listed})
            assert self.ids(folder, "a <e> b <extra_id_3>", ("<e>", 355)) == expected, listed
        for case in ("marian", "m2m"):
            count = len(folders.vocabulary(case, folders.CLASSES[case][1]))
            new = count + (108 if case == "m2m" else 0)  # 100 codes, and 8 words that are none
            folder = self.changed(case, {"added_tokens_decoder": {str(new): {"content": "<tag>"}}})
            got = self.ids(folder, "a<tag>b", ("<tag>", new))
            assert got == {"marian": [1, 728, 490, 1, 0], "m2m": [844, 805, 928, 802, 2]}[case], got

    def test_bad_tokens(self):
        def decoder(**tokens):
            return {"added_tokens_decoder": {key[1:]: {"content": text} for key, text in tokens.items()}}

        for words, case, more in (
                ("the id of the token `<a>` is 600, and in the tokenizer 1000", "llama",
                 decoder(_601="<b>", _600="<a>")),
                ("the id of the token `<b>` is 1002, and in the tokenizer 1001", "llama",
                 decoder(_1002="<b>", _1000="<a>")),
                ("the id of the token `</s>` is 1, and in the tokenizer 2", "xlm_roberta", decoder(_1="</s>")),
                ("`added_tokens_decoder` is no token", "t5", decoder(_1="")),
                ("`added_tokens_decoder` has an entry that is no id", "t5", decoder(_x1="a")),
                ("`added_tokens_decoder` has an entry that is no id", "t5", {"added_tokens_decoder": [1]})):
            self.refused(words, self.changed(case, more), "tokenizer_config.json")
        count = len(folders.vocabulary("m2m", "pairs"))
        for words, case, more in (
                ("the id of `<tag>` would be 3, which is the id of `", "marian", decoder(_3="<tag>")),
                ("the id of `<tag>` is not below", "marian", decoder(_99999999="<tag>")),
                ("the id of the token `</s>` is 7, and in the tokenizer 0", "marian", decoder(_7="</s>")),
                ("the id of `<tag>` would be %d, which is the id of `__ar__`" % (count + 2), "m2m",
                 decoder(**{"_%d" % (count + 2): "<tag>"}))):
            self.refused(words, self.changed(case, more), "tokenizer_config.json")
        for words, case, more, files, name in (
                ("the id of the token `<a>` is 999, and in the tokenizer 1000", "llama", {},
                 {"added_tokens.json": {"<a>": 999}}, "added_tokens.json"),
                ("`<a>` is no token with an id", "t5", {}, {"added_tokens.json": {"<a>": "1"}}, "added_tokens.json"),
                ("the id of `<a>` would be 5, which", "marian", {}, {"added_tokens.json": {"<a>": 5}},
                 "added_tokens.json"),
                ("it lacks the token `<a>` (`extra_special_tokens`)", "marian", {"extra_special_tokens": ["<a>"]}, {},
                 "vocab.json"),
                ("it lacks the token `<a>` (`additional_special_tokens`)", "m2m", {},
                 {"special_tokens_map.json": {"additional_special_tokens": ["<a>"]}}, "vocab.json"),
                ("`extra_special_tokens` is no list of tokens", "t5", {"extra_special_tokens": "<a>"}, {},
                 "tokenizer_config.json"),
                ("`extra_special_tokens` is no token", "t5", {"extra_special_tokens": [1]}, {}, "")):
            self.refused(words, self.changed(case, more, files), name)
        twice = folders.model("t5") + folders.counted(1, folders.counted(1, b"<extra_id_0>") + bytes([0x18, 4]))
        self.refused("it has a piece `<extra_id_0>`", self.changed("t5", files={"spiece.model": twice}), "spiece.model")
        self.written(self.changed("t5", {"extra_ids": 0}, {"spiece.model": twice}))
        vocab = folders.vocabulary("m2m", "pairs")
        vocab[max(vocab, key=vocab.get)] = count + 1
        self.refused("the id of `__am__` would be %d, which is the id of `" % (count + 1),
                     self.changed("m2m", files={"vocab.json": vocab}), "vocab.json")

    def test_cut_names(self):
        """A message shows the beginning of a long name, and cuts no character."""
        name = "a" + 100 * "é"
        shown = "a" + 29 * "é"
        twice = folders.model("t5") + 2 * folders.counted(1, folders.counted(1, name.encode()))
        for words, case, more, files, file in (
                ("the tokenizer's class `%s`;" % shown, "t5", {"tokenizer_class": name}, {}, ""),
                ('`src_lang` is "%s", a' % shown, "m2m", {"src_lang": name}, {}, "tokenizer_config.json"),
                ('`src_lang` is "%s", a' % shown, "nllb", {"src_lang": name}, {}, "tokenizer_config.json"),
                ("the piece `%s` stands there twice" % shown, "t5", {}, {"spiece.model": twice}, "spiece.model")):
            self.refused(words, self.changed(case, more, files), file)

    def used(self, folder):
        """What attnc says of a folder, its exit status, and what it uses of the machine."""
        words = [ATTNC, "rust", self.spec, "--tokenizer", folder, "-o", os.path.join(self.scratch, "many")]
        with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
            said = process.stderr.read()
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        return said, process.returncode, used

    def test_many_merges(self):
        """A model of 2 MB whose merges would have gigabytes is refused before they are made."""
        whole = folders.model("pairs_bytes") + b"".join(
            folders.counted(1, folders.counted(1, b"z" * size)) for size in range(2, 2000))
        folder = self.changed("llama", files={"tokenizer.model": whole})
        said, status, used = self.used(folder)
        assert status == 1 and "its tokenizer.json would be larger than 256 MB" in said, said
        assert used.ru_maxrss < 1500000, "%d KB of memory" % used.ru_maxrss

    def test_many_added_tokens(self):
        """The time that they take does not grow with the square of their number."""
        names = ["<tag_%d>" % i for i in range(20000)]
        folder = self.changed("llama", files={
            "added_tokens.json": {name: 1000 + i for i, name in enumerate(names)},
            "special_tokens_map.json": {"additional_special_tokens": names}})
        said, status, used = self.used(folder)
        assert status == 0, said
        assert used.ru_utime < 6, "%.1f seconds" % used.ru_utime

    def test_too_few_rows(self):
        spec = folders.put(self.scratch, "few.attn", SPEC.replace("300000", "100").encode())
        path = folders.write("pairs", self.folder())
        done = run(ATTNC, "rust", spec, "--tokenizer", path, "-o", os.path.join(self.scratch, "few"), status=1)
        assert "the tokenizer has" in done.stderr and "rows for 100" in done.stderr, done.stderr


if __name__ == "__main__":
    sys.exit(run_tests("sentencepiece", SentencePiece))
