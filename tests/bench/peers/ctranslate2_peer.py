"""CTranslate2: encoders and greedy or beam translation, in f32 or in the `compute_type` that is asked for."""
import os

import numpy as np

from worker import Peer

START = 1


class Encoder(Peer):
    def __init__(self, params):
        import ctranslate2
        self.version = ctranslate2.__version__
        kind = params.get("compute_type", "float32")
        self.make = lambda array: ctranslate2.StorageView.from_array(np.ascontiguousarray(array, np.int32))
        self.encoder = ctranslate2.Encoder(params["model"], device="cpu", compute_type=kind, inter_threads=1,
                                           intra_threads=params["threads"])
        self.note = self.encoder.compute_type
        tokens = np.load(params["inputs"][0]).astype(np.int32)
        self.to_f32 = lambda view: np.array(view.to(ctranslate2.DataType.float32))
        self.tokens, self.lengths = self.make(tokens), self.make([tokens.shape[1]])
        self.result = None

    def run(self):
        self.result = self.encoder.forward_batch(self.tokens, self.lengths).last_hidden_state

    def output(self):
        return self.to_f32(self.result)

    def judge(self, given):
        for text in given:
            tokens = text[None, text >= 0]
            yield self.to_f32(self.encoder.forward_batch(self.make(tokens), self.make([tokens.size])).last_hidden_state)


class Translator(Peer):
    def __init__(self, params):
        import ctranslate2
        self.version = ctranslate2.__version__
        self.translator = ctranslate2.Translator(params["model"], device="cpu", inter_threads=1,
                                                 compute_type=params.get("compute_type", "float32"),
                                                 intra_threads=params["threads"])
        self.note = self.translator.compute_type
        names = ["<unk>", "<s>", "</s>"]
        self.words = lambda ids: [names[t] if t < len(names) else "t%d" % t for t in ids]
        self.source = [self.words(np.load(params["inputs"][0]).reshape(-1))]
        self.options = {"beam_size": max(params["beams"], 1), "length_penalty": 0,
                        "min_decoding_length": params["max_new"], "max_decoding_length": params["max_new"]}
        self.ids = {name: i for i, name in enumerate(names)}
        self.result = None

    def run(self):
        self.result = self.translator.translate_batch(self.source, **self.options)

    def output(self):
        return np.array([self.ids[t] if t in self.ids else int(t[1:]) for t in self.result[0].hypotheses[0]], np.int32)

    def judge(self, given):
        """It puts the start in front of the target by itself, and the end behind, which is left out."""
        source, target = given
        scored = self.translator.score_batch([self.words(source)], [self.words(target[1:])])[0]
        return np.array(scored.log_probs[:target.size - 1])


def prepare(params):
    os.environ.setdefault("CT2_VERBOSE", "-1")
    return (Encoder if params["kind"] == "encoder" else Translator)(params)
