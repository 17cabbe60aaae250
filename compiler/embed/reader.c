/* reader.c: chunks of the texts of files. */
#include "embed.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* A line that is longer is skipped without being kept, and a chunk ends after so many bytes, so that memory is bounded
 * whatever a file has. */
enum { LONGEST_LINE = 1 << 24, CHUNK_BYTES = 1 << 22, WINDOW = 1 << 16 };

struct Reader {
    const Inputs *inputs;
    const char *field, *prompt;
    size_t prompt_bytes;
    Place place;
    Stream *stream;       /* of the file at `place`; NULL: not open */
    int64_t bytes_before; /* of the files before it */
    int64_t begun;        /* reader_begun; -1 before a file is open */
    bool repaired;        /* the file at the place was damaged */
    Text line;
    size_t at, filled; /* of the window */
    char window[WINDOW];
};

/* ---------------------------------------------------------------- the files */

static bool ends_in_txt(Arena *arena, const char *path) {
    size_t size = strlen(path);
    if (text_ends(path, ".gz")) size -= 3;
    if (text_ends(path, ".zst")) size -= 4;
    return text_ends(arena_copy(arena, path, size), ".txt");
}

static InputFile file_found(const char *path) {
    struct stat info;
    if (stat(path, &info)) fail_system(errno, "%s: cannot be opened", path);
    return (InputFile){.path = path,
                       .bytes = info.st_size,
                       .seconds = info.st_mtim.tv_sec,
                       .nanoseconds = info.st_mtim.tv_nsec};
}

Inputs inputs_find(Arena *arena, const char *const *paths, int64_t count) {
    Inputs inputs = {.files = arena_array(arena, (size_t)count, sizeof *inputs.files), .count = count};
    for (int64_t i = 0; i < count; i++) {
        stream_close(stream_open(paths[i])); /* what cannot be read is refused before hours have gone by */
        inputs.files[i] = file_found(paths[i]);
        inputs.files[i].lines = ends_in_txt(arena, paths[i]);
        inputs.bytes += inputs.files[i].bytes;
    }
    return inputs;
}

void inputs_check(const Inputs *inputs) {
    for (int64_t i = 0; i < inputs->count; i++) {
        const InputFile *then = &inputs->files[i], now = file_found(then->path);
        if (then->bytes != now.bytes || then->seconds != now.seconds || then->nanoseconds != now.nanoseconds)
            fail("%s: was changed while its texts were embedded", then->path);
    }
}

/* ---------------------------------------------------------------- lines */

/* Makes the window hold a byte that is not read; false at the end of the file. */
static bool refill(Reader *r) {
    if (r->at < r->filled) return true;
    r->at = 0;
    r->filled = stream_take(r->stream, r->window, WINDOW);
    return r->filled > 0;
}

/* Reads a line without its end; false if the file has no more. *bytes counts those of the file. A line that is too long
 * is cut. */
static bool next_line(Reader *r, int64_t *bytes) {
    r->line.size = 0;
    *bytes = 0;
    while (refill(r)) {
        const char *begin = r->window + r->at, *end = memchr(begin, '\n', r->filled - r->at);
        const size_t size = end ? (size_t)(end - begin) : r->filled - r->at, taken = size + (end != NULL);
        if (r->line.size <= LONGEST_LINE) text_add(&r->line, begin, size);
        r->place.hash = hash_bytes(r->place.hash, begin, taken);
        r->at += taken;
        *bytes += (int64_t)taken;
        if (end) return true;
    }
    return *bytes > 0;
}

/* ---------------------------------------------------------------- chunks */

Reader *reader_new(Arena *arena, const Inputs *inputs, const char *field, const char *prompt, Place from) {
    Reader *r = arena_alloc(arena, sizeof *r);
    *r = (Reader){.inputs = inputs, .field = field, .prompt = prompt, .prompt_bytes = strlen(prompt), .place = from};
    r->line = text_new(arena);
    r->begun = -1;
    r->repaired = from.damaged == from.file + 1 && from.offset > 0;
    r->place.damaged = 0;
    for (int64_t i = 0; i < from.file; i++) r->bytes_before += inputs->files[i].bytes;
    return r;
}

int64_t reader_bytes(const Reader *r) {
    return r->bytes_before + (r->stream ? stream_read_bytes(r->stream) - (int64_t)(r->filled - r->at) : 0);
}

int64_t reader_begun(const Reader *r) { return r->begun < 0 ? r->bytes_before : r->begun; }

int64_t reader_damaged(const Reader *r) {
    return r->stream && stream_is_damaged(r->stream) ? r->place.file + 1 : 0;
}

/* Sets the text of the line that was read. */
static void add_text(Reader *r, Chunk *chunk, const InputFile *file) {
    ChunkText *text = &chunk->texts[chunk->count++];
    char *at = r->line.data;
    size_t bytes = r->line.size;
    const bool first = r->place.line == 1;
    *text = (ChunkText){.at = chunk->bytes.size, .file = r->place.file, .line = r->place.line};
    if (first && bytes >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0) at += 3, bytes -= 3; /* a byte order mark */
    if (file->lines && bytes && at[bytes - 1] == '\r') bytes--;
    if (bytes > LONGEST_LINE) text->fault = FAULT_LONG_LINE;
    else if (!utf8_is_valid(at, bytes)) text->fault = FAULT_UTF8;
    else if (!file->lines) text->fault = json_line(&at, &bytes, r->field);
    if (text->fault) return;
    text_add(&chunk->bytes, r->prompt, r->prompt_bytes);
    text_add(&chunk->bytes, at, bytes);
    text->bytes = r->prompt_bytes + bytes;
}

/* A file that was damaged may be another one now, but not in what was read of it. */
static void skip_repaired(Reader *r, const InputFile *file) {
    uint64_t hash = 0;
    for (int64_t left = r->place.offset; left > 0;) {
        const size_t got = stream_take(r->stream, r->window, left < WINDOW ? (size_t)left : WINDOW);
        hash = hash_bytes(hash, r->window, got);
        if (!got) break;
        left -= (int64_t)got;
    }
    if (hash != r->place.hash)
        fail("%s: its first %lld bytes are not those that were read of it before; `--force` starts anew", file->path,
             (long long)r->place.offset);
}

static void open_at_place(Reader *r, const InputFile *file) {
    r->stream = stream_open(file->path);
    r->at = r->filled = 0;
    if (r->repaired) skip_repaired(r, file);
    else if (r->place.offset) stream_skip(r->stream, r->place.offset);
    r->repaired = false;
    if (r->begun < 0) r->begun = reader_bytes(r);
}

static void next_file(Reader *r, const InputFile *file) {
    stream_close(r->stream);
    r->stream = NULL;
    r->bytes_before += file->bytes;
    r->place.file++;
    r->place.offset = r->place.line = 0;
    r->place.hash = 0;
}

static bool next_chunk(void *with, Chunk *chunk) {
    Reader *r = with;
    int64_t bytes;
    chunk->begin = r->place;
    chunk->count = 0;
    chunk->bytes.size = 0;
    while (r->place.file < r->inputs->count && chunk->count < chunk->most && chunk->bytes.size < CHUNK_BYTES) {
        const InputFile *file = &r->inputs->files[r->place.file];
        if (!r->stream) open_at_place(r, file);
        if (!next_line(r, &bytes)) {
            next_file(r, file);
            continue;
        }
        r->place.rows++;
        r->place.line++;
        r->place.offset += bytes;
        add_text(r, chunk, file);
    }
    chunk->end = r->place;
    return chunk->count > 0;
}

ChunkSource reader_source(Reader *reader) { return (ChunkSource){next_chunk, reader}; }
