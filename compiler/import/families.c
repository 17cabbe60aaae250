/* families.c: the list; each group of families has its file. */
#include "families.h"

const Family *const families[] = {
    &family_bert, &family_roberta, &family_distilbert, &family_electra, &family_albert, &family_mpnet,
        &family_modernbert,
    &family_vit, &family_deit,
    &family_gpt2, &family_gpt_neox, &family_opt, &family_bloom, &family_mpt, &family_falcon,
    &family_llama, &family_mistral, &family_qwen2, &family_qwen3, &family_gemma, &family_gemma2, &family_gemma3,
    &family_olmo2, &family_phi, &family_phi3, &family_starcoder2, &family_cohere, &family_stablelm,
    &family_t5, &family_bart, &family_mbart, &family_marian, &family_pegasus, &family_m2m_100,
    NULL,
};
