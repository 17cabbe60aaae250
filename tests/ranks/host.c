/* host.c: an application that runs a divided decoder in threads, a rank each, with a collective of its own. It compares
 * the logits with those of the same model in one process, and gives ranks wrong weights and a collective that fails.
 * Usage: host WHOLE.attnw RANK0.attnw RANK1.attnw OTHER1.attnw, of two ranks; OTHER1 is of other weights. */
#define _POSIX_C_SOURCE 200112L /* barriers of threads */

#include "whole.h"
#include "parts.h"

#include "attn_runtime.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 7 };

typedef struct Group Group;
typedef struct Rank {
    Group *group;
    int rank, status;
    attn_file weights;
    void *parts;
    parts_ctx ctx;
    void *state;
    float logits[PARTS_VOCAB];
} Rank;

struct Group {
    pthread_barrier_t barrier;
    Rank ranks[PARTS_RANKS];
    int calls, failing; /* the number of the call that fails on rank 1; 0: none */
};

static int32_t tokens[ROWS];

static int all_gather(void *group, void *parts, size_t bytes) {
    Rank *own = group;
    Group *all = own->group;
    own->parts = parts;
    pthread_barrier_wait(&all->barrier);
    for (int r = 0; r < PARTS_RANKS; r++)
        if (r != own->rank)
            memcpy((char *)parts + (size_t)r * bytes, (char *)all->ranks[r].parts + (size_t)r * bytes, bytes);
    if (own->rank == 0) all->calls++;
    pthread_barrier_wait(&all->barrier);
    return all->failing && all->calls >= all->failing;
}

static void *start(void *with) {
    Rank *r = with;
    parts_options options = {0};
    options.size = sizeof options;
    options.rank = r->rank;
    options.all_gather = all_gather;
    options.group = r;
    options.verify = 1;
    r->status = parts_init(&r->ctx, r->weights.data, r->weights.size, &options);
    return NULL;
}

/* Appends the tokens, most of them in one call and the last one alone. */
static void *decode(void *with) {
    Rank *r = with;
    void *workspace = attn_alloc(PARTS_DECODE_WORKSPACE_BYTES(1));
    parts_decoded out = {0};
    out.size = sizeof out;
    out.logits = r->logits;
    r->status = parts_state_init(r->state, PARTS_STATE_BYTES);
    if (!r->status)
        r->status = parts_prefill(&r->ctx, r->state, tokens, ROWS - 1, &out, workspace,
                                  PARTS_DECODE_WORKSPACE_BYTES(1));
    if (!r->status)
        r->status = parts_step(&r->ctx, &r->state, tokens + ROWS - 1, 1, &out, workspace,
                               PARTS_DECODE_WORKSPACE_BYTES(1));
    attn_free(workspace);
    return NULL;
}

static void on_all(Group *group, void *(*task)(void *with)) {
    pthread_t threads[PARTS_RANKS];
    for (int r = 0; r < PARTS_RANKS; r++) pthread_create(&threads[r], NULL, task, &group->ranks[r]);
    for (int r = 0; r < PARTS_RANKS; r++) pthread_join(threads[r], NULL);
}

static void whole_logits(const char *path, float *logits) {
    attn_file file;
    if (attn_map_file(path, &file)) exit(2);
    whole_ctx ctx;
    if (whole_init(&ctx, file.data, file.size, NULL)) exit(2);
    void *workspace = attn_alloc(WHOLE_DECODE_WORKSPACE_BYTES(1)), *state = attn_alloc(WHOLE_STATE_BYTES);
    whole_decoded out = {0};
    out.size = sizeof out;
    out.logits = logits;
    if (whole_state_init(state, WHOLE_STATE_BYTES) ||
        whole_prefill(&ctx, state, tokens, ROWS, &out, workspace, WHOLE_DECODE_WORKSPACE_BYTES(1)))
        exit(2);
    attn_free(workspace);
    attn_free(state);
    attn_close_file(&file);
}

static void tell(const char *name, int fine) { printf("%s %s\n", fine ? "ok" : "not ok", name); }

static void give(Group *group, int rank, const char *path) {
    Rank *r = &group->ranks[rank];
    if (attn_map_file(path, &r->weights)) exit(2);
    r->group = group;
    r->rank = rank;
    if (!r->state) r->state = attn_alloc(PARTS_STATE_BYTES);
}

int main(int argc, char **argv) {
    static Group group;
    static float logits[WHOLE_VOCAB];
    if (argc != 5 || pthread_barrier_init(&group.barrier, NULL, PARTS_RANKS)) return 2;
    for (int i = 0; i < ROWS; i++) tokens[i] = (int32_t)(i * 5 + 1) % PARTS_VOCAB;
    whole_logits(argv[1], logits);
    give(&group, 0, argv[2]);
    give(&group, 1, argv[3]);
    on_all(&group, start);
    tell("agree", group.ranks[0].status == PARTS_OK && group.ranks[1].status == PARTS_OK &&
                      strcmp(parts_target(&group.ranks[0].ctx), parts_target(&group.ranks[1].ctx)) == 0);
    on_all(&group, decode);
    for (int r = 0; r < PARTS_RANKS; r++)
        tell(r ? "bits_of_rank_1" : "bits_of_rank_0",
             group.ranks[r].status == PARTS_OK && memcmp(logits, group.ranks[r].logits, sizeof logits) == 0);
    group.failing = group.calls + 3;
    on_all(&group, decode);
    tell("lost", group.ranks[0].status == PARTS_RANK_LOST && group.ranks[1].status == PARTS_RANK_LOST);
    tell("lost_state", parts_state_rows(group.ranks[0].state) == -1);
    group.failing = 0;
    on_all(&group, decode);
    tell("made_anew", memcmp(logits, group.ranks[0].logits, sizeof logits) == 0);
    give(&group, 1, argv[4]);
    on_all(&group, start);
    tell("other_weights", group.ranks[0].status == PARTS_RANKS_DIFFER && group.ranks[1].status == PARTS_RANKS_DIFFER &&
                              parts_odd_rank(&group.ranks[0].ctx) == 1);
    give(&group, 1, argv[2]);
    on_all(&group, start);
    tell("weights_of_another_rank", group.ranks[0].status == PARTS_RANKS_DIFFER &&
                                        parts_odd_rank(&group.ranks[1].ctx) == 1);
    give(&group, 1, argv[1]);
    on_all(&group, start);
    tell("weights_of_all", group.ranks[1].status == PARTS_BAD_WEIGHTS && group.ranks[0].status == PARTS_RANKS_DIFFER);
    return 0;
}
