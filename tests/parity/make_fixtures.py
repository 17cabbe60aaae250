#!/usr/bin/env python3
"""Writes tests/parity/fixtures/NAME: small models of odd sizes as transformers saves them, with inputs and the outputs
that transformers gives in float64 with eager attention. Needs torch and transformers; the results are committed.

    tests/parity/make_fixtures.py [NAME…]"""
import os
import shutil
import sys

import numpy
import torch
import transformers

HERE = os.path.dirname(os.path.abspath(__file__))
TOKENS, BATCH = 11, (9, 4)
BERT = dict(vocab_size=61, hidden_size=35, num_hidden_layers=2, num_attention_heads=5, intermediate_size=23, max_position_embeddings=19)
VIT = dict(hidden_size=21, num_hidden_layers=2, num_attention_heads=3, intermediate_size=17, image_size=12, patch_size=4)

# name: (class, config, inputs); `text` models also run as a batch with padding.
CASES = {
    "bert_odd": ("BertModel", dict(BERT, hidden_act="relu", layer_norm_eps=1e-3, type_vocab_size=3), "segments"),
    "bert_one_head": ("BertModel", dict(BERT, hidden_size=9, num_attention_heads=1, hidden_act="gelu_new", pad_token_id=3), "text no_pooler"),
    "bert_classifier": ("BertForSequenceClassification", dict(BERT, hidden_size=12, num_attention_heads=3, num_labels=3), "text"),
    "bert_masked": ("BertForMaskedLM", dict(BERT, hidden_size=12, num_attention_heads=3, hidden_act="silu"), "text"),
    "roberta_odd": ("RobertaModel", dict(BERT, type_vocab_size=1, pad_token_id=4, layer_norm_eps=1e-5), "text"),
    "roberta_classifier": ("RobertaForSequenceClassification", dict(BERT, hidden_size=12, num_attention_heads=2, num_labels=4), "text"),
    "xlm_roberta": ("XLMRobertaModel", dict(BERT, hidden_size=14, num_attention_heads=2, type_vocab_size=1), "text"),
    "camembert": ("CamembertModel", dict(BERT, hidden_size=14, num_attention_heads=2, type_vocab_size=1), "text"),
    "distilbert_odd": ("DistilBertModel", dict(vocab_size=61, dim=35, n_layers=2, n_heads=5, hidden_dim=23, max_position_embeddings=19, activation="relu"), "text"),
    "distilbert_sinusoidal": ("DistilBertForMaskedLM", dict(vocab_size=61, dim=12, n_layers=1, n_heads=3, hidden_dim=23, max_position_embeddings=19, sinusoidal_pos_embds=True), "text"),
    "electra_odd": ("ElectraModel", dict(BERT, embedding_size=11, type_vocab_size=2), "segments"),
    "electra_wide": ("ElectraModel", dict(BERT, hidden_size=12, num_attention_heads=2, embedding_size=12), "text"),
    "albert_odd": ("AlbertModel", dict(BERT, embedding_size=11, num_hidden_layers=3), "segments"),
    "albert_classifier": ("AlbertForSequenceClassification", dict(BERT, hidden_size=12, num_attention_heads=2, embedding_size=12, num_labels=3), "text"),
    "mpnet_odd": ("MPNetModel", dict(BERT), "text"),
    "modernbert_odd": ("ModernBertModel", dict(BERT, hidden_size=30, num_hidden_layers=5, local_attention=6, pad_token_id=0), "text"),
    "modernbert_biased": ("ModernBertForMaskedLM", dict(BERT, hidden_size=20, num_hidden_layers=3, local_attention=4, pad_token_id=0, norm_bias=True, attention_bias=True, mlp_bias=True, hidden_activation="silu"), "text"),
    "vit_odd": ("ViTModel", dict(VIT, image_size=(8, 12), hidden_act="gelu_new", qkv_bias=False), "pixels"),
    "vit_classifier": ("ViTForImageClassification", dict(VIT, num_labels=5, layer_norm_eps=1e-3), "pixels"),
    "deit_odd": ("DeiTModel", dict(VIT, num_attention_heads=1), "pixels"),
    "deit_classifier": ("DeiTForImageClassification", dict(VIT, num_labels=4), "pixels"),
}


def save(folder, name, array, integers=False):
    numpy.save(os.path.join(folder, name + ".npy"), numpy.ascontiguousarray(array, dtype=numpy.int64 if integers else numpy.float32))


def stacked(maps):
    """[layers][heads][n][m], or with a batch dimension in front."""
    return torch.stack([m for m in maps], 1)


def outputs_of(result, cross):
    out = {}
    if getattr(result, "logits", None) is not None and "logits" in result:
        out["logits"] = result.logits
    elif "last_hidden_state" in result:
        out["hidden"] = result.last_hidden_state
    if cross:
        out["encoder_hidden"] = result.encoder_last_hidden_state
        out["cross_attention"] = stacked(result.cross_attentions)
    elif result.attentions is not None:
        out["attention"] = stacked(result.attentions)
    return out


def draw(name, count, vocab, config, batch=None):
    """Token ids, none of them padding."""
    generator = numpy.random.default_rng(sum(name.encode()) + count)
    special = {i for i in (config.pad_token_id,) if isinstance(i, int)}
    allowed = [t for t in range(vocab) if t not in special]
    return generator.choice(allowed, size=(count,) if batch is None else (batch, count))


def randomize(model):
    """Gains and biases as well: transformers begins with ones and zeros, which hide a wrong tensor."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            noise = torch.randn(weight.shape, generator=generator, dtype=weight.dtype)
            if weight.dim() < 2:
                weight.add_(0.2 * noise)
            else:
                weight.copy_(noise * 0.6 / weight.shape[-1] ** 0.5 if "embed" not in name else 0.5 * noise)


def make(name):
    class_name, settings, kind = CASES[name]
    torch.manual_seed(1)
    cls = getattr(transformers, class_name)
    config = cls.config_class(**settings)
    config._attn_implementation = "eager"
    arguments = {"add_pooling_layer": False} if "no_pooler" in kind else {}
    model = cls(config, **arguments).eval()
    randomize(model)
    folder = os.path.join(HERE, "fixtures", name)
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    for extra in os.listdir(folder):
        if extra not in ("config.json", "model.safetensors"):
            os.remove(os.path.join(folder, extra))
    model = model.double()
    if "masked" in name or class_name.endswith("ForMaskedLM"):
        model = model.base_model  # the head cannot be said
    cross = "source" in kind
    options = dict(output_attentions=True, return_dict=True)
    vocab = getattr(config, "vocab_size", 0)

    def run(prefix, **inputs):
        with torch.no_grad():
            result = model(**inputs, **options)
        mask = inputs.get("attention_mask")
        for key, value in outputs_of(result, cross).items():
            if prefix and key not in ("hidden", "logits"):
                continue
            if prefix and value.dim() == 3 and not cross:
                value = torch.where(mask[:, :, None] > 0, value, 0.0)
            save(folder, "out.%s%s" % (prefix, key), value if prefix or (key == "pooled") else value[0])

    if "pixels" in kind:
        size = config.image_size if isinstance(config.image_size, (tuple, list)) else (config.image_size,) * 2
        pixels = numpy.random.default_rng(3).standard_normal((3, *size)).astype(numpy.float32)
        save(folder, "in.pixels", pixels)
        run("", pixel_values=torch.tensor(pixels)[None].double())
        return
    if cross:
        source, target = draw(name, TOKENS, vocab, config), draw(name + "t", 7, vocab, config)
        save(folder, "in.source", source, True)
        save(folder, "in.target", target, True)
        run("", input_ids=torch.tensor(source)[None], decoder_input_ids=torch.tensor(target)[None])
        return
    tokens = draw(name, TOKENS, vocab, config)
    save(folder, "in.tokens", tokens, True)
    inputs = dict(input_ids=torch.tensor(tokens)[None])
    if "segments" in kind:
        segments = numpy.arange(TOKENS) % config.type_vocab_size
        save(folder, "in.segments", segments, True)
        inputs["token_type_ids"] = torch.tensor(segments)[None]
    run("", **inputs)
    if "text" in kind:
        batch = draw(name + "b", max(BATCH), vocab, config, len(BATCH))
        mask = numpy.array([[i < n for i in range(max(BATCH))] for n in BATCH], dtype=numpy.int64)
        if isinstance(config.pad_token_id, int):
            batch = numpy.where(mask, batch, config.pad_token_id)
        save(folder, "in.batch_tokens", batch, True)
        save(folder, "in.batch_attention_mask", mask, True)
        run("batch_", input_ids=torch.tensor(batch), attention_mask=torch.tensor(mask))


def main():
    for name in sys.argv[1:] or sorted(CASES):
        make(name)


if __name__ == "__main__":
    main()
