#!/usr/bin/env python3
"""Folders of quantized checkpoints: GPTQ, AWQ, compressed-tensors, FP8, bitsandbytes and MXFP4 are the numbers of their
formulas, bit for bit, and what is not understood is refused. TAP on stdout."""
import array
import json
import os
import random
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import quantized, safetensors  # noqa: E402
from lib.attnc import Failed, attnc  # noqa: E402
from lib.tap import run_tests  # noqa: E402
from quantized.cases import BNB, CASES, GPTQ, group  # noqa: E402

WIDTH, HIDDEN, VOCAB = 64, 96, 40
CONFIG = dict(model_type="llama", architectures=["LlamaForCausalLM"], hidden_size=WIDTH, intermediate_size=HIDDEN,
              vocab_size=VOCAB, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2,
              max_position_embeddings=16, rms_norm_eps=1e-5, rope_theta=1e4, tie_word_embeddings=False)
LAYER = "model.layers.0."
MATRICES = {"self_attn.q_proj": (64, 64), "self_attn.k_proj": (32, 64), "self_attn.v_proj": (32, 64),
            "self_attn.o_proj": (64, 64), "mlp.gate_proj": (HIDDEN, 64), "mlp.up_proj": (HIDDEN, 64),
            "mlp.down_proj": (64, HIDDEN)}
OTHERS = {"model.embed_tokens.weight": [VOCAB, WIDTH], "lm_head.weight": [VOCAB, WIDTH], "model.norm.weight": [WIDTH],
          LAYER + "input_layernorm.weight": [WIDTH], LAYER + "post_attention_layernorm.weight": [WIDTH]}


EXACT = {"gptq": "int8:32:halves", "awq": "int8:32:halves", "compressed_groups": "bf16", "compressed_zeros": "f16",
         "nf4_nested": "f16", "compressed_int8": "bf16"}


def without_signs(body):
    """The numbers with zeros that are not negative."""
    return tuple(x + 0.0 for x in array.array("f", body))


class Quantized:
    def __init__(self, folder):
        self.folder = folder
        self.weights, self.config, self.spec, self.out = (
            os.path.join(folder, n) for n in ("model.safetensors", "config.json", "m.attn", "out.safetensors"))

    def make(self, config, maker, options):
        """Writes the folder; the tensors, and the numbers that each stands for."""
        chance, made, numbers = random.Random(11), {}, {}
        for name, shape in OTHERS.items():
            count = shape[0] * (shape[1] if len(shape) > 1 else 1)
            numbers[name] = [quantized.f32(chance.uniform(-1, 1)) for _ in range(count)]
            made[name] = ("F32", shape, quantized.stored("F32", numbers[name]))
        for name, (rows, columns) in MATRICES.items():
            own = dict(options)
            if own.get("order"):
                own["order"] = chance.sample([c // 32 for c in range(columns)], columns)
            parts, numbers[LAYER + name + ".weight"] = maker(chance, rows, columns, **own)
            made.update((LAYER + name + suffix, part) for suffix, part in parts.items())
        self.write(config, made)
        return made, numbers

    def write(self, config, made):
        with open(self.config, "w", encoding="utf-8") as file:
            json.dump(dict(CONFIG, quantization_config=config) if config else CONFIG, file)
        header, data = {}, b""
        for name, (kind, shape, body) in made.items():
            header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(body)]}
            data += body
        with open(self.weights, "wb") as file:
            file.write(safetensors.pack(header, data))

    def refused(self, *parts):
        for path in (self.spec, self.out):
            if os.path.exists(path):
                os.remove(path)
        said = attnc("import", self.folder, "-o", self.spec, status=1).stderr
        for part in parts:
            if part not in said:
                raise Failed("`%s` is not in: %s" % (part, said))
        if os.path.exists(self.spec):
            raise Failed("a spec is left behind")

    def compare(self, numbers, *more):
        """The canonical tensors that the spec reads of the folder are these numbers."""
        attnc("weights", self.spec, "--weights", self.folder, "-o", self.out, *more, status=0)
        header, data = safetensors.read(self.out)
        found, plain = {}, without_signs if more else bytes
        for name, entry in header.items():
            if name != "__metadata__":
                found[tuple(entry["shape"]), plain(data[slice(*entry["data_offsets"])])] = name
        for name, wanted in numbers.items():
            shape = OTHERS.get(name) or list(MATRICES[name[len(LAYER):-len(".weight")]])
            body = quantized.stored("F32", wanted)
            if (tuple(shape), plain(body)) not in found:
                raise Failed("no tensor holds the numbers of %s" % name)

    def stated(self, words):
        """The imported spec has the precision of these words of --precision."""
        with open(self.spec, encoding="utf-8") as file:
            if "precision weights " + words.replace(":", " ") not in file.read():
                raise Failed("the spec does not state " + words)

    def test_numbers(self):
        for case, (config, maker, options) in CASES.items():
            _, numbers = self.make(config, maker, options)
            attnc("import", self.folder, "-o", self.spec, status=0)
            try:
                self.compare(numbers)
                if case in EXACT:
                    self.stated(EXACT[case])
                    self.compare({n: w for n, w in numbers.items() if n.startswith(LAYER) and "norm" not in n},
                                 "--precision", "weights=" + EXACT[case])
            except Failed as why:
                raise Failed("%s: %s" % (case, why)) from None

    def mixture(self, change=lambda made: None):
        """Writes a folder of GPT-OSS whose experts are MXFP4; the canonical tensors that it stands for."""
        chance, made, experts, d, ff = random.Random(5), {}, 3, WIDTH, 32
        config = dict(CONFIG, model_type="gpt_oss", architectures=["GptOssForCausalLM"], intermediate_size=ff,
                      head_dim=16, num_local_experts=experts, num_experts_per_tok=2, attention_bias=False,
                      layer_types=["full_attention"],
                      quantization_config=dict(quant_method="mxfp4", modules_to_not_convert=["lm_head"]))
        config.pop("rope_theta")
        plain = {**OTHERS, LAYER + "mlp.router.weight": [experts, d], LAYER + "mlp.router.bias": [experts],
                 LAYER + "self_attn.sinks": [4], LAYER + "mlp.experts.gate_up_proj_bias": [experts, 2 * ff],
                 LAYER + "mlp.experts.down_proj_bias": [experts, d],
                 **{LAYER + n + ".weight": list(s) for n, s in MATRICES.items() if "attn" in n}}
        for name, shape in plain.items():
            count = shape[0] * (shape[1] if len(shape) > 1 else 1)
            made[name] = ("F32", shape, quantized.stored("F32", [chance.uniform(-1, 1) for _ in range(count)]))
        both, wanted = LAYER + "mlp.experts.gate_up_proj", {}
        down = LAYER + "mlp.experts.down_proj"
        made[both + "_blocks"], made[both + "_scales"], numbers = quantized.mxfp4(chance, experts, 2 * ff, d)
        for part, first in (("gate", 0), ("up", 1)):
            wanted[part] = [x for r in range(first, experts * 2 * ff, 2) for x in numbers[r * d:(r + 1) * d]]
        made[down + "_blocks"], made[down + "_scales"], wanted["down"] = quantized.mxfp4(chance, experts, d, ff)
        change(made)
        self.write(None, made)
        with open(self.config, "w", encoding="utf-8") as file:
            json.dump(config, file)
        return wanted

    def test_mxfp4(self):
        wanted = self.mixture()
        attnc("import", self.folder, "-o", self.spec, status=0)
        self.stated("int8:32")
        for more in ([], ["--precision", "weights=int8:32"]):
            attnc("weights", self.spec, "--weights", self.folder, "-o", self.out, *more, status=0)
            header, data = safetensors.read(self.out)
            for part, numbers in wanted.items():
                entry = header["decoder.layers.0.ffn.experts.%s.weight" % part]
                body = data[slice(*entry["data_offsets"])]
                if without_signs(body) != without_signs(quantized.stored("F32", numbers)):
                    raise Failed("%s %s: other numbers" % (part, more))
        scales = LAYER + "mlp.experts.down_proj_scales"
        for change, *why in (
                (lambda made: made.pop(scales), "lacks", "down_proj_scales"),
                (lambda made: made.update({scales: ("U8", [3, WIDTH, 2], bytes(6 * WIDTH))}), "[3, 64, 2]", "U8"),
                (lambda made: made.update({scales: ("I8", [3, WIDTH, 1], bytes(3 * WIDTH))}), "I8")):
            self.mixture(change)
            self.refused("down_proj_blocks", *why)

    def test_other_paths(self):
        """A file of the folder, and an index of shards, find the config beside them."""
        _, numbers = self.make(*CASES["gptq"])
        attnc("import", self.folder, "-o", self.spec, status=0)
        safetensors.split(self.folder, lambda names: (sorted(names)[::2], sorted(names)[1::2]))
        self.compare(numbers)
        os.remove(self.weights + ".index.json")

    def test_settings(self):
        for case, changes, *said in (
                ("gptq", dict(quant_method="aqlm"), '"aqlm"', "gptq, awq"), ("gptq", dict(quant_method=None), '""'),
                ("gptq", dict(quant_method="awq"), "down_proj", "I32 [any, 8] is understood"),
                ("gptq", dict(bits=3), "`bits` of `quantization_config` is 3"),
                ("gptq", dict(bits="four"), "`bits`", "whole number"), ("gptq", dict(bits=8), "qzeros"),
                ("gptq", dict(checkpoint_format="marlin"), "`checkpoint_format`", '"marlin"'),
                ("gptq", dict(is_marlin_format=True), "`is_marlin_format`"),
                ("gptq", dict(dynamic={"a": {}}), "`dynamic`"), ("gptq", dict(group_size=16), "in groups of 16"),
                ("gptq", dict(quant_method="fp8"), "is not of the method \"fp8\""),
                ("awq", dict(version="gemv"), '"gemv"'), ("awq", dict(bits=8), "`bits`"),
                ("compressed_groups", dict(format="marlin-24"), '"marlin-24"'),
                ("compressed_groups", dict(format=None), "`format`", "missing"),
                ("compressed_groups", dict(sparsity_config=dict(format="sparse-24-bitmask")), "`sparsity_config`"),
                ("compressed_groups", dict(transform_config=dict(config_groups={"a": 1})), "`transform_config`"),
                ("compressed_groups", dict(config_groups=group(num_bits=8, group_size=32)), "no group"),
                ("compressed_groups", dict(config_groups=None), "no group"),
                ("compressed_float8_blocks", dict(config_groups=group(block_structure=[32])), "`block_structure`"),
                ("compressed_float8_blocks", dict(config_groups=group(block_structure=[7, 48])), "in blocks of 7"),
                ("fp8_blocks", dict(weight_block_size=[64, 64]), "does not fit"),
                ("fp8_blocks", dict(weight_block_size="a"), "`weight_block_size`")):
            config, maker, options = CASES[case]
            self.make({k: v for k, v in {**config, **changes}.items() if v is not None}, maker, options)
            self.refused(self.folder, *said)
        config, maker, options = CASES["gptq"]
        self.make(None, maker, options)
        self.refused("no object `quantization_config`")
        os.remove(self.config)
        self.make_spec_alone()

    def make_spec_alone(self):
        """Without config.json, a spec that is there already cannot read the file."""
        with open(self.spec, "w", encoding="utf-8") as file:
            file.write("model m { d_model 64, encoder { seq <= 2, input features, position none, layers 1 { "
                       "attention self { heads 4 } } } }")
        said = attnc("weights", self.spec, "--weights", self.weights, "-o", self.out, status=1).stderr
        if "config.json, whose `quantization_config` says how, does not exist" not in said:
            raise Failed(said)

    def test_parts(self):
        """Each part is missing, of another type, or of another shape."""
        for case in ("gptq", "awq", "compressed_zeros", "compressed_int8_zeros", "fp8_blocks", "nf4_nested",
                     "llm_int8"):
            config, maker, options = CASES[case]
            made, _ = self.make(config, maker, options)
            first = LAYER + "self_attn.q_proj"
            for name in [name for name in made if name.startswith(first)]:
                kind, shape, body = made[name]
                optional = name.endswith((".g_idx", "zero_point", ".weight_format", "nested_absmax"))
                if not optional:
                    self.write(config, {n: part for n, part in made.items() if n != name})
                    self.refused("q_proj")
                if shape and config is not BNB and maker is not quantized.llm_int8:
                    self.write(config, {**made, name: (kind, shape + [1, 1], body)})
                    self.refused("q_proj")
                if shape:
                    whole = body + body
                    self.write(config, {**made, name: (kind, [2 * shape[0]] + shape[1:], whole)})
                    self.refused("q_proj")
                self.write(config, {**made, name: ("F64", shape, body * 8)} if len(body) % 8 else {
                    **made, name: ("BOOL", [len(body)], body)})
                self.refused("q_proj")
        made, _ = self.make(*CASES["gptq"])
        name = LAYER + "self_attn.q_proj.g_idx"
        for group_number in (2, -1):
            made[name] = ("I32", [64], quantized.stored("I32", [0] * 63 + [group_number]))
            self.write(GPTQ, made)
            self.refused(name, "number 63 is no group")
        self.write(GPTQ, {n: ("F32", s, b) for n, (k, s, b) in made.items() if k == "F32"})
        self.refused("`quantization_config` is", "no tensor of the file is quantized")


if __name__ == "__main__":
    sys.exit(run_tests("quantized", Quantized))
