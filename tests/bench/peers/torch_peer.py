"""PyTorch eager, as transformers runs it: scaled_dot_product_attention, inference mode. `precision`: "bf16" for a model
of bf16 numbers, "autocast" for torch.autocast."""
import contextlib

import numpy as np

from worker import Peer


class Bert(Peer):
    def __init__(self, params):
        import torch
        from transformers import BertModel
        self.torch, self.version = torch, torch.__version__
        torch.set_num_threads(params["threads"])
        torch.set_num_interop_threads(1)
        self.model = BertModel.from_pretrained(params["model"], attn_implementation="sdpa",
                                               add_pooling_layer=False).eval()
        self.context = contextlib.nullcontext
        if params.get("precision") == "bf16":
            self.model = self.model.bfloat16()
        elif params.get("precision") == "autocast":
            self.context = lambda: torch.autocast("cpu", torch.bfloat16)
        self.tokens = torch.from_numpy(np.load(params["inputs"][0]))
        self.result = None

    def run(self):
        with self.torch.inference_mode(), self.context():
            self.result = self.model(input_ids=self.tokens).last_hidden_state

    def output(self):
        return self.result.float().numpy()

    def judge(self, given):
        with self.torch.inference_mode(), self.context():
            for text in given:
                tokens = self.torch.from_numpy(text[None, text >= 0])
                yield self.model(input_ids=tokens).last_hidden_state.float().numpy()


def prepare(params):
    return Bert(params)
