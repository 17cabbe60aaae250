/* build.c: the parts of a tokenizer that every reader of files makes, and its refusals. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attn_tokenizer_internal.h"

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
