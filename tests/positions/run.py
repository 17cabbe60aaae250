#!/usr/bin/env python3
"""Positions that are integers of rows. packed/KIND: three documents in one sequence, each of which counts from 0, give
the rows that each of them gives alone, and other rows where they count on. decode/KIND: states of packed documents that
grow in several calls have the bits of forward. mrope: three positions of a row, against the rows of a Qwen2-VL of
transformers (make_mrope.py). generated: new rows of attnc generate count on from the prompt's last position. refused:
positions outside of their range, in a file and in a state, which stays as it was. Interpreted and compiled."""
import os
import random
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib.attnc import attnc, run_compiled  # noqa: E402
from lib.tap import Report  # noqa: E402
from lib import npy  # noqa: E402
from masks import states  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
REPORT = Report("positions")
LENGTHS = (5, 17, 9)
WIDTH = 16
MOST_ERROR = 1e-5  # |a - b| / (1 + |b|) of rows of two layers in f32
OTHER = 1e-2  # at least so far are rows with other positions
KINDS = {
    "rope": ("position rope at pos", ""), "interleaved": ("position rope interleaved partial 0.5 at pos", ""),
    "sections": ("position rope at pos pos sections 1 3", ""), "learned": ("position learned at pos offset 2", ""),
    "sinusoidal": ("position sinusoidal at pos", ""), "alibi": ("", "position alibi at pos, "),
    "latent": ("position rope at pos", "latent 6 rope 4, "),
}


def spec_of(kind, more=""):
    stack, attention = KINDS[kind]
    return "model m {\n    d_model %d, vocab 40, bias none%s\n    decoder {\n        seq <= 64\n" \
           "        input rows doc 0..3\n        input rows pos 0..31\n        %s\n        layers 2 {\n" \
           "            attention self { heads 2, %smask where q >= k and doc[q] == doc[k] }\n" \
           "            ffn { d_ff 32 }\n        }\n    }\n    head logits\n}\n" % (WIDTH, more, stack, attention)


def written(folder, text):
    path = os.path.join(folder, "m.attn")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def array(folder, name, numbers):
    return "%s=%s" % (name, npy.write("%s/%s.npy" % (folder, name), numbers))


def hidden(folder, spec, engine, given):
    """The rows of one sequence, for numbers by the names of the inputs."""
    words = [word for name, numbers in given.items() for word in ("--in", array(folder, name, numbers))]
    attnc("run", spec, "--weights", "random:2", "--engine", engine, *words, "--out", "hidden=%s/h.npy" % folder,
          status=0)
    return list(npy.read(folder + "/h.npy").numbers)


def error_of(got, expected):
    assert len(got) == len(expected), (len(got), len(expected))
    return max(abs(a - b) / (1 + abs(b)) for a, b in zip(got, expected))


def texts(draw):
    return [[draw.randrange(40) for _ in range(n)] for n in LENGTHS]


def joined(documents):
    return {"tokens": [word for text in documents for word in text],
            "doc": [d for d, text in enumerate(documents) for _ in text],
            "pos": [i for text in documents for i in range(len(text))]}


def packed(kind):
    documents = texts(random.Random(kind))
    given = joined(documents)
    with tempfile.TemporaryDirectory() as folder:
        spec = written(folder, spec_of(kind))
        for engine in ("interp", "compiled"):
            whole = hidden(folder, spec, engine, given)
            alone = [number for text in documents
                     for number in hidden(folder, spec, engine, joined([text]))]
            error = error_of(whole, alone)
            assert error < MOST_ERROR, "%s: packed documents are %g from each alone" % (engine, error)
            counted = hidden(folder, spec, engine, {**given, "pos": list(range(sum(LENGTHS)))})
            if kind in ("learned", "sinusoidal"):  # rotations and distances of a document are the same wherever it is
                assert error_of(counted, alone) > OTHER, "positions change nothing"
            turned = hidden(folder, spec, engine, {**given, "pos": given["pos"][::-1]})
            assert error_of(turned, alone) > OTHER, "positions change nothing"


def decode(kind):
    documents = texts(random.Random(kind + " decode"))
    given = joined(documents)
    with tempfile.TemporaryDirectory() as folder:
        decoder = states.Decoder(folder, spec_of(kind), 3, WIDTH)
        arrays = {name: given[name] for name in ("doc", "pos")}
        status, whole, _ = decoder.forward(given["tokens"], arrays)
        assert status == 0, status
        state, rows, made = decoder.state(), 0, b""
        for n in (3, 1, 1, 16, 1, sum(LENGTHS) - 22):
            status, part, _ = decoder.decode([state], given["tokens"][rows:rows + n],
                                             {name: row[rows:rows + n] for name, row in arrays.items()}, [n])
            assert status == 0, status
            rows, made = rows + n, made + part
        assert made == whole, "other bits than forward"
        before = bytes(state[0])
        for pos in (32, -1):
            status = decoder.decode([state], [1], {"doc": [0], "pos": [pos]}, [1])[0]
            assert status == decoder.statuses["BAD_TOKEN"], "position %d: status %d" % (pos, status)
            assert bytes(state[0]) == before, "a state was written"


def mrope():
    folder = os.path.join(HERE, "mrope")
    given = [word for name in ("features", "time", "line", "column")
             for word in ("--in", "%s=%s/%s.npy" % (name, folder, name))]
    wanted = list(npy.read(folder + "/hidden.npy").numbers)
    with tempfile.TemporaryDirectory() as out:
        for engine in ("interp", "compiled"):
            attnc("run", os.path.join(HERE, "mrope.attn"), "--weights", os.path.join(folder, "model.safetensors"),
                  "--engine", engine, *given, "--out", "hidden=%s/h.npy" % out, status=0)
            error = error_of(list(npy.read(out + "/h.npy").numbers), wanted)
            assert error < 2e-5, "%s: %g from transformers" % (engine, error)
        swapped = [word.replace("line=", "other=").replace("column=", "line=").replace("other=", "column=")
                   for word in given]
        attnc("run", os.path.join(HERE, "mrope.attn"), "--weights", os.path.join(folder, "model.safetensors"),
              *swapped, "--out", "hidden=%s/h.npy" % out, status=0)
        assert error_of(list(npy.read(out + "/h.npy").numbers), wanted) > OTHER, "lines and columns are alike"


def generated():
    words, pos, new = [1, 7, 3, 9, 20, 4], [0, 1, 0, 1, 2, 3], 12
    doc = [0, 0, 2, 2, 2, 2]
    with tempfile.TemporaryDirectory() as folder:
        spec = written(folder, spec_of("rope", ", start 1"))
        for engine in ("interp", "compiled"):
            given = ["--weights", "random:3", "--engine", engine]
            prompt = [word for name, numbers in (("tokens", words), ("doc", doc), ("pos", pos))
                      for word in ("--in", array(folder, name, numbers))]
            made = attnc("generate", spec, *given, *prompt, "--max-new", str(new), status=0).stdout
            text = words + [int(word) for word in made.split()]
            assert len(text) == len(words) + new, made
            whole = {"tokens": text[:-1], "doc": doc + [2] * (new - 1), "pos": pos + list(range(4, 3 + new))}
            named = [word for name, numbers in whole.items() for word in ("--in", array(folder, name, numbers))]
            attnc("run", spec, *given, *named, "--out", "logits=%s/l.npy" % folder, status=0)
            logits = npy.read(folder + "/l.npy").numbers
            for row in range(len(words) - 1, len(text) - 1):
                scores = list(logits[row * 40:row * 40 + 40])
                assert scores.index(max(scores)) == text[row + 1], "%s: row %d of %s" % (engine, row, text)
        late = ["--in", array(folder, "tokens", words), "--in", array(folder, "doc", doc),
                "--in", array(folder, "pos", pos[:-1] + [29])]
        attnc("generate", spec, "--weights", "random:3", *late, "--max-new", "3", status=0)
        done = attnc("generate", spec, "--weights", "random:3", *late, "--max-new", "4")
        assert done.returncode == 1 and "`--max-new` may be 1 to 3" in done.stderr, done.stderr


def refused(pos, problem, range_of_pos="pos 0..31"):
    with tempfile.TemporaryDirectory() as folder:
        spec = written(folder, spec_of("rope").replace("pos 0..31", range_of_pos))
        words = [word for name, numbers in (("tokens", [1] * 3), ("doc", [0] * 3), ("pos", pos))
                 for word in ("--in", array(folder, name, numbers))]
        for engine in ("interp", "compiled"):
            done = attnc("run", spec, "--weights", "random:1", "--engine", engine, *words,
                         "--out", "hidden=%s/h.npy" % folder)
            assert done.returncode == 1 and problem in done.stderr, done.stderr
            assert not os.path.exists(folder + "/h.npy")


def attempts():
    for kind in KINDS:
        REPORT.attempt("packed/" + kind, packed, kind)
        REPORT.attempt("decode/" + kind, decode, kind)
    REPORT.attempt("mrope", mrope)
    REPORT.attempt("generated", generated)
    REPORT.attempt("refused/above", refused, [0, 32, 1], "the integer 32 at 1 is outside 0 to 31")
    REPORT.attempt("refused/below", refused, [0, 3, -1], "the integer -1 at 2 is outside 0 to 31")
    REPORT.attempt("refused/open", refused, [0, 3, 64], "the integer 64 at 2 is outside 0 to 63", "pos")
    REPORT.attempt("refused/single", refused, [0, 1, 0], "the integer 1 at 1 is outside 0 to 0", "pos 0..0")


if __name__ == "__main__":
    sys.exit(run_compiled(REPORT, attempts))
