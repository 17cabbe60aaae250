/* rewrite.h: what a Graph -> Graph pass is made of. */
#ifndef REWRITE_H
#define REWRITE_H

#include "../attnc.h"

/* A pass at work on one graph. */
typedef struct Rewrite {
    Arena *arena;
    const Module *old;  /* as the pass got it */
    Module *module;     /* the new one, whose weights the pass may change and add to */
    const Graph *from;
    Graph *to;
    int *now;           /* of each tensor of `from`, the one of `to` that stands for it, or NO_TENSOR until one does */
    void *with;         /* the pass's own */
} Rewrite;

typedef struct RewritePass {
    const char *name;
    /* Changes the weights of the new module before any graph is copied; or NULL. */
    void (*weights)(Rewrite *r);
    /* Called before the first operation of a graph, and after its last one, when outputs and states are in place; each
     * may be NULL. */
    void (*begin)(Rewrite *r), (*end)(Rewrite *r);
    /* Puts what stands for an operation of `from` into `to`, and returns the tensor that stands for its result. */
    int (*op)(Rewrite *r, const Op *op);
} RewritePass;

/* --- rewrite/rewrite.c */
/* Applies a pass, with what it calls its own, to each graph of a module, in the order of its operations. The new graphs
 * lack operations whose results nothing reads. The new module is verified. */
Module *graph_rewrite(Arena *arena, const Module *module, const RewritePass *pass, void *with);
/* The tensor of `to` that stands for tensor t of `from`. */
int rewrite_tensor(Rewrite *r, int t);
/* The tensors of `to` that stand for the inputs of an operation. */
int *rewrite_inputs(Rewrite *r, const Op *op);
/* Puts the operation into `to`, with other inputs or with those that stand for its own; returns its result. */
int rewrite_as(Rewrite *r, const Op *op, const int *inputs);
int rewrite_copy(Rewrite *r, const Op *op);
/* Appends an operation to the new graph, with the place in the spec of operation `by`; returns the result's tensor. */
int rewrite_add(Rewrite *r, const Op *by, OpKind kind, OpAttributes a, Tensor result, int n, const int *inputs);
/* Gives a tensor or a weight the name of its neighbour: "layers.3.ffn.up.smooth" for "layers.3.ffn.up.weight". */
void rewrite_sibling(Arena *arena, const char **name, Site *site, const char *word);

/* --- rewrite/passes.c */
extern const RewritePass *const rewrite_passes[]; /* ended by NULL */

/* --- rewrite/precision.c: rounds the rows of products, and the queries, keys and values of attention. */
extern const RewritePass precision_pass;

/* --- rewrite/shard.c: divides the matrices of products among ranks. */
Module *shard(Arena *arena, Module *module, int ranks);

#endif
