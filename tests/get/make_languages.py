#!/usr/bin/env python3
"""Writes tests/get/languages.json: for models of tests/parity/fixtures with small tokenizers of the kinds that NLLB,
mBART, M2M-100 and Marian have, the texts that generate of transformers writes in float64 from one language into
another, greedily and by three beams. Needs torch and transformers 5.23.

    tests/get/make_languages.py

languages.json is a list of {"name", "model", "rules", "tokenizer", "most", "told": [{"from", "to", "text", "beams",
"written"}]}, where `rules` is the model's generation_config.json. Marian has no language to come `from`."""
import json
import os
import tempfile

import torch
import transformers
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, processors

from fixtures import copied

HERE = os.path.dirname(os.path.abspath(__file__))
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
LETTERS = "abcdefghijklm"
VOCAB = 37  # rows of the models
MOST = 7


def nllb(legacy=False):
    words = dict.fromkeys([*SPECIAL, "\u2581", *LETTERS, *("\u2581" + c for c in LETTERS)])
    return transformers.NllbTokenizer(
        vocab={word: i for i, word in enumerate(words)}, merges=[("\u2581", c) for c in LETTERS],
        src_lang="eng_Latn", legacy_behaviour=legacy,
        additional_special_tokens=["eng_Latn", "fra_Latn", "deu_Latn", "zho_Hans"])


def mbart():
    pieces = [*((name, 0.0) for name in SPECIAL), *(("\u2581" + c, -1.0) for c in LETTERS[:7])]
    return transformers.MBartTokenizer(vocab=pieces, src_lang="en_XX", tgt_lang="ro_RO")


def m2m(source="__en__"):
    words = [*SPECIAL, *LETTERS, *LETTERS.upper(), "__en__", "__zh__", "__ast__"]
    own = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, "<unk>"))
    own.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    own.post_processor = processors.TemplateProcessing(
        single=source + " $A </s>", pair=source + " $A $B </s>",
        special_tokens=[("</s>", 2), *((word, words.index(word)) for word in words[-3:])])
    own.add_special_tokens([AddedToken(word, normalized=False) for word in [*SPECIAL, *words[-3:]]])
    return transformers.PreTrainedTokenizerFast(tokenizer_object=own, bos_token="<s>", eos_token="</s>",
                                                unk_token="<unk>", pad_token="<pad>")


def marian():
    words = ["<s>", "<pad>", "</s>", "<unk>", *LETTERS, *LETTERS.upper()[:8], ">>fra<<", ">>zh_TW<<"]
    own = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, "<unk>"))
    own.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    own.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A $B </s>",
                                                       special_tokens=[("</s>", 2)])
    return transformers.PreTrainedTokenizerFast(tokenizer_object=own, bos_token="<s>", eos_token="</s>",
                                                unk_token="<unk>", pad_token="<pad>")


TEXTS = (("a b c", 1), ("c h e", 1), ("f a", 3))
CASES = (  # a name, a model, its tokenizer, pairs of languages, and whether the decoder starts with one
    ("nllb", "m2m_100_odd", nllb, (("eng_Latn", "fra_Latn"), ("deu_Latn", "zho_Hans")), False),
    ("nllb_old", "m2m_100_odd", lambda: nllb(True), (("fra_Latn", "deu_Latn"),), False),
    ("mbart", "mbart_odd", mbart, (("en_XX", "ro_RO"), ("de_DE", "fr_XX")), True),
    ("m2m", "m2m_100_odd", m2m, (("en", "zh"), ("ast", "en")), False),
    ("marian", "marian_odd", marian, ((None, "fra"), (None, "zh_TW")), False))


def written(model, ids, code, starts, beams):
    how = {} if code is None else {"decoder_start_token_id": code} if starts else {"forced_bos_token_id": code}
    with torch.no_grad():
        return model.generate(ids, max_new_tokens=MOST, do_sample=False, num_beams=beams,
                              attention_mask=torch.ones_like(ids), **how)[0]


def settings(tokenizer, starts):
    """A generation_config.json by which texts have several tokens that are printed."""
    codes = [i for i in tokenizer.all_special_ids if i > 3]
    hidden = [0, 1, 3, *range(len(tokenizer), VOCAB), *(codes if starts else [])]
    return {"eos_token_id": 2, "no_repeat_ngram_size": 2, "suppress_tokens": hidden,
            "decoder_start_token_id": tokenizer.convert_tokens_to_ids("ro_RO") if starts else 2}


def told_of(name, make, pairs, starts, folder, config):
    """What the model in the folder writes."""
    model = getattr(transformers, config["architectures"][0]).from_pretrained(
        folder, attn_implementation="eager").double().eval()
    told = []
    for source, target in pairs:
        if name == "marian":
            tokenizer, code = make(), None
        elif name == "m2m":
            tokenizer, code = m2m("__%s__" % source), "__%s__" % target
        else:
            tokenizer, code = make(), target
            tokenizer.src_lang = source
        for text, beams in TEXTS:
            given = ">>%s<< %s" % (target, text) if code is None else text
            ids = tokenizer(given, return_tensors="pt").input_ids
            out = written(model, ids, code and tokenizer.convert_tokens_to_ids(code), starts, beams)
            shown = tokenizer.decode(out, skip_special_tokens=True, clean_up_tokenization_spaces=False)
            print(name, source, target, ids.tolist(), out.tolist(), repr(shown))
            told.append({"from": source, "to": target, "text": text, "beams": beams, "written": shown})
    return told


def main():
    cases = []
    for name, fixture, make, pairs, starts in CASES:
        with tempfile.TemporaryDirectory() as folder:
            config = copied(fixture, folder)
            rules = {**settings(make(), starts), **({"min_new_tokens": 5} if name == "marian" else {})}
            with open(os.path.join(folder, "generation_config.json"), "w", encoding="utf-8") as file:
                json.dump(rules, file)
            told = told_of(name, make, pairs, starts, folder, config)
            make().save_pretrained(folder)
            with open(os.path.join(folder, "tokenizer.json"), encoding="utf-8") as file:
                whole = json.load(file)
        cases.append({"name": name, "model": fixture, "rules": rules, "tokenizer": whole, "most": MOST, "told": told})
    with open(os.path.join(HERE, "languages.json"), "w", encoding="utf-8") as file:
        json.dump(cases, file, ensure_ascii=True)


if __name__ == "__main__":
    main()
