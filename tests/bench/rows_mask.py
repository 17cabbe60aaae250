"""Attention alone under a mask: 8 heads of 64, one thread, rows without projections, beside PyTorch's two ways. Shares
of the peak count the multiply-adds of visible pairs."""
import numpy as np

from rows import Bar, Entry, Row, against, of_peak

HEADS, WIDTH = 8, 64
DOCUMENT = 300  # rows of a document
# The mask's sizes are those of specs/mask_*.attn: what it is, the least share of the peak, the least factor over
# scaled_dot_product_attention.
MASKS = {"full": ("no mask", 0.75, 1.3), "causal": ("causal", 0.75, 1.3),
         "window": ("causal, window 256", 0.60, None),
         "documents": ("causal in documents of %d rows" % DOCUMENT, 0.60, None),
         "whole-documents": ("documents of %d rows" % DOCUMENT, 0.60, None),
         "alibi-softcap": ("causal, ALiBi, soft cap 30", 0.50, None),
         "neighbourhood": ("13 x 13 neighbours in rows of 32", None, None),
         "block-diffusion": ("blocks of 32", None, None),
         "global-rows": ("128 keys on both sides, every 128th row global", None, None)}
FLEX = 1024  # FlexAttention stands beside sequences of this length


def groups(mask, n):
    """The integers of rows that the mask reads."""
    rows = np.arange(n)
    return ((rows % 128 == 0) if mask == "global-rows" else rows // DOCUMENT).astype(np.int64)


def visible(mask, n):
    """[n][n]: which keys a query sees."""
    q, k = np.arange(n)[:, None], np.arange(n)[None, :]
    group = groups(mask, n)
    same = group[:, None] == group[None, :]
    if mask == "neighbourhood":
        near = [abs(np.clip(a, 6, 25) - b) <= 6 for a, b in ((q % 32, k % 32), (q // 32, k // 32))]
        return near[0] & near[1]
    return {"full": lambda: np.ones((n, n), bool), "causal": lambda: q >= k,
            "window": lambda: (q >= k) & (q - k < 256), "documents": lambda: (q >= k) & same,
            "whole-documents": lambda: same, "alibi-softcap": lambda: q >= k,
            "block-diffusion": lambda: k // 32 <= q // 32,
            "global-rows": lambda: (abs(q - k) <= 128) | (group[:, None] == 1) | (group[None, :] == 1)}[mask]()


def share_of_whole(pairs, n):
    """A mask that saves what it hides: its time beside that of no mask, over its share of the pairs."""
    def measure(r):
        ratio = r.ratio("attnc without mask", r.own())
        return None if ratio is None else ratio * n * n / pairs
    return Bar("of the time that its visible share takes without a mask", 1.2, measure, most=True)


def row(context, name, mask, n):
    spec = context.spec("mask_" + mask.replace("-", "_"))
    draw = np.random.default_rng(n).standard_normal((n, HEADS * WIDTH)).astype(np.float32)
    paths = context.inputs(name, query=draw, lengths=np.array([n]), in_group=groups(mask, n))
    params = {"kind": "forward", "inputs": paths, "outputs": {"context": [n, HEADS * WIDTH]}, "threads": 1}
    entries = context.both(spec, "random:1", params)
    pairs = int(visible(mask, n).sum())
    what, peak, sdpa = MASKS[mask]
    bars = [of_peak(peak)] if peak else []
    if mask == "whole-documents":
        bare = context.ours("attnc without mask", context.spec("mask_full"), "random:1", params)
        entries.append(Entry(bare.name, bare.family, bare.params, checked=False))
        bars += [share_of_whole(pairs, n)] if n > FLEX else []
    if context.peers:
        given = {"query": paths["query"], "group": paths["in_group"], "mask": mask, "threads": 1}
        if mask != "alibi-softcap":
            entries.append(Entry("PyTorch SDPA", "torch_attention", dict(given, peer="sdpa")))
            bars += [against(sdpa, "x SDPA", "SDPA")] if sdpa else []
        if n == FLEX:
            entries.append(Entry("FlexAttention", "torch_attention", dict(given, peer="flex")))
            bars += [against(3.0, "x FlexAttention", "Flex")] if peak else []
    return Row(name, "%s, %d rows, 8 heads of 64, 1 thread" % (what, n), entries, bars=bars, bound=1e-4,
               flops=4 * WIDTH * HEADS * pairs,
               note="attention alone, %.1f %% of the pairs visible" % (100 * pairs / n / n))


ROWS = {"mask-%s-%d" % (mask, n): lambda context, name, mask=mask, n=n: row(context, name, mask, n)
        for mask in MASKS for n in (1024, 4096) if n == 1024 or mask != "neighbourhood"}
