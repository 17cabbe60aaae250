#!/usr/bin/env python3
"""Writes tests/parity/fixtures/NAME: small models of odd sizes as transformers saves them, with inputs and the outputs
that transformers gives in float64 with eager attention. Needs torch and transformers; the results are committed.

    tests/parity/make_fixtures.py [NAME…]"""
import os
import shutil
import sys

import numpy
import safetensors.torch
import torch
import transformers

HERE = os.path.dirname(os.path.abspath(__file__))
TOKENS, BATCH = 11, (9, 4)
FULL = {"bert_odd", "vit_odd", "gpt2_odd", "llama_odd", "bart_odd"}  # stored as float32; the others as bfloat16, to be small
BERT = dict(vocab_size=37, hidden_size=14, num_hidden_layers=2, num_attention_heads=2, intermediate_size=11, max_position_embeddings=19)
VIT = dict(hidden_size=14, num_hidden_layers=2, num_attention_heads=2, intermediate_size=17, image_size=12, patch_size=4)
GPT2 = dict(vocab_size=37, n_embd=15, n_layer=2, n_head=3, n_positions=19)
LLAMA = dict(vocab_size=37, hidden_size=12, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=11, max_position_embeddings=19)
SQUARE = {k: v for k, v in LLAMA.items() if k != "num_key_value_heads"}
BART = dict(vocab_size=37, d_model=14, encoder_layers=2, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=7, encoder_ffn_dim=23, decoder_ffn_dim=17, max_position_embeddings=19, pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=3)
T5 = dict(vocab_size=37, d_model=15, d_kv=7, d_ff=23, num_layers=2, num_decoder_layers=1, num_heads=3, relative_attention_num_buckets=8, relative_attention_max_distance=12, decoder_start_token_id=0)
YARN = dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=16)
LONG = dict(rope_type="longrope", rope_theta=10000.0, short_factor=[1.0, 1.1, 1.3], long_factor=[1.0, 1.5, 3.0])

# name: (class, config, inputs); `text` models also run as a batch with padding.
CASES = {
    "bert_odd": ("BertModel", dict(BERT, hidden_size=35, num_attention_heads=5, hidden_act="relu", layer_norm_eps=1e-3, type_vocab_size=3), "segments"),
    "bert_one_head": ("BertModel", dict(BERT, hidden_size=9, num_attention_heads=1, hidden_act="gelu_new", pad_token_id=3), "text no_pooler"),
    "bert_classifier": ("BertForSequenceClassification", dict(BERT, hidden_size=12, num_attention_heads=3, num_labels=3), "text"),
    "bert_masked": ("BertForMaskedLM", dict(BERT, hidden_size=12, num_attention_heads=3, hidden_act="silu"), "text"),
    "roberta_odd": ("RobertaModel", dict(BERT, type_vocab_size=1, pad_token_id=4, layer_norm_eps=1e-5), "text"),
    "roberta_classifier": ("RobertaForSequenceClassification", dict(BERT, hidden_size=12, num_attention_heads=2, num_labels=4), "text"),
    "xlm_roberta": ("XLMRobertaModel", dict(BERT, hidden_size=14, num_attention_heads=2, type_vocab_size=1), "text"),
    "camembert": ("CamembertModel", dict(BERT, hidden_size=14, num_attention_heads=2, type_vocab_size=1), "text"),
    "distilbert_odd": ("DistilBertModel", dict(vocab_size=37, dim=21, n_layers=2, n_heads=3, hidden_dim=11, max_position_embeddings=19, activation="relu"), "text"),
    "distilbert_sinusoidal": ("DistilBertForMaskedLM", dict(vocab_size=37, dim=12, n_layers=1, n_heads=3, hidden_dim=23, max_position_embeddings=19, sinusoidal_pos_embds=True), "text"),
    "electra_odd": ("ElectraModel", dict(BERT, embedding_size=9, type_vocab_size=2), "segments"),
    "electra_wide": ("ElectraModel", dict(BERT, hidden_size=12, num_attention_heads=2, embedding_size=12), "text"),
    "albert_odd": ("AlbertModel", dict(BERT, embedding_size=9, num_hidden_layers=3), "segments"),
    "albert_classifier": ("AlbertForSequenceClassification", dict(BERT, hidden_size=12, num_attention_heads=2, embedding_size=12, num_labels=3), "text"),
    "mpnet_odd": ("MPNetModel", dict(BERT), "text"),
    "modernbert_odd": ("ModernBertModel", dict(BERT, hidden_size=12, num_hidden_layers=5, local_attention=6, pad_token_id=0), "text window"),
    "modernbert_biased": ("ModernBertForMaskedLM", dict(BERT, hidden_size=12, num_hidden_layers=3, local_attention=4, pad_token_id=0, norm_bias=True, attention_bias=True, mlp_bias=True, hidden_activation="silu"), "text window"),
    "gpt2_odd": ("GPT2LMHeadModel", dict(GPT2, n_inner=23, activation_function="relu"), "text"),
    "gpt2_plain": ("GPT2Model", dict(GPT2, n_layer=1, layer_norm_epsilon=1e-3), "text"),
    "gpt2_classifier": ("GPT2ForSequenceClassification", dict(GPT2, n_layer=1, num_labels=3, pad_token_id=0), "text"),
    "gpt_neox_sequential": ("GPTNeoXForCausalLM", dict({**SQUARE, 'num_hidden_layers': 1}, use_parallel_residual=False, attention_bias=False, hidden_size=24, num_attention_heads=3, tie_word_embeddings=True), "text"),
    "opt_odd": ("OPTForCausalLM", dict(vocab_size=37, hidden_size=15, num_hidden_layers=2, num_attention_heads=3, ffn_dim=23, max_position_embeddings=19), "text"),
    "opt_post": ("OPTForCausalLM", dict(vocab_size=37, hidden_size=15, num_hidden_layers=1, num_attention_heads=1, ffn_dim=23, max_position_embeddings=19, do_layer_norm_before=False, enable_bias=False, activation_function="gelu"), "text"),
    "bloom_odd": ("BloomForCausalLM", dict(vocab_size=37, hidden_size=14, n_layer=2, n_head=7, layer_norm_epsilon=1e-3), "text"),
    "mpt_odd": ("MptForCausalLM", dict(vocab_size=37, d_model=24, n_layers=1, n_heads=6, max_seq_len=19), ""),
    "falcon_7b": ("FalconForCausalLM", dict(vocab_size=37, hidden_size=12, num_hidden_layers=2, num_attention_heads=3), "text"),
    "falcon_40b": ("FalconForCausalLM", dict(vocab_size=37, hidden_size=12, num_hidden_layers=1, num_attention_heads=6, num_kv_heads=2, new_decoder_architecture=True, bias=True), "text"),
    "falcon_11b": ("FalconForCausalLM", dict(vocab_size=37, hidden_size=8, num_hidden_layers=1, num_attention_heads=4, num_kv_heads=2, new_decoder_architecture=True, num_ln_in_parallel_attn=1, ffn_hidden_size=29), "text"),
    "falcon_sequential": ("FalconForCausalLM", dict(vocab_size=37, hidden_size=12, num_hidden_layers=1, num_attention_heads=3, multi_query=False, parallel_attn=False, bias=True), "text"),
    "llama_odd": ("LlamaForCausalLM", dict(LLAMA, head_dim=6, attention_bias=True, mlp_bias=True, tie_word_embeddings=True, rms_norm_eps=1e-3), "text"),
    "llama_linear": ("LlamaForCausalLM", dict(LLAMA, num_hidden_layers=1, hidden_size=24, rope_parameters=dict(rope_type="linear", rope_theta=500.0, factor=3.0)), "text"),
    "llama_yarn": ("LlamaForCausalLM", dict(LLAMA, num_hidden_layers=1, hidden_size=16, max_position_embeddings=64, rope_parameters=YARN), "text"),
    "llama_plain": ("LlamaModel", dict(LLAMA, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, num_key_value_heads=1), "text"),
    "llama_classifier": ("LlamaForSequenceClassification", dict(LLAMA, hidden_size=16, num_hidden_layers=1, num_labels=3, pad_token_id=0), "text"),
    "mistral_odd": ("MistralForCausalLM", dict(LLAMA, head_dim=6, sliding_window=3), "text window"),
    "qwen2_windows": ("Qwen2ForCausalLM", dict(LLAMA, hidden_size=16, num_hidden_layers=3, use_sliding_window=True, sliding_window=4, max_window_layers=1), "text window"),
    "qwen3_odd": ("Qwen3ForCausalLM", dict(LLAMA, head_dim=6, attention_bias=True, tie_word_embeddings=True), "text"),
    "gemma_odd": ("GemmaForCausalLM", dict(LLAMA, head_dim=6, num_key_value_heads=1), "text"),
    "gemma2_odd": ("Gemma2ForCausalLM", dict(LLAMA, num_hidden_layers=3, head_dim=6, query_pre_attn_scalar=9, sliding_window=4, final_logit_softcapping=None, attn_logit_softcapping=2.0), "text window"),
    "gemma3_odd": ("Gemma3ForCausalLM", dict(LLAMA, num_hidden_layers=7, head_dim=6, query_pre_attn_scalar=9, sliding_window=4), "text window"),
    "olmo2_odd": ("Olmo2ForCausalLM", dict(LLAMA, hidden_size=16), "text"),
    "phi_odd": ("PhiForCausalLM", dict(LLAMA, hidden_size=16, qk_layernorm=True), "text"),
    "phi3_odd": ("Phi3ForCausalLM", dict(LLAMA, hidden_size=16, sliding_window=4, pad_token_id=0), "text window"),
    "phi3_longrope": ("Phi3ForCausalLM", dict(LLAMA, hidden_size=24, num_hidden_layers=1, pad_token_id=0, max_position_embeddings=32, original_max_position_embeddings=8, rope_parameters=LONG), ""),
    "phi3_longrope_short": ("Phi3ForCausalLM", dict(LLAMA, hidden_size=24, num_hidden_layers=1, pad_token_id=0, max_position_embeddings=32, original_max_position_embeddings=16, rope_parameters=LONG), ""),
    "starcoder2_odd": ("Starcoder2ForCausalLM", dict(LLAMA, hidden_size=16, use_bias=False, sliding_window=5), "text window"),
    "cohere_odd": ("CohereForCausalLM", dict(LLAMA, hidden_size=16, use_qk_norm=True, logit_scale=0.3), "text"),
    "stablelm_odd": ("StableLmForCausalLM", dict(LLAMA, hidden_size=32, num_hidden_layers=1, use_qkv_bias=True), "text"),
    "stablelm_parallel": ("StableLmForCausalLM", dict(LLAMA, hidden_size=16, num_hidden_layers=1, use_parallel_residual=True, partial_rotary_factor=0.5), "text"),
    "t5_odd": ("T5ForConditionalGeneration", dict(T5), "source"),
    "t5_gated": ("T5ForConditionalGeneration", dict(T5, feed_forward_proj="gated-gelu", tie_word_embeddings=False), "source"),
    "t5_encoder": ("T5EncoderModel", dict(T5), "text"),
    "bart_odd": ("BartForConditionalGeneration", dict(BART, scale_embedding=True, activation_function="relu"), "source"),
    "bart_plain": ("BartModel", dict(BART, encoder_layers=1), "source"),
    "mbart_odd": ("MBartForConditionalGeneration", dict(BART, scale_embedding=True), "source"),
    "marian_odd": ("MarianMTModel", dict(BART, vocab_size=37, decoder_vocab_size=37, activation_function="swish", scale_embedding=True), "source"),
    "pegasus_odd": ("PegasusForConditionalGeneration", dict(BART, activation_function="relu"), "source"),
    "m2m_100_odd": ("M2M100ForConditionalGeneration", dict(BART), "source"),
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


def randomize(model, halved):
    """Gains and biases as well: transformers begins with ones and zeros, which hide a wrong tensor."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if not weight.requires_grad:
                continue  # a table of sinusoids
            noise = torch.randn(weight.shape, generator=generator, dtype=weight.dtype)
            if weight.dim() < 2:
                weight.add_(0.2 * noise)
            else:
                weight.copy_(noise * 0.6 / weight.shape[-1] ** 0.5 if "embed" not in name else 0.5 * noise)
            if halved:
                weight.copy_(weight.bfloat16())


def halve(path):
    """Stores the tensors of a file as bfloat16, which they are already rounded to."""
    tensors = safetensors.torch.load_file(path)
    safetensors.torch.save_file({k: v.bfloat16() if v.dtype == torch.float32 else v for k, v in tensors.items()}, path, metadata={"format": "pt"})


def make(name):
    class_name, settings, kind = CASES[name]
    torch.manual_seed(1)
    cls = getattr(transformers, class_name)
    config = cls.config_class(**settings)
    config._attn_implementation = "eager"
    arguments = {"add_pooling_layer": False} if "no_pooler" in kind else {}
    model = cls(config, **arguments).eval()
    halved = name not in FULL
    randomize(model, halved)
    folder = os.path.join(HERE, "fixtures", name)
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    for extra in os.listdir(folder):
        if extra not in ("config.json", "model.safetensors"):
            os.remove(os.path.join(folder, extra))
    if halved:
        halve(os.path.join(folder, "model.safetensors"))
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
            if prefix and value.dim() == 3:
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
        if "window" not in kind:
            run("batch_", input_ids=torch.tensor(batch), attention_mask=torch.tensor(mask))
            return
        # padded rows that see no key become NaN in transformers and spoil the others: a sequence at a time
        with torch.no_grad():
            results = [outputs_of(model(input_ids=torch.tensor(batch[i:i + 1, :n]), **options), cross) for i, n in enumerate(BATCH)]
        for key in results[0].keys() & {"hidden", "logits"}:
            whole = numpy.zeros((len(BATCH), max(BATCH), results[0][key].shape[-1]))
            for i, n in enumerate(BATCH):
                whole[i, :n] = results[i][key][0]
            save(folder, "out.batch_" + key, whole)


def main():
    for name in sys.argv[1:] or sorted(CASES):
        try:
            make(name)
        except Exception as error:
            print("%s: %s: %s" % (name, type(error).__name__, error), file=sys.stderr)


if __name__ == "__main__":
    main()
