"""PyTorch's attention over heads that lie apart, so that it copies nothing: "sdpa" is scaled_dot_product_attention,
with a mask of truths where it has no word for the mask, and "flex" FlexAttention, compiled once, with a mask of blocks
that is made before the time counts, as its documentation says."""
import numpy as np

from worker import Peer

WIDTH, HEADS = 64, 8
# The sizes are those of specs/mask_*.attn.
WINDOW, SIDE, BLOCK, ROW, REACH, CAP = 256, 128, 32, 32, 6, 30.0


def clamp(x, low, high):
    return x.clamp(low, high)


def masks(group):
    """Whether a query sees a key, as FlexAttention takes it."""
    def neighbours(_b, _h, q, k):
        last = ROW - 1 - REACH
        across = (clamp(q % ROW, REACH, last) - k % ROW).abs() <= REACH
        return across & ((clamp(q // ROW, REACH, last) - k // ROW).abs() <= REACH)
    return {
        "full": None,
        "causal": lambda _b, _h, q, k: q >= k,
        "window": lambda _b, _h, q, k: (q >= k) & (q - k < WINDOW),
        "documents": lambda _b, _h, q, k: (q >= k) & (group[q] == group[k]),
        "whole-documents": lambda _b, _h, q, k: group[q] == group[k],
        "alibi-softcap": lambda _b, _h, q, k: q >= k,
        "neighbourhood": neighbours,
        "block-diffusion": lambda _b, _h, q, k: k // BLOCK <= q // BLOCK,
        "global-rows": lambda _b, _h, q, k: ((q - k).abs() <= SIDE) | (group[q] == 1) | (group[k] == 1)}


class Attention(Peer):
    def __init__(self, params):
        import torch
        self.torch, self.version = torch, torch.__version__
        torch.set_num_threads(params["threads"])
        torch.set_num_interop_threads(1)
        rows = torch.from_numpy(np.load(params["query"]))
        self.n = rows.shape[0]
        heads = rows.view(self.n, HEADS, WIDTH).transpose(0, 1)[None]
        self.heads = [heads.clone(memory_format=torch.contiguous_format) for _ in range(3)]
        group = torch.from_numpy(np.load(params["group"]))
        self.mask = masks(group)[params["mask"]]
        make = {"sdpa": self.sdpa, "flex": self.flex}[params["peer"]]
        self.call, self.result = make(params["mask"]), None

    def sdpa(self, name):
        attend = self.torch.nn.functional.scaled_dot_product_attention
        if name in ("full", "causal"):
            return lambda: attend(*self.heads, is_causal=name == "causal")
        at = self.torch.arange(self.n)
        seen = self.mask(0, 0, at[:, None], at[None, :])
        return lambda: attend(*self.heads, attn_mask=seen)

    def flex(self, name):
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention
        torch, score = self.torch, None
        if name == "alibi-softcap":
            slopes = 2.0 ** (-8.0 * (torch.arange(HEADS) + 1) / HEADS)

            def score(s, _b, h, q, k):
                return CAP * torch.tanh((s - slopes[h] * (q - k)) / CAP)
        blocks = self.mask and create_block_mask(self.mask, None, None, self.n, self.n, device="cpu")
        attend = torch.compile(flex_attention)
        return lambda: attend(*self.heads, score_mod=score, block_mask=blocks)

    def run(self):
        with self.torch.inference_mode():
            self.result = self.call()

    def output(self):
        return self.result[0].transpose(0, 1).reshape(self.n, HEADS * WIDTH).numpy()


def prepare(params):
    return Attention(params)
