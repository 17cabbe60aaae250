/* rows.c: the .npy file of an output. Rows are written to another name, after the room of the header. When all rows are
 * on the disk, the header is written and the file is renamed, so that a file with the output's name is always whole.
 *
 * A finished output must say which command made it, and nothing may lie next to it. The format has room where its
 * readers expect white space alone: the padding of the header. There, a tab is a 1 and a space is a 0. They are the
 * hash of each item of the command, 32 bits each, the number of rows without a vector, 64 bits, and a hash of these. */
#include "embed.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PREFIX = 10, HEADER = 640, WORDS = ITEM_COUNT + 3, MARKS = 32 * WORDS, MARKS_AT = HEADER - 1 - MARKS };
enum { BAD_LOW = ITEM_COUNT, BAD_HIGH, CHECK };

struct Rows {
    const char *path;
    int fd;
    int64_t width;
};

static void close_file(void *with) {
    const Rows *rows = with;
    if (rows->fd >= 0) close(rows->fd);
}

static Rows *opened(Arena *arena, const char *path, int64_t width, int flags) {
    Rows *rows = arena_alloc(arena, sizeof *rows);
    *rows = (Rows){path, open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | flags, 0666), width};
    if (rows->fd < 0) fail_system(errno, "%s: cannot be written", path);
    arena_on_free(arena, close_file, rows);
    return rows;
}

static int64_t bytes_of(const Rows *rows, int64_t count) {
    int64_t bytes;
    if (!mul_fits(count, rows->width * (int64_t)sizeof(float), &bytes) || !add_fits(bytes, HEADER, &bytes))
        fail("%s: its size overflows", rows->path);
    return bytes;
}

static int64_t size_of(const Rows *rows) {
    struct stat info;
    if (fstat(rows->fd, &info)) fail_system(errno, "%s: cannot be read", rows->path);
    return info.st_size;
}

Rows *rows_create(Arena *arena, const char *path, int64_t width, bool replace) {
    Rows *rows = opened(arena, path, width, O_CREAT);
    if (!replace && size_of(rows) > 0)
        fail("%s: is there already, without the journal that says of which run it is; remove it, or replace it by "
             "`--force`", path);
    if (ftruncate(rows->fd, 0)) fail_system(errno, "%s: cannot be written", path);
    return rows;
}

Rows *rows_open(Arena *arena, const char *path, int64_t width, int64_t count) {
    Rows *rows = opened(arena, path, width, 0);
    if (count && size_of(rows) < bytes_of(rows, count))
        fail("%s: is shorter than the journal says, so that the run cannot go on; `--force` starts anew", path);
    return rows;
}

static void put(const Rows *rows, const void *bytes, size_t size, int64_t at) {
    for (const char *from = bytes; size;) {
        const ssize_t got = pwrite(rows->fd, from, size, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) fail_system(errno, "%s: cannot be written", rows->path);
        from += got;
        at += got;
        size -= (size_t)got;
    }
}

void rows_put(Rows *rows, int64_t at, int64_t count, const float *vectors) {
    const int64_t begin = bytes_of(rows, at);
    put(rows, vectors, (size_t)(bytes_of(rows, at + count) - begin), begin);
}

void rows_sync(Rows *rows) {
    if (fdatasync(rows->fd)) fail_system(errno, "%s: cannot be written", rows->path);
}

/* ---------------------------------------------------------------- the header */

static uint32_t check_of(const uint32_t *words) {
    return (uint32_t)hash_bytes(hash_bytes(0, "attnc embed 1", 13), words, CHECK * sizeof *words);
}

static void command_words(const Command *command, int64_t bad, uint32_t *words) {
    for (int i = 0; i < ITEM_COUNT; i++) words[i] = (uint32_t)command_hash(command, (CommandItem)i);
    words[BAD_LOW] = (uint32_t)bad;
    words[BAD_HIGH] = (uint32_t)((uint64_t)bad >> 32);
    words[CHECK] = check_of(words);
}

void rows_finish(Arena *arena, Rows *rows, const char *to, Place end, const Command *command) {
    char header[HEADER];
    uint32_t words[WORDS];
    static const char magic[] = "\x93NUMPY\x01"; /* version 1.0, whose last byte is the NUL */
    Text dictionary = text_new(arena);
    text_printf(&dictionary, "{'descr': '<f4', 'fortran_order': False, 'shape': (%lld, %lld), }", (long long)end.rows,
                (long long)rows->width);
    memset(header, ' ', HEADER);
    memcpy(header, magic, sizeof magic);
    header[PREFIX - 2] = (char)((HEADER - PREFIX) & 255);
    header[PREFIX - 1] = (char)((HEADER - PREFIX) >> 8);
    if (PREFIX + dictionary.size > MARKS_AT) bug("%s: the header is too long", to);
    memcpy(header + PREFIX, dictionary.data, dictionary.size);
    command_words(command, end.bad, words);
    for (int i = 0; i < MARKS; i++)
        if (words[i / 32] >> i % 32 & 1) header[MARKS_AT + i] = '\t';
    header[HEADER - 1] = '\n';
    put(rows, header, HEADER, 0);
    if (ftruncate(rows->fd, (off_t)bytes_of(rows, end.rows)) || fsync(rows->fd) || rename(rows->path, to))
        fail_system(errno, "%s: cannot be written", to);
    folder_sync(to);
}

/* Reads the marks of a finished output; false of another file. */
static bool read_marks(const char *path, uint32_t *words) {
    char header[HEADER];
    size_t size;
    const int fd = file_open(path, &size);
    const ssize_t got = read(fd, header, HEADER);
    close(fd);
    if (got != HEADER) return false;
    memset(words, 0, WORDS * sizeof *words);
    for (int i = 0; i < MARKS; i++) words[i / 32] |= (uint32_t)(header[MARKS_AT + i] == '\t') << i % 32;
    return words[CHECK] == check_of(words);
}

Finished rows_finished(Arena *arena, const char *path, const Command *command, Place *end, const char **why) {
    uint32_t marks[WORDS], wanted[WORDS];
    if (!file_exists(path)) return FINISHED_NONE;
    *why = "it is not of attnc embed";
    if (!read_marks(path, marks)) return FINISHED_OTHER;
    const NpyArray array = npy_read(arena, path); /* a failure if rows are missing */
    *end = (Place){.rows = array.shape.dims[0],
                   .bad = (int64_t)(marks[BAD_LOW] | (uint64_t)marks[BAD_HIGH] << 32)};
    command_words(command, end->bad, wanted);
    for (int i = 0; i < ITEM_COUNT; i++)
        if (marks[i] != wanted[i])
            return *why = arena_printf(arena, "another command made it, which differs in %s", command_names[i]),
                   FINISHED_OTHER;
    return FINISHED_SAME;
}
