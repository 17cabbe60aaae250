#!/usr/bin/env python3
"""The same weights in the forms that the peers read; run in the peers' environment: models.py WHAT OUT ARGUMENT…

    bert-onnx OUT DIR S            ONNX of a BERT with static shape [1, S], as transformers and torch export it
    bert-fused OUT ONNX HEADS D    the same through ONNX Runtime's transformer optimizer
    bert-any OUT DIR MASK          ONNX for any batch and length; MASK 1: with an attention_mask
    bert-nncf OUT ONNX TEXTS       OpenVINO's model in int8 by NNCF, calibrated with rows of tokens that end with -1
    bert-dynamic OUT ONNX          ONNX Runtime's dynamic quantization to int8
    bert-ct2 OUT DIR               CTranslate2's converter
    published OUT NAME             a folder of transformers of a published size with random weights: `whisper-30s`,
                                   `vit` or `modernbert-512`
    encoder-openvino OUT DIR NAME  OpenVINO's model of its encoder, or of all of it without a decoder
    encoder-onnx OUT F S HEADS OPSET   a post-norm ReLU encoder over features, of what `attnc weights -o` writes
    whole-norms OUT ONNX           the same with every output of LayerNormalization named: onnx2c's C needs them
    transformer-ct2 OUT F HEADS    an encoder-decoder with one embedding, post-norm, of the same
    llama-bin OUT F HEADS KV_HEADS SEQ ROPE    llama2.c's file of a llama; ROPE is `interleaved` or `half`
    llama-gguf OUT F HEADS KV_HEADS SEQ ROPE [TYPE]   llama.cpp's; matrices and table in F32, Q8_0 or Q4_0"""
import json
import math
import os
import struct
import sys
import warnings

import numpy as np

warnings.simplefilter("ignore")


def read_safetensors(path):
    """Tensors by name; all are f32 as attnc writes them."""
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(size))
    data = np.memmap(path, np.uint8, "r", 8 + size)
    return {name: data[t["data_offsets"][0]:t["data_offsets"][1]].view(np.float32).reshape(t["shape"])
            for name, t in header.items() if name != "__metadata__"}


def bert_onnx(out, folder, rows):
    import torch
    from transformers import BertModel
    model = BertModel.from_pretrained(folder, attn_implementation="eager", add_pooling_layer=False).eval()

    class Hidden(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, tokens):
            return self.model(input_ids=tokens).last_hidden_state

    tokens = torch.zeros((1, int(rows)), dtype=torch.int64)
    torch.onnx.export(Hidden(), (tokens,), out, opset_version=17, dynamo=False, input_names=["tokens"],
                      output_names=["hidden"])


def bert_any(out, folder, mask):
    import torch
    from transformers import BertModel
    model = BertModel.from_pretrained(folder, attn_implementation="eager", add_pooling_layer=False).eval()

    class Hidden(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, tokens, attention_mask=None):
            return self.model(input_ids=tokens, attention_mask=attention_mask).last_hidden_state

    names = ["tokens"] + ["attention_mask"] * int(mask)
    given = tuple(torch.ones((2, 9), dtype=torch.int64) for _ in names)
    axes = {0: "batch", 1: "length"}
    torch.onnx.export(Hidden(), given, out, opset_version=17, dynamo=False, input_names=names, output_names=["hidden"],
                      dynamic_axes={name: axes for name in names + ["hidden"]})


def bert_nncf(out, model, texts):
    import nncf
    import openvino as ov
    rows = [np.array([row[row >= 0]]) for row in np.load(texts)]
    graph = ov.Core().read_model(model)
    names = [node.get_any_name() for node in graph.inputs]
    dataset = nncf.Dataset([{name: np.ones_like(row) if "mask" in name else row for name in names} for row in rows])
    quantized = nncf.quantize(graph, dataset, model_type=nncf.ModelType.TRANSFORMER, subset_size=len(rows))
    os.makedirs(out)
    ov.save_model(quantized, os.path.join(out, "model.xml"))


def bert_dynamic(out, model):
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic
    # The fused operators are not ONNX's own: the types of what they make must be told.
    quantize_dynamic(model, out, weight_type=QuantType.QInt8,
                     extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT})


def bert_fused(out, model, heads, width):
    from onnxruntime.transformers import optimizer
    optimizer.optimize_model(model, "bert", int(heads), int(width), opt_level=1, use_gpu=False).save_model_to_file(out)


def bert_ct2(out, folder):
    from ctranslate2.converters import TransformersConverter
    TransformersConverter(folder).convert(out, force=True)


def published(out, name):
    import torch
    import transformers as tf
    torch.manual_seed(1)
    model = {"whisper-30s": lambda: tf.WhisperForConditionalGeneration(tf.WhisperConfig(
                 vocab_size=51865, d_model=384, encoder_layers=4, decoder_layers=4, encoder_attention_heads=6,
                 decoder_attention_heads=6, encoder_ffn_dim=1536, decoder_ffn_dim=1536)),
             "vit": lambda: tf.ViTForImageClassification(tf.ViTConfig(num_labels=1000)),
             "modernbert-512": lambda: tf.ModernBertForMaskedLM(tf.ModernBertConfig())}[name]()
    model.save_pretrained(out)


def encoder_openvino(out, folder, name):
    import openvino as ov
    import torch
    import transformers as tf
    kind = {"whisper-30s": "WhisperForConditionalGeneration", "vit": "ViTForImageClassification",
            "modernbert-512": "ModernBertForMaskedLM"}[name]
    model = getattr(tf, kind).from_pretrained(folder, attn_implementation="sdpa").eval()

    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, x):
            if name == "whisper-30s":
                return self.model.model.encoder(x)[0]
            return self.model(pixel_values=x)[0] if name == "vit" else self.model.model(input_ids=x)[0]

    example = {"whisper-30s": torch.zeros(1, 80, 3000), "vit": torch.zeros(1, 3, 224, 224),
               "modernbert-512": torch.zeros(1, 512, dtype=torch.int64)}[name]
    with torch.no_grad():
        graph = ov.convert_model(Encoder(), example_input=example, input=[list(example.shape)])
    os.makedirs(out)
    ov.save_model(graph, os.path.join(out, "model.xml"), compress_to_fp16=False)


def encoder_module(weights, heads):
    """Post-norm layers of plain matrix products, so that every exporter and emitter knows their operators."""
    import torch
    from torch import nn

    def linear(name):
        w, b = weights[name + ".weight"], weights[name + ".bias"]
        layer = nn.Linear(w.shape[1], w.shape[0])
        layer.weight.data, layer.bias.data = torch.from_numpy(w.copy()), torch.from_numpy(b.copy())
        return layer

    def norm(name):
        w = weights[name + ".weight"]
        layer = nn.LayerNorm(w.shape[0], eps=1e-5)
        layer.weight.data, layer.bias.data = torch.from_numpy(w.copy()), torch.from_numpy(
            weights[name + ".bias"].copy())
        return layer

    class Layer(nn.Module):
        def __init__(self, at):
            super().__init__()
            self.query, self.key, self.value, self.mix = (
                linear(at + "attention." + part) for part in ("query", "key", "value", "output"))
            self.norm_1, self.norm_2 = norm(at + "attention.norm_out"), norm(at + "ffn.norm_out")
            self.up, self.down = linear(at + "ffn.up"), linear(at + "ffn.down")

        def forward(self, x):
            rows, width = x.shape[1], x.shape[2] // heads

            def split(y):
                return y.reshape(1, rows, heads, width).transpose(1, 2)

            q, k, v = split(self.query(x)), split(self.key(x)), split(self.value(x))
            mixed = torch.softmax(q @ k.transpose(2, 3) * (1 / math.sqrt(width)), -1) @ v
            x = self.norm_1(x + self.mix(mixed.transpose(1, 2).reshape(1, rows, heads * width)))
            return self.norm_2(x + self.down(torch.relu(self.up(x))))

    layers = sum(name.endswith("attention.query.weight") for name in weights)
    return nn.Sequential(*(Layer("encoder.layers.%d." % i) for i in range(layers))).eval()


def encoder_onnx(out, path, rows, heads, opset):
    import torch
    weights = read_safetensors(path)
    width = weights["encoder.layers.0.attention.query.weight"].shape[1]
    torch.onnx.export(encoder_module(weights, int(heads)), (torch.zeros(1, int(rows), width),), out,
                      opset_version=int(opset), dynamo=False, input_names=["features"], output_names=["hidden"])


def whole_norms(out, path):
    import onnx
    model = onnx.load(path)
    for node in model.graph.node:
        if node.op_type == "LayerNormalization":
            node.output.extend([node.output[0] + "_mean", node.output[0] + "_inverse"])
    onnx.save(model, out)


def sinusoids(rows, width):
    """Vaswani et al. 2017, section 3.5: sine at even columns, cosine at odd ones."""
    angle = np.arange(rows)[:, None] / 10000.0 ** (np.arange(0, width, 2)[None] / width)
    return np.stack([np.sin(angle), np.cos(angle)], -1).reshape(rows, width).astype(np.float32)


def transformer_ct2(out, path, heads):
    from ctranslate2.specs import common_spec, transformer_spec
    w = read_safetensors(path)
    layers = [sum(n.startswith(side) and n.endswith(".ffn.up.weight") for n in w) for side in ("encoder", "decoder")]
    spec = transformer_spec.TransformerSpec.from_config(
        (layers[0], layers[1]), int(heads), pre_norm=False, activation=common_spec.Activation.RELU)

    def linear(target, *names):
        target.weight = np.concatenate([w[n + ".weight"] for n in names])
        target.bias = np.concatenate([w[n + ".bias"] for n in names])

    def norm(target, name):
        target.gamma, target.beta = w[name + ".weight"].copy(), w[name + ".bias"].copy()

    def attention(target, at, cross=False):
        if cross:
            linear(target.linear[0], at + "query")
            linear(target.linear[1], at + "key", at + "value")
        else:
            linear(target.linear[0], at + "query", at + "key", at + "value")
        linear(target.linear[-1], at + "output")
        norm(target.layer_norm, at + "norm_out")

    table = w["embedding.tokens.weight"]
    for side, stack in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        embeddings = stack.embeddings[0] if isinstance(stack.embeddings, list) else stack.embeddings
        embeddings.weight = table.copy()
        stack.scale_embeddings = True
        stack.position_encodings.encodings = sinusoids(128, table.shape[1])
        for i, layer in enumerate(stack.layer):
            at = "%s.layers.%d." % (side, i)
            attention(layer.self_attention, at + "attention.")
            if side == "decoder":
                attention(layer.attention, at + "cross_attention.", True)
            linear(layer.ffn.linear_0, at + "ffn.up")
            linear(layer.ffn.linear_1, at + "ffn.down")
            norm(layer.ffn.layer_norm, at + "ffn.norm_out")
    spec.decoder.projection.weight = table.copy()
    names = ["<unk>", "<s>", "</s>"] + ["t%d" % i for i in range(3, table.shape[0])]
    spec.register_source_vocabulary(names)
    spec.register_target_vocabulary(names)
    spec.config.add_source_bos = spec.config.add_source_eos = False
    spec.validate()
    os.makedirs(out, exist_ok=True)
    spec.save(out)


def interleaved_rows(matrix, heads):
    """Rows that rotate together next to each other, where the two halves of a head do."""
    width = matrix.shape[0] // heads
    return np.ascontiguousarray(matrix.reshape(heads, 2, width // 2, -1).transpose(0, 2, 1, 3)).reshape(matrix.shape)


def llama_tensors(path, heads, kv_heads, rope):
    """Tensors by name, query and key for interleaved rope, and the count of layers."""
    w = dict(read_safetensors(path))
    if rope == "half":
        for name, matrix in w.items():
            if name.endswith("attention.query.weight") or name.endswith("attention.key.weight"):
                w[name] = interleaved_rows(matrix, heads if "query" in name else kv_heads)
    return w, sum(name.endswith("ffn.up.weight") for name in w)


def llama_bin(out, path, heads, kv_heads, seq, rope):
    """Seven integers, then the tensors, of all layers one after another, then two tables that are not read."""
    heads, kv_heads, seq = int(heads), int(kv_heads), int(seq)
    w, layers = llama_tensors(path, heads, kv_heads, rope)
    table = w["decoder.embedding.tokens.weight"]
    d_ff = w["decoder.layers.0.ffn.up.weight"].shape[0]
    with open(out, "wb") as file:
        file.write(struct.pack("<7i", table.shape[1], d_ff, layers, heads, kv_heads, table.shape[0], seq))
        file.write(table.tobytes())
        for part in ("attention.norm_in", "attention.query", "attention.key", "attention.value", "attention.output",
                     "ffn.norm_in", "ffn.gate", "ffn.down", "ffn.up"):
            for layer in range(layers):
                file.write(w["decoder.layers.%d.%s.weight" % (layer, part)].tobytes())
        file.write(w["decoder.final_norm.weight"].tobytes())
        file.write(bytes(4 * seq * table.shape[1] // heads))


def llama_gguf(out, path, heads, kv_heads, seq, rope, kind="F32"):
    import gguf
    heads, kv_heads, seq = int(heads), int(kv_heads), int(seq)
    w, layers = llama_tensors(path, heads, kv_heads, rope)
    table = w["decoder.embedding.tokens.weight"]
    writer = gguf.GGUFWriter(out, "llama")
    writer.add_context_length(seq)
    writer.add_embedding_length(table.shape[1])
    writer.add_block_count(layers)
    writer.add_feed_forward_length(w["decoder.layers.0.ffn.up.weight"].shape[0])
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_rope_dimension_count(table.shape[1] // heads)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    kinds = {"F32": gguf.LlamaFileType.ALL_F32, "Q8_0": gguf.LlamaFileType.MOSTLY_Q8_0,
             "Q4_0": gguf.LlamaFileType.MOSTLY_Q4_0}
    writer.add_file_type(kinds[kind])

    def add(name, tensor):
        """Vectors are f32 in every kind."""
        kept = np.array(tensor)
        if kind == "F32" or kept.ndim == 1:
            writer.add_tensor(name, kept)
            return
        quantized = gguf.quantize(kept, gguf.GGMLQuantizationType[kind])
        writer.add_tensor(name, quantized, raw_dtype=gguf.GGMLQuantizationType[kind])

    writer.add_vocab_size(table.shape[0])
    writer.add_tokenizer_model("none")
    parts = {"attention.norm_in": "attn_norm", "attention.query": "attn_q", "attention.key": "attn_k",
             "attention.value": "attn_v", "attention.output": "attn_output", "ffn.norm_in": "ffn_norm",
             "ffn.gate": "ffn_gate", "ffn.down": "ffn_down", "ffn.up": "ffn_up"}
    add("token_embd.weight", table)
    add("output_norm.weight", w["decoder.final_norm.weight"])
    for layer in range(layers):
        for part, name in parts.items():
            add("blk.%d.%s.weight" % (layer, name), w["decoder.layers.%d.%s.weight" % (layer, part)])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


MAKERS = {"bert-any": bert_any, "bert-nncf": bert_nncf, "bert-dynamic": bert_dynamic,
          "published": published, "encoder-openvino": encoder_openvino,
          "bert-onnx": bert_onnx, "bert-fused": bert_fused, "bert-ct2": bert_ct2, "encoder-onnx": encoder_onnx,
          "whole-norms": whole_norms, "transformer-ct2": transformer_ct2, "llama-bin": llama_bin,
          "llama-gguf": llama_gguf}

if __name__ == "__main__":
    MAKERS[sys.argv[1]](*sys.argv[2:])
