/* program.h: what the files of the program share. */
#ifndef TESTS_PROMISES_PROGRAM_H
#define TESTS_PROMISES_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attn_runtime.h"

/* Of which there are so many a row, a row of the source, a sequence, or a pair of rows. */
typedef enum FieldKind { ROWS, SOURCE, SEQUENCE, MAPS_SELF, MAPS_SOURCE } FieldKind;

typedef struct Field {
    const char *name;
    size_t offset; /* of the pointer, in the model's struct */
    int width;     /* numbers */
    FieldKind kind;
    int ids; /* whole numbers below it; 0: floats */
} Field;

enum { MOST_FIELDS = 8, MOST_THREADS = 8, MOST_POOLS = 5 };

#include "config.h"

extern const char *target;
extern void *weights; /* U(WEIGHTS_BYTES) */

#if defined(__GNUC__)
__attribute__((format(printf, 1, 2), noreturn))
#endif
void failed(const char *format, ...);
uint64_t random_below(uint64_t n);
void *block(size_t bytes);
void make_ctx(M(ctx) *ctx, int threads, int way);
void add_hash(uint64_t *sum, const float *numbers, size_t count);

/* decode.c: nothing where the model has no state */
void hash_decoded(const M(ctx) *ctx, uint64_t *sum);
void try_decode(void);

/* refuse.c: the program's exit status; all: every bit of the data, however many there are */
int refuse_damaged(bool all);

#endif
