/* tokenizer.c: the file of the tokenizer that belongs to a model. Of a GGUF file it is another one with the same keys
 * and without tensors, which is small; of a SentencePiece file it is a tokenizer.json. */
#include "../formats/gguf.h"
#include "../formats/json.h"
#include "project.h"

#include <string.h>

enum { MOST_BYTES = 1 << 28 }; /* as the tokenizer of the runtime reads at most */
enum { GGUF_TENSORS_AT = 8, GGUF_KEYS_AT = 24 }; /* in the header: the number of tensors, and its end */

enum { JSON, PIECES, LINES, GGUF };
static const char *const names[] = {"tokenizer.json", "tokenizer.bin", "vocab.txt", "tokenizer.gguf"};
/* Of SentencePiece, as the tokenizers of transformers name them. */
static const char *const of_pieces[] = {"source.spm", "sentencepiece.bpe.model", "spiece.model", "tokenizer.model",
                                        "spm.model", "sentencepiece.model"};

static const char *in_folder(Arena *arena, const char *folder, const char *name) {
    return arena_printf(arena, "%s/%s", folder, name);
}

/* vocab.txt has no word on capitals; tokenizer_config.json has. */
static void check_vocabulary(Arena *arena, const char *folder) {
    const char *path = in_folder(arena, folder, "tokenizer_config.json");
    const cJSON *config = config_optional(arena, path);
    if (cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(config, "do_lower_case")))
        fail("%s: `do_lower_case` is false, and vocab.txt alone is read as of a model without capitals; tokenizer.json "
             "is needed", path);
}

/* ---------------------------------------------------------------- the number of tokens */

static double larger(const cJSON *id, double most) {
    return cJSON_IsNumber(id) && id->valuedouble > most ? id->valuedouble : most;
}

JsonTree *tokenizer_tree(Arena *arena, const TokenizerFile *file) {
    if (!file->text) return json_file(arena, file->path, MOST_BYTES);
    return json_object(arena, file->path, file->text, file->size, "\n");
}

/* One more than the largest id of a tokenizer.json. What else the file says is for the tokenizer to read. */
static double ids_of_json(Arena *arena, const TokenizerFile *file) {
    JsonTree *tree = tokenizer_tree(arena, file);
    const cJSON *root = tree->root;
    const cJSON *model = cJSON_GetObjectItemCaseSensitive(root, "model"), *id;
    const cJSON *vocab = cJSON_GetObjectItemCaseSensitive(model, "vocab");
    double most = cJSON_IsArray(vocab) ? cJSON_GetArraySize(vocab) - 1.0 : -1; /* of pieces with scores, in order */
    cJSON_ArrayForEach(id, vocab) most = larger(id, most);
    cJSON_ArrayForEach(id, cJSON_GetObjectItemCaseSensitive(root, "added_tokens"))
        most = larger(cJSON_GetObjectItemCaseSensitive(id, "id"), most);
    json_release(tree);
    return most + 1;
}

/* The lines of a vocab.txt, each of which is a token. */
static double ids_of_lines(Arena *arena, const TokenizerFile *file) {
    size_t size;
    const char *text = file_read(arena, file->path, MOST_BYTES, &size);
    double lines = size && text[size - 1] != '\n';
    for (size_t i = 0; i < size; i++) lines += text[i] == '\n';
    return lines;
}

/* The pieces of a file of llama2.c: a length, and for each piece a score, its length and its bytes. What ends early is
 * for the tokenizer to refuse. */
static double ids_of_pieces(Arena *arena, const TokenizerFile *file) {
    enum { HEAD = 4, PIECE = 8 };
    size_t size, at = HEAD;
    const char *bytes = file_read(arena, file->path, MOST_BYTES, &size);
    int64_t count = 0;
    for (uint32_t length; at + PIECE <= size; at += PIECE + length, count++) {
        memcpy(&length, bytes + at + PIECE / 2, sizeof length);
        if (length > size - at - PIECE) break;
    }
    return (double)count;
}

static double ids_of_gguf(Arena *arena, const TokenizerFile *file) {
    const GgufFile keys = gguf_read(arena, file_map(arena, file->path));
    if (!gguf_find(&keys, "tokenizer.ggml.model"))
        fail("%s: it has no tokenizer (the key tokenizer.ggml.model)", file->path);
    const GgufEntry *tokens = gguf_find(&keys, "tokenizer.ggml.tokens");
    return tokens ? (double)tokens->count : 0;
}

/* A failure where the file has too many ids for the model. */
static void check(Arena *arena, const TokenizerFile *file, const Model *model) {
    static double (*const counts[])(Arena *, const TokenizerFile *) = {ids_of_json, ids_of_pieces, ids_of_lines,
                                                                       ids_of_gguf};
    const Stack *reader = project_text_stack(model);
    int kind = 0;
    if (!reader || !reader->vocab)
        fail("%s: a tokenizer is for models of text, and `%s` reads none", file->path, model->name);
    while (file->name != names[kind]) kind++;
    const double ids = counts[kind](arena, file);
    if (ids > (double)reader->vocab)
        fail("%s: the tokenizer has %.0f ids, and the model has rows for %lld", file->path, ids,
             (long long)reader->vocab);
}

static TokenizerFile of_spm(Arena *arena, const char *path) {
    TokenizerFile file = {.path = path, .name = names[JSON]};
    file.text = pieces_tokenizer(arena, path, &file.size);
    return file;
}

/* The file of a folder that the tokenizer of the runtime reads, or that becomes one. */
static TokenizerFile in_folder_found(Arena *arena, const char *folder) {
    int kind = JSON;
    const bool converted = file_exists(in_folder(arena, folder, names[JSON])) ||
                           file_exists(in_folder(arena, folder, names[PIECES]));
    for (size_t i = 0; i < sizeof of_pieces / sizeof *of_pieces; i++) {
        const char *path = in_folder(arena, folder, of_pieces[i]);
        if (!converted && file_exists(path)) return of_spm(arena, path);
    }
    while (kind < GGUF && !file_exists(in_folder(arena, folder, names[kind]))) kind++;
    const bool pairs = file_exists(in_folder(arena, folder, "merges.txt")); /* whose vocabulary is not that of a BERT */
    if (kind == GGUF || (kind == LINES && pairs))
        fail("%s: the folder has no tokenizer.json, which the program reads; with the PyPI package transformers, "
             "AutoTokenizer.from_pretrained(\"%s\").save_pretrained(\"%s\") writes it", folder, folder, folder);
    if (kind == LINES) check_vocabulary(arena, folder);
    return (TokenizerFile){.path = in_folder(arena, folder, names[kind]), .name = names[kind]};
}

static TokenizerFile found(Arena *arena, const char *path) {
    if (folder_exists(path)) return in_folder_found(arena, path);
    if (gguf_is(arena, path)) return (TokenizerFile){.path = path, .name = names[GGUF]};
    if (pieces_is(path)) return of_spm(arena, path);
    const int kind = text_ends(path, ".json") ? JSON : text_ends(path, ".bin") ? PIECES : LINES;
    return (TokenizerFile){.path = path, .name = names[kind]};
}

TokenizerFile tokenizer_find(Arena *arena, const char *path, const Model *model) {
    const TokenizerFile file = found(arena, path);
    check(arena, &file, model);
    return file;
}

/* The header and the keys, which end with the value of the last one. */
static void write_keys(Arena *arena, const char *from, const char *to) {
    const MappedFile mapped = file_map(arena, from);
    const GgufFile file = gguf_read(arena, mapped);
    const uint8_t *end = mapped.data + GGUF_KEYS_AT;
    for (size_t i = 0; i < file.count; i++) {
        const uint8_t *behind = gguf_end(&file.entries[i]);
        if (behind > end) end = behind;
    }
    OutputFile *output = output_open(arena, to);
    output_write(output, mapped.data, GGUF_TENSORS_AT);
    output_write(output, (const uint8_t[8]){0}, 8);
    output_write(output, mapped.data + GGUF_TENSORS_AT + 8, (size_t)(end - mapped.data) - GGUF_TENSORS_AT - 8);
    output_commit(output);
}

void tokenizer_write(Arena *arena, const TokenizerFile *file, const char *folder) {
    const char *to = in_folder(arena, folder, file->name);
    if (file->name == names[GGUF]) write_keys(arena, file->path, to);
    else if (file->text) write_text(arena, to, file->text);
    else output_copy(arena, file->path, to, MOST_BYTES);
}
