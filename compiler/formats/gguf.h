/* gguf.h: GGUF files, versions 2 and 3, little-endian: keys with values, and tensors.
 * The format is that of ggml-org/ggml, docs/gguf.md. */
#ifndef GGUF_H
#define GGUF_H

#include "../attnc.h"

typedef enum GgufType {
    GGUF_U8, GGUF_I8, GGUF_U16, GGUF_I16, GGUF_U32, GGUF_I32, GGUF_F32, GGUF_BOOL, GGUF_STRING, GGUF_ARRAY, GGUF_U64,
    GGUF_I64, GGUF_F64, GGUF_TYPES
} GgufType;

typedef struct GgufEntry {
    const char *key;
    bool array;
    GgufType type;   /* of the value, or of each item of the array; never GGUF_ARRAY */
    uint64_t count;  /* of the items; 1 for a value alone */
    const uint8_t *data; /* of the first item, unaligned, within the file */
} GgufEntry;

typedef struct GgufFile {
    TensorFile tensors;
    GgufEntry *entries; /* in the file's order; no key occurs twice */
    size_t count;
} GgufFile;

bool gguf_begins(MappedFile file); /* whether the file has GGUF's first bytes */
GgufFile gguf_read(Arena *arena, MappedFile mapped);
/* The file with its tensors, and those of the other parts if it is the first part of several: gguf_parts.c. */
GgufFile gguf_open(Arena *arena, const char *path);
const GgufEntry *gguf_find(const GgufFile *file, const char *key); /* or NULL */

/* A walk over the items of an entry; `at` begins as entry->data. */
double gguf_next_number(const GgufEntry *entry, const uint8_t **at); /* not of strings; a bool is 0 or 1 */
const char *gguf_next_string(const uint8_t **at, size_t *size);      /* not ended by a NUL, within the file */
const uint8_t *gguf_end(const GgufEntry *entry);                     /* behind the last item */

#endif
