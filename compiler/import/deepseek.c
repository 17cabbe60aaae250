/* deepseek.c: decoders with latent attention, whose later layers are mixtures of experts. */
#include "decoders.h"

#define DEEPSEEK_SIZES(dense, expert_ff_of, experts_of, shared_of, top_of, scale_of)                                  \
    LLAMA_SIZES("silu"), INTEGER_OR("num_key_value_heads", "kv_heads", "=heads", "=heads"),                           \
    REFUSED("kv_heads!=$heads", "`num_key_value_heads` is not `num_attention_heads`, and latent attention has a key " \
        "of each head"),                                                                                              \
    INTEGER_OR("kv_lora_rank", "latent", "512", NULL), INTEGER_OR("q_lora_rank", "latent_query", "1536", ""),         \
    INTEGER_OR("qk_nope_head_dim", "head_dim", "128", NULL), INTEGER_OR("qk_rope_head_dim", "rope_dim", "64", NULL),  \
    INTEGER_OR("v_head_dim", "value_dim", "128", NULL), DERIVED("key_dim", "=head_dim + rope_dim", NULL),             \
    DERIVED("both_dim", "=head_dim + value_dim", NULL), DERIVED("compressed", "=latent + rope_dim", NULL),            \
    {"first_k_dense_replace", "first_sparse", KEY_NATURAL, dense, "0", NULL},                                         \
    {"mlp_layer_types", "mlp", KEY_LAYER_TYPES, "from first_sparse dense sparse", "from first_sparse dense sparse",   \
     "dense sparse"},                                                                                                 \
    INTEGER_OR("moe_intermediate_size", "expert_ff", expert_ff_of, NULL),                                             \
    INTEGER_OR("n_routed_experts num_local_experts num_experts", "experts", experts_of, NULL),                        \
    INTEGER_OR("n_shared_experts", "shared_experts", shared_of, NULL),                                                \
    DERIVED("shared", "=expert_ff * shared_experts", NULL),                                                           \
    INTEGER_OR("num_experts_per_tok", "top", top_of, NULL),                                                           \
    REAL_OR("routed_scaling_factor", "gate_scale", scale_of, scale_of),                                               \
    MUST("moe_layer_freq", "1"), MUST("attention_bias", "false"), RMS_EPS("1e-6")

#define DEEPSEEK_SPEC(interleaved, router)                                                    \
    DECODER_SPEC("decoder", "norm rmsnorm pre eps ${eps}\nbias none\n", "",                   \
                 LATENT_ATTENTION(interleaved " ${rope}")                                     \
                 "[mlp=dense? ffn { d_ff ${d_ff}, activation ${activation} gated }]\n"        \
                 "$if mlp=sparse\nffn {\nd_ff ${expert_ff}, activation ${activation} gated\n" \
                 "experts ${experts}, top ${top}\nrouter " router "\nshared_expert ${shared}\n}\n$end\n", "")

#define DEEPSEEK_TENSORS                                                                                      \
    LLAMA_EMBEDDING LLAMA_NORMS                                                                               \
    LATENT_TENSORS("self_attn.q_a_proj", "self_attn.q_a_layernorm", "self_attn.q_b_proj", "self_attn.q_proj", \
                   "self_attn.kv_a_proj_with_mqa", "self_attn.kv_a_layernorm")                                \
    LATENT_KEY_VALUE("self_attn.kv_b_proj")                                                                   \
    ".attention.output.* .self_attn.o_proj.*\n"                                                               \
    ".ffn.router.weight .mlp.gate.weight\n.ffn.router.correction .mlp.gate.e_score_correction_bias\n"         \
    LISTED_EXPERTS("mlp", "gate_proj", "up_proj", "down_proj") SHARED_EXPERT("mlp.shared_experts") LLAMA_FFN LLAMA_END
/* Keys of training, of other programs, and of values that follow from others. */
#define DEEPSEEK_IRRELEVANT                                                                                         \
    "output_router_logits router_aux_loss_coef aux_loss_alpha seq_aux ep_size head_dim qk_head_dim pretraining_tp " \
    "num_nextn_predict_layers num_mtp_layers "

static const ConfigKey deepseek_v2_keys[] = {
    DEEPSEEK_SIZES("0", "1407", "64", "2", NULL, "1"), POSITIONS("2048"), WHOLE_ROPE("10000"),
    {"topk_method", "method", KEY_WORD, "greedy", "greedy", "greedy group_limited_greedy"},
    INTEGER_OR("n_group", "groups", "1", "1"), INTEGER_OR("topk_group", "top_groups", "1", "1"),
    DERIVED("groups", "1", "method=greedy"), MUST("scoring_func", "softmax"), MUST("norm_topk_prob", "false"),
    MUST("mlp_bias", "false"), DECODER_TOKENS("1", "2", ""), TIED("false"),
};
const Family family_deepseek_v2 = {
    .types = "deepseek_v2=DeepseekV2", .title = "DeepSeek-V2: DeepSeek-AI 2024, arXiv:2405.04434.",
    .classes = DECODER_CLASSES, KEYS(deepseek_v2_keys), .irrelevant = DEEPSEEK_IRRELEVANT, .prefixes = "model.",
    .spec = DEEPSEEK_SPEC(" interleaved", "softmax scale ${gate_scale} " DEEPSEEK_GROUPS),
    .tensors = DEEPSEEK_TENSORS,
};

static const ConfigKey deepseek_v3_keys[] = {
    DEEPSEEK_SIZES("3", "2048", "256", "1", "8", "2.5"), POSITIONS("4096"), WHOLE_ROPE("10000"),
    FLAG_OR("rope_interleave", "interleaved", "true"), FLAG_OR("norm_topk_prob", "renormalized", "true"),
    INTEGER_OR("n_group", "groups", "8", "1"), INTEGER_OR("topk_group", "top_groups", "4", "1"),
    MUST("topk_method", "noaux_tc"), MUST("scoring_func", "sigmoid"),
    DECODER_TOKENS("0", "1", ""), TIED("false"),
};
const Family family_deepseek_v3 = {
    .types = "deepseek_v3=DeepseekV3", .title = "DeepSeek-V3: DeepSeek-AI 2024, arXiv:2412.19437.",
    .classes = DECODER_CLASSES, KEYS(deepseek_v3_keys), .irrelevant = DEEPSEEK_IRRELEVANT, .prefixes = "model.",
    .spec = DEEPSEEK_SPEC("[interleaved? interleaved]",
        "sigmoid corrected[renormalized? renormalized] scale ${gate_scale} " DEEPSEEK_GROUPS),
    .tensors = DEEPSEEK_TENSORS,
};
