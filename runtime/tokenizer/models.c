/* models.c: the models WordPiece, Unigram and word level; bpe.c and pieces.c have the others. Each encodes one
 * word. */
#include <stdlib.h>

#include "attn_tokenizer_internal.h"

static size_t count_chars(const char *text, size_t size) {
    size_t count = 0;
    for (size_t i = 0; i < size; i++) count += (text[i] & 0xc0) != 0x80;
    return count;
}

/* Takes the longest piece first. A word that is not covered by pieces is one unknown token (Schuster and Nakajima
 * 2012). */
void attn_wordpiece_encode(const Model *model, const char *word, size_t size, Ids *to) {
    if (count_chars(word, size) > model->most_chars) {
        attn_put_id(to, model->unknown);
        return;
    }
    int32_t pieces[128], *all = pieces;
    size_t count = 0, used = 0;
    if (size > sizeof pieces / sizeof *pieces && !(all = malloc(size * sizeof *all))) {
        to->result = ATTN_TOKENIZER_NO_MEMORY;
        return;
    }
    for (size_t at = 0; at < size; at += used) {
        TokenRange range = at == 0 ? attn_whole_range(&model->vocabulary) : model->continuations;
        int32_t id = attn_longest_token(&model->vocabulary, range, word + at, size - at, &used);
        if (id < 0) {
            count = 1;
            all[0] = model->unknown;
            break;
        }
        all[count++] = id;
    }
    for (size_t i = 0; i < count; i++) attn_put_id(to, all[i]);
    if (all != pieces) free(all);
}

/* ------------------------------------------------------------------------------------- Unigram */

/* The best segmentation of a prefix of the word. */
typedef struct {
    double score;
    size_t begin; /* begin of its last piece */
    size_t next;  /* end of the piece that follows in the best segmentation of the word */
    int32_t id;
    bool known; /* whether the prefix has a segmentation */
} Node;

static void offer(Node *node, double score, size_t begin, int32_t id) {
    if (!node->known || score > node->score) *node = (Node){score, begin, 0, id, true};
}

/* Encodes text that no piece covers: its bytes if the vocabulary has tokens for all of them, or the unknown token. */
static void put_uncovered(const Model *model, const char *text, size_t size, Ids *to) {
    int32_t id = attn_vocabulary_find(&model->vocabulary, text, size);
    bool as_bytes = id < 0 && model->byte_fallback;
    for (size_t i = 0; i < size && as_bytes; i++) as_bytes = model->byte_ids[(unsigned char)text[i]] >= 0;
    if (!as_bytes) attn_put_id(to, id >= 0 ? id : model->unknown);
    for (size_t i = 0; i < size && as_bytes; i++) attn_put_id(to, model->byte_ids[(unsigned char)text[i]]);
}

static void put_path(const Model *model, const char *word, Node *nodes, size_t size, Ids *to) {
    for (size_t end = size; end > 0; end = nodes[end].begin) nodes[nodes[end].begin].next = end;
    for (size_t at = 0, end; at < size; at = end) {
        end = nodes[at].next;
        if (nodes[end].id != model->unknown) {
            attn_put_id(to, nodes[end].id);
            continue;
        }
        /* fuses unknown neighbours */
        while (end < size && nodes[nodes[end].next].id == model->unknown) end = nodes[end].next;
        put_uncovered(model, word + at, end - at, to);
    }
}

/* Finds the segmentation with the largest sum of scores by the Viterbi algorithm (Kudo 2018, section 3.2). A character
 * that is no piece scores ten less than the worst piece, as in sentencepiece. */
void attn_unigram_encode(const Model *model, const char *word, size_t size, Ids *to) {
    Node *nodes = calloc(size + 1, sizeof *nodes);
    if (!nodes) {
        to->result = ATTN_TOKENIZER_NO_MEMORY;
        return;
    }
    const Vocabulary *v = &model->vocabulary;
    for (size_t at = 0, step; at < size; at += step) {
        attn_char_at(word + at, size - at, &step);
        double here = nodes[at].score;
        bool single = false;
        TokenRange range = attn_whole_range(v);
        for (size_t end = at; end < size;) {
            range = attn_narrowed(v, range, word[end++]);
            if (range.low == range.high) break;
            int32_t id = attn_token_ending(v, range);
            if (id < 0) continue;
            offer(&nodes[end], here + model->scores[id], at, id);
            single |= end - at == step;
        }
        if (!single && model->unknown < 0) to->result = ATTN_TOKENIZER_NO_TOKEN;
        if (!single) offer(&nodes[at + step], here + (model->least_score - 10), at, model->unknown);
    }
    if (to->result >= 0) put_path(model, word, nodes, size, to);
    free(nodes);
}

void attn_model_encode(const Model *model, const char *word, size_t size, Ids *to) {
    if (size == 0 || to->result < 0 || attn_ids_full(to)) return;
    switch (model->kind) {
    case MODEL_WORDPIECE: attn_wordpiece_encode(model, word, size, to); return;
    case MODEL_BPE: attn_bpe_encode(model, word, size, to); return;
    case MODEL_UNIGRAM: attn_unigram_encode(model, word, size, to); return;
    case MODEL_PIECES: attn_pieces_encode(model, word, size, to); return;
    case MODEL_WORDLEVEL: {
        int32_t id = attn_vocabulary_find(&model->vocabulary, word, size);
        attn_put_id(to, id >= 0 ? id : model->unknown);
    }
    }
}
