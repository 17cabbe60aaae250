/* decoders.h: rows that the tables of several decoders share. */
#ifndef DECODERS_H
#define DECODERS_H

#include "families.h"

#define DECODER_CLASSES \
    "ForCausalLM=logits Model=hidden ForSequenceClassification=classify" ROW_CLASSES

/* Of families whose ForQuestionAnswering calls its decoder `transformer` instead of `model`. */
#define MODEL_PREFIXES "model. transformer."

#define DECODER_TOKENS(start, end, pad)                                        \
    TOKEN_OR("bos_token_id", "start", start),                                  \
    TOKENS_OR("eos_token_id", "end", end), TOKEN_OR("pad_token_id", "pad", pad)
#define TIED_TO(otherwise, head, table)                                                       \
    FLAG_OR("tie_word_embeddings", "tied", otherwise), MUST("is_encoder_decoder", "false"), \
    OWN_HEAD("task=logits", head, table)
#define TIED(otherwise) TIED_TO(otherwise, "lm_head.weight", "embed_tokens.weight")
#define TOKEN_TABLE(table, head) TOKEN_TABLE_IN("decoder", table, head)

/* `words` are options of `head logits`; a score that needs one cannot be said, and the spec is refused for it. */
#define HEAD_SPEC(words)                                                          \
    "[task=logits? head logits][task=logits&tied? tied][task=logits?" words "]\n" \
    "[task=classify? head pool last][task=classify&pad? skip ${pad}]"             \
    "[task=classify? classifier ${#score.weight} no_bias]\n"                     \
    "[task=score? head pool last classifier ${answers} no_bias][task=score?" words "]\n" \
    DECODER_ROW_HEADS
/* Some decoders call the matrix of ForTokenClassification `score`, as that of a sequence, and others `classifier`. */
#define DECODER_ROW_HEADS                                                                                  \
    "[task=labels&#score.weight? head classifier ${#score.weight} rows][task=labels&#score.weight&!#score.bias? " \
        "no_bias]\n"                                                                                       \
    "[task=labels&!#score.weight? head classifier ${#classifier.weight} rows]\n"                           \
    "[task=answers? head classifier ${#qa_outputs.weight} rows]\n"
#define DECODER_ROW_TENSORS                                       \
    "[task=labels&#score.weight? classifier.* score.*]\n"         \
    "[task=labels&!#score.weight? classifier.* classifier.*]\n"   \
    "[task=answers? classifier.* qa_outputs.*]\n"
#define HEAD_TENSORS                                         \
    "[task=logits&!tied? head.weight lm_head.weight]\n"      \
    "[task=classify? classifier.weight score.weight]\n"      \
    "[task=score&!tied? classifier.weight lm_head.weight rows ${answer_rows}]\n"                              \
    "[task=score&tied&#embed_tokens.weight? classifier.weight embed_tokens.weight rows ${answer_rows}]\n"     \
    "[task=score&tied&!#embed_tokens.weight? classifier.weight lm_head.weight rows ${answer_rows}]\n"         \
    DECODER_ROW_TENSORS                                      \
    "ignore lm_head.* score.* qa_outputs.* classifier.*\n"

/* Sizes, attention and tensor names of LLaMA and similar decoders. */
#define LLAMA_SIZES(activation) DECODER_SIZES, WORD_OR("hidden_act", "activation", activation, ACTIVATIONS)
#define DECODER_SIZES                                                                                        \
    INTEGER("vocab_size", "vocab"), INTEGER("hidden_size", "d_model"), INTEGER("intermediate_size", "d_ff"), \
    INTEGER("num_hidden_layers", "layers"), INTEGER("num_attention_heads", "heads")
#define KV_HEADS_OR(otherwise) INTEGER_OR("num_key_value_heads", "kv_heads", otherwise, "=heads")
#define KV_HEADS KV_HEADS_OR("=heads")
/* The heads share the columns of d_model. */
#define SHARED_WIDTH DERIVED("head_dim", "=d_model / heads", NULL), DERIVED("width", "=d_model", NULL)
#define HEAD_DIM(otherwise) \
    INTEGER_OR("head_dim", "head_dim", otherwise, "=d_model / heads"), DERIVED("width", "=heads * head_dim", NULL)
#define LLAMA_KIN(kv, dim) LLAMA_SIZES("silu"), KV_HEADS_OR(kv), HEAD_DIM(dim)
#define POSITIONS(otherwise) INTEGER_OR("max_position_embeddings", "positions", otherwise, NULL)
#define SCALED_ROPE(theta, part, scaling)                                                                          \
    POSITIVE_OR("rope_theta", "theta", theta, theta), POSITIVE_OR("partial_rotary_factor", "partial", part, part), \
    ROPE_OR("rope_parameters rope_scaling", "rope", "theta", scaling, NULL)
#define ONE_ROPE(theta, part) SCALED_ROPE(theta, part, "")
/* For a family that rotates whole heads and ignores partial_rotary_factor. */
#define WHOLE_ROPE(theta) DERIVED("whole_rope", "yes", NULL), ONE_ROPE(theta, "1")
/* For a family that rotates an even number of columns where the share of head_dim is an odd number of them. */
#define EVEN_ROPE DERIVED("even_rope", "yes", NULL)
/* The names of a member of the object of rope. */
#define IN_ROPE(member) "rope_parameters." member " rope_scaling." member
#define RMS_EPS(eps) REAL_OR("rms_norm_eps", "eps", eps, NULL)
/* Granite's factors on the embedding, the scores (in place of 1/sqrt(head_dim)), the sums and the logits. */
#define GRANITE_FACTORS                                                                                           \
    REAL_OR("embedding_multiplier", "embedding_scale", "1", NULL),                                                \
    REAL_OR("attention_multiplier", "score_scale", "1", NULL),                                                    \
    REAL_OR("residual_multiplier", "residual_scale", "1", NULL), REAL_OR("logits_scaling", "divisor", "1", NULL), \
    REFUSED("divisor=0", "`logits_scaling` is 0, and the logits are divided by it")
/* A bound on the numbers of queries, keys and values, for which the spec has the line CLIPPED. */
#define CLIP_QKV(name)                \
    REAL_OR(name, "clip", "", ""),    \
    REFUSED("clip=0", "`" name "` is 0: queries, keys and values would be zeros, and in a spec `clip 0` is no bound")
#define CLIPPED "[clip? clip ${clip}]\n"
#define ATTENTION_BIAS FLAG_OR("attention_bias", "attention_bias", "false")
#define FFN_BIAS FLAG_OR("mlp_bias", "ffn_bias", "false")
#define TYPES "sliding_attention full_attention"

/* The attention of a layer; `more` holds further settings, one per line. */
#define LLAMA_ATTENTION(mask, more)              \
    "attention self {\n"                         \
    "heads ${heads}\n"                           \
    "[kv_heads!=$heads? kv_heads ${kv_heads}]\n" \
    "[width!=$d_model? head_dim ${head_dim}]\n"  \
    "mask " mask "\n" more                       \
    "}\n"
#define GATED_FFN "ffn { d_ff ${d_ff}, activation ${activation} gated }\n"
#define GATED_BIASED_FFN "ffn { d_ff ${d_ff}, activation ${activation} gated[!ffn_bias?, bias none] }\n"
#define LLAMA_SPEC_IN(stack, mask, norm, embedding, more, ffn, head) \
    DECODER_SPEC(stack, norm, embedding, LLAMA_ATTENTION(mask, more) ffn, head)
#define DECODER_SPEC(stack, norm, embedding, sublayers, head) \
    "d_model ${d_model}\nvocab ${vocab}\n" norm TOKENS_SPEC   \
    STACK_OF_LAYERS(stack, "layers", embedding, sublayers) HEAD_SPEC(head)
#define LLAMA_SPEC(norm, embedding, more, ffn, head) \
    LLAMA_SPEC_IN("decoder", "causal", norm, embedding, more, ffn, head)

/* Latent attention in the spec, where the lines `position` follow the line of the mask; and its tensors by their names
 * in the file, which are the latent query, its norm and its matrix, the query without a latent, and the latent and its
 * norm. A head of a query has [unrotated, rotated] columns. */
#define LATENT_ATTENTION(position)                                                                             \
    "attention self {\nheads ${heads}\nhead_dim ${head_dim}\n[value_dim!=$head_dim? value_dim ${value_dim}]\n" \
    "latent ${latent} rope ${rope_dim}[latent_query? query ${latent_query}]\nmask causal\n"                    \
    "[mscale? scale ${mscale}/sqrt(${key_dim})]\nposition rope" position "\n}\n"
#define HEADS_OF(parts, part) " interleaved ${heads} parts ${" parts "} take " part "\n"
#define LATENT_QUERY(from)                                                 \
    ".attention.query.* ." from ".*" HEADS_OF("key_dim", "0..${head_dim}") \
    ".attention.query_rope.* ." from ".*" HEADS_OF("key_dim", "${head_dim}..${key_dim}")
#define LATENT_TENSORS(query_latent, query_norm, latent_query, query, latent, latent_norm)               \
    "$if latent_query\n"                                                                                 \
    ".attention.query_latent.* ." query_latent ".*\n.attention.query_latent_norm.* ." query_norm ".*\n"  \
    LATENT_QUERY(latent_query) "$end\n$if !latent_query\n" LATENT_QUERY(query) "$end\n"                  \
    ".attention.latent.* ." latent ".* rows 0..${latent}\n.attention.latent_norm.* ." latent_norm ".*\n" \
    ".attention.key_rope.* ." latent ".* rows ${latent}..${compressed}\n"
/* A head of this matrix is [key, value]. */
#define LATENT_KEY_VALUE(from)                                                      \
    ".attention.key.* ." from ".* transpose" HEADS_OF("both_dim", "0..${head_dim}") \
    ".attention.value.* ." from ".*" HEADS_OF("both_dim", "${head_dim}..${both_dim}")

#define LLAMA_EMBEDDING_IN(stack) \
    TOKEN_TABLE_IN(stack, "embed_tokens.weight", "lm_head.weight") "@" stack ".layers.{layer} layers.{layer}\n"
#define LLAMA_EMBEDDING LLAMA_EMBEDDING_IN("decoder")
#define LLAMA_PROJECTIONS PROJECTIONS("self_attn", "q_proj", "k_proj", "v_proj", "o_proj")
#define QK_NORMS ".attention.query_norm.* .self_attn.q_norm.*\n.attention.key_norm.* .self_attn.k_norm.*\n"
#define LLAMA_NORMS                             \
    ".attention.norm_in.* .input_layernorm.*\n" \
    ".ffn.norm_in.* .post_attention_layernorm.*\n"
#define NORMS_BEHIND                                      \
    ".attention.norm_out.* .post_attention_layernorm.*\n" \
    ".ffn.norm_out.* .post_feedforward_layernorm.*\n"
#define LLAMA_FFN ".ffn.gate.* .mlp.gate_proj.*\n" LLAMA_PLAIN_FFN
#define LLAMA_PLAIN_FFN UP_DOWN("mlp.up_proj", "mlp.down_proj")
/* Gate and up lie together. */
#define LLAMA_JOINED_FFN                                                    \
    ".ffn.gate.weight .mlp.gate_up_proj.weight rows 0..${d_ff}\n"           \
    ".ffn.up.weight .mlp.gate_up_proj.weight rows ${d_ff}..${d_ff_twice}\n" \
    ".ffn.down.* .mlp.down_proj.*\n"
/* Refuses layers of type sliding_attention, of which `what` tells, without a window. */
#define NEEDS_WINDOW(what) \
    REFUSED("any_sliding_attention&!window", what ", which needs a number as `sliding_window`")
#define SOME_LAYERS_SLIDE "some layers are of the type sliding_attention"
#define LAYER_TYPES_SLIDE "`layer_types` has sliding_attention"
/* In a folder, each matrix of each expert is a tensor. */
#define LISTED_EXPERTS(place, gate, up, down)                      \
    ".ffn.experts.gate.* ." place ".experts.{expert}." gate ".*\n" \
    ".ffn.experts.up.* ." place ".experts.{expert}." up ".*\n"     \
    ".ffn.experts.down.* ." place ".experts.{expert}." down ".*\n"
#define SHARED_EXPERT(place)                      \
    ".ffn.shared.gate.* ." place ".gate_proj.*\n" \
    ".ffn.shared.up.* ." place ".up_proj.*\n"     \
    ".ffn.shared.down.* ." place ".down_proj.*\n"
/* ---------------------------------------- experts */
/* Keys of training alone. */
#define ROUTER_TRAINING "output_router_logits router_aux_loss_coef router_jitter_noise "

/* An ffn of experts; `words` are the words of the router, and `more` further settings. */
#define EXPERTS_FFN(words, more)                                                          \
    "ffn {\nd_ff ${expert_ff}, activation ${activation} gated\nexperts ${experts}, top ${top}\n" \
    "router " words "\n" more "}\n"
#define RENORMALIZED "softmax[renormalized? renormalized]"
#define EXPERT_TENSORS(place, gate, up, down) ".ffn.router.* ." place ".gate.*\n" LISTED_EXPERTS(place, gate, up, down)
#define DEEPSEEK_GROUPS "[groups!=1? groups ${groups} top_groups ${top_groups}]"

#define LLAMA_END_IN(stack)                                \
    stack ".final_norm.* norm.*\n"                         \
    "buffer layers.{layer}.self_attn.rotary_emb.inv_freq\n" HEAD_TENSORS
#define LLAMA_END LLAMA_END_IN("decoder")

#endif
