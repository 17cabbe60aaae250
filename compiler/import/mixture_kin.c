/* mixture_kin.c: mixtures of experts that take their attention from another decoder. */
#include "decoders.h"

#define RMSNORM(place) "norm rmsnorm " place " eps ${eps}\nbias none\n"

/* ---------------------------------------- dots.llm1, GLM-4.5: DeepSeek-V3's experts after layers without any */
/* A layer from the number `first_k_dense_replace` on has experts; no key lists the layers. */
#define LATER_EXPERTS(expert_ff_or, experts_or, shared_or, top_or, first_or, renormalized_or)                     \
    {"first_k_dense_replace", "first_sparse", KEY_NATURAL, first_or, NULL, NULL},                                  \
    {"", "mlp", KEY_LAYER_TYPES, "from first_sparse dense sparse", "", "dense sparse"},                            \
    INTEGER_OR("moe_intermediate_size", "expert_ff", expert_ff_or, NULL),                                          \
    INTEGER_OR("n_routed_experts num_local_experts num_experts", "experts", experts_or, NULL),                     \
    INTEGER_OR("n_shared_experts", "shared_experts", shared_or, NULL),                                             \
    DERIVED("shared", "=expert_ff * shared_experts", NULL), INTEGER_OR("num_experts_per_tok", "top", top_or, NULL), \
    REAL_OR("routed_scaling_factor", "gate_scale", "1", NULL),                                                     \
    FLAG_OR("norm_topk_prob", "renormalized", renormalized_or), INTEGER_OR("n_group", "groups", "1", "1"),         \
    INTEGER_OR("topk_group", "top_groups", "1", "1"), MUST("moe_layer_freq", "1"), MUST("topk_method", "noaux_tc"), \
    MUST("scoring_func", "sigmoid noaux_tc")
#define LATER_EXPERTS_SPEC(attention)                                                                            \
    LLAMA_SPEC(RMSNORM("pre"), "", attention,                                                                    \
               "[mlp=dense? ffn { d_ff ${d_ff}, activation ${activation} gated }]\n$if mlp=sparse\n"             \
               EXPERTS_FFN("sigmoid corrected[renormalized? renormalized] scale ${gate_scale} " DEEPSEEK_GROUPS, \
                           "shared_expert ${shared}\n") "$end\n", "")
#define LATER_EXPERTS_TENSORS                                                                                    \
    ".ffn.router.weight .mlp.gate.weight\n.ffn.router.correction .mlp.gate.e_score_correction_bias\n"            \
    LISTED_EXPERTS("mlp", "gate_proj", "up_proj", "down_proj") SHARED_EXPERT("mlp.shared_experts") LLAMA_FFN LLAMA_END

static const ConfigKey dots1_keys[] = {
    LLAMA_KIN("32", "=d_model / heads"), ATTENTION_BIAS, POSITIONS("2048"), WHOLE_ROPE("10000"), RMS_EPS("1e-6"),
    LATER_EXPERTS("1408", NULL, NULL, NULL, "0", "false"),
    INTEGER_OR("sliding_window", "window", "4096", ""),
    {"max_window_layers", "first_window", KEY_NATURAL, "62", "62", NULL}, DERIVED("first_window", "=layers", "!window"),
    LAYER_TYPES("from first_window full_attention sliding_attention", TYPES),
    NEEDS_WINDOW(LAYER_TYPES_SLIDE),
    DECODER_TOKENS("", "", ""), TIED("false"),
};
const Family family_dots1 = {
    .types = "dots1=Dots1", .title = "dots.llm1: Huo et al. 2025, arXiv:2506.05767.",
    .classes = "ForCausalLM=logits Model=hidden", KEYS(dots1_keys), .irrelevant = ROUTER_TRAINING, .prefixes = "model.",
    .spec = LATER_EXPERTS_SPEC("[layer_type=sliding_attention? window ${window}]\n[attention_bias? bias all]\n"
                               "qk_norm rmsnorm\nposition rope ${rope}\n"),
    .tensors = LLAMA_EMBEDDING LLAMA_NORMS LLAMA_PROJECTIONS QK_NORMS LATER_EXPERTS_TENSORS,
};

static const ConfigKey glm4_moe_keys[] = {
    LLAMA_KIN("8", "=d_model / heads"), ATTENTION_BIAS, POSITIONS("131072"), EVEN_ROPE, ONE_ROPE("10000", "0.5"),
    RMS_EPS("1e-5"), LATER_EXPERTS("1408", "128", "1", "8", "1", "true"), FLAG_OR("use_qk_norm", "qk_norm", "false"),
    DECODER_TOKENS("", "", ""), TIED("false"),
};
const Family family_glm4_moe = {
    .types = "glm4_moe=Glm4Moe", .title = "GLM-4.5: GLM-4.5 Team 2025, arXiv:2508.06471.",
    .classes = "ForCausalLM=logits Model=hidden", KEYS(glm4_moe_keys),
    .irrelevant = ROUTER_TRAINING "num_nextn_predict_layers num_mtp_layers", .prefixes = "model.",
    .spec = LATER_EXPERTS_SPEC("[attention_bias? bias q k v]\n[qk_norm? qk_norm rmsnorm]\nposition rope ${rope}\n"),
    .tensors = LLAMA_EMBEDDING LLAMA_NORMS LLAMA_PROJECTIONS
        "[qk_norm? .attention.query_norm.* .self_attn.q_norm.*]\n"
        "[qk_norm? .attention.key_norm.* .self_attn.k_norm.*]\n" LATER_EXPERTS_TENSORS,
};

/* ---------------------------------------- ERNIE 4.5 with experts, which are chosen by corrected softmaxes */
static const ConfigKey ernie4_5_moe_keys[] = {
    LLAMA_KIN("4", "=d_model / heads"), POSITIONS("131072"), WHOLE_ROPE("500000"), RMS_EPS("1e-5"),
    MUST("use_bias", "false"), INTEGER_OR("moe_intermediate_size", "expert_ff", "1536", NULL),
    INTEGER_OR("moe_num_experts num_experts", "experts", "64", NULL),
    INTEGER_OR("moe_k num_experts_per_tok", "top", "6", NULL),
    {"moe_num_shared_experts", "shared_experts", KEY_NATURAL, "2", NULL, NULL},
    DERIVED("shared", "=expert_ff * shared_experts", NULL), DERIVED("shared", "", "shared=0"),
    {"moe_layer_start_index", "first_sparse", KEY_NATURAL, "1", NULL, NULL},
    {"", "mlp", KEY_LAYER_TYPES, "from first_sparse dense sparse", "", "dense sparse"},
    DERIVED("last_layer", "=layers - 1", NULL),
    {"moe_layer_end_index", "last_sparse", KEY_BOUND, "=last_layer", "=last_layer", NULL},
    REFUSED("last_sparse!=$last_layer", "`moe_layer_end_index` is not the last layer, and import knows no layers "
            "without experts after layers with experts"),
    MUST("moe_layer_interval", "1"), MUST("moe_norm_min", "1e-12"), MUST("moe_gate", "topk null"),
    DECODER_TOKENS("1", "2", "0"), TIED("true"),
};
const Family family_ernie4_5_moe = {
    .types = "ernie4_5_moe=Ernie4_5_Moe", .title = "ERNIE 4.5 with experts: Baidu 2025.",
    .classes = "ForCausalLM=logits Model=hidden", KEYS(ernie4_5_moe_keys),
    .irrelevant = ROUTER_TRAINING "moe_capacity moe_use_aux_free num_nextn_predict_layers", .prefixes = "model.",
    .spec = LLAMA_SPEC(RMSNORM("pre"), "", "position rope ${rope} interleaved\n",
                       "[mlp=dense? ffn { d_ff ${d_ff}, activation ${activation} gated }]\n$if mlp=sparse\n"
                       EXPERTS_FFN("softmax corrected renormalized", "[shared? shared_expert ${shared}]\n") "$end\n",
                       ""),
    .tensors = LLAMA_EMBEDDING LLAMA_NORMS LLAMA_PROJECTIONS
        ".ffn.router.weight .mlp.gate.weight\n.ffn.router.correction .mlp.moe_statics.e_score_correction_bias\n"
        LISTED_EXPERTS("mlp", "gate_proj", "up_proj", "down_proj") SHARED_EXPERT("mlp.shared_experts") LLAMA_FFN
        LLAMA_END,
};

/* ---------------------------------------- FlexOlmo: OLMo 2's attention and norms, OLMoE's experts */
static const ConfigKey flex_olmo_keys[] = {
    LLAMA_SIZES("silu"), DERIVED("expert_ff", "=d_ff", NULL), KV_HEADS, SHARED_WIDTH, POSITIONS("4096"),
    WHOLE_ROPE("500000"), RMS_EPS("1e-6"), ATTENTION_BIAS,
    INTEGER_OR("num_experts num_local_experts", "experts", "7", NULL),
    INTEGER_OR("num_experts_per_tok", "top", "5", NULL), FLAG_OR("norm_topk_prob", "renormalized", "false"),
    DECODER_TOKENS("", "100257", "100277"), TIED("false"),
};
const Family family_flex_olmo = {
    .types = "flex_olmo=FlexOlmo", .title = "FlexOlmo: Shi et al. 2025, arXiv:2507.07024.",
    .classes = "ForCausalLM=logits Model=hidden", KEYS(flex_olmo_keys), .irrelevant = ROUTER_TRAINING,
    .prefixes = "model.",
    .spec = LLAMA_SPEC(RMSNORM("after"), "",
                       "[attention_bias? bias all]\nqk_norm rmsnorm all_heads\nposition rope ${rope}\n",
                       EXPERTS_FFN(RENORMALIZED, ""), ""),
    .tensors = LLAMA_EMBEDDING LLAMA_PROJECTIONS QK_NORMS NORMS_BEHIND
        EXPERT_TENSORS("mlp", "gate_proj", "up_proj", "down_proj") LLAMA_END,
};

/* ---------------------------------------- MiniMax-M2: experts in all layers, and part of each head rotated */
static const ConfigKey minimax_m2_keys[] = {
    LLAMA_SIZES("silu"), DERIVED("expert_ff", "=d_ff", NULL), KV_HEADS_OR("8"), HEAD_DIM("128"), POSITIONS("196608"),
    POSITIVE_OR("rope_theta", "theta", "5000000", "5000000"), INTEGER_OR("rotary_dim", "rotary_dim", "", ""),
    POSITIVE_OR("partial_rotary_factor", "partial", "", ""), DERIVED("rotary_dim", "", "partial"),
    DERIVED("twice", "=rotary_dim * 2", "rotary_dim"), DERIVED("partial", "0.5", "rotary_dim&twice=$head_dim"),
    DERIVED("partial", "1", "!partial&!rotary_dim"), DERIVED("partial", "1", "!partial&rotary_dim=$head_dim"),
    REFUSED("!partial", "`rotary_dim` is neither `head_dim` nor half of it; `partial_rotary_factor` says any share"),
    EVEN_ROPE, ROPE_OR("rope_parameters rope_scaling", "rope", "theta", "", NULL), RMS_EPS("1e-6"),
    INTEGER_OR("num_local_experts num_experts", "experts", "256", NULL),
    INTEGER_OR("num_experts_per_tok", "top", "8", NULL), MUST("scoring_func", "sigmoid"),
    MUST("use_qk_norm", "true"), MUST("qk_norm_type", "per_layer"), MUST("use_routing_bias", "true"),
    MUST("shared_intermediate_size", "0"), DECODER_TOKENS("200034", "200020", ""), TIED("false"),
};
const Family family_minimax_m2 = {
    .types = "minimax_m2=MiniMaxM2", .title = "MiniMax-M2: MiniMax 2025.",
    .classes = "ForCausalLM=logits Model=hidden", KEYS(minimax_m2_keys),
    .irrelevant = ROUTER_TRAINING "use_mtp num_mtp_modules mtp_transformer_layers mlp_intermediate_size",
    .prefixes = "model.",
    .spec = LLAMA_SPEC(RMSNORM("pre"), "", "qk_norm rmsnorm all_heads\nposition rope ${rope}\n",
                       EXPERTS_FFN("sigmoid corrected renormalized", ""), ""),
    .tensors = LLAMA_EMBEDDING LLAMA_NORMS LLAMA_PROJECTIONS QK_NORMS
        ".ffn.router.weight .block_sparse_moe.gate.weight\n"
        ".ffn.router.correction .block_sparse_moe.e_score_correction_bias\n"
        LISTED_EXPERTS("block_sparse_moe", "w1", "w3", "w2") LLAMA_END,
};
