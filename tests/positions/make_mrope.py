#!/usr/bin/env python3
"""Writes tests/positions/mrope: the weights of a small random Qwen2-VL of transformers, rows of features, their three
positions (time, line and column), and the rows that its text model makes of them."""
import os
import sys

import torch
from transformers.models.qwen2_vl.modeling_qwen2_vl import Qwen2VLTextConfig, Qwen2VLTextModel

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib import npy, safetensors  # noqa: E402

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mrope")


def main():
    torch.manual_seed(7)
    config = Qwen2VLTextConfig(hidden_size=24, intermediate_size=28, num_hidden_layers=2, num_attention_heads=2,
                               num_key_value_heads=1, vocab_size=3, rms_norm_eps=1e-6, initializer_range=0.3,
                               rope_parameters={"rope_theta": 10000.0, "rope_type": "default",
                                                "mrope_section": [1, 3, 2]})
    model = Qwen2VLTextModel(config).float().eval()
    with torch.no_grad():
        for tensor in model.parameters():
            if tensor.dim() == 1:
                tensor.add_(0.2 * torch.randn_like(tensor))
    # three rows of text, an image of 2 x 4, four rows of text
    places = [(i, i, i) for i in range(3)] + [(3, 3 + line, 3 + column) for line in range(2) for column in range(4)]
    places += [(7 + i, 7 + i, 7 + i) for i in range(4)]
    rows = torch.randn(1, len(places), 24)
    with torch.no_grad():
        at = torch.tensor(places).T.reshape(3, 1, -1)
        hidden = model(inputs_embeds=rows, position_ids=at).last_hidden_state
    weights = {name: (tuple(t.shape), t.reshape(-1).tolist()) for name, t in model.state_dict().items()
               if "embed_tokens" not in name}
    safetensors.write(os.path.join(FOLDER, "model.safetensors"), weights)
    for name, values in (("features", rows[0]), ("hidden", hidden[0])):
        npy.write(os.path.join(FOLDER, name + ".npy"), values.reshape(-1).tolist(), tuple(values.shape), "<f4")
    for axis, name in enumerate(("time", "line", "column")):
        npy.write(os.path.join(FOLDER, name + ".npy"), [place[axis] for place in places])


if __name__ == "__main__":
    main()
