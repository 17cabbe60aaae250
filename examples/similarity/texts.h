#ifndef SIMILARITY_TEXTS_H
#define SIMILARITY_TEXTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ends the program with exit status 1 and a line on standard error. Callable from the main thread only. */
__attribute__((format(printf, 1, 2), noreturn)) void die(const char *format, ...);

/* Ends the program where `memory` is NULL. */
void *must_have(void *memory);

enum { MAX_TEXT_BYTES = 1 << 20 }; /* of a line; the rest of it is read and dropped */

/* One line without its end: `bytes` bytes from texts->utf8 + begin on. Where they lie changes as texts are added. */
typedef struct Text {
    size_t begin, bytes, line; /* lines count from 1 */
    bool cut;                  /* not all of it was taken */
} Text;

/* Start from {0}. */
typedef struct Texts {
    char *utf8;
    size_t bytes, reserved;
    Text *list;
    size_t count, capacity;
} Texts;

void texts_add(Texts *texts, const char *utf8, size_t bytes, size_t line);
void texts_clear(Texts *texts); /* keeps the memory for the next ones */
void texts_free(Texts *texts);

/* Reads lines without waiting for more than there is, so that a terminal or a pipe answers line by line. */
typedef struct Reader {
    const char *name; /* for messages */
    int descriptor;
    size_t line;         /* lines read */
    uint64_t size, read; /* bytes; size is 0 where it is not known */
    size_t begin, end;   /* what is still to be taken from the buffer */
    char buffer[1 << 16];
} Reader;

/* "-" is standard input. */
void reader_open(Reader *reader, const char *path);
void reader_close(Reader *reader);

/* Adds the next line, without its "\n" or "\r\n", to the texts; false at the end of the file. */
bool reader_next(Reader *reader, Texts *texts);

/* Which part of the file was taken, 0 to 1; negative where its size is not known. */
double reader_fraction(const Reader *reader);

#endif
