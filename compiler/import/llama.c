/* llama.c: LLaMA and decoders derived from it. */
#include "decoders.h"

/* ---------------------------------------- LLaMA */
static const ConfigKey llama_keys[] = {
    LLAMA_KIN("=heads", "=d_model / heads"), POSITIONS("2048"), WHOLE_ROPE("10000"),
    RMS_EPS("1e-6"), ATTENTION_BIAS,
    FFN_BIAS, DECODER_TOKENS("1", "2", ""), TIED("false"),
};
const Family family_llama = {
    .types = "llama=Llama",
        .title = "LLaMA: Touvron et al. 2023, arXiv:2302.13971; Grattafiori et al. 2024, arXiv:2407.21783.",
    .classes = DECODER_CLASSES, KEYS(llama_keys), .irrelevant = "max_sequence_length", .prefixes = MODEL_PREFIXES,
    .spec = LLAMA_SPEC("norm rmsnorm pre eps ${eps}\n", "", "[!attention_bias? bias none]\nposition rope ${rope}\n",
                       GATED_BIASED_FFN, ""),
    .tensors = LLAMA_EMBEDDING LLAMA_NORMS LLAMA_PROJECTIONS LLAMA_FFN LLAMA_END,
};

/* ---------------------------------------- Mistral: a window */
static const ConfigKey mistral_keys[] = {
    LLAMA_KIN("8", "=d_model / heads"),
    POSITIONS("131072"),
    WHOLE_ROPE("10000"), RMS_EPS("1e-6"), INTEGER_OR("sliding_window", "window", "4096", ""),
    DECODER_TOKENS("1", "2", ""), TIED("false"),
};
const Family family_mistral = {
    .types = "mistral=Mistral", .title = "Mistral: Jiang et al. 2023, arXiv:2310.06825.",
    .classes = DECODER_CLASSES, KEYS(mistral_keys), .irrelevant = "", .prefixes = "model.",
    .spec = LLAMA_SPEC("norm rmsnorm pre eps ${eps}\nbias none\n", "",
        "[window? window ${window}]\nposition rope ${rope}\n", GATED_FFN, ""),
    .tensors = LLAMA_EMBEDDING LLAMA_NORMS LLAMA_PROJECTIONS LLAMA_FFN LLAMA_END,
};

/* ---------------------------------------- Qwen2, Qwen3 */
#define QWEN_KEYS                                                                                             \
    FLAG_OR("use_sliding_window", "use_window", "false"), INTEGER_OR("sliding_window", "window", "4096", ""), \
    {"max_window_layers", "first_window", KEY_NATURAL, "28", "28", NULL},                                     \
    DERIVED("first_window", "=layers", "!use_window"),                                                        \
    LAYER_TYPES("from first_window full_attention sliding_attention", TYPES),                                 \
    POSITIONS("32768"), WHOLE_ROPE("10000"), RMS_EPS("1e-6"), DECODER_TOKENS("", "", ""), TIED("false")
#define QWEN_WINDOW "[layer_type=sliding_attention&window? window ${window}]\n"

static const ConfigKey qwen2_keys[] = {
    LLAMA_SIZES("silu"), KV_HEADS_OR("32"),
    SHARED_WIDTH, QWEN_KEYS,
};
const Family family_qwen2 = {
    .types = "qwen2=Qwen2", .title = "Qwen2: Yang et al. 2024, arXiv:2407.10671.",
    .classes = DECODER_CLASSES, KEYS(qwen2_keys), .irrelevant = "use_mrope", .prefixes = MODEL_PREFIXES,
    .spec = LLAMA_SPEC("norm rmsnorm pre eps ${eps}\nbias none\n", "",
        QWEN_WINDOW "bias q k v\nposition rope ${rope}\n", GATED_FFN, ""),
    .tensors = LLAMA_EMBEDDING LLAMA_NORMS LLAMA_PROJECTIONS LLAMA_FFN LLAMA_END,
};

static const ConfigKey qwen3_keys[] = {
    LLAMA_KIN("32", "128"),
    ATTENTION_BIAS, QWEN_KEYS,
};
const Family family_qwen3 = {
    .types = "qwen3=Qwen3", .title = "Qwen3: Yang et al. 2025, arXiv:2505.09388.",
    .classes = DECODER_CLASSES, KEYS(qwen3_keys), .irrelevant = "", .prefixes = MODEL_PREFIXES,
    .spec = LLAMA_SPEC("norm rmsnorm pre eps ${eps}\nbias none\n", "",
        QWEN_WINDOW "[attention_bias? bias all]\nqk_norm rmsnorm\nposition rope ${rope}\n",
                       GATED_FFN, ""),
    .tensors = LLAMA_EMBEDDING LLAMA_NORMS LLAMA_PROJECTIONS
        QK_NORMS LLAMA_FFN LLAMA_END,
};

/* ---------------------------------------- Gemma, Gemma 2, Gemma 3 */
#define GEMMA_SIZES DECODER_SIZES, GEMMA_COMMON
#define GEMMA_COMMON                                                                                         \
    HEAD_DIM("256"), ATTENTION_BIAS,                                                                         \
    RMS_EPS("1e-6"), DECODER_TOKENS("2", "1", "0"), TIED("true")
#define GEMMA_CAUSAL MUST("use_bidirectional_attention", "false")
#define GEMMA_CAPS(attention, logits)                                                                               \
    INTEGER_OR("query_pre_attn_scalar", "scalar", "256", NULL), INTEGER_OR("sliding_window", "window", "4096", ""), \
    POSITIVE_OR("attn_logit_softcapping", "softcap", attention, ""),                                                \
    POSITIVE_OR("final_logit_softcapping", "head_softcap", logits, ""),                                             \
    WORD_OR("hidden_activation", "activation", "gelu_tanh", ACTIVATIONS),                                           \
    MUST("hidden_act", "gelu_pytorch_tanh null")
#define GEMMA_NORM(place) "norm rmsnorm " place " plus_one eps ${eps}\nbias none\n"
#define GEMMA_SCALE "embedding scale sqrt(d_model)\n"
#define GEMMA_CAPPED                                                                        \
    "[layer_type=sliding_attention&window? window ${window}]\n[attention_bias? bias all]\n" \
    "scale 1/sqrt(${scalar})\n[softcap? softcap ${softcap}]\n"
#define GEMMA_NORMS                                       \
    ".attention.norm_in.* .input_layernorm.*\n"           \
    ".attention.norm_out.* .post_attention_layernorm.*\n" \
    ".ffn.norm_in.* .pre_feedforward_layernorm.*\n"       \
    ".ffn.norm_out.* .post_feedforward_layernorm.*\n"

static const ConfigKey gemma_keys[] = {
    GEMMA_SIZES, GEMMA_CAUSAL, INTEGER_OR("num_key_value_heads", "kv_heads", "16", NULL), POSITIONS("8192"),
    WHOLE_ROPE("10000"),
    WORD_OR("hidden_act", "activation", "gelu_tanh", ACTIVATIONS),
    {"hidden_act", "written", KEY_TEXT, "", "", NULL}, DERIVED("activation", "gelu_tanh", "written=gelu"),
    NOTED("written=gelu", "`hidden_act` gelu is taken as gelu_tanh: transformers 5 does so too, since the "
        "released models mean the approximation."),
    MUST("hidden_activation", "gelu_pytorch_tanh null"),
};
const Family family_gemma = {
    .types = "gemma=Gemma", .title = "Gemma: Mesnard et al. 2024, arXiv:2403.08295.",
    .classes = DECODER_CLASSES, KEYS(gemma_keys), .irrelevant = "", .prefixes = "model.",
    .spec = LLAMA_SPEC(GEMMA_NORM("pre"), GEMMA_SCALE, "[attention_bias? bias all]\nposition rope ${rope}\n",
        GATED_FFN, ""),
    .tensors = LLAMA_EMBEDDING LLAMA_NORMS LLAMA_PROJECTIONS LLAMA_FFN LLAMA_END,
};

static const ConfigKey gemma2_keys[] = {
    GEMMA_SIZES, GEMMA_CAUSAL, INTEGER_OR("num_key_value_heads", "kv_heads", "4", NULL), POSITIONS("8192"),
    GEMMA_CAPS("50", "30"),
    LAYER_TYPES(TYPES, TYPES), WHOLE_ROPE("10000"),
};
const Family family_gemma2 = {
    .types = "gemma2=Gemma2", .title = "Gemma 2: Riviere et al. 2024, arXiv:2408.00118.",
    .classes = DECODER_CLASSES, KEYS(gemma2_keys), .irrelevant = "cache_implementation", .prefixes = "model.",
    .spec = LLAMA_SPEC(GEMMA_NORM("both"), GEMMA_SCALE, GEMMA_CAPPED "position rope ${rope}\n", GATED_FFN,
        "[head_softcap? softcap ${head_softcap}]"),
    .tensors = LLAMA_EMBEDDING GEMMA_NORMS LLAMA_PROJECTIONS LLAMA_FFN LLAMA_END,
};

/* VaultGemma has only the norms before the sublayers. */
const Family family_vaultgemma = {
    .types = "vaultgemma=VaultGemma", .title = "VaultGemma: Sinha et al. 2025, arXiv:2510.15001.",
    .classes = "ForCausalLM=logits Model=hidden", KEYS(gemma2_keys), .irrelevant = "cache_implementation",
    .prefixes = "model.",
    .spec = LLAMA_SPEC(GEMMA_NORM("pre"), GEMMA_SCALE, GEMMA_CAPPED "position rope ${rope}\n", GATED_FFN,
        "[head_softcap? softcap ${head_softcap}]"),
    .tensors = LLAMA_EMBEDDING ".attention.norm_in.* .input_layernorm.*\n"
        ".ffn.norm_in.* .pre_feedforward_layernorm.*\n" LLAMA_PROJECTIONS LLAMA_FFN LLAMA_END,
};

/* Published configs hold only the sizes that differ from these. */
static const ConfigKey gemma3_keys[] = {
    INTEGER_OR("vocab_size", "vocab", "262208", NULL), INTEGER_OR("hidden_size", "d_model", "2304", NULL),
    INTEGER_OR("intermediate_size", "d_ff", "9216", NULL), INTEGER_OR("num_hidden_layers", "layers", "26", NULL),
    INTEGER_OR("num_attention_heads", "heads", "8", NULL), GEMMA_COMMON,
    INTEGER_OR("num_key_value_heads", "kv_heads", "4", NULL), POSITIONS("131072"), GEMMA_CAPS("", ""),
    NOTED("softcap", "`attn_logit_softcapping` is not obeyed, as in transformers 5, whose Gemma 3 does not cap "
        "scores."),
    DERIVED("softcap", "", NULL),
    INTEGER_OR("sliding_window_pattern _sliding_window_pattern", "every", "6", "6"),
    LAYER_TYPES("every every sliding_attention full_attention", TYPES),
    POSITIVE_OR("rope_theta", "theta", "1000000", "1000000"),
    POSITIVE_OR("rope_local_base_freq", "local_theta", "10000", "10000"),
    DERIVED("whole_rope", "yes", NULL), ROPE("rope_parameters rope_scaling", "rope", "theta", "full_attention"),
    ROPE("rope_parameters", "local_rope", "local_theta", "sliding_attention"),
    /* EmbeddingGemma: all rows attend to all, and half of the window is on either side. */
    FLAG_OR("use_bidirectional_attention", "bidirectional", "false"),
    DERIVED("window", "=window / 2 + 1", "bidirectional&window"),
    DERIVED("stack", "decoder", NULL), DERIVED("stack", "encoder", "bidirectional"),
    DERIVED("mask", "causal", NULL), DERIVED("mask", "padding", "bidirectional"),
};
const Family family_gemma3 = {
    .types = "gemma3_text=Gemma3", .title = "Gemma 3: Kamath et al. 2025, arXiv:2503.19786 (the text model).",
    .classes = "ForCausalLM=logits TextModel=hidden", KEYS(gemma3_keys), .irrelevant = "cache_implementation",
        .prefixes = "model.",
    .spec = LLAMA_SPEC_IN("${stack}", "${mask}", GEMMA_NORM("both"), GEMMA_SCALE,
                          GEMMA_CAPPED "qk_norm rmsnorm plus_one\n"
                                       "[layer_type=sliding_attention? position rope "
                                           "${local_rope}]\n[layer_type=full_attention? position rope ${rope}]\n",
                          GATED_FFN, "[head_softcap? softcap ${head_softcap}]"),
    .tensors = LLAMA_EMBEDDING_IN("${stack}") GEMMA_NORMS LLAMA_PROJECTIONS
        QK_NORMS LLAMA_FFN
        LLAMA_END_IN("${stack}"),
};

/* Gemma 3 with a vision part; only the text part is imported. */
static const ConfigKey gemma3_text_of_keys[] = {
    REFUSED("bidirectional", "`text_config.use_bidirectional_attention` is true beside a vision part, of which "
        "transformers makes no mask that a spec has"),
    TOKENS_OR("eos_token_id", "end", "$end"),
    NOTED("task", "This is the text part alone; the vision part and its tensors are left out."),
};
const Family family_gemma3_text_of = {
    .types = "gemma3=Gemma3", .title = "Gemma 3: Kamath et al. 2025, arXiv:2503.19786 (the text part).",
    .classes = "ForConditionalGeneration=logits Model=hidden ForSequenceClassification=classify",
    KEYS(gemma3_text_of_keys),
    .irrelevant = "vision_config mm_tokens_per_image boi_token_index eoi_token_index image_token_index "
        "boi_token_id eoi_token_id image_token_id",
    .prefixes = "model.language_model. language_model.model. language_model.",
    .tensors = "ignore vision_tower.* model.vision_tower.* multi_modal_projector.* model.multi_modal_projector.*\n",
    .inside = "text_config", .inner = &family_gemma3, .outside = "tie_word_embeddings",
};

/* ---------------------------------------- OLMo 2: norms behind the sublayers */
static const ConfigKey olmo2_keys[] = {
    LLAMA_SIZES("silu"), KV_HEADS, SHARED_WIDTH,
    POSITIONS("2048"),
    WHOLE_ROPE("10000"), RMS_EPS("1e-5"), ATTENTION_BIAS, DECODER_TOKENS("", "50279", "1"), TIED("false"),
};
const Family family_olmo2 = {
    .types = "olmo2=Olmo2", .title = "OLMo 2: OLMo et al. 2025, arXiv:2501.00656.",
    .classes = DECODER_CLASSES, KEYS(olmo2_keys), .irrelevant = "", .prefixes = "model.",
    .spec = LLAMA_SPEC("norm rmsnorm after eps ${eps}\nbias none\n", "",
        "[attention_bias? bias all]\nqk_norm rmsnorm all_heads\nposition rope ${rope}\n",
                       GATED_FFN, ""),
    .tensors = LLAMA_EMBEDDING LLAMA_PROJECTIONS
        QK_NORMS NORMS_BEHIND LLAMA_FFN LLAMA_END,
};

/* ---------------------------------------- Phi-3: query, key and value lie together, gate and up as well */
static const ConfigKey phi3_keys[] = {
    LLAMA_SIZES("silu"), KV_HEADS, SHARED_WIDTH,
    POSITIONS("4096"),
    INTEGER_OR("original_max_position_embeddings", "original", "4096", NULL), EVEN_ROPE, ONE_ROPE("10000", "1"),
    RMS_EPS("1e-5"),
    INTEGER_OR("sliding_window", "window", "", ""), DECODER_TOKENS("1", "32000", "32000"), TIED("false"),
    MUST("attention_bias", "false"), MUST("mlp_bias", "false"), MUST("lm_head_bias", "false"),
    MUST("full_attn_mod", "1"), MUST("interpolate_factor", "1"), /* of Phi-4-mini's own code */
    DERIVED("keys", "=kv_heads * head_dim", NULL), DERIVED("key_end", "=keys + d_model", NULL),
    DERIVED("value_end", "=keys + keys + d_model", NULL),
    DERIVED("d_ff_twice", "=d_ff * 2", NULL),
};
const Family family_phi3 = {
    .types = "phi3=Phi3", .title = "Phi-3: Abdin et al. 2024, arXiv:2404.14219.",
    .classes = DECODER_CLASSES, KEYS(phi3_keys), .irrelevant = "resid_pdrop embd_pdrop", .prefixes = "model.",
    .spec = LLAMA_SPEC("norm rmsnorm pre eps ${eps}\nbias none\n", "",
        "[window? window ${window}]\nposition rope ${rope}\n", GATED_FFN, ""),
    .tensors = LLAMA_EMBEDDING LLAMA_NORMS
        QKV_ROWS("weight", "self_attn.qkv_proj.weight", "${d_model}", "${key_end}", "${value_end}")
        ".attention.output.* .self_attn.o_proj.*\n" LLAMA_JOINED_FFN LLAMA_END,
};

/* ---------------------------------------- StarCoder2 */
static const ConfigKey starcoder2_keys[] = {
    LLAMA_SIZES("gelu_tanh"), INTEGER_OR("num_key_value_heads", "kv_heads", "2", NULL), HEAD_DIM("=d_model / heads"),
    POSITIONS("4096"),
    WHOLE_ROPE("10000"), REAL_OR("norm_epsilon", "eps", "1e-5", NULL), FLAG_OR("use_bias", "use_bias", "true"),
    INTEGER_OR("sliding_window", "window", "", ""), DECODER_TOKENS("50256", "50256", ""), TIED("true"),
    MUST("norm_type", "layer_norm"), MUST("mlp_type", "default"),
};
const Family family_starcoder2 = {
    .types = "starcoder2=Starcoder2", .title = "StarCoder2: Lozhkov et al. 2024, arXiv:2402.19173.",
    .classes = DECODER_CLASSES, KEYS(starcoder2_keys), .irrelevant = "residual_dropout embedding_dropout",
        .prefixes = "model.",
    .spec = LLAMA_SPEC("norm layernorm pre eps ${eps}\n[!use_bias? bias none]\n", "",
        "[window? window ${window}]\nposition rope ${rope}\n",
                       PLAIN_FFN, ""),
    .tensors = LLAMA_EMBEDDING LLAMA_NORMS LLAMA_PROJECTIONS UP_DOWN("mlp.c_fc", "mlp.c_proj") LLAMA_END,
};

/* ---------------------------------------- Command R: one norm without bias, neighbouring columns rotated */
static const ConfigKey cohere_keys[] = {
    LLAMA_KIN("=heads", "=d_model / heads"), POSITIONS("8192"), WHOLE_ROPE("500000"),
    REAL_OR("layer_norm_eps", "eps", "1e-5", NULL),
    REAL_OR("logit_scale", "logit_scale", "0.0625", NULL), FLAG_OR("use_qk_norm", "qk_norm", "false"), ATTENTION_BIAS,
    DECODER_TOKENS("5", "255001", "0"), TIED("true"),
};
const Family family_cohere = {
    .types = "cohere=Cohere", .title = "Command R: Cohere 2024.",
    .classes = "ForCausalLM=logits Model=hidden", KEYS(cohere_keys), .irrelevant = "", .prefixes = "model.",
    .spec = LLAMA_SPEC("norm layernorm no_bias pre eps ${eps}\nbias none\n", "block parallel shared_norm\n",
                       "[attention_bias? bias all]\n[qk_norm? qk_norm layernorm no_bias weight_per_head]\nposition "
                           "rope ${rope} interleaved\n", GATED_FFN,
                       " scale ${logit_scale}"),
    .tensors = LLAMA_EMBEDDING ".attention.norm_in.* .input_layernorm.*\n" LLAMA_PROJECTIONS
        "[qk_norm? .attention.query_norm.* .self_attn.q_norm.*]\n[qk_norm? .attention.key_norm.* "
            ".self_attn.k_norm.*]\n" LLAMA_FFN LLAMA_END,
};

/* ---------------------------------------- StableLM */
static const ConfigKey stablelm_keys[] = {
    LLAMA_SIZES("silu"), KV_HEADS_OR("32"),
    SHARED_WIDTH, POSITIONS("4096"), ONE_ROPE("10000", "0.25"),
    REAL_OR("layer_norm_eps", "eps", "1e-5", NULL),
    FLAG_OR("use_qkv_bias", "qkv_bias", "false"), FLAG_OR("use_parallel_residual", "parallel", "false"),
    MUST("qk_layernorm", "false"),
    DECODER_TOKENS("0", "0", ""), TIED("false"),
};
const Family family_stablelm = {
    .types = "stablelm=StableLm", .title = "StableLM: Bellagente et al. 2024, arXiv:2402.17834.",
    .classes = DECODER_CLASSES, KEYS(stablelm_keys), .irrelevant = "", .prefixes = "model.",
    .spec = LLAMA_SPEC("norm layernorm pre eps ${eps}\nbias none\n", "[parallel? block parallel shared_norm]\n",
        "[qkv_bias? bias q k v]\nposition rope ${rope}\n",
                       GATED_FFN, ""),
    .tensors = LLAMA_EMBEDDING LLAMA_NORMS LLAMA_PROJECTIONS LLAMA_FFN LLAMA_END,
};

/* ---------------------------------------- Phi: one norm for both sublayers, a head with bias */
static const ConfigKey phi_keys[] = {
    LLAMA_SIZES("gelu_tanh"), KV_HEADS, SHARED_WIDTH, POSITIONS("2048"),
    ONE_ROPE("10000", "0.5"), REAL_OR("layer_norm_eps", "eps", "1e-5", NULL),
    FLAG_OR("qk_layernorm", "qk_norm", "false"),
    DECODER_TOKENS("1", "2", ""), TIED("false"),
};
const Family family_phi = {
    .types = "phi=Phi", .title = "Phi: Gunasekar et al. 2023, arXiv:2306.11644.",
    .classes = DECODER_CLASSES, KEYS(phi_keys), .irrelevant = "resid_pdrop embd_pdrop", .prefixes = "model.",
    .spec = LLAMA_SPEC("norm layernorm pre eps ${eps}\n", "block parallel shared_norm\n",
        "[qk_norm? qk_norm layernorm]\nposition rope ${rope}\n",
                       PLAIN_FFN, " bias"),
    .tensors = LLAMA_EMBEDDING
        ".attention.norm_in.* .input_layernorm.*\n"
        PROJECTIONS("self_attn", "q_proj", "k_proj", "v_proj", "dense")
        "[qk_norm? .attention.query_norm.* .self_attn.q_layernorm.*]\n"
        "[qk_norm? .attention.key_norm.* .self_attn.k_layernorm.*]\n"
        UP_DOWN("mlp.fc1", "mlp.fc2")
        "decoder.final_norm.* final_layernorm.*\n"
        "[task=logits? head.bias lm_head.bias]\n" HEAD_TENSORS,
};
