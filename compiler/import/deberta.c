/* deberta.c: encoders whose scores have products of content and distance. */
#include "encoders.h"

/* `pos_att_type` names the products that are added to the scores. The tables have rows for `span` distances on each
 * side of a token. */
#define DEBERTA_KEYS                                                                                             \
    TEXT_SIZES,                                                                                                  \
    WORD_OR("hidden_act", "activation", "gelu", ACTIVATIONS), REAL_OR("layer_norm_eps", "eps", "1e-7", NULL),    \
    INTEGER_OR("max_position_embeddings", "positions", "512", NULL),                                             \
    {"type_vocab_size", "segments", KEY_NATURAL, "0", "0", NULL}, TOKEN_OR("pad_token_id", "pad", "0"),          \
    FLAG_OR("position_biased_input", "learned", "true"), FLAG_OR("relative_attention", "relative", "false"),     \
    {"pos_att_type", "terms", KEY_WORDS, "", "", "p2c|c2p=both c2p|p2c=both c2p p2c"},                           \
    DERIVED("by_query", "true", "terms=both"), DERIVED("by_query", "true", "terms=c2p"),                         \
    DERIVED("by_key", "true", "terms=both"), DERIVED("by_key", "true", "terms=p2c"),                             \
    DERIVED("products", "2", "terms"), DERIVED("products", "3", "terms=both"),                                   \
    DERIVED("content", "true", "relative&terms"),                                                                \
    {"max_relative_positions", "span", KEY_BOUND, "=positions", NULL, NULL}, DERIVED("rows", "=2 * span", NULL), \
    INTEGER_OR("embedding_size", "factor", "=d_model", "=d_model"),                                              \
    REFUSED("factor!=$d_model", "`embedding_size` is not `hidden_size`, and the language has the norm of an "    \
        "embedding before its projection only"),                                                                 \
    INTEGER_OR("pooler_hidden_size", "pooled", "=d_model", "=d_model"),                                          \
    REFUSED("pooled!=$d_model", "`pooler_hidden_size` is not `hidden_size`"),                                    \
    WORD_OR("pooler_hidden_act", "pooler_activation", "gelu", ACTIVATIONS), FLAG_OR("legacy", "legacy", "true"), \
    MASKED_KEYS_IF("&legacy", "cls.predictions.decoder", "cls.predictions", WORD_TABLE), CHOICE_NOTE,            \
    DERIVED("tied", "true", "!legacy")

static const ConfigKey deberta_v2_keys[] = {
    DEBERTA_KEYS, INTEGER_OR("attention_head_size", "head_dim", "=d_model / heads", "=d_model / heads"),
    INTEGER_OR("position_buckets", "buckets", "", ""), DERIVED("rows", "=2 * buckets", "buckets"),
    FLAG_OR("share_att_key", "shared", "false"), WORD_OR("norm_rel_ebd", "norm_rel", "none", "none layer_norm"),
    {"conv_kernel_size", "kernel", KEY_NATURAL, "0", NULL, NULL},
    DERIVED("kernel_pairs", "=kernel / 2 * 2", NULL),
    REFUSED("kernel!=0&kernel_pairs=$kernel", "`conv_kernel_size` is even, and transformers computes no such model"),
    INTEGER_OR("conv_groups", "conv_groups", "1", NULL),
    WORD_OR("conv_act", "conv_activation", "tanh", ACTIVATIONS),
};
/* The scale counts the products that the config names, even where no distances are used. */
#define DISTANCE_SPEC                                                                                          \
    "[terms? scale 1/sqrt(${products}*${head_dim})]\n"                                                         \
    "[content? position content][content&by_query? by_query][content&by_key? by_key][content? rows ${rows}]"   \
    "[content&buckets? logarithmic ${span}][content? projected][content&!shared? own]"                    \
    "[content&norm_rel=layer_norm? normalized]\n"
#define DEBERTA_IRRELEVANT \
    "pooler_dropout padding_idx summary_type summary_use_proj summary_activation summary_last_dropout"
#define DEBERTA_CLASSES \
    "Model=hidden ForSequenceClassification=classify" ROW_CLASSES " PreTrainedModel=rest ForMaskedLM=masked"
#define DEBERTA_SPEC(beside, bias)                                                                                \
    ENCODER_OF("encoder", "post", "",                                                                             \
               "[learned? position learned]\n[segments!=0? segments ${segments}]\nembedding normalized\n" beside, \
               "layers", "attention self {\nheads ${heads}\nhead_dim ${head_dim}\n" bias "mask padding\n"         \
               DISTANCE_SPEC "}\n" PLAIN_FFN)                                                                     \
    "[task=classify? head pooler ${pooler_activation} classifier ${#classifier.weight}]\n" ROW_HEADS              \
    CHOICE_HEAD(" ${pooler_activation}")                                                                          \
    MASKED_HEAD("${activation}")
#define DEBERTA_TENSORS(attention)                                                                          \
    TOKEN_TABLE_IN("encoder", WORD_TABLE, "cls.predictions.decoder.weight")                                 \
    "[learned? encoder.embedding.positions.weight embeddings.position_embeddings.weight]\n"                 \
    "[segments!=0? encoder.embedding.segments.weight embeddings.token_type_embeddings.weight]\n"            \
    "encoder.embedding.norm.* embeddings.LayerNorm.*\n"                                                     \
    "[content? encoder.distances.weight encoder.rel_embeddings.weight]\n"                                   \
    "[content&norm_rel=layer_norm? encoder.distances.norm.* encoder.LayerNorm.*]\n" ROW_TENSORS             \
    "@encoder.layers.{layer} encoder.layer.{layer}\n" attention                                             \
    ".attention.output.* .attention.output.dense.*\n"                                                       \
    ".attention.norm_out.* .attention.output.LayerNorm.*\n" BERT_FFN                                        \
    "$if legacy\n" MASKED_TENSORS("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", \
                                  "cls.predictions.decoder", "cls.predictions") "$end\n"                    \
    "$if !legacy\n" MASKED_TENSORS("lm_predictions.lm_head.dense", "lm_predictions.lm_head.LayerNorm",      \
                                   "lm_predictions.lm_head.decoder", "lm_predictions.lm_head") "$end\n"     \
    CLASSIFY_TENSORS("pooler.dense", "classifier")                                                          \
    CHOICE_TENSORS("pooler.dense")                                                                          \
    "buffer embeddings.position_ids\n"                                                                      \
    "[!content? ignore encoder.rel_embeddings.* encoder.LayerNorm.*]\n"                                     \
    "ignore cls.* lm_predictions.* mask_predictions.* pooler.dense.* classifier.* qa_outputs.*\n"

const Family family_deberta_v2 = {
    .types = "deberta-v2=DebertaV2", .title = "DeBERTa: He et al. 2021, arXiv:2006.03654 and 2111.09543.",
    .classes = DEBERTA_CLASSES " ForPreTraining=rest ForMultipleChoice=choice",
    KEYS(deberta_v2_keys), .irrelevant = DEBERTA_IRRELEVANT, .prefixes = "deberta.",
    .spec = DEBERTA_SPEC("[kernel!=0? convolution { kernel ${kernel}[conv_groups!=1? groups ${conv_groups}], "
                         "activation ${conv_activation} }]\n", ""),
    .tensors = DEBERTA_TENSORS(
        ".attention.query.* .attention.self.query_proj.*\n"
        ".attention.key.* .attention.self.key_proj.*\n"
        ".attention.value.* .attention.self.value_proj.*\n"
        "[content&by_query&!shared? .attention.distance_key.* .attention.self.pos_key_proj.*]\n"
        "[content&by_key&!shared? .attention.distance_query.* .attention.self.pos_query_proj.*]\n"
        "[kernel!=0? encoder.convolution.* encoder.conv.conv.*]\n"
        "[kernel!=0? encoder.convolution_norm.* encoder.conv.LayerNorm.*]\n"),
};

/* Each head has its rows of query, key and value one behind the other, and keys have no bias. */
static const ConfigKey deberta_keys[] = {
    DEBERTA_KEYS, DERIVED("head_dim", "=d_model / heads", NULL),
    {"talking_head", "mixes_heads", KEY_FLAG, "false", "", NULL},
    REFUSED("mixes_heads", "`talking_head` is true, and the language has no matrix between the heads' scores"),
};
#define PART_OF_HEADS(part, take) \
    ".attention." part ".weight .attention.self.in_proj.weight interleaved ${heads} parts 3 take " take "\n"
const Family family_deberta = {
    .types = "deberta=Deberta", .title = "DeBERTa: He et al. 2021, arXiv:2006.03654.", .classes = DEBERTA_CLASSES,
    KEYS(deberta_keys), .irrelevant = DEBERTA_IRRELEVANT, .prefixes = "deberta.",
    .spec = DEBERTA_SPEC("", "bias q v o up down\n"),
    .tensors = DEBERTA_TENSORS(
        PART_OF_HEADS("query", "0") PART_OF_HEADS("key", "1") PART_OF_HEADS("value", "2")
        ".attention.query.bias .attention.self.q_bias\n"
        ".attention.value.bias .attention.self.v_bias\n"
        "[content&by_query? .attention.distance_key.weight .attention.self.pos_proj.weight]\n"
        "[content&by_key? .attention.distance_query.* .attention.self.pos_q_proj.*]\n"),
};
