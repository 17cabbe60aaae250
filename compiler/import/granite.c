/* granite.c: decoders that differ from LLaMA in a setting or two. */
#include "decoders.h"

#define RMSNORM(place) "norm rmsnorm " place " eps ${eps}\n"
#define BIASES "[!attention_bias? bias none]\n"
/* A line inside LLAMA_ATTENTION: the window of layers of type sliding_attention. */
#define TYPED_WINDOW "[layer_type=sliding_attention? window ${window}]\n"

/* ---------------------------------------- Granite: factors on the embedding, the scores, the sums and the logits */
static const ConfigKey granite_keys[] = {
    LLAMA_KIN("=heads", "=d_model / heads"), POSITIONS("2048"), WHOLE_ROPE("10000"),
    RMS_EPS("1e-6"), ATTENTION_BIAS, FFN_BIAS,
    GRANITE_FACTORS,
    DECODER_TOKENS("1", "2", ""), TIED("false"),
};
const Family family_granite = {
    .types = "granite=Granite", .title = "Granite: Granite Team, IBM 2024.",
    .classes = "ForCausalLM=logits Model=hidden", KEYS(granite_keys), .irrelevant = "", .prefixes = "model.",
    .spec = LLAMA_SPEC(RMSNORM("pre") "[residual_scale!=1? residual scale ${residual_scale}]\n",
                       "[embedding_scale!=1? embedding scale ${embedding_scale}]\n",
                       BIASES "scale ${score_scale}\nposition rope ${rope}\n", GATED_BIASED_FFN,
                       "[divisor!=1? scale 1/${divisor}]"),
    .tensors = LLAMA_EMBEDDING LLAMA_NORMS LLAMA_PROJECTIONS LLAMA_FFN LLAMA_END,
};

/* ---------------------------------------- SmolLM3: some layers have no positions at all */
static const ConfigKey smollm3_keys[] = {
    LLAMA_KIN("4", "=d_model / heads"),
    POSITIONS("32768"), WHOLE_ROPE("2000000"), RMS_EPS("1e-6"), ATTENTION_BIAS,
    FFN_BIAS,
    FLAG_OR("use_sliding_window", "use_window", "false"), INTEGER_OR("sliding_window", "window", "", ""),
    INTEGER_OR("no_rope_layer_interval", "interval", "4", NULL),
    {"no_rope_layers", "roped", KEY_LAYER_FLAGS, "every interval yes no", "every interval yes no", NULL},
    LAYER_TYPES("unsaid", TYPES), NEEDS_WINDOW(LAYER_TYPES_SLIDE),
    NOTED("any_sliding_attention&!use_window", "`layer_types` has sliding_attention and `use_sliding_window` is false; "
          "the layers have their window, as in transformers' masks."),
    DECODER_TOKENS("128000", "128001", "128004"), TIED("true"),
};
const Family family_smollm3 = {
    .types = "smollm3=SmolLM3", .title = "SmolLM3: Hugging Face 2025.",
    .classes = DECODER_CLASSES, KEYS(smollm3_keys), .irrelevant = "max_window_layers transformers.js_config",
    .prefixes = MODEL_PREFIXES,
    .spec = LLAMA_SPEC(RMSNORM("pre"), "",
                       TYPED_WINDOW "[layer_type=unsaid&roped=no&use_window&window? window ${window}]\n" BIASES
                                    "[roped=yes? position rope ${rope}]\n", GATED_BIASED_FFN, ""),
    .tensors = LLAMA_EMBEDDING LLAMA_NORMS LLAMA_PROJECTIONS LLAMA_FFN LLAMA_END,
};

/* ---------------------------------------- OLMo 3: OLMo 2 with windows; a scaled rope is that of the full layers */
static const ConfigKey olmo3_keys[] = {
    LLAMA_KIN("=heads", "=d_model / heads"), POSITIONS("2048"), RMS_EPS("1e-5"), ATTENTION_BIAS,
    INTEGER_OR("sliding_window", "window", "4096", ""),
    REFUSED("!window", "`sliding_window` is null; OLMo 3 needs a number"),
    DERIVED("fourth", "4", NULL),
    LAYER_TYPES("every fourth sliding_attention full_attention", TYPES),
    POSITIVE_OR("rope_theta", "theta", "500000", NULL), DERIVED("window_theta", "500000", NULL),
    DERIVED("whole_rope", "yes", NULL), ROPE("rope_parameters rope_scaling", "rope", "theta", "full_attention"),
    ROPE("rope_parameters", "window_rope", "window_theta", "sliding_attention"),
    NOTED("theta!=500000&any_sliding_attention", "`rope_theta` is that of the full_attention layers; in windows "
          "transformers takes 500000 unless `rope_parameters.sliding_attention` has another."),
    DECODER_TOKENS("", "50279", "1"), TIED("false"),
};
const Family family_olmo3 = {
    .types = "olmo3=Olmo3", .title = "OLMo 3: Olmo Team 2025.",
    .classes = "ForCausalLM=logits Model=hidden ForSequenceClassification=classify", KEYS(olmo3_keys),
    .irrelevant = "", .prefixes = "model.",
    .spec = LLAMA_SPEC(RMSNORM("after") "bias none\n", "",
                       TYPED_WINDOW "[attention_bias? bias all]\nqk_norm rmsnorm all_heads\n"
                                    "[layer_type=sliding_attention? position rope ${window_rope}]\n"
                                    "[layer_type=full_attention? position rope ${rope}]\n", GATED_FFN, ""),
    .tensors = LLAMA_EMBEDDING LLAMA_PROJECTIONS QK_NORMS NORMS_BEHIND LLAMA_FFN LLAMA_END,
};

/* ---------------------------------------- Ministral: Mistral with a type for each layer */
static const ConfigKey ministral_keys[] = {
    LLAMA_KIN("8", "=d_model / heads"),
    POSITIONS("131072"), WHOLE_ROPE("10000"), RMS_EPS("1e-6"), INTEGER_OR("sliding_window", "window", "4096", ""),
    LAYER_TYPES("unsaid", TYPES), NEEDS_WINDOW(LAYER_TYPES_SLIDE), DECODER_TOKENS("1", "2", ""), TIED("false"),
};
const Family family_ministral = {
    .types = "ministral=Ministral", .title = "Ministral: Mistral AI 2024.",
    .classes = DECODER_CLASSES, KEYS(ministral_keys), .irrelevant = "", .prefixes = MODEL_PREFIXES,
    .spec = LLAMA_SPEC(RMSNORM("pre") "bias none\n", "",
                       TYPED_WINDOW "[layer_type=unsaid&window? window ${window}]\nposition rope ${rope}\n", GATED_FFN,
                       ""),
    .tensors = LLAMA_EMBEDDING LLAMA_NORMS LLAMA_PROJECTIONS LLAMA_FFN LLAMA_END,
};

/* ---------------------------------------- GLM-4: norms on both sides, half of each head rotated */
#define GLM_SPEC(place)                                                                                              \
    LLAMA_SPEC(RMSNORM(place) "bias none\n", "", "[attention_bias? bias q k v]\nposition rope ${rope} interleaved\n", \
               GATED_FFN, "")

static const ConfigKey glm4_keys[] = {
    LLAMA_KIN("2", "128"),
    POSITIONS("131072"), EVEN_ROPE, ONE_ROPE("10000", "0.5"), RMS_EPS("1.5625e-7"),
    FLAG_OR("attention_bias", "attention_bias", "true"), DERIVED("d_ff_twice", "=d_ff * 2", NULL),
    DECODER_TOKENS("", "151329 151336 151338", "151329"), TIED("false"),
};
const Family family_glm4 = {
    .types = "glm4=Glm4", .title = "GLM-4: Team GLM 2024, arXiv:2406.12793.",
    .classes = "ForCausalLM=logits Model=hidden ForSequenceClassification=classify ForTokenClassification=labels",
    KEYS(glm4_keys), .irrelevant = "", .prefixes = "model.", .spec = GLM_SPEC("both"),
    .tensors = LLAMA_EMBEDDING
        ".attention.norm_in.* .input_layernorm.*\n"
        ".attention.norm_out.* .post_self_attn_layernorm.*\n"
        ".ffn.norm_in.* .post_attention_layernorm.*\n"
        ".ffn.norm_out.* .post_mlp_layernorm.*\n" LLAMA_PROJECTIONS LLAMA_JOINED_FFN LLAMA_END,
};

/* GLM, by the same authors, has only the norms in front of the sublayers. */
const Family family_glm = {
    .types = "glm=Glm", .title = "GLM-4: Team GLM 2024, arXiv:2406.12793.",
    .classes = "ForCausalLM=logits Model=hidden ForSequenceClassification=classify ForTokenClassification=labels",
    KEYS(glm4_keys), .irrelevant = "", .prefixes = "model.", .spec = GLM_SPEC("pre"),
    .tensors = LLAMA_EMBEDDING LLAMA_NORMS LLAMA_PROJECTIONS LLAMA_JOINED_FFN LLAMA_END,
};
