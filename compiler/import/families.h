/* families.h: declares the table of every family. */
#ifndef FAMILIES_H
#define FAMILIES_H

#include "import.h"

#define FAMILY(name) extern const Family family_##name;
#include "families.def"

/* TEXT_SIZES are the keys of the sizes of a model of text, LAYER_SIZES of any model. LAYER_SIZES_OR gives the values of
 * absent keys. */
#define TEXT_SIZES INTEGER("vocab_size", "vocab"), LAYER_SIZES
#define LAYER_SIZES                                                            \
    INTEGER("hidden_size", "d_model"), INTEGER("num_hidden_layers", "layers"), \
    INTEGER("num_attention_heads", "heads"), INTEGER("intermediate_size", "d_ff")
#define LAYER_SIZES_OR(width, d_ff_or, layers_or, heads_or)                                                        \
    INTEGER_OR("hidden_size", "d_model", width, NULL), INTEGER_OR("num_hidden_layers", "layers", layers_or, NULL), \
    INTEGER_OR("num_attention_heads", "heads", heads_or, NULL), INTEGER_OR("intermediate_size", "d_ff", d_ff_or, NULL)

/* IMAGE_SIZES are the keys of the sizes of an image and of its patches, IMAGE_WORDS the words for them in the spec. */
#define IMAGE_SIZES(patch)                                                                                      \
    {"image_size", "image", KEY_PAIR, "224", NULL, NULL}, {"patch_size", "patch", KEY_PAIR, patch, NULL, NULL}, \
    COVERED_IMAGE
#define IMAGE_WORDS "${image}[image_width? width ${image_width}] patch ${patch}"
/* transformers leaves out the lines and columns of an image that fill no whole patch, and so does the spec. */
#define COVERED_IMAGE                                                                                              \
    DERIVED("covered", "=image / patch * patch", NULL), DERIVED("cut", "yes", "covered!=$image"),                  \
    DERIVED("image", "=covered", NULL), DERIVED("covered", "=image_width / patch * patch", "image_width"),         \
    DERIVED("cut", "yes", "image_width&covered!=$image_width"),                                                    \
    DERIVED("image_width", "=covered", "image_width"),                                                             \
    DERIVED("less", "yes", "image=0"), DERIVED("less", "yes", "image_width=0"),                                    \
    REFUSED("less", "`image_size` is less than `patch_size`"),                                                     \
    NOTED("cut", "`image_size` is no multiple of `patch_size`: a program passes the first lines and "              \
        "columns of the image, as many as the spec's `image` and `width` say.")

/* The spec of an encoder of images, without its head. `more` holds the lines after the norm's line, `input` words after
 * `input patches image`, `position` the lines after the input's line, and `attention` further settings of attention. */
#define IMAGE_SPEC(more, input, position, attention, ffn)  \
    "d_model ${d_model}\n"                                 \
    "norm layernorm pre eps ${eps}\n" more                 \
    "\n"                                                   \
    "encoder {\n"                                          \
    "input patches image " input "\n" position             \
    "$layers layers\n"                                     \
    "attention self { heads ${heads}" attention " }\n" ffn \
    "$end\n"                                               \
    "}\n"
/* A stack of a spec. `first` holds the lines before its layers, and `sublayers` the lines of each layer. */
#define STACK_OF_LAYERS(stack, layers, first, sublayers) \
    stack " {\nseq <= ${bound}\n" first                  \
    "$layers " layers "\n" sublayers "$end\n}\n"
#define PLAIN_FFN "ffn { d_ff ${d_ff}, activation ${activation} }\n"

#define TOKENS_SPEC "[start? start ${start}]\n[end? end ${end}]\n[pad? pad ${pad}]\n\n"

/* The heads of ForTokenClassification (task=labels) and ForQuestionAnswering (task=answers): a matrix of every row, for
 * the scores of its classes, or of the beginning and the end of an answer. */
#define ROW_CLASSES " ForTokenClassification=labels ForQuestionAnswering=answers"
#define ROW_HEADS                                                 \
    "[task=labels? head classifier ${#classifier.weight} rows]\n" \
    "[task=answers? head classifier ${#qa_outputs.weight} rows]\n"
#define ROW_TENSORS                              \
    "[task=labels? classifier.* classifier.*]\n" \
    "[task=answers? classifier.* qa_outputs.*]\n"

/* The head of ForMultipleChoice (task=choice), which gives a choice one score; `pooler` is the matrix before it. */
#define CHOICE_NOTE \
    NOTED("task=choice", "The output `logits` is the score of one choice: a program runs each and compares them.")
#define CHOICE_HEAD(activation) "[task=choice? head pooler" activation " classifier ${#classifier.weight}]\n"
#define CHOICE_TENSORS(pooler) POOLED_TENSORS("choice", pooler, "classifier")
/* The two matrices of a head that classifies a text. */
#define POOLED_TENSORS(task, pooler, classifier) \
    "[task=" task "? pooler.* " pooler ".*]\n"   \
    "[task=" task "? classifier.* " classifier ".*]\n"
#define CLASSIFY_TENSORS(pooler, classifier) POOLED_TENSORS("classify", pooler, classifier)

/* ---------------------------------------- tensors of a layer, by their names in the file */
#define PROJECTIONS_OF(attention, at, query, key, value, output) \
    "." attention ".query.* ." at "." query ".*\n"               \
    "." attention ".key.* ." at "." key ".*\n"                   \
    "." attention ".value.* ." at "." value ".*\n"               \
    "." attention ".output.* ." at "." output ".*\n"
#define PROJECTIONS(at, query, key, value, output) PROJECTIONS_OF("attention", at, query, key, value, output)
/* Of one matrix that holds queries, keys and values. With HEAD_PARTS they alternate head by head. With QKV_ROWS the
 * rows of all queries end at `q`, the rows of the keys at `k` and the rows of the values at `v`; `what` says which
 * tensors, `*` or `weight`. */
#define HEAD_PARTS(from)                                                   \
    ".attention.query.* ." from ".* interleaved ${heads} parts 3 take 0\n" \
    ".attention.key.* ." from ".* interleaved ${heads} parts 3 take 1\n"   \
    ".attention.value.* ." from ".* interleaved ${heads} parts 3 take 2\n"
#define QKV_ROWS(what, from, q, k, v)                       \
    ".attention.query." what " ." from " rows 0.." q "\n"   \
    ".attention.key." what " ." from " rows " q ".." k "\n" \
    ".attention.value." what " ." from " rows " k ".." v "\n"
#define UP_DOWN(up, down)   \
    ".ffn.up.* ." up ".*\n" \
    ".ffn.down.* ." down ".*\n"

/* A head in the file that differs from the table is used as the head, even where the config says that they are tied.
 * `tied` is the variable of that key, and the note stands where `task` holds. */
#define OWN_HEAD(task, head, table)                                                                           \
    DERIVED("own_head", "yes", "tied&#" head "<>" table),                                                     \
    NOTED(task "&own_head", "`tie_word_embeddings` is true, but `" head "` of the file holds "                \
        "other numbers than `" table "`: it is the head, as in transformers 5."),                             \
    DERIVED("tied", "", "own_head")
/* A file may hold a tied table under the head's name alone. */
#define TOKEN_TABLE_IN(stack, table, head)          \
    stack ".embedding.tokens.weight " table "\n" \
    "[tied&!#" table "? " stack ".embedding.tokens.weight " head "]\n"

/* The head of ForMaskedLM (task=masked). Where `tied` is set, the last matrix of the head is the table of tokens. The
 * bias is the bias of the matrix `head`, or the tensor at `bias` where the file has none there. */
#define WORD_TABLE "embeddings.word_embeddings.weight"
#define MASKED_KEYS_IF(condition, head, bias, table)                                                             \
    FLAG_OR("tie_word_embeddings", "tied", "true"),                                                              \
    NOTED("task=masked&!tied" condition "&!#" head ".bias&#" bias ".bias", "The bias of the head is `" bias      \
        ".bias`, as in transformers 4: the file has no `" head ".bias`, for which transformers 5 takes zeros."), \
    OWN_HEAD("task=masked" condition, head ".weight", table)
#define MASKED_KEYS(head, bias) MASKED_KEYS_IF("", head, bias, WORD_TABLE)
#define MASKED_HEAD(activation) \
    "[task=masked? head logits][task=masked&tied? tied][task=masked? bias transform " activation "]\n"
#define MASKED_MATRICES(dense, norm, head)               \
    "[task=masked? transform.* " dense ".*]\n"           \
    "[task=masked? transform_norm.* " norm ".*]\n"       \
    "[task=masked&!tied? head.weight " head ".weight]\n"
#define MASKED_TENSORS(dense, norm, head, bias) MASKED_MATRICES(dense, norm, head) \
    "[task=masked&#" head ".bias? head.bias " head ".bias]\n"                      \
    "[task=masked&!#" head ".bias? head.bias " bias ".bias]\n"

#endif
