"""generate of texts and of several prompts, and its end at texts of the caller."""
import numpy as np

from lib.words import TOKENIZER, VOCAB
from states import raises
from texts import write

WRITER = """model writer {
    d_model 16
    vocab %d
    norm rmsnorm pre
    start 1
    decoder {
        seq <= 60
        position learned
        layers 2 { attention self { heads 2, mask causal }
                   ffn { d_ff 40, activation relu } }
    }
    head logits
}
"""


def loaded(packages):
    tokenizer = write(packages.path("writer.json"), TOKENIZER)
    module = packages.get(write(packages.path("writer.attn"), WRITER % VOCAB), "--tokenizer", tokenizer)
    return module.load()


def writes(packages):
    """A text is continued by parts of a text, and several prompts by a list."""
    model = loaded(packages)
    heat = {"max_new": 12, "temperature": 1.5, "seed": 4}
    prompts = ["w3 w5", "w7", "w3 w5"]
    ids = [list(model.tokenize(text)) for text in prompts]
    rules = {**heat, "min_p": 0.02, "repetition_penalty": 1.3}
    for named in ({"max_new": 12}, heat, {"max_new": 7, "beams": 3}, rules):
        for text, tokens in zip(prompts, ids):
            parts = list(model.generate(text, **named))
            assert parts == list(model.stream(model.generate(tokens, **named))), (text, named, parts)
        texts, lists = model.generate(prompts, **named), model.generate(ids, **named)
        assert len(texts) == len(lists) == 3
        for i, (text, tokens) in enumerate(zip(prompts, ids)):
            alone = {**named, "sequence": i} if "seed" in named else named
            assert lists[i] == list(model.generate(tokens, **alone)), (i, named)
            assert texts[i] == "".join(model.generate(text, **alone)), (i, named)
    assert model.generate(ids, **heat)[0] != model.generate(ids, **heat)[2], "both are drawn alike"
    assert model.generate(np.array([ids[0], ids[2]]), max_new=3) == [list(model.generate(ids[0], max_new=3))] * 2
    assert model.generate(prompts, sequence=5, **heat)[1] == "".join(model.generate(prompts[1], sequence=6, **heat))
    raises(ValueError, "state: it goes with one prompt", model.generate, prompts, max_new=2, state=model.state())
    raises(TypeError, "tokens: ", model.generate, ["w3", 4], max_new=2)
    raises(TypeError, "no argument 'stops'", model.generate, prompts, max_new=2, stops="w3")
    raises(ValueError, "outside 0 to", model.generate, [[3], [10**6]], max_new=2)


def stops(packages):
    """The text ends before the first stop, wherever parts divide it; of tokens the last one completes it."""
    model = loaded(packages)
    whole = "".join(model.generate("w3 w5", max_new=40, temperature=2.0, seed=1))
    tokens = list(model.generate(model.tokenize("w3 w5"), max_new=40, temperature=2.0, seed=1))
    named = {"max_new": 40, "temperature": 2.0, "seed": 1}
    words = whole.split()
    cases = [" ".join(words[4:6]), words[6][1:], " ", whole[:2], whole[-3:], "never", whole, [words[9], words[3] + " "],
             (whole[5:9], "never"), whole[7], "%s never" % words[-1], ["w" + words[2][1:] + " x", words[5]]]
    for stop in cases:
        each = [stop] if isinstance(stop, str) else stop
        ends = [whole.index(text) for text in each if text in whole]
        wanted = whole[:min(ends)] if ends else whole
        parts = list(model.generate("w3 w5", stop=stop, **named))
        assert "".join(parts) == wanted and "" not in parts, (stop, parts, wanted)
        assert model.generate(["w3 w5"], stop=stop, **named) == [wanted]
        got = list(model.generate(model.tokenize("w3 w5"), stop=stop, **named))
        assert got == tokens[:len(got)], (stop, got)
        text = "".join(model.stream(got))
        assert any(one in text for one in each) if ends else got == tokens, (stop, text)
        assert not ends or not any(one in "".join(model.stream(got[:-1])) for one in each), (stop, text)
    for wrong, kind, told in (("", ValueError, "stop: text 0 is empty"), (["a", ""], ValueError, "text 1 is empty"),
                              ([], ValueError, "stop: the list is empty"),
                              (3, TypeError, "stop: a str or a list of them is wanted, not int"),
                              (b"a", TypeError, "stop: a str or a list of them is wanted, not bytes"),
                              (["a", 3], TypeError, "stop: a str or a list of them is wanted, not int")):
        raises(kind, told, model.generate, "w3", max_new=2, stop=wrong)
    ring = packages.get("ring").load()
    raises(TypeError, "stop: the package has no tokenizer", ring.generate, [1], max_new=2, stop="w3")
    raises(TypeError, "tokens: the package has no tokenizer", ring.generate, "w3", max_new=2)
    raises(TypeError, "tokens: the package has no tokenizer", ring.generate, ["w3"], max_new=2)
