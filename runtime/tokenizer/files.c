/* files.c: opens and frees tokenizers, and reads vocab.txt and tokenizer.bin; gguf.c and json.c read other files. */
#ifndef _WIN32
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L /* fdopen, O_CLOEXEC */
#endif
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attn_tokenizer_internal.h"

enum { MOST_FILE_BYTES = 256 << 20 };

/* ------------------------------------------------------------------------------------- vocab.txt */

static bool read_lines(Vocabulary *v, const char *text, size_t size, const Report *report) {
    int32_t id = 0;
    for (size_t begin = 0; begin < size; id++) {
        const char *newline = memchr(text + begin, '\n', size - begin);
        size_t end = newline ? (size_t)(newline - text) : size, next = end + 1;
        if (end > begin && text[end - 1] == '\r') end--;
        if (end == begin) return attn_refuse(report, "line %d: empty token", id + 1);
        if (!attn_is_utf8(text + begin, end - begin)) return attn_refuse(report, "line %d: not UTF-8", id + 1);
        if (id == MOST_ID) return attn_refuse(report, "more than %d tokens", MOST_ID);
        if (!attn_vocabulary_add(v, text + begin, end - begin, id)) return attn_refuse_memory(report);
        begin = next;
    }
    return attn_finish_vocabulary(v, false, report);
}

static bool read_vocab_txt(attn_tokenizer *t, const char *text, size_t size, const Report *report) {
    return read_lines(&t->model.vocabulary, text, size, report) && attn_finish_bert(t, true, true, report);
}

/* ------------------------------------------------------------------------------------- llama2.c */

enum { LLAMA_BOS = 1, LLAMA_EOS = 2, LLAMA_BYTES = 3, MOST_PIECE = 1 << 12 };

/* Reads the pieces that follow the header: a float score, an int32 length and the bytes of each, little-endian. */
static bool read_pieces(Model *model, const char *data, size_t size, Scored **scored, size_t *count,
                        const Report *report) {
    size_t at = 4, capacity = 0;
    while (at < size) {
        float score;
        uint32_t length;
        if (size - at < 8) return attn_refuse(report, "ends inside token %zu", *count);
        memcpy(&score, data + at, 4);
        memcpy(&length, data + at + 4, 4);
        at += 8;
        if (length == 0 || length > MOST_PIECE || length > size - at)
            return attn_refuse(report, "token %zu has a length of %lu bytes, with %zu to come", *count,
                               (unsigned long)length, size - at);
        if (isnan(score)) return attn_refuse(report, "token %zu has a score that is not a number", *count);
        if (*count == MOST_ID) return attn_refuse(report, "more than %d tokens", MOST_ID);
        if (*count == capacity) {
            capacity = capacity ? 2 * capacity : 1024;
            Scored *more = realloc(*scored, capacity * sizeof *more);
            if (!more) return attn_refuse_memory(report);
            *scored = more;
        }
        (*scored)[*count] = (Scored){score, (int32_t)*count};
        if (!attn_vocabulary_add(&model->vocabulary, data + at, length, (int32_t)(*count)++))
            return attn_refuse_memory(report);
        at += length;
    }
    if (*count < LLAMA_BYTES + 256)
        return attn_refuse(report, "%zu tokens, fewer than the bytes of llama2.c's vocabularies", *count);
    return attn_finish_vocabulary(&model->vocabulary, false, report);
}

static bool read_llama2c(attn_tokenizer *t, const char *data, size_t size, const Report *report) {
    Model *model = &t->model;
    model->kind = MODEL_BPE;
    model->unknown = 0;
    model->byte_fallback = true;
    Scored *scored = NULL;
    size_t count = 0;
    bool fine = read_pieces(model, data, size, &scored, &count, report) &&
                attn_merges_of_scores(model, scored, count, report);
    free(scored);
    if (!fine) return false;
    for (int i = 0; i < 256; i++) model->byte_ids[i] = LLAMA_BYTES + i; /* run.c assumes these ids */
    Normalizer *prepend = attn_new_normalizer(t, NORMALIZE_PREPEND);
    Decoder *d = prepend && attn_string_copy(&prepend->content, " ", 1) && attn_new_decoder(t, DECODE_BYTE_FALLBACK) &&
                         attn_new_decoder(t, DECODE_FUSE)
                     ? attn_new_decoder(t, DECODE_STRIP)
                     : NULL;
    t->before = malloc(sizeof *t->before);
    if (!d || !t->before) return attn_refuse_memory(report);
    d->character = ' ';
    d->start = 1;
    t->before[t->n_before++] = LLAMA_BOS;
    for (int32_t id = LLAMA_BOS; id <= LLAMA_EOS; id++) { /* special in decoding; never found in a text */
        size_t length = 0;
        const char *name = attn_vocabulary_text(&model->vocabulary, id, &length);
        if (!attn_add_token(t, name, length, (AddedToken){.special = true, .unseen = true}, report)) return false;
    }
    return attn_finish_added(t, report);
}

/* ------------------------------------------------------------------------------------- opening */

#ifdef _WIN32
static FILE *open_file(const char *path, const Report *report) {
    FILE *file = fopen(path, "rb");
    if (!file) attn_refuse(report, "%s", strerror(errno));
    return file;
}
#else
/* With O_NONBLOCK a pipe without a writer opens, and is refused like all that is no regular file. */
static FILE *open_file(const char *path, const Report *report) {
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status;
    FILE *file = NULL;
    const bool known = descriptor >= 0 && fstat(descriptor, &status) == 0;
    if (known && S_ISDIR(status.st_mode)) attn_refuse(report, "%s", strerror(EISDIR));
    else if (known && !S_ISREG(status.st_mode)) attn_refuse(report, "not a regular file");
    else if (!known || !(file = fdopen(descriptor, "rb"))) attn_refuse(report, "%s", strerror(errno));
    if (!file && descriptor >= 0) close(descriptor);
    return file;
}
#endif

/* Reads the whole file; of a GGUF file, what holds its keys. */
static bool read_file(const char *path, Buffer *to, const Report *report) {
    FILE *file = open_file(path, report);
    if (!file) return false;
    static const size_t CHUNK = 1 << 16;
    char *chunk = malloc(CHUNK);
    bool fine = chunk || attn_refuse_memory(report);
    size_t next = CHUNK; /* how much is read before the keys of a GGUF file are looked for again */
    for (size_t got = 1; fine && got > 0;) {
        if (to->size >= next) {
            if (attn_holds_gguf_keys(to->data, to->size)) break;
            next *= 2;
        }
        got = fread(chunk, 1, CHUNK, file);
        attn_put_bytes(to, chunk, got);
        if (to->failed) fine = attn_refuse_memory(report);
        else if (to->size > MOST_FILE_BYTES) fine = attn_refuse(report, "larger than %d MB", MOST_FILE_BYTES >> 20);
    }
    if (fine && ferror(file)) fine = attn_refuse(report, "%s", strerror(errno));
    free(chunk);
    fclose(file);
    return fine;
}

/* Files of llama2.c begin with the length of the longest token. */
static bool looks_like_llama2c(const char *data, size_t size) {
    uint32_t longest;
    if (size < 12) return false;
    memcpy(&longest, data, 4);
    return longest > 0 && longest <= MOST_PIECE && memchr(data, '\0', 12);
}

/* A file of SentencePiece begins with a field of protobuf, the first piece, which begins with its text, and its score
 * or type follows. */
static bool looks_like_sentencepiece(const char *data, size_t size) {
    enum { SCORE = 0x15, TYPE = 0x18 };
    if (size <= 4 || data[0] != '\n' || data[1] <= 0 || data[2] != '\n' || data[3] <= 0) return false;
    const size_t piece = (size_t)data[1], text = (size_t)data[3];
    return text + 2 < piece && text + 4 < size && (data[text + 4] == SCORE || data[text + 4] == TYPE);
}

static bool read_any(attn_tokenizer *t, const Buffer *file, const Report *report) {
    size_t at = 0;
    while (at < file->size && file->data[at] && strchr(" \t\r\n", file->data[at])) at++;
    if (at < file->size && file->data[at] == '{') return attn_read_json(t, file->data, file->size, report);
    if (looks_like_sentencepiece(file->data, file->size))
        return attn_refuse(report, "a file of SentencePiece, of which `attnc get` writes a tokenizer.json");
    if (attn_begins_gguf(file->data, file->size)) return attn_read_gguf(t, file->data, file->size, report);
    if (looks_like_llama2c(file->data, file->size)) return read_llama2c(t, file->data, file->size, report);
    return read_vocab_txt(t, file->data, file->size, report);
}

/* Of the file at `path`, or of `bytes` where that is NULL. */
static attn_tokenizer *make(const char *path, const Buffer *bytes, unsigned rules, const Report *report) {
    enum { KNOWN = ATTN_TOKENIZER_LOWER_CASE | ATTN_TOKENIZER_TRUNCATE_LEFT };
    if (rules & ~(unsigned)KNOWN) {
        attn_refuse(report, "a rule for texts that is not known here");
        return NULL;
    }
    attn_tokenizer *t = calloc(1, sizeof *t);
    if (!t) {
        attn_refuse_memory(report);
        return NULL;
    }
    attn_unicode_initialize();
    t->truncate_left = rules & ATTN_TOKENIZER_TRUNCATE_LEFT;
    t->model.unknown = t->most_added_id = -1;
    memset(t->model.byte_ids, -1, sizeof t->model.byte_ids);
    Buffer file = {0};
    bool fine = !(rules & ATTN_TOKENIZER_LOWER_CASE) || attn_new_normalizer(t, NORMALIZE_LOWERCASE) ||
                attn_refuse_memory(report);
    fine = fine && (!path || read_file(path, &file, report)) && read_any(t, path ? &file : bytes, report);
    attn_buffer_free(&file);
    if (fine) return t;
    attn_tokenizer_free(t);
    return NULL;
}

/* The report writes to `error`. NOLINTNEXTLINE(readability-non-const-parameter) */
attn_tokenizer *attn_tokenizer_open_with(const char *path, unsigned rules, char *error, size_t error_size) {
    const Report report = {path ? path : "tokenizer", error, error_size};
    if (path) return make(path, NULL, rules, &report);
    attn_refuse(&report, "no file named");
    return NULL;
}

/* Likewise. NOLINTNEXTLINE(readability-non-const-parameter) */
attn_tokenizer *attn_tokenizer_read_with(const void *bytes, size_t size, unsigned rules, char *error,
                                         size_t error_size) {
    const Report report = {"tokenizer", error, error_size};
    Buffer copy = {0};
    attn_tokenizer *t = NULL;
    if (!bytes && size) attn_refuse(&report, "no bytes");
    else if (size > MOST_FILE_BYTES) attn_refuse(&report, "larger than %d MB", MOST_FILE_BYTES >> 20);
    else if (attn_put_bytes(&copy, bytes, size), copy.failed) attn_refuse_memory(&report);
    else t = make(NULL, &copy, rules, &report);
    attn_buffer_free(&copy);
    return t;
}

attn_tokenizer *attn_tokenizer_open(const char *path, char *error, size_t error_size) {
    return attn_tokenizer_open_with(path, 0, error, error_size);
}

attn_tokenizer *attn_tokenizer_read(const void *bytes, size_t size, char *error, size_t error_size) {
    return attn_tokenizer_read_with(bytes, size, 0, error, error_size);
}

void attn_tokenizer_free(attn_tokenizer *t) {
    if (!t) return;
    for (size_t i = 0; i < t->n_normalizers; i++) {
        attn_pattern_free(&t->normalizers[i].pattern);
        free(t->normalizers[i].content.data);
        free(t->normalizers[i].trie);
        free(t->normalizers[i].replacements.data);
    }
    for (size_t i = 0; i < t->n_splitters; i++) attn_pattern_free(&t->splitters[i].pattern);
    for (size_t i = 0; i < t->n_decoders; i++) {
        attn_pattern_free(&t->decoders[i].pattern);
        free(t->decoders[i].text.data);
    }
    Vocabulary *const all[] = {&t->model.vocabulary, &t->added_names, &t->special_names, &t->raw.texts,
                               &t->normalized.texts};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) attn_vocabulary_free(all[i]);
    void *const rest[] = {t->normalizers, t->splitters, t->decoders, t->added, t->added_of_id, t->shown.data, t->before,
                          t->after, t->pair, t->model.prefix.data, t->model.suffix.data, t->model.merges,
                          t->model.scores};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++) free(rest[i]);
    attn_pieces_model_free(&t->model.pieces);
    free(t);
}

int32_t attn_tokenizer_size(const attn_tokenizer *t) {
    int32_t model = t->model.vocabulary.size, added = t->most_added_id + 1;
    return model > added ? model : added;
}

const int32_t *attn_tokenizer_before(const attn_tokenizer *t, int *count) {
    *count = (int)t->n_before;
    return t->before;
}

const int32_t *attn_tokenizer_after(const attn_tokenizer *t, int *count) {
    *count = (int)t->n_after;
    return t->after;
}

int32_t attn_tokenizer_id(const attn_tokenizer *t, const char *name) {
    const int32_t index = attn_vocabulary_find(&t->added_names, name, strlen(name));
    return index >= 0 ? t->added[index].id : attn_vocabulary_find(&t->model.vocabulary, name, strlen(name));
}
