"""A transformer of base size with 32000 tokens: a source of 32 tokens in, exactly 32 out, greedy and by beams."""
import numpy as np

from rows import Entry, NotRun, Row, against, gcc_near_clang

SPEC, HEADS, VOCAB, SOURCE, TARGET, START, END = "vaswani_32000", 8, 32000, 32, 32, 1, 2


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


ROWS = {"vaswani-greedy": lambda context, name: row(context, name, 0, 1.55),
        "vaswani-beam4": lambda context, name: row(context, name, 4, 1.6)}
