"""Texts to ids, vectors and back: against forward of the ids, and against sentence-transformers where it is."""
import json
import os
import sys

import numpy as np

from lib.attnc import ROOT, attnc, run
from lib.tap import Skip
from lib.words import TOKENIZER, VOCAB
from states import raises
from support import near

SPEC = """model reader {
    d_model 12
    vocab %d
    encoder {
        seq <= 9
        position learned
        segments 2
        layers 1 { attention self { heads 2 }
                   ffn { d_ff 20, activation gelu } }
    }
    head pool mean l2
}
"""


def write(path, content):
    with open(path, "w", encoding="utf-8") as file:
        file.write(content if isinstance(content, str) else json.dumps(content))
    return path


def many(packages):
    """The program of docs/python.md that embeds the lines of a file in several processes."""
    with open(os.path.join(ROOT, "docs", "python.md"), encoding="utf-8") as file:
        page = file.read().split("\n### A million texts on many cores\n")[1]
    spec = write(packages.path("reader.attn"), SPEC % VOCAB)
    module = packages.get(spec, "--tokenizer", write(packages.path("tokenizer.json"), TOKENIZER))
    program = page.split("```python\n")[1].split("```")[0].replace("minilm", "reader")
    lines = ["w%d w%d" % (i % 30, i // 30 % 30) for i in range(2100)]
    texts, vectors = write(packages.path("texts.txt"), "\n".join(lines) + "\n"), packages.path("vectors.npy")
    done = run(sys.executable, write(packages.path("embed_lines.py"), program), texts, vectors, "2", status=0,
               env={"PYTHONPATH": os.path.dirname(os.path.dirname(module.__file__))})
    assert "] 2100 of 2100, " in done.stderr, done.stderr
    np.testing.assert_array_equal(np.load(vectors, mmap_mode="r"), module.load().embed(lines))


def reads(packages):
    """embed, tokenize and decode, with texts that are long, empty or no texts."""
    spec = write(packages.path("reader.attn"), SPEC % VOCAB)
    tokenizer = write(packages.path("tokenizer.json"), TOKENIZER)
    module = packages.get(spec, "--tokenizer", tokenizer)
    model = module.load()
    np.testing.assert_array_equal(model.tokenize("w3 w5 nothing"), [35, 3, 5, 1, 36])
    np.testing.assert_array_equal(model.tokenize("w3", special=False), [3])
    pair = model.tokenize_pair("w3 w4", "w5")
    assert {name: list(value) for name, value in pair.items()} == {"tokens": [35, 3, 4, 36, 5, 36],
                                                                   "segments": [0, 0, 0, 0, 1, 1]}
    assert model.forward(**pair)["pooled"].shape == (12,)
    assert model.decode([3, 5]) == "w3 w5" and model.decode([]) == ""
    assert model.decode(model.tokenize("w7")[1:2]) == "w7"
    assert len(model.tokenize("w3 " * 5000)) == 5002
    assert list(model.stream([3, 5, 40, 7])) == ["w3", " w5", " w7"] and list(model.stream(iter([]))) == []
    stream = model.stream()
    assert [stream.feed(3), stream.feed(np.int32(40)), stream.feed(5), stream.finish(), stream.feed(4)] == [
        "w3", "", " w5", "", "w4"]
    assert list(stream) == []
    del model
    assert stream.feed(5) == " w5"
    model = module.load()
    for wrong, kind in ((-1, ValueError), (1 << 40, ValueError), ("a", TypeError), (1.5, TypeError)):
        raises(kind, "", stream.feed, wrong)
        raises(kind, "", list, model.stream([3, wrong]))
    raises(TypeError, "", model.stream, 3)
    raises(TypeError, "", model.stream, [3], [4])
    one = model.embed("w3 w5")
    np.testing.assert_array_equal(one, model.forward(tokens=[35, 3, 5, 36])["pooled"])
    texts = ["w%d w%d" % (i % VOCAB, 3 * i % VOCAB) for i in range(150)] + ["", "w2 " * 50]
    many = model.embed(texts)
    assert many.shape == (152, 12) and many.dtype == np.float32
    for i in (0, 63, 64, 149, 150, 151):
        np.testing.assert_array_equal(many[i], model.embed(texts[i]))
    np.testing.assert_array_equal(many[151], model.forward(tokens=[35] + [2] * 7 + [36])["pooled"])
    np.testing.assert_array_equal(model.encode(iter(texts[:2])), many[:2])
    assert model.embed([]).shape == (0, 12)
    for wrong, words in ((b"w3", "texts: a str or several of them is wanted, not bytes"),
                         (3, "texts: a str or several of them is wanted, not int"),
                         (None, "texts: a str or several of them is wanted, not NoneType"),
                         (["w3", 4], "texts[1]: a str is wanted, not int"),
                         ([["w3"]], "texts[0]: a str is wanted, not list")):
        raises(TypeError, words, model.embed, wrong)
    raises(TypeError, "second: a str is wanted, not bytes", model.tokenize_pair, "w3", b"w4")
    raises(TypeError, "token: an integer is wanted, not str", model.stream().feed, "w3")
    raises(TypeError, "tokens: an iterable of ids is wanted, not int", model.stream, 3)
    for call, arguments in ((model.tokenize, (3,)), (model.tokenize, ()), (model.tokenize_pair, ("a",)),
                            (model.decode, ("text",)), (model.decode, ([1.5],))):
        raises(TypeError, "", call, *arguments)
    raises(UnicodeEncodeError, "", model.embed, "\ud800")
    raises(TypeError, "special", model.tokenize, "w3", other=1)
    raises(ValueError, "", model.decode, [-1])


RULES = """    text {
        prompt query "W9 \\"w1\\"\\n "
        prompt "no-thing" ""
        default query
        lower_case
        truncate left
    }
"""


def prompted(packages):
    """embed obeys the block `text` of the spec: the prompts, lower case, and the end that is left out."""
    text = (SPEC % VOCAB).replace("reader", "prompted").replace("    head", RULES + "    head")
    spec, tokenizer = write(packages.path("prompted.attn"), text), write(packages.path("tokenizer.json"), TOKENIZER)
    model = packages.get(spec, "--tokenizer", tokenizer).load()

    def pooled(*ids):
        return model.forward(tokens=[35, *ids, 36])["pooled"]

    for given, ids in (({}, (9, 1, 3)), ({"prompt_name": "query"}, (9, 1, 3)), ({"prompt_name": "no-thing"}, (3,)),
                       ({"prompt": ""}, (3,)), ({"prompt": "w5 W6 "}, (5, 6, 3)),
                       ({"prompt": None, "prompt_name": None}, (9, 1, 3))):
        np.testing.assert_array_equal(model.embed("W3", **given), pooled(*ids), str(given))
        np.testing.assert_array_equal(model.embed(["W3"], **given)[0], pooled(*ids), str(given))
    words = ["w%d" % i for i in range(20)]
    np.testing.assert_array_equal(model.embed(" ".join(words)), pooled(*range(13, 20)))
    np.testing.assert_array_equal(model.tokenize("W3"), [35, 3, 36])
    raises(ValueError, "no prompt 'quer'; its prompts are ['query', 'no-thing']", model.embed, "w3", prompt_name="quer")
    raises(TypeError, "prompt_name: a str is wanted, not int", model.embed, "w3", prompt_name=3)
    raises(TypeError, "prompts", model.embed, "w3", prompts="a")
    raises(ValueError, "prompt and prompt_name: the two options exclude each other", model.embed, "w3", prompt="w5",
           prompt_name="query")
    raises(TypeError, "", model.embed, ["w3", 4])
    raises(TypeError, "", model.embed)


def encodes(packages):
    """The options of embed that sentence-transformers has."""
    spec = write(packages.path("encoder.attn"), (SPEC % VOCAB).replace("reader", "encoder_of").replace(" l2", ""))
    os.rename(spec, packages.path("encoder_of.attn"))
    tokenizer = write(packages.path("tokenizer.json"), TOKENIZER)
    module = packages.get(packages.path("encoder_of.attn"), "--tokenizer", tokenizer)
    model = module.load()
    texts = ["w%d w%d" % (i % VOCAB, 3 * i % VOCAB) for i in range(150)]
    plain = model.encode(texts)
    for given in ({"batch_size": 1}, {"batch_size": 7}, {"batch_size": 4096}, {"show_progress_bar": False},
                  {"show_progress_bar": None, "convert_to_numpy": True, "normalize_embeddings": False}):
        np.testing.assert_array_equal(model.encode(texts, **given), plain, str(given))
    lengths = np.linalg.norm(plain.astype(float), axis=1, keepdims=True)
    assert abs(lengths - 1).max() > 0.1, "the vectors have the length 1 already"
    near(model.encode(texts, normalize_embeddings=True), (plain / lengths).astype(np.float32), "normalized", 1e-7)
    near(model.encode("w3 w5", normalize_embeddings=True), model.encode(["w3 w5"], normalize_embeddings=True)[0], "one")
    done = run(sys.executable, "-c", "import encoder_of; encoder_of.load().encode(['w3'] * 5, batch_size=2, "
               "show_progress_bar=True)", env={"PYTHONPATH": os.path.dirname(os.path.dirname(module.__file__))},
               status=0)
    lines = ["encoder_of: %d of 5 texts" % n for n in (2, 4, 5)]
    assert done.stderr.split() == " ".join(lines).split(), done.stderr
    for wrong, kind, words in (
            ({"batch_size": 0}, ValueError, "batch_size: 1 to 4096 are possible, not 0"),
            ({"batch_size": 2**70}, ValueError, "batch_size: 1 to 4096 are possible"),
            ({"batch_size": 1.5}, TypeError, "batch_size: an integer is wanted, not float"),
            ({"batch_size": None}, TypeError, "batch_size: an integer is wanted, not NoneType"),
            ({"normalize_embeddings": 1}, TypeError, "normalize_embeddings: True or False is wanted, not int"),
            ({"convert_to_numpy": False}, ValueError, "convert_to_numpy: only True is possible"),
            ({"device": "cuda"}, TypeError, "embed() takes no argument 'device'; its options are: prompt, "),
            ({"prompt_name": "query"}, ValueError, "the model has no prompt 'query'")):
        raises(kind, words, model.encode, texts, **wrong)


def refuses(packages):
    """Tokenizers with more ids than the model has rows, for models without ids, and names that Python has taken."""
    tokenizer = write(packages.path("more.json"), TOKENIZER)
    for name, text, status, words in (
            ("reader_small", SPEC.replace("reader", "reader_small") % 20, 1, "37 ids, and the model has rows for 20"),
            ("alone", "model alone { d_model 8, queries <= 4, attention self { heads 2 } }", 1, "`alone` reads none"),
            ("import", SPEC.replace("reader", "import") % 40, 3, "cannot name a package"),
            ("random", SPEC.replace("reader", "random") % 40, 3, "cannot name a package"),
            ("attn_py", SPEC.replace("reader", "attn_py") % 40, 3, "cannot name a package")):
        spec = write(packages.path(name + ".attn"), text)
        folder, told = packages.write(spec, "--tokenizer", tokenizer, status=status)
        assert words in told, told
        assert not os.path.exists(folder), os.listdir(folder)
    spec = write(packages.path("plain.attn"), SPEC.replace("reader", "plain") % 40)
    attnc("python", spec, status=2)
    attnc("python", spec, "-o", packages.path("plain"), "--unroll", "full", status=2)
    attnc("python", packages.path("no.attn"), "-o", packages.path("plain"), status=1)
    attnc("python", spec, "-o", packages.path("plain"), "--weights", packages.path("no.safetensors"), status=1)
    assert not os.path.exists(packages.path("plain"))
    _, told = packages.write(write(packages.path("bare.attn"), SPEC.replace("reader", "bare") % 40), "--tokenizer",
                             packages.path("none.json"), status=1)
    assert "none.json" in told, told


def sentences(packages):
    """embed gives the vectors of sentence-transformers, of a random model that it has saved."""
    try:
        import torch
        from sentence_transformers import SentenceTransformer
        from transformers import BertConfig, BertModel, PreTrainedTokenizerFast
    except ImportError as why:
        raise Skip("no sentence-transformers") from why
    folder = packages.path("saved")
    torch.manual_seed(1)
    config = BertConfig(vocab_size=VOCAB, hidden_size=24, num_hidden_layers=2, num_attention_heads=3,
                        intermediate_size=40, max_position_embeddings=16)
    BertModel(config).save_pretrained(folder)
    file = write(packages.path("saved.json"), TOKENIZER)
    PreTrainedTokenizerFast(tokenizer_file=file, pad_token="w0", model_max_length=16,
                            truncation_side="left").save_pretrained(folder)
    os.makedirs(os.path.join(folder, "1_Pooling"))
    kinds = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    write(os.path.join(folder, "modules.json"),
          [{"idx": i, "name": str(i), "path": path, "type": "sentence_transformers.models." + kind}
           for i, (path, kind) in enumerate(kinds)])
    write(os.path.join(folder, "1_Pooling", "config.json"),
          {"word_embedding_dimension": 24, "pooling_mode_mean_tokens": True})
    write(os.path.join(folder, "sentence_bert_config.json"), {"max_seq_length": 16, "do_lower_case": True})
    write(os.path.join(folder, "config_sentence_transformers.json"),
          {"prompts": {"query": "W6 w7 ", "document": ""}, "default_prompt_name": "query"})
    spec = packages.path("saved_model.attn")
    attnc("import", folder, "-o", spec, "--name", "saved_model", status=0)
    model = packages.get(spec, "--tokenizer", folder, weights=folder).load()
    texts = ["w3 w5", "w7", "", "w9 " * 40] + ["w%d" % (i % 30) + " w4" * (i % 13) for i in range(90)]
    right = SentenceTransformer(folder, device="cpu")
    for given in ({}, {"prompt_name": "document"}, {"prompt": "W1 "}):
        near(model.embed(texts, **given), right.encode(texts, **given), "vectors %s" % given)
