#!/usr/bin/env python3
"""examples/story: the converter of llama2.c files, whose result `attnc run` computes as llama2.c's formulas do; hostile
files; the committed model, which attnc continues as PyTorch did; the tales. Speaks TAP."""
import collections
import json
import math
import os
import random
import resource
import shutil
import signal
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import npy, safetensors  # noqa: E402
from lib.attnc import ATTNC, FIXTURES, ROOT, make  # noqa: E402
from lib.attnc import run as run_command  # noqa: E402
from lib.tap import Skip, run_tests  # noqa: E402

STORY = os.path.join(ROOT, "examples", "story")
MODEL = os.path.join(STORY, "model")
STRICT = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror", "-pthread"]
SANITIZE = ["-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
TOLERANCE = 1e-4
Sizes = collections.namedtuple("Sizes", "dim hidden layers heads kv_heads vocab seq")
SMALL = Sizes(24, 40, 2, 6, 2, 37, 16)
# the order of llama2.c's export.py: name, whether each layer has one, and its shape
ORDERS = {0: "embedding norm_1* query* key* value* output* norm_2* w1* w2* w3* norm cosines sines",
          1: "norm_1* norm_2* norm embedding query* key* value* output* w1* w2* w3*"}


def run(*command, status=0, before=None):
    return run_command(*command, status=status, env={"ASAN_OPTIONS": "detect_leaks=0"}, preexec_fn=before)


def no_space():
    """A file's writer is refused more than 4096 bytes."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


def read_safetensors(path):
    """Name to (shape, bytes)."""
    header, data = safetensors.read(path)
    aligned = (os.path.getsize(path) - len(data)) % 8 == 0
    assert aligned and header.pop("__metadata__") == {"format": "pt"}, "no header of transformers"
    return {name: (one["shape"], data[slice(*one["data_offsets"])]) for name, one in header.items()}


# ---------------------------------------------------------------- llama2.c in Python

def shapes(s):
    head = s.dim // s.heads
    kv = head * s.kv_heads
    return {"embedding": (s.vocab, s.dim), "classifier": (s.vocab, s.dim), "norm": (1, s.dim), "norm_1": (1, s.dim),
            "norm_2": (1, s.dim), "query": (s.dim, s.dim), "key": (kv, s.dim), "value": (kv, s.dim),
            "output": (s.dim, s.dim), "w1": (s.hidden, s.dim), "w2": (s.dim, s.hidden), "w3": (s.hidden, s.dim),
            "cosines": (s.seq, head // 2), "sines": (s.seq, head // 2)}


def random_weights(s, seed, shared):
    """Name to the matrices of its layers, each a list of rows of numbers that float32 has."""
    rng = random.Random(seed)

    def number(name):
        value = rng.gauss(1, 0.2) if name.startswith("norm") else rng.gauss(0, 1 if name == "embedding" else 0.3)
        return struct.unpack("<f", struct.pack("<f", value))[0]
    weights = {name: [[[number(name) for _ in range(columns)] for _ in range(rows)] for _ in range(s.layers)]
               for name, (rows, columns) in shapes(s).items()}
    if shared:
        weights["classifier"] = weights["embedding"]
    return weights


def header(s, version, shared):
    if version == 0:
        return struct.pack("<7i", *s._replace(vocab=s.vocab if shared else -s.vocab))
    return (struct.pack("<Ii7iB", 0x616b3432, version, *s, shared) + bytes(256))[:256]


def checkpoint(s, weights, version, shared):
    data = [header(s, version, shared)]
    for word in ORDERS[version].split() + ([] if shared else ["classifier"]):
        for matrix in weights[word.rstrip("*")][:s.layers if word.endswith("*") else 1]:
            data += [struct.pack("<%df" % len(row), *row) for row in matrix]
    return b"".join(data)


def dot(a, b):
    return math.fsum(x * y for x, y in zip(a, b))


def times(matrix, x):
    return [dot(row, x) for row in matrix]


def normed(x, gain):
    scale = 1 / math.sqrt(dot(x, x) / len(x) + 1e-5)
    return [g * scale * v for g, v in zip(gain[0], x)]


def turned(x, head, at):
    """run.c: the numbers 2i and 2i + 1 of each head by the angle at / 10000^(2i / head)."""
    made = []
    for i in range(0, len(x), 2):
        angle = at / 10000 ** (i % head / head)
        cos, sin = math.cos(angle), math.sin(angle)
        made += [x[i] * cos - x[i + 1] * sin, x[i] * sin + x[i + 1] * cos]
    return made


def forward(s, w, tokens):
    """Rows of logits, as forward() of run.c computes them, in doubles."""
    head, found = s.dim // s.heads, []
    keys, values = [[] for _ in range(s.layers)], [[] for _ in range(s.layers)]
    for at, token in enumerate(tokens):
        x = w["embedding"][0][token]
        for layer in range(s.layers):
            y = normed(x, w["norm_1"][layer])
            query = turned(times(w["query"][layer], y), head, at)
            keys[layer].append(turned(times(w["key"][layer], y), head, at))
            values[layer].append(times(w["value"][layer], y))
            mixed = []
            for h in range(s.heads):
                begin = h * s.kv_heads // s.heads * head
                scores = [dot(query[h * head:][:head], k[begin:][:head]) / math.sqrt(head) for k in keys[layer]]
                shares = [math.exp(score - max(scores)) for score in scores]
                mixed += [dot(shares, [v[begin + i] for v in values[layer]]) / sum(shares) for i in range(head)]
            x = [a + b for a, b in zip(x, times(w["output"][layer], mixed))]
            y = normed(x, w["norm_2"][layer])
            gated = [a / (1 + math.exp(-a)) * b for a, b in zip(times(w["w1"][layer], y), times(w["w3"][layer], y))]
            x = [a + b for a, b in zip(x, times(w["w2"][layer], gated))]
        found.append(times(w["classifier"][0], normed(x, w["norm"][0])))
    return found


def from_transformers(folder):
    """A llama2.c file of version 0 of a LlamaForCausalLM whose classifier is shared: the way that is to be undone."""
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    s = Sizes(*(config[key] for key in ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                                        "num_key_value_heads", "vocab_size", "max_position_embeddings")))
    tensors = read_safetensors(os.path.join(folder, "model.safetensors"))
    names = {"norm_1": "input_layernorm", "norm_2": "post_attention_layernorm", "query": "self_attn.q_proj",
             "key": "self_attn.k_proj", "value": "self_attn.v_proj", "output": "self_attn.o_proj",
             "w1": "mlp.gate_proj", "w2": "mlp.down_proj", "w3": "mlp.up_proj"}
    head, data = s.dim // s.heads, header(s, 0, True)
    for word in ORDERS[0].split():
        if word in ("cosines", "sines"):
            data += bytes(4 * s.seq * head // 2)
            continue
        for layer in range(s.layers if word.endswith("*") else 1):
            name = {"embedding": "model.embed_tokens", "norm": "model.norm"}.get(word) or \
                "model.layers.%d.%s" % (layer, names[word[:-1]])
            shape, raw = tensors[name + ".weight"]
            if word in ("query*", "key*"):
                rows = [raw[i:i + 4 * s.dim] for i in range(0, len(raw), 4 * s.dim)]
                raw = b"".join(rows[h * head + i // 2 + i % 2 * (head // 2)] for h in range(shape[0] // head)
                               for i in range(head))
            data += raw
    return data


# ---------------------------------------------------------------- the tests

class Story:
    def __init__(self, folder):
        self.folder = folder

    def path(self, name, content=None):
        path = os.path.join(self.folder, name)
        if content is not None:
            with open(path, "wb") as file:
                file.write(content)
        return path

    def test_converter_builds(self):
        for compiler in [c for c in ("clang", "gcc") if shutil.which(c)]:
            run(compiler, *STRICT, *SANITIZE, "examples/story/from_llama2c.c", "runtime/attn_runtime.c",
                "-o", self.path("from_llama2c"))
        assert "usage: from_llama2c" in run(self.path("from_llama2c"), "--help").stdout, "no help"
        for arguments in ([], ["a.bin"], ["a.bin", "-o"], ["a.bin", "b", "c"], ["-o", "b", "a.bin"]):
            assert "usage" in run(self.path("from_llama2c"), *arguments, status=2).stderr, "no usage"

    def converted(self, data, name="converted"):
        folder = self.path(name)
        run(self.path("from_llama2c"), self.path("model.bin", data), "-o", folder)
        assert sorted(os.listdir(folder)) == ["config.json", "model.safetensors"], str(os.listdir(folder))
        run(ATTNC, "import", folder, "-o", self.path("model.attn"))
        return os.path.join(folder, "model.safetensors")

    def test_logits_are_those_of_llama2c(self):
        tokens = [1, 5, 36, 0, 7, 7, 20, 3, 11, 2]
        npy.write(self.path("tokens.npy"), tokens, descr="<i8")
        for seed, (version, shared, kv_heads) in enumerate([(0, True, 2), (0, False, 6), (1, True, 1), (1, False, 3)]):
            sizes = SMALL._replace(kv_heads=kv_heads)
            weights = random_weights(sizes, seed, shared)
            file = self.converted(checkpoint(sizes, weights, version, shared))
            run(ATTNC, "run", self.path("model.attn"), "--weights", file, "--engine", "interp", "--in",
                "tokens=" + self.path("tokens.npy"), "--out", "logits=" + self.path("logits.npy"))
            shape, got = npy.read(self.path("logits.npy"))
            wanted = forward(sizes, weights, tokens)
            assert tuple(shape[-2:]) == (len(tokens), sizes.vocab), str(shape)
            flat = [number for row in wanted for number in row]
            worst = max(abs(a - b) for a, b in zip(got, flat))
            assert len(got) == len(flat) and worst <= TOLERANCE, "version %d: off by %g" % (version, worst)
            assert max(flat) - min(flat) > 1, "nothing to compare"

    def test_both_versions_give_the_same(self):
        made = []
        for version, shared in ((0, False), (1, False)):
            file = self.converted(checkpoint(SMALL, random_weights(SMALL, 9, shared), version, shared))
            with open(os.path.join(os.path.dirname(file), "config.json"), "rb") as config:
                made.append((read_safetensors(file), config.read()))
        assert made[0] == made[1] and "lm_head.weight" in made[0][0], "they differ"

    def test_one_layer_of_one_head(self):
        sizes = Sizes(2, 1, 1, 1, 1, 3, 1)
        file = self.converted(checkpoint(sizes, random_weights(sizes, 3, True), 0, True))
        assert len(read_safetensors(file)) == 11, "another number of tensors"

    def refused(self, data, *said):
        """One line that says so, and no file or folder of the result."""
        folder = self.path("none")
        done = run(self.path("from_llama2c"), self.path("hostile.bin", data), "-o", folder, status=1)
        assert done.stderr.startswith("from_llama2c: ") and done.stderr.count("\n") == 1, done.stderr
        for word in said:
            assert word in done.stderr, "%s: not said in %s" % (word, done.stderr)
        assert "hostile.bin" in done.stderr and not os.path.exists(folder), "something is written"

    def test_hostile_files(self):
        fields = ("dim", "hidden_dim", "n_layers", "n_heads", "n_kv_heads", "vocab_size", "seq_len")
        for version in (0, 1):
            good = checkpoint(SMALL, random_weights(SMALL, 4, True), version, True)
            size, begin = 256 if version else 28, 8 if version else 0
            for length in (1, 3, 4, 27, size - 1):
                self.refused(good[:length], "shorter than a header")
            for length in (size, size + 1, len(good) // 2, len(good) - 4, len(good) - 1):
                self.refused(good[:length], "too few")
            self.refused(good + b"\0", "make %d bytes, but it has %d" % (len(good), len(good) + 1))
            self.refused(good + bytes(4 * SMALL.vocab * SMALL.dim), "make %d bytes" % len(good))
            for i, field in enumerate(fields):
                for value in (-1, 0, -2**31, 2**31 - 1, 2**31 - 2, 2**30, 1 << 16):
                    if version == 0 and field == "vocab_size" and value == -1:
                        continue  # a vocabulary of 1 with a classifier of its own: of another length
                    data = good[:begin + 4 * i] + struct.pack("<i", value) + good[begin + 4 * i + 4:]
                    own = version == 0 and field == "vocab_size" and value != -2**31
                    if version == 1 and field == "seq_len" and value > 0:
                        continue  # nothing depends on it
                    self.refused(data, *[field] if value <= 0 and not (own and value) else [])
            most = struct.pack("<7i", *[2**31 - 2, 2**31 - 1, 2**31 - 1, 1, 1, 2**31 - 1, 2**31 - 1])
            self.refused(good[:begin] + most + good[begin + 28:], "too few")
        self.refused(struct.pack("<7i", 24, 40, 2, 5, 5, 37, 16) + bytes(1000), "do not fit")
        self.refused(struct.pack("<7i", 24, 40, 2, 6, 4, 37, 16) + bytes(1000), "do not fit")
        self.refused(struct.pack("<7i", 18, 40, 2, 6, 6, 37, 16) + bytes(1000), "do not fit")
        self.refused(header(SMALL, 2, True) + bytes(10000), "int8")
        self.refused(header(SMALL, 3, True) + bytes(10000), "version 3 is not known")
        self.refused(header(SMALL, 1, 7) + bytes(10000), "neither 0 nor 1")
        self.refused(b"GGUF" + bytes(range(200)), "no checkpoint of llama2.c")
        self.refused(struct.pack(">I", 0x616b3432) + header(SMALL, 1, True)[4:] + bytes(10000), "no checkpoint")
        self.refused(b"", "empty")

    def test_headers_at_random(self):
        """Sizes that do not fit the file are refused, whatever they are; nothing crashes."""
        rng = random.Random(5)
        for version in (0, 1):
            good = bytearray(checkpoint(SMALL, random_weights(SMALL, 4, True), version, True))
            for _ in range(40):
                data = bytearray(good)
                for _ in range(rng.choice((1, 2, 4))):
                    at = (8 if version else 0) + 4 * rng.randrange(6)
                    data[at:at + 4] = struct.pack("<i", rng.choice((rng.randrange(100, 4000), rng.getrandbits(31))))
                self.refused(bytes(data))

    def test_places_that_cannot_be_written(self):
        data = checkpoint(SMALL, random_weights(SMALL, 4, True), 0, True)
        program, file = self.path("from_llama2c"), self.path("model.bin", data)
        assert "absent" in run(program, self.path("absent.bin"), "-o", self.path("none"), status=1).stderr, "no name"
        assert "directory" in run(program, self.folder, "-o", self.path("none"), status=1).stderr, "a folder"
        run(program, file, "-o", self.path("absent/deep"), status=1)
        run(program, file, "-o", file, status=1)
        for name in ("model.safetensors", "config.json"):
            folder = self.path("taken." + name)
            os.makedirs(os.path.join(folder, name, "in_the_way"))
            assert name in run(program, file, "-o", folder, status=1).stderr, "no name"
            assert os.listdir(folder) == [name], "half a model: " + str(os.listdir(folder))
        done = run(program, file, "-o", self.path("none"), status=1, before=no_space)
        assert "model.safetensors" in done.stderr and done.stderr.count("\n") == 1, done.stderr
        assert not os.path.exists(self.path("none")), "something is written"

    def test_stories260k_and_back(self):
        """Skipped without $ATTNC_FIXTURES: every tensor is what it was before it went to llama2.c and back."""
        folder = os.path.join(FIXTURES, "models", "stories260K")
        if not FIXTURES or not os.path.isdir(folder):
            raise Skip("there is no stories260K in $ATTNC_FIXTURES")
        file = self.converted(from_transformers(folder), "stories")
        was, now = (read_safetensors(path) for path in (os.path.join(folder, "model.safetensors"), file))
        assert was == now and len(now) == 47, "not the same"

    def test_model_continues_as_in_pytorch(self):
        with open(os.path.join(MODEL, "expected.json"), encoding="utf-8") as file:
            expected = json.load(file)
        spec, weights = self.path("story.attn"), os.path.join(MODEL, "model.safetensors")
        assert os.path.getsize(weights) <= 1.6e6 and len(expected) >= 3, "%d bytes" % os.path.getsize(weights)
        run(ATTNC, "import", MODEL, "-o", spec)
        run(ATTNC, "compile", spec, "--weights", weights, "-o", self.folder)
        for number, one in enumerate(expected):
            npy.write(self.path("prompt.npy"), one["prompt"], descr="<i8")
            for engine in ("interp", "compiled")[:2 if number == 0 else 1]:
                run(ATTNC, "generate", spec, "--weights", weights, "--engine", engine, "--in",
                    "tokens=" + self.path("prompt.npy"), "--max-new", str(len(one["continued"])), "--out",
                    "tokens=" + self.path("out.npy"))
                got = list(npy.read(self.path("out.npy")).numbers)
                assert got == one["prompt"] + one["continued"], "%s, %s: %s" % (engine, one["text"], got)
            assert len(one["continued"]) > 50, "a short continuation"

    def test_tokenizer_gives_the_text_back(self):
        """The ids of expected.json by the vocabulary of tokenizer.json alone."""
        with open(os.path.join(MODEL, "tokenizer.json"), encoding="utf-8") as file:
            vocab = json.load(file)["model"]["vocab"]
        # GPT-2: bytes that print stand for themselves, the others for characters from 256 on
        plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
        byte_of = {chr(b): b for b in plain}
        byte_of.update((chr(256 + i), b) for i, b in enumerate(b for b in range(256) if b not in plain))
        pieces = {index: text for text, index in vocab.items()}
        assert sorted(pieces) == list(range(len(vocab))) and pieces[0] == "<|tale|>", "the ids have gaps"
        assert all(c in vocab for c in byte_of), "not every byte has an id"
        with open(os.path.join(MODEL, "expected.json"), encoding="utf-8") as file:
            for one in json.load(file):
                for ids, text in ((one["prompt"], one["text"]), (one["continued"], one["continued_text"])):
                    got = bytes(byte_of[c] for i in ids if i for c in pieces[i]).decode()
                    assert got == text, "%r, not %r" % (got, text)

    def demo(self, model, status=0, **environment):
        """`make demo-story MODEL=…`, whose files go into the folder `demo` of the scratch folder."""
        own = {"TOKENIZER": None, "ATTNC_DEMO_FOLDER": self.path("demo"), "ATTNC_DEMO_OFFLINE": "1", **environment}
        done = make("demo-story", "MODEL=" + model, env=own)
        assert (done.returncode == 0) == (status == 0), "%s: %d\n%s" % (model, done.returncode, done.stderr[-1500:])
        return done

    def folder_of(self, name, files):
        """A folder with copies of these files, by their names."""
        folder = self.path(name)
        os.makedirs(folder)
        for file in files:
            shutil.copy(file, folder)
        return folder

    def other_models(self):
        """(folder, what must be said, how the sentence begins)"""
        config, weights, tokenizer = (os.path.join(MODEL, name)
                                      for name in ("config.json", "model.safetensors", "tokenizer.json"))
        yield self.path("nowhere"), "there is no ", "demo: "
        yield self.folder_of("empty", []), "config.json", "demo: "
        yield self.folder_of("no_config", [weights, tokenizer]), "no_config/config.json", "demo: "
        yield self.folder_of("no_weights", [config, tokenizer]), "no_weights/model.safetensors", "demo: "
        yield self.folder_of("no_tokenizer", [config, weights]), "neither tokenizer.json nor tokenizer.bin", "demo: "
        broken = self.folder_of("broken", [config, weights, tokenizer])
        self.path("broken/config.json", b"{")
        yield broken, "config.json", "attnc: error: "
        others = os.path.join(ROOT, "tests", "parity", "fixtures")
        for name, said in (("bert_odd", "is an encoder"), ("vit_odd", "is an encoder"), ("bart_odd", "needs a source"),
                           ("llama_plain", "no logits"), ("gpt2_classifier", "no logits")):
            files = [os.path.join(others, name, file) for file in ("config.json", "model.safetensors")]
            yield self.folder_of(name, files + [tokenizer]), said, "demo: "

    def test_demo_of_other_models(self):
        """One sentence, and nothing half made; what was made before stays."""
        made = self.path("demo")
        shutil.rmtree(made, ignore_errors=True)
        for folder, said, begin in self.other_models():
            done = self.demo(folder, status=2)
            lines = [line for line in done.stderr.splitlines() if not line.startswith(("make: ", "make["))]
            assert sum(not line.startswith("attnc: note: ") for line in lines) == 1, done.stderr
            assert lines[-1].startswith(begin) and said in lines[-1], done.stderr
            assert "compiling" not in done.stdout, done.stdout
            left = [name for _, folders, files in os.walk(made) for name in folders + files]
            assert not left, "%s leaves %s" % (folder, left)

    def test_demo_with_a_tokenizer_of_llama2c(self):
        """Without tokenizer.json; another model that is refused afterwards leaves this one in its place."""
        files = [os.path.join(MODEL, name) for name in ("config.json", "model.safetensors")]
        folder = self.folder_of("of_llama2c", files)
        pieces = ["<unk>", "\n<s>\n", "\n</s>\n", *["<0x%02X>" % byte for byte in range(256)], " ", "e", "t", "th"]
        data = struct.pack("<i", max(map(len, pieces)))
        for number, piece in enumerate(pieces):
            data += struct.pack("<fi", -number, len(piece)) + piece.encode()
        self.path("of_llama2c/tokenizer.bin", data)
        done = self.demo(folder)
        assert "compiling" in done.stdout and "Once upon a time" in done.stdout, done.stdout + done.stderr
        assert os.listdir(self.path("demo")) == ["story"], "left: %s" % os.listdir(self.path("demo"))
        encoder = os.path.join(ROOT, "tests", "parity", "fixtures", "bert_odd")
        self.demo(encoder, status=2, TOKENIZER=self.path("of_llama2c/tokenizer.bin"))
        again = self.demo(folder)
        assert "compiling" not in again.stdout and "Once upon a time" in again.stdout, "made twice"
        stories = os.path.join(FIXTURES, "models", "stories260K")
        if FIXTURES and os.path.isdir(stories):
            assert not os.path.exists(os.path.join(stories, "tokenizer.json")), "it has a tokenizer.json"
            assert "there was a" in self.demo(stories).stdout, "no story of stories260K"

    def test_tales(self):
        script = os.path.join(STORY, "tales.py")
        first = run(sys.executable, script, "500", "3").stdout
        assert first == run(sys.executable, script, "500", "3").stdout, "a seed gives two results"
        assert first != run(sys.executable, script, "500", "4").stdout, "all seeds give the same"
        told = first.strip().split("\n\n")
        assert len(set(told)) == len(told) == 500, "%d tales of 500 differ" % len(set(told))
        for tale in told:
            assert tale.isascii() and not set(tale) & set("<>{}[]|~%_"), tale
            assert tale.count('"') % 2 == 0 and tale[-1] in '.!?"', tale
            assert "  " not in tale and " ." not in tale and " ," not in tale, tale
            assert 60 <= len(tale.split()) <= 220, tale


if __name__ == "__main__":
    sys.exit(run_tests("story", Story))
