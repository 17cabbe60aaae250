/* pieces.c: the models of SentencePiece (Kudo and Richardson 2018), with the same ids as the library itself: Unigram
 * with scores of single precision, and pairs that are looked up by their joint text (google/sentencepiece,
 * src/unigram_model.cc, src/bpe_model.cc and src/sentencepiece_processor.cc). models.c and bpe.c do what `tokenizers`
 * does. */
#include <stdlib.h>
#include <string.h>

#include "attn_tokenizer_internal.h"

void attn_pieces_model_free(PieceModel *pieces) {
    attn_vocabulary_free(&pieces->found);
    attn_vocabulary_free(&pieces->own);
    free(pieces->ids);
    free(pieces->scores);
    free(pieces->users);
}

/* ------------------------------------------------------------------------------------- ids */

/* What is written of a text; unknown parts that are side by side are one. */
typedef struct {
    const Model *model;
    const char *text;
    size_t begin, end; /* the unknown part that is not yet written */
    Ids *to;
} Writing;

static void put_unknown(Writing *w) {
    const Model *model = w->model;
    int32_t id = -1;
    if (w->begin == w->end) return;
    if (model->pieces.named) id = attn_vocabulary_find(&model->vocabulary, w->text + w->begin, w->end - w->begin);
    attn_put_id(w->to, id >= 0 ? id : model->unknown);
    w->begin = w->end;
}

/* Writes the id of text[begin .. end), of which `piece` is the index, or -1. */
static void put_part(Writing *w, size_t begin, size_t end, int32_t piece) {
    const Model *model = w->model;
    if (piece < 0 && !model->byte_fallback) {
        if (w->begin == w->end) w->begin = begin;
        w->end = end;
        return;
    }
    put_unknown(w);
    if (piece >= 0) attn_put_id(w->to, model->pieces.ids[piece]);
    for (size_t i = begin; piece < 0 && i < end; i++) {
        const int32_t id = model->byte_ids[(unsigned char)w->text[i]];
        attn_put_id(w->to, id >= 0 ? id : model->unknown);
    }
}

/* ------------------------------------------------------------------------------------- Unigram */

/* The best segmentation of a prefix of the text. */
typedef struct {
    size_t begin; /* of its last piece */
    size_t next;  /* end of the piece that follows in the best segmentation of the text */
    float score;
    int32_t piece;
    bool known; /* whether the prefix has a segmentation */
} Node;

static void offer(Node *node, float score, size_t begin, int32_t piece) {
    if (!node->known || score > node->score) *node = (Node){begin, 0, score, piece, true};
}

static void segment(const PieceModel *pieces, const char *text, size_t size, Node *nodes) {
    const float unknown = pieces->least - 10;
    for (size_t at = 0, step; at < size; at += step) {
        attn_char_at(text + at, size - at, &step);
        const float here = nodes[at].score;
        bool single = false;
        TokenRange range = attn_whole_range(&pieces->found);
        for (size_t end = at; end < size;) {
            range = attn_narrowed(&pieces->found, range, text[end++]);
            if (range.low == range.high) break;
            const int32_t piece = attn_token_ending(&pieces->found, range);
            if (piece < 0) continue;
            const double own = (double)((float)(end - at) * pieces->most) - 0.1; /* better than most pieces */
            const double score = pieces->users[piece] ? own : (double)pieces->scores[piece];
            offer(&nodes[end], (float)(score + (double)here), at, piece);
            single |= end - at == step;
        }
        if (!single) offer(&nodes[at + step], unknown + here, at, -1);
    }
}

static void encode_unigram(Writing *w, size_t size) {
    Node *nodes = calloc(size + 1, sizeof *nodes);
    if (!nodes) {
        w->to->result = ATTN_TOKENIZER_NO_MEMORY;
        return;
    }
    segment(&w->model->pieces, w->text, size, nodes);
    for (size_t end = size; end > 0; end = nodes[end].begin) nodes[nodes[end].begin].next = end;
    for (size_t at = 0; at < size; at = nodes[at].next) put_part(w, at, nodes[at].next, nodes[nodes[at].next].piece);
    free(nodes);
}

/* ------------------------------------------------------------------------------------- pairs */

typedef struct {
    size_t begin, size; /* of its text; a size of 0: it was joined to the symbol before it */
    int32_t previous, next, piece; /* indices, or -1 */
    bool own;
} Symbol;

typedef struct {
    const PieceModel *pieces;
    const char *text;
    Symbol *symbols;
    Heap heap; /* of negative scores; `made_of` is the size of both symbols */
} Joining;

static void offer_pair(Joining *j, int32_t left, int32_t right) {
    if (left < 0 || right < 0 || j->symbols[left].own || j->symbols[right].own) return;
    const size_t size = j->symbols[left].size + j->symbols[right].size;
    const int32_t piece = attn_vocabulary_find(&j->pieces->found, j->text + j->symbols[left].begin, size);
    if (piece >= 0) attn_heap_push(&j->heap, (Candidate){-(double)j->pieces->scores[piece], left, piece, size});
}

/* Cuts the text into characters and pieces of the user; returns their number. */
static int32_t cut(Joining *j, size_t size) {
    const PieceModel *pieces = j->pieces;
    int32_t count = 0;
    for (size_t at = 0, step; at < size; at += step) {
        const TokenRange whole = attn_whole_range(&pieces->own);
        const bool own = attn_longest_token(&pieces->own, whole, j->text + at, size - at, &step) >= 0;
        if (!own) attn_char_at(j->text + at, size - at, &step);
        const int32_t piece = attn_vocabulary_find(&pieces->found, j->text + at, step);
        j->symbols[count] = (Symbol){at, step, count - 1, count + 1, piece, own};
        count++;
    }
    j->symbols[count - 1].next = -1;
    return count;
}

static void join_all(Joining *j, int32_t count) {
    for (int32_t i = 1; i < count; i++) offer_pair(j, i - 1, i);
    while (j->heap.count && !j->heap.failed) {
        const Candidate best = attn_heap_pop(&j->heap);
        Symbol *left = &j->symbols[best.left];
        if (!left->size || left->next < 0) continue;
        Symbol *right = &j->symbols[left->next];
        if (left->size + right->size != best.made_of) continue; /* out of date */
        left->size += right->size;
        left->piece = best.token;
        left->next = right->next;
        if (left->next >= 0) j->symbols[left->next].previous = best.left;
        right->size = 0;
        offer_pair(j, left->previous, best.left);
        offer_pair(j, best.left, left->next);
    }
}

static void encode_pairs(Writing *w, size_t size) {
    Joining j = {.pieces = &w->model->pieces, .text = w->text, .symbols = calloc(size, sizeof *j.symbols)};
    if (j.symbols) join_all(&j, cut(&j, size));
    if (!j.symbols || j.heap.failed) w->to->result = ATTN_TOKENIZER_NO_MEMORY;
    for (int32_t i = 0; i >= 0 && w->to->result >= 0; i = j.symbols[i].next)
        put_part(w, j.symbols[i].begin, j.symbols[i].begin + j.symbols[i].size, j.symbols[i].piece);
    free(j.symbols);
    free(j.heap.list);
}

void attn_pieces_encode(const Model *model, const char *text, size_t size, Ids *to) {
    Writing w = {.model = model, .text = text, .to = to};
    if (model->pieces.pairs) encode_pairs(&w, size);
    else encode_unigram(&w, size);
    put_unknown(&w);
}
