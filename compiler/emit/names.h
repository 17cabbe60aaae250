/* names.h: what the emitted C calls places in memory, and what it says of its steps: the same for all its targets. */
#ifndef ATTNC_NAMES_H
#define ATTNC_NAMES_H

#include "emit.h"

/* A constant of the C: where something begins, in floats from the start of its space. */
typedef struct NamedOffset {
    const char *name, *comment;
    const char *heading; /* of the lines from here on, or NULL */
    int64_t at;
    uint64_t hash; /* of the name */
} NamedOffset;

typedef struct OffsetList {
    NamedOffset *items; /* by place */
    int n, room;
} OffsetList;

struct Names {
    const char **packed, **caches;       /* by their index; NULL where no call begins */
    const char **buffers[ENTRY_COUNT];   /* those of the workspace */
    const char **comments[ENTRY_COUNT];  /* of the steps */
    bool has_next;                       /* a call prefetches the weights of the product behind */
    OffsetList weights, state, source, workspace[ENTRY_COUNT];
};

/* --- emit/step_comment.c */
/* "layer 3, self attention, query key value projection: [rows][384] x [384][1152] + bias" */
const char *step_comment(Arena *arena, const Plan *plan, const Step *step);

#endif
