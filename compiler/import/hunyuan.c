/* hunyuan.c: HunYuan, dense and with experts, whose queries and keys are normalized behind their rotation. */
#include "decoders.h"

/* transformers 5 has no other width of a head, and the makers' own code calls it attention_head_dim. With `alpha`, the
 * type dynamic is a fixed change of theta. */
#define HUNYUAN_KEYS                                                                                                \
    LLAMA_SIZES("silu"), KV_HEADS, INTEGER("head_dim attention_head_dim", "head_dim"),                              \
    DERIVED("width", "=heads * head_dim", NULL), POSITIONS("2048"), POSITIVE_OR(IN_ROPE("alpha"), "alpha", "", ""), \
    WHOLE_ROPE("10000"), RMS_EPS("1e-5"), ATTENTION_BIAS, MUST("mlp_bias", "false"), MUST("use_qk_norm", "true null"), \
    MUST("norm_type", "rms hf_rms"), MUST("use_rotary_pos_emb", "true"), MUST("position_embedding_xdrope", "false"), \
    MUST("use_cla", "false"), MUST("use_mla", "false"), MUST("add_classification_head", "false"),                   \
    DECODER_TOKENS("1", "2", "0"), TIED("false")
/* Members of rope_scaling that published configs have beside `alpha`, and keys of the makers' own code. */
#define HUNYUAN_IRRELEVANT                                                                                           \
    IN_ROPE("beta_fast") " " IN_ROPE("beta_slow") " " IN_ROPE("mscale") " " IN_ROPE("mscale_all_dim") " "            \
    "eod_token_id sep_token_id pad_id class_num pool_type mask_init_id num_media_embeds org_vocab_size im_start_id " \
    "im_end_id im_newline_id text_start_id text_end_id cla_share_factor dense_list xdrope_section kv_lora_rank "     \
    "q_lora_rank qk_rope_head_dim qk_nope_head_dim v_head_dim enable_lm_head_fp32 "
#define HUNYUAN_ATTENTION "[attention_bias? bias all]\nqk_norm rmsnorm after_rotation\nposition rope ${rope}\n"
#define HUNYUAN_TENSORS                                              \
    LLAMA_EMBEDDING LLAMA_NORMS LLAMA_PROJECTIONS                    \
    ".attention.query_norm.* .self_attn.query_layernorm.*\n"         \
    ".attention.key_norm.* .self_attn.key_layernorm.*\n"
#define HUNYUAN_CLASSES "ForCausalLM=logits Model=hidden ForSequenceClassification=classify"

static const ConfigKey hunyuan_v1_dense_keys[] = {HUNYUAN_KEYS};
const Family family_hunyuan_v1_dense = {
    .types = "hunyuan_v1_dense=HunYuanDenseV1", .title = "HunYuan, dense: Tencent 2025.", .classes = HUNYUAN_CLASSES,
    KEYS(hunyuan_v1_dense_keys),
    .irrelevant = HUNYUAN_IRRELEVANT "num_experts moe_topk moe_intermediate_size num_shared_expert use_mixed_mlp_moe "
        "moe_layer_num_skipped moe_drop_tokens moe_random_routing_dropped_token capacity_factor norm_topk_prob "
        "routed_scaling_factor group_limited_greedy n_group topk_group",
    .prefixes = "model.",
    .spec = LLAMA_SPEC("norm rmsnorm pre eps ${eps}\nbias none\n", "", HUNYUAN_ATTENTION, GATED_FFN, ""),
    .tensors = HUNYUAN_TENSORS LLAMA_FFN LLAMA_END,
};

/* All experts and the shared one have one width, whatever the makers' keys of widths say: the file's shapes tell. */
static const ConfigKey hunyuan_v1_moe_keys[] = {
    HUNYUAN_KEYS, DERIVED("expert_ff", "=d_ff", NULL),
    INTEGER_OR("num_experts num_local_experts", "experts", "1", NULL),
    {"moe_topk num_experts_per_tok", "top", KEY_LAYER_INTEGERS, "1", NULL, NULL},
    MUST("use_mixed_mlp_moe", "true"), MUST("moe_layer_num_skipped", "0"), MUST("norm_topk_prob", "true"),
    MUST("routed_scaling_factor", "1"), MUST("group_limited_greedy", "false"), MUST("moe_drop_tokens", "false"),
};
const Family family_hunyuan_v1_moe = {
    .types = "hunyuan_v1_moe=HunYuanMoEV1", .title = "HunYuan with experts: Tencent 2025.", .classes = HUNYUAN_CLASSES,
    KEYS(hunyuan_v1_moe_keys),
    .irrelevant = HUNYUAN_IRRELEVANT ROUTER_TRAINING "moe_intermediate_size num_shared_expert capacity_factor "
        "moe_random_routing_dropped_token n_group topk_group",
    .prefixes = "model.",
    .spec = LLAMA_SPEC("norm rmsnorm pre eps ${eps}\nbias none\n", "", HUNYUAN_ATTENTION,
                       EXPERTS_FFN("softmax renormalized", "shared_expert ${d_ff}\n"), ""),
    .tensors = HUNYUAN_TENSORS ".ffn.router.* .mlp.gate.wg.*\n"
        LISTED_EXPERTS("mlp", "gate_proj", "up_proj", "down_proj") SHARED_EXPERT("mlp.shared_mlp") LLAMA_END,
};
