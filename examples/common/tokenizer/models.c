/* models.c: WordPiece, Unigram and word level; bpe.c has the fourth. Each makes the ids of one word. */
#include <stdlib.h>

#include "internal.h"

void put_id(Ids *to, int32_t id) {
    if (to->result < 0) return;
    if (id < 0) to->result = TOKENIZER_NO_TOKEN;
    else if (to->count < to->limit) to->ids[to->count++] = id;
}

static size_t count_chars(const char *text, size_t size) {
    size_t count = 0;
    for (size_t i = 0; i < size; i++) count += (text[i] & 0xc0) != 0x80;
    return count;
}

/* The longest piece first; a word that is not all pieces is one unknown token (Schuster and Nakajima 2012). */
void wordpiece_encode(const Model *model, const char *word, size_t size, Ids *to) {
    if (count_chars(word, size) > model->most_chars) {
        put_id(to, model->unknown);
        return;
    }
    int32_t pieces[128], *all = pieces;
    size_t count = 0, used = 0;
    if (size > sizeof pieces / sizeof *pieces && !(all = malloc(size * sizeof *all))) {
        to->result = TOKENIZER_NO_MEMORY;
        return;
    }
    for (size_t at = 0; at < size; at += used) {
        TokenRange range = at == 0 ? whole_range(&model->vocabulary) : model->continuations;
        int32_t id = longest_token(&model->vocabulary, range, word + at, size - at, &used);
        if (id < 0) {
            count = 1;
            all[0] = model->unknown;
            break;
        }
        all[count++] = id;
    }
    for (size_t i = 0; i < count; i++) put_id(to, all[i]);
    if (all != pieces) free(all);
}

/* ------------------------------------------------------------------------------------- Unigram */

/* The best way to the end of some first bytes of the word. */
typedef struct {
    double score;
    size_t begin; /* of its last piece */
    size_t next;  /* where the piece behind it ends, on the best way of all */
    int32_t id;
    bool known; /* there is such a way */
} Node;

static void offer(Node *node, double score, size_t begin, int32_t id) {
    if (!node->known || score > node->score) *node = (Node){score, begin, 0, id, true};
}

/* What stands for text that no piece covers: its bytes, where the vocabulary has them all, or the unknown token. */
static void put_uncovered(const Model *model, const char *text, size_t size, Ids *to) {
    int32_t id = vocabulary_find(&model->vocabulary, text, size);
    bool as_bytes = id < 0 && model->byte_fallback;
    for (size_t i = 0; i < size && as_bytes; i++) as_bytes = model->byte_ids[(unsigned char)text[i]] >= 0;
    if (!as_bytes) put_id(to, id >= 0 ? id : model->unknown);
    for (size_t i = 0; i < size && as_bytes; i++) put_id(to, model->byte_ids[(unsigned char)text[i]]);
}

static void put_path(const Model *model, const char *word, Node *nodes, size_t size, Ids *to) {
    for (size_t end = size; end > 0; end = nodes[end].begin) nodes[nodes[end].begin].next = end;
    for (size_t at = 0, end; at < size; at = end) {
        end = nodes[at].next;
        if (nodes[end].id != model->unknown) {
            put_id(to, nodes[end].id);
            continue;
        }
        while (end < size && nodes[nodes[end].next].id == model->unknown) end = nodes[end].next; /* they are one */
        put_uncovered(model, word + at, end - at, to);
    }
}

/* The pieces whose scores sum to the most (Kudo 2018, section 3.2; Viterbi). A character that is no piece costs ten
 * more than the worst piece, as in sentencepiece. */
void unigram_encode(const Model *model, const char *word, size_t size, Ids *to) {
    Node *nodes = calloc(size + 1, sizeof *nodes);
    if (!nodes) {
        to->result = TOKENIZER_NO_MEMORY;
        return;
    }
    const Vocabulary *v = &model->vocabulary;
    for (size_t at = 0, step; at < size; at += step) {
        char_at(word + at, size - at, &step);
        double here = nodes[at].score;
        bool single = false;
        TokenRange range = whole_range(v);
        for (size_t end = at; end < size;) {
            range = narrowed(v, range, word[end++]);
            if (range.low == range.high) break;
            int32_t id = token_ending(v, range);
            if (id < 0) continue;
            offer(&nodes[end], here + model->scores[id], at, id);
            single |= end - at == step;
        }
        if (!single && model->unknown < 0) to->result = TOKENIZER_NO_TOKEN;
        if (!single) offer(&nodes[at + step], here + (model->least_score - 10), at, model->unknown);
    }
    if (to->result >= 0) put_path(model, word, nodes, size, to);
    free(nodes);
}

void model_encode(const Model *model, const char *word, size_t size, Ids *to) {
    if (size == 0 || to->result < 0 || to->count == to->limit) return;
    switch (model->kind) {
    case MODEL_WORDPIECE: wordpiece_encode(model, word, size, to); return;
    case MODEL_BPE: bpe_encode(model, word, size, to); return;
    case MODEL_UNIGRAM: unigram_encode(model, word, size, to); return;
    case MODEL_WORDLEVEL: {
        int32_t id = vocabulary_find(&model->vocabulary, word, size);
        put_id(to, id >= 0 ? id : model->unknown);
    }
    }
}
