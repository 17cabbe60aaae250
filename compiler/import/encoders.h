/* encoders.h: rows that the tables of several encoders of text share. */
#ifndef ENCODERS_H
#define ENCODERS_H

#include "families.h"

#define SEGMENT_LINE "segments ${segments}\n"
/* `tokens` holds the lines before the line of `pad`, or "", and `first` the lines before the layers. */
#define ENCODER_OF(stack, norm, tokens, first, layers, sublayers)                     \
    "d_model ${d_model}\nvocab ${vocab}\nnorm layernorm " norm " eps ${eps}\n" tokens \
    "[pad? pad ${pad}]\n\n" STACK_OF_LAYERS(stack, layers, first, sublayers)
#define ENCODER_SPEC_IN(stack, mask, tokens, position, segments, embedding, layers, attention, head)    \
    ENCODER_OF(stack, "post", tokens,                                                                   \
               "position learned" position "\n" segments "embedding normalized" embedding "\n", layers, \
               "attention self { heads ${heads}, mask " mask attention " }\n" PLAIN_FFN) head
#define ENCODER_SPEC(position, segments, embedding, layers, attention, head) \
    ENCODER_SPEC_IN("encoder", "padding", "", position, segments, embedding, layers, attention, head)

#define CLASSIFIER(stem) "[task=classify? head pooler classifier ${#" stem ".weight}]\n"
/* `dense` is the pooler's matrix. A file without it (add_pooling_layer=False) gives no output beyond `hidden`. */
#define POOLER(dense) "[task=hidden&#" dense ".weight? head pooler]\n"
#define POOLER_TENSORS(dense) "[task=hidden&#" dense ".weight? pooler.* " dense ".*]\n"
#define BERT_LAYERS_IN(stack)                           \
    "@" stack ".layers.{layer} encoder.layer.{layer}\n" \
    BERT_PROJECTIONS ".attention.norm_out.* .attention.output.LayerNorm.*\n" BERT_FFN
#define BERT_PROJECTIONS PROJECTIONS("attention", "self.query", "self.key", "self.value", "output.dense")
#define BERT_FFN UP_DOWN("intermediate.dense", "output.dense") ".ffn.norm_out.* .output.LayerNorm.*\n"

/* Of the outputs of a text model and an image model. */
#define SCORE_OF(output, more)                                                                                \
    "The output `" output "` is not divided by its length; the score of a text and an image is the cosine of " \
    "their outputs times exp(logit_scale)" more "."

/* ForPreTraining of BERT and ALBERT has two heads: the head of ForMaskedLM, and one that classifies the order of two
 * sentences. */
#define PRETRAINED_KEYS \
    DERIVED("ordered", "yes", "task=pretrained"), DERIVED("task", "masked", "task=pretrained"), \
    NOTED("ordered", "The head for two sentences is left out; the output `logits` is that of masked tokens.")
#define BERT_COMMON BERT_COMMON_EPS("1e-12")
#define BERT_COMMON_EPS(eps)                                                                               \
    WORD_OR("hidden_act", "activation", "gelu", ACTIVATIONS), REAL_OR("layer_norm_eps", "eps", eps, NULL), \
    MUST("position_embedding_type", "absolute null"), DERIVED("learned", "yes", NULL), PRETRAINED_KEYS, CHOICE_NOTE
/* With is_decoder, a row sees no later row, and the first and the last tokens of a text may be named. */
#define MAYBE_DECODER(start_token, end_token)                                                                 \
    FLAG_OR("is_decoder", "decoder", "false"), DERIVED("stack", "encoder", NULL),                             \
    DERIVED("stack", "decoder", "decoder"), DERIVED("mask", "padding", NULL),                                 \
    DERIVED("mask", "causal", "decoder"), TOKEN_OR("bos_token_id", "start", start_token),                     \
    TOKENS_OR("eos_token_id", "end", end_token), DERIVED("start", "", "!decoder"), DERIVED("end", "", "!decoder")
#define MAYBE_DECODER_SPEC(position, segments, embedding, head)                                                   \
    ENCODER_SPEC_IN("${stack}", "${mask}", "[start? start ${start}]\n[end? end ${end}]\n", position, segments, \
                    embedding, "layers", "", head)
#define SEGMENTS INTEGER_OR("type_vocab_size", "segments", "2", NULL)
#define BERT_KEYS                                                                                         \
    TEXT_SIZES, BERT_COMMON, INTEGER_OR("max_position_embeddings", "positions", "512", NULL), SEGMENTS,   \
    TOKEN_OR("pad_token_id", "pad", "0"), MAYBE_DECODER("", ""),                                          \
    MASKED_KEYS("cls.predictions.decoder", "cls.predictions")
#define REST " PreTrainedModel=rest ForMaskedLM=masked ForMultipleChoice=choice"

#define BERT_EMBEDDING_IN(stack, head) \
    BERT_TABLES_IN(stack, head) stack ".embedding.norm.* embeddings.LayerNorm.*\n"
#define BERT_TABLES_IN(stack, head)                                                              \
    TOKEN_TABLE_IN(stack, WORD_TABLE, head ".weight")                                            \
    stack ".embedding.positions.weight embeddings.position_embeddings.weight\n"                  \
    "[segments? " stack ".embedding.segments.weight embeddings.token_type_embeddings.weight]\n"
#define BERT_IGNORED "buffer embeddings.position_ids\n"                                                         \
    "ignore pooler.dense.* cls.* lm_head.* qa_outputs.* classifier.*\n"
/* The heads of BERT's classes, after rows that any stack makes. */
#define NEXT_HEAD "[task=next? head pooler classifier ${#cls.seq_relationship.weight}]\n"
#define BERT_HEAD_TENSORS                                                                                        \
    MASKED_TENSORS("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm",                     \
                   "cls.predictions.decoder", "cls.predictions")                                                 \
    POOLER_TENSORS("pooler.dense") CLASSIFY_TENSORS("pooler.dense", "classifier")                                \
    POOLED_TENSORS("next", "pooler.dense", "cls.seq_relationship") BERT_IGNORED
/* The keys and the heads of RoBERTa and its kin, whose positions begin after the number of the pad token. */
#define ROBERTA_KEYS(eps, segments_or)                                                                           \
    TEXT_SIZES, BERT_COMMON_EPS(eps), {"pad_token_id", "padding_idx", KEY_NATURAL, "1", NULL, NULL},             \
    {"max_position_embeddings", "table", KEY_INTEGER, "512", NULL, NULL},                                        \
    DERIVED("offset", "=padding_idx + 1", NULL), DERIVED("positions", "=table - offset", NULL),                  \
    INTEGER_OR("type_vocab_size", "segments", segments_or, NULL), TOKEN_OR("pad_token_id", "pad", "1"),          \
    MAYBE_DECODER("0", "2"), MASKED_KEYS("lm_head.decoder", "lm_head")
#define ROBERTA_POSITIONS " offset ${offset} skip ${padding_idx}"
#define ROBERTA_HEAD_TENSORS                                                                                     \
    MASKED_TENSORS("lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", "lm_head")                          \
    POOLER_TENSORS("pooler.dense") CLASSIFY_TENSORS("classifier.dense", "classifier.out_proj") BERT_IGNORED

#endif
