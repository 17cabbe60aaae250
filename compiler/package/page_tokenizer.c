/* page_tokenizer.c: whether the tokenizer of a page reads a file, and the regular expressions of that file in
 * JavaScript. */
#include "../formats/json.h"
#include "page.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 1 << 28 }; /* as the tokenizer of the runtime reads at most */

typedef struct Reading {
    Arena *arena;
    const char *path;
    Text patterns;
    int count;
} Reading;

static _Noreturn void refuse(const Reading *r, const char *what, const char *name) {
    fail_status(EXIT_CANNOT, "%s: the tokenizer of a page does not read %s `%.*s`", r->path, what, CUT(60, name));
}

static const char *text_of(const cJSON *node, const char *name) {
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(node, name));
    return text ? text : "";
}

static void read_pattern(Reading *r, const cJSON *step) {
    const char *regex = text_of(cJSON_GetObjectItemCaseSensitive(step, "pattern"), "Regex");
    if (!*regex) return;
    Text translated = text_new(r->arena);
    const char *why = page_regex(regex, &translated);
    if (why)
        fail_status(EXIT_CANNOT, "%s: the regular expression `%.*s` has no translation for a browser: it has %s",
                    r->path, CUT(80, regex), why);
    text_printf(&r->patterns, "%s\n    ", r->count++ ? "," : "");
    text_quote(&r->patterns, regex, "");
    text_printf(&r->patterns, ": ");
    text_quote(&r->patterns, translated.data, "");
}

static bool is_one(const char *name, const char *const *kinds) {
    for (; *kinds; kinds++)
        if (strcmp(name, *kinds) == 0) return true;
    return false;
}

static void read_steps(Reading *r, const cJSON *node, const char *what, const char *list, const char *const *kinds) {
    if (!node || cJSON_IsNull(node)) return;
    const char *type = text_of(node, "type");
    if (strcmp(type, "Sequence") == 0) {
        const cJSON *step;
        cJSON_ArrayForEach(step, cJSON_GetObjectItemCaseSensitive(node, list)) read_steps(r, step, what, list, kinds);
        return;
    }
    if (!is_one(type, kinds)) refuse(r, what, type);
    read_pattern(r, node);
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* JavaScript keeps the last of two members with the same name. */
static void check_names(const Reading *r, const cJSON *vocab) {
    const size_t count = (size_t)cJSON_GetArraySize(vocab);
    const char **names = arena_array(r->arena, count + 1, sizeof *names);
    size_t n = 0;
    const cJSON *token;
    cJSON_ArrayForEach(token, vocab)
        if (token->string) names[n++] = token->string;
    if (n) qsort(names, n, sizeof *names, compare_names);
    for (size_t i = 1; i < n; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            fail("%s: the token `%.*s` stands there twice", r->path, CUT(60, names[i]));
}

static void check_model(const Reading *r, const cJSON *model) {
    static const char *const kinds[] = {"", "WordPiece", "BPE", "Unigram", "WordLevel", NULL};
    const cJSON *dropout = cJSON_GetObjectItemCaseSensitive(model, "dropout");
    if (!cJSON_IsObject(model)) fail("%s: no `model`; it is no tokenizer.json", r->path);
    if (!is_one(text_of(model, "type"), kinds)) refuse(r, "the model", text_of(model, "type"));
    if (cJSON_IsNumber(dropout) && dropout->valuedouble > 0) refuse(r, "the setting", "dropout");
    check_names(r, cJSON_GetObjectItemCaseSensitive(model, "vocab"));
}

static const char *patterns_of_json(Reading *r, const TokenizerFile *file) {
    static const char *const normalizers[] = {"NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt",
        "ByteLevel", "BertNormalizer", "Strip", "Prepend", "Replace", "Precompiled", NULL};
    static const char *const splitters[] = {"ByteLevel", "Metaspace", "Split", "Whitespace", "WhitespaceSplit",
        "BertPreTokenizer", "Punctuation", "Digits", "CharDelimiterSplit", NULL};
    static const char *const processors[] = {"TemplateProcessing", "BertProcessing", "RobertaProcessing", "ByteLevel",
        NULL};
    static const char *const decoders[] = {"ByteLevel", "WordPiece", "Metaspace", "ByteFallback", "Fuse", "Strip",
        "Replace", "BPEDecoder", NULL};
    JsonTree *tree = tokenizer_tree(r->arena, file);
    const cJSON *root = tree->root;
    check_model(r, cJSON_GetObjectItemCaseSensitive(root, "model"));
    text_printf(&r->patterns, "{");
    read_steps(r, cJSON_GetObjectItemCaseSensitive(root, "normalizer"), "the normalizer", "normalizers", normalizers);
    read_steps(r, cJSON_GetObjectItemCaseSensitive(root, "pre_tokenizer"), "the pre-tokenizer", "pretokenizers",
               splitters);
    read_steps(r, cJSON_GetObjectItemCaseSensitive(root, "post_processor"), "the post-processor", "processors",
               processors);
    read_steps(r, cJSON_GetObjectItemCaseSensitive(root, "decoder"), "the decoder", "decoders", decoders);
    text_printf(&r->patterns, "}");
    json_release(tree);
    return r->patterns.data;
}

/* The pieces of a file of llama2.c, which JavaScript has as texts. Each has a score, a length and its bytes. */
static void check_pieces(const Reading *r, const unsigned char *bytes, size_t size) {
    enum { HEAD = 4, PIECE = 8 };
    uint32_t length;
    for (size_t at = HEAD, id = 0; size >= PIECE && at <= size - PIECE; at += length, id++) {
        memcpy(&length, bytes + at + PIECE / 2, sizeof length);
        at += PIECE;
        if (length > size - at) fail("%s: ends inside token %zu", r->path, id);
        for (size_t i = 0, step; i < length; i += step)
            if (!(step = utf8_bytes(bytes + at + i, length - i)))
                fail_status(EXIT_CANNOT, "%s: the tokenizer of a page does not read token %zu, which is not UTF-8",
                            r->path, id);
    }
}

const char *page_patterns(Arena *arena, const TokenizerFile *file) {
    Reading r = {.arena = arena, .path = file->path, .patterns = text_new(arena)};
    if (strcmp(file->name, "tokenizer.gguf") == 0)
        fail_status(EXIT_CANNOT, "%s: a page does not read the tokenizer of a GGUF file; it reads a tokenizer.json, a "
                    "tokenizer.bin of llama2.c and a vocab.txt", file->path);
    if (strcmp(file->name, "tokenizer.json") == 0) return patterns_of_json(&r, file);
    size_t size;
    const char *text = file_read(arena, file->path, MOST_BYTES, &size);
    if (strcmp(file->name, "tokenizer.bin") == 0) check_pieces(&r, (const unsigned char *)text, size);
    return "{}";
}
