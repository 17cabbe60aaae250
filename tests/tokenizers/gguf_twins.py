"""Tokenizers in GGUF files, and a tokenizer.json each that means the same."""
import json
import os

from lib import gguf

HERE = os.path.dirname(os.path.abspath(__file__))
NORMAL, UNKNOWN, CONTROL, OWN, _, BYTE = range(1, 7)
SPACE = "\u2581"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")


def fixture(name):
    with open(os.path.join(HERE, "fixtures", name + ".json"), encoding="utf-8") as file:
        return json.load(file)


def keys_of(kind, tokens, types, **more):
    keys = {"general.architecture": "llama", "tokenizer.ggml.model": kind, "tokenizer.ggml.tokens": tokens,
            "tokenizer.ggml.token_type": [(gguf.I32, t) for t in types]}
    keys.update({"tokenizer.ggml." + key: value for key, value in more.items()})
    return keys


def pack(keys):
    return gguf.pack([(k, v) for k, v in keys.items() if v is not None], [])


def listed(data):
    """The tokens in the order of their ids, and their types."""
    names = dict(data["model"]["vocab"])
    names.update({token["content"]: token["id"] for token in data["added_tokens"]})
    tokens = [name for name, _ in sorted(names.items(), key=lambda item: item[1])]
    assert sorted(names.values()) == list(range(len(tokens)))
    added = {token["content"]: CONTROL if token["special"] else OWN for token in data["added_tokens"]}
    return tokens, [added.get(token, NORMAL) for token in tokens]


def template(before, after):
    """A post-processor that puts (name, id) in front and behind."""
    part = [[{"SpecialToken": {"id": name, "type_id": 0}} for name, _ in side] for side in (before, after)]
    return {"type": "TemplateProcessing", "single": part[0] + [{"Sequence": {"id": "A", "type_id": 0}}] + part[1],
            "pair": [], "special_tokens": {name: {"id": name, "ids": [i], "tokens": [name]}
                                           for name, i in before + after}}


def bytes_step(splits):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": splits}


def byte_pairs(name, pre, pattern, **more):
    """Byte-level pairs; `pattern` is that of the words, None for GPT-2's."""
    data = fixture(name)
    tokens, types = listed(data)
    keys = keys_of("gpt2", tokens, types, pre=pre, bos_token_id=0, eos_token_id=1,
                   merges=[m if isinstance(m, str) else " ".join(m) for m in data["model"]["merges"]], **more)
    split = []
    if pattern:
        split = [{"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}]
    if pre in ("starcoder", "smollm"):
        split = [{"type": "Digits", "individual_digits": True}]
    data["normalizer"] = {"type": "NFC"} if pre == "qwen2" else None
    data["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": split + [bytes_step(not pattern)]}
    data["model"]["ignore_merges"] = pre == "llama-bpe"
    before = [(tokens[0], 0)] if more.get("add_bos_token", pre == "llama-bpe") else []
    after = [(tokens[1], 1)] if more.get("add_eos_token") else []
    data["post_processor"] = template(before, after) if before or after else None
    return keys, data


def sentencepiece(add_space, **more):
    """Pieces, whose scores fall with their ids; a merge for every way to make one of two others."""
    data = fixture("llama2")
    tokens, types = listed(data)
    types = [BYTE if len(t) == 6 and t.startswith("<0x") else UNKNOWN if t == "<unk>" else kind
             for t, kind in zip(tokens, types)]
    known = {token for token, kind in zip(tokens, types) if kind == NORMAL}
    data["model"]["merges"] = [[token[:i], token[i:]] for token, kind in zip(tokens, types) if kind == NORMAL
                               for i in range(1, len(token)) if token[:i] in known and token[i:] in known]
    keys = keys_of("llama", tokens, types, scores=[-float(i) for i in range(len(tokens))], bos_token_id=1,
                   eos_token_id=2, add_space_prefix=add_space, **more)
    if not add_space:
        data["normalizer"] = data["normalizer"]["normalizers"][1]
        data["decoder"]["decoders"] = data["decoder"]["decoders"][:3]
    before = [("<s>", 1)] if more.get("add_bos_token", True) else []
    data["post_processor"] = template(before, [("</s>", 2)] if more.get("add_eos_token") else [])
    return keys, data


def wordpiece():
    data = fixture("bert_uncased")
    tokens, types = listed(data)
    marked = [token if kind == CONTROL or token.startswith("[") and token.endswith("]") and len(token) > 1
              else token[2:] if token.startswith("##") and len(token) > 2 else SPACE + token
              for token, kind in zip(tokens, types)]
    return keys_of("bert", marked, types), data


def shorter(keys):
    """The first tokens, and the merges among them."""
    most, pre = 400, "tokenizer.ggml."
    cut = {pre + name: keys[pre + name][:most] for name in ("tokens", "token_type", "scores") if pre + name in keys}
    if pre + "merges" in keys:
        kept = set(cut[pre + "tokens"])
        cut[pre + "merges"] = [m for m in keys[pre + "merges"] if {*m.split(" "), m.replace(" ", "")} <= kept]
    return {**keys, **cut}


def twins():
    """(name, keys, tokenizer.json)"""
    yield "gpt2", *byte_pairs("gpt2", "gpt-2", None)
    yield "llama3", *byte_pairs("llama3", "llama-bpe", LLAMA3)
    yield "llama3_unmarked", *byte_pairs("llama3", "llama-bpe", LLAMA3, add_bos_token=False)
    yield "qwen2", *byte_pairs("llama3", "qwen2", LLAMA3.replace("{1,3}", ""), add_eos_token=True)
    yield "starcoder", *byte_pairs("gpt2", "starcoder", None, add_bos_token=True)
    yield "llama2", *sentencepiece(True)
    yield "llama2_unmarked", *sentencepiece(False, add_bos_token=False, add_eos_token=True)
    yield "bert", *wordpiece()
