#!/usr/bin/env python3
"""Trains the model of dates.attn on the dates of forms.py and writes dates.safetensors.

    train.py [--steps 3000] [--seed 1] [--out dates.safetensors]

Prints the share of held-out dates (days that training never saw) that come out exactly, greedily. Needs torch and
safetensors. The same seed gives the same weights on the same machine and version of torch."""
import argparse
import math
import os
import random
import time

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F

import forms

HERE = os.path.dirname(os.path.abspath(__file__))
# ids of characters; 0 is any other. examples/dates/dates.c has the same.
SYMBOLS = "\0 0123456789abcdefghijklmnopqrstuvwxyz',-./"
START, END, VOCAB = len(SYMBOLS), len(SYMBOLS) + 1, len(SYMBOLS) + 2
D_MODEL, HEADS, D_FF, ENCODER_LAYERS, DECODER_LAYERS = 64, 4, 128, 2, 1
SOURCE, TARGET = forms.MOST, 12
BATCH, NO_DATE = 256, 0.1  # the share of texts that are none


def ids(text):
    return [max(SYMBOLS.find(c), 0) for c in text]


class Attention(nn.Module):
    """Pre-norm: x + output(softmax(q k / sqrt(head_dim)) v)."""

    def __init__(self):
        super().__init__()
        self.norm_in = nn.LayerNorm(D_MODEL)
        self.query, self.key, self.value, self.output = (nn.Linear(D_MODEL, D_MODEL) for _ in range(4))

    def forward(self, x, mask, memory=None):
        normed = self.norm_in(x)
        memory = normed if memory is None else memory
        split = lambda t: t.unflatten(-1, (HEADS, -1)).transpose(1, 2)  # noqa: E731
        mixed = F.scaled_dot_product_attention(split(self.query(normed)), split(self.key(memory)),
                                               split(self.value(memory)), attn_mask=mask)
        return x + self.output(mixed.transpose(1, 2).flatten(2))


class Ffn(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm_in = nn.LayerNorm(D_MODEL)
        self.up, self.down = nn.Linear(D_MODEL, D_FF), nn.Linear(D_FF, D_MODEL)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm_in(x))))


class Layer(nn.Module):
    def __init__(self, cross):
        super().__init__()
        self.attention, self.ffn = Attention(), Ffn()
        if cross:
            self.cross_attention = Attention()

    def forward(self, x, mask, memory=None, memory_mask=None):
        x = self.attention(x, mask)
        if memory is not None:
            x = self.cross_attention(x, memory_mask, memory)
        return self.ffn(x)


class Stack(nn.Module):
    def __init__(self, rows, layers, cross):
        super().__init__()
        self.embedding = nn.ModuleDict({"tokens": nn.Embedding(VOCAB, D_MODEL),
                                        "positions": nn.Embedding(rows, D_MODEL)})
        self.layers = nn.ModuleList(Layer(cross) for _ in range(layers))
        self.final_norm = nn.LayerNorm(D_MODEL)
        for table in self.embedding.values():
            nn.init.normal_(table.weight, std=0.1)

    def forward(self, tokens, mask, memory=None, memory_mask=None):
        x = self.embedding["tokens"](tokens) + self.embedding["positions"].weight[:tokens.shape[1]]
        for layer in self.layers:
            x = layer(x, mask, memory, memory_mask)
        return self.final_norm(x)


class Dates(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Stack(SOURCE, ENCODER_LAYERS, False)
        self.decoder = Stack(TARGET, DECODER_LAYERS, True)
        self.head = nn.Linear(D_MODEL, VOCAB, bias=False)

    def encode(self, source, lengths):
        there = (torch.arange(source.shape[1]) < lengths[:, None])[:, None, None]
        return self.encoder(source, there), there

    def decode(self, target, memory, there):
        causal = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).tril()
        return self.head(self.decoder(target, causal, memory, there))


def batch_of(pairs):
    """source [B][longest], lengths [B], target in and out [B][11]; -100 is behind the end"""
    lengths = torch.tensor([len(text) for text, _ in pairs])
    source = torch.zeros(len(pairs), int(lengths.max()), dtype=torch.long)
    for row, (text, _) in zip(source, pairs):
        row[:len(text)] = torch.tensor(ids(text))
    wanted = torch.tensor([(ids(iso) + [END] + [-100] * 10)[:11] for _, iso in pairs])
    return source, lengths, torch.cat([torch.full((len(pairs), 1), START), wanted[:, :-1].clamp(0)], 1), wanted


@torch.no_grad()
def exact(model, pairs, show=0):
    """The share that comes out exactly, greedily; prints some that do not."""
    right = 0
    for begin in range(0, len(pairs), 1000):
        part = pairs[begin:begin + 1000]
        source, lengths, _, wanted = batch_of(part)
        memory, there = model.encode(source, lengths)
        tokens = torch.full((len(part), 1), START)
        for _ in range(wanted.shape[1]):
            tokens = torch.cat([tokens, model.decode(tokens, memory, there)[:, -1:].argmax(-1)], 1)
        fine = ((tokens[:, 1:] == wanted) | (wanted < 0)).all(1)
        right += int(fine.sum())
        for i in (~fine).nonzero()[:show, 0].tolist():
            got = "".join(SYMBOLS[t] if t < START else "|" for t in tokens[i, 1:].tolist())
            print("  %-32s is %s, came out as %s" % ((*part[i], got)))
        show = max(0, show - int((~fine).sum()))
    return right / len(pairs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", default=os.path.join(HERE, "dates.safetensors"))
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    rng, model, begin = random.Random(options.seed), Dates(), time.time()
    held = [forms.draw(random.Random(options.seed + 1000003 * i), True) for i in range(10000)]
    other = [forms.draw(random.Random(options.seed + 1000003 * i), True, 1) for i in range(10000, 12000)]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1, betas=(0.9, 0.98), weight_decay=0.01)
    warm, top = 300, 3e-3
    for step in range(options.steps):
        rate = top * min((step + 1) / warm, 0.5 * (1 + math.cos(math.pi * step / options.steps)) + 0.01)
        for group in optimizer.param_groups:
            group["lr"] = rate
        source, lengths, given, wanted = batch_of([forms.draw(rng, False, NO_DATE) for _ in range(BATCH)])
        logits = model.decode(given, *model.encode(source, lengths))
        loss = F.cross_entropy(logits.flatten(0, 1), wanted.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 500 == 499:
            print("step %d: loss %.4f, %.2f %% of 1000 held-out dates, %.0f s" %
                  (step + 1, loss.item(), 100 * exact(model, held[:1000]), time.time() - begin), flush=True)
    print("%.2f %% of %d held-out dates" % (100 * exact(model, held, show=20), len(held)))
    print("%.2f %% of %d texts that are no date" % (100 * exact(model, other, show=20), len(other)))
    save_file({name: tensor.contiguous() for name, tensor in model.state_dict().items()}, options.out)


if __name__ == "__main__":
    main()
