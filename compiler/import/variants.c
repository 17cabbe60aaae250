/* variants.c: decoders that differ in little from one of another file. */
#include "decoders.h"

#define SLIDING "sliding_attention"
#define PLAIN_BIASED_FFN "ffn { d_ff ${d_ff}, activation ${activation}[!ffn_bias?, bias none] }\n"

/* ---------------------------------------- Arcee: relu2 without a gate */
static const ConfigKey arcee_keys[] = {
    LLAMA_SIZES("relu2"), KV_HEADS, HEAD_DIM("=d_model / heads"), POSITIONS("4096"), WHOLE_ROPE("10000"),
    RMS_EPS("1e-5"), ATTENTION_BIAS, FFN_BIAS, DECODER_TOKENS("128000", "128001", ""), TIED("false"),
};
const Family family_arcee = {
    .types = "arcee=Arcee", .title = "AFM: Arcee AI 2025.", .classes = DECODER_CLASSES, KEYS(arcee_keys),
    .irrelevant = "", .prefixes = MODEL_PREFIXES,
    .spec = LLAMA_SPEC("norm rmsnorm pre eps ${eps}\n", "", "[!attention_bias? bias none]\nposition rope ${rope}\n",
                       PLAIN_BIASED_FFN, ""),
    .tensors = LLAMA_EMBEDDING LLAMA_NORMS LLAMA_PROJECTIONS LLAMA_PLAIN_FFN LLAMA_END,
};

/* ---------------------------------------- Nemotron: norms whose weight is 1 + w, and relu2 without a gate */
static const ConfigKey nemotron_keys[] = {
    LLAMA_SIZES("relu2"), KV_HEADS, HEAD_DIM("=d_model / heads"), POSITIONS("4096"), EVEN_ROPE,
    ONE_ROPE("10000", "0.5"),
    REAL_OR("norm_eps", "eps", "1e-5", NULL), ATTENTION_BIAS, FFN_BIAS, DECODER_TOKENS("2", "3", ""), TIED("false"),
};
const Family family_nemotron = {
    .types = "nemotron=Nemotron", .title = "Nemotron-4: Parmar et al. 2024, arXiv:2402.16819.",
    .classes = DECODER_CLASSES, KEYS(nemotron_keys), .irrelevant = "", .prefixes = MODEL_PREFIXES,
    .spec = LLAMA_SPEC("norm layernorm plus_one pre eps ${eps}\n", "",
                       "[!attention_bias? bias none]\nposition rope ${rope}\n", PLAIN_BIASED_FFN, ""),
    .tensors = LLAMA_EMBEDDING LLAMA_NORMS LLAMA_PROJECTIONS LLAMA_PLAIN_FFN LLAMA_END,
};

/* ---------------------------------------- Seed-OSS: the output's bias is apart from the others */
static const ConfigKey seed_oss_keys[] = {
    LLAMA_KIN("8", "128"), POSITIONS("524288"), WHOLE_ROPE("10000"), RMS_EPS("1e-6"),
    FLAG_OR("attention_bias", "qkv_bias", "true"), FLAG_OR("attention_out_bias", "out_bias", "false"), FFN_BIAS,
    DECODER_TOKENS("0", "2", "1"), TIED("false"),
};
const Family family_seed_oss = {
    .types = "seed_oss=SeedOss", .title = "Seed-OSS: ByteDance Seed 2025.", .classes = DECODER_CLASSES,
    KEYS(seed_oss_keys), .irrelevant = "residual_dropout", .prefixes = MODEL_PREFIXES,
    .spec = LLAMA_SPEC("norm rmsnorm pre eps ${eps}\n", "",
                       "[qkv_bias&out_bias? bias all]\n[qkv_bias&!out_bias? bias q k v]\n"
                       "[!qkv_bias&out_bias? bias o]\n[!qkv_bias&!out_bias? bias none]\nposition rope ${rope}\n",
                       GATED_BIASED_FFN, ""),
    .tensors = LLAMA_EMBEDDING LLAMA_NORMS LLAMA_PROJECTIONS LLAMA_FFN LLAMA_END,
};

/* ---------------------------------------- ERNIE 4.5 and Helium: neighbouring columns rotated */
static const ConfigKey ernie4_5_keys[] = {
    LLAMA_KIN("2", "128"), POSITIONS("131072"), WHOLE_ROPE("500000"), RMS_EPS("1e-5"),
    FLAG_OR("use_bias", "use_bias", "false"), DECODER_TOKENS("1", "2", "0"), TIED("true"),
};
const Family family_ernie4_5 = {
    .types = "ernie4_5=Ernie4_5", .title = "ERNIE 4.5: Baidu 2025.", .classes = "ForCausalLM=logits Model=hidden",
    KEYS(ernie4_5_keys), .irrelevant = "", .prefixes = "model.",
    .spec = LLAMA_SPEC("norm rmsnorm pre eps ${eps}\n[!use_bias? bias none]\n", "",
                       "position rope ${rope} interleaved\n", GATED_FFN, ""),
    .tensors = LLAMA_EMBEDDING LLAMA_NORMS LLAMA_PROJECTIONS LLAMA_FFN LLAMA_END,
};

static const ConfigKey helium_keys[] = {
    LLAMA_KIN("20", "128"), POSITIONS("4096"), WHOLE_ROPE("100000"), RMS_EPS("1e-8"), ATTENTION_BIAS, FFN_BIAS,
    DECODER_TOKENS("1", "2", "3"), TIED("false"),
};
const Family family_helium = {
    .types = "helium=Helium", .title = "Helium: Kyutai 2025.",
    .classes = "ForCausalLM=logits Model=hidden ForSequenceClassification=classify ForTokenClassification=labels",
    KEYS(helium_keys), .irrelevant = "", .prefixes = "model.",
    .spec = LLAMA_SPEC("norm rmsnorm pre eps ${eps}\n", "",
                       "[attention_bias? bias q k v][!attention_bias? bias none]\nposition rope ${rope} interleaved\n",
                       GATED_BIASED_FFN, ""),
    .tensors = LLAMA_EMBEDDING LLAMA_NORMS LLAMA_PROJECTIONS LLAMA_FFN LLAMA_END,
};

/* ---------------------------------------- OLMo: norms without weights, which are 1 + 0 here */
static const ConfigKey olmo_keys[] = {
    LLAMA_SIZES("silu"), KV_HEADS, HEAD_DIM("=d_model / heads"), POSITIONS("2048"), WHOLE_ROPE("10000"),
    ATTENTION_BIAS, CLIP_QKV("clip_qkv"),
    DECODER_TOKENS("", "50279", "1"), TIED("false"),
};
const Family family_olmo = {
    .types = "olmo=Olmo", .title = "OLMo: Groeneveld et al. 2024, arXiv:2402.00838. Its norms have no weights.",
    .classes = "ForCausalLM=logits Model=hidden ForSequenceClassification=classify", KEYS(olmo_keys), .irrelevant = "",
    .prefixes = "model.",
    .spec = LLAMA_SPEC("norm layernorm pre plus_one no_bias eps 1e-5\nbias none\n", "",
                       "[attention_bias? bias all]\n" CLIPPED "position rope ${rope}\n", GATED_FFN, ""),
    .tensors = LLAMA_EMBEDDING
        ".attention.norm_in.weight .input_layernorm.weight optional\n"
        ".ffn.norm_in.weight .post_attention_layernorm.weight optional\n" LLAMA_PROJECTIONS LLAMA_FFN
        "decoder.final_norm.weight norm.weight optional\n" HEAD_TENSORS,
};

/* ---------------------------------------- Command R7B: layers with a window have rope, the others nothing */
static const ConfigKey cohere2_keys[] = {
    LLAMA_KIN("=heads", "=d_model / heads"), POSITIONS("8192"), WHOLE_ROPE("10000"),
    REAL_OR("layer_norm_eps", "eps", "1e-5", NULL), REAL_OR("logit_scale", "logit_scale", "0.0625", NULL),
    ATTENTION_BIAS, INTEGER_OR("sliding_window", "window", "4096", ""),
    INTEGER_OR("sliding_window_pattern", "pattern", "4", "4"),
    LAYER_TYPES("every pattern " TYPES, TYPES), NEEDS_WINDOW(SOME_LAYERS_SLIDE),
    MUST("layer_switch", "4 null"), MUST("order_of_interleaved_layers", "local_attn_first null"),
    MUST("rotary_pct", "1 null"),
    MUST("position_embedding_type", "rope_gptj null"), MUST("use_qk_norm", "false"),
    MUST("use_parallel_block", "true null"), MUST("use_gated_activation", "true null"),
    DECODER_TOKENS("5", "255001", "0"), TIED("true"),
};
const Family family_cohere2 = {
    .types = "cohere2=Cohere2", .title = "Command R7B and Command A: Cohere 2025, arXiv:2504.00698.",
    .classes = "ForCausalLM=logits Model=hidden", KEYS(cohere2_keys),
    .irrelevant = "cache_implementation use_embedding_sharing use_parallel_embedding", .prefixes = "model.",
    .spec = LLAMA_SPEC("norm layernorm no_bias pre eps ${eps}\nbias none\n", "block parallel shared_norm\n",
                       "[attention_bias? bias all]\n"
                       "[layer_type=" SLIDING "? window ${window}]\n"
                       "[layer_type=" SLIDING "? position rope ${rope} interleaved]\n", GATED_FFN,
                       " scale ${logit_scale}"),
    .tensors = LLAMA_EMBEDDING ".attention.norm_in.* .input_layernorm.*\n" LLAMA_PROJECTIONS LLAMA_FFN LLAMA_END,
};

/* ---------------------------------------- EXAONE 4: the same, where there is a window; norms behind the sublayers */
static const ConfigKey exaone4_keys[] = {
    LLAMA_KIN("32", "=d_model / heads"), POSITIONS("2048"), WHOLE_ROPE("10000"), RMS_EPS("1e-5"),
    INTEGER_OR("sliding_window", "window", "4096", ""),
    {"layer_types", "layer_type", KEY_LAYER_TYPES, NULL, NULL, TYPES}, NEEDS_WINDOW(SOME_LAYERS_SLIDE),
    DECODER_TOKENS("0", "2", ""), TIED("false"),
};
const Family family_exaone4 = {
    .types = "exaone4=Exaone4", .title = "EXAONE 4.0: LG AI Research 2025, arXiv:2507.11407.",
    .classes = DECODER_CLASSES, KEYS(exaone4_keys), .irrelevant = "sliding_window_pattern cache_implementation",
    .prefixes = MODEL_PREFIXES,
    .spec = LLAMA_SPEC("norm rmsnorm after eps ${eps}\nbias none\n", "",
                       "qk_norm rmsnorm\n[layer_type=" SLIDING "? window ${window}]\n"
                       "[layer_type=" SLIDING "? position rope ${rope}]\n[!window? position rope ${rope}]\n", GATED_FFN,
                       ""),
    .tensors = LLAMA_EMBEDDING LLAMA_PROJECTIONS QK_NORMS NORMS_BEHIND LLAMA_FFN LLAMA_END,
};

/* ---------------------------------------- XGLM and BioGPT: fairseq's decoder */
#define FAIRSEQ_SPEC(position)                                                                   \
    LLAMA_SPEC("norm layernorm pre eps 1e-5\n", position "[scaled? embedding scale sqrt(d_model)]\n", "", \
               PLAIN_FFN, "")
#define FAIRSEQ_TENSORS                                                \
    "@decoder.layers.{layer} layers.{layer}\n"                         \
    ".attention.norm_in.* .self_attn_layer_norm.*\n"                   \
    PROJECTIONS("self_attn", "q_proj", "k_proj", "v_proj", "out_proj") \
    ".ffn.norm_in.* .final_layer_norm.*\n" UP_DOWN("fc1", "fc2")       \
    "decoder.final_norm.* layer_norm.*\n"
#define SQUARE DERIVED("kv_heads", "=heads", NULL), DERIVED("width", "=d_model", NULL)

static const ConfigKey xglm_keys[] = {
    INTEGER("vocab_size", "vocab"), INTEGER("d_model hidden_size", "d_model"), INTEGER("ffn_dim", "d_ff"),
    INTEGER("num_layers num_hidden_layers", "layers"), INTEGER("attention_heads num_attention_heads", "heads"), SQUARE,
    POSITIONS("2048"), WORD_OR("activation_function", "activation", "gelu", ACTIVATIONS),
    FLAG_OR("scale_embedding", "scaled", "true"),
    MUST("pad_token_id", "0 1 null"), /* transformers sets the sinusoids of a greater id's row to 0 */
    DECODER_TOKENS("0", "2", "1"), TIED("true"),
};
const Family family_xglm = {
    .types = "xglm=XGLM", .title = "XGLM: Lin et al. 2021, arXiv:2112.10668.",
    .classes = "ForCausalLM=logits Model=hidden", KEYS(xglm_keys),
    .irrelevant = "activation_dropout layerdrop init_std",
    .prefixes = "model.", .spec = FAIRSEQ_SPEC("position sinusoidal fairseq offset 2\n"),
    .tensors = TOKEN_TABLE("embed_tokens.weight", "lm_head.weight") FAIRSEQ_TENSORS
        "buffer embed_positions.weights\n" HEAD_TENSORS,
};

static const ConfigKey biogpt_keys[] = {
    LLAMA_SIZES("gelu"), SQUARE, POSITIONS("1024"), DERIVED("learned", "yes", NULL),
    FLAG_OR("scale_embedding", "scaled", "true"), REAL_OR("layer_norm_eps", "unread_eps", "1e-5", NULL),
    NOTED("unread_eps!=1e-5", "`layer_norm_eps` is not read by transformers, whose norms have 1e-5 here."),
    DECODER_TOKENS("0", "2", "1"), TIED_TO("true", "output_projection.weight", "embed_tokens.weight"),
};
const Family family_biogpt = {
    .types = "biogpt=BioGpt", .title = "BioGPT: Luo et al. 2022, arXiv:2210.10341.",
    .classes = "ForCausalLM=logits Model=hidden ForSequenceClassification=classify ForTokenClassification=labels",
    KEYS(biogpt_keys), .irrelevant = "activation_dropout layerdrop", .prefixes = "biogpt.",
    .spec = FAIRSEQ_SPEC("position learned offset 2\n"),
    .tensors = TOKEN_TABLE("embed_tokens.weight", "output_projection.weight") FAIRSEQ_TENSORS
        "decoder.embedding.positions.weight embed_positions.weight\n"
        "[task=logits&!tied? head.weight output_projection.weight]\n"
        "[task=classify? classifier.weight score.weight]\n" DECODER_ROW_TENSORS
        "ignore output_projection.weight score.weight classifier.*\n",
};
