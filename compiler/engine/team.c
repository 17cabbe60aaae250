/* team.c: ranks as threads. Their collective copies parts from rank to rank between two barriers. */
#include "team.h"

#include "../../runtime/attn_runtime.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

typedef struct Member {
    Team *team;
    int rank;
    const TeamCall *call;   /* NULL: init */
    DriverCall own;
    int (*init)(DriverCall *call);
    int status;
    uint8_t *parts;         /* of the collective that runs */
    size_t bytes;
    void *workspace;
    size_t workspace_bytes;
    void *outputs[OUT_COUNT];
    size_t output_bytes[OUT_COUNT];
} Member;

/* Memory of the other ranks for what rank 0 has at `of_first`. */
typedef struct TeamMemory {
    struct TeamMemory *next;
    const void *of_first;
    size_t bytes;
    void **of_ranks;
} TeamMemory;

struct Team {
    Arena *arena;
    int ranks;
    attn_file *weights;
    Member *members;
    TeamMemory *memory;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    unsigned long generation; /* of the barrier */
    int arrived, left;        /* members at the barrier, and those whose call has ended */
};

static void close_weights(void *file) { attn_close_file(file); }
static void free_memory(void *memory) { attn_free(memory); }

static void *memory_of(Arena *arena, size_t bytes) {
    void *memory = attn_alloc(bytes);
    if (!memory) out_of_memory();
    arena_on_free(arena, free_memory, memory);
    return memory;
}

Team *team_new(Arena *arena, int ranks, const char *const *paths) {
    Team *team = arena_alloc(arena, sizeof *team);
    *team = (Team){.arena = arena,
                   .ranks = ranks,
                   .weights = arena_array(arena, (size_t)ranks, sizeof *team->weights),
                   .members = arena_array(arena, (size_t)ranks, sizeof *team->members),
                   .lock = PTHREAD_MUTEX_INITIALIZER,
                   .moved = PTHREAD_COND_INITIALIZER};
    for (int r = 0; r < ranks; r++) {
        const int error = attn_map_file(paths[r], &team->weights[r]);
        if (error) fail_system(error, "%s: cannot be read", paths[r]);
        arena_on_free(arena, close_weights, &team->weights[r]);
        team->members[r].team = team;
        team->members[r].rank = r;
    }
    return team;
}

int team_ranks(const Team *team) { return team->ranks; }

void *team_memory(Team *team, int rank, void *of_first, size_t bytes) {
    if (!rank || !of_first) return of_first;
    TeamMemory *m = team->memory;
    while (m && (m->of_first != of_first || m->bytes != bytes)) m = m->next;
    if (!m) {
        m = arena_alloc(team->arena, sizeof *m);
        *m = (TeamMemory){team->memory, of_first, bytes, arena_array(team->arena, (size_t)team->ranks, sizeof(void *))};
        for (int r = 1; r < team->ranks; r++) m->of_ranks[r] = memset(memory_of(team->arena, bytes), 0xff, bytes);
        team->memory = m;
    }
    return m->of_ranks[rank];
}

/* ---------------------------------------------------------------- the collective */

/* Waits for all members; false where one has ended its call. */
static bool meet(Team *team) {
    pthread_mutex_lock(&team->lock);
    const unsigned long generation = team->generation;
    if (++team->arrived == team->ranks) {
        team->arrived = 0;
        team->generation++;
        pthread_cond_broadcast(&team->moved);
    }
    while (team->generation == generation && !team->left) pthread_cond_wait(&team->moved, &team->lock);
    const bool all = team->generation != generation;
    pthread_mutex_unlock(&team->lock);
    return all;
}

static void leave(Team *team) {
    pthread_mutex_lock(&team->lock);
    team->left++;
    pthread_cond_broadcast(&team->moved);
    pthread_mutex_unlock(&team->lock);
}

/* The hook of a rank's code. */
static int all_gather(void *group, void *parts, size_t bytes) {
    Member *own = group;
    Team *team = own->team;
    own->parts = parts;
    own->bytes = bytes;
    if (!meet(team)) return 1;
    bool same = true;
    for (int r = 0; r < team->ranks; r++) {
        const Member *other = &team->members[r];
        same &= other->bytes == bytes;
        if (r != own->rank && other->bytes == bytes)
            memcpy(own->parts + (size_t)r * bytes, other->parts + (size_t)r * bytes, bytes);
    }
    return meet(team) && same ? 0 : 1;
}

/* ---------------------------------------------------------------- calls */

static void *run_member(void *with) {
    Member *m = with;
    m->status = m->init ? m->init(&m->own) : m->call->entry(&m->own);
    leave(m->team);
    return NULL;
}

/* Runs all members, the first one in this thread, and returns the first status that is not 0. */
static int run_all(Team *team) {
    pthread_t *threads = arena_array(team->arena, (size_t)team->ranks, sizeof *threads);
    team->arrived = team->left = 0;
    for (int r = 1; r < team->ranks; r++) {
        const int error = pthread_create(&threads[r], NULL, run_member, &team->members[r]);
        if (error) fail_system(error, "a thread for rank %d cannot be made", r);
    }
    run_member(&team->members[0]);
    int status = team->members[0].status;
    for (int r = 1; r < team->ranks; r++) {
        pthread_join(threads[r], NULL);
        if (!status) status = team->members[r].status;
    }
    return status;
}

int team_init(Team *team, int (*init)(DriverCall *call), DriverCall *call) {
    for (int r = 0; r < team->ranks; r++) {
        Member *m = &team->members[r];
        m->init = init;
        m->own = *call;
        m->own.weights = team->weights[r].data;
        m->own.weights_bytes = team->weights[r].size;
        m->own.rank = r;
        m->own.all_gather = all_gather;
        m->own.group = m;
        if (r) m->own.threads = 1, m->own.on_step = NULL; /* of which the results do not depend */
    }
    const int status = run_all(team);
    for (int r = 0; r < team->ranks; r++) team->members[r].init = NULL;
    call->picked = team->members[0].own.picked;
    return status;
}

/* Room of a member that is kept for later calls; its numbers are NaN. */
static void *room_of(Arena *arena, void **room, size_t *has, size_t bytes) {
    if (*has < bytes) {
        *room = memory_of(arena, bytes);
        *has = bytes;
    }
    return bytes ? memset(*room, 0xff, bytes) : NULL;
}

static void *const *states_of(Team *team, int rank, void *const *of_first, int batch, size_t bytes) {
    if (!rank || !of_first) return of_first;
    void **own = arena_array(team->arena, (size_t)batch, sizeof *own);
    for (int b = 0; b < batch; b++) own[b] = team_memory(team, rank, of_first[b], bytes);
    return own;
}

static void give_member(Team *team, int rank, const TeamCall *call) {
    Member *m = &team->members[rank];
    m->call = call;
    m->own = *call->call;
    m->own.rank = rank;
    m->own.states = states_of(team, rank, call->call->states, call->call->batch, call->state_bytes);
    m->own.sources = states_of(team, rank, call->call->sources, call->call->batch, call->source_bytes);
    if (!rank) return;
    m->own.workspace = room_of(team->arena, &m->workspace, &m->workspace_bytes, call->call->workspace_bytes);
    for (int o = 0; o < OUT_COUNT; o++)
        if (call->call->outputs[o])
            m->own.outputs[o] =
                room_of(team->arena, &m->outputs[o], &m->output_bytes[o], call->output_bytes[o]);
}

int team_call(Team *team, const TeamCall *call) {
    for (int r = 0; r < team->ranks; r++) give_member(team, r, call);
    const int status = run_all(team);
    for (int o = 0; !status && o < OUT_COUNT; o++)
        for (int r = 1; call->call->outputs[o] && r < team->ranks; r++)
            if (memcmp(call->call->outputs[o], team->members[r].own.outputs[o], call->output_bytes[o]) != 0)
                return TEAM_DIFFERS;
    return status;
}
