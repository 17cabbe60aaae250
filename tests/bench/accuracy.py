"""How far the results in low precision are from those of the f32 model: what is asked of every contestant of a row, and
the figure beside its time.

A Judge has a file of inputs that every contestant is given once, before it is timed, and a measure of what it answers
beside what the reference, our f32, answers."""
import glob
import importlib.util
import os

import numpy as np

import env

TEXTS, CALIBRATION = 200, 100
HERE = os.path.dirname(os.path.abspath(__file__))


class Judge:
    """`measure(theirs, reference)` gives figures by name, the first of which orders contestants; `most`: results whose
    first figure is larger are no approximation of the model, but wrong."""
    def __init__(self, inputs, measure, most):
        self.inputs, self.measure, self.most = inputs, measure, most

    def figures(self, theirs, reference):
        if theirs.shape != reference.shape:
            return {"of another shape": float("inf")}
        if not np.isfinite(theirs).all():
            return {"NaN or infinity": float("inf")}
        return self.measure(theirs.astype(np.float64), reference.astype(np.float64))

    def wrong(self, figures):
        return not next(iter(figures.values())) <= self.most


def gathered(answer):
    """An array of what judge() gave: of hidden rows of texts the mean of each text, of length one."""
    if isinstance(answer, np.ndarray):
        return answer
    pooled = np.array([np.asarray(rows, np.float64).reshape(-1, np.asarray(rows).shape[-1]).mean(0) for rows in answer])
    return pooled / np.linalg.norm(pooled, axis=1, keepdims=True)


def cosines(theirs, reference):
    """1 - cos of the embeddings of texts."""
    away = 1 - (theirs * reference).sum(1)
    return {"1-cos": float(away.mean()), "largest": float(away.max())}


def divergence(theirs, reference):
    """KL(reference, theirs) of the next token's distribution in nats, how often the first choice is the same, and the
    length of the difference as a share of the length of the row."""
    def log_softmax(rows):
        rows = rows - rows.max(1, keepdims=True)
        return rows - np.log(np.exp(rows).sum(1, keepdims=True))
    p, q = log_softmax(reference), log_softmax(theirs)
    error = np.linalg.norm(theirs - reference, axis=1) / np.linalg.norm(reference, axis=1)
    return {"error": float(error.mean()), "KL": float((np.exp(p) * (p - q)).sum(1).mean()),
            "same first choice": float((theirs.argmax(1) == reference.argmax(1)).mean())}


def log_difference(theirs, reference):
    """Of the logarithms of the probabilities of given tokens."""
    away = abs(theirs - reference)
    return {"log p differs by": float(away.mean()), "largest": float(away.max())}


def fixture_texts():
    """(texts, other ones for calibration) of $ATTNC_FIXTURES/**/minilm/texts.py, or None."""
    base = os.environ.get("ATTNC_FIXTURES", "")
    found = glob.glob(os.path.join(base, "**", "minilm", "texts.py"), recursive=True) if base else []
    if not found:
        return None
    spec = importlib.util.spec_from_file_location("fixture_texts", found[0])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    known = set(module.texts())
    paragraphs = [text for text in module._all() if text not in known]  # pylint: disable=protected-access
    return module.texts(), module.calibration() + paragraphs[len(module.calibration()):CALIBRATION]


def own_texts():
    """Sentences of this folder, and paragraphs of the documentation for calibration."""
    with open(os.path.join(HERE, "sentences.txt"), encoding="utf-8") as file:
        sentences = file.read().split("\n")[:-1]
    paragraphs = []
    for path in sorted(glob.glob(os.path.join(env.ROOT, "docs", "*.md"))):
        with open(path, encoding="utf-8") as file:
            paragraphs += [" ".join(p.split()) for p in file.read().split("\n\n") if p[:1].isupper()]
    fitting = [p for p in paragraphs if 30 < len(p) < 500]
    return sentences, fitting[::max(len(fitting) // CALIBRATION, 1)][:CALIBRATION]


def texts():
    """(texts, calibration, what they are)."""
    found = fixture_texts()
    return (*found, "%d texts" % len(found[0])) if found else (*own_texts(), "the sentences of tests/bench")


def padded(ids):
    """Lists of ids as an array that ends each with -1."""
    array = np.full((len(ids), max(map(len, ids))), -1, np.int64)
    for row, own in zip(array, ids):
        row[:len(own)] = own
    return array
