/* guard.h: memory for generated code between two pages that nobody may touch, and calls whose crashes are told in
 * words. */
#ifndef GUARD_H
#define GUARD_H

#include "../attnc.h"

/* Where memory stands between its two pages. */
typedef enum GuardSide {
    GUARD_NONE,     /* memory of attn_alloc, without pages: for those who only want results */
    GUARD_BEHIND,   /* it ends at one of them */
    GUARD_IN_FRONT, /* it begins at one of them */
    GUARD_SHIFTED   /* it ends in front of one by its alignment: aligned to that and to nothing more */
} GuardSide;

GuardSide guard_other(GuardSide side); /* behind and in front in turns */

enum { GUARD_ALIGNMENT = 64 }; /* of weights, workspaces and states: NAME_ALIGNMENT */

typedef struct Guard Guard;

/* Room for `most` bytes of `what`, as crashes and damages name it. Ends with the arena. */
Guard *guard_new(Arena *arena, const char *what, size_t most);
/* Takes `bytes` of the room, full of NaN, as near to a page as `alignment`, a power of two, allows; canaries fill what
 * is left. The room holds nothing else from then on. */
void *guard_place(Guard *guard, size_t bytes, size_t alignment, GuardSide side);
/* The same with a copy of `data` that cannot be written. NULL stays NULL. */
const void *guard_input(Guard *guard, const void *data, size_t bytes, size_t alignment, GuardSide side);
/* NULL, or in words where a canary is gone. */
const char *guard_damage(Arena *arena, const Guard *guard);

/* function(with), or GUARD_CRASHED when it ended by a signal. In a pool, the others would run on after a crash: with
 * `pooled` it ends the process, in words. */
enum { GUARD_CRASHED = -1 };
int guard_call(int (*function)(void *with), void *with, bool pooled);
const char *guard_crash(void); /* the last crash in words */

#endif
