#!/usr/bin/env python3
"""Writes tests/parity/sentences/NAME: small models with the modules that sentence-transformers puts behind them, as it
saves them now and as its older versions did, with inputs and the outputs of its own modules in float64. Needs torch,
transformers and sentence-transformers; the results are committed.

    tests/parity/make_sentences.py [NAME…]"""
import json
import os
import shutil
import sys

import torch
import transformers
from sentence_transformers.cross_encoder.modules import LogitScore
from sentence_transformers.sentence_transformer.modules import Dense, Dropout, Normalize, Pooling

import cases
import make_fixtures as fixtures

HERE = os.path.dirname(os.path.abspath(__file__))
BERT, LLAMA = cases.BERT, cases.LLAMA
OLD = "sentence_transformers.models.%s"
MODES = {"cls": "pooling_mode_cls_token", "mean": "pooling_mode_mean_tokens", "max": "pooling_mode_max_tokens",
         "mean_sqrt_len_tokens": "pooling_mode_mean_sqrt_len_tokens",
         "weightedmean": "pooling_mode_weightedmean_tokens"}

# name: (class, config, modules behind it, what is special)
#   old            the older spellings, and max_seq_length 12 with do_lower_case
#   FOLDER/        where the model itself stands
#   length N       model_max_length in tokenizer_config.json, where newer versions keep it
CASES = {
    "mean_odd": ("BertModel", dict(BERT, hidden_size=35, num_attention_heads=5), ["mean", Normalize()], "old"),
    "cls_odd": ("RobertaModel", dict(BERT, hidden_size=21, num_attention_heads=3, type_vocab_size=1, pad_token_id=4),
                ["cls", Dropout(0.1), Normalize()], "length 12"),
    "max_odd": ("DistilBertModel", dict(vocab_size=37, dim=21, n_layers=2, n_heads=3, hidden_dim=11,
                                        max_position_embeddings=19), ["max"], "old 0_Transformer/"),
    "last_odd": ("Qwen3ForCausalLM", dict(LLAMA, head_dim=6, tie_word_embeddings=True), ["lasttoken", Normalize()], ""),
    "weighted_odd": ("GPT2Model", dict(cases.GPT2), ["weightedmean"], "old"),
    "root_odd": ("BertModel", dict(BERT, hidden_size=15, num_attention_heads=3), ["mean_sqrt_len_tokens"], ""),
    "score_odd": ("Qwen3ForCausalLM", dict(LLAMA, head_dim=6, tie_word_embeddings=True), [LogitScore(9, 5)], ""),
    "score_one": ("LlamaForCausalLM", dict(LLAMA, hidden_size=16, tie_word_embeddings=False), [LogitScore(30)], ""),
    "masked_mean": ("BertForMaskedLM", dict(BERT, hidden_size=14), ["mean"], ""),
    "encoder_mean": ("T5ForConditionalGeneration", dict(cases.T5), ["mean", Normalize()], "old"),
    "tanh_odd": ("BertModel", dict(BERT, hidden_size=15, num_attention_heads=3), ["mean", Dense(15, 15)], ""),
    "linear_odd": ("BertModel", dict(BERT, hidden_size=15, num_attention_heads=3),
                   ["cls", Dense(15, 9, activation_function=torch.nn.Identity())], "old"),
    "plain_odd": ("MPNetModel", dict(BERT), ["max", Dense(14, 17, bias=False, activation_function=None)], "length 16"),
    "chain_odd": ("Gemma3TextModel", dict(LLAMA, num_hidden_layers=7, head_dim=6, sliding_window=10,
                                          use_bidirectional_attention=True),
                  ["mean", Dense(12, 33, bias=False, activation_function=torch.nn.Identity()),
                   Dense(33, 12, bias=False, activation_function=torch.nn.Identity()), Normalize()], ""),
    "functions_odd": ("BertModel", dict(BERT, hidden_size=14),
                      ["cls", Dense(14, 23, activation_function=torch.nn.GELU()),
                       Dense(23, 5, bias=False, activation_function=torch.nn.Softplus()), Dense(5, 19), Normalize()],
                      ""),
}


def write_json(path, value):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=2)
        file.write("\n")


def save_module(module, folder, old):
    os.makedirs(folder)
    if old and isinstance(module, Pooling):
        config = {key: mode == module.pooling_mode for mode, key in MODES.items()}
        write_json(os.path.join(folder, "config.json"),
                   dict(config, word_embedding_dimension=module.embedding_dimension))
    elif not old or not isinstance(module, Normalize):  # whose folder older versions left empty
        module.save(folder)
    if not os.listdir(folder):
        os.rmdir(folder)
    if old and isinstance(module, Dense):
        path = os.path.join(folder, "config.json")
        with open(path, encoding="utf-8") as file:
            config = json.load(file)
        write_json(path, {k: v for k, v in config.items() if not k.startswith("module_")})


def save_model(name, folder, kind):
    """The model read back from the file that is committed, without its class's own head."""
    class_name, settings = CASES[name][:2]
    torch.manual_seed(1)
    cls = getattr(transformers, class_name)
    model = cls(cls.config_class(**settings)).eval()
    begin = {key: weight.detach().clone() for key, weight in model.named_parameters()}
    fixtures.randomize(model, begin, True, 1.0, 7)
    place = os.path.join(folder, *[w.rstrip("/") for w in kind if w.endswith("/")])
    model.save_pretrained(place)
    if os.path.exists(os.path.join(place, "generation_config.json")):
        os.remove(os.path.join(place, "generation_config.json"))
    fixtures.halve(os.path.join(place, "model.safetensors"))
    base = transformers.T5EncoderModel if class_name.startswith("T5") else transformers.AutoModel
    if isinstance(CASES[name][2][0], LogitScore):
        base = transformers.AutoModelForCausalLM
    return base.from_pretrained(place, dtype=torch.float32, attn_implementation="eager").eval().double(), place


def modules_of(name, width):
    modules = [Pooling(width, m) if isinstance(m, str) else m for m in CASES[name][2]]
    generator = torch.Generator().manual_seed(11)
    for module in modules:
        for weight in module.parameters():
            weight.data = torch.randn(weight.shape, generator=generator) / weight.shape[-1] ** 0.5
    return modules


def make(name):
    kind = CASES[name][3].split()
    old, folder = "old" in kind, os.path.join(HERE, "sentences", name)
    shutil.rmtree(folder, ignore_errors=True)
    model, place = save_model(name, folder, kind)
    modules = modules_of(name, model.config.hidden_size)
    full = "sentence_transformers.base.modules.transformer.Transformer"
    listed = [("", OLD % "Transformer" if old else full)]
    listed[0] = ("".join(w.rstrip("/") for w in kind if w.endswith("/")), listed[0][1])
    for i, module in enumerate(modules, 1):
        path, type_of = "%d_%s" % (i, type(module).__name__), type(module)
        save_module(module, os.path.join(folder, path), old)
        listed.append((path, OLD % type_of.__name__ if old else "%s.%s" % (type_of.__module__, type_of.__name__)))
    write_json(os.path.join(folder, "modules.json"),
               [dict(idx=i, name=str(i), path=path, type=type_of) for i, (path, type_of) in enumerate(listed)])
    bert = os.path.join(place, "sentence_bert_config.json")
    if isinstance(modules[0], LogitScore):
        way = dict(method="forward", method_output_name="logits")
        write_json(bert, dict(transformer_task="text-generation", module_output_name="causal_logits",
                              modality_config=dict(text=way, message=dict(way, format="flat"))))
        write_json(os.path.join(folder, "config_sentence_transformers.json"),
                   dict(activation_fn="torch.nn.modules.activation.Sigmoid", default_prompt_name=None,
                        model_type="CrossEncoder", prompts={}))
    elif old:
        write_json(bert, dict(max_seq_length=12, do_lower_case=True))
    else:
        write_json(bert, dict(transformer_task="feature-extraction", module_output_name="token_embeddings",
                              modality_config=dict(text=dict(method="forward",
                                                             method_output_name="last_hidden_state"))))
        write_json(os.path.join(folder, "config_sentence_transformers.json"),
                   dict(default_prompt_name=None, model_type="SentenceTransformer", similarity_fn_name="cosine",
                        prompts=dict(document="", query="")))
    if "length" in kind:
        write_json(os.path.join(place, "tokenizer_config.json"),
                   dict(model_max_length=int(kind[kind.index("length") + 1])))
    answer(name, folder, model, [m.double().eval() for m in modules])


def scored(module, logits, mask):
    """The logits of the module's tokens in the last row that is no padding, whose difference is its score."""
    last = logits[torch.arange(len(logits)), mask.sum(1) - 1]
    tokens = [t for t in (module.true_token_id, module.false_token_id) if t is not None]
    score = module(dict(causal_logits=last[:, None]))["scores"][:, 0]
    values = last[:, tokens]
    assert torch.equal(score, values[:, 0] - values[:, 1] if len(tokens) > 1 else values[:, 0])
    return values


def answer(name, folder, model, modules):
    vocab = model.config.vocab_size

    def run(prefix, **inputs):
        with torch.no_grad():
            if isinstance(modules[0], LogitScore):
                values = scored(modules[0], model(**inputs).logits, inputs["attention_mask"])
                fixtures.save(folder, "out.%slogits" % prefix, values if prefix else values[0])
                return
            features = dict(token_embeddings=model(**inputs).last_hidden_state, **inputs)
            for module in modules:
                features = module(features)
        value = features["sentence_embedding"]
        fixtures.save(folder, "out.%spooled" % prefix, value if prefix else value[0])

    tokens = fixtures.draw(name, fixtures.TOKENS, vocab, model.config)
    fixtures.save(folder, "in.tokens", tokens, True)
    run("", input_ids=torch.tensor(tokens)[None], attention_mask=torch.ones(1, fixtures.TOKENS, dtype=torch.int64))
    batch, mask = fixtures.padded(name, vocab, model.config)
    fixtures.save(folder, "in.batch_tokens", batch, True)
    fixtures.save(folder, "in.batch_attention_mask", mask, True)
    run("batch_", input_ids=torch.tensor(batch), attention_mask=torch.tensor(mask))


def main():
    for name in sys.argv[1:] or sorted(CASES):
        make(name)
        print(name)


if __name__ == "__main__":
    main()
