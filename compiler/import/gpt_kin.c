/* gpt_kin.c: GPT, CTRL and Persimmon. */
#include "decoders.h"

#define SUMMARY_IRRELEVANT                                                                                        \
    "resid_pdrop embd_pdrop attn_pdrop n_ctx n_special predict_special_tokens summary_type summary_use_proj "      \
    "summary_activation summary_proj_to_labels summary_first_dropout from_tf"
#define SQUARE DERIVED("kv_heads", "=heads", NULL), DERIVED("width", "=d_model", NULL)
#define GPT_SIZES                                                                                         \
    INTEGER("vocab_size", "vocab"), INTEGER("n_embd hidden_size", "d_model"),                             \
    INTEGER("n_layer num_hidden_layers", "layers"), INTEGER("n_head num_attention_heads", "heads"), SQUARE

/* ---------------------------------------- GPT: norms after the sums, and no final one */
static const ConfigKey openai_gpt_keys[] = {
    GPT_SIZES, DERIVED("d_ff", "=4 * d_model", NULL),
    INTEGER_OR("n_positions max_position_embeddings", "positions", "512", NULL), DERIVED("learned", "yes", NULL),
    /* The words of GPT's own table of activations. */
    WORD_OR("afn", "activation", "gelu_tanh", "gelu=gelu_tanh relu silu swish=silu"),
    REAL_OR("layer_norm_epsilon", "eps", "1e-5", NULL),
    DECODER_TOKENS("", "", ""), TIED_TO("true", "lm_head.weight", "tokens_embed.weight"),
};
const Family family_openai_gpt = {
    .types = "openai-gpt=OpenAIGPT", .title = "GPT: Radford et al. 2018.",
    .classes = "LMHeadModel=logits Model=hidden ForSequenceClassification=classify DoubleHeadsModel=rest",
    KEYS(openai_gpt_keys), .irrelevant = SUMMARY_IRRELEVANT, .prefixes = "transformer.",
    .spec = LLAMA_SPEC("norm layernorm post eps ${eps}\n", "position learned\n", "", PLAIN_FFN, ""),
    .tensors =
        TOKEN_TABLE("tokens_embed.weight", "lm_head.weight")
        "decoder.embedding.positions.weight positions_embed.weight\n"
        "@decoder.layers.{layer} h.{layer}\n"
        QKV_ROWS("*", "attn.c_attn.* transpose", "d_model", "2*d_model", "3*d_model")
        ".attention.output.* .attn.c_proj.* transpose\n"
        ".attention.norm_out.* .ln_1.*\n"
        ".ffn.up.* .mlp.c_fc.* transpose\n"
        ".ffn.down.* .mlp.c_proj.* transpose\n"
        ".ffn.norm_out.* .ln_2.*\n"
        "buffer h.{layer}.attn.bias position_ids\n" HEAD_TENSORS "ignore multiple_choice_head.*\n",
};

/* ---------------------------------------- CTRL: sinusoids, and a final norm whose eps may differ */
static const ConfigKey ctrl_keys[] = {
    GPT_SIZES, INTEGER("dff", "d_ff"), DERIVED("activation", "relu", NULL),
    INTEGER_OR("n_positions max_position_embeddings", "positions", "256", NULL),
    REAL_OR("layer_norm_epsilon", "eps", "1e-6", NULL),
    DECODER_TOKENS("", "", ""), TIED_TO("true", "lm_head.weight", "w.weight"),
};
const Family family_ctrl = {
    .types = "ctrl=CTRL", .title = "CTRL: Keskar et al. 2019, arXiv:1909.05858.",
    .classes = "LMHeadModel=logits Model=hidden ForSequenceClassification=classes", KEYS(ctrl_keys),
    .irrelevant = SUMMARY_IRRELEVANT, .prefixes = "transformer.",
    .spec = DECODER_SPEC("decoder", "norm layernorm pre eps ${eps}\n",
                         "position sinusoidal halves\nembedding scale sqrt(d_model)\n",
                         "[eps!=1e-6? norm layernorm pre eps 1e-6]\n"
                         LLAMA_ATTENTION("causal", "") PLAIN_FFN, " bias")
        "[task=classes? head pool last][task=classes&pad? skip ${pad}]"
        "[task=classes? classifier ${#classifier.weight} no_bias]\n",
    .tensors =
        TOKEN_TABLE("w.weight", "lm_head.weight")
        "@decoder.layers.{layer} h.{layer}\n"
        PROJECTIONS("multi_head_attention", "Wq", "Wk", "Wv", "dense")
        ".attention.norm_in.* .layernorm1.*\n"
        ".ffn.norm_in.* .layernorm2.*\n" UP_DOWN("ffn.0", "ffn.2")
        "decoder.final_norm.* layernorm.*\n"
        "[task=logits? head.bias lm_head.bias]\n"
        "[task=classes? classifier.weight classifier.weight]\n"
        "buffer pos_encoding\n" HEAD_TENSORS,
};

/* ---------------------------------------- Persimmon: norms of queries and keys, and relu2 without a gate */
static const ConfigKey persimmon_keys[] = {
    LLAMA_SIZES("relu2"), SQUARE, DERIVED("head_dim", "=d_model / heads", NULL), POSITIONS("16384"),
    ONE_ROPE("10000", "0.5"), REAL_OR("layer_norm_eps", "eps", "1e-5", NULL),
    FLAG_OR("qk_layernorm", "qk_norm", "true"), DECODER_TOKENS("1", "2", ""), TIED("false"),
};
const Family family_persimmon = {
    .types = "persimmon=Persimmon", .title = "Persimmon: Elsen et al. 2023.",
    .classes = "ForCausalLM=logits Model=hidden ForSequenceClassification=classify ForTokenClassification=labels",
    KEYS(persimmon_keys), .irrelevant = "hidden_dropout", .prefixes = "model.",
    .spec = LLAMA_SPEC("norm layernorm pre eps ${eps}\n", "", "[qk_norm? qk_norm layernorm]\nposition rope ${rope}\n",
                       PLAIN_FFN, ""),
    .tensors = LLAMA_EMBEDDING LLAMA_NORMS HEAD_PARTS("self_attn.query_key_value")
        ".attention.output.* .self_attn.dense.*\n"
        "[qk_norm? .attention.query_norm.* .self_attn.q_layernorm.*]\n"
        "[qk_norm? .attention.key_norm.* .self_attn.k_layernorm.*]\n"
        UP_DOWN("mlp.dense_h_to_4h", "mlp.dense_4h_to_h")
        "decoder.final_norm.* final_layernorm.*\n"
        "buffer layers.{layer}.self_attn.rotary_emb.inv_freq\n" HEAD_TENSORS,
};
