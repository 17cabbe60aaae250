/* tokenizer.c: the file of the tokenizer that belongs to a model. Of a GGUF file it is another one with the same keys
 * and without tensors, which is small. */
#include "../formats/gguf.h"
#include "../formats/json.h"
#include "project.h"

#include <string.h>

enum { MOST_BYTES = 1 << 28 }; /* as the tokenizer of the runtime reads at most */
enum { GGUF_TENSORS_AT = 8, GGUF_KEYS_AT = 24 }; /* in the header: the number of tensors, and its end */

static const char *in_folder(const Project *p, const char *name) {
    return arena_printf(p->arena, "%s/%s", p->imported.folder, name);
}

/* vocab.txt has no word on capitals; tokenizer_config.json has. */
static void check_vocabulary(const Project *p) {
    const char *path = in_folder(p, "tokenizer_config.json");
    const cJSON *config = file_exists(path) ? config_read(p->arena, path) : NULL;
    if (cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(config, "do_lower_case")))
        fail("%s: `do_lower_case` is false, and vocab.txt alone is read as of a model without capitals; tokenizer.json "
             "is needed", path);
}

/* ---------------------------------------------------------------- the number of tokens */

static double larger(const cJSON *id, double most) {
    return cJSON_IsNumber(id) && id->valuedouble > most ? id->valuedouble : most;
}

/* One more than the largest id of a tokenizer.json. What else the file says is for the tokenizer to read. */
static double ids_of_json(const Project *p, const char *path) {
    size_t size;
    const char *text = file_read(p->arena, path, MOST_BYTES, &size);
    json_begin();
    cJSON *root = cJSON_ParseWithLength(text, size);
    if (!root && json_starved()) out_of_memory();
    if (!root) fail("%s: it is no JSON", path);
    const cJSON *model = cJSON_GetObjectItemCaseSensitive(root, "model"), *id;
    const cJSON *vocab = cJSON_GetObjectItemCaseSensitive(model, "vocab");
    double most = cJSON_IsArray(vocab) ? cJSON_GetArraySize(vocab) - 1.0 : -1; /* of pieces with scores, in order */
    cJSON_ArrayForEach(id, vocab) most = larger(id, most);
    cJSON_ArrayForEach(id, cJSON_GetObjectItemCaseSensitive(root, "added_tokens"))
        most = larger(cJSON_GetObjectItemCaseSensitive(id, "id"), most);
    cJSON_Delete(root);
    return most + 1;
}

/* The lines of a vocab.txt, each of which is a token. */
static double ids_of_lines(const Project *p, const char *path) {
    size_t size;
    const char *text = file_read(p->arena, path, MOST_BYTES, &size);
    double lines = size && text[size - 1] != '\n';
    for (size_t i = 0; i < size; i++) lines += text[i] == '\n';
    return lines;
}

/* The pieces of a file of llama2.c: a length, and for each piece a score, its length and its bytes. What ends early is
 * for the tokenizer to refuse. */
static double ids_of_pieces(const Project *p, const char *path) {
    enum { HEAD = 4, PIECE = 8 };
    size_t size, at = HEAD;
    const char *bytes = file_read(p->arena, path, MOST_BYTES, &size);
    int64_t count = 0;
    for (uint32_t length; at + PIECE <= size; at += PIECE + length, count++) {
        memcpy(&length, bytes + at + PIECE / 2, sizeof length);
        if (length > size - at - PIECE) break;
    }
    return (double)count;
}

static double ids_of_gguf(const Project *p) {
    const GgufFile file = gguf_read(p->arena, file_map(p->arena, p->source));
    if (!gguf_find(&file, "tokenizer.ggml.model"))
        fail("%s: it has no tokenizer (the key tokenizer.ggml.model)", p->source);
    const GgufEntry *tokens = gguf_find(&file, "tokenizer.ggml.tokens");
    return tokens ? (double)tokens->count : 0;
}

/* A model has a row for each token, and perhaps more rows. */
static void check_ids(const Project *p) {
    const Stack *reader = project_text_stack(p->model);
    const char *path = p->imported.folder ? in_folder(p, p->tokenizer) : p->source;
    const double ids = !p->imported.folder                ? ids_of_gguf(p)
                       : text_ends(p->tokenizer, ".json") ? ids_of_json(p, path)
                       : text_ends(p->tokenizer, ".bin")  ? ids_of_pieces(p, path)
                                                          : ids_of_lines(p, path);
    if (ids > (double)reader->vocab)
        fail("%s: the tokenizer has %.0f ids, and the model has rows for %lld", path, ids, (long long)reader->vocab);
}

/* Sets the file of a folder that the tokenizer of the runtime reads. */
static void find_file(Project *p) {
    static const char *const names[] = {"tokenizer.json", "tokenizer.bin", "vocab.txt"};
    const char *folder = p->imported.folder;
    for (size_t i = 0; !p->tokenizer && i < sizeof names / sizeof *names; i++)
        if (file_exists(in_folder(p, names[i]))) p->tokenizer = names[i];
    const bool pairs = file_exists(in_folder(p, "merges.txt")); /* whose vocabulary is not that of a BERT */
    if (!p->tokenizer || (pairs && strcmp(p->tokenizer, "vocab.txt") == 0))
        fail("%s: the folder has no tokenizer.json, which the program reads; with the PyPI package transformers, "
             "AutoTokenizer.from_pretrained(\"%s\").save_pretrained(\"%s\") writes it", folder, folder, folder);
    if (strcmp(p->tokenizer, "vocab.txt") == 0) check_vocabulary(p);
}

void project_tokenizer(Project *p) {
    if (p->imported.folder) find_file(p);
    else p->tokenizer = "tokenizer.gguf";
    check_ids(p);
}

static void copy_file(const Project *p, const char *from, const char *to) {
    size_t size;
    const char *bytes = file_read(p->arena, from, MOST_BYTES, &size);
    OutputFile *output = output_open(p->arena, to);
    output_write(output, bytes, size);
    output_commit(output);
}

/* The header and the keys, which end with the value of the last one. */
static void write_keys(const Project *p, const char *to) {
    const MappedFile mapped = file_map(p->arena, p->source);
    const GgufFile file = gguf_read(p->arena, mapped);
    const uint8_t *end = mapped.data + GGUF_KEYS_AT;
    for (size_t i = 0; i < file.count; i++) {
        const uint8_t *behind = gguf_end(&file.entries[i]);
        if (behind > end) end = behind;
    }
    OutputFile *output = output_open(p->arena, to);
    output_write(output, mapped.data, GGUF_TENSORS_AT);
    output_write(output, (const uint8_t[8]){0}, 8);
    output_write(output, mapped.data + GGUF_TENSORS_AT + 8, (size_t)(end - mapped.data) - GGUF_TENSORS_AT - 8);
    output_commit(output);
}

void project_tokenizer_write(const Project *p, const char *folder) {
    const char *to = arena_printf(p->arena, "%s/%s", folder, p->tokenizer);
    if (p->imported.folder) copy_file(p, in_folder(p, p->tokenizer), to);
    else write_keys(p, to);
}
