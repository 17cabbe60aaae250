/* families.c: the list of all families, whose tables are in a file for each group. */
#include "families.h"

#include <string.h>

const Family *const families[] = {
#define FAMILY(name) &family_##name,
#include "families.def"
    NULL,
};

/* Features of common types that the language cannot express. */
#define NO_ATTENTION "its layers are not attention alone"
static const struct {
    const char *types, *reason;
} refusals[] = {
    {"blip", "its decoder of texts reads the rows of an image, and import knows decoders that read a text or sounds"},
    {"blip-2 blip_2", "in some layers alone, learned rows read the rows of an image, and they stand before a text"},
    {"convnext convnextv2 dinov3_convnext", "its layers are convolutions"},
    {"siglip2_vision_model", "its images have any number of patches, for which it resizes its positions"},
    {"llama4 llama4_text", "its masks are cut in chunks, the queries of layers without rope grow with their position, "
                           "and its gates multiply the rows before the experts"},
    {"qwen3_next", "its layers are a linear attention, whose state is a matrix, or an attention whose heads are "
                   "multiplied by a gate of each column"},
    {"phimoe", "the gates of its router are softmaxes over the experts whose logits are near that of the chosen one"},
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
