#!/usr/bin/env python3
"""Makes the tokenizer and trains the model of examples/story/model on the tales of tales.py.

    train.py [--steps 2400] [--seed 1] [--out model]

Writes config.json, model.safetensors, tokenizer.json and tokenizer_config.json as Hugging Face's transformers would
save a LlamaForCausalLM, and expected.json: what PyTorch continues some prompts with, for tests/story. Prints the loss
on tales of another seed. Needs torch and tokenizers. The same seed gives the same files on the same machine with the
same versions of both."""
import argparse
import json
import math
import os
import random
import struct
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import torch  # noqa: E402
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import tales  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
END, END_TEXT = 0, "<|tale|>"  # stands before each tale and behind it
VOCAB, D_MODEL, LAYERS, HEADS, KV_HEADS, D_FF, CONTEXT = 1024, 96, 4, 4, 2, 144, 320
HEAD_DIM, EPS, THETA = D_MODEL // HEADS, 1e-5, 10000.0
BATCH, HELD_OUT, TOKENIZED = 16, 1000, 4000
PROMPTS = ("Once upon a time", "One day Mia went to the pond with her", "There was once a little fox called Pip.",
           "In a house with a red door lived a boy named Ravi. One night")
CONFIG = {
    "architectures": ["LlamaForCausalLM"], "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": END,
    "dtype": "float32", "eos_token_id": END, "head_dim": HEAD_DIM, "hidden_act": "silu", "hidden_size": D_MODEL,
    "initializer_range": 0.02, "intermediate_size": D_FF, "max_position_embeddings": CONTEXT, "mlp_bias": False,
    "model_type": "llama", "num_attention_heads": HEADS, "num_hidden_layers": LAYERS, "num_key_value_heads": KV_HEADS,
    "pad_token_id": None, "pretraining_tp": 1, "rms_norm_eps": EPS,
    "rope_parameters": {"rope_theta": THETA, "rope_type": "default"}, "tie_word_embeddings": True, "use_cache": True,
    "vocab_size": VOCAB,
}


# ---------------------------------------------------------------- tokens

def train_tokenizer(rng):
    """Byte-level BPE: the end, 256 bytes, and the merges that the tales ask for."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=VOCAB, special_tokens=[END_TEXT], show_progress=False,
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.train_from_iterator([tales.tale(rng) for _ in range(TOKENIZED)], trainer)
    return tokenizer


def draw(rng, tokenizer):
    """A tale that fits the model: its text, and its ids between two ends."""
    while True:
        text = tales.tale(rng)
        ids = [END] + tokenizer.encode(text).ids + [END]
        if len(ids) <= CONTEXT + 1:
            return text, ids


def rows_of(lists):
    """tokens in and out [B][longest - 1]; -100 is behind the end"""
    longest = max(map(len, lists))
    given = torch.tensor([ids[:-1] + [END] * (longest - len(ids)) for ids in lists])
    wanted = torch.tensor([ids[1:] + [-100] * (longest - len(ids)) for ids in lists])
    return given, wanted


def batches(rng, tokenizer):
    """Batches without end; tales of about one length stand together, so that little is padded."""
    while True:
        drawn = sorted((draw(rng, tokenizer)[1] for _ in range(32 * BATCH)), key=len)
        parts = [drawn[i:i + BATCH] for i in range(0, len(drawn), BATCH)]
        rng.shuffle(parts)
        yield from map(rows_of, parts)


# ---------------------------------------------------------------- the model, in the names of LlamaForCausalLM

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q_proj = nn.Linear(D_MODEL, HEADS * HEAD_DIM, bias=False)
        self.k_proj = nn.Linear(D_MODEL, KV_HEADS * HEAD_DIM, bias=False)
        self.v_proj = nn.Linear(D_MODEL, KV_HEADS * HEAD_DIM, bias=False)
        self.o_proj = nn.Linear(HEADS * HEAD_DIM, D_MODEL, bias=False)

    def forward(self, x, cos, sin):
        split = lambda t: t.unflatten(-1, (-1, HEAD_DIM)).transpose(1, 2)  # noqa: E731
        turn = lambda t: t * cos + torch.cat([-t[..., HEAD_DIM // 2:], t[..., :HEAD_DIM // 2]], -1) * sin  # noqa: E731
        mixed = F.scaled_dot_product_attention(turn(split(self.q_proj(x))), turn(split(self.k_proj(x))),
                                               split(self.v_proj(x)), is_causal=True, enable_gqa=True)
        return self.o_proj(mixed.transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate_proj, self.up_proj = (nn.Linear(D_MODEL, D_FF, bias=False) for _ in range(2))
        self.down_proj = nn.Linear(D_FF, D_MODEL, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.input_layernorm, self.post_attention_layernorm = (nn.RMSNorm(D_MODEL, EPS) for _ in range(2))
        self.self_attn, self.mlp = Attention(), Mlp()

    def forward(self, x, cos, sin):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.ModuleDict({"embed_tokens": nn.Embedding(VOCAB, D_MODEL),
                                    "layers": nn.ModuleList(Layer() for _ in range(LAYERS)),
                                    "norm": nn.RMSNorm(D_MODEL, EPS)})
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                deep = name.endswith(("o_proj.weight", "down_proj.weight"))
                nn.init.normal_(weight, std=0.05 / (math.sqrt(2 * LAYERS) if deep else 1))
        angles = torch.arange(CONTEXT)[:, None] * THETA ** (-torch.arange(0, HEAD_DIM, 2) / HEAD_DIM)
        self.turns = [torch.cat([f(angles), f(angles)], -1) for f in (torch.cos, torch.sin)]

    def forward(self, tokens):
        cos, sin = (table[:tokens.shape[1]] for table in self.turns)
        x = self.model["embed_tokens"](tokens)
        for layer in self.model["layers"]:
            x = layer(x, cos, sin)
        return F.linear(self.model["norm"](x), self.model["embed_tokens"].weight)


# ---------------------------------------------------------------- training

def optimizers_of(model):
    """Pairs of an optimizer and its highest rate: Muon (Jordan 2024) for matrices, AdamW for table and norms."""
    table = model.model["embed_tokens"].weight
    inner = [weight for weight in model.parameters() if weight.dim() == 2 and weight is not table]
    rest = [weight for weight in model.parameters() if weight.dim() == 1] + [table]
    return [(torch.optim.Muon(inner, lr=1, momentum=0.95, weight_decay=0.01), 0.04),
            (torch.optim.AdamW(rest, lr=1, betas=(0.9, 0.98), weight_decay=0.01), 0.012)]


def train(model, rng, tokenizer, steps):
    """The rates rise for 50 steps and then fall to nothing."""
    optimizers, stream, tokens, begin = optimizers_of(model), batches(rng, tokenizer), 0, time.time()
    for step in range(steps):
        for optimizer, top in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = top * min((step + 1) / 50, 1 - step / steps)
        given, wanted = next(stream)
        loss = F.cross_entropy(model(given).flatten(0, 1), wanted.flatten())
        model.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer, _ in optimizers:
            optimizer.step()
        tokens += int((wanted >= 0).sum())
        if step % 100 == 99:
            print("step %d: %.3f bits a token, %.1f million tokens, %.0f s" %
                  (step + 1, loss.item() / math.log(2), tokens / 1e6, time.time() - begin), flush=True)


@torch.no_grad()
def held_out(model, rng, tokenizer):
    """(bits a token, bits a character) on tales that training did not see."""
    bits = tokens = characters = 0
    for _ in range(HELD_OUT):
        text, ids = draw(rng, tokenizer)
        given, wanted = rows_of([ids])
        bits += F.cross_entropy(model(given)[0], wanted[0], reduction="sum").item() / math.log(2)
        tokens, characters = tokens + len(ids) - 1, characters + len(text)
    return bits / tokens, bits / characters


@torch.no_grad()
def continued(model, ids, most, temperature=0.0):
    """New ids up to the end, and the least lead of a likeliest id over the next."""
    given, lead = list(ids), math.inf
    while len(given) < min(CONTEXT, len(ids) + most) and (len(given) == len(ids) or given[-1] != END):
        logits = model(torch.tensor([given]))[0, -1]
        first, second = logits.topk(2).values.tolist()
        lead = min(lead, first - second)
        given.append(int(torch.multinomial(F.softmax(logits / temperature, -1), 1)) if temperature
                     else int(logits.argmax()))
    return given[len(ids):], lead


# ---------------------------------------------------------------- files

def save_safetensors(path, tensors):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, tensor in sorted(tensors.items()):
        raw = struct.pack("<%df" % tensor.numel(), *tensor.flatten().tolist())
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def save_json(path, what):
    with open(path, "w", encoding="utf-8") as file:
        file.write(json.dumps(what, indent=2) + "\n")


def expected(model, tokenizer):
    """What PyTorch continues each prompt with, greedily."""
    found = []
    for text in PROMPTS:
        prompt = [END] + tokenizer.encode(text).ids
        new, lead = continued(model, prompt, CONTEXT)
        found.append({"text": text, "prompt": prompt, "continued": new, "least_lead": round(lead, 4),
                      "continued_text": tokenizer.decode(new)})
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=2400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", default=os.path.join(HERE, "model"))
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    torch.set_num_threads(1)  # sums do not depend on the number of cores
    torch.use_deterministic_algorithms(True)
    os.makedirs(options.out, exist_ok=True)
    path = lambda name: os.path.join(options.out, name)  # noqa: E731
    tokenizer, model = train_tokenizer(random.Random(options.seed)), Llama()
    print("%d parameters" % sum(weight.numel() for weight in model.parameters()), flush=True)
    train(model, random.Random(options.seed + 1), tokenizer, options.steps)
    model.eval()
    print("held out: %.3f bits a token, %.3f bits a character" %
          held_out(model, random.Random(options.seed + 2), tokenizer))
    save_json(path("config.json"), CONFIG)
    save_safetensors(path("model.safetensors"), model.state_dict())
    save_json(path("tokenizer_config.json"), {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": END_TEXT,
                                              "eos_token": END_TEXT, "model_max_length": CONTEXT})
    save_json(path("expected.json"), expected(model, tokenizer))
    for _ in range(3):
        ids = [END] + tokenizer.encode(PROMPTS[0]).ids
        print("\n" + tokenizer.decode(ids + continued(model, ids, CONTEXT, 0.7)[0]))
    tokenizer.post_processor = processors.TemplateProcessing(single=END_TEXT + " $A", pair=END_TEXT + " $A $B:1",
                                                             special_tokens=[(END_TEXT, END)])
    tokenizer.save(path("tokenizer.json"))  # the library puts END before a text from here on


if __name__ == "__main__":
    main()
