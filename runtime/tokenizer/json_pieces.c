/* json_pieces.c: reads what attnc writes into a tokenizer.json of a SentencePiece file: a model and a normalizer of the
 * type `SentencePiece`, which do what that library does.
 *
 *   "model": {"type": "SentencePiece", "pairs": true, "named": false, "byte_fallback": true, "unk_token": "<unk>",
 *             "pieces": [["\u2581a", -1.5, 1], ...], "vocab": {"\u2581a": 3, ...}}
 *
 * The third item of a piece is its type, as numbered in sentencepiece_model.proto. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn_tokenizer_json.h"

enum { PIECE_NORMAL = 1, PIECE_USERS = 4, PIECE_BYTE = 6 };

static bool read_piece(Model *model, const cJSON *item, int32_t index, const Report *report) {
    PieceModel *pieces = &model->pieces;
    const cJSON *text = cJSON_IsArray(item) ? item->child : NULL, *score = text ? text->next : NULL;
    const cJSON *type = score ? score->next : NULL;
    int64_t kind;
    if (!type || !cJSON_IsString(text) || !*text->valuestring || !cJSON_IsNumber(score) ||
        !(fabs(score->valuedouble) <= (double)FLT_MAX) || !attn_integer_of(type, PIECE_NORMAL, PIECE_BYTE, &kind))
        return attn_refuse(report, "entry %d of 'pieces' is no text with a score and a type", (int)index);
    const size_t size = strlen(text->valuestring);
    const int32_t id = attn_vocabulary_find(&model->vocabulary, text->valuestring, size);
    pieces->ids[index] = id >= 0 ? id : model->unknown;
    pieces->scores[index] = (float)score->valuedouble;
    pieces->users[index] = kind == PIECE_USERS;
    if (kind == PIECE_NORMAL) {
        pieces->least = fminf(pieces->least, pieces->scores[index]);
        pieces->most = fmaxf(pieces->most, pieces->scores[index]);
    }
    if (kind != PIECE_NORMAL && kind != PIECE_USERS) return true; /* never found in a text */
    return (attn_vocabulary_add(&pieces->found, text->valuestring, size, index) &&
            (kind == PIECE_NORMAL || attn_vocabulary_add(&pieces->own, text->valuestring, size, index))) ||
           attn_refuse_memory(report);
}

bool attn_read_pieces(Model *model, const cJSON *node, const Report *report) {
    PieceModel *pieces = &model->pieces;
    const cJSON *list = attn_member(node, "pieces"), *item;
    const int count = cJSON_GetArraySize(list);
    model->kind = MODEL_PIECES;
    if (!cJSON_IsArray(list) || count == 0 || count >= MOST_ID)
        return attn_refuse(report, "the model has no 'pieces' with scores");
    pieces->pairs = attn_flag_of(node, "pairs", false);
    pieces->named = attn_flag_of(node, "named", false);
    model->byte_fallback = attn_flag_of(node, "byte_fallback", false);
    if (model->byte_fallback) attn_find_byte_tokens(model);
    pieces->ids = malloc((size_t)count * sizeof *pieces->ids);
    pieces->scores = malloc((size_t)count * sizeof *pieces->scores);
    pieces->users = malloc((size_t)count * sizeof *pieces->users);
    if (!pieces->ids || !pieces->scores || !pieces->users) return attn_refuse_memory(report);
    pieces->least = FLT_MAX;
    pieces->most = FLT_MIN; /* as sentencepiece begins, so that it is above all scores that are not positive */
    int32_t next = 0;
    cJSON_ArrayForEach(item, list) {
        if (!read_piece(model, item, next++, report)) return false;
    }
    return attn_finish_vocabulary(&pieces->found, false, report) && attn_finish_vocabulary(&pieces->own, false, report);
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
        attn_put_bytes(to, bytes, (size_t)(3 - pad));
    }
    return true;
}

bool attn_copy_charsmap(Normalizer *n, const cJSON *node, const Report *report) {
    const char *base64 = attn_text_of(node, "precompiled_charsmap");
    Buffer table = {0};
    bool fine = !base64 || put_base64(&table, base64) || attn_refuse(report, "'precompiled_charsmap' is damaged");
    if (fine && table.failed) fine = attn_refuse_memory(report);
    fine = fine && attn_read_charsmap(n, table.data, table.size, report);
    attn_buffer_free(&table);
    return fine;
}

bool attn_read_pieces_normalizer(attn_tokenizer *t, const cJSON *node, const Report *report) {
    Normalizer *n = attn_new_normalizer(t, NORMALIZE_PIECES);
    if (!n) return attn_refuse_memory(report);
    n->longest = true;
    n->kept = &t->model.pieces.own;
    n->prefix = attn_flag_of(node, "add_dummy_prefix", true);
    n->tidy = attn_flag_of(node, "remove_extra_whitespaces", true);
    n->escape = attn_flag_of(node, "escape_whitespaces", true);
    return attn_copy_charsmap(n, node, report);
}
