#!/usr/bin/env python3
"""Writes tests/parity/fixtures/NAME: small models of odd sizes as transformers saves them, with inputs and the outputs
that transformers gives in float64 with eager attention to the model read back from that folder. Needs torch and
transformers; the results are committed. `out.greedy` is tokens[0:9], or the decoder's first token, and the NEW tokens
that a plain argmax over the logits adds; no end of sequence stops it.

    tests/parity/make_fixtures.py [NAME…]"""
import json
import os
import shutil
import sys

import numpy
import safetensors.torch
import torch
import transformers

from cases import CASES, DISK

HERE = os.path.dirname(os.path.abspath(__file__))
TOKENS, TARGET, BATCH, BATCH_TARGET = 11, 7, (9, 4), 6
PROMPT, NEW = 9, 10
CLEAR, DISTINCT, RUN = 1e-3, 4, 4  # of greedy text: least lead of a choice, least different tokens, no such run of one
STRENGTHS, SEEDS = (0.6, 1.5, 3.0), 200  # of weights; with weak layers a tied head repeats the last token for ever
FULL = {"bert_odd", "vit_odd", "gpt2_odd", "llama_odd",
        "bart_odd"}  # stored as float32; the others as bfloat16, to be small


def save(folder, name, array, integers=False):
    numpy.save(os.path.join(folder, name + ".npy"),
               numpy.ascontiguousarray(array, dtype=numpy.int64 if integers else numpy.float32))


def stacked(maps):
    """[layers][heads][n][m], or with a batch dimension in front."""
    return torch.stack([m for m in maps], 1)


def outputs_of(result, cross, kind=""):
    out = {}
    for key in ("text_embeds", "image_embeds"):
        if key in result:
            out["logits"] = result[key]
    if "projected" in kind:
        out["logits"] = result.pooler_output
    if "pooled" in kind:
        out["pooled"] = result.pooler_output
    if getattr(result, "logits", None) is not None and "logits" in result:
        out["pooled" if "scores" in kind else "logits"] = result.logits
    if "scored" in kind:
        out["logits"] = result.logits[..., None]
    if "prediction_logits" in result:
        out["logits"] = result.prediction_logits
    if "start_logits" in result:
        out["logits"] = torch.stack([result.start_logits, result.end_logits], -1)
    elif "last_hidden_state" in result and "unnormalized" not in kind:
        out["hidden"] = result.last_hidden_state
    if cross and "encoder_last_hidden_state" in result:
        out["encoder_hidden"] = result.encoder_last_hidden_state
        out["attention"] = stacked(result.decoder_attentions)
        out["encoder_attention"] = stacked(result.encoder_attentions)
        out["cross_attention"] = stacked(result.cross_attentions)
    elif result.attentions is not None:
        out["attention"] = stacked(result.attentions)
    return out


def part_of(model, name):
    """A call of the part of a model of several that the case is about, whose output import calls `logits`."""
    if "_part_" not in name or not hasattr(model, "get_image_features"):
        return model
    def run(output_attentions, return_dict, **inputs):
        features = (model.get_text_features if name.endswith("_text") else model.get_image_features)(**inputs)
        if "pooled" in CASES[name][2]:
            return transformers.utils.ModelOutput(pooler_output=features.pooler_output, attentions=None)
        return transformers.utils.ModelOutput(logits=features if torch.is_tensor(features) else features.pooler_output,
                                              attentions=None)
    return run


def draw(name, count, vocab, config, batch=None):
    """Token ids, none of them padding; where `end` is wanted, the last is the end token, and no other; where `masks`
    are wanted, every third is the mask token."""
    generator = numpy.random.default_rng(sum(name.encode()) + count)
    special = {i for i in (config.pad_token_id,) if isinstance(i, int)}
    kind = CASES.get(name.removesuffix("b"), ("", {}, ""))[2].split()
    end = config.eos_token_id if "end" in kind else None
    allowed = [t for t in range(vocab) if t not in special | {end}]
    tokens = generator.choice(allowed, size=(count,) if batch is None else (batch, count))
    if end is not None:
        for i, n in enumerate([count] if batch is None else BATCH):
            tokens[(..., n - 1) if batch is None else (i, n - 1)] = end
    if "masks" in kind:
        tokens[..., 1::3] = config.mask_token_id
    return tokens


def first_of_target(config):
    return getattr(config, "decoder_start_token_id", config.bos_token_id)


def shifted(source, config):
    """The target of a sequence that is classified: the first token of targets, and the source without its last."""
    return numpy.concatenate([[first_of_target(config)], source[:-1]])


def padded(name, vocab, config):
    """Token ids of the lengths BATCH, and their mask."""
    batch = draw(name + "b", max(BATCH), vocab, config, len(BATCH))
    mask = numpy.array([[i < n for i in range(max(BATCH))] for n in BATCH], dtype=numpy.int64)
    return numpy.where(mask, batch, config.pad_token_id) if isinstance(config.pad_token_id, int) else batch, mask


def randomize(model, begin, halved, strength, seed):
    """Gains and biases as well: transformers begins with ones and zeros (`begin`), which hide a wrong tensor."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if not weight.requires_grad:
                continue  # a table of sinusoids
            noise = torch.randn(weight.shape, generator=generator, dtype=weight.dtype)
            if weight.dim() < 2:
                weight.copy_(begin[name] + 0.2 * noise)
            else:
                weight.copy_(noise * strength / weight.shape[-1] ** 0.5 if "embed" not in name else 0.5 * noise)
            if halved:
                weight.copy_(weight.bfloat16())
        for name, numbers in (*model.named_parameters(), *model.named_buffers()):
            if name.endswith("e_score_correction_bias"):  # of the choice of experts, which begins with zeros
                numbers.copy_((0.2 * torch.randn(numbers.shape, generator=generator)).bfloat16())


def halve(path):
    """Stores the tensors of a file as bfloat16, which they are already rounded to; a table of sinusoids is not."""
    tensors = safetensors.torch.load_file(path)
    for key, tensor in tensors.items():
        if tensor.dtype == torch.float32 and torch.equal(tensor.bfloat16().float(), tensor):
            tensors[key] = tensor.bfloat16()
    safetensors.torch.save_file(tensors, path, metadata={"format": "pt"})


def own_head(folder, model):
    """Gives the file a matrix of its own, with a bias, for a head that the config ties to the table of tokens."""
    path = os.path.join(folder, "model.safetensors")
    tensors, head = safetensors.torch.load_file(path), model.get_output_embeddings()
    name = next(name for name, module in model.named_modules() if module is head)
    generator = torch.Generator().manual_seed(3)
    for part in [p for p in ("weight", "bias") if getattr(head, p, None) is not None]:
        shape = getattr(head, part).shape
        tensors["%s.%s" % (name, part)] = (torch.randn(shape, generator=generator) * 0.3).bfloat16()
    safetensors.torch.save_file(tensors, path, metadata={"format": "pt"})


def rewrite(folder, changes):
    """Sets keys of config.json, with dots into objects, or takes them out where the value is `...`."""
    path = os.path.join(folder, "config.json")
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    for words, value in changes.items():
        *objects, key = words.split(".")
        holder = config
        for word in objects:
            holder = holder[word]
        if value is ...:
            holder.pop(key)
        else:
            holder[key] = value
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file, indent=2)


def greedy(model, inputs, begin):
    """(text, whether it is one to compare with): `begin` and NEW tokens, none of them padding, each ahead by CLEAR."""
    text, clear = list(begin), True
    for _ in range(NEW):
        ids = torch.tensor(text)[None]
        with torch.no_grad():
            logits = model(**inputs, **{"decoder_input_ids" if inputs else "input_ids": ids}).logits[0, -1]
        best = logits.topk(2)
        clear = clear and bool(best.values[0] - best.values[1] > CLEAR)
        text.append(int(best.indices[0]))
    new = text[len(begin):]
    dull = len(set(new)) < DISTINCT or any(len(set(new[i:i + RUN])) == 1 for i in range(NEW - RUN + 1))
    return text, clear and not dull and model.config.get_text_config().pad_token_id not in new


def sound(config):
    """A spectrogram of normal numbers."""
    shape = (config.num_mel_bins, 2 * config.max_source_positions)
    return numpy.random.default_rng(5).standard_normal(shape).astype(numpy.float32)


def greedy_of(model, name):
    """The text that belongs to the inputs of the case."""
    config = model.config if "sound" in CASES[name][2] else model.config.get_text_config()
    if "sound" in CASES[name][2]:
        features = torch.tensor(sound(config))[None].to(next(model.parameters()).dtype)
        return greedy(model, {"input_features": features}, [config.decoder_start_token_id])
    if "source" in CASES[name][2]:
        source = draw(name, TOKENS, config.vocab_size, config)
        return greedy(model, {"input_ids": torch.tensor(source)[None]}, [first_of_target(config)])
    return greedy(model, {}, draw(name, TOKENS, config.vocab_size, config)[:PROMPT])


def fill(model, name):
    """Random weights; where greedy text is wanted, the first ones that make a text worth comparing with."""
    begin = {key: weight.detach().clone() for key, weight in model.named_parameters()}
    for strength in STRENGTHS:
        for seed in range(7, 7 + SEEDS):
            randomize(model, begin, name not in FULL, strength, seed)
            if "greedy" not in CASES[name][2] or greedy_of(model, name)[1]:
                return
    raise ValueError("every greedy text is dull or unclear")


def chosen_experts(self, rows, first, gates):
    """In place of NllbMoeExperts.forward, which does not take the experts that have the gates."""
    parts = [gates[:, i, None] * self["expert_%d" % i](rows) for i in range(self.num_experts)]
    return (1 - self.moe_token_dropout) * sum(parts)


def saved(name, folder):
    """The model of a case as transformers reads it back from its folder: what the file leaves out is not random."""
    class_name, settings, kind = CASES[name]
    torch.manual_seed(1)
    cls = getattr(transformers, class_name)
    config = cls.config_class(**settings)
    config._attn_implementation = "sdpa" if "sdpa" in kind else "eager"
    config._experts_implementation = "eager"  # the others have no float64
    if "mended" in kind:
        transformers.models.nllb_moe.modeling_nllb_moe.NllbMoeExperts.forward = chosen_experts
    arguments = {"add_pooling_layer": False} if "no_pooler" in kind else {}
    model = cls(config, **arguments).eval()
    fill(model, name)
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    for extra in os.listdir(folder):
        if extra not in ("config.json", "model.safetensors"):
            os.remove(os.path.join(folder, extra))
    if name not in FULL:
        halve(os.path.join(folder, "model.safetensors"))
    if "own_head" in kind:
        own_head(folder, model)
    rewrite(folder, DISK.get(name, {}))
    arguments["attn_implementation"] = config._attn_implementation
    model = cls.from_pretrained(folder, dtype=torch.float32, **arguments).eval()
    model.config.get_text_config()._experts_implementation = "eager"
    model = model if "single" in kind else model.double()
    return model


def make(name):
    kind = CASES[name][2]
    folder = os.path.join(HERE, "fixtures", name)
    model = saved(name, folder)
    config = model.config.get_text_config()  # of a model of images and texts: that of the text
    cross = "source" in kind
    options = dict(output_attentions="sdpa" not in kind, return_dict=True)
    vocab = getattr(config, "vocab_size", 0)
    if "greedy" in kind:
        text, good = greedy_of(model, name)
        if not good:
            raise ValueError("the greedy text changes when the model is read back")
        save(folder, "out.greedy", text, True)

    def run(prefix, **inputs):
        asked = {key: value[:, None] for key, value in inputs.items()} if "choice" in kind else inputs  # of one choice
        with torch.no_grad():
            result = part_of(model, name)(**asked, **options)
        mask = inputs.get("attention_mask")
        for key, value in outputs_of(result, cross, kind).items():
            if prefix and key not in ("hidden", "logits", "pooled", "encoder_hidden"):
                continue
            if prefix and value.dim() == 3 and cross == (key == "encoder_hidden"):  # the rows that the mask speaks of
                value = torch.where(mask[:, :, None] > 0, value, 0.0)
            save(folder, "out.%s%s" % (prefix, key), value if prefix else value[0])

    if "spectrogram" in kind:  # a spec reads [bins][frames] as an image of one channel
        frames = numpy.random.default_rng(3).standard_normal((config.max_length, config.num_mel_bins))
        frames = frames.astype(numpy.float32)
        save(folder, "in.pixels", numpy.ascontiguousarray(frames.T)[None])
        run("", input_values=torch.tensor(frames)[None].double())
        return
    if "pixels" in kind:
        size = getattr(model.config, "vision_config", config).image_size
        size = size if isinstance(size, (tuple, list)) else (size,) * 2
        channels = getattr(getattr(model.config, "vision_config", config), "num_channels", 3)
        pixels = numpy.random.default_rng(3).standard_normal((channels, *size)).astype(numpy.float32)
        patch = getattr(model.config, "vision_config", config).patch_size
        save(folder, "in.pixels", pixels[:, :size[0] // patch * patch, :size[1] // patch * patch])  # what patches cover
        run("", pixel_values=torch.tensor(pixels)[None].double())
        return
    if "sound" in kind:
        mel, target = sound(config), draw(name + "t", TARGET, vocab, config)  # of a decoder where there is one
        save(folder, "in.mel", mel)
        if not cross:
            run("", input_features=torch.tensor(mel)[None].double())
            return
        save(folder, "in.target", target, True)
        run("", input_features=torch.tensor(mel)[None].double(), decoder_input_ids=torch.tensor(target)[None])
        return
    if cross:
        source, target = draw(name, TOKENS, vocab, config), draw(name + "t", TARGET, vocab, config)
        if "shifted" in kind:
            target = shifted(source, config)
        save(folder, "in.source", source, True)
        save(folder, "in.target", target, True)
        run("", input_ids=torch.tensor(source)[None], decoder_input_ids=torch.tensor(target)[None])
        if "shifted" in kind or "window" in kind:  # where padded rows of the encoder that see no key become NaN
            return
        batch, mask = padded(name, vocab, config)
        target = draw(name + "bt", BATCH_TARGET, vocab, config, len(BATCH))
        save(folder, "in.batch_source", batch, True)
        save(folder, "in.batch_attention_mask", mask, True)
        save(folder, "in.batch_target", target, True)
        run("batch_", input_ids=torch.tensor(batch), attention_mask=torch.tensor(mask),
            decoder_input_ids=torch.tensor(target))
        return
    tokens = draw(name, TOKENS, vocab, config)
    save(folder, "in.tokens", tokens, True)
    inputs = dict(input_ids=torch.tensor(tokens)[None])
    if "mask" in kind.split():
        inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
    if "segments" in kind:
        segments = numpy.arange(TOKENS) % config.type_vocab_size
        save(folder, "in.segments", segments, True)
        inputs["token_type_ids"] = torch.tensor(segments)[None]
    run("", **inputs)
    if "text" in kind:
        batch, mask = padded(name, vocab, config)
        save(folder, "in.batch_tokens", batch, True)
        save(folder, "in.batch_attention_mask", mask, True)
        if "window" not in kind:
            run("batch_", input_ids=torch.tensor(batch), attention_mask=torch.tensor(mask))
            return
        # padded rows that see no key become NaN in transformers and spoil the others: a sequence at a time
        with torch.no_grad():
            results = [outputs_of(model(input_ids=torch.tensor(batch[i:i + 1, :n]), **options), cross)
                       for i, n in enumerate(BATCH)]
        for key in results[0].keys() & {"hidden", "logits"}:
            whole = numpy.zeros((len(BATCH), max(BATCH), results[0][key].shape[-1]))
            for i, n in enumerate(BATCH):
                whole[i, :n] = results[i][key][0]
            save(folder, "out.batch_" + key, whole)


def main():
    failed = 0
    for name in sys.argv[1:] or sorted(CASES):
        try:
            make(name)
        except Exception as error:
            failed += 1
            print("%s: %s: %s" % (name, type(error).__name__, error), file=sys.stderr)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
