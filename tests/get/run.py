#!/usr/bin/env python3
"""attnc get: the program of each task, of folders and of GGUF files, prints what attnc run and attnc generate compute
of the same ids; what has no program, and what is wrong, is refused and leaves nothing behind. TAP on stdout."""
import array
import json
import math
import os
import random
import re
import shutil
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import gguf, npy, safetensors  # noqa: E402
from lib.attnc import CANNOT, LONG, ROOT, TESTS, attnc, run  # noqa: E402
from lib.tap import run_tests  # noqa: E402
from lib.words import END, START, TOKENIZER, VOCAB  # noqa: E402
from drawing import Drawing  # noqa: E402
from fixtures import copied  # noqa: E402
from parity import gguf as models  # noqa: E402

STRICT = "CFLAGS=%s -Wall -Wextra -Wconversion -Wshadow -Werror -Wno-unused-function" % ("-O1" if LONG else "-O0")
PLAIN = {**TOKENIZER, "post_processor": None}


def around(*ids):
    return [START, *ids, END]


class Get(Drawing):
    def __init__(self, scratch):
        self.scratch = scratch

    def path(self, *names):
        return os.path.join(self.scratch, *names)

    def folder(self, name, model, tokenizer=TOKENIZER, **config):
        """A copy of a small model of tests/parity, with this tokenizer and these keys of the config."""
        folder = self.path(name)
        whole = {**copied(model, folder), **config}
        for name_of, content in (("config.json", whole), ("tokenizer.json", tokenizer)):
            if content is not None:
                with open(os.path.join(folder, name_of), "w", encoding="utf-8") as file:
                    json.dump(content, file)
        return folder

    def write(self, folder, name, content):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump(content, file)

    def get(self, folder, *options, status=0):
        """Writes the program of a folder, and builds it without any warning; what attnc said, and the program."""
        to = folder + ".out"
        done = attnc("get", folder, "-o", to, "--no-build", *options, status=status)
        if status:
            assert not os.path.exists(to), os.listdir(to)
            return done.stderr
        self.to = to
        run("make", "-s", "-C", to, STRICT, status=0)
        (spec,) = (name for name in os.listdir(to) if name.endswith(".attn"))
        self.program, self.spec, self.weights = (os.path.join(to, spec[:-5] + end) for end in ("", ".attn", ".attnw"))
        return done.stderr

    def lines(self, *texts, given=None, status=0):
        return run(self.program, *texts, input=given if given is not None else "", status=status).stdout.splitlines()

    def output(self, name, ids, **more):
        """What attnc run computes of the program's spec and weights."""
        arguments, to = [], self.path("out.npy")
        for key, numbers in {"tokens": ids, **more}.items():
            npy.write(self.path(key + ".npy"), numbers)
            arguments += ["--in", "%s=%s" % (key, self.path(key + ".npy"))]
        attnc("run", self.spec, "--weights", self.weights, *arguments, "--out", name + "=" + to, "--engine", "interp",
              status=0)
        return list(npy.read(to)[-1])

    def generated(self, most, ids, source=None):
        npy.write(self.path("ids.npy"), ids)
        arguments = ["--in", "tokens=" + self.path("ids.npy")]
        if source is not None:
            npy.write(self.path("source.npy"), source)
            arguments += ["--in", "source=" + self.path("source.npy")]
        attnc("generate", self.spec, "--weights", self.weights, *arguments, "--max-new", str(most), "--out",
              "tokens=" + self.path("new.npy"), "--engine", "interp", status=0)
        return list(npy.read(self.path("new.npy"))[-1])

    def near(self, got, wanted, by=1e-4):
        assert len(got) == len(wanted), (len(got), len(wanted))
        worst = max(abs(a - b) for a, b in zip(got, wanted))
        assert worst <= by * (1 + max(map(abs, wanted))), "off by %g: %s, not %s" % (worst, got[:4], wanted[:4])

    def test_embeds(self):
        self.get(self.folder("embeds", "bert_one_head"))
        first, second = self.lines("w3 w5", "w7")
        self.near(json.loads(first), self.output("pooled", around(3, 5)))
        self.near(json.loads(second), self.output("pooled", around(7)))
        assert self.lines(given="w3 w5\r\nw7") == [first, second], "lines and arguments differ"
        assert len(json.loads(self.lines(" ".join(["w3"] * 100))[0])) == len(json.loads(first)), "a long text"

    def test_example_of_a_vector(self):
        """The example of a program that was built shows the first numbers of a long vector."""
        folder = self.folder("shows", "distilbert_odd")
        done = attnc("get", folder, "-o", self.path("shown"), status=0)
        shown = done.stdout.splitlines()[-1]
        count = re.fullmatch(r"\[(?:[-\d.e]+, ?){4}\u2026 (\d+) numbers\]", shown)
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
            assert count and int(count[1]) == json.load(file)["dim"], shown

    def test_embeds_without_a_head(self):
        said = self.get(self.folder("pools", "distilbert_odd"))
        assert "head pool mean l2" in said, said
        vector = json.loads(self.lines("w3 w5 w7")[0])
        self.near([sum(x * x for x in vector)], [1])
        self.near(vector, self.output("pooled", around(3, 5, 7)))

    def test_embeds_with_a_prompt(self):
        folder = self.folder("prompts", "distilbert_odd")
        os.makedirs(os.path.join(folder, "1_Pooling"))
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
            width = json.load(file)["dim"]
        modules = [{"idx": i, "name": str(i), "path": path, "type": "sentence_transformers.models." + kind}
                   for i, (path, kind) in enumerate([("", "Transformer"), ("1_Pooling", "Pooling")])]
        for name, content in (
                ("modules.json", modules),
                ("1_Pooling/config.json", {"word_embedding_dimension": width, "pooling_mode_mean_tokens": True}),
                ("config_sentence_transformers.json", {"prompts": {"query": "w9 \"w1\" "},
                                                       "default_prompt_name": "query"})):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                json.dump(content, file)
        self.get(folder)
        self.near(json.loads(self.lines("w3")[0]), self.output("pooled", around(9, 1, 3)))

    def test_embeds_in_lower_case(self):
        """do_lower_case concerns a tokenizer that keeps capitals, but no name of a token in the text."""
        words = {"W9" if word == "w9" else word: i for word, i in TOKENIZER["model"]["vocab"].items()}
        model = {**TOKENIZER["model"], "vocab": words}
        folder = self.folder("lowers", "distilbert_odd", {**TOKENIZER, "model": model, "added_tokens": [
            {"id": 9, "content": "W9", "special": True, "normalized": False, "single_word": False, "lstrip": False,
             "rstrip": False}]})
        self.write(folder, "modules.json", [{"idx": 0, "name": "0", "path": "",
                                             "type": "sentence_transformers.models.Transformer"}])
        self.write(folder, "sentence_bert_config.json", {"max_seq_length": 8, "do_lower_case": True})
        self.get(folder)
        self.near(json.loads(self.lines("W3 w5 W9 W7")[0]), self.output("pooled", around(3, 5, 9, 7)))

    def test_texts_that_lose_their_beginning(self):
        folder = self.folder("left", "bert_classifier")
        self.write(folder, "tokenizer_config.json", {"truncation_side": "left", "model_max_length": 7})
        self.get(folder)
        for text, ids, segments in (("w1 w2 w3 w4 w5 w6 w7", around(3, 4, 5, 6, 7), [0] * 7),
                                    ("w1 w2 w3\tw4 w5 w6", [START, 2, 3, END, 5, 6, END], [0] * 4 + [1] * 3)):
            logits = self.output("logits", ids, segments=segments)
            wanted = max(logits) - math.log(sum(math.exp(x) for x in logits))
            self.near([math.log(float(self.lines(text)[0].split("\t")[1]))], [wanted])

    def test_embeds_by_dense_modules(self):
        folder = self.folder("dense", "distilbert_odd")
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
            width = json.load(file)["dim"]
        kinds = ["Transformer", "Pooling", "Dense", "Dense", "Normalize"]
        paths = [""] + ["%d_%s" % pair for pair in enumerate(kinds)][1:]
        contents = {"modules.json": [{"idx": i, "name": str(i), "path": path,
                                      "type": "sentence_transformers.models." + kind}
                                     for i, (path, kind) in enumerate(zip(paths, kinds))],
                    "1_Pooling/config.json": {"word_embedding_dimension": width, "pooling_mode_mean_tokens": True}}
        for i, (rows, columns) in enumerate(((9, width), (4, 9)), 2):
            contents["%d_Dense/config.json" % i] = {
                "in_features": columns, "out_features": rows, "bias": False,
                "activation_function": "torch.nn.modules.linear.Identity"}
        for name, content in contents.items():
            os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                json.dump(content, file)
        for i, (rows, columns) in enumerate(((9, width), (4, 9)), 2):
            numbers = [math.sin(7.0 * i + k) for k in range(rows * columns)]
            safetensors.write(os.path.join(folder, "%d_Dense/model.safetensors" % i),
                              {"linear.weight": ((rows, columns), numbers)})
        said = self.get(folder)
        assert "dense.1=%s/3_Dense/model.safetensors" % folder in said, said
        vector, before = json.loads(self.lines("w3 w5 w7")[0]), self.output("hidden", around(3, 5, 7))
        whole = self.output("pooled", around(3, 5, 7))
        self.weights = folder  # whose modules are found by themselves
        self.near(self.output("pooled", around(3, 5, 7)), whole, 0)
        modules = contents["modules.json"]
        for path in ("../x", "4_Dense"):
            self.write(folder, "modules.json", [*modules[:3], {**modules[3], "path": path}])
            said = attnc("run", self.spec, "--weights", folder, "--in", "tokens=" + self.path("tokens.npy"), "--out",
                         "pooled=" + self.path("out.npy"), status=1).stderr
            assert "modules.json" in said and path in said, said
        row = [sum(before[c::width]) / (len(before) // width) for c in range(width)]
        for i, (rows, columns) in enumerate(((9, width), (4, 9)), 2):
            row = [sum(math.sin(7.0 * i + r * columns + c) * row[c] for c in range(columns)) for r in range(rows)]
        length = math.sqrt(sum(x * x for x in row))
        self.near(vector, [x / length for x in row])

    def test_classifies(self):
        names = {"0": "good \"??=", "1": "b\u00e4d", "2": "none"}
        self.get(self.folder("classifies", "bert_classifier", id2label=names))
        for text, ids, segments in (("w3 w5", around(3, 5), [0] * 4),
                                    ("w3 w5\tw7 w8", [START, 3, 5, END, 7, 8, END], [0] * 4 + [1] * 3)):
            logits = self.output("logits", ids, segments=segments)
            best = max(range(3), key=lambda i: logits[i])
            label, share = self.lines(text)[0].split("\t")
            assert label == names[str(best)], (label, logits)
            self.near([float(share)], [1 / sum(math.exp(x - logits[best]) for x in logits)])

    def test_classifies_each(self):
        self.get(self.folder("each", "bert_classifier", problem_type="multi_label_classification", id2label=None))
        logits = self.output("logits", around(3, 5, 7))
        found = self.lines("w3 w5 w7")[0].split("\t")
        wanted = {"LABEL_%d" % i: 1 / (1 + math.exp(-x)) for i, x in enumerate(logits)}
        wanted = {k: v for k, v in wanted.items() if v >= 0.5 or v == max(wanted.values())}
        assert found[::2] == list(wanted), (found, wanted)
        self.near([float(x) for x in found[1::2]], list(wanted.values()))

    def test_reranks(self):
        """A cross encoder with one class; its number is the logit."""
        folder = self.folder("reranks", "bert_classifier", id2label={"0": "LABEL_0"})
        path = os.path.join(folder, "model.safetensors")
        header, data = safetensors.read(path)
        for name in ("classifier.weight", "classifier.bias"):  # the first class alone
            of = header[name]
            begin, end = of["data_offsets"]
            of["data_offsets"] = [begin, begin + (end - begin) // of["shape"][0]]
            of["shape"][0] = 1
        spans = sorted((of["data_offsets"], name) for name, of in header.items() if name != "__metadata__")
        body = b""
        for (begin, end), name in spans:
            header[name]["data_offsets"] = [len(body), len(body) + end - begin]
            body += data[begin:end]
        with open(path, "wb") as file:
            file.write(safetensors.pack(header, body))
        self.get(folder)
        pair = self.output("logits", [START, 3, 5, END, 7, END], segments=[0, 0, 0, 0, 1, 1])
        self.near([float(line) for line in self.lines("w3 w5\tw7", "w3")], pair + self.output("logits", around(3)))

    def test_chooses(self):
        """One choice has a number, and two sentences have a class."""
        self.get(self.folder("chooses", "bert_choice"))
        pair = self.output("logits", [START, 3, 5, END, 7, END], segments=[0, 0, 0, 0, 1, 1])
        self.near([float(line) for line in self.lines("w3 w5\tw7")], pair)
        self.get(self.folder("follows", "bert_next"))
        logits = self.output("logits", [START, 3, 5, END, 7, END], segments=[0, 0, 0, 0, 1, 1])
        label, share = self.lines("w3 w5\tw7")[0].split("\t")
        assert label == "LABEL_%d" % (logits[1] > logits[0]), (label, logits)
        self.near([float(share)], [1 / (1 + math.exp(min(logits) - max(logits)))])

    def test_generates(self):
        self.get(self.folder("generates", "llama_odd", PLAIN, bos_token_id=None))
        ids = self.generated(7, [3, 5])
        assert self.lines("--max-new", "7", "w3 w5") == [" ".join("w%d" % i for i in ids)]
        assert len(self.lines("w3 w5")[0].split()) > 9, "all that fit"
        done = run(self.program, " ".join(["w3"] * 100), status=1)
        assert "more than 19 tokens" in done.stderr, done.stderr
        for words in (["--max-new", "0", "a"], ["--max-new"], ["--threads", "x", "a"], ["--none", "a"]):
            assert "usage: generates [options]" in run(self.program, *words, status=2).stderr

    def test_translates(self):
        for name, model, forced in (("translates", "marian_odd", None), ("forces", "m2m_100_odd", 9)):
            self.get(self.folder(name, model, forced_bos_token_id=forced))
            ids = self.generated(9, [3], around(4, 6, 8))[1:]
            assert forced in (None, ids[0]), ids
            assert self.lines("--max-new", "9", "w4 w6 w8") == [" ".join("w%d" % i for i in ids)]

    def test_searches(self):
        """The program has the search of generation_config.json: beams, penalties, ends, lengths, sampling."""
        for name, model, rules in (
                ("beams", "marian_odd", {"eos_token_id": 2, "num_beams": 3, "length_penalty": 1.5, "max_length": 12,
                                         "early_stopping": True, "no_repeat_ngram_size": 2}),
                ("rules", "llama_odd", {"eos_token_id": [2, 30], "repetition_penalty": 1.4, "suppress_tokens": [4, 8],
                                        "max_new_tokens": 8, "bad_words_ids": [[9], [3, 7]]}),
                ("draws", "llama_odd", {"do_sample": True, "temperature": 1.5, "top_k": 9, "max_new_tokens": 8})):
            folder = self.folder(name, model, PLAIN if model == "llama_odd" else TOKENIZER, bos_token_id=None)
            with open(os.path.join(folder, "generation_config.json"), "w", encoding="utf-8") as file:
                json.dump(rules, file)
            self.get(folder)
            if model == "marian_odd":
                npy.write(self.path("source.npy"), around(4, 6, 8))
                words, given = ["--in", "source=" + self.path("source.npy")], "w4 w6 w8"
            else:
                npy.write(self.path("ids.npy"), [3, 5])
                words, given = ["--in", "tokens=" + self.path("ids.npy")], "w3 w5"
            attnc("generate", self.spec, "--weights", self.weights, *words, "--out", "tokens=" + self.path("new.npy"),
                  "--engine", "interp", status=0)
            ids = list(npy.read(self.path("new.npy"))[-1])[model == "marian_odd":]
            shown = " ".join("w%d" % i for i in ids if i not in (START, END))
            assert self.lines(given) == [shown], (name, self.lines(given), shown)

    def test_begins_as_the_tokenizer_says(self):
        """The texts of generate of transformers, by make_begins.py: only the tokenizer puts a token in front, and an
        empty prompt begins with the model's own."""
        with open(os.path.join(TESTS, "get", "begins.json"), encoding="utf-8") as file:
            cases = json.load(file)
        for case in cases:
            folder = self.folder("begins_" + case["name"], case["model"], case["tokenizer"], **case["config"])
            self.write(folder, "tokenizer_config.json", case["tokenizer_config"])
            self.get(folder)
            texts, wanted = ([told[key] for told in case["told"]] for key in ("text", "written"))
            assert self.lines("--max-new", str(case["most"]), *texts) == wanted, case["name"]

    def test_runtime_of_sound(self):
        """attnc compile --runtime writes what makes a spectrogram and words of it beside a model of sound alone."""
        sound = {"attn_%s.%s" % (stem, end) for stem in ("mel", "transcribe") for end in "ch"}
        for name, wanted in (("sound_to_tokens", sound), ("seq2seq_odd", set())):
            folder = self.path("runtime_" + name)
            attnc("compile", "tests/differential/%s.attn" % name, "-o", folder, "--runtime", status=0)
            found = set(os.listdir(folder))
            assert found & sound == wanted and "attn_sample.c" in found, found

    def test_precision(self):
        """The spec states it, so that the spec and the weights belong together."""
        self.get(self.folder("rounds", "llama_odd", PLAIN, bos_token_id=None), "--precision", "int8")
        with open(self.spec, encoding="utf-8") as file:
            assert "precision weights int8 activations int8 attention bf16" in file.read()
        attnc("pack", self.spec, "--weights", self.weights, "--verify", status=0)
        assert self.lines("--max-new", "5", "w3 w5")[0].startswith("w3 w5 ")

    def gguf(self, name, more=None, kind="F32", width=32):
        """A llama with random numbers and a tokenizer of pieces; its matrices are of this kind."""
        draw = random.Random(5)

        def numbers(shape):
            count = math.prod(shape)
            if kind == "F32" or len(shape) == 1:
                return array.array("f", [draw.gauss(0, 0.3) for _ in range(count)]).tobytes()
            return gguf.blocks(kind, count, draw)
        keys, tensors = gguf.llama(gguf.LETTERS, width, 2 * width, 24, kind, numbers)
        keys.update(more or {})
        path = self.path(name + ".gguf")
        with open(path, "wb") as file:
            file.write(gguf.pack([(k, v) for k, v in keys.items() if v is not None], tensors))
        return path, gguf.LETTERS

    def test_gguf(self):
        path, pieces = self.gguf("small")
        self.get(path)
        assert sorted(os.listdir(self.to)) == sorted([
            "Makefile", "attn_generate.c", "attn_generate.h", "attn_rules.c", "attn_rules.h", "attn_runtime.c",
            "attn_runtime.h", "attn_sample.c", "attn_sample.h", "main.c", "small", "small.attn", "small.attnw",
            "small.c", "small.h", "tokenizer", "tokenizer.gguf"]), os.listdir(self.to)
        ids = self.generated(6, [1, pieces.index("\u2581"), pieces.index("h"), pieces.index("i")])
        text = "".join(pieces[i] for i in ids[1:] if i > 2).replace("\u2581", " ")
        assert self.lines("--max-new", "6", "hi") == [text.removeprefix(" ")], text
        assert os.path.getsize(os.path.join(self.to, "tokenizer.gguf")) < 2000

    def test_gguf_of_k_quants(self):
        """Numbers that only f32 holds are rounded, and one note says so with the sizes of both files; --precision f32
        keeps them, and what another type holds exactly needs no note."""
        for kind, words in (("Q4_K", "int4:32:offset:halves"), ("Q6_K", "int8:32:halves"), ("Q5_K", "int8:32:halves")):
            path, pieces = self.gguf(kind.lower(), kind=kind, width=256)
            to = path + ".out"
            said = attnc("get", path, "-o", to, "--no-build", status=0).stderr
            notes = [line for line in said.splitlines() if "rounded" in line or "f32" in line]
            assert len(notes) == 1, said
            weights = os.path.join(to, kind.lower() + ".attnw")
            for part in ("%s by weights=%s:" % (kind, words), "%s has %d bytes" % (path, os.path.getsize(path)),
                         "%s %d;" % (weights, os.path.getsize(weights)), "--precision f32"):
                assert part in notes[0], (part, said)
            with open(weights[:-1 - len("attnw")] + ".attn", encoding="utf-8") as file:
                assert "precision weights " + words.replace(":", " ") in file.read()
        small = os.path.getsize(weights)
        assert "f32" not in self.get(path, "--precision", "f32")
        assert os.path.getsize(self.weights) > 3 * small
        ids = self.generated(6, [1, pieces.index("\u2581"), pieces.index("h"), pieces.index("i")])
        text = "".join(pieces[i] for i in ids[1:] if i > 2).replace("\u2581", " ")
        assert self.lines("--max-new", "6", "hi") == [text.removeprefix(" ")], text
        exact = attnc("get", self.gguf("exact", kind="Q8_0")[0], "-o", self.path("exact.out"), "--no-build", status=0)
        assert "rounded" not in exact.stderr, exact.stderr

    def test_gguf_translates(self):
        """A T5 with the tokenizer of its file."""
        pieces = ["<pad>", "</s>", "<unk>"] + ["\u2581" + letter for letter in "abcdefghijklmnopqrstuvwxyz01234567"]
        kinds = [3, 3, 2] + [1] * (len(pieces) - 3)
        path = self.path("two.gguf")
        with open(path, "wb") as file:
            file.write(models.convert(os.path.join(TESTS, "parity/fixtures/t5_odd"), {
                "tokenizer.ggml.model": "t5", "tokenizer.ggml.tokens": pieces, "tokenizer.ggml.eos_token_id": 1,
                "tokenizer.ggml.scores": [-float(i) for i in range(len(pieces))],
                "tokenizer.ggml.token_type": [(gguf.I32, kind) for kind in kinds],
                "tokenizer.ggml.unknown_token_id": 2, "tokenizer.ggml.add_space_prefix": True}.items()))
        self.get(path)
        ids = self.generated(7, [0], [pieces.index("\u2581c"), pieces.index("\u2581z"), 1])[1:]
        text = "".join(pieces[i] for i in ids if i > 2).replace("\u2581", " ")
        assert self.lines("--max-new", "7", "c z") == [text.removeprefix(" ")], text

    def test_tokenizer_sources(self):
        """A project has every file of the tokenizer."""
        folder = self.path("sources")
        attnc("get", self.folder("source", "llama_odd", PLAIN), "-o", folder, "--no-build", status=0)
        assert sorted(os.listdir(os.path.join(folder, "tokenizer"))) == sorted(os.listdir(os.path.join(
            ROOT, "runtime", "tokenizer")))
        with open(os.path.join(folder, "attn_runtime.c"), encoding="utf-8") as mine, \
                open(os.path.join(ROOT, "runtime", "attn_runtime.c"), encoding="utf-8") as own:
            assert mine.read() == own.read()

    def test_builds_and_runs(self):
        """Without --no-build the program is built and shows an example; without libraries the files are there."""
        done = attnc("get", os.path.join(ROOT, "examples/story/model"), "-o", self.path("story"), "--name", "teller",
                     status=0)
        begin = "%s 'Once upon a time'\nOnce upon a time there " % self.path("story", "teller")
        assert done.stdout.startswith(begin), done.stdout
        done = attnc("get", self.folder("unbuilt", "llama_odd", PLAIN), "-o", self.path("none"), status=1,
                     env={"CPATH": self.path("nowhere"), "MAKEFLAGS": "CFLAGS=-Inone\\ -include\\ none.h"})
        assert "the files are written, but `make -C" in done.stderr, done.stderr
        assert os.path.exists(self.path("none", "main.c"))

    def test_pieces(self):
        """The tokenizer.bin of llama2.c, whose pieces are counted."""
        folder = self.path("story_of_pieces")
        shutil.copytree(os.path.join(ROOT, "examples/story/model"), folder)
        os.remove(os.path.join(folder, "tokenizer.json"))
        with open(os.path.join(TESTS, "tokenizers/fixtures/llama2c.bin"), "rb") as file:
            pieces, end = file.read(), 4
        for _ in range(1024):  # as many as the model has rows
            end += 8 + struct.unpack_from("<i", pieces, end + 4)[0]
        with open(os.path.join(folder, "tokenizer.bin"), "wb") as file:
            file.write(pieces[:end])
        self.get(folder)
        assert self.lines("--max-new", "3", "ab a")[0].startswith("ab a")
        folder = self.folder("pieces_of_c", "llama_odd", None)
        for count, status in ((VOCAB, 0), (VOCAB + 1, 1)):
            with open(os.path.join(folder, "tokenizer.bin"), "wb") as file:
                file.write(struct.pack("<i", 6) + b"".join(struct.pack("<fi", 0, 2) + b"xy" for _ in range(count)))
            done = attnc("get", folder, "-o", self.path("counted%d" % count), "--no-build", status=status)
        assert "the tokenizer has 38 ids, and the model has rows for 37" in done.stderr, done.stderr

    def test_refuses(self):
        masked, labels = self.folder("masked", "bert_masked"), self.folder("labels", "bert_tokens")
        for folder, words in ((masked, "its head gives the token of each row"),
                              (labels, "its head classifies each row"),
                              (self.folder("image", "vit_odd"), "its input is neither a text nor a sound"),
                              (self.folder("judge", "bart_classifier"), "no logits to write with"),
                              (os.path.join(TESTS, "parity", "sentences", "score_odd"), "in its chat template")):
            said = self.get(folder, status=CANNOT)
            assert words in said and "attnc import writes its spec" in said, said
        said = self.get(self.folder("mute", "llama_odd", None), status=1)
        assert "no tokenizer.json" in said and "save_pretrained" in said, said
        cased = self.folder("cased", "bert_one_head", None)
        for name, content in (("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n"), ("tokenizer_config.json",
                                                                             '{"do_lower_case": false}')):
            with open(os.path.join(cased, name), "w", encoding="utf-8") as file:
                file.write(content)
        assert "`do_lower_case` is false" in self.get(cased, status=1)
        assert "names none of the 3 classes" in self.get(self.folder(
            "labelled", "bert_classifier", id2label={"0": "a", "1": "b", "7": "c"}), status=1)
        assert "`forced_bos_token_id` has the token 99, which is outside the vocabulary" in self.get(self.folder(
            "forced", "m2m_100_odd", forced_bos_token_id=99), status=1)
        assert "has no tokenizer" in self.get(self.gguf("mute", {"tokenizer.ggml.model": None})[0], status=1)
        for words in (["--name", "main"], ["--name", "tokenizer"], ["--name", "2"], ["--precision", "int3"]):
            self.get(masked, *words, status=2)
        attnc("get", masked, status=2)

    def test_tokenizers_that_do_not_fit(self):
        """A tokenizer with more tokens than the model is refused, and by the program if it comes later."""
        words = {"w%d" % i: i for i in range(VOCAB + 1)}
        larger = {**PLAIN, "model": {**PLAIN["model"], "vocab": words}}
        added = {**PLAIN, "added_tokens": [{"id": VOCAB + 2, "content": "more", "special": True}]}
        pieces = {**PLAIN, "model": {"type": "Unigram", "unk_id": 0, "vocab": [[word, -1.0] for word in words]}}
        for name, tokenizer, count in (("larger", larger, 38), ("added", added, 40), ("pieces", pieces, 38)):
            said = self.get(self.folder(name, "llama_odd", tokenizer), status=1)
            assert "the tokenizer has %d ids, and the model has rows for 37" % count in said, said
        broken = self.folder("broken", "llama_odd")
        with open(os.path.join(broken, "tokenizer.json"), "w", encoding="utf-8") as file:
            file.write('{"model": ')
        assert "tokenizer.json: it is no JSON" in self.get(broken, status=1)
        lined = self.folder("lined", "bert_one_head", None)
        with open(os.path.join(lined, "vocab.txt"), "w", encoding="utf-8") as file:
            file.write("\n".join("[%d]" % i for i in range(VOCAB + 2)))
        assert "the tokenizer has 39 ids" in self.get(lined, status=1)
        self.get(self.folder("later", "llama_odd", PLAIN))
        with open(os.path.join(self.to, "tokenizer.json"), "w", encoding="utf-8") as file:
            json.dump(larger, file)
        assert "more tokens than the model" in run(self.program, "w3", status=1).stderr


if __name__ == "__main__":
    sys.exit(run_tests("get", Get))
