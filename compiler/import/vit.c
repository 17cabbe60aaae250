/* vit.c: encoders of images. */
#include "families.h"

#define VIT_IRRELEVANT "encoder_stride"

#define VIT_SPEC(tokens) VIT_POOLED(tokens, "cls")
#define VIT_POOLED(tokens, pool)                                                                    \
    IMAGE_SPEC("", IMAGE_WORDS " " tokens, "position learned\n", "[!qkv_bias?, bias o]", PLAIN_FFN) \
    "[task=classify? head pool " pool " classifier ${#classifier.weight}]\n"                        \
    "[pooler? head pooler]\n"

#define VIT_PROJECTIONS PROJECTIONS("attention", "attention.query", "attention.key", "attention.value", "output.dense")
#define VIT_LAYERS                                                           \
    "encoder.embedding.patches.* embeddings.patch_embeddings.projection.*\n" \
    "encoder.embedding.class_token embeddings.cls_token\n"                   \
    "encoder.embedding.positions.weight embeddings.position_embeddings\n"    \
    "@encoder.layers.{layer} encoder.layer.{layer}\n"                        \
    ".attention.norm_in.* .layernorm_before.*\n"                             \
    VIT_PROJECTIONS                                                          \
    ".ffn.norm_in.* .layernorm_after.*\n"                                    \
    UP_DOWN("intermediate.dense", "output.dense")                            \
    "encoder.final_norm.* layernorm.*\n"
#define VIT_TENSORS(tokens) tokens VIT_LAYERS                                \
    "[task=classify? classifier.* classifier.*]\n"                           \
    "[pooler? pooler.* pooler.dense.*]\n"                                    \
    "ignore pooler.dense.* embeddings.mask_token decoder.* cls_classifier.* distillation_classifier.*\n"

static const ConfigKey vit_keys[] = {
    LAYER_SIZES,
    WORD_OR("hidden_act", "activation", "gelu", ACTIVATIONS), REAL_OR("layer_norm_eps", "eps", "1e-12", NULL),
    IMAGE_SIZES("16"), FLAG_OR("qkv_bias", "qkv_bias", "true"), MUST("num_channels", "3"),
    INTEGER_OR("pooler_output_size", "pooled_width", "=d_model", "=d_model"),
    {"pooler_act", "pooler_act", KEY_TEXT, "tanh", "tanh", NULL},
    DERIVED("pooler", "yes", "task=hidden&#pooler.dense.weight"),
    DERIVED("lost", "yes", "pooler&pooled_width!=$d_model"), DERIVED("lost", "yes", "pooler&pooler_act!=tanh"),
    DERIVED("pooler", "", "lost"),
    NOTED("lost", "The output `pooled` is left out: its pooler is not the tanh of a square matrix."),
};

const Family family_vit = {
    .types = "vit=ViT", .title = "ViT: Dosovitskiy et al. 2021, arXiv:2010.11929.",
    .classes = "Model=hidden ForImageClassification=classify ForMaskedImageModeling=rest",
    KEYS(vit_keys), .irrelevant = VIT_IRRELEVANT, .prefixes = "vit.", .spec = VIT_SPEC("class"),
        .tensors = VIT_TENSORS(""),
};

const Family family_deit = {
    .types = "deit=DeiT", .title = "DeiT: Touvron et al. 2021, arXiv:2012.12877.",
    .classes = "Model=hidden ForImageClassification=classify ForMaskedImageModeling=rest "
        "ForImageClassificationWithTeacher=rest",
    KEYS(vit_keys), .irrelevant = VIT_IRRELEVANT, .prefixes = "deit.", .spec = VIT_SPEC("class distillation"),
    .tensors = VIT_TENSORS("encoder.embedding.distillation_token embeddings.distillation_token\n"),
};

/* I-JEPA has no row of a class. */
const Family family_ijepa = {
    .types = "ijepa=IJepa", .title = "I-JEPA: Assran et al. 2023, arXiv:2301.08243.",
    .classes = "Model=hidden ForImageClassification=classify", KEYS(vit_keys), .irrelevant = "", .prefixes = "ijepa.",
    .spec = VIT_POOLED("", "mean"), .tensors = VIT_TENSORS(""),
};

/* ---------------------------------------- AST: DeiT over the overlapping squares of a spectrogram [bins][frames] */
static const ConfigKey ast_keys[] = {
    LAYER_SIZES_OR("768", "3072", "12", "12"),
    WORD_OR("hidden_act", "activation", "gelu", ACTIVATIONS), REAL_OR("layer_norm_eps", "eps", "1e-12", NULL),
    INTEGER_OR("num_mel_bins", "bins", "128", NULL), INTEGER_OR("max_length", "frames", "1024", NULL),
    INTEGER_OR("patch_size", "patch", "16", NULL), FLAG_OR("qkv_bias", "qkv_bias", "true"),
    INTEGER_OR("frequency_stride", "stride", "10", NULL), INTEGER_OR("time_stride", "time_stride", "10", NULL),
    REFUSED("stride!=$time_stride", "`frequency_stride` is not `time_stride`, and patches of a spec have one stride"),
    NOTED("", "`pixels` is the normalized spectrogram [bins][frames], of which transformers reads [frames][bins]."),
};

const Family family_ast = {
    .types = "audio-spectrogram-transformer=AST",
    .title = "Audio Spectrogram Transformer: Gong et al. 2021, arXiv:2104.01778.",
    .classes = "Model=hidden ForAudioClassification=classify",
    KEYS(ast_keys), .irrelevant = "", .prefixes = "audio_spectrogram_transformer.",
    .spec = IMAGE_SPEC("", "${bins} width ${frames} channels 1 patch ${patch} stride ${stride} class distillation",
        "position learned\n", "[!qkv_bias?, bias o]", PLAIN_FFN)
        "head pool cls_distillation[task=classify? norm classifier ${#classifier.dense.weight}]\n",
    .tensors = "[task=classify? pool_norm.* classifier.layernorm.*]\n"
        "encoder.embedding.distillation_token embeddings.distillation_token\n" VIT_LAYERS
        "[task=classify? classifier.* classifier.dense.*]\n"
        "ignore classifier.*\n",
};

/* ---------------------------------------- DINOv2: ViT whose sublayers have a learned factor for each column */
#define DINOV2_KEYS(patch)                                                                                    \
    INTEGER_OR("hidden_size", "d_model", "768", NULL), INTEGER_OR("num_hidden_layers", "layers", "12", NULL), \
    INTEGER_OR("num_attention_heads", "heads", "12", NULL), INTEGER_OR("mlp_ratio", "ratio", "4", NULL),      \
    WORD_OR("hidden_act", "activation", "gelu", ACTIVATIONS), REAL_OR("layer_norm_eps", "eps", "1e-6", NULL), \
    IMAGE_SIZES(patch), FLAG_OR("qkv_bias", "qkv_bias", "true"), MUST("num_channels", "3"),                   \
    FLAG_OR("use_swiglu_ffn", "swiglu", "false"), DERIVED("d_ff", "=d_model * ratio", NULL),                  \
    DERIVED("d_ff", "=d_model * ratio * 2 / 3 + 7 / 8 * 8", "swiglu"), DERIVED("d_ff_twice", "=d_ff * 2", NULL)
static const ConfigKey dinov2_keys[] = {DINOV2_KEYS("14")};
static const ConfigKey dinov2_registers_keys[] = {
    DINOV2_KEYS("16"), INTEGER_OR("num_register_tokens", "registers", "4", NULL),
};
#define DINOV2_IRRELEVANT \
    "layerscale_value drop_path_rate out_features out_indices stage_names apply_layernorm " \
    "reshape_hidden_states use_mask_token"
#define DINOV2_SPEC(registers)                                                                                     \
    IMAGE_SPEC("residual learned\n", IMAGE_WORDS " class" registers, "position learned\n", "[!qkv_bias?, bias o]", \
               "[!swiglu? ffn { d_ff ${d_ff}, activation ${activation} }]\n"                                       \
               "[swiglu? ffn { d_ff ${d_ff}, activation silu gated }]\n")                                          \
    "[task=hidden? head pool cls]\n"                                                                               \
    "[task=classify? head pool cls_mean classifier ${#classifier.weight}]\n"
#define DINOV2_TENSORS(registers)                                            \
    "encoder.embedding.patches.* embeddings.patch_embeddings.projection.*\n" \
    "encoder.embedding.class_token embeddings.cls_token\n" registers         \
    "encoder.embedding.positions.weight embeddings.position_embeddings\n"    \
    "@encoder.layers.{layer} encoder.layer.{layer}\n"                        \
    ".attention.norm_in.* .norm1.*\n"                                        \
    VIT_PROJECTIONS                                                          \
    ".attention.residual.weight .layer_scale1.lambda1\n"                     \
    ".ffn.norm_in.* .norm2.*\n"                                              \
    "[!swiglu? .ffn.up.* .mlp.fc1.*]\n"                                      \
    "[!swiglu? .ffn.down.* .mlp.fc2.*]\n"                                    \
    "[swiglu? .ffn.gate.* .mlp.weights_in.* rows 0..${d_ff}]\n"              \
    "[swiglu? .ffn.up.* .mlp.weights_in.* rows ${d_ff}..${d_ff_twice}]\n"    \
    "[swiglu? .ffn.down.* .mlp.weights_out.*]\n"                             \
    ".ffn.residual.weight .layer_scale2.lambda1\n"                           \
    "encoder.final_norm.* layernorm.*\n"                                     \
    "[task=classify? classifier.* classifier.*]\n"                           \
    "ignore embeddings.mask_token\n"
const Family family_dinov2 = {
    .types = "dinov2=Dinov2", .title = "DINOv2: Oquab et al. 2023, arXiv:2304.07193.",
    .classes = "Model=hidden ForImageClassification=classify", KEYS(dinov2_keys),
    .irrelevant = DINOV2_IRRELEVANT,
    .prefixes = "dinov2.",
    .spec = DINOV2_SPEC(""), .tensors = DINOV2_TENSORS(""),
};

const Family family_dinov2_with_registers = {
    .types = "dinov2_with_registers=Dinov2WithRegisters",
    .title = "DINOv2 with registers: Darcet et al. 2023, arXiv:2309.16588.",
    .classes = "Model=hidden ForImageClassification=classify", KEYS(dinov2_registers_keys),
    .irrelevant = DINOV2_IRRELEVANT, .prefixes = "dinov2_with_registers.",
    .spec = DINOV2_SPEC(" registers ${registers}"),
    .tensors = DINOV2_TENSORS("encoder.embedding.registers embeddings.register_tokens\n"),
};

/* ---------------------------------------- DINOv3: queries and keys are rotated by line and column of a patch */
static const ConfigKey dinov3_keys[] = {
    LAYER_SIZES_OR("384", "1536", "12", "6"),
    WORD_OR("hidden_act", "activation", "gelu", ACTIVATIONS), REAL_OR("layer_norm_eps", "eps", "1e-5", NULL),
    POSITIVE_OR("rope_theta", "theta", "100", NULL),
    IMAGE_SIZES("16"), MUST("num_channels", "3"), {"num_register_tokens", "registers", KEY_NATURAL, "0", NULL, NULL},
    FLAG_OR("use_gated_mlp", "gated", "false"), FLAG_OR("query_bias", "bias_q", "true"),
    FLAG_OR("key_bias", "bias_k", "false"), FLAG_OR("value_bias", "bias_v", "true"),
    FLAG_OR("proj_bias", "bias_o", "true"), FLAG_OR("mlp_bias", "bias_ffn", "true"),
    DERIVED("biased", "yes", "bias_q"), DERIVED("biased", "yes", "bias_k"), DERIVED("biased", "yes", "bias_v"),
    DERIVED("biased", "yes", "bias_o"), DERIVED("biased", "yes", "bias_ffn"),
    NOTED("task", "The spec reads images of `image_size`. No weight depends on it: for other images, change `image` "
        "and `width`, which `patch` divides."),
};
const Family family_dinov3 = {
    .types = "dinov3_vit=DINOv3ViT", .title = "DINOv3: Simeoni et al. 2025, arXiv:2508.10104.",
    .classes = "Model=hidden", KEYS(dinov3_keys),
    .irrelevant = "layerscale_value drop_path_rate pos_embed_shift pos_embed_jitter pos_embed_rescale out_features "
                  "out_indices stage_names apply_layernorm reshape_hidden_states",
    .prefixes = "model.",
    .spec = IMAGE_SPEC("residual learned\n"
        "[!biased? bias none]"
        "[biased? bias][bias_q? q][bias_k? k][bias_v? v][bias_o? o]"
        "[bias_ffn&gated? gate][bias_ffn? up down]\n",
        IMAGE_WORDS " class[registers!=0? registers ${registers}]", "position rope grid theta ${theta}\n", "",
        "ffn { d_ff ${d_ff}, activation ${activation}[gated? gated] }\n")
        "head pool cls\n",
    .tensors =
        "encoder.embedding.patches.* embeddings.patch_embeddings.*\n"
        "encoder.embedding.class_token embeddings.cls_token\n"
        "[registers!=0? encoder.embedding.registers embeddings.register_tokens]\n"
        "@encoder.layers.{layer} layer.{layer}\n"
        ".attention.norm_in.* .norm1.*\n"
        PROJECTIONS("attention", "q_proj", "k_proj", "v_proj", "o_proj")
        ".attention.residual.weight .layer_scale1.lambda1\n"
        ".ffn.norm_in.* .norm2.*\n"
        "[gated? .ffn.gate.* .mlp.gate_proj.*]\n"
        UP_DOWN("mlp.up_proj", "mlp.down_proj")
        ".ffn.residual.weight .layer_scale2.lambda1\n"
        "encoder.final_norm.* norm.*\n"
        "[registers=0? buffer embeddings.register_tokens]\n"
        "ignore embeddings.mask_token\n",
};
