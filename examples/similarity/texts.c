/* Lines of files and pipes, of any length and any bytes. */
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64

#include "texts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "progress.h"

void die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fflush(stdout);
    progress_end();
    fputs("similarity: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

void *must_have(void *memory) {
    if (!memory) die("out of memory");
    return memory;
}

/* ---------------------------------------------------------------- texts */

static void append_bytes(Texts *texts, const char *utf8, size_t bytes) {
    if (texts->reserved - texts->bytes < bytes) {
        texts->reserved = 2 * texts->reserved + bytes;
        texts->utf8 = must_have(realloc(texts->utf8, texts->reserved));
    }
    if (bytes > 0) memcpy(texts->utf8 + texts->bytes, utf8, bytes);
    texts->bytes += bytes;
}

/* Makes a text of what was appended from `begin` on. */
static void end_text(Texts *texts, size_t begin, size_t line, bool cut) {
    if (texts->count == texts->capacity) {
        texts->capacity = texts->capacity ? 2 * texts->capacity : 64;
        texts->list = must_have(realloc(texts->list, texts->capacity * sizeof *texts->list));
    }
    texts->list[texts->count++] = (Text){begin, texts->bytes - begin, line, cut};
}

void texts_add(Texts *texts, const char *utf8, size_t bytes, size_t line) {
    size_t begin = texts->bytes;
    append_bytes(texts, utf8, bytes);
    end_text(texts, begin, line, false);
}

void texts_clear(Texts *texts) {
    texts->bytes = 0;
    texts->count = 0;
}

void texts_free(Texts *texts) {
    free(texts->utf8);
    free(texts->list);
    *texts = (Texts){0};
}

/* ---------------------------------------------------------------- reading */

void reader_open(Reader *reader, const char *path) {
    bool standard = strcmp(path, "-") == 0;
    reader->name = standard ? "standard input" : path;
    reader->descriptor = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (reader->descriptor < 0) die("%s: %s", path, strerror(errno));
    reader->line = reader->begin = reader->end = 0;
    reader->size = reader->read = 0;
    struct stat status;
    if (fstat(reader->descriptor, &status) == 0 && S_ISREG(status.st_mode)) {
        off_t at = lseek(reader->descriptor, 0, SEEK_CUR); /* a shell may have read some of it */
        if (at >= 0 && status.st_size > at) reader->size = (uint64_t)(status.st_size - at);
    }
}

void reader_close(Reader *reader) {
    if (reader->descriptor != STDIN_FILENO) close(reader->descriptor);
}

/* Puts more into the empty buffer; false at the end of the file. */
static bool fill(Reader *reader) {
    ssize_t size;
    do {
        size = read(reader->descriptor, reader->buffer, sizeof reader->buffer);
    } while (size < 0 && errno == EINTR);
    if (size < 0) die("%s:%zu: %s", reader->name, reader->line + 1, strerror(errno));
    reader->begin = 0;
    reader->end = (size_t)size;
    reader->read += (uint64_t)size;
    return size > 0;
}

bool reader_next(Reader *reader, Texts *texts) {
    size_t begin = texts->bytes;
    bool any = false, cut = false;
    for (bool ended = false; !ended;) {
        if (reader->begin == reader->end && !fill(reader)) break;
        any = true;
        const char *from = reader->buffer + reader->begin;
        size_t left = reader->end - reader->begin;
        const char *newline = memchr(from, '\n', left);
        size_t size = newline ? (size_t)(newline - from) : left;
        size_t room = MAX_TEXT_BYTES - (texts->bytes - begin);
        append_bytes(texts, from, size < room ? size : room);
        cut |= size > room;
        ended = newline != NULL;
        reader->begin += size + ended;
    }
    if (!any) return false;
    while (!cut && texts->bytes > begin && texts->utf8[texts->bytes - 1] == '\r') texts->bytes--;
    end_text(texts, begin, ++reader->line, cut);
    return true;
}

double reader_fraction(const Reader *reader) {
    if (reader->size == 0) return -1;
    double taken = (double)(reader->read - (reader->end - reader->begin)) / (double)reader->size;
    return taken < 1 ? taken : 1; /* the file may have grown */
}
