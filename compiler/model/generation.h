/* generation.h: generation.def as a table. */
#ifndef GENERATION_H
#define GENERATION_H

#include "../attnc.h"

#include <stddef.h>

typedef enum GenerationKind {
    KIND_flag, KIND_integer, KIND_real, KIND_tokens, KIND_word, KIND_form, KIND_stopping
} GenerationKind;

typedef struct GenerationRow {
    const char *name;
    GenerationKind kind;
    size_t offset; /* of the field in Generation */
    double least, most;
} GenerationRow;

enum {
    GENERATION_ROWS = 0
#define GENERATION(name, kind, least, most, help) + 1
#include "generation.def"
};

extern const GenerationRow generation_rows[GENERATION_ROWS];

static inline void *generation_field(Generation *g, int row) { return (char *)g + generation_rows[row].offset; }

#endif
