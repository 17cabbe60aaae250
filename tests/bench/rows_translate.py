"""A transformer of base size with 32000 tokens: a source of 32 tokens in, exactly 32 out, greedy and by beams, in f32
and in int8."""
import numpy as np

import accuracy
import machine
from rows import Entry, NotRun, Row, against, gcc_near_clang

SPEC, HEADS, VOCAB, SOURCE, TARGET, START, END = "vaswani_32000", 8, 32000, 32, 32, 1, 2
GARBAGE = 1.0  # largest mean difference of log p that is still an approximation of the f32 model


class Translation:
    """What the rows in f32 and in int8 have in common: the spec, the inputs, our parameters, the peer and the title."""
    def __init__(self, context, name, beams, precision):
        self.context, self.precision = context, precision
        self.spec = context.spec(SPEC)
        self.weights = context.weights(self.spec)
        self.source = np.random.default_rng(SOURCE).integers(3, VOCAB, SOURCE)
        self.paths = context.inputs(name, source=self.source, tokens=np.array([START]),
                                    source_lengths=np.array([SOURCE]))
        self.params = {"kind": "generate", "inputs": self.paths, "outputs": {"generated": [TARGET]}, "count": 1,
                       "max_new": TARGET, "beams": beams, "end": END, "threads": 1, "vocab": VOCAB}
        self.title = "6 + 6 layers of 512%s, vocabulary 32000, %d tokens to %d, %s, 1 thread" % (
            " in int8" if precision else "", SOURCE, TARGET, "beam %d" % beams if beams else "greedy")
        self.missing = {}

    def peers(self):
        if not self.context.peers:
            return []
        name = " ".join(filter(None, ("ctranslate2", self.precision)))
        try:
            model = self.context.made("vaswani-ct2", "transformer-ct2", self.weights, HEADS)
        except NotRun as error:
            self.missing[name] = str(error)
            return []
        return [Entry(name, "ctranslate2_peer", {
            "kind": "translator", "model": model, "inputs": [self.paths["source"]], "threads": 1,
            "beams": self.params["beams"], "max_new": TARGET, "compute_type": self.precision or "float32"})]


def row(context, name, beams, needed):
    t = Translation(context, name, beams, None)
    return Row(name, t.title, context.both(t.spec, t.weights, t.params) + t.peers(), bound=0, missing=t.missing,
               bars=[against(needed, "x CTranslate2", "ctranslate2"), gcc_near_clang()],
               note="the same random weights; the check counts tokens that differ")


def narrow_row(context, name, beams, needed):
    """The same in int8; log p of a random target says how far each is from f32."""
    t = Translation(context, name, beams, "int8")
    target = np.random.default_rng(SOURCE).integers(3, VOCAB, (2, SOURCE))[1]  # the first one is the source
    target[0] = START
    judged = context.inputs(name + "-judge", pair=np.array([t.source, target]))["pair"]
    entries = context.both(t.spec, t.weights, t.params, precision="int8", target=machine.narrow_targets())
    entries.append(context.ours("attnc f32", t.spec, t.weights, t.params, reference=True))
    return Row(name, t.title, entries + t.peers(), missing=t.missing,
               bars=[against(needed, "x CTranslate2 int8", "ctranslate2"), gcc_near_clang()],
               judge=accuracy.Judge(judged, accuracy.log_difference, GARBAGE), note="the same random weights")


ROWS = {"vaswani-greedy": lambda context, name: row(context, name, 0, 1.55),
        "vaswani-beam4": lambda context, name: row(context, name, 4, 1.6),
        "vaswani-greedy-int8": lambda context, name: narrow_row(context, name, 0, 2.0),
        "vaswani-beam4-int8": lambda context, name: narrow_row(context, name, 4, 2.0)}
