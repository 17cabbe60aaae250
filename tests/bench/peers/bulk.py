"""Embeddings of many texts, tokenizing included: ours through lib/bulk.c, sentence-transformers through encode()."""
import ctypes as c
import os

import numpy as np

from worker import Peer


def read_texts(path):
    with open(path, encoding="utf-8") as file:
        return file.read().split("\n")[:-1]


class Ours(Peer):
    version = "this tree"

    def __init__(self, params):
        self.lib, self.shape, self.result = c.CDLL(params["bulk"]), params["shape"], None
        self.lib.bulk_open.restype = c.c_void_p
        self.lib.bulk_open.argtypes = [c.c_char_p, c.c_char_p, c.c_char_p, c.c_int]
        self.lib.bulk_run.restype = c.POINTER(c.c_float)
        self.lib.bulk_run.argtypes = [c.c_void_p]
        self.lib.bulk_time.argtypes = [c.c_void_p, c.c_double, c.c_double, c.POINTER(c.c_double), c.POINTER(c.c_long)]
        self.bulk = self.lib.bulk_open(params["weights"].encode(), params["vocab"].encode(), params["texts"].encode(),
                                       params["threads"])

    def run(self):
        self.result = np.ctypeslib.as_array(self.lib.bulk_run(self.bulk), self.shape)

    def output(self):
        return self.result

    def time(self, seconds, sample):
        median, calls = c.c_double(), c.c_long()
        if self.lib.bulk_time(self.bulk, seconds, sample, median, calls):
            raise RuntimeError("a call failed")
        return median.value, calls.value


class SentenceTransformers(Peer):
    def __init__(self, params):
        import sentence_transformers
        import torch
        torch.set_num_threads(params["threads"])
        torch.set_num_interop_threads(1)
        os.environ["TOKENIZERS_PARALLELISM"] = "true"  # as many threads as it may have
        os.environ["RAYON_NUM_THREADS"] = str(params["threads"])
        self.version = sentence_transformers.__version__
        self.model = sentence_transformers.SentenceTransformer(params["model"], device="cpu", local_files_only=True)
        self.texts, self.batch, self.result = read_texts(params["texts"]), params["batch"], None

    def run(self):
        self.result = self.model.encode(self.texts, batch_size=self.batch, normalize_embeddings=True,
                                        show_progress_bar=False)

    def output(self):
        return self.result


def prepare(params):
    return (Ours if "bulk" in params else SentenceTransformers)(params)
