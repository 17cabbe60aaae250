"""Folders of tokenizers that come as SentencePiece alone, made of the models in fixtures."""
import json
import lzma
import os
import sys
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "tokenizers"))
import lines  # noqa: E402

BLOCK = 8  # texts to a sum
IDENTITY = ("unigram_bytes", "pairs_bytes", "pairs_own")  # models without a table of replacements
PLAIN = ("unigram", "unigram_bytes", "unigram_own", "pairs", "pairs_bytes", "pairs_own")
MASK = {"__type": "AddedToken", "content": "<mask>", "lstrip": True, "rstrip": False, "single_word": False,
        "normalized": True}
# A case: the class of transformers, the model, its file, and tokenizer_config.json.
CLASSES = {
    "marian": ("Marian", "unigram", "source.spm", {"source_lang": "en", "target_lang": "de"}),
    "marian_pairs": ("Marian", "pairs", "source.spm", {}),
    "m2m": ("M2M100", "pairs", "sentencepiece.bpe.model", {"src_lang": "fr"}),
    "t5": ("T5", "t5", "spiece.model", {"extra_ids": 9}),
    "albert": ("Albert", "albert", "spiece.model", {}),
    "albert_cased": ("Albert", "albert", "spiece.model", {"do_lower_case": False, "keep_accents": True}),
    "xlm_roberta": ("XLMRoberta", "unigram", "sentencepiece.bpe.model", {"mask_token": MASK}),
    "mbart": ("MBart", "unigram_own", "sentencepiece.bpe.model", {"src_lang": "ro_RO"}),
    "mbart50": ("MBart50", "unigram", "sentencepiece.bpe.model", {"src_lang": "fr_XX"}),
    "nllb": ("Nllb", "pairs", "sentencepiece.bpe.model", {}),
    "llama": ("Llama", "pairs_bytes", "tokenizer.model", {"add_bos_token": True, "legacy": False}),
    "llama_legacy": ("Llama", "pairs_bytes", "tokenizer.model", {"legacy": True, "pad_token": "[PAD]",
                                                                 "add_bos_token": True, "add_eos_token": True})}
CASES = PLAIN + tuple(CLASSES)


def fixture(name):
    return os.path.join(HERE, "fixtures", name)


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def counted(field, data):
    """A field of protobuf that holds these bytes."""
    return varint(field << 3 | 2) + varint(len(data)) + data


def model(name):
    """The bytes of a model, with the table of replacements last: protobuf joins a message that occurs twice."""
    with open(fixture(name + ".spm"), "rb") as file:
        whole = file.read()
    if name in IDENTITY:
        return whole
    with lzma.open(fixture("nmt_nfkc.xz")) as file:
        return whole + counted(3, counted(2, file.read()))


def pieces(name):
    """The texts of a model's pieces, by id."""
    with open(fixture(name + ".spm"), "rb") as file:
        data, at, out = file.read(), 0, []

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(data):
        tag, size = number(), number()
        if tag == 10:
            assert data[at] == 10, "a piece begins with its text"
            out.append(data[at + 2:at + 2 + data[at + 1]].decode())
        at += size
    return out


def put(folder, name, content):
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        file.write(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def vocabulary(case, source):
    """A vocab.json that lacks some pieces, and has names that are none."""
    if case == "m2m":
        names = ["<s>", "<pad>", "</s>", "<unk>", *pieces(source)[:2:-1]]
        return {name: i for i, name in enumerate([n for i, n in enumerate(names) if i < 4 or i % 11])}
    names = ["</s>", "<unk>", *sorted({*pieces(source)[3:], *pieces("pairs")[3:]})]
    names = [name for i, name in enumerate(names) if i < 2 or i % 5]
    return {n: i for i, n in enumerate([*names, ">>fra<<", ">>deu<<", ">>a b<<", "\u00df\u1234", "<pad>"])}


def write(case, folder):
    """Writes the files of a case into the folder; the path of its model."""
    if case in PLAIN:
        return put(folder, case + ".model", model(case))
    kind, source, name, config = CLASSES[case]
    put(folder, "tokenizer_config.json", {"tokenizer_class": kind + "Tokenizer", **config})
    if kind == "Marian":
        put(folder, "target.spm", model("pairs"))
    if kind in ("Marian", "M2M100"):
        put(folder, "vocab.json", vocabulary(case, source))
    if kind == "M2M100":
        put(folder, "special_tokens_map.json", {"additional_special_tokens": [
            "__%s__" % code for code in M2M100.split()]})
    return put(folder, name, model(source))


M2M100 = """af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi
          hr ht hu hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns
          oc or pa pl ps pt ro ru sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh
          zu"""


def nllb_code():
    """The id of eng_Latn, the 47th code, after the pieces and the one token that fairseq adds."""
    return len(pieces("pairs")) + 1 + 46


def texts(case, count=10000):
    """The texts of a case; some texts of Marian begin with a code."""
    out = [lines.decoded(line) for line in lines.lines(count)]
    codes = {"marian": (">>fra<< ", ">>xyz<<", ">>", "</s>>>deu<< "), "m2m": ("__en__ ", " __ast__", "__xx__")}
    own = codes.get(case, ())
    return [own[i // 5 % len(own)] + text if own and i % 5 == 0 else text for i, text in enumerate(out)]


def blocks(answers):
    return ["%08x" % zlib.crc32("\n".join(answers[i:i + BLOCK]).encode()) for i in range(0, len(answers), BLOCK)]
