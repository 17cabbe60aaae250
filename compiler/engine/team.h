/* team.h: the ranks of a divided model as threads of this process, each with its own weights, workspace and states. */
#ifndef TEAM_H
#define TEAM_H

#include "remote.h"

typedef struct Team Team;

/* Rank r has the weights of the file paths[r]. */
Team *team_new(Arena *arena, int ranks, const char *const *paths);
/* Initializes all ranks with the options of `call`, which are those of rank 0. Returns 0, or the status of the first
 * rank with another one. */
int team_init(Team *team, int (*init)(DriverCall *call), DriverCall *call);

/* A call of an entry, with rank 0's arguments. The other ranks have a workspace, outputs of `output_bytes[role]` bytes
 * (NULL: none), and states and sources by the addresses of rank 0's, of `state_bytes` and `source_bytes`. */
typedef struct TeamCall {
    int (*entry)(const DriverCall *call);
    const DriverCall *call;
    const size_t *output_bytes;
    size_t state_bytes, source_bytes;
} TeamCall;

/* Returns 0 or the status of the first rank with another. TEAM_DIFFERS: rank 0 and another one have other outputs. */
enum { TEAM_DIFFERS = 1000 };
int team_call(Team *team, const TeamCall *call);
/* The memory of a rank for a state or source of rank 0, of so many bytes. */
void *team_memory(Team *team, int rank, void *of_first, size_t bytes);
int team_ranks(const Team *team);

#endif
