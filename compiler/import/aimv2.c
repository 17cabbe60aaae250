/* aimv2.c: AIMv2's encoders of images and of texts. */
#include "encoders.h"

#define AIMV2_KEYS(width, d_ff, layers, heads)                                                           \
    LAYER_SIZES_OR(width, d_ff, layers, heads), WORD_OR("hidden_act", "activation", "silu", ACTIVATIONS), \
    REAL_OR("rms_norm_eps", "eps", "1e-5", NULL), FLAG_OR("qkv_bias", "qkv_bias", "false"),               \
    FLAG_OR("mlp_bias", "mlp_bias", "false")
#define AIMV2_LAYERS(mask)                                                              \
    "attention self { heads ${heads}" mask "[!qkv_bias?, bias none] }\n"                \
    "ffn { d_ff ${d_ff}, activation ${activation} gated[!mlp_bias?, bias none] }\n"
/* Both encoders have the same layers. */
#define AIMV2_TENSORS                                                  \
    "@encoder.layers.{layer} encoder.layers.{layer}\n"                 \
    ".attention.norm_in.weight .rms_norm1.weight\n"                    \
    PROJECTIONS("attention", "q_proj", "k_proj", "v_proj", "out_proj") \
    ".ffn.norm_in.weight .rms_norm2.weight\n"                          \
    ".ffn.gate.* .ffn.gate_proj.*\n" UP_DOWN("ffn.up_proj", "ffn.down_proj") \
    "encoder.final_norm.weight rms_norm.weight\n"                      \
    "buffer embeddings.position_ids\n"
#define AIMV2_TITLE(of) "AIMv2, its " of " model: Fini et al. 2024, arXiv:2411.14402"

/* ------------------------------------- the text model, alone or of both */
static const ConfigKey aimv2_text_keys[] = {
    INTEGER_OR("vocab_size", "vocab", "49408", NULL), AIMV2_KEYS("768", "2048", "12", "6"),
    INTEGER_OR("max_position_embeddings", "positions", "77", NULL), DERIVED("learned", "yes", NULL),
    TOKEN_OR("pad_token_id", "pad", ""),
    NOTED("task", "The output comes from the last row, which must be that of the first end token: a program leaves out "
        "what its tokenizer puts after this token."),
    NOTED("task", "A row sees itself and the rows before it, as in training; transformers 5.24 forgets this mask where "
        "it gets no `attention_mask`, and with SDPA where no text is padded."),
};
const Family family_aimv2_text = {
    .types = "aimv2_text_model=Aimv2Text", .title = AIMV2_TITLE("text") ".",
    .classes = "Model=hidden", KEYS(aimv2_text_keys), .irrelevant = "", .prefixes = "text_model.",
    .spec = "d_model ${d_model}\nvocab ${vocab}\nnorm rmsnorm pre eps ${eps}\n[pad? pad ${pad}]\n\n"
        STACK_OF_LAYERS("encoder", "layers", "position learned\n", AIMV2_LAYERS(", mask causal"))
        "head pool last[task=projected? classifier ${#text_projection.weight} no_bias]\n",
    .tensors =
        "encoder.embedding.tokens.weight embeddings.token_embedding.weight\n"
        "encoder.embedding.positions.weight embeddings.position_embedding.weight\n" AIMV2_TENSORS
        "[task=projected? classifier.weight text_projection.weight]\n",
};

#define AIMV2_OUTER_IRRELEVANT "projection_dim initializer_factor logit_scale_init_value max_logit_scale "
static const ConfigKey aimv2_keys[] = {
    NOTED("task", SCORE_OF("logits", ", and times at most `max_logit_scale`")),
};
const Family family_aimv2_text_of = {
    .types = "aimv2=Aimv2", .part = "text", .title = AIMV2_TITLE("text") " (--part text).",
    .classes = "Model=projected", KEYS(aimv2_keys), .irrelevant = AIMV2_OUTER_IRRELEVANT "vision_config",
    .prefixes = "text_model.", .tensors = "ignore vision_model.* visual_projection.weight logit_scale\n",
    .inside = "text_config", .inner = &family_aimv2_text,
};

/* ------------------------------------- the image model, alone or of both; a learned query attends to all rows */
static const ConfigKey aimv2_vision_keys[] = {
    AIMV2_KEYS("1024", "2816", "24", "8"), IMAGE_SIZES("14"), INTEGER_OR("num_channels", "channels", "3", NULL),
    FLAG_OR("use_head", "use_head", "true"), FLAG_OR("is_native", "native", "false"),
    REFUSED("task=projected&!use_head", "`use_head` is false, and the projection is that of the head's row"),
    NOTED("native", "The spec reads images of `image_size`. No weight depends on it: for other images, change `image` "
        "and `width`, which `patch` divides."),
};
/* The query is the class token itself: the matrix before its bias, which no file has, is zero. */
const Family family_aimv2_vision = {
    .types = "aimv2_vision_model=Aimv2Vision", .title = AIMV2_TITLE("image") ".",
    .classes = "Model=hidden", KEYS(aimv2_vision_keys), .irrelevant = "", .prefixes = "vision_model.",
    .spec = "d_model ${d_model}\nnorm rmsnorm pre eps ${eps}\nembedding normalized before_positions\n\n"
        "encoder {\n"
        "input patches image " IMAGE_WORDS "[channels!=3? channels ${channels}]\n"
        "[native? position sinusoidal halves grid][!native? position learned]\n"
        "$layers layers\n" AIMV2_LAYERS("") "$end\n}\n"
        "$if use_head\n"
        "head pool probe[task=projected? classifier ${#visual_projection.weight} no_bias]\n"
        "probe {\nattention cross { heads ${heads}, norm none, residual no[!qkv_bias?, bias q o] }\n}\n"
        "$end\n",
    .tensors =
        "encoder.embedding.patches.* embeddings.patch_embed.*\n"
        "encoder.embedding.norm.weight embeddings.rms_norm.weight\n"
        "[!native? encoder.embedding.positions.weight embeddings.position_embedding.weight]\n" AIMV2_TENSORS
        "$if use_head\n"
        "probe.row head.cls_token\n"
        "probe.attention.query.weight head.q_proj.weight optional\n"
        "probe.attention.query.bias head.cls_token\n"
        "probe.attention.key.* head.k_proj.*\n"
        "probe.attention.value.* head.v_proj.*\n"
        "probe.attention.output.* head.output_proj.*\n"
        "$end\n"
        "[task=projected? classifier.weight visual_projection.weight]\n"
        "ignore head.*\n",
};
const Family family_aimv2_vision_of = {
    .types = "aimv2=Aimv2", .part = "vision", .title = AIMV2_TITLE("image") " (--part vision).",
    .classes = "Model=projected", KEYS(aimv2_keys), .irrelevant = AIMV2_OUTER_IRRELEVANT "text_config",
    .prefixes = "vision_model.", .tensors = "ignore text_model.* text_projection.weight logit_scale\n",
    .inside = "vision_config", .inner = &family_aimv2_vision,
};
