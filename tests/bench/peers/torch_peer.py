"""PyTorch eager, as transformers runs it: scaled_dot_product_attention, inference mode."""
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
        self.tokens = torch.from_numpy(np.load(params["inputs"][0]))
        self.result = None

    def run(self):
        with self.torch.inference_mode():
            self.result = self.model(input_ids=self.tokens).last_hidden_state

    def output(self):
        return self.result.numpy()


def prepare(params):
    return Bert(params)
