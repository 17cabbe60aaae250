#!/usr/bin/env python3
"""GGUF files: the numbers of every block format, what a header may say, and what is refused. tests/parity imports whole
models from such files. TAP on stdout."""
import array
import json
import os
import random
import re
import struct
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import gguf, safetensors  # noqa: E402
from lib.attnc import Failed, attnc, compile_once  # noqa: E402
from lib.tap import run_tests  # noqa: E402
from parity import gguf as models  # noqa: E402

VOCAB, WIDTH, HIDDEN, CONTEXT = 40, 256, 512, 16
SPEC = """model m { d_model %d, vocab %d, norm rmsnorm pre, bias none
decoder { seq <= 8, layers 1 { attention self { heads 4, kv_heads 2, mask causal, position rope }
ffn { d_ff %d, activation silu gated } } }
head logits
weights {
"decoder.embedding.tokens.weight" from "token_embd.weight"
"decoder.layers.0.attention.norm_in.*" from "blk.0.attn_norm.*"
"decoder.layers.0.ffn.norm_in.*" from "blk.0.ffn_norm.*"
"decoder.layers.0.attention.query.*" from "blk.0.attn_q.*"
"decoder.layers.0.attention.key.*" from "blk.0.attn_k.*"
"decoder.layers.0.attention.value.*" from "blk.0.attn_v.*"
"decoder.layers.0.attention.output.*" from "blk.0.attn_output.*"
"decoder.layers.0.ffn.gate.*" from "blk.0.ffn_gate.*"
"decoder.layers.0.ffn.up.*" from "blk.0.ffn_up.*"
"decoder.layers.0.ffn.down.*" from "blk.0.ffn_down.*"
"decoder.final_norm.*" from "output_norm.*"
"head.weight" from "output.weight" } }
""" % (WIDTH, VOCAB, HIDDEN)
SHAPES = {"token_embd.weight": [VOCAB, WIDTH], "output_norm.weight": [WIDTH], "output.weight": [VOCAB, WIDTH],
          "blk.0.attn_norm.weight": [WIDTH], "blk.0.ffn_norm.weight": [WIDTH], "blk.0.attn_q.weight": [WIDTH, WIDTH],
          "blk.0.attn_k.weight": [WIDTH // 2, WIDTH], "blk.0.attn_v.weight": [WIDTH // 2, WIDTH],
          "blk.0.attn_output.weight": [WIDTH, WIDTH], "blk.0.ffn_gate.weight": [HIDDEN, WIDTH],
          "blk.0.ffn_up.weight": [HIDDEN, WIDTH], "blk.0.ffn_down.weight": [WIDTH, HIDDEN]}
KEYS = {"general.architecture": "llama", "llama.embedding_length": WIDTH, "llama.block_count": 1,
        "llama.feed_forward_length": HIDDEN, "llama.attention.head_count": 4, "llama.attention.head_count_kv": 2,
        "llama.context_length": CONTEXT, "llama.attention.layer_norm_rms_epsilon": 1e-5}
# Of Q6_K and others where a file mixes types, as llama.cpp's Q4_K_M does.
PARITY = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "parity", "fixtures")
LATENT = {"general.architecture": "deepseek2", "deepseek2.embedding_length": 64, "deepseek2.block_count": 1,
          "deepseek2.feed_forward_length": 32, "deepseek2.attention.head_count": 2, "deepseek2.context_length": CONTEXT,
          "deepseek2.attention.layer_norm_rms_epsilon": 1e-5, "deepseek2.attention.kv_lora_rank": 64,
          "deepseek2.rope.dimension_count": 32, "deepseek2.attention.key_length": 64,
          "deepseek2.attention.value_length": 32, "deepseek2.expert_count": 4, "deepseek2.expert_used_count": 2,
          "deepseek2.expert_feed_forward_length": 32}
LATENT_SHAPES = {
    "token_embd.weight": [VOCAB, 64], "output_norm.weight": [64], "blk.0.attn_norm.weight": [64],
    "blk.0.ffn_norm.weight": [64], "blk.0.attn_q.weight": [128, 64], "blk.0.attn_kv_a_mqa.weight": [96, 64],
    "blk.0.attn_kv_a_norm.weight": [64], "blk.0.attn_kv_b.weight": [128, 64], "blk.0.attn_k_b.weight": [2, 64, 32],
    "blk.0.attn_v_b.weight": [2, 32, 64], "blk.0.attn_output.weight": [64, 64], "blk.0.ffn_gate_inp.weight": [4, 64],
    "blk.0.ffn_gate_exps.weight": [4, 32, 64], "blk.0.ffn_up_exps.weight": [4, 32, 64],
    "blk.0.ffn_down_exps.weight": [4, 64, 32]}
MIXED = {"output.weight": "Q6_K", "blk.0.attn_v.weight": "Q6_K", "token_embd.weight": "Q4_K"}


def elements(shape):
    count = 1
    for dim in shape:
        count *= dim
    return count


def floats(count, chance):
    return struct.pack("<%df" % count, *(chance.uniform(-1, 1) for _ in range(count)))


def numbers_of(kind, count, chance):
    if kind not in ("F16", "BF16"):
        return floats(count, chance) if kind == "F32" else gguf.blocks(kind, count, chance)
    narrow = struct.pack("<%de" % count, *(chance.uniform(-1, 1) for _ in range(count)))
    return narrow if kind == "F16" else array.array("H", array.array("H", floats(count, chance))[1::2]).tobytes()


def tensors(kind="Q8_0", chance=None, mixed=None, shapes=None):
    """Matrices of this kind, or of `mixed`, and vectors of F32."""
    chance, made = chance or random.Random(1), []
    for name, shape in (shapes or SHAPES).items():
        own = "F32" if len(shape) == 1 else (mixed or {}).get(name, kind)
        made.append((name, shape, own, numbers_of(own, elements(shape), chance)))
    return made


class Files:
    def __init__(self, folder):
        self.folder = folder
        self.spec, self.path, self.out = (os.path.join(folder, n) for n in ("m.attn", "m.gguf", "out.safetensors"))
        with open(self.spec, "w", encoding="utf-8") as file:
            file.write(SPEC)

    def put(self, data):
        with open(self.path, "wb") as file:
            file.write(data)

    def put_model(self, keys=None, made=None, **more):
        whole = {**KEYS, **(keys or {})}
        self.put(gguf.pack([(k, v) for k, v in whole.items() if v is not None], made or tensors(), **more))

    def refused(self, *parts, command=None):
        """Each part is in the one line of the error, and no spec is left behind."""
        spec = os.path.join(self.folder, "none.attn")
        done = attnc(*(command or ("import", self.path, "-o", spec)), status=1)
        for part in (self.path, *parts):
            if part not in done.stderr:
                raise Failed("`%s` is not in: %s" % (part, done.stderr))
        if os.path.exists(spec):
            raise Failed("a spec is left behind")

    # ------------------------------------------------------------ numbers

    def compare(self, made, *more):
        """What attnc reads is what the formulas say, bit for bit, but for the sign of a zero in a precision."""
        attnc("weights", self.spec, "--weights", self.path, "-o", self.out, *more, status=0)
        header, data = safetensors.read(self.out)
        names = dict(re.findall(r'^"(\S+)" from "(\S+)"', SPEC, re.M))
        held = {}
        for name in header:
            stem = next((s for s in names if s == name or s.endswith(".*") and name.startswith(s[:-1])), None)
            held[names[stem].replace("*", name[len(stem) - 1:])] = name
        for name, shape, kind, body in made:
            entry = header[held[name]]
            begin, end = entry["data_offsets"]
            wanted = body if kind == "F32" else array.array("f", gguf.numbers(kind, body)).tobytes()
            same = array.array("f", data[begin:end]) == array.array("f", wanted) if more else data[begin:end] == wanted
            if entry["shape"] != shape or not same:
                raise Failed("%s of %s differs" % (name, kind))

    def test_block_formats(self):
        for kind in gguf.HALVES:
            made = tensors(kind, random.Random(kind))
            self.put(gguf.pack([], made))
            self.compare(made)

    def test_kept_exactly(self):
        """Groups of integers hold the numbers of these formats, once they are rounded to them."""
        for kind, precision in (("Q8_0", "int8:32:halves"), ("Q4_0", "int4:32:halves"), ("Q5_0", "int8:32:halves"),
                                ("IQ4_NL", "int8:32:halves"), ("MXFP4", "int8:32")):
            made = tensors(kind, random.Random(kind))
            if kind == "MXFP4":  # whose least scales are smaller than those of a group
                made = [(n, s, k, re.sub(b"(?s)(.)(.{16})", lambda m: bytes([max(m[1][0], 9)]) + m[2], b)
                         if k == kind else b) for n, s, k, b in made]
            self.put(gguf.pack([], made))
            self.compare(made, "--precision", "weights=" + precision)

    def test_precision_of_the_spec(self):
        """An imported spec states the precisions that hold the file's numbers, and a note names the other types."""
        for kind, mixed, wanted, noted in (
                ("Q8_0", {}, ["int8 32 halves"], ""), ("MXFP4", {}, ["int8 32"], ""), ("Q4_K", {}, [], "Q4_K"),
                ("F16", {}, ["f16"], ""), ("BF16", {}, ["bf16"], ""), ("F32", {}, [], ""),
                ("F16", {"output.weight": "Q6_K"}, ["f16"], "Q6_K"),
                ("F16", {"blk.0.ffn_up.weight": "BF16"}, ["f16", "f32", "f16"], ""),
                ("Q4_0", {"output.weight": "Q6_K", "token_embd.weight": "Q8_0"},
                 ["int8 32 halves", "int4 32 halves", "int4 32 halves"], "Q6_K"),
                ("Q4_0", {"output.weight": "Q8_0", "token_embd.weight": "F32"},
                 ["int8 32 halves", "f32", "int4 32 halves", "int4 32 halves"], ""),
                ("Q8_0", {"blk.0.ffn_down.weight": "Q4_0"}, ["int8 32 halves", "int4 32 halves"], ""),
                ("Q8_0", {"blk.0.ffn_up.weight": "Q4_0"}, ["int8 32 halves"], ""),
                ("Q8_0", {"blk.0.ffn_up.weight": "Q4_K"}, ["int8 32 halves", "f32", "int8 32 halves"], "Q4_K")):
            self.put_model(made=tensors(kind, random.Random(5), mixed))
            found, said = self.stated()
            if found != wanted or ("Only f32 holds the numbers of %s:" % noted in said) != bool(noted):
                raise Failed("%s %s: %s, and %s" % (kind, mixed, found, said))

    def test_chat_template(self):
        """It is not applied, and one note says so."""
        for template, wanted in ((None, 0), ("{{ messages }}", 1)):
            self.put_model({"tokenizer.chat_template": template})
            _, said = self.stated()
            if said.count("The chat template of `tokenizer.chat_template` is not applied yet") != wanted:
                raise Failed(said)

    def test_bytes_of_f32(self):
        """The note of a file whose numbers only f32 holds has the bytes of the weights, as f32 and as integers, which
        are those of the packed weights but for their padding and tables."""
        self.put_model(made=tensors("Q4_K", random.Random(5), MIXED))
        for words in ((), ("--nearest",)):
            _, said = self.stated(*words)
            spec, packed = (os.path.join(self.folder, name) for name in ("stated.attn", "stated.attnw"))
            attnc("pack", spec, "--weights", self.path, "-o", packed, status=0)
            if not words:
                found = re.search(r"take (\d+) bytes, of a file of (\d+) bytes; import --nearest states the nearest "
                                  r"integers, which take (\d+) bytes", said)
                if not found or int(found[2]) != os.path.getsize(self.path):
                    raise Failed(said)
            told, size = int(found[3 if words else 1]), os.path.getsize(packed)
            if not told <= size <= told + 16384:
                raise Failed("%d bytes are packed, and import says: %s" % (size, said))
        if "take" in said:
            raise Failed(said)

    def stated(self, *words):
        """The precisions that the imported spec states, in its order, and what import says."""
        spec = os.path.join(self.folder, "stated.attn")
        said = attnc("import", self.path, "-o", spec, *words, status=0).stderr
        with open(spec, encoding="utf-8") as file:
            return re.findall(r"precision weights ([\w ]*\w)", file.read()), said

    def test_nearest_precisions(self):
        """With --nearest, numbers that only f32 holds become the integers that the documentation promises, and differ
        from those of the file by no more than it says."""
        for kind, mixed, wanted, noted in (
                ("Q4_K", {}, ["int4 32 offset halves"], "Q4_K by weights=int4:32:offset:halves"),
                ("Q4_1", {}, ["int4 32 offset halves"], "Q4_1 by weights=int4:32:offset:halves"),
                ("Q6_K", {}, ["int8 32 halves"], "Q6_K by weights=int8:32:halves"),
                ("Q5_K", {}, ["int8 32 halves"], "Q5_K by weights=int8:32:halves"),
                ("Q5_1", {}, ["int8 32 halves"], "Q5_1 by weights=int8:32:halves"),
                ("Q8_0", {}, ["int8 32 halves"], ""),
                ("Q4_K", {"blk.0.ffn_down.weight": "Q6_K", "output.weight": "Q6_K"},
                 ["int8 32 halves", "int4 32 offset halves", "int8 32 halves"], "Q6_K by weights=int8:32:halves")):
            made = tensors(kind, random.Random(8), mixed)
            self.put_model(made=made)
            found, said = self.stated("--nearest")
            if found != wanted or noted not in said or ("are rounded" in said) != bool(noted):
                raise Failed("%s %s: %s, and %s" % (kind, mixed, found, said))
            self.near(made)

    def near(self, made):
        """Compares the weights of the stated spec with the file's numbers. Columns behind a norm count by its weights,
        which are random: their integers may differ further, and are not compared where the search weighs them."""
        path = os.path.join(self.folder, "near.safetensors")
        attnc("weights", os.path.join(self.folder, "stated.attn"), "--weights", self.path, "-o", path, status=0)
        header, data = safetensors.read(path)
        file = {name: (kind, body) for name, _, kind, body in made}
        for name, own in (("decoder.layers.0.ffn.down.weight", "blk.0.ffn_down.weight"),
                          ("decoder.layers.0.attention.value.weight", "blk.0.attn_v.weight")):
            kind, wanted = file[own][0], gguf.numbers(*file[own])
            begin, end = header[name]["data_offsets"]
            got = array.array("f", data[begin:end])
            for at in range(0, len(wanted), 32):
                group = wanted[at:at + 32]
                largest, width = max(map(abs, group)), max(group) - min(group)
                far = [abs(a - b) for a, b in zip(got[at:at + 32], group)]
                if kind == "Q8_0":
                    fine = not any(far)
                elif kind in ("Q4_K", "Q4_1"):
                    fine = max(far) <= (largest + width) / 1024
                else:  # where f16 holds the scale with 11 bits
                    fine = largest < 0.01 or "down" not in own or sum(x * x for x in far) <= 32 * (largest / 250) ** 2
                if not fine:
                    raise Failed("%s of %s differs by %r in %r" % (name, kind, far, list(group)))

    def test_mixed_formats(self):
        made = tensors("Q4_K", random.Random(7), MIXED)
        self.put(gguf.pack([], made, alignment=32))
        self.compare(made)

    def test_version_2_and_wide_alignment(self):
        made = tensors("Q4_0")
        self.put(gguf.pack([("general.alignment", 4096)], made, version=2, alignment=4096))
        self.compare(made)

    # ------------------------------------------------------------ import

    def test_import_and_run(self):
        """The file of an imported spec is its --weights, and both engines agree."""
        self.put_model(made=tensors("Q4_0", random.Random(3)))
        spec = os.path.join(self.folder, "imported.attn")
        attnc("import", self.path, "-o", spec, status=0)
        attnc("check", spec, "--weights", self.path, "--lengths", "5", status=0)

    def test_listed(self):
        """--list names the architectures."""
        listed = attnc("import", "--list", status=0).stdout
        for word in ("gguf llama", "gguf gemma3", "gguf bert"):
            if not re.search("^%s +" % word, listed, re.M):
                raise Failed("`%s` is not in:\n%s" % (word, listed))

    def test_values_of_every_type(self):
        """A size may have any type of whole number."""
        for kind in (gguf.U8, gguf.I8, gguf.U16, gguf.I16, gguf.U32, gguf.I32, gguf.U64, gguf.I64, gguf.F32, gguf.F64):
            self.put_model({"llama.block_count": (kind, 1), "general.size_label": "x", "other.list": [1, 2],
                            "other.words": ["a", "b"], "llama.attention.layer_norm_rms_epsilon": (gguf.F64, 1e-5)})
            spec = os.path.join(self.folder, "typed.attn")
            attnc("import", self.path, "-o", spec, status=0)
            with open(spec, encoding="utf-8") as file:
                if "eps 1e-5" not in file.read():
                    raise Failed("the spec lacks `eps 1e-5`")

    def imported(self, *parts, unsaid=()):
        spec = os.path.join(self.folder, "imported.attn")
        attnc("import", self.path, "-o", spec, status=0)
        with open(spec, encoding="utf-8") as file:
            text = file.read()
        for part in parts:
            if part not in text:
                raise Failed("`%s` is not in:\n%s" % (part, text))
        for part in unsaid:
            if part in text:
                raise Failed("`%s` is in:\n%s" % (part, text))
        return spec

    def put_latent(self, without, kind="Q8_0", keys=None):
        shapes = {name: shape for name, shape in LATENT_SHAPES.items() if not name.startswith(without)}
        made = tensors(kind, random.Random(11), {"blk.0.ffn_gate_inp.weight": "F32"}, shapes)
        self.put(gguf.pack([(k, v) for k, v in {**LATENT, **(keys or {})}.items() if v is not None], made))

    def test_latent_precision(self):
        """The blocks of keys that are transposed lie across the groups of a precision, and heads apart keep theirs."""
        for without, attention in ((("blk.0.attn_kv_b",), "int8 32 halves"), (("-",), "int8 32 halves"),
                                   (("blk.0.attn_k_b", "blk.0.attn_v_b"), "f32")):
            self.put_latent(without)
            spec = self.imported("precision weights int8 32 halves", "router softmax\n", "head logits tied",
                                 *(["attention self {", "precision weights f32"] if attention == "f32" else []),
                                 unsaid=["shared_expert"] if attention == "f32" else ["weights f32", "shared_expert"])
            attnc("check", spec, "--weights", self.path, "--lengths", "5", status=0)

    def test_latent_models(self):
        """What a file of DeepSeek may say of its experts, and what it may not."""
        def changed(**keys):
            named = {"deepseek2." + key.replace("__", "."): value for key, value in keys.items()}
            self.put_latent(("blk.0.attn_kv_b",), keys=named)
        changed(expert_group_count=2, expert_group_used_count=2)
        self.imported("groups 2 top_groups 2", "adds up the two best")
        changed(expert_gating_func=2, expert_group_count=2, expert_group_used_count=1, expert_weights_norm=True)
        self.imported("router sigmoid renormalized groups 2", unsaid=["corrected", "adds up"])
        changed(expert_weights_scale=0.0, attention__q_lora_rank=0, rope__scaling__type="yarn",
                rope__scaling__factor=2.0)
        self.imported("scaling yarn factor 2 original 16\n", unsaid=["\n        scale ", "router softmax scale"])
        changed(rope__scaling__type="yarn", rope__scaling__factor=2.0, rope__scaling__yarn_log_multiplier=0.1)
        self.imported("scale 1.143", "/sqrt(64)", "attention_factor 1")
        for keys, words in (({"expert_gating_func": 3}, "`expert_gating_func` is neither 1"),
                            ({"rope__scaling__yarn_log_multiplier": 0.1}, "without scaling of type yarn"),
                            ({"rope__scaling__type": "yarn", "rope__scaling__factor": 2.0,
                              "rope__scaling__yarn_log_multiplier": 0.1, "rope__scaling__yarn_attn_factor": 1.0},
                             "`rope.scaling.yarn_attn_factor` beside"),
                            ({"attention__key_length": 32}, "makes no valid spec"),
                            ({"attention__value_length": 16}, "has the shape"),
                            ({"attention__kv_lora_rank": None}, "`attention.kv_lora_rank` is missing"),
                            ({"leading_dense_block_count": 1}, "no tensor `blk.0.ffn_gate.weight`"),
                            ({"expert_shared_count": 1}, "no tensor `blk.0.ffn_gate_shexp.weight`"),
                            ({"attention__temperature_scale": 0.1}, "`attention.temperature_scale`"),
                            ({"expert_count": 0}, "`expert_count` is 0")):
            changed(**keys)
            self.refused(words)

    def test_encoder_decoders(self):
        """T5 with a head of its own, a table in each layer, and what its file may not say."""
        def put(name, keys=(), more=()):
            self.put(models.convert(os.path.join(PARITY, name), keys, more))
        put("t5_odd")
        self.imported("embedding tied", "scale 1/sqrt(d_model)", "llama.cpp does not",
                      unsaid=["per_layer"])
        head = ("output.weight", [37, 15], [0.5] * 37 * 15)
        put("t5_odd", (), [head])
        self.imported('"head.weight" from "output.weight"', '"decoder.embedding.tokens.weight"',
                      unsaid=["scale 1/sqrt", "llama.cpp"])
        put("t5_odd", (), [("dec.blk.0.cross_attn_rel_b.weight", [8, 3], [1.0] * 24)])
        self.imported(unsaid=["unused"])
        put("umt5_plain")
        self.imported("position relative per_layer buckets 8 distance 128")
        put("t5_encoder")
        self.imported("t5encoder", unsaid=["decoder {", "head "])
        for keys, words in (({"t5.decoder_block_count": 2}, "no tensor `dec.blk.1."),
                            ({"t5.attention.value_length": 5}, "`attention.value_length` differs"),
                            ({"t5.attention.relative_buckets_count": None}, "relative_buckets_count` is missing"),
                            ({"t5.attention.head_count_kv": 1}, "`attention.head_count_kv` is not")):
            put("t5_odd", keys.items())
            self.refused(words)

    def test_nomic(self):
        def put(keys):
            self.put(models.convert(os.path.join(PARITY, "nomic_bert_odd"), keys.items()))
        put({"nomic-bert.pooling_type": 1})
        self.imported("head pool mean l2", "rope theta 1000", "segments 2")
        for keys, words in (({"nomic-bert.moe_every_n_layers": 2}, "`moe_every_n_layers` (2) is unknown"),
                            ({"nomic-bert.attention.causal": True}, "`attention.causal` is true"),
                            ({"nomic-bert.attention.head_count_kv": 1}, "`attention.head_count_kv` is not"),
                            ({"nomic-bert.pooling_type": 4}, "for ranks")):
            put(keys)
            self.refused(words)

    # ------------------------------------------------------------ headers

    def test_versions(self):
        for version, words in ((1, "version 1"), (4, "version 4"), (3 << 24, "big-endian")):
            self.put_model(version=version)
            self.refused(words)

    def test_cut_anywhere(self):
        """A file that ends early is refused wherever it ends."""
        small = [("a", [32], "Q8_0", bytes(34)), ("b", [2, 2], "F32", bytes(16))]
        whole = gguf.pack([("general.architecture", "llama"), ("x", ["ab", "c"]), ("y", 1)], small)
        for size in range(len(whole)):
            self.put(whole[:size])
            self.refused(command=("weights", self.spec, "--weights", self.path, "-o", self.out))

    def test_absurd_counts(self):
        head = b"GGUF" + struct.pack("<I", 3)
        for counts in ((1 << 60, 0), (0, 1 << 60), (1 << 63, 1 << 63)):
            self.put(head + struct.pack("<QQ", *counts) + bytes(200))
            self.refused("more than the file can hold")
        self.put(head + struct.pack("<QQ", 0, 1) + gguf.string("k") + struct.pack("<IIQ", 9, 8, 1 << 61) + bytes(64))
        self.refused("`k` has 2305843009213693952 items")
        self.put(head + struct.pack("<QQ", 0, 1) + struct.pack("<Q", 1 << 40) + bytes(64))
        self.refused("a key has 1099511627776 bytes")

    def test_bad_keys(self):
        for items, words in (([("k", 1), ("k", 2)], "the key `k` is there twice"),
                             ([("k\n", 1)], "holds a control character"), ([(b"a\0b", 1)], "holds a NUL"),
                             ([("k", [[1]])], "an array of arrays"),
                             ([("general.alignment", 48)], "is not a power of two"),
                             ([("general.alignment", "x")], "is not a power of two")):
            self.put(gguf.pack(items, []))
            self.refused(words)
        self.put(gguf.pack([("k", 1)], []).replace(struct.pack("<II", gguf.U32, 1), struct.pack("<II", 77, 1)))
        self.refused("`k` has the unknown type 77")

    def test_bad_tensors(self):
        good = ("a", [2, 32], "Q8_0", bytes(68))
        for made, words in (([good, good], "`a`: it is there twice"), ([("a", [2, 33], "Q8_0", bytes(68))],
                             "rows of 33 numbers are not blocks of 32"),
                            ([("a", [1] * 9, "F32", bytes(4))], "it has 9 dims"),
                            ([("a", [1 << 62, 32], "Q8_0", bytes(34))], "`a`: "),
                            ([("a", [1 << 40, 1 << 40], "F32", bytes(34))], "overflows"),
                            ([("a\x7f", [2], "F32", bytes(8))], "holds a control character")):
            self.put(gguf.pack([], made))
            self.refused(words)
        overlapping = gguf.pack([], [good, ("b", [32], "Q8_0", bytes(34))])
        at = overlapping.index(struct.pack("<IQ", 8, 96)) + 4
        self.put(overlapping[:at] + struct.pack("<Q", 32) + overlapping[at + 8:])
        self.refused("`b`: it overlaps tensor `a`")
        self.put(overlapping[:at] + struct.pack("<Q", 33) + overlapping[at + 8:])
        self.refused("no multiple of the alignment")

    # ------------------------------------------------------------ models

    def test_bad_models(self):
        for keys, words in (({"general.architecture": None}, "`general.architecture` is missing"),
                            ({"general.architecture": 7}, "`general.architecture` is no string"),
                            ({"general.architecture": "mamba"}, "\"mamba\", which import does not read"),
                            ({"llama.block_count": None}, "the key `block_count` is missing"),
                            ({"llama.block_count": 0}, "`block_count` is 0"),
                            ({"llama.block_count": [1, 1]}, "`block_count` is [1, …]"),
                            ({"llama.block_count": 2}, "no tensor `blk.1."),
                            ({"llama.feed_forward_length": 256}, "has the shape [512, 256]"),
                            ({"llama.unheard_of": 1}, "`unheard_of` (1) is unknown for architecture `llama`"),
                            ({"llama.a.b": 1, "llama.a": 1}, "other keys are inside of `llama.a`"),
                            ({"llama.a": 1, "llama.a.b": 1}, "`llama.a.b` is inside of a key with a value"),
                            ({"llama." + "a." * 9: 1}, "more than 8 dots"), ({"llama." + "a" * 300: 1}, "200 bytes"),
                            ({"llama.many": [1] * 5000}, "array of 5000 numbers"),
                            ({"llama.rope.scaling.type": "x" * 2000}, "a string of 2000 bytes"),
                            ({"llama.rope.scaling.type": "new"}, "`rope.scaling.type` is \"new\""),
                            ({"llama.attention.layer_norm_rms_epsilon": float("nan")}, "layer_norm_rms_epsilon"),
                            ({"llama.expert_count": 8}, "`expert_count` needs `expert_used_count`"),
                            ({"llama.expert_count": 8, "llama.expert_used_count": 2},
                             "no tensor `blk.0.ffn_gate_inp.weight`"),
                            ({"llama.attention.value_length": 32}, "`attention.value_length` differs"),
                            ({"llama.rope.dimension_count": 128}, "more than the 64 columns of a head"),
                            ({"llama.vocab_size": 41}, "`llama.vocab_size` is 41, and `token_embd.weight` has 40 rows"),
                            ({"tokenizer.ggml.tokens": ["a", "b"]}, "has 2 tokens, and `token_embd.weight` has 40"),
                            ({"split.count": (gguf.U16, 3), "split.no": (gguf.U16, 0)}, "-00001-of-00003.gguf`"),
                            ({"split.count": (gguf.U16, 3), "split.no": (gguf.U16, 1)}, "it is part 2 of 3"),
                            ({"split.count": "3"}, "`split.count` is no whole number")):
            self.put_model(keys)
            self.refused(words)

    def put_parts(self, parts, changes=None, made=None):
        """The parts of a model, with changes to the keys of some of them; the path is that of the first one."""
        made = made or tensors()
        stem = os.path.join(self.folder, "part")
        for i in range(parts):
            path = "%s-%05d-of-%05d.gguf" % (stem, i + 1, parts)
            keys = {**({} if i else KEYS), "split.no": (gguf.U16, i), "split.count": (gguf.U16, parts),
                    "split.tensors.count": (gguf.I32, len(made)), **(changes or {}).get(i, {})}
            own = made[i * len(made) // parts:(i + 1) * len(made) // parts]
            with open(path, "wb") as file:
                file.write(gguf.pack([(k, v) for k, v in keys.items() if v is not None], own))
        self.path = "%s-00001-of-%05d.gguf" % (stem, parts)
        return ["%s-%05d-of-%05d.gguf" % (stem, i + 1, parts) for i in range(parts)]

    def test_parts(self):
        """The parts of a split file hold the numbers of the whole."""
        made = tensors("Q4_0", random.Random(21))
        for parts in (2, 3, 12):
            self.put_parts(parts, made=made)
            spec = self.imported("int4 32 halves")
            attnc("check", spec, "--weights", self.path, "--lengths", "5", status=0)
            self.compare(made)

    def test_bad_parts(self):
        """A part that is missing, contradictory or doubled is named with its file."""
        weights = ("weights", self.spec, "--weights", None, "-o", self.out)
        for changes, second, words in (({1: {"split.no": (gguf.U16, 2)}}, True, "part 3 of 3, and its name says"),
                                       ({1: {"split.count": (gguf.U16, 2)}}, True, "part 2 of 2, and its name says"),
                                       ({1: {"split.no": None}}, True, "it says that it is part 0 of 3"),
                                       ({0: {"split.no": None}}, False, "it is part 0 of 3"),
                                       ({2: {"split.tensors.count": (gguf.I32, 9)}}, None, "is 9, and the parts have")):
            paths = self.put_parts(3, changes)
            for command in (None, weights):
                named = paths[0 if second is False else 1 if second else 2]
                first = self.path
                given = command and tuple(first if word is None else word for word in command)
                self.path = named
                self.refused(words, command=given or ("import", first, "-o", os.path.join(self.folder, "none.attn")))
                self.path = first
        paths = self.put_parts(3)
        self.path = paths[1]
        self.refused("it is part 2 of 3 of a model", "give the first one")
        for bad in (None, b"GGU"):
            paths = self.put_parts(3)
            if bad is None:
                os.remove(paths[2])
            else:
                with open(paths[2], "wb") as file:
                    file.write(bad)
            self.refused(paths[2], "no such file, which is part 3 of 3" if bad is None else "it is no GGUF file")
        made = tensors()
        self.put_parts(3, made=made + [made[0]])
        self.refused("`token_embd.weight`", "it is also in")

    def test_many_keys(self):
        """A hundred thousand keys of the architecture are refused before they are looked through."""
        self.put_model({"llama.k%d" % i: 1 for i in range(100000)})
        self.refused("more than 1000 keys of the architecture `llama`")
        self.put_model({"other.k%d" % i: 1 for i in range(100000)})
        attnc("import", self.path, "-o", os.path.join(self.folder, "many.attn"), status=0)

    def test_tensors_that_no_spec_reads(self):
        """A tensor that the architecture does not have would change results."""
        self.put_model(made=tensors() + [("blk.0.attn_sinks.weight", [4], "F32", bytes(16))])
        self.refused("it holds 1 tensor that the spec does not use: `blk.{layer}.attn_sinks.weight`")
        self.put_model(made=tensors() + [("rope_freqs.weight", [32], "F32", bytes(128))])
        self.refused("number 0 of tensor `rope_freqs.weight` is 0")

    def test_types_that_nobody_reads(self):
        """A matrix of such a type is refused with its name and type, and left out where the spec does not read it."""
        for kind, size, words in ((10, 84, "type 10 (Q2_K) is not read"), (77, 5, "type 77 (unknown to attnc)")):
            made = tensors()
            name, shape = next((name, shape) for name, shape, *_ in made if len(shape) == 2)
            self.put_model(made=[(name, shape, kind, bytes(size)) if t[0] == name else t for t in made])
            self.refused("tensor `%s`" % name, words)
            self.put_model(made=made)
            attnc("weights", self.spec, "--weights", self.path, "-o", self.out, status=0)
            with open(self.out, "rb") as file:
                wanted = file.read()
            self.put_model(made=made + [("spare", [2, 256], kind, bytes(size))])
            attnc("weights", self.spec, "--weights", self.path, "-o", self.out, status=0)
            with open(self.out, "rb") as file:
                if file.read() != wanted:
                    raise Failed("the weights differ beside a tensor of %s" % words)

    def test_types_of_equal_bytes(self):
        """In a folder's model.safetensors too, which may be any file: equal bytes of two types are other numbers."""
        folder = os.path.join(self.folder, "hf")
        os.makedirs(folder)
        names = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
        layer = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj",
                 "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
                 "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
        names.update({"blk.0." + old: "model.layers.0." + new for old, new in layer.items()})
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            json.dump({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": VOCAB,
                       "hidden_size": WIDTH, "intermediate_size": HIDDEN, "num_hidden_layers": 1,
                       "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": CONTEXT,
                       "tie_word_embeddings": True}, file)
        for head, own in (("Q4_0", False), ("IQ4_NL", True), ("Q8_0", True)):
            made = [("%s.weight" % names[n[:-len(".weight")]], shape, kind, body) for n, shape, kind, body in
                    tensors("Q4_0", random.Random(9), {"output.weight": head})]
            table = next(body for name, _, _, body in made if name == "model.embed_tokens.weight")
            made = [(n, s, k, table if n == "lm_head.weight" and head != "Q8_0" else b) for n, s, k, b in made]
            with open(os.path.join(folder, "model.safetensors"), "wb") as file:
                file.write(gguf.pack([], made))
            said = attnc("import", folder, "-o", os.path.join(self.folder, "hf.attn"), status=0).stderr
            if ("it is the head" in said) != own:
                raise Failed("%s: %s" % (head, said))

    def test_yarn(self):
        """What files say of a yarn: as the converter of llama.cpp writes it, and what it may not be."""
        scaling = "llama.rope.scaling."
        yarn = {scaling + "type": "yarn", scaling + "factor": 2.0, scaling + "original_context_length": 8}
        self.put_model({**yarn, scaling + "yarn_beta_fast": 32.0, scaling + "yarn_beta_slow": 1.0,
                        scaling + "yarn_ext_factor": 1.0})
        self.imported("scaling yarn factor 2 original 8 interleaved", unsaid=["beta", "llama.cpp"])
        self.put_model({**yarn, scaling + "yarn_beta_fast": 16.0, scaling + "yarn_beta_slow": 2.0,
                        scaling + "yarn_attn_factor": 1.5})
        spec = self.imported("beta_fast 16 beta_slow 2 attention_factor 1.5", "llama.cpp computes that number",
                             "llama.cpp takes 32 and 1")
        attnc("check", spec, "--weights", self.path, "--lengths", "5", status=0)
        self.put_model({scaling + "yarn_ext_factor": 0.0, scaling + "yarn_beta_fast": 16.0})
        self.imported("position rope", unsaid=["scaling"])
        self.put_model({**yarn, scaling + "yarn_ext_factor": 0.5})
        self.refused("`rope.scaling.yarn_ext_factor` is not 1")

    def test_windows(self):
        """A window of 0 rows is none."""
        for rows, line in ((4, "window 4"), (0, None)):
            self.put_model({"llama.attention.sliding_window": rows})
            self.imported(*([line] if line else []), unsaid=[] if line else ["window"])

    def test_divisors(self):
        """Lists of divisors stand together, and not beside another way to scale."""
        ones = struct.pack("<32f", *[1.0] * 32)
        long, short, both = [("rope_%s.weight" % name, [32], "F32", ones) for name in
                             ("factors_long", "factors_short", "freqs")]
        for more, keys, words in (([long], {}, "`rope_factors_long.weight` without"),
                                  ([short], {}, "`rope_factors_short.weight` without"),
                                  ([long, short, both], {}, "`rope_freqs.weight` beside"),
                                  ([], {"llama.rope.scaling.type": "longrope"}, "no tensor has its divisors")):
            self.put_model(keys, tensors() + more)
            self.refused(words)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as kept:
        compile_once(kept)
        sys.exit(run_tests("gguf", Files))
