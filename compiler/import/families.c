/* families.c: the list of all families, whose tables are in a file for each group. */
#include "families.h"

#include <string.h>

const Family *const families[] = {
    &family_bert, &family_roberta, &family_distilbert, &family_electra, &family_albert, &family_mpnet,
        &family_deberta, &family_deberta_v2, &family_modernbert, &family_nomic_bert,
        &family_jina_embeddings_v3, &family_esm,
        &family_roformer, &family_clip_text, &family_clip_vision,
        &family_clip_text_of, &family_clip_vision_of, &family_siglip_text, &family_siglip_text_of,
        &family_siglip_vision, &family_siglip_vision_of,
    &family_vit, &family_deit, &family_dinov2, &family_dinov2_with_registers, &family_dinov3, &family_ast,
    &family_gpt2, &family_gpt_neox, &family_opt, &family_bloom, &family_mpt, &family_falcon,
    &family_llama, &family_mistral, &family_qwen2, &family_qwen3, &family_gemma, &family_gemma2, &family_gemma3,
    &family_gemma3_text_of,
    &family_olmo2, &family_phi, &family_phi3, &family_starcoder2, &family_cohere, &family_stablelm,
    &family_gptj, &family_codegen, &family_gpt_neo, &family_gpt_bigcode,
    &family_granite, &family_smollm3, &family_olmo3, &family_ministral, &family_glm4, &family_glm,
    &family_arcee, &family_nemotron, &family_seed_oss, &family_ernie4_5, &family_helium, &family_olmo, &family_cohere2,
    &family_exaone4, &family_xglm, &family_biogpt,
    &family_mixtral, &family_qwen2_moe, &family_qwen3_moe, &family_olmoe, &family_granitemoe,
    &family_granitemoeshared, &family_gpt_oss, &family_dbrx,
    &family_deepseek_v2, &family_deepseek_v3,
    &family_t5, &family_umt5, &family_bart, &family_mbart, &family_marian, &family_pegasus, &family_m2m_100,
    &family_t5gemma, &family_whisper,
    NULL,
};

/* Features of common types that the language cannot express. */
#define CAPACITY "an expert takes a bounded number of the rows of a text, and rows beyond it go through none"
#define NO_ATTENTION "its layers are not attention alone"
static const struct {
    const char *types, *reason;
} refusals[] = {
    {"blip", "its decoder of texts reads the rows of an image, and import knows decoders that read a text or sounds"},
    {"blip-2 blip_2", "in some layers alone, learned rows read the rows of an image, and they stand before a text"},
    {"convnext convnextv2 dinov3_convnext", "its layers are convolutions"},
    {"siglip2 siglip2_vision_model", "its images have any number of patches, for which it resizes its positions"},
    {"llama4 llama4_text", "its masks are cut in chunks, the queries of layers without rope grow with their position, "
                           "and its gates multiply the rows before the experts"},
    {"qwen3_next", "its layers are a linear attention, whose state is a matrix, or an attention whose heads are "
                   "multiplied by a gate of each column"},
    {"phimoe", "the gates of its router are softmaxes over the experts whose logits are near that of the chosen one"},
    {"switch_transformers nllb-moe", CAPACITY},
    {"mamba mamba2 falcon_mamba rwkv recurrent_gemma bamba zamba zamba2 falcon_h1 lfm2 jamba "
     "granitemoehybrid", NO_ATTENTION},
    {"gemma3n gemma3n_text", "its layers keep several streams of rows, add rows of a table of their own, and read the "
                             "keys and values of earlier layers"},
    {"longformer big_bird led", "its attention is over blocks and chosen rows"},
    {"xlnet", "its attention has two streams"},
    {"swin swinv2", "its attention is in shifted windows of the image, and its rows become fewer from stage to stage"},
    {"funnel", "its sequences become shorter from block to block"},
    {"wav2vec2 hubert", "its convolutions read the samples of sound, and have norms between them"},
};

const Family *family_find(Arena *arena, const Family *const *list, const char *type) {
    while (*list && !word_find(arena, (*list)->types, type)) list++;
    return *list;
}

const char *family_refusal(const char *type) {
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const char *types = refusals[i].types;
        size_t size;
        for (const char *word; (word = next_word(&types, &size));)
            if (size == strlen(type) && memcmp(word, type, size) == 0) return refusals[i].reason;
    }
    return NULL;
}
