/* mixtures.c: decoders whose feed-forwards are mixtures of experts. */
#include "decoders.h"

#define RMSNORM "norm rmsnorm pre eps ${eps}\n"
/* ---------------------------------------- Mixtral */
static const ConfigKey mixtral_keys[] = {
    LLAMA_SIZES("silu"), DERIVED("expert_ff", "=d_ff", NULL),
    KV_HEADS_OR("8"), HEAD_DIM("=d_model / heads"), POSITIONS("131072"),
    WHOLE_ROPE("1000000"), RMS_EPS("1e-5"), INTEGER_OR("sliding_window", "window", "", ""),
    INTEGER_OR("num_local_experts num_experts", "experts", "8", NULL),
    INTEGER_OR("num_experts_per_tok", "top", "2", NULL),
    DECODER_TOKENS("1", "2", ""), TIED("false"),
};
const Family family_mixtral = {
    .types = "mixtral=Mixtral", .title = "Mixtral: Jiang et al. 2024, arXiv:2401.04088.",
    .classes = DECODER_CLASSES, KEYS(mixtral_keys), .irrelevant = ROUTER_TRAINING, .prefixes = "model.",
    .spec = LLAMA_SPEC(RMSNORM "bias none\n", "", "[window? window ${window}]\nposition rope ${rope}\n",
                       EXPERTS_FFN("softmax renormalized", ""), ""),
    .tensors = LLAMA_EMBEDDING LLAMA_NORMS LLAMA_PROJECTIONS EXPERT_TENSORS("block_sparse_moe", "w1", "w3", "w2")
        LLAMA_END,
};

/* ---------------------------------------- Qwen2-MoE, Qwen3-MoE: some layers are dense */
#define QWEN_EXPERTS(expert_ff_otherwise, top_otherwise, experts_otherwise)                    \
    INTEGER_OR("moe_intermediate_size", "expert_ff", expert_ff_otherwise, NULL),               \
    INTEGER_OR("num_experts num_local_experts", "experts", experts_otherwise, NULL),           \
    INTEGER_OR("num_experts_per_tok", "top", top_otherwise, NULL),                             \
    FLAG_OR("norm_topk_prob", "renormalized", "false"),                                        \
    INTEGER_OR("decoder_sparse_step", "sparse_step", "1", NULL),                               \
    {"mlp_layer_types", "mlp", KEY_LAYER_TYPES, "every sparse_step dense sparse",              \
     "every sparse_step dense sparse", "dense sparse"},                                        \
    {"mlp_only_layers", "mlp", KEY_LAYER_MARKS, "", "", "dense"}
#define QWEN_WINDOWS                                                                                          \
    FLAG_OR("use_sliding_window", "use_window", "false"), {"sliding_window", "window", KEY_NATURAL, "4096", "", NULL}, \
    DERIVED("window", "", "!use_window"), DERIVED("window", "", "window=0")
#define QWEN_FFN(more)                                                                                 \
    "[mlp=dense? ffn { d_ff ${d_ff}, activation ${activation} gated }]\n"                              \
    "$if mlp=sparse\n" EXPERTS_FFN(RENORMALIZED, more) "$end\n"

static const ConfigKey qwen2_moe_keys[] = {
    LLAMA_SIZES("silu"), KV_HEADS_OR("16"),
    SHARED_WIDTH,
    FLAG_OR("qkv_bias", "qkv_bias", "true"), QWEN_WINDOWS,
    {"max_window_layers", "first_window", KEY_NATURAL, "28", "28", NULL},
    LAYER_TYPES("from first_window full_attention sliding_attention", TYPES),
    POSITIONS("32768"), WHOLE_ROPE("10000"), RMS_EPS("1e-6"), QWEN_EXPERTS("1408", "4", "60"),
    INTEGER_OR("shared_expert_intermediate_size", "shared", "5632", NULL),
    DECODER_TOKENS("", "", ""), TIED("false"),
};
const Family family_qwen2_moe = {
    .types = "qwen2_moe=Qwen2Moe", .title = "Qwen2-MoE: Yang et al. 2024, arXiv:2407.10671.",
    .classes = DECODER_CLASSES, KEYS(qwen2_moe_keys), .irrelevant = ROUTER_TRAINING, .prefixes = "model.",
    .spec = LLAMA_SPEC(RMSNORM "bias none\n", "",
        "[layer_type=sliding_attention&window? window ${window}]\n[qkv_bias? bias q k v]\nposition rope ${rope}\n",
        QWEN_FFN("shared_expert ${shared} gated\n"), ""),
    .tensors = LLAMA_EMBEDDING LLAMA_NORMS LLAMA_PROJECTIONS
        EXPERT_TENSORS("mlp", "gate_proj", "up_proj", "down_proj")
        SHARED_EXPERT("mlp.shared_expert")
        ".ffn.shared.router.* .mlp.shared_expert_gate.*\n" LLAMA_FFN LLAMA_END,
};

static const ConfigKey qwen3_moe_keys[] = {
    LLAMA_KIN("4", "=d_model / heads"),
    ATTENTION_BIAS, QWEN_WINDOWS, POSITIONS("32768"), WHOLE_ROPE("10000"), RMS_EPS("1e-6"),
    QWEN_EXPERTS("768", "8", "128"), DECODER_TOKENS("", "", ""), TIED("false"),
};
const Family family_qwen3_moe = {
    .types = "qwen3_moe=Qwen3Moe", .title = "Qwen3-MoE: Yang et al. 2025, arXiv:2505.09388.",
    .classes = DECODER_CLASSES, KEYS(qwen3_moe_keys), .irrelevant = ROUTER_TRAINING "max_window_layers",
    .prefixes = MODEL_PREFIXES,
    .spec = LLAMA_SPEC(RMSNORM "bias none\n", "",
        "[window? window ${window}]\n[attention_bias? bias all]\nqk_norm rmsnorm\nposition rope ${rope}\n",
        QWEN_FFN(""), ""),
    .tensors = LLAMA_EMBEDDING LLAMA_NORMS LLAMA_PROJECTIONS QK_NORMS
        EXPERT_TENSORS("mlp", "gate_proj", "up_proj", "down_proj") LLAMA_FFN LLAMA_END,
};

/* ---------------------------------------- OLMoE */
static const ConfigKey olmoe_keys[] = {
    LLAMA_SIZES("silu"), DERIVED("expert_ff", "=d_ff", NULL), KV_HEADS, SHARED_WIDTH, POSITIONS("4096"),
    WHOLE_ROPE("10000"), RMS_EPS("1e-5"), ATTENTION_BIAS,
    INTEGER_OR("num_experts num_local_experts", "experts", "64", NULL),
    INTEGER_OR("num_experts_per_tok", "top", "8", NULL), FLAG_OR("norm_topk_prob", "renormalized", "false"),
    CLIP_QKV("clip_qkv"), DECODER_TOKENS("", "50279", "1"), TIED("false"),
};
const Family family_olmoe = {
    .types = "olmoe=Olmoe", .title = "OLMoE: Muennighoff et al. 2024, arXiv:2409.02060.",
    .classes = DECODER_CLASSES, KEYS(olmoe_keys), .irrelevant = ROUTER_TRAINING, .prefixes = "model.",
    .spec = LLAMA_SPEC(RMSNORM "bias none\n", "",
        "[attention_bias? bias all]\nqk_norm rmsnorm all_heads\n" CLIPPED "position rope ${rope}\n",
        EXPERTS_FFN(RENORMALIZED, ""), ""),
    .tensors = LLAMA_EMBEDDING LLAMA_NORMS LLAMA_PROJECTIONS QK_NORMS
        EXPERT_TENSORS("mlp", "gate_proj", "up_proj", "down_proj") LLAMA_END,
};

/* ---------------------------------------- GPT-OSS: gate and up are neighbouring columns, and both have bounds */
static const ConfigKey gpt_oss_keys[] = {
    LLAMA_KIN("8", "64"),
    POSITIONS("131072"), RMS_EPS("1e-5"),
    SCALED_ROPE("150000", "1", " scaling yarn factor 32 original 4096 beta_fast 32 beta_slow 1 untruncated"),
    FLAG_OR("attention_bias", "attention_bias", "true"),
    INTEGER_OR("num_local_experts num_experts", "experts", "128", NULL),
    INTEGER_OR("num_experts_per_tok experts_per_token", "top", "4", NULL),
    INTEGER_OR("sliding_window", "window", "128", NULL),
    LAYER_TYPES(TYPES, TYPES),
    POSITIVE_OR("swiglu_limit", "limit", "7", NULL), MUST("swiglu_alpha", "1.702"), MUST("hidden_act", "silu"),
    DECODER_TOKENS("", "", ""), TIED("false"),
};
const Family family_gpt_oss = {
    .types = "gpt_oss=GptOss", .title = "GPT-OSS: OpenAI 2025, arXiv:2508.10925.",
    .classes = DECODER_CLASSES, KEYS(gpt_oss_keys), .irrelevant = ROUTER_TRAINING "initial_context_length",
    .prefixes = "model.",
    .spec = LLAMA_SPEC(RMSNORM, "",
        "[layer_type=sliding_attention? window ${window}]\n[!attention_bias? bias none]\nsink learned\n"
        "position rope ${rope}\n",
        "ffn {\nd_ff ${d_ff}, activation quick_gelu gated limit ${limit} plus_one\n"
        "experts ${experts}, top ${top}\nrouter softmax renormalized bias\n}\n", ""),
    .tensors = LLAMA_EMBEDDING LLAMA_NORMS LLAMA_PROJECTIONS
        ".attention.sink.weight .self_attn.sinks\n"
        ".ffn.router.* .mlp.router.*\n"
        "$if !#layers.0.mlp.experts.gate_up_proj_blocks\n"
        ".ffn.experts.gate.weight .mlp.experts.gate_up_proj transpose interleaved ${d_ff} parts 2 take 0\n"
        ".ffn.experts.up.weight .mlp.experts.gate_up_proj transpose interleaved ${d_ff} parts 2 take 1\n"
        ".ffn.experts.down.weight .mlp.experts.down_proj transpose\n"
        "$end\n"
        "$if #layers.0.mlp.experts.gate_up_proj_blocks\n" /* of MXFP4, which are not transposed */
        ".ffn.experts.gate.weight .mlp.experts.gate_up_proj_blocks interleaved ${d_ff} parts 2 take 0\n"
        ".ffn.experts.up.weight .mlp.experts.gate_up_proj_blocks interleaved ${d_ff} parts 2 take 1\n"
        ".ffn.experts.down.weight .mlp.experts.down_proj_blocks\n"
        "$end\n"
        ".ffn.experts.gate.bias .mlp.experts.gate_up_proj_bias interleaved ${d_ff} parts 2 take 0\n"
        ".ffn.experts.up.bias .mlp.experts.gate_up_proj_bias interleaved ${d_ff} parts 2 take 1\n"
        ".ffn.experts.down.bias .mlp.experts.down_proj_bias\n" LLAMA_END,
};

/* ---------------------------------------- GraniteMoE: gate and up of each expert lie together */
#define GRANITEMOE_KEYS                                                                                             \
    LLAMA_SIZES("silu"), DERIVED("expert_ff", "=d_ff", NULL), DERIVED("d_ff_twice", "=d_ff * 2", NULL), KV_HEADS, \
    HEAD_DIM("=d_model / heads"), POSITIONS("2048"), WHOLE_ROPE("10000"), RMS_EPS("1e-6"), ATTENTION_BIAS,         \
    INTEGER_OR("num_local_experts num_experts", "experts", "8", NULL),                                             \
    INTEGER_OR("num_experts_per_tok", "top", "2", NULL), GRANITE_FACTORS, DECODER_TOKENS("1", "2", ""), TIED("false")
#define GRANITEMOE_SPEC(more)                                                                     \
    LLAMA_SPEC(RMSNORM "[residual_scale!=1? residual scale ${residual_scale}]\n",                 \
               "[embedding_scale!=1? embedding scale ${embedding_scale}]\n",                      \
               "[!attention_bias? bias none]\nscale ${score_scale}\nposition rope ${rope}\n",     \
               EXPERTS_FFN("softmax renormalized", more "bias none\n"), "[divisor!=1? scale 1/${divisor}]")
#define GRANITEMOE_TENSORS                                                              \
    LLAMA_EMBEDDING LLAMA_NORMS LLAMA_PROJECTIONS                                       \
    ".ffn.router.* .block_sparse_moe.router.layer.*\n"                                  \
    ".ffn.experts.gate.* .block_sparse_moe.input_linear.* rows 0..${d_ff}\n"            \
    ".ffn.experts.up.* .block_sparse_moe.input_linear.* rows ${d_ff}..${d_ff_twice}\n"  \
    ".ffn.experts.down.* .block_sparse_moe.output_linear.*\n"

static const ConfigKey granitemoe_keys[] = {GRANITEMOE_KEYS};
const Family family_granitemoe = {
    .types = "granitemoe=GraniteMoe", .title = "Granite MoE: Granite Team, IBM 2024.",
    .classes = "ForCausalLM=logits Model=hidden", KEYS(granitemoe_keys), .irrelevant = ROUTER_TRAINING,
    .prefixes = "model.", .spec = GRANITEMOE_SPEC(""), .tensors = GRANITEMOE_TENSORS LLAMA_END,
};

/* The same with an expert that every row goes through, unless its width is 0. */
static const ConfigKey granitemoeshared_keys[] = {
    GRANITEMOE_KEYS, {"shared_intermediate_size", "shared", KEY_NATURAL, "0", NULL, NULL},
    DERIVED("shared", "", "shared=0"), DERIVED("shared_twice", "=shared * 2", NULL),
};
const Family family_granitemoeshared = {
    .types = "granitemoeshared=GraniteMoeShared",
    .title = "Granite MoE with a shared expert: Granite Team, IBM 2025.",
    .classes = "ForCausalLM=logits Model=hidden", KEYS(granitemoeshared_keys), .irrelevant = ROUTER_TRAINING,
    .prefixes = "model.", .spec = GRANITEMOE_SPEC("[shared? shared_expert ${shared}]\n"),
    .tensors = GRANITEMOE_TENSORS
        "$if shared\n"
        ".ffn.shared.gate.* .shared_mlp.input_linear.* rows 0..${shared}\n"
        ".ffn.shared.up.* .shared_mlp.input_linear.* rows ${shared}..${shared_twice}\n"
        ".ffn.shared.down.* .shared_mlp.output_linear.*\n"
        "$end\n" LLAMA_END,
};

/* ---------------------------------------- DBRX: matrices of experts lie one above the other; `down` is transposed */
static const ConfigKey dbrx_keys[] = {
    INTEGER("vocab_size", "vocab"), INTEGER("d_model hidden_size", "d_model"), INTEGER("n_heads", "heads"),
    INTEGER("n_layers", "layers"), INTEGER_OR("max_seq_len", "positions", "2048", NULL),
    INTEGER_OR("attn_config.kv_n_heads", "kv_heads", "1", NULL), CLIP_QKV("attn_config.clip_qkv"),
    SHARED_WIDTH,
    DERIVED("keys", "=kv_heads * head_dim", NULL), DERIVED("key_end", "=keys + d_model", NULL),
    DERIVED("value_end", "=keys + keys + d_model", NULL),
    POSITIVE_OR("attn_config.rope_theta", "own_theta", "10000", "10000"),
    POSITIVE_OR("rope_theta", "outer_theta", "", ""),
    POSITIVE_OR("rope_parameters.rope_theta", "outer_theta", "$outer_theta", ""),
    NOTED("!outer_theta&own_theta!=10000", "The theta is `attn_config.rope_theta`, as the model was trained; "
          "transformers 5 takes 10000 where `rope_parameters` is absent."),
    DERIVED("theta", "=own_theta", NULL), DERIVED("theta", "=outer_theta", "outer_theta"),
    NOTED("theta!=$own_theta", "`attn_config.rope_theta` is not obeyed, as in transformers 5: theta is that of "
          "`rope_parameters`."),
    DERIVED("whole_rope", "yes", NULL), DERIVED("partial", "1", NULL),
    ROPE("rope_parameters rope_scaling", "rope", "theta", NULL),
    INTEGER_OR("ffn_config.ffn_hidden_size", "expert_ff", "3584", NULL),
    INTEGER_OR("ffn_config.moe_num_experts", "experts", "4", NULL),
    INTEGER_OR("ffn_config.moe_top_k", "top", "1", NULL),
    REAL_OR("ffn_config.moe_normalize_expert_weights", "power", "1", ""),
    REFUSED("power&power!=1", "`ffn_config.moe_normalize_expert_weights` is neither null nor 1, and the language "
            "divides the gates of a row by their sum alone"),
    DERIVED("renormalized", "yes", "power"),
    WORD_OR("ffn_config.ffn_act_fn.name", "activation", "silu", ACTIVATIONS),
    MUST("tie_word_embeddings", "false"), DECODER_TOKENS("", "", ""),
};
const Family family_dbrx = {
    .types = "dbrx=Dbrx", .title = "DBRX: Databricks 2024.", .classes = "ForCausalLM=logits Model=hidden",
    KEYS(dbrx_keys),
    .irrelevant = ROUTER_TRAINING "resid_pdrop emb_pdrop num_key_value_heads attn_config.attn_pdrop "
        "ffn_config.hidden_size ffn_config.moe_jitter_eps ffn_config.moe_loss_weight",
    .prefixes = "transformer.",
    .spec = LLAMA_SPEC("norm layernorm pre no_bias eps 1e-5\nbias none\n", "", CLIPPED "position rope ${rope}\n",
                       EXPERTS_FFN(RENORMALIZED, ""), ""),
    .tensors = "decoder.embedding.tokens.weight wte.weight\n"
        "@decoder.layers.{layer} blocks.{layer}\n"
        ".attention.norm_in.* .norm_attn_norm.norm_1.*\n"
        QKV_ROWS("*", "norm_attn_norm.attn.Wqkv.*", "${d_model}", "${key_end}", "${value_end}")
        ".attention.output.* .norm_attn_norm.attn.out_proj.*\n"
        ".ffn.norm_in.* .norm_attn_norm.norm_2.*\n"
        ".ffn.router.* .ffn.router.layer.*\n"
        ".ffn.experts.gate.weight .ffn.experts.mlp.w1\n"
        ".ffn.experts.up.weight .ffn.experts.mlp.v1\n"
        ".ffn.experts.down.weight .ffn.experts.mlp.w2 transpose\n"
        "decoder.final_norm.* norm_f.*\n" HEAD_TENSORS,
};
