"""Embeddings of many texts, tokenizing included: ours through lib/bulk.c, sentence-transformers through encode(), and
CTranslate2 by batches of texts of about one length."""
import ctypes as c
import os

import numpy as np

from worker import Peer


def read_texts(path):
    with open(path, encoding="utf-8") as file:
        return file.read().split("\n")[:-1]


class Embeddings(Peer):
    """run() leaves the embeddings of all texts in `result`, which is what is judged, too."""
    result = None

    def output(self):
        return self.result

    def judge(self, _):
        self.run()
        return np.array(self.result)


class Ours(Embeddings):
    version = "this tree"

    def __init__(self, params):
        self.lib, self.shape = c.CDLL(params["bulk"]), params["shape"]
        self.lib.bulk_open.restype = c.c_void_p
        self.lib.bulk_open.argtypes = [c.c_char_p, c.c_char_p, c.c_char_p, c.c_int]
        self.lib.bulk_run.restype = c.POINTER(c.c_float)
        self.lib.bulk_run.argtypes = [c.c_void_p]
        self.lib.bulk_time.argtypes = [c.c_void_p, c.c_double, c.c_double, c.POINTER(c.c_double), c.POINTER(c.c_long)]
        self.bulk = self.lib.bulk_open(params["weights"].encode(), params["vocab"].encode(), params["texts"].encode(),
                                       params["threads"])

    def run(self):
        self.result = np.ctypeslib.as_array(self.lib.bulk_run(self.bulk), self.shape)

    def time(self, seconds, sample):
        median, calls = c.c_double(), c.c_long()
        if self.lib.bulk_time(self.bulk, seconds, sample, median, calls):
            raise RuntimeError("a call failed")
        return median.value, calls.value


class SentenceTransformers(Embeddings):
    def __init__(self, params):
        import sentence_transformers
        import torch
        torch.set_num_threads(params["threads"])
        torch.set_num_interop_threads(1)
        os.environ["TOKENIZERS_PARALLELISM"] = "true"  # as many threads as it may have
        os.environ["RAYON_NUM_THREADS"] = str(params["threads"])
        self.version = sentence_transformers.__version__
        self.model = sentence_transformers.SentenceTransformer(params["model"], device="cpu", local_files_only=True)
        self.texts, self.batch = read_texts(params["texts"]), params["batch"]

    def run(self):
        self.result = self.model.encode(self.texts, batch_size=self.batch, normalize_embeddings=True,
                                        show_progress_bar=False)


class CTranslate2(Embeddings):
    """An encoder with the tokenizer of transformers, whose threads it has; the mean of the rows, of length one."""
    def __init__(self, params):
        import ctranslate2
        import transformers
        os.environ["TOKENIZERS_PARALLELISM"] = "true"
        os.environ["RAYON_NUM_THREADS"] = str(params["threads"])
        self.version, self.library = ctranslate2.__version__, ctranslate2
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(params["vocab"])
        self.encoder = ctranslate2.Encoder(params["model"], device="cpu", compute_type=params["compute_type"],
                                           inter_threads=1, intra_threads=params["threads"])
        self.note = self.encoder.compute_type
        self.texts, self.batch = read_texts(params["texts"]), params["batch"]

    def embed(self, ids):
        width, lengths = max(map(len, ids)), np.array([len(row) for row in ids], np.int32)
        tokens = np.array([row + [0] * (width - len(row)) for row in ids], np.int32)
        view = self.library.StorageView.from_array
        rows = self.encoder.forward_batch(view(tokens), view(lengths)).last_hidden_state
        rows = np.array(rows.to(self.library.DataType.float32))
        kept = (np.arange(width) < lengths[:, None])[:, :, None]
        means = (rows * kept).sum(1) / lengths[:, None]
        return means / np.linalg.norm(means, axis=1, keepdims=True)

    def run(self):
        ids = self.tokenizer(self.texts)["input_ids"]
        order = sorted(range(len(ids)), key=lambda i: -len(ids[i]))
        batches = [order[at:at + self.batch] for at in range(0, len(order), self.batch)]
        rows = np.concatenate([self.embed([ids[i] for i in batch]) for batch in batches])
        self.result = rows[np.argsort(order)]


def prepare(params):
    return (Ours if "bulk" in params else CTranslate2 if "compute_type" in params else SentenceTransformers)(params)
