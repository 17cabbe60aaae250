"""A model as an object of Python: what it tells of itself, its end, weak references and pickles."""
import copy
import os
import pickle
import shutil
import threading
import weakref

import numpy as np

from errors import tiny
from lib.words import TOKENIZER, VOCAB
from states import raises
from texts import SPEC, write


def tells(packages):
    """repr and attributes, of an encoder, a decoder, both, and attention alone."""
    model = tiny(packages).load(threads=2)
    assert repr(model) == "<tiny.Model: encoder, width 12, seq 9, threads 2, target scalar>", repr(model)
    assert (model.width, model.seq, model.vocab, model.threads, model.start, model.end) == (12, 9, 300, 2, None, ())
    assert model.inputs == {"tokens": ("n",), "segments": ("n",), "attention_mask": ("n",)}
    assert model.outputs == {"hidden": ("n", 12), "pooled": (12,)}
    raises(AttributeError, "", setattr, model, "width", 3)
    for name, kind in (("ring", "decoder"), ("pair", "encoder and decoder"), ("alone_cross", "attention"),
                       ("export_some", "encoder")):
        module = packages.get(name)
        told = module.load()
        assert repr(told).startswith("<%s.Model: %s, " % (module.__name__, kind)), repr(told)
        documented = module.Model.forward.__doc__
        for shapes in (told.inputs, told.outputs):
            for word, shape in shapes.items():
                assert "\n    %s: " % word in documented, (word, documented)
                line = documented.split("\n    %s: " % word)[1].split("\n")[0]
                assert word == "attention_mask" or "[%s]" % ", ".join(map(str, shape)) in line, (word, shape, line)
    pair = packages.get("pair").load()
    assert (pair.start, pair.end, pair.vocab, pair.seq, pair.width) == (0, (7, 11), 45, 48, 24)


def closes(packages):
    """After close() every use is an Error; calls that run in other threads come to their end first."""
    tokenizer = write(packages.path("closing.json"), TOKENIZER)
    module = packages.get(write(packages.path("closing.attn"), SPEC.replace("reader", "closing") % VOCAB),
                          "--tokenizer", tokenizer)
    with module.load() as model:
        wanted = model.embed("w3")
        stream, filled = model.stream(), model.stream([3])
        assert not model.closed
    assert model.closed and repr(model) == "<closing.Model: closed>" and model.width == 12
    words = "closing: the model was closed; load() gives another one"
    for call, arguments in ((model.embed, ("w3",)), (model.tokenize, ("w3",)), (model.tokenize_pair, ("w3", "w4")),
                            (model.decode, ([3],)), (model.stream, ()), (stream.feed, (3,)), (stream.finish, ()),
                            (next, (filled,)), (model.target, ()), (model.__enter__, ())):
        raises(module.Error, words, call, *arguments)
    raises(module.Error, words, model.forward, tokens=[3])
    model.close()
    del stream, filled
    for threads in (1, 3):
        model, results = module.load(threads=threads), []
        texts = ["w3"] * 400

        def work():
            try:
                results.append(model.embed(texts))
            except module.Error as why:
                results.append(str(why))

        workers = [threading.Thread(target=work) for _ in range(4)]
        for worker in workers:
            worker.start()
        model.close()
        for worker in workers:
            worker.join()
        assert len(results) == 4
        for result in results:
            if isinstance(result, str):
                assert result == words, result
            else:
                np.testing.assert_array_equal(result, np.broadcast_to(wanted, result.shape))
    ring = packages.get("ring")
    model = ring.load()
    state, text = model.state(), model.generate([1, 2], max_new=4, ignore_end=True)
    state.feed([1])
    next(text)
    model.close()
    for call in (model.state, lambda: state.feed([1]), lambda: state.step(1), lambda: model.step([state], [1]),
                 lambda: next(text), lambda: model.generate([1], max_new=2)):
        raises(ring.Error, "the model was closed", call)
    assert state.rows == 1
    state.release()


def pickles(packages):
    """A pickle has the path, the threads and the target; weak references end with the model."""
    module = tiny(packages)
    model = module.load(threads=3, target="scalar")
    again = pickle.loads(pickle.dumps(model))
    assert repr(again) == repr(model) and again is not model
    wanted = model.forward(tokens=[1, 2])["hidden"]
    np.testing.assert_array_equal(again.forward(tokens=[1, 2])["hidden"], wanted)
    np.testing.assert_array_equal(copy.copy(model).forward(tokens=[1, 2])["hidden"], wanted)
    weak = weakref.ref(model)
    assert weak() is model
    del model
    assert weak() is None
    path = packages.path("moved.attnw")
    shutil.copy(os.path.join(os.path.dirname(module.__file__), "tiny.attnw"), path)
    here = os.getcwd()
    os.chdir(packages.scratch)
    try:
        saved = pickle.dumps(module.load("moved.attnw"))
    finally:
        os.chdir(here)
    np.testing.assert_array_equal(pickle.loads(saved).forward(tokens=[1, 2])["hidden"], wanted)
    os.remove(path)
    raises(FileNotFoundError, "the weights of a pickled model are no longer there: '%s'" % path, pickle.loads, saved)
    raises(TypeError, "pickle", pickle.dumps, packages.get("ring").load().state())
