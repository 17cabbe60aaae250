/* text_input.h: texts of the command line, which a tokenizer makes inputs of. */
#ifndef TEXT_INPUT_H
#define TEXT_INPUT_H

#include "../project/words.h"
#include "commands.h"

#define HELP_TOKENIZER \
    "  --tokenizer F        tokenizer.json, a vocab.txt, a tokenizer.bin of llama2.c, a GGUF file, a file of\n" \
    "                       SentencePiece (.model, .spm), or a folder with one\n"
#define HELP_TEXTS \
    "  --text T             a text, whose ids by --tokenizer are the input tokens, or source, after the\n" \
    "                       default prompt of the spec; several are a batch\n"
#define HELP_TARGET_TEXT \
    "  --target-text T      the same for the input target: the ids with which a decoder writes the text\n"

/* The options --tokenizer, --text and --target-text. */
typedef struct TextOptions {
    const char *tokenizer; /* NULL: not given */
    ValueNode *texts, *targets;
} TextOptions;

#define TEXT_OPTIONS(o) \
    {"--tokenizer", .text = &(o).tokenizer}, {"--text", .list = &(o).texts}, {"--target-text", .list = &(o).targets}

/* Opens the tokenizer that the options name; NULL where they name none. Texts without one are wrong usage. */
Words *text_words(const Compilation *c, const char *usage, const TextOptions *options, const char *cc);

/* The inputs, and what texts give: the tokens, or the source where the model has an encoder and a decoder, and the
 * target where there are texts for it. Several texts are a batch, whose lengths attention_mask gives. `prompts`: the
 * texts are continued, so that what the tokenizer puts after a text is left out, but not for a source. */
const NamedFile *text_inputs(const Compilation *c, const char *usage, const TextOptions *options, const Words *words,
                             const NamedFile *inputs, bool prompts);

#endif
