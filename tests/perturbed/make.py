#!/usr/bin/env python3
"""Writes tests/perturbed/BASE.zip: a small model as transformers saves it, variations of its config.json and of its
tensors, and the outputs that transformers gives in float64 to each variation read back from its folder. Needs torch and
transformers 5.23; the archives are committed. A variation that transformers cannot load is left out.

    tests/perturbed/make.py [BASE…]

cases.json of an archive maps a variation to {"config", "without", "weights", "in": {NAME: member}, "out": {NAME:
member}}: keys of config.json that differ from those of the variation `plain`, keys that only `plain` has, and members
of the archive. Members are named after their contents, so that what several variations share is stored once."""
import contextlib
import hashlib
import io
import json
import os
import shutil
import sys
import tempfile
import warnings
import zipfile

import numpy
import safetensors.torch
import torch
import transformers

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(HERE, "../parity"))
from make_fixtures import randomize  # noqa: E402
from bases import BASES, EXTRA, FOREIGN, FUSED_ALIBI, NESTED_ROPES, OPEN, ROPES  # noqa: E402

TOKENS, TARGET, LONG = 9, 6, 280
END = 22  # the end token of clip_text
# Variations of bases with the word `pads` or `ends`: the places in the text, or in source and target, of that token.
PLACES = {"plain": (), "at_the_end": (-2, -1), "inside": (2, 5), "twice_at_the_beginning": (0, 1), "once": (3,),
          "alone_at_the_end": (-1,), "everywhere": range(-TOKENS, TOKENS)}
ACTIVATION_KEYS = ("hidden_act", "activation_function", "hidden_activation", "activation", "feed_forward_proj",
                   "dense_act_fn")
ACTIVATIONS = ("relu", "gelu", "gelu_new", "gelu_pytorch_tanh", "silu", "quick_gelu", "gelu_fast", "relu2", "swish",
               "gelu_python", "gelu_accurate", "mish", "leaky_relu", "hardswish", "gated-gelu", "gated-silu",
               "gated-relu")
# Keys that change how results are handed out, not what they are.
HANDING_OUT = {"return_dict", "output_hidden_states", "output_attentions", "torchscript", "use_return_dict"}
NOT_SAVED = {"dtype", "torch_dtype", "transformers_version", "_name_or_path", "architectures", "model_type"}


def draw(name, count, vocab):
    """Token ids beyond the special ones, whatever a config makes of those."""
    return numpy.random.default_rng(sum(name.encode()) + count).integers(5, vocab, count)


def quiet(function, *arguments, **options):
    transformers.logging.set_verbosity(50)
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        return function(*arguments, **options)


def read_config(folder):
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        return json.load(file)


def write_config(folder, config):
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file, indent=1, sort_keys=True)


def at_path(config, path):
    """The object that holds the last word of a dotted path."""
    *objects, key = path.split(".")
    for name in objects:
        config = config.setdefault(name, {})
        if config is None:
            return None, key
    return config, key


def changed(config, changes):
    """A copy with the dotted paths of `changes` set, or taken out where the value is `...`."""
    config = json.loads(json.dumps(config))
    for path, value in changes.items():
        holder, key = at_path(config, path)
        if holder is None:
            continue
        if value is ...:
            holder.pop(key, None)
        else:
            holder[key] = json.loads(json.dumps(value))  # transformers writes into what it is given
    return config


class Base:
    def __init__(self, name):
        self.name = name
        self.class_name, self.settings, self.kind = BASES[name]
        self.cls = getattr(transformers, self.class_name)
        self.members, self.cases, self.seen = {}, {}, set()
        self.places = ()
        self.folder = tempfile.mkdtemp()
        self.older_type = "rope_type" if name in NESTED_ROPES else "type"

    def build(self, settings):
        """Saves a model of these settings with random weights into a fresh folder."""
        shutil.rmtree(self.folder)
        os.makedirs(self.folder)
        torch.manual_seed(1)
        config = self.cls.config_class(**settings)
        config._attn_implementation = "eager"
        model = self.cls(config).eval()
        begin = {key: weight.detach().clone() for key, weight in model.named_parameters()}
        randomize(model, begin, True, 1.5, 7)
        model.save_pretrained(self.folder)
        self.tidy()

    def tidy(self):
        for extra in os.listdir(self.folder):
            if extra not in ("config.json", "model.safetensors"):
                os.remove(os.path.join(self.folder, extra))
        path = os.path.join(self.folder, "model.safetensors")
        tensors = safetensors.torch.load_file(path)
        for key, tensor in tensors.items():
            if tensor.dtype == torch.float32 and torch.equal(tensor.bfloat16().float(), tensor):
                tensors[key] = tensor.bfloat16()
        safetensors.torch.save_file(tensors, path, metadata={"format": "pt"})

    def load(self):
        attention = "sdpa" if read_config(self.folder).get("alibi") and self.name.startswith(FUSED_ALIBI) else "eager"
        model, told = self.cls.from_pretrained(self.folder, dtype=torch.float32, attn_implementation=attention,
                                               output_loading_info=True)
        for key in told["missing_keys"]:
            if not key.endswith(("final_logits_bias", "embed_positions.weight")):
                raise ValueError("transformers draws %s anew" % key)
        if told["mismatched_keys"]:
            raise ValueError("shapes differ")
        model.config.get_text_config()._experts_implementation = "eager"  # the others have no float64
        model = model.eval().double()
        return model.base_model if "base" in self.kind else model

    def put(self, config, tokens):
        """The tokens with the pad, or the end token, in the places of the variation that there are."""
        tokens = tokens.copy()
        for place in self.places or ((-1,) if "ends" in self.kind else ()):
            if -len(tokens) <= place < len(tokens):
                tokens[place] = config.eos_token_id if "ends" in self.kind else config.pad_token_id
        return tokens

    def inputs(self, model):
        config, name = model.config, self.name
        vocab = getattr(config, "vocab_size", 0)
        if "pixels" in self.kind:
            size = config.image_size if isinstance(config.image_size, (tuple, list)) else (config.image_size,) * 2
            if max(size) > 64:  # that of an absent `image_size`
                raise ValueError("the image is too large for an archive")
            pixels = numpy.random.default_rng(3).standard_normal((3, *size)).astype(numpy.float32)
            return {"pixels": pixels}, {"pixel_values": torch.tensor(pixels)[None].double()}
        if "source" in self.kind:
            source, target = draw(name, TOKENS, vocab), draw(name + "t", TARGET, vocab)
            source, target = self.put(config, source), self.put(config, target)
            if "ends" in self.kind:  # the target of a classifier is the shifted source
                target = numpy.concatenate(([config.decoder_start_token_id], source[:-1]))
            return {"source": source, "target": target}, {"input_ids": torch.tensor(source)[None],
                                                          "decoder_input_ids": torch.tensor(target)[None]}
        tokens = self.put(config, draw(name, LONG if "long" in self.kind else TOKENS, vocab))
        if name == "clip_text":  # whose pooled row is that of the first end token
            tokens = numpy.where(tokens == END, END - 1, tokens)
            tokens[-1] = END
        arrays, inputs = {"tokens": tokens}, {"input_ids": torch.tensor(tokens)[None]}
        if "segments" in self.kind and config.type_vocab_size > 1:
            arrays["segments"] = numpy.arange(TOKENS) % config.type_vocab_size
            inputs["token_type_ids"] = torch.tensor(arrays["segments"])[None]
        return arrays, inputs

    def answer(self, model, inputs):
        with torch.no_grad():
            result = model(**inputs, return_dict=True)
        names = {"logits": "logits", "pooler_output": "pooled", "encoder_last_hidden_state": "encoder_hidden"}
        if "logits" not in result:
            names["last_hidden_state"] = "hidden"
        if self.name == "clip_text" and model.config.eos_token_id not in (END, 2):
            del names["pooler_output"]  # the end token is not in the text: the row is not that of the end
        out = {names[key]: result[key] for key in names if result.get(key) is not None}
        if not all(torch.isfinite(value).all() for value in out.values()):
            raise ValueError("not finite")
        return {key: value[0] for key, value in out.items()}

    def member(self, prefix, suffix, data):
        name = "%s.%s%s" % (prefix, hashlib.sha256(data).hexdigest()[:12], suffix)
        self.members[name] = data
        return name

    def npy(self, prefix, array, kind):
        file = io.BytesIO()
        numpy.save(file, numpy.ascontiguousarray(array, dtype=kind))
        return self.member(prefix, ".npy", file.getvalue())

    def keep(self, variation):
        """The folder as it stands, if transformers runs it and no variation before it has the same files."""
        with open(os.path.join(self.folder, "config.json"), "rb") as file:
            config = file.read()
        with open(os.path.join(self.folder, "model.safetensors"), "rb") as file:
            weights = file.read()
        told = {k: v for k, v in json.loads(config).items() if k not in NOT_SAVED}
        mark = (json.dumps(told, sort_keys=True), weights, tuple(self.places))
        if mark in self.seen:
            return False
        self.seen.add(mark)
        try:
            model = quiet(self.load)
            arrays, inputs = self.inputs(model)
            out = quiet(self.answer, model, inputs)
        except Exception as error:  # whatever stops transformers
            if os.environ.get("VERBOSE"):
                print("%s/%s: %s" % (self.name, variation, str(error).splitlines()[:1]))
            return False
        kinds = {"pixels": numpy.float32}
        config = json.loads(config)
        if variation == "plain":
            self.plain = config
        self.cases[variation] = {
            "config": {k: v for k, v in config.items()
                       if variation == "plain" or k not in self.plain or self.plain[k] != v},
            "without": sorted(set(self.plain) - set(config)),
            "weights": self.member("model", ".safetensors", weights),
            "in": {k: self.npy("in", v, kinds.get(k, numpy.int32)) for k, v in arrays.items()},
            "out": {k: self.npy("out", v, numpy.float32) for k, v in out.items()},
        }
        return True

    def again(self, variation):
        """What transformers saves of the folder that it has read."""
        try:
            model = quiet(self.cls.from_pretrained, self.folder, dtype=torch.float32)
            shutil.rmtree(self.folder)
            quiet(model.save_pretrained, self.folder)
        except Exception:
            return
        self.tidy()
        self.keep(variation + "_again")

    def vary(self, variation, settings=None, disk=None, tensors=None, again=True):
        """Settings are those that the model is made with; disk and tensors change the files behind it."""
        try:
            quiet(self.build, changed(self.settings, settings or {}))
        except Exception as error:
            if os.environ.get("VERBOSE"):
                print("%s/%s: %s" % (self.name, variation, str(error).splitlines()[:1]))
            os.makedirs(self.folder, exist_ok=True)
            return
        if disk:
            write_config(self.folder, changed(read_config(self.folder), disk))
        if tensors:
            path = os.path.join(self.folder, "model.safetensors")
            held = safetensors.torch.load_file(path)
            try:
                tensors(held)
            except LookupError:
                return
            safetensors.torch.save_file({k: v.clone() for k, v in held.items()}, path, metadata={"format": "pt"})
        if self.keep(variation) and again and (disk or tensors):
            self.again(variation)

    def vary_keys(self):
        quiet(self.build, self.settings)
        generic = set(transformers.PreTrainedConfig().to_dict())
        keys = self.cls.config_class(**self.settings).to_dict()
        for key, value in read_config(self.folder).items():
            keys.setdefault(key, value)
        for key, value in sorted(keys.items()):
            if key in HANDING_OUT or key in NOT_SAVED or key.startswith("_"):
                continue
            if isinstance(value, bool):
                if key not in generic or self.name in ("llama", "bert", "bart", "t5", "gpt2"):
                    self.vary(key, settings={key: not value})
                    self.vary(key + "_disk", disk={key: not value})
            elif isinstance(value, float) and "eps" in key:
                self.vary(key, settings={key: value * 1e3})
            elif isinstance(value, str) and key in ACTIVATION_KEYS:
                for word in ACTIVATIONS:
                    self.vary("%s_%s" % (key, word), settings={key: word})
            if value is not None and not isinstance(value, (dict, list)):
                self.vary(key + "_null", disk={key: None})
                self.vary(key + "_absent", disk={key: ...})
            elif isinstance(value, dict) and key != "id2label" and key != "label2id":
                self.vary(key + "_null", disk={key: None})

    def vary_foreign(self):
        """Keys of other families and of other versions, numbers that are another, and values for what is null."""
        quiet(self.build, self.settings)
        config = read_config(self.folder)
        for key, value in FOREIGN.items():
            if key not in config:
                self.vary("foreign_" + key, disk={key: value}, again=False)
        self.vary("foreign_nulls", disk={key: None for key in FOREIGN if key not in config}, again=False)
        for key, value in sorted(config.items()):
            if key in NOT_SAVED or key.startswith("_") or "token_id" in key:
                continue
            if value is None:
                for number, given in enumerate(OPEN):
                    self.vary("%s_open_%d" % (key, number), disk={key: given}, again=False)
            elif isinstance(value, (int, float)) and not isinstance(value, bool):
                self.vary(key + "_other", disk={key: value + 1 if isinstance(value, int) else value * 1.5 + 0.1})

    def vary_ropes(self):
        quiet(self.build, self.settings)
        rope = read_config(self.folder).get("rope_parameters")
        if not isinstance(rope, dict):
            return
        for name, parameters in ROPES.items():
            self.vary("rope_" + name, settings={"rope_parameters": parameters})
            self.vary("rope_%s_disk" % name, disk={"rope_parameters": parameters})
            older = {self.older_type if k == "rope_type" else k: v for k, v in parameters.items() if k != "rope_theta"}
            self.vary("rope_%s_older" % name, disk={"rope_parameters": ..., "rope_scaling": older, "rope_theta": 300.0})
        for path in [k for k, v in rope.items() if isinstance(v, dict)] or [""]:
            at = "rope_parameters." + path + ("." if path else "")
            self.vary("rope_theta_in_%s" % path, disk={at + "rope_theta": 50.0})
            self.vary("rope_partial_in_%s" % path, disk={at + "partial_rotary_factor": 0.5})
            self.vary("rope_factor_in_%s" % path, disk={at + "factor": 2.0})
            self.vary("rope_linear_in_%s" % path, disk={at + "rope_type": "linear", at + "factor": 2.0})
            self.vary("rope_null_type_in_%s" % path, disk={at + "rope_type": None})
        self.vary("rope_theta_beside", disk={"rope_theta": 50.0})
        self.vary("rope_theta_alone", disk={"rope_parameters": ..., "rope_theta": 50.0})
        self.vary("rope_scaling_beside", disk={"rope_scaling": {"type": "linear", "factor": 2.0}})
        self.vary("rope_scaling_null", disk={"rope_parameters": ..., "rope_scaling": None, "rope_theta": 70.0})
        self.vary("rope_parameters_absent", disk={"rope_parameters": ...})

    def vary_tensors(self):
        heads = {"lm_head.weight": None, "embed_out.weight": None}
        table = next((k for k in self.tables() if k), None)

        def own_head(held):
            name = next((h for h in heads if h in held), "lm_head.weight")
            noise = torch.randn(held[table].shape, generator=torch.Generator().manual_seed(3)) * 0.3
            held[name] = noise.bfloat16()

        def equal_head(held):
            held["lm_head.weight"] = held[table].clone()

        def only_head(held):
            held["lm_head.weight"] = held.pop(table)

        def more_biases(held):
            for name in [k for k in held if k.endswith(".weight") and k[:-6] + "bias" not in held]:
                rows = held[name].shape[0]
                noise = torch.randn(rows, generator=torch.Generator().manual_seed(rows))
                held[name[:-6] + "bias"] = noise.bfloat16()

        if table:
            for tied in (True, False):
                word = "tied" if tied else "untied"
                self.vary("own_head_" + word, disk={"tie_word_embeddings": tied}, tensors=own_head)
                self.vary("equal_head_" + word, disk={"tie_word_embeddings": tied}, tensors=equal_head)
                self.vary("only_head_" + word, disk={"tie_word_embeddings": tied}, tensors=only_head)
            self.vary("own_head_absent", disk={"tie_word_embeddings": ...}, tensors=own_head)
        self.vary("more_biases", tensors=more_biases)
        for stack in ("encoder", "decoder"):
            for prefix in ("", "model."):
                def own_table(held, name=prefix + stack + ".embed_tokens.weight", shared=prefix + "shared.weight"):
                    noise = torch.randn(held[shared].shape, generator=torch.Generator().manual_seed(4)) * 0.3
                    held[name] = noise.bfloat16()
                self.vary("own_%s_table" % stack, tensors=own_table)
        if self.class_name.startswith(("Marian", "Pegasus", "M2M100")):
            def own_positions(held):
                for stack in ("encoder", "decoder"):
                    noise = torch.randn(16, 12, generator=torch.Generator().manual_seed(5)) * 0.3
                    held["model.%s.embed_positions.weight" % stack] = noise.bfloat16()
            self.vary("own_positions", tensors=own_positions)

    def tables(self):
        quiet(self.build, self.settings)
        held = safetensors.torch.load_file(os.path.join(self.folder, "model.safetensors"))
        for name in ("model.embed_tokens.weight", "embed_tokens.weight", "transformer.wte.weight", "shared.weight",
                     "model.shared.weight", "gpt_neox.embed_in.weight", "model.decoder.embed_tokens.weight",
                     "transformer.word_embeddings.weight"):
            if name in held:
                yield name

    def make_placed(self):
        for variation, self.places in PLACES.items():
            self.vary(variation)

    def make(self):
        placed = "pads" in self.kind or "ends" in self.kind
        if placed:
            self.make_placed()
        else:
            self.vary("plain")
            self.vary_tensors()
        if "few" not in self.kind:
            self.vary_keys()
        for variation, changes in EXTRA.get(self.name, {}).items():
            self.vary(variation, **changes)
        if "few" not in self.kind:
            self.vary_ropes()
            self.vary_foreign()
        path = os.path.join(HERE, self.name + ".zip")
        used = {"cases.json": json.dumps(self.cases, sort_keys=True, indent=0).encode()}
        used.update(self.members)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for name in sorted(used):
                entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
                archive.writestr(entry, used[name], zipfile.ZIP_DEFLATED)
        print("%s: %d variations, %d bytes" % (self.name, len(self.cases), os.path.getsize(path)))
        shutil.rmtree(self.folder)


def main():
    torch.set_num_threads(1)
    for name in sys.argv[1:] or sorted(BASES):
        Base(name).make()


if __name__ == "__main__":
    main()
