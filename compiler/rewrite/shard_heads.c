/* shard_heads.c: which attentions are divided by heads. All graphs divide a matrix in the same way, so that an
 * attention which cannot be divided keeps all others whole that read its matrices or its states. */
#include "shard.h"

#include <string.h>

enum { ROWS_QUERY, ROWS_KEY, ROWS_VALUE, ROWS_KINDS, MOST_CHAIN = 12, MOST_CORE = 8 };

/* A tensor from the matrix to the scores or to the weighted sum, and the op that writes it; -1: a state. */
typedef struct Link {
    int tensor, op, kind;
} Link;

typedef struct Candidate {
    struct Candidate *next;
    EntryKind entry;
    Heads heads;
    bool fine;
    Link links[ROWS_KINDS * MOST_CHAIN];
    int n_links;
    int core[MOST_CORE], n_core;          /* scores to weighted sum; none of what only makes a source */
    int weights[ROWS_KINDS];              /* -1: rows of a source, which encode has made */
    const char *sources[ROWS_KINDS];      /* the states of a source that it reads or makes; or NULL */
} Candidate;

typedef struct Finder {
    Arena *arena;
    const Module *module;
    int ranks;
    const bool *others;
    const Graph *g; /* at hand, with: */
    int *uses, *reader;
    bool *is_output;
    Candidate *list;
    bool *plain;    /* [weights] */
} Finder;

/* ---------------------------------------------------------------- shardings */

static const Sharding *sharding_made(Arena *arena, int ranks, int64_t width, int64_t units, const int64_t *begin,
                                     const int64_t *count) {
    Sharding *s = arena_alloc(arena, sizeof *s);
    int64_t *columns = arena_array(arena, 2 * (size_t)ranks, sizeof *columns);
    *s = (Sharding){.ranks = ranks, .columns = units * width, .begin = columns, .count = columns + ranks};
    for (int r = 0; r < ranks; r++) {
        columns[r] = begin[r] * width;
        columns[ranks + r] = count[r] * width;
        if (count[r] * width > s->part) s->part = count[r] * width;
    }
    return s;
}

/* Divides the heads. With at least a head of keys for each rank, its queries go with it; else several ranks share one,
 * and divide its queries. Ranks without a head stand at the end. */
static Heads heads_of(Arena *arena, int ranks, const Op *scores, const Op *weighted) {
    const int64_t kv = scores->a.kv_heads, group = scores->a.heads / kv, sharers = kv < ranks ? ranks / kv : 1;
    const int64_t each = ceil_div(group, sharers);
    int64_t *begin = arena_array(arena, 4 * (size_t)ranks, sizeof *begin);
    int64_t *count = begin + ranks, *key_begin = count + ranks, *key_count = key_begin + ranks;
    for (int r = 0; r < ranks; r++) {
        if (sharers == 1 && kv >= ranks) {
            key_begin[r] = kv * r / ranks;
            key_count[r] = kv * (r + 1) / ranks - key_begin[r];
            begin[r] = key_begin[r] * group;
            count[r] = key_count[r] * group;
            continue;
        }
        const int64_t head = r / sharers, first = r % sharers * each;
        key_begin[r] = head < kv ? head : kv;
        key_count[r] = head < kv;
        begin[r] = head < kv ? head * group + (first < group ? first : group) : scores->a.heads;
        count[r] = head < kv && first < group ? (group - first < each ? group - first : each) : 0;
    }
    const int64_t head_dim = scores->a.head_dim, value_dim = weighted->a.head_dim;
    Heads h = {.query = sharding_made(arena, ranks, head_dim, scores->a.heads, begin, count),
               .key = sharding_made(arena, ranks, head_dim, kv, key_begin, key_count),
               .value = sharding_made(arena, ranks, value_dim, kv, key_begin, key_count),
               .context = sharding_made(arena, ranks, value_dim, scores->a.heads, begin, count)};
    h.heads = h.query->part / head_dim;
    h.kv_heads = h.key->part / head_dim;
    return h;
}

static const Sharding *sharding_of_kind(const Heads *h, int kind) {
    return kind == ROWS_QUERY ? h->query : kind == ROWS_KEY ? h->key : h->value;
}

/* ---------------------------------------------------------------- an attention */

static bool add_link(Candidate *c, int tensor, int op, int kind) {
    if (c->n_links == ROWS_KINDS * MOST_CHAIN) return false;
    c->links[c->n_links++] = (Link){tensor, op, kind};
    return true;
}

static const char *state_name(const Graph *g, int tensor) {
    for (int i = 0; i < g->n_states; i++)
        if (g->states[i].in == tensor) return g->states[i].name;
    return NULL;
}

/* Whether an op on rows computes each head by itself, with weights that all heads share. */
static bool is_by_heads(const Finder *f, const Op *op, int64_t heads) {
    switch (op->kind) {
    case OP_rope: return op->a.heads == heads;
    case OP_round: return op->a.heads == heads || op->a.dtype != DTYPE_I8;
    case OP_clip: case OP_scale: return true;
    case OP_layernorm: case OP_rmsnorm:
        return op->a.groups == heads && f->g->tensors[op->inputs[1]].rank == 1 &&
               f->g->tensors[op->inputs[1]].kind == TENSOR_WEIGHT;
    default: return false;
    }
}

static bool take_matrix(const Finder *f, Candidate *c, const Op *op, int kind) {
    const Tensor *matrix = &f->g->tensors[op->inputs[1]];
    const int bias = op_bias(op);
    if (matrix->kind != TENSOR_WEIGHT || f->others[matrix->weight] || matrix->dims[0].n <= PANEL) return false;
    if (bias != NO_TENSOR && f->others[f->g->tensors[bias].weight]) return false;
    c->weights[kind] = matrix->weight;
    return true;
}

/* Follows rows back to the matrix that makes them, or to the state of a source. */
static bool follow(const Finder *f, Candidate *c, int t, int kind, int64_t heads, bool is_state) {
    for (int length = 0; length < MOST_CHAIN; length++) {
        const Tensor *tensor = &f->g->tensors[t];
        if (f->uses[t] != (is_state ? 0 : 1) || f->is_output[t]) return false;
        is_state = false;
        if (tensor->kind == TENSOR_STATE) {
            c->sources[kind] = state_name(f->g, t);
            return c->sources[kind] && add_link(c, t, -1, kind);
        }
        if (tensor->kind != TENSOR_VALUE || !add_link(c, t, tensor->op, kind)) return false;
        const Op *op = &f->g->ops[tensor->op];
        if (op->kind == OP_linear) return take_matrix(f, c, op, kind);
        if (op->kind == OP_append) {
            if (!add_link(c, op->inputs[0], -1, kind)) return false;
            t = op->inputs[1];
        } else if (is_by_heads(f, op, heads)) {
            t = op->inputs[0];
        } else {
            return false;
        }
    }
    return false;
}

/* The weighted sum of the scores, where nothing on the way reads numbers of a head; or NULL. */
static const Op *weighted_of(const Finder *f, Candidate *c, const Op *scores) {
    const Op *op = scores;
    c->core[c->n_core++] = (int)(op - f->g->ops);
    while (op->kind != OP_weighted_sum) {
        const int t = op->result;
        if (f->uses[t] != 1 || f->is_output[t] || c->n_core == MOST_CORE) return NULL;
        op = &f->g->ops[f->reader[t]];
        c->core[c->n_core++] = (int)(op - f->g->ops);
        const bool kept = op->kind == OP_rescore || op->kind == OP_softmax || op->kind == OP_weighted_sum;
        if (!kept || op->inputs[0] != t || op->a.has_sink) return NULL;
        for (int i = 0; i < pair_inputs(op->a.rule); i++) {
            const PairRule *reads = pair_reader(op->a.rule, i);
            if (reads && (reads->op == PAIR_of_head || reads->op == PAIR_table || reads->op == PAIR_list)) return NULL;
        }
    }
    return op;
}

static Candidate *candidate_new(Finder *f, EntryKind entry) {
    Candidate *c = arena_alloc(f->arena, sizeof *c);
    *c = (Candidate){.next = f->list, .entry = entry, .fine = true, .weights = {-1, -1, -1}};
    return f->list = c;
}

static void try_attention(Finder *f, EntryKind entry, const Op *scores) {
    Candidate *c = candidate_new(f, entry);
    const Op *weighted = weighted_of(f, c, scores);
    c->fine = weighted && scores->a.heads > 1;
    if (!c->fine) return;
    c->heads = heads_of(f->arena, f->ranks, scores, weighted);
    c->fine = follow(f, c, scores->inputs[0], ROWS_QUERY, scores->a.heads, false) &&
              follow(f, c, scores->inputs[1], ROWS_KEY, scores->a.kv_heads, false) &&
              follow(f, c, weighted->inputs[1], ROWS_VALUE, scores->a.kv_heads, false);
}

/* The heads of keys on all ranks. */
static int64_t keys_of(const Heads *h) { return h->key->columns * h->heads / h->query->part; }

/* What encode makes for the attentions of decode that read the state. */
static void try_source(Finder *f, const GraphState *state) {
    for (Candidate *reader = f->list; reader; reader = reader->next)
        for (int kind = 0; kind < ROWS_KINDS; kind++) {
            if (reader->entry != ENTRY_DECODE || !reader->sources[kind]) continue;
            if (strcmp(reader->sources[kind], state->name) != 0) continue;
            Candidate *c = candidate_new(f, ENTRY_ENCODE);
            c->heads = reader->heads;
            c->sources[kind] = state->name;
            c->fine = reader->fine && follow(f, c, state->out, kind, keys_of(&c->heads), true);
            return;
        }
}

/* ---------------------------------------------------------------- all graphs */

static void enter(Finder *f, const Graph *g) {
    const size_t n = (size_t)g->n_tensors + 1;
    f->g = g;
    f->uses = arena_array(f->arena, n, sizeof *f->uses);
    f->reader = arena_array(f->arena, n, sizeof *f->reader);
    f->is_output = arena_array(f->arena, n, sizeof *f->is_output);
    for (int o = 0; o < g->n_ops; o++)
        for (int i = 0; i < g->ops[o].n_inputs; i++) {
            f->uses[g->ops[o].inputs[i]]++;
            f->reader[g->ops[o].inputs[i]] = o;
        }
    for (int i = 0; i < g->n_outputs; i++) f->is_output[g->outputs[i].tensor] = true;
}

static void mark(const Candidate *c, DividedHeads *out) {
    for (int i = 0; i < c->n_links; i++) {
        const Link *l = &c->links[i];
        out->of_tensor[c->entry][l->tensor] = sharding_of_kind(&c->heads, l->kind);
        if (l->op >= 0) out->of_op[c->entry][l->op] = &c->heads;
    }
    for (int i = 0; i < c->n_core; i++) out->of_op[c->entry][c->core[i]] = &c->heads;
    for (int kind = 0; kind < ROWS_KINDS; kind++)
        if (c->weights[kind] >= 0) out->of_weight[c->weights[kind]] = sharding_of_kind(&c->heads, kind);
}

/* Marks the matrices of products that belong to no candidate. */
static void mark_plain(const Finder *f, const DividedHeads *found) {
    for (int e = 0; e < ENTRY_COUNT; e++) {
        const Graph *g = f->module->entries[e];
        for (int o = 0; g && o < g->n_ops; o++) {
            const Tensor *matrix = g->ops[o].n_inputs > 1 ? &g->tensors[g->ops[o].inputs[1]] : NULL;
            if (!matrix || matrix->kind != TENSOR_WEIGHT || g->ops[o].kind != OP_linear) continue;
            if (!found->of_op[e][o]) f->plain[matrix->weight] = true;
        }
    }
}

static bool share_a_source(const Candidate *a, const Candidate *b) {
    for (int i = 0; i < ROWS_KINDS; i++)
        for (int k = 0; k < ROWS_KINDS; k++)
            if (a->sources[i] && b->sources[k] && strcmp(a->sources[i], b->sources[k]) == 0) return true;
    return false;
}

/* Gives up a candidate that reads a matrix which another op reads in another way; returns whether there was one. */
static bool give_up(const Finder *f) {
    bool any = false;
    for (Candidate *c = f->list; c; c = c->next) {
        bool fine = c->fine;
        for (int kind = 0; kind < ROWS_KINDS; kind++)
            if (c->weights[kind] >= 0) fine &= !f->plain[c->weights[kind]];
        for (const Candidate *other = f->list; fine && other; other = other->next)
            fine &= other->fine || !share_a_source(c, other);
        any |= fine != c->fine;
        c->fine = fine;
        for (int kind = 0; !fine && kind < ROWS_KINDS; kind++)
            if (c->weights[kind] >= 0) f->plain[c->weights[kind]] = true;
    }
    return any;
}

static DividedHeads *divided_new(Arena *arena, const Module *module) {
    DividedHeads *out = arena_alloc(arena, sizeof *out);
    out->of_weight = arena_array(arena, module->weights.count, sizeof *out->of_weight);
    for (int e = 0; e < ENTRY_COUNT; e++) {
        const Graph *g = module->entries[e];
        if (!g) continue;
        out->of_op[e] = arena_array(arena, (size_t)g->n_ops + 1, sizeof *out->of_op[e]);
        out->of_tensor[e] = arena_array(arena, (size_t)g->n_tensors + 1, sizeof *out->of_tensor[e]);
    }
    return out;
}

DividedHeads *heads_divide(Arena *arena, const Module *module, int ranks, const bool *others) {
    Finder f = {.arena = arena, .module = module, .ranks = ranks, .others = others};
    f.plain = arena_array(arena, module->weights.count, sizeof *f.plain);
    for (int e = 0; e < ENTRY_COUNT; e++) {
        const Graph *g = module->entries[e];
        if (!g) continue;
        enter(&f, g);
        for (int o = 0; o < g->n_ops; o++)
            if (g->ops[o].kind == OP_scores) try_attention(&f, (EntryKind)e, &g->ops[o]);
    }
    const Graph *encode = module->entries[ENTRY_ENCODE];
    if (encode) enter(&f, encode);
    for (int i = 0; encode && i < encode->n_states; i++)
        if (encode->states[i].in == NO_TENSOR) try_source(&f, &encode->states[i]);
    DividedHeads *all = divided_new(arena, module), *out = divided_new(arena, module);
    for (const Candidate *c = f.list; c; c = c->next)
        if (c->fine) mark(c, all);
    mark_plain(&f, all);
    while (give_up(&f)) continue;
    for (const Candidate *c = f.list; c; c = c->next)
        if (c->fine) mark(c, out);
    return out;
}
