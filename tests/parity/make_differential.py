#!/usr/bin/env python3
"""Writes tests/parity/differential: a small DiffLlama of transformers with random weights, and what it computes in
float64. Its norm over each head has no weight; this script gives it one, as the authors' own code has it. Needs torch,
transformers and safetensors; the results are committed."""
import os

import numpy
import safetensors.torch
import torch
import transformers

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "differential")
ROWS, BATCH = 21, (24, 9)


def main():
    torch.manual_seed(7)
    config = transformers.DiffLlamaConfig(
        vocab_size=40, hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=8,
        num_key_value_heads=4, max_position_embeddings=24, rms_norm_eps=1e-5, lambda_std_dev=0.4,
        initializer_range=0.2, attn_implementation="eager")
    model = transformers.DiffLlamaForCausalLM(config).double().eval()
    for layer in model.model.layers:
        attention = layer.self_attn
        attention.groupnorm = torch.nn.RMSNorm(8, eps=1e-5).double()
        for norm in (attention.groupnorm, layer.input_layernorm, layer.post_attention_layernorm, model.model.norm):
            norm.weight.data = 1 + 0.3 * torch.randn_like(norm.weight)
    model.load_state_dict({name: value.float().double() for name, value in model.state_dict().items()})
    weights = {name: value.float().contiguous() for name, value in model.state_dict().items()}
    safetensors.torch.save_file(weights, os.path.join(FOLDER, "model.safetensors"))
    tokens = torch.randint(40, (ROWS,))
    batch = torch.randint(40, (2, BATCH[0]))
    mask = torch.tensor([[row < length for row in range(BATCH[0])] for length in BATCH])
    with torch.no_grad():
        alone = model(tokens[None], output_hidden_states=True)
        both = model(batch, attention_mask=mask.long(), output_hidden_states=True)
    hidden = torch.where(mask[:, :, None], both.hidden_states[-1], 0.0)
    greedy = tokens[:9].tolist()
    while len(greedy) < 24:
        with torch.no_grad():
            greedy.append(int(model(torch.tensor([greedy])).logits[0, -1].argmax()))
    for name, array, kind in (("in.tokens", tokens, numpy.int64), ("in.batch_tokens", batch, numpy.int64),
                              ("in.batch_attention_mask", mask, numpy.int64), ("out.greedy", greedy, numpy.int64),
                              ("out.logits", alone.logits[0], numpy.float32),
                              ("out.hidden", alone.hidden_states[-1][0], numpy.float32),
                              ("out.batch_hidden", hidden, numpy.float32)):
        numpy.save(os.path.join(FOLDER, name + ".npy"), numpy.ascontiguousarray(array, dtype=kind))


if __name__ == "__main__":
    main()
