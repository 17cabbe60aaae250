/* bert.c: the encoders of text. */
#include "families.h"

#define BERT_SIZES                                                                                       \
    INTEGER("vocab_size", "vocab"), INTEGER("hidden_size", "d_model"), INTEGER("num_hidden_layers", "layers"), \
    INTEGER("num_attention_heads", "heads"), INTEGER("intermediate_size", "d_ff")
#define BERT_COMMON                                                                                      \
    WORD_OR("hidden_act", "activation", "gelu", ACTIVATIONS), REAL_OR("layer_norm_eps", "eps", "1e-12", NULL), \
    MUST("is_decoder", "false null"), MUST("position_embedding_type", "absolute null"), DERIVED("learned", "yes", NULL)
#define OFFSET_POSITIONS                                                                                 \
    {"pad_token_id", "padding_idx", KEY_NATURAL, "1", NULL, NULL},                                       \
    {"max_position_embeddings", "table", KEY_INTEGER, "512", NULL, NULL},                                \
    DERIVED("offset", "=padding_idx + 1", NULL), DERIVED("positions", "=table - offset", NULL)
#define REST                                                                                             \
    " PreTrainedModel=rest ForMaskedLM=rest ForPreTraining=rest ForTokenClassification=rest ForQuestionAnswering=rest" \
    " ForMultipleChoice=rest"

#define ENCODER_SPEC(segments, embedding, layers, attention)          \
    "d_model ${d_model}\n"                                            \
    "vocab ${vocab}\n"                                                \
    "norm layernorm post eps ${eps}\n"                                \
    "[pad? pad ${pad}]\n"                                             \
    "\n"                                                              \
    "encoder {\n"                                                     \
    "seq <= ${bound}\n"                                               \
    "position learned[offset? offset ${offset}]\n" segments           \
    "embedding normalized" embedding "\n"                             \
    "$layers " layers "\n"                                            \
    "attention self { heads ${heads}, mask padding" attention " }\n"  \
    "ffn { d_ff ${d_ff}, activation ${activation} }\n"                \
    "$end\n"                                                          \
    "}\n"                                                             \
    "[task=classify? head pooler classifier ${labels}]\n"

#define BERT_EMBEDDING                                                               \
    "encoder.embedding.tokens.weight embeddings.word_embeddings.weight\n"            \
    "encoder.embedding.positions.weight embeddings.position_embeddings.weight\n"     \
    "[segments? encoder.embedding.segments.weight embeddings.token_type_embeddings.weight]\n" \
    "encoder.embedding.norm.* embeddings.LayerNorm.*\n"
#define BERT_LAYERS                                          \
    "@encoder.layers.{layer} encoder.layer.{layer}\n"        \
    ".attention.query.* .attention.self.query.*\n"           \
    ".attention.key.* .attention.self.key.*\n"               \
    ".attention.value.* .attention.self.value.*\n"           \
    ".attention.output.* .attention.output.dense.*\n"        \
    ".attention.norm_out.* .attention.output.LayerNorm.*\n"  \
    ".ffn.up.* .intermediate.dense.*\n"                      \
    ".ffn.down.* .output.dense.*\n"                          \
    ".ffn.norm_out.* .output.LayerNorm.*\n"
#define BERT_IGNORED "ignore embeddings.position_ids pooler.dense.* cls.* lm_head.* qa_outputs.* classifier.*\n"

/* ---------------------------------------------------------------- BERT */
static const ConfigKey bert_keys[] = {
    BERT_SIZES, BERT_COMMON, INTEGER_OR("max_position_embeddings", "positions", "512", NULL), INTEGER_OR("type_vocab_size", "segments", "2", NULL),
    TOKEN_OR("pad_token_id", "pad", "0"), DERIVED("labels", "", NULL),
};
const Family family_bert = {
    .types = "bert=Bert", .title = "BERT: Devlin et al. 2019, arXiv:1810.04805.",
    .classes = "Model=hidden ForSequenceClassification=classify ForNextSentencePrediction=rest" REST,
    KEYS(bert_keys), .irrelevant = "", .prefixes = "bert.",
    .spec = ENCODER_SPEC("segments ${segments}\n", "", "layers", ""),
    .tensors = BERT_EMBEDDING BERT_LAYERS
        "[task=classify? pooler.* pooler.dense.*]\n"
        "[task=classify? classifier.* classifier.*]\n"
        BERT_IGNORED,
};
