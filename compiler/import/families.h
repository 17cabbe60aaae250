/* families.h: declares the table of every family. */
#ifndef FAMILIES_H
#define FAMILIES_H

#include "import.h"

extern const Family family_bert, family_roberta, family_distilbert, family_electra, family_albert, family_mpnet,
    family_modernbert; /* bert.c */
extern const Family family_vit, family_deit, family_dinov2, family_dinov2_with_registers,
    family_dinov3, family_ast; /* vit.c */
extern const Family family_deberta, family_deberta_v2; /* deberta.c */
extern const Family family_llama, family_mistral, family_qwen2, family_qwen3, family_gemma, family_gemma2,
    family_gemma3,
    family_olmo2, family_phi, family_phi3, family_starcoder2, family_cohere,
        family_stablelm;                          /* llama.c */
extern const Family family_gpt2, family_gpt_neox, family_opt, family_bloom, family_mpt,
    family_falcon;                 /* gpt.c */
extern const Family family_t5, family_bart, family_mbart, family_marian, family_pegasus,
    family_m2m_100, family_whisper; /* seq2seq.c */
extern const Family family_granite, family_smollm3, family_olmo3, family_ministral, family_glm4,
    family_glm;                                                                                      /* granite.c */
extern const Family family_t5gemma;                                                                  /* t5gemma.c */
extern const Family family_gptj, family_codegen, family_gpt_neo, family_gpt_bigcode;                 /* gptj.c */
extern const Family family_clip_text, family_clip_vision, family_clip_text_of, family_clip_vision_of,
    family_siglip_text, family_siglip_text_of, family_siglip_vision, family_siglip_vision_of,
    family_roformer;                                                                                 /* clip.c */
extern const Family family_umt5;                                                                     /* seq2seq.c */
extern const Family family_gemma3_text_of;                                                           /* llama.c */
extern const Family family_arcee, family_nemotron, family_seed_oss, family_ernie4_5, family_helium, family_olmo,
    family_cohere2, family_exaone4, family_xglm, family_biogpt;                                      /* variants.c */
extern const Family family_nomic_bert, family_jina_embeddings_v3, family_esm; /* rotary.c */
extern const Family family_deepseek_v2, family_deepseek_v3; /* deepseek.c */
extern const Family family_mixtral, family_qwen2_moe, family_qwen3_moe, family_olmoe, family_granitemoe,
    family_granitemoeshared, family_gpt_oss, family_dbrx;                                            /* mixtures.c */

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
#define CHOICE_TENSORS(pooler) \
    "[task=choice? pooler.* " pooler ".*]\n" \
    "[task=choice? classifier.* classifier.*]\n"

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
