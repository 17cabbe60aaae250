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

#endif
