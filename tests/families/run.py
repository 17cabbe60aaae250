#!/usr/bin/env python3
"""families/NAME: the canonical tensors of NAME.attn and the file that transformers' class saves (NAME.public) meet as
NAME.tensors says: names, shapes, and what each cut leaves. families/NAME loads: attnc reads such a file through the
spec's `weights` block and gives the bits that it gives from the same numbers under canonical names.
specs/NAME: the spec is in its canonical layout and has the published number of parameters.
The goldens come from make_golden.py."""

import glob
import json
import os
import random
import re
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import npy, safetensors  # noqa: E402
from lib.attnc import attnc  # noqa: E402
from lib.tap import Report  # noqa: E402
from make_golden import HERE, attnc_weights, cut_shape, plain_shape, product, read_public  # noqa: E402

SPECS = os.path.join(HERE, "../../specs")


def layer(d, ff, inner=None, kv=None, bias=True, ff_matrices=2, norms=2, norm_bias=True, cross=False):
    """Parameters of one layer: attention of `inner` columns and `kv` key columns, ffn, norms."""
    inner, kv = inner or d, kv or inner or d
    attention = 2 * d * inner + 2 * d * kv + (2 * kv + inner + d if bias else 0)
    ffn = ff_matrices * d * ff + ((ff_matrices - 1) * ff + d if bias else 0)
    return attention * (2 if cross else 1) + ffn + norms * d * (2 if norm_bias else 1)


def vaswani(d):
    return 37000 * d + 6 * layer(d, 4 * d) + 6 * layer(d, 4 * d, norms=3, cross=True)


def bert(d, ff, layers, vocab, rows, segments, pooler):
    return (vocab + rows + segments) * d + 2 * d + layers * layer(d, ff) + (d * d + d if pooler else 0)


def vit(d):
    return 3 * 16 * 16 * d + d + d + 197 * d + 12 * layer(d, 4 * d) + 2 * d + 1000 * d + 1000


# The number of parameters: by arithmetic over the published configuration, and as transformers counts the public model.
COUNTS = {
    "vaswani_base": (vaswani(512), 63082496),  # the paper says 65 million
    "vaswani_big": (vaswani(1024), 214245376),  # 213 million
    "restricted": (vaswani(512), 63082496),
    "by_hand": (3 * 6 * 3, 54),
    "small_encoder": (64 * 32 + 2 * layer(32, 64) + 5 * 33, 19301),
    "bahdanau": (1000 * 1000 + 1000 * 2000 + 1000, 3001000),
    "luong": (1000 * 1000, 1000000),
    "minilm": (bert(384, 1536, 6, 30522, 512, 2, False), 22713216 - 384 * 385),  # BertModel with its pooler: 22713216
    "bert_base": (bert(768, 3072, 12, 30522, 512, 2, True), 109482240),
    "roberta_base": (bert(768, 3072, 12, 50265, 514, 1, False), 124645632 - 768 * 769),  # with a pooler: 124645632
    "distilbert_base": (bert(768, 3072, 6, 30522, 512, 0, False), 66362880),
    # Layer 0 has no norm before attention; there is a final norm instead.
    "modernbert_base": (50369 * 768 + 22 * layer(768, 1152, bias=False, ff_matrices=3, norm_bias=False), 149014272),
    "vit_base": (vit(768), 86567656),
    "deit_small": (vit(384), 22050664),
    "gpt2_small": ((50257 + 1024) * 768 + 12 * layer(768, 3072) + 2 * 768, 124439808),
    "tinyllama": (
        2 * 32000 * 2048 + 22 * layer(2048, 5632, kv=256, bias=False, ff_matrices=3, norm_bias=False) + 2048,
        1100048384,
    ),
    "llama2c_15m": (32000 * 288 + 6 * layer(288, 768, bias=False, ff_matrices=3, norm_bias=False) + 288, 15191712),
    "gemma2_2b": (256000 * 2304 + 26 * layer(2304, 9216, 2048, 1024, False, 3, 4, False) + 2304, 2614341888),
    "qwen3_0_6b": (
        151936 * 1024 + 28 * (layer(1024, 3072, 2048, 1024, False, 3, 2, False) + 2 * 128) + 1024,
        596049920,
    ),
    "mixtral_8x7b": (
        2 * 32000 * 4096
        + 32 * (layer(4096, 14336, None, 1024, False, 3, 2, False) + 7 * 3 * 4096 * 14336 + 8 * 4096)
        + 4096,
        46702792704,
    ),
    "t5_small": (
        32128 * 512
        + 2 * 32 * 8
        + 2 * 512
        + 6 * layer(512, 2048, bias=False, norm_bias=False)
        + 6 * layer(512, 2048, bias=False, norms=3, norm_bias=False, cross=True),
        60506624,
    ),
    "time_series": (2 * layer(16, 32) + 2 * layer(16, 32, norms=3, cross=True) + 2 * 2 * 16, 11200),
    "whisper_tiny": (
        384 * (3 * 80 + 1)
        + 384 * (3 * 384 + 1)
        + (1500 + 448 + 51865) * 384
        + 4 * (layer(384, 1536) - 384)  # a key has no bias
        + 4 * (layer(384, 1536, norms=3, cross=True) - 2 * 384)
        + 4 * 384,
        37760640,
    ),
}


def run(*words):
    return attnc(*words, status=0).stdout


def read_golden(name):
    """(canonical, shape, file's name, file's shape, cut) a line."""
    with open(os.path.join(HERE, name + ".tensors")) as f:
        for line in f:
            match = re.fullmatch(r"(\S+) (\[.*?\]) <- (\S+) (\[.*?\]) ?(.*)\n", line)
            assert match, "a bad line: " + line
            yield match.group(1), json.loads(match.group(2)), match.group(3), json.loads(match.group(4)), match.group(5)


def check_golden(name):
    ours, public, seen = attnc_weights(name), read_public(name), set()
    for canonical, shape, theirs, theirs_shape, cut in read_golden(name):
        assert ours.get(canonical) == shape, f"{canonical}: attnc has {ours.get(canonical)}, the golden {shape}"
        assert (
            public.get(theirs) == theirs_shape
        ), f"{theirs}: the file has {public.get(theirs)}, the golden {theirs_shape}"
        assert cut_shape(theirs_shape, cut) == plain_shape(
            shape
        ), f"{canonical}: the cut leaves {cut_shape(theirs_shape, cut)} of {theirs}"
        assert canonical not in seen, f"{canonical} stands twice"
        seen.add(canonical)
    assert seen == set(ours), f"not in the golden: {sorted(set(ours) - seen)}"


# ---------------------------------------------------------------- the same numbers under both names


def cut_values(shape, values, cut):
    """What CUT leaves of the numbers of a tensor of SHAPE."""
    shape = plain_shape(shape)
    width = product(shape[1:])
    rows = [values[i * width : (i + 1) * width] for i in range(shape[0])]
    words = cut.split()
    if words[:1] == ["transpose"]:
        rows, words = [list(column) for column in zip(*rows)], words[1:]
    if words[:1] == ["rows"]:
        begin, end = map(int, words[1].split(".."))
        rows = rows[begin:end]
    if words[:1] == ["interleaved"]:
        groups, parts, take = int(words[1]), int(words[3]), [int(n) for n in words[5].split("..")]
        rest = len(rows) // (groups * parts)
        rows = [row for i, row in enumerate(rows) if take[0] <= i // rest % parts < (take + [take[0] + 1])[1]]
    return [v for row in rows for v in row]


def check_loads(name):
    with open(os.path.join(HERE, name + ".attn")) as f:
        spec = f.read()
    draw = random.Random(name)
    public = {
        key: (shape, [draw.gauss(0, 0.3) for _ in range(product(shape))]) for key, shape in read_public(name).items()
    }
    canonical = {ours: (shape, cut_values(*public[theirs], cut)) for ours, shape, theirs, _, cut in read_golden(name)}
    with tempfile.TemporaryDirectory() as folder:
        tokens = [i * 7 % 50 for i in range(24)]
        inputs = ["source", "target"] if "encoder {" in spec and "decoder {" in spec else ["tokens"]
        if "input patches" in spec:
            inputs = ["pixels"]
            npy.write(folder + "/pixels.npy", [draw.gauss(0, 1) for _ in range(192)], (3, 8, 8), "<f4")
        else:
            for key in inputs:
                npy.write(f"{folder}/{key}.npy", tokens)
        outputs = (
            ["logits"]
            if re.search("head (logits|pool cls classifier)", spec)
            else ["hidden", "pooled"] if "head pooler" in spec else ["hidden"]
        )
        given = [word for key in inputs for word in ("--in", f"{key}={folder}/{key}.npy")]
        for kind, tensors in ("public", public), ("canonical", canonical):
            safetensors.write(f"{folder}/{kind}.safetensors", tensors)
            wanted = [word for key in outputs for word in ("--out", f"{key}={folder}/{kind}_{key}.npy")]
            run(
                "run",
                os.path.join(HERE, name + ".attn"),
                "--weights",
                f"{folder}/{kind}.safetensors",
                "--engine",
                "interp",
                *given,
                *wanted,
            )
        for key in outputs:
            with open(f"{folder}/public_{key}.npy", "rb") as a, open(f"{folder}/canonical_{key}.npy", "rb") as b:
                assert a.read() == b.read(), f"{key} differs"


def check_spec(path):
    name = os.path.basename(path)[:-5]
    with open(path) as f:
        assert run("fmt", path) == f.read(), "not as attnc fmt writes it"
    count = int(re.search(r"(\d+) parameters", run("weights", path)).group(1))
    assert name in COUNTS, "no count is written down"
    computed, published = COUNTS[name]
    assert count == computed == published, f"{count} parameters; by arithmetic {computed}, published {published}"


def main():
    families, published = Report("families"), Report("specs")
    for path in sorted(glob.glob(HERE + "/*.attn")):
        name = os.path.basename(path)[:-5]
        families.attempt(name, check_golden, name)
        families.attempt(name + " loads", check_loads, name)
    for path in sorted(glob.glob(SPECS + "/*.attn")):
        published.attempt(os.path.basename(path)[:-5], check_spec, path)
    return families.finish() | published.finish()


if __name__ == "__main__":
    sys.exit(main())
