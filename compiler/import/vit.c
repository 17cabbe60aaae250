/* vit.c: encoders of images. */
#include "families.h"

#define VIT_KEYS                                                                                            \
    INTEGER("hidden_size", "d_model"), INTEGER("num_hidden_layers", "layers"),                              \
    INTEGER("num_attention_heads", "heads"), INTEGER("intermediate_size", "d_ff"),                          \
    WORD_OR("hidden_act", "activation", "gelu", ACTIVATIONS), REAL_OR("layer_norm_eps", "eps", "1e-12", NULL), \
    {"image_size", "image", KEY_PAIR, "224", NULL, NULL}, {"patch_size", "patch", KEY_PAIR, "16", NULL, NULL}, \
    FLAG_OR("qkv_bias", "qkv_bias", "true"), MUST("num_channels", "3"),                                           \
    INTEGER_OR("pooler_output_size", "pooled_width", "=d_model", "=d_model"),                               \
    {"pooler_act", "pooler_act", KEY_TEXT, "tanh", "tanh", NULL},                                           \
    DERIVED("pooler", "yes", "task=hidden&#pooler.dense.weight"),                                           \
    DERIVED("lost", "yes", "pooler&pooled_width!=$d_model"), DERIVED("lost", "yes", "pooler&pooler_act!=tanh"), \
    DERIVED("pooler", "", "lost"),                                                                          \
    NOTED("lost", "The output `pooled` is left out: its pooler is not the tanh of a square matrix.")
#define VIT_IRRELEVANT "encoder_stride tie_word_embeddings"

#define VIT_SPEC(tokens)                                                                          \
    "d_model ${d_model}\n"                                                                        \
    "norm layernorm pre eps ${eps}\n"                                                             \
    "\n"                                                                                          \
    "encoder {\n"                                                                                 \
    "input patches image ${image}[image_width? width ${image_width}] patch ${patch} " tokens "\n" \
    "position learned\n"                                                                          \
    "$layers layers\n"                                                                            \
    "attention self { heads ${heads}[!qkv_bias?, bias o] }\n"                                     \
    "ffn { d_ff ${d_ff}, activation ${activation} }\n"                                            \
    "$end\n"                                                                                      \
    "}\n"                                                                                         \
    "[task=classify? head pool cls classifier ${#classifier.weight}]\n"                           \
    "[pooler? head pooler]\n"

#define VIT_TENSORS(tokens)                                                  \
    "encoder.embedding.patches.* embeddings.patch_embeddings.projection.*\n" \
    "encoder.embedding.class_token embeddings.cls_token\n" tokens            \
    "encoder.embedding.positions.weight embeddings.position_embeddings\n"    \
    "@encoder.layers.{layer} encoder.layer.{layer}\n"                        \
    ".attention.norm_in.* .layernorm_before.*\n"                             \
    ".attention.query.* .attention.attention.query.*\n"                      \
    ".attention.key.* .attention.attention.key.*\n"                          \
    ".attention.value.* .attention.attention.value.*\n"                      \
    ".attention.output.* .attention.output.dense.*\n"                        \
    ".ffn.norm_in.* .layernorm_after.*\n"                                    \
    ".ffn.up.* .intermediate.dense.*\n"                                      \
    ".ffn.down.* .output.dense.*\n"                                          \
    "encoder.final_norm.* layernorm.*\n"                                     \
    "[task=classify? classifier.* classifier.*]\n"                           \
    "[pooler? pooler.* pooler.dense.*]\n"                                    \
    "ignore pooler.dense.* embeddings.mask_token decoder.* cls_classifier.* distillation_classifier.*\n"

static const ConfigKey vit_keys[] = {VIT_KEYS};

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
