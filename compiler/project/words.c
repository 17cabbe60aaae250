/* words.c: the tokenizer of a model within attnc. */
#include "words.h"

#include "../../runtime/tokenizer/attn_tokenizer.h"
#include "../engine/cc.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARIES "-lonig", "-lcjson", "-lutf8proc", "-lpthread", "-lm"

struct Words {
    Arena *arena;
    const char *path;
    void *library;
    uint64_t hash;
    attn_tokenizer *tokenizer;
    attn_tokenizer_stream *stream; /* NULL until words_next is called */
    attn_tokenizer *(*open)(const char *, unsigned, char *, size_t);
    void (*free)(attn_tokenizer *);
    int (*encode)(const attn_tokenizer *, const char *, size_t, bool, int32_t *, int);
    const int32_t *(*after)(const attn_tokenizer *, int *);
    const char *(*error)(int);
    char *(*decode)(const attn_tokenizer *, const int32_t *, int, size_t *);
    const char *(*name)(const attn_tokenizer *, int32_t, size_t *);
    attn_tokenizer_stream *(*stream_begin)(const attn_tokenizer *);
    void (*stream_free)(attn_tokenizer_stream *);
    int (*feed)(attn_tokenizer_stream *, int32_t, const char **);
    int (*finish)(attn_tokenizer_stream *, const char **);
};

static void find(const Words *words, const char *name, void *pointer) {
    *(void **)pointer = dlsym(words->library, name);
    if (!*(void **)pointer) bug("the compiled tokenizer lacks `%s`", name);
}

static void find_functions(Words *words) {
    find(words, "attn_tokenizer_open_with", &words->open);
    find(words, "attn_tokenizer_free", &words->free);
    find(words, "attn_tokenizer_encode", &words->encode);
    find(words, "attn_tokenizer_after", &words->after);
    find(words, "attn_tokenizer_error_text", &words->error);
    find(words, "attn_tokenizer_decode", &words->decode);
    find(words, "attn_words_name", &words->name);
    find(words, "attn_tokenizer_stream_begin", &words->stream_begin);
    find(words, "attn_tokenizer_stream_free", &words->stream_free);
    find(words, "attn_tokenizer_stream_feed", &words->feed);
    find(words, "attn_tokenizer_stream_finish", &words->finish);
}

static void release(void *with) {
    Words *words = with;
    if (words->stream) words->stream_free(words->stream);
    if (words->tokenizer) words->free(words->tokenizer);
    if (words->library) dlclose(words->library);
}

/* Writes the sources into a folder, and compiles them into a library, whose path it returns. */
static const char *compiled(Arena *arena, Folder *folder, const char *named) {
    static const char *const ends[] = {LIBRARIES, NULL};
    const char *cc = cc_find(arena, named, false), *library = folder_file(folder, "words.so"), *argv[64];
    int n = 0;
    for (const char *const *word = (const char *const[]){"-std=c11", "-O1", "-w", "-shared", "-fPIC", "-o", library,
                                                         NULL}; *word; word++)
        argv[n++] = *word;
    for (const char *const *file = tokenizer_files; *file; file++) {
        const char *path = folder_file(folder, *file);
        write_text(arena, path, embedded_file(*file));
        if (n + 8 > (int)(sizeof argv / sizeof *argv)) bug("the tokenizer has more files than fit a command");
        if (text_ends(path, ".c")) argv[n++] = path;
    }
    write_text(arena, argv[n++] = folder_file(folder, "words.c"), embedded_file("words.c.tmpl"));
    for (const char *const *word = ends; *word; word++) argv[n++] = *word;
    argv[n] = NULL;
    progress_begin("compiling the tokenizer with %s", cc);
    if (run_program(folder, cc_words(arena, cc, argv)) != 0) {
        cc_try(arena, cc, true);
        fail("%s does not compile the tokenizer, which needs the C libraries Oniguruma, cJSON and utf8proc; on Debian: "
             "apt-get install libonig-dev libcjson-dev libutf8proc-dev", cc);
    }
    progress_end();
    return library;
}

Words *words_open(Arena *arena, const TokenizerFile *file, const TextRules *rules, const char *cc) {
    Folder *folder = folder_new(arena);
    Words *words = arena_alloc(arena, sizeof *words);
    const char *library = compiled(arena, folder, cc), *path = folder_file(folder, file->name);
    char why[256];
    *words = (Words){.arena = arena, .path = file->path};
    arena_on_free(arena, release, words);
    words->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!words->library) fail("the compiled tokenizer cannot be loaded: %s", dlerror());
    find_functions(words);
    tokenizer_write(arena, file, folder_path(folder));
    const MappedFile written = file_map(arena, path);
    const int rules_number = text_rules_number(rules);
    words->hash = hash_bytes(hash_bytes(0, &rules_number, sizeof rules_number), written.data, written.size);
    words->tokenizer = words->open(path, (unsigned)rules_number, why, sizeof why);
    if (!words->tokenizer) fail("%s: %s", file->path, why);
    return words;
}

const int32_t *words_encode(const Words *words, const char *text, int64_t *count) {
    for (int room = 4096;; room *= 16) {
        int32_t *ids = arena_array(words->arena, (size_t)room, sizeof *ids);
        const int got = words->encode(words->tokenizer, text, strlen(text), true, ids, room);
        if (got < 0) fail("%s: the text has no ids: %s", words->path, words->error(got));
        if (got < room || room >= 1 << 24) return *count = got, ids;
    }
}

int words_ids(const Words *words, const char *text, size_t bytes, int32_t *ids, int room) {
    return words->encode(words->tokenizer, text, bytes, true, ids, room);
}

uint64_t words_hash(const Words *words) { return words->hash; }

const int32_t *words_begin(const Words *words, const char *text, int64_t *count) {
    const int32_t *ids = words_encode(words, text, count);
    int after = 0;
    words->after(words->tokenizer, &after);
    *count -= after < *count ? after : *count;
    return ids;
}

const char *words_name(const Words *words, int64_t id) {
    size_t size = 0;
    const char *name = id >= 0 && id < INT32_MAX ? words->name(words->tokenizer, (int32_t)id, &size) : NULL;
    return name ? arena_copy(words->arena, name, size) : NULL;
}

const char *words_text(const Words *words, const int32_t *ids, int64_t count, size_t *bytes) {
    char *text = words->decode(words->tokenizer, ids, (int)count, bytes);
    if (!text) fail("%s: the ids have no text", words->path);
    const char *copy = arena_copy(words->arena, text, *bytes);
    free(text);
    return copy;
}

static const char *part_of(const Words *words, int size, const char *text, size_t *bytes) {
    if (size < 0) fail("%s: the ids have no text: %s", words->path, words->error(size));
    *bytes = (size_t)size;
    return text;
}

const char *words_next(Words *words, int32_t id, size_t *bytes) {
    const char *text = "";
    if (!words->stream && !(words->stream = words->stream_begin(words->tokenizer))) out_of_memory();
    return part_of(words, words->feed(words->stream, id, &text), text, bytes);
}

const char *words_end(Words *words, size_t *bytes) {
    const char *text = "";
    if (!words->stream) return *bytes = 0, text;
    return part_of(words, words->finish(words->stream, &text), text, bytes);
}
