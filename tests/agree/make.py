#!/usr/bin/env python3
"""Writes tests/agree/NAME.zip: small models as transformers and sentence-transformers save them, with their tokenizers
and their own rules, and answers.json, what these libraries make of some texts. Needs torch, transformers 5.23 and
sentence-transformers; the archives are committed.

    tests/agree/make.py [NAME…]

answers.json: {"kind": "generate" | "translate" | "embed" | "classify" | "rerank", "texts", "ids" (of each text, with
what the tokenizer puts around it), "max_new", "out" (tokens that transformers generates, with the prompt), "shown" (the
same as text, without special tokens, and of a translation without its start), "vectors" (of a text, or of a head)}. The
texts of `rerank` are pairs with a tab between."""
import json
import os
import shutil
import sys
import tempfile
import warnings
import zipfile

import safetensors.torch
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

HERE = os.path.dirname(os.path.abspath(__file__))
LETTERS = "abcdefghijklmnopqrstuvwxyz"
TEXTS = ["the sun", "a b c", "words and more words"]
SIZES = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
             max_position_embeddings=64)
LLAMA = dict(SIZES, num_key_value_heads=2)
BART = dict(d_model=32, encoder_layers=1, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
            encoder_ffn_dim=48, decoder_ffn_dim=48, max_position_embeddings=64, pad_token_id=1, bos_token_id=0,
            eos_token_id=2, decoder_start_token_id=2)
MODULES = "sentence_transformers.models."


# ------------------------------------------------------------ tokenizers

def pieces(special):
    """Special tokens, the blank, letters with and without a blank before them, and some longer pieces."""
    return [*special, "\u2581", *LETTERS, *("\u2581" + c for c in LETTERS), "th", "the", "\u2581the", "or", "an", "un"]


def blanks(special, merges, before, template, decoder):
    """BPE over characters in which a blank is \u2581, as llama and gemma have it."""
    vocabulary = {piece: i for i, piece in enumerate(pieces(special))}
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence(before)
    tokenizer.decoder = decoders.Sequence(decoder)
    tokenizer.add_special_tokens(special)
    if template:
        tokenizer.post_processor = processors.TemplateProcessing(single=template, special_tokens=[
            (word, vocabulary[word]) for word in special])
    return tokenizer


MERGES = [("\u2581", c) for c in LETTERS] + [("t", "h"), ("th", "e"), ("\u2581", "the"), ("o", "r"), ("a", "n"),
                                             ("u", "n")]


def llama_words():
    return blanks(["<unk>", "<s>", "</s>"], MERGES, [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")],
                  "<s> $A", [decoders.Replace("\u2581", " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)])


def gemma_words():
    return blanks(["<pad>", "<eos>", "<bos>", "<unk>"], MERGES, [normalizers.Replace(" ", "\u2581")], "<bos> $A",
                  [decoders.Replace("\u2581", " "), decoders.Fuse()])


def byte_words(special, around=None):
    """BPE over bytes, without anything around a text, as GPT-2 and Qwen have it, or as BART does."""
    vocabulary = {word: i for i, word in enumerate(special)} if around else {}
    for character in sorted(pre_tokenizers.ByteLevel.alphabet()):
        vocabulary[character] = len(vocabulary)
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(special)
    if around:
        tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True,
                                                                add_prefix_space=False)
    return tokenizer


def unigram_words(special, template):
    words = [(piece, 0.0 if i < len(special) else -float(3 + i % 7)) for i, piece in enumerate(pieces(special))]
    tokenizer = Tokenizer(models.Unigram(words, unk_id=special.index("<unk>"), byte_fallback=False))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="\u2581", prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(replacement="\u2581", prepend_scheme="always")
    tokenizer.add_special_tokens(special)
    tokenizer.post_processor = processors.TemplateProcessing(single=template, special_tokens=[
        (word, i) for i, word in enumerate(special)])
    return tokenizer


def bert_words(cased=False):
    letters = LETTERS + (LETTERS.upper() if cased else "")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"] + [before + c for before in ("", "##") for c in letters]
    tokenizer = Tokenizer(models.WordPiece({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=not cased)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return tokenizer


BERT_SPECIAL = dict(unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]",
                    model_input_names=["input_ids", "token_type_ids", "attention_mask"])


# ------------------------------------------------------------ folders

def write(folder, name, content):
    os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        json.dump(content, file)


def save(folder, class_name, settings, tokenizer, special, rules=None, seed=1):
    """The model with random weights in bf16, the tokenizer, and the rules as generation_config.json."""
    cls = getattr(transformers, class_name)
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)
    config = cls.config_class(vocab_size=len(fast), **settings)
    model, draw = cls(config).eval(), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            numbers = torch.randn(weight.shape, generator=draw)
            if weight.ndim > 1:
                table = any(word in name for word in ("embed", "wte", "shared", "relative"))
                weight.copy_(numbers * (0.5 if table else 1.6 / weight.shape[-1] ** 0.5))
            elif "norm" in name.lower() or "ln_" in name:
                one = name.endswith("weight") and "gemma" not in class_name.lower()
                weight.copy_(one + 0.2 * numbers)
            else:
                weight.copy_(0.2 * numbers)
    model.to(torch.bfloat16).save_pretrained(folder)
    fast.save_pretrained(folder)
    if rules is not None:
        write(folder, "generation_config.json", rules)
    elif os.path.exists(os.path.join(folder, "generation_config.json")):
        os.remove(os.path.join(folder, "generation_config.json"))
    path = os.path.join(folder, "config.json")  # the numbers are f32 for who reads the folder
    with open(path, encoding="utf-8") as file:
        whole = json.load(file)
    write(folder, "config.json", {k: v for k, v in whole.items() if k != "dtype"})


def sentence(folder, prompts=None, lower=False, dense=0, most=32):
    """The files of sentence-transformers for a BERT of width 32: a mean, perhaps a dense module, and a norm."""
    kinds = ["Transformer", "Pooling"] + ["Dense"] * (dense > 0) + ["Normalize"]
    paths = [""] + ["%d_%s" % pair for pair in enumerate(kinds)][1:]
    write(folder, "modules.json", [{"idx": i, "name": str(i), "path": path, "type": MODULES + kind}
                                   for i, (path, kind) in enumerate(zip(paths, kinds))])
    write(folder, "sentence_bert_config.json", {"max_seq_length": most, "do_lower_case": lower})
    write(folder, "1_Pooling/config.json", {"word_embedding_dimension": 32, "pooling_mode_mean_tokens": True})
    if prompts:
        write(folder, "config_sentence_transformers.json", {"prompts": prompts, "default_prompt_name": "query"})
    if dense:
        write(folder, "2_Dense/config.json", {"in_features": 32, "out_features": dense, "bias": True,
                                              "activation_function": "torch.nn.modules.activation.Tanh"})
        draw = torch.Generator().manual_seed(9)
        safetensors.torch.save_file({"linear.weight": torch.randn(dense, 32, generator=draw) / 6,
                                     "linear.bias": torch.randn(dense, generator=draw) / 5},
                                    os.path.join(folder, "2_Dense/model.safetensors"))


def llama(folder):
    save(folder, "LlamaForCausalLM", dict(LLAMA, bos_token_id=1, eos_token_id=2), llama_words(),
         dict(bos_token="<s>", eos_token="</s>", unk_token="<unk>"),
         {"bos_token_id": 1, "eos_token_id": [2, 20], "repetition_penalty": 1.3, "no_repeat_ngram_size": 3})
    return "generate"


def qwen2(folder):
    save(folder, "Qwen2ForCausalLM", dict(LLAMA, bos_token_id=256, eos_token_id=257),
         byte_words(["<|endoftext|>", "<|im_end|>"]), dict(eos_token="<|im_end|>", pad_token="<|endoftext|>"),
         {"eos_token_id": 257, "pad_token_id": 256, "suppress_tokens": [1, 2, 3, 200], "min_new_tokens": 4})
    return "generate"


def gpt2(folder):
    save(folder, "GPT2LMHeadModel", dict(n_embd=32, n_layer=2, n_head=4, n_positions=64, bos_token_id=256,
                                         eos_token_id=256), byte_words(["<|endoftext|>"]),
         dict(bos_token="<|endoftext|>", eos_token="<|endoftext|>"))
    return "generate"


def gemma(folder):
    save(folder, "GemmaForCausalLM", dict(LLAMA, head_dim=8, pad_token_id=0, bos_token_id=2, eos_token_id=1),
         gemma_words(), dict(bos_token="<bos>", eos_token="<eos>", pad_token="<pad>", unk_token="<unk>"),
         {"bos_token_id": 2, "eos_token_id": 1, "pad_token_id": 0, "num_beams": 3, "length_penalty": 0.5,
          "bad_words_ids": [[40, 41], [42]]})
    return "generate"


def t5(folder):
    save(folder, "T5ForConditionalGeneration",
         dict(d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, relative_attention_num_buckets=8,
              decoder_start_token_id=0, pad_token_id=0, eos_token_id=1),
         unigram_words(["<pad>", "</s>", "<unk>"], "$A </s>"),
         dict(eos_token="</s>", pad_token="<pad>", unk_token="<unk>"),
         {"decoder_start_token_id": 0, "eos_token_id": 1, "pad_token_id": 0, "num_beams": 2, "no_repeat_ngram_size": 2})
    return "translate"


def bart(folder):
    save(folder, "BartForConditionalGeneration", BART, byte_words(["<s>", "<pad>", "</s>"], around=True),
         dict(bos_token="<s>", eos_token="</s>", pad_token="<pad>", cls_token="<s>", sep_token="</s>"),
         {"decoder_start_token_id": 2, "bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1,
          "forced_bos_token_id": 0, "forced_eos_token_id": 2, "num_beams": 4, "early_stopping": True,
          "length_penalty": 2.0, "min_length": 5})
    return "translate"


def mbart(folder):
    save(folder, "MBartForConditionalGeneration", BART,
         unigram_words(["<s>", "<pad>", "</s>", "<unk>", "xx_XX", "yy_YY"], "xx_XX $A </s>"),
         dict(bos_token="<s>", eos_token="</s>", pad_token="<pad>", unk_token="<unk>"),
         {"decoder_start_token_id": 2, "eos_token_id": 2, "pad_token_id": 1, "forced_bos_token_id": 5})
    return "translate"


def prompted(folder):
    save(folder, "BertModel", dict(SIZES, pad_token_id=0), bert_words(cased=True), BERT_SPECIAL)
    sentence(folder, {"query": "query x ", "passage": "passage y "}, lower=True)
    return "embed"


def dense(folder):
    save(folder, "BertModel", dict(SIZES, pad_token_id=0), bert_words(),
         dict(BERT_SPECIAL, truncation_side="left", model_max_length=16))
    sentence(folder, dense=12, most=16)
    return "embed"


def classifier(folder):
    save(folder, "BertForSequenceClassification", dict(SIZES, pad_token_id=0, num_labels=3), bert_words(),
         dict(BERT_SPECIAL, truncation_side="left", model_max_length=64))
    return "classify"


def judge(folder):
    save(folder, "LlamaForSequenceClassification", dict(LLAMA, num_labels=4, pad_token_id=2, bos_token_id=1,
                                                        eos_token_id=2), llama_words(),
         dict(bos_token="<s>", eos_token="</s>", pad_token="</s>", unk_token="<unk>", model_max_length=64))
    return "classify"


def ranker(folder):
    save(folder, "BertForSequenceClassification", dict(SIZES, pad_token_id=0, num_labels=1), bert_words(), BERT_SPECIAL)
    return "rerank"


FOLDERS = (llama, qwen2, gpt2, gemma, t5, bart, mbart, prompted, dense, classifier, judge, ranker)


# ------------------------------------------------------------ answers

def embed(folder, found):
    from sentence_transformers import SentenceTransformer
    found["texts"] = ["The Sun", "words and More words of a text that is much longer than the others are", "x"]
    model = SentenceTransformer(folder, device="cpu", model_kwargs={"dtype": torch.float32})  # not bf16 for dense
    model.double()
    found["vectors"] = [[float("%.9g" % x) for x in row] for row in model.encode(found["texts"])]


def answer(folder, kind):
    found = {"kind": kind, "texts": TEXTS}
    if kind == "embed":
        embed(folder, found)
        return found
    words = transformers.AutoTokenizer.from_pretrained(folder)
    auto = {"generate": transformers.AutoModelForCausalLM, "translate": transformers.AutoModelForSeq2SeqLM}
    model = auto.get(kind, transformers.AutoModelForSequenceClassification).from_pretrained(
        folder, attn_implementation="eager", dtype=torch.float32).eval().double()
    if kind == "classify":
        found["texts"] = [*TEXTS, "long " * 30 + "end", "a </s></s>"]
    if kind == "rerank":
        found["texts"] = ["the sun\ta b c", "x\ty z"]
    found["ids"] = []
    if kind in auto:
        found.update({"max_new": 12, "out": [], "shown": []})
    else:
        found["vectors"] = []
    for text in found["texts"]:
        given = words(*text.split("\t"), return_tensors="pt", truncation=kind not in auto)
        if kind in auto:
            given.pop("token_type_ids", None)
        found["ids"].append(given.input_ids[0].tolist())
        with torch.no_grad():
            if kind in auto:
                out = model.generate(**given, max_new_tokens=found["max_new"], do_sample=False)[0]
                found["out"].append(out.tolist())
                found["shown"].append(words.decode(out, skip_special_tokens=True))
            else:
                found["vectors"].append([float("%.9g" % x) for x in model(**given).logits[0].tolist()])
    return found


def main():
    transformers.logging.set_verbosity(50)
    warnings.simplefilter("ignore")
    for make in FOLDERS:
        if sys.argv[1:] and make.__name__ not in sys.argv[1:]:
            continue
        folder = tempfile.mkdtemp()
        try:
            kind = make(folder)
            write(folder, "answers.json", answer(folder, kind))
            with zipfile.ZipFile(os.path.join(HERE, make.__name__ + ".zip"), "w", zipfile.ZIP_DEFLATED) as archive:
                for place, _, names in sorted(os.walk(folder)):
                    for name in sorted(names):
                        path = os.path.join(place, name)
                        entry = zipfile.ZipInfo(os.path.relpath(path, folder))  # without a date
                        with open(path, "rb") as file:
                            archive.writestr(entry, file.read(), zipfile.ZIP_DEFLATED)
            print(make.__name__, os.path.getsize(os.path.join(HERE, make.__name__ + ".zip")))
        finally:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
