/* encoders.h: rows that the tables of several encoders of text share. */
#ifndef ENCODERS_H
#define ENCODERS_H

#include "families.h"

#define SEGMENT_LINE "segments ${segments}\n"
/* `tokens` is a line with the tokens besides `pad`, or "". */
#define ENCODER_SPEC_IN(stack, mask, tokens, position, segments, embedding, layers, attention, head) \
    "d_model ${d_model}\n"                                                                            \
    "vocab ${vocab}\n"                                                                                \
    "norm layernorm post eps ${eps}\n" tokens                                                         \
    "[pad? pad ${pad}]\n"                                                                             \
    "\n" stack " {\n"                                                                                 \
    "seq <= ${bound}\n"                                                                               \
    "position learned" position "\n" segments                                                         \
    "embedding normalized" embedding "\n"                                                             \
    "$layers " layers "\n"                                                                            \
    "attention self { heads ${heads}, mask " mask attention " }\n"                                    \
    "ffn { d_ff ${d_ff}, activation ${activation} }\n"                                                \
    "$end\n"                                                                                          \
    "}\n" head
#define ENCODER_SPEC(position, segments, embedding, layers, attention, head) \
    ENCODER_SPEC_IN("encoder", "padding", "", position, segments, embedding, layers, attention, head)

#endif
