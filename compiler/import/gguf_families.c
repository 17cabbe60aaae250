/* gguf_families.c: architectures of GGUF files. Keys and names of tensors are those of ggml-org/llama.cpp,
 * gguf-py/gguf/constants.py, and their meaning is that of its src/llama-model.cpp. */
#include "decoders.h"
#include "encoders.h"

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
    REAL_OR("rope.freq_base", "theta", "10000", NULL), INTEGER_OR("rope.dimension_count", "rotated", "", NULL), \
    WORD_OR("rope.scaling.type", "scaling", "linear", "none= linear yarn longrope"),                            \
    REAL_OR("rope.scaling.factor rope.scale_linear", "factor", "1", NULL), DERIVED("factor", "1", "factor=0"),  \
    INTEGER_OR("rope.scaling.original_context_length", "original", "=positions", NULL),                         \
    REAL_OR("rope.scaling.attn_factor", "amplitude", "", NULL),                                                 \
    REFUSED("scaling=yarn&amplitude&amplitude!=1", "`rope.scaling.attn_factor` beside scaling of type yarn"),   \
    REFUSED("long&!short", "tensor `rope_factors_long.weight` without `rope_factors_short.weight`"),            \
    REFUSED("short&!long", "tensor `rope_factors_short.weight` without `rope_factors_long.weight`"),            \
    REFUSED("long&divisors", "tensor `rope_freqs.weight` beside `rope_factors_long.weight`"),                   \
    REFUSED("scaling=longrope&!long", "`rope.scaling.type` is longrope, and no tensor has its divisors"),       \
    MUST("rope.scaling.finetuned", "true false"), DERIVED("stretch", "=positions / original", NULL)
/* Which matrices have a bias is told by the tensors of the first layer alone. */
#define GGUF_BIAS                                                                                               \
    DERIVED("bias", "yes", "#blk.0.attn_q.bias"), DERIVED("output_bias", "yes", "#blk.0.attn_output.bias"),     \
    DERIVED("ffn_bias", "yes", "#blk.0.ffn_up.bias")
#define GGUF_WINDOW INTEGER_OR("attention.sliding_window", "window", "", NULL)
#define GGUF_IRRELEVANT "vocab_size tokenizer.ggml.bos_token_id tokenizer.ggml.eos_token_id"

/* ---------------------------------------- lines of a spec */
#define THETA "theta ${theta}[partial? partial ${partial}]"
/* Divisors for texts of every length are both lists of a longrope that leaves amplitudes as they are. */
#define SCALING                                                                                                 \
    "[scaling=linear&factor!=1&!divisors&!long? scaling linear factor ${factor}]"                               \
    "[scaling=yarn&!divisors&!long? scaling yarn factor ${factor} original ${original}]"                        \
    "[divisors? scaling longrope factor 1 original ${positions} attention_factor 1 short${divisors} "           \
    "long${divisors}]"                                                                                          \
    "[long? scaling longrope factor ${stretch} original ${original}[amplitude? attention_factor ${amplitude}] " \
    "short${short} long${long}]"
#define GGUF_POSITION "position rope " THETA SCALING
#define BIAS "[bias&!output_bias? bias q k v][bias&output_bias? bias all]\n"
/* gguf.c sets the precisions. */
#define MODEL_PRECISION "[precision? precision weights ${precision}]\n"
#define TABLE_PRECISION "[table_precision? precision weights ${table_precision}]\n"
#define LAYER_PRECISION "[layer_precision? precision weights ${layer_precision}]\n"
#define FFN(activation)                                         \
    "ffn { d_ff ${d_ff}, activation " activation                \
    "[ffn_bias?, bias all][ffn_precision?, precision weights ${ffn_precision}] }\n"
/* The ffn of a mixture of experts, with the settings `router` of its router and the lines `more` behind them. */
#define EXPERTS(router, more)                                                                      \
    "ffn {\nd_ff ${expert_ff}, activation silu gated\nexperts ${experts}, top ${top}\nrouter " router "\n" more \
    "[ffn_precision? precision weights ${ffn_precision}]\n}\n"
#define RMS_NORM "norm rmsnorm pre eps ${eps}\nbias none\n" MODEL_PRECISION
#define WINDOW "[window? window ${window}]\n"
#define OWN_WINDOW "[layer_type=sliding_attention&window? window ${window}]\n"

/* ---------------------------------------- tensors */
#define GGUF_TABLE "decoder.embedding.tokens.weight token_embd.weight\n@decoder.layers.{layer} blk.{layer}\n"
#define GGUF_NORMS ".attention.norm_in.* .attn_norm.*\n.ffn.norm_in.* .ffn_norm.*\n"
#define GGUF_PROJECTIONS                                                                 \
    ".attention.query.* .attn_q.*\n.attention.key.* .attn_k.*\n.attention.value.* .attn_v.*\n" \
    ".attention.output.* .attn_output.*\n"
#define GGUF_HEAD_NORMS ".attention.query_norm.* .attn_q_norm.*\n.attention.key_norm.* .attn_k_norm.*\n"
#define GGUF_PLAIN_FFN ".ffn.up.* .ffn_up.*\n.ffn.down.* .ffn_down.*\n"
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
    .spec = LLAMA_SPEC(RMS_NORM, TABLE_PRECISION, WINDOW LAYER_PRECISION BIAS GGUF_POSITION " interleaved\n",
        "$if !experts\n" FFN("silu gated") "$end\n$if experts\n" EXPERTS("softmax renormalized", "") "$end\n", ""),
    .tensors = GGUF_TABLE GGUF_NORMS GGUF_PROJECTIONS GGUF_EXPERT_TENSORS GGUF_FFN GGUF_END,
};

/* ---------------------------------------- Qwen2, Qwen3 */
static const ConfigKey qwen_keys[] = {
    GGUF_SIZES, GGUF_HEADS, GGUF_DENSE, GGUF_RMS, GGUF_TOKENS, GGUF_ROPE, GGUF_WINDOW, GGUF_BIAS,
};
static const Family gguf_qwen2 = {
    .types = "qwen2", .title = "Qwen2: Yang et al. 2024, arXiv:2407.10671.", GGUF_DECODER(qwen_keys),
    .spec = LLAMA_SPEC(RMS_NORM, TABLE_PRECISION, WINDOW LAYER_PRECISION BIAS GGUF_POSITION "\n",
        FFN("silu gated"), ""),
    .tensors = GGUF_TABLE GGUF_NORMS GGUF_PROJECTIONS GGUF_FFN GGUF_END,
};
static const Family gguf_qwen3 = {
    .types = "qwen3", .title = "Qwen3: Yang et al. 2025, arXiv:2505.09388.", GGUF_DECODER(qwen_keys),
    .spec = LLAMA_SPEC(RMS_NORM, TABLE_PRECISION, WINDOW LAYER_PRECISION BIAS
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
    .spec = LLAMA_SPEC(RMS_NORM, TABLE_PRECISION, WINDOW LAYER_PRECISION BIAS GGUF_POSITION "\n",
        EXPERTS("softmax", "shared_expert ${shared} gated\n"), ""),
    .tensors = GGUF_TABLE GGUF_NORMS GGUF_PROJECTIONS GGUF_EXPERT_TENSORS GGUF_SHARED_TENSORS GGUF_END,
};

static const ConfigKey qwen3moe_keys[] = {
    GGUF_SIZES, GGUF_HEADS, GGUF_EXPERTS, GGUF_EXPERT_WIDTH, GGUF_RMS, GGUF_TOKENS, GGUF_ROPE, GGUF_WINDOW, GGUF_BIAS,
};
static const Family gguf_qwen3moe = {
    .types = "qwen3moe", .title = "Qwen3-MoE: Yang et al. 2025, arXiv:2505.09388.", GGUF_DECODER(qwen3moe_keys),
    .spec = LLAMA_SPEC(RMS_NORM, TABLE_PRECISION, WINDOW LAYER_PRECISION BIAS "qk_norm rmsnorm\n" GGUF_POSITION "\n",
        EXPERTS("softmax renormalized", ""), ""),
    .tensors = GGUF_TABLE GGUF_NORMS GGUF_PROJECTIONS GGUF_HEAD_NORMS GGUF_EXPERT_TENSORS GGUF_END,
};

static const ConfigKey olmoe_keys[] = {
    GGUF_SIZES, GGUF_HEADS, GGUF_EXPERTS, DERIVED("expert_ff", "=d_ff", NULL), GGUF_RMS, GGUF_TOKENS, GGUF_ROPE,
    GGUF_BIAS,
};
static const Family gguf_olmoe = {
    .types = "olmoe", .title = "OLMoE: Muennighoff et al. 2024, arXiv:2409.02060.", GGUF_DECODER(olmoe_keys),
    .spec = LLAMA_SPEC(RMS_NORM, TABLE_PRECISION,
        LAYER_PRECISION BIAS "qk_norm rmsnorm all_heads\n" GGUF_POSITION "\n", EXPERTS("softmax", ""), ""),
    .tensors = GGUF_TABLE GGUF_NORMS GGUF_PROJECTIONS GGUF_HEAD_NORMS GGUF_EXPERT_TENSORS GGUF_END,
};

static const ConfigKey granitemoe_keys[] = {
    GGUF_SIZES, GGUF_HEADS, GGUF_EXPERTS, DERIVED("expert_ff", "=d_ff", NULL), GGUF_RMS, GGUF_TOKENS, GGUF_ROPE,
    GGUF_BIAS, REAL_OR("embedding_scale", "embedding_scale", "1", NULL), REAL_OR("logit_scale", "divisor", "1", NULL),
    REAL_OR("residual_scale", "residual_scale", "1", NULL), REAL_OR("attention.scale", "score_scale", "", NULL),
    REFUSED("divisor=0", "`logit_scale` is 0, and the logits are divided by it"),
    REFUSED("#blk.0.ffn_gate_shexp.weight", "it has shared experts"),
};
static const Family gguf_granitemoe = {
    .types = "granitemoe", .title = "Granite MoE: Granite Team, IBM 2024.", GGUF_DECODER(granitemoe_keys),
    .spec = LLAMA_SPEC(RMS_NORM "[residual_scale!=1? residual scale ${residual_scale}]\n",
        TABLE_PRECISION "[embedding_scale!=1? embedding scale ${embedding_scale}]\n",
        LAYER_PRECISION BIAS "[score_scale? scale ${score_scale}]\n" GGUF_POSITION " interleaved\n",
        EXPERTS("softmax renormalized", ""), "[divisor!=1? scale 1/${divisor}]"),
    .tensors = GGUF_TABLE GGUF_NORMS GGUF_PROJECTIONS GGUF_EXPERT_TENSORS GGUF_END,
};

/* The bounds of the activation, and which layers have the window, are not in the file. */
static const ConfigKey gpt_oss_keys[] = {
    GGUF_SIZES, GGUF_HEADS, GGUF_EXPERTS, GGUF_EXPERT_WIDTH, GGUF_RMS, GGUF_TOKENS, GGUF_ROPE, GGUF_BIAS,
    INTEGER("attention.sliding_window", "window"),
    LAYER_TYPES("sliding_attention full_attention", "sliding_attention full_attention"),
    DERIVED("router_bias", "yes", "#blk.0.ffn_gate_inp.bias"), DERIVED("expert_bias", "yes", "#blk.0.ffn_up_exps.bias"),
};
static const Family gguf_gpt_oss = {
    .types = "gpt-oss", .title = "GPT-OSS: OpenAI 2025, arXiv:2508.10925.", GGUF_DECODER(gpt_oss_keys),
    .spec = LLAMA_SPEC(RMS_NORM, TABLE_PRECISION,
        OWN_WINDOW LAYER_PRECISION BIAS "sink learned\nposition rope " THETA SCALING "[scaling=yarn? untruncated]\n",
        "ffn {\nd_ff ${expert_ff}, activation quick_gelu gated limit 7 plus_one\nexperts ${experts}, top ${top}\n"
        "router softmax renormalized[router_bias? bias]\n[expert_bias? bias all]\n"
        "[ffn_precision? precision weights ${ffn_precision}]\n}\n", ""),
    .tensors = GGUF_TABLE
        ".attention.norm_in.* .attn_norm.*\n.ffn.norm_in.* .post_attention_norm.*\n.attention.sink.weight "
        ".attn_sinks.weight\n" GGUF_PROJECTIONS GGUF_EXPERT_TENSORS GGUF_END,
};

/* ---------------------------------------- Gemma, Gemma 2, Gemma 3: weights of norms have their 1 in the file */
#define GELU_FFN FFN("gelu_tanh gated")
#define ROOT_SCALE TABLE_PRECISION "embedding scale sqrt(d_model)\n"
#define BOTH_NORMS "norm rmsnorm both eps ${eps}\nbias none\n" MODEL_PRECISION
#define CAPS                                                                \
    REAL_OR("attn_logit_softcapping", "softcap", "", NULL),                 \
    REAL_OR("final_logit_softcapping", "head_softcap", "", NULL)
#define CAPPED_HEAD "[head_softcap? softcap ${head_softcap}]"
#define BOTH_NORM_TENSORS                                                                          \
    ".attention.norm_in.* .attn_norm.*\n.attention.norm_out.* .post_attention_norm.*\n"            \
    ".ffn.norm_in.* .ffn_norm.*\n.ffn.norm_out.* .post_ffw_norm.*\n"
static const ConfigKey gemma_keys[] = {GGUF_SIZES, GGUF_HEADS, GGUF_DENSE, GGUF_RMS, GGUF_TOKENS, GGUF_ROPE, GGUF_BIAS};
static const Family gguf_gemma = {
    .types = "gemma", .title = "Gemma: Mesnard et al. 2024, arXiv:2403.08295.", GGUF_DECODER(gemma_keys),
    .spec = LLAMA_SPEC(RMS_NORM, ROOT_SCALE, LAYER_PRECISION BIAS GGUF_POSITION "\n", GELU_FFN, ""),
    .tensors = GGUF_TABLE GGUF_NORMS GGUF_PROJECTIONS GGUF_FFN GGUF_END,
};

/* The models of 27B scale scores by the width of a head that d_model would give; they are known by their layers. */
static const ConfigKey gemma2_keys[] = {
    GGUF_SIZES, GGUF_HEADS, GGUF_DENSE, GGUF_RMS, GGUF_TOKENS, GGUF_ROPE, GGUF_BIAS, CAPS,
    INTEGER_OR("attention.sliding_window", "window", "4096", NULL),
    LAYER_TYPES("sliding_attention full_attention", "sliding_attention full_attention"),
    DERIVED("scalar", "=head_dim", NULL), DERIVED("scalar", "=d_model / heads", "layers=46"),
};
static const Family gguf_gemma2 = {
    .types = "gemma2", .title = "Gemma 2: Riviere et al. 2024, arXiv:2408.00118.", GGUF_DECODER(gemma2_keys),
    .spec = LLAMA_SPEC(BOTH_NORMS, ROOT_SCALE,
        OWN_WINDOW LAYER_PRECISION BIAS "scale 1/sqrt(${scalar})\n[softcap? softcap ${softcap}]\n"
        GGUF_POSITION "\n", GELU_FFN, CAPPED_HEAD),
    .tensors = GGUF_TABLE BOTH_NORM_TENSORS GGUF_PROJECTIONS GGUF_FFN GGUF_END,
};

static const ConfigKey gemma3_keys[] = {
    GGUF_SIZES, GGUF_HEADS, GGUF_DENSE, GGUF_RMS, GGUF_TOKENS, GGUF_ROPE, GGUF_BIAS, CAPS, GGUF_WINDOW,
    REAL_OR("rope.freq_base_swa", "local_theta", "10000", NULL), DERIVED("every", "6", NULL),
    LAYER_TYPES("every every sliding_attention full_attention", "sliding_attention full_attention"),
    DERIVED("scalar", "=head_dim", NULL), DERIVED("scalar", "=d_model / heads", "layers=62"),
};
static const Family gguf_gemma3 = {
    .types = "gemma3", .title = "Gemma 3: Kamath et al. 2025, arXiv:2503.19786 (the text model).",
    GGUF_DECODER(gemma3_keys),
    .spec = LLAMA_SPEC(BOTH_NORMS, ROOT_SCALE,
        OWN_WINDOW LAYER_PRECISION BIAS "scale 1/sqrt(${scalar})\n[softcap? softcap ${softcap}]\nqk_norm rmsnorm\n"
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
    .spec = LLAMA_SPEC(RMS_NORM, TABLE_PRECISION, WINDOW LAYER_PRECISION GGUF_POSITION "\n", FFN("silu gated"), ""),
    .tensors = GGUF_TABLE GGUF_NORMS
        ".attention.query.weight .attn_qkv.weight rows 0..${width}\n"
        ".attention.key.weight .attn_qkv.weight rows ${width}..${key_end}\n"
        ".attention.value.weight .attn_qkv.weight rows ${key_end}..${value_end}\n"
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
    .spec = LLAMA_SPEC("norm layernorm pre eps ${eps}\nbias none\n" MODEL_PRECISION, TABLE_PRECISION,
        WINDOW LAYER_PRECISION BIAS GGUF_POSITION "\n",
        FFN("gelu_tanh"), ""),
    .tensors = GGUF_TABLE GGUF_NORMS GGUF_PROJECTIONS GGUF_PLAIN_FFN GGUF_END,
};

/* ---------------------------------------- BERT: a row for each text, as `pooling_type` says */
static const ConfigKey bert_keys[] = {
    GGUF_SIZES, REAL_OR("attention.layer_norm_epsilon", "eps", NULL, NULL), MUST("attention.causal", "false"),
    TOKEN_OR("tokenizer.ggml.padding_token_id", "pad", "0"), DERIVED("activation", "gelu", NULL),
    {"pooling_type", "pooling", KEY_NATURAL, "0", NULL, NULL},
    REFUSED("pooling=4", "`pooling_type` is 4, for ranks; 0 to 3 are understood"),
    DERIVED("pool", "mean", "pooling=1"), DERIVED("pool", "cls", "pooling=2"), DERIVED("pool", "last", "pooling=3"),
    NOTED("pool", "The pooled row has length 1, as the embeddings of llama.cpp have; without `l2` in the spec's head "
        "it has the length that the model gives it."),
    DERIVED("learned", "yes", NULL),
};
static const Family gguf_bert = {
    .types = "bert", .title = "BERT: Devlin et al. 2019, arXiv:1810.04805.", .classes = "=hidden", KEYS(bert_keys),
    .irrelevant = GGUF_IRRELEVANT, .prefixes = "",
    .spec = ENCODER_SPEC("", "[precision&!layer_precision&!ffn_precision? precision weights ${precision}]\n"
        "[#token_types.weight? segments ${#token_types.weight}]\n", "", "layers", "",
        "[pool? head pool ${pool} l2]\n"),
    .tensors = "encoder.embedding.tokens.weight token_embd.weight\n"
        "encoder.embedding.positions.weight position_embd.weight\n"
        "encoder.embedding.segments.weight token_types.weight\n"
        "encoder.embedding.norm.* token_embd_norm.*\n"
        "@encoder.layers.{layer} blk.{layer}\n" GGUF_PROJECTIONS
        ".attention.norm_out.* .attn_output_norm.*\n" GGUF_PLAIN_FFN ".ffn.norm_out.* .layer_output_norm.*\n",
};

const Family *const gguf_families[] = {
    &gguf_llama, &gguf_qwen2, &gguf_qwen3, &gguf_gemma, &gguf_gemma2, &gguf_gemma3, &gguf_phi3, &gguf_starcoder2,
    &gguf_bert, &gguf_qwen2moe, &gguf_qwen3moe, &gguf_olmoe, &gguf_granitemoe, &gguf_gpt_oss, NULL,
};
