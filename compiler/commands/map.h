/* map.h: the weights of one head as attnc map stores them in a page. */
#ifndef MAP_H
#define MAP_H

#include "../attnc.h"
#include "../engine/batch.h"

/* The weights are bytes, deflated in zlib's format and encoded in base64: a mean level for each column, an exponent for
 * each row, then the levels column by column, minus the column's mean modulo 256. Columns are sorted by descending
 * mean, and by position when means are equal, which makes neighbours similar and the Huffman codes short. A weight is
 * level * greatest / 255 / 2^exponent. */
typedef struct MapWeights {
    double greatest; /* the greatest finite weight; those that are not finite are stored as 0 */
    const char *packed;
} MapWeights;

/* Packs weights [rows][columns] >= 0, each with an error of at most half a step. A step is 1/255 of the greatest weight
 * of the map, halved until the row's greatest weight is at least ROW_LEVELS steps. */
enum { ROW_LEVELS = 16 };
MapWeights map_pack(Arena *arena, const double *weights, int64_t rows, int64_t columns);
/* Packs bytes that are 0 or 1 as bits, eight a byte, the lowest first, deflated in zlib's format and encoded in
 * base64. */
const char *map_pack_bits(Arena *arena, const uint8_t *bytes, int64_t count);

/* --- map_mask.c: a byte for each pair [rows][keys] of an exported map of the `shape` [heads][rows][keys], 1 where the
 * mask hides the key from the query in this call. NULL: the mask hides no pair. */
const uint8_t *map_hidden(Arena *arena, const Graph *graph, const Sequence *sequence, const GraphOutput *output,
                          Shape shape);

#endif
