"""Seeds and dictionaries of the targets in inputs/. Most seeds are files that other tests have, cut so that a change
meets something; the rest is made here."""

import glob
import json
import os
import random
import re
import struct
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tokenizers"))
import gguf_twins  # noqa: E402
from lib import checkpoint as checkpoints  # noqa: E402
from lib import gguf as gguf_files  # noqa: E402
from lib import npy as npy_files  # noqa: E402
from lib import safetensors as safetensors_files  # noqa: E402
from lib.attnc import ROOT  # noqa: E402
from parity import gguf as gguf_models  # noqa: E402
from quantized import cases as quantized_cases  # noqa: E402

GGUF_BYTES = 24576  # of the longest input
TEXT = "Hello, wörld! 42 <s>\n\u4e2d\u56fd e\u0301 \U0001f642".encode() + b"\xff\xc3"


def read(path):
    with open(os.path.join(ROOT, path), "rb") as file:
        return file.read()


def found(pattern):
    return sorted(glob.glob(os.path.join(ROOT, pattern)))


# ---------------------------------------------------------------- seeds: lists of inputs


def spec():
    patterns = ("tests/golden/*/*.attn", "tests/families/*.attn", "tests/differential/*.attn", "specs/*.attn")
    inputs = [read(path) for pattern in patterns for path in found(pattern)]
    return [data for data in inputs if len(data) <= 2048]


def emit():
    """Specs behind a byte that names the target and the rest; a few, since to emit one takes long."""
    specs = [read(path) for path in found("tests/differential/*.attn")]
    small = [data for data in specs if len(data) <= 500][::3]
    return [bytes([i % 5 + 8 * (i % 5)]) + data for i, data in enumerate(small)]


def safetensors():
    kinds, at = {"__metadata__": {"format": "pt"}}, 0
    for dtype, size in safetensors_files.SIZES.items():
        kinds[dtype.lower()] = {"dtype": dtype, "shape": [2, 1], "data_offsets": [at, at + 2 * size]}
        at += 2 * size
    empty = {"none": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}}
    one = {"a": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]}}
    index = {"metadata": {"total_size": 8}, "weight_map": {"a": "a"}}
    files = ((kinds, bytes(range(at))), (empty, b""), (one, b"\0\0\x80?"))
    return [*(safetensors_files.pack(header, data) for header, data in files), json.dumps(index).encode()]


def gguf():
    """Small models of each architecture, and a tensor of each type."""
    inputs, types = [], gguf_files.TYPES.items()
    for path in found("tests/parity/fixtures/*/config.json"):
        folder = os.path.dirname(path)
        if gguf_models.mended(gguf_models.config_of(folder)) is not None and "one" not in folder:
            inputs.append(gguf_models.convert(folder))
    inputs.append(gguf_files.pack([("split.no", (gguf_files.U16, 0)), ("split.count", (gguf_files.U16, 2)),
                                   ("split.tensors.count", (gguf_files.I32, 0))], []))
    inputs.append(gguf_files.pack([("general.alignment", 64), ("list", ["a", ""])], [
        (name, [1, elements], name, bytes(i % 256 for i in range(size))) for name, (_, elements, size) in types
    ], alignment=64))
    return [data for data in inputs if len(data) <= GGUF_BYTES]


def checkpoint():
    """Archives and older files with a tensor of each type."""
    made = {kind.lower(): checkpoints.tensor(checkpoints.Storage(i, kind, bytes(range(2 * size))), (2, 1))
            for i, (kind, size) in enumerate(safetensors_files.SIZES.items())}
    turned = checkpoints.tensor(checkpoints.Storage("0", "F16", bytes(12)), (3, 2), (1, 3))
    few = {"a": {"b": turned, "c": [1, (2, "d")]}}
    return [checkpoints.archive(made), checkpoints.sequence(made), checkpoints.archive(few, wide=True, prefix=""),
            checkpoints.archive(few, protocol=4), read("tests/checkpoints/old.bin")]


def quantized():
    """A matrix of each case of tests/quantized."""
    inputs = []
    for config, maker, options in quantized_cases.CASES.values():
        own = dict(options, order=[c % 2 for c in range(64)]) if options.get("order") else options
        header, data = {}, b""
        for suffix, (kind, shape, body) in maker(random.Random(5), 8, 64, **own)[0].items():
            header["a" + suffix] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(body)]}
            data += body
        whole = json.dumps({"quantization_config": config}, separators=(",", ":")).encode()
        inputs.append(whole + b"\0" + safetensors_files.pack(header, data))
    return inputs


def npy_file(descr, shape, data, version=1):
    return npy_files.header(descr, shape, version, align=1) + data


def npy():
    sizes = {"<f4": 4, "<f2": 2, "<f8": 8, "<i8": 8, "<i4": 4, "<i2": 2, "|i1": 1, "|u1": 1, "|b1": 1}
    inputs = [npy_file(descr, (2, 1), bytes(range(2 * size))) for descr, size in sizes.items()]
    return [*inputs, npy_file("<f4", (), b"1234", 2), npy_file("<f4", (0, 3), b"", 3), npy_file(">f4", (1,), b"1234")]


def attnw():
    magic = b"ATTNW\r\n\x1a" + struct.pack("<II", 1, 1)
    return [b"\0", b"\x04", b"\x08", b"\x0c", b"\0\x01\0", b"\0\xff\xff", b"\x06\0\0" + struct.pack("<HBB", 130, 0, 64),
            b"\x02\0\0" + struct.pack("<HBB", 8, 2, 0), b"\x02\0\0" + struct.pack("<HBB", 32, 0, 1),
            b"\x02\0\0" + struct.pack("<HBB", 64, 1, 0), b"\x03" + magic + bytes(112), b"\x0b" + magic + bytes(300)]


def arena():
    actions = b"\0\1\xff\1\x0f\xff\5\x0b\xff\x09\0\0\7\0\x80"
    return [b"", bytes(range(0, 30)) * 4, b"\3\1\x90\x04\1\x50" * 40, actions * 5]


def generate():
    """Options as inputs/fuzz_generate.c has them, and logits."""
    inputs, logits = [], struct.pack("<12f", 1, -2, 0.5, float("inf"), float("nan"), 3, 3, -float("inf"), 0, 7, 1e-9, 2)
    ways = ((0, 0, 0, 0, 0, 17), (1, 0.9, 0, 0, 0, 17), (0.7, 0, 0, 5, 0, 1100), (0, 0, 0.6, 0, 4, 17),
            (0, 0, -1, 0, 9, 40), (2, 0.5, 0, 3, 1, 300))
    for temperature, top_p, penalty, top_k, beams, vocab in ways:
        for small in (0, 1, 2):
            repetition, min_p, ngram, least = ((0, 0, 0, 0), (1.3, 0.1, 2, 0), (0.8, 0, 3, 7))[small]
            numbers = struct.pack("<5d4i4i6i2i16i", temperature, top_p, penalty, repetition, min_p, top_k,
                                  2 * (small > 0), 12, 3 * (small == 1), 9, 2, 3, 1, 1, 2, 3, 0, 0, 0, ngram, least,
                                  1, 2, 7, -1, 3, -1, 2, 1, -1, 5, 6, 8, 4, 1, 9, 2)
            lists = ((0, 0, 0, 0, 0), (0x2a, 0x1c, 0x54, 0, 0), (0, 0x2a, 0x42, 0x1e, 0x1f))[small]
            few = struct.pack("<H10B5B7x", vocab, 30, beams, 2 * (small > 0), 1 if small == 2 else 3, 0,
                              9 * (small == 1), 0, 1, small, 2 * (small == 1), *lists)
            inputs.append(numbers + few + logits + bytes(range(0, 256, 3)) * small)
    return inputs


def folders():
    """Folders as attnc import reads them, as inputs/fuzz_import.c wants them: config, NUL, a line a tensor."""
    inputs = []
    for path in found("tests/parity/fixtures/*/config.json"):
        file = read(os.path.join(os.path.dirname(path), "model.safetensors"))
        header = json.loads(file[8 : 8 + struct.unpack_from("<Q", file)[0]])
        header.pop("__metadata__", None)
        config = json.dumps(json.loads(read(path)), separators=(",", ":"))
        lines = ["%s %s\n" % (name, tensor["shape"]) for name, tensor in header.items()]
        inputs.append(config.encode() + b"\0" + "".join(lines).encode())
        cut, more = len(lines) // 2, [b"@name spare\n", b"@seq 3\n", b'@index {"weight_map":{"a":"a.safetensors"}}\n']
        halves = "@shard\n" + "".join(lines[:cut]) + "@shard\n" + "".join(lines[cut:])
        if "_part_" in path:
            inputs.append(inputs[-1] + b"@part %s\n" % path.split("_part_")[1].split("/")[0].encode())
        if len(inputs) % 3 == 1:
            inputs.append(config.encode() + b"\0" + more[len(inputs) // 3 % 3] + halves.encode())
        if any(name in path for name in ("xlm_roberta", "mpnet_odd")):
            inputs += [inputs[-1] + text for text in modules()]
    return inputs


def modules():
    """Lines of the files that sentence-transformers writes; its pool stands in the folder `1`, all others in `2`."""
    texts = []
    for path in found("tests/parity/sentences/*/modules.json"):
        folder, listed = os.path.dirname(path), json.loads(read(path))
        for module in listed:
            module["path"] = "" if module["path"][:1] in "0" else "1" if "Pooling" in module["path"] else "2"
        parts = [json.dumps(listed)]
        for name in ("*_Pooling/config.json", "*_[DN]*e/config.json", "sentence_bert_config.json",
                     "config_sentence_transformers.json"):
            files = sorted(glob.glob(os.path.join(folder, name)))
            text = json.dumps(json.loads(read(files[0]))) if files else "{}"
            parts.append(re.sub(r"(dimension|features)\": \d+", r'\1": 14', text))  # as wide as the model is
        texts.append("".join("@%d %s\n" % (i, part) for i, part in enumerate(parts)).encode())
    return texts


def with_text(file):
    return file + TEXT + struct.pack("<H", len(TEXT))


def shorter(tokenizer):
    """A tokenizer.json with the first tokens of its vocabulary, those of one character, and the merges among them."""
    model, most = tokenizer["model"], 64
    vocab = model["vocab"]
    if isinstance(vocab, list):
        model["vocab"] = vocab[:most]
    else:
        kept = {name for name, i in vocab.items() if i < most or len(name) == 1 and len(vocab) < 4096}
        kept |= {str(model.get("unk_token"))}
        kept |= {token["content"] for token in tokenizer.get("added_tokens", [])}
        merges = []
        for merge in model.get("merges", []):
            left, right = merge if isinstance(merge, list) else merge.split(" ")
            if len(merges) < most and {left, right} <= kept and left + right in vocab:
                merges.append(merge)
                kept.add(left + right)
        if "merges" in model:
            model["merges"] = merges
        model["vocab"] = {name: i for name, i in vocab.items() if name in kept}
    return json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":")).encode()


def tokenizer():
    inputs = []
    for path in found("tests/tokenizers/fixtures/*.json"):
        with open(path, encoding="utf-8") as file:
            inputs.append(with_text(shorter(json.load(file))))
    words = read("tests/tokenizers/fixtures/vocab.txt").split(b"\n")
    inputs.append(with_text(b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n" + b"\n".join(
        word for word in words if word and not word.startswith(b"["))[:1500].rsplit(b"\n", 1)[0]))
    pieces, at = read("tests/tokenizers/fixtures/llama2c.bin"), 4
    for _ in range(300):
        at += 8 + struct.unpack_from("<I", pieces, at + 4)[0]
    twins = [gguf_twins.pack(gguf_twins.shorter(keys)) for _, keys, _ in gguf_twins.twins()]
    twins.append(gguf_twins.pack(gguf_twins.shorter(gguf_twins.unigram(True))))
    return [*inputs, with_text(pieces[:at]), *map(with_text, twins)]


def pieces():
    """Models of SentencePiece: what is small of a file, and its first pieces."""
    inputs = []
    for path in found("tests/sentencepiece/fixtures/*.spm"):
        data, at, kept, out = read(path), 0, 0, b""
        while at < len(data):
            size, shift, begin = 0, 0, at
            at += 1
            while True:
                size |= (data[at] & 127) << shift
                shift += 7
                at += 1
                if data[at - 1] < 128:
                    break
            at += size
            kept += data[begin] == 10
            if data[begin] != 10 or kept < 330:
                out += data[begin:at]
        inputs.append(with_text(out))
    return inputs


# ---------------------------------------------------------------- dictionaries: sets of words


def strings(*patterns):
    """The words in the string literals of C."""
    text = "\n".join(read(path).decode() for pattern in patterns for path in found(pattern))
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    literals = re.findall(r'"((?:[^"\\\n]|\\.)*)"', text)
    return {word for literal in literals for word in re.findall(r"[A-Za-z_0-9.]{2,40}", literal)}


def settings():
    text = "".join(read("compiler/model/%s.def" % name).decode() for name in ("settings", "precisions"))
    tables = "".join(read("compiler/model/%s.def" % name).decode() for name in ("activations", "norms", "scores"))
    words = set(re.findall(r"^(?:ACTIVATION|NORM|SCORE)\((\w+),", tables, re.M))
    words |= set(re.findall(r"^(?:BLOCK|SETTING)\((\w+),", text, re.M))
    words |= set(re.findall(r'^OPTION\(\w+, "(\w+)",', text, re.M))
    return words | set("let <= = { } .. sqrt ( ) # \" * / + - , model self cross".split())


JSON = {"{", "}", "[", "]", ":", ",", "true", "false", "null", "1e999", "-1", "0.5", "9007199254740993", "\\u0000"}


def keys(*patterns):
    return {'"%s"' % word for word in strings(*patterns)} | JSON


TARGETS = {  # name: seeds, dictionary, the longest input
    "spec": (spec, lambda: settings() | strings("compiler/model/source_names.c"), 2048),
    "emit": (emit, settings, 2048),
    "safetensors": (safetensors, lambda: keys("compiler/formats/s*.c") | {'"%s"' % d for d in (
        "F32", "F16", "BF16", "F64", "I64", "I32", "I16", "I8", "U8", "BOOL")}, 2048),
    "npy": (npy, lambda: strings("compiler/formats/npy.c") | {"'descr'", "'shape'", "True", "(", ")"}, 512),
    "checkpoint": (checkpoint, lambda: strings("compiler/formats/torch.c", "compiler/formats/pickle.c") | {
        "PK\3\4", "PK\1\2", "PK\5\6", "PK\6\6", "PK\6\7"}, 4096),
    "quantized": (quantized, lambda: keys("compiler/formats/quantized.c"), 4096),
    "gguf": (gguf, lambda: strings("compiler/import/gguf*.c") | {"GGUF", "\x03\0\0\0"}, GGUF_BYTES),
    "attnw": (attnw, lambda: {"ATTNW\r\n\x1a"}, 512),
    "loader": (attnw, lambda: {"ATTNW\r\n\x1a"}, 512),
    "import": (folders, lambda: keys("compiler/import/*.c") | {
        "@shard\n", "@name ", "@part ", "@seq ", "@score ", "@index "},
               16384),
    "tokenizer": (tokenizer, lambda: keys("runtime/tokenizer/json*.c"), 16384),
    "pieces": (pieces, lambda: {"\x0a", "\x15", "\x18\x04", "\x12\x03", "\x1a\x02"}, 16384),
    "generate": (generate, lambda: {"\0\0\0\0", "\x01\0\0\0"}, 1024),
    "arena": (arena, lambda: {"\x09\0\0", "\x05\x0f\x7f"}, 768),
}


def write(folder, name):
    """The seeds of a target in folder/seeds, its dictionary in folder/words."""
    make, words, _ = TARGETS[name]
    os.makedirs(os.path.join(folder, "seeds"))
    for i, data in enumerate(make()):
        with open(os.path.join(folder, "seeds", "%03d" % i), "wb") as file:
            file.write(data)
    with open(os.path.join(folder, "words"), "w", encoding="ascii") as file:
        for word in sorted(words()):
            file.write('"%s"\n' % "".join(
                chr(b) if 32 <= b < 127 and b not in b'"\\' else "\\x%02x" % b for b in word.encode()))
