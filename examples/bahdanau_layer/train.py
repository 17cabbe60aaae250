#!/usr/bin/env python3
"""Trains the encoder and decoder of this folder, Bahdanau et al. 2015 in small, and writes attention.safetensors, the
layer that attnc compiles, and gru.bin, all the rest.

    train.py [--steps 2500] [--seed 1] [--out FOLDER]

Prints the share of held-out numbers that come out word by word as they should, greedily. Needs torch and nothing else.
The same seed gives the same weights on the same machine and version of torch."""
import argparse
import json
import os
import random
import struct
import time
import zlib

import torch
from torch import nn

import words

HERE = os.path.dirname(os.path.abspath(__file__))
SYMBOLS, WORDS = 12, len(words.WORDS)
EMBEDDED, CELLS, STATE, SCORE, MAXOUT = 16, 32, 64, 32, 32  # gru.h and align.attn have the same
BATCH, RATE = 256, 4e-3


def linear(inputs, outputs):
    return nn.Linear(inputs, outputs, bias=False)


class Gru(nn.Module):
    """The gated unit of appendix A.1.1. `inputs` holds the three matrices of z, r and the candidate, one below the
    other, over all that comes from outside (E y and c in the decoder); `gates` and `candidate` are the U of each."""

    def __init__(self, inputs, cells):
        super().__init__()
        self.inputs, self.gates = nn.Linear(inputs, 3 * cells), linear(cells, 2 * cells)
        self.candidate = linear(cells, cells)
        for square in *self.gates.weight.detach().split(cells), self.candidate.weight:
            nn.init.orthogonal_(square)

    def forward(self, x, before):
        gates_in, candidate_in = self.inputs(x).split([2 * before.shape[-1], before.shape[-1]], -1)
        z, r = torch.sigmoid(gates_in + self.gates(before)).chunk(2, -1)
        return (1 - z) * before + z * torch.tanh(candidate_in + self.candidate(r * before))


class Align(nn.Module):
    """e_ij = v . tanh(W s_(i-1) + U h_j), A.1.2: what align.attn says."""

    def __init__(self):
        super().__init__()
        self.query, self.key = linear(STATE, SCORE), linear(2 * CELLS, SCORE)
        self.vector = nn.Parameter(torch.randn(SCORE) / SCORE ** 0.5)

    def forward(self, state, keys, annotations, there):
        scores = torch.tanh(self.query(state)[:, None] + keys) @ self.vector
        weights = scores.masked_fill(~there, -torch.inf).softmax(-1)
        return (weights[..., None] * annotations).sum(1), weights


class Speller(nn.Module):
    def __init__(self):
        super().__init__()
        self.source, self.target = nn.Embedding(SYMBOLS, EMBEDDED), nn.Embedding(WORDS, EMBEDDED)
        self.forwards, self.backwards = Gru(EMBEDDED, CELLS), Gru(EMBEDDED, CELLS)
        self.first = nn.Linear(CELLS, STATE)
        self.decoder = Gru(EMBEDDED + 2 * CELLS, STATE)
        self.align = Align()
        self.maxout = nn.Linear(STATE + EMBEDDED + 2 * CELLS, 2 * MAXOUT)
        self.logits = linear(MAXOUT, WORDS)

    def encode(self, source, there):
        """annotations [B][m][2 CELLS], the first state [B][STATE]: A.2.1 and s_0 of A.2.2"""
        x, rows, both = self.source(source), range(source.shape[1]), []
        for unit, order in (self.forwards, rows), (self.backwards, reversed(rows)):
            state, states = x.new_zeros(len(x), CELLS), {}
            for j in order:
                state = states[j] = torch.where(there[:, j, None], unit(x[:, j], state), state)
            both.append(torch.stack([states[j] for j in rows], 1))
        return torch.cat(both, -1), torch.tanh(self.first(both[1][:, 0]))

    def forward(self, source, there, target, steps):
        """logits [B][steps][WORDS]; `target` [B][steps] is fed, or without it the likeliest word of each step"""
        annotations, state = self.encode(source, there)
        keys, word, out = self.align.key(annotations), torch.full((len(source),), words.END), []
        for i in range(steps):
            context, _ = self.align(state, keys, annotations, there)
            outside = torch.cat([self.target(word), context], -1)
            hidden = self.maxout(torch.cat([state, outside], -1)).unflatten(-1, (MAXOUT, 2)).amax(-1)
            out.append(self.logits(hidden))
            state = self.decoder(outside, state)
            word = out[-1].argmax(-1) if target is None else target[:, i]
        return torch.stack(out, 1)


def batch_of(numbers, rng):
    """source [B][longest], which of it is there, target [B][longest] filled with -100"""
    texts, wanted = [], []
    for number in numbers:
        language = rng.choice([words.ENGLISH, words.GERMAN])
        texts.append([language] + [int(digit) for digit in str(number)])
        wanted.append([words.WORDS.index(word) for word in words.SPELL[language](number)] + [words.END])
    pad = lambda rows, with_: nn.utils.rnn.pad_sequence([torch.tensor(r) for r in rows], True, with_)  # noqa: E731
    source = pad(texts, -1)
    return source.clamp(0), source >= 0, pad(wanted, -100)


@torch.no_grad()
def exact(model, numbers, rng):
    """The share of which every word is right, each fed with its own."""
    source, there, wanted = batch_of(numbers, rng)
    got = model(source, there, None, wanted.shape[1]).argmax(-1)
    return ((got == wanted) | (wanted < 0)).all(1).float().mean().item()


def floats(tensor):
    numbers = tensor.detach().flatten().tolist()
    return struct.pack("<%df" % len(numbers), *numbers)


def attention_file(align):
    """A safetensors file of the tensors that `attnc weights align.attn` lists."""
    header, data = {}, b""
    for name in "query.weight", "key.weight", "vector":
        tensor = align.get_parameter(name)
        packed = floats(tensor)
        header["attention.score.%s.weight" % name.split(".")[0]] = {
            "dtype": "F32", "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def gru_file(model):
    """The Header of gru.c and then the struct Gru of gru.h."""
    unit = lambda u: [u.inputs.weight, u.inputs.bias, u.gates.weight, u.candidate.weight]  # noqa: E731
    data = b"".join(map(floats, [
        model.source.weight, model.target.weight, *unit(model.forwards), *unit(model.backwards),
        model.first.weight, model.first.bias, *unit(model.decoder),
        model.maxout.weight, model.maxout.bias, model.logits.weight]))
    sizes = [SYMBOLS, WORDS, EMBEDDED, CELLS, STATE, MAXOUT]
    return struct.pack("<8s8I", b"GRUspell", 1, *sizes, zlib.adler32(data)) + data


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=2500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", default=HERE)
    options = parser.parse_args()
    if options.steps < 20:
        parser.error("--steps: at least 20, a tenth of which warms up")
    torch.set_num_threads(1)  # the matrices are small
    torch.manual_seed(options.seed)
    rng, model, begin = random.Random(options.seed), Speller(), time.time()
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, options.steps, pct_start=0.1)
    for step in range(options.steps):
        source, there, wanted = batch_of([words.draw(rng, False) for _ in range(BATCH)], rng)
        logits = model(source, there, wanted.clamp(0), wanted.shape[1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), wanted.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 250 == 249:
            held = [words.draw(rng, True) for _ in range(1000)]
            print("step %d: loss %.4f, %.1f %% of 1000 held-out numbers, %.0f s" %
                  (step + 1, loss.item(), 100 * exact(model, held, rng), time.time() - begin), flush=True)
    held = [words.draw(rng, True) for _ in range(10000)]
    print("%.2f %% of %d held-out numbers" % (100 * exact(model, held, rng), len(held)))
    with open(os.path.join(options.out, "attention.safetensors"), "wb") as file:
        file.write(attention_file(model.align))
    with open(os.path.join(options.out, "gru.bin"), "wb") as file:
        file.write(gru_file(model))


if __name__ == "__main__":
    main()
