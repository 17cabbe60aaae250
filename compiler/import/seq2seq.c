/* seq2seq.c: models with an encoder and a decoder. */
#include "t5.h"

#define SEQ2SEQ_TOKENS(start, end, pad)                                                        \
    TOKEN_OR("decoder_start_token_id", "start", start), TOKENS_OR("eos_token_id", "end", end), \
    TOKEN_OR("pad_token_id", "pad", pad)

/* Source, target and head share a table unless the file has a different table for one of them: like transformers, the
 * import does not tie a tensor that differs. The variable `tied` is set where the config ties them. */
#define ENCODER_TABLE "encoder.embed_tokens.weight"
#define DECODER_TABLE "decoder.embed_tokens.weight"
#define SHARED_TABLES                                                                                               \
    DERIVED("table", "shared.weight", NULL),                                                                        \
    DERIVED("table", "lm_head.weight", "tied&task=logits&!#shared.weight&#lm_head.weight"),                         \
    DERIVED("table", DECODER_TABLE, "!#shared.weight&#" DECODER_TABLE),                                             \
    DERIVED("table", ENCODER_TABLE, "!#shared.weight&#" ENCODER_TABLE),                                             \
    DERIVED("own_head", "yes", "task=logits&#lm_head.weight<>shared.weight"),                                       \
    DERIVED("own_encoder", "yes", "#" ENCODER_TABLE "<>shared.weight"),                                             \
    DERIVED("own_decoder", "yes", "task!=encoder&#" DECODER_TABLE "<>shared.weight"),                               \
    NOTED("tied&own_head", "`lm_head.weight` of the file holds other numbers than `shared.weight`: it is the "      \
        "head, as in transformers 5, whatever the config says of ties."),                                           \
    NOTED("tied&own_encoder", "`" ENCODER_TABLE "` of the file holds other numbers than `shared.weight`: it is "    \
        "the table of the source, as in transformers 5, whatever the config says of ties."),                        \
    NOTED("tied&own_decoder", "`" DECODER_TABLE "` of the file holds other numbers than `shared.weight`: it is "    \
        "the table of the target, as in transformers 5, whatever the config says of ties."),                        \
    DERIVED("own_head", "yes", "!tied&task=logits"), DERIVED("own_encoder", "yes", "!tied"),                        \
    DERIVED("own_decoder", "yes", "!tied&task!=encoder"), DERIVED("apart", "yes", "own_head"),                      \
    DERIVED("apart", "yes", "own_encoder"), DERIVED("apart", "yes", "own_decoder")
#define TABLE_TENSORS                                                       \
    "[!apart? embedding.tokens.weight ${table}]\n"                          \
    "[own_encoder? encoder.embedding.tokens.weight " ENCODER_TABLE "]\n"    \
    "[apart&!own_encoder? encoder.embedding.tokens.weight ${table}]\n"      \
    "[own_decoder? decoder.embedding.tokens.weight " DECODER_TABLE "]\n"    \
    "[apart&!own_decoder? decoder.embedding.tokens.weight ${table}]\n"      \
    "[own_head? head.weight lm_head.weight]\n"                              \
    "[apart&!own_head? head.weight ${table}]\n"

/* The classes of a sequence are those of the decoder's row at the end token; the target is the source, shifted. */
#define CLASSES " ForSequenceClassification=classify ForQuestionAnswering=answers"
#define SHIFTED_KEYS                                                                                                \
    DERIVED("shifted", "yes", "task=classify"), DERIVED("shifted", "yes", "task=answers"),                          \
    NOTED("shifted", "The target is the first token `start` and the source without its last token, the end token, " \
        "as transformers makes it."),                                                                                \
    NOTED("task=classify&end", "The classes come from the row of the last end token of the source, and from the last " \
        "row where it has none, a source that transformers refuses.")
#define CLASSES_HEAD                                                                                     \
    "[task=classify? head pool last][task=classify&end? token ${end}]"                                   \
    "[task=classify? pooler classifier ${#classification_head.out_proj.weight}]\n" ROW_HEADS
#define CLASSES_TENSORS CLASSIFY_TENSORS("classification_head.dense", "classification_head.out_proj") ROW_TENSORS

/* ---------------------------------------- T5: scores are not scaled; a table of buckets a stack */
/* `activation` and `gated` are the defaults without feed_forward_proj. */
#define T5_KEYS(activation, gated)                                                                                \
    INTEGER("vocab_size", "vocab"), INTEGER("d_model hidden_size", "d_model"),                                    \
    INTEGER("d_kv head_dim", "head_dim"), INTEGER("d_ff", "d_ff"),                                                \
    INTEGER("num_layers num_hidden_layers", "layers"),                                                            \
    INTEGER_OR("num_decoder_layers", "decoder_layers", "=layers", "=layers"),                                     \
    INTEGER("num_heads num_attention_heads", "heads"),                                                            \
    INTEGER_OR("relative_attention_num_buckets", "buckets", "32", NULL),                                          \
    INTEGER_OR("relative_attention_max_distance", "distance", "128", NULL),                                       \
    REAL_OR("layer_norm_epsilon", "eps", "1e-6", NULL),                                                           \
    DERIVED("gated", gated, NULL),                                                                                \
    {"feed_forward_proj", "activation", KEY_GATED_WORD, activation, NULL, ACTIVATIONS},                           \
    {"feed_forward_proj", "said_proj", KEY_TEXT, "", NULL, NULL},                                                 \
    DERIVED("activation", "gelu_tanh", "said_proj=gated-gelu"), /* transformers' exception */                    \
    /* transformers derives both from feed_forward_proj; where they differ, these two hold. */                    \
    WORD_OR("dense_act_fn", "activation", "$activation", ACTIVATIONS),                                            \
    FLAG_OR("is_gated_act", "gated", "$gated"), DERIVED("gated", "gated", "gated"),                               \
    INTEGER_OR("n_positions", "positions", "", "")
#define T5_STACKS                                                                                                 \
    DERIVED("decoder", "yes", "task!=encoder&task!=labels"), DERIVED("tied", "yes", NULL), SHARED_TABLES,         \
    SHIFTED_KEYS,                                                                                                 \
    FLAG_OR("is_decoder", "causal", "false"), FLAG_OR("is_encoder_decoder", "two_stacks", "true"),                 \
    REFUSED("causal&!decoder", "`is_decoder` is true: the rows of the encoder would see only those before them"),   \
    REFUSED("!two_stacks&decoder", "`is_encoder_decoder` is false, though the class has an encoder and a "   \
        "decoder"),                                                                                               \
    SEQ2SEQ_TOKENS("0", "1", "0")

/* transformers 5 always ties; earlier, `tie_word_embeddings` also decided whether the logits are scaled. */
#define T5_SCALED                                                                                            \
    FLAG_OR("tie_word_embeddings", "scaled", "true"), FLAG_OR("scale_decoder_outputs", "may_scale", "true"), \
    DERIVED("scaled", "", "!may_scale"), FLAG_OR("scale_decoder_outputs", "must_scale", ""),                 \
    DERIVED("scaled", "yes", "must_scale")

static const ConfigKey t5_keys[] = {
    T5_KEYS("relu", ""), T5_SCALED, DERIVED("scaled", "", "type=mt5"), T5_STACKS,
};
#define T5_FFN_TENSORS(ffn)                                           \
    ".ffn.norm_in.weight ." ffn ".layer_norm.weight\n"                \
    "[!gated? .ffn.up.weight ." ffn ".DenseReluDense.wi.weight]\n"    \
    "[gated? .ffn.gate.weight ." ffn ".DenseReluDense.wi_0.weight]\n" \
    "[gated? .ffn.up.weight ." ffn ".DenseReluDense.wi_1.weight]\n"   \
    ".ffn.down.weight ." ffn ".DenseReluDense.wo.weight\n"
#define T5_ATTENTION_TENSORS(name, at, from)               \
    "." name ".norm_in.weight ." at ".layer_norm.weight\n" \
    "." name ".query.weight ." at "." from ".q.weight\n"   \
    "." name ".key.weight ." at "." from ".k.weight\n"     \
    "." name ".value.weight ." at "." from ".v.weight\n"   \
    "." name ".output.weight ." at "." from ".o.weight\n"
#define T5_STACK_TENSORS(stack)                                                                        \
    stack ".relative.weight " stack ".block.0.layer.0.SelfAttention.relative_attention_bias.weight\n"  \
    "@" stack ".layers.{layer} " stack ".block.{layer}\n" T5_ATTENTION_TENSORS("attention", "layer.0", \
        "SelfAttention") \
    ".attention.relative.weight .layer.0.SelfAttention.relative_attention_bias.weight\n"

/* Lines of relative tables that the spec lacks, those of a stack or of its layers, are left out. */
#define T5_TENSORS T5_TENSORS_OF(T5_FFN_TENSORS)
#define T5_TENSORS_OF(ffn_tensors)                                                    \
    "$if decoder\n" TABLE_TENSORS "$end\n" CLASSES_TENSORS                            \
    "$if !decoder\n"                                                                  \
    "[own_encoder? encoder.embedding.tokens.weight " ENCODER_TABLE "]\n"              \
    "[!own_encoder? encoder.embedding.tokens.weight ${table}]\n"                      \
    "$end\n"                                                                          \
    T5_STACK_TENSORS("encoder") ffn_tensors("layer.1")                                \
    "encoder.final_norm.weight encoder.final_layer_norm.weight\n"                     \
    "$if decoder\n"                                                                   \
    T5_STACK_TENSORS("decoder") T5_ATTENTION_TENSORS("cross_attention", "layer.1",    \
        "EncDecAttention") ffn_tensors("layer.2")                                     \
    "decoder.final_norm.weight decoder.final_layer_norm.weight\n"                     \
    "$end\n"                                                                          \
    "ignore encoder.embed_tokens.weight decoder.embed_tokens.weight lm_head.weight classifier.* qa_outputs.*\n" \
    "ignore decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight\n"

const Family family_t5 = {
    .types = "t5=T5 mt5=MT5", .title = "T5: Raffel et al. 2020, arXiv:1910.10683.",
    .classes = "ForConditionalGeneration=logits Model=hidden EncoderModel=encoder "
        "ForTokenClassification=labels" CLASSES,
    KEYS(t5_keys),
    .irrelevant = "dropout_rate initializer_factor", .prefixes = "transformer.",
    .spec = T5_SPEC("", CLASSES_HEAD), .tensors = T5_TENSORS,
};

/* ---------------------------------------- UMT5: a table of buckets in each layer */
static const ConfigKey umt5_keys[] = {
    T5_KEYS("gelu_tanh", "gated"), T5_SCALED, T5_STACKS,
};
const Family family_umt5 = {
    .types = "umt5=UMT5", .title = "UMT5: Chung et al. 2023, arXiv:2304.09151.",
    .classes = "ForConditionalGeneration=logits Model=hidden EncoderModel=encoder "
        "ForTokenClassification=labels" CLASSES,
    KEYS(umt5_keys),
    .irrelevant = "dropout_rate initializer_factor scalable_attention",
    .prefixes = "transformer.", .spec = T5_SPEC(" per_layer", CLASSES_HEAD), .tensors = T5_TENSORS,
};

/* ---------------------------------------- Switch Transformers: T5 where some layers have experts */
/* The key of a step outdoes the number of sparse layers. */
#define SPARSE_LAYERS(stack, p)                                                                                  \
    {"num_sparse_" stack "_layers", p "sparse_layers", KEY_NATURAL, "3", NULL, NULL},                             \
    DERIVED(p "step", "=" p "layers / " p "sparse_layers", NULL),                                                 \
    DERIVED(p "step", "=" p "layers", p "sparse_layers=0"),                                                       \
    {stack "_sparse_step", p "step", KEY_NATURAL, "$" p "step", "$" p "step", NULL},                              \
    {"", p "mlp", KEY_LAYER_TYPES, "second " p "step dense sparse", "", "dense sparse"}
static const ConfigKey switch_transformers_keys[] = {
    T5_KEYS("relu", ""), FLAG_OR("tie_word_embeddings", "scaled", "true"), T5_STACKS,
    REFUSED("gated", "`is_gated_act` is true, and transformers' Switch has no gate"),
    SPARSE_LAYERS("encoder", ""), SPARSE_LAYERS("decoder", "decoder_"),
    INTEGER_OR("num_experts", "experts", "8", NULL), INTEGER_OR("expert_capacity", "capacity", "64", NULL),
    DERIVED("positions", "=capacity", NULL),
    NOTED("task", "An expert takes at most `expert_capacity` rows of a text: with this bound of a text, it leaves out "
          "none."),
    FLAG_OR("router_bias", "router_bias", "false"), MUST("router_dtype", "float32"),
    MUST("router_type", "tokens_masked null"),
};
#define SWITCH_FFN(p)                                                                                           \
    "[" p "mlp=dense? ffn { d_ff ${d_ff}, activation ${activation} }]\n$if " p "mlp=sparse\n"                    \
    "ffn {\nd_ff ${d_ff}, activation ${activation}\nexperts ${experts}, top 1\nrouter softmax[router_bias? bias]\n" \
    "}\n$end\n"
#define SWITCH_FFN_TENSORS(ffn)                                         \
    ".ffn.norm_in.weight ." ffn ".layer_norm.weight\n"                  \
    ".ffn.router.* ." ffn ".mlp.router.classifier.*\n"                  \
    ".ffn.experts.up.* ." ffn ".mlp.experts.expert_{expert}.wi.*\n"     \
    ".ffn.experts.down.* ." ffn ".mlp.experts.expert_{expert}.wo.*\n"   \
    ".ffn.up.weight ." ffn ".mlp.wi.weight\n.ffn.down.weight ." ffn ".mlp.wo.weight\n"
const Family family_switch_transformers = {
    .types = "switch_transformers=SwitchTransformers",
    .title = "Switch Transformers: Fedus et al. 2021, arXiv:2101.03961.",
    .classes = "ForConditionalGeneration=logits Model=hidden EncoderModel=encoder", KEYS(switch_transformers_keys),
    .irrelevant = "dropout_rate initializer_factor add_router_probs router_jitter_noise router_z_loss_coef "
        "router_aux_loss_coef router_ignore_padding_tokens",
    .prefixes = "transformer.", .spec = T5_SPEC_OF("", "", SWITCH_FFN(""), SWITCH_FFN("decoder_")),
    .tensors = T5_TENSORS_OF(SWITCH_FFN_TENSORS),
};

/* ---------------------------------------- BART and its kin */
#define BART_KEYS(activation, scale)                                                                    \
    INTEGER("vocab_size", "vocab"), INTEGER("d_model", "d_model"), INTEGER("encoder_layers", "layers"), \
    INTEGER("decoder_layers", "decoder_layers"), INTEGER("encoder_attention_heads", "heads"),           \
    INTEGER("decoder_attention_heads", "decoder_heads"), INTEGER("encoder_ffn_dim", "d_ff"),            \
    INTEGER("decoder_ffn_dim", "decoder_d_ff"),                                                         \
    INTEGER_OR("max_position_embeddings", "positions", "1024", NULL),                                   \
    WORD_OR("activation_function", "activation", activation, ACTIVATIONS),                              \
    FLAG_OR("scale_embedding", "scaled", scale),                                                        \
    FLAG_OR("tie_word_embeddings", "tied", "true"), SHARED_TABLES, SHIFTED_KEYS
#define BART_IRRELEVANT                                                                  \
    "activation_dropout encoder_layerdrop decoder_layerdrop init_std num_hidden_layers " \
        "force_bos_token_to_be_generated extra_pos_embeddings "                          \
    "max_source_positions max_target_positions num_attention_heads hidden_size"

/* Keys of older configs, which must agree with the class. A stack whose layers begin with a norm ends with one. */
#define BART_FORM(before, embedding, sinusoids)                                          \
    MUST("normalize_before", before), MUST("normalize_embedding", embedding),            \
    MUST("add_final_layer_norm", before), MUST("static_position_embeddings", sinusoids), \
    MUST("add_bias_logits", "false")
#define BART_SPEC(norm, stack) \
    BART_SPEC_OF(norm, BART_SCALE, stack, stack, PLAIN_FFN, BART_DECODER_FFN)
#define BART_DECODER_FFN "ffn { d_ff ${decoder_d_ff}, activation ${activation} }\n"
#define BART_SCALE "[scaled&apart? embedding][scaled? scale sqrt(d_model)]"
/* `scale` holds words after `embedding tied`, and the others are lines of the two stacks and of their feed-forwards. */
#define BART_SPEC_OF(norm, scale, encoder, decoder, encoder_ffn, decoder_ffn)                     \
    "d_model ${d_model}\n"                                                                        \
    "vocab ${vocab}\n"                                                                            \
    "norm layernorm " norm " eps 1e-5\n"                                                          \
    "[!apart? embedding tied]" scale "\n" TOKENS_SPEC                                             \
    STACK_OF_LAYERS("encoder", "layers", encoder,                                                 \
                    "attention self { heads ${heads}, mask padding }\n" encoder_ffn)              \
    STACK_OF_LAYERS("decoder", "decoder_layers", decoder,                                         \
                    "attention self { heads ${decoder_heads}, mask causal }\n"                    \
                    "attention cross { heads ${decoder_heads}, mask padding }\n" decoder_ffn)     \
    "[task=logits? head logits][task=logits&#final_logits_bias? bias]\n" CLASSES_HEAD

#define BART_ATTENTION(name, from, norm)                                 \
    PROJECTIONS_OF(name, from, "q_proj", "k_proj", "v_proj", "out_proj") \
    "." name "." norm ".* ." from "_layer_norm.*\n"
#define BART_FFN(norm) UP_DOWN("fc1", "fc2") ".ffn." norm ".* .final_layer_norm.*\n"
#define BART_TABLES(stack)                                                 \
    stack ".embedding.positions.weight " stack ".embed_positions.weight\n" \
    stack ".embedding.norm.* " stack ".layernorm_embedding.*\n"
#define BART_TENSORS(norm, encoder, decoder) BART_TENSORS_OF(norm, encoder, decoder, "encoder_attn", BART_FFN(norm))
#define BART_TENSORS_OF(norm, encoder, decoder, cross, ffn)                                                    \
    TABLE_TENSORS encoder                                                                                      \
    "@encoder.layers.{layer} encoder.layers.{layer}\n"                                                         \
    BART_ATTENTION("attention", "self_attn", norm) ffn decoder                                                 \
    "@decoder.layers.{layer} decoder.layers.{layer}\n"                                                         \
    BART_ATTENTION("attention", "self_attn", norm) BART_ATTENTION("cross_attention", cross, norm) ffn          \
    "[task=logits&#final_logits_bias? head.bias final_logits_bias]\n" CLASSES_TENSORS                          \
    "ignore encoder.embed_tokens.weight decoder.embed_tokens.weight lm_head.weight encoder.embed_positions.* " \
        "decoder.embed_positions.*\n"
#define FINAL_NORM(stack) stack ".final_norm.* " stack ".layer_norm.*\n"
#define BART_CLASSES "ForConditionalGeneration=logits Model=hidden"

static const ConfigKey bart_keys[] = {
    BART_KEYS("gelu", "false"), DERIVED("learned", "yes", NULL), SEQ2SEQ_TOKENS("2", "2", "1"),
    BART_FORM("false", "true null", "false"),
};
const Family family_bart = {
    .types = "bart=Bart", .title = "BART: Lewis et al. 2020, arXiv:1910.13461.", .classes = BART_CLASSES CLASSES,
        KEYS(bart_keys),
    .irrelevant = BART_IRRELEVANT " classif_dropout gradient_checkpointing", .prefixes = "model.",
    .spec = BART_SPEC("post", "position learned offset 2\nembedding normalized\n"),
    .tensors = BART_TENSORS("norm_out", BART_TABLES("encoder"), BART_TABLES("decoder")),
};

static const ConfigKey mbart_keys[] = {
    BART_KEYS("gelu", "false"), DERIVED("learned", "yes", NULL), SEQ2SEQ_TOKENS("", "2", "1"),
    BART_FORM("true null", "true null", "false"),
};
const Family family_mbart = {
    .types = "mbart=MBart", .title = "mBART: Liu et al. 2020, arXiv:2001.08210.", .classes = BART_CLASSES CLASSES,
        KEYS(mbart_keys),
    .irrelevant = BART_IRRELEVANT " classif_dropout", .prefixes = "model.",
    .spec = BART_SPEC("pre", "position learned offset 2\nembedding normalized\n"),
    .tensors = BART_TENSORS("norm_in", BART_TABLES("encoder") FINAL_NORM("encoder"),
        BART_TABLES("decoder") FINAL_NORM("decoder")),
};

static const ConfigKey plbart_keys[] = {
    BART_KEYS("gelu", "true"), DERIVED("learned", "yes", NULL), SEQ2SEQ_TOKENS("", "2", "1"),
    BART_FORM("false", "true null", "false"),
};
const Family family_plbart = {
    .types = "plbart=PLBart", .title = "PLBART: Ahmad et al. 2021, arXiv:2103.06333.", .classes = BART_CLASSES,
    KEYS(plbart_keys), .irrelevant = BART_IRRELEVANT " classif_dropout is_decoder", .prefixes = "model.",
    .spec = BART_SPEC("post", "position learned offset 2\nembedding normalized\n"),
    .tensors = BART_TENSORS("norm_out", BART_TABLES("encoder"), BART_TABLES("decoder")),
};

static const ConfigKey mvp_keys[] = {
    BART_KEYS("gelu", "false"), DERIVED("learned", "yes", NULL), SEQ2SEQ_TOKENS("2", "2", "1"),
    BART_FORM("false", "true null", "false"), FLAG_OR("use_prompt", "prompted", "false"),
    REFUSED("prompted", "`use_prompt` is true, and the language has no learned keys and values before a text"),
};
const Family family_mvp = {
    .types = "mvp=Mvp", .title = "MVP: Tang et al. 2022, arXiv:2206.12131.", .classes = BART_CLASSES CLASSES,
    KEYS(mvp_keys), .irrelevant = BART_IRRELEVANT " classif_dropout prompt_length prompt_mid_dim",
    .prefixes = "model.", .spec = BART_SPEC("post", "position learned offset 2\nembedding normalized\n"),
    .tensors = BART_TENSORS("norm_out", BART_TABLES("encoder"), BART_TABLES("decoder")),
};

/* Like transformers, the import uses the file's table of positions where there is one, otherwise the formula. */
#define TABLE_OR_SINUSOIDS \
    "[learned? position learned]\n[!learned? position sinusoidal halves]\n"
#define LEARNED_IF_SAVED DERIVED("learned", "yes", "#encoder.embed_positions.weight")
#define POSITION_TABLE(stack) "[learned? " stack ".embedding.positions.weight " stack ".embed_positions.weight]\n"

static const ConfigKey marian_keys[] = {
    BART_KEYS("gelu", "false"), LEARNED_IF_SAVED, SEQ2SEQ_TOKENS("58100", "0", "58100"),
    MUST("share_encoder_decoder_embeddings", "true"),
    INTEGER_OR("decoder_vocab_size", "decoder_vocab", "=vocab", "=vocab"),
    REFUSED("decoder_vocab!=$vocab", "`decoder_vocab_size` is not `vocab_size`, though the embeddings are shared"),
    BART_FORM("false", "false", "true null"),
};
const Family family_marian = {
    .types = "marian=Marian", .title = "Marian: Junczys-Dowmunt et al. 2018, arXiv:1804.00344.",
        .classes = "MTModel=logits Model=hidden",
    KEYS(marian_keys), .irrelevant = BART_IRRELEVANT " classif_dropout", .prefixes = "model.",
    .spec = BART_SPEC("post", TABLE_OR_SINUSOIDS),
    .tensors = BART_TENSORS("norm_out", POSITION_TABLE("encoder"), POSITION_TABLE("decoder")),
};

static const ConfigKey pegasus_keys[] = {
    BART_KEYS("gelu", "false"), LEARNED_IF_SAVED, SEQ2SEQ_TOKENS("0", "1", "0"),
    BART_FORM("true null", "false", "true null"),
};
const Family family_pegasus = {
    .types = "pegasus=Pegasus", .title = "PEGASUS: Zhang et al. 2020, arXiv:1912.08777.", .classes = BART_CLASSES,
        KEYS(pegasus_keys),
    .irrelevant = BART_IRRELEVANT " classif_dropout", .prefixes = "model.",
    .spec = BART_SPEC("pre", TABLE_OR_SINUSOIDS),
    .tensors = BART_TENSORS("norm_in", POSITION_TABLE("encoder") FINAL_NORM("encoder"),
        POSITION_TABLE("decoder") FINAL_NORM("decoder")),
};

static const ConfigKey blenderbot_keys[] = {
    BART_KEYS("gelu", "false"), INTEGER_OR("max_position_embeddings", "positions", "128", NULL),
    DERIVED("learned", "yes", NULL), SEQ2SEQ_TOKENS("1", "2", "0"), BART_FORM("true null", "false", "false"),
    MUST("layernorm_variant", "prelayernorm null"), MUST("extra_layer_norm", "false"),
};
const Family family_blenderbot = {
    .types = "blenderbot=Blenderbot", .title = "Blenderbot: Roller et al. 2020, arXiv:2004.13637.",
    .classes = BART_CLASSES, KEYS(blenderbot_keys),
    .irrelevant = BART_IRRELEVANT " classif_dropout do_blenderbot_90_layernorm", .prefixes = "model.",
    .spec = BART_SPEC("pre", "position learned\n"),
    .tensors = BART_TENSORS("norm_in", POSITION_TABLE("encoder") FINAL_NORM("encoder"),
        POSITION_TABLE("decoder") FINAL_NORM("decoder")),
};

/* The decoder does not scale its tokens, and adds the positions to their norm. */
static const ConfigKey blenderbot_small_keys[] = {
    BART_KEYS("gelu", "false"), INTEGER_OR("max_position_embeddings", "positions", "512", NULL),
    DERIVED("learned", "yes", NULL), SEQ2SEQ_TOKENS("1", "2", "0"), BART_FORM("false", "true null", "false"),
    MUST("do_blenderbot_90_layernorm", "true null"), MUST("layernorm_variant variant", "xlm null"),
    MUST("extra_layer_norm", "false"),
};
const Family family_blenderbot_small = {
    .types = "blenderbot-small=BlenderbotSmall", .title = "Blenderbot small: Roller et al. 2020, arXiv:2004.13637.",
    .classes = BART_CLASSES, KEYS(blenderbot_small_keys),
    .irrelevant = BART_IRRELEVANT " classif_dropout", .prefixes = "model.",
    .spec = BART_SPEC_OF("post", "", "position learned\nembedding normalized[scaled? scale sqrt(d_model)]\n",
        "position learned\nembedding normalized before_positions\n", PLAIN_FFN, BART_DECODER_FFN),
    .tensors = BART_TENSORS("norm_out", BART_TABLES("encoder"), BART_TABLES("decoder")),
};

#define M2M_KEYS                                                                                          \
    BART_KEYS("relu", "true"), {"pad_token_id", "padding_idx", KEY_NATURAL, "1", NULL, NULL},             \
    DERIVED("offset", "=padding_idx + 1", NULL), SEQ2SEQ_TOKENS("2", "2", "1")
#define M2M_POSITIONS "position sinusoidal fairseq offset ${offset} skip ${padding_idx}\n"
static const ConfigKey m2m_100_keys[] = {M2M_KEYS};
const Family family_m2m_100 = {
    .types = "m2m_100=M2M100",
        .title = "M2M-100 and NLLB: Fan et al. 2020, arXiv:2010.11125; NLLB Team 2022, arXiv:2207.04672.",
    .classes = BART_CLASSES, KEYS(m2m_100_keys), .irrelevant = BART_IRRELEVANT, .prefixes = "model.",
    .spec = BART_SPEC("pre", M2M_POSITIONS),
    .tensors = BART_TENSORS("norm_in", FINAL_NORM("encoder"), FINAL_NORM("decoder")),
};

/* ---------------------------------------- NLLB-MoE: M2M-100 with experts in some layers, of which a row takes two */
#define NLLB_SPARSE(stack, p)                                             \
    {stack "_sparse_step", p "step", KEY_NATURAL, "4", NULL, NULL},       \
    {"", p "mlp", KEY_LAYER_TYPES, "every " p "step dense sparse", "", "dense sparse"}
static const ConfigKey nllb_moe_keys[] = {
    M2M_KEYS, NLLB_SPARSE("encoder", ""), NLLB_SPARSE("decoder", "decoder_"),
    INTEGER_OR("num_experts", "experts", "128", NULL), INTEGER_OR("expert_capacity", "capacity", "64", NULL),
    REFUSED("any_sparse&experts=1", "`num_experts` is 1, and a row of NLLB-MoE chooses two experts"),
    FLAG_OR("router_bias", "router_bias", "false"), MUST("router_dtype", "float32"),
    {"second_expert_policy", "policy", KEY_TEXT, "all", NULL, NULL},
    REFUSED("any_sparse&policy=sampling", "`second_expert_policy` is sampling: the second expert is chosen at random"),
    REFUSED("any_sparse&policy=random", "`second_expert_policy` is random: a second expert is left out at random"),
    REAL_OR("moe_token_dropout", "dropped", "0.2", NULL),
    {"moe_eval_capacity_token_fraction", "share", KEY_SHARE, "whole", NULL, NULL},
    REFUSED("any_sparse&share=part", "`moe_eval_capacity_token_fraction` is less than 1: an expert leaves out the rows "
        "of a text beyond that share of them, and in the language an expert takes all rows that choose it"),
    DERIVED("positions", "=capacity", "any_sparse&share=none"),
    NOTED("any_sparse&share=none", "An expert takes at most `expert_capacity` rows of a text: with this bound of a "
        "text, it leaves out none."),
    NOTED("any_sparse", "The experts are those that the router chooses, as in fairseq and transformers 4; transformers "
        "5.24 takes the experts 1 and 0 in their places."),
};
#define NLLB_FFN(p)                                                                                      \
    "[" p "mlp=dense? ffn { d_ff ${" p "d_ff}, activation ${activation} }]\n$if " p "mlp=sparse\n"       \
    "ffn {\nd_ff ${" p "d_ff}, activation ${activation}\nexperts ${experts}, top 2\n"                    \
    "router softmax renormalized[dropped!=0? scale 1-${dropped}][router_bias? bias]\n}\n$end\n"
#define NLLB_FFN_TENSORS                                            \
    ".ffn.norm_in.* .ff_layer_norm.*\n"                             \
    ".ffn.router.* .ffn.router.classifier.*\n"                      \
    ".ffn.experts.up.* .ffn.experts.expert_{expert}.fc1.*\n"        \
    ".ffn.experts.down.* .ffn.experts.expert_{expert}.fc2.*\n" UP_DOWN("ffn.fc1", "ffn.fc2")
const Family family_nllb_moe = {
    .types = "nllb-moe=NllbMoe", .title = "NLLB-MoE: NLLB Team 2022, arXiv:2207.04672.",
    .classes = BART_CLASSES, KEYS(nllb_moe_keys),
    .irrelevant = BART_IRRELEVANT " router_ignore_padding_tokens router_z_loss_coef router_aux_loss_coef "
        "output_router_logits normalize_router_prob_before_dropping batch_prioritized_routing", .prefixes = "model.",
    .spec = BART_SPEC_OF("pre", BART_SCALE, M2M_POSITIONS, M2M_POSITIONS, NLLB_FFN(""), NLLB_FFN("decoder_")),
    .tensors = BART_TENSORS_OF("norm_in", FINAL_NORM("encoder"), FINAL_NORM("decoder"), "cross_attention",
        NLLB_FFN_TENSORS),
};

/* ---------------------------------------- Whisper: a spectrogram of constant length, and keys without a bias */
static const ConfigKey whisper_keys[] = {
    INTEGER("vocab_size", "vocab"), INTEGER("d_model", "d_model"), INTEGER("num_mel_bins", "bins"),
    INTEGER("encoder_layers", "layers"), INTEGER("decoder_layers", "decoder_layers"),
    INTEGER("encoder_attention_heads", "heads"), INTEGER("decoder_attention_heads", "decoder_heads"),
    INTEGER("encoder_ffn_dim", "d_ff"), INTEGER("decoder_ffn_dim", "decoder_d_ff"),
    INTEGER_OR("max_source_positions", "source", "1500", NULL),
    INTEGER_OR("max_target_positions", "positions", "448", NULL), DERIVED("learned", "yes", NULL),
    WORD_OR("activation_function", "activation", "gelu", ACTIVATIONS), MUST("is_encoder_decoder", "true"),
    FLAG_OR("tie_word_embeddings", "tied", "true"), SEQ2SEQ_TOKENS("50257", "50256", "50256"),
    OWN_HEAD("task=logits", "proj_out.weight", "decoder.embed_tokens.weight"),
    FLAG_OR("use_weighted_layer_sum", "weighted", "false"), DERIVED("decoded", "yes", "task!=classify"),
    DERIVED("start", "", "!decoded"), DERIVED("end", "", "!decoded"), DERIVED("pad", "", "!decoded"),
    DERIVED("weighted", "", "decoded"),
    REFUSED("weighted", "`use_weighted_layer_sum` is true, and the language has no sum of the rows of all layers"),
    NOTED("!decoded", "The scores of the classes are the output `pooled`."),
};
#define WHISPER_STACK(layers, body)  \
    "position learned\n"             \
    "$layers " layers "\n" body      \
    "$end\n"                         \
    "}\n"
#define WHISPER_ATTENTION(kind, heads) "attention " kind " { heads ${" heads "}, bias q v o }\n"
#define WHISPER_FFN(d_ff) "ffn { d_ff ${" d_ff "}, activation ${activation} }\n"
#define WHISPER_TENSORS(stack) \
    stack ".embedding.positions.weight " stack ".embed_positions.weight\n" FINAL_NORM(stack) \
    "@" stack ".layers.{layer} " stack ".layers.{layer}\n" BART_ATTENTION("attention", "self_attn", "norm_in")
const Family family_whisper = {
    .types = "whisper=Whisper", .title = "Whisper: Radford et al. 2022, arXiv:2212.04356.",
    .classes = BART_CLASSES " ForAudioClassification=classify",
    KEYS(whisper_keys),
    .irrelevant = "activation_dropout encoder_layerdrop decoder_layerdrop init_std num_hidden_layers scale_embedding "
        "num_attention_heads hidden_size classifier_proj_size apply_spec_augment "
        "mask_time_prob mask_time_length mask_time_min_masks mask_feature_prob mask_feature_length "
        "mask_feature_min_masks median_filter_width forced_decoder_ids",
    .prefixes = "model.",
    .spec =
        "d_model ${d_model}\n"
        "norm layernorm pre eps 1e-5\n" TOKENS_SPEC
        "encoder {\n"
        "input mel bins ${bins} frames 2*${source}\n"
        "convolution { kernel 3, activation gelu }\n"
        "convolution { kernel 3 stride 2, activation gelu }\n"
        WHISPER_STACK("layers", WHISPER_ATTENTION("self", "heads") WHISPER_FFN("d_ff"))
        "$if decoded\n"
        "decoder {\n"
        "vocab ${vocab}\n"
        "seq <= ${bound}\n"
        WHISPER_STACK("decoder_layers", WHISPER_ATTENTION("self", "decoder_heads")
            WHISPER_ATTENTION("cross", "decoder_heads") WHISPER_FFN("decoder_d_ff"))
        "$end\n"
        /* The mean of projected rows is the projection of their mean. */
        "[task=classify? head pool mean]\n"
        "[task=classify? dense ${#projector.weight} { }]\n"
        "[task=classify? dense ${#classifier.weight} { }]\n"
        "[task=logits? head logits][task=logits&tied? tied]\n",
    .tensors =
        "encoder.embedding.convolutions.0.* encoder.conv1.*\n"
        "encoder.embedding.convolutions.1.* encoder.conv2.*\n"
        "[task=classify? dense.0.* projector.*]\n"
        "[task=classify? dense.1.* classifier.*]\n"
        "[decoded? decoder.embedding.tokens.weight decoder.embed_tokens.weight]\n"
        "[decoded&!tied? head.weight proj_out.weight]\n"
        WHISPER_TENSORS("encoder") BART_FFN("norm_in")
        WHISPER_TENSORS("decoder") BART_ATTENTION("cross_attention", "encoder_attn", "norm_in") BART_FFN("norm_in")
        "ignore proj_out.weight\n",
};
