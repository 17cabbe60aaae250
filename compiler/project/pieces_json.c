/* pieces_json.c: writes parts of a tokenizer.json. Types of Hugging Face `tokenizers` do what that library does; only
 * runtime/tokenizer has the type `SentencePiece`. */
#include "pieces.h"

#include <stdlib.h>
#include <string.h>

void check_size(const Pieces *p) {
    if (p->out.size > MOST_BYTES)
        fail("%s: its tokenizer.json would be larger than %d MB", p->spm.path, MOST_BYTES >> 20);
}

void put_json(Text *out, const char *text, size_t size) { text_quote_bytes(out, text, size, "\x7f"); }

static void put_word(Text *out, const char *text) { put_json(out, text, strlen(text)); }

static const char *truth(bool value) { return value ? "true" : "false"; }

/* ---------------------------------------------------------------- tokens around a text */

/* The word [size] of a template, without its segment. */
static const char *word_of(Pieces *p, const char *word, size_t size, int *segment) {
    *segment = 0;
    if (size > 2 && word[size - 2] == ':' && (word[size - 1] == '0' || word[size - 1] == '1')) {
        *segment = word[size - 1] - '0';
        size -= 2;
    }
    return arena_copy(p->arena, word, size);
}

static void put_template(Pieces *p, const char *words) {
    int segment, count = 0;
    for (size_t size; *words; words += size + (words[size] == ' ')) {
        size = strcspn(words, " ");
        if (!size) continue;
        const char *word = word_of(p, words, size, &segment);
        const bool text = word[0] == '$';
        text_printf(&p->out, "%s{\"%s\":{\"id\":", count++ ? "," : "", text ? "Sequence" : "SpecialToken");
        put_word(&p->out, text ? word + 1 : word);
        text_printf(&p->out, ",\"type_id\":%d}}", segment);
    }
}

void put_templates(Pieces *p, const char *single, const char *pair) {
    int segment, count = 0;
    text_printf(&p->out, ",\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[");
    put_template(p, single);
    text_printf(&p->out, "],\"pair\":[");
    put_template(p, pair);
    text_printf(&p->out, "],\"special_tokens\":{");
    for (size_t size; *pair; pair += size + (pair[size] == ' ')) {
        size = strcspn(pair, " ");
        const char *word = size ? word_of(p, pair, size, &segment) : "$";
        if (word[0] == '$') continue;
        const int64_t id = token_id(p, word);
        if (id < 0) fail("%s: it has no token `%s`, which stands around a text", p->spm.path, word);
        if (count++) text_add(&p->out, ",", 1);
        put_word(&p->out, word);
        text_printf(&p->out, ":{\"ids\":[%lld]}", (long long)id);
    }
    text_printf(&p->out, "}}");
}

void put_added(Pieces *p) {
    text_printf(&p->out, ",\"added_tokens\":[");
    for (int64_t i = 0; i < p->n_added; i++) {
        const Added *a = &p->added[i];
        text_printf(&p->out, "%s{\"id\":%lld,\"content\":", i ? "," : "", (long long)a->id);
        put_word(&p->out, a->text);
        check_size(p);
        text_printf(&p->out, ",\"special\":%s,\"lstrip\":%s,\"rstrip\":%s,\"single_word\":%s,\"normalized\":%s%s}",
                    truth(a->special), truth(a->left), truth(a->right), truth(a->single), truth(a->normalized),
                    a->unseen ? ",\"unseen\":true" : "");
    }
    text_printf(&p->out, "]");
}

/* ---------------------------------------------------------------- texts before the model */

void put_charsmap(Pieces *p) {
    text_printf(&p->out, "\"precompiled_charsmap\":\"");
    text_base64(&p->out, p->spm.charsmap, p->spm.charsmap_size);
    text_add(&p->out, "\"", 1);
}

/* ---------------------------------------------------------------- models */

void put_vocabulary(Pieces *p) {
    text_printf(&p->out, "{");
    for (int64_t i = 0; i < p->names.count; i++) {
        const PieceName *name = &p->names.list[i];
        if (i) text_add(&p->out, ",", 1);
        put_json(&p->out, name->text, name->size);
        text_add(&p->out, ":", 1);
        text_add_int(&p->out, name->id);
        check_size(p);
    }
    text_printf(&p->out, "}");
}

void put_sentencepiece(Pieces *p, const char *unknown, bool named) {
    const SpmModel *spm = &p->spm;
    text_printf(&p->out, ",\"normalizer\":{\"type\":\"SentencePiece\",\"add_dummy_prefix\":%s,"
                         "\"remove_extra_whitespaces\":%s,\"escape_whitespaces\":%s,",
                truth(spm->add_dummy_prefix), truth(spm->remove_extra_whitespaces), truth(spm->escape_whitespaces));
    put_charsmap(p);
    text_printf(&p->out, "},\"model\":{\"type\":\"SentencePiece\",\"pairs\":%s,\"named\":%s,\"byte_fallback\":%s,"
                         "\"unk_token\":", truth(spm->pairs), truth(named), truth(spm->byte_fallback));
    put_word(&p->out, unknown);
    text_printf(&p->out, ",\"pieces\":[");
    for (int64_t i = 0; i < spm->count; i++) {
        text_printf(&p->out, i ? ",[" : "[");
        put_json(&p->out, spm->pieces[i].text, spm->pieces[i].size);
        text_printf(&p->out, ",%.9g,%d]", (double)spm->pieces[i].score, (int)spm->pieces[i].type);
        check_size(p);
    }
    text_printf(&p->out, "],\"vocab\":");
    put_vocabulary(p);
    text_printf(&p->out, "}");
}

void put_unigram(Pieces *p, int64_t unknown) {
    text_printf(&p->out, ",\"model\":{\"type\":\"Unigram\",\"unk_id\":%lld,\"byte_fallback\":false,\"vocab\":[",
                (long long)unknown);
    for (int64_t i = 0; i < p->names.count; i++) {
        const PieceName *name = &p->names.list[i];
        text_printf(&p->out, i ? ",[" : "[");
        put_json(&p->out, name->text, name->size);
        text_printf(&p->out, ",%.9g]", (double)name->score);
        check_size(p);
    }
    text_printf(&p->out, "]}");
}

static int by_name(const void *left, const void *right) {
    const Piece *a = *(const Piece *const *)left, *b = *(const Piece *const *)right;
    const size_t common = a->size < b->size ? a->size : b->size;
    const int order = memcmp(a->text, b->text, common);
    return order ? order : (a->size > b->size) - (a->size < b->size);
}

static bool holds(const Piece **sorted, int64_t count, const char *text, size_t size) {
    const Piece wanted = {text, size, 0, PIECE_NORMAL}, *key = &wanted;
    return bsearch(&key, sorted, (size_t)count, sizeof *sorted, by_name) != NULL;
}

/* Each way to cut a piece into two pieces is a merge. Merges have the order of their pieces, and then of the cuts. */
static void put_merges(Pieces *p) {
    const SpmModel *spm = &p->spm;
    const Piece **sorted = arena_array(p->arena, (size_t)spm->count, sizeof *sorted);
    for (int64_t i = 0; i < spm->count; i++) sorted[i] = &spm->pieces[i];
    qsort(sorted, (size_t)spm->count, sizeof *sorted, by_name);
    bool more = false;
    for (int64_t i = 0; i < spm->count; i++) {
        const Piece *whole = &spm->pieces[i];
        for (size_t cut = 1; cut < whole->size; cut++) {
            if (((unsigned char)whole->text[cut] & 0xc0) == 0x80) continue;
            if (!holds(sorted, spm->count, whole->text, cut) ||
                !holds(sorted, spm->count, whole->text + cut, whole->size - cut))
                continue;
            text_printf(&p->out, more ? ",[" : "[");
            put_json(&p->out, whole->text, cut);
            text_add(&p->out, ",", 1);
            put_json(&p->out, whole->text + cut, whole->size - cut);
            text_add(&p->out, "]", 1);
            check_size(p);
            more = true;
        }
    }
}

void put_pairs(Pieces *p, const char *unknown, bool byte_fallback) {
    text_printf(&p->out, ",\"model\":{\"type\":\"BPE\",\"fuse_unk\":true,\"byte_fallback\":%s,\"unk_token\":",
                truth(byte_fallback));
    if (unknown) put_word(&p->out, unknown);
    else text_printf(&p->out, "null");
    text_printf(&p->out, ",\"vocab\":");
    put_vocabulary(p);
    text_printf(&p->out, ",\"merges\":[");
    put_merges(p);
    text_printf(&p->out, "]}");
}
