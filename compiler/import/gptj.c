/* gptj.c: GPT-J, CodeGen, GPT-Neo and GPTBigCode. */
#include "decoders.h"

#define GPT_SIZES(d_ff)                                                                                   \
    INTEGER("vocab_size", "vocab"), INTEGER("n_embd hidden_size", "d_model"),                             \
    INTEGER("n_layer num_hidden_layers", "layers"), INTEGER("n_head num_attention_heads", "heads"),       \
    INTEGER_OR(d_ff, "d_ff", "=4 * d_model", "=4 * d_model"), DERIVED("head_dim", "=d_model / heads", NULL), \
    DERIVED("width", "=d_model", NULL)
#define GPT_POSITIONS(otherwise) INTEGER_OR("n_positions max_position_embeddings", "positions", otherwise, NULL)
#define GPT_EPS REAL_OR("layer_norm_epsilon", "eps", "1e-5", NULL)
#define ONE_TO_ONE DERIVED("kv_heads", "=heads", NULL)
#define GPT_IRRELEVANT                                                                                       \
    "resid_pdrop embd_pdrop attn_pdrop n_ctx summary_type summary_use_proj summary_activation "              \
    "summary_proj_to_labels summary_first_dropout"
#define WTE_TIED(otherwise) TIED_TO(otherwise, "lm_head.weight", "wte.weight")
#define WTE TOKEN_TABLE("wte.weight", "lm_head.weight")
#define GPT_TABLES                                        \
    WTE "decoder.embedding.positions.weight wpe.weight\n" \
    "@decoder.layers.{layer} h.{layer}\n.attention.norm_in.* .ln_1.*\n"
#define GPT_END                                                  \
    ".ffn.norm_in.* .ln_2.*\n" UP_DOWN("mlp.c_fc", "mlp.c_proj") \
    "decoder.final_norm.* ln_f.*\n" HEAD_TENSORS
#define GPT_NORM "norm layernorm pre eps ${eps}\n"

/* ---------------------------------------- GPT-J: one norm for both sublayers, part of each head rotated */
#define ROTARY_KEYS(otherwise)                                                                                   \
    GPT_SIZES("n_inner"), ONE_TO_ONE, GPT_POSITIONS("2048"), GPT_EPS,                                            \
    INTEGER_OR("rotary_dim", "rotary_dim", otherwise, NULL), WORD_OR("activation_function", "activation", "gelu_tanh", \
    ACTIVATIONS), FLAG_OR("rotary", "rotary", "true"), FLAG_OR("scale_attn_weights", "scaled", "true"),          \
    NOTED("!rotary", "`rotary` is false, which transformers does not read; the rows are rotated as it does."),   \
    NOTED("!scaled", "`scale_attn_weights` is false, which transformers does not read; the scores are scaled."), \
    DECODER_TOKENS("50256", "50256", ""), WTE_TIED("false")
#define ROTARY_SPEC                                                                                               \
    LLAMA_SPEC(GPT_NORM, "block parallel shared_norm\n",                                                          \
               "bias none\nposition rope theta 10000[rotary_dim!=$head_dim? partial ${rotary_dim}/${head_dim}] "  \
                   "interleaved\n", PLAIN_FFN, " bias")
#define ROTARY_TENSORS(projections)                                                      \
    WTE                                                                                  \
    "@decoder.layers.{layer} h.{layer}\n"                                                \
    ".attention.norm_in.* .ln_1.*\n" projections                                         \
    UP_DOWN("mlp.fc_in", "mlp.fc_out")                                                   \
    "decoder.final_norm.* ln_f.*\n"                                                      \
    "buffer h.{layer}.attn.bias h.{layer}.attn.masked_bias h.{layer}.attn.causal_mask\n" \
    "[task=logits? head.bias lm_head.bias]\n" HEAD_TENSORS

static const ConfigKey gptj_keys[] = {ROTARY_KEYS("64")};
const Family family_gptj = {
    .types = "gptj=GPTJ", .title = "GPT-J: Wang and Komatsuzaki 2021.", .classes = DECODER_CLASSES, KEYS(gptj_keys),
    .irrelevant = GPT_IRRELEVANT, .prefixes = "transformer.", .spec = ROTARY_SPEC,
    .tensors = ROTARY_TENSORS(PROJECTIONS("attn", "q_proj", "k_proj", "v_proj", "out_proj")),
};

/* CodeGen stores rows of query, value and key, in this order, in each of four groups. */
static const ConfigKey codegen_keys[] = {
    ROTARY_KEYS("64"), DERIVED("group_heads", "=heads / 4 * 4", NULL),
    REFUSED("group_heads!=$heads", "the four groups of CodeGen's heads are unequal: `n_head` is not a multiple of 4"),
};
const Family family_codegen = {
    .types = "codegen=CodeGen", .title = "CodeGen: Nijkamp et al. 2022, arXiv:2203.13474.",
    .classes = "ForCausalLM=logits Model=hidden", KEYS(codegen_keys), .irrelevant = GPT_IRRELEVANT,
    .prefixes = "transformer.", .spec = ROTARY_SPEC,
    .tensors = ROTARY_TENSORS(".attention.query.* .attn.qkv_proj.* interleaved 4 parts 3 take 0\n"
                              ".attention.value.* .attn.qkv_proj.* interleaved 4 parts 3 take 1\n"
                              ".attention.key.* .attn.qkv_proj.* interleaved 4 parts 3 take 2\n"
                              ".attention.output.* .attn.out_proj.*\n"),
};

/* ---------------------------------------- GPT-Neo: scores are not scaled; some layers have a window */
static const ConfigKey gpt_neo_keys[] = {
    INTEGER("vocab_size", "vocab"), INTEGER("hidden_size", "d_model"),
    INTEGER("num_layers num_hidden_layers", "layers"), INTEGER("num_heads num_attention_heads", "heads"), ONE_TO_ONE,
    DERIVED("width", "=d_model", NULL), INTEGER_OR("intermediate_size", "d_ff", "=4 * d_model", "=4 * d_model"),
    POSITIONS("2048"),
    DERIVED("learned", "yes", NULL), WORD_OR("activation_function", "activation", "gelu_tanh", ACTIVATIONS), GPT_EPS,
    INTEGER_OR("window_size", "window", "256", NULL),
    {"attention_layers", "reach", KEY_LAYER_TYPES, "", "", "global local"},
    {"attention_types", "reach", KEY_LAYER_RUNS, "", "", "global local"},
    REFUSED("!any_global&!any_local", "neither `attention_layers` nor `attention_types` says which layers are local"),
    DECODER_TOKENS("50256", "50256", ""), WTE_TIED("true"),
};
const Family family_gpt_neo = {
    .types = "gpt_neo=GPTNeo", .title = "GPT-Neo: Black et al. 2021.", .classes = DECODER_CLASSES, KEYS(gpt_neo_keys),
    .irrelevant = GPT_IRRELEVANT " resid_dropout embed_dropout", .prefixes = "transformer.",
    .spec = LLAMA_SPEC(GPT_NORM, "position learned\n", "[reach=local? window ${window}]\nbias o\nscale 1\n",
                       PLAIN_FFN, ""),
    .tensors =
        GPT_TABLES
        "buffer h.{layer}.attn.attention.bias h.{layer}.attn.attention.masked_bias\n"
        PROJECTIONS("attn.attention", "q_proj", "k_proj", "v_proj", "out_proj") GPT_END,
};

/* ---------------------------------------- GPTBigCode: matrices are [out][in], one key and value for all heads */
static const ConfigKey gpt_bigcode_keys[] = {
    GPT_SIZES("n_inner"), GPT_POSITIONS("1024"), GPT_EPS, DERIVED("learned", "yes", NULL),
    WORD_OR("activation_function", "activation", "gelu_tanh", ACTIVATIONS),
    FLAG_OR("scale_attn_weights", "scaled", "true"), FLAG_OR("multi_query", "multi_query", "true"), ONE_TO_ONE,
    DERIVED("kv_heads", "1", "multi_query"), DERIVED("key_end", "=d_model + head_dim", NULL),
    DERIVED("value_end", "=key_end + head_dim", NULL),
    DECODER_TOKENS("50256", "50256", ""), WTE_TIED("true"),
};
const Family family_gpt_bigcode = {
    .types = "gpt_bigcode=GPTBigCode", .title = "SantaCoder and StarCoder: Ben Allal et al. 2023, arXiv:2301.03988.",
    .classes = DECODER_CLASSES, KEYS(gpt_bigcode_keys),
    .irrelevant = GPT_IRRELEVANT " attention_softmax_in_fp32 scale_attention_softmax_in_fp32 num_key_value_heads "
        "inference_runner validate_runner_input pre_allocate_kv_cache max_batch_size max_sequence_length "
        "pad_key_length",
    .prefixes = "transformer.",
    .spec = LLAMA_SPEC(GPT_NORM, "position learned\n", "[!scaled? scale 1]\n", PLAIN_FFN, ""),
    .tensors =
        GPT_TABLES
        "buffer h.{layer}.attn.bias h.{layer}.attn.masked_bias\n"
        "$if multi_query\n"
        QKV_ROWS("*", "attn.c_attn.*", "${d_model}", "${key_end}", "${value_end}")
        "$end\n"
        "$if !multi_query\n"
        HEAD_PARTS("attn.c_attn")
        "$end\n"
        ".attention.output.* .attn.c_proj.*\n" GPT_END,
};
