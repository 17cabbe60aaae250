/* bert.c: encoders of text, some of which may be decoders. The class's pooler is imported where the file has one, and a
 * classifier behind it, too. */
#include "encoders.h"

/* ---------------------------------------- BERT */
#define BERT_SPEC                                                                                                 \
    MAYBE_DECODER_SPEC("", SEGMENT_LINE, "", CLASSIFIER("classifier") POOLER("pooler.dense")) ROW_HEADS           \
    NEXT_HEAD CHOICE_HEAD("") MASKED_HEAD("${activation}")
#define BERT_TENSORS                                                                                              \
    BERT_EMBEDDING_IN("${stack}", "cls.predictions.decoder") ROW_TENSORS CHOICE_TENSORS("pooler.dense")           \
    BERT_LAYERS_IN("${stack}") BERT_HEAD_TENSORS

static const ConfigKey bert_keys[] = {BERT_KEYS};
const Family family_bert = {
    .types = "bert=Bert", .title = "BERT: Devlin et al. 2019, arXiv:1810.04805.",
    .classes = "Model=hidden ForSequenceClassification=classify ForNextSentencePrediction=next LMHeadModel=masked "
               "ForPreTraining=pretrained" ROW_CLASSES REST,
    KEYS(bert_keys),
    .irrelevant = "directionality pooler_fc_size pooler_num_attention_heads pooler_num_fc_layers pooler_size_per_head "
        "pooler_type",
    .prefixes = "bert.",
    .spec = BERT_SPEC, .tensors = BERT_TENSORS,
};

/* ---------------------------------------- ERNIE: BERT, where no row of a task is added to the embedding */
static const ConfigKey ernie_keys[] = {
    BERT_KEYS, FLAG_OR("use_task_id", "tasked", "false"),
    REFUSED("tasked", "`use_task_id` is true, and the language adds no row of a third table to an embedding"),
};
const Family family_ernie = {
    .types = "ernie=Ernie", .title = "ERNIE: Sun et al. 2019, arXiv:1904.09223 and 1907.12412.",
    .classes = "Model=hidden ForSequenceClassification=classify ForNextSentencePrediction=next ForCausalLM=masked "
               "ForPreTraining=pretrained" ROW_CLASSES REST,
    KEYS(ernie_keys), .irrelevant = "task_type_vocab_size", .prefixes = "ernie.", .spec = BERT_SPEC,
    .tensors = BERT_TENSORS,
};

/* ---------------------------------------- RoBERTa */
static const ConfigKey roberta_keys[] = {ROBERTA_KEYS("1e-12", "2")};
#define ROBERTA_SPEC                                                                                              \
    MAYBE_DECODER_SPEC(ROBERTA_POSITIONS, SEGMENT_LINE, "", CLASSIFIER("classifier.out_proj") POOLER("pooler.dense")) \
    ROW_HEADS CHOICE_HEAD("") MASKED_HEAD("gelu")
#define ROBERTA_TENSORS                                                                                           \
    BERT_EMBEDDING_IN("${stack}", "lm_head.decoder") ROW_TENSORS CHOICE_TENSORS("pooler.dense")                   \
    BERT_LAYERS_IN("${stack}") ROBERTA_HEAD_TENSORS
const Family family_roberta = {
    .types = "roberta=Roberta xlm-roberta=XLMRoberta camembert=Camembert",
    .title = "RoBERTa: Liu et al. 2019, arXiv:1907.11692. Positions begin at padding_idx + 1.",
    .classes = "Model=hidden ForSequenceClassification=classify ForCausalLM=masked" ROW_CLASSES REST
               " ForPreTraining=rest",
    KEYS(roberta_keys), .irrelevant = "", .prefixes = "roberta.",
    .spec = ROBERTA_SPEC, .tensors = ROBERTA_TENSORS,
};
const Family family_data2vec_text = {
    .types = "data2vec-text=Data2VecText",
    .title = "data2vec, its text model: Baevski et al. 2022, arXiv:2202.03555. Positions begin at padding_idx + 1.",
    .classes = "Model=hidden ForSequenceClassification=classify ForCausalLM=masked" ROW_CLASSES REST,
    KEYS(roberta_keys), .irrelevant = "", .prefixes = "data2vec_text.", .spec = ROBERTA_SPEC,
    .tensors = ROBERTA_TENSORS,
};

/* ---------------------------------------- DistilBERT */
static const ConfigKey distilbert_keys[] = {
    INTEGER("vocab_size", "vocab"), INTEGER("dim", "d_model"), INTEGER("n_layers", "layers"),
    INTEGER("n_heads", "heads"),
    INTEGER("hidden_dim", "d_ff"), WORD_OR("activation", "activation", "gelu", ACTIVATIONS),
    INTEGER_OR("max_position_embeddings", "positions", "512", NULL), TOKEN_OR("pad_token_id", "pad", "0"),
    DERIVED("eps", "1e-12", NULL), DERIVED("learned", "yes", NULL), CHOICE_NOTE,
    MASKED_KEYS("vocab_projector", "vocab_projector"),
};
const Family family_distilbert = {
    .types = "distilbert=DistilBert", .title = "DistilBERT: Sanh et al. 2019, arXiv:1910.01108.",
    .classes = "Model=hidden ForSequenceClassification=classify" ROW_CLASSES REST " ForPreTraining=rest",
    KEYS(distilbert_keys),
        .irrelevant = "qa_dropout seq_classif_dropout sinusoidal_pos_embds tie_weights_",
    .prefixes = "distilbert.",
    .spec = ENCODER_SPEC("", "", "", "layers", "",
                         "[task=classify? head pooler relu classifier ${#classifier.weight}]\n") ROW_HEADS
        CHOICE_HEAD(" relu") MASKED_HEAD("${activation}"),
    .tensors = BERT_EMBEDDING_IN("encoder", "vocab_projector") ROW_TENSORS CHOICE_TENSORS("pre_classifier")
        MASKED_TENSORS("vocab_transform", "vocab_layer_norm", "vocab_projector", "vocab_projector")
        "@encoder.layers.{layer} transformer.layer.{layer}\n"
        PROJECTIONS("attention", "q_lin", "k_lin", "v_lin", "out_lin")
        ".attention.norm_out.* .sa_layer_norm.*\n" UP_DOWN("ffn.lin1", "ffn.lin2")
        ".ffn.norm_out.* .output_layer_norm.*\n"
        CLASSIFY_TENSORS("pre_classifier", "classifier")
        "ignore vocab_transform.* vocab_layer_norm.* vocab_projector.* pre_classifier.* classifier.* qa_outputs.*\n",
};

/* ---------------------------------------- ELECTRA: a projection where the tables are narrower */
static const ConfigKey electra_keys[] = {
    TEXT_SIZES, BERT_COMMON, INTEGER_OR("max_position_embeddings", "positions", "512", NULL), SEGMENTS,
    INTEGER_OR("embedding_size", "factor", "128", NULL), TOKEN_OR("pad_token_id", "pad", "0"),
    WORD_OR("summary_type", "summary", "first", "first last mean cls_index attn"),
    FLAG_OR("summary_use_proj", "summary_projected", "true"),
    WORD_OR("summary_activation", "summary_activation", "gelu", ACTIVATIONS),
    NOTED("task=replaced", "The output `logits` has a score for each row, above 0 where its token was replaced."),
    DERIVED("task", "rest", "task=choice&summary!=first"), DERIVED("task", "rest", "task=choice&!summary_projected"),
    MAYBE_DECODER("", ""), MASKED_KEYS("generator_lm_head", "generator_lm_head"),
};
const Family family_electra = {
    .types = "electra=Electra", .title = "ELECTRA: Clark et al. 2020, arXiv:2003.10555.",
    .classes = "Model=hidden ForSequenceClassification=classify ForCausalLM=masked ForPreTraining=replaced" ROW_CLASSES
        REST,
    KEYS(electra_keys), .irrelevant = "summary_last_dropout",
    .prefixes = "electra.", .spec = MAYBE_DECODER_SPEC("", SEGMENT_LINE, "[factor!=$d_model? factor ${factor}]",
        "[task=classify? head pooler gelu classifier ${#classifier.out_proj.weight}]\n") ROW_HEADS
        CHOICE_HEAD(" ${summary_activation}") MASKED_HEAD("gelu")
        "[task=replaced? head classifier 1 rows transform ${activation} transform_no_norm]\n",
    .tensors = BERT_EMBEDDING_IN("${stack}", "generator_lm_head") ROW_TENSORS CHOICE_TENSORS("sequence_summary.summary")
        "[task=replaced? transform.* discriminator_predictions.dense.*]\n"
        "[task=replaced? classifier.* discriminator_predictions.dense_prediction.*]\n"
        MASKED_TENSORS("generator_predictions.dense", "generator_predictions.LayerNorm", "generator_lm_head",
                       "generator_lm_head")
        "[factor!=$d_model? ${stack}.embedding.projection.* embeddings_project.*]\n" BERT_LAYERS_IN("${stack}")
        CLASSIFY_TENSORS("classifier.dense", "classifier.out_proj")
        "buffer embeddings.position_ids\n"
        "ignore discriminator_predictions.* generator_predictions.* generator_lm_head.* "
            "classifier.* qa_outputs.*\n",
};

/* ---------------------------------------- ALBERT: one set of weights for all layers */
static const ConfigKey albert_keys[] = {
    TEXT_SIZES, INTEGER_OR("embedding_size", "factor", "128", NULL),
    WORD_OR("hidden_act", "activation", "gelu_tanh", ACTIVATIONS), REAL_OR("layer_norm_eps", "eps", "1e-12", NULL),
    INTEGER_OR("max_position_embeddings", "positions", "512", NULL), SEGMENTS, TOKEN_OR("pad_token_id", "pad", "0"),
    MUST("num_hidden_groups", "1"), MUST("inner_group_num", "1"), MUST("position_embedding_type", "absolute null"),
    MUST("net_structure_type", "0"), MUST("num_memory_blocks", "0"),
    DERIVED("learned", "yes", NULL), PRETRAINED_KEYS, CHOICE_NOTE, MASKED_KEYS("predictions.decoder", "predictions"),
};
const Family family_albert = {
    .types = "albert=Albert", .title = "ALBERT: Lan et al. 2020, arXiv:1909.11942.",
    .classes = "Model=hidden ForSequenceClassification=classify ForPreTraining=pretrained" ROW_CLASSES REST,
    KEYS(albert_keys), .irrelevant = "classifier_dropout_prob down_scale_factor gap_size layers_to_keep",
    .prefixes = "albert.", .spec = ENCODER_SPEC("", SEGMENT_LINE, " factor ${factor}", "layers shared", "",
        CLASSIFIER("classifier") POOLER("pooler")) ROW_HEADS CHOICE_HEAD("") MASKED_HEAD("${activation}"),
    .tensors = BERT_EMBEDDING_IN("encoder", "predictions.decoder") ROW_TENSORS CHOICE_TENSORS("pooler")
        MASKED_TENSORS("predictions.dense", "predictions.LayerNorm", "predictions.decoder", "predictions")
        "encoder.embedding.projection.* encoder.embedding_hidden_mapping_in.*\n"
        "@encoder.layers.0 encoder.albert_layer_groups.0.albert_layers.0\n"
        PROJECTIONS("attention", "query", "key", "value", "dense")
        ".attention.norm_out.* .attention.LayerNorm.*\n" UP_DOWN("ffn", "ffn_output")
        ".ffn.norm_out.* .full_layer_layer_norm.*\n"
        POOLER_TENSORS("pooler")
        CLASSIFY_TENSORS("pooler", "classifier")
        "buffer embeddings.position_ids\n"
        "ignore pooler.* predictions.* sop_classifier.* classifier.* qa_outputs.*\n",
};

/* ---------------------------------------- MPNet: learned positions, and one table of buckets for all layers */
static const ConfigKey mpnet_keys[] = {
    TEXT_SIZES, BERT_COMMON, INTEGER_OR("max_position_embeddings", "table", "512", NULL),
    DERIVED("positions", "=table - 2", NULL),
    MUST("relative_attention_num_buckets", "32"), TOKEN_OR("pad_token_id", "pad", "1"), DERIVED("segments", "", NULL),
    MASKED_KEYS("lm_head.decoder", "lm_head"),
};
const Family family_mpnet = {
    .types = "mpnet=MPNet", .title = "MPNet: Song et al. 2020, arXiv:2004.09297. Positions begin at padding_idx + 1.",
    .classes = "Model=hidden ForSequenceClassification=classify" ROW_CLASSES REST " ForPreTraining=rest",
    KEYS(mpnet_keys), .irrelevant = "", .prefixes = "mpnet.",
    .spec = ENCODER_SPEC(" offset 2 skip 1", "", "", "layers", ", position relative per_layer buckets 32 distance 128",
        CLASSIFIER("classifier.out_proj") POOLER("pooler.dense")) ROW_HEADS CHOICE_HEAD("") MASKED_HEAD("gelu"),
    .tensors = BERT_EMBEDDING_IN("encoder", "lm_head.decoder") ROW_TENSORS CHOICE_TENSORS("pooler.dense")
        MASKED_TENSORS("lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", "lm_head")
        "encoder.layers.{layer}.attention.relative.weight encoder.relative_attention_bias.weight\n"
        "@encoder.layers.{layer} encoder.layer.{layer}\n"
        PROJECTIONS("attention.attn", "q", "k", "v", "o") ".attention.norm_out.* .attention.LayerNorm.*\n" BERT_FFN
        POOLER_TENSORS("pooler.dense")
        CLASSIFY_TENSORS("classifier.dense", "classifier.out_proj")
        BERT_IGNORED,
};

/* ---------------------------------------- ModernBERT */
#define MODERNBERT_KEYS(window)                                                                             \
    TEXT_SIZES, WORD_OR("hidden_activation", "activation", "gelu", ACTIVATIONS),                            \
    REAL_OR("norm_eps", "eps", "1e-5", NULL),                                                               \
    INTEGER_OR("max_position_embeddings", "positions", "8192", NULL),                                       \
    FLAG_OR("norm_bias", "norm_bias", "false"), FLAG_OR("attention_bias", "attention_bias", "false"),       \
    FLAG_OR("mlp_bias", "ffn_bias", "false"), TOKEN_OR("pad_token_id", "pad", "50283"),                     \
    INTEGER_OR("local_attention", "local", "128", NULL), window,                                            \
    INTEGER_OR("global_attn_every_n_layers", "every", "3", NULL),                                           \
    LAYER_TYPES("first every sliding_attention full_attention", "sliding_attention full_attention"),        \
    POSITIVE_OR("global_rope_theta", "theta", "160000", NULL),                                              \
    POSITIVE_OR("local_rope_theta", "local_theta", "10000", "=theta"), DERIVED("whole_rope", "yes", NULL),  \
    MUST("rope_scaling", "null"), ROPE("rope_parameters", "rope", "theta", "full_attention"),               \
    ROPE("rope_parameters", "local_rope", "local_theta", "sliding_attention"),                              \
    MASKED_KEYS_IF("", "decoder", "decoder", "embeddings.tok_embeddings.weight"),                           \
    FLAG_OR("decoder_bias", "decoder_bias", "true"), FLAG_OR("classifier_bias", "head_bias", "false"),      \
    WORD_OR("classifier_activation", "head_activation", "gelu", ACTIVATIONS)
#define WINDOW_ON_BOTH_SIDES DERIVED("window", "=local / 2 + 1", NULL)
static const ConfigKey modernbert_keys[] = {
    MODERNBERT_KEYS(WINDOW_ON_BOTH_SIDES), MUST("position_embedding_type", "absolute null rope"), CHOICE_NOTE,
    WORD_OR("classifier_pooling", "pooling", "cls", "cls mean"),
    DERIVED("transforms", "yes", "task!=hidden&task!=rest"),
};
#define MODERNBERT_LAYER(mask)                                        \
    "attention self {\n"                                              \
    "heads ${heads}\n"                                                \
    "mask " mask "\n"                                                 \
    "[layer_type=sliding_attention? window ${window}]\n"              \
    "[layer_type=sliding_attention? position rope ${local_rope}]\n"   \
    "[layer_type=full_attention? position rope ${rope}]\n"            \
    "[!attention_bias? bias none]\n"                                  \
    "[layer=0? norm none]\n"                                          \
    "}\n"                                                             \
    "ffn { d_ff inner, activation ${activation} gated[!ffn_bias?, bias none] }\n"
#define MODERNBERT_STACK(stack, projections)                                              \
    TOKEN_TABLE_IN(stack, "embeddings.tok_embeddings.weight", "decoder.weight")           \
    stack ".embedding.norm.* embeddings.norm.*\n"                                         \
    "@" stack ".layers.{layer} layers.{layer}\n"                                          \
    ".attention.norm_in.* .attn_norm.*\n" projections ".attention.output.* .attn.Wo.*\n"  \
    ".ffn.norm_in.* .mlp_norm.*\n"                                                        \
    ".ffn.gate.* .mlp.Wi.* rows 0..inner\n"                                               \
    ".ffn.up.* .mlp.Wi.* rows inner..2*inner\n"                                           \
    ".ffn.down.* .mlp.Wo.*\n" stack ".final_norm.* final_norm.*\n"
const Family family_modernbert = {
    .types = "modernbert=ModernBert",
    .title = "ModernBERT: Warner et al. 2024, arXiv:2412.13663. The first layer has no norm before attention.",
    .classes = "Model=hidden ForSequenceClassification=classify" ROW_CLASSES REST " ForPreTraining=rest",
    KEYS(modernbert_keys),
    .irrelevant = "initializer_cutoff_factor embedding_dropout mlp_dropout "
                  "deterministic_flash_attn sparse_prediction sparse_pred_ignore_index reference_compile "
                      "repad_logits_with_grad layer_norm_eps",
    .prefixes = "model.",
    .spec = ENCODER_OF("encoder", "pre[!norm_bias? no_bias]", "let inner = ${d_ff}\n", "embedding normalized\n",
        "layers",
        MODERNBERT_LAYER("padding"))
        "[task=masked? head logits][task=masked&tied? tied][task=masked&decoder_bias? bias]"
        "[task=classify? head pool ${pooling} classifier ${#classifier.weight}]"
        "[task=choice? head pool ${pooling} classifier ${#classifier.weight}]"
        "[task=labels? head classifier ${#classifier.weight} rows]"
        "[task=answers? head classifier ${#classifier.weight} rows]"
        "[transforms? transform ${head_activation}][transforms&!head_bias? transform_no_bias]\n",
    .tensors =
        MODERNBERT_STACK("encoder", QKV_ROWS("*", "attn.Wqkv.*", "d_model", "2*d_model", "3*d_model"))
        "[transforms? transform.* head.dense.*]\n"
        "[transforms? transform_norm.* head.norm.*]\n"
        "[task=masked&!tied? head.weight decoder.weight]\n"
        "[task=masked&decoder_bias? head.bias decoder.bias]\n"
        "[transforms&task!=masked? classifier.* classifier.*]\n"
        "ignore head.* decoder.* classifier.*\n",
};

/* The decoder of the same layers: a row sees those before it, and a window is half of `local_attention`. */
#define WINDOW_BACK DERIVED("half", "=local / 2", NULL), INTEGER_OR("sliding_window", "window", "$half", "$half")
static const ConfigKey modernbert_decoder_keys[] = {
    MODERNBERT_KEYS(WINDOW_BACK), TOKEN_OR("bos_token_id", "start", "50281"),
    TOKENS_OR("eos_token_id", "end", "50282"), DERIVED("transforms", "yes", "task!=hidden"),
};
const Family family_modernbert_decoder = {
    .types = "modernbert-decoder=ModernBertDecoder",
    .title = "Ettin, ModernBERT's decoder: Weller et al. 2025, arXiv:2507.11412.",
    .classes = "ForCausalLM=masked Model=hidden ForSequenceClassification=classify",
    KEYS(modernbert_decoder_keys),
    .irrelevant = "initializer_cutoff_factor embedding_dropout mlp_dropout", .prefixes = "model.",
    .spec = ENCODER_OF("decoder", "pre[!norm_bias? no_bias]",
        "[start? start ${start}]\n[end? end ${end}]\nlet inner = ${d_ff}\n", "embedding normalized\n", "layers",
        MODERNBERT_LAYER("causal"))
        "[task=masked? head logits][task=masked&tied? tied][task=masked&decoder_bias? bias]"
        "[task=classify? head pool last][task=classify&pad? skip ${pad}]"
        "[task=classify? classifier ${#classifier.weight}][task=classify&!head_bias? no_bias]"
        "[transforms? transform ${head_activation}][transforms&!head_bias? transform_no_bias]\n",
    .tensors =
        MODERNBERT_STACK("decoder",
                         ".attention.query.* .attn.q_proj.*\n.attention.key.* .attn.k_proj.*\n"
                         ".attention.value.* .attn.v_proj.*\n")
        "[task=masked? transform.* lm_head.dense.*]\n"
        "[task=masked? transform_norm.* lm_head.norm.*]\n"
        "[task=classify? transform.* head.dense.*]\n"
        "[task=classify? transform_norm.* head.norm.*]\n"
        "[task=masked&!tied? head.weight decoder.weight]\n"
        "[task=masked&decoder_bias? head.bias decoder.bias]\n"
        "[task=classify? classifier.* classifier.*]\n"
        "ignore head.* lm_head.* decoder.* classifier.*\n",
};
