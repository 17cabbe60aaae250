/* fuzz_import.c: config.json beside valid tensors, as attnc import reads them.
 *
 * The input: the config; behind its first NUL the tensors that there are, a line each: `NAME [2, 3]`, as in
 * tests/families/NAME.public. Their numbers are zeros. They are in model.safetensors; after a line `@shard` in the
 * first of two files with an index, and after another one in the second. `@index TEXT` is the index instead of the
 * right one; `@name NAME`, `@part PART`, `@seq N` and `@ignore KEY` are what the command
 * line says; `@0 TEXT` to `@4 TEXT` are the JSON files of sentence-transformers, whose folder `2` has a dense module's
 * weights as well. */
#include "target.h"
#include "../../../compiler/import/import.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_BYTES = 1 << 20, MOST_NAME = 120 };

/* A tensor of the line, if it has one: its entry of the header; the bytes of data with it, or -1. */
static int64_t add_tensor(Text *json, const char *line, size_t size, int64_t at) {
    size_t name = 0;
    while (name < size && (strchr("._", line[name]) || (line[name] >= '0' && line[name] <= '9') ||
                           (line[name] >= 'A' && line[name] <= 'Z') || (line[name] >= 'a' && line[name] <= 'z')))
        name++;
    if (!name || name > MOST_NAME || size - name < 3 || memcmp(line + name, " [", 2) != 0) return -1;
    Text shape = text_new(json->arena);
    int64_t elements = 1;
    const char *c = line + name + 2;
    for (int rank = 0; rank < 4 && *c >= '0' && *c <= '9'; rank++) {
        char *end;
        long long dim = strtoll(c, &end, 10);
        if (!mul_fits(elements, dim, &elements) || elements > MOST_BYTES) return -1;
        text_printf(&shape, "%s%lld", rank ? "," : "", dim);
        c = end + strspn(end, ", ");
    }
    int64_t until = at + 4 * elements;
    if (until > MOST_BYTES) return -1;
    text_printf(json, "%s\"%.*s\":{\"dtype\":\"F32\",\"shape\":[%s],\"data_offsets\":[%lld,%lld]}",
                json->size > 1 ? "," : "", (int)name, line, shape.data, (long long)at, (long long)until);
    return until;
}

/* A file of tensors that is being made, as its lines come. */
typedef struct Shard {
    Text json;
    int64_t bytes;
} Shard;

typedef struct Folder {
    Shard shards[2];
    int n_shards;      /* 0: all in one model.safetensors */
    Text map;          /* the entries of the index's weight_map */
    const char *index; /* the index as the input has it, or NULL */
    const char *name;  /* --name, or NULL */
    const char *part;  /* --part, or NULL */
    int64_t seq;       /* --seq, or 0 */
    const char *ignored[2]; /* --ignore-key */
    Score score;            /* --score, of one token or of a line each for two */
    const char *modules[5]; /* texts of module_files, or NULL */
} Folder;

static const char *const module_files[] = {"modules.json", "1/config.json", "2/config.json",
                                           "sentence_bert_config.json", "config_sentence_transformers.json"};
static const char *const shard_names[] = {"a.safetensors", "b.safetensors"};

static Shard shard_new(Arena *arena) {
    Shard shard = {text_new(arena), 0};
    text_add(&shard.json, "{", 1);
    return shard;
}

static void write_shard(Arena *arena, Shard *shard, const char *name) {
    text_add(&shard->json, "}", 1);
    size_t header = shard->json.size, bytes = 8 + header + (size_t)shard->bytes;
    uint8_t *file = arena_alloc(arena, bytes);
    for (int i = 0; i < 8; i++) file[i] = (uint8_t)((uint64_t)header >> 8 * i);
    memcpy(file + 8, shard->json.data, header);
    memory_file(arena, name, file, bytes);
}

/* What the command line would say: attnc import refuses a wrong name or number before it reads a file. */
static void set_option(Arena *arena, Folder *folder, const char *line) {
    if (strncmp(line, "@name ", 6) == 0 && !model_name_fault(arena, line + 6)) folder->name = line + 6;
    if (strncmp(line, "@part ", 6) == 0) folder->part = line + 6;
    if (strncmp(line, "@ignore ", 8) == 0 && line[8]) folder->ignored[0] = line + 8;
    if (strncmp(line, "@score ", 7) == 0 && folder->score.n < 2 && score_token(line + 7) >= 0) {
        folder->score.tokens[folder->score.n++] = score_token(line + 7);
        folder->score.origin = "--score";
    }
    if (strncmp(line, "@index ", 7) == 0) folder->index = line + 7;
    if (line[1] >= '0' && line[1] <= '4' && line[2] == ' ') folder->modules[line[1] - '0'] = line + 3;
    if (strcmp(line, "@shard") == 0 && folder->n_shards < 2) folder->n_shards++;
    if (strncmp(line, "@seq ", 5) == 0) {
        long long seq = strtoll(line + 5, NULL, 10);
        if (seq >= 1 && seq <= INT32_MAX) folder->seq = seq;
    }
}

static Folder read_lines(Arena *arena, const char *lines) {
    Folder folder = {.shards = {shard_new(arena), shard_new(arena)}, .map = text_new(arena)};
    for (size_t size; *lines; lines += size + (lines[size] == '\n')) {
        size = strcspn(lines, "\n");
        if (*lines == '@') {
            set_option(arena, &folder, arena_copy(arena, lines, size));
            continue;
        }
        int place = folder.n_shards == 2;
        Shard *shard = &folder.shards[place];
        int64_t until = add_tensor(&shard->json, lines, size, shard->bytes);
        if (until < 0) continue;
        shard->bytes = until;
        text_printf(&folder.map, "%s\"%.*s\":\"%s\"", folder.map.size ? "," : "", (int)strcspn(lines, " "), lines,
                    shard_names[place]);
    }
    return folder;
}

static void write_modules(Arena *arena, const Folder *folder) {
    Shard dense = shard_new(arena);
    static const char *const tensors[] = {"linear.weight [14, 14]", "linear.bias [14]"};
    for (int i = 0; i < 2; i++) dense.bytes = add_tensor(&dense.json, tensors[i], strlen(tensors[i]), dense.bytes);
    write_shard(arena, &dense, "2/model.safetensors");
    for (int i = 0; i < 5; i++) {
        const char *text = folder->modules[i];
        if (text) memory_file(arena, module_files[i], text, strlen(text));
        else memory_file_absent(module_files[i]);
    }
}

static void write_folder(Arena *arena, Folder *folder) {
    write_modules(arena, folder);
    memory_file_absent("model.safetensors");
    memory_file_absent("model.safetensors.index.json");
    if (!folder->n_shards && !folder->index) {
        write_shard(arena, &folder->shards[0], "model.safetensors");
        return;
    }
    for (int i = 0; i < 2; i++) write_shard(arena, &folder->shards[i], shard_names[i]);
    const char *index = folder->index ? folder->index : arena_printf(arena, "{\"weight_map\":{%s}}", folder->map.data);
    memory_file(arena, "model.safetensors.index.json", index, strlen(index));
}

static void read_input(Arena *arena, const uint8_t *data, size_t size) {
    const char *text = arena_copy(arena, (const char *)data, size);
    size_t config = strlen(text);
    Folder folder = read_lines(arena, config < size ? text + config + 1 : "");
    write_folder(arena, &folder);
    char *path = arena_printf(arena, "%s", memory_file(arena, "config.json", text, config));
    *strrchr(path, '/') = '\0';
    const ImportOptions options = {folder.name, folder.part, folder.seq, folder.ignored, folder.score, false};
    const char *spec = import_spec(arena, path, "spec", &options).spec;
    Compilation c = compilation_quiet(arena, source_from_text(arena, "spec", spec, strlen(spec)));
    if (!compile_until(&c, STAGE_REWRITE)) broken("import makes a spec with errors");
    if (folder.name && strcmp(c.model->name, folder.name) != 0) broken("import makes a model of another name");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) { return run_target(read_input, data, size); }
