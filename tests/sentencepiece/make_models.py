#!/usr/bin/env python3
"""Writes tests/sentencepiece/fixtures: small models that sentencepiece trains, and the sums of the ids and texts that
sentencepiece and transformers 5.24 give for 10,000 texts. Needs sentencepiece, protobuf and transformers.

    tests/sentencepiece/make_models.py

A model is kept without the table of replacements of nmt_nfkc, which is the same in all of them; folders.py adds it."""
import contextlib
import io
import json
import lzma
import os
import random
import sys
import tempfile
import warnings
import zlib

import folders
import sentencepiece

sys.path.insert(0, os.path.join(os.path.dirname(folders.HERE), "tokenizers"))
import lines  # noqa: E402

# Words of Latin, Greek, Cyrillic, Arabic, Hebrew, Devanagari, Tamil, Thai, Hangul, Hiragana, Katakana, Han, Armenian
# and Georgian letters; the texts have more.
WORDS = lines.WORDS + ["\u0562\u0561\u0580\u0565\u057e", "\u10d2\u10d0\u10db\u10d0\u10e0\u10ef\u10dd\u10d1\u10d0"]
MODELS = {
    "unigram": {"model_type": "unigram", "vocab_size": 700},
    "unigram_bytes": {"model_type": "unigram", "vocab_size": 900, "normalization_rule_name": "identity",
                      "byte_fallback": True},
    "unigram_own": {"model_type": "unigram", "vocab_size": 700, "user_defined_symbols": ["<x>", "the q", "a-", "#"]},
    "pairs": {"model_type": "bpe", "vocab_size": 900},
    "pairs_bytes": {"model_type": "bpe", "vocab_size": 1000, "normalization_rule_name": "identity",
                    "byte_fallback": True, "remove_extra_whitespaces": False},
    "pairs_own": {"model_type": "bpe", "vocab_size": 800, "user_defined_symbols": ["<x>", "the", "aa", "#", "##"],
                  "normalization_rule_name": "identity", "add_dummy_prefix": False},
    "t5": {"model_type": "unigram", "vocab_size": 700, "pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1},
    "albert": {"model_type": "unigram", "vocab_size": 700, "pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1,
               "control_symbols": ["[CLS]", "[SEP]"], "user_defined_symbols": ["[MASK]"]}}


def trained(how):
    draw = random.Random(4)
    corpus = [" ".join(WORDS[int(draw.random() * len(WORDS))] for _ in range(9)) for _ in range(3000)]
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus), model_writer=written, num_threads=1, minloglevel=2, character_coverage=1.0,
        **({"hard_vocab_limit": False} if how["model_type"] == "unigram" else {}), **how)
    return written.getvalue()


def write_models():
    from sentencepiece import sentencepiece_model_pb2 as proto  # noqa: PLC0415
    for name, how in MODELS.items():
        model = proto.ModelProto.FromString(trained(how))
        table = model.normalizer_spec.precompiled_charsmap
        if table:
            with lzma.open(folders.fixture("nmt_nfkc.xz"), "wb", preset=9) as file:
                file.write(table)
        model.normalizer_spec.ClearField("precompiled_charsmap")
        model.trainer_spec.ClearField("self_test_sample_size")
        with open(folders.fixture(name + ".spm"), "wb") as file:
            file.write(model.SerializeToString())


def library(path):
    """What sentencepiece gives, without the pieces that are special."""
    own = sentencepiece.SentencePieceProcessor(model_file=path)
    special = {i for i in range(own.get_piece_size()) if own.is_control(i) or own.is_unknown(i)}

    def answer(text):
        ids = own.encode(text)
        return ids, own.decode([i for i in ids if i not in special])
    return answer


def transformers_of(folder):
    import transformers  # noqa: PLC0415
    own = transformers.AutoTokenizer.from_pretrained(folder)

    def answer(text):
        ids = own(text)["input_ids"]
        return ids, own.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    return answer


def sums(case, folder):
    """The sum of each block of answers. transformers 5.24 gives NLLB's languages no ids when there is no
    tokenizer.json, and <unk> in their place; here they and <mask> have the ids of the model."""
    path = folders.write(case, folder)
    answer = transformers_of(folder) if case in folders.CLASSES else library(path)
    first = folders.nllb_code() if case == "nllb" else None
    out = []
    for text in folders.texts(case):
        ids, shown = answer(text)
        if first:  # <mask> follows the 202 codes
            ids = [first, *(i + 202 if i == first - 46 else i for i in ids[1:])]
        out.append("%s\t%s" % (" ".join(map(str, ids)), shown.encode().hex()))
    return folders.blocks(out)


def main():
    warnings.filterwarnings("ignore")
    os.makedirs(folders.fixture(""), exist_ok=True)
    with contextlib.redirect_stderr(io.StringIO()):
        write_models()
    for case in folders.CASES:
        with tempfile.TemporaryDirectory() as folder:
            whole = sums(case, folder)
        with open(folders.fixture(case + ".crc"), "w", encoding="ascii") as file:
            file.write("\n".join(whole) + "\n")
        print(case, len(whole), "%08x" % zlib.crc32(json.dumps(whole).encode()))


if __name__ == "__main__":
    main()
