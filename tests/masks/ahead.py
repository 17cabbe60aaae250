"""Decoders whose masks show later rows: a call that appends rows which an earlier row of a state sees is refused."""
import math
import os
import random
import struct
import tempfile

from lib import npy
from lib.attnc import attnc
from masks import states

MOST = 60  # rows
WHOLE = (  # conditions that may show later rows, by the integers doc of the rows
    ("k <= q or doc[q] == doc[k] and doc[q] > 0", lambda q, k, doc: k <= q or (doc[q] == doc[k] and doc[q] > 0)),
    ("(k <= q or doc[q] == doc[k]) and k > q - 9", lambda q, k, doc: (k <= q or doc[q] == doc[k]) and k > q - 9),
    ("floor(k / 4) <= floor(q / 4)", lambda q, k, doc: k // 4 <= q // 4),
    ("k <= q or doc[k] == 3", lambda q, k, doc: k <= q or doc[k] == 3),
    ("k - q <= max(0, doc[q]) and q mod 5 != 4 or k <= q",
     lambda q, k, doc: (k - q <= max(0, doc[q]) and q % 5 != 4) or k <= q))


def single(x):
    """The number of f32 that is nearest to x."""
    return struct.unpack("f", struct.pack("f", x))[0]


def root(x):
    return single(math.sqrt(x)) if x >= 0 else math.nan


TABLE = [single(i / 3) for i in range(4)]
REAL = (  # the same, by doc, by the real numbers time, and by the real numbers share from 0 to 1
    ("time[k] <= time[q] and (k <= q or doc[q] > 1)",
     lambda q, k, doc, time, share: time[k] <= time[q] and (k <= q or doc[q] > 1)),
    ("k <= q or time[q]*time[q] - time[k] == 0",
     lambda q, k, doc, time, share: k <= q or single(single(time[q] * time[q]) - time[k]) == 0),
    ("k <= q or doc[q] == doc[k] and abs(time[q] - time[k]) < 0.3",
     lambda q, k, doc, time, share: k <= q or (doc[q] == doc[k] and abs(single(time[q] - time[k])) < single(0.3))),
    ("k <= q or k - q < 4 and sqrt(time[k]) < time[q] / 3 - 0.1",
     lambda q, k, doc, time, share: k <= q or
     (k - q < 4 and root(time[k]) < single(single(time[q] / 3) - single(0.1)))),
    ("k <= q + floor(share[k]*3.9) - doc[q]",
     lambda q, k, doc, time, share: k <= q + math.floor(single(share[k] * single(3.9))) - doc[q]),
    ("k <= q or third[doc[k]] > time[q] + share[k] and k < q + far",
     lambda q, k, doc, time, share: k <= q or (TABLE[doc[k]] > single(time[q] + share[k]) and k < q + 5)),
    ("k - q <= (if time[q] > 0.5 then doc[k] - 1 else 0) and (k > q - 20 or h == 1)",
     lambda q, k, doc, time, share: k - q <= (doc[k] - 1 if time[q] > 0.5 else 0)))


def docs(draw, before, new):
    """Integers of new rows: all of them are one, or some differ."""
    given = [draw.randrange(4)] if draw.randrange(2) or not before else [before[-1]]
    while len(given) < new:
        given.append(draw.randrange(4) if draw.randrange(3) == 0 else given[-1])
    return given


def times(draw, before, new):
    """Real numbers of new rows: they rise or not, repeat, are squares of others, or are no numbers."""
    given, last = [], before[-1] if before else 0.125
    for _ in range(new):
        kind = draw.randrange(16)
        if kind < 6 or not math.isfinite(last) or abs(last) > 9:
            last = single((last if abs(last) < 9 else 0) + draw.random() / 4)
        elif kind < 9:
            last = single(last * last)
        elif kind < 11:
            last = single(draw.gauss(0, 1))
        elif kind == 11:
            last = draw.choice((math.nan, math.inf, -math.inf, -0.0, 0.0))
        given.append(last)
    return given


def shares(draw, _, new):
    return [draw.choice((0.0, 1.0, single(draw.random()))) for _ in range(new)]


def run(seed, inputs, items, chosen, sees):
    """Calls of random lengths, of which some are refused. `inputs` gives what draws the numbers of each input of rows,
    and sees(q, k, rows) says whether some of the conditions holds."""
    draw = random.Random(seed)
    layers = "".join("layers 1 { attention self { heads 2, mask where %s } }\n" % text for text in chosen)
    spec = "model m { d_model 8, vocab 9\ndecoder { seq <= %d, position none\n%s\n%s} }\n" % (MOST, items, layers)

    def across(rows, split):
        return any(sees(q, k, rows) for q in range(split) for k in range(split, len(rows["doc"])))

    with tempfile.TemporaryDirectory() as folder:
        decoder = states.Decoder(folder, spec, seed, 8)
        state, other, counts = decoder.state(), decoder.state(), [0, 0, 0, 0]
        words, rows = [], {name: [] for name in inputs}
        number = {"far": [5, 5]} if "far" in decoder.inputs else {}
        for _ in range(80):
            new = draw.randint(1, min(9, MOST - len(words))) if len(words) < MOST else 0
            if draw.randrange(4) == 0 or not new:
                kept = draw.choice((0, draw.randint(0, len(words))))
                wanted = "TOO_FAR" if 0 < kept < len(words) and across(rows, kept) else None
                status = decoder.rewind(state, kept)
                assert status == (decoder.statuses[wanted] if wanted else 0), "rewind to %d: %d" % (kept, status)
                counts[2 if wanted else 3] += 1
                if not wanted:
                    del words[kept:]
                    rows = {name: numbers[:kept] for name, numbers in rows.items()}
                continue
            more = [draw.randrange(9) for _ in range(new)]
            given = {name: drawn(draw, rows[name], new) for name, drawn in inputs.items()}
            assert decoder.rewind(other, 0) == 0
            before = [bytes(block) for block, _ in (other, state)]
            all_rows = {name: rows[name] + given[name] for name in inputs}
            both = {name: numbers[:1] + numbers for name, numbers in given.items()}  # of a row of `other` first
            status, hidden, _ = decoder.decode([other, state], [1] + more, {**both, **number}, [1, new])
            if across(all_rows, len(words)):
                assert status == decoder.statuses["LOOKS_AHEAD"], "%s, then %s: status %d" % (rows, given, status)
                assert [bytes(block) for block, _ in (other, state)] == before, "a state was written"
                assert not any(hidden), "an output was written"
                counts[0] += 1
                continue
            counts[1] += 1
            words, rows = words + more, all_rows
            assert status == 0, "%s, then %s: status %d" % (rows, given, status)
            status, forward, _ = decoder.forward(words, {**rows, **{name: one[:1] for name, one in number.items()}})
            assert status == 0 and forward[-new * 32:] == hidden[32:], "other bits than forward: %d rows" % new
        assert counts[1] > 3 and counts[0] + counts[2] > 0, "refused and taken: %s" % counts


def whole(seed):
    """Rows that an earlier row of a state sees are refused, and nothing is written; the others have forward's bits. A
    state goes back to where no row that stays has seen one that goes."""
    chosen = random.Random(seed).sample(WHOLE, 2)
    run(seed, {"doc": docs}, "input rows doc 0..3", [text for text, _ in chosen],
        lambda q, k, rows: any(sees(q, k, rows["doc"]) for _, sees in chosen))


def real(seed):
    """The same of masks that compare real numbers, which are rounded to f32 after each operation."""
    chosen = random.Random(seed).sample(REAL, 2)
    run(seed, {"doc": docs, "time": times, "share": shares},
        "input rows doc 0..3, input rows time real, input rows share real 0..1, input number far 1..6\n"
        "let third = table [4] i/3", [text for text, _ in chosen],
        lambda q, k, rows: any(sees(q, k, rows["doc"], rows["time"], rows["share"]) for _, sees in chosen))


def always():
    """A mask that hides nothing from the rows that there are: the first call is the only one."""
    for items, other in (("", ""), (", input rows time real", " or time[q] < time[k]")):
        layers = "layers 1 { attention self { heads 1, mask where k < 1000 } }\n" \
                 "layers 1 { attention self { heads 1, mask where k <= q%s } }" % other
        spec = "model m { d_model 8, vocab 9\ndecoder { seq <= 40, position none%s\n%s } }\n" % (items, layers)
        with tempfile.TemporaryDirectory() as folder:
            decoder = states.Decoder(folder, spec, 1, 8)
            state, rows = decoder.state(), {"time": [0.5, 0.25]} if other else {}
            assert decoder.decode([state], [1, 2], rows, [2])[0] == 0
            before = bytes(state[0])
            status = decoder.decode([state], [3], {name: [0.0] for name in rows}, None)[0]
            assert status == decoder.statuses["LOOKS_AHEAD"], "status %d" % status
            assert decoder.rewind(state, 1) == decoder.statuses["TOO_FAR"] and bytes(state[0]) == before
            assert decoder.rewind(state, 0) == 0 and decoder.decode([state], [1, 2], rows, [2])[0] == 0


def generated():
    """Generated rows repeat the last number of the prompt, which is that of an image or of a text. bench --decode has
    numbers with which rows can be appended one by one."""
    spec = "model m { d_model 8, vocab 30, start 1\ndecoder { seq <= 40, position rope\ninput rows image %s\n" \
           "layers 1 { attention self { heads 2, mask where k <= q or image[q] == image[k] and image[q] > %s } } }\n" \
           "head logits }\n"
    for case, (kind, least, numbers, dtype) in enumerate((("0..3", "0", [1, 1, 0], "<i8"),
                                                          ("real", "0.25", [1.5, 1.5, 0.25], "<f4"))):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.attn")
            with open(path, "w", encoding="utf-8") as file:
                file.write(spec % (kind, least))
            tokens = npy.write(folder + "/tokens.npy", [1, 7, 3, 9])
            made = []
            for last, engine in ((0, "interp"), (0, "compiled"), (2, "interp"), (2, "compiled")):
                image = npy.write(folder + "/image.npy", numbers + [last], None, dtype)
                done = attnc("generate", path, "--weights", "random:3", "--engine", engine, "--max-new", "5",
                             "--in", "tokens=" + tokens, "--in", "image=" + image)
                if last:
                    assert done.returncode == 1 and "in one call" in done.stderr, done.stderr
                else:
                    assert done.returncode == 0, done.stderr
                    made.append(done.stdout)
            assert made[0] == made[1] and len(made[0].split()) == 5, "%d: %s" % (case, made)
            attnc("bench", path, "--seq", "9", "--decode", status=0)
