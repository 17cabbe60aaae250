/* map.h: what attnc map keeps of one head's weights. */
#ifndef MAP_H
#define MAP_H

#include "../attnc.h"

/* The levels are deflated (zlib's format) and in base64. Unpacked they are bytes: a mean level for each column; an
 * exponent for each row; then the columns one after another, the greatest mean first and of equal means the left one
 * first, each from row 0 on, and of each level the column's mean is taken away modulo 256. Neighbours are of a size
 * then, which is what Huffman's codes gain from. The weight is level * greatest / 255 / 2^exponent. */
typedef struct MapWeights {
    double greatest;     /* of the finite weights */
    int64_t not_numbers; /* how many are not finite; each is kept as 0 */
    const char *packed;
} MapWeights;

/* weights [rows][columns], each >= 0 and kept within half a step. A step is 1/255 of the greatest weight of the map, or
 * that halved until the row's own greatest weight is at least ROW_LEVELS steps. */
enum { ROW_LEVELS = 16 };
MapWeights map_pack(Arena *arena, const double *weights, int64_t rows, int64_t columns);

#endif
