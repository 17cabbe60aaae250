/* json.c: reads a tokenizer.json of Hugging Face `tokenizers`. The names of members are that library's. A kind of step
 * that is unknown here, or a setting that would change ids and is not implemented, is refused. json_model.c reads the
 * member `model`, and json_pieces.c what attnc writes of SentencePiece. */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "attn_tokenizer_json.h"

/* ------------------------------------------------------------------------------------- values */

static bool copy_char(int32_t *to, const cJSON *node, const char *name, const Report *report) {
    const char *text = attn_text_of(node, name);
    size_t size = text ? strlen(text) : 0, step = 0;
    if (size) *to = attn_char_at(text, size, &step);
    return (size && step == size) || attn_refuse(report, "'%s' is not one character", name);
}

static bool copy_pattern(Pattern *to, const cJSON *node, const Report *report) {
    const cJSON *pattern = attn_member(node, "pattern");
    const char *regex = attn_text_of(pattern, "Regex"), *literal = attn_text_of(pattern, "String");
    char why[128];
    if (regex && attn_pattern_compile(to, regex, strlen(regex), why, sizeof why))
        return attn_refuse(report, "the regular expression '%.80s': %s", regex, why);
    if (regex) return true;
    if (!literal) return attn_refuse(report, "a 'pattern' with neither 'String' nor 'Regex'");
    return attn_string_copy(&to->literal, literal, strlen(literal)) || attn_refuse_memory(report);
}

/* ------------------------------------------------------------------------------------- kinds of steps */

enum { MOST_STEPS = 256 }; /* each of which reads the whole text */

typedef bool ReadStep(attn_tokenizer *t, const cJSON *node, const Report *report);

typedef struct {
    const char *type;
    ReadStep *read;
} StepKind;

/* Reads a step, or the steps of a `Sequence`, which are in its member `list`. */
static bool read_steps(attn_tokenizer *t, const cJSON *node, const char *what, const char *list, const StepKind *kinds,
                       const Report *report) {
    if (!node) return true;
    const char *type = attn_text_of(node, "type");
    if (!type) return attn_refuse(report, "a %s without a 'type'", what);
    if (strcmp(type, "Sequence") == 0) {
        const cJSON *steps = attn_member(node, list), *step;
        if (!cJSON_IsArray(steps)) return attn_refuse(report, "a %s 'Sequence' without '%s'", what, list);
        cJSON_ArrayForEach(step, steps) {
            if (!read_steps(t, step, what, list, kinds, report)) return false;
        }
        return true;
    }
    if (t->n_normalizers + t->n_splitters + t->n_decoders >= MOST_STEPS)
        return attn_refuse(report, "more than %d steps, the %ss among them", MOST_STEPS, what);
    for (; kinds->type; kinds++)
        if (strcmp(kinds->type, type) == 0) return kinds->read(t, node, report);
    return attn_refuse(report, "the %s '%.40s' is not known here", what, type);
}

/* ------------------------------------------------------------------------------------- normalizers */

#define PLAIN_NORMALIZER(name, kind)                                                                                   \
    static bool name(attn_tokenizer *t, const cJSON *node, const Report *report) {                                     \
        (void)node;                                                                                                    \
        return attn_new_normalizer(t, kind) || attn_refuse_memory(report);                                             \
    }
PLAIN_NORMALIZER(normalizer_nfc, NORMALIZE_NFC)
PLAIN_NORMALIZER(normalizer_nfd, NORMALIZE_NFD)
PLAIN_NORMALIZER(normalizer_nfkc, NORMALIZE_NFKC)
PLAIN_NORMALIZER(normalizer_nfkd, NORMALIZE_NFKD)
PLAIN_NORMALIZER(normalizer_lowercase, NORMALIZE_LOWERCASE)
PLAIN_NORMALIZER(normalizer_strip_accents, NORMALIZE_STRIP_ACCENTS)
PLAIN_NORMALIZER(normalizer_nmt, NORMALIZE_NMT)
PLAIN_NORMALIZER(normalizer_bytes, NORMALIZE_BYTES)

static bool normalizer_bert(attn_tokenizer *t, const cJSON *node, const Report *report) {
    Normalizer *n = attn_new_normalizer(t, NORMALIZE_BERT);
    if (!n) return attn_refuse_memory(report);
    n->clean = attn_flag_of(node, "clean_text", true);
    n->chinese = attn_flag_of(node, "handle_chinese_chars", true);
    n->lower = attn_flag_of(node, "lowercase", true);
    n->strip_accents = attn_flag_of(node, "strip_accents", n->lower);
    return true;
}

static bool normalizer_strip(attn_tokenizer *t, const cJSON *node, const Report *report) {
    Normalizer *n = attn_new_normalizer(t, NORMALIZE_STRIP);
    if (!n) return attn_refuse_memory(report);
    n->left = attn_flag_of(node, "strip_left", true);
    n->right = attn_flag_of(node, "strip_right", true);
    return true;
}

static bool normalizer_prepend(attn_tokenizer *t, const cJSON *node, const Report *report) {
    Normalizer *n = attn_new_normalizer(t, NORMALIZE_PREPEND);
    return n ? attn_copy_text(&n->content, node, "prepend", "", report) : attn_refuse_memory(report);
}

static bool normalizer_replace(attn_tokenizer *t, const cJSON *node, const Report *report) {
    Normalizer *n = attn_new_normalizer(t, NORMALIZE_REPLACE);
    if (!n) return attn_refuse_memory(report);
    return copy_pattern(&n->pattern, node, report) && attn_copy_text(&n->content, node, "content", "", report);
}

static bool normalizer_precompiled(attn_tokenizer *t, const cJSON *node, const Report *report) {
    Normalizer *n = attn_new_normalizer(t, NORMALIZE_PRECOMPILED);
    return n ? attn_copy_charsmap(n, node, report) : attn_refuse_memory(report);
}

static const StepKind NORMALIZERS[] = {
    {"NFC", normalizer_nfc}, {"NFD", normalizer_nfd}, {"NFKC", normalizer_nfkc}, {"NFKD", normalizer_nfkd},
    {"Lowercase", normalizer_lowercase}, {"StripAccents", normalizer_strip_accents}, {"Nmt", normalizer_nmt},
    {"ByteLevel", normalizer_bytes}, {"BertNormalizer", normalizer_bert}, {"Strip", normalizer_strip},
    {"Prepend", normalizer_prepend}, {"Replace", normalizer_replace}, {"Precompiled", normalizer_precompiled},
    {"SentencePiece", attn_read_pieces_normalizer}, {NULL, NULL},
};

/* ------------------------------------------------------------------------------------- pre-tokenizers */

static bool behavior_of(Behavior *to, const cJSON *node, const Report *report) {
    static const char *const NAMES[] = {[REMOVED] = "Removed", [ISOLATED] = "Isolated",
                                        [MERGED_WITH_PREVIOUS] = "MergedWithPrevious",
                                        [MERGED_WITH_NEXT] = "MergedWithNext", [CONTIGUOUS] = "Contiguous"};
    const char *name = attn_text_of(node, "behavior");
    for (int i = 0; name && i < 5; i++)
        if (strcmp(name, NAMES[i]) == 0) {
            *to = (Behavior)i;
            return true;
        }
    return name ? attn_refuse(report, "'behavior' '%.40s' is not known here", name) : true;
}

static Splitter *splitter(attn_tokenizer *t, SplitKind kind, Behavior behavior) {
    Splitter *s = attn_new_splitter(t, kind);
    if (s) s->behavior = behavior;
    return s;
}

static bool split_words(attn_tokenizer *t, const cJSON *node, const Report *report) {
    (void)node;
    return splitter(t, SPLIT_WORDS, ISOLATED) || attn_refuse_memory(report);
}

static bool split_space(attn_tokenizer *t, const cJSON *node, const Report *report) {
    (void)node;
    return splitter(t, SPLIT_SPACE, REMOVED) || attn_refuse_memory(report);
}

static bool split_bert(attn_tokenizer *t, const cJSON *node, const Report *report) {
    return split_space(t, node, report) && (splitter(t, SPLIT_PUNCTUATION, ISOLATED) || attn_refuse_memory(report));
}

static bool split_punctuation(attn_tokenizer *t, const cJSON *node, const Report *report) {
    Splitter *s = splitter(t, SPLIT_PUNCTUATION, ISOLATED);
    return s ? behavior_of(&s->behavior, node, report) : attn_refuse_memory(report);
}

static bool split_digits(attn_tokenizer *t, const cJSON *node, const Report *report) {
    Behavior behavior = attn_flag_of(node, "individual_digits", false) ? ISOLATED : CONTIGUOUS;
    return splitter(t, SPLIT_DIGITS, behavior) || attn_refuse_memory(report);
}

static bool split_char(attn_tokenizer *t, const cJSON *node, const Report *report) {
    Splitter *s = splitter(t, SPLIT_CHAR, REMOVED);
    return s ? copy_char(&s->character, node, "delimiter", report) : attn_refuse_memory(report);
}

static bool split_pattern(attn_tokenizer *t, const cJSON *node, const Report *report) {
    Splitter *s = splitter(t, SPLIT_PATTERN, ISOLATED);
    if (!s) return attn_refuse_memory(report);
    s->invert = attn_flag_of(node, "invert", false);
    return behavior_of(&s->behavior, node, report) && copy_pattern(&s->pattern, node, report);
}

static bool prepend_of(PrependScheme *to, const cJSON *node, const Report *report) {
    const char *name = attn_text_of(node, "prepend_scheme");
    *to = attn_flag_of(node, "add_prefix_space", true) ? PREPEND_ALWAYS : PREPEND_NEVER;
    if (!name) return true;
    if (strcmp(name, "always") == 0) *to = PREPEND_ALWAYS;
    else if (strcmp(name, "first") == 0) *to = PREPEND_FIRST;
    else if (strcmp(name, "never") == 0) *to = PREPEND_NEVER;
    else return attn_refuse(report, "'prepend_scheme' '%.40s' is not known here", name);
    return true;
}

static bool split_metaspace(attn_tokenizer *t, const cJSON *node, const Report *report) {
    Splitter *s = splitter(t, SPLIT_METASPACE, MERGED_WITH_NEXT);
    if (!s) return attn_refuse_memory(report);
    s->splits = attn_flag_of(node, "split", true);
    return copy_char(&s->character, node, "replacement", report) && prepend_of(&s->prepend, node, report);
}

static bool split_bytes(attn_tokenizer *t, const cJSON *node, const Report *report) {
    const char *words = attn_gpt2_words;
    Splitter *s = splitter(t, SPLIT_BYTES, ISOLATED);
    char why[128];
    if (!s) return attn_refuse_memory(report);
    s->add_space = attn_flag_of(node, "add_prefix_space", true);
    s->splits = attn_flag_of(node, "use_regex", true);
    if (!s->splits || !attn_pattern_compile(&s->pattern, words, strlen(words), why, sizeof why)) return true;
    return attn_refuse(report, "%s", why);
}

static const StepKind SPLITTERS[] = {
    {"ByteLevel", split_bytes}, {"Metaspace", split_metaspace}, {"Split", split_pattern}, {"Whitespace", split_words},
    {"WhitespaceSplit", split_space}, {"BertPreTokenizer", split_bert}, {"Punctuation", split_punctuation},
    {"Digits", split_digits}, {"CharDelimiterSplit", split_char}, {NULL, NULL},
};

/* ------------------------------------------------------------------------------------- post-processors */

/* Adds ids before or behind those that are already there. */
static bool put_around(int32_t **list, size_t *count, int32_t id, size_t at, const Report *report) {
    int32_t *longer = realloc(*list, (*count + 1) * sizeof *longer);
    if (!longer) return attn_refuse_memory(report);
    *list = longer;
    memmove(longer + at + 1, longer + at, (*count - at) * sizeof *longer);
    longer[at] = id;
    ++*count;
    return true;
}

/* Reads an id from ["[SEP]", 102]. */
static bool named_id(const cJSON *node, const char *name, int64_t *id, const Report *report) {
    return attn_integer_of(cJSON_GetArrayItem(attn_member(node, name), 1), 0, MOST_ID - 1, id) ||
           attn_refuse(report, "the post-processor's '%s' has no id", name);
}

/* In a pair, `seps` separators stand between the texts, and what is behind them has the segment `segment`. */
static bool process_around(attn_tokenizer *t, const cJSON *node, int seps, int32_t segment, const Report *report) {
    int64_t cls = 0, sep = 0;
    t->n_pair = 0; /* of several templates, the last one holds */
    bool fine = named_id(node, "cls", &cls, report) && named_id(node, "sep", &sep, report) &&
                put_around(&t->before, &t->n_before, (int32_t)cls, 0, report) &&
                put_around(&t->after, &t->n_after, (int32_t)sep, t->n_after, report) &&
                attn_put_pair(t, (int32_t)cls, 0, report) && attn_put_pair(t, PAIR_FIRST, 0, report);
    for (int i = 0; i < seps; i++) fine = fine && attn_put_pair(t, (int32_t)sep, 0, report);
    return fine && attn_put_pair(t, PAIR_SECOND, segment, report) && attn_put_pair(t, (int32_t)sep, segment, report);
}

static bool process_bert(attn_tokenizer *t, const cJSON *node, const Report *report) {
    return process_around(t, node, 1, 1, report);
}

static bool process_roberta(attn_tokenizer *t, const cJSON *node, const Report *report) {
    return process_around(t, node, 2, 0, report);
}

/* The ids of the special token `name` in a template, which are checked; NULL after a refusal. */
static const cJSON *template_ids(const cJSON *specials, const char *name, const Report *report) {
    const cJSON *ids = attn_member(cJSON_GetObjectItemCaseSensitive(specials, name), "ids"), *item;
    if (!cJSON_IsArray(ids)) attn_refuse(report, "the post-processor's '%.40s' has no ids", name);
    cJSON_ArrayForEach(item, ids) {
        int64_t id;
        if (attn_integer_of(item, 0, MOST_ID - 1, &id)) continue;
        attn_refuse(report, "the post-processor's '%.40s' has no id", name);
        return NULL;
    }
    return cJSON_IsArray(ids) ? ids : NULL;
}

/* Without `pair`, the template of a pair stays empty. */
static bool template_of_pairs(attn_tokenizer *t, const cJSON *node, const Report *report) {
    const cJSON *specials = attn_member(node, "special_tokens"), *part;
    bool seen[2] = {false};
    t->n_pair = 0; /* of several templates, the last one holds */
    cJSON_ArrayForEach(part, attn_member(node, "pair")) {
        const char *name = attn_text_of(attn_member(part, "SpecialToken"), "id");
        const char *text = attn_text_of(attn_member(part, "Sequence"), "id");
        const cJSON *of = attn_member(part, name ? "SpecialToken" : "Sequence"), *item;
        const bool second = text && strcmp(text, "B") == 0;
        int64_t segment = 0;
        if (!attn_integer_of(attn_member(of, "type_id"), 0, INT32_MAX, &segment) ||
            (!name && (!text || (!second && strcmp(text, "A") != 0) || seen[second])))
            return attn_refuse(report, "the post-processor's template 'pair' has a part that is not known here");
        if (!name) {
            seen[second] = true;
            if (!attn_put_pair(t, second ? PAIR_SECOND : PAIR_FIRST, (int32_t)segment, report)) return false;
            continue;
        }
        const cJSON *ids = template_ids(specials, name, report);
        if (!ids) return false;
        cJSON_ArrayForEach(item, ids) {
            if (!attn_put_pair(t, (int32_t)item->valuedouble, (int32_t)segment, report)) return false;
        }
    }
    return t->n_pair == 0 || (seen[0] && seen[1]) ||
           attn_refuse(report, "the post-processor's template 'pair' lacks one of the two texts");
}

static bool process_template(attn_tokenizer *t, const cJSON *node, const Report *report) {
    const cJSON *single = attn_member(node, "single"), *specials = attn_member(node, "special_tokens"), *part;
    bool behind = false;
    size_t in_front = 0;
    if (!cJSON_IsArray(single)) return attn_refuse(report, "the post-processor's template has no 'single'");
    cJSON_ArrayForEach(part, single) {
        const char *name = attn_text_of(attn_member(part, "SpecialToken"), "id");
        if (!name && (behind || !attn_member(part, "Sequence")))
            return attn_refuse(report, "the post-processor's template 'single' has a part that is not known here");
        behind |= !name;
        const cJSON *ids = name ? template_ids(specials, name, report) : NULL, *item;
        if (name && !ids) return false;
        cJSON_ArrayForEach(item, ids) {
            const int32_t id = (int32_t)item->valuedouble;
            if (!(behind ? put_around(&t->after, &t->n_after, id, t->n_after, report)
                         : put_around(&t->before, &t->n_before, id, in_front++, report)))
                return false;
        }
    }
    return template_of_pairs(t, node, report);
}

static bool process_nothing(attn_tokenizer *t, const cJSON *node, const Report *report) {
    (void)t, (void)node, (void)report; /* the byte-level post-processor only changes offsets */
    return true;
}

static const StepKind PROCESSORS[] = {
    {"TemplateProcessing", process_template}, {"BertProcessing", process_bert}, {"RobertaProcessing", process_roberta},
    {"ByteLevel", process_nothing}, {NULL, NULL},
};

/* ------------------------------------------------------------------------------------- decoders */

#define PLAIN_DECODER(name, kind)                                                                                      \
    static bool name(attn_tokenizer *t, const cJSON *node, const Report *report) {                                     \
        (void)node;                                                                                                    \
        return attn_new_decoder(t, kind) || attn_refuse_memory(report);                                                \
    }
PLAIN_DECODER(decoder_bytes, DECODE_BYTES)
PLAIN_DECODER(decoder_fuse, DECODE_FUSE)

/* attnc writes `each` of SentencePiece. */
static bool decoder_byte_fallback(attn_tokenizer *t, const cJSON *node, const Report *report) {
    Decoder *d = attn_new_decoder(t, DECODE_BYTE_FALLBACK);
    if (!d) return attn_refuse_memory(report);
    d->each = attn_flag_of(node, "each", false);
    return true;
}

static bool decoder_wordpiece(attn_tokenizer *t, const cJSON *node, const Report *report) {
    Decoder *d = attn_new_decoder(t, DECODE_WORDPIECE);
    if (!d) return attn_refuse_memory(report);
    d->cleanup = attn_flag_of(node, "cleanup", true);
    return attn_copy_text(&d->text, node, "prefix", "##", report);
}

static bool decoder_metaspace(attn_tokenizer *t, const cJSON *node, const Report *report) {
    Decoder *d = attn_new_decoder(t, DECODE_METASPACE);
    if (!d) return attn_refuse_memory(report);
    return copy_char(&d->character, node, "replacement", report) && prepend_of(&d->prepend, node, report);
}

static bool decoder_strip(attn_tokenizer *t, const cJSON *node, const Report *report) {
    Decoder *d = attn_new_decoder(t, DECODE_STRIP);
    int64_t start, stop;
    if (!d) return attn_refuse_memory(report);
    if (!attn_integer_of(attn_member(node, "start"), 0, INT32_MAX, &start) ||
        !attn_integer_of(attn_member(node, "stop"), 0, INT32_MAX, &stop))
        return attn_refuse(report, "the decoder 'Strip' has no 'start' and 'stop'");
    d->start = (size_t)start;
    d->stop = (size_t)stop;
    return copy_char(&d->character, node, "content", report);
}

static bool decoder_replace(attn_tokenizer *t, const cJSON *node, const Report *report) {
    Decoder *d = attn_new_decoder(t, DECODE_REPLACE);
    if (!d) return attn_refuse_memory(report);
    return copy_pattern(&d->pattern, node, report) && attn_copy_text(&d->text, node, "content", "", report);
}

static bool decoder_suffix(attn_tokenizer *t, const cJSON *node, const Report *report) {
    Decoder *d = attn_new_decoder(t, DECODE_SUFFIX);
    return d ? attn_copy_text(&d->text, node, "suffix", "</w>", report) : attn_refuse_memory(report);
}

static const StepKind DECODERS[] = {
    {"ByteLevel", decoder_bytes}, {"WordPiece", decoder_wordpiece}, {"Metaspace", decoder_metaspace},
    {"ByteFallback", decoder_byte_fallback}, {"Fuse", decoder_fuse}, {"Strip", decoder_strip},
    {"Replace", decoder_replace}, {"BPEDecoder", decoder_suffix}, {NULL, NULL},
};

/* ------------------------------------------------------------------------------------- added tokens, the root */

static bool read_added(attn_tokenizer *t, const cJSON *list, const Report *report) {
    const cJSON *item;
    cJSON_ArrayForEach(item, list) {
        const char *content = attn_text_of(item, "content");
        int64_t id; /* checked, and not used: attn_finish_added gives the tokens their ids */
        if (!content || !*content || !attn_integer_of(attn_member(item, "id"), 0, MOST_ID - 1, &id))
            return attn_refuse(report, "an added token without 'content' or 'id'");
        AddedToken token = {.special = attn_flag_of(item, "special", false),
                            .single_word = attn_flag_of(item, "single_word", false),
                            .left = attn_flag_of(item, "lstrip", false),
                            .right = attn_flag_of(item, "rstrip", false),
                            .unseen = attn_flag_of(item, "unseen", false)}; /* as attnc writes of SentencePiece */
        token.normalized = attn_flag_of(item, "normalized", !token.special);
        if (!attn_add_token(t, content, strlen(content), token, report)) return false;
    }
    return attn_finish_added(t, report);
}

static bool read_root(attn_tokenizer *t, const cJSON *root, const Report *report) {
    const cJSON *model = attn_member(root, "model");
    if (!cJSON_IsObject(model)) return attn_refuse(report, "no 'model': this is no tokenizer.json");
    t->codes = attn_flag_of(root, "leading_codes", false);
    return attn_read_model(t, model, report) &&
           read_steps(t, attn_member(root, "normalizer"), "normalizer", "normalizers", NORMALIZERS, report) &&
           read_steps(t, attn_member(root, "pre_tokenizer"), "pre-tokenizer", "pretokenizers", SPLITTERS, report) &&
           read_steps(t, attn_member(root, "post_processor"), "post-processor", "processors", PROCESSORS, report) &&
           read_steps(t, attn_member(root, "decoder"), "decoder", "decoders", DECODERS, report) &&
           read_added(t, attn_member(root, "added_tokens"), report);
}

/* Strings of cJSON end at a NUL, so a token that contains one would be read as a shorter token. */
static bool has_nul(const char *text, size_t size) {
    for (size_t at = 0; at + 5 < size; at++) {
        if (text[at] != '\\') continue;
        if (memcmp(text + at + 1, "u0000", 5) == 0) return true;
        at++; /* skips the escaped character */
    }
    return memchr(text, '\0', size) != NULL;
}

bool attn_read_json(attn_tokenizer *t, const char *text, size_t size, const Report *report) {
    const char *end = text;
    if (!attn_is_utf8(text, size)) return attn_refuse(report, "not UTF-8");
    if (has_nul(text, size)) return attn_refuse(report, "a text with a NUL character, which is not known here");
    cJSON *root = cJSON_ParseWithLengthOpts(text, size, &end, false);
    if (!root) return attn_refuse(report, "no JSON from byte %zu on", (size_t)(end - text));
    bool fine = read_root(t, root, report);
    cJSON_Delete(root);
    return fine;
}
