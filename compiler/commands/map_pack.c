/* map_pack.c: packs the weights of one head for a page, 8 bits each and deflated. */
#include "map.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { MOST_LEVEL = 255, MOST_EXPONENT = 200, BUFFER = 1 << 15, MEMORY_LEVEL = 8 }; /* 8 is zlib's default */

/* ---------------------------------------------------------------- levels */

static double number(double weight) { return isfinite(weight) && weight > 0 ? weight : 0; }

static double greatest_of(const double *weights, int64_t count) {
    double greatest = 0;
    for (int64_t i = 0; i < count; i++) greatest = fmax(greatest, number(weights[i]));
    return greatest;
}

/* The number of times that the step is halved until the row's greatest weight has ROW_LEVELS steps. */
static int exponent_of(double share) {
    int exponent = 0;
    if (!(share > 0)) return exponent;
    while (ldexp(share * MOST_LEVEL, exponent) < ROW_LEVELS && exponent < MOST_EXPONENT) exponent++;
    return exponent;
}

/* levels [columns][rows]; exponents [rows] */
static void take_levels(const double *weights, int64_t rows, int64_t columns, double greatest, uint8_t *levels,
                        uint8_t *exponents) {
    for (int64_t i = 0; i < rows && greatest > 0; i++) {
        const double *row = weights + i * columns;
        exponents[i] = (uint8_t)exponent_of(greatest_of(row, columns) / greatest);
        for (int64_t j = 0; j < columns; j++)
            levels[j * rows + i] = (uint8_t)lround(ldexp(number(row[j]) / greatest * MOST_LEVEL, exponents[i]));
    }
}

/* ---------------------------------------------------------------- the order of columns */

typedef struct Column {
    int64_t at;
    uint8_t mean;
} Column;

static int compare_columns(const void *a, const void *b) {
    const Column *x = a, *y = b;
    if (x->mean != y->mean) return x->mean < y->mean ? 1 : -1;
    return (x->at > y->at) - (x->at < y->at);
}

/* Arranges the bytes that are deflated, as map.h says: a head of `columns + rows` bytes, then `rows` bytes for each
 * column. */
static uint8_t *arrange(Arena *arena, const uint8_t *levels, const uint8_t *exponents, int64_t rows, int64_t columns) {
    Column *order = arena_array(arena, (size_t)columns, sizeof *order);
    uint8_t *out = arena_array(arena, (size_t)(rows + 1), (size_t)columns + 1), *at = out + columns + rows;
    for (int64_t j = 0; j < columns; j++) {
        int64_t sum = 0;
        for (int64_t i = 0; i < rows; i++) sum += levels[j * rows + i];
        out[j] = (uint8_t)((sum + rows / 2) / rows);
        order[j] = (Column){j, out[j]};
    }
    memcpy(out + columns, exponents, (size_t)rows);
    qsort(order, (size_t)columns, sizeof *order, compare_columns);
    for (int64_t j = 0; j < columns; j++)
        for (int64_t i = 0; i < rows; i++) *at++ = (uint8_t)(levels[order[j].at * rows + i] - order[j].mean);
    return out;
}

/* ---------------------------------------------------------------- deflate and base64 */

static void *take_memory(void *with, uInt items, uInt size) {
    (void)with;
    return checked_malloc((size_t)items * size);
}

static void give_memory(void *with, void *memory) {
    (void)with;
    free(memory);
}

static Text deflated(Arena *arena, const uint8_t *bytes, size_t size, int strategy) {
    Text out = text_new(arena);
    z_stream stream = {.zalloc = take_memory, .zfree = give_memory};
    int status = deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS, MEMORY_LEVEL, strategy);
    if (status == Z_MEM_ERROR) out_of_memory();
    if (status != Z_OK) bug("deflateInit2 gives %d", status);
    uint8_t buffer[BUFFER];
    do {
        if (stream.avail_in == 0) { /* zlib counts bytes in 32 bits */
            size_t portion = size < BUFFER ? size : BUFFER;
            stream.next_in = (Bytef *)(uintptr_t)bytes;
            stream.avail_in = (uInt)portion;
            bytes += portion, size -= portion;
        }
        stream.next_out = buffer;
        stream.avail_out = BUFFER;
        status = deflate(&stream, size ? Z_NO_FLUSH : Z_FINISH);
        if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) bug("deflate gives %d", status);
        text_add(&out, (const char *)buffer, BUFFER - stream.avail_out);
    } while (status != Z_STREAM_END);
    deflateEnd(&stream);
    return out;
}

static const char *base64(Arena *arena, const Text *bytes) {
    Text out = text_new(arena);
    text_base64(&out, bytes->data, bytes->size);
    return out.data;
}

MapWeights map_pack(Arena *arena, const double *weights, int64_t rows, int64_t columns) {
    MapWeights map = {.greatest = greatest_of(weights, rows * columns)};
    Arena *scratch = arena_new();
    uint8_t *levels = arena_array(scratch, (size_t)rows, (size_t)columns);
    uint8_t *exponents = arena_array(scratch, (size_t)rows, 1);
    take_levels(weights, rows, columns, map.greatest, levels, exponents);
    const uint8_t *bytes = arrange(scratch, levels, exponents, rows, columns);
    size_t size = (size_t)(rows * columns + rows + columns);
    /* Equal rows repeat, which the default strategy finds; other weights are like noise, for which only the frequencies
     * help. */
    Text repeated = deflated(scratch, bytes, size, Z_DEFAULT_STRATEGY), runs = deflated(scratch, bytes, size, Z_RLE);
    map.packed = base64(arena, repeated.size <= runs.size ? &repeated : &runs);
    arena_free(scratch);
    return map;
}

const char *map_pack_bits(Arena *arena, const uint8_t *bytes, int64_t count) {
    Arena *scratch = arena_new();
    const int64_t size = (count + 7) / 8;
    uint8_t *bits = arena_array(scratch, (size_t)size, 1);
    for (int64_t i = 0; i < count; i++) bits[i / 8] |= (uint8_t)(bytes[i] << i % 8);
    const Text packed = deflated(scratch, bits, (size_t)size, Z_DEFAULT_STRATEGY);
    const char *text = base64(arena, &packed);
    arena_free(scratch);
    return text;
}
