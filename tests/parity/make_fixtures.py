#!/usr/bin/env python3
"""Writes tests/parity/fixtures/NAME: small models of odd sizes as transformers saves them, with inputs and the outputs
that transformers gives in float64 with eager attention to the model read back from that folder. Needs torch and
transformers; the results are committed. `out.greedy` is tokens[0:9], or the decoder's first token, and the NEW tokens
that a plain argmax over the logits adds; no end of sequence stops it.

    tests/parity/make_fixtures.py [NAME…]"""
import os
import shutil
import sys

import numpy
import safetensors.torch
import torch
import transformers

HERE = os.path.dirname(os.path.abspath(__file__))
TOKENS, TARGET, BATCH, BATCH_TARGET = 11, 7, (9, 4), 6
PROMPT, NEW = 9, 10
CLEAR, DISTINCT, RUN = 1e-3, 4, 4  # of greedy text: least lead of a choice, least different tokens, no such run of one
STRENGTHS, SEEDS = (0.6, 1.5, 3.0), 200  # of weights; with weak layers a tied head repeats the last token for ever
FULL = {"bert_odd", "vit_odd", "gpt2_odd", "llama_odd",
        "bart_odd"}  # stored as float32; the others as bfloat16, to be small
BERT = dict(vocab_size=37, hidden_size=14, num_hidden_layers=2, num_attention_heads=2, intermediate_size=11,
            max_position_embeddings=19)
AST = dict(hidden_size=21, num_hidden_layers=2, num_attention_heads=3, intermediate_size=17, patch_size=4,
           frequency_stride=3, time_stride=3, num_mel_bins=12, max_length=15, layer_norm_eps=1e-3)
VIT = dict(hidden_size=14, num_hidden_layers=2, num_attention_heads=2, intermediate_size=17, image_size=12,
           patch_size=4)
DINO = dict(hidden_size=14, num_hidden_layers=2, num_attention_heads=2, mlp_ratio=2, image_size=12, patch_size=4)
GPT2 = dict(vocab_size=37, n_embd=15, n_layer=2, n_head=3, n_positions=19)
LLAMA = dict(vocab_size=37, hidden_size=12, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             intermediate_size=11, max_position_embeddings=19)
SQUARE = {k: v for k, v in LLAMA.items() if k != "num_key_value_heads"}
DEEPSEEK = dict(LLAMA, num_key_value_heads=4, num_hidden_layers=3, moe_intermediate_size=5, kv_lora_rank=13,
                q_lora_rank=9, qk_nope_head_dim=6, qk_rope_head_dim=4, v_head_dim=5, first_k_dense_replace=1)
DBRX = dict(vocab_size=37, d_model=24, n_heads=4, n_layers=2, max_seq_len=19)
BART = dict(vocab_size=37, d_model=14, encoder_layers=2, decoder_layers=1, encoder_attention_heads=2,
            decoder_attention_heads=7, encoder_ffn_dim=23, decoder_ffn_dim=17, max_position_embeddings=19,
            pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=3)
WHISPER = dict(vocab_size=37, num_mel_bins=7, d_model=14, encoder_layers=2, decoder_layers=1,
               encoder_attention_heads=2, decoder_attention_heads=7, encoder_ffn_dim=23, decoder_ffn_dim=17,
               max_source_positions=9, max_target_positions=19, pad_token_id=1, bos_token_id=0, eos_token_id=2,
               decoder_start_token_id=3, begin_suppress_tokens=None)
T5GEMMA = dict(vocab_size=37, hidden_size=12, intermediate_size=11, num_hidden_layers=2, num_attention_heads=4,
               num_key_value_heads=2, head_dim=6, max_position_embeddings=19, query_pre_attn_scalar=9,
               sliding_window=4, bos_token_id=3)
T5 = dict(vocab_size=37, d_model=15, d_kv=7, d_ff=23, num_layers=2, num_decoder_layers=1, num_heads=3,
          relative_attention_num_buckets=8, relative_attention_max_distance=12, decoder_start_token_id=0)
CLIP = dict(vocab_size=37, hidden_size=14, num_hidden_layers=2, num_attention_heads=2, intermediate_size=11,
            max_position_embeddings=19, projection_dim=5, pad_token_id=1, bos_token_id=0, eos_token_id=36)
SIGLIP_TEXT = dict(vocab_size=37, hidden_size=14, num_hidden_layers=2, num_attention_heads=2, intermediate_size=11,
                   max_position_embeddings=19, pad_token_id=1, bos_token_id=35, eos_token_id=36)
CLIP_VISION = dict(VIT, image_size=20, projection_dim=9)
CLIP_PARTS = dict(text_config=dict(CLIP), vision_config=CLIP_VISION, projection_dim=6)
GEMMA3 = dict(text_config=dict(LLAMA, num_hidden_layers=3, head_dim=6, query_pre_attn_scalar=9, sliding_window=4,
                               layer_types=["sliding_attention", "full_attention", "sliding_attention"]),
              vision_config=dict(hidden_size=8, intermediate_size=5, num_hidden_layers=1, num_attention_heads=2,
                                 image_size=8, patch_size=4, vision_use_head=False),
              mm_tokens_per_image=4)
YARN = dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=16)
LONG = dict(rope_type="longrope", rope_theta=10000.0, short_factor=[1.0, 1.1, 1.3], long_factor=[1.0, 1.5, 3.0])

# Widths that no vector length divides, and longer texts.
ODD = dict(vocab_size=61, hidden_size=35, num_hidden_layers=2, num_attention_heads=5, num_key_value_heads=1,
           intermediate_size=23, max_position_embeddings=33)
ODD_SQUARE = {k: v for k, v in ODD.items() if k != "num_key_value_heads"}
ODD_BART = dict(BART, vocab_size=61, d_model=35, encoder_layers=1, decoder_layers=2, encoder_attention_heads=5,
                decoder_attention_heads=5, max_position_embeddings=33)
EVEN_BART = dict(ODD_BART, d_model=42, encoder_attention_heads=6, decoder_attention_heads=6)
ODD_T5 = dict(T5, vocab_size=61, d_model=35, num_layers=1, num_decoder_layers=2, num_heads=5)

# name: (class, config, inputs); `text` and `source` models also run as a batch with padding. `sdpa` instead of eager
# attention, which shows no attention weights: transformers 5.23 adds ALiBi twice to Falcon's eager scores. `single`: in
# float32, as XGLM compares its scores with a bound that no float32 holds where they are float64.
CASES = {
    "bert_odd": ("BertModel",
                 dict(BERT, hidden_size=35, num_attention_heads=5, hidden_act="relu", layer_norm_eps=1e-3,
                      type_vocab_size=3), "segments"),
    "bert_one_head": ("BertModel",
                      dict(BERT, hidden_size=9, num_attention_heads=1, hidden_act="gelu_new", pad_token_id=3),
                      "text no_pooler"),
    "bert_classifier": ("BertForSequenceClassification",
                        dict(BERT, hidden_size=12, num_attention_heads=3, num_labels=3), "text"),
    "bert_masked": ("BertForMaskedLM", dict(BERT, hidden_size=12, num_attention_heads=3, hidden_act="silu"), "text"),
    "bert_choice": ("BertForMultipleChoice", dict(BERT, num_hidden_layers=1), "segments choice"),
    "bert_pretrained": ("BertForPreTraining",
                        dict(BERT, hidden_size=12, num_attention_heads=3, num_hidden_layers=1), "text"),
    "bert_next": ("BertForNextSentencePrediction", dict(BERT, num_hidden_layers=1), "segments"),
    "roberta_choice": ("RobertaForMultipleChoice", dict(BERT, num_hidden_layers=1), "text choice"),
    "distilbert_choice": ("DistilBertForMultipleChoice",
                          dict(vocab_size=37, dim=12, n_layers=1, n_heads=3, hidden_dim=11,
                               max_position_embeddings=19), "text choice"),
    "electra_choice": ("ElectraForMultipleChoice", dict(BERT, num_hidden_layers=1, embedding_size=9), "text choice"),
    "albert_choice": ("AlbertForMultipleChoice", dict(BERT, num_hidden_layers=1, embedding_size=9), "text choice"),
    "albert_pretrained": ("AlbertForPreTraining", dict(BERT, num_hidden_layers=1, embedding_size=9), "text"),
    "mpnet_choice": ("MPNetForMultipleChoice", dict(BERT, num_hidden_layers=1), "text choice"),
    "deberta_v2_choice": ("DebertaV2ForMultipleChoice",
                          dict(BERT, num_hidden_layers=1, pooler_hidden_act="silu"), "text choice"),
    "modernbert_choice": ("ModernBertForMultipleChoice",
                          dict(BERT, hidden_size=12, num_hidden_layers=1, pad_token_id=0), "choice"),
    "bert_untied": ("BertForMaskedLM",
                    dict(BERT, hidden_size=12, num_attention_heads=2, num_hidden_layers=1, tie_word_embeddings=False),
                    "text"),
    "bert_tokens": ("BertForTokenClassification",
                    dict(BERT, hidden_size=12, num_attention_heads=3, num_labels=5), "text"),
    "bert_answers": ("BertForQuestionAnswering", dict(BERT, hidden_size=12, num_attention_heads=3), "text"),
    "bert_untied": ("BertForMaskedLM",
                    dict(BERT, hidden_size=12, num_attention_heads=3, tie_word_embeddings=False), "text"),
    "bert_decoder_odd": ("BertLMHeadModel",
                         dict(BERT, hidden_size=12, num_attention_heads=3, type_vocab_size=3, is_decoder=True,
                              hidden_act="relu", bos_token_id=5, eos_token_id=6), "text greedy"),
    "bert_decoder_hidden": ("BertModel", dict(BERT, is_decoder=True), "segments text"),
    "deberta_odd": ("DebertaModel",
                    dict(BERT, hidden_size=15, num_attention_heads=3, type_vocab_size=0, position_biased_input=False,
                         relative_attention=True, pos_att_type="c2p|p2c"), "text"),
    "deberta_masked": ("DebertaForMaskedLM",
                       dict(BERT, hidden_size=12, num_attention_heads=2, type_vocab_size=0, relative_attention=True,
                            max_relative_positions=5, pos_att_type=["c2p", "p2c"]), "text"),
    "deberta_classifier": ("DebertaForSequenceClassification",
                           dict(BERT, hidden_size=12, num_attention_heads=3, num_hidden_layers=1, type_vocab_size=3,
                                num_labels=3, relative_attention=True, pos_att_type=["p2c"],
                                pooler_hidden_act="relu"), "segments"),
    "deberta_answers": ("DebertaForQuestionAnswering",
                        dict(BERT, hidden_size=12, num_attention_heads=3, num_hidden_layers=1,
                             relative_attention=True, pos_att_type=["c2p"]), "text"),
    "deberta_v2_span": ("DebertaV2Model",
                        dict(BERT, hidden_size=12, num_attention_heads=3, num_hidden_layers=1, type_vocab_size=0,
                             relative_attention=True, position_buckets=4, max_relative_positions=9,
                             pos_att_type=["c2p", "p2c"]), "text"),
    "deberta_v2_odd": ("DebertaV2Model",
                       dict(BERT, hidden_size=15, num_attention_heads=3, max_position_embeddings=24,
                            type_vocab_size=0, position_biased_input=False, relative_attention=True,
                            position_buckets=8, share_att_key=True, norm_rel_ebd="layer_norm",
                            pos_att_type="p2c|c2p"), "text"),
    "deberta_v2_masked": ("DebertaV2ForMaskedLM",
                          dict(BERT, hidden_size=12, num_attention_heads=3, max_position_embeddings=24,
                               type_vocab_size=0, position_biased_input=False, relative_attention=True,
                               position_buckets=8, share_att_key=True, norm_rel_ebd="layer_norm",
                               pos_att_type=["p2c", "c2p"]), "text"),
    "deberta_v2_classifier": ("DebertaV2ForSequenceClassification",
                              dict(BERT, hidden_size=12, num_attention_heads=2, type_vocab_size=3, num_labels=3,
                                   relative_attention=True, share_att_key=False,
                                   pos_att_type="c2p|p2c"), "segments"),
    "deberta_v2_query": ("DebertaV2Model",
                         dict(BERT, hidden_size=12, num_attention_heads=3, type_vocab_size=0, relative_attention=True,
                              position_buckets=4, pos_att_type=["c2p"]), "text"),
    "deberta_v2_tokens": ("DebertaV2ForTokenClassification",
                          dict(BERT, hidden_size=12, num_attention_heads=2, type_vocab_size=0, num_labels=5,
                               relative_attention=True, pos_att_type=["p2c"]), "text"),
    "deberta_v2_plain": ("DebertaV2ForQuestionAnswering",
                         dict(BERT, hidden_size=12, num_attention_heads=3, relative_attention=True), "text"),
    "deberta_v2_absolute": ("DebertaV2ForMaskedLM",
                            dict(BERT, hidden_size=12, num_attention_heads=3, type_vocab_size=0, legacy=False,
                                 pos_att_type=["p2c", "c2p"]), "text"),
    "roberta_odd": ("RobertaModel", dict(BERT, type_vocab_size=1, pad_token_id=4, layer_norm_eps=1e-5), "text"),
    "roberta_classifier": ("RobertaForSequenceClassification",
                           dict(BERT, hidden_size=12, num_attention_heads=2, num_labels=4), "text"),
    "xlm_roberta": ("XLMRobertaModel", dict(BERT, hidden_size=14, num_attention_heads=2, type_vocab_size=1), "text"),
    "camembert": ("CamembertModel", dict(BERT, hidden_size=14, num_attention_heads=2, type_vocab_size=1), "text"),
    "distilbert_odd": ("DistilBertModel",
                       dict(vocab_size=37, dim=21, n_layers=2, n_heads=3, hidden_dim=11, max_position_embeddings=19,
                            activation="relu"), "text"),
    "distilbert_sinusoidal": ("DistilBertForMaskedLM",
                              dict(vocab_size=37, dim=12, n_layers=1, n_heads=3, hidden_dim=23,
                                   max_position_embeddings=19, sinusoidal_pos_embds=True), "text"),
    "distilbert_classifier": ("DistilBertForSequenceClassification",
                              dict(vocab_size=37, dim=12, n_layers=1, n_heads=3, hidden_dim=11, num_labels=3,
                                   max_position_embeddings=19), "text"),
    "distilbert_answers": ("DistilBertForQuestionAnswering",
                           dict(vocab_size=37, dim=12, n_layers=1, n_heads=3, hidden_dim=11,
                                max_position_embeddings=19), "text"),
    "electra_odd": ("ElectraModel", dict(BERT, embedding_size=9, type_vocab_size=2), "segments"),
    "electra_wide": ("ElectraModel", dict(BERT, hidden_size=12, num_attention_heads=2, embedding_size=12), "text"),
    "electra_classifier": ("ElectraForSequenceClassification",
                           dict(BERT, hidden_size=12, num_attention_heads=2, embedding_size=9, num_labels=4), "text"),
    "electra_tokens": ("ElectraForTokenClassification",
                       dict(BERT, hidden_size=12, num_attention_heads=2, embedding_size=9, num_labels=3), "text"),
    "albert_odd": ("AlbertModel", dict(BERT, embedding_size=9, num_hidden_layers=3), "segments"),
    "albert_classifier": ("AlbertForSequenceClassification",
                          dict(BERT, hidden_size=12, num_attention_heads=2, embedding_size=12, num_labels=3), "text"),
    "mpnet_odd": ("MPNetModel", dict(BERT), "text"),
    "mpnet_tokens": ("MPNetForTokenClassification", dict(BERT, num_labels=3), "text"),
    "nomic_bert_odd": ("NomicBertModel", dict(BERT, hidden_size=12, num_attention_heads=3), "text"),
    "nomic_bert_masked": ("NomicBertForMaskedLM",
                          dict(BERT, hidden_size=12, num_attention_heads=2, head_dim=4, hidden_act="gelu",
                               type_vocab_size=1, pad_token_id=3), "text"),
    "nomic_bert_classifier": ("NomicBertForSequenceClassification",
                              dict(BERT, hidden_size=12, num_attention_heads=3, num_labels=3), "text"),
    "jina_embeddings_v3_odd": ("JinaEmbeddingsV3Model",
                               dict(BERT, hidden_size=12, num_attention_heads=3, pad_token_id=1), "text"),
    "jina_embeddings_v3_classifier": ("JinaEmbeddingsV3ForSequenceClassification",
                                      dict(BERT, hidden_size=12, num_attention_heads=3, type_vocab_size=1,
                                           num_labels=3), "text"),
    "jina_embeddings_v3_masked": ("JinaEmbeddingsV3ForMaskedLM", dict(BERT, hidden_size=12, num_attention_heads=3),
                                  "text"),
    "esm_odd": ("EsmModel", dict(BERT, hidden_size=12, num_attention_heads=3, pad_token_id=1, mask_token_id=36,
                                 position_embedding_type="rotary", token_dropout=True), "text"),
    "esm_masked": ("EsmForMaskedLM", dict(BERT, hidden_size=12, num_attention_heads=3, pad_token_id=1, mask_token_id=36,
                                          position_embedding_type="absolute", emb_layer_norm_before=True), "text"),
    "esm_classifier": ("EsmForSequenceClassification",
                       dict(BERT, hidden_size=12, num_attention_heads=2, pad_token_id=1, num_labels=3,
                            position_embedding_type="rotary", rope_theta=50.0), "text"),
    "esm_tokens": ("EsmForTokenClassification",
                   dict(BERT, hidden_size=12, num_attention_heads=2, pad_token_id=0, num_labels=4,
                        position_embedding_type="rotary"), "text"),
    "modernbert_odd": ("ModernBertModel",
                       dict(BERT, hidden_size=12, num_hidden_layers=5, local_attention=6, pad_token_id=0),
                       "text window"),
    "modernbert_biased": ("ModernBertForMaskedLM",
                          dict(BERT, hidden_size=12, num_hidden_layers=3, local_attention=4, pad_token_id=0,
                               norm_bias=True, attention_bias=True, mlp_bias=True, hidden_activation="silu"),
                          "text window"),
    "gpt2_odd": ("GPT2LMHeadModel", dict(GPT2, n_inner=23, activation_function="relu"), "text"),
    "gpt2_plain": ("GPT2Model", dict(GPT2, n_layer=1, layer_norm_epsilon=1e-3), "text"),
    "gpt2_classifier": ("GPT2ForSequenceClassification", dict(GPT2, n_layer=1, num_labels=3, pad_token_id=0), "text"),
    "gpt_neox_sequential": ("GPTNeoXForCausalLM",
                            dict({**SQUARE, 'num_hidden_layers': 1}, use_parallel_residual=False, attention_bias=False,
                                 hidden_size=24, num_attention_heads=3, tie_word_embeddings=True), "text"),
    "opt_odd": ("OPTForCausalLM",
                dict(vocab_size=37, hidden_size=15, num_hidden_layers=2, num_attention_heads=3, ffn_dim=23,
                     max_position_embeddings=19), "text"),
    "opt_post": ("OPTForCausalLM",
                 dict(vocab_size=37, hidden_size=15, num_hidden_layers=1, num_attention_heads=1, ffn_dim=23,
                      max_position_embeddings=19, do_layer_norm_before=False, enable_bias=False,
                      activation_function="gelu"), "text"),
    "bloom_odd": ("BloomForCausalLM", dict(vocab_size=37, hidden_size=14, n_layer=2, n_head=7, layer_norm_epsilon=1e-3),
                  "text"),
    "mpt_odd": ("MptForCausalLM", dict(vocab_size=37, d_model=24, n_layers=1, n_heads=6, max_seq_len=19), "greedy"),
    "mpt_clipped": ("MptForCausalLM",
                    dict(vocab_size=37, d_model=24, n_layers=1, n_heads=6, max_seq_len=19,
                         attn_config=dict(clip_qkv=0.5)), ""),
    "falcon_7b": ("FalconForCausalLM", dict(vocab_size=37, hidden_size=12, num_hidden_layers=2, num_attention_heads=3),
                  "text greedy"),
    "falcon_40b": ("FalconForCausalLM",
                   dict(vocab_size=37, hidden_size=12, num_hidden_layers=1, num_attention_heads=6, num_kv_heads=2,
                        new_decoder_architecture=True, bias=True), "text greedy"),
    "falcon_11b": ("FalconForCausalLM",
                   dict(vocab_size=37, hidden_size=8, num_hidden_layers=1, num_attention_heads=4, num_kv_heads=2,
                        new_decoder_architecture=True, num_ln_in_parallel_attn=1, ffn_hidden_size=29), "text"),
    "falcon_sequential": ("FalconForCausalLM",
                          dict(vocab_size=37, hidden_size=12, num_hidden_layers=1, num_attention_heads=3,
                               multi_query=False, parallel_attn=False, bias=True), "text"),
    "llama_odd": ("LlamaForCausalLM",
                  dict(LLAMA, head_dim=6, attention_bias=True, mlp_bias=True, tie_word_embeddings=True,
                       rms_norm_eps=1e-3), "text greedy"),
    "llama_linear": ("LlamaForCausalLM",
                     dict(LLAMA, num_hidden_layers=1, hidden_size=24,
                          rope_parameters=dict(rope_type="linear", rope_theta=500.0, factor=3.0)), "text"),
    "llama_yarn": ("LlamaForCausalLM",
                   dict(LLAMA, num_hidden_layers=1, hidden_size=16, max_position_embeddings=64, rope_parameters=YARN),
                   "text"),
    "llama_plain": ("LlamaModel",
                    dict(LLAMA, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, num_key_value_heads=1),
                    "text"),
    "llama_classifier": ("LlamaForSequenceClassification",
                         dict(LLAMA, hidden_size=16, num_hidden_layers=1, num_labels=3, pad_token_id=0), "text"),
    "mistral_odd": ("MistralForCausalLM", dict(LLAMA, head_dim=6, sliding_window=3), "text window"),
    "qwen2_windows": ("Qwen2ForCausalLM",
                      dict(LLAMA, hidden_size=16, num_hidden_layers=3, use_sliding_window=True, sliding_window=4,
                           max_window_layers=1), "text window"),
    "qwen3_odd": ("Qwen3ForCausalLM", dict(LLAMA, head_dim=6, attention_bias=True, tie_word_embeddings=True),
                  "text greedy"),
    "gemma_odd": ("GemmaForCausalLM", dict(LLAMA, head_dim=6, num_key_value_heads=1), "text greedy"),
    "gemma2_odd": ("Gemma2ForCausalLM",
                   dict(LLAMA, num_hidden_layers=3, head_dim=6, query_pre_attn_scalar=9, sliding_window=4,
                        final_logit_softcapping=None, attn_logit_softcapping=2.0), "text window"),
    "gemma3_odd": ("Gemma3ForCausalLM",
                   dict(LLAMA, num_hidden_layers=7, head_dim=6, query_pre_attn_scalar=9, sliding_window=4),
                   "text window greedy"),
    "gemma3_bidirectional_odd": ("Gemma3TextModel",
                                 dict(LLAMA, num_hidden_layers=7, head_dim=6, query_pre_attn_scalar=9, sliding_window=5,
                                      use_bidirectional_attention=True), "text window"),
    "olmo2_odd": ("Olmo2ForCausalLM", dict(LLAMA, hidden_size=16), "text greedy"),
    "phi_odd": ("PhiForCausalLM", dict(LLAMA, hidden_size=16, qk_layernorm=True), "text"),
    "phi3_odd": ("Phi3ForCausalLM", dict(LLAMA, hidden_size=16, sliding_window=4, pad_token_id=0),
                 "text window greedy"),
    "phi3_longrope": ("Phi3ForCausalLM",
                      dict(LLAMA, hidden_size=24, num_hidden_layers=1, pad_token_id=0, max_position_embeddings=32,
                           original_max_position_embeddings=8, rope_parameters=LONG), ""),
    "phi3_longrope_short": ("Phi3ForCausalLM",
                            dict(LLAMA, hidden_size=24, num_hidden_layers=1, pad_token_id=0, max_position_embeddings=32,
                                 original_max_position_embeddings=16, rope_parameters=LONG), ""),
    "starcoder2_odd": ("Starcoder2ForCausalLM", dict(LLAMA, hidden_size=16, use_bias=False, sliding_window=5),
                       "text window greedy"),
    "cohere_odd": ("CohereForCausalLM", dict(LLAMA, hidden_size=16, use_qk_norm=True, logit_scale=0.3), "text greedy"),
    "stablelm_odd": ("StableLmForCausalLM", dict(LLAMA, hidden_size=32, num_hidden_layers=1, use_qkv_bias=True),
                     "text greedy"),
    "stablelm_parallel": ("StableLmForCausalLM",
                          dict(LLAMA, hidden_size=16, num_hidden_layers=1, use_parallel_residual=True,
                               partial_rotary_factor=0.5), "text"),
    "granite_odd": ("GraniteForCausalLM",
                    dict(LLAMA, hidden_size=16, embedding_multiplier=3.5, attention_multiplier=0.3,
                         residual_multiplier=0.7, logits_scaling=3.0, attention_bias=True, mlp_bias=True,
                         tie_word_embeddings=True), "text greedy"),
    "granite_wide_odd": ("GraniteForCausalLM", dict(ODD, head_dim=10), "text greedy"),
    "smollm3_odd": ("SmolLM3ForCausalLM",
                    dict(LLAMA, hidden_size=24, num_hidden_layers=5, no_rope_layer_interval=3, pad_token_id=0),
                    "text greedy"),
    "smollm3_windows": ("SmolLM3ForCausalLM",
                        dict(LLAMA, hidden_size=16, num_hidden_layers=3, no_rope_layers=[1, 0, 0],
                             use_sliding_window=True, sliding_window=4, pad_token_id=0, attention_bias=True,
                             mlp_bias=True, tie_word_embeddings=False), "text window"),
    "olmo3_odd": ("Olmo3ForCausalLM",
                  dict(LLAMA, hidden_size=24, num_hidden_layers=5, sliding_window=4,
                       rope_parameters=dict(full_attention=dict(YARN, rope_theta=500.0, attention_factor=1.2),
                                            sliding_attention=dict(rope_type="default", rope_theta=70.0))),
                  "text window greedy"),
    "ministral_odd": ("MinistralForCausalLM",
                      dict(LLAMA, num_hidden_layers=3, head_dim=6, sliding_window=4,
                           layer_types=["full_attention", "sliding_attention", "sliding_attention"]),
                      "text window greedy"),
    "glm4_odd": ("Glm4ForCausalLM", dict(LLAMA, head_dim=12, pad_token_id=0), "text greedy"),
    "glm4_unbiased_odd": ("Glm4ForCausalLM",
                          dict(ODD, head_dim=10, attention_bias=False, partial_rotary_factor=0.6, pad_token_id=0),
                          "text greedy"),
    "gptj_odd": ("GPTJForCausalLM", dict(GPT2, n_embd=18, rotary_dim=4, n_inner=23), "text greedy"),
    "gptj_tied": ("GPTJForCausalLM",
                  dict(GPT2, n_embd=18, n_layer=1, rotary_dim=6, tie_word_embeddings=True, activation_function="relu"),
                  "text"),
    "gptj_classifier": ("GPTJForSequenceClassification",
                        dict(GPT2, n_embd=18, n_layer=1, rotary_dim=2, num_labels=3, pad_token_id=0), "text"),
    "codegen_odd": ("CodeGenForCausalLM", dict(GPT2, pad_token_id=0, n_embd=40, n_head=4, rotary_dim=6, n_inner=23),
                    "text greedy"),
    "gpt_neo_odd": ("GPTNeoForCausalLM",
                    dict(vocab_size=37, hidden_size=15, num_layers=4, num_heads=3, intermediate_size=23, window_size=4,
                         max_position_embeddings=19, attention_types=[[["global", "local"], 1], [["local"], 2]]),
                    "text window greedy"),
    "gpt_bigcode_odd": ("GPTBigCodeForCausalLM", dict(GPT2, n_inner=23), "text greedy"),
    "gpt_bigcode_heads": ("GPTBigCodeForCausalLM",
                          dict(GPT2, n_layer=1, multi_query=False, scale_attn_weights=False,
                               activation_function="gelu"), "text"),
    "glm_odd": ("GlmForCausalLM", dict(LLAMA, head_dim=12, pad_token_id=0, hidden_act="gelu"), "text greedy"),
    "arcee_odd": ("ArceeForCausalLM", dict(LLAMA, head_dim=6, mlp_bias=True), "text greedy"),
    "nemotron_odd": ("NemotronForCausalLM", dict(LLAMA, head_dim=8, norm_eps=1e-3, attention_bias=True), "text greedy"),
    "seed_oss_odd": ("SeedOssForCausalLM", dict(LLAMA, head_dim=6), "text greedy"),
    "seed_oss_out": ("SeedOssForCausalLM",
                     dict(LLAMA, num_hidden_layers=1, head_dim=6, attention_bias=False, attention_out_bias=True,
                          mlp_bias=True), "text"),
    "ernie4_5_odd": ("Ernie4_5ForCausalLM", dict(LLAMA, head_dim=6, use_bias=True), "text greedy"),
    "helium_odd": ("HeliumForCausalLM",
                   dict(LLAMA, hidden_size=24, head_dim=6, attention_bias=True, mlp_bias=True, pad_token_id=0),
                   "text greedy"),
    "olmo_odd": ("OlmoForCausalLM", dict(LLAMA, hidden_size=24), "text greedy"),
    "olmo_clipped": ("OlmoForCausalLM", dict(LLAMA, hidden_size=24, clip_qkv=0.4), "text"),
    "cohere2_odd": ("Cohere2ForCausalLM",
                    dict(LLAMA, hidden_size=24, num_hidden_layers=3, sliding_window=4, sliding_window_pattern=3,
                         attention_bias=True, logit_scale=0.3), "text window greedy"),
    "exaone4_odd": ("Exaone4ForCausalLM",
                    dict(LLAMA, head_dim=6, num_hidden_layers=3, sliding_window=4, sliding_window_pattern=3),
                    "text window greedy"),
    "exaone4_full": ("Exaone4ForCausalLM",
                     dict(LLAMA, head_dim=6, sliding_window=None, layer_types=["full_attention"] * 2), "text"),
    "xglm_odd": ("XGLMForCausalLM",
                 dict(vocab_size=37, d_model=18, ffn_dim=23, num_layers=2, attention_heads=3,
                      max_position_embeddings=19), "text greedy single"),
    "biogpt_odd": ("BioGptForCausalLM", dict(BERT, hidden_size=15, num_attention_heads=3), "text greedy"),
    "t5_odd": ("T5ForConditionalGeneration", dict(T5), "source"),
    "t5_gated": ("T5ForConditionalGeneration", dict(T5, feed_forward_proj="gated-gelu", tie_word_embeddings=False),
                 "source"),
    "t5_encoder": ("T5EncoderModel", dict(T5), "text"),
    "bart_odd": ("BartForConditionalGeneration", dict(BART, scale_embedding=True, activation_function="relu"),
                 "source"),
    "bart_plain": ("BartModel", dict(BART, encoder_layers=1), "source"),
    "mbart_odd": ("MBartForConditionalGeneration", dict(BART, scale_embedding=True), "source"),
    "marian_odd": ("MarianMTModel",
                   dict(BART, vocab_size=37, decoder_vocab_size=37, activation_function="swish", scale_embedding=True),
                   "source"),
    "pegasus_odd": ("PegasusForConditionalGeneration", dict(BART, activation_function="relu"), "source"),
    "m2m_100_odd": ("M2M100ForConditionalGeneration", dict(BART), "source"),
    "gpt2_wide_odd": ("GPT2LMHeadModel", dict(vocab_size=61, n_embd=35, n_layer=2, n_head=5, n_positions=33),
                      "text greedy"),
    "gpt_neox_odd": ("GPTNeoXForCausalLM", dict(ODD_SQUARE, rotary_pct=0.6), "text greedy"),
    "opt_wide_odd": ("OPTForCausalLM", dict(vocab_size=61, hidden_size=35, num_hidden_layers=2, num_attention_heads=5,
                                            ffn_dim=23, max_position_embeddings=33), "text greedy"),
    "bloom_wide_odd": ("BloomForCausalLM", dict(vocab_size=61, hidden_size=35, n_layer=2, n_head=5), "text greedy"),
    "falcon_alibi_odd": ("FalconForCausalLM", dict(vocab_size=61, hidden_size=30, num_hidden_layers=2, bias=True,
                                                   num_attention_heads=5, alibi=True, multi_query=False,
                                                   parallel_attn=False), "text greedy sdpa"),
    "llama_one_odd": ("LlamaForCausalLM", dict(ODD, head_dim=10), "text greedy"),
    "mistral_one_odd": ("MistralForCausalLM", dict(ODD, head_dim=14, sliding_window=5), "text window greedy"),
    "qwen2_one_odd": ("Qwen2ForCausalLM", dict(ODD, hidden_size=30, use_sliding_window=True, sliding_window=5,
                                               max_window_layers=1), "text window greedy"),
    "gemma2_one_odd": ("Gemma2ForCausalLM", dict(ODD, head_dim=14, query_pre_attn_scalar=9, sliding_window=5),
                       "text window"),
    "phi_partial_odd": ("PhiForCausalLM", dict(ODD, partial_rotary_factor=0.6), "text greedy"),
    "bart_wide_odd": ("BartForConditionalGeneration", dict(ODD_BART), "source greedy"),
    "mbart_wide_odd": ("MBartForConditionalGeneration", dict(ODD_BART), "source greedy"),
    "marian_wide_odd": ("MarianMTModel", dict(EVEN_BART, decoder_vocab_size=61), "source greedy"),
    "pegasus_wide_odd": ("PegasusForConditionalGeneration", dict(EVEN_BART, scale_embedding=True), "source greedy"),
    "m2m_100_wide_odd": ("M2M100ForConditionalGeneration", dict(EVEN_BART), "source greedy"),
    "t5_wide_odd": ("T5ForConditionalGeneration", dict(ODD_T5, feed_forward_proj="gated-gelu"), "source greedy"),
    "whisper_odd": ("WhisperForConditionalGeneration", dict(WHISPER), "sound source greedy"),
    "whisper_classifier": ("WhisperForAudioClassification",
                           dict(WHISPER, encoder_layers=1, classifier_proj_size=5, num_labels=3), "sound scores"),
    "whisper_plain": ("WhisperModel", dict(WHISPER, activation_function="relu", decoder_attention_heads=2),
                      "sound source"),
    "whisper_untied": ("WhisperForConditionalGeneration", dict(WHISPER, tie_word_embeddings=False, num_mel_bins=1,
                                                               max_source_positions=1), "sound source"),
    "bart_classifier": ("BartForSequenceClassification", dict(BART, num_labels=3), "source shifted end"),
    "bart_answers": ("BartForQuestionAnswering", dict(BART), "source shifted end"),
    "mbart_classifier": ("MBartForSequenceClassification", dict(BART, num_labels=5), "source shifted end"),
    "t5_classifier": ("T5ForSequenceClassification", dict(T5, num_labels=3), "source shifted end"),
    "t5_labels": ("T5ForTokenClassification", dict(T5, num_labels=4), "text"),
    "umt5_answers": ("UMT5ForQuestionAnswering", dict(T5, d_model=12), "source shifted end"),
    "mt5_odd": ("MT5ForConditionalGeneration", dict(ODD_T5), "source greedy"),
    "t5gemma_odd": ("T5GemmaForConditionalGeneration",
                    dict(vocab_size=37, encoder=dict(T5GEMMA, num_hidden_layers=3, attn_logit_softcapping=2.0),
                         decoder=dict(T5GEMMA, num_key_value_heads=1, intermediate_size=9, query_pre_attn_scalar=5,
                                      sliding_window=3, final_logit_softcapping=4.0, rms_norm_eps=1e-5)),
                    "source window greedy"),
    "t5gemma_plain": ("T5GemmaModel",
                      dict(vocab_size=37,
                           encoder=dict(T5GEMMA, head_dim=4, num_attention_heads=2, attn_logit_softcapping=None,
                                        attention_bias=True, hidden_activation="silu",
                                        layer_types=["full_attention"] * 2),
                           decoder=dict(T5GEMMA, num_hidden_layers=1, layer_types=["full_attention"],
                                        attn_logit_softcapping=None)), "source"),
    "t5gemma_encoder": ("T5GemmaEncoderModel",
                        dict(vocab_size=37, is_encoder_decoder=False, encoder=dict(T5GEMMA), decoder=dict(T5GEMMA)),
                        "text window"),
    "umt5_odd": ("UMT5ForConditionalGeneration", dict(ODD_T5), "source greedy"),
    "umt5_plain": ("UMT5ForConditionalGeneration", dict(T5, feed_forward_proj="relu", d_model=12), "source"),
    "umt5_unscaled": ("UMT5ForConditionalGeneration", dict(T5, d_model=12, tie_word_embeddings=False), "source"),
    "umt5_encoder": ("UMT5EncoderModel", dict(T5), "text"),
    "clip_text_odd": ("CLIPTextModel", dict(CLIP), "text end pooled"),
    "clip_text_projection": ("CLIPTextModelWithProjection", dict(CLIP, hidden_act="gelu", layer_norm_eps=1e-3),
                             "text end"),
    "llama_labels": ("LlamaForTokenClassification", dict(LLAMA, num_labels=5, hidden_size=16), "text"),
    "llama_answers": ("LlamaForQuestionAnswering", dict(LLAMA, hidden_size=16), "text"),
    "qwen3_answers": ("Qwen3ForQuestionAnswering", dict(LLAMA, head_dim=6), "text"),
    "mixtral_labels": ("MixtralForTokenClassification", dict(LLAMA, head_dim=6, num_local_experts=4, num_labels=3),
                       "text"),
    "gpt2_labels": ("GPT2ForTokenClassification", dict(GPT2, num_labels=4), "text"),
    "gpt2_answers": ("GPT2ForQuestionAnswering", dict(GPT2), "text"),
    "gpt_neox_answers": ("GPTNeoXForQuestionAnswering", dict(SQUARE, hidden_size=32), "text"),
    "bloom_labels": ("BloomForTokenClassification", dict(vocab_size=37, hidden_size=12, n_layer=2, n_head=3), "text"),
    "opt_answers": ("OPTForQuestionAnswering", dict(vocab_size=37, hidden_size=12, num_hidden_layers=2,
                                                    num_attention_heads=3, ffn_dim=11, max_position_embeddings=19,
                                                    word_embed_proj_dim=12), "text"),
    "biogpt_labels": ("BioGptForTokenClassification", dict(SQUARE, num_labels=4), "text"),
    "gptj_answers": ("GPTJForQuestionAnswering", dict(vocab_size=37, n_embd=12, n_layer=2, n_head=3, n_positions=19,
                                                      rotary_dim=2), "text"),
    "clip_vision_odd": ("CLIPVisionModel", dict(CLIP_VISION), "pixels pooled unnormalized"),
    "clip_vision_uncovered": ("CLIPVisionModel", dict(CLIP_VISION, image_size=11, num_hidden_layers=1),
                              "pixels pooled unnormalized"),
    "clip_vision_embeds": ("CLIPVisionModelWithProjection", dict(CLIP_VISION, hidden_act="gelu", layer_norm_eps=1e-3),
                           "pixels unnormalized"),
    "siglip_text_odd": ("SiglipTextModel", dict(SIGLIP_TEXT, projection_size=5), "projected"),
    "siglip_part_text": ("SiglipModel", dict(text_config=SIGLIP_TEXT, vision_config=dict(
        hidden_size=14, intermediate_size=5, num_hidden_layers=1, num_attention_heads=2, image_size=8, patch_size=4)),
        "alone"),
    "siglip_vision_odd": ("SiglipVisionModel", dict(VIT, image_size=22, intermediate_size=23),
                          "pixels pooled"),
    "siglip_vision_headless": ("SiglipVisionModel",
                               dict(VIT, vision_use_head=False, hidden_act="gelu", layer_norm_eps=1e-3), "pixels"),
    "siglip_part_vision": ("SiglipModel", dict(text_config=SIGLIP_TEXT, vision_config=VIT), "pixels pooled"),
    "siglip_classifier_part_vision": ("SiglipForImageClassification",
                                      dict(text_config=SIGLIP_TEXT, vision_config=VIT, num_labels=5), "pixels"),
    "clip_part_text": ("CLIPModel", dict(CLIP_PARTS), "text end"),
    "clip_uncovered_part_vision": (
        "CLIPModel", dict(CLIP_PARTS, vision_config=dict(CLIP_VISION, image_size=14, num_hidden_layers=1)), "pixels"),
    "clip_part_vision": ("CLIPModel", dict(CLIP_PARTS), "pixels"),
    "roformer_odd": ("RoFormerModel",
                     dict(BERT, hidden_size=18, num_attention_heads=3, embedding_size=9, type_vocab_size=3),
                     "segments"),
    "roformer_masked": ("RoFormerForMaskedLM", dict(BERT, hidden_size=12, hidden_act="relu"), "text"),
    "roformer_answers": ("RoFormerForQuestionAnswering", dict(BERT, hidden_size=12), "text"),
    "roformer_classifier": ("RoFormerForSequenceClassification",
                            dict(BERT, hidden_size=12, hidden_act="silu", num_labels=5), "text"),
    "mixtral_odd": ("MixtralForCausalLM",
                    dict(LLAMA, head_dim=6, num_local_experts=5, num_experts_per_tok=2, sliding_window=4),
                    "text window greedy"),
    "qwen2_moe_odd": ("Qwen2MoeForCausalLM",
                      dict(LLAMA, hidden_size=16, num_hidden_layers=3, num_experts=6, num_experts_per_tok=3,
                           moe_intermediate_size=7,
                           shared_expert_intermediate_size=9, mlp_only_layers=[1]), "text greedy"),
    "qwen3_moe_odd": ("Qwen3MoeForCausalLM",
                      dict(LLAMA, num_hidden_layers=3, head_dim=6, num_experts=9, num_experts_per_tok=4,
                           moe_intermediate_size=5, norm_topk_prob=True, decoder_sparse_step=2), "text greedy"),
    "qwen2_moe_whole": ("Qwen2MoeForCausalLM",
                        dict(LLAMA, hidden_size=16, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=6,
                             shared_expert_intermediate_size=10), "text"),
    "qwen3_moe_whole": ("Qwen3MoeForCausalLM",
                        dict(LLAMA, head_dim=6, num_experts=5, num_experts_per_tok=2, moe_intermediate_size=9,
                             norm_topk_prob=True), "text"),
    "qwen3_moe_classifier": ("Qwen3MoeForSequenceClassification",
                             dict(LLAMA, head_dim=6, num_experts=4, num_experts_per_tok=1, moe_intermediate_size=17,
                                  num_labels=3, pad_token_id=0), "text"),
    "deepseek_v2_odd": ("DeepseekV2ForCausalLM",
                        dict(DEEPSEEK, kv_lora_rank=14, q_lora_rank=None, num_experts_per_tok=3,
                             topk_method="group_limited_greedy", n_group=3, topk_group=2,
                             n_routed_experts=6, n_shared_experts=2, routed_scaling_factor=1.5,
                             rope_parameters={**YARN, "mscale": 0.7, "mscale_all_dim": 0.9}), "text greedy"),
    "deepseek_v2_plain": ("DeepseekV2ForCausalLM",
                          dict(DEEPSEEK, kv_lora_rank=14, num_experts_per_tok=2, n_routed_experts=5, n_shared_experts=1,
                               first_k_dense_replace=0, v_head_dim=6), "text greedy"),
    "deepseek_v3_odd": ("DeepseekV3ForCausalLM",
                        dict(DEEPSEEK, num_experts_per_tok=3, n_routed_experts=8, n_group=4, topk_group=2,
                             n_shared_experts=1, rope_parameters={**YARN, "mscale": 1.0, "mscale_all_dim": 1.0}),
                        "text greedy"),
    "deepseek_v3_split": ("DeepseekV3ForCausalLM",
                          dict(DEEPSEEK, q_lora_rank=None, num_experts_per_tok=2, n_routed_experts=5, n_group=1,
                               topk_group=1, norm_topk_prob=False, rope_interleave=False, routed_scaling_factor=1.0,
                               first_k_dense_replace=2), "text greedy"),
    "deepseek_v3_labels": ("DeepseekV3ForTokenClassification",
                           dict(DEEPSEEK, num_experts_per_tok=2, n_routed_experts=4, n_group=2, topk_group=1,
                                num_labels=3), "text"),
    "olmoe_odd": ("OlmoeForCausalLM", dict(LLAMA, hidden_size=16, num_experts=7, num_experts_per_tok=2), "text greedy"),
    "olmoe_clipped": ("OlmoeForCausalLM",
                      dict(LLAMA, hidden_size=16, num_experts=4, num_experts_per_tok=1, clip_qkv=0.3,
                           norm_topk_prob=True), "text"),
    "granitemoe_odd": ("GraniteMoeForCausalLM",
                       dict(LLAMA, hidden_size=24, num_local_experts=6, num_experts_per_tok=4, embedding_multiplier=3.0,
                            attention_multiplier=0.2, residual_multiplier=0.7, logits_scaling=2.0), "text greedy"),
    "granitemoeshared_odd": ("GraniteMoeSharedForCausalLM",
                             dict(LLAMA, hidden_size=24, num_local_experts=5, num_experts_per_tok=2,
                                  shared_intermediate_size=7, embedding_multiplier=2.0, attention_multiplier=0.3,
                                  residual_multiplier=0.6, logits_scaling=3.0), "text greedy"),
    "granitemoeshared_alone": ("GraniteMoeSharedForCausalLM",
                               dict(LLAMA, hidden_size=16, num_local_experts=3, num_experts_per_tok=1,
                                    attention_bias=True, tie_word_embeddings=True), "text"),
    "dbrx_odd": ("DbrxForCausalLM",
                 dict(DBRX, attn_config=dict(kv_n_heads=2, clip_qkv=0.6, rope_theta=10000.0),
                      ffn_config=dict(ffn_hidden_size=9, moe_num_experts=5, moe_top_k=3)), "text greedy"),
    "dbrx_plain": ("DbrxForCausalLM",
                   dict(DBRX, d_model=18, n_heads=3, attn_config=dict(kv_n_heads=1, clip_qkv=8, rope_theta=10000.0),
                        ffn_config=dict(ffn_hidden_size=5, moe_num_experts=4, moe_top_k=2,
                                        moe_normalize_expert_weights=None, ffn_act_fn=dict(name="gelu"))), "text"),
    "gpt_oss_odd": ("GptOssForCausalLM",
                    dict(LLAMA, head_dim=6, num_local_experts=5, num_experts_per_tok=3, sliding_window=4,
                         rope_parameters=dict(YARN, truncate=False), swiglu_limit=0.7), "text window greedy"),
    "roberta_decoder_odd": ("RobertaForCausalLM",
                            dict(BERT, hidden_size=15, num_attention_heads=3, pad_token_id=1, is_decoder=True,
                                 max_position_embeddings=24), "text greedy"),
    "electra_decoder_odd": ("ElectraForCausalLM", dict(BERT, embedding_size=9, is_decoder=True), "text greedy"),
    "roberta_masked": ("RobertaForMaskedLM", dict(BERT, pad_token_id=1), "text"),
    "electra_masked": ("ElectraForMaskedLM", dict(BERT, embedding_size=10, hidden_act="relu"), "text"),
    "albert_masked": ("AlbertForMaskedLM", dict(BERT, embedding_size=9), "text"),
    "mpnet_masked": ("MPNetForMaskedLM", dict(BERT, relative_attention_num_buckets=32), "text"),
    "modernbert_classifier": ("ModernBertForSequenceClassification",
                              dict(BERT, hidden_size=12, num_labels=3, classifier_pooling="mean", classifier_bias=True,
                                   pad_token_id=0, num_hidden_layers=3), "text"),
    "modernbert_labels": ("ModernBertForTokenClassification",
                          dict(BERT, hidden_size=12, num_labels=5, classifier_activation="silu", pad_token_id=0,
                               num_hidden_layers=3),
                          "text"),
    "modernbert_answers": ("ModernBertForQuestionAnswering",
                           dict(BERT, hidden_size=12, pad_token_id=0, num_hidden_layers=2), "text"),
    "modernbert_cls": ("ModernBertForSequenceClassification",
                       dict(BERT, hidden_size=12, num_labels=2, pad_token_id=0, num_hidden_layers=2), "text"),
    "gemma3_whole_odd": ("Gemma3ForConditionalGeneration", dict(GEMMA3), "text window greedy"),
    "gemma3_whole_classifier": ("Gemma3ForSequenceClassification", dict(GEMMA3, num_labels=3), ""),
    "vit_odd": ("ViTModel", dict(VIT, image_size=(8, 12), hidden_act="gelu_new", qkv_bias=False), "pixels"),
    "vit_uncovered": ("ViTModel", dict(VIT, image_size=(13, 11), num_hidden_layers=1), "pixels"),
    "vit_uncovered_wide": ("ViTForImageClassification",
                           dict(VIT, image_size=(8, 14), num_hidden_layers=1, num_labels=3), "pixels"),
    "vit_classifier": ("ViTForImageClassification", dict(VIT, num_labels=5, layer_norm_eps=1e-3), "pixels"),
    "dinov2_odd": ("Dinov2Model", dict(DINO, image_size=14, qkv_bias=False, mlp_ratio=3), "pixels pooled"),
    "dinov2_swiglu": ("Dinov2Model", dict(DINO, hidden_size=20, use_swiglu_ffn=True, layer_norm_eps=1e-3),
                      "pixels pooled"),
    "dinov2_classifier": ("Dinov2ForImageClassification", dict(DINO, num_labels=5), "pixels"),
    "dinov2_registers_odd": ("Dinov2WithRegistersModel", dict(DINO, num_register_tokens=3), "pixels pooled"),
    "dinov2_registers_classifier": ("Dinov2WithRegistersForImageClassification",
                                    dict(DINO, num_register_tokens=1, num_labels=3, use_swiglu_ffn=True), "pixels"),
    "ast_odd": ("ASTForAudioClassification", dict(AST, num_labels=5), "spectrogram"),
    "ast_plain": ("ASTModel", dict(AST, frequency_stride=4, time_stride=4, max_length=20, hidden_act="relu",
                                   qkv_bias=False, num_hidden_layers=1), "spectrogram pooled"),
    "dinov3_vit_odd": ("DINOv3ViTModel",
                       dict(VIT, hidden_size=24, num_attention_heads=3, image_size=(14, 11), patch_size=3,
                            num_register_tokens=3), "pixels pooled"),
    "dinov3_vit_gated": ("DINOv3ViTModel",
                         dict(VIT, hidden_size=12, num_attention_heads=1, num_hidden_layers=1, use_gated_mlp=True,
                              hidden_act="silu", rope_theta=30.0, key_bias=True, proj_bias=False), "pixels pooled"),
    "dinov3_vit_unbiased": ("DINOv3ViTModel",
                            dict(VIT, hidden_size=8, num_attention_heads=2, num_hidden_layers=1, image_size=(4, 20),
                                 num_register_tokens=1, query_bias=False, value_bias=False, proj_bias=False,
                                 mlp_bias=False), "pixels pooled"),
    "deit_odd": ("DeiTModel", dict(VIT, num_attention_heads=1), "pixels"),
    "deit_uncovered": ("DeiTModel", dict(VIT, image_size=(10, 15), num_hidden_layers=1), "pixels"),
    "deit_classifier": ("DeiTForImageClassification", dict(VIT, num_labels=4), "pixels"),
}


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
    if "prediction_logits" in result:
        out["logits"] = result.prediction_logits
    if "start_logits" in result:
        out["logits"] = torch.stack([result.start_logits, result.end_logits], -1)
    elif "last_hidden_state" in result and "unnormalized" not in kind:
        out["hidden"] = result.last_hidden_state
    if cross:
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
    """Token ids, none of them padding; where `end` is wanted, the last is the end token, and no other."""
    generator = numpy.random.default_rng(sum(name.encode()) + count)
    special = {i for i in (config.pad_token_id,) if isinstance(i, int)}
    end = config.eos_token_id if "end" in CASES.get(name.removesuffix("b"), ("", {}, ""))[2].split() else None
    allowed = [t for t in range(vocab) if t not in special | {end}]
    tokens = generator.choice(allowed, size=(count,) if batch is None else (batch, count))
    if end is not None:
        for i, n in enumerate([count] if batch is None else BATCH):
            tokens[(..., n - 1) if batch is None else (i, n - 1)] = end
    return tokens


def shifted(source, config):
    """The target of a sequence that is classified: the first token of targets, and the source without its last."""
    return numpy.concatenate([[config.decoder_start_token_id], source[:-1]])


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


def halve(path):
    """Stores the tensors of a file as bfloat16, which they are already rounded to; a table of sinusoids is not."""
    tensors = safetensors.torch.load_file(path)
    for key, tensor in tensors.items():
        if tensor.dtype == torch.float32 and torch.equal(tensor.bfloat16().float(), tensor):
            tensors[key] = tensor.bfloat16()
    safetensors.torch.save_file(tensors, path, metadata={"format": "pt"})


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
        start = getattr(config, "decoder_start_token_id", config.bos_token_id)
        return greedy(model, {"input_ids": torch.tensor(source)[None]}, [start])
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


def saved(name, folder):
    """The model of a case as transformers reads it back from its folder: what the file leaves out is not random."""
    class_name, settings, kind = CASES[name]
    torch.manual_seed(1)
    cls = getattr(transformers, class_name)
    config = cls.config_class(**settings)
    config._attn_implementation = "sdpa" if "sdpa" in kind else "eager"
    config._experts_implementation = "eager"  # the others have no float64
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
        pixels = numpy.random.default_rng(3).standard_normal((3, *size)).astype(numpy.float32)
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
