/* t5gemma.c: T5Gemma, whose encoder and decoder are stacks of Gemma 2's layers, each with a config of its own. */
#include "decoders.h"

/* The keys of the stack whose config is the object `at`; the names of its variables begin with `p`. */
#define STACK_KEYS(at, p)                                                                                           \
    INTEGER_OR(at "vocab_size", p "vocab", "256000", NULL), INTEGER_OR(at "hidden_size", p "d_model", "2304", NULL), \
    INTEGER_OR(at "intermediate_size", p "d_ff", "9216", NULL),                                                     \
    INTEGER_OR(at "num_hidden_layers", p "layers", "26", NULL),                                                     \
    INTEGER_OR(at "num_attention_heads", p "heads", "8", NULL),                                                     \
    INTEGER_OR(at "num_key_value_heads", p "kv_heads", "4", NULL),                                                  \
    INTEGER_OR(at "head_dim", p "head_dim", "256", NULL), DERIVED(p "width", "=" p "heads * " p "head_dim", NULL),  \
    WORD_OR(at "hidden_activation", p "activation", "gelu_tanh", ACTIVATIONS),                                      \
    INTEGER_OR(at "max_position_embeddings", p "positions", "8192", NULL),                                          \
    REAL_OR(at "rms_norm_eps", p "eps", "1e-6", NULL), FLAG_OR(at "attention_bias", p "attention_bias", "false"),   \
    INTEGER_OR(at "query_pre_attn_scalar", p "scalar", "256", NULL),                                                \
    INTEGER_OR(at "sliding_window", p "window", "4096", ""),                                                        \
    {at "layer_types", p "layer_type", KEY_LAYER_TYPES, "sliding_attention full_attention",                         \
     "sliding_attention full_attention", "sliding_attention full_attention"},                                      \
    POSITIVE_OR(at "attn_logit_softcapping", p "softcap", "50", ""),                                                \
    POSITIVE_OR(at "final_logit_softcapping", p "head_softcap", "30", ""),                                          \
    POSITIVE_OR(at "rope_theta", p "theta", "10000", "10000"),                                                      \
    {at "rope_parameters " at "rope_scaling", p "rope", KEY_ROPE, p "theta", "", NULL}
#define STACK_IRRELEVANT(at) at "is_decoder " at "dropout_rate " at "tie_word_embeddings "

#define STACK_ATTENTION(word, p, more)                    \
    "attention " word " {\n"                              \
    "heads ${" p "heads}\n"                               \
    "[" p "kv_heads!=$" p "heads? kv_heads ${" p "kv_heads}]\n" \
    "[" p "width!=$" p "d_model? head_dim ${" p "head_dim}]\n" \
    "[" p "attention_bias? bias all]\n"                   \
    "scale 1/sqrt(${" p "scalar})\n"                      \
    "[" p "softcap? softcap ${" p "softcap}]\n" more "}\n"
#define STACK_SPEC(stack, own, p, mask, window, more)                                                           \
    stack " {\n" own "vocab ${" p "vocab}\nseq <= ${bound}\nnorm rmsnorm both plus_one eps ${" p "eps}\n"              \
    "embedding scale sqrt(d_model)\n$layers " p "layers\n"                                                      \
    STACK_ATTENTION("self", p, "mask " mask "\n[" p "layer_type=sliding_attention&" window "? window ${" window \
                    "}]\nposition rope ${" p "rope}\n")                                                         \
    more "ffn { d_ff ${" p "d_ff}, activation ${" p "activation} gated }\n$end\n}\n"

#define STACK_PROJECTIONS(name, from)                                                                      \
    "." name ".norm_in.* .pre_" from "_layernorm.*\n." name ".norm_out.* .post_" from "_layernorm.*\n"     \
    "." name ".query.* ." from ".q_proj.*\n." name ".key.* ." from ".k_proj.*\n"                           \
    "." name ".value.* ." from ".v_proj.*\n." name ".output.* ." from ".o_proj.*\n"
#define STACK_TENSORS(stack, more)                                                                      \
    stack ".embedding.tokens.weight " stack ".embed_tokens.weight\n"                                    \
    "@" stack ".layers.{layer} " stack ".layers.{layer}\n" STACK_PROJECTIONS("attention", "self_attn") more \
    ".ffn.norm_in.* .pre_feedforward_layernorm.*\n.ffn.norm_out.* .post_feedforward_layernorm.*\n"      \
    LLAMA_FFN stack ".final_norm.* " stack ".norm.*\n"

#define SHIFTED_NOTE \
    "The target is the first token `start` and the source without its last token, as transformers makes it."

static const ConfigKey t5gemma_keys[] = {
    STACK_KEYS("encoder.", ""), STACK_KEYS("decoder.", "decoder_"),
    INTEGER_OR("decoder.cross_attention_hidden_size", "cross_width", "=d_model", "=d_model"),
    REFUSED("cross_width!=$d_model", "`decoder.cross_attention_hidden_size` is not `encoder.hidden_size`"),
    DERIVED("whole_rope", "yes", NULL),
    /* In the encoder, rows as far away as `sliding_window` are still visible. */
    DERIVED("encoder_window", "=window + 1", "window"),
    FLAG_OR("is_encoder_decoder", "two_stacks", "true"), DERIVED("decoder", "yes", "two_stacks&task!=encoder"),
    DERIVED("both", "yes", "task=logits"), DERIVED("both", "yes", "task=hidden"),
    REFUSED("!two_stacks&both", "`is_encoder_decoder` is false, though the class has an encoder and a decoder"),
    FLAG_OR("tie_word_embeddings", "tied", "true"),
    DERIVED("own_head", "yes", "tied&#lm_head.out_proj.weight<>decoder.embed_tokens.weight"),
    NOTED("task=logits&own_head", "`tie_word_embeddings` is true, but `lm_head.out_proj.weight` of the file holds "
          "other numbers than `decoder.embed_tokens.weight`: it is the head, as in transformers 5."),
    DERIVED("tied", "", "own_head"),
    TOKEN_OR("decoder.bos_token_id", "start", "2"), TOKEN_OR("bos_token_id", "start", "$start"),
    TOKENS_OR("decoder.eos_token_id", "end", "1"), TOKENS_OR("eos_token_id", "end", "$end"),
    TOKEN_OR("decoder.pad_token_id", "pad", "0"), TOKEN_OR("pad_token_id", "pad", "$pad"),
    DERIVED("start", "", "!decoder"), DERIVED("end", "", "!decoder"),
    NOTED("decoder&task=classify", SHIFTED_NOTE), NOTED("decoder&task=labels", SHIFTED_NOTE),
};
const Family family_t5gemma = {
    .types = "t5gemma=T5Gemma", .title = "T5Gemma: Zhang et al. 2025, arXiv:2504.06225.",
    .classes = "ForConditionalGeneration=logits Model=hidden EncoderModel=encoder "
        "ForSequenceClassification=classify ForTokenClassification=labels",
    KEYS(t5gemma_keys),
    .irrelevant = STACK_IRRELEVANT("encoder.") STACK_IRRELEVANT("decoder.")
        "vocab_size dropout_rate classifier_dropout_rate",
    .prefixes = "model.",
    .spec = "d_model ${d_model}\nbias none\n" TOKENS_SPEC STACK_SPEC("encoder", "", "", "padding", "encoder_window", "")
        "$if decoder\n"
        STACK_SPEC("decoder", "[decoder_d_model!=$d_model? d_model ${decoder_d_model}]\n", "decoder_",
                   "causal", "decoder_window",
                   STACK_ATTENTION("cross", "decoder_", "mask padding\nposition none\n"))
        "$end\n"
        "[task=logits? head logits][task=logits&tied? tied]"
        "[task=logits&decoder_head_softcap? softcap ${decoder_head_softcap}]\n"
        "[task=classify? head pool last][task=classify&pad? skip ${pad}]"
        "[task=classify? classifier ${#score.out_proj.weight}]\n"
        "[task=labels? head classifier ${#score.out_proj.weight} rows]\n",
    .tensors = STACK_TENSORS("encoder", "")
        "$if decoder\n" STACK_TENSORS("decoder", STACK_PROJECTIONS("cross_attention", "cross_attn")) "$end\n"
        "[task=logits&!tied? head.weight lm_head.out_proj.weight]\n"
        "[task=classify? classifier.* score.out_proj.*]\n"
        "[task=labels? classifier.* score.out_proj.*]\n"
        "ignore lm_head.*\n",
};
