/* shard.h: what the files share that divide a module among ranks. */
#ifndef SHARD_H
#define SHARD_H

#include "rewrite.h"

/* An attention whose heads are divided among ranks: a rank computes `heads` of them over `kv_heads` of the keys and
 * values. Ranks may have the same head of keys. */
typedef struct Heads {
    const Sharding *query, *key, *value, *context; /* of the columns of these rows */
    int64_t heads, kv_heads;
} Heads;

/* Of the graphs of a module: the attention that each op belongs to, which reads and writes the heads of a rank, or
 * NULL; and how the columns of each of its tensors are divided, or NULL. */
typedef struct DividedHeads {
    const Heads **of_op[ENTRY_COUNT];
    const Sharding **of_tensor[ENTRY_COUNT];
    const Sharding **of_weight; /* of the matrices of queries, keys and values; else NULL */
} DividedHeads;

/* --- rewrite/shard_heads.c */
/* Finds the attentions of all graphs whose queries, keys and values come from matrices of their own, and whose scores
 * read nothing else but positions and inputs of the model. Weights that `others` marks are not divided. */
DividedHeads *heads_divide(Arena *arena, const Module *module, int ranks, const bool *others);

#endif
