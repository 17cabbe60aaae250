"""A transformer of base size with 32000 tokens: a source of 32 tokens in, exactly 32 out, greedy and by beams, in f32
and in int8."""
import numpy as np

import accuracy
import machine
from rows import Entry, NotRun, Row, against, gcc_near_clang

SPEC, HEADS, VOCAB, SOURCE, TARGET, START, END = "vaswani_32000", 8, 32000, 32, 32, 1, 2
GARBAGE = 1.0  # largest mean difference of log p that is still an approximation of the f32 model


def row(context, name, beams, needed):
    spec = context.spec(SPEC)
    weights = context.weights(spec)
    source = np.random.default_rng(SOURCE).integers(3, VOCAB, SOURCE)
    paths = context.inputs(name, source=source, tokens=np.array([START]), source_lengths=np.array([SOURCE]))
    entries = context.both(spec, weights, {
        "kind": "generate", "inputs": paths, "outputs": {"generated": [TARGET]}, "count": 1, "max_new": TARGET,
        "beams": beams, "end": END, "threads": 1})
    missing = {}
    if context.peers:
        try:
            model = context.made("vaswani-ct2", "transformer-ct2", weights, HEADS)
            entries.append(Entry("ctranslate2", "ctranslate2_peer", {
                "kind": "translator", "model": model, "inputs": [paths["source"]], "threads": 1, "beams": beams,
                "max_new": TARGET}))
        except NotRun as error:
            missing["ctranslate2"] = str(error)
    return Row(name, "6 + 6 layers of 512, vocabulary 32000, %d tokens to %d, %s, 1 thread" %
               (SOURCE, TARGET, "beam %d" % beams if beams else "greedy"), entries, bound=0,
               bars=[against(needed, "x CTranslate2", "ctranslate2"), gcc_near_clang()], missing=missing,
               note="the same random weights; the check counts tokens that differ")


def narrow_row(context, name, beams, needed):
    """The same in int8; log p of a random target says how far each is from f32."""
    spec = context.spec(SPEC)
    weights = context.weights(spec)
    source, target = np.random.default_rng(SOURCE).integers(3, VOCAB, (2, SOURCE))
    target[0] = START
    paths = context.inputs(name, source=source, tokens=np.array([START]), source_lengths=np.array([SOURCE]))
    judged = context.inputs(name + "-judge", pair=np.array([source, target]))["pair"]
    params = {"kind": "generate", "inputs": paths, "outputs": {"generated": [TARGET]}, "count": 1, "max_new": TARGET,
              "beams": beams, "end": END, "threads": 1, "vocab": VOCAB}
    entries = context.both(spec, weights, params, precision="int8", target=machine.narrow_targets())
    entries.append(context.ours("attnc f32", spec, weights, params, reference=True))
    missing = {}
    if context.peers:
        try:
            model = context.made("vaswani-ct2", "transformer-ct2", weights, HEADS)
            entries.append(Entry("ctranslate2 int8", "ctranslate2_peer", {
                "kind": "translator", "model": model, "inputs": [paths["source"]], "threads": 1, "beams": beams,
                "max_new": TARGET, "compute_type": "int8"}))
        except NotRun as error:
            missing["ctranslate2 int8"] = str(error)
    return Row(name, "6 + 6 layers of 512 in int8, vocabulary 32000, %d tokens to %d, %s, 1 thread" %
               (SOURCE, TARGET, "beam %d" % beams if beams else "greedy"), entries,
               bars=[against(needed, "x CTranslate2 int8", "ctranslate2"), gcc_near_clang()], missing=missing,
               judge=accuracy.Judge(judged, accuracy.log_difference, GARBAGE), note="the same random weights")


ROWS = {"vaswani-greedy": lambda context, name: row(context, name, 0, 1.55),
        "vaswani-beam4": lambda context, name: row(context, name, 4, 1.6),
        "vaswani-greedy-int8": lambda context, name: narrow_row(context, name, 0, 2.0),
        "vaswani-beam4-int8": lambda context, name: narrow_row(context, name, 4, 2.0)}
