/* t5.h: the spec of T5, which is the same for a folder and for a GGUF file. */
#ifndef T5_H
#define T5_H

#include "families.h"

#define T5_SELF(mask, table)                                                                                   \
    "attention self {\nheads ${heads}\nhead_dim ${head_dim}\nmask " mask "\nscale 1\nposition relative" table \
        " buckets ${buckets} distance ${distance}\n}\n"
#define T5_FFN                                                  \
    "ffn { d_ff ${d_ff}, activation ${activation}[gated? gated] }\n"

/* `table` is `per_layer` or empty, `head` holds the lines after the line of the logits, and the others are the lines of
 * the stacks' feed-forwards. */
#define T5_SPEC(table, head) T5_SPEC_OF(table, head, T5_FFN, T5_FFN)
#define T5_SPEC_OF(table, head, encoder_ffn, decoder_ffn)                                                             \
    "d_model ${d_model}\n"                                                                                            \
    "vocab ${vocab}\n"                                                                                                \
    "norm rmsnorm pre eps ${eps}\n"                                                                                   \
    "bias none\n"                                                                                                     \
    "[decoder&!apart? embedding tied]\n"                                                                              \
    "$if decoder\n" TOKENS_SPEC "$end\n"                                                                              \
    STACK_OF_LAYERS("encoder", "layers", "", T5_SELF("padding", table) encoder_ffn)                                   \
    "$if decoder\n"                                                                                                   \
    STACK_OF_LAYERS("decoder", "decoder_layers", "", T5_SELF("causal", table)                                         \
                    "attention cross {\nheads ${heads}\nhead_dim ${head_dim}\nmask padding\nscale 1\n}\n" decoder_ffn)\
    "$end\n"                                                                                                          \
    "[task=logits? head logits][task=logits&scaled? scale 1/sqrt(d_model)]\n" head

#endif
