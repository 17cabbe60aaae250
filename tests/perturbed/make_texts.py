#!/usr/bin/env python3
"""Writes tests/perturbed/texts.json: for tokenizers that classes of transformers save, contents of
tokenizer_config.json drawn at random, and the ids of texts by AutoTokenizer from the folder. Needs torch and
transformers 5.23.

texts.json has "bases", by name {"fixture", "tokenizer", "config"} (a folder of tests/parity/fixtures, and the contents
of tokenizer.json and tokenizer_config.json), and "cases" of {"name", "base", "changes" (keys of tokenizer_config.json,
where "absent" takes a key away), "ids" (of TEXTS, whole), "cut" (of the last text, at most CUT)}."""
import json
import os
import random
import sys
import tempfile

import transformers

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [HERE, os.path.dirname(HERE)]
from texts import CUT, TEXTS, write_folder  # noqa: E402

LETTERS = "abcdefghijklmnopqrstuvwxyzAHé漢"
MERGES = [("h", "e"), ("l", "l"), ("he", "ll")]
EACH = 10


def words(special, space=()):
    return {word: i for i, word in enumerate([*special, *space, *LETTERS, *("".join(pair) for pair in MERGES)])}


def pieces(special):
    return [(name, 0.0) for name in special] + [("\u2581", -2.0), *((c, -3.0) for c in LETTERS), ("\u2581hell", -4.0)]


def byte_pairs(cls, special, **more):
    """The tokenizer spells bytes: the letters beyond ASCII are two of them."""
    vocab = {w: i for i, w in enumerate([*special, "\u0120", *LETTERS[:28], "\u00c3", "\u00a9", "\u00e6", "\u00bc",
                                         "\u00a2", *("".join(pair) for pair in MERGES)])}
    return cls(vocab=vocab, merges=MERGES, **more)


def word_pieces(cls, special, **more):
    vocab = {w: i for i, w in enumerate([*special, *LETTERS, *("##" + c for c in LETTERS), "hell", "##ab"])}
    return cls(vocab=vocab, **more)


def plain():
    """Steps that no class makes."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    tokenizer = Tokenizer(models.BPE(words(["<unk>", "<s>", "</s>"], ["\u2581"]), MERGES, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="never")
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>",
                                                             special_tokens=[("</s>", 2)])
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>",
                                                unk_token="<unk>")


def bases():
    """(a name, a fixture, a tokenizer)"""
    t = transformers
    bert, mpnet = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], ["<s>", "<pad>", "</s>", "[UNK]", "<mask>"]
    roberta, llama = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"], ["<unk>", "<s>", "</s>"]
    end, one = ["<|endoftext|>"], ["<pad>", "</s>", "<unk>"]
    for name, cls in (("bert", t.BertTokenizer), ("distilbert", t.DistilBertTokenizer),
                      ("electra", t.ElectraTokenizer)):
        yield name, name + "_odd", word_pieces(cls, bert)
    yield "bert_cased", "bert_odd", word_pieces(t.BertTokenizer, bert, do_lower_case=False)
    yield "mpnet", "mpnet_odd", word_pieces(t.MPNetTokenizer, mpnet)
    yield "roberta", "roberta_odd", byte_pairs(t.RobertaTokenizer, roberta)
    yield "bart", "bart_odd", byte_pairs(t.BartTokenizer, roberta)
    yield "gpt2", "gpt2_odd", byte_pairs(t.GPT2Tokenizer, end)
    yield "gpt2_spaced", "gpt2_odd", byte_pairs(t.GPT2Tokenizer, end, add_prefix_space=True)
    yield "qwen2", "qwen2_one_odd", byte_pairs(t.Qwen2Tokenizer, end)
    yield "codegen", "codegen_odd", byte_pairs(t.CodeGenTokenizer, end)
    yield "gpt_neox", "gpt_neox_odd", byte_pairs(t.GPTNeoXTokenizer, [*end, "<|padding|>"])
    yield "deberta", "deberta_odd", byte_pairs(t.DebertaTokenizer, ["[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]"])
    yield "deberta_v2", "deberta_v2_odd", t.DebertaV2Tokenizer(vocab=pieces(["[PAD]", "[UNK]", "[CLS]", "[SEP]",
                                                                            "[MASK]"]))
    yield "albert", "albert_odd", t.AlbertTokenizer(vocab=pieces(["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"]))
    yield "t5", "t5_odd", t.T5Tokenizer(vocab=pieces(one), extra_ids=0)
    yield "xlm_roberta", "xlm_roberta", t.XLMRobertaTokenizer(vocab=pieces(roberta))
    yield "camembert", "camembert", t.CamembertTokenizer(vocab=pieces(["<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>",
                                                                      "<unk>NOTUSED", "<s>", "</s>", "<mask>"]))
    yield "llama", "llama_odd", t.LlamaTokenizer(vocab=words(llama, ["\u2581"]), merges=MERGES)
    yield "llama_legacy", "llama_odd", t.LlamaTokenizer(vocab=words(llama, ["\u2581"]), merges=MERGES, legacy=True)
    gemma = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]
    yield "gemma", "gemma_odd", t.GemmaTokenizer(vocab=words(gemma, ["\u2581"]), merges=MERGES)
    yield "plain", "mistral_odd", plain()


def token(text, **flags):
    return {"content": text, "lstrip": False, "rstrip": False, "normalized": False, "single_word": False,
            "special": True, **flags}


VALUES = {
    "add_bos_token": [True, False], "add_eos_token": [True, False], "do_lower_case": [True, False, "absent"],
    "strip_accents": [True, False], "tokenize_chinese_chars": [True, False], "keep_accents": [True, False],
    "truncation_side": ["left", "right"], "padding_side": ["left"], "model_max_length": [5, 7, 1000, 1e30],
    "clean_up_tokenization_spaces": [True, False], "add_prefix_space": [True, False, "absent"],
    "legacy": [True, False, "absent"], "split_special_tokens": [True, False], "use_fast": [True, False],
    "additional_special_tokens": [["ab"], []], "extra_special_tokens": [["hell"], {"x_token": "ab"}],
    "added_tokens_decoder": [{"40": token("ab")}, {}, "absent"], "pad_token": ["ab", None, "absent"],
    "sep_token": ["ab", "absent"], "image_token": ["hell"], "mask_token": [None],
    "tokenizer_class": ["PreTrainedTokenizerFast", "TokenizersBackend"],
}


def drawn(rnd):
    return {key: rnd.choice(VALUES[key]) for key in rnd.sample(sorted(VALUES), rnd.randrange(1, 4))}


def answer(base, case):
    """Adds what AutoTokenizer gives; false where it cannot load the folder."""
    with tempfile.TemporaryDirectory() as folder:
        write_folder(base, case["changes"], folder)
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
            case["ids"] = [tokenizer(text).input_ids for text in TEXTS]
            case["cut"] = tokenizer(TEXTS[-1], truncation=True, max_length=CUT).input_ids
        except Exception as reason:  # of any kind, by any class
            print(case["name"], case["changes"], type(reason).__name__, reason)
            return False
    return True


def main():
    transformers.logging.set_verbosity(50)
    found, cases = {}, []
    for name, fixture, tokenizer in bases():
        with tempfile.TemporaryDirectory() as folder:
            tokenizer.save_pretrained(folder)
            files = []
            for file_name in ("tokenizer.json", "tokenizer_config.json"):
                with open(os.path.join(folder, file_name), encoding="utf-8") as file:
                    files.append(json.load(file))
        if hasattr(tokenizer, "legacy"):  # which save_pretrained forgets
            files[1]["legacy"] = tokenizer.legacy
        found[name] = {"fixture": fixture, "tokenizer": files[0], "config": files[1]}
        drawings = [{}] + [drawn(random.Random("%s %d" % (name, i))) for i in range(EACH)]
        for i, changes in enumerate(drawings):
            case = {"name": "%s/text_%d" % (name, i), "base": name, "changes": changes}
            if answer(found[name], case):
                cases.append(case)
    with open(os.path.join(HERE, "texts.json"), "w", encoding="utf-8") as file:
        file.write('{"bases": {\n%s\n}, "cases": [\n%s\n]}\n' % (
            ",\n".join('"%s": %s' % (name, json.dumps(base)) for name, base in found.items()),
            ",\n".join(json.dumps(case) for case in cases)))
    print("%d cases, %d bases" % (len(cases), len(found)))


if __name__ == "__main__":
    main()
