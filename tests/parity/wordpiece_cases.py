#!/usr/bin/env python3
"""Writes cases for the WordPiece tokenizer, answered by the PyPI package `tokenizers`.

    wordpiece_cases.py --out DIR [--count N] [--seed S] [--tokenizer tokenizer.json]
    wordpiece_cases.py --tables

The folder gets three files: vocab.txt (a token a line, the id is the line), lines.txt (a text a line, its bytes in
UTF-8 with `\\xHH` for a backslash and for whatever is not printable) and ids.txt (the ids of that line, [CLS] and
[SEP] included, nothing truncated). Without --tokenizer the vocabulary is made from the lines themselves.

--tables prints the three range tables of examples/common/wordpiece.c, asked of the package one code point at a time.
"""

import argparse
import collections
import json
import os
import random
import unicodedata

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
MAX_CODE_POINT = 0x10FFFF

WORDS = """the quick brown fox jumps over lazy dog tokenization unbelievable attention transformers representation
embedding sentence's don't state-of-the-art e.g. U.S.A. 3.14 1,000 2024-01-31 #hashtag user@example.com
https://example.org/a?b=c%20d naïve café Übergröße Ångström ČEŠTINA Łódź İstanbul ılık GROẞ ﬁne Đại_học tiếng Việt
ΣΊΣΥΦΟΣ Ὀδυσσεύς ΑΣ Москва Ёлка й Ў Київ العربية مُحَمَّد עִבְרִית हिन्दी क़लम தமிழ் ไทย ภาษา 한국어 각 ひらがな ガギグ ｶﾞ 東京 北京市
日本語テキスト 㐀 豈 龍 𠀀 𪜀 👍🏽 👩‍👩‍👧 🇫🇷 ❤️ 1️⃣ № ™ ½ Å K Ω ǆ ǅ Ǆ""".split()

RANGES = [
    (0x20, 0x7E), (0xA0, 0xFF), (0x100, 0x24F), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x52F), (0x590, 0x5FF),
    (0x600, 0x6FF), (0x900, 0x97F), (0xE00, 0xE7F), (0x1100, 0x11FF), (0x1E00, 0x1FFF), (0x2000, 0x206F),
    (0x20A0, 0x214F), (0x2E00, 0x2E7F), (0x3000, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xF900, 0xFAFF),
    (0xFE00, 0xFFFF), (0x1D100, 0x1D1FF), (0x1F300, 0x1FAFF), (0x20000, 0x2A6DF), (0x2B820, 0x2B91F),
    (0x2F800, 0x2FA1F), (0xE0000, 0xE01EF), (0, MAX_CODE_POINT),
]
CONTROLS = "\0\x01\t\n\v\f\r\x1b\x1c\x7f\x85\xa0\xad\u180e\u200b\u200c\u200d\u2028\u2029\ufeff\ufffd\ue000"
MARKS = "\u0300\u0301\u0308\u0316\u0323\u0327\u0334\u0345\u302e\u0e31\u064b\u08e2\U0001d165\U0001d16d"
BROKEN = [b"\xff", b"\x80", b"\xc3", b"\xc0\xaf", b"\xe2\x82", b"\xed\xa0\x80", b"\xf0\x9f\x98", b"\xf4\x90\x80\x80"]


def random_char(rng, low, high):
    """A character of the range that Unicode has assigned, so that the cases do not age with the tables."""
    for _ in range(50):
        char = chr(rng.randint(low, high))
        if unicodedata.category(char) not in ("Cn", "Cs"):
            return char
    return "?"


def random_part(rng, words):
    kind = rng.randrange(14)
    if kind < 5:
        return rng.choice(words)
    if kind == 5:
        return rng.choice(words).upper()
    if kind < 9:
        low, high = rng.choice(RANGES)
        return "".join(random_char(rng, low, high) for _ in range(rng.randint(1, 8)))
    if kind == 9:
        return "".join(rng.choice("aeiouncAEIO가中") + "".join(rng.choices(MARKS, k=rng.randint(0, 4))) for _ in range(3))
    if kind == 10:
        return rng.choice(CONTROLS)
    if kind == 11:
        return rng.choice(SPECIAL + ["[sep]", "[ SEP]", "[SEP", "[[MASK]]", "##ing", "[unused1]"])
    if kind == 12:
        return rng.choice("ab")*rng.randint(1, 3) + rng.choice(["\u0301", "", "-"]) + rng.choice("xy")
    if rng.random() < 0.2:
        return rng.choice(["a", "é", "가", "я", "🙂"])*rng.choice([33, 34, 49, 50, 51, 99, 100, 101])
    return "…"


def random_line(rng, words):
    """The bytes of one text; now and then some of them are broken UTF-8."""
    line = b""
    for _ in range(rng.choice([0, 1, 2, 3, 5, 8, 13])):
        line += random_part(rng, words).encode()
        line += rng.choice([b" ", b" ", b" ", b"", b"", b"  ", b"\t", b", ", b"\xe3\x80\x80"])
        if rng.random() < 0.04:
            line += rng.choice(BROKEN)
    return line


def decoded(line):
    return line.decode("utf-8", "replace")


def synthetic_vocab(rng, lines):
    """Every character of the lines alone and as a continuation, some left out to give [UNK], and some merges."""
    normalizer, splitter = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    parts = collections.Counter()
    for line in lines:
        for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(decoded(line))):
            for size in range(1, 6):
                for start in range(len(word) - size + 1):
                    parts[("##" if start else "") + word[start:start + size]] += 1
    chars = sorted({part[-1] for part in parts})
    tokens = SPECIAL + ["[unused1]"]
    for char in chars:
        if char.isascii() or rng.random() < 0.85:
            tokens += [char, "##" + char]
    merges = sorted(part for part, count in parts.items() if count > 1 and part not in set(tokens))
    tokens += rng.sample(merges, min(len(merges), 1500))
    return {token: index for index, token in enumerate(dict.fromkeys(tokens))}


def bert_tokenizer(vocab):
    tokenizer = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", vocab["[SEP]"]), ("[CLS]", vocab["[CLS]"]))
    tokenizer.add_special_tokens(SPECIAL)
    return tokenizer


def check_truncation(tokenizer, line, ids):
    """What the C code does at its capacity: the first pieces, then [SEP]."""
    for size in (2, 3, 7):
        tokenizer.enable_truncation(size)
        short = tokenizer.encode(decoded(line)).ids
        assert short == (ids if len(ids) <= size else ids[:size - 1] + ids[-1:]), line
    tokenizer.no_truncation()


def escaped(line):
    text = line.decode("utf-8", "surrogateescape")
    return b"".join(
        char.encode() if char.isprintable() and char != "\\" else
        b"".join(b"\\x%02x" % byte for byte in char.encode("utf-8", "surrogateescape")) for char in text)


def write_cases(options):
    rng = random.Random(options.seed)
    words = list(WORDS)
    if options.tokenizer:
        with open(options.tokenizer, encoding="utf-8") as file:
            vocab = json.load(file)["model"]["vocab"]
        tokenizer = Tokenizer.from_file(options.tokenizer)
        words += [token.removeprefix("##") for token in sorted(vocab) if token not in SPECIAL]
    lines = [random_line(rng, words) for _ in range(options.count)]
    if not options.tokenizer:
        vocab = synthetic_vocab(rng, lines)
        tokenizer = bert_tokenizer(vocab)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    all_ids = [tokenizer.encode(decoded(line)).ids for line in lines]
    for line, ids in list(zip(lines, all_ids))[:300]:
        check_truncation(tokenizer, line, ids)

    os.makedirs(options.out, exist_ok=True)
    with open(os.path.join(options.out, "vocab.txt"), "w", encoding="utf-8", newline="\n") as file:
        file.writelines(token + "\n" for token in sorted(vocab, key=vocab.get))
    with open(os.path.join(options.out, "lines.txt"), "wb") as file:
        file.writelines(escaped(line) + b"\n" for line in lines)
    with open(os.path.join(options.out, "ids.txt"), "w", encoding="ascii", newline="\n") as file:
        file.writelines(" ".join(map(str, ids)) + "\n" for ids in all_ids)


def ranges_of(wanted, skipped):
    """Runs of wanted code points; a skipped one never reaches the table, so a run may pass over it."""
    runs, last = [], None
    for code in range(MAX_CODE_POINT + 1):
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
    decompose, splitter = normalizers.NFD(), pre_tokenizers.BertPreTokenizer()

    def decomposes(code):
        return decompose.normalize_str(chr(code)) != chr(code)

    tables = {
        "REMOVED": (lambda c: clean.normalize_str(chr(c)) == "", lambda c: False),
        "STRIPPED_MARKS": (lambda c: strip.normalize_str(chr(c)) == "", decomposes),
        "PUNCTUATION": (lambda c: len(splitter.pre_tokenize_str(f"a{chr(c)}b")) == 3, lambda c: c < 0x80),
    }
    for name, (wanted, skipped) in tables.items():
        print(f"static const CharRange {name}[] = {{")
        row = "   "
        for low, high in ranges_of(wanted, skipped):
            item = f" {{0x{low:x}, 0x{high:x}}},"
            if len(row) + len(item) > 120:
                print(row)
                row = "   "
            row += item
        print(row + "\n};\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", help="folder to write")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tokenizer", help="a tokenizer.json of an uncased BERT")
    parser.add_argument("--tables", action="store_true")
    options = parser.parse_args()
    if options.tables:
        print_tables()
    elif options.out:
        write_cases(options)
    else:
        parser.error("--out or --tables is needed")


if __name__ == "__main__":
    main()
