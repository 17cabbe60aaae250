/* clip.c: CLIP's two encoders, SigLIP's encoder of texts, and RoFormer. */
#include "encoders.h"

#define EMBEDDED_SPEC(norm, stack, attention)        \
    ENCODER_OF("encoder", norm, "", stack, "layers", \
               "attention self { heads ${heads}, " attention " }\n" PLAIN_FFN)

/* ------------------------------------- CLIP: the text model alone; a row attends to itself and to those before it */
static const ConfigKey clip_text_keys[] = {
    INTEGER_OR("vocab_size", "vocab", "49408", NULL), LAYER_SIZES_OR("512", "2048", "12", "8"),
    INTEGER_OR("max_position_embeddings", "positions", "77", NULL), DERIVED("learned", "yes", NULL),
    WORD_OR("hidden_act", "activation", "quick_gelu", ACTIVATIONS), REAL_OR("layer_norm_eps", "eps", "1e-5", NULL),
    TOKEN_OR("pad_token_id", "pad", "1"),
    NOTED("task", "The output comes from the last row, which must be that of the first end token: a program leaves out "
        "what its tokenizer puts behind this token."),
};
#define CLIP_IRRELEVANT "projection_dim initializer_factor"
#define CLIP_HEAD(pool, projection) \
    "[task=hidden? head pool " pool "][task=projected? head pool " pool " classifier ${#" projection "} no_bias]\n"
/* Both encoders have the same layers; encoder.layers.{layer} stands in front of these names. */
#define CLIP_LAYERS                                                    \
    "@encoder.layers.{layer} encoder.layers.{layer}\n"                 \
    ".attention.norm_in.* .layer_norm1.*\n"                            \
    PROJECTIONS("self_attn", "q_proj", "k_proj", "v_proj", "out_proj") \
    ".ffn.norm_in.* .layer_norm2.*\n" UP_DOWN("mlp.fc1", "mlp.fc2")
#define CLIP_TEXTS                                                             \
    "encoder.embedding.tokens.weight embeddings.token_embedding.weight\n"       \
    "encoder.embedding.positions.weight embeddings.position_embedding.weight\n" \
    CLIP_LAYERS "encoder.final_norm.* final_layer_norm.*\n" \
    "buffer embeddings.position_ids\n"
const Family family_clip_text = {
    .types = "clip_text_model=CLIPText", .title = "CLIP, its text model: Radford et al. 2021, arXiv:2103.00020.",
    .classes = "Model=hidden ModelWithProjection=projected", KEYS(clip_text_keys),
    .irrelevant = CLIP_IRRELEVANT, .prefixes = "text_model.",
    .spec = EMBEDDED_SPEC("pre", "position learned\n", "mask causal") CLIP_HEAD("last", "text_projection.weight"),
    .tensors =
        CLIP_TEXTS
        "[task=projected? classifier.weight text_projection.weight]\n"
        "ignore text_projection.weight\n",
};

/* ------------------------------------- CLIP: the image model alone; its last norm is that of the class's row */
static const ConfigKey clip_vision_keys[] = {
    LAYER_SIZES_OR("768", "3072", "12", "12"), WORD_OR("hidden_act", "activation", "quick_gelu", ACTIVATIONS),
    REAL_OR("layer_norm_eps", "eps", "1e-5", NULL), MUST("num_channels", "3"), IMAGE_SIZES("32"),
    NOTED("task", "The output `hidden` has all rows behind the last norm, which transformers applies to the first row "
        "alone."),
};
const Family family_clip_vision = {
    .types = "clip_vision_model=CLIPVision", .title = "CLIP, its image model: Radford et al. 2021, arXiv:2103.00020.",
    .classes = "Model=hidden ModelWithProjection=projected", KEYS(clip_vision_keys),
    .irrelevant = CLIP_IRRELEVANT, .prefixes = "vision_model.",
    .spec = IMAGE_SPEC("", IMAGE_WORDS " class no_bias", "embedding normalized\nposition learned\n", "", PLAIN_FFN)
        CLIP_HEAD("cls", "visual_projection.weight"),
    .tensors =
        "encoder.embedding.patches.weight embeddings.patch_embedding.weight\n"
        "encoder.embedding.class_token embeddings.class_embedding\n"
        "encoder.embedding.positions.weight embeddings.position_embedding.weight\n"
        "encoder.embedding.norm.* pre_layrnorm.*\n"
        CLIP_LAYERS
        "encoder.final_norm.* post_layernorm.*\n"
        "[task=projected? classifier.weight visual_projection.weight]\n"
        "buffer embeddings.position_ids\n"
        "ignore visual_projection.weight\n",
};

/* ------------------------------------- CLIP: both models in one file, of which --part selects one */
#define CLIP_OUTER_IRRELEVANT \
    "projection_dim initializer_factor logit_scale_init_value "
static const ConfigKey clip_keys[] = {
    NOTED("task", SCORE_OF("logits", "")),
};
const Family family_clip_text_of = {
    .types = "clip=CLIP", .part = "text",
    .title = "CLIP, its text model: Radford et al. 2021, arXiv:2103.00020 (--part text).",
    .classes = "Model=projected", KEYS(clip_keys),
    .irrelevant = CLIP_OUTER_IRRELEVANT "vision_config vision_config_dict",
    .prefixes = "text_model.", .tensors = "ignore vision_model.* visual_projection.weight logit_scale\n",
    .inside = "text_config", .instead = "text_config_dict", .inner = &family_clip_text,
};
const Family family_clip_vision_of = {
    .types = "clip=CLIP", .part = "vision",
    .title = "CLIP, its image model: Radford et al. 2021, arXiv:2103.00020 (--part vision).",
    .classes = "Model=projected", KEYS(clip_keys),
    .irrelevant = CLIP_OUTER_IRRELEVANT "text_config text_config_dict",
    .prefixes = "vision_model.", .tensors = "ignore text_model.* text_projection.weight logit_scale\n",
    .inside = "vision_config", .instead = "vision_config_dict", .inner = &family_clip_vision,
};

/* ------------------------------------- SigLIP: the text model, alone or of both; all rows attend to all */
static const ConfigKey siglip_text_keys[] = {
    INTEGER_OR("vocab_size", "vocab", "32000", NULL), LAYER_SIZES_OR("768", "3072", "12", "12"),
    INTEGER_OR("max_position_embeddings", "positions", "64", NULL), DERIVED("learned", "yes", NULL),
    WORD_OR("hidden_act", "activation", "gelu_tanh", ACTIVATIONS),
    REAL_OR("layer_norm_eps", "eps", "1e-6", NULL), TOKEN_OR("pad_token_id", "pad", "1"),
    NOTED("task", "The output comes from the last row: SigLIP was trained on texts that are padded to their bound "
        "of tokens, which it reads as others."),
};
#define SIGLIP_TEXT_SPEC \
    EMBEDDED_SPEC("pre", "position learned\n", "mask padding") "head pool last classifier ${#head.weight}\n"
const Family family_siglip_text = {
    .types = "siglip_text_model=SiglipText", .title = "SigLIP, its text model: Zhai et al. 2023, arXiv:2303.15343.",
    .classes = "Model=projected", KEYS(siglip_text_keys), .irrelevant = "projection_size initializer_factor",
    .prefixes = "text_model.",
    .spec = SIGLIP_TEXT_SPEC, .tensors = CLIP_TEXTS "classifier.* head.*\n",
};
static const ConfigKey siglip_keys[] = {
    NOTED("task", SCORE_OF("logits", ", plus logit_bias")),
};
const Family family_siglip_text_of = {
    .types = "siglip=Siglip", .part = "text",
    .title = "SigLIP, its text model: Zhai et al. 2023, arXiv:2303.15343 (--part text).",
    .classes = "Model=projected", KEYS(siglip_keys),
    .irrelevant = "initializer_factor vision_config",
    .prefixes = "text_model.", .tensors = "ignore vision_model.* logit_scale logit_bias\n",
    .inside = "text_config", .inner = &family_siglip_text,
};

/* SigLIP 2 has the same text model. */
const Family family_siglip2_text = {
    .types = "siglip2_text_model=Siglip2Text",
    .title = "SigLIP 2, its text model: Tschannen et al. 2025, arXiv:2502.14786.",
    .classes = "Model=projected", KEYS(siglip_text_keys), .irrelevant = "projection_size initializer_factor",
    .prefixes = "text_model.", .spec = SIGLIP_TEXT_SPEC, .tensors = CLIP_TEXTS "classifier.* head.*\n",
};
const Family family_siglip2_text_of = {
    .types = "siglip2=Siglip2", .part = "text",
    .title = "SigLIP 2, its text model: Tschannen et al. 2025, arXiv:2502.14786 (--part text).",
    .classes = "Model=projected", KEYS(siglip_keys), .irrelevant = "initializer_factor vision_config",
    .prefixes = "text_model.", .tensors = "ignore vision_model.* logit_scale logit_bias\n",
    .inside = "text_config", .inner = &family_siglip2_text,
};

/* ------------------------------------- SigLIP: the image model, alone or of both; a learned row attends to all */
#define PROBE_PART(word, from, to)                                                                      \
    "probe.attention." word ".weight head.attention.in_proj_weight rows " from ".." to "\n" \
    "probe.attention." word ".bias head.attention.in_proj_bias rows " from ".." to "\n"
static const ConfigKey siglip_vision_of_keys[] = {
    NOTED("task=hidden", SCORE_OF("pooled", ", plus logit_bias")),
};
static const ConfigKey siglip_vision_keys[] = {
    LAYER_SIZES_OR("768", "3072", "12", "12"),
    WORD_OR("hidden_act", "activation", "gelu_tanh", ACTIVATIONS),
    REAL_OR("layer_norm_eps", "eps", "1e-6", NULL), MUST("num_channels", "3"), IMAGE_SIZES("16"),
    FLAG_OR("vision_use_head", "use_head", "true"),
    DERIVED("probe", "yes", "task=hidden&use_head"),
};
const Family family_siglip_vision = {
    .types = "siglip_vision_model=SiglipVision",
    .title = "SigLIP, its image model: Zhai et al. 2023, arXiv:2303.15343.",
    .classes = "Model=hidden", KEYS(siglip_vision_keys), .irrelevant = "initializer_factor",
    .prefixes = "vision_model.",
    .spec = IMAGE_SPEC("", IMAGE_WORDS, "position learned\n", "", PLAIN_FFN)
        "[task=classify? head pool mean classifier ${#classifier.weight}]\n"
        "$if probe\n"
        "head pool probe\n"
        "probe {\n"
        "attention cross { heads ${heads}, norm none, residual no }\n"
        PLAIN_FFN
        "}\n"
        "$end\n",
    .tensors =
        "encoder.embedding.patches.* embeddings.patch_embedding.*\n"
        "encoder.embedding.positions.weight embeddings.position_embedding.weight\n"
        CLIP_LAYERS
        "encoder.final_norm.* post_layernorm.*\n"
        "$if probe\n"
        "probe.row head.probe\n"
        PROBE_PART("query", "0", "${d_model}")
        PROBE_PART("key", "${d_model}", "2*${d_model}")
        PROBE_PART("value", "2*${d_model}", "3*${d_model}")
        "probe.attention.output.* head.attention.out_proj.*\n"
        "probe.ffn.norm_in.* head.layernorm.*\n"
        "probe.ffn.up.* head.mlp.fc1.*\n"
        "probe.ffn.down.* head.mlp.fc2.*\n"
        "$end\n"
        "[task=classify? classifier.* classifier.*]\n"
        "buffer embeddings.position_ids\n"
        "ignore head.*\n",
};
const Family family_siglip_vision_of = {
    .types = "siglip=Siglip", .part = "vision",
    .title = "SigLIP, its image model: Zhai et al. 2023, arXiv:2303.15343 (--part vision).",
    .classes = "Model=hidden ForImageClassification=classify", KEYS(siglip_vision_of_keys),
    .irrelevant = "initializer_factor text_config",
    .prefixes = "vision_model.", .tensors = "ignore text_model.* logit_scale logit_bias\n",
    .inside = "vision_config", .inner = &family_siglip_vision,
};

/* ---------------------------------------- RoFormer: BERT with neighbouring columns rotated */
static const ConfigKey roformer_keys[] = {
    TEXT_SIZES, INTEGER_OR("max_position_embeddings", "positions", "1536", NULL), DERIVED("learned", "yes", NULL),
    INTEGER_OR("embedding_size", "factor", "=d_model", "=d_model"),
    INTEGER_OR("type_vocab_size", "segments", "2", NULL),
    WORD_OR("hidden_act", "activation", "gelu", ACTIVATIONS), REAL_OR("layer_norm_eps", "eps", "1e-12", NULL),
    TOKEN_OR("pad_token_id", "pad", "0"), MUST("is_decoder", "false null"),
    FLAG_OR("rotary_value", "rotary_value", "false"), MASKED_KEYS("cls.predictions.decoder", "cls.predictions"),
    /* transformers rotates by the file's table where the file has one. */
    REFUSED("#encoder.embed_positions.weight<>sinusoids", "`encoder.embed_positions.weight` of the file holds other "
        "numbers than the sinusoids of a rotation, and the language takes no angles from a file"),
    REFUSED("rotary_value", "`rotary_value` is true, and the language has no rotation of values"),
};
const Family family_roformer = {
    .types = "roformer=RoFormer", .title = "RoFormer: Su et al. 2021, arXiv:2104.09864.",
    .classes = "Model=hidden PreTrainedModel=rest ForMaskedLM=masked ForSequenceClassification=classify "
        "ForMultipleChoice=rest" ROW_CLASSES,
    KEYS(roformer_keys),
    .irrelevant = "summary_type summary_use_proj summary_activation summary_last_dropout",
    .prefixes = "roformer.",
    .spec = EMBEDDED_SPEC("post", "segments ${segments}\nembedding normalized[factor!=$d_model? factor ${factor}]\n",
                         "mask padding, position rope theta 10000 interleaved")
        "[task=classify? head pooler ${activation} classifier ${#classifier.out_proj.weight}]\n" ROW_HEADS
        MASKED_HEAD("${activation}"),
    .tensors = ROW_TENSORS
        MASKED_TENSORS("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm",
                       "cls.predictions.decoder", "cls.predictions")
        TOKEN_TABLE_IN("encoder", WORD_TABLE, "cls.predictions.decoder.weight")
        "encoder.embedding.segments.weight embeddings.token_type_embeddings.weight\n"
        "encoder.embedding.norm.* embeddings.LayerNorm.*\n"
        "encoder.embedding.projection.* embeddings_project.*\n"
        BERT_LAYERS_IN("encoder") CLASSIFY_TENSORS("classifier.dense", "classifier.out_proj")
        "buffer encoder.embed_positions.weight\n" /* equal to the sinusoids, as checked above */
        "ignore cls.* classifier.* qa_outputs.*\n",
};
