/* build.c: the parts of a tokenizer that every reader of files makes, and its refusals. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attn_tokenizer_internal.h"

enum { MOST_WORD_CHARS = 100 };

const char attn_gpt2_words[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

/* Drops bytes that are no characters: `%.40s` and the end of the message's room may cut one. */
static void drop_parts(char *text) {
    size_t left = strlen(text);
    char *to = text;
    for (const char *from = text; left > 0;) {
        size_t size = 1;
        while (size < 4 && size < left && !attn_is_utf8(from, size)) size++;
        const bool whole = attn_is_utf8(from, size);
        if (!whole) size = 1;
        if (whole) memmove(to, from, size), to += size;
        from += size;
        left -= size;
    }
    *to = '\0';
}

bool attn_refuse(const Report *report, const char *format, ...) {
    if (report->text && report->text_size > 0) {
        int used = snprintf(report->text, report->text_size, "%s: ", report->path);
        if (used >= 0 && (size_t)used < report->text_size) {
            va_list arguments;
            va_start(arguments, format);
            vsnprintf(report->text + used, report->text_size - (size_t)used, format, arguments);
            va_end(arguments);
            drop_parts(report->text + used);
        }
        for (char *c = report->text; *c; c++)
            if ((unsigned char)*c < ' ' || *c == 0x7f) *c = '?'; /* names from a file must not control the terminal */
            else if (*c == '\xc2' && (unsigned char)c[1] < 0xa0) *c = c[1] = '?'; /* U+0080 to U+009F */
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

static int shown_size(const Token *token) { return token->size < 80 ? (int)token->size : 80; }

bool attn_finish_vocabulary(Vocabulary *v, bool last_holds, const Report *report) {
    size_t twice = 0;
    if (attn_vocabulary_sort(v, last_holds, &twice)) return true;
    if (!twice) return attn_refuse_memory(report);
    const Token *token = &v->sorted[twice];
    int32_t a = token[-1].id, b = token->id;
    return attn_refuse(report, "the token '%.*s' stands there twice, as %d and %d", shown_size(token),
                       v->text.data + token->offset, a < b ? a : b, a < b ? b : a);
}

bool attn_check_ids(const Vocabulary *v, const Report *report) {
    for (size_t i = 0; i < v->count; i++) {
        const Token *a = &v->sorted[i], *b = &v->sorted[v->by_id[a->id]];
        if (a != b)
            return attn_refuse(report, "the tokens '%.*s' and '%.*s' have the same id, %d", shown_size(a),
                               v->text.data + a->offset, shown_size(b), v->text.data + b->offset, a->id);
    }
    return true;
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
    if (t->n_added == t->added_capacity) {
        const size_t capacity = t->added_capacity ? 2 * t->added_capacity : 64;
        AddedToken *added = realloc(t->added, capacity * sizeof *added);
        if (!added) return attn_refuse_memory(report);
        t->added = added;
        t->added_capacity = capacity;
    }
    t->added[t->n_added] = token;
    if (!attn_vocabulary_add(&t->added_names, name, size, (int32_t)t->n_added++)) return attn_refuse_memory(report);
    if (token.special && !attn_vocabulary_add(&t->special_names, name, size, 0)) return attn_refuse_memory(report);
    return true;
}

/* Gives the added tokens their ids as `tokenizers` does, and not as the file says: the id of the vocabulary
 * or, for a new name, one more than the last, counted from the number of entries. Of tokens with one name, the last one
 * holds, and of tokens with one id, too. */
static bool number_added(attn_tokenizer *t) {
    const Vocabulary *v = &t->model.vocabulary, *names = &t->added_names;
    int32_t next = t->model.kind == MODEL_UNIGRAM ? v->size : (int32_t)v->count;
    for (size_t i = 0; i < t->n_added; i++) t->added[i].id = -1;
    for (size_t i = 0; i < t->n_added; i++) {
        const Token *name = &names->sorted[names->by_id[i]];
        AddedToken *last = &t->added[name->id];
        if (last->id < 0) last->id = attn_vocabulary_find(v, names->text.data + name->offset, name->size);
        if (last->id < 0) last->id = next++;
        if (last->id > t->most_added_id) t->most_added_id = last->id;
        last->shown_normal |= t->added[i].normalized;
    }
    const size_t size = (size_t)t->most_added_id + 1;
    t->added_of_id = malloc((size + 1) * sizeof *t->added_of_id);
    if (!t->added_of_id) return false;
    memset(t->added_of_id, -1, (size + 1) * sizeof *t->added_of_id);
    for (size_t i = 0; i < t->n_added; i++)
        if (t->added[i].id >= 0) t->added_of_id[t->added[i].id] = (int32_t)i; /* only the last of equal names has one */
    return true;
}

/* Puts the text of an added token into t->shown, and into the set of tokens that are searched in the same text: of a
 * normalized token it is the normalized name. */
static bool place_added(attn_tokenizer *t, int32_t index, Buffer *text, Buffer *scratch, const Report *report) {
    AddedToken *token = &t->added[index];
    size_t size = 0;
    const char *name = attn_vocabulary_text(&t->added_names, index, &size);
    text->size = 0;
    attn_put_bytes(text, name, size);
    Limits limits = attn_limits_of(size);
    int status = token->shown_normal ? attn_normalize(t->normalizers, t->n_normalizers, text, scratch, &limits) : 0;
    if (status)
        return attn_refuse(report, "the added token '%.*s': %s", (int)(size < 80 ? size : 80), name,
                           attn_tokenizer_error_text(status));
    token->shown = t->shown.size;
    token->shown_size = text->size;
    attn_put_bytes(&t->shown, text->data, text->size);
    if (text->failed || t->shown.failed) return attn_refuse_memory(report);
    AddedSet *set = token->normalized ? &t->normalized : &t->raw;
    const char *searched = token->normalized ? text->data : name;
    if (token->normalized) size = text->size;
    if (token->unseen || size == 0) return true;
    set->begins[(unsigned char)*searched] = true;
    return attn_vocabulary_add(&set->texts, searched, size, index) || attn_refuse_memory(report);
}

static bool sort_set(attn_tokenizer *t, Vocabulary *texts, const Report *report) {
    size_t twice = 0, sizes[2] = {0};
    if (attn_vocabulary_sort(texts, false, &twice)) return true;
    if (!twice) return attn_refuse_memory(report);
    const char *names[2];
    for (size_t i = 0; i < 2; i++) {
        names[i] = attn_vocabulary_text(&t->added_names, texts->sorted[twice - i].id, &sizes[i]);
        if (sizes[i] > 60) sizes[i] = 60;
    }
    return attn_refuse(report, "the added tokens '%.*s' and '%.*s' become the same text when they are normalized",
                       (int)sizes[1], names[1], (int)sizes[0], names[0]);
}

bool attn_finish_added(attn_tokenizer *t, const Report *report) {
    Buffer text = {0}, scratch = {0};
    bool fine = attn_finish_vocabulary(&t->added_names, true, report) &&
                attn_finish_vocabulary(&t->special_names, true, report) &&
                (number_added(t) || attn_refuse_memory(report));
    for (int32_t id = 0; fine && id <= t->most_added_id; id++)
        if (t->added_of_id[id] >= 0) fine = place_added(t, t->added_of_id[id], &text, &scratch, report);
    attn_buffer_free(&text);
    attn_buffer_free(&scratch);
    return fine && sort_set(t, &t->raw.texts, report) && sort_set(t, &t->normalized.texts, report);
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
        AddedToken token = {.special = true};
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
