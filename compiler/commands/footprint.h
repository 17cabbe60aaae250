/* footprint.h: the memory of a microcontroller that a program needs for a model, before its C is compiled. */
#ifndef FOOTPRINT_H
#define FOOTPRINT_H

#include "../targets/targets.h"

/* Bytes. A decoder that keeps a state is counted as it generates, row by row; any other model by its call of one
 * sequence. */
typedef struct Footprint {
    int64_t weights, code, constants; /* in flash; the code and constants are estimates */
    int64_t state, source;            /* a state, and an encoded source */
    int64_t workspace;                /* of the calls that share it, in one thread */
    int64_t arrays;                   /* inputs and the last output of a call */
    int64_t stack;                    /* an estimate */
} Footprint;

static inline int64_t footprint_flash(const Footprint *f) { return f->weights + f->code + f->constants; }
static inline int64_t footprint_ram(const Footprint *f) {
    return f->state + f->source + f->workspace + f->arrays + f->stack;
}

/* Of the C of one target that has operator_bytes. */
Footprint footprint(Arena *arena, const Program *program, const Emitted *emitted, const Isa *isa);
const char *footprint_flash_text(Arena *arena, const Footprint *f); /* "203.5 kB: weights 164.61 kB, code about …" */
const char *footprint_ram_text(Arena *arena, const Footprint *f);

/* The bounds that --budget states. */
typedef struct Budget {
    int64_t flash, ram; /* bytes; 0 without a bound */
} Budget;

Budget budget_read(const char *usage, const char *text); /* "flash=256k,ram=96k"; NULL: no bound */
/* Fails with EXIT_CANNOT and the figures if a bound is passed. */
void budget_keep(Arena *arena, const Budget *budget, const Program *program, const Emitted *emitted, const Isa *isa);
/* Prints what the model needs, with its shares of the bounds. */
void budget_tell(Arena *arena, const Budget *budget, const Program *program, const Emitted *emitted, const Isa *isa);

#endif
