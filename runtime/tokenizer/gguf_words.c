/* gguf_words.c: how byte-level pairs cut a text into words, by the name that 'tokenizer.ggml.pre' gives. The names are
 * those of ggml-org/llama.cpp, src/llama-vocab.cpp, and the regular expressions those of the tokenizer.json that a name
 * stands for; llama.cpp matches some of them in a simpler form. */
#include <string.h>

#include "attn_tokenizer_internal.h"

#define ENDING "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define LETTERS "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
#define SPACES "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define SIGNS " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
#define LLAMA3 ENDING "|" LETTERS "|\\p{N}{1,3}|" SIGNS "|" SPACES
#define QWEN2 ENDING "|" LETTERS "|\\p{N}|" SIGNS "|" SPACES
#define QWEN35 ENDING "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" SPACES
#define BLOOM " ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+"

/* Words that begin with capitals, or that end with small letters, and what may follow them. */
#define CAPITALS "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define SMALL "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED(ending) \
    "[^\\r\\n\\p{L}\\p{N}]?" CAPITALS "*" SMALL "+" ending "|[^\\r\\n\\p{L}\\p{N}]?" CAPITALS "+" SMALL "*" ending
#define PATHS " ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*"

/* Letters of alphabets with capitals, and signs of ASCII, of its wide twins and of East Asia. */
#define DEEPSEEK_LETTERS                                                                                              \
    "A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-\u0373"         \
    "\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f"    \
    "\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77"        \
    "\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-"         \
    "\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec"         \
    "\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-"    \
    "\u2134\u2139\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3"     \
    "\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17"        \
    "\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb\U00010c80-"            \
    "\U00010cb2\U00010cc0-\U00010cf2\U000118a0-\U000118df\U0001e900-\U0001e943"
#define DEEPSEEK_SIGNS "!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002"
#define ASIAN "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
#define CJK "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
#define DEEPSEEK3                                                                                               \
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"        \
    " ?[\\p{P}\\p{S}]+[\\r\\n]*|" SPACES

static const ByteWords all[] = {
    {"gpt-2 phi-2 jina-es jina-de jina-v2-es jina-v2-de jina-v1-en jina-v2-code roberta-bpe gigachat a.x-4.0 mellum "
     "exaone4 jais trillion granite-docling", {attn_gpt2_words}, false, false, false},
    {"mpt olmo modern-bert", {attn_gpt2_words}, true, false, false},
    {"default", {"[\\p{P}$+<=>^~|]+", attn_gpt2_words, "\\p{N}+", "[0-9][0-9][0-9]"}, false, false, false},
    {"llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano", {LLAMA3}, false, true, true},
    {"glm4 glm5", {LLAMA3}, false, true, false},
    {"dbrx smaug-bpe chatglm-bpe", {LLAMA3}, false, false, false},
    {"qwen2 deepseek-r1-qwen kormo f2llmv2 megrez", {QWEN2}, true, false, false},
    {"stablelm2 hunyuan solar-open grok-2", {QWEN2}, false, false, false},
    {"qwen35", {QWEN35}, true, false, false},
    {"starcoder refact smollm codeshell exaone minerva-7b mellum2", {"\\p{N}", attn_gpt2_words}, false, false, false},
    {"command-r", {"\\p{N}", attn_gpt2_words}, true, false, false},
    {"falcon", {"[\\p{P}$+<=>^~|`]+", attn_gpt2_words, "[0-9][0-9][0-9]"}, false, false, false},
    {"deepseek-llm",
     {"[\\r\\n]", "\\s?[" DEEPSEEK_LETTERS "]+", "\\s?[" DEEPSEEK_SIGNS "]+", "\\s+\\z", ASIAN, "\\p{N}"},
     false, false, false},
    {"deepseek-coder", {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", ASIAN, "\\p{N}"}, false, false, false},
    {"deepseek-v3 hunyuan-dense joyai-llm hy_v4", {"\\p{N}{1,3}", CJK, DEEPSEEK3}, false, false, false},
    {"tekken", {CASED("") "|\\p{N}|" PATHS "|" SPACES}, false, true, true},
    {"gpt-4o llama4 kanana2 talkie minimax-m2", {CASED(ENDING "?") "|\\p{N}{1,3}|" PATHS "|" SPACES}, false, false,
     false},
    {"poro-chat bloom gpt3-finnish", {BLOOM}, false, false, false},
    {"viking", {BLOOM, "\\p{N}"}, false, false, false},
};

const ByteWords *attn_find_byte_words(const char *name, size_t size) {
    for (size_t i = 0; size && i < sizeof all / sizeof *all; i++) {
        for (const char *word = all[i].names; *word;) {
            const size_t length = strcspn(word, " ");
            if (length == size && memcmp(word, name, size) == 0) return &all[i];
            word += length + (word[length] == ' ');
        }
    }
    return NULL;
}
