"""attnc's own C, through the ABI of lib/bench.h."""
import ctypes as c

import numpy as np

from worker import Peer

KINDS = {"forward": 0, "decode": 1, "prefill": 2, "generate": 3}


class Call(c.Structure):
    _fields_ = [("size", c.c_size_t), ("kind", c.c_int), ("batch", c.c_int)] + \
        [(f, c.c_void_p) for f in ("lengths", "source_lengths", "tokens", "segments", "source", "target", "features",
                                   "pixels", "query", "mel", "in_group")] + \
        [("count", c.c_int), ("max_new", c.c_int), ("beams", c.c_int), ("end", c.c_int32)] + \
        [(f, c.c_void_p) for f in ("generated", "hidden", "pooled", "logits",
                                    "context", "encoder_hidden")]


def bind(library):
    lib = c.CDLL(library)
    lib.bench_open.restype = lib.bench_error.restype = lib.bench_target.restype = lib.bench_status_text.restype = \
        c.c_char_p
    lib.bench_open.restype = c.c_void_p
    lib.bench_open.argtypes = [c.c_char_p, c.c_int, c.c_char_p]
    lib.bench_target.argtypes = [c.c_void_p]
    lib.bench_run.argtypes = [c.c_void_p, c.POINTER(Call)]
    lib.bench_reset.argtypes = [c.c_void_p, c.c_void_p, c.c_int]
    lib.bench_step.argtypes = [c.c_void_p, c.c_int32, c.c_void_p]
    lib.bench_time.argtypes = [c.c_void_p, c.POINTER(Call), c.c_double, c.c_double, c.POINTER(c.c_double),
                               c.POINTER(c.c_long)]
    return lib


class Ours(Peer):
    def __init__(self, params):
        self.lib = bind(params["library"])
        target = params.get("target")
        self.model = self.lib.bench_open(params["weights"].encode(), params["threads"],
                                         target.encode() if target else None)
        if not self.model:
            raise RuntimeError(self.lib.bench_error().decode())
        self.note = self.lib.bench_target(self.model).decode()
        self.version = "this tree"
        self.call = Call(size=c.sizeof(Call), kind=KINDS[params["kind"]], batch=1)
        self.kept = {}
        for name, path in params["inputs"].items():
            array = np.load(path)
            self.keep(name, array if array.dtype == np.float32 else array.astype(np.int32))
        for name, shape in params["outputs"].items():
            self.keep(name, np.zeros(shape, np.int32 if name == "generated" else np.float32))
        for name in ("batch", "count", "max_new", "beams", "end"):
            if name in params:
                setattr(self.call, name, params[name])
        self.result = next(iter(params["outputs"]))
        self.params = params

    def keep(self, name, array):
        self.kept[name] = np.ascontiguousarray(array)
        setattr(self.call, name, self.kept[name].ctypes.data)

    def check(self, status):
        if status:
            raise RuntimeError(self.lib.bench_status_text(status).decode())

    def run(self):
        self.check(self.lib.bench_run(self.model, self.call))

    def output(self):
        return self.kept[self.result]

    def judge(self, given):
        """See accuracy.py: `given` are texts, tokens of a decoder, or a source in front of a target."""
        return {"forward": self.rows_of_texts, "generate": self.log_probabilities}.get(
            self.params["kind"], self.logits_of_tokens)(given)

    def forward(self, **arrays):
        """A call of whole sequences beside that of the row; the last of the arrays is the output."""
        call = Call(size=c.sizeof(Call), kind=KINDS["forward"], batch=1)
        for name, array in arrays.items():
            setattr(call, name, array.ctypes.data)
        self.check(self.lib.bench_run(self.model, call))
        return list(arrays.values())[-1]

    def rows_of_texts(self, texts):
        width = self.kept["hidden"].shape[-1]
        for text in texts:
            tokens = np.ascontiguousarray(text[text >= 0], np.int32)
            yield self.forward(tokens=tokens, lengths=np.array([tokens.size], np.int32),
                               hidden=np.zeros((tokens.size, width), np.float32))

    def logits_of_tokens(self, tokens):
        logits = np.zeros((tokens.size, self.params["vocab"]), np.float32)
        self.check(self.lib.bench_reset(self.model, None, 0))
        for token, row in zip(tokens, logits):
            self.check(self.lib.bench_step(self.model, int(token), row.ctypes.data))
        return logits

    def log_probabilities(self, texts):
        source, target = (np.ascontiguousarray(text, np.int32) for text in texts)
        logits = self.forward(source=source, target=target, lengths=np.array([target.size], np.int32),
                              source_lengths=np.array([source.size], np.int32),
                              logits=np.zeros((target.size, self.params["vocab"]), np.float32)).astype(np.float64)
        logits -= logits.max(1, keepdims=True)
        at = np.arange(target.size - 1)
        return (logits - np.log(np.exp(logits).sum(1, keepdims=True)))[at, target[1:]]

    def time(self, seconds, sample):
        median, calls = c.c_double(), c.c_long()
        self.check(self.lib.bench_time(self.model, self.call, seconds, sample, median, calls))
        return median.value, calls.value


def prepare(params):
    return Ours(params)
