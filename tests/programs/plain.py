"""The encoder and decoder of Bahdanau et al. 2015, appendix A, in plain Python, formula by formula, with the weights of
examples/bahdanau_layer. Every vector is a list of numbers in double precision."""
import json
import struct
from math import exp, tanh

SYMBOLS, WORDS, EMBEDDED, CELLS, STATE, MAXOUT, SCORE = 12, 66, 16, 32, 64, 32, 32


def safetensors(path):
    """Name to rows of numbers; a vector is one row."""
    with open(path, "rb") as file:
        data = file.read()
    begin = 8 + struct.unpack_from("<Q", data)[0]
    tensors = {}
    for name, entry in json.loads(data[8:begin]).items():
        assert entry["dtype"] == "F32", name
        numbers = struct.unpack("<%df" % ((entry["data_offsets"][1] - entry["data_offsets"][0]) // 4),
                                data[begin + entry["data_offsets"][0]:begin + entry["data_offsets"][1]])
        width = entry["shape"][-1]
        tensors[name] = [numbers[i:i + width] for i in range(0, len(numbers), width)]
    return tensors


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def times(matrix, vector):
    return [dot(row, vector) for row in matrix]


def plus(*vectors):
    return [sum(numbers) for numbers in zip(*vectors)]


def sigmoid(x):
    return 1 / (1 + exp(-x)) if x >= 0 else exp(x) / (1 + exp(x))


class Unit:
    """A.1.1 and A.2.2: s_i = (1 - z) s_(i-1) + z tanh(W E y + U (r s_(i-1)) + C c)."""

    def __init__(self, take, outside, cells):
        w, b = take(3 * cells, outside), take(1, 3 * cells)[0]
        u = take(2 * cells, cells)
        self.w_z, self.w_r, self.w = w[:cells], w[cells:2 * cells], w[2 * cells:]
        self.b_z, self.b_r, self.b = b[:cells], b[cells:2 * cells], b[2 * cells:]
        self.u_z, self.u_r, self.u = u[:cells], u[cells:], take(cells, cells)

    def next(self, s, x):
        z = map(sigmoid, plus(times(self.w_z, x), self.b_z, times(self.u_z, s)))
        r = map(sigmoid, plus(times(self.w_r, x), self.b_r, times(self.u_r, s)))
        gated = [a * b for a, b in zip(r, s)]
        candidate = map(tanh, plus(times(self.w, x), self.b, times(self.u, gated)))
        return [(1 - zi) * si + zi * ci for zi, si, ci in zip(z, s, candidate)]


class Speller:
    def __init__(self, gru_path, attention_path):
        with open(gru_path, "rb") as file:
            numbers = iter(struct.iter_unpack("<f", file.read()[40:]))

        def take(rows, columns):
            return [[next(numbers)[0] for _ in range(columns)] for _ in range(rows)]

        self.source, self.target = take(SYMBOLS, EMBEDDED), take(WORDS, EMBEDDED)
        self.forwards, self.backwards = Unit(take, EMBEDDED, CELLS), Unit(take, EMBEDDED, CELLS)
        self.w_s, self.b_s = take(STATE, CELLS), take(1, STATE)[0]
        self.decoder = Unit(take, EMBEDDED + 2 * CELLS, STATE)
        self.out, self.b_out = take(2 * MAXOUT, STATE + EMBEDDED + 2 * CELLS), take(1, 2 * MAXOUT)[0]
        self.w_o = take(WORDS, MAXOUT)
        assert next(numbers, None) is None, "gru.bin has more numbers"
        tensors = safetensors(attention_path)
        self.w_a, self.u_a = tensors["attention.score.query.weight"], tensors["attention.score.key.weight"]
        self.v_a = tensors["attention.score.vector.weight"][0]

    def encode(self, symbols):
        """The annotations h_j and s_0, A.2.1."""
        ahead, back = [[0.0] * CELLS], [[0.0] * CELLS]
        for symbol in symbols:
            ahead.append(self.forwards.next(ahead[-1], self.source[symbol]))
        for symbol in reversed(symbols):
            back.append(self.backwards.next(back[-1], self.source[symbol]))
        first = [tanh(x) for x in plus(times(self.w_s, back[-1]), self.b_s)]
        return [a + b for a, b in zip(ahead[1:], reversed(back[1:]))], first

    def align(self, state, annotations):
        """alpha_ij and c_i, A.1.2."""
        asked = times(self.w_a, state)
        scores = [dot(self.v_a, map(tanh, plus(asked, times(self.u_a, h)))) for h in annotations]
        powers = [exp(score - max(scores)) for score in scores]
        weights = [power / sum(powers) for power in powers]
        return weights, [dot(weights, column) for column in zip(*annotations)]

    def spell(self, symbols, most=24):
        """For each word: its id, the attention to each symbol, the logits. Greedy; 0 ends it."""
        annotations, state = self.encode(symbols)
        word, steps = 0, []
        while len(steps) < most and (word or not steps):
            weights, context = self.align(state, annotations)
            outside = self.target[word] + context
            pairs = plus(times(self.out, state + outside), self.b_out)
            logits = times(self.w_o, [max(pairs[i:i + 2]) for i in range(0, len(pairs), 2)])
            state = self.decoder.next(state, outside)
            word = logits.index(max(logits))
            steps.append((word, weights, logits))
        return steps
