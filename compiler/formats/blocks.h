/* blocks.h: numbers that a file stores in blocks of a few bits each, with scales, as GGUF files do. */
#ifndef BLOCKS_H
#define BLOCKS_H

#include <stdint.h>

enum { MOST_BLOCK_ELEMENTS = 256 };

typedef struct BlockFormat {
    uint32_t id;      /* in a GGUF file */
    const char *name; /* as ggml calls it, such as Q4_0 */
    const char *exact;   /* the words of --precision weights=… that hold its numbers, or NULL */
    const char *nearest; /* the words whose numbers are nearest to them, in no more than two bits more each */
    int elements, bytes; /* of a block */
    /* Decodes one block to f32. Each number is rounded once, from the exact value of the format's formula. */
    void (*decode)(const uint8_t *block, float *out);
} BlockFormat;

/* The format with this id, or NULL. */
const BlockFormat *block_format(uint32_t id);
void block_numbers(const BlockFormat *format, const uint8_t *data, int64_t first, int64_t count, float *out);

#endif
