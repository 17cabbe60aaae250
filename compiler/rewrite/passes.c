/* passes.c: the passes from graph to graph, in their order. */
#include "rewrite.h"

const RewritePass *const rewrite_passes[] = {&precision_pass, NULL};

Module *rewrite(Arena *arena, const Module *module, int ranks) {
    Module *now = graph_rewrite(arena, module, rewrite_passes[0], NULL);
    for (int i = 1; rewrite_passes[i]; i++) now = graph_rewrite(arena, now, rewrite_passes[i], NULL);
    return ranks > 1 ? shard(arena, now, ranks) : now;
}
