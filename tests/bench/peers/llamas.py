"""llama2.c and llama.cpp, each through a loop in C of the same shape: lib/llama2c.c, lib/llamacpp.c."""
import ctypes as c

import numpy as np

from worker import Peer


class Llama(Peer):
    def __init__(self, params):
        for path in params.get("preload", []):
            c.CDLL(path, mode=c.RTLD_GLOBAL)
        self.lib = c.CDLL(params["library"])
        self.lib.llama_open.restype = c.c_void_p
        self.lib.llama_open.argtypes = [c.c_char_p, c.c_int, c.c_int, c.c_int]
        self.lib.llama_run.argtypes = [c.c_void_p, c.c_void_p, c.c_int, c.c_int, c.c_void_p]
        self.lib.llama_time.argtypes = [c.c_void_p, c.c_void_p, c.c_int, c.c_int, c.c_double, c.c_double,
                                        c.POINTER(c.c_double), c.POINTER(c.c_long)]
        self.model = self.lib.llama_open(params["model"].encode(), params["threads"], params.get("flash", 0),
                                         params.get("half", 0))
        if not self.model:
            raise RuntimeError("the model could not be loaded")
        self.version = params.get("version", "")
        self.tokens = np.ascontiguousarray(np.load(params["inputs"][0]), np.int32)
        self.logits = np.zeros(params["vocab"], np.float32)
        self.arguments = (self.model, self.tokens.ctypes.data, self.tokens.size, int(params["together"]))

    def run(self):
        status = self.lib.llama_run(*self.arguments, self.logits.ctypes.data)
        if status:
            raise RuntimeError("status %d" % status)

    def output(self):
        return self.logits

    def judge(self, given):
        tokens = np.ascontiguousarray(given, np.int32)
        logits = np.zeros((tokens.size, self.logits.size), np.float32)
        self.lib.llama_logits.argtypes = [c.c_void_p, c.c_void_p, c.c_int, c.c_void_p]
        status = self.lib.llama_logits(self.model, tokens.ctypes.data, tokens.size, logits.ctypes.data)
        if status:
            raise RuntimeError("status %d" % status)
        return logits

    def time(self, seconds, sample):
        median, calls = c.c_double(), c.c_long()
        status = self.lib.llama_time(*self.arguments, seconds, sample, median, calls)
        if status:
            raise RuntimeError("status %d" % status)
        return median.value, calls.value


def prepare(params):
    return Llama(params)
