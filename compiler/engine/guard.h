/* guard.h: memory between two inaccessible pages, and calls whose crashes are described and do not end the program. */
#ifndef GUARD_H
#define GUARD_H

#include "../attnc.h"

/* The position of memory between its two pages. */
typedef enum GuardSide {
    GUARD_NONE,     /* plain memory of attn_alloc, without pages */
    GUARD_BEHIND,   /* ends at the second page */
    GUARD_IN_FRONT, /* begins at the end of the first page */
    GUARD_SHIFTED   /* ends `alignment` bytes before the second page, so that it is aligned to nothing more than that */
} GuardSide;

GuardSide guard_other(GuardSide side); /* alternates between behind and in front */

enum { GUARD_ALIGNMENT = 64 }; /* NAME_ALIGNMENT: the alignment of weights, workspaces and states */

typedef struct Guard Guard;

/* Room for `most` bytes, which messages call `what`; unmapped with the arena. */
Guard *guard_new(Arena *arena, const char *what, size_t most);
/* Places `bytes` of NaN as near to a page as `alignment`, a power of two, allows, and canaries around them. What the
 * room held before is lost. */
void *guard_place(Guard *guard, size_t bytes, size_t alignment, GuardSide side);
void guard_fill(Guard *guard, uint32_t word); /* fills what guard_place has placed with that word */
/* Places a read-only copy of `data`. Returns NULL for NULL. */
const void *guard_input(Guard *guard, const void *data, size_t bytes, size_t alignment, GuardSide side);
/* Describes where a canary was overwritten; NULL when all are whole. */
const char *guard_damage(Arena *arena, const Guard *guard);

/* Returns function(with), or GUARD_CRASHED when a signal ended it. With `pooled` a crash ends the process with a
 * message on stderr, since the other threads of the pool cannot be stopped. */
enum { GUARD_CRASHED = -1 };
int guard_call(int (*function)(void *with), void *with, bool pooled);
const char *guard_crash(void); /* describes the last crash */

#endif
