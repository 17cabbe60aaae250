"""A decoder whose masks and scores read numbers of the sequence and real numbers of rows, in states."""
import math
import os
import struct
import tempfile

from lib import npy
from lib.attnc import attnc
from masks import states

ROWS = 40
PAIRS = 4 * ROWS * ROWS  # of the maps of all layers
SPEC = """model m { d_model 8, vocab 9, export attention
decoder { seq <= 40, position none
input number near -3..6, input number most 0..12, input number tilt real -1..1, input rows age real 0..4
layers 1 { attention self { heads 1, mask where k <= q and (q - k < near + 4 or k < most) } }
layers 1 { attention self { heads 1, mask where k <= q and (q + k) mod 3 != near, score s - tilt*k + age[k] } }
layers 1 { attention self { heads 1, mask where k <= q and abs(age[q] - age[k]) < 1.3 } }
layers 1 { attention self { heads 1, mask where k <= q and ((q - k)/7 < tilt + 0.3 or k*0.3 < sqrt(1 - tilt)) } } } }
"""


def single(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def by_tilt(q, k, tilt):
    """Numbers in f32, rounded after each operation."""
    near = single((q - k) / 7) < single(tilt + single(0.3))
    return k <= q and (near or single(k * single(0.3)) < single(math.sqrt(single(1 - tilt))))


MASKS = (lambda q, k, near, most, tilt, age: k <= q and (q - k < near + 4 or k < most),
         lambda q, k, near, most, tilt, age: k <= q and (q + k) % 3 != near,
         lambda q, k, near, most, tilt, age: k <= q and abs(age[q] - age[k]) < 1.3,
         lambda q, k, near, most, tilt, age: by_tilt(q, k, tilt))


def given(near, most, tilt, age):
    return {"near": [near], "most": [most], "tilt": [float(tilt)], "age": age}


def without(age):
    return {"age": age}


def maps_follow(maps, near, most, tilt, age):
    for number, mask in enumerate(MASKS):
        for q in range(ROWS):
            for k in range(ROWS):
                weight = maps[(number * ROWS + q) * ROWS + k]
                assert (weight > 0) == mask(q, k, near, most, tilt, age), \
                    "mask %d of near=%d, most=%d, tilt=%g at %d, %d: weight %g" % (number, near, most, tilt, q, k,
                                                                                  weight)


def same_in_calls(decoder, words, numbers, age, hidden):
    """The bits of forward, where only the first rows come with the numbers, or other rows with others."""
    row = 4 * decoder.width
    state, fork = decoder.state(), decoder.state()
    for begin, end, more in ((0, 5, given(*numbers, age[:5])), (5, 22, without(age[5:22])),
                             (22, ROWS, given(99, -99, math.nan, age[22:]))):
        status, got, _ = decoder.decode([state], words[begin:end], more, [end - begin], PAIRS)
        assert status == 0, status
        assert got == hidden[begin * row:end * row], "rows %d to %d have other bits" % (begin, end - 1)
    assert decoder.copy(fork, state) == 0 and decoder.rewind(fork, 7) == 0
    status, got, _ = decoder.decode([fork], words[7:], without(age[7:]), [ROWS - 7], PAIRS)
    assert status == 0 and got == hidden[7 * row:], "a copy has other bits"
    assert decoder.rewind(fork, 0) == 0
    return fork


def refused(decoder, words, age, empty):
    """A call that is refused writes nothing to a state with rows and to one without."""
    full = decoder.state()
    assert decoder.decode([full], words[:3], given(1, 2, 0, age[:3]), [3], PAIRS)[0] == 0
    before = [bytes(block) for block, _ in (full, empty)]
    for near, most, tilt, old, wanted in (
            (7, 2, 0, 1.0, "BAD_TOKEN"), (-4, 2, 0, 1.0, "BAD_TOKEN"), (0, 13, 0, 1.0, "BAD_TOKEN"),
            (0, 0, 1.5, 1.0, "BAD_TOKEN"), (0, 0, math.nan, 1.0, "BAD_TOKEN"), (0, 0, 0, 4.5, "BAD_TOKEN"),
            (0, 0, 0, math.nan, "BAD_TOKEN"), (None, 0, 0, 1.0, "BAD_ARGUMENT"), (0, 0, None, 1.0, "BAD_ARGUMENT")):
        arrays = {"near": None if near is None else [9, near], "most": [9, most],
                  "tilt": None if tilt is None else [9.0, float(tilt)], "age": [0.0, old]}
        status = decoder.decode([full, empty], [1, 2], arrays, None)[0]
        assert status == decoder.statuses[wanted], "%s: status %d" % (arrays, status)
        assert [bytes(block) for block, _ in (full, empty)] == before, "%s: a state was written" % arrays


def kept():
    words, age = [1 + row % 7 for row in range(ROWS)], [(row // 9 + row % 9 / 16) % 4.0 for row in range(ROWS)]
    with tempfile.TemporaryDirectory() as folder:
        decoder = states.Decoder(folder, SPEC, 3, 8)
        for numbers in ((-3, 0, 0.5), (6, 12, -1), (0, 3, 1), (2, 0, 0)):
            status, hidden, maps = decoder.forward(words, given(*numbers, age))
            assert status == 0, status
            maps_follow(maps, *numbers, age)
            empty = same_in_calls(decoder, words, numbers, age, hidden)
        refused(decoder, words, age, empty)


def zeros():
    """The absolute value of the real number -0 is 0, whose inverse is above 0, and its floor is -0, in both engines."""
    spec = "model m { d_model 8, vocab 9, export attention\nencoder { seq <= 40, position none\n" \
           "input rows time real\nlayers 1 { attention self { heads 1, mask where 1/abs(time[k]) > 0 " \
           "and (1/floor(time[k]) < 0 or time[k] > 0) } } } }\n"
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "m.attn")
        with open(path, "w", encoding="utf-8") as file:
            file.write(spec)
        given = ["--in", "tokens=" + npy.write(folder + "/tokens.npy", [1, 2, 3]),
                 "--in", "time=" + npy.write(folder + "/time.npy", [1.0, -0.0, -2.0], None, "<f4")]
        for engine in ("interp", "compiled"):
            attnc("run", path, "--weights", "random:3", "--engine", engine, *given,
                  "--out", "attention.0=%s/map.npy" % folder, status=0)
            weights = npy.read(folder + "/map.npy").numbers
            assert min(weights) > 0, "%s: weights %s" % (engine, list(weights))
