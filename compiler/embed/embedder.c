/* embedder.c: the vectors of chunks of texts, in several threads.
 *
 * Each thread takes a batch of texts and calls the compiled model with it, in a workspace of its own: threads that
 * share a call would wait for each other at each step. A sequence's vector has the same bits in any batch, since a call
 * computes a row by operations whose order depends on the model alone (docs/trust.md); so the texts of a chunk may be
 * sorted, and a batch holds texts of about the same length. The longest come first, so that threads end together. */
#include "embed.h"

#include "../../runtime/attn_runtime.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TEXTS = 1024, LEAST_TEXTS = 32, MOST_IDS = 1 << 23, TEXTS_A_STEP = 16, MOST_BATCH = 256 };

typedef struct Worker {
    void *workspace;
    int32_t *tokens, *lengths; /* of a batch */
    float *vectors;            /* [MOST_BATCH][width] */
    int status;                /* of the first call that failed */
} Worker;

struct Embedder {
    Engine *engine;
    const Words *words;
    bool truncate;
    int threads, most_texts;
    int64_t bound, width, batch_rows; /* tokens of a text; of a batch, which has one text or no more rows than that */
    attn_pool *pool;
    Worker *workers; /* [threads] */
    size_t workspace_bytes;
    Chunk *chunk;
    int32_t *ids; /* [most_texts][bound + 1] */
    int *counts;  /* [most_texts] of ids; 0 for a text with a fault */
    int *order;   /* [most_texts] the texts without a fault, longest first */
    int *starts;  /* [bound + 1] for sort_texts: where in `order` the texts of each count begin */
    int *batches; /* [most_texts + 1] where in `order` each batch begins */
    int n_batches;
    atomic_int next;
};

/* ---------------------------------------------------------------- the model */

static void free_pool(void *pool) { attn_pool_free(pool); }

static int64_t width_of(const Engine *engine) {
    const Graph *g = engine->plan->graph;
    const char *model = engine->module->model->name;
    const GraphOutput *pooled = graph_output_of(g, OUT_pooled);
    if (!pooled) fail("`%s` has no vector of a text: its spec needs `head pool`", model);
    if (!graph_needs_tokens_alone(g)) fail("`%s` needs other inputs than tokens, and texts have none", model);
    if (engine->plan->seq.exact || engine->program->unroll_full)
        fail_status(EXIT_CANNOT, "`%s` reads texts of exactly %lld tokens; `seq <= %lld` reads texts of any length",
                    model, (long long)engine->plan->seq.n, (long long)engine->plan->seq.n);
    return g->tensors[pooled->tensor].dims[1].n;
}

static Worker worker_new(Arena *arena, const Embedder *e) {
    return (Worker){.workspace = engine_memory(arena, e->workspace_bytes),
                    .tokens = arena_array(arena, (size_t)(e->batch_rows + e->bound), sizeof(int32_t)),
                    .lengths = arena_array(arena, MOST_BATCH, sizeof(int32_t)),
                    .vectors = arena_array(arena, (size_t)(MOST_BATCH * e->width), sizeof(float))};
}

Embedder *embedder_new(Arena *arena, Engine *engine, const Words *words, bool truncate, int threads) {
    Embedder *e = arena_alloc(arena, sizeof *e);
    *e = (Embedder){.engine = engine, .words = words, .truncate = truncate, .threads = threads};
    e->width = width_of(engine);
    e->bound = engine->plan->seq.n;
    e->batch_rows = engine->plan->rows > e->bound ? engine->plan->rows : e->bound;
    const int64_t fit = MOST_IDS / (e->bound + 1);
    e->most_texts = fit > MOST_TEXTS ? MOST_TEXTS : fit < LEAST_TEXTS ? LEAST_TEXTS : (int)fit;
    const size_t most = (size_t)e->most_texts;
    e->ids = arena_array(arena, most * (size_t)(e->bound + 1), sizeof *e->ids);
    e->counts = arena_array(arena, most, sizeof *e->counts);
    e->order = arena_array(arena, most, sizeof *e->order);
    e->starts = arena_array(arena, (size_t)e->bound + 1, sizeof *e->starts);
    e->batches = arena_array(arena, most + 1, sizeof *e->batches);
    e->workspace_bytes = engine_workspace(engine, ENTRY_FORWARD, 1);
    e->workers = arena_array(arena, (size_t)threads, sizeof *e->workers);
    for (int t = 0; t < threads; t++) e->workers[t] = worker_new(arena, e);
    e->pool = attn_pool_new(threads);
    if (!e->pool) fail_system(errno, "a pool of %d threads cannot be made", threads);
    arena_on_free(arena, free_pool, e->pool);
    return e;
}

int64_t embedder_width(const Embedder *e) { return e->width; }
int64_t embedder_bound(const Embedder *e) { return e->bound; }

Chunk *embedder_chunk(Arena *arena, const Embedder *e) {
    Chunk *chunk = arena_alloc(arena, sizeof *chunk);
    *chunk = (Chunk){.most = e->most_texts, .bytes = text_new(arena)};
    chunk->texts = arena_array(arena, (size_t)chunk->most, sizeof *chunk->texts);
    chunk->vectors = arena_array(arena, (size_t)(chunk->most * e->width), sizeof *chunk->vectors);
    return chunk;
}

/* ---------------------------------------------------------------- a chunk */

static int32_t *ids_of(const Embedder *e, int text) { return e->ids + (int64_t)text * (e->bound + 1); }

/* One id more than the bound shows that a text is too long. */
static void tokenize(Embedder *e, int index) {
    ChunkText *text = &e->chunk->texts[index];
    const int bound = (int)e->bound;
    int32_t *ids = ids_of(e, index);
    const char *utf8 = e->chunk->bytes.data + text->at;
    e->counts[index] = 0;
    if (text->fault) return;
    int count = words_ids(e->words, utf8, text->bytes, ids, bound + 1);
    if (count > bound && e->truncate) count = words_ids(e->words, utf8, text->bytes, ids, bound);
    if (count < 0) text->fault = FAULT_TOKENIZER;
    else if (count == 0) text->fault = FAULT_NO_TOKENS;
    else if (count > bound) text->fault = FAULT_LONG_TEXT;
    else e->counts[index] = count;
}

static void tokenize_some(void *with, int thread) {
    Embedder *e = with;
    (void)thread;
    for (int at; (at = atomic_fetch_add(&e->next, TEXTS_A_STEP)) < e->chunk->count;)
        for (int i = at; i < at + TEXTS_A_STEP && i < e->chunk->count; i++) tokenize(e, i);
}

/* Sorts the texts without a fault by counting: the longest first, equal ones in their order. Returns their number. */
static int sort_texts(Embedder *e) {
    for (int64_t length = 0; length <= e->bound; length++) e->starts[length] = 0;
    for (int i = 0; i < e->chunk->count; i++) e->starts[e->counts[i]]++;
    int at = 0;
    for (int64_t length = e->bound; length > 0; length--) {
        const int count = e->starts[length];
        e->starts[length] = at;
        at += count;
    }
    for (int i = 0; i < e->chunk->count; i++)
        if (e->counts[i]) e->order[e->starts[e->counts[i]]++] = i;
    return at;
}

static void make_batches(Embedder *e) {
    const int n = sort_texts(e);
    int begin = 0;
    int64_t rows = 0;
    e->n_batches = 0;
    for (int i = 0; i < n; i++) {
        const int64_t count = e->counts[e->order[i]];
        if (i > begin && (rows + count > e->batch_rows || i - begin == MOST_BATCH)) {
            begin = i;
            rows = 0;
        }
        if (i == begin) e->batches[e->n_batches++] = i;
        rows += count;
    }
    e->batches[e->n_batches] = n;
}

static void run_batch_of(const Embedder *e, Worker *w, int batch) {
    const int *order = e->order + e->batches[batch], n = e->batches[batch + 1] - e->batches[batch];
    int32_t *to = w->tokens;
    for (int i = 0; i < n; i++) {
        const int count = e->counts[order[i]];
        memcpy(to, ids_of(e, order[i]), (size_t)count * sizeof *to);
        to += count;
        w->lengths[i] = count;
    }
    DriverCall call = e->engine->call;
    call.batch = n;
    call.lengths = w->lengths;
    call.source_lengths = NULL;
    memset(call.inputs, 0, sizeof call.inputs);
    memset(call.outputs, 0, sizeof call.outputs);
    call.inputs[IN_tokens] = w->tokens;
    call.outputs[OUT_pooled] = w->vectors;
    call.workspace = w->workspace;
    call.workspace_bytes = e->workspace_bytes;
    const int status = engine_entry(e->engine, ENTRY_FORWARD, &call, NULL);
    if (status && !w->status) w->status = status;
    const size_t row = (size_t)e->width;
    for (int i = 0; i < n; i++)
        memcpy(e->chunk->vectors + (size_t)order[i] * row, w->vectors + (size_t)i * row, row * sizeof(float));
}

static void embed_some(void *with, int thread) {
    Embedder *e = with;
    for (int batch; (batch = atomic_fetch_add(&e->next, 1)) < e->n_batches;)
        run_batch_of(e, &e->workers[thread], batch);
}

static void embed_chunk(Embedder *e, Chunk *chunk) {
    e->chunk = chunk;
    atomic_store(&e->next, 0);
    attn_pool_run(e->pool, e->threads, tokenize_some, e);
    make_batches(e);
    atomic_store(&e->next, 0);
    attn_pool_run(e->pool, e->threads, embed_some, e);
    for (int t = 0; t < e->threads; t++)
        if (e->workers[t].status)
            fail("the compiled model says: %s", engine_text(e->engine, e->workers[t].status));
}

void embedder_run(Embedder *e, ChunkSource source, Chunk *chunk, ChunkSink sink) {
    while (source.next(source.with, chunk)) {
        embed_chunk(e, chunk);
        sink.take(sink.with, chunk);
    }
}
