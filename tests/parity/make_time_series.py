#!/usr/bin/env python3
"""Writes tests/parity/time_series: the state of a torch.nn.Transformer with random weights, and what it computes in
float64 of rows of numbers, to which interleaved sinusoids are added, under a causal mask. specs/time_series.attn is the
same model. Needs torch and safetensors; the results are committed."""
import os

import numpy
import safetensors.torch
import torch

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "time_series")
D_MODEL = 16
PAST, FUTURE = 21, 9
LENGTHS = (21, 13)  # of the sources of the batch


def with_positions(rows):
    position = torch.arange(rows.shape[1], dtype=torch.float64)[:, None]
    angle = position / 10000 ** (torch.arange(0, D_MODEL, 2, dtype=torch.float64) / D_MODEL)
    return rows + torch.stack((angle.sin(), angle.cos()), -1).flatten(1)  # sin, cos, sin, cos, ...


def computed(model, source, target, padding=None):
    later = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).triu(1)
    with torch.no_grad():
        memory = model.encoder(with_positions(source), src_key_padding_mask=padding)
        return memory, model.decoder(with_positions(target), memory, tgt_mask=later, memory_key_padding_mask=padding)


def save(name, array):
    kind = numpy.int64 if name.endswith("mask") else numpy.float32
    numpy.save(os.path.join(FOLDER, name + ".npy"), numpy.ascontiguousarray(array, dtype=kind))


def main():
    torch.backends.mha.set_fastpath_enabled(False)  # so that the layers run as they are written
    torch.manual_seed(5)
    model = torch.nn.Transformer(
        d_model=D_MODEL, nhead=4, num_encoder_layers=2, num_decoder_layers=2, dim_feedforward=2 * D_MODEL, dropout=0.0,
        activation="relu", batch_first=True, norm_first=False).double().eval()
    for parameter in model.parameters():  # biases and norms begin as zeros and ones
        parameter.data = (parameter.data + 0.2 * torch.randn_like(parameter)).float().double()
    os.makedirs(FOLDER, exist_ok=True)
    weights = {name: value.float().contiguous() for name, value in model.state_dict().items()}
    safetensors.torch.save_file(weights, os.path.join(FOLDER, "model.safetensors"))
    source, target = torch.randn(1, PAST, D_MODEL), torch.randn(1, FUTURE, D_MODEL)
    sources, targets = torch.randn(2, PAST, D_MODEL), torch.randn(2, FUTURE, D_MODEL)
    mask = torch.tensor([[row < length for row in range(PAST)] for length in LENGTHS])
    memory, hidden = computed(model, source.double(), target.double())
    memories, hiddens = computed(model, sources.double(), targets.double(), ~mask)
    for name, array in (("in.source_features", source[0]), ("in.target_features", target[0]),
                        ("in.batch_source_features", sources), ("in.batch_target_features", targets),
                        ("in.batch_attention_mask", mask), ("out.encoder_hidden", memory[0]), ("out.hidden", hidden[0]),
                        ("out.batch_encoder_hidden", torch.where(mask[:, :, None], memories, 0.0)),
                        ("out.batch_hidden", hiddens)):
        save(name, array)


if __name__ == "__main__":
    main()
