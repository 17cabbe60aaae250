#!/usr/bin/env python3
"""Writes tests/get/begins.json: for models of tests/parity/fixtures with small tokenizers of the kinds that LLaMA,
Qwen2, GPT-2, Gemma and T5 have, the ids of texts by AutoTokenizer and the greedy texts by generate in float64. Needs
torch and transformers 5.23.

    tests/get/make_begins.py

begins.json is a list of {"name", "model", "config", "tokenizer", "tokenizer_config", "most", "told": [{"text", "ids",
"written"}]}. Where a text has no ids, generate begins with the model's own token."""
import json
import os
import tempfile

import torch
import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from fixtures import copied

HERE = os.path.dirname(os.path.abspath(__file__))
LETTERS = "abcdefghijklmnopqrstuvwxyz"
TEXTS = ("hello ab", "a", "b hell", "<s>ab", "")
MOST = 6


def pairs(special, space):
    """A vocabulary of special tokens, letters and a sign of a space, and the merges of `hell`."""
    merges = [("h", "e"), ("l", "l"), ("he", "ll")]
    words = [*special, space, *LETTERS, *("".join(pair) for pair in merges)]
    return {word: i for i, word in enumerate(words)}, merges


def template(single, **ids):
    return processors.TemplateProcessing(single=single, pair=single + " $B:1",
                                         special_tokens=[("<%s>" % name, i) for name, i in ids.items()])


def made(tokenizer, special):
    tokenizer.add_special_tokens([AddedToken(name, normalized=False) for name in special])
    return tokenizer


def llama():
    special = ["<unk>", "<s>", "</s>"]
    vocab, merges = pairs(special, "\u2581")
    tokenizer = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    tokenizer.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(" ", 1, 0)])
    tokenizer.post_processor = template("<s> $A", s=1)
    return made(tokenizer, special)


def gemma():
    special = ["<pad>", "<eos>", "<bos>", "<unk>"]
    vocab, merges = pairs(special, "\u2581")
    tokenizer = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Replace(" ", "\u2581")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.post_processor = template("<bos> $A", bos=2)
    return made(tokenizer, special)


def gpt2(special=("<s>", "</s>")):
    vocab, merges = pairs(special, "\u0120")
    tokenizer = Tokenizer(models.BPE(vocab, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return made(tokenizer, special)


def t5():
    special = ["<pad>", "</s>", "<unk>"]
    words = [(name, 0.0) for name in special] + [("\u2581", -2.0), *((c, -3.0) for c in LETTERS), ("\u2581hell", -4.0)]
    tokenizer = Tokenizer(models.Unigram(words, 2, False))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>",
                                                             special_tokens=[("</s>", 1)])
    return made(tokenizer, special)


OWN = {"bos_token": "<s>", "eos_token": "</s>"}
CASES = (  # a name, a model, keys of its config, its tokenizer, and its tokenizer_config.json
    ("llama", "llama_odd", {}, llama, {"tokenizer_class": "LlamaTokenizerFast", **OWN, "unk_token": "<unk>"}),
    ("llama_false", "llama_odd", {}, llama, {"tokenizer_class": "LlamaTokenizer", **OWN, "unk_token": "<unk>",
                                             "add_bos_token": False, "add_eos_token": True}),
    ("qwen2", "qwen2_one_odd", {"bos_token_id": 0, "eos_token_id": 1}, gpt2,
     {"tokenizer_class": "Qwen2Tokenizer", "add_bos_token": True, **OWN, "unk_token": None, "pad_token": "</s>"}),
    ("gpt2", "gpt2_odd", {"bos_token_id": 0, "eos_token_id": 1}, gpt2,
     {"tokenizer_class": "GPT2Tokenizer", "add_bos_token": True, **OWN, "unk_token": "<s>"}),
    ("gemma", "gemma_odd", {}, gemma, {"tokenizer_class": "GemmaTokenizerFast", "bos_token": "<bos>",
                                       "eos_token": "<eos>", "pad_token": "<pad>", "unk_token": "<unk>"}),
    ("t5", "t5_odd", {}, t5, {"tokenizer_class": "T5TokenizerFast", "eos_token": "</s>", "pad_token": "<pad>",
                              "unk_token": "<unk>", "extra_ids": 0}),
    ("plain", "llama_odd", {"bos_token_id": 0}, gpt2, {"tokenizer_class": "PreTrainedTokenizerFast",
                                                       "add_bos_token": True, **OWN}))


def written(model, tokenizer, text):
    with torch.no_grad():
        ids = tokenizer(text, return_tensors="pt").input_ids.long()
        whole = ids if ids.shape[1] else None
        bound = getattr(model.config, "max_position_embeddings", 99) or 99
        most = min(MOST, bound - (ids.shape[1] if not model.config.is_encoder_decoder else 0) + 1)
        seen = {} if whole is None else {"attention_mask": torch.ones_like(ids)}
        out = model.generate(whole, max_new_tokens=most, do_sample=False, num_beams=1,
                             pad_token_id=model.config.vocab_size - 1, **seen)[0]  # no token of these texts
    return ids[0].tolist(), tokenizer.decode(out, skip_special_tokens=True, clean_up_tokenization_spaces=False)


def main():
    cases = []
    for name, fixture, keys, make, settings in CASES:
        with tempfile.TemporaryDirectory() as folder:
            config = {**copied(fixture, folder), **keys}
            whole = json.loads(make().to_str())
            for file_name, content in (("config.json", config), ("tokenizer.json", whole),
                                       ("tokenizer_config.json", settings)):
                with open(os.path.join(folder, file_name), "w", encoding="utf-8") as file:
                    json.dump(content, file)
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
            model = getattr(transformers, config["architectures"][0]).from_pretrained(
                folder, attn_implementation="eager").double().eval()
            own = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
            told = []
            for text in TEXTS:
                ids, out = written(model, tokenizer, text)
                print(name, type(tokenizer).__name__, repr(text), ids, own.encode(text).ids == ids, repr(out))
                told.append({"text": text, "ids": ids, "written": out})
            cases.append({"name": name, "model": fixture, "config": keys, "tokenizer": whole,
                          "tokenizer_config": settings, "most": MOST, "told": told})
    with open(os.path.join(HERE, "begins.json"), "w", encoding="utf-8") as file:
        json.dump(cases, file, ensure_ascii=True)


if __name__ == "__main__":
    main()
