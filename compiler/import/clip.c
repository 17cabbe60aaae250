/* clip.c: CLIP's text encoder, and RoFormer. */
#include "families.h"

#define ENCODER_SIZES                                                                                          \
    INTEGER("vocab_size", "vocab"), INTEGER("hidden_size", "d_model"), INTEGER("num_hidden_layers", "layers"), \
    INTEGER("num_attention_heads", "heads"), INTEGER("intermediate_size", "d_ff")
#define ENCODER_SPEC(norm, stack, attention)                   \
    "d_model ${d_model}\n"                                     \
    "vocab ${vocab}\n"                                         \
    "norm layernorm " norm " eps ${eps}\n"                     \
    "[pad? pad ${pad}]\n"                                      \
    "\n"                                                       \
    "encoder {\n"                                              \
    "seq <= ${bound}\n" stack                                  \
    "$layers layers\n"                                         \
    "attention self { heads ${heads}, " attention " }\n"       \
    "ffn { d_ff ${d_ff}, activation ${activation} }\n"         \
    "$end\n"                                                   \
    "}\n"

/* ------------------------------------- CLIP: the text model alone; a row attends to itself and to those before it */
static const ConfigKey clip_text_keys[] = {
    ENCODER_SIZES, INTEGER_OR("max_position_embeddings", "positions", "77", NULL), DERIVED("learned", "yes", NULL),
    WORD_OR("hidden_act", "activation", "quick_gelu", ACTIVATIONS), REAL_OR("layer_norm_eps", "eps", "1e-5", NULL),
    TOKEN_OR("pad_token_id", "pad", "1"),
    NOTED("task=hidden", "The output `pooled` is left out: a spec cannot express a pool of the row at the first end "
        "token."),
    NOTED("task=projected", "The output `pooled` is left out, with its projection: a spec cannot express a pool of the "
        "row at the first end token."),
    MUST("is_decoder", "false null"),
};
const Family family_clip_text = {
    .types = "clip_text_model=CLIPText", .title = "CLIP, its text model: Radford et al. 2021, arXiv:2103.00020.",
    .classes = "Model=hidden ModelWithProjection=projected", KEYS(clip_text_keys),
    .irrelevant = "projection_dim initializer_factor tie_word_embeddings", .prefixes = "text_model.",
    .spec = ENCODER_SPEC("pre", "position learned\n", "mask causal"),
    .tensors =
        "encoder.embedding.tokens.weight embeddings.token_embedding.weight\n"
        "encoder.embedding.positions.weight embeddings.position_embedding.weight\n"
        "@encoder.layers.{layer} encoder.layers.{layer}\n"
        ".attention.norm_in.* .layer_norm1.*\n"
        ".attention.query.* .self_attn.q_proj.*\n"
        ".attention.key.* .self_attn.k_proj.*\n"
        ".attention.value.* .self_attn.v_proj.*\n"
        ".attention.output.* .self_attn.out_proj.*\n"
        ".ffn.norm_in.* .layer_norm2.*\n"
        ".ffn.up.* .mlp.fc1.*\n"
        ".ffn.down.* .mlp.fc2.*\n"
        "encoder.final_norm.* final_layer_norm.*\n"
        "buffer embeddings.position_ids\n"
        "ignore text_projection.weight\n",
};

/* ---------------------------------------- RoFormer: BERT with neighbouring columns rotated */
static const ConfigKey roformer_keys[] = {
    ENCODER_SIZES, INTEGER_OR("max_position_embeddings", "positions", "1536", NULL), DERIVED("learned", "yes", NULL),
    INTEGER_OR("embedding_size", "factor", "=d_model", "=d_model"),
    INTEGER_OR("type_vocab_size", "segments", "2", NULL),
    WORD_OR("hidden_act", "activation", "gelu", ACTIVATIONS), REAL_OR("layer_norm_eps", "eps", "1e-12", NULL),
    TOKEN_OR("pad_token_id", "pad", "0"), MUST("is_decoder", "false null"),
    FLAG_OR("rotary_value", "rotary_value", "false"), MASKED_KEYS,
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
    .spec = ENCODER_SPEC("post", "segments ${segments}\nembedding normalized[factor!=$d_model? factor ${factor}]\n",
                         "mask padding, position rope theta 10000 interleaved")
        "[task=classify? head pooler ${activation} classifier ${#classifier.out_proj.weight}]\n" ROW_HEADS
        MASKED_HEAD("${activation}"),
    .tensors = ROW_TENSORS
        MASKED_TENSORS("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm",
                       "cls.predictions.decoder", "cls.predictions")
        "encoder.embedding.tokens.weight embeddings.word_embeddings.weight\n"
        "encoder.embedding.segments.weight embeddings.token_type_embeddings.weight\n"
        "encoder.embedding.norm.* embeddings.LayerNorm.*\n"
        "encoder.embedding.projection.* embeddings_project.*\n"
        "@encoder.layers.{layer} encoder.layer.{layer}\n"
        ".attention.query.* .attention.self.query.*\n"
        ".attention.key.* .attention.self.key.*\n"
        ".attention.value.* .attention.self.value.*\n"
        ".attention.output.* .attention.output.dense.*\n"
        ".attention.norm_out.* .attention.output.LayerNorm.*\n"
        ".ffn.up.* .intermediate.dense.*\n"
        ".ffn.down.* .output.dense.*\n"
        ".ffn.norm_out.* .output.LayerNorm.*\n"
        "[task=classify? pooler.* classifier.dense.*]\n"
        "[task=classify? classifier.* classifier.out_proj.*]\n"
        "buffer encoder.embed_positions.weight\n" /* equal to the sinusoids, as checked above */
        "ignore cls.* classifier.* qa_outputs.*\n",
};
