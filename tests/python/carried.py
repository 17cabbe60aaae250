"""generate of packages takes the search of the spec, of which options of the caller replace what they name."""
import numpy as np

from lib import searches
from lib.attnc import attnc
from states import raises

# Options of generate(), and options of attnc generate.
SAME = [({}, []), ({"temperature": 0}, ["--temperature", "0"]),
        ({"temperature": 0.7, "seed": 3}, ["--temperature", "0.7", "--seed", "3"]),
        ({"sample": True, "seed": 9, "sequence": 2}, ["--sample", "--seed", "9", "--sequence", "2"]),
        ({"sample": True, "top_k": 5, "top_p": 1, "min_p": 0.2},
         ["--sample", "--top-k", "5", "--top-p", "1", "--min-p", "0.2"]),
        ({"beams": 1, "repetition_penalty": 1}, ["--beam", "1", "--repeat-penalty", "1"]),
        ({"beams": 2, "early_stopping": "never", "length_form": "gnmt"},
         ["--beam", "2", "--early-stopping", "never", "--length-form", "gnmt"]),
        ({"beams": 5, "early_stopping": "heuristic", "length_penalty": -1},
         ["--beam", "5", "--early-stopping", "heuristic", "--length-penalty", "-1"]),
        ({"beams": 3, "early_stopping": "exact"}, ["--beam", "3", "--early-stopping", "exact"]),
        ({"max_new": 5, "no_repeat_ngram": 0}, ["--max-new", "5", "--no-repeat-ngram", "0"]),
        ({"max_new": 9, "min_new": 8, "repetition_penalty": 0.5},
         ["--max-new", "9", "--min-new", "8", "--repeat-penalty", "0.5"]),
        ({"ignore_end": True}, ["--ignore-eos"])]


def wanted(packages, name, options):
    """The new tokens of attnc generate."""
    _, _, prompt, source = searches.SPECS[name]
    given, to = packages.path("given.npy"), packages.path("tokens.npy")
    np.save(given, prompt if source is None else source)
    attnc("generate", packages.path(name + ".attn"), "--weights", "random:1", "--engine", "interp", "--in",
          "%s=%s" % ("tokens" if source is None else "source", given), "--out", "tokens=" + to, *options, status=0)
    return list(np.load(to)[len(prompt):])


def loaded(packages, name):
    """The package, its model, and what continues the prompt of the spec."""
    module = packages.get(searches.spec(packages.scratch, name))
    model = module.load()
    _, _, prompt, source = searches.SPECS[name]
    inputs = {"tokens": prompt} if source is None else {"source": source}
    return module, lambda **options: list(model.generate(**inputs, **options)), model


def like_attnc(packages):
    """The tokens of attnc generate, by the search of the spec and with options that change it."""
    for name in searches.SPECS:
        _, new, _ = loaded(packages, name)
        for named, options in SAME:
            tokens = wanted(packages, name, options)
            got = new(**named)
            assert got == tokens, "%s, %s: %s, not %s" % (name, named, got, tokens)
    assert wanted(packages, "by_beams", []) != wanted(packages, "by_beams", ["--beam", "1"])
    assert wanted(packages, "sampled", []) != wanted(packages, "sampled", ["--temperature", "0"])


# A prompt, items of a block, and the options that state the same.
ITEMS = [([7], "suppress 36 19", {"suppress": [36, 19]}),
         (searches.PROMPT, "suppress_first 36", {"suppress_first": 36}),
         (searches.PROMPT, "bad_word 36\n bad_word 25 40\n bad_word 19 19",
          {"bad_words": [[36], (25, 40), np.array([19, 19])]}),
         ([1], "force_first 9", {"force_first": np.array([9])}),
         (searches.PROMPT, "force_last 8 9", {"force_last": [8, 9]}),
         ([1], "min_length 14", {"min_length": 14}), ([1], "min_new 13", {"min_new": 13}),
         (searches.PROMPT, "no_repeat_ngram 2", {"no_repeat_ngram": 2}),
         (searches.PROMPT, "repetition_penalty 2", {"repetition_penalty": 2}),
         ([1], "sample, min_p 0.4", {"sample": True, "min_p": 0.4})]


def like_items(packages):
    """Each item of the block `generation` is also an option, whose value takes the place of the spec's."""
    searches.SPECS["plain"] = (searches.DECODER, "max_new 14", [1], None)
    module, _, model = loaded(packages, "plain")
    for prompt, item, options in ITEMS:
        searches.SPECS["itemized"] = (searches.DECODER, "max_new 14\n " + item, prompt, None)
        searches.spec(packages.scratch, "itemized")
        tokens = wanted(packages, "itemized", [])
        got = list(model.generate(prompt, **options))
        assert got == tokens, "%s: %s, not %s" % (item, got, tokens)
        assert got != list(model.generate(prompt)), item + " changes nothing"
    plain = list(model.generate([1], temperature=0))
    module, _, model = loaded(packages, "penalties")
    nothing = {"suppress": [], "suppress_first": [], "bad_words": [], "force_last": [], "min_new": 0,
               "repetition_penalty": 1, "no_repeat_ngram": 0}
    assert list(model.generate([1], **nothing)) == plain, "an option cannot empty what the spec has"
    assert "repetition_penalty" in module.Model.generate.__text_signature__


def with_history(packages):
    """A text that continues a state gets the tokens of one that is fed as a whole."""
    module, new, model = loaded(packages, "penalties")
    whole = new(max_new=9)
    prompt = searches.PROMPT
    state = model.state()
    state.feed(prompt[:1])
    model.step([state], prompt[1:2])
    state.step(5)
    state.rewind(2)
    state.step(prompt[2])
    fork = state.copy()
    state.feed([20, 21])
    assert list(model.generate(prompt[3:], max_new=9, state=fork)) == whole, "a state forgets its tokens"
    assert fork.rows == 3 + 1 + 8
    fork.rewind(3 + 1 + 4)
    later = list(model.generate(whole[4:5], max_new=4, force_last=[], state=fork))
    assert later == new(max_new=10, force_last=[])[5:9], "a state forgets the tokens that it was given"
    _, _, beams = loaded(packages, "by_beams")
    raises(ValueError, "beams=1", beams.generate, [1], state=beams.state())
    assert list(beams.generate([1], beams=1, state=beams.state()))


def refused(packages):
    """Wrong options are exceptions with their names."""
    module, new, model = loaded(packages, "by_beams")
    for kind, words, options in ((ValueError, "min_p", {"min_p": 1.5}), (TypeError, "min_p", {"min_p": "much"}),
                                 (ValueError, "repetition_penalty", {"repetition_penalty": 0}),
                                 (ValueError, "no_repeat_ngram", {"no_repeat_ngram": -1}),
                                 (TypeError, "no_repeat_ngram", {"no_repeat_ngram": 1.5}),
                                 (ValueError, "min_length", {"min_length": 2**40}),
                                 (ValueError, "suppress", {"suppress": [41]}),
                                 (ValueError, "suppress_first", {"suppress_first": -1}),
                                 (ValueError, "bad_words: word 1", {"bad_words": [[1], []]}),
                                 (TypeError, "bad_words", {"bad_words": 3}),
                                 (ValueError, "bad_words", {"bad_words": [[-1]]}),
                                 (ValueError, "force_first", {"force_first": [2**31]}),
                                 (TypeError, "force_last", {"force_last": [1.5]}),
                                 (ValueError, "early_stopping: 'exact', 'full', 'heuristic' or 'never'",
                                  {"early_stopping": "soon"}), (ValueError, "length_form", {"length_form": 1}),
                                 (TypeError, "sample", {"sample": "no"}),
                                 (ValueError, "sample=True and temperature=0", {"sample": True, "temperature": 0}),
                                 (ValueError, "sample=False", {"sample": False, "temperature": 1}),
                                 (ValueError, "beams and temperature", {"beams": 2, "temperature": 0.5}),
                                 (ValueError, "beams and sample", {"beams": 2, "sample": True}),
                                 (ValueError, "min_new", {"max_new": 2, "min_new": 3})):
        raises(kind, words, new, **options)
    raises(ValueError, "max_length", model.generate, [4] * 17)
    assert list(model.generate([4] * 17, max_new=2))
    stub = packages.path("package_by_beams", "by_beams", "__init__.pyi")
    with open(stub, encoding="utf-8") as file:
        assert "max_new: int | None = None" in file.read()
    assert "max_new=None" in module.Model.generate.__text_signature__
