"""The models that make.py varies: (class, settings, words), and variations beyond those that it finds in a config by
itself. Of the words `text`, `segments`, `source` and `pixels` are inputs; `base`: of a class whose head attnc cannot
say, the rows before the head are compared; `few`: variations of tensors alone; `pads` and `ends`, beside `few`:
variations of the text alone, in places of which that token stands; `long`: a text of 280 tokens. In EXTRA `settings`
are what the model is made with, `disk` are changes of config.json after that; `...` takes a key out."""

SIZES = {"vocab_size": 23, "hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 10,
         "max_position_embeddings": 16}
BERT = dict(SIZES, pad_token_id=0)
LLAMA = dict(SIZES, num_attention_heads=4, num_key_value_heads=2, head_dim=4, bos_token_id=1, eos_token_id=2)
SQUARE = dict(LLAMA, hidden_size=16)
del SQUARE["head_dim"]
ALL_HEADS = {k: v for k, v in SQUARE.items() if k != "num_key_value_heads"}
GPT2 = {"vocab_size": 23, "n_embd": 12, "n_layer": 2, "n_head": 2, "n_positions": 16, "bos_token_id": 1,
        "eos_token_id": 2}
VIT = dict(hidden_size=12, num_hidden_layers=2, num_attention_heads=2, intermediate_size=10, image_size=8, patch_size=4)
BART = dict(vocab_size=23, d_model=12, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
            decoder_attention_heads=2, encoder_ffn_dim=10, decoder_ffn_dim=9, max_position_embeddings=16,
            pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=3)
T5 = dict(vocab_size=23, d_model=12, d_kv=5, d_ff=10, num_layers=2, num_decoder_layers=1, num_heads=2,
          relative_attention_num_buckets=8, relative_attention_max_distance=12, decoder_start_token_id=0)
FALCON = dict(vocab_size=23, hidden_size=12, num_hidden_layers=2, num_attention_heads=3, bos_token_id=1, eos_token_id=2)
LABELS = {"num_labels": 3}
LABELS_PAD = {"num_labels": 3, "pad_token_id": 0}

BASES = {
    "bert": ("BertModel", BERT, "segments"),
    "bert_classifier": ("BertForSequenceClassification", dict(BERT, **LABELS), "text"),
    "bert_masked": ("BertForMaskedLM", BERT, "text base"),
    "roberta": ("RobertaModel", dict(BERT, type_vocab_size=1, pad_token_id=1), "text"),
    "roberta_classifier": ("RobertaForSequenceClassification", dict(BERT, pad_token_id=1, **LABELS), "text"),
    "xlm_roberta": ("XLMRobertaModel", dict(BERT, type_vocab_size=1, pad_token_id=1), "text"),
    "distilbert": ("DistilBertModel", dict(vocab_size=23, dim=12, n_layers=2, n_heads=2, hidden_dim=10,
                                           max_position_embeddings=16), "text"),
    "electra": ("ElectraModel", dict(BERT, embedding_size=9), "segments"),
    "albert": ("AlbertModel", dict(BERT, embedding_size=9), "segments"),
    "mpnet": ("MPNetModel", dict(BERT, pad_token_id=1), "text"),
    "deberta": ("DebertaModel", dict(BERT, relative_attention=True, pos_att_type=["c2p", "p2c"],
                                     position_biased_input=False), "text"),
    "modernbert": ("ModernBertModel", dict(BERT, num_hidden_layers=4, local_attention=4), "text"),
    "vit": ("ViTModel", VIT, "pixels"),
    "vit_classifier": ("ViTForImageClassification", dict(VIT, **LABELS), "pixels"),
    "deit": ("DeiTModel", VIT, "pixels"),
    "dinov3_vit": ("DINOv3ViTModel", dict(VIT, hidden_size=8, num_register_tokens=2), "pixels"),
    "gpt2": ("GPT2LMHeadModel", GPT2, "text"),
    "gpt2_plain": ("GPT2Model", GPT2, "text"),
    "gpt_neox": ("GPTNeoXForCausalLM", dict(ALL_HEADS, hidden_size=32, num_attention_heads=2), "text"),
    "opt": ("OPTForCausalLM",
            dict(vocab_size=23, hidden_size=12, num_hidden_layers=2, num_attention_heads=2, ffn_dim=10,
                                   max_position_embeddings=16, word_embed_proj_dim=12), "text"),
    "bloom": ("BloomForCausalLM", dict(vocab_size=23, hidden_size=12, n_layer=2, n_head=3), "text"),
    "mpt": ("MptForCausalLM", dict(vocab_size=23, d_model=12, n_layers=2, n_heads=3, max_seq_len=16), "text"),
    "falcon": ("FalconForCausalLM", FALCON, "text"),
    "falcon_new": ("FalconForCausalLM", dict(FALCON, num_attention_heads=6, num_kv_heads=2,
                                             new_decoder_architecture=True), "text"),
    "falcon_old": ("FalconForCausalLM", dict(FALCON, multi_query=False, parallel_attn=False, bias=True, alibi=True),
                   "text"),
    "llama": ("LlamaForCausalLM", LLAMA, "text"),
    "llama_plain": ("LlamaModel", LLAMA, "text"),
    "llama_classifier": ("LlamaForSequenceClassification", dict(LLAMA, **LABELS_PAD), "text"),
    "mistral": ("MistralForCausalLM", dict(LLAMA, sliding_window=4), "text"),
    "qwen2": ("Qwen2ForCausalLM", dict(SQUARE, sliding_window=4, max_window_layers=1), "text"),
    "qwen3": ("Qwen3ForCausalLM", dict(LLAMA, sliding_window=4, max_window_layers=1), "text"),
    "gemma": ("GemmaForCausalLM", LLAMA, "text"),
    "gemma2": ("Gemma2ForCausalLM", dict(LLAMA, sliding_window=4, query_pre_attn_scalar=9), "text"),
    "gemma3": ("Gemma3ForCausalLM", dict(LLAMA, sliding_window=4, query_pre_attn_scalar=9, num_hidden_layers=7),
               "text"),
    "olmo2": ("Olmo2ForCausalLM", SQUARE, "text"),
    "phi": ("PhiForCausalLM", SQUARE, "text"),
    "phi3": ("Phi3ForCausalLM", dict(SQUARE, pad_token_id=0, sliding_window=4), "text"),
    "starcoder2": ("Starcoder2ForCausalLM", dict(SQUARE, sliding_window=4), "text"),
    "cohere": ("CohereForCausalLM", SQUARE, "text"),
    "stablelm": ("StableLmForCausalLM", dict(SQUARE, hidden_size=32), "text"),
    "t5": ("T5ForConditionalGeneration", T5, "source"),
    "t5_encoder": ("T5EncoderModel", T5, "text"),
    "t5_plain": ("T5Model", T5, "source"),
    "mt5": ("MT5ForConditionalGeneration", dict(T5, feed_forward_proj="gated-gelu"), "source"),
    "bart": ("BartForConditionalGeneration", BART, "source"),
    "bart_plain": ("BartModel", BART, "source"),
    "mbart": ("MBartForConditionalGeneration", BART, "source"),
    "marian": ("MarianMTModel", dict(BART, decoder_vocab_size=23), "source"),
    "pegasus": ("PegasusForConditionalGeneration", BART, "source"),
    "roberta_masked": ("RobertaForMaskedLM", dict(BERT, pad_token_id=1), "text base few"),
    "camembert": ("CamembertModel", dict(BERT, type_vocab_size=1, pad_token_id=1), "text few"),
    "distilbert_classifier": ("DistilBertForSequenceClassification", dict(
        vocab_size=23, dim=12, n_layers=2, n_heads=2, hidden_dim=10, max_position_embeddings=16), "text base few"),
    "electra_classifier": ("ElectraForSequenceClassification", dict(BERT, embedding_size=9), "text base few"),
    "albert_classifier": ("AlbertForSequenceClassification", dict(BERT, embedding_size=9, **LABELS), "text few"),
    "mpnet_classifier": ("MPNetForSequenceClassification", dict(BERT, pad_token_id=1, **LABELS), "text few"),
    "modernbert_masked": ("ModernBertForMaskedLM", dict(BERT, num_hidden_layers=4, local_attention=4), "text base few"),
    "deit_classifier": ("DeiTForImageClassification", dict(VIT, **LABELS), "pixels few"),
    "gpt2_classifier": ("GPT2ForSequenceClassification", dict(GPT2, **LABELS_PAD), "text few"),
    "opt_plain": ("OPTModel",
                  dict(vocab_size=23, hidden_size=12, num_hidden_layers=2, num_attention_heads=2, ffn_dim=10,
                                   max_position_embeddings=16, word_embed_proj_dim=12), "text few"),
    "bloom_plain": ("BloomModel", dict(vocab_size=23, hidden_size=12, n_layer=2, n_head=3), "text few"),
    "qwen3_plain": ("Qwen3Model", dict(LLAMA, sliding_window=4, max_window_layers=1), "text few"),
    "gemma2_plain": ("Gemma2Model", dict(LLAMA, sliding_window=4, query_pre_attn_scalar=9), "text few"),
    "mbart_plain": ("MBartModel", BART, "source few"),
    "granite": ("GraniteForCausalLM", SQUARE, "text"),
    "smollm3": ("SmolLM3ForCausalLM", dict(SQUARE, sliding_window=4, no_rope_layer_interval=2, pad_token_id=0), "text"),
    "olmo3": ("Olmo3ForCausalLM", dict(SQUARE, sliding_window=4, num_hidden_layers=4), "text"),
    "ministral": ("MinistralForCausalLM", dict(LLAMA, sliding_window=4), "text"),
    "glm4": ("Glm4ForCausalLM", dict(LLAMA, pad_token_id=0), "text"),
    "gptj": ("GPTJForCausalLM", dict(GPT2, rotary_dim=4), "text"),
    "gpt_neo": ("GPTNeoForCausalLM", dict(vocab_size=23, hidden_size=12, num_layers=2, num_heads=2, window_size=3,
                                          max_position_embeddings=16, attention_types=[[["global", "local"], 1]],
                                          bos_token_id=1, eos_token_id=2), "text"),
    "gpt_bigcode": ("GPTBigCodeForCausalLM", GPT2, "text"),
    "clip_text": ("CLIPTextModelWithProjection", dict(SIZES, projection_dim=5, pad_token_id=0, bos_token_id=1,
                                                      eos_token_id=22), "text base"),
    "roformer": ("RoFormerModel", dict(BERT, embedding_size=9), "segments"),
    "umt5": ("UMT5ForConditionalGeneration", T5, "source"),
    "arcee": ("ArceeForCausalLM", LLAMA, "text"),
    "nemotron": ("NemotronForCausalLM", LLAMA, "text"),
    "seed_oss": ("SeedOssForCausalLM", LLAMA, "text"),
    "ernie4_5": ("Ernie4_5ForCausalLM", LLAMA, "text"),
    "hunyuan_v1_dense": ("HunYuanDenseV1ForCausalLM", LLAMA, "text"),
    "hunyuan_v1_moe": ("HunYuanMoEV1ForCausalLM", dict(LLAMA, num_experts=5, moe_topk=2), "text"),
    "bitnet": ("BitNetForCausalLM", SQUARE, "text"),
    "helium": ("HeliumForCausalLM", dict(SQUARE, head_dim=4, pad_token_id=0), "text"),
    "olmo": ("OlmoForCausalLM", SQUARE, "text"),
    "cohere2": ("Cohere2ForCausalLM", dict(SQUARE, sliding_window=4, sliding_window_pattern=2), "text"),
    "exaone4": ("Exaone4ForCausalLM", dict(SQUARE, sliding_window=4, sliding_window_pattern=2), "text"),
    "glm": ("GlmForCausalLM", dict(LLAMA, pad_token_id=0), "text"),
    "biogpt": ("BioGptForCausalLM", BERT, "text"),
    "m2m_100": ("M2M100ForConditionalGeneration", BART, "source"),
    "llama_pads": ("LlamaForSequenceClassification", dict(LLAMA, num_labels=3, pad_token_id=2), "text few pads"),
    "gpt2_pads": ("GPT2ForSequenceClassification", dict(GPT2, **LABELS_PAD), "text few pads"),
    "opt_pads": ("OPTForSequenceClassification", dict(
        vocab_size=23, hidden_size=12, num_hidden_layers=2, num_attention_heads=2, ffn_dim=10,
        max_position_embeddings=16, word_embed_proj_dim=12, num_labels=3), "text few pads"),
    "bloom_pads": ("BloomForSequenceClassification", dict(
        vocab_size=23, hidden_size=12, n_layer=2, n_head=3, pad_token_id=4, num_labels=3), "text few pads"),
    "roberta_pads": ("RobertaModel", dict(BERT, type_vocab_size=2, pad_token_id=1), "segments few pads"),
    "xlm_roberta_pads": ("XLMRobertaModel", dict(BERT, type_vocab_size=1, pad_token_id=4), "text few pads"),
    "camembert_pads": ("CamembertModel", dict(BERT, type_vocab_size=1, pad_token_id=1), "text few pads"),
    "mpnet_pads": ("MPNetModel", dict(BERT, pad_token_id=1), "text few pads"),
    "esm_pads": ("EsmModel", dict(BERT, position_embedding_type="absolute", token_dropout=False, mask_token_id=22,
                                  pad_token_id=1), "text few pads"),
    "m2m_100_pads": ("M2M100ForConditionalGeneration", BART, "source few pads"),
    "falcon_long": ("FalconForCausalLM", dict(FALCON, num_attention_heads=6, multi_query=False, parallel_attn=False,
                                              bias=True, alibi=True), "text few pads long"),
    "bart_ends": ("BartForSequenceClassification", dict(BART, **LABELS), "source few ends"),
    "t5_ends": ("T5ForSequenceClassification", dict(T5, **LABELS), "source few ends"),
}

# Eager attention of transformers 5.23 adds Falcon's ALiBi twice.
FUSED_ALIBI = ("falcon",)

# Keys that a family may not know, of other families and of older versions.
FOREIGN = {
    "partial_rotary_factor": 0.5, "rotary_pct": 0.5, "rotary_emb_base": 50, "head_dim": 4, "sliding_window": 3,
    "attention_bias": True, "mlp_bias": True, "use_bias": True, "attn_logit_softcapping": 2.0,
    "final_logit_softcapping": 2.0, "query_pre_attn_scalar": 5, "hidden_act": "relu", "hidden_activation": "relu",
    "activation_function": "relu", "activation": "relu", "layer_norm_eps": 0.1, "rms_norm_eps": 0.1,
    "layer_norm_epsilon": 0.1, "norm_epsilon": 0.1, "norm_eps": 0.1, "qk_layernorm": True, "use_qk_norm": True,
    "logit_scale": 0.3, "scale_embedding": True, "embedding_multiplier": 2.0, "normalize_before": True,
    "normalize_embedding": True, "add_final_layer_norm": True, "add_bias_logits": True,
    "static_position_embeddings": True, "position_embedding_type": "relative_key", "alibi": True,
    "use_parallel_residual": True, "parallel_attn": True, "num_key_value_heads": 1, "max_window_layers": 1,
    "use_sliding_window": True, "rope_local_base_freq": 50.0, "sliding_window_pattern": 2,
    "scale_attn_weights": False, "do_layer_norm_before": False, "clip_qkv": 1.0, "qkv_bias": True, "bias": True,
    "use_qkv_bias": True, "use_bidirectional_attention": True, "embedding_size": 9, "n_inner": 20,
    "pooler_act": "relu", "summary_activation": "relu", "tie_encoder_decoder": True, "pruned_heads": {},
    "global_attn_every_n_layers": 2, "global_rope_theta": 50.0, "local_rope_theta": 50.0, "rotary_dim": 2,
    "decoder_vocab_size": 23, "scale_attn_by_inverse_layer_idx": True, "max_position_embeddings": 16,
    "n_positions": 16, "no_bias": False, "softmax_scale": 0.3, "attention_multiplier": 0.3, "logits_scaling": 2.0,
    "residual_multiplier": 0.5, "scale_decoder_outputs": False, "add_pooling_layer": False,
}

# Families with rope_parameters of each layer type, which never read an older `type`.
NESTED_ROPES = ("gemma3", "modernbert", "olmo3")

# What stands in for a null.
OPEN = (3, 0.5, True, False)

# rope_parameters as settings, and as rope_scaling of older configs.
ROPES = {
    "default": {"rope_type": "default", "rope_theta": 300.0},
    "linear": {"rope_type": "linear", "rope_theta": 300.0, "factor": 2.0},
    "dynamic": {"rope_type": "dynamic", "rope_theta": 300.0, "factor": 2.0},
    "yarn": {"rope_type": "yarn", "rope_theta": 300.0, "factor": 4.0, "original_max_position_embeddings": 8},
    "yarn_bare": {"rope_type": "yarn", "rope_theta": 300.0, "factor": 2.0},
    "llama3": {"rope_type": "llama3", "rope_theta": 300.0, "factor": 4.0, "low_freq_factor": 1.0,
               "high_freq_factor": 4.0, "original_max_position_embeddings": 8},
    "partial": {"rope_type": "default", "rope_theta": 300.0, "partial_rotary_factor": 0.5},
    "linear_partial": {"rope_type": "linear", "rope_theta": 300.0, "factor": 2.0, "partial_rotary_factor": 0.5},
}

HUNYUAN = {
    "alpha": {"disk": {"rope_parameters": {"rope_type": "dynamic", "rope_theta": 300.0, "alpha": 4.0, "factor": 1.0}}},
    "alpha_of_old": {"disk": {"rope_parameters": ..., "rope_theta": 300.0, "rope_scaling": {
        "type": "dynamic", "alpha": 1000.0, "factor": 1.0, "beta_fast": 32, "beta_slow": 1, "mscale": 1.0,
        "mscale_all_dim": 1.0}}},
    "alpha_beside": {"disk": {"rope_parameters": {"rope_type": "linear", "rope_theta": 300.0, "alpha": 4.0,
                                                  "factor": 2.0}}},
    "wide_heads": {"settings": {"head_dim": 10}},
    "one_key": {"settings": {"num_key_value_heads": 1}},
}
EXTRA = {
    "hunyuan_v1_dense": HUNYUAN,
    "hunyuan_v1_moe": {
        **HUNYUAN,
        "tops": {"disk": {"moe_topk": [3, 1]}}, "longer_tops": {"disk": {"moe_topk": [1, 4, 2]}},
        "all_experts": {"disk": {"moe_topk": 5}}, "one_expert": {"settings": {"num_experts": 1, "moe_topk": 1}},
    },
    "gemma": {"hidden_act_of_old": {"disk": {"hidden_act": "gelu"}}},
    "gemma2": {"hidden_activation_of_old": {"disk": {"hidden_activation": "gelu"}}},
    "mpt": {
        "alibi_bias_max": {"disk": {"attn_config.alibi_bias_max": 4}},
        "softmax_scale": {"disk": {"attn_config.softmax_scale": 0.3}},
        "no_alibi": {"disk": {"attn_config.alibi": False}},
        "qk_ln": {"disk": {"attn_config.qk_ln": True}},
        "clip_qkv": {"disk": {"attn_config.clip_qkv": 0.5}},
        "prefix_lm": {"disk": {"attn_config.prefix_lm": True}},
    },
}
