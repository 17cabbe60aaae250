/* names.h: the names of offsets in the emitted C, and the comments of its steps, which all targets share. */
#ifndef ATTNC_NAMES_H
#define ATTNC_NAMES_H

#include "emit.h"

/* A constant of the emitted C: an offset, in floats, from the start of its space. */
typedef struct NamedOffset {
    const char *name, *comment;
    const char *heading; /* a heading in front of this line, or NULL */
    int64_t at;
    uint64_t hash; /* of the name */
} NamedOffset;

typedef struct OffsetList {
    NamedOffset *items; /* in the order of offsets */
    int n, room;
} OffsetList;

struct Names {
    const char **packed, **caches;       /* by index; NULL for those at which no call begins */
    const char **buffers[ENTRY_COUNT];   /* those of the workspace */
    const char **comments[ENTRY_COUNT];  /* of the steps */
    bool has_next;                       /* a call prefetches the weights of the next product */
    OffsetList weights, state, source, workspace[ENTRY_COUNT];
};

/* --- emit/step_comment.c */
/* "layer 3, self attention, query key value projection: [rows][384] x [384][1152] + bias" */
const char *step_comment(Arena *arena, const Plan *plan, const Step *step);

#endif
