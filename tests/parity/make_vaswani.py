#!/usr/bin/env python3
"""Writes tests/parity/vaswani: specs/vaswani_base.attn at full size as torch.nn.Transformer computes it in float64,
with the weights that attnc draws from VASWANI_SEED of run.py. Needs torch, safetensors and build/attnc; the results are
committed, the weights are not.

The model is that of "Attention Is All You Need": 3.1 LayerNorm(x + Sublayer(x)), 3.3 ReLU between two linear maps, 3.4
one table for source, target and softmax, multiplied by sqrt(d_model) in the embeddings, 3.5 interleaved sinusoids. The
paper has no norm behind the last layer; torch.nn.Transformer has one, which is taken out. eps is the spec's."""
import math
import os
import subprocess
import tempfile

import numpy
import safetensors.torch
import torch

from run import ATTNC, VASWANI_FOLDER, VASWANI_SEED, VASWANI_SPEC

D_MODEL, HEADS, D_FF, LAYERS, VOCAB, EPS = 512, 8, 2048, 6, 37000, 1e-6
SOURCE, TARGET = 11, 8
LENGTHS = (11, 5)  # of the sources of the batch


def drawn_weights():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "weights.safetensors")
        source = "random:%d" % VASWANI_SEED
        subprocess.run([ATTNC, "weights", VASWANI_SPEC, "--weights", source, "-o", path], check=True)
        return {name: tensor.double() for name, tensor in safetensors.torch.load_file(path).items()}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(VOCAB, D_MODEL)
        self.transformer = torch.nn.Transformer(
            d_model=D_MODEL, nhead=HEADS, num_encoder_layers=LAYERS, num_decoder_layers=LAYERS, dim_feedforward=D_FF,
            dropout=0.0, activation="relu", layer_norm_eps=EPS, batch_first=True, norm_first=False)
        self.transformer.encoder.norm = self.transformer.decoder.norm = None

    def embed(self, tokens):
        position = torch.arange(tokens.shape[1], dtype=torch.float64)[:, None]
        angle = position / 10000 ** (torch.arange(0, D_MODEL, 2, dtype=torch.float64) / D_MODEL)
        sinusoids = torch.stack((angle.sin(), angle.cos()), -1).flatten(1)  # sin, cos, sin, cos, ...
        return self.table(tokens) * math.sqrt(D_MODEL) + sinusoids

    def forward(self, source, target, padding=None):
        memory = self.transformer.encoder(self.embed(source), src_key_padding_mask=padding)
        later = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).triu(1)
        hidden = self.transformer.decoder(self.embed(target), memory, tgt_mask=later, memory_key_padding_mask=padding)
        return memory, hidden, hidden @ self.table.weight.T


def state_of(weights):
    """The state of a Model; every tensor of `weights` is used up."""
    state = {"table.weight": weights.pop("embedding.tokens.weight")}
    for stack, sublayers in (("encoder", ("attention", "ffn")), ("decoder", ("attention", "cross_attention", "ffn"))):
        for layer in range(LAYERS):
            ours, theirs = "%s.layers.%d." % (stack, layer), "transformer.%s.layers.%d." % (stack, layer)
            for number, sublayer in enumerate(sublayers):
                names = {"norm_out": "norm%d" % (number + 1)}
                if sublayer == "ffn":
                    names |= {"up": "linear1", "down": "linear2"}
                else:
                    attention = "self_attn" if sublayer == "attention" else "multihead_attn"
                    names["output"] = attention + ".out_proj"
                for kind in ("weight", "bias"):
                    for our, their in names.items():
                        state[theirs + their + "." + kind] = weights.pop(ours + sublayer + "." + our + "." + kind)
                    if sublayer != "ffn":
                        parts = [weights.pop(ours + sublayer + "." + p + "." + kind) for p in ("query", "key", "value")]
                        state[theirs + attention + ".in_proj_" + kind] = torch.cat(parts)
    if weights:
        raise ValueError("not used: %s" % sorted(weights))
    return state


def save(name, array):
    dtype = numpy.int64 if name.startswith("in.") else numpy.float32
    numpy.save(os.path.join(VASWANI_FOLDER, name + ".npy"), numpy.ascontiguousarray(array, dtype=dtype))


def main():
    torch.backends.mha.set_fastpath_enabled(False)  # so that the layers run as they are written
    model = Model().double().eval()
    model.load_state_dict(state_of(drawn_weights()), strict=True)
    os.makedirs(VASWANI_FOLDER, exist_ok=True)
    generator = numpy.random.default_rng(VASWANI_SEED)
    source, target = (generator.integers(VOCAB, size=n) for n in (SOURCE, TARGET))
    batch_source = generator.integers(VOCAB, size=(len(LENGTHS), max(LENGTHS)))
    batch_target = generator.integers(VOCAB, size=(len(LENGTHS), TARGET))
    mask = numpy.array([[i < n for i in range(max(LENGTHS))] for n in LENGTHS])
    for name, array in (("source", source), ("target", target), ("batch_source", batch_source),
                        ("batch_target", batch_target), ("batch_attention_mask", mask)):
        save("in." + name, array)
    with torch.no_grad():
        memory, hidden, logits = model(torch.tensor(source)[None], torch.tensor(target)[None])
        save("out.encoder_hidden", memory[0])
        save("out.hidden", hidden[0])
        save("out.logits.last", logits[0, -1:])  # one row: all of them are 1.2 MB
        memory, hidden, _ = model(torch.tensor(batch_source), torch.tensor(batch_target), torch.tensor(~mask))
        save("out.batch_encoder_hidden", torch.where(torch.tensor(mask)[:, :, None], memory, 0.0))
        save("out.batch_hidden", hidden)


if __name__ == "__main__":
    main()
