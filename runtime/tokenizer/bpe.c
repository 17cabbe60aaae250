/* bpe.c: byte-pair encoding (Sennrich et al. 2016, algorithm 1). The neighbouring pair that was learned first becomes
 * one token, the leftmost of equal pairs first, until no known pair is left. The pairs are in a heap, so a word of n
 * characters takes n log n steps. */
#include <stdlib.h>
#include <string.h>

#include "attn_tokenizer_internal.h"

typedef struct {
    int32_t id;
    int32_t previous, next; /* indices of symbols, or -1 */
    bool gone;              /* whether it was merged into the symbol before it */
} Symbol;

typedef struct {
    Symbol *symbols;
    size_t count;
    Heap heap; /* of ranks; `made_of` holds the ids of both symbols */
    bool failed;
} Word;

static const Merge *find_merge(const Model *model, uint64_t pair) {
    size_t low = 0, high = model->n_merges;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (model->merges[middle].pair < pair) low = middle + 1;
        else high = middle;
    }
    return low < model->n_merges && model->merges[low].pair == pair ? &model->merges[low] : NULL;
}

static uint64_t pair_of(const Word *word, int32_t left) {
    uint64_t l = (uint32_t)word->symbols[left].id, r = (uint32_t)word->symbols[word->symbols[left].next].id;
    return l << 32 | r;
}

static void offer(const Model *model, Word *word, int32_t left) {
    if (left < 0 || word->symbols[left].next < 0) return;
    uint64_t pair = pair_of(word, left);
    const Merge *merge = find_merge(model, pair);
    if (merge) attn_heap_push(&word->heap, (Candidate){merge->rank, left, merge->id, pair});
}

static void merge_all(const Model *model, Word *word) {
    for (size_t i = 0; i + 1 < word->count; i++) offer(model, word, (int32_t)i);
    while (word->heap.count && !word->heap.failed) {
        Candidate best = attn_heap_pop(&word->heap);
        Symbol *left = &word->symbols[best.left];
        if (left->gone || left->next < 0 || pair_of(word, best.left) != best.made_of) continue; /* out of date */
        Symbol *right = &word->symbols[left->next];
        left->id = best.token;
        left->next = right->next;
        right->gone = true;
        if (left->next >= 0) word->symbols[left->next].previous = best.left;
        offer(model, word, left->previous);
        offer(model, word, best.left);
    }
}

/* ------------------------------------------------------------------------------------- the first symbols */

static void add_symbol(Word *word, int32_t id) { word->symbols[word->count++].id = id; }

/* The id of a character, or -1, with the model's prefix inside a word and its suffix at the end of a word. */
static int32_t char_id(const Model *model, const char *text, size_t size, bool first, bool last, Buffer *name) {
    const String *prefix = &model->prefix, *suffix = &model->suffix;
    if ((first || !prefix->size) && (!last || !suffix->size))
        return attn_vocabulary_find(&model->vocabulary, text, size);
    name->size = 0;
    if (!first) attn_put_bytes(name, prefix->data, prefix->size);
    attn_put_bytes(name, text, size);
    if (last) attn_put_bytes(name, suffix->data, suffix->size);
    return attn_vocabulary_find(&model->vocabulary, name->data, name->size);
}

/* Adds the bytes of a character as symbols, if the vocabulary has a token for each of them. */
static bool add_bytes(const Model *model, Word *word, const char *text, size_t size) {
    if (!model->byte_fallback) return false;
    for (size_t i = 0; i < size; i++)
        if (model->byte_ids[(unsigned char)text[i]] < 0) return false;
    for (size_t i = 0; i < size; i++) add_symbol(word, model->byte_ids[(unsigned char)text[i]]);
    return true;
}

/* Adds the characters of a word as symbols. An unknown character is added late, since unknown neighbours may be fused
 * with it; byte tokens of later characters come before it, as in `tokenizers`. Without an unknown token, the character
 * is omitted. */
static void add_chars(const Model *model, Word *word, const char *text, size_t size, Buffer *name) {
    bool waiting = false;
    for (size_t at = 0, step; at < size; at += step) {
        attn_char_at(text + at, size - at, &step);
        int32_t id = char_id(model, text + at, step, at == 0, at + step == size, name);
        if (id >= 0) {
            if (waiting) add_symbol(word, model->unknown);
            waiting = false;
            add_symbol(word, id);
        } else if (!add_bytes(model, word, text + at, step) && model->unknown >= 0) {
            if (waiting && !model->fuse_unknown) add_symbol(word, model->unknown);
            waiting = true;
        }
    }
    if (waiting) add_symbol(word, model->unknown);
    for (size_t i = 0; i < word->count; i++) {
        word->symbols[i].previous = (int32_t)i - 1;
        word->symbols[i].next = i + 1 < word->count ? (int32_t)i + 1 : -1;
    }
}

void attn_bpe_encode(const Model *model, const char *text, size_t size, Ids *to) {
    if (model->ignore_merges) {
        int32_t id = attn_vocabulary_find(&model->vocabulary, text, size);
        if (id >= 0) {
            attn_put_id(to, id);
            return;
        }
    }
    Word word = {.symbols = calloc(size, sizeof *word.symbols)};
    Buffer name = {0};
    word.failed = !word.symbols;
    if (!word.failed) add_chars(model, &word, text, size, &name);
    if (!word.failed && !name.failed) merge_all(model, &word);
    if (word.failed || word.heap.failed || name.failed) to->result = ATTN_TOKENIZER_NO_MEMORY;
    for (size_t i = 0; i < word.count; i++)
        if (!word.symbols[i].gone) attn_put_id(to, word.symbols[i].id);
    attn_buffer_free(&name);
    free(word.symbols);
    free(word.heap.list);
}
