/* tokenizer_config.c: notes the places where tokenizer_config.json contradicts tokenizer.json. Programs read
 * tokenizer.json alone. AutoTokenizer of transformers 5 adds the special tokens that tokenizer_config.json names, and
 * most classes of tokenizers build their steps from the settings in tokenizer_config.json. */
#include "../formats/json.h"
#include "../formats/tensor_file.h"
#include "import.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    Import *import;
    const cJSON *tokenizer, *config; /* the objects of tokenizer.json and tokenizer_config.json */
} Both;

enum { UNSTATED = -1 };

static bool is_type(const cJSON *step, const char *type) {
    const char *own = cJSON_GetStringValue(json_member(step, "type"));
    return own && strcmp(own, type) == 0;
}

const cJSON *tokenizer_step(const cJSON *tokenizer, const char *part, const char *type) {
    const cJSON *step = json_member(tokenizer, part), *list = json_member(step, "normalizers"), *inner;
    if (is_type(step, type)) return step;
    if (!is_type(step, "Sequence")) return NULL;
    if (!list) list = json_member(step, "pretokenizers");
    cJSON_ArrayForEach(inner, list)
        if (is_type(inner, type)) return inner;
    return NULL;
}

static int flag(const cJSON *object, const char *name, int otherwise) {
    const cJSON *item = json_member(object, name);
    return cJSON_IsBool(item) ? cJSON_IsTrue(item) : otherwise;
}

/* Whether the class of the tokenizer is among `names`, which lack the endings `Tokenizer` and `TokenizerFast`; returns
 * `otherwise` if the file names no class. */
static bool class_is_among(const Both *both, const char *names, bool otherwise) {
    const char *name = cJSON_GetStringValue(json_member(both->config, "tokenizer_class"));
    if (!name) return otherwise;
    size_t size = strlen(name) - (text_ends(name, "Fast") ? strlen("Fast") : 0);
    const size_t tail = strlen("Tokenizer");
    if (size >= tail && memcmp(name + size - tail, "Tokenizer", tail) == 0) size -= tail;
    return word_find(both->import->arena, names, arena_copy(both->import->arena, name, size));
}

/* ---------------------------------------------------------------- settings */

/* Notes a setting that contradicts what tokenizer.json does, which `does` puts in words. */
static void compare(const Both *both, const char *key, int wanted, bool actual, const char *does) {
    if (wanted == UNSTATED || wanted == (int)actual) return;
    const char *how = json_member(both->config, key) ? "" : " by default";
    import_note(both->import, "`%s` of tokenizer_config.json is %s%s, and tokenizer.json %s: programs obey "
                "tokenizer.json.", key, wanted ? "true" : "false", how, does);
}

/* Compares the settings of a BertNormalizer. If the setting of accents is null, accents go where capitals go. */
static void compare_bert(const Both *both, const cJSON *step) {
    if (!class_is_among(both, "Bert DistilBert Electra MPNet RoFormer LayoutLM MobileBert", true)) return;
    const int lower = flag(both->config, "do_lower_case", true), own_lower = flag(step, "lowercase", true);
    const int accents = flag(both->config, "strip_accents", UNSTATED), own = flag(step, "strip_accents", UNSTATED);
    const int wanted = accents == UNSTATED ? lower : accents, actual = own == UNSTATED ? own_lower : own;
    compare(both, "do_lower_case", lower, own_lower, own_lower ? "lowers letters" : "keeps capitals");
    if (accents != UNSTATED || own != UNSTATED)
        compare(both, "strip_accents", wanted, actual, actual ? "removes accents" : "keeps accents");
    const int chinese = flag(step, "handle_chinese_chars", true);
    compare(both, "tokenize_chinese_chars", flag(both->config, "tokenize_chinese_chars", true), chinese,
            chinese ? "separates Chinese characters" : "does not separate Chinese characters");
}

static void compare_letters(const Both *both) {
    const cJSON *bert = tokenizer_step(both->tokenizer, "normalizer", "BertNormalizer");
    if (bert) {
        compare_bert(both, bert);
        return;
    }
    const bool lowers = tokenizer_step(both->tokenizer, "normalizer", "Lowercase");
    const bool strips = tokenizer_step(both->tokenizer, "normalizer", "StripAccents");
    if (class_is_among(both, "Albert DebertaV2", false))
        compare(both, "do_lower_case", flag(both->config, "do_lower_case", UNSTATED), lowers,
                lowers ? "lowers letters" : "keeps capitals");
    if (class_is_among(both, "Albert", false))
        compare(both, "keep_accents", flag(both->config, "keep_accents", UNSTATED), !strips,
                strips ? "removes accents" : "keeps accents");
}

/* Compares the space before the first word of a text, which SentencePiece may add after special tokens, too. */
static void compare_space(const Both *both) {
    static const char prefixing[] = "Albert Bart Camembert CodeGen CodeLlama Cohere Deberta DebertaV2 GPT2 GPTNeoX "
                                    "Llama Qwen2 Roberta Whisper XGLM XLMRoberta";
    const cJSON *bytes = tokenizer_step(both->tokenizer, "pre_tokenizer", "ByteLevel");
    const cJSON *pieces = tokenizer_step(both->tokenizer, "pre_tokenizer", "Metaspace");
    const char *scheme = cJSON_GetStringValue(json_member(pieces, "prepend_scheme"));
    const bool prepends = tokenizer_step(both->tokenizer, "normalizer", "Prepend");
    if (!bytes && !scheme && !prepends) return;
    const bool never = bytes ? !flag(bytes, "add_prefix_space", true) : scheme && strcmp(scheme, "never") == 0;
    const bool always = prepends || (scheme && strcmp(scheme, "always") == 0);
    const int prefix = flag(both->config, "add_prefix_space", UNSTATED);
    if (class_is_among(both, prefixing, true))
        compare(both, "add_prefix_space", prefix, !never,
                never ? "adds no space" : "adds a space before the first word");
    if (class_is_among(both, "Llama", false) && !bytes && !never && prefix != false)
        compare(both, "legacy", flag(both->config, "legacy", false), always,
                always ? "adds a space after special tokens, too" : "adds no space after special tokens");
}

/* ---------------------------------------------------------------- tokens */

enum { SHOWN = 3, MOST = 40 }; /* tokens of a note, and bytes of a token */

typedef struct {
    const char **known; /* the added tokens of tokenizer.json, sorted */
    size_t n_known, n_others;
    Text others; /* a few tokens that tokenizer.json lacks, with their keys */
} Names;

/* The text of a token, which is a string or an object. */
static const char *content(const cJSON *token) {
    return cJSON_GetStringValue(cJSON_IsObject(token) ? json_member(token, "content") : token);
}

static void look_up(Names *names, const char *key, const cJSON *token) {
    const char *text = content(token);
    if (!text || !*text || bsearch(&text, names->known, names->n_known, sizeof text, by_text)) return;
    if (names->n_others++ < SHOWN)
        text_printf(&names->others, "%s`%.*s` (`%.*s`)", names->others.size ? ", " : "", CUT(MOST, text),
                    CUT(MOST, key));
}

static void look_up_all(Names *names, const cJSON *config) {
    const cJSON *item, *token;
    cJSON_ArrayForEach(item, config) {
        const char *key = item->string;
        const bool several = strcmp(key, "additional_special_tokens") == 0 || strcmp(key, "extra_special_tokens") == 0
                             || strcmp(key, "added_tokens_decoder") == 0;
        if (several) cJSON_ArrayForEach(token, item) look_up(names, key, token);
        else if (text_ends(key, "_token")) look_up(names, key, item);
    }
}

static void compare_tokens(const Both *both) {
    const cJSON *added = json_member(both->tokenizer, "added_tokens"), *token;
    Names names = {.others = text_new(both->import->arena)};
    names.known = arena_array(both->import->arena, json_count(added) + 1, sizeof *names.known);
    cJSON_ArrayForEach(token, added)
        if (content(token)) names.known[names.n_known++] = content(token);
    qsort(names.known, names.n_known, sizeof *names.known, by_text);
    look_up_all(&names, both->config);
    if (!names.n_others) return;
    const char *more =
        names.n_others > SHOWN ? arena_printf(both->import->arena, " and %zu more", names.n_others - SHOWN) : "";
    import_note(both->import, "tokenizer_config.json names %s%s, which tokenizer.json does not hold among its added "
                "tokens: programs read such words in a text as any other.", names.others.data, more);
}

void tokenizer_config_notes(Import *import, const cJSON *tokenizer, const cJSON *config) {
    const Both both = {import, tokenizer, config};
    compare_tokens(&both);
    if (flag(config, "split_special_tokens", false))
        import_note(import, "`split_special_tokens` of tokenizer_config.json is not obeyed: a special token in a text "
                    "is one token.");
    compare_letters(&both);
    compare_space(&both);
}
