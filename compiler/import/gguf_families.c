/* gguf_families.c: architectures of GGUF files. Keys and names of tensors are those of ggml-org/llama.cpp,
 * gguf-py/gguf/constants.py, and their meaning is that of its src/llama-model.cpp. */
#include "decoders.h"
#include "encoders.h"
#include "t5.h"

/* ---------------------------------------- keys */
#define GGUF_SIZES                                                                                              \
    INTEGER("embedding_length", "d_model"), INTEGER("block_count", "layers"),                                   \
    INTEGER("feed_forward_length", "d_ff"), INTEGER("attention.head_count", "heads"),                           \
    INTEGER("context_length", "positions")
#define GGUF_HEADS                                                                                              \
    INTEGER_OR("attention.head_count_kv", "kv_heads", "=heads", NULL),                                          \
    INTEGER_OR("attention.key_length", "head_dim", "=d_model / heads", NULL),                                   \
    INTEGER_OR("attention.value_length", "value_dim", "=d_model / heads", NULL),                                \
    REFUSED("value_dim!=$head_dim", "`attention.value_length` differs from `attention.key_length`"),            \
    DERIVED("width", "=heads * head_dim", NULL), MUST("attention.causal", "true")
#define GGUF_DENSE MUST("expert_count", "0"), MUST("expert_used_count", "0")
#define GGUF_EXPERTS INTEGER("expert_count", "experts"), INTEGER("expert_used_count", "top")
#define GGUF_EXPERT_WIDTH INTEGER("expert_feed_forward_length", "expert_ff")
#define GGUF_RMS REAL_OR("attention.layer_norm_rms_epsilon", "eps", NULL, NULL)
#define GGUF_TOKENS                                                                                             \
    TOKEN_OR("tokenizer.ggml.bos_token_id", "start", ""), TOKENS_OR("tokenizer.ggml.eos_token_id", "end", ""),  \
    TOKEN_OR("tokenizer.ggml.padding_token_id", "pad", ""), DERIVED("tied", "yes", "!#output.weight")
/* gguf.c sets `partial` of rope.dimension_count. A factor of 0 stands for none. */
#define GGUF_ROPE                                                                                               \
    POSITIVE_OR("rope.freq_base", "theta", "10000", NULL), INTEGER_OR("rope.dimension_count", "rotated", "", NULL), \
    WORD_OR("rope.scaling.type", "scaling", "linear", "none= linear yarn longrope"),                            \
    REAL_OR("rope.scaling.factor rope.scale_linear", "factor", "1", NULL), DERIVED("factor", "1", "factor=0"),  \
    INTEGER_OR("rope.scaling.original_context_length", "original", "=positions", NULL),                         \
    REAL_OR("rope.scaling.attn_factor", "amplitude", "", NULL),                                                 \
    REFUSED("scaling=yarn&amplitude&amplitude!=1", "`rope.scaling.attn_factor` beside scaling of type yarn"),   \
    REAL_OR("rope.scaling.yarn_beta_fast", "beta_fast", "32", NULL),                                            \
    REAL_OR("rope.scaling.yarn_beta_slow", "beta_slow", "1", NULL),                                             \
    DERIVED("range", "yes", "beta_fast!=32"), DERIVED("range", "yes", "beta_slow!=1"),                          \
    NOTED("scaling=yarn&range", "`rope.scaling.yarn_beta_fast` and `rope.scaling.yarn_beta_slow` are the ends " \
        "of the yarn's range, as in transformers; llama.cpp takes 32 and 1 for this architecture."),            \
    REAL_OR("rope.scaling.yarn_ext_factor", "ext", "1", NULL),                                                  \
    REFUSED("scaling=yarn&ext!=1", "`rope.scaling.yarn_ext_factor` is not 1"),                                  \
    REAL_OR("rope.scaling.yarn_attn_factor", "stretched", "", NULL),                                            \
    NOTED("scaling=yarn&stretched", "`rope.scaling.yarn_attn_factor` scales the rotated columns, as "           \
        "`attention_factor` of transformers does; llama.cpp computes that number of the factor."),              \
    REFUSED("long&!short", "tensor `rope_factors_long.weight` without `rope_factors_short.weight`"),            \
    REFUSED("short&!long", "tensor `rope_factors_short.weight` without `rope_factors_long.weight`"),            \
    REFUSED("long&divisors", "tensor `rope_freqs.weight` beside `rope_factors_long.weight`"),                   \
    REFUSED("scaling=longrope&!long", "`rope.scaling.type` is longrope, and no tensor has its divisors"),       \
    MUST("rope.scaling.finetuned", "true false"), DERIVED("stretch", "=positions / original", NULL)
/* Which matrices have a bias is told by the tensors of the first layer alone. */
#define GGUF_BIAS                                                                                               \
    DERIVED("bias", "yes", "#blk.0.attn_q.bias"), DERIVED("output_bias", "yes", "#blk.0.attn_output.bias"),     \
    DERIVED("ffn_bias", "yes", "#blk.0.ffn_up.bias")
/* A window of 0 rows is none. */
#define GGUF_WINDOW \
    {"attention.sliding_window", "window", KEY_NATURAL, "", NULL, NULL}, DERIVED("window", "", "window=0")
#define GGUF_IRRELEVANT "vocab_size tokenizer.ggml.bos_token_id tokenizer.ggml.eos_token_id " \
    "tokenizer.ggml.eot_token_id tokenizer.ggml.eom_token_id"

/* ---------------------------------------- lines of a spec */
#define THETA "theta ${theta}[partial? partial ${partial}]"
/* Divisors for texts of every length are both lists of a longrope that leaves amplitudes as they are. */
#define SCALING                                                                                                 \
    "[scaling=linear&factor!=1&!divisors&!long? scaling linear factor ${factor}]"                               \
    "[scaling=yarn&!divisors&!long? scaling yarn factor ${factor} original ${original}"                         \
    "[beta_fast!=32? beta_fast ${beta_fast}][beta_slow!=1? beta_slow ${beta_slow}]"                             \
    "[stretched? attention_factor ${stretched}]]"                                                               \
    "[divisors? scaling longrope factor 1 original ${positions} attention_factor 1 short${divisors} "           \
    "long${divisors}]"                                                                                          \
    "[long? scaling longrope factor ${stretch} original ${original}[amplitude? attention_factor ${amplitude}] " \
    "short${short} long${long}]"
#define GGUF_POSITION "position rope " THETA SCALING
#define BIAS "[bias&!output_bias? bias q k v][bias&output_bias? bias all]\n"
#define FFN(activation) \
    "ffn { d_ff ${d_ff}, activation " activation "[ffn_bias?, bias all] }\n"
/* The ffn of a mixture of experts, with the settings `router` of its router and the lines `more` behind them. */
#define EXPERTS(router, more)                                                                      \
    "ffn {\nd_ff ${expert_ff}, activation silu gated\nexperts ${experts}, top ${top}\nrouter " router "\n" more "}\n"
#define RMS_NORM "norm rmsnorm pre eps ${eps}\nbias none\n"
#define WINDOW "[window? window ${window}]\n"
#define OWN_WINDOW "[layer_type=sliding_attention&window? window ${window}]\n"

/* ---------------------------------------- tensors */
#define GGUF_TABLE "decoder.embedding.tokens.weight token_embd.weight\n@decoder.layers.{layer} blk.{layer}\n"
#define GGUF_NORMS ".attention.norm_in.* .attn_norm.*\n.ffn.norm_in.* .ffn_norm.*\n"
#define GGUF_PROJECTIONS                                                                 \
    ".attention.query.* .attn_q.*\n.attention.key.* .attn_k.*\n.attention.value.* .attn_v.*\n" \
    ".attention.output.* .attn_output.*\n"
#define GGUF_HEAD_NORMS ".attention.query_norm.* .attn_q_norm.*\n.attention.key_norm.* .attn_k_norm.*\n"
#define GGUF_PLAIN_FFN UP_DOWN("ffn_up", "ffn_down")
#define GGUF_FFN ".ffn.gate.* .ffn_gate.*\n" GGUF_PLAIN_FFN
#define GGUF_EXPERT_TENSORS                                                                              \
    ".ffn.router.* .ffn_gate_inp.*\n.ffn.experts.gate.* .ffn_gate_exps.*\n"                            \
    ".ffn.experts.up.* .ffn_up_exps.*\n.ffn.experts.down.* .ffn_down_exps.*\n"
#define GGUF_SHARED_TENSORS                                                                              \
    ".ffn.shared.gate.* .ffn_gate_shexp.*\n.ffn.shared.up.* .ffn_up_shexp.*\n"                         \
    ".ffn.shared.down.* .ffn_down_shexp.*\n.ffn.shared.router.* .ffn_gate_inp_shexp.*\n"
#define GGUF_END                                                         \
    "decoder.final_norm.* output_norm.*\n[!tied? head.weight output.weight]\n" \
    "buffer rope_freqs.weight rope_factors_short.weight rope_factors_long.weight\n"

#define GGUF_DECODER(array) .classes = "=logits", KEYS(array), .irrelevant = GGUF_IRRELEVANT, .prefixes = ""

/* ---------------------------------------- LLaMA, Mistral: neighbouring columns rotate together */
static const ConfigKey llama_keys[] = {
    GGUF_SIZES, GGUF_HEADS, GGUF_RMS, GGUF_TOKENS, GGUF_ROPE, GGUF_WINDOW, GGUF_BIAS,
    {"expert_count", "experts", KEY_NATURAL, "", NULL, NULL}, DERIVED("experts", "", "experts=0"),
    {"expert_used_count", "top", KEY_NATURAL, "0", NULL, NULL}, DERIVED("expert_ff", "=d_ff", NULL),
    REFUSED("experts&top=0", "`expert_count` needs `expert_used_count`"),
};
static const Family gguf_llama = {
    .types = "llama", .title = "LLaMA: Touvron et al. 2023, arXiv:2302.13971; Mistral: Jiang et al. 2023, "
        "arXiv:2310.06825; Mixtral: Jiang et al. 2024, arXiv:2401.04088.", GGUF_DECODER(llama_keys),
    .spec = LLAMA_SPEC(RMS_NORM, "", WINDOW BIAS GGUF_POSITION " interleaved\n",
        "$if !experts\n" FFN("silu gated") "$end\n$if experts\n" EXPERTS("softmax renormalized", "") "$end\n", ""),
    .tensors = GGUF_TABLE GGUF_NORMS GGUF_PROJECTIONS GGUF_EXPERT_TENSORS GGUF_FFN GGUF_END,
};

/* ---------------------------------------- Qwen2, Qwen3 */
static const ConfigKey qwen_keys[] = {
    GGUF_SIZES, GGUF_HEADS, GGUF_DENSE, GGUF_RMS, GGUF_TOKENS, GGUF_ROPE, GGUF_WINDOW, GGUF_BIAS,
};
static const Family gguf_qwen2 = {
    .types = "qwen2", .title = "Qwen2: Yang et al. 2024, arXiv:2407.10671.", GGUF_DECODER(qwen_keys),
    .spec = LLAMA_SPEC(RMS_NORM, "", WINDOW BIAS GGUF_POSITION "\n",
        FFN("silu gated"), ""),
    .tensors = GGUF_TABLE GGUF_NORMS GGUF_PROJECTIONS GGUF_FFN GGUF_END,
};
static const Family gguf_qwen3 = {
    .types = "qwen3", .title = "Qwen3: Yang et al. 2025, arXiv:2505.09388.", GGUF_DECODER(qwen_keys),
    .spec = LLAMA_SPEC(RMS_NORM, "", WINDOW BIAS
        "qk_norm rmsnorm\n" GGUF_POSITION "\n", FFN("silu gated"), ""),
    .tensors = GGUF_TABLE GGUF_NORMS GGUF_PROJECTIONS GGUF_HEAD_NORMS GGUF_FFN GGUF_END,
};

/* ---------------------------------------- mixtures of experts; in these files, no layer is dense */
static const ConfigKey qwen2moe_keys[] = {
    GGUF_SIZES, GGUF_HEADS, GGUF_EXPERTS, GGUF_EXPERT_WIDTH, GGUF_RMS, GGUF_TOKENS, GGUF_ROPE, GGUF_WINDOW, GGUF_BIAS,
    INTEGER("expert_shared_feed_forward_length", "shared"),
};
static const Family gguf_qwen2moe = {
    .types = "qwen2moe", .title = "Qwen2-MoE: Yang et al. 2024, arXiv:2407.10671.", GGUF_DECODER(qwen2moe_keys),
    .spec = LLAMA_SPEC(RMS_NORM, "", WINDOW BIAS GGUF_POSITION "\n",
        EXPERTS("softmax", "shared_expert ${shared} gated\n"), ""),
    .tensors = GGUF_TABLE GGUF_NORMS GGUF_PROJECTIONS GGUF_EXPERT_TENSORS GGUF_SHARED_TENSORS GGUF_END,
};

static const ConfigKey qwen3moe_keys[] = {
    GGUF_SIZES, GGUF_HEADS, GGUF_EXPERTS, GGUF_EXPERT_WIDTH, GGUF_RMS, GGUF_TOKENS, GGUF_ROPE, GGUF_WINDOW, GGUF_BIAS,
};
static const Family gguf_qwen3moe = {
    .types = "qwen3moe", .title = "Qwen3-MoE: Yang et al. 2025, arXiv:2505.09388.", GGUF_DECODER(qwen3moe_keys),
    .spec = LLAMA_SPEC(RMS_NORM, "", WINDOW BIAS "qk_norm rmsnorm\n" GGUF_POSITION "\n",
        EXPERTS("softmax renormalized", ""), ""),
    .tensors = GGUF_TABLE GGUF_NORMS GGUF_PROJECTIONS GGUF_HEAD_NORMS GGUF_EXPERT_TENSORS GGUF_END,
};

static const ConfigKey olmoe_keys[] = {
    GGUF_SIZES, GGUF_HEADS, GGUF_EXPERTS, DERIVED("expert_ff", "=d_ff", NULL), GGUF_RMS, GGUF_TOKENS, GGUF_ROPE,
    GGUF_BIAS,
};
static const Family gguf_olmoe = {
    .types = "olmoe", .title = "OLMoE: Muennighoff et al. 2024, arXiv:2409.02060.", GGUF_DECODER(olmoe_keys),
    .spec = LLAMA_SPEC(RMS_NORM, "",
        BIAS "qk_norm rmsnorm all_heads\n" GGUF_POSITION "\n", EXPERTS("softmax", ""), ""),
    .tensors = GGUF_TABLE GGUF_NORMS GGUF_PROJECTIONS GGUF_HEAD_NORMS GGUF_EXPERT_TENSORS GGUF_END,
};

static const ConfigKey granitemoe_keys[] = {
    GGUF_SIZES, GGUF_HEADS, GGUF_EXPERTS, DERIVED("expert_ff", "=d_ff", NULL), GGUF_RMS, GGUF_TOKENS, GGUF_ROPE,
    GGUF_BIAS, REAL_OR("embedding_scale", "embedding_scale", "1", NULL), REAL_OR("logit_scale", "divisor", "1", NULL),
    REAL_OR("residual_scale", "residual_scale", "1", NULL), REAL_OR("attention.scale", "score_scale", "", NULL),
    REFUSED("divisor=0", "`logit_scale` is 0, and the logits are divided by it"),
    {"expert_shared_feed_forward_length", "shared", KEY_NATURAL, "0", NULL, NULL}, DERIVED("shared", "", "shared=0"),
};
static const Family gguf_granitemoe = {
    .types = "granitemoe", .title = "Granite MoE: Granite Team, IBM 2024.", GGUF_DECODER(granitemoe_keys),
    .spec = LLAMA_SPEC(RMS_NORM "[residual_scale!=1? residual scale ${residual_scale}]\n",
        "[embedding_scale!=1? embedding scale ${embedding_scale}]\n",
        BIAS "[score_scale? scale ${score_scale}]\n" GGUF_POSITION " interleaved\n",
        EXPERTS("softmax renormalized", "[shared? shared_expert ${shared}]\n"), "[divisor!=1? scale 1/${divisor}]"),
    .tensors = GGUF_TABLE GGUF_NORMS GGUF_PROJECTIONS GGUF_EXPERT_TENSORS GGUF_SHARED_TENSORS GGUF_END,
};

/* The bounds of the activation, and which layers have the window, are not in the file; nor is the range of the yarn
 * rounded. */
static const ConfigKey gpt_oss_keys[] = {
    GGUF_SIZES, GGUF_HEADS, GGUF_EXPERTS, GGUF_EXPERT_WIDTH, GGUF_RMS, GGUF_TOKENS, GGUF_ROPE, GGUF_BIAS,
    INTEGER("attention.sliding_window", "window"),
    LAYER_TYPES(TYPES, TYPES),
    DERIVED("router_bias", "yes", "#blk.0.ffn_gate_inp.bias"), DERIVED("expert_bias", "yes", "#blk.0.ffn_up_exps.bias"),
    NOTED("scaling=yarn", "The range of the yarn is not rounded to whole columns, as the model was trained; llama.cpp "
        "rounds it."),
};
static const Family gguf_gpt_oss = {
    .types = "gpt-oss", .title = "GPT-OSS: OpenAI 2025, arXiv:2508.10925.", GGUF_DECODER(gpt_oss_keys),
    .spec = LLAMA_SPEC(RMS_NORM, "",
        OWN_WINDOW BIAS "sink learned\nposition rope " THETA SCALING "[scaling=yarn? untruncated]\n",
        "ffn {\nd_ff ${expert_ff}, activation quick_gelu gated limit 7 plus_one\nexperts ${experts}, top ${top}\n"
        "router softmax renormalized[router_bias? bias]\n[expert_bias? bias all]\n}\n", ""),
    .tensors = GGUF_TABLE
        ".attention.norm_in.* .attn_norm.*\n.ffn.norm_in.* .post_attention_norm.*\n.attention.sink.weight "
        ".attn_sinks.weight\n" GGUF_PROJECTIONS GGUF_EXPERT_TENSORS GGUF_END,
};

/* ---------------------------------------- Gemma, Gemma 2, Gemma 3: weights of norms have their 1 in the file */
#define GELU_FFN FFN("gelu_tanh gated")
#define ROOT_SCALE "embedding scale sqrt(d_model)\n"
#define BOTH_NORMS "norm rmsnorm both eps ${eps}\nbias none\n"
#define CAPS                                                                \
    POSITIVE_OR("attn_logit_softcapping", "softcap", "", NULL),             \
    POSITIVE_OR("final_logit_softcapping", "head_softcap", "", NULL)
#define CAPPED_HEAD "[head_softcap? softcap ${head_softcap}]"
#define BOTH_NORM_TENSORS                                                                          \
    ".attention.norm_in.* .attn_norm.*\n.attention.norm_out.* .post_attention_norm.*\n"            \
    ".ffn.norm_in.* .ffn_norm.*\n.ffn.norm_out.* .post_ffw_norm.*\n"
static const ConfigKey gemma_keys[] = {GGUF_SIZES, GGUF_HEADS, GGUF_DENSE, GGUF_RMS, GGUF_TOKENS, GGUF_ROPE, GGUF_BIAS};
static const Family gguf_gemma = {
    .types = "gemma", .title = "Gemma: Mesnard et al. 2024, arXiv:2403.08295.", GGUF_DECODER(gemma_keys),
    .spec = LLAMA_SPEC(RMS_NORM, ROOT_SCALE, BIAS GGUF_POSITION "\n", GELU_FFN, ""),
    .tensors = GGUF_TABLE GGUF_NORMS GGUF_PROJECTIONS GGUF_FFN GGUF_END,
};

/* The models of 27B scale scores by the width of a head that d_model would give; they are known by their layers. */
static const ConfigKey gemma2_keys[] = {
    GGUF_SIZES, GGUF_HEADS, GGUF_DENSE, GGUF_RMS, GGUF_TOKENS, GGUF_ROPE, GGUF_BIAS, CAPS,
    INTEGER_OR("attention.sliding_window", "window", "4096", NULL),
    LAYER_TYPES(TYPES, TYPES),
    DERIVED("scalar", "=head_dim", NULL), DERIVED("scalar", "=d_model / heads", "layers=46"),
};
static const Family gguf_gemma2 = {
    .types = "gemma2", .title = "Gemma 2: Riviere et al. 2024, arXiv:2408.00118.", GGUF_DECODER(gemma2_keys),
    .spec = LLAMA_SPEC(BOTH_NORMS, ROOT_SCALE,
        OWN_WINDOW BIAS "scale 1/sqrt(${scalar})\n[softcap? softcap ${softcap}]\n"
        GGUF_POSITION "\n", GELU_FFN, CAPPED_HEAD),
    .tensors = GGUF_TABLE BOTH_NORM_TENSORS GGUF_PROJECTIONS GGUF_FFN GGUF_END,
};

static const ConfigKey gemma3_keys[] = {
    GGUF_SIZES, GGUF_HEADS, GGUF_DENSE, GGUF_RMS, GGUF_TOKENS, GGUF_ROPE, GGUF_BIAS, CAPS, GGUF_WINDOW,
    POSITIVE_OR("rope.freq_base_swa", "local_theta", "10000", NULL), DERIVED("every", "6", NULL),
    LAYER_TYPES("every every sliding_attention full_attention", TYPES),
    DERIVED("scalar", "=head_dim", NULL), DERIVED("scalar", "=d_model / heads", "layers=62"),
};
static const Family gguf_gemma3 = {
    .types = "gemma3", .title = "Gemma 3: Kamath et al. 2025, arXiv:2503.19786 (the text model).",
    GGUF_DECODER(gemma3_keys),
    .spec = LLAMA_SPEC(BOTH_NORMS, ROOT_SCALE,
        OWN_WINDOW BIAS "scale 1/sqrt(${scalar})\n[softcap? softcap ${softcap}]\nqk_norm rmsnorm\n"
        "[layer_type=sliding_attention? position rope theta ${local_theta}]\n"
        "[layer_type=full_attention? " GGUF_POSITION "]\n", GELU_FFN, CAPPED_HEAD),
    .tensors = GGUF_TABLE BOTH_NORM_TENSORS GGUF_PROJECTIONS GGUF_HEAD_NORMS GGUF_FFN GGUF_END,
};

/* ---------------------------------------- Phi-3: query, key and value lie together, gate and up as well */
static const ConfigKey phi3_keys[] = {
    GGUF_SIZES, GGUF_HEADS, GGUF_DENSE, GGUF_RMS, GGUF_TOKENS, GGUF_ROPE, GGUF_WINDOW,
    DERIVED("keys", "=kv_heads * head_dim", NULL), DERIVED("key_end", "=keys + width", NULL),
    DERIVED("value_end", "=keys + keys + width", NULL), DERIVED("d_ff_twice", "=d_ff * 2", NULL),
};
static const Family gguf_phi3 = {
    .types = "phi3", .title = "Phi-3: Abdin et al. 2024, arXiv:2404.14219.", GGUF_DECODER(phi3_keys),
    .spec = LLAMA_SPEC(RMS_NORM, "", WINDOW GGUF_POSITION "\n", FFN("silu gated"), ""),
    .tensors = GGUF_TABLE GGUF_NORMS
        QKV_ROWS("weight", "attn_qkv.weight", "${width}", "${key_end}", "${value_end}")
        ".attention.output.* .attn_output.*\n"
        ".ffn.gate.weight .ffn_up.weight rows 0..${d_ff}\n"
        ".ffn.up.weight .ffn_up.weight rows ${d_ff}..${d_ff_twice}\n"
        ".ffn.down.* .ffn_down.*\n" GGUF_END,
};

/* ---------------------------------------- StarCoder2 */
static const ConfigKey starcoder2_keys[] = {
    GGUF_SIZES, GGUF_HEADS, GGUF_DENSE, REAL_OR("attention.layer_norm_epsilon", "eps", NULL, NULL), GGUF_TOKENS,
    GGUF_ROPE, GGUF_WINDOW, GGUF_BIAS,
};
static const Family gguf_starcoder2 = {
    .types = "starcoder2", .title = "StarCoder2: Lozhkov et al. 2024, arXiv:2402.19173.",
    GGUF_DECODER(starcoder2_keys),
    .spec = LLAMA_SPEC("norm layernorm pre eps ${eps}\nbias none\n", "",
        WINDOW BIAS GGUF_POSITION "\n",
        FFN("gelu_tanh"), ""),
    .tensors = GGUF_TABLE GGUF_NORMS GGUF_PROJECTIONS GGUF_PLAIN_FFN GGUF_END,
};

/* ---------------------------------------- DeepSeek-V2, V3: latent attention; the first layers are dense */
/* Older files have one matrix of keys and values, `attn_kv_b`. Newer files have a matrix of keys, `attn_k_b`, whose
 * heads are transposed, and a matrix of values, `attn_v_b`, and state the length of a head's key under another name.
 * gguf.c sets `mscale`, by which DeepSeek multiplies the scores of a yarn. */
static const ConfigKey deepseek2_keys[] = {
    GGUF_SIZES, GGUF_EXPERTS, GGUF_EXPERT_WIDTH, GGUF_RMS, GGUF_TOKENS, GGUF_ROPE, MUST("attention.causal", "true"),
    {"attention.head_count_kv", "kv_heads", KEY_NATURAL, "", NULL, NULL},
    INTEGER("attention.kv_lora_rank", "latent"),
    {"attention.q_lora_rank", "latent_query", KEY_NATURAL, "", NULL, NULL},
    DERIVED("latent_query", "", "latent_query=0"), INTEGER("rope.dimension_count", "rope_dim"),
    INTEGER("attention.key_length", "key_dim"), INTEGER("attention.value_length", "value_dim"),
    INTEGER_OR("attention.key_length_mla", "key_dim", "$key_dim", NULL),
    INTEGER_OR("attention.value_length_mla", "value_dim", "$value_dim", NULL),
    DERIVED("head_dim", "=key_dim - rope_dim", NULL), DERIVED("both_dim", "=head_dim + value_dim", NULL),
    DERIVED("compressed", "=latent + rope_dim", NULL),
    {"leading_dense_block_count", "first_sparse", KEY_NATURAL, "0", NULL, NULL},
    {"", "mlp", KEY_LAYER_TYPES, "from first_sparse dense sparse", NULL, "dense sparse"},
    {"expert_shared_count", "shared_experts", KEY_NATURAL, "0", NULL, NULL},
    DERIVED("shared", "=expert_ff * shared_experts", NULL), DERIVED("shared", "", "shared_experts=0"),
    INTEGER_OR("expert_group_count", "groups", "1", NULL),
    INTEGER_OR("expert_group_used_count", "top_groups", "1", NULL),
    REAL_OR("expert_weights_scale", "gate_scale", "1", NULL), DERIVED("gate_scale", "1", "gate_scale=0"),
    FLAG_OR("expert_weights_norm", "renormalized", "false"),
    {"expert_gating_func", "gating", KEY_NATURAL, "0", NULL, NULL}, DERIVED("router", "softmax", "gating=0"),
    DERIVED("router", "softmax", "gating=1"), DERIVED("router", "sigmoid", "gating=2"),
    REFUSED("!router", "`expert_gating_func` is neither 1, softmax, nor 2, sigmoid"),
    REAL_OR("rope.scaling.yarn_log_multiplier", "log_multiplier", "0", NULL),
    REFUSED("scaling!=yarn&log_multiplier!=0", "`rope.scaling.yarn_log_multiplier` without scaling of type yarn"),
    REFUSED("log_multiplier!=0&stretched", "`rope.scaling.yarn_attn_factor` beside `rope.scaling.yarn_log_multiplier`"),
    NOTED("groups!=1&router=softmax", "A group of experts is chosen by its best expert, as DeepSeek-V2 does; llama.cpp "
        "adds up the two best."),
};
static const Family gguf_deepseek2 = {
    .types = "deepseek2", .title = "DeepSeek-V2, V3: DeepSeek-AI 2024, arXiv:2405.04434, arXiv:2412.19437.",
    GGUF_DECODER(deepseek2_keys),
    .spec = "d_model ${d_model}\nvocab ${vocab}\n" RMS_NORM TOKENS_SPEC STACK_OF_LAYERS("decoder", "layers", "",
        LATENT_ATTENTION(" interleaved theta ${theta}" SCALING "[mscale? attention_factor 1]")
        "$if mlp=dense\n" FFN("silu gated") "$end\n"
        "$if mlp=sparse\n" EXPERTS("${router}[corrected? corrected][renormalized? renormalized]"
            "[gate_scale!=1? scale ${gate_scale}]"
            "[groups!=1? groups ${groups} top_groups ${top_groups}]", "[shared? shared_expert ${shared}]\n") "$end\n")
        "head logits[tied? tied]\n",
    .tensors = GGUF_TABLE GGUF_NORMS
        LATENT_TENSORS("attn_q_a", "attn_q_a_norm", "attn_q_b", "attn_q", "attn_kv_a_mqa", "attn_kv_a_norm")
        "$if split_heads\n"
        ".attention.key.* .attn_k_b.*\n.attention.value.* .attn_v_b.*\nbuffer blk.{layer}.attn_kv_b.weight\n"
        "$end\n$if !split_heads\n"
        LATENT_KEY_VALUE("attn_kv_b")
        "$end\n"
        ".attention.output.* .attn_output.*\n.ffn.router.correction .exp_probs_b.bias\n"
        GGUF_EXPERT_TENSORS GGUF_SHARED_TENSORS GGUF_FFN GGUF_END,
};

/* ---------------------------------------- BERT: a row for each text, as `pooling_type` says */
#define GGUF_POOL                                                                                               \
    {"pooling_type", "pooling", KEY_NATURAL, "0", NULL, NULL},                                                  \
    REFUSED("pooling=4", "`pooling_type` is 4, for ranks; 0 to 3 are understood"),                              \
    DERIVED("pool", "mean", "pooling=1"), DERIVED("pool", "cls", "pooling=2"),                                  \
    DERIVED("pool", "last", "pooling=3"),                                                                       \
    NOTED("pool", "The pooled row has length 1, as the embeddings of llama.cpp have; without `l2` in the "      \
        "spec's head it has the length that the model gives it.")
static const ConfigKey bert_keys[] = {
    GGUF_SIZES, REAL_OR("attention.layer_norm_epsilon", "eps", NULL, NULL), MUST("attention.causal", "false"),
    TOKEN_OR("tokenizer.ggml.padding_token_id", "pad", "0"), DERIVED("activation", "gelu", NULL),
    GGUF_POOL,
    DERIVED("learned", "yes", NULL),
};
static const Family gguf_bert = {
    .types = "bert", .title = "BERT: Devlin et al. 2019, arXiv:1810.04805.", .classes = "=hidden", KEYS(bert_keys),
    .irrelevant = GGUF_IRRELEVANT, .prefixes = "",
    .spec = ENCODER_SPEC("", "[#token_types.weight? segments ${#token_types.weight}]\n", "", "layers", "",
        "[pool? head pool ${pool} l2]\n"),
    .tensors = "encoder.embedding.tokens.weight token_embd.weight\n"
        "encoder.embedding.positions.weight position_embd.weight\n"
        "encoder.embedding.segments.weight token_types.weight\n"
        "encoder.embedding.norm.* token_embd_norm.*\n"
        "@encoder.layers.{layer} blk.{layer}\n" GGUF_PROJECTIONS
        ".attention.norm_out.* .attn_output_norm.*\n" GGUF_PLAIN_FFN ".ffn.norm_out.* .layer_output_norm.*\n",
};

/* ---------------------------------------- Nomic Embed */
static const ConfigKey nomic_bert_keys[] = {
    GGUF_SIZES, REAL_OR("attention.layer_norm_epsilon", "eps", NULL, NULL), MUST("attention.causal", "false"),
    INTEGER_OR("attention.head_count_kv", "kv_heads", "=heads", NULL),
    REFUSED("kv_heads!=$heads", "`attention.head_count_kv` is not `attention.head_count`"),
    INTEGER_OR("attention.key_length", "head_dim", "=d_model / heads", NULL),
    INTEGER_OR("attention.value_length", "value_dim", "$head_dim", NULL),
    REFUSED("value_dim!=$head_dim", "`attention.value_length` differs from `attention.key_length`"),
    DERIVED("width", "=heads * head_dim", NULL), TOKEN_OR("tokenizer.ggml.padding_token_id", "pad", "0"),
    GGUF_ROPE, GGUF_POOL,
};
static const Family gguf_nomic_bert = {
    .types = "nomic-bert", .title = "Nomic Embed: Nussbaum et al. 2024, arXiv:2402.01613.", .classes = "=hidden",
    KEYS(nomic_bert_keys), .irrelevant = GGUF_IRRELEVANT, .prefixes = "",
    .spec = ENCODER_OF("encoder", "post", "",
        "[#token_types.weight? segments ${#token_types.weight}]\nembedding normalized\n", "layers",
        "attention self {\nheads ${heads}\n[width!=$d_model? head_dim ${head_dim}]\nmask padding\n"
        "bias none\n" GGUF_POSITION "\n}\nffn { d_ff ${d_ff}, activation silu gated, bias none }\n")
        "[pool? head pool ${pool} l2]\n",
    .tensors = "encoder.embedding.tokens.weight token_embd.weight\n"
        "encoder.embedding.segments.weight token_types.weight\n"
        "encoder.embedding.norm.* token_embd_norm.*\n"
        "@encoder.layers.{layer} blk.{layer}\n"
        QKV_ROWS("weight", "attn_qkv.weight", "${width}", "2*${width}", "3*${width}")
        ".attention.output.* .attn_output.*\n.attention.norm_out.* .attn_output_norm.*\n"
        GGUF_FFN ".ffn.norm_out.* .layer_output_norm.*\n",
};

/* ---------------------------------------- T5: no key states the largest distance of buckets, which is 128 */
static const ConfigKey gguf_t5_keys[] = {
    GGUF_SIZES, GGUF_RMS, DERIVED("decoder", "yes", "type=t5"), DERIVED("task", "encoder", "!decoder"),
    INTEGER("attention.key_length", "head_dim"), INTEGER_OR("attention.value_length", "value_dim", "$head_dim", NULL),
    REFUSED("value_dim!=$head_dim", "`attention.value_length` differs from `attention.key_length`"),
    INTEGER_OR("attention.head_count_kv", "kv_heads", "=heads", NULL),
    REFUSED("kv_heads!=$heads", "`attention.head_count_kv` is not `attention.head_count`"),
    INTEGER_OR("decoder_block_count", "decoder_layers", "=layers", NULL),
    INTEGER("attention.relative_buckets_count", "buckets"), DERIVED("distance", "128", NULL),
    TOKEN_OR("decoder_start_token_id", "start", "0"), TOKENS_OR("tokenizer.ggml.eos_token_id", "end", ""),
    TOKEN_OR("tokenizer.ggml.padding_token_id", "pad", ""),
    DERIVED("activation", "relu", NULL), DERIVED("gated", "yes", "#enc.blk.0.ffn_gate.weight"),
    DERIVED("activation", "gelu_tanh", "gated"),
    DERIVED("per_layer", "yes", "#enc.blk.1.attn_rel_b.weight"),
    DERIVED("per_layer", "yes", "#dec.blk.1.attn_rel_b.weight"),
    DERIVED("apart", "yes", "decoder&#output.weight<>token_embd.weight"), DERIVED("scaled", "yes", "!apart"),
    NOTED("decoder&scaled", "The head is the table of tokens, so that logits are divided by the square root of "
        "d_model, as T5 does and llama.cpp does not."),
};
#define GGUF_T5_ATTENTION(name, from)                                                         \
    "." name ".norm_in.weight ." from "_norm.weight\n." name ".query.weight ." from "_q.weight\n" \
    "." name ".key.weight ." from "_k.weight\n." name ".value.weight ." from "_v.weight\n"        \
    "." name ".output.weight ." from "_o.weight\n"
#define GGUF_T5_STACK(stack, from)                                                                    \
    stack ".final_norm.weight " from ".output_norm.weight\n"                                          \
    "[!per_layer? " stack ".relative.weight " from ".blk.0.attn_rel_b.weight]\n"                      \
    "@" stack ".layers.{layer} " from ".blk.{layer}\n[per_layer? .attention.relative.weight .attn_rel_b.weight]\n" \
    GGUF_T5_ATTENTION("attention", "attn")                                                            \
    ".ffn.norm_in.weight .ffn_norm.weight\n[gated? .ffn.gate.weight .ffn_gate.weight]\n"              \
    ".ffn.up.weight .ffn_up.weight\n.ffn.down.weight .ffn_down.weight\n"
static const Family gguf_t5 = {
    .types = "t5 t5encoder", .title = "T5: Raffel et al. 2020, arXiv:1910.10683; UMT5: Chung et al. 2023, "
        "arXiv:2304.09151.", .classes = "=logits", KEYS(gguf_t5_keys),
    .irrelevant = GGUF_IRRELEVANT " attention.layer_norm_epsilon", .prefixes = "",
    .spec = T5_SPEC("[per_layer? per_layer]", ""),
    .tensors = "[decoder&!apart? embedding.tokens.weight token_embd.weight]\n"
        "[decoder&apart? decoder.embedding.tokens.weight token_embd.weight]\n"
        "[decoder&apart? head.weight output.weight]\n"
        "encoder.embedding.tokens.weight token_embd.weight\n" GGUF_T5_STACK("encoder", "enc")
        "$if decoder\n" GGUF_T5_STACK("decoder", "dec") GGUF_T5_ATTENTION("cross_attention", "cross_attn") "$end\n"
        "buffer dec.blk.{layer}.cross_attn_rel_b.weight\n",
};

const Family *const gguf_families[] = {
    &gguf_llama, &gguf_qwen2, &gguf_qwen3, &gguf_gemma, &gguf_gemma2, &gguf_gemma3, &gguf_phi3, &gguf_starcoder2,
    &gguf_bert, &gguf_qwen2moe, &gguf_qwen3moe, &gguf_olmoe, &gguf_granitemoe, &gguf_gpt_oss,
    &gguf_deepseek2, &gguf_nomic_bert, &gguf_t5, NULL,
};
