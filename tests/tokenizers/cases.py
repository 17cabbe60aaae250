#!/usr/bin/env python3
"""Makes what tests/tokenizers compares with, by the PyPI packages `tokenizers` and `sentencepiece`.

    cases.py --fixtures         writes fixtures/*.json, small tokenizers of every kind, anew: their ids change
    cases.py --answers          writes fixtures/*.crc: what `tokenizers` answers for the texts of lines.py
    cases.py --rules            writes rules.json: the same for texts and pairs in lower case, or cut on the left
    cases.py --pairs            writes pairs.json: what `tokenizers` answers for pairs of texts
    cases.py --added            writes added.json: what `tokenizers` answers with added tokens of all kinds
    cases.py --decoders         writes decoders.json: the texts of `tokenizers` for random decoders and ids
    cases.py --empty            writes empty.json: what `tokenizers` answers where expressions match nothing wide
    cases.py --pieces           writes pieces.json: what `sentencepiece` answers for the Unigram of gguf_twins.py
    cases.py --compare ENCODE TOKENIZER [--count N] [--seed S]
                                both on further texts: prints the first that differ; ENCODE is built of encode.c
    cases.py --tables           prints the tables of runtime/tokenizer/unicode.c
"""
import argparse
import base64
import collections
import glob
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import zlib

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                        trainers)

import gguf_twins
import lines

HERE = os.path.dirname(os.path.abspath(__file__))
FIXTURES = os.path.join(HERE, "fixtures")
BLOCK = 8  # texts to a checksum
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
CLIP = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
RULES = [("\ufb01", "fi"), ("\ufb00", "ff"), ("\u212b", "\xc5"), ("\u2126", "\u03a9"), ("\xbd", "1\u20442"),
         ("\u2122", "TM"), ("\u2116", "No"), ("\u2460", "1"), ("\u3000", " "), ("\xb2", "2"), ("\u01c6", "d\u017e"),
         ("e\u0301", "\xe9"), ("a\u0308", "\xe4"), ("\xad", ""), ("\n", " "), ("\t", " "), ("\r", " "), ("\xa0", " "),
         ("\u2026", "..."), ("\u1100\u1161", "\uac00"), ("\uff76\uff9e", "\u30ac"), ("\ufeff", "")]


def corpus():
    """Without NUL, which no token may hold: tokenizer.json is read by a library whose strings end there."""
    return [lines.decoded(line).replace("\0", "") for line in lines.lines(3000, seed=77)]


def train(tokenizer, trainer):
    tokenizer.train_from_iterator(corpus(), trainer)
    return tokenizer


def train_unigram(tokenizer, size, special):
    """On characters that are not rare, so that there are unknown ones."""
    texts = corpus()
    often = {char for char, count in collections.Counter("".join(texts)).items() if count > 12}
    texts = ["".join(char for char in text if char in often) for text in texts]
    tokenizer.train_from_iterator(texts, trainers.UnigramTrainer(
        vocab_size=size, special_tokens=special, unk_token="<unk>", show_progress=False))


def wordpiece(lowercase):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(cleanup=lowercase)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    train(tokenizer, trainers.WordPieceTrainer(vocab_size=1500, special_tokens=special, show_progress=False,
                                               limit_alphabet=600))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return tokenizer


def gpt2():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return train(tokenizer, trainers.BpeTrainer(vocab_size=1200, special_tokens=["<|endoftext|>"], show_progress=False,
                                                initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))


def roberta():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True, single_word=True)]
    train(tokenizer, trainers.BpeTrainer(vocab_size=900, special_tokens=special, show_progress=False,
                                         initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.add_tokens([AddedToken("the quick", normalized=True), AddedToken("Lily", single_word=True, rstrip=True)])
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return tokenizer


def llama3():
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(LLAMA3), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|im_start|>", "<|endoftext|>"]
    train(tokenizer, trainers.BpeTrainer(vocab_size=1200, special_tokens=special, show_progress=False,
                                         initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False),
                                                    processors.TemplateProcessing(
        single="<|im_start|> $A", special_tokens=[("<|im_start|>", 0)])])
    return tokenizer


def with_bytes(tokenizer_json):
    """Byte tokens behind <unk>, <s>, </s>, as sentencepiece lays them out."""
    data = json.loads(tokenizer_json)
    first = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % byte for byte in range(256)]
    old = sorted(data["model"]["vocab"], key=data["model"]["vocab"].get)
    names = first + [name for name in old if name not in set(first)]
    data["model"]["vocab"] = {name: i for i, name in enumerate(names)}
    data["model"]["byte_fallback"] = True
    return Tokenizer.from_str(json.dumps(data))


def llama2(legacy):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    if legacy:
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(" ", 1, 0)])
    # Merges are learned inside words, as sentencepiece does.
    inside = Tokenizer(models.BPE(unk_token="<unk>"))
    inside.pre_tokenizer = pre_tokenizers.Metaspace()
    train(inside, trainers.BpeTrainer(vocab_size=900, special_tokens=["<unk>", "<s>", "</s>"], limit_alphabet=300,
                                      show_progress=False))
    data, learned = json.loads(tokenizer.to_str()), json.loads(inside.to_str())
    data["model"]["vocab"], data["model"]["merges"] = learned["model"]["vocab"], learned["model"]["merges"]
    tokenizer = with_bytes(json.dumps(data))
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return tokenizer


def clip():
    tokenizer = Tokenizer(models.BPE(end_of_word_suffix="</w>", unk_token="<|endoftext|>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "),
                                                 normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(CLIP), "removed", invert=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.BPEDecoder()
    train(tokenizer, trainers.BpeTrainer(vocab_size=1200, special_tokens=["<s>", "<|endoftext|>"], show_progress=False,
                                         end_of_word_suffix="</w>",
                                         initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A <|endoftext|>", special_tokens=[("<s>", 0), ("<|endoftext|>", 1)])
    return tokenizer


def charsmap(rules):
    """sentencepiece's table of these rules, or of its own nmt_nfkc."""
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2 as proto
    with tempfile.TemporaryDirectory() as folder:
        text, model, tsv = (os.path.join(folder, name) for name in ("text", "model", "rules.tsv"))
        with open(text, "w", encoding="utf-8") as file:
            file.write("one two three four five six seven\n" * 20)
        more = {"normalization_rule_name": "nmt_nfkc"}
        if rules:
            with open(tsv, "w", encoding="utf-8") as file:
                for source, target in rules:
                    file.write("%s\t%s\n" % (" ".join("%X" % ord(c) for c in source),
                                             " ".join("%X" % ord(c) for c in target)))
            more = {"normalization_rule_tsv": tsv}
        sentencepiece.SentencePieceTrainer.train(input=text, model_prefix=model, vocab_size=30, hard_vocab_limit=False,
                                                       minloglevel=2, **more)
        with open(model + ".model", "rb") as file:
            return proto.ModelProto.FromString(file.read()).normalizer_spec.precompiled_charsmap


def with_charsmap(tokenizer, rules):
    """Puts the table where the tokenizer has a normalizer that stands for it."""
    data = json.loads(tokenizer.to_str())
    steps = data["normalizer"]["normalizers"]
    steps[[step["type"] for step in steps].index("Nmt")] = {
        "type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap(rules)).decode()}
    return Tokenizer.from_str(json.dumps(data))


def xlm_roberta(rules=RULES):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    special = ["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True)]
    train_unigram(tokenizer, 1200, special)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    return with_charsmap(tokenizer, rules)


def albert():
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([
        normalizers.Replace("``", '"'), normalizers.Replace("''", '"'), normalizers.NFKD(), normalizers.StripAccents(),
        normalizers.Lowercase(), normalizers.Strip()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    tokenizer.decoder = decoders.Metaspace()
    special = ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"]
    train_unigram(tokenizer, 900, special)
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return tokenizer


def unigram_bytes():
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.Punctuation("contiguous"),
        pre_tokenizers.Metaspace(prepend_scheme="first")])
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    train_unigram(tokenizer, 700, ["<unk>", "</s>"])
    data = json.loads(tokenizer.to_str())
    kept = [entry for entry in data["model"]["vocab"] if len(entry[0]) > 1 or ord(entry[0]) < 0x500]
    data["model"]["vocab"] = kept + [["<0x%02X>" % byte, -20.0] for byte in range(256)]
    data["model"]["byte_fallback"] = True
    return Tokenizer.from_str(json.dumps(data))


def word_level():
    tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.Strip(right=False)])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Whitespace(), pre_tokenizers.CharDelimiterSplit("-"), pre_tokenizers.Digits(),
        pre_tokenizers.Split("er", "merged_with_previous"), pre_tokenizers.Split(Regex("[aeiou]"), "merged_with_next"),
        pre_tokenizers.Split(Regex(r"\p{Lu}"), "contiguous")])
    return train(tokenizer, trainers.WordLevelTrainer(vocab_size=1500, special_tokens=["<unk>"], show_progress=False))


KINDS = {"bert_uncased": lambda: wordpiece(True), "bert_cased": lambda: wordpiece(False), "gpt2": gpt2,
         "roberta": roberta, "llama3": llama3, "llama2": lambda: llama2(True), "mistral": lambda: llama2(False),
         "clip": clip, "xlm_roberta": xlm_roberta, "albert": albert, "unigram_bytes": unigram_bytes,
         "word_level": word_level}


def answer(tokenizer, before, line):
    ids = tokenizer.encode(lines.decoded(line)).ids
    return "%s\t%s" % (" ".join(map(str, before + ids)), tokenizer.decode(ids).encode().hex())


def llama2c(path):
    """A tokenizer of `tokenizers` that does what llama2.c's run.c does with a tokenizer.bin."""
    with open(path, "rb") as file:
        data = file.read()
    at, pieces = 4, []
    while at < len(data):
        score, size = struct.unpack_from("<fi", data, at)
        pieces.append((data[at + 8:at + 8 + size].decode(), score))
        at += 8 + size
    vocab = {piece: i for i, (piece, _) in enumerate(pieces)}
    merges = [(piece[:cut], piece[cut:]) for piece, _ in sorted(pieces, key=lambda entry: -entry[1])
              for cut in range(1, len(piece)) if piece[:cut] in vocab and piece[cut:] in vocab]
    tokenizer = Tokenizer(models.BPE(vocab, merges, byte_fallback=True))
    tokenizer.normalizer = normalizers.Prepend(" ")
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return tokenizer


def vocab_txt(path):
    with open(path, encoding="utf-8") as file:
        vocab = {line.rstrip("\n"): i for i, line in enumerate(file)}
    tokenizer = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", vocab["[SEP]"]), ("[CLS]", vocab["[CLS]"]))
    return tokenizer


def open_tokenizer(path):
    """Of a file, with the ids that it puts in front of every text."""
    if path.endswith(".bin"):
        return llama2c(path), [1]
    if path.endswith(".txt"):
        return vocab_txt(path), []
    tokenizer = Tokenizer.from_file(path)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer, []


def write_fixtures():
    os.makedirs(FIXTURES, exist_ok=True)
    for name, make in KINDS.items():
        data = json.loads(make().to_str())
        with open(os.path.join(FIXTURES, name + ".json"), "w", encoding="utf-8") as file:
            json.dump(data, file, ensure_ascii=False, separators=(",", ":"))
            file.write("\n")
    write_llama2c(os.path.join(FIXTURES, "llama2.json"), os.path.join(FIXTURES, "llama2c.bin"))


def write_llama2c(json_path, path):
    """The same vocabulary as llama2.c has it: spaces as they are, and a score for each piece."""
    with open(json_path, encoding="utf-8") as file:
        model = json.load(file)["model"]
    learned = {"".join(merge if isinstance(merge, list) else merge.split(" ")): -float(i)
               for i, merge in enumerate(model["merges"])}
    names = sorted(model["vocab"], key=model["vocab"].get)
    with open(path, "wb") as file:
        file.write(struct.pack("<i", max(len(name.encode()) for name in names)))
        for name in names:
            text = {"<s>": "\n<s>\n", "</s>": "\n</s>\n"}.get(name, name.replace("▁", " ")).encode()
            file.write(struct.pack("<fi", learned.get(name, -1e6), len(text)) + text)


def checksums(answers):
    return ["%08x" % zlib.crc32("\n".join(answers[i:i + BLOCK]).encode()) for i in range(0, len(answers), BLOCK)]


def write_answers():
    drawn = lines.lines()
    for path in sorted(glob.glob(os.path.join(FIXTURES, "*"))):
        if path.endswith(".crc"):
            continue
        tokenizer, before = open_tokenizer(path)
        with open(os.path.splitext(path)[0] + ".crc", "w", encoding="ascii") as file:
            file.write("\n".join(checksums([answer(tokenizer, before, line) for line in drawn])) + "\n")


def ours(encode, path, drawn):
    given = b"".join(struct.pack("<I", len(line)) + line for line in drawn)
    done = subprocess.run([encode, path], input=given, stdout=subprocess.PIPE, check=True)
    return done.stdout.decode().split("\n")[:-1]


def compare(encode, path, count, seed):
    drawn, (tokenizer, before) = lines.lines(count, seed), open_tokenizer(path)
    wrong = 0
    for line, got in zip(drawn, ours(encode, path, drawn), strict=True):
        expected = answer(tokenizer, before, line)
        if expected == got:
            continue
        wrong += 1
        if wrong <= 5:
            print("%r\n  expected %s\n  got      %s" % (line, expected, got))
    print("%s: %d of %d texts differ" % (os.path.basename(path), wrong, count))
    return wrong == 0


def ranges_of(wanted, skipped):
    """Runs of wanted code points; a skipped one is not asked of the table, so a run may pass over it."""
    runs, last = [], None
    for code in range(0x110000):
        if 0xD800 <= code <= 0xDFFF or skipped(code):
            continue
        if not wanted(code):
            last = None
        elif last is None:
            runs.append([code, code])
            last = code
        else:
            runs[-1][1] = last = code
    return runs


def print_tables():
    clean = normalizers.BertNormalizer(True, False, False, False)
    strip = normalizers.BertNormalizer(False, False, True, False)
    marks, decompose, splitter = normalizers.StripAccents(), normalizers.NFD(), pre_tokenizers.BertPreTokenizer()

    def nonspacing(code):
        return strip.normalize_str(chr(code)) == ""

    tables = {
        "CLEANED": (lambda c: clean.normalize_str(chr(c)) == "", lambda c: False),
        "NONSPACING_MARKS": (nonspacing, lambda c: decompose.normalize_str(chr(c)) != chr(c)),
        "OTHER_MARKS": (lambda c: marks.normalize_str(chr(c)) == "", nonspacing),
        "PUNCTUATION": (lambda c: len(splitter.pre_tokenize_str("a%cb" % c)) == 3, lambda c: c < 0x80),
    }
    for name, (wanted, skipped) in tables.items():
        print("static const CharRange %s[] = {" % name)
        row = "   "
        for low, high in ranges_of(wanted, skipped):
            item = " {0x%x, 0x%x}," % (low, high)
            if len(row) + len(item) > 120:
                print(row)
                row = "   "
            row += item
        print(row + "\n};\n")


PAIRS = {  # of a file's name and its post-processor: the ids around a pair differ
    "bert": ("bert_uncased.json", processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])),
    "bert_cased": ("bert_cased.json", processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))),
    "roberta": ("roberta.json", None),
    "turned": ("bert_uncased.json", processors.TemplateProcessing(
        single="$A [SEP]", pair="[CLS]:4 $B:2 [SEP]:3 $A:5", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])),
    "plain": ("gpt2.json", None),
}


def write_pairs():
    texts = [lines.decoded(line).replace("\0", "") for line in lines.lines(48, seed=5)]
    texts[3], texts[8] = "", ""
    cases = []
    for name, (file, processor) in PAIRS.items():
        for capacity in (5, 16, 17, 512):
            tokenizer = Tokenizer.from_file(os.path.join(FIXTURES, file))
            tokenizer.post_processor = processor or tokenizer.post_processor
            tokenizer.enable_truncation(capacity, strategy="longest_first")
            whole = json.loads(tokenizer.to_str())["post_processor"]
            answers = [tokenizer.encode(a, b) for a, b in zip(texts[::2], texts[1::2])]
            cases.append({"name": name, "file": file, "post_processor": whole, "capacity": capacity,
                          "answers": [[answer.ids, answer.type_ids] for answer in answers]})
    with open(os.path.join(HERE, "pairs.json"), "w", encoding="utf-8") as file:
        json.dump({"texts": texts, "cases": cases}, file)


def bare_tokenizers():
    """(name, tokenizer without added tokens), of few tokens."""
    alphabet = {char: i for i, char in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    steps = {"plain": None, "lower": normalizers.Lowercase(), "nfd": normalizers.NFD(), "strip": normalizers.Strip(),
             "spaces": normalizers.Replace("  ", " "), "bytes": normalizers.ByteLevel()}
    for name, step in steps.items():
        tokenizer = Tokenizer(models.BPE({**alphabet, "he": 256, "hey": 257}, [("h", "e"), ("he", "y")]))
        if step:
            tokenizer.normalizer = step
        if name != "bytes":
            tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        yield name, tokenizer
    pieces = ["<unk>", "\u2581", "a", "b", "e", "x", "m", "<", ">", "\n", "\u2581a", "ab", "\u2581x"]
    tokenizer = Tokenizer(models.BPE({piece: i for i, piece in enumerate(pieces)}, [
        ("\u2581", "a"), ("a", "b"), ("\u2581", "x")], unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    yield "llama2", tokenizer
    tokenizer = Tokenizer(models.Unigram([(piece, -float(len(piece))) for piece in pieces], 0, False))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="first")
    yield "t5", tokenizer
    tokenizer = Tokenizer(models.WordPiece({piece: 2 * i for i, piece in enumerate([*pieces, "##b", "tok"])},
                                           unk_token="<unk>"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    yield "bert", tokenizer


ADDED = [" ", "  ", "\n", "\n\n", "\t ", " x", "x ", "ab", "AB", "\xc9", "\xe9", "e", "<m>", "<m>x", "<U>", "tok",
         "a b", "_", "\u3000", "\u4e2d", "a", "<unk>", "Hey"]
PARTS = [*ADDED, *" \n<>abexmh", "  \n", "hey", "\U0001f642", "<u>", "e\u0301", "-"]


def tokens_of(draw):
    """Added tokens of a file. The ids and the order are not those that `tokenizers` gives them."""
    tokens = []
    for i in range(1 + draw.below(9)):
        names = ("single_word", "lstrip", "rstrip", "normalized", "special")
        tokens.append({"id": draw.one([i, 300 - i, 1000]), "content": draw.one(ADDED),
                       **{name: draw.below(3) == 0 for name in names}})
    return tokens


def or_none(ask):
    """None where the library panics: of two tokens that strip the same white space, and of some empty lists."""
    try:
        return ask()
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        return None


def sum_of_answer(tokenizer, text):
    return or_none(lambda: "%08x" % zlib.crc32(answer(tokenizer, [], text.encode()).encode()))


def agree(data):
    """Whether `tokenizers` gives no two tokens the same normalized text, of which it picks one at random, and none an
    empty text, which it may look for without end."""
    tokenizer = Tokenizer.from_str(json.dumps(data))
    normal = [tokenizer.normalizer.normalize_str(token.content) if tokenizer.normalizer else token.content
              for token in tokenizer.get_added_tokens_decoder().values() if token.normalized]
    return len(set(normal)) == len(normal) and "" not in normal


def write_added():
    draw, cases = lines.Draw(46), []
    texts = ["".join(draw.one(PARTS) for _ in range(draw.below(14))) for _ in range(160)]
    for turn in range(10):
        for name, tokenizer in bare_tokenizers():
            data = {**json.loads(tokenizer.to_str()), "added_tokens": tokens_of(draw)}
            if not agree(data):
                continue
            whole = Tokenizer.from_str(json.dumps(data))
            cases.append({"name": "%s %d" % (name, turn), "tokenizer": data,
                          "answers": [sum_of_answer(whole, text) for text in texts]})
    with open(os.path.join(HERE, "added.json"), "w", encoding="utf-8") as file:
        json.dump({"texts": texts, "cases": cases}, file)


NAMES = ["<unk>", "a", "b", "\u2581", "\u2581a", "##b", "b</w>", "\u0120b", "<0x41>", "<0xE4>", "<0xB8>", "<0xAD>",
         "<0xF0>", "<0x9F>", "\xe4", "\xb8", "\u0143", "\xf0", "\u0141", "  ", " a", "a ", "aab", "\u4e2d",
         "\U0001f642", ".", " .", "n't", "n", "'t", "do", "not", "</w>", "<0x", "a<0x", "42>", "<s>", "\u0120"]


def random_decoder(draw):
    kind = draw.below(11)
    if kind < 5:
        return draw.one([decoders.ByteLevel, decoders.ByteFallback, decoders.Fuse, decoders.WordPiece,
                         decoders.BPEDecoder])()
    if kind == 5:
        return decoders.Metaspace(prepend_scheme=draw.one(["always", "never"]))
    if kind == 6:
        return decoders.WordPiece(prefix="a", cleanup=False)
    if kind == 7:
        return decoders.Strip(draw.one("a \u4e2d"), draw.below(3), draw.below(3))
    if kind == 8:
        return decoders.Replace(Regex(draw.one(["a+b?", "[b ]", "b$", "a|\u4e2d"])), draw.one(["", "x", "ab"]))
    literals = ["a", "aa", "ab", "\u2581", "\u4e2d", "b ", "<0x41>"]
    return decoders.Replace(draw.one(literals), draw.one(["", "a", " ", "xy"]))


def write_decoders():
    draw, cases = lines.Draw(47), []
    for _ in range(120):
        tokenizer = Tokenizer(models.WordLevel({name: i for i, name in enumerate(NAMES)}, "<unk>"))
        tokenizer.add_special_tokens(["<s>"])
        chain = [random_decoder(draw) for _ in range(draw.below(5))]
        if chain:
            tokenizer.decoder = decoders.Sequence(chain)
        lists = [[draw.below(len(NAMES) + 2) for _ in range(draw.below(12))] for _ in range(30)]
        cases.append({"tokenizer": json.loads(tokenizer.to_str()),
                      "answers": [[ids, or_none(lambda ids=ids: tokenizer.decode(ids))] for ids in lists]})
    with open(os.path.join(HERE, "decoders.json"), "w", encoding="utf-8") as file:
        json.dump(cases, file, ensure_ascii=False)


LOWER, LEFT = 1, 2  # as in attn_tokenizer.h
RULES = {LEFT: (5, 17), LOWER | LEFT: (16,), LOWER: (512,)}


def write_rules():
    """Texts whose ends differ, in files of each kind of model, one of which has added tokens that are normalized."""
    texts = [lines.decoded(line).replace("\0", "") for line in lines.lines(24, seed=8)]
    texts[3], texts[8], texts[10] = "", "", "\u0130STANBUL \u039f\u0394\u039f\u03a3 [CLS] Stra\u00dfe K"
    cases = []
    for file in ("bert_cased.json", "gpt2.json", "roberta.json", "xlm_roberta.json", "word_level.json", "llama2.json"):
        for rules, capacities in RULES.items():
            for capacity in capacities:
                tokenizer = Tokenizer.from_file(os.path.join(FIXTURES, file))
                if rules & LOWER:
                    own = tokenizer.normalizer
                    steps = own if isinstance(own, normalizers.Sequence) else [own] * bool(own)
                    tokenizer.normalizer = normalizers.Sequence([normalizers.Lowercase(), *steps])
                tokenizer.enable_truncation(capacity, strategy="longest_first",
                                            direction="left" if rules & LEFT else "right")
                pairs = [tokenizer.encode(a, b) for a, b in zip(texts[::2], texts[1::2])]
                cases.append({"file": file, "rules": rules, "capacity": capacity,
                              "alone": [tokenizer.encode(text).ids for text in texts],
                              "pairs": [[answer.ids, answer.type_ids] for answer in pairs]})
    with open(os.path.join(HERE, "rules.json"), "w", encoding="utf-8") as file:
        json.dump({"texts": texts, "cases": cases}, file)


EMPTY = [r"(?<!\S)", r"(?=a)", r"a*", r"x?", r"\b", r"(?<=a)", r"^", r"$", r"(?!b)", r"a|(?=b)", r"b*|a"]
AROUND_EMPTY = ["", "a", "\U0001f642", "a\U0001f642b", "\U0001f642\U0001f642 a", "ab a\U0001f642 ", "x\U0001f642ab",
                "aab b \U0001f642a", " \U0001f642", " a  b"]


def write_empty():
    words = sorted({text[i:j] for text in AROUND_EMPTY for i in range(len(text)) for j in range(i + 1, len(text) + 1)})
    word_level = {"type": "WordLevel", "vocab": {word: i for i, word in enumerate(words)}, "unk_token": "a"}
    letters = {"type": "BPE", "vocab": {char: i for i, char in enumerate("ab x-\U0001f642")}, "merges": []}
    cases = []
    for regex in EMPTY:
        steps = [{"normalizer": {"type": "Replace", "pattern": {"Regex": regex}, "content": "x"}, "model": letters}]
        for how in ("Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"):
            steps += [{"pre_tokenizer": {"type": "Split", "pattern": {"Regex": regex}, "behavior": how,
                                         "invert": invert}} for invert in (False, True)]
        for step in steps:
            data = {"version": "1.0", "added_tokens": [], "model": word_level, **step}
            tokenizer = Tokenizer.from_str(json.dumps(data))
            cases.append({**step, "answers": [" ".join(map(str, tokenizer.encode(text).ids)) for text in AROUND_EMPTY]})
    with open(os.path.join(HERE, "empty.json"), "w", encoding="utf-8") as file:
        json.dump({"texts": AROUND_EMPTY, "regexes": EMPTY, "model": word_level, "cases": cases}, file)


def sentencepieces(tidy):
    """The ids of a text by the pieces, scores and table of gguf_twins.unigram. A text is cut at the names of tokens
    that are no pieces before sentencepiece reads it."""
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2 as proto
    keys = gguf_twins.unigram(tidy)
    tokens, scores, kinds = (keys["tokenizer.ggml." + name] for name in ("tokens", "scores", "token_type"))
    model = proto.ModelProto()
    model.trainer_spec.model_type, model.trainer_spec.vocab_size = 1, len(tokens)
    for token, score, (_, kind) in zip(tokens, scores, kinds):
        model.pieces.add(piece=token, score=score, type=3 if kind == gguf_twins.OWN else kind)
    steps = model.normalizer_spec
    steps.name, steps.escape_whitespaces = "table", True
    steps.add_dummy_prefix = steps.remove_extra_whitespaces = tidy
    steps.precompiled_charsmap = bytes(byte % 256 for _, byte in keys["tokenizer.ggml.precompiled_charsmap"])
    reader = sentencepiece.SentencePieceProcessor(model_proto=model.SerializeToString())
    special = {token: i for i, (token, (_, kind)) in enumerate(zip(tokens, kinds))
               if kind not in (gguf_twins.NORMAL, gguf_twins.UNUSED)}
    names = re.compile("(%s)" % "|".join(map(re.escape, special)))
    end = [keys["tokenizer.ggml.eos_token_id"]] if tidy else []
    return lambda text: sum(([special[part]] if part in special else reader.encode(part)
                             for part in names.split(text) if part), []) + end


def write_pieces():
    """sentencepiece also takes the sign of a space for a space at the end of a text, so that the texts have none."""
    texts = [lines.decoded(line).replace("\u2581", "") for line in lines.lines(4000, seed=3)]
    sums = {}
    for tidy in (True, False):
        encode = sentencepieces(tidy)
        sums["tidy" if tidy else "plain"] = checksums([" ".join(map(str, encode(text))) for text in texts])
    with open(os.path.join(HERE, "pieces.json"), "w", encoding="ascii") as file:
        json.dump(sums, file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fixtures", action="store_true")
    parser.add_argument("--answers", action="store_true")
    parser.add_argument("--pairs", action="store_true")
    parser.add_argument("--added", action="store_true")
    parser.add_argument("--decoders", action="store_true")
    parser.add_argument("--rules", action="store_true")
    parser.add_argument("--empty", action="store_true")
    parser.add_argument("--pieces", action="store_true")
    parser.add_argument("--tables", action="store_true")
    parser.add_argument("--compare", nargs=2, metavar=("ENCODE", "TOKENIZER"))
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.fixtures:
        write_fixtures()
    if options.answers:
        write_answers()
    if options.pairs:
        write_pairs()
    if options.added:
        write_added()
    if options.decoders:
        write_decoders()
    if options.rules:
        write_rules()
    if options.empty:
        write_empty()
    if options.pieces:
        write_pieces()
    if options.tables:
        print_tables()
    if options.compare:
        return 0 if compare(*options.compare, options.count, options.seed) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
