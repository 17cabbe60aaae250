"""Tokenizers in GGUF files, and a tokenizer.json each that means the same."""
import base64
import json
import os

from lib import gguf

HERE = os.path.dirname(os.path.abspath(__file__))
NORMAL, UNKNOWN, CONTROL, OWN, UNUSED, BYTE = range(1, 7)
SPACE = "\u2581"
CASED = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+ENDING"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*ENDING"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
            r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
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


def cut(pattern):
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


DIGITS, NUMBERS = ({"type": "Digits", "individual_digits": alone} for alone in (True, False))
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace("{1,3}", "")
QWEN35 = QWEN2.replace(r"?\p{L}+", r"?[\p{L}\p{M}]+").replace(r" ?[^\s\p{L}", r" ?[^\s\p{L}\p{M}")
# Names of `pre`, and how a tokenizer.json cuts the words. Some of them have NFC, a token in front, and whole words.
STEPS = {
    "gpt-2": [bytes_step(True)], "mpt": [bytes_step(True)], "starcoder": [DIGITS, bytes_step(True)],
    "command-r": [DIGITS, bytes_step(True)], "llama-bpe": [cut(LLAMA3), bytes_step(False)],
    "glm4": [cut(LLAMA3), bytes_step(False)], "dbrx": [cut(LLAMA3), bytes_step(False)],
    "qwen2": [cut(QWEN2), bytes_step(False)], "qwen35": [cut(QWEN35), bytes_step(False)],
    "falcon": [{"type": "Punctuation", "behavior": "Contiguous"}, cut(GPT2), cut("[0-9][0-9][0-9]"),
               bytes_step(False)],
    "deepseek-coder": [cut("[\r\n]"), cut(r"\s?\p{L}+"), cut(r"\s?\p{P}+"), cut("[一-龥ࠀ-一가-\ud7ff]+"), DIGITS,
                       bytes_step(False)],
    "deepseek-v3": [cut(r"\p{N}{1,3}"), cut("[一-龥\u3040-ゟ゠-ヿ]+"), cut(DEEPSEEK), bytes_step(False)],
    "tekken": [cut(CASED.replace("ENDING", "").replace("{1,3}", "")), bytes_step(False)],
    "gpt-4o": [cut(CASED.replace("ENDING", "(?i:'s|'t|'re|'ve|'m|'ll|'d)?")), bytes_step(False)],
    "viking": [cut(r" ?[^(\s|[.,!?…。，、।۔،])]+"), DIGITS, bytes_step(False)],
    "default": [cut(r"[\p{P}$+<=>^~|]+"), cut(GPT2), NUMBERS, cut("[0-9][0-9][0-9]"), bytes_step(False)],
}
NFC, MARKED, WHOLE = ("mpt", "command-r", "qwen2", "qwen35"), ("llama-bpe", "tekken"), ("llama-bpe", "glm4", "tekken")


def byte_pairs(name, pre, **more):
    """Byte-level pairs."""
    data = fixture(name)
    tokens, types = listed(data)
    keys = keys_of("gpt2", tokens, types, pre=pre, bos_token_id=0, eos_token_id=1,
                   merges=[m if isinstance(m, str) else " ".join(m) for m in data["model"]["merges"]], **more)
    data["normalizer"] = {"type": "NFC"} if pre in NFC else None
    data["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": STEPS[pre]}
    data["model"]["ignore_merges"] = pre in WHOLE
    before = [(tokens[0], 0)] if more.get("add_bos_token", pre in MARKED) else []
    after = [(tokens[1], 1)] if more.get("add_eos_token") else []
    data["post_processor"] = template(before, after) if before or after else None
    return keys, data


def sentencepiece(add_space, named=True, **more):
    """Pieces, whose scores fall with their ids; a merge for every way to make one of two others. The usual ids of
    tokens hold where the file names none."""
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
    if not named:
        for name in ("bos", "eos", "unknown"):
            keys.pop("tokenizer.ggml.%s_token_id" % name, None)
    before = [("<s>", 1)] if more.get("add_bos_token", True) else []
    data["post_processor"] = template(before, [("</s>", 2)] if more.get("add_eos_token") else [])
    return keys, data


def phi3():
    """Behind most of its special tokens, spaces are dropped."""
    keys, data = sentencepiece(True)
    for token in data["added_tokens"]:
        token["rstrip"] = token["content"] == "</s>"
    return {**keys, "general.name": "My Phi-3 mini"}, data


def unigram(tidy, unknown=True):
    """Keys alone, since `tokenizers` looks up other replacements; pieces.json has what sentencepiece gives. Sums of the
    scores are exact in f32, with which sentencepiece adds."""
    data = fixture("xlm_roberta")
    pieces = list(dict(data["model"]["vocab"]).items())  # without names that stand there twice
    own = {"<mask>": OWN, "<unk>": UNKNOWN, "<s>": CONTROL, "<pad>": CONTROL, "</s>": CONTROL}
    table = base64.b64decode(data["normalizer"]["normalizers"][0]["precompiled_charsmap"])
    rest = len(pieces)
    return keys_of("t5", [piece for piece, _ in pieces] + ["[PAD%d]" % (rest + i) for i in range(3)],
                   [own.get(piece, NORMAL) for piece, _ in pieces] + [UNUSED] * 3,
                   scores=[round(score * 64) / 64 for _, score in pieces] + [-10000.0] * 3, eos_token_id=2,
                   precompiled_charsmap=[(gguf.I8, byte - 256 * (byte > 127)) for byte in table],
                   add_space_prefix=tidy, remove_extra_whitespaces=tidy, add_eos_token=tidy,
                   **({"unknown_token_id": 3} if unknown else {}))


def wordpiece(cased=False):
    data = fixture("bert_cased" if cased else "bert_uncased")
    data["decoder"]["cleanup"] = True
    tokens, types = listed(data)
    marked = [token if kind == CONTROL or token.startswith("[") and token.endswith("]") and len(token) > 1
              else token[2:] if token.startswith("##") and len(token) > 2 else SPACE + token
              for token, kind in zip(tokens, types)]
    keys = keys_of("bert", marked, types)
    return {**keys, **({"tokenizer.ggml.normalizer.lowercase": False} if cased else {})}, data


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
    yield "gpt2", *byte_pairs("gpt2", "gpt-2")
    yield "llama3_unmarked", *byte_pairs("llama3", "llama-bpe", add_bos_token=False)
    yield "qwen2_ended", *byte_pairs("llama3", "qwen2", add_eos_token=True)
    yield "starcoder_marked", *byte_pairs("gpt2", "starcoder", add_bos_token=True)
    for pre in STEPS:
        yield pre, *byte_pairs("llama3", pre)
    yield "llama2", *sentencepiece(True)
    yield "llama2_unnamed", *sentencepiece(True, named=False)
    yield "llama2_unmarked", *sentencepiece(False, add_bos_token=False, add_eos_token=True)
    yield "phi3", *phi3()
    yield "bert", *wordpiece()
    yield "bert_cased", *wordpiece(True)
