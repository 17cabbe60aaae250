/* build.c: the parts of a tokenizer that every reader of files makes, and its refusals. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attn_tokenizer_internal.h"

enum { MOST_WORD_CHARS = 100 };

const char attn_gpt2_words[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

bool attn_refuse(const Report *report, const char *format, ...) {
    if (report->text && report->text_size > 0) {
        int used = snprintf(report->text, report->text_size, "%s: ", report->path);
        if (used >= 0 && (size_t)used < report->text_size) {
            va_list arguments;
            va_start(arguments, format);
            vsnprintf(report->text + used, report->text_size - (size_t)used, format, arguments);
            va_end(arguments);
        }
        for (char *c = report->text; *c; c++)
            if ((unsigned char)*c < ' ' || *c == 0x7f) *c = '?'; /* names from a file must not control the terminal */
    }
    return false;
}

bool attn_refuse_memory(const Report *report) { return attn_refuse(report, "out of memory"); }

static void *grown(void *list, size_t count, size_t size) {
    void *longer = realloc(list, (count + 1) * size);
    if (longer) memset((char *)longer + count * size, 0, size);
    return longer;
}

Normalizer *attn_new_normalizer(attn_tokenizer *t, NormalizerKind kind) {
    Normalizer *list = grown(t->normalizers, t->n_normalizers, sizeof *list);
    if (!list) return NULL;
    t->normalizers = list;
    list[t->n_normalizers].kind = kind;
    return &list[t->n_normalizers++];
}

Splitter *attn_new_splitter(attn_tokenizer *t, SplitKind kind) {
    Splitter *list = grown(t->splitters, t->n_splitters, sizeof *list);
    if (!list) return NULL;
    t->splitters = list;
    list[t->n_splitters].kind = kind;
    return &list[t->n_splitters++];
}

Decoder *attn_new_decoder(attn_tokenizer *t, DecoderKind kind) {
    Decoder *list = grown(t->decoders, t->n_decoders, sizeof *list);
    if (!list) return NULL;
    t->decoders = list;
    list[t->n_decoders].kind = kind;
    return &list[t->n_decoders++];
}

bool attn_finish_vocabulary(Vocabulary *v, bool last_holds, const Report *report) {
    size_t twice = 0;
    if (attn_vocabulary_sort(v, last_holds, &twice)) return true;
    if (!twice) return attn_refuse_memory(report);
    const Token *token = &v->sorted[twice];
    int32_t a = token[-1].id, b = token->id;
    int shown = token->size < 80 ? (int)token->size : 80;
    return attn_refuse(report, "the token '%.*s' stands there twice, as %d and %d", shown, v->text.data + token->offset,
                       a < b ? a : b, a < b ? b : a);
}

void attn_find_byte_tokens(Model *model) {
    for (int byte = 0; byte < 256; byte++) {
        char name[8];
        int size = snprintf(name, sizeof name, "<0x%02X>", (unsigned)byte);
        model->byte_ids[byte] = attn_vocabulary_find(&model->vocabulary, name, (size_t)size);
    }
}

static int compare_merges(const void *left, const void *right) {
    const Merge *a = left, *b = right;
    if (a->pair != b->pair) return a->pair < b->pair ? -1 : 1;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

void attn_finish_merges(Model *model) {
    if (model->n_merges) qsort(model->merges, model->n_merges, sizeof *model->merges, compare_merges);
    size_t kept = 0;
    for (size_t i = 0; i < model->n_merges; i++)
        if (i + 1 == model->n_merges || model->merges[i].pair != model->merges[i + 1].pair)
            model->merges[kept++] = model->merges[i];
    model->n_merges = kept;
}

bool attn_put_merge(Model *model, const char *left, size_t left_size, const char *right, size_t right_size, size_t rank,
                    Buffer *joint, const Report *report) {
    int32_t a = attn_vocabulary_find(&model->vocabulary, left, left_size);
    int32_t b = attn_vocabulary_find(&model->vocabulary, right, right_size);
    size_t dropped = right_size < model->prefix.size ? right_size : model->prefix.size;
    joint->size = 0;
    attn_put_bytes(joint, left, left_size);
    attn_put_bytes(joint, right + dropped, right_size - dropped);
    if (joint->failed) return attn_refuse_memory(report);
    int32_t id = attn_vocabulary_find(&model->vocabulary, joint->data, joint->size);
    if (a < 0 || b < 0 || id < 0)
        return attn_refuse(report, "merge %zu has a token that is not in the vocabulary", rank);
    model->merges[model->n_merges++] = (Merge){(uint64_t)(uint32_t)a << 32 | (uint32_t)b, (uint32_t)rank, id};
    return true;
}

bool attn_add_token(attn_tokenizer *t, const char *name, size_t size, AddedToken token, const Report *report) {
    AddedToken *added = grown(t->added, t->n_added, sizeof *added);
    if (!added) return attn_refuse_memory(report);
    t->added = added;
    added[t->n_added++] = token;
    if (!attn_vocabulary_add(&t->added_names, name, size, token.id)) return attn_refuse_memory(report);
    if (token.special && !attn_vocabulary_add(&t->special_names, name, size, token.id))
        return attn_refuse_memory(report);
    return true;
}

/* Collects the texts of the added tokens in the sets `raw` and `normalized`. The texts of the latter are normalized
 * too, since they are searched in normalized text. */
bool attn_finish_added(attn_tokenizer *t, const Report *report) {
    Buffer text = {0}, scratch = {0};
    bool fine = true;
    for (size_t i = 0; i < t->n_added && fine; i++) {
        const Token *name = &t->added_names.sorted[i]; /* not sorted yet: in the order of insertion */
        AddedSet *set = t->added[i].normalized ? &t->normalized : &t->raw;
        text.size = 0;
        attn_put_bytes(&text, t->added_names.text.data + name->offset, name->size);
        int status = t->added[i].normalized ? attn_normalize(t->normalizers, t->n_normalizers, &text, &scratch) : 0;
        if (status) fine = attn_refuse(report, "%s", attn_tokenizer_error_text(status));
        if (!fine || text.size == 0) continue;
        set->begins[(unsigned char)text.data[0]] = true;
        if (!attn_vocabulary_add(&set->texts, text.data, text.size, (int32_t)i)) fine = attn_refuse_memory(report);
    }
    attn_buffer_free(&text);
    attn_buffer_free(&scratch);
    Vocabulary *const all[] = {&t->added_names, &t->special_names, &t->raw.texts, &t->normalized.texts};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) fine = fine && attn_finish_vocabulary(all[i], false, report);
    return fine;
}

/* ------------------------------------------------------------------------------------- kinds of models */

/* Devlin et al. 2018, and tokenization.py of their release: BasicTokenizer, then WordpieceTokenizer. */
bool attn_finish_bert(attn_tokenizer *t, bool lower, bool strip_accents, const Report *report) {
    static const char *const SPECIAL[] = {"[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"};
    Model *model = &t->model;
    model->kind = MODEL_WORDPIECE;
    model->most_chars = MOST_WORD_CHARS;
    for (int i = 0; i < 5; i++) {
        int32_t id = attn_vocabulary_find(&model->vocabulary, SPECIAL[i], strlen(SPECIAL[i]));
        if (id < 0 && i < 3) return attn_refuse(report, "no token %s", SPECIAL[i]);
        AddedToken token = {.special = true, .id = id};
        if (id >= 0 && !attn_add_token(t, SPECIAL[i], strlen(SPECIAL[i]), token, report)) return false;
    }
    Normalizer *bert = attn_new_normalizer(t, NORMALIZE_BERT);
    bool fine = bert && attn_string_copy(&model->prefix, "##", 2);
    if (bert) bert->clean = bert->chinese = true, bert->strip_accents = strip_accents, bert->lower = lower;
    Splitter *s = fine ? attn_new_splitter(t, SPLIT_SPACE) : NULL;
    if (s) s->behavior = REMOVED;
    s = s ? attn_new_splitter(t, SPLIT_PUNCTUATION) : NULL;
    if (s) s->behavior = ISOLATED;
    Decoder *d = s ? attn_new_decoder(t, DECODE_WORDPIECE) : NULL;
    if (d) d->cleanup = true;
    if (!d || !attn_string_copy(&d->text, "##", 2)) return attn_refuse_memory(report);
    model->unknown = attn_vocabulary_find(&model->vocabulary, "[UNK]", 5);
    model->continuations = attn_narrowed(&model->vocabulary, attn_whole_range(&model->vocabulary), '#');
    model->continuations = attn_narrowed(&model->vocabulary, model->continuations, '#');
    t->before = malloc(sizeof *t->before);
    t->after = malloc(sizeof *t->after);
    if (!t->before || !t->after) return attn_refuse_memory(report);
    t->before[t->n_before++] = attn_vocabulary_find(&model->vocabulary, "[CLS]", 5);
    t->after[t->n_after++] = attn_vocabulary_find(&model->vocabulary, "[SEP]", 5);
    return attn_put_pair(t, *t->before, 0, report) && attn_put_pair(t, PAIR_FIRST, 0, report) &&
           attn_put_pair(t, *t->after, 0, report) && attn_put_pair(t, PAIR_SECOND, 1, report) &&
           attn_put_pair(t, *t->after, 1, report) && attn_finish_added(t, report);
}

bool attn_put_pair(attn_tokenizer *t, int32_t id, int32_t segment, const Report *report) {
    PairPart *longer = realloc(t->pair, (t->n_pair + 1) * sizeof *longer);
    if (!longer) return attn_refuse_memory(report);
    t->pair = longer;
    t->pair[t->n_pair++] = (PairPart){id, segment};
    return true;
}

bool attn_read_charsmap(Normalizer *n, const char *table, size_t size, const Report *report) {
    uint32_t trie_bytes = 0;
    if (size == 0) return true;
    if (size >= 4) memcpy(&trie_bytes, table, 4);
    if (size < 4 || trie_bytes % 4 || trie_bytes > size - 4)
        return attn_refuse(report, "'precompiled_charsmap' is damaged");
    n->trie = trie_bytes ? malloc(trie_bytes) : NULL;
    if (n->trie) memcpy(n->trie, table + 4, trie_bytes);
    n->trie_size = n->trie ? trie_bytes / 4 : 0;
    if (trie_bytes && !n->trie) return attn_refuse_memory(report);
    const size_t begin = 4 + (size_t)trie_bytes;
    return attn_string_copy(&n->replacements, table + begin, size - begin) || attn_refuse_memory(report);
}

static int compare_scored(const void *left, const void *right) {
    const Scored *a = left, *b = right;
    return (a->score < b->score) - (a->score > b->score);
}

static bool add_merge(Model *model, size_t *capacity, Merge merge) {
    if (model->n_merges == *capacity) {
        *capacity = *capacity ? 2 * *capacity : 1024;
        Merge *merges = realloc(model->merges, *capacity * sizeof *merges);
        if (!merges) return false;
        model->merges = merges;
    }
    model->merges[model->n_merges++] = merge;
    return true;
}

/* llama2.c merges the neighbours whose joint text has the best score. Every split of a token into two tokens is
 * therefore a merge, and equal scores have equal rank. */
bool attn_merges_of_scores(Model *model, Scored *scored, size_t count, const Report *report) {
    if (scored) qsort(scored, count, sizeof *scored, compare_scored); /* NULL: there is no token */
    size_t capacity = 0;
    uint32_t rank = 0;
    for (size_t i = 0; scored && i < count; i++) {
        if (i > 0 && scored[i].score < scored[i - 1].score) rank++;
        size_t size = 0;
        const char *text = attn_vocabulary_text(&model->vocabulary, scored[i].id, &size);
        for (size_t cut = 1; text && cut < size; cut++) {
            int32_t left = attn_vocabulary_find(&model->vocabulary, text, cut);
            int32_t right = left < 0 ? -1 : attn_vocabulary_find(&model->vocabulary, text + cut, size - cut);
            if (right < 0) continue;
            Merge merge = {(uint64_t)(uint32_t)left << 32 | (uint32_t)right, rank, scored[i].id};
            if (!add_merge(model, &capacity, merge)) return attn_refuse_memory(report);
        }
    }
    attn_finish_merges(model);
    return true;
}
