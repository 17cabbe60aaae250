/* json_model.c: the member `model` of a tokenizer.json: vocabulary, merges, scores. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

/* {"token": id, …} */
static bool read_vocabulary(Vocabulary *v, const cJSON *vocab, const Report *report) {
    if (!cJSON_IsObject(vocab)) return refuse(report, "the model has no 'vocab' of names and ids");
    for (const cJSON *item = vocab->child; item; item = item->next) {
        int64_t id;
        if (!integer_of(item, 0, MOST_ID - 1, &id)) return refuse(report, "the token '%.40s' has no id", item->string);
        if (!vocabulary_add(v, item->string, strlen(item->string), (int32_t)id)) return refuse_memory(report);
    }
    return finish_vocabulary(v, false, report);
}

static bool read_unknown(Model *model, const cJSON *node, bool needed, const Report *report) {
    const char *name = text_of(node, "unk_token");
    model->unknown = name ? vocabulary_find(&model->vocabulary, name, strlen(name)) : -1;
    if (name && model->unknown < 0) return refuse(report, "the unknown token '%.40s' is not in the vocabulary", name);
    return name || !needed || refuse(report, "the model has no 'unk_token'");
}

static bool read_wordpiece(Model *model, const cJSON *node, const Report *report) {
    int64_t most = 100;
    const cJSON *given = member(node, "max_input_chars_per_word");
    model->kind = MODEL_WORDPIECE;
    if (given && !integer_of(given, 0, INT32_MAX, &most))
        return refuse(report, "'max_input_chars_per_word' is no number of characters");
    model->most_chars = (size_t)most;
    if (!read_vocabulary(&model->vocabulary, member(node, "vocab"), report) ||
        !copy_text(&model->prefix, node, "continuing_subword_prefix", "##", report))
        return false;
    model->continuations = whole_range(&model->vocabulary);
    for (size_t i = 0; i < model->prefix.size; i++)
        model->continuations = narrowed(&model->vocabulary, model->continuations, model->prefix.data[i]);
    return read_unknown(model, node, true, report);
}

static bool read_wordlevel(Model *model, const cJSON *node, const Report *report) {
    model->kind = MODEL_WORDLEVEL;
    return read_vocabulary(&model->vocabulary, member(node, "vocab"), report) &&
           read_unknown(model, node, false, report);
}

/* ------------------------------------------------------------------------------------- byte-pair encoding */

/* The two texts of "a b" or ["a", "b"]. */
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
    if (!cJSON_IsString(first) || !cJSON_IsString(second) || second->next) return false;
    *left = first->valuestring;
    *left_size = strlen(first->valuestring);
    *right = second->valuestring;
    return true;
}

static bool read_merge(Model *model, const cJSON *item, size_t rank, Buffer *joint, const Report *report) {
    const char *left, *right;
    size_t left_size;
    if (!merge_parts(item, &left, &left_size, &right)) return refuse(report, "merge %zu is not of two tokens", rank);
    size_t right_size = strlen(right);
    int32_t a = vocabulary_find(&model->vocabulary, left, left_size);
    int32_t b = vocabulary_find(&model->vocabulary, right, right_size);
    size_t dropped = right_size < model->prefix.size ? right_size : model->prefix.size;
    joint->size = 0;
    put_bytes(joint, left, left_size);
    put_bytes(joint, right + dropped, right_size - dropped);
    if (joint->failed) return refuse_memory(report);
    int32_t id = vocabulary_find(&model->vocabulary, joint->data, joint->size);
    if (a < 0 || b < 0 || id < 0) return refuse(report, "merge %zu has a token that is not in the vocabulary", rank);
    model->merges[model->n_merges++] = (Merge){(uint64_t)(uint32_t)a << 32 | (uint32_t)b, (uint32_t)rank, id};
    return true;
}

static bool read_bpe(Model *model, const cJSON *node, const Report *report) {
    const cJSON *merges = member(node, "merges"), *dropout = member(node, "dropout"), *item;
    model->kind = MODEL_BPE;
    if (dropout && !(cJSON_IsNumber(dropout) && !(dropout->valuedouble > 0)))
        return refuse(report, "'dropout' draws ids at random: not done here");
    if (!cJSON_IsArray(merges)) return refuse(report, "the model has no 'merges'");
    model->fuse_unknown = flag_of(node, "fuse_unk", false);
    model->byte_fallback = flag_of(node, "byte_fallback", false);
    model->ignore_merges = flag_of(node, "ignore_merges", false);
    if (!read_vocabulary(&model->vocabulary, member(node, "vocab"), report) ||
        !read_unknown(model, node, false, report) ||
        !copy_text(&model->prefix, node, "continuing_subword_prefix", "", report) ||
        !copy_text(&model->suffix, node, "end_of_word_suffix", "", report))
        return false;
    if (model->byte_fallback && (model->prefix.size || model->suffix.size))
        return refuse(report, "'byte_fallback' together with a prefix or suffix of pieces is not known here");
    if (model->byte_fallback) find_byte_tokens(model);
    model->merges = malloc(((size_t)cJSON_GetArraySize(merges) + 1) * sizeof *model->merges);
    if (!model->merges) return refuse_memory(report);
    Buffer joint = {0};
    bool fine = true;
    size_t rank = 0;
    cJSON_ArrayForEach(item, merges) {
        fine = fine && read_merge(model, item, rank++, &joint, report);
    }
    buffer_free(&joint);
    finish_merges(model);
    return fine;
}

/* ------------------------------------------------------------------------------------- Unigram */

static bool read_unigram(Model *model, const cJSON *node, const Report *report) {
    const cJSON *vocab = member(node, "vocab"), *unknown = member(node, "unk_id"), *item;
    int count = cJSON_GetArraySize(vocab);
    int64_t id = -1;
    model->kind = MODEL_UNIGRAM;
    if (!cJSON_IsArray(vocab) || count == 0 || count >= MOST_ID)
        return refuse(report, "the model has no 'vocab' of pieces and scores");
    if (unknown && !integer_of(unknown, 0, count - 1, &id)) return refuse(report, "'unk_id' is not in the vocabulary");
    model->unknown = (int32_t)id;
    model->byte_fallback = flag_of(node, "byte_fallback", false);
    model->scores = malloc((size_t)count * sizeof *model->scores);
    if (!model->scores) return refuse_memory(report);
    model->least_score = INFINITY;
    int32_t next = 0;
    cJSON_ArrayForEach(item, vocab) {
        const cJSON *piece = cJSON_IsArray(item) ? item->child : NULL, *score = piece ? piece->next : NULL;
        if (!cJSON_IsString(piece) || !cJSON_IsNumber(score) || !isfinite(score->valuedouble))
            return refuse(report, "entry %d of 'vocab' is no piece with a score", next);
        if (!vocabulary_add(&model->vocabulary, piece->valuestring, strlen(piece->valuestring), next))
            return refuse_memory(report);
        model->scores[next++] = score->valuedouble;
        if (score->valuedouble < model->least_score) model->least_score = score->valuedouble;
    }
    if (!finish_vocabulary(&model->vocabulary, true, report)) return false;
    if (model->byte_fallback) find_byte_tokens(model);
    return true;
}

/* ------------------------------------------------------------------------------------- which of them */

bool read_model(tokenizer *t, const cJSON *node, const Report *report) {
    const char *type = text_of(node, "type");
    if (!type) /* files of old do not say */
        type = member(node, "merges") ? "BPE" : cJSON_IsArray(member(node, "vocab")) ? "Unigram"
             : member(node, "continuing_subword_prefix") ? "WordPiece" : "WordLevel";
    if (strcmp(type, "WordPiece") == 0) return read_wordpiece(&t->model, node, report);
    if (strcmp(type, "BPE") == 0) return read_bpe(&t->model, node, report);
    if (strcmp(type, "Unigram") == 0) return read_unigram(&t->model, node, report);
    if (strcmp(type, "WordLevel") == 0) return read_wordlevel(&t->model, node, report);
    return refuse(report, "the model '%.40s' is not known here", type);
}
