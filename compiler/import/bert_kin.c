/* bert_kin.c: encoders of text that differ from BERT or RoBERTa in their norms, tables or heads. */
#include "encoders.h"

/* The rows of tables, and layers that begin with a norm. */
#define PRE_SPEC(position, embedding)                                                                     \
    ENCODER_OF("${stack}", "pre", "[start? start ${start}]\n[end? end ${end}]\n",                         \
               "position learned" position "\n" SEGMENT_LINE embedding, "layers",                         \
               "attention self { heads ${heads}, mask ${mask} }\n" PLAIN_FFN)
#define PRE_TENSORS(head, attention_norm, ffn_norm, final_norm)                       \
    BERT_TABLES_IN("${stack}", head) ROW_TENSORS CHOICE_TENSORS("pooler.dense")       \
    "@${stack}.layers.{layer} encoder.layer.{layer}\n" BERT_PROJECTIONS               \
    ".attention.norm_in.* ." attention_norm ".*\n" ".ffn.norm_in.* ." ffn_norm ".*\n" \
    UP_DOWN("intermediate.dense", "output.dense") "${stack}.final_norm.* " final_norm ".*\n"

/* ---------------------------------------- Megatron BERT: BERT with norms before the sublayers */
static const ConfigKey megatron_bert_keys[] = {BERT_KEYS};
const Family family_megatron_bert = {
    .types = "megatron-bert=MegatronBert", .title = "Megatron BERT: Shoeybi et al. 2019, arXiv:1909.08053.",
    .classes = "Model=hidden ForSequenceClassification=classify ForNextSentencePrediction=next ForCausalLM=masked "
               "ForPreTraining=pretrained" ROW_CLASSES REST,
    KEYS(megatron_bert_keys), .irrelevant = "", .prefixes = "bert.",
    .spec = PRE_SPEC("", "") CLASSIFIER("classifier") POOLER("pooler.dense") ROW_HEADS NEXT_HEAD CHOICE_HEAD("")
        MASKED_HEAD("${activation}"),
    .tensors = PRE_TENSORS("cls.predictions.decoder", "attention.ln", "ln", "encoder.ln") BERT_HEAD_TENSORS,
};

/* ---------------------------------------- RoBERTa with norms before the sublayers */
#define PRE_ROBERTA_CLASSES "Model=hidden ForSequenceClassification=classify ForCausalLM=masked" ROW_CLASSES REST
#define PRE_ROBERTA_SPEC(embedding)                                                                             \
    PRE_SPEC(ROBERTA_POSITIONS, embedding) CLASSIFIER("classifier.out_proj") POOLER("pooler.dense") ROW_HEADS \
    CHOICE_HEAD("") MASKED_HEAD("gelu")

static const ConfigKey roberta_prelayernorm_keys[] = {ROBERTA_KEYS("1e-12", "2")};
const Family family_roberta_prelayernorm = {
    .types = "roberta-prelayernorm=RobertaPreLayerNorm",
    .title = "RoBERTa-PreLayerNorm: Ott et al. 2019, arXiv:1904.01038. Positions begin at padding_idx + 1.",
    .classes = PRE_ROBERTA_CLASSES, KEYS(roberta_prelayernorm_keys), .irrelevant = "",
    .prefixes = "roberta_prelayernorm.", .spec = PRE_ROBERTA_SPEC("embedding normalized\n"),
    .tensors = PRE_TENSORS("lm_head.decoder", "attention.LayerNorm", "intermediate.LayerNorm", "LayerNorm")
        "${stack}.embedding.norm.* embeddings.LayerNorm.*\n" ROBERTA_HEAD_TENSORS,
};

static const ConfigKey xlm_roberta_xl_keys[] = {ROBERTA_KEYS("1e-5", "1")};
const Family family_xlm_roberta_xl = {
    .types = "xlm-roberta-xl=XLMRobertaXL",
    .title = "XLM-RoBERTa-XL: Goyal et al. 2021, arXiv:2105.00572. Positions begin at padding_idx + 1.",
    .classes = PRE_ROBERTA_CLASSES, KEYS(xlm_roberta_xl_keys), .irrelevant = "", .prefixes = "roberta.",
    .spec = PRE_ROBERTA_SPEC(""),
    .tensors = PRE_TENSORS("lm_head.decoder", "attention.self_attn_layer_norm", "LayerNorm", "encoder.LayerNorm")
        ROBERTA_HEAD_TENSORS,
};

/* ---------------------------------------- RemBERT has narrow tables, and a head of another width, which is not tied */
static const ConfigKey rembert_keys[] = {
    TEXT_SIZES, BERT_COMMON, INTEGER_OR("max_position_embeddings", "positions", "512", NULL), SEGMENTS,
    INTEGER_OR("input_embedding_size", "factor", "256", NULL),
    INTEGER_OR("output_embedding_size", "head_width", "1664", NULL),
    TOKEN_OR("pad_token_id", "pad", "0"), MAYBE_DECODER("312", "313"),
    /* RemBERT computes logits from rows that are as wide as the rows of its token table, to which transformers does not
     * tie them. */
    DERIVED("task", "rest", "task=masked&head_width!=$factor"),
};
const Family family_rembert = {
    .types = "rembert=RemBert", .title = "RemBERT: Chung et al. 2020, arXiv:2010.12821.",
    .classes = "Model=hidden ForSequenceClassification=classify ForCausalLM=masked" ROW_CLASSES REST,
    KEYS(rembert_keys), .irrelevant = "classifier_dropout_prob", .prefixes = "rembert.",
    .spec = MAYBE_DECODER_SPEC("", SEGMENT_LINE, " factor ${factor}",
                               CLASSIFIER("classifier") POOLER("pooler.dense")) ROW_HEADS CHOICE_HEAD("")
        MASKED_HEAD("${activation}"),
    .tensors = BERT_EMBEDDING_IN("${stack}", "cls.predictions.decoder")
        "${stack}.embedding.projection.* encoder.embedding_hidden_mapping_in.*\n" ROW_TENSORS
        CHOICE_TENSORS("pooler.dense") BERT_LAYERS_IN("${stack}")
        MASKED_TENSORS("cls.predictions.dense", "cls.predictions.LayerNorm", "cls.predictions.decoder",
                       "cls.predictions.decoder")
        POOLER_TENSORS("pooler.dense") CLASSIFY_TENSORS("pooler.dense", "classifier") BERT_IGNORED,
};

/* ---------------------------------------- BERT for generation: no segments, and a head without a transform */
static const ConfigKey bert_generation_keys[] = {
    TEXT_SIZES, BERT_COMMON, INTEGER_OR("max_position_embeddings", "positions", "512", NULL),
    DERIVED("segments", "", NULL), TOKEN_OR("pad_token_id", "pad", "0"), MAYBE_DECODER("2", "1"),
    MASKED_KEYS("lm_head.decoder", "lm_head"),
};
const Family family_bert_generation = {
    .types = "bert-generation=BertGeneration", .title = "BERT for generation: Rothe et al. 2019, arXiv:1907.12461.",
    .classes = "Encoder=hidden Decoder=masked PreTrainedModel=rest", KEYS(bert_generation_keys), .irrelevant = "",
    .prefixes = "bert.",
    .spec = MAYBE_DECODER_SPEC("", "", "", "") 
        "[task=masked? head logits][task=masked&tied? tied][task=masked? bias]\n",
    .tensors = BERT_EMBEDDING_IN("${stack}", "lm_head.decoder") BERT_LAYERS_IN("${stack}")
        "[task=masked&!tied? head.weight lm_head.decoder.weight]\n"
        "[task=masked&#lm_head.decoder.bias? head.bias lm_head.decoder.bias]\n"
        "[task=masked&!#lm_head.decoder.bias? head.bias lm_head.bias]\n" BERT_IGNORED,
};
