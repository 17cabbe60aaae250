/* json.c: reads a tokenizer.json of Hugging Face `tokenizers`. The names are that library's; what this tokenizer does
 * not know, or what would change ids and is not done here, is refused. json_model.c reads the model itself. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

/* ------------------------------------------------------------------------------------- values */

const cJSON *member(const cJSON *node, const char *name) {
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(node, name);
    return cJSON_IsNull(found) ? NULL : found;
}

const char *text_of(const cJSON *node, const char *name) {
    const cJSON *found = member(node, name);
    return cJSON_IsString(found) ? found->valuestring : NULL;
}

bool flag_of(const cJSON *node, const char *name, bool otherwise) {
    const cJSON *found = member(node, name);
    return found ? cJSON_IsTrue(found) : otherwise;
}

bool integer_of(const cJSON *node, int64_t least, int64_t most, int64_t *value) {
    double number = cJSON_IsNumber(node) ? node->valuedouble : NAN;
    if (!(number >= (double)least && number <= (double)most)) return false;
    *value = (int64_t)number;
    return (double)*value == number;
}

bool copy_text(String *to, const cJSON *node, const char *name, const char *otherwise, const Report *report) {
    const char *text = text_of(node, name);
    if (!text && member(node, name)) return refuse(report, "'%s' is no text", name);
    if (!text) text = otherwise;
    return string_copy(to, text, strlen(text)) || refuse_memory(report);
}

static bool copy_char(int32_t *to, const cJSON *node, const char *name, const Report *report) {
    const char *text = text_of(node, name);
    size_t size = text ? strlen(text) : 0, step = 0;
    if (size) *to = char_at(text, size, &step);
    return (size && step == size) || refuse(report, "'%s' is not one character", name);
}

static bool copy_pattern(Pattern *to, const cJSON *node, const Report *report) {
    const cJSON *pattern = member(node, "pattern");
    const char *regex = text_of(pattern, "Regex"), *literal = text_of(pattern, "String");
    char why[128];
    if (regex && pattern_compile(to, regex, strlen(regex), why, sizeof why))
        return refuse(report, "the regular expression '%.80s': %s", regex, why);
    if (regex) return true;
    if (!literal) return refuse(report, "a 'pattern' with neither 'String' nor 'Regex'");
    return string_copy(&to->literal, literal, strlen(literal)) || refuse_memory(report);
}

/* ------------------------------------------------------------------------------------- kinds of steps */

typedef bool ReadStep(tokenizer *t, const cJSON *node, const Report *report);

typedef struct {
    const char *type;
    ReadStep *read;
} StepKind;

/* A step, or the steps of a `Sequence`, which stand in its member `list`. */
static bool read_steps(tokenizer *t, const cJSON *node, const char *what, const char *list, const StepKind *kinds,
                       const Report *report) {
    if (!node) return true;
    const char *type = text_of(node, "type");
    if (!type) return refuse(report, "a %s without a 'type'", what);
    if (strcmp(type, "Sequence") == 0) {
        const cJSON *steps = member(node, list), *step;
        if (!cJSON_IsArray(steps)) return refuse(report, "a %s 'Sequence' without '%s'", what, list);
        cJSON_ArrayForEach(step, steps) {
            if (!read_steps(t, step, what, list, kinds, report)) return false;
        }
        return true;
    }
    for (; kinds->type; kinds++)
        if (strcmp(kinds->type, type) == 0) return kinds->read(t, node, report);
    return refuse(report, "the %s '%.40s' is not known here", what, type);
}

/* ------------------------------------------------------------------------------------- normalizers */

#define PLAIN_NORMALIZER(name, kind)                                                                                   \
    static bool name(tokenizer *t, const cJSON *node, const Report *report) {                                          \
        (void)node;                                                                                                    \
        return new_normalizer(t, kind) || refuse_memory(report);                                                       \
    }
PLAIN_NORMALIZER(normalizer_nfc, NORMALIZE_NFC)
PLAIN_NORMALIZER(normalizer_nfd, NORMALIZE_NFD)
PLAIN_NORMALIZER(normalizer_nfkc, NORMALIZE_NFKC)
PLAIN_NORMALIZER(normalizer_nfkd, NORMALIZE_NFKD)
PLAIN_NORMALIZER(normalizer_lowercase, NORMALIZE_LOWERCASE)
PLAIN_NORMALIZER(normalizer_strip_accents, NORMALIZE_STRIP_ACCENTS)
PLAIN_NORMALIZER(normalizer_nmt, NORMALIZE_NMT)
PLAIN_NORMALIZER(normalizer_bytes, NORMALIZE_BYTES)

static bool normalizer_bert(tokenizer *t, const cJSON *node, const Report *report) {
    Normalizer *n = new_normalizer(t, NORMALIZE_BERT);
    if (!n) return refuse_memory(report);
    n->clean = flag_of(node, "clean_text", true);
    n->chinese = flag_of(node, "handle_chinese_chars", true);
    n->lower = flag_of(node, "lowercase", true);
    n->strip_accents = flag_of(node, "strip_accents", n->lower);
    return true;
}

static bool normalizer_strip(tokenizer *t, const cJSON *node, const Report *report) {
    Normalizer *n = new_normalizer(t, NORMALIZE_STRIP);
    if (!n) return refuse_memory(report);
    n->left = flag_of(node, "strip_left", true);
    n->right = flag_of(node, "strip_right", true);
    return true;
}

static bool normalizer_prepend(tokenizer *t, const cJSON *node, const Report *report) {
    Normalizer *n = new_normalizer(t, NORMALIZE_PREPEND);
    return n ? copy_text(&n->content, node, "prepend", "", report) : refuse_memory(report);
}

static bool normalizer_replace(tokenizer *t, const cJSON *node, const Report *report) {
    Normalizer *n = new_normalizer(t, NORMALIZE_REPLACE);
    if (!n) return refuse_memory(report);
    return copy_pattern(&n->pattern, node, report) && copy_text(&n->content, node, "content", "", report);
}

/* RFC 4648, section 4, without line ends. Returns false for anything else. */
static bool put_base64(Buffer *to, const char *text) {
    static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t size = strlen(text);
    if (size % 4) return false;
    for (size_t at = 0; at < size; at += 4) {
        uint32_t bits = 0;
        int pad = at + 4 < size ? 0 : (text[at + 3] == '=') + (text[at + 3] == '=' && text[at + 2] == '=');
        for (int i = 0; i < 4; i++) {
            const char *digit = i < 4 - pad ? strchr(DIGITS, text[at + (size_t)i]) : DIGITS;
            if (!digit) return false;
            bits = bits << 6 | (uint32_t)(digit - DIGITS);
        }
        char bytes[3] = {(char)(bits >> 16), (char)(bits >> 8), (char)bits};
        put_bytes(to, bytes, (size_t)(3 - pad));
    }
    return true;
}

/* sentencepiece's table: the bytes of a double array, little-endian, behind their count, then the texts. */
static bool normalizer_precompiled(tokenizer *t, const cJSON *node, const Report *report) {
    Normalizer *n = new_normalizer(t, NORMALIZE_PRECOMPILED);
    const char *base64 = text_of(node, "precompiled_charsmap");
    Buffer table = {0};
    uint32_t trie_bytes = 0;
    if (!n) return refuse_memory(report);
    if (!base64 || !*base64) return true; /* an empty table changes nothing */
    bool fine = put_base64(&table, base64) && !table.failed && table.size >= 4;
    if (fine) memcpy(&trie_bytes, table.data, 4);
    fine = fine && trie_bytes % 4 == 0 && trie_bytes <= table.size - 4;
    if (fine && trie_bytes) {
        n->trie = malloc(trie_bytes);
        if (n->trie) memcpy(n->trie, table.data + 4, trie_bytes);
        n->trie_size = n->trie ? trie_bytes / 4 : 0;
    }
    bool memory = !fine || ((n->trie || !trie_bytes) && string_copy(&n->replacements, table.data + 4 + trie_bytes,
                                                                    table.size - 4 - trie_bytes));
    buffer_free(&table);
    if (!fine) return refuse(report, "'precompiled_charsmap' is damaged");
    return memory || refuse_memory(report);
}

static const StepKind NORMALIZERS[] = {
    {"NFC", normalizer_nfc}, {"NFD", normalizer_nfd}, {"NFKC", normalizer_nfkc}, {"NFKD", normalizer_nfkd},
    {"Lowercase", normalizer_lowercase}, {"StripAccents", normalizer_strip_accents}, {"Nmt", normalizer_nmt},
    {"ByteLevel", normalizer_bytes}, {"BertNormalizer", normalizer_bert}, {"Strip", normalizer_strip},
    {"Prepend", normalizer_prepend}, {"Replace", normalizer_replace}, {"Precompiled", normalizer_precompiled},
    {NULL, NULL},
};

/* ------------------------------------------------------------------------------------- pre-tokenizers */

static bool behavior_of(Behavior *to, const cJSON *node, const Report *report) {
    static const char *const NAMES[] = {[REMOVED] = "Removed", [ISOLATED] = "Isolated",
                                        [MERGED_WITH_PREVIOUS] = "MergedWithPrevious",
                                        [MERGED_WITH_NEXT] = "MergedWithNext", [CONTIGUOUS] = "Contiguous"};
    const char *name = text_of(node, "behavior");
    for (int i = 0; name && i < 5; i++)
        if (strcmp(name, NAMES[i]) == 0) {
            *to = (Behavior)i;
            return true;
        }
    return name ? refuse(report, "'behavior' '%.40s' is not known here", name) : true;
}

static Splitter *splitter(tokenizer *t, SplitKind kind, Behavior behavior) {
    Splitter *s = new_splitter(t, kind);
    if (s) s->behavior = behavior;
    return s;
}

static bool split_words(tokenizer *t, const cJSON *node, const Report *report) {
    (void)node;
    return splitter(t, SPLIT_WORDS, ISOLATED) || refuse_memory(report);
}

static bool split_space(tokenizer *t, const cJSON *node, const Report *report) {
    (void)node;
    return splitter(t, SPLIT_SPACE, REMOVED) || refuse_memory(report);
}

static bool split_bert(tokenizer *t, const cJSON *node, const Report *report) {
    return split_space(t, node, report) && (splitter(t, SPLIT_PUNCTUATION, ISOLATED) || refuse_memory(report));
}

static bool split_punctuation(tokenizer *t, const cJSON *node, const Report *report) {
    Splitter *s = splitter(t, SPLIT_PUNCTUATION, ISOLATED);
    return s ? behavior_of(&s->behavior, node, report) : refuse_memory(report);
}

static bool split_digits(tokenizer *t, const cJSON *node, const Report *report) {
    Behavior behavior = flag_of(node, "individual_digits", false) ? ISOLATED : CONTIGUOUS;
    return splitter(t, SPLIT_DIGITS, behavior) || refuse_memory(report);
}

static bool split_char(tokenizer *t, const cJSON *node, const Report *report) {
    Splitter *s = splitter(t, SPLIT_CHAR, REMOVED);
    return s ? copy_char(&s->character, node, "delimiter", report) : refuse_memory(report);
}

static bool split_pattern(tokenizer *t, const cJSON *node, const Report *report) {
    Splitter *s = splitter(t, SPLIT_PATTERN, ISOLATED);
    if (!s) return refuse_memory(report);
    s->invert = flag_of(node, "invert", false);
    return behavior_of(&s->behavior, node, report) && copy_pattern(&s->pattern, node, report);
}

static bool prepend_of(PrependScheme *to, const cJSON *node, const Report *report) {
    const char *name = text_of(node, "prepend_scheme");
    *to = flag_of(node, "add_prefix_space", true) ? PREPEND_ALWAYS : PREPEND_NEVER;
    if (!name) return true;
    if (strcmp(name, "always") == 0) *to = PREPEND_ALWAYS;
    else if (strcmp(name, "first") == 0) *to = PREPEND_FIRST;
    else if (strcmp(name, "never") == 0) *to = PREPEND_NEVER;
    else return refuse(report, "'prepend_scheme' '%.40s' is not known here", name);
    return true;
}

static bool split_metaspace(tokenizer *t, const cJSON *node, const Report *report) {
    Splitter *s = splitter(t, SPLIT_METASPACE, MERGED_WITH_NEXT);
    if (!s) return refuse_memory(report);
    s->splits = flag_of(node, "split", true);
    return copy_char(&s->character, node, "replacement", report) && prepend_of(&s->prepend, node, report);
}

/* Radford et al. 2019: the expression of GPT-2's encoder.py. */
static bool split_bytes(tokenizer *t, const cJSON *node, const Report *report) {
    static const char WORDS[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
    Splitter *s = splitter(t, SPLIT_BYTES, ISOLATED);
    char why[128];
    if (!s) return refuse_memory(report);
    s->add_space = flag_of(node, "add_prefix_space", true);
    s->splits = flag_of(node, "use_regex", true);
    if (!s->splits || !pattern_compile(&s->pattern, WORDS, strlen(WORDS), why, sizeof why)) return true;
    return refuse(report, "%s", why);
}

static const StepKind SPLITTERS[] = {
    {"ByteLevel", split_bytes}, {"Metaspace", split_metaspace}, {"Split", split_pattern}, {"Whitespace", split_words},
    {"WhitespaceSplit", split_space}, {"BertPreTokenizer", split_bert}, {"Punctuation", split_punctuation},
    {"Digits", split_digits}, {"CharDelimiterSplit", split_char}, {NULL, NULL},
};

/* ------------------------------------------------------------------------------------- post-processors */

/* The ids go in front of, or behind, those that are there. */
static bool put_around(int32_t **list, size_t *count, int32_t id, size_t at, const Report *report) {
    int32_t *longer = realloc(*list, (*count + 1) * sizeof *longer);
    if (!longer) return refuse_memory(report);
    *list = longer;
    memmove(longer + at + 1, longer + at, (*count - at) * sizeof *longer);
    longer[at] = id;
    ++*count;
    return true;
}

/* ["[SEP]", 102] */
static bool named_id(const cJSON *node, const char *name, int64_t *id, const Report *report) {
    return integer_of(cJSON_GetArrayItem(member(node, name), 1), 0, MOST_ID - 1, id) ||
           refuse(report, "the post-processor's '%s' has no id", name);
}

static bool process_pair(tokenizer *t, const cJSON *node, const Report *report) {
    int64_t cls, sep;
    return named_id(node, "cls", &cls, report) && named_id(node, "sep", &sep, report) &&
           put_around(&t->before, &t->n_before, (int32_t)cls, 0, report) &&
           put_around(&t->after, &t->n_after, (int32_t)sep, t->n_after, report);
}

static bool process_template(tokenizer *t, const cJSON *node, const Report *report) {
    const cJSON *single = member(node, "single"), *specials = member(node, "special_tokens"), *part;
    bool behind = false;
    size_t in_front = 0;
    if (!cJSON_IsArray(single)) return refuse(report, "the post-processor's template has no 'single'");
    cJSON_ArrayForEach(part, single) {
        const char *name = text_of(member(part, "SpecialToken"), "id");
        if (!name && (behind || !member(part, "Sequence")))
            return refuse(report, "the post-processor's template 'single' has a part that is not known here");
        behind |= !name;
        const cJSON *ids = name ? member(cJSON_GetObjectItemCaseSensitive(specials, name), "ids") : NULL, *item;
        if (name && !cJSON_IsArray(ids)) return refuse(report, "the post-processor's '%.40s' has no ids", name);
        cJSON_ArrayForEach(item, ids) {
            int64_t id;
            if (!integer_of(item, 0, MOST_ID - 1, &id))
                return refuse(report, "the post-processor's '%.40s' has no id", name);
            if (!(behind ? put_around(&t->after, &t->n_after, (int32_t)id, t->n_after, report)
                         : put_around(&t->before, &t->n_before, (int32_t)id, in_front++, report)))
                return false;
        }
    }
    return true;
}

static bool process_nothing(tokenizer *t, const cJSON *node, const Report *report) {
    (void)t, (void)node, (void)report; /* byte level's is about offsets only */
    return true;
}

static const StepKind PROCESSORS[] = {
    {"TemplateProcessing", process_template}, {"BertProcessing", process_pair}, {"RobertaProcessing", process_pair},
    {"ByteLevel", process_nothing}, {NULL, NULL},
};

/* ------------------------------------------------------------------------------------- decoders */

#define PLAIN_DECODER(name, kind)                                                                                      \
    static bool name(tokenizer *t, const cJSON *node, const Report *report) {                                          \
        (void)node;                                                                                                    \
        return new_decoder(t, kind) || refuse_memory(report);                                                          \
    }
PLAIN_DECODER(decoder_bytes, DECODE_BYTES)
PLAIN_DECODER(decoder_byte_fallback, DECODE_BYTE_FALLBACK)
PLAIN_DECODER(decoder_fuse, DECODE_FUSE)

static bool decoder_wordpiece(tokenizer *t, const cJSON *node, const Report *report) {
    Decoder *d = new_decoder(t, DECODE_WORDPIECE);
    if (!d) return refuse_memory(report);
    d->cleanup = flag_of(node, "cleanup", true);
    return copy_text(&d->text, node, "prefix", "##", report);
}

static bool decoder_metaspace(tokenizer *t, const cJSON *node, const Report *report) {
    Decoder *d = new_decoder(t, DECODE_METASPACE);
    if (!d) return refuse_memory(report);
    return copy_char(&d->character, node, "replacement", report) && prepend_of(&d->prepend, node, report);
}

static bool decoder_strip(tokenizer *t, const cJSON *node, const Report *report) {
    Decoder *d = new_decoder(t, DECODE_STRIP);
    int64_t start, stop;
    if (!d) return refuse_memory(report);
    if (!integer_of(member(node, "start"), 0, INT32_MAX, &start) ||
        !integer_of(member(node, "stop"), 0, INT32_MAX, &stop))
        return refuse(report, "the decoder 'Strip' has no 'start' and 'stop'");
    d->start = (size_t)start;
    d->stop = (size_t)stop;
    return copy_char(&d->character, node, "content", report);
}

static bool decoder_replace(tokenizer *t, const cJSON *node, const Report *report) {
    Decoder *d = new_decoder(t, DECODE_REPLACE);
    if (!d) return refuse_memory(report);
    return copy_pattern(&d->pattern, node, report) && copy_text(&d->text, node, "content", "", report);
}

static bool decoder_suffix(tokenizer *t, const cJSON *node, const Report *report) {
    Decoder *d = new_decoder(t, DECODE_SUFFIX);
    return d ? copy_text(&d->text, node, "suffix", "</w>", report) : refuse_memory(report);
}

static const StepKind DECODERS[] = {
    {"ByteLevel", decoder_bytes}, {"WordPiece", decoder_wordpiece}, {"Metaspace", decoder_metaspace},
    {"ByteFallback", decoder_byte_fallback}, {"Fuse", decoder_fuse}, {"Strip", decoder_strip},
    {"Replace", decoder_replace}, {"BPEDecoder", decoder_suffix}, {NULL, NULL},
};

/* ------------------------------------------------------------------------------------- added tokens, all */

static bool read_added(tokenizer *t, const cJSON *list, const Report *report) {
    const cJSON *item;
    cJSON_ArrayForEach(item, list) {
        const char *content = text_of(item, "content");
        int64_t id;
        if (!content || !*content || !integer_of(member(item, "id"), 0, MOST_ID - 1, &id))
            return refuse(report, "an added token without 'content' or 'id'");
        AddedToken token = {.special = flag_of(item, "special", false),
                            .single_word = flag_of(item, "single_word", false),
                            .left = flag_of(item, "lstrip", false),
                            .right = flag_of(item, "rstrip", false),
                            .id = (int32_t)id};
        token.normalized = flag_of(item, "normalized", !token.special);
        if (!add_token(t, content, strlen(content), token, report)) return false;
    }
    return finish_added(t, report);
}

static bool read_root(tokenizer *t, const cJSON *root, const Report *report) {
    const cJSON *model = member(root, "model");
    if (!cJSON_IsObject(model)) return refuse(report, "no 'model': this is no tokenizer.json");
    return read_model(t, model, report) &&
           read_steps(t, member(root, "normalizer"), "normalizer", "normalizers", NORMALIZERS, report) &&
           read_steps(t, member(root, "pre_tokenizer"), "pre-tokenizer", "pretokenizers", SPLITTERS, report) &&
           read_steps(t, member(root, "post_processor"), "post-processor", "processors", PROCESSORS, report) &&
           read_steps(t, member(root, "decoder"), "decoder", "decoders", DECODERS, report) &&
           read_added(t, member(root, "added_tokens"), report);
}

/* cJSON's strings end at a NUL, so a token with one would be taken for a shorter one. */
static bool has_nul(const char *text, size_t size) {
    for (size_t at = 0; at + 5 < size; at++) {
        if (text[at] != '\\') continue;
        if (memcmp(text + at + 1, "u0000", 5) == 0) return true;
        at++; /* what is escaped */
    }
    return memchr(text, '\0', size) != NULL;
}

bool read_json(tokenizer *t, const char *text, size_t size, const Report *report) {
    const char *end = text;
    if (!is_utf8(text, size)) return refuse(report, "not UTF-8");
    if (has_nul(text, size)) return refuse(report, "a text with a NUL character, which is not known here");
    cJSON *root = cJSON_ParseWithLengthOpts(text, size, &end, false);
    if (!root) return refuse(report, "no JSON from byte %zu on", (size_t)(end - text));
    bool fine = read_root(t, root, report);
    cJSON_Delete(root);
    return fine;
}
