"""CTranslate2 in f32: encoders and greedy or beam translation."""
import os

import numpy as np

from worker import Peer

START = 1


class Encoder(Peer):
    def __init__(self, params):
        import ctranslate2
        self.version = ctranslate2.__version__
        self.encoder = ctranslate2.Encoder(params["model"], device="cpu", compute_type="float32", inter_threads=1,
                                           intra_threads=params["threads"])
        tokens = np.load(params["inputs"][0]).astype(np.int32)
        self.tokens = ctranslate2.StorageView.from_array(tokens)
        self.lengths = ctranslate2.StorageView.from_array(np.array([tokens.shape[1]], np.int32))
        self.result = None

    def run(self):
        self.result = self.encoder.forward_batch(self.tokens, self.lengths).last_hidden_state

    def output(self):
        return np.array(self.result)


class Translator(Peer):
    def __init__(self, params):
        import ctranslate2
        self.version = ctranslate2.__version__
        self.translator = ctranslate2.Translator(params["model"], device="cpu", compute_type="float32", inter_threads=1,
                                                 intra_threads=params["threads"])
        names = ["<unk>", "<s>", "</s>"]
        source = np.load(params["inputs"][0]).reshape(-1)
        self.source = [[names[t] if t < len(names) else "t%d" % t for t in source]]
        self.options = {"beam_size": max(params["beams"], 1), "length_penalty": 0,
                        "min_decoding_length": params["max_new"], "max_decoding_length": params["max_new"]}
        self.ids = {name: i for i, name in enumerate(names)}
        self.result = None

    def run(self):
        self.result = self.translator.translate_batch(self.source, **self.options)

    def output(self):
        return np.array([self.ids[t] if t in self.ids else int(t[1:]) for t in self.result[0].hypotheses[0]], np.int32)


def prepare(params):
    os.environ.setdefault("CT2_VERBOSE", "-1")
    return (Encoder if params["kind"] == "encoder" else Translator)(params)
