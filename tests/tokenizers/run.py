#!/usr/bin/env python3
"""The tokenizer of the runtime: the ids of every kind for 10,000 texts, and the texts that they decode to, against
what the PyPI package `tokenizers` gave (fixtures/*.crc, by cases.py), and files that are damaged. Speaks TAP."""
import glob
import json
import os
import random
import re
import shutil
import struct
import sys
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import gguf_twins  # noqa: E402
import lines  # noqa: E402
from lib.attnc import QUICK, ROOT, run  # noqa: E402
from lib.tap import run_tests  # noqa: E402
from lib.tokenizer import encoder, framed  # noqa: E402

STRICT = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
SANITIZE = ["-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
BLOCK = 8  # texts to a checksum, as in cases.py
CAUGHT = 99  # exit status of a sanitizer's report


def fixture(name):
    return os.path.join(HERE, "fixtures", name)


def read_fixture(name):
    with open(fixture(name), encoding="utf-8") as file:
        return json.load(file)


def crc_of(answers):
    return "%08x" % zlib.crc32("\n".join(answers).encode())


class Tokenizers:
    def __init__(self, scratch):
        self.scratch = scratch
        self.fast, self.checked = (os.path.join(scratch, name) for name in ("encode", "encode_checked"))

    def path(self, name, content):
        path = os.path.join(self.scratch, name)
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        return path

    def run(self, program, path, texts, status=0):
        given = framed(texts)
        options = "exitcode=%d:allocator_may_return_null=1" % CAUGHT
        return run(program, path, input=given, text=False, timeout=120, status=status,
                   env={"ASAN_OPTIONS": options, "UBSAN_OPTIONS": options})

    def answers(self, program, path, texts):
        return self.run(program, path, texts).stdout.decode().split("\n")[:-1]

    def ids(self, path, text):
        return [int(word) for word in self.answers(self.checked, path, [text])[0].split("\t")[0].split()]

    def test_builds_strictly(self):
        for compiler, program, more in (("clang", self.fast, []), ("gcc", self.checked, SANITIZE)):
            assert shutil.which(compiler), compiler + " is missing"
            encoder(program, compiler, [*STRICT, *more])

    def test_page(self):
        """The program of docs/tokenizers.md is built and run as the page says, and prints what the page shows."""
        with open(os.path.join(ROOT, "docs", "tokenizers.md"), encoding="utf-8") as file:
            blocks = dict((kind, text) for kind, text in reversed(re.findall(r"^```(\w+)\n(.*?)^```$", file.read(),
                                                                              re.M | re.S)))
        self.path("words.c", blocks["c"])
        for name, folder in (("TOKENIZER", "runtime/tokenizer"), ("DIR", "examples/story/model")):
            os.symlink(os.path.join(ROOT, folder), os.path.join(self.scratch, name))
        shown = run("bash", "-euc", blocks["sh"], cwd=self.scratch, status=0).stdout
        assert shown == blocks["text"], shown
        for compiler in ("clang", "gcc"):
            run(compiler, *STRICT, "-ITOKENIZER", "-c", "words.c", "-o", "words.o", cwd=self.scratch, status=0)
        for words, status, why in ((["DIR"], 2, "usage"), (["DIR", "a"], 1, "DIR"), (["none", "a"], 1, "none")):
            done = run("./words", *words, cwd=self.scratch, status=status)
            assert why in done.stderr and not done.stdout, done.stderr

    def test_header_in_other_languages(self):
        """The header compiles as C++ and as C17, and needs no other before it."""
        for compiler, standard in (("clang++", "c++17"), ("g++", "c++20"), ("gcc", "c17"), ("clang", "c11")):
            kind = "c++" if "++" in standard else "c"
            run(compiler, "-std=" + standard, "-Wall", "-Wextra", "-pedantic", "-Werror", "-x", kind, "-fsyntax-only",
                "runtime/tokenizer/attn_tokenizer.h", status=0)

    def test_ids_and_texts_of_all_kinds(self):
        drawn, names = lines.lines(), sorted(glob.glob(fixture("*.crc")))
        assert len(names) == 14, "%d kinds" % len(names)
        for name in names:
            (path,) = (p for p in glob.glob(name[:-4] + ".*") if not p.endswith(".crc"))
            with open(name, encoding="ascii") as file:
                expected = file.read().split()
            assert len(expected) * BLOCK == len(drawn), name
            count = 2000 if QUICK else len(drawn)
            got = self.answers(self.fast, path, drawn[:count])
            assert len(got) == count, path
            wrong = [i for i in range(0, count, BLOCK) if crc_of(got[i:i + BLOCK]) != expected[i // BLOCK]]
            assert not wrong, "%s: %d of %d blocks of texts differ, the first from text %d on: %r" % (
                path, len(wrong), count // BLOCK, wrong[0], drawn[wrong[0]:wrong[0] + BLOCK])
            checked = self.answers(self.checked, path, drawn[:800])
            assert checked == got[:800], path + ": other ids under sanitizers"

    def test_pairs(self):
        """Ids and segments of pairs of texts, whole and truncated, as `tokenizers` gives them."""
        with open(os.path.join(HERE, "pairs.json"), encoding="utf-8") as file:
            pairs = json.load(file)
        texts = [text.encode() for text in pairs["texts"]]
        given = framed(texts)
        for case in pairs["cases"]:
            whole = {**read_fixture(case["file"]), "post_processor": case["post_processor"]}
            path = self.path("pairs_of.json", json.dumps(whole))
            done = run(self.checked, path, str(case["capacity"]), input=given, text=False, status=0)
            got = [[[int(word) for word in part.split()] for part in line.split("\t")]
                   for line in done.stdout.decode().split("\n")[:-1]]
            assert len(got) == len(texts) // 2
            for at, (mine, wanted) in enumerate(zip(got, case["answers"])):
                assert mine == wanted, "%s of %d: %s, not %s for %r" % (case["name"], case["capacity"], mine, wanted,
                                                                        pairs["texts"][2 * at:2 * at + 2])

    def test_rules(self):
        """Texts and pairs in lower case, and those that lose their beginning, as `tokenizers` gives them."""
        with open(os.path.join(HERE, "rules.json"), encoding="utf-8") as file:
            rules = json.load(file)
        given = framed(text.encode() for text in rules["texts"])
        for case in rules["cases"]:
            words = [fixture(case["file"]), str(case["capacity"]), str(case["rules"])]
            for kind, more in (("alone", ["alone"]), ("pairs", [])):
                done = run(self.checked, *words, *more, input=given, text=False, status=0)
                got = [[[int(word) for word in part.split()] for part in line.split("\t")]
                       for line in done.stdout.decode().split("\n")[:-1]]
                got = [ids for ids, in got] if kind == "alone" else got
                wrong = [at for at, (mine, wanted) in enumerate(zip(got, case[kind])) if mine != wanted]
                assert len(got) == len(case[kind]) and not wrong, "%s, %s: text %s is %s, not %s" % (
                    words, kind, wrong[:1], got[wrong[0]], case[kind][wrong[0]])
        done = run(self.checked, fixture("gpt2.json"), "9", "4", status=1)
        assert "a rule for texts that is not known here" in done.stderr, done.stderr

    def test_two_templates_of_pairs(self):
        """The last template holds: the texts stand once in what a pair becomes, within the room for it."""
        whole = read_fixture("bert_uncased.json")
        bert = {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]}
        roberta = {**bert, "type": "RobertaProcessing", "trim_offsets": True, "add_prefix_space": True}
        text = b"a text of some words "
        given = (struct.pack("<I", len(text) * 20) + text * 20) * 2
        answers = []
        for steps in ([bert, roberta, bert], [bert]):
            step = {"type": "Sequence", "processors": steps}
            path = self.path("twice.json", json.dumps({**whole, "post_processor": step}))
            answers.append(run(self.checked, path, "17", input=given, text=False, status=0).stdout)
        assert answers[0] == answers[1] and len(answers[0].split(b"\t")[0].split()) == 17, answers

    def test_bad_templates_of_pairs(self):
        whole = read_fixture("bert_uncased.json")
        first, second = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
        special = {"SpecialToken": {"id": "[SEP]", "type_id": 0}}
        for words, pair in (("lacks one of the two texts", [first, special]),
                            ("not known here", [first, second, first]),
                            ("not known here", [first, {"Sequence": {"id": "C", "type_id": 0}}]),
                            ("not known here", [first, {"Sequence": {"id": "B"}}]), ("not known here", [first, 1]),
                            ("has no ids", [first, second, {"SpecialToken": {"id": "[NO]", "type_id": 0}}])):
            self.refused(words, json.dumps({**whole, "post_processor": {**whole["post_processor"], "pair": pair}}))

    def test_strip_at_both_ends(self):
        """A token that is no more than what is stripped becomes empty, and not shorter than that."""
        path = self.path("strip.json", json.dumps({
            "model": {"type": "WordLevel", "vocab": {"a": 0, " ": 1, "b": 2, "  c  ": 3}, "unk_token": "a"},
            "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "Isolated", "invert": False},
            "decoder": {"type": "Strip", "content": " ", "start": 2, "stop": 1}}))
        assert self.answers(self.checked, path, [b"a b"]) == ["0 1 2\t6162"]

    def test_llama2c_as_its_program_does(self):
        """run.c's loop, as written: the pair of the best score, the leftmost of equals; scores are often equal here."""
        pieces = [b"<unk>", b"\n<s>\n", b"\n</s>\n"] + [b"<0x%02X>" % byte for byte in range(256)]
        pieces += [bytes([c]) for c in range(32, 127)] + ["é".encode(), "…".encode()]
        words = [b"th", b"he", b"the", b" t", b" th", b" the", b"in", b"ing", b"an", b"nd", b"and", b" a", b"aa",
                 b"aaa", b"aaaa", b"  ", b"    ", b"er", b"ere", b"re", b"ll", b"lll"]
        scores = [-1e6] * len(pieces) + [-float(i // 4) for i in range(len(words))]
        pieces += words
        vocab = {piece: i for i, piece in reversed(list(enumerate(pieces)))}
        data = struct.pack("<i", max(map(len, pieces)))
        data += b"".join(struct.pack("<fi", score, len(piece)) + piece for piece, score in zip(pieces, scores))
        path = self.path("ties.bin", data)

        def encode(text):
            ids = [vocab[b" "]] if text else []
            for char in text.decode("utf-8", "replace"):
                known = vocab.get(char.encode())
                ids += [known] if known is not None else [byte + 3 for byte in char.encode()]
            while True:
                best = max(((scores[vocab[pieces[a] + pieces[b]]], -i) for i, (a, b) in enumerate(zip(ids, ids[1:]))
                            if pieces[a] + pieces[b] in vocab), default=None)
                if best is None:
                    return [1] + ids
                at = -best[1]
                ids[at:at + 2] = [vocab[pieces[ids[at]] + pieces[ids[at + 1]]]]

        draw = random.Random(3)
        texts = [b"", b" ", "\N{SNOWMAN}".encode(), b"\xff"] + [
            "".join(draw.choice(["the", "ing", "a", "l", " ", "ere", "h", "é", "☃", "<s>",
                                 "n"]) for _ in range(14)).encode()
            for _ in range(300)]
        got = self.answers(self.checked, path, texts)
        for text, answer in zip(texts, got):
            assert answer.split("\t")[0] == " ".join(map(str, encode(text))), "%r: %s, not %s" % (text, answer,
                encode(text))

    def test_gguf_twins(self):
        """The tokenizer in the keys of a GGUF file gives what a tokenizer.json of the same meaning gives."""
        drawn = lines.lines()[:2000 if QUICK else 6000]
        for name, keys, twin in gguf_twins.twins():
            path = self.path(name + ".gguf", gguf_twins.pack(keys))
            expected = self.answers(self.fast, self.path(name + ".json", json.dumps(twin)), drawn)
            got = self.answers(self.fast, path, drawn)
            wrong = [i for i, (a, b) in enumerate(zip(got, expected)) if a != b]
            assert len(got) == len(drawn) and not wrong, "%s: %d texts differ, the first is %r: %s, not %s" % (
                name, len(wrong), drawn[wrong[0]], got[wrong[0]], expected[wrong[0]])
            assert self.answers(self.checked, path, drawn[:400]) == got[:400], name + ": other ids under sanitizers"

    def test_gguf_unigram(self):
        """The pieces of a GGUF file of T5 give the ids of the package `sentencepiece` (cases.py --pieces)."""
        with open(os.path.join(HERE, "pieces.json"), encoding="ascii") as file:
            sums = json.load(file)
        drawn = [lines.decoded(line).replace("\u2581", "").encode() for line in lines.lines(4000, seed=3)]
        for name, tidy in (("tidy", True), ("plain", False)):
            path = self.path(name + ".gguf", gguf_twins.pack(gguf_twins.unigram(tidy)))
            count = 1000 if QUICK else len(drawn)
            got = [answer.split("\t")[0] for answer in self.answers(self.fast, path, drawn[:count])]
            wrong = [i for i in range(0, count, BLOCK) if crc_of(got[i:i + BLOCK]) != sums[name][i // BLOCK]]
            assert len(got) == count and not wrong, "%s: %d of %d blocks of texts differ, the first from text %d" % (
                name, len(wrong), count // BLOCK, wrong[0])
            checked = self.answers(self.checked, path, drawn[:400])
            assert [answer.split("\t")[0] for answer in checked] == got[:400], name + ": other ids under sanitizers"

    def test_gguf_unigram_texts(self):
        """Tokens around a text, unknown characters, and the text of ids."""
        path = self.path("pieces.gguf", gguf_twins.pack(gguf_twins.unigram(True)))
        answers = [answer.split("\t") for answer in self.answers(self.checked, path, [
            b"", b"  ", b"the\n quick  ", "the \U00012345\U00012346".encode(), b"the</s>"])]
        the = answers[4][0].split()[0]
        assert answers[0] == answers[1] == ["2", ""], answers
        assert answers[2][1] == b"the quick".hex() and answers[4][0] == the + " 2 2", answers
        assert answers[3][0].split()[0] == the and answers[3][0].split()[-2:] == ["3", "2"], answers

    def test_gguf_with_tensors(self):
        """Only the part of a file that holds the keys is read, however large the rest."""
        _, keys, _ = next(gguf_twins.twins())
        path = self.path("large.gguf", gguf_twins.pack(keys))
        small = self.answers(self.fast, path, [b"a text"])
        with open(path, "r+b") as file:
            file.truncate(1 << 32)
        assert self.answers(self.fast, path, [b"a text"]) == small

    def test_bad_gguf(self):
        _, keys, _ = next(gguf_twins.twins())
        pre = "tokenizer.ggml."
        for words, key, value in (("none of llama, gpt2, bert and t5", "model", "rwkv"),
                                  ("none of llama", "model", None),
                                  ("no list 'tokenizer.ggml.tokens'", "tokens", None),
                                  ("no list 'tokenizer.ggml.tokens'", "tokens", [1, 2]),
                                  ("a number for each token", "token_type", [1]),
                                  ("a number for each token", "token_type", ["a"] * len(keys[pre + "tokens"])),
                                  ("'fancy' is not known", "pre", "fancy"), ("'' is not known", "pre", None),
                                  ("no list 'tokenizer.ggml.merges'", "merges", None),
                                  ("merge 0 is not of two", "merges", ["ab"]),
                                  ("merge 0 is not of two", "merges", ["a "]),
                                  ("merge 0 has a token that is not", "merges", ["nowhere a"]),
                                  ("stands there twice", "tokens", ["a"] * len(keys[pre + "tokens"])),
                                  ("token 0 is not UTF-8", "tokens", [b"\xff"] * len(keys[pre + "tokens"]))):
            self.refused(words, gguf_twins.pack({**keys, pre + key: value}))
        whole = gguf_twins.pack(keys)
        for data in (whole[:5], whole[:20], whole[:100], whole[:-40000], whole.replace(b"GGUF\3", b"GGUF\1", 1)):
            self.refused("its header is cut, or not of version 2 or 3", data)
        spm = {k: v for name, k, _ in gguf_twins.twins() if name == "llama2" for k, v in k.items()}
        self.refused("a score for each token", gguf_twins.pack({**spm, pre + "scores": [1.0]}))
        t5, count = gguf_twins.unigram(True), len(gguf_twins.unigram(True)[pre + "tokens"])
        for words, key, value in (("a score for each token", "scores", [1.0] * 3),
                                  ("a score for each token", "scores", [(5, 1)] * count),
                                  ("token 0 has a score that is not a number", "scores", [float("inf")] * count),
                                  ("no token of a text", "token_type", [(5, 3)] * count),
                                  ("'precompiled_charsmap' is damaged", "precompiled_charsmap", [(0, 1)] * 3),
                                  ("'precompiled_charsmap' is damaged", "precompiled_charsmap", [(0, 4)] * 6),
                                  ("is no list of bytes", "precompiled_charsmap", [4, 4])):
            self.refused(words, gguf_twins.pack({**t5, pre + key: value}))
        self.refused("that is not a number", gguf_twins.pack({
            **spm, pre + "scores": [float("nan")] * len(spm[pre + "tokens"])}))

    def test_long_texts(self):
        """A million characters that are one word, or none, take no square of that."""
        for name in ("gpt2.json", "llama2.json", "xlm_roberta.json", "bert_uncased.json", "clip.json"):
            for text in (b"a" * 1000000, b"ab" * 5000, b" " * 1000000, b"\n" * 10000, b"\xff" * 10000, b"\0" * 10000):
                assert len(self.answers(self.fast, fixture(name), [text])) == 1, name
        assert self.ids(fixture("bert_uncased.json"), b"a" * 10000) == [2, 1, 3], "a long word is [UNK]"

    def test_damaged_files(self):
        """Cut anywhere or with a byte changed: refused in one line, or read as something else, and never a crash."""
        draw, texts = random.Random(7), lines.lines(40, seed=9)
        for name in ("gpt2.json", "llama2c.bin", "xlm_roberta.json", "vocab.txt", "clip.json", "roberta.json"):
            with open(fixture(name), "rb") as file:
                whole = file.read()
            for turn in range(8 if QUICK else 24):
                data = bytearray(whole)
                if turn % 2:
                    del data[draw.randrange(len(data)):]
                for _ in range(0 if turn % 2 else 1 + turn):
                    data[draw.randrange(len(data))] = draw.choice(b'\0 "{}[],:0\\\xff' + bytes([draw.randrange(256)]))
                done = self.run(self.checked, self.path("damaged", bytes(data)), texts, status=None)
                said = done.stderr.decode(errors="replace")
                assert done.returncode in (0, 1), "%s: exit status %d\n%s" % (name, done.returncode, said[-2000:])
                if done.returncode == 1:
                    assert said.count("\n") == 1 and said.startswith("encode: "), said

    def refused(self, words, content):
        done = self.run(self.checked, self.path("refused.json", content), [], status=1)
        said = done.stderr.decode()
        assert words in said and said.count("\n") == 1, "%r does not say %r" % (said, words)

    def changed(self, name, change):
        data = read_fixture(name)
        change(data)
        return json.dumps(data)

    def test_what_is_not_known_is_refused(self):
        def put(path, value):
            def change(data):
                for key in path[:-1]:
                    data = data[key]
                data[path[-1]] = value
            return change

        gpt2, xlm = "gpt2.json", "xlm_roberta.json"
        for words, name, path, value in (
                ("the model 'Magic' is not known", gpt2, ["model", "type"], "Magic"),
                ("'dropout'", gpt2, ["model", "dropout"], 0.1),
                ("merge 3 has a token that is not in", gpt2, ["model", "merges", 3], ["nowhere", "a"]),
                ("merge 0 is not of two tokens", gpt2, ["model", "merges", 0], "a b c"),
                ("merge 0 is not of two tokens", gpt2, ["model", "merges", 0], 7),
                ("has no 'merges'", gpt2, ["model", "merges"], None),
                ("has no id", gpt2, ["model", "vocab", "new"], -1),
                ("has no id", gpt2, ["model", "vocab", "new"], 1.5),
                ("has no id", gpt2, ["model", "vocab", "new"], 1e9),
                ("no 'vocab' of names", gpt2, ["model", "vocab"], []),
                ("the unknown token 'none'", gpt2, ["model", "unk_token"], "none"),
                ("the pre-tokenizer 'UnicodeScripts'", gpt2, ["pre_tokenizer"], {"type": "UnicodeScripts"}),
                ("a pre-tokenizer without a 'type'", gpt2, ["pre_tokenizer"], {}),
                ("without 'pretokenizers'", gpt2, ["pre_tokenizer"], {"type": "Sequence"}),
                ("the normalizer 'Other'", gpt2, ["normalizer"], {"type": "Other"}),
                ("the decoder 'CTC'", gpt2, ["decoder"], {"type": "CTC"}),
                ("the post-processor 'Other'", gpt2, ["post_processor"], {"type": "Other"}),
                ("an added token without", gpt2, ["added_tokens", 0, "content"], ""),
                ("the regular expression '(a'", gpt2, ["pre_tokenizer"],
                 {"type": "Split", "pattern": {"Regex": "(a"}, "behavior": "Isolated", "invert": False}),
                ("'behavior' 'Maybe'", gpt2, ["pre_tokenizer"],
                 {"type": "Split", "pattern": {"String": "a"}, "behavior": "Maybe", "invert": False}),
                ("neither 'String' nor 'Regex'", gpt2, ["normalizer"],
                 {"type": "Replace", "pattern": {}, "content": ""}),
                ("'precompiled_charsmap' is damaged", gpt2, ["normalizer"],
                 {"type": "Precompiled", "precompiled_charsmap": "AAA"}),
                ("'precompiled_charsmap' is damaged", gpt2, ["normalizer"],
                 {"type": "Precompiled", "precompiled_charsmap": "////////"}),
                ("'unk_id' is not in the vocabulary", xlm, ["model", "unk_id"], 10000000),
                ("entry 5 of 'vocab'", xlm, ["model", "vocab", 5], ["x"]),
                ("'replacement' is not one character", xlm, ["pre_tokenizer", "replacement"], "ab"),
                ("'prepend_scheme' 'often'", xlm, ["pre_tokenizer", "prepend_scheme"], "often"),
                ("has no ids", xlm, ["post_processor", "special_tokens"], {}),
                ("has a part", xlm, ["post_processor", "single", 0], {"Other": {}}),
                ("this is no tokenizer.json", xlm, ["model"], None)):
            self.refused(words, self.changed(name, put(path, value)))
        for words, content in (("no JSON", '{"model": '), ("a NUL", '{"model": "\\u0000"}'),
                               ("not UTF-8", b'{"\xff": 1}'),
                               ("fewer than the bytes", struct.pack("<ifi", 1, 0.0, 1) + b"a"),
                               ("ends inside token", struct.pack("<ifi", 1, 0.0, 1) + b"abc"),
                               ("a length of", struct.pack("<ifi", 1, 0.0, 1 << 20) + b"abc")):
            self.refused(words, content)

    def test_a_pattern_without_end(self):
        """An expression that backtracks for ages gives an error, not a hang."""
        evil = {"type": "Split", "pattern": {"Regex": "(a|aa)+$"}, "behavior": "Isolated", "invert": False}
        content = self.changed("gpt2.json", lambda data: data.update(pre_tokenizer=evil))
        answers = self.answers(self.fast, self.path("evil.json", content), [b"a" * 100 + b"b"])
        assert answers == ["the tokenizer's regular expression takes too long for this text\t"], answers

    def test_added_tokens_of_all_kinds(self):
        """The ids and texts of `tokenizers`, for random added tokens (cases.py --added)."""
        with open(os.path.join(HERE, "added.json"), encoding="utf-8") as file:
            added = json.load(file)
        assert len(added["cases"]) > 80
        for case in added["cases"]:
            path = self.path("added_of.json", json.dumps(case["tokenizer"]))
            got = self.answers(self.checked, path, [text.encode() for text in added["texts"]])
            for text, mine, wanted in zip(added["texts"], got, case["answers"], strict=True):
                assert wanted in (None, crc_of([mine])), "%s: %r: %s" % (case["name"], text, mine)

    def test_decoders(self):
        """The texts of `tokenizers` for random decoders (cases.py --decoders), and the parts in which a stream gives
        them: none ends inside a character, and encode.c compares them with the whole."""
        with open(os.path.join(HERE, "decoders.json"), encoding="utf-8") as file:
            cases = json.load(file)
        assert len(cases) >= 100
        for case in cases:
            path = self.path("decoders_of.json", json.dumps(case["tokenizer"]))
            lists = [struct.pack("<%di" % len(ids), *ids) for ids, _ in case["answers"]]
            given = framed(lists)
            done = run(self.checked, path, "ids", input=given, text=False, status=0).stdout.decode().split("\n")[:-1]
            for (ids, wanted), line in zip(case["answers"], done, strict=True):
                whole, parts = line.split("\t")
                if wanted is None:
                    continue
                assert bytes.fromhex(whole).decode() == wanted, (case["tokenizer"]["decoder"], ids, whole, wanted)
                assert "".join(bytes.fromhex(part).decode() for part in parts.split(",")) == wanted, parts

    def parts(self, path, ids):
        given = struct.pack("<I%di" % len(ids), 4 * len(ids), *ids)
        done = run(self.checked, path, "ids", input=given, text=False, status=0).stdout.decode()
        return [bytes.fromhex(part).decode() for part in done.split("\t")[1].split(",")[:-1]]

    def test_streams_keep_little_back(self):
        """A word comes with its token, a character with its last byte."""
        llama, gpt2, bert = (fixture(name + ".json") for name in ("llama2", "gpt2", "bert_uncased"))
        parts = self.parts(llama, self.ids(llama, "a b \U00012345c".encode()))
        assert parts == ["", "a", " b", " ", "", "", "", "", "\U00012345c", ""], parts
        ids = self.ids(gpt2, "x\U00012345y".encode())
        assert self.parts(gpt2, ids) == ["x", *[""] * (len(ids) - 3), "\U00012345", "y", ""]
        assert self.parts(gpt2, ids[:-2])[-1] == "\ufffd"
        assert self.parts(bert, self.ids(bert, b"the quick fox")[1:-1])[-1] == ""

    def test_around(self):
        """The tokens around a text, and whether encoding puts them there: of a GGUF file by its keys, or by llama.cpp's
        rules without them."""
        cases = [(fixture(name), around) for name, around in (
            ("llama2.json", "1\t"), ("gpt2.json", "\t"), ("llama3.json", "0\t"), ("bert_uncased.json", "2\t3"),
            ("roberta.json", "0\t2"), ("xlm_roberta.json", "0\t2"), ("llama2c.bin", "1\t"), ("vocab.txt", "2\t3"))]
        twins = {name: keys for name, keys, _ in gguf_twins.twins()}
        pre, absent = "tokenizer.ggml.", (None, None)
        for name, added, around in (("llama2", absent, "1\t"), ("llama2", (False, True), "\t2"),
                                    ("gpt2", absent, "\t"), ("gpt2", (True, None), "0\t"), ("qwen2", absent, "\t"),
                                    ("qwen2", (True, True), "0\t1"), ("llama-bpe", absent, "0\t"),
                                    ("llama-bpe", (False, False), "\t"), ("tekken", absent, "0\t"),
                                    ("bert", absent, "2\t3"), ("t5", absent, "\t2"), ("t5", (None, False), "\t"),
                                    ("gemma", absent, "1\t"), ("gemma", (False, None), "\t")):
            keys = gguf_twins.unigram(True) if name == "t5" else twins["llama2" if name == "gemma" else name]
            keys = {**keys, pre + "add_bos_token": added[0], pre + "add_eos_token": added[1]}
            if name == "gemma":
                keys[pre + "add_space_prefix"] = False
            cases.append((self.path("%s %s.gguf" % (name, added), gguf_twins.pack(keys)), around))
        for path, around in cases:
            got = run(self.checked, path, "around", status=0).stdout
            assert got == around + "\n", "%s: %r" % (path, got)
            ids = self.ids(path, b"a")
            before, after = ([int(word) for word in part.split()] for part in around.split("\t"))
            assert ids[:len(before)] == before and ids[len(ids) - len(after):] == after, (path, ids)
            assert len(ids) > len(before) + len(after), (path, ids)

    def test_ids_of_added_tokens(self):
        """Those of the vocabulary, or one more than the last; two names of one id, or one text of two, are refused."""
        vocab = {"a": 0, "b": 1, "c": 5}
        whole = {"model": {"type": "WordLevel", "vocab": vocab, "unk_token": "a"}, "added_tokens": [
            {"content": name, "id": i, "normalized": True} for name, i in (("X", 9), ("Y", 4), ("b", 7), ("X", 8))]}
        path = self.path("ids.json", json.dumps(whole))
        assert self.answers(self.checked, path, [b"XYbX"]) == ["3 4 1 3\t" + b"X Y b X".hex()]
        self.refused("the tokens 'c' and 'd' have the same id, 5", json.dumps({
            **whole, "model": {**whole["model"], "vocab": {**vocab, "d": 5}}}))
        self.refused("the added tokens 'X' and 'x' become the same text", json.dumps({
            **whole, "normalizer": {"type": "Lowercase"},
            "added_tokens": [{"content": name, "id": 3} for name in "Xx"]}))

    def test_empty_matches(self):
        """Expressions that match nothing wide, in splits and in replacements (cases.py --empty)."""
        with open(os.path.join(HERE, "empty.json"), encoding="utf-8") as file:
            empty = json.load(file)
        for case in empty["cases"]:
            answers = case.pop("answers")
            path = self.path("empty_of.json", json.dumps({"model": empty["model"], **case}))
            got = self.answers(self.checked, path, [text.encode() for text in empty["texts"]])
            assert [line.split("\t")[0] for line in got] == answers, case

    def test_limits(self):
        """Steps that make a text ever longer, and expressions that never end, give an error after a short time."""
        def split(regex):
            return {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}

        def replace(pattern, content, times):
            return [{"type": "Replace", "pattern": pattern, "content": content}] * times

        bare = {"model": {"type": "WordLevel", "vocab": {"a": 0, "b": 1}, "unk_token": "b"}}
        plain = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}
        long, late = "the steps of the tokenizer make this text more", "the tokenizer's regular expression takes"
        twice, sequence = replace({"String": "a"}, "aa", 40), {"type": "Sequence"}
        for words, steps, text in (
                (long, {"normalizer": {**sequence, "normalizers": twice}}, b"a b a"),
                (long, {"normalizer": {**sequence, "normalizers": replace({"Regex": "a"}, "aa", 40)}}, b"a b a"),
                (long, {"normalizer": {"type": "Prepend", "prepend": "x" * 60000}, "added_tokens": [
                    {"content": "<m>", "id": 2, "normalized": False}]}, b"<m>a" * 9000),
                (long, {"normalizer": replace({"String": "a"}, "x" * 100000, 1)[0]}, b"a" * 100000),
                (long, {"pre_tokenizer": {**sequence, "pretokenizers": [plain] * 40}}, "é".encode()),
                (late, {"pre_tokenizer": split("(a+)+$")}, b"a" * 46000 + b"b"),
                (late, {"normalizer": replace({"Regex": "(a|aa)+$"}, "", 1)[0]}, b"a" * 1000 + b"b"),
                (late, {"pre_tokenizer": split("(?>a*)b|a")}, b"a" * 1000000)):
            path = self.path("limits.json", json.dumps({**bare, **steps}))
            (answer,) = self.answers(self.fast, path, [text])
            assert answer.startswith(words), (list(steps), answer[:100])
        for steps in (twice, [{"type": "Fuse"}, *replace({"Regex": "a"}, "aa", 40)]):
            path = self.path("limits.json", json.dumps({**bare, "decoder": {**sequence, "decoders": steps}}))
            ids = struct.pack("<I2i", 8, 0, 0)
            assert run(self.checked, path, "ids", input=ids, text=False, status=0).stdout.startswith(b"none\t")
        self.refused("more than 256 steps", json.dumps({**bare, "decoder": {**sequence, "decoders": twice * 7}}))
        self.refused("the added token 'a'", json.dumps({**bare, "normalizer": {**sequence, "normalizers": twice},
                                                        "added_tokens": [{"content": "a", "id": 0}]}))
        path = self.path("limits.json", json.dumps({**bare, "added_tokens": [
            {"content": "<x%d>" % i, "id": i, "normalized": False, "rstrip": True} for i in range(50000)]}))
        (answer,) = self.answers(self.fast, path, [b"<x5>\n<x" * 50000])
        assert len(answer.split("\t")[0].split()) == 100000, answer[:100]

    def test_long_searches(self):
        """What a long text gives is what its parts give: beyond 32 KiB each place of a text is tried alone."""
        for name in ("gpt2.json", "llama3.json", "clip.json"):
            word = b"word " * 20 + b"1234 caf\xc3\xa9's!\n"
            around = run(self.checked, fixture(name), "around", status=0).stdout.split("\t")
            n, m = (len(part.split()) for part in around)
            alone, many = (ids[n:len(ids) - m] for ids in (self.ids(fixture(name), word),
                                                           self.ids(fixture(name), word * 1000)))
            assert len(alone) > 20 and many == alone * 1000, name

    def test_added_tokens(self):
        """Where `lstrip`, `rstrip`, `single_word` and `normalized` hold, and which of two beginnings is the longer."""
        data = read_fixture("bert_uncased.json")
        more = [("[A]", {"lstrip": True}), ("[AB]", {"rstrip": True}), ("mix", {"single_word": True}),
                ("ÀB", {"normalized": True, "special": False})]
        new = len(data["model"]["vocab"])
        for i, (content, how) in enumerate(more):
            data["added_tokens"].append({"id": new + i, "content": content, "single_word": False, "lstrip": False,
                                         "rstrip": False, "normalized": False, "special": True, **how})
        path = self.path("added.json", json.dumps(data))
        x = self.ids(path, b"x")[1:-1]
        for text, expected in (("x  [A]x", x + [new] + x), ("[AB]  x", [new + 1] + x), ("[A][AB]", [new, new + 1]),
                               ("x mix x", x + [new + 2] + x), ("mix", [new + 2]), ("xàbx", x + [new + 3] + x),
                               ("AB", [new + 3])):
            got = self.ids(path, text.encode())
            assert got == [2] + expected + [3], "%r: %s, not %s" % (text, got, expected)
        assert new + 2 not in self.ids(path, b"mixx") + self.ids(path, b"_mix"), "a part of a word"


if __name__ == "__main__":
    sys.exit(run_tests("tokenizers", Tokenizers))
