/* rotary.c: encoders of text that rotate queries and keys by position, and ESM, which may also learn positions. */
#include "encoders.h"

#define ROTARY_SIZES                                                                                            \
    INTEGER("vocab_size", "vocab"), INTEGER("hidden_size n_embd", "d_model"),                                   \
    INTEGER("num_hidden_layers n_layer", "layers"), INTEGER("num_attention_heads n_head", "heads"),             \
    INTEGER("intermediate_size n_inner", "d_ff"), DERIVED("whole_rope", "yes", NULL),                           \
    INTEGER_OR("head_dim", "head_dim", "=d_model / heads", "=d_model / heads"),                                 \
    DERIVED("width", "=heads * head_dim", NULL)
#define ROTARY_CLASSES                                                                    \
    "Model=hidden ForMaskedLM=masked ForSequenceClassification=classify" ROW_CLASSES      \
    " PreTrainedModel=rest ForMultipleChoice=rest"
/* `words` are further settings of attention. */
#define ROTARY_SPEC(words, ffn)                                                                                  \
    ENCODER_OF("encoder", "post", "", "[segments!=0? segments ${segments}]\nembedding normalized\n", "layers",   \
               "attention self {\nheads ${heads}\n[width!=$d_model? head_dim ${head_dim}]\nmask padding\n" words \
               "position rope ${rope}\n}\n" ffn)
/* transformers keeps the names of the makers' own files; `mixer` holds the projections. */
#define ROTARY_LAYERS(head, mixer, ffn)                                                          \
    TOKEN_TABLE_IN("encoder", WORD_TABLE, head ".weight")                                        \
    "[segments!=0? encoder.embedding.segments.weight embeddings.token_type_embeddings.weight]\n" \
    "encoder.embedding.norm.* emb_ln.*\n"                                                        \
    "@encoder.layers.{layer} encoder.layers.{layer}\n"                                           \
    QKV_ROWS("*", mixer ".Wqkv.*", "${width}", "2*${width}", "3*${width}")                       \
    ".attention.output.* ." mixer ".out_proj.*\n"                                                \
    ".attention.norm_out.* .norm1.*\n"                                                           \
    ".ffn.norm_out.* .norm2.*\n" ffn
#define ROTARY_END                                                            \
    "buffer embeddings.position_ids\nbuffer rotary_emb.inv_freq\n"            \
    "ignore pooler.dense.* cls.* lm_head.* qa_outputs.* classifier.*\n"

/* ---------------------------------------- Nomic Embed */
static const ConfigKey nomic_bert_keys[] = {
    ROTARY_SIZES,
    {"hidden_act activation_function", "activation", KEY_WORD, "silu", NULL, "swiglu=silu silu gelu relu"},
    REAL_OR("layer_norm_eps layer_norm_epsilon", "eps", "1e-12", NULL),
    {"type_vocab_size", "segments", KEY_NATURAL, "2", NULL, NULL},
    INTEGER_OR("max_position_embeddings n_positions", "positions", "2048", NULL),
    TOKEN_OR("pad_token_id", "pad", "0"), POSITIVE_OR("rope_theta rotary_emb_base", "theta", "1000", "1000"),
    ROPE("rope_parameters rope_scaling", "rope", "theta", NULL),
    MUST("rotary_emb_fraction", "1 1.0"), MUST("rotary_emb_interleaved", "false"),
    MUST("rotary_emb_scale_base", "null"), MUST("rotary_scaling_factor", "null"), MUST("prenorm", "false"),
    MUST("causal", "false"), MUST("qkv_proj_bias", "false"), MUST("mlp_fc1_bias", "false"),
    MUST("mlp_fc2_bias", "false"), MUST("use_rms_norm", "false"), MUST("parallel_block", "false"),
    MUST("scale_attn_weights", "true"), MUST("scale_attn_by_inverse_layer_idx", "false"),
    MASKED_KEYS("cls.predictions.decoder", "cls.predictions"),
};
const Family family_nomic_bert = {
    .types = "nomic_bert=NomicBert", .title = "Nomic Embed: Nussbaum et al. 2024, arXiv:2402.01613.",
    .classes = ROTARY_CLASSES, KEYS(nomic_bert_keys),
    .irrelevant = "attn_pdrop embd_pdrop resid_pdrop dense_seq_output fused_bias_fc fused_dropout_add_ln "
                  "last_layer_subset max_trained_positions mlp_checkpoint_lvl pad_vocab_size_multiple "
                  "parallel_block_tied_norm reorder_and_upcast_attn summary_activation summary_first_dropout "
                  "summary_proj_to_labels summary_type summary_use_proj use_flash_attn use_xentropy",
    .prefixes = "nomic_bert. bert.",
    .spec = ROTARY_SPEC("bias none\n", "ffn { d_ff ${d_ff}, activation ${activation} gated, bias none }\n")
        CLASSIFIER("classifier") POOLER("pooler.dense") ROW_HEADS MASKED_HEAD("${activation}"),
    .tensors = ROTARY_LAYERS("cls.predictions.decoder", "attn",
                             ".ffn.up.* .mlp.fc11.*\n.ffn.gate.* .mlp.fc12.*\n.ffn.down.* .mlp.fc2.*\n")
        POOLER_TENSORS("pooler.dense") CLASSIFY_TENSORS("pooler.dense", "classifier") ROW_TENSORS
        MASKED_TENSORS("cls.predictions.transform.dense", "cls.predictions.transform.layer_norm",
                       "cls.predictions.decoder", "cls.predictions") ROTARY_END,
};

/* ---------------------------------------- Jina Embeddings 3 */
static const ConfigKey jina_embeddings_v3_keys[] = {
    ROTARY_SIZES, WORD_OR("hidden_act", "activation", "gelu", ACTIVATIONS),
    REAL_OR("layer_norm_eps", "eps", "1e-5", NULL),
    {"type_vocab_size", "segments", KEY_NATURAL, "1", NULL, NULL},
    INTEGER_OR("max_position_embeddings", "positions", "8194", NULL), TOKEN_OR("pad_token_id", "pad", "1"),
    POSITIVE_OR("rope_theta", "theta", "20000", "20000"), ROPE("rope_parameters rope_scaling", "rope", "theta", NULL),
    MASKED_KEYS("lm_head.decoder", "lm_head"),
};
const Family family_jina_embeddings_v3 = {
    .types = "jina_embeddings_v3=JinaEmbeddingsV3", .title = "Jina Embeddings 3: Sturua et al. 2024, arXiv:2409.10173.",
    .classes = ROTARY_CLASSES, KEYS(jina_embeddings_v3_keys), .irrelevant = "", .prefixes = "roberta.",
    .spec = ROTARY_SPEC("", PLAIN_FFN)
        CLASSIFIER("classifier.out_proj") POOLER("pooler.dense") ROW_HEADS MASKED_HEAD("gelu"),
    .tensors = ROTARY_LAYERS("lm_head.decoder", "mixer", UP_DOWN("mlp.fc1", "mlp.fc2"))
        POOLER_TENSORS("pooler.dense") CLASSIFY_TENSORS("classifier.dense", "classifier.out_proj") ROW_TENSORS
        MASKED_TENSORS("lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", "lm_head") ROTARY_END,
};

/* ---------------------------------------- ESM: its rows are scaled by the share of tokens that are no mask */
static const ConfigKey esm_keys[] = {
    TEXT_SIZES, REAL_OR("layer_norm_eps", "eps", "1e-12", NULL),
    {"pad_token_id", "padding_idx", KEY_NATURAL, NULL, NULL, NULL},
    INTEGER_OR("max_position_embeddings", "table", "1026", NULL),
    WORD_OR("position_embedding_type", "position", "absolute", "absolute rotary"),
    DERIVED("offset", "=padding_idx + 1", NULL), DERIVED("positions", "=table - offset", NULL),
    DERIVED("positions", "=table", "position=rotary"), TOKEN_OR("pad_token_id", "pad", ""),
    DERIVED("whole_rope", "yes", NULL), POSITIVE_OR("rope_theta", "theta", "10000", "10000"),
    FLAG_OR("emb_layer_norm_before", "normed", "false"), FLAG_OR("token_dropout", "dropout", "false"),
    TOKEN_OR("mask_token_id", "mask", ""),
    MUST("is_folding_model", "false"), MUST("is_decoder", "false"), MUST("add_cross_attention", "false"),
    MASKED_KEYS("lm_head.decoder", "lm_head.decoder"), /* the matrix has no bias of its own */
};
const Family family_esm = {
    .types = "esm=Esm", .title = "ESM-2: Lin et al. 2023, doi:10.1126/science.ade2574.",
    .classes = "Model=hidden ForMaskedLM=masked ForSequenceClassification=classify ForTokenClassification=labels "
               "PreTrainedModel=rest",
    KEYS(esm_keys), .irrelevant = "vocab_list esmfold_config hidden_act", .prefixes = "esm.",
    .spec = ENCODER_OF("encoder", "pre", "",
        "[position=absolute? position learned offset ${offset} skip ${padding_idx}]\n"
        "[position=rotary? position rope theta ${theta}]\n"
        "[normed? embedding normalized][dropout&!normed? embedding][dropout? scale 0.88][dropout&mask? mask ${mask}]\n",
        "layers", "attention self { heads ${heads}, mask padding }\nffn { d_ff ${d_ff}, activation gelu }\n")
        CLASSIFIER("classifier.out_proj") POOLER("pooler.dense") ROW_HEADS MASKED_HEAD("gelu"),
    .tensors =
        TOKEN_TABLE_IN("encoder", WORD_TABLE, "lm_head.decoder.weight")
        "[position=absolute? encoder.embedding.positions.weight embeddings.position_embeddings.weight]\n"
        "[normed? encoder.embedding.norm.* embeddings.layer_norm.*]\n"
        "@encoder.layers.{layer} encoder.layer.{layer}\n"
        ".attention.norm_in.* .attention.LayerNorm.*\n"
        BERT_PROJECTIONS ".ffn.norm_in.* .LayerNorm.*\n" UP_DOWN("intermediate.dense", "output.dense")
        "encoder.final_norm.* encoder.emb_layer_norm_after.*\n" POOLER_TENSORS("pooler.dense")
        CLASSIFY_TENSORS("classifier.dense", "classifier.out_proj") ROW_TENSORS
        MASKED_MATRICES("lm_head.dense", "lm_head.layer_norm", "lm_head.decoder")
        "[task=masked? head.bias lm_head.bias]\n" /* the matrix has none of its own */
        "buffer embeddings.position_ids\nbuffer rotary_embeddings.inv_freq\n"
        "buffer encoder.layer.{layer}.attention.self.rotary_embeddings.inv_freq\n"
        "ignore pooler.dense.* lm_head.* classifier.* contact_head.*\n",
};
