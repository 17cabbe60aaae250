/* json_model.c: reads the member `model` of a tokenizer.json, which contains the vocabulary, merges and scores. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn_tokenizer_json.h"

/* Reads {"token": id, ...}. */
static bool read_vocabulary(Vocabulary *v, const cJSON *vocab, const Report *report) {
    if (!cJSON_IsObject(vocab)) return attn_refuse(report, "the model has no 'vocab' of names and ids");
    for (const cJSON *item = vocab->child; item; item = item->next) {
        int64_t id;
        if (!attn_integer_of(item, 0, MOST_ID - 1, &id))
            return attn_refuse(report, "the token '%.40s' has no id", item->string);
        if (!attn_vocabulary_add(v, item->string, strlen(item->string), (int32_t)id)) return attn_refuse_memory(report);
    }
    return attn_finish_vocabulary(v, false, report) && attn_check_ids(v, report);
}

static bool read_unknown(Model *model, const cJSON *node, bool needed, const Report *report) {
    const char *name = attn_text_of(node, "unk_token");
    model->unknown = name ? attn_vocabulary_find(&model->vocabulary, name, strlen(name)) : -1;
    if (name && model->unknown < 0)
        return attn_refuse(report, "the unknown token '%.40s' is not in the vocabulary", name);
    return name || !needed || attn_refuse(report, "the model has no 'unk_token'");
}

static bool read_wordpiece(Model *model, const cJSON *node, const Report *report) {
    int64_t most = 100;
    const cJSON *given = attn_member(node, "max_input_chars_per_word");
    model->kind = MODEL_WORDPIECE;
    if (given && !attn_integer_of(given, 0, INT32_MAX, &most))
        return attn_refuse(report, "'max_input_chars_per_word' is no number of characters");
    model->most_chars = (size_t)most;
    if (!read_vocabulary(&model->vocabulary, attn_member(node, "vocab"), report) ||
        !attn_copy_text(&model->prefix, node, "continuing_subword_prefix", "##", report))
        return false;
    model->continuations = attn_whole_range(&model->vocabulary);
    for (size_t i = 0; i < model->prefix.size; i++)
        model->continuations = attn_narrowed(&model->vocabulary, model->continuations, model->prefix.data[i]);
    return read_unknown(model, node, true, report);
}

static bool read_wordlevel(Model *model, const cJSON *node, const Report *report) {
    model->kind = MODEL_WORDLEVEL;
    return read_vocabulary(&model->vocabulary, attn_member(node, "vocab"), report) &&
           read_unknown(model, node, false, report);
}

/* A model as attnc writes of a SentencePiece file, with the ids of its pieces. */
static bool read_named_pieces(Model *model, const cJSON *node, const Report *report) {
    return read_vocabulary(&model->vocabulary, attn_member(node, "vocab"), report) &&
           read_unknown(model, node, true, report) && attn_read_pieces(model, node, report);
}

/* ------------------------------------------------------------------------------------- byte-pair encoding */

/* Finds the two texts of "a b" or ["a", "b"]. */
static bool merge_parts(const cJSON *item, const char **left, size_t *left_size, const char **right) {
    if (cJSON_IsString(item)) {
        const char *space = strchr(item->valuestring, ' ');
        if (!space || strchr(space + 1, ' ')) return false;
        *left = item->valuestring;
        *left_size = (size_t)(space - item->valuestring);
        *right = space + 1;
        return true;
    }
    const cJSON *first = cJSON_IsArray(item) ? item->child : NULL, *second = first ? first->next : NULL;
    if (!second || second->next || !cJSON_IsString(first) || !cJSON_IsString(second)) return false;
    *left = first->valuestring;
    *left_size = strlen(first->valuestring);
    *right = second->valuestring;
    return true;
}

static bool read_merge(Model *model, const cJSON *item, size_t rank, Buffer *joint, const Report *report) {
    const char *left, *right;
    size_t left_size;
    if (!merge_parts(item, &left, &left_size, &right))
        return attn_refuse(report, "merge %zu is not of two tokens", rank);
    return attn_put_merge(model, left, left_size, right, strlen(right), rank, joint, report);
}

static bool read_bpe(Model *model, const cJSON *node, const Report *report) {
    const cJSON *merges = attn_member(node, "merges"), *dropout = attn_member(node, "dropout"), *item;
    model->kind = MODEL_BPE;
    if (dropout && !(cJSON_IsNumber(dropout) && !(dropout->valuedouble > 0)))
        return attn_refuse(report, "'dropout' draws ids at random: not done here");
    if (!cJSON_IsArray(merges)) return attn_refuse(report, "the model has no 'merges'");
    model->fuse_unknown = attn_flag_of(node, "fuse_unk", false);
    model->byte_fallback = attn_flag_of(node, "byte_fallback", false);
    model->ignore_merges = attn_flag_of(node, "ignore_merges", false);
    if (!read_vocabulary(&model->vocabulary, attn_member(node, "vocab"), report) ||
        !read_unknown(model, node, false, report) ||
        !attn_copy_text(&model->prefix, node, "continuing_subword_prefix", "", report) ||
        !attn_copy_text(&model->suffix, node, "end_of_word_suffix", "", report))
        return false;
    if (model->byte_fallback && (model->prefix.size || model->suffix.size))
        return attn_refuse(report, "'byte_fallback' together with a prefix or suffix of pieces is not known here");
    if (model->byte_fallback) attn_find_byte_tokens(model);
    model->merges = malloc(((size_t)cJSON_GetArraySize(merges) + 1) * sizeof *model->merges);
    if (!model->merges) return attn_refuse_memory(report);
    Buffer joint = {0};
    bool fine = true;
    size_t rank = 0;
    cJSON_ArrayForEach(item, merges) {
        fine = fine && read_merge(model, item, rank++, &joint, report);
    }
    attn_buffer_free(&joint);
    attn_finish_merges(model);
    return fine;
}

/* ------------------------------------------------------------------------------------- Unigram */

static bool read_unigram(Model *model, const cJSON *node, const Report *report) {
    const cJSON *vocab = attn_member(node, "vocab"), *unknown = attn_member(node, "unk_id"), *item;
    int count = cJSON_GetArraySize(vocab);
    int64_t id = -1;
    model->kind = MODEL_UNIGRAM;
    if (!cJSON_IsArray(vocab) || count == 0 || count >= MOST_ID)
        return attn_refuse(report, "the model has no 'vocab' of pieces and scores");
    if (unknown && !attn_integer_of(unknown, 0, count - 1, &id))
        return attn_refuse(report, "'unk_id' is not in the vocabulary");
    model->unknown = (int32_t)id;
    model->byte_fallback = attn_flag_of(node, "byte_fallback", false);
    model->scores = malloc((size_t)count * sizeof *model->scores);
    if (!model->scores) return attn_refuse_memory(report);
    model->least_score = INFINITY;
    int32_t next = 0;
    cJSON_ArrayForEach(item, vocab) {
        const cJSON *piece = cJSON_IsArray(item) ? item->child : NULL, *score = piece ? piece->next : NULL;
        if (!score || !cJSON_IsString(piece) || !cJSON_IsNumber(score) || !isfinite(score->valuedouble))
            return attn_refuse(report, "entry %d of 'vocab' is no piece with a score", next);
        if (!attn_vocabulary_add(&model->vocabulary, piece->valuestring, strlen(piece->valuestring), next))
            return attn_refuse_memory(report);
        model->scores[next++] = score->valuedouble;
        if (score->valuedouble < model->least_score) model->least_score = score->valuedouble;
    }
    if (!attn_finish_vocabulary(&model->vocabulary, true, report)) return false;
    if (model->byte_fallback) attn_find_byte_tokens(model);
    return true;
}

/* ------------------------------------------------------------------------------------- the kind of model */

bool attn_read_model(attn_tokenizer *t, const cJSON *node, const Report *report) {
    const char *type = attn_text_of(node, "type");
    if (!type) /* old files have no type */
        type = attn_member(node, "merges") ? "BPE" : cJSON_IsArray(attn_member(node, "vocab")) ? "Unigram"
             : attn_member(node, "continuing_subword_prefix") ? "WordPiece" : "WordLevel";
    if (strcmp(type, "WordPiece") == 0) return read_wordpiece(&t->model, node, report);
    if (strcmp(type, "BPE") == 0) return read_bpe(&t->model, node, report);
    if (strcmp(type, "Unigram") == 0) return read_unigram(&t->model, node, report);
    if (strcmp(type, "SentencePiece") == 0) return read_named_pieces(&t->model, node, report);
    if (strcmp(type, "WordLevel") == 0) return read_wordlevel(&t->model, node, report);
    return attn_refuse(report, "the model '%.40s' is not known here", type);
}
