/* encoders.h: rows that the tables of several encoders of text share. */
#ifndef ENCODERS_H
#define ENCODERS_H

#include "families.h"

#define SEGMENT_LINE "segments ${segments}\n"
#define ENCODER_SPEC(position, segments, embedding, layers, attention, head) \
    "d_model ${d_model}\n"                                                   \
    "vocab ${vocab}\n"                                                       \
    "norm layernorm post eps ${eps}\n"                                       \
    "[pad? pad ${pad}]\n"                                                    \
    "\n"                                                                     \
    "encoder {\n"                                                            \
    "seq <= ${bound}\n"                                                      \
    "position learned" position "\n" segments                                \
    "embedding normalized" embedding "\n"                                    \
    "$layers " layers "\n"                                                   \
    "attention self { heads ${heads}, mask padding" attention " }\n"         \
    "ffn { d_ff ${d_ff}, activation ${activation} }\n"                       \
    "$end\n"                                                                 \
    "}\n"                                                                    \
    head

#endif
