/* llama_kin.c: CWM, BitNet, Ministral 3, nanochat and EuroBERT, whose layers resemble LLaMA's. */
#include "decoders.h"

/* ---------------------------------------- CWM: a window in all layers but each fourth */
static const ConfigKey cwm_keys[] = {
    LLAMA_KIN("8", "128"), POSITIONS("131072"), DERIVED("whole_rope", "yes", NULL),
    SCALED_ROPE("1000000", "1", " scaling llama3 factor 16 low 1 high 4 original 8192"), RMS_EPS("1e-5"), FFN_BIAS,
    INTEGER_OR("sliding_window", "window", "8192", ""), DERIVED("fourth", "4", NULL),
    LAYER_TYPES("first fourth sliding_attention full_attention", TYPES),
    NEEDS_WINDOW(SOME_LAYERS_SLIDE),
    DECODER_TOKENS("128000", "128001 128008 128009", ""), TIED("false"),
};
const Family family_cwm = {
    .types = "cwm=Cwm", .title = "CWM: Copet et al. 2025, arXiv:2510.02387.",
    .classes = "ForCausalLM=logits Model=hidden", KEYS(cwm_keys), .irrelevant = "", .prefixes = "model.",
    .spec = LLAMA_SPEC("norm rmsnorm pre eps ${eps}\n", "",
                       "[layer_type=sliding_attention? window ${window}]\nbias none\nposition rope ${rope}\n",
                       GATED_BIASED_FFN, ""),
    .tensors = LLAMA_EMBEDDING LLAMA_NORMS LLAMA_PROJECTIONS LLAMA_FFN LLAMA_END,
};

/* ---------------------------------------- BitNet with weights of floats: norms before `output` and `down` */
static const ConfigKey bitnet_keys[] = {
    LLAMA_SIZES("relu2"), KV_HEADS_OR("5"), HEAD_DIM("=d_model / heads"), POSITIONS("2048"), WHOLE_ROPE("500000"),
    RMS_EPS("1e-5"), ATTENTION_BIAS, DECODER_TOKENS("128000", "128001", ""), TIED("false"),
    REFUSED("width!=$d_model", "the columns of all heads together are not `hidden_size`, the width of `attn_sub_norm`"),
};
const Family family_bitnet = {
    .types = "bitnet=BitNet", .title = "BitNet b1.58, unquantized: Ma et al. 2025, arXiv:2504.12285.",
    .classes = "ForCausalLM=logits Model=hidden", KEYS(bitnet_keys), .irrelevant = "", .prefixes = "model.",
    .spec = LLAMA_SPEC("norm rmsnorm pre eps ${eps}\nbias none\ninner_norm rmsnorm\n", "",
                       "[attention_bias? bias all]\nposition rope ${rope}\n", GATED_FFN, ""),
    .tensors = LLAMA_EMBEDDING LLAMA_NORMS LLAMA_PROJECTIONS
        ".attention.inner_norm.* .self_attn.attn_sub_norm.*\n.ffn.inner_norm.* .mlp.ffn_sub_norm.*\n" LLAMA_FFN
        LLAMA_END,
};

/* ---------------------------------------- Ministral 3: scores that grow with the position of the query */
static const ConfigKey ministral3_keys[] = {
    LLAMA_KIN("8", "128"), POSITIONS("262144"),
    {IN_ROPE("rope_type") " " IN_ROPE("type"), "said_rope", KEY_TEXT, "", "", NULL},
    REAL_OR(IN_ROPE("llama_4_scaling_beta"), "beta", "", ""),
    INTEGER_OR(IN_ROPE("original_max_position_embeddings"), "original", "", ""),
    DERIVED("beta", "0.1", "!said_rope&!beta"), DERIVED("original", "16384", "!said_rope&!original"),
    REFUSED("!beta", "`llama_4_scaling_beta` is missing in `rope_parameters`, without which transformers computes no "
            "scores"),
    REFUSED("!original", "`original_max_position_embeddings` is missing in `rope_parameters`, without which "
            "transformers computes no scores"),
    SCALED_ROPE("1000000", "1", " scaling yarn factor 16 original 16384 attention_factor 1 beta_fast 32 beta_slow 1"),
    RMS_EPS("1e-5"), INTEGER_OR("sliding_window", "window", "", ""), DECODER_TOKENS("1", "2", "11"), TIED("false"),
};
const Family family_ministral3 = {
    .types = "ministral3=Ministral3", .title = "Ministral 3: Mistral AI 2025.", .classes = DECODER_CLASSES,
    KEYS(ministral3_keys),
    .irrelevant = IN_ROPE("max_position_embeddings"), .prefixes = MODEL_PREFIXES,
    .spec = LLAMA_SPEC("norm rmsnorm pre eps ${eps}\nbias none\n", "",
                       "[window? window ${window}]\nposition rope ${rope}\n"
                       "[beta!=0? score s*(1 + ${beta}*log(1 + floor(q/${original})))]\n", GATED_FFN, ""),
    .tensors = LLAMA_EMBEDDING LLAMA_NORMS LLAMA_PROJECTIONS LLAMA_FFN LLAMA_END,
};

/* ---------------------------------------- nanochat: norms without weights, which are 1 + 0 here */
/* nanochat rotates queries and keys in the opposite direction, which is the direction of the language where the halves
 * of each head are exchanged. */
static const ConfigKey nanochat_keys[] = {
    LLAMA_SIZES("relu2"), KV_HEADS, HEAD_DIM("=d_model / heads"), POSITIONS("2048"), WHOLE_ROPE("10000"),
    RMS_EPS("1e-6"), ATTENTION_BIAS, POSITIVE_OR("final_logit_softcapping", "head_softcap", "15", ""),
    DERIVED("query_rows", "~heads head_dim", NULL), DERIVED("key_rows", "~kv_heads head_dim", NULL),
    DECODER_TOKENS("0", "1", "1"), TIED("false"),
};
const Family family_nanochat = {
    .types = "nanochat=NanoChat", .title = "nanochat: Karpathy 2025. Its norms have no weights.",
    .classes = "ForCausalLM=logits Model=hidden", KEYS(nanochat_keys), .irrelevant = "", .prefixes = "model.",
    .spec = LLAMA_SPEC("norm rmsnorm pre plus_one eps ${eps}\nbias none\n", "embedding normalized\n",
                       "[attention_bias? bias all]\nqk_norm rmsnorm plus_one after_rotation\nposition rope ${rope}\n",
                       PLAIN_FFN, "[head_softcap? softcap ${head_softcap}]"),
    .tensors = LLAMA_EMBEDDING
        "decoder.embedding.norm.weight norm.weight optional\n"
        ".attention.norm_in.weight .input_layernorm.weight optional\n"
        ".attention.query.* .self_attn.q_proj.* rows ${query_rows}\n"
        ".attention.key.* .self_attn.k_proj.* rows ${key_rows}\n"
        ".attention.value.* .self_attn.v_proj.*\n"
        ".attention.output.* .self_attn.o_proj.*\n"
        ".attention.query_norm.weight .self_attn.q_norm.weight optional\n"
        ".attention.key_norm.weight .self_attn.k_norm.weight optional\n"
        ".ffn.norm_in.weight .post_attention_layernorm.weight optional\n" UP_DOWN("mlp.fc1", "mlp.fc2")
        "decoder.final_norm.weight norm.weight optional\n"
        "buffer layers.{layer}.self_attn.rotary_emb.inv_freq\n" HEAD_TENSORS,
};

/* ---------------------------------------- EuroBERT: an encoder */
static const ConfigKey eurobert_keys[] = {
    LLAMA_KIN("=heads", "=d_model / heads"), POSITIONS("8192"), WHOLE_ROPE("10000"), RMS_EPS("1e-5"), ATTENTION_BIAS,
    FFN_BIAS, TOKEN_OR("pad_token_id", "pad", "128001"),
    WORD_OR("classifier_pooling clf_pooling", "pooling", "late", "bos mean late"),
    /* The mean of the scores of all rows is no score of a mean, since an activation stands before the classifier. */
    DERIVED("task", "rest", "task=classify&pooling=late"),
    FLAG_OR("tie_word_embeddings", "tied", "false"), OWN_HEAD("task=masked", "lm_head.weight", "embed_tokens.weight"),
};
const Family family_eurobert = {
    .types = "eurobert=EuroBert", .title = "EuroBERT: Boizard et al. 2025, arXiv:2503.05500.",
    .classes = "Model=hidden ForMaskedLM=masked ForSequenceClassification=classify ForTokenClassification=labels "
               "PreTrainedModel=rest",
    KEYS(eurobert_keys), .irrelevant = "mask_token_id", .prefixes = "model.",
    .spec = "d_model ${d_model}\nvocab ${vocab}\nnorm rmsnorm pre eps ${eps}\n[pad? pad ${pad}]\n\n"
        STACK_OF_LAYERS("encoder", "layers", "",
                        LLAMA_ATTENTION("padding", "[!attention_bias? bias none]\nposition rope ${rope}\n")
                        GATED_BIASED_FFN)
        "[task=masked? head logits][task=masked&tied? tied][task=masked&ffn_bias? bias]\n"
        "[task=classify? head][task=classify&pooling=mean? pool mean]"
        "[task=classify? pooler gelu classifier ${#classifier.weight}]\n"
        "[task=labels? head classifier ${#classifier.weight} rows]\n",
    .tensors = LLAMA_EMBEDDING_IN("encoder") LLAMA_NORMS LLAMA_PROJECTIONS LLAMA_FFN "encoder.final_norm.* norm.*\n"
        "[task=masked&!tied? head.weight lm_head.weight]\n"
        "[task=masked&ffn_bias? head.bias lm_head.bias]\n"
        "[task=classify? pooler.* dense.*]\n"
        "[task=classify? classifier.* classifier.*]\n"
        "[task=labels? classifier.* classifier.*]\n"
        "buffer layers.{layer}.self_attn.rotary_emb.inv_freq\nignore lm_head.* dense.* classifier.*\n",
};
