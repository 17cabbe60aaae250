"""States and generate of packages against forward and attnc generate."""
import os
import threading

import numpy as np

from lib.attnc import attnc
from forward import Drawn
from support import near


def raises(kind, words, call, *arguments, **named):
    """Whether a call raises this kind of exception, with these words."""
    try:
        call(*arguments, **named)
    except kind as why:
        assert words in str(why), "`%s` is not in `%s`" % (words, why)
        return
    raise AssertionError("no %s" % kind.__name__)


def generated(module, scratch, most, *options, **inputs):
    """The new tokens of attnc generate."""
    arguments = []
    for name, value in inputs.items():
        path = os.path.join(scratch, "in_%s.npy" % name)
        np.save(path, np.asarray(value))
        arguments += ["--in", "%s=%s" % (name, path)]
    to = os.path.join(scratch, "tokens.npy")
    attnc("generate", module.spec, "--weights", "random:1", *arguments, "--max-new", str(most), "--out", "tokens=" + to,
          "--engine", "interp", *options, status=0)
    prompt = len(inputs["tokens"]) if "tokens" in inputs else 1
    return list(np.load(to)[prompt:])


SEARCHES = [({}, []), ({"ignore_end": True}, ["--ignore-eos"]),
            ({"temperature": 0.9, "seed": 7}, ["--temperature", "0.9", "--seed", "7"]),
            ({"temperature": 1.5, "seed": 2**64 - 3, "top_k": 9, "sequence": 4},
             ["--temperature", "1.5", "--seed", str(2**64 - 3), "--top-k", "9", "--sequence", "4"]),
            ({"temperature": 1.1, "top_p": 0.7, "min_new": 5},
             ["--temperature", "1.1", "--top-p", "0.7", "--min-new", "5"]),
            ({"beams": 3}, ["--beam", "3"]),
            ({"beams": 2, "length_penalty": 1.5, "length_form": "power"},
             ["--beam", "2", "--length-penalty", "1.5", "--length-form", "power"])]


def searches(module, model, scratch, most, inputs, chosen=None):
    for named, options in SEARCHES if chosen is None else [SEARCHES[i] for i in chosen]:
        wanted = generated(module, scratch, most, *options, **inputs)
        got = list(model.generate(max_new=most, **named, **inputs))
        assert got == wanted, "%s: %s, not %s" % (named, got, wanted)
        assert all(type(token) is int for token in got)


def decoder(packages):
    """Rings, rewinding, copies, steps over several states, and generate with every search."""
    module = packages.get("ring")
    model = module.load()
    tokens = np.random.default_rng(3).integers(0, 40, 20)
    whole = model.forward(tokens=tokens)["logits"]
    state = model.state()
    near(state.feed(tokens[:7])["logits"], whole[6], "the first rows")
    near(state.feed(tokens=tokens[7:9])["logits"], whole[8], "further rows")
    near(state.step(tokens[9]), whole[9], "one row")
    assert state.rows == 10
    fork = state.copy()
    near(model.step([state, fork], [tokens[10], 3])[0], whole[10], "a row of two states")
    assert list(state.feed(tokens[11:13], outputs="hidden")) == ["hidden"]
    state.rewind(11)
    near(state.step(int(tokens[11])), whole[11], "a row again")
    assert fork.rows == 11 and state.rows == 12
    wrong_states(module, model, state, fork)
    searches(module, model, packages.scratch, 12, {"tokens": tokens[:5]})


def integers(packages):
    """Integers of rows, perhaps below 0, next to the tokens that a state takes."""
    module = packages.get("where_decoder_documents")
    model = module.load()
    draw = np.random.default_rng(5)
    rows = {"tokens": draw.integers(0, 50, 40), "doc": np.repeat([0, 1, 1, 3], 10), "lead": draw.integers(-1, 2, 40)}
    whole = model.forward(**rows)["logits"]
    state, at = model.state(), 0
    for until in (5, 21, 22, 40):
        near(state.feed(**{name: row[at:until] for name, row in rows.items()})["logits"], whole[until - 1], "rows")
        at = until
    state.rewind(23)
    near(state.feed(**{name: row[23:31].tolist() for name, row in rows.items()})["logits"], whole[30], "rows again")
    raises(TypeError, "needs the input doc", state.feed, [1], lead=[0])
    raises(ValueError, "doc: 4 at row 0 of sequence 0 is outside 0 to 3", state.feed, [1], doc=[4], lead=[0])
    raises(ValueError, "lead: -2 at row 1 of sequence 0 is outside -1 to 1", state.feed, [1, 1], doc=[0, 0],
           lead=[0, -2])
    raises(TypeError, "feed() is for all", state.step, 1)
    assert state.rows == 31 and not hasattr(model, "generate")


def numbers(packages):
    """Numbers of sequences, perhaps real, which a state keeps from its first rows on."""
    module = packages.get("number_decoder")
    model = module.load()
    draw = np.random.default_rng(6)
    tokens, given = draw.integers(0, 50, (2, 40)), {"near": [-2, 3], "first": [0, 0], "tilt": [0.5, -0.25]}
    whole = model.forward(tokens=tokens, **given)["logits"]
    one = {name: pair[0] for name, pair in given.items()}
    near(model.forward(tokens=tokens[0], **one)["logits"], whole[0], "one sequence")
    near(model.forward(tokens=tokens, **{**given, "first": 0})["logits"], whole, "a number for both")
    none = {name: np.array(number) for name, number in one.items()}
    near(model.forward(tokens=tokens[0], **none)["logits"], whole[0], "arrays without a dimension")
    assert "tilt: a float, or one a sequence, -2 to 2" in module.Model.forward.__doc__
    for b in 0, 1:
        state = model.state()
        first = state.feed(tokens[b][:5], **{name: pair[b] for name, pair in given.items()})
        near(first["logits"], whole[b][4], "rows")
        near(state.feed(tokens[b][5:21])["logits"], whole[b][20], "rows without numbers")
        near(state.feed(tokens[b][21:], near=7, first=1, tilt=0)["logits"], whole[b][39], "rows with other numbers")
    raises(ValueError, "near: it may be -5 to 20", model.state().feed, [1], **{**one, "near": 21})
    raises(ValueError, "first: it has 3 numbers for 1 sequences", model.state().feed, [1],
           **{**one, "first": [1, 2, 3]})
    raises(TypeError, "near: an integer is wanted, not float", model.state().feed, [1], **{**one, "near": 2.0})
    raises(ValueError, "tilt: nan at 0 of sequence 0 is outside -2 to 2", model.state().feed, [1],
           **{**one, "tilt": float("nan")})
    raises(ValueError, "tilt: 3 at 0 of sequence 1 is outside -2 to 2", model.forward, tokens=tokens,
           **{**given, "tilt": [0, 3.0]})
    raises(TypeError, "feed() needs the input first for the first rows of a state", model.state().feed, [1], near=0,
           tilt=0.0)
    raises(TypeError, "needs the input first", model.forward, tokens=[1], near=0, tilt=0.0)
    raises(TypeError, "", model.forward, tokens=[1], near=0, first=0, tilt="x")
    near(state.copy().step(7), state.feed([7])["logits"], "a step")
    numbers_of_steps(model, tokens, given, whole)
    numbers_of_texts(module, model, packages.scratch, tokens, given)


def numbers_of_steps(model, tokens, given, whole):
    """The first tokens of states come with numbers, by which later ones are computed."""
    one = {name: pair[1] for name, pair in given.items()}
    state, pair = model.state(), [model.state(), model.state()]
    near(state.step(tokens[1][0], **one), whole[1][0], "a first step")
    near(state.step(tokens[1][1]), whole[1][1], "a second step")
    near(state.step(tokens[1][2], near=9, first=3, tilt=1.0), whole[1][2], "a step with other numbers")
    near(model.step(pair, tokens[:, 0], **given), whole[:, 0], "first steps")
    near(model.step(pair, tokens[:, 1], tilt=np.float32(0)), whole[:, 1], "second steps")
    near(model.step([pair[0], model.state()], [tokens[0][2], tokens[1][0]], **{**given, "near": np.array([0, 3])}),
         np.stack([whole[0][2], whole[1][0]]), "a first step and a third one")
    alike = model.step([model.state(), model.state()], tokens[:, 0], **one)
    near(alike[1], whole[1][0], "numbers for both")
    empty = model.state()
    raises(TypeError, "step() needs the input first for the first rows of a state", empty.step, 1, near=0, tilt=0.0)
    raises(TypeError, "step() needs the input near for", model.step, [pair[0], empty], [1, 2])
    raises(TypeError, "step() takes no argument 'tokens'", empty.step, 1, tokens=[1])
    raises(TypeError, "step() takes no argument 'far'", model.step, [empty], [1], far=3)
    raises(TypeError, "step() takes one token", empty.step)
    raises(ValueError, "near: it may be -5 to 20", empty.step, 1, **{**one, "near": -6})
    raises(ValueError, "tilt: nan at 0 of sequence 0 is outside", empty.step, 1, **{**one, "tilt": float("nan")})
    raises(ValueError, "near: it has 2 numbers for 1 sequences", model.step, [empty], [1], **given)
    assert empty.rows == 0 and pair[0].rows == 3


def numbers_of_texts(module, model, scratch, tokens, given):
    one = {name: pair[0] for name, pair in given.items()}
    files = {name: np.array([number], np.float32 if name == "tilt" else np.int64) for name, number in one.items()}
    for named, options in (SEARCHES[0], SEARCHES[2], SEARCHES[5]):
        wanted = generated(module, scratch, 12, *options, tokens=tokens[0][:6], **files)
        got = list(model.generate(tokens[0][:6], max_new=12, **named, **one))
        assert got == wanted, "%s: %s, not %s" % (named, got, wanted)
    greedy = list(model.generate(tokens[0][:6], max_new=12, **one))
    state = model.state()
    state.feed(tokens[0][:4], **one)
    assert list(model.generate(tokens[0][4:6], max_new=12, state=state)) == greedy, "a text of a state"
    state.rewind(0)
    raises(TypeError, "generate() needs the input near for the first rows", model.generate, [1], max_new=2, state=state)
    assert list(model.generate(tokens[0][:6], max_new=12, state=state, **one)) == greedy, "a text of an empty state"
    raises(TypeError, "generate() needs the input tilt for the first rows", model.generate, [1], max_new=2, near=0,
           first=0)
    raises(ValueError, "near: it may be -5 to 20", model.generate, [1], max_new=2, **{**one, "near": 21})
    assert "near=None, first=None, tilt=None" in module.Model.generate.__text_signature__


def wrong_states(module, model, state, fork):
    bound = int(module.Model.forward.__doc__.split("n is 1 to ")[1].split(".")[0])
    rows = state.rows
    raises(ValueError, "too long", state.feed, [1] * (bound - rows + 1))
    raises(ValueError, "outside 0 to", state.step, 10**6)
    raises(ValueError, "outside 0 to", state.feed, [-1])
    raises(TypeError, "token: an integer is wanted, not float", state.step, 1.5)
    raises(TypeError, "rows: an integer is wanted, not str", state.rewind, "1")
    raises(ValueError, "batch", state.feed, [[1, 2]])
    raises(ValueError, "states and", model.step, [state], [1, 2])
    raises(module.StateError, "twice", model.step, [state, state], [1, 2])
    raises(TypeError, "states", model.step, [1], [1])
    raises(TypeError, "list of states", module.load().step, [state], [1])
    raises(ValueError, "0 to", state.rewind, rows + 1)
    raises(ValueError, "0 to", state.rewind, -1)
    assert state.rows == rows, "a refused call has changed a state"
    with fork:
        assert fork.rows
    for call, arguments in ((fork.feed, ([1],)), (fork.step, (1,)), (fork.copy, ()), (fork.rewind, (0,)),
                            (model.step, ([fork], [1]))):
        raises(module.StateError, "released", call, *arguments)
    raises(module.StateError, "released", lambda: fork.rows)
    fork.release()
    raises(TypeError, "", module.State)
    raises(TypeError, "", module.Model)


def options(packages):
    """What generate refuses, continuing a state, and closing in the middle."""
    module = packages.get("ring")
    model = module.load(threads=2)
    for kind, words, named in ((TypeError, "max_new", {}), (ValueError, "range", {"max_new": -1}),
                               (ValueError, "max_new", {"max_new": 0}), (ValueError, "most", {"max_new": 10**6}),
                               (ValueError, "option", {"max_new": 2, "min_new": 3}),
                               (ValueError, "option", {"max_new": 2, "temperature": -1}),
                               (ValueError, "option", {"max_new": 2, "temperature": float("nan")}),
                               (ValueError, "option", {"max_new": 2, "top_p": 2.0}),
                               (ValueError, "option", {"max_new": 2, "beams": 2, "temperature": 1}),
                               (ValueError, "beams", {"max_new": 2, "beams": 10**6}),
                               (ValueError, "seed", {"max_new": 2, "seed": -1}),
                               (ValueError, "gnmt", {"max_new": 2, "length_form": "other"}),
                               (ValueError, "outside", {"max_new": 2, "end": [10**6]}),
                               (TypeError, "argument", {"max_new": 2, "source": [1]}),
                               (TypeError, "state", {"max_new": 2, "state": 3})):
        raises(kind, words, model.generate, [1, 2], **named)
    raises(ValueError, "empty", model.generate, [], max_new=1)
    for words, named in (("max_new: an integer is wanted, not str", {"max_new": "9"}),
                         ("seed: an integer is wanted, not float", {"max_new": 9, "seed": 1.5}),
                         ("top_p: a number is wanted, not list", {"max_new": 9, "top_p": [1]}),
                         ("ignore_end: True or False is wanted, not int", {"max_new": 9, "ignore_end": 1})):
        raises(TypeError, words, model.generate, [1], **named)
    raises(ValueError, "outside 0", model.generate, [10**6], max_new=1)
    raises(TypeError, "", model.generate, [1.5], max_new=1)
    plain = list(model.generate([1, 2, 3], max_new=9, ignore_end=True))
    assert list(model.generate([1, 2, 3], max_new=9, end=[plain[4]])) == plain[:plain.index(plain[4]) + 1]
    assert list(model.generate([1, 2, 3], max_new=9, end=[])) == plain
    state = model.state()
    state.feed([1, 2])
    assert list(model.generate([3], max_new=4, ignore_end=True, state=state)) == plain[:4]
    assert state.rows == 6
    assert list(model.generate(plain[3:4], max_new=5, ignore_end=True, state=state)) == plain[4:]
    half = model.generate([1], max_new=4, state=state)
    next(half)
    state.rewind(1)
    raises(module.StateError, "other calls", next, half)
    state.release()
    raises(module.StateError, "released", model.generate, [1], max_new=1, state=state)
    for _ in range(3):
        next(model.generate([1], max_new=4))


def encoder_decoder(packages):
    """States over a source, maps of attention, and generate from a source."""
    module = packages.get("seq2seq_export")
    model = module.load()
    source, target = [3, 5, 7, 2, 9], [1, 4, 8]
    whole = model.forward(source=source, target=target)
    state = model.state(source=np.array(source))
    first = state.feed(target[:2])
    near(first["logits"], whole["logits"][1], "logits")
    near(first["hidden"], whole["hidden"][:2], "hidden")
    near(first["cross_attention"], whole["cross_attention"][:, :, :2], "cross_attention")
    near(first["attention"], whole["attention"][:, :, :2, :2], "attention")
    fork = state.copy()
    state.release()
    second = fork.feed(target[2:])
    near(second["attention"], whole["attention"][:, :, 2:], "attention of a further row")
    near(second["cross_attention"], whole["cross_attention"][:, :, 2:], "cross_attention of a further row")
    del model
    assert fork.step(1).shape == (41,), "a state holds its model"
    model = module.load()
    raises(TypeError, "needs the input source", model.state)
    raises(TypeError, "argument", model.state, sauce=[1])
    raises(ValueError, "batch", model.state, source=[[1], [2]])
    raises(TypeError, "outputs", model.state, source=[1], outputs="hidden")
    raises(TypeError, "tokens", model.generate, source=source, max_new=2)
    searches(module, model, packages.scratch, 9, {"tokens": [1], "source": source}, chosen=[0, 2, 5])
    masked = {"source": source, "attention_mask": [1, 1, 1, 0, 0]}
    assert list(model.generate([1], max_new=9, **masked)) == list(model.generate([1], max_new=9, source=source[:3]))


def starts_again(packages):
    """Angles that change with the number of rows: states say so, and generate starts again by itself."""
    module = packages.get(os.path.join(os.path.dirname(__file__), os.pardir, "decode", "longrope.attn"))
    model = module.load()
    state = model.state()
    state.feed([1] * 30)
    raises(module.StateError, "rewind to 0", state.step, 1)
    prompt = list(range(1, 27))
    searches(module, model, packages.scratch, 12, {"tokens": prompt}, chosen=[0, 2, 5])


def prefixed(packages):
    """A prefix that all rows see, in states and in generate."""
    module = packages.get("prefix")
    model = module.load()
    tokens = [1, 2, 3, 4, 5, 6]
    whole = model.forward(tokens=tokens, prefix_length=3)["logits"]
    state = model.state()
    near(state.feed(tokens[:4], prefix_length=3)["logits"], whole[3], "a prefix")
    near(state.feed(tokens[4:])["logits"], whole[5], "rows behind it")
    raises(ValueError, "too long", model.state().feed, tokens[:2], prefix_length=3)
    wanted = generated(module, packages.scratch, 6, tokens=tokens, prefix_length=np.array(3))
    assert list(model.generate(tokens, max_new=6, prefix_length=3)) == wanted


def other_sources(packages):
    """Texts over sounds, images and rows."""
    for name in ("sound_to_tokens", "patches_to_tokens", "features_to_tokens"):
        module = packages.get(name)
        model = module.load()
        drawn = Drawn(module, 4)
        lengths = drawn.lengths()
        (source,) = set(drawn.inputs) - {"target"}
        inputs = {source: drawn.one(source, lengths)}
        target = drawn.one("target", {**lengths, "n": 3})
        whole = model.forward(**inputs, target=target)
        state = model.state(**inputs)
        near(state.feed(target)["logits"], whole["logits"][2], name)
        searches(module, model, packages.scratch, 4, {"tokens": [1, 2], **inputs}, chosen=[0])


ROWS = """model causal_rows {
    d_model 12
    decoder {
        input features
        seq <= 20
        position learned
        layers 2 { attention self { heads 2, mask causal }
                   ffn { d_ff 20 } }
    }
    head none
}
"""


def rows(packages):
    """A decoder of rows has states without tokens."""
    spec = packages.path("causal_rows.attn")
    with open(spec, "w", encoding="utf-8") as file:
        file.write(ROWS)
    module = packages.get(spec)
    model = module.load()
    rows = np.random.default_rng(1).standard_normal((5, 12)).astype("float32")
    whole = model.forward(features=rows)["hidden"]
    state = model.state()
    near(state.feed(rows[:3])["hidden"], whole[:3], "rows")
    near(state.feed(features=rows[3:])["hidden"], whole[3:], "further rows")
    raises(TypeError, "tokens", state.step, 1)
    assert not hasattr(model, "generate") and not hasattr(model, "step")


def rows_of_both(packages):
    """A decoder of rows over a source of rows of another width."""
    model = packages.get("features_to_features").load()
    draw = np.random.default_rng(2)
    source, rows = (draw.standard_normal(shape).astype("float32") for shape in ((7, 30), (5, 18)))
    whole = model.forward(source_features=source, target_features=rows)
    state = model.state(source_features=source)
    near(state.feed(rows[:2])["hidden"], whole["hidden"][:2], "rows")
    near(state.feed(target_features=rows[2:])["hidden"], whole["hidden"][2:], "further rows")
    raises(ValueError, "source_features", model.state, source_features=rows)
    raises(ValueError, "target_features", state.feed, source)
    raises(TypeError, "features", model.forward, features=rows, target_features=rows)
    assert state.rows == 5 and not hasattr(model, "generate") and not hasattr(model, "step")


def together(packages):
    """Threads of Python that share a model, each with its own state, and two that share one."""
    module = packages.get("ring")
    model = module.load(threads=2)
    wanted = [list(model.generate([k, 2], max_new=8, ignore_end=True)) for k in range(8)]
    got, errors = [None] * 8, []

    def work(k):
        try:
            for _ in range(4):
                got[k] = list(model.generate([k, 2], max_new=8, ignore_end=True))
                state = model.state()
                for token in range(10):
                    state.step(token)
        except Exception as why:  # pylint: disable=broad-except
            errors.append(why)

    shared, refused = model.state(), []

    def contend():
        for _ in range(200):
            try:
                if shared.rows > 20:
                    shared.rewind(0)
                shared.step(1)
            except module.StateError as why:
                refused.append(str(why))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    threads += [threading.Thread(target=contend) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
    assert got == wanted, "threads change results"
    assert all("another call" in why for why in refused), set(refused)
