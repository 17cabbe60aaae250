/* pickle.h: the part of Python's pickle format, protocols 2 to 5, that tensors and dictionaries need. The reader
 * executes nothing: a call remains a value with the name of its function and its arguments.
 * The format is that of CPython, Lib/pickletools.py. */
#ifndef PICKLE_H
#define PICKLE_H

#include "../attnc.h"

typedef enum PickleKind {
    PICKLE_PLAIN,   /* None, a real number, bytes, or an integer beyond 64 bits: its value is not kept */
    PICKLE_INTEGER, /* also of a bool: 0 or 1 */
    PICKLE_TEXT,
    PICKLE_TUPLE,   /* the items; also a list or a set */
    PICKLE_DICT,    /* the items are a key and its value in turn */
    PICKLE_GLOBAL,  /* the text is the name of a function or a class, as in "torch.FloatStorage" */
    PICKLE_CALL,    /* the text is the name of the function, and the items are its arguments */
    PICKLE_OUTER,   /* an object outside of the pickle; the items are what names it */
} PickleKind;

typedef struct PickleValue {
    PickleKind kind;
    int64_t integer;
    const char *text; /* without NUL characters */
    const struct PickleValue **items;
    int count, room;
} PickleValue;

typedef struct Pickle {
    const PickleValue *whole;
    const PickleValue **outer; /* [outer_count], all values of PICKLE_OUTER */
    int outer_count;
    size_t bytes; /* of the pickle, which may be followed by others */
} Pickle;

/* Reads the pickle at the beginning of data[size]. A global that `knows` does not accept is refused, and so is anything
 * that the kinds above do not describe, each with its offset. Values can hold each other in circles. */
Pickle pickle_read(Arena *arena, const char *path, const uint8_t *data, size_t size, bool (*knows)(const char *global));

#endif
