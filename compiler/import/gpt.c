/* gpt.c: GPT-2, and decoders that resemble neither GPT-2 nor LLaMA. */
#include "decoders.h"

#define GPT_SPEC(norm, stack, attention, ffn)                       \
    DECODER_SPEC("decoder", norm, stack,                            \
                 "attention self { heads ${heads}" attention " }\n" \
                 "ffn { d_ff ${d_ff}, activation " ffn " }\n", "")

/* ---------------------------------------- GPT-2: matrices are [in][out] */
static const ConfigKey gpt2_keys[] = {
    INTEGER("vocab_size", "vocab"), INTEGER("n_embd", "d_model"), INTEGER("n_layer", "layers"),
    INTEGER("n_head", "heads"),
    INTEGER_OR("n_inner", "d_ff", "=4 * d_model", "=4 * d_model"),
    INTEGER_OR("n_positions", "positions", "1024", NULL), DERIVED("learned", "yes", NULL),
    WORD_OR("activation_function", "activation", "gelu_tanh", ACTIVATIONS),
    REAL_OR("layer_norm_epsilon", "eps", "1e-5", NULL),
    DERIVED("head_dim", "=d_model / heads", NULL), FLAG_OR("scale_attn_weights", "scaled", "true"),
    FLAG_OR("scale_attn_by_inverse_layer_idx", "by_layer", "false"),
    DECODER_TOKENS("50256", "50256", ""), TIED_TO("true", "lm_head.weight", "wte.weight"),
};
const Family family_gpt2 = {
    .types = "gpt2=GPT2", .title = "GPT-2: Radford et al. 2019.",
    .classes = "LMHeadModel=logits Model=hidden ForSequenceClassification=classify DoubleHeadsModel=rest"
        ROW_CLASSES,
    KEYS(gpt2_keys),
    .irrelevant = "resid_pdrop embd_pdrop attn_pdrop summary_type summary_use_proj summary_activation "
        "summary_proj_to_labels summary_first_dropout "
                  "reorder_and_upcast_attn n_ctx n_special predict_special_tokens",
    .prefixes = "transformer.", .spec = GPT_SPEC("norm layernorm pre eps ${eps}\n", "position learned\n",
        ", mask causal[!scaled&!by_layer?, scale 1][!scaled&by_layer?, scale 1/(${layer}+1)]"
        "[scaled&by_layer?, scale 1/((${layer}+1)*sqrt(${head_dim}))]", "${activation}"),
    .tensors =
        TOKEN_TABLE("wte.weight", "lm_head.weight")
        "decoder.embedding.positions.weight wpe.weight\n"
        "@decoder.layers.{layer} h.{layer}\n"
        ".attention.norm_in.* .ln_1.*\n"
        QKV_ROWS("*", "attn.c_attn.* transpose", "d_model", "2*d_model", "3*d_model")
        ".attention.output.* .attn.c_proj.* transpose\n"
        ".ffn.norm_in.* .ln_2.*\n"
        ".ffn.up.* .mlp.c_fc.* transpose\n"
        ".ffn.down.* .mlp.c_proj.* transpose\n"
        "buffer h.{layer}.attn.bias h.{layer}.attn.masked_bias\n"
        "decoder.final_norm.* ln_f.*\n" HEAD_TENSORS,
};

/* ---------------------------------------- GPT-NeoX: each head's query, key and value lie together */
static const ConfigKey gpt_neox_keys[] = {
    LLAMA_SIZES("gelu"), POSITIONS("2048"), REAL_OR("layer_norm_eps", "eps", "1e-5", NULL),
    DERIVED("head_dim", "=d_model / heads", NULL), EVEN_ROPE,
    FLAG_OR("use_parallel_residual", "parallel", "true"),
    FLAG_OR("attention_bias", "attention_bias", "true"), POSITIVE_OR("rotary_emb_base", "theta", "10000", "10000"),
    POSITIVE_OR("rotary_pct", "partial", "0.25", "0.25"), POSITIVE_OR("rope_theta", "theta_beside", "$theta", "$theta"),
    POSITIVE_OR("partial_rotary_factor", "partial_beside", "$partial", "$partial"),
    NOTED("theta_beside!=$theta", "`rope_theta` is not obeyed, as in transformers 5, whose gpt_neox reads "
        "`rotary_emb_base` or `rope_parameters`."),
    NOTED("partial_beside!=$partial", "`partial_rotary_factor` is not obeyed, as in transformers 5, whose gpt_neox "
        "reads `rotary_pct` or `rope_parameters`."),
    ROPE("rope_parameters rope_scaling", "rope", "theta", NULL),
    DECODER_TOKENS("0", "2", ""), TIED_TO("false", "embed_out.weight", "embed_in.weight"),
};
const Family family_gpt_neox = {
    .types = "gpt_neox=GPTNeoX", .title = "GPT-NeoX: Black et al. 2022, arXiv:2204.06745.",
    .classes = DECODER_CLASSES, KEYS(gpt_neox_keys), .irrelevant = "", .prefixes = "gpt_neox.",
    .spec = GPT_SPEC("norm layernorm pre eps ${eps}\n", "[parallel? block parallel]\n",
        ", mask causal, position rope ${rope}[!attention_bias?, bias none]",
                     "${activation}"),
    .tensors =
        TOKEN_TABLE("embed_in.weight", "embed_out.weight")
        "@decoder.layers.{layer} layers.{layer}\n"
        ".attention.norm_in.* .input_layernorm.*\n"
        HEAD_PARTS("attention.query_key_value")
        ".attention.output.* .attention.dense.*\n"
        ".ffn.norm_in.* .post_attention_layernorm.*\n"
        UP_DOWN("mlp.dense_h_to_4h", "mlp.dense_4h_to_h")
        "decoder.final_norm.* final_layer_norm.*\n"
        "[task=logits&!tied? head.weight embed_out.weight]\n"
        "[task=classify? classifier.weight score.weight]\n" DECODER_ROW_TENSORS
        "buffer layers.{layer}.attention.bias layers.{layer}.attention.masked_bias "
        "layers.{layer}.attention.rotary_emb.inv_freq\n"
        "ignore embed_out.weight classifier.* qa_outputs.*\n",
};

/* ---------------------------------------- OPT: two rows in front of the table of positions */
static const ConfigKey opt_keys[] = {
    INTEGER("vocab_size", "vocab"), INTEGER("hidden_size", "d_model"), INTEGER("num_hidden_layers", "layers"),
    INTEGER("num_attention_heads", "heads"),
    INTEGER("ffn_dim", "d_ff"), POSITIONS("2048"), DERIVED("learned", "yes", NULL),
    WORD_OR("activation_function", "activation", "relu", ACTIVATIONS),
    FLAG_OR("do_layer_norm_before", "pre", "true"), FLAG_OR("_remove_final_layer_norm", "no_final", "false"),
    FLAG_OR("enable_bias", "bias", "true"),
    MUST("layer_norm_elementwise_affine", "true"), INTEGER_OR("word_embed_proj_dim", "table_width", "=d_model",
    "=d_model"),
    REFUSED("table_width!=$d_model",
    "`word_embed_proj_dim` is not `hidden_size`: rows of the table are projected before positions are added to them, "
    "and in the language after"),
    DECODER_TOKENS("2", "2", "1"), TIED_TO("true", "lm_head.weight", "decoder.embed_tokens.weight"),
};
const Family family_opt = {
    .types = "opt=OPT", .title = "OPT: Zhang et al. 2022, arXiv:2205.01068.",
    .classes = "ForCausalLM=logits Model=hidden ForSequenceClassification=classify ForQuestionAnswering=answers",
        KEYS(opt_keys),
    .irrelevant = "activation_dropout layerdrop init_std", .prefixes = "model.",
    .spec = GPT_SPEC("norm layernorm[pre? pre][!pre? post] eps 1e-5\n[!bias? bias none]\n",
                     "position learned offset 2\n[pre&no_final? final_norm no]\n", ", mask causal", "${activation}"),
    .tensors =
        TOKEN_TABLE("decoder.embed_tokens.weight", "lm_head.weight")
        "decoder.embedding.positions.weight decoder.embed_positions.weight\n"
        "@decoder.layers.{layer} decoder.layers.{layer}\n"
        PROJECTIONS("self_attn", "q_proj", "k_proj", "v_proj", "out_proj")
        UP_DOWN("fc1", "fc2")
        "[pre? .attention.norm_in.* .self_attn_layer_norm.*]\n"
        "[pre? .ffn.norm_in.* .final_layer_norm.*]\n"
        "[!pre? .attention.norm_out.* .self_attn_layer_norm.*]\n"
        "[!pre? .ffn.norm_out.* .final_layer_norm.*]\n"
        "[pre? decoder.final_norm.* decoder.final_layer_norm.*]\n" HEAD_TENSORS,
};

/* ---------------------------------------- BLOOM */
static const ConfigKey bloom_keys[] = {
    INTEGER("vocab_size", "vocab"), INTEGER("hidden_size n_embed", "d_model"),
    INTEGER("n_layer num_hidden_layers", "layers"),
    INTEGER("n_head num_attention_heads", "heads"), DERIVED("d_ff", "=4 * d_model", NULL),
    INTEGER_OR("seq_length", "positions", "", ""),
    REAL_OR("layer_norm_epsilon", "eps", "1e-5", NULL), MUST("apply_residual_connection_post_layernorm", "false"),
    {"pretraining_tp", "slices", KEY_BOUND, "1", "1", NULL}, FLAG_OR("slow_but_exact", "exact", "false"),
    DERIVED("unbiased", "yes", "exact&slices!=1"),
    NOTED("unbiased", "`slow_but_exact` is true and `pretraining_tp` above 1: the biases of `self_attention.dense` and "
        "`mlp.dense_4h_to_h` are left out, as in transformers 5."),
    DECODER_TOKENS("1", "2", ""), TIED_TO("true", "lm_head.weight", "word_embeddings.weight"),
};
const Family family_bloom = {
    .types = "bloom=Bloom", .title = "BLOOM: BigScience 2022, arXiv:2211.05100.",
    .classes = DECODER_CLASSES, KEYS(bloom_keys),
    .irrelevant = "masked_softmax_fusion attention_softmax_in_fp32 bias_dropout_fusion offset_alibi "
        "pretraining_pp skip_bias_add "
                  "skip_bias_add_qkv n_inner",
    .prefixes = "transformer.",
    .spec = GPT_SPEC("norm layernorm pre eps ${eps}\n[unbiased? bias q k v up]\n", "embedding normalized\n",
        ", mask causal, position alibi",
        "gelu_tanh"),
    .tensors =
        TOKEN_TABLE("word_embeddings.weight", "lm_head.weight")
        "decoder.embedding.norm.* word_embeddings_layernorm.*\n"
        "@decoder.layers.{layer} h.{layer}\n"
        ".attention.norm_in.* .input_layernorm.*\n"
        HEAD_PARTS("self_attention.query_key_value")
        ".attention.output.* .self_attention.dense.*\n"
        ".ffn.norm_in.* .post_attention_layernorm.*\n"
        UP_DOWN("mlp.dense_h_to_4h", "mlp.dense_4h_to_h")
        "[unbiased? ignore h.{layer}.self_attention.dense.bias h.{layer}.mlp.dense_4h_to_h.bias]\n"
        "decoder.final_norm.* ln_f.*\n" HEAD_TENSORS,
};

/* ---------------------------------------- MPT: no bias anywhere, not in the norms either */
static const ConfigKey mpt_keys[] = {
    INTEGER("vocab_size", "vocab"), INTEGER("d_model", "d_model"), INTEGER("n_layers", "layers"),
    INTEGER("n_heads", "heads"),
    DERIVED("d_ff", "=4 * d_model", NULL), INTEGER_OR("max_seq_len", "positions", "2048", NULL),
    REAL_OR("layer_norm_epsilon", "eps", "1e-5", NULL),
    MUST("expansion_ratio", "4"), MUST("no_bias", "true"), MUST("logit_scale", "null"),
    MUST("norm_type", "low_precision_layernorm"),
    MUST("embedding_fraction", "1"), MUST("attn_config.attn_type", "multihead_attention"),
    REAL_OR("attn_config.clip_qkv", "clip", "", ""), DERIVED("clip", "", "clip=0"), /* as in Python, 0 is false */
    MUST("attn_config.prefix_lm", "false"), MUST("attn_config.qk_ln", "false"), MUST("attn_config.alibi", "true"),
    MUST("attn_config.attn_uses_sequence_id", "false"), REAL_OR("attn_config.softmax_scale", "scale", "", ""),
    INTEGER_OR("attn_config.alibi_bias_max", "alibi_max", "8", "8"),
    NOTED("alibi_max!=8", "`attn_config.alibi_bias_max` is not obeyed, as in transformers 5, whose slopes are those "
        "of 8."),
    DECODER_TOKENS("", "", ""),
    TIED_TO("true", "lm_head.weight", "wte.weight"),
};
const Family family_mpt = {
    .types = "mpt=Mpt", .title = "MPT: MosaicML 2023.", .classes = DECODER_CLASSES, KEYS(mpt_keys),
    .irrelevant = "resid_pdrop emb_pdrop learned_pos_emb init_device attn_config.attn_pdrop attn_config.attn_impl "
        "verbose "
                  "init_config tokenizer_name",
    .prefixes = "transformer.",
    .spec = GPT_SPEC("norm layernorm no_bias pre eps ${eps}\nbias none\n", "",
        ", mask causal[clip?, clip ${clip}][scale?, scale ${scale}], position alibi", "gelu"),
    .tensors =
        TOKEN_TABLE("wte.weight", "lm_head.weight")
        "@decoder.layers.{layer} blocks.{layer}\n"
        ".attention.norm_in.* .norm_1.*\n"
        QKV_ROWS("*", "attn.Wqkv.*", "d_model", "2*d_model", "3*d_model")
        ".attention.output.* .attn.out_proj.*\n"
        ".ffn.norm_in.* .norm_2.*\n"
        UP_DOWN("ffn.up_proj", "ffn.down_proj")
        "decoder.final_norm.* norm_f.*\n" HEAD_TENSORS,
};

/* ---------------------------------------- Falcon: 7B, 40B and RW, which are three architectures */
static const ConfigKey falcon_keys[] = {
    INTEGER("vocab_size", "vocab"), INTEGER("hidden_size n_embed", "d_model"),
    INTEGER("num_hidden_layers n_layer", "layers"),
    INTEGER("num_attention_heads n_head", "heads"), INTEGER_OR("ffn_hidden_size", "d_ff", "=4 * d_model",
    "=4 * d_model"),
    DERIVED("head_dim", "=d_model / heads", NULL), INTEGER_OR("num_kv_heads n_head_kv", "given_kv_heads", "=heads",
    "=heads"),
    FLAG_OR("new_decoder_architecture", "new", "false"), FLAG_OR("multi_query", "multi_query", "true"),
    FLAG_OR("parallel_attn", "parallel", "true"),
    FLAG_OR("bias", "bias", "false"), FLAG_OR("alibi", "alibi", "false"),
    INTEGER_OR("num_ln_in_parallel_attn", "norms", "", ""),
    REFUSED("new&!parallel", "`new_decoder_architecture` without `parallel_attn` is not understood"),
    DERIVED("kv_heads", "=heads", NULL), DERIVED("kv_heads", "1", "multi_query"),
    DERIVED("kv_heads", "=given_kv_heads", "new"),
    DERIVED("fused", "heads", NULL), DERIVED("fused", "rows", "multi_query"), DERIVED("fused", "groups", "new"),
    DERIVED("two_norms", "yes", "new&norms!=1"), DERIVED("shared", "yes", "parallel&!two_norms"),
    DERIVED("sequential", "yes", "!parallel"),
    DERIVED("group", "=heads / kv_heads", NULL), DERIVED("parts", "=group + 2", NULL),
    DERIVED("value_part", "=group + 1", NULL),
    DERIVED("key_end", "=d_model + head_dim", NULL), DERIVED("value_end", "=key_end + head_dim", NULL),
    POSITIONS("2048"), WHOLE_ROPE("10000"), REAL_OR("layer_norm_epsilon", "eps", "1e-5", NULL),
    WORD_OR("activation", "activation", "gelu", ACTIVATIONS),
    NOTED("alibi", "ALiBi's slopes, and slopes times positions, are rounded to bf16, as in transformers with sdpa."),
    DECODER_TOKENS("11", "11", ""), TIED_TO("true", "lm_head.weight", "word_embeddings.weight"),
};
const Family family_falcon = {
    .types = "falcon=Falcon", .title = "Falcon: Almazrouei et al. 2023, arXiv:2311.16867.", .classes = DECODER_CLASSES,
        KEYS(falcon_keys), .irrelevant = "apply_residual_connection_post_layernorm",
    .prefixes = "transformer.",
    .spec = GPT_SPEC("norm layernorm pre eps ${eps}\n[!bias? bias none]\n",
        "[parallel? block parallel][shared? shared_norm]\n",
                     "[kv_heads!=$heads?, kv_heads ${kv_heads}], mask causal[alibi?, position alibi scaled bf16]"
                         "[!alibi?, position rope ${rope}]", "${activation}"),
    .tensors =
        TOKEN_TABLE("word_embeddings.weight", "lm_head.weight")
        "@decoder.layers.{layer} h.{layer}\n"
        "[two_norms? .attention.norm_in.* .ln_attn.*]\n"
        "[two_norms? .ffn.norm_in.* .ln_mlp.*]\n"
        "[!two_norms? .attention.norm_in.* .input_layernorm.*]\n"
        "[sequential? .ffn.norm_in.* .post_attention_layernorm.*]\n"
        "$if fused=heads\n"
        HEAD_PARTS("self_attention.query_key_value")
        "$end\n"
        "$if fused=rows\n"
        QKV_ROWS("*", "self_attention.query_key_value.*", "${d_model}", "${key_end}", "${value_end}")
        "$end\n"
        "$if fused=groups\n"
        ".attention.query.* .self_attention.query_key_value.* interleaved ${kv_heads} parts ${parts} take 0..${group}\n"
        ".attention.key.* .self_attention.query_key_value.* interleaved ${kv_heads} parts ${parts} take ${group}\n"
        ".attention.value.* .self_attention.query_key_value.* interleaved ${kv_heads} parts ${parts} take "
            "${value_part}\n"
        "$end\n"
        ".attention.output.* .self_attention.dense.*\n"
        UP_DOWN("mlp.dense_h_to_4h", "mlp.dense_4h_to_h")
        "decoder.final_norm.* ln_f.*\n" HEAD_TENSORS,
};
